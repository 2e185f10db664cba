/* SPDX-License-Identifier: Apache-2.0 */
/*
 * StableHLO's ops that are given shapes, paddings or places as operands. Where these are numbers
 * that are known they are the ops of the same name without "dynamic"; else some have rules of
 * their own. They come as tc.opaque, which nobody has judged: nothing is believed here.
 */
#include <string.h>

#include "runtime/compiler/dynamic/dynamic.h"

enum shaped { RESHAPE, BROADCAST, IOTA, PAD, SLICE, GATHER, GATHER_OLD, CONV, N_SHAPED };

static const struct {
	const char *name;
	uint8_t n_operands, first;	/* of those that are to be known */
} shaped_ops[N_SHAPED] = {
	[RESHAPE] = { "dynamic_reshape_v1", 2, 1 },
	[BROADCAST] = { "dynamic_broadcast_in_dim_v1", 2, 1 },
	[IOTA] = { "dynamic_iota_v1", 1, 0 },
	[PAD] = { "dynamic_pad_v1", 5, 2 },
	[SLICE] = { "real_dynamic_slice_v1", 4, 1 },
	[GATHER] = { "dynamic_gather_v2", 3, 2 },
	[GATHER_OLD] = { "dynamic_gather_v1", 3, 2 },
	[CONV] = { "dynamic_conv_v2", 3, 2 },
};

static enum shaped kind_of(const struct tc_op *op)
{
	const char *name = op->op == TC_OPAQUE ? tc_attr_str(op, "name") : NULL;
	unsigned k = 0;

	while (k < N_SHAPED && !(name && !strcmp(name, shaped_ops[k].name)))
		k++;
	return (enum shaped)k;
}

bool dyn_is_shaped(const struct tc_op *op)
{
	return kind_of(op) < N_SHAPED;
}

static bool is_list(const struct tc_value *v)
{
	return !v->type->is_tuple && (elem_class(v->type->elem) == ELEM_CLASS_SINT ||
				      elem_class(v->type->elem) == ELEM_CLASS_UINT);
}

/* Numbers of operands and results, no tuples, lists of integers where lists belong. */
static void check(struct tc_ctx *c, struct tc_op *op, enum shaped kind)
{
	if (op->n_operands != shaped_ops[kind].n_operands || op->n_results != 1 || op->n_regions)
		tc_fail(c, ERR_INVALID_ARGUMENT, op, "it has %u operands, %u results and %u "
			"regions", op->n_operands, op->n_results, op->n_regions);
	if (tc_out(op, 0)->type->is_tuple)
		tc_fail(c, ERR_INVALID_ARGUMENT, op, "its result is a tuple");
	for (unsigned i = 0; i < op->n_operands; i++)
		if (tc_in(op, i)->type->is_tuple ||
		    (i >= shaped_ops[kind].first && !is_list(tc_in(op, i))))
			tc_fail(c, ERR_INVALID_ARGUMENT, op, "operand %u is no list of integers",
				i);
}

/* Of a list of one number for each dim. */
static void want_length(struct tc_ctx *c, const struct tc_op *op, unsigned i, unsigned rank)
{
	const struct tc_type *t = tc_in(op, i)->type;

	if (t->rank != 1 || t->dim[0] != rank)
		tc_fail(c, ERR_INVALID_ARGUMENT, op, "operand %u has %lld numbers for %u dims", i,
			(long long)t->count, rank);
}

/* ---- with numbers that are known ---- */

/* An op of `code` on the first n operands, with op's attributes but for what only it has. */
static struct tc_op *plain(struct tc_ctx *c, struct tc_op *op, enum tc_opcode code, unsigned n)
{
	struct tc_build b = tc_build_at(c, op);
	struct tc_value *in[2];
	struct tc_op *to;

	for (unsigned i = 0; i < n; i++)
		in[i] = tc_in(op, i);
	to = tc_build(&b, code, tc_out(op, 0)->type, n, in)->def;
	tc_out(to, 0)->bounded = tc_out(op, 0)->bounded;
	for (unsigned i = 0; i < op->n_attrs; i++)
		if (op->attrs[i].key != TC_KEY(c, "name"))
			tc_set_attr(c, to, op->attrs[i]);
	return to;
}

