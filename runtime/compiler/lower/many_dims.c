/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays of more dims than an instruction runs along. Elementwise work does not look at them, a
 * reduction only at which dims it reduces, a sort at the one that it sorts along, a window at those
 * that it is wide in: neighbours become one dim, by reshapes that are views of what lies densely.
 * Products do without dims of one element. An iota is made along its own dim and repeated.
 */
#include <string.h>

#include "hal/hw/isa.h"
#include "runtime/compiler/lower/decompose.h"

static struct tc_value *flattened(const struct tc_build *b, struct tc_value *x)
{
	return x->type->rank ? tc_build_reshape(b, x, 1, &x->type->count) : x;
}

/* A copy of op, which stands before it, of these operands. */
static struct tc_op *copy_of(const struct tc_build *b, const struct tc_op *op,
			     struct tc_value *const *in)
{
	struct tc_map *map = tc_map_new(b->c);
	struct tc_op *copy = tc_clone(b->c, op, map);

	for (unsigned i = 0; i < op->n_operands; i++)
		tc_set_operand(copy, i, in[i]);
	return tc_build_place(b, copy);
}

static void take_over(const struct tc_build *b, struct tc_op *op, struct tc_op *by)
{
	for (unsigned i = 0; i < op->n_results; i++) {
		const struct tc_type *t = op->results[i].type;

		tc_replace_uses(tc_out(op, i), tc_build_reshape(b, tc_out(by, i), t->rank, t->dim));
	}
	tc_erase(op);
}

static void join_elementwise(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	const struct tc_type *t = op->results[0].type;
	struct tc_value **in = arena_array(&c->arena, op->n_operands + 1u, sizeof(*in));
	struct tc_op *copy;

	if (!in)
		tc_fail(c, ERR_RESOURCE_EXHAUSTED, op, "out of memory");
	for (unsigned i = 0; i < op->n_operands; i++)
		in[i] = flattened(&b, tc_in(op, i));
	copy = copy_of(&b, op, in);
	copy->results[0].type = tc_tensor(c, (enum elem)t->elem, 1, &t->count);
	take_over(&b, op, copy);
}

/* Neighbouring dims that are all reduced or all kept, as one. Returns how many there are; the
 * reduced ones of these have their bits set. */
static unsigned joined(const struct tc_type *t, uint64_t mask, int64_t *dim, uint64_t *reduced)
{
	unsigned n = 0;

	*reduced = 0;
	for (unsigned d = 0; d < t->rank; d++) {
		uint64_t is_reduced = mask >> d & 1;

		if (n && (*reduced >> (n - 1) & 1) == is_reduced) {
			dim[n - 1] *= t->dim[d];
			continue;
		}
		*reduced |= is_reduced << n;
		dim[n++] = t->dim[d];
	}
	return n;
}

static void join_reduce(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	const struct tc_type *t = tc_in(op, 0)->type;
	int64_t dim[TC_MAX_RANK], turn[TC_MAX_RANK], dims[TC_MAX_RANK], kept[TC_MAX_RANK];
	struct tc_value **in = arena_array(&c->arena, op->n_operands, sizeof(*in));
	unsigned n, k = 0, n_dims = 0, n_kept = 0;
	const int64_t *list = tc_attr_ints(op, "dimensions", &n);
	uint64_t mask = 0, reduced;
	struct tc_op *copy;

	if (!in)
		tc_fail(c, ERR_RESOURCE_EXHAUSTED, op, "out of memory");
	for (unsigned i = 0; i < n; i++)
		mask |= 1ull << list[i];
	for (unsigned i = 0; i < op->n_operands; i++)
		in[i] = tc_in(op, i);
	if (joined(t, mask, dim, &reduced) > ISA_MAX_RANK) {
		/* They are brought together. */
		for (unsigned side = 0; side < 2; side++)
			for (unsigned d = 0; d < t->rank; d++)
				if ((mask >> d & 1) == side)
					turn[k++] = d;
		for (unsigned i = 0; i < op->n_results; i++)
			in[i] = tc_build_transpose(&b, in[i], turn);
		t = in[0]->type;
		mask = ((1ull << n) - 1) << (t->rank - n);
	}
	k = joined(t, mask, dim, &reduced);
	for (unsigned d = 0; d < k; d++)
		if (reduced >> d & 1)
			dims[n_dims++] = d;
		else
			kept[n_kept++] = dim[d];
	for (unsigned i = 0; i < op->n_results; i++)
		in[i] = tc_build_reshape(&b, in[i], k, dim);
	copy = copy_of(&b, op, in);
	tc_set_ints(c, copy, "dimensions", dims, n_dims);
	for (unsigned i = 0; i < op->n_results; i++)
		copy->results[i].type = tc_tensor(c, (enum elem)op->results[i].type->elem, n_kept,
						  kept);
	take_over(&b, op, copy);
}

