/* SPDX-License-Identifier: Apache-2.0 */
/* Traces: what is recorded, when, for whom, and what becomes of a ring that is too small, gone or
 * never was (DEVICE.md#traces). */
#include "tests/unit/sim/sim_test.h"

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#define RING_VA T_HOST_VA	/* the window's start */
#define BYTES 65536u		/* that an instruction of `work` copies */
#define SEM (T_HBM_VA + 8)
#define COPIED 40u		/* bytes of a copy by descriptor */

static struct t_sim t;
static struct t_program p;
static struct hw_trace_record *ring;	/* of the window */

static int setup(void **state)
{
	(void)state;
	t_open(&t, "lanes=1");
	ring = (struct hw_trace_record *)t.window;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	t_close(&t);
	return 0;
}

static unsigned start_as(unsigned ctx, struct hw_trace in)
{
	memcpy(t_args(&t), &in, sizeof(in));
	return t_admin(&t, HW_TRACE_START, ctx, 0);
}

static unsigned start_at(unsigned ctx, uint64_t va, uint32_t n)
{
	return start_as(ctx, (struct hw_trace){ .va = va, .first = 1, .n_records = n,
						.vector = HW_NO_VECTOR });
}

static void start(uint32_t n)
{
	memset(t.window, 0, n * sizeof(*ring));
	assert_int_equal(start_at(t.ctx, RING_VA, n), 0);
}

/* The number of the last record. */
static uint64_t stop(void)
{
	assert_int_equal(t_admin(&t, HW_TRACE_STOP, t.ctx, 0), 0);
	return t.cqe.value;
}

static uint64_t device_clock(void)
{
	return sim_mmio_read(t.dev, HW_REG_CLOCK, 8);
}

static void add_copy(unsigned from, unsigned to)
{
	struct isa_copy c = { .insn = { ISA_COPY, 0, sizeof(c) }, .rank = 1, .elem_bytes = 8,
		.dim = { BYTES / 8, 1, 1, 1, 1, 1, 1, 1 },
		.src = { .binding = (uint16_t)from, .stride = { 8 } },
		.dst = { .binding = (uint16_t)to, .stride = { 8 } } };

	t_add(&p, &c, sizeof(c));
}

/* li, copy, li, li, copy, li, halt. */
static uint32_t load_work(unsigned ctx)
{
	uint32_t id;

	t_program(&p);
	t_bind(&p, T_HBM_VA + (1 << 20), BYTES, HW_BIND_READ | HW_BIND_WRITE);
	t_bind(&p, T_HBM_VA + (2 << 20), BYTES, HW_BIND_READ | HW_BIND_WRITE);
	t_li(&p, 1, 1);
	add_copy(0, 1);
	t_li(&p, 1, 1);
	t_li(&p, 1, 1);
	add_copy(1, 0);
	t_li(&p, 1, 1);
	t_halt(&p);
	assert_int_equal(t_load_in(&t, &p, ctx, &id), 0);
	return id;
}

static void run_work(uint32_t tag, unsigned flags)
{
	uint32_t id = load_work(t.ctx);
	struct hw_sqe sqe;

	p.flags = (uint8_t)flags;
	sqe = t_execute(&t, &p, id);
	sqe.tag = tag;
	assert_int_equal(t_ask(&t, &t.work, sqe), 0);
	assert_int_equal(t_unload(&t, id), 0);
}

