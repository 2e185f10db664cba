/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether accesses meet (back/alias.h), by counting bytes; and the check of finished code
 * (back/verify.h), by programs built wrong in one place each, beside the right ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hal/base/err.h"
#include "runtime/compiler/back/alias.h"
#include "runtime/compiler/back/verify.h"

static uint32_t seed = 1;

static int64_t pick(int64_t low, int64_t high)
{
	seed = seed * 1664525u + 1013904223u;
	return low + (int64_t)(seed >> 8) % (high - low + 1);
}

/* ---- alias ---- */

enum { LINE = 4096, MIDDLE = LINE / 2, ROOM = 4096 };

struct shape { unsigned n, bytes; int64_t offset, dim[4], stride[4]; };

static void pick_shape(struct shape *s)
{
	s->n = (unsigned)pick(0, 4);
	s->bytes = 1u << pick(0, 3);
	s->offset = MIDDLE + pick(-40, 40);
	for (unsigned d = 0; d < s->n; d++) {
		s->dim[d] = pick(0, 9) ? pick(1, 5) : 0;
		s->stride[d] = pick(0, 3) ? pick(-4, 4) * (int64_t)s->bytes : pick(-30, 30);
	}
}

static struct tc_walk walk_of(const struct shape *s)
{
	struct tc_walk w;

	tc_walk_start(&w, 1, 0, s->offset, s->bytes);
	for (unsigned d = 0; d < s->n; d++)
		tc_walk_dim(&w, s->dim[d], s->stride[d]);
	return w;
}

/* Marks the bytes, and lists the elements' addresses in order; their number. */
static size_t visit(const struct shape *s, uint8_t *line, int64_t *list)
{
	size_t count = 1;

	for (unsigned d = 0; d < s->n; d++)
		count *= (size_t)s->dim[d];
	for (size_t i = 0; i < count; i++) {
		int64_t at = s->offset;
		size_t rest = i;

		for (unsigned d = s->n; d-- > 0;) {
			at += (int64_t)(rest % (size_t)s->dim[d]) * s->stride[d];
			rest /= (size_t)s->dim[d];
		}
		memset(line + at, 1, s->bytes);
		list[i] = at;
	}
	return count;
}

static enum tc_alias by_counting(const struct shape *a, const struct shape *b)
{
	static uint8_t lines[2][LINE];
	static int64_t lists[2][ROOM];
	size_t na, nb;

	memset(lines, 0, sizeof(lines));
	na = visit(a, lines[0], lists[0]);
	nb = visit(b, lines[1], lists[1]);
	if (na && na == nb && a->bytes == b->bytes && !memcmp(lists[0], lists[1], na * 8))
		return TC_EQUAL;
	for (unsigned i = 0; i < LINE; i++)
		if (lines[0][i] && lines[1][i])
			return TC_OVERLAP;
	return TC_APART;
}

static void walks_meet_exactly_when_they_have_a_byte_in_common(void **state)
{
	unsigned seen[3] = { 0 };

	(void)state;
	for (unsigned i = 0; i < 200000; i++) {
		struct shape a, b;
		struct tc_walk wa, wb;
		enum tc_alias want, got;

		pick_shape(&a);
		pick_shape(&b);
		if (!(i % 4)) {
			/* The same but in one place, at most. */
			b = a;
			if (b.n && i % 8)
				b.stride[pick(0, b.n - 1)] += pick(-1, 1) * (int64_t)b.bytes;
		}
		wa = walk_of(&a);
		wb = walk_of(&b);
		want = by_counting(&a, &b);
		got = tc_alias(&wa, &wb);
		assert_int_equal(got, tc_alias(&wb, &wa));
		if (got != want)
			fail_msg("pair %u: %d, not %d", i, got, want);
		seen[want]++;
	}
	for (unsigned i = 0; i < 3; i++)
		assert_true(seen[i] > 10000);
}

static void one_way_of_walking_has_one_form(void **state)
{
	struct tc_walk a, b;

	(void)state;
	/* 6x4 dense, as 24 elements, and as 2x3x1x4. */
	tc_walk_start(&a, 0, 0, 64, 4);
	tc_walk_dim(&a, 6, 16);
	tc_walk_dim(&a, 4, 4);
	tc_walk_start(&b, 0, 0, 64, 4);
	tc_walk_dim(&b, 24, 4);
	assert_int_equal(tc_alias(&a, &b), TC_EQUAL);
	tc_walk_start(&b, 0, 0, 64, 4);
	tc_walk_dim(&b, 2, 48);
	tc_walk_dim(&b, 3, 16);
	tc_walk_dim(&b, 1, 7);
	tc_walk_dim(&b, 4, 4);
	assert_int_equal(tc_alias(&a, &b), TC_EQUAL);
	/* The same bytes by columns. */
	tc_walk_start(&b, 0, 0, 64, 4);
	tc_walk_dim(&b, 4, 4);
	tc_walk_dim(&b, 6, 16);
	assert_int_equal(tc_alias(&a, &b), TC_OVERLAP);
}

