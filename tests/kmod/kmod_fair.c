/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of time: nobody keeps an engine, queue 0, the kernel's memory or the driver's end
 * for himself. kmod_tenants.c runs them.
 */
#include "tests/kmod/kmod_tenants.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/userfaultfd.h>

#define MiB (1ull << 20)
#define LIMIT_NS (3 * SECOND)	/* limit_ms, as the module was loaded */

/* ---- time ---- */

static int take_priority(void *arg)
{
	struct drm_tessera_ctx_create ctx = ctx_create();

	(void)arg;
	for (uint8_t p = 0; p < 4; p++) {
		struct drm_tessera_queue_create q = { .ctx = ctx.id, .cls = HW_CLASS_DMA,
						      .n_entries = 64, .priority = p,
						      .eventfd = -1 };
		int r = ioctl(fd, DRM_IOCTL_TESSERA_QUEUE_CREATE, &q);

		if (p < 2 ? r : !r || errno != EACCES)
			return 10 + p;
	}
	return 0;
}

void more_than_normal_priority_takes_a_capability(void)
{
	SAME(end_of(tenant(1, take_priority, NULL), 20 * SECOND), 0);
}

struct hog {
	bool hangs;		/* as a device that gives no turns does */
	atomic_bool has_begun, has_ended;
	int64_t ran_ns;
	unsigned status, n_hangs;
};

/* The longest work that there is, with the longest limit, on a queue of its own. */
static int hog_the_engine(void *arg)
{
	struct hog *hog = arg;
	struct drm_tessera_ctx_create ctx = ctx_create();
	struct drm_tessera_bo_create b = bo_create(PAGE, DRM_TESSERA_BO_HBM, ctx.id);
	struct drm_tessera_queue_create q = { .ctx = ctx.id, .cls = HW_CLASS_DMA,
					      .flags = DRM_TESSERA_QUEUE_USER, .priority = 1,
					      .n_entries = 64, .eventfd = -1, .limit_ns = ~0ull };
	struct ring r = { .event = -1 };
	struct drm_tessera_error e;
	struct hw_cqe c = { 0 };

	CHECK(!ioctl(fd, DRM_IOCTL_TESSERA_QUEUE_CREATE, &q));
	r.q = q;
	r.sq = (void *)map_at(q.sq_offset, PAGE);
	r.cq = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, (off_t)q.cq_offset);
	CHECK(r.cq != MAP_FAILED);
	r.bell = (void *)map_at(q.doorbell_offset, PAGE);
	if (hog->hangs)
		inject(HW_INJECT_HANG, HW_CLASS_DMA);
	ring_put(&r, endless(&b));
	usleep(100000);
	hog->has_begun = true;
	hog->ran_ns = now_ns();
	if (ring_get(&r, &c, 20 * SECOND))
		return 10;
	hog->ran_ns = now_ns() - hog->ran_ns;
	hog->has_ended = true;
	hog->status = c.status;
	query_all(DRM_TESSERA_QUERY_ERROR, ctx.id, &e, sizeof(e));
	hog->n_hangs = (unsigned)e.n_hangs;
	return 0;
}

static pid_t start_hog(struct hog *hog, bool is_root)
{
	pid_t child = is_root ? fork() : tenant(1, hog_the_engine, hog);
	int status;

	CHECK(child >= 0);
	if (!child) {
		if (setjmp(test_end))
			_exit(1);
		_exit(hog_the_engine(hog));
	}
	while (!hog->has_begun && !waitpid(child, &status, WNOHANG))
		usleep(1000);
	return child;
}

/* Another's work beside the hog's, which ends with `status`: it is done, and is not
 * taken for what hangs. How long it took. */
