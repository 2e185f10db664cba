/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolutions in which every feature has a group of its own, or that have one alone: no sum
 * runs over features, so a matrix unit has nothing to multiply. They become one product of whole
 * arrays for each tap, of which fusion makes few passes over memory.
 *
 *	out[n, y, c]  =  sum over k of  in[n, y * stride + k * dilation - low, c] * w[k, c]
 *
 * The gradient by w is the same with the roles of y and k exchanged (batch_group_count):
 * one product and one sum for each tap.
 */
#include <string.h>

#include "runtime/compiler/lower/decompose.h"

#define MOST_TAPS 64
#define MOST_TAPS_OF_ONE 1024	/* a matrix unit would pad rows or columns of one */

struct depthwise {
	struct tc_build b;
	struct tc_op *op;
	unsigned n;		/* spatial dims */
	enum elem elem;		/* of the sums */
	int64_t groups, out;	/* features in and out: out is a multiple */
	const int64_t *stride, *dilation, *low, *reversed;	/* low: and high in turn */
	const int64_t *in_dim, *kernel_dim, *out_dim;	/* which dims are spatial */
	struct tc_value *in, *kernel;	/* turned: [.., spatial.., feature] */
};

static const int64_t *list(const struct tc_op *op, const char *name)
{
	unsigned n;

	return tc_attr_ints(op, name, &n);
}

static int64_t number(const struct tc_op *op, const char *name)
{
	return tc_attr_int(op, name, 0);
}

/* Narrow numbers are summed as f32, and rounded once. */
static enum elem elem_of_sums(const struct tc_type *out)
{
	bool is_narrow = elem_class(out->elem) == ELEM_CLASS_FLOAT && elem_bits(out->elem) < 32;

	return is_narrow ? ELEM_F32 : (enum elem)out->elem;
}

/* As numbers to sum, with dims in the order first, spatial..., last. */
static struct tc_value *turn(const struct depthwise *v, struct tc_value *x, int64_t first,
			     const int64_t *spatial, int64_t last)
{
	int64_t order[TC_MAX_RANK];

	order[0] = first;
	memcpy(order + 1, spatial, v->n * sizeof(*order));
	order[v->n + 1] = last;
	return tc_build_convert(&v->b, tc_build_transpose(&v->b, x, order), v->elem);
}

static struct tc_value *pad(const struct depthwise *v, struct tc_value *x)
{
	int64_t low[TC_MAX_RANK] = { 0 }, high[TC_MAX_RANK] = { 0 }, none[TC_MAX_RANK] = { 0 };
	struct tc_value *zero;

	for (unsigned i = 0; i < v->n; i++) {
		low[i + 1] = v->low[2 * i];
		high[i + 1] = v->low[2 * i + 1];
	}
	zero = tc_build_number(&v->b, tc_tensor(v->b.c, v->elem, 0, NULL), 0);
	return tc_build_pad(&v->b, x, zero, low, high, none);
}

/* Spatial positions at + i * step, i below count, of x; features repeated to `out`. */
static struct tc_value *window(const struct depthwise *v, struct tc_value *x, const int64_t *at,
			       const int64_t *count, const int64_t *step)
{
	struct tc_ctx *c = v->b.c;
	unsigned rank = v->n + 2;
	int64_t start[TC_MAX_RANK] = { 0 }, by[TC_MAX_RANK];
	int64_t dim[TC_MAX_RANK], dims[TC_MAX_RANK];
	struct tc_value *s;

	memcpy(dim, x->type->dim, rank * sizeof(*dim));
	for (unsigned d = 0; d < rank; d++) {
		by[d] = 1;
		dims[d] = d;
	}
	for (unsigned i = 0; i < v->n; i++) {
		start[i + 1] = at[i];
		by[i + 1] = step[i];
		dim[i + 1] = count[i];
	}
	s = tc_build_steps(&v->b, x, start, by, tc_tensor(c, v->elem, rank, dim));
	if (v->out == v->groups)
		return s;
	dim[rank] = v->out / v->groups;
	s = tc_build_broadcast(&v->b, s, tc_tensor(c, v->elem, rank + 1, dim), dims);
	dim[rank - 1] = v->out;
	return tc_build_reshape(&v->b, s, rank, dim);
}

