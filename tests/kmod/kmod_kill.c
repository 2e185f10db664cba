/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that open the node, use it in every way and are killed anywhere in that,
 * one after another, while another process works on and checks what it gets. After
 * that nothing may be left of them: see kmod_census.h. What the kernel had more and more of may
 * have had other reasons, so as many are killed once more, and again: what leaks grows each time.
 *
 *     kmod_kill [CYCLES [SEED [LEAK]]]
 *
 * LEAK keeps one thing for each cycle, and the test passes only if that is noticed:
 * object (any one of the kernel's), page, fence, file, context, buffer, dmabuf; "each"
 * takes one after the other, those that are counted exactly for fewer cycles.
 */
#include "tests/kmod/kmod_census.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNTS 20		/* in a round */
#define ROUNDS 3		/* in all of which grows what leaks */
#define HBM_BYTES (1ull << 20)
#define SYSTEM_BYTES (256ull << 10)
#define WORK_BYTES (64ull << 10)

/* Between the processes. */
struct shared {
	unsigned step, target;	/* of the victim: phases begun; which of them to tell of */
	unsigned rounds;	/* of the bystander */
};

static volatile struct shared *shared;
static int at_target;		/* eventfd */

static unsigned pick(unsigned *state, unsigned n)
{
	*state = *state * 1664525u + 1013904223u;
	return (*state >> 8) % n;
}

/* ---- the victim ---- */

struct victim {
	unsigned rng;
	bool is_user;			/* which kind of queue */
	struct drm_tessera_ctx_create ctx, second;
	struct drm_tessera_bo_create hbm, sys;
	uint64_t *hbm_p, *sys_p;
	uint32_t queue, blocked;
	struct ring ring;
	uint32_t never;			/* a syncobj whose fence does not come */
};

static void open_node(struct victim *v)
{
	(void)v;
	close(fd);			/* our parent's */
	fd = open(NODE, O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0);
}

static void make_contexts(struct victim *v)
{
	v->ctx = ctx_create();
	v->second = ctx_create();
}

static void make_buffers(struct victim *v)
{
	v->hbm = bo_create(HBM_BYTES, DRM_TESSERA_BO_HBM, v->ctx.id);
	v->sys = bo_create(SYSTEM_BYTES, DRM_TESSERA_BO_SYSTEM |
			   (pick(&v->rng, 2) ? DRM_TESSERA_BO_CONTIGUOUS : 0), v->ctx.id);
}

static void touch_buffers(struct victim *v)
{
	v->hbm_p = map_at(v->hbm.mmap_offset, HBM_BYTES);
	v->sys_p = map_at(v->sys.mmap_offset, SYSTEM_BYTES);
	for (unsigned i = 0; i < SYSTEM_BYTES / PAGE; i++)
		v->hbm_p[i * 512] = v->sys_p[i * 512] = i;
}

static void pin_memory(struct victim *v)
{
	struct drm_tessera_bo_userptr u = { .size = 16 * PAGE };
	uint64_t va = 0;
	void *p = mmap(NULL, u.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);

	CHECK(p != MAP_FAILED);
	u.address = P(p);
	CHECK(!ioctl(fd, DRM_IOCTL_TESSERA_BO_USERPTR, &u));
	CHECK(!map(v->ctx.id, u.handle, &va, DRM_TESSERA_MAP_WRITE));
}

/* Through a dma-buf to a second file of ours. */
static void share_buffer(struct victim *v)
{
	struct drm_prime_handle out = { .handle = v->hbm.handle, .fd = -1,
					.flags = DRM_CLOEXEC | DRM_RDWR };
	struct drm_prime_handle in = { 0 };
	int other = open(NODE, O_RDWR | O_CLOEXEC);

	CHECK(other >= 0);
	CHECK(!ioctl(fd, DRM_IOCTL_PRIME_HANDLE_TO_FD, &out));
	in.fd = out.fd;
	CHECK(!ioctl(other, DRM_IOCTL_PRIME_FD_TO_HANDLE, &in));
}

static void make_queues(struct victim *v)
{
	if (v->is_user)
		ring_open(&v->ring, v->ctx.id, HW_CLASS_DMA);
	else
		v->queue = queue_create(v->ctx.id, HW_CLASS_DMA, 0, -1).id;
	v->blocked = queue_create(v->ctx.id, HW_CLASS_COMPUTE, 0, -1).id;
}

/* What it runs from now on is recorded until its end. */
static void start_trace(struct victim *v)
{
	struct drm_tessera_bo_create b = bo_create(PAGE, DRM_TESSERA_BO_SYSTEM, v->ctx.id);

	CHECK(!trace_start(v->ctx.id, b.va, 64, 1, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)));
}

