/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elementwise ops of the reference evaluator: one number, two or three at a point, by
 * the class of their type. Corner cases (division by zero, shifts by too much, NaN in
 * maximum, signed zeros) are those of XLA's CPU backend.
 */
#include <complex.h>
#include <math.h>
#include <string.h>

#include "runtime/compiler/eval/eval.h"

/* The value bits of an integer, not extended. */
static uint64_t bits_of(unsigned elem, uint64_t i)
{
	return i << (64 - elem_bits(elem)) >> (64 - elem_bits(elem));
}

/* ---- one operand ---- */

static uint64_t unary_integer(struct eval *e, unsigned op, unsigned elem, uint64_t x)
{
	bool is_signed = elem_class(elem) == ELEM_CLASS_SINT;
	bool negative = is_signed && (int64_t)x < 0;

	switch (op) {
	case TC_ABS: return negative ? 0 - x : x;
	case TC_COUNT_LEADING_ZEROS:
		x = bits_of(elem, x);
		return x ? (uint64_t)__builtin_clzll(x) - (64 - elem_bits(elem)) :
			   elem_bits(elem);
	case TC_NEGATE: return 0 - x;
	case TC_NOT: return elem == ELEM_PRED ? !x : ~x;
	case TC_POPCNT: return (uint64_t)__builtin_popcountll(bits_of(elem, x));
	case TC_REAL: return x;
	case TC_IMAG: return 0;
	case TC_SIGN: return negative ? UINT64_MAX : x != 0;
	default: tc_eval_refuse(e, elem);
	}
}

static double unary_float(struct eval *e, unsigned op, unsigned elem, double x)
{
	switch (op) {
	case TC_ABS: return fabs(x);
	case TC_CBRT: return cbrt(x);
	case TC_CEIL: return ceil(x);
	case TC_COSINE: return cos(x);
	case TC_ERF: return erf(x);
	case TC_EXPONENTIAL: return exp(x);
	case TC_EXPONENTIAL_MINUS_ONE: return expm1(x);
	case TC_FLOOR: return floor(x);
	case TC_IMAG: return 0;
	case TC_LOG: return log(x);
	case TC_LOG_PLUS_ONE: return log1p(x);
	case TC_LOGISTIC: return 1 / (1 + exp(-x));
	case TC_NEGATE: return -x;
	case TC_REAL: return x;
	case TC_ROUND_NEAREST_AFZ: return round(x);
	case TC_ROUND_NEAREST_EVEN: return nearbyint(x);
	case TC_RSQRT: return 1 / sqrt(x);
	case TC_SIGN: return x > 0 ? 1 : x < 0 ? -1 : x;
	case TC_SINE: return sin(x);
	case TC_SQRT: return sqrt(x);
	case TC_TAN: return tan(x);
	case TC_TANH: return tanh(x);
	default: tc_eval_refuse(e, elem);
	}
}

/* exp(z) - 1, without cancellation near 0. */
static double complex expm1_of(double complex z)
{
	double x = creal(z), y = cimag(z), s = sin(y / 2);

	if (y == 0)
		return CMPLX(expm1(x), y);
	return CMPLX(expm1(x) * cos(y) - 2 * s * s, exp(x) * sin(y));
}

/* log(1 + z), without cancellation near 0. */
static double complex log1p_of(double complex z)
{
	double x = creal(z), y = cimag(z), re;

	if (hypot(x, y) < 0.5)
		re = 0.5 * log1p(x * (2 + x) + y * y);
	else
		re = log(hypot(1 + x, y));
	return CMPLX(re, atan2(y, 1 + x));
}

static double complex sign_of(double complex z)
{
	double size = cabs(z);

	return size == 0 ? z : CMPLX(creal(z) / size, cimag(z) / size);
}

