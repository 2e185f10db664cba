/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
#ifndef HW_ISA_PRINT_H
#define HW_ISA_PRINT_H
/*
 * Instructions as assembly, for people: names from isa.def, uop.def and alu.def.
 *
 *	struct str s = { 0 };
 *	isa_print_program(image->text, image->text_bytes, NULL, NULL, &s);
 *
 *	00000018  vec       [64x32] row 1
 *	            v0 = f32 b2+0 {128, 4}
 *	            v1 = f32 b0+64[r3] {0, 4}
 *	            v2 = add.f32 v0, v1
 *	            f32 b3+0 {128, 4} = v2
 *
 * An address is binding + bytes[register]; braces hold the byte strides of the iteration
 * space, whose dims stand in brackets. The bytes may be hostile: nothing outside them is
 * read, and what no device would take is printed as far as it goes, with "!" and the
 * reason. An allocation failure shows in `out` (str.h). Any thread.
 */
#include <stddef.h>
#include <stdint.h>

#include "hal/base/str.h"
#include "hal/hw/isa.h"

/*
 * Appends the instruction at `p`, of which n bytes are there: a line led by the mnemonic,
 * then an indented line for each operand and vector operation, without a newline after the
 * last. `offset` is where it stands in its program, for the targets of branches. Returns
 * the bytes to the next instruction: 8 where there is none to be seen, and never more
 * than n; 0 only for n == 0. `p` needs no alignment.
 */
size_t isa_print_insn(const void *p, size_t n, uint64_t offset, struct str *out);

/* Appends a vector operation that gives value `value`: "v2 = add.f32 v0, v1". */
void isa_print_uop(const struct isa_uop *u, unsigned value, struct str *out);

/* Appends a text for the end of an instruction's first line, or nothing. */
typedef void isa_note_fn(void *arg, uint64_t offset, struct str *out);

/* Appends n bytes of code, each instruction led by its offset and closed by a newline.
 * `note` may be NULL. */
void isa_print_program(const void *p, size_t n, isa_note_fn *note, void *arg,
		       struct str *out);

#endif