static void put_work(struct victim *v, struct hw_sqe d)
{
	if (v->is_user)
		ring_put(&v->ring, d);
	else
		submit(v->queue, &d, 1);
}

static void copy_data(struct victim *v)
{
	for (unsigned i = 0; i < 8; i++)
		put_work(v, i & 1 ? copy(v->sys.va, v->hbm.va, SYSTEM_BYTES) :
			    copy(v->hbm.va, v->sys.va, SYSTEM_BYTES));
}

/* One never ends on the device, one waits in the kernel for that. */
static void block_work(struct victim *v)
{
	struct drm_tessera_bo_create loop = bo_create(PAGE, DRM_TESSERA_BO_HBM, v->ctx.id);
	struct hw_sqe stuck = endless(&loop);
	struct drm_tessera_sync sync = { .handle = v->never = syncobj_create() };
	uint32_t behind = queue_create(v->ctx.id, HW_CLASS_DMA, 0, -1).id;
	struct hw_sqe d = fill(v->hbm.va, PAGE, 1);

	CHECK(!submit_full(v->blocked, &stuck, 1, NULL, 0, &sync, 1, NULL));
	CHECK(!submit_full(behind, &d, 1, &sync, 1, NULL, 0, NULL));
}

static void start_long_work(struct victim *v)
{
	for (unsigned i = 0; i < 24; i++)
		put_work(v, fill(v->hbm.va, HBM_BYTES, i));
	if (v->is_user && pick(&v->rng, 2)) {
		struct hw_sqe stuck = { .op = HW_SEMAPHORE, .flags = HW_WAIT | HW_IRQ,
					.wait_va = v->hbm.va + 8, .wait_value = ~0ull };

		ring_put(&v->ring, stuck);
	}
}

/* Makes and ends, until it is killed. */
__attribute__((noreturn)) static void churn(const struct victim *v, unsigned rng)
{
	for (;;) {
		struct drm_tessera_bo_create b = {
			.size = PAGE << pick(&rng, 6), .ctx = v->ctx.id,
			.flags = pick(&rng, 2) ? DRM_TESSERA_BO_HBM : DRM_TESSERA_BO_SYSTEM,
		};
		struct drm_tessera_queue_create q = { .ctx = v->second.id, .n_entries = 4,
						      .cls = HW_CLASS_DMA, .eventfd = -1 };
		struct hw_sqe d = { .op = HW_NOP };

		CHECK(!ioctl(fd, DRM_IOCTL_TESSERA_BO_CREATE, &b));
		CHECK(!ioctl(fd, DRM_IOCTL_TESSERA_QUEUE_CREATE, &q));
		CHECK(!submit_full(q.id, &d, 1, NULL, 0, NULL, 0, NULL));
		CHECK(!queue_call(DRM_IOCTL_TESSERA_QUEUE_DESTROY, q.id));
		CHECK(!unmap(v->ctx.id, b.va));
		CHECK(!bo_close(b.handle));
	}
}

static void *churn_beside(void *arg)
{
	const struct victim *v = arg;

	churn(v, v->rng ^ 0x5555);
}

static void add_thread(struct victim *v)
{
	pthread_t t;

	if (!pick(&v->rng, 3))
		CHECK(!pthread_create(&t, NULL, churn_beside, v));
}

/* Dies waiting in the kernel or at work. */
static void stay(struct victim *v)
{
	if (pick(&v->rng, 2))
		churn(v, v->rng);
	wait_point(v->never, 0, 1000 * SECOND);
	fail(__LINE__, "what nobody signals was signalled");
}

static const struct phase {
	const char *name;
	void (*run)(struct victim *v);
} phases[] = {
	{ "open", open_node }, { "contexts", make_contexts }, { "buffers", make_buffers },
	{ "touch", touch_buffers }, { "pin", pin_memory }, { "share", share_buffer },
	{ "queues", make_queues }, { "trace", start_trace }, { "copy", copy_data },
	{ "block", block_work }, { "long", start_long_work }, { "thread", add_thread },
	{ "stay", stay },
};

#define PHASES (sizeof(phases) / sizeof(*phases))

