/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lookups for one path: see path.h. The instruction that loads a vector's elements from places
 * of their own is used where it is wide enough to be faster than loads one by one.
 */
#include <string.h>
#ifdef __AVX512F__
#include <immintrin.h>
#endif

#include "hal/sim/kernels/path.h"
#include "hal/sim/lookup/lookup.h"

/* From element i on. */
#define EACH(T, I) \
	static inline void each_##T##_##I(uint8_t *dst, const uint8_t *table, const uint8_t *idx, \
					  int64_t i, int64_t n, const struct sim_lookup *l) \
	{ \
		const int64_t limit = l->limit, wrap = l->wrap; \
		const bool fills = l->fill; \
		T fill = 0; \
	\
		if (fills) \
			memcpy(&fill, l->fill, sizeof(fill)); \
		for (; i < n; i++) { \
			int64_t v, inside; \
			T element; \
			I x; \
	\
			memcpy(&x, idx + i * (int64_t)sizeof(x), sizeof(x)); \
			v = x; \
			v += v < 0 ? wrap : 0; \
			inside = v < 0 ? 0 : v > limit ? limit : v; \
			memcpy(&element, table + inside * (int64_t)sizeof(T), sizeof(T)); \
			element = fills && v != inside ? fill : element; \
			memcpy(dst + i * (int64_t)sizeof(T), &element, sizeof(T)); \
		} \
	}
#define PLAIN(T, I) \
	EACH(T, I) \
	static void lookup_##T##_##I(void *dst, const void *table, const void *idx, int64_t n, \
				     const struct sim_lookup *l) \
	{ \
		each_##T##_##I(dst, table, idx, 0, n, l); \
	}
PLAIN(uint8_t, int32_t)
PLAIN(uint8_t, int64_t)
PLAIN(uint8_t, uint32_t)
PLAIN(uint16_t, int32_t)
PLAIN(uint16_t, int64_t)
PLAIN(uint16_t, uint32_t)

#ifdef __AVX512F__
/* COUNT at a time: their indices, wrapped, brought into the table, and what is there; `taken` are
 * those that were inside, or all. Neither wrapping nor filling is done where nobody asks for it. */
#define VECTOR(T, I, COUNT, SET, indices, wrapped, is_inside, inside, elements) \
	EACH(T, I) \
	static inline __attribute__((always_inline)) int64_t \
	vectors_##T##_##I(uint8_t *to, const void *table, const uint8_t *from, int64_t n, \
			  const struct sim_lookup *l, const bool wraps, const bool fills) \
	{ \
		const int64_t limit = l->limit, wrap = l->wrap; \
		T element = 0; \
		int64_t i = 0; \
	\
		if (fills) \
			memcpy(&element, l->fill, sizeof(element)); \
		for (; i + (COUNT) <= n; i += (COUNT)) { \
			__auto_type x = indices(from + i * (int64_t)sizeof(I)); \
			__mmask##COUNT taken = (__mmask##COUNT)-1; \
	\
			if (wraps) \
				x = wrapped; \
			if (fills) \
				taken = is_inside; \
			x = inside; \
			elements(to + i * (int64_t)sizeof(T), SET); \
		} \
		return i; \
	} \
	static void lookup_##T##_##I(void *dst, const void *table, const void *idx, int64_t n, \
				     const struct sim_lookup *l) \
	{ \
		int64_t i = l->fill ? vectors_##T##_##I(dst, table, idx, n, l, true, true) : \
			    l->wrap ? vectors_##T##_##I(dst, table, idx, n, l, true, false) : \
				      vectors_##T##_##I(dst, table, idx, n, l, false, false); \
	\
		each_##T##_##I(dst, table, idx, i, n, l); \
	}
#define LOAD_16(at) _mm512_loadu_si512(at)
#define LOAD_8(at) _mm256_loadu_si256((const __m256i *)(const void *)(at))
#define SIGNED_16 _mm512_min_epi32(_mm512_max_epi32(x, _mm512_setzero_si512()), \
				   _mm512_set1_epi32((int32_t)limit))
#define UNSIGNED_16 _mm512_min_epu32(x, _mm512_set1_epi32((int32_t)limit))
#define SIGNED_8 _mm256_min_epi32(_mm256_max_epi32(x, _mm256_setzero_si256()), \
				  _mm256_set1_epi32((int32_t)limit))