static int64_t run_beside_hog(bool is_root, bool hangs, unsigned status)
{
	struct hog *hog = shared(sizeof(*hog));
	struct drm_tessera_ctx_create ctx = ctx_create();
	struct drm_tessera_bo_create mem = bo_create(PAGE, DRM_TESSERA_BO_SYSTEM, ctx.id);
	uint32_t q = queue_create(ctx.id, HW_CLASS_DMA, 0, -1).id;
	volatile uint64_t *p = map_at(mem.mmap_offset, PAGE);
	struct hw_sqe d = fill(mem.va, 8, 77);
	struct drm_tessera_error e;
	int64_t began;
	pid_t child;
	int error;

	/* Longer than the tenant may run, shorter than root likes to. */
	write_file("/sys/module/tessera/parameters/hang_ms", is_root ? "1000" : "5000");
	hog->hangs = hangs;
	child = start_hog(hog, is_root);
	began = now_ns();
	error = run(q, &d, 1);
	began = now_ns() - began;
	query_all(DRM_TESSERA_QUERY_ERROR, ctx.id, &e, sizeof(e));
	write_file("/sys/module/tessera/parameters/hang_ms", "120000");
	printf("# the victim waited %lld ms\n", (long long)began / 1000000);
	SAME(error, 0);
	SAME(p[0], 77);
	SAME(e.n_hangs + e.n_faults, 0);
	SAME(end_of(child, 20 * SECOND), 0);
	SAME(hog->status, status);
	SAME(hog->n_hangs, hangs);
	CHECK(!ctx_destroy(ctx.id));
	return began;
}

/* The device gives turns, so nobody waits for its end. */
void the_hog_is_stopped_and_nobody_waits_for_it(void)
{
	CHECK(run_beside_hog(false, false, HW_ST_WATCHDOG) < LIMIT_NS / 2);
}

/* Where it gives none, root's work, which has no longest time, must not keep others' fences. */
void the_one_that_keeps_an_engine_is_reset(void)
{
	CHECK(run_beside_hog(true, true, HW_ST_RESET) < LIMIT_NS + 2 * SECOND);
}

/* And what keeps nobody waiting is not reset, however long it runs. */
void long_work_beside_others_goes_on(void)
{
	struct hog *hog = shared(sizeof(*hog));
	struct drm_tessera_ctx_create ctx = ctx_create();
	struct drm_tessera_bo_create mem = bo_create(PAGE, DRM_TESSERA_BO_SYSTEM, ctx.id);
	uint32_t q = queue_create(ctx.id, HW_CLASS_DMA, 0, -1).id;
	volatile uint64_t *p = map_at(mem.mmap_offset, PAGE);
	int64_t until;
	unsigned n = 0;
	pid_t child;

	write_file("/sys/module/tessera/parameters/hang_ms", "1000");
	child = start_hog(hog, true);
	for (until = now_ns() + 3 * SECOND; now_ns() < until; n++) {
		struct hw_sqe d = fill(mem.va, 8, n + 1);

		SAME(run(q, &d, 1), 0);
		SAME(p[0], n + 1);
	}
	write_file("/sys/module/tessera/parameters/hang_ms", "120000");
	printf("# %u submissions beside it\n", n);
	CHECK(!hog->has_ended);
	CHECK(n > 10);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	CHECK(!ctx_destroy(ctx.id));
}

/* ---- waiting ---- */

static void *destroy_context(void *arg)
{
	ctx_destroy(*(uint32_t *)arg);
	return NULL;
}

void fdinfo_answers_while_the_device_does_not(void)
{
	struct drm_tessera_ctx_create ctx = ctx_create();
	uint64_t resets = function_resets();
	int64_t began;
	char path[64];
	pthread_t t;

	inject(HW_INJECT_NO_ANSWER, 1);
	CHECK(!pthread_create(&t, NULL, destroy_context, &ctx.id));
	usleep(500000);
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	began = now_ns();
	CHECK(*read_from(path, "drm-engine-dma:"));
	began = now_ns() - began;
	pthread_join(t, NULL);
	await_reset(resets + 1);
	printf("# fdinfo took %lld ms\n", (long long)began / 1000000);
	CHECK(began < SECOND);
}

