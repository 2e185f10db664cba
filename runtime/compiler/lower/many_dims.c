/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays of more dims than an instruction runs along. Elementwise work does not look at them, a
 * reduction only at which dims it reduces: neighbours become one dim, by reshapes that are views
 * of what lies densely. An iota is made along its own dim and repeated.
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

static void spread_iota(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	const struct tc_type *t = op->results[0].type;
	int64_t d = tc_attr_int(op, "iota_dimension", 0);
	struct tc_value *line = tc_build_iota(&b, tc_tensor(c, (enum elem)t->elem, 1, &t->dim[d]),
					      0);

	tc_replace_uses(tc_out(op, 0), tc_build_broadcast(&b, line, t, &d));
	tc_erase(op);
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
		else if (op->n_results != 1 || op->results[0].type->rank <= ISA_MAX_RANK)
			continue;
		else if (op->op == TC_IOTA)
			spread_iota(c, op);
		else if (tc_has_trait(op, 'e'))
			join_elementwise(c, op);
	}
}
