/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Element types that the device's instructions do not take together: products of
 * different kinds of numbers, and bits of types narrower than a byte.
 */
#include <string.h>

#include "runtime/compiler/lower/decompose.h"

/* ---- products ---- */

static bool is_any(const struct tc_op *op, unsigned elem)
{
	return tc_in(op, 0)->type->elem == elem || tc_in(op, 1)->type->elem == elem ||
	       op->results[0].type->elem == elem;
}

static bool has_class(const struct tc_op *op, unsigned cls)
{
	return elem_class(tc_in(op, 0)->type->elem) == cls ||
	       elem_class(tc_in(op, 1)->type->elem) == cls ||
	       elem_class(op->results[0].type->elem) == cls;
}

/* The type that holds the numbers of all three, in which products are summed. */
static enum elem sum_type(const struct tc_op *op)
{
	bool is_wide = is_any(op, ELEM_F64) || is_any(op, ELEM_C128);

	if (has_class(op, ELEM_CLASS_COMPLEX))
		return is_wide ? ELEM_C128 : ELEM_C64;
	if (has_class(op, ELEM_CLASS_FLOAT))
		return is_wide ? ELEM_F64 : ELEM_F32;
	return is_any(op, ELEM_S64) || is_any(op, ELEM_U64) ? ELEM_S64 : ELEM_S32;
}

/* What the device sums as it is. */
static bool is_one_kind(const struct tc_op *op)
{
	unsigned a = tc_in(op, 0)->type->elem, b = tc_in(op, 1)->type->elem;
	unsigned r = op->results[0].type->elem, n = 0;

	for (unsigned cls = ELEM_CLASS_PRED; cls <= ELEM_CLASS_COMPLEX; cls++)
		n += has_class(op, cls) && cls != ELEM_CLASS_UINT;
	if (has_class(op, ELEM_CLASS_UINT) && !has_class(op, ELEM_CLASS_SINT))
		n++;
	/* the matrix unit reads neither */
	if (n > 1 || is_any(op, ELEM_F4E2M1FN) || is_any(op, ELEM_F8E8M0FNU))
		return false;
	if (elem_class(a) == ELEM_CLASS_COMPLEX)
		return a == b && a == r;
	return b != ELEM_F64 || a == ELEM_F64;
}

static struct tc_value *to_kind(const struct tc_build *b, struct tc_value *x, enum elem elem)
{
	bool is_complex = elem_class(elem) == ELEM_CLASS_COMPLEX;
	bool was_complex = elem_class(x->type->elem) == ELEM_CLASS_COMPLEX;
	const struct tc_type *t = tc_with_elem(b->c, x->type, elem);
	struct tc_value *parts[2];

	if (x->type->elem == elem)
		return x;
	if (elem == ELEM_PRED)
		return tc_build_compare(b, TC_CMP_NE, x, tc_build_number(b, x->type, 0));
	if (is_complex && !was_complex) {
		parts[0] = tc_build_convert(b, x, tc_real_of(elem));
		parts[1] = tc_build_number(b, parts[0]->type, 0);
		return tc_build(b, TC_COMPLEX, t, 2, parts);
	}
	if (was_complex && !is_complex)
		x = tc_build_real(b, x);
	return tc_build_convert(b, x, elem);
}

/* The matrix unit reads whole bytes of integers, and what stands above those of fewer bits is
 * anything: in a host's array, zeros above a negative one. Truths are bytes, too, which it has fast
 * ways for. */
static enum elem whole_bytes(unsigned elem)
{
	if (elem_bits(elem) >= 8 && elem != ELEM_PRED)
		return (enum elem)elem;
	return elem_class(elem) == ELEM_CLASS_SINT || elem == ELEM_PRED ? ELEM_S8 :
	       elem_class(elem) == ELEM_CLASS_UINT ? ELEM_U8 : (enum elem)elem;
}

/* In what a product of truths is counted: a wider type if they are more than that counts. */
static enum elem count_type(const struct tc_op *op)
{
	return tc_in(op, 0)->type->count > INT32_MAX && tc_in(op, 1)->type->count > INT32_MAX ?
		ELEM_S64 : ELEM_S32;
}

bool tc_decompose_product(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	bool is_one = is_one_kind(op), is_whole = true;
	enum elem elem = !is_one ? sum_type(op) :
		op->results[0].type->elem == ELEM_PRED ? count_type(op) :
							 (enum elem)op->results[0].type->elem;
	const struct tc_type *t = tc_with_elem(c, op->results[0].type, elem);
	struct tc_value *in[2];
	struct tc_op *sum;

	for (unsigned i = 0; i < 2; i++)
		is_whole &= whole_bytes(tc_in(op, i)->type->elem) == tc_in(op, i)->type->elem;
	if (is_one && is_whole)
		return false;
	for (unsigned i = 0; i < 2; i++)
		in[i] = to_kind(&b, tc_in(op, i), is_one ? whole_bytes(tc_in(op, i)->type->elem) :
						  elem);
	sum = tc_build_place(&b, tc_new(c, (enum tc_opcode)op->op, 2, in, 1, &t, 0));
	sum->attrs = op->attrs;
	sum->n_attrs = op->n_attrs;
	tc_replace(op, to_kind(&b, tc_out(sum, 0), (enum elem)op->results[0].type->elem));
	return true;
}