static void is_work(const struct hw_trace_record *r, uint64_t from, uint32_t tag)
{
	static const uint32_t n_insns[] = { 2, 3, 1 };
	const size_t copy = sizeof(struct isa_copy), li = sizeof(struct isa_scalar);
	const size_t pc[] = { li, 3 * li + copy, 4 * li + 2 * copy };
	uint64_t sum = 0;

	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(r[i].number, from + i);
		assert_int_equal(r[i].tag, tag);
		assert_int_equal(r[i].queue, t.work.id);
		assert_int_equal(r[i].cls, HW_CLASS_COMPUTE);
		assert_int_equal(r[i].program, r[0].program);
		assert_int_equal(r[i].status, 0);
		assert_true(r[i].begin_ns <= r[i].end_ns);
	}
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(r[i].kind, HW_TRACE_GROUP);
		assert_int_equal(r[i].pc, pc[i]);
		assert_int_equal(r[i].n_insns, n_insns[i]);
		assert_int_equal(r[i].op, i < 2 ? ISA_COPY : ISA_HALT);
		assert_int_equal(r[i].bytes, i < 2 ? 2 * BYTES : 0);
		assert_true(!i || r[i].begin_ns == r[i - 1].end_ns);
		sum += r[i].end_ns - r[i].begin_ns;
	}
	assert_int_equal(r[3].kind, HW_TRACE_PROGRAM);
	assert_int_equal(r[3].op, HW_EXECUTE);
	assert_true(r[3].begin_ns <= r[0].begin_ns && r[3].end_ns >= r[2].end_ns);
	assert_true(sum <= r[3].end_ns - r[3].begin_ns);
}

static void a_run_is_told_before_its_completion(void **state)
{
	static const unsigned flags[] = { 0, HW_INLINE };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		uint64_t before = device_clock(), after;

		start(64);
		run_work(7 + i, flags[i]);
		after = device_clock();
		is_work(ring, 1, 7 + i);
		assert_true(ring[3].begin_ns >= before && ring[3].end_ns <= after);
		run_work(100, 0);
		is_work(ring + 4, 5, 100);
		assert_int_equal(ring[8].number, 0);
		assert_int_equal(stop(), 8);
	}
}

static void nothing_is_told_without_a_trace(void **state)
{
	(void)state;
	start(64);
	run_work(1, 0);
	assert_int_equal(stop(), 4);
	memset(t.window, 0x5a, 64 * sizeof(*ring));
	run_work(2, 0);
	for (unsigned i = 0; i < 64 * sizeof(*ring); i++)
		assert_int_equal(t.window[i], 0x5a);
	assert_int_equal(t_admin(&t, HW_TRACE_STOP, t.ctx, 0), HW_ST_NO_SUCH_ID);
}

static void copy(struct t_ring *q, uint64_t bytes, uint32_t tag)
{
	assert_int_equal(t_ask(&t, q, (struct hw_sqe){ .op = HW_COPY, .tag = tag,
		.u.copy = { T_HBM_VA + 4096, T_HBM_VA + 8192, bytes } }), 0);
}

static void copies_are_told_with_their_bytes(void **state)
{
	struct hw_copy_2d c = { T_HBM_VA + 4096, T_HBM_VA + 65536, 16, 3, 2, 64, 64, 256, 256 };
	const uint64_t bytes[] = { COPIED, 96, 12, 8 };
	const uint8_t op[] = { HW_COPY, HW_COPY_2D, HW_FILL, HW_TIMESTAMP };

	(void)state;
	start(64);
	memcpy(t.hbm + 256, &c, sizeof(c));
	copy(&t.dma, COPIED, 1);
	assert_int_equal(t_ask(&t, &t.dma, (struct hw_sqe){ .op = HW_COPY_2D, .tag = 2,
		.u.copy = { .src = T_HBM_VA + 256, .bytes = 999 } }), 0);
	assert_int_equal(t_ask(&t, &t.dma, (struct hw_sqe){ .op = HW_FILL, .tag = 3,
		.u.copy = { .dst = T_HBM_VA + 8192, .bytes = 12 } }), 0);
	assert_int_equal(t_ask(&t, &t.dma, (struct hw_sqe){ .op = HW_TIMESTAMP, .tag = 4,
		.u.copy.dst = T_HBM_VA + 8192 }), 0);
	assert_int_equal(t_ask(&t, &t.dma, (struct hw_sqe){ .op = HW_NOP, .tag = 5 }), 0);
	assert_int_equal(t_ask(&t, &t.dma, (struct hw_sqe){ .op = HW_SEMAPHORE, .tag = 6 }), 0);
	assert_int_equal(stop(), 4);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(ring[i].kind, HW_TRACE_COPY);
		assert_int_equal(ring[i].cls, HW_CLASS_DMA);
		assert_int_equal(ring[i].queue, t.dma.id);
		assert_int_equal(ring[i].tag, i + 1);
		assert_int_equal(ring[i].op, op[i]);
		assert_int_equal(ring[i].bytes, bytes[i]);
		assert_int_equal(ring[i].program, 0);
	}
}

