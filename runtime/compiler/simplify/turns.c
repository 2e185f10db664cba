/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elementwise work that is better done before arrays are moved, or along other dims first: a part
 * of the pass simplify. Constants, iotas and broadcasts turn for nothing.
 */
#include "runtime/compiler/simplify/simpler.h"

#include <string.h>

#include "hal/hw/isa.h"
#include "runtime/compiler/opt/build.h"
#include "runtime/compiler/opt/fuse.h"

#define MOST 32		/* ops between the two */
#define MOST_PIECES 64	/* of an array that is put together of two */
#define LEAST_WORK 64	/* elements; fewer may be taken apart, or a loop's */

/* What is turned back: dim d of the new values is dim to[d] of those there are. */
struct turn {
	struct tc_build b;
	const struct tc_block *block;
	const int64_t *to;
	unsigned rank, n_ops;
	unsigned cancelled, added;	/* moves */
	const struct tc_value *argument;	/* that was met last */
};

static bool is_turned_back(const struct turn *t, const struct tc_op *op)
{
	unsigned n;
	const int64_t *from = tc_attr_ints(op, "permutation", &n);

	for (unsigned d = 0; d < n; d++)
		if (from[t->to[d]] != d)
			return false;
	return true;
}

/* The dim of the new values that dim d of those there are becomes. */
static unsigned new_dim(const struct turn *t, int64_t d)
{
	unsigned k = 0;

	while (t->to[k] != d)
		k++;
	return k;
}

static bool keeps_order(const struct turn *t, const struct tc_op *broadcast)
{
	unsigned n;
	const int64_t *dims = tc_attr_ints(broadcast, "broadcast_dimensions", &n);

	for (unsigned i = 1; i < n; i++)
		if (new_dim(t, dims[i - 1]) > new_dim(t, dims[i]))
			return false;
	return true;
}

/* Whether one op alone looks at v, be it twice. */
static bool has_one_user(const struct tc_value *v)
{
	for (const struct tc_use *u = v->uses; u; u = u->next)
		if (u->user != v->uses->user)
			return false;
	return v->uses && v->uses->user->block == v->def->block;
}

static bool is_work(const struct turn *t, const struct tc_value *v)
{
	const struct tc_op *op = v->def;

	return op && tc_has_trait(op, 'e') && op->n_operands && op->n_results == 1 &&
	       !op->n_regions && op->block == t->block && has_one_user(v);
}

/* Whether v can be had turned back; counts the moves. */
static bool can_turn(struct turn *t, const struct tc_value *v)
{
	const struct tc_op *op = v->def;

	if (v->type->rank != t->rank)
		return !v->type->rank;
	if (!op) {
		t->added += v != t->argument;
		t->argument = v;
		return true;
	}
	if (tc_splat_element(v) || op->op == TC_IOTA)
		return true;
	if (op->op == TC_BROADCAST_IN_DIM)
		return keeps_order(t, op);
	if (op->op == TC_TRANSPOSE)
		return is_turned_back(t, op) && ++t->cancelled;
	if (!is_work(t, v) || ++t->n_ops > MOST)
		return false;
	for (unsigned i = 0; i < op->n_operands; i++)
		if (!can_turn(t, tc_in(op, i)))
			return false;
	return true;
}

static const struct tc_type *turned_type(const struct turn *t, const struct tc_type *type)
{
	int64_t dim[TC_MAX_RANK];

	for (unsigned d = 0; d < t->rank; d++)
		dim[d] = type->dim[t->to[d]];
	return tc_tensor(t->b.c, (enum elem)type->elem, t->rank, dim);
}

static struct tc_value *turned_broadcast(const struct turn *t, const struct tc_op *op)
{
	int64_t to[TC_MAX_RANK];
	unsigned n;
	const int64_t *dims = tc_attr_ints(op, "broadcast_dimensions", &n);

	for (unsigned i = 0; i < n; i++)
		to[i] = new_dim(t, dims[i]);
	return tc_build_broadcast(&t->b, tc_in(op, 0), turned_type(t, op->results[0].type), to);
}

static struct tc_value *turned(const struct turn *t, struct tc_value *v)
{
	const struct tc_op *op = v->def;
	struct tc_value *in[TC_MAX_RANK];
	struct tc_value *made;

