/* SPDX-License-Identifier: Apache-2.0 */
/* Loading and running programs: the scalar unit, and what the device refuses. */
#include "tests/unit/sim/sim_test.h"

#include <xmmintrin.h>

static struct t_sim t;
static struct t_program p;

#define RW (HW_BIND_READ | HW_BIND_WRITE)
#define DATA 65536u	/* HBM offset of the programs' binding */

static int setup(void **state)
{
	(void)state;
	t_open(&t, "lanes=1");
	return 0;
}

/* A model that checks looks at each instruction, so none of them runs in the short loop. */
static int setup_checking(void **state)
{
	(void)state;
	t_open(&t, "lanes=1,check");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	t_close(&t);
	return 0;
}

static void start(void)
{
	t_program(&p);
	t_bind(&p, T_HBM_VA + DATA, 4096, RW);
}

static void alu(unsigned op, unsigned fn, unsigned rd, unsigned ra, unsigned rb, int64_t imm)
{
	t_scalar(&p, (struct isa_scalar){ .insn.op = (uint16_t)op, .fn = (uint8_t)fn,
		.rd = (uint8_t)rd, .ra = (uint8_t)ra, .rb = (uint8_t)rb, .imm = imm });
}

static void store(unsigned elem, int64_t at, unsigned ra, unsigned rb)
{
	t_scalar(&p, (struct isa_scalar){ .insn.op = ISA_ST, .elem = (uint8_t)elem,
		.ra = (uint8_t)ra, .rb = (uint8_t)rb, .imm = at });
}

static void load(unsigned elem, int64_t at, unsigned rd)
{
	t_scalar(&p, (struct isa_scalar){ .insn.op = ISA_LD, .elem = (uint8_t)elem,
		.rd = (uint8_t)rd, .imm = at });
}

static int64_t result(unsigned i)
{
	int64_t v;

	memcpy(&v, t.hbm + DATA + 8 * i, 8);
	return v;
}

static void alu_follows_its_equations(void **state)
{
	static const struct { unsigned fn; int64_t a, b, want; } cases[] = {
		{ ISA_ALU_ADD, INT64_MAX, 1, INT64_MIN }, { ISA_ALU_SUB, 1, 3, -2 },
		{ ISA_ALU_MUL, 1ll << 62, 4, 0 }, { ISA_ALU_DIV, -7, 2, -3 },
		{ ISA_ALU_DIV, 5, 0, -1 }, { ISA_ALU_DIV, INT64_MIN, -1, INT64_MIN },
		{ ISA_ALU_DIV, 7, -1, -7 },
		{ ISA_ALU_REM, -7, 2, -1 }, { ISA_ALU_REM, 5, 0, 5 },
		{ ISA_ALU_REM, INT64_MIN, -1, 0 }, { ISA_ALU_MIN, -1, 1, -1 },
		{ ISA_ALU_MAX, -1, 1, 1 }, { ISA_ALU_AND, 12, 10, 8 },
		{ ISA_ALU_OR, 12, 10, 14 }, { ISA_ALU_XOR, 12, 10, 6 },
		{ ISA_ALU_SHL, 1, 63, INT64_MIN }, { ISA_ALU_SHL, 1, 64, 0 },
		{ ISA_ALU_SHR, -1, 63, 1 }, { ISA_ALU_SHR, -1, -1, 0 },
		{ ISA_ALU_SAR, -8, 1, -4 }, { ISA_ALU_SAR, -8, 99, -1 },
		{ ISA_ALU_SAR, -8, 64, -1 }, { ISA_ALU_SAR, 8, 64, 0 },
		{ ISA_ALU_EQ, 3, 3, 1 }, { ISA_ALU_NE, 3, 3, 0 },
		{ ISA_ALU_LT, -1, 0, 1 }, { ISA_ALU_LE, 1, 0, 0 },
		{ ISA_ALU_LTU, -1, 0, 0 },
	};
	unsigned n = sizeof(cases) / sizeof(cases[0]);

	(void)state;
	start();
	for (unsigned i = 0; i < n; i++) {
		t_li(&p, 1, cases[i].a);
		t_li(&p, 2, cases[i].b);
		alu(ISA_ALU, cases[i].fn, 3, 1, 2, 0);
		store(ELEM_S64, 16 * i, 0, 3);
		alu(ISA_ALUI, cases[i].fn, 3, 1, 0, cases[i].b);
		store(ELEM_S64, 16 * i + 8, 0, 3);
	}
	t_halt(&p);
	assert_int_equal(t_run(&t, &p), HW_ST_OK);
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(result(2 * i), cases[i].want);
		assert_int_equal(result(2 * i + 1), cases[i].want);
	}
}

