/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns of a loop: what a product keeps of one for the next (hal/sim/core/kept.c), and that nobody
 * sees it, whatever changes meanwhile and by whom.
 */
#include "hal/sim/sim_internal.h"
#include "tests/unit/turns/turns.h"

#define TURNS 6
#define CHANGED 4	/* the first turn that sees b changed */

enum { A, B, OUT, NEW, OVER, N_BINDINGS };	/* OVER: b's memory once more, if it is there */

/* How b changes. */
enum change {
	NOTHING, COPY_ALL, COPY_FIRST, COPY_LAST, COPY_BY_REGISTER, STORE, STORE_BY_REGISTER,
	COPY_OVER, COPY_BESIDE, STORE_BESIDE, N_CHANGES
};

struct product {
	int64_t m, n, k;
	uint8_t elem;
	bool turned;		/* b's columns lie along k */
	unsigned b_access;
	enum change change;
	bool waits, once;	/* has an RWAIT, which is satisfied; has no loop */
};

static uint64_t seed = 41;

static uint64_t next_random(void)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return seed >> 33;
}

static int64_t bytes_of(const struct product *p)
{
	return elem_bytes(p->elem);
}

/* b has an element before it and one behind. */
static int64_t b_bytes(const struct product *p)
{
	return (p->n * p->k + 2) * bytes_of(p);
}

static void put_copy(struct t_program *code, const struct product *p, unsigned to, unsigned reg,
		     int64_t first, int64_t count)
{
	int64_t each = bytes_of(p);

	t_add(code, &(struct isa_copy){ .insn = { .op = ISA_COPY,
						  .bytes = sizeof(struct isa_copy) },
		.rank = 1, .elem_bytes = (uint8_t)each, .dim = { count, 1, 1, 1, 1, 1, 1, 1 },
		.src = { .elem = p->elem, .binding = NEW, .offset = first * each,
			 .stride = { each } },
		.dst = { .elem = p->elem, .binding = (uint16_t)to, .reg = (uint8_t)reg,
			 .offset = first * each, .stride = { each } } }, sizeof(struct isa_copy));
}

static void put_change(struct t_program *code, const struct product *p)
{
	int64_t count = p->n * p->k, each = bytes_of(p);
	uint8_t word = each == 4 ? ELEM_U32 : ELEM_U16;

	switch (p->change) {
	case COPY_ALL: put_copy(code, p, B, 0, 1, count); break;
	case COPY_FIRST: put_copy(code, p, B, 0, 1, 1); break;
	case COPY_LAST: put_copy(code, p, B, 0, count, 1); break;
	case COPY_BY_REGISTER: put_copy(code, p, B, 4, 1, count); break;
	case COPY_OVER: put_copy(code, p, OVER, 0, 1, count); break;
	case COPY_BESIDE: put_copy(code, p, B, 0, 0, 1); break;
	case STORE:
	case STORE_BY_REGISTER:
	case STORE_BESIDE:
		t_scalar(code, (struct isa_scalar){ .insn.op = ISA_LD, .rd = 5, .elem = word,
			.binding = NEW, .imm = count * each });
		t_scalar(code, (struct isa_scalar){ .insn.op = ISA_ST, .rb = 5, .elem = word,
			.binding = B, .ra = p->change == STORE_BY_REGISTER ? 4 : 0,
			.imm = (count + (p->change == STORE_BESIDE)) * each });
		break;
	default: break;
	}
}

static void put_product(struct t_program *code, const struct product *p)
{
	int64_t each = bytes_of(p);
	struct isa_mm mm = { .insn = { .op = ISA_MM }, .acc = ELEM_F32, .k = p->k,
		.a_k_stride = each, .b_k_stride = p->turned ? each : p->n * each,
		.a = { .elem = p->elem, .binding = A, .stride = { p->k * each } },
		.b = { .elem = p->elem, .binding = B, .offset = each,
		       .stride = { 0, p->turned ? p->k * each : each } },
		.body = { .rank = 2, .n_out = 1, .dim = { p->m, p->n, 1, 1, 1, 1, 1, 1 } } };
	struct isa_operand out = { .elem = ELEM_F32, .binding = OUT, .reg = 3,
				   .stride = { 4 * p->n, 4 } };

	mm.insn.bytes = sizeof(mm) + sizeof(out);
	t_add(code, &mm, sizeof(mm));
	t_add(code, &out, sizeof(out));
}

