/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elements of the reference evaluator: from memory to a number in hand and back.
 *
 * Every floating-point type but f32 and f64 is one row of a table: how many bits of
 * exponent and mantissa, and what the codes beyond the numbers mean. Double holds all
 * of their values, and a double result of +, -, *, / or sqrt rounds to f32 and to
 * anything narrower as the exact result would.
 */
#include <math.h>
#include <string.h>

#include "runtime/compiler/eval/eval.h"

/* Codes that are no finite number. */
enum kind {
	IEEE,	/* the largest exponent: infinity and NaN */
	FN,	/* all ones: NaN; no infinity */
	FNUZ,	/* negative zero: NaN; no infinity */
	FINITE,	/* none: too large is the largest, NaN is negative zero */
	SCALE,	/* powers of two; all ones: NaN; no sign, no zero */
};

struct format {
	uint8_t exponent, mantissa;
	int16_t bias;
	uint8_t kind;
};

static const struct format formats[ELEM_COUNT] = {
	[ELEM_F32] = { 8, 23, 127, IEEE },	/* its subnormals: others are C's float */
	[ELEM_F16] = { 5, 10, 15, IEEE },
	[ELEM_BF16] = { 8, 7, 127, IEEE },
	[ELEM_F8E5M2] = { 5, 2, 15, IEEE },
	[ELEM_F8E4M3] = { 4, 3, 7, IEEE },
	[ELEM_F8E3M4] = { 3, 4, 3, IEEE },
	[ELEM_F8E4M3FN] = { 4, 3, 7, FN },
	[ELEM_F8E4M3B11FNUZ] = { 4, 3, 11, FNUZ },
	[ELEM_F8E5M2FNUZ] = { 5, 2, 16, FNUZ },
	[ELEM_F8E4M3FNUZ] = { 4, 3, 8, FNUZ },
	[ELEM_F8E8M0FNU] = { 8, 0, 127, SCALE },
	[ELEM_F4E2M1FN] = { 2, 1, 1, FINITE },
};

static double decode(const struct format *f, unsigned raw)
{
	unsigned m = f->mantissa, sign = raw >> (f->exponent + m) & 1;
	unsigned fraction = raw & ((1u << m) - 1);
	int exponent = (int)(raw >> m & ((1u << f->exponent) - 1));
	int top = (1 << f->exponent) - 1;
	double x;

	if (f->kind == SCALE)
		return raw == 255 ? NAN : ldexp(1, (int)raw - f->bias);
	if (exponent)
		x = ldexp((1u << m) + fraction, exponent - f->bias - (int)m);
	else
		x = ldexp(fraction, 1 - f->bias - (int)m);
	if (f->kind == IEEE && exponent == top)
		x = fraction ? NAN : INFINITY;
	if (f->kind == FN && exponent == top && fraction == (1u << m) - 1)
		x = NAN;
	if (f->kind == FNUZ && sign && !exponent && !fraction)
		x = NAN;
	return copysign(x, sign ? -1 : 1);
}

static unsigned encode_scale(double x)
{
	int e;

	if (!(x > 0) || isinf(x))
		return 255;
	/* half way is up */
	e = frexp(x, &e) < 0.75 ? ilogb(x) + 127 : ilogb(x) + 128;
	return e > 254 ? 255 : e < 0 ? 0 : (unsigned)e;
}

