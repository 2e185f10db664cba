/* SPDX-License-Identifier: Apache-2.0 */
/* Cells of HBM that were made faulty do what cell.def says, and nothing else does. */
#include "tests/unit/sim/sim_test.h"

static struct t_sim t;

static int setup(void **state)
{
	(void)state;
	t_open(&t, "lanes=1");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	t_close(&t);
	return 0;
}

#define BIT (1ull << 3)
#define ALL (~0ull)
/* Words of HBM: the victim's, the second cell's. */
enum { V = 100, A = 200 };

static uint64_t word(unsigned at)
{
	uint64_t value;

	memcpy(&value, t.hbm + 8 * at, 8);
	return value;
}

static void store(unsigned at, uint64_t value)
{
	assert_int_equal(t_ask(&t, &t.dma, (struct hw_sqe){ .op = HW_FILL,
		.u.copy = { .src = value, .dst = T_HBM_VA + 8 * at, .bytes = 8 } }), 0);
}

static void spoil(unsigned kind, unsigned victim, unsigned by)
{
	assert_int_equal(t_admin(&t, HW_INJECT, HW_INJECT_CELL_BY, (uint64_t)by * 64 + 3), 0);
	assert_int_equal(t_admin(&t, HW_INJECT, HW_INJECT_CELL,
				 (uint64_t)kind << 56 | ((uint64_t)victim * 64 + 3)), 0);
}

static void mend(void)
{
	assert_int_equal(t_admin(&t, HW_INJECT, HW_INJECT_MEND, 0), 0);
}

/* Both words begin as 0; then stores, and what both read after each. */
static const struct story {
	unsigned kind;
	struct { unsigned at; uint64_t value, v, a; } step[5];
} stories[] = {
	{ HW_CELL_STUCK_0, { { V, ALL, ALL & ~BIT, 0 }, { V, 0, 0, 0 } } },
	{ HW_CELL_STUCK_1, { { V, ALL, ALL, 0 }, { V, 0, BIT, 0 } } },
	{ HW_CELL_NO_RISE, { { V, ALL, ALL & ~BIT, 0 }, { V, 0, 0, 0 } } },
	{ HW_CELL_NO_FALL, { { V, ALL, ALL, 0 }, { V, 0, BIT, 0 }, { V, ALL, ALL, 0 } } },
	{ HW_CELL_INVERT_BY_RISE, { { A, ALL, BIT, ALL }, { A, ALL, BIT, ALL },
		{ A, 0, BIT, 0 }, { V, ALL, ALL, 0 }, { A, BIT, ALL & ~BIT, BIT } } },
	{ HW_CELL_INVERT_BY_FALL, { { A, ALL, 0, ALL }, { A, 0, BIT, 0 }, { V, 0, 0, 0 },
		{ A, ALL & ~BIT, 0, ALL & ~BIT } } },
	{ HW_CELL_CLEAR_BY_RISE, { { V, ALL, ALL, 0 }, { A, ALL, ALL & ~BIT, ALL },
		{ V, ALL, ALL, ALL }, { A, 0, ALL, 0 } } },
	{ HW_CELL_SET_BY_RISE, { { A, ALL, BIT, ALL }, { V, 0, 0, ALL }, { A, 0, 0, 0 } } },
	{ HW_CELL_CLEAR_BY_FALL, { { V, ALL, ALL, 0 }, { A, ALL, ALL, ALL },
		{ A, 0, ALL & ~BIT, 0 } } },
	{ HW_CELL_SET_BY_FALL, { { A, ALL, 0, ALL }, { A, 0, BIT, 0 } } },
	{ HW_CELL_CLEAR_WHILE_0, { { V, ALL, ALL & ~BIT, 0 }, { A, ALL, ALL & ~BIT, ALL },
		{ V, ALL, ALL, ALL }, { A, 0, ALL & ~BIT, 0 } } },
	{ HW_CELL_SET_WHILE_0, { { V, 0, BIT, 0 }, { A, ALL, BIT, ALL }, { V, 0, 0, ALL } } },
	{ HW_CELL_CLEAR_WHILE_1, { { V, ALL, ALL, 0 }, { A, ALL, ALL & ~BIT, ALL },
		{ V, ALL, ALL & ~BIT, ALL } } },
	{ HW_CELL_SET_WHILE_1, { { V, 0, 0, 0 }, { A, BIT, BIT, BIT }, { V, 0, BIT, BIT } } },
	{ HW_CELL_NOWHERE_0, { { V, ALL, 0, 0 }, { A, ALL, 0, ALL } } },
	{ HW_CELL_NOWHERE_1, { { V, 5, ALL, 0 }, { A, ALL, ALL, ALL } } },
	{ HW_CELL_ELSEWHERE, { { V, 5, 5, 5 }, { A, 6, 6, 6 }, { V, 7, 7, 7 } } },
	{ HW_CELL_BOTH_AND, { { V, 5, 5, 5 }, { A, 6, 4, 6 }, { A, ALL, 5, ALL },
		{ V, 3, 3, 3 } } },
	{ HW_CELL_BOTH_OR, { { V, 5, 5, 5 }, { A, 6, 7, 6 }, { A, 0, 5, 0 }, { V, 3, 3, 3 } } },
};

