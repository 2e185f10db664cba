/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One op as a member runs it, on its parts of the tensors. Most ops are the same with other
 * types; what says sizes or counts is divided.
 */
#include <string.h>

#include "runtime/compiler/spmd/shard_internal.h"

/* A list with a number for each dim of a tensor: where it is the dim's size, the part's. */
static void divide_sizes(struct shard *s, struct tc_op *op, const char *name,
			 const struct tc_type *whole, const struct spmd_sharding *h)
{
	const struct tc_type *part = shard_local_type(s, whole, h);
	int64_t size[TC_MAX_RANK];
	unsigned n;

	memcpy(size, tc_attr_ints(op, name, &n), whole->rank * sizeof(*size));
	for (unsigned d = 0; d < whole->rank; d++)
		if (h->dim[d].axes.n && size[d] == whole->dim[d])
			size[d] = part->dim[d];
	tc_set_ints(s->c, op, name, size, whole->rank);
}

/* Groups are shared out as a dim of which they are the major factor is. */
static void divide_groups(struct shard *s, struct tc_op *op, const char *name, uint32_t t,
			  const char *dim, const struct shard_plan *plan)
{
	int64_t groups = tc_attr_int(op, name, 1);
	const struct spmd_split *split;

	if (groups == 1 || !plan->rule)
		return;
	split = &plan->rule->tensor[t][tc_attr_int(op, dim, 0)];
	if (split->n)
		tc_set_int(s->c, op, name, TC_ATTR_INT,
			   groups / spmd_size(&plan->factor[split->factor[0]]));
}

static void set_constant(struct shard *s, struct tc_op *op, const struct tc_type *type)
{
	struct tc_attr value = *tc_attr(op, "value");

	value.type = type;
	tc_set_attr(s->c, op, value);
}

/* Counts from where the member's part begins: in integers, so that what has fewer digits is rounded
 * once. */
static struct tc_value *move_iota(struct shard *s, struct tc_op *op,
				  const struct spmd_sharding *h)
{
	struct tc_build b = { .c = s->c, .before = op->next, .where = op->where };
	int64_t d = tc_attr_int(op, "iota_dimension", 0);
	struct tc_value *v = tc_out(op, 0), *start;
	enum elem elem = (enum elem)v->type->elem;
	unsigned cls = elem_class(elem);

	if (!h->dim[d].axes.n)
		return tc_out(op, 0);
	start = shard_start_of(s, &b, &h->dim[d].axes, v->type->dim[d]);
	if (cls == ELEM_CLASS_FLOAT || cls == ELEM_CLASS_COMPLEX)
		v->type = tc_with_elem(s->c, v->type, (enum elem)start->type->elem);
	else
		start = tc_build_convert(&b, start, elem);
	v = tc_build2(&b, TC_ADD, v, tc_build_broadcast(&b, start, v->type, NULL));
	return tc_build_convert(&b, v, elem);
}

static bool is_made_of_number(const struct tc_op *op)
{
	return op->op == TC_IOTA ||
	       (op->op == TC_CONSTANT && tc_attr(op, "value")->is_splat) ||
	       (op->op == TC_BROADCAST_IN_DIM && !tc_in(op, 0)->type->rank);
}

/* A copy of op, which is made of a number, of another type. */
static struct tc_op *made_as(struct shard *s, const struct tc_build *b, const struct tc_op *op,
			     const struct tc_type *type)
{
	struct tc_op *copy = tc_clone(s->c, op, tc_map_new(s->c));

	tc_build_place(b, copy);
	tc_out(copy, 0)->type = type;
	if (copy->op == TC_CONSTANT)
		set_constant(s, copy, type);
	return copy;
}

struct tc_value *shard_make_longer(struct shard *s, const struct tc_build *b,
				   const struct tc_value *v, const struct tc_type *type)
{
	return v->def && is_made_of_number(v->def) ? tc_out(made_as(s, b, v->def, type), 0) : NULL;
}

struct tc_value *shard_make_again(struct shard *s, const struct tc_build *b,
				  const struct tc_value *v, const struct tc_type *type,
				  const struct spmd_sharding *h)
{
	struct tc_op *op = v->def;

	if (!op || h->unreduced.n || !is_made_of_number(op))
		return NULL;
	op = made_as(s, b, op, shard_local_type(s, type, h));
	return op->op == TC_IOTA ? move_iota(s, op, h) : tc_out(op, 0);
}

/* Members draw each by itself, but all that differ along no manual axis are to have the same: the
 * first one's. */
static struct tc_value *share_draw(struct shard *s, struct tc_op *op,
				   const struct spmd_axes *manual)
{
	struct tc_build b = { .c = s->c, .before = op->next, .where = op->where };
	struct spmd_axes all = spmd_rest(s->mesh, manual);
	struct tc_value *v = tc_out(op, 0);

	if (!all.n)
		return v;
	v = tc_build(&b, TC_COLLECTIVE_BROADCAST, v->type, 1, &v);
	shard_set_groups(s, v->def, &all);
	return v;
}

