/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces through the driver: what is recorded, who may have it recorded where, and what ends it.
 */
#include "tests/kmod/kmod.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define N 64u		/* records: a page of them */
#define NO_EVENT (-1)

struct traced {
	struct drm_tessera_ctx_create ctx;
	struct drm_tessera_bo_create ring, memory;
	volatile struct drm_tessera_trace_record *records;
	uint32_t queue;
};

static struct traced make(void)
{
	struct traced t = { .ctx = ctx_create() };

	t.ring = bo_create(N * sizeof(*t.records), DRM_TESSERA_BO_SYSTEM, t.ctx.id);
	t.memory = bo_create(PAGE, DRM_TESSERA_BO_HBM, t.ctx.id);
	t.records = (void *)map_at(t.ring.mmap_offset, t.ring.size);
	t.queue = queue_create(t.ctx.id, HW_CLASS_DMA, 0, -1).id;
	return t;
}

static void end(struct traced *t)
{
	munmap((void *)(uintptr_t)t->records, t->ring.size);
	CHECK(!ctx_destroy(t->ctx.id));
	CHECK(!bo_close(t->ring.handle) && !bo_close(t->memory.handle));
}

static void work(const struct traced *t, unsigned n)
{
	struct hw_sqe d = fill(t->memory.va, 128, 1);

	while (n--)
		SAME(run(t->queue, &d, 1), 0);
}

static uint64_t device_ns(void)
{
	struct drm_tessera_clock c;

	query_all(DRM_TESSERA_QUERY_CLOCK, 0, &c, sizeof(c));
	return c.device_ns;
}

/* How often it was counted; 0: not in this time. */
static uint64_t events(int event, int ms)
{
	struct pollfd p = { .fd = event, .events = POLLIN };
	uint64_t n = 0;

	if (poll(&p, 1, ms) == 1)
		CHECK(read(event, &n, sizeof(n)) == sizeof(n));
	return n;
}

static void is_fill(const volatile struct drm_tessera_trace_record *r, uint64_t number,
		    uint64_t from, uint64_t to)
{
	SAME(r->number, number);
	SAME(r->kind, DRM_TESSERA_TRACE_COPY);
	SAME(r->cls, DRM_TESSERA_CLASS_DMA);
	SAME(r->op, DRM_TESSERA_OP_FILL);
	SAME(r->bytes, 128);
	SAME(r->status, 0);
	CHECK(from <= r->begin_ns && r->begin_ns <= r->end_ns && r->end_ns <= to);
}

void what_a_context_runs_is_recorded(void)
{
	struct traced t = make(), other = make();
	uint64_t from, to, last = 0;
	int event = eventfd(0, EFD_NONBLOCK);

	work(&t, 1);	/* before the trace: not told */
	CHECK(!trace_start(t.ctx.id, t.ring.va, N, 1, event));
	from = device_ns();
	work(&t, 5);
	work(&other, 5);
	to = device_ns();
	for (unsigned i = 0; i < 5; i++)
		is_fill(&t.records[i], i + 1, from, to);
	for (unsigned i = 5; i < N; i++)
		SAME(t.records[i].number, 0);
	/* The ring goes round, and each half of it is told. */
	work(&t, N / 2 - 5);
	while (events(event, 0))
		;
	CHECK(events(event, 10000) >= 1);
	work(&t, N);
	CHECK(!trace_stop(t.ctx.id, &last));
	SAME(last, N + N / 2);
	for (unsigned i = 0; i < N; i++)
		is_fill(&t.records[i], i < N / 2 ? N + i + 1 : i + 1, from, device_ns());
	work(&t, 5);
	SAME(t.records[N / 2].number, N / 2 + 1);
	/* Another begins where it is told to; what nobody wakes needs no eventfd. */
	memset((void *)(uintptr_t)t.records, 0, t.ring.size);
	CHECK(!trace_start(t.ctx.id, t.ring.va, N, 1000, NO_EVENT));
	work(&t, 2);
	CHECK(!trace_stop(t.ctx.id, &last));
	SAME(last, 1001);
	SAME(t.records[999 % N].number, 1000);
	SAME(t.records[1000 % N].number, 1001);
	/* Nor is the first one's told any more, once the tick had its time. */
	while (events(event, 0))
		;
	SAME(events(event, 2500), 0);
	close(event);
	end(&t);
	end(&other);
}

