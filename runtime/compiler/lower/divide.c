/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Eigenvectors of real symmetric tridiagonal matrices by halves (Cuppen, 1981): without what
 * couples two halves, the matrix is theirs; with it, T = Q (D + z z^T) Q^T, where D and Q are
 * the halves' eigenvalues and vectors. The eigenvalues of D + z z^T are the roots of f(x) = 1 +
 * sum of z_j^2 / (d_j - x), one between each d and the next. Halves are halved down to two
 * numbers, and all pairs of one size are joined at once.
 *
 * And singular vectors of real upper bidiagonal ones (Gu and Eisenstat, 1995): the first half's
 * last row couples the halves. Without it that row is zero, its value 0; with it, B = U M V^T,
 * where M is D but for that row, which is z. The values are the roots of f(x) = 1 + sum of
 * z_j^2 / (d_j^2 - x^2). The last row of all is zero, so that the halves are alike. Where that
 * row would make a power of two one more, which is padded to twice as much, the matrix has none:
 * its own last row is left out until all others are joined, and then couples these, the first
 * half, with a second one of nothing.
 *
 * Nothing here depends on the numbers: the same ops for all, without LAPACK's walk through
 * the sorted d that takes out what is nearly the same.
 * - d is rounded to multiples of a part of a unit of the matrix's size, so that two are either
 *   the same or apart. Of those that are the same one, the head, has a root: a reflection
 *   turns their part of z to the head, and the others' eigenvalues are d. Among zeros of M the
 *   head is the row that couples: a reflection of columns leaves the others' rows zero.
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
	ONE_MORE = LARGEST_LEAF + 1,	/* of bidiagonal matrices, which have a row of zeros */
	/* Values of what pads, beyond all of a matrix of elements below 2; and in leaves. */
	PAD = 64,
	PAD_OF_LEAVES = 4 * PAD,
};

/* Joining `pairs` pairs of halves to matrices of m. d, z and what is for each root: [pairs, m]. */
struct joining {
	const struct tc_build *b;
	bool is_bidiagonal;
	int64_t coupling;		/* its row that couples */
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

/* What f is of, about an origin for each k: [j, pair, k], so that none has to be spread again for
 * each x. */
struct about {
	struct tc_value *far, *near;	/* d_j - origin_k, and the sum, of bidiagonal matrices */
	struct tc_value *square;
};

static struct about about(const struct joining *g, struct tc_value *origin)
{
	struct about f = { .far = apart(g, origin) };

	if (g->is_bidiagonal)
		f.near = tc_build2(g->b, TC_ADD, by_j(g, g->d), by_k(g, origin));
	/* A maximum, as a broadcast alone would be a view. */
	f.square = tc_build2(g->b, TC_MAXIMUM, by_j(g, g->square), number_of_all(g, 0));
	return f;
}

/* f, at the origin + x. */
static struct tc_value *secular(const struct joining *g, const struct about *f,
				struct tc_value *x)
{
	struct tc_value *terms = tc_build2(g->b, TC_SUBTRACT, f->far, by_k(g, x));

	if (f->near)
		terms = tc_build2(g->b, TC_MULTIPLY, terms,
				  tc_build2(g->b, TC_ADD, f->near, by_k(g, x)));
	terms = tc_build2(g->b, TC_DIVIDE, f->square, terms);
	return tc_build2(g->b, TC_ADD, sum(g, terms), number(g, 1));
}

/* Of j or k: who is before whom among the same d. */
static struct tc_value *rank_of(const struct joining *g, unsigned dim)
{
	const struct tc_type *s32 = tc_with_elem(g->b->c, g->all, ELEM_S32);
	struct tc_value *number = tc_build_iota(g->b, s32, dim), *is_it;

