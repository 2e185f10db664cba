/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels of uops, each path against plain C and libm: every operation and computing
 * type, special values, every mix of spread arguments, every length.
 */
#include <complex.h>
#include <immintrin.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "hal/sim/kernels/uop.h"

#define N 4096

static unsigned n_paths;
static const char *const path_name[] = { "portable", "avx2", "avx512" };

static int set_up(void **state)
{
	(void)state;
	n_paths = __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") ?
		3 : __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? 2 : 1;
	_mm_setcsr(_mm_getcsr() | 0x8040);
	return 0;
}

static uint64_t seed = 11;

static uint64_t random64(void)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return seed ^ seed >> 29;
}

static sim_uop_fn *kernel(unsigned path, unsigned op, unsigned elem)
{
	struct isa_uop u = { .op = (uint8_t)op, .elem = (uint8_t)elem };

	if (op == UOP_COMPLEX)
		u.to = elem == ELEM_F32 ? ELEM_C64 : ELEM_C128;
	if (isa_uop_result(&u) == ELEM_INVALID)
		return NULL;
	return sim_uop_kernel((enum sim_path)path, &u);
}

/* ---- integers ---- */

static int64_t wrap(unsigned elem, uint64_t x)
{
	switch (elem) {
	case ELEM_PRED: return (int64_t)(x & 1);
	case ELEM_S8: return (int8_t)x;
	case ELEM_S16: return (int16_t)x;
	case ELEM_S32: return (int32_t)x;
	case ELEM_U8: return (uint8_t)x;
	case ELEM_U16: return (uint16_t)x;
	case ELEM_U32: return (uint32_t)x;
	default: return (int64_t)x;
	}
}

static int64_t get_int(unsigned elem, const void *p)
{
	uint64_t x = 0;

	memcpy(&x, p, elem_bytes(elem));
	return wrap(elem, x);
}

static bool less(bool is_signed, int64_t a, int64_t b)
{
	return is_signed ? a < b : (uint64_t)a < (uint64_t)b;
}

static uint64_t power(int64_t a, int64_t b, bool is_signed)
{
	uint64_t r = 1;

	if (is_signed && b < 0)
		return a == 1 ? 1 : a == -1 ? (b & 1 ? (uint64_t)-1 : 1) : 0;
	for (uint64_t n = (uint64_t)b, x = (uint64_t)a; n; n >>= 1, x *= x)
		r *= n & 1 ? x : 1;
	return r;
}

static uint64_t divide(int64_t a, int64_t b, bool is_signed, bool rem)
{
	if (!b)
		return rem ? (uint64_t)a : (uint64_t)-1;
	if (is_signed && b == -1)
		return rem ? 0 : 0 - (uint64_t)a;
	if (is_signed)
		return (uint64_t)(rem ? a % b : a / b);
	return rem ? (uint64_t)a % (uint64_t)b : (uint64_t)a / (uint64_t)b;
}

/* Results of the element's type, before wrapping; false: no such operation. */
static bool int_result(unsigned op, unsigned elem, int64_t a, int64_t b, int64_t c,
		       uint64_t *r)
{
	bool s = elem_class(elem) == ELEM_CLASS_SINT;
	unsigned bits = elem_bits(elem);
	uint64_t ua = (uint64_t)a, ub = (uint64_t)b;
	uint64_t mask = bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
	uint64_t shift = ub & mask;

	switch (op) {
	case UOP_NEG: *r = 0 - ua; return true;
	case UOP_ABS: *r = s && a < 0 ? 0 - ua : ua; return true;
	case UOP_SIGN: *r = s ? (uint64_t)((a > 0) - (a < 0)) : ua != 0; return true;
	case UOP_NOT: *r = elem == ELEM_PRED ? !a : ~ua; return true;
	case UOP_POPC: *r = (uint64_t)__builtin_popcountll(ua & mask); return true;
	case UOP_CLZ:
		*r = ua & mask ? (uint64_t)__builtin_clzll(ua & mask) - (64 - bits) : bits;
		return true;
	case UOP_ADD: *r = elem == ELEM_PRED ? ua | ub : ua + ub; return true;
	case UOP_SUB: *r = ua - ub; return true;
	case UOP_MUL: *r = ua * ub; return true;
	case UOP_DIV: *r = divide(a, b, s, false); return true;
	case UOP_REM: *r = divide(a, b, s, true); return true;
	case UOP_MIN: *r = less(s, b, a) ? ub : ua; return true;
	case UOP_MAX: *r = less(s, a, b) ? ub : ua; return true;
	case UOP_POW: *r = power(a, b, s); return true;
	case UOP_AND: *r = ua & ub; return true;
	case UOP_OR: *r = ua | ub; return true;
	case UOP_XOR: *r = ua ^ ub; return true;
	case UOP_SHL: *r = shift < bits ? ua << shift : 0; return true;
	case UOP_SHR: *r = shift < bits ? (ua & mask) >> shift : 0; return true;
	case UOP_SAR: {
		int64_t x = bits == 64 ? a : (int64_t)(ua << (64 - bits)) >> (64 - bits);

		*r = (uint64_t)(x >> (shift < bits ? shift : bits - 1));
		return true;
	}
	case UOP_EQ: *r = a == b; return true;
	case UOP_NE: *r = a != b; return true;
	case UOP_LT: *r = less(s, a, b); return true;
	case UOP_LE: *r = !less(s, b, a); return true;
	case UOP_GT: *r = less(s, b, a); return true;
	case UOP_GE: *r = !less(s, a, b); return true;
	case UOP_CLAMP:
		b = less(s, b, a) ? a : b;
		*r = (uint64_t)(less(s, b, c) ? b : c);
		return true;
	default:
		return false;
	}
}