#define UNSIGNED_8 _mm256_min_epu32(x, _mm256_set1_epi32((int32_t)limit))
#define LONG_8 _mm512_min_epi64(_mm512_max_epi64(x, _mm512_setzero_si512()), \
				_mm512_set1_epi64(limit))
/* Of what is below 0 and above it the lesser one as if without a sign: what wraps to inside. */
#define WRAPPED_16 _mm512_min_epu32(x, _mm512_add_epi32(x, _mm512_set1_epi32((int32_t)wrap)))
#define WRAPPED_8 _mm256_min_epu32(x, _mm256_add_epi32(x, _mm256_set1_epi32((int32_t)wrap)))
#define WRAPPED_LONG_8 _mm512_min_epu64(x, _mm512_add_epi64(x, _mm512_set1_epi64(wrap)))
#define AS_IT_IS ((void)wrap, x)
#define INSIDE_16 _mm512_cmple_epu32_mask(x, _mm512_set1_epi32((int32_t)limit))
#define INSIDE_8 _mm256_cmple_epu32_mask(x, _mm256_set1_epi32((int32_t)limit))
#define INSIDE_LONG_8 _mm512_cmple_epu64_mask(x, _mm512_set1_epi64(limit))
#define WORDS_16(at, fill) \
	_mm512_storeu_si512(at, _mm512_mask_i32gather_epi32(fill, taken, x, table, 4))
#define WORDS_8(at, fill) \
	_mm256_storeu_si256((__m256i *)(void *)(at), \
			    _mm512_mask_i64gather_epi32(fill, taken, x, table, 4))
#define LONGS_8(at, fill) \
	_mm512_storeu_si512(at, _mm512_mask_i32gather_epi64(fill, taken, x, table, 8))
#define LONGS_OF_LONG_8(at, fill) \
	_mm512_storeu_si512(at, _mm512_mask_i64gather_epi64(fill, taken, x, table, 8))
#define SET_16 _mm512_set1_epi32((int32_t)element)
#define SET_8 _mm256_set1_epi32((int32_t)element)
#define SET_LONG_8 _mm512_set1_epi64((int64_t)element)
VECTOR(uint32_t, int32_t, 16, SET_16, LOAD_16, WRAPPED_16, INSIDE_16, SIGNED_16, WORDS_16)
VECTOR(uint32_t, int64_t, 8, SET_8, LOAD_16, WRAPPED_LONG_8, INSIDE_LONG_8, LONG_8, WORDS_8)
VECTOR(uint32_t, uint32_t, 16, SET_16, LOAD_16, AS_IT_IS, INSIDE_16, UNSIGNED_16, WORDS_16)
VECTOR(uint64_t, int32_t, 8, SET_LONG_8, LOAD_8, WRAPPED_8, INSIDE_8, SIGNED_8, LONGS_8)
VECTOR(uint64_t, int64_t, 8, SET_LONG_8, LOAD_16, WRAPPED_LONG_8, INSIDE_LONG_8, LONG_8,
       LONGS_OF_LONG_8)
VECTOR(uint64_t, uint32_t, 8, SET_LONG_8, LOAD_8, AS_IT_IS, INSIDE_8, UNSIGNED_8, LONGS_8)

/* The indices of `live` points, wrapped and brought into the table, as words; `taken` are those
 * that were inside, or all. */
#define WORDS(I, load, wrapped, is_inside, inside) \
	static inline __attribute__((always_inline)) __m512i \
	indices_##I(const uint8_t *at, __mmask16 live, const struct sim_lookup *l, \
		    const bool wraps, const bool fills, __mmask16 *taken) \
	{ \
		const int64_t limit = l->limit, wrap = l->wrap; \
		__m512i x = load(live, at); \
	\
		if (wraps) \
			x = wrapped; \
		*taken = fills ? is_inside : live; \
		return inside; \
	}
WORDS(int32_t, _mm512_maskz_loadu_epi32, WRAPPED_16, INSIDE_16, SIGNED_16)
WORDS(uint32_t, _mm512_maskz_loadu_epi32, AS_IT_IS, INSIDE_16, UNSIGNED_16)
#undef WORDS

