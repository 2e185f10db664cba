/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chains, for one path: see path.h. One operation joins many arrays, element by element, in
 * their order. What is joined so far stays in a block that the cache nearest to the core
 * holds, while elements are read from where they lie: as a window's are, of which each
 * belongs to several windows. Columns and short rows of elements that no chain joins are here for
 * the widest registers, which pick all their elements at once; so are the largest of short rows.
 */
#include <stdbool.h>
#include <string.h>

#ifdef __AVX512DQ__
#include <immintrin.h>
#endif

#include "hal/sim/kernels/path.h"
#include "hal/sim/kernels/transpose.h"
#include "hal/sim/kernels/uop.h"
#include "hal/sim/kernels/uop_extreme.h"

#define IVDEP _Pragma("GCC ivdep")
/* Elements at a time: as many as there are, then fewer. */
#define WIDE 64
#define NARROW 16

#ifdef __AVX512F__
#define GROUP 16
#define SECONDS 0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31
#else
#define GROUP 4
#define SECONDS 0, 2, 5, 7
#endif
typedef uint32_t group __attribute__((vector_size(4 * GROUP)));

/* to[j] = from[2 * j]; nothing behind the last of them is read. */
static inline void take_seconds_float(float *to, const float *from, size_t n)
{
	for (size_t j = 0; j < n; j += GROUP) {
		group low, high;

		memcpy(&low, from + 2 * j, sizeof(low));
		memcpy(&high, from + 2 * j + GROUP - 1, sizeof(high));
		low = __builtin_shufflevector(low, high, SECONDS);
		memcpy(to + j, &low, sizeof(low));
	}
}

static inline void take_seconds_double(double *to, const double *from, size_t n)
{
	for (size_t j = 0; j < n; j++)
		to[j] = from[2 * j];
}

/* A block of n elements, a constant. */
#define BLOCK(name, T, OP) \
static inline __attribute__((always_inline)) \
void name##_each(T *d, const T *first, const char *const *src, unsigned n_src, \
		  int64_t at, bool seconds, size_t n) \
{ \
	_Alignas(64) T acc[WIDE], room[WIDE]; \
	unsigned k = 0; \
	for (size_t j = 0; j < n; j++) \
		acc[j] = *first; \
	for (; !seconds && k + 3 <= n_src; k += 3) { \
		const T *x = (const void *)(src[k] + at); \
		const T *y = (const void *)(src[k + 1] + at); \
		const T *z = (const void *)(src[k + 2] + at); \
		IVDEP \
		for (size_t j = 0; j < n; j++) \
			acc[j] = OP(OP(OP(acc[j], x[j]), y[j]), z[j]); \
	} \
	for (; k < n_src; k++) { \
		const T *x = (const void *)(src[k] + at); \
		if (seconds) { \
			take_seconds_##T(room, x, n); \
			x = room; \
		} \
		IVDEP \
		for (size_t j = 0; j < n; j++) \
			acc[j] = OP(acc[j], x[j]); \
	} \
	memcpy(d, acc, n * sizeof(T)); \
}

#define BLOCK_AS_EACH(name, T) \
static inline __attribute__((always_inline)) \
void name##_block(T *d, const T *first, const char *const *src, unsigned n_src, \
		  int64_t at, bool seconds, size_t n) \
{ \
	name##_each(d, first, src, n_src, at, seconds, n); \
}

#ifdef __AVX512DQ__
/*
 * VRANGE tells zeros apart as an extreme here does, but passes NaNs over. So these are looked
 * for beside it, and a block that has any is joined anew, element by element.
 */
#define EXTREME_BLOCK(name, AT_ONCE) \
static inline __attribute__((always_inline)) \
void name##_block(float *d, const float *first, const char *const *src, unsigned n_src, \
		  int64_t at, bool seconds, size_t n) \
{ \
	__m512 acc[WIDE / 16], one = _mm512_set1_ps(*first); \
	__mmask16 nans = _mm512_cmp_ps_mask(one, one, _CMP_UNORD_Q); \
	float room[WIDE]; \
	_Pragma("GCC unroll 4") \
	for (size_t j = 0; j < n / 16; j++) \
		acc[j] = one; \
	for (unsigned k = 0; k < n_src; k++) { \
		const float *x = (const void *)(src[k] + at); \
		if (seconds) { \
			take_seconds_float(room, x, n); \
			x = room; \
		} \
		_Pragma("GCC unroll 4") \
		for (size_t j = 0; j < n / 16; j++) { \
			__m512 y = _mm512_loadu_ps(x + 16 * j); \
			nans |= _mm512_cmp_ps_mask(y, y, _CMP_UNORD_Q); \
			acc[j] = _mm512_range_ps(acc[j], y, AT_ONCE); \
		} \
	} \
	if (__builtin_expect(nans, 0)) { \
		name##_each(d, first, src, n_src, at, seconds, n); \
		return; \
	} \
	_Pragma("GCC unroll 4") \
	for (size_t j = 0; j < n / 16; j++) \
		_mm512_storeu_ps(d + 16 * j, acc[j]); \
}
/* Which of the two, with its own sign. */
#define VRANGE_LESS 4
#define VRANGE_MORE 5
#else
#define EXTREME_BLOCK(name, AT_ONCE) BLOCK_AS_EACH(name, float)
#endif

