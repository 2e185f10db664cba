/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Householder QR as LAPACK's geqrf and orgqr leave it: a reflection a column. Columns are cut
 * in halves until FEW are left, and the product of a half's reflections is kept as
 * I - V T V^H (Schreiber and Van Loan, 1989), so that what it does to the other half is three
 * products (Elmroth and Gustavson, 2000). The few are two instructions each, one over the column,
 * one over those behind it, which lie as runs of memory; of many columns they are a loop.
 *
 * Each column is scaled by its own largest element while its reflection is made, so that
 * columns of any size in a type's range have one.
 */
#include <math.h>
#include <string.h>

#include "runtime/compiler/lower/linalg.h"

enum {
	FEW = 16,	/* columns that are done one by one */
	MOST_WITHOUT_LOOP = 128,	/* columns of a matrix in which they are no loop */
	MOST_IN_ONE = 32,	/* columns of a small matrix, which is not cut, */
	SMALL = 4096,	/* and the elements of all of them */
	LONG = 2048,	/* rows, from which on a pass over them is longer than an instruction */
	TALL = 32,	/* times as many rows as columns, of which products wait for memory */
	BLOCK = 64,	/* reflections that are applied together */
	MOST_CELLS = 64,	/* of a matrix that is done without a loop */
};

/* Dims of what is one number for each column, in [batch, columns, rows]. */
static const int64_t by_column[] = { 0, 1 };
static const int64_t as_is[] = { 0, 1, 2 };

/* Numbers along `dim` of t compared with the scalar j. */
static struct tc_value *at(const struct tc_build *b, const struct tc_type *t, unsigned dim,
			   int direction, struct tc_value *j)
{
	const struct tc_type *s32 = tc_with_elem(b->c, t, ELEM_S32);

	return tc_build_compare(b, direction, tc_build_iota(b, s32, dim),
				tc_build_broadcast(b, j, s32, NULL));
}

/* A number of `type` from its real parts; im is NULL for a real one. */
static struct tc_value *compose(const struct tc_build *b, const struct tc_type *type,
				struct tc_value *re, struct tc_value *im)
{
	struct tc_value *part[] = { re, im };

	return im ? tc_build(b, TC_COMPLEX, type, 2, part) : re;
}

static struct tc_value *spread(const struct tc_build *b, struct tc_value *x,
			       const struct tc_type *t)
{
	t = tc_with_elem(b->c, t, (enum elem)x->type->elem);
	return tc_build_broadcast(b, x, t, x->type->rank == 2 ? by_column : as_is);
}

static enum elem wide_of(const struct tc_type *t)
{
	enum elem elem = (enum elem)t->elem;

	return elem == ELEM_F32 ? ELEM_F64 : elem == ELEM_C64 ? ELEM_C128 : elem;
}

/* What a reflection is made of: alpha's parts and beta, [batch, 1] and real, im may be NULL; and
 * whether there is none to make. */
struct made_of {
	struct tc_value *re, *im, *beta, *none;
};

/* beta = -sign(Re alpha) |(alpha, x)|, where x is what is below, `rest` |x|^2. */
static struct made_of find_beta(const struct tc_build *b, struct tc_value *alpha,
				struct tc_value *rest)
{
	struct made_of m = { .re = tc_build_real(b, alpha) };
	struct tc_value *zero = tc_build_number(b, m.re->type, 0);

	m.none = tc_build_compare(b, TC_CMP_EQ, rest, zero);
	if (m.re->type != alpha->type) {
		m.im = tc_build(b, TC_IMAG, m.re->type, 1, &alpha);
		m.none = tc_build2(b, TC_AND, m.none,
				   tc_build_compare(b, TC_CMP_EQ, m.im, zero));
	}
	m.beta = tc_build2(b, TC_ADD, tc_linalg_square(b, alpha), rest);
	m.beta = tc_build1(b, TC_SQRT, m.beta);
	m.beta = tc_build_select(b, tc_build_compare(b, TC_CMP_LT, m.re, zero), m.beta,
				 tc_build1(b, TC_NEGATE, m.beta));
	return m;
}

/* (beta - alpha) / beta */
static struct tc_value *find_tau(const struct tc_build *b, const struct made_of *m,
				 const struct tc_type *t)
{
	struct tc_value *im = NULL, *re;

	re = tc_build2(b, TC_DIVIDE, tc_build2(b, TC_SUBTRACT, m->beta, m->re), m->beta);
	if (m->im)
		im = tc_build1(b, TC_NEGATE, tc_build2(b, TC_DIVIDE, m->im, m->beta));
	return tc_build_select(b, m->none, tc_build_number(b, t, 0), compose(b, t, re, im));
}

/* 1 / (alpha - beta) */
static struct tc_value *find_factor(const struct tc_build *b, const struct made_of *m,
				    const struct tc_type *t)
{
	struct tc_value *re = tc_build2(b, TC_SUBTRACT, m->re, m->beta), *im = m->im, *bottom;

	bottom = tc_build2(b, TC_MULTIPLY, re, re);
	if (im) {
		bottom = tc_build2(b, TC_ADD, bottom, tc_build2(b, TC_MULTIPLY, im, im));
		im = tc_build1(b, TC_NEGATE, tc_build2(b, TC_DIVIDE, im, bottom));
	}
	re = tc_build2(b, TC_DIVIDE, re, bottom);
	return tc_build_select(b, m->none, tc_build_number(b, t, 0), compose(b, t, re, im));
}

