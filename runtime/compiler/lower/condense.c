/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Hermitian matrix as Q T Q^H, T real and tridiagonal, and a square one as Q B P^H, B real and
 * bidiagonal: a reflection a column, and one a row, as LAPACK's hetrd and gebrd make them. What the
 * reflections of PANEL columns do to the matrix, a - sum of (l r^H), two pairs of l and r a
 * column, is one product behind them (Dongarra, Hammarling and Sorensen, 1989); until then
 * each column, and each vector that the matrix is multiplied with, is corrected by it. So that
 * passes over the matrix get shorter, rows and columns that are done are left behind from time
 * to time.
 */
#include "runtime/compiler/lower/linalg.h"

enum { PANEL = 16, PARTS = 6 };

static const int64_t by_row[] = { 0, 1 }, by_column[] = { 0, 2 };

static struct tc_value *is_at(const struct tc_build *b, const struct tc_type *t,
			      struct tc_value *j)
{
	const struct tc_type *s32 = tc_with_elem(b->c, t, ELEM_S32);

	return tc_build_compare(b, TC_CMP_EQ, tc_build_iota(b, s32, t->rank - 1u),
				tc_build_broadcast(b, j, s32, NULL));
}

/* sum of x[r] by[r], x [batch, r, n], by [batch, r]. */
static struct tc_value *sum_of(const struct tc_build *b, struct tc_value *const *x,
			       struct tc_value *const *by)
{
	struct tc_value *part[2];

	for (unsigned i = 0; i < 2; i++) {
		part[i] = tc_build_broadcast(b, by[i], x[i]->type, by_row);
		part[i] = tc_build2(b, TC_MULTIPLY, x[i], part[i]);
	}
	return tc_build_sum(b, tc_build2(b, TC_ADD, part[0], part[1]), 1u << 1);
}

/* x[i] v for each row i of x [batch, .., n]; v [batch, n]. */
static struct tc_value *times(const struct tc_build *b, struct tc_value *x, struct tc_value *v)
{
	v = tc_build_broadcast(b, v, x->type, by_column);
	return tc_build_sum(b, tc_build2(b, TC_MULTIPLY, x, v), 1u << 2);
}

/* Of what is left of a, a - sum of l r^H: column j, [batch, n], where x is a's. */
static struct tc_value *rest_of_column(const struct tc_build *b, struct tc_value *x,
				       struct tc_value *const *l, struct tc_value *const *r,
				       struct tc_value *j)
{
	const int64_t rows[] = { l[0]->type->dim[0], l[0]->type->dim[1] };
	const int64_t flat[] = { rows[0], l[0]->type->dim[2] };
	struct tc_value *by[2];

	for (unsigned i = 0; i < 2; i++) {
		by[i] = tc_build_take(b, r[i], 2, j, 1);
		by[i] = tc_build_conjugate(b, tc_build_reshape(b, by[i], 2, rows));
	}
	return tc_build2(b, TC_SUBTRACT, tc_build_reshape(b, x, 2, flat), sum_of(b, l, by));
}

/* The same of its product with v [batch, n], where x is a v. */
static struct tc_value *rest_of_product(const struct tc_build *b, struct tc_value *x,
					struct tc_value *const *l, struct tc_value *const *r,
					struct tc_value *v)
{
	struct tc_value *by[2];

	for (unsigned i = 0; i < 2; i++)
		by[i] = times(b, tc_build_conjugate(b, r[i]), v);
	return tc_build2(b, TC_SUBTRACT, x, sum_of(b, l, by));
}

/* w of the reflection I - tau v v^H, of a Hermitian a: with x = tau a v, x - v |tau|^2 v^H a v / 2;
 * vw, wv: l and r. */
static struct tc_value *find_w(const struct tc_build *b, struct tc_value *a,
			       struct tc_value *const *vw, struct tc_value *const *wv,
			       struct tc_value *v, struct tc_value *tau)
{
	struct tc_value *x = rest_of_product(b, times(b, a, v), vw, wv, v), *half;

	x = tc_build2(b, TC_MULTIPLY, x, tc_build_broadcast(b, tau, x->type, by_row));
	half = tc_build2(b, TC_MULTIPLY, tc_build_conjugate(b, x), v);
	half = tc_build_reshape(b, tc_build_sum(b, half, 1u << 1), 2, tau->type->dim);
	half = tc_build2(b, TC_MULTIPLY, tc_build2(b, TC_MULTIPLY, half, tau),
			 tc_build_number(b, half->type, 0.5));
	half = tc_build_broadcast(b, half, v->type, by_row);
	return tc_build2(b, TC_SUBTRACT, x, tc_build2(b, TC_MULTIPLY, v, half));
}

/*
 * State of a panel: DONE, for each column the diagonal and the reflection's vector behind it, rows
 * of [batch, PANEL, n]; TAUS, and BESIDE, what is beside the diagonal: [batch, PANEL]; and LEFT,
 * two arrays like DONE, which Hermitian matrices have twice: right[0] is left[1] and right[1]
 * left[0].
 */
