/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole numbers that are counted in more bits than they need. JAX numbers the elements of an array
 * of random bits in 64 bits, by iotas, and takes the upper half of each number and the lower one.
 * What is known to be 0 becomes that, and what is made of iotas and constants and narrowed at once
 * is counted in the narrow type, where sums and products are the same. What a loop counts from 0 on
 * is not below 0 either, nor are its multiples and their remainders, of which JAX asks that to
 * round as Python does, and again for what it takes as an index.
 */
#include "runtime/compiler/opt/build.h"
#include "runtime/compiler/opt/fuse.h"
#include "runtime/compiler/simplify/simpler.h"

#define MOST_OPS 64	/* that are looked through: a sum and a product for each dim, and more */

static uint64_t largest(const struct tc_type *t)
{
	unsigned bits = elem_bits(t->elem) - (elem_class(t->elem) == ELEM_CLASS_SINT);

	return UINT64_MAX >> (64 - bits);
}

/* The number that all of v's elements are; false: none, or one below 0. */
static bool number_of(const struct tc_value *v, uint64_t *number)
{
	int64_t element;

	if (!tc_whole_number(v, &element))
		return false;
	*number = (uint64_t)element;
	return element >= 0 || elem_class(v->type->elem) == ELEM_CLASS_UINT;
}

/* Whether v is `from` and known numbers that are added to it; *sum: these. Turns that were written
 * one after the other add theirs so. */
static bool is_sum_from(const struct tc_value *v, const struct tc_value *from, uint64_t *sum)
{
	uint64_t x;

	*sum = 0;
	for (unsigned i = 0; i < MOST_OPS && v != from; i++) {
		const struct tc_op *op = v->def;
		unsigned k;

		if (!op || op->op != TC_ADD)
			return false;
		k = number_of(tc_in(op, 1), &x) ? 0 : 1;
		if ((k && !number_of(tc_in(op, 0), &x)) || __builtin_add_overflow(*sum, x, sum))
			return false;
		v = tc_in(op, k);
	}
	return v == from;
}

/* Whether v is what a loop's body is given of a number that begins at 0 or above, that each turn
 * adds as much to, and below a known number of which alone the loop turns; *most: the largest. */
static bool find_most_counted(const struct tc_value *v, uint64_t *most)
{
	const struct tc_op *loop = v->block->region->parent, *below;
	const struct tc_block *cond;
	uint64_t first, step, limit, last;

	if (!loop || loop->op != TC_WHILE || v->block != loop->regions[1].block)
		return false;
	cond = loop->regions[0].block;
	below = tc_in(cond->last, 0)->def;
	if (!below || below->op != TC_COMPARE || tc_in(below, 0) != cond->args[v->index] ||
	    tc_attr_int(below, "comparison_direction", -1) != TC_CMP_LT ||
	    !number_of(tc_in(below, 1), &limit) || !limit ||
	    !number_of(tc_in(loop, v->index), &first) ||
	    !is_sum_from(tc_in(v->block->last, v->index), v, &step))
		return false;
	*most = limit - 1;
	/* What the last turn adds must not lead around to below 0. */
	return !__builtin_add_overflow(*most, step, &last) && last <= largest(v->type);
}

/* Whether v's elements are known to be between 0 and *most, which no op on the way passes. Looks
 * at *left ops. */
static bool find_most(const struct tc_value *v, unsigned *left, uint64_t *most)
{
	const struct tc_op *op = v->def;
	uint64_t x, y;

	if (!*left || !tc_is_integer(v->type))
		return false;
	--*left;
	if (!op)
		return find_most_counted(v, most);
	switch (op->op) {
	case TC_CONSTANT:
		return number_of(v, most);
	case TC_IOTA:
		x = (uint64_t)v->type->dim[tc_attr_int(op, "iota_dimension", 0)];
		*most = x ? x - 1 : 0;
		break;
	case TC_ADD:
	case TC_MULTIPLY:
		if (!find_most(tc_in(op, 0), left, &x) ||
		    !find_most(tc_in(op, 1), left, &y) ||
		    (op->op == TC_ADD ? __builtin_add_overflow(x, y, most) :
					__builtin_mul_overflow(x, y, most)))
			return false;
		break;
	case TC_DIVIDE:
	case TC_REMAINDER:
		if (!number_of(tc_in(op, 1), &y) || !y || !find_most(tc_in(op, 0), left, &x))
			return false;
		*most = op->op == TC_DIVIDE ? x / y : x < y ? x : y - 1;
		break;
	case TC_CONVERT:
	case TC_BROADCAST_IN_DIM:
	case TC_RESHAPE:
	case TC_TRANSPOSE:
	case TC_SLICE:
		if (!find_most(tc_in(op, 0), left, most))
			return false;
		break;
	default:
		return false;
	}
	return *most <= largest(v->type);
}

