/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several turns of a short loop are one.
 *
 * A turn of a loop of little elementwise work is an instruction or two, and as many more count it,
 * compare, jump and carry. Several turns in a row are one fusion, which has in registers what
 * passes from one to the next: of a number that is most of the time, of an array most of the ways
 * through memory. Where each turn takes a short row of an array, or puts one where its number says,
 * as scans do, all of them are taken and put at once.
 *
 * Other work, as products and reductions, stays an instruction each. If all that a turn makes is
 * small, what counts and carries takes as long as it, and several turns share that, the rows they
 * take and those they put.
 *
 * How often the loop turns is known, so the turns that do not divide evenly go before it, and of a
 * loop of few turns nothing else is left.
 *
 * Requires: a verified module after `simplify` and `empty`, which asks how often loops turn.
 * Ensures: the same results, bit for bit.
 */
#include "hal/hw/isa.h"
#include "runtime/compiler/loop/loop.h"
#include "runtime/compiler/opt/build.h"
#include "runtime/compiler/opt/fuse.h"
#include "runtime/compiler/passes.h"

enum {
	MOST_AT_ONCE = 8,	/* turns */
	MOST_VALUES = 96,	/* of all of them: a fusion has room for more than twice as many */
	MOST_CARRIED = ISA_MAX_OUT,	/* one fusion gives them */
	MOST_ROW_BYTES = 4096,	/* a longer one takes longer than what is saved */
	MOST_WORK = 48,		/* ops other than elementwise ones, of all turns */
	MOST_CARRIED_BY_WORK = 24,
};

/* What an op of the body is. */
struct part {
	bool is_same;		/* it gives the same in each turn */
	int dim;		/* along which a turn takes or puts a row; -1: it does not */
	struct tc_line row;
	/* of the turns that are being written: */
	struct tc_value *start[TC_MAX_RANK];	/* of their rows */
	struct tc_value *rows[MOST_AT_ONCE];	/* that they put; first: all that they take */
};

struct unroll {
	struct tc_ctx *c;
	struct tc_op *loop;
	const struct tc_block *body;
	int64_t turns;		/* it makes */
	unsigned counter;
	unsigned values, views, work;	/* of a turn: of a fusion, and ops (look_at) */
};

static struct part *part_of(const struct tc_op *op)
{
	return op->side;
}

static bool is_from_outside(const struct unroll *u, const struct tc_value *v)
{
	return v->def ? v->def->block != u->body : v->block != u->body;
}

static bool is_free(const struct tc_op *op)
{
	switch (op->op) {
	case TC_CONSTANT:
	case TC_BROADCAST_IN_DIM:
	case TC_IOTA:
	case TC_RESHAPE:
		return true;
	case TC_CONCATENATE:	/* the next turn takes them apart (simplify/numbers.c) */
	case TC_SLICE:
		return op->results[0].type->count <= ISA_MAX_OUT;
	default:
		return false;
	}
}

static bool is_row(const struct unroll *u, const struct tc_op *op, struct part *p)
{
	const struct tc_value *all = op->n_operands ? tc_in(op, 0) : NULL;
	const struct tc_type *row;

	if (op->op == TC_DYNAMIC_SLICE && is_from_outside(u, all))
		row = op->results[0].type;
	else if (op->op == TC_DYNAMIC_UPDATE_SLICE && !all->def && all->block == u->body &&
		 tc_put_of_turn(u->loop, all->index) == op)
		row = tc_in(op, 1)->type;
	else
		return false;
	if (row->bytes > MOST_ROW_BYTES)
		return false;
	p->dim = tc_row_of_turn(op, u->body->args[u->counter], u->turns, &p->row);
	return p->dim >= 0;
}

/* Whether it is an op of its own, which makes little of little. */
static bool is_work(const struct tc_op *op)
{
	/* What is taken out of an array may be little of much. */
	unsigned first = op->op == TC_DYNAMIC_SLICE || op->op == TC_GATHER;

	if (!tc_has_trait(op, 'p') || tc_has_trait(op, 'i') || tc_has_trait(op, 'm') ||
	    op->op == TC_FUSION)
		return false;
	for (unsigned i = 0; i < op->n_results; i++)
		if (op->results[i].type->bytes > MOST_ROW_BYTES)
			return false;
	for (unsigned i = first; i < op->n_operands; i++)
		if (tc_in(op, i)->type->bytes > MOST_ROW_BYTES)
			return false;
	return true;
}