/*
 * For a column [batch, 1, rows] with alpha in row j and x below: beta, tau = (beta - alpha) /
 * beta, v = x / (alpha - beta). All zero below and a real alpha: no reflection. |alpha - beta| is
 * between the scaled column's norm and twice that: its square is in range. Of single numbers
 * the reflection is found in double ones, as what is lost there is lost of its being unitary;
 * these have room for all squares. tau comes last, so that what is before is one instruction.
 */
struct tc_reflection tc_linalg_reflection(const struct tc_build *b, struct tc_value *column,
					  struct tc_value *j)
{
	const enum elem elem = (enum elem)column->type->elem;
	const struct tc_type *t = column->type;
	struct tc_value *zero = tc_build_number(b, t, 0), *alpha, *x, *p = NULL, *beta, *is_j;
	struct tc_value *is_below = at(b, t, 2, TC_CMP_GT, j);
	struct tc_reflection h;
	struct made_of m;

	is_j = at(b, t, 2, TC_CMP_EQ, j);
	x = tc_build_select(b, at(b, t, 2, TC_CMP_GE, j), column, zero);
	if (wide_of(t) == elem) {
		p = tc_linalg_power_along(b, x, 2);
		x = tc_linalg_by(b, TC_DIVIDE, x, spread(b, p, t));
	}
	alpha = tc_build_sum(b, tc_build_select(b, is_j, x, zero), 1u << 2);
	alpha = tc_build_convert(b, alpha, wide_of(t));
	x = tc_build_convert(b, tc_build_select(b, is_below, x, zero), wide_of(t));
	m = find_beta(b, alpha, tc_build_sum(b, tc_linalg_square(b, x), 1u << 2));
	x = tc_build2(b, TC_MULTIPLY, x, spread(b, find_factor(b, &m, alpha->type), x->type));
	h.v = tc_build_select(b, is_j, tc_build_number(b, t, 1), tc_build_convert(b, x, elem));
	beta = tc_build_select(b, m.none, m.re, m.beta);
	if (p)
		beta = tc_build2(b, TC_MULTIPLY, beta, p);
	beta = tc_build_convert(b, beta, elem);
	h.column = tc_build_select(b, is_below, h.v, column);
	h.column = tc_build_select(b, is_j, spread(b, beta, t), h.column);
	h.tau = tc_build_convert(b, find_tau(b, &m, alpha->type), elem);
	return h;
}

/* Column j, and what its reflection does to those behind it; state: the matrix [batch, columns,
 * rows], taus [batch, columns]. */
static void qr_column(const struct tc_build *b, struct tc_value *j, struct tc_value **state,
		      void *arg)
{
	struct tc_value *a = state[0], *v, *w;
	const struct tc_type *all = a->type, *taus = state[1]->type;
	struct tc_reflection h = tc_linalg_reflection(b, tc_build_take(b, a, 1, j, 1), j);

	(void)arg;
	v = spread(b, h.v, all);
	w = tc_build_sum(b, tc_build2(b, TC_MULTIPLY, tc_build_conjugate(b, v), a), 1u << 2);
	w = tc_build2(b, TC_MULTIPLY, w, tc_build_broadcast(b, tc_build_conjugate(b, h.tau),
							    w->type, by_column));
	w = tc_build_select(b, at(b, w->type, 1, TC_CMP_GT, j), w,
			    tc_build_number(b, w->type, 0));
	w = tc_build2(b, TC_MULTIPLY, spread(b, w, all), v);
	/* Columns before j are as they were, whatever v is. */
	w = tc_build_select(b, at(b, all, 1, TC_CMP_GT, j), tc_build2(b, TC_SUBTRACT, a, w), a);
	state[0] = tc_build_select(b, at(b, all, 1, TC_CMP_EQ, j), spread(b, h.column, all), w);
	state[1] = tc_build_select(b, at(b, taus, 1, TC_CMP_EQ, j),
				   tc_build_broadcast(b, h.tau, taus, by_column), state[1]);
}

/* ---- few columns without a loop ---- */

/* What a column leaves: v [batch, 1, rows - 1] behind its 1, NULL if no rows are left; tau
 * [batch, 1]; R's row from the diagonal on, [batch, columns]. */
struct reflected {
	struct tc_value *v, *tau, *row;
};

/* The reflection of the first column of x [batch, columns, rows], as tc_linalg_reflection(). */
static struct reflected reflect_first(const struct tc_build *b, struct tc_value *x)
{
	const enum elem elem = (enum elem)x->type->elem, wide = wide_of(x->type);
	const int64_t one[] = { x->type->dim[0], 1 }, rows = x->type->dim[2];
	struct tc_value *column = tc_build_part(b, x, 1, 0, 1), *alpha, *below, *rest, *p = NULL;
	struct reflected r = { NULL };
	struct made_of m;

	alpha = tc_build_reshape(b, tc_build_part(b, column, 2, 0, 1), 2, one);
	below = rows > 1 ? tc_build_part(b, column, 2, 1, rows - 1) : NULL;
	if (wide == elem) {
		p = tc_linalg_power_along(b, column, 2);
		alpha = tc_linalg_by(b, TC_DIVIDE, alpha, p);
		if (below)
			below = tc_linalg_by(b, TC_DIVIDE, below, spread(b, p, below->type));
	}
	alpha = tc_build_convert(b, alpha, wide);
	rest = tc_build_number(b, tc_build_real(b, alpha)->type, 0);
	if (below) {
		below = tc_build_convert(b, below, wide);
		rest = tc_build_sum(b, tc_linalg_square(b, below), 1u << 2);
	}
	m = find_beta(b, alpha, rest);
	if (below) {
		below = tc_build2(b, TC_MULTIPLY, below,
				  spread(b, find_factor(b, &m, alpha->type), below->type));
		r.v = tc_build_convert(b, below, elem);
	}
	r.row = tc_build_select(b, m.none, m.re, m.beta);
	if (p)
		r.row = tc_build2(b, TC_MULTIPLY, r.row, p);
	r.row = tc_build_convert(b, r.row, elem);
	r.tau = tc_build_convert(b, find_tau(b, &m, alpha->type), elem);
	return r;
}

