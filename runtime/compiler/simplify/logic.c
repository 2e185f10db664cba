/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simpler forms of questions: a part of the pass simplify.
 */
#include <string.h>

#include "runtime/compiler/simplify/simpler.h"

#include "runtime/compiler/opt/build.h"
#include "runtime/compiler/opt/fuse.h"

#define MOST_QUESTIONS 8	/* about a value, for whose sake its bound is asked instead */

/* Every integer is equal to itself. */
static bool compare_with_itself(struct tc_ctx *c, struct tc_op *op)
{
	int64_t direction = tc_attr_int(op, "comparison_direction", -1);
	uint8_t truth = direction == TC_CMP_EQ || direction == TC_CMP_GE ||
			direction == TC_CMP_LE;

	if (tc_in(op, 0) != tc_in(op, 1) || !tc_is_integer(tc_in(op, 0)->type))
		return false;
	return tc_simplify_to(op, tc_splat(c, op, tc_out(op, 0)->type, &truth));
}

/* The question "less or equal" that asks for what v or w asks for, "less" and "equal" of the same
 * two: its direction, or -1. */
static int joined_direction(const struct tc_op *v, const struct tc_op *w)
{
	int64_t a = v ? tc_attr_int(v, "comparison_direction", -1) : -1;

	if (!v || !w || v->op != TC_COMPARE || w->op != TC_COMPARE ||
	    tc_in(v, 0) != tc_in(w, 0) || tc_in(v, 1) != tc_in(w, 1) ||
	    tc_attr_int(v, "compare_type", -1) != tc_attr_int(w, "compare_type", -1) ||
	    tc_attr_int(w, "comparison_direction", -1) != TC_CMP_EQ)
		return -1;
	return a == TC_CMP_GT ? TC_CMP_GE : a == TC_CMP_LT ? TC_CMP_LE : -1;
}

/* An and, or an or, of truths. */
static bool join_truths(struct tc_ctx *c, struct tc_op *op)
{
	if (tc_out(op, 0)->type->elem != ELEM_PRED)
		return false;
	for (unsigned side = 0; side < 2; side++) {
		struct tc_value *v = tc_in(op, side), *w = tc_in(op, !side);
		const uint8_t *known = tc_splat_element(v);
		int direction = op->op == TC_OR ? joined_direction(v->def, w->def) : -1;
		struct tc_build b = tc_build_at(c, op);
		struct tc_value *one;

		if (known)
			return tc_simplify_to(op, (*known != 0) == (op->op == TC_AND) ? w : v);
		if (direction < 0)
			continue;
		one = tc_build_compare(&b, direction, tc_in(v->def, 0), tc_in(v->def, 1));
		tc_set_int(c, one->def, "compare_type", TC_ATTR_ENUM,
			   tc_attr_int(v->def, "compare_type", 0));
		return tc_simplify_to(op, one);
	}
	return false;
}

/* Whether v asks of a signed integer whether it is below a number that is not. */
static bool is_upper(const struct tc_op *v)
{
	int64_t direction = v && v->op == TC_COMPARE ?
		tc_attr_int(v, "comparison_direction", -1) : -1, k;

	return (direction == TC_CMP_LE || direction == TC_CMP_LT) &&
	       elem_class(tc_in(v, 0)->type->elem) == ELEM_CLASS_SINT &&
	       elem_bits(tc_in(v, 0)->type->elem) >= 8 &&
	       tc_whole_number(tc_in(v, 1), &k) && k >= 0;
}

/* x >= 0 and x <= k, as every lookup asks of its indices: one question of x without a sign. */
static bool ask_without_sign(struct tc_ctx *c, struct tc_op *op)
{
	for (unsigned side = 0; op->op == TC_AND && side < 2; side++) {
		const struct tc_op *lower = tc_in(op, side)->def, *upper = tc_in(op, !side)->def;
		struct tc_build b = tc_build_at(c, op);
		const struct tc_type *t;
		struct tc_value *x, *v;
		int64_t k;

		if (!is_upper(upper) || !lower || lower->op != TC_COMPARE ||
		    tc_attr_int(lower, "comparison_direction", -1) != TC_CMP_GE ||
		    tc_in(lower, 0) != tc_in(upper, 0) ||
		    !tc_whole_number(tc_in(lower, 1), &k) || k)
			continue;
		t = tc_in(upper, 0)->type;
		t = tc_with_elem(c, t, elem_unsigned(elem_bits(t->elem)));
		x = tc_in(upper, 0);
		x = tc_build(&b, TC_BITCAST_CONVERT, t, 1, &x);
		v = tc_build_compare(&b, (int)tc_attr_int(upper, "comparison_direction", 0), x,
				     tc_splat(c, op, t, tc_splat_element(tc_in(upper, 1))));
		tc_set_int(c, v->def, "compare_type", TC_ATTR_ENUM, TC_CMP_UNSIGNED);
		return tc_simplify_to(op, v);
	}
	return false;
}

