/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Positions of ops, and who looks at values until when.
 *
 * An op has two positions, its start and its end; those of the ops in its regions lie between.
 */
#include "runtime/compiler/back/emit.h"

#define MOST_VIEWS 8	/* behind each other, that are looked through */

void *tc_get(struct emit *e, size_t count, size_t size)
{
	void *p = arena_array(&e->c->arena, count, size);

	if (!p)
		tc_fail(e->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	return p;
}

static uint32_t number(struct emit *e, const struct tc_block *b, uint32_t at)
{
	for (const struct tc_op *op = b->first; op; op = op->next) {
		e->spans[op->id].start = ++at;
		if (op->op == TC_WHILE || op->op == TC_CASE || op->op == TC_IF)
			for (unsigned r = 0; r < op->n_regions; r++)
				at = number(e, op->regions[r].block, at);
		e->spans[op->id].end = ++at;
	}
	return at;
}

void tc_plan_positions(struct emit *e)
{
	e->n_ids = e->c->next_id;
	e->spans = tc_get(e, e->n_ids, sizeof(*e->spans));
	e->homes = tc_get(e, e->n_ids, sizeof(*e->homes));
	e->wishes = tc_get(e, e->n_ids, sizeof(*e->wishes));
	number(e, tc_main(e->c), 0);
}

struct looks tc_looks(struct emit *e, const struct tc_value *v)
{
	const struct tc_block *home = v->def ? v->def->block : v->block;
	struct looks looks = { 0, 0 };

	for (const struct tc_use *u = v->uses; u; u = u->next) {
		const struct tc_op *op = u->user;
		uint32_t end, at = op->op == TC_RETURN ? 0 : e->spans[op->id].start;

		while (op->block != home) {
			op = op->block->region->parent;
			/* A return in a region looks when that region ends. */
			if (!at)
				at = e->spans[op->id].end;
		}
		end = op->op == TC_RETURN ? FOREVER_POS : e->spans[op->id].end;
		if (op->op == TC_RETURN)
			at = FOREVER_POS;
		if (end > looks.last)
			looks.last = end;
		if (at > looks.deepest)
			looks.deepest = at;
	}
	return looks;
}

/* Whether the op's result has the memory of its operand, which u is. */
static bool is_view(const struct tc_op *op, const struct tc_use *u)
{
	switch (op->op) {
	case TC_RESHAPE: case TC_TRANSPOSE: case TC_SLICE: case TC_BROADCAST_IN_DIM:
	case TC_REVERSE: case TC_BITCAST_CONVERT: case TC_COPY: case TC_OPTIMIZATION_BARRIER:
	case TC_WHILE: case TC_DYNAMIC_SLICE:
		return true;
	case TC_DYNAMIC_UPDATE_SLICE:	/* nothing is there that could be moved */
		return u == op->operands && u->value->def && u->value->def->op == TC_EMPTY;
	default:
		return false;
	}
}

static uint32_t last_look(struct emit *e, const struct tc_value *v, unsigned depth)
{
	const struct tc_block *b = v->def ? v->def->block : v->block;
	uint32_t last = tc_looks(e, v).last;

	if (depth == MOST_VIEWS)
		return FOREVER_POS;
	for (const struct tc_use *u = v->uses; u && last != FOREVER_POS; u = u->next) {
		const struct tc_op *op = u->user;
		unsigned i = op->n_results > 1 ? (unsigned)(u - op->operands) : 0;
		uint32_t view;

		if (op->block != b || !is_view(op, u))
			continue;
		view = last_look(e, tc_out(op, i), depth + 1);
		if (view > last)
			last = view;
	}
	return last != FOREVER_POS || b == tc_main(e->c) ? last :
	       e->spans[b->region->parent->id].end;
}

uint32_t tc_last_look(struct emit *e, const struct tc_value *v)
{
	return last_look(e, v, 0);
}