/* That column off x: the columns and the rows behind; R's row gets what it has of them. */
static struct tc_value *reflect_others(const struct tc_build *b, struct tc_value *x,
				       struct reflected *r)
{
	const int64_t columns = x->type->dim[1] - 1, rows = x->type->dim[2] - 1;
	struct tc_value *head, *w, *part[2] = { r->row };

	x = tc_build_part(b, x, 1, 1, columns);
	head = tc_build_part(b, x, 2, 0, 1);
	head = tc_build_reshape(b, head, 2, (int64_t[]){ x->type->dim[0], columns });
	x = tc_build_part(b, x, 2, 1, rows);
	w = tc_build2(b, TC_MULTIPLY, tc_build_conjugate(b, spread(b, r->v, x->type)), x);
	w = tc_build2(b, TC_ADD, head, tc_build_sum(b, w, 1u << 2));
	w = tc_build2(b, TC_MULTIPLY, w, tc_build_broadcast(b, tc_build_conjugate(b, r->tau),
							    w->type, by_column));
	part[1] = tc_build2(b, TC_SUBTRACT, head, w);
	r->row = tc_build_join(b, 2, part, 1);
	w = tc_build2(b, TC_MULTIPLY, spread(b, w, x->type), spread(b, r->v, x->type));
	return tc_build2(b, TC_SUBTRACT, x, w);
}

/* x [batch, n] with so many zeros before and behind. */
static struct tc_value *amid_zeros(const struct tc_build *b, struct tc_value *x, int64_t before,
				   int64_t behind)
{
	const int64_t none[] = { 0, 0 }, low[] = { 0, before }, high[] = { 0, behind };
	const struct tc_type *scalar = tc_tensor(b->c, (enum elem)x->type->elem, 0, NULL);

	if (!before && !behind)
		return x;
	return tc_build_pad(b, x, tc_build_number(b, scalar, 0), low, high, none);
}

/* x [batch, columns, rows], at least as many rows, as R and the reflections below it. */
static struct tc_value *reflect_long(const struct tc_build *b, struct tc_value *x,
				     struct tc_value **tau)
{
	const int64_t batch = x->type->dim[0], w = x->type->dim[1], m = x->type->dim[2];
	struct tc_value *column[MOST_IN_ONE], *row[MOST_IN_ONE], *r, *part[2];
	struct reflected one;

	for (int64_t j = 0; j < w; j++) {
		one = reflect_first(b, x);
		if (j + 1 < w)
			x = reflect_others(b, x, &one);
		tau[j] = one.tau;
		column[j] = one.v;
		row[j] = amid_zeros(b, one.row, j, 0);
		row[j] = tc_build_reshape(b, row[j], 3, (int64_t[]){ batch, 1, w });
	}
	r = tc_build_turn(b, tc_build_join(b, (unsigned)w, row, 1));
	for (int64_t j = 0; j < w; j++) {
		part[0] = tc_build_part(b, tc_build_part(b, r, 1, j, 1), 2, 0, j + 1);
		part[1] = column[j];
		column[j] = tc_build_join(b, 1 + (j + 1 < m), part, 2);
	}
	return tc_build_join(b, (unsigned)w, column, 1);
}

struct tc_value *tc_linalg_reflect(const struct tc_build *b, struct tc_value *x,
				   struct tc_value *v, struct tc_value *tau)
{
	struct tc_value *w;

	v = spread(b, v, x->type);
	w = tc_build_sum(b, tc_build2(b, TC_MULTIPLY, tc_build_conjugate(b, v), x), 1u << 2);
	w = tc_build2(b, TC_MULTIPLY, w, tc_build_broadcast(b, tau, w->type, by_column));
	return tc_build2(b, TC_SUBTRACT, x, tc_build2(b, TC_MULTIPLY, spread(b, w, x->type), v));
}

/* The same where instructions take longer than what they pass over: two a column, of all rows. */
static struct tc_value *reflect_short(const struct tc_build *b, struct tc_value *x,
				      struct tc_value **tau)
{
	const struct tc_type *s32 = tc_tensor(b->c, ELEM_S32, 0, NULL);
	const int64_t w = x->type->dim[1];
	struct tc_value *column[MOST_IN_ONE];
	struct tc_reflection h;

	for (int64_t j = 0; j < w; j++) {
		h = tc_linalg_reflection(b, tc_build_part(b, x, 1, 0, 1),
					 tc_build_number(b, s32, (double)j));
		column[j] = h.column;
		tau[j] = h.tau;
		if (j + 1 < w)
			x = tc_linalg_reflect(b, tc_build_part(b, x, 1, 1, w - j - 1), h.v,
					      tc_build_conjugate(b, h.tau));
	}
	return tc_build_join(b, (unsigned)w, column, 1);
}

static struct tc_value *reflect_without_loop(const struct tc_build *b, struct tc_value *x,
					     struct tc_value **taus)
{
	struct tc_value *tau[MOST_IN_ONE];

	x = x->type->dim[2] < LONG ? reflect_short(b, x, tau) : reflect_long(b, x, tau);
	*taus = tc_build_join(b, (unsigned)x->type->dim[1], tau, 1);
	return x;
}

/* Whether all columns of a matrix are done one by one. */
static bool is_small(const struct tc_type *t, int64_t columns)
{
	return columns <= MOST_IN_ONE && t->dim[0] * t->dim[1] * columns <= SMALL;
}

