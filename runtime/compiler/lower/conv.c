/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A convolution over an input with holes (lhs_dilation), as the gradient of a strided
 * one is, meets zeros in all but one of `holes` taps of a dim. Every holes-th output has
 * the same live taps: each such phase is a convolution of the input without holes with
 * these taps alone, and the phases interleave to the result.
 *
 * Output o = q * holes + r meets input i with tap k where o - low + k = i * holes. So
 * phase r has the taps k = first, first + holes, ... with first = (low - r) mod holes, and
 * the j-th of them meets input q + j + shift, shift = (r - low + first) / holes.
 *
 * Many phases are not worth a convolution each, and where the kernel is as wide as the holes
 * are apart (or a multiple of that), as that of patches beside each other is, all phases meet
 * the same inputs. Then they are features of one convolution: the kernel's tap j * holes + k,
 * k of phase holes - 1 - k, is tap j of feature k. Another kernel gets zeros around it.
 *
 * One feature in, and few out, give a matrix unit little to do for each element that it moves. If
 * windows slide along one dim alone, rows of the input that overlap are a matrix as they lie in
 * memory (back/emit_dot.c), once the input is padded.
 *
 * Many features in and few out give one few columns. All taps' products with the features of a
 * point are a row each of one product, which is added up tap by tap.
 *
 * An instruction slides along few dims. Of more, one is folded at a time: its taps become features,
 * of an array that has each element once for each tap that meets it, and its points batches.
 *
 * What is not done: strides, dilated or reversed windows in the same dim, and windows so
 * small that to interleave costs more than the zeros.
 */
#include <string.h>

#include "hal/hw/isa.h"
#include "runtime/compiler/lower/decompose.h"
#include "runtime/compiler/opt/fuse.h"

#define MOST_PHASES 8
#define LEAST_WORK 64	/* products for an element of the result */
#define MOST_NARROW 4		/* features that so many others give, */
#define MOST_NARROW_TAPS 64	/* by so many taps, whose products fit in so much memory, twice
				 * if they are padded, */
#define MOST_NARROW_BYTES ((int64_t)128 << 20)
#define MOST_SPARE 16		/* with at most so many points for each of the result */
#define LEAST_SLIDING 20	/* taps; fewer for one feature are added up soon (depthwise.c) */

struct conv {
	struct tc_build b;
	struct tc_op *op;
	unsigned n, i;		/* spatial dims, and the one at hand */
	int64_t input, kernel, output;	/* dims of this one */
	int64_t holes, low;
	int64_t phase_size;	/* outputs of a phase */
};

static int64_t size_of(const struct tc_value *v, int64_t dim)
{
	return v->type->dim[dim];
}

/* Kernel positions first, first + holes, ...: `taps` of them. */
static struct tc_value *live_taps(const struct conv *v, int64_t first, int64_t taps)
{
	struct tc_value *kernel = tc_in(v->op, 1);
	int64_t start[TC_MAX_RANK] = { 0 }, step[TC_MAX_RANK];

	for (unsigned d = 0; d < kernel->type->rank; d++)
		step[d] = 1;
	start[v->kernel] = first;
	step[v->kernel] = v->holes;
	return tc_build_steps(&v->b, kernel, start, step,
			      tc_with_dim(v->b.c, kernel->type, (unsigned)v->kernel, taps));
}

static struct tc_value *build_phase(const struct conv *v, int64_t r)
{
	struct tc_ctx *c = v->b.c;
	int64_t first = ((v->low - r) % v->holes + v->holes) % v->holes;
	int64_t size = size_of(tc_in(v->op, 1), v->kernel);
	int64_t taps = first < size ? (size - first + v->holes - 1) / v->holes : 0;
	int64_t shift = (r - v->low + first) / v->holes;
	const struct tc_type *type = tc_with_dim(c, tc_out(v->op, 0)->type, (unsigned)v->output,
						 v->phase_size);
	struct tc_op *op;

