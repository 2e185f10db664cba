/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Hermitian matrix as Q T Q^H, T real and tridiagonal, and a square one as Q B P^H, B real and
 * bidiagonal: a reflection a column, and one a row, as LAPACK's hetrd and gebrd make them. What the
 * reflections of PANEL columns do to the matrix, a - sum of (l r^H), two pairs of l and r a
 * column, is one product behind them (Dongarra, Hammarling and Sorensen, 1989); until then
 * each column, and each vector that the matrix is multiplied with, is corrected by it. So that
 * passes over the matrix get shorter, rows and columns that are done are left behind from time
 * to time. Of a small matrix, where instructions take longer than what they pass over, each
 * column and row is taken off at once.
 */
#include "runtime/compiler/lower/linalg.h"

enum {
	PANEL = 8, PARTS = 6,
	MOST_WITHOUT_LOOP = 48,	/* rows of a small square matrix, which is no panels, */
	MOST_HERMITIAN_SO = 32,	/* of a Hermitian one, */
	SMALL = 4096,		/* and the elements of all of them */
};

/* Dims of what is one number for each row, and of a row for all; in [batch, rows, n]. */
static const int64_t by_row[] = { 0, 1 }, as_is[] = { 0, 1, 2 };

/*
 * State of a panel: TAUS [batch, PANEL]; DONE, for each column what is beside the diagonal and,
 * behind it, the reflection's vector, rows of [batch, PANEL, n]; LEFT and RIGHT, all first l and
 * then all second ones, and so r, [batch, 2 PANEL, n]. Of a square matrix then TAUS and DONE of
 * its rows. What is one vector is [batch, 1, n].
 */
enum {
	TAUS, DONE, KEPT, LEFT = KEPT, RIGHT, HERMITIAN_STATE,
	ROWS = HERMITIAN_STATE, STATE = ROWS + KEPT,
};

struct panel {
	struct tc_value *a, *from;	/* the matrix, and the panel's first column */
	int64_t width;
};

/* sum of x[r] by[r], x [batch, r, n], by [batch, r, 1]. */
static struct tc_value *sum_of(const struct tc_build *b, struct tc_value *x, struct tc_value *by)
{
	const int64_t row[] = { x->type->dim[0], 1, x->type->dim[2] };

	by = tc_build_broadcast(b, by, x->type, as_is);
	x = tc_build_sum(b, tc_build2(b, TC_MULTIPLY, x, by), 1u << 1);
	return tc_build_reshape(b, x, 3, row);
}

/* x[i] v for each row i of x [batch, r, n]: [batch, r]. */
static struct tc_value *times(const struct tc_build *b, struct tc_value *x, struct tc_value *v)
{
	v = tc_build_broadcast(b, v, x->type, as_is);
	return tc_build_sum(b, tc_build2(b, TC_MULTIPLY, x, v), 1u << 2);
}

/* Of what is left of a, a - sum of l r^H: column j, where x is a's. */
static struct tc_value *rest_of_column(const struct tc_build *b, struct tc_value *x,
				       struct tc_value *l, struct tc_value *r,
				       struct tc_value *j)
{
	struct tc_value *by = tc_build_conjugate(b, tc_build_take(b, r, 2, j, 1));

	return tc_build2(b, TC_SUBTRACT, x, sum_of(b, l, by));
}

/* The same of its product with v, where x [batch, n] is a v. */
static struct tc_value *rest_of_product(const struct tc_build *b, struct tc_value *x,
					struct tc_value *l, struct tc_value *r,
					struct tc_value *v)
{
	const int64_t column[] = { r->type->dim[0], r->type->dim[1], 1 };
	struct tc_value *by = times(b, tc_build_conjugate(b, r), v);

	x = tc_build_reshape(b, x, 3, v->type->dim);
	return tc_build2(b, TC_SUBTRACT, x, sum_of(b, l, tc_build_reshape(b, by, 3, column)));
}

/* w of the reflection I - tau v v^H, of a Hermitian a: with x = tau a v, x - v |tau|^2 v^H a v
 * / 2; by: a v. */
static struct tc_value *find_w(const struct tc_build *b, struct tc_value *by, struct tc_value *v,
			       struct tc_value *tau)
{
	struct tc_value *x, *half;

