/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One client is reset by root: its contexts are lost as by a function reset, and nobody else
 * notices. Beside it another process copies and compares every word.
 */
#include "tests/kmod/kmod.h"

#include <fcntl.h>
#include <poll.h>
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

#define ATTRIBUTE "/sys/class/accel/accel0/device/reset_client"
#define WORK_BYTES (64 * PAGE)
#define RESETS 30

/* The number of a file of ours, as fdinfo has it. */
static unsigned client_of(int file)
{
	char path[64];
	unsigned id = 0;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", file);
	CHECK(sscanf(read_from(path, "drm-client-id:"), "drm-client-id: %u", &id) == 1);
	return id;
}

/* 0, or an errno. */
static int reset_client(const char *text)
{
	int f = open(ATTRIBUTE, O_WRONLY), sysno = 0;

	if (f < 0 || write(f, text, strlen(text)) < 0)
		sysno = errno;
	if (f >= 0)
		close(f);
	return sysno;
}

static int reset_file(int file)
{
	char text[16];

	snprintf(text, sizeof(text), "%u\n", client_of(file));
	return reset_client(text);
}

/* ---- the neighbour ---- */

static volatile unsigned *rounds;	/* of all processes */

/* By a queue of the kernel's and by one of its own, in turns, until it is killed. */
__attribute__((noreturn)) static void be_neighbour(void)
{
	static struct drm_tessera_bo_create in, hbm, out;
	static struct drm_tessera_ctx_create ctx;
	static struct drm_tessera_error e;
	static struct ring ring;
	static unsigned i, queue;
	uint64_t *in_p, *out_p;
	struct hw_cqe c;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (setjmp(test_end))
		_exit(1);
	fd = open(NODE, O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0);
	ctx = ctx_create();
	in = bo_create(WORK_BYTES, DRM_TESSERA_BO_SYSTEM, ctx.id);
	hbm = bo_create(WORK_BYTES, DRM_TESSERA_BO_HBM, ctx.id);
	out = bo_create(WORK_BYTES, DRM_TESSERA_BO_SYSTEM, ctx.id);
	in_p = map_at(in.mmap_offset, WORK_BYTES);
	out_p = map_at(out.mmap_offset, WORK_BYTES);
	queue = queue_create(ctx.id, HW_CLASS_DMA, 0, -1).id;
	ring_open(&ring, ctx.id, HW_CLASS_DMA);
	for (i = 1;; i++) {
		struct hw_sqe d[2] = { copy(hbm.va, in.va, WORK_BYTES),
				       copy(out.va, hbm.va, WORK_BYTES) };

		for (uint64_t k = 0; k < WORK_BYTES / 8; k++)
			in_p[k] = (i + k) * 0x9e3779b97f4a7c15ull;
		if (i & 1) {
			SAME(run(queue, d, 2), 0);
		} else {
			d[1].flags = HW_IRQ;
			ring_put(&ring, d[0]);
			ring_put(&ring, d[1]);
			for (unsigned k = 0; k < 2; k++) {
				CHECK(!ring_get(&ring, &c, 60 * SECOND));
				SAME(c.status, 0);
			}
		}
		for (uint64_t k = 0; k < WORK_BYTES / 8; k++)
			SAME(out_p[k], (i + k) * 0x9e3779b97f4a7c15ull);
		query_all(DRM_TESSERA_QUERY_ERROR, ctx.id, &e, sizeof(e));
		SAME(e.state + e.n_faults + e.n_hangs, 0);
		*rounds = i;
	}
}

/* It has done more than before. */
static void await_rounds(pid_t neighbour, unsigned more)
{
	unsigned until = *rounds + more;
	int64_t deadline = now_ns() + 60 * SECOND;

	while (*rounds < until) {
		CHECK(now_ns() < deadline);
		SAME(waitpid(neighbour, NULL, WNOHANG), 0);
		usleep(1000);
	}
}

/* ---- the client ---- */

struct client {
	struct drm_tessera_ctx_create ctx, idle;
	struct drm_tessera_bo_create memory, ring_memory;
	struct drm_tessera_sync runs, waits;
	uint32_t queue, behind;
	struct ring ring;
	volatile uint64_t *p;
	volatile uint32_t *wake;	/* of ctx */
};

/* Something of each kind; one submission never ends, and another waits for it. */
static struct client begin(void)
{
	struct client c = { .idle = ctx_create() };
	struct hw_sqe stuck, nop = { .op = HW_NOP };