static void a_full_ring_goes_on_over_its_oldest(void **state)
{
	(void)state;
	start(4);
	for (uint32_t i = 1; i <= 11; i++)
		copy(&t.dma, COPIED, i);
	assert_int_equal(stop(), 11);
	for (uint32_t i = 8; i <= 11; i++) {
		assert_int_equal(ring[(i - 1) % 4].number, i);
		assert_int_equal(ring[(i - 1) % 4].tag, i);
	}
	assert_int_equal(ring[4].number, 0);
}

/* A client that was reset goes on counting where it was. */
static void numbers_begin_where_they_are_told_to(void **state)
{
	(void)state;
	assert_int_equal(start_as(t.ctx, (struct hw_trace){ .va = RING_VA, .first = 1000003,
		.n_records = 4, .vector = HW_NO_VECTOR }), 0);
	copy(&t.dma, COPIED, 9);
	assert_int_equal(ring[2].number, 1000003);
	assert_int_equal(stop(), 1000003);
}

static void each_half_of_the_ring_raises_the_vector(void **state)
{
	int fd = eventfd(0, EFD_NONBLOCK);
	uint64_t n = 0;

	(void)state;
	assert_int_equal(sim_irq_fd(t.dev, 5, fd, NULL), 0);
	sim_mmio_write(t.dev, HW_MSIX_TABLE + 5 * 16 + 12, 4, 0);
	assert_int_equal(start_as(t.ctx, (struct hw_trace){ .va = RING_VA, .first = 1,
		.n_records = 8, .vector = 5 }), 0);
	for (uint32_t i = 1; i <= 20; i++) {
		copy(&t.dma, COPIED, i);
		assert_int_equal(read(fd, &n, 8) == 8, i % 4 == 0);
	}
	stop();
	sim_irq_fd(t.dev, 5, -1, NULL);
	close(fd);
}

static void waits_are_told_apart_from_work(void **state)
{
	struct t_ring *q = &t.dma;
	const struct hw_trace_record *r = ring;
	uint64_t raised;

	(void)state;
	__atomic_store_n((uint64_t *)(t.hbm + 8), 0, __ATOMIC_RELEASE);
	start(16);
	t_put(&t, q, (struct hw_sqe){ .op = HW_COPY, .tag = 1, .flags = HW_WAIT, .wait_va = SEM,
		.wait_value = 1, .u.copy = { T_HBM_VA + 4096, T_HBM_VA + 8192, COPIED } });
	t_ring_bell(&t, q);
	/* Its engine has seen it when the state says so. */
	do {
		assert_int_equal(t_admin(&t, HW_LOG_PAGE, HW_LOG_QUEUES, 0), 0);
	} while (((struct hw_queue_state *)t_args(&t))[1].is != HW_QUEUE_WAITING);
	raised = device_clock();
	__atomic_store_n((uint64_t *)(t.hbm + 8), 1, __ATOMIC_RELEASE);
	t_ring_bell(&t, q);
	assert_int_equal(t_take(&t, q), 0);
	/* One that need not wait. */
	assert_int_equal(t_ask(&t, q, (struct hw_sqe){ .op = HW_COPY, .tag = 2, .flags = HW_WAIT,
		.wait_va = SEM, .wait_value = 1,
		.u.copy = { T_HBM_VA + 4096, T_HBM_VA + 8192, COPIED } }), 0);
	assert_int_equal(stop(), 3);
	assert_int_equal(r[0].kind, HW_TRACE_WAIT);
	assert_int_equal(r[0].tag, 1);
	assert_true(r[0].begin_ns < raised && r[0].end_ns >= raised);
	assert_int_equal(r[1].kind, HW_TRACE_COPY);
	assert_int_equal(r[1].tag, 1);
	assert_int_equal(r[1].begin_ns, r[0].end_ns);
	assert_int_equal(r[2].kind, HW_TRACE_COPY);
	assert_int_equal(r[2].tag, 2);
}

