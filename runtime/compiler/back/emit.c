/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walking main in order, one rule an op; control flow; the wishes of results.
 *
 * Requires: what the passes ensure. Ensures: an image. A loop's carried values live in
 * one buffer each for the whole loop; the body's results are born there where that is
 * safe (plan.c), else copied there at the end of the body, all reads first.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/compiler/back/link.h"
#include "runtime/compiler/opt/fuse.h"
#include "runtime/compiler/passes.h"

static const struct looks for_ever = { FOREVER_POS, FOREVER_POS };

static void emit_block(struct emit *e, const struct tc_block *b);

static void drop_result(struct emit *e, const struct tc_op *op)
{
	/* Results that nobody looks at still need a place to be written to. */
	for (unsigned i = 0; i < op->n_results; i++)
		if (op->results[i].type->elem != ELEM_TOKEN)
			tc_place(e, tc_out(op, i));
}

/* Branches are resolved at the end, so labels live as long as the compile. */
static struct label *new_label(struct emit *e)
{
	struct label *l = arena_alloc(&e->c->arena, sizeof(*l));

	if (!l)
		tc_fail(e->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	l->offset = -1;
	return l;
}

/* ---- while ---- */

/* Where carried value j lives: in its initial value's memory if that ends here. What the
 * other operands read there is copied before the loop starts. */
static void start_carried(struct emit *e, const struct tc_op *op, unsigned j,
			  struct home *carried, const struct tc_type **types)
{
	const struct tc_value *in = tc_in(op, j), *v = tc_out(op, j);

