/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two turns of a loop are one where a turn cannot write over what it was given.
 *
 * What a loop carries lies in one place for all turns. Where a turn reads an array otherwise than
 * element for element, as its neighbours or as a factor of a product, it makes the next one
 * elsewhere, and this is copied to the place at its end. The second of two turns reads that and
 * may write to the place, so that nothing is copied.
 *
 * How often the loop turns is known; an odd turn goes before it. No more memory is taken than
 * before: one array alone changes, and nothing goes before a loop that may begin in an argument's
 * memory.
 *
 * Requires: elementwise work is in fusions, which is how these read arrays. Ensures: the same
 * results, bit for bit.
 */
#include "runtime/compiler/loop/loop.h"
#include "runtime/compiler/opt/fuse.h"
#include "runtime/compiler/passes.h"

enum {
	LEAST_TURNS = 4,
	LEAST_BYTES = 8192,	/* of an array: a smaller one is copied at once */
	MOST_OPS = 64,		/* of a turn */
};

/* Another way to see its first operand. */
static bool is_view(const struct tc_op *op)
{
	return op->op == TC_RESHAPE || op->op == TC_SLICE || op->op == TC_TRANSPOSE ||
	       op->op == TC_REVERSE || op->op == TC_BROADCAST_IN_DIM;
}

/* Whether a fusion reads argument `arg` of its region so that what it makes may lie over it. */
static bool reads_by_element(const struct tc_op *fusion, const struct tc_value *arg)
{
	for (const struct tc_use *u = arg->uses; u; u = u->next)
		if (!tc_has_trait(u->user, 'e') || !tc_same_dims(arg->type, tc_space_of(fusion)))
			return false;
	for (const struct tc_op *op = fusion->regions[0].block->first; op; op = op->next)
		if (op->n_results && tc_is_put_together(tc_out(op, 0)))
			return false;
	return true;
}

/* Whether op cannot write what it makes over v, or over what v is a view of. */
static bool reads_otherwise(const struct tc_op *op, const struct tc_value *v, bool is_whole)
{
	for (unsigned k = 0; k < op->n_operands; k++) {
		const struct tc_value *in = tc_in(op, k);

		if (in == v && !(is_whole && op->op == TC_FUSION &&
				 reads_by_element(op, op->regions[0].block->args[k])))
			return true;
		if (in->def && in->def->block == op->block && is_view(in->def) &&
		    reads_otherwise(in->def, v, false))
			return true;
	}
	return false;
}

/* Whether what a turn leaves as carried value j is copied there at its end. */
static bool is_copied(const struct tc_op *loop, unsigned j)
{
	const struct tc_block *body = loop->regions[1].block;
	const struct tc_value *v = tc_in(body->last, j), *old = body->args[j];
	const struct tc_op *by = v->def;

	if (!by || by->block != body ||
	    (by->op != TC_FUSION && by->op != TC_DOT_GENERAL && by->op != TC_CONVOLUTION))
		return false;
	for (const struct tc_op *op = by->next; op; op = op->next)
		for (unsigned k = 0; k < op->n_operands; k++)
			if (tc_in(op, k) == old)
				return true;
	return reads_otherwise(by, old, true);
}

/* Whether turns may be written behind each other: few, and of nothing that others see. */
static bool is_plain(const struct tc_op *loop)
{
	unsigned n = 0;

	for (unsigned r = 0; r < 2; r++)
		for (const struct tc_op *op = loop->regions[r].block->first; op; op = op->next)
			if (++n > MOST_OPS || (op->op != TC_RETURN && tc_has_effect(op)) ||
			    tc_is_collective(op) || (op->n_regions && op->op != TC_FUSION))
				return false;
	return true;
}

/* Whether one array alone changes, but for small ones, and is copied. Of several, which may change
 * places or look at each other, the second turn can't write over each one. */
static bool copies_alone(const struct tc_op *loop)
{
	const struct tc_block *body = loop->regions[1].block;
	unsigned n = 0, last = 0;

	for (unsigned j = 0; j < loop->n_operands; j++)
		if (tc_in(body->last, j) != body->args[j] &&
		    body->args[j]->type->bytes >= LEAST_BYTES) {
			n++;
			last = j;
		}
	return n == 1 && is_copied(loop, last);
}

/* Whether a loop may begin in an argument's memory, which a turn before it can't write over. */
static bool is_given_memory(struct tc_ctx *c)
{
	const struct tc_block *main = tc_main(c);
	const struct tc_op *func = main->region->parent;

	for (unsigned i = 0; func->arg_info && i < main->n_args; i++)
		if (func->arg_info[i].alias >= 0)
			return true;
	return false;
}

/* A turn of the ops of body up to `end`, before `at`: makes of state, with which it begins, what it
 * ends with. */
static void write_turn(struct tc_ctx *c, const struct tc_block *body, const struct tc_op *end,
		       struct tc_op *at, struct tc_value **state)
{
	struct tc_map *map = tc_map_new(c);

	for (unsigned i = 0; i < body->n_args; i++)
		tc_map_set(c, map, body->args[i], state[i]);
	for (const struct tc_op *op = body->first; op != body->last; op = op->next) {
		tc_insert_before(at, tc_clone(c, op, map));
		if (op == end)
			break;
	}
	for (unsigned i = 0; i < body->n_args; i++)
		state[i] = tc_map_get(map, tc_in(body->last, i));
}

/* Makes two turns of the loop one; an odd one of them all goes before it. */
static void alternate(struct tc_ctx *c, struct tc_op *loop, bool is_odd)
{
	struct tc_block *body = loop->regions[1].block;
	const struct tc_op *end = body->last->prev;
	struct tc_value **state = arena_array(&c->arena, body->n_args, sizeof(*state));

	if (!state)
		tc_fail(c, ERR_RESOURCE_EXHAUSTED, loop, "out of memory");
	for (unsigned i = 0; i < body->n_args; i++)
		state[i] = tc_in(loop, i);
	if (is_odd) {
		write_turn(c, body, end, loop, state);
		tc_set_operands(c, loop, body->n_args, state);
	}
	for (unsigned i = 0; i < body->n_args; i++)
		state[i] = tc_in(body->last, i);
	write_turn(c, body, end, body->last, state);
	tc_set_operands(c, body->last, body->n_args, state);
	/* What a program does is told by one turn of each loop. */
	tc_set_int(c, loop, "tc.turns_counted", TC_ATTR_INT, !is_odd);
	tc_set_int(c, loop, "tc.turns_at_once", TC_ATTR_INT, 2);
}

static void alternate_block(struct tc_ctx *c, struct tc_block *b)
{
	for (struct tc_op *op = b->first; op; op = op->next) {
		int64_t turns;

		for (unsigned r = 0; r < op->n_regions && op->op != TC_FUSION; r++)
			if (op->regions[r].block)
				alternate_block(c, op->regions[r].block);
		if (op->op != TC_WHILE || !is_plain(op) || !copies_alone(op))
			continue;
		turns = tc_turns_of(op);
		if (turns >= LEAST_TURNS && !(turns % 2 && is_given_memory(c)))
			alternate(c, op, turns % 2);
	}
}

void tc_pass_alternate(struct tc_ctx *c)
{
	alternate_block(c, tc_main(c));
}
