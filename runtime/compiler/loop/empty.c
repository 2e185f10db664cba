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
#include "runtime/compiler/loop/loop.h"
#include "runtime/compiler/opt/build.h"
#include "runtime/compiler/passes.h"

/* Whether the turns put together all of carried value j, which nobody looks at before. */
static bool is_put_together(const struct tc_op *loop, unsigned j, unsigned counter, int64_t turns)
{
	const struct tc_op *put = tc_put_of_turn(loop, j);
	struct tc_line row;
	int dim = put ? tc_row_of_turn(put, loop->regions[1].block->args[counter], turns, &row) :
		  -1;

	return dim >= 0 && put->results[0].type->dim[dim] == turns;
}

static void empty_loop(struct tc_ctx *c, struct tc_op *loop)
{
	struct tc_build b = tc_build_at(c, loop);
	unsigned counter;
	int64_t turns = tc_count_turns(loop, &counter);

	for (unsigned j = 0; turns && j < loop->n_operands; j++)
		if (is_put_together(loop, j, counter, turns))
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