/* cycle: the kind of queue in turn. */
__attribute__((noreturn)) static void be_victim(unsigned cycle, unsigned seed)
{
	/* static: what longjmp must not spoil */
	static struct victim v;
	static unsigned i;
	uint64_t one = 1;

	test_name = "victim";
	v.rng = seed;
	v.is_user = cycle & 1;
	if (setjmp(test_end))
		_exit(1);
	for (i = 0; i < PHASES; i++) {
		test_name = phases[i].name;
		shared->step = i;
		if (i == shared->target)
			CHECK(write(at_target, &one, sizeof(one)) == sizeof(one));
		phases[i].run(&v);
	}
	_exit(1);
}

/* ---- the bystander ---- */

struct desk {
	struct drm_tessera_ctx_create ctx;
	struct drm_tessera_bo_create in, hbm, out;
	uint64_t *in_p, *out_p;
	uint32_t queue;
	struct ring ring;
};

static void copy_by_kernel(struct desk *d)
{
	struct hw_sqe two[2] = { copy(d->hbm.va, d->in.va, WORK_BYTES),
				 copy(d->out.va, d->hbm.va, WORK_BYTES) };
	uint64_t point = submit(d->queue, two, 2);
	struct drm_tessera_error e;

	CHECK(!wait_point(d->ctx.syncobj, point, 60 * SECOND));
	query_all(DRM_TESSERA_QUERY_ERROR, d->ctx.id, &e, sizeof(e));
	SAME(e.state + e.last_status + e.n_faults + e.n_hangs, 0);
}

static void copy_by_ring(struct desk *d)
{
	struct hw_sqe last = copy(d->out.va, d->hbm.va, WORK_BYTES);
	struct hw_cqe c;

	last.flags = HW_IRQ;
	ring_put(&d->ring, copy(d->hbm.va, d->in.va, WORK_BYTES));
	ring_put(&d->ring, last);
	for (unsigned i = 0; i < 2; i++) {
		CHECK(!ring_get(&d->ring, &c, 60 * SECOND));
		SAME(c.status, 0);
	}
}

/* Works until its parent is gone. */
__attribute__((noreturn)) static void stand_by(void)
{
	static struct desk d;

	test_name = "bystander";
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (setjmp(test_end))
		_exit(1);
	fd = open(NODE, O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0);
	d.ctx = ctx_create();
	d.in = bo_create(WORK_BYTES, DRM_TESSERA_BO_SYSTEM, d.ctx.id);
	d.hbm = bo_create(WORK_BYTES, DRM_TESSERA_BO_HBM, d.ctx.id);
	d.out = bo_create(WORK_BYTES, DRM_TESSERA_BO_SYSTEM, d.ctx.id);
	d.in_p = map_at(d.in.mmap_offset, WORK_BYTES);
	d.out_p = map_at(d.out.mmap_offset, WORK_BYTES);
	d.queue = queue_create(d.ctx.id, HW_CLASS_DMA, 0, -1).id;
	ring_open(&d.ring, d.ctx.id, HW_CLASS_DMA);
	for (unsigned round = 1;; round++) {
		for (uint64_t i = 0; i < WORK_BYTES / 8; i++)
			d.in_p[i] = (round + i) * 0x9e3779b97f4a7c15ull;
		if (round & 1)
			copy_by_ring(&d);
		else
			copy_by_kernel(&d);
		for (uint64_t i = 0; i < WORK_BYTES / 8; i++)
			SAME(d.out_p[i], (round + i) * 0x9e3779b97f4a7c15ull);
		shared->rounds = round;
	}
}

/* ---- cycles ---- */

struct totals {
	unsigned killed[PHASES];
	unsigned cycles, kept;	/* kept: of what is leaked on purpose */
	char found[4096];	/* names of what was not steady, a space behind each */
};

/* It has done more since the last time. */
static void check_bystander(pid_t bystander)
{
	static unsigned seen;
	int64_t deadline = now_ns() + 60 * SECOND;

	while (shared->rounds == seen && now_ns() < deadline) {
		SAME(waitpid(bystander, NULL, WNOHANG), 0);
		usleep(10000);
	}
	CHECK(shared->rounds != seen);
	seen = shared->rounds;
	SAME(waitpid(bystander, NULL, WNOHANG), 0);
}

/* Counts while the bystander stands still: what it has in flight comes and goes. */
static void take_census(struct census *c, unsigned cycle, pid_t bystander, struct totals *t)
{
	int status;

	check_bystander(bystander);
	CHECK(!kill(bystander, SIGSTOP));
	CHECK(waitpid(bystander, &status, WUNTRACED) == bystander);
	CHECK(WIFSTOPPED(status));
	census_take(c, cycle, t->found, sizeof(t->found));
	CHECK(!kill(bystander, SIGCONT));
}

