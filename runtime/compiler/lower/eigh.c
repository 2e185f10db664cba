/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Eigenvectors of Hermitian matrices: those of a tridiagonal one that is alike (condense.c,
 * divide.c), or of a few real numbers by Jacobi's rotations; and the tridiagonal one as LAPACK's
 * hetrd leaves it.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/compiler/lower/linalg.h"

enum {
	MOST_ROTATED = 4,	/* rows of a matrix that Jacobi's rotations are for */
};

/* A Hermitian matrix from one of its triangles. */
static struct tc_value *symmetric(const struct tc_build *b, struct tc_value *a, bool lower)
{
	struct tc_value *keep = tc_build_where(b, a->type, lower ? TC_CMP_GT : TC_CMP_LT);
	struct tc_value *on = tc_build_where(b, a->type, TC_CMP_EQ), *real;

	real = tc_build_convert(b, tc_build_real(b, a), (enum elem)a->type->elem);
	a = tc_build_select(b, keep, a, tc_linalg_adjoint(b, a));
	return tc_build_select(b, on, real, a);
}

/* Eigenvalues [batch, n] with what the residuals A v - value v of their vectors have along
 * them. */
static struct tc_value *correct(const struct tc_build *b, struct tc_value *a,
				struct tc_value *rows, struct tc_value *values)
{
	struct tc_value *all, *rest;

	all = tc_build_convert(b, values, (enum elem)a->type->elem);
	all = tc_build_broadcast(b, all, rows->type, (const int64_t[]){ 0, 1 });
	rest = tc_build2(b, TC_SUBTRACT, tc_linalg_times(b, rows, a),
			 tc_build2(b, TC_MULTIPLY, all, rows));
	rest = tc_build2(b, TC_MULTIPLY, rest, tc_build_conjugate(b, rows));
	return tc_build2(b, TC_ADD, values,
			 tc_build_real(b, tc_build_sum(b, rest, 1u << 2)));
}

/* backend_config: "lower,sort,sweeps,tolerance". The last two stay JAX's. */
static void read_config(const struct tc_op *op, bool *lower, bool *sort)
{
	const char *config = tc_attr_str(op, "backend_config"), *comma;

	*lower = *sort = true;
	if (!config || !*config)
		return;
	comma = strchr(config, ',');
	*lower = atoi(config) != 0;
	*sort = !comma || atoi(comma + 1) != 0;
}

static void check(struct tc_ctx *c, const struct tc_op *op)
{
	const struct tc_type *t, *w;
	unsigned r;

	tc_linalg_check(c, op, "Eigh", 1);
	t = tc_in(op, 0)->type;
	r = t->rank;
	if (t->dim[r - 1] != t->dim[r - 2])
		tc_fail(c, ERR_INVALID_ARGUMENT, op, "Eigh takes square matrices, not %lld x "
			"%lld", (long long)t->dim[r - 2], (long long)t->dim[r - 1]);
	w = op->n_results == 2 ? tc_out(op, 1)->type : NULL;
	if (!w || tc_out(op, 0)->type != t || w->is_tuple || w->rank != r - 1 ||
	    w->elem != tc_real_of((enum elem)t->elem) ||
	    memcmp(w->dim, t->dim, (r - 1) * sizeof(*t->dim)))
		tc_fail(c, ERR_INVALID_ARGUMENT, op, "Eigh gives eigenvectors of its operand's "
			"type and as many real eigenvalues");
}

/* The values [batch, n] of a, and the vectors' adjoints as rows. */
static void find(const struct tc_build *b, struct tc_value *a, struct tc_value **values,
		 struct tc_value **rows)
{
	int64_t n = a->type->dim[1];
	struct tc_condensed t;
	struct tc_value *x, *part[2];

