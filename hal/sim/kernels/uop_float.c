/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels on f32 and f64, and on pairs of them, complex numbers, for one path: see path.h. f32
 * functions are those of uop_math.h; f64 ones, and tan and cbrt of f32, are SLEEF's (portable:
 * libm's). What else complex numbers have is in uop_complex.c.
 */
#ifdef __AVX2__
#include <immintrin.h>
#endif
#include <sleef.h>

#include "hal/sim/kernels/path.h"
#include "hal/sim/kernels/uop_extreme.h"
#include "hal/sim/kernels/uop_loop.h"
#include "hal/sim/kernels/uop_math.h"

/* Ordered by the integer: -NaN < -inf < .. < -0 < +0 < .. < NaN. */
static inline int32_t total_f32(float x)
{
	int32_t s = (int32_t)bits_of(x);

	return s ^ (int32_t)((uint32_t)(s >> 31) >> 1);
}

static inline int64_t total_f64(double x)
{
	int64_t s = (int64_t)bits_of64(x);

	return s ^ (int64_t)((uint64_t)(s >> 63) >> 1);
}

static inline float away_f32(float x)
{
	float t = __builtin_truncf(x);

	t = fabsf(x - t) >= 0.5f ? t + copysignf(1.0f, x) : t;
	return copysignf(t, x);
}

static inline double away_f64(double x)
{
	double t = __builtin_trunc(x);

	t = fabs(x - t) >= 0.5 ? t + copysign(1.0, x) : t;
	return copysign(t, x);
}

/* x rounded to `exp` exponent bits and `mant` mantissa bits; out of W bits with M of
 * mantissa. */
#define RDPREC(name, U, M, E) \
static inline U name(U x, unsigned exp, unsigned mant) \
{ \
	U sign = x & (U)1 << (M + E), inf = (((U)1 << E) - 1) << M; \
	U a = x ^ sign, bias = ((U)1 << (E - 1)) - 1; \
	U most, least, r = a; \
	if (mant < M) { \
		U lsb = (U)1 << (M - mant); \
		r = a + (lsb >> 1) - 1 + ((a & lsb) != 0); \
		r &= ~(lsb - 1); \
	} \
	if (exp < E) { \
		U half = ((U)1 << (exp - 1)) - 1; \
		most = (bias + half) << M | (((U)1 << M) - 1); \
		least = (bias - half + 1) << M; \
		r = r < least ? 0 : r; \
		r = r > most ? inf : r; \
	} \
	return a > inf ? x : r | sign; \
}
RDPREC(round_f32, uint32_t, 23, 8)
RDPREC(round_f64, uint64_t, 52, 11)

