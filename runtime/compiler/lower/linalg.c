/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cholesky factors and triangular systems, cut in halves until FEW columns or rows are left:
 * what is between the halves is one product, and so nearly all of the work; the few are a
 * loop, with a few elementwise ops on the whole batch inside. Small matrices have no loop
 * (struct tc_cells), nor have those of a few dozen rows, whose last halves are such. And what all
 * factorisations share (linalg.h).
 */
#include <math.h>
#include <string.h>

#include "runtime/compiler/lower/decompose.h"
#include "runtime/compiler/lower/linalg.h"

enum {
	FEW = 16,	/* columns or rows that a loop does one by one */
	MANY = 16,	/* systems, which lanes may go along */
	FEW_MATRICES = 8,	/* whose columns are done one by one, but of FEW_CELLS numbers */
	FEW_CELLS = 16,
	LEAST_TURNED = 512,	/* matrices, of which each number is moved to those of others */
	MOST_WITHOUT_LOOPS = 128,	/* rows of a system that is not of many */
	MOST_FACTORED_SO = 64,	/* rows of a matrix, */
	MOST_IN_SUCH = 256,	/* and of one whose corners are: else compiling takes too long */
	MOST_UNKNOWNS = 32,	/* of a system whose lanes do, if it is solved without a loop */
};

static const int64_t as_is[] = { 0, 1, 2 };

bool tc_linalg_takes(enum elem elem)
{
	return elem == ELEM_F32 || elem == ELEM_F64 || elem_class(elem) == ELEM_CLASS_COMPLEX;
}

void tc_linalg_check(struct tc_ctx *c, const struct tc_op *op, const char *name, unsigned n)
{
	const struct tc_type *t = op->n_operands == n ? tc_in(op, 0)->type : NULL;

	if (!t || t->is_tuple)
		tc_fail(c, ERR_INVALID_ARGUMENT, op, "%s takes %u operand%s, not %u", name, n,
			n == 1 ? "" : "s", op->n_operands);
	if (!tc_linalg_takes((enum elem)t->elem))
		tc_fail(c, ERR_INVALID_ARGUMENT, op, "Unsupported dtype: %s is given a matrix of "
			"%s; it takes f32, f64, complex<f32> and complex<f64>: convert it first",
			name, elem_text(t->elem));
	if (t->rank < 2)
		tc_fail(c, ERR_INVALID_ARGUMENT, op, "%s is given an array of rank %u; it takes "
			"matrices, of rank 2 or more with batches of them", name, t->rank);
}

double tc_linalg_unit(enum elem elem)
{
	return tc_real_of(elem) == ELEM_F32 ? 0x1p-24 : 0x1p-53;
}

struct tc_value *tc_linalg_adjoint(const struct tc_build *b, struct tc_value *x)
{
	return tc_build_conjugate(b, tc_build_turn(b, x));
}

struct tc_value *tc_linalg_times(const struct tc_build *b, struct tc_value *x,
				 struct tc_value *y)
{
	return tc_build_dot(b, x, y, 1, 2, 1);
}

/* x y^H */
static struct tc_value *times_adjoint(const struct tc_build *b, struct tc_value *x,
				      struct tc_value *y)
{
	return tc_build_dot(b, x, tc_build_conjugate(b, y), 1, 2, 2);
}

struct tc_value *tc_linalg_identity(const struct tc_build *b, const struct tc_type *type)
{
	return tc_build_convert(b, tc_build_where(b, type, TC_CMP_EQ), (enum elem)type->elem);
}

/* In a run of all elements those of the diagonal are as far apart as a row and one are long. */
struct tc_value *tc_linalg_diagonal(const struct tc_build *b, struct tc_value *x)
{
	const int64_t high = x->type->dim[1], wide = x->type->dim[2];
	const int64_t flat[] = { x->type->dim[0], high * wide };
	const int64_t start[] = { 0, 0 }, step[] = { 1, wide + 1 };
	const int64_t dim[] = { flat[0], high < wide ? high : wide };