static void each_kind_does_what_its_row_says(void **state)
{
	(void)state;
	for (unsigned i = 0; i < sizeof(stories) / sizeof(*stories); i++) {
		const struct story *s = &stories[i];

		store(V, 0);
		store(A, 0);
		spoil(s->kind, V, A);
		for (unsigned k = 0; k < 5 && s->step[k].at; k++) {
			store(s->step[k].at, s->step[k].value);
			if (word(V) != s->step[k].v || word(A) != s->step[k].a)
				fail_msg("kind %u, store %u: %llx %llx", s->kind, k,
					 (unsigned long long)word(V),
					 (unsigned long long)word(A));
		}
		mend();
		store(V, 0x1234);
		store(A, 0x5678);
		assert_int_equal(word(V), 0x1234);
		assert_int_equal(word(A), 0x5678);
	}
}

/* A fill is a store after the other, upwards: a victim above is written again. */
static void a_long_store_goes_upwards(void **state)
{
	(void)state;
	for (unsigned above = 0; above < 2; above++) {
		unsigned victim = above ? A : V, by = above ? V : A;

		store(V, 0);
		store(A, 0);
		spoil(HW_CELL_CLEAR_BY_RISE, victim, by);
		assert_int_equal(t_ask(&t, &t.dma, (struct hw_sqe){ .op = HW_FILL,
			.u.copy = { .src = ALL, .dst = T_HBM_VA, .bytes = 4096 } }), 0);
		assert_int_equal(word(victim), above ? ALL : ALL & ~BIT);
		assert_int_equal(word(by), ALL);
		mend();
	}
}

/* Programs' stores count one by one; what the host stores, when the device works next. */
static void programs_and_the_host_meet_them_too(void **state)
{
	static struct t_program p;

	(void)state;
	store(V, 0);
	spoil(HW_CELL_STUCK_1, V, A);
	t_program(&p);
	t_bind(&p, T_HBM_VA + 4096, 64, HW_BIND_WRITE);
	t_bind(&p, T_HBM_VA, 4096, HW_BIND_READ | HW_BIND_WRITE);
	t_scalar(&p, (struct isa_scalar){ .insn.op = ISA_ST, .elem = ELEM_U64, .binding = 1,
					  .imm = 8 * V });
	t_scalar(&p, (struct isa_scalar){ .insn.op = ISA_LD, .elem = ELEM_U64, .binding = 1,
					  .rd = 1, .imm = 8 * V });
	t_scalar(&p, (struct isa_scalar){ .insn.op = ISA_ST, .elem = ELEM_U64, .rb = 1 });
	t_halt(&p);
	assert_int_equal(t_run(&t, &p), 0);
	assert_int_equal(word(512), BIT);
	memset(t.hbm + 8 * V, 0, 8);
	assert_int_equal(t_ask(&t, &t.dma, (struct hw_sqe){ .op = HW_COPY,
		.u.copy = { T_HBM_VA + 8 * V, T_HBM_VA + 8 * A, 8 } }), 0);
	assert_int_equal(word(A), BIT);
	mend();
}

