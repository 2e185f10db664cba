/* SPDX-License-Identifier: Apache-2.0 */
/* What instructions touch, and which operands may lie on which: against maps of bytes
 * for random ranges, and the rules of ISA.md#overlap family by family. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hal/hw/isa_access.h"

/* ---- against maps of bytes ---- */

#define MAP 4096

static uint32_t rnd(uint32_t n)
{
	static uint64_t seed = 7;

	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % n;
}

/* Notes which bytes of the map are touched once (1) and more often (3). */
static void draw(const struct isa_access *a, int64_t at, unsigned k, uint8_t *map)
{
	if (k == a->n) {
		for (unsigned i = 0; i < a->bytes; i++)
			map[at + i] |= map[at + i] ? 2 : 1;
		return;
	}
	for (int64_t i = 0; i < a->range[k].count; i++)
		draw(a, at + i * a->range[k].stride, k + 1, map);
}

/* Up to four ranges; sometimes nested as of an array, sometimes anything. */
static struct isa_access make(bool nested)
{
	struct isa_access a = { .bytes = 1u << rnd(4), .n = rnd(5) };
	int64_t step = a.bytes;

	for (unsigned k = 0; k < a.n; k++) {
		int64_t count = 2 * step * 8 > MAP / 8 ? 1 : 1 + rnd(4);

		a.range[k].count = count;
		if (count > 1)
			a.range[k].stride = nested ? step * (1 + rnd(2)) : (int64_t)rnd(60);
		if (rnd(3) == 0)
			a.range[k].stride = -a.range[k].stride;
		step *= count * (1 + (rnd(4) == 0));
	}
	a.distinct = (1u << a.n) - 1;
	return a;
}

static void two_accesses_meet_where_a_byte_is_in_both(void **state)
{
	unsigned met = 0, rounds = 40000;

	(void)state;
	for (unsigned round = 0; round < rounds; round++) {
		static uint8_t x[MAP], y[MAP];
		struct isa_access a = make(round & 1), b = make(round & 1);
		int64_t at = MAP / 2, to = MAP / 2 - 60 + (int64_t)rnd(120);
		bool want = false;

		memset(x, 0, sizeof(x));
		memset(y, 0, sizeof(y));
		draw(&a, at, 0, x);
		draw(&b, to, 0, y);
		for (unsigned i = 0; i < MAP; i++)
			want |= x[i] && y[i];
		assert_int_equal(isa_access_meet(&a, at, &b, to), want);
		assert_int_equal(isa_access_meet(&b, to, &a, at), want);
		met += want;
	}
	/* both answers are tried */
	assert_in_range(met, rounds / 10, rounds * 9 / 10);
}

static void a_span_is_from_the_first_byte_to_the_last(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 2000; round++) {
		static uint8_t x[MAP];
		struct isa_access a = make(round & 1);
		int64_t lo, hi, first = 0, last = MAP - 1;

		memset(x, 0, sizeof(x));
		draw(&a, MAP / 2, 0, x);
		while (!x[first])
			first++;
		while (!x[last])
			last--;
		isa_access_span(&a, &lo, &hi);
		assert_int_equal(lo, first - MAP / 2);
		assert_int_equal(hi, last + 1 - MAP / 2);
	}
}

static void a_write_repeats_where_a_byte_is_touched_twice(void **state)
{
	unsigned repeats = 0, rounds = 20000;

	(void)state;
	for (unsigned round = 0; round < rounds; round++) {
		static uint8_t x[MAP];
		struct isa_access a = make(round & 1);
		bool want = false;

		memset(x, 0, sizeof(x));
		draw(&a, MAP / 2, 0, x);
		for (unsigned i = 0; i < MAP; i++)
			want |= x[i] > 1;
		assert_int_equal(isa_repeats(&a), want);
		repeats += want;
	}
	assert_in_range(repeats, rounds / 10, rounds * 9 / 10);
}