/* Turn by turn a product into a place of its own; behind turn CHANGED - 1 b changes. */
static void write_program(struct t_program *code, const struct product *p, int64_t turns)
{
	size_t loop, skip;

	code->bytes = 0;
	t_li(code, 1, 0);
	t_li(code, 3, 0);
	t_li(code, 4, 0);
	if (p->waits)
		t_scalar(code, (struct isa_scalar){ .insn.op = ISA_RWAIT, .elem = ELEM_U64,
						    .binding = NEW });
	loop = code->bytes;
	put_product(code, p);
	t_scalar(code, (struct isa_scalar){ .insn.op = ISA_ALUI, .fn = ISA_ALU_ADD, .rd = 1,
					    .ra = 1, .imm = 1 });
	t_scalar(code, (struct isa_scalar){ .insn.op = ISA_ALUI, .fn = ISA_ALU_ADD, .rd = 3,
					    .ra = 3, .imm = turns > TURNS ? 0 : 4 * p->m * p->n });
	t_scalar(code, (struct isa_scalar){ .insn.op = ISA_ALUI, .fn = ISA_ALU_EQ, .rd = 2,
					    .ra = 1, .imm = CHANGED });
	skip = t_branch(code, ISA_BZ, 2, 0);
	put_change(code, p);
	((struct isa_scalar *)(void *)(code->code + skip))->imm = (int64_t)(code->bytes - skip);
	if (!p->once) {
		t_scalar(code, (struct isa_scalar){ .insn.op = ISA_ALUI, .fn = ISA_ALU_LT, .rd = 2,
						    .ra = 1, .imm = turns });
		t_branch(code, ISA_BNZ, 2, (int64_t)loop - (int64_t)code->bytes);
	}
	t_halt(code);
}

/* Small whole numbers, so that sums are exact; of bf16 as of f32. */
static void fill(const struct product *p, int64_t count, uint8_t *to)
{
	for (int64_t i = 0; i < count; i++) {
		float x = (float)(next_random() % 9) - 4;
		uint32_t bits;

		memcpy(&bits, &x, 4);
		bits >>= p->elem == ELEM_BF16 ? 16 : 0;
		memcpy(to + i * bytes_of(p), &bits, (size_t)bytes_of(p));
	}
}

static float at(const struct product *p, const uint8_t *from, int64_t i)
{
	uint32_t bits = 0;
	float x;

	memcpy(&bits, from + i * bytes_of(p), (size_t)bytes_of(p));
	bits <<= p->elem == ELEM_BF16 ? 16 : 0;
	memcpy(&x, &bits, 4);
	return x;
}

static void expect(const struct product *p, const uint8_t *a, const uint8_t *b, const float *out,
		   unsigned turn)
{
	int64_t down = p->turned ? 1 : p->n, across = p->turned ? p->k : 1;

	for (int64_t i = 0; i < p->m; i += i + 1 == p->m || p->m < 4 ? 1 : p->m - 1 - i % 2)
		for (int64_t j = 0; j < p->n; j++) {
			float want = 0;

			for (int64_t k = 0; k < p->k; k++)
				want += at(p, a, i * p->k + k) *
					at(p, b, 1 + k * down + j * across);
			if (out[i * p->n + j] != want)
				fail_msg("%lld x %lld x %lld, change %u, turn %u, row %lld, column "
					 "%lld: %g, not %g", (long long)p->m, (long long)p->n,
					 (long long)p->k, p->change, turn, (long long)i,
					 (long long)j, (double)out[i * p->n + j], (double)want);
		}
}

/* What b is after it changed. */
static void change(const struct product *p, uint8_t *b, const uint8_t *new)
{
	size_t each = (size_t)bytes_of(p), count = (size_t)(p->n * p->k);

	switch (p->change) {
	case COPY_ALL:
	case COPY_BY_REGISTER:
	case COPY_OVER: memcpy(b + each, new + each, each * count); break;
	case COPY_FIRST: memcpy(b + each, new + each, each); break;
	case COPY_LAST:
	case STORE:
	case STORE_BY_REGISTER: memcpy(b + each * count, new + each * count, each); break;
	default: break;
	}
}

/* ---- on a core, where what is kept can be looked at ---- */

static struct t_program code;

