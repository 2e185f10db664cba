/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches that are put off: those with an argument that is pending, on whichever device, those
 * that call the host, and those of a member that waits for the others (join.c). The caller gets
 * pending results at once, the arguments count as in use and, where donated, are deleted at once;
 * the launch itself is made, whole, when the last argument is resolved. Until then nothing of
 * it is in a queue, so none can wait for another one but for its content, and that was there
 * first. Deferred launches keep no order among each other: their uses keep what they read from
 * being written by others.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/rt_internal.h"

static void let_go(struct rt_deferred *d)
{
	for (size_t i = 0; i < d->n_used; i++)
		rt_buffer_end_use(d->args[i]);
	for (size_t i = 0; i < d->n_made; i++)
		rt_buffer_unref(d->outs[i]);
	d->n_used = d->n_made = 0;
}

static void free_deferred(struct rt_deferred *d)
{
	let_go(d);
	for (unsigned m = 0; d->ends && m < d->n; m++)
		rt_event_unref(d->ends[m].done);
	for (unsigned m = 0; d->hosts && m < d->n; m++)
		if (d->hosts[m].free)
			d->hosts[m].free(d->hosts[m].arg);
	for (unsigned m = 0; d->x && m < d->n; m++)
		rt_exe_unref(d->x[m]);
	free(d->x);
	free(d->args);
	free(d->outs);
	free(d->real);
	free(d->args_of);
	free(d->real_of);
	free(d->callbacks);
	free(d->keep);
	free(d->ends);
	free(d->done);
	free(d->hosts);
	rt_caller_unref(d->turn.by);
	if (d->is_over)
		d->is_over(d->gathering);
	free(d);
}

static void end(void *arg, const struct err *err)
{
	struct rt_end *e = arg;
	struct rt_deferred *d = e->of;

	rt_in_callback++;
	rt_event_set(e->done, err);
	if (atomic_fetch_sub(&d->running, 1) == 1)
		free_deferred(d);
	rt_in_callback--;
}

void rt_deferred_settle(struct rt_deferred *d)
{
	rt_needs_end(d->outs, d->n_made);
}

void rt_deferred_fail(struct rt_deferred *d, const struct err *why)
{
	unsigned n = d->n;

	rt_deferred_settle(d);
	for (size_t i = 0; i < d->n_made; i++)
		rt_buffer_resolve(d->outs[i], why);
	for (unsigned m = 0; m < n; m++)
		end(&d->ends[m], why);
}

void rt_deferred_finish(struct rt_deferred *d)
{
	unsigned n = d->n;

	rt_deferred_settle(d);
	for (size_t i = 0; i < d->n_made; i++) {
		rt_buffer_resolve_from(d->outs[i], d->real[i]);
		rt_buffer_unref(d->real[i]);
	}
	/* The launch has its own references now. */
	let_go(d);
	for (unsigned m = 0; m < n; m++) {
		struct rt_event *done = d->done[m];

		rt_event_on_ready(done, &d->ends[m].callback, end, &d->ends[m]);
		rt_event_unref(done);
	}
}

static void arrive(void *arg, const struct err *err);

static void run_deferred(void *arg)
{
	struct rt_deferred *d = arg;
	struct rt_event *held = NULL;
	struct err err, unmade = { 0 };
	const struct rt_run r = { .n = d->n, .x = d->x, .args = d->args_of, .n_args = d->n_args,
				  .keep = d->keep, .was_deferred = true,
				  .hosts = d->hosts, .held = &held, .unmade = &unmade,
				  .ticket = d->ticket.of ? &d->ticket : NULL };
	int code = rt_launch_now(&r, d->real_of, d->done, &err);

	if (held) {
		atomic_store(&d->waits, 1);
		rt_event_on_ready(held, &d->after, arrive, d);
		rt_event_unref(held);
		return;
	}
	if (d->ticket.of)
		rt_order_end(&d->ticket, code ? &err : unmade.code ? &unmade : NULL);
	if (code)
		rt_deferred_fail(d, &err);
	else
		rt_deferred_finish(d);
}

static void arrive(void *arg, const struct err *err)
{
	struct rt_deferred *d = arg;
	struct rt_client *c = d->x[0]->client;
	struct err why;

	(void)err;
	if (atomic_fetch_sub(&d->waits, 1) != 1)
		return;
	if (d->hosts) {
		if (rt_turn_queue(&c->devices[d->x[0]->device].turns, &d->turn, &why))
			rt_deferred_fail(d, &why);
		return;
	}
	if (!rt_later(c, run_deferred, d, NULL))
		return;
	rt_in_callback++;
	run_deferred(d);
	rt_in_callback--;
}

