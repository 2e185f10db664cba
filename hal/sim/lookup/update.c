/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Updates of short windows for one path: see path.h. Single elements go one by one, larger windows
 * by whole registers.
 */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "hal/sim/kernels/path.h"
#include "hal/sim/kernels/uop_extreme.h"
#include "hal/sim/lookup/lookup.h"
#include "hal/sim/lookup/update.h"

#define SEVERAL 16	/* bytes of a register that every path has */
#define HALF 32		/* bytes of a window of half a line, which are known */

struct pair { uint64_t part[2]; };

/*
 * max_f32() and min_f32() of one pair of numbers, in registers of several, where nothing branches:
 * of numbers that are as good as random a CPU guesses wrongly what they compare to. The instruction
 * that tells zeros apart passes NaNs over, so these are put in behind it; the other one gives its
 * second operand for what is unordered, and for zeros, whose signs both ways round hold together.
 */
#ifdef __AVX512DQ__
#define LONE(name, RANGE) \
static inline float name(float old, float new) \
{ \
	const __m128 x = _mm_set_ss(old), y = _mm_set_ss(new); \
	__m128 r = _mm_range_ss(x, y, RANGE); \
	\
	r = _mm_mask_mov_ps(r, _mm_cmp_ss_mask(y, y, _CMP_UNORD_Q), y); \
	r = _mm_mask_mov_ps(r, _mm_cmp_ss_mask(x, x, _CMP_UNORD_Q), x); \
	return _mm_cvtss_f32(r); \
}
LONE(lone_min, 4)
LONE(lone_max, 5)
#elif defined(__AVX2__)
#define LONE(name, FIND, MIX) \
static inline float name(float old, float new) \
{ \
	const __m128 x = _mm_set_ss(old), y = _mm_set_ss(new); \
	__m128 r = MIX(FIND(x, y), FIND(y, x)); \
	\
	r = _mm_blendv_ps(r, y, _mm_cmpunord_ss(y, y)); \
	r = _mm_blendv_ps(r, x, _mm_cmpunord_ss(x, x)); \
	return _mm_cvtss_f32(r); \
}
LONE(lone_min, _mm_min_ss, _mm_or_ps)
LONE(lone_max, _mm_max_ss, _mm_and_ps)
#else
typedef float several __attribute__((vector_size(16)));
typedef int32_t bits __attribute__((vector_size(16)));
#define LONE(name, LESS, MIX) \
static inline float name(float old, float new) \
{ \
	const several x = { old }, y = { new }; \
	bits is_old = x LESS y, are_same = x == y, is_nan = x != x, r; \
	\
	r = (is_old & (bits)x) | (~is_old & (bits)y); \
	r = (are_same & ((bits)x MIX (bits)y)) | (~are_same & r); \
	r = (is_nan & (bits)x) | (~is_nan & r); \
	return ((several)r)[0]; \
}
LONE(lone_max, >, &)
LONE(lone_min, <, |)
#endif
#define EXTREME_OF(which, x, y) (is_lone ? lone_##which(x, y) : which##_f32(x, y))
#define WIDE_BF16(x) float_of((uint32_t)(x) << 16)

/* n bytes at once. */
#define UPDATE_PART(T, n, result) \
	do { \
		T olds[(n) / sizeof(T)], news[(n) / sizeof(T)]; \
	\
		memcpy(olds, at + c, sizeof(olds)); \
		memcpy(news, from + c, sizeof(news)); \
		_Pragma("GCC unroll 1") /* unrolled, it would not become vectors */ \
		for (size_t e = 0; e < (n) / sizeof(T); e++) { \
			T old = olds[e], new = news[e]; \
			const bool is_lone = false; \
	\
			(void)old, (void)is_lone; \
			news[e] = (result); \
		} \
		memcpy(at + c, news, sizeof(news)); \
	} while (0)

/* `count` elements of type T, side by side, of which `result` is what each becomes: lines or halves
 * of them at once if `part` says so, registers of several, then the rest. */
#define UPDATE_WINDOW(T, result) \
	size_t c = 0, bytes = count * sizeof(T); \
	for (; part == SIM_LINE && bytes - c >= SIM_LINE; c += SIM_LINE) \
		UPDATE_PART(T, SIM_LINE, result); \
	for (; part == HALF && bytes - c >= HALF; c += HALF) \
		UPDATE_PART(T, HALF, result); \
	for (; count > 1 && bytes - c >= SEVERAL; c += SEVERAL) \
		UPDATE_PART(T, SEVERAL, result); \
	for (; c < bytes; c += sizeof(T)) { \
		T old, new; \
		const bool is_lone = true; \
	\
		(void)is_lone; \
		memcpy(&old, at + c, sizeof(old)); \
		memcpy(&new, from + c, sizeof(new)); \
		new = (result); \
		memcpy(at + c, &new, sizeof(new)); \
	}

/* Of a line of points, by indices of type I. Windows of few elements, of a register of several and
 * of half a line have functions of their own: in one with the others they took up to 2.5 times as
 * long. So have single elements of a table without holes, one for all points, by indices side by
 * side, where nothing is left to multiply or to wrap. */
