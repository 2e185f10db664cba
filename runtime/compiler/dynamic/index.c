/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of ops whose places are numbers that the program computes (dynamic.h). */
#include <string.h>

#include "runtime/compiler/dynamic/dynamic.h"

/* The most that a start may be so that `size` elements from it on count. */
static struct tc_value *last_start(const struct tc_build *b, const struct tc_value *x, unsigned dim,
				   int64_t size)
{
	struct tc_value *n = dyn_do(b, TC_SUBTRACT, dyn_any_size(b, x, dim), dyn_number(b, size));

	return dyn_do(b, TC_MAXIMUM, n, dyn_number(b, 0));
}

/* ---- gather and scatter ---- */

/* The places of a gather or scatter. */
struct indices {
	struct tc_value *v;
	int64_t vector;			/* its dim that lists the parts of an index */
	const int64_t *map;		/* which dims of the operand these are */
	unsigned n;
};

static struct indices indices_of(const struct tc_op *op, unsigned operand, const char *map)
{
	struct indices x = { .v = tc_in(op, operand),
			     .vector = tc_attr_int(op, "index_vector_dim", 0) };

	x.map = tc_attr_ints(op, map, &x.n);
	return x;
}

/* No start further than where all of its slice counts. */
static struct tc_value *held_indices(const struct tc_build *b, const struct indices *x,
				     const struct tc_value *operand, const int64_t *sizes)
{
	const struct tc_type *s32 = tc_with_elem(b->c, x->v->type, ELEM_S32);
	struct tc_value *most[TC_MAX_RANK], *v, *bound;
	bool is_needed = false;

	for (unsigned i = 0; i < x->n; i++) {
		unsigned d = (unsigned)x->map[i];

		is_needed |= dyn_size_of(operand, d) && sizes[d] != operand->type->dim[d];
		most[i] = last_start(b, operand, d, sizes[d]);
	}
	if (!is_needed)
		return x->v;
	v = x->v;
	if (elem_bits(v->type->elem) > 32 || v->type->elem == ELEM_U32)
		v = tc_build2(b, TC_MINIMUM, v, tc_build_number(b, v->type, INT32_MAX));
	if (elem_bits(v->type->elem) > 32 && elem_class(v->type->elem) == ELEM_CLASS_SINT)
		v = tc_build2(b, TC_MAXIMUM, v, tc_build_number(b, v->type, -1));
	v = tc_build_convert(b, v, ELEM_S32);
	if (x->vector == v->type->rank)
		bound = v->type->rank ? tc_build_broadcast(b, most[0], s32, NULL) : most[0];
	else
		bound = tc_build_broadcast(b, dyn_joined(b, x->n, most), s32, &x->vector);
	v = tc_build2(b, TC_MINIMUM, v, bound);
	dyn_copy(b->c, v, x->v);
	return v;
}

/* The dims of the indices but the vector's, as those of a result or of updates that are not in
 * `windows`, in order: place k is dim batch_dim(..., k) there. */
static unsigned batch_dim(const int64_t *windows, unsigned n, unsigned k)
{
	unsigned d = 0;

	for (;; d++) {
		if (tc_is_listed(windows, n, d))
			continue;
		if (!k--)
			return d;
	}
}

