/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gathers and scatters do themselves what frameworks ask for around them.
 *
 * NumPy's rules make an index below 0 count from the end, so a program compares, adds and selects
 * before it looks anything up, and where what is outside is to be filled it compares and selects
 * once more. GATHER and SCATTER of the device wrap such an index and GATHER fills (ISA.md), so
 * that no array of indices is made for them and nothing goes over what was gathered again.
 *
 * A table that is looked up several times has a gradient that is the sum of as many scatters into
 * nothing: each further one adds to what is there of those before it, so that tables of zeros are
 * neither made nor added up.
 *
 * Requires: the program is simple (simplify/simplify.c); nobody but fusing and emission comes
 * later, since the attributes `wrap` and `fill` are not StableHLO's. Ensures: the same results,
 * but for the order in which what several scatters add up together is added.
 */
#include <string.h>

#include "runtime/compiler/opt/build.h"
#include "runtime/compiler/opt/fuse.h"
#include "runtime/compiler/passes.h"
#include "runtime/compiler/simplify/simpler.h"

/* Of a gather or scatter by one index each: its operand of indices; -1: it is none. A scatter of
 * single elements goes one by one through its indices, which a fusion wraps sooner. */
static int indices_of(const struct tc_op *op)
{
	unsigned n = 0;

	if (op->op == TC_GATHER)
		tc_attr_ints(op, "start_index_map", &n);
	else if (op->op == TC_SCATTER && tc_in(op, op->n_results + 1u)->type->count >
		 tc_in(op, op->n_results)->type->count)
		tc_attr_ints(op, "scatter_dims_to_operand_dims", &n);
	return n != 1 ? -1 : op->op == TC_GATHER ? 1 : (int)op->n_results;
}

/* Whether op's result has its operand's elements in their order. */
static bool is_view(const struct tc_op *op)
{
	const int64_t *to;
	unsigned n;

	if (op->op == TC_RESHAPE)
		return true;
	if (op->op != TC_BROADCAST_IN_DIM ||
	    tc_in(op, 0)->type->count != op->results[0].type->count)
		return false;
	to = tc_attr_ints(op, "broadcast_dimensions", &n);
	for (unsigned i = 1; i < n; i++)
		if (to[i] <= to[i - 1])
			return false;
	return true;
}

static struct tc_value *behind_views(struct tc_value *v)
{
	while (v->def && is_view(v->def))
		v = tc_in(v->def, 0);
	return v;
}

/* ---- indices below 0 ---- */

/* The indices x of "x < 0 ? x + n : x"; n is from 1 on. NULL: it is something else. */
static struct tc_value *wrapped(const struct tc_value *v, int64_t *by)
{
	const struct tc_op *op = v->def, *less, *sum;
	struct tc_value *x;
	int64_t zero;

	if (!op || op->op != TC_SELECT || elem_class(v->type->elem) != ELEM_CLASS_SINT)
		return NULL;
	x = tc_in(op, 2);
	less = tc_in(op, 0)->def;
	sum = tc_in(op, 1)->def;
	if (!less || less->op != TC_COMPARE || tc_in(less, 0) != x ||
	    tc_attr_int(less, "comparison_direction", -1) != TC_CMP_LT ||
	    !tc_whole_number(tc_in(less, 1), &zero) || zero || !sum || sum->op != TC_ADD)
		return NULL;
	for (unsigned i = 0; i < 2; i++)
		if (tc_in(sum, i) == x && tc_whole_number(tc_in(sum, 1 - i), by) && *by > 0 &&
		    *by <= (int64_t)1 << 48)
			return x;
	return NULL;
}

/* Whether all that v comes to, in whatever view, are indices that an instruction wraps. */
static bool is_for_starts(const struct tc_value *v)
{
	for (const struct tc_use *u = v->uses; u; u = u->next) {
		if (is_view(u->user) ? !is_for_starts(&u->user->results[0]) :
		    indices_of(u->user) < 0 || tc_in(u->user, (unsigned)indices_of(u->user)) != v)
			return false;
		for (unsigned i = 0; !is_view(u->user) && i < u->user->n_operands; i++)
			if ((int)i != indices_of(u->user) && tc_in(u->user, i) == v)
				return false;
	}
	return true;
}

static void wrap_itself(struct tc_op *op, void *c)
{
	int at = indices_of(op);
	struct tc_build b = tc_build_at(c, op);
	struct tc_value *in, *from, *x;
	int64_t by;

	if (at < 0 || tc_attr(op, "wrap"))
		return;
	in = tc_in(op, (unsigned)at);
	from = behind_views(in);
	x = wrapped(from, &by);
	/* What a fusion makes anyhow is not made twice: x would be one more array. */
	if (!x || (x->def && !is_for_starts(from)))
		return;
	/* What a loop finds as it begins is wrapped once. */
	if (from->def->block != op->block)
		return;
	if (x->type != in->type)
		x = tc_build_reshape(&b, x, in->type->rank, in->type->dim);
	tc_set_operand(op, (unsigned)at, x);
	tc_set_ints(c, op, "wrap", &by, 1);
}

/* ---- what is outside ---- */

/* The truth of each batch point that p, of the gather's result, repeats over its window, in their
 * order. NULL: it is not of that form. */
static struct tc_value *of_points(const struct tc_op *gather, struct tc_value *p)
{
	const struct tc_type *t = gather->results[0].type;
	unsigned n_window, n, k = 0;
	const int64_t *window = tc_attr_ints(gather, "offset_dims", &n_window), *to;