static bool give_list(struct tc_ctx *c, struct tc_op *to, const struct tc_op *op, unsigned i,
		      const char *name)
{
	unsigned n;
	const int64_t *list = dyn_numbers(c, tc_in(op, i), &n);

	if (list)
		tc_set_ints(c, to, name, list, n);
	return list != NULL;
}

static bool are_known(struct tc_ctx *c, const struct tc_op *op, enum shaped kind)
{
	unsigned n;

	for (unsigned i = shaped_ops[kind].first; i < op->n_operands; i++)
		if (!dyn_numbers(c, tc_in(op, i), &n))
			return false;
	return true;
}

bool dyn_make_plain(struct tc_ctx *c, struct tc_op *op)
{
	enum shaped kind = kind_of(op);
	struct tc_op *to;

	check(c, op, kind);
	/* A shape that the result's type says need not be looked at. */
	if (kind <= IOTA ? tc_out(op, 0)->bounded != 0 : !are_known(c, op, kind))
		return false;
	switch (kind) {
	case RESHAPE: to = plain(c, op, TC_RESHAPE, 1); break;
	case BROADCAST: to = plain(c, op, TC_BROADCAST_IN_DIM, 1); break;
	case IOTA: to = plain(c, op, TC_IOTA, 0); break;
	case PAD:
		to = plain(c, op, TC_PAD, 2);
		give_list(c, to, op, 2, "edge_padding_low");
		give_list(c, to, op, 3, "edge_padding_high");
		give_list(c, to, op, 4, "interior_padding");
		break;
	case SLICE:
		to = plain(c, op, TC_SLICE, 1);
		give_list(c, to, op, 1, "start_indices");
		give_list(c, to, op, 2, "limit_indices");
		give_list(c, to, op, 3, "strides");
		break;
	case GATHER_OLD:
	case GATHER:
		to = plain(c, op, TC_GATHER, 2);
		give_list(c, to, op, 2, "slice_sizes");
		if (kind == GATHER)
			break;
		tc_set_ints(c, to, "operand_batching_dims", NULL, 0);
		tc_set_ints(c, to, "start_indices_batching_dims", NULL, 0);
		break;
	default:
		to = plain(c, op, TC_CONVOLUTION, 2);
		give_list(c, to, op, 2, "padding");
		break;
	}
	tc_replace_uses(tc_out(op, 0), tc_out(to, 0));
	return true;
}

/* ---- with others ---- */

/* The sizes of the result's dims that a list gives; NULL: as the type says. */
static void take_sizes(const struct tc_build *b, struct tc_op *op, unsigned i,
		       struct tc_value **sizes)
{
	struct tc_value *out = tc_out(op, 0);

	want_length(b->c, op, i, out->type->rank);
	for (unsigned d = 0; d < out->type->rank; d++)
		sizes[d] = out->bounded >> d & 1 ? dyn_held(b, dyn_element(b, tc_in(op, i), d),
							    out->type->dim[d]) : NULL;
}

static struct tc_value *broadcast(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	struct tc_value *x = tc_in(op, 0), *out = tc_out(op, 0), *v, *sizes[TC_MAX_RANK];
	const struct tc_attr *dims = tc_attr(op, "broadcast_dimensions");
	uint64_t seen = 0;

	take_sizes(&b, op, 1, sizes);
	if (!dims || dims->n != x->type->rank || (dims->n && dims->kind != TC_ATTR_INTS) ||
	    x->type->elem != out->type->elem)
		tc_fail(c, ERR_INVALID_ARGUMENT, op, "its operand does not fit its result");
	for (unsigned d = 0; d < dims->n; d++) {
		int64_t to = dims->ints[d];

		if (to < 0 || to >= out->type->rank || seen >> to & 1 ||
		    (x->type->dim[d] != 1 && x->type->dim[d] != out->type->dim[to]))
			tc_fail(c, ERR_INVALID_ARGUMENT, op, "dim %u of its operand, of %lld, is "
				"none of its result", d, (long long)x->type->dim[d]);
		if (dyn_size_of(x, d) && x->type->dim[d] != out->type->dim[to])
			dyn_refuse(c, op, 0, d, "whether it is repeated depends on it");
		seen |= (uint64_t)1 << to;
	}
	v = tc_build_broadcast(&b, x, out->type, dims->ints);
	for (unsigned d = 0; d < out->type->rank; d++)
		dyn_set(c, v, d, sizes[d]);
	for (unsigned d = 0; d < dims->n; d++)
		dyn_meet(&b, v, (unsigned)dims->ints[d], dyn_size_of(x, d));
	return v;
}

