/* SPDX-License-Identifier: Apache-2.0 */
/* How what members have is put together: by which op, and in which type. */
#include <string.h>

#include "runtime/compiler/spmd/shard_internal.h"

enum elem shard_bits_of(enum elem elem)
{
	if (elem == ELEM_PRED)
		return elem;
	if (elem_class(elem) == ELEM_CLASS_COMPLEX)
		return ELEM_TOKEN;
	return elem_bits(elem) < 4 ? ELEM_TOKEN : elem_unsigned(elem_bits(elem));
}

#define MOST_CHOICES 8	/* one within the other, in a body */

/* Whether the bytes of a number of that type are op's identity. */
static bool is_identity(enum tc_opcode op, const struct tc_attr *a)
{
	enum elem elem = (enum elem)a->type->elem;
	unsigned cls = elem_class(elem);
	size_t n = (size_t)a->type->bytes;
	const uint8_t *p = a->data;
	uint8_t zero[16] = { 0 };

	/* It has no 0. */
	if (elem == ELEM_F8E8M0FNU)
		return false;
	/* 0.0 of a sum; -0.0 would be exact, but frameworks write 0. */
	if (op == TC_ADD || op == TC_OR || op == TC_XOR)
		return n <= sizeof(zero) && !memcmp(p, zero, n);
	if (op == TC_AND && elem == ELEM_PRED)
		return *p == 1;
	if (op == TC_MULTIPLY && elem == ELEM_F32)
		return !memcmp(p, &(float){ 1 }, 4);
	if (op == TC_MULTIPLY && (cls == ELEM_CLASS_SINT || cls == ELEM_CLASS_UINT)) {
		zero[0] = 1;
		return n <= sizeof(zero) && !memcmp(p, zero, n);
	}
	return false;
}

/* The op that makes a scalar; JAX spreads constants over no dims. */
static const struct tc_op *number_of(const struct tc_value *v)
{
	const struct tc_op *op = v->def;

	while (op && op->op == TC_BROADCAST_IN_DIM)
		op = tc_in(op, 0)->def;
	return op;
}

bool shard_may_repeat(const struct tc_op *op)
{
	enum tc_opcode body = op->n_results == 1 ? tc_op_of_body(op->regions[0].block) :
			      TC_OP_COUNT;
	const struct tc_op *first = number_of(tc_in(op, op->n_operands - 1));

	if (body == TC_MAXIMUM || body == TC_MINIMUM || body == TC_AND || body == TC_OR)
		return true;
	return body != TC_OP_COUNT && first && first->op == TC_CONSTANT &&
	       is_identity(body, tc_attr(first, "value"));
}

/* Whether v is one of what two arguments of a body have, whatever decides which: the i-th of both
 * sides. */
static bool is_chosen(const struct tc_block *b, const struct tc_value *v, unsigned i,
		      unsigned depth)
{
	const struct tc_op *op = v->def;

	if (!op)
		return v == b->args[i] || v == b->args[b->n_args / 2 + i];
	if (op->block != b || !depth)
		return false;
	if (op->op == TC_SELECT)
		return is_chosen(b, tc_in(op, 1), i, depth - 1) &&
		       is_chosen(b, tc_in(op, 2), i, depth - 1);
	return (op->op == TC_MAXIMUM || op->op == TC_MINIMUM) &&
	       is_chosen(b, tc_in(op, 0), i, depth - 1) &&
	       is_chosen(b, tc_in(op, 1), i, depth - 1);
}

/* Whether a scalar is the least or largest of its type: nothing is equal to it but itself, bit for
 * bit, and nothing beyond it. */
static bool is_extreme(const struct tc_value *v)
{
	const struct tc_op *op = number_of(v);
	enum elem elem = (enum elem)v->type->elem;
	unsigned n = elem_bits(elem), cls = elem_class(elem);
	uint64_t bits = 0, ones = n < 64 ? (1ull << n) - 1 : UINT64_MAX, sign;

	if (!op || op->op != TC_CONSTANT || n < 8 || n > 64)
		return false;
	memcpy(&bits, tc_attr(op, "value")->data, n / 8);
	sign = 1ull << (n - 1);
	switch (elem) {
	case ELEM_F16: return (bits & ~sign) == 0x7c00;
	case ELEM_BF16: return (bits & ~sign) == 0x7f80;
	case ELEM_F32: return (bits & ~sign) == 0x7f800000;
	case ELEM_F64: return (bits & ~sign) == 0x7ff0000000000000;
	default: break;
	}
	return cls == ELEM_CLASS_SINT ? bits == sign || bits == (ones & ~sign) :
	       cls == ELEM_CLASS_UINT && (!bits || bits == ones);
}

