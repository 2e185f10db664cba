/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FUZZ_OPS_SHRINK_H
#define FUZZ_OPS_SHRINK_H
/* The same program on smaller arrays. */
#include "runtime/compiler/ir/ir.h"

/* Writes a smaller number wherever a dim of the module has its n-th largest size, and where an
 * attribute holds that size; constants lose their last elements. part says which number: 0: 1;
 * 1: half of it; 2: one less. What comes out need not be a program: whoever reads its text
 * finds out. *is_past: there is no n-th size. False: nothing changed. */
bool shrink_size(struct tc_ctx *c, unsigned n, unsigned part, bool *is_past);

#endif
