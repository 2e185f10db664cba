/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elementwise work on arrays that are put together of views, in boxes.
 *
 * The neighbours in an array whose ends meet (jnp.roll) are two slices behind each other, those in
 * one with an edge a slice in padding. Strides say neither, so each would be written and read
 * again. Where only fusions look at such arrays, these take what they are put together of, and put
 * it together themselves, in their regions. Emission cuts their space into boxes in each of which
 * every such array is a part of one view: the inner part, and rows and columns at its edges. An
 * instruction for each box reads what there is where it lies.
 *
 * Requires: elementwise work is in fusions. Ensures: so it is; the same results, bit for bit;
 * concatenations, pads, and slices of these in a fusion's region lead from its arguments to
 * operands of the space's shape, and fall into boxes (tc_boxes_of).
 */
#include <string.h>

#include "runtime/compiler/opt/build.h"
#include "runtime/compiler/opt/fuse.h"
#include "runtime/compiler/passes.h"

enum {
	MOST_CUTS = 8,		/* along a dim */
	MOST_LOOKS = 64,	/* at who looks at it */
	MOST_COMPOSED = 32,
	SMALL_PART = 4,		/* of an array: a quarter at most is made for it alone */
	PLACE_VALUES = 5,	/* of a body, that say where a point lies along a dim */
};

/* What is saved and what it takes, in nanoseconds. */
#define COPY_NS 80		/* of an array that is put together, and for each byte, */
#define BYTE_NS 0.013
#define FAR_BYTE_NS 0.03	/* of arrays that together are */
#define FAR_BYTES (1 << 20)
#define BOX_NS 110		/* of an instruction, and for each operand */
#define ROW_NS 1.0		/* of a row of one that is narrow, */
#define WIDE_ROW_NS 3.5		/* of one that could have been behind others, */
#define END_ROW_NS 8.0		/* of one that is reduced, or knows its places, */
#define END_POINT_NS 0.03	/* and for each of its points, */
#define END_POINTS 1024		/* but no more of them */

struct space {
	struct tc_ctx *c;
	struct tc_op *op;		/* the fusion; NULL: what is put together is in a region */
	const struct tc_type *type;	/* of its results */
	unsigned n[ISA_MAX_RANK];	/* cuts of each dim, in order */
	int64_t cut[ISA_MAX_RANK][MOST_CUTS];
	const struct tc_value *composed[MOST_COMPOSED];	/* to be read as what they are made of */
	unsigned n_composed;
	bool has_room;
};

/* ---- which fusions ---- */

const struct tc_type *tc_space_of(const struct tc_op *fusion)
{
	const struct tc_block *b = fusion->regions[0].block;

	for (const struct tc_op *op = b->first; op; op = op->next)
		if (op->op == TC_REDUCE)
			return tc_in(op, 0)->type;
	return tc_in(b->last, 0)->type;
}

static bool is_loop(const struct tc_op *op)
{
	return op->op == TC_FUSION && tc_attr_int(op, "kind", 0) == TC_FUSION_LOOP;
}

/* Whether op, which reduces all of a fusion's space, may do so box by box: nobody waits for what it
 * gives, and this is not rounded in between. */
static bool is_by_box(const struct tc_op *op, const struct tc_type *space)
{
	const struct tc_type *t = op->results[0].type;

	for (const struct tc_use *u = op->results[0].uses; u; u = u->next)
		if (u->user->op != TC_RETURN)
			return false;
	return tc_same_dims(tc_in(op, 0)->type, space) && tc_computing(t->elem) == t->elem;
}

/* Whether op, of a fusion, works point by point, and reads what has the shape of its space so. */
static bool is_by_point(const struct tc_op *op, const struct tc_type *space)
{
	switch (op->op) {
	case TC_BROADCAST_IN_DIM:	/* or turned about */
		return !tc_same_dims(tc_in(op, 0)->type, space);
	case TC_IOTA:
		return tc_same_dims(op->results[0].type, space);
	case TC_REDUCE:
		return is_by_box(op, space);
	default:
		return op->op == TC_CONSTANT || tc_has_trait(op, 'e');
	}
}

/* Whether a part of what the fusion gives is made in the same way of parts of what it is given,
 * with room for where the parts begin. */
