/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that move elements: views, copies, joins, cuts at places known later. They take any value. */
#include "tests/fuzz_ops/gen.h"

#include <string.h>

bool gen_new_source(struct gen *g)
{
	unsigned rank = gen_one_in(g, 12) ? gen_below(g, GEN_RANK + 1) : gen_below(g, 4);
	unsigned elem = gen_elem(g);
	int64_t dim[GEN_RANK];

	if (g->scalars)
		rank = 0;
	for (unsigned d = 0; d < rank; d++) {
		dim[d] = gen_dim(g);
		if (!gen_is_small(g, d + 1, dim))
			dim[d] = 1;
	}
	gen_source(g, gen_type(g, elem, rank, dim), gen_any_fact(g, elem));
	return true;
}

static void set_dims(struct gen *g, struct tc_value *v, const char *name, const int64_t *ints,
		     unsigned n)
{
	tc_set_ints(g->c, v->def, name, ints, n);
}

bool gen_broadcast(struct gen *g)
{
	struct tc_value *v = gen_pick_any(g);
	int64_t dim[GEN_RANK], at[GEN_RANK];
	const struct tc_type *t, *like;
	unsigned rank;

	if (!v || v->type->rank > GEN_RANK)
		return false;
	t = v->type;
	rank = t->rank + gen_below(g, GEN_RANK + 1u - t->rank);
	if (rank > 3 && rank > t->rank + 1u)
		rank = t->rank + 1u;
	gen_sample(g, t->rank, rank, at);
	if (gen_one_in(g, 2))
		gen_subset(g, t->rank, rank, at);
	like = gen_pick_any(g)->type;
	for (unsigned d = 0; d < rank; d++)
		dim[d] = like->rank == rank && gen_one_in(g, 2) ? like->dim[d] : gen_dim(g);
	for (unsigned i = 0; i < t->rank; i++)
		if (t->dim[i] != 1)
			dim[at[i]] = t->dim[i];
	if (!gen_is_small(g, rank, dim))
		return false;
	v = gen_op1(g, TC_BROADCAST_IN_DIM, 1, &v, gen_type(g, t->elem, rank, dim),
		    *gen_fact(v));
	set_dims(g, v, "broadcast_dimensions", at, t->rank);
	return true;
}

static bool has_rank(const struct tc_value *v, const void *arg)
{
	(void)arg;
	return !v->type->is_tuple && v->type->elem != ELEM_TOKEN && v->type->rank > 0 &&
	       v->type->rank <= GEN_RANK;
}

bool gen_transpose(struct gen *g)
{
	struct tc_value *v = gen_pick(g, has_rank, NULL);
	int64_t p[GEN_RANK], dim[GEN_RANK];
	const struct tc_type *t;

	if (!v)
		return false;
	t = v->type;
	gen_sample(g, t->rank, t->rank, p);
	for (unsigned d = 0; d < t->rank; d++)
		dim[d] = t->dim[p[d]];
	v = gen_op1(g, TC_TRANSPOSE, 1, &v, gen_type(g, t->elem, t->rank, dim), *gen_fact(v));
	set_dims(g, v, "permutation", p, t->rank);
	return true;
}

bool gen_reverse(struct gen *g)
{
	struct tc_value *v = gen_pick(g, has_rank, NULL);
	int64_t dims[GEN_RANK];
	unsigned n;

	if (!v)
		return false;
	n = 1 + gen_below(g, v->type->rank);
	gen_subset(g, n, v->type->rank, dims);
	v = gen_op1(g, TC_REVERSE, 1, &v, v->type, *gen_fact(v));
	set_dims(g, v, "dimensions", dims, n);
	return true;
}