static double complex unary_complex(struct eval *e, unsigned op, unsigned elem,
				    double complex z)
{
	switch (op) {
	case TC_ABS: return cabs(z);
	case TC_CBRT: return z == 0 ? z : cpow(z, 1.0 / 3);
	case TC_COSINE: return ccos(z);
	case TC_EXPONENTIAL: return cexp(z);
	case TC_EXPONENTIAL_MINUS_ONE: return expm1_of(z);
	case TC_IMAG: return cimag(z);
	case TC_LOG: return clog(z);
	case TC_LOG_PLUS_ONE: return log1p_of(z);
	case TC_LOGISTIC: return 1 / (1 + cexp(-z));
	case TC_NEGATE: return -z;
	case TC_REAL: return creal(z);
	case TC_RSQRT: return z == 0 ? CMPLX(INFINITY, 0) : 1 / csqrt(z);
	case TC_SIGN: return sign_of(z);
	case TC_SINE: return csin(z);
	case TC_SQRT: return csqrt(z);
	case TC_TAN: return ctan(z);
	case TC_TANH: return ctanh(z);
	default: tc_eval_refuse(e, elem);
	}
}

static struct num unary(struct eval *e, unsigned op, unsigned elem, struct num x)
{
	double complex z;

	if (op == TC_IS_FINITE)
		return (struct num){ .i = isfinite(x.re) && isfinite(x.im) };
	switch (elem_class(elem)) {
	case ELEM_CLASS_FLOAT:
		return (struct num){ .re = unary_float(e, op, elem, x.re) };
	case ELEM_CLASS_COMPLEX:
		z = unary_complex(e, op, elem, CMPLX(x.re, x.im));
		return (struct num){ .re = creal(z), .im = cimag(z) };
	default:
		return (struct num){ .i = unary_integer(e, op, elem, x.i) };
	}
}

/* ---- two operands ---- */

static uint64_t power_integer(bool is_signed, uint64_t x, uint64_t n)
{
	uint64_t y = 1;

	if (is_signed && (int64_t)n < 0)
		return x == 1 ? 1 : x == UINT64_MAX ? (n & 1 ? x : 1) : 0;
	for (; n; n >>= 1, x *= x)
		if (n & 1)
			y *= x;
	return y;
}

static uint64_t divide_integer(bool is_signed, uint64_t x, uint64_t y, bool remainder)
{
	if (!y)
		return remainder ? x : UINT64_MAX;
	if (!is_signed)
		return remainder ? x % y : x / y;
	/* the least number by -1 does not fit, and traps */
	if (y == UINT64_MAX)
		return remainder ? 0 : 0 - x;
	return (uint64_t)(remainder ? (int64_t)x % (int64_t)y : (int64_t)x / (int64_t)y);
}

static uint64_t shift(unsigned op, unsigned elem, uint64_t x, uint64_t by)
{
	unsigned bits = elem_bits(elem);

	by = bits_of(elem, by);
	switch (op) {
	case TC_SHIFT_LEFT: return by < bits ? x << by : 0;
	case TC_SHIFT_RIGHT_LOGICAL: return by < bits ? bits_of(elem, x) >> by : 0;
	default:
		x <<= 64 - bits;
		return (uint64_t)((int64_t)x >> (64 - bits) >> (by < bits ? by : bits - 1));
	}
}

static uint64_t binary_integer(struct eval *e, unsigned op, unsigned elem, uint64_t x,
			       uint64_t y)
{
	bool is_signed = elem_class(elem) == ELEM_CLASS_SINT;
	bool less = is_signed ? (int64_t)x < (int64_t)y : x < y;

	switch (op) {
	case TC_ADD: return x + y;
	case TC_AND: return x & y;
	case TC_DIVIDE: return divide_integer(is_signed, x, y, false);
	case TC_MAXIMUM: return less ? y : x;
	case TC_MINIMUM: return less ? x : y;
	case TC_MULTIPLY: return x * y;
	case TC_OR: return x | y;
	case TC_POWER: return power_integer(is_signed, x, y);
	case TC_REMAINDER: return divide_integer(is_signed, x, y, true);
	case TC_SHIFT_LEFT:
	case TC_SHIFT_RIGHT_ARITHMETIC:
	case TC_SHIFT_RIGHT_LOGICAL: return shift(op, elem, x, y);
	case TC_SUBTRACT: return x - y;
	case TC_XOR: return x ^ y;
	default: tc_eval_refuse(e, elem);
	}
}