	c.ctx = ctx_create_wake(&c.wake);
	*c.wake = 1;
	c.memory = bo_create(PAGE, DRM_TESSERA_BO_HBM, c.ctx.id);
	c.ring_memory = bo_create(PAGE, DRM_TESSERA_BO_SYSTEM, c.ctx.id);
	c.p = map_at(c.memory.mmap_offset, PAGE);
	c.p[0] = 31337;
	c.queue = queue_create(c.ctx.id, HW_CLASS_COMPUTE, 0, -1).id;
	c.behind = queue_create(c.ctx.id, HW_CLASS_DMA, 0, -1).id;
	ring_open(&c.ring, c.ctx.id, HW_CLASS_DMA);
	CHECK(!trace_start(c.ctx.id, c.ring_memory.va, 64, 1, c.ring.event));
	c.runs.handle = syncobj_create();
	c.waits.handle = syncobj_create();
	stuck = endless(&c.memory);
	CHECK(!submit_full(c.queue, &stuck, 1, NULL, 0, &c.runs, 1, NULL));
	CHECK(!submit_full(c.behind, &nop, 1, &c.runs, 1, &c.waits, 1, NULL));
	return c;
}

static void expect_lost(uint32_t ctx)
{
	struct drm_tessera_error e;

	query_all(DRM_TESSERA_QUERY_ERROR, ctx, &e, sizeof(e));
	SAME(e.state, DRM_TESSERA_CTX_LOST);
}

/* Every call of an old context says that it is one. */
static void expect_refusals(const struct client *c)
{
	struct drm_tessera_queue_create q = { .ctx = c->ctx.id, .n_entries = 4, .eventfd = -1,
					      .cls = HW_CLASS_DMA };
	struct drm_tessera_program_create p = { .ctx = c->ctx.id, .code_va = c->memory.va,
						.code_bytes = 64 };
	struct hw_sqe nop = { .op = HW_NOP };
	uint64_t va = 0;
	uint32_t n = 0;

	expect_lost(c->ctx.id);
	expect_lost(c->idle.id);
	REFUSES(submit_full(c->queue, &nop, 1, NULL, 0, NULL, 0, NULL), ECANCELED);
	REFUSES(queue_call(DRM_IOCTL_TESSERA_QUEUE_RESET, c->queue), ECANCELED);
	REFUSES(queue_call(DRM_IOCTL_TESSERA_QUEUE_RESET, c->ring.q.id), ECANCELED);
	REFUSES(ioctl(fd, DRM_IOCTL_TESSERA_QUEUE_CREATE, &q), ECANCELED);
	REFUSES(ioctl(fd, DRM_IOCTL_TESSERA_PROGRAM_CREATE, &p), ECANCELED);
	REFUSES(map(c->idle.id, c->memory.handle, &va, DRM_TESSERA_MAP_WRITE), ECANCELED);
	REFUSES(unmap(c->ctx.id, c->memory.va), ECANCELED);
	/* The mapping is still there, and yet not what the caller has to be told of. */
	va = c->memory.va;
	REFUSES(map(c->ctx.id, c->memory.handle, &va, DRM_TESSERA_MAP_WRITE), ECANCELED);
	REFUSES(query(DRM_TESSERA_QUERY_FAULTS, c->ctx.id, NULL, &n), ECANCELED);
	REFUSES(trace_stop(c->ctx.id, NULL), ECANCELED);
	REFUSES(trace_start(c->ctx.id, c->ring_memory.va, 64, 1, -1), ECANCELED);
}

static void end(struct client *c)
{
	munmap((void *)(uintptr_t)c->p, PAGE);
	munmap((void *)(uintptr_t)c->wake, PAGE);
	CHECK(!bo_close(c->ctx.wake_handle));
	ring_close(&c->ring);
	CHECK(!queue_call(DRM_IOCTL_TESSERA_QUEUE_DESTROY, c->queue));
	CHECK(!ctx_destroy(c->ctx.id) && !ctx_destroy(c->idle.id));
	CHECK(!bo_close(c->memory.handle) && !bo_close(c->ring_memory.handle));
	CHECK(!bo_close(c->ring.q.sq_handle) && !bo_close(c->ring.q.cq_handle) &&
	      !bo_close(c->ring.q.doorbell_handle));
}

