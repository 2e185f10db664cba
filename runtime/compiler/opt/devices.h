/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TC_OPT_DEVICES_H
#define TC_OPT_DEVICES_H
/* What members.c and ragged.c offer devices.c. Private to opt/. */
#include "runtime/compiler/ir/ir.h"

/* How a program is shared out: member m is replica m / partitions and partition
 * m % partitions. Each at least 1. */
struct tc_members { int64_t replicas, partitions; };

/* Settles a verified collective (ops.def says how). INVALID_ARGUMENT for members that the
 * program does not have, or that are left out, and for groups of different sizes where
 * that has no meaning; UNIMPLEMENTED for more than 65536 members. */
void tc_settle_members(struct tc_ctx *c, struct tc_op *op, struct tc_members of);

/* Whether it is JAX's call by which members send each other any number of rows. */
bool tc_is_ragged(const struct tc_op *op);
/* Puts settled collectives and other ops in its place; whether members meet in them. Fails as
 * tc_settle_members, and INVALID_ARGUMENT for operands that the call does not have. */
bool tc_settle_ragged(struct tc_ctx *c, struct tc_op *op, struct tc_members of);

#endif