static double binary_float(struct eval *e, unsigned op, unsigned elem, double x, double y)
{
	switch (op) {
	case TC_ADD: return x + y;
	case TC_ATAN2: return atan2(x, y);
	case TC_DIVIDE: return x / y;
	case TC_MULTIPLY: return x * y;
	case TC_POWER: return pow(x, y);
	case TC_REMAINDER: return fmod(x, y);
	case TC_SUBTRACT: return x - y;
	default: tc_eval_refuse(e, elem);
	}
}

/* Whether maximum or minimum of two is x, which then is the result, bit for bit. */
static bool is_first_float(bool is_most, double x, double y)
{
	if (isnan(x) || isnan(y))
		return isnan(x);
	if (x == y)
		return is_most == !signbit(x);
	return is_most ? x > y : x < y;
}

/* By the real part, then the imaginary. */
static bool is_before(struct num a, struct num b)
{
	return a.re < b.re || (a.re == b.re && a.im < b.im);
}

static bool has_nan(struct num a)
{
	return isnan(a.re) || isnan(a.im);
}

static struct num binary_complex(struct eval *e, unsigned op, unsigned elem, struct num a,
				 struct num b)
{
	double complex x = CMPLX(a.re, a.im), y = CMPLX(b.re, b.im), z;

	switch (op) {
	case TC_ADD: return tc_num_add(a, b);
	case TC_SUBTRACT: return tc_num_sub(a, b);
	case TC_MULTIPLY: return tc_num_mul(ELEM_CLASS_COMPLEX, a, b);
	case TC_DIVIDE: z = x / y; break;
	case TC_POWER:
		z = x == 0 && creal(y) > 0 ? 0 : y == 0 ? 1 : (double complex)cpowl(x, y);
		break;
	default: tc_eval_refuse(e, elem);
	}
	return (struct num){ .re = creal(z), .im = cimag(z) };
}

static struct num extreme(unsigned op, unsigned elem, struct num x, struct num y)
{
	struct num a = tc_num_flush(elem, x), b = tc_num_flush(elem, y);

	if (elem_class(elem) == ELEM_CLASS_FLOAT)
		return is_first_float(op == TC_MAXIMUM, a.re, b.re) ? x : y;
	if (has_nan(a))
		return x;
	return has_nan(b) || (op == TC_MAXIMUM ? is_before(a, b) : is_before(b, a)) ? y : x;
}

static struct num binary(struct eval *e, unsigned op, unsigned elem, struct num x,
			 struct num y)
{
	if ((op == TC_MAXIMUM || op == TC_MINIMUM) && elem_class(elem) >= ELEM_CLASS_FLOAT)
		return extreme(op, elem, x, y);
	switch (elem_class(elem)) {
	case ELEM_CLASS_FLOAT:
		return (struct num){ .re = binary_float(e, op, elem, x.re, y.re) };
	case ELEM_CLASS_COMPLEX:
		return binary_complex(e, op, elem, x, y);
	default:
		return (struct num){ .i = binary_integer(e, op, elem, x.i, y.i) };
	}
}

/* ---- compare ---- */

/* -NaN < -inf < ... < -0 < +0 < ... < inf < NaN, as signed integers. */
static int64_t total_order(double x)
{
	int64_t i;

	memcpy(&i, &x, sizeof(i));
	return i < 0 ? i ^ INT64_MAX : i;
}