/* A row whose elements lie side by side, or two apart. The last block, if it is not whole,
 * reaches back over what the blocks before it do too. */
#define ROW(name, T) \
static inline __attribute__((always_inline)) \
void name##_row(T *d, const T *first, const char *const *src, unsigned n_src, int64_t at, \
		bool seconds, size_t n) \
{ \
	const int64_t step = (seconds ? 2 : 1) * (int64_t)sizeof(T); \
	size_t i = 0; \
	for (; i + WIDE <= n; i += WIDE) \
		name##_block(d + i, first, src, n_src, at + (int64_t)i * step, seconds, WIDE); \
	for (; i + NARROW <= n; i += NARROW) \
		name##_block(d + i, first, src, n_src, at + (int64_t)i * step, seconds, \
			     NARROW); \
	if (i < n) \
		name##_block(d + n - NARROW, first, src, n_src, \
			     at + (int64_t)(n - NARROW) * step, seconds, NARROW); \
}

#define CHAIN(name, T, OP) \
BLOCK(name, T, OP) \
BLOCK_AS_EACH(name, T) \
CHAIN_OF_BLOCKS(name, T, OP)
#define EXTREME_CHAIN(name, OP, AT_ONCE) \
BLOCK(name, float, OP) \
EXTREME_BLOCK(name, AT_ONCE) \
CHAIN_OF_BLOCKS(name, float, OP)
#define CHAIN_OF_BLOCKS(name, T, OP) \
ROW(name, T) \
static void name(void *dst, const void *first, const char *const *src, unsigned n_src, \
		 const struct sim_plane *p) \
{ \
	const T *one = first; \
	T *d = dst; \
	for (size_t r = 0; r < p->rows; r++, d += p->cols) { \
		int64_t at = (int64_t)r * p->row; \
		if (p->cols >= NARROW && p->col == sizeof(T)) { \
			name##_row(d, one, src, n_src, at, false, p->cols); \
			continue; \
		} \
		if (p->cols >= NARROW && p->col == 2 * sizeof(T)) { \
			name##_row(d, one, src, n_src, at, true, p->cols); \
			continue; \
		} \
		for (size_t j = 0; j < p->cols; j++, at += p->col) { \
			T x = *one; \
			for (unsigned k = 0; k < n_src; k++) { \
				T y = *(const T *)(const void *)(src[k] + at); \
				x = OP(x, y); \
			} \
			d[j] = x; \
		} \
	} \
}

#define PLUS(x, y) ((x) + (y))
#define TIMES(x, y) ((x) * (y))
CHAIN(f32_add, float, PLUS)
CHAIN(f32_mul, float, TIMES)
EXTREME_CHAIN(f32_min, min_f32, VRANGE_LESS)
EXTREME_CHAIN(f32_max, max_f32, VRANGE_MORE)
CHAIN(f64_add, double, PLUS)
CHAIN(f64_mul, double, TIMES)
CHAIN(f64_min, double, min_f64)
CHAIN(f64_max, double, max_f64)

#define FLOATS(op) {{ [ELEM_F32] = f32_##op, [ELEM_F64] = f64_##op }}
const struct sim_chain_row PATH(sim_uop_chain)[UOP_CODES] = {
	[UOP_ADD] = FLOATS(add), [UOP_MUL] = FLOATS(mul), [UOP_MIN] = FLOATS(min),
	[UOP_MAX] = FLOATS(max),
};

/* ---- the larger or the smaller one, and what comes with it ---- */