/* Runs p on one path; the flag of its product afterwards, or -1: nothing is kept. */
static int run(const struct product *p, const char *path, unsigned lanes)
{
	struct hw_program_binding want[N_BINDINGS] = { { 0 } };
	struct sim_run state = { .pc = 0 };
	struct sim_program *program;
	atomic_bool stop = false;
	struct err err = { 0 };
	struct sim *sim;
	struct sim_core core;
	uint64_t detail;
	size_t bytes[N_BINDINGS] = { (size_t)(p->m * p->k * bytes_of(p)), (size_t)b_bytes(p),
		(size_t)(TURNS * p->m * p->n * 4), (size_t)b_bytes(p), (size_t)b_bytes(p) };
	uint8_t *memory[N_BINDINGS], *before;
	int flag;

	assert_int_equal(sim_create(&(struct sim_options){ .n_devices = 1, .lanes = lanes,
		.isa_path = path, .hbm_bytes = T_HBM_BYTES }, &sim, &err), 0);
	assert_int_equal(sim_core_init(&core, &sim->cpu, sim->pool,
				       &sim_device(sim, 0)->watch), 0);
	for (unsigned i = 0; i < N_BINDINGS; i++) {
		memory[i] = i == OVER ? memory[B] : malloc(bytes[i]);
		want[i] = (struct hw_program_binding){ bytes[i], i == B ? p->b_access :
			HW_BIND_READ | HW_BIND_WRITE, 0 };
		core.base[i] = memory[i];
		core.bytes[i] = bytes[i];
	}
	fill(p, p->m * p->k, memory[A]);
	fill(p, p->n * p->k + 2, memory[B]);
	fill(p, p->n * p->k + 2, memory[NEW]);
	write_program(&code, p, TURNS);
	assert_int_equal(sim_program_load(&sim->cpu, code.code, code.bytes, want,
					  p->change == COPY_OVER ? N_BINDINGS : OVER, &program,
					  &detail), 0);
	before = malloc(bytes[B]);
	memcpy(before, memory[B], bytes[B]);
	assert_int_equal(sim_core_run(&core, program, &stop, &state), 0);
	flag = state.kept ? state.kept[0] : -1;
	for (unsigned turn = 0; turn < (p->once ? 1 : TURNS); turn++) {
		if (turn == CHANGED)
			change(p, before, memory[NEW]);
		expect(p, memory[A], before, (const float *)(const void *)memory[OUT] +
		       turn * p->m * p->n, turn);
	}
	free(before);
	sim_program_free(program);
	for (unsigned i = 0; i < OVER; i++)
		free(memory[i]);
	sim_core_free(&core);
	sim_destroy(sim);
	return flag;
}

static bool has_path(const char *path)
{
	return !strcmp(path, "portable") ||
	       (!strcmp(path, "avx2") ? __builtin_cpu_supports("avx2") :
					__builtin_cpu_supports("avx512bw"));
}

/* Sizes on both sides of a line, of a block, of a panel along k, of the most rows. */
static void panels_are_kept_and_give_the_same(void **state)
{
	static const int64_t m[] = { 41, 63, 64, 96, 200, 512 }, n[] = { 49, 65, 512, 700 },
			     k[] = { 1, 100, 256, 257, 600 };
	static const char *const paths[] = { "portable", "avx2", "avx512" };

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		for (unsigned x = 0; has_path(paths[i]) && x < 24; x++) {
			struct product p = { m[x % 6], n[next_random() % 4], k[next_random() % 5],
				x % 4 == 1 ? ELEM_BF16 : ELEM_F32, x % 3 == 1,
				HW_BIND_READ | (x % 2 ? HW_BIND_WRITE : 0), NOTHING, false, false };

			assert_int_equal(run(&p, paths[i], 1 + x % 2), SIM_KEPT_READY);
		}
}

static void a_change_is_seen_by_the_next_turn(void **state)
{
	(void)state;
	for (unsigned c = COPY_ALL; c < N_CHANGES; c++)
		for (unsigned x = 0; x < 4; x++) {
			struct product p = { 64, x % 2 ? 700 : 33, x < 2 ? 100 : 300,
				x == 3 ? ELEM_BF16 : ELEM_F32, x == 1,
				HW_BIND_READ | (c == COPY_OVER ? 0 : HW_BIND_WRITE),
				(enum change)c, false, false };
			int flag = run(&p, NULL, 2);

			/* Turns 4 and 5 keep anew; where b is bound twice nothing is kept, and what
			 * lies beside b makes nobody forget. */
			assert_int_equal(flag, c == COPY_OVER ? -1 : SIM_KEPT_READY);
		}
}

