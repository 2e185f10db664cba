/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Singular values and vectors. A = Q R, and R = X B Y^H, B bidiagonal (condense.c), whose values
 * and vectors come from those of its halves (divide.c). What of A stands between a left vector
 * and its right one is the value. Few real columns are rotated instead until they are orthogonal.
 */
#include <math.h>
#include <string.h>

#include "runtime/compiler/lower/linalg.h"

enum {
	MOST_ROTATED = 4,	/* columns of a matrix that Jacobi's rotations are for */
	MOST_COUNTED = 64,	/* of one whose values alone are found by counting */
	FEW_VALUES = 24,	/* of all, for each of which a turn tries 7 numbers, else one */
};

struct svd {
	struct tc_value *s;	/* [batch, n], descending */
	struct tc_value *u, *v;	/* as columns */
};

/* Rounding may exchange values that are nearly the same: each is at most those before. */
static struct tc_value *descend(const struct tc_build *b, struct tc_value *s)
{
	int64_t dim[] = { s->type->dim[0], s->type->dim[1], s->type->dim[1] };
	const struct tc_type *t = tc_tensor(b->c, s->type->elem, 3, dim);
	struct tc_value *x = tc_build_broadcast(b, s, t, (const int64_t[]){ 0, 2 });

	x = tc_build_select(b, tc_build_where(b, t, TC_CMP_GE), x,
			    tc_build_number(b, t, INFINITY));
	return tc_build_fold(b, TC_MINIMUM, x, INFINITY, 1u << 2);
}

/* x [batch, n, n] with zeros below, and ones on the diagonal behind. */
static struct tc_value *extend(const struct tc_build *b, struct tc_value *x, int64_t rows,
			       int64_t columns)
{
	const struct tc_type *t = x->type, *s32;
	const int64_t none[] = { 0, 0, 0 }, more[] = { 0, rows - t->dim[1], columns - t->dim[1] };
	struct tc_value *zero, *is_new;

	zero = tc_build_number(b, tc_tensor(b->c, (enum elem)t->elem, 0, NULL), 0);
	x = tc_build_pad(b, x, zero, none, more, none);
	s32 = tc_with_elem(b->c, x->type, ELEM_S32);
	is_new = tc_build_compare(b, TC_CMP_GE, tc_build_iota(b, s32, 2),
				  tc_build_number(b, s32, (double)t->dim[1]));
	return tc_build_select(b, is_new, tc_linalg_identity(b, x->type), x);
}

/* Of single numbers. */
static struct svd solve_numbers(const struct tc_build *b, struct tc_value *a)
{
	const struct tc_type *t = a->type;
	struct svd d = { NULL };
	struct tc_value *s = tc_build1(b, TC_SQRT, tc_linalg_square(b, a)), *none;

	none = tc_build_compare(b, TC_CMP_EQ, s, tc_build_number(b, s->type, 0));
	d.u = tc_build_select(b, none, tc_build_number(b, t, 1), tc_linalg_by(b, TC_DIVIDE, a, s));
	d.s = tc_build_reshape(b, s, 2, t->dim);
	d.v = tc_build_number(b, t, 1);
	return d;
}

/* x's rows from the cut on, then those before it. */
static struct tc_value *roll(const struct tc_build *b, struct tc_value *x, int64_t cut)
{
	int64_t n = x->type->dim[1];
	struct tc_value *part[2] = { tc_build_part(b, x, 1, cut, n - cut),
				     tc_build_part(b, x, 1, 0, cut) };

	return tc_build_join(b, 2, part, 1);
}

/*
 * Vectors of the bidiagonal matrix to those of what it was made of. Both sides are one batch: the
 * right side's reflections begin at the second row, so with the first row behind the others they
 * are as the left side's, and one is left that does nothing.
 */
