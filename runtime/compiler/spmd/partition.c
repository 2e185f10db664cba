/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that a function of the framework shares out: it says how it wants its operands and gives
 * its results, and what each member does with its parts. The call becomes that, a manual
 * computation.
 *
 * Requires: a verified program after `inline`, for several partitions. Ensures: no call is left of
 * a target that has functions; nothing of the framework's process is asked for any more.
 * Fails: as the functions do; INVALID_ARGUMENT for answers that are broken or do not fit;
 * UNIMPLEMENTED for shardings that do not fit the program's mesh, and programs that call the host.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/compiler/opt/build.h"
#include "runtime/compiler/passes.h"
#include "runtime/compiler/spmd/propagate.h"

struct call {
	struct tc_op *op;
	struct tc_partition_call asked;
	struct spmd_sharding **found;	/* of its arrays: what it is asked with */
	struct spmd_axes manual;	/* of what is around it */
	struct call *next;
};

struct asking {
	struct tc_ctx *c;
	const struct tc_asking *how;
	struct spmd_shardings *p;
	struct call *first, **last;
};

static const struct tc_value *value_of(const struct tc_op *op, unsigned t)
{
	return t < op->n_operands ? tc_in(op, t) : tc_out(op, t - op->n_operands);
}

/* ---- what is asked ---- */

static void find_call(struct tc_op *op, void *arg)
{
	const char *target = op->op == TC_CUSTOM_CALL ? tc_attr_str(op, "call_target_name") :
			     NULL;
	struct asking *a = arg;
	const struct tc_attr *config;
	struct call *k;

	if (!target || !a->how->by->has(a->how->by->arg, target))
		return;
	for (unsigned t = 0; t < op->n_operands + op->n_results; t++)
		if (value_of(op, t)->type->is_tuple || value_of(op, t)->type->elem == ELEM_TOKEN)
			tc_fail(a->c, ERR_UNIMPLEMENTED, op, "%.100s takes or gives something "
				"else than arrays, which no partitioner is asked for", target);
	config = tc_attr(op, "backend_config");
	k = arena_alloc(&a->c->arena, sizeof(*k));
	*k = (struct call){ .op = op, .asked = {
		.target = target, .n_operands = op->n_operands, .n_results = op->n_results } };
	if (config && config->kind == TC_ATTR_STR)
		k->asked.config = (struct tc_bytes){ config->text, config->n };
	*a->last = k;
	a->last = &k->next;
}

/* Axes along which each device does by itself what is around op. */
static struct spmd_axes manual_around(struct asking *a, const struct tc_op *op)
{
	struct spmd_axes all = { 0 };

	for (op = op->block->region->parent; op->op != TC_FUNC; op = op->block->region->parent) {
		struct spmd_axes own;

		if (op->op != TC_MANUAL_COMPUTATION)
			continue;
		own = spmd_read_names(a->p->s, op, tc_attr_str(op, "manual_axes"), a->p->mesh);
		for (uint32_t i = 0; i < own.n; i++)
			if (!spmd_has(&all, own.at[i]))
				spmd_push(&all, own.at[i]);
	}
	return all;
}

/* Of the list the front that divides the dim. */
static struct spmd_axes even_front(const struct spmd_axes *a, int64_t size,
				   const struct spmd_axes *manual)
{
	struct spmd_axes to = { 0 };

	for (uint32_t i = 0; i < a->n && !(size % a->at[i].size) &&
	     !spmd_has(manual, a->at[i]); i++) {
		size /= a->at[i].size;
		spmd_push(&to, a->at[i]);
	}
	return to;
}

static struct spmd_sharding *found_of(struct asking *a, const struct call *k,
				      const struct tc_value *v)
{
	const struct spmd_sharding *found = a->p->of[v->id];
	struct spmd_sharding *h = spmd_new(a->p->s, a->p->mesh, v->type->rank);

	for (uint32_t d = 0; d < h->rank; d++) {
		h->dim[d].is_open = false;
		if (found->kind == SPMD_TILED)
			h->dim[d].axes = even_front(&found->dim[d].axes, v->type->dim[d],
						    &k->manual);
	}
	return h;
}