static void loads_extend_and_stores_cut(void **state)
{
	static const unsigned elems[] = { ELEM_S8, ELEM_U8, ELEM_S16, ELEM_U16, ELEM_S32,
					  ELEM_U32, ELEM_S64, ELEM_PRED };
	static const int64_t want[] = { -2, 0xfe, -2, 0xfffe, -2, 0xfffffffe, -2, 1 };

	(void)state;
	memset(t.hbm + DATA, 0, 4096);
	start();
	t_li(&p, 1, -2);
	for (unsigned i = 0; i < 8; i++) {
		if (elems[i] == ELEM_PRED)
			t_li(&p, 1, 1);
		store(elems[i], 1024, 0, 1);
		load(elems[i], 1024, 2);
		store(ELEM_S64, 8 * i, 0, 2);
	}
	t_li(&p, 0, 99);	/* r0 stays 0 */
	store(ELEM_S64, 64, 0, 0);
	t_halt(&p);
	assert_int_equal(t_run(&t, &p), HW_ST_OK);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(result(i), want[i]);
	assert_int_equal(result(8), 0);
}

/* sum of 1..100 by a loop, doubled by a call */
static void loops_and_calls_work(void **state)
{
	(void)state;
	start();
	t_li(&p, 1, 100);
	alu(ISA_ALU, ISA_ALU_ADD, 2, 2, 1, 0);
	alu(ISA_ALUI, ISA_ALU_SUB, 1, 1, 0, 1);
	t_branch(&p, ISA_BNZ, 1, -48);
	t_branch(&p, ISA_BZ, 1, 48);
	t_branch(&p, ISA_JMP, 0, 0);	/* never */
	t_branch(&p, ISA_CALL, 0, 72);
	store(ELEM_S64, 0, 0, 2);
	t_halt(&p);
	alu(ISA_ALU, ISA_ALU_ADD, 2, 2, 2, 0);
	t_scalar(&p, (struct isa_scalar){ .insn.op = ISA_RET });
	assert_int_equal(t_run(&t, &p), HW_ST_OK);
	assert_int_equal(result(0), 10100);
}

/* r2 counts the calls of a function that calls itself until r1 is 0. */
static unsigned nest(int64_t calls)
{
	start();
	t_li(&p, 1, calls);
	t_branch(&p, ISA_CALL, 0, 72);
	store(ELEM_S64, 0, 0, 2);
	t_halt(&p);
	alu(ISA_ALUI, ISA_ALU_ADD, 2, 2, 0, 1);
	alu(ISA_ALUI, ISA_ALU_SUB, 1, 1, 0, 1);
	t_branch(&p, ISA_BZ, 1, 48);
	t_branch(&p, ISA_CALL, 0, -72);
	t_scalar(&p, (struct isa_scalar){ .insn.op = ISA_RET });
	return t_run(&t, &p);
}

static void calls_nest_as_deep_as_allowed(void **state)
{
	(void)state;
	assert_int_equal(nest(ISA_CALL_DEPTH), HW_ST_OK);
	assert_int_equal(result(0), ISA_CALL_DEPTH);
	assert_int_equal(nest(ISA_CALL_DEPTH + 1), HW_ST_STACK);
}

static void faults_name_the_instruction(void **state)
{
	(void)state;
	start();
	t_branch(&p, ISA_CALL, 0, 0);
	assert_int_equal(t_run(&t, &p), HW_ST_STACK);
	assert_int_equal(t.fault.pc, 0);
	start();
	t_li(&p, 1, 0);
	t_scalar(&p, (struct isa_scalar){ .insn.op = ISA_RET });
	assert_int_equal(t_run(&t, &p), HW_ST_STACK);
	assert_int_equal(t.fault.pc, 24);
	start();
	t_li(&p, 1, 0);
	assert_int_equal(t_run(&t, &p), HW_ST_PC);
	assert_int_equal(t.fault.pc, 24);
	start();
	t_scalar(&p, (struct isa_scalar){ .insn.op = ISA_TRAP, .imm = 1234 });
	assert_int_equal(t_run(&t, &p), HW_ST_PROGRAM_TRAP);
	assert_int_equal(t.fault.va, 1234);
	assert_int_equal(t.fault.ctx, t.ctx);
	assert_int_equal(t.fault.queue, t.work.id);
	assert_true(t.fault.number > 0);
}

