/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules of ops that take in what they are given all at once, so that nothing can be covered: they
 * are written as simpler ops, in which it can be left out (dynamic.h).
 */
#include "runtime/compiler/dynamic/dynamic.h"
#include "runtime/compiler/opt/expand.h"

/* How many elements have sizes[] (NULL: as the type says) along all dims but one, as a scalar
 * of floats. Their product is taken as a float: a sum over more than 2^31 is no s32. */
static struct tc_value *count_of(const struct tc_build *b, const struct tc_type *t, unsigned but,
				 struct tc_value *const *sizes)
{
	enum elem elem = t->elem == ELEM_F64 ? ELEM_F64 : ELEM_F32;
	double known = 1;
	struct tc_value *n = NULL, *one;

	for (unsigned d = 0; d < t->rank; d++) {
		if (d == but)
			continue;
		if (!sizes[d]) {
			known *= (double)t->dim[d];
			continue;
		}
		one = tc_build_convert(b, sizes[d], elem);
		n = n ? tc_build2(b, TC_MULTIPLY, n, one) : one;
	}
	return tc_build2(b, TC_MULTIPLY, n, tc_build_number(b, n->type, known));
}

/* Results: of x's dims; in training and in a gradient two more, of the features. */
bool dyn_batch_norm(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	const struct tc_type *t = tc_in(op, 0)->type;
	unsigned feature = (unsigned)tc_attr_int(op, "feature_index", 0);
	struct tc_value *sizes[TC_MAX_RANK] = { 0 }, *within, *features = NULL, *out[3];

	for (unsigned i = 0; i < op->n_operands; i++) {
		struct tc_value *x = tc_in(op, i);

		for (unsigned d = 0; x->type == t && d < t->rank; d++)
			sizes[d] = dyn_less(&b, sizes[d], dyn_size_of(x, d));
		if (x->type->rank == 1)
			features = dyn_less(&b, features, dyn_size_of(x, 0));
	}
	/* One feature does not look at another. */
	features = dyn_less(&b, features, sizes[feature]);
	sizes[feature] = NULL;
	within = op->op == TC_BATCH_NORM_INFERENCE ? NULL : dyn_within(&b, t, sizes);
	if (within)
		tc_expand_batch_norm(&b, op, within, count_of(&b, t, feature, sizes), out);
	for (unsigned i = 0; i < op->n_results; i++) {
		struct tc_value *to = within ? out[i] : tc_out(op, i);

		for (unsigned d = 0; i == 0 && d < t->rank; d++)
			dyn_set(c, to, d, d == feature ? features : sizes[d]);
		if (i > 0)
			dyn_set(c, to, 0, features);
		if (within)
			tc_replace_uses(tc_out(op, i), to);
	}
	return !within;
}

/* A window selects of what counts, and a part of the source that has no window adds nothing. */
bool dyn_select_and_scatter(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	struct tc_value *x = tc_in(op, 0), *source = tc_in(op, 1), *out;
	struct tc_value *in[TC_MAX_RANK] = { 0 }, *from[TC_MAX_RANK] = { 0 };
	unsigned n_window, n_stride, n_padding;
	const int64_t *window = tc_attr_ints(op, "window_dimensions", &n_window);
	const int64_t *stride = tc_attr_ints(op, "window_strides", &n_stride);
	const int64_t *padding = tc_attr_ints(op, "padding", &n_padding);

	for (unsigned d = 0; d < x->type->rank; d++) {
		struct dyn_way w = { n_window ? window[d] : 1, n_stride ? stride[d] : 1, 1, 1,
				     n_padding ? padding[2 * d] : 0,
				     n_padding ? padding[2 * d + 1] : 0 };

		from[d] = dyn_size_of(source, d);
		if (!dyn_size_of(x, d) || dyn_is_plain(&w))
			continue;
		in[d] = dyn_size_of(x, d);
		from[d] = dyn_less(&b, from[d], dyn_windows(&b, in[d], &w));
	}
	tc_expand_select_and_scatter(&b, op, dyn_within(&b, x->type, in),
				     dyn_within(&b, source->type, from), &out);
	dyn_copy(c, out, x);
	tc_replace_uses(tc_out(op, 0), out);
	return false;
}
