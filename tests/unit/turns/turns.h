/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_TURNS_H
#define TESTS_TURNS_H
/* Work that lasts, for tests of who has an engine when. */
#include <time.h>

#include "tests/unit/sim/sim_test.h"

#define MS 1000000ll
#define SECOND (1000 * MS)

static inline void turns_sleep(int64_t ns)
{
	struct timespec left = { ns / SECOND, ns % SECOND };

	while (nanosleep(&left, &left))
		;
}

/* A program that counts up in a register, and stores it at va, to `n`, or for ever with 0. */
static inline void turns_count(struct t_program *p, uint64_t va, uint64_t n)
{
	size_t loop;

	t_program(p);
	t_bind(p, va, 64, HW_BIND_WRITE);
	t_li(p, 1, 0);
	loop = t_scalar(p, (struct isa_scalar){ .insn.op = ISA_ALUI, .fn = ISA_ALU_ADD,
						.rd = 1, .ra = 1, .imm = 1 });
	t_scalar(p, (struct isa_scalar){ .insn.op = ISA_ST, .elem = ELEM_U64, .rb = 1 });
	t_scalar(p, (struct isa_scalar){ .insn.op = ISA_ALUI, .fn = ISA_ALU_NE, .rd = 2,
					 .ra = 1, .imm = (int64_t)n });
	t_branch(p, ISA_BNZ, 2, (int64_t)loop - (int64_t)p->bytes);
	t_halt(p);
}

#endif
