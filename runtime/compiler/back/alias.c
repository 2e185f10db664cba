/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether two walks meet: a common byte is a solution of
 *
 *	sum of i[d] * a.stride[d] - sum of k[d] * b.stride[d] + x = b.offset - a.offset
 *
 * in whole numbers within bounds. Steps of equal size join into one term. Terms are tried
 * from the largest step down; of each only the few multiples count whose rest the smaller
 * steps can reach, so arrays within arrays take one or two tries a dim.
 */
#include <string.h>

#include "runtime/compiler/back/alias.h"

#define MOST ((int64_t)1 << 62)
#define TRIES 512u		/* of a search; then the answer is OVERLAP */

typedef __int128 wide;

struct term { int64_t step; wide count; };	/* k * step, 0 <= k < count */

struct search {
	struct term term[2 * TC_WALK_DIMS];
	wide reach[2 * TC_WALK_DIMS + 1];	/* the most that terms from here on add */
	unsigned n, tries;
	int64_t low, high;			/* bytes of the elements: x */
};

void tc_walk_start(struct tc_walk *w, unsigned binding, unsigned reg, int64_t offset,
		   unsigned bytes)
{
	w->binding = (uint16_t)binding;
	w->reg = (uint8_t)reg;
	w->bytes = (uint8_t)bytes;
	w->is_empty = bytes == 0;
	w->is_unordered = false;
	w->n = 0;
	w->offset = offset;
}

void tc_walk_dim(struct tc_walk *w, int64_t dim, int64_t stride)
{
	int64_t joined;

	if (dim == 0)
		w->is_empty = true;
	if (dim <= 1)
		return;
	if (w->n && !__builtin_mul_overflow(stride, dim, &joined) &&
	    w->stride[w->n - 1] == joined &&
	    !__builtin_mul_overflow(w->dim[w->n - 1], dim, &joined)) {
		w->dim[w->n - 1] = joined;
		w->stride[w->n - 1] = stride;
		return;
	}
	if (w->n == TC_WALK_DIMS) {
		/* More than is kept track of: a walk over everything. */
		w->dim[w->n - 1] = MOST;
		w->stride[w->n - 1] = 1;
		w->is_unordered = true;
		return;
	}
	w->dim[w->n] = dim;
	w->stride[w->n++] = stride;
}

bool tc_walk_span(const struct tc_walk *w, int64_t *lo, int64_t *hi)
{
	int64_t low = w->offset, high, far;

	if (w->is_empty || __builtin_add_overflow(low, (int64_t)w->bytes, &high))
		return false;
	for (unsigned d = 0; d < w->n; d++) {
		if (__builtin_mul_overflow(w->dim[d] - 1, w->stride[d], &far) ||
		    __builtin_add_overflow(far < 0 ? low : high, far, far < 0 ? &low : &high))
			return false;
	}
	*lo = low;
	*hi = high;
	return low >= -MOST && high <= MOST;
}

static bool is_equal(const struct tc_walk *a, const struct tc_walk *b)
{
	return a->offset == b->offset && a->bytes == b->bytes && a->reg == b->reg &&
	       a->n == b->n && !a->is_unordered && !b->is_unordered &&
	       !memcmp(a->dim, b->dim, a->n * sizeof(*a->dim)) &&
	       !memcmp(a->stride, b->stride, a->n * sizeof(*a->stride));
}

/* Adds the dims of one side; *want is moved so that all terms count upwards. */
static void add_terms(struct search *s, const struct tc_walk *w, bool is_taken, wide *want)
{
	for (unsigned d = 0; d < w->n; d++) {
		int64_t step = w->stride[d];
		wide count = w->dim[d];
		unsigned i;

		if (!step)
			continue;
		if ((step < 0) != is_taken)
			*want += (count - 1) * (step < 0 ? -(wide)step : step);
		if (step < 0)
			step = -step;
		for (i = 0; i < s->n && s->term[i].step > step; i++)
			;
		if (i < s->n && s->term[i].step == step) {
			s->term[i].count += count - 1;
			continue;
		}
		memmove(&s->term[i + 1], &s->term[i], (s->n - i) * sizeof(*s->term));
		s->term[i] = (struct term){ step, count };
		s->n++;
	}
}

static wide divide_up(wide a, wide b)
{
	return a > 0 ? (a + b - 1) / b : -(-a / b);
}

static wide divide_down(wide a, wide b)
{
	return a >= 0 ? a / b : -((-a + b - 1) / b);
}

/* Whether the terms from i on can make `want`, give or take x. */
static bool can_meet(struct search *s, unsigned i, wide want)
{
	wide first, last;

	if (want < s->low || want > s->reach[i] + s->high)
		return false;
	if (i == s->n)
		return true;
	first = divide_up(want - s->reach[i + 1] - s->high, s->term[i].step);
	last = divide_down(want - s->low, s->term[i].step);
	if (first < 0)
		first = 0;
	if (last > s->term[i].count - 1)
		last = s->term[i].count - 1;
	for (wide k = first; k <= last; k++)
		if (!s->tries-- || can_meet(s, i + 1, want - k * s->term[i].step)) {
			s->tries = 0;
			return true;
		}
	return false;
}

enum tc_alias tc_alias(const struct tc_walk *a, const struct tc_walk *b)
{
	int64_t alo, ahi, blo, bhi;
	struct search s;
	wide want;

	if (a->binding != b->binding || a->is_empty || b->is_empty)
		return TC_APART;
	if (is_equal(a, b))
		return TC_EQUAL;
	if (a->reg != b->reg || !tc_walk_span(a, &alo, &ahi) || !tc_walk_span(b, &blo, &bhi))
		return TC_OVERLAP;
	if (ahi <= blo || bhi <= alo)
		return TC_APART;
	s.n = 0;
	s.tries = TRIES;
	s.low = 1 - (int64_t)b->bytes;
	s.high = (int64_t)a->bytes - 1;
	want = (wide)b->offset - a->offset;
	add_terms(&s, a, false, &want);
	add_terms(&s, b, true, &want);
	s.reach[s.n] = 0;
	for (unsigned i = s.n; i-- > 0;)
		s.reach[i] = s.reach[i + 1] + (s.term[i].count - 1) * s.term[i].step;
	return can_meet(&s, 0, want) ? TC_OVERLAP : TC_APART;
}