/* ---- blocks ---- */

/* Columns of a matrix, and their reflections' product as I - V T V^H. */
struct block {
	struct tc_value *x;		/* R above, reflectors below: [batch, m, w] */
	struct tc_value *taus;		/* [batch, w] */
	struct tc_value *v, *t;		/* [batch, m, w], [batch, w, w]; t: if asked for */
};

/* The reflectors of x: what is below the diagonal, and ones on it. */
static struct tc_value *reflectors(const struct tc_build *b, struct tc_value *x)
{
	struct tc_value *v;

	v = tc_build_select(b, tc_build_where(b, x->type, TC_CMP_GT), x,
			    tc_build_number(b, x->type, 0));
	return tc_build_select(b, tc_build_where(b, x->type, TC_CMP_EQ),
			       tc_build_number(b, x->type, 1), v);
}

/* x^H y of [batch, m, ..]. */
static struct tc_value *across(const struct tc_build *b, struct tc_value *x, struct tc_value *y)
{
	return tc_build_dot(b, tc_build_conjugate(b, x), y, 1, 1, 1);
}

/*
 * Of l [batch, w, w], w a multiple of 2 s, what is left of each second block of s on the diagonal
 * and below the one before it: [batch w / 2 s, s, s]. `run` is l as a run of elements, a row of
 * zeros behind it: two blocks further are 2 s rows and 2 s elements.
 */
static struct tc_value *below_blocks(const struct tc_build *b, struct tc_value *run, int64_t w,
				     int64_t s)
{
	int64_t batch = run->type->dim[0], pairs = w / (2 * s);
	const int64_t cut[] = { batch, pairs, 2 * s * (w + 1) }, rows[] = { batch * pairs, s, w };

	run = tc_build_part(b, tc_build_reshape(b, run, 3, cut), 2, s * w, s * w);
	return tc_build_part(b, tc_build_reshape(b, run, 3, rows), 2, 0, s);
}

/* (I + L)^-1, L what is below the diagonal of l [batch, w, w]: that of each two blocks from
 * theirs, [x 0; -y l x y]. */
static struct tc_value *invert_below(const struct tc_build *b, struct tc_value *l)
{
	const enum elem elem = (enum elem)l->type->elem;
	int64_t batch = l->type->dim[0], w = l->type->dim[1], wide = 1;
	const int64_t none[] = { 0, 0, 0 };
	struct tc_value *zero = tc_build_number(b, tc_tensor(b->c, elem, 0, NULL), 0);
	struct tc_value *all, *below, *x[2], *part[2];

	while (wide < w)
		wide *= 2;
	l = tc_build_pad(b, l, zero, none, (int64_t[]){ 0, wide - w + 1, wide - w }, none);
	l = tc_build_reshape(b, l, 2, (int64_t[]){ batch, (wide + 1) * wide });
	all = tc_build_number(b, tc_tensor(b->c, elem, 3, (int64_t[]){ batch * wide, 1, 1 }), 1);
	for (int64_t s = 1; s < wide; s *= 2) {
		const int64_t pairs = batch * wide / (2 * s), four[] = { pairs, 2, s, s };
		const int64_t one[] = { pairs, s, s };

		all = tc_build_reshape(b, all, 4, four);
		for (unsigned i = 0; i < 2; i++)
			x[i] = tc_build_reshape(b, tc_build_part(b, all, 1, i, 1), 3, one);
		below = below_blocks(b, l, wide, s);
		if (s > 1)
			below = tc_linalg_times(b, tc_linalg_times(b, x[1], below), x[0]);
		below = tc_build1(b, TC_NEGATE, below);
		part[0] = tc_build_join(b, 2, (struct tc_value *[]){ x[0],
						tc_build_number(b, x[0]->type, 0) }, 2);
		part[1] = tc_build_join(b, 2, (struct tc_value *[]){ below, x[1] }, 2);
		all = tc_build_join(b, 2, part, 1);
	}
	return tc_build_part(b, tc_build_part(b, all, 1, 0, w), 2, 0, w);
}

/* Of conj(run) run^T, turned, what is below the diagonal: run [batch, w, m] is V^T. */
static struct tc_value *products_of(const struct tc_build *b, struct tc_value *run)
{
	const int64_t batch = run->type->dim[0], w = run->type->dim[1];
	struct tc_value *others, *row[FEW];

	for (int64_t j = 0; j < w; j++) {
		others = tc_build_part(b, run, 1, 0, j + !j);
		row[j] = spread(b, tc_build_part(b, run, 1, j, 1), others->type);
		row[j] = tc_build2(b, TC_MULTIPLY, tc_build_conjugate(b, others), row[j]);
		row[j] = amid_zeros(b, tc_build_sum(b, row[j], 1u << 2), 0, w - j - !j);
		row[j] = tc_build_reshape(b, row[j], 3, (int64_t[]){ batch, 1, w });
	}
	return tc_build_join(b, (unsigned)w, row, 1);
}

/* T: its inverse is 1 / taus on the diagonal and V^H V above it, which is g, turned. So with D =
 * diag(taus) and S what is above, T^T = (I + S D)^-T D, where taus may be zero. */
static struct tc_value *join_products(const struct tc_build *b, struct tc_value *g,
				      struct tc_value *taus)
{
	struct tc_value *t;

	t = tc_build_broadcast(b, taus, g->type, by_column);
	g = invert_below(b, tc_build2(b, TC_MULTIPLY, g, t));
	t = tc_build_broadcast(b, taus, g->type, (const int64_t[]){ 0, 2 });
	return tc_build_turn(b, tc_build2(b, TC_MULTIPLY, g, t));
}