	return tc_build_steps(b, tc_build_reshape(b, x, 2, flat), start, step,
			      tc_tensor(b->c, (enum elem)x->type->elem, 2, dim));
}

/* The parts of x; im is NULL for a real one. */
static struct tc_value *part_of(const struct tc_build *b, struct tc_value *x,
				struct tc_value **im)
{
	struct tc_value *re = tc_build_real(b, x);

	*im = re == x ? NULL : tc_build(b, TC_IMAG, re->type, 1, &x);
	return re;
}

struct tc_value *tc_linalg_square(const struct tc_build *b, struct tc_value *x)
{
	struct tc_value *im, *re = part_of(b, x, &im);

	re = tc_build2(b, TC_MULTIPLY, re, re);
	return im ? tc_build2(b, TC_ADD, re, tc_build2(b, TC_MULTIPLY, im, im)) : re;
}

/* The largest |part| over dims, which go. */
static struct tc_value *largest_of(const struct tc_build *b, struct tc_value *x, uint64_t dims)
{
	struct tc_value *im, *re = part_of(b, x, &im);

	re = tc_build1(b, TC_ABS, re);
	if (im)
		re = tc_build2(b, TC_MAXIMUM, re, tc_build1(b, TC_ABS, im));
	return tc_build_fold(b, TC_MAXIMUM, re, -INFINITY, dims);
}

/* The same over dims that stay with size 1. */
static struct tc_value *largest(const struct tc_build *b, struct tc_value *x, uint64_t dims)
{
	int64_t dim[TC_MAX_RANK];

	for (unsigned d = 0; d < x->type->rank; d++)
		dim[d] = dims >> d & 1 ? 1 : x->type->dim[d];
	return tc_build_reshape(b, largest_of(b, x, dims), x->type->rank, dim);
}

static struct tc_value *bits_as(const struct tc_build *b, struct tc_value *x, enum elem elem)
{
	return tc_build(b, TC_BITCAST_CONVERT, tc_with_elem(b->c, x->type, elem), 1, &x);
}

/* Without the bits of its fraction a number is a power of two, or 0, or infinite. */
static struct tc_value *power_of(const struct tc_build *b, struct tc_value *most,
				 struct tc_value *is_finite)
{
	bool narrow = most->type->elem == ELEM_F32;
	struct tc_value *one = tc_build_number(b, most->type, 1), *bits, *p, *good;

	bits = bits_as(b, most, narrow ? ELEM_U32 : ELEM_U64);
	p = tc_build_number(b, bits->type, narrow ? 0x7f800000p0 : 0x7ff0000000000000p0);
	p = bits_as(b, tc_build2(b, TC_AND, bits, p), (enum elem)most->type->elem);
	good = tc_build_compare(b, TC_CMP_GT, p, tc_build_number(b, p->type, 0));
	return tc_build_select(b, tc_build2(b, TC_AND, good, is_finite), p, one);
}

static struct tc_value *is_finite(const struct tc_build *b, struct tc_value *most)
{
	return tc_build_compare(b, TC_CMP_LT, most,
				tc_build_number(b, most->type, INFINITY));
}

struct tc_value *tc_linalg_power(const struct tc_build *b, struct tc_value *x, uint64_t dims)
{
	struct tc_value *most = largest(b, x, dims);

	return power_of(b, most, is_finite(b, most));
}

struct tc_value *tc_linalg_power_along(const struct tc_build *b, struct tc_value *x, unsigned dim)
{
	struct tc_value *most = largest_of(b, x, 1u << dim);

	return power_of(b, most, is_finite(b, most));
}

/* One value for each matrix, as large as x, which is of rank 2 or 3. */
static struct tc_value *spread(const struct tc_build *b, struct tc_value *value,
			       const struct tc_type *t)
{
	t = tc_with_elem(b->c, t, (enum elem)value->type->elem);
	if (t->rank == 3)
		return tc_build_broadcast(b, value, t, as_is);
	return tc_build_broadcast(b, tc_build_reshape(b, value, 1, t->dim), t, as_is);
}

struct tc_value *tc_linalg_by(const struct tc_build *b, enum tc_opcode op, struct tc_value *x,
			      struct tc_value *real)
{
	struct tc_value *part[2];