static unsigned encode(const struct format *f, double x)
{
	int m = f->mantissa, exponent;
	unsigned sign = (signbit(x) ? 1u : 0) << (f->exponent + m);
	unsigned ones = (1u << (f->exponent + m)) - 1;
	/* the first code that is no number */
	unsigned end = f->kind == IEEE ? ones - ((1u << m) - 1) :
		       f->kind == FN ? ones : ones + 1;
	int64_t code;

	if (f->kind == SCALE)
		return encode_scale(x);
	if (isnan(x))
		return f->kind == IEEE ? sign | end | 1u << (m - 1) :
		       f->kind == FN ? sign | end : end;
	x = fabs(x);
	if (isinf(x)) {
		code = end;
	} else {
		exponent = x > 0 ? ilogb(x) : 1 - f->bias;
		if (exponent < 1 - f->bias)
			exponent = 1 - f->bias;
		/* A mantissa that rounds up to the next power of two carries into the
		 * exponent, as it should. */
		code = (int64_t)nearbyint(ldexp(x, m - exponent)) +
		       ((int64_t)(exponent + f->bias - 1) << m);
	}
	if (code >= end)
		return f->kind == FINITE ? sign | (end - 1) :
		       f->kind == FNUZ ? end : sign | end;
	if (f->kind == FNUZ && !code)
		return 0;
	return sign | (unsigned)code;
}

static double load_float(unsigned elem, const void *p)
{
	uint32_t raw;
	uint16_t wide;
	double d;
	float s;

	switch (elem) {
	case ELEM_F32:
		memcpy(&raw, p, sizeof(raw));
		if (!(raw << 1 >> 24))
			return decode(&formats[elem], raw);
		memcpy(&s, p, sizeof(s));
		return s;
	case ELEM_F64:
		memcpy(&d, p, sizeof(d));
		return d;
	case ELEM_F16:
	case ELEM_BF16:
		memcpy(&wide, p, sizeof(wide));
		return decode(&formats[elem], wide);
	default:
		return decode(&formats[elem], *(const uint8_t *)p);
	}
}

static void store_float(unsigned elem, void *p, double x)
{
	uint32_t raw;
	uint16_t wide;
	float s;

	switch (elem) {
	case ELEM_F32:
		if (fabs(x) < 0x1p-126) {
			raw = encode(&formats[elem], x);
			memcpy(p, &raw, sizeof(raw));
			break;
		}
		s = (float)x;
		memcpy(p, &s, sizeof(s));
		break;
	case ELEM_F64:
		memcpy(p, &x, sizeof(x));
		break;
	case ELEM_F16:
	case ELEM_BF16:
		wide = (uint16_t)encode(&formats[elem], x);
		memcpy(p, &wide, sizeof(wide));
		break;
	default:
		*(uint8_t *)p = (uint8_t)encode(&formats[elem], x);
		break;
	}
}

/* The low bits of i as a value of the integer type, to 64 bits. */
static uint64_t cut(unsigned elem, uint64_t i)
{
	unsigned out = 64 - elem_bits(elem);

	if (elem_class(elem) == ELEM_CLASS_SINT)
		return (uint64_t)((int64_t)(i << out) >> out);
	return i << out >> out;
}

struct num tc_num_load(unsigned elem, const void *p)
{
	struct num x = { 0 };

	switch (elem_class(elem)) {
	case ELEM_CLASS_PRED:
		x.i = *(const uint8_t *)p != 0;
		break;
	case ELEM_CLASS_SINT:
	case ELEM_CLASS_UINT:
		/* little endian */
		memcpy(&x.i, p, elem_bytes(elem));
		x.i = cut(elem, x.i);
		break;
	case ELEM_CLASS_FLOAT:
		x.re = load_float(elem, p);
		break;
	case ELEM_CLASS_COMPLEX: {
		unsigned part = elem == ELEM_C64 ? ELEM_F32 : ELEM_F64;

		x.re = load_float(part, p);
		x.im = load_float(part, (const char *)p + elem_bytes(part));
		break;
	}
	default:
		break;
	}
	return x;
}

