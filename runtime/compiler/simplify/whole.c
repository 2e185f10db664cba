/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quotients and remainders of whole numbers by powers of 2, which are shifts and the lower bits,
 * numbers that are added one after the other, and what is made or asked of numbers that are
 * known: a part of the pass simplify. Frameworks round down, as Python does, by quotients and
 * remainders that round to 0 and questions about signs.
 */
#include <math.h>
#include <string.h>

#include "runtime/compiler/opt/build.h"
#include "runtime/compiler/opt/fuse.h"
#include "runtime/compiler/simplify/simpler.h"

static bool is_signed(const struct tc_type *t)
{
	return elem_class(t->elem) == ELEM_CLASS_SINT;
}

/* The number that all of v's elements are, of whole bytes; of truths 0 or 1. */
static bool known(const struct tc_value *v, int64_t *number)
{
	if (v->type->elem != ELEM_PRED)
		return elem_bits(v->type->elem) % 8 == 0 && tc_whole_number(v, number);
	if (!tc_splat_element(v))
		return false;
	*number = *(const uint8_t *)tc_splat_element(v) != 0;
	return true;
}

/* The number as all elements of such a type. */
static struct tc_value *all_of(struct tc_ctx *c, struct tc_op *at, const struct tc_type *t,
			       int64_t number)
{
	/* The low bytes come first. */
	return tc_splat(c, at, t, &number);
}

/* k, if v is 2^k everywhere; -1: it is not. */
static int exponent_of(const struct tc_value *v)
{
	int64_t x;

	if (!tc_is_integer(v->type) || !known(v, &x) || x <= 0 || x & (x - 1))
		return -1;
	return __builtin_ctzll((unsigned long long)x);
}

static bool holds(int64_t direction, int64_t x, int64_t y, bool has_sign)
{
	bool is_less = has_sign ? x < y : (uint64_t)x < (uint64_t)y;

	switch (direction) {
	case TC_CMP_EQ: return x == y;
	case TC_CMP_NE: return x != y;
	case TC_CMP_LT: return is_less;
	case TC_CMP_LE: return is_less || x == y;
	case TC_CMP_GT: return !is_less && x != y;
	default: return !is_less;
	}
}

/* Of two numbers that are known; or whether a truth is one that is known. */
static bool compare(struct tc_ctx *c, struct tc_op *op)
{
	int64_t direction = tc_attr_int(op, "comparison_direction", -1), x, y;
	struct tc_value *v = tc_in(op, 0), *w = tc_in(op, 1);
	struct tc_build b = tc_build_at(c, op);

	if (!known(w, &y) || direction < 0)
		return false;
	if (known(v, &x))
		return tc_simplify_to(op, all_of(c, op, op->results[0].type,
						 holds(direction, x, y, is_signed(v->type))));
	if (v->type->elem != ELEM_PRED || (direction != TC_CMP_EQ && direction != TC_CMP_NE))
		return false;
	return tc_simplify_to(op, (direction == TC_CMP_EQ) == (y != 0) ? v :
			      tc_build1(&b, TC_NOT, v));
}

static bool sign(struct tc_ctx *c, struct tc_op *op)
{
	const struct tc_type *t = op->results[0].type;
	int64_t x;

	return is_signed(t) && known(tc_in(op, 0), &x) &&
	       tc_simplify_to(op, all_of(c, op, t, (x > 0) - (x < 0)));
}

static struct tc_value *lower_bits(const struct tc_build *b, struct tc_value *x, int k)
{
	return tc_build2(b, TC_AND, x, all_of(b->c, b->before, x->type,
					      (int64_t)(((uint64_t)1 << k) - 1)));
}

/* Of numbers without a sign. */
static bool divide(struct tc_ctx *c, struct tc_op *op)
{
	const struct tc_type *t = op->results[0].type;
	int k = tc_is_integer(t) && !is_signed(t) ? exponent_of(tc_in(op, 1)) : -1;
	struct tc_build b = tc_build_at(c, op);

	if (k < 0)
		return false;
	return tc_simplify_to(op, op->op == TC_REMAINDER ? lower_bits(&b, tc_in(op, 0), k) :
			      tc_build2(&b, TC_SHIFT_RIGHT_LOGICAL, tc_in(op, 0),
					all_of(c, op, t, k)));
}

