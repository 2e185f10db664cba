/* SPDX-License-Identifier: Apache-2.0 */
/* The threads that run the engines of all chips: none has to wait for a program of another
 * chip, however many of these there are and however long they run. */
#include <pthread.h>
#include <sched.h>

#include "tests/unit/sim/sim_test.h"

#define N 8
#define TURNS 500

static struct t_sim t[N];
static struct t_program p[N], forever[N];
static uint32_t id[N], endless[N];

/* Adds 1 to a word of its HBM. */
static void load_counter(unsigned chip)
{
	t_program(&p[chip]);
	t_bind(&p[chip], T_HBM_VA, 64, HW_BIND_READ | HW_BIND_WRITE);
	t_scalar(&p[chip], (struct isa_scalar){ .insn.op = ISA_LD, .rd = 1, .elem = ELEM_U64 });
	t_scalar(&p[chip], (struct isa_scalar){ .insn.op = ISA_ALUI, .fn = ISA_ALU_ADD, .rd = 1,
						.ra = 1, .imm = 1 });
	t_scalar(&p[chip], (struct isa_scalar){ .insn.op = ISA_ST, .elem = ELEM_U64, .rb = 1 });
	t_halt(&p[chip]);
	assert_int_equal(t_load(&t[chip], &p[chip], &id[chip]), 0);
}

/* Says in the word behind that one that it began. */
static void load_endless(unsigned chip)
{
	struct t_program *e = &forever[chip];

	t_program(e);
	t_bind(e, T_HBM_VA, 64, HW_BIND_READ | HW_BIND_WRITE);
	t_li(e, 1, 1);
	t_scalar(e, (struct isa_scalar){ .insn.op = ISA_ST, .elem = ELEM_U64, .rb = 1, .imm = 8 });
	t_branch(e, ISA_JMP, 0, 0);
	assert_int_equal(t_load(&t[chip], e, &endless[chip]), 0);
}

static int setup(void **state)
{
	(void)state;
	t_open_chips(t, N, "devices=8,lanes=1,hbm=16M");
	for (unsigned i = 0; i < N; i++) {
		load_counter(i);
		load_endless(i);
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	t_close_chips(t, N);
	return 0;
}

static uint64_t counted(unsigned chip)
{
	return __atomic_load_n((uint64_t *)(void *)t[chip].hbm, __ATOMIC_ACQUIRE);
}

static void count(unsigned chip)
{
	uint64_t before = counted(chip);

	assert_int_equal(t_ask(&t[chip], &t[chip].work, t_execute(&t[chip], &p[chip],
								  id[chip])), 0);
	assert_int_equal(counted(chip), before + 1);
}

static uint64_t *began(unsigned chip)
{
	return (uint64_t *)(void *)t[chip].hbm + 1;
}

static void put_endless(unsigned chip)
{
	__atomic_store_n(began(chip), 0, __ATOMIC_RELEASE);
	t_put(&t[chip], &t[chip].work, t_execute(&t[chip], &forever[chip], endless[chip]));
}

static void end_endless(unsigned chip)
{
	int64_t limit = clock_after(T_ANSWER_NS);

	/* One that has not begun would be dropped. */
	while (!__atomic_load_n(began(chip), __ATOMIC_ACQUIRE) && clock_ns() < limit)
		sched_yield();
	assert_int_equal(__atomic_load_n(began(chip), __ATOMIC_ACQUIRE), 1);
	assert_int_equal(t_reset(&t[chip], &t[chip].work), 0);
	assert_int_equal(t_take(&t[chip], &t[chip].work), HW_ST_RESET);
}

/* All but one run for ever, and whichever is left works; so do copies of all. */
static void programs_that_run_on_keep_no_chip_waiting(void **state)
{
	(void)state;
	for (unsigned free = 0; free < N; free += 3) {
		for (unsigned i = 0; i < N; i++)
			if (i != free) {
				put_endless(i);
				t_ring_bell(&t[i], &t[i].work);
			}
		for (unsigned k = 0; k < 3; k++)
			count(free);
		for (unsigned i = 0; i < N; i++)
			assert_int_equal(t_ask(&t[i], &t[i].dma, (struct hw_sqe){ .op = HW_COPY,
				.u.copy = { T_HBM_VA, T_HBM_VA + 4096, 8 } }), 0);
		for (unsigned i = 0; i < N; i++)
			if (i != free)
				end_endless(i);
	}
}

/* All bells at once, of chips whose programs run on and of the one behind them. */
static void who_is_rung_for_last_is_run_too(void **state)
{
	(void)state;
	for (unsigned k = 0; k < 4; k++) {
		uint64_t before = counted(N - 1);

		for (unsigned i = 0; i < N - 1; i++)
			put_endless(i);
		t_put(&t[N - 1], &t[N - 1].work, t_execute(&t[N - 1], &p[N - 1], id[N - 1]));
		for (unsigned i = 0; i < N; i++)
			t_ring_bell(&t[i], &t[i].work);
		assert_int_equal(t_take(&t[N - 1], &t[N - 1].work), 0);
		assert_int_equal(counted(N - 1), before + 1);
		for (unsigned i = 0; i < N - 1; i++)
			end_endless(i);
	}
}

static void *ring_now_and_then(void *arg)
{
	unsigned first = (unsigned)(uintptr_t)arg;
	uint64_t seed = first + 1;

	for (unsigned k = 0; k < TURNS; k++) {
		unsigned chip = first + k % (N / 2);
		int64_t until;

		count(chip);
		/* About as long as threads look for work before they sleep. */
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		until = clock_ns() + (int64_t)(seed >> 33) % 30000;
		while (clock_ns() < until)
			;
	}
	return NULL;
}

static void no_bell_is_missed_by_who_gives_up_looking(void **state)
{
	pthread_t other;

	(void)state;
	assert_int_equal(pthread_create(&other, NULL, ring_now_and_then,
					(void *)(uintptr_t)(N / 2)), 0);
	ring_now_and_then(NULL);
	assert_int_equal(pthread_join(other, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(programs_that_run_on_keep_no_chip_waiting, setup,
						teardown),
		cmocka_unit_test_setup_teardown(who_is_rung_for_last_is_run_too, setup, teardown),
		cmocka_unit_test_setup_teardown(no_bell_is_missed_by_who_gives_up_looking, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