static void far_walks_and_registers_are_told_apart_or_not_trusted(void **state)
{
	struct tc_walk a, b;
	int64_t lo, hi;

	(void)state;
	/* Even and odd elements of 2^40, and halves of columns. */
	tc_walk_start(&a, 0, 0, 0, 4);
	tc_walk_dim(&a, (int64_t)1 << 40, 8);
	tc_walk_start(&b, 0, 0, 4, 4);
	tc_walk_dim(&b, (int64_t)1 << 40, 8);
	assert_int_equal(tc_alias(&a, &b), TC_APART);
	b.offset = 3;
	assert_int_equal(tc_alias(&a, &b), TC_OVERLAP);
	/* Another register may lead anywhere; the same one leads both. */
	b.offset = 4;
	b.reg = 5;
	assert_int_equal(tc_alias(&a, &b), TC_OVERLAP);
	a.reg = 5;
	assert_int_equal(tc_alias(&a, &b), TC_APART);
	b.binding = 2;
	b.reg = 9;
	assert_int_equal(tc_alias(&a, &b), TC_APART);
	/* What passes all bounds meets everything. */
	tc_walk_start(&a, 0, 0, 0, 4);
	tc_walk_dim(&a, INT64_MAX, INT64_MAX / 2);
	assert_false(tc_walk_span(&a, &lo, &hi));
	tc_walk_start(&b, 0, 0, 1000, 4);
	assert_int_equal(tc_alias(&a, &b), TC_OVERLAP);
	/* More dims than are kept. */
	tc_walk_start(&a, 0, 0, 0, 1);
	for (unsigned i = 0; i < 2 * TC_WALK_DIMS; i++)
		tc_walk_dim(&a, 2, (int64_t)i * 3 % 7 + 2);
	assert_int_equal(tc_alias(&a, &b), TC_OVERLAP);
}

/* ---- programs for the verifier ---- */

enum { CONST, TEMP, GIVEN, KEPT, RESULT, N_BINDINGS };	/* KEPT is for reading alone */
enum { BYTES = 256, N = BYTES / 4 };

static uint64_t code[4096];
static size_t length;
static struct tc_note notes[64];
static size_t n_notes;
static struct tc_branch_note branch_notes[8];
static size_t n_branches;
static struct image_transfer transfers[2];
static size_t n_transfers;

static void *put(enum isa_opcode op, size_t bytes)
{
	struct isa_insn *insn = (void *)((char *)code + length);

	assert_true(length + bytes <= sizeof(code));
	memset(insn, 0, bytes);
	insn->op = (uint16_t)op;
	insn->bytes = (uint32_t)bytes;
	length += bytes;
	return insn;
}

static struct isa_operand at(unsigned binding, int64_t offset, int64_t stride)
{
	return (struct isa_operand){ .elem = ELEM_F32, .binding = (uint16_t)binding,
				     .offset = offset, .stride = { stride } };
}

static void copy(struct isa_operand from, struct isa_operand to, int64_t n)
{
	struct isa_copy *c = put(ISA_COPY, sizeof(*c));

	c->rank = 1;
	c->elem_bytes = 4;
	for (unsigned d = 0; d < ISA_MAX_RANK; d++)
		c->dim[d] = d ? 1 : n;
	c->src = from;
	c->dst = to;
}

static void set_space(struct isa_body *b, unsigned n_in, unsigned n_out, int64_t m, int64_t n)
{
	b->rank = 2;
	b->n_in = (uint8_t)n_in;
	b->n_out = (uint8_t)n_out;
	for (unsigned d = 0; d < ISA_MAX_RANK; d++)
		b->dim[d] = d ? 1 : m;
	b->dim[1] = n;
}

/* A VEC over one dim: outputs are values of the inputs. */
static void vec(unsigned n_in, const struct isa_operand *in, unsigned n_out,
		const struct isa_operand *out, int64_t n)
{
	struct isa_tensor *t = put(ISA_VEC, sizeof(*t) + (n_in + n_out) * sizeof(*in));
	struct isa_operand *op = (void *)(t + 1);

	set_space(&t->body, n_in, n_out, n, 1);
	memcpy(op, in, n_in * sizeof(*in));
	memcpy(op + n_in, out, n_out * sizeof(*out));
}

static struct isa_scalar *scalar(enum isa_opcode op, struct isa_scalar s)
{
	struct isa_scalar *p = put(op, sizeof(*p));
	struct isa_insn head = p->insn;

	*p = s;
	p->insn = head;
	return p;
}

static void branch_to(struct isa_scalar *branch, size_t target)
{
	branch->imm = (int64_t)target - ((char *)branch - (char *)code);
}

/* A register that holds 4 * (0 .. most). */
static void clamp(unsigned reg, unsigned most)
{
	uint8_t r = (uint8_t)reg;

	scalar(ISA_LD, (struct isa_scalar){ .rd = r, .elem = ELEM_S32, .binding = KEPT });
	scalar(ISA_ALUI, (struct isa_scalar){ .fn = ISA_ALU_MAX, .rd = r, .ra = r });
	scalar(ISA_ALUI, (struct isa_scalar){ .fn = ISA_ALU_MIN, .rd = r, .ra = r,
					      .imm = most });
	scalar(ISA_ALUI, (struct isa_scalar){ .fn = ISA_ALU_MUL, .rd = r, .ra = r, .imm = 4 });
}

static void halt(void)
{
	scalar(ISA_HALT, (struct isa_scalar){ 0 });
}

static void fill_result(void)
{
	copy(at(KEPT, 0, 4), at(RESULT, 0, 4), N);
}

/* ---- evidence ---- */

/* Contents 1 and 2 are the arguments'. */
static void note(enum tc_note_kind kind, unsigned binding, int64_t lo, int64_t hi,
		 uint32_t content)
{
	notes[n_notes++] = (struct tc_note){ .at = length, .kind = (uint8_t)kind,
		.binding = (uint16_t)binding, .content = content, .lo = lo, .hi = hi };
}

static void op(void)
{
	note(TC_NOTE_OP, 0, 0, 0, 0);
}

