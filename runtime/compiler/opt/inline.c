/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replaces calls and composites by the bodies that they name, and tuples by their parts.
 *
 * Requires: a verified module. Ensures: main is the only function; no call, composite,
 * tuple or get_tuple_element is left, but for tuples within tuples that custom calls
 * yield; no ApproxTopK, whose comparator is a function.
 * Fails: INVALID_ARGUMENT on recursion or a call that does not fit, RESOURCE_EXHAUSTED
 * when the program grows past MAX_OPS or nests deeper than MAX_NEST: later passes walk
 * regions by recursion.
 */
#include <string.h>

#include "runtime/compiler/opt/build.h"
#include "runtime/compiler/passes.h"

#define MAX_OPS 2000000u
#define MAX_NEST 500u	/* of regions, and of calls while they are followed */

enum state { FRESH, BUSY, READY };

struct func_state {
	struct tc_op *func;
	const char *name;	/* a key; NULL: none */
	enum state state;
};

struct pass {
	struct tc_ctx *c;
	struct func_state *funcs;
	unsigned n_funcs;
	uint32_t *by_name;	/* [room], a power of 2: numbers in funcs, plus one */
	size_t room;
	unsigned depth;		/* blocks being walked */
	uint32_t first_id;
};

static void inline_block(struct pass *p, struct tc_block *b);

/* How deep the regions of a block nest. What was inlined into it is no deeper than
 * MAX_NEST, what was read no deeper than the reader allows: recursion is safe. */
static unsigned nest_of(const struct tc_block *b)
{
	unsigned most = 0;

	for (const struct tc_op *op = b->first; op; op = op->next)
		for (unsigned r = 0; r < op->n_regions; r++) {
			unsigned n = op->regions[r].block ? nest_of(op->regions[r].block) : 0;

			most = n > most ? n : most;
		}
	return most + 1;
}

static void inline_function(struct pass *p, struct tc_op *func)
{
	struct tc_block *body = func->regions[0].block;

	inline_block(p, body);
	if (nest_of(body) > MAX_NEST)
		tc_fail(p->c, ERR_RESOURCE_EXHAUSTED, func, "regions nest deeper than %u",
			MAX_NEST);
}

/* Where the first function of that name, a key, is in by_name, or would be. */
static uint32_t *place_of(const struct pass *p, const char *key)
{
	size_t at = (size_t)((uintptr_t)key / 8 * 0x9e3779b97f4a7c15u >> 20);

	for (at &= p->room - 1; p->by_name[at] && p->funcs[p->by_name[at] - 1].name != key;)
		at = (at + 1) & (p->room - 1);
	return &p->by_name[at];
}

static struct tc_block *callee(struct pass *p, struct tc_op *op, const char *name)
{
	uint32_t number = *place_of(p, tc_key(p->c, name, strlen(name)));
	struct func_state *f = number ? &p->funcs[number - 1] : NULL;

	if (!f)
		tc_fail(p->c, ERR_INVALID_ARGUMENT, op, "no function is called %s", name);
	if (f->state == BUSY)
		tc_fail(p->c, ERR_INVALID_ARGUMENT, op, "%s calls itself", name);
	if (f->state == FRESH) {
		f->state = BUSY;
		inline_function(p, f->func);
		f->state = READY;
	}
	return f->func->regions[0].block;
}

static void inline_call(struct pass *p, struct tc_op *op, const char *name)
{
	struct tc_block *body = callee(p, op, name);
	struct tc_map *map = tc_map_new(p->c);
	struct tc_op *last = body->last;

	if (body->n_args != op->n_operands || !last || last->n_operands != op->n_results)
		tc_fail(p->c, ERR_INVALID_ARGUMENT, op, "the call does not fit %s", name);
	for (unsigned i = 0; i < body->n_args; i++)
		if (body->args[i]->type != tc_in(op, i)->type)
			tc_fail(p->c, ERR_INVALID_ARGUMENT, op, "operand %u is not of the type "
				"that %s takes", i, name);
	for (unsigned i = 0; i < op->n_results; i++)
		if (tc_in(last, i)->type != op->results[i].type)
			tc_fail(p->c, ERR_INVALID_ARGUMENT, op, "result %u is not of the type "
				"that %s gives", i, name);
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
	tc_replace(op, tc_out(erf, 0));
}