static unsigned state_of_work(void)
{
	assert_int_equal(t_admin(&t, HW_LOG_PAGE, HW_LOG_QUEUES, 0), 0);
	return ((struct hw_queue_state *)t_args(&t))->is;
}

/* A run that waits at its RWAIT; the copy comes before it. */
static uint32_t park(size_t *pc)
{
	uint32_t id;

	__atomic_store_n((uint64_t *)(t.hbm + 8), 0, __ATOMIC_RELEASE);
	t_program(&p);
	t_bind(&p, T_HBM_VA, 64, HW_BIND_READ | HW_BIND_WRITE);
	t_bind(&p, T_HBM_VA + (1 << 20), BYTES, HW_BIND_READ | HW_BIND_WRITE);
	t_bind(&p, T_HBM_VA + (2 << 20), BYTES, HW_BIND_READ | HW_BIND_WRITE);
	add_copy(1, 2);
	t_li(&p, 1, 1);
	*pc = t_scalar(&p, (struct isa_scalar){ .insn.op = ISA_RWAIT, .elem = ELEM_U64, .rb = 1,
						.imm = 8 });
	add_copy(2, 1);
	t_halt(&p);
	assert_int_equal(t_load(&t, &p, &id), 0);
	t_put(&t, &t.work, t_execute(&t, &p, id));
	t_ring_bell(&t, &t.work);
	while (state_of_work() != HW_QUEUE_PARKED)
		;
	return id;
}

static void a_parked_run_is_told_in_its_parts(void **state)
{
	static const uint8_t kinds[] = { HW_TRACE_GROUP, HW_TRACE_GROUP, HW_TRACE_PARKED,
					 HW_TRACE_GROUP, HW_TRACE_PROGRAM };
	uint32_t id;
	size_t pc;

	(void)state;
	start(16);
	id = park(&pc);
	__atomic_store_n((uint64_t *)(t.hbm + 8), 1, __ATOMIC_RELEASE);
	t_ring_bell(&t, &t.work);
	assert_int_equal(t_take(&t, &t.work), 0);
	assert_int_equal(t_unload(&t, id), 0);
	assert_int_equal(stop(), 5);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(ring[i].kind, kinds[i]);
	assert_int_equal(ring[1].pc, pc);
	assert_int_equal(ring[1].n_insns, 1);
	assert_int_equal(ring[2].pc, pc);
	assert_int_equal(ring[2].op, ISA_RWAIT);
	assert_true(ring[2].begin_ns >= ring[1].end_ns && ring[3].begin_ns >= ring[2].end_ns);
	assert_int_equal(ring[3].n_insns, 2);
	assert_int_equal(ring[3].bytes, 2 * BYTES);
	assert_true(ring[4].begin_ns <= ring[0].begin_ns && ring[4].end_ns >= ring[3].end_ns);
}

static void a_run_that_was_stopped_says_so(void **state)
{
	uint32_t id;
	size_t pc;

	(void)state;
	start(16);
	id = park(&pc);
	assert_int_equal(t_reset(&t, &t.work), 0);
	assert_int_equal(t_take(&t, &t.work), HW_ST_RESET);
	assert_int_equal(t_unload(&t, id), 0);
	assert_int_equal(stop(), 4);
	assert_int_equal(ring[2].kind, HW_TRACE_PARKED);
	assert_int_equal(ring[3].kind, HW_TRACE_PROGRAM);
	assert_int_equal(ring[3].status, HW_ST_RESET);
	/* One that faults, as well. */
	start(16);
	t_program(&p);
	t_scalar(&p, (struct isa_scalar){ .insn.op = ISA_TRAP });
	assert_int_equal(t_run(&t, &p), HW_ST_PROGRAM_TRAP);
	assert_int_equal(stop(), 1);
	assert_int_equal(ring[0].kind, HW_TRACE_PROGRAM);
	assert_int_equal(ring[0].status, HW_ST_PROGRAM_TRAP);
}