static void reads(unsigned binding, int64_t lo, int64_t hi, uint32_t content)
{
	note(TC_NOTE_READS, binding, lo, hi, content);
}

static void holds(unsigned binding, int64_t lo, int64_t hi, uint32_t content)
{
	note(TC_NOTE_HOLDS, binding, lo, hi, content);
}

/* An op of one copy of all of a value. */
static void move(unsigned from, int64_t lo, uint32_t content, unsigned to, int64_t to_lo,
		 uint32_t new_content)
{
	op();
	reads(from, lo, lo + BYTES, content);
	copy(at(from, lo, 4), at(to, to_lo, 4), N);
	holds(to, to_lo, to_lo + BYTES, new_content);
}

static void note_branch(const struct isa_scalar *branch, size_t n)
{
	branch_notes[n_branches++] = (struct tc_branch_note){
		(uint64_t)((const char *)branch - (const char *)code), (uint32_t)n };
}

/* ---- what is built ---- */

static void overlap(unsigned v)
{
	switch (v) {
	case 0: copy(at(GIVEN, 0, 4), at(GIVEN, 0, 4), N); break;
	case 1: copy(at(GIVEN, BYTES - 4, -4), at(GIVEN, 0, 4), N); break;
	case 2: copy(at(GIVEN, 0, 4), at(GIVEN, 4, 4), N - 1); break;
	case 3: copy(at(GIVEN, 0, 0), at(GIVEN, 0, 4), N); break;
	/* Even over odd elements is apart. */
	case 4: copy(at(GIVEN, 0, 8), at(GIVEN, 4, 8), N / 2); break;
	default: copy(at(GIVEN, 0, 8), at(GIVEN, 0, 4), N / 2); break;
	}
	fill_result();
	halt();
}

static void fused(unsigned v)
{
	struct isa_operand in[2] = { at(GIVEN, 0, 4), at(KEPT, 0, 4) };
	struct isa_operand out[2] = { at(GIVEN, 0, 4), at(RESULT, 0, 4) };

	switch (v) {
	case 0: break;
	case 1: in[1] = at(GIVEN, BYTES - 4, -4); break;
	case 2: in[1] = at(GIVEN, 0, 0); break;
	case 3: out[0] = at(RESULT, 0, 4); break;
	case 4: out[0] = at(RESULT, 1, 4); out[0].elem = ELEM_U8; break;
	/* Narrower elements are other places. */
	case 5: out[0].elem = ELEM_BF16; out[0].stride[0] = 2; break;
	/* A sum over all points is written when others are still read. */
	case 6: out[0] = in[0] = at(GIVEN, 0, 0); out[0].combine = ISA_COMBINE_ADD; break;
	default: in[0].elem = ELEM_S32; out[0].elem = ELEM_F32; break;
	}
	vec(2, in, 2, out, N);
	halt();
}

static void product(unsigned v)
{
	struct isa_mm *m = put(ISA_MM, sizeof(*m) + 2 * sizeof(struct isa_operand));
	struct isa_operand *in = (void *)(m + 1), *out = in + 1;

	/* 8x8 = 8x8 * 8x8 of the same kind, with 8x8 read by the epilogue. */
	set_space(&m->body, 1, 1, 8, 8);
	m->acc = ELEM_F32;
	m->k = 8;
	m->a_k_stride = 4;
	m->b_k_stride = 32;
	m->a = at(v == 1 ? GIVEN : KEPT, 0, 32);
	m->b = at(v == 2 ? GIVEN : KEPT, 0, 0);
	m->b.stride[1] = 4;
	*in = at(GIVEN, 0, v == 3 ? 4 : 32);
	in->stride[1] = v == 3 ? 32 : 4;
	*out = at(GIVEN, 0, 32);
	out->stride[1] = 4;
	fill_result();
	halt();
}

static void convolved(unsigned v)
{
	struct isa_conv *x = put(ISA_CONV, sizeof(*x) + sizeof(struct isa_operand));
	struct isa_operand *out = (void *)(x + 1);

	/* One spatial dim of 16, a kernel of 3, one feature. */
	set_space(&x->body, 0, 1, 1, 1);
	x->body.rank = 3;
	x->body.dim[2] = 16;
	x->acc = ELEM_F32;
	x->n_spatial = 1;
	x->in_features = x->feature_groups = x->batch_groups = 1;
	x->in_size[0] = 16;
	x->kernel[0] = 3;
	x->window_stride[0] = x->lhs_dilation[0] = x->rhs_dilation[0] = x->pad_low[0] = 1;
	x->lhs = at(v == 1 ? GIVEN : KEPT, 0, 0);
	x->rhs = at(v == 2 ? GIVEN : KEPT, 0, 0);
	x->lhs.stride[2] = x->rhs.stride[2] = 4;
	*out = at(GIVEN, v == 3 ? -4 : 0, 0);
	out->stride[2] = 4;
	fill_result();
	halt();
}

static void sorted(unsigned v)
{
	struct isa_sort *s = put(ISA_SORT, sizeof(*s) + 2 * sizeof(struct isa_operand));
	struct isa_operand *in = (void *)(s + 1), *out = in + 1;

	set_space(&s->body, 1, 1, N, 1);
	*in = v == 1 ? at(GIVEN, BYTES - 4, -4) : at(GIVEN, 0, 4);
	*out = at(GIVEN, 0, 4);
	fill_result();
	halt();
}

