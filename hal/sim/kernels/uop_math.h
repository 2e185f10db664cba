/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_UOP_MATH_H
#define SIM_UOP_MATH_H
/*
 * Elementary functions of f32, without branches so that loops over them vectorise.
 * Polynomials are minimax fits, with coefficients rounded to the type they are
 * used in; errors stay below 2 ulp (pow: 3). Subnormals are zero.
 * What no short polynomial covers (huge arguments of sin and cos) the callers
 * recognise and give to libm.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

/* Fused where the CPU can; elsewhere two roundings do. */
#ifdef __FMA__
#define FMAF(a, b, c) __builtin_fmaf(a, b, c)
#define FMAD(a, b, c) __builtin_fma(a, b, c)
#else
#define FMAF(a, b, c) ((a) * (b) + (c))
#define FMAD(a, b, c) ((a) * (b) + (c))
#endif

#define SMALLEST_NORMAL 0x1p-126f

static inline uint32_t bits_of(float x)
{
	uint32_t u;

	memcpy(&u, &x, sizeof(u));
	return u;
}

static inline float float_of(uint32_t u)
{
	float x;

	memcpy(&x, &u, sizeof(x));
	return x;
}

/* bf16 is the upper half of f32. */
static inline uint16_t bf16_encoded(uint32_t x)
{
	uint32_t r = (x + 0x7fff + (x >> 16 & 1)) >> 16;

	return (uint16_t)((x & 0x7fffffff) > 0x7f800000 ? x >> 16 | 0x40 : r);
}

/* Adding 1.5 * 2^23 to a small number rounds it to an integer, which is then in
 * the low bits of the significand. */
#define ROUNDER 0x1.8p23f
#define LN2_HIGH 0x1.63p-1f		/* 9 bits: n * LN2_HIGH is exact */
#define LN2_LOW -0x1.bd0106p-13f

/* e^x = 2^n (1 + r + r r p), x = n log 2 + r, for x in EXP_LEAST..EXP_MOST. The
 * result is normal, so adding n to the exponent of the rest is enough. */
#define EXP_LEAST -0x1.5d589ep+6f
#define EXP_MOST 0x1.62e42ep+6f
static inline float exp_core(float x)
{
	float t, n, r, p;

	t = FMAF(x, 0x1.715476p+0f, ROUNDER);
	n = t - ROUNDER;
	r = FMAF(n, -LN2_HIGH, x);
	r = FMAF(n, -LN2_LOW, r);
	p = 0x1.6d722ap-10f;
	p = FMAF(p, r, 0x1.12267ap-7f);
	p = FMAF(p, r, 0x1.5554c8p-5f);
	p = FMAF(p, r, 0x1.5554b2p-3f);
	p = FMAF(p, r, 0.5f);
	p = FMAF(p, r * r, r) + 1.0f;
	/* the bits of ROUNDER vanish in the shift */
	return float_of(bits_of(p) + (bits_of(t) << 23));
}

static inline float exp_f32(float x)
{
	float y = exp_core(x);

	/* above, infinity; NaN stays */
	y = x <= EXP_MOST ? y : x * INFINITY;
	return x < EXP_LEAST ? 0.0f : y;
}

/* e^x - 1 = 2 (s p + s - 1/2) for x <= 89; returns p. */
static inline float expm1_parts(float x, float *s)
{
	float t, n, r, p;

	t = FMAF(x, 0x1.715476p+0f, ROUNDER);
	n = t - ROUNDER;
	r = FMAF(n, -LN2_HIGH, x);
	r = FMAF(n, -LN2_LOW, r);
	p = 0x1.a242fep-13f;
	p = FMAF(p, r, 0x1.6d3c92p-10f);
	p = FMAF(p, r, 0x1.111004p-7f);
	p = FMAF(p, r, 0x1.5554f6p-5f);
	p = FMAF(p, r, 0x1.555556p-3f);
	p = FMAF(p, r, 0.5f);
	/* 2^(n-1) */
	*s = float_of((bits_of(t) - bits_of(ROUNDER) + 126u) << 23);
	return FMAF(p, r * r, r);
}

static inline float expm1_core(float x)
{
	float s, p = expm1_parts(x, &s);

	return 2.0f * FMAF(s, p, s - 0.5f);
}

static inline float expm1_f32(float x)
{
	float y;

	y = x > 89.0f ? 89.0f : x;
	y = y < -24.0f ? -24.0f : y;
	y = copysignf(expm1_core(y), x);
	return fabsf(x) < 0x1p-24f && x != 0.0f ? x : y;
}

/* With e = e^(-2 |x|): (e - 1) / (e + 1), but for the sign. NaN stays. */
static inline float tanh_f32(float x)
{
	float a = fabsf(x), s, p;

	a = a > 10.0f ? 10.0f : a;
	p = expm1_parts(-2.0f * a, &s);
	return copysignf(FMAF(s, p, s - 0.5f) / FMAF(s, p, s + 0.5f), x);
}

