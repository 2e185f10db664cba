/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LU with partial pivoting as LAPACK's getrf leaves it, cut in halves by columns until FEW are
 * left: what is right of the first half is a triangular system and one product, and so nearly all
 * of the work (Toledo, 1997). The few are a loop with a few elementwise ops on the whole batch
 * inside. There the matrix is turned: a column is a run of memory, or lanes go along the batch; and
 * rows are put in their order once, behind the loop. A matrix that is not large has no loop.
 */
#include <math.h>
#include <string.h>

#include "runtime/compiler/lower/linalg.h"

enum {
	FEW = 16,	/* columns that are done one by one */
	MOST_WITHOUT_LOOP = 256,	/* rows of such, in which they are no loop */
};

static const int64_t as_is[] = { 0, 1, 2 };

struct lu {
	struct tc_value *x;		/* L below the diagonal, U above: [batch, m, w] */
	struct tc_value *pivots;	/* row j was exchanged with row pivots[j]: [batch, w] */
	struct tc_value *rows;		/* which row of A each one was: [batch, m] */
};

/*
 * ---- few columns ----
 *
 * Which dim is which: lanes go along the last one, the batch of many small matrices or the rows
 * of others. Sizes in that order: x batch, w, m; pivots batch, w, 1; places and rows batch, 1, m.
 */
struct few {
	unsigned batch, column, row;
};

enum { X, PIVOTS, PLACES, ROWS, STATES };

static struct few few_of(const struct tc_type *t)
{
	static const struct few along_rows = { 0, 1, 2 }, along_batch = { 2, 0, 1 };

	return t->dim[0] > t->dim[1] ? along_batch : along_rows;
}

/* [batch, m, w] in that order of dims; and back. */
static struct tc_value *turn(const struct tc_build *b, const struct few *f, struct tc_value *x)
{
	static const int64_t mirror[] = { 2, 1, 0 };

	return f->batch ? tc_build_transpose(b, x, mirror) : tc_build_turn(b, x);
}

/* Zeros of these sizes. */
static struct tc_value *zeros(const struct tc_build *b, const struct few *f, enum elem elem,
			      int64_t batch, int64_t w, int64_t m)
{
	int64_t dim[3];

	dim[f->batch] = batch;
	dim[f->column] = w;
	dim[f->row] = m;
	return tc_build_number(b, tc_tensor(b->c, elem, 3, dim), 0);
}

/* x with one element where t has many. */
static struct tc_value *spread(const struct tc_build *b, struct tc_value *x,
			       const struct tc_type *t)
{
	t = tc_with_elem(b->c, t, (enum elem)x->type->elem);
	return tc_build_broadcast(b, x, t, x->type->rank ? as_is : NULL);
}

/* Where positions along `dim` of t compare with j, a scalar or one for each matrix. */
static struct tc_value *where(const struct tc_build *b, const struct tc_type *t, unsigned dim,
			      int direction, struct tc_value *j)
{
	struct tc_value *at = tc_build_iota(b, tc_with_elem(b->c, t, ELEM_S32), dim);

	return tc_build_compare(b, direction, at, spread(b, j, t));
}

/* x folded along the rows, which stay as a dim of 1. */
static struct tc_value *fold(const struct tc_build *b, const struct few *f, enum tc_opcode op,
			     struct tc_value *x, double first)
{
	int64_t dim[] = { x->type->dim[0], x->type->dim[1], x->type->dim[2] };

	dim[f->row] = 1;
	return tc_build_reshape(b, tc_build_fold(b, op, x, first, 1u << f->row), 3, dim);
}

/* |real| + |imaginary part|. A NaN is less than any number, as LAPACK's comparisons have it. */
static struct tc_value *size_of(const struct tc_build *b, struct tc_value *x)
{
	struct tc_value *size = tc_build1(b, TC_ABS, tc_build_real(b, x)), *im;

	if (size->type != x->type) {
		im = tc_build(b, TC_IMAG, size->type, 1, &x);
		size = tc_build2(b, TC_ADD, size, tc_build1(b, TC_ABS, im));
	}
	return tc_build_select(b, tc_build_compare(b, TC_CMP_EQ, size, size), size,
			       tc_build_number(b, size->type, -1));
}

