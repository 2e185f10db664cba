/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Smaller programs that fail in the same way, greedily: each step is tried on the text as it
 * is, and kept if what came out still shows what is looked for. Steps are numbered by kind and
 * place, from the end of the program; after each, what nothing uses goes.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz_ops/args.h"
#include "tests/fuzz_ops/facts_ir.h"
#include "tests/fuzz_ops/fuzz.h"
#include "tests/fuzz_ops/gen.h"
#include "tests/fuzz_ops/shrink.h"

enum step {
	ONE_RESULT,	/* only the n-th */
	LESS_RESULTS,	/* all but the n-th */
	TO_ARGUMENT,	/* the n-th op's results become arguments */
	TO_OPERAND,	/* an operand of the type takes the result's place */
	OPEN_REGION,	/* a branch, one turn of a loop, or a function in place of the op */
	LESS_DONATION,
	SMALLER_ARRAYS,	/* the n-th size of dims, smaller */
	STEPS
};

struct trial {
	enum step step;
	unsigned n, part;	/* which op or result; which way */
	bool is_applied, is_past;	/* past: there is no n-th */
	struct str text;
};

/* ---- steps ---- */

/* Not in a body of scalars, which has to stay what its op takes. */
static bool is_free(const struct tc_op *op)
{
	for (op = op->block->region->parent; op->op != TC_FUNC; op = op->block->region->parent)
		if (op->op != TC_WHILE && op->op != TC_IF && op->op != TC_CASE)
			return false;
	return true;
}

static bool to_operand(struct tc_op *op, unsigned part)
{
	if (op->n_results != 1 || part >= op->n_operands ||
	    tc_in(op, part)->type != op->results[0].type)
		return false;
	tc_replace_uses(tc_out(op, 0), tc_in(op, part));
	return true;
}

/* The block's ops before `op`, with its arguments replaced; its results for the op's. */
static void inline_block(struct tc_ctx *c, struct tc_op *op, const struct tc_block *b,
			 unsigned first)
{
	struct tc_map *map = tc_map_new(c);

	for (unsigned i = 0; i < b->n_args; i++)
		tc_map_set(c, map, b->args[i], tc_in(op, first + i));
	for (struct tc_op *o = b->first; o != b->last; o = o->next) {
		struct tc_op *twin = tc_clone(c, o, map);

		for (unsigned i = 0; i < o->n_results; i++)
			twin->results[i].side = o->results[i].side;
		twin->where = o->where;
		tc_insert_before(op, twin);
	}
	for (unsigned i = 0; i < op->n_results; i++)
		tc_replace_uses(tc_out(op, i), tc_map_get(map, tc_in(b->last, i)));
}

static bool open_region(struct tc_ctx *c, struct tc_op *op, unsigned part)
{
	struct tc_op *f;

	switch (op->op) {
	case TC_IF:
	case TC_CASE:
		if (part >= op->n_regions)
			return false;
		inline_block(c, op, op->regions[part].block, 0);
		return true;
	case TC_WHILE:
		if (part)
			return false;
		inline_block(c, op, op->regions[1].block, 0);
		return true;
	case TC_CALL:
	case TC_COMPOSITE:
		f = tc_find_func(
			c, tc_attr_str(op, op->op == TC_CALL ? "callee" : "decomposition"));
		if (part || !f)
			return false;
		inline_block(c, op, f->regions[0].block, 0);
		return true;
	default:
		return false;
	}
}

/* Only result n, or all but it. */
static bool fewer_results(struct tc_ctx *c, unsigned n, bool only)
{
	struct tc_block *b = tc_main(c);
	struct tc_op *end = b->last, *func = b->region->parent;
	struct tc_value *keep[FUZZ_MAX_RESULTS];
	unsigned k = 0;

	if (end->n_operands < 2)
		return false;
	for (unsigned i = 0; i < end->n_operands; i++)
		if ((i == n) == only)
			keep[k++] = tc_in(end, i);
	tc_set_operands(c, end, k, keep);
	for (unsigned i = 0; func->arg_info && i < b->n_args; i++) {
		int32_t *alias = &func->arg_info[i].alias;

		if (only)
			*alias = *alias == (int32_t)n ? 0 : -1;
		else if (*alias >= (int32_t)n)
			*alias = *alias == (int32_t)n ? -1 : *alias - 1;
	}
	return true;
}

static bool less_donation(struct tc_ctx *c, unsigned n)
{
	struct tc_block *b = tc_main(c);
	struct tc_op *func = b->region->parent;

	if (!func->arg_info || func->arg_info[n].alias < 0)
		return false;
	func->arg_info[n].alias = -1;
	return true;
}

/* ---- what nothing uses ---- */

static bool is_idle(const struct tc_op *op)
{
	for (unsigned i = 0; i < op->n_results; i++)
		if (!tc_is_unused(&op->results[i]))
			return false;
	return op->op != TC_RETURN && op->op != TC_FUNC && op->op != TC_MODULE;
}

static bool sweep(struct tc_block *b)
{
	bool any = false;
	struct tc_op *before;

	for (struct tc_op *op = b->last; op; op = before) {
		before = op->prev;
		if (is_idle(op)) {
			tc_erase(op);
			any = true;
			continue;
		}
		for (unsigned r = 0; r < op->n_regions; r++)
			any |= op->regions[r].block && sweep(op->regions[r].block);
	}
	return any;
}

