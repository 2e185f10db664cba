/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows that hold everything up to an element, or everything from it on: running sums,
 * products, maxima. JAX writes jnp.cumsum and its family so for platforms that it has no
 * other form for.
 *
 * Window by window that is n * n / 2 points. Here the array is combined with itself, moved by
 * 1, 2, 4, ... places (Hillis and Steele, "Data parallel algorithms", 1986): n * log2(n). The
 * order of the elements is kept, so any associative body will do; how sums are grouped is
 * free in a reduce_window, and this grouping has the smaller error.
 */
#include "runtime/compiler/lower/decompose.h"

enum {
	LEAST = 9,	/* elements: shorter ones are as quick window by window */
	MOST_ARRAYS = 8,
};

/* The dim whose windows are all that is before (or after) an element, or -1. */
static int scan_dim(const struct tc_op *op, bool *is_reverse)
{
	const struct tc_type *t = tc_in(op, 0)->type;
	const int64_t *window, *padding, *stride, *base, *dilation;
	int found = -1;
	unsigned n;

	window = tc_attr_ints(op, "window_dimensions", &n);
	padding = tc_attr_ints(op, "padding", &n);
	stride = tc_attr_ints(op, "window_strides", &n);
	base = tc_attr_ints(op, "base_dilations", &n);
	dilation = tc_attr_ints(op, "window_dilations", &n);
	for (unsigned d = 0; d < t->rank; d++) {
		int64_t low = padding[2 * d], high = padding[2 * d + 1], all = t->dim[d] - 1;

		if (stride[d] != 1 || base[d] != 1 || dilation[d] != 1)
			return -1;
		if (window[d] == 1 && !low && !high)
			continue;
		if (found >= 0 || t->dim[d] < LEAST || window[d] != t->dim[d] ||
		    !((low == all && !high) || (!low && high == all)))
			return -1;
		found = (int)d;
		*is_reverse = high != 0;
	}
	return t->count ? found : -1;
}

/* Every element joined with the one `step` before it (after it), where there is one. */
static void add_moved(const struct tc_build *b, const struct tc_block *body, unsigned k,
		      struct tc_value **v, unsigned dim, int64_t step, bool is_reverse)
{
	struct tc_value *args[2 * MOST_ARRAYS], *parts[2], *out[MOST_ARRAYS];
	int64_t n = v[0]->type->dim[dim];

	for (unsigned i = 0; i < k; i++) {
		args[i] = tc_build_part(b, v[i], dim, 0, n - step);
		args[k + i] = tc_build_part(b, v[i], dim, step, n - step);
	}
	tc_build_on_arrays(b, body, args, args[0]->type, out);
	for (unsigned i = 0; i < k; i++) {
		/* The first `step` (last) have seen all that there is. */
		parts[is_reverse] = tc_build_part(b, v[i], dim, is_reverse ? n - step : 0, step);
		parts[!is_reverse] = out[i];
		v[i] = tc_build_join(b, 2, parts, dim);
	}
}

bool tc_decompose_scan(struct tc_ctx *c, struct tc_op *op)
{
	const struct tc_block *body = op->regions[0].block;
	struct tc_value *v[2 * MOST_ARRAYS], *out[MOST_ARRAYS];
	struct tc_build b = tc_build_at(c, op);
	unsigned k = op->n_results;
	const int64_t none = 0;
	bool is_reverse = false;
	int dim = scan_dim(op, &is_reverse);

	if (dim < 0 || k > MOST_ARRAYS || tc_only_for_scalars(body))
		return false;
	for (unsigned i = 0; i < k; i++) {
		v[k + i] = tc_in(op, i);
		if (v[k + i]->type->elem != tc_out(op, i)->type->elem)
			return false;
	}
	for (int64_t step = 1; step < v[k]->type->dim[dim]; step *= 2)
		add_moved(&b, body, k, v + k, (unsigned)dim, step, is_reverse);
	/* The initial value comes first, once. */
	for (unsigned i = 0; i < k; i++)
		v[i] = tc_build_broadcast(&b, tc_in(op, k + i), v[k + i]->type, &none);
	tc_build_on_arrays(&b, body, v, v[k]->type, out);
	for (unsigned i = 0; i < k; i++)
		tc_replace_uses(tc_out(op, i), out[i]);
	tc_erase(op);
	return true;
}
