/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules of collectives among several members, each of which may have arrays of another size: the
 * members tell each other their sizes in the same way (dynamic.h).
 */
#include <string.h>

#include "runtime/compiler/dynamic/dynamic.h"

#define MOST_ARRAYS 64	/* of one collective */

/* A collective of `code` among the members of op, of one operand. */
static struct tc_op *among(const struct tc_build *b, const struct tc_op *op, enum tc_opcode code,
			   struct tc_value *x, const struct tc_type *type, unsigned n_regions)
{
	static const char *const members[] = { "replica_groups", "group_size", "channel_id",
					       "use_global_device_ids", "source_target_pairs" };
	struct tc_op *to = tc_new(b->c, code, 1, &x, 1, &type, n_regions);

	for (unsigned i = 0; i < sizeof(members) / sizeof(*members); i++)
		if (tc_attr(op, members[i]))
			tc_set_attr(b->c, to, *tc_attr(op, members[i]));
	return to;
}

/* The smallest of each number of a list of s32 that the members have. */
static struct tc_value *smallest(const struct tc_build *b, const struct tc_op *op,
				 struct tc_value *list)
{
	const struct tc_type *scalar = tc_tensor(b->c, ELEM_S32, 0, NULL);
	struct tc_build inner = { .c = b->c, .where = b->where };
	struct tc_op *to = among(b, op, TC_ALL_REDUCE, list, list->type, 1);
	struct tc_value *least;

	inner.block = tc_new_block(b->c, &to->regions[0]);
	least = tc_new_arg(b->c, inner.block, scalar);
	least = tc_build2(&inner, TC_MINIMUM, least, tc_new_arg(b->c, inner.block, scalar));
	tc_build_return(&inner, 1, &least);
	return tc_out(tc_build_place(b, to), 0);
}

static struct tc_value *sizes_of(const struct tc_build *b, const struct tc_value *x)
{
	struct tc_value *sizes[TC_MAX_RANK];

	for (unsigned d = 0; d < x->type->rank; d++)
		sizes[d] = dyn_any_size(b, x, d);
	return dyn_joined(b, x->type->rank, sizes);
}

static bool is_sized(const struct tc_value *x, unsigned but)
{
	for (unsigned d = 0; d < x->type->rank; d++)
		if (d != but && dyn_size_of(x, d))
			return true;
	return false;
}

/* As elementwise ops have it: of different sizes the smaller, along all dims but one. */
static void meet(const struct tc_build *b, const struct tc_op *op, const struct tc_value *x,
		 struct tc_value *out, unsigned but)
{
	struct tc_value *list;

	if (!is_sized(x, but))
		return;
	list = smallest(b, op, sizes_of(b, x));
	for (unsigned d = 0; d < x->type->rank; d++)
		if (d != but && dyn_size_of(x, d))
			dyn_set(b->c, out, d, dyn_element(b, list, d));
}

/* Arrays go elsewhere, and their sizes with them. */
static void move(const struct tc_build *b, struct tc_op *op)
{
	for (unsigned i = 0; i < op->n_operands; i++) {
		struct tc_value *x = tc_in(op, i), *list;

		if (!is_sized(x, TC_MAX_RANK))
			continue;
		list = sizes_of(b, x);
		list = tc_out(tc_build_place(b, among(b, op, (enum tc_opcode)op->op, list,
						      list->type, 0)), 0);
		for (unsigned d = 0; d < x->type->rank; d++)
			if (dyn_size_of(x, d))
				dyn_set(b->c, tc_out(op, i), d, dyn_element(b, list, d));
	}
}

/* The parts of members that stand behind each other along a dim, each as long as its bound, moved
 * together; sizes: of each, s32[n]. */
static struct tc_value *packed(const struct tc_build *b, struct tc_value *x, unsigned dim,
			       struct tc_value *sizes)
{
	int64_t n = sizes->type->dim[0], each = x->type->dim[dim] / n;
	struct tc_value *v = tc_build_number(b, x->type, 0), *at = dyn_number(b, 0);

	for (int64_t i = 0; i < n; i++) {
		v = tc_build_put(b, v, dim, at, tc_build_part(b, x, dim, i * each, each));
		at = dyn_do(b, TC_ADD, at, dyn_element(b, sizes, (unsigned)i));
	}
	dyn_set(b->c, v, dim, at);
	return v;
}

/* The op anew, whose results' uses get what is made of its results: parts of the members, n of
 * them, that stand behind each other along `dim`. */
static void put_together(const struct tc_build *b, struct tc_op *op, unsigned dim, int64_t n)
{
	const struct tc_type *list = tc_tensor(b->c, ELEM_S32, 1, &n), *types[MOST_ARRAYS];
	struct tc_value *in[MOST_ARRAYS];
	const int64_t one = 1;
	struct tc_op *to;

	if (op->n_operands > MOST_ARRAYS)
		tc_fail(b->c, ERR_UNIMPLEMENTED, op, "%u arrays at once, some with sizes that are "
			"known only when it runs: at most %u", op->n_operands, MOST_ARRAYS);
	for (unsigned i = 0; i < op->n_operands; i++) {
		in[i] = tc_in(op, i);
		types[i] = tc_out(op, i)->type;
	}
	to = tc_build_place(b, tc_new(b->c, (enum tc_opcode)op->op, op->n_operands, in,
				      op->n_results, types, 0));
	for (unsigned i = 0; i < op->n_attrs; i++)
		tc_set_attr(b->c, to, op->attrs[i]);
	for (unsigned i = 0; i < op->n_operands; i++) {
		struct tc_value *out = tc_out(to, i), *size = dyn_size_of(in[i], dim);
		struct tc_op *gather;

		if (size) {
			gather = among(b, op, TC_ALL_GATHER, tc_build_reshape(b, size, 1, &one),
				       list, 0);
			tc_set_int(b->c, gather, "all_gather_dim", TC_ATTR_INT, 0);
			out = packed(b, out, dim, tc_out(tc_build_place(b, gather), 0));
		}
		meet(b, op, in[i], out, dim);
		tc_replace_uses(tc_out(op, i), out);
	}
}

static void refuse_along(struct tc_ctx *c, const struct tc_op *op, unsigned dim)
{
	for (unsigned i = 0; i < op->n_operands; i++)
		if (dyn_size_of(tc_in(op, i), dim))
			dyn_refuse(c, op, i, dim, "what each member gets depends on it");
}

bool dyn_meeting(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	unsigned dim, split;

	switch (op->op) {
	case TC_ALL_REDUCE:
		for (unsigned i = 0; i < op->n_operands; i++)
			meet(&b, op, tc_in(op, i), tc_out(op, i), TC_MAX_RANK);
		return true;
	case TC_REDUCE_SCATTER:
		dim = (unsigned)tc_attr_int(op, "scatter_dimension", 0);
		refuse_along(c, op, dim);
		meet(&b, op, tc_in(op, 0), tc_out(op, 0), dim);
		return true;
	case TC_ALL_GATHER:
		put_together(&b, op, (unsigned)tc_attr_int(op, "all_gather_dim", 0),
			     tc_attr_int(op, "group_size", 1));
		return false;
	case TC_ALL_TO_ALL:
		split = (unsigned)tc_attr_int(op, "split_dimension", 0);
		dim = (unsigned)tc_attr_int(op, "concat_dimension", 0);
		refuse_along(c, op, split);
		put_together(&b, op, dim, tc_attr_int(op, "split_count", 1));
		return false;
	default:
		move(&b, op);
		return true;
	}
}
