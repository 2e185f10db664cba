/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ops that the device has no instruction for, as simpler ones.
 *
 * Requires: no calls. Ensures: no map, select_and_scatter, batch_norm_*, cholesky,
 * triangular_solve, and none of the custom calls of custom.c is left; each fft goes along one dim,
 * of a length that the instruction has; random bits come in words of 32 or 64; no convolution that
 * is worth it has holes in its input; elementwise work has no more dims than an instruction. Runs
 * at every level: what emission takes depends on it.
 */
#include <string.h>

#include "hal/hw/isa.h"
#include "runtime/compiler/lower/decompose.h"
#include "runtime/compiler/passes.h"
#include "runtime/compiler/opt/expand.h"
#include "runtime/compiler/opt/fuse.h"

static void replace(struct tc_op *op, unsigned i, struct tc_value *by)
{
	tc_replace_uses(tc_out(op, i), by);
}

/* ---- map: its scalar ops on whole arrays ---- */

static void decompose_map(struct tc_ctx *c, struct tc_op *op)
{
	const struct tc_block *body = op->regions[0].block;
	const struct tc_op *scalar = tc_only_for_scalars(body);
	struct tc_build b = tc_build_at(c, op);
	struct tc_value **args = arena_array(&c->arena, op->n_operands, sizeof(*args)), *out;

	if (scalar)
		tc_fail(c, ERR_UNIMPLEMENTED, scalar, "it does not run in the region of a "
			"map yet; elementwise operations and constants do");
	if (!args)
		tc_fail(c, ERR_RESOURCE_EXHAUSTED, op, "out of memory");
	for (unsigned i = 0; i < op->n_operands; i++)
		args[i] = tc_in(op, i);
	tc_build_on_arrays(&b, body, args, tc_out(op, 0)->type, &out);
	replace(op, 0, out);
	tc_erase(op);
}

static void decompose_select_and_scatter(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	struct tc_value *out, *taps[2];
	struct tc_op *window = tc_expand_select_and_scatter(&b, op, NULL, NULL, &out);

	replace(op, 0, out);
	tc_erase(op);
	if (!window)
		return;
	b = tc_build_at(c, window);
	if (!tc_window_by_taps(&b, window, taps))
		return;
	replace(window, 1, taps[1]);
	tc_erase(window);
}

static void decompose_batch_norm(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	struct tc_value *out[3];

	tc_expand_batch_norm(&b, op, NULL, NULL, out);
	for (unsigned i = 0; i < op->n_results; i++)
		replace(op, i, out[i]);
	tc_erase(op);
}

/* ---- random bits ---- */

/* Threefry's two words of a block lie next to each other along this dim. */
static unsigned pair_dim(const struct tc_type *t)
{
	unsigned largest = 0;

	for (unsigned d = 0; d < t->rank; d++)
		if (t->dim[d] % 2 == 0)
			return d;
	for (unsigned d = 1; d < t->rank; d++)
		if (t->dim[d] > t->dim[largest])
			largest = d;
	return largest;
}

/* From blocks' words in order to the places they have in `t`. */
static struct tc_value *place_pairs(const struct tc_build *b, struct tc_value *words,
				    const struct tc_type *t, unsigned d)
{
	int64_t dim[TC_MAX_RANK + 1], turn[TC_MAX_RANK + 1];
	unsigned n = 0;

	/* [.., half, .., 2] to [.., half, 2, ..] */
	for (unsigned i = 0; i < t->rank; i++) {
		turn[n++] = i;
		if (i == d)
			turn[n++] = t->rank;
	}
	words = tc_build_transpose(b, words, turn);
	memcpy(dim, t->dim, t->rank * sizeof(*dim));
	dim[d] += dim[d] % 2;
	words = tc_build_reshape(b, words, t->rank, dim);
	return tc_build_part(b, words, d, 0, t->dim[d]);
}

