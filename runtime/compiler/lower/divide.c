/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Eigenvectors of real symmetric tridiagonal matrices by halves (Cuppen, 1981): without what
 * couples two halves, the matrix is theirs; with it, T = Q (D + z z^T) Q^T, where D and Q are
 * the halves' eigenvalues and vectors. The eigenvalues of D + z z^T are the roots of f(x) = 1 +
 * sum of z_j^2 / (d_j - x), one between each d and the next. Halves are halved down to single
 * numbers, and all pairs of one size are joined at once.
 *
 * Nothing here depends on the numbers: the same ops for all, without LAPACK's walk through
 * the sorted d that takes out what is nearly the same.
 * - d is rounded to multiples of a part of a unit of the matrix's size, so that two are either
 *   the same or apart. Of those that are the same one, the head, has a root: a reflection
 *   turns their part of z to the head, and the others' eigenvalues are d.
 * - z of a head is at least a part of a unit: each root is strictly between two d.
 * - Roots are found by bisection over the bits of their distance from the nearer d, so all
 *   digits of that distance are right, whatever its size.
 * - The z for which the roots found are exact is computed from them, and vectors from
 *   that, so that they are orthogonal (Gu and Eisenstat, 1994).
 *
 * Arrays of pairs of numbers are [j, pair of halves, k]: j and k count the d of a pair.
 */
#include <math.h>

#include "runtime/compiler/lower/linalg.h"

enum {
	LARGEST_LEAF = 16,	/* what is padded to a power of two is at most that */
	PAD = 64,		/* d of what pads, beyond all of a matrix of elements below 2 */
};

/* Joining `pairs` pairs of halves to matrices of m. d, z and what is for each root: [pairs, m]. */
struct joining {
	const struct tc_build *b;
	const struct tc_type *flat, *all;
	struct tc_value *d, *z;
	struct tc_value *is_same;	/* d_j = d_k, [j, pair, k] */
	struct tc_value *is_head;
	struct tc_value *norm;		/* of the part of z that the head takes, or the least */
	struct tc_value *square;	/* its square for heads, else 0 */
	struct tc_value *origin;	/* the d that a root is nearer to */
	struct tc_value *side;		/* 1: the root is behind it; -1: before it */
	struct tc_value *tau;		/* root - origin */
	double unit, least;
};

static struct tc_value *number(const struct joining *g, double x)
{
	return tc_build_number(g->b, g->flat, x);
}

static struct tc_value *number_of_all(const struct joining *g, double x)
{
	return tc_build_number(g->b, g->all, x);
}

static struct tc_value *spread(const struct joining *g, struct tc_value *x, const int64_t *dims)
{
	return tc_build_broadcast(g->b, x, tc_with_elem(g->b->c, g->all,
							(enum elem)x->type->elem), dims);
}

/* x_j and x_k for all pairs of them. */
static struct tc_value *by_j(const struct joining *g, struct tc_value *x)
{
	static const int64_t dims[] = { 0, 1 }, turned[] = { 1, 0 };

	return spread(g, tc_build_transpose(g->b, x, turned), dims);
}

static struct tc_value *by_k(const struct joining *g, struct tc_value *x)
{
	static const int64_t dims[] = { 1, 2 };

	return spread(g, x, dims);
}

/* For each k over all j, by op from `first` on; and the sum. */
static struct tc_value *fold(const struct joining *g, enum tc_opcode op, struct tc_value *x,
			     double first)
{
	return tc_build_fold(g->b, op, x, first, 1u << 0);
}

static struct tc_value *sum(const struct joining *g, struct tc_value *x)
{
	return fold(g, TC_ADD, x, 0);
}

/* The sum over those whose d is the same. */
static struct tc_value *sum_of_same(const struct joining *g, struct tc_value *x)
{
	return sum(g, tc_build_select(g->b, g->is_same, by_j(g, x), number_of_all(g, 0)));
}

static struct tc_value *apart(const struct joining *g, struct tc_value *from)
{
	return tc_build2(g->b, TC_SUBTRACT, by_j(g, g->d), by_k(g, from));
}

/* f, at `origin` + x: far is d_j - origin_k. */
static struct tc_value *secular(const struct joining *g, struct tc_value *far, struct tc_value *x)
{
	struct tc_value *terms = tc_build2(g->b, TC_SUBTRACT, far, by_k(g, x));

	terms = tc_build2(g->b, TC_DIVIDE, by_j(g, g->square), terms);
	return tc_build2(g->b, TC_ADD, sum(g, terms), number(g, 1));
}