/* The next position below size[], the last dim fastest; false after the last one. */
static bool step_on(int64_t *at, const int64_t *size, unsigned n)
{
	for (unsigned i = n; i--; at[i] = 0)
		if (++at[i] < size[i])
			return true;
	return false;
}

static void sizes(const struct tc_value *x, const int64_t *dims, unsigned n, int64_t *out)
{
	for (unsigned i = 0; i < n; i++)
		out[i] = x->type->dim[dims[i]];
}

/* [first, spatial..., feature] as the op's result. */
static void finish(const struct depthwise *v, struct tc_value *y)
{
	struct tc_value *out = tc_out(v->op, 0);
	int64_t order[TC_MAX_RANK];

	order[number(v->op, "output_batch_dimension")] = 0;
	order[number(v->op, "output_feature_dimension")] = v->n + 1;
	for (unsigned i = 0; i < v->n; i++)
		order[v->out_dim[i]] = i + 1;
	y = tc_build_convert(&v->b, y, (enum elem)out->type->elem);
	tc_replace_uses(out, tc_build_transpose(&v->b, y, order));
	tc_erase(v->op);
}

static void sum_taps(const struct depthwise *v)
{
	const int64_t feature = v->n + 1;
	int64_t tap[TC_MAX_RANK] = { 0 }, taps[TC_MAX_RANK], count[TC_MAX_RANK];
	int64_t at[TC_MAX_RANK], start[TC_MAX_RANK] = { 0 }, one[TC_MAX_RANK];
	struct tc_value *x = pad(v, v->in), *sum = NULL;

	sizes(tc_in(v->op, 1), v->kernel_dim, v->n, taps);
	sizes(tc_out(v->op, 0), v->out_dim, v->n, count);
	for (unsigned d = 0; d < v->n + 2; d++)
		one[d] = 1;
	one[v->n + 1] = v->out;
	do {
		struct tc_value *w, *y;

		for (unsigned i = 0; i < v->n; i++) {
			start[i + 1] = v->reversed[i] ? taps[i] - 1 - tap[i] : tap[i];
			at[i] = tap[i] * v->dilation[i];
		}
		w = tc_build_slice(&v->b, v->kernel, start,
				   tc_tensor(v->b.c, v->elem, v->n + 2, one));
		w = tc_build_reshape(&v->b, w, 1, &v->out);
		y = window(v, x, at, count, v->stride);
		y = tc_build2(&v->b, TC_MULTIPLY, y,
			      tc_build_broadcast(&v->b, w, y->type, &feature));
		sum = sum ? tc_build2(&v->b, TC_ADD, sum, y) : y;
	} while (step_on(tap, taps, v->n));
	finish(v, sum);
}

static void sum_points(const struct depthwise *v)
{
	int64_t tap[TC_MAX_RANK] = { 0 }, taps[TC_MAX_RANK], count[TC_MAX_RANK];
	int64_t at[TC_MAX_RANK], row[2] = { 1, v->out }, dim[TC_MAX_RANK];
	struct tc_value *x = pad(v, v->in), *part[MOST_TAPS];
	unsigned n = 0;

	sizes(tc_out(v->op, 0), v->out_dim, v->n, taps);
	sizes(tc_in(v->op, 1), v->kernel_dim, v->n, count);
	do {
		struct tc_value *y;

		for (unsigned i = 0; i < v->n; i++)
			at[i] = tap[i] * v->stride[i];
		y = tc_build2(&v->b, TC_MULTIPLY, window(v, x, at, count, v->dilation),
			      v->kernel);
		y = tc_build_sum(&v->b, y, (1ull << (v->n + 1)) - 1);
		part[n++] = tc_build_reshape(&v->b, y, 2, row);
	} while (step_on(tap, taps, v->n));
	dim[0] = 1;
	memcpy(dim + 1, taps, v->n * sizeof(*dim));
	dim[v->n + 1] = v->out;
	finish(v, tc_build_reshape(&v->b, tc_build_join(&v->b, n, part, 0), v->n + 2, dim));
}

static int64_t product(const int64_t *x, unsigned n, bool *is_plain)
{
	int64_t p = 1;

	for (unsigned i = 0; i < n; i++) {
		*is_plain &= x[i] == 1;
		if (!x[i] || __builtin_mul_overflow(p, x[i], &p))
			return 0;
	}
	return p;
}