static struct tc_value *join_reflections(const struct tc_build *b, struct tc_value *v,
					 struct tc_value *taus)
{
	return join_products(b, tc_build_turn(b, across(b, v, v)), taus);
}

/* (I - V T V^H) x, or with T^H */
static struct tc_value *apply(const struct tc_build *b, struct tc_value *v, struct tc_value *t,
			      bool is_adjoint, struct tc_value *x)
{
	struct tc_value *w = across(b, v, x);

	w = is_adjoint ? across(b, t, w) : tc_linalg_times(b, t, w);
	return tc_build2(b, TC_SUBTRACT, x, tc_linalg_times(b, v, w));
}

static struct block factor_few(const struct tc_build *b, struct tc_value *a, int64_t of,
			       bool with_t)
{
	int64_t dim[] = { a->type->dim[0], a->type->dim[2] };
	struct tc_loop loop = { .n = a->type->dim[2], .body = qr_column };
	struct tc_value *state[2] = { tc_build_turn(b, a) };
	struct block f;

	if (of <= MOST_WITHOUT_LOOP) {
		state[0] = reflect_without_loop(b, state[0], &state[1]);
	} else {
		state[1] = tc_build_number(b, tc_tensor(b->c, (enum elem)a->type->elem, 2, dim), 0);
		tc_build_loop(b, &loop, 2, state);
	}
	f.x = tc_build_turn(b, state[0]);
	f.taus = state[1];
	f.v = reflectors(b, f.x);
	f.t = with_t ? join_reflections(b, f.v, f.taus) : NULL;
	return f;
}

/* T of all from those of both halves: what is above the diagonal is -T1 V1^H V2 T2. */
static struct tc_value *join_halves(const struct tc_build *b, const struct block *left,
				    const struct block *right)
{
	int64_t m = left->v->type->dim[1], h = left->v->type->dim[2];
	int64_t w = right->v->type->dim[2];
	struct tc_value *v = tc_build_part(b, left->v, 1, h, m - h), *part[2], *t;

	t = tc_linalg_times(b, left->t, tc_linalg_times(b, across(b, v, right->v), right->t));
	part[0] = left->t;
	part[1] = tc_build1(b, TC_NEGATE, t);
	t = tc_build_join(b, 2, part, 2);
	part[0] = t;
	part[1] = tc_build_number(b, tc_tensor(b->c, (enum elem)t->type->elem, 3,
					       (int64_t[]){ t->type->dim[0], w, h }), 0);
	part[1] = tc_build_join(b, 2, (struct tc_value *[]){ part[1], right->t }, 2);
	return tc_build_join(b, 2, part, 1);
}

/* Of at least as many rows as columns; of: the columns of the whole matrix. */
static struct block factor(const struct tc_build *b, struct tc_value *a, int64_t of, bool with_t)
{
	int64_t m = a->type->dim[1], w = a->type->dim[2], h = (w / 2 + FEW - 1) / FEW * FEW;
	struct tc_value *part[2], *column[2], *x;
	struct block left, right, f = { NULL };

	if (w <= FEW || (of == w && is_small(a->type, w)))
		return factor_few(b, a, of, with_t);
	left = factor(b, tc_build_part(b, a, 2, 0, h), of, true);
	x = apply(b, left.v, left.t, true, tc_build_part(b, a, 2, h, w - h));
	right = factor(b, tc_build_part(b, x, 1, h, m - h), of, with_t);
	part[0] = tc_build_part(b, x, 1, 0, h);
	part[1] = right.x;
	column[0] = left.x;
	column[1] = tc_build_join(b, 2, part, 1);
	f.x = tc_build_join(b, 2, column, 2);
	part[0] = left.taus;
	part[1] = right.taus;
	f.taus = tc_build_join(b, 2, part, 1);
	if (!with_t)
		return f;
	f.v = reflectors(b, f.x);
	f.t = join_halves(b, &left, &right);
	return f;
}

/* ---- few numbers ---- */

/* Double numbers need a scale for each column. */
static bool is_in_cells(const struct tc_type *t)
{
	return t->dim[1] <= TC_MOST_CELLS && t->dim[2] <= TC_MOST_CELLS &&
	       t->dim[1] * t->dim[2] <= MOST_CELLS && tc_linalg_worth_cells(t) &&
	       wide_of(t) != (enum elem)t->elem;
}

/* y + conj(v) x, y may be NULL. */
static struct tc_value *add_across(const struct tc_build *b, struct tc_value *y,
				   struct tc_value *v, struct tc_value *x)
{
	x = tc_build2(b, TC_MULTIPLY, tc_build_conjugate(b, v), x);
	return y ? tc_build2(b, TC_ADD, y, x) : x;
}

/* Column j and its factor, as tc_linalg_reflection() has them. */
static struct tc_value *reflect_cells(const struct tc_build *b, struct tc_cells *x, int64_t j)
{
	const struct tc_type *t = x->at[j][j]->type;
	const enum elem elem = (enum elem)t->elem, wide = wide_of(t);
	struct tc_value *alpha = tc_build_convert(b, x->at[j][j], wide), *below[TC_MOST_CELLS];
	struct tc_value *rest = tc_build_number(b, tc_build_real(b, alpha)->type, 0), *factor;
	struct made_of m;

	for (int64_t i = j + 1; i < x->rows; i++) {
		below[i] = tc_build_convert(b, x->at[i][j], wide);
		rest = tc_build2(b, TC_ADD, rest, tc_linalg_square(b, below[i]));
	}
	m = find_beta(b, alpha, rest);
	factor = find_factor(b, &m, alpha->type);
	for (int64_t i = j + 1; i < x->rows; i++)
		x->at[i][j] = tc_build_convert(b, tc_build2(b, TC_MULTIPLY, below[i], factor),
					       elem);
	x->at[j][j] = tc_build_convert(b, tc_build_select(b, m.none, m.re, m.beta), elem);
	return tc_build_convert(b, find_tau(b, &m, alpha->type), elem);
}

