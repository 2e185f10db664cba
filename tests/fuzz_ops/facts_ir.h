/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FUZZ_OPS_FACTS_IR_H
#define FUZZ_OPS_FACTS_IR_H
/* Facts of values (`side`) to and from the IR's locations: an op's are those of its
 * results, a function's those of its arguments. */
#include "runtime/compiler/ir/ir.h"
#include "tests/fuzz_ops/fact.h"

void facts_read(struct tc_ctx *c);
/* Clears `side`. */
void facts_write(struct tc_ctx *c);

#endif
