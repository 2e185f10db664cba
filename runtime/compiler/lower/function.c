/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of functions that the host knows by name (XLA's FFI, jax.ffi.ffi_call): custom calls
 * with a dictionary of attributes, whose target is none of ours, become calls of the host.
 *
 * Arrays go dense and row-major; a function that asks for another order of dims is given the
 * array turned, and its dims as they were. Tokens are not sent, but counted among what it sees.
 */
#include <inttypes.h>
#include <string.h>

#include "runtime/compiler/lower/decompose.h"

/* The order in which the function wants array i, from the outermost dim; false: row-major. */
static bool find_order(struct tc_ctx *c, const struct tc_op *op, const char *name, unsigned i,
		       const struct tc_type *t, int64_t order[TC_MAX_RANK])
{
	unsigned n = !strcmp(name, "operand_layouts") ? op->n_operands : op->n_results;
	const struct tc_attr *a = tc_attr(op, name), *item;
	bool is_plain = true;
	uint32_t seen = 0;

	/* nor is anything said by a list without entries */
	if (!a || !a->n || !t->rank)
		return false;
	item = a->kind == TC_ATTR_ATTRS && a->n == n ? &a->attrs[i] : NULL;
	if (!item || item->kind != TC_ATTR_DENSE || item->type->elem != ELEM_S64 ||
	    item->type->count != t->rank || item->is_splat)
		tc_fail(c, ERR_INVALID_ARGUMENT, op, "its %s are not an order of the dims for "
			"each array", name);
	for (unsigned d = 0; d < t->rank; d++) {
		int64_t from;

		memcpy(&from, (const char *)item->data + (t->rank - 1 - d) * sizeof(from),
		       sizeof(from));
		if (from < 0 || from >= t->rank || seen >> from & 1)
			tc_fail(c, ERR_INVALID_ARGUMENT, op, "its %s: dim %" PRId64 " of an array "
				"of rank %u, or twice", name, from, t->rank);
		seen |= 1u << from;
		order[d] = from;
		is_plain &= from == d;
	}
	return !is_plain;
}

static const struct tc_type *turned(struct tc_ctx *c, const struct tc_type *t,
				    const int64_t *order)
{
	int64_t dim[TC_MAX_RANK];

	for (unsigned d = 0; d < t->rank; d++)
		dim[d] = t->dim[order[d]];
	return tc_tensor(c, (enum elem)t->elem, t->rank, dim);
}

static int64_t alias_of(struct tc_ctx *c, const struct tc_op *op, unsigned result)
{
	unsigned n;
	const int64_t *pairs = tc_attr_ints(op, "aliases", &n);

	for (unsigned i = 0; i + 1 < n; i += 2) {
		int64_t out = pairs[i], in = pairs[i + 1];

		if (out < 0 || out >= op->n_results || in < 0 || in >= op->n_operands ||
		    tc_in(op, (unsigned)in)->type != tc_out(op, (unsigned)out)->type)
			tc_fail(c, ERR_INVALID_ARGUMENT, op, "result %" PRId64 " is to lie in "
				"operand %" PRId64 ", which has another type or is not there", out,
				in);
		if (out == result)
			return in;
	}
	return -1;
}

struct call {
	struct tc_value **in;	/* what is sent */
	const struct tc_type **out;	/* what is received, and a token */
	unsigned n_in, n_out;
	int64_t *arrays;	/* as ops.def has it */
	unsigned n_arrays;
};

static void note(struct call *k, const struct tc_type *t)
{
	k->arrays[k->n_arrays++] = t->elem;
	k->arrays[k->n_arrays++] = t->rank;
	for (unsigned d = 0; d < t->rank; d++)
		k->arrays[k->n_arrays++] = t->dim[d];
}

static struct call read_call(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	size_t n = (size_t)op->n_operands + op->n_results;
	int64_t order[TC_MAX_RANK];
	struct call k = {
		.in = arena_array(&c->arena, op->n_operands + 1, sizeof(*k.in)),
		.out = arena_array(&c->arena, op->n_results + 1, sizeof(*k.out)),
		.arrays = arena_array(&c->arena, n * (TC_MAX_RANK + 3) + 1, sizeof(*k.arrays)),
	};

	if (!k.in || !k.out || !k.arrays)
		tc_fail(c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	k.arrays[k.n_arrays++] = op->n_operands;
	for (unsigned i = 0; i < op->n_operands; i++) {
		struct tc_value *v = tc_in(op, i);

		note(&k, v->type);
		if (v->type->elem == ELEM_TOKEN)
			continue;
		k.in[k.n_in++] = find_order(c, op, "operand_layouts", i, v->type, order) ?
				 tc_build_transpose(&b, v, order) : v;
	}
	for (unsigned i = 0; i < op->n_results; i++) {
		const struct tc_type *t = op->results[i].type;

		note(&k, t);
		k.arrays[k.n_arrays++] = alias_of(c, op, i);
		if (t->elem != ELEM_TOKEN)
			k.out[k.n_out++] = find_order(c, op, "result_layouts", i, t, order) ?
					   turned(c, t, order) : t;
	}
	k.out[k.n_out] = tc_tensor(c, ELEM_TOKEN, 0, NULL);
	return k;
}

static void replace(struct tc_ctx *c, struct tc_op *op)
{
	struct call k = read_call(c, op);
	struct tc_build b = tc_build_at(c, op);
	int64_t *zeros = arena_array(&c->arena, k.n_in + k.n_out + 1u, sizeof(*zeros));
	int64_t order[TC_MAX_RANK], back[TC_MAX_RANK];
	struct tc_op *call;
	unsigned n = 0;

	if (!zeros)
		tc_fail(c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	call = tc_build_place(&b, tc_new(c, TC_HOST_CALL, k.n_in, k.in, k.n_out + 1, k.out, 0));
	tc_set_ints(c, call, "send_channels", zeros, k.n_in);
	tc_set_ints(c, call, "recv_channels", zeros, k.n_out);
	tc_set_str(c, call, "target", tc_attr_str(op, "call_target_name"));
	tc_set_attr(c, call, *tc_attr(op, "frame"));
	tc_set_ints(c, call, "arrays", k.arrays, k.n_arrays);
	for (unsigned i = 0; i < op->n_results; i++) {
		const struct tc_type *t = op->results[i].type;
		struct tc_value *v;

		if (t->elem == ELEM_TOKEN) {
			tc_replace_uses(tc_out(op, i), tc_out(call, k.n_out));
			continue;
		}
		v = tc_out(call, n++);
		if (find_order(c, op, "result_layouts", i, t, order)) {
			for (unsigned d = 0; d < t->rank; d++)
				back[order[d]] = d;
			v = tc_build_transpose(&b, v, back);
		}
		tc_replace_uses(tc_out(op, i), v);
	}
	tc_erase(op);
}

static bool is_unused(const struct tc_op *op)
{
	for (unsigned i = 0; i < op->n_results; i++)
		if (!tc_is_unused(tc_out(op, i)))
			return false;
	return !tc_attr_int(op, "has_side_effect", 0);
}

static void take(struct tc_ctx *c, struct tc_block *b)
{
	struct tc_op *before;

	for (struct tc_op *op = b->last; op; op = before) {
		before = op->prev;
		for (unsigned r = 0; r < op->n_regions; r++)
			if (op->regions[r].block)
				take(c, op->regions[r].block);
		if (op->op != TC_CUSTOM_CALL || !tc_attr(op, "frame") || tc_is_own_call(op))
			continue;
		if (is_unused(op))
			tc_erase(op);
		else if (tc_attr(op, "no_frame"))
			tc_fail(c, ERR_UNIMPLEMENTED, op, "the function \"%s\" of the host can't "
				"be called: %s", tc_attr_str(op, "call_target_name"),
				tc_attr_str(op, "no_frame"));
		else
			replace(c, op);
	}
}

void tc_take_functions(struct tc_ctx *c)
{
	take(c, tc_main(c));
}