static struct tc_bytes as_bytes(struct asking *a, const struct call *k,
				const struct spmd_sharding *said)
{
	struct spmd_sharding h = *said;
	struct tc_bytes to = { 0 };

	h.manual = k->manual;
	if (spmd_size(&k->manual) == a->p->mesh->devices)
		h.kind = SPMD_MANUAL;
	to.p = spmd_write_proto(a->p->s, &h, &to.n);
	return to;
}

static void describe(struct asking *a, struct call *k)
{
	unsigned n = k->asked.n_operands + k->asked.n_results;
	struct tc_partition_array *list = arena_array(&a->c->arena, n, sizeof(*list));

	k->manual = manual_around(a, k->op);
	k->found = arena_array(&a->c->arena, n, sizeof(*k->found));
	for (unsigned t = 0; t < n; t++) {
		const struct tc_value *v = value_of(k->op, t);

		k->found[t] = found_of(a, k, v);
		list[t] = (struct tc_partition_array){ v->type->elem, v->type->rank, v->type->dim,
						       as_bytes(a, k, k->found[t]) };
	}
	k->asked.arrays = list;
}

/* ---- answers ---- */

static void free_answer(struct tc_ctx *c)
{
	free(c->held);
}

static const void *kept(struct tc_ctx *c, struct tc_bytes b)
{
	return b.n ? arena_copy(&c->arena, b.p, b.n) : NULL;
}

/* One of the functions' answer, in the arena. */
static struct tc_partition_answer ask(struct asking *a, const struct call *k,
				      int (*fn)(void *arg, const struct tc_partition_call *call,
						struct tc_partition_answer *out,
						struct err *err))
{
	struct tc_partition_answer is = { 0 }, to = { 0 };
	struct tc_bytes *operands;
	struct err err = { 0 };
	int code = fn(a->how->by->arg, &k->asked, &is, &err);

	if (code)
		tc_fail(a->c, code, NULL, "%s", err.msg);	/* as it was said */
	a->c->held = is.memory;
	a->c->free_held = free_answer;
	to.program = (struct tc_bytes){ kept(a->c, is.program), is.program.n };
	to.results = (struct tc_bytes){ kept(a->c, is.results), is.results.n };
	operands = arena_array(&a->c->arena, k->asked.n_operands, sizeof(*operands));
	for (unsigned i = 0; is.operands && i < k->asked.n_operands; i++)
		operands[i] = (struct tc_bytes){ kept(a->c, is.operands[i]), is.operands[i].n };
	to.operands = operands;
	tc_free_held(a->c);
	return to;
}

/* Over the program's mesh, without the axes that are manual around it. */
static struct spmd_sharding *read_answer(struct asking *a, const struct call *k, const char *text,
					 uint32_t rank)
{
	struct spmd_sharding *said = spmd_read(a->p->s, k->op, text, rank);
	struct spmd_sharding *to = spmd_new(a->p->s, a->p->mesh, rank), h;

	if (said->kind == SPMD_MANUAL && spmd_size(&k->manual) == a->p->mesh->devices)
		said = spmd_new(a->p->s, a->p->mesh, rank);
	if (said->kind != SPMD_TILED)
		tc_fail(a->c, ERR_INVALID_ARGUMENT, k->op, "its partitioner wants %.100s, which "
			"does not say which part each device has", text);
	if (!spmd_to_mesh(a->p->s, said, a->p->mesh, &h))
		tc_fail(a->c, ERR_UNIMPLEMENTED, k->op, "its partitioner wants %.100s, which are "
			"no axes, nor parts of axes, of the program's mesh of %" PRIu32 " devices",
			text, a->p->mesh->devices);
	for (uint32_t d = 0; d < rank; d++) {
		to->dim[d].is_open = false;
		to->dim[d].axes = h.dim[d].axes;
		for (uint32_t i = 0; i < h.dim[d].axes.n; i++)
			if (spmd_has(&k->manual, h.dim[d].axes.at[i]))
				tc_fail(a->c, ERR_INVALID_ARGUMENT, k->op, "its partitioner wants "
					"%.100s, and along a part of that each device does by "
					"itself what is around the call", text);
	}
	return to;
}

