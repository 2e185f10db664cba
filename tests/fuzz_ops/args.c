/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz_ops/args.h"

static struct tc_value *new_argument(struct tc_ctx *c, struct tc_value *like)
{
	struct tc_block *b = tc_main(c);
	struct tc_op *func = b->region->parent;
	struct tc_arg_info *infos = arena_array(&c->arena, b->n_args + 1u, sizeof(*infos));
	struct tc_value *v;

	if (!infos)
		tc_fail(c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	for (unsigned i = 0; i <= b->n_args; i++)
		infos[i] = i < b->n_args && func->arg_info ? func->arg_info[i] :
			   (struct tc_arg_info){ .alias = -1 };
	func->arg_info = infos;
	v = tc_new_arg(c, b, like->type);
	v->side = like->side;
	return v;
}

static bool is_in_main(const struct tc_op *op)
{
	for (; op->op == TC_WHILE || op->op == TC_IF || op->op == TC_CASE || op->op == TC_FUNC;
	     op = op->block->region->parent)
		if (op->op == TC_FUNC)
			return !strcmp(tc_attr_str(op, "sym_name"), "main");
	return false;
}

bool args_replace(struct tc_ctx *c, struct tc_op *op)
{
	bool any = false;

	if (!op->n_results || !is_in_main(op->block->region->parent))
		return false;
	for (unsigned i = 0; i < op->n_results; i++) {
		struct tc_value *v = tc_out(op, i);

		if (v->type->is_tuple || v->type->elem == ELEM_TOKEN)
			return false;
		if (tc_is_unused(v))
			continue;
		tc_replace_uses(v, new_argument(c, v));
		any = true;
	}
	return any;
}

/* The constant's elements one after the other, also of a splat; small types without the bits
 * that are not theirs. */
static void take_constant(struct tc_ctx *c, const struct tc_op *op, struct tc_array *out)
{
	const struct tc_type *t = op->results[0].type;
	const struct tc_attr *a = tc_attr(op, "value");
	unsigned bits = elem_bits(t->elem);
	size_t size = elem_bytes(t->elem);
	char *data = malloc((size_t)t->count * size + 1);

	if (!data)
		tc_fail(c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	*out = (struct tc_array){ .elem = t->elem, .rank = t->rank, .data = data,
				  .bytes = (size_t)t->count * size };
	memcpy(out->dim, t->dim, t->rank * sizeof(*t->dim));
	for (size_t i = 0; i < (size_t)t->count; i++)
		memcpy(data + i * size, (const char *)a->data + (a->is_splat ? 0 : i * size),
		       size);
	for (size_t i = 0; bits < 8 && i < out->bytes; i++)
		data[i] = (char)(data[i] & ((1 << bits) - 1));
}

struct constants { struct tc_op *op[ARGS_CONSTANTS]; unsigned n; };

static void find_constant(struct tc_op *op, void *arg)
{
	struct constants *found = arg;

	if (op->op == TC_CONSTANT && op->results[0].type->rank <= 8 &&
	    found->n < ARGS_CONSTANTS)
		found->op[found->n++] = op;
}

unsigned args_replace_constants(struct tc_ctx *c, struct tc_array *data)
{
	struct constants found = { .n = 0 };
	unsigned n = 0;

	tc_walk(c->module, find_constant, &found);
	for (unsigned i = 0; i < found.n; i++)
		if (args_replace(c, found.op[i]))
			take_constant(c, found.op[i], &data[n++]);
	return n;
}
