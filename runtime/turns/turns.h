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
	struct rt_caller *by;	/* that function, a reference until fn returns; NULL: none */
	struct rt_turn *next;
};

/* A call of a function of the host, which has launched something. Does not change but for refs and
 * that it returns. */
struct rt_caller {
	atomic_uint refs;
	atomic_bool has_returned;
	const struct rt_turns *turns;	/* of the device where its program has stopped for it */
	struct rt_event *hold;	/* of its program's members that meet, a reference; or NULL */
	struct rt_caller *by;	/* the one that launched its program, a reference; NULL: none */
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
/* That function, a reference; NULL: in none, or out of memory. */
struct rt_caller *rt_turn_caller(void);
void rt_caller_unref(struct rt_caller *k);	/* NULL: nothing */
/* By which the launch was made whose turn this thread has; no reference. NULL: by none. */
struct rt_caller *rt_turn_by(void);
/* Runs fn here, as a part of a launch whose turn it is already, perhaps on another device: one
 * of members that meet and hold their devices, which was made `by` a function or NULL. */
void rt_turn_beside(struct rt_turns *t, struct rt_event *hold, struct rt_caller *by,
		    void (*fn)(void *arg), void *arg);

#endif
