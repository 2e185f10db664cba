/* SPDX-License-Identifier: Apache-2.0 */
/* Ops as simpler ones (expand.h). */
#include <string.h>

#include "runtime/compiler/opt/expand.h"

/* ---- select_and_scatter ---- */

/* The reduction's region. A place of -1 stands for what no window may select: padding. */
static void build_select(const struct tc_build *outer, struct tc_op *window,
			 const struct tc_region *select)
{
	struct tc_build b = { .c = outer->c, .where = outer->where,
			      .block = tc_new_block(outer->c, &window->regions[0]) };
	struct tc_value *arg[4], *none, *keep, *out[2];

	for (unsigned i = 0; i < 4; i++)
		arg[i] = tc_new_arg(b.c, b.block, tc_in(window, 2 + i % 2)->type);
	none = tc_build_number(&b, arg[1]->type, -1);
	keep = tc_build_region(&b, select, (struct tc_value *[]){ arg[0], arg[2] });
	keep = tc_build2(&b, TC_AND, keep, tc_build_compare(&b, TC_CMP_NE, arg[1], none));
	keep = tc_build2(&b, TC_OR, keep, tc_build_compare(&b, TC_CMP_EQ, arg[3], none));
	out[0] = tc_build_select(&b, keep, arg[0], arg[2]);
	out[1] = tc_build_select(&b, keep, arg[1], arg[3]);
	tc_build_return(&b, 2, out);
}

/* x where `within`, else -1. */
static struct tc_value *or_none(const struct tc_build *b, struct tc_value *x,
				struct tc_value *within)
{
	return within ? tc_build_select(b, within, x, tc_build_number(b, x->type, -1)) : x;
}

static struct tc_op *find_places(const struct tc_build *b, struct tc_op *op,
				 struct tc_value *within)
{
	const struct tc_type *in = tc_in(op, 0)->type, *source = tc_in(op, 1)->type;
	enum elem elem = in->count >> 31 ? ELEM_S64 : ELEM_S32;
	const struct tc_type *flat = tc_tensor(b->c, elem, 1, &in->count);
	const struct tc_type *types[] = { source, tc_with_elem(b->c, source, elem) };
	int64_t ones[TC_MAX_RANK], zeros[2 * TC_MAX_RANK] = { 0 };
	struct tc_value *v[4] = { tc_in(op, 0) };
	struct tc_op *window;
	const int64_t *list;
	unsigned n;

	v[1] = tc_build_reshape(b, tc_build_iota(b, flat, 0), in->rank, in->dim);
	v[1] = or_none(b, v[1], within);
	v[2] = tc_build_number(b, tc_tensor(b->c, in->elem, 0, NULL), 0);
	v[3] = tc_build_number(b, tc_tensor(b->c, elem, 0, NULL), -1);
	window = tc_new(b->c, TC_REDUCE_WINDOW, 4, v, 2, types, 1);
	for (unsigned d = 0; d < in->rank; d++)
		ones[d] = 1;
	list = tc_attr_ints(op, "window_dimensions", &n);
	tc_set_ints(b->c, window, "window_dimensions", n ? list : ones, in->rank);
	list = tc_attr_ints(op, "window_strides", &n);
	tc_set_ints(b->c, window, "window_strides", n ? list : ones, in->rank);
	list = tc_attr_ints(op, "padding", &n);
	tc_set_ints(b->c, window, "padding", n ? list : zeros, 2u * in->rank);
	tc_set_ints(b->c, window, "base_dilations", ones, in->rank);
	tc_set_ints(b->c, window, "window_dilations", ones, in->rank);
	build_select(b, window, &op->regions[0]);
	return tc_build_place(b, window);
}

struct tc_op *tc_expand_select_and_scatter(const struct tc_build *b, struct tc_op *op,
					   struct tc_value *within, struct tc_value *counts,
					   struct tc_value **out)
{
	const struct tc_type *in = tc_in(op, 0)->type, *source = tc_in(op, 1)->type;
	const struct tc_type *flat = tc_tensor(b->c, in->elem, 1, &in->count);
	const int64_t zero = 0, list[] = { source->count, 1 };
	struct tc_op *scatter, *window;
	struct tc_value *v[3];

	if (!source->count) {
		*out = tc_build_broadcast(b, tc_in(op, 2), in, &zero);
		return NULL;
	}
	window = find_places(b, op, within);
	v[1] = tc_build_reshape(b, or_none(b, tc_out(window, 1), counts), 2, list);
	v[0] = tc_build_broadcast(b, tc_in(op, 2), flat, &zero);
	v[2] = tc_build_reshape(b, tc_in(op, 1), 1, list);
	scatter = tc_new(b->c, TC_SCATTER, 3, v, 1, &flat, 1);
	tc_set_ints(b->c, scatter, "update_window_dims", NULL, 0);
	tc_set_ints(b->c, scatter, "inserted_window_dims", &zero, 1);
	tc_set_ints(b->c, scatter, "input_batching_dims", NULL, 0);
	tc_set_ints(b->c, scatter, "scatter_indices_batching_dims", NULL, 0);
	tc_set_ints(b->c, scatter, "scatter_dims_to_operand_dims", &zero, 1);
	tc_set_int(b->c, scatter, "index_vector_dim", TC_ATTR_INT, 1);
	scatter->regions[0].block = op->regions[1].block;
	scatter->regions[0].block->region = &scatter->regions[0];
	op->regions[1].block = NULL;
	tc_build_place(b, scatter);
	*out = tc_build_reshape(b, tc_out(scatter, 0), in->rank, in->dim);
	return window;
}

