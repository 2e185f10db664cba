/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TC_BACK_VERIFY_H
#define TC_BACK_VERIFY_H
/*
 * Checks a finished program by its code alone, so that a wrong plan is an error and never
 * a wrong number. It decodes every instruction, follows branches, and refuses
 *
 *	- an access outside of its binding, or a write to one declared for reading,
 *	- an output that overlaps an input or output otherwise than ISA.md allows,
 *	- a read of temporaries or results that on some path nothing has written,
 *
 * and, where the emitter's evidence is given (emission keeps it, an image doesn't),
 *
 *	- a read of memory that has been given to another value since, or of an operand that
 *	  the same op has overwritten,
 *	- a value that was not written whole.
 *
 * The evidence says which value an op takes from where and which one it leaves where.
 * What lies in memory at each point is found by running the writes of all paths.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hal/hw/image.h"
#include "hal/hw/isa.h"
#include "runtime/compiler/back/alias.h"

enum tc_note_kind {
	TC_NOTE_OP,	/* code for an op starts: its instructions read what follows */
	TC_NOTE_READS,	/* ... this value, which lies in [lo, hi) of the binding now */
	TC_NOTE_HOLDS,	/* written: [lo, hi) holds this value from here on */
	TC_NOTE_EMPTY,	/* it counts as held from here on, whatever it is (loop/empty.c) */
};

struct tc_note {
	uint64_t at;		/* code offset; notes ascend by it */
	uint8_t kind;		/* enum tc_note_kind */
	uint16_t binding;
	uint32_t content;	/* of READS and HOLDS: the value, from 1 on; its views share it */
	int64_t lo, hi;
};

/* Where a branch goes: to its target, after these first notes. */
struct tc_branch_note { uint64_t at; uint32_t notes; };

struct tc_evidence {
	const struct tc_note *notes;
	size_t n;
	const struct tc_branch_note *branches;	/* in any order, one for each branch */
	size_t n_branches;
};

struct tc_verdict {
	uint64_t offset;	/* of the instruction in .text */
	char why[200];		/* "it reads ...": goes after "the instruction at ..." */
};

/* 0, or INTERNAL with *why, or RESOURCE_EXHAUSTED. Takes any image that image_parse takes,
 * and one whose info, text, bindings, shapes are set. evidence: NULL: none. Arguments count
 * as written; with evidence they hold contents 1 to n_args. Work is linear in code and
 * evidence but for loops, which are walked until nothing changes. */
int tc_verify(const struct image *im, const struct tc_evidence *evidence,
	      struct tc_verdict *why);

/* ---- pieces (verify_code.c) ---- */

#define TC_REG_TERMS 8

/* A register's value, as far as addresses need it. */
struct tc_reg_value {
	enum { TC_REG_ANY, TC_REG_UPWARD, TC_REG_SUM } kind; /* UPWARD: not negative */
	int64_t base;		/* SUM: base + k[i] * step[i], 0 <= k[i] < count[i] */
	unsigned n;
	int64_t count[TC_REG_TERMS], step[TC_REG_TERMS];
};

/* All registers. Forgetting them is one store: joins of paths do it often. */
struct tc_regs {
	uint64_t known;		/* bit r: value[r] is set; else r may hold anything */
	struct tc_reg_value value[ISA_N_REG];
};

enum tc_access_role {
	TC_AT_POINT,	/* read where the point is */
	TC_AS_WHOLE,	/* read from anywhere, any number of times */
	TC_STORED,	/* written at the point */
	TC_FOLDED,	/* written from many points */
	TC_CHANGED,	/* read and written from anywhere */
};

struct tc_access {
	enum tc_access_role role;
	unsigned operand;	/* counted as in the disassembly: inputs, then outputs */
	struct tc_walk walk;
	bool is_known;		/* false: a register of unknown value leads it */
	int64_t lo, hi;		/* of what is known and not empty: the bytes in its binding */
};

#define TC_MAX_ACCESSES (2 * ISA_MAX_IN + ISA_MAX_OUT + 4)

/* What a whole, well-formed instruction accesses; returns how many. Inputs (roles before
 * TC_STORED) are first; of outputs all or none are TC_CHANGED. */
unsigned tc_accesses(const struct isa_insn *insn, const struct tc_regs *regs,
		     struct tc_access *out);
/* Whether counts and lengths of the instruction at `at` hold together. */
bool tc_is_well_formed(const void *text, size_t bytes, size_t at);
/* How many bytes a walk touches, counted as often as it does; -1: some of them. */
int64_t tc_bytes_of_walk(const struct tc_walk *w);
/* What an RPUT to peers' data stands for: members run the same code, so others do the same with
 * this one's, whatever places their registers say. false: it is none. */
bool tc_mirror(const struct image *im, const struct isa_insn *insn, const struct tc_access *a,
	       unsigned n, struct tc_access *out);
/* Adds to n accesses, behind the inputs, what others read of this member's own memory while it
 * reads peers' data: the same places, from anywhere. Returns how many there are then. */
unsigned tc_add_lent(const struct image *im, struct tc_access *a, unsigned n);
/* What an output may not lie over as it does; NULL: it may. */
const char *tc_clash(const struct tc_access *out, const struct tc_access *other);
/* What a scalar instruction does to the registers. */
void tc_step_regs(const struct isa_scalar *s, struct tc_regs *regs);
/* Of a program that calls the host (emit_host.c): whether instruction i is as such a program
 * begins, with a load of the call's number and two instructions for each call; and whether
 * these two, before a HALT, note call *n, counted from 0. */
bool tc_begins_calls(const struct isa_insn *insn, uint32_t i);
bool tc_is_stop(const struct isa_insn *first, const struct isa_insn *second, uint32_t *n);
/* Nothing is known but that register 0 reads 0. */
void tc_forget_regs(struct tc_regs *regs);

#endif
