/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reference evaluator: runs a program's IR as it was read, before any pass, with
 * plain loops over dense arrays. It is the oracle for tests of everything else, so it
 * is written to be plainly right and not to be fast.
 *
 * Every value of the program has one slot. That is enough: functions do not recurse,
 * and a region that runs again overwrites what it left. A slot is emptied after its
 * value's last user in the same block, and all of a block's slots at its end; so a
 * loop holds no more at its thousandth turn than at its first.
 *
 * Arrays are counted (`refs`) and on one list. tc_fail() jumps over whoever holds
 * them; tc_eval() then frees the list.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/compiler/eval/eval.h"
#include "runtime/compiler/tc.h"

#define MAX_DEPTH 400u		/* blocks within blocks: calls and regions */
#define MEMORY_LIMIT ((uint64_t)8 << 30)

/* ---- memory ---- */

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

static void drop(struct eval *e, const struct tc_value *v)
{
	if (e->at[v->id])
		drop_array(e, e->at[v->id]);
	e->at[v->id] = NULL;
}

/* Takes the reference. */
static void set(struct eval *e, const struct tc_value *v, struct eval_array *a)
{
	drop(e, v);
	e->at[v->id] = a;
}

static struct eval_array *ref(struct eval_array *a)
{
	a->refs++;
	return a;
}

static struct eval_array *get(struct eval *e, const struct tc_value *v)
{
	return e->at[v->id];
}

struct eval_array *tc_eval_in(struct eval *e, const struct tc_op *op, unsigned i)
{
	return get(e, tc_in(op, i));
}

static struct eval_array *new_value(struct eval *e, const struct tc_value *v)
{
	uint64_t bytes = v->type->is_tuple ?
		v->type->n_parts * sizeof(struct eval_array *) : (uint64_t)v->type->bytes;
	struct eval_array *a = new_array(e, v->type, bytes);

	set(e, v, a);
	return a;
}

struct eval_array *tc_eval_out(struct eval *e, const struct tc_op *op, unsigned i)
{
	return new_value(e, tc_out(op, i));
}

void tc_eval_share(struct eval *e, const struct tc_op *op, unsigned i,
		   struct eval_array *from)
{
	set(e, tc_out(op, i), ref(from));
}

void tc_eval_refuse(struct eval *e, unsigned elem)
{
	tc_fail(e->c, ERR_UNIMPLEMENTED, e->op, "it is not defined for %s",
		elem_text(elem));
}

/* ---- blocks ---- */

static void run_op(struct eval *e, const struct tc_op *op);

/* The block's arguments are set. Its values stay until end_block(). */
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

static struct eval_array *result(struct eval *e, const struct tc_block *b, unsigned i)
{
	return get(e, tc_in(b->last, i));
}

static void end_block(struct eval *e, const struct tc_block *b)
{
	for (unsigned i = 0; i < b->n_args; i++)
		drop(e, b->args[i]);
	for (const struct tc_op *op = b->first; op != b->last; op = op->next)
		for (unsigned i = 0; i < op->n_results; i++)
			drop(e, tc_out(op, i));
}

/* Runs a block whose results are the op's. */
static void become(struct eval *e, const struct tc_op *op, const struct tc_block *b)
{
	run_block(e, b);
	for (unsigned i = 0; i < op->n_results; i++)
		tc_eval_share(e, op, i, result(e, b, i));
	end_block(e, b);
}

void tc_eval_apply(struct eval *e, const struct tc_block *b, const void *const *in,
		   void *const *out)
{
	for (unsigned i = 0; i < b->n_args; i++)
		memcpy(new_value(e, b->args[i])->data, in[i],
		       (size_t)b->args[i]->type->bytes);
	run_block(e, b);
	for (unsigned i = 0; i < b->last->n_operands; i++) {
		const struct eval_array *a = result(e, b, i);

		memcpy(out[i], a->data, a->bytes);
	}
	end_block(e, b);
}

/* Elements of less than a byte come with any bits above their own. */
static void tidy(struct eval_array *a)
{
	unsigned elem = a->type->elem;

	for (int64_t i = 0; elem_bits(elem) < 8 && i < a->type->count; i++)
		tc_num_store(elem, tc_eval_at(a, i), tc_num_load(elem, tc_eval_at(a, i)));
}

/* ---- structure ---- */