/* Where the first row from j on is whose element is the largest, one for each matrix; less than a
 * NaN is what is done. */
static struct tc_value *find_pivot(const struct tc_build *b, const struct few *f,
				   struct tc_value *column, struct tc_value *place,
				   struct tc_value *j)
{
	struct tc_value *size = size_of(b, column), *top, *at;
	const struct tc_type *t = size->type;

	size = tc_build_select(b, tc_build_compare(b, TC_CMP_LT, place, j),
			       tc_build_number(b, t, -2), size);
	top = spread(b, fold(b, f, TC_MAXIMUM, size, -INFINITY), t);
	at = tc_build_select(b, tc_build_compare(b, TC_CMP_EQ, size, top), place,
			     tc_build_number(b, place->type, INT32_MAX));
	return fold(b, f, TC_MINIMUM, at, INT32_MAX);
}

static struct tc_value *scalar(const struct tc_build *b, struct tc_value *x)
{
	return tc_build_reshape(b, x, 0, NULL);
}

/* What x has in row `key`, one for each matrix. Of one matrix it is taken by itself; of many all
 * rows are looked through, by marks of one column. */
static struct tc_value *at(const struct tc_build *b, const struct few *f, struct tc_value *x,
			   struct tc_value *key)
{
	int64_t dim[] = { x->type->dim[0], x->type->dim[1], x->type->dim[2] };
	struct tc_value *mark;

	if (key->type->count == 1)
		return tc_build_take(b, x, f->row, scalar(b, key), 1);
	dim[f->column] = 1;
	mark = where(b, tc_tensor(b->c, ELEM_S32, 3, dim), f->row, TC_CMP_EQ, key);
	x = tc_build_select(b, spread(b, mark, x->type), x, tc_build_number(b, x->type, 0));
	return fold(b, f, TC_ADD, x, 0);
}

static struct tc_value *put(const struct tc_build *b, const struct few *f, struct tc_value *x,
			    struct tc_value *key, struct tc_value *value)
{
	if (key->type->count == 1)
		return tc_build_put(b, x, f->row, scalar(b, key), value);
	return tc_build_select(b, where(b, x->type, f->row, TC_CMP_EQ, key),
			       spread(b, value, x->type), x);
}

/*
 * Column j: over its pivot what is below, and that off the columns to come. A pivot of zero has
 * zeros below it. No row moves before all are done: `places` says where each one is, those before
 * j are done, and `rows` which one is where.
 */
static void eliminate(const struct tc_build *b, struct tc_value *j, struct tc_value **state,
		      void *arg)
{
	const struct few *f = arg;
	struct tc_value *x = state[X], *column = tc_build_take(b, x, f->column, j, 1), *rows;
	struct tc_value *pivot, *none, *l, *below, *less, *p, *row, *row_j, *key;
	const struct tc_type *t = x->type, *s32 = state[PLACES]->type;

	p = find_pivot(b, f, column, state[PLACES], spread(b, j, s32));
	state[PIVOTS] = tc_build_put(b, state[PIVOTS], f->column, j, p);
	key = spread(b, j, p->type);
	rows = state[ROWS];
	row = at(b, f, rows, p);
	row_j = at(b, f, rows, key);
	rows = put(b, f, rows, p, row_j);
	state[ROWS] = put(b, f, rows, key, row);
	state[PLACES] = put(b, f, state[PLACES], row_j, p);
	state[PLACES] = put(b, f, state[PLACES], row, key);
	pivot = spread(b, at(b, f, column, row), column->type);
	none = tc_build_compare(b, TC_CMP_EQ, pivot, tc_build_number(b, pivot->type, 0));
	l = tc_build_select(b, none, tc_build_number(b, pivot->type, 1), pivot);
	l = tc_build2(b, TC_DIVIDE, column, l);
	below = tc_build_compare(b, TC_CMP_GT, state[PLACES], spread(b, j, s32));
	column = tc_build_select(b, below, l, column);
	less = spread(b, at(b, f, x, row), t);
	less = tc_build2(b, TC_MULTIPLY, spread(b, column, t), less);
	less = tc_build2(b, TC_SUBTRACT, x, less);
	below = tc_build2(b, TC_AND, spread(b, below, t), where(b, t, f->column, TC_CMP_GT, j));
	x = tc_build_select(b, below, less, x);
	state[X] = tc_build_put(b, x, f->column, j, column);
}