	if (!taps)
		return tc_build_number(&v->b, type, 0);
	op = tc_clone(c, v->op, tc_map_new(c));
	tc_set_operand(op, 1, live_taps(v, first, taps));
	tc_out(op, 0)->type = type;
	tc_set_nth(c, op, "lhs_dilation", v->i, 1);
	tc_set_nth(c, op, "padding", 2 * v->i, -shift);
	tc_set_nth(c, op, "padding", 2 * v->i + 1, v->phase_size - size_of(tc_in(op, 0), v->input) +
		shift + taps - 1);
	tc_build_place(&v->b, op);
	return tc_out(op, 0);
}

/* [.., q, ..] of each phase, as [.., q, phase, ..], flat. */
static struct tc_value *interleave(const struct conv *v, struct tc_value **phase)
{
	const struct tc_type *t = tc_out(v->op, 0)->type;
	unsigned at = (unsigned)v->output + 1;
	int64_t dim[TC_MAX_RANK + 1];
	struct tc_value *all;

	memcpy(dim, phase[0]->type->dim, at * sizeof(*dim));
	dim[at] = 1;
	memcpy(dim + at + 1, t->dim + at, (t->rank - at) * sizeof(*dim));
	for (int64_t r = 0; r < v->holes; r++)
		phase[r] = tc_build_reshape(&v->b, phase[r], t->rank + 1u, dim);
	all = tc_build_join(&v->b, (unsigned)v->holes, phase, at);
	memcpy(dim, t->dim, t->rank * sizeof(*dim));
	dim[v->output] = v->phase_size * v->holes;
	all = tc_build_reshape(&v->b, all, t->rank, dim);
	if (dim[v->output] == t->dim[v->output])
		return all;
	return tc_build_part(&v->b, all, (unsigned)v->output, 0, t->dim[v->output]);
}

/* Padding in front of the kernel that makes phases 0 .. holes - 1 begin at one input. */
static int64_t missing_low(const struct conv *v)
{
	return ((-1 - v->low) % v->holes + v->holes) % v->holes;
}

static bool are_features(const struct conv *v)
{
	bool meets_same = !missing_low(v) && size_of(tc_in(v->op, 1), v->kernel) % v->holes == 0;

	return v->holes > MOST_PHASES || (meets_same && !tc_is_depthwise(v->op));
}

/* x [.. a * inner + k .., b ..] as [.. a .., b * inner + k ..], a of dim `from`, b of dim `to`. */
static struct tc_value *move_inner(const struct tc_build *b, struct tc_value *x, unsigned from,
				   unsigned to, int64_t inner)
{
	unsigned rank = x->type->rank, n = 0, m = 0;
	int64_t dim[TC_MAX_RANK], order[TC_MAX_RANK], flat[TC_MAX_RANK];

	for (unsigned d = 0; d < rank; d++) {
		flat[d] = x->type->dim[d];
		dim[n] = flat[d];
		if (d == from) {
			dim[n++] /= inner;
			dim[n] = inner;
		}
		n++;
	}
	for (unsigned d = 0; d < rank; d++) {
		order[m++] = d + (d > from);
		if (d == to)
			order[m++] = from + 1;
	}
	flat[from] /= inner;
	flat[to] *= inner;
	x = tc_build_transpose(b, tc_build_reshape(b, x, n, dim), order);
	return tc_build_reshape(b, x, rank, flat);
}

/* The kernel [.. j * holes + k .., o ..] as [.. j .., o * holes + phase ..]. */
static struct tc_value *spread_taps(const struct conv *v, unsigned feature)
{
	const struct tc_build *b = &v->b;
	struct tc_value *kernel = tc_in(v->op, 1);
	int64_t low[TC_MAX_RANK] = { 0 }, high[TC_MAX_RANK] = { 0 }, none[TC_MAX_RANK] = { 0 };
	int64_t at = v->kernel, size = size_of(kernel, at) + missing_low(v);

	low[at] = missing_low(v);
	high[at] = (v->holes - size % v->holes) % v->holes;
	if (low[at] || high[at])
		kernel = tc_build_pad(b, kernel, tc_build_number(b, tc_tensor(b->c,
				      (enum elem)kernel->type->elem, 0, NULL), 0),
				      low, high, none);
	/* Backwards, j is too: it is turned once more when the phases have left. */
	kernel = tc_build1(b, TC_REVERSE, kernel);
	tc_set_ints(b->c, kernel->def, "dimensions", &at, 1);
	kernel = move_inner(b, kernel, (unsigned)at, feature, v->holes);
	if (size_of(kernel, at) > 1) {
		kernel = tc_build1(b, TC_REVERSE, kernel);
		tc_set_ints(b->c, kernel->def, "dimensions", &at, 1);
	}
	return kernel;
}