static void dynamic_addresses_are_checked(void **state)
{
	static const struct { int64_t reg; unsigned status; } cases[] = {
		{ 0, HW_ST_OK }, { 4088, HW_ST_OK }, { 4089, HW_ST_BOUNDS },
		{ 4096, HW_ST_BOUNDS }, { -8, HW_ST_BOUNDS }, { INT64_MAX, HW_ST_BOUNDS },
		{ INT64_MIN, HW_ST_BOUNDS }, { 4, HW_ST_ALIGNMENT },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		start();
		t_li(&p, 1, cases[i].reg);
		store(ELEM_U64, 0, 1, 2);
		t_halt(&p);
		assert_int_equal(t_run(&t, &p), cases[i].status);
		if (!cases[i].status)
			continue;
		assert_int_equal(t.fault.pc, 24);
		assert_int_equal(t.fault.va, (uint64_t)cases[i].reg);
		assert_int_equal(t.fault.binding, 0);
		assert_int_equal(t.fault.is_write, 1);
		assert_int_equal(t.fault.bytes, 4096);
	}
}

static void refused_at(size_t offset)
{
	assert_int_equal(t_run(&t, &p), HW_ST_BAD_PROGRAM);
	assert_int_equal(t.refused_at, offset);
}

static void bad_branches_do_not_load(void **state)
{
	static const int64_t targets[] = { -1, 8, 23, -48, 48, 1 << 20, INT64_MIN,
					   INT64_MAX };

	(void)state;
	for (unsigned i = 0; i < sizeof(targets) / sizeof(targets[0]); i++)
		for (unsigned op = ISA_JMP; op <= ISA_CALL; op++) {
			start();
			t_li(&p, 1, 0);
			t_branch(&p, op, 1, targets[i]);
			refused_at(24);
		}
}

static void bad_lengths_do_not_load(void **state)
{
	static const uint32_t lengths[] = { 0, 8, 16, 25, 32, 48, 1u << 31, UINT32_MAX };

	(void)state;
	for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct isa_insn in = { ISA_LI, 0, lengths[i] };

		start();
		t_li(&p, 1, 0);
		t_li(&p, 1, 0);
		memcpy(p.code + 24, &in, sizeof(in));
		refused_at(24);
	}
	start();
	t_halt(&p);
	p.bytes = 16;
	refused_at(0);
	p.bytes = 20;
	assert_int_equal(t_run(&t, &p), HW_ST_BAD_FIELD);
	p.bytes = 0;
	assert_int_equal(t_run(&t, &p), HW_ST_BAD_FIELD);
}

static void tensor_lengths_follow_their_counts(void **state)
{
	struct { struct isa_tensor head; struct isa_operand op[2]; } vec;

	(void)state;
	memset(&vec, 0, sizeof(vec));
	vec.head.insn = (struct isa_insn){ ISA_VEC, 0, sizeof(vec) };
	for (unsigned n_in = 0; n_in < 256; n_in += 3) {
		vec.head.body.n_in = (uint8_t)n_in;
		vec.head.body.n_uop = (uint16_t)(n_in * 257);
		start();
		t_add(&p, &vec, sizeof(vec));
		assert_int_equal(t_run(&t, &p), HW_ST_BAD_PROGRAM);
	}
}

static void bad_fields_do_not_load(void **state)
{
	static const struct isa_scalar bad[] = {
		{ .insn.op = 0x7f }, { .insn.op = 0xffff }, { .insn.op = 0 },
		{ .insn = { ISA_LI, 1, 0 } },
		{ .insn.op = ISA_LI, .rd = 64 }, { .insn.op = ISA_LI, .zero = 1 },
		{ .insn.op = ISA_ALU, .fn = ISA_ALU_COUNT }, { .insn.op = ISA_ALU, .ra = 255 },
		{ .insn.op = ISA_LD, .elem = ELEM_F32 }, { .insn.op = ISA_LD, .elem = 0 },
		{ .insn.op = ISA_LD, .elem = 255 }, { .insn.op = ISA_LD, .elem = ELEM_TOKEN },
		{ .insn.op = ISA_LD, .rd = 1, .elem = 255 }, { .insn.op = ISA_ST, .elem = 255 },
		{ .insn.op = ISA_LD, .elem = ELEM_S64, .binding = 1 },
		{ .insn.op = ISA_LD, .elem = ELEM_S64, .binding = 0xffff },
		{ .insn.op = ISA_LD, .elem = ELEM_S64, .imm = 4096 },
		{ .insn.op = ISA_LD, .elem = ELEM_S64, .imm = 4092 },
		{ .insn.op = ISA_LD, .elem = ELEM_S64, .imm = -8 },
		{ .insn.op = ISA_LD, .elem = ELEM_S64, .imm = 12 },
		{ .insn.op = ISA_LD, .elem = ELEM_S64, .imm = INT64_MAX - 7 },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		start();
		t_scalar(&p, bad[i]);
		refused_at(0);
	}
	start();
	p.want[0].access = HW_BIND_READ;
	store(ELEM_U8, 0, 0, 1);
	refused_at(0);
	p.want[0].access = HW_BIND_WRITE;
	assert_int_equal(t_run(&t, &p), HW_ST_PC);
}