bool gen_slice(struct gen *g)
{
	struct tc_value *v = gen_pick(g, has_rank, NULL);
	int64_t start[GEN_RANK], limit[GEN_RANK], step[GEN_RANK], dim[GEN_RANK];
	const struct tc_type *t;

	if (!v)
		return false;
	t = v->type;
	for (unsigned d = 0; d < t->rank; d++) {
		start[d] = 0;
		limit[d] = t->dim[d];
		step[d] = 1;
		if (!gen_one_in(g, 3)) {
			start[d] = gen_between(g, 0, t->dim[d] / (gen_one_in(g, 2) ? 1 : 4));
			limit[d] = gen_between(g, start[d], t->dim[d]);
			if (limit[d] == start[d] && limit[d] < t->dim[d])
				limit[d]++;
			if (gen_one_in(g, 2))
				limit[d] = t->dim[d];
		}
		if (gen_one_in(g, 3))
			step[d] = gen_between(g, 1, 4);
		dim[d] = (limit[d] - start[d] + step[d] - 1) / step[d];
	}
	v = gen_op1(g, TC_SLICE, 1, &v, gen_type(g, t->elem, t->rank, dim), *gen_fact(v));
	set_dims(g, v, "start_indices", start, t->rank);
	set_dims(g, v, "limit_indices", limit, t->rank);
	set_dims(g, v, "strides", step, t->rank);
	return true;
}

/* n into factors, in up to GEN_RANK dims. */
static unsigned factors(struct gen *g, int64_t n, int64_t *dim)
{
	unsigned rank = 0;

	while (rank < 4 && !gen_one_in(g, 3)) {
		int64_t f = gen_between(g, 1, 8);

		if (n % f)
			continue;
		dim[rank++] = f;
		n /= f;
	}
	dim[rank++] = n;
	for (unsigned i = 0; i < rank; i++) {
		unsigned k = gen_below(g, rank);
		int64_t t = dim[i];

		dim[i] = dim[k];
		dim[k] = t;
	}
	return rank;
}

bool gen_reshape(struct gen *g)
{
	struct tc_value *v = gen_pick_any(g), *like = gen_pick_any(g);
	int64_t dim[GEN_RANK];
	unsigned rank;

	if (!v)
		return false;
	if (!v->type->count) {
		rank = 1;
		dim[0] = 0;
	} else if (like->type->count == v->type->count && like->type->rank != v->type->rank) {
		rank = like->type->rank;
		memcpy(dim, like->type->dim, rank * sizeof(*dim));
	} else {
		rank = factors(g, v->type->count, dim);
		rank = v->type->count == 1 && gen_one_in(g, 2) ? 0 : rank;
	}
	gen_op1(g, TC_RESHAPE, 1, &v, gen_type(g, v->type->elem, rank, dim), *gen_fact(v));
	return true;
}

struct part { const struct tc_type *type; unsigned d; };

static bool is_like(const struct tc_value *v, const void *arg)
{
	const struct part *p = arg;

	if (v->type->is_tuple || v->type->elem != p->type->elem ||
	    v->type->rank != p->type->rank)
		return false;
	for (unsigned d = 0; d < v->type->rank; d++)
		if (d != p->d && v->type->dim[d] != p->type->dim[d])
			return false;
	return true;
}

bool gen_concatenate(struct gen *g)
{
	struct tc_value *in[6] = { gen_pick(g, has_rank, NULL) }, *v;
	unsigned n = 1 + gen_below(g, 4);
	int64_t dim[GEN_RANK];
	struct part p;
	struct fact f;

	if (!in[0])
		return false;
	p = (struct part){ in[0]->type, gen_below(g, in[0]->type->rank) };
	f = *gen_fact(in[0]);
	memcpy(dim, p.type->dim, p.type->rank * sizeof(*dim));
	for (unsigned i = 1; i < n; i++) {
		in[i] = gen_pick(g, is_like, &p);
		dim[p.d] += in[i]->type->dim[p.d];
		f = fact_join(f, *gen_fact(in[i]));
	}
	if (f.kind == FACT_DISTINCT)
		f.kind = FACT_BITS;
	if (!gen_is_small(g, p.type->rank, dim))
		return false;
	v = gen_op1(g, TC_CONCATENATE, n, in, gen_type(g, p.type->elem, p.type->rank, dim), f);
	tc_set_int(g->c, v->def, "dimension", TC_ATTR_INT, p.d);
	return true;
}