	if (!g->is_bidiagonal)
		return number;
	is_it = tc_build_compare(g->b, TC_CMP_EQ, number,
				 tc_build_number(g->b, s32, (double)g->coupling));
	return tc_build_select(g->b, is_it, tc_build_number(g->b, s32, -1), number);
}

/* Rounds d, and finds the heads and what they have of z. */
static void find_heads(struct joining *g)
{
	const struct tc_build *b = g->b;
	struct tc_value *earlier, *steps;

	steps = tc_build2(b, TC_MULTIPLY, g->d, number(g, 2 / g->unit));
	steps = tc_build1(b, TC_FLOOR, tc_build2(b, TC_ADD, steps, number(g, 0.5)));
	g->d = tc_build2(b, TC_MULTIPLY, steps, number(g, g->unit / 2));
	g->is_same = tc_build_compare(b, TC_CMP_EQ, by_j(g, g->d), by_k(g, g->d));
	earlier = tc_build_compare(b, TC_CMP_LT, rank_of(g, 0), rank_of(g, 2));
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
	struct tc_value *next, *is_last, *half, *total, *is_right;
	struct about f = about(g, g->d);

	next = tc_build_select(b, tc_build_compare(b, TC_CMP_GT, f.far, number_of_all(g, 0)),
			       by_j(g, g->d), number_of_all(g, INFINITY));
	next = fold(g, TC_MINIMUM, next, INFINITY);
	is_last = tc_build_compare(b, TC_CMP_EQ, next, number(g, INFINITY));
	total = tc_build_broadcast(b, tc_build_sum(b, g->square, 1u << 1), g->flat,
				   (const int64_t[]){ 0 });
	if (g->is_bidiagonal)
		total = tc_build1(b, TC_SQRT, total);
	half = tc_build2(b, TC_MULTIPLY, tc_build2(b, TC_SUBTRACT, next, g->d), number(g, 0.5));
	half = tc_build_select(b, is_last, total, half);
	is_right = tc_build_compare(b, TC_CMP_LT, secular(g, &f, half), number(g, 0));
	is_right = tc_build2(b, TC_AND, is_right, tc_build1(b, TC_NOT, is_last));
	g->origin = tc_build_select(b, is_right, next, g->d);
	g->side = tc_build_select(b, is_right, number(g, -1), number(g, 1));
	return tc_build2(b, TC_MULTIPLY, half, number(g, 1 + 8 * g->unit));
}

struct bisection {
	const struct joining *g;
	struct about f;
	struct tc_value *least, *most;	/* |tau| */
};

/* f at side * t, so that it grows with t. */
static struct tc_value *at_distance(const struct bisection *s, const struct tc_build *b,
				    struct tc_value *t)
{
	struct joining g = *s->g;

	g.b = b;
	t = tc_build2(b, TC_MULTIPLY, g.side, t);
	return tc_build2(b, TC_MULTIPLY, secular(&g, &s->f, t), g.side);
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

/* What |tau| is above. Of a bidiagonal matrix's smallest value, whose d is 0, more, so that its
 * square is a number. */
static struct tc_value *least_distance(const struct joining *g)
{
	bool is_single = g->flat->elem == ELEM_F32;
	struct tc_value *least = number(g, is_single ? 0x1p-100 : 0x1p-240), *is_zero;

	if (!g->is_bidiagonal)
		return least;
	is_zero = tc_build_compare(g->b, TC_CMP_EQ, g->origin, number(g, 0));
	return tc_build_select(g->b, is_zero, number(g, is_single ? 0x1p-62 : 0x1p-124), least);
}

/*
 * Bisection leaves what is a 32nd of it or less. As all poles are
 * |tau| or more away from it, f is nearly straight there: each secant has as many
 * digits right as the two before it together. Through two that are right already, whose f is
 * rounding alone, one may lead anywhere, so the last counts only if its f is no farther from 0.
 */
static void find_roots(struct joining *g)
{
	const struct tc_build *b = g->b;
	bool is_single = g->flat->elem == ELEM_F32;
	const struct tc_type *bits = tc_with_elem(b->c, g->flat, is_single ? ELEM_S32 : ELEM_S64);
	struct tc_value *state[4], *is_nearer;
	struct bisection s = { .g = g, .most = find_origins(g) };
	struct tc_loop loop = { .n = is_single ? 12 : 13, .body = bisect, .arg = &s };

	s.f = about(g, g->origin);
	state[0] = least_distance(g);
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
	for (unsigned i = 0; i < 2; i++)
		state[2 + i] = tc_build1(b, TC_ABS, state[2 + i]);
	is_nearer = tc_build_compare(b, TC_CMP_LE, state[3], state[2]);
	state[1] = tc_build_select(b, is_nearer, state[1], state[0]);
	g->tau = tc_build2(b, TC_MULTIPLY, g->side, state[1]);
}

/* d_j - root_k */
static struct tc_value *from_roots(const struct joining *g)
{
	return tc_build2(g->b, TC_SUBTRACT, apart(g, g->origin), by_k(g, g->tau));
}

/* d_j + root_k */
static struct tc_value *to_roots(const struct joining *g)
{
	return tc_build2(g->b, TC_ADD, by_j(g, g->d),
			 by_k(g, tc_build2(g->b, TC_ADD, g->origin, g->tau)));
}

/* The square root of the product of all x_j / y_j of heads k, without y_j where d_k is d_j. */
static struct tc_value *root_of_ratios(const struct joining *g, struct tc_value *x,
				       struct tc_value *y, double one)
{
	const struct tc_build *b = g->b;
	struct tc_value *z;

