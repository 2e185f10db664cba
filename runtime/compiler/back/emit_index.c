/* SPDX-License-Identifier: Apache-2.0 */
/* gather, scatter and sort. */
#include <string.h>

#include "runtime/compiler/back/emit.h"

bool tc_emit_is_index(unsigned op)
{
	return op == TC_GATHER || op == TC_SCATTER || op == TC_SORT;
}

/* What gather and scatter share: how a table is walked by index vectors. */
struct walk {
	unsigned n_batch, rank, n_index;
	int64_t dim[ISA_MAX_RANK];
	int64_t table[ISA_MAX_RANK], index[ISA_MAX_RANK], window[ISA_MAX_RANK];
	int64_t index_stride;
	struct isa_index comp[ISA_MAX_INDEX];
};

struct names { const char *window, *collapsed, *table_batch, *index_batch, *map; };

/*
 * `moved` is the array beside the table: gather's result or scatter's updates.
 * sizes[d] is the extent of the window in table dim d.
 */
static void plan_walk(struct emit *e, const struct tc_op *op, const struct names *names,
		      const struct tc_type *table, const struct home *th,
		      const struct tc_type *indices, const struct home *ih,
		      const struct tc_type *moved,
		      const struct home *mh, struct walk *w)
{
	unsigned n_window, n_collapsed, n_tb, n_ib, n_map, n_wrap, k = 0;
	unsigned in_window = 0;
	const int64_t *window = tc_attr_ints(op, names->window, &n_window);
	const int64_t *collapsed = tc_attr_ints(op, names->collapsed, &n_collapsed);
	const int64_t *tb = tc_attr_ints(op, names->table_batch, &n_tb);
	const int64_t *ib = tc_attr_ints(op, names->index_batch, &n_ib);
	const int64_t *map = tc_attr_ints(op, names->map, &n_map);
	const int64_t *wrap = tc_attr_ints(op, "wrap", &n_wrap);
	int64_t vector = tc_attr_int(op, "index_vector_dim", 0);
	int64_t extent[TC_MAX_RANK];
	unsigned n = 0;

	for (unsigned d = 0; d < moved->rank; d++)
		n += !tc_is_listed(window, n_window, d) || moved->dim[d] != 1;
	if (n > ISA_MAX_RANK)
		tc_refuse_dims(e, "batch and window have together", n);
	/* Batch dims: those of moved that are no window dims; they are the dims of the
	 * indices but for the vector's, in order. */
	for (unsigned d = 0; d < moved->rank; d++) {
		if (tc_is_listed(window, n_window, d))
			continue;
		if (k == vector)
			k++;
		w->dim[w->rank] = moved->dim[d];
		w->window[w->rank] = moved->dim[d] > 1 ? mh->stride[d] : 0;
		w->index[w->rank] = moved->dim[d] > 1 ? ih->stride[k] : 0;
		for (unsigned i = 0; i < n_ib; i++)
			if (ib[i] == k && moved->dim[d] > 1)
				w->table[w->rank] = th->stride[tb[i]];
		w->rank++;
		k++;
	}
	w->n_batch = w->rank;
	for (unsigned d = 0; d < table->rank; d++) {
		int64_t m;

		extent[d] = 1;
		if (tc_is_listed(collapsed, n_collapsed, d) || tc_is_listed(tb, n_tb, d))
			continue;
		m = window[in_window++];
		extent[d] = moved->dim[m];
		if (extent[d] == 1)
			continue;
		w->dim[w->rank] = extent[d];
		w->window[w->rank] = mh->stride[m];
		w->table[w->rank++] = th->stride[d];
	}
	if (n_map > ISA_MAX_INDEX)
		tc_fail(e->c, ERR_UNIMPLEMENTED, op, "its indices have %u components, those of an "
			"instruction of the device at most %d: join the indexed dims by a reshape, "
			"and their indices by arithmetic", n_map, ISA_MAX_INDEX);
	w->n_index = n_map;
	w->index_stride = vector < indices->rank && n_map > 1 ? ih->stride[vector] : 0;
	for (unsigned i = 0; i < n_map; i++)
		w->comp[i] = (struct isa_index){ table->dim[map[i]] - extent[map[i]],
						 th->stride[map[i]],
						 i < n_wrap ? wrap[i] : 0 };
}