/* A page whose first touch blocks for ever. */
static void *page_that_blocks(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	int u = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	void *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(u >= 0 && p != MAP_FAILED);
	CHECK(!ioctl(u, UFFDIO_API, &api));
	reg.range.start = P(p);
	reg.range.len = PAGE;
	CHECK(!ioctl(u, UFFDIO_REGISTER, &reg));
	return p;
}

/* In calls that read, write or pin the caller's memory; the argument says which. */
static int block_in_a_call(void *arg)
{
	struct drm_tessera_ctx_create ctx = ctx_create();
	uint32_t q = queue_create(ctx.id, HW_CLASS_DMA, 0, -1).id;
	struct drm_tessera_submit s = { .queue = q, .n_descs = 1, .desc_bytes = 64 };
	struct drm_tessera_query u = { .type = DRM_TESSERA_QUERY_IDENTIFY,
				       .size = sizeof(struct hw_identify) };
	struct drm_tessera_program_create c = { .ctx = ctx.id, .n_bindings = 1, .binding_bytes = 16,
						.code_bytes = 8 };
	struct drm_tessera_bo_userptr b = { .size = PAGE };
	struct drm_tessera_map m = { .ctx = ctx.id, .n_ops = 1,
				     .op_bytes = sizeof(struct drm_tessera_map_op) };
	void *p = page_that_blocks();

	m.ops = s.descs = u.data = c.bindings = b.address = P(p);
	switch (*(unsigned *)arg) {
	case 0:
		ioctl(fd, DRM_IOCTL_TESSERA_SUBMIT, &s);
		break;
	case 1:
		ioctl(fd, DRM_IOCTL_TESSERA_QUERY, &u);
		break;
	case 2:
		ioctl(fd, DRM_IOCTL_TESSERA_PROGRAM_CREATE, &c);
		break;
	case 3:
		ioctl(fd, DRM_IOCTL_TESSERA_BO_USERPTR, &b);
		break;
	default:
		ioctl(fd, DRM_IOCTL_TESSERA_MAP, &m);
	}
	return 0;
}

/* 0, or the process that is still at it. */
static pid_t unbind_in_time(unsigned device)
{
	pid_t child = fork();
	int64_t end = now_ns() + 10 * SECOND;
	int status;

	CHECK(child >= 0);
	if (!child) {
		if (setjmp(test_end))
			_exit(1);
		bind_driver(device, false);
		_exit(0);
	}
	while (!waitpid(child, &status, WNOHANG)) {
		if (now_ns() > end)
			return child;
		usleep(10000);
	}
	return 0;
}

void unbinding_waits_for_no_user(void)
{
	write_file("/proc/sys/vm/unprivileged_userfaultfd", "1");
	for (unsigned i = 0; i < 5; i++) {
		pid_t user = tenant(1, block_in_a_call, &i), late;
		int status;

		usleep(300000);
		SAME(waitpid(user, &status, WNOHANG), 0);
		/* The other device, which nobody uses. */
		late = unbind_in_time(1);
		kill(user, SIGKILL);
		waitpid(user, NULL, 0);
		if (late)
			waitpid(late, NULL, 0);
		bind_driver(1, true);
		await_node(OTHER_NODE);
		if (late)
			fail(__LINE__, "unbinding waited for call %u of a user's", i);
	}
}

/* However long it takes to submit much, what that waits for takes longer. */
static uint32_t queue_without_limit(uint32_t ctx)
{
	struct drm_tessera_queue_create q = { .ctx = ctx, .cls = HW_CLASS_DMA, .n_entries = 64,
					      .priority = 1, .eventfd = -1, .limit_ns = ~0ull };

	CHECK(!ioctl(fd, DRM_IOCTL_TESSERA_QUEUE_CREATE, &q));
	return q.id;
}