/* Of operand or result t how the answer has it. */
static struct spmd_sharding **read_answers(struct asking *a, const struct call *k,
					   const struct tc_partition_answer *is)
{
	unsigned n_in = k->asked.n_operands, n_out = k->asked.n_results;
	struct spmd_sharding **h = arena_array(&a->c->arena, n_in + n_out, sizeof(*h));
	const char **text = arena_array(&a->c->arena, n_in + n_out, sizeof(*text));

	for (unsigned i = 0; i < n_in; i++)
		a->how->read_shardings(a->c, is->operands[i].p, is->operands[i].n, 1, &text[i]);
	a->how->read_shardings(a->c, is->results.p, is->results.n, n_out, text + n_in);
	for (unsigned t = 0; t < n_in + n_out; t++)
		h[t] = read_answer(a, k, text[t], k->asked.arrays[t].rank);
	return h;
}

static void set_shardings(struct asking *a, struct tc_op *op, const char *name,
			  struct spmd_sharding *const *h, unsigned n)
{
	struct tc_attr list = { .key = tc_key(a->c, name, strlen(name)),
				.kind = TC_ATTR_ATTRS, .n = n };
	struct tc_attr *items = arena_array(&a->c->arena, n, sizeof(*items));

	for (unsigned i = 0; i < n; i++) {
		const char *text = spmd_text(a->p->s, h[i]);

		items[i] = (struct tc_attr){ .key = TC_KEY(a->c, ""), .kind = TC_ATTR_STR,
					     .text = text, .n = (uint32_t)strlen(text) };
	}
	list.attrs = items;
	tc_set_attr(a->c, op, list);
}

/* ---- without a rule ---- */

/* Whether a sharding is more than none. */
static bool is_cut(const struct spmd_sharding *h)
{
	uint32_t n = 0;

	for (uint32_t d = 0; d < h->rank; d++)
		n += h->dim[d].axes.n;
	return n;
}

static bool any_is_cut(const struct asking *a, const struct call *k, unsigned from, unsigned n)
{
	for (unsigned t = from; t < from + n; t++)
		if (is_cut(a->p->of[value_of(k->op, t)->id]))
			return true;
	return false;
}

static void set_results(struct asking *a, const struct call *k, struct tc_bytes said)
{
	unsigned n = k->asked.n_results;
	struct spmd_sharding **h = arena_array(&a->c->arena, n, sizeof(*h));
	const char **text = arena_array(&a->c->arena, n, sizeof(*text));

	a->how->read_shardings(a->c, said.p, said.n, n, text);
	for (unsigned i = 0; i < n; i++)
		h[i] = read_answer(a, k, text[i], k->asked.arrays[k->asked.n_operands + i].rank);
	set_shardings(a, k->op, "result_shardings", h, n);
}

/* Where nobody wants a call's results otherwise they lie by its operands, as its function says.
 * Whether one was asked: what it said goes further. */
static bool infer_one(struct asking *a)
{
	for (struct call *k = a->first; k; k = k->next) {
		struct tc_partition_answer is;

		if (tc_attr_str(k->op, "sharding_rule") || tc_attr(k->op, "result_shardings") ||
		    !k->asked.n_results ||
		    any_is_cut(a, k, k->asked.n_operands, k->asked.n_results) ||
		    !any_is_cut(a, k, 0, k->asked.n_operands))
			continue;
		describe(a, k);
		is = ask(a, k, a->how->by->infer);
		if (!is.results.n)
			continue;
		set_results(a, k, is.results);
		return true;
	}
	return false;
}

/* What users want of the results, as the function would have it. */
static void ask_for_users(struct asking *a, struct call *k)
{
	struct tc_partition_array *list;
	struct tc_partition_answer is;
	const char **text;

	if (tc_attr_str(k->op, "sharding_rule") || tc_attr(k->op, "result_shardings") ||
	    !k->asked.n_results)
		return;
	is = ask(a, k, a->how->by->propagate);
	if (!is.results.n)
		return;
	text = arena_array(&a->c->arena, k->asked.n_results, sizeof(*text));
	list = arena_copy(&a->c->arena, k->asked.arrays,
			  (k->asked.n_operands + k->asked.n_results) * sizeof(*list));
	a->how->read_shardings(a->c, is.results.p, is.results.n, k->asked.n_results, text);
	for (unsigned i = 0; i < k->asked.n_results; i++) {
		struct tc_partition_array *r = &list[k->asked.n_operands + i];

		r->sharding = as_bytes(a, k, read_answer(a, k, text[i], r->rank));
	}
	k->asked.arrays = list;
}