static bool compare(const struct tc_op *op, unsigned elem, struct num x, struct num y)
{
	int64_t direction = tc_attr_int(op, "comparison_direction", 0);
	bool less, equal;

	switch (elem_class(elem)) {
	case ELEM_CLASS_FLOAT:
		if (tc_attr_int(op, "compare_type", 0) == TC_CMP_TOTALORDER) {
			less = total_order(x.re) < total_order(y.re);
			equal = total_order(x.re) == total_order(y.re);
			break;
		}
		if (isnan(x.re) || isnan(y.re))
			return direction == TC_CMP_NE;
		less = x.re < y.re;
		equal = x.re == y.re;
		break;
	case ELEM_CLASS_COMPLEX:
		if (isnan(x.re) || isnan(y.re) ||
		    (x.re == y.re && (isnan(x.im) || isnan(y.im))))
			return direction == TC_CMP_NE;
		less = is_before(x, y);
		equal = x.re == y.re && x.im == y.im;
		break;
	default:
		less = elem_class(elem) == ELEM_CLASS_SINT ? (int64_t)x.i < (int64_t)y.i :
							     x.i < y.i;
		equal = x.i == y.i;
		break;
	}
	switch (direction) {
	case TC_CMP_EQ: return equal;
	case TC_CMP_NE: return !equal;
	case TC_CMP_GE: return !less;
	case TC_CMP_GT: return !less && !equal;
	case TC_CMP_LE: return less || equal;
	default: return less;
	}
}

/* ---- reduce_precision ---- */

struct layout { unsigned exponent, mantissa; };

/* On the bits: the mantissa rounds to nearest even, and may carry; then what is out of
 * the smaller exponent's range is infinity or zero. NaN stays. */
static uint64_t reduce_bits(struct layout f, struct layout to, uint64_t raw)
{
	uint64_t sign = raw & (uint64_t)1 << (f.exponent + f.mantissa);
	uint64_t a = raw ^ sign;
	uint64_t infinity = (((uint64_t)1 << f.exponent) - 1) << f.mantissa;

	if (a > infinity)
		return raw;
	if (to.mantissa < f.mantissa) {
		unsigned gone = f.mantissa - to.mantissa;
		uint64_t half = (uint64_t)1 << (gone - 1), last = a >> gone & 1;

		a = (a + half - 1 + last) >> gone << gone;
	}
	if (to.exponent < f.exponent) {
		uint64_t bias = ((uint64_t)1 << (f.exponent - 1)) - 1;
		uint64_t reach = ((uint64_t)1 << (to.exponent - 1)) - 1;

		if (a >> f.mantissa > bias + reach)
			a = infinity;
		else if (a >> f.mantissa <= bias - reach)
			a = 0;
	}
	return sign | a;
}

static void reduce_precision(struct eval *e, const struct tc_op *op, struct eval_array *in,
			     struct eval_array *out)
{
	unsigned elem = in->type->elem, in_bits_of = elem;
	struct layout f, to = {
		(unsigned)tc_attr_int(op, "exponent_bits", 0),
		(unsigned)tc_attr_int(op, "mantissa_bits", 0) };

	switch (elem) {
	case ELEM_BF16: f = (struct layout){ 8, 7 }; break;
	case ELEM_F32: f = (struct layout){ 8, 23 }; break;
	case ELEM_F64: f = (struct layout){ 11, 52 }; break;
	case ELEM_F8E8M0FNU:
		f = (struct layout){ 8, 23 };
		in_bits_of = ELEM_F32;
		break;
	default:
		if (elem_class(elem) != ELEM_CLASS_FLOAT)
			tc_eval_refuse(e, elem);
		/* What is narrower is reduced as the f16 that it equals. */
		f = (struct layout){ 5, 10 };
		in_bits_of = ELEM_F16;
	}
	for (int64_t i = 0; i < out->type->count; i++) {
		uint64_t raw = 0;

		tc_num_store(in_bits_of, &raw, tc_num_load(elem, tc_eval_at(in, i)));
		raw = reduce_bits(f, to, raw);
		tc_num_store(elem, tc_eval_at(out, i), tc_num_load(in_bits_of, &raw));
	}
}

/* ---- the loop ---- */