/* ---- few columns without a loop ---- */

/* places [batch, n], of the rows from the first on, as those of a row in t [batch, i, n]. */
static struct tc_value *is_there(const struct tc_build *b, struct tc_value *places,
				 const struct tc_type *t, struct tc_value *place)
{
	static const int64_t by_place[] = { 0, 2 };

	return tc_build_compare(b, TC_CMP_EQ, tc_build_broadcast(b, places, t, by_place), place);
}

/*
 * Which row is where, [batch, m], by where each one is, once the first w rows have been exchanged
 * for pivots: at a place behind them is the row that was always there, or one of the first w.
 */
static struct tc_value *rows_of(const struct tc_build *b, struct tc_value *places, int64_t w)
{
	const int64_t batch = places->type->dim[0], m = places->type->dim[1];
	const struct tc_type *first = tc_tensor(b->c, ELEM_S32, 3, (int64_t[]){ batch, w, m });
	const struct tc_type *others = tc_tensor(b->c, ELEM_S32, 3,
						 (int64_t[]){ batch, m - w, w });
	struct tc_value *row = tc_build_iota(b, first, 2), *place, *part[2], *own;

	part[0] = is_there(b, places, first, tc_build_iota(b, first, 1));
	part[0] = tc_build_select(b, part[0], row, tc_build_number(b, first, 0));
	part[0] = tc_build_sum(b, part[0], 1u << 2);
	if (m == w)
		return part[0];
	place = tc_build_iota(b, others, 1);
	place = tc_build2(b, TC_ADD, place, tc_build_number(b, others, (double)w));
	row = tc_build2(b, TC_SUBTRACT, tc_build_iota(b, others, 2), place);
	part[1] = is_there(b, tc_build_part(b, places, 1, 0, w), others, place);
	part[1] = tc_build_select(b, part[1], row, tc_build_number(b, others, 0));
	part[1] = tc_build_sum(b, part[1], 1u << 2);
	own = tc_build_iota(b, part[1]->type, 1);
	own = tc_build2(b, TC_ADD, own, tc_build_number(b, own->type, (double)w));
	part[1] = tc_build2(b, TC_ADD, own, part[1]);
	return tc_build_join(b, 2, part, 1);
}

/*
 * As eliminate(), of the first column of x, which has the columns from j on; it keeps those behind
 * it. Numbers that are known before make it two instructions: one over the column, one over the
 * others, where the pivot's row is found by its mark.
 */
static struct tc_value *eliminate_first(const struct tc_build *b, const struct few *f, int64_t j,
					struct tc_value **x, struct tc_value **places,
					struct tc_value **pivot)
{
	struct tc_value *now = tc_build_number(b, (*places)->type, (double)j), *is_pivot, *there;
	struct tc_value *column = tc_build_part(b, *x, f->column, 0, 1), *top, *none, *l, *below;
	struct tc_value *less, *zero = tc_build_number(b, column->type, 0);
	const int64_t left = (*x)->type->dim[f->column] - 1;

