/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays that a loop fills need not be filled before it.
 *
 * Frameworks stack what the turns of a scan give: the loop carries an array, of zeros at first,
 * and each turn puts its part where its number says. If the turns are counted, their parts are
 * all there is of the array, and nobody looks at it before the loop has ended, what it begins
 * with may be anything: tc.empty.
 *
 * Those that a text brings are zeros: nothing says that nobody looks at them, and in memory there
 * may be what others left.
 *
 * Requires: a verified module. Ensures: the same results; each tc.empty is one of these.
 */
#include <string.h>

#include "runtime/compiler/opt/build.h"
#include "runtime/compiler/opt/fuse.h"
#include "runtime/compiler/passes.h"

#define MOST_TURNS INT32_MAX
enum { STEPS = 4 };	/* from a counter to an index, at most */

/* factor * counter + offset. */
struct line { int64_t factor, offset; };

static bool is_counter_type(const struct tc_value *v)
{
	return !v->type->rank && (v->type->elem == ELEM_S32 || v->type->elem == ELEM_S64);
}

/* A constant of a counter's type, not too large. */
static bool number_of(const struct tc_value *v, int64_t *x)
{
	const void *element = is_counter_type(v) ? tc_splat_element(v) : NULL;
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
		    struct line *l)
{
	const struct tc_op *op = v->def;
	struct line a, b;
	int64_t sign;

	if (v == counter) {
		*l = (struct line){ 1, 0 };
		return true;
	}
	if (number_of(v, &b.offset)) {
		*l = (struct line){ 0, b.offset };
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
	struct line next;

	return is_counter_type(tc_in(loop, c)) && number_of(tc_in(loop, c), &first) && !first &&
	       line_of(tc_in(body->last, c), body->args[c], STEPS, &next) && next.factor == 1 &&
	       next.offset == 1 && below && below->op == TC_COMPARE &&
	       tc_attr_int(below, "comparison_direction", -1) == TC_CMP_LT &&
	       tc_in(below, 0) == cond->args[c] && number_of(tc_in(below, 1), turns) &&
	       *turns >= 1 && *turns <= MOST_TURNS / 2;
}

/* Whether this is all that ends them. */
static bool counts(const struct tc_op *loop, unsigned c, int64_t *turns)
{
	return counts_to(loop, c, tc_in(loop->regions[0].block->last, 0)->def, turns);
}

int64_t tc_turns_of(const struct tc_op *loop)
{
	int64_t turns;

	for (unsigned i = 0; i < loop->n_operands; i++)
		if (counts(loop, i, &turns))
			return turns;
	return 0;
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

/* The dim along which an update puts one row, and all of it along the others; -1: there is none. */
static int row_dim(const struct tc_op *update)
{
	const struct tc_type *all = tc_in(update, 0)->type, *part = tc_in(update, 1)->type;
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

/* Whether the turns put together all of carried value j, which nobody looks at before. */
static bool is_put_together(const struct tc_op *loop, unsigned j, unsigned c, int64_t turns)
{
	const struct tc_block *body = loop->regions[1].block;
	const struct tc_value *v = tc_in(body->last, j);
	const struct tc_op *update = v->def;
	struct line at;
	int dim;

	if (!update || update->op != TC_DYNAMIC_UPDATE_SLICE || update->block != body ||
	    !tc_is_used_once(v) || tc_in(update, 0) != body->args[j] ||
	    !tc_is_used_once(body->args[j]) || loop->regions[0].block->args[j]->uses)
		return false;
	dim = row_dim(update);
	return dim >= 0 && tc_in(update, 0)->type->dim[dim] == turns &&
	       line_of(from_start(tc_in(update, 2 + (unsigned)dim)), body->args[c], STEPS, &at) &&
	       /* No row that either puts is below 0. */
	       ((at.factor == 1 && at.offset == 0) ||
		(at.factor == -1 && at.offset == turns - 1));
}

static void empty_loop(struct tc_ctx *c, struct tc_op *loop)
{
	struct tc_build b = tc_build_at(c, loop);
	int64_t turns;
	unsigned n = 0;

	while (n < loop->n_operands && !counts(loop, n, &turns))
		n++;
	for (unsigned j = 0; j < loop->n_operands && n < loop->n_operands; j++)
		if (is_put_together(loop, j, n, turns))
			tc_set_operand(loop, j, tc_build(&b, TC_EMPTY, tc_in(loop, j)->type, 0,
							 NULL));
}

static void fill_with_zeros(struct tc_ctx *c, struct tc_op *op)
{
	static const uint8_t zero[16];

	if (!elem_bytes(op->results[0].type->elem))
		tc_fail(c, ERR_INVALID_ARGUMENT, op, "its result is no array");
	tc_replace(op, tc_splat(c, op, op->results[0].type, zero));
}

static void empty_block(struct tc_ctx *c, struct tc_block *b)
{
	struct tc_op *next;

	for (struct tc_op *op = b->first; op; op = next) {
		next = op->next;
		for (unsigned r = 0; r < op->n_regions; r++)
			if (op->regions[r].block)
				empty_block(c, op->regions[r].block);
		if (op->op == TC_EMPTY)
			fill_with_zeros(c, op);
		else if (op->op == TC_WHILE && c->options->level)
			empty_loop(c, op);
	}
}

void tc_pass_empty(struct tc_ctx *c)
{
	empty_block(c, tc_main(c));
}
