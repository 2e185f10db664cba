/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every turn of a loop would work out alike is worked out once, before the loop.
 *
 * Frameworks write what a turn needs where it needs it: a product of two weights, a
 * factorisation of the matrix that each turn solves with, weights in the type of the product.
 * What a loop carries unchanged it captures by now (simplify.c), so an op gives the same in each
 * turn if all that it reads, its regions too, is from before the loop or the same in each turn.
 *
 * Not all that is the same is better off before the loop. There it is an array in memory for as
 * long as the loop runs, and in it a fusion might have had it for nothing. So what goes ahead is
 *  - whatever no fusion takes in: products, sorts, gathers, transforms, loops, meetings; sums,
 *    which are less than what they sum up;
 *  - elementwise work, if its result is no larger than what it is made of, and it takes its time
 *    (is_slow) or a product or the like reads it, for which it would be made anyway. So weights
 *    become bf16 once, but weights kept in 8 bits do not become wider ahead of a loop that reads
 *    them;
 *  - slow elementwise work on constants and the like, if it is little: tables of angles.
 * Constants, and ops that only move elements or are little work, go along as copies where these
 * read them.
 *
 * A loop that may make no turn now works out more than before; all ops have results for all
 * operands, so nothing else can be seen of it. But it must end: a loop goes ahead only if it does,
 * or if it was sure to be run.
 *
 * What main's results and the values beside the loop take is known only when all have places: a
 * program that has no room then is compiled again, and nothing goes ahead (compile.c).
 *
 * Requires: a verified module after `simplify`. Ensures: the same results. No op of several
 * replicas in which they meet is moved: each may run a program of its own (ir/ops.def).
 */
#include "runtime/compiler/loop/loop.h"
#include "runtime/compiler/passes.h"

#define SMALL_BYTES ((int64_t)256 << 10)	/* stays in a cache */
enum { ROOM_PARTS = 4 };	/* of the memory that main's arguments leave, what goes ahead may
				 * take one part */

/* Of an op that gives the same in each turn; others have none. */
struct same {
	int64_t bytes;		/* that a turn reads to have the result: those of the arrays that
				 * it is made of elementwise, or its own */
	bool is_ahead;		/* goes ahead of the loop */
	bool is_needed;		/* by one that does */
	bool is_fed;		/* something that is no fusion reads it in the loop */
};

struct hoist {
	struct tc_ctx *c;
	uint64_t left;		/* bytes that may go ahead */
	struct tc_op *loop;
	struct tc_block *block;	/* the condition or body of it that is looked at */
	bool runs;		/* block is run, if loop is */
	struct tc_map *map;	/* to what is before the loop */
};

/* Whether v, which an op of the block or one in its regions reads, is from before the loop, the
 * same in each turn, or made in that op itself. */
static bool reads_same(const struct hoist *h, const struct tc_value *v)
{
	if (v->type->is_tuple || v->type->elem == ELEM_TOKEN)
		return false;
	if (v->def)
		return v->def->block != h->block || v->def->side;
	return v->block != h->block;
}

static bool gives_same(const struct hoist *h, const struct tc_op *op)
{
	if (!tc_has_trait(op, 'p') && !tc_has_trait(op, 't'))
		return false;
	if (tc_is_collective(op) && h->c->options->replicas > 1)
		return false;
	if (op->op == TC_WHILE && !h->runs && !tc_most_turns_of(op))
		return false;
	for (unsigned i = 0; i < op->n_operands; i++)
		if (!reads_same(h, tc_in(op, i)))
			return false;
	for (unsigned i = 0; i < op->n_results; i++)
		if (op->results[i].type->elem == ELEM_TOKEN)
			return false;
	for (unsigned r = 0; r < op->n_regions; r++)
		for (const struct tc_op *o = op->regions[r].block->first; o; o = o->next)
			if (!gives_same(h, o))
				return false;
	return true;
}

/* What a fusion, or a product that reads it by strides, has for nothing. */
static bool is_free(const struct tc_op *op)
{
	switch (op->op) {
	case TC_CONSTANT:
	case TC_IOTA:
	case TC_PARTITION_ID:
	case TC_REPLICA_ID:
	case TC_BROADCAST_IN_DIM:
	case TC_RESHAPE:
	case TC_REVERSE:
	case TC_SLICE:
	case TC_TRANSPOSE:
		return true;
	default:
		return false;
	}
}

/* Elementwise work that takes longer than reading its result. */
static bool is_slow(const struct tc_op *op)
{
	switch (op->op) {
	case TC_ATAN2:
	case TC_CBRT:
	case TC_COSINE:
	case TC_DIVIDE:
	case TC_ERF:
	case TC_EXPONENTIAL:
	case TC_EXPONENTIAL_MINUS_ONE:
	case TC_LOG:
	case TC_LOG_PLUS_ONE:
	case TC_LOGISTIC:
	case TC_POWER:
	case TC_REMAINDER:
	case TC_RSQRT:
	case TC_SINE:
	case TC_SQRT:
	case TC_TAN:
	case TC_TANH:
		return true;
	default:
		return false;
	}
}

