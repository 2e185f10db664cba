/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BRINGUP_PROGRAM_H
#define BRINGUP_PROGRAM_H
/* Programs of scalar instructions, written by hand, which need no compiler. Private to
 * tools/bringup. */
#include "hal/hw/image.h"
#include "tools/bringup/context.h"

#define INSN(code) .insn = { .op = ISA_##code, .bytes = sizeof(struct isa_scalar) }

/* A program with binding 2, of 8 bytes at least, which it reads and writes, and 3, likewise, of
 * other_bytes (a multiple of 8) at least. For the rest of the step; NULL and b->err. */
struct hal_exe *bringup_scalar(struct bringup *b, const struct isa_scalar *code, size_t n,
			       uint64_t other_bytes);
/* Submits a run of it on m, as binding 2, and as 3, too. A code, with b->err. */
int bringup_launch(struct bringup *b, struct hal_exe *exe, struct hal_mem *m,
		   const struct hal_after *after, unsigned n_after, uint64_t *value);
/* ... on a part of data, and on `other`. */
int bringup_launch_on(struct bringup *b, struct hal_exe *exe, struct hw_binding data,
		      struct hw_binding other, uint64_t *value);

#endif