static void reflect_all(const struct tc_build *b, struct tc_cells *x, struct tc_value **tau)
{
	const int64_t n = x->rows < x->columns ? x->rows : x->columns;
	struct tc_value *less;

	for (int64_t j = 0; j < n; j++) {
		tau[j] = reflect_cells(b, x, j);
		for (int64_t k = j + 1; k < x->columns; k++) {
			struct tc_value *w = x->at[j][k];

			for (int64_t i = j + 1; i < x->rows; i++)
				w = add_across(b, w, x->at[i][j], x->at[i][k]);
			w = tc_build2(b, TC_MULTIPLY, w, tc_build_conjugate(b, tau[j]));
			x->at[j][k] = tc_build2(b, TC_SUBTRACT, x->at[j][k], w);
			for (int64_t i = j + 1; i < x->rows; i++) {
				less = tc_build2(b, TC_MULTIPLY, w, x->at[i][j]);
				x->at[i][k] = tc_build2(b, TC_SUBTRACT, x->at[i][k], less);
			}
		}
	}
}

static void factor_cells(const struct tc_build *b, struct tc_value **a, struct tc_value **taus)
{
	const int64_t batch = (*a)->type->dim[0];
	struct tc_value *tau[TC_MOST_CELLS];
	struct tc_cells x;
	int64_t n;

	tc_linalg_to_cells(b, *a, &x);
	reflect_all(b, &x, tau);
	n = x.rows < x.columns ? x.rows : x.columns;
	for (int64_t j = 0; j < n; j++)
		tau[j] = tc_build_reshape(b, tau[j], 2, (int64_t[]){ batch, 1 });
	*a = tc_linalg_from_cells(b, &x);
	*taus = tc_build_join(b, (unsigned)n, tau, 1);
}

/* Reflection j of q, whose rows up to j have nothing but ones on the diagonal. */
static void unite_cells(const struct tc_build *b, const struct tc_cells *a, int64_t j,
			struct tc_value *tau, struct tc_cells *q)
{
	struct tc_value *one = tc_build_number(b, tau->type, 1), *minus, *w, *more;

	minus = tc_build1(b, TC_NEGATE, tau);
	for (int64_t k = j + 1; k < q->columns; k++) {
		w = NULL;
		for (int64_t i = j + 1; i < q->rows; i++)
			w = add_across(b, w, a->at[i][j], q->at[i][k]);
		if (!w)
			continue;
		w = tc_build2(b, TC_MULTIPLY, w, minus);
		q->at[j][k] = w;
		for (int64_t i = j + 1; i < q->rows; i++) {
			more = tc_build2(b, TC_MULTIPLY, w, a->at[i][j]);
			q->at[i][k] = tc_build2(b, TC_ADD, q->at[i][k], more);
		}
	}
	q->at[j][j] = tc_build2(b, TC_SUBTRACT, one, tau);
	for (int64_t i = j + 1; i < q->rows; i++)
		q->at[i][j] = tc_build2(b, TC_MULTIPLY, a->at[i][j], minus);
}

/* The first columns of the product of n reflections in x. */
static struct tc_cells unite_all(const struct tc_build *b, const struct tc_cells *x,
				 struct tc_value *const *tau, int64_t n, int64_t columns)
{
	struct tc_cells q = { .rows = x->rows, .columns = columns };

	for (int64_t i = 0; i < q.rows; i++)
		for (int64_t j = 0; j < columns; j++)
			q.at[i][j] = tc_build_number(b, x->at[0][0]->type, i == j);
	for (int64_t j = n - 1; j >= 0; j--)
		unite_cells(b, x, j, tau[j], &q);
	return q;
}

struct tc_cells tc_linalg_unitary_cells(const struct tc_build *b, struct tc_cells *x,
					int64_t columns)
{
	struct tc_value *tau[TC_MOST_CELLS];

	reflect_all(b, x, tau);
	return unite_all(b, x, tau, x->columns, columns);
}

/* The first columns of the product of the reflections in `a`, in double numbers as apply_all(). */
static struct tc_value *unitary_cells(const struct tc_build *b, struct tc_value *a,
				      struct tc_value *taus)
{
	const enum elem elem = (enum elem)a->type->elem, wide = wide_of(a->type);
	const int64_t one[] = { a->type->dim[0], 1, 1 };
	const int64_t n = taus->type->dim[1];
	struct tc_value *tau[TC_MOST_CELLS];
	struct tc_cells x, q;

	tc_linalg_to_cells(b, a, &x);
	for (int64_t i = 0; i < x.rows; i++)
		for (int64_t j = 0; j < x.columns; j++)
			x.at[i][j] = tc_build_convert(b, x.at[i][j], wide);
	for (int64_t j = 0; j < n; j++) {
		tau[j] = tc_build_reshape(b, tc_build_part(b, taus, 1, j, 1), 3, one);
		tau[j] = tc_build_convert(b, tau[j], wide);
	}
	q = unite_all(b, &x, tau, n, x.columns);
	for (int64_t i = 0; i < x.rows; i++)
		for (int64_t j = 0; j < x.columns; j++)
			q.at[i][j] = tc_build_convert(b, q.at[i][j], elem);
	return tc_linalg_from_cells(b, &q);
}

/* ---- the calls ---- */

