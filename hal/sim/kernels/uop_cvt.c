/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conversions, for one path: see path.h. Any type to any other: a chain of at most four
 * of the kernels here, through f32, f64 or an integer (cvt_chain). Narrowing goes
 * through "round to odd" steps where two roundings would otherwise differ from one: a
 * value rounded to odd with at least two bits to spare rounds on as the original would.
 */
#ifdef __AVX2__
#include <immintrin.h>
#endif
#include <math.h>
#include <string.h>

#include "hal/sim/kernels/path.h"
#include "hal/sim/kernels/uop_loop.h"
#include "hal/sim/kernels/uop_math.h"

static inline uint32_t raw32(float x)
{
	uint32_t u;

	memcpy(&u, &x, sizeof(u));
	return u;
}

static inline float from_raw32(uint32_t u)
{
	float x;

	memcpy(&x, &u, sizeof(x));
	return x;
}

/* ---- between computing types ---- */

/* x to an integer that holds LOW..HIGH (as floats; HIGH is the largest F in reach)
 * and whose largest value is MOST. */
#define SATURATE(name, T, F, LOW, HIGH, MOST) \
static inline T name(F x) \
{ \
	F y = x > (F)(HIGH) ? (F)(HIGH) : x; \
	T r; \
	y = y < (F)(LOW) ? (F)(LOW) : y; \
	y = x != x ? 0 : y; \
	r = (T)y; \
	return x > (F)(HIGH) ? MOST : r; \
}
SATURATE(f32_s8_value, int32_t, float, -128, 127, 127)
SATURATE(f32_u8_value, int32_t, float, 0, 255, 255)
SATURATE(f32_s16_value, int32_t, float, -32768, 32767, 32767)
SATURATE(f32_u16_value, int32_t, float, 0, 65535, 65535)
SATURATE(f32_s32_value, int32_t, float, -0x1p31, 0x1.fffffep30, INT32_MAX)
SATURATE(f32_u32_value, uint32_t, float, 0, 0x1.fffffep31, UINT32_MAX)
SATURATE(f32_s64_value, int64_t, float, -0x1p63, 0x1.fffffep62, INT64_MAX)
SATURATE(f32_u64_value, uint64_t, float, 0, 0x1.fffffep63, UINT64_MAX)
SATURATE(f64_s8_value, int32_t, double, -128, 127, 127)
SATURATE(f64_u8_value, int32_t, double, 0, 255, 255)
SATURATE(f64_s16_value, int32_t, double, -32768, 32767, 32767)
SATURATE(f64_u16_value, int32_t, double, 0, 65535, 65535)
SATURATE(f64_s32_value, int32_t, double, -0x1p31, 2147483647.0, INT32_MAX)
SATURATE(f64_u32_value, uint32_t, double, 0, 4294967295.0, UINT32_MAX)
SATURATE(f64_s64_value, int64_t, double, -0x1p63, 0x1.fffffffffffffp62, INT64_MAX)
SATURATE(f64_u64_value, uint64_t, double, 0, 0x1.fffffffffffffp63, UINT64_MAX)