static void fill_ints(unsigned elem, char *p, size_t n, unsigned which)
{
	static const int64_t special[] = { 0, 1, -1, 2, 3, 7, 8, 31, 32, 63, 64, 127, 128,
		255, INT8_MIN, INT16_MIN, INT16_MAX, INT32_MIN, INT32_MAX, INT64_MIN,
		INT64_MAX, UINT32_MAX, 100, -100 };
	unsigned k = sizeof(special) / sizeof(special[0]), bytes = elem_bytes(elem);

	for (size_t i = 0; i < n; i++) {
		uint64_t x = i < k * k * 3 ?
			(uint64_t)special[which == 0 ? i % k : which == 1 ? i / k % k : i % 5] :
			random64() >> (random64() % 64);

		x = (uint64_t)wrap(elem, x);
		memcpy(p + i * bytes, &x, bytes);
	}
}

static void integers_wrap_and_saturate_nowhere(void **state)
{
	static char a[N * 8], b[N * 8], c[N * 8], d[N * 8];
	unsigned tried = 0;

	(void)state;
	for (unsigned elem = ELEM_PRED; elem <= ELEM_U64; elem++) {
		unsigned bytes = elem_bytes(elem);

		fill_ints(elem, a, N, 0);
		fill_ints(elem, b, N, 1);
		fill_ints(elem, c, N, 2);
		for (unsigned op = UOP_NEG; op < UOP_CODES; op++) {
			struct isa_uop u = { .op = (uint8_t)op, .elem = (uint8_t)elem };
			unsigned to = isa_uop_result(&u);

			for (unsigned path = 0; path < n_paths; path++) {
				sim_uop_fn *fn = kernel(path, op, elem);
				uint64_t want;

				if (!fn || !int_result(op, elem, 0, 0, 0, &want))
					continue;
				fn(d, a, b, c, N, 0, 0);
				tried++;
				for (size_t i = 0; i < N; i++) {
					int64_t x = get_int(elem, a + i * bytes);
					int64_t y = get_int(elem, b + i * bytes);
					int64_t z = get_int(elem, c + i * bytes);
					int64_t got = get_int(to, d + i * elem_bytes(to));

					int_result(op, elem, x, y, z, &want);
					if (got != wrap(to, want))
						fail_msg("%s %s %s %lld %lld %lld: %lld, want %lld",
							 path_name[path],
							 isa_uop_info(op)->mnemonic,
							 elem_text(elem), (long long)x,
							 (long long)y, (long long)z,
							 (long long)got,
							 (long long)wrap(to, want));
				}
			}
		}
	}
	assert_true(tried > 180 * n_paths);
}

/* ---- floats ---- */

static double plain_sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }
static double plain_rsqrt(double x) { return 1 / sqrt(x); }
static double plain_logistic(double x) { return 1 / (1 + exp(-x)); }
static double plain_neg(double x) { return -x; }
static double plain_isfin(double x) { return isfinite(x); }
static double plain_add(double x, double y) { return x + y; }
static double plain_sub(double x, double y) { return x - y; }
static double plain_mul(double x, double y) { return x * y; }
static double plain_div(double x, double y) { return x / y; }
static double plain_eq(double x, double y) { return x == y; }
static double plain_ne(double x, double y) { return x != y; }
static double plain_lt(double x, double y) { return x < y; }
static double plain_le(double x, double y) { return x <= y; }
static double plain_gt(double x, double y) { return x > y; }
static double plain_ge(double x, double y) { return x >= y; }
static double plain_min(double x, double y)
{
	if (x != x || y != y)
		return NAN;
	return x < y || (x == y && signbit(x)) ? x : y;
}
static double plain_max(double x, double y)
{
	if (x != x || y != y)
		return NAN;
	return x > y || (x == y && !signbit(x)) ? x : y;
}

static const struct {
	unsigned op;
	double (*f)(double);
	double ulp;
} unary[] = {
	{ UOP_NEG, plain_neg, 0 }, { UOP_ABS, fabs, 0 }, { UOP_SIGN, plain_sign, 0 },
	{ UOP_FLOOR, floor, 0 }, { UOP_CEIL, ceil, 0 }, { UOP_RNE, rint, 0 },
	{ UOP_RAFZ, round, 0 }, { UOP_TRUNC, trunc, 0 }, { UOP_ISFIN, plain_isfin, 0 },
	{ UOP_SQRT, sqrt, 0.51 }, { UOP_RSQRT, plain_rsqrt, 2 }, { UOP_CBRT, cbrt, 2 },
	{ UOP_EXP, exp, 2 }, { UOP_EXPM1, expm1, 2 }, { UOP_LOG, log, 2 },
	{ UOP_LOG1P, log1p, 2 }, { UOP_SIN, sin, 2 }, { UOP_COS, cos, 2 },
	{ UOP_TAN, tan, 2 }, { UOP_TANH, tanh, 2 }, { UOP_LOGISTIC, plain_logistic, 2 },
	{ UOP_ERF, erf, 4 },
};

static const struct {
	unsigned op;
	double (*f)(double, double);
	double ulp;
} binary[] = {
	{ UOP_ADD, plain_add, 0.51 }, { UOP_SUB, plain_sub, 0.51 },
	{ UOP_MUL, plain_mul, 0.51 }, { UOP_DIV, plain_div, 0.51 },
	{ UOP_REM, fmod, 0 }, { UOP_MIN, plain_min, 0 }, { UOP_MAX, plain_max, 0 },
	{ UOP_POW, pow, 4 }, { UOP_ATAN2, atan2, 2 }, { UOP_EQ, plain_eq, 0 },
	{ UOP_NE, plain_ne, 0 }, { UOP_LT, plain_lt, 0 }, { UOP_LE, plain_le, 0 },
	{ UOP_GT, plain_gt, 0 }, { UOP_GE, plain_ge, 0 },
};

static float flush32(float x)
{
	uint32_t u;

	memcpy(&u, &x, 4);
	if (!(u & 0x7f800000))
		u &= 0x80000000;
	memcpy(&x, &u, 4);
	return x;
}

/* Distance in units of the last place of f32, subnormals counting as zero. */
static double ulps32(float got, double want)
{
	float w = flush32((float)want);
	int e;

	if (w != w || got != got)
		return w != w && got != got ? 0 : INFINITY;
	if (isinf(w) || isinf(got) || w == 0)
		return w == got ? 0 : fabs(want) < 0x1.01p-126 && fabsf(got) < 0x1.01p-126f ?
			0 : isinf(got) && fabs(want) > 0x1.fffffep127 ? 1 : INFINITY;
	frexp(want, &e);
	return fabs((double)got - want) / ldexp(1, e - 24);
}