#define COMMON(T, t, s, I) \
	UNARY(s##_neg, T, T, -x) \
	UNARY(s##_abs, T, T, __builtin_fabs##t(x)) \
	UNARY(s##_sign, T, T, x > 0 ? 1 : x < 0 ? -1 : x + x) \
	UNARY(s##_floor, T, T, __builtin_floor##t(x)) \
	UNARY(s##_ceil, T, T, __builtin_ceil##t(x)) \
	UNARY(s##_rne, T, T, __builtin_rint##t(x)) \
	UNARY(s##_rafz, T, T, away_##s(x)) \
	UNARY(s##_trunc, T, T, __builtin_trunc##t(x)) \
	UNARY(s##_isfin, uint8_t, T, __builtin_fabs##t(x) < (T)INFINITY) \
	UNARY(s##_sqrt, T, T, __builtin_sqrt##t(x)) \
	UNARY(s##_rsqrt, T, T, 1 / __builtin_sqrt##t(x)) \
	BINARY(s##_add, T, T, x + y) \
	BINARY(s##_sub, T, T, x - y) \
	BINARY(s##_mul, T, T, x * y) \
	BINARY(s##_div, T, T, x / y) \
	BINARY(s##_min, T, T, min_##s(x, y)) \
	BINARY(s##_max, T, T, max_##s(x, y)) \
	BINARY(s##_eq, uint8_t, T, x == y) \
	BINARY(s##_ne, uint8_t, T, x != y) \
	BINARY(s##_lt, uint8_t, T, x < y) \
	BINARY(s##_le, uint8_t, T, x <= y) \
	BINARY(s##_gt, uint8_t, T, x > y) \
	BINARY(s##_ge, uint8_t, T, x >= y) \
	BINARY(s##_tlt, uint8_t, T, total_##s(x) < total_##s(y)) \
	BINARY(s##_tle, uint8_t, T, total_##s(x) <= total_##s(y)) \
	BINARY(s##_teq, uint8_t, I, x == y) \
	TERNARY(s##_fma, T, T, T, __builtin_fma##t(x, y, z)) \
	TERNARY(s##_clamp, T, T, T, min_##s(max_##s(y, x), z)) \
	UNARY(s##_rdprec, I, I, round_##s(x, aux & 0xff, (unsigned)(aux >> 8)))

COMMON(float, f, f32, uint32_t)
COMMON(double, , f64, uint64_t)

/*
 * Pairs: one result used once, by the next operation. They are the same two
 * operations, each rounded, but the one in between is neither stored nor loaded,
 * which is what most of the time goes to.
 */
#define PAIR_LOOP(Y, Z, EXPR) \
	IVDEP \
	for (size_t j = 0; j < n; j++) { \
		float x = pa[j], y = Y, z = Z; \
		d[j] = (EXPR); \
	}
/* Spread arguments in registers: loads are what counts here. */
#define PAIR(name, EXPR) \
TERNARY(name##_any, float, float, float, EXPR) \
KERNEL(name) \
{ \
	const float *pa = ra, *pb = rb, *pc = rc; \
	float *d = dst, one = *pb, two = *pc; \
	if (n == 1) { \
		float x = *pa, y = one, z = two; \
		*d = (EXPR); \
	} else if (spread == (UOP_SPREAD_B | UOP_SPREAD_C)) { \
		PAIR_LOOP(one, two, EXPR) \
	} else if (spread == UOP_SPREAD_B) { \
		PAIR_LOOP(one, pc[j], EXPR) \
	} else if (spread == UOP_SPREAD_C) { \
		PAIR_LOOP(pb[j], two, EXPR) \
	} else { \
		name##_any(dst, ra, rb, rc, n, spread, aux); \
	} \
}
#define PAIRS(first, OP) \
	PAIR(first##_add, (x OP y) + z) \
	PAIR(first##_sub, (x OP y) - z) \
	PAIR(first##_from, z - (x OP y)) \
	PAIR(first##_mul, (x OP y) * z) \
	PAIR(first##_div, (x OP y) / z) \
	PAIR(first##_max, max_f32(x OP y, z)) \
	PAIR(first##_min, min_f32(x OP y, z))
PAIRS(f32_add, +)
PAIRS(f32_sub, -)
PAIRS(f32_mul, *)

sim_uop_fn *const PATH(sim_uop_pair)[UOP_PAIR_FIRST][UOP_PAIR_THEN] = {
#define ROW(first) { first##_add, first##_sub, first##_from, first##_mul, first##_div, \
		     first##_max, first##_min }
	ROW(f32_add), ROW(f32_sub), ROW(f32_mul),
#undef ROW
};

/* Polynomials: the sum stays in registers from the first term to the last, some of them so that
 * none waits for the one before it. */
typedef float wide __attribute__((vector_size(64)));
enum { WIDE = sizeof(wide) / sizeof(float), AT_ONCE = 4 };

static inline void spread_wide(float *to, float x)
{
	for (unsigned j = 0; j < WIDE; j++)
		to[j] = x;
}

KERNEL(f32_terms)
{
	const struct sim_terms *t = (const void *)(uintptr_t)aux;
	const float *pa = ra, *pb = rb;
	bool one_a = spread & UOP_SPREAD_A, one_b = spread & UOP_SPREAD_B;
	float *d = dst, a[WIDE], b[WIDE];
	size_t i = 0;

	(void)rc;
	/* what is spread may lie where the result goes */
	spread_wide(a, *pa);
	spread_wide(b, *pb);
	for (; i + AT_ONCE * WIDE <= n; i += AT_ONCE * WIDE) {
		wide sum[AT_ONCE], x[AT_ONCE];

		_Pragma("GCC unroll 4")
		for (unsigned j = 0; j < AT_ONCE; j++) {
			memcpy(&sum[j], one_a ? a : pa + i + j * WIDE, sizeof(wide));
			memcpy(&x[j], one_b ? b : pb + i + j * WIDE, sizeof(wide));
		}
		for (unsigned k = 0; k < t->n; k++) {
			_Pragma("GCC unroll 4")
			for (unsigned j = 0; j < AT_ONCE; j++)
				sum[j] = sum[j] * x[j] + t->c[k];
		}
		memcpy(d + i, sum, sizeof(sum));
	}
	for (; i < n; i++) {
		float sum = one_a ? *a : pa[i], x = one_b ? *b : pb[i];

		for (unsigned k = 0; k < t->n; k++)
			sum = sum * x + t->c[k];
		d[i] = sum;
	}
}
sim_uop_fn *const PATH(sim_uop_terms)[1] = { f32_terms };

UNARY(f32_exp, float, float, exp_f32(x))
UNARY(f32_expm1, float, float, expm1_f32(x))
UNARY(f32_log, float, float, log_f32(x))
UNARY(f32_log1p, float, float, log1p_f32(x))
UNARY(f32_tanh, float, float, tanh_f32(x))
UNARY(f32_logistic, float, float, logistic_f32(x))
UNARY(f32_erf, float, float, erf_f32(x))
BINARY(f32_pow, float, float, pow_f32(x, y))
BINARY(f32_atan2, float, float, atan2_f32(x, y))

/* Blocks whose arguments are all small go fast; others fall to libm one by one. */
#define TRIGONOMETRY(name, fast, slow) \
KERNEL(name) \
{ \
	const float *pa = ra; \
	float *d = dst, block[BLOCK]; \
	UNUSED_ARGS; \
	while (n) { \
		size_t m = n < BLOCK ? n : BLOCK; \
		unsigned large = 0; \
		if (m == BLOCK) { \
			IVDEP \
			for (size_t j = 0; j < BLOCK; j++) { \
				block[j] = fast(pa[j]); \
				large += !(fabsf(pa[j]) < SINCOS_MOST); \
			} \
		} else { \
			IVDEP \
			for (size_t j = 0; j < m; j++) { \
				block[j] = fast(pa[j]); \
				large += !(fabsf(pa[j]) < SINCOS_MOST); \
			} \
		} \
		for (size_t j = 0; large && j < m; j++) \
			if (!(fabsf(pa[j]) < SINCOS_MOST)) \
				block[j] = slow(pa[j]); \
		memcpy(d, block, m * sizeof(*d)); \
		d += m; \
		pa += m; \
		n -= m; \
	} \
}
TRIGONOMETRY(f32_sin, sin_f32, sinf)
TRIGONOMETRY(f32_cos, cos_f32, cosf)

/* libm looks at bits, where subnormals are numbers. */
static inline double flushed(double x)
{
	return x == 0 ? x + x : x;
}

/*
 * x - trunc(x / y) y. Two floats' quotient below 2^28 in f64 truncates right and
 * the product is exact; larger quotients take the slow way.
 */
KERNEL(f32_rem)
{
	float *d = dst, block[BLOCK];
	ARGUMENT(float, pa, ra, UOP_SPREAD_A)
	ARGUMENT(float, pb, rb, UOP_SPREAD_B)
	UNUSED_ARGS;
	while (n) {
		size_t m = n < BLOCK ? n : BLOCK;
		unsigned slow = 0;

		IVDEP
		for (size_t j = 0; j < m; j++) {
			double x = pa[j], y = pb[j], q = x / y;
			int fits = fabs(q) < 0x1p28;
			int32_t k = (int32_t)(fits ? q : 0.0);
			float r = copysignf((float)(x - k * y), pa[j]);

			block[j] = fabs(y) < (double)INFINITY || x != x ? r : x == 0 ?
				   pa[j] + pa[j] : pa[j];
			slow += !fits && x == x && y == y;
		}
		for (size_t j = 0; slow && j < m; j++)
			if (!(fabs((double)pa[j] / pb[j]) < 0x1p28))
				block[j] = (float)flushed((double)fmodf(pa[j], pb[j]));
		for (size_t j = 0; j < m; j++)
			d[j] = pb[j] != pb[j] ? pb[j] :
				fabsf(pa[j]) == INFINITY ? NAN : block[j];
		d += m;
		pa += pa_step ? m : 0;
		pb += pb_step ? m : 0;
		n -= m;
	}
}

BINARY(f64_rem, double, double, flushed(fmod(flushed(x), flushed(y))))

/* ---- SLEEF, a vector at a time ---- */

#if defined(__AVX512F__)
#define W32 16
#define W64 8
typedef __m512 vec32;
typedef __m512d vec64;
#define STORE32 _mm512_storeu_ps
#define STORE64 _mm512_storeu_pd
#define SLEEF32(f, u) Sleef_##f##f16_##u##avx512f
#define SLEEF64(f, u) Sleef_##f##d8_##u##avx512f
#elif defined(__AVX2__)
#define W32 8
#define W64 4
typedef __m256 vec32;
typedef __m256d vec64;
#define STORE32 _mm256_storeu_ps
#define STORE64 _mm256_storeu_pd
#define SLEEF32(f, u) Sleef_##f##f8_##u##avx2
#define SLEEF64(f, u) Sleef_##f##d4_##u##avx2
#else
/* libm one by one, as good and faster than SLEEF's scalars */
#define W32 1
#define W64 1
typedef float vec32;
typedef double vec64;
#define STORE32(p, v) (*(p) = (float)(v))
#define STORE64(p, v) (*(p) = (v))
#define SLEEF32(f, u) f
#define SLEEF64(f, u) f
#endif

/* What is loaded: these functions look at bits, so that a number which is too small has to be made
 * a zero of its sign here. */
#define LOADS(name, vec, T, U, W, exponent, sign) \
static inline vec name(const T *p) \
{ \
	U u __attribute__((vector_size(W * sizeof(U)))); \
	vec x; \
	memcpy(&u, p, sizeof(u)); \
	u &= ~(((u & exponent) == 0) & ~sign); \
	memcpy(&x, &u, sizeof(x)); \
	return x; \
}
LOADS(loaded32, vec32, float, int32_t, W32, 0x7f800000, INT32_MIN)
LOADS(loaded64, vec64, double, int64_t, W64, 0x7ff0000000000000, INT64_MIN)

#define SLEEF_UNARY(name, T, W, LOAD, STORE, fn) \
KERNEL(name) \
{ \
	const T *pa = ra; \
	T *d = dst, tail[W] = { 0 }; \
	UNUSED_ARGS; \
	for (; n >= W; n -= W, pa += W, d += W) \
		STORE(d, fn(LOAD(pa))); \
	if (n && W > 1) { \
		memcpy(tail, pa, n * sizeof(T)); \
		STORE(tail, fn(LOAD(tail))); \
		memcpy(d, tail, n * sizeof(T)); \
	} \
}

#define SLEEF_BINARY(name, T, W, LOAD, STORE, fn) \
KERNEL(name) \
{ \
	T *d = dst, tail_a[W] = { 0 }, tail_b[W] = { 0 }; \
	ARGUMENT(T, pa, ra, UOP_SPREAD_A) \
	ARGUMENT(T, pb, rb, UOP_SPREAD_B) \
	UNUSED_ARGS; \
	for (; n >= W; n -= W, d += W) { \
		STORE(d, fn(LOAD(pa), LOAD(pb))); \
		pa += pa_step ? W : 0; \
		pb += pb_step ? W : 0; \
	} \
	if (n && W > 1) { \
		memcpy(tail_a, pa, n * sizeof(T)); \
		memcpy(tail_b, pb, n * sizeof(T)); \
		STORE(tail_a, fn(LOAD(tail_a), LOAD(tail_b))); \
		memcpy(d, tail_a, n * sizeof(T)); \
	} \
}

#define UNARY32(op) SLEEF_UNARY(f32_##op, float, W32, loaded32, STORE32, SLEEF32(op, u10))
#define UNARY64(op) SLEEF_UNARY(f64_##op, double, W64, loaded64, STORE64, SLEEF64(op, u10))
UNARY32(cbrt)
UNARY64(cbrt)
UNARY64(exp)
UNARY64(expm1)
UNARY64(log)
UNARY64(sin)
UNARY64(cos)
UNARY64(tanh)
UNARY64(erf)
SLEEF_BINARY(f64_pow, double, W64, loaded64, STORE64, SLEEF64(pow, u10))

/* At the ends of the range, where SLEEF's intermediate numbers leave it: libm's, one by one. */
static inline bool is_extreme(double x)
{
	x = fabs(x);
	return x < 0x1p-1000 || (x > 0x1p1000 && x < (double)INFINITY);
}

#define AT_THE_ENDS(name, far) \
static inline vec64 name##_v64(vec64 v) \
{ \
	double x[W64], y[W64]; \
	STORE64(x, v); \
	STORE64(y, SLEEF64(name, u10)(v)); \
	for (unsigned i = 0; i < W64; i++) \
		if (is_extreme(x[i])) \
			y[i] = fabs(x[i]) < 1 ? x[i] : far(x[i]); \
	memcpy(&v, y, sizeof(v)); \
	return v; \
}
AT_THE_ENDS(log1p, log1p)
AT_THE_ENDS(tan, tan)

/* Beside a pole or a zero of a large argument SLEEF's has too few bits of it. */
static inline vec32 tan_v32(vec32 v)
{
	float x[W32], y[W32];

	STORE32(x, v);
	STORE32(y, SLEEF32(tan, u10)(v));
	for (unsigned i = 0; i < W32; i++)
		if (fabsf(x[i]) > 1000 && (fabsf(y[i]) > 100 || fabsf(y[i]) < 0.01f))
			y[i] = (float)tan(x[i]);
	memcpy(&v, y, sizeof(v));
	return v;
}
SLEEF_UNARY(f32_tan, float, W32, loaded32, STORE32, tan_v32)

static inline vec64 atan2_v64(vec64 v, vec64 w)
{
	double y[W64], x[W64], r[W64];

	STORE64(y, v);
	STORE64(x, w);
	STORE64(r, SLEEF64(atan2, u10)(v, w));
	for (unsigned i = 0; i < W64; i++)
		if (is_extreme(x[i]) || is_extreme(y[i]))
			r[i] = atan2(y[i], x[i]);
	memcpy(&v, r, sizeof(v));
	return v;
}

SLEEF_UNARY(f64_log1p, double, W64, loaded64, STORE64, log1p_v64)
SLEEF_UNARY(f64_tan, double, W64, loaded64, STORE64, tan_v64)
SLEEF_BINARY(f64_atan2, double, W64, loaded64, STORE64, atan2_v64)

KERNEL(f64_logistic)
{
	double *d = dst;

	f64_neg(dst, ra, NULL, NULL, n, spread, aux);
	f64_exp(dst, dst, NULL, NULL, n, spread, aux);
	(void)rb;
	(void)rc;
	IVDEP
	for (size_t i = 0; i < n; i++)
		d[i] = 1.0 / (1.0 + d[i]);
}

/* ---- complex numbers ---- */

struct c64 { float re, im; };
struct c128 { double re, im; };

#if defined(__AVX512F__)
#define WIDE 64		/* bytes of a vector */
#elif defined(__AVX2__)
#define WIDE 32
#else
#define WIDE 16
#endif
#ifdef __x86_64__
#define ROUNDED(x) __asm__("" : "+v"(x))
#else
#define ROUNDED(x) __asm__("" : "+m"(x))
#endif

/* Numbers of the parts of a vector: of each pair first(i), second(i), i its first part. */
#define OF_PAIRS_2(i, first, second) first(i), second(i)
#define OF_PAIRS_4(i, f, g) OF_PAIRS_2(i, f, g), OF_PAIRS_2(i + 2, f, g)
#define OF_PAIRS_8(i, f, g) OF_PAIRS_4(i, f, g), OF_PAIRS_4(i + 4, f, g)
#define OF_PAIRS_16(i, f, g) OF_PAIRS_8(i, f, g), OF_PAIRS_8(i + 8, f, g)
#define OF_PAIRS_(n, f, g) OF_PAIRS_##n(0, f, g)
#define OF_PAIRS(n, f, g) OF_PAIRS_(n, f, g)
#define REAL(i) (i)
#define IMAG(i) ((i) + 1)

/*
 * The four products are rounded before they are added: gcc 12 makes fused steps of a vector's
 * sums and differences in turn, whatever -ffp-contract says. It knows nothing of what ROUNDED
 * has seen. What is left over goes through a vector of its own.
 */
#define PRODUCTS(name, C, R, I, n_parts) \
typedef R name##_vec __attribute__((vector_size(WIDE), aligned(sizeof(R)), may_alias)); \
typedef I name##_int __attribute__((vector_size(WIDE))); \
static inline void name##_some(C *d, const C *pa, const C *pb) \
{ \
	enum { N = n_parts }; \
	name##_vec x = *(const name##_vec *)pa, y = *(const name##_vec *)pb; \
	name##_vec s = __builtin_shuffle(x, (name##_int){ OF_PAIRS(n_parts, REAL, REAL) }) * y; \
	name##_vec t = __builtin_shuffle(x, (name##_int){ OF_PAIRS(n_parts, IMAG, IMAG) }) * \
		__builtin_shuffle(y, (name##_int){ OF_PAIRS(n_parts, IMAG, REAL) }); \
	ROUNDED(s); \
	ROUNDED(t); \
	*(name##_vec *)d = __builtin_shuffle(s - t, s + t, \
			(name##_int){ OF_PAIRS(n_parts, REAL, N + IMAG) }); \
} \
KERNEL(name) \
{ \
	enum { EACH = WIDE / sizeof(C) }; \
	C *d = dst; \
	ARGUMENT(C, pa, ra, UOP_SPREAD_A) \
	ARGUMENT(C, pb, rb, UOP_SPREAD_B) \
	UNUSED_ARGS; \
	for (; n >= BLOCK; n -= BLOCK) { \
		for (size_t j = 0; j < BLOCK; j += EACH) \
			name##_some(d + j, pa + j, pb + j); \
		d += BLOCK; \
		pa += pa_step; \
		pb += pb_step; \
	} \
	for (; n >= EACH; n -= EACH, d += EACH, pa += EACH, pb += EACH) \
		name##_some(d, pa, pb); \
	if (n) { \
		C x[EACH] = { 0 }, y[EACH] = { 0 }; \
		memcpy(x, pa, n * sizeof(C)); \
		memcpy(y, pb, n * sizeof(C)); \
		name##_some(x, x, y); \
		memcpy(d, x, n * sizeof(C)); \
	} \
}

#define COMPLEX(C, R, w) \
	UNARY_OF(c##w##_neg, C, C, ((C){ -x.re, -x.im })) \
	UNARY_OF(c##w##_real, R, C, x.re) \
	UNARY_OF(c##w##_imag, R, C, x.im) \
	UNARY_OF(c##w##_conj, C, C, ((C){ x.re, -x.im })) \
	BINARY_OF(c##w##_add, C, C, ((C){ x.re + y.re, x.im + y.im })) \
	BINARY_OF(c##w##_sub, C, C, ((C){ x.re - y.re, x.im - y.im })) \
	BINARY_OF(c##w##_complex, C, R, ((C){ x, y }))

COMPLEX(struct c64, float, 64)
COMPLEX(struct c128, double, 128)
#if WIDE == 64
PRODUCTS(c64_mul, struct c64, float, int32_t, 16)
PRODUCTS(c128_mul, struct c128, double, int64_t, 8)
#elif WIDE == 32
PRODUCTS(c64_mul, struct c64, float, int32_t, 8)
PRODUCTS(c128_mul, struct c128, double, int64_t, 4)
#else
PRODUCTS(c64_mul, struct c64, float, int32_t, 4)
PRODUCTS(c128_mul, struct c128, double, int64_t, 2)
#endif

/*
 * Functions of c64 in f64, so that their rounding is right, a block at a time. Arrays that are
 * passed have `many` numbers, which the compiler knows: BLOCK, or, of few as loops over scalars
 * have them, FEW. What these ways leave open has a part that is not finite, be it one
 * that is written there: such numbers C's functions make again (uop_complex.c).
 */
struct block { double re[BLOCK], im[BLOCK]; };

#define FEW 8
#define OF_MANY static inline __attribute__((always_inline)) void
#define EACH(j) IVDEP for (size_t j = 0; j < many; j++)
#define OF_BLOCK(op, to, from) f64_##op(to, from, NULL, NULL, many, 0, 0)

/* The rest of a block are ones. */
OF_MANY widen(struct block *b, const struct c64 *p, size_t n, const size_t many)
{
	struct c64 some[BLOCK];

	if (n < many) {
		for (size_t j = 0; j < many; j++)
			some[j] = j < n ? p[j] : (struct c64){ 1, 1 };
		p = some;
	}
	EACH(j) {
		b->re[j] = p[j].re;
		b->im[j] = p[j].im;
	}
}

static inline bool is_open(struct c64 z)
{
	return !(fabsf(z.re) < INFINITY) | !(fabsf(z.im) < INFINITY);
}

/* Where x and y are d may be, too. */
OF_MANY settle(struct c64 *d, const struct block *b, const struct c64 *x, const struct c64 *y,
	       size_t n, unsigned op, const size_t many)
{
	struct c64 made[BLOCK];
	unsigned open = 0;

	EACH(j) {
		made[j] = (struct c64){ (float)b->re[j], (float)b->im[j] };
		open += is_open(made[j]);
	}
	for (size_t j = 0; open && j < n; j++)
		if (is_open(made[j]))
			sim_uop_complex[op].fn[ELEM_C64](&made[j], &x[j], &y[j], NULL, 1, 0, 0);
	memcpy(d, made, n * sizeof(*d));
}

#define IN_BLOCKS1(op, code) \
OF_MANY c64_##op##_some(struct c64 *d, const struct c64 *x, size_t n, const size_t many) \
{ \
	struct block z, r; \
	widen(&z, x, n, many); \
	op##_block(&r, &z, many); \
	settle(d, &r, x, x, n, code, many); \
} \
KERNEL(c64_##op) \
{ \
	const struct c64 *pa = ra; \
	struct c64 *d = dst; \
	UNUSED_ARGS; \
	if (n <= FEW) { \
		c64_##op##_some(d, pa, n, FEW); \
		return; \
	} \
	for (size_t m; n; n -= m, d += m, pa += m) { \
		m = n < BLOCK ? n : BLOCK; \
		c64_##op##_some(d, pa, m, BLOCK); \
	} \
}
#define IN_BLOCKS2(op, code) \
OF_MANY c64_##op##_some(struct c64 *d, const struct c64 *a, const struct c64 *b, size_t n, \
			const size_t many) \
{ \
	struct block x, y, r; \
	widen(&x, a, n, many); \
	widen(&y, b, n, many); \
	op##_block(&r, &x, &y, many); \
	settle(d, &r, a, b, n, code, many); \
} \
KERNEL(c64_##op) \
{ \
	struct c64 *d = dst; \
	ARGUMENT(struct c64, pa, ra, UOP_SPREAD_A) \
	ARGUMENT(struct c64, pb, rb, UOP_SPREAD_B) \
	UNUSED_ARGS; \
	if (n <= FEW) { \
		c64_##op##_some(d, pa, pb, n, FEW); \
		return; \
	} \
	for (size_t m; n; n -= m, d += m) { \
		m = n < BLOCK ? n : BLOCK; \
		c64_##op##_some(d, pa, pb, m, BLOCK); \
		pa += pa_step; \
		pb += pb_step; \
	} \
}

OF_MANY exp_block(struct block *r, const struct block *z, const size_t many)
{
	double e[BLOCK];

	OF_BLOCK(exp, e, z->re);
	OF_BLOCK(cos, r->re, z->im);
	OF_BLOCK(sin, r->im, z->im);
	EACH(j) {
		r->re[j] *= e[j];
		r->im[j] *= e[j];
	}
}

/* (e^x - 1) cos y - 2 sin^2(y/2), in which nothing cancels where z is small */
OF_MANY expm1_block(struct block *r, const struct block *z, const size_t many)
{
	double less[BLOCK], half[BLOCK];

	exp_block(r, z, many);
	OF_BLOCK(expm1, less, z->re);
	EACH(j)
		half[j] = z->im[j] / 2;
	OF_BLOCK(sin, half, half);
	OF_BLOCK(cos, r->re, z->im);
	EACH(j)
		r->re[j] = less[j] * r->re[j] - 2 * half[j] * half[j];
}

/* sinh and cosh of x by e = e^|x| - 1. */
OF_MANY hyperbolic(const double *x, double *sine, double *cosine, const size_t many)
{
	EACH(j)
		cosine[j] = fabs(x[j]);
	OF_BLOCK(expm1, sine, cosine);
	EACH(j) {
		double e = sine[j], rest = e / (e + 1);

		sine[j] = copysign((e + rest) / 2, x[j]);
		cosine[j] = 1 + e * rest / 2;
	}
}

/* r's parts, which are functions of the real part, by cosh y and sinh y; `by` is 1 or -1. */
OF_MANY stretch(struct block *r, const double *y, double by, const size_t many)
{
	double s[BLOCK], c[BLOCK];

	hyperbolic(y, s, c, many);
	EACH(j) {
		r->re[j] *= c[j];
		r->im[j] *= by * s[j];
	}
}

OF_MANY sin_block(struct block *r, const struct block *z, const size_t many)
{
	OF_BLOCK(sin, r->re, z->re);
	OF_BLOCK(cos, r->im, z->re);
	stretch(r, z->im, 1, many);
}

OF_MANY cos_block(struct block *r, const struct block *z, const size_t many)
{
	OF_BLOCK(cos, r->re, z->re);
	OF_BLOCK(sin, r->im, z->re);
	stretch(r, z->im, -1, many);
}

/* (sinh x cosh x + i sin y cos y) / (sinh^2 x + cos^2 y); beyond 60 there is no more to see. */
OF_MANY tanh_parts(double *re, double *im, const double *x, const double *y,
		   const size_t many)
{
	double least[BLOCK], s[BLOCK], c[BLOCK];

	EACH(j)
		least[j] = fabs(x[j]) > 60 ? copysign(60, x[j]) : x[j];
	hyperbolic(least, s, c, many);
	OF_BLOCK(sin, im, y);
	OF_BLOCK(cos, least, y);
	EACH(j) {
		double size = s[j] * s[j] + least[j] * least[j];

		re[j] = s[j] * c[j] / size;
		im[j] = im[j] * least[j] / size;
	}
}

OF_MANY tanh_block(struct block *r, const struct block *z, const size_t many)
{
	tanh_parts(r->re, r->im, z->re, z->im, many);
}

/* -i tanh(i z) */
OF_MANY tan_block(struct block *r, const struct block *z, const size_t many)
{
	tanh_parts(r->im, r->re, z->im, z->re, many);
}

static inline double size_of(double re, double im)
{
	return __builtin_sqrt(re * re + im * im);
}

OF_MANY sign_block(struct block *r, const struct block *z, const size_t many)
{
	EACH(j) {
		double size = size_of(z->re[j], z->im[j]);

		r->re[j] = z->re[j] / size;
		r->im[j] = z->im[j] / size;
	}
}

OF_MANY sqrt_block(struct block *r, const struct block *z, const size_t many)
{
	EACH(j) {
		double x = z->re[j], y = z->im[j];
		double more = __builtin_sqrt((size_of(x, y) + fabs(x)) / 2);
		double less = fabs(y) / (2 * more);

		r->re[j] = x < 0 ? less : more;
		r->im[j] = copysign(x < 0 ? more : less, y);
	}
}

/* The conjugate of the root by the size. */
OF_MANY rsqrt_block(struct block *r, const struct block *z, const size_t many)
{
	sqrt_block(r, z, many);
	EACH(j) {
		double size = size_of(z->re[j], z->im[j]);

		r->re[j] /= size;
		r->im[j] /= -size;
	}
}

/* A zero may have the wrong sign. */
static inline double unless_zero(double x)
{
	return fabs(x) >= (double)SMALLEST_NORMAL ? x : (double)NAN;
}

OF_MANY div_block(struct block *r, const struct block *x, const struct block *y,
			 const size_t many)
{
	EACH(j) {
		double a = x->re[j], b = x->im[j], c = y->re[j], d = y->im[j];
		double size = c * c + d * d;

		r->re[j] = unless_zero((a * c + b * d) / size);
		r->im[j] = unless_zero((b * c - a * d) / size);
	}
}

/* e^(y log x). The error of the exponent grows with y. */
#define POWER_MOST 0x1p12
OF_MANY pow_block(struct block *r, const struct block *x, const struct block *y,
			 const size_t many)
{
	struct block l, e;

	EACH(j)
		l.re[j] = x->re[j] * x->re[j] + x->im[j] * x->im[j];
	OF_BLOCK(log, l.re, l.re);
	f64_atan2(l.im, x->im, x->re, NULL, many, 0, 0);
	EACH(j) {
		double by = fabs(y->re[j]) + fabs(y->im[j]), half = l.re[j] / 2;

		e.re[j] = y->re[j] * half - y->im[j] * l.im[j];
		e.im[j] = y->im[j] * half + y->re[j] * l.im[j];
		e.im[j] = by < POWER_MOST ? e.im[j] : (double)NAN;
	}
	exp_block(r, &e, many);
	EACH(j)
		r->im[j] = unless_zero(r->im[j]);
}

IN_BLOCKS1(exp, UOP_EXP)
IN_BLOCKS1(expm1, UOP_EXPM1)
IN_BLOCKS1(sin, UOP_SIN)
IN_BLOCKS1(cos, UOP_COS)
IN_BLOCKS1(tanh, UOP_TANH)
IN_BLOCKS1(tan, UOP_TAN)
IN_BLOCKS1(sign, UOP_SIGN)
IN_BLOCKS1(sqrt, UOP_SQRT)
IN_BLOCKS1(rsqrt, UOP_RSQRT)
IN_BLOCKS2(div, UOP_DIV)
IN_BLOCKS2(pow, UOP_POW)

/* An infinite part makes the size so, whatever the other is. */
UNARY_OF(c64_abs, float, struct c64,
	 (fabsf(x.re) == INFINITY) | (fabsf(x.im) == INFINITY) ? INFINITY :
	 (float)size_of(x.re, x.im))

#define FLOATS(op) {{ [ELEM_F32] = f32_##op, [ELEM_F64] = f64_##op }}
#define PARTS(op) {{ [ELEM_C64] = c64_##op, [ELEM_C128] = c128_##op }}
#define AND_C64(op) {{ [ELEM_F32] = f32_##op, [ELEM_F64] = f64_##op, [ELEM_C64] = c64_##op }}
#define BOTH(op) {{ [ELEM_F32] = f32_##op, [ELEM_F64] = f64_##op, \
		    [ELEM_C64] = c64_##op, [ELEM_C128] = c128_##op }}

const struct sim_uop_row PATH(sim_uop_float)[UOP_CODES] = {
	[UOP_RDPREC] = FLOATS(rdprec), [UOP_NEG] = BOTH(neg),
	[UOP_ABS] = AND_C64(abs), [UOP_SIGN] = AND_C64(sign),
	[UOP_FLOOR] = FLOATS(floor), [UOP_CEIL] = FLOATS(ceil),
	[UOP_RNE] = FLOATS(rne), [UOP_RAFZ] = FLOATS(rafz),
	[UOP_TRUNC] = FLOATS(trunc), [UOP_ISFIN] = FLOATS(isfin),
	[UOP_SQRT] = AND_C64(sqrt), [UOP_RSQRT] = AND_C64(rsqrt),
	[UOP_CBRT] = FLOATS(cbrt), [UOP_EXP] = AND_C64(exp),
	[UOP_EXPM1] = AND_C64(expm1), [UOP_LOG] = FLOATS(log),
	[UOP_LOG1P] = FLOATS(log1p), [UOP_SIN] = AND_C64(sin),
	[UOP_COS] = AND_C64(cos), [UOP_TAN] = AND_C64(tan),
	[UOP_TANH] = AND_C64(tanh), [UOP_LOGISTIC] = FLOATS(logistic),
	[UOP_ERF] = FLOATS(erf), [UOP_ADD] = BOTH(add),
	[UOP_SUB] = BOTH(sub), [UOP_MUL] = BOTH(mul),
	[UOP_DIV] = AND_C64(div), [UOP_REM] = FLOATS(rem),
	[UOP_MIN] = FLOATS(min), [UOP_MAX] = FLOATS(max),
	[UOP_POW] = AND_C64(pow), [UOP_ATAN2] = FLOATS(atan2),
	[UOP_EQ] = FLOATS(eq), [UOP_NE] = FLOATS(ne),
	[UOP_LT] = FLOATS(lt), [UOP_LE] = FLOATS(le),
	[UOP_GT] = FLOATS(gt), [UOP_GE] = FLOATS(ge),
	[UOP_TLT] = FLOATS(tlt), [UOP_TLE] = FLOATS(tle),
	[UOP_TEQ] = FLOATS(teq), [UOP_FMA] = FLOATS(fma),
	[UOP_CLAMP] = FLOATS(clamp), [UOP_REAL] = PARTS(real),
	[UOP_IMAG] = PARTS(imag), [UOP_CONJ] = PARTS(conj),
	/* its arguments are real */
	[UOP_COMPLEX] = {{ [ELEM_F32] = c64_complex, [ELEM_F64] = c128_complex }},
};