bool dyn_gather(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	struct indices x = indices_of(op, 1, "start_index_map");
	struct tc_value *from = tc_in(op, 0), *out = tc_out(op, 0);
	unsigned n_offset, n_gone, n_batch, m, k = 0;
	const int64_t *offset = tc_attr_ints(op, "offset_dims", &n_offset);
	const int64_t *gone = tc_attr_ints(op, "collapsed_slice_dims", &n_gone);
	const int64_t *batch = tc_attr_ints(op, "operand_batching_dims", &n_batch);
	const int64_t *with = tc_attr_ints(op, "start_indices_batching_dims", &n_batch);
	const int64_t *sizes = tc_attr_ints(op, "slice_sizes", &m);
	uint64_t cut = 0;

	if (x.vector < x.v->type->rank && dyn_size_of(x.v, (unsigned)x.vector))
		dyn_refuse(c, op, 1, (unsigned)x.vector, "it lists the parts of an index");
	for (unsigned d = 0; d < x.v->type->rank; d++)
		if (d != x.vector)
			dyn_set(c, out, batch_dim(offset, n_offset, k++), dyn_size_of(x.v, d));
	k = 0;
	for (unsigned d = 0; d < from->type->rank; d++) {
		bool is_whole = sizes[d] == from->type->dim[d];

		if (tc_is_listed(batch, n_batch, d)) {
			for (unsigned i = 0; i < n_batch; i++)
				if (batch[i] == d && dyn_size_of(from, d) &&
				    dyn_size_of(x.v, (unsigned)with[i]) != dyn_size_of(from, d))
					dyn_refuse(c, op, 0, d, "the indices have another one");
			continue;
		}
		if (dyn_size_of(from, d) && !is_whole)
			cut |= (uint64_t)1 << d;
		if (tc_is_listed(gone, n_gone, d))
			continue;
		if (is_whole)
			dyn_set(c, out, (unsigned)offset[k], dyn_size_of(from, d));
		k++;
	}
	tc_set_operand(op, 0, dyn_zeroed(&b, from, cut, 0));
	tc_set_operand(op, 1, held_indices(&b, &x, from, sizes));
	return true;
}

/* Updates that do not count get -1 for a place, which is nowhere. */
static struct tc_value *cut_indices(const struct tc_build *b, const struct indices *x,
				    struct tc_value *const *sizes)
{
	struct tc_value *v = x->v;

	for (unsigned d = 0; d < v->type->rank; d++)
		if (sizes[d] && elem_class(v->type->elem) != ELEM_CLASS_SINT) {
			v = tc_build_convert(b, v, elem_bits(v->type->elem) < 32 ? ELEM_S32 :
					     ELEM_S64);
			break;
		}
	return dyn_cut(b, v, sizes, tc_build_number(b,
		       tc_tensor(b->c, (enum elem)v->type->elem, 0, NULL), -1));
}

bool dyn_scatter(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	unsigned n = op->n_results, n_windows, n_gone, n_batch, k = 0;
	struct indices x = indices_of(op, n, "scatter_dims_to_operand_dims");
	const int64_t *windows = tc_attr_ints(op, "update_window_dims", &n_windows);
	const int64_t *gone = tc_attr_ints(op, "inserted_window_dims", &n_gone);
	const int64_t *batch = tc_attr_ints(op, "input_batching_dims", &n_batch);
	const struct tc_value *update = tc_in(op, n + 1);
	struct tc_value *sizes[TC_MAX_RANK] = { 0 };

	if (x.vector < x.v->type->rank && dyn_size_of(x.v, (unsigned)x.vector))
		dyn_refuse(c, op, n, (unsigned)x.vector, "it lists the parts of an index");
	for (unsigned d = 0; d < x.v->type->rank; d++) {
		unsigned at = d == x.vector ? 0 : batch_dim(windows, n_windows, k++);

		sizes[d] = d == x.vector ? NULL : dyn_size_of(x.v, d);
		for (unsigned i = 0; d != x.vector && i < n; i++)
			sizes[d] = dyn_less(&b, sizes[d], dyn_size_of(tc_in(op, n + 1 + i), at));
	}
	k = 0;
	for (unsigned d = 0; d < tc_in(op, 0)->type->rank; d++) {
		int64_t whole = tc_in(op, 0)->type->dim[d];
		unsigned at;

		for (unsigned i = 0; i < n; i++)
			for (unsigned j = 0; j < n; j++)
				dyn_meet(&b, tc_out(op, i), d, dyn_size_of(tc_in(op, j), d));
		if (tc_is_listed(gone, n_gone, d) || tc_is_listed(batch, n_batch, d))
			continue;
		at = (unsigned)windows[k++];
		for (unsigned i = 0; i < n; i++) {
			if (dyn_size_of(tc_in(op, n + 1 + i), at) && !dyn_size_of(tc_in(op, i), d))
				dyn_refuse(c, op, n + 1 + i, at, "how much of a window there is "
					   "depends on it");
			if (dyn_size_of(tc_in(op, i), d) && update->type->dim[at] != 1 &&
			    update->type->dim[at] != whole)
				dyn_refuse(c, op, i, d, "whether a window lies within depends "
					   "on it");
		}
	}
	tc_set_operand(op, n, cut_indices(&b, &x, sizes));
	return true;
}

