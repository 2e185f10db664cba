/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gathers and scatters along dims that are shared out: an index counts from where the member's
 * part begins, and what is not there is another member's.
 *
 * A gather takes what it finds and zeros for what it does not; all members' bits together are the
 * answer. A scatter leaves out what is outside of its part by itself. Where updates are shared
 * out, one member's scatter goes on from the operand and others' from what changes nothing.
 */
#include <string.h>

#include "runtime/compiler/spmd/shard_internal.h"

/* Index vectors by component. */
struct columns {
	struct shard *s;
	struct tc_build b;
	unsigned n, vector;		/* components, the dim that they are in */
	const struct tc_type *type;	/* of the indices, wide enough to count below 0 */
	struct tc_value *at[TC_MAX_RANK];	/* without the dim */
};

static const struct tc_type *without(struct shard *s, const struct tc_type *t, unsigned d)
{
	int64_t dim[TC_MAX_RANK];
	unsigned n = 0;

	for (unsigned i = 0; i < t->rank; i++)
		if (i != d)
			dim[n++] = t->dim[i];
	return tc_tensor(s->c, (enum elem)t->elem, n, dim);
}

/* Of what the indices are of, the dims are the whole's. */
static void take_columns(struct columns *k, struct tc_value *indices, unsigned vector,
			 const struct tc_type *of)
{
	enum elem elem = (enum elem)indices->type->elem;
	bool is_wide = elem == ELEM_S64 || elem == ELEM_U64 || elem == ELEM_U32;

	for (unsigned d = 0; d < of->rank; d++)
		is_wide |= of->dim[d] > INT32_MAX;
	/* Those that s64 has not are beyond any dim, not before it. */
	if (elem == ELEM_U64)
		indices = tc_build2(&k->b, TC_MINIMUM, indices,
				    tc_build_number(&k->b, indices->type, (double)(1ll << 62)));
	indices = tc_build_convert(&k->b, indices, is_wide ? ELEM_S64 : ELEM_S32);
	k->type = indices->type;
	k->vector = vector;
	k->n = vector < k->type->rank ? (unsigned)k->type->dim[vector] : 1;
	for (unsigned i = 0; i < k->n && i < TC_MAX_RANK; i++) {
		struct tc_value *v = indices;

		if (vector < k->type->rank) {
			const struct tc_type *t = without(k->s, k->type, vector);

			v = tc_build_part(&k->b, v, vector, i, 1);
			v = tc_build_reshape(&k->b, v, t->rank, t->dim);
		}
		k->at[i] = v;
	}
}

static struct tc_value *join_columns(struct columns *k)
{
	struct tc_value *parts[TC_MAX_RANK];
	int64_t dim[TC_MAX_RANK];

	if (k->vector >= k->type->rank)
		return k->at[0];
	memcpy(dim, k->type->dim, k->type->rank * sizeof(*dim));
	dim[k->vector] = 1;
	for (unsigned i = 0; i < k->n; i++)
		parts[i] = tc_build_reshape(&k->b, k->at[i], k->type->rank, dim);
	return tc_build_join(&k->b, k->n, parts, k->vector);
}

/* Where the member's part of a dim begins, of the indices' type, for each of a column. */
static struct tc_value *start_of(struct columns *k, const struct spmd_axes *a, int64_t size)
{
	struct tc_value *v = shard_start_of(k->s, &k->b, a, size);

	v = tc_build_convert(&k->b, v, (enum elem)k->type->elem);
	return tc_build_broadcast(&k->b, v, k->at[0]->type, NULL);
}

static struct tc_value *number(const struct columns *k, int64_t x)
{
	return tc_build_number(&k->b, k->at[0]->type, (double)x);
}

/* Where a column of a gather finds something in this part; the column counts from its beginning. */
static struct tc_value *localize_column(struct columns *k, unsigned i, const struct spmd_axes *a,
					int64_t whole, int64_t part)
{
	struct tc_value *v = tc_build2(&k->b, TC_MAXIMUM, k->at[i], number(k, 0)), *low, *high;

	v = tc_build2(&k->b, TC_MINIMUM, v, number(k, whole - 1));
	v = k->at[i] = tc_build2(&k->b, TC_SUBTRACT, v, start_of(k, a, part));
	low = tc_build_compare(&k->b, TC_CMP_GE, v, number(k, 0));
	high = tc_build_compare(&k->b, TC_CMP_LT, v, number(k, part));
	return tc_build2(&k->b, TC_AND, low, high);
}

/* Zero where the mask, which has the result's dims but offset_dims, is not. */
static struct tc_value *mask_result(struct shard *s, struct tc_op *op, struct tc_value *mask)
{
	struct tc_build b = { .c = s->c, .before = op->next, .where = op->where };
	struct tc_value *v = tc_out(op, 0);
	const struct tc_type *t = v->type;
	unsigned n, k = 0;
	const int64_t *offset = tc_attr_ints(op, "offset_dims", &n);
	int64_t dims[TC_MAX_RANK];

