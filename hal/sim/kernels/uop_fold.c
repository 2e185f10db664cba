/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folds of rows, for one path: see path.h. A long row is folded into 128 lanes, in the
 * order of memory, and these by halves; shorter ones into fewer lanes, several rows at
 * once. The shape of the tree depends on the length alone, so every path gives the same
 * bytes.
 */
#include <math.h>
#include <string.h>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "hal/sim/kernels/path.h"
#include "hal/sim/kernels/uop_extreme.h"
#include "hal/sim/kernels/uop_loop.h"

#if defined(__AVX512F__)
#define BLOCK_BYTES 64
#elif defined(__AVX2__)
#define BLOCK_BYTES 32
#else
#define BLOCK_BYTES 16
#endif
#define LANES 128
/* A loop of few turns, for the vectoriser: not to be unrolled before. */
#define LANE_LOOP IVDEP _Pragma("GCC unroll 1")
/* Short rows are folded many at once; rows shorter than LONG_ROW by NARROW lanes. */
#define IS_SHORT(cols) ((cols) < 32 || ((cols) < 128 && (cols) % 8 == 0))
#define LONG_ROW 512
#define SOON 8192	/* bytes ahead that a long row fetches: no hardware foresees a next tile */
#define GROUP 16
#define NARROW 16
#define PAIRS 512
#define SLIDING_ROW 32	/* bytes of a row, at most; fewer where an element takes many steps */
#define SLIDING_BYTES 128	/* of elements from which it folds at a time */

#define PLUS(x, y) ((x) + (y))
#define TIMES(x, y) ((x) * (y))
#define WIDE_TIMES(x, y) ((uint32_t)(x) * (y))
#define LEAST(x, y) ((x) < (y) ? (x) : (y))
#define MOST(x, y) ((x) > (y) ? (x) : (y))
#define BIT_AND(x, y) ((x) & (y))
#define BIT_OR(x, y) ((x) | (y))
#define BIT_XOR(x, y) ((x) ^ (y))

/*
 * Rows of few bytes: from each element on, be it the first of a row or not, as many as a row has
 * are folded, whole registers at a time, and what began with a row is kept. Gives how many rows
 * are done.
 */
#define SLIDING_FOLD(name, T, OP) \
static size_t name(T *d, const T *s, size_t rows, size_t cols) \
{ \
	enum { FROM = SLIDING_BYTES / sizeof(T) }; \
	size_t group = (FROM - 1) / cols + 1, done = 0; \
	T acc[FROM]; \
	for (; (rows - done) * cols >= FROM + cols; done += group, s += group * cols) { \
		IVDEP \
		for (size_t i = 0; i < FROM; i++) { \
			T x = s[i], y = s[i + 1]; \
			acc[i] = (T)OP(x, y); \
		} \
		for (size_t j = 2; j < cols; j++) { \
			IVDEP \
			for (size_t i = 0; i < FROM; i++) \
				acc[i] = (T)OP(acc[i], s[i + j]); \
		} \
		for (size_t r = 0; r < group; r++) \
			*d++ = acc[r * cols]; \
	} \
	return done; \
}

