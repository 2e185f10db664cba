/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Householder QR as LAPACK's geqrf and orgqr leave it: a reflection a column. Each column
 * is scaled by its own largest element while its reflection is made, so that columns of
 * any size in a type's range have one.
 */
#include <string.h>

#include "runtime/compiler/lower/linalg.h"

static const int64_t as_is[] = { 0, 1, 2 };

/* Row numbers of t compared with the scalar j. */
static struct tc_value *rows_to(const struct tc_build *b, const struct tc_type *t,
				unsigned dim, int direction, struct tc_value *j)
{
	const struct tc_type *s32 = tc_with_elem(b->c, t, ELEM_S32);

	return tc_build_compare(b, direction, tc_build_iota(b, s32, dim),
				tc_build_broadcast(b, j, s32, NULL));
}

/* The reflector in column j: zeros above row j, 1 there, the column below. */
static struct tc_value *reflector(const struct tc_build *b, struct tc_value *column,
				  struct tc_value *j)
{
	struct tc_value *one = tc_build_number(b, column->type, 1);
	struct tc_value *zero = tc_build_number(b, column->type, 0);

	column = tc_build_select(b, rows_to(b, column->type, 1, TC_CMP_GT, j), column, zero);
	return tc_build_select(b, rows_to(b, column->type, 1, TC_CMP_EQ, j), one, column);
}

/* x - factor v (v^H x), for v [batch, m, 1] and factor [batch, 1, 1] */
static struct tc_value *reflect(const struct tc_build *b, struct tc_value *x,
				struct tc_value *v, struct tc_value *factor)
{
	struct tc_value *w = tc_build_dot(b, tc_build_conjugate(b, v), x, 1, 1, 1);

	w = tc_build2(b, TC_MULTIPLY, w, tc_build_broadcast(b, factor, w->type, as_is));
	return tc_build2(b, TC_SUBTRACT, x, tc_build_dot(b, v, w, 1, 2, 1));
}

/* A number of `type` from its real parts; im is NULL for a real one. */
static struct tc_value *compose(const struct tc_build *b, const struct tc_type *type,
				struct tc_value *re, struct tc_value *im)
{
	struct tc_value *part[] = { re, im };

	return im ? tc_build(b, TC_COMPLEX, type, 2, part) : re;
}

struct house {
	struct tc_value *tau, *beta;	/* [batch, 1, 1]; beta is what becomes of alpha */
	struct tc_value *v;		/* below alpha; zeros elsewhere */
};

/*
 * For a column with alpha at the top and x below: beta = -sign(Re alpha) |(alpha, x)|,
 * tau = (beta - alpha) / beta, v = x / (alpha - beta). All zero below and a real
 * alpha: no reflection. |alpha - beta| is between the scaled column's norm and twice that:
 * its square is in range.
 */
static struct house make_reflection(const struct tc_build *b, struct tc_value *alpha,
				    struct tc_value *x)
{
	const struct tc_type *t = alpha->type;
	struct tc_value *both[2] = { alpha, x }, *p, *re, *im = NULL, *rest, *none, *zero, *beta;
	struct tc_value *bottom, *ratio[2];
	struct house h;

	p = tc_linalg_power(b, tc_build_join(b, 2, both, 1), 6);
	alpha = tc_linalg_by(b, TC_DIVIDE, alpha, p);
	x = tc_linalg_by(b, TC_DIVIDE, x, p);
	re = tc_build_real(b, alpha);
	zero = tc_build_number(b, re->type, 0);
	rest = tc_build_sum(b, tc_linalg_square(b, x), 6);
	rest = tc_build_reshape(b, rest, 3, re->type->dim);
	none = tc_build_compare(b, TC_CMP_EQ, rest, zero);
	if (re->type != t) {
		im = tc_build(b, TC_IMAG, re->type, 1, &alpha);
		none = tc_build2(b, TC_AND, none, tc_build_compare(b, TC_CMP_EQ, im, zero));
	}
	beta = tc_build2(b, TC_ADD, tc_linalg_square(b, alpha), rest);
	beta = tc_build1(b, TC_SQRT, beta);
	beta = tc_build_select(b, tc_build_compare(b, TC_CMP_LT, re, zero), beta,
			       tc_build1(b, TC_NEGATE, beta));
	ratio[0] = tc_build2(b, TC_DIVIDE, tc_build2(b, TC_SUBTRACT, beta, re), beta);
	ratio[1] = im ? tc_build1(b, TC_NEGATE, tc_build2(b, TC_DIVIDE, im, beta)) : NULL;
	h.tau = tc_build_select(b, none, tc_build_number(b, t, 0),
				compose(b, t, ratio[0], ratio[1]));
	re = tc_build2(b, TC_SUBTRACT, re, beta);
	bottom = tc_build2(b, TC_MULTIPLY, re, re);
	if (im) {
		bottom = tc_build2(b, TC_ADD, bottom, tc_build2(b, TC_MULTIPLY, im, im));
		im = tc_build1(b, TC_NEGATE, tc_build2(b, TC_DIVIDE, im, bottom));
	}
	re = tc_build2(b, TC_DIVIDE, re, bottom);
	h.v = tc_build_select(b, none, tc_build_number(b, t, 0), compose(b, t, re, im));
	h.v = tc_build2(b, TC_MULTIPLY, x, tc_build_broadcast(b, h.v, x->type, as_is));
	beta = tc_build_select(b, none, tc_build_real(b, alpha), beta);
	h.beta = tc_build_convert(b, tc_build2(b, TC_MULTIPLY, beta, p), (enum elem)t->elem);
	return h;
}