	for (unsigned d = 0; d < t->rank; d++)
		if (!tc_is_listed(offset, n, d))
			dims[k++] = d;
	mask = tc_build_broadcast(&b, mask, tc_with_elem(s->c, t, ELEM_PRED), dims);
	/* Not all types have a 0: all have one in bits. */
	if (elem_class(t->elem) == ELEM_CLASS_FLOAT)
		v = tc_build(&b, TC_BITCAST_CONVERT, tc_with_elem(s->c, t, shard_bits_of(
				(enum elem)t->elem)), 1, &v);
	v = tc_build_select(&b, mask, v, tc_build_number(&b, v->type, 0));
	return v->type != t ? tc_build(&b, TC_BITCAST_CONVERT, t, 1, &v) : v;
}

struct tc_value *shard_gather(struct shard *s, struct tc_op *op, const struct shard_plan *plan)
{
	struct columns k = { .s = s, .b = tc_build_at(s->c, op) };
	const struct spmd_sharding *h = plan->tensor[0];
	struct tc_value *mask = NULL, *one;
	unsigned n;
	const int64_t *map = tc_attr_ints(op, "start_index_map", &n);

	if (!plan->sum.axes.n)
		return tc_out(op, 0);
	take_columns(&k, tc_in(op, 1), (unsigned)tc_attr_int(op, "index_vector_dim", 0),
		     plan->type[0]);
	for (unsigned i = 0; i < n; i++) {
		const struct spmd_axes *a = &h->dim[map[i]].axes;
		const struct spmd_split *split = &plan->rule->tensor[0][map[i]];

		/* Other dims that are shared out are taken whole. */
		if (!a->n || plan->rule->factor[split->factor[0]].kind != SPMD_REDUCTION)
			continue;
		one = localize_column(&k, i, a, plan->type[0]->dim[map[i]],
				      tc_in(op, 0)->type->dim[map[i]]);
		mask = mask ? tc_build2(&k.b, TC_AND, mask, one) : one;
	}
	tc_set_operand(op, 1, join_columns(&k));
	return mask ? mask_result(s, op, mask) : tc_out(op, 0);
}

/* Indices of inserted dims that are shared out. */
static void move_indices(struct shard *s, struct tc_op *op, const struct shard_plan *plan)
{
	struct columns k = { .s = s, .b = tc_build_at(s->c, op) };
	unsigned n, n_gone, at = op->n_results;
	const int64_t *map = tc_attr_ints(op, "scatter_dims_to_operand_dims", &n);
	const int64_t *gone = tc_attr_ints(op, "inserted_window_dims", &n_gone);
	bool any = false;

	for (unsigned i = 0; i < n; i++)
		any |= tc_is_listed(gone, n_gone, map[i]) && plan->tensor[0]->dim[map[i]].axes.n;
	if (!any)
		return;
	take_columns(&k, tc_in(op, at), (unsigned)tc_attr_int(op, "index_vector_dim", 0),
		     plan->type[0]);
	for (unsigned i = 0; i < n; i++) {
		const struct spmd_axes *a = &plan->tensor[0]->dim[map[i]].axes;

		if (a->n && tc_is_listed(gone, n_gone, map[i]))
			k.at[i] = tc_build2(&k.b, TC_SUBTRACT, k.at[i],
					    start_of(&k, a, tc_in(op, 0)->type->dim[map[i]]));
	}
	tc_set_operand(op, at, join_columns(&k));
}

void shard_scatter(struct shard *s, struct tc_op *op, const struct shard_plan *plan)
{
	struct tc_build b = tc_build_at(s->c, op);
	struct tc_value *x = tc_in(op, 0), *first;
	const struct tc_type *s32 = tc_tensor(s->c, ELEM_S32, 0, NULL);
	enum tc_opcode sum = plan->sum.op;
	const int64_t dims = 0;
	double none;

	if (plan->rule)
		move_indices(s, op, plan);
	/* The largest of something counted twice is the same. */
	if (!plan->sum.axes.n || sum == TC_MAXIMUM || sum == TC_MINIMUM || sum == TC_AND ||
	    sum == TC_OR)
		return;
	first = tc_build_compare(&b, TC_CMP_EQ, shard_index_of(s, &plan->sum.axes),
				 tc_build_number(&b, s32, 0));
	if (x->type->rank)
		first = tc_build_broadcast(&b, first, tc_with_elem(s->c, x->type, ELEM_PRED),
					   &dims);
	/* With -0 a sum is what it is without, the sign of zero too. */
	none = sum == TC_MULTIPLY ? 1 : sum == TC_ADD ? -0.0 : 0;
	tc_set_operand(op, 0, tc_build_select(&b, first, x, tc_build_number(&b, x->type, none)));
}