static void reduced(unsigned v)
{
	struct isa_tensor *t = put(ISA_REDUCE, sizeof(*t) + 3 * sizeof(struct isa_operand));
	struct isa_operand *op = (void *)(t + 1);

	/* The 8 columns of 8x8, from initial values on. */
	set_space(&t->body, 2, 1, 8, 8);
	t->reduce_dims = 1;
	op[0] = at(KEPT, 0, 0);
	op[1] = at(GIVEN, 0, 32);
	op[2] = v == 1 ? at(GIVEN, 0, 0) : v == 2 ? at(GIVEN, BYTES - 32, 0) : at(RESULT, 0, 0);
	op[0].stride[1] = op[1].stride[1] = op[2].stride[1] = 4;
	fill_result();
	halt();
}

static void gathered(unsigned v)
{
	struct isa_gather *g = put(ISA_GATHER, sizeof(*g));

	g->rank = g->n_batch = g->n_index = 1;
	for (unsigned d = 0; d < ISA_MAX_RANK; d++)
		g->dim[d] = d ? 1 : 16;
	g->index[0] = (struct isa_index){ .limit = v == 3 ? N : N - 1, .step = 4 };
	g->src = at(v == 1 ? GIVEN : KEPT, 0, 0);
	g->idx = at(v == 2 || v == 4 ? GIVEN : KEPT, v == 2 ? 4 : 0, 4);
	g->idx.elem = ELEM_S32;
	g->dst = at(GIVEN, 0, 4);
	fill_result();
	halt();
}

static void scattered(unsigned v)
{
	struct isa_scatter *s = put(ISA_SCATTER, sizeof(*s) + 2 * sizeof(struct isa_operand));
	struct isa_operand *upd = (void *)(s + 1), *dst = upd + 1;

	set_space(&s->body, 1, 1, 16, 1);
	s->n_batch = s->n_index = 1;
	s->index[0] = (struct isa_index){ .limit = N / 2 - 1, .step = 4 };
	s->idx = at(v == 1 ? GIVEN : KEPT, 0, 4);
	s->idx.elem = ELEM_S32;
	*upd = v == 2 ? at(GIVEN, 0, 4) : v == 3 ? at(GIVEN, BYTES / 2, 4) : at(KEPT, 0, 4);
	*dst = at(GIVEN, 0, 0);
	fill_result();
	halt();
}

static void drawn(unsigned v)
{
	struct isa_rng *r = put(ISA_RNG, sizeof(*r));

	r->state_words = 2;
	r->n_words = v == 1 ? 16 : 8;
	r->state = at(GIVEN, 0, 0);
	r->new_state = at(GIVEN, v == 2 ? 8 : 0, 0);
	r->out = at(GIVEN, v == 1 ? 0 : 16, 0);
	r->state.elem = r->new_state.elem = ELEM_U64;
	fill_result();
	halt();
}

static void never_written(unsigned v)
{
	struct isa_scalar *skip;
	size_t top;

	switch (v) {
	case 0:
		copy(at(KEPT, 0, 4), at(TEMP, 0, 4), N);
		copy(at(TEMP, 0, 4), at(RESULT, 0, 4), N);
		break;
	case 1:
		copy(at(TEMP, 0, 4), at(RESULT, 0, 4), N);
		break;
	case 2:		/* one path goes around the write */
		skip = scalar(ISA_BZ, (struct isa_scalar){ .ra = 1 });
		copy(at(KEPT, 0, 4), at(TEMP, 0, 4), N);
		branch_to(skip, length);
		copy(at(TEMP, 0, 4), at(RESULT, 0, 4), N);
		break;
	case 3:		/* the first turn reads what it writes at its end */
		fill_result();
		top = length;
		copy(at(TEMP, 0, 4), at(RESULT, 0, 4), N);
		copy(at(KEPT, 0, 4), at(TEMP, 0, 4), N);
		branch_to(scalar(ISA_BNZ, (struct isa_scalar){ .ra = 1 }), top);
		break;
	case 4:		/* the result: read back, or handed out */
		copy(at(RESULT, 0, 4), at(RESULT, 0, 4), N);
		break;
	case 5:
		break;
	case 6:
		skip = scalar(ISA_BZ, (struct isa_scalar){ .ra = 1 });
		fill_result();
		branch_to(skip, length);
		break;
	case 7:		/* half of it */
		copy(at(KEPT, 0, 4), at(TEMP, 0, 4), N / 2);
		copy(at(TEMP, 0, 4), at(RESULT, 0, 4), N);
		break;
	default:	/* both paths write it */
		skip = scalar(ISA_BZ, (struct isa_scalar){ .ra = 1 });
		copy(at(KEPT, 0, 4), at(TEMP, 0, 4), N);
		branch_to(skip, length + sizeof(struct isa_scalar));
		skip = scalar(ISA_JMP, (struct isa_scalar){ 0 });
		copy(at(GIVEN, 0, 4), at(TEMP, 0, 4), N);
		branch_to(skip, length);
		copy(at(TEMP, 0, 4), at(RESULT, 0, 4), N);
		break;
	}
	halt();
}

