/* SPDX-License-Identifier: Apache-2.0 */
/* The lanes: every part runs once, on a lane of its own, whoever calls. */
#include "tests/unit/sim/sim_test.h"

#include <pthread.h>
#include <sched.h>

#include "hal/sim/sim_internal.h"

#define N 100003u

struct job {
	atomic_uchar hits[N];
	atomic_bool in_lane[64];
	atomic_uint lanes_seen;
	unsigned grain;
	atomic_bool failed;
};

static void work(void *arg, uint64_t begin, uint64_t end, unsigned lane)
{
	struct job *j = arg;

	if (atomic_exchange(&j->in_lane[lane], true) || begin % j->grain ||
	    (end % j->grain && end != N))
		atomic_store(&j->failed, true);
	atomic_fetch_or(&j->lanes_seen, 1u << lane);
	for (uint64_t i = begin; i < end; i++)
		atomic_fetch_add_explicit(&j->hits[i], 1, memory_order_relaxed);
	atomic_store(&j->in_lane[lane], false);
}

static void check(struct job *j)
{
	assert_false(j->failed);
	for (unsigned i = 0; i < N; i++)
		assert_int_equal(j->hits[i], 1);
}

static void every_part_runs_once(void **state)
{
	static struct job j;

	(void)state;
	for (unsigned lanes = 1; lanes <= 5; lanes++) {
		struct sim_pool *pool;

		assert_int_equal(sim_pool_create(lanes, true, &pool, NULL), 0);
		for (unsigned round = 0; round < 60; round++) {
			memset(&j, 0, sizeof(j));
			j.grain = round % 7 * 1000 + 1;
			sim_pool_run(pool, N, j.grain, round % 6 + 1, work, &j);
			check(&j);
			assert_int_equal(j.lanes_seen >> lanes, 0);
		}
		sim_pool_destroy(pool);
	}
}

static void sleepers_wake(void **state)
{
	static struct job j;
	struct sim_pool *pool;

	(void)state;
	assert_int_equal(sim_pool_create(3, false, &pool, NULL), 0);
	for (unsigned round = 0; round < 20; round++) {
		nanosleep(&(struct timespec){ 0, 500000 }, NULL);
		memset(&j, 0, sizeof(j));
		j.grain = 10;
		sim_pool_run(pool, N, j.grain, 3, work, &j);
		check(&j);
	}
	sim_pool_destroy(pool);
}

struct caller {
	struct sim_pool *pool;
	struct job job;
	pthread_t thread;
};

static void *call(void *arg)
{
	struct caller *c = arg;

	for (unsigned round = 0; round < 40; round++) {
		memset(&c->job, 0, sizeof(c->job));
		c->job.grain = 500;
		sim_pool_run(c->pool, N, 500, 4, work, &c->job);
		for (unsigned i = 0; i < N; i++)
			if (c->job.hits[i] != 1)
				return c;
	}
	return c->job.failed ? c : NULL;
}

static void callers_at_once_do_not_meet(void **state)
{
	static struct caller c[4];
	struct sim_pool *pool;
	void *failed;

	(void)state;
	assert_int_equal(sim_pool_create(4, true, &pool, NULL), 0);
	for (unsigned i = 0; i < 4; i++) {
		c[i].pool = pool;
		assert_int_equal(pthread_create(&c[i].thread, NULL, call, &c[i]), 0);
	}
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(pthread_join(c[i].thread, &failed), 0);
		assert_null(failed);
	}
	sim_pool_destroy(pool);
}

