/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dynamic slices and updates along dims that are cut, and slices of few rows. A member looks at as
 * many rows of its part as the slice has, the nearest ones, and at no others: a loop that takes a
 * row each time is not to copy the part as often. An update writes those of them that it is for,
 * and the others as they were; of a slice each member finds its elements, and zeros for others'.
 * What members found is put together by OR of its bits, so that nothing is rounded and no zero
 * loses its sign.
 */
#include "runtime/compiler/spmd/shard_internal.h"

#define MOST_ROWS ((int64_t)1 << 30)	/* counted in s32, with room */

/* The operand with the start of dim d. */
static unsigned start_of(const struct tc_op *op, unsigned d)
{
	return (op->op == TC_DYNAMIC_SLICE ? 1 : 2) + d;
}

/* The slice or update. */
static const struct tc_type *part_type(const struct tc_op *op, const struct shard_plan *plan)
{
	return plan->type[op->op == TC_DYNAMIC_SLICE ? op->n_operands : 1];
}

/* ---- a plan ---- */

/* Along a dim whose axes are free: whether it is right, and less to move. */
static bool fits(const struct tc_op *op, const struct shard_plan *plan, unsigned d, int64_t parts)
{
	const struct tc_type *in = plan->type[0], *part = part_type(op, plan);
	unsigned elem = plan->type[start_of(op, d)]->elem;

	if (in->dim[d] >= MOST_ROWS || part->dim[d] >= in->dim[d] || !part->dim[d] ||
	    (elem != ELEM_S32 && elem != ELEM_S64 && elem != ELEM_U32))
		return false;
	return op->op == TC_DYNAMIC_UPDATE_SLICE ||
	       (part->dim[d] <= in->dim[d] / parts &&
		shard_bits_of((enum elem)in->elem) != ELEM_TOKEN);
}

static bool is_cut(const struct shard *s, const struct tc_value *v, unsigned d)
{
	const struct spmd_sharding *h = v->id < s->n_values ? s->p->of[v->id] : NULL;

	return h && h->kind == SPMD_TILED && h->dim[d].axes.n &&
	       !(s->of[v->id].type->dim[d] % spmd_size(&h->dim[d].axes));
}

/* Whether v is there with dim d whole, or is needed so by what joins it to something, or all slices
 * of it that are whole may as well have it so. */
static bool is_wanted_whole(const struct shard *s, const struct tc_value *v, unsigned d)
{
	int64_t rows = 0;

	for (const struct shard_copy *c = s->of[v->id].copies; c; c = c->next)
		if (!c->h->dim[d].axes.n)
			return true;
	for (const struct tc_use *u = v->uses; u; u = u->next) {
		const struct tc_op *user = u->user;

		if (user->id >= s->n_values ||
		    (user->op != TC_SLICE && user->op != TC_CONCATENATE) ||
		    is_cut(s, tc_out(user, 0), d))
			continue;
		if (user->op == TC_CONCATENATE)
			return true;
		rows += tc_out(user, 0)->type->dim[d];
	}
	return 2 * rows >= s->of[v->id].type->dim[d];
}

/* The same of a slice that is not dynamic: few rows of one dim, that it leaves whole. */
static void plan_slice(struct shard *s, const struct tc_op *op, struct shard_plan *plan,
		       struct spmd_sharding *const *wish)
{
	const struct spmd_sharding *is = s->of[tc_in(op, 0)->id].h;

	for (unsigned d = 0; d < is->rank && !plan->picked; d++) {
		const struct spmd_axes *a = &is->dim[d].axes;
		int64_t whole = plan->type[0]->dim[d], rows = plan->type[1]->dim[d];

		if (!a->n || plan->tensor[0]->dim[d].axes.n || plan->tensor[1]->dim[d].axes.n ||
		    wish[0]->dim[d].axes.n || tc_attr_nth(op, "strides", d) != 1 || !rows ||
		    rows > whole / spmd_size(a) || 2 * rows >= whole || whole >= MOST_ROWS ||
		    shard_bits_of((enum elem)plan->type[0]->elem) == ELEM_TOKEN ||
		    !shard_are_free(plan, a) || is_wanted_whole(s, tc_in(op, 0), d))
			continue;
		plan->tensor[0]->dim[d].axes = *a;
		plan->picked = 1ull << d;
	}
}

void shard_plan_dynamic(struct shard *s, const struct tc_op *op, struct shard_plan *plan,
			struct spmd_sharding *const *wish)
{
	bool is_slice = op->op == TC_DYNAMIC_SLICE;
	const struct spmd_sharding *is;
	const struct tc_type *part;

