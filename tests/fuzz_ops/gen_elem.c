/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elementwise ops, and what follows for their results. An op on whole numbers in floats is made
 * only if every result is exact; on special values only if it selects, compares or changes
 * signs.
 */
#include "tests/fuzz_ops/gen.h"

static struct fact any_bits(void)
{
	return FACT(FACT_BITS, false, 0, 0);
}

static bool is_number(const struct tc_value *v, const void *arg)
{
	(void)arg;
	return !v->type->is_tuple && v->type->elem != ELEM_TOKEN &&
	       gen_fact(v)->kind != FACT_ANY && gen_fact(v)->kind != FACT_NEAR &&
	       gen_fact(v)->kind != FACT_NORM;
}

static bool is_whole(const struct tc_value *v, const void *arg)
{
	(void)arg;
	return !v->type->is_tuple && gen_is_float(v->type->elem) &&
	       gen_fact(v)->kind == FACT_WHOLE;
}

static int64_t largest(struct fact f)
{
	return f.hi > -f.lo ? f.hi : -f.lo;
}

/* ---- one operand ---- */

static bool int_unary(struct gen *g, struct tc_value *v)
{
	static const uint8_t any[] = { TC_NOT, TC_NEGATE, TC_POPCNT, TC_COUNT_LEADING_ZEROS,
				       TC_ABS, TC_SIGN };
	bool is_signed = elem_class(v->type->elem) == ELEM_CLASS_SINT;
	unsigned op =
		v->type->elem == ELEM_PRED ? TC_NOT : any[gen_below(g, is_signed ? 6 : 4)];

	if (is_signed && (op == TC_COUNT_LEADING_ZEROS ||
			  (op == TC_POPCNT && elem_bits(v->type->elem) < 8)))
		gen_not_for_jax(g);
	gen_op1(g, (enum tc_opcode)op, 1, &v, v->type, any_bits());
	return true;
}

static struct fact of_unary(unsigned op, struct fact f)
{
	int64_t most = largest(f);

	if (f.kind == FACT_SPECIAL) {
		f.open |= op == TC_ABS || op == TC_NEGATE;
		return f;
	}
	switch (op) {
	case TC_ABS: return FACT(FACT_WHOLE, false, 0, most);
	case TC_NEGATE: return FACT(FACT_WHOLE, f.open, -f.hi, -f.lo);
	case TC_SIGN: return FACT(FACT_WHOLE, f.open, f.lo < 0 ? -1 : 0, f.hi > 0 ? 1 : 0);
	default: return f;
	}
}

static bool complex_unary(struct gen *g, struct tc_value *v)
{
	unsigned part = v->type->elem == ELEM_C64 ? ELEM_F32 : ELEM_F64;
	struct fact f = *gen_fact(v);

	if (f.kind != FACT_WHOLE)
		return false;
	switch (gen_below(g, 3)) {
	case 0:
		gen_op1(g, TC_REAL, 1, &v, gen_same_dims(g, part, v->type), f);
		break;
	case 1:
		gen_op1(g, TC_IMAG, 1, &v, gen_same_dims(g, part, v->type), f);
		break;
	default:
		gen_op1(g, TC_NEGATE, 1, &v, v->type, of_unary(TC_NEGATE, f));
		break;
	}
	return true;
}

bool gen_unary(struct gen *g)
{
	static const uint8_t ops[] = { TC_ABS, TC_NEGATE, TC_SIGN, TC_CEIL, TC_FLOOR,
		TC_ROUND_NEAREST_AFZ, TC_ROUND_NEAREST_EVEN, TC_IS_FINITE, TC_REAL, TC_IMAG };
	struct tc_value *v = gen_pick(g, is_number, NULL);
	unsigned op = ops[gen_below(g, sizeof(ops))];

	if (!v)
		return false;
	if (gen_is_complex(v->type->elem))
		return complex_unary(g, v);
	if (!gen_is_float(v->type->elem))
		return int_unary(g, v);
	if (op == TC_SIGN && v->def && v->def->op == TC_CONSTANT)
		gen_not_for_jax(g);
	if (op == TC_IS_FINITE)
		gen_op1(g, TC_IS_FINITE, 1, &v, gen_same_dims(g, ELEM_PRED, v->type),
			any_bits());
	else if (op == TC_IMAG)
		gen_op1(g, TC_IMAG, 1, &v, v->type, FACT(FACT_WHOLE, false, 0, 0));
	else
		gen_op1(g, (enum tc_opcode)op, 1, &v, v->type, of_unary(op, *gen_fact(v)));
	return true;
}