/* All phases by one convolution, which is the result. */
static struct tc_op *build_features(const struct conv *v)
{
	struct tc_ctx *c = v->b.c;
	const struct tc_type *t = tc_out(v->op, 0)->type;
	unsigned feature = (unsigned)tc_attr_int(v->op, "output_feature_dimension", 0);
	unsigned of_kernel = (unsigned)tc_attr_int(v->op, "kernel_output_feature_dimension", 0);
	int64_t before = (v->low + missing_low(v) + 1) / v->holes - 1, taps;
	struct tc_op *op = tc_clone(c, v->op, tc_map_new(c));
	struct tc_value *all;

	tc_set_operand(op, 1, spread_taps(v, of_kernel));
	taps = size_of(tc_in(op, 1), v->kernel);
	all = tc_out(op, 0);
	all->type = tc_with_dim(c, tc_with_dim(c, t, feature, t->dim[feature] * v->holes),
				(unsigned)v->output, v->phase_size);
	tc_set_nth(c, op, "lhs_dilation", v->i, 1);
	tc_set_nth(c, op, "padding", 2 * v->i, before);
	tc_set_nth(c, op, "padding", 2 * v->i + 1, v->phase_size - before + taps - 1 -
		   size_of(tc_in(op, 0), v->input));
	tc_build_place(&v->b, op);
	all = move_inner(&v->b, all, feature, (unsigned)v->output, v->holes);
	if (all->type->dim[v->output] != t->dim[v->output])
		all = tc_build_part(&v->b, all, (unsigned)v->output, 0, t->dim[v->output]);
	tc_replace(v->op, all);
	return op;
}

/* Whether the kernel with zeros around it takes no more room than what there is takes anyway. */
static bool has_room(const struct conv *v)
{
	const struct tc_value *kernel = tc_in(v->op, 1), *out = tc_out(v->op, 0);
	uint64_t most = kernel->type->count > out->type->count ? kernel->type->count :
			out->type->count;
	uint64_t size = (uint64_t)size_of(kernel, v->kernel);

	return kernel->type->count / size <= 4 * most / (size + 2 * (uint64_t)v->holes);
}

static bool has_live_taps_apart(struct conv *v)
{
	const struct tc_value *kernel = tc_in(v->op, 1), *out = tc_out(v->op, 0);
	int64_t features = size_of(kernel, tc_attr_int(v->op, "kernel_output_feature_dimension",
						       0));

	v->holes = tc_attr_nth(v->op, "lhs_dilation", v->i);
	v->low = tc_attr_nth(v->op, "padding", 2 * v->i);
	v->input = tc_attr_nth(v->op, "input_spatial_dimensions", v->i);
	v->kernel = tc_attr_nth(v->op, "kernel_spatial_dimensions", v->i);
	v->output = tc_attr_nth(v->op, "output_spatial_dimensions", v->i);
	v->phase_size = (size_of(out, v->output) + v->holes - 1) / v->holes;
	return v->holes > 1 && v->n + 3 <= TC_MAX_RANK &&
	       tc_attr_nth(v->op, "window_strides", v->i) == 1 &&
	       tc_attr_nth(v->op, "rhs_dilation", v->i) == 1 &&
	       !tc_attr_nth(v->op, "window_reversal", v->i) &&
	       out->type->count && size_of(tc_in(v->op, 0), v->input) && kernel->type->count &&
	       (v->holes > MOST_PHASES ? has_room(v) : (size_of(kernel, v->kernel) > 1 &&
		(kernel->type->count / features >= LEAST_WORK || tc_is_depthwise(v->op))));
}

/* Whether elements along dim d are neighbours in memory. */
static bool is_innermost(const struct tc_type *t, int64_t d)
{
	for (unsigned k = (unsigned)d + 1; k < t->rank; k++)
		if (t->dim[k] != 1)
			return false;
	return true;
}

