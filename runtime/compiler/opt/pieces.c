/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elementwise work on arrays that are put together of pieces: elements that come a few
 * times, halves that change places, arrays whose elements take turns. A part of the passes
 * simplify and fuse.
 *
 * What is put together is no view of what it is made of, but is one while a dim is still
 * two. So the work is done then, by one instruction that reads the pieces where they lie.
 */
#include <string.h>

#include "runtime/compiler/opt/build.h"
#include "runtime/compiler/opt/fuse.h"

enum {
	LEAST_WORK = 512,	/* elements of a whole */
	LEAST_TURNED = 8192,	/* of one whose halves change places: others are quickly copied */
	MOST_DEPTH = 8,		/* ops behind each other that are done before the dims are joined */
	MOST_TURNS = 4,		/* arrays whose elements take turns */
};

/* Dim `dim` as two, the outer one of n elements. */
struct split { unsigned dim; int64_t n; };

/* Whether the work of op is the same on arrays of other dims. */
static bool is_work(const struct tc_op *op)
{
	return op && tc_has_trait(op, 'e') && op->n_results == 1 && !op->n_regions &&
	       op->n_operands && op->n_operands <= 3 && op->results[0].type->rank &&
	       op->results[0].type->rank < ISA_MAX_RANK;
}

/* Whether a reshape makes one of two dims, and nothing else. */
static bool joins_two(const struct tc_op *op, struct split *s)
{
	const struct tc_type *from = tc_in(op, 0)->type, *to = op->results[0].type;
	unsigned d = 0;

	if (from->rank != to->rank + 1u || !to->count)
		return false;
	while (d < to->rank && from->dim[d] == to->dim[d])
		d++;
	if (d == to->rank || from->dim[d] < 2 || from->dim[d + 1] < 2)
		return false;
	*s = (struct split){ d, from->dim[d] };
	for (d++; d < to->rank; d++)
		if (from->dim[d + 1] != to->dim[d])
			return false;
	return true;
}

/* Whether v has elements more than once, or in the other direction, which makes it no view once
 * dims are joined. */
static bool is_spread(const struct tc_value *v, unsigned depth)
{
	const struct tc_op *op = v->def;

	if (!op || depth == MOST_DEPTH)
		return false;
	if (op->op == TC_BROADCAST_IN_DIM)
		return tc_in(op, 0)->type->rank && tc_in(op, 0)->type->count < v->type->count;
	if (op->op == TC_REVERSE)
		return true;
	if (!is_work(op) || !tc_is_used_once(v))
		return false;
	for (unsigned i = 0; i < op->n_operands; i++)
		if (is_spread(tc_in(op, i), depth + 1))
			return true;
	return false;
}

/* Whether v, an operand of `user`, is spread and then has two dims joined. */
static bool is_joined(const struct tc_value *v, const struct tc_op *user, struct split *s)
{
	const struct tc_op *op = v->def;

	return op && op->op == TC_RESHAPE && tc_is_used_once(v) && op->block == user->block &&
	       joins_two(op, s) && is_spread(tc_in(op, 0), 0);
}

/* Whether v, an operand of `user`, is split for nothing. */
static bool can_split(const struct tc_value *v, const struct tc_op *user, const struct split *s,
		      unsigned depth)
{
	const struct tc_op *op = v->def;
	struct split own;

	if (!op || !v->type->rank || tc_splat_element(v) || op->op == TC_BROADCAST_IN_DIM)
		return true;
	if (is_joined(v, user, &own))
		return own.dim == s->dim && own.n == s->n;
	if (op->op == TC_IOTA)
		return (unsigned)tc_attr_int(op, "iota_dimension", 0) != s->dim;
	/* What would work on its results itself does not if they are split. */
	if (op->op == TC_DOT_GENERAL || op->op == TC_CONVOLUTION || op->op == TC_REDUCE)
		return !tc_is_used_once(v);
	if (!tc_has_trait(op, 'e'))
		return true;
	if (depth == MOST_DEPTH || !is_work(op) || !tc_is_used_once(v) ||
	    op->block != user->block)
		return false;
	for (unsigned i = 0; i < op->n_operands; i++)
		if (!can_split(tc_in(op, i), op, s, depth + 1))
			return false;
	return true;
}

