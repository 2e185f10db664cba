/* SPDX-License-Identifier: Apache-2.0 */
/* Writing instructions: a growing buffer, labels, the debug map, common short forms. */
#include <stdio.h>
#include <string.h>

#include "runtime/compiler/back/emit.h"

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