/* Whether the op gives few features of one, by windows that have taps along one dim alone, enough
 * of them, and move along it by one element, to its neighbour. */
static bool is_sliding(const struct tc_op *op, unsigned n)
{
	const struct tc_type *in = tc_in(op, 0)->type;
	int64_t features = size_of(tc_out(op, 0), tc_attr_int(op, "output_feature_dimension", 0));
	int64_t most = 1;

	if (in->dim[tc_attr_int(op, "input_feature_dimension", 0)] != 1 || !in->count ||
	    features > TC_SLIDING_FEATURES || tc_attr_int(op, "feature_group_count", 1) != 1 ||
	    tc_attr_int(op, "batch_group_count", 1) != 1 || !tc_out(op, 0)->type->count)
		return false;
	for (unsigned i = 0; i < n; i++) {
		int64_t taps = size_of(tc_in(op, 1),
				       tc_attr_nth(op, "kernel_spatial_dimensions", i));

		if (tc_attr_nth(op, "lhs_dilation", i) != 1 ||
		    (taps != 1 && (most > 1 || tc_attr_nth(op, "window_strides", i) != 1 ||
				   !is_innermost(in, tc_attr_nth(op, "input_spatial_dimensions",
								 i)))))
			return false;
		most = taps > most ? taps : most;
	}
	return most >= (features > 1 ? 2 : LEAST_SLIDING);
}

/* Pads the input, so that no window leaves it. */
static bool slide(struct tc_ctx *c, struct tc_op *op)
{
	int64_t low[TC_MAX_RANK] = { 0 }, high[TC_MAX_RANK] = { 0 }, none[TC_MAX_RANK] = { 0 };
	struct tc_build b = tc_build_at(c, op);
	struct tc_value *in = tc_in(op, 0), *zero;
	unsigned n = in->type->rank - 2u;
	bool any = false;

	if (!is_sliding(op, n))
		return false;
	for (unsigned i = 0; i < n; i++) {
		int64_t d = tc_attr_nth(op, "input_spatial_dimensions", i);

		low[d] = tc_attr_nth(op, "padding", 2 * i);
		high[d] = tc_attr_nth(op, "padding", 2 * i + 1);
		any |= low[d] || high[d];
	}
	if (any && !tc_may_take_more(c))
		return false;
	for (unsigned i = 0; i < 2 * n; i++)
		tc_set_nth(c, op, "padding", i, 0);
	zero = tc_build_number(&b, tc_tensor(c, (enum elem)in->type->elem, 0, NULL), 0);
	if (any)
		tc_set_operand(op, 0, tc_build_pad(&b, in, zero, low, high, none));
	return true;
}

/* A convolution of many features, of which it gives few. */
struct narrow {
	struct tc_build b;
	struct tc_op *op;
	unsigned n;		/* spatial dims */
	enum elem elem;		/* of the sums */
	int64_t in, out;	/* features */
	unsigned feature;	/* the input's dim of these */
	bool is_last;		/* it is the last one: so are taps and features then, else first */
};

static bool is_narrow(const struct narrow *v)
{
	const struct tc_op *op = v->op;
	int64_t taps = 1, points, padded;
	unsigned cls = elem_class(tc_out(op, 0)->type->elem);

	if ((cls != ELEM_CLASS_FLOAT && cls != ELEM_CLASS_COMPLEX) || v->out > MOST_NARROW ||
	    v->n + 3 > TC_MAX_RANK || tc_attr_int(op, "feature_group_count", 1) != 1 ||
	    tc_attr_int(op, "batch_group_count", 1) != 1 || !tc_out(op, 0)->type->count ||
	    !v->in)
		return false;
	padded = size_of(tc_in(op, 0), tc_attr_int(op, "input_batch_dimension", 0));
	for (unsigned i = 0; i < v->n; i++) {
		int64_t low = tc_attr_nth(op, "padding", 2 * i);
		int64_t high = tc_attr_nth(op, "padding", 2 * i + 1);
		int64_t cut = (low < 0 ? low : 0) + (high < 0 ? high : 0);
		int64_t size = size_of(tc_in(op, 0),
				       tc_attr_nth(op, "input_spatial_dimensions", i));

		if (tc_attr_nth(op, "lhs_dilation", i) != 1 ||
		    tc_attr_nth(op, "window_strides", i) != 1 || size <= -cut ||
		    __builtin_mul_overflow(padded, size + low + high, &padded) ||
		    __builtin_mul_overflow(taps, size_of(tc_in(op, 1), tc_attr_nth(op,
					   "kernel_spatial_dimensions", i)), &taps))
			return false;
	}
	points = tc_in(op, 0)->type->count / v->in;
	return taps > 1 && taps <= MOST_NARROW_TAPS && taps * v->out <= v->in &&
	       points / MOST_SPARE <= tc_out(op, 0)->type->count / v->out &&
	       padded <= MOST_NARROW_BYTES / (taps * v->out * (int64_t)elem_bytes(v->elem));
}