	y = tc_build_select(b, g->is_same, number_of_all(g, one), y);
	z = tc_build2(b, TC_DIVIDE, x, y);
	z = tc_build_select(b, by_k(g, g->is_head), z, number_of_all(g, 1));
	z = tc_build_fold(b, TC_MULTIPLY, z, 1, 1u << 2);
	z = tc_build_transpose(b, z, (const int64_t[]){ 1, 0 });
	return tc_build1(b, TC_SQRT, tc_build2(b, TC_MAXIMUM, z, number(g, 0)));
}

/* |z| of heads for which the roots are exact: the square is the product of all (root_k - d_j)
 * over that of (d_k - d_j), or of their squares' differences. Others have their head's. */
static struct tc_value *renew(const struct joining *g)
{
	const struct tc_build *b = g->b;
	struct tc_value *z = root_of_ratios(g, from_roots(g), apart(g, g->d), -1), *sums;

	if (!g->is_bidiagonal)
		return z;
	sums = tc_build2(b, TC_ADD, by_j(g, g->d), by_k(g, g->d));
	return tc_build2(b, TC_MULTIPLY, z, root_of_ratios(g, to_roots(g), sums, 1));
}

static struct tc_value *eye(const struct joining *g)
{
	const struct tc_type *s32 = tc_with_elem(g->b->c, g->all, ELEM_S32);
	struct tc_value *is_one;

	is_one = tc_build_compare(g->b, TC_CMP_EQ, tc_build_iota(g->b, s32, 0),
				  tc_build_iota(g->b, s32, 2));
	return tc_build_convert(g->b, is_one, (enum elem)g->all->elem);
}

static struct tc_value *normalize(const struct joining *g, struct tc_value *x)
{
	struct tc_value *norm = sum(g, tc_build2(g->b, TC_MULTIPLY, x, x));

	return tc_build2(g->b, TC_DIVIDE, x, by_k(g, tc_build1(g->b, TC_SQRT, norm)));
}

/* Columns of those that are no heads: those of the reflection that takes the head to `to`. */
static struct tc_value *reflection(const struct joining *g, struct tc_value *to)
{
	const struct tc_build *b = g->b;
	struct tc_value *first, *sign, *u, *less;

	u = tc_build_convert(b, g->is_head, (enum elem)g->flat->elem);
	first = sum_of_same(g, tc_build2(b, TC_MULTIPLY, u, to));
	sign = tc_build_select(b, tc_build_compare(b, TC_CMP_LT, first, number(g, 0)),
			       number(g, -1), number(g, 1));
	u = tc_build2(b, TC_ADD, to, tc_build2(b, TC_MULTIPLY, u, sign));
	less = tc_build2(b, TC_ADD, number(g, 1), tc_build1(b, TC_ABS, first));
	less = tc_build2(b, TC_DIVIDE, u, less);
	less = tc_build2(b, TC_MULTIPLY, by_j(g, u), by_k(g, less));
	less = tc_build2(b, TC_SUBTRACT, eye(g), less);
	return tc_build_select(b, g->is_same, less, number_of_all(g, 0));
}

/*
 * The left vectors of M, of what is v before it is normalized: d_j v_j / root, and in the row
 * that couples -1 where v_j is z_j / (d_j^2 - root^2). `others`: of those that are no heads.
 */
static struct tc_value *left_vectors(const struct joining *g, struct tc_value *v,
				     struct tc_value *others)
{
	const struct tc_build *b = g->b;
	const struct tc_type *s32 = tc_with_elem(b->c, g->all, ELEM_S32);
	struct tc_value *root = tc_build2(b, TC_ADD, g->origin, g->tau), *row, *is_row, *is_zero;

	row = tc_build2(b, TC_DIVIDE, tc_build2(b, TC_ADD, g->origin, root), root);
	row = tc_build1(b, TC_NEGATE, tc_build2(b, TC_MULTIPLY, row, g->tau));
	is_row = tc_build_compare(b, TC_CMP_EQ, tc_build_iota(b, s32, 0),
				  tc_build_number(b, s32, (double)g->coupling));
	v = tc_build2(b, TC_MULTIPLY, v, by_j(g, g->d));
	v = tc_build2(b, TC_DIVIDE, v, by_k(g, root));
	v = normalize(g, tc_build_select(b, is_row, by_k(g, row), v));
	is_zero = tc_build_compare(b, TC_CMP_EQ, g->d, number(g, 0));
	others = tc_build_select(b, by_k(g, is_zero), eye(g), others);
	return tc_build_select(b, by_k(g, g->is_head), v, others);
}

/* The vectors as columns, [j, pair, k], in terms of the halves'; left: of M, if asked for. */
static struct tc_value *vectors(const struct joining *g, struct tc_value **left)
{
	const struct tc_build *b = g->b;
	struct tc_value *is_any, *to, *x, *near, *others;