/* ---- rows ---- */

enum { ROW = HW_HBM_ROW_BYTES * HW_HBM_BANKS / 8 };	/* words to the next row of a bank */
#define OWN (5 * ROW + 7)

/* Loads from these words, as often and in this order. */
static void load(const unsigned *words, unsigned n)
{
	static struct t_program p;

	t_program(&p);
	t_bind(&p, T_HBM_VA, t.hbm_bytes, HW_BIND_READ);
	for (unsigned i = 0; i < n; i++)
		t_scalar(&p, (struct isa_scalar){ .insn.op = ISA_LD, .elem = ELEM_U64,
						  .imm = 8 * words[i], .rd = 1 });
	t_halt(&p);
	assert_int_equal(t_run(&t, &p), 0);
}

static void spoil_row(unsigned kind, unsigned most)
{
	assert_int_equal(t_admin(&t, HW_INJECT, HW_INJECT_CELL_BY, most), 0);
	assert_int_equal(t_admin(&t, HW_INJECT, HW_INJECT_CELL,
				 (uint64_t)kind << 56 | (OWN * 64 + 3)), 0);
}

/* What the cell's word holds, with these in the rows beside it, after three activations of them. */
static const struct { unsigned kind; uint64_t own, beside, then; } rows[] = {
	{ HW_CELL_ROW_LOSES, ALL, 0, ALL & ~BIT }, { HW_CELL_ROW_LOSES, ALL, ALL, ALL & ~BIT },
	{ HW_CELL_ROW_LOSES, 0, ALL, 0 }, { HW_CELL_ROW_GAINS, 0, 0, BIT },
	{ HW_CELL_ROW_GAINS, 0, ALL, BIT }, { HW_CELL_ROW_UNLIKE, 0, ALL, BIT },
	{ HW_CELL_ROW_UNLIKE, ALL, 0, ALL & ~BIT }, { HW_CELL_ROW_UNLIKE, 0, 0, 0 },
	{ HW_CELL_ROW_LIKE, 0, 0, BIT }, { HW_CELL_ROW_LIKE, ALL, 0, ALL },
	{ HW_CELL_ROW_LIKE, ALL, ALL, ALL & ~BIT },
};

static void rows_disturb_the_one_between(void **state)
{
	const unsigned loads[] = { OWN - ROW, OWN + ROW, OWN - ROW };

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		store(OWN, rows[i].own);
		store(OWN - ROW, rows[i].beside);
		store(OWN + ROW, rows[i].beside);
		spoil_row(rows[i].kind, 3);
		load(loads, 2);
		assert_true(word(OWN) == rows[i].own);
		load(&loads[2], 1);
		assert_true(word(OWN) == rows[i].then);
		/* Once is enough, and it is not mended by more. */
		load(loads, 3);
		assert_true(word(OWN) == rows[i].then);
		mend();
	}
}

static void only_activations_of_neighbours_count(void **state)
{
	static const struct { unsigned at[6]; bool flips; } cases[] = {
		{ { OWN - ROW, OWN + ROW, OWN - ROW, OWN + ROW }, true },
		/* The open row is not activated. */
		{ { OWN - ROW, OWN - ROW, OWN - ROW, OWN - ROW, OWN - ROW + 1, OWN - ROW }, false },
		/* One side with any other row of the bank, */
		{ { OWN + ROW, OWN + 9 * ROW, OWN + ROW, OWN + 9 * ROW, OWN + ROW }, true },
		/* but not of another bank, which leaves this one's open. */
		{ { OWN + ROW, OWN + ROW + 128, OWN + ROW, OWN + 128, OWN + ROW }, false },
		/* Nor rows further away. */
		{ { OWN + 2 * ROW, OWN - 2 * ROW, OWN + 2 * ROW, OWN - 2 * ROW, OWN + 2 * ROW },
		  false },
		/* Its own activation refreshes the row, by any of its words. */
		{ { OWN - ROW, OWN + ROW, OWN + 4, OWN - ROW, OWN + ROW }, false },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		unsigned n = 0;

		while (n < 6 && cases[i].at[n])
			n++;
		store(OWN, ALL);
		spoil_row(HW_CELL_ROW_LOSES, 3);
		load(cases[i].at, n);
		if ((word(OWN) != ALL) != cases[i].flips)
			fail_msg("case %u", i);
		mend();
	}
}