/* ---- bits ---- */

/* Where each of n parts of `bits` bits starts in a byte, for an array of bytes with n
 * last. */
static struct tc_value *starts(const struct tc_build *b, const struct tc_type *t, unsigned bits)
{
	return tc_build2(b, TC_MULTIPLY, tc_build_iota(b, t, t->rank - 1u),
			 tc_build_number(b, t, bits));
}

/* x, of at most a byte, to `elem` of fewer bits: one more dim. */
static struct tc_value *split(const struct tc_build *b, struct tc_value *x, unsigned from,
			      enum elem elem)
{
	unsigned rank = x->type->rank, bits = elem_bits(elem);
	int64_t dim[TC_MAX_RANK + 1], dims[TC_MAX_RANK];
	const struct tc_type *t;
	struct tc_value *v;

	for (unsigned d = 0; d < rank; d++) {
		dim[d] = x->type->dim[d];
		dims[d] = d;
	}
	dim[rank] = from / bits;
	t = tc_tensor(b->c, ELEM_U8, rank + 1, dim);
	v = tc_build_broadcast(b, x, t, dims);
	v = tc_build2(b, TC_SHIFT_RIGHT_LOGICAL, v, starts(b, t, bits));
	v = tc_build2(b, TC_AND, v, tc_build_number(b, t, (1 << bits) - 1));
	return v;
}

/* Bytes with numbers of `bits` bits, those of the last dim joined into one. */
static struct tc_value *joined(const struct tc_build *b, struct tc_value *x, unsigned bits)
{
	unsigned last = x->type->rank - 1u;

	x = tc_build2(b, TC_SHIFT_LEFT, x, starts(b, x->type, bits));
	return tc_build_sum(b, x, 1ull << last);
}

static struct tc_value *bits_as(const struct tc_build *b, struct tc_value *x, enum elem elem)
{
	const struct tc_type *t = tc_with_elem(b->c, x->type, elem);

	return x->type->elem == elem ? x : tc_build(b, TC_BITCAST_CONVERT, t, 1, &x);
}

static enum elem unsigned_of(unsigned elem)
{
	return elem_bits(elem) == 2 ? ELEM_U2 : ELEM_U4;
}

/* A type of fewer than 8 bits to bytes with its bits, zeros above, and back. Integers
 * convert to each other by their bits, and so get their sign in the rest of the byte. */
static struct tc_value *to_bytes(const struct tc_build *b, struct tc_value *x)
{
	return tc_build_convert(b, bits_as(b, x, unsigned_of(x->type->elem)), ELEM_U8);
}

static struct tc_value *from_bytes(const struct tc_build *b, struct tc_value *x, enum elem elem)
{
	if (elem_class(elem) != ELEM_CLASS_FLOAT)
		return tc_build_convert(b, x, elem);
	return bits_as(b, tc_build_convert(b, x, unsigned_of(elem)), elem);
}

void tc_decompose_bitcast(struct tc_ctx *c, struct tc_op *op)
{
	const struct tc_type *in = tc_in(op, 0)->type, *out = op->results[0].type;
	unsigned from = elem_bits(in->elem), to = elem_bits(out->elem), n;
	struct tc_build b = tc_build_at(c, op);
	struct tc_value *v = tc_in(op, 0);
	int64_t dim[TC_MAX_RANK + 1];

	if (from == to && from < 8 && in != out && elem_class(in->elem) != ELEM_CLASS_FLOAT &&
	    in->elem != ELEM_PRED) {
		tc_replace(op, from_bytes(&b, v, (enum elem)out->elem));
		return;
	}
	if (from == to || (from >= 8 && to >= 8) || in->elem == ELEM_PRED ||
	    out->elem == ELEM_PRED)
		return;
	if (from < to) {
		/* [.., to / from] to [.., bytes, parts of a byte] */
		n = to > 8 ? to / 8 : 1;
		memcpy(dim, in->dim, in->rank * sizeof(*dim));
		dim[in->rank - 1] = n;
		dim[in->rank] = (to > 8 ? 8 : to) / from;
		v = joined(&b, tc_build_reshape(&b, to_bytes(&b, v), in->rank + 1u, dim), from);
		if (to > 8)
			v = tc_build(&b, TC_BITCAST_CONVERT, out, 1, &v);
		else
			v = tc_build_reshape(&b, v, out->rank, out->dim);
		if (to < 8)
			v = from_bytes(&b, v, (enum elem)out->elem);
		else
			v = bits_as(&b, v, (enum elem)out->elem);
	} else {
		if (from > 8) {
			memcpy(dim, in->dim, in->rank * sizeof(*dim));
			dim[in->rank] = from / 8;
			v = tc_build(&b, TC_BITCAST_CONVERT,
				     tc_tensor(c, ELEM_U8, in->rank + 1u, dim), 1, &v);
		} else {
			v = from < 8 ? to_bytes(&b, v) : bits_as(&b, v, ELEM_U8);
		}
		v = split(&b, v, from > 8 ? 8 : from, (enum elem)out->elem);
		v = from_bytes(&b, tc_build_reshape(&b, v, out->rank, out->dim),
			       (enum elem)out->elem);
	}
	tc_replace(op, v);
}
