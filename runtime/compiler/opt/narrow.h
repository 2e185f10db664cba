/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TC_OPT_NARROW_H
#define TC_OPT_NARROW_H
/* Whole numbers that are counted in more bits than they need. */
#include "runtime/compiler/ir/ir.h"

/* Replaces op, an integer's upper bits that are 0 or what is made of iotas and then narrowed, by
 * what is less to compute and has the same bits. False: it stays. */
bool tc_count_narrowly(struct tc_ctx *c, struct tc_op *op);

#endif