	/* to: where the reflection takes the head. */
	is_any = tc_build_compare(b, TC_CMP_GT, g->norm, number(g, g->least));
	to = tc_build_convert(b, g->is_head, (enum elem)g->flat->elem);
	to = tc_build_select(b, is_any, tc_build2(b, TC_DIVIDE, g->z, g->norm), to);
	/* Of heads. Over the nearest distance, so that none is large. */
	x = tc_build2(b, TC_DIVIDE, by_k(g, g->tau), from_roots(g));
	if (g->is_bidiagonal) {
		near = tc_build2(b, TC_ADD, g->origin, tc_build2(b, TC_ADD, g->origin, g->tau));
		x = tc_build2(b, TC_MULTIPLY, x, tc_build2(b, TC_DIVIDE, by_k(g, near),
							   to_roots(g)));
	}
	x = tc_build2(b, TC_MULTIPLY, by_j(g, tc_build2(b, TC_MULTIPLY, to, renew(g))), x);
	others = reflection(g, to);
	if (left)
		*left = left_vectors(g, x, others);
	return tc_build_select(b, by_k(g, g->is_head), normalize(g, x), others);
}

/*
 * What halves have: values [2 pairs, h], vectors as columns [2 pairs, r, h]: all h rows, or the
 * first and the last. Of a bidiagonal matrix these are those on the right, and, unless they
 * are not asked for, `left` are the others.
 */
struct halves {
	struct tc_value *values, *vectors, *left;
	bool is_bidiagonal;
	bool are_single;	/* the second one of each pair has nothing, and is not there */
};

/* The row of vectors that the other half of a pair is next to: the last of the first half, the
 * first of the second, [pairs, h]. */
static struct tc_value *row_beside(const struct tc_build *b, const struct halves *x, unsigned i)
{
	const struct tc_type *t = x->vectors->type;
	int64_t halves = x->are_single ? 1 : 2, pairs = t->dim[0] / halves;
	int64_t r = t->dim[1], h = t->dim[2];
	struct tc_value *q;

	q = tc_build_reshape(b, x->vectors, 4, (int64_t[]){ pairs, halves, r, h });
	q = tc_build_part(b, tc_build_part(b, q, 1, i, 1), 2, i ? 0 : r - 1, 1);
	return tc_build_reshape(b, q, 2, (int64_t[]){ pairs, h });
}

/* z: these rows by what is in the row that couples; or by sqrt |e|, the second by e's sign. d and
 * e: [pairs, 1]. */
static struct tc_value *coupling(const struct tc_build *b, const struct halves *x,
				 struct tc_value *d, struct tc_value *e)
{
	struct tc_value *part[2], *by[2] = { d, e };
	unsigned halves = x->are_single ? 1 : 2;

	if (!x->is_bidiagonal) {
		by[0] = tc_build1(b, TC_SQRT, tc_build1(b, TC_ABS, e));
		by[1] = tc_build2(b, TC_MULTIPLY, by[0], tc_build1(b, TC_SIGN, e));
	}
	for (unsigned i = 0; i < halves; i++) {
		part[i] = row_beside(b, x, i);
		by[i] = tc_build_broadcast(b, by[i], part[i]->type, (const int64_t[]){ 0, 1 });
		part[i] = tc_build2(b, TC_MULTIPLY, part[i], by[i]);
	}
	return tc_build_join(b, halves, part, 1);
}

/* The halves' vectors [2 pairs, r, h] times v [j, pair, k]: [pairs, 2 r, 2 h]; of the first and
 * the last row, these. Those of single ones [pairs, r, m]. */
static struct tc_value *combine(const struct tc_build *b, struct tc_value *x, struct tc_value *v)
{
	int64_t pairs = v->type->dim[1], m = v->type->dim[2], h = m / 2, r = x->type->dim[1];
	const int64_t rows[] = { 2 * pairs, h, m }, four[] = { pairs, 2, r, m };
	const int64_t whole[] = { pairs, 2 * r, m };
	struct tc_value *part[2];