/* select moves elements as they are; its predicate may be one for all. */
static void select_elements(struct eval *e, const struct tc_op *op, struct eval_array *out)
{
	struct eval_array *p = tc_eval_in(e, op, 0), *a = tc_eval_in(e, op, 1);
	struct eval_array *b = tc_eval_in(e, op, 2);

	for (int64_t i = 0; i < out->type->count; i++) {
		bool which = tc_num_load(ELEM_PRED, tc_eval_at(p, p->type->rank ? i : 0)).i;

		memcpy(tc_eval_at(out, i), tc_eval_at(which ? a : b, i),
		       elem_bytes(out->type->elem));
	}
}

static bool is_single(unsigned elem)
{
	return elem == ELEM_F32 || elem == ELEM_BF16 || elem == ELEM_C64;
}

/* Whether the op changes no more than a sign, or picks one of its operands: what is below the
 * smallest normal number stays then. To the device such numbers are zeros elsewhere. */
static bool is_move(const struct tc_op *op)
{
	unsigned from = tc_in(op, 0)->type->elem, to = op->results[0].type->elem;

	switch (op->op) {
	case TC_NEGATE:
	case TC_REAL:
	case TC_IMAG:
	case TC_COMPLEX:
	case TC_CLAMP:
	case TC_MAXIMUM:
	case TC_MINIMUM:
	case TC_IS_FINITE:
		return true;
	case TC_ABS:
		return elem_class(from) != ELEM_CLASS_COMPLEX;
	case TC_COMPARE:
		return tc_attr_int(op, "compare_type", 0) == TC_CMP_TOTALORDER;
	case TC_CONVERT:
		/* Parts of one width, of which bf16 is the upper half. */
		if (is_single(from))
			return is_single(to) || to == ELEM_F8E8M0FNU;
		if (from == ELEM_F8E8M0FNU)
			return is_single(to);
		return (from == ELEM_F64 || from == ELEM_C128) && (to == ELEM_F64 ||
								   to == ELEM_C128);
	default:
		return false;
	}
}

static struct num at_point(struct eval *e, const struct tc_op *op, unsigned elem,
			   const struct num *x)
{
	switch (op->op) {
	case TC_CONVERT:
		return tc_num_convert(elem, op->results[0].type->elem, x[0]);
	case TC_COMPARE:
		return (struct num){ .i = compare(op, elem, x[0], x[1]) };
	case TC_COMPLEX:
		return (struct num){ .re = x[0].re, .im = x[1].re };
	case TC_CLAMP:
		return binary(e, TC_MINIMUM, elem,
			      binary(e, TC_MAXIMUM, elem, x[1], x[0]), x[2]);
	default:
		return op->n_operands == 1 ? unary(e, op->op, elem, x[0]) :
					     binary(e, op->op, elem, x[0], x[1]);
	}
}

void tc_eval_elementwise(struct eval *e, const struct tc_op *op)
{
	struct eval_array *out = tc_eval_out(e, op, 0), *in[3] = { NULL };
	unsigned elem = tc_in(op, 0)->type->elem;
	struct num x[3] = { { 0 } }, y;
	bool moves = is_move(op);

	for (unsigned j = 0; j < op->n_operands; j++)
		in[j] = tc_eval_in(e, op, j);
	if (op->op == TC_SELECT) {
		select_elements(e, op, out);
		return;
	}
	if (op->op == TC_REDUCE_PRECISION) {
		reduce_precision(e, op, in[0], out);
		return;
	}
	for (int64_t i = 0; i < out->type->count; i++) {
		for (unsigned j = 0; j < op->n_operands; j++) {
			/* clamp's bounds may be one for all */
			int64_t k = in[j]->type->rank ? i : 0;

			x[j] = tc_num_load(elem, tc_eval_at(in[j], k));
			if (!moves)
				x[j] = tc_num_flush(elem, x[j]);
		}
		y = at_point(e, op, elem, x);
		if (!moves)
			y = tc_num_flush(out->type->elem, y);
		tc_num_store(out->type->elem, tc_eval_at(out, i), y);
	}
}