/* With its executables, and nothing else in its lists. */
static struct rt_deferred *make_deferred(const struct rt_run *r)
{
	size_t n_outs = r->x[0]->image->info.n_results, n = r->n;
	struct rt_deferred *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->n = r->n;
	d->n_args = r->n_args;
	d->n_outs = n_outs;
	d->x = calloc(n, sizeof(*d->x));
	d->args = calloc(n * r->n_args + 1, sizeof(*d->args));
	d->outs = calloc(n * n_outs + 1, sizeof(*d->outs));
	d->real = calloc(n * n_outs + 1, sizeof(*d->real));
	d->args_of = calloc(n, sizeof(*d->args_of));
	d->real_of = calloc(n, sizeof(*d->real_of));
	d->callbacks = calloc(n * r->n_args + 1, sizeof(*d->callbacks));
	d->keep = calloc(r->n_args + 1, sizeof(*d->keep));
	d->ends = calloc(n, sizeof(*d->ends));
	d->done = calloc(n, sizeof(*d->done));
	for (size_t m = 0; d->x && m < n; m++) {
		d->x[m] = r->x[m];
		rt_exe_ref(d->x[m]);
	}
	if (!d->x || !d->args || !d->outs || !d->real || !d->args_of || !d->real_of ||
	    !d->callbacks || !d->keep || !d->ends || !d->done) {
		free_deferred(d);
		return NULL;
	}
	if (r->keep)
		memcpy(d->keep, r->keep, r->n_args);
	for (size_t m = 0; m < n; m++) {
		d->args_of[m] = d->args + m * r->n_args;
		d->real_of[m] = d->real + m * n_outs;
		d->ends[m].of = d;
	}
	return d;
}

static int make_outs(struct rt_deferred *d, struct err *err)
{
	const struct image *im = d->x[0]->image;
	int code = 0;

	while (!code && d->n_made < d->n * d->n_outs) {
		const struct rt_exe *x = d->x[d->n_made / d->n_outs];
		const struct image_shape *s = &im->shapes[im->info.n_args +
							  d->n_made % d->n_outs];
		struct rt_shape shape;

		rt_shape_of(s, &shape);
		code = rt_buffer_new_pending(x->client, x->device,
					     (enum rt_memory_kind)s->memory_kind, &shape, NULL,
					     &d->outs[d->n_made], err);
		d->n_made += !code;
	}
	for (unsigned m = 0; !code && m < d->n; m++) {
		d->ends[m].done = rt_event_new();
		if (!d->ends[m].done)
			code = err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	}
	return code;
}

static int use_args(struct rt_deferred *d, const struct rt_run *r, struct err *err)
{
	int code = 0;

	while (!code && d->n_used < d->n * d->n_args) {
		struct rt_buffer *b = r->args[d->n_used / d->n_args][d->n_used % d->n_args];

		code = rt_buffer_begin_use(b, err);
		if (!code)
			d->args[d->n_used++] = b;
	}
	return code;
}

void rt_deferred_hand_out(struct rt_deferred *d, struct rt_buffer **const *outs,
			  struct rt_event **done)
{
	const struct image_shape *shapes = d->x[0]->image->shapes;

	for (size_t i = 0; i < d->n_used; i++)
		if (shapes[i % d->n_args].alias >= 0 && !d->keep[i % d->n_args])
			rt_buffer_delete(d->args[i]);
	for (size_t i = 0; i < d->n_made; i++) {
		outs[i / d->n_outs][i % d->n_outs] = d->outs[i];
		rt_buffer_ref(d->outs[i]);
	}
	for (unsigned m = 0; m < d->n; m++) {
		done[m] = d->ends[m].done;
		rt_event_ref(done[m]);
	}
}

int rt_defer(const struct rt_run *r, struct rt_deferred **out, struct err *err)
{
	struct rt_deferred *d = make_deferred(r);
	int code = 0;

	if (!d)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	if (r->hosts) {
		d->hosts = calloc(r->n, sizeof(*d->hosts));
		if (!d->hosts)
			code = err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	}
	if (!code)
		code = make_outs(d, err);
	if (!code)
		code = use_args(d, r, err);
	if (code) {
		free_deferred(d);
		return code;
	}
	d->needs = (struct rt_needs){ .of = d->args, .n = d->n_used };
	rt_needs_begin(&d->needs, d->outs, d->n_made);
	atomic_init(&d->running, d->n);
	*out = d;
	return 0;
}

void rt_deferred_wait(struct rt_deferred *d, void (*fn)(void *arg, const struct err *err),
			void *arg, atomic_size_t *waits)
{
	for (size_t i = 0; i < d->n_used; i++) {
		struct rt_buffer *b = d->args[i];

		if (!rt_buffer_is_pending(b))
			continue;
		atomic_fetch_add(waits, 1);
		rt_event_on_ready(b->resolved, &d->callbacks[i], fn, arg);
	}
}

int rt_launch_later(const struct rt_run *r, struct rt_buffer **const *outs,
		    struct rt_event **done, struct rt_event *held, struct err *err)
{
	struct rt_deferred *d;
	int code = rt_defer(r, &d, err);

	if (code)
		return code;
	if (r->ticket)
		d->ticket = *r->ticket;
	rt_deferred_hand_out(d, outs, done);
	if (r->hosts)
		memcpy(d->hosts, r->hosts, r->n * sizeof(*d->hosts));
	d->turn = (struct rt_turn){ .fn = run_deferred, .arg = d,
				    .is_nested = rt_turn_is_nested(),
				    .by = r->hosts ? rt_turn_caller() : NULL };
	atomic_init(&d->waits, held ? 2 : 1);
	if (held)
		rt_event_on_ready(held, &d->after, arrive, d);
	rt_deferred_wait(d, arrive, d, &d->waits);
	arrive(d, NULL);
	return 0;
}