/* Column j of the factorisation; state: the matrix, taus [batch, k]. */
static void qr_column(const struct tc_build *b, struct tc_value *j, struct tc_value **state,
		      void *arg)
{
	struct tc_value *a = state[0], *column = tc_build_take(b, a, 2, j, 1), *below, *v, *x;
	const struct tc_type *t = column->type;
	int64_t batch[] = { t->dim[0], 1 };
	struct house h;

	(void)arg;
	below = rows_to(b, t, 1, TC_CMP_GT, j);
	x = tc_build_select(b, below, column, tc_build_number(b, t, 0));
	h = make_reflection(b, tc_build_take(b, column, 1, j, 1), x);
	v = reflector(b, h.v, j);
	a = tc_build_select(b, rows_to(b, a->type, 2, TC_CMP_GT, j),
			    reflect(b, a, v, tc_build_conjugate(b, h.tau)), a);
	column = tc_build_select(b, below, v, column);
	column = tc_build_select(b, rows_to(b, t, 1, TC_CMP_EQ, j),
				 tc_build_broadcast(b, h.beta, t, as_is), column);
	state[0] = tc_build_put(b, a, 2, j, column);
	state[1] = tc_build_put(b, state[1], 1, j, tc_build_reshape(b, h.tau, 2, batch));
}

void tc_linalg_qr(const struct tc_build *b, struct tc_value **a, struct tc_value **taus)
{
	const struct tc_type *t = (*a)->type;
	int64_t dim[2] = { t->dim[0], t->dim[1] < t->dim[2] ? t->dim[1] : t->dim[2] };
	struct tc_loop loop = { .n = dim[1], .body = qr_column };
	struct tc_value *state[2] = { *a };

	state[1] = tc_build_number(b, tc_tensor(b->c, (enum elem)t->elem, 2, dim), 0);
	if (t->count)
		tc_build_loop(b, &loop, 2, state);
	*a = state[0];
	*taus = state[1];
}

struct reflections {
	struct tc_value *a, *taus;
};

/* Reflections apply from the last one to the first. */
static void apply_reflection(const struct tc_build *b, struct tc_value *i,
			     struct tc_value **state, void *arg)
{
	const struct reflections *r = arg;
	struct tc_value *j, *v, *tau;
	int64_t one[] = { r->a->type->dim[0], 1, 1 };

	j = tc_build_number(b, i->type, (double)(r->taus->type->dim[1] - 1));
	j = tc_build2(b, TC_SUBTRACT, j, i);
	v = reflector(b, tc_build_take(b, r->a, 2, j, 1), j);
	tau = tc_build_reshape(b, tc_build_take(b, r->taus, 1, j, 1), 3, one);
	state[0] = reflect(b, state[0], v, tau);
}

struct tc_value *tc_linalg_reflections(const struct tc_build *b, struct tc_value *a,
				       struct tc_value *taus, struct tc_value *x)
{
	struct reflections r = { .a = a, .taus = taus };
	struct tc_loop loop = { .n = taus->type->dim[1], .body = apply_reflection, .arg = &r };

	if (x->type->count && loop.n)
		tc_build_loop(b, &loop, 1, &x);
	return x;
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
	q = tc_linalg_reflections(&b, a, q, tc_linalg_identity(&b, a->type));
	finish(c, op, &q);
}