/* What began before the trace, or in another one, is not told. */
static void a_trace_begins_with_what_begins_in_it(void **state)
{
	uint32_t id;
	size_t pc;

	(void)state;
	for (unsigned has_before = 0; has_before < 2; has_before++) {
		if (has_before)
			start(16);
		id = park(&pc);
		if (has_before)
			stop();
		start(16);
		__atomic_store_n((uint64_t *)(t.hbm + 8), 1, __ATOMIC_RELEASE);
		t_ring_bell(&t, &t.work);
		assert_int_equal(t_take(&t, &t.work), 0);
		assert_int_equal(t_unload(&t, id), 0);
		assert_int_equal(stop(), 0);
		assert_int_equal(ring[0].number, 0);
	}
}

/* Each context hears of its own work only, from its own ring. */
static void two_contexts_hear_of_their_own(void **state)
{
	struct hw_trace_record *other = ring + 64;
	struct t_ring q;
	unsigned ctx;

	(void)state;
	assert_int_equal(t_admin(&t, HW_CTX_CREATE, 0, 0), 0);
	ctx = (unsigned)t.cqe.value;
	assert_int_equal(t_map(&t, ctx, T_HBM_VA, 0, t.hbm_bytes, HW_MAP_WRITE), 0);
	assert_int_equal(t_queue(&t, &q, (struct hw_queue){ .ctx = (uint16_t)ctx,
		.cls = HW_CLASS_DMA, .vector = HW_NO_VECTOR }), 0);
	/* The first one's ring is not in the second's map. */
	assert_int_equal(start_at(ctx, RING_VA, 8), HW_ST_BAD_ADDRESS);
	assert_int_equal(t_map(&t, ctx, 1 << 24, T_IOVA + (T_WINDOW + 1) * HW_PAGE, HW_PAGE,
			       HW_MAP_WRITE | HW_MAP_HOST), 0);
	memset(other, 0, 8 * sizeof(*other));
	start(8);
	assert_int_equal(start_at(ctx, 1 << 24, 8), 0);
	copy(&t.dma, COPIED, 1);
	copy(&q, COPIED, 2);
	copy(&q, COPIED, 3);
	assert_int_equal(stop(), 1);
	copy(&t.dma, COPIED, 4);
	copy(&q, COPIED, 5);
	assert_int_equal(ring[0].tag, 1);
	assert_int_equal(ring[1].number, 0);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(other[i].number, i + 1);
		assert_int_equal(other[i].queue, q.id);
	}
	assert_int_equal(other[2].tag, 5);
	assert_int_equal(other[3].number, 0);
	/* It ends with its context, which may come again under the same number. */
	assert_int_equal(t_admin(&t, HW_CTX_DESTROY, ctx, 0), 0);
	assert_int_equal(t_admin(&t, HW_TRACE_STOP, ctx, 0), HW_ST_NO_SUCH_ID);
	assert_int_equal(t_admin(&t, HW_CTX_CREATE, 0, 0), 0);
	assert_int_equal(t.cqe.value, ctx);
	assert_int_equal(t_admin(&t, HW_TRACE_STOP, ctx, 0), HW_ST_NO_SUCH_ID);
	assert_int_equal(t_admin(&t, HW_CTX_DESTROY, ctx, 0), 0);
}

