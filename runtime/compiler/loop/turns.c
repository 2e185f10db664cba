/* SPDX-License-Identifier: Apache-2.0 */
/* How often loops turn, and which rows of arrays their turns take and put (loop.h). */
#include <string.h>

#include "runtime/compiler/loop/loop.h"
#include "runtime/compiler/opt/fuse.h"

#define MOST_TURNS INT32_MAX
enum { STEPS = 4 };	/* from a counter to an index, at most */

static bool is_counter_type(const struct tc_value *v)
{
	return !v->type->rank && (v->type->elem == ELEM_S32 || v->type->elem == ELEM_S64);
}

/* v as it is made in a fusion's region, or given to one. */
static const struct tc_value *through_fusions(const struct tc_value *v)
{
	for (;;) {
		const struct tc_op *op = v->def ? v->def : v->block->region->parent;

		if (!op || op->op != TC_FUSION)
			return v;
		v = v->def ? tc_in(op->regions[0].block->last, (unsigned)(v - op->results)) :
		    tc_in(op, v->index);
	}
}

/* A constant of a counter's type, not too large. */
static bool number_of(const struct tc_value *v, int64_t *x)
{
	const void *element = is_counter_type(v) ? tc_splat_element(through_fusions(v)) : NULL;
	int32_t narrow;

	if (!element)
		return false;
	if (v->type->elem == ELEM_S64) {
		memcpy(x, element, sizeof(*x));
	} else {
		memcpy(&narrow, element, sizeof(narrow));
		*x = narrow;
	}
	return *x >= -MOST_TURNS && *x <= MOST_TURNS;
}

/* What v is of the counter, which is between 0 and MOST_TURNS / 2; of steps some deep. */
static bool line_of(const struct tc_value *v, const struct tc_value *counter, unsigned deep,
		    struct tc_line *l)
{
	const struct tc_op *op;
	struct tc_line a, b;
	int64_t sign;

	v = through_fusions(v);
	op = v->def;
	if (v == counter) {
		*l = (struct tc_line){ 1, 0 };
		return true;
	}
	if (number_of(v, &b.offset)) {
		*l = (struct tc_line){ 0, b.offset };
		return true;
	}
	if (!op || !deep || !is_counter_type(v) ||
	    (op->op != TC_ADD && op->op != TC_SUBTRACT) ||
	    !line_of(tc_in(op, 0), counter, deep - 1, &a) ||
	    !line_of(tc_in(op, 1), counter, deep - 1, &b))
		return false;
	sign = op->op == TC_ADD ? 1 : -1;
	l->factor = a.factor + sign * b.factor;
	l->offset = a.offset + sign * b.offset;
	/* Nor does any step on the way overflow. */
	return l->factor >= -1 && l->factor <= 1 && l->offset >= -MOST_TURNS / 2 &&
	       l->offset <= MOST_TURNS / 2;
}

/* Whether carried value c counts the turns from 0 on by one and they go on only as long as it is
 * below a constant, which `below` compares; how many there are then. */
static bool counts_to(const struct tc_op *loop, unsigned c, const struct tc_op *below,
		      int64_t *turns)
{
	const struct tc_block *cond = loop->regions[0].block, *body = loop->regions[1].block;
	int64_t first;
	struct tc_line next;

	return is_counter_type(tc_in(loop, c)) && number_of(tc_in(loop, c), &first) && !first &&
	       line_of(tc_in(body->last, c), body->args[c], STEPS, &next) && next.factor == 1 &&
	       next.offset == 1 && below && below->op == TC_COMPARE &&
	       tc_attr_int(below, "comparison_direction", -1) == TC_CMP_LT &&
	       through_fusions(tc_in(below, 0)) == cond->args[c] &&
	       number_of(tc_in(below, 1), turns) && *turns >= 1 && *turns <= MOST_TURNS / 2;
}

/* Whether this is all that ends them. */
static bool counts(const struct tc_op *loop, unsigned c, int64_t *turns)
{
	const struct tc_value *goes_on = tc_in(loop->regions[0].block->last, 0);

	return counts_to(loop, c, through_fusions(goes_on)->def, turns);
}

int64_t tc_count_turns(const struct tc_op *loop, unsigned *counter)
{
	int64_t turns;

	for (unsigned i = 0; i < loop->n_operands; i++)
		if (counts(loop, i, &turns)) {
			*counter = i;
			return turns;
		}
	return 0;
}

int64_t tc_turns_of(const struct tc_op *loop)
{
	unsigned counter;

	return tc_count_turns(loop, &counter);
}

int64_t tc_most_turns_of(const struct tc_op *loop)
{
	const struct tc_op *both = tc_in(loop->regions[0].block->last, 0)->def;
	int64_t turns;

	for (unsigned i = 0; i < loop->n_operands; i++)
		if (counts(loop, i, &turns) || (both && both->op == TC_AND &&
		    (counts_to(loop, i, tc_in(both, 0)->def, &turns) ||
		     counts_to(loop, i, tc_in(both, 1)->def, &turns))))
			return turns;
	return 0;
}

const struct tc_op *tc_put_of_turn(const struct tc_op *loop, unsigned j)
{
	const struct tc_block *body = loop->regions[1].block;
	const struct tc_value *v = tc_in(body->last, j);
	const struct tc_op *update = v->def;

	return update && update->op == TC_DYNAMIC_UPDATE_SLICE && update->block == body &&
	       tc_is_used_once(v) && tc_in(update, 0) == body->args[j] &&
	       tc_is_used_once(body->args[j]) && !loop->regions[0].block->args[j]->uses ?
	       update : NULL;
}

/* Frameworks count indices below 0 from the end: what v is if it is not below 0. */
static const struct tc_value *from_start(const struct tc_value *v)
{
	const struct tc_op *op = v->def;
	const struct tc_op *below = op && op->op == TC_SELECT ? tc_in(op, 0)->def : NULL;
	int64_t zero;

	return below && below->op == TC_COMPARE && tc_in(below, 0) == tc_in(op, 2) &&
	       tc_attr_int(below, "comparison_direction", -1) == TC_CMP_LT &&
	       number_of(tc_in(below, 1), &zero) && !zero ? tc_in(op, 2) : v;
}

/* The dim along which `part` is one row of `all`, with all of it along the others; -1: none. */
static int row_dim(const struct tc_type *all, const struct tc_type *part)
{
	int dim = -1;

	for (unsigned d = 0; d < all->rank; d++) {
		if (part->dim[d] == all->dim[d])
			continue;
		if (part->dim[d] != 1 || dim >= 0)
			return -1;
		dim = (int)d;
	}
	return dim;
}

int tc_row_of_turn(const struct tc_op *op, const struct tc_value *counter, int64_t turns,
		   struct tc_line *row)
{
	bool puts = op->op == TC_DYNAMIC_UPDATE_SLICE;
	const struct tc_type *all = tc_in(op, 0)->type;
	int dim = row_dim(all, puts ? tc_in(op, 1)->type : op->results[0].type);
	int64_t least, most;

	if (dim < 0 || !line_of(from_start(tc_in(op, (puts ? 2u : 1u) + (unsigned)dim)), counter,
				STEPS, row))
		return -1;
	least = row->factor < 0 ? row->offset - (turns - 1) : row->offset;
	most = row->factor > 0 ? row->offset + (turns - 1) : row->offset;
	return row->factor && least >= 0 && most < all->dim[dim] ? dim : -1;
}
