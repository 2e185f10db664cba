/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ops that move elements. Most move none: reshape, transpose, slice, reverse and
 * broadcast give a view of their operand's buffer where strides can say it.
 */
#include <string.h>

#include "runtime/compiler/back/link.h"

bool tc_emit_is_data(unsigned op)
{
	switch (op) {
	case TC_RESHAPE: case TC_TRANSPOSE: case TC_SLICE: case TC_REVERSE:
	case TC_BROADCAST_IN_DIM: case TC_BITCAST_CONVERT: case TC_CONCATENATE: case TC_PAD:
	case TC_COPY: case TC_IOTA: case TC_DYNAMIC_SLICE: case TC_DYNAMIC_UPDATE_SLICE:
	case TC_GET_DIMENSION_SIZE:
		return true;
	default:
		return false;
	}
}

static void emit_reshape(struct emit *e, const struct tc_op *op)
{
	const struct tc_value *v = tc_out(op, 0), *in = tc_in(op, 0);
	const struct home *from = tc_home_to_view(e, in);
	struct home h = *from, dense;

	if (tc_reshape_strides(in->type, from->stride, v->type, h.stride)) {
		tc_view(e, v, &h);
		return;
	}
	/* Written densely, the old shape is the new one. */
	h = *tc_home(e, in);
	dense = *tc_place(e, v);
	tc_dense_strides(in->type, dense.stride);
	tc_copy_value(e, in->type, &h, &dense);
}

static void emit_view(struct emit *e, const struct tc_op *op)
{
	const struct tc_value *v = tc_out(op, 0);
	const struct tc_type *t = tc_in(op, 0)->type;
	const struct home *from = tc_home(e, tc_in(op, 0));
	struct home h = *from;
	unsigned n;
	const int64_t *list, *strides;

	memset(h.stride, 0, sizeof(h.stride));
	switch (op->op) {
	case TC_TRANSPOSE:
		list = tc_attr_ints(op, "permutation", &n);
		for (unsigned i = 0; i < n; i++)
			h.stride[i] = from->stride[list[i]];
		break;
	case TC_SLICE:
		list = tc_attr_ints(op, "start_indices", &n);
		strides = tc_attr_ints(op, "strides", &n);
		for (unsigned i = 0; i < n; i++) {
			if (v->type->count)
				h.offset += list[i] * from->stride[i];
			/* One element is taken without a step, however long. */
			if (v->type->dim[i] > 1)
				h.stride[i] = from->stride[i] * strides[i];
		}
		break;
	case TC_REVERSE:
		list = tc_attr_ints(op, "dimensions", &n);
		memcpy(h.stride, from->stride, sizeof(h.stride));
		for (unsigned i = 0; i < n && t->count; i++) {
			h.offset += (t->dim[list[i]] - 1) * from->stride[list[i]];
			h.stride[list[i]] = -from->stride[list[i]];
		}
		break;
	default:	/* BROADCAST_IN_DIM */
		list = tc_attr_ints(op, "broadcast_dimensions", &n);
		for (unsigned i = 0; i < n; i++)
			h.stride[list[i]] = t->dim[i] == 1 ? 0 : from->stride[i];
		break;
	}
	tc_view(e, v, &h);
}

/* The bits stay; with another width a minor dim comes or goes. */
static void emit_bitcast(struct emit *e, const struct tc_op *op)
{
	const struct tc_value *v = tc_out(op, 0), *in = tc_in(op, 0);
	struct home h;

	if (elem_bits(in->type->elem) < 8 || elem_bits(v->type->elem) < 8) {
		if (elem_bits(in->type->elem) != elem_bits(v->type->elem))
			tc_refuse(e, "types of less than a byte keep their width");
		h = *tc_home(e, in);
	} else {
		h = tc_dense(e, in);
		/* A view may lie where an element of the new width must not. */
		if (h.offset % elem_bytes(v->type->elem)) {
			struct home to = tc_scratch(e, in->type);

			tc_copy_value(e, in->type, &h, &to);
			h = to;
		}
		tc_dense_strides(v->type, h.stride);
	}
	tc_view(e, v, &h);
}

static void emit_concatenate(struct emit *e, const struct tc_op *op)
{
	int64_t d = tc_attr_int(op, "dimension", 0);
	struct home to = *tc_place(e, tc_out(op, 0));

	for (unsigned i = 0; i < op->n_operands; i++) {
		const struct tc_type *t = tc_in(op, i)->type;
		const struct home *from = tc_home(e, tc_in(op, i));

		/* Born there (join.c), it stays. */
		if (tc_alias_homes(from, t, &to, t) != TC_EQUAL)
			tc_copy_value(e, t, from, &to);
		else
			e->was_there |= from->content != to.content;
		to.offset += t->dim[d] * to.stride[d];
	}
}

#define LEAST_FRAMED 16384	/* bytes: fewer are filled in one go and written twice, */
#define LEAST_STRETCH 256	/* and so are those between fewer of the frame */

