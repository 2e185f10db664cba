/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jacobi rotations by blocks, for eigenvectors and singular vectors (linalg.h).
 *
 * Rows lie in pairs of blocks. What a sweep does to one pair of blocks is found on the
 * pair's own small matrix, all pairs at once, and reaches the rest as one product. Then
 * the blocks move on as in a tournament, so that in 2 * pairs - 1 steps each has met each
 * and is back (Brent and Luk, 1985). Within a pair, row i of the first block meets
 * row i of the second, whose rows move on by one each time; in the first step of a
 * sweep rows meet those of their own block too, again as in a tournament.
 *
 * Rounding errors of a sweep do not add up: after each the vectors are made orthonormal and
 * the matrix is made anew from them and the one that was given.
 */
#include <math.h>

#include "runtime/compiler/lower/linalg.h"

enum { MOST_SWEEPS = 40, WIDEST = 32 };

struct rotation {
	struct tc_value *c;		/* [batch, h], real */
	struct tc_value *re, *im;	/* of sigma; im NULL: real */
};

struct tc_sweep tc_linalg_sweep(int64_t n, bool is_hermitian)
{
	struct tc_sweep s = { .pairs = (n + 2 * WIDEST - 1) / (2 * WIDEST),
			      .is_hermitian = is_hermitian };

	s.size = (n + 2 * s.pairs - 1) / (2 * s.pairs);
	return s;
}

static struct tc_value *imaginary(const struct tc_build *b, struct tc_value *x)
{
	enum elem real = tc_real_of((enum elem)x->type->elem);

	return real == x->type->elem ? NULL :
		tc_build(b, TC_IMAG, tc_with_elem(b->c, x->type, real), 1, &x);
}

/* |re + i im| without squares that leave the range, and the parts over it; 0 where it is 0. */
static struct tc_value *to_polar(const struct tc_build *b, struct tc_value **re,
				 struct tc_value **im)
{
	struct tc_value *zero = tc_build_number(b, (*re)->type, 0), *most, *size, *none, *one;

	one = tc_build_number(b, (*re)->type, 1);
	most = tc_build1(b, TC_ABS, *re);
	if (*im)
		most = tc_build2(b, TC_MAXIMUM, most, tc_build1(b, TC_ABS, *im));
	none = tc_build_compare(b, TC_CMP_EQ, most, zero);
	if (!*im) {
		*re = tc_build1(b, TC_SIGN, *re);
		return most;
	}
	size = tc_build_select(b, none, one, most);
	*re = tc_build2(b, TC_DIVIDE, *re, size);
	*im = tc_build2(b, TC_DIVIDE, *im, size);
	size = tc_build1(b, TC_SQRT, tc_build2(b, TC_ADD, tc_build2(b, TC_MULTIPLY, *re, *re),
					       tc_build2(b, TC_MULTIPLY, *im, *im)));
	most = tc_build2(b, TC_MULTIPLY, most, size);
	size = tc_build_select(b, none, one, size);
	*re = tc_build2(b, TC_DIVIDE, *re, size);
	*im = tc_build2(b, TC_DIVIDE, *im, size);
	return most;
}

/*
 * tau = (aqq - app) / 2|apq|, t = sign(tau) / (|tau| + sqrt(1 + tau^2)), c = 1 / sqrt(1 +
 * t^2), sigma = c t apq / |apq|: the smaller of the two angles by which the rows c p -
 * sigma q and conj(sigma) p + c q make apq zero. Where tau^2 is infinite t is 0, which
 * it nearly is.
 */
static struct rotation find_rotation(const struct tc_build *b, struct tc_value *a, int64_t h,
				     struct tc_value *least)
{
	struct tc_value *p = tc_build_real(b, tc_linalg_diagonal_of(b, a, 0, 0, h));
	struct tc_value *q = tc_build_real(b, tc_linalg_diagonal_of(b, a, h, h, h));
	struct tc_value *off = tc_linalg_diagonal_of(b, a, 0, h, h), *size, *tau, *t;
	struct tc_value *zero = tc_build_number(b, p->type, 0), *none;
	struct tc_value *one = tc_build_number(b, p->type, 1), *sine;
	struct rotation r = { .re = tc_build_real(b, off), .im = imaginary(b, off) };

