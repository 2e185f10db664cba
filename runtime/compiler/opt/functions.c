/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CHLO's functions that the IR has no op for, as ops that it has: XLA hands those of programs to a
 * plugin as custom calls, and newer HLO has instructions for them. They are what XLA makes of them,
 * so that ends and errors are its own, but that types narrower than f32 compute in f32 and round
 * once.
 *
 * The inverse functions of complex numbers are by T. E. Hull, T. F. Fairgrieve and P. T. P. Tang,
 * "Implementing the complex arcsine and arccosine functions using exception handling" (1997).
 */
#include <math.h>
#include <string.h>

#include "runtime/compiler/opt/build.h"

/* Ops on the values of one type. */
struct fn {
	const struct tc_build *b;
	const struct tc_type *t;
	bool is_wide;		/* f64, or parts of it */
};

typedef struct tc_value value;

static value *num(const struct fn *f, double x)
{
	return tc_build_number(f->b, f->t, x);
}

static value *add(const struct fn *f, value *x, value *y)
{
	return tc_build2(f->b, TC_ADD, x, y);
}

static value *mul(const struct fn *f, value *x, value *y)
{
	return tc_build2(f->b, TC_MULTIPLY, x, y);
}

static value *sub(const struct fn *f, value *x, value *y)
{
	return tc_build2(f->b, TC_SUBTRACT, x, y);
}

static value *over(const struct fn *f, value *x, value *y)
{
	return tc_build2(f->b, TC_DIVIDE, x, y);
}

static value *of(const struct fn *f, enum tc_opcode op, value *x)
{
	return tc_build1(f->b, op, x);
}

static value *is(const struct fn *f, value *x, int how, value *y)
{
	return tc_build_compare(f->b, how, x, y);
}

static value *pick(const struct fn *f, value *p, value *x, value *y)
{
	return tc_build_select(f->b, p, x, y);
}

static value *both(const struct fn *f, value *p, value *q)
{
	return tc_build2(f->b, TC_AND, p, q);
}

static value *half(const struct fn *f, value *x)
{
	return mul(f, x, num(f, 0.5));
}

static double largest(const struct fn *f)
{
	return f->is_wide ? 0x1.fffffffffffffp1023 : 0x1.fffffep127;
}

static double least(const struct fn *f)
{
	return f->is_wide ? 0x1p-1022 : 0x1p-126;
}

/* ---- of real numbers ---- */

/* sqrt((1 - x) (1 + x)) */
static value *other_side(const struct fn *f, value *x)
{
	value *one = num(f, 1);

	return of(f, TC_SQRT, mul(f, sub(f, one, x), add(f, one, x)));
}

static value *asin_real(const struct fn *f, value *x)
{
	value *half_angle = tc_build2(f->b, TC_ATAN2, x, add(f, num(f, 1), other_side(f, x)));

	return add(f, half_angle, half_angle);
}

static value *acos_real(const struct fn *f, value *x)
{
	return tc_build2(f->b, TC_ATAN2, other_side(f, x), x);
}

/* exp(x) / 2 and exp(-x) / 2, which are numbers where their sum is. */
static void halves(const struct fn *f, value *x, value **up, value **down)
{
	value *by = num(f, -log(2));

	*up = of(f, TC_EXPONENTIAL, add(f, x, by));
	*down = of(f, TC_EXPONENTIAL, sub(f, by, x));
}

static value *sinh_real(const struct fn *f, value *x)
{
	value *one = num(f, 1), *e = of(f, TC_EXPONENTIAL_MINUS_ONE, x), *up, *down, *small;

	halves(f, x, &up, &down);
	small = half(f, add(f, e, over(f, e, add(f, e, one))));
	return pick(f, is(f, of(f, TC_ABS, x), TC_CMP_LT, one), small, sub(f, up, down));
}

static value *sinh_complex(const struct fn *f, value *x)
{
	value *up, *down;

	halves(f, x, &up, &down);
	return sub(f, up, down);
}

static value *cosh_any(const struct fn *f, value *x)
{
	value *up, *down;

	halves(f, x, &up, &down);
	return add(f, up, down);
}

static value *log_of_two_times(const struct fn *f, value *x)
{
	return add(f, of(f, TC_LOG, x), num(f, log(2)));
}

static value *asinh_real(const struct fn *f, value *x)
{
	value *one = num(f, 1), *size = of(f, TC_ABS, x), *square = mul(f, x, x), *v;

	v = add(f, of(f, TC_SQRT, add(f, square, one)), one);
	v = of(f, TC_LOG_PLUS_ONE, add(f, size, over(f, square, v)));
	v = pick(f, is(f, size, TC_CMP_GE, num(f, sqrt(largest(f)))), log_of_two_times(f, size), v);
	return mul(f, of(f, TC_SIGN, x), v);
}