static inline __attribute__((always_inline)) __m256i
longs(const uint8_t *at, __mmask8 live, const struct sim_lookup *l, const bool wraps,
      const bool fills, __mmask8 *taken)
{
	const int64_t limit = l->limit, wrap = l->wrap;
	__m512i x = _mm512_maskz_loadu_epi64(live, at);

	if (wraps)
		x = WRAPPED_LONG_8;
	*taken = fills ? INSIDE_LONG_8 : live;
	return _mm512_cvtepi64_epi32(LONG_8);
}

static inline __attribute__((always_inline)) __m512i
indices_int64_t(const uint8_t *at, __mmask16 live, const struct sim_lookup *l, const bool wraps,
		const bool fills, __mmask16 *taken)
{
	__mmask8 low, high;
	__m256i first = longs(at, (__mmask8)live, l, wraps, fills, &low);
	__m256i second = longs(at + 64, (__mmask8)(live >> 8), l, wraps, fills, &high);

	*taken = (__mmask16)(low | high << 8);
	return _mm512_inserti64x4(_mm512_castsi256_si512(first), second, 1);
}

/* To `to` what is so many bytes behind the table, of `live` points; fill, but for those `taken`. */
static inline void put_uint32_t(uint8_t *to, const uint8_t *table, __m512i at, __mmask16 live,
				__mmask16 taken, uint32_t fill)
{
	__m512i x = _mm512_mask_i32gather_epi32(_mm512_set1_epi32((int32_t)fill), taken & live,
						at, table, 1);

	_mm512_mask_storeu_epi32(to, live, x);
}

static inline void put_uint64_t(uint8_t *to, const uint8_t *table, __m512i at, __mmask16 live,
				__mmask16 taken, uint64_t fill)
{
	__m512i other = _mm512_set1_epi64((int64_t)fill);

	taken &= live;
	_mm512_mask_storeu_epi64(to, (__mmask8)live, _mm512_mask_i32gather_epi64(
			other, (__mmask8)taken, _mm512_castsi512_si256(at), table, 1));
	_mm512_mask_storeu_epi64(to + 64, (__mmask8)(live >> 8), _mm512_mask_i32gather_epi64(
			other, (__mmask8)(taken >> 8), _mm512_extracti64x4_epi64(at, 1), table, 1));
}

/* As parts of words, which never go beyond a page. */
static inline __m512i parts(const uint8_t *table, __m512i at, __mmask16 taken, uint32_t fill)
{
	uintptr_t odd = (uintptr_t)table % 4;
	__m512i word, within;

	at = _mm512_add_epi32(at, _mm512_set1_epi32((int32_t)odd));
	within = _mm512_slli_epi32(_mm512_and_si512(at, _mm512_set1_epi32(3)), 3);
	at = _mm512_andnot_si512(_mm512_set1_epi32(3), at);
	word = _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), taken, at, table - odd, 1);
	return _mm512_mask_srlv_epi32(_mm512_set1_epi32((int32_t)fill), taken, word, within);
}

static inline void put_uint8_t(uint8_t *to, const uint8_t *table, __m512i at, __mmask16 live,
			       __mmask16 taken, uint8_t fill)
{
	_mm512_mask_cvtepi32_storeu_epi8(to, live, parts(table, at, taken & live, fill));
}

static inline void put_uint16_t(uint8_t *to, const uint8_t *table, __m512i at, __mmask16 live,
				__mmask16 taken, uint16_t fill)
{
	_mm512_mask_cvtepi32_storeu_epi16(to, live, parts(table, at, taken & live, fill));
}