static inline float logistic_f32(float x)
{
	return 1.0f / (1.0f + exp_f32(-x));
}

/* log(1 + r) + e log 2, for r in sqrt(1/2) - 1 .. sqrt(2) - 1 */
static inline float log_core(float r, float e)
{
	float z = r * r, p;

	p = 0x1.147334p-4f;
	p = FMAF(p, r, -0x1.de01dap-4f);
	p = FMAF(p, r, 0x1.e6c00ap-4f);
	p = FMAF(p, r, -0x1.fc28cap-4f);
	p = FMAF(p, r, 0x1.233ba2p-3f);
	p = FMAF(p, r, -0x1.555c44p-3f);
	p = FMAF(p, r, 0x1.99a476p-3f);
	p = FMAF(p, r, -0x1.000006p-2f);
	p = FMAF(p, r, 0x1.555548p-2f);
	p = FMAF(p, z * r, e * LN2_LOW);
	p = FMAF(-0.5f, z, p);
	return (r + p) + e * LN2_HIGH;
}

#define SQRT_HALF_BITS 0x3f3504f3u

static inline float log_f32(float x)
{
	uint32_t ix = bits_of(x) - SQRT_HALF_BITS;
	float e = (float)((int32_t)ix >> 23);
	float r = float_of((ix & 0x7fffff) + SQRT_HALF_BITS) - 1.0f;
	float y = log_core(r, e);

	y = x == INFINITY ? x : y;
	y = x < SMALLEST_NORMAL ? -INFINITY : y;
	y = x < 0.0f ? NAN : y;
	return x != x ? x : y;
}

static inline float log1p_f32(float x)
{
	float u = 1.0f + x;
	/* what u lost; both forms are exact on their side */
	float lost = fabsf(x) < 1.0f ? x - (u - 1.0f) : 1.0f - (u - x);
	uint32_t ix = bits_of(u) - SQRT_HALF_BITS;
	int32_t k = (int32_t)ix >> 23;
	float scale = float_of((uint32_t)(127 - k) << 23);
	float r = float_of((ix & 0x7fffff) + SQRT_HALF_BITS) - 1.0f;
	float y;

	r = k ? r + lost * (k > 100 ? 0.0f : scale) : x;
	y = log_core(r, (float)k);
	y = x == INFINITY ? x : y;
	y = x == -1.0f ? -INFINITY : y;
	y = x < -1.0f ? NAN : y;
	y = x == 0.0f ? x + x : y;
	return x != x ? x : y;
}

/* Arguments that sincos_core() takes. */
#define SINCOS_MOST 0x1p20f

/* sin(x + quarter * pi/2). The reduction runs in f64: q * PI_HALF_HIGH is exact. */
static inline float sincos_core(float x, uint32_t quarter)
{
	double t = (double)x * 0x1.45f306dc9c883p-1 + 0x1.8p52;
	double q = t - 0x1.8p52;
	double rd = ((double)x - q * 0x1.921fb544p+0) - q * 0x1.0b4611a626331p-34;
	float r = (float)rd, z = r * r, s, c, y;
	uint64_t tb;
	uint32_t k;

	memcpy(&tb, &t, sizeof(tb));
	k = (uint32_t)tb + quarter;
	s = -0x1.9954a8p-13f;
	s = FMAF(s, z, 0x1.11077ap-7f);
	s = FMAF(s, z, -0x1.555546p-3f);
	s = FMAF(s, z * r, r);
	c = 0x1.99e0ecp-16f;
	c = FMAF(c, z, -0x1.6c0c1ap-10f);
	c = FMAF(c, z, 0x1.55554ap-5f);
	c = FMAF(c, z * z, FMAF(-0.5f, z, 1.0f));
	y = k & 1 ? c : s;
	return float_of(bits_of(y) ^ (k & 2) << 30);
}

static inline float sin_f32(float x)
{
	return x == 0.0f ? x + x : sincos_core(x, 0);
}

static inline float cos_f32(float x)
{
	return sincos_core(x, 1);
}

/* 1 - e^-q, where q is |x| and a polynomial's share of it, but for the sign. NaN stays. */
static inline float erf_f32(float x)
{
	float a = fabsf(x), q, y;

	a = a > 4.0f ? 4.0f : a;
	q = -0x1.3b03cap-17f;
	q = FMAF(q, a, 0x1.f28b4ap-14f);
	q = FMAF(q, a, -0x1.4e29b6p-11f);
	q = FMAF(q, a, 0x1.b744d8p-10f);
	q = FMAF(q, a, -0x1.637a28p-13f);
	q = FMAF(q, a, -0x1.39b7cap-6f);
	q = FMAF(q, a, 0x1.a4f8c4p-4f);
	q = FMAF(q, a, 0x1.45f300p-1f);
	q = FMAF(q, a, 0x1.06eba8p-3f);
	y = expm1_core(-FMAF(q, a, a));
	/* far below, parts of it are subnormal, and lost */
	y = a < 0x1p-60f ? a * 0x1.20dd76p+0f : y;
	return copysignf(y, x);
}

