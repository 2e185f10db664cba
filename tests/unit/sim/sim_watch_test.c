/* SPDX-License-Identifier: Apache-2.0 */
/* A model that checks: it stops programs whose operands lie on each other as ISA.md
 * forbids, and those that read HBM which nothing wrote; nothing else. */
#include "tests/unit/sim/sim_test.h"

#define PAGE ((uint64_t)HW_PAGE)
#define RW (HW_BIND_READ | HW_BIND_WRITE)

static void fill(struct t_sim *t, uint64_t va, uint64_t bytes)
{
	assert_int_equal(t_ask(t, &t->dma, (struct hw_sqe){ .op = HW_FILL,
			 .u.copy = { .src = 0, .dst = va, .bytes = bytes } }), 0);
}

static void copy(struct t_sim *t, uint64_t dst, uint64_t src, uint64_t bytes)
{
	assert_int_equal(t_ask(t, &t->dma, (struct hw_sqe){ .op = HW_COPY,
			 .u.copy = { .src = src, .dst = dst, .bytes = bytes } }), 0);
}

static struct isa_operand at(unsigned binding, int64_t offset, unsigned reg)
{
	return (struct isa_operand){ .elem = ELEM_S32, .binding = (uint16_t)binding,
				     .reg = (uint8_t)reg, .offset = offset, .stride = { 4 } };
}

/* COPY of n elements of 4 bytes. */
static size_t add_copy(struct t_program *p, int64_t n, struct isa_operand src,
		       struct isa_operand dst)
{
	struct isa_copy c = { .insn = { ISA_COPY, 0, sizeof(c) }, .rank = 1, .elem_bytes = 4,
			      .dim = { n, 1, 1, 1, 1, 1, 1, 1 }, .src = src, .dst = dst };

	return t_add(p, &c, sizeof(c));
}

/* ---- operands ---- */

/* Copies 100 elements from 0 of binding 0 to `by` of binding 1, both in one memory. */
static unsigned run_shifted(struct t_sim *t, int64_t by, bool by_register, size_t *where)
{
	struct t_program p;

	t_program(&p);
	t_bind(&p, T_HBM_VA, PAGE, HW_BIND_READ);
	t_bind(&p, T_HBM_VA, PAGE, RW);
	t_li(&p, 5, by);
	*where = add_copy(&p, 100, at(0, 0, 0), at(1, by_register ? 0 : by, by_register ? 5 : 0));
	t_halt(&p);
	return t_run(t, &p);
}

static void an_output_over_another_element_is_stopped(void **state)
{
	struct t_sim t;
	size_t where;

	(void)state;
	t_open(&t, "lanes=1,check");
	fill(&t, T_HBM_VA, PAGE);
	for (unsigned by_register = 0; by_register < 2; by_register++) {
		assert_int_equal(run_shifted(&t, 0, by_register, &where), 0);
		assert_int_equal(run_shifted(&t, 400, by_register, &where), 0);
		assert_int_equal(run_shifted(&t, 396, by_register, &where), HW_ST_OPERANDS);
		assert_int_equal(t.fault.status, HW_ST_OPERANDS);
		assert_int_equal(t.fault.pc, where);
		assert_int_equal(t.fault.operand, 1);
		assert_int_equal(t.fault.binding, 1);
		assert_int_equal(t.fault.va, 396);
		assert_int_equal(t.fault.bytes, 0);
		assert_true(t.fault.is_write);
	}
	t_close(&t);
	/* Without the option, the same runs. */
	t_open(&t, "lanes=1");
	assert_int_equal(run_shifted(&t, 396, true, &where), 0);
	t_close(&t);
}

