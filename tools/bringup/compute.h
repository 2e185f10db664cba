/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BRINGUP_COMPUTE_H
#define BRINGUP_COMPUTE_H
/* Compiled programs that other steps run as load. Private to tools/bringup. */
#include "tools/bringup/context.h"

/* A program with its memory, to be run as often as one likes. */
struct bringup_work {
	struct hal_exe *exe;
	struct hw_binding bindings[16];
};

/* A product of matrices of bf16, random ones: the matrix unit's work. For the rest of the step; a
 * code, with b->err. */
int bringup_product(struct bringup *b, struct bringup_work *out);
/* Submits a run. A code, with b->err. */
int bringup_launch_work(struct bringup *b, const struct bringup_work *w, uint64_t *value);

#endif
