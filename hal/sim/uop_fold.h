/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folds of rows, for one path: PATH(name) is defined by the file that includes
 * this one. A long row is folded into 128 lanes, four elements a lane at a time,
 * and these by halves: a tree whose shape depends on the length alone, so every path
 * gives the same bytes and sums stay accurate.
 */
#include <string.h>

#include "hal/sim/uop_loop.h"

#define LANES 128
/* Rows shorter than this go element by element, GROUP rows at a time. */
#define SHORT_ROW 64
#define GROUP 16

static inline uint32_t f32_bits(float x)
{
	uint32_t u;

	memcpy(&u, &x, sizeof(u));
	return u;
}

static inline uint64_t f64_bits(double x)
{
	uint64_t u;

	memcpy(&u, &x, sizeof(u));
	return u;
}

static inline float f32_from(uint32_t u)
{
	float x;

	memcpy(&x, &u, sizeof(x));
	return x;
}

static inline double f64_from(uint64_t u)
{
	double x;

	memcpy(&x, &u, sizeof(x));
	return x;
}

/* As UOP_MIN and UOP_MAX: NaN wins, -0 < +0. */
#define EXTREME(name, T, U, bits, from, LESS, MIX) \
static inline T name(T x, T y) \
{ \
	T same = from(bits(x) MIX bits(y)), r = x == y ? same : x + y; \
	return x LESS y ? x : y LESS x ? y : r; \
}
EXTREME(f32_least, float, uint32_t, f32_bits, f32_from, <, |)
EXTREME(f32_most, float, uint32_t, f32_bits, f32_from, >, &)
EXTREME(f64_least, double, uint64_t, f64_bits, f64_from, <, |)
EXTREME(f64_most, double, uint64_t, f64_bits, f64_from, >, &)

#define PLUS(x, y) ((x) + (y))
#define TIMES(x, y) ((x) * (y))
#define WIDE_TIMES(x, y) ((uint32_t)(x) * (y))
#define LEAST(x, y) ((x) < (y) ? (x) : (y))
#define MOST(x, y) ((x) > (y) ? (x) : (y))
#define BIT_AND(x, y) ((x) & (y))
#define BIT_OR(x, y) ((x) | (y))
#define BIT_XOR(x, y) ((x) ^ (y))

#define FOLD(name, T, OP) \
static void name##_lanes(T *acc, const T *s, size_t n) \
{ \
	memcpy(acc, s, LANES * sizeof(T)); \
	s += LANES; \
	n -= LANES; \
	for (; n >= 4 * LANES; n -= 4 * LANES, s += 4 * LANES) { \
		IVDEP \
		for (size_t j = 0; j < LANES; j++) { \
			T x = (T)OP(s[j], s[j + LANES]); \
			T y = (T)OP(s[j + 2 * LANES], s[j + 3 * LANES]); \
			T z = (T)OP(x, y); \
			acc[j] = (T)OP(acc[j], z); \
		} \
	} \
	for (; n >= LANES; n -= LANES, s += LANES) { \
		IVDEP \
		for (size_t j = 0; j < LANES; j++) \
			acc[j] = (T)OP(acc[j], s[j]); \
	} \
	IVDEP \
	for (size_t j = 0; j < n; j++) \
		acc[j] = (T)OP(acc[j], s[j]); \
} \
static void name##_short(T *d, const T *s, size_t rows, size_t cols) \
{ \
	T acc[GROUP]; \
	for (; rows >= GROUP; rows -= GROUP, s += GROUP * cols, d += GROUP) { \
		for (size_t r = 0; r < GROUP; r++) \
			acc[r] = s[r * cols]; \
		for (size_t j = 1; j < cols; j++) \
			for (size_t r = 0; r < GROUP; r++) \
				acc[r] = (T)OP(acc[r], s[r * cols + j]); \
		memcpy(d, acc, sizeof(acc)); \
	} \
	for (size_t r = 0; r < rows; r++, s += cols) { \
		T x = s[0]; \
		for (size_t j = 1; j < cols; j++) \
			x = (T)OP(x, s[j]); \
		d[r] = x; \
	} \
} \
static void name(void *dst, const void *src, size_t rows, size_t cols) \
{ \
	T *d = dst, acc[LANES]; \
	const T *s = src; \
	if (cols < SHORT_ROW) { \
		name##_short(dst, src, rows, cols); \
		return; \
	} \
	for (size_t r = 0; r < rows; r++, s += cols) { \
		size_t m = cols < LANES ? cols : LANES; \
		if (cols < LANES) \
			memcpy(acc, s, cols * sizeof(T)); \
		else \
			name##_lanes(acc, s, cols); \
		while (m > 1) { \
			size_t h = (m + 1) / 2; \
			IVDEP \
			for (size_t j = 0; j < m - h; j++) \
				acc[j] = (T)OP(acc[j], acc[j + h]); \
			m = h; \
		} \
		d[r] = acc[0]; \
	} \
}

