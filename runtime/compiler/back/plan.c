/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where values live: temporaries, wishes, views.
 *
 * Wishes are how results are born in place. A result of main wishes for its binding, and so does
 * what is gathered for one; a value carried by a loop for the carried buffer. The place may still
 * hold an older value (a donated argument, the previous turn's value). What is asked is how long
 * anything looks at that buffer, by whatever views, and where exactly the op itself reads.
 */
#include <string.h>

#include "runtime/compiler/back/emit.h"
#include "runtime/compiler/opt/fuse.h"

#define ALIGN 64u

/* Room for a constant's bytes in .rodata; its home. */
static struct home constant_home(struct emit *e, const struct tc_value *v)
{
	static const char zeros[ALIGN];
	const struct tc_attr *a = tc_attr(v->def, "value");
	size_t each = elem_bytes(a->type->elem);
	size_t bytes = a->is_splat ? each : (size_t)a->type->bytes;
	struct home h = { 0 };

	str_add(&e->rodata, zeros, (ALIGN - e->rodata.len % ALIGN) % ALIGN);
	h.buf = tc_get(e, 1, sizeof(*h.buf));
	h.buf->binding = BIND_CONST;
	h.buf->last = h.buf->deepest = FOREVER_POS;
	h.offset = (int64_t)e->rodata.len;
	str_add(&e->rodata, a->data, bytes);
	if (!a->is_splat)
		tc_dense_strides(a->type, h.stride);
	return h;
}

struct home *tc_home_to_view(struct emit *e, const struct tc_value *v)
{
	struct home *h = &e->homes[v->id];

	if (!h->buf && v->def && v->def->op == TC_CONSTANT)
		*h = constant_home(e, v);
	return h;
}

/* One element is nobody's slice that was left where it lies. */
uint8_t tc_load_scalar(struct emit *e, const struct tc_value *v)
{
	const struct home *h = tc_home_to_view(e, v);
	uint8_t r = tc_reg(e);

	tc_put_scalar(e, (struct isa_scalar){ .rd = r, .ra = h->reg,
		.elem = v->type->elem, .binding = h->buf->binding, .imm = h->offset }, ISA_LD);
	return r;
}

uint8_t tc_load_condition(struct emit *e, const struct tc_value *v)
{
	const struct home *h = tc_home_to_view(e, v);
	const struct isa_scalar *s;

	if (e->last_put != SIZE_MAX && !h->reg) {
		s = (const void *)(e->code.text + e->last_put);
		if (s->insn.op == ISA_ST && !s->ra && s->elem == v->type->elem &&
		    s->binding == h->buf->binding && s->imm == h->offset)
			return s->rb;
	}
	return tc_load_scalar(e, v);
}

uint8_t tc_dynamic_offset(struct emit *e, const struct tc_op *op, unsigned first,
			  const struct tc_type *whole, const struct tc_type *part,
			  const struct home *base)
{
	uint8_t sum = base->reg, known;
	int64_t fixed = 0, x;
	bool is_any_known = false;

	for (unsigned d = 0; d < whole->rank; d++) {
		const struct tc_value *start = tc_in(op, first + d);
		int64_t most = whole->dim[d] - part->dim[d];
		uint8_t r, s;

		if (!most || !base->stride[d])
			continue;
		if (start->type->elem != ELEM_U64 && tc_splat_element(start)) {
			x = tc_attr_element(tc_attr(start->def, "value"), 0);
			is_any_known = true;
			fixed += (x < 0 ? 0 : x > most ? most : x) * base->stride[d];
			continue;
		}
		r = tc_load_scalar(e, start);
		/* A u64 past the signed range is large, not negative. */
		if (start->type->elem == ELEM_U64) {
			s = tc_reg(e);
			tc_put_scalar(e, (struct isa_scalar){ .fn = ISA_ALU_LT, .rd = s, .ra = r,
							      .imm = 0 }, ISA_ALUI);
			tc_put_scalar(e, (struct isa_scalar){ .fn = ISA_ALU_MUL, .rd = s, .ra = s,
							      .imm = INT64_MAX }, ISA_ALUI);
			tc_put_scalar(e, (struct isa_scalar){ .fn = ISA_ALU_MAX, .rd = r, .ra = r,
							      .rb = s }, ISA_ALU);
		}
		tc_put_scalar(e, (struct isa_scalar){ .fn = ISA_ALU_MAX, .rd = r, .ra = r,
						      .imm = 0 }, ISA_ALUI);
		tc_put_scalar(e, (struct isa_scalar){ .fn = ISA_ALU_MIN, .rd = r, .ra = r,
						      .imm = most }, ISA_ALUI);
		tc_put_scalar(e, (struct isa_scalar){ .fn = ISA_ALU_MUL, .rd = r, .ra = r,
						      .imm = base->stride[d] }, ISA_ALUI);
		if (sum)
			tc_put_scalar(e, (struct isa_scalar){ .fn = ISA_ALU_ADD, .rd = r,
							      .ra = r, .rb = sum }, ISA_ALU);
		sum = r;
	}
	/* Of 0, too: what an op leaves is noted of an instruction of its own, and an update may
	 * have nothing to copy. */
	if (!is_any_known)
		return sum;
	known = tc_reg(e);
	tc_put_scalar(e, (struct isa_scalar){ .fn = ISA_ALU_ADD, .rd = known, .ra = sum,
					      .imm = fixed }, ISA_ALUI);
	return known;
}

struct home *tc_home(struct emit *e, const struct tc_value *v)
{
	struct home *h = tc_home_to_view(e, v);

	if (h->slice && h->loaded != e->op) {
		const struct tc_value *whole = tc_in(h->slice, 0);

		h->reg = tc_dynamic_offset(e, h->slice, 1, whole->type, h->slice->results[0].type,
					   tc_home_to_view(e, whole));
		h->loaded = e->op;
	}
	return h;
}

/* Returns look at values when their block ends. */
static struct looks until_end_of_block(struct emit *e, const struct tc_value *v)
{
	const struct tc_block *b = v->def ? v->def->block : v->block;
	struct looks looks = tc_looks(e, v);
	uint32_t end = b == tc_main(e->c) ? FOREVER_POS : e->spans[b->region->parent->id].end;

	if (looks.last == FOREVER_POS)
		looks.last = end;
	if (looks.deepest == FOREVER_POS)
		looks.deepest = end;
	return looks;
}

static void look_until(struct buffer *b, struct looks looks)
{
	if (b->last < looks.last)
		b->last = looks.last;
	if (b->deepest < looks.deepest)
		b->deepest = looks.deepest;
}

/* Whether only the op being emitted looks at b's content, and only by its own operands. */
static bool is_dying(const struct emit *e, const struct buffer *b)
{
	const struct span *s = &e->spans[e->op->id];

	return b->last <= s->end && b->deepest <= s->start;
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

#define LEAST_TURN 1024	/* elements; fewer of a product are written one by one */

bool tc_turned_strides(const struct tc_value *v, int64_t *stride)
{
	const struct tc_use *u = v->uses;
	int64_t dense[TC_MAX_RANK];
	const int64_t *from;
	unsigned n;

	if (!v->def || !u || u->next || u->user->op != TC_TRANSPOSE ||
	    u->user->block != v->def->block)
		return false;
	from = tc_attr_ints(u->user, "permutation", &n);
	tc_dense_strides(tc_out(u->user, 0)->type, dense);
	for (unsigned i = 0; stride && i < n; i++)
		stride[from[i]] = dense[i];
	return true;
}

/* Of the dims of a product's result the longest one of each operand's own: its rows and columns. */
static uint64_t matrix_dims(const struct tc_op *dot)
{
	const struct tc_type *t = dot->results[0].type;
	unsigned n_batch, n_sums, begin[3];
	uint64_t dims = 0;

	tc_attr_ints(dot, "lhs_batching_dimensions", &n_batch);
	tc_attr_ints(dot, "lhs_contracting_dimensions", &n_sums);
	begin[0] = n_batch;
	begin[1] = tc_in(dot, 0)->type->rank - n_sums;
	begin[2] = t->rank;
	for (unsigned side = 0; side < 2; side++) {
		unsigned longest = begin[side];

		for (unsigned d = begin[side]; d < begin[side + 1]; d++)
			if (t->dim[d] >= t->dim[longest])
				longest = d;
		if (begin[side] < begin[side + 1])
			dims |= 1ull << longest;
	}
	return dims;
}

/* Whether the matrix unit has lines of memory to write where a product lies so: rows or columns of
 * one matrix, and not an element of each matrix after the other. */
static bool has_lines(const struct tc_op *dot, const int64_t *stride)
{
	const struct tc_type *t = dot->results[0].type;
	uint64_t dims = matrix_dims(dot);

	for (unsigned d = 0; d < t->rank; d++)
		if (dims >> d & 1 && t->dim[d] > 1 && stride[d] == elem_bytes(t->elem))
			return true;
	return t->count < LEAST_TURN;
}

/* Strides of the product in the order that these have, but with its rows and columns last. */
static void rows_last(const struct tc_op *dot, int64_t *stride)
{
	const struct tc_type *t = dot->results[0].type;
	int64_t step = elem_bytes(t->elem), turned[TC_MAX_RANK];
	uint64_t dims = matrix_dims(dot), left;

	memcpy(turned, stride, t->rank * sizeof(*turned));
	for (unsigned turn = 0; turn < 2; turn++, dims = ~dims)
		for (left = dims & ((1ull << t->rank) - 1); left;) {
			unsigned least = (unsigned)__builtin_ctzll(left);

			for (unsigned d = least; d < t->rank; d++)
				if (left >> d & 1 && turned[d] < turned[least])
					least = d;
			left &= ~(1ull << least);
			stride[least] = step;
			step *= t->dim[least] ? t->dim[least] : 1;
		}
}

bool tc_is_born_turned(const struct tc_value *v, int64_t *stride)
{
	int64_t turned[TC_MAX_RANK];

	if (!v->def || (v->def->op != TC_FFT && v->def->op != TC_DOT_GENERAL) ||
	    !tc_turned_strides(v, turned) ||
	    (v->def->op == TC_DOT_GENERAL && !has_lines(v->def, turned)))
		return false;
	if (stride)
		memcpy(stride, turned, v->type->rank * sizeof(*stride));
	return true;
}

/* The strides that a turned result is born with, others densely. */
static void born_strides(const struct tc_value *v, int64_t *stride)
{
	if (tc_is_born_turned(v, stride))
		return;
	if (v->def && v->def->op == TC_DOT_GENERAL && tc_turned_strides(v, stride))
		rows_last(v->def, stride);
	else
		tc_dense_strides(v->type, stride);
}

bool tc_reshape_strides(const struct tc_type *from, const int64_t *stride,
			const struct tc_type *to, int64_t *out)
{
	unsigned i = 0, k = 0;

	memset(out, 0, TC_MAX_RANK * sizeof(*out));
	if (!from->count)
		return true;
	while (i < from->rank || k < to->rank) {
		int64_t have = 1, want = 1, step, least;
		unsigned first_in = i, first_out = k;
		bool seen;

		do {
			if (have <= want && i < from->rank)
				have *= from->dim[i++];
			else if (k < to->rank)
				want *= to->dim[k++];
		} while (have != want && (i < from->rank || k < to->rank));
		if (have != want)
			return false;
		/* The old dims of this group must walk memory as one. A stride of 0 is
		 * a stride like any other, so what was seen is counted apart. */
		step = 0;
		least = 0;
		seen = false;
		for (unsigned d = i; d-- > first_in;) {
			if (from->dim[d] == 1)
				continue;
			if (seen && stride[d] != step)
				return false;
			if (!seen)
				least = stride[d];
			seen = true;
			step = stride[d] * from->dim[d];
		}
		step = least;
		for (unsigned d = k; d-- > first_out;) {
			out[d] = to->dim[d] > 1 ? step : 0;
			step *= to->dim[d];
		}
	}
	return true;
}

/* ---- temporaries ---- */

/* v: what it is for, if that may be looked at longer, or NULL. */
static struct buffer *new_temp(struct emit *e, int64_t bytes, struct looks looks,
			       const struct tc_value *v)
{
	struct buffer *b = tc_get(e, 1, sizeof(*b));

	b->is_temp = true;
	b->bytes = ((uint64_t)bytes + ALIGN - 1) / ALIGN * ALIGN;
	if (!b->bytes)
		b->bytes = ALIGN;
	look_until(b, looks);
	tc_take_room(e, b, v);
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
		tc_give_room(e, b);
	}
}

/* ---- homes ---- */

void tc_wish(struct emit *e, const struct tc_value *v, const struct home *home,
	     const struct buffer *old)
{
	struct wish *w = tc_get(e, 1, sizeof(*w));

	*w = (struct wish){ *home, old, e->wishes[v->id] };
	born_strides(v, w->home.stride);
	e->wishes[v->id] = w;
	if (home->buf->lends)
		tc_expect_birth(e, home->buf->lends, v);
}

const struct wish *tc_next_wish(struct emit *e, const struct tc_value *v,
				const struct wish *after)
{
	const struct wish *w = after ? after->next : e->wishes[v->id];

	while (w && ((w->old && !is_dying(e, w->old)) ||
		     !tc_is_vacant(e, w->home.buf, e->spans[e->op->id].start)))
		w = w->next;
	return w;
}

struct home *tc_place_at(struct emit *e, const struct tc_value *v, const struct home *at)
{
	struct home *h = tc_view(e, v, at);

	h->content = ++e->n_contents;
	return h;
}

/* A wish for memory that nothing looks at from `op` on. */
static const struct wish *free_wish(struct emit *e, const struct tc_value *v,
				    const struct tc_op *op)
{
	uint32_t start = e->spans[op->id].start;

	for (const struct wish *w = e->wishes[v->id]; w; w = w->next)
		if ((!w->old || w->old->last < start) && tc_is_vacant(e, w->home.buf, start))
			return w;
	return NULL;
}

struct home *tc_place_from(struct emit *e, const struct tc_value *v, const struct tc_op *op)
{
	const struct wish *w = free_wish(e, v, op);

	return w ? tc_place_at(e, v, &w->home) : tc_place_temp(e, v);
}

bool tc_may_place_from(struct emit *e, const struct tc_value *v, const struct tc_op *op)
{
	return !e->wishes[v->id] || free_wish(e, v, op);
}

struct home *tc_place(struct emit *e, const struct tc_value *v)
{
	struct home *h = &e->homes[v->id];

	return h->buf ? h : tc_place_from(e, v, v->def);
}

static struct home *place_temp(struct emit *e, const struct tc_value *v, int64_t bytes)
{
	struct looks looks = until_end_of_block(e, v);
	struct home *h = &e->homes[v->id];

	if (looks.last < e->now)
		looks.last = e->now;
	h->buf = new_temp(e, bytes, looks, v);
	h->offset = (int64_t)h->buf->offset;
	h->content = ++e->n_contents;
	return h;
}

struct home *tc_place_temp(struct emit *e, const struct tc_value *v)
{
	struct home *h = place_temp(e, v, v->type->bytes);

	born_strides(v, h->stride);
	return h;
}

struct home *tc_place_line(struct emit *e, const struct tc_value *v, unsigned d)
{
	int64_t unit = elem_bytes(v->type->elem);
	struct home *h = place_temp(e, v, v->type->count ? v->type->dim[d] * unit : 0);

	memset(h->stride, 0, sizeof(h->stride));
	h->stride[d] = unit;
	return h;
}

bool tc_home_meets(const struct home *h, const struct tc_type *t, const struct home *taken,
		   const struct tc_type *const *taken_type, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (taken[i].buf &&
		    tc_alias_homes(h, t, &taken[i], taken_type[i]) != TC_APART)
			return true;
	return false;
}

bool tc_ends_for(struct emit *e, const struct tc_value *v, const struct tc_value *in)
{
	const struct home *h = tc_home(e, in);
	int64_t stride[TC_MAX_RANK];

	/* What lies in another order than row by row is followed by what lies in the same. */
	if (tc_is_born_turned(v, stride)) {
		for (unsigned d = 0; d < v->type->rank; d++)
			if (v->type->dim[d] > 1 && h->stride[d] != stride[d])
				return false;
	} else if (!tc_is_dense(h, in->type)) {
		return false;
	}
	return h->buf->is_temp && is_dying(e, h->buf) && !h->reg &&
	       v->type->bytes == in->type->bytes && !free_wish(e, v, v->def) &&
	       tc_may_stay(e, h->buf, v);
}

bool tc_take_over(struct emit *e, const struct tc_value *v, const struct tc_value *in,
		  const struct home *taken, const struct tc_type *const *taken_type,
		  unsigned n, struct home *out)
{
	const struct home *from = tc_home(e, in), *to = NULL;

	if (!v->type->count)
		return false;
	for (const struct wish *w = NULL; (w = tc_next_wish(e, v, w)) && !to;)
		if (tc_alias_homes(from, in->type, &w->home, v->type) == TC_EQUAL &&
		    !tc_home_meets(&w->home, v->type, taken, taken_type, n))
			to = &w->home;
	if (!to && tc_ends_for(e, v, in) && !tc_home_meets(from, in->type, taken, taken_type, n))
		to = from;
	if (!to)
		return false;
	*out = *tc_place_at(e, v, &(struct home){ .buf = to->buf, .offset = to->offset });
	born_strides(v, out->stride);
	e->homes[v->id] = *out;
	return true;
}

struct home tc_scratch(struct emit *e, const struct tc_type *t)
{
	struct home h = { 0 };

	h.buf = new_temp(e, t->bytes, (struct looks){ e->now, e->now }, NULL);
	h.offset = (int64_t)h.buf->offset;
	h.content = ++e->n_contents;
	tc_dense_strides(t, h.stride);
	return h;
}

struct home tc_first_temp(struct emit *e, const struct tc_type *t)
{
	struct home h = { 0 };

	h.buf = new_temp(e, t->bytes, (struct looks){ FOREVER_POS, FOREVER_POS }, NULL);
	tc_dense_strides(t, h.stride);
	return h;
}

struct home *tc_view(struct emit *e, const struct tc_value *v, const struct home *from)
{
	struct home *h = &e->homes[v->id];
	struct looks looks = until_end_of_block(e, v);

	*h = *from;
	look_until(h->buf, looks);
	/* Whoever looks at a slice asks where it begins. */
	for (unsigned i = 1; h->slice && i < h->slice->n_operands; i++)
		look_until(tc_home_to_view(e, tc_in(h->slice, i))->buf, looks);
	return h;
}

struct home tc_zeros(struct emit *e)
{
	static const char zeros[ALIGN];
	struct home h = { 0 };

	if (e->zeros.buf)
		return e->zeros;
	str_add(&e->rodata, zeros, (ALIGN - e->rodata.len % ALIGN) % ALIGN);
	h.buf = tc_get(e, 1, sizeof(*h.buf));
	h.buf->binding = BIND_CONST;
	h.buf->last = h.buf->deepest = FOREVER_POS;
	h.offset = (int64_t)e->rodata.len;
	str_add(&e->rodata, zeros, 16);
	e->zeros = h;
	return h;
}

/* ---- what meets what ---- */

void tc_walk_home(struct tc_walk *w, const struct home *h, const struct tc_type *t)
{
	tc_walk_start(w, h->buf->binding, h->reg, h->offset, elem_bytes(t->elem));
	for (unsigned d = 0; d < t->rank; d++)
		tc_walk_dim(w, t->dim[d], h->stride[d]);
}

enum tc_alias tc_alias_homes(const struct home *a, const struct tc_type *at,
			     const struct home *b, const struct tc_type *bt)
{
	struct tc_walk x, y;

	if (a->buf->binding != b->buf->binding)
		return TC_APART;
	tc_walk_home(&x, a, at);
	tc_walk_home(&y, b, bt);
	return tc_alias(&x, &y);
}