	part[0] = part_of(b, x, &part[1]);
	real = spread(b, real, x->type);
	for (unsigned i = 0; i < 2 && part[i]; i++)
		part[i] = tc_build2(b, op, part[i], real);
	return part[1] ? tc_build(b, TC_COMPLEX, x->type, 2, part) : part[0];
}

struct tc_value *tc_linalg_spoil(const struct tc_build *b, struct tc_value *x,
				 struct tc_value *is_good)
{
	return tc_build_select(b, spread(b, is_good, x->type), x,
			       tc_build_number(b, x->type, NAN));
}

struct tc_scaled tc_linalg_scale(const struct tc_build *b, struct tc_value *a)
{
	struct tc_value *most = largest(b, a, 6);
	struct tc_scaled s = { .is_finite = is_finite(b, most) };

	s.scale = power_of(b, most, s.is_finite);
	s.x = tc_linalg_by(b, TC_DIVIDE, a, s.scale);
	s.x = tc_build_select(b, spread(b, s.is_finite, a->type), s.x,
			      tc_build_number(b, a->type, 0));
	return s;
}

void tc_linalg_sort(const struct tc_build *b, struct tc_value **keys, struct tc_value **rows)
{
	const struct tc_type *t = (*keys)->type;
	struct tc_value *in[2] = { *keys, NULL }, *pick, *arg[4];
	const struct tc_type *types[2] = { t, tc_with_elem(b->c, t, ELEM_S32) };
	struct tc_build inner = { .c = b->c, .where = b->where };
	struct tc_op *sort;

	in[1] = tc_build_iota(b, types[1], 1);
	sort = tc_new(b->c, TC_SORT, 2, in, 2, types, 1);
	tc_set_int(b->c, sort, "dimension", TC_ATTR_INT, 1);
	tc_set_int(b->c, sort, "is_stable", TC_ATTR_BOOL, 1);
	inner.block = tc_new_block(b->c, &sort->regions[0]);
	for (unsigned i = 0; i < 4; i++)
		arg[i] = tc_new_arg(b->c, inner.block,
				    tc_tensor(b->c, (enum elem)types[i / 2]->elem, 0, NULL));
	pick = tc_build_compare(&inner, TC_CMP_LT, arg[0], arg[1]);
	tc_build_return(&inner, 1, &pick);
	tc_build_place(b, sort);
	*keys = tc_out(sort, 0);
	*rows = tc_build_rows(b, *rows, tc_out(sort, 1));
}

/* Of many matrices a cell is a run of memory: they are turned about, the batch last. */
bool tc_linalg_worth_cells(const struct tc_type *t)
{
	return t->dim[0] > FEW_MATRICES || t->dim[1] * t->dim[2] <= FEW_CELLS;
}

void tc_linalg_to_cells(const struct tc_build *b, struct tc_value *x, struct tc_cells *cells)
{
	static const int64_t last[] = { 1, 2, 0 };
	const int64_t one[] = { x->type->dim[0], 1, 1 };
	const bool turned = one[0] >= LEAST_TURNED;

	cells->rows = x->type->dim[1];
	cells->columns = x->type->dim[2];
	if (turned)
		x = tc_build_transpose(b, x, last);
	for (int64_t i = 0; i < cells->rows; i++) {
		struct tc_value *row = tc_build_part(b, x, !turned, i, 1), **cell;

		for (int64_t j = 0; j < cells->columns; j++) {
			cell = &cells->at[i][j];
			*cell = tc_build_part(b, row, 2u - turned, j, 1);
			*cell = tc_build_reshape(b, *cell, 3, one);
		}
	}
}

struct tc_value *tc_linalg_from_cells(const struct tc_build *b, const struct tc_cells *cells)
{
	static const int64_t first[] = { 2, 0, 1 };
	const struct tc_type *t = cells->at[0][0]->type;
	const int64_t one[] = { 1, 1, t->dim[0] };
	const bool turned = one[2] >= LEAST_TURNED && t->dim[2] == 1;
	struct tc_value *row[TC_MOST_CELLS] = { NULL }, *cell[TC_MOST_CELLS] = { NULL }, *x;

