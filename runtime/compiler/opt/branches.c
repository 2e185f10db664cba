/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Choices in bodies of scalars: of reductions, maps, scatters, comparators and the like. What a
 * body does it does for each element, in instructions without jumps: so all branches are computed,
 * and their results chosen from.
 *
 * Requires: no calls. Ensures: no if or case of scalars is left in such a body whose branches hold
 * such choices and what only gives results, which does no harm where it is not wanted: nothing
 * traps. One with a loop or an effect in a branch stays, and is refused by who would run it.
 */
#include "runtime/compiler/opt/build.h"
#include "runtime/compiler/passes.h"

static bool is_choice(const struct tc_op *op)
{
	return op->op == TC_IF || op->op == TC_CASE;
}

static bool has_scalar_body(const struct tc_op *op)
{
	switch (op->op) {
	case TC_MAP:
	case TC_REDUCE:
	case TC_REDUCE_WINDOW:
	case TC_SCATTER:
	case TC_SELECT_AND_SCATTER:
	case TC_SORT:
	case TC_ALL_REDUCE:
	case TC_REDUCE_SCATTER: return true;
	default: return false;
	}
}

/* Branches of scalars that may all be computed, whichever is wanted. Choices within are gone. */
static bool may_do_all(const struct tc_op *op)
{
	for (unsigned i = 0; i < op->n_results; i++)
		if (op->results[i].type->rank || !elem_bytes(op->results[i].type->elem))
			return false;
	for (unsigned r = 0; r < op->n_regions; r++) {
		const struct tc_block *branch = op->regions[r].block;

		for (const struct tc_op *o = branch->first; o != branch->last; o = o->next)
			if (!tc_has_trait(o, 'p') || o->n_regions || tc_is_collective(o))
				return false;
	}
	return true;
}

/* The number of branch r of a case, or what an if asks for its first one. */
static struct tc_value *is_wanted(const struct tc_build *b, const struct tc_op *op, unsigned r)
{
	struct tc_value *by = tc_in(op, 0);

	if (op->op == TC_IF)
		return by;
	/* A narrow type may not have the number. */
	if (elem_bits(by->type->elem) < 32)
		by = tc_build_convert(b, by, ELEM_S32);
	return tc_build_compare(b, TC_CMP_EQ, by, tc_build_number(b, by->type, r));
}

static void do_all(struct tc_ctx *c, struct tc_op *op)
{
	const unsigned last = op->n_regions - 1;
	struct tc_build b = tc_build_at(c, op);
	struct tc_value **out = arena_array(&c->arena, op->n_results, sizeof(*out));

	if (!out)
		tc_fail(c, ERR_RESOURCE_EXHAUSTED, op, "out of memory");
	/* The last one first: it is what an index that names none of them means. */
	for (unsigned r = op->n_regions; r--;) {
		struct tc_block *branch = op->regions[r].block;
		struct tc_value *wanted = r == last ? NULL : is_wanted(&b, op, r);

		while (branch->first != branch->last) {
			struct tc_op *o = branch->first;

			tc_unlink(o);
			tc_insert_before(op, o);
		}
		for (unsigned i = 0; i < op->n_results; i++) {
			struct tc_value *v = tc_in(branch->last, i);

			out[i] = wanted ? tc_build_select(&b, wanted, v, out[i]) : v;
		}
	}
	for (unsigned i = 0; i < op->n_results; i++)
		tc_replace_uses(tc_out(op, i), out[i]);
	tc_erase(op);
}

static void walk(struct tc_ctx *c, struct tc_block *b, bool is_body)
{
	struct tc_op *next;

	for (struct tc_op *op = b->first; op; op = next) {
		next = op->next;
		for (unsigned r = 0; r < op->n_regions; r++)
			if (op->regions[r].block)
				walk(c, op->regions[r].block,
				     has_scalar_body(op) || (is_body && is_choice(op)));
		if (is_body && is_choice(op) && may_do_all(op))
			do_all(c, op);
	}
}

void tc_pass_branches(struct tc_ctx *c)
{
	walk(c, tc_main(c), false);
}