static void turn_back(const struct tc_build *b, const struct tc_condensed *t, struct svd *d)
{
	const enum elem elem = (enum elem)t->a->type->elem;
	int64_t batch = t->a->type->dim[0];
	const int64_t none[] = { 0, 0, 0 }, one[] = { 0, 1, 1 }, one_factor[] = { 0, 1 };
	struct tc_value *zero = tc_build_number(b, tc_tensor(b->c, elem, 0, NULL), 0), *all[3][2];

	all[0][0] = t->a;
	all[0][1] = tc_build_pad(b, t->right, zero, none, one, none);
	all[1][0] = t->taus;
	all[1][1] = tc_build_pad(b, t->right_taus, zero, none, one_factor, none);
	all[2][0] = tc_build_convert(b, d->u, elem);
	all[2][1] = roll(b, tc_build_convert(b, d->v, elem), 1);
	for (unsigned i = 0; i < 3; i++)
		all[i][0] = tc_build_join(b, 2, all[i], 0);
	all[2][0] = tc_linalg_reflections(b, all[0][0], all[1][0], all[2][0]);
	d->u = tc_build_part(b, all[2][0], 0, 0, batch);
	d->v = roll(b, tc_build_part(b, all[2][0], 0, batch, batch), d->u->type->dim[1] - 1);
}

/* ---- few columns ---- */

/* Of a matrix whose columns are turned about each other until they are orthogonal. */
static bool is_rotated(const struct tc_type *t)
{
	return t->dim[1] >= 2 && t->dim[1] <= TC_MOST_CELLS && t->dim[2] <= MOST_ROTATED &&
	       (t->elem == ELEM_F32 || t->elem == ELEM_F64);
}

/* x . y of the first m rows of [rows, batch], as [1, batch]. */
static struct tc_value *product_of(const struct tc_build *b, struct tc_value *x,
				   struct tc_value *y, int64_t m)
{
	struct tc_value *sum = NULL;

	for (int64_t i = 0; i < m; i++) {
		struct tc_value *part = tc_build_part(b, x, 0, i, 1);

		part = tc_build2(b, TC_MULTIPLY, part,
				 y == x ? part : tc_build_part(b, y, 0, i, 1));
		sum = sum ? tc_build2(b, TC_ADD, sum, part) : part;
	}
	return sum;
}

/* cosine x - sine y */
static struct tc_value *mix(const struct tc_build *b, struct tc_value *cosine,
			    struct tc_value *x, struct tc_value *sine, struct tc_value *y)
{
	static const int64_t as_is[] = { 0, 1 };

	x = tc_build2(b, TC_MULTIPLY, tc_build_broadcast(b, cosine, x->type, as_is), x);
	y = tc_build2(b, TC_MULTIPLY, tc_build_broadcast(b, sine, y->type, as_is), y);
	return tc_build2(b, TC_SUBTRACT, x, y);
}

/*
 * Turns columns x and y so that their first m rows are orthogonal, and x the longer one there:
 * the smallest angle that makes them so, or that and a quarter of a turn. Sums are made anew each
 * time, which is less than to hand them on.
 */
static void turn_pair(const struct tc_build *b, int64_t m, struct tc_value **x,
		      struct tc_value **y)
{
	struct tc_value *p = product_of(b, *x, *x, m), *q = product_of(b, *y, *y, m), *less;
	struct tc_value *off = product_of(b, *x, *y, m), *is_less, *cosine, *sine, *old = *x;
	struct tc_rotation r = tc_linalg_rotation(b, p, q, off);

	less = tc_build2(b, TC_MULTIPLY, r.tangent, off);
	is_less = tc_build_compare(b, TC_CMP_LT, tc_build2(b, TC_SUBTRACT, p, less),
				   tc_build2(b, TC_ADD, q, less));
	cosine = tc_build_select(b, is_less, r.sine, r.cosine);
	sine = tc_build_select(b, is_less, tc_build1(b, TC_NEGATE, r.cosine), r.sine);
	*x = mix(b, cosine, old, sine, *y);
	*y = mix(b, cosine, *y, tc_build1(b, TC_NEGATE, sine), old);
}

/* Columns of a [batch, m, n] as [m, batch], and below them those of an identity, which become the
 * right vectors. */
static void columns_of(const struct tc_build *b, struct tc_value *a, bool vectors,
		       struct tc_value **column)
{
	static const int64_t mirror[] = { 2, 1, 0 };
	const int64_t batch = a->type->dim[0], m = a->type->dim[1], n = a->type->dim[2];
	const int64_t dim[] = { m, batch }, square[] = { n, batch };
	const struct tc_type *t = tc_tensor(b->c, (enum elem)a->type->elem, 2, square);
	const struct tc_type *s32 = tc_with_elem(b->c, t, ELEM_S32);
	struct tc_value *part[2], *is_on;