/* Each run but the first takes a lane away from jobs; nobody has less than its own. */
static void runs_beside_each_other_share_the_lanes(void **state)
{
	static struct job j;
	struct sim_pool *pool;
	unsigned n, left;

	(void)state;
	assert_int_equal(sim_pool_create(4, true, &pool, NULL), 0);
	for (n = 1; n <= 6; n++) {
		sim_pool_begin_run(pool);
		left = n > 4 ? 1 : 5 - n;
		for (unsigned round = 0; round < 20; round++) {
			memset(&j, 0, sizeof(j));
			j.grain = left > 1 ? 1000 : N;	/* alone it is one part */
			sim_pool_run(pool, N, 1000, 4, work, &j);
			check(&j);
			assert_int_equal(j.lanes_seen >> left, 0);
		}
	}
	while (n-- > 1)
		sim_pool_end_run(pool);
	sim_pool_destroy(pool);
}

static void runs_that_ended_leave_their_lanes(void **state)
{
	static struct job j = { .grain = 10 };
	struct t_program p;
	struct t_sim t;

	(void)state;
	t_open(&t, "lanes=2");
	t_program(&p);
	t_halt(&p);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(t_run(&t, &p), 0);
	t_program(&p);
	t_scalar(&p, (struct isa_scalar){ .insn.op = ISA_TRAP });
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(t_run(&t, &p), HW_ST_PROGRAM_TRAP);
	for (unsigned i = 0; i < 2000 && !(j.lanes_seen >> 1); i++)
		sim_pool_run(t.sim->pool, N, 10, 2, work, &j);
	assert_true(j.lanes_seen >> 1);
	t_close(&t);
}

static void *sleep_once(void *arg)
{
	atomic_uint *word = arg;

	while (!atomic_load(word))
		sim_futex_wait_here(word, 0);
	return NULL;
}

/* Threads whose only CPU is the waker's, and those of others, get up all the same. */
static void who_sleeps_on_any_cpu_is_woken(void **state)
{
	cpu_set_t all, one;
	pthread_t thread;
	atomic_uint word;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &all))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		atomic_init(&word, 0);
		assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
		assert_int_equal(pthread_create(&thread, NULL, sleep_once, &word), 0);
		nanosleep(&(struct timespec){ 0, 500000 }, NULL);
		atomic_store(&word, 1);
		sim_futex_wake_elsewhere(&word);
		assert_int_equal(pthread_join(thread, NULL), 0);
		assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
		atomic_store(&word, 0);
		assert_int_equal(pthread_create(&thread, NULL, sleep_once, &word), 0);
		nanosleep(&(struct timespec){ 0, 500000 }, NULL);
		atomic_store(&word, 1);
		sim_futex_wake_elsewhere(&word);
		assert_int_equal(pthread_join(thread, NULL), 0);
	}
}

static void count_call(void *arg, uint64_t begin, uint64_t end, unsigned lane)
{
	unsigned *calls = arg;

	(void)lane;
	assert_int_equal(begin, 0);
	assert_int_equal(end, 1000);
	++*calls;
}

/* sim_parallel() keeps little work on the caller. */
static void little_work_is_not_shared(void **state)
{
	struct t_sim t;
	struct sim_core core;
	struct sim_run run = { 0 };
	unsigned calls = 0;

	(void)state;
	t_open(&t, "lanes=2");
	assert_int_equal(sim_core_init(&core, &t.sim->cpu, t.sim->pool, &t.dev->watch), 0);
	run.core = &core;
	run.cpu = &t.sim->cpu;
	sim_parallel(&run, 1000, 1, SIM_PARALLEL_NS - 1, count_call, &calls);
	sim_parallel(&run, 1000, 1000, 1000000, count_call, &calls);
	sim_parallel(&run, 0, 1, 1000000, count_call, &calls);
	assert_int_equal(calls, 2);
	sim_core_free(&core);
	t_close(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_part_runs_once),
		cmocka_unit_test(sleepers_wake),
		cmocka_unit_test(callers_at_once_do_not_meet),
		cmocka_unit_test(runs_beside_each_other_share_the_lanes),
		cmocka_unit_test(runs_that_ended_leave_their_lanes),
		cmocka_unit_test(who_sleeps_on_any_cpu_is_woken),
		cmocka_unit_test(little_work_is_not_shared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