	v = tc_build_transpose(b, v, (const int64_t[]){ 1, 0, 2 });
	if (x->type->dim[0] == pairs)
		return tc_linalg_times(b, x, v);
	v = tc_linalg_times(b, x, tc_build_reshape(b, v, 3, rows));
	if (r == h)
		return tc_build_reshape(b, v, 3, whole);
	v = tc_build_reshape(b, v, 4, four);
	for (unsigned i = 0; i < 2; i++) {
		part[i] = tc_build_part(b, tc_build_part(b, v, 1, i, 1), 2, i ? r - 1 : 0, 1);
		part[i] = tc_build_reshape(b, part[i], 3, (int64_t[]){ pairs, 1, m });
	}
	return tc_build_join(b, 2, part, 1);
}

/* Pairs of halves that d and e [pairs, 1] couple, joined; of single ones e does not count. */
static void join(const struct tc_build *b, struct halves *x, struct tc_value *d,
		 struct tc_value *e)
{
	const enum elem elem = (enum elem)e->type->elem;
	int64_t pairs = e->type->dim[0], h = x->values->type->dim[1];
	int64_t m = x->are_single ? h : 2 * h;
	const int64_t flat[] = { pairs, m }, all[] = { m, pairs, m };
	struct joining g = { .b = b, .flat = tc_tensor(b->c, elem, 2, flat),
			     .all = tc_tensor(b->c, elem, 3, all),
			     .is_bidiagonal = x->is_bidiagonal, .coupling = h - 1,
			     .unit = tc_linalg_unit(elem) };
	struct tc_value *v, *left;

	g.least = g.unit / (8 * sqrt((double)m));
	g.d = tc_build_reshape(b, x->values, 2, flat);
	g.z = coupling(b, x, d, e);
	find_heads(&g);
	find_roots(&g);
	v = vectors(&g, x->left ? &left : NULL);
	x->vectors = combine(b, x->vectors, v);
	if (x->left)
		x->left = combine(b, x->left, left);
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

/* x [batch, n] with more columns behind, or before, that are all `by`. */
static struct tc_value *extend(const struct tc_build *b, struct tc_value *x, int64_t before,
			       int64_t behind, double by)
{
	const int64_t none[] = { 0, 0 }, low[] = { 0, before }, high[] = { 0, behind };
	const struct tc_type *scalar = tc_tensor(b->c, (enum elem)x->type->elem, 0, NULL);

	if (!before && !behind)
		return x;
	return tc_build_pad(b, x, tc_build_number(b, scalar, by), low, high, none);
}

/* Joins from blocks of `from` on to those of `to`, along d and e [blocks, n]. */
static void join_all(const struct tc_build *b, struct halves *x, struct tc_value *d,
		     struct tc_value *e, int64_t from, int64_t to)
{
	for (; from < to; from *= 2)
		join(b, x, x->is_bidiagonal ? between(b, d, from) : NULL, between(b, e, from));
}

/* [x, y; z, w] of numbers [n, 1] each. */
static struct tc_value *square_of(const struct tc_build *b, struct tc_value *x, struct tc_value *y,
				  struct tc_value *z, struct tc_value *w)
{
	struct tc_value *part[] = { x, y, z, w };
	const int64_t square[] = { x->type->dim[0], 2, 2 };

	return tc_build_reshape(b, tc_build_join(b, 4, part, 1), 3, square);
}

/* Blocks of two, d of which e was taken from: by Jacobi's rotation, of the smaller angle. */
static struct halves begin(const struct tc_build *b, struct tc_value *d, struct tc_value *e)
{
	const int64_t numbers[] = { d->type->dim[0] * d->type->dim[1] / 2, 1 };
	const struct tc_type *t = tc_tensor(b->c, (enum elem)d->type->elem, 2, numbers);
	struct tc_value *x[2], *by, *tan, *cos, *sin, *e_size, *none;
	struct halves h = { NULL };