/* Of floats, for which no more than their bits are asked: as integers. Returns their generator. */
static struct tc_op *decompose_random_floats(struct tc_ctx *c, struct tc_op *op)
{
	const struct tc_type *t = tc_out(op, 1)->type;
	const struct tc_type *types[2] = { tc_out(op, 0)->type,
					   tc_with_elem(c, t, elem_unsigned(elem_bits(t->elem))) };
	struct tc_value *state = tc_in(op, 0), *v;
	struct tc_build b = tc_build_at(c, op);
	struct tc_op *bits = tc_build_place(&b, tc_new(c, TC_RNG_BIT_GENERATOR, 1, &state, 2,
						       types, 0));

	tc_set_int(c, bits, "rng_algorithm", TC_ATTR_ENUM, tc_attr_int(op, "rng_algorithm", 0));
	v = tc_out(bits, 1);
	v = tc_build(&b, TC_BITCAST_CONVERT, t, 1, &v);
	replace(op, 0, tc_out(bits, 0));
	replace(op, 1, v);
	tc_erase(op);
	return bits;
}

/*
 * The device fills arrays with 32-bit words in order. A smaller number is the low bits of a
 * word of its own, and threefry's order is another one if there are several dims.
 */
static void decompose_random_bits(struct tc_ctx *c, struct tc_op *op)
{
	const struct tc_type *t = tc_out(op, 1)->type, *wide = tc_with_elem(c, t, ELEM_U32);
	unsigned bits = elem_bits(t->elem), d = pair_dim(t), last = t->rank ? t->rank - 1u : 0;
	bool moves = tc_attr_int(op, "rng_algorithm", 0) == TC_RNG_THREE_FRY && bits <= 32 &&
		     t->rank > 1 && t->rank < TC_MAX_RANK && t->count &&
		     (d != last || t->dim[d] % 2);
	const struct tc_type *types[2] = { tc_out(op, 0)->type, wide };
	struct tc_value *state = tc_in(op, 0), *v;
	struct tc_build b = tc_build_at(c, op);
	int64_t dim[TC_MAX_RANK + 1];
	struct tc_op *words;

	if (bits > 32 || (bits == 32 && !moves))
		return;
	if (moves) {
		memcpy(dim, t->dim, t->rank * sizeof(*dim));
		dim[d] = (dim[d] + 1) / 2;
		dim[t->rank] = 2;
		types[1] = tc_tensor(c, ELEM_U32, t->rank + 1u, dim);
	}
	words = tc_build_place(&b, tc_new(c, TC_RNG_BIT_GENERATOR, 1, &state, 2, types, 0));
	tc_set_int(c, words, "rng_algorithm", TC_ATTR_ENUM, tc_attr_int(op, "rng_algorithm", 0));
	v = tc_out(words, 1);
	if (moves)
		v = place_pairs(&b, v, wide, d);
	if (bits == 32)
		v = tc_build(&b, TC_BITCAST_CONVERT, t, 1, &v);
	else
		v = tc_build_convert(&b, v, (enum elem)t->elem);
	replace(op, 0, tc_out(words, 0));
	replace(op, 1, v);
	tc_erase(op);
}

/* A real number is its own real part. */
static void decompose_part(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	struct tc_value *x = tc_in(op, 0);

	if (elem_class(x->type->elem) == ELEM_CLASS_COMPLEX)
		return;
	if (op->op == TC_IMAG)
		x = tc_build_number(&b, x->type, 0);
	tc_replace(op, x);
}

/* ---- the order of complex numbers: by the real part, then the imaginary ---- */

/* (GT, LT) of the parts for the directions GE, GT, LE, LT: a NaN is in no order. */
static void decompose_compare(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	int64_t direction = tc_attr_int(op, "comparison_direction", 0);
	struct tc_value *x = tc_in(op, 0), *y = tc_in(op, 1), *re[2], *im[2], *v;
	int strict = direction == TC_CMP_GE || direction == TC_CMP_GT ? TC_CMP_GT : TC_CMP_LT;

	if (elem_class(x->type->elem) != ELEM_CLASS_COMPLEX || direction <= TC_CMP_NE)
		return;
	re[0] = tc_build_real(&b, x);
	re[1] = tc_build_real(&b, y);
	im[0] = tc_build(&b, TC_IMAG, re[0]->type, 1, &x);
	im[1] = tc_build(&b, TC_IMAG, re[1]->type, 1, &y);
	v = tc_build2(&b, TC_AND, tc_build_compare(&b, TC_CMP_EQ, re[0], re[1]),
		      tc_build_compare(&b, (int)direction, im[0], im[1]));
	v = tc_build2(&b, TC_OR, tc_build_compare(&b, strict, re[0], re[1]), v);
	replace(op, 0, v);
	tc_erase(op);
}

