/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transposition, compiled once for each path. A block of registers is transposed by
 * rounds of interleaving: after k rounds runs of 2^k elements are in place. The
 * includer defines PATH, and WIDE if registers of 32 bytes are worth while.
 *
 * Blocks are walked down a strip of columns, which is along a few rows of the destination: all
 * rows, or as many as fill lines of the destination, then the next strip (sim_is_by_strips). The
 * compiler knows how many these are: blocks are loaded while those before them are stored.
 */
#include <string.h>

#include "hal/sim/kernels/transpose.h"

#define NAME_(a, b) a##_##b
#define NAME(a, b) NAME_(a, b)

typedef uint8_t v16u8 __attribute__((vector_size(16)));
typedef uint16_t v8u16 __attribute__((vector_size(16)));
typedef uint32_t v4u32 __attribute__((vector_size(16)));
typedef uint64_t v2u64 __attribute__((vector_size(16)));

#define LOW8 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH8 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define LOW16 0, 8, 1, 9, 2, 10, 3, 11
#define HIGH16 4, 12, 5, 13, 6, 14, 7, 15
#define LOW32 0, 4, 1, 5
#define HIGH32 2, 6, 3, 7
#define EVEN8 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#define ODD8 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31
#define EVEN16 0, 2, 4, 6, 8, 10, 12, 14
#define ODD16 1, 3, 5, 7, 9, 11, 13, 15
#define EVEN32 0, 2, 4, 6
#define ODD32 1, 3, 5, 7
#define LOW64 0, 2
#define HIGH64 1, 3

/* An N x N block of vectors V: log2(N) rounds of interleaving rows i and i + N/2. */
#define BLOCK(name, V, N, low, high) \
static inline void name(char *dst, int64_t dp, const char *src, int64_t sp) \
{ \
	V x[N], y[N]; \
	_Pragma("GCC unroll 16") \
	for (int i = 0; i < N; i++) \
		memcpy(&x[i], src + i * sp, sizeof(V)); \
	_Pragma("GCC unroll 4") \
	for (int round = 1; round < N; round *= 2) { \
		_Pragma("GCC unroll 16") \
		for (int i = 0; i < N / 2; i++) { \
			y[2 * i] = __builtin_shuffle(x[i], x[i + N / 2], (V){ low }); \
			y[2 * i + 1] = __builtin_shuffle(x[i], x[i + N / 2], (V){ high }); \
		} \
		_Pragma("GCC unroll 16") \
		for (int i = 0; i < N; i++) \
			x[i] = y[i]; \
	} \
	_Pragma("GCC unroll 16") \
	for (int i = 0; i < N; i++) \
		memcpy(dst + i * dp, &x[i], sizeof(V)); \
}
BLOCK(block_1, v16u8, 16, LOW8, HIGH8)
BLOCK(block_2, v8u16, 8, LOW16, HIGH16)
#define N_1 16
#define N_2 8
#ifdef WIDE
/* Registers of two halves: interleave within the halves, then trade halves. Of 8 columns, or of
 * the first ones of a row. */
