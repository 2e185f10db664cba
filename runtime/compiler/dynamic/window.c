/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of ops that add up, or compare, along dims: none may see past a size (dynamic.h). */
#include "runtime/compiler/dynamic/dynamic.h"

/* What changes nothing when the region takes it in: of a sum and a product known, else the initial
 * value, which StableHLO wants to be that. */
static struct tc_value *neutral(const struct tc_build *b, const struct tc_op *op, unsigned i)
{
	const struct tc_block *body = op->regions[0].block;
	struct tc_value *init = tc_in(op, op->n_results + i);
	const struct tc_op *o = body->first;

	if (op->n_results != 1 || o->next != body->last || o->n_operands != 2 ||
	    tc_in(body->last, 0) != tc_out(o, 0) ||
	    tc_in(o, 0)->def || tc_in(o, 1)->def || tc_in(o, 0) == tc_in(o, 1))
		return init;
	if ((o->op == TC_ADD && init->type->elem != ELEM_PRED) || o->op == TC_XOR)
		return tc_build_number(b, init->type, o->op == TC_ADD ? -0.0 : 0);
	if (o->op == TC_MULTIPLY)
		return tc_build_number(b, init->type, 1);
	return init;
}

bool dyn_reduce(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	struct tc_value *sizes[TC_MAX_RANK] = { 0 };
	unsigned n, n_dims, kept;
	const int64_t *dims;
	uint64_t set = 0;

	dims = tc_attr_ints(op, "dimensions", &n_dims);
	for (unsigned i = 0; i < n_dims; i++)
		set |= (uint64_t)1 << dims[i];
	n = op->n_results;
	for (unsigned i = 0; i < n; i++) {
		struct tc_value *x = tc_in(op, i);

		kept = 0;
		for (unsigned d = 0; d < x->type->rank; d++) {
			if (set >> d & 1)
				continue;
			for (unsigned k = 0; k < n; k++)
				dyn_meet(&b, tc_out(op, k), kept, dyn_size_of(x, d));
			kept++;
		}
	}
	/* What is past the end of one operand counts in none. */
	for (unsigned i = 0; i < n; i++)
		for (unsigned d = 0; d < tc_in(op, i)->type->rank; d++)
			if (set >> d & 1)
				sizes[d] = dyn_less(&b, sizes[d], dyn_size_of(tc_in(op, i), d));
	for (unsigned i = 0; i < n; i++)
		tc_set_operand(op, i, dyn_cut(&b, tc_in(op, i), sizes, neutral(&b, op, i)));
	return true;
}

struct tc_value *dyn_windows(const struct tc_build *b, struct tc_value *size,
			     const struct dyn_way *w)
{
	int64_t span = (w->window - 1) * w->dilation + 1;

	if (w->base != 1) {
		size = dyn_do(b, TC_MULTIPLY, size, dyn_number(b, w->base));
		size = dyn_do(b, TC_SUBTRACT, size, dyn_number(b, w->base - 1));
		size = dyn_do(b, TC_MAXIMUM, size, dyn_number(b, 0));
	}
	size = dyn_do(b, TC_ADD, size, dyn_number(b, w->low + w->high - span + w->stride));
	size = dyn_do(b, TC_MAXIMUM, size, dyn_number(b, 0));
	return dyn_do(b, TC_DIVIDE, size, dyn_number(b, w->stride));
}

bool dyn_is_plain(const struct dyn_way *w)
{
	return w->window == 1 && w->stride == 1 && w->base == 1 && !w->low && !w->high;
}

bool dyn_reduce_window(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	unsigned n = op->n_results, m;
	const int64_t *window = tc_attr_ints(op, "window_dimensions", &m);
	const int64_t *stride = tc_attr_ints(op, "window_strides", &m);
	const int64_t *base = tc_attr_ints(op, "base_dilations", &m);
	const int64_t *dilation = tc_attr_ints(op, "window_dilations", &m);
	const int64_t *padding = tc_attr_ints(op, "padding", &m);
	struct tc_value *sizes[TC_MAX_RANK] = { 0 };

	for (unsigned d = 0; d < tc_in(op, 0)->type->rank; d++) {
		struct dyn_way w = { window[d], stride[d], base[d], dilation[d], padding[2 * d],
				 padding[2 * d + 1] };
		struct tc_value *size = NULL;

		for (unsigned i = 0; i < n; i++)
			size = dyn_less(&b, size, dyn_size_of(tc_in(op, i), d));
		if (!size)
			continue;
		sizes[d] = dyn_is_plain(&w) ? NULL : size;
		if (!dyn_is_plain(&w))
			size = dyn_windows(&b, size, &w);
		for (unsigned k = 0; k < n; k++)
			dyn_set(c, tc_out(op, k), d, size);
	}
	for (unsigned i = 0; i < n; i++)
		tc_set_operand(op, i, dyn_cut(&b, tc_in(op, i), sizes, neutral(&b, op, i)));
	return true;
}