static void decompose_clamp(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	struct tc_value *v[3];

	if (elem_class(op->results[0].type->elem) != ELEM_CLASS_COMPLEX)
		return;
	for (unsigned i = 0; i < 3; i++) {
		v[i] = tc_in(op, i);
		if (v[i]->type != op->results[0].type)
			v[i] = tc_build_broadcast(&b, v[i], op->results[0].type, NULL);
	}
	v[1] = tc_build2(&b, TC_MAXIMUM, v[1], v[0]);
	replace(op, 0, tc_build2(&b, TC_MINIMUM, v[1], v[2]));
	tc_erase(op);
}

/* Without updates, what was there. */
static void drop_empty_scatter(struct tc_op *op)
{
	if (tc_in(op, op->n_results + 1)->type->count)
		return;
	for (unsigned i = 0; i < op->n_results; i++)
		replace(op, i, tc_in(op, i));
	tc_erase(op);
}

/* Whether no element has another one beside it. */
static bool is_sorted(const struct tc_op *op)
{
	const struct tc_type *t = tc_in(op, 0)->type;

	return !t->count || t->dim[tc_attr_int(op, "dimension", 0)] == 1;
}

static void decompose_sort(struct tc_ctx *c, struct tc_op *op)
{
	if (!is_sorted(op) && op->n_results <= ISA_MAX_SORT) {
		tc_decompose_sort(c, op);
	} else if (!is_sorted(op)) {
		tc_decompose_wide_sort(c, op);
	} else {
		for (unsigned i = 0; i < op->n_results; i++)
			replace(op, i, tc_in(op, i));
		tc_erase(op);
	}
}

/* Places of fewer bits than a byte are read as bytes, without their sign: as wider ones, from
 * operand `first` on. */
static void widen_places(struct tc_ctx *c, struct tc_op *op, unsigned first, unsigned n)
{
	struct tc_build b = tc_build_at(c, op);

	for (unsigned i = first; i < first + n; i++)
		if (elem_bits(tc_in(op, i)->type->elem) < 8)
			tc_set_operand(op, i, tc_build_convert(&b, tc_in(op, i), ELEM_S32));
}

/* Components of indices that were joined to vectors along a dim, as operand `at` of op, one behind
 * the other instead: then neighbours are read and written side by side. batch: the dims of the
 * indices that are those of the table. */
static void part_components(struct tc_ctx *c, struct tc_op *op, unsigned at, const char *batch)
{
	const struct tc_type *t = tc_in(op, at)->type;
	int64_t vector = tc_attr_int(op, "index_vector_dim", 0), dim[TC_MAX_RANK];
	int64_t list[TC_MAX_RANK];
	struct tc_op *join = tc_in(op, at)->def;
	struct tc_build b = tc_build_at(c, op);
	struct tc_value *parts[ISA_MAX_INDEX];
	const int64_t *dims;
	unsigned n;

	if (vector < 1 || vector >= t->rank || !join || join->op != TC_CONCATENATE ||
	    tc_attr_int(join, "dimension", 0) != vector || join->n_operands > ISA_MAX_INDEX ||
	    t->dim[vector] != join->n_operands)
		return;
	dim[0] = 1;
	for (unsigned d = 0, k = 1; d < t->rank; d++)
		if (d != vector)
			dim[k++] = t->dim[d];
	for (unsigned i = 0; i < join->n_operands; i++) {
		if (tc_in(join, i)->type->dim[vector] != 1)
			return;
		parts[i] = tc_build_reshape(&b, tc_in(join, i), t->rank, dim);
	}
	tc_set_operand(op, at, tc_build_join(&b, join->n_operands, parts, 0));
	tc_set_int(c, op, "index_vector_dim", TC_ATTR_INT, 0);
	dims = tc_attr_ints(op, batch, &n);
	for (unsigned i = 0; i < n; i++)
		list[i] = dims[i] + (dims[i] < vector);
	if (n)
		tc_set_ints(c, op, batch, list, n);
}

