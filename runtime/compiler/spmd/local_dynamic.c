/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dynamic slices and updates along dims that are cut, and slices of few rows. A member's part, with
 * room for a slice at both ends, is as long as any start can be from it: an update writes what is
 * the member's into its part and the rest into the room, and of a slice each member finds its
 * elements, and zeros for others'. What members found is put together by OR of its bits, so that
 * nothing is rounded and no zero loses its sign.
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

/* Whether v is there with dim d whole, or is to be for other slices of it, too. */
static bool is_wanted_whole(const struct shard *s, const struct tc_value *v, unsigned d)
{
	unsigned n = 0;

	for (const struct shard_copy *c = s->of[v->id].copies; c; c = c->next)
		if (!c->h->dim[d].axes.n)
			return true;
	for (const struct tc_use *u = v->uses; u; u = u->next)
		n += u->user->op == TC_SLICE;
	return n > 1;
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

	if (plan->rule && op->op == TC_SLICE)
		plan_slice(s, op, plan, wish);
	if (!plan->rule || (!is_slice && op->op != TC_DYNAMIC_UPDATE_SLICE))
		return;
	is = s->of[tc_in(op, 0)->id].h;
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

/* The start of dim d, held to what it can be, from the beginning of the member's part and its
 * room of `size`; of its own type. */
static struct tc_value *own_start(struct shard *s, const struct tc_build *b, struct tc_value *v,
				  const struct spmd_axes *a, int64_t whole, int64_t part,
				  int64_t size)
{
	enum elem elem = (enum elem)v->type->elem;
	struct tc_value *at;

	v = tc_build_convert(b, v, ELEM_S64);
	v = tc_build2(b, TC_MAXIMUM, v, tc_build_number(b, v->type, 0));
	v = tc_build2(b, TC_MINIMUM, v, tc_build_number(b, v->type, (double)(whole - size)));
	at = tc_build_convert(b, shard_at_place(s, b, a, part, -size), ELEM_S64);
	v = tc_build2(b, TC_SUBTRACT, v, at);
	v = tc_build2(b, TC_MAXIMUM, v, tc_build_number(b, v->type, 0));
	v = tc_build2(b, TC_MINIMUM, v, tc_build_number(b, v->type, (double)(part + size)));
	return tc_build_convert(b, v, elem);
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

struct tc_value *shard_dynamic(struct shard *s, struct tc_op *op, const struct shard_plan *plan)
{
	struct tc_build before = tc_build_at(s->c, op);
	struct tc_build behind = { .c = s->c, .before = op->next, .where = op->where };
	const struct tc_type *size = part_type(op, plan), *local = tc_out(op, 0)->type;
	int64_t start[TC_MAX_RANK] = { 0 };
	struct tc_value *v = tc_in(op, 0);

	for (unsigned d = 0; plan->windows && d < size->rank; d++) {
		unsigned i = start_of(op, d);

		if (!(plan->windows >> d & 1))
			continue;
		tc_set_operand(op, i, own_start(s, &before, tc_in(op, i),
						&plan->tensor[0]->dim[d].axes,
						plan->type[0]->dim[d], v->type->dim[d],
						size->dim[d]));
		start[d] = size->dim[d];
		v = shard_pad_zeros(s, &before, v, d, size->dim[d], size->dim[d]);
	}
	tc_set_operand(op, 0, v);
	if (op->op == TC_DYNAMIC_UPDATE_SLICE && plan->windows) {
		tc_out(op, 0)->type = v->type;
		return tc_build_slice(&behind, tc_out(op, 0), start, local);
	}
	v = tc_out(op, 0);
	for (unsigned d = 0; plan->windows && d < size->rank; d++)
		if (plan->windows >> d & 1)
			v = put_together(s, &behind, v, &plan->tensor[0]->dim[d].axes);
	return v;
}

void shard_pick_rows(struct shard *s, struct tc_op *op, const struct shard_plan *plan)
{
	const struct tc_type *s32 = tc_tensor(s->c, ELEM_S32, 0, NULL);
	struct tc_build b = tc_build_at(s->c, op);
	struct tc_value *v = tc_in(op, 0), *start;

	for (unsigned d = 0; plan->picked && d < plan->type[0]->rank; d++) {
		const struct spmd_axes *a = &plan->tensor[0]->dim[d].axes;
		int64_t rows = plan->type[1]->dim[d], part = v->type->dim[d];

		if (!(plan->picked >> d & 1))
			continue;
		start = tc_build_number(&b, s32, (double)tc_attr_nth(op, "start_indices", d));
		start = own_start(s, &b, start, a, plan->type[0]->dim[d], part, rows);
		v = shard_pad_zeros(s, &b, v, d, rows, rows);
		v = put_together(s, &b, tc_build_take(&b, v, d, start, rows), a);
		tc_set_nth(s->c, op, "start_indices", d, 0);
		tc_set_nth(s->c, op, "limit_indices", d, rows);
	}
	tc_set_operand(op, 0, v);
}
