/* SPDX-License-Identifier: Apache-2.0 */
/* Eigenvectors of Hermitian matrices: Jacobi's rotations (jacobi.c) until what is off the
 * diagonal is rounding. */
#include <stdlib.h>
#include <string.h>

#include "runtime/compiler/lower/linalg.h"

/* A Hermitian matrix from one of its triangles. */
static struct tc_value *symmetric(const struct tc_build *b, struct tc_value *a, bool lower)
{
	struct tc_value *keep = tc_build_where(b, a->type, lower ? TC_CMP_GT : TC_CMP_LT);
	struct tc_value *on = tc_build_where(b, a->type, TC_CMP_EQ), *real;

	real = tc_build_convert(b, tc_build_real(b, a), (enum elem)a->type->elem);
	a = tc_build_select(b, keep, a, tc_linalg_adjoint(b, a));
	return tc_build_select(b, on, real, a);
}

/* V^H A V, and the part of its norm's square that is off the diagonal. */
static struct tc_value *renew(const struct tc_build *b, struct tc_value *vectors,
			      struct tc_value **level, const void *arg)
{
	struct tc_value *const *a = arg, *s, *all, *off;

	s = tc_linalg_times(b, vectors, *a);
	s = tc_linalg_times_adjoint(b, s, vectors);
	all = tc_linalg_square(b, s);
	off = tc_build_select(b, tc_build_where(b, all->type, TC_CMP_EQ),
			      tc_build_number(b, all->type, 0), all);
	*level = tc_build2(b, TC_DIVIDE, tc_build_sum(b, off, 6), tc_build_sum(b, all, 6));
	return s;
}

/* x y, [batch, n, n] each, as the sum of `parts` products, which loses fewer digits than one
 * sum of n terms where these are alike. */
static struct tc_value *times_in_parts(const struct tc_build *b, struct tc_value *x,
				       struct tc_value *y, int64_t parts)
{
	int64_t batch = x->type->dim[0], n = x->type->dim[1];
	int64_t rows[] = { batch, n, parts, n / parts }, columns[] = { batch, parts, n / parts, n };
	const int64_t forward[] = { 0, 2, 1, 3 };

	x = tc_build_transpose(b, tc_build_reshape(b, x, 4, rows), forward);
	y = tc_build_reshape(b, y, 4, columns);
	return tc_build_sum(b, tc_build_dot(b, x, y, 2, 3, 2), 1u << 1);
}

/*
 * The eigenvalues [batch, n] that belong to the vectors: what is on the diagonal of V^H A V,
 * and what their residuals A v - value v have along them, so that the sums that lose
 * digits are small ones.
 */
static struct tc_value *correct(const struct tc_build *b, struct tc_value *a,
				struct tc_value *rows, struct tc_value *state,
				int64_t parts)
{
	struct tc_value *values = tc_linalg_diagonal(b, state), *rest, *all;

	values = tc_build_convert(b, tc_build_real(b, values), (enum elem)a->type->elem);
	all = tc_build_broadcast(b, values, rows->type, (const int64_t[]){ 0, 1 });
	rest = tc_build2(b, TC_SUBTRACT, times_in_parts(b, rows, a, parts),
			 tc_build2(b, TC_MULTIPLY, all, rows));
	rest = tc_build2(b, TC_MULTIPLY, rest, tc_build_conjugate(b, rows));
	values = tc_build2(b, TC_ADD, values, tc_build_sum(b, rest, 1u << 2));
	return tc_build_real(b, values);
}

/* backend_config: "lower,sort,sweeps,tolerance". The last two stay JAX's. */
static void read_config(const struct tc_op *op, bool *lower, bool *sort)
{
	const char *config = tc_attr_str(op, "backend_config"), *comma;

	*lower = *sort = true;
	if (!config || !*config)
		return;
	comma = strchr(config, ',');
	*lower = atoi(config) != 0;
	*sort = !comma || atoi(comma + 1) != 0;
}

static void check(struct tc_ctx *c, const struct tc_op *op)
{
	const struct tc_type *t, *w;
	unsigned r;

	tc_linalg_check(c, op, "Eigh", 1);
	t = tc_in(op, 0)->type;
	r = t->rank;
	if (t->dim[r - 1] != t->dim[r - 2])
		tc_fail(c, ERR_INVALID_ARGUMENT, op, "Eigh takes square matrices, not %lld x "
			"%lld", (long long)t->dim[r - 2], (long long)t->dim[r - 1]);
	w = op->n_results == 2 ? tc_out(op, 1)->type : NULL;
	if (!w || tc_out(op, 0)->type != t || w->is_tuple || w->rank != r - 1 ||
	    w->elem != tc_real_of((enum elem)t->elem) ||
	    memcmp(w->dim, t->dim, (r - 1) * sizeof(*t->dim)))
		tc_fail(c, ERR_INVALID_ARGUMENT, op, "Eigh gives eigenvectors of its operand's "
			"type and as many real eigenvalues");
}

/* The values [batch, n] and vectors, as columns, of a matrix that is not empty. */
static void solve(const struct tc_build *b, struct tc_value *a, bool sort,
		  struct tc_value **values, struct tc_value **vectors)
{
	const struct tc_type *t = a->type;
	struct tc_scaled scaled = tc_linalg_scale(b, a);
	struct tc_sweep s = tc_linalg_sweep(t->dim[1], true);
	double unit = tc_linalg_unit((enum elem)t->elem);
	int64_t wide = 2 * s.pairs * s.size;
	struct tc_iteration it = { .sweep = s, .renew = renew, .arg = &a };
	struct tc_value *state, *rows;

	/* Rounding leaves some units of the norm in every row. */
	it.tight = unit * unit * (double)wide;
	it.loose = 64 * it.tight;
	a = tc_linalg_widen(b, scaled.x, wide, wide);
	rows = tc_linalg_identity(b, a->type);
	tc_linalg_iterate(b, &it, &state, &rows);
	*values = correct(b, a, rows, state, s.pairs);
	*values = tc_build_part(b, *values, 1, 0, t->dim[1]);
	rows = tc_build_part(b, tc_build_part(b, rows, 1, 0, t->dim[1]), 2, 0, t->dim[1]);
	if (sort)
		tc_linalg_sort(b, values, &rows);
	*vectors = tc_linalg_spoil(b, tc_linalg_adjoint(b, rows), scaled.is_finite);
	*values = tc_linalg_by(b, TC_MULTIPLY, *values, scaled.scale);
	*values = tc_linalg_spoil(b, *values, scaled.is_finite);
}

void tc_decompose_eigh(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	const struct tc_type *t, *values;
	struct tc_value *vectors, *w;
	bool lower, sort;

	check(c, op);
	read_config(op, &lower, &sort);
	t = tc_out(op, 0)->type;
	values = tc_out(op, 1)->type;
	if (t->count) {
		vectors = symmetric(&b, tc_build_matrices(&b, tc_in(op, 0)), lower);
		solve(&b, vectors, sort, &w, &vectors);
		vectors = tc_build_reshape(&b, vectors, t->rank, t->dim);
		w = tc_build_reshape(&b, w, values->rank, values->dim);
	} else {
		vectors = tc_in(op, 0);
		w = tc_build_number(&b, values, 0);
	}
	tc_replace_uses(tc_out(op, 0), vectors);
	tc_replace_uses(tc_out(op, 1), w);
	tc_erase(op);
}