	*pivot = find_pivot(b, f, column, *places, now);
	there = spread(b, *pivot, now->type);
	is_pivot = tc_build_compare(b, TC_CMP_EQ, *places, there);
	there = tc_build_select(b, tc_build_compare(b, TC_CMP_EQ, *places, now), there, *places);
	*places = tc_build_select(b, is_pivot, now, there);
	top = fold(b, f, TC_ADD, tc_build_select(b, is_pivot, column, zero), 0);
	top = spread(b, top, column->type);
	none = tc_build_compare(b, TC_CMP_EQ, top, zero);
	l = tc_build_select(b, none, tc_build_number(b, top->type, 1), top);
	l = tc_build2(b, TC_DIVIDE, column, l);
	below = tc_build_compare(b, TC_CMP_GT, *places, now);
	column = tc_build_select(b, below, l, column);
	if (!left)
		return column;
	*x = tc_build_part(b, *x, f->column, 1, left);
	top = tc_build_select(b, spread(b, is_pivot, (*x)->type), *x,
			      tc_build_number(b, (*x)->type, 0));
	top = spread(b, fold(b, f, TC_ADD, top, 0), (*x)->type);
	less = tc_build2(b, TC_MULTIPLY, spread(b, column, (*x)->type), top);
	less = tc_build2(b, TC_SUBTRACT, *x, less);
	*x = tc_build_select(b, spread(b, below, (*x)->type), less, *x);
	return column;
}

static struct lu factor_without_loop(const struct tc_build *b, struct tc_value *a)
{
	const int64_t batch = a->type->dim[0], m = a->type->dim[1], w = a->type->dim[2];
	struct few f = few_of(a->type);
	struct tc_value *columns[FEW], *pivots[FEW], *places, *x = turn(b, &f, a);
	struct lu lu;

	places = tc_build_iota(b, zeros(b, &f, ELEM_S32, batch, 1, m)->type, f.row);
	for (int64_t j = 0; j < w; j++)
		columns[j] = eliminate_first(b, &f, j, &x, &places, &pivots[j]);
	x = turn(b, &f, tc_build_join(b, (unsigned)w, columns, f.column));
	places = tc_build_reshape(b, turn(b, &f, places), 2, (int64_t[]){ batch, m });
	lu.pivots = turn(b, &f, tc_build_join(b, (unsigned)w, pivots, f.column));
	lu.pivots = tc_build_reshape(b, lu.pivots, 2, (int64_t[]){ batch, w });
	lu.rows = rows_of(b, places, w);
	lu.x = tc_build_rows(b, x, lu.rows);
	return lu;
}

/* ---- few numbers ---- */

static void exchange_if(const struct tc_build *b, struct tc_value *is_so, struct tc_value **x,
			struct tc_value **y)
{
	struct tc_value *old = *x;

	*x = tc_build_select(b, is_so, *y, old);
	*y = tc_build_select(b, is_so, old, *y);
}

/* Of column j the first row from j on with the largest element, which is exchanged with row j. */
static struct tc_value *pivot_cells(const struct tc_build *b, int64_t j, struct tc_cells *x,
				    struct tc_value **rows)
{
	const struct tc_type *s32 = rows[0]->type;
	struct tc_value *top = size_of(b, x->at[j][j]), *p = tc_build_number(b, s32, (double)j);

	for (int64_t i = j + 1; i < x->rows; i++) {
		struct tc_value *size = size_of(b, x->at[i][j]), *is_more;

		is_more = tc_build_compare(b, TC_CMP_GT, size, top);
		top = tc_build_select(b, is_more, size, top);
		p = tc_build_select(b, is_more, tc_build_number(b, s32, (double)i), p);
	}
	for (int64_t i = j + 1; i < x->rows; i++) {
		struct tc_value *is_p;

		is_p = tc_build_compare(b, TC_CMP_EQ, p, tc_build_number(b, s32, (double)i));
		exchange_if(b, is_p, &rows[j], &rows[i]);
		for (int64_t k = 0; k < x->columns; k++)
			exchange_if(b, is_p, &x->at[j][k], &x->at[i][k]);
	}
	return p;
}

/* All columns without a loop, as eliminate() does them. */
static struct lu factor_cells(const struct tc_build *b, struct tc_value *a)
{
	const int64_t batch = a->type->dim[0], m = a->type->dim[1], w = a->type->dim[2];
	struct tc_value *rows[TC_MOST_CELLS], *pivots[TC_MOST_CELLS];
	const int64_t one[] = { batch, 1 };
	struct tc_cells x;
	struct lu lu;