enum { DONE, TAUS, BESIDE, LEFT, RIGHT = LEFT + 2, HERMITIAN_STATE = RIGHT, STATE = RIGHT + 2 };

struct panel {
	struct tc_value *a, *from;	/* the matrix, and the panel's first column */
};

/* x [batch, n] as row i. */
static void put(const struct tc_build *b, struct tc_value **rows, struct tc_value *i,
		struct tc_value *x)
{
	const int64_t row[] = { x->type->dim[0], 1, (*rows)->type->dim[2] };

	*rows = tc_build_put(b, *rows, 1, i, tc_build_reshape(b, x, 3, row));
}

/* x [batch, 1] as number i. */
static void note(const struct tc_build *b, struct tc_value **numbers, struct tc_value *i,
		 struct tc_value *x)
{
	const struct tc_type *t = (*numbers)->type;

	x = tc_build_broadcast(b, x, t, by_row);
	*numbers = tc_build_select(b, is_at(b, t, i), x, *numbers);
}

/* The reflection of x [batch, n] at j and below; and its vector, [batch, n]. */
static struct tc_reflection reflect(const struct tc_build *b, struct tc_value *x,
				    struct tc_value *j, struct tc_value **v)
{
	const struct tc_type *flat = x->type;
	const int64_t row[] = { flat->dim[0], 1, flat->dim[1] };
	struct tc_reflection h;

	h = tc_linalg_reflection(b, tc_build_reshape(b, x, 3, row), j);
	*v = tc_build_reshape(b, h.v, 2, flat->dim);
	*v = tc_build_select(b, is_at(b, flat, j), tc_build_number(b, flat, 1), *v);
	return h;
}

/* Row, or column, j of a Hermitian matrix. */
static void turn_hermitian(const struct tc_build *b, struct tc_value *i,
			   struct tc_value **state, void *arg)
{
	const struct panel *p = arg;
	struct tc_value *j = tc_build2(b, TC_ADD, p->from, i), *column, *v, *next;
	struct tc_value *const *vw = state + LEFT, *wv[2] = { vw[1], vw[0] };
	struct tc_reflection h;

	next = tc_build2(b, TC_ADD, j, tc_build_number(b, j->type, 1));
	column = tc_build_conjugate(b, tc_build_take(b, p->a, 1, j, 1));
	column = rest_of_column(b, column, vw, wv, j);
	h = reflect(b, column, next, &v);
	column = tc_build_select(b, is_at(b, column->type, j), column,
				 tc_build_reshape(b, h.v, 2, column->type->dim));
	put(b, &state[DONE], i, column);
	note(b, &state[TAUS], i, h.tau);
	note(b, &state[BESIDE], i, h.beta);
	column = find_w(b, p->a, vw, wv, v, h.tau);
	put(b, &state[LEFT], i, v);
	put(b, &state[LEFT + 1], i, column);
}

/*
 * Column j, whose reflection I - tau v v^H leaves a - v y^H, y = tau a^H v, and then row j: I -
 * sigma u u^H leaves that without x u^H, x = sigma (a - v y^H) u.
 */
static void turn_square(const struct tc_build *b, struct tc_value *i, struct tc_value **state,
			void *arg)
{
	const struct panel *p = arg;
	struct tc_value **l = state + LEFT, **r = state + RIGHT, *x, *v, *y;
	struct tc_value *j = tc_build2(b, TC_ADD, p->from, i), *next;
	const struct tc_type *flat;
	struct tc_reflection h;

	next = tc_build2(b, TC_ADD, j, tc_build_number(b, j->type, 1));
	x = rest_of_column(b, tc_build_take(b, p->a, 2, j, 1), l, r, j);
	flat = x->type;
	h = reflect(b, x, j, &v);
	x = tc_build_select(b, is_at(b, flat, j), tc_build_broadcast(b, h.beta, flat, by_row),
			    tc_build_reshape(b, h.v, 2, flat->dim));
	put(b, &state[DONE], i, x);
	note(b, &state[TAUS], i, h.tau);
	y = tc_build_broadcast(b, v, p->a->type, by_row);
	y = tc_build2(b, TC_MULTIPLY, tc_build_conjugate(b, p->a), y);
	y = rest_of_product(b, tc_build_sum(b, y, 1u << 1), r, l, v);
	y = tc_build2(b, TC_MULTIPLY, y, tc_build_broadcast(b, h.tau, flat, by_row));
	put(b, &l[0], i, v);
	put(b, &r[0], i, y);
	x = tc_build_conjugate(b, tc_build_take(b, p->a, 1, j, 1));
	h = reflect(b, rest_of_column(b, x, r, l, j), next, &v);
	note(b, &state[BESIDE], i, h.beta);
	x = rest_of_product(b, times(b, p->a, v), l, r, v);
	x = tc_build2(b, TC_MULTIPLY, x, tc_build_broadcast(b, h.tau, flat, by_row));
	put(b, &l[1], i, x);
	put(b, &r[1], i, v);
}

/* Panels of a. */
struct panels {
	bool is_hermitian;
	int64_t width;
};

