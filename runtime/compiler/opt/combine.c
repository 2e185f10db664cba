/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small meetings of the same members become one: meeting takes as long for a kilobyte as for
 * four bytes.
 *
 * Two passes. Before collectives are exchanges: of all_reduces of one operand of a block that
 * have the same groups, the same elements and the same op, one is left, of all their operands, so
 * that how members meet for them follows from what they are together. When of collectives there
 * are only tc.exchange, and collective_permute of one operand: of those that have the same groups
 * or pairs and elements of the same width, one is left, which moves what all of them moved.
 *
 * Of what becomes one none needs another one's result; up to limits of size. All partitions run
 * the same program, so they still meet in one order, and not a bit changes. Replicas may run
 * programs of their own, which meet alike but do other things between, so that what needs what
 * may differ: theirs stay as they are.
 *
 * A meeting stands where the last one of its bundle stood; what needed an earlier one's result
 * follows it, in the order that it had.
 */
#include <string.h>

#include "runtime/compiler/opt/build.h"
#include "runtime/compiler/passes.h"

#define ONE_BYTES 65536		/* of a result: above it time goes by size */
#define ALL_BYTES (1 << 20)	/* of a bundle's results, which are there at the same time */

struct bundle;
/* What goes together, and how it becomes one before the last of them; then nobody uses theirs. */
struct way {
	bool (*is_small)(const struct tc_op *op);
	bool (*go_together)(const struct tc_op *a, const struct tc_op *b);
	void (*meet_once)(struct bundle *k, const struct tc_build *b);
};

struct bundle {
	struct tc_ctx *c;
	const struct way *way;
	struct tc_op **op;	/* in their order */
	unsigned n, room;
	int64_t bytes;
	uint32_t *late, turn;	/* by op's id: `turn` if it is of the bundle or needs one of it */
	uint32_t n_late;
};