static void bounds(unsigned v)
{
	struct isa_operand led = at(GIVEN, 0, 4);

	fill_result();
	switch (v) {
	case 0: copy(at(KEPT, 0, 4), at(GIVEN, 0, 4), N); break;
	case 1: copy(at(KEPT, 0, 4), at(GIVEN, 4, 4), N); break;
	case 2: copy(at(KEPT, 0, -4), at(GIVEN, 0, 4), 2); break;
	case 3: copy(at(GIVEN, 0, 4), at(KEPT, 0, 4), N); break;
	case 4: copy(at(GIVEN, 0, 4), at(N_BINDINGS, 0, 4), N); break;
	case 5: copy(at(KEPT, 0, 4), at(GIVEN, 4, INT64_MAX / 2), N); break;
	case 6: scalar(ISA_JMP, (struct isa_scalar){ .imm = 16 }); break;
	case 7: ((struct isa_insn *)put(ISA_COPY, sizeof(struct isa_copy)))->bytes -= 8; break;
	case 8:		/* 8 elements somewhere in 64 */
	case 9:
		clamp(3, v == 8 ? N - 8 : N - 7);
		led.reg = 3;
		copy(at(KEPT, 0, 4), led, 8);
		break;
	case 10:	/* a register led by two that are added */
		clamp(3, 10);
		clamp(4, 46);
		scalar(ISA_ALU, (struct isa_scalar){ .fn = ISA_ALU_ADD, .rd = 4, .ra = 4,
						     .rb = 3 });
		led.reg = 4;
		copy(at(KEPT, 0, 4), led, 8);
		break;
	case 11:	/* its window may meet what is read */
		clamp(3, 8);
		led.reg = 3;
		copy(at(GIVEN, 60, 4), led, 8);
		break;
	default:
		clamp(3, 7);
		led.reg = 3;
		copy(at(GIVEN, 60, 4), led, 8);
		break;
	}
	halt();
}

/* With evidence. TEMP has room for four values, A to D. */
enum { A = 0, B = BYTES, C = 2 * BYTES };

static void given_to_another(unsigned v)
{
	move(KEPT, 0, 2, TEMP, A, 3);
	move(GIVEN, 0, 1, TEMP, v == 1 ? A : B, 4);
	/* Value 3 is read where 4 lies by now. */
	move(TEMP, A, v == 2 ? 4 : 3, TEMP, C, 5);
	op();
	/* 4 without what lies beside it, which half of the copy is of. */
	if (v == 4)
		reads(TEMP, B, B + BYTES, 4);
	else
		reads(TEMP, C, C + BYTES, 5);
	copy(at(TEMP, v == 3 ? B : v == 4 ? B + BYTES / 2 : C, 4), at(RESULT, 0, 4), N);
	holds(RESULT, 0, BYTES, 6);
	halt();
}

static void overwritten_within(unsigned v)
{
	/* [x, y] of GIVEN's halves as [y, x], in place: by halves, or by way of TEMP. */
	op();
	reads(GIVEN, 0, BYTES, 1);
	copy(at(GIVEN, 0, 4), at(TEMP, 0, 4), N / 2);
	copy(at(GIVEN, BYTES / 2, 4), at(GIVEN, 0, 4), N / 2);
	copy(v == 1 ? at(GIVEN, 0, 4) : at(TEMP, 0, 4), at(GIVEN, BYTES / 2, 4), N / 2);
	holds(GIVEN, 0, BYTES, 3);
	move(GIVEN, 0, 3, RESULT, 0, 4);
	halt();
}

static void written_whole(unsigned v)
{
	op();
	reads(KEPT, 0, BYTES, 2);
	/* In two parts side by side, or in two between each other. */
	if (v == 0 || v == 1) {
		copy(at(KEPT, 0, 4), at(TEMP, 0, 4), N / 2);
		copy(at(KEPT, 0, 4), at(TEMP, BYTES / 2, 4), v ? N / 2 - 1 : N / 2);
	} else {
		copy(at(KEPT, 0, 8), at(TEMP, 0, 8), N / 2);
		copy(at(KEPT, 0, 8), at(TEMP, 4, 8), v == 3 ? N / 2 - 1 : N / 2);
	}
	holds(TEMP, 0, BYTES, 3);
	move(TEMP, 0, 3, RESULT, 0, 4);
	halt();
}

/* A carried value in A, its next one made in B and moved to A at the end of a turn. */
static void carried(unsigned v)
{
	struct isa_scalar *leave, *back;
	size_t top, top_notes;

	move(KEPT, 0, 2, TEMP, A, 3);
	move(GIVEN, 0, 1, TEMP, C, 7);		/* captured by the loop */
	top = length;
	top_notes = n_notes;
	leave = scalar(ISA_BZ, (struct isa_scalar){ .ra = 1 });
	move(TEMP, C, 7, TEMP, v == 1 ? C : B, 4);
	op();
	reads(TEMP, v == 1 ? C : B, (v == 1 ? C : B) + BYTES, 4);
	/* The turn's end is left out, or told but not done, or the place is another. */
	if (v != 2)
		copy(at(TEMP, v == 1 ? C : B, 4), at(TEMP, v == 4 ? B + BYTES + BYTES : A, 4), N);
	if (v != 3)
		holds(TEMP, A, A + BYTES, 3);
	back = scalar(ISA_JMP, (struct isa_scalar){ 0 });
	branch_to(back, top);
	note_branch(back, top_notes);
	branch_to(leave, length);
	note_branch(leave, n_notes);
	move(TEMP, A, 3, RESULT, 0, 5);
	halt();
}

static void branches(unsigned v)
{
	struct isa_scalar *to_second = scalar(ISA_BZ, (struct isa_scalar){ .ra = 1 }), *to_end;

	move(KEPT, 0, 2, TEMP, A, 3);
	to_end = scalar(ISA_JMP, (struct isa_scalar){ 0 });
	branch_to(to_second, length);
	note_branch(to_second, n_notes);
	/* The other branch leaves its result there too, or another value, or nothing. */
	if (v != 2)
		move(GIVEN, 0, 1, TEMP, A, v == 1 ? 4 : 3);
	branch_to(to_end, length);
	note_branch(to_end, n_notes);
	move(TEMP, A, 3, RESULT, 0, 5);
	halt();
}

