/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every op of the reference evaluator stands on: arrays, the values that hold them, and
 * running a region by the callback that the frame brings along.
 *
 * Arrays are counted (`refs`) and on one list. tc_fail() jumps over whoever holds them;
 * who made the frame then frees the list.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/compiler/eval/eval.h"

/* ---- arrays and values ---- */

static struct eval_array *new_array(struct eval *e, const struct tc_type *type,
				    uint64_t bytes)
{
	struct eval_array *a;
	uint64_t all;

	if (__builtin_add_overflow(bytes, sizeof(*a), &all) || all > e->limit - e->held)
		tc_fail(e->c, ERR_RESOURCE_EXHAUSTED, e->op, "an array of %" PRIu64
			" bytes, with %" PRIu64 " held already: the limit is %" PRIu64,
			bytes, e->held, e->limit);
	a = calloc(1, all);
	if (!a)
		tc_fail(e->c, ERR_RESOURCE_EXHAUSTED, e->op, "the host has no %" PRIu64
			" bytes for an array", bytes);
	a->type = type;
	a->bytes = bytes;
	a->refs = 1;
	a->next = e->all;
	if (a->next)
		a->next->prev = a;
	e->all = a;
	e->held += all;
	return a;
}

static void drop_array(struct eval *e, struct eval_array *a)
{
	struct eval_array **parts = (void *)a->data;

	if (--a->refs)
		return;
	if (a->type && a->type->is_tuple)
		for (unsigned i = 0; i < a->type->n_parts; i++)
			if (parts[i])
				drop_array(e, parts[i]);
	if (a->prev)
		a->prev->next = a->next;
	else
		e->all = a->next;
	if (a->next)
		a->next->prev = a->prev;
	e->held -= a->bytes + sizeof(*a);
	free(a);
}

void *tc_eval_scratch(struct eval *e, int64_t count, size_t size)
{
	uint64_t bytes;

	if (__builtin_mul_overflow((uint64_t)count, size, &bytes))
		bytes = UINT64_MAX;
	return new_array(e, NULL, bytes)->data;
}

void tc_eval_release(struct eval *e, void *scratch)
{
	drop_array(e, (void *)((char *)scratch - offsetof(struct eval_array, data)));
}

void tc_eval_drop(struct eval *e, const struct tc_value *v)
{
	if (e->at[v->id])
		drop_array(e, e->at[v->id]);
	e->at[v->id] = NULL;
}

void tc_eval_set(struct eval *e, const struct tc_value *v, struct eval_array *a)
{
	tc_eval_drop(e, v);
	e->at[v->id] = a;
}

struct eval_array *tc_eval_ref(struct eval_array *a)
{
	a->refs++;
	return a;
}

struct eval_array *tc_eval_get(struct eval *e, const struct tc_value *v)
{
	return e->at[v->id];
}

struct eval_array *tc_eval_in(struct eval *e, const struct tc_op *op, unsigned i)
{
	return tc_eval_get(e, tc_in(op, i));
}

struct eval_array *tc_eval_new(struct eval *e, const struct tc_value *v)
{
	uint64_t bytes = v->type->is_tuple ?
		v->type->n_parts * sizeof(struct eval_array *) : (uint64_t)v->type->bytes;
	struct eval_array *a = new_array(e, v->type, bytes);

	tc_eval_set(e, v, a);
	return a;
}

struct eval_array *tc_eval_out(struct eval *e, const struct tc_op *op, unsigned i)
{
	return tc_eval_new(e, tc_out(op, i));
}

void tc_eval_share(struct eval *e, const struct tc_op *op, unsigned i,
		   struct eval_array *from)
{
	tc_eval_set(e, tc_out(op, i), tc_eval_ref(from));
}

void tc_eval_tidy(struct eval_array *a)
{
	unsigned elem = a->type->elem;

	for (int64_t i = 0; elem_bits(elem) < 8 && i < a->type->count; i++)
		tc_num_store(elem, tc_eval_at(a, i), tc_num_load(elem, tc_eval_at(a, i)));
}

void tc_eval_refuse(struct eval *e, unsigned elem)
{
	tc_fail(e->c, ERR_UNIMPLEMENTED, e->op, "it is not defined for %s",
		elem_text(elem));
}

/* ---- regions ---- */

struct eval_array *tc_eval_result(struct eval *e, const struct tc_block *b, unsigned i)
{
	return tc_eval_get(e, tc_in(b->last, i));
}

void tc_eval_end(struct eval *e, const struct tc_block *b)
{
	for (unsigned i = 0; i < b->n_args; i++)
		tc_eval_drop(e, b->args[i]);
	for (const struct tc_op *op = b->first; op != b->last; op = op->next)
		for (unsigned i = 0; i < op->n_results; i++)
			tc_eval_drop(e, tc_out(op, i));
}

void tc_eval_become(struct eval *e, const struct tc_op *op, const struct tc_block *b)
{
	e->run(e, b);
	for (unsigned i = 0; i < op->n_results; i++)
		tc_eval_share(e, op, i, tc_eval_result(e, b, i));
	tc_eval_end(e, b);
}

void tc_eval_apply(struct eval *e, const struct tc_block *b, const void *const *in,
		   void *const *out)
{
	for (unsigned i = 0; i < b->n_args; i++)
		memcpy(tc_eval_new(e, b->args[i])->data, in[i],
		       (size_t)b->args[i]->type->bytes);
	e->run(e, b);
	for (unsigned i = 0; i < b->last->n_operands; i++) {
		const struct eval_array *a = tc_eval_result(e, b, i);

		memcpy(out[i], a->data, a->bytes);
	}
	tc_eval_end(e, b);
}