void what_waits_is_bounded(void)
{
	struct drm_tessera_ctx_create ctx = ctx_create();
	struct drm_tessera_bo_create b = bo_create(PAGE, DRM_TESSERA_BO_HBM, ctx.id);
	uint32_t busy = queue_without_limit(ctx.id);
	uint32_t q = queue_create(ctx.id, HW_CLASS_COMPUTE, 0, -1).id;
	struct drm_tessera_sync gate = { .handle = syncobj_create() };
	struct hw_sqe d[64], stuck = endless(&b), nop = { .op = HW_NOP };
	unsigned n = 0;
	int r = 0;

	for (unsigned i = 0; i < 64; i++)
		d[i] = nop;
	CHECK(!submit_full(busy, &stuck, 1, NULL, 0, &gate, 1, NULL));
	while (n < 20000 && !(r = submit_full(q, d, 64, &gate, 1, NULL, 0, NULL)))
		n++;
	printf("# %u submissions of 64 descriptors may wait\n", n);
	if (!r)
		fail(__LINE__, "%u submissions wait, and more may", n);
	SAME(errno, EAGAIN);
	/* Few are many enough, for a file with all its queues too. */
	CHECK(n >= 64 && n <= 4096);
	CHECK(!queue_call(DRM_IOCTL_TESSERA_QUEUE_RESET, busy));
	for (int64_t end = now_ns() + 20 * SECOND; now_ns() < end; usleep(1000)) {
		r = submit_full(q, &nop, 1, NULL, 0, NULL, 0, NULL);
		if (!r)
			break;
		SAME(errno, EAGAIN);
	}
	SAME(r, 0);
	SAME(run(q, &nop, 1), 0);
	CHECK(!ctx_destroy(ctx.id));
}

struct waiter {
	uint32_t queue, gate;
	atomic_uint n;
	atomic_int error;
};

static void *submit_and_wait(void *arg)
{
	struct waiter *w = arg;
	struct drm_tessera_sync gate = { .handle = w->gate };
	struct hw_sqe nop = { .op = HW_NOP };
	struct drm_tessera_submit s = { .queue = w->queue, .n_descs = 1, .desc_bytes = 64,
					.descs = P(&nop), .in_syncs = P(&gate), .n_in = 1,
					.sync_bytes = sizeof(gate),
					.flags = DRM_TESSERA_SUBMIT_WAIT };

	for (; w->n < 3000 && !w->error; w->n++)
		if (ioctl(fd, DRM_IOCTL_TESSERA_SUBMIT, &s))
			w->error = errno;
	return NULL;
}

void who_asks_to_wait_for_room_does(void)
{
	struct drm_tessera_ctx_create ctx = ctx_create();
	struct drm_tessera_bo_create b = bo_create(PAGE, DRM_TESSERA_BO_HBM, ctx.id);
	uint32_t busy = queue_without_limit(ctx.id);
	struct drm_tessera_sync gate = { .handle = syncobj_create() };
	struct hw_sqe stuck = endless(&b);
	struct waiter w = { .gate = gate.handle };
	const unsigned most = 1024 + 64;	/* 1024 more than the ring has entries */
	pthread_t t;

	w.queue = queue_create(ctx.id, HW_CLASS_COMPUTE, 0, -1).id;
	CHECK(!submit_full(busy, &stuck, 1, NULL, 0, &gate, 1, NULL));
	CHECK(!pthread_create(&t, NULL, submit_and_wait, &w));
	for (int64_t end = now_ns() + 60 * SECOND; w.n < most && now_ns() < end; usleep(10000))
		;
	usleep(300000);
	SAME(w.n, most);
	CHECK(!queue_call(DRM_IOCTL_TESSERA_QUEUE_RESET, busy));
	pthread_join(t, NULL);
	SAME(w.error, 0);
	SAME(w.n, 3000);
	CHECK(!ctx_destroy(ctx.id));
}

