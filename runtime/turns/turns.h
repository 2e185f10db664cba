/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RT_TURNS_H
#define RT_TURNS_H
/* Launches that call the host, and the functions that they call. A part of rt_internal.h. */
#include <pthread.h>
#include <stdatomic.h>

#include "runtime/rt.h"

/* A launch that calls the host, waiting for its turn (turns.c). Its maker's, who sets it before
 * it is queued; in the list until fn runs, and not looked at from then on. */
struct rt_turn {
	void (*fn)(void *arg);
	void *arg;
	bool is_nested;		/* made by a function of the host: waits for nobody */
	struct rt_turn *next;
};

/* Of a device; all under the lock. Threads are made when they are needed and stay until the
 * end. One of them is without work, or will soon look, whenever the list is not empty. */
struct rt_turns {
	pthread_mutex_t lock;
	pthread_cond_t cond;	/* a turn came, or ended, or entered a function; or quit */
	struct rt_turn *first, **last;	/* in the order in which they came */
	struct rt_running *running;	/* on the stacks of their threads */
	struct rt_turn_thread *threads;	/* owned */
	unsigned n_idle;	/* threads that wait */
	bool quit;		/* they end when they find nothing to do */
};

/* ---- turns.c: takes rt_turns.lock ---- */
void rt_turns_start(struct rt_turns *t);
/* Nothing is in its list, nor runs. Waits for its threads. */
void rt_turns_end(struct rt_turns *t);
/* Runs turn->fn when it is its turn, on one of its threads, where it may wait for anything but
 * another turn. On failure fn is not called. */
int rt_turn_queue(struct rt_turns *t, struct rt_turn *turn, struct err *err);
/* On the thread of a turn: around each function of the framework. */
void rt_turn_begin_function(void);
void rt_turn_end_function(void);
/* Whether this thread is in such a function. */
bool rt_turn_is_nested(void);
/* Runs fn here, as a part of a launch whose turn it is already, perhaps on another device. */
void rt_turn_beside(struct rt_turns *t, void (*fn)(void *arg), void *arg);

#endif
