/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches whose arguments are not settled: the caller gets pending results at once,
 * its arguments are pinned and, where donated, deleted at once; the launch itself runs
 * on the client's thread when the last gate is set. Launches put aside keep no order
 * among each other: pins keep what they read from being written by others.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/rt_internal.h"

struct deferred {
	struct rt_exe *x;
	size_t n_args, n_outs;
	struct rt_buffer **args;	/* pinned */
	struct rt_buffer **outs;	/* references */
	struct rt_buffer **real;	/* room for the launch's own results */
	struct rt_callback *callbacks;	/* one an argument */
	bool *keep;
	struct rt_event *done;
	struct rt_callback end;
	atomic_size_t waits;
};

static void let_go(struct deferred *d)
{
	for (size_t i = 0; i < d->n_args; i++)
		rt_buffer_unpin(d->args[i]);
	for (size_t i = 0; i < d->n_outs; i++)
		rt_buffer_unref(d->outs[i]);
	d->n_args = d->n_outs = 0;
}

static void free_deferred(struct deferred *d)
{
	struct rt_exe *x = d->x;

	let_go(d);
	rt_event_unref(d->done);
	free(d->args);
	free(d->outs);
	free(d->real);
	free(d->callbacks);
	free(d->keep);
	free(d);
	rt_exe_unref(x);
}

static void end(void *arg, const struct err *err)
{
	struct deferred *d = arg;

	rt_in_callback++;
	rt_event_set(d->done, err);
	free_deferred(d);
	rt_in_callback--;
}

static void run(void *arg)
{
	struct deferred *d = arg;
	struct rt_event *done;
	struct err err;
	int code = rt_execute_now(d->x, d->args, d->n_args, d->keep, true, d->real, &done,
				  &err);

	for (size_t i = 0; i < d->n_outs; i++) {
		if (code) {
			rt_buffer_settle(d->outs[i], &err);
			continue;
		}
		rt_buffer_settle_from(d->outs[i], d->real[i]);
		rt_buffer_unref(d->real[i]);
	}
	if (code) {
		end(d, &err);
		return;
	}
	/* The launch has its own references now. */
	let_go(d);
	rt_event_on_ready(done, &d->end, end, d);
	rt_event_unref(done);
}

static void arrive(void *arg, const struct err *err)
{
	struct deferred *d = arg;

	(void)err;
	if (atomic_fetch_sub(&d->waits, 1) != 1)
		return;
	if (!rt_later(d->x->client, run, d, NULL))
		return;
	rt_in_callback++;
	run(d);
	rt_in_callback--;
}

static struct deferred *make(struct rt_exe *x, size_t n_args, const bool *keep)
{
	size_t n_outs = x->image->info.n_results;
	struct deferred *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->x = x;
	rt_exe_ref(x);
	d->args = calloc(n_args + 1, sizeof(*d->args));
	d->outs = calloc(n_outs + 1, sizeof(*d->outs));
	d->real = calloc(n_outs + 1, sizeof(*d->real));
	d->callbacks = calloc(n_args + 1, sizeof(*d->callbacks));
	d->keep = calloc(n_args + 1, sizeof(*d->keep));
	d->done = rt_event_new();
	if (!d->args || !d->outs || !d->real ||
	    !d->callbacks || !d->keep || !d->done) {
		free_deferred(d);
		return NULL;
	}
	if (keep)
		memcpy(d->keep, keep, n_args);
	return d;
}

static int make_outs(struct deferred *d, struct err *err)
{
	const struct image *im = d->x->image;
	int code = 0;

	while (!code && d->n_outs < im->info.n_results) {
		const struct image_shape *s = &im->shapes[im->info.n_args + d->n_outs];
		struct rt_shape shape = { .elem = (enum elem)s->elem, .rank = s->rank };

		memcpy(shape.dim, s->dim, s->rank * sizeof(*s->dim));
		code = rt_buffer_new_pending(d->x->client, d->x->device,
					     (enum rt_memory_kind)s->memory_kind, &shape, NULL,
					     &d->outs[d->n_outs], err);
		d->n_outs += !code;
	}
	return code;
}

int rt_execute_later(struct rt_exe *x, struct rt_buffer *const *args, size_t n_args,
		     const bool *keep, struct rt_buffer **outs, struct rt_event **done,
		     struct err *err)
{
	struct deferred *d = make(x, n_args, keep);
	int code;

	if (!d)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	code = make_outs(d, err);
	while (!code && d->n_args < n_args) {
		code = rt_buffer_pin(args[d->n_args], err);
		if (!code) {
			d->args[d->n_args] = args[d->n_args];
			d->n_args++;
		}
	}
	if (code) {
		free_deferred(d);
		return code;
	}
	for (size_t i = 0; i < n_args; i++)
		if (x->image->shapes[i].alias >= 0 && !d->keep[i])
			rt_buffer_delete(args[i]);
	memcpy(outs, d->outs, d->n_outs * sizeof(*outs));
	for (size_t i = 0; i < d->n_outs; i++)
		rt_buffer_ref(outs[i]);
	*done = d->done;
	rt_event_ref(*done);
	atomic_init(&d->waits, 1);
	for (size_t i = 0; i < n_args; i++) {
		if (!rt_buffer_is_pending(args[i]))
			continue;
		atomic_fetch_add(&d->waits, 1);
		rt_event_on_ready(args[i]->gate, &d->callbacks[i], arrive, d);
	}
	arrive(d, NULL);
	return 0;
}
