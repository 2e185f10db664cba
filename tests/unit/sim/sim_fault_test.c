/* SPDX-License-Identifier: Apache-2.0 */
/* Fault records, watchdogs, poison, the fatal state. */
#include "tests/unit/sim/sim_test.h"

#include <math.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

static struct t_sim t;
static struct t_program p;

static int setup(void **state)
{
	(void)state;
	t_open(&t, "lanes=1");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	t_close(&t);
	return 0;
}

static struct hw_ras ras(void)
{
	struct hw_ras r;

	assert_int_equal(t_admin(&t, HW_LOG_PAGE, HW_LOG_RAS, 0), 0);
	memcpy(&r, t_args(&t), sizeof(r));
	return r;
}

static void endless(void)
{
	t_program(&p);
	t_li(&p, 1, 1);
	t_branch(&p, ISA_BNZ, 1, 0);
}

static void records_are_whole(void **state)
{
	uint32_t id;

	(void)state;
	t_program(&p);
	t_bind(&p, T_HBM_VA, 64, HW_BIND_READ);
	t_bind(&p, T_HBM_VA + 64, 128, HW_BIND_READ);
	t_li(&p, 5, 121);
	t_scalar(&p, (struct isa_scalar){ .insn.op = ISA_LD, .elem = ELEM_U64, .rd = 1,
					  .ra = 5, .binding = 1 });
	t_halt(&p);
	assert_int_equal(t_load(&t, &p, &id), 0);
	t_put(&t, &t.work, t_execute(&t, &p, id));
	((struct hw_sqe *)(t.host + t.work.page * HW_PAGE))[(t.work.tail - 1) % T_ENTRIES].tag =
		0xdeadbeef;
	t_ring_bell(&t, &t.work);
	assert_int_equal(t_take(&t, &t.work), HW_ST_BOUNDS);
	assert_int_equal(t.cqe.tag, 0xdeadbeef);
	t_last_fault(&t);
	assert_int_equal(t.fault.status, HW_ST_BOUNDS);
	assert_int_equal(t.fault.queue, t.work.id);
	assert_int_equal(t.fault.ctx, t.ctx);
	assert_int_equal(t.fault.operand, 0);
	assert_int_equal(t.fault.program, id);
	assert_int_equal(t.fault.tag, 0xdeadbeef);
	assert_int_equal(t.fault.pc, 24);
	assert_int_equal(t.fault.va, 121);
	assert_int_equal(t.fault.bytes, 128);
	assert_int_equal(t.fault.binding, 1);
	assert_int_equal(t.fault.is_write, 0);
	assert_true(t.fault.time_ns && t.fault.time_ns <=
		    sim_mmio_read(t.dev, HW_REG_CLOCK, 8));
	assert_int_equal(t_reset(&t, &t.work), 0);
	assert_int_equal(t_unload(&t, id), 0);
}

/* From r5 bytes into binding 0 to r6 bytes into binding 1, each of 256 bytes, by one instruction
 * between others: its status. */
static unsigned move(unsigned n, unsigned each, int64_t from, int64_t to, bool computes)
{
	struct isa_operand in = { .elem = ELEM_U8, .reg = 5, .binding = 0, .offset = 64,
				  .stride = { each } };
	struct isa_operand out = { .elem = ELEM_U8, .reg = 6, .binding = 1, .offset = 64,
				   .stride = { each } };
	struct isa_copy c = { .insn = { .op = ISA_COPY, .bytes = sizeof(c) }, .rank = 1,
		.elem_bytes = (uint8_t)each, .dim = { n, 1, 1, 1, 1, 1, 1, 1 }, .src = in,
		.dst = out };
	struct isa_tensor v = { .insn = { .op = ISA_VEC, .bytes = sizeof(v) + 2 * sizeof(in) },
		.body = { .rank = 1, .n_in = 1, .n_out = 1,
			  .dim = { n, 1, 1, 1, 1, 1, 1, 1 } } };

	t_program(&p);
	t_bind(&p, T_HBM_VA, 256, HW_BIND_READ);
	t_bind(&p, T_HBM_VA + HW_PAGE, 256, HW_BIND_WRITE);
	t_li(&p, 5, (int64_t)((uint64_t)from - 64));
	t_li(&p, 6, to - 64);
	if (computes) {
		in.elem = out.elem = each == 8 ? ELEM_U64 : each == 4 ? ELEM_U32 : ELEM_U8;
		t_add(&p, &v, sizeof(v));
		t_add(&p, &in, sizeof(in));
		t_add(&p, &out, sizeof(out));
	} else {
		t_add(&p, &c, sizeof(c));
	}
	t_li(&p, 5, 0);
	t_halt(&p);
	return t_run(&t, &p);
}

