/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TC_OPT_LOGIC_H
#define TC_OPT_LOGIC_H
/* Simpler forms of questions and what is made of their answers. */
#include "runtime/compiler/ir/ir.h"

/* Replaces op by what is less to compute and has the same bits: comparisons of integers with
 * themselves, what is joined with a known answer, one comparison for two, and the larger or smaller
 * of two integers for a choice. False: it stays. */
bool tc_simplify_logic(struct tc_ctx *c, struct tc_op *op);

#endif
