/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rng, numbers of a distribution, by words that are drawn from the device's own state
 * (tc.draw), so that no two runs or turns of a loop get the same (build.h). What becomes of
 * a word is the evaluator's to know, too: eval/eval_rng.c.
 */
#include "runtime/compiler/lower/decompose.h"

enum { UNIFORM = 1, NORMAL };

/* As many words of 32 or 64 bits. */
static struct tc_value *draw(const struct tc_build *b, const struct tc_type *type)
{
	return tc_out(tc_build_place(b, tc_new(b->c, TC_DRAW, 0, NULL, 1, &type, 0)), 0);
}

/* In [0, 1): random bits as the fraction of a number in [1, 2). */
static struct tc_value *unit(const struct tc_build *b, const struct tc_type *type)
{
	bool is_wide = type->elem == ELEM_F64;
	const struct tc_type *words = tc_with_elem(b->c, type, is_wide ? ELEM_U64 : ELEM_U32);
	struct tc_value *v = draw(b, words);

	v = tc_build2(b, TC_SHIFT_RIGHT_LOGICAL, v, tc_build_number(b, words, is_wide ? 12 : 9));
	v = tc_build2(b, TC_OR, v, tc_build_number(b, words, is_wide ? 0x1.ff8p61 : 0x1.fcp29));
	v = tc_build(b, TC_BITCAST_CONVERT, type, 1, &v);
	return tc_build2(b, TC_SUBTRACT, v, tc_build_number(b, type, 1));
}

static struct tc_value *spread(const struct tc_build *b, struct tc_value *v,
			       const struct tc_type *type)
{
	v = tc_build_convert(b, v, (enum elem)type->elem);
	return type->rank ? tc_build_broadcast(b, v, type, NULL) : v;
}

static struct tc_value *floats(const struct tc_build *b, const struct tc_op *op, bool is_normal)
{
	const struct tc_type *out = tc_out(op, 0)->type;
	const struct tc_type *t = tc_with_elem(b->c, out, out->elem == ELEM_F64 ? ELEM_F64 :
					       ELEM_F32);
	struct tc_value *first = spread(b, tc_in(op, 0), t), *second = spread(b, tc_in(op, 1), t);
	struct tc_value *v = unit(b, t), *angle;

	if (!is_normal) {
		v = tc_build2(b, TC_MULTIPLY, v, tc_build2(b, TC_SUBTRACT, second, first));
	} else {	/* mean and deviation, by Box and Muller */
		v = tc_build2(b, TC_SUBTRACT, tc_build_number(b, t, 1), v);
		v = tc_build2(b, TC_MULTIPLY, tc_build1(b, TC_LOG, v),
			      tc_build_number(b, t, -2));
		angle = tc_build2(b, TC_MULTIPLY, unit(b, t),
				  tc_build_number(b, t, 6.283185307179586));
		v = tc_build2(b, TC_MULTIPLY, tc_build1(b, TC_SQRT, v),
			      tc_build1(b, TC_COSINE, angle));
		v = tc_build2(b, TC_MULTIPLY, v, second);
	}
	return tc_build_convert(b, tc_build2(b, TC_ADD, v, first), (enum elem)out->elem);
}

/* Whole numbers from the first operand on, less than the second. */
static struct tc_value *integers(const struct tc_build *b, const struct tc_op *op)
{
	const struct tc_type *out = tc_out(op, 0)->type;
	enum elem elem = elem_bits(out->elem) > 32 ? ELEM_U64 : ELEM_U32;
	const struct tc_type *t = tc_with_elem(b->c, out, elem);
	struct tc_value *first = spread(b, tc_in(op, 0), t);
	struct tc_value *count = tc_build2(b, TC_SUBTRACT, spread(b, tc_in(op, 1), t), first);
	struct tc_value *v = tc_build2(b, TC_REMAINDER, draw(b, t), count);

	return tc_build_convert(b, tc_build2(b, TC_ADD, v, first), (enum elem)out->elem);
}

void tc_decompose_rng(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	unsigned kind = elem_class(tc_out(op, 0)->type->elem);
	bool is_normal = tc_attr_int(op, "rng_distribution", 0) == NORMAL;

	if (kind == ELEM_CLASS_FLOAT)
		tc_replace_uses(tc_out(op, 0), floats(&b, op, is_normal));
	else if ((kind == ELEM_CLASS_SINT || kind == ELEM_CLASS_UINT) && !is_normal)
		tc_replace_uses(tc_out(op, 0), integers(&b, op));
	else
		tc_fail(c, ERR_UNIMPLEMENTED, op, "random numbers of %s do not run yet",
			elem_text(tc_out(op, 0)->type->elem));
	tc_erase(op);
}
