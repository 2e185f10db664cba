/* SPDX-License-Identifier: Apache-2.0 */
/* Constants, calls, loops, branches and tuples of the reference evaluator. */
#include <inttypes.h>
#include <string.h>

#include "runtime/compiler/eval/eval.h"

void tc_eval_constant(struct eval *e, const struct tc_op *op)
{
	const struct tc_attr *a = tc_attr(op, "value");
	struct eval_array *out = tc_eval_out(e, op, 0);
	size_t one = elem_bytes(out->type->elem);

	if (!a->is_splat)
		memcpy(out->data, a->data, out->bytes);
	for (int64_t i = 0; a->is_splat && i < out->type->count; i++)
		memcpy(tc_eval_at(out, i), a->data, one);
	tc_eval_tidy(out);
}

/* All bits set: whoever reads it all the same is not to go unseen. */
void tc_eval_empty(struct eval *e, const struct tc_op *op)
{
	struct eval_array *out = tc_eval_out(e, op, 0);

	memset(out->data, out->type->elem == ELEM_PRED ? 1 : 0xff, out->bytes);
	tc_eval_tidy(out);
}

/* Pairs the operands with the callee's arguments, which are checked nowhere else. */
static void call(struct eval *e, const struct tc_op *op, const char *name)
{
	struct tc_op *f = tc_find_func(e->c, name);
	const struct tc_block *b;

	if (!f)
		EVAL_BAD(e, "no function is called %.100s", name);
	b = f->regions[0].block;
	if (f->side)
		EVAL_BAD(e, "%.100s calls itself", name);
	if (b->n_args != op->n_operands || b->last->n_operands != op->n_results)
		EVAL_BAD(e, "the call does not fit %.100s", name);
	for (unsigned i = 0; i < b->n_args; i++)
		if (b->args[i]->type != tc_in(op, i)->type)
			EVAL_BAD(e, "argument %u does not fit %.100s", i, name);
	for (unsigned i = 0; i < op->n_results; i++)
		if (tc_in(b->last, i)->type != op->results[i].type)
			EVAL_BAD(e, "result %u is not that of %.100s", i, name);
	f->side = f;
	for (unsigned i = 0; i < b->n_args; i++)
		tc_eval_set(e, b->args[i], tc_eval_ref(tc_eval_in(e, op, i)));
	tc_eval_become(e, op, b);
	f->side = NULL;
}

void tc_eval_call(struct eval *e, const struct tc_op *op)
{
	call(e, op, tc_attr_str(op, "callee"));
}

void tc_eval_composite(struct eval *e, const struct tc_op *op)
{
	call(e, op, tc_attr_str(op, "decomposition"));
}

void tc_eval_custom_call(struct eval *e, const struct tc_op *op)
{
	const char *target = tc_attr_str(op, "call_target_name");

	if (!strcmp(target, "LuDecomposition"))
		tc_eval_lu(e, op);
	else
		tc_fail(e->c, ERR_UNIMPLEMENTED, op, "the target \"%.100s\" does not run", target);
}

/* The results' slots hold what is carried. */
void tc_eval_while(struct eval *e, const struct tc_op *op)
{
	const struct tc_block *cond = op->regions[0].block, *body = op->regions[1].block;
	bool again;

	for (unsigned i = 0; i < op->n_operands; i++)
		tc_eval_share(e, op, i, tc_eval_in(e, op, i));
	for (;;) {
		for (unsigned i = 0; i < op->n_results; i++)
			tc_eval_set(e, cond->args[i], tc_eval_ref(tc_eval_get(e, tc_out(op, i))));
		e->run(e, cond);
		again = tc_num_load(ELEM_PRED, tc_eval_result(e, cond, 0)->data).i;
		tc_eval_end(e, cond);
		if (!again)
			return;
		for (unsigned i = 0; i < op->n_results; i++)
			tc_eval_set(e, body->args[i], tc_eval_ref(tc_eval_get(e, tc_out(op, i))));
		tc_eval_become(e, op, body);
	}
}

void tc_eval_case(struct eval *e, const struct tc_op *op)
{
	const struct eval_array *by = tc_eval_in(e, op, 0);
	int64_t i = tc_num_index(by->type->elem, by->data);

	if (op->op == TC_IF)
		i = !i;
	/* Any index that names no branch means the last one. */
	if (i < 0 || i >= op->n_regions)
		i = op->n_regions - 1;
	tc_eval_become(e, op, op->regions[i].block);
}

void tc_eval_tuple(struct eval *e, const struct tc_op *op)
{
	const struct tc_type *t = op->results[0].type;
	struct eval_array **parts;

	if (!t->is_tuple || t->n_parts != op->n_operands)
		EVAL_BAD(e, "its result is no tuple of %u parts", op->n_operands);
	for (unsigned i = 0; i < t->n_parts; i++)
		if (t->parts[i] != tc_in(op, i)->type)
			EVAL_BAD(e, "part %u has another type", i);
	parts = (void *)tc_eval_out(e, op, 0)->data;
	for (unsigned i = 0; i < t->n_parts; i++)
		parts[i] = tc_eval_ref(tc_eval_in(e, op, i));
}

void tc_eval_part(struct eval *e, const struct tc_op *op)
{
	struct eval_array *in = tc_eval_in(e, op, 0);
	struct eval_array **parts = (void *)in->data;
	int64_t i = tc_attr_int(op, "index", -1);

	if (!in->type->is_tuple || i < 0 || i >= in->type->n_parts ||
	    in->type->parts[i] != op->results[0].type)
		EVAL_BAD(e, "its operand has no part %" PRId64 " of its type", i);
	tc_eval_share(e, op, 0, parts[i]);
}

/* optimization_barrier and tc.copy */
void tc_eval_same(struct eval *e, const struct tc_op *op)
{
	if (op->n_results != op->n_operands)
		EVAL_BAD(e, "its results are not its operands");
	for (unsigned i = 0; i < op->n_results; i++)
		tc_eval_share(e, op, i, tc_eval_in(e, op, i));
}

void tc_eval_token(struct eval *e, const struct tc_op *op)
{
	if (op->results[0].type->is_tuple || op->results[0].type->elem != ELEM_TOKEN)
		EVAL_BAD(e, "its result is no token");
	tc_eval_out(e, op, 0);
}

void tc_eval_number(struct eval *e, const struct tc_op *op)
{
	struct eval_array *out = tc_eval_out(e, op, 0);
	struct num x = { 0 };

	x.i = (uint64_t)tc_in(op, 0)->type->dim[tc_attr_int(op, "dimension", 0)];
	tc_num_store(out->type->elem, out->data, x);
}