/* ---- two operands ---- */

static bool int_binary(enum tc_opcode op, unsigned elem, struct fact a, struct fact b,
		       struct fact *out)
{
	bool is_pred = elem == ELEM_PRED;

	*out = any_bits();
	switch (op) {
	case TC_ADD:
	case TC_MULTIPLY:
	case TC_AND:
	case TC_OR:
	case TC_XOR:
		return true;
	case TC_MAXIMUM:
	case TC_MINIMUM:
		*out = fact_join(a, b);
		return true;
	case TC_SUBTRACT:
	case TC_SHIFT_LEFT:
	case TC_SHIFT_RIGHT_ARITHMETIC:
	case TC_SHIFT_RIGHT_LOGICAL:
		return !is_pred;
	case TC_DIVIDE:
	case TC_REMAINDER:
		return !is_pred && b.kind == FACT_RANGE && (b.lo >= 1 || b.hi < -1);
	case TC_POWER:
		return !is_pred && b.kind == FACT_RANGE && b.lo >= 0;
	default:
		return false;
	}
}

static struct fact product(struct fact a, struct fact b)
{
	int64_t x[4] = { a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi };
	struct fact f = FACT(FACT_WHOLE, a.open || b.open, x[0], x[0]);

	for (unsigned i = 1; i < 4; i++) {
		f.lo = x[i] < f.lo ? x[i] : f.lo;
		f.hi = x[i] > f.hi ? x[i] : f.hi;
	}
	return f;
}

static bool whole_binary(enum tc_opcode op, unsigned elem, struct fact a, struct fact b,
			 struct fact *out)
{
	int64_t most = largest(b);

	switch (op) {
	case TC_ADD:
		*out = FACT(FACT_WHOLE, true, a.lo + b.lo, a.hi + b.hi);
		break;
	case TC_SUBTRACT:
		*out = FACT(FACT_WHOLE, true, a.lo - b.hi, a.hi - b.lo);
		break;
	case TC_MULTIPLY:
		if (largest(a) > 1 << 28 || largest(b) > 1 << 28)
			return false;
		*out = product(a, b);
		if (gen_is_complex(elem))
			*out = FACT(FACT_WHOLE, true, -2 * largest(a) * largest(b),
					      2 * largest(a) * largest(b));
		break;
	case TC_MAXIMUM:
	case TC_MINIMUM:
		*out = fact_join(a, b);
		break;
	case TC_REMAINDER:
		if (b.lo <= 0 && b.hi >= 0)
			return false;
		*out = FACT(FACT_WHOLE, a.open, a.lo < 0 ? -most + 1 : 0,
				      a.hi > 0 ? most - 1 : 0);
		break;
	case TC_DIVIDE:
		*out = FACT(FACT_NEAR, false, 0, 1);
		return b.lo > 0 || b.hi < 0;
	default:
		return false;
	}
	if (gen_is_complex(elem) && op != TC_ADD && op != TC_SUBTRACT && op != TC_MULTIPLY)
		return false;
	return largest(*out) <= fact_reach(elem);
}

bool gen_fact_of_binary(enum tc_opcode op, unsigned elem, struct fact a, struct fact b,
			struct fact *out)
{
	if (!gen_is_float(elem) && !gen_is_complex(elem))
		return int_binary(op, elem, a, b, out);
	if (a.kind == FACT_WHOLE && b.kind == FACT_WHOLE)
		return whole_binary(op, elem, a, b, out);
	*out = FACT(FACT_SPECIAL, true, 0, 0);
	return gen_is_float(elem) && (op == TC_MAXIMUM || op == TC_MINIMUM) &&
	       (a.kind == FACT_SPECIAL || a.kind == FACT_WHOLE) &&
	       (b.kind == FACT_SPECIAL || b.kind == FACT_WHOLE);
}

