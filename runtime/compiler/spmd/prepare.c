/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What propagation wants of a program.
 *
 * Requires: a verified program after `inline`. Ensures: a constant, an iota or a number spread
 * over dims has one user, so that what one does with it says nothing to another; GSPMD's calls
 * that say shardings are sharding_constraint ops.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/compiler/spmd/propagate.h"

static bool is_cheap(const struct tc_op *op)
{
	return op->op == TC_CONSTANT || op->op == TC_IOTA ||
	       (op->op == TC_BROADCAST_IN_DIM && !tc_in(op, 0)->type->rank);
}

/* Each user but one gets a copy. */
static void copy_for_users(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_use *next;

	for (struct tc_use *u = tc_out(op, 0)->uses; u && u->next; u = next) {
		struct tc_op *copy = tc_clone(c, op, tc_map_new(c));

		next = u->next;
		tc_insert_before(op, copy);
		tc_set_operand(u->user, (unsigned)(u - u->user->operands), tc_out(copy, 0));
	}
}

/* Dims that a call's settings name are open, `unspecified_dims=[0,1]`. */
static void open_dims(struct spmd_sharding *h, const char *settings)
{
	const char *p = settings ? strstr(settings, "unspecified_dims=[") : NULL;

	if (!p)
		return;
	for (p = strchr(p, '['); *p == '[' || *p == ','; p += strspn(p, "0123456789")) {
		unsigned long d = strtoul(++p, NULL, 10);

		if (d < h->rank)
			h->dim[d].is_open = true;
	}
}

static void make_constraint(struct spmd *s, struct tc_op *op)
{
	struct tc_value *in = tc_in(op, 0);
	const struct tc_type *type = tc_out(op, 0)->type;
	const char *text = tc_attr_str(op, "sharding");
	struct spmd_sharding *h = spmd_read(s, op, text, type->rank);
	struct tc_op *made = tc_new(s->c, TC_SHARDING_CONSTRAINT, 1, &in, 1, &type, 0);

	open_dims(h, tc_attr_str(op, "backend_config"));
	made->where = op->where;
	tc_set_str(s->c, made, "sharding", spmd_text(s, h));
	tc_insert_before(op, made);
	tc_replace_uses(tc_out(op, 0), tc_out(made, 0));
	tc_erase(op);
}

static bool is_gspmd(const struct tc_op *op)
{
	const char *target = op->op == TC_CUSTOM_CALL ? tc_attr_str(op, "call_target_name") :
			     NULL;

	return target && !strcmp(target, "Sharding") && tc_attr_str(op, "sharding") &&
	       op->n_operands == 1 && op->n_results == 1 &&
	       tc_in(op, 0)->type == tc_out(op, 0)->type;
}

static void prepare_block(struct spmd *s, struct tc_block *b)
{
	struct tc_op *before;

	/* From the end: copies of what spreads a number make users of the number. */
	for (struct tc_op *op = b->last; op; op = before) {
		for (unsigned k = 0; k < op->n_regions; k++)
			if (op->regions[k].block)
				prepare_block(s, op->regions[k].block);
		before = op->prev;
		if (is_cheap(op))
			copy_for_users(s->c, op);
		else if (is_gspmd(op))
			make_constraint(s, op);
	}
}

void spmd_prepare(struct spmd *s)
{
	prepare_block(s, tc_main(s->c));
}
