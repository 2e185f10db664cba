/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ops in which members of a program meet (link.h). An exchange in a row of n, at place i:
 *
 *	ld turn
 *	rwait credit >= turn * (n-1)
 *	for k in 1..n-1: rput what is for place (i + k) mod n -> its area, part i; rsig arrived
 *	copy what is for place i -> own area, part i
 *	turn + 1
 *	rwait arrived >= turn * (n-1)
 *	copy the area -> the result
 *	for k in 1..n-1: rsig credit of the member at place (i + k) mod n
 *	st turn
 *
 * What goes straight into results (tc_is_direct) has the credit first, of this turn:
 *
 *	ld turn; turn + 1
 *	for k in 1..n-1: rsig credit of the member at place (i + k) mod n
 *	copy what is for place i -> own result, part i
 *	rwait credit >= turn * (n-1)
 *	for k in 1..n-1: rput what is for place (i + k) mod n -> its result, part i; rsig arrived
 *	rwait arrived >= turn * (n-1)
 *	st turn
 *
 * Where that has come as a credit already (ready, link.h), neither credits nor that wait are there,
 * and the own part is copied when the others' are under way.
 *
 * From its credit on others write into a member's result, so that lies apart from the operand,
 * and in memory at which nothing looks any more. All kinds may follow each other in one channel;
 * each counts its own turns (link.h says why).
 *
 * Everybody sends first and then receives, and a credit is waited for only if it was given
 * for an earlier turn, or for this one by who has not waited in it before; so as long as members
 * meet in one order, nobody waits in a circle. What goes by mailboxes is read before anything of
 * the result is written: the result may lie where the operand lies.
 *
 * Where rows differ in length, or members of a permutation in what they do, the code branches
 * by a word of the member's row. A branch is a part of its own to the check of the code, which
 * takes the op's operands again and leaves its results.
 */
#include <string.h>

#include "runtime/compiler/back/link.h"

/* Guesses at what it takes to wake up who waits, and to reach another chip. */
#define WAIT_NS 3000.0
#define REACH_NS 300.0

struct meeting {
	struct emit *e;
	const struct tc_op *op;
	const struct channel *ch;
	const struct tc_value *in;
	struct home to;		/* of the result */
	bool is_direct;		/* tc_is_direct */
	unsigned way;		/* whose counts, LINK_* */
	uint8_t turn, one;	/* registers; one: 1 */
};

static struct label *new_labels(struct emit *e, unsigned n)
{
	struct label *l = arena_array(&e->c->arena, n, sizeof(*l));

	if (!l)
		tc_fail(e->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	for (unsigned i = 0; i < n; i++)
		l[i].offset = -1;
	return l;
}

/* A place of the mailbox of this member, or of another one. */
static struct home at_mailbox(struct emit *e, int slot, uint64_t offset, uint8_t reg)
{
	struct buffer *b = arena_alloc(&e->c->arena, sizeof(*b));