static double ulps64(double got, double want)
{
	int e;

	if (want != want || got != got)
		return want != want && got != got ? 0 : INFINITY;
	if (isinf(want) || isinf(got) || want == 0 || got == 0)
		return want == got ? 0 : fabs(want) < 0x1.01p-1022 &&
			fabs(got) < 0x1.01p-1022 ? 0 : INFINITY;
	frexp(want, &e);
	return fabs(got - want) / ldexp(1, e - 53);
}

static const float specials[] = {
	0.0f, -0.0f, 1.0f, -1.0f, 0.5f, -0.5f, 2.0f, -2.0f, 1.5f, 2.5f, -2.5f, 3.0f, -3.0f,
	INFINITY, -INFINITY, NAN, 0x1p-126f, -0x1p-126f, 0x1.fffffep127f, -0x1.fffffep127f,
	88.72f, 88.73f, -87.3f, -104.0f, 0x1p23f, 0x1.8p22f, 1e-10f, -1e-10f, 0.33333334f,
	1e10f, -1e10f, 16777217.0f, 3.14159274f, 1.57079637f, 0x1p20f, 1e30f, -8.0f,
};
#define N_SPECIAL (sizeof(specials) / sizeof(specials[0]))

static float random_f32(size_t i)
{
	uint32_t u = (uint32_t)random64();
	float x;

	memcpy(&x, &u, 4);
	/* half of any exponent, half of everyday size */
	return flush32(i & 1 ? x : (float)((double)(int32_t)u * 0x1p-27));
}

static void fill_floats(float *a, float *b, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		bool special = i < N_SPECIAL * N_SPECIAL;

		a[i] = special ? specials[i % N_SPECIAL] : random_f32(i);
		b[i] = special ? specials[i / N_SPECIAL] : random_f32(i / 2);
	}
}

static bool same_sign(double a, double b)
{
	return a != a || b != b || !!signbit(a) == !!signbit(b);
}

static void f32_is_accurate(void **state)
{
	static float a[N], b[N], d[N];
	static uint8_t p[N];

	(void)state;
	for (unsigned round = 0; round < 8; round++) {
		fill_floats(a, b, N);
		for (unsigned path = 0; path < n_paths; path++) {
			for (unsigned k = 0; k < sizeof(unary) / sizeof(unary[0]); k++) {
				bool pred = unary[k].op == UOP_ISFIN;

				kernel(path, unary[k].op, ELEM_F32)(pred ? (void *)p : d, a,
								    NULL, NULL, N, 0, 0);
				for (size_t i = 0; i < N; i++) {
					double want = unary[k].f(a[i]), got = pred ? p[i] : d[i];

					if (ulps32((float)got, want) > unary[k].ulp ||
					    !same_sign(got, want))
						fail_msg("%s %s(%a): %a, want %a", path_name[path],
							 isa_uop_info(unary[k].op)->mnemonic,
							 a[i], got, want);
				}
			}
			for (unsigned k = 0; k < sizeof(binary) / sizeof(binary[0]); k++) {
				bool pred = binary[k].op >= UOP_EQ;

				kernel(path, binary[k].op, ELEM_F32)(pred ? (void *)p : d, a, b,
								     NULL, N, 0, 0);
				for (size_t i = 0; i < N; i++) {
					double want = binary[k].f(a[i], b[i]);
					double got = pred ? p[i] : d[i];

					if (ulps32((float)got, want) > binary[k].ulp ||
					    (binary[k].op != UOP_REM && !same_sign(got, want) &&
					     fabs(want) > 0x1.01p-126))
						fail_msg("%s %s(%a, %a): %a, want %a",
							 path_name[path],
							 isa_uop_info(binary[k].op)->mnemonic,
							 a[i], b[i], got, want);
				}
			}
		}
	}
}

static void f64_is_accurate(void **state)
{
	static float a32[N], b32[N];
	static double a[N], b[N], d[N];
	static uint8_t p[N];

	(void)state;
	fill_floats(a32, b32, N);
	for (size_t i = 0; i < N; i++) {
		a[i] = a32[i];
		b[i] = b32[i];
	}
	for (unsigned path = 0; path < n_paths; path++) {
		for (unsigned k = 0; k < sizeof(unary) / sizeof(unary[0]); k++) {
			bool pred = unary[k].op == UOP_ISFIN;

			kernel(path, unary[k].op, ELEM_F64)(pred ? (void *)p : d, a, NULL, NULL,
							    N, 0, 0);
			for (size_t i = 0; i < N; i++) {
				double want = unary[k].f(a[i]), got = pred ? p[i] : d[i];

				if (ulps64(got, want) > unary[k].ulp + 1 ||
				    !same_sign(got, want))
					fail_msg("%s %s(%a): %a, want %a", path_name[path],
						 isa_uop_info(unary[k].op)->mnemonic, a[i],
						 got, want);
			}
		}
		for (unsigned k = 0; k < sizeof(binary) / sizeof(binary[0]); k++) {
			bool pred = binary[k].op >= UOP_EQ;

			kernel(path, binary[k].op, ELEM_F64)(pred ? (void *)p : d, a, b, NULL,
							     N, 0, 0);
			for (size_t i = 0; i < N; i++) {
				double want = binary[k].f(a[i], b[i]), got = pred ? p[i] : d[i];

				if (ulps64(got, want) > binary[k].ulp + 1)
					fail_msg("%s %s(%a, %a): %a, want %a", path_name[path],
						 isa_uop_info(binary[k].op)->mnemonic, a[i],
						 b[i], got, want);
			}
		}
	}
}

/* Where SLEEF's functions have no room for what they compute with, and what is too small to be
 * anything but a zero of its sign. */
