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
 *
 * And those of few rows and columns with much to sum, as X^T X of many observations: the matrix
 * unit shares out rows and columns. They become products of parts, and a sum of these.
 */
#include <string.h>

#include "hal/hw/isa.h"
#include "runtime/compiler/lower/decompose.h"

enum {
	SMALL_DOT = 512,	/* multiplications */
	SMALL_K = 32,
};

struct dot {
	struct tc_build b;
	struct tc_op *op;
	enum elem elem;			/* in which it is summed */
	enum elem part;			/* and in which sums of a part are kept */
	unsigned n_batch, n_sums;
	const int64_t *batch[2], *sums[2];	/* dims of each side */
	int64_t batches, k, free[2];	/* free: rows, columns */
};

static bool is_free(const struct dot *d, unsigned side, unsigned dim)
{
	return !tc_is_listed(d->batch[side], d->n_batch, dim) &&
	       !tc_is_listed(d->sums[side], d->n_sums, dim);
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
	d->part = cls == ELEM_CLASS_FLOAT ? d->elem : result;
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
			else if (!side && tc_is_listed(d->sums[0], d->n_sums, i))
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
		if (!tc_is_listed(d->sums[side], d->n_sums, i))
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
	return !last || tc_is_listed(d->sums[side], d->n_sums, last - 1);
}

/* Whether it is so small that the matrix unit, which adds what comes behind it to its sums as well,
 * reads it where it lies. Two vectors are one sum, in which each step waits for the last one. */
static bool is_small(const struct dot *d)
{
	int64_t rows = d->free[0] * d->free[1];

	return d->batches == 1 && rows > 1 && d->k <= SMALL_K && rows <= SMALL_DOT / d->k &&
	       tc_in(d->op, 0)->type->elem == d->elem && tc_in(d->op, 1)->type->elem == d->elem;
}

/* ---- much to sum ---- */

#define LEAST_PART 2048		/* elements along k */
#define MOST_PARTS 32
#define BLOCK 256		/* rows or columns that one worker takes at least */
/* Products whose sides have at most so many elements are multiplied several at a time, if the
 * elements are of the sums' type; that pays for results of at most so many rows and columns. */
#define SMALL_SIDE 256
#define SMALL_ROWS 10

/* How the sums are cut: so many parts of so many elements of one dim, `which` of d->sums, and
 * what is left of the dim. */
struct cut {
	unsigned which;
	int64_t parts, each, rest;
};

static int64_t blocks_of(int64_t n)
{
	return (n + BLOCK - 1) / BLOCK;
}

/* Elements along k of a part; 0: the product stays whole. */
static int64_t part_of(const struct dot *d)
{
	int64_t most = d->free[0] > d->free[1] ? d->free[0] : d->free[1];
	int64_t blocks = d->batches * blocks_of(d->free[0]) * blocks_of(d->free[1]);
	int64_t parts = MOST_PARTS / blocks;
	bool is_plain = tc_in(d->op, 0)->type->elem == d->elem &&
			tc_in(d->op, 1)->type->elem == d->elem;

	if (is_plain && most <= SMALL_ROWS && d->k >= LEAST_PART)
		return SMALL_SIDE / most;
	if (parts > d->k / LEAST_PART)
		parts = d->k / LEAST_PART;
	return parts < 4 ? 0 : (d->k + parts - 1) / parts;
}

/* False: it is not worth it, or no dim has enough of them. */
static bool find_cut(const struct dot *d, struct cut *cut)
{
	const struct tc_type *t = tc_in(d->op, 0)->type;
	int64_t part = part_of(d), n, least;

	if (!part || elem_bytes(d->part) < elem_bytes(d->elem) ||
	    t->rank >= ISA_MAX_RANK || tc_in(d->op, 1)->type->rank >= ISA_MAX_RANK ||
	    d->op->results[0].type->rank >= ISA_MAX_RANK)
		return false;
	for (unsigned i = 1; i < d->n_sums; i++)
		if (t->dim[d->sums[0][i]] > t->dim[d->sums[0][cut->which]])
			cut->which = i;
	n = t->dim[d->sums[0][cut->which]];
	part /= d->k / n;
	if (part < 2 || part > n / 2)
		return false;
	/* Parts of one size, if they can be about so long. */
	for (least = part - part / 3, cut->each = part; cut->each > least && n % cut->each;)
		cut->each--;
	if (n % cut->each)
		cut->each = part;
	cut->parts = n / cut->each;
	cut->rest = n % cut->each;
	return true;
}