static bool has_parts(const struct tc_op *op)
{
	const struct tc_block *b = op->regions[0].block;
	const struct tc_type *space = tc_space_of(op);
	bool has_places = false;
	unsigned values = 0;

	if (space->rank > ISA_MAX_RANK || !space->rank || !space->count)
		return false;
	for (const struct tc_op *o = b->first; o != b->last; o = o->next) {
		if (!is_by_point(o, space))
			return false;
		has_places |= o->op == TC_IOTA;
		values += o->op == TC_IOTA ? PLACE_VALUES : tc_values_for(o);
	}
	for (unsigned i = 0; i < op->n_results; i++) {
		const struct tc_op *by = tc_in(b->last, i)->def;

		if (!tc_same_dims(op->results[i].type, space) && !(by && by->op == TC_REDUCE))
			return false;
	}
	return !has_places || values <= ISA_MAX_VALUES;
}

/* ---- what is put together ---- */

static bool is_plain_slice(const struct tc_op *op)
{
	unsigned n;
	const int64_t *strides;

	if (op->op != TC_SLICE)
		return false;
	strides = tc_attr_ints(op, "strides", &n);
	for (unsigned d = 0; d < n; d++)
		if (strides[d] != 1 && op->results[0].type->dim[d] > 1)
			return false;
	return true;
}

static bool is_plain_pad(const struct tc_op *op)
{
	if (op->op != TC_PAD || !tc_splat_element(tc_in(op, 1)))
		return false;
	for (unsigned d = 0; d < op->results[0].type->rank; d++)
		if (tc_attr_nth(op, "edge_padding_low", d) < 0 ||
		    tc_attr_nth(op, "edge_padding_high", d) < 0 ||
		    tc_attr_nth(op, "interior_padding", d))
			return false;
	return true;
}

static bool is_joint(const struct tc_value *v)
{
	return v->def && (v->def->op == TC_CONCATENATE || v->def->op == TC_PAD);
}

/* Whether v is there anyway, or is read where something else is. */
static bool is_there(const struct tc_value *v)
{
	return !v->def || tc_splat_element(v) || is_plain_slice(v->def) ||
	       v->def->op == TC_BROADCAST_IN_DIM || v->def->op == TC_RESHAPE || is_joint(v);
}

/* Whether only fusions of this space, all of which have parts, look at v or at what is put together
 * of it. */
static bool is_for_fusions(const struct tc_value *v, const struct tc_op *by, unsigned *looks)
{
	for (const struct tc_use *u = v->uses; u; u = u->next) {
		const struct tc_op *user = u->user;

		if (!*looks || user->block != by->block)
			return false;
		--*looks;
		if (is_loop(user) ? !user->side || !tc_same_dims(tc_space_of(user), v->type) :
		    is_plain_slice(user) || user->op == TC_CONCATENATE ||
		    (is_plain_pad(user) && user->operands == u) ?
		    !is_for_fusions(tc_out(user, 0), by, looks) : true)
			return false;
	}
	return true;
}

/* Whether v can be read as what it is put together of. */
static bool can_compose(const struct tc_value *v, const struct tc_op *by)
{
	const struct tc_op *op = v->def;
	unsigned looks = MOST_LOOKS;
	int64_t others = 0;

	if ((op->op != TC_CONCATENATE && !is_plain_pad(op)) || op->n_operands > MOST_CUTS + 1)
		return false;
	for (unsigned i = 0; i < op->n_operands; i++)
		if (!is_there(tc_in(op, i)))
			others += tc_in(op, i)->type->count;
	return others <= v->type->count / SMALL_PART && is_for_fusions(v, by, &looks);
}

static bool is_composed(const struct space *s, const struct tc_value *v)
{
	for (unsigned i = 0; i < s->n_composed; i++)
		if (s->composed[i] == v)
			return true;
	return false;
}

/* Whether v, which a concatenation or a pad gives, is to be read as what it is made of. */
static bool compose(struct space *s, const struct tc_value *v)
{
	if (!s->op || is_composed(s, v))
		return true;
	if (s->n_composed == MOST_COMPOSED || !can_compose(v, s->op))
		return false;
	s->composed[s->n_composed++] = v;
	return true;
}

/* How many boxes there are between the cuts, up to one more than TC_MOST_BOXES. */
static unsigned count_boxes(const struct space *s)
{
	unsigned n = 1;

	for (unsigned d = 0; d < s->type->rank && n <= TC_MOST_BOXES; d++)
		n *= s->n[d] + 1;
	return n <= TC_MOST_BOXES ? n : TC_MOST_BOXES + 1;
}