bool shard_may_fold(const struct tc_op *op)
{
	const struct tc_block *b = op->op == TC_REDUCE ? op->regions[0].block : NULL;
	unsigned n = 0;

	/* Of several dims parts would not be in the elements' order. */
	if (b)
		tc_attr_ints(op, "dimensions", &n);
	if (n != 1 || !is_extreme(tc_in(op, op->n_results)))
		return false;
	for (unsigned i = 1; i < op->n_results; i++) {
		unsigned cls = elem_class(tc_in(op, op->n_results + i)->type->elem);

		if (cls != ELEM_CLASS_SINT && cls != ELEM_CLASS_UINT)
			return false;
	}
	for (unsigned i = 0; i < op->n_results; i++)
		if (!is_chosen(b, tc_in(b->last, i), i, MOST_CHOICES))
			return false;
	for (const struct tc_op *o = b->first; o; o = o->next)
		if (tc_has_effect(o) && o != b->last)
			return false;
	return true;
}

enum tc_opcode shard_sum_of(const struct tc_op *op)
{
	enum tc_opcode body;
	unsigned cls;

	switch (op->op) {
	case TC_DOT_GENERAL:
	case TC_CONVOLUTION:
		return TC_ADD;
	case TC_REDUCE:
		if (op->n_results != 1)
			return TC_OP_COUNT;
		body = tc_op_of_body(op->regions[0].block);
		return shard_may_repeat(op) ? body : TC_OP_COUNT;
	case TC_GATHER:
		/* The sum of a -0 or a denormal and zeros is not what was found. */
		cls = elem_class(tc_out(op, 0)->type->elem);
		return cls == ELEM_CLASS_SINT || cls == ELEM_CLASS_UINT ? TC_ADD : TC_OR;
	case TC_SCATTER:
		if (op->n_results != 1)
			return TC_OP_COUNT;
		body = tc_op_of_body(op->regions[0].block);
		return body == TC_ADD && tc_out(op, 0)->type->elem == ELEM_F8E8M0FNU ?
		       TC_OP_COUNT : body;
	default:
		return TC_OP_COUNT;
	}
}

/* ---- sums of sums ---- */

/* Whether members may add up what they have before it is put together: whole numbers wrap to the
 * same sums, and floats of a wide range are rounded about as often, far from overflow. */
static bool may_add_first(const struct tc_op *op)
{
	const struct tc_type *t = tc_out(op, 0)->type;
	unsigned elem = t->elem, cls = elem_class(elem);

	if (op->op != TC_ADD && op->op != TC_SUBTRACT)
		return false;
	return tc_is_integer(t) || cls == ELEM_CLASS_COMPLEX ||
	       (cls == ELEM_CLASS_FLOAT && (elem_bits(elem) >= 32 || elem == ELEM_BF16));
}

/* The meeting in which v, for b's op alone, becomes the sum of what members have; at most it is
 * moved afterwards. NULL: there is none that was made here. */
static struct tc_op *sum_behind(const struct shard *s, const struct tc_value *v,
				const struct tc_block *b)
{
	struct tc_op *op;

	for (; v->def && v->def->block == b && tc_is_used_once(v); v = tc_in(op, 0)) {
		op = v->def;
		if (op->op == TC_ALL_REDUCE || op->op == TC_REDUCE_SCATTER)
			return op->id >= s->n_values &&
			       tc_op_of_body(op->regions[0].block) == TC_ADD ? op : NULL;
		if (op->op != TC_TRANSPOSE && op->op != TC_RESHAPE)
			return NULL;
	}
	return NULL;
}

static void add_first(const struct shard *s, struct tc_op *op)
{
	struct tc_op *a = sum_behind(s, tc_in(op, 0), op->block);
	struct tc_op *b = sum_behind(s, tc_in(op, 1), op->block);
	const struct tc_type *t = tc_out(op, 0)->type;

	if (!a || !b || a->op != b->op || !tc_has_same_groups(a, b))
		return;
	if (a->op == TC_REDUCE_SCATTER) {
		if (tc_in(op, 0)->def != a || tc_in(op, 1)->def != b ||
		    tc_in(a, 0)->type != tc_in(b, 0)->type)
			return;
		tc_out(op, 0)->type = tc_in(a, 0)->type;
	}
	tc_replace(a, tc_in(a, 0));
	tc_replace_uses(tc_out(b, 0), tc_in(b, 0));
	tc_unlink(b);
	tc_insert_before(op->next, b);
	tc_out(b, 0)->type = t;
	tc_replace_uses(tc_out(op, 0), tc_out(b, 0));
	tc_set_operand(b, 0, tc_out(op, 0));
}

void shard_add_first(const struct shard *s, struct tc_block *b)
{
	for (struct tc_op *op = s->is_whole ? NULL : b->first; op; op = op->next) {
		for (unsigned r = 0; r < op->n_regions; r++)
			if (op->regions[r].block)
				shard_add_first(s, op->regions[r].block);
		if (op->n_results == 1 && may_add_first(op))
			add_first(s, op);
	}
}
