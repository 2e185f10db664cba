/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gathers by several indices each, one for each of dims that lie side by side, as table[i, j]: by
 * one, of the dims as one. The device looks up elements and rows by one index each much faster;
 * and indices that are calculated need no place where they lie behind each other, as what makes
 * one of them joins the fusion that they come from.
 */
#include <string.h>

#include "runtime/compiler/lower/decompose.h"

enum { MOST_LOOKS = 32 };	/* at what an index is made of */

/* Dims [first, first + n) of the table; the k-th index is of dim of[k]. */
struct places {
	const int64_t *of;
	int64_t first;
	unsigned n;
};

/* Whether its dims are side by side, each with a single element in a window and none in the
 * result, and few enough elements in all to count in 32 bits. */
static bool find_places(const struct tc_op *op, struct places *p)
{
	const struct tc_type *table = tc_in(op, 0)->type;
	unsigned n_collapsed, n_batching;
	const int64_t *collapsed = tc_attr_ints(op, "collapsed_slice_dims", &n_collapsed);
	int64_t count = 1;

	tc_attr_ints(op, "operand_batching_dims", &n_batching);
	p->of = tc_attr_ints(op, "start_index_map", &p->n);
	if (n_batching || p->n < 2)
		return false;
	p->first = p->of[0];
	for (unsigned k = 1; k < p->n; k++)
		if (p->of[k] < p->first)
			p->first = p->of[k];
	for (unsigned k = 0; k < p->n; k++) {
		if (p->of[k] >= p->first + p->n ||
		    !tc_is_listed(collapsed, n_collapsed, p->of[k]) ||
		    __builtin_mul_overflow(count, table->dim[p->of[k]], &count))
			return false;
	}
	return count > 0 && count <= INT32_MAX;
}

/* v before dims of one element came to it or went: where it was calculated, to fuse with that. */
static struct tc_value *bare(struct tc_value *v)
{
	for (; v->def && (v->def->op == TC_RESHAPE || v->def->op == TC_BROADCAST_IN_DIM);
	     v = tc_in(v->def, 0)) {
		unsigned n;
		const int64_t *to;

		if (tc_in(v->def, 0)->type->count != v->type->count)
			break;
		if (v->def->op == TC_RESHAPE)
			continue;
		to = tc_attr_ints(v->def, "broadcast_dimensions", &n);
		for (unsigned i = 1; i < n; i++)
			if (to[i] < to[i - 1])
				return v;
	}
	return v;
}

/* The one index: each, brought into its dim, times what is behind it. */
static struct tc_value *one_index(const struct tc_build *b, const struct tc_op *op,
				  const struct places *p)
{
	const struct tc_type *table = tc_in(op, 0)->type;
	const struct tc_op *join = tc_in(op, 1)->def;
	const struct tc_type *type = tc_in(join, 0)->type;
	struct tc_value *sum = NULL;
	bool are_bare = true;

	for (unsigned k = 1; k < p->n; k++)
		are_bare &= bare(tc_in(join, k))->type == bare(tc_in(join, 0))->type;
	for (unsigned k = 0; k < p->n; k++) {
		struct tc_value *v = are_bare ? bare(tc_in(join, k)) : tc_in(join, k);
		int64_t step = 1;

		for (int64_t d = p->of[k] + 1; d < p->first + p->n; d++)
			step *= table->dim[d];
		v = tc_build2(b, TC_MAXIMUM, v, tc_build_number(b, v->type, 0));
		v = tc_build2(b, TC_MINIMUM, v,
			      tc_build_number(b, v->type, (double)(table->dim[p->of[k]] - 1)));
		v = tc_build_convert(b, v, ELEM_S32);
		v = tc_build2(b, TC_MULTIPLY, v, tc_build_number(b, v->type, (double)step));
		sum = sum ? tc_build2(b, TC_ADD, sum, v) : v;
	}
	return are_bare ? tc_build_reshape(b, sum, type->rank, type->dim) : sum;
}

/* A list of ints as it is without all dims but the first one of those that become one. */
static void shorten(struct tc_ctx *c, struct tc_op *op, const char *name, const struct places *p,
		    bool is_by_dim)
{
	int64_t list[TC_MAX_RANK];
	unsigned n, left = 0;
	const int64_t *old = tc_attr_ints(op, name, &n);

	for (unsigned i = 0; i < n; i++) {
		int64_t dim = is_by_dim ? (int64_t)i : old[i];

		if (dim > p->first && dim < p->first + p->n)
			continue;
		list[left++] = is_by_dim || dim <= p->first ? old[i] : old[i] - (p->n - 1);
	}
	tc_set_ints(c, op, name, list, left);
}

/* Whether v is made of iotas and constants alone: by such an index simplify/rows.c may find whole
 * rows. */
static bool is_counted(const struct tc_value *v, unsigned *left)
{
	const struct tc_op *op = v->def;

	if (!op || !*left)
		return false;
	--*left;
	if (op->op != TC_RESHAPE && op->op != TC_BROADCAST_IN_DIM && !tc_has_trait(op, 'e'))
		return op->op == TC_IOTA || op->op == TC_CONSTANT;
	for (unsigned i = 0; i < op->n_operands; i++)
		if (!is_counted(tc_in(op, i), left))
			return false;
	return true;
}