	if (v->type->rank != t->rank)
		return v;
	if (!op)
		return tc_build_transpose(&t->b, v, t->to);
	if (tc_splat_element(v))
		return tc_splat(t->b.c, t->b.before, turned_type(t, v->type), tc_splat_element(v));
	if (op->op == TC_IOTA)
		return tc_build_iota(&t->b, turned_type(t, v->type),
				     new_dim(t, tc_attr_int(op, "iota_dimension", 0)));
	if (op->op == TC_BROADCAST_IN_DIM)
		return turned_broadcast(t, op);
	if (op->op == TC_TRANSPOSE)
		return tc_in(op, 0);
	for (unsigned i = 0; i < op->n_operands; i++)
		in[i] = turned(t, tc_in(op, i));
	made = tc_build(&t->b, (enum tc_opcode)op->op, turned_type(t, v->type), op->n_operands, in);
	for (unsigned i = 0; i < op->n_attrs; i++)
		tc_set_attr(t->b.c, made->def, op->attrs[i]);
	made->def->where = op->where;
	return made;
}

/* Whether all who look at v do elementwise work, or return it: a product reads what is turned where
 * it lies. */
static bool is_for_work(const struct tc_value *v)
{
	for (const struct tc_use *u = v->uses; u; u = u->next)
		if (u->user->op != TC_RETURN && !tc_has_trait(u->user, 'e'))
			return false;
	return v->uses;
}

/* Whether the work that op turns has a single argument, no wider than itself, to be turned before
 * it, and whoever looks at the result takes it from a fusion. */
static bool is_better_before(const struct turn *t, const struct tc_op *op)
{
	return t->added == 1 && is_for_work(tc_out(op, 0)) &&
	       elem_bytes(t->argument->type->elem) <= elem_bytes(op->results[0].type->elem);
}

/* Work on transposed arrays that is transposed back, as (x.T + y.T).T, is done on the arrays as
 * they were, if that takes no more moves than before. And an argument is transposed before work
 * that would be: the fusion reads it so, and nothing is written twice. */
bool tc_cancel_turns(struct tc_ctx *c, struct tc_op *op)
{
	struct turn t = { .b = tc_build_at(c, op), .block = op->block };

	if (op->op != TC_TRANSPOSE || !is_work(&t, tc_in(op, 0)))
		return false;
	t.to = tc_attr_ints(op, "permutation", &t.rank);
	if (!can_turn(&t, tc_in(op, 0)) ||
	    (t.cancelled ? t.added > t.cancelled : !is_better_before(&t, op)))
		return false;
	tc_replace(op, turned(&t, tc_in(op, 0)));
	return true;
}

enum { MOST_PARTS = 4 };	/* that take turns in memory */
enum { MOST_NARROW = 2 };	/* of them, of fewer than 4 bytes: more are stored one by one */

/* Whether v is made by elementwise work, in whatever shape. */
static bool is_made(const struct tc_value *v)
{
	while (v->def && (v->def->op == TC_RESHAPE || v->def->op == TC_BROADCAST_IN_DIM) &&
	       tc_in(v->def, 0)->type->count == v->type->count && tc_is_used_once(v))
		v = tc_in(v->def, 0);
	return v->def && tc_has_trait(v->def, 'e') && v->def->n_operands && tc_is_used_once(v);
}

/* Whether v is a result, and no one else looks at it. */
static bool is_returned(const struct tc_value *v)
{
	for (const struct tc_use *u = v->uses; u; u = u->next)
		if (u->user->op != TC_RETURN)
			return false;
	return v->uses;
}

/* What is joined along a dim of its own that is turned to the end, as the components of a cross
 * product are, is joined there: a fusion writes its results by turns (back/join.c), and nothing is
 * written twice. What more is done with it reads the parts as they lie, one behind the other, which
 * is faster. */