static value *acosh_real(const struct fn *f, value *x)
{
	value *one = num(f, 1), *low = of(f, TC_SQRT, sub(f, x, one));
	value *v = add(f, of(f, TC_SQRT, add(f, x, one)), low);

	return pick(f, is(f, x, TC_CMP_GE, num(f, largest(f) / 2)), log_of_two_times(f, x),
		    of(f, TC_LOG_PLUS_ONE, mul(f, low, v)));
}

static value *atanh_real(const struct fn *f, value *x)
{
	value *v = sub(f, of(f, TC_LOG_PLUS_ONE, x), of(f, TC_LOG_PLUS_ONE, of(f, TC_NEGATE, x)));

	return pick(f, is(f, of(f, TC_ABS, x), TC_CMP_GT, num(f, 1)), num(f, NAN), half(f, v));
}

/* ---- of complex numbers ---- */

struct parts { value *re, *im; };

/* f becomes that of the parts. */
static struct parts parts_of(struct fn *f, value *z)
{
	struct parts p;

	f->t = tc_with_elem(f->b->c, z->type, tc_real_of((enum elem)z->type->elem));
	p.re = tc_build(f->b, TC_REAL, f->t, 1, &z);
	p.im = tc_build(f->b, TC_IMAG, f->t, 1, &z);
	return p;
}

static value *joined(const struct fn *f, value *re, value *im)
{
	value *in[2] = { re, im };

	return tc_build(f->b, TC_COMPLEX, tc_with_elem(f->b->c, f->t, f->is_wide ? ELEM_C128 :
						       ELEM_C64), 2, in);
}

static value *hypotenuse(const struct fn *f, value *x, value *y)
{
	value *large, *small, *root, *square, *v, *one = num(f, 1);

	x = of(f, TC_ABS, x);
	large = tc_build2(f->b, TC_MAXIMUM, x, y);
	small = tc_build2(f->b, TC_MINIMUM, x, y);
	v = over(f, small, large);
	square = mul(f, v, v);
	root = of(f, TC_SQRT, add(f, square, one));
	v = add(f, large, half(f, mul(f, large, square)));
	v = pick(f, both(f, is(f, root, TC_CMP_EQ, one), is(f, square, TC_CMP_GT, num(f, 0))), v,
		 mul(f, large, root));
	return pick(f, is(f, large, TC_CMP_EQ, small), mul(f, large, num(f, sqrt(2))), v);
}

/* What is common to the inverse functions, of the parts' sizes. */
struct hull {
	value *x, *y, *above, *below;	/* x + 1, x - 1 */
	value *r, *s, *a;		/* the distances to -1 and 1, and their mean */
	value *square;			/* y y */
};

static struct hull start_hull(const struct fn *f, struct parts z)
{
	struct hull h = { .x = of(f, TC_ABS, z.re), .y = of(f, TC_ABS, z.im) };
	value *one = num(f, 1);

	h.above = add(f, h.x, one);
	h.below = sub(f, h.x, one);
	h.r = hypotenuse(f, h.above, h.y);
	h.s = hypotenuse(f, h.below, h.y);
	h.a = half(f, add(f, h.r, h.s));
	h.square = mul(f, h.y, h.y);
	return h;
}

/* The real part of asin is atan2(x, this), that of acos atan2(this, x). */
static value *hull_side(const struct fn *f, const struct hull *h)
{
	value *mean = half(f, add(f, h->a, h->x)), *ra = add(f, h->r, h->above);
	value *near, *far, *most = num(f, sqrt(largest(f)) / 8);

	near = add(f, over(f, h->square, ra), sub(f, h->s, h->below));
	near = of(f, TC_SQRT, mul(f, mean, near));
	far = add(f, over(f, mean, ra), over(f, mean, add(f, h->s, h->below)));
	far = mul(f, h->y, of(f, TC_SQRT, far));
	near = pick(f, is(f, h->x, TC_CMP_LE, num(f, 1)), near, far);
	return pick(f, is(f, tc_build2(f->b, TC_MAXIMUM, h->x, h->y), TC_CMP_GE, most), h->y, near);
}

/* log of what is large */
static value *hull_large(const struct fn *f, const struct hull *h, value *is_high, value *of_both)
{
	value *inf = num(f, INFINITY), *v;

	v = both(f, is_high, is(f, h->y, TC_CMP_NE, inf));
	v = pick(f, v, over(f, h->x, h->y), num(f, 0));
	v = half(f, of(f, TC_LOG_PLUS_ONE, mul(f, v, v)));
	return add(f, log_of_two_times(f, of_both), v);
}