static void add_cut(struct space *s, unsigned d, int64_t at)
{
	unsigned i = s->n[d];

	for (unsigned k = 0; k < s->n[d]; k++)
		if (s->cut[d][k] == at)
			return;
	if (i == MOST_CUTS) {
		s->has_room = false;
		return;
	}
	for (s->n[d]++; i && s->cut[d][i - 1] > at; i--)
		s->cut[d][i] = s->cut[d][i - 1];
	s->cut[d][i] = at;
	s->has_room &= count_boxes(s) <= TC_MOST_BOXES;
}

/*
 * Cuts the space around what of v lies at `at` of it, of which `seen` is looked at. All that is
 * composed is followed to its end, however it is reached: within the region it is read so.
 */
static void cut_around(struct space *s, const struct tc_value *v, const int64_t *at,
		       struct tc_box seen)
{
	const struct tc_op *op = v->def;
	int64_t from[ISA_MAX_RANK];
	unsigned d;

	/* The whole of v, where it ends within what is looked at. */
	for (d = 0; d < v->type->rank; d++) {
		int64_t end = at[d] + v->type->dim[d], seen_end = seen.first[d] + seen.size[d];

		if (at[d] > seen.first[d] && at[d] < seen_end) {
			add_cut(s, d, at[d]);
			seen.size[d] = seen_end - at[d];
			seen.first[d] = at[d];
		}
		if (end > seen.first[d] && end < seen_end) {
			add_cut(s, d, end);
			seen.size[d] = end - seen.first[d];
		}
		if (end <= seen.first[d] || at[d] >= seen_end)
			return;
	}
	if (!op || !s->has_room || (s->op && op->block != s->op->block))
		return;
	memcpy(from, at, v->type->rank * sizeof(*from));
	if (op->op == TC_CONCATENATE && compose(s, v)) {
		d = (unsigned)tc_attr_int(op, "dimension", 0);
		for (unsigned i = 0; i < op->n_operands; i++) {
			cut_around(s, tc_in(op, i), from, seen);
			from[d] += tc_in(op, i)->type->dim[d];
		}
	} else if (op->op == TC_PAD && compose(s, v)) {
		for (d = 0; d < v->type->rank; d++)
			from[d] += tc_attr_nth(op, "edge_padding_low", d);
		cut_around(s, tc_in(op, 0), from, seen);
	} else if (is_plain_slice(op) && is_joint(tc_in(op, 0))) {
		for (d = 0; d < v->type->rank; d++)
			from[d] -= tc_attr_nth(op, "start_indices", d);
		cut_around(s, tc_in(op, 0), from, seen);
	}
}

/* The boxes between the cuts: how many; 0: more than TC_MOST_BOXES. */
static unsigned boxes_between(const struct space *s, struct tc_box *boxes)
{
	unsigned n = count_boxes(s);

	if (!s->has_room)
		return 0;
	for (unsigned i = 0; i < n; i++) {
		unsigned number = i;

		for (unsigned d = s->type->rank; d-- > 0; number /= s->n[d] + 1) {
			unsigned k = number % (s->n[d] + 1);
			int64_t end = k < s->n[d] ? s->cut[d][k] : s->type->dim[d];

			boxes[i].first[d] = k ? s->cut[d][k - 1] : 0;
			boxes[i].size[d] = end - boxes[i].first[d];
		}
	}
	return n;
}

static struct tc_box all_of(const struct tc_type *t)
{
	struct tc_box all = { { 0 }, { 0 } };

	memcpy(all.size, t->dim, t->rank * sizeof(*all.size));
	return all;
}

/* ---- for emission ---- */

bool tc_is_put_together(const struct tc_value *v)
{
	return v->def && (v->def->op == TC_CONCATENATE || v->def->op == TC_PAD ||
			  v->def->op == TC_SLICE);
}

unsigned tc_boxes_of(const struct tc_op *fusion, struct tc_box *boxes)
{
	struct space s = { .type = tc_space_of(fusion), .has_room = true };
	const struct tc_block *b = fusion->regions[0].block;
	int64_t origin[ISA_MAX_RANK] = { 0 };
	bool is_any = false;

	for (const struct tc_op *op = b->first; op; op = op->next)
		for (unsigned i = 0; i < op->n_operands; i++)
			if (tc_is_put_together(tc_in(op, i)) &&
			    (op == b->last || !tc_is_put_together(tc_out(op, 0)))) {
				is_any = true;
				cut_around(&s, tc_in(op, i), origin, all_of(s.type));
			}
	return is_any ? boxes_between(&s, boxes) : 1;
}

