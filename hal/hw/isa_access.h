/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HW_ISA_ACCESS_H
#define HW_ISA_ACCESS_H
/*
 * What memory an instruction touches, and which of its operands may lie on which: the
 * rules of ISA.md#overlap as functions. For whoever checks programs before they run or
 * while they do. Pure: no memory is taken, any thread may call.
 *
 *	struct isa_access a[ISA_MAX_ACCESS];
 *	unsigned n = isa_accesses(insn, a), i, j;
 *	for each i that writes, each other j:
 *		if (isa_conflict(&a[i], address of i, &a[j], address of j)) ...
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hal/hw/isa.h"

#define ISA_MAX_ACCESS (ISA_MAX_IN + ISA_MAX_OUT + 2)

/* A run over addresses: `count` >= 1 steps of `stride` bytes. */
struct isa_range { int64_t count, stride; };

/*
 * The elements that one operand touches: those at address + sum of i[k] * range[k].stride,
 * 0 <= i[k] < range[k].count, where address = binding + offset + r[reg]. A range with one
 * step has stride 0. Range d is dim d of the iteration space as far as both have one.
 */
struct isa_access {
	uint8_t operand;	/* its number, as fault records count */
	uint8_t reg;
	uint16_t binding;
	int64_t offset;
	bool is_write;
	bool is_acc;		/* a write that reads what is there first */
	bool may_match;		/* may lie on one of the other kind that may, element for
				 * element */
	bool is_peer;		/* another chip's memory: apart from all of this one's */
	bool is_table;		/* GATHER's and SCATTER's: indices say which of these it
				 * touches; else all */
	unsigned bytes;		/* of an element */
	unsigned n;		/* ranges */
	unsigned distinct;	/* a bit each: these lead different steps of a write to
				 * different elements */
	struct isa_range range[ISA_MAX_RANK + ISA_MAX_INDEX];
};

/*
 * The accesses of an instruction, reads before writes; those that touch nothing are left
 * out. `insn` has been checked as PROGRAM_CREATE does: whole, counts and dims in their
 * limits, each operand's span below 2^61. Returns how many.
 */
unsigned isa_accesses(const struct isa_insn *insn, struct isa_access *out);

/* The bytes [*lo, *hi) that it spans, relative to its address. */
void isa_access_span(const struct isa_access *a, int64_t *lo, int64_t *hi);

/* The same bytes from the lowest on: ranges with positive strides, the smallest first, what
 * lies side by side as one run of `bytes`. Runs may still meet. */
struct isa_runs {
	int64_t lowest, bytes;
	unsigned n;
	struct isa_range range[ISA_MAX_RANK + ISA_MAX_INDEX];
};
struct isa_runs isa_access_runs(const struct isa_access *a, int64_t at);

/* Whether any byte is in both, their addresses given. */
bool isa_access_meet(const struct isa_access *a, int64_t a_at, const struct isa_access *b,
		     int64_t b_at);
/*
 * Whether two accesses of one instruction lie on each other as ISA.md forbids, at least
 * one of them a write. Where telling would take very long (ranges that no loop nest
 * over arrays has) the answer is yes.
 */
bool isa_conflict(const struct isa_access *a, int64_t a_at, const struct isa_access *b,
		  int64_t b_at);
/* Whether a write writes an element twice where ISA.md forbids that. */
bool isa_repeats(const struct isa_access *a);

#endif