	if (p->def && p->def->op == TC_BROADCAST_IN_DIM) {
		const struct tc_type *from = tc_in(p->def, 0)->type;

		to = tc_attr_ints(p->def, "broadcast_dimensions", &n);
		for (unsigned d = 0; d < t->rank; d++) {
			bool is_there = k < n && to[k] == d;

			if (tc_is_listed(window, n_window, d) ? is_there && from->dim[k] != 1 :
			    t->dim[d] != (is_there ? from->dim[k] : 1))
				return NULL;
			k += is_there;
		}
		return k == n ? behind_views(tc_in(p->def, 0)) : NULL;
	}
	for (unsigned i = 0; i < n_window; i++)
		if (t->dim[window[i]] != 1)
			return NULL;
	return behind_views(p);
}

/* Whether the truths say of the gather's indices that they are from 0 to their limit. */
static bool says_inside(const struct tc_op *gather, const struct tc_value *truths)
{
	const struct tc_op *op = truths->def;
	const struct tc_type *table = tc_in(gather, 0)->type;
	struct tc_value *x;
	int64_t most, dim = tc_attr_nth(gather, "start_index_map", 0);
	int64_t limit = table->dim[dim] - tc_attr_nth(gather, "slice_sizes", (unsigned)dim);

	if (!op || op->op != TC_COMPARE ||
	    tc_attr_int(op, "comparison_direction", -1) != TC_CMP_LE ||
	    elem_class(tc_in(op, 0)->type->elem) != ELEM_CLASS_UINT ||
	    !tc_whole_number(tc_in(op, 1), &most) || most != limit)
		return false;
	x = behind_views(tc_in(op, 0));
	if (x->def && x->def->op == TC_BITCAST_CONVERT &&
	    tc_in(x->def, 0)->type->rank == x->type->rank)
		x = behind_views(tc_in(x->def, 0));
	return x == behind_views(tc_in(gather, 1));
}

static void fill_itself(struct tc_ctx *c, struct tc_op *select)
{
	struct tc_op *gather = tc_in(select, 1)->def;
	const void *fill = tc_splat_element(tc_in(select, 2));
	const struct tc_value *truths;

	if (!gather || gather->op != TC_GATHER || indices_of(gather) < 0 || !fill ||
	    tc_attr(gather, "fill") || tc_out(gather, 0)->uses->next)
		return;
	truths = of_points(gather, tc_in(select, 0));
	if (!truths || !says_inside(gather, truths))
		return;
	tc_set_attr(c, gather, (struct tc_attr){ .key = TC_KEY(c, "fill"), .kind = TC_ATTR_DENSE,
		.type = tc_tensor(c, tc_out(gather, 0)->type->elem, 0, NULL), .data = fill });
	tc_replace_uses(tc_out(select, 0), tc_out(gather, 0));
	tc_erase(select);
}

/* ---- sums of scatters ---- */

static bool is_zeros(const struct tc_value *v)
{
	static const uint8_t zero[16];
	const void *element = tc_splat_element(v);

	return element && !memcmp(element, zero, elem_bytes(v->type->elem));
}

/* Whether v is what a scatter, for one user alone, adds to its operand. */
static bool is_added(const struct tc_value *v)
{
	const struct tc_op *op = v->def;

	return op && op->op == TC_SCATTER && op->n_results == 1 && v->uses && !v->uses->next &&
	       tc_op_of_body(op->regions[0].block) == TC_ADD;
}

/* Whether v is what such scatters, one behind the other, add to zeros: of zeros where they add
 * nothing none is below 0 then, as another addition of zeros would have left it. */
static bool is_sum(const struct tc_value *v)
{
	bool is_one = false;

	for (; is_added(v); v = tc_in(v->def, 0))
		is_one = true;
	return is_one && is_zeros(v);
}

static void add_in_place(struct tc_op *sum)
{
	for (unsigned i = 0; i < 2; i++) {
		struct tc_value *v = tc_in(sum, i), *other = tc_in(sum, 1 - i);
		struct tc_op *op = v->def;

		if (v == other || !is_added(v) || !is_zeros(tc_in(op, 0)) || !is_sum(other) ||
		    op->block != sum->block || other->def->block != sum->block)
			continue;
		tc_unlink(op);
		tc_insert_before(sum, op);
		tc_set_operand(op, 0, other);
		tc_replace_uses(tc_out(sum, 0), v);
		tc_erase(sum);
		return;
	}
}

/* ---- the pass ---- */

static void fill_or_add(struct tc_op *op, void *c)
{
	if (op->op == TC_SELECT)
		fill_itself(c, op);
	else if (op->op == TC_ADD)
		add_in_place(op);
}

static void sweep(struct tc_ctx *c, struct tc_block *b)
{
	struct tc_op *prev;

	for (struct tc_op *op = b->last; op; op = prev) {
		prev = op->prev;
		for (unsigned r = 0; r < op->n_regions; r++)
			if (op->regions[r].block)
				sweep(c, op->regions[r].block);
		if (tc_is_dead(c, op))
			tc_erase(op);
	}
}

void tc_pass_indexed(struct tc_ctx *c)
{
	struct tc_op *main = tc_main(c)->region->parent;

	/* First, since the same indices are compared for both. */
	tc_walk(main, fill_or_add, c);
	tc_walk(main, wrap_itself, c);
	sweep(c, tc_main(c));
}