const struct tc_value *tc_part_in_box(const struct tc_value *v, const struct tc_box *box,
				      int64_t *start)
{
	int64_t at[ISA_MAX_RANK] = { 0 };

	while (tc_is_put_together(v)) {
		const struct tc_op *op = v->def;
		unsigned d, i = 0;

		v = tc_in(op, 0);
		switch (op->op) {
		case TC_CONCATENATE:
			d = (unsigned)tc_attr_int(op, "dimension", 0);
			while (at[d] + tc_in(op, i)->type->dim[d] <= box->first[d])
				at[d] += tc_in(op, i++)->type->dim[d];
			v = tc_in(op, i);
			break;
		case TC_SLICE:
			for (d = 0; d < v->type->rank; d++)
				at[d] -= tc_attr_nth(op, "start_indices", d);
			break;
		default:
			for (d = 0; d < v->type->rank; d++) {
				at[d] += tc_attr_nth(op, "edge_padding_low", d);
				if (box->first[d] < at[d] ||
				    box->first[d] >= at[d] + v->type->dim[d])
					return tc_in(op, 1);
			}
			break;
		}
	}
	for (unsigned d = 0; d < v->type->rank; d++)
		start[d] = box->first[d] - at[d];
	return v;
}

/* ---- the pass ---- */

/* How many rows, each behind each other in memory, a box has. */
static double rows_of(const struct space *s, const struct tc_box *box)
{
	double rows = 1;
	bool is_cut = false;

	for (unsigned d = s->type->rank; d-- > 0;) {
		rows *= is_cut ? (double)box->size[d] : 1;
		is_cut |= box->size[d] != s->type->dim[d];
	}
	return rows;
}

/* Whether reading what is put together where it lies takes less than putting it together. Emission
 * makes one line of most of the space where all lies alike (back/emit_fusion.c). */
static bool is_worth_it(const struct space *s, const struct tc_box *boxes, unsigned n)
{
	double cost = BOX_NS * (n - 1), saved = 0, bytes = 0, rows = 0, most = 0, in, row;
	bool lies_alike = true, ends = false;

	for (unsigned i = 0; i < s->n_composed; i++)
		bytes += (double)s->composed[i]->type->bytes;
	saved = COPY_NS * s->n_composed + bytes * (bytes < FAR_BYTES ? BYTE_NS : FAR_BYTE_NS);
	for (unsigned i = 0; i < s->op->n_operands; i++)
		lies_alike &= tc_same_dims(tc_in(s->op, i)->type, s->type) ||
			      !tc_in(s->op, i)->type->rank;
	for (const struct tc_op *op = s->op->regions[0].block->first; op; op = op->next)
		ends |= op->op == TC_REDUCE || op->op == TC_IOTA;
	for (unsigned i = 0; i < n; i++) {
		in = rows_of(s, &boxes[i]);
		rows += in;
		most = in > most ? in : most;
	}
	in = s->op->n_operands;
	row = (double)s->type->count / most;
	row = ends ? END_ROW_NS + END_POINT_NS * (row < END_POINTS ? row : END_POINTS) :
	      lies_alike ? 0 : WIDE_ROW_NS;
	cost += (rows - most) * in * ROW_NS + most * in * row;
	return saved > cost;
}

/* The fusion's operands while they change: an argument of the region for each. */
struct taken {
	struct tc_value **in;
	unsigned n;
	struct tc_map *map;	/* what has been brought, from outside to within */
};

/* The argument that has v in the region. */
static struct tc_value *take(const struct space *s, struct taken *t, struct tc_value *v)
{
	struct tc_block *b = s->op->regions[0].block;
	unsigned i = 0;

	while (i < t->n && t->in[i] != v)
		i++;
	if (i < t->n)
		return b->args[i];
	t->in[t->n++] = v;
	return tc_new_arg(s->c, b, v->type);
}

