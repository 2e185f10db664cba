/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cholesky factors and triangular systems, cut in halves: what is between the halves is one
 * product, and so nearly all of the work. Of small parts each number is a value of its own
 * (struct tc_cells), or each column; what would be too many of these is a loop. And what all
 * factorisations share (linalg.h).
 */
#include <math.h>
#include <string.h>

#include "runtime/compiler/lower/decompose.h"
#include "runtime/compiler/lower/linalg.h"

enum {
	FEW = 16,	/* columns or rows that a loop does one by one */
	FEW_MATRICES = 8,	/* whose columns are done one by one, but of FEW_CELLS numbers */
	FEW_CELLS = 16,
	AT_ONCE = 4,	/* columns of a Cholesky factor of FEW_MATRICES, of which more rows than */
	MOST_IN_PANELS = 512,	/* take too long to compile without loops */
	LEAST_TURNED = 512,	/* matrices, of which each number is moved to those of others */
	MOST_WITHOUT_LOOPS = 256,	/* rows of a system: else compiling takes too long, */
	MOST_IN_LU = 128,	/* and of a matrix of which LU solves so many */
	BLOCK = 64,	/* rows of larger ones, of which a turn of a loop makes so many */
	MOST_BLOCKS = 8,	/* and the loop so many times that, */
	MANY = 32,	/* or fewer of so many right sides: what is 0 is multiplied, too */
	MOST_FACTORED_SO = 64,	/* rows of a matrix, */
	MOST_IN_SUCH = 256,	/* and of one whose corners are: else compiling takes too long */
	FEW_ROWS = 32,	/* of which compiling has the memory for many, */
	MOST_IN_PROGRAM = 2048,	/* and rows of larger ones that it has the memory for */
	COMPLEX_ROWS = 3,	/* as many as one of complex numbers, which takes more */
};

/*
 * Whether a matrix or system t may be done without the loops that it could be done by: of each row
 * there is much to compile then, so a program has so many at most, and none if it still is too
 * much.
 */
static bool may_be_without_loops(struct tc_ctx *c, const struct tc_type *t)
{
	const bool is_complex = elem_class(t->elem) == ELEM_CLASS_COMPLEX;
	const int64_t rows = t->dim[1] * (is_complex ? COMPLEX_ROWS : 1);

	if (t->dim[1] <= TC_MOST_CELLS)
		return true;
	if (!tc_may_take_more(c))
		return false;
	if (t->dim[1] <= FEW_ROWS)
		return true;
	if (c->unrolled_rows >= MOST_IN_PROGRAM)
		return false;
	c->unrolled_rows += (uint32_t)rows;
	return true;
}

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

/* The columns of row i from j to `end`, x being [batch, rows, columns] or turned about for it. */
static void row_to_cells(const struct tc_build *b, struct tc_value *x, bool turned, int64_t i,
			 int64_t j, int64_t end, struct tc_cells *cells)
{
	const int64_t one[] = { x->type->dim[turned ? 2 : 0], 1, 1 };
	struct tc_value *row = tc_build_part(b, x, !turned, i, 1), *cell;

	for (; j < end; j++) {
		cell = tc_build_part(b, row, 2u - turned, j, 1);
		cells->at[i][j] = tc_build_reshape(b, cell, 3, one);
	}
}

/* Whether a cell is a run of memory that was turned about for it; then x is. */
static bool turn_for_cells(const struct tc_build *b, struct tc_value **x)
{
	static const int64_t last[] = { 1, 2, 0 };

	if ((*x)->type->dim[0] < LEAST_TURNED)
		return false;
	*x = tc_build_transpose(b, *x, last);
	return true;
}