static void eval_constant(struct eval *e, const struct tc_op *op)
{
	const struct tc_attr *a = tc_attr(op, "value");
	struct eval_array *out = tc_eval_out(e, op, 0);
	size_t one = elem_bytes(out->type->elem);

	if (!a->is_splat)
		memcpy(out->data, a->data, out->bytes);
	for (int64_t i = 0; a->is_splat && i < out->type->count; i++)
		memcpy(tc_eval_at(out, i), a->data, one);
	tidy(out);
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
		set(e, b->args[i], ref(tc_eval_in(e, op, i)));
	become(e, op, b);
	f->side = NULL;
}

static void eval_call(struct eval *e, const struct tc_op *op)
{
	call(e, op, tc_attr_str(op, "callee"));
}

static void eval_composite(struct eval *e, const struct tc_op *op)
{
	call(e, op, tc_attr_str(op, "decomposition"));
}

static void eval_custom_call(struct eval *e, const struct tc_op *op)
{
	tc_fail(e->c, ERR_UNIMPLEMENTED, op, "the target \"%.100s\" does not run",
		tc_attr_str(op, "call_target_name"));
}

/* The results' slots hold what is carried. */
static void eval_while(struct eval *e, const struct tc_op *op)
{
	const struct tc_block *cond = op->regions[0].block, *body = op->regions[1].block;
	bool again;

	for (unsigned i = 0; i < op->n_operands; i++)
		tc_eval_share(e, op, i, tc_eval_in(e, op, i));
	for (;;) {
		for (unsigned i = 0; i < op->n_results; i++)
			set(e, cond->args[i], ref(get(e, tc_out(op, i))));
		run_block(e, cond);
		again = tc_num_load(ELEM_PRED, result(e, cond, 0)->data).i;
		end_block(e, cond);
		if (!again)
			return;
		for (unsigned i = 0; i < op->n_results; i++)
			set(e, body->args[i], ref(get(e, tc_out(op, i))));
		become(e, op, body);
	}
}

static void eval_case(struct eval *e, const struct tc_op *op)
{
	const struct eval_array *by = tc_eval_in(e, op, 0);
	int64_t i = tc_num_index(by->type->elem, by->data);

	if (op->op == TC_IF)
		i = !i;
	/* Any index that names no branch means the last one. */
	if (i < 0 || i >= op->n_regions)
		i = op->n_regions - 1;
	become(e, op, op->regions[i].block);
}

static void eval_tuple(struct eval *e, const struct tc_op *op)
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
		parts[i] = ref(tc_eval_in(e, op, i));
}

static void eval_part(struct eval *e, const struct tc_op *op)
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
static void eval_same(struct eval *e, const struct tc_op *op)
{
	if (op->n_results != op->n_operands)
		EVAL_BAD(e, "its results are not its operands");
	for (unsigned i = 0; i < op->n_results; i++)
		tc_eval_share(e, op, i, tc_eval_in(e, op, i));
}

static void eval_token(struct eval *e, const struct tc_op *op)
{
	if (op->results[0].type->is_tuple || op->results[0].type->elem != ELEM_TOKEN)
		EVAL_BAD(e, "its result is no token");
	tc_eval_out(e, op, 0);
}

static void eval_number(struct eval *e, const struct tc_op *op)
{
	struct eval_array *out = tc_eval_out(e, op, 0);
	struct num x = { 0 };

	/* One device runs the program: it is partition and replica 0. */
	if (op->op == TC_GET_DIMENSION_SIZE)
		x.i = (uint64_t)tc_in(op, 0)->type->dim[tc_attr_int(op, "dimension", 0)];
	tc_num_store(out->type->elem, out->data, x);
}

