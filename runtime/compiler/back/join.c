/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results of one instruction that are joined afterwards are born where they end.
 *
 * An instruction writes its outputs at any strides. So if all operands of a concatenation are
 * results of one op, in whatever shape, which nobody else looks at, the whole is given its
 * place when that op is emitted, and the parts are views of it: nothing is left for the
 * concatenation to do. This holds of neighbours and of what is interleaved (stacked along a minor
 * dim) alike. The parts share the whole's content in the evidence, which is written by one op.
 *
 * Of parts that several ops make, those of products, convolutions, gathers and fusions, and large
 * ones that are padded, are born there, too, each when its op is emitted, if they follow one
 * another in memory and that takes no more of it (may_begin): then each is a content of its own
 * until the concatenation, which copies the others and is what all of them are.
 */
#include <string.h>

#include "runtime/compiler/back/emit.h"
#include "runtime/compiler/opt/fuse.h"

#define MOST_PARTS 256
#define MOST_BETWEEN 1000	/* ops between a part and what is put together */
#define SMALL_WHOLE 4096	/* bytes */

/* The concatenation of results of `op` alone that v, one of them, is part of, or NULL. */
static const struct tc_op *join_of(const struct tc_op *op, const struct tc_value *v)
{
	const struct tc_op *join = tc_join_of(v);

	for (unsigned k = 0; join && k < join->n_operands; k++) {
		const struct tc_value *part = tc_part_of(join, k);

		if (!part || part->def != op)
			return NULL;
	}
	return join;
}

/* The strides of a view's operand, if they give the view these. */
static bool strides_before(const struct tc_op *view, const int64_t *stride, int64_t *out)
{
	const struct tc_type *from = tc_in(view, 0)->type, *to = view->results[0].type;
	const int64_t *dims;
	unsigned n;

	if (view->op == TC_RESHAPE)
		return tc_reshape_strides(to, stride, from, out);
	dims = tc_attr_ints(view, view->op == TC_TRANSPOSE ? "permutation" :
			    "broadcast_dimensions", &n);
	for (unsigned i = 0; i < n; i++)
		if (view->op == TC_TRANSPOSE)
			out[dims[i]] = stride[i];
		else
			out[i] = stride[dims[i]];
	return true;
}

/* The strides of a result that has these where it is operand k of `join`. */
static bool strides_of_part(const struct tc_op *op, const struct tc_op *join, unsigned k,
			    const int64_t *stride, int64_t *out)
{
	int64_t before[TC_MAX_RANK] = { 0 };

	memcpy(out, stride, TC_MAX_RANK * sizeof(*out));
	for (const struct tc_value *v = tc_in(join, k); v->def != op; v = tc_in(v->def, 0)) {
		if (!strides_before(v->def, out, before))
			return false;
		memcpy(out, before, sizeof(before));
	}
	return true;
}

/* Gives the whole and its parts their homes. Which strides parts have does not depend on where
 * the whole lies. */
static void join(struct emit *e, const struct tc_op *op, const struct tc_op *join)
{
	const struct tc_value *whole = tc_out(join, 0);
	int64_t d = tc_attr_int(join, "dimension", 0), dense[TC_MAX_RANK] = { 0 };
	int64_t stride[TC_MAX_RANK];
	struct home at;

	tc_dense_strides(whole->type, dense);
	for (unsigned k = 0; k < join->n_operands; k++)
		if (!strides_of_part(op, join, k, dense, stride))
			return;
	at = *tc_place_from(e, whole, op);
	e->whole[e->n_whole++] = whole;
	for (unsigned k = 0; k < join->n_operands; k++) {
		struct home part = at;

		strides_of_part(op, join, k, dense, part.stride);
		tc_view(e, tc_part_of(join, k), &part);
		at.offset += tc_in(join, k)->type->dim[d] * dense[d];
	}
}

/* Whether the parts of a concatenation follow one another, and are few enough to look for one. */
static bool is_in_blocks(const struct tc_op *join)
{
	const struct tc_type *t = join->results[0].type;

	for (int64_t d = tc_attr_int(join, "dimension", 0); d-- > 0;)
		if (t->dim[d] > 1)
			return false;
	return join->n_operands <= MOST_PARTS;
}