static void expect_fault(unsigned status, unsigned want, unsigned operand, int64_t va)
{
	assert_int_equal(status, want);
	assert_int_equal(t.fault.pc, 48);
	assert_int_equal(t.fault.operand, operand);
	assert_int_equal(t.fault.is_write, operand);
	assert_int_equal(t.fault.va, va);
}

/* What the scalar unit runs without looking up looks at addresses all the same. */
static void short_instructions_stop_at_the_ends_of_memory(void **state)
{
	static const unsigned sizes[][2] = { { 1, 1 }, { 1, 4 }, { 1, 8 }, { 3, 1 }, { 3, 4 },
		{ 8, 8 }, { 9, 8 } };	/* elements, their bytes */

	(void)state;
	for (unsigned i = 0; i < 2 * sizeof(sizes) / sizeof(sizes[0]); i++) {
		unsigned n = sizes[i / 2][0], each = sizes[i / 2][1], bytes = n * each;
		int64_t last = 256 - (int64_t)bytes;
		bool vec = i & 1;

		for (unsigned k = 0; k < 256; k++)
			t.hbm[k] = (uint8_t)(k + i);
		memset(t.hbm + HW_PAGE, 0, 512);
		assert_int_equal(move(n, each, 0, last, vec), 0);
		assert_int_equal(move(n, each, last, 0, vec), 0);
		assert_memory_equal(t.hbm + HW_PAGE + last, t.hbm, bytes);
		assert_memory_equal(t.hbm + HW_PAGE, t.hbm + last, bytes);
		assert_int_equal(t.hbm[HW_PAGE + bytes], 0);
		assert_int_equal(t.hbm[HW_PAGE + 256], 0);
		expect_fault(move(n, each, last + each, 0, vec), HW_ST_BOUNDS, 0, last + each);
		expect_fault(move(n, each, -(int64_t)each, 0, vec), HW_ST_BOUNDS, 0,
			     -(int64_t)each);
		expect_fault(move(n, each, 0, last + each, vec), HW_ST_BOUNDS, 1, last + each);
		expect_fault(move(n, each, 0, -8, vec), HW_ST_BOUNDS, 1, -8);
		/* the register and the offset together are past what 64 bits hold */
		expect_fault(move(n, each, INT64_MIN + 56, 0, vec), HW_ST_BOUNDS, 0,
			     INT64_MIN + 56);
		if (each > 1)
			expect_fault(move(n, each, 0, 1, vec), HW_ST_ALIGNMENT, 1, 1);
		assert_int_equal(t.hbm[HW_PAGE + 256], 0);
	}
}

static void the_log_keeps_the_newest(void **state)
{
	const struct hw_fault *log = t_args(&t);
	uint64_t newest = 0;

	(void)state;
	for (unsigned i = 0; i < 70; i++) {
		assert_int_equal(t_ask(&t, &t.dma, (struct hw_sqe){ .op = 0xee, .tag = i }),
				 HW_ST_BAD_DESCRIPTOR);
		newest = t.cqe.detail;
		assert_int_equal(t_reset(&t, &t.dma), 0);
	}
	assert_int_equal(t_admin(&t, HW_LOG_PAGE, HW_LOG_FAULT, 0), 0);
	assert_int_equal(t.cqe.value, 64 * sizeof(*log));
	for (unsigned i = 0; i < 64; i++) {
		assert_int_equal(log[i].number, newest - i);
		assert_int_equal(log[i].tag, 69 - i);
	}
	assert_int_equal(t_ask(&t, &t.admin, (struct hw_sqe){ .op = HW_LOG_PAGE,
		.id = HW_LOG_FAULT, .u.admin = { .addr = t_iova(&t, t_args(&t)),
						 .bytes = 100 } }), 0);
	assert_int_equal(t.cqe.value, 100);
}