bool tc_is_depthwise(const struct tc_op *op)
{
	int64_t groups = number(op, "feature_group_count");
	const struct tc_type *in = tc_in(op, 0)->type;

	return groups > 1 && groups == in->dim[number(op, "input_feature_dimension")];
}

bool tc_may_take_more(struct tc_ctx *c)
{
	if (!c->ahead)
		return true;
	c->ahead->is_any |= !c->ahead->is_off;
	return !c->ahead->is_off;
}

/* One feature in and one out, and more than a few points of the result, if there are many taps:
 * else they are more steps than elements. */
static bool is_single(const struct tc_op *op)
{
	int64_t taps = tc_in(op, 1)->type->count;

	return number(op, "feature_group_count") == 1 &&
	       tc_in(op, 0)->type->dim[number(op, "input_feature_dimension")] == 1 &&
	       tc_in(op, 1)->type->dim[number(op, "kernel_output_feature_dimension")] == 1 &&
	       (taps <= MOST_TAPS || tc_out(op, 0)->type->count >= taps);
}

/* Of how many positions (kernel's or result's) there are, if not more than `most`; else 0. */
static int64_t count_few(const struct tc_value *x, const int64_t *dims, unsigned n, int64_t most)
{
	int64_t size[TC_MAX_RANK], count;
	bool any = true;

	sizes(x, dims, n, size);
	count = product(size, n, &any);
	return count <= most ? count : 0;
}

void tc_decompose_depthwise(struct tc_ctx *c, struct tc_op *op)
{
	const struct tc_value *in = tc_in(op, 0), *kernel = tc_in(op, 1), *out = tc_out(op, 0);
	int64_t in_batch = number(op, "input_batch_dimension");
	int64_t in_feature = number(op, "input_feature_dimension");
	int64_t kernel_in = number(op, "kernel_input_feature_dimension");
	int64_t kernel_out = number(op, "kernel_output_feature_dimension");
	struct depthwise v = { .b = tc_build_at(c, op), .op = op, .n = in->type->rank - 2u,
			       .elem = elem_of_sums(out->type),
			       .out = kernel->type->dim[kernel_out],
			       .stride = list(op, "window_strides"), .low = list(op, "padding"),
			       .dilation = list(op, "rhs_dilation"),
			       .reversed = list(op, "window_reversal"),
			       .in_dim = list(op, "input_spatial_dimensions"),
			       .kernel_dim = list(op, "kernel_spatial_dimensions"),
			       .out_dim = list(op, "output_spatial_dimensions") };
	bool by_batch = number(op, "batch_group_count") > 1, has_no_holes = true, is_forward = true;
	int64_t most = is_single(op) && tc_may_take_more(c) ? MOST_TAPS_OF_ONE :
		       tc_is_depthwise(op) ? MOST_TAPS : 0;

	product(list(op, "lhs_dilation"), v.n, &has_no_holes);
	for (unsigned i = 0; i < v.n; i++)
		is_forward &= !v.reversed[i];
	if (!v.n || v.n + 3 > TC_MAX_RANK || !has_no_holes || !out->type->count ||
	    !in->type->count || !kernel->type->count ||
	    elem_class(out->type->elem) == ELEM_CLASS_PRED)
		return;
	if (!by_batch && count_few(kernel, v.kernel_dim, v.n, most)) {
		v.groups = in->type->dim[in_feature];
		v.in = turn(&v, tc_in(op, 0), in_batch, v.in_dim, in_feature);
		v.kernel = turn(&v, tc_in(op, 1), kernel_in, v.kernel_dim, kernel_out);
		sum_taps(&v);
	} else if (by_batch && is_forward && count_few(out, v.out_dim, v.n, MOST_TAPS) &&
		   number(op, "batch_group_count") == in->type->dim[in_batch]) {
		v.groups = in->type->dim[in_batch];
		v.in = turn(&v, tc_in(op, 0), in_feature, v.in_dim, in_batch);
		v.kernel = turn(&v, tc_in(op, 1), kernel_in, v.kernel_dim, kernel_out);
		sum_points(&v);
	}
}