	x = tc_build2(b, TC_MULTIPLY, by, tc_build_broadcast(b, tau, by->type, by_row));
	half = tc_build2(b, TC_MULTIPLY, tc_build_conjugate(b, x), v);
	half = tc_build_sum(b, half, 1u << 2);
	half = tc_build2(b, TC_MULTIPLY, tc_build2(b, TC_MULTIPLY, half, tau),
			 tc_build_number(b, half->type, 0.5));
	half = tc_build_broadcast(b, half, v->type, by_row);
	return tc_build2(b, TC_SUBTRACT, x, tc_build2(b, TC_MULTIPLY, v, half));
}

/* l and r as the i-th pair of the first ones, or of the second. */
static void put_pair(const struct tc_build *b, struct tc_value **state, struct tc_value *i,
		     unsigned which, struct tc_value *l, struct tc_value *r)
{
	int64_t width = state[LEFT]->type->dim[1] / 2;

	if (which)
		i = tc_build2(b, TC_ADD, i, tc_build_number(b, i->type, (double)width));
	state[LEFT] = tc_build_put(b, state[LEFT], 1, i, l);
	state[RIGHT] = tc_build_put(b, state[RIGHT], 1, i, r);
}

/* The reflection of x at j and below, which it keeps as the i-th of `kept`. */
static struct tc_reflection reflect(const struct tc_build *b, struct tc_value *x,
				    struct tc_value *j, struct tc_value *i,
				    struct tc_value **kept)
{
	struct tc_reflection h = tc_linalg_reflection(b, x, j);

	kept[DONE] = tc_build_put(b, kept[DONE], 1, i, h.column);
	kept[TAUS] = tc_build_put(b, kept[TAUS], 1, i, h.tau);
	return h;
}

/* Row, or column, j of a Hermitian matrix. */
static void turn_hermitian(const struct tc_build *b, struct tc_value *i,
			   struct tc_value **state, void *arg)
{
	const struct panel *p = arg;
	struct tc_value *j = tc_build2(b, TC_ADD, p->from, i), *column, *v, *next, *w;
	struct tc_reflection h;

	next = tc_build2(b, TC_ADD, j, tc_build_number(b, j->type, 1));
	column = tc_build_conjugate(b, tc_build_take(b, p->a, 1, j, 1));
	column = rest_of_column(b, column, state[LEFT], state[RIGHT], j);
	h = reflect(b, column, next, i, state);
	v = h.v;
	w = rest_of_product(b, times(b, p->a, v), state[LEFT], state[RIGHT], v);
	w = find_w(b, w, v, h.tau);
	put_pair(b, state, i, 0, v, w);
	put_pair(b, state, i, 1, w, v);
}

/*
 * Column j, whose reflection I - tau v v^H leaves a - v y^H, y = tau a^H v, and then row j: I -
 * sigma u u^H leaves that without x u^H, x = sigma (a - v y^H) u.
 */
static void turn_square(const struct tc_build *b, struct tc_value *i, struct tc_value **state,
			void *arg)
{
	const struct panel *p = arg;
	int64_t n = p->a->type->dim[1];
	const int64_t row[] = { p->a->type->dim[0], 1, n };
	struct tc_value *j = tc_build2(b, TC_ADD, p->from, i), *next, *x, *v, *y;
	struct tc_reflection h;

	next = tc_build2(b, TC_ADD, j, tc_build_number(b, j->type, 1));
	x = tc_build_reshape(b, tc_build_take(b, p->a, 2, j, 1), 3, row);
	x = rest_of_column(b, x, state[LEFT], state[RIGHT], j);
	h = reflect(b, x, j, i, state);
	v = h.v;
	y = tc_build_reshape(b, v, 3, (int64_t[]){ row[0], n, 1 });
	y = tc_build_broadcast(b, y, p->a->type, as_is);
	y = tc_build2(b, TC_MULTIPLY, tc_build_conjugate(b, p->a), y);
	y = rest_of_product(b, tc_build_sum(b, y, 1u << 1), state[RIGHT], state[LEFT], v);
	y = tc_build2(b, TC_MULTIPLY, y, tc_build_broadcast(b, h.tau, y->type, by_row));
	put_pair(b, state, i, 0, v, y);
	x = tc_build_conjugate(b, tc_build_take(b, p->a, 1, j, 1));
	x = rest_of_column(b, x, state[RIGHT], state[LEFT], j);
	h = reflect(b, x, next, i, state + ROWS);
	v = h.v;
	x = rest_of_product(b, times(b, p->a, v), state[LEFT], state[RIGHT], v);
	x = tc_build2(b, TC_MULTIPLY, x, tc_build_broadcast(b, h.tau, x->type, by_row));
	put_pair(b, state, i, 1, x, v);
}