static void reserved_instructions_are_not_built(void **state)
{
	_Alignas(8) uint8_t insn[sizeof(struct isa_tensor)] = { 0 };

	(void)state;
	*(struct isa_insn *)insn = (struct isa_insn){ ISA_CHOL, 0, sizeof(insn) };
	start();
	t_add(&p, insn, sizeof(insn));
	assert_int_equal(t_run(&t, &p), HW_ST_NOT_BUILT);
}

static void bad_program_requests_are_refused(void **state)
{
	struct hw_program h = { .code_va = T_HBM_VA, .code_bytes = 24,
				.bindings_iova = T_IOVA, .ctx = (uint16_t)t.ctx };
	struct hw_program bad[] = { h, h, h, h, h, h, h };
	static const unsigned want[] = { HW_ST_BAD_FIELD, HW_ST_BAD_ADDRESS, HW_ST_NO_SUCH_ID,
		HW_ST_BAD_ADDRESS, HW_ST_BAD_FIELD, HW_ST_BAD_ADDRESS, HW_ST_BAD_FIELD };

	(void)state;
	bad[0].zero = 1;
	bad[1].code_va = 1 << 20;
	bad[2].ctx = 63;
	bad[3].n_bindings = 1;
	bad[3].bindings_iova = 0;
	bad[4].code_bytes = UINT64_MAX;
	bad[5].code_va = T_HBM_VA + t.hbm_bytes - 16;
	bad[6].n_bindings = ISA_MAX_BINDINGS + 1;
	for (unsigned i = 0; i < 7; i++) {
		memcpy(t_args(&t), &bad[i], sizeof(h));
		assert_int_equal(t_admin(&t, HW_PROGRAM_CREATE, 0, 0), want[i]);
	}
	assert_int_equal(t_unload(&t, 0), HW_ST_NO_SUCH_ID);
	assert_int_equal(t_unload(&t, 12345), HW_ST_NO_SUCH_ID);
	assert_int_equal(t_admin(&t, HW_PROGRAM_DESTROY, 0, UINT64_MAX), HW_ST_NO_SUCH_ID);
}

static void code_is_checked_once_on_a_copy(void **state)
{
	uint32_t id;

	(void)state;
	start();
	t_li(&p, 1, 5);
	store(ELEM_S64, 0, 0, 1);
	t_halt(&p);
	assert_int_equal(t_load(&t, &p, &id), 0);
	memset(t.hbm + t.hbm_bytes - T_CODE_ROOM, 0xff, p.bytes);
	memset(t.hbm + DATA, 0, 8);
	assert_int_equal(t_ask(&t, &t.work, t_execute(&t, &p, id)), HW_ST_OK);
	assert_int_equal(result(0), 5);
	assert_int_equal(t_unload(&t, id), 0);
	assert_int_equal(t_ask(&t, &t.work, t_execute(&t, &p, id)), HW_ST_BAD_DESCRIPTOR);
	assert_int_equal(t_reset(&t, &t.work), 0);
}