static inline __attribute__((always_inline))
void part_4(char *dst, int64_t dp, const char *src, int64_t sp, const int cols)
{
	const __m256i is = _mm256_cmpgt_epi32(_mm256_set1_epi32(cols),
					      _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
	__m256 x[8], y[8];

	for (int i = 0; i < 8; i++)
		x[i] = cols == 8 ? _mm256_loadu_ps((const float *)(src + i * sp)) :
			_mm256_maskload_ps((const float *)(src + i * sp), is);
	for (int i = 0; i < 4; i++) {
		y[2 * i] = _mm256_unpacklo_ps(x[2 * i], x[2 * i + 1]);
		y[2 * i + 1] = _mm256_unpackhi_ps(x[2 * i], x[2 * i + 1]);
	}
	for (int i = 0; i < 8; i += 4) {
		x[i] = _mm256_shuffle_ps(y[i], y[i + 2], 0x44);
		x[i + 1] = _mm256_shuffle_ps(y[i], y[i + 2], 0xee);
		x[i + 2] = _mm256_shuffle_ps(y[i + 1], y[i + 3], 0x44);
		x[i + 3] = _mm256_shuffle_ps(y[i + 1], y[i + 3], 0xee);
	}
	for (int i = 0; i < 4; i++) {
		if (i < cols)
			_mm256_storeu_ps((float *)(dst + i * dp),
					 _mm256_permute2f128_ps(x[i], x[i + 4], 0x20));
		if (i + 4 < cols)
			_mm256_storeu_ps((float *)(dst + (i + 4) * dp),
					 _mm256_permute2f128_ps(x[i], x[i + 4], 0x31));
	}
}

static inline void block_4(char *dst, int64_t dp, const char *src, int64_t sp)
{
	part_4(dst, dp, src, sp, 8);
}

static inline void block_8(char *dst, int64_t dp, const char *src, int64_t sp)
{
	__m256d x[4], y[4];

	for (int i = 0; i < 4; i++)
		x[i] = _mm256_loadu_pd((const double *)(src + i * sp));
	y[0] = _mm256_unpacklo_pd(x[0], x[1]);
	y[1] = _mm256_unpackhi_pd(x[0], x[1]);
	y[2] = _mm256_unpacklo_pd(x[2], x[3]);
	y[3] = _mm256_unpackhi_pd(x[2], x[3]);
	for (int i = 0; i < 2; i++) {
		_mm256_storeu_pd((double *)(dst + i * dp),
				 _mm256_permute2f128_pd(y[i], y[i + 2], 0x20));
		_mm256_storeu_pd((double *)(dst + (i + 2) * dp),
				 _mm256_permute2f128_pd(y[i], y[i + 2], 0x31));
	}
}
#define N_4 8
#define N_8 4
#else
BLOCK(block_4, v4u32, 4, LOW32, HIGH32)
BLOCK(block_8, v2u64, 2, LOW64, HIGH64)
#define N_4 4
#define N_8 2
#endif

static inline void block_16(char *dst, int64_t dp, const char *src, int64_t sp)
{
	(void)dp;
	(void)sp;
	memcpy(dst, src, 16);
}
#define N_16 1

/*
 * R rows of 16 bytes, R less than a block has: the same rounds, as many as put the R elements of
 * a column side by side; N columns. Rows of the destination that touch are stored together.
 */
#define NARROW(bytes, V, N, R, low, high, P, cell) \
static inline void narrow_##bytes##_##R(char *dst, int64_t dp, const char *src, int64_t sp) \
{ \
	V x[R], y[R]; \
	_Pragma("GCC unroll 8") \
	for (int i = 0; i < (R); i++) \
		memcpy(&x[i], src + i * sp, sizeof(V)); \
	_Pragma("GCC unroll 3") \
	for (int round = 1; round < (R); round *= 2) { \
		_Pragma("GCC unroll 4") \
		for (int i = 0; i < (R) / 2; i++) { \
			y[2 * i] = __builtin_shuffle(x[i], x[i + (R) / 2], (V){ low }); \
			y[2 * i + 1] = __builtin_shuffle(x[i], x[i + (R) / 2], (V){ high }); \
		} \
		_Pragma("GCC unroll 8") \
		for (int i = 0; i < (R); i++) \
			x[i] = y[i]; \
	} \
	if (dp == (R) * (bytes)) { \
		_Pragma("GCC unroll 8") \
		for (int i = 0; i < (R); i++) \
			memcpy(dst + i * (int64_t)sizeof(V), &x[i], sizeof(V)); \
		return; \
	} \
	_Pragma("GCC unroll 8") \
	for (int i = 0; i < (N); i++) \
		*(cell *)(dst + i * dp) = ((P)x[i * (R) / (N)])[i % ((N) / (R))]; \
}
NARROW(1, v16u8, 16, 2, LOW8, HIGH8, v8u16, cell2)
NARROW(1, v16u8, 16, 4, LOW8, HIGH8, v4u32, cell4)
NARROW(1, v16u8, 16, 8, LOW8, HIGH8, v2u64, cell8)
NARROW(2, v8u16, 8, 2, LOW16, HIGH16, v4u32, cell4)
NARROW(2, v8u16, 8, 4, LOW16, HIGH16, v2u64, cell8)
NARROW(4, v4u32, 4, 2, LOW32, HIGH32, v2u64, cell8)

#ifdef WIDE
/*
 * Three columns, as colours have, of rows that touch: three registers, from which two shuffles get
 * what is at every third place; and three rows of columns that touch, the other way round. Element
 * i of a result comes from the first two registers if FROM_TWO holds, else from the third.
 */
#define EACH_2(M, k) M(k, 0, 2), M(k, 1, 2)
#define EACH_4(M, k) M(k, 0, 4), M(k, 1, 4), M(k, 2, 4), M(k, 3, 4)
#define EACH_8(M, k) M(k, 0, 8), M(k, 1, 8), M(k, 2, 8), M(k, 3, 8), \
	M(k, 4, 8), M(k, 5, 8), M(k, 6, 8), M(k, 7, 8)
#define EACH_16(M, k) M(k, 0, 16), M(k, 1, 16), M(k, 2, 16), M(k, 3, 16), \
	M(k, 4, 16), M(k, 5, 16), M(k, 6, 16), M(k, 7, 16), M(k, 8, 16), M(k, 9, 16), \
	M(k, 10, 16), M(k, 11, 16), M(k, 12, 16), M(k, 13, 16), M(k, 14, 16), M(k, 15, 16)
#define AT(k, i) ((k) + 3 * (i))
#define APART_TWO(k, i, n) (AT(k, i) < 2 * (n) ? AT(k, i) : 0)
#define APART_ALL(k, i, n) (AT(k, i) < 2 * (n) ? (i) : AT(k, i) - (n))
#define OF(k, i, n) ((k) * (n) + (i))
#define MIXED_TWO(k, i, n) (OF(k, i, n) % 3 == 2 ? 0 : OF(k, i, n) % 3 * (n) + OF(k, i, n) / 3)
#define MIXED_ALL(k, i, n) (OF(k, i, n) % 3 == 2 ? (n) + OF(k, i, n) / 3 : (i))

#define THREE(bytes, V, N) \
static inline void three_apart_##bytes(char *dst, int64_t dp, const char *src) \
{ \
	V x[3]; \
	memcpy(x, src, sizeof(x)); \
	THREE_STORE(V, N, APART, 0, dp) \
	THREE_STORE(V, N, APART, 1, dp) \
	THREE_STORE(V, N, APART, 2, dp) \
} \
static inline void three_mixed_##bytes(char *dst, const char *src, int64_t sp) \
{ \
	V x[3]; \
	for (int i = 0; i < 3; i++) \
		memcpy(&x[i], src + i * sp, sizeof(V)); \
	THREE_STORE(V, N, MIXED, 0, (int64_t)sizeof(V)) \
	THREE_STORE(V, N, MIXED, 1, (int64_t)sizeof(V)) \
	THREE_STORE(V, N, MIXED, 2, (int64_t)sizeof(V)) \
}
#define THREE_STORE(V, N, how, k, pitch) \
	{ \
		V two = __builtin_shuffle(x[0], x[1], (V){ EACH_##N(how##_TWO, k) }); \
		V all = __builtin_shuffle(two, x[2], (V){ EACH_##N(how##_ALL, k) }); \
		memcpy(dst + (k) * (pitch), &all, sizeof(V)); \
	}
THREE(1, v16u8, 16)
THREE(2, v8u16, 8)
THREE(4, v4u32, 4)
THREE(8, v2u64, 2)

#define APART_3(bytes, N) \
	if (cols == 3 && sp == 3 * (bytes)) { \
		for (size_t r = 0; r < whole; r += (N)) \
			three_apart_##bytes(dst + r * (bytes), dp, src + (int64_t)r * sp); \
		c = 3; \
	}
#define MIX_3(bytes, N) \
	if (rows == 3 && dp == 3 * (bytes)) { \
		for (size_t c = 0; c < cols; c += (N)) \
			three_mixed_##bytes(dst + (int64_t)c * dp, src + c * (bytes), sp); \
		return; \
	}
#define IS_THREE(bytes) ((bytes) < 16)
#else
#define APART_3(bytes, N)
#define MIX_3(bytes, N)
#define IS_THREE(bytes) false
#endif

/* Rows that are too few for a block, over the columns of whole blocks: as many as go by 8, 4
 * and 2 together, then one by one. */
#define BY(bytes, N, R) \
	for (; rows >= (R); rows -= (R), dst += (R) * (bytes), src += (R) * sp) \
		for (size_t c = 0; c < cols; c += (N)) \
			narrow_##bytes##_##R(dst + (int64_t)c * dp, dp, src + c * (bytes), sp);
#define FEW(bytes, by) \
static void few_##bytes(char *dst, int64_t dp, const char *src, int64_t sp, size_t rows, \
			size_t cols) \
{ \
	by \
	for (; rows > 0; rows--, dst += (bytes), src += sp) \
		for (size_t c = 0; c < cols; c++) \
			*(cell##bytes *)(dst + (int64_t)c * dp) = \
				*(const cell##bytes *)(src + c * (bytes)); \
}
FEW(1, MIX_3(1, 16) BY(1, 16, 8) BY(1, 16, 4) BY(1, 16, 2))
FEW(2, MIX_3(2, 8) BY(2, 8, 4) BY(2, 8, 2))
FEW(4, MIX_3(4, 4) BY(4, 4, 2))
FEW(8, MIX_3(8, 2))
FEW(16, )

/*
 * C columns, C less than a block has, of N rows: the rounds of NARROW backwards, each of which
 * parts elements at even places from those at odd ones. Rows of the source that touch are loaded
 * together.
 */
#define APART(bytes, V, N, C, even, odd, P, cell) \
static inline void apart_##bytes##_##C(char *dst, int64_t dp, const char *src, int64_t sp) \
{ \
	V x[C], y[C]; \
	if (sp == (C) * (bytes)) { \
		memcpy(x, src, sizeof(x)); \
	} else { \
		P row[C]; \
		_Pragma("GCC unroll 16") \
		for (int i = 0; i < (N); i++) \
			row[i * (C) / (N)][i % ((N) / (C))] = *(const cell *)(src + i * sp); \
		memcpy(x, row, sizeof(x)); \
	} \
	_Pragma("GCC unroll 3") \
	for (int round = 1; round < (C); round *= 2) { \
		_Pragma("GCC unroll 4") \
		for (int i = 0; i < (C) / 2; i++) { \
			y[i] = __builtin_shuffle(x[2 * i], x[2 * i + 1], (V){ even }); \
			y[i + (C) / 2] = __builtin_shuffle(x[2 * i], x[2 * i + 1], (V){ odd }); \
		} \
		_Pragma("GCC unroll 8") \
		for (int i = 0; i < (C); i++) \
			x[i] = y[i]; \
	} \
	_Pragma("GCC unroll 8") \
	for (int i = 0; i < (C); i++) \
		memcpy(dst + i * dp, &x[i], sizeof(V)); \
}
APART(1, v16u8, 16, 2, EVEN8, ODD8, v8u16, cell2)
APART(1, v16u8, 16, 4, EVEN8, ODD8, v4u32, cell4)
APART(1, v16u8, 16, 8, EVEN8, ODD8, v2u64, cell8)
APART(2, v8u16, 8, 2, EVEN16, ODD16, v4u32, cell4)
APART(2, v8u16, 8, 4, EVEN16, ODD16, v2u64, cell8)
APART(4, v4u32, 4, 2, EVEN32, ODD32, v2u64, cell8)

/* Columns too few for a block: as few_*() has them, over the rows of whole blocks, and all columns
 * of the rest one by one. */
#define APART_BY(bytes, N, C) \
	for (; cols - c >= (C); c += (C)) \
		for (size_t r = 0; r < whole; r += (N)) \
			apart_##bytes##_##C(dst + (int64_t)c * dp + r * (bytes), dp, \
					    src + (int64_t)r * sp + c * (bytes), sp);
#define EDGE(bytes, N, by) \
static void edge_##bytes(char *dst, int64_t dp, const char *src, int64_t sp, \
			 size_t rows, size_t cols) \
{ \
	size_t whole = rows - rows % (N), c = 0; \
	by \
	for (size_t k = 0; k < cols; k++) \
		for (size_t r = k < c ? whole : 0; r < rows; r++) \
			*(cell##bytes *)(dst + (int64_t)k * dp + r * (bytes)) = \
				*(const cell##bytes *)(src + (int64_t)r * sp + k * (bytes)); \
}
EDGE(1, 16, APART_3(1, 16) APART_BY(1, 16, 8) APART_BY(1, 16, 4) APART_BY(1, 16, 2))
EDGE(2, 8, APART_3(2, 8) APART_BY(2, 8, 4) APART_BY(2, 8, 2))
#ifdef WIDE
/* From three columns on, a block of which some are left out. */
#define PART_4(cols) \
	case cols: \
		for (size_t r = 0; r < whole; r += 8) \
			part_4(dst + r * 4, dp, src + (int64_t)r * sp, sp, cols); \
		break;
#define PARTS_4 \
	if (cols > 2 && !c) { \
		whole = rows - rows % 8; \
		switch (cols) { \
		PART_4(3) PART_4(4) PART_4(5) PART_4(6) PART_4(7) \
		} \
		c = cols; \
	}
#else
#define PARTS_4
#endif
EDGE(4, 4, APART_3(4, 4) PARTS_4 APART_BY(4, 4, 2))
EDGE(8, 2, APART_3(8, 2))
EDGE(16, 1, )

#define TRANSPOSE(bytes) \
static void NAME(transpose_##bytes, PATH)(void *dst, int64_t dp, const void *src, \
					  int64_t sp, size_t rows, size_t cols) \
{ \
	enum { N = N_##bytes, ROWS = SIM_LINE / (bytes) > N ? SIM_LINE / (bytes) : N }; \
	const char *from = src; \
	char *to = dst; \
	size_t whole = cols - cols % N, m = rows - rows % N, r0 = 0; \
	if (IS_THREE(bytes) && cols == 3 && sp == 3 * (bytes)) { \
		edge_##bytes(to, dp, from, sp, rows, cols); \
		return; \
	} \
	if (!sim_is_by_strips(dp, bytes)) \
		for (; r0 + ROWS <= m; r0 += ROWS) \
			for (size_t c = 0; c < whole; c += N) \
				for (size_t r = r0; r < r0 + ROWS; r += N) \
					block_##bytes(to + (int64_t)c * dp + r * (bytes), dp, \
						from + (int64_t)r * sp + c * (bytes), sp); \
	for (size_t c = 0; c < whole; c += N) \
		for (size_t r = r0; r < m; r += N) \
			block_##bytes(to + (int64_t)c * dp + r * (bytes), dp, \
				      from + (int64_t)r * sp + c * (bytes), sp); \
	few_##bytes(to + m * (bytes), dp, from + (int64_t)m * sp, sp, rows - m, whole); \
	if (whole < cols) \
		edge_##bytes(to + (int64_t)whole * dp, dp, from + whole * (bytes), sp, \
			     rows, cols - whole); \
}
TRANSPOSE(1)
TRANSPOSE(2)
TRANSPOSE(4)
TRANSPOSE(8)
TRANSPOSE(16)

sim_transpose_fn *const NAME(sim_transpose, PATH)[5] = {
	NAME(transpose_1, PATH), NAME(transpose_2, PATH), NAME(transpose_4, PATH),
	NAME(transpose_8, PATH), NAME(transpose_16, PATH),
};

#ifdef WIDE
/*
 * What is at every second, third or fourth place: S registers become one. The next element after
 * theirs has to be there, as the last register ends right before it.
 */
#define COLUMN(bytes, V, N, S, pick) \
static void NAME(column_##bytes##_##S, PATH)(void *to, const void *from, size_t n) \
{ \
	const char *src = from; \
	char *dst = to; \
	for (; n > (N); n -= (N), dst += sizeof(V), src += (S) * sizeof(V)) { \
		V x[S]; \
		_Pragma("GCC unroll 4") \
		for (int i = 0; i < (S); i++) \
			memcpy(&x[i], src + i * sizeof(V), sizeof(V)); \
		pick \
	} \
	for (; n; n--, dst += (bytes), src += (S) * (bytes)) \
		*(cell##bytes *)dst = *(const cell##bytes *)src; \
}
#define SECOND(V, ...) \
	x[0] = __builtin_shuffle(x[0], x[1], (V){ __VA_ARGS__ }); \
	memcpy(dst, &x[0], sizeof(V));
#define FOURTH(V, ...) \
	x[2] = __builtin_shuffle(x[2], x[3], (V){ __VA_ARGS__ }); \
	x[0] = __builtin_shuffle(x[0], x[1], (V){ __VA_ARGS__ }); \
	x[0] = __builtin_shuffle(x[0], x[2], (V){ __VA_ARGS__ }); \
	memcpy(dst, &x[0], sizeof(V));
#define COLUMNS(bytes, V, N, ...) \
	COLUMN(bytes, V, N, 2, SECOND(V, __VA_ARGS__)) \
	COLUMN(bytes, V, N, 3, THREE_STORE(V, N, APART, 0, 0)) \
	COLUMN(bytes, V, N, 4, FOURTH(V, __VA_ARGS__))
COLUMNS(1, v16u8, 16, EVEN8)
COLUMNS(2, v8u16, 8, EVEN16)
COLUMNS(4, v4u32, 4, EVEN32)

#define EACH_STEP(bytes) \
	{ NAME(column_##bytes##_2, PATH), NAME(column_##bytes##_3, PATH), \
	  NAME(column_##bytes##_4, PATH) }
sim_column_fn *const NAME(sim_column, PATH)[3][SIM_MOST_STEP - SIM_LEAST_STEP + 1] = {
	EACH_STEP(1), EACH_STEP(2), EACH_STEP(4),
};

/* From the last to the first: a register ends with the element that comes first. */
#define BACK(bytes, V, ...) \
static void NAME(back_##bytes, PATH)(void *to, const void *from, size_t n) \
{ \
	enum { N = sizeof(V) / (bytes) }; \
	const char *src = from; \
	char *dst = to; \
	for (; n >= N; n -= N, dst += sizeof(V), src -= sizeof(V)) { \
		V x; \
		memcpy(&x, src + (bytes) - sizeof(V), sizeof(V)); \
		x = __builtin_shuffle(x, (V){ __VA_ARGS__ }); \
		memcpy(dst, &x, sizeof(V)); \
	} \
	for (; n; n--, dst += (bytes), src -= (bytes)) \
		*(cell##bytes *)dst = *(const cell##bytes *)src; \
}
BACK(1, v16u8, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
BACK(2, v8u16, 7, 6, 5, 4, 3, 2, 1, 0)
BACK(4, v4u32, 3, 2, 1, 0)
BACK(8, v2u64, 1, 0)
sim_column_fn *const NAME(sim_back, PATH)[4] = {
	NAME(back_1, PATH), NAME(back_2, PATH), NAME(back_4, PATH), NAME(back_8, PATH),
};
#endif