/*
 * What a large array is padded with at its ends, without a part that it is written over: in slabs,
 * those of each dim between those of the ones before it. False: nothing is done, as where the frame
 * comes every few bytes.
 */
static bool fill_frame(struct emit *e, const struct tc_op *op, const struct home *to)
{
	const struct tc_type *t = tc_in(op, 0)->type, *out = op->results[0].type;
	int64_t dim[TC_MAX_RANK], stretch = elem_bytes(t->elem);
	struct home at = *to;

	if (t->bytes < LEAST_FRAMED)
		return false;
	for (unsigned d = t->rank; d-- > 0;) {
		int64_t low = tc_attr_nth(op, "edge_padding_low", d);
		int64_t high = tc_attr_nth(op, "edge_padding_high", d);

		stretch *= out->dim[d];
		if (low < 0 || high < 0 || tc_attr_nth(op, "interior_padding", d) ||
		    ((low || high) && stretch < LEAST_STRETCH))
			return false;
	}
	memcpy(dim, out->dim, out->rank * sizeof(*dim));
	for (unsigned d = 0; d < t->rank; d++) {
		int64_t low = tc_attr_nth(op, "edge_padding_low", d);
		int64_t high = tc_attr_nth(op, "edge_padding_high", d);
		struct home slab = at;

		for (unsigned end = 0; end < 2; end++) {
			dim[d] = end ? high : low;
			if (dim[d])
				tc_emit_fill(e, tc_tensor(e->c, (enum elem)t->elem, t->rank, dim),
					     &slab, tc_in(op, 1));
			slab.offset += (low + t->dim[d]) * slab.stride[d];
		}
		at.offset += low * at.stride[d];
		dim[d] = t->dim[d];
	}
	return true;
}

static void emit_pad(struct emit *e, const struct tc_op *op)
{
	const struct tc_type *t = tc_in(op, 0)->type, *out = op->results[0].type;
	unsigned n;
	const int64_t *low = tc_attr_ints(op, "edge_padding_low", &n);
	const int64_t *inner = tc_attr_ints(op, "interior_padding", &n);
	struct home to = *tc_place(e, tc_out(op, 0)), from = *tc_home(e, tc_in(op, 0));
	int64_t dim[TC_MAX_RANK];

	if (!fill_frame(e, op, &to))
		tc_emit_fill(e, out, &to, tc_in(op, 1));
	for (unsigned d = 0; d < n; d++) {
		int64_t step = inner[d] + 1;
		int64_t first = low[d] < 0 ? (-low[d] + step - 1) / step : 0;
		int64_t last = out->dim[d] > low[d] ? (out->dim[d] - 1 - low[d]) / step : -1;

		if (last > t->dim[d] - 1)
			last = t->dim[d] - 1;
		dim[d] = last - first + 1;
		if (dim[d] <= 0)
			return;
		from.offset += first * from.stride[d];
		to.offset += (low[d] + first * step) * to.stride[d];
		if (dim[d] > 1)
			to.stride[d] *= step;
	}
	tc_copy(e, n, dim, elem_bytes(t->elem), &from, &to);
}