	types[j] = v->type;
	if (tc_take_over(e, v, in, carried, types, j, &carried[j]))
		return;
	carried[j] = *tc_place(e, v);
	tc_copy_value(e, in->type, tc_home(e, in), &carried[j]);
}

static void set_argument(struct emit *e, struct tc_value *arg, const struct home *h,
			 uint32_t last)
{
	struct home *to = &e->homes[arg->id];
	struct looks own = tc_looks(e, arg);

	*to = *h;
	/* A buffer record of its own: its last look is within one turn of the loop. */
	to->buf = arena_copy(&e->c->arena, h->buf, sizeof(*h->buf));
	if (!to->buf)
		tc_fail(e->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	to->buf->is_temp = false;
	to->buf->last = own.last == FOREVER_POS ? last : own.last;
	to->buf->deepest = own.deepest == FOREVER_POS ? last : own.deepest;
}

/* Moves a body's results to their carried buffers. */
static void finish_turn(struct emit *e, const struct tc_block *body,
			const struct home *carried)
{
	const struct tc_op *end = body->last;
	struct move *moves = arena_array(&e->c->arena, end->n_operands + 1u, sizeof(*moves));

	if (!moves)
		tc_fail(e->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	for (unsigned j = 0; j < end->n_operands; j++) {
		const struct tc_value *v = tc_in(end, j);

		if (v->type->count && v->type->elem != ELEM_TOKEN)
			moves[j] = (struct move){ *tc_home(e, v), carried[j], v->type };
	}
	tc_note_op(e, end);
	tc_move_all(e, moves, end->n_operands);
	for (unsigned j = 0; j < end->n_operands; j++)
		tc_note_held(e, &carried[j], tc_in(end, j)->type);
}

/* What a turn leaves in a carried value is best made in its place; and so is what updates of a
 * part of it begin with, or what it is another shape of. */
static void wish_for_carried(struct emit *e, const struct tc_block *body, unsigned j,
			     const struct home *carried)
{
	const struct tc_value *v = tc_in(body->last, j);
	struct buffer *old = e->homes[body->args[j]->id].buf;

	while (v->def && v->def->block == body && v->def->op != TC_CONSTANT) {
		tc_wish(e, v, &(struct home){ .buf = old, .offset = carried->offset }, old);
		if (v->def->op != TC_DYNAMIC_UPDATE_SLICE && v->def->op != TC_RESHAPE)
			break;
		v = tc_in(v->def, 0);
	}
}

static void emit_while(struct emit *e, const struct tc_op *op)
{
	struct tc_block *cond = op->regions[0].block, *body = op->regions[1].block;
	struct label *top = new_label(e), *end = new_label(e);
	struct home *carried = arena_array(&e->c->arena, op->n_operands + 1,
					   sizeof(*carried));
	const struct tc_type **types = arena_array(&e->c->arena, op->n_operands + 1,
						   sizeof(*types));
	uint32_t last = e->spans[op->id].end;
	double before = e->cost_ns, flops, bytes, transcendentals, share;
	uint8_t r;

	if (!carried || !types)
		tc_fail(e->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	for (unsigned j = 0; j < op->n_operands; j++)
		if (tc_in(op, j)->type->elem != ELEM_TOKEN)
			start_carried(e, op, j, carried, types);
	for (unsigned j = 0; j < op->n_operands; j++)
		tc_note_held(e, &carried[j], tc_in(op, j)->type);
	for (unsigned j = 0; j < op->n_operands; j++) {
		if (!carried[j].buf)
			continue;
		set_argument(e, cond->args[j], &carried[j], last);
		set_argument(e, body->args[j], &carried[j], last);
	}
	for (unsigned j = 0; j < op->n_operands; j++)
		if (carried[j].buf)
			wish_for_carried(e, body, j, &carried[j]);
	tc_bind(e, top);
	emit_block(e, cond);
	e->op = op;
	e->now = last;
	e->next_reg = 1;
	tc_note_op(e, cond->last);
	r = tc_load_condition(e, tc_in(cond->last, 0));
	tc_branch(e, ISA_BZ, r, end);
	flops = e->flops;
	bytes = e->bytes;
	transcendentals = e->transcendentals;
	emit_block(e, body);
	e->op = op;
	e->now = last;
	finish_turn(e, body, carried);
	share = (double)tc_attr_int(op, "tc.turns_counted", 1) /
		(double)tc_attr_int(op, "tc.turns_at_once", 1);
	e->flops = flops + (e->flops - flops) * share;
	e->bytes = bytes + (e->bytes - bytes) * share;
	e->transcendentals = transcendentals + (e->transcendentals - transcendentals) * share;
	tc_branch(e, ISA_JMP, 0, top);
	tc_bind(e, end);
	/* How often it turns is not known; ten times is a guess for the estimate. */
	e->cost_ns = before + (e->cost_ns - before) * 10;
}

/* ---- case and if ---- */

static void emit_branch(struct emit *e, const struct tc_op *op, const struct tc_block *b)
{
	emit_block(e, b);
	e->op = op;
	e->now = e->spans[op->id].end;
	tc_note_op(e, b->last);
	for (unsigned i = 0; i < op->n_results; i++)
		if (op->results[i].type->count && op->results[i].type->elem != ELEM_TOKEN)
			tc_copy_value(e, op->results[i].type, tc_home(e, tc_in(b->last, i)),
				      &e->homes[op->results[i].id]);
	for (unsigned i = 0; i < op->n_results; i++)
		tc_note_held(e, &e->homes[op->results[i].id], op->results[i].type);
}

static void emit_case(struct emit *e, const struct tc_op *op)
{
	struct label *next, *end = new_label(e);
	uint8_t index, is;

	drop_result(e, op);
	index = tc_load_scalar(e, tc_in(op, 0));
	is = tc_reg(e);
	next = arena_array(&e->c->arena, op->n_regions, sizeof(*next));
	if (!next)
		tc_fail(e->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	for (unsigned i = 0; i < op->n_regions; i++)
		next[i].offset = -1;
	/* Choose first: the branches are free to use all registers. */
	for (unsigned i = 0; i + 1 < op->n_regions; i++) {
		int64_t wanted = op->op == TC_IF ? 1 : (int64_t)i;

		tc_put_scalar(e, (struct isa_scalar){ .fn = ISA_ALU_EQ, .rd = is, .ra = index,
						      .imm = wanted }, ISA_ALUI);
		tc_branch(e, ISA_BNZ, is, &next[i]);
	}
	tc_branch(e, ISA_JMP, 0, &next[op->n_regions - 1]);
	for (unsigned i = 0; i < op->n_regions; i++) {
		tc_bind(e, &next[i]);
		emit_branch(e, op, op->regions[i].block);
		if (i + 1 < op->n_regions)
			tc_branch(e, ISA_JMP, 0, end);
	}
	tc_bind(e, end);
}

/* ---- one op ---- */

static void emit_rng(struct emit *e, const struct tc_op *op)
{
	struct home state = tc_dense(e, tc_in(op, 0));
	const struct home *next = tc_place(e, tc_out(op, 0)), *out = tc_place(e, tc_out(op, 1));
	const struct tc_type *t = op->results[1].type;
	struct isa_rng *r;

	if (t->bytes % 4 || tc_in(op, 0)->type->bytes % 8)
		tc_refuse(e, "random bits of less than 32 a time");
	if (!t->count) {
		/* No words were drawn: the state stays. */
		tc_copy_value(e, tc_in(op, 0)->type, &state, next);
		return;
	}
	/* A slice of smaller words may begin between two of the state's. */
	if (state.offset % 8) {
		struct home to = tc_scratch(e, tc_in(op, 0)->type);

		tc_copy_value(e, tc_in(op, 0)->type, &state, &to);
		state = to;
	}
	r = tc_put(e, ISA_RNG, sizeof(*r));
	r->algorithm = tc_attr_int(op, "rng_algorithm", 0) == TC_RNG_THREE_FRY ?
		ISA_RNG_THREEFRY : ISA_RNG_PHILOX;
	r->state_words = (uint8_t)(tc_in(op, 0)->type->bytes / 8);
	r->n_words = (uint64_t)t->bytes / 4;
	r->state = tc_operand(&state, ELEM_U64);
	r->new_state = tc_operand(next, ELEM_U64);
	r->out = tc_operand(out, ELEM_U32);
	tc_count_arrays(e, op);
	e->cost_ns += (double)t->bytes;
}

/* Words from the device's state, which it leaves behind them. */
static void emit_draw(struct emit *e, const struct tc_op *op)
{
	const struct home *out = tc_place(e, tc_out(op, 0));
	const struct tc_type *t = op->results[0].type;
	struct isa_rng *r;

	if (!t->count)
		return;
	if (e->random_binding == ISA_MAX_BINDINGS)
		tc_refuse(e, "random numbers in a program of so many arguments and results");
	r = tc_put(e, ISA_RNG, sizeof(*r));
	r->algorithm = ISA_RNG_PHILOX;
	r->state_words = IMAGE_RANDOM_WORDS;
	r->n_words = (uint64_t)t->bytes / 4;
	r->state = (struct isa_operand){ .binding = e->random_binding, .elem = ELEM_U64 };
	r->new_state = r->state;
	r->out = tc_operand(out, ELEM_U32);
	tc_count_arrays(e, op);
	e->cost_ns += (double)t->bytes;
}

static void emit_barrier(struct emit *e, const struct tc_op *op)
{
	for (unsigned i = 0; i < op->n_results; i++)
		if (op->results[i].type->elem != ELEM_TOKEN)
			tc_view(e, tc_out(op, i), tc_home(e, tc_in(op, i)));
}

static void emit_fusion(struct emit *e, const struct tc_op *op)
{
	const struct tc_op *first = op->regions[0].block->first;

	if (tc_attr_int(op, "kind", 0) != TC_FUSION_MATMUL)
		tc_emit_fusion(e, op);
	else if (first->op == TC_DOT_GENERAL)
		tc_emit_dot(e, first, op);
	else
		tc_emit_convolution(e, first, op);
}

static void emit_op(struct emit *e, const struct tc_op *op)
{
	switch (op->op) {
	case TC_CONSTANT:
	case TC_RETURN:
	case TC_CREATE_TOKEN:
	case TC_AFTER_ALL:
		return;
	case TC_FUSION: emit_fusion(e, op); return;
	case TC_REDUCE: tc_emit_reduce(e, op); return;
	case TC_REDUCE_WINDOW:
		(tc_window_in_parts(op) ? tc_emit_window_parts : tc_emit_reduce_window)(e, op);
		return;
	case TC_DOT_GENERAL: tc_emit_dot(e, op, NULL); return;
	case TC_CONVOLUTION: tc_emit_convolution(e, op, NULL); return;
	case TC_WHILE: emit_while(e, op); return;
	case TC_CASE:
	case TC_IF: emit_case(e, op); return;
	case TC_RNG_BIT_GENERATOR: emit_rng(e, op); return;
	case TC_DRAW: emit_draw(e, op); return;
	case TC_FFT: tc_emit_fft(e, op); return;
	case TC_OPTIMIZATION_BARRIER: emit_barrier(e, op); return;
	case TC_HOST_CALL: tc_emit_host_call(e, op); return;
	case TC_EXCHANGE:
	case TC_COLLECTIVE_PERMUTE: tc_emit_link(e, op); return;
	case TC_PARTITION_ID:
	case TC_REPLICA_ID: tc_emit_member_id(e, op); return;
	default: break;
	}
	if (tc_emit_is_data(op->op))
		tc_emit_data(e, op);
	else if (tc_emit_is_index(op->op))
		tc_emit_index(e, op);
	else if (op->op == TC_CUSTOM_CALL)
		tc_fail(e->c, ERR_UNIMPLEMENTED, op, "the target \"%s\" does not run yet",
			tc_attr_str(op, "call_target_name"));
	else if (op->n_results && op->results[0].type->rank > ISA_MAX_RANK)
		tc_refuse_dims(e, "it has", op->results[0].type->rank);
	else
		tc_refuse(e, "it does not run yet");
}

/* Those that see to the evidence of what they leave: control flow (emit_while, emit_branch),
 * and what waits for others. */
static bool notes_results(const struct tc_op *op)
{
	switch (op->op) {
	case TC_WHILE: case TC_CASE: case TC_IF: case TC_HOST_CALL:
	case TC_EXCHANGE: case TC_COLLECTIVE_PERMUTE:
		return true;
	default:
		return false;
	}
}

static bool is_part(const struct emit *e, const struct home *h)
{
	for (unsigned i = 0; i < e->n_whole; i++)
		if (e->homes[e->whole[i]->id].content == h->content)
			return true;
	return false;
}

/* What is new of an op's results; of parts of a whole it is that, which they share. */
static void note_results(struct emit *e, const struct tc_op *op, uint32_t contents)
{
	for (unsigned i = 0; i < e->n_whole; i++)
		tc_note_held(e, &e->homes[e->whole[i]->id], e->whole[i]->type);
	for (unsigned i = 0; i < op->n_results; i++) {
		const struct home *h = &e->homes[op->results[i].id];

		if ((h->content > contents || e->was_there) && !is_part(e, h))
			tc_note_held(e, h, op->results[i].type);
	}
}

/* An op with its evidence: what it reads, and what it leaves. Ops without code move nothing. */
static void emit_noted(struct emit *e, const struct tc_op *op)
{
	size_t notes = e->n_notes, code = e->code.len;
	uint32_t contents = e->n_contents;

	e->n_whole = 0;
	e->was_there = false;
	tc_note_op(e, op);
	tc_place_parts(e, op);
	emit_op(e, op);
	e->op = op;
	for (unsigned i = 0; i < op->n_results; i++)
		if (!e->homes[op->results[i].id].buf && op->results[i].type->elem != ELEM_TOKEN)
			tc_place(e, tc_out(op, i));
	if (e->code.len == code && !e->was_there)
		e->n_notes = notes;
	else if (!notes_results(op))
		note_results(e, op, contents);
}

static void emit_block(struct emit *e, const struct tc_block *b)
{
	for (const struct tc_op *op = b->first; op; op = op->next) {
		if (op->op == TC_RETURN || op->op == TC_CONSTANT)
			continue;
		e->op = op;
		e->now = e->spans[op->id].end;
		e->next_reg = 1;
		if (op->op == TC_EMPTY)
			tc_note_empty(e, tc_place(e, tc_out(op, 0)), op->results[0].type);
		else
			emit_noted(e, op);
		tc_release(e, e->spans[op->id].end);
	}
}

/* ---- arguments and results ---- */

static struct buffer *new_buffer(struct emit *e, unsigned binding, int64_t bytes,
				 struct looks looks)
{
	struct buffer *b = arena_alloc(&e->c->arena, sizeof(*b));

	if (!b)
		tc_fail(e->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	b->binding = (uint16_t)binding;
	b->bytes = (uint64_t)bytes;
	b->last = looks.last;
	b->deepest = looks.deepest;
	return b;
}

static void place_arguments(struct emit *e, const struct tc_block *main)
{
	for (unsigned i = 0; i < main->n_args; i++) {
		struct home *h = &e->homes[main->args[i]->id];

		h->buf = new_buffer(e, BIND_FIRST_ARG + i, main->args[i]->type->bytes,
				    tc_looks(e, main->args[i]));
		h->content = ++e->n_contents;
		tc_layout_strides(e, main->region->parent->arg_info, false, i,
				  main->args[i]->type, h->stride);
	}
}

/* Which result lives in which donated argument. Returns how many do. */
static unsigned match_donations(struct emit *e, const struct tc_op *func)
{
	const struct tc_block *main = func->regions[0].block;
	const struct tc_op *end = main->last;
	unsigned n = 0;

	for (unsigned i = 0; i < e->n_results; i++)
		e->result_alias[i] = -1;
	for (unsigned k = 0; k < e->n_args; k++) {
		const struct tc_arg_info *info = func->arg_info ? &func->arg_info[k] : NULL;
		int64_t bytes = main->args[k]->type->bytes;

		e->arg_alias[k] = -1;
		if (!info || !bytes)
			continue;
		for (unsigned i = 0; i < e->n_results; i++) {
			bool wanted = info->alias == (int32_t)i ||
				      (info->is_donor && info->alias < 0);

			/* In the same memory. */
			wanted &= info->memory_kind ==
				  (func->res_info ? func->res_info[i].memory_kind : 0);
			if (!wanted || e->result_alias[i] >= 0 || e->arg_alias[k] >= 0 ||
			    tc_in(end, i)->type->bytes != bytes)
				continue;
			e->result_alias[i] = (int32_t)k;
			e->arg_alias[k] = (int32_t)i;
			n++;
		}
	}
	return n;
}

/* What a loop starts from is best made where its result is, if nothing else looks at it, and so is
 * what gets another part, or updates. */
static void wish_for_start(struct emit *e, const struct tc_value *v, const struct home *home,
			   const struct buffer *old)
{
	while (v->def && (v->def->op == TC_WHILE || v->def->op == TC_DYNAMIC_UPDATE_SLICE ||
			  v->def->op == TC_SCATTER)) {
		v = tc_in(v->def, (unsigned)(v - v->def->results));
		while (v->def && v->def->op == TC_RESHAPE && !v->uses->next)
			v = tc_in(v->def, 0);
		if (!v->def || v->def->op == TC_CONSTANT || v->uses->next)
			return;
		tc_wish(e, v, home, old);
	}
}

/* Transforms along one dim after the other are best all made where the last one's result is. */
static void wish_for_steps(struct emit *e, const struct tc_value *v, const struct home *home,
			   const struct buffer *old)
{
	while (!tc_is_born_turned(v, NULL) && v->def && v->def->op == TC_FFT &&
	       tc_in(v->def, 0)->type == v->type) {
		v = tc_in(v->def, 0);
		if (!v->def || v->def->op != TC_FFT || v->uses->next)
			return;
		tc_wish(e, v, home, old);
	}
}

/* Whether a fusion reads its operand k element for element as it writes a result: of what it
 * reduces to one it writes that last, when it has read the operand with each element. One in boxes
 * writes over nothing that it reads. */
static bool reads_alike(const struct tc_op *fusion, unsigned k, const struct tc_type *result)
{
	const struct tc_block *body = fusion->regions[0].block;
	const struct tc_value *arg = body->args[k];

	if (arg->type->bytes != result->bytes || !tc_same_dims(arg->type, result))
		return false;
	for (const struct tc_op *op = body->first; op != body->last; op = op->next)
		if ((op->op == TC_REDUCE && !tc_same_dims(tc_in(op, 0)->type, result)) ||
		    tc_is_put_together(tc_out(op, 0)))
			return false;
	for (const struct tc_use *u = arg->uses; u; u = u->next)
		if (!tc_has_trait(u->user, 'e'))
			return false;
	return arg->uses;
}

/* Whether what the op makes is written by instructions that begin there. Not of what is joined or
 * padded: its parts would be there from early on, where others may lie until then (room.c). */
static bool is_born_at_once(const struct tc_op *op)
{
	return op->op == TC_GATHER || op->op == TC_FUSION || op->op == TC_DOT_GENERAL ||
	       op->op == TC_CONVOLUTION || op->op == TC_WHILE;
}

/* The operand of a fusion that its result v may be written over, the last one made; or NULL. */
static const struct tc_value *input_to_write_over(const struct emit *e, const struct tc_value *v)
{
	const struct tc_value *last = NULL;

	for (unsigned k = 0; k < v->def->n_operands; k++) {
		const struct tc_value *in = tc_in(v->def, k);

		if (!in->def || !is_born_at_once(in->def) || in->uses->next ||
		    in->def->block != v->def->block || e->wishes[in->id] ||
		    !reads_alike(v->def, k, v->type))
			continue;
		if (!last || e->spans[in->def->id].start > e->spans[last->def->id].start)
			last = in;
	}
	return last;
}

/* What is made for a fusion alone that makes its result of it, element for element, is best put
 * where that goes, and written over: it takes no memory of its own, and a cache has that. */
static void wish_for_input(struct emit *e, const struct tc_value *v, const struct home *home,
			   const struct buffer *old)
{
	while (v && v->def && v->def->op == TC_FUSION &&
	       tc_attr_int(v->def, "kind", 0) == TC_FUSION_LOOP) {
		v = input_to_write_over(e, v);
		if (!v)
			return;
		tc_wish(e, v, home, old);
		wish_for_start(e, v, home, old);
	}
}

static void wish_for_results(struct emit *e, const struct tc_block *main)
{
	const struct tc_arg_info *info = main->region->parent->res_info;
	const struct tc_op *end = main->last;
	unsigned next = BIND_FIRST_ARG + e->n_args;

	for (unsigned i = 0; i < e->n_results; i++) {
		const struct tc_value *v = tc_in(end, i), *first;
		int32_t arg = e->result_alias[i];
		const struct buffer *old = arg >= 0 ? e->homes[main->args[arg]->id].buf : NULL;
		struct home h = { 0 };
		bool is_first = true;
		struct room *room;

		e->result_binding[i] = (uint16_t)(arg >= 0 ? BIND_FIRST_ARG + arg :
						  (int32_t)next++);
		room = tc_lend_result(e, i, v->type);
		for (unsigned k = 0; k < i; k++)
			is_first &= tc_in(end, k) != v;
		/* A wish is for dense places; results in another order are copied. */
		if (!is_first || !v->def || v->def->op == TC_CONSTANT ||
		    tc_layout_strides(e, info, true, i, v->type, h.stride))
			continue;
		h.buf = new_buffer(e, e->result_binding[i], v->type->bytes, for_ever);
		h.buf->lends = room;
		tc_wish(e, v, &h, old);
		/* Another shape or type is a view of what it is made of, and so is what others
		 * send, or a transform leaves, in another order. */
		first = v;
		while (v->def && (v->def->op == TC_RESHAPE || tc_is_even_bitcast(v->def)))
			v = tc_in(v->def, 0);
		wish_for_start(e, v, &h, old);
		wish_for_steps(e, v, &h, old);
		/* What is read again is not put where it has to come from the host. */
		if (!info || !info[i].memory_kind)
			wish_for_input(e, v, &h, old);
		if (v->def && v->def->op == TC_TRANSPOSE &&
		    (tc_is_turned(e, tc_in(v->def, 0), NULL) ||
		     tc_is_born_turned(tc_in(v->def, 0), NULL)))
			v = tc_in(v->def, 0);
		if (v != first && v->def && v->def->op != TC_CONSTANT)
			tc_wish(e, v, &h, old);
	}
	tc_number_links(e, &next);
	e->random_binding = (uint16_t)next;
}

/* Copies results that were not born in their binding. */
static void deliver_results(struct emit *e, const struct tc_block *main)
{
	const struct tc_op *end = main->last;
	struct move *moves = arena_array(&e->c->arena, e->n_results + 1u, sizeof(*moves));

	if (!moves)
		tc_fail(e->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	e->op = end;
	e->now = FOREVER_POS;
	for (unsigned i = 0; i < e->n_results; i++) {
		const struct tc_value *v = tc_in(end, i);
		struct home to = { 0 };

		if (!v->type->count || v->type->elem == ELEM_TOKEN)
			continue;
		to.buf = new_buffer(e, e->result_binding[i], v->type->bytes, for_ever);
		to.content = ++e->n_contents;
		tc_layout_strides(e, main->region->parent->res_info, true, i, v->type, to.stride);
		moves[i] = (struct move){ *tc_home(e, v), to, v->type };
	}
	tc_note_op(e, end);
	tc_move_all(e, moves, e->n_results);
	for (unsigned i = 0; i < e->n_results; i++)
		tc_note_held(e, &moves[i].to, tc_in(end, i)->type);
}

static void resolve_branches(struct emit *e)
{
	for (struct fixup *f = e->fixups; f; f = f->next) {
		struct isa_scalar *s = (void *)(e->code.text + f->at);

		s->imm = f->label->offset - (int64_t)f->at;
	}
}

/* Arguments and results, of which one in an argument's memory takes no binding. */
enum { MOST_ARRAYS = ISA_MAX_BINDINGS - 2 };

static void refuse_arrays(struct emit *e, const struct tc_block *main)
{
	tc_fail(e->c, ERR_UNIMPLEMENTED, NULL, "%u arguments and %u results; at most %d together, "
		"but for results that take the memory of donated arguments", main->n_args,
		main->last->n_operands, MOST_ARRAYS);
}

static void free_texts(struct tc_ctx *c)
{
	struct emit *e = c->held;

	str_free(&e->code);
	str_free(&e->rodata);
	str_free(&e->strings);
	str_free(&e->functions);
}

void tc_emit(struct tc_ctx *c, void **image, size_t *bytes)
{
	struct tc_block *main = tc_main(c);
	struct emit *e = arena_alloc(&c->arena, sizeof(*e));

	if (!e)
		tc_fail(c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	c->held = e;
	c->free_held = free_texts;
	e->c = c;
	e->last_put = SIZE_MAX;
	str_add(&e->strings, "", 1);
	if (main->n_args > MOST_ARRAYS || main->last->n_operands > MOST_ARRAYS)
		refuse_arrays(e, main);
	e->n_args = (uint16_t)main->n_args;
	e->n_results = (uint16_t)main->last->n_operands;
	e->result_binding = arena_array(&c->arena, e->n_results + 1u, 2);
	e->result_alias = arena_array(&c->arena, e->n_results + 1u, 4);
	e->arg_alias = arena_array(&c->arena, e->n_args + 1u, 4);
	if (!e->result_binding || !e->result_alias || !e->arg_alias)
		tc_fail(c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	tc_plan_positions(e);
	tc_plan_rooms(e);
	tc_plan_links(e);
	tc_start_host_calls(e);
	place_arguments(e, main);
	if (e->n_args + e->n_results - match_donations(e, main->region->parent) > MOST_ARRAYS)
		refuse_arrays(e, main);
	wish_for_results(e, main);
	emit_block(e, main);
	deliver_results(e, main);
	tc_end_host_calls(e);
	tc_put_scalar(e, (struct isa_scalar){ 0 }, ISA_HALT);
	resolve_branches(e);
	tc_emit_image(e, image, bytes);
	tc_free_held(c);
}