/* Whether v is put together, or a slice of what is. */
static bool is_to_bring(const struct space *s, const struct tc_value *v)
{
	return is_composed(s, v) ||
	       (v->def && is_plain_slice(v->def) && is_composed(s, tc_in(v->def, 0)));
}

/* v within the region, before b->before: put together there. */
static struct tc_value *bring(const struct space *s, const struct tc_build *b, struct taken *t,
			      struct tc_value *v)
{
	struct tc_value *in[MOST_CUTS + 1];
	struct tc_op *op = v->def, *copy;

	if (tc_map_get(t->map, v) != v)
		return tc_map_get(t->map, v);
	if (tc_splat_element(v))
		return tc_splat(s->c, b->before, v->type, tc_splat_element(v));
	if (!is_to_bring(s, v))
		return take(s, t, v);
	for (unsigned i = 0; i < op->n_operands; i++)
		in[i] = bring(s, b, t, tc_in(op, i));
	copy = tc_clone(s->c, op, tc_map_new(s->c));
	for (unsigned i = 0; i < op->n_operands; i++)
		tc_set_operand(copy, i, in[i]);
	tc_map_set(s->c, t->map, v, tc_out(tc_build_place(b, copy), 0));
	return tc_out(copy, 0);
}

/* Drops argument i of the region, which nobody looks at, and the operand. */
static void leave_out(struct tc_block *b, struct taken *t, unsigned i)
{
	t->n--;
	b->n_args--;
	for (; i < t->n; i++) {
		t->in[i] = t->in[i + 1];
		b->args[i] = b->args[i + 1];
		b->args[i]->index = i;
	}
}

static void put_together(const struct space *s)
{
	struct tc_block *block = s->op->regions[0].block;
	struct tc_build b = tc_build_at(s->c, block->first);
	unsigned n = s->op->n_operands;
	struct taken t = { arena_array(&s->c->arena, n + MOST_COMPOSED * (MOST_CUTS + 1),
				       sizeof(*t.in)), n, tc_map_new(s->c) };

	if (!t.in)
		tc_fail(s->c, ERR_RESOURCE_EXHAUSTED, s->op, "out of memory");
	for (unsigned i = 0; i < n; i++)
		t.in[i] = tc_in(s->op, i);
	for (unsigned i = 0; i < n; i++)
		if (is_to_bring(s, t.in[i]))
			tc_replace_uses(block->args[i], bring(s, &b, &t, t.in[i]));
	for (unsigned i = n; i-- > 0;)
		if (is_to_bring(s, t.in[i]) && tc_is_unused(block->args[i]))
			leave_out(block, &t, i);
	tc_set_operands(s->c, s->op, t.n, t.in);
}

static bool cut_into_boxes(struct tc_ctx *c, struct tc_op *op)
{
	struct space s = { .c = c, .op = op, .type = tc_space_of(op), .has_room = true };
	struct tc_box boxes[TC_MOST_BOXES];
	int64_t origin[ISA_MAX_RANK] = { 0 };
	unsigned n;

	for (unsigned i = 0; i < op->n_operands; i++)
		if (tc_same_dims(tc_in(op, i)->type, s.type))
			cut_around(&s, tc_in(op, i), origin, all_of(s.type));
	n = s.n_composed ? boxes_between(&s, boxes) : 0;
	if (n < 2 || !is_worth_it(&s, boxes, n))
		return false;
	put_together(&s);
	return true;
}

static void cut_block(struct tc_ctx *c, struct tc_block *b)
{
	bool is_cut = false;

	for (struct tc_op *op = b->first; op; op = op->next) {
		if (is_loop(op))
			op->side = has_parts(op) ? op : NULL;
		for (unsigned r = 0; r < op->n_regions && op->op != TC_FUSION; r++)
			if (op->regions[r].block)
				cut_block(c, op->regions[r].block);
	}
	for (struct tc_op *op = b->first; op; op = op->next)
		if (is_loop(op) && op->side)
			is_cut |= cut_into_boxes(c, op);
	/* What nobody looks at any more. */
	for (struct tc_op *op = b->last, *prev; is_cut && op; op = prev) {
		prev = op->prev;
		if ((op->op == TC_SLICE || op->op == TC_CONCATENATE || op->op == TC_PAD) &&
		    tc_is_unused(tc_out(op, 0)))
			tc_erase(op);
	}
}

void tc_pass_boxes(struct tc_ctx *c)
{
	cut_block(c, tc_main(c));
}
