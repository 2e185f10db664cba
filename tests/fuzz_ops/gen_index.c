/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gather and scatter with dimension numbers of every form. Windows that collide in a scatter
 * get a body for which their order does not matter; a body that overwrites gets indices that
 * are all different.
 */
#include "tests/fuzz_ops/gen.h"

#include <string.h>

/* What both ops share. A dim of the table is batching, collapsed (of size 1) or in the window. */
struct numbers {
	const struct tc_type *table;
	int64_t tb[GEN_RANK], ib[GEN_RANK];	/* batching dims of table and indices */
	int64_t gone[GEN_RANK], sizes[GEN_RANK];
	int64_t map[GEN_RANK];
	int64_t vector;				/* index_vector_dim */
	int64_t window[2 * GEN_RANK];		/* places of window dims in the moved array */
	int64_t indices[2 * GEN_RANK], moved[2 * GEN_RANK];
	unsigned n_b, n_gone, n_map, n_window, n_indices, n_moved, n_batch;
};

static void choose_dims(struct gen *g, struct numbers *x)
{
	const struct tc_type *t = x->table;
	int64_t rest[GEN_RANK];
	unsigned n = 0;

	for (unsigned d = 0; d < t->rank; d++) {
		unsigned way = gen_below(g, 8);

		x->sizes[d] = t->dim[d] > 0;
		if (way == 0 && t->dim[d] && x->n_b < 2) {
			x->tb[x->n_b++] = d;
			continue;
		}
		rest[n++] = d;
		if (way < 4 && t->dim[d])
			x->gone[x->n_gone++] = d;
		else
			x->sizes[d] = gen_one_in(g, 2) ?
					      t->dim[d] :
					      gen_between(g, t->dim[d] > 0, t->dim[d]);
	}
	x->n_map = gen_below(g, n + 1);
	if (x->n_map < n && !gen_one_in(g, 4))
		x->n_map = n;
	gen_sample(g, x->n_map, n, x->map);
	for (unsigned i = 0; i < x->n_map; i++)
		x->map[i] = rest[x->map[i]];
}

static bool is_in(const int64_t *list, unsigned n, int64_t x)
{
	for (unsigned i = 0; i < n; i++)
		if (list[i] == x)
			return true;
	return false;
}

/* The indices' shape: batch dims, some of them batching, with the vector's dim among them. */
static void choose_indices(struct gen *g, struct numbers *x)
{
	int64_t batch[GEN_RANK], at[GEN_RANK];
	unsigned n = x->n_b + gen_below(g, 3), k = 0;
	bool implicit = x->n_map == 1 && gen_one_in(g, 3);

	for (unsigned i = 0; i < n; i++)
		batch[i] = gen_between(g, gen_one_in(g, 8) ? 0 : 1, 5);
	if (n && gen_one_in(g, 6) && g->most > 2000)
		batch[n - 1] = gen_dim(g);
	gen_sample(g, x->n_b, n, at);
	for (unsigned i = 0; i < x->n_b; i++)
		batch[at[i]] = x->table->dim[x->tb[i]];
	x->n_batch = n;
	x->vector = implicit ? n : gen_below(g, n + 1);
	for (unsigned i = 0; i < n + !implicit; i++)
		x->indices[x->n_indices++] =
			i == x->vector && !implicit ? x->n_map : batch[k++];
	for (unsigned i = 0; i < x->n_b; i++)
		x->ib[i] = at[i] + (!implicit && at[i] >= x->vector);
}

/* The moved array's shape: batch dims and window dims, each in their order. */
static void choose_moved(struct gen *g, struct numbers *x)
{
	unsigned w = 0, k = 0, d = 0;

	x->n_window = x->table->rank - x->n_b - x->n_gone;
	x->n_moved = x->n_batch + x->n_window;
	gen_subset(g, x->n_window, x->n_moved, x->window);
	for (unsigned i = 0; i < x->n_moved; i++) {
		if (is_in(x->window, x->n_window, i)) {
			while (is_in(x->gone, x->n_gone, d) || is_in(x->tb, x->n_b, d))
				d++;
			x->moved[i] = x->sizes[d++];
			w++;
		} else {
			k += k == x->vector;
			x->moved[i] = x->indices[k++];
		}
	}
	for (unsigned i = 0; i < x->n_b; i++)
		x->sizes[x->tb[i]] = 1;
}

