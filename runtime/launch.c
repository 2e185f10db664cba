/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches: arguments checked and taken, results made, one submission. A launch with an
 * argument that is pending is deferred: the caller gets pending results at once, its
 * arguments count as in use and, where donated, are deleted at once; the launch itself runs
 * on the client's thread when the last of them is resolved. Deferred launches keep no order
 * among each other: their uses keep what they read from being written by others.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/rt_internal.h"

#define BINDINGS_ON_STACK 128u

/* ---- checking ---- */

static int check_argument(const struct rt_exe *x, unsigned i, struct rt_buffer *b,
			  struct err *err)
{
	const struct image_shape *want = &x->image->shapes[i];
	const struct rt_shape *s = &b->shape;

	if (b->device != x->device || b->client != x->client)
		return err_set(err, ERR_INVALID_ARGUMENT, "argument %u lies on device %u, the "
			       "program runs on device %u", i, b->device, x->device);
	/* Tokens arrive as empty arrays of pred. */
	if (want->elem == ELEM_TOKEN)
		return 0;
	if (s->elem != want->elem || s->rank != want->rank ||
	    memcmp(s->dim, want->dim, s->rank * sizeof(*s->dim)))
		return err_set(err, ERR_INVALID_ARGUMENT, "argument %u is of %s rank %u and "
			       "%llu bytes; the program takes %s rank %u and %llu bytes", i,
			       elem_text(s->elem), s->rank,
			       (unsigned long long)rt_shape_bytes(s), elem_text(want->elem),
			       want->rank, (unsigned long long)image_shape_bytes(want));
	if (memcmp(s->order, want->order, sizeof(s->order)))
		return err_set(err, ERR_INVALID_ARGUMENT, "argument %u lies in memory in another "
			       "order of its dims than the program takes it", i);
	return 0;
}

/* A launch being put together. */
struct launch {
	struct rt_exe *x;
	struct rt_buffer *const *args;
	struct rt_storage **storages;	/* of the arguments, with references */
	struct rt_buffer **outs;
	struct hw_binding *bindings;
	bool *donated;
	const bool *keep;
	bool was_deferred;	/* the arguments are in use once, deleted or not */
	const struct rt_host *host;	/* of a program that calls it; then: */
	struct hal_mem **mems;	/* of each binding */
	struct hal_mem *temp;	/* its own */
	uint64_t temp_use;	/* newest submission that uses it */
};

/* A table of the buffers among the arguments, open addressing by their addresses. */
struct seen { const struct rt_buffer *buffer; unsigned at; };

static int clash(unsigned i, unsigned first, bool is_donated, bool first_is, struct err *err)
{
	return err_set(err, ERR_INVALID_ARGUMENT, "Attempt to donate %s Execute() (flattened "
		       "argument %u, first use: %u). Toy example for this bug: `f(%s, %s)`. "
		       "Donate a copy, or do not donate it", is_donated && first_is ?
		       "the same buffer twice in" : "a buffer which is also used by the same "
		       "call to", i, first, first_is ? "donate(a)" : "a",
		       is_donated ? "donate(a)" : "a");
}

/* A donated buffer is nobody else's argument: its content is written over. */
static int check_donations(const struct rt_exe *x, struct rt_buffer *const *args, size_t n,
			   const bool *keep, struct err *err)
{
	const struct image_shape *shapes = x->image->shapes;
	struct seen some[64], *seen = some;
	size_t room = 64, i = 0, at;
	int code = 0;

	while (i < n && (shapes[i].alias < 0 || (keep && keep[i])))
		i++;
	if (i == n || n < 2)
		return 0;
	while (room < 2 * n)
		room *= 2;
	if (room > 64)
		seen = malloc(room * sizeof(*seen));
	if (!seen)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	memset(seen, 0, room * sizeof(*seen));
	for (i = 0; !code && i < n; i++) {
		bool is_donated = shapes[i].alias >= 0 && !(keep && keep[i]), first_is;

		at = ((uintptr_t)args[i] >> 4) * 0x9e3779b97f4a7c15u >> 20;
		for (at %= room; seen[at].buffer && seen[at].buffer != args[i];)
			at = (at + 1) % room;
		if (!seen[at].buffer) {
			seen[at] = (struct seen){ args[i], (unsigned)i };
			continue;
		}
		first_is = shapes[seen[at].at].alias >= 0 && !(keep && keep[seen[at].at]);
		if (is_donated || first_is)
			code = clash((unsigned)i, seen[at].at, is_donated, first_is, err);
	}
	if (seen != some)
		free(seen);
	return code;
}

