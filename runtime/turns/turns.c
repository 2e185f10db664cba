/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose turn it is: launches that call the host, each on a thread while it runs. They run in
 * the order in which they came, one at a time on each device, so that what they print comes in
 * that order; but a function of the framework may take as long as it likes, and may launch and
 * wait for others itself. So a launch that was made in such a function starts at once, and any
 * other does so when all that run have been in their functions for PATIENCE.
 *
 * There is always a thread without work while launches wait. Threads end with their client.
 */
#include <stdlib.h>

#include "hal/base/clock.h"
#include "runtime/rt_internal.h"

#define PATIENCE ((int64_t)100 * 1000000)	/* ns */
#define MOST_RUNNING 64u	/* but for those that were made in functions */

/* A launch that runs, on the stack of its thread. */
struct rt_running {
	struct rt_turns *turns;
	int64_t since;		/* in a function since then; 0: in none */
	struct rt_event *hold;	/* as in struct rt_caller; no references */
	struct rt_caller *by;
	struct rt_caller *call;	/* of that function, a reference; NULL: it launched nothing */
	struct rt_running *next;
};

struct rt_turn_thread {
	pthread_t thread;
	struct rt_turns *turns;
	struct rt_turn_thread *next;
};

static _Thread_local struct rt_running *mine;

bool rt_turn_is_nested(void)
{
	return mine && mine->since;
}

void rt_turn_begin_function(void)
{
	struct rt_turns *t = mine->turns;

	pthread_mutex_lock(&t->lock);
	mine->since = clock_ns();
	/* Who waits for a turn knows from now on until when. */
	if (t->first)
		pthread_cond_broadcast(&t->cond);
	pthread_mutex_unlock(&t->lock);
}

void rt_turn_end_function(void)
{
	struct rt_turns *t = mine->turns;

	pthread_mutex_lock(&t->lock);
	mine->since = 0;
	pthread_mutex_unlock(&t->lock);
	if (mine->call)
		atomic_store(&mine->call->has_returned, true);
	rt_caller_unref(mine->call);
	mine->call = NULL;
}

struct rt_caller *rt_turn_caller(void)
{
	struct rt_caller *k;

	if (!rt_turn_is_nested())
		return NULL;
	if (!mine->call) {
		k = calloc(1, sizeof(*k));
		if (!k)
			return NULL;
		atomic_init(&k->refs, 1);
		k->turns = mine->turns;
		k->hold = mine->hold;
		if (k->hold)
			rt_event_ref(k->hold);
		k->by = mine->by;
		if (k->by)
			atomic_fetch_add(&k->by->refs, 1);
		mine->call = k;
	}
	atomic_fetch_add(&mine->call->refs, 1);
	return mine->call;
}

void rt_caller_unref(struct rt_caller *k)
{
	struct rt_caller *by;

	for (; k && atomic_fetch_sub(&k->refs, 1) == 1; k = by) {
		by = k->by;
		rt_event_unref(k->hold);
		free(k);
	}
}

struct rt_caller *rt_turn_by(void)
{
	return mine ? mine->by : NULL;
}

/* When the next one may start that was made in no function: 0: now; FOREVER: not before
 * something else happens. */
static int64_t when(const struct rt_turns *t, int64_t now)
{
	int64_t last = 0;
	unsigned n = 0;

	for (const struct rt_running *r = t->running; r; r = r->next, n++) {
		if (!r->since)
			return CLOCK_FOREVER;
		if (r->since + PATIENCE > last)
			last = r->since + PATIENCE;
	}
	if (n >= MOST_RUNNING)
		return CLOCK_FOREVER;
	return last <= now ? 0 : last;
}

/* Takes the next one that may start now out of the list; or NULL, and when to look again. */
static struct rt_turn *take(struct rt_turns *t, int64_t *again)
{
	struct rt_turn **p, *turn;

