/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HBM of one device that another reaches by itself: every word comes across, both ways, and what
 * becomes of it when either device is reset or loses its driver, or a user dies.
 *
 * fd is the importer's node, as the wrappers want it; the exporter's is named.
 */
#include "tests/kmod/kmod_tenants.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MiB (1ull << 20)

/* HBM of device `owner`, and a context of the other one that has it mapped. */
struct pair {
	int owner_fd, dma_buf;
	struct drm_tessera_bo_create lent, own;	/* own: the importer's, in system memory */
	volatile uint64_t *words, *seen;	/* as the CPU sees the two */
	uint32_t handle, queue;
	struct drm_tessera_ctx_create ctx;
	uint64_t va;				/* where the context sees what is lent */
};

static uint64_t word(uint64_t i, uint64_t seed)
{
	return (i + 1) * 0x9e3779b97f4a7c15 ^ seed << 40;
}

static int open_node(unsigned device)
{
	int node = open(device ? OTHER_NODE : NODE, O_RDWR | O_CLOEXEC);

	CHECK(node >= 0);
	return node;
}

static int export_from(int node, uint32_t handle)
{
	struct drm_prime_handle prime = { .handle = handle, .fd = -1,
					  .flags = DRM_CLOEXEC | DRM_RDWR };

	CHECK(!ioctl(node, DRM_IOCTL_PRIME_HANDLE_TO_FD, &prime));
	return prime.fd;
}

/* Into fd's device. */
static int import(int dma_buf, uint32_t *handle)
{
	struct drm_prime_handle prime = { .fd = dma_buf };
	int r = ioctl(fd, DRM_IOCTL_PRIME_FD_TO_HANDLE, &prime);

	*handle = prime.handle;
	return r;
}

/* Leaves fd at the importer's node. */
static void pair_open(struct pair *p, unsigned owner, uint64_t bytes)
{
	memset(p, 0, sizeof(*p));
	fd = p->owner_fd = open_node(owner);
	p->lent = bo_create(bytes, DRM_TESSERA_BO_HBM, 0);
	p->words = map_at(p->lent.mmap_offset, bytes);
	p->dma_buf = export_from(fd, p->lent.handle);
	fd = open_node(!owner);
	CHECK(!import(p->dma_buf, &p->handle));
	p->ctx = ctx_create();
	p->own = bo_create(bytes, DRM_TESSERA_BO_SYSTEM, p->ctx.id);
	p->seen = map_at(p->own.mmap_offset, bytes);
	p->queue = queue_create(p->ctx.id, HW_CLASS_DMA, 0, -1).id;
	CHECK(!map(p->ctx.id, p->handle, &p->va, DRM_TESSERA_MAP_WRITE));
}

static void pair_close(struct pair *p)
{
	munmap((void *)(uintptr_t)p->words, p->lent.size);
	munmap((void *)(uintptr_t)p->seen, p->own.size);
	close(p->dma_buf);
	close(p->owner_fd);
	close(fd);
}

static uint64_t count_wrong(volatile uint64_t *p, uint64_t bytes, uint64_t seed)
{
	uint64_t wrong = 0;

	for (uint64_t i = 0; i < bytes / 8; i++)
		wrong += p[i] != word(i, seed);
	return wrong;
}

static void put_words(volatile uint64_t *p, uint64_t bytes, uint64_t seed)
{
	for (uint64_t i = 0; i < bytes / 8; i++)
		p[i] = word(i, seed);
}

/* All of what is lent, both ways. */
static void check_pair(struct pair *p, uint64_t seed)
{
	uint64_t bytes = p->lent.size;
	struct hw_sqe d = copy(p->own.va, p->va, bytes);

	put_words(p->words, bytes, seed);
	memset((void *)(uintptr_t)p->seen, 0, bytes);
	SAME(run(p->queue, &d, 1), 0);
	SAME(count_wrong(p->seen, bytes, seed), 0);
	put_words(p->seen, bytes, ~seed);
	d = copy(p->va, p->own.va, bytes);
	SAME(run(p->queue, &d, 1), 0);
	SAME(count_wrong(p->words, bytes, ~seed), 0);
}

/* In the log of the kernel. */
static bool is_logged(const char *text)
{
	static char log[1 << 20];
	long n = syscall(SYS_syslog, 3, log, sizeof(log) - 1);

	CHECK(n > 0);
	log[n] = 0;
	return strstr(log, text);
}