	e = between(b, e, 1);
	e_size = tc_build1(b, TC_ABS, e);
	d = tc_build_reshape(b, d, 2, (int64_t[]){ numbers[0], 2 });
	for (unsigned i = 0; i < 2; i++)
		x[i] = tc_build2(b, TC_ADD, tc_build_part(b, d, 1, i, 1), e_size);
	by = tc_build2(b, TC_SUBTRACT, x[1], x[0]);
	by = tc_build2(b, TC_DIVIDE, by, tc_build2(b, TC_ADD, e, e));
	tan = tc_build2(b, TC_ADD, tc_build2(b, TC_MULTIPLY, by, by), tc_build_number(b, t, 1));
	tan = tc_build2(b, TC_ADD, tc_build1(b, TC_ABS, by), tc_build1(b, TC_SQRT, tan));
	none = tc_build_compare(b, TC_CMP_LT, by, tc_build_number(b, t, 0));
	by = tc_build_select(b, none, tc_build_number(b, t, -1), tc_build_number(b, t, 1));
	tan = tc_build2(b, TC_DIVIDE, by, tan);
	none = tc_build_compare(b, TC_CMP_EQ, e, tc_build_number(b, t, 0));
	tan = tc_build_select(b, none, tc_build_number(b, t, 0), tan);
	cos = tc_build2(b, TC_ADD, tc_build2(b, TC_MULTIPLY, tan, tan), tc_build_number(b, t, 1));
	cos = tc_build2(b, TC_DIVIDE, tc_build_number(b, t, 1), tc_build1(b, TC_SQRT, cos));
	sin = tc_build2(b, TC_MULTIPLY, tan, cos);
	tan = tc_build2(b, TC_MULTIPLY, tan, e);
	x[0] = tc_build2(b, TC_SUBTRACT, x[0], tan);
	x[1] = tc_build2(b, TC_ADD, x[1], tan);
	h.values = tc_build_join(b, 2, x, 1);
	h.vectors = square_of(b, cos, sin, tc_build1(b, TC_NEGATE, sin), cos);
	return h;
}

/* Bidiagonal blocks of two: a row d, e, whose length is the value, and none. One too short to be
 * squared with all its digits is far below a unit of the matrix's size, and counts as no row. */
static struct halves begin_bidiagonal(const struct tc_build *b, struct tc_value *d,
				      struct tc_value *e)
{
	struct halves x = { .is_bidiagonal = true };
	const double least = d->type->elem == ELEM_F32 ? 0x1p-100 : 0x1p-960;
	struct tc_value *length, *none, *part[2];

	d = between(b, d, 1);
	e = between(b, e, 1);
	length = tc_build2(b, TC_ADD, tc_build2(b, TC_MULTIPLY, d, d),
			   tc_build2(b, TC_MULTIPLY, e, e));
	none = tc_build_compare(b, TC_CMP_LT, length, tc_build_number(b, length->type, least));
	length = tc_build1(b, TC_SQRT, length);
	part[0] = length;
	part[1] = tc_build_number(b, length->type, 0);
	x.values = tc_build_join(b, 2, part, 1);
	d = tc_build_select(b, none, tc_build_number(b, d->type, 1),
			    tc_build2(b, TC_DIVIDE, d, length));
	e = tc_build_select(b, none, tc_build_number(b, e->type, 0),
			    tc_build2(b, TC_DIVIDE, e, length));
	x.vectors = square_of(b, d, tc_build1(b, TC_NEGATE, e), e, d);
	x.left = tc_linalg_identity(b, x.vectors->type);
	return x;
}

static int64_t power_from(int64_t size)
{
	int64_t wide = 1;

	while (wide < size)
		wide *= 2;
	return wide;
}

/* The first n rows and columns. */
static struct tc_value *corner(const struct tc_build *b, struct tc_value *x, int64_t n)
{
	return tc_build_part(b, tc_build_part(b, x, 1, 0, n), 2, 0, n);
}

/* Blocks of `size` along d, which e [blocks, size] couples, but for its last column. */
static struct halves solve_leaves(const struct tc_build *b, struct tc_value *d,
				  struct tc_value *e)
{
	int64_t size = d->type->dim[1], wide = power_from(size);
	struct halves x;

	d = extend(b, d, 0, wide - size, PAD_OF_LEAVES);
	e = extend(b, tc_build_part(b, e, 1, 0, size - 1), 0, wide - size + 1, 0);
	x = begin(b, d, e);
	join_all(b, &x, d, e, 2, wide);
	x.values = tc_build_part(b, x.values, 1, 0, size);
	x.vectors = corner(b, x.vectors, size);
	return x;
}

/* How long leaves are, of at most `largest`, and how many; together n or more. */
static int64_t leaf_of(int64_t n, int64_t largest, int64_t *leaves)
{
	int64_t leaf = n;

	for (*leaves = 1; leaf > largest; *leaves *= 2)
		leaf = (leaf + 1) / 2;
	return (n + *leaves - 1) / *leaves;
}

/* d and e over a power of two that is their size, [batch, 1]. */
static struct tc_value *scale(const struct tc_build *b, struct tc_value **d, struct tc_value **e)
{
	static const int64_t as_is[] = { 0, 1 };
	struct tc_value *both[2] = { *d, *e }, *size;