/* Whether these may be the arguments; *wait: one is still pending. */
static int check_arguments(const struct rt_exe *x, struct rt_buffer *const *args, size_t n,
			   bool *wait, struct err *err)
{
	const struct image *im = x->image;

	*wait = false;
	if (n != im->info.n_args)
		return err_set(err, ERR_INVALID_ARGUMENT, "%s takes %u arguments, not %zu",
			       image_string(im, im->info.name), im->info.n_args, n);
	for (unsigned i = 0; i < n; i++) {
		int code = check_argument(x, i, args[i], err);

		if (code)
			return code;
		*wait |= rt_buffer_is_pending(args[i]);
	}
	return 0;
}

static bool may_donate(const struct launch *l, unsigned i)
{
	return l->x->image->shapes[i].alias >= 0 && !(l->keep && l->keep[i]);
}

/* References to the arguments' storages, and which of them nobody else has: those are
 * deleted from here on, so that nobody else gets one. */
static int take_arguments(struct launch *l, size_t n, struct err *err)
{
	for (unsigned i = 0; i < n; i++) {
		struct rt_buffer *b = l->args[i];

		pthread_mutex_lock(&b->lock);
		if (b->storage && (!b->is_deleted || l->was_deferred)) {
			l->storages[i] = b->storage;
			atomic_fetch_add(&b->storage->refs, 1);
		}
		pthread_mutex_unlock(&b->lock);
		if (!l->storages[i] && !b->error)
			return err_set(err, ERR_INVALID_ARGUMENT, "argument %u was deleted or "
				       "donated", i);
	}
	for (unsigned i = 0; i < n; i++) {
		struct rt_buffer *b = l->args[i];

		if (!may_donate(l, i) || !l->storages[i] || l->storages[i]->pointer)
			continue;
		pthread_mutex_lock(&b->lock);
		/* The buffer's reference and ours. */
		l->donated[i] = b->storage == l->storages[i] && !b->external_refs &&
				b->uses == l->was_deferred &&
				atomic_load(&b->storage->refs) == 2;
		if (l->donated[i])
			b->is_deleted = true;
		pthread_mutex_unlock(&b->lock);
	}
	return 0;
}

/* A launch that failed gives back what it took, unless its owner deleted it since. */
static void give_back(struct launch *l)
{
	for (unsigned i = 0; i < l->x->image->info.n_args; i++) {
		struct rt_buffer *b = l->args[i];

		if (!l->donated[i] || l->was_deferred)
			continue;
		pthread_mutex_lock(&b->lock);
		b->is_deleted = !b->storage;
		pthread_mutex_unlock(&b->lock);
	}
}

/* Memory for results, or the donated argument's. */
static int make_results(struct launch *l, struct err *err)
{
	const struct image *im = l->x->image;

	for (unsigned i = 0; i < im->info.n_results; i++) {
		const struct image_shape *s = &im->shapes[im->info.n_args + i];
		struct rt_shape shape;
		enum rt_memory_kind kind = (enum rt_memory_kind)s->memory_kind;
		int code;

		rt_shape_of(s, &shape);
		if (s->alias >= 0 && l->donated[s->alias]) {
			l->outs[i] = rt_buffer_share(l->args[s->alias], &shape);
			code = l->outs[i] ? 0 : err_set(err, ERR_RESOURCE_EXHAUSTED,
							"out of memory");
		} else {
			code = rt_buffer_new(l->x->client, l->x->device, kind, &shape,
					     image_string(im, im->info.name), &l->outs[i],
					     err);
		}
		if (code)
			return code;
	}
	return 0;
}

static void bind(struct launch *l, struct rt_device *d)
{
	const struct image *im = l->x->image;
	struct hal_mem *constants = hal_exe_constants(l->x->hal);

	for (size_t i = 0; i < im->n_bindings; i++) {
		const struct image_binding *b = &im->bindings[i];
		struct hal_mem *m = NULL;

		switch (b->kind) {
		case IMAGE_CONSTANTS: m = constants; break;
		case IMAGE_TEMP: m = l->host ? l->temp : d->scratch; break;
		case IMAGE_RANDOM: m = d->random; break;
		case IMAGE_ARG: {
			int32_t out = im->shapes[b->index].alias;

			/* An argument that was to be overwritten but must stay: the
			 * result's own memory, with its content copied there. */
			m = out >= 0 && !l->donated[b->index] ?
				l->outs[out]->storage->mem : l->storages[b->index]->mem;
			break;
		}
		default: m = l->outs[b->index]->storage->mem; break;
		}
		if (l->mems)
			l->mems[i] = m;
		l->bindings[i] = (struct hw_binding){ m && b->bytes ? hal_mem_va(m) : 0,
						      m && b->bytes ? hal_mem_bytes(m) : 0 };
	}
}