bool gen_fact_of_sum(struct fact a, unsigned elem, int64_t n, struct fact *out)
{
	if (!gen_is_float(elem) && !gen_is_complex(elem)) {
		*out = any_bits();
		return true;
	}
	if (a.kind != FACT_WHOLE || largest(a) > ((int64_t)1 << 53) / (n + 1))
		return false;
	*out = FACT(FACT_WHOLE, true, a.lo * n, a.hi * n);
	out->lo = out->lo > 0 ? 0 : out->lo;
	out->hi = out->hi < 0 ? 0 : out->hi;
	return largest(*out) <= fact_reach(elem);
}

/* What makes the op legal as its second operand. */
static struct fact second(struct gen *g, unsigned op, unsigned elem)
{
	struct fact all = fact_of_type(elem);

	switch (op) {
	case TC_DIVIDE:
	case TC_REMAINDER:
		if (gen_is_float(elem))
			return FACT(FACT_WHOLE, false, 1, fact_reach(elem) < 7 ? 2 : 5);
		if (all.lo < -4 && gen_one_in(g, 2))
			return FACT(FACT_RANGE, false, -4, -2);
		return FACT(FACT_RANGE, false, 1, all.hi > 9 ? 9 : all.hi);
	case TC_POWER:
		return FACT(FACT_RANGE, false, 0, all.hi > 5 ? 5 : all.hi);
	default:	/* shifts */
		return FACT(FACT_RANGE, false, 0,
			    elem_bits(elem) - 1 > all.hi ? all.hi : elem_bits(elem) - 1);
	}
}

bool gen_binary(struct gen *g)
{
	static const uint8_t ints[] = { TC_ADD, TC_SUBTRACT, TC_MULTIPLY, TC_AND, TC_OR, TC_XOR,
		TC_MAXIMUM, TC_MINIMUM, TC_DIVIDE, TC_REMAINDER, TC_SHIFT_LEFT,
		TC_SHIFT_RIGHT_ARITHMETIC, TC_SHIFT_RIGHT_LOGICAL, TC_POWER };
	static const uint8_t floats[] = { TC_ADD, TC_SUBTRACT, TC_MULTIPLY, TC_ADD, TC_SUBTRACT,
		TC_MULTIPLY, TC_MAXIMUM, TC_MINIMUM, TC_DIVIDE, TC_REMAINDER };
	struct tc_value *in[2] = { gen_pick(g, is_number, NULL) };
	unsigned op, elem;
	struct fact f;

	if (!in[0])
		return false;
	elem = in[0]->type->elem;
	op = gen_is_float(elem) || gen_is_complex(elem) ? floats[gen_below(g, sizeof(floats))] :
							  ints[gen_below(g, sizeof(ints))];
	in[1] = gen_pick_type(g, in[0]->type);
	if (!gen_fact_of_binary((enum tc_opcode)op, elem, *gen_fact(in[0]), *gen_fact(in[1]),
				&f)) {
		if (elem == ELEM_PRED || gen_is_complex(elem) ||
		    gen_fact(in[0])->kind == FACT_SPECIAL)
			return false;
		in[1] = gen_value(g, in[0]->type, second(g, op, elem));
		if (!gen_fact_of_binary((enum tc_opcode)op, elem, *gen_fact(in[0]),
					*gen_fact(in[1]), &f))
			return false;
	}
	if (gen_one_in(g, 2) && gen_fact_of_binary((enum tc_opcode)op, elem, *gen_fact(in[1]),
						   *gen_fact(in[0]), &f)) {
		struct tc_value *t = in[0];

		in[0] = in[1];
		in[1] = t;
	} else {
		gen_fact_of_binary((enum tc_opcode)op, elem, *gen_fact(in[0]), *gen_fact(in[1]),
				   &f);
	}
	if ((elem == ELEM_PRED && op == TC_ADD) ||
	    (gen_is_int(elem) && op == TC_POWER && gen_fact(in[1])->hi > 15))
		gen_not_for_jax(g);
	gen_op1(g, (enum tc_opcode)op, 2, in, in[0]->type, f);
	return true;
}

