/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products in which the matrix unit has little to multiply: it packs both sides for rows and
 * columns, of which there is one here. They become elementwise work, which reads each side once,
 * where it lies, and shares fusions with what is around it.
 *
 *  - one of a side's rows alone (a matrix by a vector, two vectors): the other side times it, and
 *    sums. Of one matrix the matrix unit is as fast if sums do not run along its rows, or if it is
 *    of bytes, of which it multiplies several at a time.
 *  - nothing to sum, as in the gradient of a matrix by a vector: the sides times each other.
 */
#include <string.h>

#include "runtime/compiler/lower/decompose.h"

struct dot {
	struct tc_build b;
	struct tc_op *op;
	enum elem elem;			/* in which it is summed */
	unsigned n_batch, n_sums;
	const int64_t *batch[2], *sums[2];	/* dims of each side */
	int64_t batches, k, free[2];	/* free: rows, columns */
};

static bool is_in(const int64_t *list, unsigned n, unsigned dim)
{
	for (unsigned i = 0; i < n; i++)
		if (list[i] == dim)
			return true;
	return false;
}

static bool is_free(const struct dot *d, unsigned side, unsigned dim)
{
	return !is_in(d->batch[side], d->n_batch, dim) && !is_in(d->sums[side], d->n_sums, dim);
}

/* False: numbers that are summed in another way. */
static bool look_at(struct dot *d)
{
	const struct tc_op *op = d->op;
	unsigned result = op->results[0].type->elem, cls = elem_class(result);

	if (tc_attr(op, "lhs_precision_type") || cls == ELEM_CLASS_COMPLEX ||
	    cls == ELEM_CLASS_PRED)
		return false;
	if (cls == ELEM_CLASS_FLOAT)
		d->elem = elem_bytes(result) == 8 ? ELEM_F64 : ELEM_F32;
	else
		d->elem = elem_bytes(result) == 8 ? ELEM_S64 : ELEM_S32;
	d->batch[0] = tc_attr_ints(op, "lhs_batching_dimensions", &d->n_batch);
	d->batch[1] = tc_attr_ints(op, "rhs_batching_dimensions", &d->n_batch);
	d->sums[0] = tc_attr_ints(op, "lhs_contracting_dimensions", &d->n_sums);
	d->sums[1] = tc_attr_ints(op, "rhs_contracting_dimensions", &d->n_sums);
	d->batches = d->k = d->free[0] = d->free[1] = 1;
	for (unsigned side = 0; side < 2; side++) {
		const struct tc_type *t = tc_in(op, side)->type;

		if (elem_bytes(t->elem) > elem_bytes(d->elem) || !t->count)
			return false;
		for (unsigned i = 0; i < t->rank; i++)
			if (is_free(d, side, i))
				d->free[side] *= t->dim[i];
			else if (!side && is_in(d->sums[0], d->n_sums, i))
				d->k *= t->dim[i];
			else if (!side)
				d->batches *= t->dim[i];
	}
	return true;
}

/* A side along the dims of `type`: dim i of it is dim to[i], and of size 1 where there is none. */
static struct tc_value *spread(const struct dot *d, unsigned side, const int64_t *to,
			       const struct tc_type *type)
{
	struct tc_value *x = tc_build_convert(&d->b, tc_in(d->op, side), d->elem);
	int64_t dim[TC_MAX_RANK], dims[TC_MAX_RANK];
	unsigned n = 0;

	for (unsigned i = 0; i < x->type->rank; i++)
		if (to[i] >= 0) {
			dim[n] = x->type->dim[i];
			dims[n++] = to[i];
		}
	if (n < x->type->rank)
		x = tc_build_reshape(&d->b, x, n, dim);
	return tc_build_broadcast(&d->b, x, type, dims);
}

/* Batches, rows and columns side by side. */
static struct tc_value *outer(const struct dot *d)
{
	const struct tc_type *type = tc_with_elem(d->b.c, d->op->results[0].type, d->elem);
	struct tc_value *v[2];
	unsigned next = d->n_batch;

	for (unsigned side = 0; side < 2; side++) {
		int64_t to[TC_MAX_RANK];

		for (unsigned i = 0; i < tc_in(d->op, side)->type->rank; i++)
			to[i] = is_free(d, side, i) ? (int64_t)next++ : -1;
		for (unsigned i = 0; i < d->n_batch; i++)
			to[d->batch[side][i]] = i;
		v[side] = spread(d, side, to, type);
	}
	v[0] = tc_build2(&d->b, TC_MULTIPLY, v[0], v[1]);
	/* Sums begin with 0, so none of them is -0. */
	return elem_class(d->elem) != ELEM_CLASS_FLOAT ? v[0] :
	       tc_build2(&d->b, TC_ADD, v[0], tc_build_number(&d->b, type, 0));
}

/* The dims that are left of the side, batches first. */
static struct tc_value *in_order(const struct dot *d, unsigned side, struct tc_value *sums)
{
	int64_t order[TC_MAX_RANK], place[TC_MAX_RANK];
	unsigned n = 0;

	for (unsigned i = 0; i < tc_in(d->op, side)->type->rank; i++)
		if (!is_in(d->sums[side], d->n_sums, i))
			place[i] = n++;
	n = 0;
	for (unsigned i = 0; i < d->n_batch; i++)
		order[n++] = place[d->batch[side][i]];
	for (unsigned i = 0; i < tc_in(d->op, side)->type->rank; i++)
		if (is_free(d, side, i))
			order[n++] = place[i];
	return tc_build_transpose(&d->b, sums, order);
}

/* `side` times the one row of the other one, summed where the side's elements lie. */
static struct tc_value *weighted(const struct dot *d, unsigned side)
{
	const struct tc_type *t = d->op->results[0].type;
	struct tc_value *x = tc_build_convert(&d->b, tc_in(d->op, side), d->elem);
	int64_t to[TC_MAX_RANK];
	uint64_t sums = 0;

	memset(to, -1, sizeof(to));
	for (unsigned i = 0; i < d->n_batch; i++)
		to[d->batch[!side][i]] = d->batch[side][i];
	for (unsigned i = 0; i < d->n_sums; i++) {
		to[d->sums[!side][i]] = d->sums[side][i];
		sums |= 1ull << d->sums[side][i];
	}
	x = tc_build2(&d->b, TC_MULTIPLY, x, spread(d, !side, to, x->type));
	x = in_order(d, side, tc_build_sum(&d->b, x, sums));
	return tc_build_reshape(&d->b, x, t->rank, t->dim);
}

/* Whether one product of this side by a vector is better off: if sums run along the rows of its
 * memory. */
static bool is_better(const struct dot *d, unsigned side)
{
	const struct tc_type *t = tc_in(d->op, side)->type;
	unsigned last = t->rank;

	if (elem_bytes(t->elem) == 1 && d->free[side] > 1)
		return false;
	while (last && t->dim[last - 1] == 1)
		last--;
	return !last || is_in(d->sums[side], d->n_sums, last - 1);
}

void tc_decompose_dot(struct tc_ctx *c, struct tc_op *op)
{
	struct dot d = { .b = tc_build_at(c, op), .op = op };
	struct tc_value *v;
	unsigned side;

	if (!look_at(&d))
		return;
	side = d.free[0] == 1;
	if (d.k == 1)
		v = outer(&d);
	else if (d.free[!side] == 1 && (d.batches > 1 || is_better(&d, side)))
		v = weighted(&d, side);
	else
		return;
	tc_replace_uses(tc_out(op, 0), tc_build_convert(&d.b, v,
							(enum elem)op->results[0].type->elem));
	tc_erase(op);
}