	if (n == 1) {
		*values = tc_build_real(b, tc_linalg_diagonal(b, a));
		*rows = tc_linalg_identity(b, a->type);
		return;
	}
	t = tc_linalg_tridiagonal(b, a);
	tc_linalg_divide(b, t.d, t.e, values, &x);
	x = tc_build_convert(b, x, (enum elem)a->type->elem);
	part[0] = tc_build_part(b, x, 1, 0, 1);
	part[1] = tc_linalg_reflections(b, t.a, t.taus, tc_build_part(b, x, 1, 1, n - 1));
	*rows = tc_linalg_adjoint(b, tc_build_join(b, 2, part, 1));
}

/* ---- few numbers ---- */

struct tc_rotation tc_linalg_rotation(const struct tc_build *b, struct tc_value *p,
				      struct tc_value *q, struct tc_value *off)
{
	struct tc_value *zero = tc_build_number(b, off->type, 0);
	struct tc_value *one = tc_build_number(b, off->type, 1), *theta, *t;
	struct tc_value *none = tc_build_compare(b, TC_CMP_EQ, off, zero);
	struct tc_rotation r;

	theta = tc_build2(b, TC_SUBTRACT, q, p);
	theta = tc_build2(b, TC_DIVIDE, theta, tc_build2(b, TC_ADD, off, off));
	t = tc_build2(b, TC_ADD, tc_build2(b, TC_MULTIPLY, theta, theta), one);
	t = tc_build2(b, TC_ADD, tc_build1(b, TC_ABS, theta), tc_build1(b, TC_SQRT, t));
	t = tc_build2(b, TC_DIVIDE, one, t);
	t = tc_build_select(b, tc_build_compare(b, TC_CMP_LT, theta, zero),
			    tc_build1(b, TC_NEGATE, t), t);
	t = tc_build_select(b, none, zero, t);
	r.tangent = t;
	r.cosine = tc_build2(b, TC_ADD, tc_build2(b, TC_MULTIPLY, t, t), one);
	r.cosine = tc_build2(b, TC_DIVIDE, one, tc_build1(b, TC_SQRT, r.cosine));
	r.sine = tc_build2(b, TC_MULTIPLY, t, r.cosine);
	return r;
}

/* x - s (y + h x) and y + s (x - h y), h the tangent of half the angle: so little is lost where
 * that is small. */
static void rotate(const struct tc_build *b, const struct tc_rotation *r, struct tc_value *half,
		   struct tc_value **x, struct tc_value **y)
{
	struct tc_value *p, *q;

	p = tc_build2(b, TC_ADD, *y, tc_build2(b, TC_MULTIPLY, half, *x));
	q = tc_build2(b, TC_SUBTRACT, *x, tc_build2(b, TC_MULTIPLY, half, *y));
	*x = tc_build2(b, TC_SUBTRACT, *x, tc_build2(b, TC_MULTIPLY, r->sine, p));
	*y = tc_build2(b, TC_ADD, *y, tc_build2(b, TC_MULTIPLY, r->sine, q));
}

/* One rotation of a, of which what is on and above the diagonal is used, and of the rows of
 * vectors. */
static void annihilate(const struct tc_build *b, struct tc_cells *a, int64_t p, int64_t q,
		       struct tc_cells *rows)
{
	struct tc_value **off = &a->at[p][q], *less, *half;
	struct tc_rotation r = tc_linalg_rotation(b, a->at[p][p], a->at[q][q], *off);

	half = tc_build2(b, TC_ADD, tc_build_number(b, r.sine->type, 1), r.cosine);
	half = tc_build2(b, TC_DIVIDE, r.sine, half);
	less = tc_build2(b, TC_MULTIPLY, r.tangent, *off);
	a->at[p][p] = tc_build2(b, TC_SUBTRACT, a->at[p][p], less);
	a->at[q][q] = tc_build2(b, TC_ADD, a->at[q][q], less);
	*off = tc_build_number(b, less->type, 0);
	for (int64_t i = 0; i < a->rows; i++) {
		if (i != p && i != q)
			rotate(b, &r, half, i < p ? &a->at[i][p] : &a->at[p][i],
			       i < q ? &a->at[i][q] : &a->at[q][i]);
		rotate(b, &r, half, &rows->at[p][i], &rows->at[q][i]);
	}
}

