/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reference evaluator: runs a program's IR as it was read, before any pass (a gang's
 * after some), with plain loops over dense arrays. It is the oracle for tests of everything
 * else, so it is written to be plainly right and not to be fast.
 *
 * Every value of the program has one slot. That is enough: functions do not recurse,
 * and a region that runs again overwrites what it left. A slot is emptied after its
 * value's last user in the same block, and all of a block's slots at its end; so a
 * loop holds no more at its thousandth turn than at its first.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/compiler/eval/eval.h"
#include "runtime/compiler/passes.h"

#define MAX_DEPTH 400u		/* blocks within blocks: calls and regions */

/* ---- blocks ---- */

static void run_op(struct eval *e, const struct tc_op *op);

/* The block's arguments are set. Its values stay until tc_eval_end(). */
static void run_block(struct eval *e, const struct tc_block *b)
{
	const struct tc_op *around = e->op;

	if (e->depth == MAX_DEPTH)
		tc_fail(e->c, ERR_RESOURCE_EXHAUSTED, e->op,
			"calls and regions nest more than %u deep", MAX_DEPTH);
	e->depth++;
	for (const struct tc_op *op = b->first; op != b->last; op = op->next)
		run_op(e, op);
	e->depth--;
	e->op = around;
}

/* Every op that runs, but for the elementwise ones (trait e). */
static void (*const handlers[TC_OP_COUNT])(struct eval *e, const struct tc_op *op) = {
	[TC_AFTER_ALL] = tc_eval_token,
	[TC_ALL_GATHER] = tc_eval_collective,
	[TC_ALL_REDUCE] = tc_eval_collective,
	[TC_ALL_TO_ALL] = tc_eval_collective,
	[TC_BATCH_NORM_GRAD] = tc_eval_norm_grad,
	[TC_BATCH_NORM_INFERENCE] = tc_eval_norm_inference,
	[TC_BATCH_NORM_TRAINING] = tc_eval_norm_training,
	[TC_BITCAST_CONVERT] = tc_eval_bitcast,
	[TC_BROADCAST_IN_DIM] = tc_eval_broadcast,
	[TC_CALL] = tc_eval_call,
	[TC_CASE] = tc_eval_case,
	[TC_CHOLESKY] = tc_eval_cholesky,
	[TC_COLLECTIVE_BROADCAST] = tc_eval_collective,
	[TC_COLLECTIVE_PERMUTE] = tc_eval_collective,
	[TC_COMPOSITE] = tc_eval_composite,
	[TC_CONCATENATE] = tc_eval_concatenate,
	[TC_CONSTANT] = tc_eval_constant,
	[TC_CONVOLUTION] = tc_eval_convolution,
	[TC_COPY] = tc_eval_same,
	[TC_CREATE_TOKEN] = tc_eval_token,
	[TC_CUSTOM_CALL] = tc_eval_custom_call,
	[TC_DOT_GENERAL] = tc_eval_dot,
	[TC_DRAW] = tc_eval_draw,
	[TC_DYNAMIC_SLICE] = tc_eval_dynamic_slice,
	[TC_DYNAMIC_UPDATE_SLICE] = tc_eval_dynamic_update,
	[TC_EMPTY] = tc_eval_empty,
	[TC_EXCHANGE] = tc_eval_collective,
	[TC_FFT] = tc_eval_fft,
	[TC_GATHER] = tc_eval_gather,
	[TC_GET_DIMENSION_SIZE] = tc_eval_number,
	[TC_GET_TUPLE_ELEMENT] = tc_eval_part,
	[TC_IF] = tc_eval_case,
	[TC_IOTA] = tc_eval_iota,
	[TC_MAP] = tc_eval_map,
	[TC_OPTIMIZATION_BARRIER] = tc_eval_same,
	[TC_PAD] = tc_eval_pad,
	[TC_PARTITION_ID] = tc_eval_own_number,
	[TC_REDUCE] = tc_eval_reduce,
	[TC_REDUCE_WINDOW] = tc_eval_reduce_window,
	[TC_REDUCE_SCATTER] = tc_eval_collective,
	[TC_REPLICA_ID] = tc_eval_own_number,
	[TC_RESHAPE] = tc_eval_reshape,
	[TC_REVERSE] = tc_eval_reverse,
	[TC_RNG] = tc_eval_rng,
	[TC_RNG_BIT_GENERATOR] = tc_eval_rng_bits,
	[TC_SCATTER] = tc_eval_scatter,
	[TC_SELECT_AND_SCATTER] = tc_eval_select_and_scatter,
	[TC_SLICE] = tc_eval_slice,
	[TC_SORT] = tc_eval_sort,
	[TC_TRANSPOSE] = tc_eval_transpose,
	[TC_TRIANGULAR_SOLVE] = tc_eval_solve,
	[TC_TUPLE] = tc_eval_tuple,
	[TC_WHILE] = tc_eval_while,
};