static void ends_of_f64_are_numbers_too(void **state)
{
	static const struct { unsigned op; double a, b, want; } cases[] = {
		{ UOP_LOG1P, 0x1.4p1022, 0, 0x1.624f4dcf7367cp9 },
		{ UOP_LOG1P, 0x1.fffffffffffffp1023, 0, 0x1.62e42fefa39efp9 },
		{ UOP_LOG1P, -0x1.fp-1022, 0, -0x1.fp-1022 },
		{ UOP_LOG1P, INFINITY, 0, INFINITY }, { UOP_LOG1P, NAN, 0, NAN },
		{ UOP_TAN, 0x1.fp-1022, 0, 0x1.fp-1022 }, { UOP_TAN, -0x1p-1022, 0, -0x1p-1022 },
		{ UOP_ATAN2, 0x1.3p281, 0x1p1023, 0x1.3p-742 },
		{ UOP_ATAN2, 0x1p1023, 0x1p1023, 0x1.921fb54442d18p-1 },
		{ UOP_ATAN2, 0x1p1022, 0x1p999, 0x1.921fb34442d18p0 },
		{ UOP_ATAN2, 0x1p-1022, -0x1p-1022, 0x1.2d97c7f3321d2p1 },
		/* zeros */
		{ UOP_ATAN2, 0x1p-1030, -1, 0x1.921fb54442d18p1 },
		{ UOP_ATAN2, -0x1p-1030, -1, -0x1.921fb54442d18p1 },
		{ UOP_LOG, -0x1p-1030, 0, -INFINITY }, { UOP_POW, -0x1p-1030, 0.5, 0 },
		{ UOP_EXPM1, -0x1p-1030, 0, -0.0 }, { UOP_LOG1P, -0x1p-1030, 0, -0.0 },
		{ UOP_TAN, -0x1p-1030, 0, -0.0 }, { UOP_CBRT, -0x1p-1030, 0, -0.0 },
	};

	(void)state;
	for (size_t k = 0; k < sizeof(cases) / sizeof(*cases); k++)
		for (unsigned path = 0; path < n_paths; path++)
			for (unsigned n = 1; n < 20; n++) {
				double a[20], b[20], d[20];

				for (unsigned i = 0; i < n; i++) {
					a[i] = i == n - 1 ? cases[k].a : 1;
					b[i] = i == n - 1 ? cases[k].b : 1;
				}
				kernel(path, cases[k].op, ELEM_F64)(d, a, b, NULL, n, 0, 0);
				if (ulps64(d[n - 1], cases[k].want) > 1 ||
				    !same_sign(d[n - 1], cases[k].want))
					fail_msg("%s %s(%a, %a): %a, want %a", path_name[path],
						 isa_uop_info(cases[k].op)->mnemonic, cases[k].a,
						 cases[k].b, d[n - 1], cases[k].want);
			}
}

static void tangents_of_large_numbers_are_right(void **state)
{
	/* beside a pole, and beside a zero */
	static const float x[] = { 0x1.32ede2p85f, -0x1.32ede2p85f, 0x1.f37ca4p94f, 0x1p120f };
	float in[20], d[20];

	(void)state;
	for (unsigned k = 0; k < 4; k++)
		for (unsigned path = 0; path < n_paths; path++)
			for (unsigned n = 1; n < 20; n++) {
				for (unsigned i = 0; i < n; i++)
					in[i] = i == n - 1 ? x[k] : 0;
				kernel(path, UOP_TAN, ELEM_F32)(d, in, NULL, NULL, n, 0, 0);
				if (ulps32(d[n - 1], tan(x[k])) > 1)
					fail_msg("%s tan(%a): %a, want %a", path_name[path], x[k],
						 d[n - 1], tan(x[k]));
			}
}

/* Paths use the same algorithms: with and without fused steps 3 units in the last place apart
 * at most, the two fused ones not at all. */
static void paths_agree(void **state)
{
	static const uint8_t own[] = {
		UOP_EXP, UOP_EXPM1, UOP_LOG, UOP_LOG1P, UOP_SIN, UOP_COS, UOP_TANH,
		UOP_LOGISTIC, UOP_ERF, UOP_POW, UOP_ADD, UOP_DIV, UOP_MIN, UOP_MAX, UOP_REM,
		UOP_SQRT, UOP_RSQRT, UOP_RAFZ, UOP_RNE, UOP_FLOOR,
	};
	static float a[N], b[N], d[3][N];

	(void)state;
	fill_floats(a, b, N);
	for (unsigned k = 0; k < sizeof(own); k++) {
		for (unsigned path = 0; path < n_paths; path++)
			kernel(path, own[k], ELEM_F32)(d[path], a, b, NULL, N, 0, 0);
		for (size_t i = 0; i < N; i++) {
			for (unsigned path = 1; path < n_paths; path++)
				if (ulps32(d[path][i], d[0][i]) > 3)
					fail_msg("%s(%a): %a and %a",
						 isa_uop_info(own[k])->mnemonic, a[i],
						 d[0][i], d[path][i]);
			if (n_paths == 3 && d[1][i] == d[1][i])
				assert_memory_equal(&d[1][i], &d[2][i], 4);
		}
	}
}

