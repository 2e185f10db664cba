/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums of products of two arrays, each spread along dims that the other one has: a product of
 * matrices, in the words of who has no einsum. As elementwise work each element of either side is
 * loaded for every one of the other's; the matrix unit loads both once.
 *
 * Only of f32 and f64: of narrower floats each product is rounded before it is summed, and of whole
 * numbers of 32 bits and more the matrix unit is no faster.
 */
#include "runtime/compiler/lower/decompose.h"
#include "runtime/compiler/opt/fuse.h"

/* A factor before it is spread out, and which of its dims is dim d of the products; -1: none. */
struct factor {
	struct tc_value *x;
	int64_t dim[TC_MAX_RANK];
};

static void find_factor(struct tc_value *v, struct factor *f)
{
	unsigned rank = v->type->rank, n;

	for (unsigned d = 0; d < rank; d++)
		f->dim[d] = d;
	for (; v->def && v->def->op == TC_BROADCAST_IN_DIM; v = tc_in(v->def, 0)) {
		const int64_t *to = tc_attr_ints(v->def, "broadcast_dimensions", &n);
		const struct tc_type *from = tc_in(v->def, 0)->type;

		for (unsigned d = 0; d < rank; d++) {
			int64_t was = f->dim[d];

			f->dim[d] = -1;
			for (unsigned i = 0; was >= 0 && i < n; i++)
				if (to[i] == was && from->dim[i] == v->type->dim[was])
					f->dim[d] = i;
		}
	}
	f->x = v;
}

/* Dims of the products by what they are to the two factors. */
struct sums {
	const struct tc_type *t;	/* of the products */
	uint64_t summed;
	struct factor side[2];
	unsigned n_batch, n_sums, n_free[2];
	int64_t batch[2][TC_MAX_RANK], sums[2][TC_MAX_RANK];
	int64_t k, free[2];
};

/* Sorts the dims; false: some are of neither factor, are summed in one alone, or would not be in
 * this order in the product's result, which has batches, rows and columns. */
static bool sort_dims(struct sums *s)
{
	unsigned before = 0;

	s->k = s->free[0] = s->free[1] = 1;
	for (unsigned d = 0; d < s->t->rank; d++) {
		bool in[2] = { s->side[0].dim[d] >= 0, s->side[1].dim[d] >= 0 };
		bool summed = s->summed >> d & 1;
		unsigned stage = in[0] && in[1] ? 0 : in[0] ? 1 : 2;

		if ((!in[0] && !in[1]) || (summed && stage) || (!summed && stage < before))
			return false;
		if (!summed)
			before = stage;
		if (stage) {
			s->free[stage - 1] *= s->t->dim[d];
			continue;
		}
		for (unsigned i = 0; i < 2; i++)
			(summed ? s->sums[i] : s->batch[i])[summed ? s->n_sums : s->n_batch] =
				s->side[i].dim[d];
		if (summed)
			s->k *= s->t->dim[d];
		s->n_sums += summed;
		s->n_batch += !summed;
	}
	return true;
}

/* A factor without dims of one element that come to nothing; its other dims move up. */
static struct tc_value *without_ones(const struct tc_build *b, const struct sums *s, unsigned side,
				     int64_t *place)
{
	struct tc_value *x = s->side[side].x;
	int64_t dim[TC_MAX_RANK];
	uint64_t used = 0;
	unsigned n = 0;

	for (unsigned d = 0; d < s->t->rank; d++)
		if (s->side[side].dim[d] >= 0)
			used |= 1ull << s->side[side].dim[d];
	for (unsigned i = 0; i < x->type->rank; i++) {
		place[i] = n;
		if (used >> i & 1)
			dim[n++] = x->type->dim[i];
	}
	return n == x->type->rank ? x : tc_build_reshape(b, x, n, dim);
}

/* A product has the dims of each side in the side's own order. */
static bool in_order(const struct sums *s)
{
	for (unsigned i = 0; i < 2; i++) {
		int64_t before = -1;

		for (unsigned d = 0; d < s->t->rank; d++) {
			if (s->side[!i].dim[d] >= 0)
				continue;
			if (s->side[i].dim[d] < before)
				return false;
			before = s->side[i].dim[d];
		}
	}
	return true;
}

static struct tc_value *product(const struct tc_build *b, const struct sums *s,
				const struct tc_type *type)
{
	static const char *const names[2][2] = {
		{ "lhs_batching_dimensions", "lhs_contracting_dimensions" },
		{ "rhs_batching_dimensions", "rhs_contracting_dimensions" },
	};
	int64_t place[2][TC_MAX_RANK], list[TC_MAX_RANK];
	struct tc_value *in[2], *v;

	for (unsigned i = 0; i < 2; i++)
		in[i] = without_ones(b, s, i, place[i]);
	v = tc_build(b, TC_DOT_GENERAL, type, 2, in);
	for (unsigned i = 0; i < 2; i++) {
		for (unsigned k = 0; k < s->n_batch; k++)
			list[k] = place[i][s->batch[i][k]];
		tc_set_ints(b->c, v->def, names[i][0], list, s->n_batch);
		for (unsigned k = 0; k < s->n_sums; k++)
			list[k] = place[i][s->sums[i][k]];
		tc_set_ints(b->c, v->def, names[i][1], list, s->n_sums);
	}
	return v;
}

bool tc_decompose_outer(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	struct sums s = { .t = tc_in(op, 0)->type };
	struct tc_op *times = tc_in(op, 0)->def;
	const int64_t *dims;
	unsigned n;

	if (tc_simple_reduce(op) != TC_ADD || !times || times->op != TC_MULTIPLY ||
	    !tc_is_used_once(tc_out(times, 0)) ||
	    (s.t->elem != ELEM_F32 && s.t->elem != ELEM_F64) || !s.t->count)
		return false;
	dims = tc_attr_ints(op, "dimensions", &n);
	for (unsigned i = 0; i < n; i++)
		s.summed |= 1ull << dims[i];
	for (unsigned i = 0; i < 2; i++)
		find_factor(tc_in(times, i), &s.side[i]);
	if (!sort_dims(&s)) {
		struct factor first = s.side[0];

		s = (struct sums){ .t = s.t, .summed = s.summed, .side = { s.side[1], first } };
		if (!sort_dims(&s))
			return false;
	}
	if (!in_order(&s) || s.k < 2 || s.free[0] < 2 || s.free[1] < 2)
		return false;
	tc_replace(op, product(&b, &s, op->results[0].type));
	return true;
}