void tc_linalg_qr(const struct tc_build *b, struct tc_value **a, struct tc_value **taus)
{
	const struct tc_type *t = (*a)->type;
	int64_t m = t->dim[1], n = t->dim[2], dim[2] = { t->dim[0], m < n ? m : n };
	struct tc_value *part[2];
	struct block f;

	if (!t->count) {
		*taus = tc_build_number(b, tc_tensor(b->c, (enum elem)t->elem, 2, dim), 0);
		return;
	}
	if (is_in_cells(t)) {
		factor_cells(b, a, taus);
		return;
	}
	if (m >= n) {
		f = factor(b, *a, n, false);
	} else {
		f = factor(b, tc_build_part(b, *a, 2, 0, m), m, true);
		part[0] = f.x;
		part[1] = apply(b, f.v, f.t, true, tc_build_part(b, *a, 2, m, n - m));
		f.x = tc_build_join(b, 2, part, 2);
	}
	*a = f.x;
	*taus = f.taus;
}

/* x and rows of zeros behind it, so many together. */
static struct tc_value *with_rows(const struct tc_build *b, struct tc_value *x, int64_t rows)
{
	const int64_t none[] = { 0, 0, 0 }, more[] = { 0, rows - x->type->dim[1], 0 };
	const struct tc_type *scalar = tc_tensor(b->c, (enum elem)x->type->elem, 0, NULL);

	return more[1] ? tc_build_pad(b, x, tc_build_number(b, scalar, 0), none, more, none) : x;
}

/* x with ones on the diagonal before it, `more` rows and columns of zeros else. */
static struct tc_value *precede(const struct tc_build *b, struct tc_value *x, int64_t more)
{
	struct tc_value *zero, *part[2];
	const int64_t low[] = { 0, more, more }, none[] = { 0, 0, 0 };

	zero = tc_build_number(b, tc_tensor(b->c, (enum elem)x->type->elem, 0, NULL), 0);
	part[0] = tc_build_pad(b, x, zero, low, none, none);
	part[1] = tc_linalg_identity(b, part[0]->type);
	x = tc_build_where(b, part[0]->type, TC_CMP_EQ);
	x = tc_build2(b, TC_AND, x, at(b, part[0]->type, 1, TC_CMP_LT,
				       tc_build_number(b, tc_tensor(b->c, ELEM_S32, 0, NULL),
						       (double)more)));
	return tc_build_select(b, x, part[1], part[0]);
}

/*
 * (I - V T V^H) x, where x has rows of zeros behind those that are given, or is the first n columns
 * of an identity (NULL): of V^H but the first columns count.
 */
static struct tc_value *begin(const struct tc_build *b, struct tc_value *v, struct tc_value *t,
			      struct tc_value *x, int64_t n)
{
	struct tc_value *w = tc_build_part(b, v, 1, 0, x ? x->type->dim[1] : n);

	w = x ? tc_linalg_times(b, t, across(b, w, x)) :
		tc_build_dot(b, t, tc_build_conjugate(b, w), 1, 2, 2);
	w = tc_linalg_times(b, v, w);
	x = x ? with_rows(b, x, v->type->dim[1]) : tc_linalg_identity(b, w->type);
	return tc_build2(b, TC_SUBTRACT, x, w);
}

/*
 * The same of few reflections of many rows, `a` as below. All is turned, so that what is long is a
 * run of memory, which is read a few times.
 */
static struct tc_value *begin_long(const struct tc_build *b, struct tc_value *a,
				   struct tc_value *taus, struct tc_value *x, int64_t n)
{
	struct tc_value *run = tc_build_turn(b, tc_build_part(b, a, 2, 0, taus->type->dim[1]));
	struct tc_value *t, *w;

	run = tc_build_select(b, tc_build_where(b, run->type, TC_CMP_LT), run,
			      tc_build_number(b, run->type, 0));
	run = tc_build_select(b, tc_build_where(b, run->type, TC_CMP_EQ),
			      tc_build_number(b, run->type, 1), run);
	t = join_products(b, products_of(b, run), taus);
	w = tc_build_conjugate(b, tc_build_part(b, run, 2, 0, x ? x->type->dim[1] : n));
	w = x ? tc_build_dot(b, x, w, 1, 1, 2) : tc_build_turn(b, w);
	w = tc_linalg_times(b, tc_build_dot(b, w, t, 1, 2, 2), run);
	x = x ? tc_build_turn(b, with_rows(b, x, run->type->dim[2])) :
		tc_linalg_identity(b, w->type);
	return tc_build_turn(b, tc_build2(b, TC_SUBTRACT, x, w));
}

/* The same of a small matrix, a reflection at a time; v [batch, m, w]. */
static struct tc_value *begin_small(const struct tc_build *b, struct tc_value *v,
				    struct tc_value *taus, int64_t n)
{
	const int64_t w = v->type->dim[2], dim[] = { v->type->dim[0], n, v->type->dim[1] };
	const struct tc_type *t = tc_tensor(b->c, (enum elem)v->type->elem, 3, dim);
	struct tc_value *q = tc_linalg_identity(b, t);

	v = tc_build_turn(b, v);
	for (int64_t j = w - 1; j >= 0; j--)
		q = tc_linalg_reflect(b, q, tc_build_part(b, v, 1, j, 1),
				      tc_build_part(b, taus, 1, j, 1));
	return tc_build_turn(b, q);
}

/*
 * Blocks of reflections apply from the last one to the first. The first row that one changes is
 * that of its first reflection: of an identity (x is NULL) what was not reached yet does not
 * have to be there. There one block of single numbers is worth double ones: V and taus may be
 * anybody's, and what is no reflection cancels digits.
 */
