/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends to the host and receives from it become calls of the host: neighbours one call, since
 * the device stops once for each. So do custom calls of functions that the host knows by name
 * (function.c).
 *
 * Requires: main is the only function. Ensures: no send or recv is left. A call takes what
 * was sent, in this order, and gives what was received and a token; the order of the calls is
 * that of the program, tokens say nothing more.
 * Fails: UNIMPLEMENTED for transfers between devices.
 */
#include "runtime/compiler/lower/decompose.h"
#include "runtime/compiler/passes.h"

/* Sends and receives of the same members that follow each other, first to last. */
struct group {
	struct tc_op *first, *last;
	int64_t partition;	/* whose they are; -1: everyone's */
	unsigned n_sent, n_received;	/* arrays */
};

static bool is_transfer(const struct tc_op *op)
{
	return op->op == TC_SEND || op->op == TC_RECV;
}

static void *get(struct tc_ctx *c, size_t n, size_t size)
{
	void *p = arena_array(&c->arena, n + 1, size);

	if (!p)
		tc_fail(c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	return p;
}

static int64_t partition_of(const struct tc_op *op)
{
	return tc_attr_int(op, "partition", -1);
}

/* Whether op takes an array that the group receives: the device has to be told first. */
static bool needs_received(const struct group *g, const struct tc_op *op)
{
	for (unsigned i = 0; i < op->n_operands; i++)
		for (const struct tc_op *o = g->first; o; o = o == g->last ? NULL : o->next)
			if (tc_in(op, i)->def == o && tc_in(op, i)->type->elem != ELEM_TOKEN)
				return true;
	return false;
}

/* What may stand within a group: it gives no array but a constant, which can be had before. */
static bool is_between(const struct tc_op *op)
{
	return op->op == TC_CONSTANT || op->op == TC_CREATE_TOKEN || op->op == TC_AFTER_ALL;
}

static void add(struct tc_ctx *c, struct group *g, struct tc_op *op)
{
	unsigned n = op->op == TC_SEND ? op->n_operands : op->n_results;

	if (!tc_attr_int(op, "is_host_transfer", 0))
		tc_fail(c, ERR_UNIMPLEMENTED, op, "it is between devices: programs speak with "
			"the host only (is_host_transfer)");
	if (n != 2)
		tc_fail(c, ERR_UNIMPLEMENTED, op, "it carries %u arrays, not one", n - 1);
	if (!g->first) {
		g->first = op;
		g->partition = partition_of(op);
	}
	g->last = op;
	g->n_sent += op->op == TC_SEND;
	g->n_received += op->op == TC_RECV;
}

/* The call stands where the group ends; users of its tokens take the call's. */
static void close_group(struct tc_ctx *c, struct group *g)
{
	struct tc_value **in = get(c, g->n_sent, sizeof(*in));
	const struct tc_type **types = get(c, g->n_received, sizeof(*types));
	int64_t *send = get(c, g->n_sent, sizeof(*send));
	int64_t *recv = get(c, g->n_received, sizeof(*recv));
	unsigned n_in = 0, n_out = 0;
	struct tc_op *call, *next, *end = g->last->next;

	for (struct tc_op *op = g->first; op != end; op = op->next) {
		if (op->op == TC_SEND) {
			send[n_in] = tc_attr_int(op, "channel_id", 0);
			in[n_in++] = tc_in(op, 0);
		} else if (op->op == TC_RECV) {
			recv[n_out] = tc_attr_int(op, "channel_id", 0);
			types[n_out++] = op->results[0].type;
		}
	}
	types[n_out] = tc_tensor(c, ELEM_TOKEN, 0, NULL);
	call = tc_new(c, TC_HOST_CALL, n_in, in, n_out + 1, types, 0);
	call->where = g->first->where;
	tc_set_ints(c, call, "send_channels", send, n_in);
	tc_set_ints(c, call, "recv_channels", recv, n_out);
	if (g->partition >= 0)
		tc_set_int(c, call, "partition", TC_ATTR_INT, g->partition);
	tc_insert_before(end, call);
	n_out = 0;
	for (struct tc_op *op = g->first; op != call; op = op->next) {
		if (op->op == TC_RECV)
			tc_replace_uses(tc_out(op, 0), tc_out(call, n_out++));
		if (is_transfer(op) || op->op == TC_AFTER_ALL)
			tc_replace_uses(tc_out(op, op->n_results - 1),
					tc_out(call, call->n_results - 1));
	}
	/* Constants of the group stay before it. */
	for (struct tc_op *op = g->first; op != call; op = next) {
		next = op->next;
		if (is_transfer(op) || op->op == TC_AFTER_ALL)
			tc_erase(op);
	}
	*g = (struct group){ 0 };
}

static void group_block(struct tc_ctx *c, struct tc_block *b)
{
	struct group g = { 0 };

	for (struct tc_op *op = b->first; op; op = op->next) {
		bool is_more = is_transfer(op);

		if (g.first && ((!is_more && !is_between(op)) || needs_received(&g, op) ||
				(is_more && partition_of(op) != g.partition)))
			close_group(c, &g);
		for (unsigned r = 0; r < op->n_regions; r++)
			if (op->regions[r].block)
				group_block(c, op->regions[r].block);
		if (is_more)
			add(c, &g, op);
	}
}

void tc_pass_host(struct tc_ctx *c)
{
	tc_take_functions(c);
	group_block(c, tc_main(c));
}