static bool shift_to_nothing(struct tc_ctx *c, struct tc_op *op)
{
	static const uint8_t zero[16];
	unsigned left = MOST_OPS;
	uint64_t most, by;

	if (!number_of(tc_in(op, 1), &by) || by >= elem_bits(tc_in(op, 0)->type->elem) ||
	    !find_most(tc_in(op, 0), &left, &most) || most >> by)
		return false;
	tc_replace(op, tc_splat(c, op, op->results[0].type, zero));
	return true;
}

/* Whether v is made of iotas and constants by sums and products that nobody else looks at. */
static bool is_counted(const struct tc_value *v, unsigned *left, bool is_first)
{
	const struct tc_op *op = v->def;

	if (!*left || !op)
		return false;
	--*left;
	switch (op->op) {
	case TC_IOTA:
		return true;
	case TC_CONSTANT:
		return tc_splat_element(v);
	case TC_ADD:
	case TC_SUBTRACT:
	case TC_MULTIPLY:
		return (is_first || (v->uses && !v->uses->next)) &&
		       is_counted(tc_in(op, 0), left, false) &&
		       is_counted(tc_in(op, 1), left, false);
	default:
		return false;
	}
}

static struct tc_value *counted(const struct tc_build *b, const struct tc_value *v, enum elem elem)
{
	const struct tc_type *type = tc_with_elem(b->c, v->type, elem);
	const struct tc_op *op = v->def;
	int64_t number;

	switch (op->op) {
	case TC_IOTA:
		return tc_build_iota(b, type, (unsigned)tc_attr_int(op, "iota_dimension", 0));
	case TC_CONSTANT:
		/* The low bytes of a number come first. */
		number = tc_attr_element(tc_attr(op, "value"), 0);
		return tc_splat(b->c, b->before, type, &number);
	default:
		return tc_build2(b, (enum tc_opcode)op->op, counted(b, tc_in(op, 0), elem),
				 counted(b, tc_in(op, 1), elem));
	}
}

static bool count_narrowly(struct tc_ctx *c, struct tc_op *op)
{
	const struct tc_type *to = op->results[0].type, *from = tc_in(op, 0)->type;
	struct tc_build b = tc_build_at(c, op);
	unsigned left = MOST_OPS;

	if (!tc_is_integer(from) || !tc_is_integer(to) || elem_bits(to->elem) % 8 ||
	    elem_bits(to->elem) >= elem_bits(from->elem) ||
	    !is_counted(tc_in(op, 0), &left, true))
		return false;
	tc_replace(op, counted(&b, tc_in(op, 0), (enum elem)to->elem));
	return true;
}

/* x < 0, of what never is. */
static bool is_never_below(struct tc_ctx *c, struct tc_op *op)
{
	static const uint8_t no[16];
	unsigned left = MOST_OPS;
	uint64_t most, zero;

	if (tc_attr_int(op, "comparison_direction", -1) != TC_CMP_LT ||
	    !number_of(tc_in(op, 1), &zero) || zero ||
	    (elem_class(tc_in(op, 0)->type->elem) != ELEM_CLASS_UINT &&
	     !find_most(tc_in(op, 0), &left, &most)))
		return false;
	tc_replace(op, tc_splat(c, op, op->results[0].type, no));
	return true;
}

bool tc_count_narrowly(struct tc_ctx *c, struct tc_op *op)
{
	switch (op->op) {
	case TC_COMPARE: return is_never_below(c, op);
	case TC_SHIFT_RIGHT_LOGICAL: return shift_to_nothing(c, op);
	case TC_CONVERT: return count_narrowly(c, op);
	default: return false;
	}
}