/* The compiler takes the one for the others (simplify/simplify.c). A NaN is a NaN. */
static void logistic_is_its_steps_bit_for_bit(void **state)
{
	static const double special[] = { 0.0, -0.0, INFINITY, -INFINITY, 88.8, -88.8, 709.8,
					  -709.8, 0x1p-130, 0x1p-1030, NAN, -NAN };
	static char x[8 * N], want[8 * N], got[8 * N];

	(void)state;
	for (unsigned i = 0; i < 2 * n_paths; i++) {
		unsigned path = i / 2, elem = i % 2 ? ELEM_F64 : ELEM_F32;
		const void *unit = i % 2 ? (const void *)&(double){ 1 } : &(float){ 1 };

		for (unsigned j = 0; j < N; j++) {
			double v = j < 12 ? special[j] :
				ldexp((double)(int64_t)random64(), -63 + (int)(j % 12));

			if (i % 2)
				((double *)x)[j] = v;
			else
				((float *)x)[j] = (float)v;
		}
		kernel(path, UOP_NEG, elem)(want, x, NULL, NULL, N, 0, 0);
		kernel(path, UOP_EXP, elem)(want, want, NULL, NULL, N, 0, 0);
		kernel(path, UOP_ADD, elem)(want, unit, want, NULL, N, UOP_SPREAD_A, 0);
		kernel(path, UOP_DIV, elem)(want, unit, want, NULL, N, UOP_SPREAD_A, 0);
		kernel(path, UOP_LOGISTIC, elem)(got, x, NULL, NULL, N, 0, 0);
		for (unsigned j = 0; j < N; j++) {
			double a = i % 2 ? ((double *)want)[j] : (double)((float *)want)[j];
			double b = i % 2 ? ((double *)got)[j] : (double)((float *)got)[j];
			size_t each = elem_bytes(elem), at = j * each;

			if (memcmp(got + at, want + at, each) && !(isnan(a) && isnan(b)))
				fail_msg("%s, %s, %u", path_name[path], elem_text(elem), j);
		}
	}
}

static void total_order_orders_all(void **state)
{
	static const float up[] = { -NAN, -INFINITY, -1, -0.0f, 0.0f, 1e-40f, 1, INFINITY,
				    NAN };
	float a[81], b[81];
	double wide_a[81], wide_b[81];
	uint8_t d[81];

	(void)state;
	for (unsigned i = 0; i < 81; i++) {
		a[i] = up[i / 9];
		b[i] = up[i % 9];
		wide_a[i] = i / 9 == 5 ? 0x1p-1050 : (double)a[i];
		wide_b[i] = i % 9 == 5 ? 0x1p-1050 : (double)b[i];
	}
	for (unsigned path = 0; path < n_paths; path++) {
		for (unsigned wide = 0; wide < 2; wide++) {
			unsigned elem = wide ? ELEM_F64 : ELEM_F32;
			void *x = wide ? (void *)wide_a : a, *y = wide ? (void *)wide_b : b;

			kernel(path, UOP_TLT, elem)(d, x, y, NULL, 81, 0, 0);
			for (unsigned i = 0; i < 81; i++)
				assert_int_equal(d[i], i / 9 < i % 9);
			kernel(path, UOP_TLE, elem)(d, x, y, NULL, 81, 0, 0);
			for (unsigned i = 0; i < 81; i++)
				assert_int_equal(d[i], i / 9 <= i % 9);
			kernel(path, UOP_TEQ, elem)(d, x, y, NULL, 81, 0, 0);
			for (unsigned i = 0; i < 81; i++)
				assert_int_equal(d[i], i / 9 == i % 9);
		}
	}
}

static void fma_and_clamp(void **state)
{
	static float a[N], b[N], c[N], d[N];

	(void)state;
	fill_floats(a, b, N);
	for (size_t i = 0; i < N; i++)
		c[i] = specials[i % 7];
	for (unsigned path = 0; path < n_paths; path++) {
		kernel(path, UOP_FMA, ELEM_F32)(d, a, b, c, N, 0, 0);
		for (size_t i = 0; i < N; i++)
			if (ulps32(d[i], (double)fmaf(a[i], b[i], c[i])) > 0)
				fail_msg("%s fma(%a, %a, %a) = %a", path_name[path], a[i],
					 b[i], c[i], d[i]);
		kernel(path, UOP_CLAMP, ELEM_F32)(d, a, b, c, N, 0, 0);
		for (size_t i = 0; i < N; i++)
			assert_true(ulps32(d[i], plain_min(plain_max(b[i], a[i]), c[i])) == 0);
	}
}

static void reduced_precision(void **state)
{
	/* to f16's, bf16's and f8E5M2's shape */
	static const struct { unsigned exp, mant; float x, want; } cases[] = {
		{ 5, 10, 1.0f + 0x1p-11f, 1.0f }, { 5, 10, 1.0f + 0x1.8p-10f, 1.0f + 0x1p-9f },
		{ 5, 10, 65519.0f, 65504.0f }, { 5, 10, 65520.0f, INFINITY },
		{ 5, 10, -70000.0f, -INFINITY }, { 5, 10, 0x1p-14f, 0x1p-14f },
		{ 5, 10, 0x1p-15f, 0.0f }, { 5, 10, -0x1p-15f, -0.0f },
		{ 8, 7, 1.0f + 0x1p-8f, 1.0f }, { 8, 7, 0x1.fffffep127f, INFINITY },
		{ 5, 2, 1.1f, 1.0f }, { 5, 2, 1.375f, 1.5f }, { 8, 23, 1.2345678f, 1.2345678f },
		{ 8, 0, 1.5f, 2.0f }, { 8, 0, 3.0f, 2.0f }, { 5, 10, NAN, NAN },
		{ 5, 10, INFINITY, INFINITY }, { 8, 52, 3.25f, 3.25f },
	};

	(void)state;
	for (unsigned path = 0; path < n_paths; path++) {
		for (unsigned k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
			uint64_t aux = cases[k].exp | cases[k].mant << 8;
			double wide = cases[k].x, got64;
			float got;

			kernel(path, UOP_RDPREC, ELEM_F32)(&got, &cases[k].x, NULL, NULL, 1, 1,
							   aux);
			if (ulps32(got, cases[k].want) > 0 || !same_sign(got, cases[k].want))
				fail_msg("%s rdprec %u %u of %a: %a", path_name[path],
					 cases[k].exp, cases[k].mant, cases[k].x, got);
			if (cases[k].exp == 8)
				continue;
			kernel(path, UOP_RDPREC, ELEM_F64)(&got64, &wide, NULL, NULL, 1, 1, aux);
			assert_true(ulps64(got64, cases[k].want) == 0);
		}
	}
}

/* ---- complex ---- */

