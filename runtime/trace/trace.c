/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces of all devices of a process. Profilers know no clients: one that runs is told of all
 * that there are, and of those that come and go meanwhile.
 *
 * One lock is over it; traces of devices begin and end under it, which blocks briefly.
 */
#define LOG_TAG "rt/trace"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hal/base/log.h"
#include "hal/base/str.h"
#include "runtime/rt_internal.h"

struct rt_trace {
	struct rt_traced *done;	/* [n] of clients that have gone, then all */
	size_t n, room;
	struct str warnings;	/* each ends in NUL */
	unsigned n_clients;	/* that it has seen */
	int64_t epoch;		/* CLOCK_REALTIME less CLOCK_MONOTONIC at its begin */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rt_client *clients;	/* by traced_next */
static struct rt_trace *running;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* A child of fork has neither its parent's clients nor its trace, and the lock may be held by
 * a thread that is not there. */
static void forget(void)
{
	pthread_mutex_init(&lock, NULL);
	clients = NULL;
	running = NULL;
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, forget);
}

static int64_t find_epoch(void)
{
	int64_t before = clock_ns(), date = clock_date_ns();

	return date - (before + clock_ns()) / 2;
}

static void warn(struct rt_trace *t, const struct rt_device *d, const char *why)
{
	log_warn("no trace of %s: %s", d->info.bus_id, why);
	str_printf(&t->warnings, "%s: %s", d->info.bus_id, why);
	str_add(&t->warnings, "", 1);
}

/* ---- clients; under lock ---- */

static void begin(struct rt_trace *t, struct rt_client *c)
{
	struct err why;

	c->traced_as = t->n_clients++;
	for (unsigned i = 0; i < c->n_devices; i++) {
		c->devices[i].is_traced = !hal_trace_start(c->devices[i].hal, &why);
		if (!c->devices[i].is_traced)
			warn(t, &c->devices[i], why.msg);
	}
}

static bool make_room(struct rt_trace *t)
{
	size_t room = t->room ? t->room * 2 : 8;
	struct rt_traced *grown;

	if (t->n < t->room)
		return true;
	grown = realloc(t->done, room * sizeof(*grown));
	if (!grown)
		return false;
	t->done = grown;
	t->room = room;
	return true;
}

static void end(struct rt_trace *t, struct rt_client *c)
{
	const struct rt_world *w = c->world;
	unsigned first = w ? w->processes[w->process].first : 0;

	for (unsigned i = 0; i < c->n_devices; i++) {
		struct rt_device *d = &c->devices[i];
		struct rt_traced *to;
		struct hal_trace *trace;

		/* One that could not be started was told of; the trace that it has is another's. */
		if (!d->hal || !d->is_traced || hal_trace_stop(d->hal, &trace, NULL))
			continue;
		d->is_traced = false;
		if (!make_room(t)) {
			warn(t, d, "out of memory");
			hal_trace_free(trace);
			continue;
		}
		to = &t->done[t->n++];
		*to = (struct rt_traced){ .trace = trace, .device = first + i,
					  .client = c->traced_as, .epoch = t->epoch };
		memcpy(to->type, d->info.name, sizeof(to->type));
	}
}

void rt_trace_join(struct rt_client *c)
{
	pthread_once(&once, watch_forks);
	pthread_mutex_lock(&lock);
	c->traced_next = clients;
	clients = c;
	if (running)
		begin(running, c);
	pthread_mutex_unlock(&lock);
}

void rt_trace_leave(struct rt_client *c)
{
	pthread_mutex_lock(&lock);
	for (struct rt_client **p = &clients; *p; p = &(*p)->traced_next)
		if (*p == c) {
			*p = c->traced_next;
			if (running)
				end(running, c);
			break;
		}
	pthread_mutex_unlock(&lock);
}

/* ---- sessions ---- */

int rt_trace_start(struct rt_trace **out, struct err *err)
{
	struct rt_trace *t = calloc(1, sizeof(*t));
	bool is_first;

	if (!t)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	pthread_once(&once, watch_forks);
	t->epoch = find_epoch();
	pthread_mutex_lock(&lock);
	is_first = !running;
	if (is_first) {
		running = t;
		for (struct rt_client *c = clients; c; c = c->traced_next)
			begin(t, c);
	}
	pthread_mutex_unlock(&lock);
	if (!is_first) {
		free(t);
		return err_set(err, ERR_FAILED_PRECONDITION, "another profiler of this process "
			       "runs already: stop it first");
	}
	*out = t;
	return 0;
}

static int write_space(const struct rt_trace *t, struct str *out, struct err *err)
{
	char text[128];
	int code = 0;

	for (size_t i = 0; !code && i < t->n; i++) {
		const struct rt_traced *d = &t->done[i];

		code = rt_xspace_add_plane(d, out, err);
		if (code || !d->trace->n_lost)
			continue;
		snprintf(text, sizeof(text), "device %u: %llu records of its trace were lost, "
			 "because they came faster than they were read", d->device,
			 (unsigned long long)d->trace->n_lost);
		log_warn("%s", text);
		code = rt_xspace_add_warning(text, out, err);
	}
	for (size_t at = 0; !code && at < t->warnings.len;) {
		code = rt_xspace_add_warning(t->warnings.text + at, out, err);
		at += strlen(t->warnings.text + at) + 1;
	}
	return code;
}

static void free_trace(struct rt_trace *t)
{
	for (size_t i = 0; i < t->n; i++)
		hal_trace_free(t->done[i].trace);
	free(t->done);
	str_free(&t->warnings);
	free(t);
}

int rt_trace_stop(struct rt_trace *t, void **out, size_t *bytes, struct err *err)
{
	struct str space = { 0 };
	int code;

	pthread_mutex_lock(&lock);
	/* In a child of fork its parent's trace is not running. */
	if (running == t) {
		for (struct rt_client *c = clients; c; c = c->traced_next)
			end(t, c);
		running = NULL;
	}
	pthread_mutex_unlock(&lock);
	code = write_space(t, &space, err);
	free_trace(t);
	if (code) {
		str_free(&space);
		return code;
	}
	*out = space.text;
	*bytes = space.len;
	return 0;
}
