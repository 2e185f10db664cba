/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ops of the reference evaluator that move elements. Each walks the positions of the
 * side that is written once (the result, but for pad: the operand) and says which
 * element belongs there. ir_verify.c has checked that the shapes fit.
 */
#include <string.h>

#include "runtime/compiler/eval/eval.h"

static void move(struct eval_array *to, int64_t i, struct eval_array *from, int64_t k)
{
	memcpy(tc_eval_at(to, i), tc_eval_at(from, k), elem_bytes(to->type->elem));
}

void tc_eval_iota(struct eval *e, const struct tc_op *op)
{
	struct eval_array *out = tc_eval_out(e, op, 0);
	const struct tc_type *t = out->type;
	int64_t d = tc_attr_int(op, "iota_dimension", 0), idx[TC_MAX_RANK] = { 0 };

	for (int64_t i = 0; i < t->count; i++) {
		struct num x = { .i = (uint64_t)idx[d] };

		tc_num_store(t->elem, tc_eval_at(out, i),
			     tc_num_convert(ELEM_S64, t->elem, x));
		tc_eval_step(t->rank, t->dim, idx);
	}
}

void tc_eval_broadcast(struct eval *e, const struct tc_op *op)
{
	struct eval_array *in = tc_eval_in(e, op, 0), *out = tc_eval_out(e, op, 0);
	const struct tc_type *t = out->type;
	int64_t idx[TC_MAX_RANK] = { 0 }, from[TC_MAX_RANK];
	unsigned n;
	const int64_t *to = tc_attr_ints(op, "broadcast_dimensions", &n);

	for (int64_t i = 0; i < t->count; i++) {
		for (unsigned d = 0; d < n; d++)
			from[d] = in->type->dim[d] == 1 ? 0 : idx[to[d]];
		move(out, i, in, tc_eval_linear(in->type, from));
		tc_eval_step(t->rank, t->dim, idx);
	}
}

void tc_eval_concatenate(struct eval *e, const struct tc_op *op)
{
	struct eval_array *out = tc_eval_out(e, op, 0);
	const struct tc_type *t = out->type;
	int64_t d = tc_attr_int(op, "dimension", 0), first = 0;

	for (unsigned j = 0; j < op->n_operands; j++) {
		struct eval_array *in = tc_eval_in(e, op, j);
		int64_t idx[TC_MAX_RANK] = { 0 };

		for (int64_t i = 0; i < in->type->count; i++) {
			idx[d] += first;
			move(out, tc_eval_linear(t, idx), in, i);
			idx[d] -= first;
			tc_eval_step(t->rank, in->type->dim, idx);
		}
		first += in->type->dim[d];
	}
}

void tc_eval_pad(struct eval *e, const struct tc_op *op)
{
	struct eval_array *in = tc_eval_in(e, op, 0), *value = tc_eval_in(e, op, 1);
	struct eval_array *out = tc_eval_out(e, op, 0);
	const struct tc_type *t = in->type;
	int64_t idx[TC_MAX_RANK] = { 0 }, to[TC_MAX_RANK];
	unsigned n;
	const int64_t *low = tc_attr_ints(op, "edge_padding_low", &n);
	const int64_t *inner = tc_attr_ints(op, "interior_padding", &n);

	for (int64_t i = 0; i < out->type->count; i++)
		move(out, i, value, 0);
	for (int64_t i = 0; i < t->count; i++) {
		bool is_inside = true;

		for (unsigned d = 0; d < t->rank; d++) {
			__int128 at = low[d] + (__int128)idx[d] * (inner[d] + 1);

			is_inside &= at >= 0 && at < out->type->dim[d];
			to[d] = (int64_t)at;
		}
		if (is_inside)
			move(out, tc_eval_linear(out->type, to), in, i);
		tc_eval_step(t->rank, t->dim, idx);
	}
}

void tc_eval_reshape(struct eval *e, const struct tc_op *op)
{
	struct eval_array *in = tc_eval_in(e, op, 0), *out = tc_eval_out(e, op, 0);

	memcpy(out->data, in->data, out->bytes);
}

/* Bits of an element in memory, of which the lowest count. */
static unsigned bits_of(unsigned elem)
{
	return elem == ELEM_PRED ? 8 : elem_bits(elem);
}

static bool bit_at(const struct eval_array *a, int64_t i, unsigned bit)
{
	return a->data[i * elem_bytes(a->type->elem) + bit / 8] >> bit % 8 & 1;
}