/* Panels of a. */
struct panels {
	bool is_hermitian;
	int64_t width;
};

/* What is kept of a panel: of the columns, and of a square matrix's rows. */
static unsigned kept_of(const struct panels *p, unsigned *at)
{
	for (unsigned k = 0; k < KEPT; k++) {
		at[k] = k;
		at[KEPT + k] = ROWS + k;
	}
	return p->is_hermitian ? KEPT : 2 * KEPT;
}

static struct tc_value *zeros(const struct tc_build *b, const struct tc_type *t, unsigned rank,
			      int64_t rows)
{
	const int64_t dim[] = { t->dim[0], rows, t->dim[t->rank - 1] };

	return tc_build_number(b, tc_tensor(b->c, (enum elem)t->elem, rank, dim), 0);
}

/* state: the matrix, and what is kept of all columns. */
static void reduce_panel(const struct tc_build *b, struct tc_value *i, struct tc_value **state,
			 void *arg)
{
	const struct panels *all = arg;
	const struct tc_type *t = state[0]->type;
	struct panel p = { .a = state[0], .width = all->width };
	struct tc_loop loop = { .n = all->width, .arg = &p,
				.body = all->is_hermitian ? turn_hermitian : turn_square };
	struct tc_value *inner[STATE], *r;
	unsigned at[2 * KEPT], n = kept_of(all, at);

	inner[LEFT] = inner[RIGHT] = zeros(b, t, 3, 2 * all->width);
	for (unsigned k = 0; k < n; k++)
		inner[at[k]] = zeros(b, t, at[k] % HERMITIAN_STATE == TAUS ? 2 : 3, all->width);
	p.from = tc_build2(b, TC_MULTIPLY, i, tc_build_number(b, i->type, (double)all->width));
	tc_build_loop(b, &loop, all->is_hermitian ? HERMITIAN_STATE : STATE, inner);
	for (unsigned k = 0; k < n; k++)
		state[1 + k] = tc_build_put(b, state[1 + k], 1, p.from, inner[at[k]]);
	r = tc_build_conjugate(b, inner[RIGHT]);
	state[0] = tc_build2(b, TC_SUBTRACT, state[0],
			     tc_build_dot(b, inner[LEFT], r, 1, 1, 1));
}

/* The first `some` columns of a, which leaves the others; state as above. */
static void reduce_some(const struct tc_build *b, const struct panels *p, int64_t some,
			struct tc_value **state)
{
	const struct tc_type *t = state[0]->type;
	struct panels copy = *p;
	struct tc_loop loop = { .n = some / p->width, .body = reduce_panel, .arg = &copy };
	unsigned at[2 * KEPT], n = kept_of(p, at);

	for (unsigned k = 0; k < n; k++)
		state[1 + k] = zeros(b, t, k % KEPT == TAUS ? 2 : 3, some);
	tc_build_loop(b, &loop, 1 + n, state);
	for (unsigned d = 1; d < 3 && some < t->dim[1]; d++)
		state[0] = tc_build_part(b, state[0], d, some, t->dim[1] - some);
}

static void condense_panels(const struct tc_build *b, struct tc_value *a, bool is_hermitian,
		     struct tc_value **kept)
{
	int64_t n = a->type->dim[1], done = 0, left, some;
	struct panels p = { .is_hermitian = is_hermitian, .width = n < PANEL ? n : PANEL };
	const int64_t none[] = { 0, 0, 0 };
	struct tc_value *state[1 + 2 * KEPT] = { a }, *all[2 * KEPT][PARTS], *zero;
	unsigned parts = 0, at[2 * KEPT], n_kept = kept_of(&p, at);