/* [taps * features out, features in], the last spatial dim fastest of the taps. */
static struct tc_value *taps_by_features(const struct narrow *v)
{
	int64_t order[TC_MAX_RANK], dim[2] = { 0, v->in };
	struct tc_value *kernel = tc_in(v->op, 1);

	for (unsigned i = 0; i < v->n; i++)
		order[i] = tc_attr_nth(v->op, "kernel_spatial_dimensions", i);
	order[v->n] = tc_attr_int(v->op, "kernel_output_feature_dimension", 0);
	order[v->n + 1] = tc_attr_int(v->op, "kernel_input_feature_dimension", 0);
	dim[0] = kernel->type->count / v->in;
	kernel = tc_build_transpose(&v->b, kernel, order);
	return tc_build_convert(&v->b, tc_build_reshape(&v->b, kernel, 2, dim), v->elem);
}

/* Where dim d of the input, not that of its features, is beside those of taps and features. */
static unsigned dim_of(const struct narrow *v, int64_t d)
{
	return (unsigned)d - (d > v->feature) + !v->is_last;
}

/* Padding is of zeros, whose products with a tap are its own: NaNs, if that is infinite. */
static struct tc_value *pad_points(const struct narrow *v, struct tc_value *x,
				   struct tc_value *taps)
{
	struct tc_ctx *c = v->b.c;
	const struct tc_type *scalar = tc_tensor(c, v->elem, 0, NULL);
	int64_t low[TC_MAX_RANK] = { 0 }, high[TC_MAX_RANK] = { 0 }, none[TC_MAX_RANK] = { 0 };
	int64_t dim[TC_MAX_RANK], feature = v->is_last ? x->type->rank - 1 : 0;
	struct tc_value *in[TC_MAX_RANK + 2], *zero = tc_build_number(&v->b, scalar, 0);
	unsigned rank = x->type->rank;
	bool any = false;

	for (unsigned i = 0; i < v->n; i++) {
		unsigned d = dim_of(v, tc_attr_nth(v->op, "input_spatial_dimensions", i));

		low[d] = tc_attr_nth(v->op, "padding", 2 * i);
		high[d] = tc_attr_nth(v->op, "padding", 2 * i + 1);
	}
	for (unsigned d = 0; d < rank; d++) {
		int64_t less[2] = { low[d] < 0 ? low[d] : 0, high[d] < 0 ? high[d] : 0 };

		any |= low[d] > 0 || high[d] > 0;
		dim[d] = x->type->dim[d] + low[d] + high[d];
		in[2 + d] = tc_build_number(&v->b, tc_tensor(c, ELEM_S32, 0, NULL),
					    (double)(low[d] - less[0]));
		low[d] = less[0];
		high[d] = less[1];
	}
	x = tc_build_pad(&v->b, x, zero, low, high, none);
	if (!any)
		return x;
	taps = tc_build2(&v->b, TC_MULTIPLY, taps, tc_build_number(&v->b, taps->type, 0));
	in[0] = tc_build_broadcast(&v->b, tc_build_sum(&v->b, taps, 1 << 1),
				   tc_tensor(c, v->elem, rank, dim), &feature);
	in[1] = x;
	return tc_build(&v->b, TC_DYNAMIC_UPDATE_SLICE, in[0]->type, rank + 2, in);
}

