/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_POOL_H
#define SIM_POOL_H
/*
 * The model's worker threads, one pool for all devices of a struct sim, and the futex calls
 * that its threads sleep by.
 *
 * A lane is a thread's place in a job: the caller is lane 0, workers have the numbers from
 * 1 on. Lanes index per-lane memory, so no two threads of one job share any. The pool runs
 * one job at a time; a caller that finds it busy does its whole job alone, as lane 0, so
 * nobody waits for another engine's work. Private to hal/sim.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "hal/base/err.h"

#define SIM_SPIN_NS 20000	/* how long a thread polls before it sleeps */

struct sim_pool;

/* Starts lanes - 1 threads. spins: the process has more CPUs than one, so that a thread may
 * poll while another makes progress. The caller destroys the pool. RESOURCE_EXHAUSTED if
 * there is no memory or a thread can't be started; then none is left. */
int sim_pool_create(unsigned lanes, bool spins, struct sim_pool **out, struct err *err);
/* Joins the threads. No job runs any more. NULL is fine. */
void sim_pool_destroy(struct sim_pool *pool);
/* Calls fn for [0, n), in parts of `grain` but for the last, on at most `lanes` lanes, and
 * returns after all parts. Any thread may call it, but fn must not: the pool is busy. fn is
 * called at once by several threads, never by two with the same lane. */
void sim_pool_run(struct sim_pool *pool, uint64_t n, uint64_t grain, unsigned lanes,
		  void (*fn)(void *arg, uint64_t begin, uint64_t end, unsigned lane),
		  void *arg);

/* From here to there the calling thread runs a program, and waits for nobody. Jobs have a lane
 * fewer for each such thread but one. */
void sim_pool_begin_run(struct sim_pool *pool);
void sim_pool_end_run(struct sim_pool *pool);

/* FUTEX_WAKE: at most n threads that wait on word. */
void sim_futex_wake(atomic_uint *word, unsigned n);
/* Blocks while *word is `seen`, as one of those that sleep on this CPU; may return early. */
void sim_futex_wait_here(atomic_uint *word, unsigned seen);
/* Wakes one that waits on word so, rather one of another CPU than the caller's: kernels that do
 * not look far for an idle CPU let it go on where it slept, and there it waits for the caller. */
void sim_futex_wake_elsewhere(atomic_uint *word);
/* Polls for SIM_SPIN_NS; whether *word left `seen` meanwhile. */
bool sim_spin(const atomic_uint *word, unsigned seen);

#endif
