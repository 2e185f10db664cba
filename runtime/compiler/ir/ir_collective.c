/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rule for each collective (ops.def). How many members there are is not known here: rows are
 * held to their form, and shapes to the size of a row where the attributes settle it;
 * opt/devices.c holds the rest to the number of members.
 */
#include <inttypes.h>
#include <string.h>

#include "runtime/compiler/ir/ir_verify.h"

/* No number of a member is larger, so that products of two stay far from overflow. */
#define MOST_MEMBERS ((int64_t)1 << 31)

/* Whether no number but -1 is twice in n of them. */
static bool are_different(const struct check *k, const int64_t *list, unsigned n,
			  unsigned step)
{
	struct arena *a = &k->c->arena;
	size_t room = 16;
	int64_t *table;

	while (room < 2 * (size_t)n)
		room *= 2;
	table = arena_array(a, room, sizeof(*table));
	if (!table)
		tc_fail(k->c, ERR_RESOURCE_EXHAUSTED, k->op, "out of memory");
	for (unsigned i = 0; i < n; i += step) {
		size_t at = (size_t)list[i] * 0x9e3779b97f4a7c15u & (room - 1);

		if (list[i] < 0)
			continue;
		while (table[at] && table[at] != list[i] + 1)
			at = (at + 1) & (room - 1);
		if (table[at])
			return false;
		table[at] = list[i] + 1;
	}
	return true;
}

static void check_groups(const struct check *k)
{
	unsigned n;
	const int64_t *ids = tc_attr_ints(k->op, "replica_groups", &n);
	int64_t size = tc_attr_int(k->op, "group_size", 0);

	if (n ? size < 1 || n % size : size < 0 || size > MOST_MEMBERS)
		BAD(k, "replica_groups has %u entries in rows of %" PRId64, n, size);
	for (unsigned i = 0; i < n; i++)
		if (ids[i] < -1 || ids[i] >= MOST_MEMBERS)
			BAD(k, "replica_groups names member %" PRId64, ids[i]);
	if (!are_different(k, ids, n, 1))
		BAD(k, "replica_groups names a member twice");
}

static void check_pairs(const struct check *k)
{
	unsigned n;
	const int64_t *ids = tc_attr_ints(k->op, "source_target_pairs", &n);

	if (n % 2)
		BAD(k, "source_target_pairs has %u entries, which are no pairs", n);
	for (unsigned i = 0; i < n; i++)
		if (ids[i] < 0 || ids[i] >= MOST_MEMBERS)
			BAD(k, "source_target_pairs names member %" PRId64, ids[i]);
	if (n && !are_different(k, ids, n, 2))
		BAD(k, "source_target_pairs names a source twice");
	if (n && !are_different(k, ids + 1, n - 1, 2))
		BAD(k, "source_target_pairs names a target twice");
}

/* Members in a row where that is known; 0: it is not. */
static int64_t row_size(const struct check *k)
{
	unsigned n;

	tc_attr_ints(k->op, "replica_groups", &n);
	return n && tc_attr_int(k->op, "use_global_device_ids", 0) ?
	       tc_attr_int(k->op, "group_size", 0) : 0;
}

static void check_arrays(const struct check *k)
{
	unsigned n = k->op->op == TC_EXCHANGE && k->op->n_operands ? 1 : k->op->n_operands;

	if (n != k->op->n_results || !k->op->n_results)
		BAD(k, "it has %u operands and %u results", k->op->n_operands,
		    k->op->n_results);
	for (unsigned i = 0; i < k->op->n_operands; i++)
		if (in_type(k, i)->is_tuple || in_type(k, i)->elem == ELEM_TOKEN)
			BAD(k, "operand %u is no array", i);
}

/* Result i: of the operand's elements, and these dims. */
static void want_dims(const struct check *k, unsigned i, unsigned rank, const int64_t *dim)
{
	const struct tc_type *t = k->op->results[i].type;

	if (t->elem != in_type(k, i)->elem || t->rank != rank ||
	    memcmp(t->dim, dim, rank * sizeof(*dim)))
		BAD(k, "result %u is not of the shape that follows from operand %u", i, i);
}

static unsigned dim_of(const struct check *k, const char *name, const struct tc_type *t)
{
	int64_t d = tc_attr_int(k->op, name, -1);

	if (d < 0 || d >= t->rank)
		BAD(k, "%s is %" PRId64 " of %u", name, d, t->rank);
	return (unsigned)d;
}

/* From two scalars of an operand's elements a third. */
static void check_region(const struct check *k)
{
	const struct tc_block *b = k->op->regions[0].block;
	const struct tc_type *t;

	if (b->n_args != 2 || b->last->n_operands != 1)
		BAD(k, "its region takes %u values and yields %u", b->n_args,
		    b->last->n_operands);
	t = tc_in(b->last, 0)->type;
	if (t->rank || t->is_tuple || b->args[0]->type != t || b->args[1]->type != t)
		BAD(k, "its region makes something else of two scalars than a third");
	for (unsigned i = 0; i < k->op->n_operands; i++)
		if (in_type(k, i)->elem != t->elem)
			BAD(k, "its region takes %s, and operand %u is of %s",
			    elem_text(t->elem), i, elem_text(in_type(k, i)->elem));
}

static void check_all_reduce(const struct check *k)
{
	for (unsigned i = 0; i < k->op->n_operands; i++)
		want_dims(k, i, in_type(k, i)->rank, in_type(k, i)->dim);
	check_region(k);
}

/* Dim d of the one is some times as large as that of the other, as often as a row has
 * members where that is known. */
