/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TC_LOWER_LINALG_H
#define TC_LOWER_LINALG_H
/*
 * What factorisations share. Matrices are [batch, rows, columns] of f32, f64, C64 or C128;
 * what is one number for each matrix is [batch, 1, 1] and real.
 */
#include "runtime/compiler/opt/build.h"

/* A matrix as it is worked with: elements of a size near 1, so that neither squares nor sums
 * of them leave the type's range. */
struct tc_scaled {
	struct tc_value *x;		/* a / scale; zeros where a is not finite */
	struct tc_value *scale;		/* a power of two, so that it loses nothing */
	struct tc_value *is_finite;	/* PRED */
};
struct tc_scaled tc_linalg_scale(const struct tc_build *b, struct tc_value *a);
/* The largest power of two that is not above any |part| of x's elements, over `dims`, which
 * stay with size 1; 1 where all are zero or some are not finite. */
struct tc_value *tc_linalg_power(const struct tc_build *b, struct tc_value *x,
				 uint64_t dims);
/* The same along one dim, which goes. */
struct tc_value *tc_linalg_power_along(const struct tc_build *b, struct tc_value *x, unsigned dim);
/* x (of any type) times or over a real number that broadcasts to x; op TC_MULTIPLY, TC_DIVIDE.
 * A complex x part by part. */
struct tc_value *tc_linalg_by(const struct tc_build *b, enum tc_opcode op,
			      struct tc_value *x, struct tc_value *real);
/* x where the matrix was finite, else NaN; x is [batch, ...]. */
struct tc_value *tc_linalg_spoil(const struct tc_build *b, struct tc_value *x,
				 struct tc_value *is_finite);
/* x y and x^H of matrices. */
struct tc_value *tc_linalg_times(const struct tc_build *b, struct tc_value *x,
				 struct tc_value *y);
struct tc_value *tc_linalg_adjoint(const struct tc_build *b, struct tc_value *x);
struct tc_value *tc_linalg_identity(const struct tc_build *b, const struct tc_type *type);
/* The diagonal of [batch, n, n] as [batch, n]. */
struct tc_value *tc_linalg_diagonal(const struct tc_build *b, struct tc_value *x);
/* |x|^2, real. */
struct tc_value *tc_linalg_square(const struct tc_build *b, struct tc_value *x);
/* Element types that factorisations take. */
bool tc_linalg_takes(enum elem elem);
/* Fails, saying what was given, unless op's first operand is a matrix of such a type and one of
 * `n`. name: what the user called. */
void tc_linalg_check(struct tc_ctx *c, const struct tc_op *op, const char *name, unsigned n);
/* Half the distance from 1 to the next number of the (real or complex) type. */
double tc_linalg_unit(enum elem elem);
/* keys [batch, n] in ascending order, and the rows of `rows` [batch, n, m] in theirs. */
void tc_linalg_sort(const struct tc_build *b, struct tc_value **keys, struct tc_value **rows);
/* X of L X = B, where L has ones on its diagonal and, below it, what `l` [batch, n, n] has
 * there; it is a part of a matrix of so many rows. */
struct tc_value *tc_linalg_solve_below(const struct tc_build *b, struct tc_value *l,
				       struct tc_value *rhs, int64_t of);

/*
 * A small matrix as its elements, one number of each matrix each. What is done with them is
 * elementwise and has no loops, so that all of a small factorisation is a few instructions, with
 * lanes along the batch.
 */
enum { TC_MOST_CELLS = 8 };	/* of a row or a column */
struct tc_cells {
	int64_t rows, columns;
	struct tc_value *at[TC_MOST_CELLS][TC_MOST_CELLS];
};
/* Whether there are matrices enough for that, or so few numbers that QR and LU of one are fewer
 * instructions so than column by column. */
bool tc_linalg_worth_cells(const struct tc_type *t);
void tc_linalg_to_cells(const struct tc_build *b, struct tc_value *x, struct tc_cells *cells);
/* The matrices again; cells may have more than one column each, the same number of a row. */
struct tc_value *tc_linalg_from_cells(const struct tc_build *b, const struct tc_cells *cells);
/* Of x [m, n] with m >= n the first columns of Q in its QR, as unitary as x's type allows where
 * squares of x's numbers are in range or 0; R stays in x. Columns that are orthogonal to those
 * before them are Q's, but for their sizes and signs. qr.c */