static void complex_follows_c(void **state)
{
	static const struct { unsigned op; double complex (*f)(double complex); } table[] = {
		{ UOP_SQRT, csqrt }, { UOP_EXP, cexp }, { UOP_LOG, clog }, { UOP_SIN, csin },
		{ UOP_COS, ccos }, { UOP_TAN, ctan }, { UOP_TANH, ctanh },
	};
	float complex x[64], y[64], d[64];
	double complex wide[64], got[64];
	float parts[64];

	(void)state;
	for (unsigned i = 0; i < 64; i++) {
		x[i] = CMPLXF((float)(i % 8) - 3.5f, (float)(i / 8) * 0.5f - 2);
		y[i] = CMPLXF(1.5f, (float)(i % 5) - 2);
		wide[i] = x[i];
	}
	for (unsigned k = 0; k < sizeof(table) / sizeof(table[0]); k++) {
		kernel(0, table[k].op, ELEM_C64)(d, x, NULL, NULL, 64, 0, 0);
		kernel(0, table[k].op, ELEM_C128)(got, wide, NULL, NULL, 64, 0, 0);
		for (unsigned i = 0; i < 64; i++) {
			assert_true(cabs(d[i] - table[k].f(x[i])) <=
				    1e-6 * cabs(table[k].f(x[i])));
			assert_true(got[i] == table[k].f(wide[i]));
		}
	}
	kernel(0, UOP_MUL, ELEM_C64)(d, x, y, NULL, 64, 0, 0);
	for (unsigned i = 0; i < 64; i++)
		assert_true(cabsf(d[i] - x[i] * y[i]) < 1e-5f);
	kernel(0, UOP_DIV, ELEM_C64)(d, x, y, NULL, 64, UOP_SPREAD_B, 0);
	for (unsigned i = 0; i < 64; i++)
		assert_true(cabsf(d[i] - x[i] / y[0]) < 1e-5f);
	kernel(0, UOP_ABS, ELEM_C64)(parts, x, NULL, NULL, 64, 0, 0);
	for (unsigned i = 0; i < 64; i++)
		assert_true(fabsf(parts[i] - cabsf(x[i])) <= 1e-6f * cabsf(x[i]));
	kernel(0, UOP_IMAG, ELEM_C64)(parts, x, NULL, NULL, 64, 0, 0);
	assert_true(parts[63] == cimagf(x[63]));
	kernel(0, UOP_EXPM1, ELEM_C128)(got, wide, NULL, NULL, 64, 0, 0);
	kernel(0, UOP_LOG1P, ELEM_C128)(got, got, NULL, NULL, 64, 0, 0);
	for (unsigned i = 0; i < 64; i++)
		if (fabs(cimag(wide[i])) < 3)
			assert_true(cabs(got[i] - wide[i]) < 1e-13);
	kernel(0, UOP_LOGISTIC, ELEM_C128)(got, wide, NULL, NULL, 64, 0, 0);
	for (unsigned i = 0; i < 64; i++)
		assert_true(cabs(got[i] * (1 + cexp(-wide[i])) - 1) < 1e-13);
	kernel(0, UOP_COMPLEX, ELEM_F32)(d, parts, parts, NULL, 64, UOP_SPREAD_B, 0);
	assert_true(d[5] == CMPLXF(parts[5], parts[0]));
}

/* Arithmetic on pairs as textbooks have it; a test has no instruction that adds to a product. */
#define PAIRS(R, name) \
static void name(unsigned op, const R *x, const R *y, R *to) \
{ \
	R p = x[0] * y[0], q = x[1] * y[1], r = x[0] * y[1], s = x[1] * y[0]; \
	switch (op) { \
	case UOP_NEG: to[0] = -x[0], to[1] = -x[1]; break; \
	case UOP_CONJ: to[0] = x[0], to[1] = -x[1]; break; \
	case UOP_REAL: to[0] = x[0]; break; \
	case UOP_IMAG: to[0] = x[1]; break; \
	case UOP_ADD: to[0] = x[0] + y[0], to[1] = x[1] + y[1]; break; \
	case UOP_SUB: to[0] = x[0] - y[0], to[1] = x[1] - y[1]; break; \
	case UOP_MUL: to[0] = p - q, to[1] = r + s; break; \
	default: to[0] = x[0], to[1] = y[0]; /* UOP_COMPLEX */ \
	} \
}
PAIRS(float, pair32)
PAIRS(double, pair64)

enum { PAIRS = N_SPECIAL * N_SPECIAL };

/* Results of n elements against what they should be: the same bits, or both NaN. */
static void check_pairs(const char *path, unsigned op, bool is_wide, const char *a,
			const char *b, unsigned spread, const char *got, size_t n)
{
	unsigned in = op == UOP_COMPLEX ? 1 : 2, out = op == UOP_REAL || op == UOP_IMAG ? 1 : 2;
	unsigned bytes = is_wide ? 8 : 4;

	for (size_t i = 0; i < n; i++) {
		const char *x = a + (spread & UOP_SPREAD_A ? 0 : i * in * bytes);
		const char *y = b + (spread & UOP_SPREAD_B ? 0 : i * in * bytes);
		float narrow[2];
		double want[2], have[2];

		if (is_wide)
			pair64(op, (const void *)x, (const void *)y, want);
		else
			pair32(op, (const void *)x, (const void *)y, narrow);
		for (unsigned k = 0; k < out; k++) {
			want[k] = is_wide ? want[k] : narrow[k];
			have[k] = is_wide ? ((const double *)(const void *)got)[i * out + k] :
				  ((const float *)(const void *)got)[i * out + k];
			if (have[k] != want[k] ? have[k] == have[k] || want[k] == want[k] :
						 !same_sign(have[k], want[k]))
				fail_msg("%s %s, %u bytes, element %zu of %zu, %u: %a, want %a",
					 path, isa_uop_info(op)->mnemonic, bytes, i, n, k,
					 have[k], want[k]);
		}
	}
}

/* The same bits on each path: all specials with all, any length, each mix of spread arguments,
 * in place. */