	for (int64_t i = 0; i < cells->rows; i++) {
		for (int64_t j = 0; j < cells->columns; j++)
			cell[j] = turned ? tc_build_reshape(b, cells->at[i][j], 3, one) :
					   cells->at[i][j];
		row[i] = tc_build_join(b, (unsigned)cells->columns, cell, 2 - turned);
	}
	x = tc_build_join(b, (unsigned)cells->rows, row, !turned);
	return turned ? tc_build_transpose(b, x, first) : x;
}

/* Types that the sums of a factorisation are worth doing in. */
static enum elem working(enum elem elem)
{
	return elem == ELEM_F16 || elem == ELEM_BF16 ? ELEM_F32 : elem;
}

/* Of more than FEW columns or rows, what comes before the cut. */
static int64_t half_of(int64_t n)
{
	return (n / 2 + FEW - 1) / FEW * FEW;
}

/* The same of more than TC_MOST_CELLS. */
static int64_t half_in_cells(int64_t n)
{
	return (n / 2 + TC_MOST_CELLS - 1) / TC_MOST_CELLS * TC_MOST_CELLS;
}

/* x with one element where t has many. */
static struct tc_value *over(const struct tc_build *b, struct tc_value *x,
			     const struct tc_type *t)
{
	return tc_build_broadcast(b, x, tc_with_elem(b->c, t, (enum elem)x->type->elem), as_is);
}

/* Positions along `dim` of t compared with the scalar j. */
static struct tc_value *at(const struct tc_build *b, const struct tc_type *t, unsigned dim,
			   int direction, struct tc_value *j)
{
	const struct tc_type *s32 = tc_with_elem(b->c, t, ELEM_S32);

	return tc_build_compare(b, direction, tc_build_iota(b, s32, dim),
				tc_build_broadcast(b, j, s32, NULL));
}

/* What a pivot leaves on the diagonal: NaN unless it is positive. */
static struct tc_value *root_of(const struct tc_build *b, struct tc_value *x)
{
	struct tc_value *pivot = tc_build_real(b, x), *is_good;

	is_good = tc_build_compare(b, TC_CMP_GT, pivot, tc_build_number(b, pivot->type, 0));
	pivot = tc_build_select(b, is_good, pivot, tc_build_number(b, pivot->type, NAN));
	return tc_build1(b, TC_SQRT, pivot);
}

/*
 * Column j of L, c = A[j:, j] / sqrt(A[j, j]), and c conj(c[k]) off each column k to come. They
 * lie as rows, [batch, w, n], so that each is a run of memory.
 */
static void factor_column(const struct tc_build *b, struct tc_value *j,
			  struct tc_value **state, void *arg)
{
	struct tc_value *x = state[0], *column = tc_build_take(b, x, 1, j, 1), *pivot, *head, *less;
	const struct tc_type *t = x->type;

	(void)arg;
	pivot = root_of(b, tc_build_take(b, column, 2, j, 1));
	column = tc_build_select(b, at(b, column->type, 2, TC_CMP_GT, j),
				 tc_linalg_by(b, TC_DIVIDE, column, pivot),
				 tc_build_number(b, column->type, 0));
	/* Not divided by its root: an infinite one would be NaN. */
	pivot = over(b, tc_build_convert(b, pivot, (enum elem)t->elem), column->type);
	column = tc_build_select(b, at(b, column->type, 2, TC_CMP_EQ, j), pivot, column);
	head = tc_build_turn(b, tc_build_part(b, column, 2, 0, t->dim[1]));
	column = over(b, column, t);
	less = tc_build2(b, TC_MULTIPLY, over(b, tc_build_conjugate(b, head), t), column);
	x = tc_build_select(b, at(b, t, 1, TC_CMP_GT, j), tc_build2(b, TC_SUBTRACT, x, less), x);
	state[0] = tc_build_select(b, at(b, t, 1, TC_CMP_EQ, j), column, x);
}