/* A side, without the transposition that only says where its dims are: place[] says where the
 * product's are now. */
static struct tc_value *untransposed(const struct dot *d, unsigned side, int64_t *place)
{
	struct tc_value *x = tc_in(d->op, side);
	unsigned n = 0, n_free = 0;
	const int64_t *from;

	for (unsigned i = 0; i < x->type->rank; i++) {
		place[i] = i;
		n_free += is_free(d, side, i);
	}
	/* The product's result has free dims in the order of the operand's. */
	if (!x->def || x->def->op != TC_TRANSPOSE || n_free > 1)
		return x;
	from = tc_attr_ints(x->def, "permutation", &n);
	memcpy(place, from, n * sizeof(*place));
	return tc_in(x->def, 0);
}

/* The product of elements first .. first + parts * each of the dim that is cut; with more than one
 * part these are its first dim. */
static struct tc_value *product_of(const struct dot *d, const struct cut *cut, int64_t first,
				   int64_t parts, int64_t each)
{
	static const char *const batch_names[] = { "lhs_batching_dimensions",
						   "rhs_batching_dimensions" };
	static const char *const sums_names[] = { "lhs_contracting_dimensions",
						  "rhs_contracting_dimensions" };
	const struct tc_type *t = d->op->results[0].type;
	int64_t dim[TC_MAX_RANK + 1], batch[2][TC_MAX_RANK], sums[2][TC_MAX_RANK];
	unsigned more = parts > 1, rank;
	struct tc_value *in[2];
	struct tc_op *dot;

	for (unsigned side = 0; side < 2; side++) {
		int64_t place[TC_MAX_RANK], at;
		struct tc_value *x = untransposed(d, side, place);

		at = place[d->sums[side][cut->which]];
		rank = x->type->rank;
		if (parts * each < x->type->dim[at])
			x = tc_build_part(&d->b, x, (unsigned)at, first, parts * each);
		memcpy(dim, x->type->dim, (size_t)at * sizeof(*dim));
		dim[at] = parts;
		memcpy(dim + at + 1, x->type->dim + at, (rank - (size_t)at) * sizeof(*dim));
		dim[at + 1] = each;
		in[side] = more ? tc_build_reshape(&d->b, x, rank + 1, dim) : x;
		batch[side][0] = at;
		for (unsigned i = 0; i < d->n_batch; i++)
			batch[side][more + i] = place[d->batch[side][i]] +
						(more && place[d->batch[side][i]] > at);
		for (unsigned i = 0; i < d->n_sums; i++)
			sums[side][i] = place[d->sums[side][i]] +
					(more && place[d->sums[side][i]] >= at);
	}
	dim[0] = parts;
	memcpy(dim + more, t->dim, t->rank * sizeof(*dim));
	dot = tc_build(&d->b, TC_DOT_GENERAL, tc_tensor(d->b.c, d->part, t->rank + more, dim),
		       2, in)->def;
	for (unsigned i = 0; i < d->op->n_attrs; i++)
		tc_set_attr(d->b.c, dot, d->op->attrs[i]);
	for (unsigned side = 0; side < 2; side++) {
		tc_set_ints(d->b.c, dot, batch_names[side], batch[side], d->n_batch + more);
		tc_set_ints(d->b.c, dot, sums_names[side], sums[side], d->n_sums);
	}
	return tc_out(dot, 0);
}

static struct tc_value *in_parts(const struct dot *d, const struct cut *cut)
{
	struct tc_value *v = product_of(d, cut, 0, cut->parts, cut->each);

	v = tc_build_sum(&d->b, v, 1);
	if (!cut->rest)
		return v;
	return tc_build2(&d->b, TC_ADD, v,
			 product_of(d, cut, cut->parts * cut->each, 1, cut->rest));
}

void tc_decompose_dot(struct tc_ctx *c, struct tc_op *op)
{
	struct cut cut = { 0 };
	struct dot d = { .b = tc_build_at(c, op), .op = op };
	struct tc_value *v;
	unsigned side;

	if (!look_at(&d))
		return;
	side = d.free[0] == 1;
	if (d.k == 1)
		v = outer(&d);
	else if (d.free[!side] == 1 && (d.batches > 1 || (is_better(&d, side) && !is_small(&d))))
		v = weighted(&d, side);
	else if (find_cut(&d, &cut))
		v = in_parts(&d, &cut);
	else
		return;
	tc_replace(op, tc_build_convert(&d.b, v, (enum elem)op->results[0].type->elem));
}
