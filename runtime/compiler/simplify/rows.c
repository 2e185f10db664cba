/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gathers and scatters of single elements that are those of whole rows. PyTorch spreads the index
 * of a row over its columns, and numpy's x[i[:, None], arange(n)] does so, too: one component of
 * the indices counts along a dim, and the others are the same along it. Then that dim is one of
 * the window, and the indices are as many as there are rows.
 *
 * Slices and scatters of one part whose place is known are a slice, which is a view, and a
 * dynamic_update_slice, which is a copy. Turns that were written one after the other have such
 * (loop/unroll.c).
 */
#include <string.h>

#include "runtime/compiler/opt/build.h"
#include "runtime/compiler/opt/fuse.h"
#include "runtime/compiler/simplify/simpler.h"

#define MOST_OPS 64	/* that are looked through */

/* Of a gather or scatter: which operand and attributes say the same. */
struct form {
	unsigned indices;		/* operand */
	const char *window, *dropped, *batch, *map;
	const struct tc_type *table, *part;	/* what is indexed; updates, or what is gathered */
};

static struct form form_of(const struct tc_op *op)
{
	if (op->op == TC_GATHER)
		return (struct form){ 1, "offset_dims", "collapsed_slice_dims",
			"start_indices_batching_dims", "start_index_map", tc_in(op, 0)->type,
			op->results[0].type };
	return (struct form){ op->n_results, "update_window_dims", "inserted_window_dims",
		"scatter_indices_batching_dims", "scatter_dims_to_operand_dims",
		tc_in(op, 0)->type, tc_in(op, op->n_results + 1)->type };
}

static int find(const int64_t *list, unsigned n, int64_t dim)
{
	for (unsigned i = 0; i < n; i++)
		if (list[i] == dim)
			return (int)i;
	return -1;
}

/* The dim of what is reshaped that is dim d of the result, if only dims of 1 come and go; or -1. */
static int dim_before_reshape(const struct tc_type *from, const struct tc_type *to, unsigned d)
{
	int8_t dim[TC_MAX_RANK];

	if (!tc_only_ones_differ(to, from, dim))
		return -1;
	return dim[d];
}

/* The dim of op's operand that dim d of its result is, for what only moves and spreads; -1: it has
 * none, as what is spread along d; -2: it is not known. */
static int dim_before(const struct tc_op *op, unsigned d)
{
	const struct tc_type *from = tc_in(op, 0)->type, *to = op->results[0].type;
	const int64_t *list;
	unsigned n;
	int k;

	switch (op->op) {
	case TC_CONVERT:
		return (int)d;
	case TC_TRANSPOSE:
		return (int)tc_attr_ints(op, "permutation", &n)[d];
	case TC_RESHAPE:
		k = dim_before_reshape(from, to, d);
		return k < 0 ? -2 : k;
	case TC_BROADCAST_IN_DIM:
		list = tc_attr_ints(op, "broadcast_dimensions", &n);
		k = find(list, n, d);
		return k < 0 || from->dim[k] < to->dim[d] ? -1 : k;
	default:
		return -2;
	}
}

/* Whether each element of v is its place along dim d. Floats are not: of few bits they skip
 * numbers. */
static bool counts_along(const struct tc_value *v, unsigned d)
{
	for (unsigned left = MOST_OPS; left && v->def; left--) {
		const struct tc_op *op = v->def;
		int before;

		if (!tc_is_integer(v->type) ||
		    v->type->dim[d] - 1 > INT64_MAX >> (64 - elem_bits(v->type->elem)))
			return false;
		if (op->op == TC_IOTA)
			return tc_attr_int(op, "iota_dimension", 0) == d;
		before = op->n_operands == 1 ? dim_before(op, d) : -2;
		if (before < 0)
			return false;
		v = tc_in(op, 0);
		d = (unsigned)before;
	}
	return false;
}

/* Whether v is the same all along dim d. */
static bool stays_along(const struct tc_value *v, unsigned d, unsigned *left)
{
	const struct tc_op *op = v->def;
	int before;

	if (v->type->dim[d] == 1 || tc_splat_element(v))
		return true;
	if (!op || !*left)
		return false;
	--*left;
	if (op->op == TC_IOTA)
		return tc_attr_int(op, "iota_dimension", 0) != d;
	before = op->n_operands == 1 ? dim_before(op, d) : -2;
	if (before != -2)
		return before < 0 || stays_along(tc_in(op, 0), (unsigned)before, left);
	if (!tc_has_trait(op, 'e') || op->n_results != 1)
		return false;
	for (unsigned i = 0; i < op->n_operands; i++)
		if (tc_in(op, i)->type->rank && !stays_along(tc_in(op, i), d, left))
			return false;
	return true;
}