	a = tc_build_transpose(b, a, mirror);
	for (int64_t j = 0; j < n; j++) {
		column[j] = tc_build_reshape(b, tc_build_part(b, a, 0, j, 1), 2, dim);
		if (!vectors)
			continue;
		is_on = tc_build_compare(b, TC_CMP_EQ, tc_build_iota(b, s32, 0),
					 tc_build_number(b, s32, (double)j));
		part[0] = column[j];
		part[1] = tc_build_convert(b, is_on, (enum elem)t->elem);
		column[j] = tc_build_join(b, 2, part, 0);
	}
}

/* Of a [batch, m, n], longer ones first. */
static void turn_all(const struct tc_build *b, struct tc_value *a, bool vectors,
		     struct tc_value **column)
{
	const int64_t m = a->type->dim[1], n = a->type->dim[2];
	const int sweeps = tc_linalg_sweeps(a->type);

	columns_of(b, a, vectors, column);
	for (int i = 0; i < sweeps; i++)
		for (int64_t p = 0; p < n; p++)
			for (int64_t q = p + 1; q < n; q++)
				turn_pair(b, m, &column[p], &column[q]);
}

/*
 * The left vectors, `columns` of them, of columns that are orthogonal, of these lengths: those of
 * a QR, so that they are orthogonal also where a value is zero, with signs. Columns have a length
 * near 1 there; one that is too short to be squared counts as zero.
 */
static struct tc_value *left_of(const struct tc_build *b, struct tc_cells *x,
				struct tc_value *const *length, int64_t columns, enum elem elem)
{
	const struct tc_type *t = length[0]->type;
	struct tc_value *zero = tc_build_number(b, t, 0), *one = tc_build_number(b, t, 1);
	struct tc_value *by, *is_less, *minus, **to;
	struct tc_cells q;

	for (int64_t j = 0; j < x->columns; j++) {
		by = tc_build_compare(b, TC_CMP_GT, length[j], zero);
		by = tc_build_select(b, by, tc_build2(b, TC_DIVIDE, one, length[j]), zero);
		for (int64_t i = 0; i < x->rows; i++)
			x->at[i][j] = tc_build2(b, TC_MULTIPLY, x->at[i][j], by);
	}
	q = tc_linalg_unitary_cells(b, x, columns);
	for (int64_t j = 0; j < columns; j++) {
		is_less = j < x->columns ? tc_build_compare(b, TC_CMP_LT, x->at[j][j], zero) : NULL;
		for (int64_t i = 0; i < x->rows; i++) {
			to = &q.at[i][j];
			minus = tc_build1(b, TC_NEGATE, *to);
			if (is_less)
				*to = tc_build_select(b, is_less, minus, *to);
			*to = tc_build_convert(b, *to, elem);
		}
	}
	return tc_linalg_from_cells(b, &q);
}

/* The right vectors are below row m of the columns. */
static struct tc_value *right_of(const struct tc_build *b, struct tc_value *const *column,
				 int64_t m, int64_t n)
{
	static const int64_t mirror[] = { 2, 1, 0 };
	const int64_t dim[] = { 1, n, column[0]->type->dim[1] };
	struct tc_value *part[MOST_ROTATED];

	for (int64_t j = 0; j < n; j++)
		part[j] = tc_build_reshape(b, tc_build_part(b, column[j], 0, m, n), 3, dim);
	return tc_build_transpose(b, tc_build_join(b, (unsigned)n, part, 0), mirror);
}

/*
 * As solve(), with so many columns of left vectors. What is made of turned columns is made in
 * double numbers, which have room for their squares, and vectors are as orthogonal as LAPACK's.
 */
static struct svd solve_columns(const struct tc_build *b, struct tc_value *a, bool vectors,
				int64_t columns)
{
	const enum elem elem = (enum elem)a->type->elem;
	const int64_t one[] = { a->type->dim[0], 1, 1 };
	struct tc_value *column[MOST_ROTATED], *length[MOST_ROTATED], *s[MOST_ROTATED];
	struct tc_cells x = { .rows = a->type->dim[1], .columns = a->type->dim[2] };
	struct svd d = { NULL };

	turn_all(b, a, vectors, column);
	for (int64_t j = 0; j < x.columns; j++) {
		struct tc_value *y = tc_build_convert(b, column[j], ELEM_F64);

		length[j] = tc_build1(b, TC_SQRT, product_of(b, y, y, x.rows));
		length[j] = tc_build_reshape(b, length[j], 3, one);
		for (int64_t i = 0; i < x.rows; i++)
			x.at[i][j] = tc_build_reshape(b, tc_build_part(b, y, 0, i, 1), 3, one);
		s[j] = tc_build_convert(b, length[j], elem);
		if (j)
			s[j] = tc_build2(b, TC_MINIMUM, s[j], s[j - 1]);
	}
	d.s = tc_build_reshape(b, tc_build_join(b, (unsigned)x.columns, s, 1), 2,
			       (int64_t[]){ one[0], x.columns });
	if (!vectors)
		return d;
	d.u = left_of(b, &x, length, columns, elem);
	d.v = right_of(b, column, x.rows, x.columns);
	return d;
}