static void reset_once(void)
{
	struct client c = begin();
	struct drm_tessera_ctx_create again;
	struct pollfd p = { .fd = c.ring.event, .events = POLLIN };
	struct hw_sqe d = fill(c.memory.va, 64, 5);
	uint64_t n;

	while (read(c.ring.event, &n, sizeof(n)) == sizeof(n))
		;
	SAME(reset_file(fd), 0);
	/* All of it is over when that returns. */
	SAME(fence_errno(c.runs.handle), ECANCELED);
	SAME(fence_errno(c.waits.handle), ECANCELED);
	CHECK(poll(&p, 1, 0) == 1);
	*c.ring.bell = 77;	/* of a queue that is no more: nothing happens */
	SAME(*c.ring.bell, 77);
	*c.wake = 78;		/* nor in that context */
	SAME(*c.wake, 78);
	expect_refusals(&c);
	SAME(reset_file(fd), 0);
	/* Memory stays, and a new context has it and works. */
	SAME(c.p[0], 31337);
	again = ctx_create();
	CHECK(!map(again.id, c.memory.handle, &d.u.copy.dst, DRM_TESSERA_MAP_WRITE));
	SAME(run(queue_create(again.id, HW_CLASS_DMA, 0, -1).id, &d, 1), 0);
	SAME(c.p[0], 5);
	CHECK(!ctx_destroy(again.id));
	end(&c);
}

void a_client_is_reset_alone(void)
{
	struct drm_tessera_device before, after;
	struct drm_tessera_memory empty, left;
	int status, own = fd;
	pid_t neighbour;

	rounds = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(rounds != MAP_FAILED);
	query_all(DRM_TESSERA_QUERY_DEVICE, 0, &before, sizeof(before));
	neighbour = fork();
	CHECK(neighbour >= 0);
	if (!neighbour)
		be_neighbour();
	await_rounds(neighbour, 2);
	query_all(DRM_TESSERA_QUERY_MEMORY, 0, &empty, sizeof(empty));
	for (unsigned i = 0; i < RESETS; i++) {
		/* Alone, or with another file of the same process, which goes on. */
		fd = i & 1 ? own : open(NODE, O_RDWR | O_CLOEXEC);
		CHECK(fd >= 0);
		reset_once();
		if (fd != own)
			close(fd);
		fd = own;
		if (i % 10 == 9)
			await_rounds(neighbour, 2);
	}
	query_all(DRM_TESSERA_QUERY_MEMORY, 0, &left, sizeof(left));
	SAME(left.hbm_used, empty.hbm_used);
	SAME(left.system_used, empty.system_used);
	kill(neighbour, SIGKILL);
	CHECK(waitpid(neighbour, &status, 0) == neighbour);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	query_all(DRM_TESSERA_QUERY_DEVICE, 0, &after, sizeof(after));
	SAME(after.function_resets, before.function_resets);
	printf("# %u rounds of the neighbour's\n", *rounds);
	munmap((void *)(uintptr_t)rounds, PAGE);
}

/* What a file may have is what it has: contexts that were lost count until they are destroyed. */
void a_reset_client_has_its_limits(void)
{
	struct drm_tessera_ctx_create c = { 0 };
	struct drm_tessera_device d;

	query_all(DRM_TESSERA_QUERY_DEVICE, 0, &d, sizeof(d));
	for (unsigned k = 0; k < 2; k++) {
		uint32_t first = 0;

		for (unsigned i = 0; i < d.contexts_of_file; i++) {
			c = ctx_create();
			first = first ? first : c.id;
			queue_create(c.id, HW_CLASS_DMA, 0, -1);
		}
		SAME(reset_file(fd), 0);
		REFUSES(ioctl(fd, DRM_IOCTL_TESSERA_CTX_CREATE, &c), EMFILE);
		for (uint32_t id = first; id < first + d.contexts_of_file; id++)
			CHECK(!ctx_destroy(id));
	}
}

void only_root_resets_clients(void)
{
	int other = open(NODE, O_RDWR | O_CLOEXEC), status = -1;
	unsigned id = client_of(other);
	char text[16];
	pid_t child;

	snprintf(text, sizeof(text), "%u", id);
	SAME(reset_client(text), 0);
	close(other);
	SAME(reset_client(text), ENOENT);
	SAME(reset_client("0"), ENOENT);
	SAME(reset_client("18446744073709551615"), ENOENT);
	SAME(reset_client("18446744073709551616"), ERANGE);
	SAME(reset_client("-1"), EINVAL);
	SAME(reset_client("all"), EINVAL);
	SAME(reset_client(" "), EINVAL);
	child = fork();
	CHECK(child >= 0);
	if (!child)
		_exit(setuid(65534) || open(ATTRIBUTE, O_WRONLY) >= 0 || errno != EACCES);
	CHECK(waitpid(child, &status, 0) == child);
	SAME(status, 0);
}
