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

#define TRIES 512u		/* of a search; then the answer is OVERLAP */

typedef __int128 wide;

struct term { int64_t step; wide count; };	/* k * step, 0 <= k < count */

struct search {
	struct term term[2 * TC_WALK_DIMS];
	wide reach[2 * TC_WALK_DIMS + 1];	/* the most that terms from here on add */
	unsigned n, tries;
	int64_t low, high;			/* bytes of the elements: x */
};

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
