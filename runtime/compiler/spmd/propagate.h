/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TC_SPMD_PROPAGATE_H
#define TC_SPMD_PROPAGATE_H
/*
 * From the shardings that a program says to one for every value: as Shardy does it, so that
 * programs written for it come out alike. Shardings only grow: along factors (rule.h) from
 * operands to results and back, by kinds of ops in turn (plain ones first), until none changes.
 *
 * Requires a verified program after `inline` and spmd_prepare(). Changes nothing of it. The
 * answers are the arena's. Errors: INVALID_ARGUMENT for shardings that are malformed;
 * UNIMPLEMENTED for some of two meshes that don't fit on one, at main's border or a manual
 * computation's; a constraint of such a mesh says nothing. Threads as ir.h.
 */
#include "runtime/compiler/spmd/rule.h"
#include "runtime/compiler/spmd/sharding.h"

/* Changes a program into the form that propagation wants: a constant for each of its users, and
 * no calls that say shardings in GSPMD's way. */
void spmd_prepare(struct spmd *s);

struct spmd_shardings {
	struct spmd *s;
	const struct spmd_mesh *mesh;	/* of all of them */
	struct spmd_sharding **of;	/* by value id; NULL: of no tensor */
	uint32_t n_results;
	struct spmd_sharding **result;	/* of main */
	/* Of main's arguments, then its results: as the program says it, if that is over the
	 * devices in another order than the mesh's; else NULL. `of` and `result` are then of the
	 * same places. */
	struct spmd_sharding **ordered;
	bool has_orders;	/* anything is over another order */
};

/* Dims are closed in all answers. Main's arguments and results for which nothing was said
 * divide evenly, by whole axes. */
struct spmd_shardings *spmd_propagate(struct spmd *s);

/*
 * propagate.c goes over the program; below it, factors.c has what happens at one op. Private to
 * spmd/.
 */
enum { TO_RESULTS = 1, TO_OPERANDS = 2, BOTH_WAYS = 3 };

/* An op; or values that data flows between: these have sources as operands and one result; or the
 * two sides of a value that goes into a manual computation or comes out of it, outer and inner:
 * tensors of a rule without factors. */
struct node {
	const struct spmd_rule *rule;
	bool is_side;
	struct spmd_axes manual;	/* of sides */
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
	bool *is_other;		/* by tensor: the step changed it */
};

/* What the dims of all tensors say of their factors, into the desk's cells. */
void spmd_project(const struct node *n, struct desk *desk);
/* Lets shardings through the op as `way` of the desk allows; whether any changed. */
bool spmd_step(const struct node *n, struct desk *desk);

#endif
