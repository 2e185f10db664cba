/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program says of the devices that it runs on: collectives, its own number, shardings.
 *
 * Requires: a verified module as it was read. Ensures, for a program of one device: none of
 * these is left, and no marks; work of each device by itself is part of the program. A
 * collective among one device gives what it takes.
 * Fails: INVALID_ARGUMENT for groups with devices that the program does not have. What is
 * left for several devices is refused before it would be compiled.
 */
#include <inttypes.h>
#include <string.h>

#include "runtime/compiler/opt/build.h"
#include "runtime/compiler/passes.h"

static bool is_one_of(const char *name, const char *const *list, unsigned n)
{
	for (unsigned i = 0; name && i < n; i++)
		if (!strcmp(name, list[i]))
			return true;
	return false;
}

static bool is_collective(const struct tc_op *op)
{
	static const char *const bases[] = {
		"all_gather", "all_reduce", "all_to_all", "collective_broadcast",
		"collective_permute", "cross-replica-sum", "reduce_scatter",
	};
	const char *name = op->op == TC_OPAQUE ? tc_attr_str(op, "name") : NULL;

	if (tc_is_collective(op))
		return true;
	/* StableHLO's names end in a version. */
	for (unsigned i = 0; name && i < sizeof(bases) / sizeof(*bases); i++) {
		size_t n = strlen(bases[i]);

		if (!strncmp(name, bases[i], n) && (!name[n] || !strncmp(name + n, "_v", 2)))
			return true;
	}
	return false;
}

/* Calls that tell a partitioner where a value lies, and marks of torch_xla's exporter. */
static bool is_remark(const struct tc_op *op, bool is_partitioned)
{
	static const char *const shardings[] = { "Sharding", "SPMDFullToShardShape",
						 "SPMDShardToFullShape" };
	const char *target = tc_attr_str(op, "call_target_name");

	return op->op == TC_CUSTOM_CALL && op->n_operands == 1 && op->n_results == 1 &&
	       tc_in(op, 0)->type == tc_out(op, 0)->type &&
	       ((!is_partitioned && is_one_of(target, shardings, 3)) ||
		is_one_of(target, (const char *const[]){ "xla_mark_tensor" }, 1));
}

static void take_operands(struct tc_op *op)
{
	for (unsigned i = 0; i < op->n_results; i++)
		tc_replace_uses(tc_out(op, i), tc_in(op, i));
	tc_erase(op);
}

/* -1 fills groups of different sizes up. */
static void check_ids(struct tc_ctx *c, const struct tc_op *op, const char *name)
{
	unsigned n;
	const int64_t *list = tc_attr_ints(op, name, &n);

	for (unsigned i = 0; i < n; i++)
		if (list[i] < -1 || list[i] > 0)
			tc_fail(c, ERR_INVALID_ARGUMENT, op, "%s names device %" PRId64 " of a "
				"program for one: say in the compile options how many there are",
				name, list[i]);
}

static void settle_collective(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	unsigned n;

	check_ids(c, op, "replica_groups");
	check_ids(c, op, "source_target_pairs");
	if (op->n_operands != op->n_results)
		tc_fail(c, ERR_INVALID_ARGUMENT, op, "%u operands and %u results",
			op->n_operands, op->n_results);
	for (unsigned i = 0; i < op->n_results; i++)
		if (tc_in(op, i)->type != tc_out(op, i)->type)
			tc_fail(c, ERR_INVALID_ARGUMENT, op, "among one device, result %u has "
				"another type than operand %u", i, i);
	tc_attr_ints(op, "source_target_pairs", &n);
	if (op->op != TC_COLLECTIVE_PERMUTE &&
	    (op->op != TC_OPAQUE || strncmp(tc_attr_str(op, "name"), "collective_permute", 18))) {
		take_operands(op);
		return;
	}
	if (n) {
		take_operands(op);
		return;
	}
	/* Nobody sends to it. */
	for (unsigned i = 0; i < op->n_results; i++)
		tc_replace_uses(tc_out(op, i), tc_build_number(&b, tc_out(op, i)->type, 0));
	tc_erase(op);
}

/* Work of each device by itself: of the only one, that is all there is to do. */
static void open_manual(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_block *b = op->regions[0].block;
	struct tc_op *next;

	for (unsigned i = 0; i < op->n_operands; i++)
		if (b->args[i]->type != tc_in(op, i)->type)
			tc_fail(c, ERR_INVALID_ARGUMENT, op, "argument %u is a part of what is "
				"given for it, in a program for one device: say in the compile "
				"options how many there are", i);
	for (unsigned i = 0; i < op->n_results; i++)
		if (tc_in(b->last, i)->type != tc_out(op, i)->type)
			tc_fail(c, ERR_INVALID_ARGUMENT, op, "result %u is put together of what "
				"several devices give, in a program for one", i);
	for (unsigned i = 0; i < op->n_operands; i++)
		tc_replace_uses(b->args[i], tc_in(op, i));
	for (struct tc_op *o = b->first; o != b->last; o = next) {
		next = o->next;
		tc_unlink(o);
		tc_insert_before(op, o);
	}
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

static void settle(struct tc_ctx *c, struct tc_op *op)
{
	unsigned replicas = c->options->replicas ? c->options->replicas : 1;
	unsigned partitions = c->options->partitions ? c->options->partitions : 1;
	bool is_id = op->op == TC_PARTITION_ID || op->op == TC_REPLICA_ID;
	struct tc_build b = tc_build_at(c, op);

	if (partitions == 1 && settle_sharding(c, op))
		return;
	if (is_remark(op, partitions > 1)) {
		take_operands(op);
	} else if (is_id && (op->op == TC_REPLICA_ID ? replicas : partitions) == 1) {
		tc_replace_uses(tc_out(op, 0), tc_build_number(&b, tc_out(op, 0)->type, 0));
		tc_erase(op);
	} else if (is_collective(op) && replicas == 1 && partitions == 1) {
		settle_collective(c, op);
	}
}

static void settle_block(struct tc_ctx *c, struct tc_block *b)
{
	struct tc_op *next;

	for (struct tc_op *op = b->first; op; op = next) {
		next = op->next;
		for (unsigned r = 0; r < op->n_regions; r++)
			if (op->regions[r].block)
				settle_block(c, op->regions[r].block);
		settle(c, op);
	}
}

static void refuse(struct tc_op *op, void *arg)
{
	struct tc_ctx *c = arg;

	if (op->op == TC_PARTITION_ID || op->op == TC_REPLICA_ID || is_collective(op) ||
	    op->op == TC_SHARDING_CONSTRAINT || op->op == TC_SHARDING_GROUP ||
	    op->op == TC_MANUAL_COMPUTATION)
		tc_fail(c, ERR_UNIMPLEMENTED, op, "a program for %u replicas and %u partitions "
			"runs only without communication yet", c->options->replicas,
			c->options->partitions);
}

void tc_refuse_devices(struct tc_ctx *c)
{
	tc_walk(c->module, refuse, c);
}

void tc_settle_devices(struct tc_ctx *c)
{
	settle_block(c, c->module->regions[0].block);
}
