/* SPDX-License-Identifier: Apache-2.0 */
/* What rules make programs with: choice, values, ops, regions. */
#include "tests/fuzz_ops/gen.h"

/* ---- choice ---- */

/* Types by how often programs have them: all of them, some much oftener. */
unsigned gen_any_elem(struct gen *g)
{
	static const uint8_t often[] = { ELEM_F32,  ELEM_F32, ELEM_F32, ELEM_S32, ELEM_S32,
					 ELEM_BF16, ELEM_F16, ELEM_F64, ELEM_S64, ELEM_U8,
					 ELEM_U32,  ELEM_S8,  ELEM_C64, ELEM_PRED };
	unsigned e;

	if (gen_below(g, 5) < 3)
		return often[gen_below(g, sizeof(often))];
	do {
		e = 1 + gen_below(g, ELEM_COUNT - 1);
	} while (e == ELEM_TOKEN);
	return e;
}

unsigned gen_elem(struct gen *g)
{
	return gen_one_in(g, 16) ? gen_any_elem(g) : g->elems[gen_below(g, g->n_elems)];
}

int64_t gen_dim(struct gen *g)
{
	return g->dims[gen_below(g, g->n_dims)];
}

void gen_sample(struct gen *g, unsigned n, unsigned limit, int64_t *out)
{
	int64_t all[64];

	for (unsigned i = 0; i < limit; i++)
		all[i] = i;
	for (unsigned i = 0; i < n; i++) {
		unsigned k = i + gen_below(g, limit - i);
		int64_t t = all[k];

		all[k] = all[i];
		out[i] = all[i] = t;
	}
}

void gen_subset(struct gen *g, unsigned n, unsigned limit, int64_t *out)
{
	gen_sample(g, n, limit, out);
	for (unsigned i = 1; i < n; i++)
		for (unsigned k = i; k && out[k - 1] > out[k]; k--) {
			int64_t t = out[k];

			out[k] = out[k - 1];
			out[k - 1] = t;
		}
}

/* ---- values ---- */

const struct tc_type *gen_type(struct gen *g, unsigned elem, unsigned rank, const int64_t *dim)
{
	return tc_tensor(g->c, (enum elem)elem, rank, dim);
}

const struct tc_type *gen_same_dims(struct gen *g, unsigned elem, const struct tc_type *t)
{
	return tc_tensor(g->c, (enum elem)elem, t->rank, t->dim);
}

void gen_forget(struct gen *g, const struct tc_value *v)
{
	for (unsigned i = g->base; i < g->n_pool; i++)
		if (g->pool[i] == v)
			g->pool[i] = g->pool[--g->n_pool];
}

bool gen_is_small(const struct gen *g, unsigned rank, const int64_t *dim)
{
	int64_t n = 1;

	for (unsigned d = 0; d < rank; d++) {
		if (dim[d] > g->most / n)
			return false;
		n *= dim[d] ? dim[d] : 1;
	}
	return true;
}

void gen_set_fact(struct gen *g, struct tc_value *v, struct fact f)
{
	struct fact *own = arena_array(&g->c->arena, 1, sizeof(*own));

	if (own)
		*own = f;
	v->side = own;
}

static void join_pool(struct gen *g, struct tc_value *v)
{
	if (g->n_pool < GEN_POOL)
		g->pool[g->n_pool++] = v;
}

struct tc_value *gen_pick(struct gen *g, bool (*fn)(const struct tc_value *v, const void *arg),
			  const void *arg)
{
	struct tc_value *fit[GEN_POOL];
	unsigned n = 0, i;

	/* What is compared by the largest of its array is for the end only: a part of it
	 * may lack that element. */
	for (i = g->base; i < g->n_pool; i++)
		if (gen_fact(g->pool[i])->kind != FACT_NORM && fn(g->pool[i], arg))
			fit[n++] = g->pool[i];
	if (!n)
		return NULL;
	i = gen_below(g, n);
	if (gen_one_in(g, 2)) {
		unsigned k = gen_below(g, n);

		i = k > i ? k : i;
	}
	return fit[i];
}

bool gen_is_tensor(const struct tc_value *v, const void *arg)
{
	(void)arg;
	return !v->type->is_tuple && v->type->elem != ELEM_TOKEN;
}

struct tc_value *gen_pick_any(struct gen *g)
{
	return gen_pick(g, gen_is_tensor, NULL);
}

static bool has_type(const struct tc_value *v, const void *arg)
{
	return v->type == arg;
}

struct tc_value *gen_pick_type(struct gen *g, const struct tc_type *t)
{
	return gen_pick(g, has_type, t);
}

struct fact gen_any_fact(struct gen *g, unsigned elem)
{
	struct fact f = { 0 };
	int64_t reach = fact_reach(elem);