/* The host takes GIVEN and gives TEMP's B; the call's number is in A. */
static void called(unsigned v)
{
	const struct isa_scalar number = { .rd = 1, .rb = 1, .elem = ELEM_U64, .binding = TEMP };
	struct isa_scalar *go_on, *back;

	transfers[0] = (struct image_transfer){ 1, 0, 0, v == 1 ? TEMP : GIVEN,
						v == 1 ? C : 0, BYTES, 5 };
	transfers[1] = (struct image_transfer){ 1, 1, 0, v == 7 ? KEPT : TEMP,
						v == 7 ? 0 : v == 8 ? C : B,
						v == 2 ? BYTES / 2 : BYTES, 6 };
	n_transfers = 2;
	if (v != 3)
		scalar(ISA_LD, number);
	scalar(ISA_ALUI, (struct isa_scalar){ .fn = ISA_ALU_EQ, .rd = 2, .ra = 1, .imm = 1 });
	go_on = scalar(ISA_BNZ, (struct isa_scalar){ .ra = 2 });
	move(KEPT, 0, 2, TEMP, C, 3);
	if (v == 1)
		length -= sizeof(struct isa_copy);
	op();
	reads(GIVEN, 0, BYTES, 1);
	scalar(ISA_LI, (struct isa_scalar){ .rd = 1, .imm = v == 5 ? 2 : 1 });
	scalar(ISA_ST, number);
	halt();
	if (v == 4)
		scalar(ISA_LI, (struct isa_scalar){ .rd = 1 });
	holds(TEMP, v == 8 ? C : B, (v == 8 ? C : B) + BYTES, 4);
	branch_to(go_on, length);
	note_branch(go_on, n_notes);
	if (v == 6) {
		back = scalar(ISA_BNZ, (struct isa_scalar){ .ra = 2 });
		branch_to(back, 0);
		note_branch(back, 0);
	}
	/* What the host gave, or what it may have been given the place of. */
	if (v == 8)
		move(TEMP, C, 3, RESULT, 0, 6);
	else
		move(TEMP, B, 4, RESULT, 0, 6);
	halt();
}

static const struct {
	void (*build)(unsigned v);
	unsigned variant;
	bool with_notes;
	const char *says;	/* NULL: a right program */
} programs[] = {
	{ overlap, 0, 0, NULL },
	{ overlap, 1, 0, "an input otherwise than element for element" },
	{ overlap, 2, 0, "an input otherwise than element for element" },
	{ overlap, 3, 0, "an input otherwise than element for element" },
	{ overlap, 4, 0, NULL },
	{ overlap, 5, 0, "an input otherwise than element for element" },
	{ fused, 0, 0, NULL },
	{ fused, 1, 0, "operand 2 over an input otherwise than element for element, operand 1" },
	{ fused, 2, 0, "operand 2 over an input otherwise than element for element, operand 1" },
	{ fused, 3, 0, "operand 3 over another output, operand 2" },
	{ fused, 4, 0, "operand 3 over another output, operand 2" },
	{ fused, 5, 0, "an input otherwise than element for element" },
	{ fused, 6, 0, "an input that is not read point by point" },
	{ fused, 7, 0, NULL },
	{ product, 0, 0, NULL },
	{ product, 1, 0, "operand 3 over an input" },
	{ product, 2, 0, "operand 3 over an input" },
	{ product, 3, 0, "an input otherwise than element for element, operand 2" },
	{ convolved, 0, 0, NULL },
	{ convolved, 1, 0, "operand 2 over an input" },
	{ convolved, 2, 0, "operand 2 over an input" },
	{ convolved, 3, 0, "goes outside of binding 2's 256 bytes" },
	{ sorted, 0, 0, NULL },
	{ sorted, 1, 0, "an input otherwise than element for element" },
	{ reduced, 0, 0, NULL },
	{ reduced, 1, 0, "operand 2 over an input" },
	{ reduced, 2, 0, "operand 2 over an input" },
	{ gathered, 0, 0, NULL },
	{ gathered, 1, 0, "operand 2 over an input" },
	{ gathered, 2, 0, "an input otherwise than element for element, operand 1" },
	{ gathered, 3, 0, "goes outside of binding 3's 256 bytes with operand 0" },
	{ gathered, 4, 0, NULL },
	{ scattered, 0, 0, NULL },
	{ scattered, 1, 0, "operand 2 over an input" },
	{ scattered, 2, 0, "operand 2 over an input" },
	{ scattered, 3, 0, NULL },
	{ drawn, 0, 0, NULL },
	{ drawn, 1, 0, "operand 2 over an" },
	{ drawn, 2, 0, "operand 1 over an input otherwise than element for element" },
	{ never_written, 0, 0, NULL },
	{ never_written, 1, 0, "reads bytes of binding 1 that on some path nothing has written" },
	{ never_written, 2, 0, "reads bytes of binding 1 that on some path nothing has written" },
	{ never_written, 3, 0, "reads bytes of binding 1 that on some path nothing has written" },
	{ never_written, 4, 0, "reads bytes of binding 4 that on some path nothing has written" },
	{ never_written, 5, 0, "nothing has written a part of result 0" },
	{ never_written, 6, 0, "nothing has written a part of result 0" },
	{ never_written, 7, 0, "reads bytes of binding 1 that on some path nothing has written" },
	{ never_written, 8, 0, NULL },
	{ bounds, 0, 0, NULL },
	{ bounds, 1, 0, "goes outside of binding 2's 256 bytes with operand 1" },
	{ bounds, 2, 0, "goes outside of binding 3's 256 bytes with operand 0" },
	{ bounds, 3, 0, "writes binding 3, which is not declared so, as operand 1" },
	{ bounds, 4, 0, "names binding 5 of 5 as operand 1" },
	{ bounds, 5, 0, "goes outside of binding 2's 256 bytes with operand 1" },
	{ bounds, 6, 0, "branches to where none starts" },
	{ bounds, 7, 0, "has counts that do not hold together" },
	{ bounds, 8, 0, NULL },
	{ bounds, 9, 0, "goes outside of binding 2's 256 bytes with operand 1" },
	{ bounds, 10, 0, NULL },
	{ bounds, 11, 0, "an input otherwise than element for element" },
	{ bounds, 12, 0, NULL },
	{ given_to_another, 0, 1, NULL },
	{ given_to_another, 1, 1, "where another value has been put since" },
	{ given_to_another, 2, 1, "where another value has been put since" },
	{ given_to_another, 3, 1, "that belong to another value, as operand 0" },
	{ given_to_another, 4, 1, "that belong to another value, as operand 0" },
	{ overwritten_within, 0, 1, NULL },
	{ overwritten_within, 1, 1, "reads operand 0 where the same operation has written" },
	{ written_whole, 0, 1, NULL },
	{ written_whole, 1, 1, "leaves a part of its result in binding 1" },
	{ written_whole, 2, 1, NULL },
	{ written_whole, 3, 1, "leaves a part of its result in binding 1" },
	{ carried, 0, 1, NULL },
	{ carried, 1, 1, "where another value has been put since" },
	{ carried, 2, 1, "leaves a part of its result in binding 1" },
	{ carried, 3, 1, "where another value has been put since" },
	{ carried, 4, 1, "leaves a part of its result in binding 1" },
	{ branches, 0, 1, NULL },
	{ branches, 1, 1, "where another value has been put since" },
	{ branches, 2, 1, "where nothing has written it on some path" },
	{ called, 0, 0, NULL },
	{ called, 0, 1, NULL },
	{ called, 1, 0, "reads bytes of binding 1 that on some path nothing has written" },
	{ called, 2, 0, "reads bytes of binding 1 that on some path nothing has written" },
	{ called, 2, 1, "leaves a part of its result in binding 1" },
	{ called, 3, 0, "begins a program with 1 calls of the host otherwise" },
	{ called, 4, 0, "does not stop for call 1" },
	{ called, 5, 0, "does not stop for call 1" },
	{ called, 6, 0, "begins a program with 1 calls of the host otherwise" },
	{ called, 7, 0, "writes binding 3, which is not declared so" },
	{ called, 8, 0, NULL },
	{ called, 8, 1, "where another value has been put since" },
};