/* ---- comparisons and choices ---- */

static bool makes_pair(const struct tc_value *v, const void *arg)
{
	const struct tc_value *first = arg;

	return v->type == first->type && is_number(v, NULL);
}

bool gen_compare(struct gen *g)
{
	struct tc_value *in[2] = { gen_pick(g, is_number, NULL) };
	unsigned elem, type = TC_CMP_SIGNED, way = gen_below(g, 6);
	struct tc_value *v;

	if (!in[0])
		return false;
	in[1] = gen_pick(g, makes_pair, in[0]);
	elem = in[0]->type->elem;
	if (elem_class(elem) == ELEM_CLASS_UINT || elem == ELEM_PRED)
		type = TC_CMP_UNSIGNED;
	if (gen_is_float(elem))
		type = !gen_fact(in[0])->open && !gen_fact(in[1])->open && gen_one_in(g, 2) ?
			TC_CMP_TOTALORDER : TC_CMP_FLOAT;
	if (gen_is_complex(elem)) {
		if (gen_fact(in[0])->kind != FACT_WHOLE || gen_fact(in[1])->kind != FACT_WHOLE)
			return false;
		type = TC_CMP_FLOAT;
		way = gen_one_in(g, 2) ? TC_CMP_EQ : TC_CMP_NE;
	}
	v = gen_op1(g, TC_COMPARE, 2, in, gen_same_dims(g, ELEM_PRED, in[0]->type), any_bits());
	tc_set_int(g->c, v->def, "comparison_direction", TC_ATTR_ENUM, way);
	tc_set_int(g->c, v->def, "compare_type", TC_ATTR_ENUM, (int64_t)type);
	return true;
}

bool gen_select(struct gen *g)
{
	struct tc_value *in[3] = { NULL, gen_pick_any(g) };
	const struct tc_type *pred;

	if (!in[1])
		return false;
	in[2] = gen_pick_type(g, in[1]->type);
	pred = gen_one_in(g, 4) ? gen_type(g, ELEM_PRED, 0, NULL) :
				  gen_same_dims(g, ELEM_PRED, in[1]->type);
	in[0] = gen_value(g, pred, any_bits());
	gen_op1(g, TC_SELECT, 3, in, in[1]->type,
		fact_join(*gen_fact(in[1]), *gen_fact(in[2])));
	return true;
}

bool gen_clamp(struct gen *g)
{
	struct tc_value *in[3], *v = gen_pick(g, is_number, NULL);
	const struct tc_type *t;
	struct fact f;

	if (!v || gen_is_complex(v->type->elem) || v->type->elem == ELEM_PRED)
		return false;
	t = gen_one_in(g, 2) ? v->type : gen_type(g, v->type->elem, 0, NULL);
	f = gen_any_fact(g, v->type->elem);
	if (f.kind != FACT_WHOLE && f.kind != FACT_BITS && f.kind != FACT_RANGE)
		return false;
	in[0] = gen_value(g, t, f);
	in[1] = v;
	in[2] = gen_value(g, t, f);
	f = fact_join(*gen_fact(in[0]), fact_join(*gen_fact(in[1]), *gen_fact(in[2])));
	f.open |= f.kind == FACT_SPECIAL;
	gen_op1(g, TC_CLAMP, 3, in, v->type, f);
	return true;
}

/* ---- types ---- */

