/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ops on quantized values, as ops on their integers and on floats, so that nothing behind the
 * reader knows of quantized types.
 *
 * Requires: a module as it was read, not judged yet; each value's side is its struct bc_quant or
 * NULL. Ensures: ops are on plain types, and mean what StableHLO's specification says of the
 * quantized ones ("Quantization computations"): an op computes with the numbers that the integers
 * stand for, and its result is divided by the scale, moved by the zero point, held between the
 * type's bounds and rounded to nearest even. Ops that only move elements move the integers. Where
 * the specification has no meaning for an op of quantized values: UNIMPLEMENTED, the op and the
 * type by name. ir_verify.c judges what is made, so attributes and shapes are not believed here.
 */
#include <math.h>
#include <string.h>

#include "runtime/compiler/front/reader.h"
#include "runtime/compiler/opt/build.h"

/* What becomes of an op with a quantized operand or result. */
enum way {
	REFUSED,
	COMPUTES,	/* with the numbers */
	MOVES,		/* integers of operand 0, or also of 1, or of all, to result 0 */
	MOVES_TWO,
	MOVES_ALL,
	PASSES,		/* result i has the integers of operand i */
	HAS_BODY,	/* values of a slot are quantized alike (operand_slot and so on) */
	ENTERS,		/* operands go to a block's arguments, its results come back */
	HOLDS,		/* integers in an attribute */
	ANY,		/* looks at bits or types alone */
};

static const uint8_t ways[TC_OP_COUNT] = {
	[TC_ABS] = COMPUTES, [TC_ADD] = COMPUTES, [TC_ATAN2] = COMPUTES, [TC_CBRT] = COMPUTES,
	[TC_CEIL] = COMPUTES, [TC_CLAMP] = COMPUTES, [TC_COMPARE] = COMPUTES,
	[TC_COSINE] = COMPUTES, [TC_DIVIDE] = COMPUTES, [TC_EXPONENTIAL] = COMPUTES,
	[TC_EXPONENTIAL_MINUS_ONE] = COMPUTES, [TC_FLOOR] = COMPUTES, [TC_IOTA] = COMPUTES,
	[TC_IS_FINITE] = COMPUTES, [TC_LOG] = COMPUTES, [TC_LOG_PLUS_ONE] = COMPUTES,
	[TC_LOGISTIC] = COMPUTES, [TC_MAXIMUM] = COMPUTES, [TC_MINIMUM] = COMPUTES,
	[TC_MULTIPLY] = COMPUTES, [TC_NEGATE] = COMPUTES, [TC_POWER] = COMPUTES,
	[TC_REDUCE_PRECISION] = COMPUTES, [TC_REMAINDER] = COMPUTES,
	[TC_ROUND_NEAREST_AFZ] = COMPUTES, [TC_ROUND_NEAREST_EVEN] = COMPUTES,
	[TC_RSQRT] = COMPUTES, [TC_SELECT] = COMPUTES, [TC_SIGN] = COMPUTES,
	[TC_SINE] = COMPUTES, [TC_SQRT] = COMPUTES, [TC_SUBTRACT] = COMPUTES,
	[TC_TAN] = COMPUTES, [TC_TANH] = COMPUTES, [TC_DOT_GENERAL] = COMPUTES,
	[TC_CONVOLUTION] = COMPUTES, [TC_BATCH_NORM_GRAD] = COMPUTES,
	[TC_BATCH_NORM_INFERENCE] = COMPUTES, [TC_BATCH_NORM_TRAINING] = COMPUTES,
	[TC_CHOLESKY] = COMPUTES, [TC_TRIANGULAR_SOLVE] = COMPUTES,

	[TC_BROADCAST_IN_DIM] = MOVES, [TC_DYNAMIC_SLICE] = MOVES, [TC_GATHER] = MOVES,
	[TC_RESHAPE] = MOVES, [TC_REVERSE] = MOVES, [TC_SLICE] = MOVES, [TC_TRANSPOSE] = MOVES,
	[TC_DYNAMIC_UPDATE_SLICE] = MOVES_TWO, [TC_PAD] = MOVES_TWO,
	[TC_SET_DIMENSION_SIZE] = MOVES,
	[TC_CONCATENATE] = MOVES_ALL,

	[TC_OPTIMIZATION_BARRIER] = PASSES, [TC_ALL_GATHER] = PASSES, [TC_ALL_TO_ALL] = PASSES,
	[TC_COLLECTIVE_PERMUTE] = PASSES, [TC_COLLECTIVE_BROADCAST] = PASSES,
	[TC_SHARDING_CONSTRAINT] = PASSES,

	[TC_ALL_REDUCE] = HAS_BODY, [TC_REDUCE_SCATTER] = HAS_BODY, [TC_REDUCE] = HAS_BODY,
	[TC_REDUCE_WINDOW] = HAS_BODY, [TC_SELECT_AND_SCATTER] = HAS_BODY,
	[TC_SCATTER] = HAS_BODY, [TC_SORT] = HAS_BODY, [TC_WHILE] = HAS_BODY,
	[TC_IF] = HAS_BODY, [TC_CASE] = HAS_BODY,

	[TC_CALL] = ENTERS, [TC_COMPOSITE] = ENTERS, [TC_MAP] = ENTERS,
	[TC_MANUAL_COMPUTATION] = ENTERS,

	[TC_CONSTANT] = HOLDS, [TC_RETURN] = ANY, [TC_BITCAST_CONVERT] = ANY,
	[TC_GET_DIMENSION_SIZE] = ANY, [TC_SHARDING_GROUP] = ANY,
};

