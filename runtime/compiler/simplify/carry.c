/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops carry what their turns change, once.
 *
 * What each turn passes on as it came is read where it was before the loop, so that it is not
 * copied: frameworks have loops carry all that they read, as the weights of all layers. Of two
 * that begin alike and of which each turn makes the same, one is carried: JAX's fori_loop has two
 * counters, its own and the one that the body is given.
 */
#include <string.h>

#include "runtime/compiler/opt/fuse.h"
#include "runtime/compiler/simplify/simpler.h"

enum {
	UNCHANGED = -1,
	MOST_ASKED = 64,	/* values whether a later one is the same: counters come first */
};

struct carry {
	struct tc_op *loop;
	int *by;	/* of carried value j: itself, an earlier one, the same, or UNCHANGED */
};

static bool is_unchanged(const struct tc_op *loop, unsigned j)
{
	const struct tc_block *body = loop->regions[1].block;

	return tc_in(body->last, j) == body->args[j];
}

/* The same value, or constants of the same number. */
static bool is_same(const struct tc_value *a, const struct tc_value *b)
{
	const void *x, *y;

	if (a == b)
		return true;
	if (a->type != b->type)
		return false;
	x = tc_splat_element(a);
	y = tc_splat_element(b);
	return x && y && !memcmp(x, y, elem_bytes(a->type->elem));
}

/* Whether each turn adds the same to i and j, or takes it away, and they begin alike. */
static bool is_repeated(const struct tc_op *loop, unsigned j, unsigned i)
{
	const struct tc_block *body = loop->regions[1].block;
	const struct tc_op *x = tc_in(body->last, i)->def, *y = tc_in(body->last, j)->def;
	bool is_sum = x && x->op == TC_ADD;

	if (!x || !y || x->op != y->op || (!is_sum && x->op != TC_SUBTRACT) ||
	    !is_same(tc_in(loop, i), tc_in(loop, j)))
		return false;
	for (unsigned k = 0; k <= is_sum; k++)
		for (unsigned l = 0; l <= is_sum; l++)
			if (tc_in(x, k) == body->args[i] && tc_in(y, l) == body->args[j] &&
			    is_same(tc_in(x, 1 - k), tc_in(y, 1 - l)))
				return true;
	return false;
}

/* The block's arguments that stay; who reads another reads what that is. */
static void keep_args(const struct carry *y, struct tc_block *b)
{
	unsigned n = 0;

	for (unsigned j = 0; j < y->loop->n_operands; j++)
		if (y->by[j] != (int)j)
			tc_replace_uses(b->args[j], y->by[j] == UNCHANGED ? tc_in(y->loop, j) :
					b->args[y->by[j]]);
	for (unsigned j = 0; j < y->loop->n_operands; j++)
		if (y->by[j] == (int)j) {
			b->args[n] = b->args[j];
			b->args[n]->index = n;
			n++;
		}
	b->n_args = n;
}

/* How many values are carried on. */
static unsigned judge(const struct carry *y)
{
	unsigned n = 0;

	for (unsigned j = 0; j < y->loop->n_operands; j++) {
		y->by[j] = is_unchanged(y->loop, j) ? UNCHANGED : (int)j;
		for (unsigned i = 0; i < j && i < MOST_ASKED && y->by[j] == (int)j; i++)
			if (y->by[i] == (int)i && is_repeated(y->loop, j, i))
				y->by[j] = (int)i;
		n += y->by[j] == (int)j;
	}
	return n;
}

/* The loop with n values, which takes its blocks. */
static void write_less(struct tc_ctx *c, const struct carry *y, unsigned n)
{
	struct tc_op *op = y->loop, *less;
	struct tc_block *body = op->regions[1].block;
	struct tc_value **values = arena_array(&c->arena, op->n_operands, sizeof(*values));
	struct tc_value **of = arena_array(&c->arena, op->n_operands, sizeof(*of));
	const struct tc_type **types = arena_array(&c->arena, n, sizeof(*types));

	if (!values || !of || !types)
		tc_fail(c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	for (unsigned j = 0, k = 0; j < op->n_operands; j++)
		if (y->by[j] == (int)j) {
			values[k] = tc_in(op, j);
			types[k++] = tc_out(op, j)->type;
		}
	less = tc_new(c, TC_WHILE, n, values, n, types, 2);
	less->where = op->where;
	for (unsigned i = 0; i < op->n_attrs; i++)
		tc_set_attr(c, less, op->attrs[i]);
	tc_insert_before(op, less);
	for (unsigned r = 0; r < 2; r++) {
		less->regions[r].block = op->regions[r].block;
		less->regions[r].block->region = &less->regions[r];
		op->regions[r].block = NULL;
		keep_args(y, less->regions[r].block);
	}
	for (unsigned j = 0, k = 0; j < op->n_operands; j++) {
		if (y->by[j] == (int)j) {
			values[k] = tc_in(body->last, j);
			of[j] = tc_out(less, k++);
		} else {
			of[j] = y->by[j] == UNCHANGED ? tc_in(op, j) : of[y->by[j]];
		}
		tc_replace_uses(tc_out(op, j), of[j]);
	}
	tc_set_operands(c, body->last, n, values);
	tc_erase(op);
}

bool tc_carry_less(struct tc_ctx *c, struct tc_op *op)
{
	struct carry y = { .loop = op };
	unsigned n;

	if (op->op != TC_WHILE || !op->n_operands)
		return false;
	y.by = arena_array(&c->arena, op->n_operands, sizeof(*y.by));
	if (!y.by)
		tc_fail(c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	n = judge(&y);
	/* One that changes nothing makes no turn, or never ends. */
	if (n == op->n_operands || !n)
		return false;
	write_less(c, &y, n);
	return true;
}
