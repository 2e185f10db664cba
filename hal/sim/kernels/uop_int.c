/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels on integers and PRED, for one path: see path.h. Where signed and unsigned
 * agree bit for bit, both use the unsigned kernel.
 */
#ifdef __AVX512CD__
#include <immintrin.h>
#endif
#include <limits.h>
#include <string.h>

#include "hal/sim/kernels/path.h"
#include "hal/sim/kernels/uop_loop.h"
#include "hal/sim/kernels/uop_math.h"

/* Bits by halves: vectorises everywhere, unlike the popcnt instruction. */
static inline uint64_t popc64(uint64_t x)
{
	x -= x >> 1 & 0x5555555555555555u;
	x = (x & 0x3333333333333333u) + (x >> 2 & 0x3333333333333333u);
	x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fu;
	x += x >> 8;
	x += x >> 16;
	x += x >> 32;
	return x & 0x7f;
}

static inline uint32_t popc32(uint32_t x)
{
	x -= x >> 1 & 0x55555555u;
	x = (x & 0x33333333u) + (x >> 2 & 0x33333333u);
	x = (x + (x >> 4)) & 0x0f0f0f0fu;
	x += x >> 8;
	x += x >> 16;
	return x & 0x3f;
}

static inline uint64_t clz64(uint64_t x)
{
	x |= x >> 1;
	x |= x >> 2;
	x |= x >> 4;
	x |= x >> 8;
	x |= x >> 16;
	x |= x >> 32;
	return popc64(~x);
}

static inline uint32_t clz32(uint32_t x)
{
	x |= x >> 1;
	x |= x >> 2;
	x |= x >> 4;
	x |= x >> 8;
	x |= x >> 16;
	return popc32(~x);
}

/*
 * Division through a float type that is wide enough: with |x|, |y| < 2^w a
 * quotient that is no integer is at least 2^-w (relative) from the next one, so a
 * significand of more than w bits never rounds up to it.
 */
#define SDIV(name, T, F, MIN) \
static inline T name##_quotient(T x, T y) \
{ \
	T safe = y == 0 || (x == MIN && y == -1) ? 1 : y; \
	T q = (T)((F)x / (F)safe); \
	return y == 0 ? -1 : q; \
} \
static inline T name##_remainder(T x, T y) \
{ \
	T safe = y == 0 || (x == MIN && y == -1) ? 1 : y; \
	T q = (T)((F)x / (F)safe); \
	return y == 0 ? x : (T)(x - q * safe); \
}
#define UDIV(name, T, F) \
static inline T name##_quotient(T x, T y) \
{ \
	T safe = y == 0 ? 1 : y; \
	T q = (T)((F)x / (F)safe); \
	return y == 0 ? (T)-1 : q; \
} \
static inline T name##_remainder(T x, T y) \
{ \
	T safe = y == 0 ? 1 : y; \
	T q = (T)((F)x / (F)safe); \
	return y == 0 ? x : (T)(x - q * safe); \
}
SDIV(s8, int8_t, float, INT8_MIN)
SDIV(s16, int16_t, float, INT16_MIN)
SDIV(s32, int32_t, double, INT32_MIN)
SDIV(s64, int64_t, int64_t, INT64_MIN)
UDIV(u8, uint8_t, float)
UDIV(u16, uint16_t, float)
UDIV(u32, uint32_t, double)
UDIV(u64, uint64_t, uint64_t)

/* x ** y modulo 2^64; negative exponents are the callers' concern. */
static inline uint64_t power_u64(uint64_t x, uint64_t y)
{
	uint64_t r = 1;

	for (; y; y >>= 1, x *= x)
		if (y & 1)
			r *= x;
	return r;
}

static inline uint64_t power_s64(int64_t x, int64_t y)
{
	if (y >= 0)
		return power_u64((uint64_t)x, (uint64_t)y);
	if (x == 1)
		return 1;
	if (x == -1)
		return y & 1 ? (uint64_t)-1 : 1;
	return 0;
}

