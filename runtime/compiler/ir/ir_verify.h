/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TC_IR_VERIFY_H
#define TC_IR_VERIFY_H
/* What ir_shape.c and, above it, ir_collective.c, which know each op, offer ir_verify.c, which
 * walks. */
#include "runtime/compiler/ir/ir.h"

struct check {
	struct tc_ctx *c;
	const struct tc_op *op;
	const char *pass;	/* that has run last; NULL: the program as it came */
	bool is_deep;		/* attributes and shapes too */
	uint8_t *defined;	/* by value id */
	const struct tc_block *main;	/* tc_main, which looks at all functions */
};

/* What the user wrote is wrong, or what a pass of ours made of it: tc_fail. */
_Noreturn void tc_check_failed(const struct check *k, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
#define BAD(k, ...) tc_check_failed(k, __VA_ARGS__)

static inline const struct tc_type *in_type(const struct check *k, unsigned i)
{
	return tc_in(k->op, i)->type;
}

static inline const struct tc_type *out_type(const struct check *k)
{
	return k->op->results[0].type;
}

/* Everything about one op that its operands, attributes and regions must meet. Their
 * number and kinds are checked already. */
void tc_check_op(const struct check *k);
/* The same of a collective; of any other op nothing. ir_collective.c */
void tc_check_collective(const struct check *k);
/* Of tc_check_op's what emission follows without looking: arguments and results of regions. */
void tc_check_frame(const struct check *k);

#endif