void hbm_without_a_way_is_refused(void)
{
	struct drm_tessera_bo_create b = bo_create(PAGE, DRM_TESSERA_BO_HBM, 0);
	int dma_buf = export_from(fd, b.handle), own = fd;
	uint32_t handle, again;

	fd = open_node(1);
	REFUSES(import(dma_buf, &handle), EOPNOTSUPP);
	CHECK(is_logged("cannot reach HBM: "));
	/* Within the device there is nothing to cross. */
	close(fd);
	fd = open_node(0);
	CHECK(!import(dma_buf, &again));
	close(fd);
	fd = own;
	close(dma_buf);
}

void peer_memory_is_read_and_written(void)
{
	uint64_t sizes[] = { PAGE, 3 * PAGE, MiB, 2 * MiB + PAGE };
	struct pair p;

	for (unsigned i = 0; i < 8; i++) {
		pair_open(&p, i % 2, sizes[i / 2]);
		check_pair(&p, i);
		pair_close(&p);
	}
}

/* A mapping of some pages within, where the va is the caller's choice. */
void peer_memory_is_mapped_in_parts(void)
{
	struct drm_tessera_map_op op = { .offset = 5 * PAGE, .bytes = 2 * PAGE,
					 .va = 1ull << 40 };
	struct drm_tessera_bo_info info = { 0 };
	struct pair p;
	struct hw_sqe d;

	pair_open(&p, 0, 16 * PAGE);
	put_words(p.words, 16 * PAGE, 7);
	info.handle = op.handle = p.handle;
	CHECK(!ioctl(fd, DRM_IOCTL_TESSERA_BO_INFO, &info));
	SAME(info.flags, DRM_TESSERA_BO_IMPORTED);
	SAME(info.size, 16 * PAGE);
	CHECK(!map_op(p.ctx.id, &op));
	d = copy(p.own.va, op.va, 2 * PAGE);
	SAME(run(p.queue, &d, 1), 0);
	for (uint64_t i = 0; i < 2 * PAGE / 8; i++)
		SAME(p.seen[i], word(i + 5 * PAGE / 8, 7));
	/* Not written where WRITE is missing, nor past the end. */
	d = copy(op.va, p.own.va, PAGE);
	SAME(run(p.queue, &d, 1), EINVAL);
	d = copy(p.own.va, op.va + PAGE, 2 * PAGE);
	SAME(run(p.queue, &d, 1), EINVAL);
	SAME(count_wrong(p.words, 16 * PAGE, 7), 0);
	op.va = 0;
	op.bytes = 12 * PAGE;
	REFUSES(map_op(p.ctx.id, &op), EINVAL);
	REFUSES(trace_start(p.ctx.id, p.va, 64, 1, -1), EINVAL);
	pair_close(&p);
}

/* ---- taken back under traffic ---- */

/* What a tenant that uses a peer's memory does when it is taken back, and what it counts. */
struct traffic {
	unsigned owner;
	bool is_endless;	/* one copy without end */
	bool is_back;		/* the memory comes back */
	atomic_bool stop;
	atomic_uint n;		/* submissions that were right */
	atomic_uint n_failed, n_recovered;
	atomic_uint n_late;	/* that began after the first that failed, and before it was gone */
};

enum { WRONG_ERROR = 10, WRONG_WORDS, STILL_THERE, CONTEXT_LOST, NOT_GONE, NOT_BACK };

/* Copies rows of the peer's memory for ever. */
static struct hw_sqe endless_in(struct pair *p)
{
	struct hw_copy_2d rows = { .src = p->va, .dst = p->va + 64, .row_bytes = 8,
				   .rows = 1ull << 50, .planes = 1 };

	memcpy((void *)(uintptr_t)p->seen, &rows, sizeof(rows));
	return (struct hw_sqe){ .op = HW_COPY_2D, .u.copy.src = p->own.va };
}

/* MAP of what is a peer's, which may be away for a reset. */
static bool comes_back(struct pair *p)
{
	int64_t end = now_ns() + 20 * SECOND;

	while (map(p->ctx.id, p->handle, &p->va, DRM_TESSERA_MAP_WRITE)) {
		if (errno != EBUSY || now_ns() > end)
			return false;
		usleep(1000);
	}
	return true;
}

/* Once work on it has faulted it is gone. What begins before, between a reset of the queues and
 * the UNMAP that this is for, is stopped as well, or ends before it is noticed. */
static bool goes(struct pair *p, struct traffic *t)
{
	struct hw_sqe away = copy(p->own.va, p->va, PAGE);
	int64_t end = now_ns() + 10 * SECOND;
	int error;

	while ((error = run(p->queue, &away, 1)) != EINVAL) {
		if ((error && error != ECANCELED) || now_ns() > end)
			return false;
		t->n_late++;
	}
	return run(p->queue, &away, 1) == EINVAL && run(p->queue, &away, 1) == EINVAL;
}