#define FROM(T, I) \
	static inline __attribute__((always_inline)) void \
	some_##T##_##I(uint8_t *to, const uint8_t *table, const int32_t *from, const uint8_t *idx, \
		       __mmask16 live, const struct sim_lookup *l, const bool wraps, \
		       const bool fills, T fill) \
	{ \
		__mmask16 taken; \
		__m512i at = indices_##I(idx, live, l, wraps, fills, &taken); \
	\
		at = _mm512_mullo_epi32(at, _mm512_set1_epi32((int32_t)l->step)); \
		at = _mm512_add_epi32(at, _mm512_maskz_loadu_epi32(live, from)); \
		put_##T(to, table, at, live, taken, fill); \
	} \
	static inline __attribute__((always_inline)) void \
	all_##T##_##I(uint8_t *to, const uint8_t *table, const int32_t *from, const uint8_t *idx, \
		      int64_t n, const struct sim_lookup *l, const bool wraps, const bool fills) \
	{ \
		const struct sim_lookup own = *l;	/* stores might be to l */ \
		int64_t i = 0; \
		T fill = 0; \
	\
		if (fills) \
			memcpy(&fill, l->fill, sizeof(fill)); \
		for (; i + 16 <= n; i += 16) \
			some_##T##_##I(to + i * (int64_t)sizeof(T), table, from + i, \
				       idx + i * (int64_t)sizeof(I), (__mmask16)-1, &own, wraps, \
				       fills, fill); \
		if (i < n) \
			some_##T##_##I(to + i * (int64_t)sizeof(T), table, from + i, \
				       idx + i * (int64_t)sizeof(I), \
				       (__mmask16)((1u << (n - i)) - 1), &own, wraps, fills, \
				       fill); \
	} \
	static void from_##T##_##I(void *dst, const void *table, const int32_t *from, \
				   const void *idx, int64_t n, const struct sim_lookup *l) \
	{ \
		if (l->fill) \
			all_##T##_##I(dst, table, from, idx, n, l, true, true); \
		else if (l->wrap) \
			all_##T##_##I(dst, table, from, idx, n, l, true, false); \
		else \
			all_##T##_##I(dst, table, from, idx, n, l, false, false); \
	}
#define FROMS(T) FROM(T, int32_t) FROM(T, int64_t) FROM(T, uint32_t)
FROMS(uint8_t)
FROMS(uint16_t)
FROMS(uint32_t)
FROMS(uint64_t)
#define BY_FROM(T) { from_##T##_int32_t, from_##T##_int64_t, from_##T##_uint32_t }
#else
PLAIN(uint32_t, int32_t)
PLAIN(uint32_t, int64_t)
PLAIN(uint32_t, uint32_t)
PLAIN(uint64_t, int32_t)
PLAIN(uint64_t, int64_t)
PLAIN(uint64_t, uint32_t)
#define BY_FROM(T) { NULL }
#endif

/* ---- by places ---- */

/* With a step that the compiler knows. */
#define ADD(I, below) \
	static inline __attribute__((always_inline)) void \
	add_##I(int64_t *place, unsigned n, const uint8_t *idx, const int64_t idx_step, \
		const struct isa_index c) \
	{ \
		const int64_t limit = c.limit; \
	\
		for (unsigned i = 0; i < n; i++) { \
			int64_t v; \
			I x; \
	\
			memcpy(&x, idx + i * idx_step, sizeof(x)); \
			v = (int64_t)x; \
			v += (below) ? c.wrap : 0; \
			v = (below) ? 0 : v < 0 || v > limit ? limit : v; \
			place[i] += v * c.step; \
		} \
	} \
	static void any_##I(int64_t *place, unsigned n, const uint8_t *idx, int64_t idx_step, \
			    struct isa_index c) \
	{ \
		if (idx_step == sizeof(I)) \
			add_##I(place, n, idx, sizeof(I), c); \
		else if (idx_step == 2 * sizeof(I)) \
			add_##I(place, n, idx, 2 * sizeof(I), c); \
		else if (idx_step == 3 * sizeof(I)) \
			add_##I(place, n, idx, 3 * sizeof(I), c); \
		else \
			add_##I(place, n, idx, idx_step, c); \
	}
#define EACH_INDEX(DO) \
	DO(int8_t, v < 0) DO(int16_t, v < 0) DO(int32_t, v < 0) DO(int64_t, v < 0) \
	DO(uint8_t, false) DO(uint16_t, false) DO(uint32_t, false) DO(uint64_t, false)
EACH_INDEX(ADD)

/* The largest index without a sign is above every limit as one with a sign is below 0. */
#define MARK(I, below) \
	static inline __attribute__((always_inline)) bool \
	mark_##I(uint8_t *outside, unsigned n, const uint8_t *idx, const int64_t idx_step, \
		 const struct isa_index c) \
	{ \
		const uint64_t limit = (uint64_t)c.limit; \
		uint8_t any = 0; \
	\
		for (unsigned i = 0; i < n; i++) { \
			uint8_t is_out; \
			int64_t v; \
			I x; \
	\
			memcpy(&x, idx + i * idx_step, sizeof(x)); \
			v = (int64_t)x; \
			v += (below) ? c.wrap : 0; \
			is_out = (uint64_t)v > limit; \
			outside[i] |= is_out; \
			any |= is_out; \
		} \
		return any; \
	} \
	static bool marked_##I(uint8_t *outside, unsigned n, const uint8_t *idx, \
			       int64_t idx_step, struct isa_index c) \
	{ \
		return idx_step == sizeof(I) ? mark_##I(outside, n, idx, sizeof(I), c) : \
					       mark_##I(outside, n, idx, idx_step, c); \
	}