static struct tc_value *apply_all(const struct tc_build *b, struct tc_value *a,
				  struct tc_value *taus, struct tc_value *x)
{
	int64_t m = a->type->dim[1], n = a->type->dim[2], k = taus->type->dim[1], from, w;
	const enum elem elem = (enum elem)a->type->elem;
	bool is_identity = !x;
	const enum elem work = k <= (is_identity ? BLOCK : FEW) ? wide_of(a->type) : elem;
	struct tc_value *v, *t, *part[2];

	a = tc_build_convert(b, a, work);
	taus = tc_build_convert(b, taus, work);
	x = is_identity ? NULL : tc_build_convert(b, x, work);
	if (k <= FEW && m >= TALL * k)
		return tc_build_convert(b, begin_long(b, a, taus, x, n), elem);
	for (from = (k - 1) / BLOCK * BLOCK; from >= 0; from -= BLOCK) {
		w = k - from < BLOCK ? k - from : BLOCK;
		v = tc_build_part(b, tc_build_part(b, a, 2, from, w), 1, from, m - from);
		v = reflectors(b, v);
		if (is_identity && is_small(a->type, n)) {
			x = begin_small(b, v, taus, n);
			break;
		}
		t = join_reflections(b, v, tc_build_part(b, taus, 1, from, w));
		if (is_identity) {
			x = x ? apply(b, v, t, false, precede(b, x, w)) :
				begin(b, v, t, NULL, n - from);
			continue;
		}
		if (!from && x->type->dim[1] < m) {
			x = begin(b, v, t, x, n);
			continue;
		}
		x = with_rows(b, x, m);
		part[0] = tc_build_part(b, x, 1, 0, from);
		part[1] = apply(b, v, t, false, tc_build_part(b, x, 1, from, m - from));
		x = from ? tc_build_join(b, 2, part, 1) : part[1];
	}
	return tc_build_convert(b, x, elem);
}

struct tc_value *tc_linalg_reflections(const struct tc_build *b, struct tc_value *a,
				       struct tc_value *taus, struct tc_value *x)
{
	return x->type->count && taus->type->dim[1] ? apply_all(b, a, taus, x) : x;
}

/* The first columns of the product of the reflections in `a`, as many as `a` has. */
static struct tc_value *unitary(const struct tc_build *b, struct tc_value *a,
				struct tc_value *taus)
{
	if (!a->type->count || !taus->type->dim[1])
		return tc_linalg_identity(b, a->type);
	if (is_in_cells(a->type))
		return unitary_cells(b, a, taus);
	return apply_all(b, a, taus, NULL);
}

static bool is_matrix(const struct tc_type *t)
{
	return !t->is_tuple && t->rank >= 2 && tc_linalg_takes((enum elem)t->elem);
}

/* Whether taus is [.., n] for a matrix type [.., rows, cols]. */
static bool fits_taus(const struct tc_type *a, const struct tc_type *taus, int64_t n)
{
	return !taus->is_tuple && taus->elem == a->elem && taus->rank == a->rank - 1 &&
	       !memcmp(taus->dim, a->dim, (a->rank - 2) * sizeof(*a->dim)) &&
	       taus->dim[taus->rank - 1] == n;
}

static void finish(struct tc_ctx *c, struct tc_op *op, struct tc_value *const *results)
{
	struct tc_build b = tc_build_at(c, op);

	for (unsigned i = 0; i < op->n_results; i++) {
		const struct tc_type *t = op->results[i].type;

		tc_replace_uses(tc_out(op, i), tc_build_reshape(&b, results[i], t->rank,
								t->dim));
	}
	tc_erase(op);
}

void tc_decompose_qr(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	const struct tc_type *t = op->n_operands == 1 ? tc_in(op, 0)->type : NULL;
	struct tc_value *state[2];
	int64_t n;

	tc_linalg_check(c, op, "Qr", 1);
	if (!is_matrix(t) || op->n_results != 2 || tc_out(op, 0)->type != t)
		tc_fail(c, ERR_INVALID_ARGUMENT, op, "Qr gives two results, the first of its "
			"operand's type");
	n = t->dim[t->rank - 1] < t->dim[t->rank - 2] ? t->dim[t->rank - 1] :
							t->dim[t->rank - 2];
	if (!fits_taus(t, tc_out(op, 1)->type, n))
		tc_fail(c, ERR_INVALID_ARGUMENT, op, "Qr gives %lld factors of reflections, of "
			"the matrix's element type", (long long)n);
	state[0] = tc_build_matrices(&b, tc_in(op, 0));
	tc_linalg_qr(&b, &state[0], &state[1]);
	finish(c, op, state);
}

void tc_decompose_householder(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	const struct tc_type *t = op->n_operands == 2 ? tc_in(op, 0)->type : NULL, *taus;
	struct tc_value *a, *q;
	int64_t n;

	tc_linalg_check(c, op, "ProductOfElementaryHouseholderReflectors", 2);
	taus = tc_in(op, 1)->type;
	if (!is_matrix(t) || op->n_results != 1 || tc_out(op, 0)->type != t || taus->is_tuple ||
	    !taus->rank)
		tc_fail(c, ERR_INVALID_ARGUMENT, op, "a matrix and the factors of its "
			"reflections give a matrix of the same type");
	n = taus->dim[taus->rank - 1];
	if (!fits_taus(t, taus, n) || n > t->dim[t->rank - 1] || n > t->dim[t->rank - 2])
		tc_fail(c, ERR_INVALID_ARGUMENT, op, "%lld reflections do not fit the matrix",
			(long long)n);
	a = tc_build_matrices(&b, tc_in(op, 0));
	q = tc_build_reshape(&b, tc_in(op, 1), 2, (int64_t[]){ a->type->dim[0], n });
	q = unitary(&b, a, q);
	finish(c, op, &q);
}