/* Rounds d, and finds the heads and what they have of z. */
static void find_heads(struct joining *g)
{
	const struct tc_build *b = g->b;
	const struct tc_type *s32 = tc_with_elem(b->c, g->all, ELEM_S32);
	struct tc_value *earlier, *steps;

	steps = tc_build2(b, TC_MULTIPLY, g->d, number(g, 2 / g->unit));
	steps = tc_build1(b, TC_FLOOR, tc_build2(b, TC_ADD, steps, number(g, 0.5)));
	g->d = tc_build2(b, TC_MULTIPLY, steps, number(g, g->unit / 2));
	g->is_same = tc_build_compare(b, TC_CMP_EQ, by_j(g, g->d), by_k(g, g->d));
	earlier = tc_build_compare(b, TC_CMP_LT, tc_build_iota(b, s32, 0),
				   tc_build_iota(b, s32, 2));
	earlier = tc_build2(b, TC_AND, earlier, g->is_same);
	earlier = sum(g, tc_build_convert(b, earlier, (enum elem)g->all->elem));
	g->is_head = tc_build_compare(b, TC_CMP_EQ, earlier, number(g, 0));
	g->norm = sum_of_same(g, tc_build2(b, TC_MULTIPLY, g->z, g->z));
	g->norm = tc_build2(b, TC_MAXIMUM, tc_build1(b, TC_SQRT, g->norm), number(g, g->least));
	g->square = tc_build2(b, TC_MULTIPLY, g->norm, g->norm);
	g->square = tc_build_select(b, g->is_head, g->square, number(g, 0));
}

/* Where each root is: the nearer of the two d beside it, and how far from that at most. */
static struct tc_value *find_origins(struct joining *g)
{
	const struct tc_build *b = g->b;
	struct tc_value *next, *is_last, *half, *total, *is_right, *far = apart(g, g->d);

	next = tc_build_select(b, tc_build_compare(b, TC_CMP_GT, far, number_of_all(g, 0)),
			       by_j(g, g->d), number_of_all(g, INFINITY));
	next = fold(g, TC_MINIMUM, next, INFINITY);
	is_last = tc_build_compare(b, TC_CMP_EQ, next, number(g, INFINITY));
	total = tc_build_broadcast(b, tc_build_sum(b, g->square, 1u << 1), g->flat,
				   (const int64_t[]){ 0 });
	half = tc_build2(b, TC_MULTIPLY, tc_build2(b, TC_SUBTRACT, next, g->d), number(g, 0.5));
	half = tc_build_select(b, is_last, total, half);
	is_right = tc_build_compare(b, TC_CMP_LT, secular(g, far, half), number(g, 0));
	is_right = tc_build2(b, TC_AND, is_right, tc_build1(b, TC_NOT, is_last));
	g->origin = tc_build_select(b, is_right, next, g->d);
	g->side = tc_build_select(b, is_right, number(g, -1), number(g, 1));
	return tc_build2(b, TC_MULTIPLY, half, number(g, 1 + 8 * g->unit));
}

struct bisection {
	const struct joining *g;
	struct tc_value *far;		/* d_j - origin_k */
	struct tc_value *least, *most;	/* |tau| */
};

/* f at side * t, so that it grows with t. */
static struct tc_value *at_distance(const struct bisection *s, const struct tc_build *b,
				    struct tc_value *t)
{
	struct joining g = *s->g;

	g.b = b;
	t = tc_build2(b, TC_MULTIPLY, g.side, t);
	return tc_build2(b, TC_MULTIPLY, secular(&g, s->far, t), g.side);
}

/* state: the bits of |tau| at least, and at most. */
static void bisect(const struct tc_build *b, struct tc_value *i, struct tc_value **state,
		   void *arg)
{
	const struct bisection *s = arg;
	struct tc_value *mid, *f;

	(void)i;
	mid = tc_build2(b, TC_SUBTRACT, state[1], state[0]);
	mid = tc_build2(b, TC_SHIFT_RIGHT_LOGICAL, mid, tc_build_number(b, mid->type, 1));
	mid = tc_build2(b, TC_ADD, state[0], mid);
	f = at_distance(s, b, tc_build(b, TC_BITCAST_CONVERT, s->g->flat, 1, &mid));
	f = tc_build_compare(b, TC_CMP_LT, f, tc_build_number(b, f->type, 0));
	state[0] = tc_build_select(b, f, mid, state[0]);
	state[1] = tc_build_select(b, f, state[1], mid);
}

