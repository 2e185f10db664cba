/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elementwise work of which others look at slices alone, as at the width and the height of boxes
 * that two corners make: it is done on slices of what it is made of, so that it is in one fusion
 * with what looks at them and the whole is not written. A part of the pass simplify.
 */
#include <string.h>

#include "runtime/compiler/opt/build.h"
#include "runtime/compiler/opt/fuse.h"
#include "runtime/compiler/simplify/simpler.h"

#define MOST_OPS 16	/* of a tree, for each slice of it they are written again */
#define MOST_SLICES 8
#define MOST_WHOLE 2	/* arrays of its size that it reads, which a slice does by steps */
#define LEAST_POINTS 1024	/* of it: fewer are hardly work */

struct tree {
	const struct tc_type *type;
	const struct tc_block *block;
	unsigned n_ops, n_whole;
};

static bool is_elementwise(const struct tc_op *op)
{
	return tc_has_trait(op, 'e') && op->n_results == 1 && !op->n_regions && op->n_operands &&
	       op->n_operands <= 3;
}

/* Whether elementwise work alone looks at v, or at v without dims of 1. */
static bool is_worked_on(const struct tc_value *v)
{
	if (!v->uses)
		return false;
	for (const struct tc_use *use = v->uses; use; use = use->next) {
		const struct tc_op *op = use->user;

		if (op->op == TC_RESHAPE ? !is_worked_on(tc_out((struct tc_op *)(uintptr_t)op, 0)) :
		    !is_elementwise(op))
			return false;
	}
	return true;
}

/* Whether few slices alone look at v, no more in all than v has, and elementwise work at these. */
static bool is_sliced(const struct tc_value *v)
{
	int64_t count = 0;
	unsigned n = 0;

	for (const struct tc_use *use = v->uses; use; use = use->next) {
		if (use->user->op != TC_SLICE || ++n > MOST_SLICES ||
		    !is_worked_on(tc_out(use->user, 0)))
			return false;
		count += use->user->results[0].type->count;
	}
	return count <= v->type->count;
}

/* Whether a slice of v costs nothing that v does not. */
static bool can_slice(struct tree *t, const struct tc_value *v, bool is_first)
{
	const struct tc_op *op = v->def;

	if (!tc_same_dims(v->type, t->type))
		return !v->type->rank;
	if (tc_splat_element(v))
		return true;
	if (!op || op->block != t->block)
		return ++t->n_whole <= MOST_WHOLE;
	switch (op->op) {
	case TC_BROADCAST_IN_DIM:
		return !tc_in(op, 0)->def || tc_in(op, 0)->def->op != TC_REDUCE;
	case TC_IOTA: case TC_DOT_GENERAL: case TC_CONVOLUTION: case TC_REDUCE: case TC_CONSTANT:
		return false;
	default:
		break;
	}
	if (!tc_has_trait(op, 'e'))
		return ++t->n_whole <= MOST_WHOLE;
	if (!is_elementwise(op) || !(is_first || tc_is_used_once(v)) || ++t->n_ops > MOST_OPS)
		return false;
	for (unsigned i = 0; i < op->n_operands; i++)
		if (!can_slice(t, tc_in(op, i), false))
			return false;
	return true;
}

/* Of v, of can_slice(), what `slice` is of the whole. */
static struct tc_value *slice_of(const struct tc_build *b, const struct tree *t,
				 const struct tc_op *slice, struct tc_value *v)
{
	int64_t start[TC_MAX_RANK], step[TC_MAX_RANK], size[TC_MAX_RANK];
	const struct tc_type *type = slice->results[0].type;
	const struct tc_op *op = v->def;
	struct tc_value *in[3], *made;
	const int64_t *dims;
	unsigned n;

	if (!tc_same_dims(v->type, t->type))
		return v;
	type = tc_tensor(b->c, (enum elem)v->type->elem, type->rank, type->dim);
	if (tc_splat_element(v))
		return tc_splat(b->c, b->before, type, tc_splat_element(v));
	for (unsigned d = 0; d < type->rank; d++) {
		start[d] = tc_attr_nth(slice, "start_indices", d);
		step[d] = tc_attr_nth(slice, "strides", d);
	}
	if (!op || op->block != t->block ||
	    (op->op != TC_BROADCAST_IN_DIM && !tc_has_trait(op, 'e')))
		return tc_build_steps(b, v, start, step, type);
	if (op->op == TC_BROADCAST_IN_DIM) {
		const struct tc_type *from = tc_in(op, 0)->type;
		int64_t narrow_start[TC_MAX_RANK], narrow_step[TC_MAX_RANK];

		in[0] = tc_in(op, 0);
		dims = tc_attr_ints(op, "broadcast_dimensions", &n);
		for (unsigned i = 0; i < n; i++) {
			bool is_one = from->dim[i] == 1;

			narrow_start[i] = is_one ? 0 : start[dims[i]];
			narrow_step[i] = is_one ? 1 : step[dims[i]];
			size[i] = is_one ? 1 : type->dim[dims[i]];
		}
		if (n)
			in[0] = tc_build_steps(b, in[0], narrow_start, narrow_step,
					       tc_tensor(b->c, (enum elem)from->elem, n, size));
		return tc_build_broadcast(b, in[0], type, dims);
	}
	for (unsigned i = 0; i < op->n_operands; i++)
		in[i] = slice_of(b, t, slice, tc_in(op, i));
	made = tc_build(b, (enum tc_opcode)op->op, type, op->n_operands, in);
	for (unsigned i = 0; i < op->n_attrs; i++)
		tc_set_attr(b->c, made->def, op->attrs[i]);
	made->def->where = op->where;
	return made;
}

bool tc_work_on_slices(struct tc_ctx *c, struct tc_op *op)
{
	const struct tc_value *v = op->op == TC_SLICE ? tc_in(op, 0) : NULL;
	struct tree t = { .block = op->block };
	struct tc_build b = tc_build_at(c, op);

	if (!v || !v->def || v->def->block != op->block || !is_elementwise(v->def) ||
	    v->type->count < LEAST_POINTS || !is_sliced(v))
		return false;
	t.type = v->type;
	return can_slice(&t, v, true) &&
	       tc_simplify_to(op, slice_of(&b, &t, op, tc_in(op, 0)));
}
