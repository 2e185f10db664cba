/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of the host by members that meet. Each member stops, is served and goes on by itself,
 * on a thread of its own: they need not call the same functions, and one may wait on its device
 * for another that is stopped. So until all are over their devices are held: no other launch
 * whose members meet is put on one of them, as it would stand behind the one that waits, and
 * before what that one waits for. Such launches come later; others run between two submissions.
 *
 * A member whose function fails does not go on. The others end by themselves where they stop
 * next; who waits on its device for one that ended so is told by the links, after a while.
 */
#include <stdlib.h>

#include "hal/base/clock.h"
#include "runtime/rt_internal.h"

#define PATIENCE ((int64_t)200 * 1000000)	/* ns, for members to stop by themselves */

struct member {
	struct all *of;
	struct rt_launch *launch;
	pthread_t thread;
	bool has_thread;
	bool has_failed;	/* or was not served any more */
	bool is_told;		/* to those that wait for it */
	struct err err;
};

struct all {
	struct member *members;	/* [n] */
	unsigned n;
	struct rt_event *hold;
	struct rt_caller *by;	/* no reference */
	pthread_mutex_t lock;
	pthread_cond_t cond;
	unsigned running;
	struct member *failed;	/* the first; NULL: none */
	atomic_bool stop;
};

/* Behind the member on another device a launch waits for whatever that one waits for. On its own
 * device the caller is stopped. Under client.gang_lock. */
static bool is_held_by(const struct rt_caller *k, struct rt_exe *const *x, unsigned n)
{
	bool meets = x[0]->image->n_slots, is_held = false;

	for (unsigned m = 0; k->hold && m < n; m++) {
		const struct rt_device *d = &x[m]->client->devices[x[m]->device];

		is_held |= d->held == k->hold && (meets || &d->turns != k->turns);
	}
	return is_held;
}

/* What a function launched on a device that another program holds: it may wait for that program.
 * In client.waits, under client.gang_lock, until that program is over. */
struct rt_wait {
	struct rt_caller *caller;	/* a reference */
	const struct rt_event *hold;
	struct rt_event *done;	/* of the launch, a reference; NULL: it is being made */
	unsigned member;	/* of the launch */
	struct rt_wait *next;
};

/* Whether this thread has some of which `done` is not known. */
static _Thread_local bool has_waits;

static void free_wait(struct rt_wait *w)
{
	rt_caller_unref(w->caller);
	rt_event_unref(w->done);
	free(w);
}

/* Whether a program has called the function, or one that waits for that. */
static bool is_below(const struct rt_caller *k, const struct rt_event *hold)
{
	for (; k && !atomic_load(&k->has_returned); k = k->by)
		if (k->hold == hold)
			return true;
	return false;
}

/* Whether the program may wait for the one whose function it is. Programs that are waited for have
 * no circles. */
static bool may_wait_for(const struct rt_client *c, const struct rt_event *hold,
			 const struct rt_caller *k)
{
	for (const struct rt_wait *w = c->waits; w; w = w->next)
		if (!(w->done && rt_event_is_ready(w->done)) && is_below(w->caller, hold) &&
		    (is_below(k, w->hold) || may_wait_for(c, w->hold, k)))
			return true;
	return false;
}

/* Without memory for the note, nobody is refused for it. */
static void note_wait(struct rt_client *c, const struct rt_event *hold, struct rt_caller *k,
		      unsigned member)
{
	struct rt_wait *w = malloc(sizeof(*w));

	if (!w)
		return;
	atomic_fetch_add(&k->refs, 1);
	*w = (struct rt_wait){ .caller = k, .hold = hold, .member = member, .next = c->waits };
	c->waits = w;
	has_waits = true;
}

/* Behind what other programs hold. False: one of them may wait for the caller, or its callers. */
static bool may_wait(struct rt_client *c, struct rt_exe *const *x, unsigned n,
		     struct rt_caller *k)
{
	for (unsigned m = 0; m < n; m++) {
		const struct rt_event *hold = c->devices[x[m]->device].held;

		if (hold && !is_below(k, hold) && may_wait_for(c, hold, k))
			return false;
	}
	for (unsigned m = 0; m < n; m++) {
		const struct rt_event *hold = c->devices[x[m]->device].held;

		if (hold && !is_below(k, hold))
			note_wait(c, hold, k, m);
	}
	return true;
}

void rt_caller_launched(struct rt_client *c, struct rt_event *const *done, unsigned n)
{
	struct rt_caller *k = has_waits ? rt_turn_caller() : NULL;
	struct rt_wait **at, *w;

	has_waits = false;
	if (!k)
		return;
	pthread_mutex_lock(&c->gang_lock);
	for (at = &c->waits; (w = *at);) {
		if (w->caller != k || w->done) {
			at = &w->next;
		} else if (w->member < n) {
			w->done = done[w->member];
			rt_event_ref(w->done);
		} else {
			*at = w->next;
			free_wait(w);
		}
	}
	pthread_mutex_unlock(&c->gang_lock);
	rt_caller_unref(k);
}

/* Whoever launched the caller's program may wait for it, and so on, until one has returned. */
bool rt_is_held_by_caller(struct rt_exe *const *x, unsigned n)
{
	struct rt_caller *caller = rt_turn_caller();
	struct rt_client *c = x[0]->client;
	bool is_held = false;

	if (!caller)
		return false;
	pthread_mutex_lock(&c->gang_lock);
	for (const struct rt_caller *k = caller; k && !atomic_load(&k->has_returned); k = k->by)
		is_held |= is_held_by(k, x, n);
	is_held = is_held || !may_wait(c, x, n, caller);
	pthread_mutex_unlock(&c->gang_lock);
	rt_caller_unref(caller);
	return is_held;
}