#define PICK_EACH(T, W, CMP, AS) \
	IVDEP \
	for (size_t j = 0; j < n; j++) { \
		const T best = x[j], next = y[j]; \
		bool nan = AS(best) != AS(best); \
		value[j] = (AS(best) CMP AS(next)) | nan ? best : next; \
		where[j] = (AS(best) CMP##= AS(next)) | nan ? i[j] : one_k ? one : k[j]; \
	}

/* Pairs that stay in the nearest cache while all rows go by. */
#define PICKED 256

/* One row, and several of them for n <= PICKED pairs. */
#define PICK_WITH(name, T, W, CMP, AS) \
static inline __attribute__((always_inline)) \
void name##_row(T *value, W *where, const T *x, const W *i, const T *y, const W *k, size_t n, \
		bool one_k) \
{ \
	const W one = *k; \
	PICK_EACH(T, W, CMP, AS) \
} \
static inline __attribute__((always_inline)) \
void name##_block(T *to, W *to_where, const T *from, const W *from_where, \
		  const struct sim_pick_rows *r, size_t at, size_t n, bool one_k) \
{ \
	_Alignas(64) T value[PICKED]; \
	_Alignas(64) W where[PICKED]; \
	const T *x = value; \
	const W *i = where; \
	memcpy(value, from + at, n * sizeof(T)); \
	memcpy(where, from_where + at, n * sizeof(W)); \
	for (size_t row = 0; row < r->rows; row++) { \
		const T *y = (const T *)((const char *)r->y + (int64_t)row * r->y_step) + at; \
		const W *k = (const W *)((const char *)r->k + (int64_t)row * r->k_step) + \
			(one_k ? 0 : at); \
		const W one = *k; \
		PICK_EACH(T, W, CMP, AS) \
	} \
	memcpy(to + at, value, n * sizeof(T)); \
	memcpy(to_where + at, where, n * sizeof(W)); \
} \
static inline __attribute__((always_inline)) \
void name##_rows(T *value, W *where, const T *x, const W *i, const struct sim_pick_rows *r, \
		 size_t n, bool one_k) \
{ \
	if (r->rows == 1) { \
		name##_row(value, where, x, i, r->y, r->k, n, one_k); \
		return; \
	} \
	for (size_t at = 0; at < n; at += PICKED) \
		name##_block(value, where, x, i, r, at, n - at < PICKED ? n - at : PICKED, one_k); \
} \
static void name(void *value, void *where, const void *x, const void *i, \
		 const struct sim_pick_rows *r, size_t n) \
{ \
	if (r->one_k) \
		name##_rows(value, where, x, i, r, n, true); \
	else \
		name##_rows(value, where, x, i, r, n, false); \
}
#define PICKS(type, T, AS) \
PICK_WITH(type##_less_4, T, uint32_t, <, AS) \
PICK_WITH(type##_less_8, T, uint64_t, <, AS) \
PICK_WITH(type##_more_4, T, uint32_t, >, AS) \
PICK_WITH(type##_more_8, T, uint64_t, >, AS)
#define AS_IT_IS(x) (x)
#define AS_F32(x) float_of((uint32_t)(x) << 16)
PICKS(f32, float, AS_IT_IS)
PICKS(f64, double, AS_IT_IS)
PICKS(bf16, uint16_t, AS_F32)
PICKS(s32, int32_t, AS_IT_IS)
PICKS(s64, int64_t, AS_IT_IS)

#define PICK_TYPE(type, which) { type##_##which##_4, type##_##which##_8 }
#define PICK_TYPES(which) {{ \
	[ELEM_F32] = PICK_TYPE(f32, which), [ELEM_F64] = PICK_TYPE(f64, which), \
	[ELEM_BF16] = PICK_TYPE(bf16, which), \
	[ELEM_S32] = PICK_TYPE(s32, which), [ELEM_S64] = PICK_TYPE(s64, which), \
}}
const struct sim_pick_row PATH(sim_uop_pick)[2] = { PICK_TYPES(less), PICK_TYPES(more) };

/*
 * Rows of f32, each with one number of its own: the same as if that were spread over the row. From
 * the last row to the first, for the result may take the place of these numbers.
 */
#ifdef __AVX512F__
#define ROW_OF(OP) \
	for (; j + 16 <= cols; j += 16) { \
		floats x; \
		memcpy(&x, a + j, sizeof(x)); \
		x = x OP one; \
		memcpy(d + j, &x, sizeof(x)); \
	} \
	if (j < cols) { \
		__mmask16 rest = (__mmask16)((1u << (cols - j)) - 1); \
		floats x = (floats)_mm512_maskz_loadu_ps(rest, a + j); \
		_mm512_mask_storeu_ps(d + j, rest, (__m512)(x OP one)); \
	}
typedef float floats __attribute__((vector_size(64)));
#else
#define ROW_OF(OP) \
	IVDEP \
	for (; j < cols; j++) \
		d[j] = a[j] OP one;
#endif
#define BY_ROW(name, OP) \
static void name(void *dst, const void *full, const void *numbers, const void *unused, \
		 size_t rows, unsigned spread, uint64_t cols) \
{ \
	(void)unused, (void)spread; \
	while (rows-- > 0) { \
		const float one = ((const float *)numbers)[rows]; \
		const float *a = (const float *)full + rows * cols; \
		float *d = (float *)dst + rows * cols; \
		size_t j = 0; \
		ROW_OF(OP) \
	} \
}
BY_ROW(plus_row, +)
BY_ROW(minus_row, -)
BY_ROW(times_row, *)
BY_ROW(over_row, /)
sim_uop_fn *const PATH(sim_uop_by_row)[UOP_BY_ROW] = { plus_row, minus_row, times_row, over_row };

#ifdef __AVX512F__
#define PLACES(S) _mm512_setr_epi32(0, S, 2 * S, 3 * S, 4 * S, 5 * S, 6 * S, 7 * S, 8 * S, 9 * S, \
				    10 * S, 11 * S, 12 * S, 13 * S, 14 * S, 15 * S)
/* What n elements reach over, a bit each. */
#define REACH(S, n) (((uint64_t)1 << ((S) * ((n) - 1) + 1)) - 1)
/* So many elements at least, if there are no more, are one part of a register; of those behind
 * whole registers each is sooner copied alone. Of four registers that pays for 16 alone. */
#define LEAST_PART(S) ((S) < 4 ? 9 : 16)
/* S registers from `from` on, or of 16 of their lanes each those that `is` has. */
static inline __attribute__((always_inline))
void load_all(__m512i *v, const uint32_t *from, const unsigned s, uint64_t is)
{
	for (unsigned k = 0; k < s; k++)
		v[k] = is == UINT64_MAX ? _mm512_loadu_si512(from + 16 * k) :
			_mm512_maskz_loadu_epi32((__mmask16)(is >> 16 * k), from + 16 * k);
}

/* As column_4_* of transpose_kernels.h: the last of S registers ends right before the element that
 * is next, which has to be there; of the last ones what they reach over is read.
 * Places count modulo what is picked from, so those beyond the first two registers are the right
 * ones of the others. */
#define COLUMN(S, MORE) \
static inline __m512i column_of_##S(const uint32_t *src, uint64_t is) \
{ \
	__m512i v[S], x; \
	load_all(v, src, S, is); \
	x = _mm512_permutex2var_epi32(v[0], PLACES(S), v[1]); \
	MORE \
	return x; \
} \
static void column_##S(void *to, const void *from, size_t n) \
{ \
	const uint32_t *src = from; \
	uint32_t *dst = to; \
	const bool is_part = n >= LEAST_PART(S) && n < 16; \
	for (; n > 16; n -= 16, dst += 16, src += 16 * (S)) \
		_mm512_storeu_si512(dst, column_of_##S(src, UINT64_MAX)); \
	if (n == 16) \
		_mm512_storeu_si512(dst, column_of_##S(src, REACH(S, 16))); \
	else if (is_part) \
		_mm512_mask_storeu_epi32(dst, (__mmask16)((1u << n) - 1), \
					 column_of_##S(src, REACH(S, n))); \
	else \
		for (; n; n--, dst++, src += (S)) \
			memcpy(dst, src, sizeof(*dst)); \
}
COLUMN(2,)
COLUMN(3, x = _mm512_mask_permutexvar_epi32(x, 0xf800, PLACES(3), v[2]);)
COLUMN(4, x = _mm512_mask_blend_epi32(0xff00, x, _mm512_permutex2var_epi32(
		v[2], PLACES(4), v[3]));)
#undef COLUMN
/* From the last to the first: the first of S registers begins right behind the element that is
 * next. */
#define BACK(S, MORE) \
static inline __m512i back_of_##S(const uint32_t *src, uint64_t is) \
{ \
	const __m512i place = _mm512_sub_epi32(_mm512_set1_epi32(16 * (S) - 1), PLACES(S)); \
	__m512i v[S], x; \
	load_all(v, src - 16 * (S) + 1, S, is); \
	x = _mm512_permutex2var_epi32(v[0], place, v[1]); \
	MORE \
	return x; \
} \
static void back_##S(void *to, const void *from, size_t n) \
{ \
	const uint32_t *src = from; \
	uint32_t *dst = to; \
	const bool is_part = n >= LEAST_PART(S) && n < 16; \
	for (; n > 16; n -= 16, dst += 16, src -= 16 * (S)) \
		_mm512_storeu_si512(dst, back_of_##S(src, UINT64_MAX)); \
	if (n == 16) \
		_mm512_storeu_si512(dst, back_of_##S(src, REACH(S, 16) << ((S) - 1))); \
	else if (is_part) \
		_mm512_mask_storeu_epi32(dst, (__mmask16)((1u << n) - 1), \
			back_of_##S(src, REACH(S, n) << ((S) * (17 - n) - 1))); \
	else \
		for (; n; n--, dst++, src -= (S)) \
			memcpy(dst, src, sizeof(*dst)); \
}
BACK(2,)
BACK(3, x = _mm512_mask_permutexvar_epi32(x, 0x3f, place, v[2]);)
BACK(4, x = _mm512_mask_blend_epi32(0xff, x, _mm512_permutex2var_epi32(
		v[2], place, v[3]));)
#undef BACK
sim_column_fn *const sim_wide_back_avx512[SIM_MOST_STEP - SIM_LEAST_STEP + 1] = {
	back_2, back_3, back_4,
};
sim_column_fn *const sim_wide_column_avx512[SIM_MOST_STEP - SIM_LEAST_STEP + 1] = {
	column_2, column_3, column_4,
};

/* The first n lanes, of `lanes`. */
static inline __mmask64 first(size_t n, size_t lanes)
{
	return (n < lanes ? 1ull << n : lanes < 64 ? 1ull << lanes : 0) - 1;
}

/*
 * Registers of elements of each size, picked by their places. Of bytes only those of 16 can be
 * picked from, without VBMI: each quarter of a register has them all.
 */
#define LOAD_1(mask, p) \
	_mm512_broadcast_i32x4(_mm_maskz_loadu_epi8((__mmask16)(mask), p))
#define LOAD_2(mask, p) _mm512_maskz_loadu_epi16((__mmask32)(mask), p)
#define LOAD_4(mask, p) _mm512_maskz_loadu_epi32((__mmask16)(mask), p)
#define LOAD_8(mask, p) _mm512_maskz_loadu_epi64((__mmask8)(mask), p)
#define PICK_1(place, x) _mm512_shuffle_epi8(x, place)
#define PICK_2(place, x) _mm512_permutexvar_epi16(place, x)
#define PICK_4(place, x) _mm512_permutexvar_epi32(place, x)
#define PICK_8(place, x) _mm512_permutexvar_epi64(place, x)
#define STORE_1(p, mask, x) _mm512_mask_storeu_epi8(p, mask, x)
#define STORE_2(p, mask, x) _mm512_mask_storeu_epi16(p, (__mmask32)(mask), x)
#define STORE_4(p, mask, x) _mm512_mask_storeu_epi32(p, (__mmask16)(mask), x)
#define STORE_8(p, mask, x) _mm512_mask_storeu_epi64(p, (__mmask8)(mask), x)

/* Places of a register, from a byte each. */
#define WIDEN_1(p) _mm512_loadu_si512(p)
#define WIDEN_2(p) _mm512_cvtepu8_epi16(_mm256_loadu_si256((const void *)(p)))
#define WIDEN_4(p) _mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)(p)))

/*
 * So many rows at a time, of which n registers are made. Where rows lie one before the other the
 * last ones are the lowest, and there may be fewer of them. What is stored beyond them is written
 * over by those that come next, as long as there are enough.
 */
#define SHUFFLE_ROWS(bytes, T, SPAN) \
static inline __attribute__((always_inline)) void \
shuffle_rows_##bytes(T **to, const T **from, size_t times, size_t rows, \
		     const struct sim_shuffle *s, const size_t n) \
{ \
	const size_t lanes = 64 / (bytes); \
	const int64_t pitch = s->pitch / (bytes); \
	const size_t apart = (size_t)(pitch < 0 ? -pitch : pitch), each = rows * s->n; \
	const __mmask64 all = first((rows - 1) * apart + s->span, SPAN); \
	const __mmask64 read = pitch < 0 ? all << (s->rows - rows) * apart : all; \
	const __mmask64 last = first(each - lanes * (n - 1), lanes); \
	size_t whole = each * times < lanes * n ? 0 : (each * times - lanes * n) / each + 1; \
	__m512i place[SIM_SHUFFLE_MOST * (bytes) / 64]; \
	T *d = *to; \
	const T *p = *from; \
\
	for (size_t i = 0; i < n; i++) \
		place[i] = WIDEN_##bytes(s->place + lanes * i); \
	for (; whole; whole--, times--, d += each, p += (int64_t)rows * pitch) { \
		const __m512i x = LOAD_##bytes(read, p); \
\
		for (size_t i = 0; i < n; i++) \
			_mm512_storeu_si512(d + lanes * i, PICK_##bytes(place[i], x)); \
	} \
	for (; times; times--, d += each, p += (int64_t)rows * pitch) { \
		const __m512i x = LOAD_##bytes(read, p); \
\
		for (size_t i = 0; i + 1 < n; i++) \
			_mm512_storeu_si512(d + lanes * i, PICK_##bytes(place[i], x)); \
		STORE_##bytes(d + lanes * (n - 1), last, PICK_##bytes(place[n - 1], x)); \
	} \
	*to = d; \
	*from = p; \
}
#define SHUFFLE(bytes, T, SPAN, TAKE) \
SHUFFLE_ROWS(bytes, T, SPAN) \
static void shuffle_##bytes(void *dst, const void *src, size_t rows, const struct sim_shuffle *s) \
{ \
	const T *from = (const void *)((const char *)src + s->low); \
	size_t times = rows / s->rows, more = s->rows; \
	T *to = dst; \
\
	for (unsigned part = 0; part < 2; part++, times = 1, more = rows % s->rows) { \
		if (!times || !more) \
			continue; \
		TAKE \
	} \
}
#define TAKE(bytes, n) shuffle_rows_##bytes(&to, &from, times, more, s, n)
SHUFFLE(1, uint8_t, 16, TAKE(1, 1);)
SHUFFLE(2, uint16_t, 32, if (more * s->n > 32) TAKE(2, 2); else TAKE(2, 1);)
SHUFFLE(4, uint32_t, 16, switch ((more * s->n - 1) / 16) {
	case 0: TAKE(4, 1); break;
	case 1: TAKE(4, 2); break;
	case 2: TAKE(4, 3); break;
	default: TAKE(4, 4); break;
})
sim_shuffle_fn *const sim_wide_shuffle_avx512[3] = { shuffle_1, shuffle_2, shuffle_4 };

/* i / cols of as many i from `first` on as a register has lanes, by each / 65536: below
 * 65536 / cols that is right. */
static inline __m512i quotients_2(unsigned first, unsigned each)
{
	const __m512i i = _mm512_add_epi16(_mm512_set1_epi16((int16_t)first),
			_mm512_cvtepu8_epi16(_mm256_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
				11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26,
				27, 28, 29, 30, 31)));

	return _mm512_mulhi_epu16(i, _mm512_set1_epi16((int16_t)each));
}

static inline __m512i quotients_1(unsigned first, unsigned each)
{
	const __m256i low = _mm512_cvtepi16_epi8(quotients_2(first, each));

	return _mm512_inserti64x4(_mm512_castsi256_si512(low),
				  _mm512_cvtepi16_epi8(quotients_2(first + 32, each)), 1);
}

static inline __m512i quotients_4(unsigned first, unsigned each)
{
	return _mm512_cvtepu16_epi32(_mm512_castsi512_si256(quotients_2(first, each)));
}

static inline __m512i quotients_8(unsigned first, unsigned each)
{
	return _mm512_cvtepu16_epi64(_mm512_castsi512_si128(quotients_2(first, each)));
}

/* As many elements at a time as a register can be picked from, which make `n` registers. */
#define REPEAT(bytes, T, SPAN) \
static void repeat_##bytes(void *dst, const void *src, size_t rows, size_t cols) \
{ \
	const size_t lanes = 64 / (bytes), n = ((SPAN) * cols + lanes - 1) / lanes; \
	const unsigned part = (unsigned)(65536 / cols + 1); \
	__m512i place[SIM_LEAST_FILL]; \
	const T *from = src; \
	T *to = dst; \
\
	for (size_t k = 0; k < n; k++) \
		place[k] = quotients_##bytes((unsigned)(k * lanes), part); \
	for (; rows >= (SPAN) && rows * cols >= n * lanes; rows -= (SPAN), from += (SPAN)) { \
		const __m512i x = LOAD_##bytes(first(SPAN, SPAN), from); \
\
		for (size_t k = 0; k < n; k++) \
			_mm512_storeu_si512(to + k * lanes, PICK_##bytes(place[k], x)); \
		to += (SPAN) * cols; \
	} \
	while (rows) { \
		const size_t few = rows < (SPAN) ? rows : (SPAN); \
		const __m512i x = LOAD_##bytes(first(few, SPAN), from); \
\
		for (size_t k = 0; k * lanes < few * cols; k++) \
			STORE_##bytes(to + k * lanes, first(few * cols - k * lanes, lanes), \
				      PICK_##bytes(place[k], x)); \
		to += few * cols; \
		from += few; \
		rows -= few; \
	} \
}
REPEAT(1, uint8_t, 16)
REPEAT(2, uint16_t, 32)
REPEAT(4, uint32_t, 16)
REPEAT(8, uint64_t, 8)
sim_repeat_fn *const sim_wide_repeat_avx512[4] = { repeat_1, repeat_2, repeat_4, repeat_8 };

/* Which element of which array is where in register k of those that 16 elements each of n make. */
struct turn { __m512i of_two; __m512i of_one; __mmask16 third, fourth; };

static inline struct turn turn_of(unsigned k, unsigned n)
{
	const __m512i all = _mm512_add_epi32(_mm512_set1_epi32((int)(16 * k)), PLACES(1));
	const __m512i i = quotients_4(16 * k, 65536 / n + 1);
	const __m512i times = _mm512_mullo_epi32(i, _mm512_set1_epi32((int)n));
	const __m512i which = _mm512_sub_epi32(all, times);

	return (struct turn){
		_mm512_add_epi32(i, _mm512_slli_epi32(which, 4)), i,
		_mm512_cmpeq_epi32_mask(which, _mm512_set1_epi32(2)),
		_mm512_cmpeq_epi32_mask(which, _mm512_set1_epi32(3)),
	};
}

static inline __attribute__((always_inline)) void
zip(uint32_t *to, const void *const *values, size_t n_each, const unsigned n)
{
	struct turn t[SIM_ZIP_MOST];
	size_t i = 0;

	for (unsigned k = 0; k < n; k++)
		t[k] = turn_of(k, n);
	for (; i < n_each; i += 16, to += 16 * n) {
		const __mmask16 few = (__mmask16)first(n_each - i, 16);
		__m512i v[SIM_ZIP_MOST];

		for (unsigned k = 0; k < n; k++)
			v[k] = _mm512_maskz_loadu_epi32(few, (const uint32_t *)values[k] + i);
		for (unsigned k = 0; k < n; k++) {
			__m512i x = _mm512_permutex2var_epi32(v[0], t[k].of_two, v[1]);

			if (n > 2)
				x = _mm512_mask_permutexvar_epi32(x, t[k].third, t[k].of_one, v[2]);
			if (n > 3)
				x = _mm512_mask_permutexvar_epi32(x, t[k].fourth, t[k].of_one,
								  v[3]);
			if (n_each - i >= 16)
				_mm512_storeu_si512(to + 16 * k, x);
			else if ((n_each - i) * n > 16 * k)
				_mm512_mask_storeu_epi32(to + 16 * k, (__mmask16)first(
					(n_each - i) * n - 16 * k, 16), x);
		}
	}
}

static void zip_all(void *to, const void *const *values, unsigned n, size_t n_each)
{
	switch (n) {
	case 2: zip(to, values, n_each, 2); break;
	case 3: zip(to, values, n_each, 3); break;
	default: zip(to, values, n_each, 4); break;
	}
}
sim_zip_fn *const sim_wide_zip_avx512 = zip_all;

/*
 * The larger or the smaller ones of short rows, 16 of which go at a time, one in each lane.
 * Elements of bf16 are widened to f32, whose upper half they are.
 */
#define INLINE static inline __attribute__((always_inline))

struct picked { __m512i value, where; };

INLINE void pick_column(struct picked *p, __m512i y, uint32_t k, const unsigned elem,
			const bool more)
{
	__mmask16 is_worse, is_other, is_number;
	__m512 x = _mm512_castsi512_ps(p->value), next = _mm512_castsi512_ps(y);

	if (elem == ELEM_S32) {
		is_worse = is_other = more ? _mm512_cmpgt_epi32_mask(y, p->value) :
					     _mm512_cmplt_epi32_mask(y, p->value);
	} else {
		is_number = _mm512_cmp_ps_mask(x, x, _CMP_ORD_Q);
		is_worse = more ? _mm512_mask_cmp_ps_mask(is_number, x, next, _CMP_NGE_UQ) :
				  _mm512_mask_cmp_ps_mask(is_number, x, next, _CMP_NLE_UQ);
		is_other = more ? _mm512_mask_cmp_ps_mask(is_number, x, next, _CMP_NGT_UQ) :
				  _mm512_mask_cmp_ps_mask(is_number, x, next, _CMP_NLT_UQ);
	}
	p->value = _mm512_mask_mov_epi32(p->value, is_other, y);
	p->where = _mm512_mask_mov_epi32(p->where, is_worse, _mm512_set1_epi32((int32_t)k));
}

INLINE __m512i widen_16(__m256i x)
{
	return _mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16);
}

INLINE __m512i load_lanes(const char *p, const unsigned elem)
{
	return elem == ELEM_BF16 ? widen_16(_mm256_loadu_si256((const void *)p)) :
				   _mm512_loadu_si512(p);
}

/* 4 elements of each of 4 rows, `step` bytes apart. */
INLINE __m512i load_quarters(const char *p, int64_t step, const unsigned elem)
{
	__m512i x;

	if (elem == ELEM_BF16) {
		__m128i low = _mm_unpacklo_epi64(_mm_loadl_epi64((const void *)p),
						 _mm_loadl_epi64((const void *)(p + step)));
		__m128i high = _mm_unpacklo_epi64(_mm_loadl_epi64((const void *)(p + 2 * step)),
						  _mm_loadl_epi64((const void *)(p + 3 * step)));

		return widen_16(_mm256_set_m128i(high, low));
	}
	x = _mm512_castsi128_si512(_mm_loadu_si128((const void *)p));
	x = _mm512_inserti32x4(x, _mm_loadu_si128((const void *)(p + step)), 1);
	x = _mm512_inserti32x4(x, _mm_loadu_si128((const void *)(p + 2 * step)), 2);
	return _mm512_inserti32x4(x, _mm_loadu_si128((const void *)(p + 3 * step)), 3);
}

/* Lanes whose elements, `cols` apart from column j on, are in pair q of 16 rows' registers. */
INLINE __mmask16 in_pair(const unsigned cols, const unsigned j, const unsigned q)
{
	unsigned begin = (32 * q + cols - 1 - j) / cols, end = (32 * q + 31 + cols - j) / cols;

	return (__mmask16)((1u << (end < 16 ? end : 16)) - (1u << begin));
}

/* 16 rows that follow one another, of a number of columns that the compiler knows. */
INLINE void pick_dense(struct picked *p, const char *y, const uint32_t *k, const unsigned cols,
		       const unsigned elem, const bool more)
{
	const unsigned bytes = elem == ELEM_BF16 ? 2 : 4;
	__m512i x[8], place = PLACES((int)cols);

	_Pragma("GCC unroll 8")
	for (unsigned i = 0; i < cols; i++)
		x[i] = load_lanes(y + 16 * i * bytes, elem);
	_Pragma("GCC unroll 8")
	for (unsigned j = 0; j < cols; j++, place = _mm512_add_epi32(place, _mm512_set1_epi32(1))) {
		__m512i column = _mm512_permutex2var_epi32(x[0], place, x[1]);

		_Pragma("GCC unroll 4")
		for (unsigned q = 1; 2 * q < cols; q++)
			column = 2 * q + 1 == cols ?
				_mm512_mask_permutexvar_epi32(column, in_pair(cols, j, q), place,
							      x[2 * q]) :
				_mm512_mask_mov_epi32(column, in_pair(cols, j, q),
					_mm512_permutex2var_epi32(x[2 * q], place, x[2 * q + 1]));
		pick_column(p, column, k[j], elem, more);
	}
}

/* 16 rows of 4 columns or more: 4 at a time, the last of which may be looked at before. */
INLINE void pick_quarters(struct picked *p, const char *y, int64_t step, const uint32_t *k,
			  size_t cols, const unsigned elem, const bool more)
{
	const unsigned bytes = elem == ELEM_BF16 ? 2 : 4;

	for (size_t j = 0; j < cols;) {
		size_t from = j + 4 <= cols ? j : cols - 4;
		__m512i x[4], low[2], high[2], column[4];

		for (unsigned i = 0; i < 4; i++)
			x[i] = load_quarters(y + from * bytes + i * step, 4 * step, elem);
		for (unsigned i = 0; i < 2; i++) {
			low[i] = _mm512_unpacklo_epi32(x[2 * i], x[2 * i + 1]);
			high[i] = _mm512_unpackhi_epi32(x[2 * i], x[2 * i + 1]);
		}
		column[0] = _mm512_unpacklo_epi64(low[0], low[1]);
		column[1] = _mm512_unpackhi_epi64(low[0], low[1]);
		column[2] = _mm512_unpacklo_epi64(high[0], high[1]);
		column[3] = _mm512_unpackhi_epi64(high[0], high[1]);
		_Pragma("GCC unroll 4")
		for (unsigned i = 0; i < 4; i++)
			if (from + i >= j)
				pick_column(p, column[i], k[from + i], elem, more);
		j = from + 4;
	}
}

/* 16 rows, or, of fewer, the first one in each lane that has none. */
INLINE void pick_16(void *value, uint32_t *where, const struct sim_short_rows *r, size_t row,
		    const unsigned elem, const bool more)
{
	const unsigned bytes = elem == ELEM_BF16 ? 2 : 4;
	const char *y = (const char *)r->y + (int64_t)row * r->y_step;
	bool is_dense = r->y_step == (int64_t)(r->cols * bytes);
	struct picked p = { .where = _mm512_set1_epi32((int32_t)*r->i) };
	uint32_t one = 0;

	memcpy((char *)&one + (elem == ELEM_BF16 ? 2 : 0), r->x, bytes);
	p.value = _mm512_set1_epi32((int32_t)one);
	switch (is_dense ? r->cols : 0) {
	case 2: pick_dense(&p, y, r->k, 2, elem, more); break;
	case 3: pick_dense(&p, y, r->k, 3, elem, more); break;
	case 4: pick_dense(&p, y, r->k, 4, elem, more); break;
	case 5: pick_dense(&p, y, r->k, 5, elem, more); break;
	case 6: pick_dense(&p, y, r->k, 6, elem, more); break;
	case 7: pick_dense(&p, y, r->k, 7, elem, more); break;
	default: pick_quarters(&p, y, r->y_step, r->k, r->cols, elem, more);
	}
	_mm512_storeu_si512(where + row, p.where);
	if (elem == ELEM_BF16)
		_mm256_storeu_si256((void *)((uint16_t *)value + row),
				    _mm512_cvtepi32_epi16(_mm512_srli_epi32(p.value, 16)));
	else
		_mm512_storeu_si512((uint32_t *)value + row, p.value);
}

/* Of rows that are not 16 the last ones are done twice; fewer are done as 16, elsewhere. */
INLINE void pick_short(void *value, uint32_t *where, const struct sim_short_rows *r,
		       const unsigned elem, const bool more)
{
	const unsigned bytes = elem == ELEM_BF16 ? 2 : 4;
	char room[16 * SIM_SHORT_ROW_MOST * 4];
	struct sim_short_rows few = *r;
	uint32_t values[16], places[16];

	for (size_t row = 0; row + 16 <= r->rows; row += 16)
		pick_16(value, where, r, row, elem, more);
	if (r->rows >= 16 && r->rows % 16)
		pick_16(value, where, r, r->rows - 16, elem, more);
	if (r->rows >= 16)
		return;
	few.y = room;
	few.y_step = (int64_t)(r->cols * bytes);
	for (size_t row = 0; row < 16; row++)
		memcpy(room + row * r->cols * bytes, (const char *)r->y + r->y_step *
		       (int64_t)(row < r->rows ? row : 0), r->cols * bytes);
	pick_16(values, places, &few, 0, elem, more);
	memcpy(value, values, r->rows * bytes);
	memcpy(where, places, r->rows * sizeof(*where));
}

#define PICK_SHORT(name, elem, more) \
static void name(void *value, uint32_t *where, const struct sim_short_rows *rows) \
{ \
	pick_short(value, where, rows, elem, more); \
}
PICK_SHORT(short_less_f32, ELEM_F32, false)
PICK_SHORT(short_more_f32, ELEM_F32, true)
PICK_SHORT(short_less_s32, ELEM_S32, false)
PICK_SHORT(short_more_s32, ELEM_S32, true)
PICK_SHORT(short_less_bf16, ELEM_BF16, false)
PICK_SHORT(short_more_bf16, ELEM_BF16, true)
#define SHORT_TYPES(which) {{ [ELEM_F32] = short_##which##_f32, [ELEM_S32] = short_##which##_s32, \
			      [ELEM_BF16] = short_##which##_bf16 }}
const struct sim_pick_short_row sim_uop_pick_short_avx512[2] = { SHORT_TYPES(less),
								 SHORT_TYPES(more) };
#endif