struct tc_cells tc_linalg_unitary_cells(const struct tc_build *b, struct tc_cells *x,
					int64_t columns);

/* A rotation by an angle of at most 45 degrees: its tangent, sine and cosine. eigh.c */
struct tc_rotation {
	struct tc_value *tangent, *sine, *cosine;
};
/* Jacobi's: it makes the element `off` beside a diagonal's p and q zero, real ones. They become
 * p - tangent off and q + tangent off. */
struct tc_rotation tc_linalg_rotation(const struct tc_build *b, struct tc_value *p,
				      struct tc_value *q, struct tc_value *off);
/* How often all pairs of a few columns are rotated: what always is enough. */
int tc_linalg_sweeps(const struct tc_type *t);

/*
 * The reflection I - tau v v^H whose adjoint makes a column's elements below the j-th zero; the
 * column is [batch, 1, rows], j a scalar of s32. qr.c
 */
struct tc_reflection {
	struct tc_value *tau;		/* [batch, 1] */
	struct tc_value *v;		/* zeros before the j-th, which is 1 */
	/* As LAPACK leaves it: as it was before the j-th, which becomes real, and v below. */
	struct tc_value *column;
};
struct tc_reflection tc_linalg_reflection(const struct tc_build *b, struct tc_value *column,
					  struct tc_value *j);
/* x - w v for each row of x [batch, rows, n], w = tau v^H x, v [batch, 1, n], tau [batch, 1]. */
struct tc_value *tc_linalg_reflect(const struct tc_build *b, struct tc_value *x,
				   struct tc_value *v, struct tc_value *tau);
/* QR as LAPACK's geqrf leaves it: R above, reflectors below; taus [batch, min]. qr.c */
void tc_linalg_qr(const struct tc_build *b, struct tc_value **a, struct tc_value **taus);
/* The product of the reflections in `a` times x, of as many rows, the last of which are zero where
 * fewer are given. */
struct tc_value *tc_linalg_reflections(const struct tc_build *b, struct tc_value *a,
				       struct tc_value *taus, struct tc_value *x);

/*
 * A Hermitian matrix as Q T Q^H: the diagonal [batch, n] of the tridiagonal T and what is beside
 * it, both real, and Q's reflections as those of a QR of all rows but the first. n: 2 or more.
 * And a square matrix as Q B P^H, B upper bidiagonal and real; Q's reflections as those of a QR,
 * P's as those of a QR of all rows but the first. condense.c
 */
struct tc_condensed {
	struct tc_value *d, *e;		/* [batch, n], [batch, n - 1] */
	struct tc_value *a, *taus;	/* [batch, k, k], [batch, k]; k is n - 1 of T, n of B */
	struct tc_value *right, *right_taus;	/* of B: [batch, k, k], [batch, k]; k is n - 1 */
};
struct tc_condensed tc_linalg_tridiagonal(const struct tc_build *b, struct tc_value *a);
struct tc_condensed tc_linalg_bidiagonal(const struct tc_build *b, struct tc_value *a);
/* The same T, [batch, n, n], as LAPACK's hetrd leaves it below the diagonal: reflectors below what
 * is beside it; above it is nothing of use. taus: [batch, n - 1]. */
struct tc_value *tc_linalg_hetrd(const struct tc_build *b, struct tc_value *a,
				 struct tc_value **taus);
/* Eigenvalues [batch, n] of such a T, in no order, and its vectors as columns. divide.c */
void tc_linalg_divide(const struct tc_build *b, struct tc_value *d, struct tc_value *e,
		      struct tc_value **values, struct tc_value **vectors);
/* Singular values of such a B, the largest first, and its vectors as columns; left: NULL for
 * values alone. divide.c */
void tc_linalg_divide_bidiagonal(const struct tc_build *b, struct tc_value *d, struct tc_value *e,
				 struct tc_value **values, struct tc_value **left,
				 struct tc_value **right);

void tc_decompose_qr(struct tc_ctx *c, struct tc_op *op);		/* qr.c */
void tc_decompose_householder(struct tc_ctx *c, struct tc_op *op);
void tc_decompose_lu(struct tc_ctx *c, struct tc_op *op);		/* lu.c */
void tc_decompose_eigh(struct tc_ctx *c, struct tc_op *op);		/* eigh.c */
void tc_decompose_tridiagonal(struct tc_ctx *c, struct tc_op *op);
void tc_decompose_svd(struct tc_ctx *c, struct tc_op *op);		/* svd.c */

#endif