/* ---- values alone ---- */

/* Where the values of a few bidiagonal matrices are, each in a run of numbers whose bits follow
 * each other. */
struct counting {
	const struct tc_type *tried;	/* f64 [batch, n, numbers] */
	int digits;			/* of the bits, which a turn finds */
};

/* Number i of each matrix, for all that is tried. */
static struct tc_value *part_of(const struct tc_build *b, const struct counting *s,
				struct tc_value *squares, int64_t i)
{
	static const int64_t by_matrix[] = { 0 };

	squares = tc_build_reshape(b, tc_build_part(b, squares, 1, i, 1), 1, s->tried->dim);
	return tc_build_broadcast(b, squares, s->tried, by_matrix);
}

/*
 * How many values are below each x: as many as the pivots of B^T B - x^2 below zero, which are
 * right to a few units of B's numbers each (Fernando and Parlett, 1994). Squares of f32 are in
 * range; a pivot that is not 0 is above 2^-305, so nothing divided by one overflows, and what is
 * added so that none is 0 changes no other. Their signs are their highest bits.
 */
static struct tc_value *count_below(const struct tc_build *b, const struct counting *s,
				    struct tc_value *squares, struct tc_value *x)
{
	const int64_t n = s->tried->dim[1];
	struct tc_value *square = tc_build2(b, TC_MULTIPLY, x, x), *least, *count = NULL, *is_less;
	const struct tc_type *bits = tc_with_elem(b->c, s->tried, ELEM_S64);
	struct tc_value *rest = tc_build1(b, TC_NEGATE, square), *pivot;

	least = tc_build_number(b, s->tried, 0x1p-400);
	for (int64_t i = 0; i < n; i++) {
		pivot = tc_build2(b, TC_ADD, part_of(b, s, squares, i), rest);
		pivot = tc_build2(b, TC_ADD, pivot, least);
		is_less = tc_build(b, TC_BITCAST_CONVERT, bits, 1, &pivot);
		is_less = tc_build2(b, TC_SHIFT_RIGHT_LOGICAL, is_less,
				    tc_build_number(b, bits, 63));
		count = count ? tc_build2(b, TC_ADD, count, is_less) : is_less;
		if (i == n - 1)
			break;
		pivot = tc_build2(b, TC_DIVIDE, part_of(b, s, squares, n + i), pivot);
		rest = tc_build2(b, TC_MULTIPLY, rest, pivot);
		rest = tc_build2(b, TC_SUBTRACT, rest, square);
	}
	return count;
}

/* state: the bits of numbers that values are at least, the steps to those that are tried, and
 * the squares of d and e [batch, 2 n - 1], so that none is squared again. */
static void narrow(const struct tc_build *b, struct tc_value *i, struct tc_value **state,
		   void *arg)
{
	static const int64_t by_value[] = { 0, 1 };
	const struct counting *s = arg;
	const struct tc_type *bits = tc_with_elem(b->c, s->tried, ELEM_S32);
	struct tc_value *step = state[1], *x, *is_least;

	(void)i;
	x = tc_build2(b, TC_ADD, tc_build_iota(b, bits, 2), tc_build_number(b, bits, 1));
	x = tc_build2(b, TC_MULTIPLY, x, tc_build_broadcast(b, step, bits, NULL));
	x = tc_build2(b, TC_ADD, tc_build_broadcast(b, state[0], bits, by_value), x);
	x = tc_build(b, TC_BITCAST_CONVERT, tc_with_elem(b->c, bits, ELEM_F32), 1, &x);
	x = count_below(b, s, state[2], tc_build_convert(b, x, ELEM_F64));
	/* Of as many or fewer as are below the value. */
	is_least = tc_build2(b, TC_ADD, x, tc_build_iota(b, x->type, 1));
	is_least = tc_build_compare(b, TC_CMP_LT, is_least,
				    tc_build_number(b, x->type, (double)s->tried->dim[1]));
	x = tc_build_sum(b, tc_build_convert(b, is_least, ELEM_S32), 1u << 2);
	x = tc_build2(b, TC_MULTIPLY, x, tc_build_broadcast(b, step, x->type, NULL));
	state[0] = tc_build2(b, TC_ADD, state[0], x);
	step = tc_build2(b, TC_SHIFT_RIGHT_LOGICAL, step,
			 tc_build_number(b, step->type, s->digits));
	state[1] = tc_build2(b, TC_MAXIMUM, step, tc_build_number(b, step->type, 1));
}