bool tc_join_turned(struct tc_ctx *c, struct tc_op *op)
{
	const struct tc_op *join = op->op == TC_TRANSPOSE ? tc_in(op, 0)->def : NULL;
	struct tc_build b = tc_build_at(c, op);
	struct tc_value *part[MOST_PARTS];
	const int64_t *to;
	int64_t d;
	unsigned rank;

	if (!join || join->op != TC_CONCATENATE || join->n_operands > MOST_PARTS ||
	    join->block != op->block || !tc_is_used_once(tc_in(op, 0)) ||
	    !is_returned(tc_out(op, 0)))
		return false;
	if (join->n_operands > MOST_NARROW && elem_bytes(tc_out(op, 0)->type->elem) < 4)
		return false;
	d = tc_attr_int(join, "dimension", 0);
	to = tc_attr_ints(op, "permutation", &rank);
	if (to[rank - 1] != d)
		return false;
	for (unsigned k = 2; k < rank; k++)
		if (to[k - 2] > to[k - 1])
			return false;
	for (unsigned k = 0; k < join->n_operands; k++)
		if (tc_in(join, k)->type->dim[d] != 1 || !is_made(tc_in(join, k)))
			return false;
	for (unsigned k = 0; k < join->n_operands; k++)
		part[k] = tc_build_transpose(&b, tc_in(join, k), to);
	tc_replace(op, tc_build_join(&b, join->n_operands, part, rank - 1));
	return true;
}

enum { MANY_ROWS = 1024, SHORT_ROW = 256 };

/* Whether op folds rows in an order that does not show in its bits. */
static bool folds_in_any_order(const struct tc_op *op)
{
	switch (tc_simple_reduce(op)) {
	case TC_AND: case TC_OR: case TC_XOR: case TC_MAXIMUM: case TC_MINIMUM:
		return elem_class(op->results[0].type->elem) != ELEM_CLASS_COMPLEX;
	case TC_ADD: case TC_MULTIPLY:
		return tc_is_integer(op->results[0].type);
	default:
		return false;
	}
}

/*
 * All of some numbers with all of a few others, folded along the few, as numpy's isin and
 * (x[:, None] < y).sum(1) are: many short rows, which nobody has in memory. The few come first
 * then, and rows are long.
 */
bool tc_fold_first(struct tc_ctx *c, struct tc_op *op)
{
	struct turn t = { .b = tc_build_at(c, op), .block = op->block };
	int64_t to[TC_MAX_RANK], first = 0;
	const struct tc_type *type;
	const int64_t *dims;
	unsigned n;

	if (op->op != TC_REDUCE || op->n_results != 1 || !folds_in_any_order(op))
		return false;
	dims = tc_attr_ints(op, "dimensions", &n);
	type = tc_in(op, 0)->type;
	t.rank = type->rank;
	t.to = to;
	if (t.rank < 2 || type->dim[t.rank - 1] > SHORT_ROW ||
	    tc_out(op, 0)->type->count < MANY_ROWS || n != 1 || dims[0] != t.rank - 1)
		return false;
	to[0] = t.rank - 1;
	for (unsigned d = 1; d < t.rank; d++)
		to[d] = d - 1;
	if (!is_work(&t, tc_in(op, 0)) || !can_turn(&t, tc_in(op, 0)) || t.cancelled || t.added)
		return false;
	tc_set_operand(op, 0, turned(&t, tc_in(op, 0)));
	tc_set_ints(c, op, "dimensions", &first, 1);
	return true;
}

/* Whether op is what it does, and nothing else that it says, to two arrays of its result's type:
 * it can be done to parts of them. */
static bool works_on_two(const struct tc_op *op)
{
	const struct tc_type *t = op->n_results == 1 ? op->results[0].type : NULL;

	return t && tc_has_trait(op, 'e') && op->n_operands == 2 && op->op != TC_COMPARE &&
	       tc_in(op, 0)->type == t && tc_in(op, 1)->type == t;
}

/* ---- elements by turns ---- */

/* An array of which each element is at every second place along one dim of a padded one. */
struct half {
	const struct tc_op *pad;
	unsigned dim;
	int64_t first;		/* 0 or 1: the place of the first one */
};