static void run_op(struct eval *e, const struct tc_op *op)
{
	e->op = op;
	if (op->op == TC_OPAQUE)
		tc_fail(e->c, ERR_UNIMPLEMENTED, op, "%.100s is not evaluated",
			tc_attr_str(op, "name"));
	if (tc_has_trait(op, 'e'))
		tc_eval_elementwise(e, op);
	else if (handlers[op->op])
		handlers[op->op](e, op);
	else
		tc_fail(e->c, ERR_UNIMPLEMENTED, op, "it is not evaluated");
	for (unsigned i = 0; i < op->n_results; i++)
		if (tc_is_unused(tc_out(op, i)))
			tc_eval_drop(e, tc_out(op, i));
	for (unsigned i = 0; i < op->n_operands; i++)
		if (e->last[tc_in(op, i)->id] == op)
			tc_eval_drop(e, tc_in(op, i));
}

/* ---- last users ---- */

struct order {
	struct eval *e;
	uint32_t *place;	/* by op id: in the order of the text */
	uint32_t n;
};

static void count_op(struct tc_op *op, void *arg)
{
	struct order *o = arg;

	op->side = NULL;
	o->place[op->id] = o->n++;
}

static void note_uses(struct tc_op *op, void *arg)
{
	struct order *o = arg;

	for (unsigned i = 0; i < op->n_operands; i++) {
		const struct tc_value *v = tc_in(op, i);
		const struct tc_block *home = v->def ? v->def->block : v->block;
		const struct tc_op **last = &o->e->last[v->id], *user = op;

		/* An inner user keeps the value for as long as the op around it runs. */
		while (user->block != home)
			user = user->block->region->parent;
		if (!*last || o->place[user->id] > o->place[(*last)->id])
			*last = user;
	}
}