/* ---- what the call becomes ---- */

/* The whole with dims rounded up to what is cut, and a member's part of that. */
static const struct tc_type *rounded(struct asking *a, const struct tc_type *t,
				     const struct spmd_sharding *h, const struct tc_type **part)
{
	int64_t whole[TC_MAX_RANK], own[TC_MAX_RANK];

	for (unsigned d = 0; d < t->rank; d++) {
		int64_t n = spmd_size(&h->dim[d].axes);

		own[d] = t->dim[d] / n + (t->dim[d] % n != 0);
		whole[d] = own[d] * n;
	}
	*part = tc_tensor(a->c, (enum elem)t->elem, t->rank, own);
	return tc_tensor(a->c, (enum elem)t->elem, t->rank, whole);
}

static struct tc_value *pad_to(const struct tc_build *b, struct tc_value *v,
			       const struct tc_type *type)
{
	int64_t zero[TC_MAX_RANK] = { 0 }, high[TC_MAX_RANK];

	if (v->type == type)
		return v;
	for (unsigned d = 0; d < type->rank; d++)
		high[d] = type->dim[d] - v->type->dim[d];
	return tc_build_pad(b, v, tc_build_number(b, tc_tensor(b->c, (enum elem)type->elem, 0,
							       NULL), 0), zero, high, zero);
}

/* All axes of the mesh that are not manual yet, by name. */
static const char *free_axes(struct asking *a, const struct call *k)
{
	const struct spmd_mesh *m = a->p->mesh;
	struct spmd_axes all = { 0 };

	for (uint32_t i = 0; i < m->n_axes; i++) {
		struct spmd_piece p = { i, 1, m->axis[i].size };

		if (p.size > 1 && !spmd_has(&k->manual, p))
			spmd_push(&all, p);
	}
	return spmd_names_text(a->p->s, m, &all);
}

struct inner { struct tc_ctx *c; const struct tc_op *call; };

/* What each device does by itself is not for a partitioner, nor has anybody to talk to. */
static void settle_inner(struct tc_op *op, void *arg)
{
	const struct inner *in = arg;

	switch (op->op) {
	case TC_SHARDING_CONSTRAINT:
		tc_replace(op, tc_in(op, 0));
		break;
	case TC_SHARDING_GROUP:
		tc_erase(op);
		break;
	case TC_SEND:
	case TC_RECV:
	case TC_MANUAL_COMPUTATION:
		tc_fail(in->c, ERR_UNIMPLEMENTED, in->call, "the program that its partitioner "
			"gave has %s, which does not run there: do it outside",
			tc_op_info(op->op)->text);
	default: break;
	}
}

/* The body that a partitioner gave, whose arguments and results are the parts. */
static struct tc_block *read_body(struct asking *a, const struct call *k, struct tc_bytes program)
{
	struct tc_op *m = a->how->read(a->c, k->op, program.p, program.n);
	struct tc_op *func = m->regions[0].block->first;
	struct inner in = { a->c, k->op };
	struct tc_block *b;

	tc_walk(func, settle_inner, &in);
	b = func->regions[0].block;
	if (b->n_args != k->asked.n_operands || b->last->n_operands != k->asked.n_results)
		tc_fail(a->c, ERR_INVALID_ARGUMENT, k->op, "the program that its partitioner gave "
			"takes %u arrays and gives %u, of %u and %u", b->n_args,
			b->last->n_operands, k->asked.n_operands, k->asked.n_results);
	return b;
}

static void check_part(struct asking *a, const struct call *k, const char *what, unsigned i,
		       const struct tc_type *is, const struct tc_type *part)
{
	if (is != part)
		tc_fail(a->c, ERR_INVALID_ARGUMENT, k->op, "%s %u of the program that its "
			"partitioner gave is not what a member has of the call's, as the "
			"partitioner cuts it", what, i);
}