static void rings_that_are_none_are_refused(void **state)
{
	const struct hw_trace good = { .va = RING_VA, .first = 1, .n_records = 64,
				       .vector = HW_NO_VECTOR };
	const uint64_t end = T_HOST_VA + T_WINDOW_PAGES * HW_PAGE;
	struct hw_trace bad;

	(void)state;
#define BAD(field, value, status) do { \
	bad = good; \
	bad.field = value; \
	assert_int_equal(start_as(t.ctx, bad), status); \
} while (0)
	BAD(n_records, 0, HW_ST_BAD_FIELD);
	BAD(n_records, 1, HW_ST_BAD_FIELD);
	BAD(n_records, 63, HW_ST_BAD_FIELD);
	BAD(n_records, HW_TRACE_MAX_RECORDS * 2, HW_ST_BAD_FIELD);
	BAD(n_records, HW_TRACE_MAX_RECORDS, HW_ST_BAD_ADDRESS);
	BAD(first, 0, HW_ST_BAD_FIELD);
	BAD(vector, HW_MAX_VECTORS, HW_ST_BAD_FIELD);
	BAD(va, RING_VA + 8, HW_ST_BAD_FIELD);
	BAD(va, UINT64_MAX - 63, HW_ST_BAD_FIELD);
	BAD(va, 0, HW_ST_BAD_ADDRESS);
	BAD(va, T_HBM_VA, HW_ST_BAD_ADDRESS);	/* the device's own memory */
	BAD(va, end - 63 * 64, HW_ST_BAD_ADDRESS);	/* one record too far */
	assert_int_equal(start_at(t.ctx + 1, RING_VA, 64), HW_ST_NO_SUCH_ID);
	assert_int_equal(start_at(0, RING_VA, 64), HW_ST_NO_SUCH_ID);
	assert_int_equal(start_at(t.ctx, end - 64 * 64, 64), 0);
	assert_int_equal(start_at(t.ctx, RING_VA, 64), HW_ST_BUSY);
	assert_int_equal(stop(), 0);
	assert_int_equal(t_admin(&t, HW_TRACE_STOP, 0, 0), HW_ST_NO_SUCH_ID);
	/* The request itself lies nowhere. */
	assert_int_equal(t_ask(&t, &t.admin, (struct hw_sqe){ .op = HW_TRACE_START,
		.id = (uint16_t)t.ctx, .u.admin.addr = 64 }), HW_ST_BAD_ADDRESS);
	/* Read only for the context, or for the IOMMU. */
	assert_int_equal(t_map(&t, t.ctx, 1 << 26, T_IOVA + T_WINDOW * HW_PAGE, HW_PAGE,
			       HW_MAP_HOST), 0);
	assert_int_equal(start_at(t.ctx, 1 << 26, 4), HW_ST_BAD_ADDRESS);
	assert_int_equal(t_unmap(&t, t.ctx, 1 << 26), 0);
}

