/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Eigenvectors of Hermitian matrices by Jacobi rotations, half a matrix of them at a time.
 *
 * Index i of the first half is paired with i of the second; every pair's rotation makes
 * its element of the matrix zero. Then indices move on as in a tournament, so that in
 * n - 1 steps each has met each and is back (Brent and Luk, 1985). Sweeps go on until
 * what is off the diagonal is rounding.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/compiler/opt/build.h"

enum { MOST_SWEEPS = 40 };

/* The diagonal of [batch, n, n] as [batch, n]. */
static struct tc_value *diagonal(const struct tc_build *b, struct tc_value *x)
{
	x = tc_build_select(b, tc_build_where(b, x->type, TC_CMP_EQ), x,
			    tc_build_number(b, x->type, 0));
	return tc_build_sum(b, x, 1u << 2);
}

static struct tc_value *block(const struct tc_build *b, struct tc_value *x, int64_t row,
			      int64_t column, int64_t size)
{
	return tc_build_part(b, tc_build_part(b, x, 1, row, size), 2, column, size);
}

static struct tc_value *absolute(const struct tc_build *b, struct tc_value *x)
{
	enum elem real = tc_real_of((enum elem)x->type->elem);

	return tc_build(b, TC_ABS, tc_with_elem(b->c, x->type, real), 1, &x);
}

struct rotation {
	struct tc_value *c, *s;	/* [batch, h], of the matrix's type */
	struct tc_value *phase;	/* of the element that becomes zero */
};

/* tau = (aqq - app) / 2|apq|, t = sign(tau) / (|tau| + sqrt(1 + tau^2)), c = 1 / sqrt(1 +
 * t^2), s = c t: the smaller of the two angles. */
static struct rotation find_rotation(const struct tc_build *b, struct tc_value *a, int64_t h)
{
	struct tc_value *p = tc_build_real(b, diagonal(b, block(b, a, 0, 0, h)));
	struct tc_value *q = tc_build_real(b, diagonal(b, block(b, a, h, h, h)));
	struct tc_value *off = diagonal(b, block(b, a, 0, h, h)), *size = absolute(b, off);
	struct tc_value *zero = tc_build_number(b, size->type, 0), *tau, *t, *c, *none;
	struct tc_value *one = tc_build_number(b, size->type, 1);
	enum elem elem = (enum elem)a->type->elem;
	struct rotation r;

	none = tc_build_compare(b, TC_CMP_EQ, size, zero);
	tau = tc_build2(b, TC_DIVIDE, tc_build2(b, TC_SUBTRACT, q, p),
			tc_build2(b, TC_ADD, size, size));
	t = tc_build2(b, TC_ADD, one, tc_build2(b, TC_MULTIPLY, tau, tau));
	t = tc_build2(b, TC_ADD, absolute(b, tau), tc_build1(b, TC_SQRT, t));
	t = tc_build2(b, TC_DIVIDE, tc_build_select(b, tc_build_compare(b, TC_CMP_LT, tau, zero),
						    tc_build1(b, TC_NEGATE, one), one), t);
	t = tc_build_select(b, none, zero, t);
	c = tc_build2(b, TC_ADD, one, tc_build2(b, TC_MULTIPLY, t, t));
	c = tc_build2(b, TC_DIVIDE, one, tc_build1(b, TC_SQRT, c));
	r.c = tc_build_convert(b, c, elem);
	r.s = tc_build_convert(b, tc_build2(b, TC_MULTIPLY, t, c), elem);
	r.phase = tc_build2(b, TC_DIVIDE, off, tc_build_convert(b, size, elem));
	r.phase = tc_build_select(b, none, tc_build_convert(b, one, elem), r.phase);
	return r;
}

