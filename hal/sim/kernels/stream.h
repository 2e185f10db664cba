/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_STREAM_H
#define SIM_STREAM_H
/* Copying past the caches. Private to hal/sim. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>

#define SIM_STREAM_PAGE 4096u
#define SIM_STREAM_PAGES 4u	/* CPUs fetch ahead within a page: so many at a time */
#define SIM_STREAM_AHEAD 256u

static inline void sim_stream_line(uint8_t *to, const uint8_t *from)
{
	__m128i *d = (__m128i *)(void *)to;
	const __m128i *s = (const __m128i *)(const void *)from;
	__m128i part[4];

#pragma GCC unroll 4
	for (unsigned i = 0; i < 4; i++)
		part[i] = _mm_loadu_si128(s + i);
#pragma GCC unroll 4
	for (unsigned i = 0; i < 4; i++)
		_mm_stream_si128(d + i, part[i]);
}
#endif

/*
 * n bytes of operands that do not fit a cache: a plain store would fetch each line before it
 * is written over. Operands may overlap; then what arrives where they do is undefined. All
 * stores are visible to other threads before it returns.
 */
static inline void sim_stream(void *to, const void *from, size_t n)
{
#ifdef __SSE2__
	const size_t pages = SIM_STREAM_PAGES * SIM_STREAM_PAGE;
	uint8_t *d = to;
	const uint8_t *s = from;
	size_t head = -(uintptr_t)d & 63;

	if (n < head + 64) {
		memmove(d, s, n);
		return;
	}
	memmove(d, s, head);
	d += head;
	s += head;
	n -= head;
	for (; n >= pages; d += pages, s += pages, n -= pages)
		for (size_t at = 0; at < SIM_STREAM_PAGE; at += 64)
			for (size_t p = at; p < pages; p += SIM_STREAM_PAGE) {
				__builtin_prefetch(s + p + SIM_STREAM_AHEAD);
				sim_stream_line(d + p, s + p);
			}
	for (; n >= 64; d += 64, s += 64, n -= 64)
		sim_stream_line(d, s);
	memmove(d, s, n);
	_mm_sfence();
#else
	memmove(to, from, n);
#endif
}

#endif