/* The memory goes while records go there: nobody waits, what has no place counts. */
static void a_ring_may_be_taken_away(void **state)
{
	const uint64_t va = 1 << 26, iova = 1ull << 36;
	uint8_t *pages = mmap(NULL, 2 * HW_PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct hw_trace_record *r = (const void *)pages;
	const uint32_t n = 2 * HW_PAGE / sizeof(*r);

	(void)state;
	assert_int_equal(sim_dma_map(t.dev, iova, pages, 2 * HW_PAGE, true, NULL), 0);
	assert_int_equal(t_map(&t, t.ctx, va, iova, HW_PAGE, HW_MAP_WRITE | HW_MAP_HOST), 0);
	assert_int_equal(start_at(t.ctx, va, n), HW_ST_BAD_ADDRESS);
	assert_int_equal(t_map(&t, t.ctx, va + HW_PAGE, iova + HW_PAGE, HW_PAGE,
			       HW_MAP_WRITE | HW_MAP_HOST), 0);
	assert_int_equal(start_at(t.ctx, va, n), 0);
	copy(&t.dma, COPIED, 1);
	assert_int_equal(t_unmap(&t, t.ctx, va), 0);
	for (uint32_t i = 2; i <= n / 2 + 1; i++)
		copy(&t.dma, COPIED, i);
	assert_int_equal(r[0].number, 1);
	assert_int_equal(r[1].number, 0);
	assert_int_equal(r[n / 2].number, n / 2 + 1);
	assert_int_equal(sim_dma_unmap(t.dev, iova, NULL), 0);
	munmap(pages, 2 * HW_PAGE);
	copy(&t.dma, COPIED, 99);
	assert_int_equal(stop(), n / 2 + 2);
	assert_int_equal(t_unmap(&t, t.ctx, va + HW_PAGE), 0);
}

/* Runs for ever; tensor instructions fill the ring meanwhile. */
static uint32_t run_on(void)
{
	uint32_t id;

	t_program(&p);
	t_bind(&p, T_HBM_VA + (1 << 20), BYTES, HW_BIND_READ | HW_BIND_WRITE);
	t_bind(&p, T_HBM_VA + (2 << 20), BYTES, HW_BIND_READ | HW_BIND_WRITE);
	add_copy(0, 1);
	t_branch(&p, ISA_JMP, 0, -(int64_t)sizeof(struct isa_copy));
	assert_int_equal(t_load(&t, &p, &id), 0);
	t_put(&t, &t.work, t_execute(&t, &p, id));
	t_ring_bell(&t, &t.work);
	return id;
}

static uint64_t number_at(unsigned i)
{
	return __atomic_load_n(&ring[i].number, __ATOMIC_ACQUIRE);
}

static void a_reset_ends_a_trace_that_is_under_way(void **state)
{
	struct hw_trace_record before[64];

	(void)state;
	start(64);
	run_on();
	/* Several laps of the ring: a run writes before it ends. */
	while (number_at(0) < 64 * 5)
		;
	sim_flr(t.dev);
	memcpy(before, ring, sizeof(before));
	t_bring_up(&t);
	copy(&t.dma, COPIED, 1);
	assert_memory_equal(before, ring, sizeof(before));
	assert_int_equal(t_admin(&t, HW_TRACE_STOP, t.ctx, 0), HW_ST_NO_SUCH_ID);
	start(64);
	run_work(3, 0);
	is_work(ring, 1, 3);
	assert_int_equal(stop(), 4);
}

/* A reader beside a writer that laps it: each record that it takes is one, whole. */
static void a_slow_reader_sees_whole_records_and_what_it_lost(void **state)
{
	uint64_t next = 1, lost = 0, got = 0;
	uint32_t id;

	(void)state;
	start(4);
	id = run_on();
	while (got < 20000) {
		const struct hw_trace_record *at = &ring[(next - 1) % 4];
		uint64_t number = __atomic_load_n(&at->number, __ATOMIC_ACQUIRE), word[8];
		struct hw_trace_record r;

		if (number < next)
			continue;
		for (unsigned i = 1; i < 8; i++)
			word[i] = __atomic_load_n((const uint64_t *)at + i, __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (__atomic_load_n(&at->number, __ATOMIC_RELAXED) != number)
			continue;
		word[0] = number;
		memcpy(&r, word, sizeof(r));
		assert_int_equal((number - 1) % 4, (next - 1) % 4);
		assert_int_equal(r.kind, HW_TRACE_GROUP);
		assert_int_equal(r.program, id);
		assert_int_equal(r.bytes, 2 * BYTES);
		assert_int_equal(r.n_insns, number == 1 ? 1 : 2);
		lost += number - next;
		next = number + 1;
		got++;
	}
	assert_int_equal(t_reset(&t, &t.work), 0);
	assert_int_equal(t_take(&t, &t.work), HW_ST_RESET);
	assert_true(stop() >= got + lost);
	assert_int_equal(t_unload(&t, id), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_run_is_told_before_its_completion),
		cmocka_unit_test(nothing_is_told_without_a_trace),
		cmocka_unit_test(copies_are_told_with_their_bytes),
		cmocka_unit_test(a_full_ring_goes_on_over_its_oldest),
		cmocka_unit_test(numbers_begin_where_they_are_told_to),
		cmocka_unit_test(each_half_of_the_ring_raises_the_vector),
		cmocka_unit_test(waits_are_told_apart_from_work),
		cmocka_unit_test(a_parked_run_is_told_in_its_parts),
		cmocka_unit_test(a_run_that_was_stopped_says_so),
		cmocka_unit_test(a_trace_begins_with_what_begins_in_it),
		cmocka_unit_test(two_contexts_hear_of_their_own),
		cmocka_unit_test(rings_that_are_none_are_refused),
		cmocka_unit_test(a_ring_may_be_taken_away),
		cmocka_unit_test(a_reset_ends_a_trace_that_is_under_way),
		cmocka_unit_test(a_slow_reader_sees_whole_records_and_what_it_lost),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