static bool fits(int64_t part, int64_t whole, int64_t size)
{
	if (size)
		return part <= TC_MAX_BYTES / size && part * size == whole;
	return part ? whole && whole % part == 0 : !whole;
}

static void check_all_gather(const struct check *k)
{
	int64_t dim[TC_MAX_RANK];

	for (unsigned i = 0; i < k->op->n_operands; i++) {
		const struct tc_type *in = in_type(k, i), *out = k->op->results[i].type;
		unsigned d = dim_of(k, "all_gather_dim", in);

		memcpy(dim, in->dim, in->rank * sizeof(*dim));
		if (out->rank == in->rank && fits(in->dim[d], out->dim[d], row_size(k)))
			dim[d] = out->dim[d];
		else
			BAD(k, "result %u is not made of operands %u of a group", i, i);
		want_dims(k, i, in->rank, dim);
	}
}

static void check_reduce_scatter(const struct check *k)
{
	const struct tc_type *in = in_type(k, 0), *out = out_type(k);
	unsigned d = dim_of(k, "scatter_dimension", in);
	int64_t dim[TC_MAX_RANK];

	memcpy(dim, in->dim, in->rank * sizeof(*dim));
	if (out->rank != in->rank || !fits(out->dim[d], in->dim[d], row_size(k)))
		BAD(k, "its result is no part for one of a group");
	dim[d] = out->dim[d];
	want_dims(k, 0, in->rank, dim);
	check_region(k);
}

static void check_all_to_all(const struct check *k)
{
	int64_t n = tc_attr_int(k->op, "split_count", 0), size = row_size(k);
	int64_t dim[TC_MAX_RANK];

	if (n < 1 || n > MOST_MEMBERS || (size && n != size))
		BAD(k, "split_count is %" PRId64 ", and a group has %" PRId64 " members", n,
		    size);
	for (unsigned i = 0; i < k->op->n_operands; i++) {
		const struct tc_type *in = in_type(k, i);
		unsigned split = dim_of(k, "split_dimension", in);
		unsigned join = dim_of(k, "concat_dimension", in);

		memcpy(dim, in->dim, in->rank * sizeof(*dim));
		if (dim[split] % n)
			BAD(k, "dim %u of operand %u does not split in %" PRId64, split, i, n);
		dim[split] /= n;
		if (dim[join] > TC_MAX_BYTES / n)
			BAD(k, "dim %u of result %u grows too large", join, i);
		dim[join] *= n;
		want_dims(k, i, in->rank, dim);
	}
}

static void check_same_types(const struct check *k)
{
	for (unsigned i = 0; i < k->op->n_operands; i++)
		want_dims(k, i, in_type(k, i)->rank, in_type(k, i)->dim);
}

/* Settled always. */
static void check_exchange(const struct check *k)
{
	const struct tc_type *in = in_type(k, 0);
	int64_t size = tc_attr_int(k->op, "group_size", 0), dim[TC_MAX_RANK + 1];
	bool is_same = tc_attr_int(k->op, "is_same", 0);
	unsigned n;
	const int64_t *ids = tc_attr_ints(k->op, "replica_groups", &n);

	if (!n || in->rank >= TC_MAX_RANK + !is_same || (!is_same &&
	    (!in->rank || in->dim[0] != size)))
		BAD(k, "its operand does not fit groups of %" PRId64, size);
	for (unsigned i = 0; i < n; i++)
		if (ids[i] < 0 && !is_same)
			BAD(k, "a place without a member would have to give a part");
	dim[0] = size;
	memcpy(dim + 1, in->dim + !is_same, (in->rank - !is_same) * sizeof(*dim));
	want_dims(k, 0, in->rank + is_same, dim);
}

/* One future of the region's results, and these again. */
static void check_async(const struct check *k)
{
	bool is_start = k->op->op == TC_ASYNC_START;
	const struct tc_type *future = is_start ? out_type(k) : in_type(k, 0);
	const struct tc_block *b = is_start ? k->op->regions[0].block : NULL;
	unsigned n = is_start ? b->last->n_operands : k->op->n_results;

	if (!future->is_tuple || future->n_parts != n)
		BAD(k, "what it stands for is not %u arrays", n);
	for (unsigned i = 0; i < n; i++)
		if (future->parts[i] != (is_start ? tc_in(b->last, i)->type :
					 k->op->results[i].type))
			BAD(k, "array %u is of another type than what it stands for", i);
	if (is_start && b->n_args != k->op->n_operands)
		BAD(k, "its region takes %u values, not %u", b->n_args, k->op->n_operands);
	for (unsigned i = 0; is_start && i < b->n_args; i++)
		if (b->args[i]->type != in_type(k, i))
			BAD(k, "argument %u of its region is not operand %u", i, i);
}

void tc_check_collective(const struct check *k)
{
	if (k->op->op == TC_ASYNC_START || k->op->op == TC_ASYNC_DONE) {
		check_async(k);
		return;
	}
	if (!tc_is_collective(k->op))
		return;
	check_arrays(k);
	if (k->op->op == TC_COLLECTIVE_PERMUTE)
		check_pairs(k);
	else
		check_groups(k);
	switch (k->op->op) {
	case TC_ALL_REDUCE: check_all_reduce(k); break;
	case TC_ALL_GATHER: check_all_gather(k); break;
	case TC_REDUCE_SCATTER: check_reduce_scatter(k); break;
	case TC_ALL_TO_ALL: check_all_to_all(k); break;
	case TC_EXCHANGE: check_exchange(k); break;
	default: check_same_types(k); break;
	}
}