static const struct tc_op *maker(const struct tc_value *v, enum tc_opcode kind)
{
	return v->def && v->def->op == kind ? v->def : NULL;
}

/* What is compared so with a number that is known, or NULL. */
static struct tc_value *compared(const struct tc_value *v, int64_t direction, int64_t number)
{
	const struct tc_op *op = maker(v, TC_COMPARE);

	return op && tc_attr_int(op, "comparison_direction", -1) == direction &&
	       tc_is_number(tc_in(op, 1), number) ? tc_in(op, 0) : NULL;
}

/* r < 0 and r != 0 ? r + 2^k : r, of the remainder r by 2^k: what is left when it rounds down. */
static bool round_remainder(struct tc_ctx *c, struct tc_op *op, const struct tc_op *both,
			    unsigned side)
{
	struct tc_value *r = tc_in(op, 2);
	const struct tc_op *rest = maker(r, TC_REMAINDER), *sum = maker(tc_in(op, 1), TC_ADD);
	int k = rest && is_signed(r->type) ? exponent_of(tc_in(rest, 1)) : -1;
	struct tc_build b = tc_build_at(c, op);

	if (k < 0 || !sum || tc_in(sum, 0) != r || exponent_of(tc_in(sum, 1)) != k ||
	    compared(tc_in(both, side), TC_CMP_LT, 0) != r ||
	    compared(tc_in(both, !side), TC_CMP_NE, 0) != r)
		return false;
	return tc_simplify_to(op, lower_bits(&b, tc_in(rest, 0), k));
}

/* sign(x) != 1 and x % 2^k != 0 ? q - 1 : q, of the quotient q of x by 2^k: it rounds down. */
static bool round_quotient(struct tc_ctx *c, struct tc_op *op, const struct tc_op *both,
			   unsigned side)
{
	struct tc_value *q = tc_in(op, 2);
	const struct tc_op *part = maker(q, TC_DIVIDE), *less = maker(tc_in(op, 1), TC_SUBTRACT);
	int k = part && is_signed(q->type) ? exponent_of(tc_in(part, 1)) : -1;
	const struct tc_value *s = compared(tc_in(both, side), TC_CMP_NE, 1);
	const struct tc_value *r = compared(tc_in(both, !side), TC_CMP_NE, 0);
	const struct tc_op *sign_op = s ? maker(s, TC_SIGN) : NULL;
	const struct tc_op *rest = r ? maker(r, TC_REMAINDER) : NULL;
	struct tc_build b = tc_build_at(c, op);

	if (k < 0 || !less || tc_in(less, 0) != q || !tc_is_number(tc_in(less, 1), 1) || !sign_op ||
	    !rest || tc_in(sign_op, 0) != tc_in(part, 0) || tc_in(rest, 0) != tc_in(part, 0) ||
	    exponent_of(tc_in(rest, 1)) != k)
		return false;
	return tc_simplify_to(op, tc_build2(&b, TC_SHIFT_RIGHT_ARITHMETIC, tc_in(part, 0),
					    all_of(c, op, q->type, k)));
}

static bool round_down(struct tc_ctx *c, struct tc_op *op)
{
	const struct tc_op *both = maker(tc_in(op, 0), TC_AND);

	for (unsigned side = 0; both && side < 2; side++)
		if (round_remainder(c, op, both, side) || round_quotient(c, op, both, side))
			return true;
	return false;
}