/* Ops that are given shapes, paddings or places come as tc.opaque. */
static const struct shaped {
	const char *name;
	uint8_t way, op;	/* as this one's, whose shape is not given */
} shaped_ops[] = {
	{ "dynamic_broadcast_in_dim_v1", MOVES, TC_BROADCAST_IN_DIM },
	{ "dynamic_conv_v2", COMPUTES, TC_OPAQUE },
	{ "dynamic_gather_v1", MOVES, TC_OPAQUE },
	{ "dynamic_gather_v2", MOVES, TC_OPAQUE },
	{ "dynamic_iota_v1", COMPUTES, TC_OPAQUE },
	{ "dynamic_pad_v1", MOVES_TWO, TC_OPAQUE },
	{ "dynamic_reshape_v1", MOVES, TC_RESHAPE },
	{ "real_dynamic_slice_v1", MOVES, TC_OPAQUE },
};

/* NULL: op is none of these. */
static const struct shaped *shaped_of(const struct tc_op *op)
{
	const char *name = op->op == TC_OPAQUE ? tc_attr_str(op, "name") : NULL;

	for (size_t i = 0; name && i < sizeof(shaped_ops) / sizeof(*shaped_ops); i++)
		if (!strcmp(name, shaped_ops[i].name))
			return &shaped_ops[i];
	return NULL;
}

static const struct bc_quant *quant(const struct tc_value *v)
{
	return v->side;
}

static const struct bc_quant *in_quant(const struct tc_op *op, unsigned i)
{
	return i < op->n_operands ? quant(tc_in(op, i)) : NULL;
}

static const struct bc_quant *out_quant(struct tc_op *op, unsigned i)
{
	return i < op->n_results ? quant(tc_out(op, i)) : NULL;
}

/* Nobody has looked at op yet: an attribute may be of any kind. */
static const int64_t *ints_of(const struct tc_op *op, const char *name, unsigned *n)
{
	const struct tc_attr *a = tc_attr(op, name);

	*n = a && a->kind == TC_ATTR_INTS ? a->n : 0;
	return *n ? a->ints : NULL;
}

/* Whether they are quantized alike, but for the dim along which the scales lie. */
static bool is_alike(const struct bc_quant *a, const struct bc_quant *b)
{
	return a->storage == b->storage && a->expressed == b->expressed && a->min == b->min &&
	       a->max == b->max && a->n == b->n && (a->dim < 0) == (b->dim < 0) &&
	       !memcmp(a->scale, b->scale, a->n * sizeof(*a->scale)) &&
	       !memcmp(a->zero, b->zero, a->n * sizeof(*a->zero));
}

