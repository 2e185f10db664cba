/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scalar unit: functions of pairs of numbers against the evaluator, the rest against plain C.
 * Each instruction is seen by what a store of its register, or a store that it lets pass, leaves.
 */
#include <stdio.h>
#include <string.h>

#include "tools/bringup/isa/bench.h"
#include "tools/bringup/isa/data.h"
#include "tools/bringup/isa/isa.h"

static const char *const functions[ISA_ALU_COUNT] = {
#define FUNCTION(name, lines) [ISA_ALU_##name] = lines,
#include "tools/bringup/isa/ir.def"
};

#define DETAIL 0x5ca1ab1e7e57ll	/* of a trap */
#define STEP_BYTES ((int64_t)sizeof(struct isa_scalar))

#define PUT(t, op, ...) isa_put_scalar(t, op, (struct isa_scalar){ __VA_ARGS__ })

static void put_li(struct isa_bench *t, unsigned rd, int64_t imm)
{
	PUT(t, ISA_LI, .rd = (uint8_t)rd, .imm = imm);
}

static void put_store(struct isa_bench *t, unsigned rb, uint64_t at)
{
	PUT(t, ISA_ST, .rb = (uint8_t)rb, .elem = ELEM_S64, .binding = 2, .imm = (int64_t)at);
}

/* ---- functions ---- */

bool isa_has_function(unsigned fn)
{
	return fn < ISA_ALU_COUNT && functions[fn];
}

static const int64_t numbers[] = {
	0, 1, -1, 2, -7, 31, 63, 64, 65, 1000003, INT32_MIN, INT64_MAX, INT64_MIN, 0x5a5a5a5a5a5a,
	-0x123456789abcdef,
};
enum { NUMBERS = COUNT(numbers), PAIRS = NUMBERS * NUMBERS };

/* Of all pairs, from two registers, or one and the instruction. */
static enum bringup_result of_pairs(struct bringup *b, unsigned fn, bool is_imm)
{
	int64_t *x = bringup_room(b, PAIRS * 8), *y = bringup_room(b, PAIRS * 8);
	struct isa_bench *t = isa_bench(b);
	struct tc_array args[2], result = isa_array(ELEM_S64, NULL, PAIRS, 0);
	const int64_t *want;
	uint64_t out;

	NEED(b, x && y ? t : NULL);
	for (unsigned i = 0; i < PAIRS; i++) {
		x[i] = numbers[i / NUMBERS];
		y[i] = numbers[i % NUMBERS];
	}
	args[0] = isa_array(ELEM_S64, x, PAIRS, 0);
	args[1] = isa_array(ELEM_S64, y, PAIRS, 0);
	want = isa_evaluate(b, functions[fn], args, 2, &result);
	NEED(b, want);
	out = isa_out(t, ELEM_S64, want, PAIRS, ISA_BITS, "%s %s", is_imm ? "alui" : "alu",
		      isa_alu_name(fn));
	for (unsigned i = 0; i < PAIRS; i++) {
		put_li(t, 1, x[i]);
		put_li(t, 2, is_imm ? 77 : y[i]);
		PUT(t, is_imm ? ISA_ALUI : ISA_ALU, .fn = (uint8_t)fn, .rd = 3, .ra = 1,
		    .rb = is_imm ? 0 : 2, .imm = is_imm ? y[i] : 0);
		put_store(t, 3, out + i * 8);
	}
	STEP_TRY(isa_run(t));
	bringup_give_back(b);
	return BRINGUP_PASS;
}

enum bringup_result isa_test_function(struct bringup *b, unsigned fn)
{
	if (!isa_has_function(fn))
		return bringup_skip(b, "%s: ir.def has no line of it", isa_alu_name(fn));
	STEP_TRY(of_pairs(b, fn, false));
	return of_pairs(b, fn, true);
}

/* ---- registers and memory ---- */

/* Every register keeps a number of its own, but for the first. */
enum bringup_result isa_cases_registers(struct bringup *b)
{
	struct isa_bench *t = isa_bench(b);
	int64_t want[ISA_N_REG];
	uint64_t out;

	NEED(b, t);
	isa_fill(ELEM_S64, want, ISA_N_REG, ISA_UNITS, 5);
	want[0] = 0;
	out = isa_out(t, ELEM_S64, want, ISA_N_REG, ISA_BITS, "li");
	for (unsigned i = 0; i < ISA_N_REG; i++)
		put_li(t, i, i ? want[i] : 1);
	for (unsigned i = 0; i < ISA_N_REG; i++)
		put_store(t, i, out + i * 8);
	STEP_TRY(isa_run(t));
	bringup_give_back(b);
	return BRINGUP_PASS;
}

static bool is_scalar(unsigned e)
{
	return e >= ELEM_PRED && e <= ELEM_U64;
}