/* Where that would do nothing, or might be wrong. */
static void what_is_not_kept(void **state)
{
	static const struct product good = { 64, 512, 256, ELEM_F32, false, HW_BIND_READ, NOTHING,
					     false, false };
	struct product p = good;

	(void)state;
	assert_int_equal(run(&p, NULL, 2), SIM_KEPT_READY);
	p.once = true;
	assert_int_equal(run(&p, NULL, 2), -1);
	p = good;
	p.m = 513;
	assert_int_equal(run(&p, NULL, 2), -1);
	p = good;
	p.m = 16;	/* b is read where it lies */
	assert_int_equal(run(&p, NULL, 2), -1);
	p.m = 17;
	assert_int_equal(run(&p, NULL, 2), SIM_KEPT_READY);
	p = (struct product){ 64, 32, 256, ELEM_F32, false, HW_BIND_READ, NOTHING, false, false };
	assert_int_equal(run(&p, NULL, 2), -1);	/* and so is what has few rows and columns */
	p.m = 65;
	assert_int_equal(run(&p, NULL, 2), SIM_KEPT_READY);
	p = good;
	p.n = 2049;
	p.k = 1024;
	assert_int_equal(run(&p, NULL, 2), -1);
	p.n = 2048;
	assert_int_equal(run(&p, NULL, 2), SIM_KEPT_READY);
}

/* ---- through the door ---- */

static struct t_sim t;

#define AT(i) (((i) + 1u) << 22)	/* of binding i of a tenant, in HBM */
#define ROOM (8u << 22)		/* of a tenant */

/* Binds p's memory from `base` of HBM on, filled anew. */
static void place(const struct product *p, uint64_t base, int64_t turns)
{
	static const unsigned access[] = { HW_BIND_READ, HW_BIND_READ, HW_BIND_WRITE,
					   HW_BIND_READ };
	uint64_t bytes[] = { (uint64_t)(p->m * p->k * bytes_of(p)), (uint64_t)b_bytes(p),
			     (uint64_t)((turns > TURNS ? 1 : TURNS) * p->m * p->n * 4),
			     (uint64_t)b_bytes(p) };

	t_program(&code);
	for (unsigned i = A; i <= NEW; i++)
		t_bind(&code, T_HBM_VA + base + AT(i), bytes[i],
		       i == B ? p->b_access : access[i]);
	fill(p, p->m * p->k, t.hbm + base + AT(A));
	fill(p, p->n * p->k + 2, t.hbm + base + AT(B));
	fill(p, p->n * p->k + 2, t.hbm + base + AT(NEW));
	write_program(&code, p, turns);
}

/* A program that waits may be written to meanwhile: here nobody does, and it ends. */
static void programs_that_wait_keep_nothing(void **state)
{
	struct product p = { 64, 512, 256, ELEM_F32, false, HW_BIND_READ, NOTHING, true, false };
	struct hw_program_binding want[OVER];
	struct sim_program *program;
	uint64_t detail;

	(void)state;
	t_open(&t, "lanes=2");
	for (unsigned waits = 0; waits < 2; waits++) {
		p.waits = waits;
		place(&p, 0, TURNS);
		memcpy(want, code.want, sizeof(want));
		assert_int_equal(sim_program_load(&t.sim->cpu, code.code, code.bytes, want, OVER,
						  &program, &detail), 0);
		assert_int_equal(program->kept > 0, !waits);
		sim_program_free(program);
		assert_int_equal(t_run(&t, &code), 0);
		for (unsigned turn = 0; turn < TURNS; turn++)
			expect(&p, t.hbm + AT(A), t.hbm + AT(B), (const float *)(const void *)
			       (t.hbm + AT(OUT)) + turn * p.m * p.n, turn);
	}
	t_close(&t);
}

/* Two contexts, one engine: each takes the other's place many times, with other weights in the
 * same room. */
