/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TC_BACK_ALIAS_H
#define TC_BACK_ALIAS_H
/*
 * Whether two accesses to memory meet. What places results (plan.c and the rules) and
 * what checks the finished code (verify.c) ask the same function.
 *
 * An access is a walk: element i of an array of `dim` lies at offset + r[reg] + the sum
 * of i[d] * stride[d] of a binding. Bindings are apart from each other: the runtime gives
 * each memory of its own.
 */
#include <stdbool.h>
#include <stdint.h>

#define TC_WALK_DIMS 48		/* a value's 32 dims, or an operand's 8 and its ranges */

struct tc_walk {
	uint16_t binding;
	uint8_t reg;		/* added to every address; 0: none */
	uint8_t bytes;		/* of an element */
	bool is_empty;		/* no elements: apart from everything */
	bool is_unordered;	/* a set of addresses, in no order: equal to nothing */
	bool is_far;		/* `below` or `above` passes 2^63 */
	unsigned n;		/* dims of more than one element, outermost first */
	int64_t offset;
	int64_t below, above;	/* from `offset` to the lowest byte (0 or less) and behind
				 * the highest one */
	int64_t dim[TC_WALK_DIMS], stride[TC_WALK_DIMS];
};

enum tc_alias {
	TC_APART,		/* no byte in common */
	TC_EQUAL,		/* element by element the same memory, in the same order */
	TC_OVERLAP,		/* anything else, or not known */
};

/* Starts a walk of one element at an offset. These three are here because every operand of
 * every instruction is made a walk, often only for its span. */
static inline void tc_walk_start(struct tc_walk *w, unsigned binding, unsigned reg,
				 int64_t offset, unsigned bytes)
{
	w->binding = (uint16_t)binding;
	w->reg = (uint8_t)reg;
	w->bytes = (uint8_t)bytes;
	w->is_empty = bytes == 0;
	w->is_unordered = false;
	w->is_far = false;
	w->n = 0;
	w->offset = offset;
	w->below = 0;
	w->above = bytes;
}

/* Adds an inner dim. Neighbours that walk memory as one become one. */
static inline void tc_walk_dim(struct tc_walk *w, int64_t dim, int64_t stride)
{
	int64_t joined, far, *side;

	if (dim <= 1) {
		w->is_empty |= dim == 0;
		return;
	}
	side = stride < 0 ? &w->below : &w->above;
	if (__builtin_mul_overflow(dim - 1, stride, &far) ||
	    __builtin_add_overflow(*side, far, side))
		w->is_far = true;
	if (w->n && !__builtin_mul_overflow(stride, dim, &joined) &&
	    w->stride[w->n - 1] == joined &&
	    !__builtin_mul_overflow(w->dim[w->n - 1], dim, &joined)) {
		w->dim[w->n - 1] = joined;
		w->stride[w->n - 1] = stride;
		return;
	}
	if (w->n == TC_WALK_DIMS) {
		/* More than is kept track of: a walk over everything. */
		w->dim[w->n - 1] = INT64_MAX;
		w->stride[w->n - 1] = 1;
		w->is_unordered = w->is_far = true;
		return;
	}
	w->dim[w->n] = dim;
	w->stride[w->n++] = stride;
}

/* The bytes that a walk touches lie in [*lo, *hi) of the binding, plus its register.
 * false: there are none, or they pass 2^62. */
static inline bool tc_walk_span(const struct tc_walk *w, int64_t *lo, int64_t *hi)
{
	const int64_t most = (int64_t)1 << 62;
	int64_t low, high;

	if (w->is_empty || w->is_far || __builtin_add_overflow(w->offset, w->below, &low) ||
	    __builtin_add_overflow(w->offset, w->above, &high))
		return false;
	*lo = low;
	*hi = high;
	return low >= -most && high <= most;
}

/* Exact for walks without registers or with the same one, unless the search for a common
 * byte takes too long; never APART or EQUAL wrongly. Both walks must run over the same
 * elements (in whatever dims) for EQUAL to mean something. */
enum tc_alias tc_alias(const struct tc_walk *a, const struct tc_walk *b);

#endif