struct rt_event *rt_find_hold(const struct rt_launch *l, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct rt_event *e = l[i].x->client->devices[l[i].x->device].held;

		if (!e)
			continue;
		rt_event_ref(e);
		return e;
	}
	return NULL;
}

void rt_hold(const struct rt_launch *l, unsigned n, struct rt_event *hold)
{
	for (unsigned i = 0; i < n; i++) {
		rt_event_ref(hold);
		l[i].x->client->devices[l[i].x->device].held = hold;
	}
}

void rt_end_hold(const struct rt_launch *l, unsigned n, struct rt_event *hold)
{
	struct rt_client *c = l->x->client;
	struct rt_wait **at, *w;

	pthread_mutex_lock(&c->gang_lock);
	for (at = &c->waits; (w = *at);) {
		if (w->hold != hold) {
			at = &w->next;
			continue;
		}
		*at = w->next;
		free_wait(w);
	}
	for (unsigned i = 0; i < n; i++) {
		c->devices[l[i].x->device].held = NULL;
		rt_event_unref(hold);
	}
	pthread_mutex_unlock(&c->gang_lock);
	rt_event_set(hold, NULL);
}

static void fail(struct all *a, struct member *m)
{
	if (!a->failed)
		a->failed = m;
	m->has_failed = true;
	atomic_store(&a->stop, true);
}

static void serve(void *arg)
{
	struct member *m = arg;
	struct all *a = m->of;
	int code = rt_launch_run_calls(m->launch, &a->stop, &m->err);

	pthread_mutex_lock(&a->lock);
	if (code)
		fail(a, m);
	a->running--;
	pthread_cond_signal(&a->cond);
	pthread_mutex_unlock(&a->lock);
}

static void *work(void *arg)
{
	struct member *m = arg;
	struct rt_exe *x = m->launch->x;

	rt_in_callback = 1;
	rt_turn_beside(&x->client->devices[x->device].turns, m->of->hold, m->of->by, serve, m);
	return NULL;
}

static void start(struct all *a)
{
	for (unsigned i = 0; i < a->n; i++) {
		struct member *m = &a->members[i];

		pthread_mutex_lock(&a->lock);
		m->has_thread = !pthread_create(&m->thread, NULL, work, m);
		a->running += m->has_thread;
		if (!m->has_thread) {
			err_set(&m->err, ERR_RESOURCE_EXHAUSTED, "could not start a thread for "
				"calls of the host");
			fail(a, m);
		}
		pthread_mutex_unlock(&a->lock);
	}
}

/* Those that wait for it fail, too. */
static void tell(const struct all *a, struct member *m)
{
	const struct rt_exe *x = m->launch->x;

	m->is_told = true;
	if (!rt_meeting_abandon(x->meeting, x->member))
		return;
	for (unsigned i = 0; i < a->n; i++) {
		const struct rt_exe *other = a->members[i].launch->x;

		if (other != x)
			hal_queue_reset(x->client->devices[other->device].queue,
					a->failed->err.msg, NULL);
	}
}

static void tell_all(const struct all *a)
{
	for (unsigned i = 0; i < a->n; i++)
		if (a->members[i].has_failed && !a->members[i].is_told)
			tell(a, &a->members[i]);
}

/* Under the lock. */
static void wait_for_all(struct all *a)
{
	struct timespec at;

	while (a->running && !a->failed)
		pthread_cond_wait(&a->cond, &a->lock);
	at = clock_spec(clock_after(PATIENCE));
	while (a->running && !pthread_cond_timedwait(&a->cond, &a->lock, &at))
		;
	/* Who ends unserved may leave others waiting that don't wait for the first. */
	while (a->running) {
		tell_all(a);
		pthread_cond_wait(&a->cond, &a->lock);
	}
}

static void make_cond(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

int rt_run_all_calls(struct rt_launch *l, unsigned n, struct rt_event *hold, struct err *err)
{
	struct all a = { .members = calloc(n, sizeof(*a.members)), .n = n, .hold = hold,
			 .by = rt_turn_by() };
	struct rt_meeting *g = l->x->meeting;
	int code = 0;

	/* All were submitted: who is not served keeps the others waiting. */
	if (!a.members) {
		for (unsigned i = 0; i < n; i++)
			hal_queue_reset(l->x->client->devices[l[i].x->device].queue,
					"out of memory", NULL);
		rt_meeting_abandon(g, l->x->member);
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	}
	pthread_mutex_init(&a.lock, NULL);
	make_cond(&a.cond);
	for (unsigned i = 0; i < n; i++)
		a.members[i] = (struct member){ .of = &a, .launch = &l[i] };
	rt_turn_begin_function();	/* for the device's turns it is the member that counts */
	start(&a);
	pthread_mutex_lock(&a.lock);
	wait_for_all(&a);
	pthread_mutex_unlock(&a.lock);
	rt_turn_end_function();
	for (unsigned i = 0; i < n; i++) {
		if (a.members[i].has_thread)
			pthread_join(a.members[i].thread, NULL);
		rt_meeting_note(g, l[i].x->member, l[i].value);
	}
	if (a.failed) {
		rt_meeting_spoil(g);
		*err = a.failed->err;
		code = err->code;
	}
	pthread_cond_destroy(&a.cond);
	pthread_mutex_destroy(&a.lock);
	free(a.members);
	return code;
}
