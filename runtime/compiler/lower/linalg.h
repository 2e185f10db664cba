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
/* x y, x y^H and x^H of matrices. */
struct tc_value *tc_linalg_times(const struct tc_build *b, struct tc_value *x,
				 struct tc_value *y);
struct tc_value *tc_linalg_times_adjoint(const struct tc_build *b, struct tc_value *x,
					 struct tc_value *y);
struct tc_value *tc_linalg_adjoint(const struct tc_build *b, struct tc_value *x);
struct tc_value *tc_linalg_identity(const struct tc_build *b, const struct tc_type *type);
/* The diagonal of [batch, n, n] as [batch, n]; and n elements of one that begins elsewhere. */
struct tc_value *tc_linalg_diagonal(const struct tc_build *b, struct tc_value *x);
struct tc_value *tc_linalg_diagonal_of(const struct tc_build *b, struct tc_value *x, int64_t row,
				       int64_t column, int64_t n);
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
 * there. */
struct tc_value *tc_linalg_solve_below(const struct tc_build *b, struct tc_value *l,
				       struct tc_value *rhs);

/*
 * A sweep of Jacobi rotations, jacobi.c: each pair of rows is rotated once. Rows are in
 * `pairs` pairs of blocks of `size` rows, so there are 2 * pairs * size of them, an
 * even number of blocks. What is rotated are the rows of `state`: a Hermitian matrix (its
 * columns too), or rows that become orthogonal to each other; and those of `vectors` with it.
 */
struct tc_sweep {
	int64_t pairs, size;
	bool is_hermitian;
};
struct tc_sweep tc_linalg_sweep(int64_t n, bool is_hermitian);
void tc_linalg_sweep_once(const struct tc_build *b, const struct tc_sweep *s,
			  struct tc_value **state, struct tc_value **vectors);
/* Rows that are orthonormal but for rounding errors, without them. */
struct tc_value *tc_linalg_polish(const struct tc_build *b, struct tc_value *rows);
/* Zero rows and columns behind those of x, to `rows` and `columns` of them. */
struct tc_value *tc_linalg_widen(const struct tc_build *b, struct tc_value *x, int64_t rows,
				 int64_t columns);
/*
 * How far state is from its end, [batch]; `sweeps` goes on while some matrix is above
 * `loose`, or above `tight` and still shrinks.
 */
struct tc_iteration {
	struct tc_sweep sweep;
	double loose, tight;
	/* state anew from the vectors, and how far it is */
	struct tc_value *(*renew)(const struct tc_build *b, struct tc_value *vectors,
				  struct tc_value **level, const void *arg);
	const void *arg;
};
void tc_linalg_iterate(const struct tc_build *b, const struct tc_iteration *it,
		       struct tc_value **state, struct tc_value **vectors);

/* QR as LAPACK's geqrf leaves it: R above, reflectors below; taus [batch, min]. qr.c */
void tc_linalg_qr(const struct tc_build *b, struct tc_value **a, struct tc_value **taus);
/* The product of the reflections in `a` times x, of as many rows; and its first columns, as
 * many as those of `a`. */
struct tc_value *tc_linalg_reflections(const struct tc_build *b, struct tc_value *a,
				       struct tc_value *taus, struct tc_value *x);
struct tc_value *tc_linalg_unitary(const struct tc_build *b, struct tc_value *a,
				   struct tc_value *taus);

void tc_decompose_qr(struct tc_ctx *c, struct tc_op *op);		/* qr.c */
void tc_decompose_householder(struct tc_ctx *c, struct tc_op *op);
void tc_decompose_lu(struct tc_ctx *c, struct tc_op *op);		/* lu.c */
void tc_decompose_eigh(struct tc_ctx *c, struct tc_op *op);		/* eigh.c */
void tc_decompose_svd(struct tc_ctx *c, struct tc_op *op);		/* svd.c */

#endif