	if (!gen_is_float(elem) && !gen_is_complex(elem))
		return gen_one_in(g, 3) && elem_bits(elem) > 4 ?
			       FACT(FACT_RANGE, false,
				    elem_class(elem) == ELEM_CLASS_SINT ? -3 : 0, 7) :
			       FACT(FACT_BITS, false, 0, 0);
	if (!reach || (gen_one_in(g, 10) && elem_bits(elem) >= 4))
		return FACT(FACT_ANY, false, 0, 0);
	if (gen_one_in(g, 8))
		return FACT(FACT_SPECIAL, false, 0, 0);
	f = FACT(FACT_WHOLE, false, -1, 1);
	f.hi = gen_one_in(g, 4) ? 1 : gen_one_in(g, 2) ? 3 : 7;
	if (f.hi > reach)
		f.hi = reach;
	f.lo = gen_one_in(g, 5) ? 0 : -f.hi;
	return f;
}

struct tc_value *gen_constant(struct gen *g, const struct tc_type *t, struct fact f)
{
	struct tc_attr a = { .key = TC_KEY(g->c, "value"), .kind = TC_ATTR_DENSE, .type = t };
	bool is_splat = t->count != 1 && gen_one_in(g, 3) && f.kind != FACT_DISTINCT;
	int64_t n = is_splat ? 1 : t->count;
	struct tc_value *v;
	void *data = arena_array(&g->c->arena, (size_t)n + 1, elem_bytes(t->elem));

	if (!data)
		tc_fail(g->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	fact_fill(f, t->elem, fuzz_next(&g->rng), data, n);
	a.data = data;
	a.is_splat = is_splat && t->count;
	v = gen_op1(g, TC_CONSTANT, 0, NULL, t, f);
	tc_set_attr(g->c, v->def, a);
	return v;
}

static bool iota_is_within(const struct tc_type *t, unsigned d, struct fact f)
{
	int64_t last = t->dim[d] - 1, reach = fact_reach(t->elem);

	if (t->elem == ELEM_PRED || gen_is_complex(t->elem))
		return false;
	if (gen_is_float(t->elem))
		return f.kind == FACT_WHOLE && f.lo <= 0 && last <= f.hi && last <= reach;
	/* Past the type's last number they begin again. */
	return f.kind == FACT_BITS || (f.kind == FACT_RANGE && f.lo <= 0 && last <= f.hi);
}

struct tc_value *gen_source(struct gen *g, const struct tc_type *t, struct fact f)
{
	unsigned d = gen_below(g, t->rank);
	struct tc_value *v;

	if (t->rank && gen_one_in(g, 6) && iota_is_within(t, d, f)) {
		v = gen_op1(g, TC_IOTA, 0, NULL, t, f);
		tc_set_int(g->c, v->def, "iota_dimension", TC_ATTR_INT, d);
		return v;
	}
	if (g->isolated || g->func->regions[0].block->n_args >= 12 ||
	    (t->count <= 256 && gen_one_in(g, 3)))
		return gen_constant(g, t, f);
	v = tc_new_arg(g->c, g->func->regions[0].block, t);
	gen_set_fact(g, v, f);
	join_pool(g, v);
	return v;
}

struct want { const struct tc_type *type; struct fact fact; };

static bool is_wanted(const struct tc_value *v, const void *arg)
{
	const struct want *w = arg;

	return v->type == w->type && fact_within(*gen_fact(v), w->fact);
}

struct tc_value *gen_value(struct gen *g, const struct tc_type *t, struct fact f)
{
	struct want w = { t, f };
	struct tc_value *v = gen_one_in(g, 8) ? NULL : gen_pick(g, is_wanted, &w);

	return v ? v : gen_source(g, t, f);
}

static struct tc_value *bound(struct gen *g, const struct tc_type *t, int64_t x)
{
	char kind = gen_is_float(t->elem) ? FACT_WHOLE : FACT_RANGE;

	return gen_constant(g, gen_type(g, t->elem, 0, NULL), FACT(kind, false, x, x));
}

struct tc_value *gen_fit(struct gen *g, struct tc_value *v, struct fact f)
{
	struct fact has = *gen_fact(v);
	struct tc_value *in[3];

	if (fact_within(has, f))
		return v;
	if (gen_is_complex(v->type->elem) || v->type->elem == ELEM_PRED ||
	    (f.kind != FACT_RANGE && f.kind != FACT_WHOLE) || (has.open && !f.open) ||
	    (f.kind == FACT_WHOLE && has.kind != FACT_WHOLE))
		return NULL;
	in[0] = bound(g, v->type, f.lo);
	in[1] = v;
	in[2] = bound(g, v->type, f.hi);
	return gen_op1(g, TC_CLAMP, 3, in, v->type, f);
}

static bool is_scalar_int(const struct tc_value *v, const void *arg)
{
	const unsigned *elem = arg;

	return !v->type->is_tuple && !v->type->rank && gen_is_int(v->type->elem) &&
	       (!*elem || v->type->elem == *elem);
}

void gen_taken_as_index(struct gen *g, unsigned elem, struct fact f)
{
	bool is_high = f.kind != FACT_RANGE || f.hi >> (elem_bits(elem) - 1);

	if (elem_class(elem) == ELEM_CLASS_UINT && is_high)
		gen_not_for_jax(g);
}

struct tc_value *gen_index(struct gen *g, unsigned elem, int64_t limit)
{
	static const uint8_t elems[] = { ELEM_S32, ELEM_S32, ELEM_S64, ELEM_U32, ELEM_U64,
					 ELEM_U8,  ELEM_S8,  ELEM_S16, ELEM_U16 };
	struct tc_value *v = gen_one_in(g, 3) ? NULL : gen_pick(g, is_scalar_int, &elem);
	struct fact f = FACT(FACT_BITS, false, 0, 0), all;

