/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reduce_window over an input with holes (base_dilations, or a pad between elements), as the
 * gradient of a sum over windows next to each other is. Where a window is as wide as the holes
 * are apart, or a multiple of that, and initial values change nothing, `every` windows in turn
 * have the same elements: one of them is made, over the input without holes, and repeated.
 *
 * Window o covers the padded places o .. o + size - 1, and input i is at low + i * every. So
 * window o has from input ceil((o - low) / every) on size / every of them: for q * every <= o <
 * (q + 1) * every the same, if low is one less than a multiple of `every`.
 *
 * What is not done: strides and dilated windows in the same dim, and dims with so little behind
 * them that repeating costs more than the holes.
 */
#include <string.h>

#include "runtime/compiler/lower/decompose.h"
#include "runtime/compiler/opt/fuse.h"

enum {
	LEAST_RUN = 16,		/* elements that are repeated together */
	MOST_PADDING = 1 << 30,
};

static bool is_small(int64_t padding)
{
	return padding > -MOST_PADDING && padding < MOST_PADDING;
}

/* Whether both pads of an edge are one: what the inner one takes away does not come back. */
static bool is_one_edge(const struct tc_op *pad, const char *edge, const struct tc_op *op,
			unsigned d, unsigned side)
{
	int64_t inner = tc_attr_nth(pad, edge, d);

	return is_small(inner) && (inner >= 0 || tc_attr_nth(op, "padding", 2 * d + side) <= 0);
}

/* The pad that op's input is, if it pads with op's initial value and op has no holes. */
static const struct tc_op *pad_of(const struct tc_op *op)
{
	const struct tc_type *t = tc_in(op, 0)->type;
	const struct tc_op *pad = tc_in(op, 0)->def;
	const void *by, *init = tc_splat_element(tc_in(op, 1));

	if (!pad || pad->op != TC_PAD)
		return NULL;
	by = tc_splat_element(tc_in(pad, 1));
	for (unsigned d = 0; d < t->rank; d++)
		if (tc_attr_nth(op, "base_dilations", d) != 1 ||
		    !is_small(tc_attr_nth(pad, "interior_padding", d)) ||
		    !is_one_edge(pad, "edge_padding_low", op, d, 0) ||
		    !is_one_edge(pad, "edge_padding_high", op, d, 1))
			return NULL;
	return by && init && !memcmp(by, init, elem_bytes(t->elem)) ? pad : NULL;
}

/* op over what the pad pads. */
static void take_in(struct tc_ctx *c, struct tc_op *op, const struct tc_op *pad)
{
	static const char *const edges[] = { "edge_padding_low", "edge_padding_high" };

	for (unsigned d = 0; d < tc_in(op, 0)->type->rank; d++) {
		tc_set_nth(c, op, "base_dilations", d, tc_attr_nth(pad, "interior_padding", d) + 1);
		for (unsigned k = 0; k < 2; k++)
			tc_set_nth(c, op, "padding", 2 * d + k,
				   tc_attr_nth(op, "padding", 2 * d + k) +
				   tc_attr_nth(pad, edges[k], d));
	}
	tc_set_operand(op, 0, tc_in(pad, 0));
}

/* How many windows in turn of dim d have the same elements. */
static int64_t count_alike(const struct tc_op *op, unsigned d)
{
	const struct tc_type *t = tc_out(op, 0)->type;
	int64_t every = tc_attr_nth(op, "base_dilations", d), run = 1;
	int64_t low = tc_attr_nth(op, "padding", 2 * d);

	for (unsigned k = d + 1; k < t->rank; k++)
		run *= t->dim[k];
	return every > 1 && run >= LEAST_RUN && t->dim[d] % every == 0 &&
	       (low + 1) % every == 0 && tc_attr_nth(op, "window_dimensions", d) % every == 0 &&
	       tc_attr_nth(op, "window_strides", d) == 1 &&
	       tc_attr_nth(op, "window_dilations", d) == 1 ? every : 1;
}

/* One for each `every` windows along d. */
static void make_one(struct tc_ctx *c, struct tc_op *op, unsigned d, int64_t every)
{
	const struct tc_type *t = tc_out(op, 0)->type;
	int64_t dim[TC_MAX_RANK], first = -((tc_attr_nth(op, "padding", 2 * d) + 1) / every) + 1;
	int64_t size = tc_attr_nth(op, "window_dimensions", d) / every;

	memcpy(dim, t->dim, t->rank * sizeof(*dim));
	dim[d] /= every;
	tc_out(op, 0)->type = tc_tensor(c, (enum elem)t->elem, t->rank, dim);
	tc_set_nth(c, op, "base_dilations", d, 1);
	tc_set_nth(c, op, "window_dimensions", d, size);
	tc_set_nth(c, op, "padding", 2 * d, -first);
	tc_set_nth(c, op, "padding", 2 * d + 1,
		   dim[d] - tc_in(op, 0)->type->dim[d] + first + size - 1);
}

/* Each element of x times[d] times along dim d. */
static struct tc_value *repeat(const struct tc_build *b, struct tc_value *x,
			       const int64_t *times, const struct tc_type *type)
{
	int64_t dim[TC_MAX_RANK], to[TC_MAX_RANK];
	unsigned n = 0;

	for (unsigned d = 0; d < type->rank; d++) {
		to[d] = n;
		dim[n++] = x->type->dim[d];
		if (times[d] > 1)
			dim[n++] = times[d];
	}
	x = tc_build_broadcast(b, x, tc_tensor(b->c, (enum elem)type->elem, n, dim), to);
	return tc_build_reshape(b, x, type->rank, type->dim);
}

struct tc_op *tc_close_holes(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	const struct tc_type *t = tc_out(op, 0)->type;
	const struct tc_op *pad;
	int64_t times[TC_MAX_RANK];
	struct tc_op *one;
	unsigned n = 0;

	tc_settle_initial(&b, op);
	if (!tc_starts_with_identity(op) || !t->count || !tc_in(op, 0)->type->count)
		return op;
	pad = pad_of(op);
	one = tc_build_place(&b, tc_clone(c, op, tc_map_new(c)));
	if (pad)
		take_in(c, one, pad);
	for (unsigned d = 0; d < t->rank; d++) {
		times[d] = t->rank + n < TC_MAX_RANK ? count_alike(one, d) : 1;
		n += times[d] > 1;
	}
	if (!n) {
		tc_erase(one);
		return op;
	}
	for (unsigned d = 0; d < t->rank; d++)
		if (times[d] > 1)
			make_one(c, one, d, times[d]);
	tc_replace(op, repeat(&b, tc_out(one, 0), times, t));
	return one;
}