	left = (n + p.width - 1) / p.width;
	some = (left + PARTS - 1) / PARTS;
	zero = tc_build_number(b, tc_tensor(b->c, (enum elem)a->type->elem, 0, NULL), 0);
	/* Columns behind the last are none; what is found of them is not looked at. */
	for (; left > 0; left -= some) {
		reduce_some(b, &p, (left < some ? left : some) * p.width, state);
		for (unsigned k = 0; k < n_kept; k++) {
			all[k][parts] = state[1 + k];
			if (k % KEPT == DONE)
				all[k][parts] = tc_build_pad(b, state[1 + k], zero,
							     (int64_t[]){ 0, 0, done }, none,
							     none);
		}
		parts++;
		done += some * p.width;
	}
	for (unsigned k = 0; k < n_kept; k++)
		kept[k] = tc_build_part(b, tc_build_join(b, parts, all[k], 1), 1, 0, n);
}

/* [batch, n] */
static struct tc_value *zeros_of(const struct tc_build *b, const struct tc_type *t, int64_t n)
{
	const int64_t dim[] = { t->dim[0], n };

	return tc_build_number(b, tc_tensor(b->c, (enum elem)t->elem, 2, dim), 0);
}

/* Vectors [batch, 1, n - first - j] for j = 0, 1, ... as rows [batch, n, n], behind zeros. */
static struct tc_value *behind_zeros(const struct tc_build *b, const struct tc_type *t,
				     struct tc_value *const *vectors, int64_t first)
{
	struct tc_value *part[2 * MOST_WITHOUT_LOOP + 1];
	const int64_t n = t->dim[1], vector = n - first;
	unsigned parts = 0;

	for (int64_t j = 0; j < n; j++) {
		const int64_t run[] = { t->dim[0], j < vector ? vector - j : 0 };

		if (first + j)
			part[parts++] = zeros_of(b, t, n - run[1]);
		if (run[1])
			part[parts++] = tc_build_reshape(b, vectors[j], 2, run);
	}
	return tc_build_reshape(b, tc_build_join(b, parts, part, 1), 3, t->dim);
}

/* x - l r^H, l and r [batch, 1, n]. */
static struct tc_value *without(const struct tc_build *b, struct tc_value *x, struct tc_value *l,
				struct tc_value *r)
{
	r = tc_build_broadcast(b, tc_build_conjugate(b, r), x->type, as_is);
	l = tc_build_broadcast(b, tc_build_turn(b, l), x->type, as_is);
	return tc_build2(b, TC_SUBTRACT, x, tc_build2(b, TC_MULTIPLY, l, r));
}

/* A Hermitian matrix without panels: what is left behind each column. */
static void condense_small_hermitian(const struct tc_build *b, struct tc_value *a,
				     struct tc_value **kept)
{
	const struct tc_type *t = a->type, *s32 = tc_tensor(b->c, ELEM_S32, 0, NULL);
	const int64_t n = t->dim[1];
	struct tc_value *done[MOST_WITHOUT_LOOP], *taus[MOST_WITHOUT_LOOP], *v, *w;
	struct tc_reflection h;

	for (int64_t j = 0; j < n; j++) {
		const int64_t left = n - j - 1;

		h = tc_linalg_reflection(b, tc_build_conjugate(b, tc_build_part(b, a, 1, 0, 1)),
					 tc_build_number(b, s32, 1));
		done[j] = h.column;
		taus[j] = h.tau;
		if (!left)
			break;
		w = tc_build_reshape(b, times(b, a, h.v), 3, h.v->type->dim);
		w = tc_build_part(b, find_w(b, w, h.v, h.tau), 2, 1, left);
		v = tc_build_part(b, h.v, 2, 1, left);
		a = tc_build_part(b, tc_build_part(b, a, 1, 1, left), 2, 1, left);
		a = without(b, without(b, a, v, w), w, v);
	}
	kept[DONE] = behind_zeros(b, t, done, 0);
	kept[TAUS] = tc_build_join(b, (unsigned)n, taus, 1);
}

/*
 * A square matrix without panels: two instructions for a column and two for a row, of what is left
 * behind those before.
 */