	tc_linalg_to_cells(b, a, &x);
	for (int64_t i = 0; i < m; i++)
		rows[i] = tc_build_number(b, tc_with_elem(b->c, x.at[0][0]->type, ELEM_S32),
					  (double)i);
	for (int64_t j = 0; j < w; j++) {
		struct tc_value *none, *pivot;

		pivots[j] = pivot_cells(b, j, &x, rows);
		pivot = x.at[j][j];
		none = tc_build_compare(b, TC_CMP_EQ, pivot, tc_build_number(b, pivot->type, 0));
		pivot = tc_build_select(b, none, tc_build_number(b, pivot->type, 1), pivot);
		for (int64_t i = j + 1; i < m; i++) {
			struct tc_value *l = tc_build2(b, TC_DIVIDE, x.at[i][j], pivot), *less;

			x.at[i][j] = l;
			for (int64_t k = j + 1; k < w; k++) {
				less = tc_build2(b, TC_MULTIPLY, l, x.at[j][k]);
				x.at[i][k] = tc_build2(b, TC_SUBTRACT, x.at[i][k], less);
			}
		}
	}
	for (int64_t i = 0; i < m; i++)
		rows[i] = tc_build_reshape(b, rows[i], 2, one);
	for (int64_t j = 0; j < w; j++)
		pivots[j] = tc_build_reshape(b, pivots[j], 2, one);
	lu.x = tc_linalg_from_cells(b, &x);
	lu.rows = tc_build_join(b, (unsigned)m, rows, 1);
	lu.pivots = tc_build_join(b, (unsigned)w, pivots, 1);
	return lu;
}

static struct lu factor_few(const struct tc_build *b, struct tc_value *a)
{
	const int64_t batch = a->type->dim[0], m = a->type->dim[1], w = a->type->dim[2];
	struct few f = few_of(a->type);
	struct tc_loop loop = { .n = w, .body = eliminate, .arg = &f };
	struct tc_value *state[STATES];
	struct lu lu;

	if (m <= MOST_WITHOUT_LOOP)
		return factor_without_loop(b, a);
	state[X] = turn(b, &f, a);
	state[PIVOTS] = zeros(b, &f, ELEM_S32, batch, w, 1);
	state[ROWS] = tc_build_iota(b, zeros(b, &f, ELEM_S32, batch, 1, m)->type, f.row);
	state[PLACES] = state[ROWS];
	tc_build_loop(b, &loop, STATES, state);
	for (unsigned i = 0; i < STATES; i++)
		state[i] = turn(b, &f, state[i]);
	lu.pivots = tc_build_reshape(b, state[PIVOTS], 2, (int64_t[]){ batch, w });
	lu.rows = tc_build_reshape(b, state[ROWS], 2, (int64_t[]){ batch, m });
	lu.x = tc_build_rows(b, state[X], lu.rows);
	return lu;
}

/* ---- halves ---- */

/* What stands right of the first h columns, `left`, once they are factored: in their order of
 * rows, U on top. */
static void apply_left(const struct tc_build *b, const struct lu *left, struct tc_value *right,
		       struct tc_value **top, struct tc_value **rest)
{
	int64_t h = left->x->type->dim[2], m = left->x->type->dim[1];
	struct tc_value *l = tc_build_part(b, left->x, 1, 0, h), *below;

	right = tc_build_rows(b, right, left->rows);
	*top = tc_linalg_solve_below(b, l, tc_build_part(b, right, 1, 0, h), m);
	*rest = NULL;
	if (m == h)
		return;
	below = tc_build_part(b, left->x, 1, h, m - h);
	*rest = tc_build2(b, TC_SUBTRACT, tc_build_part(b, right, 1, h, m - h),
			  tc_linalg_times(b, below, *top));
}

/* The order of all rows, once those from h on are in the order of `below`. */
static struct tc_value *compose(const struct tc_build *b, struct tc_value *rows, int64_t h,
				struct tc_value *below)
{
	const int64_t n = rows->type->dim[1] - h, dim[] = { rows->type->dim[0], n, 1 };
	struct tc_value *tail = tc_build_part(b, rows, 1, h, n), *part[2];

	tail = tc_build_rows(b, tc_build_reshape(b, tail, 3, dim), below);
	part[0] = tc_build_part(b, rows, 1, 0, h);
	part[1] = tc_build_reshape(b, tail, 2, dim);
	return tc_build_join(b, 2, part, 1);
}