	if (plan->rule && op->op == TC_SLICE)
		plan_slice(s, op, plan, wish);
	if (!plan->rule || (!is_slice && op->op != TC_DYNAMIC_UPDATE_SLICE))
		return;
	is = s->of[tc_in(op, 0)->id].h;
	if (is_slice) {
		part = shard_local_type(s, part_type(op, plan), plan->tensor[op->n_operands]);
		if (shard_is_ahead(s, op, plan->tensor[0], part, true))
			return;
	}
	for (unsigned d = 0; d < is->rank; d++) {
		const struct spmd_axes *a = &is->dim[d].axes;
		struct spmd_sharding *out = plan->tensor[op->n_operands];

		if (!a->n || plan->tensor[0]->dim[d].axes.n || out->dim[d].axes.n ||
		    (!is_slice && (plan->tensor[1]->dim[d].axes.n ||
				   !spmd_same_axes(a, &wish[0]->dim[d].axes))) ||
		    !shard_are_free(plan, a) || !fits(op, plan, d, spmd_size(a)))
			continue;
		plan->tensor[0]->dim[d].axes = *a;
		if (!is_slice)
			out->dim[d].axes = *a;
		plan->windows |= 1ull << d;
	}
}

/* ---- the op ---- */

/* A slice of `size` rows from where in a member's part a slice that begins anywhere is, at least
 * nearest: `at`, both in s64. The slice's first row is row `shift` of those with room of `size`
 * before and behind. */
struct nearest {
	struct tc_value *at, *shift;
	int64_t size;
};

static struct tc_value *held(const struct tc_build *b, struct tc_value *v, int64_t most)
{
	v = tc_build2(b, TC_MAXIMUM, v, tc_build_number(b, v->type, 0));
	return tc_build2(b, TC_MINIMUM, v, tc_build_number(b, v->type, (double)most));
}

/* v: the start in a dim of `whole` rows, of which the member has `part`; if these are fewer than
 * `size`, rows are to be behind them. */
static struct nearest find_nearest(struct shard *s, const struct tc_build *b, struct tc_value *v,
				   const struct spmd_axes *a, int64_t whole, int64_t part,
				   int64_t size)
{
	struct nearest n = { .size = size };
	struct tc_value *room;

	v = held(b, tc_build_convert(b, v, ELEM_S64), whole - size);
	room = tc_build_convert(b, shard_at_place(s, b, a, part, -size), ELEM_S64);
	v = held(b, tc_build2(b, TC_SUBTRACT, v, room), part + size);
	n.at = tc_build2(b, TC_SUBTRACT, v, tc_build_number(b, v->type, (double)size));
	n.at = held(b, n.at, part > size ? part - size : 0);
	n.shift = tc_build2(b, TC_SUBTRACT, v, n.at);
	return n;
}

/* Of the rows there the slice's own; zeros for those that are not. */
static struct tc_value *take_own(struct shard *s, const struct tc_build *b, struct tc_value *v,
				 unsigned d, const struct nearest *n)
{
	v = shard_pad_zeros(s, b, v, d, n->size, n->size);
	return tc_build_take(b, v, d, n->shift, n->size);
}

/* What each member found, or zeros: of all of them. */
static struct tc_value *put_together(struct shard *s, const struct tc_build *b,
				     struct tc_value *v, const struct spmd_axes *a)
{
	const struct tc_type *t = v->type, *scalar;
	enum elem bits = shard_bits_of((enum elem)t->elem);
	struct tc_build inner = { .c = s->c, .where = b->where };
	struct tc_value *x;
	struct tc_op *op;

	if (bits != (enum elem)t->elem)
		v = tc_build(b, TC_BITCAST_CONVERT, tc_with_elem(s->c, t, bits), 1, &v);
	op = tc_new(s->c, TC_ALL_REDUCE, 1, &v, 1, &v->type, 1);
	tc_build_place(b, op);
	shard_set_groups(s, op, a);
	scalar = tc_tensor(s->c, bits, 0, NULL);
	inner.block = tc_new_block(s->c, &op->regions[0]);
	x = tc_new_arg(s->c, inner.block, scalar);
	x = tc_build2(&inner, TC_OR, x, tc_new_arg(s->c, inner.block, scalar));
	tc_build_return(&inner, 1, &x);
	v = tc_out(op, 0);
	return bits != (enum elem)t->elem ? tc_build(b, TC_BITCAST_CONVERT, t, 1, &v) : v;
}

/* Where the rows of dim d from `first` on are rows of the slice. */
static struct tc_value *mask_own(const struct tc_build *b, const struct tc_type *shape,
				 struct tc_value *first, unsigned d, int64_t size)
{
	const struct tc_type *t = tc_with_elem(b->c, shape, ELEM_S32);
	struct tc_value *row, *is_own;

	row = tc_build_broadcast(b, tc_build_convert(b, first, ELEM_S32), t, NULL);
	row = tc_build2(b, TC_ADD, tc_build_iota(b, t, d), row);
	is_own = tc_build_compare(b, TC_CMP_GE, row, tc_build_number(b, t, 0));
	row = tc_build_compare(b, TC_CMP_LT, row, tc_build_number(b, t, (double)size));
	return tc_build2(b, TC_AND, is_own, row);
}