static void two_pages_of_one_memory_are_one_place(void **state)
{
	struct t_program p;
	struct t_sim t;

	(void)state;
	t_open(&t, "lanes=1,check");
	/* the same page of HBM at another address, and host memory at two */
	assert_int_equal(t_map(&t, t.ctx, 1 << 20, 0, PAGE, HW_MAP_WRITE), 0);
	assert_int_equal(t_map(&t, t.ctx, 2 << 20, T_IOVA + T_WINDOW * PAGE, PAGE,
			       HW_MAP_WRITE | HW_MAP_HOST), 0);
	fill(&t, T_HBM_VA, PAGE);
	for (unsigned host = 0; host < 2; host++) {
		t_program(&p);
		t_bind(&p, host ? T_HOST_VA : T_HBM_VA, PAGE, HW_BIND_READ);
		t_bind(&p, host ? 2 << 20 : 1 << 20, PAGE, RW);
		add_copy(&p, 10, at(0, 0, 0), at(1, 4, 0));
		t_halt(&p);
		assert_int_equal(t_run(&t, &p), HW_ST_OPERANDS);
	}
	t_close(&t);
}

static void an_output_that_writes_twice_is_stopped(void **state)
{
	struct isa_operand still = at(1, 64, 0);
	struct t_program p;
	struct t_sim t;

	(void)state;
	t_open(&t, "lanes=1,check");
	fill(&t, T_HBM_VA, PAGE);
	still.stride[0] = 0;
	t_program(&p);
	t_bind(&p, T_HBM_VA, PAGE, HW_BIND_READ);
	t_bind(&p, T_HBM_VA + PAGE, PAGE, RW);
	add_copy(&p, 10, at(0, 0, 0), still);
	t_halt(&p);
	assert_int_equal(t_run(&t, &p), HW_ST_OPERANDS);
	assert_int_equal(t.fault.operand, 1);
	assert_int_equal(t.fault.bytes, 1);
	t_close(&t);
}

/* ---- reads ---- */

/* Copies n elements at T_HBM_VA to another page. */
static unsigned run_read(struct t_sim *t, int64_t n)
{
	struct t_program p;

	t_program(&p);
	t_bind(&p, T_HBM_VA, PAGE, HW_BIND_READ);
	t_bind(&p, T_HBM_VA + PAGE, PAGE, RW);
	add_copy(&p, n, at(0, 0, 0), at(1, 0, 0));
	t_halt(&p);
	return t_run(t, &p);
}

static void what_nothing_wrote_is_not_read(void **state)
{
	struct t_sim t;

	(void)state;
	t_open(&t, "lanes=1,check");
	assert_int_equal(run_read(&t, 1), HW_ST_UNWRITTEN);
	assert_int_equal(t.fault.operand, 0);
	assert_int_equal(t.fault.binding, 0);
	assert_int_equal(t.fault.va, 0);
	assert_false(t.fault.is_write);
	/* to the byte, on both sides of a word of the record and far from one */
	for (unsigned i = 0; i < 3; i++) {
		static const uint64_t bytes[] = { 63, 64, 1023 };

		sim_discard(t.dev, 0, PAGE);
		fill(&t, T_HBM_VA, bytes[i]);
		assert_int_equal(run_read(&t, (int64_t)bytes[i] / 4), 0);
		assert_int_equal(run_read(&t, (int64_t)bytes[i] / 4 + 1), HW_ST_UNWRITTEN);
		assert_int_equal(t.fault.va, bytes[i]);
		fill(&t, T_HBM_VA + bytes[i], 4);
		assert_int_equal(run_read(&t, (int64_t)bytes[i] / 4 + 1), 0);
	}
	t_close(&t);
	t_open(&t, "lanes=1");
	assert_int_equal(run_read(&t, 1), 0);
	t_close(&t);
}

static void what_is_allocated_anew_is_not_written(void **state)
{
	const uint64_t large = 64 << 20;
	struct t_sim t;

	(void)state;
	t_open(&t, "lanes=1,check");
	fill(&t, T_HBM_VA, large);
	sim_discard(t.dev, 64, 64);
	assert_int_equal(run_read(&t, 16), 0);
	assert_int_equal(run_read(&t, 17), HW_ST_UNWRITTEN);
	/* a large part, not from a page of the record to a page */
	fill(&t, T_HBM_VA, large);
	sim_discard(t.dev, 128, large - 256);
	assert_int_equal(run_read(&t, 32), 0);
	assert_int_equal(run_read(&t, 33), HW_ST_UNWRITTEN);
	copy(&t, T_HBM_VA, T_HBM_VA + large - 128, 128);
	assert_int_equal(run_read(&t, 32), 0);
	copy(&t, T_HBM_VA, T_HBM_VA + large - 132, 128);
	assert_int_equal(run_read(&t, 1), HW_ST_UNWRITTEN);
	t_close(&t);
}