/* Notes that submission `value` uses the storage. */
static void used(struct rt_storage *s, uint64_t value)
{
	uint64_t last = atomic_load(&s->last_use);

	while (last < value && !atomic_compare_exchange_weak(&s->last_use, &last, value))
		;
}

/* Arguments that the program overwrites but the caller keeps are copied first, in
 * queue order. */
static int save_kept(struct launch *l, struct rt_device *d, struct err *err)
{
	const struct image *im = l->x->image;
	uint64_t value;
	int code;

	for (unsigned i = 0; i < im->info.n_args; i++) {
		int32_t out = im->shapes[i].alias;
		struct hal_mem *from, *to;

		if (out < 0 || l->donated[i])
			continue;
		from = l->storages[i]->mem;
		to = l->outs[out]->storage->mem;
		if (!from || !to)
			continue;
		code = hal_queue_copy(d->queue, to, 0, from, 0, image_shape_bytes(
				      &im->shapes[i]), NULL, 0, &value, err);
		if (code)
			return code;
		/* Should the launch fail, the memory still waits for this copy. */
		used(l->storages[i], value);
		used(l->outs[out]->storage, value);
	}
	return 0;
}

static void finish(struct launch *l, uint64_t value)
{
	const struct image *im = l->x->image;

	for (unsigned i = 0; i < im->info.n_args; i++) {
		if (l->storages[i])
			used(l->storages[i], value);
		if (may_donate(l, i))
			rt_buffer_delete(l->args[i]);
	}
	for (unsigned i = 0; i < im->info.n_results; i++) {
		l->outs[i]->value = value;
		used(l->outs[i]->storage, value);
	}
}

/* What keeps an argument's content from being what its program computes: an error in its place,
 * or a submission that has failed; 0 if nothing has by now. Work that is pending when another
 * fails is dropped with it (hal.h), so that only what was submitted later has to ask. */
static int argument_error(const struct launch *l, struct err *why)
{
	struct hal_queue *q = l->x->client->devices[l->x->device].queue;
	int code = 0;

	for (unsigned i = 0; !code && i < l->x->image->info.n_args; i++) {
		const struct rt_buffer *b = l->args[i];

		if (b->error) {
			*why = *b->error;
			code = why->code;
		} else if (b->value) {
			code = hal_queue_error(q, b->value, why);
		}
	}
	return code;
}

/* The results of a submission that read what was never written: that error. */
static int spoil_results(struct launch *l, const struct err *why, struct rt_event **done,
			 struct err *err)
{
	for (unsigned i = 0; i < l->x->image->info.n_results; i++) {
		struct rt_buffer *b = l->outs[i];

		b->error = malloc(sizeof(*b->error));
		if (!b->error)
			return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
		*b->error = *why;
	}
	*done = rt_event_done(why);
	return *done ? 0 : err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
}

/* Results of a launch whose arguments hold an error: that error. */
static int spread_error(struct launch *l, const struct err *why, struct rt_event **done,
			struct err *err)
{
	const struct image *im = l->x->image;

	for (unsigned i = 0; i < im->info.n_results; i++) {
		const struct image_shape *s = &im->shapes[im->info.n_args + i];
		struct rt_shape shape;
		int code;

		rt_shape_of(s, &shape);
		code = rt_buffer_of_error(l->x->client, l->x->device,
					  (enum rt_memory_kind)s->memory_kind, &shape, why,
					  &l->outs[i], err);
		if (code)
			return code;
	}
	for (unsigned i = 0; i < im->info.n_args; i++)
		if (may_donate(l, i))
			rt_buffer_delete(l->args[i]);
	*done = rt_event_done(why);
	return *done ? 0 : err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
}

/* Takes device.lock, with temporaries; not on failure. */
static int lock_with_temporaries(struct launch *l, struct rt_device *d, struct err *err)
{
	const struct image *im = l->x->image;
	int code;

	if (!l->host)
		return rt_lock_with_scratch(l->x->client, l->x->device, im->info.temp_bytes,
					    err);
	code = rt_alloc(l->x->client, l->x->device, RT_DEVICE, im->info.temp_bytes,
			image_string(im, im->info.name), &l->temp, err);
	if (!code)
		pthread_mutex_lock(&d->lock);
	return code;
}

/* To the end of the program, however often it stops. */
static int run_calls(struct launch *l, uint64_t *value, struct err *err)
{
	const struct rt_calls calls = { l->x, l->bindings, l->mems, l->host };
	int code = rt_run_calls(&calls, value, err);

	l->temp_use = *value;
	return code;
}