/* The dim of a view's operand that `first` is of it, where the n dims from there on lie in memory
 * as they do in the operand; -1: they do not. */
static int64_t seen_through(const struct tc_op *view, int64_t first, unsigned n)
{
	const struct tc_type *to = view->results[0].type, *from = tc_in(view, 0)->type;
	unsigned count = 0, at;
	const int64_t *list = NULL;

	if (view->op == TC_SLICE) {
		list = tc_attr_ints(view, "strides", &count);
		if (n > 1 && list[first] != 1)
			return -1;
	} else if (view->op == TC_TRANSPOSE) {
		list = tc_attr_ints(view, "permutation", &count);
		for (unsigned k = 1; k < n; k++)
			if (list[first + k] != list[first] + k)
				return -1;
		return list[first];
	} else if (view->op == TC_BROADCAST_IN_DIM) {
		list = tc_attr_ints(view, "broadcast_dimensions", &count);
		for (at = 0; at < count && list[at] != first; at++)
			;
		for (unsigned k = 0; k < n; k++)
			if (at + k >= count || list[at + k] != first + k ||
			    from->dim[at + k] != to->dim[first + k])
				return -1;
		return at;
	}
	for (unsigned k = 1; k < n; k++)
		if (from->dim[first + k] != to->dim[first + k])
			return -1;
	return first;
}

/* The dims before a reshape that hold what dims [*first, *first + *n) are behind it: as few as
 * do. Whether they are others. */
static bool before_reshape(const struct tc_op *op, int64_t *first, unsigned *n)
{
	const struct tc_type *to = op->results[0].type, *from = tc_in(op, 0)->type;
	const int64_t *behind = &to->dim[*first];
	int64_t before = 1, after = 1, product = 1;
	unsigned many = *n, start = 0, end = from->rank;

	for (unsigned d = 0; d < to->rank; d++)
		if (d < *first)
			before *= to->dim[d];
		else if (d >= *first + *n)
			after *= to->dim[d];
	while (start + 1 < end && product * from->dim[start] <= before)
		product *= from->dim[start++];
	for (product = 1; end > start + 1 && product * from->dim[end - 1] <= after;)
		product *= from->dim[--end];
	*first = start;
	*n = end - start;
	return *n != many || memcmp(&from->dim[start], behind, many * sizeof(*behind));
}

/* Whether the gather's table is a view in which the dims cannot be one: all of it would be copied,
 * of which few elements may be asked for. What a reshape made other dims of is copied all the same
 * where as many are asked for as there are, and then one index is faster. */
static bool lies_apart(const struct tc_op *op, const struct places *p)
{
	const struct tc_value *table = tc_in(op, 0);
	const bool is_all = tc_out(op, 0)->type->count >= table->type->count;
	int64_t first = p->first;
	unsigned n = p->n;

	for (; table->def; table = tc_in(table->def, 0)) {
		switch (table->def->op) {
		case TC_REVERSE:
			return true;
		case TC_SLICE: case TC_DYNAMIC_SLICE: case TC_TRANSPOSE: case TC_BROADCAST_IN_DIM:
			first = seen_through(table->def, first, n);
			if (first < 0)
				return true;
			break;
		case TC_RESHAPE:
			if (before_reshape(table->def, &first, &n) && is_all)
				return false;
			break;
		default:
			return false;
		}
	}
	return false;
}

void tc_join_places(struct tc_ctx *c, struct tc_op *op)
{
	const struct tc_type *table = tc_in(op, 0)->type, *idx = tc_in(op, 1)->type;
	const struct tc_op *join = tc_in(op, 1)->def;
	struct tc_build b = tc_build_at(c, op);
	int64_t dim[TC_MAX_RANK], vector = tc_attr_int(op, "index_vector_dim", 0);
	struct places p;
	unsigned rank = 0;

	if (!join || join->op != TC_CONCATENATE || vector >= idx->rank ||
	    tc_attr_int(join, "dimension", 0) != vector || !find_places(op, &p) ||
	    join->n_operands != p.n || lies_apart(op, &p) ||
	    (idx->elem != ELEM_S32 && idx->elem != ELEM_S64))
		return;
	for (unsigned k = 0; k < p.n; k++) {
		unsigned left = MOST_LOOKS;

		if (tc_in(join, k)->type->dim[vector] != 1 || is_counted(tc_in(join, k), &left))
			return;
	}
	for (unsigned d = 0; d < table->rank; d++)
		if (d > p.first && d < p.first + p.n)
			dim[rank - 1] *= table->dim[d];
		else
			dim[rank++] = table->dim[d];
	tc_set_operand(op, 1, one_index(&b, op, &p));
	tc_set_operand(op, 0, tc_build_reshape(&b, tc_in(op, 0), rank, dim));
	shorten(c, op, "slice_sizes", &p, true);
	shorten(c, op, "collapsed_slice_dims", &p, false);
	tc_set_ints(c, op, "start_index_map", &p.first, 1);
}
