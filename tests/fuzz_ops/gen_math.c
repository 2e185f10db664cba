/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random bits; transforms, matrices and norms, which round many times: their results are
 * compared by the largest of the array (FACT_NORM).
 */
#include "tests/fuzz_ops/gen.h"

bool gen_rng_bits(struct gen *g)
{
	static const uint8_t elems[] = { ELEM_U32, ELEM_U32, ELEM_U64,
					 ELEM_U8,  ELEM_U16, ELEM_S32 };
	static const int64_t two[] = { 2 }, three[] = { 3 };
	static const struct fact any = { .kind = FACT_BITS };
	int64_t way = gen_one_in(g, 2) ? TC_RNG_THREE_FRY : TC_RNG_PHILOX, dim[3];
	const struct tc_type *types[2];
	struct fact facts[2] = { any, any };
	unsigned rank = gen_below(g, 4);
	struct tc_value *key;
	struct tc_op *op;

	for (unsigned d = 0; d < rank; d++) {
		dim[d] = gen_dim(g);
		if (!gen_is_small(g, d + 1, dim))
			return false;
	}
	types[0] = gen_type(g, ELEM_U64, 1,
			    way == TC_RNG_PHILOX && gen_one_in(g, 2) ? three : two);
	types[1] = gen_type(g, elems[gen_below(g, sizeof(elems))], rank, dim);
	key = gen_value(g, types[0], any);
	if (types[1]->elem == ELEM_S32)
		gen_not_for_jax(g);
	op = gen_op(g, TC_RNG_BIT_GENERATOR, 1, &key, 2, types, facts, 0);
	tc_set_int(g->c, op, "rng_algorithm", TC_ATTR_ENUM, way);
	return true;
}

/* A batch of n x n matrices of small whole numbers, or NULL. */
static const struct tc_type *matrices(struct gen *g, unsigned elem)
{
	int64_t n = gen_between(g, 1, 6), dim[3] = { gen_between(g, 1, 3), n, n };
	unsigned rank = gen_one_in(g, 2) ? 2 : 3;

	return gen_type(g, elem, rank, rank == 2 ? dim + 1 : dim);
}

static struct tc_value *iota_of(struct gen *g, const struct tc_type *t, unsigned d)
{
	struct tc_value *v = gen_op1(g, TC_IOTA, 0, NULL, gen_same_dims(g, ELEM_S32, t),
				     FACT(FACT_RANGE, false, 0, 8));

	tc_set_int(g->c, v->def, "iota_dimension", TC_ATTR_INT, d);
	return v;
}

/* Where row and column compare so. */
static struct tc_value *where(struct gen *g, const struct tc_type *t, int64_t direction)
{
	struct tc_value *in[2] = { iota_of(g, t, t->rank - 2u), iota_of(g, t, t->rank - 1u) },
			*v;

	v = gen_op1(g, TC_COMPARE, 2, in, gen_same_dims(g, ELEM_PRED, t),
		    FACT(FACT_BITS, false, 0, 0));
	tc_set_int(g->c, v->def, "comparison_direction", TC_ATTR_ENUM, direction);
	tc_set_int(g->c, v->def, "compare_type", TC_ATTR_ENUM, TC_CMP_SIGNED);
	return v;
}

/* Well conditioned: small numbers, with a large diagonal. */
static struct tc_value *dominant(struct gen *g, const struct tc_type *t)
{
	struct tc_value *in[3];

	in[0] = where(g, t, TC_CMP_EQ);
	in[1] = gen_source(g, t, FACT(FACT_WHOLE, false, 12, 15));
	in[2] = gen_source(g, t, FACT(FACT_WHOLE, false, -1, 1));
	return gen_op1(g, TC_SELECT, 3, in, t, FACT(FACT_WHOLE, false, -1, 15));
}

static const struct fact rounded = { .kind = FACT_NORM, .lo = 64, .hi = 512 };

bool gen_cholesky(struct gen *g)
{
	const struct tc_type *t = matrices(g, gen_one_in(g, 2) ? ELEM_F32 : ELEM_F64);
	bool lower = gen_one_in(g, 2);
	struct tc_value *a, *b, *in[3];
	int64_t p[3] = { 0, 2, 1 };

	if (g->scalars)
		return false;
	if (t->rank == 2)
		p[0] = 1, p[1] = 0;
	a = dominant(g, t);
	b = gen_op1(g, TC_TRANSPOSE, 1, &a, t, *gen_fact(a));
	tc_set_ints(g->c, b->def, "permutation", p, t->rank);
	a = gen_op1(g, TC_ADD, 2, (struct tc_value *[]){ a, b }, t,
		    FACT(FACT_WHOLE, true, -2, 30));
	a = gen_op1(g, TC_CHOLESKY, 1, &a, t, rounded);
	tc_set_int(g->c, a->def, "lower", TC_ATTR_BOOL, lower);
	/* what the other triangle holds is open */
	in[0] = where(g, t, lower ? TC_CMP_GE : TC_CMP_LE);
	in[1] = a;
	in[2] = gen_constant(g, t, FACT(FACT_WHOLE, false, 0, 0));
	gen_forget(g, a);
	gen_op1(g, TC_SELECT, 3, in, t, rounded);
	return true;
}