/* v without its dim d, along which it stays. */
static struct tc_value *without(const struct tc_build *b, struct tc_value *v, unsigned d)
{
	int64_t dim[TC_MAX_RANK];
	unsigned rank = v->type->rank;

	memcpy(dim, v->type->dim, d * sizeof(*dim));
	memcpy(dim + d, v->type->dim + d + 1, (rank - d - 1) * sizeof(*dim));
	return tc_build_reshape(b, tc_build_part(b, v, d, 0, 1), rank - 1, dim);
}

/* The component of indices that counts along dim d of theirs while the others stay; or -1. */
static int counter_along(const struct tc_op *join, unsigned d)
{
	unsigned left = MOST_OPS;
	int counter = -1;

	for (unsigned k = 0; k < join->n_operands; k++)
		if (counter < 0 && counts_along(tc_in(join, k), d))
			counter = (int)k;
		else if (!stays_along(tc_in(join, k), d, &left))
			return -1;
	return counter;
}

/* The dim of the part that is dim d of the indices, whose first one are components. */
static unsigned dim_of_part(const struct tc_op *op, const struct form *f, unsigned d)
{
	unsigned n, at = 0;
	const int64_t *window = tc_attr_ints(op, f->window, &n);

	for (unsigned i = 0; i < f->part->rank; i++)
		if (find(window, n, i) < 0 && ++at == d)
			return i;
	return 0;
}

/* How many dims of the table before p are the window's. */
static unsigned window_dims_before(const struct tc_op *op, const struct form *f, int64_t p)
{
	static const char *const batches[] = { "operand_batching_dims", "input_batching_dims" };
	unsigned n_dropped, n_batch, before = 0;
	const int64_t *dropped = tc_attr_ints(op, f->dropped, &n_dropped);
	const int64_t *batch = tc_attr_ints(op, batches[op->op == TC_SCATTER], &n_batch);

	for (int64_t i = 0; i < p; i++)
		before += find(dropped, n_dropped, i) < 0 && find(batch, n_batch, i) < 0;
	return before;
}

/* A list of dims without entry `at`; numbers above `over` are one less. */
static void drop(struct tc_ctx *c, struct tc_op *op, const char *name, int at, int64_t over)
{
	int64_t list[TC_MAX_RANK];
	unsigned n, m = 0;
	const int64_t *old = tc_attr_ints(op, name, &n);

	for (unsigned i = 0; i < n; i++)
		if ((int)i != at)
			list[m++] = old[i] - (old[i] > over);
	tc_set_ints(c, op, name, list, m);
}

/* Puts `dim` into the list of window dims, which ascends. */
static void add_window(struct tc_ctx *c, struct tc_op *op, const char *name, int64_t dim)
{
	int64_t list[TC_MAX_RANK];
	unsigned n, m = 0;
	const int64_t *old = tc_attr_ints(op, name, &n);

	for (unsigned i = 0; i < n; i++) {
		if (m == i && old[i] > dim)
			list[m++] = dim;
		list[m++] = old[i];
	}
	if (m == n)
		list[m++] = dim;
	tc_set_ints(c, op, name, list, m);
}

/* Component k counts along dim d of the indices: the dim of the table that it is of is the
 * window's. */
static void take_rows(struct tc_ctx *c, struct tc_op *op, const struct form *f, unsigned d,
		      unsigned k, unsigned in_part)
{
	struct tc_build b = tc_build_at(c, op);
	struct tc_op *join = tc_in(op, f->indices)->def;
	int64_t p = tc_attr_nth(op, f->map, k);
	struct tc_value *parts[TC_MAX_RANK];
	unsigned n = 0, n_dropped;
	const int64_t *dropped = tc_attr_ints(op, f->dropped, &n_dropped);

	for (unsigned i = 0; i < join->n_operands; i++)
		if (i != k)
			parts[n++] = without(&b, tc_in(join, i), d);
	tc_set_operand(op, f->indices, n > 1 ? tc_build_join(&b, n, parts, 0) : parts[0]);
	if (op->op == TC_GATHER)
		tc_set_nth(c, op, "slice_sizes", (unsigned)p, f->part->dim[in_part]);
	drop(c, op, f->dropped, find(dropped, n_dropped, p), INT64_MAX);
	drop(c, op, f->map, (int)k, INT64_MAX);
	drop(c, op, f->batch, -1, d);
	add_window(c, op, f->window, in_part);
	/* In order by all components is not by those that are left, if the last one stays. */
	if (k + 1 < join->n_operands)
		tc_set_int(c, op, "indices_are_sorted", TC_ATTR_BOOL, false);
}

