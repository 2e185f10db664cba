/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executing: what is to be launched is checked, and launched now or later. Deferred are launches
 * with an argument that is pending, on any of their devices, and those that call the host. The
 * caller gets pending results at once, the arguments count as in use and, where donated, are
 * deleted at once; the launch itself is made, whole, when the last argument is resolved. Until
 * then nothing of it is in a queue, so none can wait for another one but for its content, and
 * that was there first. Deferred launches keep no order among each other: their uses keep what
 * they read from being written by others.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/rt_internal.h"

/* ---- later ---- */

/* The end of a member's run. */
struct end {
	struct deferred *of;
	struct rt_event *done;
	struct rt_callback callback;
};

struct deferred {
	unsigned n;		/* members */
	struct rt_exe **x;	/* [n], references */
	size_t n_args, n_outs;	/* of a member */
	size_t n_used, n_made;	/* of args and outs, so many are there */
	struct rt_buffer **args;	/* [n * n_args], in use */
	struct rt_buffer **outs;	/* [n * n_outs], references */
	struct rt_buffer **real;	/* room for the launch's own results */
	struct rt_buffer *const **args_of;	/* [n], into args */
	struct rt_buffer ***real_of;	/* [n], into real */
	struct rt_callback *callbacks;	/* one an argument */
	bool *keep;
	struct end *ends;	/* [n] */
	struct rt_event **done;	/* [n], room for the launch's own */
	atomic_size_t waits, running;	/* running: members */
	struct rt_host *hosts;	/* [n], ours; NULL: it calls none */
	struct rt_callback after;	/* of what holds a device */
	struct rt_turn turn;
};

static void let_go(struct deferred *d)
{
	for (size_t i = 0; i < d->n_used; i++)
		rt_buffer_end_use(d->args[i]);
	for (size_t i = 0; i < d->n_made; i++)
		rt_buffer_unref(d->outs[i]);
	d->n_used = d->n_made = 0;
}

static void free_deferred(struct deferred *d)
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
	free(d);
}

static void end(void *arg, const struct err *err)
{
	struct end *e = arg;
	struct deferred *d = e->of;

	rt_in_callback++;
	rt_event_set(e->done, err);
	if (atomic_fetch_sub(&d->running, 1) == 1)
		free_deferred(d);
	rt_in_callback--;
}

static void fail(struct deferred *d, const struct err *why)
{
	unsigned n = d->n;

	for (size_t i = 0; i < d->n_made; i++)
		rt_buffer_resolve(d->outs[i], why);
	for (unsigned m = 0; m < n; m++)
		end(&d->ends[m], why);
}

static void arrive(void *arg, const struct err *err);