/* As an interrupt may be lost: nothing runs here. */
void who_reads_a_trace_looks_once_a_second(void)
{
	struct traced t = make();
	int event = eventfd(0, EFD_NONBLOCK);

	CHECK(!trace_start(t.ctx.id, t.ring.va, N, 1, event));
	for (unsigned i = 0; i < 3; i++)
		CHECK(events(event, 10000) >= 1);
	CHECK(!trace_stop(t.ctx.id, NULL));
	close(event);
	end(&t);
}

static int start_args(struct drm_tessera_trace_start a)
{
	return ioctl(fd, DRM_IOCTL_TESSERA_TRACE_START, &a);
}

void bad_traces_are_refused(void)
{
	struct traced t = make();
	struct drm_tessera_trace_start good = { .ctx = t.ctx.id, .va = t.ring.va, .n_records = N,
						.first = 1, .eventfd = NO_EVENT }, a;
	struct drm_tessera_trace_stop stop = { .ctx = t.ctx.id, .zero = 1 };
	struct drm_tessera_bo_create two = bo_create(2 * PAGE, DRM_TESSERA_BO_SYSTEM, 0);
	struct drm_tessera_map_op op = { .handle = two.handle, .bytes = PAGE,
					 .flags = DRM_TESSERA_MAP_WRITE, .va = 1ull << 50 };
	static const uint32_t sizes[] = { 0, 1, 2, 32, 63, 65, 96, 1u << 21, 1u << 31, ~0u };
	static const uint64_t firsts[] = { 0, 1ull << 63, ~0ull };
	static const uint64_t places[] = { 8, PAGE, 1ull << 62, 1ull << 63, ~63ull };
	uint64_t read_only = 1ull << 51;
	struct drm_tessera_ctx_create foreign;
	int old = fd;

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		a = good;
		a.n_records = sizes[i];
		REFUSES(start_args(a), EINVAL);
	}
	for (unsigned i = 0; i < sizeof(firsts) / sizeof(*firsts); i++) {
		a = good;
		a.first = firsts[i];
		REFUSES(start_args(a), EINVAL);
	}
	for (unsigned i = 0; i < sizeof(places) / sizeof(*places); i++) {
		a = good;
		a.va = places[i];
		REFUSES(start_args(a), a.va % 64 ? EINVAL : ENOENT);
	}
	a = good;
	a.zero = 1;
	REFUSES(start_args(a), EINVAL);
	a = good;
	a.eventfd = -2;
	REFUSES(start_args(a), EINVAL);
	a.eventfd = 1000;
	REFUSES(start_args(a), EBADF);
	a.eventfd = fd;
	REFUSES(start_args(a), EINVAL);
	a = good;
	a.ctx = 4242;
	REFUSES(start_args(a), ENOENT);
	/* Past its mapping's end, also where another follows. */
	a = good;
	a.va += 64;
	REFUSES(start_args(a), ENOENT);
	CHECK(!map_op(t.ctx.id, &op));
	op.va += PAGE;
	op.offset = PAGE;
	CHECK(!map_op(t.ctx.id, &op));
	a.va = op.va - PAGE;
	a.n_records = 2 * N;
	REFUSES(start_args(a), ENOENT);
	a.n_records = N;
	CHECK(!start_args(a));
	CHECK(!trace_stop(t.ctx.id, NULL));
	/* Of HBM; what the device may not write. */
	a.va = t.memory.va;
	REFUSES(start_args(a), EINVAL);
	CHECK(!map(t.ctx.id, two.handle, &read_only, 0));
	a.va = read_only;
	REFUSES(start_args(a), EACCES);
	/* Another file's context. */
	fd = open(NODE, O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0);
	REFUSES(start_args(good), ENOENT);
	foreign = ctx_create();
	(void)foreign;
	REFUSES(start_args(good), ENOENT);	/* ours has that memory, not its */
	close(fd);
	fd = old;
	/* Not begun by any of these, nor begun twice. */
	REFUSES(trace_stop(t.ctx.id, NULL), ENOENT);
	REFUSES(ioctl(fd, DRM_IOCTL_TESSERA_TRACE_STOP, &stop), EINVAL);
	CHECK(!start_args(good));
	REFUSES(start_args(good), EBUSY);
	REFUSES(trace_stop(4242, NULL), ENOENT);
	work(&t, 1);
	SAME(t.records[0].number, 1);
	CHECK(!trace_stop(t.ctx.id, NULL));
	REFUSES(trace_stop(t.ctx.id, NULL), ENOENT);
	CHECK(!bo_close(two.handle));
	end(&t);
}