#define SCATTER(name, T, I, result) \
	static inline __attribute__((always_inline)) void \
	each_##name##_##I(const struct sim_update_line *l, int64_t n, struct isa_index comp, \
			  const unsigned count, const unsigned part, const bool is_plain) \
	{ \
		int64_t idx_step = is_plain ? (int64_t)sizeof(I) : l->idx_step; \
		int64_t from_step = l->from_step[0]; \
		int64_t to_step = is_plain ? 0 : l->to_step[0]; \
		int64_t step = is_plain ? (int64_t)sizeof(T) : comp.step; \
		const uint8_t *idx = l->idx, *from = l->from[0]; \
		uint8_t *to = l->to[0]; \
		/* Of its own: stores might be to what they come from. */ \
		const uint64_t limit = (uint64_t)comp.limit; \
		const int64_t wrap = is_plain ? 0 : comp.wrap; \
	\
		for (int64_t i = 0; i < n; i++, from += from_step, to += to_step) { \
			uint8_t *at; \
			int64_t v; \
			I x; \
	\
			memcpy(&x, idx + i * idx_step, sizeof(x)); \
			v = x; \
			v += v < 0 ? wrap : 0; \
			if ((uint64_t)v > limit) \
				continue; \
			at = to + v * step; \
			UPDATE_WINDOW(T, result); \
		} \
	} \
	WINDOWS(lone, name, T, I, 1, 0, false) \
	WINDOWS(plain, name, T, I, 1, 0, true) \
	WINDOWS(two, name, T, I, 2, 0, false) \
	WINDOWS(three, name, T, I, 3, 0, false) \
	WINDOWS(quarter, name, T, I, SEVERAL / sizeof(T), 0, false) \
	WINDOWS(half, name, T, I, HALF / sizeof(T), HALF, false) \
	WINDOWS(some, name, T, I, l->count, 0, false) \
	WINDOWS(lines, name, T, I, l->count, SIM_LINE, false) \
	static void name##_##I(const struct sim_update_line *l, int64_t n, struct isa_index comp) \
	{ \
		bool is_plain = l->idx_step == (int64_t)sizeof(I) && !l->to_step[0] && \
				comp.step == (int64_t)sizeof(T) && !comp.wrap; \
		size_t bytes = l->count * sizeof(T); \
		sim_update_fn *fn = \
			l->count == 1 ? (is_plain ? plain_##name##_##I : lone_##name##_##I) : \
			bytes == SEVERAL ? quarter_##name##_##I : \
			bytes == HALF ? half_##name##_##I : \
			l->count == 2 ? two_##name##_##I : \
			l->count == 3 ? three_##name##_##I : \
			bytes < SIM_LINE ? some_##name##_##I : lines_##name##_##I; \
	\
		fn(l, n, comp); \
	}
/* `count` elements each. */
#define WINDOWS(kind, name, T, I, count, part, is_plain) \
	static __attribute__((noinline)) void \
	kind##_##name##_##I(const struct sim_update_line *l, int64_t n, struct isa_index comp) \
	{ \
		each_##name##_##I(l, n, comp, count, part, is_plain); \
	}
SIM_UPDATES(SCATTER, int32_t)
SIM_UPDATES(SCATTER, int64_t)
SIM_UPDATES(SCATTER, uint32_t)
#undef SCATTER
#undef WINDOWS

/* Windows lie anywhere, so no cache guesses the next one: it is asked for ahead. */
static inline void fetch_hit(const struct sim_update_line *l, const struct sim_hit *h, size_t bytes)
{
	const uint8_t *from = l->from[0] + h->i * l->from_step[0];
	uint8_t *to = l->to[0] + h->i * l->to_step[0] + h->at;

	for (size_t at = 0; at < bytes && at < SIM_FETCHED; at += SIM_LINE) {
		__builtin_prefetch(to + at, 1);
		__builtin_prefetch(from + at);
	}
}

/* Of points whose places are known. */
#define HITS(name, T, I, result) \
	static inline __attribute__((always_inline)) void \
	each_##name##_hit(const struct sim_update_line *l, const struct sim_hit *hits, unsigned n, \
			  const unsigned count, const unsigned part) \
	{ \
		int64_t to_step = l->to_step[0], from_step = l->from_step[0]; \
		const uint8_t *first = l->from[0]; \
		uint8_t *to = l->to[0]; \
	\
		for (unsigned i = 0; i < n; i++) { \
			const uint8_t *from = first + hits[i].i * from_step; \
			uint8_t *at = to + hits[i].i * to_step + hits[i].at; \
	\
			if (part == SIM_LINE && i + SIM_WALK_AHEAD < n) \
				fetch_hit(l, &hits[i + SIM_WALK_AHEAD], count * sizeof(T)); \
			UPDATE_WINDOW(T, result); \
		} \
	} \
	static void name##_##I(const struct sim_update_line *l, const struct sim_hit *hits, \
			       unsigned n) \
	{ \
		if (l->count == 1) \
			each_##name##_hit(l, hits, n, 1, 0); \
		else if (l->count * sizeof(T) < SIM_LINE) \
			each_##name##_hit(l, hits, n, l->count, 0); \
		else \
			each_##name##_hit(l, hits, n, l->count, SIM_LINE); \
	}
SIM_UPDATES(HITS, hits)
#undef HITS
#undef UPDATE_WINDOW
#undef UPDATE_PART

#define LOOP(name, T, I, result) name##_##I,
const struct sim_update_fns PATH(sim_update) = {
	{ { SIM_UPDATES(LOOP, int32_t) }, { SIM_UPDATES(LOOP, int64_t) },
	  { SIM_UPDATES(LOOP, uint32_t) } },
	{ SIM_UPDATES(LOOP, hits) },
};