static bool is_counted(const struct tc_type *t)
{
	return t->dim[1] <= MOST_COUNTED && tc_real_of((enum elem)t->elem) == ELEM_F32;
}

/* The values [batch, n] of B, the largest first. One below the least f32 is 0. */
static struct tc_value *count_values(const struct tc_build *b, const struct tc_condensed *t)
{
	enum { BITS = 31 };
	const int64_t batch = t->d->type->dim[0], n = t->d->type->dim[1], values = batch * n;
	const int digits = values <= FEW_VALUES ? 3 : 1;
	const int64_t dim[] = { batch, n, (1 << digits) - 1 };
	const struct tc_type *bits = tc_tensor(b->c, ELEM_S32, 2, dim);
	struct counting s = { .tried = tc_tensor(b->c, ELEM_F64, 3, dim), .digits = digits };
	struct tc_loop loop = { .n = (BITS + digits - 1) / digits, .body = narrow, .arg = &s };
	struct tc_value *least = tc_build_number(b, bits, 0x00800000p0), *x, *none;
	struct tc_value *both[] = { t->d, t->e }, *state[3] = { least };

	state[1] = tc_build_number(b, tc_tensor(b->c, ELEM_S32, 0, NULL),
				   (double)(1 << (BITS - digits)));
	state[2] = tc_build_convert(b, tc_build_join(b, 2, both, 1), ELEM_F64);
	state[2] = tc_build2(b, TC_MULTIPLY, state[2], state[2]);
	tc_build_loop(b, &loop, 3, state);
	none = tc_build_compare(b, TC_CMP_EQ, state[0], least);
	x = tc_build(b, TC_BITCAST_CONVERT, tc_with_elem(b->c, bits, ELEM_F32), 1, &state[0]);
	return tc_build_select(b, none, tc_build_number(b, x->type, 0), x);
}

/* Of a square matrix. */
static struct svd solve_square(const struct tc_build *b, struct tc_value *a, bool vectors)
{
	struct tc_condensed t;
	struct svd d = { NULL };
	struct tc_value *x;

	if (a->type->dim[1] == 1)
		return solve_numbers(b, a);
	if (is_rotated(a->type))
		return solve_columns(b, a, vectors, a->type->dim[1]);
	t = tc_linalg_bidiagonal(b, a);
	if (!vectors && is_counted(a->type)) {
		d.s = count_values(b, &t);
		return d;
	}
	tc_linalg_divide_bidiagonal(b, t.d, t.e, &d.s, vectors ? &d.u : NULL, &d.v);
	if (!vectors)
		return d;
	turn_back(b, &t, &d);
	x = tc_build2(b, TC_MULTIPLY, tc_build_conjugate(b, d.u), tc_linalg_times(b, a, d.v));
	d.s = tc_build_real(b, tc_build_sum(b, x, 1u << 1));
	d.s = descend(b, tc_build1(b, TC_ABS, d.s));
	return d;
}

/* A's rows that a QR leaves above the diagonal. */
static struct tc_value *triangle_of(const struct tc_build *b, struct tc_value *a)
{
	a = tc_build_part(b, a, 1, 0, a->type->dim[2]);
	return tc_build_select(b, tc_build_where(b, a->type, TC_CMP_LE), a,
			       tc_build_number(b, a->type, 0));
}

/* Of [batch, m, n], m >= n, that is scaled. */
static struct svd solve(const struct tc_build *b, struct tc_value *a, bool vectors, bool full)
{
	int64_t m = a->type->dim[1], n = a->type->dim[2];
	struct tc_value *r = a, *taus = NULL;
	struct svd d;