static int judge(unsigned i, struct tc_verdict *why)
{
	static const struct image_binding bindings[N_BINDINGS] = {
		{ IMAGE_CONSTANTS, 0, HW_BIND_READ, 0, 64 },
		{ IMAGE_TEMP, 0, HW_BIND_READ | HW_BIND_WRITE, 0, 4 * BYTES },
		{ IMAGE_ARG, 0, HW_BIND_READ | HW_BIND_WRITE, 0, BYTES },
		{ IMAGE_ARG, 0, HW_BIND_READ, 1, BYTES },
		{ IMAGE_RESULT, 0, HW_BIND_READ | HW_BIND_WRITE, 0, BYTES },
	};
	struct image im = { .text = code, .bindings = bindings, .n_bindings = N_BINDINGS,
			    .transfers = transfers };
	struct tc_evidence ev = { notes, 0, branch_notes, 0 };

	length = n_notes = n_branches = n_transfers = 0;
	programs[i].build(programs[i].variant);
	im.n_transfers = n_transfers;
	im.text_bytes = length;
	ev.n = n_notes;
	ev.n_branches = n_branches;
	return tc_verify(&im, programs[i].with_notes ? &ev : NULL, why);
}

static void broken_programs_are_refused_and_right_ones_taken(void **state)
{
	(void)state;
	for (unsigned i = 0; i < sizeof(programs) / sizeof(*programs); i++) {
		struct tc_verdict why;
		int got = judge(i, &why);

		if (got != (programs[i].says ? ERR_INTERNAL : 0))
			fail_msg("program %u: %d, %s", i, got, why.why);
		if (programs[i].says && !strstr(why.why, programs[i].says))
			fail_msg("program %u: %s", i, why.why);
		if (programs[i].says && why.offset % 8)
			fail_msg("program %u: at 0x%llx", i, (unsigned long long)why.offset);
	}
}

