/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gather and scatter of the reference evaluator. Both join a table and an array of
 * pieces (gather's result, scatter's updates) by one rule: a position of the pieces
 * names a position of the table. locate() is that rule. Gather moves a window that
 * sticks out back inside. Scatter leaves such a window out, the whole of it: XLA does
 * so and JAX relies on it, though StableHLO's specification would keep the elements
 * that are inside.
 */
#include <string.h>

#include "runtime/compiler/eval/eval.h"

struct rule {
	const struct tc_type *table;
	struct eval_array *indices;
	const int64_t *window_dims, *absent, *table_batch, *index_batch, *map;
	const int64_t *wrap;		/* of each component, or NULL */
	unsigned n_window, n_absent, n_batch, n_map;
	int64_t vector;			/* the dim of `indices` that holds a position */
	int64_t size[TC_MAX_RANK];	/* of the window, in the table's dims */
	bool clamps;
};

/* Whether dim d of the table has a dim of its own among the pieces'. */
static bool is_window(const struct rule *r, unsigned d)
{
	return !tc_eval_has(r->absent, r->n_absent, d) &&
	       !tc_eval_has(r->table_batch, r->n_batch, d);
}

static struct rule read_rule(const struct tc_op *op, const struct tc_type *table,
			     struct eval_array *indices, const struct tc_type *pieces)
{
	bool gathers = op->op == TC_GATHER;
	struct rule r = { .table = table, .indices = indices,
			  .clamps = gathers && !tc_attr(op, "fill") };
	unsigned n, w = 0;

	r.window_dims = tc_attr_ints(op, gathers ? "offset_dims" : "update_window_dims",
				     &r.n_window);
	r.absent = tc_attr_ints(op, gathers ? "collapsed_slice_dims" :
				"inserted_window_dims", &r.n_absent);
	r.table_batch = tc_attr_ints(op, gathers ? "operand_batching_dims" :
				     "input_batching_dims", &r.n_batch);
	r.index_batch = tc_attr_ints(op, gathers ? "start_indices_batching_dims" :
				     "scatter_indices_batching_dims", &n);
	r.map = tc_attr_ints(op, gathers ? "start_index_map" :
			     "scatter_dims_to_operand_dims", &r.n_map);
	r.vector = tc_attr_int(op, "index_vector_dim", 0);
	r.wrap = tc_attr_ints(op, "wrap", &n);
	for (unsigned d = 0; d < table->rank; d++)
		r.size[d] = is_window(&r, d) ? pieces->dim[r.window_dims[w++]] : 1;
	return r;
}

/* Where the window begins in dim d of the table. False: it is left out. */
static bool place(const struct rule *r, int64_t d, int64_t *start)
{
	int64_t most = r->table->dim[d] - r->size[d];
	bool is_inside = *start >= 0 && *start <= most;

	if (!is_inside)
		*start = *start < 0 ? 0 : most;
	return is_inside || (r->clamps && most >= 0);
}

/* The position in the table of position idx of the pieces. False: there is none. */
static bool locate(const struct rule *r, unsigned rank, const int64_t *idx, int64_t *at)
{
	int64_t where[TC_MAX_RANK + 1] = { 0 }, start[TC_MAX_RANK] = { 0 };
	const struct tc_type *t = r->indices->type;
	unsigned b = 0, w = 0;

	/* The dims that are no window are those of the indices, without the vector. */
	for (unsigned d = 0; d < rank; d++)
		if (!tc_eval_has(r->window_dims, r->n_window, d)) {
			b += b == r->vector;
			where[b++] = idx[d];
		}
	for (unsigned k = 0; k < r->n_map; k++) {
		int64_t d = r->map[k];

		if (r->vector < t->rank)
			where[r->vector] = k;
		start[d] = tc_num_index(t->elem, tc_eval_at(r->indices,
							    tc_eval_linear(t, where)));
		if (r->wrap && start[d] < 0)
			start[d] += r->wrap[k];
		if (!place(r, d, &start[d]))
			return false;
	}
	for (unsigned i = 0; i < r->n_batch; i++)
		start[r->table_batch[i]] = where[r->index_batch[i]];
	for (unsigned d = 0; d < r->table->rank; d++)
		at[d] = start[d] + (is_window(r, d) ? idx[r->window_dims[w++]] : 0);
	return true;
}

void tc_eval_gather(struct eval *e, const struct tc_op *op)
{
	struct eval_array *table = tc_eval_in(e, op, 0), *out = tc_eval_out(e, op, 0);
	const struct tc_type *t = out->type;
	struct rule r = read_rule(op, table->type, tc_eval_in(e, op, 1), t);
	int64_t idx[TC_MAX_RANK] = { 0 }, at[TC_MAX_RANK];
	const struct tc_attr *fill = tc_attr(op, "fill");

	for (int64_t i = 0; i < t->count; i++) {
		const void *from = fill ? fill->data : NULL;

		if (locate(&r, t->rank, idx, at))
			from = tc_eval_at(table, tc_eval_linear(table->type, at));
		else if (!fill)
			EVAL_BAD(e, "it reads outside its operand");
		memcpy(tc_eval_at(out, i), from, elem_bytes(t->elem));
		tc_eval_step(t->rank, t->dim, idx);
	}
}

void tc_eval_scatter(struct eval *e, const struct tc_op *op)
{
	unsigned n = op->n_results;
	struct eval_array **out = tc_eval_scratch(e, n, sizeof(*out));
	struct eval_array **updates = tc_eval_scratch(e, n, sizeof(*updates));
	const struct tc_type *t = tc_in(op, n + 1)->type;
	struct rule r = read_rule(op, tc_in(op, 0)->type, tc_eval_in(e, op, n), t);
	int64_t idx[TC_MAX_RANK] = { 0 }, at[TC_MAX_RANK];
	const void **in = tc_eval_scratch(e, n, 2 * sizeof(*in));
	void **to = tc_eval_scratch(e, n, sizeof(*to));

	for (unsigned j = 0; j < n; j++) {
		out[j] = tc_eval_out(e, op, j);
		memcpy(out[j]->data, tc_eval_in(e, op, j)->data, out[j]->bytes);
		updates[j] = tc_eval_in(e, op, n + 1 + j);
	}
	for (int64_t i = 0; i < t->count; i++) {
		if (locate(&r, t->rank, idx, at)) {
			int64_t k = tc_eval_linear(r.table, at);

			for (unsigned j = 0; j < n; j++) {
				in[j] = to[j] = tc_eval_at(out[j], k);
				in[n + j] = tc_eval_at(updates[j], i);
			}
			tc_eval_apply(e, op->regions[0].block, in, to);
		}
		tc_eval_step(t->rank, t->dim, idx);
	}
	tc_eval_release(e, to);
	tc_eval_release(e, in);
	tc_eval_release(e, updates);
	tc_eval_release(e, out);
}