static void copies_carry_along_what_is_written(void **state)
{
	struct t_sim t;

	(void)state;
	t_open(&t, "lanes=1,check");
	/* bytes 13 to 413 of one page to 1 of the other, over all alignments */
	fill(&t, T_HBM_VA + 2 * PAGE + 13, 400);
	copy(&t, T_HBM_VA + 1, T_HBM_VA + 2 * PAGE + 13, 420);
	assert_int_equal(run_read(&t, 1), HW_ST_UNWRITTEN);
	assert_int_equal(t.fault.va, 0);
	fill(&t, T_HBM_VA, 1);
	assert_int_equal(run_read(&t, 100), 0);
	assert_int_equal(run_read(&t, 101), HW_ST_UNWRITTEN);
	assert_int_equal(t.fault.va, 401);
	/* a copy of nothing takes away, one from the host gives */
	copy(&t, T_HBM_VA, T_HBM_VA + 8 * PAGE, 128);
	assert_int_equal(run_read(&t, 1), HW_ST_UNWRITTEN);
	copy(&t, T_HBM_VA, T_HOST_VA, 128);
	assert_int_equal(run_read(&t, 100), 0);
	t_close(&t);
}

static void scratch_is_empty_when_a_program_begins(void **state)
{
	struct t_program p;
	struct t_sim t;

	(void)state;
	t_open(&t, "lanes=1,check");
	fill(&t, T_HBM_VA, 2 * PAGE);
	for (unsigned writes = 0; writes < 2; writes++)
		for (unsigned scratch = 0; scratch < 2; scratch++) {
			t_program(&p);
			t_bind(&p, T_HBM_VA, PAGE, HW_BIND_READ);
			t_bind(&p, T_HBM_VA + PAGE, PAGE, RW | (scratch ? HW_BIND_SCRATCH : 0));
			t_bind(&p, T_HBM_VA + 2 * PAGE, PAGE, RW);
			if (writes)
				add_copy(&p, 100, at(0, 0, 0), at(1, 0, 0));
			add_copy(&p, 100, at(1, 0, 0), at(2, 0, 0));
			t_halt(&p);
			fill(&t, T_HBM_VA + PAGE, PAGE);
			assert_int_equal(t_run(&t, &p),
					 scratch && !writes ? HW_ST_UNWRITTEN : 0);
		}
	t_close(&t);
}

static void loads_and_stores_count(void **state)
{
	struct isa_scalar ld = { .insn.op = ISA_LD, .rd = 1, .elem = ELEM_S32, .imm = 8 };
	struct isa_scalar st = { .insn.op = ISA_ST, .rb = 1, .elem = ELEM_S16, .imm = 8 };

	(void)state;
	for (unsigned stores = 0; stores < 3; stores++) {
		struct t_program p;
		struct t_sim t;

		t_open(&t, "lanes=1,check");
		t_program(&p);
		t_bind(&p, T_HBM_VA, PAGE, RW);
		st.imm = 8;
		for (unsigned i = 0; i < stores; i++, st.imm += 2)
			t_scalar(&p, st);
		t_scalar(&p, ld);
		t_halt(&p);
		assert_int_equal(t_run(&t, &p), stores == 2 ? 0 : HW_ST_UNWRITTEN);
		if (stores < 2)
			assert_int_equal(t.fault.va, 8 + 2 * stores);
		t_close(&t);
	}
}

/* ---- indices ---- */

/* Two windows of 4 elements; the table has 8 rows of them at T_HBM_VA, indices are on page
 * 1, updates on page 2, what is gathered on page 3. */
static void bind_table(struct t_program *p)
{
	t_program(p);
	for (uint64_t i = 0; i < 4; i++)
		t_bind(p, T_HBM_VA + i * PAGE, PAGE, RW);
}