static void drop_arguments(struct tc_block *b)
{
	struct tc_op *func = b->region->parent;
	unsigned k = 0;

	for (unsigned i = 0; i < b->n_args; i++) {
		if (tc_is_unused(b->args[i]))
			continue;
		if (func->arg_info)
			func->arg_info[k] = func->arg_info[i];
		b->args[k] = b->args[i];
		b->args[k]->index = k;
		k++;
	}
	b->n_args = k;
}

static void count_call(struct tc_op *op, void *arg)
{
	struct tc_op **unused = arg;
	const char *name = op->op == TC_CALL ? tc_attr_str(op, "callee") :
			   op->op == TC_COMPOSITE ? tc_attr_str(op, "decomposition") : NULL;

	if (name && *unused && !strcmp(name, tc_attr_str(*unused, "sym_name")))
		*unused = NULL;
}

static void drop_functions(struct tc_ctx *c)
{
	struct tc_op *next;

	for (struct tc_op *f = c->module->regions[0].block->first; f; f = next) {
		struct tc_op *unused = strcmp(tc_attr_str(f, "sym_name"), "main") ? f : NULL;

		next = f->next;
		tc_walk(c->module, count_call, &unused);
		if (unused)
			tc_erase(f);
	}
}

/* ---- a trial ---- */

struct nth { struct trial *t; struct tc_op *found; unsigned left; };

static void find_nth(struct tc_op *op, void *arg)
{
	struct nth *n = arg;

	if (op->op == TC_MODULE || op->op == TC_FUNC || op->op == TC_RETURN)
		return;
	if (!n->left--)
		n->found = op;
}

static void count_nth(struct tc_op *op, void *arg)
{
	unsigned *n = arg;

	*n += op->op != TC_MODULE && op->op != TC_FUNC && op->op != TC_RETURN;
}

static bool apply_to_op(struct tc_ctx *c, struct trial *t)
{
	struct nth nth = { .t = t };
	unsigned all = 0;

	tc_walk(c->module, count_nth, &all);
	if (t->n >= all) {
		t->is_past = true;
		return false;
	}
	nth.left = all - 1 - t->n;
	tc_walk(c->module, find_nth, &nth);
	if (!is_free(nth.found))
		return false;
	switch (t->step) {
	case TO_ARGUMENT: return t->part == 0 && args_replace(c, nth.found);
	case TO_OPERAND: return to_operand(nth.found, t->part);
	default: return open_region(c, nth.found, t->part);
	}
}

static void attempt(struct tc_ctx *c, void *arg)
{
	struct trial *t = arg;
	struct tc_block *b = tc_main(c);

	facts_read(c);
	switch (t->step) {
	case ONE_RESULT:
	case LESS_RESULTS:
		t->is_past = t->n >= b->last->n_operands;
		t->is_applied = !t->is_past && !t->part &&
				fewer_results(c, t->n, t->step == ONE_RESULT);
		break;
	case LESS_DONATION:
		t->is_past = t->n >= b->n_args;
		t->is_applied = !t->is_past && !t->part && less_donation(c, t->n);
		break;
	case SMALLER_ARRAYS:
		t->is_applied = shrink_size(c, t->n, t->part, &t->is_past);
		break;
	default:
		t->is_applied = apply_to_op(c, t);
		break;
	}
	if (!t->is_applied)
		return;
	while (sweep(c->module->regions[0].block))
		drop_functions(c);
	drop_functions(c);
	drop_arguments(b);
	facts_write(c);
	tc_ir_print(c->module, &t->text);
}

/* The text after the step, or NULL. */
static char *try_step(const char *text, struct trial *t, shows_fn *shows, void *arg)
{
	struct err err;

	t->text = (struct str){ 0 };
	t->is_applied = t->is_past = false;
	if (tc_enter(&(struct tc_source){ text, strlen(text), "mlir" }, NULL, &err, attempt,
		     t) ||
	    !t->is_applied || !t->text.text || t->text.failed || !shows(t->text.text, arg)) {
		str_free(&t->text);
		return NULL;
	}
	return t->text.text;
}

static char *duplicate(const char *text)
{
	char *p = malloc(strlen(text) + 1);

	return p ? strcpy(p, text) : NULL;
}

char *reduce_program(const char *text, shows_fn *shows, void *arg)
{
	char *best = duplicate(text), *next;
	unsigned tries = 0;
	bool better = true;

	if (!best || !shows(best, arg)) {
		free(best);
		return NULL;
	}
	while (better && tries < 3000) {
		better = false;
		for (unsigned step = 0; step < STEPS; step++) {
			struct trial t = { .step = (enum step)step };

			for (t.n = 0; !t.is_past && tries < 3000;) {
				next = NULL;
				for (t.part = 0; t.part < 4 && !next && !t.is_past;
				     t.part++, tries++)
					next = try_step(best, &t, shows, arg);
				if (!next) {
					t.n++;
					continue;
				}
				free(best);
				best = next;
				better = true;
			}
		}
	}
	return best;
}
