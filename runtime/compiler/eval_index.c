/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gather and scatter of the reference evaluator. Both join a table and an array of
 * pieces (gather's result, scatter's updates) by one rule: a position of the pieces
 * names a position of the table. locate() is that rule, as StableHLO's specification
 * states it; gather moves a window that sticks out back inside, scatter leaves out
 * the elements that fall outside.
 */
#include <string.h>

#include "runtime/compiler/eval.h"

struct rule {
	const struct tc_type *table;
	struct eval_array *indices;
	const int64_t *window_dims, *absent, *table_batch, *index_batch, *map;
	unsigned n_window, n_absent, n_batch, n_map;
	int64_t vector;			/* the dim of `indices` that holds a position */
	const int64_t *clamp;		/* sizes of the window to keep inside, or NULL */
};

static struct rule read_rule(const struct tc_op *op, const struct tc_type *table,
			     struct eval_array *indices)
{
	bool gathers = op->op == TC_GATHER;
	struct rule r = { .table = table, .indices = indices };
	unsigned n;

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
	r.clamp = gathers ? tc_attr_ints(op, "slice_sizes", &n) : NULL;
	return r;
}

/* The position in the table of position idx of the pieces. False: it is outside. */
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
		if (r->clamp) {
			int64_t most = r->table->dim[d] - r->clamp[d];

			start[d] = start[d] < 0 ? 0 : start[d] > most ? most : start[d];
		}
	}
	for (unsigned i = 0; i < r->n_batch; i++)
		start[r->table_batch[i]] = where[r->index_batch[i]];
	for (unsigned d = 0; d < r->table->rank; d++) {
		__int128 to = start[d];

		if (!tc_eval_has(r->absent, r->n_absent, d) &&
		    !tc_eval_has(r->table_batch, r->n_batch, d))
			to += idx[r->window_dims[w++]];
		if (to < 0 || to >= r->table->dim[d])
			return false;
		at[d] = (int64_t)to;
	}
	return true;
}

void tc_eval_gather(struct eval *e, const struct tc_op *op)
{
	struct eval_array *table = tc_eval_in(e, op, 0), *out = tc_eval_out(e, op, 0);
	struct rule r = read_rule(op, table->type, tc_eval_in(e, op, 1));
	const struct tc_type *t = out->type;
	int64_t idx[TC_MAX_RANK] = { 0 }, at[TC_MAX_RANK];

	for (int64_t i = 0; i < t->count; i++) {
		if (!locate(&r, t->rank, idx, at))
			EVAL_BAD(e, "it reads outside its operand");
		memcpy(tc_eval_at(out, i), tc_eval_at(table, tc_eval_linear(table->type, at)),
		       elem_bytes(t->elem));
		tc_eval_step(t->rank, t->dim, idx);
	}
}

void tc_eval_scatter(struct eval *e, const struct tc_op *op)
{
	unsigned n = op->n_results;
	struct eval_array *out[32], *updates[32];
	struct rule r = read_rule(op, tc_in(op, 0)->type, tc_eval_in(e, op, n));
	const struct tc_type *t = tc_in(op, n + 1)->type;
	int64_t idx[TC_MAX_RANK] = { 0 }, at[TC_MAX_RANK];
	const void *in[64];
	void *to[32];

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
}