bool gen_pad(struct gen *g)
{
	struct tc_value *in[2] = { gen_pick(g, has_rank, NULL) };
	int64_t low[GEN_RANK], high[GEN_RANK], inner[GEN_RANK], dim[GEN_RANK], size;
	const struct tc_type *t;
	struct tc_value *v;

	if (!in[0])
		return false;
	t = in[0]->type;
	for (unsigned d = 0; d < t->rank; d++) {
		inner[d] = gen_one_in(g, 3) ? gen_between(g, 1, 3) : 0;
		size = t->dim[d] + (t->dim[d] ? (t->dim[d] - 1) * inner[d] : 0);
		low[d] = gen_one_in(g, 2) ? gen_between(g, -4, 5) : 0;
		high[d] = gen_one_in(g, 2) ? gen_between(g, -4, 5) : 0;
		while (size + low[d] + high[d] < 0) {
			low[d] += low[d] < 0;
			high[d] += high[d] < 0;
		}
		dim[d] = size + low[d] + high[d];
	}
	if (!gen_is_small(g, t->rank, dim))
		return false;
	in[1] = gen_value(g, gen_type(g, t->elem, 0, NULL), gen_any_fact(g, t->elem));
	v = gen_op1(g, TC_PAD, 2, in, gen_type(g, t->elem, t->rank, dim),
		    fact_join(*gen_fact(in[0]), *gen_fact(in[1])));
	set_dims(g, v, "edge_padding_low", low, t->rank);
	set_dims(g, v, "edge_padding_high", high, t->rank);
	set_dims(g, v, "interior_padding", inner, t->rank);
	return true;
}

/* Starts for each dim of t: all of one type, as JAX has them. */
static void starts(struct gen *g, const struct tc_type *t, struct tc_value **out)
{
	unsigned elem = 0;

	for (unsigned d = 0; d < t->rank; d++) {
		out[d] = gen_index(g, elem, t->dim[d]);
		elem = out[d]->type->elem;
	}
}

bool gen_dynamic_slice(struct gen *g)
{
	struct tc_value *in[1 + GEN_RANK] = { gen_pick_any(g) };
	const struct tc_type *t;
	int64_t dim[GEN_RANK];
	struct tc_value *v;

	if (!in[0])
		return false;
	t = in[0]->type;
	for (unsigned d = 0; d < t->rank; d++)
		dim[d] =
			gen_one_in(g, 3) ? t->dim[d] : gen_between(g, t->dim[d] > 0, t->dim[d]);
	if (in[0]->def && in[0]->def->op == TC_DYNAMIC_SLICE)
		gen_not_for_jax(g);
	starts(g, t, in + 1);
	v = gen_op1(g, TC_DYNAMIC_SLICE, 1u + t->rank, in, gen_type(g, t->elem, t->rank, dim),
		    *gen_fact(in[0]));
	set_dims(g, v, "slice_sizes", dim, t->rank);
	return true;
}

static bool fits_into(const struct tc_value *v, const void *arg)
{
	const struct tc_type *t = arg;

	if (v->type->is_tuple || v->type->elem != t->elem || v->type->rank != t->rank)
		return false;
	for (unsigned d = 0; d < t->rank; d++)
		if (v->type->dim[d] > t->dim[d])
			return false;
	return true;
}

bool gen_dynamic_update(struct gen *g)
{
	struct tc_value *in[2 + GEN_RANK] = { gen_pick_any(g) };
	const struct tc_type *t;

	if (!in[0])
		return false;
	t = in[0]->type;
	in[1] = gen_pick(g, fits_into, t);
	starts(g, t, in + 2);
	gen_op1(g, TC_DYNAMIC_UPDATE_SLICE, 2u + t->rank, in, t,
		fact_join(*gen_fact(in[0]), *gen_fact(in[1])));
	return true;
}

bool gen_dimension_size(struct gen *g)
{
	struct tc_value *v = gen_pick(g, has_rank, NULL);
	unsigned d;

	if (gen_one_in(g, 4)) {
		gen_op1(g, gen_one_in(g, 2) ? TC_PARTITION_ID : TC_REPLICA_ID, 0, NULL,
			gen_type(g, ELEM_U32, 0, NULL), FACT(FACT_RANGE, false, 0, 0));
		return true;
	}
	if (!v)
		return false;
	d = gen_below(g, v->type->rank);
	v = gen_op1(g, TC_GET_DIMENSION_SIZE, 1, &v, gen_type(g, ELEM_S32, 0, NULL),
		    FACT(FACT_RANGE, false, v->type->dim[d], v->type->dim[d]));
	tc_set_int(g->c, v->def, "dimension", TC_ATTR_INT, d);
	return true;
}