static bool of_convert(unsigned from, unsigned to, struct fact f, struct fact *out)
{
	struct fact all = fact_of_type(to);
	int64_t reach = fact_reach(to);
	bool from_int = !gen_is_float(from) && !gen_is_complex(from);

	*out = any_bits();
	if (to == ELEM_PRED)
		return true;
	if (from_int && f.kind != FACT_RANGE)
		f = fact_of_type(from);
	if (gen_is_int(to)) {
		if (f.kind == FACT_SPECIAL || (!from_int && (f.lo < all.lo || f.hi > all.hi)))
			return false;
		if (f.lo >= all.lo && f.hi <= all.hi)
			*out = FACT(FACT_RANGE, false, f.lo, f.hi);
		return !gen_is_complex(from);
	}
	if (!reach || (gen_is_complex(from) && !gen_is_complex(to)))
		return false;
	if (f.kind == FACT_SPECIAL) {
		/* up only: the other way, what is rounded to zero or infinity is another matter */
		*out = FACT(FACT_SPECIAL, true, 0, 0);
		return reach >= fact_reach(from) && elem_bits(to) > 8 &&
		       !(from == ELEM_BF16 && to == ELEM_F16) && !gen_is_complex(to);
	}
	*out = FACT(FACT_WHOLE, f.open, f.lo, f.hi);
	if (largest(f) > reach) {
		/* one rounding */
		*out = FACT(FACT_NEAR, false, 0, 1);
		return elem_bits(to) >= 32 && !gen_is_complex(to);
	}
	return true;
}

bool gen_convert(struct gen *g)
{
	struct tc_value *v = gen_pick(g, is_number, NULL);
	unsigned to = gen_elem(g);
	struct fact f;

	if (!v || !of_convert(v->type->elem, to, *gen_fact(v), &f))
		return false;
	if (gen_is_complex(v->type->elem) && to == ELEM_PRED)
		gen_not_for_jax(g);
	gen_op1(g, TC_CONVERT, 1, &v, gen_same_dims(g, to, v->type), f);
	return true;
}

static bool has_known_bits(const struct tc_value *v, const void *arg)
{
	(void)arg;
	return is_number(v, NULL) && !gen_fact(v)->open && v->type->elem != ELEM_PRED &&
	       elem_bits(v->type->elem) >= 8 && !gen_is_complex(v->type->elem);
}

/* The result's type: of the same width; wider, for the last dim; narrower, with a dim more. */
static const struct tc_type *recast(struct gen *g, const struct tc_type *t, unsigned to)
{
	unsigned a = elem_bits(t->elem), b = elem_bits(to);
	int64_t dim[GEN_RANK + 1];

	for (unsigned d = 0; d < t->rank; d++)
		dim[d] = t->dim[d];
	if (a == b)
		return gen_type(g, to, t->rank, dim);
	if (a < b)
		return t->rank && t->dim[t->rank - 1] == b / a ?
			       gen_type(g, to, t->rank - 1u, dim) :
			       NULL;
	if (t->rank >= GEN_RANK || t->count * (a / b) > g->most)
		return NULL;
	dim[t->rank] = a / b;
	return gen_type(g, to, t->rank + 1u, dim);
}

bool gen_bitcast(struct gen *g)
{
	static const uint8_t elems[] = { ELEM_S8,     ELEM_U8,	    ELEM_S16, ELEM_U16,
					 ELEM_S32,    ELEM_U32,	    ELEM_S64, ELEM_U64,
					 ELEM_F16,    ELEM_BF16,    ELEM_F32, ELEM_F64,
					 ELEM_F8E5M2, ELEM_F8E4M3FN };
	struct tc_value *v = gen_pick(g, has_known_bits, NULL);
	unsigned to = elems[gen_below(g, sizeof(elems))];
	const struct tc_type *t = v ? recast(g, v->type, to) : NULL;

	if (!t)
		return false;
	gen_op1(g, TC_BITCAST_CONVERT, 1, &v, t, gen_is_float(to) ?
		FACT(FACT_ANY, false, 0, 0) : any_bits());
	return true;
}

static bool is_part(const struct tc_value *v, const void *arg)
{
	(void)arg;
	return is_whole(v, NULL) && (v->type->elem == ELEM_F32 || v->type->elem == ELEM_F64);
}