/* The same without a loop, of a whole matrix of few columns. */
static struct tc_value *factor_cells(const struct tc_build *b, struct tc_value *a)
{
	struct tc_value *pivot, *zero, *less;
	struct tc_cells x;

	tc_linalg_to_cells(b, a, &x);
	zero = tc_build_number(b, x.at[0][0]->type, 0);
	for (int64_t j = 0; j < x.columns; j++) {
		pivot = root_of(b, x.at[j][j]);
		x.at[j][j] = tc_build_convert(b, pivot, (enum elem)a->type->elem);
		for (int64_t i = 0; i < j; i++)
			x.at[i][j] = zero;
		for (int64_t i = j + 1; i < x.rows; i++)
			x.at[i][j] = tc_linalg_by(b, TC_DIVIDE, x.at[i][j], pivot);
		for (int64_t k = j + 1; k < x.columns; k++) {
			struct tc_value *head = tc_build_conjugate(b, x.at[k][j]);

			for (int64_t i = k; i < x.rows; i++) {
				less = tc_build2(b, TC_MULTIPLY, head, x.at[i][j]);
				x.at[i][k] = tc_build2(b, TC_SUBTRACT, x.at[i][k], less);
			}
		}
	}
	return tc_linalg_from_cells(b, &x);
}

/* Where a matrix had no factor its last pivot is NaN, because each pivot hands it on: then
 * all of L is, as people test for. */
static struct tc_value *spoil(const struct tc_build *b, struct tc_value *l)
{
	int64_t n = l->type->dim[1];
	struct tc_value *last = tc_build_part(b, tc_build_part(b, l, 1, n - 1, 1), 2, n - 1, 1);

	last = tc_build_broadcast(b, last, l->type, (const int64_t[]){ 0, 1, 2 });
	return tc_build_select(b, tc_build_compare(b, TC_CMP_EQ, last, last), l, last);
}

struct system {
	struct tc_value *t;	/* [batch, n, n], zero outside its triangle; unit: and on its
				 * diagonal, which is said to be 1, whatever lies there */
	struct tc_value *rhs;	/* [batch, n, k] */
	bool lower, unit;
	bool is_small;		/* up to MOST_WITHOUT_LOOPS rows, also of what it is a part of */
};

/* Row i of X: (B[i] - T[i, :] X) / T[i, i]; rows to come are still zero. */
static void solve_row(const struct tc_build *b, struct tc_value *i, struct tc_value **state,
		      void *arg)
{
	const struct system *s = arg;
	struct tc_value *x = state[0], *row, *line, *pivot, *last;

	if (!s->lower) {
		last = tc_build_number(b, i->type, (double)(s->t->type->dim[1] - 1));
		i = tc_build2(b, TC_SUBTRACT, last, i);
	}
	line = tc_build_take(b, s->t, 1, i, 1);				/* [batch, 1, n] */
	row = tc_build_take(b, s->rhs, 1, i, 1);			/* [batch, 1, k] */
	pivot = s->unit ? NULL : tc_build_take(b, line, 2, i, 1);
	/* X[i] is zero yet, and an infinite pivot times that would be NaN. */
	if (pivot)
		line = tc_build_select(b, at(b, line->type, 2, TC_CMP_EQ, i),
				       tc_build_number(b, line->type, 0), line);
	row = tc_build2(b, TC_SUBTRACT, row, tc_build_dot(b, line, x, 1, 2, 1));
	if (pivot) {
		pivot = tc_build_broadcast(b, pivot, row->type, (const int64_t[]){ 0, 1, 2 });
		row = tc_build2(b, TC_DIVIDE, row, pivot);
	}
	state[0] = tc_build_put(b, x, 1, i, row);
}

/*
 * Row i of many small systems with few right sides: the pivot's row, and that off the rows to
 * come. Lanes go along the batch, the last dim: t [columns, rows, batch], x [right sides, rows,
 * batch].
 */
static void solve_row_of_many(const struct tc_build *b, struct tc_value *i,
			      struct tc_value **state, void *arg)
{
	const struct system *s = arg;
	struct tc_value *x = state[0], *column, *row, *later, *less, *last;
	const struct tc_type *t = x->type;