static void emit_gather(struct emit *e, const struct tc_op *op)
{
	static const struct names names = { "offset_dims", "collapsed_slice_dims",
		"operand_batching_dims", "start_indices_batching_dims", "start_index_map" };
	const struct tc_value *table = tc_in(op, 0), *indices = tc_in(op, 1);
	const struct tc_value *v = tc_out(op, 0);
	const struct home *to = tc_place(e, v), *th = tc_home(e, table);
	const struct tc_attr *fill = tc_attr(op, "fill");
	struct walk w = { 0 };
	struct isa_gather *g;

	plan_walk(e, op, &names, table->type, th, indices->type, tc_home(e, indices), v->type,
		  to, &w);
	if (!v->type->count)
		return;
	g = tc_put(e, ISA_GATHER, sizeof(*g));
	g->rank = (uint8_t)w.rank;
	g->n_batch = (uint8_t)w.n_batch;
	g->n_index = (uint8_t)w.n_index;
	g->index_stride = w.index_stride;
	for (unsigned i = 0; i < ISA_MAX_RANK; i++)
		g->dim[i] = i < w.rank ? w.dim[i] : 1;
	memcpy(g->index, w.comp, sizeof(g->index));
	g->src = tc_operand(th, table->type->elem);
	g->idx = tc_operand(tc_home(e, indices), indices->type->elem);
	g->dst = tc_operand(to, v->type->elem);
	memcpy(g->src.stride, w.table, sizeof(w.table));
	memcpy(g->idx.stride, w.index, sizeof(w.index));
	memcpy(g->dst.stride, w.window, sizeof(w.window));
	if (fill) {
		g->insn.flags |= ISA_FLAG_FILL;
		memcpy(g->fill, fill->data, elem_bytes(v->type->elem));
	}
	e->bytes += 2 * (double)v->type->bytes + (double)indices->type->bytes;
	e->cost_ns += (double)v->type->count;
}

/* Whether the arrays' index vectors step through all of them alike, in bytes. */
static bool steps_agree(const struct tc_op *op, const struct tc_type *const *types,
			const struct home *to)
{
	unsigned n;
	const int64_t *map = tc_attr_ints(op, "scatter_dims_to_operand_dims", &n);

	for (unsigned j = 1; j < op->n_results; j++)
		for (unsigned i = 0; i < n; i++)
			if (types[0]->dim[map[i]] > 1 &&
			    to[j].stride[map[i]] != to[0].stride[map[i]])
				return false;
	return true;
}

/*
 * A scatter has one list of steps for all of its arrays. Where theirs differ, as those of elements
 * of different widths do, it works on copies: each element takes as much room as the widest.
 * Sets where each array is to be for the instruction.
 */
static void spread_out(struct emit *e, unsigned k, const struct tc_type *const *types,
		       const struct home *to, struct home *at)
{
	const struct tc_type *wide = types[0];

	for (unsigned j = 1; j < k; j++)
		if (elem_bytes(types[j]->elem) > elem_bytes(wide->elem))
			wide = types[j];
	for (unsigned j = 0; j < k; j++) {
		at[j] = to[j];
		if (elem_bytes(types[j]->elem) == elem_bytes(wide->elem) &&
		    tc_is_dense(&to[j], types[j]))
			continue;
		at[j] = tc_scratch(e, wide);
		tc_copy_value(e, types[j], &to[j], &at[j]);
	}
}