/* Gives the phase that the victim was killed in. */
static unsigned kill_one(unsigned cycle, unsigned *rng)
{
	static const unsigned delays_us[] = { 1, 100, 2000 };
	unsigned seed = pick(rng, 1 << 24);
	unsigned delay = pick(rng, delays_us[pick(rng, 3)]);
	struct pollfd p = { .fd = at_target, .events = POLLIN };
	uint64_t n;
	pid_t pid;
	int status;

	shared->step = 0;
	shared->target = pick(rng, PHASES);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		be_victim(cycle, seed);
	while (poll(&p, 1, 100) == 0 && !waitpid(pid, &status, WNOHANG))
		;
	CHECK(read(at_target, &n, sizeof(n)) == sizeof(n));
	if (delay)
		usleep(delay);
	kill(pid, SIGKILL);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFSIGNALED(status));
	SAME(WTERMSIG(status), SIGKILL);
	return shared->step;
}

static void leak_object(unsigned i)
{
	static int file = -1;
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 2 * i,
			      .l_len = 1 };

	if (file < 0)
		file = open("/tmp/locks", O_RDWR | O_CREAT, 0600);
	CHECK(!fcntl(file, F_SETLK, &lock));
}

static void leak_page(unsigned i)
{
	char *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	*p = (char)(i | 1);
}

/* A fence that is signalled, in a syncobj. */
static void leak_fence(unsigned i)
{
	static struct drm_tessera_ctx_create ctx;
	struct drm_tessera_sync out = { .handle = syncobj_create() };
	struct hw_sqe nop = { .op = HW_NOP };
	static uint32_t queue;

	if (!i) {
		ctx = ctx_create();
		queue = queue_create(ctx.id, HW_CLASS_DMA, 0, -1).id;
	}
	CHECK(!submit_full(queue, &nop, 1, NULL, 0, &out, 1, NULL));
	CHECK(!wait_point(out.handle, 0, 60 * SECOND));
}

static void leak_file(unsigned i)
{
	(void)i;
	CHECK(open(NODE, O_RDWR | O_CLOEXEC) >= 0);
}

static void leak_context(unsigned i)
{
	if (i < 20)
		ctx_create();
}

static void leak_buffer(unsigned i)
{
	(void)i;
	bo_create(PAGE, DRM_TESSERA_BO_HBM, 0);
}

static void leak_dmabuf(unsigned i)
{
	static struct drm_tessera_bo_create b;
	struct drm_prime_handle out = { .fd = -1, .flags = DRM_CLOEXEC | DRM_RDWR };

	(void)i;
	b = bo_create(PAGE, DRM_TESSERA_BO_SYSTEM, 0);
	out.handle = b.handle;
	CHECK(!ioctl(fd, DRM_IOCTL_PRIME_HANDLE_TO_FD, &out));
	CHECK(!bo_close(b.handle));
}

/* What it keeps, and who is to notice. */
static const struct leak {
	const char *name, *notices;
	bool is_exact;
	void (*keep)(unsigned i);
} leaks[] = {
	{ "object", "file_lock_cache", false, leak_object },
	{ "fence", "slab-objects", false, leak_fence },
	{ "page", "pages", false, leak_page },
	{ "file", "module-uses", true, leak_file },
	{ "context", "contexts-free", true, leak_context },
	{ "buffer", "hbm-used", true, leak_buffer },
	{ "dmabuf", "dma-bufs", true, leak_dmabuf },
};

#define LEAKS (sizeof(leaks) / sizeof(*leaks))

static const struct leak *leak_named(const char *name)
{
	for (unsigned i = 0; i < LEAKS; i++)
		if (!strcmp(leaks[i].name, name))
			return &leaks[i];
	fail(__LINE__, "no leak is called %s", name);
}

/* Names of what grew go to `grown`. */
static void run_round(unsigned cycles, unsigned *rng, const struct leak *leak, pid_t bystander,
		      struct totals *t, char *grown, size_t n)
{
	static struct census census;
	unsigned every = cycles < COUNTS ? 1 : cycles / COUNTS;

	if (leak)
		leak->keep(t->kept++);
	take_census(&census, 0, bystander, t);
	for (unsigned i = 1; i <= cycles; i++) {
		t->killed[kill_one(i, rng)]++;
		t->cycles++;
		if (leak)
			leak->keep(t->kept++);
		if (i % every == 0)
			take_census(&census, i, bystander, t);
	}
	census_judge(&census, cycles / 5, grown, n);
	free(census.series);
	memset(&census, 0, sizeof(census));
}

