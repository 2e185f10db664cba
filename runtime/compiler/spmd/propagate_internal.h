/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TC_SPMD_PROPAGATE_INTERNAL_H
#define TC_SPMD_PROPAGATE_INTERNAL_H
/*
 * propagate.c goes over the program; below it, factors.c has what happens at one op.
 * Private to spmd/.
 */
#include "runtime/compiler/spmd/propagate.h"
#include "runtime/compiler/spmd/rule.h"

enum { TO_RESULTS = 1, TO_OPERANDS = 2, BOTH_WAYS = 3 };

/* An op, or values that data flows between: these have sources as operands and one result. */
struct node {
	const struct spmd_rule *rule;
	enum spmd_when when;
	bool is_elementwise, has_shared_operand;
	struct spmd_sharding **tensor;	/* operands, then results; NULL: no tensor */
	int64_t *count;			/* elements of each */
};

/* What a tensor's dims say of a factor. */
struct cell {
	bool is_there, is_closed, is_minor;
	struct spmd_axes axes;
	struct spmd_axes rest;	/* of the dim, which the factor has no place for */
};

/* Room for one op at a time. */
struct desk {
	struct cell *cell;	/* [tensor][factor] */
	struct spmd_axes *found;	/* by factor */
	uint16_t *order;
	uint8_t *way;		/* by factor: which of TO_RESULTS, TO_OPERANDS */
};

/* What the dims of all tensors say of their factors, into the desk's cells. */
void spmd_project(const struct node *n, struct desk *desk);
/* Lets shardings through the op as `way` of the desk allows; whether any changed. */
bool spmd_step(const struct node *n, struct desk *desk);

#endif