/* W: a type in which products neither promote to int nor overflow. */
#define COMMON(u, U, s, S, W, BITS) \
	UNARY(u##_neg, U, U, (W)0 - x) \
	UNARY(s##_abs, U, S, x < 0 ? (W)0 - (W)x : (W)x) \
	UNARY(u##_abs, U, U, x) \
	UNARY(s##_sign, S, S, (x > 0) - (x < 0)) \
	UNARY(u##_sign, U, U, x > 0) \
	UNARY(u##_not, U, U, ~x) \
	BINARY(u##_add, U, U, (W)x + y) \
	BINARY(u##_sub, U, U, (W)x - y) \
	BINARY(u##_mul, U, U, (W)x * y) \
	BINARY(u##_div, U, U, u##_quotient(x, y)) \
	BINARY(s##_div, S, S, s##_quotient(x, y)) \
	BINARY(u##_rem, U, U, u##_remainder(x, y)) \
	BINARY(s##_rem, S, S, s##_remainder(x, y)) \
	BINARY(u##_min, U, U, x < y ? x : y) \
	BINARY(s##_min, S, S, x < y ? x : y) \
	BINARY(u##_max, U, U, x > y ? x : y) \
	BINARY(s##_max, S, S, x > y ? x : y) \
	BINARY(u##_pow, U, U, power_u64(x, y)) \
	BINARY(s##_pow, U, S, power_s64(x, y)) \
	BINARY(u##_and, U, U, x & y) \
	BINARY(u##_or, U, U, x | y) \
	BINARY(u##_xor, U, U, x ^ y) \
	BINARY(u##_shl, U, U, y < BITS ? (W)x << (y & (BITS - 1)) : 0) \
	BINARY(u##_shr, U, U, y < BITS ? x >> (y & (BITS - 1)) : 0) \
	BINARY(s##_sar, S, S, x >> ((U)y < BITS ? (U)y : BITS - 1)) \
	BINARY(u##_eq, uint8_t, U, x == y) \
	BINARY(u##_ne, uint8_t, U, x != y) \
	BINARY(u##_lt, uint8_t, U, x < y) \
	BINARY(s##_lt, uint8_t, S, x < y) \
	BINARY(u##_le, uint8_t, U, x <= y) \
	BINARY(s##_le, uint8_t, S, x <= y) \
	BINARY(u##_gt, uint8_t, U, x > y) \
	BINARY(s##_gt, uint8_t, S, x > y) \
	BINARY(u##_ge, uint8_t, U, x >= y) \
	BINARY(s##_ge, uint8_t, S, x >= y) \
	TERNARY(u##_clamp, U, U, U, (y < x ? x : y) < z ? (y < x ? x : y) : z) \
	TERNARY(s##_clamp, S, S, S, (y < x ? x : y) < z ? (y < x ? x : y) : z)

COMMON(u8, uint8_t, s8, int8_t, uint32_t, 8)
COMMON(u16, uint16_t, s16, int16_t, uint32_t, 16)
COMMON(u32, uint32_t, s32, int32_t, uint32_t, 32)
COMMON(u64, uint64_t, s64, int64_t, uint64_t, 64)

#define ROTATED(x) ((x) << aux | (x) >> (32 - aux))
UNARY(u32_rotate, uint32_t, uint32_t, ROTATED(x))
BINARY(u32_rotate_xor, uint32_t, uint32_t, ROTATED(x) ^ y)
sim_uop_fn *const PATH(sim_uop_rotate)[2] = { u32_rotate, u32_rotate_xor };

UNARY(u8_popc, uint8_t, uint8_t, popc32(x))
UNARY(u16_popc, uint16_t, uint16_t, popc32(x))
UNARY(u32_popc, uint32_t, uint32_t, popc32(x))
UNARY(u64_popc, uint64_t, uint64_t, popc64(x))
UNARY(u8_clz, uint8_t, uint8_t, clz32(x) - 24)
UNARY(u16_clz, uint16_t, uint16_t, clz32(x) - 16)
#ifdef __AVX512CD__
/* The compiler knows no loop of the instruction that counts. */
#define COUNTING(name, T, WIDTH, TAIL, COUNT) \
KERNEL(name) \
{ \
	T *d = dst; \
	const T *pa = ra; \
	UNUSED_ARGS; \
	for (; n >= (WIDTH); n -= (WIDTH), d += (WIDTH), pa += (WIDTH)) \
		_mm512_storeu_si512(d, COUNT(_mm512_loadu_si512(pa))); \
	for (size_t j = 0; j < n; j++) \
		d[j] = (T)TAIL(pa[j]); \
}
COUNTING(u32_clz, uint32_t, 16, clz32, _mm512_lzcnt_epi32)
COUNTING(u64_clz, uint64_t, 8, clz64, _mm512_lzcnt_epi64)
#else
UNARY(u32_clz, uint32_t, uint32_t, clz32(x))
UNARY(u64_clz, uint64_t, uint64_t, clz64(x))
#endif
UNARY(pred_not, uint8_t, uint8_t, x ^ 1)

struct wide { uint64_t part[2]; };

TERNARY(select_1, uint8_t, uint8_t, uint8_t, x ? y : z)
TERNARY(select_2, uint16_t, uint8_t, uint16_t, x ? y : z)
TERNARY(select_4, uint32_t, uint8_t, uint32_t, x ? y : z)
TERNARY(select_8, uint64_t, uint8_t, uint64_t, x ? y : z)

KERNEL(select_16)
{
	struct wide *d = dst;
	const uint8_t *x = ra;
	const struct wide *y = rb, *z = rc;
	struct wide y0 = *y, z0 = *z;
	uint8_t x0 = *x;

	(void)aux;
	for (size_t i = 0; i < n; i++) {
		struct wide yes = spread & UOP_SPREAD_B ? y0 : y[i];
		struct wide no = spread & UOP_SPREAD_C ? z0 : z[i];

		d[i] = (spread & UOP_SPREAD_A ? x0 : x[i]) ? yes : no;
	}
}

sim_uop_fn *const PATH(sim_uop_select)[17] = {
	[1] = select_1, [2] = select_2, [4] = select_4, [8] = select_8,
	[16] = select_16,
};

/* A comparison with a constant and the selection by it at once: the truths in between, bytes that
 * are packed and spread again, cost more than both. */
#define AS_F32(x) float_of((uint32_t)(x))
#define AS_S32(x) ((int32_t)(x))
#define CHOICE(name, TEST) TERNARY(name, uint32_t, uint32_t, uint32_t, (TEST) ? y : z)
#define CHOICES(type, AS) \
	CHOICE(choice_##type##_eq, AS(x) == AS(aux)) \
	CHOICE(choice_##type##_ne, AS(x) != AS(aux)) \
	CHOICE(choice_##type##_lt, AS(x) < AS(aux)) \
	CHOICE(choice_##type##_le, AS(x) <= AS(aux)) \
	CHOICE(choice_##type##_gt, AS(x) > AS(aux)) \
	CHOICE(choice_##type##_ge, AS(x) >= AS(aux))
CHOICES(f32, AS_F32)
CHOICES(s32, AS_S32)
CHOICE(choice_f32_nan, AS_F32(x) != AS_F32(x))

sim_uop_fn *const PATH(sim_uop_choice)[2][UOP_CHOICES] = {
#define ROW(type) choice_##type##_eq, choice_##type##_ne, choice_##type##_lt, \
		  choice_##type##_le, choice_##type##_gt, choice_##type##_ge
	{ ROW(f32), choice_f32_nan }, { ROW(s32) },
#undef ROW
};

/* Two values compared, and the selection of a constant by it, or of one out of two. */
#define MASK(name, TEST) \
	TERNARY(mask_##name, uint32_t, uint32_t, uint32_t, (TEST) ? z : (uint32_t)aux) \
	TERNARY(mask_##name##_turned, uint32_t, uint32_t, uint32_t, (TEST) ? (uint32_t)aux : z) \
	BINARY(flag_##name, uint32_t, uint32_t, (TEST) ? (uint32_t)(aux >> 32) : (uint32_t)aux)
#define MASKS(type, AS) \
	MASK(type##_eq, AS(x) == AS(y)) \
	MASK(type##_ne, AS(x) != AS(y)) \
	MASK(type##_lt, AS(x) < AS(y)) \
	MASK(type##_le, AS(x) <= AS(y)) \
	MASK(type##_gt, AS(x) > AS(y)) \
	MASK(type##_ge, AS(x) >= AS(y))
MASKS(f32, AS_F32)
MASKS(s32, AS_S32)

#define ROW(kind, type, turned) \
	{ kind##_##type##_eq##turned, kind##_##type##_ne##turned, kind##_##type##_lt##turned, \
	  kind##_##type##_le##turned, kind##_##type##_gt##turned, kind##_##type##_ge##turned }
sim_uop_fn *const PATH(sim_uop_mask)[2][2][UOP_COMPARISONS] = {
	{ ROW(mask, f32, ), ROW(mask, s32, ) },
	{ ROW(mask, f32, _turned), ROW(mask, s32, _turned) },
};
sim_uop_fn *const PATH(sim_uop_flag)[2][UOP_COMPARISONS] = {
	ROW(flag, f32, ), ROW(flag, s32, ),
};
#undef ROW

/* A little more than 1 / y, or less below 0: a number that y divides, times that, is no less than
 * their quotient when it is rounded, and one that y does not divide stays clear of the next whole
 * number, since both have 32 bits and a double has 53. */
static inline double inverse_of(double y)
{
	double inverse = 1 / y;
	uint64_t bits;

	memcpy(&bits, &inverse, sizeof(bits));
	bits++;
	memcpy(&inverse, &bits, sizeof(inverse));
	return inverse;
}

/* Division by the constant in aux, whose inverse is made once: it is the same for all x. */
#define QUOTIENT(T) ((T)((double)x * inverse_of((double)(T)aux)))
UNARY(s32_div_by, int32_t, int32_t, QUOTIENT(int32_t))
UNARY(s32_rem_by, int32_t, int32_t, x - QUOTIENT(int32_t) * (int32_t)aux)
UNARY(u32_div_by, uint32_t, uint32_t, QUOTIENT(uint32_t))
UNARY(u32_rem_by, uint32_t, uint32_t, x - QUOTIENT(uint32_t) * (uint32_t)aux)
sim_uop_fn *const PATH(sim_uop_by_constant)[2][2] = {
	{ s32_div_by, s32_rem_by }, { u32_div_by, u32_rem_by },
};

#define SIGNED_ONLY(op) \
	[ELEM_S8] = s8_##op, [ELEM_S16] = s16_##op, [ELEM_S32] = s32_##op, \
	[ELEM_S64] = s64_##op, [ELEM_U8] = s8_##op, [ELEM_U16] = s16_##op, \
	[ELEM_U32] = s32_##op, [ELEM_U64] = s64_##op

const struct sim_uop_row PATH(sim_uop_int)[UOP_CODES] = {
	[UOP_NEG] = {{ INT_ROW_BOTH(neg) }},
	[UOP_ABS] = {{ INT_ROW_EACH(abs) }},
	[UOP_SIGN] = {{ INT_ROW_EACH(sign) }},
	[UOP_NOT] = {{ [ELEM_PRED] = pred_not, INT_ROW_BOTH(not) }},
	[UOP_POPC] = {{ INT_ROW_BOTH(popc) }},
	[UOP_CLZ] = {{ INT_ROW_BOTH(clz) }},
	[UOP_ADD] = {{ [ELEM_PRED] = u8_or, INT_ROW_BOTH(add) }},
	[UOP_SUB] = {{ INT_ROW_BOTH(sub) }},
	[UOP_MUL] = {{ [ELEM_PRED] = u8_and, INT_ROW_BOTH(mul) }},
	[UOP_DIV] = {{ INT_ROW_EACH(div) }},
	[UOP_REM] = {{ INT_ROW_EACH(rem) }},
	[UOP_MIN] = {{ [ELEM_PRED] = u8_and, INT_ROW_EACH(min) }},
	[UOP_MAX] = {{ [ELEM_PRED] = u8_or, INT_ROW_EACH(max) }},
	[UOP_POW] = {{ INT_ROW_EACH(pow) }},
	[UOP_AND] = {{ [ELEM_PRED] = u8_and, INT_ROW_BOTH(and) }},
	[UOP_OR] = {{ [ELEM_PRED] = u8_or, INT_ROW_BOTH(or) }},
	[UOP_XOR] = {{ [ELEM_PRED] = u8_xor, INT_ROW_BOTH(xor) }},
	[UOP_SHL] = {{ INT_ROW_BOTH(shl) }},
	[UOP_SHR] = {{ INT_ROW_BOTH(shr) }},
	[UOP_SAR] = {{ SIGNED_ONLY(sar) }},
	[UOP_EQ] = {{ [ELEM_PRED] = u8_eq, INT_ROW_BOTH(eq) }},
	[UOP_NE] = {{ [ELEM_PRED] = u8_ne, INT_ROW_BOTH(ne) }},
	[UOP_LT] = {{ [ELEM_PRED] = u8_lt, INT_ROW_EACH(lt) }},
	[UOP_LE] = {{ [ELEM_PRED] = u8_le, INT_ROW_EACH(le) }},
	[UOP_GT] = {{ [ELEM_PRED] = u8_gt, INT_ROW_EACH(gt) }},
	[UOP_GE] = {{ [ELEM_PRED] = u8_ge, INT_ROW_EACH(ge) }},
	[UOP_CLAMP] = {{ [ELEM_PRED] = u8_clamp, INT_ROW_EACH(clamp) }},
};