static void large_arrays_are_told_apart_exactly(void **state)
{
	/* columns of a matrix of 1 Mi rows: left half, right half, one more */
	struct isa_access left = { .bytes = 4, .n = 2,
				   .range = { { 1 << 20, 256 }, { 32, 4 } } };
	struct isa_access more = { .bytes = 4, .n = 2,
				   .range = { { 1 << 20, 256 }, { 33, 4 } } };
	/* every other element, and a transposed square */
	struct isa_access even = { .bytes = 4, .n = 1, .range = { { 1 << 28, 8 } } };
	struct isa_access square = { .bytes = 4, .n = 2,
				     .range = { { 4096, 4 }, { 4096, 16384 } } };

	(void)state;
	assert_false(isa_access_meet(&left, 0, &left, 128));
	assert_true(isa_access_meet(&more, 0, &left, 128));
	assert_false(isa_access_meet(&even, 0, &even, 4));
	assert_true(isa_access_meet(&even, 0, &even, 16));
	assert_true(isa_access_meet(&square, 0, &left, 4096 * 16384 - 4));
	assert_false(isa_access_meet(&square, 0, &left, 4096 * 16384));
}

/* ---- the rules ---- */

/* An instruction of any family with its operands behind it. */
struct any {
	union {
		struct isa_insn insn;
		struct isa_tensor tensor;
		struct isa_copy copy;
		struct isa_gather gather;
		struct isa_scatter scatter;
		struct isa_sort sort;
		struct isa_rng rng;
		struct isa_fft fft;
		struct isa_mm mm;
		struct isa_conv conv;
		struct isa_scalar scalar;
		uint64_t room[4096];
	};
};

static struct any made;

static void *begin(unsigned op)
{
	memset(&made, 0, sizeof(made));
	made.insn.op = (uint16_t)op;
	return &made;
}

/* f32 at `offset` of one binding that all share, rows of 8, elements along the last dim. */
static struct isa_operand at(int64_t offset)
{
	return (struct isa_operand){ .elem = ELEM_F32, .offset = offset, .stride = { 32, 4 } };
}

static struct isa_body body(unsigned n_in, unsigned n_out)
{
	return (struct isa_body){ .rank = 2, .n_in = (uint8_t)n_in, .n_out = (uint8_t)n_out,
				  .dim = { 4, 8, 1, 1, 1, 1, 1, 1 } };
}

/* Whether the rules allow the instruction, all of whose bindings are one memory. */
static bool is_allowed(void)
{
	struct isa_access a[ISA_MAX_ACCESS];
	unsigned n = isa_accesses(&made.insn, a);

	for (unsigned i = 0; i < n; i++) {
		if (a[i].is_write && isa_repeats(&a[i]))
			return false;
		for (unsigned j = 0; j < i; j++)
			if (isa_conflict(&a[i], a[i].offset, &a[j], a[j].offset))
				return false;
	}
	return true;
}

#define APART 4096

static bool vec(struct isa_operand in, struct isa_operand out, struct isa_operand out2)
{
	struct isa_tensor *t = begin(ISA_VEC);
	struct isa_operand *op = (void *)(t + 1);

	t->body = body(1, 2);
	op[0] = in;
	op[1] = out;
	op[2] = out2;
	return is_allowed();
}

static void vec_stores_onto_an_input_element_for_element_only(void **state)
{
	struct isa_operand turned = at(0), back = at(28), still = at(0), wide = at(0);

	(void)state;
	turned.stride[0] = 4;
	turned.stride[1] = 16;
	back.stride[1] = -4;
	still.stride[1] = 0;
	wide.elem = ELEM_F64;
	wide.stride[0] = 64;
	wide.stride[1] = 8;
	assert_true(vec(at(0), at(0), at(APART)));
	assert_true(vec(turned, turned, at(APART)));
	assert_true(vec(at(0), at(APART), at(2 * APART)));
	assert_false(vec(at(0), at(4), at(APART)));
	assert_false(vec(turned, at(0), at(APART)));
	assert_false(vec(back, at(0), at(APART)));
	assert_false(vec(still, at(0), at(APART)));
	assert_false(vec(at(0), wide, at(APART)));
	/* two outputs, and one that writes an element twice */
	assert_false(vec(at(APART), at(0), at(0)));
	assert_true(vec(at(APART), at(0), at(128)));
	assert_false(vec(at(APART), still, at(2 * APART)));
}