static void each_watchdog_fires(void **state)
{
	struct t_ring q;
	uint64_t before = ras().watchdog_fires;
	uint32_t id;

	(void)state;
	endless();
	p.limit_ns = 3000000;
	assert_int_equal(t_run(&t, &p), HW_ST_WATCHDOG);
	assert_int_equal(t.fault.pc, 24);
	assert_int_equal(t_queue(&t, &q, (struct hw_queue){ .ctx = (uint16_t)t.ctx,
		.cls = HW_CLASS_COMPUTE, .vector = HW_NO_VECTOR, .limit_ns = 2000000 }), 0);
	p.limit_ns = 0;
	assert_int_equal(t_load(&t, &p, &id), 0);
	assert_int_equal(t_ask(&t, &q, t_execute(&t, &p, id)), HW_ST_WATCHDOG);
	assert_true(t.cqe.value >= 2000000);
	assert_int_equal(t_admin(&t, HW_QUEUE_DESTROY, q.id, 0), 0);
	assert_int_equal(t_admin(&t, HW_SET_FEATURE, HW_FEATURE_DEFAULT_LIMIT_NS, 1000000), 0);
	assert_int_equal(t_ask(&t, &t.work, t_execute(&t, &p, id)), HW_ST_WATCHDOG);
	assert_int_equal(t_reset(&t, &t.work), 0);
	/* A later deadline, then an earlier one: the earlier fires in its time. */
	assert_int_equal(t_admin(&t, HW_SET_FEATURE, HW_FEATURE_DEFAULT_LIMIT_NS, 0), 0);
	assert_int_equal(t_ask(&t, &t.work, (struct hw_sqe){ .op = HW_NOP }), 0);
	assert_int_equal(t_unload(&t, id), 0);
	assert_int_equal(ras().watchdog_fires, before + 3);
}

static void a_limit_that_is_kept_does_nothing(void **state)
{
	(void)state;
	t_program(&p);
	t_halt(&p);
	p.limit_ns = 1000000000;
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(t_run(&t, &p), 0);
	p.limit_ns = UINT64_MAX;
	assert_int_equal(t_run(&t, &p), 0);
	endless();
	p.limit_ns = 2000000;
	assert_int_equal(t_run(&t, &p), HW_ST_WATCHDOG);
}

/* Descriptor and queue ask for all the time there is; the device's owner allows little. */
static void no_limit_is_longer_than_the_longest(void **state)
{
	struct hw_queue with = { .ctx = (uint16_t)t.ctx, .cls = HW_CLASS_COMPUTE,
				 .vector = HW_NO_VECTOR, .limit_ns = UINT64_MAX };
	struct t_ring capped, free;
	uint32_t id;

	(void)state;
	assert_int_equal(t_admin(&t, HW_SET_FEATURE, HW_FEATURE_MAX_LIMIT_NS, 20000000), 0);
	assert_int_equal(t_queue(&t, &capped, with), 0);
	with.flags = HW_QUEUE_UNCAPPED;
	with.limit_ns = 40000000;
	assert_int_equal(t_queue(&t, &free, with), 0);
	endless();
	for (unsigned i = 0; i < 2; i++) {
		p.limit_ns = i ? UINT64_MAX : 0;
		assert_int_equal(t_load(&t, &p, &id), 0);
		assert_int_equal(t_ask(&t, &capped, t_execute(&t, &p, id)), HW_ST_WATCHDOG);
		assert_in_range(t.cqe.value, 20000000, 5000000000);	/* or it is for ever */
		assert_int_equal(t_reset(&t, &capped), 0);
		assert_int_equal(t_unload(&t, id), 0);
	}
	p.limit_ns = 0;
	assert_int_equal(t_load(&t, &p, &id), 0);
	assert_int_equal(t_ask(&t, &free, t_execute(&t, &p, id)), HW_ST_WATCHDOG);
	assert_true(t.cqe.value >= 40000000);
	assert_int_equal(t_unload(&t, id), 0);
	assert_int_equal(t_admin(&t, HW_SET_FEATURE, HW_FEATURE_MAX_LIMIT_NS, 0), 0);
	assert_int_equal(t_admin(&t, HW_QUEUE_DESTROY, capped.id, 0), 0);
	assert_int_equal(t_admin(&t, HW_QUEUE_DESTROY, free.id, 0), 0);
}

static struct hw_queue_state state_of(const struct t_ring *r)
{
	const struct hw_queue_state *s = t_args(&t);

	assert_int_equal(t_admin(&t, HW_LOG_PAGE, HW_LOG_QUEUES, 0), 0);
	for (unsigned i = 0; i < t.cqe.value / sizeof(*s); i++)
		if (s[i].queue == r->id)
			return s[i];
	fail_msg("no queue %u", r->id);
	return *s;
}

