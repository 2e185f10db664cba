/* SPDX-License-Identifier: Apache-2.0 */
/* Windows over padding, an instruction for each box of windows that have the same elements
 * within the array (opt/taps.c): each element is an input with strides. */
#include <stddef.h>
#include <string.h>

#include "runtime/compiler/back/emit.h"
#include "runtime/compiler/opt/fuse.h"

struct parts {
	const struct tc_op *op;
	struct home from, to;
	const int64_t *stride, *dilation, *padding;
	struct tc_stretch stretch[ISA_MAX_RANK][TC_MOST_STRETCHES];
	unsigned n[ISA_MAX_RANK], at[ISA_MAX_RANK];	/* of each dim; those of this box */
	unsigned rank;
};

static struct isa_operand with_strides(const struct parts *p, const struct home *h)
{
	struct isa_operand o = tc_operand(h, p->op->results[0].type->elem);

	memcpy(o.stride, h->stride, p->rank * sizeof(*o.stride));
	return o;
}

/* Where the windows of this box have one of its elements. */
static struct isa_operand tap(const struct parts *p, int64_t number)
{
	struct home h = p->from;

	for (unsigned d = p->rank; d-- > 0;) {
		const struct tc_stretch *s = &p->stretch[d][p->at[d]];
		int64_t k = s->tap + number % s->taps;

		number /= s->taps;
		h.offset += (s->first * p->stride[d] + k * p->dilation[d] - p->padding[2 * d]) *
			    h.stride[d];
		h.stride[d] *= s->count > 1 ? p->stride[d] : 0;
	}
	return with_strides(p, &h);
}

static struct isa_operand result(const struct parts *p)
{
	struct home h = p->to;

	for (unsigned d = 0; d < p->rank; d++) {
		h.offset += p->stretch[d][p->at[d]].first * h.stride[d];
		h.stride[d] = p->stretch[d][p->at[d]].count > 1 ? h.stride[d] : 0;
	}
	return with_strides(p, &h);
}

static void put_part(struct emit *e, const struct parts *p)
{
	struct body *b = arena_alloc(&e->c->arena, sizeof(*b));
	const struct tc_block *region = p->op->regions[0].block;
	unsigned elem = p->op->results[0].type->elem;
	int64_t dim[ISA_MAX_RANK], taps = 1, points = 1;
	uint8_t so_far;

	if (!b)
		tc_fail(e->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	for (unsigned d = 0; d < p->rank; d++) {
		dim[d] = p->stretch[d][p->at[d]].count;
		points *= dim[d];
		taps *= p->stretch[d][p->at[d]].taps;
	}
	b->e = e;
	for (; b->n_in < taps; b->n_in++) {
		b->in[b->n_in] = tap(p, b->n_in);
		b->elems[b->n_in] = (uint8_t)elem;
	}
	so_far = tc_body_imm(b, elem, tc_splat_element(tc_in(p->op, 1)));
	for (unsigned k = 0; k < taps; k++) {
		b->n_known = 0;
		tc_body_know(b, region->args[0], so_far);
		tc_body_know(b, region->args[1], (uint8_t)k);
		tc_body_region(b, region, (double)points);
		so_far = (uint8_t)tc_body_find(b, tc_in(region->last, 0));
	}
	b->n_out = 1;
	b->out[0] = result(p);
	b->out[0].value = so_far;
	e->cost_ns += (double)(points * taps) * 0.06;
	tc_put_body(e, ISA_VEC, sizeof(struct isa_tensor), offsetof(struct isa_tensor, body), b,
		    p->rank, dim);
}

void tc_emit_window_parts(struct emit *e, const struct tc_op *op)
{
	struct parts *p = arena_alloc(&e->c->arena, sizeof(*p));
	unsigned n, d;

	if (!p)
		tc_fail(e->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	p->op = op;
	p->rank = op->results[0].type->rank;
	p->stride = tc_attr_ints(op, "window_strides", &n);
	p->dilation = tc_attr_ints(op, "window_dilations", &n);
	p->padding = tc_attr_ints(op, "padding", &n);
	p->from = *tc_home(e, tc_in(op, 0));
	p->to = *tc_place(e, tc_out(op, 0));
	for (d = 0; d < p->rank; d++)
		p->n[d] = tc_window_stretches(op, d, p->stretch[d]);
	tc_count_arrays(e, op);
	do {
		put_part(e, p);
		for (d = p->rank; d-- > 0 && ++p->at[d] == p->n[d];)
			p->at[d] = 0;
	} while (d < p->rank);
}
