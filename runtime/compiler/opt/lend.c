/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exchanges of parts that need not be moved: a fusion reads them where the members have them.
 *
 * Requires: elementwise work is in fusions; collectives are tc.exchange. Ensures: an exchange has
 * a second operand if and only if that is *lent*: the result of an exchange of parts at which
 * nothing but one LOOP fusion looks, a part at a time, and whose fusion's results this one hands
 * to all of the same row. By then everybody has read what he was lent, and says so by taking
 * part. Which of them are read in place is emission's to say (tc_is_lent); the others are
 * exchanges as any.
 */
#include "runtime/compiler/ir/ir.h"
#include "runtime/compiler/passes.h"

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
		if (op->op == TC_REDUCE)
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

static bool is_of_one_row(const struct tc_op *a, const struct tc_op *b)
{
	unsigned n, m;
	const int64_t *x = tc_attr_ints(a, "replica_groups", &n);
	const int64_t *y = tc_attr_ints(b, "replica_groups", &m);

	if (n != m || tc_attr_int(a, "group_size", 0) != tc_attr_int(b, "group_size", 0))
		return false;
	for (unsigned i = 0; i < n; i++)
		if (x[i] != y[i])
			return false;
	return true;
}

/* The exchange among the members of `like` that hands v to all; NULL: there is none. */
static struct tc_op *find_handing(const struct tc_value *v, const struct tc_op *like)
{
	for (const struct tc_use *u = v->uses; u; u = u->next) {
		struct tc_op *op = u->user, *below;

		if (op->op == TC_EXCHANGE && tc_attr_int(op, "is_same", 0) &&
		    op->n_operands == 1 && op->block == like->block && is_of_one_row(op, like))
			return op;
		below = op->op == TC_RESHAPE ? find_handing(tc_out(op, 0), like) : NULL;
		if (below)
			return below;
	}
	return NULL;
}

static void lend(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_op *fusion = tc_attr_int(op, "is_same", 0) ? NULL : find_fusion(tc_out(op, 0));
	struct tc_op *handing = NULL;

	for (unsigned i = 0; fusion && !handing && i < fusion->n_results; i++)
		handing = find_handing(tc_out(fusion, i), op);
	if (handing)
		tc_set_operands(c, handing, 2, (struct tc_value *[]){ tc_in(handing, 0),
								      tc_out(op, 0) });
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