/* Of all taps' products, those of tap t where it meets each point of the result. */
static struct tc_value *meet(const struct narrow *v, struct tc_value *all, int64_t t)
{
	int64_t start[TC_MAX_RANK] = { 0 }, dim[TC_MAX_RANK];
	unsigned features = v->is_last ? all->type->rank - 1u : 0;

	memcpy(dim, all->type->dim, all->type->rank * sizeof(*dim));
	start[features] = t * v->out;
	dim[features] = v->out;
	for (unsigned i = v->n; i-- > 0;) {
		unsigned d = dim_of(v, tc_attr_nth(v->op, "input_spatial_dimensions", i));
		int64_t taps = size_of(tc_in(v->op, 1),
				       tc_attr_nth(v->op, "kernel_spatial_dimensions", i));
		int64_t tap = t % taps;

		t /= taps;
		if (tc_attr_nth(v->op, "window_reversal", i))
			tap = taps - 1 - tap;
		start[d] = tap * tc_attr_nth(v->op, "rhs_dilation", i);
		dim[d] = size_of(tc_out(v->op, 0),
				 tc_attr_nth(v->op, "output_spatial_dimensions", i));
	}
	return tc_build_slice(&v->b, all, start,
			      tc_tensor(v->b.c, v->elem, all->type->rank, dim));
}

/* In the order of the result's dims. */
static struct tc_value *turn_result(const struct narrow *v, struct tc_value *x)
{
	int64_t order[TC_MAX_RANK];

	order[tc_attr_int(v->op, "output_feature_dimension", 0)] = v->is_last ?
		x->type->rank - 1 : 0;
	order[tc_attr_int(v->op, "output_batch_dimension", 0)] =
		dim_of(v, tc_attr_int(v->op, "input_batch_dimension", 0));
	for (unsigned i = 0; i < v->n; i++)
		order[tc_attr_nth(v->op, "output_spatial_dimensions", i)] =
			dim_of(v, tc_attr_nth(v->op, "input_spatial_dimensions", i));
	x = tc_build_transpose(&v->b, x, order);
	return tc_build_convert(&v->b, x, (enum elem)tc_out(v->op, 0)->type->elem);
}

static bool multiply_by_taps(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_value *in = tc_in(op, 0), *taps, *all, *sum;
	const struct tc_type *t = tc_out(op, 0)->type;
	unsigned rank = in->type->rank;
	struct narrow v = { .b = tc_build_at(c, op), .op = op, .n = rank - 2u,
			    .elem = elem_class(t->elem) == ELEM_CLASS_FLOAT &&
				    elem_bits(t->elem) < 32 ? ELEM_F32 : (enum elem)t->elem,
			    .feature = (unsigned)tc_attr_int(op, "input_feature_dimension", 0) };

	v.in = in->type->dim[v.feature];
	v.out = size_of(tc_out(op, 0), tc_attr_int(op, "output_feature_dimension", 0));
	v.is_last = v.feature == rank - 1;
	if (!is_narrow(&v) || !tc_may_take_more(c))
		return false;
	taps = taps_by_features(&v);
	in = tc_build_convert(&v.b, in, v.elem);
	all = v.is_last ? tc_build_dot(&v.b, in, taps, 0, v.feature, 1) :
	      tc_build_dot(&v.b, taps, in, 0, 1, v.feature);
	all = pad_points(&v, all, taps);
	sum = meet(&v, all, 0);
	for (int64_t k = 1; k * v.out < taps->type->dim[0]; k++)
		sum = tc_build2(&v.b, TC_ADD, sum, meet(&v, all, k));
	tc_replace(op, turn_result(&v, sum));
	return true;
}

/* A list of dims or of numbers for each of them without number i; dims after `gone` move up. */
static void drop_nth(struct tc_ctx *c, struct tc_op *op, const char *name, unsigned i,
		     unsigned each, int64_t gone)
{
	int64_t left[2 * TC_MAX_RANK];
	unsigned n, n_left = 0;
	const int64_t *list = tc_attr_ints(op, name, &n);

	for (unsigned k = 0; k < n; k++)
		if (k / each != i)
			left[n_left++] = list[k] - (gone >= 0 && list[k] > gone);
	tc_set_ints(c, op, name, left, n_left);
}