static void others_on_the_core_leave_each_their_own(void **state)
{
	const struct product p[2] = { { 64, 512, 256, ELEM_F32, false, HW_BIND_READ, NOTHING, false,
					false },
				      { 40, 256, 512, ELEM_F32, true, HW_BIND_READ, NOTHING, false,
					false } };
	struct t_ring ring[2];
	uint32_t id[2];

	(void)state;
	t_open(&t, "lanes=2");
	for (unsigned i = 0; i < 2; i++) {
		struct hw_sqe sqe;
		unsigned ctx;

		assert_int_equal(t_admin(&t, HW_CTX_CREATE, 0, 0), 0);
		ctx = (unsigned)t.cqe.value;
		assert_int_equal(t_map(&t, ctx, T_HBM_VA, 0, t.hbm_bytes, HW_MAP_WRITE), 0);
		assert_int_equal(t_map(&t, ctx, T_HOST_VA, T_IOVA + T_WINDOW * HW_PAGE,
				       T_WINDOW_PAGES * HW_PAGE, HW_MAP_WRITE | HW_MAP_HOST), 0);
		assert_int_equal(t_queue(&t, &ring[i], (struct hw_queue){ .ctx = (uint16_t)ctx,
			.cls = HW_CLASS_COMPUTE, .priority = 1, .vector = HW_NO_VECTOR }), 0);
		place(&p[i], i * ROOM, 1000);
		assert_int_equal(t_load_in(&t, &code, ctx, &id[i]), 0);
		sqe = t_execute(&t, &code, id[i]);
		memcpy(t.window + i * HW_PAGE, code.bind, sizeof(code.bind));
		sqe.u.execute.bindings = T_HOST_VA + i * HW_PAGE;
		t_put(&t, &ring[i], sqe);
	}
	for (unsigned i = 0; i < 2; i++)
		t_ring_bell(&t, &ring[i]);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(t_take(&t, &ring[i]), 0);
		expect(&p[i], t.hbm + i * ROOM + AT(A), t.hbm + i * ROOM + AT(B),
		       (const float *)(const void *)(t.hbm + i * ROOM + AT(OUT)), 999);
	}
	t_close(&t);
}

/* A faulty cell of b that a store of the output changes, turn after turn. */
static void a_cell_that_changes_by_itself_is_seen(void **state)
{
	struct product p = { 64, 64, 64, ELEM_F32, false, HW_BIND_READ, NOTHING, false, false };
	uint64_t victim = AT(B) * 8 + 8 * 4 + 31, by = (AT(OUT) + 64 * 64 * 4 * 2) * 8 + 31;
	uint8_t *before;

	(void)state;
	t_open(&t, "lanes=2");
	place(&p, 0, TURNS);
	/* All of the output's signs rise where sums are below 0. */
	for (int64_t i = 0; i < p.m * p.k; i++)
		memcpy(t.hbm + AT(A) + 4 * i, &(float){ 1 }, 4);
	for (int64_t i = 0; i < p.n * p.k + 2; i++)
		memcpy(t.hbm + AT(B) + 4 * i, &(float){ -1 }, 4);
	memset(t.hbm + AT(OUT), 0, (size_t)(TURNS * p.m * p.n * 4));
	before = malloc((size_t)b_bytes(&p));
	memcpy(before, t.hbm + AT(B), (size_t)b_bytes(&p));
	assert_int_equal(t_admin(&t, HW_INJECT, HW_INJECT_CELL_BY, by), 0);
	assert_int_equal(t_admin(&t, HW_INJECT, HW_INJECT_CELL,
				 (uint64_t)HW_CELL_INVERT_BY_RISE << 56 | victim), 0);
	assert_int_equal(t_run(&t, &code), 0);
	for (unsigned turn = 0; turn < TURNS; turn++) {
		/* Turn 2 stores the sign that inverts b's first one. */
		if (turn == 3)
			memcpy(before + 4, &(float){ 1 }, 4);
		expect(&p, t.hbm + AT(A), before, (const float *)(const void *)
		       (t.hbm + AT(OUT)) + turn * p.m * p.n, turn);
	}
	free(before);
	t_close(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(panels_are_kept_and_give_the_same),
		cmocka_unit_test(a_change_is_seen_by_the_next_turn),
		cmocka_unit_test(what_is_not_kept),
		cmocka_unit_test(programs_that_wait_keep_nothing),
		cmocka_unit_test(others_on_the_core_leave_each_their_own),
		cmocka_unit_test(a_cell_that_changes_by_itself_is_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
