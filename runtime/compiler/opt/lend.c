/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exchanges of parts that need not be moved: a fusion reads them where the members have them.
 *
 * Requires: elementwise work is in fusions; collectives are tc.exchange. Ensures: an exchange has
 * more than one operand if and only if the others are *lent*: results of exchanges of parts, of
 * the same rows, at which nothing but one LOOP fusion before it looks, a part at a time. Who takes
 * part in it has read what he was lent, so from its end on that may be written over. Which of them
 * are read in place is emission's to say (tc_is_lent); the others are exchanges as any.
 */
#include "runtime/compiler/ir/ir.h"
#include "runtime/compiler/opt/fuse.h"
#include "runtime/compiler/passes.h"

#define MOST_OPS 100	/* for which memory is kept as it is */

/* Whether the op gives one part of its operand, whole. */
static bool is_part(const struct tc_op *op)
{
	const struct tc_type *from = tc_in(op, 0)->type, *to = op->results[0].type;

	return op->op == TC_SLICE && to->rank == from->rank && to->dim[0] == 1 &&
	       to->count == from->count / from->dim[0];
}

/* The fusion that alone reads v, by reshapes or not; NULL: others do. */
static struct tc_op *only_reader(const struct tc_value *v)
{
	struct tc_op *found = NULL;

	for (const struct tc_use *u = v->uses; u; u = u->next) {
		struct tc_op *by = u->user->op == TC_RESHAPE ?
				   only_reader(tc_out(u->user, 0)) : u->user;

		if (!by || by->op != TC_FUSION || (found && by != found))
			return NULL;
		found = by;
	}
	return found;
}

/* Whether it is point by point what it does. */
static bool is_plain(const struct tc_op *fusion)
{
	if (tc_attr_int(fusion, "kind", 0) != TC_FUSION_LOOP)
		return false;
	for (const struct tc_op *op = fusion->regions[0].block->first; op; op = op->next)
		if (op->op == TC_REDUCE || (op->n_results && tc_is_put_together(tc_out(op, 0))))
			return false;
	return true;
}

/* The fusion that reads all parts of v, one by one. */
static struct tc_op *find_fusion(const struct tc_value *v)
{
	struct tc_op *found = NULL;

	for (const struct tc_use *u = v->uses; u; u = u->next) {
		struct tc_op *by = is_part(u->user) ? only_reader(tc_out(u->user, 0)) : NULL;

		if (!by || (found && by != found) || by->block != v->def->block)
			return NULL;
		found = by;
	}
	return found && is_plain(found) ? found : NULL;
}

/* The next one after `fusion` among the members of `like`, if it is near and the program does not
 * stop for the host on the way there; or NULL. */
static struct tc_op *next_meeting(const struct tc_op *fusion, const struct tc_op *like)
{
	struct tc_op *op = like->next;
	bool is_read = false;

	for (unsigned i = 0; op && i < MOST_OPS && op->op != TC_HOST_CALL; i++, op = op->next) {
		if (is_read && op->op == TC_EXCHANGE && op->results[0].type->count &&
		    tc_has_same_groups(op, like))
			return op;
		is_read |= op == fusion;
	}
	return NULL;
}

static void lend(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_op *fusion = tc_attr_int(op, "is_same", 0) ? NULL : find_fusion(tc_out(op, 0));
	struct tc_op *until = fusion ? next_meeting(fusion, op) : NULL;
	struct tc_value **in;

	if (!until)
		return;
	in = arena_array(&c->arena, until->n_operands + 1, sizeof(*in));
	if (!in)
		tc_fail(c, ERR_RESOURCE_EXHAUSTED, op, "out of memory");
	for (unsigned i = 0; i < until->n_operands; i++)
		in[i] = tc_in(until, i);
	in[until->n_operands] = tc_out(op, 0);
	tc_set_operands(c, until, until->n_operands + 1, in);
}

/* What a text says of it is not believed. */
static void take_back(struct tc_op *op, void *arg)
{
	struct tc_value *in;

	if (op->op != TC_EXCHANGE)
		return;
	in = tc_in(op, 0);
	tc_set_operands(arg, op, 1, &in);
}

static void lend_any(struct tc_op *op, void *arg)
{
	if (op->op == TC_EXCHANGE)
		lend(arg, op);
}

void tc_pass_lend(struct tc_ctx *c)
{
	struct tc_op *func = tc_main(c)->region->parent;

	tc_walk(func, take_back, c);
	if (c->options->direct_bytes)
		tc_walk(func, lend_any, c);
}