/* state: two distances, and f at each. Where f is the same the second is as good as can be. */
static void secant(const struct tc_build *b, struct tc_value *i, struct tc_value **state,
		   void *arg)
{
	const struct bisection *s = arg;
	struct tc_value *step, *next, *slope, *none;

	(void)i;
	slope = tc_build2(b, TC_SUBTRACT, state[3], state[2]);
	none = tc_build_compare(b, TC_CMP_EQ, slope, tc_build_number(b, slope->type, 0));
	step = tc_build2(b, TC_SUBTRACT, state[1], state[0]);
	step = tc_build2(b, TC_DIVIDE, tc_build2(b, TC_MULTIPLY, state[3], step), slope);
	next = tc_build2(b, TC_SUBTRACT, state[1], step);
	next = tc_build2(b, TC_MINIMUM, tc_build2(b, TC_MAXIMUM, next, s->least), s->most);
	next = tc_build_select(b, none, state[1], next);
	state[0] = state[1];
	state[2] = state[3];
	state[1] = next;
	state[3] = at_distance(s, b, next);
}

/*
 * |tau| is above 2^-100 (2^-240). Bisection leaves what is a 32nd of it or less. As all poles are
 * |tau| or more away from it, f is nearly straight there: each secant has as many
 * digits right as the two before it together.
 */
static void find_roots(struct joining *g)
{
	const struct tc_build *b = g->b;
	bool is_single = g->flat->elem == ELEM_F32;
	const struct tc_type *bits = tc_with_elem(b->c, g->flat, is_single ? ELEM_S32 : ELEM_S64);
	struct tc_value *state[4];
	struct bisection s = { .g = g, .most = find_origins(g) };
	struct tc_loop loop = { .n = is_single ? 12 : 13, .body = bisect, .arg = &s };

	s.far = apart(g, g->origin);
	state[0] = number(g, is_single ? 0x1p-100 : 0x1p-240);
	state[1] = s.most;
	for (unsigned i = 0; i < 2; i++)
		state[i] = tc_build(b, TC_BITCAST_CONVERT, bits, 1, &state[i]);
	tc_build_loop(b, &loop, 2, state);
	for (unsigned i = 0; i < 2; i++) {
		state[i] = tc_build(b, TC_BITCAST_CONVERT, g->flat, 1, &state[i]);
		state[2 + i] = at_distance(&s, b, state[i]);
	}
	s.least = state[0];
	s.most = state[1];
	loop = (struct tc_loop){ .n = is_single ? 4 : 6, .body = secant, .arg = &s };
	tc_build_loop(b, &loop, 4, state);
	g->tau = tc_build2(b, TC_MULTIPLY, g->side, state[1]);
}

/* d_j - root_k */
static struct tc_value *from_roots(const struct joining *g)
{
	return tc_build2(g->b, TC_SUBTRACT, apart(g, g->origin), by_k(g, g->tau));
}

/* |z| of heads for which the roots are exact: the square is the product of all (root_k - d_j)
 * over that of (d_k - d_j). Others have their head's. */
static struct tc_value *renew(const struct joining *g)
{
	const struct tc_build *b = g->b;
	struct tc_value *ratio, *rest = from_roots(g), *z;

	ratio = tc_build_select(b, g->is_same, number_of_all(g, -1), apart(g, g->d));
	ratio = tc_build2(b, TC_DIVIDE, rest, ratio);
	ratio = tc_build_select(b, by_k(g, g->is_head), ratio, number_of_all(g, 1));
	z = tc_build_fold(b, TC_MULTIPLY, ratio, 1, 1u << 2);
	z = tc_build_transpose(b, z, (const int64_t[]){ 1, 0 });
	return tc_build1(b, TC_SQRT, tc_build2(b, TC_MAXIMUM, z, number(g, 0)));
}

/* The eigenvectors as columns, [j, pair, k], in terms of the halves'. */
static struct tc_value *vectors(const struct joining *g)
{
	const struct tc_build *b = g->b;
	const enum elem elem = (enum elem)g->flat->elem;
	const struct tc_type *s32 = tc_with_elem(b->c, g->all, ELEM_S32);
	struct tc_value *is_any, *to, *x, *norm, *first, *sign, *u, *less, *eye;