static void vec_folds_into_memory_apart_from_its_inputs(void **state)
{
	struct isa_operand sum = at(0), still = at(0);

	(void)state;
	sum.stride[1] = still.stride[1] = 0;
	sum.combine = ISA_COMBINE_ADD;
	assert_true(vec(at(APART), sum, at(2 * APART)));
	assert_true(vec(at(128), sum, at(2 * APART)));
	assert_false(vec(at(96), sum, at(2 * APART)));
	assert_false(vec(still, sum, at(2 * APART)));
}

static void a_row_value_stands_still_along_its_row(void **state)
{
	struct isa_tensor *t = begin(ISA_VEC);
	struct isa_operand *op = (void *)(t + 1);
	struct isa_uop *u = (void *)(op + 2);

	(void)state;
	t->body = body(1, 1);
	t->body.n_uop = 1;
	t->body.row_rank = 1;
	op[0] = at(APART);
	op[1] = at(0);
	op[1].stride[1] = 0;
	op[1].value = 1;
	*u = (struct isa_uop){ .op = UOP_RMAX, .elem = ELEM_F32 };
	assert_true(is_allowed());
	u->op = UOP_NEG;
	assert_false(is_allowed());
}

static void empty_dims_touch_nothing_but_what_a_fold_leaves(void **state)
{
	struct isa_access a[ISA_MAX_ACCESS];
	struct isa_tensor *t = begin(ISA_VEC);
	struct isa_operand *op = (void *)(t + 1);

	(void)state;
	t->body = body(1, 2);
	t->body.dim[1] = 0;
	op[0] = op[1] = at(0);
	op[2] = at(APART);
	op[2].stride[1] = 0;
	op[2].combine = ISA_COMBINE_MAX;
	assert_int_equal(isa_accesses(&made.insn, a), 1);
	assert_int_equal(a[0].operand, 2);
	assert_int_equal(a[0].range[0].count, 4);
	op[2].flags = ISA_OPERAND_ACC;
	assert_int_equal(isa_accesses(&made.insn, a), 0);
}

static bool reduce(struct isa_operand init, struct isa_operand in, struct isa_operand out)
{
	struct isa_tensor *t = begin(ISA_REDUCE);
	struct isa_operand *op = (void *)(t + 1);

	t->reduce_dims = 2;
	t->body = body(2, 1);
	op[0] = init;
	op[1] = in;
	op[2] = out;
	op[0].stride[1] = op[2].stride[1] = 0;
	return is_allowed();
}

static void reduce_stores_onto_initial_values_and_operands_that_stand_still(void **state)
{
	struct isa_operand still = at(0);

	(void)state;
	still.stride[1] = 0;
	assert_true(reduce(at(0), at(APART), at(0)));
	assert_true(reduce(at(APART), still, at(0)));
	assert_false(reduce(at(4), at(APART), at(APART)));
	assert_false(reduce(at(32), at(APART), at(0)));
	assert_false(reduce(at(APART), at(0), at(0)));
}

static void copies_go_onto_themselves_or_elsewhere(void **state)
{
	struct isa_copy *c = begin(ISA_COPY);

	(void)state;
	c->rank = 2;
	c->elem_bytes = 4;
	c->dim[0] = 4;
	c->dim[1] = 8;
	c->src = c->dst = at(0);
	assert_true(is_allowed());
	c->dst.offset = 4;
	assert_false(is_allowed());
	c->dst.offset = 128;
	assert_true(is_allowed());
	c->dst = at(0);
	c->dst.stride[0] = -32;
	c->dst.offset = 96;
	assert_false(is_allowed());
}

