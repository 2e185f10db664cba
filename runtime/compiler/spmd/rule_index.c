/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of ops with indices and windows. */
#include <string.h>

#include "runtime/compiler/spmd/rule_internal.h"

void rule_dynamic_slice(struct rule_build *b)
{
	const struct tc_type *in = rule_type(b, 0);
	unsigned out = rule_result(b, 0);

	for (unsigned d = 0; d < in->rank; d++) {
		bool is_whole = in->dim[d] == rule_type(b, out)->dim[d];
		unsigned f = rule_own(b, 0, d, is_whole ? SPMD_PASS : SPMD_REPLICATE);

		b->r->factor[f].is_blocked = !is_whole;
		rule_put(b, out, d, f);
	}
}

static bool has_constant_indices(const struct tc_op *op)
{
	for (unsigned i = 2; i < op->n_operands; i++)
		if (!tc_in(op, i)->def || tc_in(op, i)->def->op != TC_CONSTANT)
			return false;
	return true;
}

void rule_dynamic_update(struct rule_build *b)
{
	const struct tc_type *in = rule_type(b, 0), *part = rule_type(b, 1);
	bool is_constant = has_constant_indices(b->op);

	for (unsigned d = 0; d < in->rank; d++) {
		unsigned f = rule_own(b, 0, d, SPMD_PASS);

		rule_put(b, rule_result(b, 0), d, f);
		if (in->dim[d] == part->dim[d])
			rule_put(b, 1, d, f);
		else
			rule_own(b, 1, d, is_constant ? SPMD_PASS : SPMD_REPLICATE);
	}
}

/* Whether the dim's windows are its elements. */
static bool is_plain_window(const struct tc_op *op, unsigned d)
{
	unsigned n;
	const int64_t *size = tc_attr_ints(op, "window_dimensions", &n);
	const int64_t *step = tc_attr_ints(op, "window_strides", &n);
	const int64_t *pad = tc_attr_ints(op, "padding", &n);

	return size[d] == 1 && step[d] == 1 && !pad[2 * d] && !pad[2 * d + 1];
}

void rule_reduce_window(struct rule_build *b)
{
	unsigned n_in = b->op->n_operands / 2, n;
	const int64_t *holes = tc_attr_ints(b->op, "base_dilations", &n);

	for (unsigned d = 0; d < rule_type(b, 0)->rank; d++) {
		bool is_plain = is_plain_window(b->op, d) && holes[d] == 1;
		unsigned f = rule_factor(b, rule_type(b, rule_result(b, 0))->dim[d],
					 is_plain ? SPMD_PASS : SPMD_PERMUTATION);

		for (unsigned i = 0; i < n_in; i++) {
			rule_put(b, i, d, f);
			rule_put(b, rule_result(b, i), d, f);
		}
	}
}

void rule_select_and_scatter(struct rule_build *b)
{
	for (unsigned d = 0; d < rule_type(b, 0)->rank; d++) {
		bool is_plain = is_plain_window(b->op, d);
		unsigned f = rule_own(b, 0, d, is_plain ? SPMD_PASS : SPMD_PERMUTATION);

		rule_put(b, rule_result(b, 0), d, f);
		if (is_plain)
			rule_put(b, 1, d, f);
		else
			rule_own(b, 1, d, SPMD_REPLICATE);
	}
}

/* ---- convolution ---- */

struct dims { unsigned in, kernel, out; };

/* The input's dim counts windows and places in a window, the larger number outside; which of
 * the two it has no room for is the kernel's or the result's alone. */