/* Says to the program's first run that no call was made yet. */
static int clear_call(struct launch *l, struct rt_device *d, struct err *err)
{
	return l->host ? hal_queue_fill(d->queue, l->temp, 0, 8, 0, &l->temp_use, err) : 0;
}

static int run(struct launch *l, struct rt_event **done, struct err *err)
{
	struct rt_device *d = &l->x->client->devices[l->x->device];
	struct hal_launch launch = { .exe = l->x->hal, .bindings = l->bindings };
	struct err why;
	uint64_t value;
	int code;

	code = make_results(l, err);
	if (code)
		return code;
	code = lock_with_temporaries(l, d, err);
	if (code)
		return code;
	if (d->is_poisoned) {
		*err = d->poison;
		code = err->code;
	}
	if (!code)
		code = save_kept(l, d, err);
	if (!code) {
		bind(l, d);
		code = clear_call(l, d, err);
	}
	if (!code)
		code = hal_queue_execute(d->queue, &launch, &value, err);
	if (!code)
		atomic_store(&l->x->last_use, value);
	if (!code && l->x->image->info.temp_bytes && !l->host)
		d->scratch_use = value;
	if (!code)
		hal_note_executable(d->hal, image_string(l->x->image,
							 l->x->image->info.name));
	pthread_mutex_unlock(&d->lock);
	if (!code && l->host)
		code = run_calls(l, &value, err);
	if (code)
		return code;
	finish(l, value);
	/* What wrote an argument may have failed just before this was submitted. */
	if (argument_error(l, &why))
		return spoil_results(l, &why, done, err);
	*done = rt_event_of_submission(d->queue, value);
	return *done ? 0 : err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
}

static int launch_now(struct rt_exe *x, struct rt_buffer *const *args, size_t n_args,
		      const bool *keep, bool was_deferred, const struct rt_host *host,
		      struct rt_buffer **outs, struct rt_event **done, struct err *err)
{
	const struct image *im = x->image;
	size_t room = im->info.n_args + im->n_bindings + 1;
	struct rt_storage *few[BINDINGS_ON_STACK];
	struct hw_binding some[BINDINGS_ON_STACK];
	bool flags[BINDINGS_ON_STACK];
	struct launch l = { .x = x, .args = args, .outs = outs, .keep = keep,
			    .was_deferred = was_deferred, .host = host };
	struct err why;
	int code;

	l.storages = room <= BINDINGS_ON_STACK ? few : malloc(room * sizeof(*few));
	l.bindings = room <= BINDINGS_ON_STACK ? some : malloc(room * sizeof(*some));
	l.donated = room <= BINDINGS_ON_STACK ? flags : malloc(room * sizeof(*flags));
	l.mems = host ? calloc(im->n_bindings, sizeof(*l.mems)) : NULL;
	if (!l.storages || !l.bindings || !l.donated || (host && !l.mems)) {
		code = err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
		goto free_lists;
	}
	memset(l.storages, 0, room * sizeof(*l.storages));
	memset(outs, 0, im->info.n_results * sizeof(*outs));
	memset(l.donated, 0, room * sizeof(*l.donated));
	code = take_arguments(&l, n_args, err);
	if (!code)
		code = argument_error(&l, &why) ? spread_error(&l, &why, done, err) :
						  run(&l, done, err);
	if (code)
		give_back(&l);
	rt_discard(x->client, x->device, l.temp, l.temp_use);
	for (unsigned i = 0; i < im->info.n_args; i++)
		rt_storage_unref(l.storages[i]);
	if (code)
		for (unsigned i = 0; i < im->info.n_results; i++)
			rt_buffer_unref(outs[i]);
free_lists:
	free(l.mems);
	if (room > BINDINGS_ON_STACK) {
		free(l.storages);
		free(l.bindings);
		free(l.donated);
	}
	return code;
}

/* ---- deferred launches ---- */

struct deferred {
	struct rt_exe *x;
	size_t n_args, n_outs;
	struct rt_buffer **args;	/* in use */
	struct rt_buffer **outs;	/* references */
	struct rt_buffer **real;	/* room for the launch's own results */
	struct rt_callback *callbacks;	/* one an argument */
	bool *keep;
	struct rt_event *done;
	struct rt_callback end;
	atomic_size_t waits;
	bool calls_host;
	struct rt_host host;	/* if so; arg is ours until `free` is NULL */
	struct rt_turn turn;
};