static void pairs_are_the_same_on_all_paths(void **state)
{
	static const uint8_t ops[] = { UOP_NEG, UOP_CONJ, UOP_REAL, UOP_IMAG, UOP_ADD, UOP_SUB,
				       UOP_MUL, UOP_COMPLEX };
	static _Alignas(16) char a[PAIRS * 16], b[PAIRS * 16], d[PAIRS * 16 + 16];
	static const size_t sizes[] = { PAIRS, 0, 1, 2, 7, 8, 63, 64, 65, 127, 128, 129, 200 };

	(void)state;
	for (unsigned wide = 0; wide < 2; wide++) {
		size_t bytes = wide ? 8 : 4;

		for (size_t i = 0; i < 2 * (size_t)PAIRS; i++) {
			float x = i < PAIRS ? specials[i / 2 % N_SPECIAL] : random_f32(i);
			float y = i < PAIRS ? specials[(i + i / 2 / N_SPECIAL) % N_SPECIAL] :
					      random_f32(i);
			double u = x, v = y;

			memcpy(a + i * bytes, wide ? (void *)&u : (void *)&x, bytes);
			memcpy(b + i * bytes, wide ? (void *)&v : (void *)&y, bytes);
		}
		for (unsigned k = 0; k < sizeof(ops) * n_paths; k++) {
			unsigned op = ops[k / n_paths], path = k % n_paths;
			bool is_real = op == UOP_COMPLEX;
			sim_uop_fn *fn = kernel(path, op, is_real ? wide ? ELEM_F64 : ELEM_F32 :
						wide ? ELEM_C128 : ELEM_C64);
			unsigned args = isa_uop_info(op)->n_args;
			size_t out = (op == UOP_REAL || op == UOP_IMAG ? 4u : 8u) << wide;

			for (unsigned s = 0; s < (args == 2 ? 3 : 1); s++)
				for (unsigned m = 0; m < sizeof(sizes) / sizeof(*sizes); m++) {
					size_t n = sizes[m];

					memset(d, 0x5a, sizeof(d));
					fn(d, a, b, NULL, n, s, 0);
					check_pairs(path_name[path], op, wide, a, b, s, d, n);
					assert_int_equal(d[n * out], 0x5a);
					if (is_real || s == UOP_SPREAD_A)
						continue;
					memcpy(d, a, sizeof(a));
					fn(d, d, b, NULL, n, s, 0);
					check_pairs(path_name[path], op, wide, a, b, s, d, n);
				}
		}
	}
}

/* ---- shapes of calls ---- */

/* Any length, any mix of spread arguments, in place or not: as the whole array. */
/* Joins of rows of any length, side by side, two and three apart, against one step at a time. */
static void chains_join_step_by_step(void **state)
{
	enum { LINKS = 9, COLS = 150, APART = 3 };
	static const float special[] = { 0.0f, -0.0f, INFINITY, -INFINITY, 1.5f, -1.5f };
	static const unsigned ops[] = { UOP_ADD, UOP_MUL, UOP_MIN, UOP_MAX };
	static float x[LINKS][COLS * APART], got[2 * COLS], want[2 * COLS];
	const char *src[LINKS];

	(void)state;
	for (unsigned round = 0; round < 4000 * n_paths; round++) {
		unsigned path = round % n_paths, op = ops[random64() % 4];
		unsigned n = 1 + (unsigned)(random64() % LINKS), apart = 1 + random64() % APART;
		struct sim_plane plane = { 2, 1 + random64() % (COLS / 2), 0, 0 };
		float first = special[random64() % 6];
		bool has_nan = random64() % 4 == 0;

		plane.col = apart * sizeof(float);
		plane.row = (int64_t)plane.cols * plane.col;
		for (unsigned k = 0; k < LINKS; k++)
			for (unsigned j = 0; j < COLS * APART; j++)
				x[k][j] = random64() % 3 ? (float)(int64_t)random64() :
					special[random64() % 6];
		for (unsigned k = 0; has_nan && k < LINKS; k++)
			x[random64() % LINKS][random64() % (plane.cols * apart)] = NAN;
		for (unsigned k = 0; k < n; k++)
			src[k] = (const char *)x[k];
		for (size_t j = 0; j < 2 * plane.cols; j++)
			for (unsigned k = 0; k < n; k++)
				kernel(0, op, ELEM_F32)(&want[j], k ? &want[j] : &first,
							&x[k][j * apart], NULL, 1, 0, 0);
		sim_uop_chain((enum sim_path)path, op, ELEM_F32)(got, &first, src, n, &plane);
		for (size_t j = 0; j < 2 * plane.cols; j++)
			if (memcmp(&got[j], &want[j], sizeof(float)) &&
			    !(isnan(got[j]) && isnan(want[j])))
				fail_msg("%s, op %u of %u links, %zu columns, %u apart, element "
					 "%zu: %a, not %a", path_name[path], op, n, plane.cols,
					 apart, j, (double)got[j], (double)want[j]);
	}
}