int tc_linalg_sweeps(const struct tc_type *t)
{
	const int n = (int)t->dim[2];

	return n <= 2 ? n - 1 : t->elem == ELEM_F32 ? n + 1 : n + 2;
}

static void rotate_all(const struct tc_build *b, struct tc_value *x, struct tc_cells *a,
		       struct tc_cells *rows)
{
	const int64_t n = x->type->dim[1];
	const int sweeps = tc_linalg_sweeps(x->type);

	tc_linalg_to_cells(b, x, a);
	*rows = *a;
	for (int64_t i = 0; i < n; i++)
		for (int64_t j = 0; j < n; j++)
			rows->at[i][j] = tc_build_number(b, a->at[0][0]->type, i == j);
	for (int i = 0; i < sweeps; i++)
		for (int64_t p = 0; p < n; p++)
			for (int64_t q = p + 1; q < n; q++)
				annihilate(b, a, p, q, rows);
}

/* The smaller value of rows i and k first. */
static void order(const struct tc_build *b, struct tc_cells *a, int64_t i, int64_t k,
		  struct tc_cells *rows)
{
	struct tc_value *is_less = tc_build_compare(b, TC_CMP_LT, a->at[k][k], a->at[i][i]);
	struct tc_value **x = &a->at[i][i], **y = &a->at[k][k], *old;

	for (int64_t j = -1; j < a->rows; j++) {
		if (j >= 0) {
			x = &rows->at[i][j];
			y = &rows->at[k][j];
		}
		old = *x;
		*x = tc_build_select(b, is_less, *y, old);
		*y = tc_build_select(b, is_less, old, *y);
	}
}

static bool is_rotated(const struct tc_type *t)
{
	return t->dim[1] >= 2 && t->dim[1] <= MOST_ROTATED &&
	       (t->elem == ELEM_F32 || t->elem == ELEM_F64);
}

/* As solve(), of few real numbers. */
static void solve_cells(const struct tc_build *b, const struct tc_scaled *scaled, bool sort,
			struct tc_value **values, struct tc_value **vectors)
{
	struct tc_value *value[TC_MOST_CELLS];
	struct tc_cells a, rows, columns;
	int64_t n = scaled->x->type->dim[1];

	rotate_all(b, scaled->x, &a, &rows);
	columns = rows;
	for (int64_t last = n - 1; sort && last > 0; last--)
		for (int64_t i = 0; i < last; i++)
			order(b, &a, i, i + 1, &rows);
	for (int64_t i = 0; i < n; i++) {
		value[i] = tc_linalg_by(b, TC_MULTIPLY, a.at[i][i], scaled->scale);
		value[i] = tc_linalg_spoil(b, value[i], scaled->is_finite);
		value[i] = tc_build_reshape(b, value[i], 2, value[i]->type->dim);
		for (int64_t j = 0; j < n; j++)
			columns.at[j][i] = tc_linalg_spoil(b, rows.at[i][j], scaled->is_finite);
	}
	*values = tc_build_join(b, (unsigned)n, value, 1);
	*vectors = tc_linalg_from_cells(b, &columns);
}

/* The values [batch, n] and vectors, as columns, of a matrix that is not empty. */
static void solve(const struct tc_build *b, struct tc_value *a, bool sort,
		  struct tc_value **values, struct tc_value **vectors)
{
	struct tc_scaled scaled = tc_linalg_scale(b, a);
	struct tc_value *rows;

	if (is_rotated(a->type)) {
		solve_cells(b, &scaled, sort, values, vectors);
		return;
	}
	find(b, scaled.x, values, &rows);
	*values = correct(b, scaled.x, rows, *values);
	if (sort)
		tc_linalg_sort(b, values, &rows);
	*vectors = tc_linalg_spoil(b, tc_linalg_adjoint(b, rows), scaled.is_finite);
	*values = tc_linalg_by(b, TC_MULTIPLY, *values, scaled.scale);
	*values = tc_linalg_spoil(b, *values, scaled.is_finite);
}