static void decompose_block(struct tc_ctx *c, struct tc_block *block)
{
	struct tc_op *next, *prev;

	for (struct tc_op *op = block->first; op; op = next) {
		next = op->next;
		prev = op->prev;
		if ((op->op == TC_REDUCE || op->op == TC_REDUCE_WINDOW || op->op == TC_SCATTER) &&
		    tc_split_parts(c, op)) {
			next = prev ? prev->next : block->first;
			continue;
		}
		for (unsigned r = 0; r < op->n_regions; r++)
			if (op->regions[r].block)
				decompose_block(c, op->regions[r].block);
		switch (op->op) {
		case TC_MAP: decompose_map(c, op); break;
		case TC_GATHER:
			part_components(c, op, 1, "start_indices_batching_dims");
			widen_places(c, op, 1, 1);
			tc_join_places(c, op);
			break;
		case TC_DYNAMIC_SLICE: widen_places(c, op, 1, op->n_operands - 1); break;
		case TC_DYNAMIC_UPDATE_SLICE: widen_places(c, op, 2, op->n_operands - 2); break;
		case TC_SCATTER:
			part_components(c, op, op->n_results, "scatter_indices_batching_dims");
			widen_places(c, op, op->n_results, 1);
			drop_empty_scatter(op);
			break;
		case TC_REDUCE:
			/* The product may have other ways to go. */
			if (tc_decompose_outer(c, op))
				next = prev ? prev->next : block->first;
			else
				tc_decompose_reduce(c, op);
			break;
		case TC_REDUCE_WINDOW:
			if (tc_decompose_scan(c, op))
				break;
			op = tc_close_holes(c, op);
			if (tc_window_by_dims(c, op))
				next = prev ? prev->next : block->first;
			else
				tc_decompose_window(c, op);
			break;
		case TC_SORT: decompose_sort(c, op); break;
		case TC_SELECT_AND_SCATTER: decompose_select_and_scatter(c, op); break;
		case TC_BATCH_NORM_TRAINING:
		case TC_BATCH_NORM_INFERENCE:
		case TC_BATCH_NORM_GRAD: decompose_batch_norm(c, op); break;
		case TC_FFT: tc_decompose_fft(c, op); break;
		case TC_CHOLESKY: tc_decompose_cholesky(c, op); break;
		case TC_TRIANGULAR_SOLVE: tc_decompose_triangular_solve(c, op); break;
		case TC_BITCAST_CONVERT: tc_decompose_bitcast(c, op); break;
		case TC_DOT_GENERAL:
			if (!tc_decompose_product(c, op))
				tc_decompose_dot(c, op);
			break;
		case TC_CONVOLUTION:
			/* One of one kind of numbers may have other ways to go. */
			if (tc_decompose_product(c, op))
				next = prev ? prev->next : block->first;
			else
				tc_decompose_convolution(c, op);
			break;
		case TC_CUSTOM_CALL: tc_decompose_custom_call(c, op); break;
		case TC_RNG: tc_decompose_rng(c, op); break;
		case TC_RNG_BIT_GENERATOR:
			if (elem_class(tc_out(op, 1)->type->elem) == ELEM_CLASS_FLOAT)
				op = decompose_random_floats(c, op);
			decompose_random_bits(c, op);
			break;
		case TC_COMPARE: decompose_compare(c, op); break;
		case TC_CLAMP: decompose_clamp(c, op); break;
		case TC_REAL:
		case TC_IMAG: decompose_part(c, op); break;
		default: break;
		}
	}
}

void tc_pass_decompose(struct tc_ctx *c)
{
	decompose_block(c, tc_main(c));
	tc_join_dims(c, tc_main(c));
}