/* A copy of op on its first n operands reshaped to `dim`, whose results are of the dims `out`. */
static struct tc_op *reshaped(const struct tc_build *b, struct tc_op *op, unsigned n, unsigned rank,
			      const int64_t *dim, const int64_t *out)
{
	struct tc_value **in = arena_array(&b->c->arena, op->n_operands, sizeof(*in));
	struct tc_op *copy;

	if (!in)
		tc_fail(b->c, ERR_RESOURCE_EXHAUSTED, op, "out of memory");
	for (unsigned i = 0; i < op->n_operands; i++)
		in[i] = i < n ? tc_build_reshape(b, tc_in(op, i), rank, dim) : tc_in(op, i);
	copy = copy_of(b, op, in);
	for (unsigned i = 0; i < op->n_results; i++)
		copy->results[i].type = tc_tensor(b->c, (enum elem)op->results[i].type->elem, rank,
						  out);
	return copy;
}

static void join_sort(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	const struct tc_type *t = tc_in(op, 0)->type;
	int64_t d = tc_attr_int(op, "dimension", 0), dim[3] = { 1, 1, 1 };
	struct tc_op *copy;

	d += d < 0 ? t->rank : 0;
	for (unsigned i = 0; i < t->rank; i++)
		dim[i < d ? 0 : i == d ? 1 : 2] *= t->dim[i];
	copy = reshaped(&b, op, op->n_operands, 3, dim, dim);
	tc_set_int(c, copy, "dimension", TC_ATTR_INT, 1);
	take_over(&b, op, copy);
}

/* Windows are one element wide along d, and all elements have one. */
static bool is_idle(const struct tc_op *op, unsigned d)
{
	return tc_attr_nth(op, "window_dimensions", d) == 1 &&
	       tc_attr_nth(op, "window_strides", d) == 1 &&
	       tc_attr_nth(op, "base_dilations", d) == 1 &&
	       !tc_attr_nth(op, "padding", 2 * d) && !tc_attr_nth(op, "padding", 2 * d + 1);
}

static void join_window(struct tc_ctx *c, struct tc_op *op)
{
	static const char *const names[] = { "window_dimensions", "window_strides",
					     "base_dilations", "window_dilations" };
	const struct tc_type *t = tc_in(op, 0)->type, *out = op->results[0].type;
	int64_t list[4][TC_MAX_RANK], pad[2 * TC_MAX_RANK], dim[TC_MAX_RANK], to[TC_MAX_RANK];
	struct tc_build b = tc_build_at(c, op);
	bool was_idle = false;
	struct tc_op *copy;
	unsigned n = 0;

	for (unsigned d = 0; d < t->rank; d++) {
		if (is_idle(op, d) && was_idle) {
			dim[n - 1] *= t->dim[d];
			to[n - 1] *= t->dim[d];
			continue;
		}
		was_idle = is_idle(op, d);
		for (unsigned i = 0; i < 4; i++)
			list[i][n] = tc_attr_nth(op, names[i], d);
		pad[2 * n] = tc_attr_nth(op, "padding", 2 * d);
		pad[2 * n + 1] = tc_attr_nth(op, "padding", 2 * d + 1);
		dim[n] = t->dim[d];
		to[n++] = out->dim[d];
	}
	if (n > ISA_MAX_RANK)
		return;
	copy = reshaped(&b, op, op->n_results, n, dim, to);
	for (unsigned i = 0; i < 4; i++)
		tc_set_ints(c, copy, names[i], list[i], n);
	tc_set_ints(c, copy, "padding", pad, 2 * n);
	take_over(&b, op, copy);
}