static bool is_half(const struct tc_value *v, const struct tc_op *user, struct half *h)
{
	const struct tc_type *from, *to = v->type;
	unsigned n_dims = 0;

	if (!v->def || v->def->op != TC_PAD || !tc_is_used_once(v) ||
	    v->def->block != user->block)
		return false;
	h->pad = v->def;
	from = tc_in(h->pad, 0)->type;
	for (unsigned d = 0; d < to->rank; d++) {
		/* Padded within and cut at its end a dim may have the same size. */
		if (from->dim[d] == to->dim[d] && !tc_attr_nth(h->pad, "edge_padding_low", d) &&
		    (from->dim[d] == 1 || !tc_attr_nth(h->pad, "interior_padding", d)))
			continue;
		n_dims++;
		h->dim = d;
	}
	if (n_dims != 1 || !from->count)
		return false;
	h->first = tc_attr_nth(h->pad, "edge_padding_low", h->dim);
	return (h->first == 0 || h->first == 1) &&
	       (from->dim[h->dim] == 1 || tc_attr_nth(h->pad, "interior_padding", h->dim) == 1) &&
	       from->dim[h->dim] == (to->dim[h->dim] + !h->first) / 2;
}

/* What op makes of elements from .. from + size along the dim of its operand k, and of what the
 * other operand is padded with. */
static struct tc_value *make_part(const struct tc_build *b, const struct tc_op *op,
				  const struct half *half, unsigned k, int64_t from, int64_t size)
{
	struct tc_value *in[2];

	in[k] = tc_in(half[k].pad, 0);
	if (size < in[k]->type->dim[half[k].dim])
		in[k] = tc_build_part(b, in[k], half[k].dim, from, size);
	in[!k] = tc_build_broadcast(b, tc_in(half[!k].pad, 1), in[k]->type, NULL);
	return tc_build2(b, op->op, in[0], in[1]);
}

/*
 * Two arrays whose elements take turns, written as a sum: each is padded between its elements, and
 * at every place one of the two has what it was padded with. Associative scans are made of that,
 * at every level. Each array by itself with what the other is padded with is the same, bit for
 * bit, and half the work; joined along a dim of their own the two are born within the whole
 * (back/join.c), and no padded array is written.
 */
bool tc_interleave(struct tc_ctx *c, struct tc_op *op)
{
	const struct tc_type *t = op->results[0].type;
	struct tc_value *part[2], *whole[2];
	struct half half[2];
	struct tc_build b;
	int64_t dim[TC_MAX_RANK], n;
	unsigned d, even;

	if (!works_on_two(op) || t->rank >= ISA_MAX_RANK ||
	    !is_half(tc_in(op, 0), op, &half[0]) || !is_half(tc_in(op, 1), op, &half[1]) ||
	    half[0].dim != half[1].dim || half[0].first == half[1].first)
		return false;
	b = tc_build_at(c, op);
	d = half[0].dim;
	even = half[0].first ? 1 : 0;
	n = t->dim[d] / 2;
	memcpy(dim, t->dim, d * sizeof(*dim));
	memcpy(dim + d + 1, t->dim + d, (t->rank - d) * sizeof(*dim));
	dim[d] = n;
	dim[d + 1] = 1;
	/* Both before any view of one: a fusion takes them together then. */
	for (unsigned i = 0; i < 2; i++)
		part[i] = make_part(&b, op, half, i ? !even : even, 0, n);
	for (unsigned i = 0; i < 2; i++)
		part[i] = tc_build_reshape(&b, part[i], t->rank + 1u, dim);
	whole[0] = tc_build_join(&b, 2, part, d + 1);
	memcpy(dim, t->dim, t->rank * sizeof(*dim));
	dim[d] = 2 * n;
	whole[0] = tc_build_reshape(&b, whole[0], t->rank, dim);
	if (t->dim[d] % 2) {
		whole[1] = make_part(&b, op, half, even, n, 1);
		whole[0] = tc_build_join(&b, 2, whole, d);
	}
	tc_replace(op, whole[0]);
	return true;
}

/* ---- piece by piece ---- */

/* What an operand is made of along one dim, from its beginning on. */
struct pieces {
	unsigned n;
	int64_t end[MOST_PIECES];
	struct tc_value *what[MOST_PIECES];	/* one element: the same everywhere */
	bool is_same[MOST_PIECES];
};