static void spatial(struct rule_build *b, struct dims at)
{
	int64_t size = rule_type(b, 0)->dim[at.in], window = rule_type(b, 1)->dim[at.kernel];
	int64_t windows = rule_type(b, 2)->dim[at.out];
	int64_t major = windows >= window ? windows : window, minor;
	enum spmd_factor_kind first = windows >= window ? SPMD_PERMUTATION : SPMD_REDUCTION;
	unsigned f, g;

	if (major > size)
		major = size;
	minor = major ? size / major : 0;
	f = rule_factor(b, major, first);
	rule_put(b, 0, at.in, f);
	if (minor > 1) {
		g = rule_factor(b, minor, windows >= window ? SPMD_REDUCTION :
				SPMD_PERMUTATION);
		rule_put(b, 0, at.in, g);
	} else {
		g = rule_factor(b, 1, SPMD_PASS);
	}
	rule_put(b, 1, at.kernel, windows >= window ? g : f);
	rule_put(b, 2, at.out, windows >= window ? f : g);
}

/* Puts factors of 2 or more, or the last one, at the minor end. */
static void put_pair(struct rule_build *b, unsigned tensor, unsigned dim, int64_t group,
		     unsigned f, unsigned rest)
{
	if (group > 1)
		rule_put(b, tensor, dim, f);
	if (group <= 1 || b->r->factor[rest].size > 1)
		rule_put(b, tensor, dim, rest);
}

static unsigned dim_of(const struct rule_build *b, const char *name)
{
	return (unsigned)tc_attr_int(b->op, name, 0);
}

static void features(struct rule_build *b)
{
	unsigned in_b = dim_of(b, "input_batch_dimension");
	unsigned in_f = dim_of(b, "input_feature_dimension");
	unsigned k_in = dim_of(b, "kernel_input_feature_dimension");
	unsigned k_out = dim_of(b, "kernel_output_feature_dimension");
	unsigned out_b = dim_of(b, "output_batch_dimension");
	unsigned out_f = dim_of(b, "output_feature_dimension");
	int64_t groups = tc_attr_int(b->op, "feature_group_count", 1);
	int64_t parts = tc_attr_int(b->op, "batch_group_count", 1);
	int64_t both = groups > 1 ? groups : parts;
	unsigned group = rule_factor(b, both, SPMD_PASS);
	unsigned batch = rule_factor(b, rule_type(b, 0)->dim[in_b] / parts, SPMD_PASS);
	unsigned in = rule_factor(b, rule_type(b, 1)->dim[k_in], SPMD_REDUCTION);
	unsigned out = rule_factor(b, rule_type(b, 1)->dim[k_out] / both, SPMD_PASS);

	put_pair(b, 0, in_b, parts, group, batch);
	put_pair(b, 0, in_f, groups, group, in);
	rule_put(b, 1, k_in, in);
	put_pair(b, 1, k_out, both, group, out);
	rule_put(b, 2, out_b, batch);
	put_pair(b, 2, out_f, both, group, out);
}

void rule_convolution(struct rule_build *b)
{
	unsigned n;
	const int64_t *in = tc_attr_ints(b->op, "input_spatial_dimensions", &n);
	const int64_t *kernel = tc_attr_ints(b->op, "kernel_spatial_dimensions", &n);
	const int64_t *out = tc_attr_ints(b->op, "output_spatial_dimensions", &n);

	features(b);
	for (unsigned i = 0; i < n; i++)
		spatial(b, (struct dims){ (unsigned)in[i], (unsigned)kernel[i],
					  (unsigned)out[i] });
}

/* ---- gather and scatter ---- */

struct list { const int64_t *v; unsigned n; };

static struct list ints(const struct rule_build *b, const char *name)
{
	struct list l;

	l.v = tc_attr_ints(b->op, name, &l.n);
	return l;
}

static bool has(struct list l, int64_t x)
{
	return tc_is_listed(l.v, l.n, x);
}

/* Which tensors have the places that indices are of: the result, or all updates. */
struct places { unsigned first, last; struct list windows; };

/* Factors of the dims of indices, and with them of those of the places. A dim that goes with
 * one of the operand has its factor. */
static void index_dims(struct rule_build *b, unsigned tensor, struct list batch,
		       struct list operand_batch, struct places to, enum spmd_factor_kind kind)
{
	int64_t vector = tc_attr_int(b->op, "index_vector_dim", 0);
	unsigned at = 0;

