/* SPDX-License-Identifier: Apache-2.0 */
/* Writing instructions: a growing buffer, labels, the debug map, common short forms. */
#include <stdio.h>
#include <string.h>

#include "runtime/compiler/back/emit.h"

#define LINE_BYTES 64		/* of a cache */
#define MOST_COPIES 4096	/* that one of many dims is made of: a MiB of instructions */

void tc_refuse(struct emit *e, const char *why)
{
	tc_fail(e->c, ERR_UNIMPLEMENTED, e->op, "%s", why);
}

void tc_refuse_dims(struct emit *e, const char *what, unsigned n)
{
	tc_fail(e->c, ERR_UNIMPLEMENTED, e->op, "%s %u dims, an instruction of the device "
		"at most %d: join neighbouring dims by a reshape before it, and leave out dims of "
		"size 1", what, n, ISA_MAX_RANK);
}

static void note_debug(struct emit *e)
{
	struct image_debug *d;
	char text[96];

	if (e->n_debug == e->room_debug) {
		size_t room = e->room_debug ? e->room_debug * 2 : 256;
		struct image_debug *grown = arena_array(&e->c->arena, room, sizeof(*grown));

		if (!grown)
			tc_fail(e->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
		if (e->n_debug)
			memcpy(grown, e->debug, e->n_debug * sizeof(*grown));
		e->debug = grown;
		e->room_debug = room;
	}
	snprintf(text, sizeof(text), "%s", e->op ? tc_op_info(e->op->op)->text : "program");
	if (e->op && e->op->op == TC_FUSION) {
		size_t n = 0;

		n += (size_t)snprintf(text, sizeof(text), "fusion(");
		for (const struct tc_op *o = e->op->regions[0].block->first;
		     o->next && n < 70; o = o->next)
			if (o->op != TC_CONSTANT)
				n += (size_t)snprintf(text + n, sizeof(text) - n, "%.20s%s",
						      tc_op_info(o->op)->text,
						      o->next->next ? "," : "");
		snprintf(text + n, sizeof(text) - n, ")");
	}
	d = &e->debug[e->n_debug++];
	*d = (struct image_debug){ e->code.len, tc_string(e, text),
				   e->op ? tc_string(e, e->op->where) : 0 };
}

/* A slice that was left where it lies may be anywhere in the whole. */
static void add_starts(struct emit *e, const struct home *h, struct tc_note *n)
{
	const struct tc_value *whole = h->slice ? tc_in(h->slice, 0) : NULL;
	const struct tc_type *part = h->slice ? h->slice->results[0].type : NULL;

	for (unsigned d = 0; whole && d < whole->type->rank; d++) {
		int64_t far = (whole->type->dim[d] - part->dim[d]) *
			      e->homes[whole->id].stride[d];

		*(far < 0 ? &n->lo : &n->hi) += far;
	}
}

static void note(struct emit *e, enum tc_note_kind kind, const struct home *h,
		 const struct tc_type *t)
{
	struct tc_note n = { .at = e->code.len, .kind = (uint8_t)kind };

	if (h) {
		if (!h->content || !t->count)
			return;
		n.lo = h->offset;
		n.hi = h->offset + (int64_t)elem_bytes(t->elem);
		for (unsigned d = 0; d < t->rank; d++) {
			int64_t far = (t->dim[d] - 1) * h->stride[d];

			*(far < 0 ? &n.lo : &n.hi) += far;
		}
		add_starts(e, h, &n);
		n.binding = h->buf->binding;
		n.content = h->content;
	}
	if (e->n_notes == e->room_notes) {
		size_t room = e->room_notes ? e->room_notes * 2 : 64;
		struct tc_note *grown = arena_array(&e->c->arena, room, sizeof(*grown));

		if (!grown)
			tc_fail(e->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
		if (e->n_notes)
			memcpy(grown, e->notes, e->n_notes * sizeof(*grown));
		e->notes = grown;
		e->room_notes = room;
	}
	e->notes[e->n_notes++] = n;
}

static void note_read(struct emit *e, const struct tc_value *v)
{
	const struct home *h = &e->homes[v->id];

	if (h->buf)
		note(e, TC_NOTE_READS, h, v->type);
	for (unsigned i = 1; h->slice && i < h->slice->n_operands; i++)
		note_read(e, tc_in(h->slice, i));
}

void tc_note_op(struct emit *e, const struct tc_op *op)
{
	note(e, TC_NOTE_OP, NULL, NULL);
	for (unsigned i = 0; i < op->n_operands; i++)
		note_read(e, tc_in(op, i));
}

void tc_note_held(struct emit *e, const struct home *h, const struct tc_type *t)
{
	if (h->buf)
		note(e, TC_NOTE_HOLDS, h, t);
}

void tc_note_empty(struct emit *e, const struct home *h, const struct tc_type *t)
{
	note(e, TC_NOTE_EMPTY, h, t);
}

void *tc_put(struct emit *e, enum isa_opcode op, size_t bytes)
{
	static const char zeros[256];
	size_t at = e->code.len;
	struct isa_insn *insn;

	note_debug(e);
	for (size_t left = bytes; left;) {
		size_t n = left < sizeof(zeros) ? left : sizeof(zeros);

		str_add(&e->code, zeros, n);
		left -= n;
	}
	if (e->code.failed)
		tc_fail(e->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory for code");
	e->last_put = at;
	insn = (void *)(e->code.text + at);
	insn->op = (uint16_t)op;
	insn->bytes = (uint32_t)bytes;
	e->cost_ns += 60;
	return insn;
}

void tc_put_scalar(struct emit *e, struct isa_scalar s, enum isa_opcode op)
{
	struct isa_scalar *out = tc_put(e, op, sizeof(*out));
	struct isa_insn head = out->insn;

	*out = s;
	out->insn = head;
	e->cost_ns -= 55;
}

void tc_branch(struct emit *e, enum isa_opcode op, uint8_t ra, struct label *to)
{
	struct fixup *f = arena_alloc(&e->c->arena, sizeof(*f));

	if (!f)
		tc_fail(e->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	f->at = e->code.len;
	f->label = to;
	f->next = e->fixups;
	e->fixups = f;
	if (to->offset >= 0)
		e->has_loop = true;
	tc_put_scalar(e, (struct isa_scalar){ .ra = ra }, op);
}

void tc_bind(struct emit *e, struct label *l)
{
	l->offset = (int64_t)e->code.len;
	l->notes = (uint32_t)e->n_notes;
	e->last_put = SIZE_MAX;
}

uint32_t tc_string(struct emit *e, const char *text)
{
	size_t n = strlen(text), at;

	if (!n)
		return 0;
	/* Neighbouring rows often share their texts. */
	if (e->strings.len > n + 1 &&
	    !memcmp(e->strings.text + e->strings.len - n - 1, text, n + 1) &&
	    !e->strings.text[e->strings.len - n - 2])
		return (uint32_t)(e->strings.len - n - 1);
	at = e->strings.len;
	str_add(&e->strings, text, n + 1);
	return (uint32_t)at;
}

uint8_t tc_reg(struct emit *e)
{
	if (e->next_reg == ISA_N_REG)
		tc_refuse(e, "it needs more scalar registers than there are");
	return e->next_reg++;
}

struct isa_operand tc_operand(const struct home *h, unsigned elem)
{
	return (struct isa_operand){ .elem = (uint8_t)elem, .reg = h->reg,
				     .binding = h->buf->binding, .offset = h->offset };
}

static void copy(struct emit *e, enum isa_opcode op, unsigned rank, const int64_t *dim,
		 unsigned elem_size, const struct home *src, const struct home *dst);

/*
 * More dims than an instruction walks, of which no two are one: the shortest ones are walked here,
 * with an instruction for each of their places. dim[] and the homes' strides are changed.
 */
static void copy_in_parts(struct emit *e, enum isa_opcode op, unsigned n, int64_t *dim,
			  unsigned elem_size, struct home *src, struct home *dst)
{
	int64_t length[TC_MAX_RANK], from[TC_MAX_RANK], to[TC_MAX_RANK], parts = 1;
	unsigned n_walked = 0, all = n;

	while (n > ISA_MAX_RANK) {
		unsigned k = 0;

		for (unsigned i = 1; i < n; i++)
			if (dim[i] < dim[k])
				k = i;
		length[n_walked] = dim[k];
		from[n_walked] = src->stride[k];
		to[n_walked++] = dst->stride[k];
		if (__builtin_mul_overflow(parts, dim[k], &parts) || parts > MOST_COPIES)
			tc_refuse_dims(e, "it copies along", all);
		for (n--; k < n; k++) {
			dim[k] = dim[k + 1];
			src->stride[k] = src->stride[k + 1];
			dst->stride[k] = dst->stride[k + 1];
		}
	}
	for (int64_t part = 0; part < parts; part++) {
		struct home a = *src, b = *dst;

		for (unsigned w = n_walked, i = (unsigned)part; w-- > 0; i /= (unsigned)length[w]) {
			a.offset += i % length[w] * from[w];
			b.offset += i % length[w] * to[w];
		}
		copy(e, op, n, dim, elem_size, &a, &b);
	}
}

static void copy(struct emit *e, enum isa_opcode op, unsigned rank, const int64_t *dim,
		 unsigned elem_size, const struct home *src, const struct home *dst)
{
	int64_t d[TC_MAX_RANK], s[TC_MAX_RANK], t[TC_MAX_RANK];
	struct isa_copy *c;
	unsigned n = 0;
	double bytes = elem_size;
	bool by_lines;

	/* Join dims that both sides walk as one. */
	for (unsigned i = 0; i < rank; i++) {
		if (!dim[i])
			return;
		bytes *= (double)dim[i];
		if (dim[i] == 1)
			continue;
		if (n && s[n - 1] == src->stride[i] * dim[i] &&
		    t[n - 1] == dst->stride[i] * dim[i]) {
			d[n - 1] *= dim[i];
			s[n - 1] = src->stride[i];
			t[n - 1] = dst->stride[i];
			continue;
		}
		d[n] = dim[i];
		s[n] = src->stride[i];
		t[n++] = dst->stride[i];
	}
	if (n > ISA_MAX_RANK) {
		struct home from = *src, to = *dst;

		memcpy(from.stride, s, n * sizeof(*s));
		memcpy(to.stride, t, n * sizeof(*t));
		copy_in_parts(e, op, n, d, elem_size, &from, &to);
		return;
	}
	/* Rows shorter than a line of a cache take as long as as many elements. */
	by_lines = n && s[n - 1] == elem_size && t[n - 1] == elem_size &&
		   d[n - 1] * elem_size >= LINE_BYTES;
	c = tc_put(e, op, sizeof(*c));
	c->rank = (uint8_t)n;
	c->elem_bytes = (uint8_t)elem_size;
	for (unsigned i = 0; i < ISA_MAX_RANK; i++)
		c->dim[i] = i < n ? d[i] : 1;
	c->src = tc_operand(src, ELEM_INVALID);
	c->dst = tc_operand(dst, ELEM_INVALID);
	for (unsigned i = 0; i < n; i++) {
		c->src.stride[i] = s[i];
		c->dst.stride[i] = t[i];
	}
	e->bytes += 2 * bytes;
	e->cost_ns += bytes * (by_lines ? 0.05 : 0.2);
}

void tc_copy(struct emit *e, unsigned rank, const int64_t *dim, unsigned elem_size,
	     const struct home *src, const struct home *dst)
{
	copy(e, ISA_COPY, rank, dim, elem_size, src, dst);
}

void tc_rput(struct emit *e, unsigned rank, const int64_t *dim, unsigned elem_size,
	     const struct home *src, const struct home *dst)
{
	copy(e, ISA_RPUT, rank, dim, elem_size, src, dst);
}

void tc_copy_value(struct emit *e, const struct tc_type *t, const struct home *src,
		   const struct home *dst)
{
	tc_copy(e, t->rank, t->dim, elem_bytes(t->elem), src, dst);
}