/* Peers are written by RPUT and RSIG and by nothing else, and those write to peers alone. */
static void links_write_to_peers_and_nothing_else_does(void **state)
{
	static const struct image_binding bindings[] = {
		{ IMAGE_CONSTANTS, 0, HW_BIND_READ, 0, 64 },
		{ IMAGE_TEMP, 0, HW_BIND_READ | HW_BIND_WRITE, 0, 256 },
		{ IMAGE_ARG, 0, HW_BIND_READ, 0, 64 },
		{ IMAGE_MAILBOX, 0, HW_BIND_READ | HW_BIND_WRITE, 0, 256 },
		{ IMAGE_PEER, 0, HW_BIND_WRITE | HW_BIND_PEER, 0, 256 },
	};
	static const struct { unsigned op, src, dst; const char *says; } cases[] = {
		{ ISA_RPUT, 2, 4, NULL },
		{ ISA_RPUT, 3, 4, NULL },
		{ ISA_RPUT, 1, 4, "nothing has written" },
		{ ISA_RPUT, 2, 1, "RPUT and RSIG write to peers" },
		{ ISA_COPY, 2, 4, "RPUT and RSIG write to peers" },
		{ ISA_COPY, 3, 1, NULL },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct {
			struct isa_copy put;
			struct isa_scalar sig, wait, halt;
		} text = {
			.put = { .insn = { (uint16_t)cases[i].op, 0, sizeof(text.put) },
				 .rank = 1, .elem_bytes = 8, .dim = { 8, 1, 1, 1, 1, 1, 1, 1 },
				 .src = { .binding = (uint16_t)cases[i].src, .stride = { 8 } },
				 .dst = { .binding = (uint16_t)cases[i].dst, .stride = { 8 } } },
			.sig = { .insn = { ISA_RSIG, 0, sizeof(text.sig) }, .elem = ELEM_U64,
				 .binding = 4, .imm = 248 },
			.wait = { .insn = { ISA_RWAIT, 0, sizeof(text.wait) }, .elem = ELEM_U64,
				  .binding = 3, .imm = 248 },
			.halt = { .insn = { ISA_HALT, 0, sizeof(text.halt) } },
		};
		struct image im = { .text = &text, .text_bytes = sizeof(text),
				    .bindings = bindings, .n_bindings = 5 };
		struct tc_verdict why;
		int got = tc_verify(&im, NULL, &why);

		if (got != (cases[i].says ? ERR_INTERNAL : 0) ||
		    (got && !strstr(why.why, cases[i].says)))
			fail_msg("program %u: %d, %s", i, got, got ? why.why : "");
		text.sig.imm = 256;
		assert_int_equal(tc_verify(&im, NULL, &why), ERR_INTERNAL);
	}
}

/* It is another number than what was there, so nothing is known of where it leads. */
static void what_rwait_reads_takes_the_place_of_what_was(void **state)
{
	static const struct image_binding bindings[] = {
		{ IMAGE_CONSTANTS, 0, HW_BIND_READ, 0, 64 },
		{ IMAGE_TEMP, 0, HW_BIND_READ | HW_BIND_WRITE, 0, 256 },
		{ IMAGE_MAILBOX, 0, HW_BIND_READ | HW_BIND_WRITE, 0, 256 },
		{ IMAGE_PEER, 0, HW_BIND_WRITE | HW_BIND_PEER, 0, 256 },
	};
	struct isa_scalar text[] = {
		{ .insn = { ISA_LI, 0, sizeof(*text) }, .rd = 5, .imm = 256 },
		{ .insn = { ISA_RWAIT, 0, sizeof(*text) }, .elem = ELEM_U64, .binding = 2,
		  .rd = 5 },
		{ .insn = { ISA_RSIG, 0, sizeof(*text) }, .elem = ELEM_U64, .binding = 3,
		  .ra = 5 },
		{ .insn = { ISA_HALT, 0, sizeof(*text) } },
	};
	struct image im = { .text = text, .text_bytes = sizeof(text), .bindings = bindings,
			    .n_bindings = 4 };
	struct tc_verdict why;

	(void)state;
	assert_int_equal(tc_verify(&im, NULL, &why), 0);
	text[1].rd = 6;
	assert_int_equal(tc_verify(&im, NULL, &why), ERR_INTERNAL);
	assert_non_null(strstr(why.why, "goes outside of binding 3"));
}

/* Bytes are changed at random in right programs: an answer, and no harm. */
static void changed_bytes_do_no_harm(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 40000; round++) {
		unsigned i = (unsigned)pick(0, sizeof(programs) / sizeof(*programs) - 1);
		struct image_binding bindings[N_BINDINGS] = {
			{ IMAGE_CONSTANTS, 0, HW_BIND_READ, 0, 64 },
			{ IMAGE_TEMP, 0, 3, 0, 4 * BYTES }, { IMAGE_ARG, 0, 3, 0, BYTES },
			{ IMAGE_ARG, 0, 1, 1, BYTES }, { IMAGE_RESULT, 0, 3, 0, BYTES },
		};
		struct image im = { .text = code, .bindings = bindings,
				    .n_bindings = N_BINDINGS };
		struct tc_verdict why;
		uint8_t *copied;

		length = n_notes = n_branches = 0;
		programs[i].build(programs[i].variant);
		for (int64_t k = pick(1, 6); k > 0; k--)
			((uint8_t *)code)[pick(0, (int64_t)length - 1)] = (uint8_t)pick(0, 255);
		/* A copy of the exact size: a sanitizer sees a read past the end. */
		copied = malloc(length);
		assert_non_null(copied);
		memcpy(copied, code, length);
		im.text = copied;
		im.text_bytes = length;
		tc_verify(&im, NULL, &why);
		free(copied);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(walks_meet_exactly_when_they_have_a_byte_in_common),
		cmocka_unit_test(one_way_of_walking_has_one_form),
		cmocka_unit_test(far_walks_and_registers_are_told_apart_or_not_trusted),
		cmocka_unit_test(broken_programs_are_refused_and_right_ones_taken),
		cmocka_unit_test(links_write_to_peers_and_nothing_else_does),
		cmocka_unit_test(what_rwait_reads_takes_the_place_of_what_was),
		cmocka_unit_test(changed_bytes_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
