/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room for temporaries: a binding of their own, which grows, and what is to become results, until
 * they are written.
 *
 * A result's memory holds nothing until the first op that may write it, by what its value wishes
 * for (emit.c). What nothing looks at from there on may lie in it. How long something is looked
 * at is not always known when it gets its place, as views and what takes it over come later; so
 * a result is not born in its memory while somebody else is there (tc_is_vacant).
 *
 * What is not done: memory of donated arguments and of the host; and in programs that meet other
 * members, who are shown the temporaries, and may write a result before its op.
 */
#include "runtime/compiler/back/link.h"
#include "runtime/compiler/opt/fuse.h"

#define ALIGN 64u

/* ---- one room ---- */

static struct hole *new_hole(struct emit *e, uint64_t offset, uint64_t bytes)
{
	struct hole *h = e->spare_holes;

	if (h)
		e->spare_holes = h->next;
	else
		h = tc_get(e, 1, sizeof(*h));
	h->offset = offset;
	h->bytes = bytes;
	return h;
}

static struct hole **best_hole(struct room *r, uint64_t bytes)
{
	struct hole **best = NULL;

	for (struct hole **p = &r->holes; *p; p = &(*p)->next)
		if ((*p)->bytes >= bytes && (!best || (*p)->bytes < (*best)->bytes))
			best = p;
	return best;
}

static bool has_place(struct room *r, uint64_t bytes)
{
	return bytes <= r->limit - r->top || best_hole(r, bytes);
}

/* There is one. */
static uint64_t take_place(struct emit *e, struct room *r, uint64_t bytes)
{
	struct hole **best = best_hole(r, bytes), *h;
	uint64_t at;

	if (!best) {
		at = r->top;
		r->top += bytes;
		if (r->top > r->most)
			r->most = r->top;
		return at;
	}
	h = *best;
	at = h->offset;
	h->offset += bytes;
	h->bytes -= bytes;
	if (!h->bytes) {
		*best = h->next;
		h->next = e->spare_holes;
		e->spare_holes = h;
	}
	return at;
}

static void give_place(struct emit *e, struct room *r, uint64_t offset, uint64_t bytes)
{
	struct hole **p = &r->holes, *h;

	while (*p && (*p)->offset + (*p)->bytes < offset)
		p = &(*p)->next;
	if (*p && (*p)->offset + (*p)->bytes == offset) {
		(*p)->bytes += bytes;
	} else {
		h = new_hole(e, offset, bytes);
		h->next = *p;
		*p = h;
	}
	h = *p;
	if (h->next && h->offset + h->bytes == h->next->offset) {
		struct hole *gone = h->next;

		h->bytes += gone->bytes;
		h->next = gone->next;
		gone->next = e->spare_holes;
		e->spare_holes = gone;
	}
	if (!h->next && h->offset + h->bytes == r->top) {
		r->top = h->offset;
		*p = NULL;
		/* p is the last link: whatever pointed to h ends there. */
		h->next = e->spare_holes;
		e->spare_holes = h;
	}
}

/* ---- results' memory ---- */

void tc_plan_rooms(struct emit *e)
{
	e->rooms = tc_get(e, e->n_results + 1u, sizeof(*e->rooms));
	e->rooms[0] = (struct room){ .binding = BIND_TEMP, .birth = FOREVER_POS,
				     .limit = (uint64_t)TC_MAX_BYTES << 8 };
	e->n_rooms = 1;
}

struct room *tc_lend_result(struct emit *e, unsigned i, const struct tc_type *t)
{
	const struct tc_arg_info *info = tc_main(e->c)->region->parent->res_info;
	struct room *r = &e->rooms[e->n_rooms];

	if (e->result_alias[i] >= 0 || (info && info[i].memory_kind) || e->links->channels)
		return NULL;
	e->n_rooms++;
	*r = (struct room){ .binding = e->result_binding[i], .birth = FOREVER_POS,
			    .limit = (uint64_t)t->bytes / ALIGN * ALIGN };
	return r;
}

/* The first op that may write v, or a part of it. */
void tc_expect_birth(struct emit *e, struct room *r, const struct tc_value *v)
{
	uint32_t at = e->spans[v->def->id].start;

	if (at < r->birth)
		r->birth = at;
	for (unsigned k = 0; v->def->op == TC_CONCATENATE && k < v->def->n_operands; k++) {
		const struct tc_value *part = tc_part_of(v->def, k);

		if (part && tc_is_for_parts(part->def) && e->spans[part->def->id].start < r->birth)
			r->birth = e->spans[part->def->id].start;
	}
}

bool tc_is_vacant(const struct emit *e, const struct buffer *b, uint32_t from)
{
	if (!b->lends || !b->lends->n_live)
		return true;
	for (const struct buffer *other = e->live; other; other = other->next)
		if (other->room == b->lends && other->last >= from)
			return false;
	return true;
}

bool tc_may_stay(struct emit *e, const struct buffer *b, const struct tc_value *v)
{
	return b->room->birth == FOREVER_POS || tc_last_look(e, v) < b->room->birth;
}

/* The smallest room for it where nothing else will be as long as anything looks at it. */
static struct room *choose_room(struct emit *e, uint64_t bytes, uint32_t last)
{
	struct room *best = &e->rooms[0];

	for (unsigned i = 1; i < e->n_rooms; i++) {
		struct room *r = &e->rooms[i];

		if (last < r->birth && bytes <= r->limit &&
		    (best == &e->rooms[0] || r->limit < best->limit) && has_place(r, bytes))
			best = r;
	}
	return best;
}

void tc_take_room(struct emit *e, struct buffer *b, const struct tc_value *v)
{
	struct room *r = &e->rooms[0];
	uint32_t last = b->last, look;

	if (e->n_rooms > 1 && last != FOREVER_POS) {
		look = v ? tc_last_look(e, v) : 0;
		r = choose_room(e, b->bytes, look > last ? look : last);
	}
	if (!has_place(r, b->bytes))
		tc_fail(e->c, ERR_RESOURCE_EXHAUSTED, e->op, "temporaries overflow");
	b->room = r;
	b->binding = r->binding;
	b->offset = take_place(e, r, b->bytes);
	r->n_live++;
}

void tc_give_room(struct emit *e, struct buffer *b)
{
	give_place(e, b->room, b->offset, b->bytes);
	b->room->n_live--;
}
