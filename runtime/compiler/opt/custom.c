/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Custom calls by which JAX names algorithms on platforms other than its own: Householder
 * QR as LAPACK's geqrf and orgqr leave it, exact top-k for ApproxTopK. Eigh is in eigh.c.
 * Any other target stays and is refused by name when code is emitted.
 */
#include <string.h>

#include "runtime/compiler/opt/build.h"

static bool is_matrix(const struct tc_type *t)
{
	unsigned cls = elem_class(t->elem);

	return !t->is_tuple && t->rank >= 2 && (t->elem == ELEM_F32 || t->elem == ELEM_F64 ||
						cls == ELEM_CLASS_COMPLEX);
}

/* Whether taus is [.., n] for a matrix type [.., rows, cols]. */
static bool fits_taus(const struct tc_type *a, const struct tc_type *taus, int64_t n)
{
	return !taus->is_tuple && taus->elem == a->elem && taus->rank == a->rank - 1 &&
	       !memcmp(taus->dim, a->dim, (a->rank - 2) * sizeof(*a->dim)) &&
	       taus->dim[taus->rank - 1] == n;
}

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

struct house {
	struct tc_value *tau, *scale, *beta;	/* [batch, 1, 1] */
};

/*
 * For a column with alpha at the top and x below: beta = -sign(Re alpha) |(alpha, x)|,
 * tau = (beta - alpha) / beta, v = x / (alpha - beta). All zero below and a real
 * alpha: no reflection.
 */
static struct house make_reflection(const struct tc_build *b, struct tc_value *alpha,
				    struct tc_value *x)
{
	struct tc_value *re = tc_build_real(b, alpha), *rest, *norm, *none, *zero, *beta;
	struct house h;

	rest = tc_build_real(b, tc_build_dot(b, tc_build_conjugate(b, x), x, 1, 1, 1));
	zero = tc_build_number(b, re->type, 0);
	norm = tc_build_real(b, tc_build2(b, TC_MULTIPLY, alpha,
					  tc_build_conjugate(b, alpha)));
	none = tc_build2(b, TC_AND, tc_build_compare(b, TC_CMP_EQ, rest, zero),
			 tc_build_compare(b, TC_CMP_EQ, norm,
					  tc_build2(b, TC_MULTIPLY, re, re)));
	norm = tc_build1(b, TC_SQRT, tc_build2(b, TC_ADD, norm, rest));
	beta = tc_build_select(b, tc_build_compare(b, TC_CMP_LT, re, zero), norm,
			       tc_build1(b, TC_NEGATE, norm));
	beta = tc_build_convert(b, beta, (enum elem)alpha->type->elem);
	zero = tc_build_number(b, alpha->type, 0);
	h.tau = tc_build2(b, TC_DIVIDE, tc_build2(b, TC_SUBTRACT, beta, alpha), beta);
	h.tau = tc_build_select(b, none, zero, h.tau);
	h.scale = tc_build2(b, TC_DIVIDE, tc_build_number(b, alpha->type, 1),
			    tc_build2(b, TC_SUBTRACT, alpha, beta));
	h.scale = tc_build_select(b, none, zero, h.scale);
	h.beta = tc_build_select(b, none, alpha, beta);
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
	v = tc_build2(b, TC_MULTIPLY, x, tc_build_broadcast(b, h.scale, t, as_is));
	v = reflector(b, v, j);
	a = tc_build_select(b, rows_to(b, a->type, 2, TC_CMP_GT, j),
			    reflect(b, a, v, tc_build_conjugate(b, h.tau)), a);
	column = tc_build_select(b, below, v, column);
	column = tc_build_select(b, rows_to(b, t, 1, TC_CMP_EQ, j),
				 tc_build_broadcast(b, h.beta, t, as_is), column);
	state[0] = tc_build_put(b, a, 2, j, column);
	state[1] = tc_build_put(b, state[1], 1, j, tc_build_reshape(b, h.tau, 2, batch));
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

static void decompose_qr(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	const struct tc_type *t = op->n_operands == 1 ? tc_in(op, 0)->type : NULL;
	struct tc_value *state[2];
	struct tc_loop loop = { .body = qr_column };
	int64_t n, dim[2];

	if (!t || op->n_results != 2 || !is_matrix(t) || tc_out(op, 0)->type != t)
		tc_fail(c, ERR_INVALID_ARGUMENT, op, "Qr takes a matrix and gives it and the "
			"factors of its reflections");
	n = t->dim[t->rank - 1] < t->dim[t->rank - 2] ? t->dim[t->rank - 1] :
							t->dim[t->rank - 2];
	if (!fits_taus(t, tc_out(op, 1)->type, n))
		tc_fail(c, ERR_INVALID_ARGUMENT, op, "Qr gives %lld factors", (long long)n);
	state[0] = tc_build_matrices(&b, tc_in(op, 0));
	dim[0] = state[0]->type->dim[0];
	dim[1] = n;
	state[1] = tc_build_number(&b, tc_tensor(c, (enum elem)t->elem, 2, dim), 0);
	loop.n = n;
	if (t->count)
		tc_build_loop(&b, &loop, 2, state);
	finish(c, op, state);
}

struct reflections {
	struct tc_value *a, *taus;
	int64_t n;
};

/* Reflections apply from the last one to the first. */
static void apply_reflection(const struct tc_build *b, struct tc_value *i,
			     struct tc_value **state, void *arg)
{
	const struct reflections *r = arg;
	struct tc_value *j, *v, *tau;
	int64_t one[] = { r->a->type->dim[0], 1, 1 };