	if (!b)
		tc_fail(e->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	b->binding = (uint16_t)(slot < 0 ? e->links->mailbox : e->links->first_peer + slot);
	b->bytes = e->links->bytes;
	return (struct home){ .buf = b, .offset = (int64_t)offset, .reg = reg };
}

/* ---- what the image says of it ---- */

static uint16_t depth_of(const struct tc_op *op)
{
	uint16_t n = 0;

	for (op = op->block->region->parent; op->op != TC_FUNC && n < UINT16_MAX;
	     op = op->block->region->parent)
		n++;
	return n;
}

/* Where a member meets others, as others see it who run a program of their own. */
static void note_meeting(struct meeting *m, const struct tc_type *t)
{
	struct emit *e = m->e;
	const struct tc_op *op = m->op;
	struct image_meeting *x = e->meetings;
	enum image_meeting_kind kind = IMAGE_PAIRS;

	if (e->n_meetings == e->room_meetings) {
		size_t room = e->room_meetings ? e->room_meetings * 2 : 16;

		x = arena_array(&e->c->arena, room, sizeof(*x));
		if (!x)
			tc_fail(e->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
		if (e->n_meetings)
			memcpy(x, e->meetings, e->n_meetings * sizeof(*x));
		e->meetings = x;
		e->room_meetings = room;
	}
	if (m->ch->size)
		kind = tc_attr_int(op, "is_same", 0) ? IMAGE_WHOLE : IMAGE_PARTS;
	x[e->n_meetings++] = (struct image_meeting){ .kind = (uint8_t)kind, .elem = t->elem,
		.depth = depth_of(op), .groups = m->ch->groups, .bytes = (uint64_t)t->bytes,
		.where = tc_string(e, op->where) };
}

/* ---- semaphores ---- */

/* Where the count is, of those for the way it goes. */
static int64_t at_count(const struct meeting *m, unsigned which)
{
	return (int64_t)(m->ch->state + m->way + which);
}

/* Until all of n others have raised it in each turn. */
static void wait_for(struct meeting *m, unsigned which, unsigned n)
{
	uint8_t mark = m->e->next_reg, r = m->turn;

	if (n > 1) {
		r = tc_reg(m->e);
		tc_put_scalar(m->e, (struct isa_scalar){ .fn = ISA_ALU_MUL, .rd = r,
							 .ra = m->turn, .imm = n }, ISA_ALUI);
	}
	tc_put_scalar(m->e, (struct isa_scalar){ .elem = ELEM_U64, .rb = r,
		.binding = m->e->links->mailbox, .imm = at_count(m, which) }, ISA_RWAIT);
	m->e->next_reg = mark;
	m->e->cost_ns += WAIT_NS;
}

static void raise(struct meeting *m, unsigned slot, unsigned which)
{
	tc_put_scalar(m->e, (struct isa_scalar){ .fn = ISA_ALU_ADD, .elem = ELEM_U64,
		.rb = m->one, .binding = (uint16_t)(m->e->links->first_peer + slot),
		.imm = at_count(m, which) }, ISA_RSIG);
	m->e->cost_ns += REACH_NS;
}

static void begin_turn(struct meeting *m)
{
	m->turn = tc_reg(m->e);
	m->one = tc_reg(m->e);
	tc_put_scalar(m->e, (struct isa_scalar){ .rd = m->turn, .elem = ELEM_U64,
		.binding = m->e->links->mailbox, .imm = at_count(m, LINK_TURN) }, ISA_LD);
	tc_put_scalar(m->e, (struct isa_scalar){ .rd = m->one, .imm = 1 }, ISA_LI);
}

/* From here on it waits for this turn's. */
static void next_turn(struct meeting *m)
{
	tc_put_scalar(m->e, (struct isa_scalar){ .fn = ISA_ALU_ADD, .rd = m->turn, .ra = m->turn,
						 .imm = 1 }, ISA_ALUI);
}

static void end_turn(struct meeting *m)
{
	tc_put_scalar(m->e, (struct isa_scalar){ .rb = m->turn, .elem = ELEM_U64,
		.binding = m->e->links->mailbox, .imm = at_count(m, LINK_TURN) }, ISA_ST);
}

/* ---- what differs between members ---- */

static void branch_if(struct emit *e, unsigned word, int64_t value, struct label *to)
{
	uint8_t r = tc_load_word(e, word);

	tc_put_scalar(e, (struct isa_scalar){ .fn = ISA_ALU_EQ, .rd = r, .ra = r, .imm = value },
		      ISA_ALUI);
	tc_branch(e, ISA_BNZ, r, to);
}

/* ---- places ---- */

/* The result; where the operand lies at most if that is read before it is written. */
static struct home *place_result(struct emit *e, const struct tc_value *v, bool reads_first)
{
	const struct wish *w = reads_first ? tc_next_wish(e, v, NULL) : NULL;

	return w ? tc_place_at(e, v, &w->home) : tc_place(e, v);
}

/* The home without its outermost dim, or with one more. */
static struct home shifted(const struct home *h, int by)
{
	struct home out = *h;

	memset(out.stride, 0, sizeof(out.stride));
	if (by < 0)
		memcpy(out.stride, h->stride + 1, (TC_MAX_RANK - 1) * sizeof(*h->stride));
	else
		memcpy(out.stride + 1, h->stride, (TC_MAX_RANK - 1) * sizeof(*h->stride));
	return out;
}

/* Adds what a register holds to its address. */
static void lead(struct emit *e, struct home *h, uint8_t reg)
{
	if (h->reg)
		tc_put_scalar(e, (struct isa_scalar){ .fn = ISA_ALU_ADD, .rd = reg, .ra = reg,
						      .rb = h->reg }, ISA_ALU);
	h->reg = reg;
}

/* ---- exchanges ---- */

/* What an exchange moves: arrays of `rank` dims, `step` bytes apart at the receiver. */
struct parts {
	bool is_same;
	unsigned rank;
	const int64_t *dim;
	uint8_t elem_bytes;
	int64_t step;
	int64_t stride[TC_MAX_RANK];	/* dense in a mailbox, else as the result's */
};

static struct parts parts_of(const struct meeting *m)
{
	const struct tc_type *t = m->op->results[0].type;
	struct parts p = { .is_same = tc_attr_int(m->op, "is_same", 0), .rank = t->rank - 1u,
			   .dim = t->dim + 1, .elem_bytes = (uint8_t)elem_bytes(t->elem) };
	int64_t stride[TC_MAX_RANK];

	if (m->is_direct)
		memcpy(stride, m->to.stride, sizeof(stride));
	else
		tc_dense_strides(t, stride);
	p.step = stride[0];
	memcpy(p.stride, stride + 1, p.rank * sizeof(*stride));
	return p;
}

/* The operand, or what of it is for the place that the word says, in a row of n. */
static struct home part_for(struct meeting *m, const struct parts *p, unsigned word, unsigned n)
{
	const struct home *h = tc_home(m->e, m->in);
	struct home part;

	if (p->is_same)
		return *h;
	part = shifted(h, -1);
	lead(m->e, &part, tc_load_place(m->e, word, n - 1, h->stride[0]));
	return part;
}

/* Where parts go, part 0 first: of the member in a slot, or of this one. */
static struct home area_of(const struct meeting *m, int slot)
{
	if (!m->is_direct)
		return at_mailbox(m->e, slot, m->ch->area, 0);
	return slot < 0 ? m->to : tc_at_peer(m->e, (unsigned)slot, &m->to);
}

/* What is for the place that `word` says; own: leads to this member's part of an area. */
static void send_part(struct meeting *m, const struct parts *p, unsigned n, unsigned word, int slot,
		      uint8_t own)
{
	struct home from = part_for(m, p, word, n), to = area_of(m, slot);

	to.reg = own;
	memcpy(to.stride, p->stride, sizeof(to.stride));
	if (slot < 0)
		tc_copy(m->e, p->rank, p->dim, p->elem_bytes, &from, &to);
	else
		tc_rput(m->e, p->rank, p->dim, p->elem_bytes, &from, &to);
}

static void send_parts(struct meeting *m, const struct parts *p, unsigned n)
{
	const struct channel *ch = m->ch;
	uint8_t own = tc_load_place(m->e, ch->place_word, n - 1, p->step), mark = m->e->next_reg;

	if (m->way == LINK_DIRECTLY)	/* while the others get ready */
		send_part(m, p, n, ch->place_word, -1, own);
	if (m->way != LINK_READY)
		wait_for(m, LINK_CREDIT, n - 1);
	for (unsigned k = 1; k < n; k++) {
		m->e->next_reg = mark;
		send_part(m, p, n, p->is_same ? 0 : ch->to_word[k], ch->slot[k], own);
		raise(m, ch->slot[k], LINK_ARRIVED);
	}
	m->e->next_reg = mark;
	if (m->way != LINK_DIRECTLY)
		send_part(m, p, n, ch->place_word, -1, own);
	m->e->next_reg = mark;
}

static void give_credits(struct meeting *m, unsigned n)
{
	for (unsigned k = 1; k < n; k++)
		raise(m, m->ch->slot[k], LINK_CREDIT);
}

static void take_parts(struct meeting *m, const struct parts *p, unsigned n)
{
	struct home from = at_mailbox(m->e, -1, m->ch->area, 0);
	int64_t dim[TC_MAX_RANK] = { n };

	memcpy(dim + 1, p->dim, p->rank * sizeof(*dim));
	from.stride[0] = p->step;
	memcpy(from.stride + 1, p->stride, p->rank * sizeof(*dim));
	tc_copy(m->e, p->rank + 1, dim, p->elem_bytes, &from, &m->to);
}

static void meet(struct meeting *m, const struct parts *p, unsigned n)
{
	begin_turn(m);
	if (m->is_direct) {
		next_turn(m);
		if (m->way == LINK_DIRECTLY)
			give_credits(m, n);
		send_parts(m, p, n);
		wait_for(m, LINK_ARRIVED, n - 1);
	} else {
		send_parts(m, p, n);
		next_turn(m);
		wait_for(m, LINK_ARRIVED, n - 1);
		take_parts(m, p, n);
		give_credits(m, n);
	}
	end_turn(m);
}

/* In a row of n; what the row does not have is zeros. */
static void exchange(struct meeting *m, unsigned n)
{
	const struct tc_type *t = m->op->results[0].type;
	struct parts p = parts_of(m);
	struct home zeros, to;
	int64_t dim[TC_MAX_RANK];

	if (n > 1) {
		meet(m, &p, n);
	} else {
		to = shifted(&m->to, -1);
		tc_copy(m->e, p.rank, p.dim, p.elem_bytes, tc_home(m->e, m->in), &to);
	}
	if (n < t->dim[0]) {
		memcpy(dim, t->dim, t->rank * sizeof(*dim));
		dim[0] -= n;
		zeros = tc_zeros(m->e);
		to = m->to;
		to.offset += n * to.stride[0];
		tc_copy(m->e, t->rank, dim, p.elem_bytes, &zeros, &to);
	}
	tc_note_held(m->e, &m->to, t);
}

/* The lengths of the rows, each once. */
static unsigned find_lengths(struct emit *e, const struct channel *ch, unsigned **out)
{
	unsigned *lengths = arena_array(&e->c->arena, ch->size, sizeof(*lengths)), n = 0, k;

	if (!lengths)
		tc_fail(e->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	for (unsigned m = 0; m < e->links->n_members; m++) {
		for (k = 0; k < n && lengths[k] != ch->length[m]; k++)
			;
		if (k == n)
			lengths[n++] = (unsigned)ch->length[m];
	}
	*out = lengths;
	return n;
}

static void emit_exchange(struct meeting *m)
{
	struct emit *e = m->e;
	const struct tc_value *v = tc_out(m->op, 0);
	unsigned *lengths, n = find_lengths(e, m->ch, &lengths);
	struct label *at = new_labels(e, n), *end = new_labels(e, 1);
	bool is_alone = false;
	struct home *to = tc_home(e, v);

	for (unsigned i = 0; i < n; i++)
		is_alone |= lengths[i] == 1;
	if (to->buf)	/* since emit_lent() */
		m->way = LINK_READY;
	else
		to = m->is_direct ? tc_place_for_peers(e, v) : place_result(e, v, !is_alone);
	tc_is_turned(e, v, to->stride);
	m->to = *to;
	if (m->ch->meets)
		note_meeting(m, v->type);
	if (n == 1) {
		exchange(m, lengths[0]);
		return;
	}
	for (unsigned i = 0; i + 1 < n; i++)
		branch_if(e, m->ch->length_word, lengths[i], &at[i]);
	tc_branch(e, ISA_JMP, 0, &at[n - 1]);
	for (unsigned i = 0; i < n; i++) {
		tc_bind(e, &at[i]);
		tc_note_op(e, m->op);
		e->next_reg = 1;
		exchange(m, lengths[i]);
		if (i + 1 < n)
			tc_branch(e, ISA_JMP, 0, end);
	}
	tc_bind(e, end);
}

/* ---- what is lent ---- */

/* Waits until all others of the row have come as often as this member (link.h). */
static void come(struct meeting *m)
{
	m->way = LINK_LENT;
	begin_turn(m);
	next_turn(m);
	for (unsigned k = 1; k < m->ch->size; k++)
		raise(m, m->ch->slot[k], LINK_ARRIVED);
	wait_for(m, LINK_ARRIVED, m->ch->size - 1);
	end_turn(m);
}

static void emit_lent(struct meeting *m)
{
	const struct tc_op *ready;

	tc_place_lent(m->e, m->op);
	ready = tc_find_ready(m->e, m->op);
	if (ready)
		tc_place_for_peers(m->e, tc_out(ready, 0));
	note_meeting(m, tc_out(m->op, 0)->type);
	come(m);
}

/* ---- permutations ---- */

static void send(struct meeting *m)
{
	const struct channel *ch = m->ch;
	const struct tc_type *t = m->in->type;
	struct label *none = new_labels(m->e, 1);
	struct home to;
	uint8_t r;

	if (!ch->sends[LINK_OTHER])
		return;
	if (ch->sends_word != LINK_NO_WORD) {
		r = tc_load_word(m->e, ch->sends_word);
		tc_put_scalar(m->e, (struct isa_scalar){ .fn = ISA_ALU_EQ, .rd = r, .ra = r,
							 .imm = LINK_OTHER }, ISA_ALUI);
		tc_branch(m->e, ISA_BZ, r, none);
		tc_note_op(m->e, m->op);
	}
	wait_for(m, LINK_CREDIT, 1);
	to = at_mailbox(m->e, ch->slot[LINK_TARGET], ch->area, 0);
	tc_dense_strides(t, to.stride);
	tc_rput(m->e, t->rank, t->dim, elem_bytes(t->elem), tc_home(m->e, m->in), &to);
	raise(m, ch->slot[LINK_TARGET], LINK_ARRIVED);
	if (ch->sends_word != LINK_NO_WORD) {
		tc_bind(m->e, none);
		tc_note_op(m->e, m->op);
	}
}

static void receive(struct meeting *m, unsigned kind)
{
	const struct tc_type *t = m->in->type;
	struct home zeros, from;

	if (kind == LINK_ZEROS) {
		zeros = tc_zeros(m->e);
		tc_copy_value(m->e, t, &zeros, &m->to);
	} else if (kind == LINK_SELF) {
		tc_copy_value(m->e, t, tc_home(m->e, m->in), &m->to);
	} else {
		from = at_mailbox(m->e, -1, m->ch->area, 0);
		tc_dense_strides(t, from.stride);
		wait_for(m, LINK_ARRIVED, 1);
		tc_copy_value(m->e, t, &from, &m->to);
		raise(m, m->ch->slot[LINK_SOURCE], LINK_CREDIT);
	}
	tc_note_held(m->e, &m->to, t);
}

static void receive_any(struct meeting *m)
{
	struct emit *e = m->e;
	struct label *at = new_labels(e, 3), *end = new_labels(e, 1);
	unsigned last = LINK_ZEROS;

	for (unsigned kind = 0; kind < 3; kind++)
		if (m->ch->takes[kind])
			last = kind;
	if (m->ch->takes_word == LINK_NO_WORD) {
		receive(m, last);
		return;
	}
	for (unsigned kind = 0; kind < last; kind++)
		if (m->ch->takes[kind])
			branch_if(e, m->ch->takes_word, kind, &at[kind]);
	tc_branch(e, ISA_JMP, 0, &at[last]);
	for (unsigned kind = 0; kind <= last; kind++) {
		if (!m->ch->takes[kind])
			continue;
		tc_bind(e, &at[kind]);
		tc_note_op(e, m->op);
		receive(m, kind);
		if (kind != last)
			tc_branch(e, ISA_JMP, 0, end);
	}
	tc_bind(e, end);
}

static void permute(struct meeting *m)
{
	m->e->next_reg = 1;
	tc_note_op(m->e, m->op);
	if (m->ch->meets) {
		note_meeting(m, m->in->type);
		begin_turn(m);
	}
	send(m);
	if (m->ch->meets)
		next_turn(m);
	receive_any(m);
	if (m->ch->meets)
		end_turn(m);
}

/* As an exchange that is direct. */
static void permute_directly(struct meeting *m)
{
	const struct channel *ch = m->ch;
	const struct tc_type *t = m->in->type;
	struct home to;

	m->to = *tc_place_for_peers(m->e, tc_out(m->op, 0));
	note_meeting(m, t);
	begin_turn(m);
	next_turn(m);
	raise(m, ch->slot[LINK_SOURCE], LINK_CREDIT);
	wait_for(m, LINK_CREDIT, 1);
	to = tc_at_peer(m->e, ch->slot[LINK_TARGET], &m->to);
	tc_rput(m->e, t->rank, t->dim, elem_bytes(t->elem), tc_home(m->e, m->in), &to);
	raise(m, ch->slot[LINK_TARGET], LINK_ARRIVED);
	wait_for(m, LINK_ARRIVED, 1);
	end_turn(m);
	tc_note_held(m->e, &m->to, t);
}

static void emit_permute(struct meeting *m)
{
	const struct tc_op *op = m->op;
	bool reads_first = op->n_operands == 1 && !m->ch->takes[LINK_SELF];

	for (unsigned i = 0; i < op->n_operands; i++)
		place_result(m->e, tc_out(op, i), reads_first);
	for (unsigned i = 0; i < op->n_operands; i++) {
		m->in = tc_in(op, i);
		m->to = *tc_home(m->e, tc_out(op, i));
		if (m->in->type->count)
			permute(m);
	}
}

/* ---- one op ---- */

void tc_emit_link(struct emit *e, const struct tc_op *op)
{
	struct meeting m = { .e = e, .op = op, .ch = tc_channel(e, op), .in = tc_in(op, 0) };
	struct home h;

	m.is_direct = tc_is_direct(e, op);
	m.way = m.is_direct ? LINK_DIRECTLY : LINK_BY_MAILBOX;
	if (op->op == TC_COLLECTIVE_PERMUTE && m.is_direct) {
		permute_directly(&m);
	} else if (op->op == TC_COLLECTIVE_PERMUTE) {
		emit_permute(&m);
	} else if (!op->results[0].type->count) {
		tc_place(e, tc_out(op, 0));
	} else if (m.ch->size == 1) {
		h = *tc_home(e, m.in);
		if (tc_attr_int(op, "is_same", 0))
			h = shifted(&h, 1);
		tc_view(e, tc_out(op, 0), &h);
	} else if (tc_is_lent(e, op)) {
		emit_lent(&m);
	} else {
		emit_exchange(&m);
	}
}

void tc_emit_member_id(struct emit *e, const struct tc_op *op)
{
	const struct home *to = tc_place(e, tc_out(op, 0));
	uint8_t r = tc_load_word(e, op->op == TC_REPLICA_ID ? LINK_WORD_REPLICA :
				 LINK_WORD_PARTITION);

	tc_put_scalar(e, (struct isa_scalar){ .rb = r, .elem = op->results[0].type->elem,
		.binding = to->buf->binding, .imm = to->offset }, ISA_ST);
}
