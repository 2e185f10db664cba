/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small meetings of the same members become one: meeting takes as long for a kilobyte as for
 * four bytes.
 *
 * Requires: of collectives there are only tc.exchange, and collective_permute of one operand.
 * Ensures: of those of a block that have the same groups or pairs and the same elements, and
 * of which none needs another one's result, one is left, which moves what all of them moved;
 * up to limits of size. All partitions run the same program, so they still meet in one order,
 * and not a bit changes. Replicas may run programs of their own, which meet alike but do other
 * things between, so that what needs what may differ: theirs stay as they are.
 *
 * A meeting stands where the last one of its bundle stood; what needed an earlier one's result
 * follows it, in the order that it had.
 */
#include <string.h>

#include "runtime/compiler/opt/build.h"
#include "runtime/compiler/passes.h"

#define ONE_BYTES 65536		/* of a result: above it time goes by size */
#define ALL_BYTES (1 << 20)	/* of a bundle's results, which are there at the same time */

struct bundle {
	struct tc_ctx *c;
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

static bool is_small(const struct tc_op *op)
{
	const struct tc_type *t;

	if (op->op != TC_EXCHANGE && (op->op != TC_COLLECTIVE_PERMUTE || op->n_operands != 1))
		return false;
	t = op->results[0].type;
	/* Types of less than a byte are not cut anywhere. */
	return t->count && t->bytes <= ONE_BYTES && elem_bits(t->elem) >= 8;
}

static bool has_same_ints(const struct tc_op *a, const struct tc_op *b, const char *name)
{
	unsigned n, m;
	const int64_t *x = tc_attr_ints(a, name, &n), *y = tc_attr_ints(b, name, &m);

	return n == m && (!n || !memcmp(x, y, n * sizeof(*x)));
}

static bool go_together(const struct tc_op *a, const struct tc_op *b)
{
	if (a->op != b->op || !is_small(b) || a->results[0].type->elem != b->results[0].type->elem)
		return false;
	if (a->op == TC_COLLECTIVE_PERMUTE)
		return has_same_ints(a, b, "source_target_pairs");
	return tc_attr_int(a, "is_same", 0) == tc_attr_int(b, "is_same", 0) &&
	       tc_attr_int(a, "group_size", 0) == tc_attr_int(b, "group_size", 0) &&
	       has_same_ints(a, b, "replica_groups");
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
		} else if (go_together(first, op) &&
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

/* What all operands hold, row by row, through one meeting. */
static struct tc_value *meet_once(struct bundle *k, const struct tc_build *b)
{
	const struct tc_op *first = k->op[0];
	struct tc_value **in = need(k->c, k->n, sizeof(*in)), *v;
	bool is_same = first->op == TC_EXCHANGE && tc_attr_int(first, "is_same", 0);
	int64_t dim[3] = { rows_of(first, true) };

	for (unsigned i = 0; i < k->n; i++)
		in[i] = as_rows(b, tc_in(k->op[i], 0), rows_of(first, false));
	v = tc_build_join(b, k->n, in, 1);
	memcpy(dim + 1, v->type->dim, 2 * sizeof(*dim));
	v = tc_build(b, (enum tc_opcode)first->op, is_same ?
		     tc_tensor(k->c, (enum elem)v->type->elem, 3, dim) : v->type, 1, &v);
	for (unsigned i = 0; i < first->n_attrs; i++)
		tc_set_attr(k->c, v->def, first->attrs[i]);
	return as_rows(b, v, rows_of(first, true));
}

static void merge(struct bundle *k)
{
	struct tc_op *last = k->op[k->n - 1], *behind = last->next, *next;
	struct tc_build b = tc_build_at(k->c, last);
	struct tc_value *all = meet_once(k, &b), *v;
	int64_t at = 0, size;

	for (unsigned i = 0; i < k->n; i++) {
		const struct tc_type *t = k->op[i]->results[0].type;

		size = t->count / all->type->dim[0];
		v = tc_build_part(&b, all, 1, at, size);
		tc_replace_uses(tc_out(k->op[i], 0), tc_build_reshape(&b, v, t->rank, t->dim));
		at += size;
	}
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
		if (!is_small(op))
			continue;
		find_bundle(k, op);
		if (k->n < 2)
			continue;
		merge(k);
		next = before ? before->next : b->first;
	}
}

void tc_pass_combine(struct tc_ctx *c)
{
	struct bundle k = { .c = c };

	if (c->options->partitions > 1 && c->options->replicas <= 1)
		combine_block(&k, tc_main(c));
}
