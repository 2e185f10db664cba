/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elementwise work that is better done along other dims first: a part of the pass simplify.
 * Constants, iotas and broadcasts turn for nothing.
 */
#include "runtime/compiler/opt/simpler.h"

#include "runtime/compiler/opt/build.h"
#include "runtime/compiler/opt/fuse.h"

#define MOST 32		/* ops between the two */

/* What is turned back: dim d of the new values is dim to[d] of those there are. */
struct turn {
	struct tc_build b;
	const struct tc_block *block;
	const int64_t *to;
	unsigned rank, n_ops;
	unsigned cancelled, added;	/* moves */
};

static bool is_turned_back(const struct turn *t, const struct tc_op *op)
{
	unsigned n;
	const int64_t *from = tc_attr_ints(op, "permutation", &n);

	for (unsigned d = 0; d < n; d++)
		if (from[t->to[d]] != d)
			return false;
	return true;
}

/* The dim of the new values that dim d of those there are becomes. */
static unsigned new_dim(const struct turn *t, int64_t d)
{
	unsigned k = 0;

	while (t->to[k] != d)
		k++;
	return k;
}

static bool keeps_order(const struct turn *t, const struct tc_op *broadcast)
{
	unsigned n;
	const int64_t *dims = tc_attr_ints(broadcast, "broadcast_dimensions", &n);

	for (unsigned i = 1; i < n; i++)
		if (new_dim(t, dims[i - 1]) > new_dim(t, dims[i]))
			return false;
	return true;
}

/* Whether one op alone looks at v, be it twice. */
static bool has_one_user(const struct tc_value *v)
{
	for (const struct tc_use *u = v->uses; u; u = u->next)
		if (u->user != v->uses->user)
			return false;
	return v->uses && v->uses->user->block == v->def->block;
}

static bool is_work(const struct turn *t, const struct tc_value *v)
{
	const struct tc_op *op = v->def;

	return op && tc_has_trait(op, 'e') && op->n_operands && op->n_results == 1 &&
	       !op->n_regions && op->block == t->block && has_one_user(v);
}

/* Whether v can be had turned back; counts the moves. */
static bool can_turn(struct turn *t, const struct tc_value *v)
{
	const struct tc_op *op = v->def;

	if (v->type->rank != t->rank)
		return !v->type->rank;
	if (!op)
		return ++t->added;
	if (tc_splat_element(v) || op->op == TC_IOTA)
		return true;
	if (op->op == TC_BROADCAST_IN_DIM)
		return keeps_order(t, op);
	if (op->op == TC_TRANSPOSE)
		return is_turned_back(t, op) && ++t->cancelled;
	if (!is_work(t, v) || ++t->n_ops > MOST)
		return false;
	for (unsigned i = 0; i < op->n_operands; i++)
		if (!can_turn(t, tc_in(op, i)))
			return false;
	return true;
}

static const struct tc_type *turned_type(const struct turn *t, const struct tc_type *type)
{
	int64_t dim[TC_MAX_RANK];

	for (unsigned d = 0; d < t->rank; d++)
		dim[d] = type->dim[t->to[d]];
	return tc_tensor(t->b.c, (enum elem)type->elem, t->rank, dim);
}

static struct tc_value *turned_broadcast(const struct turn *t, const struct tc_op *op)
{
	int64_t to[TC_MAX_RANK];
	unsigned n;
	const int64_t *dims = tc_attr_ints(op, "broadcast_dimensions", &n);

	for (unsigned i = 0; i < n; i++)
		to[i] = new_dim(t, dims[i]);
	return tc_build_broadcast(&t->b, tc_in(op, 0), turned_type(t, op->results[0].type), to);
}

static struct tc_value *turned(const struct turn *t, struct tc_value *v)
{
	const struct tc_op *op = v->def;
	struct tc_value *in[TC_MAX_RANK];
	struct tc_value *made;

	if (v->type->rank != t->rank)
		return v;
	if (!op)
		return tc_build_transpose(&t->b, v, t->to);
	if (tc_splat_element(v))
		return tc_splat(t->b.c, t->b.before, turned_type(t, v->type), tc_splat_element(v));
	if (op->op == TC_IOTA)
		return tc_build_iota(&t->b, turned_type(t, v->type),
				     new_dim(t, tc_attr_int(op, "iota_dimension", 0)));
	if (op->op == TC_BROADCAST_IN_DIM)
		return turned_broadcast(t, op);
	if (op->op == TC_TRANSPOSE)
		return tc_in(op, 0);
	for (unsigned i = 0; i < op->n_operands; i++)
		in[i] = turned(t, tc_in(op, i));
	made = tc_build(&t->b, (enum tc_opcode)op->op, turned_type(t, v->type), op->n_operands, in);
	for (unsigned i = 0; i < op->n_attrs; i++)
		tc_set_attr(t->b.c, made->def, op->attrs[i]);
	made->def->where = op->where;
	return made;
}

/* Work on transposed arrays that is transposed back, as (x.T + y.T).T, is done on the arrays as
 * they were, if that takes no more moves than before. */
bool tc_cancel_turns(struct tc_ctx *c, struct tc_op *op)
{
	struct turn t = { .b = tc_build_at(c, op), .block = op->block };

	if (op->op != TC_TRANSPOSE || !is_work(&t, tc_in(op, 0)))
		return false;
	t.to = tc_attr_ints(op, "permutation", &t.rank);
	if (!can_turn(&t, tc_in(op, 0)) || !t.cancelled || t.added > t.cancelled)
		return false;
	tc_replace_uses(tc_out(op, 0), turned(&t, tc_in(op, 0)));
	tc_erase(op);
	return true;
}

enum { MANY_ROWS = 1024, SHORT_ROW = 256 };

/* Whether op folds rows in an order that does not show in its bits. */
static bool folds_in_any_order(const struct tc_op *op)
{
	switch (tc_simple_reduce(op)) {
	case TC_AND: case TC_OR: case TC_XOR: case TC_MAXIMUM: case TC_MINIMUM:
		return elem_class(op->results[0].type->elem) != ELEM_CLASS_COMPLEX;
	case TC_ADD: case TC_MULTIPLY:
		return tc_is_integer(op->results[0].type);
	default:
		return false;
	}
}

/*
 * All of some numbers with all of a few others, folded along the few, as numpy's isin and
 * (x[:, None] < y).sum(1) are: many short rows, which nobody has in memory. The few come first
 * then, and rows are long.
 */
bool tc_fold_first(struct tc_ctx *c, struct tc_op *op)
{
	struct turn t = { .b = tc_build_at(c, op), .block = op->block };
	int64_t to[TC_MAX_RANK], first = 0;
	const struct tc_type *type;
	const int64_t *dims;
	unsigned n;

	if (op->op != TC_REDUCE || op->n_results != 1 || !folds_in_any_order(op))
		return false;
	dims = tc_attr_ints(op, "dimensions", &n);
	type = tc_in(op, 0)->type;
	t.rank = type->rank;
	t.to = to;
	if (t.rank < 2 || type->dim[t.rank - 1] > SHORT_ROW ||
	    tc_out(op, 0)->type->count < MANY_ROWS || n != 1 || dims[0] != t.rank - 1)
		return false;
	to[0] = t.rank - 1;
	for (unsigned d = 1; d < t.rank; d++)
		to[d] = d - 1;
	if (!is_work(&t, tc_in(op, 0)) || !can_turn(&t, tc_in(op, 0)) || t.cancelled || t.added)
		return false;
	tc_set_operand(op, 0, turned(&t, tc_in(op, 0)));
	tc_set_ints(c, op, "dimensions", &first, 1);
	return true;
}