/* The size of the imaginary part of both. */
static value *hull_height(const struct fn *f, const struct hull *h)
{
	double most = sqrt(largest(f)) / 8;
	value *one = num(f, 1), *a1 = add(f, h->a, one), *limit, *is_high, *is_low, *is_large;
	value *v, *far, *of_both, *share = over(f, half(f, h->square), add(f, h->r, h->above));

	limit = pick(f, is(f, h->x, TC_CMP_LT, num(f, most * 1e12)), num(f, most * 1e-6),
		     num(f, most * 1e2));
	is_high = is(f, h->y, TC_CMP_GE, limit);
	of_both = pick(f, is_high, h->y, h->x);
	is_large = is(f, of_both, TC_CMP_GE, pick(f, is_high, limit, num(f, most)));
	is_low = both(f, is(f, h->y, TC_CMP_LT, num(f, sqrt(least(f)) * 4)),
		      is(f, h->x, TC_CMP_LT, one));
	/* a - 1 */
	far = add(f, share, half(f, add(f, h->s, h->below)));
	v = add(f, share, over(f, half(f, h->square), sub(f, h->s, h->below)));
	v = pick(f, is(f, h->a, TC_CMP_LE, num(f, 1.5)), v, sub(f, h->a, one));
	v = pick(f, is(f, h->x, TC_CMP_GE, one), far, v);
	far = of(f, TC_NEGATE, over(f, mul(f, h->above, h->below), a1));
	v = pick(f, is_low, far, v);
	far = of(f, TC_SQRT, mul(f, v, a1));
	v = pick(f, is_low, over(f, h->y, far), of(f, TC_LOG_PLUS_ONE, add(f, v, far)));
	return pick(f, is_large, hull_large(f, h, is_high, of_both), v);
}

/* v, or -v where `by` is less than zero (or is not, if `turned`). */
static value *signed_by(const struct fn *f, value *by, value *v, bool turned)
{
	value *other = of(f, TC_NEGATE, v), *is_less = is(f, by, TC_CMP_LT, num(f, 0));

	return turned ? pick(f, is_less, v, other) : pick(f, is_less, other, v);
}

static value *asin_complex(const struct fn *of_z, value *z)
{
	struct fn f = *of_z;
	struct parts p = parts_of(&f, z);
	struct hull h = start_hull(&f, p);

	return joined(&f, tc_build2(f.b, TC_ATAN2, p.re, hull_side(&f, &h)),
		      signed_by(&f, p.im, hull_height(&f, &h), false));
}

static value *acos_complex(const struct fn *of_z, value *z)
{
	struct fn f = *of_z;
	struct parts p = parts_of(&f, z);
	struct hull h = start_hull(&f, p);

	return joined(&f, tc_build2(f.b, TC_ATAN2, hull_side(&f, &h), p.re),
		      signed_by(&f, p.im, hull_height(&f, &h), true));
}

/* i asin(-i z) */
static value *asinh_complex(const struct fn *of_z, value *z)
{
	struct fn f = *of_z;
	struct parts p = parts_of(&f, z);
	struct hull h = start_hull(&f, (struct parts){ p.im, p.re });

	return joined(&f, signed_by(&f, p.re, hull_height(&f, &h), false),
		      tc_build2(f.b, TC_ATAN2, p.im, hull_side(&f, &h)));
}

/* i acos(z) or -i acos(z), whose real part is not negative */
static value *acosh_complex(const struct fn *of_z, value *z)
{
	struct fn f = *of_z;
	struct parts p = parts_of(&f, z);
	struct hull h = start_hull(&f, p);

	return joined(&f, hull_height(&f, &h),
		      signed_by(&f, p.im, tc_build2(f.b, TC_ATAN2, hull_side(&f, &h), p.re),
				false));
}

static value *is_infinite(const struct fn *f, value *x)
{
	return is(f, of(f, TC_ABS, x), TC_CMP_EQ, num(f, INFINITY));
}