static bool has_room(const struct tc_value *v, const void *arg)
{
	(void)arg;
	return !v->type->is_tuple && v->type->elem != ELEM_TOKEN && v->type->rank <= 4;
}

static bool choose(struct gen *g, struct numbers *x, const struct tc_value *table)
{
	*x = (struct numbers){ .table = table->type };
	choose_dims(g, x);
	choose_indices(g, x);
	choose_moved(g, x);
	return x->n_moved <= GEN_RANK && x->n_indices <= GEN_RANK &&
	       gen_is_small(g, x->n_moved, x->moved) &&
	       gen_is_small(g, x->n_indices, x->indices);
}

static struct tc_value *indices_of(struct gen *g, const struct numbers *x, bool distinct)
{
	static const uint8_t elems[] = { ELEM_S32, ELEM_S32, ELEM_S32, ELEM_S64, ELEM_U32,
					 ELEM_U64, ELEM_S8,  ELEM_U8,  ELEM_S16, ELEM_U16 };
	unsigned elem = elems[gen_below(g, sizeof(elems))];
	struct fact all, f = FACT(FACT_RANGE, false, 0, 1);
	int64_t most = 0;

	if (distinct)
		return gen_source(g, gen_type(g, ELEM_S32, x->n_indices, x->indices),
				  FACT(FACT_DISTINCT, false, 0, 0));
	for (unsigned i = 0; i < x->n_map; i++)
		most = x->table->dim[x->map[i]] > most ? x->table->dim[x->map[i]] : most;
	all = fact_of_type(elem);
	f.hi = most > all.hi ? all.hi : most;
	if (f.hi > 0 && !gen_one_in(g, 4))
		f.hi--;
	if (all.lo < 0 && gen_one_in(g, 4))
		f.lo = -2;
	if (gen_one_in(g, 8))
		f = FACT(FACT_BITS, false, 0, 0);
	gen_taken_as_index(g, elem, f);
	return gen_value(g, gen_type(g, elem, x->n_indices, x->indices), f);
}

bool gen_gather(struct gen *g)
{
	struct tc_value *in[2] = { gen_pick(g, has_room, NULL) };
	struct numbers x;
	struct tc_op *op;
	bool sorted = false;

	if (!in[0] || !choose(g, &x, in[0]))
		return false;
	in[1] = indices_of(g, &x, false);
	op = gen_op1(g, TC_GATHER, 2, in, gen_type(g, in[0]->type->elem, x.n_moved, x.moved),
		     *gen_fact(in[0]))->def;
	tc_set_ints(g->c, op, "offset_dims", x.window, x.n_window);
	tc_set_ints(g->c, op, "collapsed_slice_dims", x.gone, x.n_gone);
	tc_set_ints(g->c, op, "operand_batching_dims", x.tb, x.n_b);
	tc_set_ints(g->c, op, "start_indices_batching_dims", x.ib, x.n_b);
	tc_set_ints(g->c, op, "start_index_map", x.map, x.n_map);
	tc_set_int(g->c, op, "index_vector_dim", TC_ATTR_INT, x.vector);
	tc_set_ints(g->c, op, "slice_sizes", x.sizes, x.table->rank);
	tc_set_int(g->c, op, "indices_are_sorted", TC_ATTR_BOOL, sorted);
	return true;
}

static const uint8_t int_bodies[] = { TC_ADD, TC_MULTIPLY, TC_MAXIMUM, TC_MINIMUM,
				      TC_AND, TC_OR,	   TC_XOR };