static const struct tc_type *split_type(struct tc_ctx *c, const struct tc_type *t,
					const struct split *s)
{
	int64_t dim[TC_MAX_RANK];

	memcpy(dim, t->dim, (s->dim + 1) * sizeof(*dim));
	memcpy(dim + s->dim + 1, t->dim + s->dim, (t->rank - s->dim) * sizeof(*dim));
	dim[s->dim] = s->n;
	dim[s->dim + 1] = t->dim[s->dim] / s->n;
	return tc_tensor(c, (enum elem)t->elem, t->rank + 1u, dim);
}

static struct tc_value *split_reshape(const struct tc_build *b, struct tc_value *v,
				      const struct split *s)
{
	const struct tc_type *t = split_type(b->c, v->type, s);

	return tc_build_reshape(b, v, t->rank, t->dim);
}

static struct tc_value *split_broadcast(const struct tc_build *b, const struct tc_op *op,
					const struct split *s)
{
	const struct tc_type *t = split_type(b->c, op->results[0].type, s);
	struct tc_value *in = tc_in(op, 0);
	int64_t to[TC_MAX_RANK];
	unsigned n, rank = 0;
	const int64_t *dims = tc_attr_ints(op, "broadcast_dimensions", &n);
	struct split own = { TC_MAX_RANK, s->n };

	for (unsigned i = 0; i < n; i++) {
		to[rank++] = dims[i] + (dims[i] > s->dim);
		if (dims[i] != s->dim || in->type->dim[i] == 1)
			continue;
		own.dim = i;
		to[rank++] = s->dim + 1;
	}
	if (own.dim < TC_MAX_RANK)
		in = split_reshape(b, in, &own);
	return tc_build_broadcast(b, in, t, to);
}

static struct tc_value *split(const struct tc_build *b, struct tc_value *v,
			      const struct split *s);

/* What op makes of its operands. */
static struct tc_value *split_work(const struct tc_build *b, const struct tc_op *op,
				   const struct split *s)
{
	struct tc_value *in[3], *v;

	for (unsigned i = 0; i < op->n_operands; i++)
		in[i] = split(b, tc_in(op, i), s);
	v = tc_build(b, (enum tc_opcode)op->op, split_type(b->c, op->results[0].type, s),
		     op->n_operands, in);
	for (unsigned i = 0; i < op->n_attrs; i++)
		tc_set_attr(b->c, v->def, op->attrs[i]);
	v->def->where = op->where;
	return v;
}

static struct tc_value *split(const struct tc_build *b, struct tc_value *v, const struct split *s)
{
	const struct tc_op *op = v->def;
	struct split own;

	if (!v->type->rank)
		return v;
	if (op && tc_splat_element(v))
		return tc_splat(b->c, b->before, split_type(b->c, v->type, s),
				tc_splat_element(v));
	if (op && op->op == TC_RESHAPE && joins_two(op, &own) && own.dim == s->dim &&
	    own.n == s->n)
		return tc_in(op, 0);
	if (op && op->op == TC_IOTA) {
		unsigned d = (unsigned)tc_attr_int(op, "iota_dimension", 0);

		return tc_build_iota(b, split_type(b->c, v->type, s), d + (d > s->dim));
	}
	if (op && op->op == TC_BROADCAST_IN_DIM)
		return split_broadcast(b, op, s);
	if (op && tc_has_trait(op, 'e'))
		return split_work(b, op, s);
	return split_reshape(b, v, s);
}

/* ---- halves that change places ---- */

/* What the other half of `whole`, or NULL for any, is part k of a concatenation made of by one op,
 * *work, or by none. */
static struct tc_value *other_half(const struct tc_op *join, unsigned k, const struct tc_op **work)
{
	unsigned d = (unsigned)tc_attr_int(join, "dimension", 0);
	const struct tc_op *op = tc_in(join, k)->def;
	int64_t size = tc_in(join, k)->type->dim[d];
	struct tc_value *whole;

