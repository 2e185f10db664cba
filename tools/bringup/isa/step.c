/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of the ISA: which instructions there are, and a run of the cases of each. */
#include <stdio.h>

#include "tools/bringup/isa/isa.h"

/* Its unit is the step that runs it. */
enum unit { SCALAR = 1, VECTOR, MATRIX };

static const struct {
	enum unit unit;
	enum bringup_result (*run)(struct bringup *b);
	const char *why_not;	/* instead of run */
} insns[256] = {
	[ISA_LI] = { SCALAR, isa_cases_registers, NULL },
	[ISA_ALU] = { SCALAR, isa_cases_alu, NULL },
	[ISA_ALUI] = { SCALAR, isa_cases_alu, NULL },
	[ISA_LD] = { SCALAR, isa_cases_memory, NULL },
	[ISA_ST] = { SCALAR, isa_cases_memory, NULL },
	[ISA_JMP] = { SCALAR, isa_cases_branches, NULL },
	[ISA_BZ] = { SCALAR, isa_cases_branches, NULL },
	[ISA_BNZ] = { SCALAR, isa_cases_branches, NULL },
	[ISA_CALL] = { SCALAR, isa_cases_calls, NULL },
	[ISA_RET] = { SCALAR, isa_cases_calls, NULL },
	[ISA_HALT] = { SCALAR, isa_cases_halt, NULL },
	[ISA_TRAP] = { SCALAR, isa_cases_trap, NULL },
	[ISA_RWAIT] = { SCALAR, isa_cases_rwait, NULL },
	[ISA_VEC] = { VECTOR, isa_cases_vec, NULL },
	[ISA_REDUCE] = { VECTOR, isa_cases_reduce, NULL },
	[ISA_COPY] = { VECTOR, isa_cases_copy, NULL },
	[ISA_GATHER] = { VECTOR, isa_cases_gather, NULL },
	[ISA_SCATTER] = { VECTOR, isa_cases_scatter, NULL },
	[ISA_SORT] = { VECTOR, isa_cases_sort, NULL },
	[ISA_RNG] = { VECTOR, isa_cases_rng, NULL },
	[ISA_FFT] = { VECTOR, isa_cases_fft, NULL },
	[ISA_MM] = { MATRIX, isa_cases_mm, NULL },
	[ISA_CONV] = { MATRIX, isa_cases_conv, NULL },
	[ISA_RPUT] = { .why_not = "it writes to another chip's memory, in step link_programs" },
	[ISA_RSIG] = { .why_not = "it changes another chip's semaphore, in step link_programs" },
};

const char *isa_why_untested(unsigned op)
{
	return op < 256 ? insns[op].why_not : NULL;
}

bool isa_has_insn(unsigned op)
{
	return op < 256 && insns[op].run;
}

enum bringup_result isa_test_insn(struct bringup *b, unsigned op)
{
	if (isa_has_insn(op))
		return insns[op].run(b);
	return bringup_skip(b, "%s: %s", isa_insn_info(op)->mnemonic,
			    isa_why_untested(op) ? isa_why_untested(op) : "it has no cases");
}

/* What needs no second run: neighbours of the table may have their cases in common. */
static bool is_first(unsigned op)
{
	for (unsigned i = 0; i < op; i++)
		if (insns[i].run == insns[op].run)
			return false;
	return true;
}

static enum bringup_result of_unit(struct bringup *b, enum unit unit, unsigned *n)
{
	STEP_TRY(bringup_need_device(b));
	for (unsigned op = 0; op < COUNT(insns); op++) {
		if (insns[op].unit != unit)
			continue;
		if (is_first(op))
			STEP_TRY(insns[op].run(b));
		++*n;
	}
	return BRINGUP_PASS;
}

enum bringup_result isa_cases_alu(struct bringup *b)
{
	for (unsigned fn = 0; fn < ISA_ALU_COUNT; fn++)
		if (isa_has_function(fn))
			STEP_TRY(isa_test_function(b, fn));
	return BRINGUP_PASS;
}

/* Tells what no unit has cases of, too. */
enum bringup_result step_scalar_unit(struct bringup *b)
{
	char others[400] = "";
	unsigned n = 0;
	size_t at = 0;

	STEP_TRY(of_unit(b, SCALAR, &n));
	for (unsigned op = 0; op < COUNT(insns); op++)
		if (insns[op].why_not)
			at += (size_t)snprintf(others + at, sizeof(others) - at, "; not %s: %s",
					       isa_insn_info(op)->mnemonic, insns[op].why_not);
	return bringup_pass(b, "%u instructions, %u functions of all pairs of 15 numbers%s", n,
			    (unsigned)ISA_ALU_COUNT, others);
}

enum bringup_result step_vector_operations(struct bringup *b)
{
	unsigned n = 0;

	STEP_TRY(bringup_need_device(b));
	for (unsigned u = 0; u < 256; u++) {
		if (!isa_has_operation(u))
			continue;
		STEP_TRY(isa_test_operation(b, u));
		n++;
	}
	return bringup_pass(b, "%u operations, of every type that they have, of 1 to 8193 elements",
			    n);
}

enum bringup_result step_vector_unit(struct bringup *b)
{
	unsigned n = 0;

	STEP_TRY(of_unit(b, VECTOR, &n));
	return bringup_pass(b, "%u instructions, on sizes below, at and above those of tiles", n);
}

enum bringup_result step_matrix_unit(struct bringup *b)
{
	unsigned n = 0;

	STEP_TRY(of_unit(b, MATRIX, &n));
	return bringup_pass(b, "%u instructions, on sizes below, at and above those of tiles", n);
}