/* Of at least as many rows as columns. */
static struct lu factor(const struct tc_build *b, struct tc_value *a)
{
	int64_t m = a->type->dim[1], w = a->type->dim[2], h = (w / 2 + FEW - 1) / FEW * FEW;
	struct tc_value *top, *rest, *part[2], *column[2];
	struct lu left, right;

	if (m <= TC_MOST_CELLS && tc_linalg_worth_cells(a->type))
		return factor_cells(b, a);
	if (w <= FEW)
		return factor_few(b, a);
	left = factor(b, tc_build_part(b, a, 2, 0, h));
	apply_left(b, &left, tc_build_part(b, a, 2, h, w - h), &top, &rest);
	right = factor(b, rest);
	part[0] = tc_build_part(b, left.x, 1, 0, h);
	part[1] = tc_build_rows(b, tc_build_part(b, left.x, 1, h, m - h), right.rows);
	column[0] = tc_build_join(b, 2, part, 1);
	part[0] = top;
	part[1] = right.x;
	column[1] = tc_build_join(b, 2, part, 1);
	left.x = tc_build_join(b, 2, column, 2);
	left.rows = compose(b, left.rows, h, right.rows);
	part[0] = left.pivots;
	part[1] = tc_build2(b, TC_ADD, right.pivots,
			    tc_build_number(b, right.pivots->type, (double)h));
	left.pivots = tc_build_join(b, 2, part, 1);
	return left;
}

static struct lu factor_any(const struct tc_build *b, struct tc_value *a)
{
	int64_t m = a->type->dim[1], n = a->type->dim[2];
	struct tc_value *part[2], *rest;
	struct lu lu;

	if (m >= n)
		return factor(b, a);
	lu = factor(b, tc_build_part(b, a, 2, 0, m));
	part[0] = lu.x;
	apply_left(b, &lu, tc_build_part(b, a, 2, m, n - m), &part[1], &rest);
	lu.x = tc_build_join(b, 2, part, 2);
	return lu;
}

/* ---- the call ---- */

/* Whether t is s32[batch of a..., n]. */
static bool is_index(const struct tc_type *a, const struct tc_type *t, int64_t n)
{
	return !t->is_tuple && t->elem == ELEM_S32 && t->rank == a->rank - 1 &&
	       !memcmp(t->dim, a->dim, (a->rank - 2) * sizeof(*a->dim)) &&
	       t->dim[t->rank - 1] == n;
}

void tc_decompose_lu(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	const struct tc_type *t;
	struct tc_value *out[3];
	int64_t m, n, k;
	struct lu lu;

	tc_linalg_check(c, op, "LuDecomposition", 1);
	t = tc_in(op, 0)->type;
	m = t->dim[t->rank - 2];
	n = t->dim[t->rank - 1];
	k = m < n ? m : n;
	if (op->n_results != 3 || tc_out(op, 0)->type != t ||
	    !is_index(t, tc_out(op, 1)->type, k) || !is_index(t, tc_out(op, 2)->type, m))
		tc_fail(c, ERR_INVALID_ARGUMENT, op, "LuDecomposition of %lld x %lld gives a "
			"matrix of its operand's type, %lld pivots and the order of %lld rows, "
			"both of i32",
			(long long)m, (long long)n, (long long)k, (long long)m);
	out[0] = tc_in(op, 0);
	out[1] = tc_build_number(&b, tc_out(op, 1)->type, 0);
	out[2] = tc_build_iota(&b, tc_out(op, 2)->type, t->rank - 2u);
	if (t->count) {
		lu = factor_any(&b, tc_build_matrices(&b, out[0]));
		out[0] = lu.x;
		out[1] = lu.pivots;
		out[2] = lu.rows;
	}
	for (unsigned i = 0; i < 3; i++) {
		t = tc_out(op, i)->type;
		tc_replace_uses(tc_out(op, i), tc_build_reshape(&b, out[i], t->rank, t->dim));
	}
	tc_erase(op);
}