	size = tc_linalg_power(b, tc_build_join(b, 2, both, 1), 1u << 1);
	*d = tc_build2(b, TC_DIVIDE, *d, tc_build_broadcast(b, size, (*d)->type, as_is));
	*e = tc_build2(b, TC_DIVIDE, *e, tc_build_broadcast(b, size, (*e)->type, as_is));
	return size;
}

static struct tc_value *scale_back(const struct tc_build *b, struct tc_value *values,
				   struct tc_value *size)
{
	size = tc_build_broadcast(b, size, values->type, (const int64_t[]){ 0, 1 });
	return tc_build2(b, TC_MULTIPLY, values, size);
}

void tc_linalg_divide(const struct tc_build *b, struct tc_value *d, struct tc_value *e,
		      struct tc_value **values, struct tc_value **vectors)
{
	int64_t n = d->type->dim[1], leaves, leaf = leaf_of(n, LARGEST_LEAF, &leaves);
	int64_t wide = leaf * leaves;
	const int64_t blocks[] = { d->type->dim[0] * leaves, leaf };
	struct tc_value *size, *e_size;
	struct halves x;

	e = extend(b, e, 0, 1, 0);
	size = scale(b, &d, &e);
	d = extend(b, d, 0, wide - n, PAD);
	e = extend(b, e, 0, wide - n, 0);
	/* What couples two is taken from both, and z z^T gives it back. */
	e_size = tc_build1(b, TC_ABS, e);
	d = tc_build2(b, TC_SUBTRACT, d, e_size);
	e_size = extend(b, tc_build_part(b, e_size, 1, 0, wide - 1), 1, 0, 0);
	d = tc_build2(b, TC_SUBTRACT, d, e_size);
	x = solve_leaves(b, tc_build_reshape(b, d, 2, blocks), tc_build_reshape(b, e, 2, blocks));
	join_all(b, &x, d, e, leaf, wide);
	*values = scale_back(b, tc_build_part(b, x.values, 1, 0, n), size);
	*vectors = corner(b, x.vectors, n);
}

/* Values in ascending order of their keys, and vectors in theirs: the first n. */
static void order(const struct tc_build *b, struct halves *x, struct tc_value *keys, int64_t n)
{
	int64_t wide = keys->type->dim[1];
	const int64_t column[] = { keys->type->dim[0], wide, 1 };
	struct tc_value *part[3], *all;
	unsigned parts = 2;

	part[0] = tc_build_reshape(b, x->values, 3, column);
	part[1] = tc_build_turn(b, x->vectors);
	if (x->left)
		part[parts++] = tc_build_turn(b, x->left);
	all = tc_build_join(b, parts, part, 2);
	tc_linalg_sort(b, &keys, &all);
	all = tc_build_turn(b, tc_build_part(b, all, 1, 0, n));
	x->values = tc_build_reshape(b, tc_build_part(b, all, 1, 0, 1), 2,
				     (int64_t[]){ column[0], n });
	if (x->left)
		x->left = tc_build_part(b, all, 1, 1 + x->vectors->type->dim[1], wide);
	x->vectors = tc_build_part(b, all, 1, 1, x->vectors->type->dim[1]);
}

/* Keys: the values, or their negatives; behind them the last one, which has no row, and then what
 * pads, values from `limit` on. */
static struct tc_value *keys_of(const struct tc_build *b, struct tc_value *values,
				bool is_descending, double limit)
{
	const struct tc_type *t = values->type;
	struct tc_value *is_last, *is_pad, *keys = values;

	is_pad = tc_build_compare(b, TC_CMP_GE, values, tc_build_number(b, t, limit));
	is_last = tc_build_compare(b, TC_CMP_EQ, tc_build_iota(b, t, 1),
				   tc_build_number(b, t, (double)(t->dim[1] - 1)));
	if (is_descending)
		keys = tc_build1(b, TC_NEGATE, keys);
	keys = tc_build_select(b, is_pad, tc_build_number(b, t, 2 * limit), keys);
	return tc_build_select(b, is_last, tc_build_number(b, t, limit), keys);
}

/*
 * Blocks of `size` rows and columns, whose last row is not theirs. What pads has no number in
 * that column: its rows have theirs right of the diagonal. The last of all is put in its place.
 */
static struct halves solve_bidiagonal_leaves(const struct tc_build *b, struct tc_value *d,
					     struct tc_value *e)
{
	int64_t size = d->type->dim[1], wide = power_from(size);
	const struct tc_type *t;
	struct tc_value *is_last;
	struct halves x;

