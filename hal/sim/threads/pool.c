/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Worker threads. One job runs at a time; its parts are taken from an atomic
 * counter, so lanes that are slow take fewer. The caller is lane 0 and works too; a
 * second caller that finds the pool busy works alone. Lanes are as many as CPUs by default, so each
 * program that runs beside the caller's takes one away: a worker that shares its CPU with
 * another run is waited for as long as that one's time slice.
 *
 * `entry` is the whole protocol, one atomic word: its low bits count the workers inside
 * the job, OPEN says whether one more may enter, the high half numbers the job. A worker
 * that wakes late finds the job closed and the caller gone: nobody ever waits for a
 * sleeping thread. Workers spin briefly after a job, since the next instruction often
 * follows at once, then sleep on `turn`, a futex.
 */
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hal/base/clock.h"
#include "hal/base/cpu.h"
#include "hal/sim/threads/pool.h"

#define OPEN ((uint64_t)1 << 31)
#define INSIDE (OPEN - 1)
#define TURN ((uint64_t)1 << 32)
#define PAUSES 4096	/* before the caller sleeps for the last worker */

struct job {
	void (*fn)(void *arg, uint64_t begin, uint64_t end, unsigned lane);
	void *arg;
	uint64_t n, grain;
	unsigned workers;	/* that may enter */
	_Alignas(64) _Atomic uint64_t next;
};

struct sim_pool {
	unsigned lanes;		/* the caller's included */
	bool spins;		/* another CPU can make progress meanwhile */
	pthread_t *threads;
	unsigned n_threads;
	atomic_bool quit;
	atomic_flag busy;	/* a job is being run */
	struct job job;
	_Alignas(64) _Atomic uint64_t entry;
	_Alignas(64) atomic_uint turn;	/* futex: counts jobs */
	atomic_uint asleep;
	_Alignas(64) atomic_uint left;	/* futex: counts last workers leaving */
	atomic_bool caller_sleeps;
	_Alignas(64) atomic_uint n_runs;	/* programs that run now */
};

static void futex_wait(atomic_uint *word, unsigned seen)
{
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

void sim_futex_wake(atomic_uint *word, unsigned n)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
}

/* The CPU's bit, which it may share with others. */
static uint32_t this_cpu(void)
{
	return 1u << (unsigned)sched_getcpu() % 32;
}

void sim_futex_wait_here(atomic_uint *word, unsigned seen)
{
	syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, seen, NULL, NULL, this_cpu());
}

void sim_futex_wake_elsewhere(atomic_uint *word)
{
	if (syscall(SYS_futex, word, FUTEX_WAKE_BITSET_PRIVATE, 1, NULL, NULL, ~this_cpu()) <= 0)
		sim_futex_wake(word, 1);
}

bool sim_spin(const atomic_uint *word, unsigned seen)
{
	int64_t began = clock_ns(), now = began;

	do {
		/* The thread that it waits for may wait for this very CPU: engines of chips that
		 * meet are more than there are CPUs. */
		if (now != began)
			sched_yield();
		for (int i = 0; i < 64; i++) {
			if (atomic_load_explicit(word, memory_order_acquire) != seen)
				return true;
			cpu_relax();
		}
		now = clock_ns();
	} while (now - began < SIM_SPIN_NS);
	return false;
}

static void take_parts(struct job *j, unsigned lane)
{
	for (;;) {
		uint64_t begin = atomic_fetch_add_explicit(&j->next, j->grain,
							   memory_order_relaxed);

		if (begin >= j->n)
			return;
		j->fn(j->arg, begin, j->n - begin < j->grain ? j->n : begin + j->grain,
		      lane);
	}
}

static bool enter(struct sim_pool *p)
{
	uint64_t entry = atomic_load(&p->entry);

	/* The job's fields may be read after entering, `workers` too: a worker too
	 * many leaves again. */
	while (entry & OPEN)
		if (atomic_compare_exchange_weak(&p->entry, &entry, entry + 1))
			return true;
	return false;
}

static void leave(struct sim_pool *p)
{
	uint64_t entry = atomic_fetch_sub(&p->entry, 1) - 1;

	if (entry & (INSIDE | OPEN))
		return;
	atomic_fetch_add(&p->left, 1);
	if (atomic_load(&p->caller_sleeps))
		sim_futex_wake(&p->left, 1);
}

static void await_turn(struct sim_pool *p, unsigned seen)
{
	if (p->spins && sim_spin(&p->turn, seen))
		return;
	atomic_fetch_add(&p->asleep, 1);
	while (atomic_load(&p->turn) == seen)
		futex_wait(&p->turn, seen);
	atomic_fetch_sub(&p->asleep, 1);
}