static int64_t bytes_of(const struct hoist *h, const struct tc_value *v)
{
	return v->def && v->def->block == h->block ? ((struct same *)v->def->side)->bytes :
	       v->type->bytes;
}

static void look_at(struct hoist *h, struct tc_op *op)
{
	struct same *s;
	int64_t least = 0, bytes;

	op->side = NULL;
	if (!op->n_results || !gives_same(h, op))
		return;
	s = arena_array(&h->c->arena, 1, sizeof(*s));
	if (!s)
		tc_fail(h->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	bytes = op->results[0].type->bytes;
	*s = (struct same){ .bytes = bytes };
	op->side = s;
	if (!is_free(op) && !tc_has_trait(op, 'e')) {
		s->is_ahead = true;
		return;
	}
	for (unsigned i = 0; i < op->n_operands; i++)
		if (least < bytes_of(h, tc_in(op, i)))
			least = bytes_of(h, tc_in(op, i));
	if (least < bytes && !(is_slow(op) && bytes <= SMALL_BYTES))
		s->bytes = least;
}

/* Whether what reads op's results in the loop can't be a fusion that takes it in. */
static bool is_fed(const struct hoist *h, const struct tc_op *op)
{
	for (unsigned i = 0; i < op->n_results; i++)
		for (const struct tc_use *u = op->results[i].uses; u; u = u->next) {
			const struct tc_op *user = u->user;
			const struct same *s = user->block == h->block ? user->side : NULL;

			if (s ? !s->is_ahead && s->is_fed : !tc_has_trait(user, 'e') &&
			    !tc_has_trait(user, 's') && !tc_has_trait(user, 't') &&
			    user->op != TC_REDUCE)
				return true;
		}
	return false;
}

static bool is_needed(const struct hoist *h, const struct tc_op *op)
{
	for (unsigned i = 0; i < op->n_results; i++)
		for (const struct tc_use *u = op->results[i].uses; u; u = u->next) {
			const struct tc_op *user = u->user;
			const struct same *s;

			/* In a region of the op that counts. */
			while (user->block != h->block)
				user = user->block->region->parent;
			s = user->side;
			if (s && (s->is_ahead || s->is_needed))
				return true;
		}
	return false;
}

/* Backwards: whoever reads op has been judged. */
static void judge(struct hoist *h, const struct tc_op *op)
{
	struct same *s = op->side;
	uint64_t bytes = 0;

	if (!s)
		return;
	s->is_fed = is_fed(h, op);
	if (tc_has_trait(op, 'e'))
		s->is_ahead = s->bytes == op->results[0].type->bytes && (is_slow(op) || s->is_fed);
	for (unsigned i = 0; i < op->n_results; i++)
		bytes += (uint64_t)op->results[i].type->bytes;
	if (s->is_ahead && bytes > h->left)
		s->is_ahead = false;
	if (s->is_ahead)
		h->left -= bytes;
	s->is_needed = is_needed(h, op);
}

static void go_ahead(struct hoist *h, struct tc_op *op)
{
	const struct same *s = op->side;
	struct tc_op *copy;

	if (!s || (!s->is_ahead && !s->is_needed))
		return;
	copy = tc_clone(h->c, op, h->map);
	tc_insert_before(h->loop, copy);
	if (!s->is_ahead)
		return;
	for (unsigned i = 0; i < op->n_results; i++)
		tc_replace_uses(tc_out(op, i), tc_out(copy, i));
	tc_erase(op);
	if (h->c->ahead)
		h->c->ahead->is_any = true;
}

static void hoist_from(struct hoist *h, unsigned region)
{
	struct tc_op *next;

	h->block = h->loop->regions[region].block;
	h->runs = !region || tc_turns_of(h->loop);
	h->map = tc_map_new(h->c);
	for (struct tc_op *op = h->block->first; op; op = op->next)
		look_at(h, op);
	for (struct tc_op *op = h->block->last; op; op = op->prev)
		judge(h, op);
	for (struct tc_op *op = h->block->first; op; op = next) {
		next = op->next;
		go_ahead(h, op);
	}
}

/* Inner loops first: what they give up may leave the outer ones, too. */
static void hoist_block(struct hoist *h, struct tc_block *b)
{
	for (struct tc_op *op = b->first; op; op = op->next) {
		for (unsigned r = 0; r < op->n_regions; r++)
			if (op->regions[r].block)
				hoist_block(h, op->regions[r].block);
		if (op->op != TC_WHILE)
			continue;
		h->loop = op;
		hoist_from(h, 0);
		hoist_from(h, 1);
	}
}

void tc_pass_hoist(struct tc_ctx *c)
{
	const struct tc_block *main = tc_main(c);
	uint64_t limit = c->options->memory_limit, taken = 0;
	struct hoist h = { .c = c, .left = UINT64_MAX };

	if (c->ahead && c->ahead->is_off)
		return;
	for (unsigned i = 0; i < main->n_args; i++)
		taken += (uint64_t)main->args[i]->type->bytes;
	if (limit)
		h.left = limit > taken ? (limit - taken) / ROOM_PARTS : 0;
	hoist_block(&h, tc_main(c));
}