	if (!s->lower) {
		last = tc_build_number(b, i->type, (double)(t->dim[1] - 1));
		i = tc_build2(b, TC_SUBTRACT, last, i);
	}
	column = tc_build_take(b, s->t, 0, i, 1);
	row = tc_build_take(b, x, 1, i, 1);
	if (!s->unit)
		row = tc_build2(b, TC_DIVIDE, row,
				over(b, tc_build_take(b, column, 1, i, 1), row->type));
	row = over(b, row, t);
	less = tc_build2(b, TC_MULTIPLY, over(b, column, t), row);
	later = at(b, t, 1, s->lower ? TC_CMP_GT : TC_CMP_LT, i);
	x = tc_build_select(b, later, tc_build2(b, TC_SUBTRACT, x, less), x);
	state[0] = tc_build_select(b, at(b, t, 1, TC_CMP_EQ, i), row, x);
}

static struct tc_value *solve_many(const struct tc_build *b, const struct system *s)
{
	static const int64_t mirror[] = { 2, 1, 0 };
	struct tc_value *x = tc_build_transpose(b, s->rhs, mirror);
	struct system turned = *s;
	struct tc_loop loop = { .n = s->t->type->dim[1], .body = solve_row_of_many,
				.arg = &turned };

	turned.t = tc_build_transpose(b, s->t, mirror);
	tc_build_loop(b, &loop, 1, &x);
	return tc_build_transpose(b, x, mirror);
}

/* Whether lanes go along the batch, not along the right sides. */
static bool is_many(const struct system *s)
{
	return s->rhs->type->dim[0] >= MANY && s->rhs->type->dim[0] > s->rhs->type->dim[2];
}

static bool is_in_cells(const struct system *s)
{
	const int64_t n = s->t->type->dim[1];

	return n <= TC_MOST_CELLS &&
	       (!is_many(s) || (s->rhs->type->dim[2] <= TC_MOST_CELLS &&
				n * s->rhs->type->dim[2] <= MOST_UNKNOWNS));
}

/* Row by row, each off those to come. */
static struct tc_value *solve_cells(const struct tc_build *b, const struct system *s)
{
	const int64_t n = s->t->type->dim[1], k = s->rhs->type->dim[2];
	const int64_t wide = is_many(s) ? 1 : k, first = s->lower ? 0 : n - 1;
	const int64_t step = s->lower ? 1 : -1;
	struct tc_cells t, x = { .rows = n, .columns = k / wide };

	tc_linalg_to_cells(b, s->t, &t);
	for (int64_t i = 0; i < n; i++)
		for (int64_t j = 0; j < x.columns; j++)
			x.at[i][j] = tc_build_part(b, tc_build_part(b, s->rhs, 1, i, 1), 2,
						   j * wide, wide);
	for (int64_t i = first; i >= 0 && i < n; i += step) {
		for (int64_t j = 0; j < x.columns; j++) {
			const struct tc_type *type = x.at[i][j]->type;

			if (!s->unit)
				x.at[i][j] = tc_build2(b, TC_DIVIDE, x.at[i][j],
						       over(b, t.at[i][i], type));
			for (int64_t l = i + step; l >= 0 && l < n; l += step)
				x.at[l][j] = tc_build2(b, TC_SUBTRACT, x.at[l][j],
						       tc_build2(b, TC_MULTIPLY,
								 over(b, t.at[l][i], type),
								 x.at[i][j]));
		}
	}
	return tc_linalg_from_cells(b, &x);
}

/* Where a system is cut in halves; all of it: it is not. Of one that is not large, and not of many,
 * no part is left to a loop. */
static int64_t cut_of(const struct system *s)
{
	const int64_t n = s->t->type->dim[1];

	if (s->is_small && !is_many(s))
		return half_in_cells(n);
	return n <= FEW ? n : half_of(n);
}

