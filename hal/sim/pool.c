/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Worker threads. One job runs at a time; its parts are taken from an atomic
 * counter, so lanes that are slow take fewer. The caller is lane 0 and works too.
 * A second caller that finds the pool busy works alone. Workers spin briefly
 * after a job, since the next instruction often follows at once, then sleep.
 */
#include <immintrin.h>
#include <stdlib.h>

#include "hal/sim/sim_internal.h"

struct job {
	void (*fn)(void *arg, uint64_t begin, uint64_t end, unsigned lane);
	void *arg;
	uint64_t n, grain;
	_Alignas(64) atomic_uint_fast64_t next;
};

struct sim_pool {
	unsigned lanes;		/* the caller's included */
	pthread_t *threads;
	unsigned n_threads;
	pthread_mutex_t lock;	/* over sleeping and waking */
	pthread_cond_t wake;
	unsigned asleep;
	bool quit;
	atomic_flag busy;	/* a job is being run */
	struct job job;
	_Alignas(64) atomic_uint turn;		/* counts jobs */
	_Alignas(64) atomic_uint working;	/* workers not yet done with this one */
};

unsigned sim_enter_arithmetic(void)
{
	unsigned saved = _mm_getcsr();

	/* Round to nearest, all exceptions masked, FTZ (bit 15) and DAZ (bit 6). */
	_mm_setcsr(0x1f80u | 0x8040u);
	return saved;
}

void sim_leave_arithmetic(unsigned saved)
{
	_mm_setcsr(saved);
}

static void take_parts(struct job *j, unsigned lane)
{
	for (;;) {
		uint64_t begin = atomic_fetch_add_explicit(&j->next, j->grain,
							   memory_order_relaxed);
		uint64_t end = begin + j->grain;

		if (begin >= j->n)
			return;
		j->fn(j->arg, begin, end < j->n ? end : j->n, lane);
	}
}

/* Waits for a turn other than `seen`: spins, then sleeps. False: quit. */
static bool await_turn(struct sim_pool *p, unsigned seen)
{
	int64_t until = clock_ns() + SIM_SPIN_NS;
	bool quit;

	do {
		for (int i = 0; i < 64; i++) {
			if (atomic_load_explicit(&p->turn, memory_order_acquire) != seen)
				return !p->quit;
			_mm_pause();
		}
	} while (clock_ns() < until);
	pthread_mutex_lock(&p->lock);
	p->asleep++;
	while (atomic_load(&p->turn) == seen && !p->quit)
		pthread_cond_wait(&p->wake, &p->lock);
	p->asleep--;
	quit = p->quit;
	pthread_mutex_unlock(&p->lock);
	return !quit;
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
	sim_enter_arithmetic();
	while (await_turn(s.pool, seen)) {
		seen++;
		take_parts(&s.pool->job, s.lane);
		atomic_fetch_sub_explicit(&s.pool->working, 1, memory_order_release);
	}
	return NULL;
}

void sim_pool_run(struct sim_pool *p, uint64_t n, uint64_t grain,
		  void (*fn)(void *arg, uint64_t begin, uint64_t end, unsigned lane),
		  void *arg)
{
	if (!p->n_threads || atomic_flag_test_and_set(&p->busy)) {
		fn(arg, 0, n, 0);
		return;
	}
	p->job.fn = fn;
	p->job.arg = arg;
	p->job.n = n;
	p->job.grain = grain;
	atomic_store_explicit(&p->job.next, 0, memory_order_relaxed);
	atomic_store_explicit(&p->working, p->n_threads, memory_order_relaxed);
	pthread_mutex_lock(&p->lock);
	atomic_fetch_add_explicit(&p->turn, 1, memory_order_release);
	if (p->asleep)
		pthread_cond_broadcast(&p->wake);
	pthread_mutex_unlock(&p->lock);
	take_parts(&p->job, 0);
	for (unsigned spins = 0; atomic_load_explicit(&p->working, memory_order_acquire);
	     spins++) {
		if (spins > 10000)
			sched_yield();
		else
			_mm_pause();
	}
	atomic_flag_clear(&p->busy);
}

int sim_pool_create(unsigned lanes, struct sim_pool **out, struct err *err)
{
	struct sim_pool *p = aligned_alloc(64, (sizeof(*p) + 63) & ~(size_t)63);

	if (!p)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory for the lanes");
	*p = (struct sim_pool){ .lanes = lanes, .busy = ATOMIC_FLAG_INIT };
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->wake, NULL);
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
	pthread_mutex_lock(&p->lock);
	p->quit = true;
	atomic_fetch_add(&p->turn, 1);
	pthread_cond_broadcast(&p->wake);
	pthread_mutex_unlock(&p->lock);
	for (unsigned i = 0; i < p->n_threads; i++)
		pthread_join(p->threads[i], NULL);
	pthread_mutex_destroy(&p->lock);
	pthread_cond_destroy(&p->wake);
	free(p->threads);
	free(p);
}