/* state: the matrix, DONE, TAUS and BESIDE of all columns. */
static void reduce_panel(const struct tc_build *b, struct tc_value *i, struct tc_value **state,
			 void *arg)
{
	const struct panels *all = arg;
	const struct tc_type *t = state[0]->type, *rows, *numbers;
	const int64_t dim[] = { t->dim[0], all->width, t->dim[1] };
	struct panel p = { .a = state[0] };
	struct tc_loop loop = { .n = all->width, .arg = &p,
				.body = all->is_hermitian ? turn_hermitian : turn_square };
	struct tc_value *inner[STATE], *l, *r;

	rows = tc_tensor(b->c, (enum elem)t->elem, 3, dim);
	numbers = tc_tensor(b->c, (enum elem)t->elem, 2, dim);
	for (unsigned k = 0; k < STATE; k++)
		inner[k] = tc_build_number(b, k == TAUS || k == BESIDE ? numbers : rows, 0);
	p.from = tc_build2(b, TC_MULTIPLY, i, tc_build_number(b, i->type, (double)all->width));
	tc_build_loop(b, &loop, all->is_hermitian ? HERMITIAN_STATE : STATE, inner);
	for (unsigned k = 0; k < LEFT; k++)
		state[1 + k] = tc_build_put(b, state[1 + k], 1, p.from, inner[k]);
	if (all->is_hermitian) {
		inner[RIGHT] = inner[LEFT + 1];
		inner[RIGHT + 1] = inner[LEFT];
	}
	l = tc_build_join(b, 2, inner + LEFT, 1);
	r = tc_build_conjugate(b, tc_build_join(b, 2, inner + RIGHT, 1));
	state[0] = tc_build2(b, TC_SUBTRACT, state[0], tc_build_dot(b, l, r, 1, 1, 1));
}

/* The first `some` columns of a, which leaves the others; state as above. */
static void reduce_some(const struct tc_build *b, const struct panels *p, int64_t some,
			struct tc_value **state)
{
	const struct tc_type *t = state[0]->type;
	const int64_t rows[] = { t->dim[0], some, t->dim[1] };
	struct panels copy = *p;
	struct tc_loop loop = { .n = some / p->width, .body = reduce_panel, .arg = &copy };

	for (unsigned k = 0; k < LEFT; k++)
		state[1 + k] = tc_build_number(b, tc_tensor(b->c, (enum elem)t->elem,
							    k == DONE ? 3 : 2, rows), 0);
	tc_build_loop(b, &loop, 1 + LEFT, state);
	for (unsigned d = 1; d < 3 && some < t->dim[1]; d++)
		state[0] = tc_build_part(b, state[0], d, some, t->dim[1] - some);
}

static struct tc_condensed condense(const struct tc_build *b, struct tc_value *a,
				    bool is_hermitian)
{
	int64_t n = a->type->dim[1], done = 0, left, some;
	struct panels p = { .is_hermitian = is_hermitian, .width = n < PANEL ? n : PANEL };
	const int64_t none[] = { 0, 0, 0 };
	struct tc_value *state[1 + LEFT] = { a }, *all[LEFT][PARTS], *zero;
	struct tc_condensed t;
	unsigned parts = 0;

	left = (n + p.width - 1) / p.width;
	some = (left + PARTS - 1) / PARTS;
	zero = tc_build_number(b, tc_tensor(b->c, (enum elem)a->type->elem, 0, NULL), 0);
	/* Columns behind the last are none; what is found of them is not looked at. */
	for (; left > 0; left -= some) {
		reduce_some(b, &p, (left < some ? left : some) * p.width, state);
		all[DONE][parts] = tc_build_pad(b, state[1 + DONE], zero,
						(int64_t[]){ 0, 0, done }, none, none);
		all[TAUS][parts] = state[1 + TAUS];
		all[BESIDE][parts++] = state[1 + BESIDE];
		done += some * p.width;
	}
	t.a = tc_build_part(b, tc_build_join(b, parts, all[DONE], 1), 1, 0, n);
	t.taus = tc_build_part(b, tc_build_join(b, parts, all[TAUS], 1), 1, 0, n);
	t.e = tc_build_real(b, tc_build_join(b, parts, all[BESIDE], 1));
	t.e = tc_build_part(b, t.e, 1, 0, n - 1);
	t.d = tc_build_real(b, tc_linalg_diagonal(b, t.a));
	return t;
}

struct tc_condensed tc_linalg_tridiagonal(const struct tc_build *b, struct tc_value *a)
{
	int64_t n = a->type->dim[1];
	struct tc_condensed t = condense(b, a, true);

	t.a = tc_build_part(b, tc_build_part(b, t.a, 1, 0, n - 1), 2, 1, n - 1);
	t.a = tc_build_turn(b, t.a);
	t.taus = tc_build_part(b, t.taus, 1, 0, n - 1);
	return t;
}

struct tc_condensed tc_linalg_bidiagonal(const struct tc_build *b, struct tc_value *a)
{
	struct tc_condensed t = condense(b, a, false);

	t.a = tc_build_turn(b, t.a);
	return t;
}