/* What is the same along all dims but one is made once, where nobody wishes for all of it. */
static void emit_iota(struct emit *e, const struct tc_op *op)
{
	const struct tc_value *v = tc_out(op, 0);
	const struct tc_type *t = v->type;
	unsigned along = (unsigned)tc_attr_int(op, "iota_dimension", 0);
	const struct home *to = e->wishes[v->id] ? tc_place(e, v) : tc_place_line(e, v, along);
	struct body *b = arena_alloc(&e->c->arena, sizeof(*b));
	int64_t dim[ISA_MAX_RANK];

	if (!b)
		tc_fail(e->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	if (t->rank > ISA_MAX_RANK)
		tc_refuse_dims(e, "it has", t->rank);
	if (!t->count)
		return;
	b->e = e;
	b->n_out = 1;
	b->out[0] = tc_operand(to, t->elem);
	b->out[0].value = tc_body_iota(b, along, t->elem, 0, 0);
	for (unsigned d = 0; d < t->rank; d++) {
		dim[d] = to->stride[d] ? t->dim[d] : 1;
		b->out[0].stride[d] = dim[d] > 1 ? to->stride[d] : 0;
	}
	tc_put_body(e, ISA_VEC, sizeof(struct isa_tensor), offsetof(struct isa_tensor, body),
		    b, t->rank, dim);
}

#define LEAST_SLICE 1024	/* bytes: fewer are copied as quickly as found again */
#define SMALL_SLICE 16		/* so many of which are its array */
#define MOST_SHAPES 4		/* of one slice, behind each other, that are looked through */

/* Whether all who look at v, a slice, take any operand where it lies, in the same block. */
static bool is_read_alone(const struct tc_value *v, unsigned depth)
{
	for (const struct tc_use *u = v->uses; u; u = u->next) {
		if (u->user->block != v->def->block)
			return false;
		switch (u->user->op) {
		case TC_DOT_GENERAL: case TC_CONVOLUTION: case TC_FUSION: case TC_FFT:
			break;
		case TC_RESHAPE:
			if (depth < MOST_SHAPES && is_read_alone(tc_out(u->user, 0), depth + 1))
				break;
			return false;
		default:
			return false;
		}
	}
	return true;
}

/* Whether the content of `whole` stays until that position anyway: an argument's that no result
 * takes the memory of, or what is looked at then. */
static bool stays(const struct emit *e, const struct buffer *whole, uint32_t until)
{
	unsigned arg = whole->binding - BIND_FIRST_ARG;

	return until <= whole->last || (arg < e->n_args && e->arg_alias[arg] < 0);
}

/* Whether a fusion that looks at v, a slice, or another shape of it, looks at `whole` as well: what
 * it makes may take the place of that, if it does not read small parts of it at all points. */
static bool is_beside(const struct tc_value *v, const struct tc_value *whole, unsigned depth)
{
	for (const struct tc_use *u = v->uses; u; u = u->next) {
		const struct tc_op *op = u->user;

		if (op->op == TC_RESHAPE && depth < MOST_SHAPES &&
		    is_beside(tc_out(op, 0), whole, depth + 1))
			return true;
		for (unsigned k = 0; k < op->n_operands && op->op == TC_FUSION; k++)
			if (tc_in(op, k) == whole)
				return true;
	}
	return false;
}

/* Whether a slice may be read where it lies, side by side, by all who look at it: one start is
 * to be found for it, and the whole stays for so long. If it did not, who changes it later in
 * place would have to copy all of it. Other members may write what is shown to them. */
static bool may_stay(struct emit *e, const struct tc_op *op, const struct home *from)
{
	const struct tc_type *whole = tc_in(op, 0)->type;
	const struct tc_value *v = tc_out(op, 0);
	unsigned n_starts = 0;

	for (unsigned d = 0; d < whole->rank; d++)
		n_starts += whole->dim[d] != v->type->dim[d];
	if (v->type->bytes <= whole->bytes / SMALL_SLICE && is_beside(v, tc_in(op, 0), 0))
		return false;
	return v->type->bytes >= LEAST_SLICE && n_starts == 1 && !from->reg && !from->slice &&
	       !e->links->channels && !e->wishes[v->id] && tc_is_dense(from, v->type) &&
	       is_read_alone(v, 0) && stays(e, from->buf, tc_last_look(e, v));
}

static void emit_dynamic_slice(struct emit *e, const struct tc_op *op)
{
	const struct tc_value *in = tc_in(op, 0), *v = tc_out(op, 0);
	struct home from = *tc_home(e, in);
	const struct home *to;

	if (may_stay(e, op, &from)) {
		from.slice = op;
		tc_view(e, v, &from);
		return;
	}
	from.reg = tc_dynamic_offset(e, op, 1, in->type, v->type, &from);
	to = tc_place(e, v);
	tc_copy_value(e, v->type, &from, to);
}

static void emit_update(struct emit *e, const struct tc_op *op)
{
	const struct tc_value *in = tc_in(op, 0), *update = tc_in(op, 1), *v = tc_out(op, 0);
	struct home to, from;

	if (!tc_take_over(e, v, in, NULL, NULL, 0, &to)) {
		to = *tc_place(e, v);
		tc_copy_value(e, in->type, tc_home(e, in), &to);
	}
	from = tc_out_of_the_way(e, update, &to, &v->type, 1);
	to.reg = tc_dynamic_offset(e, op, 2, in->type, update->type, &to);
	tc_copy_value(e, update->type, &from, &to);
}

static void emit_number(struct emit *e, const struct tc_op *op)
{
	const struct home *to = tc_place(e, tc_out(op, 0));
	uint8_t r = tc_reg(e);
	int64_t value = tc_in(op, 0)->type->dim[tc_attr_int(op, "dimension", 0)];

	tc_put_scalar(e, (struct isa_scalar){ .rd = r, .imm = value }, ISA_LI);
	tc_put_scalar(e, (struct isa_scalar){ .rb = r, .elem = op->results[0].type->elem,
		.binding = to->buf->binding, .imm = to->offset }, ISA_ST);
}

void tc_emit_data(struct emit *e, const struct tc_op *op)
{
	switch (op->op) {
	case TC_RESHAPE: emit_reshape(e, op); break;
	case TC_BITCAST_CONVERT: emit_bitcast(e, op); break;
	case TC_CONCATENATE: emit_concatenate(e, op); break;
	case TC_PAD: emit_pad(e, op); break;
	case TC_IOTA: emit_iota(e, op); break;
	case TC_DYNAMIC_SLICE: emit_dynamic_slice(e, op); break;
	case TC_DYNAMIC_UPDATE_SLICE: emit_update(e, op); break;
	case TC_COPY: tc_view(e, tc_out(op, 0), tc_home(e, tc_in(op, 0))); break;
	case TC_GET_DIMENSION_SIZE: emit_number(e, op); break;
	default: emit_view(e, op); break;
	}
}