static inline float atan2_f32(float y, float x)
{
	float a = fabsf(y), b = fabsf(x);
	float most = a > b ? a : b, least = a > b ? b : a;
	/* 1 for two infinities, 0 for two zeros */
	float t = most == least ? 1.0f : least / most, z, p, r;

	t = most == 0.0f ? 0.0f : t;
	z = t * t;
	p = -0x1.d35bd4p-10f;
	p = FMAF(p, z, 0x1.642558p-7f);
	p = FMAF(p, z, -0x1.fd7e48p-6f);
	p = FMAF(p, z, 0x1.da2a14p-5f);
	p = FMAF(p, z, -0x1.58091cp-4f);
	p = FMAF(p, z, 0x1.c08c4ep-4f);
	p = FMAF(p, z, -0x1.242086p-3f);
	p = FMAF(p, z, 0x1.9991e4p-3f);
	p = FMAF(p, z, -0x1.55553ep-2f);
	r = FMAF(p * z, t, t);
	/* pi/2 and pi in two parts each */
	r = a > b ? 0x1.921fb6p+0f - (r + 0x1.777a5cp-25f) : r;
	r = bits_of(x) >> 31 ? 0x1.921fb6p+1f - (r + 0x1.777a5cp-24f) : r;
	r = copysignf(r, y);
	return (x != x) | (y != y) ? x + y : r;
}

/* log2 of a positive normal f32, with about 40 good bits */
static inline double log2_f64(float a)
{
	uint32_t ix = bits_of(a) - SQRT_HALF_BITS;
	double e = (double)((int32_t)ix >> 23);
	double m = (double)float_of((ix & 0x7fffff) + SQRT_HALF_BITS);
	double s = (m - 1.0) / (m + 1.0), z = s * s, p;

	p = 0x1.21b1b00476e65p-2;
	p = FMAD(p, z, 0x1.47954937f9306p-2);
	p = FMAD(p, z, 0x1.a61a2f15803bap-2);
	p = FMAD(p, z, 0x1.2776c292e56d6p-1);
	p = FMAD(p, z, 0x1.ec709dc53caecp-1);
	p = FMAD(p, z, 0x1.71547652b8251p+1);
	return FMAD(p, s, e);
}

/* c ? x : y, of bits: a plain choice between constants would become branches. */
static inline double pick_f64(int c, double x, double y)
{
	uint64_t mask = 0 - (uint64_t)c, a, b;

	memcpy(&a, &x, sizeof(a));
	memcpy(&b, &y, sizeof(b));
	a = (a & mask) | (b & ~mask);
	memcpy(&x, &a, sizeof(x));
	return x;
}

static inline float pow_f32(float x, float y)
{
	float a = fabsf(x), result;
	double l = log2_f64(a), yd = (double)y, t, u, f, p, scale;
	uint64_t bits;
	/* the integer next to y; a float of 2^24 or more is an even one */
	double near = yd + 0x1.8p52;
	int large = fabsf(y) >= 0x1p24f;
	int whole = large | (near - 0x1.8p52 == yd), odd;

	memcpy(&bits, &near, sizeof(bits));
	odd = (large ^ 1) & whole & (int)(bits & 1);
	l = pick_f64(a < SMALLEST_NORMAL, -(double)INFINITY, l);
	l = pick_f64(a == INFINITY, (double)INFINITY, l);
	t = yd * l;
	t = pick_f64(t > 200.0, 200.0, t);
	t = pick_f64(t < -200.0, -200.0, t);
	u = t + 0x1.8p52;
	f = t - (u - 0x1.8p52);
	p = 0x1.41d332e473e8ep-13;
	p = FMAD(p, f, 0x1.5f456a8950d11p-10);
	p = FMAD(p, f, 0x1.3b2dbbc1c48cfp-7);
	p = FMAD(p, f, 0x1.c6aed4b9546fep-5);
	p = FMAD(p, f, 0x1.ebfbdadcaf97fp-3);
	p = FMAD(p, f, 0x1.62e430c7e91f0p-1);
	p = FMAD(p, f, 0x1.0000000261503p+0);
	memcpy(&bits, &u, sizeof(bits));
	bits = (bits + 1023) << 52;
	memcpy(&scale, &bits, sizeof(scale));
	result = (float)(p * scale);
	result = float_of(bits_of(result) | ((uint32_t)odd << 31 & bits_of(x)));
	result = (x < 0.0f) & (whole ^ 1) & (a != INFINITY) & (a != 0.0f) ? NAN : result;
	result = (a == 1.0f) & (fabsf(y) == INFINITY) ? 1.0f : result;
	result = (x != x) | (y != y) ? x + y : result;
	return (x == 1.0f) | (y == 0.0f) ? 1.0f : result;
}

#endif