/* What RPUT and RSIG write is another chip's, wherever it seems to be. */
static void puts_lie_on_nothing(void **state)
{
	struct isa_access a[ISA_MAX_ACCESS];
	struct isa_copy *c = begin(ISA_RPUT);
	struct isa_scalar *s;

	(void)state;
	c->rank = 1;
	c->elem_bytes = 4;
	c->dim[0] = 4;
	c->src = c->dst = at(0);
	c->dst.offset = 4;
	assert_true(is_allowed());
	assert_int_equal(isa_accesses(&c->insn, a), 2);
	assert_true(a[1].is_write && a[1].is_peer && !a[0].is_peer);
	s = begin(ISA_RSIG);
	s->elem = ELEM_U64;
	assert_int_equal(isa_accesses(&s->insn, a), 1);
	assert_true(a[0].is_write && a[0].is_peer);
	s->insn.op = ISA_RWAIT;
	assert_int_equal(isa_accesses(&s->insn, a), 1);
	assert_false(a[0].is_write || a[0].is_peer);
}

static bool gather(int64_t src, int64_t idx, int64_t dst)
{
	struct isa_gather *g = begin(ISA_GATHER);

	/* four windows of eight out of a table of 11 rows of 8 */
	g->rank = 2;
	g->n_batch = g->n_index = 1;
	g->dim[0] = 4;
	g->dim[1] = 8;
	g->index[0] = (struct isa_index){ .limit = 10, .step = 32 };
	g->src = at(src);
	g->src.stride[0] = 0;
	g->idx = at(idx);
	g->idx.stride[0] = 4;
	g->idx.stride[1] = 0;
	g->dst = at(dst);
	return is_allowed();
}

static void gather_reads_its_table_as_far_as_indices_reach(void **state)
{
	(void)state;
	assert_true(gather(0, APART, 352));
	assert_false(gather(0, APART, 348));
	assert_false(gather(0, APART, 0));
	assert_false(gather(0, APART, APART + 12));
	assert_true(gather(0, APART, APART + 16));
}

static bool scatter(int64_t idx, int64_t upd, int64_t dst, int64_t row)
{
	struct isa_scatter *s = begin(ISA_SCATTER);
	struct isa_operand *op = (void *)(s + 1);

	s->body = body(1, 1);
	s->n_batch = s->n_index = 1;
	s->index[0] = (struct isa_index){ .limit = 10, .step = 32 };
	s->idx = at(idx);
	s->idx.stride[0] = 4;
	s->idx.stride[1] = 0;
	op[0] = at(upd);
	op[1] = at(dst);
	op[1].stride[0] = 0;
	op[1].stride[1] = row;
	return is_allowed();
}

static void scatter_writes_apart_from_what_it_reads(void **state)
{
	(void)state;
	assert_true(scatter(APART, 2 * APART, 0, 4));
	assert_true(scatter(APART, 352, 0, 4));
	assert_false(scatter(APART, 348, 0, 4));
	assert_false(scatter(APART, 0, 0, 4));
	assert_false(scatter(320, APART, 0, 4));
	/* windows may meet, the points of one may not */
	assert_false(scatter(APART, 2 * APART, 0, 0));
}

static void sort_stores_onto_what_it_sorts(void **state)
{
	struct isa_sort *s = begin(ISA_SORT);
	struct isa_operand *op = (void *)(s + 1);

	(void)state;
	s->body = body(2, 2);
	op[0] = op[2] = at(0);
	op[1] = op[3] = at(APART);
	assert_true(is_allowed());
	op[2] = at(APART);
	op[3] = at(0);
	assert_true(is_allowed());
	op[3] = at(32);
	assert_false(is_allowed());
	op[3] = at(APART);
	assert_false(is_allowed());
}

