/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cholesky factors and triangular systems as loops over rows or columns; what is inside
 * a loop is one product and a few elementwise ops on the whole batch.
 */
#include <string.h>

#include "runtime/compiler/opt/build.h"

/* Types that the sums of a factorisation are worth doing in. */
static enum elem working(enum elem elem)
{
	return elem == ELEM_F16 || elem == ELEM_BF16 ? ELEM_F32 : elem;
}

/*
 * Column j of L from the columns before it: c = A[:, j] - L conj(L[j, :]), then
 * L[i, j] = c[i] / sqrt(c[j]) for i >= j. Columns from j on are still zero.
 */
static void factor_column(const struct tc_build *b, struct tc_value *j,
			  struct tc_value **state, void *arg)
{
	struct tc_value *a = arg, *l = state[0], *row, *column, *pivot, *mask;
	int64_t n = a->type->dim[2];
	const struct tc_type *s32;

	row = tc_build_conjugate(b, tc_build_take(b, l, 1, j, 1));		/* [batch, 1, n] */
	column = tc_build_take(b, a, 2, j, 1);				/* [batch, n, 1] */
	column = tc_build2(b, TC_SUBTRACT, column, tc_build_dot(b, l, row, 1, 2, 2));
	pivot = tc_build1(b, TC_SQRT, tc_build_take(b, column, 1, j, 1));
	pivot = tc_build_broadcast(b, pivot, column->type, (const int64_t[]){ 0, 1, 2 });
	column = tc_build2(b, TC_DIVIDE, column, pivot);
	s32 = tc_with_elem(b->c, column->type, ELEM_S32);
	mask = tc_build_compare(b, TC_CMP_GE, tc_build_iota(b, s32, 1),
				tc_build_broadcast(b, j, s32, &n));
	column = tc_build_select(b, mask, column, tc_build_number(b, column->type, 0));
	state[0] = tc_build_put(b, l, 2, j, column);
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

/* The diagonal of a Hermitian matrix is real, whatever its imaginary parts hold. */
void tc_decompose_cholesky(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	const struct tc_type *t = tc_out(op, 0)->type;
	bool lower = tc_attr_int(op, "lower", 0);
	struct tc_value *a = tc_in(op, 0), *l;
	struct tc_loop loop;

	if (t->count) {
		a = tc_build_matrices(&b, tc_build_convert(&b, a, working((enum elem)t->elem)));
		if (!lower)
			a = tc_build_conjugate(&b, tc_build_turn(&b, a));
		l = tc_build_number(&b, a->type, 0);
		loop = (struct tc_loop){ .n = a->type->dim[1], .body = factor_column, .arg = a };
		tc_build_loop(&b, &loop, 1, &l);
		l = spoil(&b, l);
		if (!lower)
			l = tc_build_conjugate(&b, tc_build_turn(&b, l));
		a = tc_build_convert(&b, tc_build_reshape(&b, l, t->rank, t->dim),
				     (enum elem)t->elem);
	}
	tc_replace_uses(tc_out(op, 0), a);
	tc_erase(op);
}

struct system {
	struct tc_value *t;	/* [batch, n, n], zero outside its triangle */
	struct tc_value *rhs;	/* [batch, n, k] */
	bool lower, unit;
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
	row = tc_build2(b, TC_SUBTRACT, row, tc_build_dot(b, line, x, 1, 2, 1));
	if (!s->unit) {
		pivot = tc_build_take(b, line, 2, i, 1);
		pivot = tc_build_broadcast(b, pivot, row->type, (const int64_t[]){ 0, 1, 2 });
		row = tc_build2(b, TC_DIVIDE, row, pivot);
	}
	state[0] = tc_build_put(b, x, 1, i, row);
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
	struct tc_loop loop;

	if (t->count) {
		s.t = tc_build_matrices(&b, tc_build_convert(&b, tc_in(op, 0), work));
		s.rhs = tc_build_matrices(&b, tc_build_convert(&b, x, work));
		s.t = tc_build_select(&b, tc_build_where(&b, s.t->type, s.lower ? TC_CMP_GE :
							     TC_CMP_LE), s.t,
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
		x = tc_build_number(&b, s.rhs->type, 0);
		loop = (struct tc_loop){ .n = s.t->type->dim[1], .body = solve_row, .arg = &s };
		tc_build_loop(&b, &loop, 1, &x);
		if (!left)
			x = tc_build_turn(&b, x);
		x = tc_build_convert(&b, tc_build_reshape(&b, x, t->rank, t->dim),
				     (enum elem)t->elem);
	}
	tc_replace_uses(tc_out(op, 0), x);
	tc_erase(op);
}