static bool is_among(const char *names, const char *name, size_t length)
{
	for (const char *p = names; (p = strstr(p, name)); p++)
		if ((p == names || p[-1] == ' ') && p[length] == ' ')
			return true;
	return false;
}

/* Takes out of `names` what is not among `others`. */
static void keep_common(char *names, const char *others)
{
	char *to = names, name[64];

	for (const char *p = names, *end; (end = strchr(p, ' ')); p = end + 1) {
		size_t length = (size_t)(end - p);

		CHECK(length < sizeof(name));
		memcpy(name, p, length);
		name[length] = 0;
		if (!is_among(others, name, length))
			continue;
		memcpy(to, name, length);
		to[length] = ' ';
		to += length + 1;
	}
	*to = 0;
}

static void run_cycles(unsigned cycles, unsigned *rng, const struct leak *leak,
		       struct totals *t)
{
	static char grown[sizeof(t->found)], always[sizeof(t->found)];
	pid_t bystander = fork();

	CHECK(bystander >= 0);
	if (!bystander)
		stand_by();
	fd = open(NODE, O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0);
	for (unsigned round = 0; round < ROUNDS && !*t->found; round++) {
		*grown = 0;
		run_round(cycles, rng, leak, bystander, t, grown, sizeof(grown));
		printf("# round %u: what grew: %s\n", round, *grown ? grown : "nothing");
		if (round)
			keep_common(always, grown);
		else
			memcpy(always, grown, sizeof(always));
		if (!*always)
			break;
	}
	snprintf(t->found + strlen(t->found), sizeof(t->found) - strlen(t->found), "%s", always);
	SAME(waitpid(bystander, NULL, WNOHANG), 0);
	kill(bystander, SIGKILL);
	CHECK(waitpid(bystander, NULL, 0) == bystander);
}

static void print_totals(const struct totals *t)
{
	printf("# %u processes killed:", t->cycles);
	for (unsigned i = 0; i < PHASES; i++)
		printf(" %s %u", phases[i].name, t->killed[i]);
	printf("; %u rounds beside them\n", shared->rounds);
}

static unsigned test(unsigned cycles, unsigned seed, const struct leak *leak)
{
	static struct totals t;
	int64_t began = now_ns();

	test_name = "kill";
	printf("# %u cycles, seed %u, leak: %s\n", cycles, seed, leak ? leak->name : "none");
	shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	at_target = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	CHECK(shared != MAP_FAILED && at_target >= 0);
	run_cycles(cycles, &seed, leak, &t);
	print_totals(&t);
	for (unsigned i = 0; i < PHASES && cycles >= 500; i++)
		CHECK(t.killed[i]);
	printf("# not steady: %s\n", *t.found ? t.found : "nothing");
	n_failed = leak ? !is_among(t.found, leak->notices, strlen(leak->notices)) :
		   *t.found != 0;
	printf("%s %s%s (%lld ms)\n", n_failed ? "not ok" : "ok",
	       leak ? "noticing_a_leaked_" : "killed_processes_leave_nothing",
	       leak ? leak->name : "", (long long)(now_ns() - began) / 1000000);
	return n_failed;
}

/* Each in a process of its own, with which it ends. */
static void test_leaks(unsigned cycles, unsigned seed)
{
	int status;
	pid_t pid;

	for (unsigned i = 0; i < LEAKS; i++) {
		pid = fork();
		CHECK(pid >= 0);
		if (!pid)
			_exit(test(leaks[i].is_exact ? cycles / 20 : cycles, seed,
				   &leaks[i]) != 0);
		CHECK(waitpid(pid, &status, 0) == pid);
		n_failed += status != 0;
	}
}

int main(int argc, char **argv)
{
	unsigned cycles = argc > 1 ? (unsigned)atoi(argv[1]) : 1000;
	unsigned seed = argc > 2 ? (unsigned)atoi(argv[2]) : 1;

	setvbuf(stdout, NULL, _IOLBF, 0);
	test_name = "arguments";
	if (setjmp(test_end)) {
		printf("FAILED\n");
		return 1;
	}
	/* The census counts all that is free by taking it. */
	write_file("/sys/module/tessera/parameters/file_contexts", "0");
	write_file("/sys/module/tessera/parameters/file_queues", "0");
	if (argc > 3 && !strcmp(argv[3], "each"))
		test_leaks(cycles, seed);
	else
		test(cycles, seed, argc > 3 ? leak_named(argv[3]) : NULL);
	printf("%s\n", n_failed ? "FAILED" : "PASSED");
	return n_failed != 0;
}
