/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The security boundary: what every pass may rely on afterwards.
 *
 * Structure (counts of operands, results, regions; required attributes and their kinds;
 * every region one block that ends in return; operands defined before, in the block or
 * around it) is checked from ops.def, after each pass again: it costs 5 % of a
 * compile, and without it a pass that breaks a program crashes the next. Attributes and
 * shapes are checked as the program comes; ir_shape.c, and ir_collective.c for those that
 * several devices meet in, have a rule for each op.
 */
#include "runtime/compiler/ir/ir_verify.h"

enum { REQ = 1, OPT = 0 };
/* One flat list in the order of ops.def; an entry without a name starts an op. */
static const struct attr_rule { const char *name; uint8_t kind; bool required; } rules[] = {
#define OP(name, text, operands, results, regions, traits) { NULL, 0, 0 },
#define OP_ATTR(op, attr, kind, need) { #attr, TC_ATTR_##kind, need },
#include "runtime/compiler/ir/ops.def"
#undef OP
#undef OP_ATTR
	{ NULL, 0, 0 },
};

/* Where each op starts in it. */
enum {
#define OP(name, text, operands, results, regions, traits) AT_##name,
#define OP_ATTR(op, attr, kind, need) AT_##op##_##attr,
#include "runtime/compiler/ir/ops.def"
#undef OP
#undef OP_ATTR
};
static const uint16_t first_rule[TC_OP_COUNT] = {
#define OP(name, text, operands, results, regions, traits) [TC_##name] = AT_##name + 1,
#define OP_ATTR(op, attr, kind, need)
#include "runtime/compiler/ir/ops.def"
#undef OP
#undef OP_ATTR
};

/* ---- structure ---- */

static void check_attrs(const struct check *k)
{
	for (const struct attr_rule *r = &rules[first_rule[k->op->op]]; r->name; r++) {
		const struct tc_attr *a = tc_attr(k->op, r->name);

		if (!a && r->required)
			BAD(k, "attribute %s is missing", r->name);
		if (a && a->kind != r->kind && !(r->kind == TC_ATTR_INTS && a->n == 0))
			BAD(k, "attribute %s has another kind than it should", r->name);
	}
}

static void check_counts(const struct check *k)
{
	const struct tc_op_info *info = tc_op_info(k->op->op);

	if ((info->n_operands >= 0 && k->op->n_operands != (unsigned)info->n_operands) ||
	    (info->n_results >= 0 && k->op->n_results != (unsigned)info->n_results) ||
	    (info->n_regions >= 0 && k->op->n_regions != (unsigned)info->n_regions))
		BAD(k, "it has %u operands, %u results and %u regions", k->op->n_operands,
		    k->op->n_results, k->op->n_regions);
	for (unsigned r = 0; r < k->op->n_regions && k->op->op != TC_OPAQUE; r++) {
		const struct tc_block *b = k->op->regions[r].block;

		if (!b && k->op->op != TC_MODULE)
			BAD(k, "region %u is empty", r);
		if (b && k->op->op != TC_MODULE && (!b->last || b->last->op != TC_RETURN))
			BAD(k, "region %u does not end in return", r);
	}
}

/* Tuples are taken apart by the pass `inline`, which follows them through calls;
 * elsewhere they have no meaning. */
static void check_tuples(const struct check *k)
{
	const struct tc_op *around = k->op->block->region->parent;

	if (k->op->op == TC_TUPLE || k->op->op == TC_GET_TUPLE_ELEMENT ||
	    k->op->op == TC_OPAQUE || k->op->op == TC_CUSTOM_CALL || k->op->op == TC_CALL ||
	    k->op->op == TC_ASYNC_START || k->op->op == TC_ASYNC_DONE ||
	    (k->op->op == TC_RETURN && around->op == TC_FUNC &&
	     k->op->block != k->main))
		return;
	for (unsigned i = 0; i < k->op->n_operands; i++)
		if (in_type(k, i)->is_tuple)
			BAD(k, "operand %u is a tuple", i);
	for (unsigned i = 0; i < k->op->n_results; i++)
		if (k->op->results[i].type->is_tuple)
			BAD(k, "result %u is a tuple", i);
}

/* ---- values are defined where they are used ---- */

/* Whether v is visible from `block`: defined in it already, or around it. A fusion of
 * ours captures nothing; one of a text is taken apart before anyone relies on that. */
static bool is_visible(const struct check *k, const struct tc_value *v,
		       const struct tc_block *block)
{
	const struct tc_block *home = v->def ? v->def->block : v->block;

	if (!k->defined[v->id])
		return false;
	while (block != home) {
		const struct tc_op *around = block->region->parent;

		if (!around || !around->block || (around->op == TC_FUSION && k->pass))
			return false;
		block = around->block;
	}
	return true;
}

static void verify_block(const struct check *outer, const struct tc_block *b)
{
	struct check k = *outer;

	for (unsigned i = 0; i < b->n_args; i++) {
		k.defined[b->args[i]->id] = 1;
		if (b->args[i]->type->is_tuple &&
		    (outer->op->op != TC_FUNC || b == k.main))
			BAD(outer, "argument %u is a tuple", i);
	}
	for (struct tc_op *op = b->first; op; op = op->next) {
		k.op = op;
		for (unsigned i = 0; i < op->n_operands; i++)
			if (!is_visible(&k, tc_in(op, i), b))
				BAD(&k, "operand %u is not defined there", i);
		if (op->op == TC_RETURN && op->next)
			BAD(&k, "it stands before the end");
		check_counts(&k);
		if (k.is_deep) {
			check_attrs(&k);
			check_tuples(&k);
		}
		for (unsigned r = 0; r < op->n_regions; r++)
			if (op->regions[r].block)
				verify_block(&k, op->regions[r].block);
		if (!k.is_deep) {
			tc_check_frame(&k);
		} else if (op->op != TC_FUNC && op->op != TC_OPAQUE) {
			tc_check_op(&k);
			tc_check_collective(&k);
		}
		for (unsigned i = 0; i < op->n_results; i++)
			k.defined[op->results[i].id] = 1;
	}
}

void tc_ir_verify(struct tc_ctx *c, const char *pass, bool is_deep)
{
	struct tc_block *top = c->module->regions[0].block;
	struct check k = { .c = c, .op = c->module, .pass = pass, .is_deep = is_deep,
			   .main = tc_main(c) };
	unsigned n = 0;

	k.defined = arena_array(&c->arena, c->next_id + 1u, 1);
	if (!k.defined)
		tc_fail(c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	for (struct tc_op *f = top->first; f; f = f->next) {
		if (f->op != TC_FUNC)
			BAD(&k, "%s outside a function", tc_op_info(f->op)->text);
		n++;
	}
	if (!n)
		BAD(&k, "the module has no function");
	if (is_deep)
		check_attrs(&k);
	verify_block(&k, top);
	if (!tc_main(c))
		BAD(&k, "the module has no main function");
}
