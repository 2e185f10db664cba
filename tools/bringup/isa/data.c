/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers to compute with: special ones first, in all pairs, then others. */
#include "tools/bringup/isa/data.h"

#include <math.h>
#include <string.h>

#include "tools/bringup/context.h"

static const float reals[] = {
	0.0f, -0.0f, 1.0f, -1.0f, 0.5f, -0.5f, 2.0f, 1.5f, 2.5f, -2.5f, 3.0f, -3.0f, INFINITY,
	-INFINITY, NAN, -NAN, 0x1p-126f, -0x1p-126f, 0x1.fffffep127f, -0x1.fffffep127f, 88.72f,
	-87.3f, 0x1p23f, 0x1.8p22f, 1e-10f, 0.33333334f, -1e10f, 16777217.0f, 1.57079637f,
	127.5f, -128.5f, 65504.0f, 65520.0f, 448.0f, 1e30f,
};
static const int64_t integers[] = {
	0, 1, -1, 2, -2, 3, 7, 8, 63, 64, 65, 127, 128, -128, INT16_MAX, INT16_MIN, INT32_MAX,
	INT32_MIN, INT64_MAX, INT64_MIN, UINT32_MAX, 0x5555555555555555,
};

/* Subnormal numbers are zeros to the device and numbers to the evaluator. */
static float flushed(float x)
{
	return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x;
}

static double any_real(size_t i, uint64_t seed, uint64_t *state)
{
	size_t n = COUNT(reals);
	uint32_t bits = (uint32_t)bringup_random(state);
	float x;

	if (i < n * n)
		return reals[seed & 1 ? i / n : i % n];
	memcpy(&x, &bits, 4);
	return flushed(bits & 1 ? x : (float)((double)(int32_t)bits * 0x1p-27));
}

static double real(size_t i, enum isa_data data, uint64_t seed, uint64_t *state)
{
	uint64_t bits;

	if (data == ISA_ANY || data == ISA_COUNTS)
		return any_real(i, seed, state);
	bits = bringup_random(state);
	switch (data) {
	case ISA_UNITS: return bits & 1 ? 1 : -1;
	case ISA_WHOLE: return (double)(bits % 17) - 8;
	default: return ((double)(bits >> 11) * 0x1p-53 * 3.5 + 0.5) * (bits & 1 ? 1 : -1);
	}
}

static int64_t integer(size_t i, enum isa_data data, uint64_t seed, uint64_t *state)
{
	size_t n = COUNT(integers);
	uint64_t bits = bringup_random(state);

	if (data == ISA_WHOLE || data == ISA_EVERYDAY)
		return (int64_t)(bits % 17) - 8;
	if (i < n * n && data != ISA_UNITS)
		return integers[seed & 1 ? i / n : i % n];
	if (data == ISA_COUNTS && i & 1)
		return (int64_t)(bits % 72);
	return (int64_t)(bits >> bits % 61);
}

static void put_real(unsigned bytes, void *to, double x)
{
	float f = (float)x;

	if (bytes == 4)
		memcpy(to, &f, 4);
	else
		memcpy(to, &x, 8);
}

/* Types of less than a byte have their sign, or zeros, above. */
static void put_integer(enum elem e, void *to, int64_t x)
{
	unsigned out = 64 - elem_bits(e);

	if (elem_class(e) == ELEM_CLASS_SINT)
		x = (int64_t)((uint64_t)x << out) >> out;
	else
		x = (int64_t)((uint64_t)x << out >> out);
	memcpy(to, &x, elem_bytes(e));
}

static void put(enum elem e, void *to, size_t i, enum isa_data data, uint64_t seed,
		uint64_t *state)
{
	unsigned bytes = elem_bytes(e);
	double x, y = 0;
	int64_t code;

	switch (elem_class(e)) {
	case ELEM_CLASS_PRED:
		*(uint8_t *)to = bringup_random(state) & 1;
		break;
	case ELEM_CLASS_COMPLEX:
		x = real(i, data, seed, state);
		if (data != ISA_UNITS)
			y = real(i, data, seed, state);
		else if (i & 1)
			y = x, x = 0;
		put_real(bytes / 2, to, x);
		put_real(bytes / 2, (char *)to + bytes / 2, y);
		break;
	case ELEM_CLASS_FLOAT:
		if (elem_computes(e)) {
			put_real(bytes, to, real(i, data, seed, state));
			break;
		}
		/* Storage: every code of a byte comes, but for what is subnormal in f32. */
		code = bytes == 1 ? (int64_t)(i & 255) : (int64_t)bringup_random(state);
		code = e == ELEM_BF16 && !(code & 0x7f80) ? 0 : code;
		put_integer(e, to, e == ELEM_F8E8M0FNU && !code ? 1 : code);
		break;
	default:
		put_integer(e, to, integer(i, data, seed, state));
	}
}

void isa_fill(enum elem e, void *to, size_t n, enum isa_data data, uint64_t seed)
{
	uint64_t state = seed * 0x9e3779b97f4a7c15 + 1;

	for (size_t i = 0; i < n; i++)
		put(e, (char *)to + i * elem_bytes(e), i, data, seed, &state);
}

void isa_number(enum elem e, void *to, enum isa_number number)
{
	unsigned cls = elem_class(e), bits = elem_bits(e);
	double x = number == ISA_ONE ? 1 : number == ISA_LARGEST ? INFINITY :
		   number == ISA_SMALLEST ? -INFINITY : 0;
	uint64_t top = (uint64_t)1 << (bits <= 64 ? bits - 1 : 0);
	uint64_t largest = cls == ELEM_CLASS_SINT ? top - 1 : UINT64_MAX;
	uint64_t i = number == ISA_ONE ? 1 : number == ISA_ONES ? UINT64_MAX :
		     number == ISA_LARGEST ? largest :
		     number == ISA_SMALLEST ? ~largest & (top | (top - 1)) : 0;

	if (cls < ELEM_CLASS_FLOAT) {
		put_integer(e, to, (int64_t)i);
		return;
	}
	memset(to, 0, elem_bytes(e));
	put_real(elem_bytes(e) / (cls == ELEM_CLASS_COMPLEX ? 2 : 1), to, x);
}
