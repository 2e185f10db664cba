/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BRINGUP_ISA_ISA_H
#define BRINGUP_ISA_ISA_H
/*
 * Every instruction of the ISA by itself, against the compiler's evaluator. The steps in step.c go
 * through isa.def, alu.def and uop.def; the door of tools/bringup/isa for them and for tests.
 */
#include "hal/hw/isa.h"
#include "tools/bringup/context.h"

/* All cases of one instruction (enum isa_opcode), function (enum isa_alu) or vector operation (enum
 * isa_uop_code), on a device that is open. SKIP, and why, where there are none. */
enum bringup_result isa_test_insn(struct bringup *b, unsigned op);
enum bringup_result isa_test_function(struct bringup *b, unsigned fn);
enum bringup_result isa_test_operation(struct bringup *b, unsigned uop);

/* Why an instruction that is built has no cases; NULL: it has some, or nobody has thought of it. */
const char *isa_why_untested(unsigned op);
/* Whether there are cases. */
bool isa_has_insn(unsigned op);
bool isa_has_function(unsigned fn);
bool isa_has_operation(unsigned uop);

/* The cases of instructions that have some of their own: what step.c puts together. */
#define ISA_CASES(name) enum bringup_result isa_cases_##name(struct bringup *b)
ISA_CASES(registers);	/* LI */
ISA_CASES(alu);		/* ALU, ALUI: each function */
ISA_CASES(memory);	/* LD, ST */
ISA_CASES(branches);	/* JMP, BZ, BNZ */
ISA_CASES(calls);	/* CALL, RET */
ISA_CASES(halt);
ISA_CASES(trap);
ISA_CASES(rwait);
ISA_CASES(vec);
ISA_CASES(reduce);
ISA_CASES(copy);
ISA_CASES(gather);
ISA_CASES(scatter);
ISA_CASES(sort);
ISA_CASES(rng);
ISA_CASES(fft);
ISA_CASES(mm);
ISA_CASES(conv);
#undef ISA_CASES

#endif