void tc_num_store(unsigned elem, void *p, struct num x)
{
	switch (elem_class(elem)) {
	case ELEM_CLASS_PRED:
		*(uint8_t *)p = x.i != 0;
		break;
	case ELEM_CLASS_SINT:
	case ELEM_CLASS_UINT:
		x.i = cut(elem, x.i);
		memcpy(p, &x.i, elem_bytes(elem));
		break;
	case ELEM_CLASS_FLOAT:
		store_float(elem, p, x.re);
		break;
	case ELEM_CLASS_COMPLEX: {
		unsigned part = elem == ELEM_C64 ? ELEM_F32 : ELEM_F64;

		store_float(part, p, x.re);
		store_float(part, (char *)p + elem_bytes(part), x.im);
		break;
	}
	default:
		break;
	}
}

/* In float's range what is smaller is rounded as the device's arithmetic does, to zero or to the
 * smallest normal number: this thread computes as it does (tc_eval()). */
static double flush(unsigned elem, double x)
{
	switch (elem) {
	case ELEM_F32:
	case ELEM_BF16:
	case ELEM_C64:
		return fabs(x) < 0x1p-126 ? (double)(float)x : x;
	case ELEM_F64:
	case ELEM_C128:
		return fabs(x) < 0x1p-1022 ? copysign(0, x) : x;
	default:
		return x;
	}
}

struct num tc_num_flush(unsigned elem, struct num x)
{
	x.re = flush(elem, x.re);
	x.im = flush(elem, x.im);
	return x;
}

/* ---- converting ---- */

/* Truncated toward zero, kept within the type; NaN is 0. */
static uint64_t to_integer(unsigned elem, double x)
{
	unsigned bits = elem_bits(elem);

	if (isnan(x))
		return 0;
	if (elem_class(elem) == ELEM_CLASS_UINT) {
		if (x >= ldexp(1, (int)bits))
			return cut(elem, UINT64_MAX);
		return x <= 0 ? 0 : (uint64_t)x;
	}
	if (x >= ldexp(1, (int)bits - 1))
		return ((uint64_t)1 << (bits - 1)) - 1;
	if (x <= -ldexp(1, (int)bits - 1))
		return cut(elem, (uint64_t)1 << (bits - 1));
	return (uint64_t)(int64_t)x;
}

/*
 * An integer as double, for a type that is narrower: bits that do not fit leave a mark
 * in the last one (rounding to odd), so that storing rounds as if it saw all of them.
 */
static double to_double(bool is_signed, uint64_t i, bool is_final)
{
	bool negative = is_signed && (int64_t)i < 0;
	uint64_t a = negative ? 0 - i : i;
	int excess = a >> 53 ? 11 - __builtin_clzll(a) : 0;
	double x;

	if (is_final || !excess)
		x = (double)a;
	else
		x = ldexp((double)(a >> excess |
				   ((a & (((uint64_t)1 << excess) - 1)) != 0)), excess);
	return negative ? -x : x;
}

struct num tc_num_convert(unsigned from, unsigned to, struct num x)
{
	unsigned a = elem_class(from), b = elem_class(to);
	bool is_integer = a == ELEM_CLASS_PRED || a == ELEM_CLASS_SINT ||
			  a == ELEM_CLASS_UINT;
	struct num y = { 0 };

	switch (b) {
	case ELEM_CLASS_PRED:
		y.i = is_integer ? x.i != 0 : x.re != 0 || x.im != 0;
		break;
	case ELEM_CLASS_SINT:
	case ELEM_CLASS_UINT:
		y.i = is_integer ? x.i : to_integer(to, x.re);
		break;
	default:
		y.re = !is_integer ? x.re :
		       to_double(a == ELEM_CLASS_SINT, x.i,
				 to == ELEM_F64 || to == ELEM_C128);
		y.im = b == ELEM_CLASS_COMPLEX && !is_integer ? x.im : 0;
		break;
	}
	return y;
}

int64_t tc_num_index(unsigned elem, const void *p)
{
	uint64_t i = tc_num_load(elem, p).i;

	if (elem_class(elem) != ELEM_CLASS_SINT && i > INT64_MAX)
		return INT64_MAX;
	return (int64_t)i;
}