void tc_linalg_to_cells(const struct tc_build *b, struct tc_value *x, struct tc_cells *cells)
{
	bool turned;

	cells->rows = x->type->dim[1];
	cells->columns = x->type->dim[2];
	turned = turn_for_cells(b, &x);
	for (int64_t i = 0; i < cells->rows; i++)
		row_to_cells(b, x, turned, i, 0, cells->columns, cells);
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

/* L of so few columns in the place of A's numbers, which are on its diagonal and below. */
static void factor_numbers(const struct tc_build *b, struct tc_cells *x)
{
	const enum elem elem = (enum elem)x->at[0][0]->type->elem;
	struct tc_value *pivot, *less;

	for (int64_t j = 0; j < x->columns; j++) {
		pivot = root_of(b, x->at[j][j]);
		x->at[j][j] = tc_build_convert(b, pivot, elem);
		for (int64_t i = j + 1; i < x->rows; i++)
			x->at[i][j] = tc_linalg_by(b, TC_DIVIDE, x->at[i][j], pivot);
		for (int64_t k = j + 1; k < x->columns; k++) {
			struct tc_value *head = tc_build_conjugate(b, x->at[k][j]);

			for (int64_t i = k; i < x->rows; i++) {
				less = tc_build2(b, TC_MULTIPLY, head, x->at[i][j]);
				x->at[i][k] = tc_build2(b, TC_SUBTRACT, x->at[i][k], less);
			}
		}
	}
}

/*
 * Column j + k of L from A's, without what its columns from j on, which are in `columns`, make of
 * it; l: the numbers where these cross. What is above the diagonal is of no use.
 */
static struct tc_value *column_of(const struct tc_build *b, struct tc_value *x, int64_t j,
				  int64_t k, const struct tc_cells *l, struct tc_value **columns)
{
	const struct tc_type *t = x->type, *s32 = tc_with_elem(b->c, t, ELEM_S32);
	struct tc_value *is_pivot, *less;

	for (int64_t q = 0; q < k; q++) {
		less = over(b, tc_build_conjugate(b, l->at[k][q]), t);
		less = tc_build2(b, TC_MULTIPLY, less, columns[j + q]);
		x = tc_build2(b, TC_SUBTRACT, x, less);
	}
	x = tc_linalg_by(b, TC_DIVIDE, x, tc_build_real(b, l->at[k][k]));
	is_pivot = tc_build_compare(b, TC_CMP_EQ, tc_build_iota(b, s32, 2),
				    tc_build_number(b, s32, (double)(j + k)));
	/* Not divided by its root: an infinite one would be NaN. */
	return tc_build_select(b, is_pivot, over(b, l->at[k][k], t), x);
}

/*
 * A few columns of few matrices without a loop, AT_ONCE by a few instructions: their numbers where
 * they cross the diagonal, the columns, and those behind them, of whose rows [batch, w, n] some go
 * each time.
 */
static struct tc_value *factor_panel(const struct tc_build *b, struct tc_value *x)
{
	const int64_t w = x->type->dim[1];
	struct tc_value *columns[FEW];

	for (int64_t j = 0; j < w; j += AT_ONCE) {
		const int64_t some = w - j < AT_ONCE ? w - j : AT_ONCE, left = w - j - some;
		struct tc_cells l = { .rows = some, .columns = some };

		for (int64_t k = 0; k < some; k++)
			for (int64_t i = k; i < some; i++)
				l.at[i][k] = tc_build_part(b, tc_build_part(b, x, 1, k, 1), 2,
							   j + i, 1);
		factor_numbers(b, &l);
		for (int64_t k = 0; k < some; k++)
			columns[j + k] = column_of(b, tc_build_part(b, x, 1, k, 1), j, k, &l,
						   columns);
		if (!left)
			break;
		x = tc_build_part(b, x, 1, some, left);
		for (int64_t k = j; k < j + some; k++) {
			struct tc_value *head = tc_build_part(b, columns[k], 2, j + some, left);

			head = tc_build_conjugate(b, tc_build_turn(b, head));
			head = tc_build2(b, TC_MULTIPLY, over(b, head, x->type),
					 over(b, columns[k], x->type));
			x = tc_build2(b, TC_SUBTRACT, x, head);
		}
	}
	return tc_build_join(b, (unsigned)w, columns, 1);
}

/* Panels of columns, which lie as rows, as long as those of the whole matrix. */
struct panels {
	struct tc_value *at[MOST_IN_PANELS / TC_MOST_CELLS];
	unsigned n;
};

/* From x, [batch, w, n], whose columns before the first are taken off, w of L's, which `done` has
 * then. What is behind these of their rows, [batch, w, n - w]; NULL where nothing is. */
static struct tc_value *factor_rows(const struct tc_build *b, struct tc_value *x, int64_t before,
				    struct panels *done)
{
	const int64_t w = x->type->dim[1], n = x->type->dim[2], h = half_of(w);
	const int64_t none[] = { 0, 0, 0 }, front[] = { 0, 0, before };
	struct tc_value *left, *right, *head, *zero, *part[2];

	if (w <= FEW) {
		x = factor_panel(b, x);
		zero = tc_build_number(b, tc_tensor(b->c, (enum elem)x->type->elem, 0, NULL), 0);
		done->at[done->n++] = before ? tc_build_pad(b, x, zero, front, none, none) : x;
		return w == n ? NULL : tc_build_part(b, x, 2, w, n - w);
	}
	left = factor_rows(b, tc_build_part(b, x, 1, 0, h), before, done);
	head = tc_build_conjugate(b, tc_build_part(b, left, 2, 0, w - h));
	right = tc_build_part(b, tc_build_part(b, x, 1, h, w - h), 2, h, n - h);
	right = tc_build2(b, TC_SUBTRACT, right, tc_build_dot(b, head, left, 1, 1, 1));
	part[1] = factor_rows(b, right, before + h, done);
	if (!part[1])
		return NULL;
	part[0] = tc_build_part(b, left, 2, w - h, n - w);
	return tc_build_join(b, 2, part, 1);
}

/* L of few matrices that are not large, above whose diagonal is something. */
static struct tc_value *factor_in_panels(const struct tc_build *b, struct tc_value *a)
{
	struct panels done = { .n = 0 };

	factor_rows(b, tc_build_turn(b, a), 0, &done);
	return tc_build_turn(b, tc_build_join(b, done.n, done.at, 1));
}

/* All of a small matrix without a loop. */
static struct tc_value *factor_cells(const struct tc_build *b, struct tc_value *a)
{
	struct tc_value *zero;
	struct tc_cells x;

	tc_linalg_to_cells(b, a, &x);
	factor_numbers(b, &x);
	zero = tc_build_number(b, x.at[0][0]->type, 0);
	for (int64_t j = 0; j < x.columns; j++)
		for (int64_t i = 0; i < j; i++)
			x.at[i][j] = zero;
	return tc_linalg_from_cells(b, &x);
}

/* Where a matrix had no factor its last pivot is NaN, because each pivot hands it on: then
 * all of L is, as people test for. is_lower: what is above the diagonal is zero already. */
static struct tc_value *spoil(const struct tc_build *b, struct tc_value *l, bool is_lower)
{
	int64_t n = l->type->dim[1];
	struct tc_value *last = tc_build_part(b, tc_build_part(b, l, 1, n - 1, 1), 2, n - 1, 1);

	last = tc_build_broadcast(b, last, l->type, (const int64_t[]){ 0, 1, 2 });
	if (!is_lower)
		l = tc_build_select(b, tc_build_where(b, l->type, TC_CMP_GE), l,
				    tc_build_number(b, l->type, 0));
	return tc_build_select(b, tc_build_compare(b, TC_CMP_EQ, last, last), l, last);
}

struct system {
	struct tc_value *t;	/* [batch, n, n]; what is outside its triangle is not looked at */
	struct tc_value *rhs;	/* [batch, n, k] */
	bool lower;
	bool unit;		/* its diagonal is said to be 1, whatever lies there */
	int64_t block;		/* how many rows each turn of a loop does; 0: without loops */
};

/* Row by row, each off those to come. */
static struct tc_value *solve_cells(const struct tc_build *b, const struct system *s)
{
	const int64_t n = s->t->type->dim[1];
	const int64_t first = s->lower ? 0 : n - 1, step = s->lower ? 1 : -1;
	struct tc_cells t, x = { .rows = n, .columns = 1 };
	struct tc_value *from = s->t, *less;
	bool turned = turn_for_cells(b, &from);

	for (int64_t i = 0; i < n; i++) {
		row_to_cells(b, from, turned, i, s->lower ? 0 : i + s->unit,
			     s->lower ? i + !s->unit : n, &t);
		x.at[i][0] = tc_build_part(b, s->rhs, 1, i, 1);
	}
	for (int64_t i = first; i >= 0 && i < n; i += step) {
		const struct tc_type *type = x.at[i][0]->type;

		if (!s->unit)
			x.at[i][0] = tc_build2(b, TC_DIVIDE, x.at[i][0],
					       over(b, t.at[i][i], type));
		for (int64_t l = i + step; l >= 0 && l < n; l += step) {
			less = tc_build2(b, TC_MULTIPLY, over(b, t.at[l][i], type), x.at[i][0]);
			x.at[l][0] = tc_build2(b, TC_SUBTRACT, x.at[l][0], less);
		}
	}
	return tc_linalg_from_cells(b, &x);
}

static struct tc_value *solve(const struct tc_build *b, const struct system *s);

/* Rows of X, a block of them: those of B without T X, of which those to come are still zero, and
 * then what solves T's block on the diagonal. */
static void solve_block(const struct tc_build *b, struct tc_value *i, struct tc_value **state,
			void *arg)
{
	const struct system *s = arg;
	struct system block = { .lower = s->lower, .unit = s->unit };
	const int64_t rows = s->block;
	struct tc_value *x = state[0], *line, *is_done, *end;

	if (!s->lower) {
		end = tc_build_number(b, i->type, (double)(s->t->type->dim[1] / rows - 1));
		i = tc_build2(b, TC_SUBTRACT, end, i);
	}
	i = tc_build2(b, TC_MULTIPLY, i, tc_build_number(b, i->type, (double)rows));
	line = tc_build_take(b, s->t, 1, i, rows);
	block.t = tc_build_take(b, line, 2, i, rows);
	end = tc_build2(b, TC_ADD, i, tc_build_number(b, i->type, (double)rows));
	is_done = s->lower ? at(b, line->type, 2, TC_CMP_LT, i) :
			     at(b, line->type, 2, TC_CMP_GE, end);
	/* What is not T's may be NaN. */
	line = tc_build_select(b, is_done, line, tc_build_number(b, line->type, 0));
	block.rhs = tc_build2(b, TC_SUBTRACT, tc_build_take(b, s->rhs, 1, i, rows),
			      tc_linalg_times(b, line, x));
	state[0] = tc_build_put(b, x, 1, i, solve(b, &block));
}

static struct tc_value *solve_blocks(const struct tc_build *b, const struct system *s)
{
	struct tc_value *x = tc_build_number(b, s->rhs->type, 0);
	struct system copy = *s;
	struct tc_loop loop = { .n = s->t->type->dim[1] / s->block, .body = solve_block,
				.arg = &copy };

	tc_build_loop(b, &loop, 1, &x);
	return x;
}

/* Where a system is cut in two. Where blocks are a loop, rows that are no block are left out. */
static int64_t cut_of(const struct system *s)
{
	const int64_t n = s->t->type->dim[1], rest = s->block ? n % s->block : 0;

	if (n <= s->block || !s->block)
		return half_in_cells(n);
	if (n > MOST_BLOCKS * s->block)
		return (n / 2 + s->block - 1) / s->block * s->block;
	return s->lower ? n - rest : rest;
}

/* The block of a system T X = rhs that is, or is a part of one, of so many rows, or that has no
 * loops up to `most`. */
static int64_t block_of(struct tc_ctx *c, const struct tc_type *t, const struct tc_value *rhs,
			int64_t rows, int64_t most)
{
	if (rows <= most)
		return may_be_without_loops(c, t) ? 0 : TC_MOST_CELLS;
	return rhs->type->dim[2] < MANY && tc_may_take_more(c) ? BLOCK : TC_MOST_CELLS;
}

static struct tc_value *solve(const struct tc_build *b, const struct system *s)
{
	int64_t n = s->t->type->dim[1], h = cut_of(s), size[] = { h, n - h };
	unsigned first = !s->lower, second = s->lower;
	struct tc_value *x[2], *t[2][2], *rhs[2];
	struct system half = *s;

	if (n <= TC_MOST_CELLS)
		return solve_cells(b, s);
	if (!size[0] || !size[1])
		return solve_blocks(b, s);
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

/* L of matrices that are not large, without a loop. */
static struct tc_value *factor_without_loops(const struct tc_build *b, struct tc_value *a)
{
	const int64_t n = a->type->dim[1], h = half_in_cells(n);
	const int64_t corner[] = { a->type->dim[0], h, n - h };
	struct system s = { .lower = true };
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
	struct system s = { .lower = true };
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

	if (w <= MOST_FACTORED_SO && of <= MOST_IN_SUCH && a->type->dim[0] > FEW_MATRICES &&
	    (w <= FEW || tc_may_take_more(b->c)))
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

static bool is_in_panels(const struct tc_type *t)
{
	return t->dim[0] <= FEW_MATRICES && t->dim[1] > TC_MOST_CELLS &&
	       t->dim[1] <= MOST_IN_PANELS;
}

/* The diagonal of a Hermitian matrix is real, whatever its imaginary parts hold. */
void tc_decompose_cholesky(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	const struct tc_type *t = tc_out(op, 0)->type;
	bool lower = tc_attr_int(op, "lower", 0), is_lower;
	struct tc_value *a = tc_in(op, 0), *l;

	if (t->count) {
		a = tc_build_matrices(&b, tc_build_convert(&b, a, working((enum elem)t->elem)));
		if (!lower)
			a = tc_build_conjugate(&b, tc_build_turn(&b, a));
		is_lower = !is_in_panels(a->type) || !may_be_without_loops(c, a->type);
		l = is_lower ? factor_columns(&b, a, a->type->dim[1]) : factor_in_panels(&b, a);
		l = spoil(&b, l, is_lower);
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
	struct system s = { .t = l, .rhs = rhs, .lower = true, .unit = true,
			    .block = block_of(b->c, l->type, rhs, of, MOST_IN_LU) };

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

	if (t->count) {
		s.t = tc_build_matrices(&b, tc_build_convert(&b, tc_in(op, 0), work));
		s.rhs = tc_build_matrices(&b, tc_build_convert(&b, x, work));
		if (transpose == TC_SOLVE_ADJOINT)
			s.t = tc_build_conjugate(&b, s.t);
		turned = (transpose != TC_SOLVE_PLAIN) != !left;
		if (turned) {
			s.t = tc_build_turn(&b, s.t);
			s.lower = !s.lower;
		}
		if (!left)
			s.rhs = tc_build_turn(&b, s.rhs);
		s.block = block_of(c, s.t->type, s.rhs, s.t->type->dim[1], MOST_WITHOUT_LOOPS);
		x = solve(&b, &s);
		if (!left)
			x = tc_build_turn(&b, x);
		x = tc_build_convert(&b, tc_build_reshape(&b, x, t->rank, t->dim),
				     (enum elem)t->elem);
	}
	tc_replace(op, x);
}