static void a_page_tells_which_queue_runs(void **state)
{
	struct hw_sqe wait = { .op = HW_SEMAPHORE, .flags = HW_WAIT, .wait_va = T_HBM_VA,
			       .wait_value = 1 };
	uint32_t id;

	(void)state;
	memset(t.hbm, 0, 8);
	assert_int_equal(state_of(&t.work).is, HW_QUEUE_IDLE);
	assert_int_equal(state_of(&t.work).cls, HW_CLASS_COMPUTE);
	assert_int_equal(state_of(&t.dma).ctx, t.ctx);
	endless();
	p.limit_ns = 0;
	assert_int_equal(t_load(&t, &p, &id), 0);
	t_put(&t, &t.work, t_execute(&t, &p, id));
	t_ring_bell(&t, &t.work);
	t_put(&t, &t.dma, wait);
	t_ring_bell(&t, &t.dma);
	while (state_of(&t.work).is != HW_QUEUE_RUNNING || !state_of(&t.work).run_ns ||
	       state_of(&t.dma).is != HW_QUEUE_WAITING)
		;
	assert_int_equal(state_of(&t.dma).run_ns, 0);
	assert_int_equal(state_of(&t.dma).tail, state_of(&t.dma).head + 1);
	assert_int_equal(t_reset(&t, &t.work), 0);
	assert_int_equal(t_take(&t, &t.work), HW_ST_RESET);
	assert_int_equal(t_reset(&t, &t.dma), 0);
	assert_int_equal(t_take(&t, &t.dma), HW_ST_DROPPED);
	assert_int_equal(state_of(&t.work).is, HW_QUEUE_IDLE);
	assert_int_equal(t_unload(&t, id), 0);
	assert_int_equal(t_ask(&t, &t.dma, (struct hw_sqe){ .op = 0xee }),
			 HW_ST_BAD_DESCRIPTOR);
	assert_int_equal(state_of(&t.dma).is, HW_QUEUE_FAULTED);
	assert_int_equal(t_reset(&t, &t.dma), 0);
}

/* For drivers' tests: what a device that is broken says. */
static void lies_are_told_once(void **state)
{
	(void)state;
	assert_int_equal(t_admin(&t, HW_INJECT, HW_INJECT_WRONG_VALUE, 4711), 0);
	assert_int_equal(t_admin(&t, HW_GET_FEATURE, HW_FEATURE_MAX_LIMIT_NS, 0), 0);
	assert_int_equal(t.cqe.value, 4711);
	assert_int_equal(t_admin(&t, HW_GET_FEATURE, HW_FEATURE_MAX_LIMIT_NS, 0), 0);
	assert_int_equal(t.cqe.value, 0);
	assert_int_equal(t_admin(&t, HW_INJECT, HW_INJECT_WRONG_STATUS, HW_ST_DROPPED), 0);
	assert_int_equal(t_admin(&t, HW_GET_FEATURE, HW_FEATURE_MAX_LIMIT_NS, 0), HW_ST_DROPPED);
	assert_int_equal(t_admin(&t, HW_GET_FEATURE, HW_FEATURE_MAX_LIMIT_NS, 0), 0);
	assert_int_equal(t_admin(&t, HW_INJECT, HW_INJECT_WRONG_TAG, 1), 0);
	assert_int_equal(t_ask(&t, &t.admin, (struct hw_sqe){ .op = HW_NOP, .tag = 7 }), 0);
	assert_int_equal(t.cqe.tag, 6);
	assert_int_equal(t_ask(&t, &t.admin, (struct hw_sqe){ .op = HW_NOP, .tag = 7 }), 0);
	assert_int_equal(t.cqe.tag, 7);
	assert_int_equal(t_admin(&t, HW_INJECT, HW_INJECT_NO_ANSWER, 1), 0);
	t_put(&t, &t.admin, (struct hw_sqe){ .op = HW_NOP });
	t_ring_bell(&t, &t.admin);
	assert_false(t_poll(&t, &t.admin));
	assert_int_equal(t_ask(&t, &t.admin, (struct hw_sqe){ .op = HW_NOP, .tag = 8 }), 0);
	assert_int_equal(t.cqe.tag, 8);
	/* What is in the ring by chance runs: here an old NOP. */
	assert_int_equal(t_admin(&t, HW_INJECT, HW_INJECT_DOORBELL,
				 t.dma.id | (uint64_t)(t.dma.tail + 1) << 32), 0);
	t.dma.tail++;
	t_take(&t, &t.dma);
	t_reset(&t, &t.dma);
	assert_int_equal(t_admin(&t, HW_INJECT, HW_INJECT_DOORBELL, 63), HW_ST_NO_SUCH_ID);
}