/* Every op that runs, but for the elementwise ones (trait e). */
static void (*const handlers[TC_OP_COUNT])(struct eval *e, const struct tc_op *op) = {
	[TC_AFTER_ALL] = eval_token,
	[TC_BATCH_NORM_GRAD] = tc_eval_norm_grad,
	[TC_BATCH_NORM_INFERENCE] = tc_eval_norm_inference,
	[TC_BATCH_NORM_TRAINING] = tc_eval_norm_training,
	[TC_BITCAST_CONVERT] = tc_eval_bitcast,
	[TC_BROADCAST_IN_DIM] = tc_eval_broadcast,
	[TC_CALL] = eval_call,
	[TC_CASE] = eval_case,
	[TC_CHOLESKY] = tc_eval_cholesky,
	[TC_COMPOSITE] = eval_composite,
	[TC_CONCATENATE] = tc_eval_concatenate,
	[TC_CONSTANT] = eval_constant,
	[TC_CONVOLUTION] = tc_eval_convolution,
	[TC_COPY] = eval_same,
	[TC_CREATE_TOKEN] = eval_token,
	[TC_CUSTOM_CALL] = eval_custom_call,
	[TC_DOT_GENERAL] = tc_eval_dot,
	[TC_DYNAMIC_SLICE] = tc_eval_dynamic_slice,
	[TC_DYNAMIC_UPDATE_SLICE] = tc_eval_dynamic_update,
	[TC_FFT] = tc_eval_fft,
	[TC_GATHER] = tc_eval_gather,
	[TC_GET_DIMENSION_SIZE] = eval_number,
	[TC_GET_TUPLE_ELEMENT] = eval_part,
	[TC_IF] = eval_case,
	[TC_IOTA] = tc_eval_iota,
	[TC_MAP] = tc_eval_map,
	[TC_OPTIMIZATION_BARRIER] = eval_same,
	[TC_PAD] = tc_eval_pad,
	[TC_PARTITION_ID] = eval_number,
	[TC_REDUCE] = tc_eval_reduce,
	[TC_REDUCE_WINDOW] = tc_eval_reduce_window,
	[TC_REPLICA_ID] = eval_number,
	[TC_RESHAPE] = tc_eval_reshape,
	[TC_REVERSE] = tc_eval_reverse,
	[TC_RNG_BIT_GENERATOR] = tc_eval_rng_bits,
	[TC_SCATTER] = tc_eval_scatter,
	[TC_SELECT_AND_SCATTER] = tc_eval_select_and_scatter,
	[TC_SLICE] = tc_eval_slice,
	[TC_SORT] = tc_eval_sort,
	[TC_TRANSPOSE] = tc_eval_transpose,
	[TC_TRIANGULAR_SOLVE] = tc_eval_solve,
	[TC_TUPLE] = eval_tuple,
	[TC_WHILE] = eval_while,
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
			drop(e, tc_out(op, i));
	for (unsigned i = 0; i < op->n_operands; i++)
		if (e->last[tc_in(op, i)->id] == op)
			drop(e, tc_in(op, i));
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
	e->limit = c->options->memory_limit;
	e->at = need(c, c->next_id + 1u, sizeof(*e->at));
	e->last = need(c, c->next_id + 1u, sizeof(*e->last));
	o.place = need(c, c->next_id + 1u, sizeof(*o.place));
	tc_walk(c->module, count_op, &o);
	tc_walk(c->module, note_uses, &o);
}

/* ---- the door ---- */

struct job {
	struct eval e;
	const struct tc_array *args;
	size_t n_args;
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
	in = new_value(&j->e, v);
	if (a->bytes)
		memcpy(in->data, a->data, a->bytes);
	tidy(in);
}

static void hand_out(struct job *j, const struct tc_block *main)
{
	size_t n = main->last->n_operands;

	j->outs = calloc(n + 1, sizeof(*j->outs));
	for (size_t i = 0; j->outs && i < n; i++) {
		const struct eval_array *a = result(&j->e, main, (unsigned)i);
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

static void evaluate(struct tc_ctx *c, void *arg)
{
	struct job *j = arg;
	const struct tc_block *main = tc_main(c);

	prepare(&j->e, c);
	if (j->n_args != main->n_args)
		tc_fail(c, ERR_INVALID_ARGUMENT, NULL,
			"%zu arguments are given, but the program takes %u", j->n_args,
			main->n_args);
	for (unsigned i = 0; i < main->n_args; i++)
		take_argument(j, i, main->args[i]);
	/* main may not be called by what it calls */
	main->region->parent->side = main->region->parent;
	run_block(&j->e, main);
	hand_out(j, main);
}

int tc_eval(const struct tc_source *source, const struct tc_array *args, size_t n_args,
	    struct tc_array **outs, size_t *n_outs, struct err *err)
{
	const struct tc_options options = { .memory_limit = MEMORY_LIMIT };
	struct job j = { .args = args, .n_args = n_args };
	int code = tc_enter(source, &options, err, evaluate, &j);

	while (j.e.all) {
		struct eval_array *a = j.e.all;

		j.e.all = a->next;
		free(a);
	}
	if (code) {
		tc_array_free(j.outs, j.n_outs);
		return code;
	}
	*outs = j.outs;
	*n_outs = j.n_outs;
	return 0;
}

void tc_array_free(struct tc_array *arrays, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(arrays[i].data);
	free(arrays);
}