static void add_piece(struct pieces *p, int64_t size, struct tc_value *what, bool is_same)
{
	if (!size)
		return;
	p->end[p->n] = size + (p->n ? p->end[p->n - 1] : 0);
	p->is_same[p->n] = is_same;
	p->what[p->n++] = what;
}

/* The only dim that a pad makes longer, at its ends; -1: it does otherwise. */
static int longer_dim(const struct tc_op *pad)
{
	const struct tc_type *from = tc_in(pad, 0)->type, *to = pad->results[0].type;
	int dim = -1;

	for (unsigned d = 0; d < to->rank; d++) {
		int64_t low = tc_attr_nth(pad, "edge_padding_low", d);
		int64_t high = tc_attr_nth(pad, "edge_padding_high", d);

		if (low < 0 || high < 0 || low + from->dim[d] + high != to->dim[d])
			return -1;
		if (from->dim[d] == to->dim[d])
			continue;
		if (dim >= 0)
			return -1;
		dim = (int)d;
	}
	return from->count ? dim : -1;
}

/* Along which dim v is a concatenation or a padded array that nobody else looks at; or -1. */
static int whole_dim(const struct tc_value *v, const struct tc_op *user)
{
	if (!v->def || !tc_is_used_once(v) || v->def->block != user->block)
		return -1;
	if (v->def->op == TC_PAD)
		return longer_dim(v->def);
	return v->def->op == TC_CONCATENATE && v->def->n_operands <= MOST_PIECES ?
	       (int)tc_attr_int(v->def, "dimension", 0) : -1;
}

static void take_apart(const struct tc_op *op, unsigned d, struct pieces *p)
{
	p->n = 0;
	if (op->op == TC_PAD) {
		add_piece(p, tc_attr_nth(op, "edge_padding_low", d), tc_in(op, 1), true);
		add_piece(p, tc_in(op, 0)->type->dim[d], tc_in(op, 0), false);
		add_piece(p, tc_attr_nth(op, "edge_padding_high", d), tc_in(op, 1), true);
		return;
	}
	for (unsigned i = 0; i < op->n_operands; i++) {
		struct tc_value *v = tc_in(op, i);
		bool is_same = v->def && v->def->op == TC_BROADCAST_IN_DIM &&
			       !tc_in(v->def, 0)->type->rank;

		add_piece(p, v->type->dim[d], is_same ? tc_in(v->def, 0) : v, is_same);
	}
}

/* Whether an array begins or ends within a piece of the other that is not the same everywhere. */
static bool cuts(const struct pieces *p, const struct pieces *other)
{
	unsigned k = 0;

	for (unsigned i = 0; i < p->n; i++) {
		while (other->end[k] < p->end[i])
			k++;
		if (other->end[k] != p->end[i] && !other->is_same[k])
			return true;
	}
	return false;
}

/* One piece of what op makes of both, `size` long along d. */
static struct tc_value *make_piece(const struct tc_build *b, const struct tc_op *op, unsigned d,
				   int64_t size, struct tc_value *const *what, const bool *is_same)
{
	const struct tc_type *t = op->results[0].type;
	struct tc_value *in[2], *v;
	int64_t dim[TC_MAX_RANK];

	memcpy(dim, t->dim, t->rank * sizeof(*dim));
	dim[d] = size;
	t = tc_tensor(b->c, (enum elem)t->elem, t->rank, dim);
	if (is_same[0] && is_same[1]) {
		/* Zeros of either sign and themselves are what they are. */
		v = op->op == TC_ADD && what[0] == what[1] && tc_is_number(what[0], 0) ? what[0] :
		    tc_build2(b, op->op, what[0], what[1]);
		return tc_build_broadcast(b, v, t, NULL);
	}
	for (unsigned k = 0; k < 2; k++)
		in[k] = is_same[k] ? tc_build_broadcast(b, what[k], t, NULL) : what[k];
	return tc_build2(b, op->op, in[0], in[1]);
}

/*
 * The gradient of what was taken apart by indices, as q, k, v = x[0], x[1], x[2], is a sum of
 * arrays, each padded to the size of all. At most places all but one of them are what they were
 * padded with. Piece by piece along that dim, of what each array has there, it is the same, bit for
 * bit: then no padded array is written, and pieces are born within the whole (back/join.c).
 */