bool tc_take_rows(struct tc_ctx *c, struct tc_op *op)
{
	struct form f;
	const struct tc_op *join;
	const int64_t *list;
	unsigned n;

	if (op->op != TC_GATHER && op->op != TC_SCATTER)
		return false;
	f = form_of(op);
	join = tc_in(op, f.indices)->def;
	if (tc_attr_int(op, "index_vector_dim", 0) || !join || join->op != TC_CONCATENATE ||
	    tc_attr_int(join, "dimension", 0) || join->n_operands < 2 ||
	    join->n_operands != tc_in(op, f.indices)->type->dim[0])
		return false;
	for (unsigned d = 1; d < tc_in(op, f.indices)->type->rank; d++) {
		unsigned in_part = dim_of_part(op, &f, d), before = 0;
		int k = tc_in(op, f.indices)->type->dim[d] > 1 ? counter_along(join, d) : -1;
		int64_t p = k < 0 ? 0 : tc_attr_nth(op, f.map, (unsigned)k);

		list = tc_attr_ints(op, f.batch, &n);
		if (k < 0 || find(list, n, d) >= 0 || f.part->dim[in_part] > f.table->dim[p])
			continue;
		list = tc_attr_ints(op, f.dropped, &n);
		if (find(list, n, p) < 0)
			continue;
		list = tc_attr_ints(op, f.window, &n);
		while (before < n && list[before] < in_part)
			before++;
		if (before != window_dims_before(op, &f, p))
			continue;
		take_rows(c, op, &f, d, (unsigned)k, in_part);
		return true;
	}
	return false;
}

/* ---- places that are known ---- */

static bool slice_known(struct tc_ctx *c, struct tc_op *op)
{
	const struct tc_type *whole = tc_in(op, 0)->type, *part = op->results[0].type;
	struct tc_build b = tc_build_at(c, op);
	int64_t at[TC_MAX_RANK];

	for (unsigned d = 0; d < whole->rank; d++) {
		int64_t most = whole->dim[d] - part->dim[d];

		at[d] = 0;
		if (!most)
			continue;
		if (tc_in(op, 1 + d)->type->elem == ELEM_U64 ||
		    !tc_whole_number(tc_in(op, 1 + d), &at[d]))
			return false;
		at[d] = at[d] < 0 ? 0 : at[d] > most ? most : at[d];
	}
	return tc_simplify_to(op, tc_build_slice(&b, tc_in(op, 0), at, part));
}

/* Whether a scatter leaves its update as it is, and puts one part at one index. */
static bool puts_one(const struct tc_op *op)
{
	const struct tc_block *body = op->regions[0].block;
	unsigned n_map, n_batch;

	tc_attr_ints(op, "scatter_dims_to_operand_dims", &n_map);
	tc_attr_ints(op, "input_batching_dims", &n_batch);
	return op->n_operands == 3 && n_map == 1 && !n_batch && tc_in(op, 1)->type->count == 1 &&
	       tc_in(body->last, 0) == body->args[1];
}

/* A part past the end is put nowhere by a scatter. */
static bool put_known(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	const struct tc_type *whole = tc_in(op, 0)->type, *part = tc_in(op, 2)->type;
	const struct tc_type *number = tc_tensor(c, ELEM_S32, 0, NULL);
	struct tc_value *in[TC_MAX_RANK + 2] = { tc_in(op, 0) };
	const int64_t *window, *dropped;
	unsigned n_window, n_dropped, k = 0;
	int64_t size[TC_MAX_RANK], at, along;

	if (!puts_one(op) || tc_in(op, 1)->type->elem == ELEM_U64 ||
	    !tc_whole_number(tc_in(op, 1), &at))
		return false;
	window = tc_attr_ints(op, "update_window_dims", &n_window);
	dropped = tc_attr_ints(op, "inserted_window_dims", &n_dropped);
	along = tc_attr_nth(op, "scatter_dims_to_operand_dims", 0);
	for (unsigned d = 0; d < whole->rank; d++)
		size[d] = find(dropped, n_dropped, d) >= 0 ? 1 : part->dim[window[k++]];
	if (!whole->count || !part->count || at < 0 || at > whole->dim[along] - size[along] ||
	    whole->dim[along] > INT32_MAX)
		return false;
	in[1] = tc_build_reshape(&b, tc_in(op, 2), whole->rank, size);
	for (unsigned d = 0; d < whole->rank; d++)
		in[2 + d] = tc_build_number(&b, number, d == (unsigned)along ? (double)at : 0);
	return tc_simplify_to(op, tc_build(&b, TC_DYNAMIC_UPDATE_SLICE, whole, 2 + whole->rank,
					   in));
}

bool tc_know_place(struct tc_ctx *c, struct tc_op *op)
{
	switch (op->op) {
	case TC_DYNAMIC_SLICE: return slice_known(c, op);
	case TC_SCATTER: return put_known(c, op);
	default: return false;
	}
}