static value *atanh_complex(const struct fn *of_z, value *z)
{
	struct fn f = *of_z;
	struct parts p = parts_of(&f, z);
	double most = f.is_wide ? 0x1p53 + 2 : 0x1p24 + 2;
	value *zero = num(&f, 0), *one = num(&f, 1), *minus = num(&f, -1), *y = p.im;
	value *x = of(&f, TC_ABS, p.re), *high = of(&f, TC_ABS, y), *limit = num(&f, most * most);
	value *left = sub(&f, one, x), *square = mul(&f, y, y), *is_near, *v, *far, *im;

	is_near = both(&f, is(&f, x, TC_CMP_LT, limit), is(&f, high, TC_CMP_LT, limit));
	far = over(&f, one, mul(&f, add(&f, over(&f, x, y), over(&f, y, x)), y));
	far = pick(&f, tc_build2(f.b, TC_OR, is_infinite(&f, p.re), is_infinite(&f, y)), zero, far);
	far = pick(&f, is(&f, mul(&f, high, num(&f, most)), TC_CMP_LT, x), over(&f, one, x), far);
	v = over(&f, x, add(&f, mul(&f, left, left), square));
	v = of(&f, TC_LOG_PLUS_ONE, mul(&f, pick(&f, is_near, v, far), num(&f, 4)));
	v = mul(&f, pick(&f, is(&f, p.re, TC_CMP_GE, zero), one, minus), v);
	im = sub(&f, mul(&f, left, add(&f, x, one)), square);
	im = tc_build2(f.b, TC_ATAN2, add(&f, y, y), im);
	far = mul(&f, pick(&f, is(&f, y, TC_CMP_GE, zero), one, minus), num(&f, acos(-1)));
	return joined(&f, mul(&f, v, num(&f, 0.25)), half(&f, pick(&f, is_near, im, far)));
}

/* ---- all ---- */

static const struct function {
	const char *name;
	value *(*real)(const struct fn *f, value *x);
	value *(*complex)(const struct fn *f, value *x);
} functions[] = {
	{ "acos", acos_real, acos_complex }, { "acosh", acosh_real, acosh_complex },
	{ "asin", asin_real, asin_complex }, { "asinh", asinh_real, asinh_complex },
	{ "atanh", atanh_real, atanh_complex }, { "cosh", cosh_any, cosh_any },
	{ "sinh", sinh_real, sinh_complex },
};

struct tc_value *tc_build_function(const struct tc_build *b, const char *name, struct tc_value *x)
{
	enum elem elem = (enum elem)x->type->elem, wide;
	bool is_complex = !x->type->is_tuple && elem_class(elem) == ELEM_CLASS_COMPLEX;
	struct fn f = { .b = b };

	if (x->type->is_tuple || (!is_complex && elem_class(elem) != ELEM_CLASS_FLOAT))
		return NULL;
	wide = is_complex || elem == ELEM_F64 ? elem : ELEM_F32;
	f.is_wide = wide == ELEM_F64 || wide == ELEM_C128;
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		if (strcmp(name, functions[i].name))
			continue;
		if (elem != wide)
			x = tc_build_convert(b, x, wide);
		f.t = x->type;
		x = (is_complex ? functions[i].complex : functions[i].real)(&f, x);
		return elem != wide ? tc_build_convert(b, x, elem) : x;
	}
	return NULL;
}

/* ---- the first of each row ---- */

bool tc_build_top_k(const struct tc_build *b, struct tc_value *x, int64_t k, bool largest_first,
		    struct tc_value *out[2])
{
	const struct tc_type *t = x->type, *types[2] = { t };
	struct tc_value *in[2] = { x }, *arg[4], *before;
	struct tc_build inner = { .c = b->c, .where = b->where };
	unsigned last = t->rank - 1u;
	struct tc_op *op;

	if (t->is_tuple || !elem_bytes(t->elem) || !t->rank || k < 0 || k > t->dim[last])
		return false;
	types[1] = tc_with_elem(b->c, t, ELEM_S32);
	in[1] = tc_build_iota(b, types[1], last);
	op = tc_build_place(b, tc_new(b->c, TC_SORT, 2, in, 2, types, 1));
	tc_set_int(b->c, op, "dimension", TC_ATTR_INT, last);
	tc_set_int(b->c, op, "is_stable", TC_ATTR_BOOL, 1);
	inner.block = tc_new_block(b->c, &op->regions[0]);
	for (unsigned i = 0; i < 4; i++)
		arg[i] = tc_new_arg(b->c, inner.block,
				    tc_tensor(b->c, (enum elem)types[i / 2]->elem, 0, NULL));
	before = tc_build_compare(&inner, largest_first ? TC_CMP_GT : TC_CMP_LT, arg[0], arg[1]);
	if (elem_class(t->elem) == ELEM_CLASS_FLOAT)
		tc_set_int(b->c, before->def, "compare_type", TC_ATTR_ENUM, TC_CMP_TOTALORDER);
	tc_build_return(&inner, 1, &before);
	for (unsigned i = 0; i < 2; i++)
		out[i] = tc_build_part(b, tc_out(op, i), last, 0, k);
	return true;
}