static void set_attributes(struct shard *s, struct tc_op *op, const struct shard_plan *plan)
{
	struct spmd_sharding *const *h = plan->tensor;

	switch (op->op) {
	case TC_SLICE:
		divide_sizes(s, op, "limit_indices", plan->type[0], h[0]);
		break;
	case TC_DYNAMIC_SLICE:
		divide_sizes(s, op, "slice_sizes", plan->type[op->n_operands], h[op->n_operands]);
		break;
	case TC_GATHER:
		divide_sizes(s, op, "slice_sizes", plan->type[0], h[0]);
		break;
	case TC_CONVOLUTION:
		divide_groups(s, op, "feature_group_count", 0, "input_feature_dimension", plan);
		divide_groups(s, op, "batch_group_count", 0, "input_batch_dimension", plan);
		break;
	default:
		break;
	}
}

struct tc_value *shard_localize(struct shard *s, struct tc_op *op, const struct shard_plan *plan)
{
	set_attributes(s, op, plan);
	if (op->op == TC_CONCATENATE && plan->windows)
		return shard_join(s, op, plan);
	if (op->op != TC_DYNAMIC_SLICE && op->op != TC_DYNAMIC_UPDATE_SLICE)
		shard_take_windows(s, op, plan);
	if (plan->picked)
		shard_pick_rows(s, op, plan);
	for (unsigned i = 0; i < op->n_results; i++)
		if (plan->tensor[op->n_operands + i])
			tc_out(op, i)->type =
				shard_local_type(s, plan->type[op->n_operands + i],
						 plan->tensor[op->n_operands + i]);
	if (op->op == TC_CONSTANT && plan->tensor[0])
		set_constant(s, op, tc_out(op, 0)->type);
	if (op->op == TC_IOTA)
		return move_iota(s, op, plan->tensor[0]);
	if (op->op == TC_RNG)
		return share_draw(s, op, &plan->tensor[op->n_operands]->manual);
	if (op->op == TC_DYNAMIC_SLICE || op->op == TC_DYNAMIC_UPDATE_SLICE)
		return shard_dynamic(s, op, plan);
	if (op->op == TC_SELECT_AND_SCATTER && plan->windows)
		return shard_select_and_scatter(s, op, plan);
	if (op->op == TC_GATHER)
		return shard_gather(s, op, plan);
	if (op->op == TC_SCATTER)
		shard_scatter(s, op, plan);
	return op->n_results ? tc_out(op, 0) : NULL;
}

/* ---- once more ---- */

/* What each member has, one behind the other in a new first dim. As bits, so that members meet
 * once for all that have as many. */
static struct tc_value *stacked(struct shard *s, const struct tc_build *b, struct tc_value *v,
				const struct spmd_axes *a, const struct spmd_axes *manual)
{
	const struct tc_type *t = v->type, *all;
	enum elem bits = shard_bits_of((enum elem)t->elem);
	int64_t dim[TC_MAX_RANK] = { 1 };
	struct spmd_sharding *from, *to;

	memcpy(dim + 1, t->dim, t->rank * sizeof(*dim));
	if (bits != ELEM_TOKEN && bits != (enum elem)t->elem)
		v = tc_build(b, TC_BITCAST_CONVERT, tc_with_elem(s->c, t, bits), 1, &v);
	v = tc_build_reshape(b, v, t->rank + 1u, dim);
	dim[0] = spmd_size(a);
	all = tc_tensor(s->c, (enum elem)v->type->elem, t->rank + 1u, dim);
	to = shard_plain(s, NULL, all, manual);
	from = spmd_copy(s->p->s, to);
	from->dim[0].axes = *a;
	v = shard_convert(s, b, v, all, from, to, NULL);
	all = tc_with_elem(s->c, all, (enum elem)t->elem);
	return v->type == all ? v : tc_build(b, TC_BITCAST_CONVERT, all, 1, &v);
}

void shard_fold(struct shard *s, const struct tc_build *b, const struct tc_op *op,
		const struct shard_plan *plan, struct tc_value **v)
{
	struct tc_op *again = tc_clone(s->c, op, tc_map_new(s->c));
	int64_t first = 0;

	for (unsigned i = 0; i < op->n_results; i++)
		tc_set_operand(again, i, stacked(s, b, tc_out(op, i), &plan->fold,
						 &plan->tensor[op->n_operands + i]->manual));
	tc_set_ints(s->c, again, "dimensions", &first, 1);
	tc_build_place(b, again);
	for (unsigned i = 0; i < op->n_results; i++)
		v[i] = tc_out(again, i);
}