static void rng_keeps_its_state_in_place_and_words_apart(void **state)
{
	struct isa_rng *r = begin(ISA_RNG);

	(void)state;
	r->state_words = 3;
	r->n_words = 100;
	r->state = r->new_state = at(0);
	r->out = at(24);
	assert_true(is_allowed());
	r->out.offset = 20;
	assert_false(is_allowed());
	r->out.offset = APART;
	r->new_state.offset = 8;
	assert_false(is_allowed());
}

/* Rows of eight points, 128 bytes apart, transformed one by one; src lies at 0. */
static bool fft(unsigned src, unsigned dst, int64_t offset)
{
	struct isa_fft *f = begin(ISA_FFT);

	f->rank = 2;
	f->axis = 1;
	f->dim[0] = 4;
	f->dim[1] = 8;
	f->src = (struct isa_operand){ .elem = (uint8_t)src, .stride = { 128, elem_bytes(src) } };
	f->dst = (struct isa_operand){ .elem = (uint8_t)dst, .offset = offset,
				       .stride = { 128, elem_bytes(dst) } };
	return is_allowed();
}

static void transforms_of_complex_lines_go_onto_themselves_or_elsewhere(void **state)
{
	(void)state;
	assert_true(fft(ELEM_C64, ELEM_C64, 0));
	assert_true(fft(ELEM_C128, ELEM_C128, 0));
	assert_false(fft(ELEM_C64, ELEM_C64, 8));
	assert_false(fft(ELEM_C64, ELEM_C64, 56));
	assert_true(fft(ELEM_C64, ELEM_C64, 64));
	assert_false(fft(ELEM_C64, ELEM_C64, 128));
	assert_false(fft(ELEM_C128, ELEM_C128, 128));
	assert_true(fft(ELEM_C64, ELEM_C64, 512));
	/* element for element: not with other steps, nor with one element at two points */
	made.fft.dst.offset = 0;
	made.fft.dst.stride[1] = 16;
	assert_false(is_allowed());
	made.fft.dst.offset = APART;
	assert_true(is_allowed());
	made.fft.dst.stride[1] = 0;
	assert_false(is_allowed());
}

/* 8 real points, 32 bytes, and the 5 elements, 40 bytes, that they become. */
static void transforms_of_real_lines_lie_apart_as_far_as_they_reach(void **state)
{
	(void)state;
	assert_false(fft(ELEM_F32, ELEM_C64, 0));
	assert_false(fft(ELEM_F32, ELEM_C64, 24));
	assert_true(fft(ELEM_F32, ELEM_C64, 32));
	assert_true(fft(ELEM_F32, ELEM_C64, 128 - 40));
	assert_false(fft(ELEM_F32, ELEM_C64, 128 - 32));
	assert_false(fft(ELEM_C64, ELEM_F32, 0));
	assert_false(fft(ELEM_C64, ELEM_F32, 36));
	assert_true(fft(ELEM_C64, ELEM_F32, 40));
	assert_true(fft(ELEM_C64, ELEM_F32, 128 - 32));
	assert_false(fft(ELEM_C64, ELEM_F32, 128 - 28));
	assert_true(fft(ELEM_F64, ELEM_C128, 512));
	/* nor on each other where lines are of one point */
	made.fft.dim[0] = made.fft.dim[1] = 1;
	made.fft.dst.offset = 0;
	assert_false(is_allowed());
}