	/* to: where the reflection takes the head. */
	is_any = tc_build_compare(b, TC_CMP_GT, g->norm, number(g, g->least));
	to = tc_build_convert(b, g->is_head, elem);
	u = to;
	to = tc_build_select(b, is_any, tc_build2(b, TC_DIVIDE, g->z, g->norm), to);
	/* Of heads. Over the nearest distance, so that none is above 1. */
	x = tc_build2(b, TC_DIVIDE, by_k(g, g->tau), from_roots(g));
	x = tc_build2(b, TC_MULTIPLY, by_j(g, tc_build2(b, TC_MULTIPLY, to, renew(g))), x);
	norm = tc_build1(b, TC_SQRT, sum(g, tc_build2(b, TC_MULTIPLY, x, x)));
	x = tc_build2(b, TC_DIVIDE, x, by_k(g, norm));
	/* Of others: the reflection's column. */
	first = sum_of_same(g, tc_build2(b, TC_MULTIPLY, u, to));
	sign = tc_build_select(b, tc_build_compare(b, TC_CMP_LT, first, number(g, 0)),
			       number(g, -1), number(g, 1));
	u = tc_build2(b, TC_ADD, to, tc_build2(b, TC_MULTIPLY, u, sign));
	less = tc_build2(b, TC_ADD, number(g, 1), tc_build1(b, TC_ABS, first));
	less = tc_build2(b, TC_DIVIDE, u, less);
	less = tc_build2(b, TC_MULTIPLY, by_j(g, u), by_k(g, less));
	eye = tc_build_compare(b, TC_CMP_EQ, tc_build_iota(b, s32, 0), tc_build_iota(b, s32, 2));
	less = tc_build2(b, TC_SUBTRACT, tc_build_convert(b, eye, elem), less);
	less = tc_build_select(b, g->is_same, less, number_of_all(g, 0));
	return tc_build_select(b, by_k(g, g->is_head), x, less);
}

/* What halves have: values [2 pairs, h], vectors as columns [2 pairs, h, h]. */
struct halves {
	struct tc_value *values, *vectors;
};

/* z: the last row of a first half's vectors and the first of the second's, by sqrt |e|, the
 * second by e's sign; e [pairs, 1]. */
static struct tc_value *coupling(const struct tc_build *b, const struct halves *x,
				 struct tc_value *e)
{
	int64_t pairs = e->type->dim[0], h = x->values->type->dim[1];
	const int64_t four[] = { pairs, 2, h, h }, half[] = { pairs, h };
	const struct tc_type *t = tc_tensor(b->c, (enum elem)e->type->elem, 2, half);
	struct tc_value *q = tc_build_reshape(b, x->vectors, 4, four), *part[2], *by;

	for (unsigned i = 0; i < 2; i++) {
		part[i] = tc_build_part(b, q, 1, i, 1);
		part[i] = tc_build_part(b, part[i], 2, i ? 0 : h - 1, 1);
		part[i] = tc_build_reshape(b, part[i], 2, half);
		by = tc_build1(b, TC_SQRT, tc_build1(b, TC_ABS, e));
		if (i)
			by = tc_build2(b, TC_MULTIPLY, by, tc_build1(b, TC_SIGN, e));
		by = tc_build_broadcast(b, by, t, (const int64_t[]){ 0, 1 });
		part[i] = tc_build2(b, TC_MULTIPLY, part[i], by);
	}
	return tc_build_join(b, 2, part, 1);
}

/* Pairs of halves that e [pairs, 1] couples, joined. */
static void join(const struct tc_build *b, struct halves *x, struct tc_value *e)
{
	const enum elem elem = (enum elem)e->type->elem;
	int64_t pairs = e->type->dim[0], h = x->values->type->dim[1], m = 2 * h;
	const int64_t flat[] = { pairs, m }, all[] = { m, pairs, m }, rows[] = { 2 * pairs, h, m };
	const int64_t whole[] = { pairs, m, m };
	struct joining g = { .b = b, .flat = tc_tensor(b->c, elem, 2, flat),
			     .all = tc_tensor(b->c, elem, 3, all),
			     .unit = tc_linalg_unit(elem) };
	struct tc_value *v;

	g.least = g.unit / (8 * sqrt((double)m));
	g.d = tc_build_reshape(b, x->values, 2, flat);
	g.z = coupling(b, x, e);
	find_heads(&g);
	find_roots(&g);
	v = tc_build_transpose(b, vectors(&g), (const int64_t[]){ 1, 0, 2 });
	v = tc_linalg_times(b, x->vectors, tc_build_reshape(b, v, 3, rows));
	x->vectors = tc_build_reshape(b, v, 3, whole);
	v = tc_build2(b, TC_ADD, g.origin, g.tau);
	x->values = tc_build_select(b, g.is_head, v, g.d);
}

/* Each 2 size-th of e [blocks, n] from size - 1 on, as [.., 1]. */
static struct tc_value *between(const struct tc_build *b, struct tc_value *e, int64_t size)
{
	const int64_t start[] = { 0, size - 1 }, step[] = { 1, 2 * size };
	const int64_t dim[] = { e->type->dim[0], e->type->dim[1] / (2 * size) };
	const int64_t column[] = { dim[0] * dim[1], 1 };