/* Until the memory is taken back; then nothing of it is there, and all else works. */
static int use_until_it_goes(void *arg)
{
	struct traffic *t = arg;
	struct hw_sqe away, within;
	uint64_t va = 0;
	struct pair p;
	int error = 0;

	close(fd);
	pair_open(&p, t->owner, MiB);
	put_words(p.words, MiB, 1);
	away = copy(p.own.va, p.va, MiB);
	within = fill(p.own.va, PAGE, 5);
	if (t->is_endless) {
		away = endless_in(&p);
		t->n = 4;
	}
	while (!error) {
		error = run(p.queue, &away, 1);
		if (!error && count_wrong(p.seen, MiB, 1))
			return WRONG_WORDS;
		t->n += !error;
	}
	/* It faulted, or was stopped. */
	if (error != EINVAL && error != ECANCELED)
		return WRONG_ERROR;
	if (!goes(&p, t))
		return STILL_THERE;
	if (run(p.queue, &within, 1) || p.seen[0] != 5)
		return CONTEXT_LOST;
	if (!t->is_back)
		return map(p.ctx.id, p.handle, &va, 0) && errno == ENODEV &&
		       !unmap(p.ctx.id, p.va) ? 0 : NOT_GONE;
	/* The hole is a mapping until it is unmapped. */
	if (!map(p.ctx.id, p.handle, &p.va, 0) || unmap(p.ctx.id, p.va) || !comes_back(&p))
		return NOT_BACK;
	if (!t->is_endless && count_wrong(p.words, MiB, 1))
		return WRONG_WORDS;
	check_pair(&p, 2);
	return 0;
}

static pid_t start_traffic(struct traffic *t)
{
	pid_t child = tenant(1, use_until_it_goes, t);
	int64_t end = now_ns() + 20 * SECOND;

	while (t->n < 4 && now_ns() < end)
		usleep(1000);
	CHECK(t->n >= 4);
	if (t->is_endless)
		usleep(100000);	/* it runs, or else what follows has less to do */
	return child;
}

/* It must have ended well, by itself. */
static void end_traffic(struct traffic *t, pid_t child, int64_t ns)
{
	SAME(end_of(child, ns), 0);
	if (t->n_late)
		printf("# %u more began before it was gone\n", t->n_late);
}

static unsigned n_rounds(void)
{
	const char *said = getenv("PEER_ROUNDS");

	return said ? (unsigned)strtoul(said, NULL, 10) : 5;
}

static uint64_t hbm_used(unsigned device)
{
	struct drm_tessera_memory m;
	int own = fd;

	fd = open_node(device);
	query_all(DRM_TESSERA_QUERY_MEMORY, 0, &m, sizeof(m));
	close(fd);
	fd = own;
	return m.hbm_used;
}

void peer_memory_goes_with_its_driver(void)
{
	struct traffic *t = shared(sizeof(*t));

	close(fd);
	for (unsigned i = 0; i < n_rounds(); i++) {
		int64_t began;
		pid_t child;

		*t = (struct traffic){ .owner = i / 2 % 2, .is_endless = i % 2 };
		child = start_traffic(t);
		began = now_ns();
		bind_driver(t->owner, false);
		/* Nothing waits for work that does not end: it may run for a minute. */
		CHECK(now_ns() - began < 15 * SECOND);
		end_traffic(t, child, 20 * SECOND);
		bind_driver(t->owner, true);
		await_node(t->owner ? OTHER_NODE : NODE);
	}
	SAME(hbm_used(0), 0);
	SAME(hbm_used(1), 0);
}

static void reset_device(unsigned device)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/reset", pci[device]);
	write_file(path, "1");
}

void peer_memory_comes_back_after_a_reset(void)
{
	struct traffic *t = shared(sizeof(*t));

	for (unsigned i = 0; i < n_rounds(); i++) {
		pid_t child;

		*t = (struct traffic){ .owner = i / 2 % 2, .is_endless = i % 2, .is_back = true };
		child = start_traffic(t);
		reset_device(t->owner);
		end_traffic(t, child, 30 * SECOND);
	}
	SAME(hbm_used(0), 0);
	SAME(hbm_used(1), 0);
}

/* A device that dies takes its memory back as one that is reset by hand. */
void peer_memory_comes_back_after_a_death(void)
{
	struct traffic *t = shared(sizeof(*t));
	uint64_t resets = function_resets();
	pid_t child;

	*t = (struct traffic){ .owner = 0, .is_back = true };
	child = start_traffic(t);
	inject(HW_INJECT_FATAL, 0);
	end_traffic(t, child, 30 * SECOND);
	await_reset(resets + 1);
}