static void transforms_count_the_elements_of_either_side(void **state)
{
	static const struct { unsigned src, dst; int64_t n, read, written; } forms[] = {
		{ ELEM_C64, ELEM_C64, 8, 8, 8 }, { ELEM_C128, ELEM_C128, 7, 7, 7 },
		{ ELEM_F32, ELEM_C64, 8, 8, 5 }, { ELEM_F64, ELEM_C128, 7, 7, 4 },
		{ ELEM_C64, ELEM_F32, 8, 5, 8 }, { ELEM_C128, ELEM_F64, 7, 4, 7 },
		{ ELEM_F32, ELEM_C64, 1, 1, 1 }, { ELEM_C64, ELEM_F32, 2, 2, 2 },
	};
	struct isa_access a[ISA_MAX_ACCESS];

	(void)state;
	for (unsigned i = 0; i < sizeof(forms) / sizeof(*forms); i++)
		for (unsigned axis = 0; axis < 2; axis++) {
			fft(forms[i].src, forms[i].dst, APART);
			made.fft.axis = (uint8_t)axis;
			made.fft.dim[axis] = forms[i].n;
			made.fft.dim[!axis] = 3;
			made.fft.dst.reg = 9;
			assert_int_equal(isa_accesses(&made.insn, a), 2);
			assert_int_equal(a[0].operand, 0);
			assert_int_equal(a[0].bytes, elem_bytes(forms[i].src));
			assert_int_equal(a[0].range[axis].count, forms[i].read);
			assert_int_equal(a[0].range[!axis].count, 3);
			assert_false(a[0].is_write);
			assert_int_equal(a[1].operand, 1);
			assert_int_equal(a[1].reg, 9);
			assert_int_equal(a[1].bytes, elem_bytes(forms[i].dst));
			assert_int_equal(a[1].range[axis].count, forms[i].written);
			assert_int_equal(a[1].range[!axis].count, 3);
			assert_true(a[1].is_write && !a[1].is_acc && !a[1].is_peer);
			assert_int_equal(a[0].may_match, forms[i].src == forms[i].dst);
			assert_int_equal(a[1].may_match, forms[i].src == forms[i].dst);
		}
	made.fft.dim[1] = 0;
	assert_int_equal(isa_accesses(&made.insn, a), 0);
	made.fft.dim[0] = 0;
	made.fft.dim[1] = 8;
	assert_int_equal(isa_accesses(&made.insn, a), 0);
}

static bool mm(struct isa_operand a, struct isa_operand in, struct isa_operand out)
{
	struct isa_mm *m = begin(ISA_MM);
	struct isa_operand *op = (void *)(m + 1);

	m->body = body(1, 1);
	m->acc = ELEM_F32;
	m->k = 8;
	m->a = a;
	m->a.stride[1] = 0;
	m->a_k_stride = 4;
	m->b = at(2 * APART);
	m->b.stride[0] = 0;
	m->b_k_stride = 32;
	op[0] = in;
	op[1] = out;
	return is_allowed();
}

/* Who checks hostile code asks before it knows that the types are any. */
static void types_that_there_are_not_count_as_no_real_ones(void **state)
{
	static const uint8_t none[] = { 0, ELEM_COUNT, 255 };

	(void)state;
	for (unsigned i = 0; i < sizeof(none); i++) {
		struct isa_fft f = { .rank = 1, .dim = { 8 }, .src.elem = none[i],
				     .dst.elem = none[i] };
		int64_t src, dst;

		isa_fft_counts(&f, &src, &dst);
		assert_int_equal(src, 8);
		assert_int_equal(dst, 8);
		f.src.elem = ELEM_F32;
		isa_fft_counts(&f, &src, &dst);
		assert_int_equal(src, 8);
		assert_int_equal(dst, 5);
	}
}

static void products_store_onto_inputs_of_the_body_not_onto_their_sides(void **state)
{
	(void)state;
	assert_true(mm(at(APART), at(0), at(0)));
	assert_false(mm(at(APART), at(4), at(0)));
	assert_false(mm(at(APART), at(0), at(APART)));
	assert_false(mm(at(APART), at(0), at(APART + 124)));
	assert_true(mm(at(APART), at(0), at(APART + 128)));
	assert_false(mm(at(APART), at(0), at(2 * APART + 252)));
	assert_true(mm(at(APART), at(0), at(2 * APART + 256)));
	made.mm.k = 0;
	((struct isa_operand *)(void *)(&made.mm + 1))[1] = at(APART);
	assert_true(is_allowed());
}