	e = tc_build_steps(b, e, start, step, tc_tensor(b->c, (enum elem)e->type->elem, 2, dim));
	return tc_build_reshape(b, e, 2, column);
}

/* x [batch, n] with more columns behind, or before: `from` + 0, 1, .. or zeros. */
static struct tc_value *extend(const struct tc_build *b, struct tc_value *x, int64_t before,
			       int64_t behind, double from)
{
	const int64_t none[] = { 0, 0 }, low[] = { 0, before }, high[] = { 0, behind };
	const struct tc_type *t = x->type, *scalar = tc_tensor(b->c, (enum elem)t->elem, 0, NULL);
	int64_t n = t->dim[1];
	struct tc_value *number, *is_new;

	if (!before && !behind)
		return x;
	x = tc_build_pad(b, x, tc_build_number(b, scalar, 0), low, high, none);
	if (from == 0)
		return x;
	number = tc_build_iota(b, x->type, 1);
	is_new = tc_build_compare(b, TC_CMP_GE, number,
				  tc_build_number(b, x->type, (double)n));
	number = tc_build2(b, TC_ADD, number, tc_build_number(b, x->type, from));
	return tc_build_select(b, is_new, number, x);
}

/* Blocks of `size` along d, which e [blocks, size] couples, but for its last column. */
static struct halves solve_leaves(const struct tc_build *b, struct tc_value *d,
				  struct tc_value *e)
{
	int64_t blocks = d->type->dim[0], size = d->type->dim[1], wide = 1;
	struct halves x;

	while (wide < size)
		wide *= 2;
	d = extend(b, d, 0, wide - size, 2 * PAD);
	e = extend(b, tc_build_part(b, e, 1, 0, size - 1), 0, wide - size + 1, 0);
	x.values = tc_build_reshape(b, d, 2, (int64_t[]){ blocks * wide, 1 });
	x.vectors = tc_build_number(b, tc_tensor(b->c, (enum elem)d->type->elem, 3,
						 (int64_t[]){ blocks * wide, 1, 1 }), 1);
	for (int64_t h = 1; h < wide; h *= 2)
		join(b, &x, between(b, e, h));
	x.values = tc_build_part(b, x.values, 1, 0, size);
	for (unsigned dim = 1; dim < 3; dim++)
		x.vectors = tc_build_part(b, x.vectors, dim, 0, size);
	return x;
}

void tc_linalg_divide(const struct tc_build *b, struct tc_value *d, struct tc_value *e,
		      struct tc_value **values, struct tc_value **vectors)
{
	int64_t batch = d->type->dim[0], n = d->type->dim[1], leaf = n, leaves = 1, wide;
	struct tc_value *both[2], *size, *e_size;
	struct halves x;

	for (; leaf > LARGEST_LEAF; leaves *= 2)
		leaf = (leaf + 1) / 2;
	leaf = (n + leaves - 1) / leaves;
	wide = leaf * leaves;
	e = extend(b, e, 0, 1, 0);
	both[0] = d;
	both[1] = e;
	size = tc_linalg_power(b, tc_build_join(b, 2, both, 1), 1u << 1);
	d = tc_build2(b, TC_DIVIDE, d, tc_build_broadcast(b, size, d->type, (int64_t[]){ 0, 1 }));
	e = tc_build2(b, TC_DIVIDE, e, tc_build_broadcast(b, size, e->type, (int64_t[]){ 0, 1 }));
	d = extend(b, d, 0, wide - n, PAD);
	e = extend(b, e, 0, wide - n, 0);
	/* What couples two is taken from both, and z z^T gives it back. */
	e_size = tc_build1(b, TC_ABS, e);
	d = tc_build2(b, TC_SUBTRACT, d, e_size);
	e_size = extend(b, tc_build_part(b, e_size, 1, 0, wide - 1), 1, 0, 0);
	d = tc_build2(b, TC_SUBTRACT, d, e_size);
	d = tc_build_reshape(b, d, 2, (int64_t[]){ batch * leaves, leaf });
	x = solve_leaves(b, d, tc_build_reshape(b, e, 2, (int64_t[]){ batch * leaves, leaf }));
	for (int64_t h = leaf; h < wide; h *= 2)
		join(b, &x, between(b, e, h));
	*values = tc_build_part(b, x.values, 1, 0, n);
	*values = tc_build2(b, TC_MULTIPLY, *values,
			    tc_build_broadcast(b, size, (*values)->type, (int64_t[]){ 0, 1 }));
	*vectors = x.vectors;
	for (unsigned i = 1; i < 3; i++)
		*vectors = tc_build_part(b, *vectors, i, 0, n);
}