	size = to_polar(b, &r.re, &r.im);
	none = tc_build_compare(b, TC_CMP_LE, size, least ? least : zero);
	tau = tc_build2(b, TC_DIVIDE, tc_build2(b, TC_SUBTRACT, q, p),
			tc_build2(b, TC_ADD, size, size));
	t = tc_build2(b, TC_ADD, one, tc_build2(b, TC_MULTIPLY, tau, tau));
	t = tc_build2(b, TC_ADD, tc_build1(b, TC_ABS, tau), tc_build1(b, TC_SQRT, t));
	t = tc_build2(b, TC_DIVIDE, tc_build_select(b, tc_build_compare(b, TC_CMP_LT, tau, zero),
						    tc_build1(b, TC_NEGATE, one), one), t);
	t = tc_build_select(b, none, zero, t);
	r.c = tc_build2(b, TC_ADD, one, tc_build2(b, TC_MULTIPLY, t, t));
	r.c = tc_build2(b, TC_DIVIDE, one, tc_build1(b, TC_SQRT, r.c));
	sine = tc_build2(b, TC_MULTIPLY, t, r.c);
	r.re = tc_build2(b, TC_MULTIPLY, sine, r.re);
	if (r.im)
		r.im = tc_build2(b, TC_MULTIPLY, sine, r.im);
	return r;
}

/* How x is turned along dim 1, its rows, or 2, its columns. */
struct turn {
	const struct rotation *r;
	unsigned dim;
	int64_t h;
};

/* Rows from .. from + size of the first half (side 0), c p - sigma q, or of the second,
 * conj(sigma) p + c q; columns with conj(sigma) for sigma. */
static struct tc_value *turned(const struct tc_build *b, struct tc_value *x,
			       const struct turn *u, unsigned side, int64_t from, int64_t size)
{
	const int64_t dims[] = { 0, u->dim };
	struct tc_value *p = tc_build_part(b, x, u->dim, from, size), *q, *c, *part[2], *swap;
	enum elem elem = (enum elem)x->type->elem;

	q = tc_build_part(b, x, u->dim, u->h + from, size);
	c = tc_build_convert(b, tc_build_part(b, u->r->c, 1, from, size), elem);
	part[0] = tc_build_part(b, u->r->re, 1, from, size);
	if (u->r->im) {
		part[1] = tc_build_part(b, u->r->im, 1, from, size);
		if ((side == 1) != (u->dim == 2))
			part[1] = tc_build1(b, TC_NEGATE, part[1]);
		part[0] = tc_build(b, TC_COMPLEX, tc_with_elem(b->c, part[0]->type, elem), 2,
				   part);
	}
	part[0] = tc_build_broadcast(b, part[0], p->type, dims);
	c = tc_build_broadcast(b, c, p->type, dims);
	if (side) {
		swap = p;
		p = q;
		q = swap;
	}
	return tc_build2(b, side ? TC_ADD : TC_SUBTRACT, tc_build2(b, TC_MULTIPLY, c, p),
			 tc_build2(b, TC_MULTIPLY, part[0], q));
}

/* x rotated, and moved on: the rows of the second half by one, or all in a tournament. */
static struct tc_value *rotate(const struct tc_build *b, struct tc_value *x,
			       const struct turn *u, bool is_tournament)
{
	struct tc_value *part[5];
	int64_t h = u->h;
	unsigned n = 0;

	if (h == 1 || !is_tournament) {
		part[n++] = turned(b, x, u, 0, 0, h);
		if (h > 1)
			part[n++] = turned(b, x, u, 1, 1, h - 1);
		part[n++] = turned(b, x, u, 1, 0, 1);
	} else {
		part[n++] = turned(b, x, u, 0, 0, 1);
		part[n++] = turned(b, x, u, 1, 0, 1);
		if (h > 2)
			part[n++] = turned(b, x, u, 0, 1, h - 2);
		part[n++] = turned(b, x, u, 1, 1, h - 1);
		part[n++] = turned(b, x, u, 0, h - 1, 1);
	}
	return tc_build_join(b, n, part, u->dim);
}

struct meeting {
	struct tc_value *least;		/* [batch, h]; NULL: 0 */
	bool is_tournament;
};

/* state: the pairs' matrices [.., 2h, 2h], and what has been done to their rows. */
static void step(const struct tc_build *b, struct tc_value *i, struct tc_value **state,
		 void *arg)
{
	int64_t h = state[0]->type->dim[1] / 2;
	const struct meeting *m = arg;
	struct rotation r = find_rotation(b, state[0], h, m->least);
	struct turn rows = { &r, 1, h }, columns = { &r, 2, h };

	(void)i;
	state[0] = rotate(b, state[0], &columns, m->is_tournament);
	state[0] = rotate(b, state[0], &rows, m->is_tournament);
	state[1] = rotate(b, state[1], &rows, m->is_tournament);
}

