/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replaces calls and composites by the bodies that they name, and tuples by their parts.
 *
 * Requires: a verified module. Ensures: main is the only function; no call, composite,
 * tuple or get_tuple_element is left, but for custom calls that yield tuples.
 * Fails: INVALID_ARGUMENT on recursion, RESOURCE_EXHAUSTED when the program grows past
 * MAX_OPS.
 */
#include <string.h>

#include "runtime/compiler/opt/build.h"

#define MAX_OPS 2000000u

enum state { FRESH, BUSY, READY };

struct func_state {
	struct tc_op *func;
	enum state state;
};

struct pass {
	struct tc_ctx *c;
	struct func_state *funcs;
	unsigned n_funcs;
	uint32_t first_id;
};

static void inline_block(struct pass *p, struct tc_block *b);

static struct tc_block *callee(struct pass *p, struct tc_op *op, const char *name)
{
	for (unsigned i = 0; i < p->n_funcs; i++) {
		struct func_state *f = &p->funcs[i];
		const char *is = tc_attr_str(f->func, "sym_name");

		if (!is || strcmp(is, name))
			continue;
		if (f->state == BUSY)
			tc_fail(p->c, ERR_INVALID_ARGUMENT, op, "%s calls itself", name);
		if (f->state == FRESH) {
			f->state = BUSY;
			inline_block(p, f->func->regions[0].block);
			f->state = READY;
		}
		return f->func->regions[0].block;
	}
	tc_fail(p->c, ERR_INVALID_ARGUMENT, op, "no function is called %s", name);
}

static void inline_call(struct pass *p, struct tc_op *op, const char *name)
{
	struct tc_block *body = callee(p, op, name);
	struct tc_map *map = tc_map_new(p->c);
	struct tc_op *last = body->last;

	if (body->n_args != op->n_operands || !last || last->n_operands != op->n_results)
		tc_fail(p->c, ERR_INVALID_ARGUMENT, op, "the call does not fit %s", name);
	if (p->c->next_id - p->first_id > MAX_OPS)
		tc_fail(p->c, ERR_RESOURCE_EXHAUSTED, op,
			"the program has more than %u operations", MAX_OPS);
	for (unsigned i = 0; i < body->n_args; i++)
		tc_map_set(p->c, map, body->args[i], tc_in(op, i));
	for (const struct tc_op *o = body->first; o != last; o = o->next)
		tc_insert_before(op, tc_clone(p->c, o, map));
	for (unsigned i = 0; i < op->n_results; i++)
		tc_replace_uses(tc_out(op, i), tc_map_get(map, tc_in(last, i)));
	tc_erase(op);
}

/* erf of a type that the device computes or converts. */
static bool is_erf(const struct tc_op *op)
{
	const char *name = tc_attr_str(op, "name");

	return name && !strcmp(name, "chlo.erf") && op->n_operands == 1 &&
	       op->n_results == 1 && tc_in(op, 0)->type == tc_out(op, 0)->type;
}

static void replace_by_erf(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_value *in = tc_in(op, 0);
	struct tc_op *erf = tc_new(c, TC_ERF, 1, &in, 1, &in->type, 0);

	erf->where = op->where;
	tc_insert_before(op, erf);
	tc_replace_uses(tc_out(op, 0), tc_out(erf, 0));
	tc_erase(op);
}

static void take_part(struct tc_op *op)
{
	struct tc_op *def = tc_in(op, 0)->def;
	int64_t i = tc_attr_int(op, "index", -1);

	if (!def || def->op != TC_TUPLE || i < 0 || i >= def->n_operands)
		return;
	tc_replace_uses(tc_out(op, 0), tc_in(def, (unsigned)i));
	tc_erase(op);
}

/* A fusion that a program's text brings gives way to its region: nobody has checked that
 * one instruction can do it, and the pass `fuse` makes its own. */
static void take_apart(struct tc_op *op)
{
	struct tc_block *body = op->regions[0].block;

	for (unsigned i = 0; i < body->n_args; i++)
		tc_replace_uses(body->args[i], tc_in(op, i));
	while (body->first != body->last) {
		struct tc_op *o = body->first;

		tc_unlink(o);
		tc_insert_before(op, o);
	}
	for (unsigned i = 0; i < op->n_results; i++)
		tc_replace_uses(tc_out(op, i), tc_in(body->last, i));
	tc_erase(op);
}

static void inline_op(struct pass *p, struct tc_op *op)
{
	switch (op->op) {
	case TC_CALL:
		inline_call(p, op, tc_attr_str(op, "callee"));
		break;
	case TC_COMPOSITE:
		if (is_erf(op))
			replace_by_erf(p->c, op);
		else
			inline_call(p, op, tc_attr_str(op, "decomposition"));
		break;
	case TC_GET_TUPLE_ELEMENT:
		take_part(op);
		break;
	case TC_CUSTOM_CALL:
		if (!strcmp(tc_attr_str(op, "call_target_name"), "ApproxTopK"))
			tc_decompose_top_k(p->c, op);
		break;
	default:
		for (unsigned r = 0; r < op->n_regions; r++)
			if (op->regions[r].block)
				inline_block(p, op->regions[r].block);
		if (op->op == TC_FUSION)
			take_apart(op);
		break;
	}
}

static void inline_block(struct pass *p, struct tc_block *b)
{
	struct tc_op *next;

	for (struct tc_op *op = b->first; op; op = next) {
		next = op->next;
		inline_op(p, op);
	}
}

void tc_pass_inline(struct tc_ctx *c)
{
	struct tc_block *top = c->module->regions[0].block;
	struct tc_block *main = tc_main(c);
	struct pass p = { .c = c, .first_id = c->next_id };
	struct tc_op *next;

	if (!main)
		tc_fail(c, ERR_INVALID_ARGUMENT, NULL, "the module has no function");
	for (struct tc_op *f = top->first; f; f = f->next)
		p.n_funcs += f->op == TC_FUNC;
	p.funcs = arena_array(&c->arena, p.n_funcs, sizeof(*p.funcs));
	if (!p.funcs)
		tc_fail(c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	p.n_funcs = 0;
	for (struct tc_op *f = top->first; f; f = f->next)
		if (f->op == TC_FUNC)
			p.funcs[p.n_funcs++] = (struct func_state){ f,
				f->regions[0].block == main ? BUSY : FRESH };
	inline_block(&p, main);
	for (struct tc_op *f = top->first; f; f = next) {
		next = f->next;
		if (f->op != TC_FUNC || f->regions[0].block != main)
			tc_erase(f);
	}
}