	for (unsigned d = 0; d < rule_type(b, tensor)->rank; d++) {
		unsigned f, k = 0;

		if (d == vector) {
			rule_own(b, tensor, d, SPMD_REPLICATE);
			continue;
		}
		while (k < batch.n && batch.v[k] != d)
			k++;
		if (k < batch.n) {
			f = b->r->tensor[0][operand_batch.v[k]].factor[0];
			rule_put(b, tensor, d, f);
		} else {
			f = rule_own(b, tensor, d, kind);
		}
		while (has(to.windows, at))
			at++;
		for (unsigned t = to.first; t <= to.last; t++)
			rule_put(b, t, at, f);
		at++;
	}
}

void rule_gather(struct rule_build *b)
{
	const struct tc_type *in = rule_type(b, 0);
	struct list offset = ints(b, "offset_dims"), gone = ints(b, "collapsed_slice_dims");
	struct list batch = ints(b, "operand_batching_dims"), size = ints(b, "slice_sizes");
	unsigned at = 0;

	for (unsigned d = 0; d < in->rank; d++) {
		unsigned f, to;

		if (has(batch, d)) {
			rule_own(b, 0, d, SPMD_PASS);
			continue;
		}
		if (has(gone, d)) {
			rule_own(b, 0, d, SPMD_REDUCTION);
			continue;
		}
		to = (unsigned)offset.v[at++];
		if (size.v[d] == 1 && in->dim[d] != 1) {
			rule_own(b, 0, d, SPMD_REDUCTION);
			rule_own(b, 2, to, SPMD_REPLICATE);
			continue;
		}
		f = rule_own(b, 0, d, size.v[d] == in->dim[d] ? SPMD_PASS : SPMD_REPLICATE);
		b->r->factor[f].is_blocked = size.v[d] != in->dim[d];
		rule_put(b, 2, to, f);
	}
	index_dims(b, 1, ints(b, "start_indices_batching_dims"), batch,
		   (struct places){ 2, 2, offset }, SPMD_PASS);
}

/* Whether the order in which values are put together says nothing. */
static bool is_sum(const struct tc_op *op)
{
	const struct tc_block *body = op->regions[0].block;
	const struct tc_op *first = body->first;

	if (body->last->n_operands != 1 || first->next != body->last)
		return false;
	switch (first->op) {
	case TC_ADD: case TC_MULTIPLY: case TC_MAXIMUM: case TC_MINIMUM: case TC_AND: case TC_OR:
	case TC_XOR:
		return true;
	default:
		return false;
	}
}

void rule_scatter(struct rule_build *b)
{
	unsigned n = b->op->n_results, updates = n + 1, at = 0;
	const struct tc_type *in = rule_type(b, 0);
	struct list windows = ints(b, "update_window_dims");
	struct list gone = ints(b, "inserted_window_dims");
	struct list batch = ints(b, "input_batching_dims");

	for (unsigned d = 0; d < in->rank; d++) {
		bool is_window = !has(gone, d) && !has(batch, d);
		unsigned to = is_window ? (unsigned)windows.v[at++] : 0;
		bool is_part = is_window && rule_type(b, updates)->dim[to] != in->dim[d];
		unsigned f = rule_factor(b, in->dim[d], is_part ? SPMD_REPLICATE : SPMD_PASS);
		unsigned g = is_part ? rule_factor(b, rule_type(b, updates)->dim[to],
						   SPMD_REPLICATE) : f;

		for (unsigned i = 0; i < n; i++) {
			rule_put(b, i, d, f);
			rule_put(b, rule_result(b, i), d, f);
			if (is_window)
				rule_put(b, updates + i, to, g);
		}
	}
	index_dims(b, n, ints(b, "scatter_indices_batching_dims"), batch,
		   (struct places){ updates, 2 * n, windows }, is_sum(b->op) ?
		   SPMD_REDUCTION : SPMD_REPLICATE);
}