/* What an update writes there: its own rows, and what is there already for those that are not. */
static struct tc_value *own_update(struct shard *s, const struct tc_build *b,
				   const struct tc_op *op, uint64_t windows,
				   const struct nearest *near)
{
	struct tc_value *v = tc_in(op, 1), *in[TC_MAX_RANK + 1] = { tc_in(op, 0) };
	struct tc_value *old, *is_own = NULL;
	const struct tc_type *t = v->type;

	for (unsigned d = 0; d < t->rank; d++)
		in[1 + d] = tc_in(op, 2 + d);
	old = tc_build(b, TC_DYNAMIC_SLICE, t, 1 + t->rank, in);
	tc_set_ints(s->c, old->def, "slice_sizes", t->dim, t->rank);
	for (unsigned d = 0; d < t->rank; d++) {
		struct nearest back = near[d];
		struct tc_value *first, *mask;

		if (!(windows >> d & 1))
			continue;
		first = tc_build_number(b, back.shift->type, (double)back.size);
		first = tc_build2(b, TC_SUBTRACT, first, back.shift);
		mask = mask_own(b, t, first, d, back.size);
		is_own = is_own ? tc_build2(b, TC_AND, is_own, mask) : mask;
		back.shift = tc_build2(b, TC_ADD, first,
				       tc_build_number(b, first->type, (double)back.size));
		v = take_own(s, b, v, d, &back);
	}
	return tc_build_select(b, is_own, v, old);
}

struct tc_value *shard_dynamic(struct shard *s, struct tc_op *op, const struct shard_plan *plan)
{
	struct tc_build before = tc_build_at(s->c, op);
	struct tc_build behind = { .c = s->c, .before = op->next, .where = op->where };
	const struct tc_type *size = part_type(op, plan), *local = tc_out(op, 0)->type;
	const int64_t none[TC_MAX_RANK] = { 0 };
	struct nearest near[TC_MAX_RANK];
	struct tc_value *v = tc_in(op, 0);

	for (unsigned d = 0; plan->windows && d < size->rank; d++) {
		struct tc_value *start = tc_in(op, start_of(op, d));

		if (!(plan->windows >> d & 1))
			continue;
		near[d] = find_nearest(s, &before, start, &plan->tensor[0]->dim[d].axes,
				       plan->type[0]->dim[d], v->type->dim[d], size->dim[d]);
		start = tc_build_convert(&before, near[d].at, (enum elem)start->type->elem);
		tc_set_operand(op, start_of(op, d), start);
		if (v->type->dim[d] < size->dim[d])
			v = shard_pad_zeros(s, &before, v, d, 0, size->dim[d] - v->type->dim[d]);
	}
	tc_set_operand(op, 0, v);
	if (op->op == TC_DYNAMIC_UPDATE_SLICE && plan->windows) {
		tc_set_operand(op, 1, own_update(s, &before, op, plan->windows, near));
		if (v->type == local)
			return tc_out(op, 0);
		tc_out(op, 0)->type = v->type;
		return tc_build_slice(&behind, tc_out(op, 0), none, local);
	}
	v = tc_out(op, 0);
	for (unsigned d = 0; op->op == TC_DYNAMIC_SLICE && plan->windows && d < size->rank; d++)
		if (plan->windows >> d & 1)
			v = put_together(s, &behind, take_own(s, &behind, v, d, &near[d]),
					 &plan->tensor[0]->dim[d].axes);
	return v;
}

void shard_pick_rows(struct shard *s, struct tc_op *op, const struct shard_plan *plan)
{
	const struct tc_type *s32 = tc_tensor(s->c, ELEM_S32, 0, NULL);
	struct tc_build b = tc_build_at(s->c, op);
	struct tc_value *v = tc_in(op, 0), *start;
	struct nearest near;

	for (unsigned d = 0; plan->picked && d < plan->type[0]->rank; d++) {
		const struct spmd_axes *a = &plan->tensor[0]->dim[d].axes;
		int64_t rows = plan->type[1]->dim[d], part = v->type->dim[d];

		if (!(plan->picked >> d & 1))
			continue;
		start = tc_build_number(&b, s32, (double)tc_attr_nth(op, "start_indices", d));
		near = find_nearest(s, &b, start, a, plan->type[0]->dim[d], part, rows);
		v = take_own(s, &b, tc_build_take(&b, v, d, near.at, rows), d, &near);
		v = put_together(s, &b, v, a);
		tc_set_nth(s->c, op, "start_indices", d, 0);
		tc_set_nth(s->c, op, "limit_indices", d, rows);
	}
	tc_set_operand(op, 0, v);
}
