/* SPDX-License-Identifier: Apache-2.0 */
/* Events: set once, waited for or called back. The callbacks run on the setter's thread
 * after the lock is let go; the event may die in one. */
#include <stdlib.h>

#include "runtime/rt_internal.h"

_Thread_local unsigned rt_in_callback;

struct rt_event {
	atomic_uint refs;
	unsigned generation;	/* of the process: in a child nobody sets it any more */
	atomic_bool is_ready;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	struct err err;
	struct rt_callback *callbacks, **last;
};

struct rt_event *rt_event_new(void)
{
	struct rt_event *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	atomic_init(&e->refs, 1);
	e->last = &e->callbacks;
	e->generation = hal_generation();
	pthread_mutex_init(&e->lock, NULL);
	pthread_cond_init(&e->cond, NULL);
	return e;
}

struct rt_event *rt_event_done(const struct err *why)
{
	struct rt_event *e = rt_event_new();

	if (e) {
		if (why)
			e->err = *why;
		atomic_store(&e->is_ready, true);
	}
	return e;
}

void rt_event_ref(struct rt_event *e)
{
	atomic_fetch_add(&e->refs, 1);
}

/* In a child of fork: the lock may be held by a thread that is not here, and the callbacks
 * are about things of the parent's. */
static bool is_orphan(const struct rt_event *e)
{
	return e->generation != hal_generation();
}

static int refuse(struct err *err)
{
	return err_set(err, ERR_FAILED_PRECONDITION, "an event of the process that this one "
		       "was forked from: what it waits for happens there");
}

static void call_all(struct rt_callback *c, const struct err *why)
{
	struct rt_callback *next;

	for (; c; c = next) {
		next = c->next;
		c->fn(c->arg, why);
	}
}

void rt_event_unref(struct rt_event *e)
{
	struct err why;

	if (!e || atomic_fetch_sub(&e->refs, 1) != 1 || is_orphan(e))
		return;
	if (e->callbacks) {
		err_set(&why, ERR_CANCELLED, "the event was destroyed before it was set");
		call_all(e->callbacks, &why);
	}
	pthread_mutex_destroy(&e->lock);
	pthread_cond_destroy(&e->cond);
	free(e);
}

void rt_event_set(struct rt_event *e, const struct err *why)
{
	struct rt_callback *c;

	if (is_orphan(e))
		return;
	pthread_mutex_lock(&e->lock);
	if (atomic_load(&e->is_ready)) {
		pthread_mutex_unlock(&e->lock);
		return;
	}
	if (why)
		e->err = *why;
	atomic_store(&e->is_ready, true);
	c = e->callbacks;
	e->callbacks = NULL;
	pthread_cond_broadcast(&e->cond);
	pthread_mutex_unlock(&e->lock);
	call_all(c, why);
}

void rt_event_pass(void *event, const struct err *err)
{
	rt_in_callback++;
	rt_event_set(event, err);
	rt_event_unref(event);
	rt_in_callback--;
}

struct rt_event *rt_event_of_submission(struct hal_queue *q, uint64_t value)
{
	struct rt_event *e;
	struct err why;
	int code;

	if (hal_queue_done(q) >= value) {
		code = hal_queue_error(q, value, &why);
		return rt_event_done(code ? &why : NULL);
	}
	e = rt_event_new();
	if (!e)
		return NULL;
	rt_event_ref(e);
	if (hal_queue_notify(q, value, rt_event_pass, e, &why))
		rt_event_pass(e, &why);
	return e;
}

bool rt_event_is_ready(const struct rt_event *e)
{
	return atomic_load(&e->is_ready);
}

int rt_event_error(struct rt_event *e, struct err *err)
{
	if (e->err.code && err)
		*err = e->err;
	return e->err.code;
}

int rt_event_wait(struct rt_event *e, struct err *err)
{
	if (is_orphan(e))
		return atomic_load(&e->is_ready) ? rt_event_error(e, err) : refuse(err);
	pthread_mutex_lock(&e->lock);
	while (!atomic_load(&e->is_ready))
		pthread_cond_wait(&e->cond, &e->lock);
	pthread_mutex_unlock(&e->lock);
	return rt_event_error(e, err);
}

void rt_event_on_ready(struct rt_event *e, struct rt_callback *c,
		       void (*fn)(void *arg, const struct err *err), void *arg)
{
	struct err why;

	if (is_orphan(e)) {
		fn(arg, rt_event_wait(e, &why) ? &why : NULL);
		return;
	}
	*c = (struct rt_callback){ fn, arg, NULL };
	pthread_mutex_lock(&e->lock);
	if (!atomic_load(&e->is_ready)) {
		*e->last = c;
		e->last = &c->next;
		pthread_mutex_unlock(&e->lock);
		return;
	}
	pthread_mutex_unlock(&e->lock);
	/* The error of a ready event does not change. */
	fn(arg, e->err.code ? &e->err : NULL);
}