/* What ELEM's bits at p are as a number of 64. */
static int64_t extended(unsigned e, const void *p)
{
	unsigned out = 64 - elem_bytes(e) * 8;
	uint64_t x = 0;

	memcpy(&x, p, elem_bytes(e));
	return elem_class(e) == ELEM_CLASS_SINT ? (int64_t)(x << out) >> out : (int64_t)x;
}

/* 64 elements of a type: read one by one and kept whole, or written from registers. */
static enum bringup_result of_type(struct bringup *b, unsigned e, bool is_store)
{
	struct isa_bench *t = isa_bench(b);
	unsigned bytes = elem_bytes(e);
	uint8_t data[64 * 8];
	int64_t wide[64];
	uint64_t in, out;

	NEED(b, t);
	isa_fill((enum elem)e, data, 64, ISA_ANY, 3);
	for (unsigned i = 0; i < 64; i++)
		wide[i] = extended(e, data + i * bytes);
	in = isa_in(t, data, 64 * bytes);
	if (is_store)
		out = isa_out(t, (enum elem)e, data, 64, ISA_BITS, "st of %s", elem_text(e));
	else
		out = isa_out(t, ELEM_S64, wide, 64, ISA_BITS, "ld of %s", elem_text(e));
	for (unsigned i = 0; i < 64; i++) {
		struct isa_scalar at_in = { .rd = 2, .ra = i & 1, .elem = (uint8_t)e, .binding = 2,
			.imm = (int64_t)in + (i & 1 ? 0 : (int64_t)(i * bytes)) };
		struct isa_scalar at_out = { .rb = 2, .ra = i & 1, .binding = 2,
			.elem = is_store ? (uint8_t)e : ELEM_S64, .imm = (int64_t)out };

		/* Odd ones by way of a register. */
		put_li(t, 1, (int64_t)(i * bytes));
		if (is_store)
			put_li(t, 2, wide[i] ^ (e != ELEM_PRED && bytes < 8 ? 1ll << 62 : 0));
		else
			isa_put_scalar(t, ISA_LD, at_in);
		put_li(t, 1, (int64_t)(i * (is_store ? bytes : 8)));
		if (!(i & 1))
			at_out.imm += i * (is_store ? bytes : 8);
		isa_put_scalar(t, ISA_ST, at_out);
	}
	STEP_TRY(isa_run(t));
	bringup_give_back(b);
	return BRINGUP_PASS;
}

enum bringup_result isa_cases_memory(struct bringup *b)
{
	for (unsigned e = 1; e < ELEM_COUNT; e++) {
		if (!is_scalar(e))
			continue;
		STEP_TRY(of_type(b, e, true));
		STEP_TRY(of_type(b, e, false));
	}
	return BRINGUP_PASS;
}

/* ---- the way ---- */

/* r1 = x; skips the store of 1 to word i if the branch is taken. */
static void put_branch(struct isa_bench *t, unsigned op, int64_t x, uint64_t at)
{
	put_li(t, 1, x);
	put_li(t, 2, 1);
	PUT(t, op, .ra = op != ISA_JMP, .imm = 2 * STEP_BYTES);
	put_store(t, 2, at);
}

/* Adds up 10, 9, ... 1, with a branch back. */
static void put_loop(struct isa_bench *t, unsigned op, uint64_t at)
{
	put_li(t, 1, 10);
	put_li(t, 2, 0);
	PUT(t, ISA_ALU, .fn = ISA_ALU_ADD, .rd = 2, .ra = 2, .rb = 1);
	PUT(t, ISA_ALUI, .fn = ISA_ALU_SUB, .rd = 1, .ra = 1, .imm = 1);
	if (op == ISA_BNZ) {
		PUT(t, op, .ra = 1, .imm = -2 * STEP_BYTES);
	} else if (op == ISA_BZ) {
		PUT(t, ISA_ALUI, .fn = ISA_ALU_EQ, .rd = 3, .ra = 1);
		PUT(t, op, .ra = 3, .imm = -3 * STEP_BYTES);
	} else {
		PUT(t, ISA_BZ, .ra = 1, .imm = 2 * STEP_BYTES);
		PUT(t, op, .imm = -3 * STEP_BYTES);
	}
	put_store(t, 2, at);
}

enum bringup_result isa_cases_branches(struct bringup *b)
{
	static const struct { unsigned op; int64_t want[4]; } cases[] = {
		/* whether the store behind it is made, of 0, 1 and a number whose low half is 0 */
		{ ISA_BZ, { 0, 1, 1, 55 } },
		{ ISA_BNZ, { 1, 0, 0, 55 } },
		{ ISA_JMP, { 0, 0, 0, 55 } },
	};
	static const int64_t none[4];

