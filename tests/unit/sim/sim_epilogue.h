/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SIM_EPILOGUE_H
#define TESTS_SIM_EPILOGUE_H
/*
 * What MM and CONV share in tests: a body that runs on the sums, its operands and
 * memories, and what it must leave there.
 *
 *	struct ep e;
 *	ep_make(&e, &seed, kind, acc, wild, rank, dim);
 *	for each point: ep_expect(&e, at, &sum, precision, k);
 *	for each path: ep_start(&e), run with e.mem[0..1] = the sides, ep_check(&e);
 *	ep_free(&e);
 */
#include "tests/unit/sim/sim_typed.h"

enum ep_kind {
	EP_DIRECT,	/* the sum */
	EP_BIAS,	/* the sum + an input that is spread along some dims */
	EP_GROW,	/* memory + the sum: input and output are one */
	EP_NARROW,	/* the sum in a narrower type, and beside it as it is */
	EP_IOTA,	/* the sum + the coordinate along a dim */
	EP_RELU,	/* max(the sum, 0) */
	EP_PASS,	/* the input as it is, and the sum */
	EP_SPREAD,	/* a constant, and the sum twice */
	EP_KINDS
};

enum { EP_A, EP_B, EP_IN, EP_OUT, EP_OUT2, EP_MEMORIES };

struct ep {
	enum ep_kind kind;
	unsigned acc, iota, rank;
	int64_t dim[ISA_MAX_RANK];
	struct isa_body body;
	struct isa_operand in[1], out[2];
	struct isa_uop uop[4];
	struct vt_mem mem[EP_MEMORIES];		/* A and B are the caller's */
	struct vt_mem start[2], want[2];	/* of the outputs */
	double *slack;				/* of each point, if sums round */
	int64_t n_expected;
};

static inline unsigned ep_narrow(unsigned acc)
{
	switch (acc) {
	case ELEM_F32: return ELEM_BF16;
	case ELEM_F64: return ELEM_F32;
	case ELEM_S32: return ELEM_S8;
	case ELEM_U32: return ELEM_U8;
	case ELEM_S64: return ELEM_S16;
	case ELEM_U64: return ELEM_U32;
	case ELEM_C64: return ELEM_F32;
	case ELEM_C128: return ELEM_F64;
	default: return ELEM_S32;
	}
}

static inline enum ep_kind ep_allowed(enum ep_kind kind, unsigned acc)
{
	bool is_real = acc != ELEM_PRED && elem_class(acc) != ELEM_CLASS_COMPLEX;

	return (kind == EP_IOTA || kind == EP_RELU) && !is_real ? EP_BIAS : kind;
}

static inline void ep_uops(struct ep *e)
{
	unsigned n = 0;

	switch (e->kind) {
	case EP_DIRECT:
		break;
	case EP_BIAS:
	case EP_GROW:
		e->body.n_in = 1;
		e->uop[n++] = vt_uop(UOP_ADD, e->acc, 0, 1, 0);
		e->out[0].value = 2;
		break;
	case EP_NARROW:
		e->uop[n] = vt_uop(UOP_CVT, e->acc, 0, 0, 0);
		e->uop[n++].to = e->out[0].elem = (uint8_t)ep_narrow(e->acc);
		e->out[0].value = 1;
		e->body.n_out = 2;
		break;
	case EP_IOTA:
		e->uop[n] = vt_uop(UOP_IOTA, e->acc, 0, 0, 0);
		e->uop[n++].aux = (uint8_t)e->iota;
		e->uop[n++] = vt_uop(UOP_ADD, e->acc, 0, 1, 0);
		e->out[0].value = 2;
		break;
	case EP_RELU:
		e->uop[n++] = vt_uop(UOP_IMM, e->acc, 0, 0, 0);
		e->uop[n++] = vt_uop(UOP_MAX, e->acc, 0, 1, 0);
		e->out[0].value = 2;
		break;
	case EP_PASS:
		e->body.n_in = 1;
		e->out[0].value = 1;
		e->body.n_out = 2;
		break;
	default:
		e->uop[n] = vt_uop(UOP_IMM, ELEM_U16, 0, 0, 0);
		e->uop[n++].imm = 0xabcd;
		e->out[0].elem = ELEM_U16;
		e->out[0].value = 1;
		e->body.n_out = 2;
	}
	e->body.n_uop = (uint16_t)n;
}