	*work = NULL;
	/* Of narrow numbers a copy takes less than to choose among what is made of them. */
	if (is_work(op) && op->n_operands == 1 && tc_is_quick(op) && !op->n_attrs &&
	    elem_bytes(op->results[0].type->elem) >= 4 &&
	    tc_is_used_once(tc_in(join, k)) && tc_in(op, 0)->type == op->results[0].type) {
		*work = op;
		op = tc_in(op, 0)->def;
	}
	if (!op || op->op != TC_SLICE)
		return NULL;
	whole = tc_in(op, 0);
	for (unsigned i = 0; i < whole->type->rank; i++) {
		int64_t from = tc_attr_nth(op, "start_indices", i);

		if (tc_attr_nth(op, "strides", i) != 1 ||
		    (i != d && whole->type->dim[i] != op->results[0].type->dim[i]) ||
		    (i == d && (whole->type->dim[i] != 2 * size || from != (k ? 0 : size))))
			return NULL;
	}
	return whole;
}

/* Whether v, an operand of `user`, is an array whose halves have changed places. Of bytes, copies
 * take less. */
static bool is_turned(const struct tc_value *v, const struct tc_op *user, struct split *s)
{
	const struct tc_op *join = v->def, *work;
	struct tc_value *whole;

	if (!join || join->op != TC_CONCATENATE || join->n_operands != 2 ||
	    !tc_is_used_once(v) || join->block != user->block ||
	    elem_bytes(v->type->elem) < 2)
		return false;
	whole = other_half(join, 0, &work);
	*s = (struct split){ (unsigned)tc_attr_int(join, "dimension", 0), 2 };
	return whole && whole == other_half(join, 1, &work) &&
	       whole->type->count >= LEAST_TURNED && whole->type->dim[s->dim] > 2 &&
	       (!whole->def || !tc_has_trait(whole->def, 'e'));
}

/* The same as two dims, which then are joined. */
static struct tc_value *turn_halves(const struct tc_build *b, const struct tc_op *join,
				    const struct split *s)
{
	const struct tc_op *work[2];
	const struct tc_type *t;
	struct tc_value *v, *part[2], *place;
	int64_t dim = s->dim;

	other_half(join, 1, &work[1]);
	v = split_reshape(b, other_half(join, 0, &work[0]), s);
	v = tc_build1(b, TC_REVERSE, v);
	tc_set_ints(b->c, v->def, "dimensions", &dim, 1);
	t = v->type;
	for (unsigned k = 0; k < 2; k++)
		part[k] = work[k] ? tc_build1(b, (enum tc_opcode)work[k]->op, v) : v;
	if (work[0] || work[1]) {
		t = tc_tensor(b->c, ELEM_S32, t->rank, t->dim);
		place = tc_build_iota(b, t, s->dim);
		v = tc_build_select(b, tc_build_compare(b, TC_CMP_EQ, place,
							tc_build_number(b, t, 0)),
				    part[0], part[1]);
	}
	return tc_build_reshape(b, v, join->results[0].type->rank, join->results[0].type->dim);
}

/*
 * Work on what is joined only then, as an array is each of whose elements comes a few times, or one
 * whose halves have changed places, as rotary embeddings have it: it is done before, with operands
 * that are split alike, and the array is not written first.
 */
bool tc_work_before_join(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	struct split s;
	int joined = -1;
	bool is_halves = false;

	if (!is_work(op) || op->results[0].type->count < LEAST_WORK)
		return false;
	for (unsigned i = 0; i < op->n_operands && joined < 0; i++) {
		is_halves = is_turned(tc_in(op, i), op, &s);
		if (is_halves || is_joined(tc_in(op, i), op, &s))
			joined = (int)i;
	}
	if (joined < 0)
		return false;
	for (unsigned i = 0; i < op->n_operands; i++)
		if ((int)i != joined && !can_split(tc_in(op, i), op, &s, 0))
			return false;
	if (is_halves)
		tc_set_operand(op, (unsigned)joined,
			       turn_halves(&b, tc_in(op, (unsigned)joined)->def, &s));
	tc_replace(op, tc_build_reshape(&b, split_work(&b, op, &s), op->results[0].type->rank,
					op->results[0].type->dim));
	return true;
}

