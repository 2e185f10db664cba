/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where values live: positions, last uses, temporaries, wishes.
 *
 * Wishes are how results are born in place. A result of main wishes for its binding, a
 * value carried by a loop for the carried buffer. The place may still hold an older
 * value, the guard (a donated argument, the previous iteration's value); the wish is
 * granted only if everything that looks at the guard has run by then.
 */
#include <string.h>

#include "runtime/compiler/back/emit.h"

#define ALIGN 64u

static void *get(struct emit *e, size_t count, size_t size)
{
	void *p = arena_array(&e->c->arena, count, size);

	if (!p)
		tc_fail(e->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	return p;
}

static uint32_t number(struct emit *e, const struct tc_block *b, uint32_t at)
{
	for (const struct tc_op *op = b->first; op; op = op->next) {
		e->spans[op->id].start = ++at;
		if (op->op == TC_WHILE || op->op == TC_CASE || op->op == TC_IF)
			for (unsigned r = 0; r < op->n_regions; r++)
				at = number(e, op->regions[r].block, at);
		e->spans[op->id].end = ++at;
	}
	return at;
}

void tc_plan_positions(struct emit *e)
{
	e->n_ids = e->c->next_id;
	e->spans = get(e, e->n_ids, sizeof(*e->spans));
	e->homes = get(e, e->n_ids, sizeof(*e->homes));
	number(e, tc_main(e->c), 0);
}

struct home *tc_home(struct emit *e, const struct tc_value *v)
{
	struct home *h = &e->homes[v->id];

	if (!h->buf && v->def && v->def->op == TC_CONSTANT)
		*h = tc_constant(e, v);
	return h;
}

uint32_t tc_last_use(struct emit *e, const struct tc_value *v)
{
	const struct tc_block *home = v->def ? v->def->block : v->block;
	uint32_t last = 0;

	for (const struct tc_use *u = v->uses; u; u = u->next) {
		const struct tc_op *op = u->user;
		uint32_t end;

		while (op->block != home)
			op = op->block->region->parent;
		end = op->op == TC_RETURN ? FOREVER_POS : e->spans[op->id].end;
		if (end > last)
			last = end;
	}
	return last;
}

/* Returns look at values when their block ends. */
static uint32_t end_of_block(struct emit *e, const struct tc_value *v, uint32_t last)
{
	const struct tc_block *b = v->def ? v->def->block : v->block;

	if (last != FOREVER_POS)
		return last;
	return b == tc_main(e->c) ? FOREVER_POS : e->spans[b->region->parent->id].end;
}

void tc_dense_strides(const struct tc_type *t, int64_t *stride)
{
	int64_t step = elem_bytes(t->elem);

	for (unsigned d = t->rank; d-- > 0;) {
		stride[d] = step;
		step *= t->dim[d] ? t->dim[d] : 1;
	}
}

bool tc_is_dense(const struct home *h, const struct tc_type *t)
{
	int64_t stride[TC_MAX_RANK];

	tc_dense_strides(t, stride);
	for (unsigned d = 0; d < t->rank; d++)
		if (t->dim[d] > 1 && h->stride[d] != stride[d])
			return false;
	return true;
}

/* ---- temporaries ---- */

static struct hole *new_hole(struct emit *e, uint64_t offset, uint64_t bytes)
{
	struct hole *h = e->spare_holes;

	if (h)
		e->spare_holes = h->next;
	else
		h = get(e, 1, sizeof(*h));
	h->offset = offset;
	h->bytes = bytes;
	return h;
}

static uint64_t take_room(struct emit *e, uint64_t bytes)
{
	struct hole **best = NULL, *h;
	uint64_t at;

	for (struct hole **p = &e->holes; *p; p = &(*p)->next)
		if ((*p)->bytes >= bytes && (!best || (*p)->bytes < (*best)->bytes))
			best = p;
	if (!best) {
		at = e->temp_top;
		if (__builtin_add_overflow(e->temp_top, bytes, &e->temp_top) ||
		    e->temp_top > (uint64_t)TC_MAX_BYTES << 8)
			tc_fail(e->c, ERR_RESOURCE_EXHAUSTED, e->op, "temporaries overflow");
		if (e->temp_top > e->temp_most)
			e->temp_most = e->temp_top;
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

static void give_room(struct emit *e, uint64_t offset, uint64_t bytes)
{
	struct hole **p = &e->holes, *h;

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
	if (!h->next && h->offset + h->bytes == e->temp_top) {
		e->temp_top = h->offset;
		*p = NULL;
		/* p is the last link: whatever pointed to h ends there. */
		h->next = e->spare_holes;
		e->spare_holes = h;
	}
}

static struct buffer *new_temp(struct emit *e, int64_t bytes, uint32_t last)
{
	struct buffer *b = get(e, 1, sizeof(*b));

	b->binding = BIND_TEMP;
	b->is_temp = true;
	b->bytes = ((uint64_t)bytes + ALIGN - 1) / ALIGN * ALIGN;
	if (!b->bytes)
		b->bytes = ALIGN;
	b->offset = take_room(e, b->bytes);
	b->last = last;
	b->next = e->live;
	e->live = b;
	return b;
}

void tc_release(struct emit *e, uint32_t position)
{
	struct buffer **p = &e->live;

	while (*p) {
		struct buffer *b = *p;

		if (b->last > position) {
			p = &b->next;
			continue;
		}
		*p = b->next;
		give_room(e, b->offset, b->bytes);
	}
}

/* ---- homes ---- */

void tc_wish(struct emit *e, const struct tc_value *v, const struct home *home,
	     struct tc_value *guard)
{
	struct wish *w = get(e, 1, sizeof(*w));

	*w = (struct wish){ v, *home, guard, e->wishes };
	e->wishes = w;
}

/* Whether operand `inplace` of the op is the only look at the guard that is left. */
static bool is_only_look(struct emit *e, const struct tc_op *op, int inplace,
			 const struct tc_value *guard)
{
	const struct home *h = &e->homes[guard->id];

	if (inplace < 0 || tc_in(op, (unsigned)inplace) != guard ||
	    h->buf->last > e->spans[op->id].end || !tc_is_dense(h, guard->type))
		return false;
	for (const struct tc_use *u = guard->uses; u; u = u->next) {
		const struct tc_op *user = u->user;

		while (user->block && user->block != op->block && user->block->region)
			user = user->block->region->parent;
		if (user != op)
			continue;
		if (u->user != op || u != &op->operands[inplace])
			return false;
	}
	return true;
}

struct wish *tc_granted(struct emit *e, const struct tc_value *v, int inplace)
{
	for (struct wish *w = e->wishes; w; w = w->next) {
		const struct home *g = w->guard ? &e->homes[w->guard->id] : NULL;

		if (w->value != v)
			continue;
		if (!g || !g->buf)
			return w;
		if (g->buf->last < e->spans[v->def->id].start ||
		    is_only_look(e, v->def, inplace, w->guard))
			return w;
		return NULL;
	}
	return NULL;
}

struct home *tc_place(struct emit *e, const struct tc_value *v)
{
	struct home *h = &e->homes[v->id];
	struct wish *w;
	uint32_t last;

	if (h->buf)
		return h;
	w = tc_granted(e, v, -1);
	last = end_of_block(e, v, tc_last_use(e, v));
	if (w) {
		*h = w->home;
		if (h->buf->last < last)
			h->buf->last = last;
		return h;
	}
	if (last < e->now)
		last = e->now;
	h->buf = new_temp(e, v->type->bytes, last);
	h->offset = (int64_t)h->buf->offset;
	tc_dense_strides(v->type, h->stride);
	return h;
}

struct home tc_scratch(struct emit *e, const struct tc_type *t)
{
	struct home h = { 0 };

	h.buf = new_temp(e, t->bytes, e->now);
	h.offset = (int64_t)h.buf->offset;
	tc_dense_strides(t, h.stride);
	return h;
}

struct home *tc_view(struct emit *e, const struct tc_value *v, const struct home *from)
{
	struct home *h = &e->homes[v->id];
	uint32_t last = end_of_block(e, v, tc_last_use(e, v));

	*h = *from;
	if (h->buf->last < last)
		h->buf->last = last;
	return h;
}

struct home tc_dense(struct emit *e, const struct tc_value *v)
{
	const struct home *h = tc_home(e, v);
	struct home copy;

	if (tc_is_dense(h, v->type))
		return *h;
	copy = tc_scratch(e, v->type);
	tc_copy_value(e, v->type, h, &copy);
	return copy;
}

struct home tc_constant(struct emit *e, const struct tc_value *v)
{
	static const char zeros[ALIGN];
	const struct tc_attr *a = tc_attr(v->def, "value");
	size_t each = elem_bytes(a->type->elem);
	size_t bytes = a->is_splat ? each : (size_t)a->type->bytes;
	struct home h = { 0 };

	str_add(&e->rodata, zeros, (ALIGN - e->rodata.len % ALIGN) % ALIGN);
	h.buf = get(e, 1, sizeof(*h.buf));
	h.buf->binding = BIND_CONST;
	h.buf->last = FOREVER_POS;
	h.offset = (int64_t)e->rodata.len;
	str_add(&e->rodata, a->data, bytes);
	if (!a->is_splat)
		tc_dense_strides(a->type, h.stride);
	return h;
}
