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
	unsigned n;		/* dims of more than one element, outermost first */
	int64_t offset;
	int64_t dim[TC_WALK_DIMS], stride[TC_WALK_DIMS];
};

enum tc_alias {
	TC_APART,		/* no byte in common */
	TC_EQUAL,		/* element by element the same memory, in the same order */
	TC_OVERLAP,		/* anything else, or not known */
};

/* Starts a walk of one element at an offset. */
void tc_walk_start(struct tc_walk *w, unsigned binding, unsigned reg, int64_t offset,
		   unsigned bytes);
/* Adds an inner dim. Neighbours that walk memory as one become one. */
void tc_walk_dim(struct tc_walk *w, int64_t dim, int64_t stride);
/* The bytes that a walk touches lie in [*lo, *hi) of the binding, plus its register.
 * false: there are none, or they pass 2^62. */
bool tc_walk_span(const struct tc_walk *w, int64_t *lo, int64_t *hi);
/* Exact for walks without registers or with the same one, unless the search for a common
 * byte takes too long; never APART or EQUAL wrongly. Both walks must run over the same
 * elements (in whatever dims) for EQUAL to mean something. */
enum tc_alias tc_alias(const struct tc_walk *a, const struct tc_walk *b);

#endif
