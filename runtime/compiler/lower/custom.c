/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Custom calls by which JAX names algorithms on platforms other than its own, and our entry point
 * some more (qr.c, lu.c, eigh.c, svd.c), and nothing for dce_sink and for where a value is to be
 * placed: within a program all are in the device's memory, and results lie where main says. Any
 * other target stays and is refused by name when code is emitted.
 */
#include <string.h>

#include "runtime/compiler/lower/decompose.h"
#include "runtime/compiler/lower/linalg.h"

static void skip(struct tc_op *op)
{
	tc_replace(op, tc_in(op, 0));
}

/* What is made of a target that is ours; NULL: it stays for another. */
static const struct { const char *target; void (*make)(struct tc_ctx *c, struct tc_op *op); }
ours[] = {
	{ "Qr", tc_decompose_qr },
	{ "ProductOfElementaryHouseholderReflectors", tc_decompose_householder },
	{ "LuDecomposition", tc_decompose_lu },
	{ "Eigh", tc_decompose_eigh },
	{ "tessera.svd", tc_decompose_svd },
	{ "tessera.tridiagonal", tc_decompose_tridiagonal },
};

void tc_decompose_custom_call(struct tc_ctx *c, struct tc_op *op)
{
	const char *target = tc_attr_str(op, "call_target_name");

	for (unsigned i = 0; i < sizeof(ours) / sizeof(*ours); i++)
		if (!strcmp(target, ours[i].target)) {
			ours[i].make(c, op);
			return;
		}
	if (!strcmp(target, "annotate_device_placement") && op->n_operands == 1 &&
	    op->n_results == 1 && tc_in(op, 0)->type == tc_out(op, 0)->type)
		skip(op);
	else if (!strcmp(target, "dce_sink") && !op->n_results)
		tc_erase(op);	/* it kept its operand from other compilers */
}

bool tc_is_own_call(const struct tc_op *op)
{
	const char *target = tc_attr_str(op, "call_target_name");

	for (unsigned i = 0; i < sizeof(ours) / sizeof(*ours); i++)
		if (!strcmp(target, ours[i].target))
			return true;
	return !strcmp(target, "annotate_device_placement") || !strcmp(target, "dce_sink");
}
