/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows over padding, in parts.
 *
 * Where a window begins with a value that changes nothing, its elements in the padding may as
 * well be left out. Along a dim the windows fall into stretches of neighbours that have the
 * same elements within the array: most of them all, the first and last ones fewer. A box of
 * stretches, one of each dim, is elementwise work on parts of the array as it is, so nobody has
 * to write a padded copy of it. It takes an instruction for each box: large arrays are worth
 * that.
 */
#include "runtime/compiler/opt/fuse.h"

enum {
	MOST_BOXES = 32,
	LEAST_ELEMENTS = 1 << 16,	/* of an array of which a copy is saved */
};

struct along {
	int64_t in, out;		/* sizes of the dim */
	int64_t window, stride, dilation, low;
};

static struct along along(const struct tc_op *op, unsigned d)
{
	unsigned n;

	return (struct along){
		.in = tc_in(op, 0)->type->dim[d],
		.out = op->results[0].type->dim[d],
		.window = tc_attr_ints(op, "window_dimensions", &n)[d],
		.stride = tc_attr_ints(op, "window_strides", &n)[d],
		.dilation = tc_attr_ints(op, "window_dilations", &n)[d],
		.low = tc_attr_ints(op, "padding", &n)[2 * d],
	};
}

/* The first window whose element k is not before `place` of the array. */
static int64_t first_at(const struct along *a, int64_t k, int64_t place)
{
	int64_t far = place + a->low - k * a->dilation;

	return far <= 0 ? 0 : (far - 1) / a->stride + 1;
}

unsigned tc_window_stretches(const struct tc_op *op, unsigned d, struct tc_stretch *out)
{
	const struct along a = along(op, d);
	unsigned n = 0;

	for (int64_t i = 0; i < a.out; i += out[n++].count) {
		int64_t next = a.out;

		if (n == TC_MOST_STRETCHES)
			return 0;
		out[n] = (struct tc_stretch){ .first = i };
		for (int64_t k = 0; k < a.window; k++) {
			int64_t from = first_at(&a, k, 0), to = first_at(&a, k, a.in);

			if (from <= i && i < to && !out[n].taps++)
				out[n].tap = k;
			next = from > i && from < next ? from : next;
			next = to > i && to < next ? to : next;
		}
		out[n].count = next - i;
	}
	return n;
}

bool tc_window_in_parts(const struct tc_op *op)
{
	const struct tc_type *in = tc_in(op, 0)->type;
	struct tc_stretch list[TC_MOST_STRETCHES];
	int64_t boxes = 1, taps = 1;
	bool has_padding = false;
	unsigned n;
	const int64_t *base = tc_attr_ints(op, "base_dilations", &n);
	const int64_t *padding = tc_attr_ints(op, "padding", &n);

	if (op->n_results != 1 || in->count < LEAST_ELEMENTS || !op->results[0].type->count ||
	    !elem_computes(in->elem) || in->rank > TC_MOST_PART_RANK)
		return false;
	for (unsigned d = 0; d < in->rank; d++) {
		int64_t window = along(op, d).window;

		if (base[d] != 1 || window > TC_MOST_PART_TAPS ||
		    taps * window > TC_MOST_PART_TAPS)
			return false;
		taps *= window;
		has_padding |= padding[2 * d] > 0 || padding[2 * d + 1] > 0;
		n = tc_window_stretches(op, d, list);
		if (!n || boxes * n > MOST_BOXES)
			return false;
		boxes *= n;
	}
	return has_padding;
}