static unsigned run_gather_by(struct t_sim *t, int64_t wrap, uint16_t flags)
{
	struct isa_gather g = { .insn = { ISA_GATHER, flags, sizeof(g) }, .rank = 2, .n_batch = 1,
				.n_index = 1, .dim = { 2, 4, 1, 1, 1, 1, 1, 1 },
				.index_stride = 4,
				.index = { { .limit = 7, .step = 16, .wrap = wrap } } };
	struct t_program p;

	bind_table(&p);
	g.src = at(0, 0, 0);
	g.src.stride[0] = 0;
	g.src.stride[1] = 4;
	g.idx = at(1, 0, 0);
	g.dst = at(3, 0, 0);
	g.dst.stride[0] = 16;
	g.dst.stride[1] = 4;
	t_add(&p, &g, sizeof(g));
	t_halt(&p);
	return t_run(t, &p);
}

static unsigned run_gather(struct t_sim *t)
{
	return run_gather_by(t, 0, 0);
}

/* Puts the updates in place, or adds them. */
static unsigned run_scatter(struct t_sim *t, bool adds)
{
	struct isa_scatter s = { .insn = { ISA_SCATTER, 0, 0 }, .n_batch = 1, .n_index = 1,
				 .index_stride = 4, .index = { { .limit = 7, .step = 16 } },
				 .body = { .rank = 2, .n_in = 1, .n_out = 1, .n_uop = adds,
					   .dim = { 2, 4, 1, 1, 1, 1, 1, 1 } } };
	struct isa_uop add = { .op = UOP_ADD, .elem = ELEM_S32, .a = 0, .b = 1 };
	struct isa_operand upd = at(2, 0, 0), dst = at(0, 0, 0);
	struct t_program p;

	bind_table(&p);
	s.idx = at(1, 0, 0);
	upd.stride[0] = 16;
	dst.stride[0] = 0;
	upd.stride[1] = dst.stride[1] = 4;
	dst.value = adds ? 2 : 1;
	s.insn.bytes = (uint32_t)(sizeof(s) + 2 * sizeof(upd) + adds * sizeof(add));
	t_add(&p, &s, sizeof(s));
	t_add(&p, &upd, sizeof(upd));
	t_add(&p, &dst, sizeof(dst));
	if (adds)
		t_add(&p, &add, sizeof(add));
	t_halt(&p);
	return t_run(t, &p);
}

static void set_indices(struct t_sim *t, int32_t a, int32_t b)
{
	memcpy(t->window, (int32_t[]){ a, b }, 8);
	copy(t, T_HBM_VA + PAGE, T_HOST_VA, 8);
}

static void gather_reads_the_windows_that_its_indices_name(void **state)
{
	struct t_sim t;

	(void)state;
	t_open(&t, "lanes=1,check");
	fill(&t, T_HBM_VA + 7 * 16, 16);
	fill(&t, T_HBM_VA + 2 * 16, 16);
	assert_int_equal(run_gather(&t), HW_ST_UNWRITTEN);
	assert_int_equal(t.fault.operand, 1);
	set_indices(&t, 2, 100);	/* clamped to 7 */
	assert_int_equal(run_gather(&t), 0);
	set_indices(&t, 2, 3);
	assert_int_equal(run_gather(&t), HW_ST_UNWRITTEN);
	assert_int_equal(t.fault.operand, 0);
	assert_int_equal(t.fault.va, 48);
	set_indices(&t, 2, -1);		/* wrapped to 7 */
	assert_int_equal(run_gather_by(&t, 8, 0), 0);
	set_indices(&t, 2, -5);		/* wrapped to 3 */
	assert_int_equal(run_gather_by(&t, 8, 0), HW_ST_UNWRITTEN);
	assert_int_equal(t.fault.va, 48);
	set_indices(&t, 2, -9);		/* clamped to 0, or filled */
	assert_int_equal(run_gather_by(&t, 8, 0), HW_ST_UNWRITTEN);
	assert_int_equal(t.fault.va, 0);
	assert_int_equal(run_gather_by(&t, 8, ISA_FLAG_FILL), 0);
	t_close(&t);
}