bool tc_put_together(struct tc_ctx *c, struct tc_op *op)
{
	const struct tc_type *t = op->results[0].type;
	struct tc_value *piece[2 * MOST_PIECES];
	struct pieces p[2];
	struct tc_build b;
	unsigned n = 0, at[2] = { 0, 0 };
	int64_t begin = 0, end;
	int d;

	if (!works_on_two(op) || !t->count)
		return false;
	d = whole_dim(tc_in(op, 0), op);
	if (d < 0 || d != whole_dim(tc_in(op, 1), op) ||
	    (tc_in(op, 0)->def->op != TC_PAD && tc_in(op, 1)->def->op != TC_PAD))
		return false;
	for (unsigned k = 0; k < 2; k++)
		take_apart(tc_in(op, k)->def, (unsigned)d, &p[k]);
	if (cuts(&p[0], &p[1]) || cuts(&p[1], &p[0]))
		return false;
	b = tc_build_at(c, op);
	for (; begin < t->dim[d]; begin = end) {
		bool is_same[2];
		struct tc_value *what[2];

		for (unsigned k = 0; k < 2; k++) {
			what[k] = p[k].what[at[k]];
			is_same[k] = p[k].is_same[at[k]];
		}
		end = p[0].end[at[0]] < p[1].end[at[1]] ? p[0].end[at[0]] : p[1].end[at[1]];
		piece[n++] = make_piece(&b, op, (unsigned)d, end - begin, what, is_same);
		for (unsigned k = 0; k < 2; k++)
			at[k] += p[k].end[at[k]] == end;
	}
	tc_replace(op, tc_build_join(&b, n, piece, (unsigned)d));
	return true;
}

/* What v, an operand of the op, was before dims of 1 came or went, if an elementwise op of its
 * block makes that; or NULL. */
static struct tc_value *before_ones(const struct tc_op *op, const struct tc_value *v)
{
	struct tc_value *in = v->def && v->def->op == TC_RESHAPE ? tc_in(v->def, 0) : NULL;
	int8_t dim[TC_MAX_RANK];

	if (!in || !in->def || in->def->block != op->block || !tc_has_trait(in->def, 'e') ||
	    in->type->rank > ISA_MAX_RANK)
		return NULL;
	return tc_only_ones_differ(in->type, v->type, dim) ? in : NULL;
}

/*
 * Elementwise work on arrays that only differ by dims of 1 from what other such work makes: it is
 * done on that, so that one instruction does both. So is asked whether indices are inside, which
 * have their components along a dim of their own then.
 */
bool tc_work_before_ones(struct tc_ctx *c, struct tc_op *op)
{
	const struct tc_type *t = op->results[0].type, *before = NULL;
	struct tc_value *in[3];
	struct tc_build b = tc_build_at(c, op);
	struct tc_value *made;

	if (!tc_has_trait(op, 'e') || op->n_results != 1 || op->n_regions || !op->n_operands ||
	    op->n_operands > 3 || t->count < LEAST_WORK)
		return false;
	for (unsigned i = 0; i < op->n_operands; i++) {
		in[i] = before_ones(op, tc_in(op, i));
		if (!tc_same_dims(tc_in(op, i)->type, t) ||
		    (!in[i] && !tc_splat_element(tc_in(op, i))) ||
		    (in[i] && before && !tc_same_dims(in[i]->type, before)))
			return false;
		before = in[i] ? in[i]->type : before;
	}
	if (!before)
		return false;
	for (unsigned i = 0; i < op->n_operands; i++)
		if (!in[i])
			in[i] = tc_splat(c, op, tc_tensor(c, (enum elem)tc_in(op, i)->type->elem,
							  before->rank, before->dim),
					 tc_splat_element(tc_in(op, i)));
	made = tc_build(&b, (enum tc_opcode)op->op,
			tc_tensor(c, (enum elem)t->elem, before->rank, before->dim), op->n_operands,
			in);
	for (unsigned i = 0; i < op->n_attrs; i++)
		tc_set_attr(c, made->def, op->attrs[i]);
	made->def->where = op->where;
	return tc_simplify_to(op, tc_build_reshape(&b, made, t->rank, t->dim));
}
