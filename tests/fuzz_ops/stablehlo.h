/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FUZZ_OPS_STABLEHLO_H
#define FUZZ_OPS_STABLEHLO_H
/* The IR as MLIR reads it: StableHLO in the generic form of ops. */
#include "runtime/compiler/ir/ir.h"

void stablehlo_print(struct tc_ctx *c, struct str *out);

#endif