void tc_eval_bitcast(struct eval *e, const struct tc_op *op)
{
	struct eval_array *in = tc_eval_in(e, op, 0), *out = tc_eval_out(e, op, 0);
	unsigned a = bits_of(in->type->elem), b = bits_of(out->type->elem);
	unsigned bytes = elem_bytes(out->type->elem);

	for (int64_t i = 0; i < out->type->count; i++) {
		uint8_t *to = &out->data[i * bytes];

		for (unsigned k = 0; k < b; k++) {
			int64_t at = i * b + k;

			to[k / 8] |= (uint8_t)(bit_at(in, at / a, (unsigned)(at % a)) << k % 8);
		}
		/* an integer is kept with its sign spread over the byte */
		if (b < 8 && elem_class(out->type->elem) != ELEM_CLASS_FLOAT)
			tc_num_store(out->type->elem, to, (struct num){ .i = *to });
	}
}

void tc_eval_reverse(struct eval *e, const struct tc_op *op)
{
	struct eval_array *in = tc_eval_in(e, op, 0), *out = tc_eval_out(e, op, 0);
	const struct tc_type *t = out->type;
	int64_t idx[TC_MAX_RANK] = { 0 }, from[TC_MAX_RANK];
	unsigned n;
	const int64_t *dims = tc_attr_ints(op, "dimensions", &n);

	for (int64_t i = 0; i < t->count; i++) {
		memcpy(from, idx, sizeof(from));
		for (unsigned d = 0; d < n; d++)
			from[dims[d]] = t->dim[dims[d]] - 1 - idx[dims[d]];
		move(out, i, in, tc_eval_linear(t, from));
		tc_eval_step(t->rank, t->dim, idx);
	}
}

void tc_eval_slice(struct eval *e, const struct tc_op *op)
{
	struct eval_array *in = tc_eval_in(e, op, 0), *out = tc_eval_out(e, op, 0);
	const struct tc_type *t = out->type;
	int64_t idx[TC_MAX_RANK] = { 0 }, from[TC_MAX_RANK];
	unsigned n;
	const int64_t *start = tc_attr_ints(op, "start_indices", &n);
	const int64_t *step = tc_attr_ints(op, "strides", &n);

	for (int64_t i = 0; i < t->count; i++) {
		for (unsigned d = 0; d < n; d++)
			from[d] = start[d] + idx[d] * step[d];
		move(out, i, in, tc_eval_linear(in->type, from));
		tc_eval_step(t->rank, t->dim, idx);
	}
}

void tc_eval_transpose(struct eval *e, const struct tc_op *op)
{
	struct eval_array *in = tc_eval_in(e, op, 0), *out = tc_eval_out(e, op, 0);
	const struct tc_type *t = out->type;
	int64_t idx[TC_MAX_RANK] = { 0 }, from[TC_MAX_RANK];
	unsigned n;
	const int64_t *permutation = tc_attr_ints(op, "permutation", &n);

	for (int64_t i = 0; i < t->count; i++) {
		for (unsigned d = 0; d < n; d++)
			from[permutation[d]] = idx[d];
		move(out, i, in, tc_eval_linear(in->type, from));
		tc_eval_step(t->rank, t->dim, idx);
	}
}

/* Where the part begins: the operands from `first` on, moved so that it fits. */
static void find_start(struct eval *e, const struct tc_op *op, unsigned first,
		       const struct tc_type *whole, const struct tc_type *part,
		       int64_t *start)
{
	for (unsigned d = 0; d < whole->rank; d++) {
		const struct eval_array *a = tc_eval_in(e, op, first + d);
		int64_t most = whole->dim[d] - part->dim[d];

		start[d] = tc_num_index(a->type->elem, a->data);
		start[d] = start[d] < 0 ? 0 : start[d] > most ? most : start[d];
	}
}

void tc_eval_dynamic_slice(struct eval *e, const struct tc_op *op)
{
	struct eval_array *in = tc_eval_in(e, op, 0), *out = tc_eval_out(e, op, 0);
	const struct tc_type *t = out->type;
	int64_t idx[TC_MAX_RANK] = { 0 }, from[TC_MAX_RANK], start[TC_MAX_RANK];

	find_start(e, op, 1, in->type, t, start);
	for (int64_t i = 0; i < t->count; i++) {
		for (unsigned d = 0; d < t->rank; d++)
			from[d] = start[d] + idx[d];
		move(out, i, in, tc_eval_linear(in->type, from));
		tc_eval_step(t->rank, t->dim, idx);
	}
}

void tc_eval_dynamic_update(struct eval *e, const struct tc_op *op)
{
	struct eval_array *in = tc_eval_in(e, op, 0), *part = tc_eval_in(e, op, 1);
	struct eval_array *out = tc_eval_out(e, op, 0);
	const struct tc_type *t = part->type;
	int64_t idx[TC_MAX_RANK] = { 0 }, to[TC_MAX_RANK], start[TC_MAX_RANK];

	find_start(e, op, 2, in->type, t, start);
	memcpy(out->data, in->data, out->bytes);
	for (int64_t i = 0; i < t->count; i++) {
		for (unsigned d = 0; d < t->rank; d++)
			to[d] = start[d] + idx[d];
		move(out, tc_eval_linear(out->type, to), part, i);
		tc_eval_step(t->rank, t->dim, idx);
	}
}