static void lengths_and_spreads(void **state)
{
	static const uint8_t elems[] = { ELEM_U8, ELEM_S16, ELEM_S32, ELEM_U64, ELEM_F32,
					 ELEM_F64, ELEM_C64 };
	static const uint8_t ops[] = { UOP_NEG, UOP_ABS, UOP_ADD, UOP_DIV, UOP_REM, UOP_POW,
		UOP_ATAN2, UOP_MAX, UOP_LT, UOP_EQ, UOP_CLAMP, UOP_FMA, UOP_SELECT, UOP_TANH,
		UOP_SIN, UOP_CBRT, UOP_LOGISTIC };
	static _Alignas(8) char a[4096], b[4096], c[4096], one[3][4096], want[4096], got[4096];

	(void)state;
	for (unsigned e = 0; e < sizeof(elems); e++) {
		unsigned bytes = elem_bytes(elems[e]);

		fill_ints(elems[e], a, 200, 3);
		fill_ints(elems[e], b, 200, 1);
		fill_ints(elems[e], c, 200, 0);
		for (unsigned i = 0; i < 200 && elem_class(elems[e]) > ELEM_CLASS_UINT; i++) {
			float x = (float)(i + 1) * 0.37f, y = 1 + (float)(i % 7);
			double wx = x, wy = y;
			bool wide = elems[e] == ELEM_F64;

			memcpy(a + i * bytes, wide ? (void *)&wx : (void *)&x,
			       bytes == 8 && wide ? 8 : 4);
			memcpy(b + i * bytes, wide ? (void *)&wy : (void *)&y,
			       bytes == 8 && wide ? 8 : 4);
		}
		for (unsigned k = 0; k < 3; k++)
			for (unsigned i = 0; i < 200; i++)
				memcpy(one[k] + i * bytes, k == 0 ? a + 7 * bytes : k == 1 ?
				       b + 7 * bytes : c + 7 * bytes, bytes);
		for (unsigned k = 0; k < sizeof(ops); k++) {
			unsigned n_args = isa_uop_info(ops[k])->n_args;
			struct isa_uop u = { .op = ops[k], .elem = elems[e] };
			unsigned to = isa_uop_result(&u), out = elem_bytes(to);

			for (unsigned path = 0; path < n_paths; path++) {
				sim_uop_fn *fn = kernel(path, ops[k], elems[e]);

				for (unsigned s = 0; fn && s < (1u << n_args) - 1; s++) {
					unsigned first = ops[k] == UOP_SELECT ? 1 : bytes;

					for (unsigned n = 0; n < 140; n += n < 70 ? 1 : 13) {
						fn(want, s & 1 ? one[0] : a, s & 2 ? one[1] : b,
						   s & 4 ? one[2] : c, n, 0, 0);
						memset(got, 0x5a, sizeof(got));
						fn(got, s & 1 ? a + 7 * first : a,
						   s & 2 ? b + 7 * bytes : b,
						   s & 4 ? c + 7 * bytes : c, n, s, 0);
						if (ops[k] != UOP_SELECT || !(s & 1))
							assert_memory_equal(got, want, n * out);
						assert_int_equal(got[n * out], 0x5a);
						if (out != bytes || s & 2 || n_args < 2)
							continue;
						memcpy(got, b, sizeof(got));
						fn(got, s & 1 ? one[0] : a, got,
						   s & 4 ? one[2] : c, n, 0, 0);
						assert_memory_equal(got, want, n * out);
					}
				}
			}
		}
	}
}

static void folds_of_rows(void **state)
{
	static float x[20000];
	static int32_t k[20000];
	float got[3][40];
	int32_t sums[40];

	(void)state;
	for (unsigned i = 0; i < 20000; i++) {
		x[i] = (float)((double)(int64_t)random64() * 0x1p-63);
		k[i] = (int32_t)random64();
	}
	for (size_t cols = 1; cols < 16384; cols += cols < 300 ? 1 : 977) {
		size_t rows = 20000 / cols < 40 ? 20000 / cols : 40;

		for (unsigned path = 0; path < n_paths; path++) {
			sim_uop_fold((enum sim_path)path, UOP_ADD,
				     ELEM_F32)(got[path], x, rows, cols);
			sim_uop_fold((enum sim_path)path, UOP_ADD, ELEM_S32)(sums, k, rows, cols);
			for (size_t r = 0; r < rows; r++) {
				double want = 0, size = 0;
				uint32_t sum = 0;

				for (size_t c = 0; c < cols; c++) {
					want += x[r * cols + c];
					size += fabsf(x[r * cols + c]);
					sum += (uint32_t)k[r * cols + c];
				}
				assert_true(fabs(got[path][r] - want) <=
					    size * 0x1p-24 *
					    (4 + (cols < 64 ? cols : cols / 256.)));
				assert_int_equal(sums[r], (int32_t)sum);
			}
			assert_memory_equal(got[path], got[0], rows * sizeof(float));
			sim_uop_fold((enum sim_path)path, UOP_MAX,
				     ELEM_F32)(got[path], x, rows, cols);
			for (size_t r = 0; r < rows; r++) {
				float most = -2;

				for (size_t c = 0; c < cols; c++)
					most = x[r * cols + c] > most ? x[r * cols + c] : most;
				assert_true(got[path][r] == most);
			}
			sim_uop_fold((enum sim_path)path, UOP_ADD,
				     ELEM_F32)(got[path], x, rows, cols);
		}
	}
	for (unsigned i = 0; i < 20000; i++)
		x[i] = i % 3 ? -0.0f : -1.0f;
	for (unsigned path = 0; path < n_paths; path++) {
		for (size_t cols = 100; cols < 400; cols += 150) {
			sim_fold_fn *most = sim_uop_fold((enum sim_path)path, UOP_MAX, ELEM_F32);
			sim_fold_fn *least = sim_uop_fold((enum sim_path)path, UOP_MIN, ELEM_F32);

			most(got[0], x, 1, cols);
			assert_true(got[0][0] == 0 && signbit(got[0][0]));
			x[70] = 0.0f;
			most(got[0], x, 1, cols);
			assert_true(got[0][0] == 0 && !signbit(got[0][0]));
			x[70] = -0.0f;
			least(got[0], x + 1, 1, 2);
			assert_true(got[0][0] == 0 && signbit(got[0][0]));
		}
	}
	x[77] = NAN;
	for (unsigned path = 0; path < n_paths; path++) {
		sim_uop_fold((enum sim_path)path, UOP_MIN, ELEM_F32)(got[0], x, 1, 5000);
		assert_true(got[0][0] != got[0][0]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(integers_wrap_and_saturate_nowhere),
		cmocka_unit_test(f32_is_accurate), cmocka_unit_test(f64_is_accurate),
		cmocka_unit_test(ends_of_f64_are_numbers_too),
		cmocka_unit_test(tangents_of_large_numbers_are_right),
		cmocka_unit_test(paths_agree),
		cmocka_unit_test(logistic_is_its_steps_bit_for_bit),
		cmocka_unit_test(total_order_orders_all),
		cmocka_unit_test(fma_and_clamp), cmocka_unit_test(reduced_precision),
		cmocka_unit_test(complex_follows_c),
		cmocka_unit_test(pairs_are_the_same_on_all_paths),
		cmocka_unit_test(chains_join_step_by_step),
		cmocka_unit_test(lengths_and_spreads),
		cmocka_unit_test(folds_of_rows),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