static void poison_is_found_when_read_and_healed_when_written(void **state)
{
	uint64_t bad = 40 * HW_PAGE, uncorrected = ras().ecc_uncorrected;

	(void)state;
	assert_int_equal(t_admin(&t, HW_INJECT, HW_INJECT_POISON, bad + 1), HW_ST_BAD_FIELD);
	assert_int_equal(t_admin(&t, HW_INJECT, HW_INJECT_POISON, t.hbm_bytes),
			 HW_ST_BAD_FIELD);
	assert_int_equal(t_admin(&t, HW_INJECT, HW_INJECT_POISON, bad), 0);
	t_program(&p);
	t_bind(&p, T_HBM_VA + bad - 64, 128, HW_BIND_READ);
	t_halt(&p);
	assert_int_equal(t_run(&t, &p), HW_ST_POISON);
	assert_int_equal(t.fault.binding, 0);
	p.bind[0].va -= 64;
	assert_int_equal(t_run(&t, &p), 0);
	p.bind[0].va += 64;
	p.want[0].access = HW_BIND_WRITE;
	assert_int_equal(t_run(&t, &p), 0);
	assert_int_equal(t_ask(&t, &t.dma, (struct hw_sqe){ .op = HW_COPY,
		.u.copy = { T_HBM_VA + bad + 100, T_HBM_VA, 8 } }), HW_ST_POISON);
	assert_int_equal(t_reset(&t, &t.dma), 0);
	assert_int_equal(ras().ecc_uncorrected, uncorrected + 2);
	assert_int_equal(ras().poisoned_pages, 1);
	/* Half a page does not heal it, a whole one does. */
	assert_int_equal(t_ask(&t, &t.dma, (struct hw_sqe){ .op = HW_FILL,
		.u.copy = { 0, T_HBM_VA + bad, 4095 } }), 0);
	p.want[0].access = HW_BIND_READ;
	assert_int_equal(t_run(&t, &p), HW_ST_POISON);
	assert_int_equal(t_ask(&t, &t.dma, (struct hw_sqe){ .op = HW_FILL,
		.u.copy = { 0, T_HBM_VA + bad, 4096 } }), 0);
	assert_int_equal(t_run(&t, &p), 0);
	assert_int_equal(t_admin(&t, HW_INJECT, HW_INJECT_ECC_CORRECTED, 12), 0);
	assert_int_equal(ras().ecc_corrected, 12);
}

/* 4096 of them, one of which may be poisoned again. */
static void more_poisoned_pages_than_there_is_room_for_are_refused(void **state)
{
	const uint64_t n = 4096;

	(void)state;
	sim_flr(t.dev);
	t_bring_up(&t);
	assert_true(t.hbm_bytes > n * HW_PAGE);
	for (uint64_t i = 0; i < n; i++)
		assert_int_equal(t_admin(&t, HW_INJECT, HW_INJECT_POISON, i * HW_PAGE), 0);
	assert_int_equal(t_admin(&t, HW_INJECT, HW_INJECT_POISON, n * HW_PAGE), HW_ST_NO_ROOM);
	assert_int_equal(t_admin(&t, HW_INJECT, HW_INJECT_POISON, 0), 0);
	sim_flr(t.dev);
	t_bring_up(&t);
	assert_int_equal(t_admin(&t, HW_INJECT, HW_INJECT_POISON, n * HW_PAGE), 0);
	sim_flr(t.dev);
	t_bring_up(&t);
}

static unsigned read_at(uint64_t at)
{
	t_program(&p);
	t_bind(&p, T_HBM_VA + at, HW_PAGE, HW_BIND_READ);
	t_halt(&p);
	return t_run(&t, &p);
}