static inline void ep_make(struct ep *e, uint64_t *seed, enum ep_kind kind, unsigned acc,
			   bool wild, unsigned rank, const int64_t *dim)
{
	int64_t some[ISA_MAX_RANK], points = 1;

	memset(e, 0, sizeof(*e));
	e->kind = ep_allowed(kind, acc);
	e->acc = acc;
	e->rank = rank;
	e->iota = vt_random(seed) % rank;
	e->body.rank = (uint8_t)rank;
	e->body.n_out = 1;
	for (unsigned d = 0; d < ISA_MAX_RANK; d++)
		e->body.dim[d] = e->dim[d] = d < rank ? dim[d] : 1;
	e->in[0] = (struct isa_operand){ .elem = (uint8_t)acc, .binding = EP_IN };
	for (unsigned j = 0; j < 2; j++)
		e->out[j] = (struct isa_operand){ .elem = (uint8_t)acc,
						  .binding = (uint16_t)(EP_OUT + j) };
	ep_uops(e);
	for (unsigned j = 0; j < 2; j++) {
		unsigned elem = e->out[j].elem;
		uint64_t bytes = ty_layout(seed, &e->out[j], rank, dim, elem_bytes(elem));

		e->start[j] = ty_memory(seed, elem, wild, bytes);
		e->want[j] = ty_copy(e->start[j]);
		e->mem[EP_OUT + j] = ty_copy(e->start[j]);
	}
	memcpy(some, e->dim, sizeof(some));
	for (unsigned d = 0; d < rank; d++) {
		if (vt_random(seed) % 2 && some[d])
			some[d] = 1;
		points *= dim[d];
	}
	e->mem[EP_IN].bytes = ty_layout(seed, &e->in[0], rank, some, elem_bytes(acc));
	for (unsigned d = 0; d < rank; d++)
		if (some[d] != dim[d])
			e->in[0].stride[d] = 0;
	e->mem[EP_IN] = ty_memory(seed, acc, wild, e->mem[EP_IN].bytes);
	if (e->kind == EP_GROW) {
		e->in[0] = e->out[0];
		e->in[0].value = 0;
	}
	if (wild && !ty_is_integer(acc))
		e->slack = calloc((size_t)points + 1, sizeof(*e->slack));
}

/* What the point must hold. Points come in the order of IN_EACH_POINT. */
static inline void ep_expect(struct ep *e, const int64_t *at, const struct ty_sum *sum,
			     unsigned precision, int64_t k)
{
	struct ty v[2] = { ty_as(e->acc, sum->v), ty_as(e->acc, sum->v) };
	const uint8_t *from = e->kind == EP_GROW ? e->start[0].p : e->mem[EP_IN].p;
	struct ty in = { 0, 0, 0 };

	if (e->body.n_in)
		in = ty_get(e->acc, from + in_at(&e->in[0], e->rank, at));
	switch (e->kind) {
	case EP_BIAS:
	case EP_GROW:
		v[0].re += in.re;
		v[0].im += in.im;
		v[0].i = e->acc == ELEM_PRED ? v[0].i | in.i : v[0].i + in.i;
		break;
	case EP_IOTA:
		v[0].re += (double)at[e->iota];
		v[0].i += (uint64_t)at[e->iota];
		break;
	case EP_RELU:
		v[0].re = v[0].re < 0 ? 0 : v[0].re;
		if (elem_class(e->acc) == ELEM_CLASS_SINT && (int64_t)v[0].i < 0)
			v[0].i = 0;
		break;
	case EP_PASS:
		v[0] = in;
		break;
	case EP_SPREAD:
		v[0].i = 0xabcd;
		break;
	default:
		break;
	}
	for (unsigned j = 0; j < e->body.n_out; j++)
		ty_set(e->out[j].elem, (uint8_t *)e->want[j].p + in_at(&e->out[j], e->rank, at),
		       v[j]);
	if (e->slack)
		e->slack[e->n_expected] = ty_slack(sum, e->acc, precision, k);
	e->n_expected++;
}

/* Outputs as they were before the first run. */
static inline void ep_start(struct ep *e)
{
	for (unsigned j = 0; j < 2; j++)
		memcpy(e->mem[EP_OUT + j].p, e->start[j].p, e->start[j].bytes);
}

/* Appends operands and operations to the instruction. */
static inline void ep_put(const struct ep *e, struct in_code *c)
{
	in_put(c, e->in, e->body.n_in * sizeof(*e->in));
	in_put(c, e->out, e->body.n_out * sizeof(*e->out));
	in_put(c, e->uop, e->body.n_uop * sizeof(*e->uop));
}

