/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Large arrays that only pass from one instruction to the next are made strip by strip.
 *
 * An attention's scores are an example: a product writes them, a fusion makes a softmax of them,
 * a product sums that up, and nobody else looks. Whole they may take more memory than all the
 * rest, and go out of the caches and back in between. Where all of these ops do for a part of the
 * array, along one dim, what they do for all of it, they become a loop over strips of it that
 * stay in a cache. Each element is computed from the same operands as before; only a sum may be
 * added up in another order, as an instruction does over another shape.
 *
 * What is taken together is a *cone*: from the op that makes such an array, its seed, on, all that
 * read it, and so on as long as arrays are large, and what lies between these. Its exits are its
 * results that others look at. What it reads from outside is cut, too, or read whole by every turn,
 * and then has to be small beside a strip. What is cut is copied, so it and the exits have to be
 * small beside what is not there any more. If strips along one dim are
 * still large, the loop's body is looked at in the same way.
 *
 * Requires: elementwise work is in fusions. Ensures: so it is; the same results but for the order
 * of sums; a tc.empty that is new here is written whole by the loop that it is for.
 */
#include <string.h>

#include "runtime/compiler/opt/build.h"
#include "runtime/compiler/opt/fuse.h"
#include "runtime/compiler/passes.h"

#define STRIP_BYTES ((uint64_t)16 << 20)	/* arrays as large leave the caches */
#define PARTS 4		/* of that, a strip is one at most */
#define LEAST_PART 32	/* and one of so many at least */
#define MOST_OPS 24	/* of a cone */
#define MOST_EXITS 8	/* a loop's states */
#define WINDOW 256	/* ops from the seed on among which a cone is looked for */
#define MOST_ROUNDS 16	/* over a cone until all cuts are known */
#define MOST_STEPS 4096	/* ops that are looked at for that, nested ones, too */

/* How a value is cut. Of a dim d: FIRST + d. */
enum { UNKNOWN, WHOLE, FIRST };

/* Of an op of the block at work. */
struct note {
	const struct tc_op *seed;	/* of which the rest speaks */
	bool depends;		/* on it */
	bool is_in;		/* its cone */
	uint8_t *outer;		/* how operands from outside the cone are cut */
};

struct cone {
	struct tc_ctx *c;
	uint64_t limit;
	const struct tc_op *seed;
	const struct tc_value *array;	/* the seed's result that is to be cut */
	struct tc_op *ops[MOST_OPS];	/* first as they are found, then in order */
	unsigned n;
	struct tc_value *exits[MOST_EXITS];
	unsigned n_exits;
	uint64_t within;	/* bytes of what is large in it */
	int64_t size, turns;	/* of dims that are cut, what all can be divided by; parts */
	/* while values' cuts are worked out */
	bool fits, moved;
};

/* ---- what belongs together ---- */

static struct note *note_of(struct cone *g, struct tc_op *op)
{
	struct note *n = op->side;