static void move_up(struct tc_ctx *c, struct tc_op *op, const char *name, int64_t gone)
{
	int64_t d = tc_attr_int(op, name, 0);

	tc_set_int(c, op, name, TC_ATTR_INT, d - (d > gone));
}

/* x without its dim d, which has one element. */
static struct tc_value *drop_dim(const struct tc_build *b, struct tc_value *x, int64_t d)
{
	int64_t dim[TC_MAX_RANK];
	unsigned n = 0;

	for (unsigned k = 0; k < x->type->rank; k++)
		if (k != d)
			dim[n++] = x->type->dim[k];
	return tc_build_reshape(b, x, n, dim);
}

/* The input with what each tap along the dim at hand meets as a feature, and points as batches. */
static struct tc_value *fold_input(const struct conv *v, int64_t taps, int64_t points)
{
	int64_t low[TC_MAX_RANK] = { 0 }, high[TC_MAX_RANK] = { 0 }, holes[TC_MAX_RANK] = { 0 };
	int64_t start[TC_MAX_RANK] = { 0 }, step[TC_MAX_RANK];
	struct tc_value *x = tc_in(v->op, 0), **part, *zero;
	const struct tc_build *b = &v->b;
	unsigned d = (unsigned)v->input;

	part = arena_array(&b->c->arena, (size_t)taps, sizeof(*part));
	if (!part)
		tc_fail(b->c, ERR_RESOURCE_EXHAUSTED, v->op, "out of memory");
	zero = tc_build_number(b, tc_tensor(b->c, (enum elem)x->type->elem, 0, NULL), 0);
	low[d] = v->low;
	high[d] = tc_attr_nth(v->op, "padding", 2 * v->i + 1);
	holes[d] = v->holes - 1;
	if (low[d] || high[d] || holes[d])
		x = tc_build_pad(b, x, zero, low, high, holes);
	for (unsigned k = 0; k < x->type->rank; k++)
		step[k] = 1;
	step[d] = tc_attr_nth(v->op, "window_strides", v->i);
	for (int64_t k = 0; k < taps; k++) {
		start[d] = k * tc_attr_nth(v->op, "rhs_dilation", v->i);
		part[k] = tc_build_steps(b, x, start, step,
					 tc_with_dim(b->c, x->type, d, points));
	}
	x = tc_build_join(b, (unsigned)taps, part, d);
	x = move_inner(b, x, d, (unsigned)tc_attr_int(v->op, "input_batch_dimension", 0), points);
	x = move_inner(b, x, d, (unsigned)tc_attr_int(v->op, "input_feature_dimension", 0), taps);
	return drop_dim(b, x, d);
}

/* The kernel with the taps along the dim at hand as features. */
static struct tc_value *fold_kernel(const struct conv *v, int64_t taps)
{
	unsigned feature = (unsigned)tc_attr_int(v->op, "kernel_input_feature_dimension", 0);
	struct tc_value *kernel = tc_in(v->op, 1);

	if (tc_attr_nth(v->op, "window_reversal", v->i)) {
		kernel = tc_build1(&v->b, TC_REVERSE, kernel);
		tc_set_ints(v->b.c, kernel->def, "dimensions", &v->kernel, 1);
	}
	kernel = move_inner(&v->b, kernel, (unsigned)v->kernel, feature, taps);
	return drop_dim(&v->b, kernel, v->kernel);
}

/* op without the spatial dim that has the fewest taps, in its place; NULL: it is nothing but
 * zeros, or has too many dims for this too. */
static struct tc_op *fold_dim(struct tc_ctx *c, struct tc_op *op)
{
	static const char *const each[] = { "window_strides", "lhs_dilation", "rhs_dilation",
					    "window_reversal" };
	struct conv v = { .b = tc_build_at(c, op), .op = op, .n = tc_in(op, 0)->type->rank - 2u };
	const struct tc_type *t = tc_out(op, 0)->type;
	int64_t taps = INT64_MAX, points, batch, dim[TC_MAX_RANK];
	struct tc_value *all;
	struct tc_op *folded;
	unsigned n = 0;

