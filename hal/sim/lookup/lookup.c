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
					  int64_t i, int64_t n, int64_t limit) \
	{ \
		for (; i < n; i++) { \
			int64_t v; \
			T element; \
			I x; \
	\
			memcpy(&x, idx + i * (int64_t)sizeof(x), sizeof(x)); \
			v = x; \
			v = v < 0 ? 0 : v > limit ? limit : v; \
			memcpy(&element, table + v * (int64_t)sizeof(T), sizeof(T)); \
			memcpy(dst + i * (int64_t)sizeof(T), &element, sizeof(T)); \
		} \
	}
#define PLAIN(T, I) \
	EACH(T, I) \
	static void lookup_##T##_##I(void *dst, const void *table, const void *idx, int64_t n, \
				     int64_t limit) \
	{ \
		each_##T##_##I(dst, table, idx, 0, n, limit); \
	}
PLAIN(uint8_t, int32_t)
PLAIN(uint8_t, int64_t)
PLAIN(uint8_t, uint32_t)
PLAIN(uint16_t, int32_t)
PLAIN(uint16_t, int64_t)
PLAIN(uint16_t, uint32_t)

#ifdef __AVX512F__
/* COUNT at a time: their indices, brought into the table, and what is there. */
#define VECTOR(T, I, COUNT, indices, inside, elements) \
	EACH(T, I) \
	static void lookup_##T##_##I(void *dst, const void *table, const void *idx, int64_t n, \
				     int64_t limit) \
	{ \
		const uint8_t *from = idx; \
		uint8_t *to = dst; \
		int64_t i = 0; \
	\
		for (; i + (COUNT) <= n; i += (COUNT)) { \
			__auto_type x = indices(from + i * (int64_t)sizeof(I)); \
	\
			x = inside; \
			elements(to + i * (int64_t)sizeof(T)); \
		} \
		each_##T##_##I(dst, table, idx, i, n, limit); \
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
#define WORDS_16(at) _mm512_storeu_si512(at, _mm512_i32gather_epi32(x, table, 4))
#define WORDS_8(at) _mm256_storeu_si256((__m256i *)(void *)(at), \
					_mm512_i64gather_epi32(x, table, 4))
#define LONGS_8(at) _mm512_storeu_si512(at, _mm512_i32gather_epi64(x, table, 8))
#define LONGS_OF_LONG_8(at) _mm512_storeu_si512(at, _mm512_i64gather_epi64(x, table, 8))
VECTOR(uint32_t, int32_t, 16, LOAD_16, SIGNED_16, WORDS_16)
VECTOR(uint32_t, int64_t, 8, LOAD_16, LONG_8, WORDS_8)
VECTOR(uint32_t, uint32_t, 16, LOAD_16, UNSIGNED_16, WORDS_16)
VECTOR(uint64_t, int32_t, 8, LOAD_8, SIGNED_8, LONGS_8)
VECTOR(uint64_t, int64_t, 8, LOAD_16, LONG_8, LONGS_OF_LONG_8)
VECTOR(uint64_t, uint32_t, 8, LOAD_8, UNSIGNED_8, LONGS_8)
#else
PLAIN(uint32_t, int32_t)
PLAIN(uint32_t, int64_t)
PLAIN(uint32_t, uint32_t)
PLAIN(uint64_t, int32_t)
PLAIN(uint64_t, int64_t)
PLAIN(uint64_t, uint32_t)
#endif

sim_lookup_fn *const PATH(sim_lookup)[4][3] = {
	{ lookup_uint8_t_int32_t, lookup_uint8_t_int64_t, lookup_uint8_t_uint32_t },
	{ lookup_uint16_t_int32_t, lookup_uint16_t_int64_t, lookup_uint16_t_uint32_t },
	{ lookup_uint32_t_int32_t, lookup_uint32_t_int64_t, lookup_uint32_t_uint32_t },
	{ lookup_uint64_t_int32_t, lookup_uint64_t_int64_t, lookup_uint64_t_uint32_t },
};
