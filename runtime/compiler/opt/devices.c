/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program says of the devices that it runs on: collectives, its own number, shardings.
 *
 * Requires: a verified module as it was read. Ensures, for a program of one device: none of
 * these is left, and no marks; work of each device by itself is part of the program. A
 * collective among one device gives what it takes. Among several, collectives are settled
 * (ir/ops.def); what is begun here and waited for there is done where it begins.
 * Fails: INVALID_ARGUMENT for groups with devices that the program does not have.
 */
#include <string.h>

#include "runtime/compiler/opt/build.h"
#include "runtime/compiler/opt/devices.h"
#include "runtime/compiler/passes.h"

static bool is_one_of(const char *name, const char *const *list, unsigned n)
{
	for (unsigned i = 0; name && i < n; i++)
		if (!strcmp(name, list[i]))
			return true;
	return false;
}

/* Calls that tell a partitioner where a value lies, marks of torch_xla's exporter, and in which
 * order a value within the program lies in memory, which is ours to say. */
static bool is_remark(const struct tc_op *op, bool is_partitioned)
{
	static const char *const shardings[] = { "Sharding", "SPMDFullToShardShape",
						 "SPMDShardToFullShape" };
	static const char *const marks[] = { "xla_mark_tensor", "LayoutConstraint" };
	const char *target = tc_attr_str(op, "call_target_name");

	return op->op == TC_CUSTOM_CALL && op->n_operands == 1 && op->n_results == 1 &&
	       tc_in(op, 0)->type == tc_out(op, 0)->type &&
	       ((!is_partitioned && is_one_of(target, shardings, 3)) ||
		is_one_of(target, marks, 2));
}

static void take_operands(struct tc_op *op)
{
	for (unsigned i = 0; i < op->n_results; i++)
		tc_replace_uses(tc_out(op, i), tc_in(op, i));
	tc_erase(op);
}

/* Whether the only member is in none of the groups or pairs: nobody sends to it. */
static bool is_left_out(const struct tc_op *op)
{
	unsigned n;

	tc_attr_ints(op, op->op == TC_COLLECTIVE_PERMUTE ? "source_target_pairs" :
		     "replica_groups", &n);
	return !n;
}

/* Among one. */
static void drop_collective(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);

	for (unsigned i = 0; i < op->n_results; i++)
		if (tc_in(op, i)->type != tc_out(op, i)->type)
			tc_fail(c, ERR_INVALID_ARGUMENT, op, "among one device, result %u has "
				"another type than operand %u", i, i);
	if (!is_left_out(op)) {
		take_operands(op);
		return;
	}
	for (unsigned i = 0; i < op->n_results; i++)
		tc_replace_uses(tc_out(op, i), tc_build_number(&b, tc_out(op, i)->type, 0));
	tc_erase(op);
}

static void settle_collective(struct tc_ctx *c, struct tc_op *op, struct tc_members of)
{
	tc_settle_members(c, op, of);
	if (of.replicas * of.partitions == 1)
		drop_collective(c, op);
}

/* The block's ops before op, but for what ends it. */
static void splice(struct tc_op *op, struct tc_block *b)
{
	struct tc_op *next;

	for (unsigned i = 0; i < op->n_operands; i++)
		tc_replace_uses(b->args[i], tc_in(op, i));
	for (struct tc_op *o = b->first; o != b->last; o = next) {
		next = o->next;
		tc_unlink(o);
		tc_insert_before(op, o);
	}
}

/* What is begun is done at once; what waits for it takes its results. */
static void settle_start(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_block *b = op->regions[0].block;
	struct tc_build to = tc_build_at(c, op);
	unsigned n = b->last->n_operands;
	struct tc_value **parts = arena_array(&c->arena, n + 1u, sizeof(*parts));

	if (!parts)
		tc_fail(c, ERR_RESOURCE_EXHAUSTED, op, "out of memory");
	splice(op, b);
	for (unsigned i = 0; i < n; i++)
		parts[i] = tc_in(b->last, i);
	tc_replace(op, tc_build(&to, TC_TUPLE, tc_out(op, 0)->type, n, parts));
}