	d = extend(b, tc_build_part(b, d, 1, 0, size - 1), 0, wide - size + 1, 0);
	e = extend(b, tc_build_part(b, e, 1, 0, size - 1), 0, wide - size + 1, PAD_OF_LEAVES);
	x = begin_bidiagonal(b, d, e);
	join_all(b, &x, d, e, 2, wide);
	if (wide == size)
		return x;
	order(b, &x, keys_of(b, x.values, false, PAD_OF_LEAVES / 2), size);
	x.vectors = tc_build_part(b, x.vectors, 1, 0, size);
	x.left = tc_build_part(b, x.left, 1, 0, size);
	t = tc_with_elem(b->c, x.left->type, ELEM_S32);
	is_last = tc_build_compare(b, TC_CMP_EQ, tc_build_iota(b, t, 1),
				   tc_build_number(b, t, (double)(size - 1)));
	x.left = tc_build_select(b, is_last, tc_linalg_identity(b, x.left->type), x.left);
	return x;
}

/* Zeros for what only comes of z that is not to be zero. */
static struct tc_value *without_dust(const struct tc_build *b, struct tc_value *x)
{
	double least = tc_linalg_unit((enum elem)x->type->elem) / 4;
	struct tc_value *is_dust = tc_build_compare(b, TC_CMP_LT, x,
						    tc_build_number(b, x->type, least));

	return tc_build_select(b, is_dust, tc_build_number(b, x->type, 0), x);
}

/* Halves of bidiagonal matrices with only the first and the last row of their vectors. */
static void drop_inner_rows(const struct tc_build *b, struct halves *x)
{
	struct tc_value *ends[2];

	for (unsigned i = 0; i < 2; i++)
		ends[i] = tc_build_part(b, x->vectors, 1, i ? x->vectors->type->dim[1] - 1 : 0, 1);
	x->vectors = tc_build_join(b, 2, ends, 1);
	x->left = NULL;
}

/* d and e [batch, n], where leaves of a power of two of columns are n together. */
static struct halves solve_even(const struct tc_build *b, struct tc_value *d, struct tc_value *e,
				int64_t leaf, bool vectors)
{
	const int64_t n = d->type->dim[1], blocks[] = { d->type->count / leaf, leaf };
	struct halves x;

	x = solve_bidiagonal_leaves(b, tc_build_reshape(b, d, 2, blocks),
				    tc_build_reshape(b, e, 2, blocks));
	if (!vectors)
		drop_inner_rows(b, &x);
	join_all(b, &x, d, e, leaf, n);
	x.are_single = true;
	d = tc_build_part(b, d, 1, n - 1, 1);
	join(b, &x, d, d);
	order(b, &x, tc_build1(b, TC_NEGATE, x.values), n);
	return x;
}

/* The same for any n, with a row of zeros and what pads. */
static struct halves solve_padded(const struct tc_build *b, struct tc_value *d,
				  struct tc_value *e, bool vectors)
{
	int64_t n = d->type->dim[1], leaves, leaf = leaf_of(n + 1, ONE_MORE, &leaves);
	int64_t wide = leaf * leaves;
	const int64_t blocks[] = { d->type->dim[0] * leaves, leaf };
	struct halves x;

	d = extend(b, d, 0, wide - n, 0);
	e = extend(b, e, 0, wide - n, PAD);
	x = solve_bidiagonal_leaves(b, tc_build_reshape(b, d, 2, blocks),
				    tc_build_reshape(b, e, 2, blocks));
	if (!vectors)
		drop_inner_rows(b, &x);
	join_all(b, &x, d, e, leaf, wide);
	order(b, &x, keys_of(b, x.values, true, PAD / 2), n);
	return x;
}

void tc_linalg_divide_bidiagonal(const struct tc_build *b, struct tc_value *d, struct tc_value *e,
				 struct tc_value **values, struct tc_value **left,
				 struct tc_value **right)
{
	int64_t n = d->type->dim[1], leaves, leaf = leaf_of(n, LARGEST_LEAF, &leaves);
	struct tc_value *size;
	struct halves x;

	e = extend(b, e, 0, 1, 0);
	size = scale(b, &d, &e);
	x = leaf * leaves == n && power_from(leaf) == leaf ? solve_even(b, d, e, leaf, left) :
	    solve_padded(b, d, e, left);
	*values = scale_back(b, without_dust(b, x.values), size);
	if (!left)
		return;
	*left = tc_build_part(b, x.left, 1, 0, n);
	*right = tc_build_part(b, x.vectors, 1, 0, n);
}