	if (!n) {
		op->side = n = arena_alloc(&g->c->arena, sizeof(*n));
		if (!n)
			tc_fail(g->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	}
	if (n->seed != g->seed)
		*n = (struct note){ .seed = g->seed };
	return n;
}

static bool is_here(const struct cone *g, const struct tc_value *v)
{
	return v->def && v->def->block == g->seed->block;
}

static bool is_inside(struct cone *g, const struct tc_value *v)
{
	return is_here(g, v) && note_of(g, v->def)->is_in;
}

static bool reads_dependent(struct cone *g, const struct tc_op *op, unsigned *steps)
{
	++*steps;
	for (unsigned i = 0; i < op->n_operands; i++)
		if (is_here(g, tc_in(op, i)) && note_of(g, tc_in(op, i)->def)->depends)
			return true;
	if (!tc_has_trait(op, 'i'))
		return false;
	for (unsigned r = 0; r < op->n_regions; r++)
		for (const struct tc_op *o = op->regions[r].block ?
		     op->regions[r].block->first : NULL; o && *steps < MOST_STEPS; o = o->next)
			if (reads_dependent(g, o, steps))
				return true;
	return false;
}

/* Marks what depends on the seed among the ops of the window. */
static bool mark_dependents(struct cone *g)
{
	unsigned steps = 0, n = 0;

	note_of(g, (struct tc_op *)g->seed)->depends = true;
	for (struct tc_op *op = g->seed->next; op && n < WINDOW; op = op->next, n++)
		note_of(g, op)->depends = reads_dependent(g, op, &steps);
	return steps < MOST_STEPS;
}

static bool is_large(const struct cone *g, const struct tc_value *v)
{
	return v->type->bytes > g->array->type->bytes / 2;
}

static bool is_cuttable(const struct tc_op *op)
{
	return op->op == TC_FUSION || op->op == TC_DOT_GENERAL || op->op == TC_RESHAPE ||
	       op->op == TC_TRANSPOSE || op->op == TC_REVERSE || op->op == TC_SLICE ||
	       op->op == TC_REDUCE || op->op == TC_BROADCAST_IN_DIM;
}

static uint8_t *new_cuts(struct cone *g, const struct tc_op *op)
{
	uint8_t *cuts = arena_alloc(&g->c->arena, op->n_operands + 1);

	if (!cuts)
		tc_fail(g->c, ERR_RESOURCE_EXHAUSTED, op, "out of memory");
	return cuts;
}

static void add(struct cone *g, struct tc_op *op)
{
	struct note *n = note_of(g, op);
	struct tc_block *within = op->op == TC_FUSION ? op->regions[0].block : NULL;

	if (n->is_in)
		return;
	if (!n->depends || !is_cuttable(op) || g->n == MOST_OPS) {
		g->fits = false;
		return;
	}
	n->is_in = true;
	n->outer = new_cuts(g, op);
	for (struct tc_op *o = within ? within->first : NULL; o; o = o->next)
		o->side = new_cuts(g, o);
	g->ops[g->n++] = op;
}

static void add_users(struct cone *g, const struct tc_value *v)
{
	for (const struct tc_use *u = v->uses; u && g->fits; u = u->next) {
		if (u->user->block != g->seed->block)
			g->fits = false;
		else
			add(g, u->user);
	}
}

static void add_exits(struct cone *g, struct tc_op *op)
{
	for (unsigned r = 0; r < op->n_results; r++) {
		struct tc_value *v = tc_out(op, r);
		bool is_exit = false;

		for (const struct tc_use *u = v->uses; u; u = u->next)
			is_exit |= u->user->block != g->seed->block || !note_of(g, u->user)->is_in;
		if (!is_exit)
			continue;
		if (g->n_exits == MOST_EXITS) {
			g->fits = false;
			return;
		}
		g->exits[g->n_exits++] = v;
	}
}

/* Whether there is a cone that is worth it; in g->ops. */
static bool find_cone(struct cone *g)
{
	uint64_t out = 0;
	unsigned n = 0;

	if (!mark_dependents(g))
		return false;
	g->fits = true;
	add(g, (struct tc_op *)g->seed);
	for (unsigned i = 0; i < g->n && g->fits; i++) {
		struct tc_op *op = g->ops[i];

		for (unsigned r = 0; r < op->n_results; r++)
			if (is_large(g, tc_out(op, r))) {
				g->within += (uint64_t)op->results[r].type->bytes;
				add_users(g, tc_out(op, r));
			}
		for (unsigned k = 0; k < op->n_operands && g->fits; k++)
			if (is_here(g, tc_in(op, k)) && note_of(g, tc_in(op, k)->def)->depends)
				add(g, tc_in(op, k)->def);
	}
	for (unsigned i = 0; i < g->n && g->fits; i++)
		add_exits(g, g->ops[i]);
	for (unsigned k = 0; k < g->n_exits; k++)
		out += (uint64_t)g->exits[k]->type->bytes;
	if (!g->fits || !g->n_exits || out > g->within / 2)
		return false;
	/* In order; what comes in between and depends on it will have to come after it. */
	for (struct tc_op *op = (struct tc_op *)g->seed; n < g->n; op = op->next) {
		const struct note *note = note_of(g, op);

		if (note->is_in)
			g->ops[n++] = op;
		else if (note->depends && (!tc_has_trait(op, 'p') || tc_has_effect(op) ||
					   tc_meets(op)))
			return false;
	}
	return true;
}

/* ---- how its values are cut ---- */

/*
 * Where it is written how a value is cut; or how an operand from outside of the cone is, or an
 * argument of a fusion's region for one that reads it there: others may read it otherwise.
 */
struct place { struct tc_value *v; uint8_t *outer; };

static struct place of_value(struct tc_value *v)
{
	return (struct place){ v, NULL };
}

static struct place of_result(struct tc_op *op)
{
	return of_value(tc_out(op, 0));
}

static struct place of_operand(struct cone *g, struct tc_op *op, unsigned i)
{
	struct tc_value *v = tc_in(op, i);