/* The halves of x along dim, rotated: c p - s e q, s p + c e q; and moved on. */
static struct tc_value *rotate(const struct tc_build *b, struct tc_value *x, unsigned dim,
			       const struct rotation *r, struct tc_value *e, int64_t h)
{
	const int64_t dims[] = { 0, dim };
	struct tc_value *p = tc_build_part(b, x, dim, 0, h), *q = tc_build_part(b, x, dim, h, h);
	struct tc_value *c = tc_build_broadcast(b, r->c, p->type, dims);
	struct tc_value *s = tc_build_broadcast(b, r->s, p->type, dims), *part[5];

	q = tc_build2(b, TC_MULTIPLY, q, tc_build_broadcast(b, e, p->type, dims));
	part[0] = tc_build2(b, TC_SUBTRACT, tc_build2(b, TC_MULTIPLY, c, p),
			    tc_build2(b, TC_MULTIPLY, s, q));
	part[1] = tc_build2(b, TC_ADD, tc_build2(b, TC_MULTIPLY, s, p),
			    tc_build2(b, TC_MULTIPLY, c, q));
	x = tc_build_join(b, 2, part, dim);
	if (h == 1)
		return x;
	part[0] = tc_build_part(b, x, dim, 0, 1);
	part[1] = tc_build_part(b, x, dim, h, 1);
	part[2] = tc_build_part(b, x, dim, 1, h - 2);
	part[3] = tc_build_part(b, x, dim, h + 1, h - 1);
	part[4] = tc_build_part(b, x, dim, h - 1, 1);
	return tc_build_join(b, 5, part, dim);
}

static void step(const struct tc_build *b, struct tc_value *i, struct tc_value **state,
		 void *arg)
{
	int64_t h = state[0]->type->dim[1] / 2;
	struct rotation r = find_rotation(b, state[0], h);
	struct tc_value *back = tc_build_conjugate(b, r.phase);

	(void)i;
	(void)arg;
	state[0] = rotate(b, state[0], 2, &r, back, h);
	state[0] = rotate(b, state[0], 1, &r, r.phase, h);
	state[1] = rotate(b, state[1], 2, &r, back, h);
}

static void sweep(const struct tc_build *b, struct tc_value *i, struct tc_value **state,
		  void *arg)
{
	struct tc_loop steps = { .n = state[0]->type->dim[1] - 1, .body = step };

	(void)i;
	(void)arg;
	tc_build_loop(b, &steps, 2, state);
}

/* Whether some matrix is not diagonal yet, to the precision of its type. */
static struct tc_value *is_rough(const struct tc_build *b, struct tc_value *const *state)
{
	struct tc_value *x = absolute(b, state[0]), *off, *all, *rough;
	double unit = x->type->elem == ELEM_F32 ? 0x1p-24 : 0x1p-53;

	x = tc_build2(b, TC_MULTIPLY, x, x);
	off = tc_build_select(b, tc_build_where(b, x->type, TC_CMP_EQ),
			      tc_build_number(b, x->type, 0), x);
	all = tc_build_sum(b, x, 6);
	off = tc_build_sum(b, off, 6);
	/* Rounding leaves some units of the norm in every row; convergence is quadratic, so
	 * what is left is mostly far below. */
	unit *= 64 * unit * (double)x->type->dim[1];
	all = tc_build2(b, TC_MULTIPLY, all, tc_build_number(b, all->type, unit));
	rough = tc_build_convert(b, tc_build_compare(b, TC_CMP_GT, off, all), ELEM_S32);
	rough = tc_build_sum(b, rough, 1);
	return tc_build_compare(b, TC_CMP_GT, rough, tc_build_number(b, rough->type, 0));
}

/* Values [batch, n] ascending, and the columns of vectors with them. */
static void sort_pairs(const struct tc_build *b, struct tc_value **values,
		       struct tc_value **vectors)
{
	const struct tc_type *t = (*values)->type, *wide = (*vectors)->type;
	struct tc_value *in[2] = { *values, NULL }, *pick, *arg[4];
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
	/* Column j of the result is column pick[j]: a product with a permutation. */
	types[1] = tc_with_elem(b->c, wide, ELEM_S32);
	pick = tc_build_broadcast(b, tc_out(sort, 1), types[1], (const int64_t[]){ 0, 2 });
	pick = tc_build_compare(b, TC_CMP_EQ, tc_build_iota(b, types[1], 1), pick);
	pick = tc_build_convert(b, pick, (enum elem)wide->elem);
	*values = tc_out(sort, 0);
	*vectors = tc_build_dot(b, *vectors, pick, 1, 2, 1);
}