/* A FILL goes by blocks, a COPY by what lies behind addresses: either may end within a page. */
static void poison_between_two_pieces_is_healed_too(void **state)
{
	const uint64_t bad = 2 << 20, block = 1 << 20, va = 1ull << 45;

	(void)state;
	assert_int_equal(t_admin(&t, HW_INJECT, HW_INJECT_POISON, bad), 0);
	assert_int_equal(t_ask(&t, &t.dma, (struct hw_sqe){ .op = HW_FILL,
		.u.copy = { 0, T_HBM_VA + bad + 100 - block, block + HW_PAGE - 101 } }), 0);
	assert_int_equal(read_at(bad), HW_ST_POISON);
	assert_int_equal(t_ask(&t, &t.dma, (struct hw_sqe){ .op = HW_FILL,
		.u.copy = { 0, T_HBM_VA + bad + 100 - block, block + HW_PAGE } }), 0);
	assert_int_equal(read_at(bad), 0);
	assert_int_equal(t_map(&t, t.ctx, va, 8 << 20, HW_PAGE, 0), 0);
	assert_int_equal(t_map(&t, t.ctx, va + HW_PAGE, 12 << 20, HW_PAGE, 0), 0);
	assert_int_equal(t_admin(&t, HW_INJECT, HW_INJECT_POISON, bad), 0);
	assert_int_equal(t_ask(&t, &t.dma, (struct hw_sqe){ .op = HW_COPY,
		.u.copy = { va, T_HBM_VA + bad - 2048, 2 * HW_PAGE } }), 0);
	assert_int_equal(read_at(bad), 0);
	t_unmap(&t, t.ctx, va);
	t_unmap(&t, t.ctx, va + HW_PAGE);
}

/* The fatal state ends what runs, raises every vector and answers nothing more;
 * a reset brings the device back. */
static void the_fatal_state_is_loud_and_final(void **state)
{
	int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	uint64_t n, before = ras().fatal;
	uint32_t id;

	(void)state;
	assert_int_equal(sim_irq_fd(t.dev, 1, fd, NULL), 0);
	sim_mmio_write(t.dev, HW_MSIX_TABLE + 16 + 12, 4, 0);
	endless();
	assert_int_equal(t_load(&t, &p, &id), 0);
	t_put(&t, &t.work, t_execute(&t, &p, id));
	t_ring_bell(&t, &t.work);
	assert_int_equal(t_admin(&t, HW_INJECT, HW_INJECT_FATAL, 0), 0);
	assert_int_equal(sim_mmio_read(t.dev, HW_REG_STATUS, 4), HW_STATUS_FATAL);
	assert_int_equal(sim_mmio_read(t.dev, HW_REG_FATAL, 4), 3);
	assert_int_equal(read(fd, &n, 8), 8);
	t_put(&t, &t.dma, (struct hw_sqe){ .op = HW_NOP });
	t_ring_bell(&t, &t.dma);
	t_put(&t, &t.admin, (struct hw_sqe){ .op = HW_NOP });
	t_ring_bell(&t, &t.admin);
	assert_false(t_poll(&t, &t.admin));
	/* Turning it off and on does not help. */
	sim_mmio_write(t.dev, HW_REG_CTRL, 4, 0);
	sim_mmio_write(t.dev, HW_REG_CTRL, 4, HW_CTRL_ENABLE);
	assert_int_equal(sim_mmio_read(t.dev, HW_REG_STATUS, 4), HW_STATUS_FATAL);
	sim_mmio_write(t.dev, HW_REG_CTRL, 4, HW_CTRL_RESET);
	assert_int_equal(sim_mmio_read(t.dev, HW_REG_CTRL, 4), 0);
	assert_int_equal(sim_mmio_read(t.dev, HW_REG_STATUS, 4), 0);
	assert_false(t_poll(&t, &t.work));
	assert_false(t_poll(&t, &t.dma));
	t_bring_up(&t);
	assert_int_equal(ras().fatal, before + 1);
	assert_int_equal(sim_irq_fd(t.dev, 1, -1, NULL), 0);
	close(fd);
}

/* The register says why, of what INJECT may say; the rest reads as injected. */
static void death_says_what_of(void **state)
{
	static const uint64_t values[][2] = {
		{ 0, HW_FATAL_INJECTED }, { 1, HW_FATAL_INJECTED }, { 7, HW_FATAL_INJECTED },
		{ 1ull << 32 | 4, HW_FATAL_INJECTED }, { 4, HW_FATAL_THERMAL },
		{ 5, HW_FATAL_FIRMWARE }, { 6, HW_FATAL_PCIE },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
		assert_int_equal(t_admin(&t, HW_INJECT, HW_INJECT_FATAL, values[i][0]), 0);
		assert_int_equal(sim_mmio_read(t.dev, HW_REG_FATAL, 4), values[i][1]);
		sim_mmio_write(t.dev, HW_REG_CTRL, 4, HW_CTRL_RESET);
		assert_int_equal(sim_mmio_read(t.dev, HW_REG_FATAL, 4), 0);
		t_bring_up(&t);
	}
}