static struct tc_value *cut_to_zero(const struct tc_build *b, struct tc_value *x,
				    struct tc_value *const *sizes)
{
	const struct tc_type *scalar = tc_tensor(b->c, (enum elem)x->type->elem, 0, NULL);

	return dyn_cut(b, x, sizes, tc_build_number(b, scalar, 0));
}

bool dyn_dot(struct tc_ctx *c, struct tc_op *op)
{
	static const char *const batch_names[] = { "lhs_batching_dimensions",
						   "rhs_batching_dimensions" };
	static const char *const sum_names[] = { "lhs_contracting_dimensions",
						 "rhs_contracting_dimensions" };
	struct tc_build b = tc_build_at(c, op);
	struct tc_value *out = tc_out(op, 0);
	struct tc_value *sizes[2][TC_MAX_RANK] = { 0 };
	const int64_t *batch[2], *sums[2];
	unsigned n_batch, n_sums, at;

	for (unsigned k = 0; k < 2; k++) {
		batch[k] = tc_attr_ints(op, batch_names[k], &n_batch);
		sums[k] = tc_attr_ints(op, sum_names[k], &n_sums);
	}
	at = n_batch;
	for (unsigned k = 0; k < 2; k++) {
		struct tc_value *x = tc_in(op, k);
		uint64_t gone = 0;

		for (unsigned i = 0; i < n_batch; i++) {
			dyn_meet(&b, out, i, dyn_size_of(x, (unsigned)batch[k][i]));
			gone |= (uint64_t)1 << batch[k][i];
		}
		for (unsigned i = 0; i < n_sums; i++)
			gone |= (uint64_t)1 << sums[k][i];
		for (unsigned d = 0; d < x->type->rank; d++)
			if (!(gone >> d & 1))
				dyn_set(c, out, at++, dyn_size_of(x, d));
	}
	/* A zero times an infinity is none: both sides are covered. */
	for (unsigned i = 0; i < n_sums; i++) {
		unsigned l = (unsigned)sums[0][i], r = (unsigned)sums[1][i];

		sizes[0][l] = sizes[1][r] = dyn_less(&b, dyn_size_of(tc_in(op, 0), l),
						     dyn_size_of(tc_in(op, 1), r));
	}
	for (unsigned k = 0; k < 2; k++)
		tc_set_operand(op, k, cut_to_zero(&b, tc_in(op, k), sizes[k]));
	return true;
}