bool gen_solve(struct gen *g)
{
	const struct tc_type *t = matrices(g, gen_one_in(g, 2) ? ELEM_F32 : ELEM_F64);
	int64_t dim[3] = { t->dim[0], t->dim[1], t->dim[t->rank - 1] };
	bool left = gen_one_in(g, 2);
	struct tc_value *in[2];
	struct tc_op *op;

	if (g->scalars)
		return false;
	dim[t->rank - 1 - left] = t->dim[t->rank - 1];
	dim[t->rank - 2 + left] = gen_between(g, 1, 4);
	in[0] = dominant(g, t);
	in[1] = gen_source(g, gen_type(g, t->elem, t->rank, dim),
			   FACT(FACT_WHOLE, false, -7, 7));
	op = gen_op1(g, TC_TRIANGULAR_SOLVE, 2, in, in[1]->type, rounded)->def;
	tc_set_int(g->c, op, "left_side", TC_ATTR_BOOL, left);
	tc_set_int(g->c, op, "lower", TC_ATTR_BOOL, gen_one_in(g, 2));
	tc_set_int(g->c, op, "unit_diagonal", TC_ATTR_BOOL, 0);
	tc_set_int(g->c, op, "transpose_a", TC_ATTR_ENUM,
		   gen_one_in(g, 2) ? TC_SOLVE_PLAIN : TC_SOLVE_TRANSPOSE);
	return true;
}

bool gen_fft(struct gen *g)
{
	unsigned n = 1 + gen_below(g, 3), rank = n + gen_below(g, 2), kind = gen_below(g, 4);
	bool wide = gen_one_in(g, 3);
	unsigned real = wide ? ELEM_F64 : ELEM_F32, complex = wide ? ELEM_C128 : ELEM_C64;
	const struct tc_type *types[2];
	int64_t dim[2][4];
	struct tc_value *v;
	struct tc_op *op;

	if (g->scalars)
		return false;
	for (unsigned d = 0; d < rank; d++)
		dim[0][d] = dim[1][d] = gen_between(g, 1, n == 1 ? 72 : 9);
	/* half of a real signal's spectrum */
	if (kind == TC_FFT_RFFT)
		dim[1][rank - 1] = dim[0][rank - 1] / 2 + 1;
	if (kind == TC_FFT_IRFFT)
		dim[0][rank - 1] = dim[1][rank - 1] / 2 + 1;
	types[0] = gen_type(g, kind == TC_FFT_RFFT ? real : complex, rank, dim[0]);
	types[1] = gen_type(g, kind == TC_FFT_IRFFT ? real : complex, rank, dim[1]);
	v = gen_value(g, types[0], FACT(FACT_WHOLE, false, -3, 3));
	op = gen_op1(g, TC_FFT, 1, &v, types[1], rounded)->def;
	tc_set_int(g->c, op, "fft_type", TC_ATTR_ENUM, kind);
	tc_set_ints(g->c, op, "fft_length",
		    dim[kind == TC_FFT_IRFFT] + (rank - n), n);
	return true;
}

bool gen_norm(struct gen *g)
{
	static const uint8_t ops[] = { TC_BATCH_NORM_TRAINING, TC_BATCH_NORM_INFERENCE,
				       TC_BATCH_NORM_GRAD };
	/* How large the terms are of which each result is a sum: operands are -7 to 7, a
	 * difference from the mean is twice that. Where they cancel, as in a mean of 0, the
	 * result says nothing of its error. */
	static const int16_t terms[3][3] = { { 14 * 7, 7, 14 * 14 }, { 14 * 7 },
					     { 14 * 7 * 7, 14 * 7, 7 } };
	unsigned way = gen_below(g, 3), elem = gen_one_in(g, 3) ? ELEM_F64 : ELEM_F32;
	unsigned rank = 2 + gen_below(g, 3), f = gen_below(g, rank);
	const struct tc_type *x, *s, *one, *types[3];
	struct fact facts[3];
	const float epsilon = 0.5f;
	struct tc_attr a = { .kind = TC_ATTR_DENSE, .key = TC_KEY(g->c, "epsilon") };
	struct tc_value *in[5];
	int64_t dim[4];
	float *data;
	struct tc_op *op;

	if (g->scalars)
		return false;
	for (unsigned d = 0; d < rank; d++)
		dim[d] = gen_between(g, 1, 6);
	x = gen_type(g, elem, rank, dim);
	s = gen_type(g, elem, 1, &dim[f]);
	one = gen_type(g, ELEM_F32, 0, NULL);
	in[0] = gen_value(g, x, FACT(FACT_WHOLE, false, -7, 7));
	for (unsigned i = 1; i < 5; i++)
		in[i] = gen_value(g, s,
				  FACT(FACT_WHOLE, false, i == (way == 1 ? 4 : 3) ? 1 : -3, 7));
	if (way == 2)
		in[4] = gen_value(g, x, FACT(FACT_WHOLE, false, -7, 7));
	types[0] = x;
	types[1] = types[2] = s;
	for (unsigned i = 0; i < 3; i++)
		facts[i] = FACT(FACT_NORM, false, 256 * terms[way][i], 1024 * terms[way][i]);
	op = gen_op(g, (enum tc_opcode)ops[way], way ? 5 : 3, in, way == 1 ? 1 : 3, types,
		    facts, 0);
	data = arena_array(&g->c->arena, 1, sizeof(*data));
	if (!data)
		return false;
	*data = epsilon;
	a.type = one;
	a.data = data;
	tc_set_attr(g->c, op, a);
	tc_set_int(g->c, op, "feature_index", TC_ATTR_INT, f);
	return true;
}