/* One run of that engine makes no progress, and only that; whatever ends runs ends it. */
static void a_hang_lasts_until_it_is_stopped(void **state)
{
	struct hw_sqe copy = { .op = HW_COPY, .flags = HW_INLINE,
			       .u.copy = { T_HBM_VA, T_HBM_VA + 64, 8 } };
	int64_t began = clock_ns();
	uint32_t id;

	(void)state;
	t_program(&p);
	t_halt(&p);
	assert_int_equal(t_admin(&t, HW_INJECT, HW_INJECT_HANG, 0), HW_ST_BAD_FIELD);
	assert_int_equal(t_admin(&t, HW_INJECT, HW_INJECT_HANG, 3), HW_ST_BAD_FIELD);
	assert_int_equal(t_admin(&t, HW_INJECT, HW_INJECT_HANG, HW_CLASS_COMPUTE), 0);
	p.limit_ns = 20000000;
	assert_int_equal(t_ask(&t, &t.dma, copy), 0);
	assert_int_equal(t_run(&t, &p), HW_ST_WATCHDOG);
	assert_true(clock_ns() - began >= 20000000);
	assert_int_equal(t_run(&t, &p), 0);
	p.limit_ns = 0;
	assert_int_equal(t_load(&t, &p, &id), 0);
	assert_int_equal(t_admin(&t, HW_INJECT, HW_INJECT_HANG, HW_CLASS_COMPUTE), 0);
	t_put(&t, &t.work, t_execute(&t, &p, id));
	t_ring_bell(&t, &t.work);
	while (state_of(&t.work).is != HW_QUEUE_RUNNING)
		sched_yield();
	assert_int_equal(t_reset(&t, &t.work), 0);
	assert_int_equal(t_take(&t, &t.work), HW_ST_RESET);
	assert_int_equal(t_unload(&t, id), 0);
	/* Who rings the doorbell does not hang with it. */
	assert_int_equal(t_admin(&t, HW_INJECT, HW_INJECT_HANG, HW_CLASS_DMA), 0);
	t_put(&t, &t.dma, copy);
	t_ring_bell(&t, &t.dma);
	assert_int_equal(t_run(&t, &p), 0);
	assert_int_equal(t_admin(&t, HW_INJECT, HW_INJECT_FATAL, 0), 0);
	sim_flr(t.dev);
	t_bring_up(&t);
	assert_int_equal(t_ask(&t, &t.dma, copy), 0);
	/* A reset forgets one that has not come. */
	assert_int_equal(t_admin(&t, HW_INJECT, HW_INJECT_HANG, HW_CLASS_DMA), 0);
	sim_flr(t.dev);
	t_bring_up(&t);
	assert_int_equal(t_ask(&t, &t.dma, copy), 0);
}

static void a_bus_error_fails_a_copy_before_it_begins(void **state)
{
	uint64_t *word = (uint64_t *)t.hbm;
	struct hw_sqe fill = { .op = HW_FILL, .u.copy = { 7, T_HBM_VA, 64 } };

	(void)state;
	word[0] = 1;
	assert_int_equal(t_admin(&t, HW_INJECT, HW_INJECT_BUS, 2), 0);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(t_ask(&t, &t.dma, fill), HW_ST_BUS);
		t_last_fault(&t);
		assert_int_equal(t.fault.va, T_HBM_VA);
		assert_int_equal(t.fault.bytes, 64);
		assert_int_equal(word[0], 1);
		assert_int_equal(t_reset(&t, &t.dma), 0);
	}
	t_program(&p);
	t_halt(&p);
	assert_int_equal(t_run(&t, &p), 0);
	assert_int_equal(t_ask(&t, &t.dma, fill), 0);
	assert_int_equal(word[0], 7);
}