/* ---- batch normalisation ---- */

struct norm {
	const struct tc_build *b;
	struct tc_value *x, *within, *count;
	int64_t feature;
	double epsilon;
};

/* Operand i in the type that is calculated in. */
static struct tc_value *operand(const struct norm *n, const struct tc_op *op, unsigned i)
{
	return tc_build_convert(n->b, tc_in(op, i), n->x->type->elem);
}

static struct tc_value *spread(const struct norm *n, struct tc_value *v)
{
	return tc_build_broadcast(n->b, v, n->x->type, &n->feature);
}

static struct tc_value *sum_of(const struct norm *n, struct tc_value *x)
{
	if (n->within)
		x = tc_build_select(n->b, n->within, x, tc_build_number(n->b, x->type, 0));
	return tc_build_sum(n->b, x, ((1ull << x->type->rank) - 1) & ~(1ull << n->feature));
}

static struct tc_value *mean_of(const struct norm *n, struct tc_value *x)
{
	const struct tc_type *t = x->type;
	struct tc_value *sum = sum_of(n, x), *count;
	int64_t all = t->dim[n->feature] ? t->count / t->dim[n->feature] : 0;

	count = n->count ? tc_build_broadcast(n->b, n->count, sum->type, NULL) :
			   tc_build_number(n->b, sum->type, (double)all);
	return tc_build2(n->b, TC_DIVIDE, sum, count);
}

/* 1 / sqrt(variance + epsilon) */
static struct tc_value *scale_of(const struct norm *n, struct tc_value *variance)
{
	struct tc_value *e = tc_build_number(n->b, variance->type, n->epsilon);

	return tc_build1(n->b, TC_RSQRT, tc_build2(n->b, TC_ADD, variance, e));
}

static struct tc_value *normal(const struct norm *n, struct tc_value *mean,
			       struct tc_value *inverse)
{
	struct tc_value *y = tc_build2(n->b, TC_SUBTRACT, n->x, spread(n, mean));

	return tc_build2(n->b, TC_MULTIPLY, y, spread(n, inverse));
}

static void expand_forward(const struct norm *n, const struct tc_op *op, struct tc_value **out)
{
	struct tc_value *mean, *var, *y;

	if (op->op == TC_BATCH_NORM_INFERENCE) {
		mean = operand(n, op, 3);
		var = operand(n, op, 4);
	} else {
		out[1] = mean = mean_of(n, n->x);
		y = tc_build2(n->b, TC_SUBTRACT, n->x, spread(n, mean));
		out[2] = var = mean_of(n, tc_build2(n->b, TC_MULTIPLY, y, y));
	}
	y = normal(n, mean, scale_of(n, var));
	y = tc_build2(n->b, TC_MULTIPLY, y, spread(n, operand(n, op, 1)));
	out[0] = tc_build2(n->b, TC_ADD, y, spread(n, operand(n, op, 2)));
}

/* With y the normalised x: scale / sqrt(var + e) * (g - mean(g) - y * mean(g * y)). */
static void expand_grad(const struct norm *n, const struct tc_op *op, struct tc_value **out)
{
	struct tc_value *g = operand(n, op, 4), *inverse = scale_of(n, operand(n, op, 3));
	struct tc_value *y = normal(n, operand(n, op, 2), inverse);
	struct tc_value *gy = tc_build2(n->b, TC_MULTIPLY, g, y), *dx;

	dx = tc_build2(n->b, TC_SUBTRACT, g, spread(n, mean_of(n, g)));
	dx = tc_build2(n->b, TC_SUBTRACT, dx,
		       tc_build2(n->b, TC_MULTIPLY, y, spread(n, mean_of(n, gy))));
	inverse = tc_build2(n->b, TC_MULTIPLY, inverse, operand(n, op, 1));
	out[0] = tc_build2(n->b, TC_MULTIPLY, dx, spread(n, inverse));
	out[1] = sum_of(n, gy);
	out[2] = sum_of(n, g);
}

void tc_expand_batch_norm(const struct tc_build *b, struct tc_op *op, struct tc_value *within,
			  struct tc_value *count, struct tc_value **out)
{
	struct tc_value *x = tc_in(op, 0);
	enum elem elem = (enum elem)x->type->elem, wide = elem_bits(elem) < 32 ? ELEM_F32 : elem;
	struct norm n = { b, tc_build_convert(b, x, wide), within,
			  count ? tc_build_convert(b, count, wide) : NULL,
			  tc_attr_int(op, "feature_index", 0), 0 };
	float epsilon;

	memcpy(&epsilon, tc_attr(op, "epsilon")->data, sizeof(epsilon));
	n.epsilon = epsilon;
	if (op->op == TC_BATCH_NORM_GRAD)
		expand_grad(&n, op, out);
	else
		expand_forward(&n, op, out);
	for (unsigned i = 0; i < op->n_results; i++)
		out[i] = tc_build_convert(b, out[i], elem);
}