	if (v) {
		gen_taken_as_index(g, v->type->elem, *gen_fact(v));
		return v;
	}
	if (!elem)
		elem = elems[gen_below(g, sizeof(elems))];
	all = fact_of_type(elem);
	if (!gen_one_in(g, 4))
		f = FACT(FACT_RANGE, false, gen_one_in(g, 4) && all.lo < 0 ? -2 : 0,
				   limit < 1 ? 1 : limit > all.hi ? all.hi : limit);
	if (elem_bits(elem) < 8)
		f = FACT(FACT_BITS, false, 0, 0);
	gen_taken_as_index(g, elem, f);
	return gen_source(g, gen_type(g, elem, 0, NULL), f);
}

/* ---- ops and regions ---- */

struct tc_op *gen_op(struct gen *g, enum tc_opcode code, unsigned n_operands,
		     struct tc_value *const *operands, unsigned n_results,
		     const struct tc_type *const *types, const struct fact *facts,
		     unsigned n_regions)
{
	struct tc_op *op =
		tc_new(g->c, code, n_operands, operands, n_results, types, n_regions);

	tc_append(g->b, op);
	for (unsigned i = 0; i < n_results; i++) {
		struct fact f = facts[i];

		/* moved, it is no permutation any more */
		if (f.kind == FACT_DISTINCT && code != TC_CONSTANT)
			f = FACT(FACT_BITS, false, 0, 0);
		gen_set_fact(g, tc_out(op, i), f);
		join_pool(g, tc_out(op, i));
	}
	g->n_ops++;
	return op;
}

struct tc_value *gen_op1(struct gen *g, enum tc_opcode op, unsigned n,
			 struct tc_value *const *operands, const struct tc_type *t,
			 struct fact f)
{
	return tc_out(gen_op(g, op, n, operands, 1, &t, &f, 0), 0);
}

struct gen_place gen_enter(struct gen *g, struct tc_op *op, unsigned r)
{
	struct gen_place place = { .b = g->b, .base = g->base, .scalars = g->scalars,
				   .isolated = g->isolated };

	/* the op's own results, always the last, are not there yet */
	while (g->n_pool && g->pool[g->n_pool - 1]->def == op)
		g->n_pool--;
	place.n_pool = g->n_pool;
	op->regions[r].parent = op;
	g->b = tc_new_block(g->c, &op->regions[r]);
	return place;
}

void gen_isolate(struct gen *g, bool scalars)
{
	g->base = g->n_pool;
	g->isolated = true;
	g->scalars += scalars;
}

struct tc_value *gen_block_arg(struct gen *g, const struct tc_type *t, struct fact f)
{
	struct tc_value *v = tc_new_arg(g->c, g->b, t);

	gen_set_fact(g, v, f);
	join_pool(g, v);
	return v;
}

/* What main takes is there outside of the region too, though it was made inside. */
static void keep_arguments(struct gen *g, unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++)
		if (!g->pool[i]->def && g->pool[i]->block == g->func->regions[0].block)
			join_pool(g, g->pool[i]);
}

void gen_leave(struct gen *g, struct gen_place place, unsigned n,
	       struct tc_value *const *values)
{
	struct tc_op *end = tc_new(g->c, TC_RETURN, n, values, 0, NULL, 0);
	struct tc_op *op = g->b->region->parent;
	unsigned last = g->n_pool;

	tc_append(g->b, end);
	g->b = place.b;
	g->base = place.base;
	g->n_pool = place.n_pool;
	keep_arguments(g, g->n_pool, last);
	for (unsigned i = 0; i < op->n_results; i++)
		join_pool(g, tc_out(op, i));
	g->scalars = place.scalars;
	g->isolated = place.isolated;
}

void gen_not_for_jax(struct gen *g)
{
	tc_set_str(g->c, g->c->module, "sym_name", "not_for_jax");
}

void gen_some(struct gen *g, unsigned n)
{
	unsigned end = g->n_ops + n;

	for (unsigned tries = 0; g->n_ops < end && g->n_ops < g->budget && tries < 20 * n;
	     tries++)
		g->draw(g);
}