static void bindings_are_checked_at_execute(void **state)
{
	static const struct { uint64_t va, bytes; unsigned status; } cases[] = {
		{ T_HBM_VA + DATA, 4096, HW_ST_OK },
		{ T_HBM_VA + DATA, 8192, HW_ST_OK },
		{ T_HBM_VA + DATA, 4095, HW_ST_BINDING },
		{ T_HBM_VA + DATA + 8, 4096, HW_ST_ALIGNMENT },
		{ T_HBM_VA - 64, 4096, HW_ST_MAP },
		{ 0, 4096, HW_ST_MAP },
		{ UINT64_MAX - 63, 4096, HW_ST_MAP },
		{ T_HBM_VA + DATA, 1ull << 62, HW_ST_MAP },
		{ T_HBM_VA + DATA, UINT64_MAX, HW_ST_BINDING },
		{ T_HOST_VA, 4096, HW_ST_OK },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		start();
		t_li(&p, 1, 77);
		store(ELEM_S64, 0, 0, 1);
		t_halt(&p);
		p.bind[0] = (struct hw_binding){ cases[i].va, cases[i].bytes };
		assert_int_equal(t_run(&t, &p), cases[i].status);
		if (cases[i].status) {
			assert_int_equal(t.fault.binding, 0);
			assert_int_equal(t.fault.va, cases[i].va);
		}
	}
	assert_int_equal(*(int64_t *)t.window, 77);
}

static void programs_belong_to_their_context(void **state)
{
	unsigned other;
	uint32_t id;

	(void)state;
	assert_int_equal(t_admin(&t, HW_CTX_CREATE, 0, 0), 0);
	other = (unsigned)t.cqe.value;
	assert_int_equal(t_map(&t, other, T_HBM_VA, 0, t.hbm_bytes, 0), 0);
	start();
	t_halt(&p);
	assert_int_equal(t_load_in(&t, &p, other, &id), 0);
	assert_int_equal(t_ask(&t, &t.work, t_execute(&t, &p, id)), HW_ST_BAD_DESCRIPTOR);
	assert_int_equal(t_reset(&t, &t.work), 0);
	assert_int_equal(t_admin(&t, HW_CTX_DESTROY, other, 0), 0);
	assert_int_equal(t_unload(&t, id), HW_ST_NO_SUCH_ID);
}

static void many_programs_get_their_own_ids(void **state)
{
	static uint32_t id[1000];

	(void)state;
	start();
	t_halt(&p);
	for (unsigned i = 0; i < 1000; i++) {
		assert_int_equal(t_load(&t, &p, &id[i]), 0);
		if (i)
			assert_int_not_equal(id[i], id[i - 1]);
	}
	assert_int_equal(t_unload(&t, id[500]), 0);
	assert_int_equal(t_load(&t, &p, &id[500]), 0);
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(t_unload(&t, id[i]), 0);
}

/* A user's thread lends itself to inline work and gets its arithmetic back. */
static void inline_work_keeps_the_callers_arithmetic(void **state)
{
	unsigned before = _mm_getcsr(), odd = (before & ~0x6000u) | 0x2000u;

	(void)state;
	_mm_setcsr(odd);
	start();
	p.flags = HW_INLINE;
	t_halt(&p);
	assert_int_equal(t_run(&t, &p), HW_ST_OK);
	assert_int_equal(_mm_getcsr() & 0xffc0u, odd & 0xffc0u);
	_mm_setcsr(before);
}

int main(void)
{
	const struct CMUnitTest slow[] = {
		cmocka_unit_test(alu_follows_its_equations),
		cmocka_unit_test(loads_extend_and_stores_cut),
		cmocka_unit_test(loops_and_calls_work),
		cmocka_unit_test(faults_name_the_instruction),
	};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(alu_follows_its_equations),
		cmocka_unit_test(loads_extend_and_stores_cut),
		cmocka_unit_test(loops_and_calls_work),
		cmocka_unit_test(calls_nest_as_deep_as_allowed),
		cmocka_unit_test(faults_name_the_instruction),
		cmocka_unit_test(dynamic_addresses_are_checked),
		cmocka_unit_test(bad_branches_do_not_load),
		cmocka_unit_test(bad_lengths_do_not_load),
		cmocka_unit_test(tensor_lengths_follow_their_counts),
		cmocka_unit_test(bad_fields_do_not_load),
		cmocka_unit_test(reserved_instructions_are_not_built),
		cmocka_unit_test(bad_program_requests_are_refused),
		cmocka_unit_test(code_is_checked_once_on_a_copy),
		cmocka_unit_test(bindings_are_checked_at_execute),
		cmocka_unit_test(programs_belong_to_their_context),
		cmocka_unit_test(many_programs_get_their_own_ids),
		cmocka_unit_test(inline_work_keeps_the_callers_arithmetic),
	};

	return cmocka_run_group_tests(tests, setup, teardown) +
		cmocka_run_group_tests(slow, setup_checking, teardown);
}
