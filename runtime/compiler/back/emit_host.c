/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of the host. The program stops, and whoever launched it moves the arrays and launches
 * it again (hal/hw/image.h): no register holds anything between two ops, so all that has to
 * be kept is where it stopped, a number in the first temporary.
 *
 *	ld r1, [state]; alui eq r2, r1, 1; bnz r2, after 1; ...		the beginning
 *	li r1, n; st [state], r1; halt; after n:			call n
 *	st [state], r0; halt						the end
 */
#include <inttypes.h>
#include <string.h>

#include "runtime/compiler/back/emit.h"

struct counter { unsigned n; };

static void count(struct tc_op *op, void *arg)
{
	((struct counter *)arg)->n += op->op == TC_HOST_CALL;
}

void tc_start_host_calls(struct emit *e)
{
	struct counter counter = { 0 };

	tc_walk(tc_main(e->c)->region->parent, count, &counter);
	e->n_calls = counter.n;
	if (!e->n_calls)
		return;
	e->resume = arena_array(&e->c->arena, e->n_calls, sizeof(*e->resume));
	if (!e->resume)
		tc_fail(e->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	for (unsigned i = 0; i < e->n_calls; i++)
		e->resume[i].offset = -1;
	tc_first_temp(e, tc_tensor(e->c, ELEM_U64, 0, NULL));
	tc_put_scalar(e, (struct isa_scalar){ .rd = 1, .elem = ELEM_U64,
					      .binding = BIND_TEMP }, ISA_LD);
	for (unsigned i = 0; i < e->n_calls; i++) {
		tc_put_scalar(e, (struct isa_scalar){ .fn = ISA_ALU_EQ, .rd = 2, .ra = 1,
						      .imm = i + 1 }, ISA_ALUI);
		tc_branch(e, ISA_BNZ, 2, &e->resume[i]);
	}
}

void tc_end_host_calls(struct emit *e)
{
	if (e->n_calls)
		tc_put_scalar(e, (struct isa_scalar){ .elem = ELEM_U64,
						      .binding = BIND_TEMP }, ISA_ST);
}

static void add(struct emit *e, const struct tc_op *op, enum image_way way, int64_t channel,
		const struct home *h, const struct tc_type *t)
{
	int64_t partition = tc_attr_int(op, "partition", -1);
	struct image_transfer *x;

	if (partition >= UINT8_MAX)
		tc_fail(e->c, ERR_UNIMPLEMENTED, op, "partition %" PRId64 " calls the host alone: "
			"%d is the last that can", partition, UINT8_MAX - 1);

	if (e->n_transfers == e->room_transfers) {
		size_t room = e->room_transfers ? e->room_transfers * 2 : 16;

		x = arena_array(&e->c->arena, room, sizeof(*x));
		if (!x)
			tc_fail(e->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
		if (e->n_transfers)
			memcpy(x, e->transfers, e->n_transfers * sizeof(*x));
		e->transfers = x;
		e->room_transfers = room;
	}
	x = &e->transfers[e->n_transfers++];
	*x = (struct image_transfer){ .call = e->next_call, .way = (uint8_t)way,
				      .only = (uint8_t)(partition + 1),
				      .channel = channel, .bytes = (uint64_t)t->bytes };
	if (!t->bytes)
		return;
	x->binding = h->buf->binding;
	x->offset = (uint64_t)h->offset;
}

void tc_emit_host_call(struct emit *e, const struct tc_op *op)
{
	unsigned n_in, n_out;
	const int64_t *send = tc_attr_ints(op, "send_channels", &n_in);
	const int64_t *recv = tc_attr_ints(op, "recv_channels", &n_out);

	e->next_call++;
	for (unsigned i = 0; i < n_in; i++) {
		const struct tc_type *t = tc_in(op, i)->type;
		struct home h = { 0 };

		if (t->bytes)
			h = tc_dense(e, tc_in(op, i));
		add(e, op, IMAGE_TO_HOST, send[i], &h, t);
	}
	for (unsigned i = 0; i < n_out; i++)
		add(e, op, op->results[i].type->elem == ELEM_PRED ? IMAGE_FROM_HOST_TRUTH :
		    IMAGE_FROM_HOST, recv[i], tc_place(e, tc_out(op, i)), op->results[i].type);
	/* Each call has a transfer: that of a function without arrays moves nothing. */
	if (!n_in && !n_out)
		add(e, op, IMAGE_TO_HOST, 0, NULL, op->results[0].type);
	if (tc_attr(op, "target"))
		tc_emit_function(e, op);
	tc_put_scalar(e, (struct isa_scalar){ .rd = 1, .imm = e->next_call }, ISA_LI);
	tc_put_scalar(e, (struct isa_scalar){ .rb = 1, .elem = ELEM_U64,
					      .binding = BIND_TEMP }, ISA_ST);
	tc_put_scalar(e, (struct isa_scalar){ 0 }, ISA_HALT);
	for (unsigned i = 0; i < n_out; i++)
		tc_note_held(e, tc_home(e, tc_out(op, i)), op->results[i].type);
	tc_bind(e, &e->resume[e->next_call - 1]);
	/* A guess at what the host takes. */
	e->cost_ns += 20000;
}