static void settle_done(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	struct tc_value *future = tc_in(op, 0), *v;
	struct tc_op *tuple = future->def && future->def->op == TC_TUPLE ? future->def : NULL;

	for (unsigned i = 0; i < op->n_results; i++) {
		if (tuple && i < tuple->n_operands &&
		    tc_in(tuple, i)->type == tc_out(op, i)->type) {
			v = tc_in(tuple, i);
		} else {
			v = tc_build(&b, TC_GET_TUPLE_ELEMENT, tc_out(op, i)->type, 1, &future);
			tc_set_int(c, v->def, "index", TC_ATTR_INT, i);
		}
		tc_replace_uses(tc_out(op, i), v);
	}
	tc_erase(op);
	if (tuple && tc_is_unused(future))
		tc_erase(tuple);
}

/* Work of each device by itself: of the only one, that is all there is to do. */
static void open_manual(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_block *b = op->regions[0].block;

	for (unsigned i = 0; i < op->n_operands; i++)
		if (b->args[i]->type != tc_in(op, i)->type)
			tc_fail(c, ERR_INVALID_ARGUMENT, op, "argument %u is a part of what is "
				"given for it, in a program for one device: say in the compile "
				"options how many there are", i);
	for (unsigned i = 0; i < op->n_results; i++)
		if (tc_in(b->last, i)->type != tc_out(op, i)->type)
			tc_fail(c, ERR_INVALID_ARGUMENT, op, "result %u is put together of what "
				"several devices give, in a program for one", i);
	splice(op, b);
	for (unsigned i = 0; i < op->n_results; i++)
		tc_replace_uses(tc_out(op, i), tc_in(b->last, i));
	tc_erase(op);
}

/* Whether it only says where values lie; gone, then. */
static bool settle_sharding(struct tc_ctx *c, struct tc_op *op)
{
	switch (op->op) {
	case TC_SHARDING_CONSTRAINT: take_operands(op); return true;
	case TC_SHARDING_GROUP: tc_erase(op); return true;
	case TC_MANUAL_COMPUTATION: open_manual(c, op); return true;
	default: return false;
	}
}

static struct tc_members members_of(const struct tc_ctx *c)
{
	const struct tc_options *o = c->options;

	return (struct tc_members){ o->replicas ? o->replicas : 1,
				    o->partitions ? o->partitions : 1 };
}

/* Whether there is a collective still. */
static bool settle(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_members of = members_of(c);
	bool is_id = op->op == TC_PARTITION_ID || op->op == TC_REPLICA_ID;
	struct tc_build b = tc_build_at(c, op);

	if (of.partitions == 1 && settle_sharding(c, op))
		return false;
	if (is_remark(op, of.partitions > 1)) {
		take_operands(op);
	} else if (is_id && (op->op == TC_REPLICA_ID ? of.replicas : of.partitions) == 1) {
		tc_replace(op, tc_build_number(&b, tc_out(op, 0)->type, 0));
	} else if (op->op == TC_ASYNC_START) {
		settle_start(c, op);
	} else if (op->op == TC_ASYNC_DONE) {
		settle_done(c, op);
	} else if (tc_is_ragged(op)) {
		return tc_settle_ragged(c, op, of);
	} else if (tc_is_collective(op)) {
		settle_collective(c, op, of);
		return of.replicas * of.partitions > 1;
	}
	return false;
}

static bool settle_block(struct tc_ctx *c, struct tc_block *b)
{
	bool meets = false;
	struct tc_op *next;

	for (struct tc_op *op = b->first; op; op = next) {
		next = op->next;
		for (unsigned r = 0; r < op->n_regions; r++)
			if (op->regions[r].block)
				meets |= settle_block(c, op->regions[r].block);
		meets |= settle(c, op);
	}
	return meets;
}

void tc_settle_devices(struct tc_ctx *c)
{
	/* What depends on how many meet is judged now. */
	if (settle_block(c, c->module->regions[0].block))
		tc_ir_verify(c, NULL, true);
}