bool gen_complex(struct gen *g)
{
	struct tc_value *in[2] = { gen_pick(g, is_part, NULL) };
	unsigned to;

	if (!in[0])
		return false;
	in[1] = gen_pick_type(g, in[0]->type);
	if (gen_fact(in[1])->kind != FACT_WHOLE)
		return false;
	to = in[0]->type->elem == ELEM_F32 ? ELEM_C64 : ELEM_C128;
	gen_op1(g, TC_COMPLEX, 2, in, gen_same_dims(g, to, in[0]->type),
		fact_join(*gen_fact(in[0]), *gen_fact(in[1])));
	return true;
}

bool gen_reduce_precision(struct gen *g)
{
	struct tc_value *v = gen_pick(g, is_whole, NULL);
	int64_t m = gen_between(g, 0, 12), e = gen_between(g, 2, 8), hi;
	struct fact f;

	if (!v || elem_bits(v->type->elem) < 16)
		return false;
	f = *gen_fact(v);
	hi = ((int64_t)1 << (((int64_t)1 << (e - 1)) - 1 > 40 ? 40 :
								((int64_t)1 << (e - 1)) - 1));
	if (largest(f) >= hi || largest(f) > (int64_t)1 << m)
		f = FACT(FACT_NEAR, false, 0, 0);
	v = gen_op1(g, TC_REDUCE_PRECISION, 1, &v, v->type, f);
	tc_set_int(g->c, v->def, "exponent_bits", TC_ATTR_INT, e);
	tc_set_int(g->c, v->def, "mantissa_bits", TC_ATTR_INT, m);
	return true;
}

/* ---- functions that round: bounds in units in the last place, README.md#bounds ---- */

static const struct near {
	uint8_t op, operands;
	int8_t lo, hi; /* of the operands: values for which no unit is lost by their own
			  rounding */
	uint8_t ulps, jax;
} nears[] = {
	{ TC_EXPONENTIAL, 1, -8, 8, 4, 16 }, { TC_EXPONENTIAL_MINUS_ONE, 1, -8, 8, 4, 16 },
	{ TC_ERF, 1, -3, 3, 4, 16 },
	{ TC_LOG, 1, 2, 100, 4, 16 },	     { TC_LOG_PLUS_ONE, 1, 1, 100, 4, 16 },
	{ TC_LOGISTIC, 1, -8, 8, 4, 16 },    { TC_TANH, 1, -8, 8, 4, 16 },
	{ TC_SINE, 1, -8, 8, 4, 16 },	     { TC_COSINE, 1, -8, 8, 4, 16 },
	{ TC_TAN, 1, -8, 8, 4, 16 },	     { TC_SQRT, 1, 0, 100, 0, 1 },
	{ TC_RSQRT, 1, 1, 100, 4, 16 },	     { TC_CBRT, 1, -100, 100, 4, 16 },
	{ TC_ATAN2, 2, -8, 8, 4, 16 },	     { TC_POWER, 2, 1, 7, 4, 16 },
	{ TC_DIVIDE, 2, 1, 100, 0, 1 },
};

bool gen_approximate(struct gen *g)
{
	const struct near *n = &nears[gen_below(g, sizeof(nears) / sizeof(*nears))];
	struct fact f = FACT(FACT_WHOLE, false, n->lo, n->hi);
	struct tc_value *in[2] = { gen_pick(g, is_whole, NULL) };
	int64_t reach;

	if (!in[0] || elem_bits(in[0]->type->elem) < 16)
		return false;
	reach = fact_reach(in[0]->type->elem);
	f.hi = f.hi > reach ? reach : f.hi;
	f.open = gen_fact(in[0])->open;
	if (n->op == TC_ATAN2 && f.open)
		return false;
	in[0] = gen_fit(g, in[0], f);
	if (!in[0])
		return false;
	f.open = false;
	in[1] = n->operands == 2 ? gen_value(g, in[0]->type, f) : NULL;
	gen_op1(g, (enum tc_opcode)n->op, n->operands, in, in[0]->type,
		FACT(FACT_NEAR, false, n->ulps, n->jax));
	return true;
}