	if (!t->count || !tc_in(op, 0)->type->count || !tc_in(op, 1)->type->count) {
		tc_replace(op, tc_build_number(&v.b, t, 0));
		return NULL;
	}
	if (v.n + 3 > TC_MAX_RANK)
		return NULL;
	for (unsigned i = 0; i < v.n; i++) {
		int64_t d = tc_attr_nth(op, "kernel_spatial_dimensions", i);

		if (size_of(tc_in(op, 1), d) < taps) {
			taps = size_of(tc_in(op, 1), d);
			v.kernel = d;
			v.i = i;
		}
	}
	v.holes = tc_attr_nth(op, "lhs_dilation", v.i);
	v.low = tc_attr_nth(op, "padding", 2 * v.i);
	v.input = tc_attr_nth(op, "input_spatial_dimensions", v.i);
	v.output = tc_attr_nth(op, "output_spatial_dimensions", v.i);
	batch = tc_attr_int(op, "output_batch_dimension", 0);
	points = t->dim[v.output];

	folded = tc_clone(c, op, tc_map_new(c));
	tc_set_operand(folded, 0, fold_input(&v, taps, points));
	tc_set_operand(folded, 1, fold_kernel(&v, taps));
	for (unsigned k = 0; k < t->rank; k++)
		if (k != v.output)
			dim[n++] = t->dim[k] * (k == batch ? points : 1);
	folded->results[0].type = tc_tensor(c, (enum elem)t->elem, n, dim);
	for (unsigned k = 0; k < 4; k++)
		drop_nth(c, folded, each[k], v.i, 1, -1);
	drop_nth(c, folded, "padding", v.i, 2, -1);
	drop_nth(c, folded, "input_spatial_dimensions", v.i, 1, v.input);
	drop_nth(c, folded, "kernel_spatial_dimensions", v.i, 1, v.kernel);
	drop_nth(c, folded, "output_spatial_dimensions", v.i, 1, v.output);
	move_up(c, folded, "input_batch_dimension", v.input);
	move_up(c, folded, "input_feature_dimension", v.input);
	move_up(c, folded, "kernel_input_feature_dimension", v.kernel);
	move_up(c, folded, "kernel_output_feature_dimension", v.kernel);
	move_up(c, folded, "output_batch_dimension", v.output);
	move_up(c, folded, "output_feature_dimension", v.output);
	tc_build_place(&v.b, folded);

	n = 0;
	for (unsigned k = 0; k < t->rank; k++)
		dim[k] = k == v.output ? 1 : tc_out(folded, 0)->type->dim[n++];
	all = tc_build_reshape(&v.b, tc_out(folded, 0), t->rank, dim);
	tc_replace(op, move_inner(&v.b, all, (unsigned)batch, (unsigned)v.output, points));
	return folded;
}

void tc_decompose_convolution(struct tc_ctx *c, struct tc_op *op)
{
	struct conv v = { .b = tc_build_at(c, op), .op = op, .n = tc_in(op, 0)->type->rank - 2u };
	struct tc_value *phase[MOST_PHASES];
	struct tc_op *part[MOST_PHASES];

	if (v.n > ISA_MAX_SPATIAL) {
		op = fold_dim(c, op);
		if (op)
			tc_decompose_convolution(c, op);
		return;
	}
	while (v.i < v.n && !has_live_taps_apart(&v))
		v.i++;
	if (v.i == v.n) {
		if (!slide(c, op) && !multiply_by_taps(c, op))
			tc_decompose_depthwise(c, op);
		return;
	}
	if (are_features(&v)) {
		tc_decompose_convolution(c, build_features(&v));
		return;
	}
	for (int64_t r = 0; r < v.holes; r++) {
		phase[r] = build_phase(&v, r);
		part[r] = phase[r]->def;
	}
	tc_replace(op, interleave(&v, phase));
	/* There may be holes in another dim. */
	for (int64_t r = 0; r < v.holes; r++)
		if (part[r]->op == TC_CONVOLUTION)
			tc_decompose_convolution(c, part[r]);
}
