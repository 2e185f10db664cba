/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two arrays whose elements take turns, written as a sum: each is padded between its elements, and
 * at every place one of the two has what it was padded with. Associative scans are made of that,
 * at every level. Each array by itself with what the other is padded with is the same, bit for
 * bit, and half the work; joined along a dim of their own the two are born within the whole
 * (back/join.c), and no padded array is written.
 */
#include <string.h>

#include "hal/hw/isa.h"
#include "runtime/compiler/opt/build.h"
#include "runtime/compiler/opt/simpler.h"

/* An array of which each element is at every second place along one dim of a padded one. */
struct half {
	const struct tc_op *pad;
	unsigned dim;
	int64_t first;		/* 0 or 1: the place of the first one */
};

static bool is_half(const struct tc_value *v, const struct tc_op *user, struct half *h)
{
	const struct tc_type *from, *to = v->type;
	unsigned n_dims = 0;

	if (!v->def || v->def->op != TC_PAD || !tc_is_used_once(v) ||
	    v->def->block != user->block)
		return false;
	h->pad = v->def;
	from = tc_in(h->pad, 0)->type;
	for (unsigned d = 0; d < to->rank; d++) {
		if (from->dim[d] == to->dim[d] && !tc_attr_nth(h->pad, "edge_padding_low", d))
			continue;
		n_dims++;
		h->dim = d;
	}
	if (n_dims != 1 || !from->count)
		return false;
	h->first = tc_attr_nth(h->pad, "edge_padding_low", h->dim);
	return (h->first == 0 || h->first == 1) &&
	       (from->dim[h->dim] == 1 || tc_attr_nth(h->pad, "interior_padding", h->dim) == 1) &&
	       from->dim[h->dim] == (to->dim[h->dim] + !h->first) / 2;
}

/* What op makes of elements from .. from + size along the dim of its operand k, and of what the
 * other operand is padded with. */
static struct tc_value *make_part(const struct tc_build *b, const struct tc_op *op,
				  const struct half *half, unsigned k, int64_t from, int64_t size)
{
	struct tc_value *in[2];

	in[k] = tc_in(half[k].pad, 0);
	if (size < in[k]->type->dim[half[k].dim])
		in[k] = tc_build_part(b, in[k], half[k].dim, from, size);
	in[!k] = tc_build_broadcast(b, tc_in(half[!k].pad, 1), in[k]->type, NULL);
	return tc_build2(b, op->op, in[0], in[1]);
}

bool tc_interleave(struct tc_ctx *c, struct tc_op *op)
{
	const struct tc_type *t = op->results[0].type;
	struct tc_value *part[2], *whole[2];
	struct half half[2];
	struct tc_build b;
	int64_t dim[TC_MAX_RANK], n;
	unsigned d, even;

	if (!tc_has_trait(op, 'e') || op->n_operands != 2 || op->op == TC_COMPARE ||
	    t->rank >= ISA_MAX_RANK || tc_in(op, 0)->type != t ||
	    tc_in(op, 1)->type != t || !is_half(tc_in(op, 0), op, &half[0]) ||
	    !is_half(tc_in(op, 1), op, &half[1]) ||
	    half[0].dim != half[1].dim || half[0].first == half[1].first)
		return false;
	b = tc_build_at(c, op);
	d = half[0].dim;
	even = half[0].first ? 1 : 0;
	n = t->dim[d] / 2;
	memcpy(dim, t->dim, d * sizeof(*dim));
	memcpy(dim + d + 1, t->dim + d, (t->rank - d) * sizeof(*dim));
	dim[d] = n;
	dim[d + 1] = 1;
	/* Both before any view of one: a fusion takes them together then. */
	for (unsigned i = 0; i < 2; i++)
		part[i] = make_part(&b, op, half, i ? !even : even, 0, n);
	for (unsigned i = 0; i < 2; i++)
		part[i] = tc_build_reshape(&b, part[i], t->rank + 1u, dim);
	whole[0] = tc_build_join(&b, 2, part, d + 1);
	memcpy(dim, t->dim, t->rank * sizeof(*dim));
	dim[d] = 2 * n;
	whole[0] = tc_build_reshape(&b, whole[0], t->rank, dim);
	if (t->dim[d] % 2) {
		whole[1] = make_part(&b, op, half, even, n, 1);
		whole[0] = tc_build_join(&b, 2, whole, d);
	}
	tc_replace_uses(tc_out(op, 0), whole[0]);
	tc_erase(op);
	return true;
}