static bool is_same(const struct bc_quant *a, const struct bc_quant *b)
{
	return a == b || (a && b && a->dim == b->dim && is_alike(a, b));
}

static const char *text_of(const struct bc_quant *q)
{
	return q ? q->text : "a type that is not quantized";
}

static void want_same(struct bc *r, const struct tc_op *op, const struct bc_quant *a,
		      const struct bc_quant *b)
{
	if (!is_same(a, b))
		tc_fail(r->c, ERR_UNIMPLEMENTED, op, "it takes integers of %s for those of %s, "
			"which stand for other numbers: put a uniform_quantize between them",
			text_of(a), text_of(b));
}

/* ---- integers and numbers ---- */

/* What stands for each element of `type`: one number, or one for each index of a dim. */
static struct tc_value *spread(const struct tc_build *b, const struct tc_type *type,
			       const double *value, uint32_t n, int64_t dim)
{
	int64_t size = n;
	struct tc_value *v;
	float *narrow;

	if (dim < 0)
		return tc_build_number(b, type, *value);
	if (type->elem == ELEM_F32) {
		narrow = arena_array(&b->c->arena, n, sizeof(*narrow));
		for (uint32_t i = 0; narrow && i < n; i++)
			narrow[i] = (float)value[i];
		if (!narrow)
			tc_fail(b->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
		v = tc_build_data(b, tc_tensor(b->c, ELEM_F32, 1, &size), narrow);
	} else {
		v = tc_build_data(b, tc_tensor(b->c, ELEM_F64, 1, &size), value);
		v = tc_build_convert(b, v, (enum elem)type->elem);
	}
	return tc_build_broadcast(b, v, type, &dim);
}

static struct tc_value *zeros_of(const struct tc_build *b, const struct tc_type *type,
				 const struct bc_quant *q)
{
	double *zero = arena_array(&b->c->arena, q->n, sizeof(*zero));

	for (uint32_t i = 0; zero && i < q->n; i++)
		zero[i] = (double)q->zero[i];
	if (!zero)
		tc_fail(b->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	return spread(b, type, zero, q->n, q->dim);
}

static bool has_zeros(const struct bc_quant *q)
{
	for (uint32_t i = 0; i < q->n; i++)
		if (q->zero[i])
			return true;
	return false;
}

/* x less its zero points, in a type that holds the differences. */
static struct tc_value *moved_to_zero(const struct tc_build *b, struct tc_value *x,
				      const struct bc_quant *q, enum elem elem)
{
	x = tc_build_convert(b, x, elem);
	return has_zeros(q) ? tc_build2(b, TC_SUBTRACT, x, zeros_of(b, x->type, q)) : x;
}

static struct tc_value *dequantized(const struct tc_build *b, struct tc_value *x,
				    const struct bc_quant *q)
{
	unsigned bits = elem_bits(q->storage);

	/* The difference of numbers of so many bits has as many and a sign. */
	if (bits > q->precision && has_zeros(q))
		x = moved_to_zero(b, x, q, bits < 32 ? ELEM_S32 : ELEM_S64);
	else
		x = moved_to_zero(b, x, q, (enum elem)q->expressed);
	x = tc_build_convert(b, x, (enum elem)q->expressed);
	return tc_build2(b, TC_MULTIPLY, x, spread(b, x->type, q->scale, q->n, q->dim));
}

static double rounded(double v, const struct bc_quant *q)
{
	int exponent;

	v = frexp(v, &exponent);
	return ldexp(nearbyint(ldexp(v, q->precision)), exponent - q->precision);
}

static bool is_within(const struct bc_quant *q, double v)
{
	return v >= (double)q->min && v <= (double)q->max;
}

/* Whether the bounds are exact among the numbers, and 0, which a NaN becomes, is within. Else
 * only the integers can be held to them. */
static bool are_bounds_exact(const struct bc_quant *q)
{
	return rounded((double)q->min, q) == (double)q->min &&
	       rounded((double)q->max, q) == (double)q->max && is_within(q, 0);
}

static struct tc_value *clamped(const struct tc_build *b, struct tc_value *x, double least,
				double most)
{
	const struct tc_type *scalar = tc_tensor(b->c, (enum elem)x->type->elem, 0, NULL);
	struct tc_value *in[] = { tc_build_number(b, scalar, least), x,
				  tc_build_number(b, scalar, most) };

	return tc_build(b, TC_CLAMP, x->type, 3, in);
}

static struct tc_value *quantized(const struct tc_build *b, struct tc_value *x,
				  const struct bc_quant *q)
{
	x = tc_build2(b, TC_DIVIDE, x, spread(b, x->type, q->scale, q->n, q->dim));
	if (has_zeros(q))
		x = tc_build2(b, TC_ADD, x, zeros_of(b, x->type, q));
	x = clamped(b, x, (double)q->min, (double)q->max);
	x = tc_build1(b, TC_ROUND_NEAREST_EVEN, x);
	if (!are_bounds_exact(q)) {
		x = tc_build_convert(b, x, ELEM_S64);
		x = clamped(b, x, (double)q->min, (double)q->max);
	}
	x = tc_build_convert(b, x, (enum elem)q->storage);
	x->side = (void *)q;
	return x;
}

/* ---- products ---- */

/* How many products a sum of op has at most, so far as its attributes make sense. */
static int64_t sum_length(const struct tc_op *op)
{
	const struct tc_type *rhs = tc_in(op, 1)->type;
	int64_t length = 1, feature;
	const int64_t *dims;
	unsigned n;

	if (op->op == TC_CONVOLUTION) {
		feature = tc_attr_int(op, "kernel_output_feature_dimension", -1);
		if (feature < 0 || feature >= rhs->rank || !rhs->dim[feature])
			return rhs->count;
		return rhs->count / rhs->dim[feature];
	}
	dims = ints_of(op, "rhs_contracting_dimensions", &n);
	for (unsigned i = 0; i < n && length < TC_MAX_BYTES; i++)
		if (dims[i] >= 0 && dims[i] < rhs->rank)
			length *= rhs->dim[dims[i]];
	return length;
}

/* Where `dim` of a dot's second operand is in its result; -1: it is summed over. */
static int64_t dot_result_dim(const struct tc_op *op, int64_t dim)
{
	unsigned n_batch, n_sums;
	const int64_t *batch = ints_of(op, "rhs_batching_dimensions", &n_batch);
	const int64_t *sums = ints_of(op, "rhs_contracting_dimensions", &n_sums);
	int64_t at = tc_in(op, 0)->type->rank - (int64_t)n_sums;

	for (unsigned i = 0; i < n_batch; i++)
		if (batch[i] == dim)
			return i;
	for (unsigned i = 0; i < n_sums; i++)
		if (sums[i] == dim)
			return -1;
	for (int64_t d = 0; d < dim; d++) {
		bool is_kept = true;

		for (unsigned i = 0; i < n_batch; i++)
			is_kept &= batch[i] != d;
		for (unsigned i = 0; i < n_sums; i++)
			is_kept &= sums[i] != d;
		at += is_kept;
	}
	return at;
}

/* The result's dim along which the second operand's scales lie; -1: none, or not as it is. */
static int64_t scaled_dim(struct tc_op *op, const struct bc_quant *rhs)
{
	const struct tc_type *t = op->results[0].type;
	int64_t dim;

	if (op->op == TC_DOT_GENERAL)
		dim = dot_result_dim(op, rhs->dim);
	else if (rhs->dim == tc_attr_int(op, "kernel_output_feature_dimension", -1))
		dim = tc_attr_int(op, "output_feature_dimension", -1);
	else
		return -1;
	return dim >= 0 && dim < t->rank && t->dim[dim] == rhs->n ? dim : -1;
}

/* Signed integers for the matrix unit, whose sums have their type. */
static struct tc_value *factor(const struct tc_build *b, struct tc_value *x,
			       const struct bc_quant *q)
{
	if (!has_zeros(q) && elem_class(q->storage) == ELEM_CLASS_SINT)
		return x;
	return moved_to_zero(b, x, q, elem_bits(q->storage) <= 8 ? ELEM_S16 : ELEM_S32);
}

static struct tc_value *copied(const struct tc_build *b, const struct tc_op *op,
			       const struct tc_type *type, unsigned n, struct tc_value *const *in)
{
	struct tc_op *copy = tc_build(b, (enum tc_opcode)op->op, type, n, in)->def;

	for (unsigned i = 0; i < op->n_attrs; i++)
		tc_set_attr(b->c, copy, op->attrs[i]);
	return tc_out(copy, 0);
}

/*
 * A product of integers: exact, and read as they are where the zero points are 0. NULL: not so,
 * since sums might not fit 64 bits, scales lie along what is summed, or it names an algorithm; or
 * since dequantized numbers would have been rounded by more than a sum of f32 loses.
 */
static struct tc_value *integer_product(const struct tc_build *b, struct tc_op *op)
{
	const struct bc_quant *x = in_quant(op, 0), *y = in_quant(op, 1), *z = out_quant(op, 0);
	int64_t dim = -1;
	struct tc_value *in[2], *v;
	double *scale;
	unsigned bits;
	bool fits;

	if (!x || !y || x->dim >= 0 || elem_bits(x->storage) > 16 || elem_bits(y->storage) > 16 ||
	    elem_bits(z->expressed) < 32 || x->expressed != z->expressed ||
	    y->expressed != z->expressed || tc_attr(op, "accumulation_type"))
		return NULL;
	if (y->dim >= 0)
		dim = scaled_dim(op, y);
	if (y->dim >= 0 && dim < 0)
		return NULL;
	bits = elem_bits(x->storage) + elem_bits(y->storage);
	scale = arena_array(&b->c->arena, y->n, sizeof(*scale));
	for (uint32_t i = 0; scale && i < y->n; i++)
		scale[i] = rounded(*x->scale, x) * rounded(y->scale[i], y);
	if (!scale)
		tc_fail(b->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	in[0] = factor(b, tc_in(op, 0), x);
	in[1] = factor(b, tc_in(op, 1), y);
	fits = bits < 31 && sum_length(op) < (int64_t)1 << (31 - bits);
	v = copied(b, op, tc_with_elem(b->c, op->results[0].type, fits ? ELEM_S32 : ELEM_S64), 2,
		   in);
	v = tc_build_convert(b, v, (enum elem)z->expressed);
	return tc_build2(b, TC_MULTIPLY, v, spread(b, v->type, scale, y->n, dim));
}

/* ---- ops ---- */

static void replace(struct tc_op *op, struct tc_value *const *by)
{
	for (unsigned i = 0; i < op->n_results; i++)
		tc_replace_uses(tc_out(op, i), by[i]);
	tc_erase(op);
}

static void compute(struct bc *r, struct tc_op *op)
{
	struct tc_build b = tc_build_at(r->c, op);
	struct tc_value **in = bc_get(r, op->n_operands, sizeof(*in));
	struct tc_value **out = bc_get(r, op->n_results, sizeof(*out));
	const struct tc_type **types = bc_get(r, op->n_results, sizeof(*types));
	bool is_product = op->op == TC_DOT_GENERAL || op->op == TC_CONVOLUTION;
	struct tc_op *plain;

	if (is_product && op->n_operands == 2 && out_quant(op, 0)) {
		*out = integer_product(&b, op);
		if (*out) {
			*out = quantized(&b, *out, out_quant(op, 0));
			replace(op, out);
			return;
		}
	}
	for (unsigned i = 0; i < op->n_operands; i++)
		in[i] = in_quant(op, i) ? dequantized(&b, tc_in(op, i), in_quant(op, i)) :
			tc_in(op, i);
	for (unsigned i = 0; i < op->n_results; i++)
		types[i] = out_quant(op, i) ? tc_with_elem(r->c, op->results[i].type,
				(enum elem)out_quant(op, i)->expressed) : op->results[i].type;
	plain = tc_build_place(&b, tc_new(r->c, (enum tc_opcode)op->op, op->n_operands, in,
					  op->n_results, types, 0));
	for (unsigned i = 0; i < op->n_attrs; i++)
		tc_set_attr(r->c, plain, op->attrs[i]);
	if (op->op == TC_COMPARE)
		tc_set_int(r->c, plain, "compare_type", TC_ATTR_ENUM, TC_CMP_FLOAT);
	for (unsigned i = 0; i < op->n_results; i++)
		out[i] = out_quant(op, i) ? quantized(&b, tc_out(plain, i), out_quant(op, i)) :
			 tc_out(plain, i);
	replace(op, out);
}

/* uniform_quantize of floats and of quantized values, and uniform_dequantize. */
static void convert(struct bc *r, struct tc_op *op)
{
	const struct bc_quant *from = in_quant(op, 0), *to = out_quant(op, 0);
	struct tc_build b = tc_build_at(r->c, op);
	struct tc_value *v;
	unsigned elem;

	if (op->n_operands != 1 || op->n_results != 1)
		tc_fail(r->c, ERR_INVALID_ARGUMENT, op, "it has %u operands and %u results",
			op->n_operands, op->n_results);
	v = tc_in(op, 0);
	if (v->type->is_tuple || op->results[0].type->is_tuple ||
	    v->type != tc_with_elem(r->c, op->results[0].type, (enum elem)v->type->elem))
		tc_fail(r->c, ERR_INVALID_ARGUMENT, op, "its operand and result have different "
			"dims");
	if (from)
		v = dequantized(&b, v, from);
	elem = to ? to->expressed : op->results[0].type->elem;
	if (v->type->elem != elem)
		tc_fail(r->c, ERR_INVALID_ARGUMENT, op, "it makes %s of %s, which stands for %s",
			to ? to->text : elem_text(elem), from ? from->text :
			elem_text(v->type->elem), elem_text(from ? from->expressed : elem));
	if (to)
		v = quantized(&b, v, to);
	replace(op, &v);
}

/* Its data is of integers without a sign of their own. */
static void retype(struct bc *r, struct tc_op *op)
{
	const struct tc_attr *value = tc_attr(op, "value");
	const struct tc_type *t = op->results[0].type;
	struct tc_attr own;

	if (!value || value->kind != TC_ATTR_DENSE || value->type->is_tuple ||
	    elem_bits(value->type->elem) != elem_bits(t->elem) || elem_class(value->type->elem) !=
	    ELEM_CLASS_SINT || tc_with_elem(r->c, value->type, (enum elem)t->elem) != t)
		return;		/* ir_verify.c judges it */
	own = *value;
	own.type = t;
	tc_set_attr(r->c, op, own);
}

/* ---- ops that move integers ---- */

static int64_t product(const struct tc_type *t, int64_t n)
{
	int64_t p = 1;

	for (int64_t d = 0; d < n; d++)
		p *= t->dim[d];
	return p;
}

/* Whether the integers of x, whose scales lie along a dim, keep their scales in op's result. */
static bool keeps_scales(const struct tc_op *op, const struct bc_quant *x,
			 const struct bc_quant *z)
{
	const struct tc_type *from = tc_in(op, 0)->type, *to = op->results[0].type;
	const struct shaped *shaped = shaped_of(op);
	const int64_t *dims;
	unsigned n;

	switch (shaped ? shaped->op : op->op) {
	case TC_TRANSPOSE:
		dims = ints_of(op, "permutation", &n);
		return (unsigned)z->dim < n && dims[z->dim] == x->dim && is_alike(x, z);
	case TC_RESHAPE:
		return product(from, x->dim) == product(to, z->dim) && is_alike(x, z);
	case TC_BROADCAST_IN_DIM:
		dims = ints_of(op, "broadcast_dimensions", &n);
		if ((unsigned)x->dim >= n || dims[x->dim] != z->dim)
			return false;
		for (uint32_t i = 0; x->n == 1 && i < z->n; i++)
			if (z->scale[i] != *x->scale || z->zero[i] != *x->zero)
				return false;
		return x->n == 1 ? x->storage == z->storage && x->expressed == z->expressed &&
				   x->min == z->min && x->max == z->max : is_alike(x, z);
	default:
		return false;
	}
}

static void move(struct bc *r, struct tc_op *op, unsigned n)
{
	const struct bc_quant *z = out_quant(op, 0), *x = in_quant(op, 0);

	if (n == 1 && x && z && x->dim >= 0 && z->dim >= 0 && keeps_scales(op, x, z))
		return;
	for (unsigned i = 0; i < op->n_operands; i++) {
		x = in_quant(op, i);
		if (i < n)
			want_same(r, op, x, z);
		else if (x)
			tc_fail(r->c, ERR_INVALID_ARGUMENT, op, "its operand %u is of %s", i,
				x->text);
		if (x && x->dim >= 0)
			tc_fail(r->c, ERR_UNIMPLEMENTED, op, "elements of %s do not keep their "
				"scales in it", x->text);
	}
}

static void pass(struct bc *r, struct tc_op *op)
{
	for (unsigned i = 0; i < op->n_results; i++)
		want_same(r, op, in_quant(op, i), out_quant(op, i));
}

/* Slots: what is quantized alike; -1: what is not quantized. n: results of op. */
static int64_t operand_slot(const struct tc_op *op, unsigned i)
{
	unsigned n = op->n_results;

	switch (op->op) {
	case TC_IF:
	case TC_CASE: return -1;
	case TC_REDUCE:
	case TC_REDUCE_WINDOW: return n ? i % n : 0;
	case TC_SCATTER: return i < n ? (int64_t)i : (int64_t)i - n - 1;
	case TC_SELECT_AND_SCATTER:
	case TC_ALL_REDUCE: return 0;
	default: return i;
	}
}

static int64_t result_slot(const struct tc_op *op, unsigned i)
{
	return op->op == TC_ALL_REDUCE ? 0 : i;
}

static int64_t arg_slot(const struct tc_op *op, unsigned i)
{
	unsigned n = op->n_results;

	switch (op->op) {
	case TC_SORT: return i / 2;
	case TC_REDUCE:
	case TC_REDUCE_WINDOW:
	case TC_SCATTER: return n ? i % n : 0;
	case TC_WHILE: return i;
	default: return 0;
	}
}

static int64_t return_slot(const struct tc_op *op, unsigned region, unsigned i)
{
	bool is_choice = op->op == TC_SORT || (op->op == TC_WHILE && !region) ||
			 (op->op == TC_SELECT_AND_SCATTER && !region);

	return is_choice ? -1 : (int64_t)i;
}

struct slots {
	struct bc *r;
	struct tc_op *op;
	const struct bc_quant **quants;	/* by slot */
	bool *is_seen;
	int64_t n;
};

static void fill(struct slots *s, int64_t slot, const struct bc_quant *q)
{
	if (slot >= s->n)
		return;		/* more than op can have: ir_verify.c says so */
	if (slot >= 0 && !s->is_seen[slot])
		s->quants[slot] = q;
	want_same(s->r, s->op, q, slot < 0 ? NULL : s->quants[slot]);
	if (slot >= 0)
		s->is_seen[slot] = true;
	/* the elements that a body sees have no dim */
	if (q && q->dim >= 0 && s->op->op != TC_WHILE && s->op->op != TC_IF &&
	    s->op->op != TC_CASE)
		tc_fail(s->r->c, ERR_UNIMPLEMENTED, s->op, "values of %s do not run in it: those "
			"with one scale do", q->text);
}

static void check_bodies(struct bc *r, struct tc_op *op)
{
	int64_t n = (int64_t)op->n_operands + op->n_results + 1;
	struct slots s = { r, op, bc_get(r, (size_t)n, sizeof(*s.quants)),
			   bc_get(r, (size_t)n, sizeof(*s.is_seen)), n };

	for (unsigned i = 0; i < op->n_operands; i++)
		fill(&s, operand_slot(op, i), in_quant(op, i));
	for (unsigned i = 0; i < op->n_results; i++)
		fill(&s, result_slot(op, i), out_quant(op, i));
	for (unsigned k = 0; k < op->n_regions; k++) {
		struct tc_block *b = op->regions[k].block;

		for (unsigned i = 0; b && i < b->n_args; i++)
			fill(&s, arg_slot(op, i), quant(b->args[i]));
		for (unsigned i = 0; b && b->last && i < b->last->n_operands; i++)
			fill(&s, return_slot(op, k, i), in_quant(b->last, i));
	}
}

static void enter(struct bc *r, struct tc_op *op)
{
	const char *name = tc_attr_str(op, op->op == TC_CALL ? "callee" : "decomposition");
	const struct tc_op *func = op->n_regions ? op : name ? tc_find_func(r->c, name) : NULL;
	const struct tc_block *b = func && func->n_regions ? func->regions[0].block : NULL;

	for (unsigned i = 0; b && i < b->n_args && i < op->n_operands; i++)
		want_same(r, op, in_quant(op, i), quant(b->args[i]));
	for (unsigned i = 0; b && b->last && i < b->last->n_operands && i < op->n_results; i++)
		want_same(r, op, in_quant(b->last, i), out_quant(op, i));
}

static bool is_conversion(const struct tc_op *op)
{
	const char *name = op->op == TC_OPAQUE ? tc_attr_str(op, "name") : NULL;

	return name && (!strcmp(name, "uniform_quantize_v1") ||
			!strcmp(name, "uniform_dequantize_v1"));
}

/* The first type of an operand, a result or what its regions are given; NULL: none. */
static const struct bc_quant *first_quant(struct tc_op *op)
{
	const struct bc_quant *q = NULL;

	for (unsigned i = 0; i < op->n_operands && !q; i++)
		q = in_quant(op, i);
	for (unsigned i = 0; i < op->n_results && !q; i++)
		q = out_quant(op, i);
	for (unsigned k = 0; k < op->n_regions && !q; k++)
		for (unsigned i = 0; op->regions[k].block && !q &&
		     i < op->regions[k].block->n_args; i++)
			q = quant(op->regions[k].block->args[i]);
	return q;
}

static enum way way_of(const struct tc_op *op)
{
	const struct shaped *s = shaped_of(op);

	return s ? (enum way)s->way : (enum way)ways[op->op];
}

static void lower(struct bc *r, struct tc_op *op)
{
	if (is_conversion(op)) {
		convert(r, op);
		return;
	}
	switch (way_of(op)) {
	case COMPUTES: compute(r, op); break;
	case MOVES: move(r, op, 1); break;
	case MOVES_TWO: move(r, op, 2); break;
	case MOVES_ALL: move(r, op, op->n_operands); break;
	case PASSES: pass(r, op); break;
	case HAS_BODY: check_bodies(r, op); break;
	case ENTERS: enter(r, op); break;
	case HOLDS: retype(r, op); break;
	case ANY: break;
	default:
		tc_fail(r->c, ERR_UNIMPLEMENTED, op, "values of %s do not run in it: put a "
			"uniform_dequantize before it", first_quant(op)->text);
	}
}

static void lower_block(struct bc *r, struct tc_block *b)
{
	for (struct tc_op *op = b->first, *next; op; op = next) {
		next = op->next;
		for (unsigned k = 0; k < op->n_regions; k++)
			if (op->regions[k].block)
				lower_block(r, op->regions[k].block);
		if (first_quant(op) && op->op != TC_FUNC && op->op != TC_MODULE)
			lower(r, op);
	}
}

void bc_lower_quantized(struct bc *r)
{
	lower_block(r, r->c->module->regions[0].block);
}