/* Counts what a turn takes. False: there is more than may be turned. */
static bool look_at(struct unroll *u)
{
	bool is_small = true;

	for (struct tc_op *op = u->body->first; op != u->body->last; op = op->next) {
		struct part *p = arena_array(&u->c->arena, 1, sizeof(*p));

		if (!p)
			tc_fail(u->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
		*p = (struct part){ .is_same = true, .dim = -1 };
		op->side = p;
		for (unsigned i = 0; i < op->n_operands; i++)
			p->is_same &= is_from_outside(u, tc_in(op, i)) ||
				      (tc_in(op, i)->def && part_of(tc_in(op, i)->def)->is_same);
		if (is_free(op)) {
			u->views += !p->is_same;
		} else if (is_row(u, op, p)) {
			u->values++;
		} else if (tc_has_trait(op, 'e')) {
			u->values += tc_most_values(op);
			is_small &= op->results[0].type->bytes <= MOST_ROW_BYTES;
		} else if (is_work(op)) {
			u->work++;
		} else {
			return false;
		}
	}
	return is_small || !u->work;
}

/* Whether asking if the loop goes on does something, which each turn is to do. */
static bool is_asking_seen(const struct tc_op *loop)
{
	for (const struct tc_op *op = loop->regions[0].block->first; op; op = op->next)
		if (tc_has_effect(op))
			return true;
	return false;
}

/* How many turns are to be one; 0: the loop stays as it is. */
static int64_t turns_at_once(struct unroll *u)
{
	int64_t n;

	if (u->loop->n_operands > MOST_CARRIED_BY_WORK || is_asking_seen(u->loop) || !look_at(u))
		return 0;
	if (u->work)
		n = MOST_WORK / (u->work + (u->values + u->views) / 8);
	else if (u->values && u->loop->n_operands <= MOST_CARRIED)
		n = MOST_VALUES / (u->values + u->views);
	else
		return 0;
	if (n > MOST_AT_ONCE)
		n = MOST_AT_ONCE;
	if (n >= u->turns)
		return u->turns;
	return n > 1 ? n : 0;
}

/* Where the rows of n turns begin, the first of which begins at part.start. */
static void set_start(const struct tc_build *b, struct part *p, int64_t n)
{
	struct tc_value **at = &p->start[p->dim];

	if (p->row.factor < 0 && n > 1)
		*at = tc_build2(b, TC_SUBTRACT, *at, tc_build_number(b, (*at)->type,
								     (double)(n - 1)));
}

/* Turn k of n takes its row: the first takes them all. */
static struct tc_value *take(const struct tc_build *b, const struct tc_op *op,
			     const struct tc_map *map, int64_t k, int64_t n)
{
	struct part *p = part_of(op);
	struct tc_value *in[TC_MAX_RANK + 1] = { tc_in(op, 0) };
	const struct tc_type *t;

	if (!k) {
		t = tc_with_dim(b->c, op->results[0].type, (unsigned)p->dim, n);
		for (unsigned d = 0; d < t->rank; d++)
			p->start[d] = tc_map_get(map, tc_in(op, 1 + d));
		set_start(b, p, n);
		for (unsigned d = 0; d < t->rank; d++)
			in[1 + d] = p->start[d];
		p->rows[0] = tc_build(b, TC_DYNAMIC_SLICE, t, 1 + t->rank, in);
		tc_set_ints(b->c, p->rows[0]->def, "slice_sizes", t->dim, t->rank);
	}
	return tc_build_part(b, p->rows[0], (unsigned)p->dim, p->row.factor < 0 ? n - 1 - k : k, 1);
}

/* Notes the row that turn k of n puts. */
static void note_row(const struct tc_build *b, const struct tc_op *op, const struct tc_map *map,
		     int64_t k, int64_t n)
{
	struct part *p = part_of(op);

	p->rows[p->row.factor < 0 ? n - 1 - k : k] = tc_map_get(map, tc_in(op, 1));
	if (k)
		return;
	for (unsigned d = 0; d < tc_in(op, 0)->type->rank; d++)
		p->start[d] = tc_map_get(map, tc_in(op, 2 + d));
	set_start(b, p, n);
}

/* Rows are given their shapes behind the turns: what works on them reads what they were before. */
static void move_last(const struct tc_build *b, struct tc_value *row)
{
	struct tc_op *before = b->before, *op = row->def;

	while (op && is_free(op) && op->n_operands && op->block == before->block &&
	       (op == row->def ? tc_is_unused(row) : tc_is_used_once(tc_out(op, 0)))) {
		tc_unlink(op);
		tc_insert_before(before, op);
		before = op;
		op = tc_in(op, 0)->def;
	}
}

/* The array with the rows of n turns, which may be all of it: then nothing is read that may be
 * empty (empty.c). */
static struct tc_value *put(const struct tc_build *b, const struct tc_op *op,
			    struct tc_value *all, int64_t n)
{
	struct part *p = part_of(op);
	struct tc_value *in[TC_MAX_RANK + 2] = { all };

	for (int64_t k = 0; k < n; k++)
		move_last(b, p->rows[k]);
	in[1] = n > 1 ? tc_build_join(b, (unsigned)n, p->rows, (unsigned)p->dim) : p->rows[0];
	if (in[1]->type == all->type)
		return in[1];
	for (unsigned d = 0; d < all->type->rank; d++)
		in[2 + d] = p->start[d];
	return tc_build(b, TC_DYNAMIC_UPDATE_SLICE, all->type, 2 + all->type->rank, in);
}

/* A turn, the kth of n: its ops before b->before, from what the map has for the body's
 * arguments. */
static void write_turn(const struct unroll *u, const struct tc_build *b, struct tc_map *map,
		       int64_t k, int64_t n)
{
	for (const struct tc_op *op = u->body->first; op != u->body->last; op = op->next) {
		const struct part *p = part_of(op);
		struct tc_build here = *b;

		here.where = op->where;
		if (p->dim >= 0 && op->op == TC_DYNAMIC_SLICE)
			tc_map_set(u->c, map, tc_out(op, 0), take(&here, op, map, k, n));
		else if (p->dim >= 0)
			note_row(&here, op, map, k, n);
		else if (!k || !p->is_same)
			tc_build_place(&here, tc_clone(u->c, op, map));
	}
}

/* n turns before `at`: makes of state, with which the first begins, what the last ends with. */
static void write_turns(const struct unroll *u, struct tc_op *at, struct tc_value **state,
			int64_t n)
{
	struct tc_build b = tc_build_at(u->c, at);
	const struct tc_block *body = u->body;
	struct tc_map *map = tc_map_new(u->c);
	struct tc_value *end;

	for (int64_t k = 0; k < n; k++) {
		for (unsigned i = 0; i < body->n_args; i++)
			tc_map_set(u->c, map, body->args[i], state[i]);
		write_turn(u, &b, map, k, n);
		for (unsigned i = 0; i < body->n_args; i++) {
			end = tc_in(body->last, i);
			if (is_from_outside(u, end) || !end->def || part_of(end->def)->dim < 0 ||
			    end->def->op == TC_DYNAMIC_SLICE)
				state[i] = tc_map_get(map, end);
			else if (k == n - 1)
				state[i] = put(&b, end->def, state[i], n);
		}
	}
}

/* The loop, before it was, of n turns at once: makes of state, with which it begins, what it ends
 * with. */
static void write_loop(const struct unroll *u, struct tc_value **first, int64_t n)
{
	struct tc_op *copy = tc_clone(u->c, u->loop, tc_map_new(u->c)), *last, *next;
	struct tc_block *body = copy->regions[1].block;
	struct tc_value *state[MOST_CARRIED_BY_WORK];

	tc_insert_before(u->loop, copy);
	for (unsigned i = 0; i < body->n_args; i++) {
		tc_set_operand(copy, i, first[i]);
		first[i] = tc_out(copy, i);
	}
	last = body->last;
	for (unsigned i = 0; i < body->n_args; i++)
		state[i] = body->args[i];
	next = last->prev;
	write_turns(u, last, state, n);
	tc_set_operands(u->c, last, body->n_args, state);
	/* The one turn that was copied. */
	for (struct tc_op *op = next; op; op = next) {
		next = op->prev;
		tc_erase(op);
	}
}

static void unroll(const struct unroll *u, int64_t n)
{
	struct tc_op *loop = u->loop;
	int64_t first = n < u->turns ? u->turns % n : n;
	struct tc_value *state[MOST_CARRIED_BY_WORK];

	for (unsigned i = 0; i < loop->n_operands; i++)
		state[i] = tc_in(loop, i);
	if (first)
		write_turns(u, loop, state, first);
	if (n < u->turns)
		write_loop(u, state, n);
	for (unsigned i = 0; i < loop->n_results; i++)
		tc_replace_uses(tc_out(loop, i), state[i]);
	tc_erase(loop);
}

static void unroll_block(struct tc_ctx *c, struct tc_block *b)
{
	struct tc_op *next;

	for (struct tc_op *op = b->first; op; op = next) {
		struct unroll u = { .c = c, .loop = op };
		int64_t n;

		next = op->next;
		for (unsigned r = 0; r < op->n_regions; r++)
			if (op->regions[r].block)
				unroll_block(c, op->regions[r].block);
		if (op->op != TC_WHILE)
			continue;
		u.turns = tc_count_turns(op, &u.counter);
		u.body = op->regions[1].block;
		n = u.turns ? turns_at_once(&u) : 0;
		if (n)
			unroll(&u, n);
	}
}

void tc_pass_unroll(struct tc_ctx *c)
{
	unroll_block(c, tc_main(c));
}