static void heat_and_power_follow_work(void **state)
{
	struct hw_telemetry idle, busy;

	(void)state;
	assert_int_equal(t_admin(&t, HW_LOG_PAGE, HW_LOG_TELEMETRY, 0), 0);
	memcpy(&idle, t_args(&t), sizeof(idle));
	assert_in_range(idle.temperature_mc, 35000, 80000);
	assert_in_range(idle.power_mw, 60000, 330000);
	endless();
	p.limit_ns = 60000000;
	assert_int_equal(t_run(&t, &p), HW_ST_WATCHDOG);
	assert_int_equal(t_admin(&t, HW_LOG_PAGE, HW_LOG_TELEMETRY, 0), 0);
	memcpy(&busy, t_args(&t), sizeof(busy));
	assert_true(busy.power_mw > idle.power_mw);
	assert_true(busy.temperature_mc >= idle.temperature_mc);
	assert_true(busy.busy_compute_ns - idle.busy_compute_ns >= 60000000);
	assert_true(busy.n_insn > idle.n_insn + 1000);
	assert_int_equal(busy.n_execute, idle.n_execute + 1);
	assert_int_equal(busy.n_fault, idle.n_fault + 1);
}

static struct hw_telemetry sensors(void)
{
	struct hw_telemetry now;

	assert_int_equal(t_admin(&t, HW_LOG_PAGE, HW_LOG_TELEMETRY, 0), 0);
	memcpy(&now, t_args(&t), sizeof(now));
	return now;
}

static struct hw_telemetry in_air(uint32_t mc)
{
	assert_int_equal(t_admin(&t, HW_INJECT, HW_INJECT_AIR, mc), 0);
	return sensors();
}

/* With an engine that did nothing since power on the air is all there is. */
static void heat_throttles_from_one_limit_to_another(void **state)
{
	static const struct { uint32_t air, throttle; } cases[] = {
		{ 35000, 0 }, { 89999, 0 }, { 90000, 1 }, { 89999, 1 }, { 85001, 1 }, { 85000, 0 },
		{ 89999, 0 }, { 100000, 1 },
	};
	struct hw_telemetry now, before;
	double seconds, busy, watts;

	(void)state;
	sim_flr(t.dev);
	t_bring_up(&t);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		now = in_air(cases[i].air);
		assert_int_equal(now.temperature_mc, cases[i].air);
		assert_int_equal(now.throttle, cases[i].throttle);
		assert_int_equal(now.clock_khz, cases[i].throttle ? 500000 : 1000000);
	}
	assert_int_equal(t_admin(&t, HW_INJECT, HW_INJECT_AIR, 100001), HW_ST_BAD_FIELD);
	before = sensors();
	assert_int_equal(before.temperature_mc, 100000);
	/* At half the clock half the power. */
	endless();
	p.limit_ns = 60000000;
	assert_int_equal(t_run(&t, &p), HW_ST_WATCHDOG);
	now = sensors();
	assert_true(now.throttle);
	seconds = (double)(now.time_ns - before.time_ns) / 1e9;
	busy = (double)(now.busy_compute_ns - before.busy_compute_ns) / 1e9 / seconds;
	watts = 60 + 120 * busy * -expm1(-seconds);
	assert_true(fabs(now.power_mw / 1e3 - watts) < 0.1);
	sim_flr(t.dev);
	t_bring_up(&t);
	now = sensors();
	assert_int_equal(now.temperature_mc, 35000);
	assert_int_equal(now.throttle, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_are_whole),
		cmocka_unit_test(short_instructions_stop_at_the_ends_of_memory),
		cmocka_unit_test(the_log_keeps_the_newest),
		cmocka_unit_test(each_watchdog_fires),
		cmocka_unit_test(a_limit_that_is_kept_does_nothing),
		cmocka_unit_test(no_limit_is_longer_than_the_longest),
		cmocka_unit_test(a_page_tells_which_queue_runs),
		cmocka_unit_test(lies_are_told_once),
		cmocka_unit_test(poison_is_found_when_read_and_healed_when_written),
		cmocka_unit_test(poison_between_two_pieces_is_healed_too),
		cmocka_unit_test(more_poisoned_pages_than_there_is_room_for_are_refused),
		cmocka_unit_test(the_fatal_state_is_loud_and_final),
		cmocka_unit_test(death_says_what_of),
		cmocka_unit_test(a_hang_lasts_until_it_is_stopped),
		cmocka_unit_test(a_bus_error_fails_a_copy_before_it_begins),
		cmocka_unit_test(heat_and_power_follow_work),
		cmocka_unit_test(heat_throttles_from_one_limit_to_another),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