static void *need(struct tc_ctx *c, size_t count, size_t size)
{
	void *p = arena_array(&c->arena, count, size);

	if (!p)
		tc_fail(c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	return p;
}

static void prepare(struct eval *e, struct tc_ctx *c)
{
	struct order o = { .e = e };

	e->c = c;
	e->run = run_block;
	e->limit = c->options->memory_limit;
	e->at = need(c, c->next_id + 1u, sizeof(*e->at));
	e->last = need(c, c->next_id + 1u, sizeof(*e->last));
	o.place = need(c, c->next_id + 1u, sizeof(*o.place));
	tc_walk(c->module, count_op, &o);
	tc_walk(c->module, note_uses, &o);
}

/* ---- arguments and results ---- */

struct job {
	struct eval e;
	const struct tc_array *args;
	struct tc_array *outs;
	size_t n_outs;
};

struct spelt { char text[160]; };

/* As MLIR writes it: tensor<2x3xf32>. */
static struct spelt spell(unsigned elem, unsigned rank, const int64_t *dim)
{
	struct spelt s;
	size_t n = (size_t)snprintf(s.text, sizeof(s.text), "tensor<");

	for (unsigned d = 0; d < rank && n < sizeof(s.text); d++)
		n += (size_t)snprintf(s.text + n, sizeof(s.text) - n, "%" PRId64 "x",
				      dim[d]);
	if (n < sizeof(s.text))
		snprintf(s.text + n, sizeof(s.text) - n, "%s>", elem_text(elem));
	return s;
}

static void take_argument(struct job *j, unsigned i, const struct tc_value *v)
{
	const struct tc_array *a = &j->args[i];
	const struct tc_type *t = v->type;
	struct eval_array *in;

	if (t->is_tuple)
		tc_fail(j->e.c, ERR_UNIMPLEMENTED, NULL, "argument %u is a tuple", i);
	if (a->rank > TC_MAX_RANK)
		tc_fail(j->e.c, ERR_INVALID_ARGUMENT, NULL, "argument %u has rank %u: at "
			"most %d", i, a->rank, TC_MAX_RANK);
	if (a->elem != t->elem || a->rank != t->rank ||
	    memcmp(a->dim, t->dim, t->rank * sizeof(*t->dim)))
		tc_fail(j->e.c, ERR_INVALID_ARGUMENT, NULL,
			"argument %u is %s, but the program takes %s", i,
			spell(a->elem, a->rank, a->dim).text,
			spell(t->elem, t->rank, t->dim).text);
	if (a->bytes != (uint64_t)t->bytes || (a->bytes && !a->data))
		tc_fail(j->e.c, ERR_INVALID_ARGUMENT, NULL,
			"argument %u has %zu bytes%s: a %s takes %" PRId64, i, a->bytes,
			a->data ? "" : " at no address",
			spell(t->elem, t->rank, t->dim).text, t->bytes);
	in = tc_eval_new(&j->e, v);
	if (a->bytes)
		memcpy(in->data, a->data, a->bytes);
	tc_eval_tidy(in);
}

static void hand_out(struct job *j, const struct tc_block *main)
{
	size_t n = main->last->n_operands;

	j->outs = calloc(n + 1, sizeof(*j->outs));
	for (size_t i = 0; j->outs && i < n; i++) {
		const struct eval_array *a = tc_eval_result(&j->e, main, (unsigned)i);
		struct tc_array *out = &j->outs[i];

		*out = (struct tc_array){ .elem = a->type->elem, .rank = a->type->rank,
					  .bytes = a->bytes };
		memcpy(out->dim, a->type->dim, a->type->rank * sizeof(*out->dim));
		out->data = malloc(a->bytes + 1);
		j->n_outs = i + 1;
		if (!out->data)
			tc_fail(j->e.c, ERR_RESOURCE_EXHAUSTED, NULL,
				"the host has no %zu bytes for result %zu", a->bytes, i);
		memcpy(out->data, a->data, a->bytes);
	}
	if (!j->outs)
		tc_fail(j->e.c, ERR_RESOURCE_EXHAUSTED, NULL, "the host has no memory for "
			"%zu results", n);
}

/* Arrays, and results that were not handed out whole. */
static void free_job(struct tc_ctx *c)
{
	struct job *j = c->held;

	while (j->e.all) {
		struct eval_array *a = j->e.all;

		j->e.all = a->next;
		free(a);
	}
	tc_array_free(j->outs, j->n_outs);
}

void tc_eval_run(struct tc_ctx *c, const struct tc_array *args, size_t n_args,
		 struct tc_array **outs, size_t *n_outs)
{
	const struct tc_block *main = tc_main(c);
	struct job *j = need(c, 1, sizeof(*j));

	c->held = j;
	c->free_held = free_job;
	j->args = args;
	prepare(&j->e, c);
	if (n_args != main->n_args)
		tc_fail(c, ERR_INVALID_ARGUMENT, NULL,
			"%zu arguments are given, but the program takes %u", n_args,
			main->n_args);
	for (unsigned i = 0; i < main->n_args; i++)
		take_argument(j, i, main->args[i]);
	/* main may not be called by what it calls */
	main->region->parent->side = main->region->parent;
	run_block(&j->e, main);
	hand_out(j, main);
	*outs = j->outs;
	*n_outs = j->n_outs;
	j->outs = NULL;
	j->n_outs = 0;
	tc_free_held(c);
}

void tc_array_free(struct tc_array *arrays, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(arrays[i].data);
	free(arrays);
}