static void scatter_writes_the_windows_that_its_indices_name(void **state)
{
	struct t_sim t;

	(void)state;
	t_open(&t, "lanes=1,check");
	fill(&t, T_HBM_VA + 2 * PAGE, 32);
	set_indices(&t, 1, 100);	/* the second is skipped */
	assert_int_equal(run_scatter(&t, true), HW_ST_UNWRITTEN);
	assert_int_equal(t.fault.operand, 3);
	assert_int_equal(t.fault.va, 16);
	assert_int_equal(run_scatter(&t, false), 0);
	assert_int_equal(run_scatter(&t, true), 0);
	set_indices(&t, 1, 7);
	assert_int_equal(run_gather(&t), HW_ST_UNWRITTEN);
	assert_int_equal(t.fault.va, 112);
	set_indices(&t, 1, 1);
	assert_int_equal(run_gather(&t), 0);
	t_close(&t);
}

/* ---- transforms ---- */

/* 8 points from T_HBM_VA to page 1, one of both types real. */
static unsigned run_fft(struct t_sim *t, unsigned src, unsigned dst)
{
	struct isa_fft f = { .insn = { ISA_FFT, 0, sizeof(f) }, .rank = 1, .scale = 1,
			     .dim = { 8, 1, 1, 1, 1, 1, 1, 1 }, .src = at(0, 0, 0),
			     .dst = at(1, 0, 0) };
	struct t_program p;

	t_program(&p);
	t_bind(&p, T_HBM_VA, PAGE, HW_BIND_READ);
	t_bind(&p, T_HBM_VA + PAGE, PAGE, RW);
	f.insn.flags = dst == ELEM_F32 ? ISA_FLAG_INVERSE : 0;
	f.src.elem = (uint8_t)src;
	f.dst.elem = (uint8_t)dst;
	f.src.stride[0] = elem_bytes(src);
	f.dst.stride[0] = elem_bytes(dst);
	t_add(&p, &f, sizeof(f));
	t_halt(&p);
	return t_run(t, &p);
}

static void transforms_touch_the_halves_of_real_lines(void **state)
{
	struct t_sim t;

	(void)state;
	t_open(&t, "lanes=1,check");
	fill(&t, T_HBM_VA, 36);
	assert_int_equal(run_fft(&t, ELEM_C64, ELEM_F32), HW_ST_UNWRITTEN);
	assert_int_equal(t.fault.operand, 0);
	assert_int_equal(t.fault.va, 36);
	/* five elements become eight */
	fill(&t, T_HBM_VA, 40);
	assert_int_equal(run_fft(&t, ELEM_C64, ELEM_F32), 0);
	copy(&t, T_HBM_VA, T_HBM_VA + PAGE, PAGE);
	assert_int_equal(run_read(&t, 8), 0);
	assert_int_equal(run_read(&t, 9), HW_ST_UNWRITTEN);
	/* and eight five */
	assert_int_equal(run_fft(&t, ELEM_F32, ELEM_C64), 0);
	copy(&t, T_HBM_VA, T_HBM_VA + PAGE, PAGE);
	assert_int_equal(run_read(&t, 10), 0);
	assert_int_equal(run_read(&t, 11), HW_ST_UNWRITTEN);
	t_close(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_output_over_another_element_is_stopped),
		cmocka_unit_test(two_pages_of_one_memory_are_one_place),
		cmocka_unit_test(an_output_that_writes_twice_is_stopped),
		cmocka_unit_test(what_nothing_wrote_is_not_read),
		cmocka_unit_test(what_is_allocated_anew_is_not_written),
		cmocka_unit_test(copies_carry_along_what_is_written),
		cmocka_unit_test(scratch_is_empty_when_a_program_begins),
		cmocka_unit_test(loads_and_stores_count),
		cmocka_unit_test(gather_reads_the_windows_that_its_indices_name),
		cmocka_unit_test(scatter_writes_the_windows_that_its_indices_name),
		cmocka_unit_test(transforms_touch_the_halves_of_real_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