#define FROM_INTEGER(T, t) \
	UNARY(t##_to_8, uint8_t, T, x) \
	UNARY(t##_to_16, uint16_t, T, x) \
	UNARY(t##_to_32, uint32_t, T, x) \
	UNARY(t##_to_64, uint64_t, T, x) \
	UNARY(t##_to_f32, float, T, x) \
	UNARY(t##_to_f64, double, T, x)
FROM_INTEGER(int8_t, s8)
FROM_INTEGER(int16_t, s16)
FROM_INTEGER(int32_t, s32)
FROM_INTEGER(int64_t, s64)
FROM_INTEGER(uint8_t, u8)
FROM_INTEGER(uint16_t, u16)
FROM_INTEGER(uint32_t, u32)
FROM_INTEGER(uint64_t, u64)
#define FROM_FLOAT(T, t) \
	UNARY(t##_to_s8, int8_t, T, t##_s8_value(x)) \
	UNARY(t##_to_s16, int16_t, T, t##_s16_value(x)) \
	UNARY(t##_to_s32, int32_t, T, t##_s32_value(x)) \
	UNARY(t##_to_s64, int64_t, T, t##_s64_value(x)) \
	UNARY(t##_to_u8, uint8_t, T, t##_u8_value(x)) \
	UNARY(t##_to_u16, uint16_t, T, t##_u16_value(x)) \
	UNARY(t##_to_u32, uint32_t, T, t##_u32_value(x)) \
	UNARY(t##_to_u64, uint64_t, T, t##_u64_value(x)) \
	UNARY(t##_to_f32, float, T, x) \
	UNARY(t##_to_f64, double, T, x)
FROM_FLOAT(float, f32)
FROM_FLOAT(double, f64)

#define TO_PRED(T, t) UNARY(t##_to_pred, uint8_t, T, x != 0)
TO_PRED(uint8_t, u8)
TO_PRED(uint16_t, u16)
TO_PRED(uint32_t, u32)
TO_PRED(uint64_t, u64)
TO_PRED(float, f32)
TO_PRED(double, f64)

#define INTEGER_ROW(t, p) { \
	[ELEM_PRED] = p##_to_pred, \
	[ELEM_S8] = t##_to_8, [ELEM_S16] = t##_to_16, [ELEM_S32] = t##_to_32, \
	[ELEM_S64] = t##_to_64, [ELEM_U8] = t##_to_8, [ELEM_U16] = t##_to_16, \
	[ELEM_U32] = t##_to_32, [ELEM_U64] = t##_to_64, \
	[ELEM_F32] = t##_to_f32, [ELEM_F64] = t##_to_f64 }
#define FLOAT_ROW(t) { \
	[ELEM_PRED] = t##_to_pred, \
	[ELEM_S8] = t##_to_s8, [ELEM_S16] = t##_to_s16, [ELEM_S32] = t##_to_s32, \
	[ELEM_S64] = t##_to_s64, [ELEM_U8] = t##_to_u8, [ELEM_U16] = t##_to_u16, \
	[ELEM_U32] = t##_to_u32, [ELEM_U64] = t##_to_u64, \
	[ELEM_F32] = t##_to_f32, [ELEM_F64] = t##_to_f64 }

static sim_uop_fn *const direct[UOP_TYPES][UOP_TYPES] = {
	[ELEM_PRED] = INTEGER_ROW(u8, u8),
	[ELEM_S8] = INTEGER_ROW(s8, u8), [ELEM_S16] = INTEGER_ROW(s16, u16),
	[ELEM_S32] = INTEGER_ROW(s32, u32), [ELEM_S64] = INTEGER_ROW(s64, u64),
	[ELEM_U8] = INTEGER_ROW(u8, u8), [ELEM_U16] = INTEGER_ROW(u16, u16),
	[ELEM_U32] = INTEGER_ROW(u32, u32), [ELEM_U64] = INTEGER_ROW(u64, u64),
	[ELEM_F32] = FLOAT_ROW(f32), [ELEM_F64] = FLOAT_ROW(f64),
};

/* ---- rounding to odd ---- */

/* To f32, truncated, with the last bit set if anything was lost. */
static inline uint32_t odd_f32(double x)
{
	float f = (float)x;
	double back = (double)f;
	uint32_t u = raw32(f);

	u -= fabs(back) > fabs(x);
	u |= back != x;
	return x != x ? raw32(f) : u;
}

static inline double odd_u64(uint64_t x)
{
	uint64_t cut = (x & ~(uint64_t)0x7ff) | (uint64_t)((x & 0x7ff) != 0) << 11;

	return (double)(x >> 53 ? cut : x);
}

static inline double odd_s64(int64_t x)
{
	double a = odd_u64(x < 0 ? 0 - (uint64_t)x : (uint64_t)x);

	return x < 0 ? -a : a;
}

UNARY(f64_odd, uint32_t, double, odd_f32(x))
UNARY(u64_odd, double, uint64_t, odd_u64(x))
UNARY(s64_odd, double, int64_t, odd_s64(x))

/* ---- small floats ---- */

/* How codes beyond the numbers are used. */
enum { IEEE, FN, FNUZ, FINITE };

/* E exponent bits, M mantissa bits, value 2^(exp - BIAS). In f32 all are normal. */
#define DECODE(name, U, E, M, BIAS, KIND) \
static inline uint32_t name(U x) \
{ \
	uint32_t mag = x & ((1u << (E + M)) - 1), sign = (uint32_t)x >> (E + M) & 1; \
	uint32_t normal = (mag << (23 - M)) + ((127u - BIAS) << 23); \
	/* a subnormal is a small integer times 2^(1 - BIAS - M) */ \
	float sub = (float)(int32_t)mag * from_raw32((128u - BIAS - M) << 23); \
	uint32_t r = mag >> M ? normal : raw32(sub); \
	uint32_t top = ((1u << E) - 1) << M; \
	if (KIND == IEEE) { \
		r = mag >= top ? 0x7f800000 : r; \
		r = mag > top ? 0x7fc00000 | (mag - top) << (23 - M) : r; \
	} \
	if (KIND == FN) \
		r = mag == (1u << (E + M)) - 1 ? 0x7fc00000 : r; \
	if (KIND == FNUZ) \
		r = sign && !mag ? 0x7fc00000 : r; \
	return r | sign << 31; \
}

/* Nearest even. Overflow: infinity (IEEE), NaN (FN, FNUZ), the largest (FINITE). */
#define ENCODE(name, U, E, M, BIAS, KIND) \
static inline U name(uint32_t x) \
{ \
	uint32_t sign = x >> 31, a = x & 0x7fffffff; \
	uint32_t normal = (a + (1u << (22 - M)) - 1 + (a >> (23 - M) & 1)) >> (23 - M); \
	float sub = from_raw32(a) * from_raw32((126u + BIAS + M) << 23) + 0x1.8p23f; \
	uint32_t least = (128u - BIAS) << 23, r; \
	/* the first code that is no number, and what overflow and NaN become */ \
	uint32_t end = KIND == IEEE ? ((1u << E) - 1) << M : \
		KIND == FN ? (1u << (E + M)) - 1 : 1u << (E + M); \
	uint32_t over = KIND == FINITE ? end - 1 : end; \
	uint32_t nan = KIND == IEEE ? end | 1u << (M - 1) : end; \
	normal -= (127u - BIAS) << M; \
	r = a < least ? raw32(sub) & 0x3fffff : normal; \
	r = a >= 0x7f000000 || r >= end ? over : r; \
	if (KIND == IEEE && sizeof(U) == 2) \
		nan |= a >> (23 - M) & ((1u << M) - 1); \
	r = a > 0x7f800000 ? nan : r; \
	if (KIND == FNUZ) \
		return (U)(r ? r | (r < end ? sign << (E + M) : 0) : 0); \
	if (KIND == FINITE) \
		return (U)(a > 0x7f800000 ? end : r | sign << (E + M)); \
	return (U)(r | sign << (E + M)); \
}

#define SMALL(name, U, E, M, BIAS, KIND) \
	DECODE(name##_decoded, U, E, M, BIAS, KIND) \
	ENCODE(name##_encoded, U, E, M, BIAS, KIND) \
	UNARY(name##_decode, uint32_t, U, name##_decoded(x)) \
	UNARY(name##_encode, U, uint32_t, name##_encoded(x))
SMALL(f16_bits, uint16_t, 5, 10, 15, IEEE)
SMALL(f8e5m2, uint8_t, 5, 2, 15, IEEE)
SMALL(f8e4m3, uint8_t, 4, 3, 7, IEEE)
SMALL(f8e3m4, uint8_t, 3, 4, 3, IEEE)
SMALL(f8e4m3fn, uint8_t, 4, 3, 7, FN)
SMALL(f8e4m3b11, uint8_t, 4, 3, 11, FNUZ)
SMALL(f8e5m2fnuz, uint8_t, 5, 2, 16, FNUZ)
SMALL(f8e4m3fnuz, uint8_t, 4, 3, 8, FNUZ)
SMALL(f4e2m1, uint8_t, 2, 1, 1, FINITE)

/* A power of two, 2^(x - 127); 255 is NaN. 2^-127 is subnormal in f32 and stays. */
static inline uint32_t e8m0_decoded(uint8_t x)
{
	uint32_t u = x ? (uint32_t)x << 23 : 0x400000;

	return x == 255 ? 0x7fc00000 : u;
}

/* Nearest power of two, halfway up; there is no sign and no zero: those are NaN. */
static inline uint8_t e8m0_encoded(uint32_t x)
{
	uint32_t a = x & 0x7fffffff, e = (a + 0x400000) >> 23;

	/* below 2^-126 the one code is 2^-127, to 1.5 times that */
	e = a < 0x800000 ? a >= 0x600000 : e;
	return (uint8_t)(x - 1 >= 0x7f7fffff || e > 254 ? 255 : e);
}

/* The same of f64, where all are normal, and whose subnormals are zero. */
static inline uint64_t e8m0_decoded_64(uint8_t x)
{
	return x == 255 ? (uint64_t)0x7ff8 << 48 : ((uint64_t)x + 1023 - 127) << 52;
}

static inline uint8_t e8m0_encoded_64(uint64_t x)
{
	int64_t e = (int64_t)((x + ((uint64_t)1 << 51)) >> 52) - 1023 + 127;
	bool is_number = x >= (uint64_t)1 << 52 && x < (uint64_t)0x7ff << 52;

	return (uint8_t)(!is_number || e > 254 ? 255 : e < 0 ? 0 : e);
}
UNARY(e8m0_decode, uint32_t, uint8_t, e8m0_decoded(x))
UNARY(e8m0_decode_64, uint64_t, uint8_t, e8m0_decoded_64(x))
UNARY(e8m0_encode_64, uint8_t, uint64_t, e8m0_encoded_64(x))
UNARY(e8m0_encode, uint8_t, uint32_t, e8m0_encoded(x))

UNARY(bf16_decode, uint32_t, uint16_t, (uint32_t)x << 16)
UNARY(bf16_bits_encode, uint16_t, uint32_t, bf16_encoded(x))

#ifdef __AVX512BW__
/* bf16_encoded() of 16 numbers, in the upper halves. A NaN is told by comparing it with itself, and
 * what lies in the lower halves may stay. */
static inline __m512i bf16_rounded(__m512i x)
{
	const __m512i half = _mm512_set1_epi32(0x7fff), quiet = _mm512_set1_epi32(0x400000);
	const __mmask16 odd = _mm512_test_epi32_mask(x, _mm512_set1_epi32(0x10000));
	__m512i r = _mm512_add_epi32(x, half);
	__m512 f = _mm512_castsi512_ps(x);

	r = _mm512_mask_add_epi32(r, odd, r, _mm512_set1_epi32(1));
	return _mm512_mask_or_epi32(r, _mm512_cmp_ps_mask(f, f, _CMP_UNORD_Q), x, quiet);
}

/* bf16_encoded() of 32 numbers. */
static inline __m512i bf16_of_32(__m512i x, __m512i y)
{
	static const uint16_t upper[32] = { 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29,
					    31, 33, 35, 37, 39, 41, 43, 45, 47, 49, 51, 53, 55, 57,
					    59, 61, 63 };

	return _mm512_permutex2var_epi16(bf16_rounded(x), _mm512_loadu_si512(upper),
					 bf16_rounded(y));
}
#endif

KERNEL(bf16_encode)
{
#ifdef __AVX512BW__
	const uint32_t *pa = ra;
	uint16_t *d = dst;

	for (; n >= 32; n -= 32, pa += 32, d += 32)
		_mm512_storeu_si512(d, bf16_of_32(_mm512_loadu_si512(pa),
						  _mm512_loadu_si512(pa + 16)));
	dst = d;
	ra = pa;
#endif
	bf16_bits_encode(dst, ra, rb, rc, n, spread, aux);
}

KERNEL(f16_decode)
{
#ifdef __F16C__
	const uint16_t *pa = ra;
	float *d = dst;

	for (; n >= 8; n -= 8, pa += 8, d += 8)
		_mm256_storeu_ps(d, _mm256_cvtph_ps(_mm_loadu_si128((const void *)pa)));
	dst = d;
	ra = pa;
#endif
	f16_bits_decode(dst, ra, rb, rc, n, spread, aux);
}

KERNEL(f16_encode)
{
#ifdef __F16C__
	const float *pa = ra;
	uint16_t *d = dst;

	for (; n >= 8; n -= 8, pa += 8, d += 8)
		_mm_storeu_si128((void *)d, _mm256_cvtps_ph(_mm256_loadu_ps(pa),
							    _MM_FROUND_TO_NEAREST_INT));
	dst = d;
	ra = pa;
#endif
	f16_bits_encode(dst, ra, rb, rc, n, spread, aux);
}

/* ---- integers of less than a byte: a byte that is the value ---- */

UNARY(s4_wrap, int8_t, uint8_t, (int8_t)(x << 4) >> 4)
UNARY(s2_wrap, int8_t, uint8_t, (int8_t)(x << 6) >> 6)
UNARY(u4_wrap, uint8_t, uint8_t, x & 15)
UNARY(u2_wrap, uint8_t, uint8_t, x & 3)
UNARY(s4_clamp, int8_t, int8_t, x < -8 ? -8 : x > 7 ? 7 : x)
UNARY(s2_clamp, int8_t, int8_t, x < -2 ? -2 : x > 1 ? 1 : x)
UNARY(u4_clamp, uint8_t, uint8_t, x > 15 ? 15 : x)
UNARY(u2_clamp, uint8_t, uint8_t, x > 3 ? 3 : x)

/* ---- complex ---- */

#define COMPLEX(c, T) \
	struct c##_parts { T re, im; }; \
	UNARY(c##_to_pred, uint8_t, struct c##_parts, x.re != 0 || x.im != 0) \
	KERNEL(c##_real) \
	{ \
		const T *pa = ra; \
		T *d = dst; \
		UNUSED_ARGS; \
		for (size_t i = 0; i < n; i++) \
			d[i] = pa[2 * i]; \
	} \
	KERNEL(c##_join) \
	{ \
		const T *pa = ra; \
		T *d = dst; \
		UNUSED_ARGS; \
		for (size_t i = 0; i < n; i++) { \
			d[2 * i] = pa[i]; \
			d[2 * i + 1] = 0; \
		} \
	}
COMPLEX(c64, float)
COMPLEX(c128, double)

KERNEL(c64_to_c128)
{
	f32_to_f64(dst, ra, rb, rc, 2 * n, spread, aux);
}

KERNEL(c128_to_c64)
{
	f64_to_f32(dst, ra, rb, rc, 2 * n, spread, aux);
}

/* ---- chains ---- */

KERNEL(copy)
{
	UNUSED_ARGS;
	memmove(dst, ra, n * elem_bytes(aux & 0xff));
}

/* What a storage or complex type is read as, and how. */
struct leg { sim_uop_fn *fn; uint8_t elem; };

static const struct leg decode[ELEM_COUNT] = {
	[ELEM_F16] = { f16_decode, ELEM_F32 }, [ELEM_BF16] = { bf16_decode, ELEM_F32 },
	[ELEM_F8E5M2] = { f8e5m2_decode, ELEM_F32 },
	[ELEM_F8E4M3] = { f8e4m3_decode, ELEM_F32 },
	[ELEM_F8E3M4] = { f8e3m4_decode, ELEM_F32 },
	[ELEM_F8E4M3FN] = { f8e4m3fn_decode, ELEM_F32 },
	[ELEM_F8E4M3B11FNUZ] = { f8e4m3b11_decode, ELEM_F32 },
	[ELEM_F8E5M2FNUZ] = { f8e5m2fnuz_decode, ELEM_F32 },
	[ELEM_F8E4M3FNUZ] = { f8e4m3fnuz_decode, ELEM_F32 },
	[ELEM_F8E8M0FNU] = { e8m0_decode, ELEM_F32 },
	[ELEM_F4E2M1FN] = { f4e2m1_decode, ELEM_F32 },
	[ELEM_S4] = { s4_wrap, ELEM_S8 }, [ELEM_S2] = { s2_wrap, ELEM_S8 },
	[ELEM_U4] = { u4_wrap, ELEM_U8 }, [ELEM_U2] = { u2_wrap, ELEM_U8 },
	[ELEM_C64] = { c64_real, ELEM_F32 }, [ELEM_C128] = { c128_real, ELEM_F64 },
};

/* How such a type is made, and of what. */
static const struct leg encode[ELEM_COUNT] = {
	[ELEM_F16] = { f16_encode, ELEM_F32 }, [ELEM_BF16] = { bf16_encode, ELEM_F32 },
	[ELEM_F8E5M2] = { f8e5m2_encode, ELEM_F32 },
	[ELEM_F8E4M3] = { f8e4m3_encode, ELEM_F32 },
	[ELEM_F8E3M4] = { f8e3m4_encode, ELEM_F32 },
	[ELEM_F8E4M3FN] = { f8e4m3fn_encode, ELEM_F32 },
	[ELEM_F8E4M3B11FNUZ] = { f8e4m3b11_encode, ELEM_F32 },
	[ELEM_F8E5M2FNUZ] = { f8e5m2fnuz_encode, ELEM_F32 },
	[ELEM_F8E4M3FNUZ] = { f8e4m3fnuz_encode, ELEM_F32 },
	[ELEM_F8E8M0FNU] = { e8m0_encode, ELEM_F32 },
	[ELEM_F4E2M1FN] = { f4e2m1_encode, ELEM_F32 },
	[ELEM_S4] = { s4_wrap, ELEM_S8 }, [ELEM_S2] = { s2_wrap, ELEM_S8 },
	[ELEM_U4] = { u4_wrap, ELEM_U8 }, [ELEM_U2] = { u2_wrap, ELEM_U8 },
	[ELEM_C64] = { c64_join, ELEM_F32 }, [ELEM_C128] = { c128_join, ELEM_F64 },
};

/* Saturating instead, for floats. */
static sim_uop_fn *const clamped[ELEM_COUNT] = {
	[ELEM_S4] = s4_clamp, [ELEM_S2] = s2_clamp,
	[ELEM_U4] = u4_clamp, [ELEM_U2] = u2_clamp,
};

struct chain {
	unsigned n;
	struct leg leg[5];
};

static void add_leg(struct chain *c, sim_uop_fn *fn, unsigned elem)
{
	c->leg[c->n++] = (struct leg){ fn, (uint8_t)elem };
}

/* From computing type `from` to f32, rounded to odd unless it is exact. */
static void add_odd(struct chain *c, unsigned from)
{
	if (from == ELEM_F32)
		return;
	if (from != ELEM_F64 && elem_bits(from) <= 16) {
		add_leg(c, direct[from][ELEM_F32], ELEM_F32);
		return;
	}
	if (from == ELEM_S64 || from == ELEM_U64)
		add_leg(c, from == ELEM_S64 ? s64_odd : u64_odd, ELEM_F64);
	else if (from != ELEM_F64)
		add_leg(c, direct[from][ELEM_F64], ELEM_F64);
	add_leg(c, f64_odd, ELEM_F32);
}

static struct chain chain_of(unsigned from, unsigned to)
{
	struct chain c = { 0 };
	struct leg first = decode[from], last = encode[to];
	unsigned now = from;

	if (from == to) {
		add_leg(&c, copy, to);
		return c;
	}
	if (elem_class(from) == ELEM_CLASS_COMPLEX && to == ELEM_PRED) {
		add_leg(&c, from == ELEM_C64 ? c64_to_pred : c128_to_pred, to);
		return c;
	}
	if (elem_class(from) == ELEM_CLASS_COMPLEX &&
	    elem_class(to) == ELEM_CLASS_COMPLEX) {
		add_leg(&c, from == ELEM_C64 ? c64_to_c128 : c128_to_c64, to);
		return c;
	}
	/* 2^-127 is a number in f32 as long as nothing computes on it. */
	if (from == ELEM_F8E8M0FNU && last.elem != ELEM_F32 && to != ELEM_F32)
		first = (struct leg){ e8m0_decode_64, ELEM_F64 };
	if (first.fn) {
		add_leg(&c, first.fn, first.elem);
		now = first.elem;
	}
	if (to == ELEM_F8E8M0FNU && now == ELEM_F64) {
		add_leg(&c, e8m0_encode_64, to);
		return c;
	}
	if (!last.fn) {
		if (now != to)
			add_leg(&c, direct[now][to], to);
		return c;
	}
	if (elem_class(to) == ELEM_CLASS_FLOAT)
		add_odd(&c, now);
	else if (now != last.elem)
		add_leg(&c, direct[now][last.elem], last.elem);
	add_leg(&c, elem_class(now) == ELEM_CLASS_FLOAT && clamped[to] ?
		clamped[to] : last.fn, to);
	return c;
}

/* aux: from | to << 8 */
KERNEL(cvt_chain)
{
	enum { CHUNK = 256 };
	struct chain c = chain_of(aux & 0xff, aux >> 8 & 0xff);
	size_t in = elem_bytes(aux & 0xff), out = elem_bytes(aux >> 8 & 0xff);
	_Alignas(64) char room[2][CHUNK * 8];
	const char *src = ra;
	char *d = dst;

	(void)rb;
	(void)rc;
	while (n) {
		size_t m = n < CHUNK ? n : CHUNK;
		const void *from = src;

		for (unsigned k = 0; k < c.n; k++) {
			void *to = k + 1 == c.n ? (void *)d : room[k & 1];

			c.leg[k].fn(to, from, NULL, NULL, m, spread, aux);
			from = to;
		}
		src += m * in;
		d += m * out;
		n -= m;
	}
}

sim_uop_fn *PATH(sim_uop_cvt)(unsigned from, unsigned to)
{
	struct chain c = chain_of(from, to);

	return c.n == 1 ? c.leg[0].fn : cvt_chain;
}

#ifdef __AVX512BW__
/* ---- operations on narrow numbers ---- */

/* Elements at a time, and registers of them. */
#define AT_ONCE 64
#define REGISTERS (AT_ONCE / 16)
#define EACH_REGISTER _Pragma("GCC unroll 4") for (size_t j = 0; j < REGISTERS; j++)
#define INLINE static inline __attribute__((always_inline))

/* An argument of a kernel: where its next element lies, or what all of them are. */
struct mixed { const char *at; unsigned lies; bool is_one; __m512 one; };

INLINE __m512 widened(const struct mixed *m, size_t i, unsigned lies, __mmask16 few)
{
	const uint16_t *narrow = (const uint16_t *)(const void *)m->at + i;

	switch (lies) {
	case SIM_BF16:
		return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(
			_mm256_maskz_loadu_epi16(few, narrow)), 16));
	case SIM_F16:
		return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(few, narrow));
	default:
		return _mm512_maskz_loadu_ps(few, (const float *)(const void *)m->at + i);
	}
}

/* 32 numbers of bf16, each in the upper half of its lane. */
INLINE void load_bf16(__m512 *x, const uint16_t *from)
{
	static const uint16_t place[64] = {
		0, 0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8, 0, 9, 0, 10, 0, 11, 0, 12,
		0, 13, 0, 14, 0, 15, 0, 16, 0, 17, 0, 18, 0, 19, 0, 20, 0, 21, 0, 22, 0, 23, 0, 24,
		0, 25, 0, 26, 0, 27, 0, 28, 0, 29, 0, 30, 0, 31,
	};
	const __m512i all = _mm512_loadu_si512(from);

	for (size_t k = 0; k < 2; k++)
		x[k] = _mm512_castsi512_ps(_mm512_maskz_permutexvar_epi16(
			0xaaaaaaaa, _mm512_loadu_si512(place + 32 * k), all));
}

INLINE void load_mixed(__m512 *x, const struct mixed *m, size_t i)
{
	const uint16_t *narrow = (const uint16_t *)(const void *)m->at + i;
	const float *wide = (const float *)(const void *)m->at + i;

	if (m->is_one)
		EACH_REGISTER x[j] = m->one;
	else if (m->lies == SIM_BF16)
		_Pragma("GCC unroll 4")
		for (size_t j = 0; j < REGISTERS; j += 2)
			load_bf16(x + j, narrow + 16 * j);
	else if (m->lies == SIM_F16)
		EACH_REGISTER x[j] = widened(m, i + 16 * j, SIM_F16, 0xffff);
	else
		EACH_REGISTER x[j] = _mm512_loadu_ps(wide + 16 * j);
}

INLINE __m256i as_f16(__m512 x)
{
	return _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT);
}

/* What is stored, as it is in a register: of bf16 the upper halves count. */
INLINE __m512 rounded(__m512 x, unsigned lies)
{
	__m512i bits = _mm512_castps_si512(x);

	switch (lies) {
	case SIM_BF16:
		return _mm512_castsi512_ps(bf16_rounded(bits));
	case SIM_AGAIN_BF16:
		return _mm512_castsi512_ps(_mm512_and_si512(bf16_rounded(bits),
				_mm512_set1_epi32((int32_t)0xffff0000)));
	case SIM_AGAIN_F16:
		return _mm512_cvtph_ps(as_f16(x));
	default:
		return x;
	}
}

INLINE void store_some(void *to, __m512 x, unsigned lies, size_t i, __mmask16 few)
{
	x = rounded(x, lies);
	if (lies == SIM_BF16)
		_mm256_mask_storeu_epi16((uint16_t *)to + i, few, _mm512_cvtepi32_epi16(
			_mm512_srli_epi32(_mm512_castps_si512(x), 16)));
	else if (lies == SIM_F16)
		_mm256_mask_storeu_epi16((uint16_t *)to + i, few, as_f16(x));
	else
		_mm512_mask_storeu_ps((float *)to + i, few, x);
}

INLINE void store_mixed(void *to, const __m512 *x, unsigned lies, size_t i)
{
	uint16_t *narrow = (uint16_t *)to + i;
	float *wide = (float *)to + i;

	switch (lies) {
	case SIM_BF16:
		_Pragma("GCC unroll 4")
		for (size_t j = 0; j < REGISTERS; j += 2)
			_mm512_storeu_si512(narrow + 16 * j, bf16_of_32(
				_mm512_castps_si512(x[j]), _mm512_castps_si512(x[j + 1])));
		return;
	case SIM_F16:
		EACH_REGISTER _mm256_storeu_si256((void *)(narrow + 16 * j), as_f16(x[j]));
		return;
	case SIM_AGAIN_BF16:
		EACH_REGISTER _mm512_storeu_ps(wide + 16 * j, rounded(x[j], SIM_AGAIN_BF16));
		return;
	case SIM_AGAIN_F16:
		EACH_REGISTER _mm512_storeu_ps(wide + 16 * j, rounded(x[j], SIM_AGAIN_F16));
		return;
	default:
		EACH_REGISTER _mm512_storeu_ps(wide + 16 * j, x[j]);
	}
}

INLINE struct mixed mixed_of(const void *at, unsigned lies, bool is_one)
{
	struct mixed m = { at, lies, is_one, _mm512_setzero_ps() };

	if (is_one)
		m.one = _mm512_broadcastss_ps(_mm512_castps512_ps128(widened(&m, 0, lies, 1)));
	return m;
}

/* As min_f32() and max_f32(). */
INLINE __m512 extreme_of(__m512 x, __m512 y, bool least)
{
	const __mmask16 equal = _mm512_cmp_ps_mask(x, y, _CMP_EQ_OQ);
	__m512 r = least ? _mm512_min_ps(x, y) : _mm512_max_ps(x, y);

	r = least ? _mm512_mask_or_ps(r, equal, x, y) : _mm512_mask_and_ps(r, equal, x, y);
	return _mm512_mask_mov_ps(r, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), x);
}

/* Bytes of an element that lies so. */
INLINE size_t mixed_bytes(unsigned lies)
{
	return lies == SIM_BF16 || lies == SIM_F16 ? 2 : 4;
}

#define MIXED(name, OP) \
INLINE void name##_all(void *dst, const struct mixed *a, const struct mixed *b, unsigned lies, \
		       size_t n) \
{ \
	const bool same = a->at == b->at && a->lies == b->lies && !a->is_one && !b->is_one; \
	size_t i = 0; \
	for (; n - i >= AT_ONCE; i += AT_ONCE) { \
		__m512 x[REGISTERS], y[REGISTERS]; \
		load_mixed(x, a, i); \
		if (same) \
			EACH_REGISTER y[j] = x[j]; \
		else \
			load_mixed(y, b, i); \
		EACH_REGISTER x[j] = OP(x[j], y[j]); \
		store_mixed(dst, x, lies, i); \
	} \
	for (; i < n; i += 16) { \
		const __mmask16 few = (__mmask16)(n - i < 16 ? (1u << (n - i)) - 1 : 0xffff); \
		__m512 x = a->is_one ? a->one : widened(a, i, a->lies, few); \
		__m512 y = b->is_one ? b->one : widened(b, i, b->lies, few); \
		store_some(dst, OP(x, y), lies, i, few); \
	} \
} \
KERNEL(name) \
{ \
	const struct mixed a = mixed_of(ra, aux & 15, spread & UOP_SPREAD_A); \
	const struct mixed b = !rb ? a : mixed_of(rb, aux >> 4 & 15, spread & UOP_SPREAD_B); \
	(void)rc; \
	name##_all(dst, &a, &b, aux >> 8 & 15, n); \
} \
INLINE void name##_rows(char *dst, const char *ra, const char *rb, unsigned of_a, unsigned of_b, \
			unsigned lies, size_t n, size_t cols) \
{ \
	const __mmask16 few = (__mmask16)((1u << cols % 16) - 1); \
	while (n-- > 0) { \
		const struct mixed a = mixed_of(ra + n * cols * mixed_bytes(of_a), of_a, false); \
		const __m512 y = mixed_of(rb + n * mixed_bytes(of_b), of_b, true).one; \
		char *to = dst + n * cols * mixed_bytes(lies); \
		size_t i = 0; \
		for (; i + 16 <= cols; i += 16) \
			store_some(to, OP(widened(&a, i, of_a, 0xffff), y), lies, i, 0xffff); \
		if (few) \
			store_some(to, OP(widened(&a, i, of_a, few), y), lies, i, few); \
	} \
} \
/* From the last row to the first: dst may be where b's numbers are. Rows are short, so how their \
 * numbers lie is asked once for all of them. */ \
KERNEL(name##_by_row) \
{ \
	const size_t cols = aux >> SIM_MIXED_COLS; \
	const unsigned of_b = aux >> 4 & 15; \
	(void)rc, (void)spread; \
	switch (aux & 0xf0f) { \
	EACH_RESULT(name, SIM_WIDE) \
	EACH_RESULT(name, SIM_BF16) \
	EACH_RESULT(name, SIM_F16) \
	} \
}
#define WITH_RESULT(name, of_a, lies) case of_a | lies << 8: \
		name##_rows(dst, ra, rb, of_a, of_b, lies, n, cols); \
		return;
#define EACH_RESULT(name, of_a) \
	WITH_RESULT(name, of_a, SIM_WIDE) WITH_RESULT(name, of_a, SIM_BF16) \
	WITH_RESULT(name, of_a, SIM_F16) WITH_RESULT(name, of_a, SIM_AGAIN_BF16) \
	WITH_RESULT(name, of_a, SIM_AGAIN_F16)
#define LEAST_OF(x, y) extreme_of(x, y, true)
#define MOST_OF(x, y) extreme_of(x, y, false)
#define FIRST_OF(x, y) ((void)(y), (x))
MIXED(mixed_add, _mm512_add_ps)
MIXED(mixed_sub, _mm512_sub_ps)
MIXED(mixed_mul, _mm512_mul_ps)
MIXED(mixed_div, _mm512_div_ps)
MIXED(mixed_min, LEAST_OF)
MIXED(mixed_max, MOST_OF)
MIXED(mixed_one, FIRST_OF)

#define MIXED_TABLE(form) { \
	[UOP_ADD] = mixed_add##form, [UOP_SUB] = mixed_sub##form, [UOP_MUL] = mixed_mul##form, \
	[UOP_DIV] = mixed_div##form, [UOP_MIN] = mixed_min##form, [UOP_MAX] = mixed_max##form, \
	[UOP_CVT] = mixed_one##form, \
}
sim_uop_fn *const sim_uop_mixed_avx512[2][UOP_CODES] = { MIXED_TABLE(), MIXED_TABLE(_by_row) };
#endif
