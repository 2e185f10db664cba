/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sort of more arrays together than the device sorts.
 *
 * The arrays that the comparator reads are sorted along with the places that their elements come
 * from; then each of the others is gathered once. If these are too many, too, they are sorted
 * by the last keys first and then, stably, by the ones before them: that takes a comparator
 * as frameworks write it for several keys, x0 < y0 or (x0 = y0 and (x1 < y1 or ...)). Other
 * sorts stay, for emission to refuse.
 */
#include "hal/hw/isa.h"
#include "runtime/compiler/lower/decompose.h"

enum { MOST_KEYS = ISA_MAX_SORT - 1 };	/* and the places */

struct wide {
	struct tc_build b;
	const struct tc_op *op;
	struct tc_block *body;
	bool *is_read;			/* of each array */
	struct tc_value *places;	/* where elements come from so far; NULL: where they are */
	/* What of the comparator is done: where it asks `end`, `instead` is enough. */
	const struct tc_value *end;
	struct tc_value *instead;
};

static void want(struct wide *w, const struct tc_value *v)
{
	if (v == w->end) {
		v->def->side = w;
		v = w->instead;
	}
	/* What comes from outside is there. */
	if (v->def && v->def->block == w->body)
		v->def->side = w;
	else if (v->index < w->body->n_args && w->body->args[v->index] == v)
		w->is_read[v->index / 2] = true;
}

/* Finds what `by`, a value of the comparator, is made of: ops by their side, and arrays; returns
 * how many arrays these are. */
static unsigned find_parts(struct wide *w, const struct tc_value *by)
{
	unsigned n = 0;

	for (struct tc_op *f = w->body->first; f; f = f->next)
		f->side = NULL;
	for (unsigned j = 0; j < w->op->n_results; j++)
		w->is_read[j] = false;
	want(w, by);
	for (struct tc_op *f = w->body->last; f; f = f->prev)
		for (unsigned i = 0; f->side && tc_out(f, 0) != w->end && i < f->n_operands; i++)
			want(w, tc_in(f, i));
	for (unsigned j = 0; j < w->op->n_results; j++)
		n += w->is_read[j];
	return n;
}

/* Whether v is "before, or equal and the rest". */
static bool has_rest(const struct tc_value *v, struct tc_value **before, struct tc_value **rest)
{
	for (unsigned i = 0; v->def && v->def->op == TC_OR && i < 4; i++) {
		struct tc_value *l = tc_in(v->def, i & 1), *a = tc_in(v->def, !(i & 1)), *e;

		if (!l->def || l->def->op != TC_COMPARE || !a->def || a->def->op != TC_AND)
			continue;
		e = tc_in(a->def, i >> 1);
		*before = l;
		*rest = tc_in(a->def, !(i >> 1));
		if (e->def && e->def->op == TC_COMPARE &&
		    tc_in(e->def, 0) == tc_in(l->def, 0) && tc_in(e->def, 1) == tc_in(l->def, 1) &&
		    tc_attr_int(e->def, "comparison_direction", 0) == TC_CMP_EQ &&
		    tc_attr_int(l->def, "comparison_direction", 0) != TC_CMP_NE &&
		    tc_attr_int(e->def, "compare_type", 0) ==
		    tc_attr_int(l->def, "compare_type", 0))
			return true;
	}
	return false;
}

/* x in the order of the places so far. */
static struct tc_value *in_order(const struct wide *w, struct tc_value *x)
{
	const struct tc_build *b = &w->b;
	const struct tc_type *t = x->type;
	unsigned d = (unsigned)tc_attr_int(w->op, "dimension", 0), last = t->rank - 1u;
	int64_t turn[TC_MAX_RANK], flat[3] = { t->dim[d] ? t->count / t->dim[d] : 0, t->dim[d], 1 };
	struct tc_value *places = w->places;

	if (!places)
		return x;
	for (unsigned i = 0; i < t->rank; i++)
		turn[i] = i == d ? last : i == last ? d : i;
	x = tc_build_transpose(b, x, turn);
	t = x->type;
	places = tc_build_reshape(b, tc_build_transpose(b, places, turn), 2, flat);
	x = tc_build_rows(b, tc_build_reshape(b, x, 3, flat), places);
	return tc_build_transpose(b, tc_build_reshape(b, x, t->rank, t->dim), turn);
}

/* A pass by a value of the comparator; find_parts has been called for it. out: what becomes of
 * the arrays that it reads. */