static struct tc_value *solve(const struct tc_build *b, const struct system *s)
{
	int64_t n = s->t->type->dim[1], h = cut_of(s), size[] = { h, n - h };
	unsigned first = !s->lower, second = s->lower;
	struct tc_value *x[2], *t[2][2], *rhs[2];
	struct system half = *s;
	struct tc_loop loop = { .n = n, .body = solve_row, .arg = &half };

	if (is_in_cells(s))
		return solve_cells(b, s);
	if (h == n && is_many(s))
		return solve_many(b, s);
	if (h == n) {
		x[0] = tc_build_number(b, s->rhs->type, 0);
		tc_build_loop(b, &loop, 1, x);
		return x[0];
	}
	for (unsigned i = 0; i < 2; i++) {
		rhs[i] = tc_build_part(b, s->rhs, 1, i * h, size[i]);
		for (unsigned j = 0; j < 2; j++)
			t[i][j] = tc_build_part(b, tc_build_part(b, s->t, 1, i * h, size[i]), 2,
						j * h, size[j]);
	}
	half.t = t[first][first];
	half.rhs = rhs[first];
	x[first] = solve(b, &half);
	half.t = t[second][second];
	half.rhs = tc_build2(b, TC_SUBTRACT, rhs[second],
			     tc_linalg_times(b, t[second][first], x[first]));
	x[second] = solve(b, &half);
	return tc_build_join(b, 2, x, 1);
}

/* L of matrices that are not large, without a loop of columns; the systems of many have loops. */
static struct tc_value *factor_without_loops(const struct tc_build *b, struct tc_value *a)
{
	const int64_t n = a->type->dim[1], h = half_in_cells(n);
	const int64_t corner[] = { a->type->dim[0], h, n - h };
	struct system s = { .lower = true, .is_small = true };
	struct tc_value *right, *part[2];

	if (n <= TC_MOST_CELLS)
		return factor_cells(b, a);
	s.t = factor_without_loops(b, tc_build_part(b, tc_build_part(b, a, 1, 0, h), 2, 0, h));
	right = tc_build_part(b, a, 1, h, n - h);
	s.rhs = tc_linalg_adjoint(b, tc_build_part(b, right, 2, 0, h));
	part[0] = s.t;
	part[1] = tc_linalg_adjoint(b, solve(b, &s));
	right = tc_build2(b, TC_SUBTRACT, tc_build_part(b, right, 2, h, n - h),
			  times_adjoint(b, part[1], part[1]));
	right = factor_without_loops(b, right);
	part[0] = tc_build_join(b, 2, part, 1);
	part[1] = tc_build_number(b, tc_tensor(b->c, (enum elem)a->type->elem, 3, corner), 0);
	part[1] = tc_build_join(b, 2, (struct tc_value *[]){ part[1], right }, 1);
	return tc_build_join(b, 2, part, 2);
}

/* The first columns of L, [batch, n, w], from those of a matrix whose columns before them are taken
 * off: few enough for factor_without_loops(). */
static struct tc_value *factor_corner(const struct tc_build *b, struct tc_value *a)
{
	const int64_t n = a->type->dim[1], w = a->type->dim[2];
	struct system s = { .lower = true, .is_small = true };
	struct tc_value *part[2];

	s.t = part[0] = factor_without_loops(b, tc_build_part(b, a, 1, 0, w));
	if (n == w)
		return s.t;
	s.rhs = tc_linalg_adjoint(b, tc_build_part(b, a, 1, w, n - w));
	part[1] = tc_linalg_adjoint(b, solve(b, &s));
	return tc_build_join(b, 2, part, 1);
}

/* The same of any number of columns; of: the rows of the whole matrix. */
static struct tc_value *factor_columns(const struct tc_build *b, struct tc_value *a, int64_t of)
{
	int64_t n = a->type->dim[1], w = a->type->dim[2], h = half_of(w);
	struct tc_value *left, *right, *below, *part[2];
	const int64_t corner[] = { a->type->dim[0], h, w - h };
	struct tc_loop loop = { .n = w, .body = factor_column };