/* A Hermitian matrix from one of its triangles. */
static struct tc_value *symmetric(const struct tc_build *b, struct tc_value *a, bool lower)
{
	struct tc_value *keep = tc_build_where(b, a->type, lower ? TC_CMP_GE : TC_CMP_LE);

	return tc_build_select(b, keep, a, tc_build_conjugate(b, tc_build_turn(b, a)));
}

/* One more row and column of zeros: they stay apart from the others. */
static struct tc_value *widen(const struct tc_build *b, struct tc_value *a)
{
	const struct tc_type *t = a->type;
	struct tc_value *part[2] = { a };
	int64_t dim[] = { t->dim[0], 1, t->dim[2] };

	part[1] = tc_build_number(b, tc_tensor(b->c, (enum elem)t->elem, 3, dim), 0);
	a = part[0] = tc_build_join(b, 2, part, 1);
	dim[1] = t->dim[1] + 1;
	dim[2] = 1;
	part[1] = tc_build_number(b, tc_tensor(b->c, (enum elem)t->elem, 3, dim), 0);
	return tc_build_join(b, 2, part, 2);
}

static bool is_well_formed(const struct tc_op *op)
{
	const struct tc_type *t = op->n_operands == 1 ? tc_in(op, 0)->type : NULL, *w;
	unsigned r = t ? t->rank : 0;

	if (!t || t->is_tuple || r < 2 || t->dim[r - 1] != t->dim[r - 2] ||
	    (t->elem != ELEM_F32 && t->elem != ELEM_F64 &&
	     elem_class(t->elem) != ELEM_CLASS_COMPLEX) || op->n_results != 2)
		return false;
	w = tc_out(op, 1)->type;
	return tc_out(op, 0)->type == t && !w->is_tuple && w->rank == r - 1 &&
	       w->elem == tc_real_of((enum elem)t->elem) &&
	       !memcmp(w->dim, t->dim, (r - 1) * sizeof(*t->dim));
}

/* backend_config: "lower,sort,sweeps,tolerance". */
void tc_decompose_eigh(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	const char *config = tc_attr_str(op, "backend_config"), *comma;
	struct tc_loop sweeps = { .n = MOST_SWEEPS, .more = is_rough, .body = sweep };
	const struct tc_type *t, *values;
	struct tc_value *state[2], *w;
	bool lower = true, sort = true;
	int64_t n;

	if (!is_well_formed(op))
		tc_fail(c, ERR_INVALID_ARGUMENT, op, "Eigh takes square matrices and gives "
			"eigenvectors and eigenvalues");
	if (config && *config) {
		comma = strchr(config, ',');
		lower = atoi(config) != 0;
		sort = !comma || atoi(comma + 1) != 0;
	}
	t = tc_out(op, 0)->type;
	values = tc_out(op, 1)->type;
	if (!t->count) {
		tc_replace_uses(tc_out(op, 0), tc_in(op, 0));
		tc_replace_uses(tc_out(op, 1), tc_build_number(&b, values, 0));
		tc_erase(op);
		return;
	}
	state[0] = symmetric(&b, tc_build_matrices(&b, tc_in(op, 0)), lower);
	n = state[0]->type->dim[1];
	if (n % 2)
		state[0] = widen(&b, state[0]);
	state[1] = tc_build_where(&b, state[0]->type, TC_CMP_EQ);
	state[1] = tc_build_convert(&b, state[1], (enum elem)t->elem);
	tc_build_loop(&b, &sweeps, 2, state);
	w = tc_build_part(&b, tc_build_real(&b, diagonal(&b, state[0])), 1, 0, n);
	state[1] = block(&b, state[1], 0, 0, n);
	if (sort)
		sort_pairs(&b, &w, &state[1]);
	tc_replace_uses(tc_out(op, 0), tc_build_reshape(&b, state[1], t->rank, t->dim));
	tc_replace_uses(tc_out(op, 1), tc_build_reshape(&b, w, values->rank, values->dim));
	tc_erase(op);
}