#define INTEGERS(T, u, S, s, MULTIPLY) \
	FOLD(u##_radd, T, PLUS) \
	FOLD(u##_rmul, T, MULTIPLY) \
	FOLD(u##_rmin, T, LEAST) \
	FOLD(u##_rmax, T, MOST) \
	FOLD(s##_rmin, S, LEAST) \
	FOLD(s##_rmax, S, MOST) \
	FOLD(u##_rand, T, BIT_AND) \
	FOLD(u##_ror, T, BIT_OR) \
	FOLD(u##_rxor, T, BIT_XOR)
INTEGERS(uint8_t, u8, int8_t, s8, WIDE_TIMES)
INTEGERS(uint16_t, u16, int16_t, s16, WIDE_TIMES)
INTEGERS(uint32_t, u32, int32_t, s32, TIMES)
INTEGERS(uint64_t, u64, int64_t, s64, TIMES)
FOLD(f32_radd, float, PLUS)
FOLD(f32_rmul, float, TIMES)
FOLD(f32_rmin, float, f32_least)
FOLD(f32_rmax, float, f32_most)
FOLD(f64_radd, double, PLUS)
FOLD(f64_rmul, double, TIMES)
FOLD(f64_rmin, double, f64_least)
FOLD(f64_rmax, double, f64_most)

#define BOTH(op) \
	[ELEM_S8] = u8_##op, [ELEM_S16] = u16_##op, [ELEM_S32] = u32_##op, \
	[ELEM_S64] = u64_##op, [ELEM_U8] = u8_##op, [ELEM_U16] = u16_##op, \
	[ELEM_U32] = u32_##op, [ELEM_U64] = u64_##op
#define EACH(op) \
	[ELEM_S8] = s8_##op, [ELEM_S16] = s16_##op, [ELEM_S32] = s32_##op, \
	[ELEM_S64] = s64_##op, [ELEM_U8] = u8_##op, [ELEM_U16] = u16_##op, \
	[ELEM_U32] = u32_##op, [ELEM_U64] = u64_##op
#define FLOATS(op) [ELEM_F32] = f32_##op, [ELEM_F64] = f64_##op

const struct sim_fold_row PATH(sim_uop_fold)[UOP_CODES] = {
	[UOP_ADD] = {{ [ELEM_PRED] = u8_ror, BOTH(radd), FLOATS(radd) }},
	[UOP_MUL] = {{ [ELEM_PRED] = u8_rand, BOTH(rmul), FLOATS(rmul) }},
	[UOP_MIN] = {{ [ELEM_PRED] = u8_rand, EACH(rmin), FLOATS(rmin) }},
	[UOP_MAX] = {{ [ELEM_PRED] = u8_ror, EACH(rmax), FLOATS(rmax) }},
	[UOP_AND] = {{ [ELEM_PRED] = u8_rand, BOTH(rand) }},
	[UOP_OR] = {{ [ELEM_PRED] = u8_ror, BOTH(ror) }},
	[UOP_XOR] = {{ [ELEM_PRED] = u8_rxor, BOTH(rxor) }},
};