void peers_that_are_killed_leave_nothing(void)
{
	struct traffic *t = shared(sizeof(*t));

	for (unsigned i = 0; i < 4 * n_rounds(); i++) {
		pid_t child;

		*t = (struct traffic){ .owner = i % 2, .is_endless = i % 4 == 3 };
		child = start_traffic(t);
		usleep(i * 700 % 10000);
		CHECK(!kill(child, SIGKILL));
		SAME(end_of(child, 10 * SECOND), 128 + SIGKILL);
		/* The last reference may be a fence's. */
		for (unsigned k = 0; k < 100 && (hbm_used(0) || hbm_used(1)); k++)
			usleep(10000);
		SAME(hbm_used(0), 0);
		SAME(hbm_used(1), 0);
	}
}

/* ---- both at once ---- */

/* A new context with what the old one had. False: there is none yet. */
static bool begin_anew(struct pair *p)
{
	struct drm_tessera_ctx_create c = { 0 };
	struct drm_tessera_queue_create q = { .cls = HW_CLASS_DMA, .n_entries = 64, .priority = 1,
					      .eventfd = -1 };
	uint64_t own = 0, va = 0;

	ctx_destroy(p->ctx.id);
	if (ioctl(fd, DRM_IOCTL_TESSERA_CTX_CREATE, &c))
		return false;
	p->ctx = c;
	q.ctx = c.id;
	if (ioctl(fd, DRM_IOCTL_TESSERA_QUEUE_CREATE, &q))
		return false;
	p->queue = q.id;
	if (map(c.id, p->own.handle, &own, DRM_TESSERA_MAP_WRITE) ||
	    map(c.id, p->handle, &va, DRM_TESSERA_MAP_WRITE))
		return false;
	p->own.va = own;
	p->va = va;
	return true;
}

static int use_whatever_comes(void *arg)
{
	struct traffic *t = arg;
	struct pair p;

	close(fd);
	pair_open(&p, t->owner, 16 * PAGE);
	put_words(p.words, 16 * PAGE, 3);
	while (!t->stop) {
		struct drm_tessera_sync out = { .handle = syncobj_create() };
		struct drm_syncobj_destroy gone = { .handle = out.handle };
		struct hw_sqe d = copy(p.own.va, p.va, 16 * PAGE);
		int error = ECANCELED;

		memset((void *)(uintptr_t)p.seen, 0, 16 * PAGE);
		if (!submit_full(p.queue, &d, 1, NULL, 0, &out, 1, NULL)) {
			CHECK(!wait_point(out.handle, 0, 60 * SECOND));
			error = fence_errno(out.handle);
		}
		CHECK(!ioctl(fd, DRM_IOCTL_SYNCOBJ_DESTROY, &gone));
		if (!error && count_wrong(p.seen, 16 * PAGE, 3))
			return WRONG_WORDS;
		t->n += !error;
		t->n_failed += !!error;
		if (error && begin_anew(&p))
			t->n_recovered++;
	}
	return 0;
}

static int reset_again_and_again(void *arg)
{
	unsigned *device = arg;

	for (unsigned i = 0; i < 4 * n_rounds(); i++) {
		reset_device(*device);
		usleep(i * 3700 % 50000);
	}
	return 0;
}

static pid_t start_resets(unsigned *device)
{
	pid_t child = fork();

	CHECK(child >= 0);
	if (child)
		return child;
	if (setjmp(test_end))
		_exit(1);
	_exit(reset_again_and_again(device));
}

/* Each has the other's memory mapped when both are reset: neither waits for the other. */
void peers_that_are_reset_together_come_back(void)
{
	struct traffic *t[2] = { shared(sizeof(**t)), shared(sizeof(**t)) };
	pid_t users[2], resets[2];
	unsigned device[2] = { 0, 1 };

	for (unsigned i = 0; i < 2; i++) {
		t[i]->owner = i;
		users[i] = tenant(i, use_whatever_comes, t[i]);
		for (int64_t end = now_ns() + 20 * SECOND; t[i]->n < 4 && now_ns() < end; )
			usleep(1000);
	}
	for (unsigned i = 0; i < 2; i++)
		resets[i] = start_resets(&device[i]);
	for (unsigned i = 0; i < 2; i++)
		SAME(end_of(resets[i], 120 * SECOND), 0);
	for (unsigned i = 0; i < 2; i++) {
		unsigned n = t[i]->n;
		int64_t end = now_ns() + 20 * SECOND;

		while (t[i]->n < n + 4 && now_ns() < end)
			usleep(1000);
		t[i]->stop = true;
		SAME(end_of(users[i], 20 * SECOND), 0);
		CHECK(t[i]->n >= n + 4);
		printf("# %u submissions were right, %u failed, %u times begun anew\n", t[i]->n,
		       t[i]->n_failed, t[i]->n_recovered);
		CHECK(t[i]->n_recovered);
	}
}