static void convolutions_store_apart_from_their_sides(void **state)
{
	struct isa_conv *c = begin(ISA_CONV);
	struct isa_operand *op = (void *)(c + 1);

	(void)state;
	/* 4 batches, 8 features out of 2, no spatial dims */
	c->body = body(1, 1);
	c->in_features = 2;
	c->feature_groups = c->batch_groups = 1;
	c->lhs = at(APART);
	c->lhs.stride[0] = 8;
	c->rhs = at(2 * APART);
	c->rhs.stride[0] = 8;
	op[0] = op[1] = at(0);
	assert_true(is_allowed());
	op[1] = at(APART + 28);
	assert_false(is_allowed());
	op[1] = at(APART + 32);
	assert_true(is_allowed());
	op[1] = at(2 * APART + 60);
	assert_false(is_allowed());
	/* a kernel of nothing is not read */
	c->in_features = 0;
	assert_true(is_allowed());
}

static void loads_and_stores_are_one_element(void **state)
{
	struct isa_access a[ISA_MAX_ACCESS];
	struct isa_scalar *s = begin(ISA_ST);

	(void)state;
	s->elem = ELEM_S16;
	s->binding = 3;
	s->ra = 5;
	s->imm = 24;
	assert_int_equal(isa_accesses(&made.insn, a), 1);
	assert_true(a[0].is_write);
	assert_int_equal(a[0].bytes, 2);
	assert_int_equal(a[0].binding, 3);
	assert_int_equal(a[0].reg, 5);
	assert_int_equal(a[0].offset, 24);
	s->insn.op = ISA_LD;
	assert_int_equal(isa_accesses(&made.insn, a), 1);
	assert_false(a[0].is_write);
	s->insn.op = ISA_LI;
	assert_int_equal(isa_accesses(&made.insn, a), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_accesses_meet_where_a_byte_is_in_both),
		cmocka_unit_test(a_span_is_from_the_first_byte_to_the_last),
		cmocka_unit_test(a_write_repeats_where_a_byte_is_touched_twice),
		cmocka_unit_test(large_arrays_are_told_apart_exactly),
		cmocka_unit_test(vec_stores_onto_an_input_element_for_element_only),
		cmocka_unit_test(vec_folds_into_memory_apart_from_its_inputs),
		cmocka_unit_test(a_row_value_stands_still_along_its_row),
		cmocka_unit_test(empty_dims_touch_nothing_but_what_a_fold_leaves),
		cmocka_unit_test(reduce_stores_onto_initial_values_and_operands_that_stand_still),
		cmocka_unit_test(copies_go_onto_themselves_or_elsewhere),
		cmocka_unit_test(puts_lie_on_nothing),
		cmocka_unit_test(gather_reads_its_table_as_far_as_indices_reach),
		cmocka_unit_test(scatter_writes_apart_from_what_it_reads),
		cmocka_unit_test(sort_stores_onto_what_it_sorts),
		cmocka_unit_test(rng_keeps_its_state_in_place_and_words_apart),
		cmocka_unit_test(transforms_of_complex_lines_go_onto_themselves_or_elsewhere),
		cmocka_unit_test(transforms_of_real_lines_lie_apart_as_far_as_they_reach),
		cmocka_unit_test(transforms_count_the_elements_of_either_side),
		cmocka_unit_test(types_that_there_are_not_count_as_no_real_ones),
		cmocka_unit_test(products_store_onto_inputs_of_the_body_not_onto_their_sides),
		cmocka_unit_test(convolutions_store_apart_from_their_sides),
		cmocka_unit_test(loads_and_stores_are_one_element),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
