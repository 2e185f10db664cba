/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FUZZ_OPS_ARGS_H
#define FUZZ_OPS_ARGS_H
/* Arguments of main in the place of what it computes. */
#include "runtime/compiler/ir/ir.h"
#include "runtime/compiler/tc.h"

enum { ARGS_CONSTANTS = 256 };

/* New arguments, behind main's own, for the op's results that are used; the op stays. False:
 * nothing changed, as nothing is used, a result can't be an argument (tuple, token), or the op
 * is in a region that sees no values of main. */
bool args_replace(struct tc_ctx *c, struct tc_op *op);
/* The same for main's constants, at most ARGS_CONSTANTS. Returns how many arguments that made;
 * data[i].data is malloc'd, what the i-th has to be. */
unsigned args_replace_constants(struct tc_ctx *c, struct tc_array *data);

#endif