EACH_INDEX(MARK)

static bool mark(uint8_t *outside, unsigned n, const uint8_t *idx, int64_t idx_step,
		 unsigned elem, struct isa_index c)
{
	switch (elem) {
	case ELEM_S8: return marked_int8_t(outside, n, idx, idx_step, c);
	case ELEM_S16: return marked_int16_t(outside, n, idx, idx_step, c);
	case ELEM_S32: return marked_int32_t(outside, n, idx, idx_step, c);
	case ELEM_S64: return marked_int64_t(outside, n, idx, idx_step, c);
	case ELEM_U8: return marked_uint8_t(outside, n, idx, idx_step, c);
	case ELEM_U16: return marked_uint16_t(outside, n, idx, idx_step, c);
	case ELEM_U32: return marked_uint32_t(outside, n, idx, idx_step, c);
	default: return marked_uint64_t(outside, n, idx, idx_step, c);
	}
}

static void add(int64_t *place, unsigned n, const uint8_t *idx, int64_t idx_step, unsigned elem,
		struct isa_index c)
{
	switch (elem) {
	case ELEM_S8: any_int8_t(place, n, idx, idx_step, c); break;
	case ELEM_S16: any_int16_t(place, n, idx, idx_step, c); break;
	case ELEM_S32: any_int32_t(place, n, idx, idx_step, c); break;
	case ELEM_S64: any_int64_t(place, n, idx, idx_step, c); break;
	case ELEM_U8: any_uint8_t(place, n, idx, idx_step, c); break;
	case ELEM_U16: any_uint16_t(place, n, idx, idx_step, c); break;
	case ELEM_U32: any_uint32_t(place, n, idx, idx_step, c); break;
	default: any_uint64_t(place, n, idx, idx_step, c);
	}
}

#define FETCH(T, vectors) \
	static void fetch_##T(uint8_t *dst, const uint8_t *table, const int64_t *place, \
			      unsigned n) \
	{ \
		unsigned i = 0; \
	\
		vectors \
		for (; i < n; i++) { \
			T element; \
	\
			memcpy(&element, table + place[i], sizeof(element)); \
			memcpy(dst + i * sizeof(element), &element, sizeof(element)); \
		} \
	}
#ifdef __AVX512F__
#define BY_8(store) \
	for (; i + 8 <= n; i += 8) { \
		__m512i x = _mm512_loadu_si512(place + i); \
	\
		store; \
	}
FETCH(uint32_t, BY_8(_mm256_storeu_si256((__m256i *)(void *)(dst + i * 4),
					 _mm512_i64gather_epi32(x, table, 1))))
FETCH(uint64_t, BY_8(_mm512_storeu_si512(dst + i * 8, _mm512_i64gather_epi64(x, table, 1))))
#else
FETCH(uint32_t,)
FETCH(uint64_t,)
#endif
FETCH(uint8_t,)
FETCH(uint16_t,)

const struct sim_lookup_fns PATH(sim_lookup) = {
	{ { lookup_uint8_t_int32_t, lookup_uint8_t_int64_t, lookup_uint8_t_uint32_t },
	  { lookup_uint16_t_int32_t, lookup_uint16_t_int64_t, lookup_uint16_t_uint32_t },
	  { lookup_uint32_t_int32_t, lookup_uint32_t_int64_t, lookup_uint32_t_uint32_t },
	  { lookup_uint64_t_int32_t, lookup_uint64_t_int64_t, lookup_uint64_t_uint32_t } },
	{ BY_FROM(uint8_t), BY_FROM(uint16_t), BY_FROM(uint32_t), BY_FROM(uint64_t) },
	add, mark, { fetch_uint8_t, fetch_uint16_t, fetch_uint32_t, fetch_uint64_t }
};