	for (unsigned i = 0; i < COUNT(cases); i++) {
		struct isa_bench *t = isa_bench(b);
		uint64_t out;

		NEED(b, t);
		out = isa_inout(t, ELEM_S64, none, cases[i].want, 4, ISA_BITS, "%s",
				isa_insn_info(cases[i].op)->mnemonic);
		put_branch(t, cases[i].op, 0, out);
		put_branch(t, cases[i].op, 1, out + 8);
		put_branch(t, cases[i].op, 1ll << 32, out + 16);
		put_loop(t, cases[i].op, out + 24);
		STEP_TRY(isa_run(t));
		bringup_give_back(b);
	}
	return BRINGUP_PASS;
}

/* A function that calls itself as deep as the ISA lets it, counting on the way down and up. */
enum bringup_result isa_cases_calls(struct bringup *b)
{
	static const int64_t none[2], want[2] = { ISA_CALL_DEPTH, ISA_CALL_DEPTH };
	struct isa_bench *t = isa_bench(b);
	uint64_t out;

	NEED(b, t);
	out = isa_inout(t, ELEM_S64, none, want, 2, ISA_BITS, "call and ret");
	PUT(t, ISA_CALL, .imm = 4 * STEP_BYTES);
	put_store(t, 1, out);
	put_store(t, 2, out + 8);
	PUT(t, ISA_JMP, .imm = 7 * STEP_BYTES);
	/* the function */
	PUT(t, ISA_ALUI, .fn = ISA_ALU_ADD, .rd = 1, .ra = 1, .imm = 1);
	PUT(t, ISA_ALUI, .fn = ISA_ALU_LT, .rd = 3, .ra = 1, .imm = ISA_CALL_DEPTH);
	PUT(t, ISA_BZ, .ra = 3, .imm = 2 * STEP_BYTES);
	PUT(t, ISA_CALL, .imm = -3 * STEP_BYTES);
	PUT(t, ISA_ALUI, .fn = ISA_ALU_ADD, .rd = 2, .ra = 2, .imm = 1);
	PUT(t, ISA_RET, 0);
	STEP_TRY(isa_run(t));
	bringup_give_back(b);
	return BRINGUP_PASS;
}

/* What stands behind the end is not run; what stands before it was. */
static enum bringup_result ends(struct bringup *b, unsigned op, int code)
{
	static const int64_t none[2], want[2] = { 9, 0 };
	struct isa_bench *t = isa_bench(b);
	enum bringup_result r;
	uint64_t out;

	NEED(b, t);
	out = isa_inout(t, ELEM_S64, none, want, 2, ISA_BITS, "%s", isa_insn_info(op)->mnemonic);
	put_li(t, 1, 9);
	put_store(t, 1, out);
	PUT(t, op, .imm = op == ISA_TRAP ? DETAIL : 0);
	put_store(t, 1, out + 8);
	r = isa_run_to(t, code);
	bringup_give_back(b);
	return r;
}

enum bringup_result isa_cases_halt(struct bringup *b)
{
	return ends(b, ISA_HALT, 0);
}

enum bringup_result isa_cases_trap(struct bringup *b)
{
	char detail[32];

	STEP_TRY(ends(b, ISA_TRAP, ERR_INTERNAL));
	snprintf(detail, sizeof(detail), "0x%llx", (unsigned long long)DETAIL);
	if (!strstr(b->err.msg, detail))
		return bringup_fail(b, "trap: its detail, %s, is not in the fault: %.400s", detail,
				    b->err.msg);
	return BRINGUP_PASS;
}

/* Of semaphores that are there already; steps of queues and links wait for others. */
enum bringup_result isa_cases_rwait(struct bringup *b)
{
	static const struct { uint64_t is, least; } waits[] = {
		{ 0, 0 }, { 5, 5 }, { 6, 5 }, { UINT64_MAX, 1ull << 63 }, { 1ull << 63, 7 },
	};
	struct isa_bench *t = isa_bench(b);
	uint64_t now[COUNT(waits)], in, out;

	NEED(b, t);
	for (unsigned i = 0; i < COUNT(waits); i++)
		now[i] = waits[i].is;
	in = isa_in(t, now, sizeof(now));
	out = isa_out(t, ELEM_U64, now, COUNT(now), ISA_BITS, "rwait");
	for (unsigned i = 0; i < COUNT(waits); i++) {
		put_li(t, 1, (int64_t)(i * 8));
		put_li(t, 2, (int64_t)waits[i].least);
		put_li(t, 3, 1);
		PUT(t, ISA_RWAIT, .rd = 3, .ra = 1, .rb = 2, .elem = ELEM_U64, .binding = 2,
		    .imm = (int64_t)in);
		put_store(t, 3, out + i * 8);
	}
	STEP_TRY(isa_run(t));
	bringup_give_back(b);
	return BRINGUP_PASS;
}