/* Sums that round are held against their slack, then taken as wanted. */
static inline void ep_round(struct ep *e)
{
	int64_t n = 0;

	IN_EACH_POINT(e->rank, e->dim, at) {
		int64_t p = in_at(&e->out[0], e->rank, at);
		struct ty got = ty_get(e->acc, (uint8_t *)e->mem[EP_OUT].p + p);
		struct ty want = ty_get(e->acc, (uint8_t *)e->want[0].p + p);

		if (!(fabs(got.re - want.re) <= e->slack[n] &&
		      fabs(got.im - want.im) <= e->slack[n]))
			fail_msg("point %lld: %.17g%+.17gi, not %.17g%+.17gi within %g",
				 (long long)n, got.re, got.im, want.re, want.im, e->slack[n]);
		memcpy((uint8_t *)e->want[0].p + p, (uint8_t *)e->mem[EP_OUT].p + p,
		       elem_bytes(e->acc));
		n++;
	}
}

/* Every byte of the outputs, those between elements too. `what` says the case. */
static inline void ep_check(struct ep *e, const char *what)
{
	if (e->slack && e->n_expected) {
		struct vt_mem exact = ty_copy(e->want[0]);

		ep_round(e);
		assert_memory_equal(e->mem[EP_OUT].p, e->want[0].p, exact.bytes);
		memcpy(e->want[0].p, exact.p, exact.bytes);
		free(exact.p);
		return;
	}
	for (unsigned j = 0; j < 2; j++) {
		const uint8_t *got = e->mem[EP_OUT + j].p, *want = e->want[j].p;

		for (uint64_t i = 0; i < e->want[j].bytes; i++)
			if (got[i] != want[i])
				fail_msg("%s: output %u differs at byte %llu", what, j,
					 (unsigned long long)i);
	}
}

static inline void ep_free(struct ep *e)
{
	for (unsigned j = 0; j < 2; j++) {
		free(e->start[j].p);
		free(e->want[j].p);
		free(e->mem[EP_OUT + j].p);
	}
	free(e->mem[EP_IN].p);
	free(e->slack);
}

/* The pairs of types that products take: those of each acc. */
struct ep_pair { uint8_t a, b, acc; };
static const struct ep_pair ep_pairs[] = {
	{ ELEM_F32, ELEM_F32, ELEM_F32 }, { ELEM_BF16, ELEM_BF16, ELEM_F32 },
	{ ELEM_F16, ELEM_F16, ELEM_F32 }, { ELEM_F32, ELEM_BF16, ELEM_F32 },
	{ ELEM_BF16, ELEM_F32, ELEM_F32 }, { ELEM_F16, ELEM_BF16, ELEM_F32 },
	{ ELEM_F8E5M2, ELEM_F8E5M2, ELEM_F32 }, { ELEM_F8E4M3FN, ELEM_F8E4M3FN, ELEM_F32 },
	{ ELEM_F8E4M3, ELEM_F8E3M4, ELEM_F32 }, { ELEM_F8E4M3FN, ELEM_F8E5M2, ELEM_F32 },
	{ ELEM_F8E4M3B11FNUZ, ELEM_F8E4M3FNUZ, ELEM_F32 },
	{ ELEM_F8E5M2FNUZ, ELEM_F32, ELEM_F32 },
	{ ELEM_F64, ELEM_F64, ELEM_F64 }, { ELEM_F32, ELEM_F64, ELEM_F64 },
	{ ELEM_F32, ELEM_F32, ELEM_F64 }, { ELEM_BF16, ELEM_F16, ELEM_F64 },
	{ ELEM_S8, ELEM_S8, ELEM_S32 }, { ELEM_U8, ELEM_U8, ELEM_S32 },
	{ ELEM_U8, ELEM_S8, ELEM_S32 }, { ELEM_S8, ELEM_U8, ELEM_S32 },
	{ ELEM_U8, ELEM_U8, ELEM_U32 }, { ELEM_S8, ELEM_S8, ELEM_U32 },
	{ ELEM_S16, ELEM_S16, ELEM_S32 }, { ELEM_S8, ELEM_S32, ELEM_S32 },
	{ ELEM_S32, ELEM_S32, ELEM_S32 }, { ELEM_U32, ELEM_U32, ELEM_U32 },
	{ ELEM_U16, ELEM_S32, ELEM_U32 }, { ELEM_S4, ELEM_S4, ELEM_S32 },
	{ ELEM_S8, ELEM_S8, ELEM_S64 }, { ELEM_S32, ELEM_S32, ELEM_S64 },
	{ ELEM_S64, ELEM_S64, ELEM_S64 }, { ELEM_U64, ELEM_U64, ELEM_U64 },
	{ ELEM_U32, ELEM_U8, ELEM_U64 },
	{ ELEM_C64, ELEM_C64, ELEM_C64 }, { ELEM_C128, ELEM_C128, ELEM_C128 },
	{ ELEM_PRED, ELEM_PRED, ELEM_PRED },
};
#define EP_N_PAIRS (sizeof(ep_pairs) / sizeof(*ep_pairs))

#endif