static void run_deferred(void *arg)
{
	struct deferred *d = arg;
	struct rt_event *held = NULL;
	const struct rt_run r = { .n = d->n, .x = d->x, .args = d->args_of, .n_args = d->n_args,
				  .keep = d->keep, .was_deferred = true,
				  .hosts = d->hosts, .held = &held };
	unsigned n = d->n;
	struct err err;
	int code = rt_launch_now(&r, d->real_of, d->done, &err);

	if (held) {
		atomic_store(&d->waits, 1);
		rt_event_on_ready(held, &d->after, arrive, d);
		rt_event_unref(held);
		return;
	}
	if (code) {
		fail(d, &err);
		return;
	}
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

static void arrive(void *arg, const struct err *err)
{
	struct deferred *d = arg;
	struct rt_client *c = d->x[0]->client;
	struct err why;

	(void)err;
	if (atomic_fetch_sub(&d->waits, 1) != 1)
		return;
	if (d->hosts) {
		if (rt_turn_queue(&c->devices[d->x[0]->device].turns, &d->turn, &why))
			fail(d, &why);
		return;
	}
	if (!rt_later(c, run_deferred, d, NULL))
		return;
	rt_in_callback++;
	run_deferred(d);
	rt_in_callback--;
}

/* With its executables, and nothing else in its lists. */
static struct deferred *make_deferred(const struct rt_run *r)
{
	size_t n_outs = r->x[0]->image->info.n_results, n = r->n;
	struct deferred *d = calloc(1, sizeof(*d));

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

static int make_outs(struct deferred *d, struct err *err)
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

static int use_args(struct deferred *d, const struct rt_run *r, struct err *err)
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

/* The caller's references to the results; donated arguments are gone. */
static void hand_out(struct deferred *d, struct rt_buffer **const *outs, struct rt_event **done)
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

/* When the arguments are there; held: and when that is set. Takes the hosts, if it succeeds. */
static int launch_later(const struct rt_run *r, struct rt_buffer **const *outs,
			struct rt_event **done, struct rt_event *held, struct err *err)
{
	struct deferred *d = make_deferred(r);
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
	hand_out(d, outs, done);
	if (r->hosts)
		memcpy(d->hosts, r->hosts, r->n * sizeof(*d->hosts));
	d->turn = (struct rt_turn){ .fn = run_deferred, .arg = d,
				    .is_nested = rt_turn_is_nested() };
	atomic_init(&d->running, d->n);
	atomic_init(&d->waits, held ? 2 : 1);
	if (held)
		rt_event_on_ready(held, &d->after, arrive, d);
	for (size_t i = 0; i < d->n_used; i++) {
		struct rt_buffer *b = d->args[i];

		if (!rt_buffer_is_pending(b))
			continue;
		atomic_fetch_add(&d->waits, 1);
		rt_event_on_ready(b->resolved, &d->callbacks[i], arrive, d);
	}
	arrive(d, NULL);
	return 0;
}

/* ---- one device ---- */

/* Whoever meets others comes with them. */
static int check_whole(const struct rt_exe *x, unsigned n, struct err *err)
{
	if (!x->image->n_slots || x->meeting->n == n)
		return 0;
	return err_set(err, ERR_INVALID_ARGUMENT, "%s meets others on %u devices: it runs on all "
		       "of them at once, by one call", image_string(x->image, x->image->info.name),
		       x->meeting->n);
}

static int check_one(struct rt_exe *x, struct rt_buffer *const *args, size_t n_args,
		     const bool *keep, bool *wait, struct err *err)
{
	int code = check_whole(x, 1, err);

	return code ? code : rt_launch_check(x, args, n_args, keep, wait, err);
}

int rt_execute(struct rt_exe *x, struct rt_buffer *const *args, size_t n_args,
	       const bool *keep, struct rt_buffer **outs, struct rt_event **done,
	       struct err *err)
{
	const struct rt_run r = { .n = 1, .x = &x, .args = &args, .n_args = n_args,
				  .keep = keep };
	bool wait;
	int code = check_one(x, args, n_args, keep, &wait, err);

	if (!code)
		code = rt_check_host(x, NULL, err);
	if (code)
		return code;
	return wait ? launch_later(&r, &outs, done, NULL, err) :
		      rt_launch_now(&r, &outs, done, err);
}

int rt_execute_with_host(struct rt_exe *x, struct rt_buffer *const *args, size_t n_args,
			 const bool *keep, const struct rt_host *host,
			 struct rt_buffer **outs, struct rt_event **done, struct err *err)
{
	const struct rt_run r = { .n = 1, .x = &x, .args = &args, .n_args = n_args,
				  .keep = keep, .hosts = host };
	bool wait;
	int code = check_one(x, args, n_args, keep, &wait, err);

	if (!code)
		code = rt_check_host(x, host, err);
	if (!code && x->image->n_transfers)
		return launch_later(&r, &outs, done, NULL, err);
	/* It has functions that it does not call. */
	if (!code)
		code = rt_execute(x, args, n_args, keep, outs, done, err);
	if (!code)
		host->free(host->arg);
	return code;
}

/* ---- all members ---- */

static int check_all(const struct rt_gang *g, struct rt_buffer *const *const *args,
		     size_t n_args, const bool *keep, bool *wait, struct err *err)
{
	int code = check_whole(g->exe[0], g->n, err);

	if (code)
		return code;
	if (g->exe[0]->image->n_slots && rt_is_held_by_caller(g))
		return err_set(err, ERR_FAILED_PRECONDITION, "%s is launched by a function of the "
			       "host, on a device that the program which calls it is on, and both "
			       "meet others there: it would run only when the function has "
			       "returned. Launch it after that, or on other devices",
			       image_string(g->exe[0]->image, g->exe[0]->image->info.name));
	*wait = false;
	for (unsigned m = 0; m < g->n; m++) {
		bool waits = false;

		code = rt_launch_check(g->exe[m], args[m], n_args, keep, &waits, err);
		if (code && g->n > 1)
			err_add(err, "member %u of %u", m, g->n);
		if (code)
			return code;
		*wait |= waits;
	}
	return 0;
}

/* All together, now or when they may be. hosts: as in struct rt_run. */
static int launch_gang(const struct rt_gang *g, struct rt_buffer *const *const *args,
		       size_t n_args, const bool *keep, const struct rt_host *hosts, bool wait,
		       struct rt_buffer **const *outs, struct rt_event **done, struct err *err)
{
	struct rt_event *held = NULL;
	const struct rt_run r = { .n = g->n, .x = g->exe, .args = args, .n_args = n_args,
				  .keep = keep, .hosts = hosts, .held = &held };
	int code;

	if (wait || hosts)
		return launch_later(&r, outs, done, NULL, err);
	code = rt_launch_now(&r, outs, done, err);
	if (!held)
		return code;
	code = launch_later(&r, outs, done, held, err);
	rt_event_unref(held);
	return code;
}

int rt_execute_gang(const struct rt_gang *g, struct rt_buffer *const *const *args, size_t n_args,
		    const bool *keep, struct rt_buffer **const *outs, struct rt_event **done,
		    struct err *err)
{
	bool wait;
	int code = check_all(g, args, n_args, keep, &wait, err);

	if (!code)
		code = rt_check_host(g->exe[0], NULL, err);
	return code ? code : launch_gang(g, args, n_args, keep, NULL, wait, outs, done, err);
}

/* Members that meet: served together. Takes the hosts, if it succeeds. */
static int execute_meeting_with_hosts(const struct rt_gang *g,
				      struct rt_buffer *const *const *args, size_t n_args,
				      const bool *keep, const struct rt_host *hosts,
				      struct rt_buffer **const *outs, struct rt_event **done,
				      struct err *err)
{
	bool calls = g->exe[0]->image->n_transfers, wait;
	int code = check_all(g, args, n_args, keep, &wait, err);

	for (unsigned m = 0; !code && calls && m < g->n; m++)
		code = rt_check_host(g->exe[m], &hosts[m], err);
	if (!code)
		code = launch_gang(g, args, n_args, keep, calls ? hosts : NULL, wait, outs, done,
				   err);
	for (unsigned m = 0; !code && !calls && m < g->n; m++)
		hosts[m].free(hosts[m].arg);
	return code;
}

int rt_execute_gang_with_hosts(const struct rt_gang *g, struct rt_buffer *const *const *args,
			       size_t n_args, const bool *keep, const struct rt_host *hosts,
			       struct rt_buffer **const *outs, struct rt_event **done,
			       struct err *err)
{
	bool meets = g->exe[0]->image->n_slots, wait;
	unsigned n = 0;
	int code;

	if (meets)
		code = execute_meeting_with_hosts(g, args, n_args, keep, hosts, outs, done, err);
	else
		code = check_all(g, args, n_args, keep, &wait, err);
	while (!code && !meets && n < g->n) {
		code = rt_execute_with_host(g->exe[n], args[n], n_args, keep, &hosts[n], outs[n],
					    &done[n], err);
		n += !code;
	}
	if (!code)
		return 0;
	for (unsigned m = n; m < g->n; m++)
		hosts[m].free(hosts[m].arg);
	while (n--) {
		for (unsigned i = 0; i < g->exe[n]->image->info.n_results; i++)
			rt_buffer_unref(outs[n][i]);
		rt_event_unref(done[n]);
	}
	return code;
}