/* Whatever the owner does, the ring is there until the device writes no more of it. */
void a_traces_memory_stays(void)
{
	struct drm_tessera_memory before, during, after;
	struct traced t;
	int event = eventfd(0, EFD_NONBLOCK);
	int old = fd;

	query_all(DRM_TESSERA_QUERY_MEMORY, 0, &before, sizeof(before));
	t = make();
	CHECK(!trace_start(t.ctx.id, t.ring.va, N, 1, event));
	REFUSES(unmap(t.ctx.id, t.ring.va), EBUSY);
	query_all(DRM_TESSERA_QUERY_MEMORY, 0, &during, sizeof(during));
	CHECK(!bo_close(t.ring.handle));
	query_all(DRM_TESSERA_QUERY_MEMORY, 0, &after, sizeof(after));
	SAME(after.system_used, during.system_used);
	work(&t, 3);
	SAME(t.records[2].number, 3);
	/* Other mappings go as they like. */
	CHECK(!unmap(t.ctx.id, t.memory.va));
	CHECK(!trace_stop(t.ctx.id, NULL));
	CHECK(!unmap(t.ctx.id, t.ring.va));
	munmap((void *)(uintptr_t)t.records, t.ring.size);
	CHECK(!bo_close(t.memory.handle));
	CHECK(!ctx_destroy(t.ctx.id));
	/* The end of a context, and of a file, under a trace that is at work. */
	for (unsigned i = 0; i < 40; i++) {
		struct hw_sqe d[32];

		fd = open(NODE, O_RDWR | O_CLOEXEC);
		CHECK(fd >= 0);
		t = make();
		CHECK(!trace_start(t.ctx.id, t.ring.va, N, 1, i & 2 ? event : NO_EVENT));
		for (unsigned k = 0; k < 32; k++)
			d[k] = fill(t.memory.va, PAGE, k);
		submit(t.queue, d, 32);
		submit(t.queue, d, 32);
		CHECK(!bo_close(t.ring.handle));
		if (i & 1) {
			CHECK(!ctx_destroy(t.ctx.id));
			REFUSES(trace_stop(t.ctx.id, NULL), ENOENT);
		}
		munmap((void *)(uintptr_t)t.records, t.ring.size);
		close(fd);
		fd = old;
	}
	query_all(DRM_TESSERA_QUERY_MEMORY, 0, &after, sizeof(after));
	SAME(after.system_used, before.system_used);
	SAME(after.hbm_used, before.hbm_used);
	close(event);
}

void a_reset_ends_traces(void)
{
	struct traced t = make();
	int event = eventfd(0, EFD_NONBLOCK);

	CHECK(!trace_start(t.ctx.id, t.ring.va, N, 1, event));
	work(&t, 2);
	while (events(event, 0))
		;
	reset_function();
	CHECK(events(event, 0) >= 1);
	/* What was recorded is there; the context takes nothing any more, and keeps its map. */
	SAME(t.records[1].number, 2);
	REFUSES(trace_start(t.ctx.id, t.ring.va, N, 1, event), ECANCELED);
	REFUSES(unmap(t.ctx.id, t.ring.va), EBUSY);
	REFUSES(trace_stop(t.ctx.id, NULL), ECANCELED);
	REFUSES(trace_stop(t.ctx.id, NULL), ENOENT);
	REFUSES(trace_start(t.ctx.id, t.ring.va, N, 1, event), ECANCELED);
	REFUSES(unmap(t.ctx.id, t.ring.va), ECANCELED);
	end(&t);
	t = make();
	CHECK(!trace_start(t.ctx.id, t.ring.va, N, 1, event));
	work(&t, 1);
	SAME(t.records[0].number, 1);
	end(&t);
	close(event);
}