/* a > b ? a : b */
static bool choose_larger(struct tc_ctx *c, struct tc_op *op)
{
	const struct tc_op *asks = tc_in(op, 0)->def;
	int64_t direction = asks && asks->op == TC_COMPARE ?
		tc_attr_int(asks, "comparison_direction", -1) : -1;
	bool is_greater = direction == TC_CMP_GT || direction == TC_CMP_GE;
	bool is_less = direction == TC_CMP_LT || direction == TC_CMP_LE;
	struct tc_build b = tc_build_at(c, op);
	bool is_turned;

	if ((!is_greater && !is_less) || !tc_is_integer(tc_in(op, 1)->type))
		return false;
	is_turned = tc_in(asks, 0) == tc_in(op, 2) && tc_in(asks, 1) == tc_in(op, 1);
	if (!is_turned && (tc_in(asks, 0) != tc_in(op, 1) || tc_in(asks, 1) != tc_in(op, 2)))
		return false;
	return tc_simplify_to(op, tc_build2(&b, is_greater != is_turned ? TC_MAXIMUM : TC_MINIMUM,
					    tc_in(op, 1), tc_in(op, 2)));
}

/* Whether op is this of v and what is everywhere the same. */
static bool is_with_splat(const struct tc_op *op, enum tc_opcode which, const struct tc_value *v,
			  const void *splat)
{
	const void *own = op->op == which && tc_in(op, 0) == v ? tc_splat_element(tc_in(op, 1)) :
								NULL;

	return own && !memcmp(own, splat, elem_bytes(v->type->elem));
}

/*
 * Of x > k, where the larger of x and k is known, too, that is asked: max(x, k) > k. As a
 * rectifier and its gradient do. So one of the two arrays need not be kept, where x is made for
 * these alone by what an instruction makes together with them; x <= k is the same, and so are
 * x < k and x >= k of the smaller. A NaN gives no in both. cse makes one of the two maxima.
 */
static bool ask_of_bound(struct tc_ctx *c, struct tc_op *op)
{
	int64_t direction = tc_attr_int(op, "comparison_direction", -1);
	bool is_above = direction == TC_CMP_GT || direction == TC_CMP_LE;
	enum tc_opcode bound = is_above ? TC_MAXIMUM : TC_MINIMUM;
	struct tc_value *x = tc_in(op, 0);
	const void *k = tc_splat_element(tc_in(op, 1));
	struct tc_build b = tc_build_at(c, op);
	bool is_any = false;
	unsigned n = 0;

	if (!k || (!is_above && direction != TC_CMP_LT && direction != TC_CMP_GE) || !x->def ||
	    x->def->block != op->block || x->def->op == bound || !x->type->rank ||
	    tc_attr_int(op, "compare_type", TC_CMP_FLOAT) == TC_CMP_TOTALORDER ||
	    (!tc_has_trait(x->def, 'e') && x->def->op != TC_DOT_GENERAL &&
	     x->def->op != TC_CONVOLUTION))
		return false;
	for (const struct tc_use *u = x->uses; u; u = u->next) {
		bool is_bound = is_with_splat(u->user, bound, x, k);

		if ((!is_bound && !is_with_splat(u->user, TC_COMPARE, x, k)) ||
		    u->user->block != op->block || ++n > MOST_QUESTIONS)
			return false;
		is_any |= is_bound;
	}
	if (!is_any)
		return false;
	tc_set_operand(op, 0, tc_build2(&b, bound, x, tc_in(op, 1)));
	return true;
}

bool tc_simplify_logic(struct tc_ctx *c, struct tc_op *op)
{
	switch (op->op) {
	case TC_COMPARE: return compare_with_itself(c, op) || ask_of_bound(c, op);
	case TC_AND:
	case TC_OR: return join_truths(c, op) || ask_without_sign(c, op);
	case TC_SELECT: return choose_larger(c, op);
	default: return false;
	}
}