/* Rows one element after the other, GROUP at once. */
#define SERIAL_FOLD(name, T, OP, sliding) \
SLIDING_FOLD(name##_sliding, T, OP) \
static void name(T *d, const T *s, size_t rows, size_t cols) \
{ \
	T acc[GROUP]; \
	if (cols > 1 && cols * sizeof(T) <= (sliding)) { \
		size_t done = name##_sliding(d, s, rows, cols); \
		d += done; \
		s += done * cols; \
		rows -= done; \
	} \
	for (; rows >= GROUP; rows -= GROUP, s += GROUP * cols, d += GROUP) { \
		for (size_t r = 0; r < GROUP; r++) \
			acc[r] = s[r * cols]; \
		for (size_t j = 1; j < cols; j++) { \
			for (size_t r = 0; r < GROUP; r++) \
				acc[r] = (T)OP(acc[r], s[r * cols + j]); \
		} \
		memcpy(d, acc, sizeof(acc)); \
	} \
	for (size_t r = 0; r < rows; r++, s += cols) { \
		T x = s[0]; \
		for (size_t j = 1; j < cols; j++) \
			x = (T)OP(x, s[j]); \
		d[r] = x; \
	} \
}

/* Neighbours are folded in pairs while rows have an even length, all rows at once:
 * pairs never reach into the next row. */
#define SHORT_FOLD(name, T, OP, sliding) \
SERIAL_FOLD(name##_serial, T, OP, sliding) \
static void name##_halve(T *d, const T *s, size_t n) \
{ \
	IVDEP \
	for (size_t i = 0; i < n; i++) { \
		T x = s[2 * i], y = s[2 * i + 1]; \
		d[i] = (T)OP(x, y); \
	} \
} \
static void name(T *d, const T *s, size_t rows, size_t cols) \
{ \
	T room[PAIRS]; \
	size_t group = 2 * PAIRS / cols; \
	if (cols & 1) { \
		name##_serial(d, s, rows, cols); \
		return; \
	} \
	for (size_t g; rows; rows -= g, s += g * cols, d += g) { \
		size_t left = cols / 2; \
		g = rows < group ? rows : group; \
		name##_halve(left == 1 ? d : room, s, g * left); \
		for (; !(left & 1); left /= 2) \
			name##_halve(left == 2 ? d : room, room, g * left / 2); \
		if (left > 1) \
			name##_serial(d, room, g, left); \
	} \
}

/* Long rows, one by one. */
#define LONG_FOLD(name, T, OP) \
static void name##_lanes(T *acc, const T *s, size_t n) \
{ \
	memcpy(acc, s, LANES * sizeof(T)); \
	s += LANES; \
	n -= LANES; \
	for (; n >= LANES; n -= LANES, s += LANES) { \
		for (size_t b = 0; b < LANES * sizeof(T); b += 64) \
			__builtin_prefetch((const char *)s + SOON + b); \
		IVDEP \
		for (size_t j = 0; j < LANES; j++) \
			acc[j] = (T)OP(acc[j], s[j]); \
	} \
	IVDEP \
	for (size_t j = 0; j < n; j++) \
		acc[j] = (T)OP(acc[j], s[j]); \
} \
static T name##_join(T *acc) \
{ \
	for (size_t h = LANES / 2; h; h /= 2) { \
		IVDEP \
		for (size_t j = 0; j < h; j++) \
			acc[j] = (T)OP(acc[j], acc[j + h]); \
	} \
	return acc[0]; \
} \
static void name(T *d, const T *s, size_t rows, size_t cols) \
{ \
	T acc[LANES]; \
	for (size_t r = 0; r < rows; r++, s += cols) { \
		name##_lanes(acc, s, cols); \
		d[r] = name##_join(acc); \
	} \
}

/* Integers: any order gives the same. */
#define INTEGER_FOLD(name, T, OP) \
SHORT_FOLD(name##_short, T, OP, SLIDING_ROW) \
LONG_FOLD(name##_long, T, OP) \
static void name(void *dst, const void *src, size_t rows, size_t cols) \
{ \
	(cols < LANES ? name##_short : name##_long)(dst, src, rows, cols); \
}

#define FOLD(name, T, OP) \
SHORT_FOLD(name##_short, T, OP, SLIDING_ROW) \
LONG_FOLD(name##_long, T, OP) \
static void name##_narrow(T *d, const T *s, size_t rows, size_t cols) \
{ \
	T part[GROUP * NARROW], acc[NARROW]; \
	for (size_t g; rows; rows -= g, d += g) { \
		g = rows < GROUP ? rows : GROUP; \
		for (size_t r = 0; r < g; r++, s += cols) { \
			size_t n = cols - NARROW; \
			const T *p = s + NARROW; \
			memcpy(acc, s, sizeof(acc)); \
			for (; n >= NARROW; n -= NARROW, p += NARROW) { \
				IVDEP \
				for (size_t j = 0; j < NARROW; j++) \
					acc[j] = (T)OP(acc[j], p[j]); \
			} \
			for (size_t j = 0; j < n; j++) \
				acc[j] = (T)OP(acc[j], p[j]); \
			memcpy(part + r * NARROW, acc, sizeof(acc)); \
		} \
		name##_short(d, part, g, NARROW); \
	} \
} \
static void name(void *dst, const void *src, size_t rows, size_t cols) \
{ \
	(IS_SHORT(cols) ? name##_short : cols < LONG_ROW ? name##_narrow : name##_long) \
		(dst, src, rows, cols); \
}

/*
 * Extremes of floats: the CPU's own comparison for speed, with NaN counted beside it,
 * and a second look at a row whose extreme is zero, for the sign. L: lanes.
 */
#define EXTREME_ROW(name, L, T, U, I, bits, LESS, SIGNED) \
static T name(const T *s, size_t n) \
{ \
	T acc[L]; \
	I nans[L], any = 0; \
	U sign = (U)1 << (sizeof(U) * 8 - 1), want = SIGNED ? sign : 0; \
	const T *p = s + 2 * L, *end = s + n; \
	size_t left = n % (2 * L), some = left < L ? left : L; \
	LANE_LOOP \
	for (size_t j = 0; j < L; j++) { \
		acc[j] = s[j] LESS s[j + L] ? s[j] : s[j + L]; \
		nans[j] = __builtin_isunordered(s[j], s[j + L]); \
	} \
	for (; end - p >= 2 * L; p += 2 * L) { \
		LANE_LOOP \
		for (size_t j = 0; j < L; j++) { \
			T x = p[j], y = p[j + L], m = x LESS y ? x : y; \
			acc[j] = m LESS acc[j] ? m : acc[j]; \
			nans[j] += __builtin_isunordered(x, y); \
		} \
	} \
	for (size_t j = 0; j < some; j++) { \
		acc[j] = p[j] LESS acc[j] ? p[j] : acc[j]; \
		nans[j] += p[j] != p[j]; \
	} \
	for (size_t j = L; j < left; j++) { \
		acc[j - L] = p[j] LESS acc[j - L] ? p[j] : acc[j - L]; \
		nans[j - L] += p[j] != p[j]; \
	} \
	LANE_LOOP \
	for (size_t j = 0; j < L; j++) \
		any |= nans[j]; \
	if (any) \
		return (T)NAN; \
	for (size_t h = L / 2; h; h /= 2) { \
		LANE_LOOP \
		for (size_t j = 0; j < h; j++) \
			acc[j] = acc[j + h] LESS acc[j] ? acc[j + h] : acc[j]; \
	} \
	for (size_t j = 0; acc[0] == 0 && j < n; j++) \
		any |= s[j] == 0 && (bits(s[j]) & sign) == want; \
	return acc[0] == 0 ? (T)(any == SIGNED ? -0.0 : 0.0) : acc[0]; \
}
#define FLOAT_FOLD(name, T, U, I, bits, LESS, op, SIGNED) \
SHORT_FOLD(name##_short, T, op, 3 * sizeof(T)) \
EXTREME_ROW(name##_narrow, NARROW, T, U, I, bits, LESS, SIGNED) \
EXTREME_ROW(name##_long, LANES / 2, T, U, I, bits, LESS, SIGNED) \
static void name(void *dst, const void *src, size_t rows, size_t cols) \
{ \
	const T *s = src; \
	T *d = dst; \
	if (IS_SHORT(cols)) { \
		name##_short(dst, src, rows, cols); \
		return; \
	} \
	for (size_t r = 0; r < rows; r++, s += cols) \
		d[r] = (cols < LONG_ROW ? name##_narrow : name##_long)(s, cols); \
}

/*
 * Rows of few elements of 4 bytes: each into 16 lanes in registers, its element j into lane j % 16,
 * and as many rows as a register has lanes at once. In each step of ROW_TREE two rows' registers
 * become one that holds both, of half as many partial results each, which are of neighbours: at
 * the end it has a row's result in each lane. A path of less than 16 lanes a register takes
 * `ABREAST` of them after the other, so that the order is the same on each.
 */
#define ABREAST (BLOCK_BYTES / 4)
/* Columns that such rows have: up to 4, and half a register of them, are sooner folded in pairs. */
#define IS_FEW(cols) ((cols) > 4 && (cols) < LONG_ROW && !(ABREAST == 16 && (cols) == 8))
#define EACH_LANE _Pragma("GCC unroll 16")
#define INLINE static inline __attribute__((always_inline))
typedef uint32_t words __attribute__((vector_size(BLOCK_BYTES)));
typedef int32_t wholes __attribute__((vector_size(BLOCK_BYTES)));
typedef float floats __attribute__((vector_size(BLOCK_BYTES)));
typedef uint32_t words_apart __attribute__((vector_size(BLOCK_BYTES), aligned(4), may_alias));
#if BLOCK_BYTES == 64
#define PLACES { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 }
#elif BLOCK_BYTES == 32
#define PLACES { 0, 1, 2, 3, 4, 5, 6, 7 }
#else
#define PLACES { 0, 1, 2, 3 }
#endif

INLINE words all_words(const void *p)
{
	return *(const words_apart *)p;
}

/* The first n at p, 0 < n < ABREAST, and what is in `none` for the others. */
INLINE words some_words(const void *p, size_t n, words none)
{
#if defined(__AVX512F__)
	return (words)_mm512_mask_loadu_epi32((__m512i)none, (__mmask16)((1u << n) - 1), p);
#elif defined(__AVX2__)
	words is = (words)((wholes)PLACES < (int32_t)n);
	return ((words)_mm256_maskload_epi32(p, (__m256i)is) & is) | (none & ~is);
#else
	for (size_t j = 0; j < ABREAST - 1; j++)
		none[j] = j < n ? ((const uint32_t *)p)[j] : none[j];
	return none;
#endif
}

/* Lane j of the results: of lanes j and j ^ s of a, or of b if j has that bit. */
#define HALF_ROWS(OP, V, a, b, s) __extension__ ({ \
	const words at = PLACES, bit = at & (s); \
	V own = __builtin_shuffle(a, b, at + bit * (ABREAST / (s))); \
	V other = __builtin_shuffle(a, b, (at ^ (s)) + bit * (ABREAST / (s))); \
	OP(own, other); \
})
#define ROW_TREE(OP, V, v) do { \
	EACH_LANE for (size_t i = 0; 2 * (i + 1) <= ABREAST; i++) \
		v[i] = HALF_ROWS(OP, V, v[2 * i], v[2 * i + 1], 1); \
	EACH_LANE for (size_t i = 0; 4 * (i + 1) <= ABREAST; i++) \
		v[i] = HALF_ROWS(OP, V, v[2 * i], v[2 * i + 1], 2); \
	EACH_LANE for (size_t i = 0; 8 * (i + 1) <= ABREAST; i++) \
		v[i] = HALF_ROWS(OP, V, v[2 * i], v[2 * i + 1], 4); \
	EACH_LANE for (size_t i = 0; 16 * (i + 1) <= ABREAST; i++) \
		v[i] = HALF_ROWS(OP, V, v[2 * i], v[2 * i + 1], 8); \
} while (0)

/* Rows of a, or of its products with b's: FROM makes values of both rows' words. b_row: 0 where
 * there is no b, or one row. none: what of a and b counts for nothing. */
#define FEW_FOLD(name, V, OP, FROM, TO, NONE_A, NONE_B) \
INLINE V name##_row(const char *a, const char *b, size_t lane, size_t cols) \
{ \
	const words none_a = (words){ 0 } + (NONE_A), none_b = (words){ 0 } + (NONE_B); \
	V acc; \
	(void)none_b; \
	if (cols < lane + ABREAST) \
		return FROM(some_words(a, cols - lane, none_a), \
			    some_words(b, cols - lane, none_b)); \
	acc = FROM(all_words(a), all_words(b)); \
	for (cols -= lane; cols >= NARROW + ABREAST; cols -= NARROW) { \
		a += NARROW * 4; \
		b += NARROW * 4; \
		acc = OP(acc, FROM(all_words(a), all_words(b))); \
	} \
	if (cols > NARROW) { \
		V rest = FROM(some_words(a + NARROW * 4, cols - NARROW, none_a), \
			      some_words(b + NARROW * 4, cols - NARROW, none_b)); \
		acc = OP(acc, rest); \
	} \
	return acc; \
} \
/* `rows` of ABREAST rows: the tree has the first one's for those that there are not */ \
INLINE V name##_some(const char *a, int64_t a_row, const char *b, int64_t b_row, size_t rows, \
		     size_t cols) \
{ \
	V part[NARROW / ABREAST]; \
	EACH_LANE for (size_t k = 0; k < NARROW / ABREAST; k++) { \
		V v[ABREAST]; \
		part[k] = FROM((words){ 0 } + (NONE_A), (words){ 0 } + (NONE_B)); \
		if (k && k * ABREAST >= cols) \
			continue; \
		EACH_LANE for (size_t r = 0; r < ABREAST; r++) { \
			int64_t i = (int64_t)r; \
			v[r] = r >= rows ? v[0] : \
			       name##_row(a + i * a_row + k * BLOCK_BYTES, \
					  b + i * b_row + k * BLOCK_BYTES, k * ABREAST, cols); \
		} \
		ROW_TREE(OP, V, v); \
		part[k] = v[0]; \
	} \
	EACH_LANE for (size_t n = NARROW / ABREAST; n > 1; n /= 2) \
		EACH_LANE for (size_t k = 0; k < n / 2; k++) \
			part[k] = OP(part[2 * k], part[2 * k + 1]); \
	return TO(part[0]); \
} \
static void name(void *dst, const void *a, int64_t a_row, const void *b, int64_t b_row, \
		 size_t rows, size_t cols) \
{ \
	const char *x = a, *y = b; \
	char *d = dst; \
	for (; rows >= ABREAST; rows -= ABREAST, d += BLOCK_BYTES) { \
		V all = name##_some(x, a_row, y, b_row, ABREAST, cols); \
		memcpy(d, &all, BLOCK_BYTES); \
		x += ABREAST * a_row; \
		y += ABREAST * b_row; \
	} \
	if (rows) { \
		V all = name##_some(x, a_row, y, b_row, rows, cols); \
		memcpy(d, &all, rows * 4); \
	} \
}
#define FIRST_FLOATS(a, b) ((floats)(a))
#define PRODUCTS(a, b) ((floats)(a) * (floats)(b))
#define MINUS_ZERO 0x80000000u
#define AS_IT_IS(x) (x)
FEW_FOLD(few_f32_sums, floats, PLUS, FIRST_FLOATS, AS_IT_IS, MINUS_ZERO, 0u)
FEW_FOLD(few_products, floats, PLUS, PRODUCTS, AS_IT_IS, MINUS_ZERO, 0u)

/*
 * Extremes, of keys: whole numbers in the order of what they stand for. Of floats -0 comes before
 * +0, and NaNs of either sign are at the end where they win, beyond the infinity there. A
 * subnormal result becomes zero: some paths look for the extremes of long rows among floats.
 */
#define SIGN_BIT 0x80000000u
#define MANTISSA 0x7fffffu
INLINE words least_words(words x, words y)
{
#if defined(__AVX512F__)
	return (words)_mm512_min_epi32((__m512i)x, (__m512i)y);
#elif defined(__AVX2__)
	return (words)_mm256_min_epi32((__m256i)x, (__m256i)y);
#else
	words is = (words)((wholes)x < (wholes)y);
	return (x & is) | (y & ~is);
#endif
}
INLINE words most_words(words x, words y)
{
#if defined(__AVX512F__)
	return (words)_mm512_max_epi32((__m512i)x, (__m512i)y);
#elif defined(__AVX2__)
	return (words)_mm256_max_epi32((__m256i)x, (__m256i)y);
#else
	words is = (words)((wholes)x > (wholes)y);
	return (x & is) | (y & ~is);
#endif
}
/* Its own inverse. */
INLINE words in_order(words x)
{
	return x ^ ((words)((wholes)x >> 31) & ~SIGN_BIT);
}
/* One NaN for all, and zero for subnormal numbers. */
INLINE words flushed(words x)
{
	words is = (words)((wholes)(x & ~SIGN_BIT) > 0x7f800000);
	words normal = (words)((wholes)(x & ~SIGN_BIT) > (int32_t)MANTISSA);
	return (x & ~is & (normal | SIGN_BIT)) | (is & 0x7fc00000u);
}
#define LOW_KEY(a, b) (in_order(a) + MANTISSA)
#define OF_LOW_KEY(k) flushed(in_order((k) - MANTISSA))
#define HIGH_KEY(a, b) (in_order(a) - MANTISSA)
#define OF_HIGH_KEY(k) flushed(in_order((k) + MANTISSA))
#define WORDS(a, b) (a)
#define UNSIGNED_KEY(a, b) ((a) ^ SIGN_BIT)
#define OF_UNSIGNED_KEY(k) ((k) ^ SIGN_BIT)
FEW_FOLD(few_f32_least, words, least_words, LOW_KEY, OF_LOW_KEY, 0x7f800000u, 0u)
FEW_FOLD(few_f32_most, words, most_words, HIGH_KEY, OF_HIGH_KEY, 0xff800000u, 0u)
FEW_FOLD(few_s32_least, words, least_words, WORDS, AS_IT_IS, 0x7fffffffu, 0u)
FEW_FOLD(few_s32_most, words, most_words, WORDS, AS_IT_IS, 0x80000000u, 0u)
FEW_FOLD(few_u32_least, words, least_words, UNSIGNED_KEY, OF_UNSIGNED_KEY, ~0u, 0u)
FEW_FOLD(few_u32_most, words, most_words, UNSIGNED_KEY, OF_UNSIGNED_KEY, 0u, 0u)
FEW_FOLD(few_u32_sums, words, PLUS, WORDS, AS_IT_IS, 0u, 0u)

/* By `few` if so, by `any` else. */
#define FEW_OR_ANY(name, few, any, is_few) \
static void name(void *dst, const void *src, size_t rows, size_t cols) \
{ \
	int64_t row = (int64_t)cols * 4; \
	if (is_few) \
		few(dst, src, row, src, row, rows, cols); \
	else \
		any(dst, src, rows, cols); \
}
/* In pairs, another NaN or a subnormal number may be kept, so each path does that with the same
 * rows: of up to 4. From LONG_EXTREME on, the CPU's own comparison of floats gives what one of
 * whole numbers does and is quicker than that, which not all have. */
#define LONG_EXTREME (BLOCK_BYTES > 16 ? LONG_ROW : 100)
#define IS_FEW_FLOATS(cols) ((cols) > 4 && (cols) < LONG_ROW && \
			     ((cols) < LONG_EXTREME || IS_SHORT(cols)))

#define INTEGERS(T, u, S, s, MULTIPLY) \
	INTEGER_FOLD(u##_radd, T, PLUS) \
	INTEGER_FOLD(u##_rmul, T, MULTIPLY) \
	INTEGER_FOLD(u##_rmin, T, LEAST) \
	INTEGER_FOLD(u##_rmax, T, MOST) \
	INTEGER_FOLD(s##_rmin, S, LEAST) \
	INTEGER_FOLD(s##_rmax, S, MOST) \
	INTEGER_FOLD(u##_rand, T, BIT_AND) \
	INTEGER_FOLD(u##_ror, T, BIT_OR) \
	INTEGER_FOLD(u##_rxor, T, BIT_XOR)
INTEGERS(uint8_t, u8, int8_t, s8, WIDE_TIMES)
INTEGERS(uint16_t, u16, int16_t, s16, WIDE_TIMES)
INTEGERS(uint32_t, any_u32, int32_t, any_s32, TIMES)
#define u32_rmul any_u32_rmul
#define u32_rand any_u32_rand
#define u32_ror any_u32_ror
#define u32_rxor any_u32_rxor
INTEGERS(uint64_t, u64, int64_t, s64, TIMES)
FOLD(f32_radd_any, float, PLUS)
FOLD(f32_rmul, float, TIMES)
FLOAT_FOLD(f32_rmin_any, float, uint32_t, int32_t, bits_of, <, min_f32, 1)
FLOAT_FOLD(f32_rmax_any, float, uint32_t, int32_t, bits_of, >, max_f32, 0)
FOLD(f64_radd, double, PLUS)
FOLD(f64_rmul, double, TIMES)
FLOAT_FOLD(f64_rmin, double, uint64_t, int64_t, bits_of64, <, min_f64, 1)
FLOAT_FOLD(f64_rmax, double, uint64_t, int64_t, bits_of64, >, max_f64, 0)
FEW_OR_ANY(u32_radd, few_u32_sums, any_u32_radd, IS_FEW(cols))
FEW_OR_ANY(u32_rmin, few_u32_least, any_u32_rmin, IS_FEW(cols))
FEW_OR_ANY(u32_rmax, few_u32_most, any_u32_rmax, IS_FEW(cols))
FEW_OR_ANY(s32_rmin, few_s32_least, any_s32_rmin, IS_FEW(cols))
FEW_OR_ANY(s32_rmax, few_s32_most, any_s32_rmax, IS_FEW(cols))
FEW_OR_ANY(f32_radd, few_f32_sums, f32_radd_any, IS_FEW(cols))
FEW_OR_ANY(f32_rmin, few_f32_least, f32_rmin_any, IS_FEW_FLOATS(cols))
FEW_OR_ANY(f32_rmax, few_f32_most, f32_rmax_any, IS_FEW_FLOATS(cols))

/*
 * Sums of products, as those of a matrix by a vector: each product is rounded and then added,
 * without a place in memory of its own. Long rows go as those above do.
 */
#define PRODUCT_FOLD(T) \
typedef T T##_block __attribute__((vector_size(BLOCK_BYTES), aligned(sizeof(T)))); \
static void T##_products(T *d, const T *a, const T *b, size_t n) \
{ \
	IVDEP \
	for (size_t j = 0; j < n; j++) \
		d[j] = a[j] * b[j]; \
} \
static void T##_sums_short(T *d, const char *a, int64_t a_row, const char *b, int64_t b_row, \
			   size_t rows, size_t cols) \
{ \
	T room[2 * PAIRS], again[2 * PAIRS]; \
	size_t group = 2 * PAIRS / cols; \
	int64_t row = (int64_t)(cols * sizeof(T)); \
	/* many rows at once, for which a lone one of b is repeated */ \
	bool dense = a_row == row && (!b_row || b_row == row); \
	for (size_t r = 0; dense && !b_row && r < group && r < rows; r++) \
		memcpy(again + r * cols, b, cols * sizeof(T)); \
	for (size_t g; rows; rows -= g, d += g) { \
		g = rows < group ? rows : group; \
		if (dense) { \
			T##_products(room, (const void *)a, b_row ? (const T *)(const void *)b : \
				     again, g * cols); \
			a += (int64_t)g * a_row; \
			b += (int64_t)g * b_row; \
		} \
		for (size_t r = 0; !dense && r < g; r++, a += a_row, b += b_row) \
			T##_products(room + r * cols, (const void *)a, (const void *)b, cols); \
		T##_short(d, room, g, cols); \
	} \
} \
static void T##_sums_narrow(T *d, const char *a, int64_t a_row, const char *b, int64_t b_row, \
			    size_t rows, size_t cols) \
{ \
	T part[GROUP * NARROW], acc[NARROW]; \
	for (size_t g; rows; rows -= g, d += g) { \
		g = rows < GROUP ? rows : GROUP; \
		for (size_t r = 0; r < g; r++, a += a_row, b += b_row) { \
			const T *x = (const void *)a, *y = (const void *)b, *end = x + cols; \
			T##_products(acc, x, y, NARROW); \
			x += NARROW; \
			y += NARROW; \
			for (; end - x >= NARROW; x += NARROW, y += NARROW) { \
				IVDEP \
				for (size_t j = 0; j < NARROW; j++) \
					acc[j] = acc[j] + x[j] * y[j]; \
			} \
			for (size_t j = 0; x + j < end; j++) \
				acc[j] = acc[j] + x[j] * y[j]; \
			memcpy(part + r * NARROW, acc, sizeof(acc)); \
		} \
		T##_short(d, part, g, NARROW); \
	} \
} \
static void T##_sums_long(T *d, const char *a, int64_t a_row, const char *b, int64_t b_row, \
			  size_t rows, size_t cols) \
{ \
	enum { WIDTH = BLOCK_BYTES / sizeof(T), BLOCKS = LANES / WIDTH }; \
	for (size_t r = 0; r < rows; r++, a += a_row, b += b_row) { \
		const T##_block *x = (const void *)a, *y = (const void *)b; \
		T##_block acc[BLOCKS]; \
		T lane[LANES]; \
		size_t n = cols - LANES; \
		_Pragma("GCC unroll 16") \
		for (size_t k = 0; k < BLOCKS; k++) \
			acc[k] = x[k] * y[k]; \
		for (; n >= LANES; n -= LANES) { \
			x += BLOCKS; \
			y += BLOCKS; \
			_Pragma("GCC unroll 16") \
			for (size_t k = 0; k < BLOCKS; k++) \
				acc[k] = acc[k] + x[k] * y[k]; \
		} \
		memcpy(lane, acc, sizeof(lane)); \
		for (size_t j = 0; j < n; j++) \
			lane[j] += ((const T *)(x + BLOCKS))[j] * ((const T *)(y + BLOCKS))[j]; \
		d[r] = T##_join(lane); \
	} \
} \
static void T##_sums(void *dst, const void *a, int64_t a_row, const void *b, int64_t b_row, \
		     size_t rows, size_t cols) \
{ \
	(cols < 2 * NARROW ? T##_sums_short : cols < LONG_ROW ? T##_sums_narrow : T##_sums_long) \
		(dst, a, a_row, b, b_row, rows, cols); \
}
#define float_short f32_radd_any_short
#define float_join f32_radd_any_long_join
#define double_short f64_radd_short
#define double_join f64_radd_long_join
PRODUCT_FOLD(float)
PRODUCT_FOLD(double)
static void float_product_sums(void *dst, const void *a, int64_t a_row, const void *b,
			       int64_t b_row, size_t rows, size_t cols)
{
	(IS_FEW(cols) ? few_products : float_sums)
		(dst, a, a_row, b, b_row, rows, cols);
}

/*
 * Sums of bf16 along rows, as f32. Two neighbours are fetched as one word, of which each makes an
 * f32 in one step: the first half of the lanes are of even columns, the others of odd ones.
 */
typedef uint32_t uint32_t_block __attribute__((vector_size(BLOCK_BYTES), aligned(2)));
#define WIDENED(x) float_of((uint32_t)(x) << 16)
#define BF16_FEW (2 * LANES)	/* columns of a row that is widened first */
#define EVEN(v) ((float_block)((v) << 16))
#define ODD(v) ((float_block)((v) & 0xffff0000u))
static void bf16_sums_few(float *d, const char *a, int64_t a_row, size_t rows, size_t cols)
{
	float room[2 * PAIRS];
	size_t group = 2 * PAIRS / cols;
	for (size_t g; rows; rows -= g, d += g) {
		g = rows < group ? rows : group;
		for (size_t r = 0; r < g; r++, a += a_row) {
			const uint16_t *p = (const void *)a;
			IVDEP
			for (size_t j = 0; j < cols; j++)
				room[r * cols + j] = WIDENED(p[j]);
		}
		f32_radd(d, room, g, cols);
	}
}
static float bf16_sum(const char *a, size_t cols)
{
	enum { HALF = LANES / 2 * sizeof(float) / BLOCK_BYTES };
	enum { WORDS = BLOCK_BYTES / sizeof(uint16_t) };	/* columns of a register */
	const uint32_t_block *p = (const void *)a;
	float_block acc[2 * HALF];
	float lane[LANES];
	const uint16_t *rest;
	_Pragma("GCC unroll 16")
	for (size_t k = 0; k < HALF; k++) {
		acc[k] = EVEN(p[k]);
		acc[HALF + k] = ODD(p[k]);
	}
	for (cols -= LANES; cols >= LANES; cols -= LANES) {
		p += HALF;
		_Pragma("GCC unroll 16")
		for (size_t k = 0; k < HALF; k++) {
			acc[k] = acc[k] + EVEN(p[k]);
			acc[HALF + k] = acc[HALF + k] + ODD(p[k]);
		}
	}
	/* whole registers of what is left */
	p += HALF;
	_Pragma("GCC unroll 16")
	for (size_t k = 0; k < HALF; k++) {
		if (cols < (k + 1) * WORDS)
			continue;
		acc[k] = acc[k] + EVEN(p[k]);
		acc[HALF + k] = acc[HALF + k] + ODD(p[k]);
	}
	memcpy(lane, acc, sizeof(lane));
	rest = (const void *)p;
	for (size_t j = cols / WORDS * WORDS; j < cols; j++)
		lane[(j & 1) * (LANES / 2) + j / 2] += WIDENED(rest[j]);
	return f32_radd_any_long_join(lane);
}
static void bf16_sums(void *dst, const void *a, int64_t a_row, const void *b, int64_t b_row,
		      size_t rows, size_t cols)
{
	const char *row = a;
	float *d = dst;
	(void)b, (void)b_row;
	if (cols < BF16_FEW)
		bf16_sums_few(d, row, a_row, rows, cols);
	for (size_t r = 0; cols >= BF16_FEW && r < rows; r++, row += a_row)
		d[r] = bf16_sum(row, cols);
}

sim_product_fold_fn *const PATH(sim_uop_product_fold)[UOP_TYPES] = {
	[ELEM_F32] = float_product_sums, [ELEM_F64] = double_sums, [ELEM_BF16] = bf16_sums,
};

/*
 * Sums of columns, whole registers of them at a time: STACK rows are summed apart, so that no
 * addition waits for the one before. N: registers side by side; EACH(T, i, k): of row i, the k-th.
 */
#define STACK 4
#define UNROLL _Pragma("GCC unroll 4")
#define STACK_BLOCKS(name, T, N, EACH) \
static void name(T *acc, const char *a, int64_t a_row, const char *b, int64_t b_row, size_t rows) \
{ \
	T##_block sum[STACK][N], *to = (void *)acc; \
	UNROLL for (size_t k = 0; k < N; k++) \
		sum[0][k] = EACH(T, 0, k); \
	if (rows < STACK) { \
		rows--; \
		a += a_row; \
		b += b_row; \
	} else { \
		UNROLL for (int64_t i = 1; i < STACK; i++) { \
			UNROLL for (size_t k = 0; k < N; k++) \
				sum[i][k] = EACH(T, i, k); \
		} \
		while (a += STACK * a_row, b += STACK * b_row, (rows -= STACK) >= STACK) { \
			UNROLL for (int64_t i = 0; i < STACK; i++) { \
				UNROLL for (size_t k = 0; k < N; k++) \
					sum[i][k] = sum[i][k] + EACH(T, i, k); \
			} \
		} \
		UNROLL for (size_t k = 0; k < N; k++) \
			sum[0][k] = (sum[0][k] + sum[1][k]) + (sum[2][k] + sum[3][k]); \
	} \
	for (; rows; rows--, a += a_row, b += b_row) { \
		UNROLL for (size_t k = 0; k < N; k++) \
			sum[0][k] = sum[0][k] + EACH(T, 0, k); \
	} \
	UNROLL for (size_t k = 0; k < N; k++) \
		to[k] = to[k] + sum[0][k]; \
}
#define STACK_ROW(T, p, i) ((const T##_block *)(p + (i) * p##_row))
#define STACK_ALONE(T, i, k) STACK_ROW(T, a, i)[k]
#define STACK_BF16(T, i, k) ((T##_block)(__builtin_convertvector( \
	((const bf16_block *)(a + (i) * a_row))[k], uint32_t_block) << 16))
#define STACK_PRODUCT(T, i, k) (STACK_ROW(T, a, i)[k] * STACK_ROW(T, b, i)[k])
#define STACK_ONE(T, i, k) (STACK_ROW(T, a, i)[k] * *(const T *)(b + (i) * b_row))

/* A: a's type; b_col: bytes from a column of b to the next, 0 where it has one. */
#define STACK_COLUMNS(name, T, A, EACH) \
STACK_BLOCKS(name##_one, T, 1, EACH) \
STACK_BLOCKS(name##_four, T, 4, EACH) \
static void name(T *acc, const struct sim_stack *s, int64_t b_col) \
{ \
	enum { W = BLOCK_BYTES / sizeof(T) }; \
	const char *a = s->a, *b = s->b ? s->b : s->a; \
	size_t c = 0, from = s->cols - W; \
	T last[W]; \
	for (; s->cols - c >= 4 * W; c += 4 * W) \
		name##_four(acc + c, a + c * sizeof(A), s->a_row, b + (int64_t)c * b_col, \
			    s->b_row, s->rows); \
	for (; s->cols - c >= W; c += W) \
		name##_one(acc + c, a + c * sizeof(A), s->a_row, b + (int64_t)c * b_col, \
			   s->b_row, s->rows); \
	if (c == s->cols) \
		return; \
	/* the last W columns, of which some are summed for the second time */ \
	memcpy(last, acc + from, sizeof(last)); \
	name##_one(last, a + from * sizeof(A), s->a_row, b + (int64_t)from * b_col, s->b_row, \
		   s->rows); \
	memcpy(acc + c, last + (c - from), (s->cols - c) * sizeof(T)); \
}

/* Fewer columns than a register has: one by one, and each as there. AT: an element of a. */
#define STACK_FEW(name, T, A, AT) \
static T name##_at(const struct sim_stack *s, size_t row, size_t col) \
{ \
	const A *a = (const void *)((const char *)s->a + (int64_t)row * s->a_row); \
	const T *b = s->b; \
	if (!b) \
		return AT(a[col]); \
	b = (const void *)((const char *)b + (int64_t)row * s->b_row); \
	return AT(a[col]) * b[s->one_b ? 0 : col]; \
} \
static void name(T *acc, const struct sim_stack *s) \
{ \
	size_t whole = s->rows < STACK ? 1 : s->rows / STACK * STACK; \
	for (size_t c = 0; c < s->cols; c++) { \
		T sum[STACK] = { 0 }; \
		for (size_t r = 0; r < whole; r++) \
			sum[r % STACK] = r < STACK ? name##_at(s, r, c) : \
					 sum[r % STACK] + name##_at(s, r, c); \
		if (whole >= STACK) \
			sum[0] = (sum[0] + sum[1]) + (sum[2] + sum[3]); \
		for (size_t r = whole; r < s->rows; r++) \
			sum[0] += name##_at(s, r, c); \
		acc[c] = acc[c] + sum[0]; \
	} \
}
#define STACK_FOLD(T) \
STACK_COLUMNS(T##_stack_alone, T, T, STACK_ALONE) \
STACK_COLUMNS(T##_stack_product, T, T, STACK_PRODUCT) \
STACK_COLUMNS(T##_stack_one, T, T, STACK_ONE) \
STACK_FEW(T##_stack_few, T, T, AS_IT_IS) \
static void T##_stack(void *acc, const struct sim_stack *s) \
{ \
	if (s->cols < BLOCK_BYTES / sizeof(T)) \
		T##_stack_few(acc, s); \
	else if (!s->b) \
		T##_stack_alone(acc, s, 0); \
	else if (s->one_b) \
		T##_stack_one(acc, s, 0); \
	else \
		T##_stack_product(acc, s, sizeof(T)); \
}
typedef uint64_t uint64_t_block __attribute__((vector_size(BLOCK_BYTES), aligned(8)));
typedef uint16_t bf16_block __attribute__((vector_size(BLOCK_BYTES / 2), aligned(2)));
STACK_FOLD(float)
STACK_FOLD(double)
STACK_FOLD(uint32_t)
STACK_FOLD(uint64_t)

STACK_COLUMNS(bf16_stack_alone, float, uint16_t, STACK_BF16)
STACK_FEW(bf16_stack_few, float, uint16_t, WIDENED)
static void bf16_stack(void *acc, const struct sim_stack *s)
{
	if (s->cols < BLOCK_BYTES / sizeof(float))
		bf16_stack_few(acc, s);
	else
		bf16_stack_alone(acc, s, 0);
}

/*
 * Extremes of columns, in any order: of `wide` of them at a time, by name_wide, or of NARROW; some
 * of the last are looked at twice.
 */
#define PEAK_COLUMNS(name, T, A, wide, op, AT) \
static void name(void *to, const struct sim_stack *s) \
{ \
	T *acc = to; \
	const char *a = s->a; \
	size_t c = 0; \
	if (s->cols < NARROW) { \
		for (size_t r = 0; r < s->rows; r++, a += s->a_row) \
			for (size_t j = 0; j < s->cols; j++) \
				acc[j] = (T)op(acc[j], AT(((const A *)(const void *)a)[j])); \
		return; \
	} \
	for (; s->cols - c >= (wide); c += (wide)) \
		name##_wide(acc + c, a + c * sizeof(A), s->a_row, s->rows); \
	for (; s->cols - c >= NARROW; c += NARROW) \
		name##_narrow(acc + c, a + c * sizeof(A), s->a_row, s->rows); \
	if (c < s->cols) \
		name##_narrow(acc + s->cols - NARROW, a + (s->cols - NARROW) * sizeof(A), \
			      s->a_row, s->rows); \
}

/*
 * Of floats: the CPU's own comparison, for speed, with NaNs noticed beside it. An extreme of zero
 * has the sign that MIX makes of all, for what has another sign than a zero would be the extreme
 * or is none.
 */
#define FLOAT_PEAK(name, L, T, U, I, bits, from, LESS, MIX, op) \
static void name(T *acc, const char *a, int64_t a_row, size_t rows) \
{ \
	const T *p = (const void *)a, *q; \
	T best[L]; \
	U mix[L], sign = (U)1 << (sizeof(U) * 8 - 1); \
	I nans[L]; \
	IVDEP \
	for (size_t j = 0; j < L; j++) { \
		best[j] = p[j]; \
		mix[j] = bits(p[j]); \
		nans[j] = __builtin_isunordered(p[j], p[j]); \
	} \
	for (a += a_row; --rows > 1; rows--, a += 2 * a_row) { \
		p = (const void *)a; \
		q = (const void *)(a + a_row); \
		IVDEP \
		for (size_t j = 0; j < L; j++) { \
			T x = p[j], y = q[j], m = x LESS y ? x : y; \
			best[j] = m LESS best[j] ? m : best[j]; \
			mix[j] = mix[j] MIX bits(x) MIX bits(y); \
			nans[j] += __builtin_isunordered(x, y); \
		} \
	} \
	for (p = (const void *)a; rows; rows = 0) { \
		IVDEP \
		for (size_t j = 0; j < L; j++) { \
			best[j] = p[j] LESS best[j] ? p[j] : best[j]; \
			mix[j] = mix[j] MIX bits(p[j]); \
			nans[j] += __builtin_isunordered(p[j], p[j]); \
		} \
	} \
	IVDEP \
	for (size_t j = 0; j < L; j++) { \
		T x = best[j] == 0 ? from(mix[j] & sign) : best[j]; \
		x = nans[j] ? (T)NAN : x; \
		acc[j] = op(acc[j], x); \
	} \
}
#define FLOAT_PEAKS(T, U, I, bits, from, LESS, MIX, op) \
FLOAT_PEAK(op##_stack_wide, 256 / sizeof(T), T, U, I, bits, from, LESS, MIX, op) \
FLOAT_PEAK(op##_stack_narrow, NARROW, T, U, I, bits, from, LESS, MIX, op) \
PEAK_COLUMNS(op##_stack, T, T, 256 / sizeof(T), op, AS_IT_IS)
FLOAT_PEAKS(float, uint32_t, int32_t, bits_of, float_of, <, |, min_f32)
FLOAT_PEAKS(float, uint32_t, int32_t, bits_of, float_of, >, &, max_f32)
FLOAT_PEAKS(double, uint64_t, int64_t, bits_of64, double_of, <, |, min_f64)
FLOAT_PEAKS(double, uint64_t, int64_t, bits_of64, double_of, >, &, max_f64)

/* Of bf16, by whole numbers in the order of what they are of: -0 is less than 0, and NaNs are
 * beyond both infinities. */
#define IN_ORDER(x) ((int16_t)((x) ^ ((int16_t)(x) >> 15 & 0x7fff)))
#define BF16_INFINITY 0x7f80
#define BF16_PEAK(name, L, extreme, op) \
static void name(float *acc, const char *a, int64_t a_row, size_t rows) \
{ \
	int16_t low[L], high[L]; \
	for (size_t j = 0; j < L; j++) \
		low[j] = high[j] = IN_ORDER(((const int16_t *)(const void *)a)[j]); \
	for (a += a_row; --rows; a += a_row) { \
		const int16_t *p = (const void *)a; \
		IVDEP \
		for (size_t j = 0; j < L; j++) { \
			int16_t x = IN_ORDER(p[j]); \
			low[j] = LEAST(x, low[j]); \
			high[j] = MOST(x, high[j]); \
		} \
	} \
	IVDEP \
	for (size_t j = 0; j < L; j++) { \
		float x = WIDENED((uint16_t)IN_ORDER(extreme[j])); \
		bool nan = high[j] > BF16_INFINITY || low[j] < ~BF16_INFINITY; \
		x = nan ? (float)NAN : x; \
		acc[j] = op(acc[j], x); \
	} \
}
BF16_PEAK(bf16_min_wide, 128, low, min_f32)
BF16_PEAK(bf16_min_narrow, NARROW, low, min_f32)
BF16_PEAK(bf16_max_wide, 128, high, max_f32)
BF16_PEAK(bf16_max_narrow, NARROW, high, max_f32)
PEAK_COLUMNS(bf16_min, float, uint16_t, 128, min_f32, WIDENED)
PEAK_COLUMNS(bf16_max, float, uint16_t, 128, max_f32, WIDENED)

#define WHOLE_PEAK(name, L, T, OP) \
static void name(T *acc, const char *a, int64_t a_row, size_t rows) \
{ \
	T best[L]; \
	memcpy(best, acc, sizeof(best)); \
	for (; rows; rows--, a += a_row) { \
		const T *p = (const void *)a; \
		IVDEP \
		for (size_t j = 0; j < L; j++) \
			best[j] = OP(best[j], p[j]); \
	} \
	memcpy(acc, best, sizeof(best)); \
}
#define WHOLE_PEAKS(name, T, OP) \
WHOLE_PEAK(name##_wide, 256 / sizeof(T), T, OP) \
WHOLE_PEAK(name##_narrow, NARROW, T, OP) \
PEAK_COLUMNS(name, T, T, 256 / sizeof(T), OP, AS_IT_IS)
WHOLE_PEAKS(s32_min_stack, int32_t, LEAST)
WHOLE_PEAKS(s32_max_stack, int32_t, MOST)
WHOLE_PEAKS(u32_min_stack, uint32_t, LEAST)
WHOLE_PEAKS(u32_max_stack, uint32_t, MOST)
WHOLE_PEAKS(u8_and_stack, uint8_t, BIT_AND)
WHOLE_PEAKS(u8_or_stack, uint8_t, BIT_OR)

const struct sim_stack_row PATH(sim_uop_stack)[UOP_CODES] = {
	[UOP_ADD] = {{
		[ELEM_F32] = float_stack, [ELEM_F64] = double_stack, [ELEM_BF16] = bf16_stack,
		[ELEM_S32] = uint32_t_stack, [ELEM_U32] = uint32_t_stack,
		[ELEM_S64] = uint64_t_stack, [ELEM_U64] = uint64_t_stack,
	}},
	[UOP_MIN] = {{
		[ELEM_F32] = min_f32_stack, [ELEM_F64] = min_f64_stack, [ELEM_BF16] = bf16_min,
		[ELEM_S32] = s32_min_stack, [ELEM_U32] = u32_min_stack,
		[ELEM_PRED] = u8_and_stack,
	}},
	[UOP_MAX] = {{
		[ELEM_F32] = max_f32_stack, [ELEM_F64] = max_f64_stack, [ELEM_BF16] = bf16_max,
		[ELEM_S32] = s32_max_stack, [ELEM_U32] = u32_max_stack,
		[ELEM_PRED] = u8_or_stack,
	}},
	[UOP_AND] = {{ [ELEM_PRED] = u8_and_stack }},
	[UOP_OR] = {{ [ELEM_PRED] = u8_or_stack }},
};

#define FLOATS(op) [ELEM_F32] = f32_##op, [ELEM_F64] = f64_##op

const struct sim_fold_row PATH(sim_uop_fold)[UOP_CODES] = {
	[UOP_ADD] = {{ [ELEM_PRED] = u8_ror, INT_ROW_BOTH(radd), FLOATS(radd) }},
	[UOP_MUL] = {{ [ELEM_PRED] = u8_rand, INT_ROW_BOTH(rmul), FLOATS(rmul) }},
	[UOP_MIN] = {{ [ELEM_PRED] = u8_rand, INT_ROW_EACH(rmin), FLOATS(rmin) }},
	[UOP_MAX] = {{ [ELEM_PRED] = u8_ror, INT_ROW_EACH(rmax), FLOATS(rmax) }},
	[UOP_AND] = {{ [ELEM_PRED] = u8_rand, INT_ROW_BOTH(rand) }},
	[UOP_OR] = {{ [ELEM_PRED] = u8_ror, INT_ROW_BOTH(ror) }},
	[UOP_XOR] = {{ [ELEM_PRED] = u8_rxor, INT_ROW_BOTH(rxor) }},
};