/* Bytes that an op's results take which are not parts of `join`. */
static double bytes_beside(const struct tc_op *op, const struct tc_op *join)
{
	double bytes = 0;

	switch (op->op) {
	case TC_CONSTANT: case TC_RESHAPE: case TC_TRANSPOSE: case TC_SLICE: case TC_REVERSE:
	case TC_BROADCAST_IN_DIM: case TC_BITCAST_CONVERT:
		return 0;
	default:
		for (unsigned i = 0; i < op->n_results; i++)
			if (tc_join_of(tc_out(op, i)) != join)
				bytes += (double)op->results[i].type->bytes;
		return bytes;
	}
}

/* Bytes of the parts that op and later ones may write in their places. */
static double bytes_to_come(const struct emit *e, const struct tc_op *op, const struct tc_op *join)
{
	uint32_t from = e->spans[op->id].start;
	double bytes = 0;

	for (unsigned k = 0; k < join->n_operands; k++) {
		const struct tc_value *v = tc_part_of(join, k);

		if (v && tc_is_for_parts(v->def) && e->spans[v->def->id].start >= from)
			bytes += (double)v->type->bytes;
	}
	return bytes;
}

/*
 * Whether the whole may have its memory from op on: where it is a result's, which is there anyway,
 * or where less is made meanwhile than what need not be copied. Else many wholes, each begun by a
 * small part long before, would take memory at once that they took one after the other.
 */
static bool may_begin(struct emit *e, const struct tc_op *op, const struct tc_op *join)
{
	const struct tc_value *whole = tc_out(join, 0);
	double most, bytes = 0;
	unsigned n = 0;

	if (e->wishes[whole->id] && tc_may_place_from(e, whole, op))
		return true;
	most = bytes_to_come(e, op, join);
	/* A copy of little takes as long as that of a page. */
	if (whole->type->bytes <= SMALL_WHOLE && most < SMALL_WHOLE)
		most = SMALL_WHOLE;
	while ((op = op->next) != join && n++ < MOST_BETWEEN && bytes <= most)
		bytes += bytes_beside(op, join);
	return op == join && bytes <= most;
}

static void place_part(struct emit *e, const struct tc_value *v, const struct tc_op *join)
{
	const struct tc_value *whole = tc_out(join, 0);
	int64_t d = tc_attr_int(join, "dimension", 0), dense[TC_MAX_RANK] = { 0 }, rows = 0;
	int64_t stride[TC_MAX_RANK];
	struct home part;
	unsigned k = 0;

	while (tc_part_of(join, k) != v)
		rows += tc_in(join, k++)->type->dim[d];
	tc_dense_strides(whole->type, dense);
	if (!strides_of_part(v->def, join, k, dense, stride))
		return;
	if (!e->homes[whole->id].buf) {
		if (!may_begin(e, v->def, join))
			return;
		tc_place_from(e, whole, v->def);
	}
	part = e->homes[whole->id];
	part.offset += rows * dense[d];
	memcpy(part.stride, stride, sizeof(stride));
	tc_place_at(e, v, &part);
}

void tc_place_parts(struct emit *e, const struct tc_op *op)
{
	if (!tc_is_for_parts(op))
		return;
	for (unsigned i = 0; i < op->n_results; i++) {
		const struct tc_value *v = tc_out(op, i);
		const struct tc_op *join = tc_join_of(v);

		if (join && v->type->count && is_in_blocks(join) && !join_of(op, v))
			place_part(e, v, join);
	}
}

void tc_join_results(struct emit *e, const struct tc_op *op)
{
	for (unsigned i = 0; i < op->n_results; i++) {
		const struct tc_op *to = e->homes[op->results[i].id].buf ? NULL :
			join_of(op, tc_out(op, i));

		if (to && to->results[0].type->count && e->n_whole < ISA_MAX_OUT)
			join(e, op, to);
	}
}