/* The batch and the result's features are kept, places are counted, what is summed is covered. */
bool dyn_convolution(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	struct tc_value *x = tc_in(op, 0), *w = tc_in(op, 1), *out = tc_out(op, 0);
	unsigned in_batch = (unsigned)tc_attr_int(op, "input_batch_dimension", 0);
	unsigned in_feature = (unsigned)tc_attr_int(op, "input_feature_dimension", 0);
	unsigned by_in = (unsigned)tc_attr_int(op, "kernel_input_feature_dimension", 0);
	unsigned by_out = (unsigned)tc_attr_int(op, "kernel_output_feature_dimension", 0);
	unsigned out_batch = (unsigned)tc_attr_int(op, "output_batch_dimension", 0);
	unsigned out_feature = (unsigned)tc_attr_int(op, "output_feature_dimension", 0);
	bool in_groups = tc_attr_int(op, "feature_group_count", 1) != 1;
	bool batch_groups = tc_attr_int(op, "batch_group_count", 1) != 1;
	unsigned n, m;
	const int64_t *from = tc_attr_ints(op, "input_spatial_dimensions", &n);
	const int64_t *by = tc_attr_ints(op, "kernel_spatial_dimensions", &n);
	const int64_t *to = tc_attr_ints(op, "output_spatial_dimensions", &n);
	const int64_t *stride = tc_attr_ints(op, "window_strides", &m);
	const int64_t *padding = tc_attr_ints(op, "padding", &m);
	const int64_t *base = tc_attr_ints(op, "lhs_dilation", &m);
	const int64_t *dilation = tc_attr_ints(op, "rhs_dilation", &m);
	struct tc_value *sizes[2][TC_MAX_RANK] = { 0 };

	if (in_groups && dyn_size_of(x, in_feature))
		dyn_refuse(c, op, 0, in_feature, "which features are of a group depends on it");
	if (batch_groups && dyn_size_of(x, in_batch))
		dyn_refuse(c, op, 0, in_batch, "which parts are of a group depends on it");
	if (in_groups && dyn_size_of(w, by_in))
		dyn_refuse(c, op, 1, by_in, "which features are of a group depends on it");
	if ((in_groups || batch_groups) && dyn_size_of(w, by_out))
		dyn_refuse(c, op, 1, by_out, "which features are of a group depends on it");
	for (unsigned i = 0; i < n; i++) {
		struct dyn_way v = { w->type->dim[by[i]], stride[i], base[i], dilation[i],
				 padding[2 * i], padding[2 * i + 1] };
		struct tc_value *size = dyn_size_of(x, (unsigned)from[i]);

		if (dyn_size_of(w, (unsigned)by[i]))
			dyn_refuse(c, op, 1, (unsigned)by[i], "windows of such a size do not run");
		if (!size)
			continue;
		sizes[0][from[i]] = size;
		dyn_set(c, out, (unsigned)to[i], dyn_windows(&b, size, &v));
	}
	dyn_set(c, out, out_batch, dyn_size_of(x, in_batch));
	dyn_set(c, out, out_feature, dyn_size_of(w, by_out));
	sizes[0][in_feature] = sizes[1][by_in] = dyn_less(&b, dyn_size_of(x, in_feature),
							  dyn_size_of(w, by_in));
	tc_set_operand(op, 0, cut_to_zero(&b, x, sizes[0]));
	tc_set_operand(op, 1, cut_to_zero(&b, w, sizes[1]));
	return true;
}

/* ---- sort ---- */

/* An order by the region, but for what does not count: that comes last. keys: of both. */
static void put_last(const struct tc_build *b, struct tc_block *body, struct tc_value *const *keys)
{
	struct tc_value *order = tc_in(body->last, 0), *is_before, *is_alike;

	is_before = tc_build_compare(b, TC_CMP_LT, keys[0], keys[1]);
	is_alike = tc_build_compare(b, TC_CMP_EQ, keys[0], keys[1]);
	order = tc_build2(b, TC_AND, is_alike, order);
	tc_set_operand(body->last, 0, tc_build2(b, TC_OR, is_before, order));
}

bool dyn_sort(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op), inner;
	unsigned along = (unsigned)tc_attr_int(op, "dimension", 0), n = op->n_operands;
	const struct tc_type *s32 = tc_with_elem(c, tc_in(op, 0)->type, ELEM_S32);
	const struct tc_type *scalar = tc_tensor(c, ELEM_S32, 0, NULL);
	struct tc_value **in = arena_array(&c->arena, n + 1, sizeof(*in)), *keys[2], *size;
	const struct tc_type **types = arena_array(&c->arena, n + 1, sizeof(*types));
	struct tc_block *body = op->regions[0].block;
	struct tc_op *with;

	dyn_elementwise(c, op);
	size = dyn_size_of(tc_out(op, 0), along);
	if (!size)
		return true;
	if (!in || !types)
		tc_fail(c, ERR_RESOURCE_EXHAUSTED, op, "out of memory");
	for (unsigned i = 0; i < n; i++) {
		in[i] = tc_in(op, i);
		types[i] = in[i]->type;
	}
	in[n] = tc_build_compare(&b, TC_CMP_GE, tc_build_iota(&b, s32, along),
				 tc_build_broadcast(&b, size, s32, NULL));
	in[n] = tc_build_convert(&b, in[n], ELEM_S32);
	types[n] = s32;
	with = tc_build_place(&b, tc_new(c, TC_SORT, n + 1, in, n + 1, types, 1));
	for (unsigned i = 0; i < op->n_attrs; i++)
		tc_set_attr(c, with, op->attrs[i]);
	with->regions[0].block = body;
	body->region = &with->regions[0];
	op->regions[0].block = NULL;
	keys[0] = tc_new_arg(c, body, scalar);
	keys[1] = tc_new_arg(c, body, scalar);
	inner = tc_build_at(c, body->last);
	inner.where = op->where;
	put_last(&inner, body, keys);
	for (unsigned i = 0; i < n; i++) {
		dyn_copy(c, tc_out(with, i), tc_out(op, i));
		tc_replace_uses(tc_out(op, i), tc_out(with, i));
	}
	return false;
}