/* ---- dynamic slices ---- */

/* Starts, operands from `first` on, so that what is taken or put of `size` counts. */
static void hold_starts(const struct tc_build *b, struct tc_op *op, unsigned first,
			const struct tc_value *x, struct tc_value *const *most)
{
	for (unsigned d = 0; d < x->type->rank; d++)
		if (most[d])
			tc_set_operand(op, first + d, dyn_do(b, TC_MINIMUM, dyn_narrowed(b,
				       tc_in(op, first + d)), most[d]));
	/* All are of one type. */
	for (unsigned d = 0; d < x->type->rank; d++)
		tc_set_operand(op, first + d, dyn_narrowed(b, tc_in(op, first + d)));
}

bool dyn_dynamic_slice(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	struct tc_value *x = tc_in(op, 0), *most[TC_MAX_RANK] = { 0 };
	const int64_t *sizes;
	uint64_t cut = 0;
	unsigned n;

	sizes = tc_attr_ints(op, "slice_sizes", &n);
	for (unsigned d = 0; d < n; d++) {
		if (!dyn_size_of(x, d))
			continue;
		if (sizes[d] == x->type->dim[d]) {
			dyn_set(c, tc_out(op, 0), d, dyn_size_of(x, d));
			continue;
		}
		most[d] = last_start(&b, x, d, sizes[d]);
		cut |= (uint64_t)1 << d;
	}
	if (cut)
		hold_starts(&b, op, 1, x, most);
	tc_set_operand(op, 0, dyn_zeroed(&b, x, cut, 0));
	return true;
}

/* What is put is put over what is there only so far as it counts. */
bool dyn_update(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	struct tc_value *x = tc_in(op, 0), *part = tc_in(op, 1), *in[TC_MAX_RANK + 2], *v, *there;
	struct tc_value *most[TC_MAX_RANK] = { 0 }, *sizes[TC_MAX_RANK] = { 0 }, *yes;
	const struct tc_type *t = x->type, *bits = tc_with_elem(c, part->type, ELEM_PRED);
	int64_t high[TC_MAX_RANK] = { 0 }, none[TC_MAX_RANK] = { 0 };
	const struct tc_type *scalar = tc_tensor(c, (enum elem)t->elem, 0, NULL);
	bool is_cut = false;

	for (unsigned d = 0; d < t->rank; d++) {
		struct tc_value *size = dyn_size_of(part, d);

		if (size || dyn_size_of(x, d)) {
			most[d] = dyn_do(&b, TC_SUBTRACT, dyn_any_size(&b, x, d),
					 dyn_any_size(&b, part, d));
			most[d] = dyn_do(&b, TC_MAXIMUM, most[d], dyn_number(&b, 0));
		}
		sizes[d] = size;
		high[d] = size ? part->type->dim[d] : 0;
		is_cut |= size != NULL;
	}
	hold_starts(&b, op, 2, x, most);
	dyn_copy(c, tc_out(op, 0), x);
	if (!is_cut)
		return true;
	/* Room behind the end, so that the start is where it says. */
	x = tc_build_pad(&b, x, tc_build_number(&b, scalar, 0), none, high, none);
	in[0] = x;
	for (unsigned d = 0; d < t->rank; d++)
		in[1 + d] = tc_in(op, 2 + d);
	there = tc_build(&b, TC_DYNAMIC_SLICE, part->type, 1 + t->rank, in);
	tc_set_ints(c, there->def, "slice_sizes", part->type->dim, t->rank);
	yes = tc_build_number(&b, bits, 1);
	yes = dyn_cut(&b, yes, sizes, tc_build_number(&b, tc_tensor(c, ELEM_PRED, 0, NULL), 0));
	in[1] = tc_build_select(&b, yes, part, there);
	for (unsigned d = 0; d < t->rank; d++)
		in[2 + d] = tc_in(op, 2 + d);
	v = tc_build(&b, TC_DYNAMIC_UPDATE_SLICE, x->type, 2 + t->rank, in);
	v = tc_build_slice(&b, v, none, t);
	dyn_copy(c, v, tc_out(op, 0));
	tc_replace_uses(tc_out(op, 0), v);
	return false;
}