static void *need(struct tc_ctx *c, size_t n, size_t size)
{
	void *p = arena_array(&c->arena, n, size);

	if (!p)
		tc_fail(c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	return p;
}

/* ---- what goes together ---- */

static bool is_small_move(const struct tc_op *op)
{
	const struct tc_type *t;

	if (op->op != TC_EXCHANGE && (op->op != TC_COLLECTIVE_PERMUTE || op->n_operands != 1))
		return false;
	t = op->results[0].type;
	/* Types of less than a byte are not cut anywhere. */
	return t->count && t->bytes <= ONE_BYTES && elem_bits(t->elem) >= 8;
}

/* The unsigned type of as many bits; of others than numbers their own. */
static enum elem bits_of(const struct tc_op *op)
{
	const struct tc_type *t = op->results[0].type;

	return tc_is_integer(t) || elem_class(t->elem) == ELEM_CLASS_FLOAT ?
	       elem_unsigned(elem_bits(t->elem)) : (enum elem)t->elem;
}

static bool move_together(const struct tc_op *a, const struct tc_op *b)
{
	if (a->op != b->op || !is_small_move(b) || bits_of(a) != bits_of(b))
		return false;
	if (a->op == TC_COLLECTIVE_PERMUTE)
		return tc_has_same_ints(a, b, "source_target_pairs");
	return tc_attr_int(a, "is_same", 0) == tc_attr_int(b, "is_same", 0) &&
	       tc_has_same_groups(a, b);
}

static bool is_small_sum(const struct tc_op *op)
{
	const struct tc_type *t;

	if (op->op != TC_ALL_REDUCE || op->n_operands != 1 || tc_is_unused(tc_out(op, 0)))
		return false;
	t = tc_in(op, 0)->type;
	return t->count && t->bytes <= ONE_BYTES && elem_bits(t->elem) >= 8 &&
	       tc_op_of_body(op->regions[0].block) != TC_OP_COUNT;
}

static bool sum_together(const struct tc_op *a, const struct tc_op *b)
{
	const struct tc_block *x = a->regions[0].block, *y = b->regions[0].block;

	return is_small_sum(b) && tc_has_same_groups(a, b) &&
	       tc_in(a, 0)->type->elem == tc_in(b, 0)->type->elem &&
	       x->args[0]->type == y->args[0]->type && tc_op_of_body(x) == tc_op_of_body(y);
}

/* ---- what has to come later ---- */

/* Whether an op or one in its regions takes a result of a late one. */
static bool needs_late(const struct bundle *k, const struct tc_op *op)
{
	for (unsigned i = 0; i < op->n_operands; i++)
		if (tc_in(op, i)->def && k->late[tc_in(op, i)->def->id] == k->turn)
			return true;
	for (unsigned r = 0; r < op->n_regions; r++)
		for (const struct tc_op *o = op->regions[r].block ? op->regions[r].block->first :
		     NULL; o; o = o->next)
			if (needs_late(k, o))
				return true;
	return false;
}

/* Whether it does more than give results: those that do stay in their order. */
static bool has_order(const struct tc_op *op)
{
	if (!tc_has_trait(op, 'p') && !tc_has_trait(op, 't'))
		return true;
	for (unsigned r = 0; r < op->n_regions; r++)
		for (const struct tc_op *o = op->regions[r].block ? op->regions[r].block->first :
		     NULL; o; o = o->next)
			if (has_order(o))
				return true;
	return false;
}

static void add(struct bundle *k, struct tc_op *op)
{
	struct tc_op **grown;

	if (k->n == k->room) {
		k->room = k->room ? 2 * k->room : 16;
		grown = need(k->c, k->room, sizeof(*grown));
		if (k->n)
			memcpy(grown, k->op, k->n * sizeof(*grown));
		k->op = grown;
	}
	k->op[k->n++] = op;
	k->bytes += op->results[0].type->bytes;
	k->late[op->id] = k->turn;
}

/* All that can go with `first`, and what is late then. */
static void find_bundle(struct bundle *k, struct tc_op *first)
{
	bool order_is_late = false;

	if (k->n_late < k->c->next_id) {	/* merging makes ops */
		k->n_late = 2 * k->c->next_id;
		k->late = need(k->c, k->n_late, sizeof(*k->late));
	}
	k->n = 0;
	k->bytes = 0;
	k->turn++;
	add(k, first);
	for (struct tc_op *op = first->next; op; op = op->next) {
		bool is_ordered = has_order(op);

		if (needs_late(k, op) || (is_ordered && order_is_late)) {
			k->late[op->id] = k->turn;
			order_is_late |= is_ordered;
		} else if (k->way->go_together(first, op) &&
			   k->bytes + op->results[0].type->bytes <= ALL_BYTES) {
			add(k, op);
		}
	}
}

/* ---- one for all ---- */

/* An operand or result as the members' own rows: those that all get are one. */
static int64_t rows_of(const struct tc_op *op, bool is_result)
{
	if (op->op == TC_COLLECTIVE_PERMUTE || (!is_result && tc_attr_int(op, "is_same", 0)))
		return 1;
	return tc_attr_int(op, "group_size", 0);
}

static struct tc_value *as_rows(const struct tc_build *b, struct tc_value *v, int64_t rows)
{
	return tc_build_reshape(b, v, 2, (const int64_t[]){ rows, v->type->count / rows });
}

/* Whether all have the first one's elements; else their bits move. */
static bool are_alike(const struct bundle *k)
{
	for (unsigned i = 1; i < k->n; i++)
		if (k->op[i]->results[0].type->elem != k->op[0]->results[0].type->elem)
			return false;
	return true;
}

static struct tc_value *as_elem(const struct tc_build *b, struct tc_value *v, enum elem elem)
{
	return v->type->elem == elem ? v :
	       tc_build(b, TC_BITCAST_CONVERT, tc_with_elem(b->c, v->type, elem), 1, &v);
}

/* What all operands hold, row by row, through one meeting. */
static struct tc_value *move_all(struct bundle *k, const struct tc_build *b)
{
	const struct tc_op *first = k->op[0];
	enum elem elem = are_alike(k) ? (enum elem)first->results[0].type->elem : bits_of(first);
	struct tc_value **in = need(k->c, k->n, sizeof(*in)), *v;
	bool is_same = first->op == TC_EXCHANGE && tc_attr_int(first, "is_same", 0);
	int64_t dim[3] = { rows_of(first, true) };

	for (unsigned i = 0; i < k->n; i++)
		in[i] = as_rows(b, as_elem(b, tc_in(k->op[i], 0), elem), rows_of(first, false));
	v = tc_build_join(b, k->n, in, 1);
	memcpy(dim + 1, v->type->dim, 2 * sizeof(*dim));
	v = tc_build(b, (enum tc_opcode)first->op, is_same ? tc_tensor(k->c, elem, 3, dim) :
		     v->type, 1, &v);
	for (unsigned i = 0; i < first->n_attrs; i++)
		tc_set_attr(k->c, v->def, first->attrs[i]);
	return as_rows(b, v, rows_of(first, true));
}

static void move_once(struct bundle *k, const struct tc_build *b)
{
	struct tc_value *all = move_all(k, b), *v;
	int64_t at = 0, size;

	for (unsigned i = 0; i < k->n; i++) {
		const struct tc_type *t = k->op[i]->results[0].type;

		size = t->count / all->type->dim[0];
		v = as_elem(b, tc_build_part(b, all, 1, at, size), (enum elem)t->elem);
		tc_replace_uses(tc_out(k->op[i], 0), tc_build_reshape(b, v, t->rank, t->dim));
		at += size;
	}
}

/* An all_reduce of all operands, with the last one's body. */
static void sum_once(struct bundle *k, const struct tc_build *b)
{
	struct tc_op *last = k->op[k->n - 1], *op;
	struct tc_value **in = need(k->c, k->n, sizeof(*in));
	const struct tc_type **types = need(k->c, k->n, sizeof(*types));

	for (unsigned i = 0; i < k->n; i++) {
		in[i] = tc_in(k->op[i], 0);
		types[i] = tc_out(k->op[i], 0)->type;
	}
	op = tc_new(k->c, TC_ALL_REDUCE, k->n, in, k->n, types, 1);
	for (unsigned i = 0; i < last->n_attrs; i++)
		tc_set_attr(k->c, op, last->attrs[i]);
	op->regions[0].block = last->regions[0].block;
	op->regions[0].block->region = &op->regions[0];
	last->regions[0].block = NULL;
	tc_build_place(b, op);
	for (unsigned i = 0; i < k->n; i++)
		tc_replace_uses(tc_out(k->op[i], 0), tc_out(op, i));
}

static void merge(struct bundle *k)
{
	struct tc_op *last = k->op[k->n - 1], *behind = last->next, *next;
	struct tc_build b = tc_build_at(k->c, last);

	k->way->meet_once(k, &b);
	for (struct tc_op *op = k->op[0]; op != last; op = next) {
		next = op->next;
		if (k->late[op->id] != k->turn)
			continue;
		tc_unlink(op);
		tc_insert_before(behind, op);
	}
	for (unsigned i = 0; i < k->n; i++)
		tc_erase(k->op[i]);
}

static void combine_block(struct bundle *k, struct tc_block *b)
{
	struct tc_op *next, *before;

	for (struct tc_op *op = b->first; op; op = next) {
		before = op->prev;
		next = op->next;
		for (unsigned r = 0; r < op->n_regions; r++)
			if (op->regions[r].block)
				combine_block(k, op->regions[r].block);
		if (!k->way->is_small(op))
			continue;
		find_bundle(k, op);
		if (k->n < 2)
			continue;
		merge(k);
		next = before ? before->next : b->first;
	}
}

static void combine(struct tc_ctx *c, const struct way *way)
{
	struct bundle k = { .c = c, .way = way };

	if (c->options->partitions > 1 && c->options->replicas <= 1)
		combine_block(&k, tc_main(c));
}

void tc_pass_combine_sums(struct tc_ctx *c)
{
	static const struct way sums = { is_small_sum, sum_together, sum_once };

	combine(c, &sums);
}

void tc_pass_combine(struct tc_ctx *c)
{
	static const struct way moves = { is_small_move, move_together, move_once };

	combine(c, &moves);
}