	if (w <= MOST_FACTORED_SO && of <= MOST_IN_SUCH)
		return factor_corner(b, a);
	if (w <= FEW) {
		left = tc_build_turn(b, a);
		tc_build_loop(b, &loop, 1, &left);
		return tc_build_turn(b, left);
	}
	left = factor_columns(b, tc_build_part(b, a, 2, 0, h), of);
	below = tc_build_part(b, left, 1, h, n - h);
	right = tc_build_part(b, tc_build_part(b, a, 1, h, n - h), 2, h, w - h);
	right = tc_build2(b, TC_SUBTRACT, right,
			  times_adjoint(b, below, tc_build_part(b, left, 1, h, w - h)));
	part[0] = tc_build_number(b, tc_tensor(b->c, (enum elem)a->type->elem, 3, corner), 0);
	part[1] = factor_columns(b, right, of);
	part[1] = tc_build_join(b, 2, part, 1);
	part[0] = left;
	return tc_build_join(b, 2, part, 2);
}

/* The diagonal of a Hermitian matrix is real, whatever its imaginary parts hold. */
void tc_decompose_cholesky(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	const struct tc_type *t = tc_out(op, 0)->type;
	bool lower = tc_attr_int(op, "lower", 0);
	struct tc_value *a = tc_in(op, 0), *l;

	if (t->count) {
		a = tc_build_matrices(&b, tc_build_convert(&b, a, working((enum elem)t->elem)));
		if (!lower)
			a = tc_build_conjugate(&b, tc_build_turn(&b, a));
		l = spoil(&b, factor_columns(&b, a, a->type->dim[1]));
		if (!lower)
			l = tc_build_conjugate(&b, tc_build_turn(&b, l));
		a = tc_build_convert(&b, tc_build_reshape(&b, l, t->rank, t->dim),
				     (enum elem)t->elem);
	}
	tc_replace(op, a);
}

struct tc_value *tc_linalg_solve_below(const struct tc_build *b, struct tc_value *l,
				       struct tc_value *rhs, int64_t of)
{
	struct tc_value *zero = tc_build_number(b, l->type, 0);
	struct system s = { .rhs = rhs, .lower = true, .unit = true,
			    .is_small = of <= MOST_WITHOUT_LOOPS };

	s.t = tc_build_select(b, tc_build_where(b, l->type, TC_CMP_GT), l, zero);
	return solve(b, &s);
}

/* X op(A) = B is op(A)^T X^T = B^T. */
void tc_decompose_triangular_solve(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	const struct tc_type *t = tc_out(op, 0)->type;
	int64_t transpose = tc_attr_int(op, "transpose_a", TC_SOLVE_PLAIN);
	bool left = tc_attr_int(op, "left_side", 1), turned;
	enum elem work = working((enum elem)t->elem);
	struct system s = { .lower = tc_attr_int(op, "lower", 0),
			    .unit = tc_attr_int(op, "unit_diagonal", 0) };
	struct tc_value *x = tc_in(op, 1);
	int side;

	if (t->count) {
		s.t = tc_build_matrices(&b, tc_build_convert(&b, tc_in(op, 0), work));
		s.rhs = tc_build_matrices(&b, tc_build_convert(&b, x, work));
		side = s.unit ? s.lower ? TC_CMP_GT : TC_CMP_LT :
		       s.lower ? TC_CMP_GE : TC_CMP_LE;
		s.t = tc_build_select(&b, tc_build_where(&b, s.t->type, side), s.t,
				      tc_build_number(&b, s.t->type, 0));
		if (transpose == TC_SOLVE_ADJOINT)
			s.t = tc_build_conjugate(&b, s.t);
		turned = (transpose != TC_SOLVE_PLAIN) != !left;
		if (turned) {
			s.t = tc_build_turn(&b, s.t);
			s.lower = !s.lower;
		}
		if (!left)
			s.rhs = tc_build_turn(&b, s.rhs);
		s.is_small = s.t->type->dim[1] <= MOST_WITHOUT_LOOPS;
		x = solve(&b, &s);
		if (!left)
			x = tc_build_turn(&b, x);
		x = tc_build_convert(&b, tc_build_reshape(&b, x, t->rank, t->dim),
				     (enum elem)t->elem);
	}
	tc_replace(op, x);
}