/* With ids of this program. */
static void copy_body(struct asking *a, const struct tc_block *body, struct tc_region *to)
{
	struct tc_block *b = tc_new_block(a->c, to);
	struct tc_map *map = tc_map_new(a->c);

	for (unsigned i = 0; i < body->n_args; i++)
		tc_map_set(a->c, map, body->args[i], tc_new_arg(a->c, b, body->args[i]->type));
	for (const struct tc_op *o = body->first; o; o = o->next)
		tc_append(b, tc_clone(a->c, o, map));
}

/* v, which lies as was found, whatever the partitioner wants or gives: so the program that comes
 * of this lies as the one before it. */
static struct tc_value *hold(struct asking *a, const struct tc_build *b, struct tc_value *v,
			     const struct spmd_sharding *found, const struct spmd_sharding *said)
{
	bool is_same = true;

	for (uint32_t d = 0; d < found->rank; d++)
		is_same &= spmd_same_axes(&found->dim[d].axes, &said->dim[d].axes);
	if (is_same)
		return v;
	v = tc_build(b, TC_SHARDING_CONSTRAINT, v->type, 1, &v);
	tc_set_str(a->c, v->def, "sharding", spmd_text(a->p->s, found));
	return v;
}

static void replace(struct asking *a, struct call *k)
{
	struct tc_partition_answer is = ask(a, k, a->how->by->partition);
	struct spmd_sharding **h = read_answers(a, k, &is);
	unsigned n_in = k->asked.n_operands, n_out = k->asked.n_results;
	struct tc_value **in = arena_array(&a->c->arena, n_in, sizeof(*in));
	const struct tc_type **types = arena_array(&a->c->arena, n_out, sizeof(*types)), *part;
	struct tc_block *body = read_body(a, k, is.program);
	struct tc_build b = tc_build_at(a->c, k->op);
	int64_t zero[TC_MAX_RANK] = { 0 };
	struct tc_op *made;

	for (unsigned i = 0; i < n_in; i++) {
		in[i] = hold(a, &b, tc_in(k->op, i), k->found[i], h[i]);
		in[i] = pad_to(&b, in[i], rounded(a, in[i]->type, h[i], &part));
		check_part(a, k, "argument", i, body->args[i]->type, part);
	}
	for (unsigned i = 0; i < n_out; i++) {
		types[i] = rounded(a, tc_out(k->op, i)->type, h[n_in + i], &part);
		check_part(a, k, "result", i, tc_in(body->last, i)->type, part);
	}
	made = tc_new(a->c, TC_MANUAL_COMPUTATION, n_in, in, n_out, types, 1);
	made->where = k->op->where;
	copy_body(a, body, &made->regions[0]);
	set_shardings(a, made, "in_shardings", h, n_in);
	set_shardings(a, made, "out_shardings", h + n_in, n_out);
	tc_set_str(a->c, made, "manual_axes", free_axes(a, k));
	tc_insert_before(k->op, made);
	for (unsigned i = 0; i < n_out; i++) {
		struct tc_value *v = tc_out(made, i), *old = tc_out(k->op, i);

		if (types[i] != old->type)
			v = tc_build_slice(&b, v, zero, old->type);
		tc_replace_uses(old, hold(a, &b, v, k->found[n_in + i], h[n_in + i]));
	}
	tc_erase(k->op);
}

bool tc_share_calls(struct tc_ctx *c, const struct tc_asking *how)
{
	struct asking a = { .c = c, .how = how };
	struct spmd *s;

	a.last = &a.first;
	tc_walk(c->module, find_call, &a);
	if (!a.first)
		return false;
	tc_set_int(c, c->module, "num_partitions", TC_ATTR_INT, c->options->partitions);
	s = spmd_open(c);
	spmd_prepare(s);
	do
		a.p = spmd_propagate(s);
	while (infer_one(&a));
	/* All before the first of them changes the program. */
	for (struct call *k = a.first; k; k = k->next)
		describe(&a, k);
	for (struct call *k = a.first; k; k = k->next) {
		ask_for_users(&a, k);
		replace(&a, k);
	}
	return true;
}