/* The pairs' own matrices, [batch * pairs, 2 size, 2 size]: blocks on the diagonal of a
 * Hermitian matrix, or products of rows. */
static struct tc_value *pairs_of(const struct tc_build *b, const struct tc_sweep *s,
				 struct tc_value *x)
{
	const struct tc_type *t = x->type, *s32;
	int64_t wide = 2 * s->size, batch = t->dim[0];
	int64_t dim[] = { batch, s->pairs, wide, s->pairs, wide };
	int64_t flat[] = { batch * s->pairs, wide, wide }, rows[] = { flat[0], wide, t->dim[2] };
	struct tc_value *is_own;

	if (!s->is_hermitian) {
		x = tc_build_reshape(b, x, 3, rows);
		return tc_linalg_times_adjoint(b, x, x);
	}
	if (s->pairs == 1)
		return x;
	x = tc_build_reshape(b, x, 5, dim);
	s32 = tc_with_elem(b->c, x->type, ELEM_S32);
	is_own = tc_build_compare(b, TC_CMP_EQ, tc_build_iota(b, s32, 1),
				  tc_build_iota(b, s32, 3));
	x = tc_build_select(b, is_own, x, tc_build_number(b, x->type, 0));
	return tc_build_reshape(b, tc_build_sum(b, x, 1u << 3), 3, flat);
}

/* Pairs of rows [batch, rows, columns] turned by `by` [batch * pairs, 2 size, 2 size], and
 * their blocks moved on. */
static struct tc_value *turn_pairs(const struct tc_build *b, const struct tc_sweep *s,
				   struct tc_value *by, struct tc_value *x)
{
	const struct tc_type *t = x->type;
	int64_t h = s->pairs, flat[] = { t->dim[0] * h, 2 * s->size, t->dim[2] };
	int64_t split[] = { t->dim[0], h, 2 * s->size, t->dim[2] };
	struct tc_value *p, *q, *part[3];
	unsigned n = 0;

	x = tc_linalg_times(b, by, tc_build_reshape(b, x, 3, flat));
	if (h > 1) {
		x = tc_build_reshape(b, x, 4, split);
		p = tc_build_part(b, x, 2, 0, s->size);
		q = tc_build_part(b, x, 2, s->size, s->size);
		part[n++] = tc_build_part(b, p, 1, 0, 1);
		part[n++] = tc_build_part(b, q, 1, 0, 1);
		if (h > 2)
			part[n++] = tc_build_part(b, p, 1, 1, h - 2);
		part[0] = tc_build_join(b, n, part, 1);
		part[1] = tc_build_part(b, q, 1, 1, h - 1);
		part[2] = tc_build_part(b, p, 1, h - 1, 1);
		part[1] = tc_build_join(b, 2, part + 1, 1);
		x = tc_build_join(b, 2, part, 2);
	}
	return tc_build_reshape(b, x, 3, t->dim);
}

/* What rounding leaves of a zero in a Hermitian matrix: two units of its largest element on the
 * diagonal, for each pair of rows. */
static struct tc_value *least_of(const struct tc_build *b, const struct tc_sweep *s,
				 struct tc_value *own)
{
	double unit = tc_linalg_unit((enum elem)own->type->elem);
	int64_t batch = own->type->dim[0] / s->pairs, split[] = { batch, s->pairs * 2 * s->size };
	int64_t dim[] = { batch, s->pairs, s->size }, flat[] = { batch * s->pairs, s->size };
	struct tc_value *x = tc_build1(b, TC_ABS, tc_build_real(b, tc_linalg_diagonal(b, own)));

	x = tc_build_reshape(b, x, 2, split);
	x = tc_build_fold(b, TC_MAXIMUM, x, -INFINITY, 1u << 1);
	x = tc_build2(b, TC_MULTIPLY, x, tc_build_number(b, x->type, 2 * unit));
	x = tc_build_broadcast(b, x, tc_tensor(b->c, x->type->elem, 3, dim),
			       (const int64_t[]){ 0 });
	return tc_build_reshape(b, x, 2, flat);
}

/* All pairs of blocks that are beside each other now. */
static void meet(const struct tc_build *b, const struct tc_sweep *s, struct tc_value **state,
		 bool is_first)
{
	struct meeting m = { .is_tournament = is_first };
	struct tc_loop steps = { .n = is_first ? 2 * s->size - 1 : s->size, .body = step,
				 .arg = &m };
	struct tc_value *own[2] = { pairs_of(b, s, state[0]) };

	if (s->is_hermitian)
		m.least = least_of(b, s, own[0]);
	own[1] = tc_linalg_identity(b, own[0]->type);
	tc_build_loop(b, &steps, 2, own);
	state[0] = turn_pairs(b, s, own[1], state[0]);
	if (s->is_hermitian)
		state[0] = turn_pairs(b, s, own[1], tc_linalg_adjoint(b, state[0]));
	state[1] = turn_pairs(b, s, own[1], state[1]);
}