/* ---- elements that take turns ---- */

/* Whether it is the next one's turn after each element, of a size that a core puts together with
 * wide registers. Copies of longer pieces take less than elementwise work. */
static bool takes_turns(const struct tc_op *join)
{
	const struct tc_type *t = tc_in(join, 0)->type;
	unsigned d = (unsigned)tc_attr_int(join, "dimension", 0), bytes = elem_bytes(t->elem);

	for (unsigned i = d; i < t->rank; i++)
		if (t->dim[i] > 1)
			return false;
	return (join->n_operands == 2 ? bytes <= 8 : bytes == 4) &&
	       t->count * bytes >= LEAST_WORK;
}

/* What part k is before it has other dims than `like`, or NULL. */
static struct tc_value *before_views(const struct tc_op *join, unsigned k,
				     const struct tc_type *like)
{
	struct tc_value *v = tc_in(join, k);

	while (!tc_same_dims(v->type, like) && v->def && tc_is_view(v->def))
		v = tc_in(v->def, 0);
	return tc_same_dims(v->type, like) ? v : NULL;
}

/* The part as it is, of `from` alone, by views that come later. */
static struct tc_value *views_again(const struct tc_build *b, struct tc_value *part,
				    const struct tc_value *from, struct tc_value *made)
{
	struct tc_map *map;
	struct tc_op *op;

	if (part == from)
		return made;
	map = tc_map_new(b->c);
	tc_map_set(b->c, map, tc_in(part->def, 0),
		   views_again(b, tc_in(part->def, 0), from, made));
	op = tc_build_place(b, tc_clone(b->c, part->def, map));
	return tc_out(op, 0);
}

static void drop_unused(struct tc_value *v)
{
	while (v->def && tc_is_unused(v) && tc_is_view(v->def)) {
		struct tc_value *in = tc_in(v->def, 0);

		tc_erase(v->def);
		v = in;
	}
}

/*
 * Arrays whose elements take turns, as stacked along the last dim: those that no elementwise work
 * makes are made so, by work that does nothing. One instruction does all of it then, and each
 * line of the whole is written once.
 */
static void take_turns(struct tc_ctx *c, struct tc_op *join)
{
	struct tc_build b = tc_build_at(c, join);
	struct tc_value *from[MOST_TURNS], *made[MOST_TURNS], *old[MOST_TURNS];
	const struct tc_type *like = NULL;
	unsigned n = join->n_operands;

	if (n < 2 || n > MOST_TURNS || !takes_turns(join))
		return;
	for (unsigned k = 0; k < n; k++) {
		const struct tc_value *v = tc_part_of(join, k);

		if (tc_in(join, k)->type != tc_in(join, 0)->type)
			return;
		if (!v || !is_work(v->def) || v->def->block != join->block)
			continue;
		if (like && !tc_same_dims(like, v->type))
			return;
		like = v->type;
	}
	like = like ? like : tc_in(join, 0)->type;
	if (like->rank > ISA_MAX_RANK)
		return;
	for (unsigned k = 0; k < n; k++) {
		from[k] = before_views(join, k, like);
		if (!from[k])
			return;
	}
	for (unsigned k = 0; k < n; k++) {
		bool is_made = tc_part_of(join, k) == from[k] && is_work(from[k]->def) &&
			       from[k]->def->block == join->block;

		made[k] = is_made ? from[k] :
			tc_build(&b, TC_CONVERT, from[k]->type, 1, &from[k]);
	}
	for (unsigned k = 0; k < n; k++) {
		old[k] = tc_in(join, k);
		tc_set_operand(join, k, views_again(&b, old[k], from[k], made[k]));
		drop_unused(old[k]);
	}
}

void tc_take_turns(struct tc_ctx *c, struct tc_block *block)
{
	for (struct tc_op *op = block->first; op; op = op->next)
		if (op->op == TC_CONCATENATE)
			take_turns(c, op);
}