static struct tc_value *iota(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	struct tc_value *out = tc_out(op, 0), *v, *sizes[TC_MAX_RANK];
	int64_t dim = tc_attr_int(op, "iota_dimension", -1);

	take_sizes(&b, op, 0, sizes);
	if (dim < 0 || dim >= out->type->rank || !elem_bytes(out->type->elem))
		tc_fail(c, ERR_INVALID_ARGUMENT, op, "it counts along dim %lld of %u",
			(long long)dim, out->type->rank);
	v = tc_build_iota(&b, out->type, (unsigned)dim);
	for (unsigned d = 0; d < out->type->rank; d++)
		dyn_set(c, v, d, sizes[d]);
	return v;
}

static struct tc_value *reshape(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	struct tc_value *x = tc_in(op, 0), *out = tc_out(op, 0), *sizes[TC_MAX_RANK];

	take_sizes(&b, op, 1, sizes);
	if (x->type->elem != out->type->elem)
		tc_fail(c, ERR_INVALID_ARGUMENT, op, "its result has other elements");
	if (x->type->count != out->type->count)
		tc_fail(c, ERR_UNIMPLEMENTED, op, "its operand has up to %lld elements and its "
			"result up to %lld: give the result's type bounds of as many",
			(long long)x->type->count, (long long)out->type->count);
	return dyn_reshaped(c, op, x, out, sizes);
}

/* Along each dim the elements from a start on, by a step. */
static struct tc_value *slice(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	struct tc_value *x = tc_in(op, 0), *out = tc_out(op, 0), *v = x, *sizes[TC_MAX_RANK];
	const struct tc_type *t = x->type;

	if (t->elem != out->type->elem || t->rank != out->type->rank || !t->count)
		tc_fail(c, ERR_INVALID_ARGUMENT, op, "its operand does not fit its result");
	for (unsigned i = 1; i < 4; i++)
		want_length(c, op, i, t->rank);
	for (unsigned d = 0; d < t->rank; d++) {
		struct tc_value *start = dyn_element(&b, tc_in(op, 1), d), *at;
		struct tc_value *limit = dyn_element(&b, tc_in(op, 2), d);
		struct tc_value *step = dyn_element(&b, tc_in(op, 3), d), *n;
		int64_t size = out->type->dim[d];

		start = dyn_held(&b, start, t->dim[d]);
		limit = dyn_less(&b, dyn_held(&b, limit, t->dim[d]), dyn_size_of(x, d));
		step = dyn_do(&b, TC_MAXIMUM, step, dyn_number(&b, 1));
		n = dyn_do(&b, TC_MAXIMUM, dyn_do(&b, TC_SUBTRACT, limit, start),
			   dyn_number(&b, 0));
		/* without a sum that might not fit */
		at = dyn_do(&b, TC_REMAINDER, n, step);
		at = dyn_do(&b, TC_MINIMUM, at, dyn_number(&b, 1));
		n = dyn_do(&b, TC_ADD, dyn_do(&b, TC_DIVIDE, n, step), at);
		sizes[d] = dyn_held(&b, n, size);
		step = dyn_do(&b, TC_MINIMUM, step, dyn_number(&b, t->dim[d]));
		at = tc_build_iota(&b, tc_tensor(c, ELEM_S32, 1, &size), 0);
		at = tc_build2(&b, TC_MULTIPLY, at, dyn_list_of(&b, step, size));
		at = tc_build2(&b, TC_ADD, at, dyn_list_of(&b, start, size));
		v = dyn_picked(&b, v, d, at);
	}
	for (unsigned d = 0; d < t->rank; d++)
		if (out->bounded >> d & 1)
			dyn_set(c, v, d, sizes[d]);
	return v;
}

bool dyn_shaped(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_value *v;

	switch (kind_of(op)) {
	case RESHAPE: v = reshape(c, op); break;
	case BROADCAST: v = broadcast(c, op); break;
	case IOTA: v = iota(c, op); break;
	case SLICE: v = slice(c, op); break;
	default:
		tc_fail(c, ERR_UNIMPLEMENTED, op, "what it is given as operand %u must be "
			"constants: numbers that are known only when it runs do not run in it",
			(unsigned)shaped_ops[kind_of(op)].first);
	}
	tc_replace_uses(tc_out(op, 0), v);
	return false;
}