static void condense_small(const struct tc_build *b, struct tc_value *a, struct tc_value **kept)
{
	const struct tc_type *t = a->type, *s32 = tc_tensor(b->c, ELEM_S32, 0, NULL);
	const int64_t n = t->dim[1];
	struct tc_value *first = tc_build_number(b, s32, 0);
	struct tc_value *done[2][MOST_WITHOUT_LOOP], *taus[2][MOST_WITHOUT_LOOP];
	struct tc_reflection h;

	for (int64_t j = 0; j < n; j++) {
		const int64_t left = n - j - 1;

		a = tc_build_turn(b, a);
		h = tc_linalg_reflection(b, tc_build_part(b, a, 1, 0, 1), first);
		done[0][j] = h.column;
		taus[0][j] = h.tau;
		taus[1][j] = zeros_of(b, t, 1);
		if (!left)
			break;
		a = tc_linalg_reflect(b, tc_build_part(b, a, 1, 1, left), h.v,
				      tc_build_conjugate(b, h.tau));
		a = tc_build_turn(b, a);
		h = tc_linalg_reflection(b, tc_build_conjugate(b, tc_build_part(b, a, 1, 0, 1)),
					 first);
		done[1][j] = h.column;
		taus[1][j] = h.tau;
		a = tc_linalg_reflect(b, tc_build_part(b, a, 1, 1, left),
				      tc_build_conjugate(b, h.v), h.tau);
	}
	for (unsigned side = 0; side < 2; side++) {
		kept[side * KEPT + DONE] = behind_zeros(b, t, done[side], side);
		kept[side * KEPT + TAUS] = tc_build_join(b, (unsigned)n, taus[side], 1);
	}
}

/* What is kept of all columns, [batch, n, n] and [batch, n]. */
static void condense(const struct tc_build *b, struct tc_value *a, bool is_hermitian,
		     struct tc_value **kept)
{
	const int64_t most = is_hermitian ? MOST_HERMITIAN_SO : MOST_WITHOUT_LOOP;

	if (a->type->dim[1] > most || a->type->count > SMALL)
		condense_panels(b, a, is_hermitian, kept);
	else if (is_hermitian)
		condense_small_hermitian(b, a, kept);
	else
		condense_small(b, a, kept);
}

/* Reflections that begin beside the diagonal, of all rows but the first, as those of a QR. */
static void begin_beside(const struct tc_build *b, struct tc_value **a, struct tc_value **taus)
{
	int64_t n = (*a)->type->dim[1];

	*a = tc_build_part(b, tc_build_part(b, *a, 1, 0, n - 1), 2, 1, n - 1);
	*a = tc_build_turn(b, *a);
	*taus = tc_build_part(b, *taus, 1, 0, n - 1);
}

struct tc_value *tc_linalg_hetrd(const struct tc_build *b, struct tc_value *a,
				 struct tc_value **taus)
{
	int64_t n = a->type->dim[1];
	struct tc_value *kept[KEPT];

	condense(b, a, true, kept);
	*taus = tc_build_part(b, kept[TAUS], 1, 0, n - 1);
	return tc_build_turn(b, kept[DONE]);
}

struct tc_condensed tc_linalg_tridiagonal(const struct tc_build *b, struct tc_value *a)
{
	struct tc_value *kept[KEPT];
	struct tc_condensed t = { NULL };

	condense(b, a, true, kept);
	t.a = kept[DONE];
	t.taus = kept[TAUS];
	t.d = tc_build_real(b, tc_linalg_diagonal(b, t.a));
	begin_beside(b, &t.a, &t.taus);
	t.e = tc_build_real(b, tc_linalg_diagonal(b, t.a));
	return t;
}

struct tc_condensed tc_linalg_bidiagonal(const struct tc_build *b, struct tc_value *a)
{
	struct tc_value *kept[2 * KEPT];
	struct tc_condensed t = { NULL };

	condense(b, a, false, kept);
	t.a = tc_build_turn(b, kept[DONE]);
	t.taus = kept[TAUS];
	t.d = tc_build_real(b, tc_linalg_diagonal(b, t.a));
	t.right = kept[KEPT + DONE];
	t.right_taus = kept[KEPT + TAUS];
	begin_beside(b, &t.right, &t.right_taus);
	t.e = tc_build_real(b, tc_linalg_diagonal(b, t.right));
	return t;
}