	if (is_rotated(a->type))
		return solve_columns(b, a, vectors, full ? m : n);
	if (m > n) {
		tc_linalg_qr(b, &a, &taus);
		r = triangle_of(b, a);
	}
	d = solve_square(b, r, vectors);
	if (taus && vectors)
		d.u = tc_linalg_reflections(b, a, taus, full ? extend(b, d.u, m, m) : d.u);
	return d;
}

/* Whether t is `like` with other last dims; rank: how many of them. */
static bool is_like(const struct tc_type *t, const struct tc_type *like, enum elem elem,
		    unsigned rank, int64_t rows, int64_t columns)
{
	unsigned r = like->rank - 2u;

	return !t->is_tuple && t->elem == elem && t->rank == r + rank &&
	       !memcmp(t->dim, like->dim, r * sizeof(*t->dim)) &&
	       t->dim[r + rank - 1] == columns && (rank == 1 || t->dim[r] == rows);
}

/* backend_config: "full" for square matrices of vectors. True: it is, and well formed. */
static bool check(struct tc_ctx *c, const struct tc_op *op)
{
	const char *config = tc_attr_str(op, "backend_config");
	bool full = config && !strcmp(config, "full"), good;
	const struct tc_type *t;
	int64_t m, n, k;
	enum elem elem;

	tc_linalg_check(c, op, "svd", 1);
	t = tc_in(op, 0)->type;
	elem = (enum elem)t->elem;
	m = t->dim[t->rank - 2];
	n = t->dim[t->rank - 1];
	k = m < n ? m : n;
	good = (op->n_results == 1 || op->n_results == 3) &&
	       is_like(tc_out(op, 0)->type, t, tc_real_of(elem), 1, 0, k);
	if (good && op->n_results == 3)
		good = is_like(tc_out(op, 1)->type, t, elem, 2, m, full ? m : k) &&
		       is_like(tc_out(op, 2)->type, t, elem, 2, full ? n : k, n);
	if (!good)
		tc_fail(c, ERR_INVALID_ARGUMENT, op, "svd of %lld x %lld gives %lld real values, "
			"or values and the vectors on the left and the right",
			(long long)m, (long long)n, (long long)k);
	return full;
}

/* A wide matrix by its adjoint, whose vectors are this one's exchanged. */
static struct svd solve_any(const struct tc_build *b, struct tc_value *a, bool vectors, bool full)
{
	bool wide = a->type->dim[1] < a->type->dim[2];
	struct tc_scaled scaled = tc_linalg_scale(b, wide ? tc_linalg_adjoint(b, a) : a);
	struct svd d = solve(b, scaled.x, vectors, full);
	struct tc_value *u, *v;

	d.s = tc_linalg_by(b, TC_MULTIPLY, d.s, scaled.scale);
	d.s = tc_linalg_spoil(b, d.s, scaled.is_finite);
	if (!vectors)
		return d;
	u = tc_linalg_spoil(b, d.u, scaled.is_finite);
	v = tc_linalg_spoil(b, d.v, scaled.is_finite);
	d.u = wide ? v : u;
	d.v = wide ? u : v;
	return d;
}

static struct svd solve_empty(const struct tc_build *b, const struct tc_op *op)
{
	struct svd d = { .s = tc_build_number(b, tc_out(op, 0)->type, 0) };

	if (op->n_results == 3) {
		const struct tc_type *u = tc_out(op, 1)->type, *vh = tc_out(op, 2)->type;

		d.u = tc_build_number(b, u, 0);
		d.u = tc_linalg_identity(b, tc_build_matrices(b, d.u)->type);
		d.v = tc_build_number(b, vh, 0);
		d.v = tc_linalg_identity(b, tc_build_matrices(b, d.v)->type);
	}
	return d;
}

void tc_decompose_svd(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	bool full = check(c, op), vectors = op->n_results == 3;
	struct tc_value *a = tc_build_matrices(&b, tc_in(op, 0)), *results[3];
	struct svd d;

	d = a->type->count ? solve_any(&b, a, vectors, full) : solve_empty(&b, op);
	results[0] = d.s;
	results[1] = d.u;
	results[2] = vectors ? tc_linalg_adjoint(&b, d.v) : NULL;
	for (unsigned i = 0; i < op->n_results; i++) {
		const struct tc_type *t = tc_out(op, i)->type;

		a = tc_build_reshape(&b, results[i], t->rank, t->dim);
		tc_replace_uses(tc_out(op, i), a);
	}
	tc_erase(op);
}