/* A number that is known, as a float that holds it; -0 and NaNs are for the device. */
static bool convert(struct tc_ctx *c, struct tc_op *op)
{
	const struct tc_type *t = op->results[0].type;
	const struct tc_value *in = tc_in(op, 0);
	struct tc_build b = tc_build_at(c, op);
	const void *element = tc_splat_element(in);
	unsigned digits = t->elem == ELEM_F64 ? 53 : t->elem == ELEM_F32 ? 24 :
			  t->elem == ELEM_BF16 || t->elem == ELEM_F16 ? 8 : 0;
	const int64_t most_exact = (int64_t)1 << 53;
	double number;
	float narrow;
	int64_t x;

	if (in->type->elem == ELEM_F64 && element) {
		memcpy(&number, element, sizeof(number));
	} else if (in->type->elem == ELEM_F32 && element) {
		memcpy(&narrow, element, sizeof(narrow));
		number = narrow;
	} else if (known(in, &x) && (in->type->elem != ELEM_U64 || x >= 0) &&
		   x >= -most_exact && x <= most_exact) {
		number = (double)x;
	} else {
		return false;
	}
	/* Whole numbers of so many digits, which all that follows holds. */
	if (!digits || !(fabs(number) <= (double)((int64_t)1 << digits)) ||
	    number != (double)(int64_t)number || (!number && signbit(number)))
		return false;
	return tc_simplify_to(op, tc_build_number(&b, t, number));
}

/* What is made of numbers that are known. Turns that were written one after the other count so. */
static bool compute(struct tc_ctx *c, struct tc_op *op)
{
	const struct tc_type *t = op->results[0].type;
	int64_t x, y;

	if (!tc_is_integer(t) || elem_bits(t->elem) % 8 || !tc_is_integer(tc_in(op, 0)->type) ||
	    !known(tc_in(op, 0), &x))
		return false;
	if (op->op == TC_CONVERT)
		return tc_simplify_to(op, all_of(c, op, t, x));
	if (!known(tc_in(op, 1), &y))
		return false;
	/* Without signs, so that none overflows: the low bytes are the same. */
	switch (op->op) {
	case TC_ADD: x = (int64_t)((uint64_t)x + (uint64_t)y); break;
	case TC_SUBTRACT: x = (int64_t)((uint64_t)x - (uint64_t)y); break;
	case TC_MULTIPLY: x = (int64_t)((uint64_t)x * (uint64_t)y); break;
	default: return false;
	}
	return tc_simplify_to(op, all_of(c, op, t, x));
}

/* Two numbers that are known are added up, or taken away, one after the other. An array that others
 * look at stays as it is: it would be no less to read. */
static bool add_up(struct tc_ctx *c, struct tc_op *op)
{
	bool adds = op->op == TC_ADD, is_first;
	const struct tc_op *sum;
	struct tc_build b = tc_build_at(c, op);
	struct tc_value *from, *last;
	int64_t x, y;

	if (!tc_is_integer(op->results[0].type))
		return false;
	is_first = adds && known(tc_in(op, 0), &y);
	from = tc_in(op, is_first);
	sum = from->def;
	if ((!is_first && !known(tc_in(op, 1), &y)) || !sum ||
	    (sum->op != TC_ADD && sum->op != TC_SUBTRACT) ||
	    (from->type->rank && !tc_is_used_once(from)))
		return false;
	is_first = known(tc_in(sum, 0), &x);
	if (!is_first && !known(tc_in(sum, 1), &x))
		return false;
	if (!is_first && sum->op == TC_SUBTRACT)
		x = (int64_t)(0 - (uint64_t)x);
	last = all_of(c, op, from->type, (int64_t)((uint64_t)x + (adds ? (uint64_t)y :
								  0 - (uint64_t)y)));
	from = tc_in(sum, is_first);
	return tc_simplify_to(op, is_first && sum->op == TC_SUBTRACT ?
			      tc_build2(&b, TC_SUBTRACT, last, from) :
			      tc_build2(&b, TC_ADD, from, last));
}

bool tc_simplify_whole(struct tc_ctx *c, struct tc_op *op)
{
	switch (op->op) {
	case TC_CONVERT: return compute(c, op) || convert(c, op);
	case TC_MULTIPLY: return compute(c, op);
	case TC_ADD:
	case TC_SUBTRACT: return compute(c, op) || add_up(c, op);
	case TC_COMPARE: return compare(c, op);
	case TC_SIGN: return sign(c, op);
	case TC_DIVIDE:
	case TC_REMAINDER: return divide(c, op);
	case TC_SELECT: return round_down(c, op);
	default: return false;
	}
}