static void sort_by(struct wide *w, struct tc_value *by, struct tc_value **out)
{
	struct tc_ctx *c = w->b.c;
	struct tc_map *map = tc_map_new(c);
	struct tc_value *in[ISA_MAX_SORT], *v;
	const struct tc_type *types[ISA_MAX_SORT], *t = tc_in(w->op, 0)->type;
	int64_t d = tc_attr_int(w->op, "dimension", 0);
	struct tc_build inner = { .c = c, .where = w->b.where };
	unsigned n = 0;
	struct tc_op *sort;

	for (unsigned j = 0; j < w->op->n_results; j++)
		if (w->is_read[j])
			in[n++] = in_order(w, tc_in(w->op, j));
	in[n++] = w->places ? w->places : tc_build_iota(&w->b, tc_with_elem(c, t,
			t->dim[d] >> 31 ? ELEM_S64 : ELEM_S32), (unsigned)d);
	for (unsigned i = 0; i < n; i++)
		types[i] = in[i]->type;
	sort = tc_new(c, TC_SORT, n, in, n, types, 1);
	tc_set_int(c, sort, "dimension", TC_ATTR_INT, d);
	tc_set_int(c, sort, "is_stable", TC_ATTR_BOOL, 1);
	inner.block = tc_new_block(c, &sort->regions[0]);
	for (unsigned j = 0, i = 0; i < n; j++) {
		if (i < n - 1 && !w->is_read[j])
			continue;
		for (unsigned side = 0; side < 2; side++) {
			v = tc_new_arg(c, inner.block,
				       tc_tensor(c, (enum elem)types[i]->elem, 0, NULL));
			if (i < n - 1)
				tc_map_set(c, map, w->body->args[2 * j + side], v);
		}
		i++;
	}
	for (struct tc_op *f = w->body->first; f != w->body->last; f = f->next) {
		if (f->side && tc_out(f, 0) == w->end)
			tc_map_set(c, map, tc_out(f, 0), tc_map_get(map, w->instead));
		else if (f->side)
			tc_append(inner.block, tc_clone(c, f, map));
	}
	by = tc_map_get(map, by);
	tc_build_return(&inner, 1, &by);
	tc_build_place(&w->b, sort);
	n = 0;
	for (unsigned j = 0; j < w->op->n_results; j++)
		if (w->is_read[j])
			out[j] = tc_out(sort, n++);
	w->places = tc_out(sort, n);
}

/* All of the comparator, then in turn what follows each "before, or equal and". */
struct chain {
	struct tc_value **all, **before;	/* the last one has no before */
	unsigned n;
};

static struct chain find_chain(struct tc_ctx *c, const struct tc_op *op)
{
	unsigned room = 1;
	struct chain k = { .n = 1 };

	for (const struct tc_op *f = op->regions[0].block->first; f; f = f->next)
		room++;
	k.all = arena_array(&c->arena, room, sizeof(*k.all));
	k.before = arena_array(&c->arena, room, sizeof(*k.before));
	if (!k.all || !k.before)
		tc_fail(c, ERR_RESOURCE_EXHAUSTED, op, "out of memory");
	k.all[0] = tc_in(op->regions[0].block->last, 0);
	while (k.n < room && has_rest(k.all[k.n - 1], &k.before[k.n - 1], &k.all[k.n]))
		k.n++;
	return k;
}

/* Which of the chain's first n values the next pass is by: the first, which asks for most, that
 * one pass takes. Each asks for what the later ones do, too. -1: there is none. */
static int find_pass(struct wide *w, const struct chain *k, unsigned n)
{
	unsigned first = 0, last = n - 1, middle, reads;

	while (first < last) {
		middle = (first + last) / 2;
		if (find_parts(w, k->all[middle]) <= MOST_KEYS)
			last = middle;
		else
			first = middle + 1;
	}
	reads = find_parts(w, k->all[first]);
	return reads && reads <= MOST_KEYS ? (int)first : -1;
}

static bool has_regions(const struct tc_block *body)
{
	for (const struct tc_op *f = body->first; f; f = f->next)
		if (f->n_regions)
			return true;
	return false;
}

void tc_decompose_wide_sort(struct tc_ctx *c, struct tc_op *op)
{
	struct wide w = { .b = tc_build_at(c, op), .op = op, .body = op->regions[0].block };
	struct tc_value **out;
	struct chain k;
	int by;

	if (has_regions(w.body))
		return;
	out = arena_array(&c->arena, op->n_results, sizeof(*out));
	w.is_read = arena_array(&c->arena, op->n_results, sizeof(*w.is_read));
	if (!out || !w.is_read)
		tc_fail(c, ERR_RESOURCE_EXHAUSTED, op, "out of memory");
	k = find_chain(c, op);
	for (unsigned n = k.n; n; n = (unsigned)by) {
		by = find_pass(&w, &k, n);
		if (by < 0)
			return;
		sort_by(&w, k.all[by], out);
		if (by) {
			w.end = k.all[by - 1];
			w.instead = k.before[by - 1];
		}
	}
	for (unsigned j = 0; j < op->n_results; j++)
		tc_replace_uses(tc_out(op, j), w.is_read[j] ? out[j] :
							      in_order(&w, tc_in(op, j)));
	tc_erase(op);
}