static void emit_scatter(struct emit *e, const struct tc_op *op)
{
	static const struct names names = { "update_window_dims", "inserted_window_dims",
		"input_batching_dims", "scatter_indices_batching_dims",
		"scatter_dims_to_operand_dims" };
	unsigned k = op->n_results;
	const struct tc_value *indices = tc_in(op, k);
	const struct tc_block *region = op->regions[0].block;
	struct body *b = arena_alloc(&e->c->arena, sizeof(*b));
	const struct tc_type *types[ISA_MAX_SORT];
	struct home to[ISA_MAX_SORT], at[ISA_MAX_SORT], ih;
	struct isa_scatter *s;
	struct walk w;
	bool is_plain;

	if (!b)
		tc_fail(e->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	if (k > ISA_MAX_SORT)
		tc_refuse(e, "it scatters into more than 4 arrays together, by a body that does "
			  "not fall into parts");
	b->e = e;
	b->n_pre = b->n_in = b->n_out = k;
	for (unsigned j = 0; j < k; j++) {
		const struct tc_value *in = tc_in(op, j), *v = tc_out(op, j);

		types[j] = v->type;
		if (!tc_take_over(e, v, in, to, types, j, &to[j])) {
			to[j] = *tc_place(e, v);
			tc_copy_value(e, in->type, tc_home(e, in), &to[j]);
		}
	}
	ih = tc_out_of_the_way(e, indices, to, types, k);
	is_plain = steps_agree(op, types, to);
	if (is_plain)
		memcpy(at, to, sizeof(at));
	else
		spread_out(e, k, types, to, at);
	for (unsigned j = 0; j < k; j++) {
		const struct tc_value *in = tc_in(op, j), *update = tc_in(op, k + 1 + j);
		struct home from = tc_out_of_the_way(e, update, to, types, k);

		memset(&w, 0, sizeof(w));
		plan_walk(e, op, &names, in->type, &at[j], indices->type, &ih, update->type,
			  &from, &w);
		b->in[j] = tc_operand(&from, update->type->elem);
		b->out[j] = tc_operand(&at[j], in->type->elem);
		memcpy(b->in[j].stride, w.window, sizeof(w.window));
		memcpy(b->out[j].stride, w.table, sizeof(w.table));
		b->elems[j] = b->elems[k + j] = in->type->elem;
		tc_body_know(b, region->args[j], (uint8_t)j);
		tc_body_know(b, region->args[k + j], (uint8_t)(k + j));
		/* What it updates is read and written. */
		e->bytes += 3 * (double)update->type->bytes;
		e->cost_ns += (double)update->type->count * 4;
	}
	e->bytes += (double)indices->type->bytes;
	tc_body_region(b, region, (double)tc_in(op, k + 1)->type->count);
	for (unsigned j = 0; j < k; j++) {
		const struct tc_value *v = tc_in(region->last, j);
		int known = tc_body_find(b, v);

		if (known < 0 && v->def && v->def->op == TC_CONSTANT)
			known = tc_body_imm(b, v->type->elem, tc_attr(v->def, "value")->data);
		if (known < 0)
			tc_refuse(e, "its body yields a value from outside");
		b->out[j].value = (uint8_t)known;
	}
	if (!tc_in(op, k + 1)->type->count || !op->results[0].type->count)
		return;
	s = tc_put_body(e, ISA_SCATTER, sizeof(*s), offsetof(struct isa_scatter, body), b,
			w.rank, w.dim);
	s->n_batch = (uint8_t)w.n_batch;
	s->n_index = (uint8_t)w.n_index;
	s->index_stride = w.index_stride;
	memcpy(s->index, w.comp, sizeof(s->index));
	s->idx = tc_operand(&ih, indices->type->elem);
	memcpy(s->idx.stride, w.index, sizeof(w.index));
	if (tc_attr_int(op, "unique_indices", 0))
		s->insn.flags |= ISA_FLAG_UNIQUE;
	if (tc_attr_int(op, "indices_are_sorted", 0))
		s->insn.flags |= ISA_FLAG_SORTED;
	for (unsigned j = 0; j < k && !is_plain; j++)
		if (at[j].buf != to[j].buf)
			tc_copy_value(e, types[j], &at[j], &to[j]);
}

/* Comparisons an element, of merging n. */
static double steps_of(int64_t n)
{
	unsigned steps = 0;

	while (n > (int64_t)1 << steps)
		steps++;
	return steps;
}

static void emit_sort(struct emit *e, const struct tc_op *op)
{
	const struct tc_type *t = tc_in(op, 0)->type;
	const struct tc_block *region = op->regions[0].block;
	struct body *b = arena_alloc(&e->c->arena, sizeof(*b));
	int64_t d = tc_attr_int(op, "dimension", 0);
	unsigned k = op->n_results;
	struct isa_sort *s;
	int first;

	if (!b)
		tc_fail(e->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	if (k > ISA_MAX_SORT)
		tc_refuse(e, "it sorts more than 4 arrays together, by more than 3");
	if (t->rank > ISA_MAX_RANK)
		tc_refuse_dims(e, "it has", t->rank);
	b->e = e;
	/* The inputs add no values to the body: they are counted in n_pre alone. */
	b->n_pre = 2 * k;
	for (unsigned j = 0; j < k; j++) {
		const struct home *from = tc_home(e, tc_in(op, j));
		const struct home *to = tc_place(e, tc_out(op, j));
		unsigned elem = tc_in(op, j)->type->elem;

		b->in[j] = tc_operand(from, elem);
		b->out[j] = tc_operand(to, elem);
		for (unsigned i = 0; i < t->rank; i++) {
			b->in[j].stride[i] = t->dim[i] > 1 ? from->stride[i] : 0;
			b->out[j].stride[i] = t->dim[i] > 1 ? to->stride[i] : 0;
		}
		b->elems[2 * j] = b->elems[2 * j + 1] = (uint8_t)elem;
		tc_body_know(b, region->args[2 * j], (uint8_t)(2 * j));
		tc_body_know(b, region->args[2 * j + 1], (uint8_t)(2 * j + 1));
	}
	tc_body_region(b, region, (double)t->count * steps_of(t->dim[d]));
	tc_count_arrays(e, op);
	first = tc_body_find(b, tc_in(region->last, 0));
	if (first < 0)
		tc_refuse(e, "its comparator yields a constant");
	if (!t->count)
		return;
	b->n_in = b->n_out = k;
	s = tc_put_body(e, ISA_SORT, sizeof(*s), offsetof(struct isa_sort, body), b, t->rank,
			t->dim);
	s->sort_dim = (uint8_t)d;
	s->first = (uint8_t)first;
	if (tc_attr_int(op, "is_stable", 0))
		s->insn.flags |= ISA_FLAG_STABLE;
	e->cost_ns += (double)t->count * 40;
}

void tc_emit_index(struct emit *e, const struct tc_op *op)
{
	if (op->op == TC_GATHER)
		emit_gather(e, op);
	else if (op->op == TC_SCATTER)
		emit_scatter(e, op);
	else
		emit_sort(e, op);
}