/* Who writes the memory decides when a fence comes: the kernel gives no such fence. */
void no_fence_waits_for_memory(void)
{
	struct drm_tessera_ctx_create ctx = ctx_create();
	struct drm_tessera_bo_create b = bo_create(PAGE, DRM_TESSERA_BO_HBM, ctx.id);
	uint32_t q = queue_create(ctx.id, HW_CLASS_DMA, 0, -1).id;
	struct hw_sqe d = { .op = HW_SEMAPHORE, .flags = HW_WAIT, .wait_va = b.va };

	REFUSES(submit_full(q, &d, 1, NULL, 0, NULL, 0, NULL), EINVAL);
	d = (struct hw_sqe){ .op = HW_SEMAPHORE, .flags = HW_SIGNAL, .signal_va = b.va,
			     .signal_value = 5 };
	SAME(run(q, &d, 1), 0);
	SAME(*map_at(b.mmap_offset, PAGE), 5);
	CHECK(!ctx_destroy(ctx.id));
}

struct loads {
	atomic_bool stop;
	uint64_t bytes;
	atomic_uint n;
	atomic_int error;
};

/* Loads the longest program that may be, again and again. */
static int load_long_programs(void *arg)
{
	struct loads *l = arg;
	struct drm_tessera_ctx_create ctx = ctx_create();
	struct drm_tessera_bo_create b = bo_create(l->bytes, DRM_TESSERA_BO_HBM, ctx.id);
	struct isa_scalar *code = (void *)map_at(b.mmap_offset, l->bytes);
	uint64_t n = l->bytes / sizeof(*code);

	for (uint64_t i = 0; i < n; i++)
		code[i] = (struct isa_scalar){ .insn = { .op = ISA_HALT, .bytes = sizeof(*code) } };
	while (!l->stop) {
		struct drm_tessera_program_create p = { .ctx = ctx.id, .code_va = b.va,
							.code_bytes = n * sizeof(*code) };
		struct drm_tessera_program_destroy d = { .ctx = ctx.id };

		if (ioctl(fd, DRM_IOCTL_TESSERA_PROGRAM_CREATE, &p)) {
			l->error = errno;
			return 0;
		}
		l->n++;
		d.id = p.id;
		CHECK(!ioctl(fd, DRM_IOCTL_TESSERA_PROGRAM_DESTROY, &d));
	}
	return 0;
}

static int64_t slowest_context(uint64_t bytes, struct loads *l)
{
	int64_t slowest = 0;
	pid_t loaders[3];

	memset(l, 0, sizeof(*l));
	l->bytes = bytes;
	for (unsigned i = 0; i < 3; i++)
		loaders[i] = tenant(1 + i, load_long_programs, l);
	for (int64_t end = now_ns() + 60 * SECOND; l->n < 3 && !l->error && now_ns() < end;)
		usleep(10000);
	for (unsigned i = 0; i < 3 && !l->error; i++) {
		int64_t began = now_ns();

		CHECK(!ctx_destroy(ctx_create().id));
		if (now_ns() - began > slowest)
			slowest = now_ns() - began;
	}
	l->stop = true;
	for (unsigned i = 0; i < 3; i++)
		SAME(end_of(loaders[i], 60 * SECOND), 0);
	return slowest;
}

/* Requests are answered one at a time: none may take long. */
void long_programs_keep_nobody_long(void)
{
	struct loads *l = shared(sizeof(*l));
	int64_t slowest = slowest_context(48 * MiB, l);

	if (!l->error)
		fail(__LINE__, "48 MiB of code were taken; a context took %lld ms",
		     (long long)slowest / 1000000);
	SAME(l->error, E2BIG);
	slowest = slowest_context(16 * MiB, l);
	SAME(l->error, 0);
	printf("# beside three that load 16 MiB of code a context took %lld ms\n",
	       (long long)slowest / 1000000);
	CHECK(slowest < 5 * SECOND);
}