static void take_part(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_op *def = tc_in(op, 0)->def;
	int64_t i = tc_attr_int(op, "index", -1);

	if (!def || def->op != TC_TUPLE || i < 0 || i >= def->n_operands)
		return;
	if (tc_in(def, (unsigned)i)->type != op->results[0].type)
		tc_fail(c, ERR_INVALID_ARGUMENT, op, "part %lld of the tuple has another type",
			(long long)i);
	tc_replace(op, tc_in(def, (unsigned)i));
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

/* A comparison of floats by their total order, as top_k's is: then few of them need be sorted.
 * What the other order says of a NaN, or of zeros' signs, is no order to keep. */
static void compare_totally(struct tc_ctx *c, const struct tc_block *body)
{
	struct tc_op *first = body->first;
	int64_t way = first ? tc_attr_int(first, "comparison_direction", -1) : -1;

	if (first && first == body->last && first->op == TC_COMPARE &&
	    elem_class(tc_in(first, 0)->type->elem) == ELEM_CLASS_FLOAT &&
	    (way == TC_CMP_GT || way == TC_CMP_LT))
		tc_set_int(c, first, "compare_type", TC_ATTR_ENUM, TC_CMP_TOTALORDER);
}

/*
 * ApproxTopK: values and their numbers sorted by the comparator that the call names, and
 * the first k of them: exact is approximate enough. Here, as the function that it names is
 * gone afterwards.
 */
static void replace_top_k(struct pass *p, struct tc_op *op)
{
	const char *name = tc_attr_str(op, "called_computations");
	const struct tc_block *f = name ? callee(p, op, name) : NULL;
	struct tc_ctx *c = p->c;
	const struct tc_attr *config = tc_attr(op, "attributes");
	const struct tc_type *t = op->n_operands == 4 ? tc_in(op, 0)->type : NULL, *types[2];
	struct tc_value *in[2], *yield, *args[4];
	struct tc_build b = tc_build_at(c, op), inner = { .c = c, .where = op->where };
	int64_t dim = -1, k = -1;
	struct tc_op *sort;

	for (unsigned i = 0; config && i < config->n; i++) {
		if (!strcmp(config->attrs[i].key, "reduction_dim"))
			dim = config->attrs[i].i;
		if (!strcmp(config->attrs[i].key, "top_k"))
			k = config->attrs[i].i;
	}
	if (!t || op->n_results != 2 || !f || dim < 0 || dim >= t->rank || k < 0 ||
	    k > t->dim[dim] || tc_in(op, 1)->type->is_tuple ||
	    tc_in(op, 1)->type != tc_with_elem(c, t, (enum elem)tc_in(op, 1)->type->elem) ||
	    f->n_args != 4 || f->last->n_operands != 1)
		tc_fail(c, ERR_INVALID_ARGUMENT, op, "ApproxTopK takes values, their numbers and "
			"a comparator; top_k is %lld, reduction_dim %lld", (long long)k,
			(long long)dim);
	/* A call that is not to bring its candidates down to k says by its type how many. */
	if (tc_out(op, 0)->type->rank == t->rank && tc_out(op, 0)->type->dim[dim] > k &&
	    tc_out(op, 0)->type->dim[dim] <= t->dim[dim])
		k = tc_out(op, 0)->type->dim[dim];
	for (unsigned i = 0; i < 2; i++) {
		in[i] = tc_in(op, i);
		types[i] = in[i]->type;
	}
	sort = tc_new(c, TC_SORT, 2, in, 2, types, 1);
	tc_set_int(c, sort, "dimension", TC_ATTR_INT, dim);
	tc_set_int(c, sort, "is_stable", TC_ATTR_BOOL, 1);
	inner.block = tc_new_block(c, &sort->regions[0]);
	for (unsigned i = 0; i < 4; i++) {
		const struct tc_type *one = tc_tensor(c, (enum elem)types[i / 2]->elem, 0, NULL);

		if (f->args[i]->type != one)
			tc_fail(c, ERR_INVALID_ARGUMENT, op, "its comparator's argument %u is no "
				"element of the array that it is for", i);
		args[i] = tc_new_arg(c, inner.block, one);
	}
	yield = tc_build_region(&inner, f->region, args);
	if (yield->type != tc_tensor(c, ELEM_PRED, 0, NULL))
		tc_fail(c, ERR_INVALID_ARGUMENT, op, "its comparator yields no truth value");
	compare_totally(c, inner.block);
	tc_build_return(&inner, 1, &yield);
	tc_build_place(&b, sort);
	for (unsigned i = 0; i < 2; i++) {
		struct tc_value *head = tc_build_part(&b, tc_out(sort, i), (unsigned)dim, 0, k);

		if (head->type != tc_out(op, i)->type)
			tc_fail(c, ERR_INVALID_ARGUMENT, op, "result %u has another type", i);
		tc_replace_uses(tc_out(op, i), head);
	}
	tc_erase(op);
}

/* A call that gives its results as one tuple gives them one by one: as torch_xla's MLIR has
 * Qr and Eigh. Tuples within stay. */
static struct tc_op *take_results_apart(struct tc_ctx *c, struct tc_op *op)
{
	const struct tc_type *t = op->n_results == 1 ? op->results[0].type : NULL;
	struct tc_build b = tc_build_at(c, op);
	struct tc_value **parts, **in;
	struct tc_op *flat;

	if (!t || !t->is_tuple || t->n_parts > UINT16_MAX)
		return op;
	in = arena_array(&c->arena, op->n_operands + 1u, sizeof(*in));
	parts = arena_array(&c->arena, t->n_parts + 1u, sizeof(*parts));
	if (!in || !parts)
		tc_fail(c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	for (unsigned i = 0; i < op->n_operands; i++)
		in[i] = tc_in(op, i);
	flat = tc_build_place(&b, tc_new(c, TC_CUSTOM_CALL, op->n_operands, in, t->n_parts,
					 t->parts, 0));
	flat->attrs = op->attrs;
	flat->n_attrs = op->n_attrs;
	for (unsigned i = 0; i < t->n_parts; i++)
		parts[i] = tc_out(flat, i);
	tc_replace(op, tc_build(&b, TC_TUPLE, t, t->n_parts, parts));
	return flat;
}

static void inline_custom_call(struct pass *p, struct tc_op *op)
{
	const char *target = tc_attr_str(op, "call_target_name");

	op = take_results_apart(p->c, op);
	if (!strcmp(target, "ApproxTopK"))
		replace_top_k(p, op);
	else if (!strcmp(target, "dce_sink") && !op->n_results)
		tc_erase(op);	/* JAX's way to keep a value: it is kept by now */
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
		take_part(p->c, op);
		break;
	case TC_CUSTOM_CALL:
		inline_custom_call(p, op);
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

	if (++p->depth > MAX_NEST)
		tc_fail(p->c, ERR_RESOURCE_EXHAUSTED, b->first, "calls and regions nest deeper "
			"than %u", MAX_NEST);
	for (struct tc_op *op = b->first; op; op = next) {
		next = op->next;
		inline_op(p, op);
	}
	p->depth--;
}

/* Parts of tuples that came through calls, and tuples that nobody wants any more. */
static void sweep_parts(struct tc_op *op, void *c)
{
	if (op->op == TC_GET_TUPLE_ELEMENT)
		take_part(c, op);
}

static void sweep_tuples(struct tc_block *b)
{
	struct tc_op *prev;

	for (struct tc_op *op = b->last; op; op = prev) {
		prev = op->prev;
		for (unsigned r = 0; r < op->n_regions; r++)
			if (op->regions[r].block)
				sweep_tuples(op->regions[r].block);
		if (op->op == TC_TUPLE && tc_is_unused(tc_out(op, 0)))
			tc_erase(op);
	}
}

static void list_functions(struct pass *p, const struct tc_block *top,
			   const struct tc_block *main)
{
	unsigned n = 0;

	for (const struct tc_op *f = top->first; f; f = f->next)
		n += f->op == TC_FUNC;
	for (p->room = 2; p->room < 2u * n; p->room *= 2)
		;
	p->funcs = arena_array(&p->c->arena, n, sizeof(*p->funcs));
	p->by_name = arena_array(&p->c->arena, p->room, sizeof(*p->by_name));
	if (!p->funcs || !p->by_name)
		tc_fail(p->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	for (struct tc_op *f = top->first; f; f = f->next) {
		const char *name = f->op == TC_FUNC ? tc_attr_str(f, "sym_name") : NULL;
		struct func_state *state = &p->funcs[p->n_funcs];
		uint32_t *at;

		if (f->op != TC_FUNC)
			continue;
		p->n_funcs++;
		*state = (struct func_state){ f, name ? tc_key(p->c, name, strlen(name)) : NULL,
					      f->regions[0].block == main ? BUSY : FRESH };
		at = name ? place_of(p, state->name) : NULL;
		if (at && !*at)
			*at = p->n_funcs;
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
	list_functions(&p, top, main);
	inline_function(&p, main->region->parent);
	tc_walk(main->region->parent, sweep_parts, c);
	sweep_tuples(main);
	for (struct tc_op *f = top->first; f; f = next) {
		next = f->next;
		if (f->op != TC_FUNC || f->regions[0].block != main)
			tc_erase(f);
	}
}