/* The dims of more than one element; place[d]: how many come before dim d. */
static unsigned without_ones(const struct tc_type *t, int64_t *dim, unsigned *place)
{
	unsigned n = 0;

	for (unsigned d = 0; d < t->rank; d++) {
		place[d] = n;
		if (t->dim[d] != 1)
			dim[n++] = t->dim[d];
	}
	return n;
}

static void narrow_product(struct tc_ctx *c, struct tc_op *op)
{
	static const char *const names[2][2] = {
		{ "lhs_batching_dimensions", "lhs_contracting_dimensions" },
		{ "rhs_batching_dimensions", "rhs_contracting_dimensions" } };
	struct tc_build b = tc_build_at(c, op);
	const struct tc_type *out = op->results[0].type;
	int64_t dim[TC_MAX_RANK], list[TC_MAX_RANK];
	unsigned place[TC_MAX_RANK], n, n_list;
	struct tc_value *in[2];
	struct tc_op *copy;

	for (unsigned i = 0; i < 2; i++) {
		n = without_ones(tc_in(op, i)->type, dim, place);
		in[i] = tc_build_reshape(&b, tc_in(op, i), n, dim);
	}
	copy = copy_of(&b, op, in);
	for (unsigned i = 0; i < 4; i++) {
		const struct tc_type *t = tc_in(op, i / 2)->type;
		const int64_t *old = tc_attr_ints(op, names[i / 2][i % 2], &n_list);

		without_ones(t, dim, place);
		n = 0;
		for (unsigned k = 0; k < n_list; k++)
			if (t->dim[old[k]] != 1)
				list[n++] = place[old[k]];
		tc_set_ints(c, copy, names[i / 2][i % 2], list, n);
	}
	n = without_ones(out, dim, place);
	copy->results[0].type = tc_tensor(c, (enum elem)out->elem, n, dim);
	take_over(&b, op, copy);
}

static bool has_many_dims(const struct tc_op *op)
{
	return tc_in(op, 0)->type->rank > ISA_MAX_RANK ||
	       tc_in(op, op->op == TC_DOT_GENERAL)->type->rank > ISA_MAX_RANK ||
	       op->results[0].type->rank > ISA_MAX_RANK;
}

/* Whether it is one of those above, and done. */
static bool join_others(struct tc_ctx *c, struct tc_op *op)
{
	bool is = op->op == TC_SORT || op->op == TC_REDUCE_WINDOW || op->op == TC_DOT_GENERAL;

	if (!is || !has_many_dims(op))
		return false;
	if (op->op == TC_SORT)
		join_sort(c, op);
	else if (op->op == TC_REDUCE_WINDOW)
		join_window(c, op);
	else
		narrow_product(c, op);
	return true;
}

static void spread_iota(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	const struct tc_type *t = op->results[0].type;
	int64_t d = tc_attr_int(op, "iota_dimension", 0);
	struct tc_value *line = tc_build_iota(&b, tc_tensor(c, (enum elem)t->elem, 1, &t->dim[d]),
					      0);

	tc_replace(op, tc_build_broadcast(&b, line, t, &d));
}

void tc_join_dims(struct tc_ctx *c, struct tc_block *block)
{
	for (struct tc_op *op = block->first, *next; op; op = next) {
		next = op->next;
		for (unsigned r = 0; r < op->n_regions; r++)
			if (op->regions[r].block)
				tc_join_dims(c, op->regions[r].block);
		if (op->op == TC_REDUCE && tc_in(op, 0)->type->rank > ISA_MAX_RANK)
			join_reduce(c, op);
		else if (join_others(c, op))
			continue;
		else if (op->n_results != 1 || op->results[0].type->rank <= ISA_MAX_RANK)
			continue;
		else if (op->op == TC_IOTA)
			spread_iota(c, op);
		else if (tc_has_trait(op, 'e'))
			join_elementwise(c, op);
	}
}