/* A store of the DMA engine to any part of the row, and to no other. */
static void stores_refresh_rows(void **state)
{
	const unsigned loads[] = { OWN - ROW, OWN + ROW };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		store(OWN, ALL);
		spoil_row(HW_CELL_ROW_LOSES, 3);
		load(loads, 2);
		store(i ? OWN + 128 : OWN + 1, ALL);
		load(loads, 2);
		assert_true((word(OWN) != ALL) == i);
		mend();
	}
	/* Good memory bears any number. */
	store(OWN, ALL);
	for (unsigned i = 0; i < 10; i++)
		load(loads, 2);
	assert_true(word(OWN) == ALL);
}

static void faults_stay_through_resets_until_mended(void **state)
{
	(void)state;
	spoil(HW_CELL_STUCK_1, V, A);
	sim_flr(t.dev);
	t_bring_up(&t);
	store(V, 0);
	assert_int_equal(word(V), BIT);
	mend();
	store(V, 0);
	assert_int_equal(word(V), 0);
	/* New memory is good. */
	spoil(HW_CELL_STUCK_1, V, A);
	sim_flr(t.dev);
	assert_int_equal(sim_hbm_renew(t.dev, NULL), 0);
	t_bring_up(&t);
	store(V, 0);
	assert_int_equal(word(V), 0);
}

static unsigned inject(unsigned what, uint64_t value)
{
	return t_admin(&t, HW_INJECT, what, value);
}

static void what_makes_no_sense_is_refused(void **state)
{
	const uint64_t bits = t.hbm_bytes * 8, stuck = (uint64_t)HW_CELL_STUCK_0 << 56;
	const uint64_t pair = (uint64_t)HW_CELL_SET_BY_RISE << 56;
	const uint64_t both = (uint64_t)HW_CELL_BOTH_OR << 56;

	(void)state;
	assert_int_equal(inject(HW_INJECT_CELL, 0), HW_ST_BAD_FIELD);
	assert_int_equal(inject(HW_INJECT_CELL, 24ull << 56), HW_ST_BAD_FIELD);
	assert_int_equal(inject(HW_INJECT_CELL, ALL), HW_ST_BAD_FIELD);
	assert_int_equal(inject(HW_INJECT_CELL, stuck | bits), HW_ST_BAD_FIELD);
	assert_int_equal(inject(HW_INJECT_CELL_BY, 0), 0);
	assert_int_equal(inject(HW_INJECT_CELL, (uint64_t)HW_CELL_ROW_LIKE << 56 | 64),
			 HW_ST_BAD_FIELD);
	assert_int_equal(inject(HW_INJECT_CELL_BY, 64), 0);
	assert_int_equal(inject(HW_INJECT_CELL, pair | 64), HW_ST_BAD_FIELD);
	assert_int_equal(inject(HW_INJECT_CELL, both | 65), HW_ST_BAD_FIELD);
	assert_int_equal(inject(HW_INJECT_CELL_BY, bits), 0);
	assert_int_equal(inject(HW_INJECT_CELL, pair | 64), HW_ST_BAD_FIELD);
	for (unsigned i = 0; i < 64; i++)
		assert_int_equal(inject(HW_INJECT_CELL, stuck | (bits - 1 - i)), 0);
	assert_int_equal(inject(HW_INJECT_CELL, stuck | 64), HW_ST_NO_ROOM);
	mend();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind_does_what_its_row_says),
		cmocka_unit_test(a_long_store_goes_upwards),
		cmocka_unit_test(programs_and_the_host_meet_them_too),
		cmocka_unit_test(rows_disturb_the_one_between),
		cmocka_unit_test(only_activations_of_neighbours_count),
		cmocka_unit_test(stores_refresh_rows),
		cmocka_unit_test(faults_stay_through_resets_until_mended),
		cmocka_unit_test(what_makes_no_sense_is_refused),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