	if (op->block == g->seed->block)
		return (struct place){ v, is_inside(g, v) ? NULL : &note_of(g, op)->outer[i] };
	return (struct place){ v, v->def ? NULL : (uint8_t *)op->side + i };
}

/* The same of a use. */
static struct place of_use(struct cone *g, const struct tc_use *u)
{
	return of_operand(g, u->user, (unsigned)(u - u->user->operands));
}

static unsigned get(struct place p)
{
	return p.outer ? *p.outer : (unsigned)(uintptr_t)p.v->side;
}

static void put(struct place p, unsigned cut)
{
	if (p.outer)
		*p.outer = (uint8_t)cut;
	else
		p.v->side = (void *)(uintptr_t)cut;
}

static void set(struct cone *g, struct place p, unsigned cut)
{
	unsigned is = get(p);

	if (is == cut)
		return;
	g->fits &= is == UNKNOWN;
	g->moved = true;
	put(p, cut);
}

static void set_same(struct cone *g, struct place a, struct place b)
{
	if (get(a) != UNKNOWN)
		set(g, b, get(a));
	else if (get(b) != UNKNOWN)
		set(g, a, get(b));
}

static int find_dim(const int64_t *dims, unsigned n, int64_t d)
{
	for (unsigned k = 0; k < n; k++)
		if (dims[k] == d)
			return (int)k;
	return -1;
}

static void relate_broadcast(struct cone *g, struct tc_op *op)
{
	struct place in = of_operand(g, op, 0), out = of_result(op);
	unsigned n;
	const int64_t *dims = tc_attr_ints(op, "broadcast_dimensions", &n);

	if (get(out) == WHOLE) {
		set(g, in, WHOLE);
	} else if (get(out) >= FIRST) {
		int k = find_dim(dims, n, get(out) - FIRST);

		set(g, in, k < 0 || in.v->type->dim[k] == 1 ? WHOLE : FIRST + (unsigned)k);
	} else if (get(in) >= FIRST) {
		set(g, out, FIRST + (unsigned)dims[get(in) - FIRST]);
	}
}

static void relate_transpose(struct cone *g, struct tc_op *op)
{
	struct place in = of_operand(g, op, 0), out = of_result(op);
	unsigned n;
	const int64_t *dims = tc_attr_ints(op, "permutation", &n);

	if (get(out) >= FIRST)
		set(g, in, FIRST + (unsigned)dims[get(out) - FIRST]);
	else if (get(in) >= FIRST)
		set(g, out, FIRST + (unsigned)find_dim(dims, n, get(in) - FIRST));
	else
		set_same(g, in, out);
}

/* The dim of `to` before which there are as many elements as before dim d of `from`, or -1. */
static int dim_at(const struct tc_type *from, const struct tc_type *to, unsigned d)
{
	int64_t before = 1, n = 1;

	for (unsigned k = 0; k < d; k++)
		before *= from->dim[k];
	for (unsigned k = 0; k < to->rank; n *= to->dim[k++])
		if (n == before && to->dim[k] != 1)
			return (int)k;
	return -1;
}

/* A strip of one lies in memory as a strip of the other does: see share_size(). */
static void relate_reshape(struct cone *g, struct tc_op *op)
{
	struct place in = of_operand(g, op, 0), out = of_result(op);
	struct place from = get(in) == UNKNOWN ? out : in, to = get(in) == UNKNOWN ? in : out;
	int d;

	if (get(from) < FIRST) {
		set_same(g, in, out);
		return;
	}
	d = dim_at(from.v->type, to.v->type, get(from) - FIRST);
	g->fits &= d >= 0;
	if (d >= 0)
		set(g, to, FIRST + (unsigned)d);
}

static void relate_reduce(struct cone *g, struct tc_op *op)
{
	struct place in = of_operand(g, op, 0), out = of_result(op);
	unsigned n, k = 0, arrays = op->n_results;
	const int64_t *dims = tc_attr_ints(op, "dimensions", &n);

	for (unsigned i = 0; i < arrays; i++) {
		set_same(g, in, of_operand(g, op, i));
		set_same(g, out, of_value(tc_out(op, i)));
		set(g, of_operand(g, op, arrays + i), WHOLE);
	}
	if (get(in) == WHOLE || get(out) == WHOLE)
		set_same(g, in, out);
	for (unsigned d = 0; d < in.v->type->rank; d++) {
		if (find_dim(dims, n, d) >= 0) {
			g->fits &= get(in) != FIRST + d;
			continue;
		}
		if (get(in) == FIRST + d)
			set(g, out, FIRST + k);
		else if (get(out) == FIRST + k)
			set(g, in, FIRST + d);
		k++;
	}
}

/* One side of a product: its own dims begin at dim *first of the result. */
static void relate_side(struct cone *g, struct tc_op *op, unsigned side, unsigned *first)
{
	struct place in = of_operand(g, op, side), other = of_operand(g, op, !side);
	struct place out = of_result(op);
	unsigned nb, nk;
	const int64_t *batch = tc_attr_ints(op, side ? "rhs_batching_dimensions" :
					    "lhs_batching_dimensions", &nb);
	const int64_t *summed = tc_attr_ints(op, side ? "rhs_contracting_dimensions" :
					     "lhs_contracting_dimensions", &nk);

	for (unsigned d = 0; d < in.v->type->rank; d++) {
		int b = find_dim(batch, nb, d);
		unsigned at = b >= 0 ? (unsigned)b : *first;

		if (find_dim(summed, nk, d) >= 0) {
			g->fits &= get(in) != FIRST + d;
			continue;
		}
		*first += b < 0;
		if (get(in) == FIRST + d)
			set(g, out, FIRST + at);
		if (get(out) != FIRST + at)
			continue;
		set(g, in, FIRST + d);
		if (b < 0)
			set(g, other, WHOLE);
	}
}

static void relate_dot(struct cone *g, struct tc_op *op)
{
	unsigned first;

	tc_attr_ints(op, "lhs_batching_dimensions", &first);
	relate_side(g, op, 0, &first);
	relate_side(g, op, 1, &first);
	for (unsigned k = 0; k < 2 && get(of_result(op)) == WHOLE; k++)
		set(g, of_operand(g, op, k), WHOLE);
}

/* A slice or a reversal along other dims alone. */
static void relate_idle(struct cone *g, struct tc_op *op)
{
	struct place in = of_operand(g, op, 0), out = of_result(op);
	unsigned d, n;
	const int64_t *dims = tc_attr_ints(op, "dimensions", &n);

	set_same(g, in, out);
	if (get(in) < FIRST)
		return;
	d = get(in) - FIRST;
	g->fits &= op->op == TC_REVERSE ? find_dim(dims, n, d) < 0 :
		   in.v->type->dim[d] == out.v->type->dim[d];
}

static void relate_equal(struct cone *g, struct tc_op *op)
{
	for (unsigned i = 0; i < op->n_operands; i++) {
		struct place in = of_operand(g, op, i);

		/* clamps' bounds and what selects may be one for all */
		if (in.v->type->rank != op->results[0].type->rank)
			set(g, in, WHOLE);
		else
			set_same(g, in, of_result(op));
	}
}

static void relate(struct cone *g, struct tc_op *op);

static void relate_fusion(struct cone *g, struct tc_op *op)
{
	struct tc_block *b = op->regions[0].block;

	for (unsigned i = 0; i < op->n_operands; i++)
		for (const struct tc_use *u = b->args[i]->uses; u; u = u->next)
			if (is_inside(g, tc_in(op, i)))
				set_same(g, of_value(tc_in(op, i)), of_use(g, u));
	for (unsigned i = 0; i < op->n_results; i++)
		set_same(g, of_value(tc_out(op, i)), of_operand(g, b->last, i));
	/* There and back: what is known at one end is soon known at the other. */
	for (struct tc_op *o = b->first; o != b->last && g->fits; o = o->next)
		relate(g, o);
	for (struct tc_op *o = b->last->prev; o && g->fits; o = o->prev)
		relate(g, o);
}

/* Says of what the op gives and takes what is known from each other. */
static void relate(struct cone *g, struct tc_op *op)
{
	switch (op->op) {
	case TC_FUSION:
		relate_fusion(g, op);
		break;
	case TC_BROADCAST_IN_DIM:
		relate_broadcast(g, op);
		break;
	case TC_TRANSPOSE:
		relate_transpose(g, op);
		break;
	case TC_RESHAPE:
		relate_reshape(g, op);
		break;
	case TC_REDUCE:
		relate_reduce(g, op);
		break;
	case TC_DOT_GENERAL:
		relate_dot(g, op);
		break;
	case TC_SLICE:
	case TC_REVERSE:
		relate_idle(g, op);
		break;
	case TC_CONSTANT:
		g->fits &= get(of_result(op)) < FIRST || tc_splat_element(tc_out(op, 0));
		break;
	case TC_IOTA:
		g->fits &= get(of_result(op)) !=
			   FIRST + (unsigned)tc_attr_int(op, "iota_dimension", 0);
		break;
	default:
		g->fits &= tc_has_trait(op, 'e') || tc_is_even_bitcast(op);
		if (g->fits)
			relate_equal(g, op);
	}
}

/* Calls fn for all places of the cone. */
static void each_place(struct cone *g, void (*fn)(struct cone *g, struct place p))
{
	for (unsigned i = 0; i < g->n; i++) {
		struct tc_op *op = g->ops[i];
		struct tc_block *b = op->op == TC_FUSION ? op->regions[0].block : NULL;

		for (unsigned k = 0; k < op->n_operands; k++)
			fn(g, of_operand(g, op, k));
		for (unsigned r = 0; r < op->n_results; r++)
			fn(g, of_value(tc_out(op, r)));
		for (struct tc_op *o = b ? b->first : NULL; o; o = o->next) {
			for (unsigned k = 0; k < o->n_operands; k++)
				fn(g, of_operand(g, o, k));
			for (unsigned r = 0; r < o->n_results; r++)
				fn(g, of_value(tc_out(o, r)));
		}
	}
}

static void forget(struct cone *g, struct place p)
{
	(void)g;
	put(p, UNKNOWN);
}

static int64_t divisor(int64_t a, int64_t b)
{
	while (b) {
		int64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

static int64_t size_of_cut(struct place p)
{
	return get(p) >= FIRST ? p.v->type->dim[get(p) - FIRST] : 0;
}

/* What a reshape splits or joins is cut where it is so on both sides. */
static void share_size(struct cone *g, struct place p)
{
	g->size = divisor(g->size, size_of_cut(p));
}

/* Sets g->turns such that strips are of the size that is wanted, or as near as dims allow; 0:
 * there is none. */
static void choose_turns(struct cone *g)
{
	uint64_t bytes = (uint64_t)g->array->type->bytes;
	int64_t turns = 2;

	g->size = 0;
	each_place(g, share_size);
	while (turns < g->size && bytes / (uint64_t)turns >= g->limit / LEAST_PART &&
	       (g->size % turns || bytes / (uint64_t)turns > g->limit / PARTS))
		turns++;
	g->turns = g->size >= 2 && g->size <= INT32_MAX &&
		   bytes / (uint64_t)turns >= g->limit / LEAST_PART ? turns : 0;
}

/* Adds the bytes of an operand from outside to those that every turn reads whole, or to those that
 * are cut, or both. */
static void count_reads(struct cone *g, struct tc_op *op, unsigned k, uint64_t bytes[2])
{
	struct place in = of_operand(g, op, k);
	bool is_read[2] = { false, false };

	if (!in.outer)
		return;
	if (op->op != TC_FUSION)
		is_read[get(in) >= FIRST] = true;
	else
		for (const struct tc_use *u = op->regions[0].block->args[k]->uses; u; u = u->next)
			is_read[get(of_use(g, u)) >= FIRST] = true;
	for (unsigned is_cut = 0; is_cut < 2; is_cut++)
		bytes[is_cut] += is_read[is_cut] ? (uint64_t)in.v->type->bytes : 0;
}

/* Whether all is cut that has to be, and what is read from outside is little. */
static bool is_worth_it(struct cone *g)
{
	uint64_t read[2] = { 0, 0 };	/* whole; cut */

	for (unsigned i = 0; i < g->n; i++) {
		for (unsigned k = 0; k < g->ops[i]->n_operands; k++)
			count_reads(g, g->ops[i], k, read);
		for (unsigned r = 0; r < g->ops[i]->n_results; r++)
			if (get(of_value(tc_out(g->ops[i], r))) < FIRST)
				return false;
	}
	choose_turns(g);
	return g->turns && read[1] <= g->within / 4 * 3 &&
	       read[0] <= (uint64_t)(g->array->type->bytes / g->turns) / 2;
}

static bool cut_along(struct cone *g, unsigned dim)
{
	each_place(g, forget);
	put(of_value((struct tc_value *)g->array), FIRST + dim);
	g->fits = true;
	g->moved = true;
	for (unsigned round = 0; round < MOST_ROUNDS && g->moved && g->fits; round++) {
		g->moved = false;
		for (unsigned i = 0; i < g->n && g->fits; i++)
			relate(g, g->ops[i]);
		for (unsigned i = g->n; i-- > 0 && g->fits;)
			relate(g, g->ops[i]);
	}
	return !g->moved && g->fits && is_worth_it(g);
}

/* ---- the loop ---- */

static const struct tc_type *cut_type(struct cone *g, struct place p)
{
	const struct tc_type *t = p.v->type;
	int64_t dim[TC_MAX_RANK];

	if (get(p) < FIRST)
		return t;
	memcpy(dim, t->dim, t->rank * sizeof(*dim));
	dim[get(p) - FIRST] /= g->turns;
	return tc_tensor(g->c, (enum elem)t->elem, t->rank, dim);
}

/* In a turn. */
struct turn {
	struct cone *g;
	const struct tc_build *b;
	struct tc_value *number;
	struct tc_map *map;
	struct tc_value *index;	/* where strips begin along dims of which they have this size */
	int64_t index_size;
};

static struct tc_value *index_of(struct turn *t, int64_t size)
{
	if (size == 1)
		return t->number;
	if (!t->index || t->index_size != size)
		t->index = tc_build2(t->b, TC_MULTIPLY, t->number,
				     tc_build_number(t->b, t->number->type, (double)size));
	t->index_size = size;
	return t->index;
}

/* What is read at a place outside of the cone. */
static struct tc_value *bring(struct turn *t, struct place p)
{
	int64_t size = size_of_cut(p) / t->g->turns;

	return get(p) < FIRST ? p.v :
	       tc_build_take(t->b, p.v, get(p) - FIRST, index_of(t, size), size);
}

static void add_operand(struct turn *t, struct tc_op *op, struct tc_value *v)
{
	struct tc_value **in = arena_array(&t->g->c->arena, op->n_operands + 1, sizeof(*in));

	if (!in)
		tc_fail(t->g->c, ERR_RESOURCE_EXHAUSTED, op, "out of memory");
	for (unsigned i = 0; i < op->n_operands; i++)
		in[i] = tc_in(op, i);
	in[op->n_operands] = v;
	tc_set_operands(t->g->c, op, op->n_operands + 1, in);
}

/* Argument k of a fusion's region, for each way in which it is cut one in the copy. */
static void cut_argument(struct turn *t, struct tc_op *op, struct tc_op *copy, unsigned k)
{
	struct tc_block *from = op->regions[0].block, *to = copy->regions[0].block;
	struct tc_value *made[FIRST + TC_MAX_RANK] = { NULL };
	struct tc_op *twin = to->first;
	bool is_first = true;

	if (is_inside(t->g, tc_in(op, k))) {
		to->args[k]->type = cut_type(t->g, of_value(tc_in(op, k)));
		return;
	}
	for (struct tc_op *o = from->first; o; o = o->next, twin = twin->next) {
		for (unsigned i = 0; i < o->n_operands; i++) {
			struct place in = of_operand(t->g, o, i);
			struct tc_value **arg = &made[get(in)];

			if (in.v != from->args[k])
				continue;
			if (!*arg) {
				struct place outer = { tc_in(op, k), in.outer };
				struct tc_value *v = bring(t, outer);

				*arg = is_first ? to->args[k] : tc_new_arg(t->g->c, to, v->type);
				(*arg)->type = v->type;
				if (is_first)
					tc_set_operand(copy, k, v);
				else
					add_operand(t, copy, v);
				is_first = false;
			}
			tc_set_operand(twin, i, *arg);
		}
	}
}

/* Gives what is in a copy of op the types of a strip. */
static void cut_copy(struct turn *t, struct tc_op *op, struct tc_op *copy)
{
	struct cone *g = t->g;
	struct tc_op *twin;
	struct tc_attr value;

	for (unsigned r = 0; r < op->n_results; r++)
		copy->results[r].type = cut_type(g, of_value(tc_out(op, r)));
	if (op->op == TC_CONSTANT && get(of_result(op)) >= FIRST) {
		value = *tc_attr(op, "value");
		value.type = copy->results[0].type;
		tc_set_attr(g->c, copy, value);
	}
	if (op->op == TC_SLICE && get(of_result(op)) >= FIRST)
		tc_set_nth(g->c, copy, "limit_indices", get(of_result(op)) - FIRST,
			   copy->results[0].type->dim[get(of_result(op)) - FIRST]);
	if (op->op != TC_FUSION)
		return;
	for (unsigned k = 0; k < op->n_operands; k++)
		cut_argument(t, op, copy, k);
	twin = copy->regions[0].block->first;
	for (struct tc_op *o = op->regions[0].block->first; o; o = o->next, twin = twin->next)
		cut_copy(t, o, twin);
}

static void write_turn(const struct tc_build *b, struct tc_value *number,
		       struct tc_value **state, void *arg)
{
	struct cone *g = arg;
	struct turn t = { .g = g, .b = b, .number = number, .map = tc_map_new(g->c) };

	for (unsigned i = 0; i < g->n; i++) {
		struct tc_op *op = g->ops[i], *copy = tc_clone(g->c, op, t.map);

		for (unsigned k = 0; k < op->n_operands && op->op != TC_FUSION; k++)
			if (of_operand(g, op, k).outer)
				tc_set_operand(copy, k, bring(&t, of_operand(g, op, k)));
		cut_copy(&t, op, copy);
		tc_build_place(b, copy);
	}
	for (unsigned k = 0; k < g->n_exits; k++) {
		struct place exit = of_value(g->exits[k]);

		state[k] = tc_build_put(b, state[k], get(exit) - FIRST,
					index_of(&t, size_of_cut(exit) / g->turns),
					tc_map_get(t.map, exit.v));
	}
}

/* What lies between the cone's ops and looks at its exits goes behind them. */
static void move_others(struct cone *g, struct tc_op *last)
{
	struct tc_op *after = last->next;

	for (struct tc_op *op = (struct tc_op *)g->seed, *next; op != last; op = next) {
		next = op->next;
		if (note_of(g, op)->is_in || !note_of(g, op)->depends)
			continue;
		tc_unlink(op);
		tc_insert_before(after, op);
	}
}

/* Puts a loop in the cone's place. */
static struct tc_op *write_loop(struct cone *g)
{
	const struct tc_loop loop = { .n = g->turns, .body = write_turn, .arg = g };
	struct tc_op *last = g->ops[g->n - 1];
	struct tc_build b = tc_build_at(g->c, last);
	struct tc_value *state[MOST_EXITS];

	move_others(g, last);
	for (unsigned k = 0; k < g->n_exits; k++)
		state[k] = tc_build(&b, TC_EMPTY, g->exits[k]->type, 0, NULL);
	tc_build_loop(&b, &loop, g->n_exits, state);
	for (unsigned k = 0; k < g->n_exits; k++)
		tc_replace_uses(g->exits[k], state[k]);
	for (unsigned i = g->n; i-- > 0;)
		tc_erase(g->ops[i]);
	for (unsigned r = 0; r < 2; r++)
		tc_fuse_block(g->c, state[0]->def->regions[r].block);
	return state[0]->def;
}

/* The loop that the seed went into, or NULL. */
static struct tc_op *strip(struct tc_ctx *c, const struct tc_op *seed, uint64_t limit)
{
	struct cone g = { .c = c, .limit = limit, .seed = seed, .array = &seed->results[0] };

	for (unsigned r = 1; r < seed->n_results; r++)
		if (seed->results[r].type->bytes > g.array->type->bytes)
			g.array = &seed->results[r];
	if ((uint64_t)g.array->type->bytes < limit || !find_cone(&g))
		return NULL;
	for (unsigned d = 0; d < g.array->type->rank; d++)
		if (g.array->type->dim[d] > 1 && cut_along(&g, d))
			return write_loop(&g);
	return NULL;
}

static void strip_block(struct tc_ctx *c, struct tc_block *b, uint64_t limit)
{
	struct tc_op *next;

	for (struct tc_op *op = b->first; op; op = op->next)
		op->side = NULL;
	for (struct tc_op *op = b->first; op; op = next) {
		struct tc_op *prev = op->prev, *loop = NULL;

		next = op->next;
		if (op->op == TC_FUSION || op->op == TC_DOT_GENERAL)
			loop = strip(c, op, limit);
		if (loop) {
			/* Others may have come to stand in its place. */
			next = prev ? prev->next : b->first;
			strip_block(c, loop->regions[1].block, limit / 2);
			continue;
		}
		for (unsigned r = 0; r < op->n_regions && tc_has_trait(op, 'i'); r++)
			if (op->regions[r].block)
				strip_block(c, op->regions[r].block, limit);
	}
}

void tc_pass_strip(struct tc_ctx *c)
{
	strip_block(c, tc_main(c), c->options->strip_bytes ? c->options->strip_bytes :
							     STRIP_BYTES);
}