	j = tc_build2(b, TC_SUBTRACT, tc_build_number(b, i->type, (double)(r->n - 1)), i);
	v = reflector(b, tc_build_take(b, r->a, 2, j, 1), j);
	tau = tc_build_reshape(b, tc_build_take(b, r->taus, 1, j, 1), 3, one);
	state[0] = reflect(b, state[0], v, tau);
}

static void decompose_householder(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	const struct tc_type *t = op->n_operands == 2 ? tc_in(op, 0)->type : NULL;
	struct reflections r;
	struct tc_value *q;
	struct tc_loop loop = { .body = apply_reflection, .arg = &r };

	if (!t || op->n_results != 1 || !is_matrix(t) || tc_out(op, 0)->type != t ||
	    tc_in(op, 1)->type->is_tuple || !tc_in(op, 1)->type->rank)
		tc_fail(c, ERR_INVALID_ARGUMENT, op, "a matrix and the factors of its "
			"reflections give a matrix of the same type");
	r.n = tc_in(op, 1)->type->dim[tc_in(op, 1)->type->rank - 1];
	if (!fits_taus(t, tc_in(op, 1)->type, r.n) || r.n > t->dim[t->rank - 1] ||
	    r.n > t->dim[t->rank - 2])
		tc_fail(c, ERR_INVALID_ARGUMENT, op, "%lld reflections do not fit the matrix",
			(long long)r.n);
	r.a = tc_build_matrices(&b, tc_in(op, 0));
	r.taus = tc_build_reshape(&b, tc_in(op, 1), 2,
				  (int64_t[]){ r.a->type->dim[0], r.n });
	q = tc_build_where(&b, r.a->type, TC_CMP_EQ);
	q = tc_build_convert(&b, q, (enum elem)t->elem);
	loop.n = r.n;
	if (t->count && r.n)
		tc_build_loop(&b, &loop, 1, &q);
	finish(c, op, &q);
}

void tc_decompose_custom_call(struct tc_ctx *c, struct tc_op *op)
{
	const char *target = tc_attr_str(op, "call_target_name");

	if (!strcmp(target, "Qr"))
		decompose_qr(c, op);
	else if (!strcmp(target, "ProductOfElementaryHouseholderReflectors"))
		decompose_householder(c, op);
	else if (!strcmp(target, "Eigh"))
		tc_decompose_eigh(c, op);
}

/*
 * ApproxTopK: values and their numbers sorted by the comparator that the call names, and
 * the first k of them: exact is approximate enough.
 */
void tc_decompose_top_k(struct tc_ctx *c, struct tc_op *op)
{
	const char *name = tc_attr_str(op, "called_computations");
	const struct tc_op *f = name ? tc_find_func(c, name) : NULL;
	const struct tc_attr *config = tc_attr(op, "attributes");
	const struct tc_type *t = op->n_operands == 4 ? tc_in(op, 0)->type : NULL, *types[2];
	struct tc_value *in[2], *yield, *args[4];
	struct tc_build b = tc_build_at(c, op), inner = { .c = c, .where = op->where };
	int64_t dim = -1, k = -1;
	struct tc_op *sort;

	for (unsigned i = 0; config && i < config->n; i++) {
		if (!strcmp(config->attrs[i].key, "reduction_dim"))
			dim = config->attrs[i].i;
		if (!strcmp(config->attrs[i].key, "top_k"))
			k = config->attrs[i].i;
	}
	if (!t || op->n_results != 2 || !f || dim < 0 || dim >= t->rank || k < 0 ||
	    k > t->dim[dim] || tc_in(op, 1)->type->is_tuple ||
	    tc_in(op, 1)->type != tc_with_elem(c, t, (enum elem)tc_in(op, 1)->type->elem) ||
	    f->regions[0].block->n_args != 4 || f->regions[0].block->last->n_operands != 1)
		tc_fail(c, ERR_INVALID_ARGUMENT, op, "ApproxTopK takes values, their numbers and "
			"a comparator; top_k is %lld, reduction_dim %lld", (long long)k,
			(long long)dim);
	for (unsigned i = 0; i < 2; i++) {
		in[i] = tc_in(op, i);
		types[i] = in[i]->type;
	}
	sort = tc_new(c, TC_SORT, 2, in, 2, types, 1);
	tc_set_int(c, sort, "dimension", TC_ATTR_INT, dim);
	tc_set_int(c, sort, "is_stable", TC_ATTR_BOOL, 1);
	inner.block = tc_new_block(c, &sort->regions[0]);
	for (unsigned i = 0; i < 4; i++)
		args[i] = tc_new_arg(c, inner.block,
				     tc_tensor(c, (enum elem)types[i / 2]->elem, 0, NULL));
	yield = tc_build_region(&inner, &f->regions[0], args);
	if (yield->type != tc_tensor(c, ELEM_PRED, 0, NULL))
		tc_fail(c, ERR_INVALID_ARGUMENT, op, "its comparator yields no truth value");
	tc_build_return(&inner, 1, &yield);
	tc_build_place(&b, sort);
	for (unsigned i = 0; i < 2; i++) {
		struct tc_value *head = tc_build_part(&b, tc_out(sort, i), (unsigned)dim, 0, k);

		if (head->type != tc_out(op, i)->type)
			tc_fail(c, ERR_INVALID_ARGUMENT, op, "result %u has another type", i);
		tc_replace_uses(tc_out(op, i), head);
	}
	tc_erase(op);
}