struct start {
	struct sim_pool *pool;
	unsigned lane;
};

static void *work(void *arg)
{
	struct start s = *(struct start *)arg;
	unsigned seen = 0;

	free(arg);
	cpu_enter_arithmetic();
	for (;;) {
		await_turn(s.pool, seen);
		if (atomic_load(&s.pool->quit))
			return NULL;
		seen = atomic_load(&s.pool->turn);
		if (!enter(s.pool))
			continue;
		if (s.lane <= s.pool->job.workers)
			take_parts(&s.pool->job, s.lane);
		leave(s.pool);
	}
}

/* Closes the job and waits for the workers inside. */
static void join_workers(struct sim_pool *p)
{
	unsigned spins = 0, seen;

	atomic_fetch_and(&p->entry, ~OPEN);
	while (atomic_load(&p->entry) & INSIDE) {
		if (p->spins && spins++ < PAUSES) {
			cpu_relax();
			continue;
		}
		atomic_store(&p->caller_sleeps, true);
		seen = atomic_load(&p->left);
		if (atomic_load(&p->entry) & INSIDE)
			futex_wait(&p->left, seen);
		atomic_store(&p->caller_sleeps, false);
	}
}

void sim_pool_begin_run(struct sim_pool *p)
{
	atomic_fetch_add_explicit(&p->n_runs, 1, memory_order_relaxed);
}

void sim_pool_end_run(struct sim_pool *p)
{
	atomic_fetch_sub_explicit(&p->n_runs, 1, memory_order_relaxed);
}

/* How many lanes the other runs leave to a caller. */
static unsigned lanes_left(const struct sim_pool *p)
{
	unsigned n = atomic_load_explicit(&p->n_runs, memory_order_relaxed);

	return n < 2 ? p->lanes : n < p->lanes ? p->lanes + 1 - n : 1;
}

void sim_pool_run(struct sim_pool *p, uint64_t n, uint64_t grain, unsigned lanes,
		  void (*fn)(void *arg, uint64_t begin, uint64_t end, unsigned lane),
		  void *arg)
{
	unsigned left = lanes_left(p);

	if (lanes > left)
		lanes = left;
	if (lanes < 2 || !p->n_threads ||
	    atomic_flag_test_and_set_explicit(&p->busy, memory_order_acquire)) {
		fn(arg, 0, n, 0);
		return;
	}
	p->job.fn = fn;
	p->job.arg = arg;
	p->job.n = n;
	p->job.grain = grain;
	p->job.workers = lanes - 1;
	atomic_store_explicit(&p->job.next, 0, memory_order_relaxed);
	atomic_fetch_add(&p->entry, TURN | OPEN);
	atomic_fetch_add(&p->turn, 1);
	/* Sleepers are not numbered: with some lanes left out, wake them all. */
	if (atomic_load(&p->asleep))
		sim_futex_wake(&p->turn, INT_MAX);
	take_parts(&p->job, 0);
	join_workers(p);
	atomic_flag_clear_explicit(&p->busy, memory_order_release);
}

int sim_pool_create(unsigned lanes, bool spins, struct sim_pool **out, struct err *err)
{
	struct sim_pool *p = aligned_alloc(64, (sizeof(*p) + 63) & ~(size_t)63);

	if (!p)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory for the lanes");
	*p = (struct sim_pool){ .lanes = lanes, .spins = spins, .busy = ATOMIC_FLAG_INIT };
	p->threads = calloc(lanes, sizeof(*p->threads));
	for (unsigned i = 1; p->threads && i < lanes; i++) {
		struct start *s = malloc(sizeof(*s));

		if (!s)
			break;
		*s = (struct start){ p, i };
		if (pthread_create(&p->threads[p->n_threads], NULL, work, s)) {
			free(s);
			break;
		}
		p->n_threads++;
	}
	if (!p->threads || p->n_threads + 1 != lanes) {
		sim_pool_destroy(p);
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "could not start %u lanes; "
			       "ask for fewer: TESSERA_SIM=lanes=1", lanes);
	}
	*out = p;
	return 0;
}

void sim_pool_destroy(struct sim_pool *p)
{
	if (!p)
		return;
	atomic_store(&p->quit, true);
	atomic_fetch_add(&p->turn, 1);
	sim_futex_wake(&p->turn, INT_MAX);
	for (unsigned i = 0; i < p->n_threads; i++)
		pthread_join(p->threads[i], NULL);
	free(p->threads);
	free(p);
}