	*again = CLOCK_FOREVER;
	if (!t->first)
		return NULL;
	for (p = &t->first; *p && !(*p)->is_nested; p = &(*p)->next)
		;
	if (!*p) {
		*again = when(t, clock_ns());
		if (*again)
			return NULL;
		p = &t->first;
	}
	turn = *p;
	*p = turn->next;
	if (t->last == &turn->next)
		t->last = p;
	return turn;
}

static void wait_until(struct rt_turns *t, int64_t deadline)
{
	struct timespec at = clock_spec(deadline);

	t->n_idle++;
	if (deadline == CLOCK_FOREVER)
		pthread_cond_wait(&t->cond, &t->lock);
	else
		pthread_cond_timedwait(&t->cond, &t->lock, &at);
	t->n_idle--;
}

static int add_thread(struct rt_turns *t);

/* Called with the lock, which fn is without. */
static void run(struct rt_turns *t, struct rt_event *hold, struct rt_caller *by,
		void (*fn)(void *arg), void *arg)
{
	struct rt_running self = { .turns = t, .hold = hold, .by = by, .next = t->running }, **p;

	t->running = &self;
	if (t->first && !t->n_idle)
		add_thread(t);	/* if there is none, whoever is done first looks */
	pthread_mutex_unlock(&t->lock);
	mine = &self;
	fn(arg);
	mine = NULL;
	pthread_mutex_lock(&t->lock);
	for (p = &t->running; *p != &self; p = &(*p)->next)
		;
	*p = self.next;
	pthread_cond_broadcast(&t->cond);
}

static void *work(void *arg)
{
	struct rt_turn_thread *self = arg;
	struct rt_turns *t = self->turns;
	struct rt_turn *turn;
	int64_t again;

	rt_in_callback = 1;
	pthread_mutex_lock(&t->lock);
	for (;;) {
		turn = take(t, &again);
		if (turn)
			run(t, NULL, turn->by, turn->fn, turn->arg);
		else if (t->quit)
			break;
		else
			wait_until(t, again);
	}
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

static int add_thread(struct rt_turns *t)
{
	struct rt_turn_thread *thread = malloc(sizeof(*thread));

	if (!thread)
		return ERR_RESOURCE_EXHAUSTED;
	thread->turns = t;
	if (pthread_create(&thread->thread, NULL, work, thread)) {
		free(thread);
		return ERR_RESOURCE_EXHAUSTED;
	}
	thread->next = t->threads;
	t->threads = thread;
	return 0;
}

int rt_turn_queue(struct rt_turns *t, struct rt_turn *turn, struct err *err)
{
	int code = 0;

	pthread_mutex_lock(&t->lock);
	/* One that was made in a function waits for nobody, so not for a thread either. */
	if (!t->n_idle || turn->is_nested)
		code = add_thread(t);
	if (code && t->threads && !turn->is_nested)
		code = 0;
	if (!code) {
		turn->next = NULL;
		*t->last = turn;
		t->last = &turn->next;
		pthread_cond_broadcast(&t->cond);
	}
	pthread_mutex_unlock(&t->lock);
	return code ? err_set(err, code, "could not start a thread for calls of the host") : 0;
}

void rt_turn_beside(struct rt_turns *t, struct rt_event *hold, struct rt_caller *by,
		    void (*fn)(void *arg), void *arg)
{
	pthread_mutex_lock(&t->lock);
	run(t, hold, by, fn, arg);
	pthread_mutex_unlock(&t->lock);
}

void rt_turns_start(struct rt_turns *t)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&t->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&t->cond, &attr);
	pthread_condattr_destroy(&attr);
	t->last = &t->first;
}

void rt_turns_end(struct rt_turns *t)
{
	struct rt_turn_thread *thread;

	pthread_mutex_lock(&t->lock);
	t->quit = true;
	pthread_cond_broadcast(&t->cond);
	pthread_mutex_unlock(&t->lock);
	/* Whatever runs has a reference to the client: none does any more. */
	while ((thread = t->threads)) {
		t->threads = thread->next;
		pthread_join(thread->thread, NULL);
		free(thread);
	}
	pthread_cond_destroy(&t->cond);
	pthread_mutex_destroy(&t->lock);
}