void tc_decompose_eigh(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	const struct tc_type *t, *values;
	struct tc_value *vectors, *w;
	bool lower, sort;

	check(c, op);
	read_config(op, &lower, &sort);
	t = tc_out(op, 0)->type;
	values = tc_out(op, 1)->type;
	if (t->count) {
		vectors = symmetric(&b, tc_build_matrices(&b, tc_in(op, 0)), lower);
		solve(&b, vectors, sort, &w, &vectors);
		vectors = tc_build_reshape(&b, vectors, t->rank, t->dim);
		w = tc_build_reshape(&b, w, values->rank, values->dim);
	} else {
		vectors = tc_in(op, 0);
		w = tc_build_number(&b, values, 0);
	}
	tc_replace_uses(tc_out(op, 0), vectors);
	tc_replace_uses(tc_out(op, 1), w);
	tc_erase(op);
}

/* Results: the matrix with the tridiagonal one's lower half and reflectors below it, what is above
 * the diagonal is nobody's; and their factors. */
static void check_tridiagonal(struct tc_ctx *c, const struct tc_op *op)
{
	const struct tc_type *t, *taus;
	unsigned r;

	tc_linalg_check(c, op, "tridiagonal", 1);
	t = tc_in(op, 0)->type;
	r = t->rank;
	if (t->dim[r - 1] != t->dim[r - 2] || t->dim[r - 1] < 2)
		tc_fail(c, ERR_INVALID_ARGUMENT, op, "tridiagonal takes square matrices of 2 rows "
			"or more, not %lld x %lld", (long long)t->dim[r - 2],
			(long long)t->dim[r - 1]);
	taus = op->n_results == 2 ? tc_out(op, 1)->type : NULL;
	if (!taus || tc_out(op, 0)->type != t || taus->is_tuple || taus->rank != r - 1 ||
	    taus->elem != t->elem || taus->dim[r - 2] != t->dim[r - 1] - 1 ||
	    memcmp(taus->dim, t->dim, (r - 2) * sizeof(*t->dim)))
		tc_fail(c, ERR_INVALID_ARGUMENT, op, "tridiagonal gives a matrix of its operand's "
			"type and the %lld factors of its reflections",
			(long long)t->dim[r - 1] - 1);
}

/* x, but the diagonal and what is beside it times the scale: reflectors have none. */
static struct tc_value *scale_beside(const struct tc_build *b, struct tc_value *x,
				     struct tc_value *scale)
{
	const struct tc_type *t = tc_with_elem(b->c, x->type, ELEM_S32);
	struct tc_value *is_near = tc_build2(b, TC_SUBTRACT, tc_build_iota(b, t, 1),
					     tc_build_iota(b, t, 2));

	is_near = tc_build_compare(b, TC_CMP_LE, is_near, tc_build_number(b, t, 1));
	return tc_build_select(b, is_near, tc_linalg_by(b, TC_MULTIPLY, x, scale), x);
}

void tc_decompose_tridiagonal(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	struct tc_value *found[2] = { tc_in(op, 0), NULL };
	struct tc_scaled scaled;

	check_tridiagonal(c, op);
	if (found[0]->type->count) {
		scaled = tc_linalg_scale(&b, tc_build_matrices(&b, found[0]));
		found[0] = tc_linalg_hetrd(&b, scaled.x, &found[1]);
		found[0] = scale_beside(&b, found[0], scaled.scale);
		for (unsigned i = 0; i < 2; i++)
			found[i] = tc_linalg_spoil(&b, found[i], scaled.is_finite);
	} else {
		found[1] = tc_build_number(&b, tc_out(op, 1)->type, 0);
	}
	for (unsigned i = 0; i < 2; i++) {
		const struct tc_type *t = tc_out(op, i)->type;

		found[i] = tc_build_reshape(&b, found[i], t->rank, t->dim);
		tc_replace_uses(tc_out(op, i), found[i]);
	}
	tc_erase(op);
}