static void meet_others(const struct tc_build *b, struct tc_value *i,
			struct tc_value **state, void *arg)
{
	(void)i;
	meet(b, arg, state, false);
}

void tc_linalg_sweep_once(const struct tc_build *b, const struct tc_sweep *s,
			  struct tc_value **state, struct tc_value **vectors)
{
	struct tc_sweep copy = *s;
	struct tc_loop others = { .n = 2 * s->pairs - 2, .body = meet_others, .arg = &copy };
	struct tc_value *both[2] = { *state, *vectors };

	meet(b, s, both, true);
	if (others.n)
		tc_build_loop(b, &others, 2, both);
	*state = both[0];
	*vectors = both[1];
}

/* What Newton's iteration for the nearest unitary matrix makes of one that is nearly so
 * (Schulz, 1933): the error's square is left. */
struct tc_value *tc_linalg_polish(const struct tc_build *b, struct tc_value *rows)
{
	struct tc_value *off = tc_linalg_times_adjoint(b, rows, rows);

	off = tc_build2(b, TC_SUBTRACT, tc_linalg_identity(b, off->type), off);
	off = tc_build2(b, TC_MULTIPLY, off, tc_build_number(b, off->type, 0.5));
	return tc_build2(b, TC_ADD, rows, tc_linalg_times(b, off, rows));
}

struct tc_value *tc_linalg_widen(const struct tc_build *b, struct tc_value *x, int64_t rows,
				 int64_t columns)
{
	struct tc_value *part[2];
	int64_t size[] = { 0, rows, columns }, dim[3];

	for (unsigned d = 1; d < 3; d++) {
		const struct tc_type *t = x->type;

		if (size[d] == t->dim[d])
			continue;
		for (unsigned i = 0; i < 3; i++)
			dim[i] = t->dim[i];
		dim[d] = size[d] - t->dim[d];
		part[0] = x;
		part[1] = tc_build_number(b, tc_tensor(b->c, t->elem, 3, dim), 0);
		x = tc_build_join(b, 2, part, d);
	}
	return x;
}

/* state: the matrix, the vectors, how far it is, how far it was a sweep before. */
static struct tc_value *goes_on(const struct tc_build *b, struct tc_value *const *state,
				void *arg)
{
	const struct tc_iteration *it = arg;
	struct tc_value *now = state[2], *was, *is_far, *shrinks;

	was = tc_build2(b, TC_MULTIPLY, state[3], tc_build_number(b, now->type, 0x1p-4));
	is_far = tc_build_compare(b, TC_CMP_GT, now, tc_build_number(b, now->type, it->loose));
	shrinks = tc_build_compare(b, TC_CMP_GT, now, tc_build_number(b, now->type, it->tight));
	shrinks = tc_build2(b, TC_AND, shrinks, tc_build_compare(b, TC_CMP_LT, now, was));
	is_far = tc_build_convert(b, tc_build2(b, TC_OR, is_far, shrinks), ELEM_S32);
	is_far = tc_build_sum(b, is_far, 1);
	return tc_build_compare(b, TC_CMP_GT, is_far, tc_build_number(b, is_far->type, 0));
}

static void sweep(const struct tc_build *b, struct tc_value *i, struct tc_value **state,
		  void *arg)
{
	const struct tc_iteration *it = arg;

	(void)i;
	tc_linalg_sweep_once(b, &it->sweep, &state[0], &state[1]);
	state[1] = tc_linalg_polish(b, state[1]);
	state[3] = state[2];
	state[0] = it->renew(b, state[1], &state[2], it->arg);
}

void tc_linalg_iterate(const struct tc_build *b, const struct tc_iteration *it,
		       struct tc_value **state, struct tc_value **vectors)
{
	struct tc_iteration copy = *it;
	struct tc_loop sweeps = { .n = MOST_SWEEPS, .more = goes_on, .body = sweep,
				  .arg = &copy };
	struct tc_value *all[4] = { NULL, *vectors };

	all[0] = it->renew(b, *vectors, &all[2], it->arg);
	all[3] = tc_build_number(b, all[2]->type, 0x1p60);
	tc_build_loop(b, &sweeps, 4, all);
	*state = all[0];
	*vectors = all[1];
}
