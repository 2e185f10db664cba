/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows that hold everything up to an element, or everything from it on: running sums,
 * products, maxima; and wide windows that end, or begin, at each element. JAX writes
 * jnp.cumsum and its family so for platforms that it has no other form for.
 *
 * Window by window that is n * n / 2 points. Here the array is combined with itself, moved by
 * 1, 2, 4, ... places (Hillis and Steele, "Data parallel algorithms", 1986): n * log2(n). The
 * order of the elements is kept, so any associative body will do; how sums are grouped is
 * free in a reduce_window, and this grouping has the smaller error. A window of w elements is
 * put together of those of 1, 2, 4, ... of which w is the sum: n * log2(w).
 */
#include <string.h>

#include "runtime/compiler/lower/decompose.h"

enum {
	LEAST = 9,	/* elements: shorter ones are as quick window by window */
	LEAST_WINDOW = 64,	/* of windows that do not hold everything */
	MOST_ARRAYS = 8,
};

/* The dim whose windows are the `*width` elements that end (or begin) at each element, as many
 * as there are, or -1. */
static int scan_dim(const struct tc_op *op, bool *is_reverse, int64_t *width)
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
		int64_t low = padding[2 * d], high = padding[2 * d + 1], rest = window[d] - 1;

		if (stride[d] != 1 || base[d] != 1 || dilation[d] != 1)
			return -1;
		if (window[d] == 1 && !low && !high)
			continue;
		if (found >= 0 || t->dim[d] < LEAST || window[d] > t->dim[d] ||
		    (window[d] < t->dim[d] && window[d] < LEAST_WINDOW) ||
		    !((low == rest && !high) || (!low && high == rest)))
			return -1;
		*width = window[d];
		found = (int)d;
		*is_reverse = high != 0;
	}
	return t->count ? found : -1;
}

/* Each element of `near`, which is of what is next to a place, joined with that of `far` which
 * is `step` before it (after it), where there is one. `near` becomes the result. */
static void add_moved(const struct tc_build *b, const struct tc_block *body, unsigned k,
		      struct tc_value **near, struct tc_value *const *far, unsigned dim,
		      int64_t step, bool is_reverse)
{
	struct tc_value *args[2 * MOST_ARRAYS] = { NULL }, *parts[2], *out[MOST_ARRAYS];
	int64_t n = near[0]->type->dim[dim];

	for (unsigned i = 0; i < k; i++) {
		struct tc_value *first = is_reverse ? near[i] : far[i];
		struct tc_value *last = is_reverse ? far[i] : near[i];

		args[i] = tc_build_part(b, first, dim, 0, n - step);
		args[k + i] = tc_build_part(b, last, dim, step, n - step);
	}
	tc_build_on_arrays(b, body, args, args[0]->type, out);
	for (unsigned i = 0; i < k; i++) {
		/* The first `step` (last) have seen all that there is. */
		parts[is_reverse] = tc_build_part(b, near[i], dim, is_reverse ? n - step : 0,
						  step);
		parts[!is_reverse] = out[i];
		near[i] = tc_build_join(b, 2, parts, dim);
	}
}

/* The windows of `width` elements, of v's; v becomes them. */
static void add_windows(const struct tc_build *b, const struct tc_block *body, unsigned k,
			struct tc_value **v, unsigned dim, int64_t width, bool is_reverse)
{
	struct tc_value *sum[MOST_ARRAYS] = { NULL }, *far[MOST_ARRAYS] = { NULL };
	int64_t have = 0;

	for (int64_t step = 1; step <= width; step *= 2) {
		/* v is of windows of `step`, sum of those of `have`, which is less. */
		if ((width & step) && have)
			add_moved(b, body, k, sum, v, dim, have, is_reverse);
		else if (width & step)
			memcpy(sum, v, k * sizeof(*v));
		have += width & step;
		memcpy(far, v, k * sizeof(*v));
		if (2 * step <= width)
			add_moved(b, body, k, v, far, dim, step, is_reverse);
	}
	memcpy(v, sum, k * sizeof(*v));
}

bool tc_decompose_scan(struct tc_ctx *c, struct tc_op *op)
{
	const struct tc_block *body = op->regions[0].block;
	struct tc_value *v[2 * MOST_ARRAYS], *out[MOST_ARRAYS];
	struct tc_build b = tc_build_at(c, op);
	unsigned k = op->n_results;
	const int64_t none = 0;
	bool is_reverse = false;
	int64_t width = 0;
	int dim = scan_dim(op, &is_reverse, &width);

	if (dim < 0 || k > MOST_ARRAYS || tc_only_for_scalars(body))
		return false;
	for (unsigned i = 0; i < k; i++) {
		v[k + i] = tc_in(op, i);
		if (v[k + i]->type->elem != tc_out(op, i)->type->elem)
			return false;
	}
	/* The least power of two that reaches all takes the fewest steps. */
	if (width == v[k]->type->dim[dim])
		while (width & (width - 1))
			width += width & -width;
	add_windows(&b, body, k, v + k, (unsigned)dim, width, is_reverse);
	/* The initial value comes first, once. */
	for (unsigned i = 0; i < k; i++)
		v[i] = tc_build_broadcast(&b, tc_in(op, k + i), v[k + i]->type, &none);
	tc_build_on_arrays(&b, body, v, v[k]->type, out);
	for (unsigned i = 0; i < k; i++)
		tc_replace_uses(tc_out(op, i), out[i]);
	tc_erase(op);
	return true;
}