static void let_go(struct deferred *d)
{
	for (size_t i = 0; i < d->n_args; i++)
		rt_buffer_end_use(d->args[i]);
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
	if (d->host.free)
		d->host.free(d->host.arg);
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

static void fail(struct deferred *d, const struct err *why)
{
	for (size_t i = 0; i < d->n_outs; i++)
		rt_buffer_resolve(d->outs[i], why);
	end(d, why);
}

static void run_deferred(void *arg)
{
	struct deferred *d = arg;
	struct rt_event *done;
	struct err err;

	if (launch_now(d->x, d->args, d->n_args, d->keep, true,
		       d->calls_host ? &d->host : NULL, d->real, &done, &err)) {
		fail(d, &err);
		return;
	}
	for (size_t i = 0; i < d->n_outs; i++) {
		rt_buffer_resolve_from(d->outs[i], d->real[i]);
		rt_buffer_unref(d->real[i]);
	}
	/* The launch has its own references now. */
	let_go(d);
	rt_event_on_ready(done, &d->end, end, d);
	rt_event_unref(done);
}

static void arrive(void *arg, const struct err *err)
{
	struct deferred *d = arg;
	struct err why;

	(void)err;
	if (atomic_fetch_sub(&d->waits, 1) != 1)
		return;
	if (d->calls_host) {
		if (rt_turn_queue(&d->x->client->devices[d->x->device].turns, &d->turn, &why))
			fail(d, &why);
		return;
	}
	if (!rt_later(d->x->client, run_deferred, d, NULL))
		return;
	rt_in_callback++;
	run_deferred(d);
	rt_in_callback--;
}

static struct deferred *make_deferred(struct rt_exe *x, size_t n_args, const bool *keep)
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
		struct rt_shape shape;

		rt_shape_of(s, &shape);
		code = rt_buffer_new_pending(d->x->client, d->x->device,
					     (enum rt_memory_kind)s->memory_kind, &shape, NULL,
					     &d->outs[d->n_outs], err);
		d->n_outs += !code;
	}
	return code;
}

static int launch_later(struct rt_exe *x, struct rt_buffer *const *args, size_t n_args,
			const bool *keep, const struct rt_host *host,
			struct rt_buffer **outs, struct rt_event **done, struct err *err)
{
	struct deferred *d = make_deferred(x, n_args, keep);
	int code;

	if (!d)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	code = make_outs(d, err);
	while (!code && d->n_args < n_args) {
		code = rt_buffer_begin_use(args[d->n_args], err);
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
	d->calls_host = host != NULL;
	if (host)
		d->host = *host;
	d->turn = (struct rt_turn){ .fn = run_deferred, .arg = d,
				    .is_nested = rt_turn_is_nested() };
	atomic_init(&d->waits, 1);
	for (size_t i = 0; i < n_args; i++) {
		if (!rt_buffer_is_pending(args[i]))
			continue;
		atomic_fetch_add(&d->waits, 1);
		rt_event_on_ready(args[i]->resolved, &d->callbacks[i], arrive, d);
	}
	arrive(d, NULL);
	return 0;
}

/* ---- either ---- */

static int check_launch(struct rt_exe *x, struct rt_buffer *const *args, size_t n_args,
			const bool *keep, const struct rt_host *host, bool *wait,
			struct err *err)
{
	int code;

	if (atomic_load(&x->is_deleted))
		return err_set(err, ERR_INVALID_ARGUMENT, "the executable was deleted");
	code = check_arguments(x, args, n_args, wait, err);
	if (!code)
		code = check_donations(x, args, n_args, keep, err);
	return code ? code : rt_check_host(x->image, host, err);
}

int rt_execute(struct rt_exe *x, struct rt_buffer *const *args, size_t n_args,
	       const bool *keep, struct rt_buffer **outs, struct rt_event **done,
	       struct err *err)
{
	bool wait;
	int code = check_launch(x, args, n_args, keep, NULL, &wait, err);

	if (code)
		return code;
	return wait ? launch_later(x, args, n_args, keep, NULL, outs, done, err) :
		      launch_now(x, args, n_args, keep, false, NULL, outs, done, err);
}

int rt_execute_with_host(struct rt_exe *x, struct rt_buffer *const *args, size_t n_args,
			 const bool *keep, const struct rt_host *host,
			 struct rt_buffer **outs, struct rt_event **done, struct err *err)
{
	bool wait;
	int code = check_launch(x, args, n_args, keep, host, &wait, err);

	if (!code && x->image->n_transfers)
		return launch_later(x, args, n_args, keep, host, outs, done, err);
	/* It has functions that it does not call. */
	if (!code)
		code = rt_execute(x, args, n_args, keep, outs, done, err);
	if (!code)
		host->free(host->arg);
	return code;
}