/* A body that takes whatever order; 0: only one that overwrites. */
static unsigned body_for(struct gen *g, unsigned elem, struct fact table, struct fact update,
			 int64_t n, struct fact *out)
{
	unsigned op;

	if (!gen_is_float(elem) && !gen_is_complex(elem)) {
		op = int_bodies[gen_below(g, sizeof(int_bodies))];
		*out = FACT(FACT_BITS, false, 0, 0);
		if (elem == ELEM_PRED && (op == TC_ADD || op == TC_MULTIPLY))
			op = TC_OR;
		return op;
	}
	if (table.kind != FACT_WHOLE || update.kind != FACT_WHOLE)
		return 0;
	if (gen_is_float(elem) && gen_one_in(g, 2)) {
		*out = fact_join(table, update);
		return gen_one_in(g, 2) ? TC_MAXIMUM : TC_MINIMUM;
	}
	return gen_fact_of_sum(fact_join(table, update), elem, n + 1, out) ? TC_ADD : 0;
}

static void give_body(struct gen *g, struct tc_op *op, unsigned body, const struct tc_type *t)
{
	struct gen_place place = gen_enter(g, op, 0);
	struct tc_value *in[2], *v;
	struct fact any = FACT(FACT_BITS, false, 0, 0);

	gen_isolate(g, true);
	in[0] = gen_block_arg(g, t, any);
	in[1] = gen_block_arg(g, t, any);
	v = body ? gen_op1(g, (enum tc_opcode)body, 2, in, t, any) : in[1];
	gen_leave(g, place, 1, &v);
}

/* Whether each window has an index of its own: one number for each, of a dim that is cut to one. */
static bool can_be_distinct(const struct numbers *x)
{
	return x->n_map == 1 && !x->n_b && x->sizes[x->map[0]] == 1;
}

bool gen_scatter(struct gen *g)
{
	struct tc_value *in[3] = { gen_pick(g, has_room, NULL) };
	unsigned body, elem;
	struct numbers x;
	struct tc_op *op;
	struct fact f, update;
	bool distinct = false;
	int64_t n = 1;

	if (!in[0] || !choose(g, &x, in[0]))
		return false;
	elem = in[0]->type->elem;
	for (unsigned i = 0; i < x.n_moved; i++)
		n *= x.moved[i];
	in[2] = gen_value(g, gen_type(g, elem, x.n_moved, x.moved), gen_any_fact(g, elem));
	update = *gen_fact(in[2]);
	body = body_for(g, elem, *gen_fact(in[0]), update, n, &f);
	if (!body || (can_be_distinct(&x) && gen_one_in(g, 2))) {
		if (!can_be_distinct(&x))
			return false;
		distinct = true;
		body = 0;
		f = fact_join(*gen_fact(in[0]), update);
	}
	/* without index components, the CPU backend applies one window only */
	if (!x.n_map)
		gen_not_for_jax(g);
	in[1] = indices_of(g, &x, distinct);
	op = gen_op(g, TC_SCATTER, 3, in, 1, &in[0]->type, &f, 1);
	tc_set_ints(g->c, op, "update_window_dims", x.window, x.n_window);
	tc_set_ints(g->c, op, "inserted_window_dims", x.gone, x.n_gone);
	tc_set_ints(g->c, op, "input_batching_dims", x.tb, x.n_b);
	tc_set_ints(g->c, op, "scatter_indices_batching_dims", x.ib, x.n_b);
	tc_set_ints(g->c, op, "scatter_dims_to_operand_dims", x.map, x.n_map);
	tc_set_int(g->c, op, "index_vector_dim", TC_ATTR_INT, x.vector);
	tc_set_int(g->c, op, "indices_are_sorted", TC_ATTR_BOOL, 0);
	tc_set_int(g->c, op, "unique_indices", TC_ATTR_BOOL, distinct && gen_one_in(g, 2));
	give_body(g, op, body, gen_type(g, elem, 0, NULL));
	return true;
}
