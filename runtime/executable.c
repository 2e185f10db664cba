/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executables: a program loaded on one device, launched. A launch whose arguments are
 * not settled is put aside (deferred.c) and comes back here when they are.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/rt_internal.h"

#define BINDINGS_ON_STACK 128u

/* ---- life ---- */

static void free_exe(struct rt_exe *x)
{
	struct rt_client *c = x->client;

	hal_exe_unload(x->hal);
	rt_scratch_leave(x);
	rt_program_unref(x->program);
	free(x);
	rt_client_unref(c);
}

static void free_job(void *arg)
{
	free_exe(arg);
}

/* On the device's waiter thread, which must not wait. */
static void is_idle(void *arg, const struct err *err)
{
	struct rt_exe *x = arg;

	(void)err;
	if (rt_later(x->client, free_job, x, NULL)) {
		rt_in_callback++;
		free_exe(x);
		rt_in_callback--;
	}
}

void rt_exe_ref(struct rt_exe *x)
{
	atomic_fetch_add(&x->refs, 1);
}

void rt_exe_unref(struct rt_exe *x)
{
	struct hal_queue *q;
	uint64_t last;

	if (!x || atomic_fetch_sub(&x->refs, 1) != 1 || rt_is_orphan(x->client))
		return;
	q = x->client->devices[x->device].queue;
	last = atomic_load(&x->last_use);
	rt_scratch_leave(x);
	/* Its queued runs need it, however long they take; its owner need not wait. */
	if (!last || hal_queue_done(q) >= last || hal_queue_notify(q, last, is_idle, x, NULL))
		free_exe(x);
}

static int load(struct rt_client *c, unsigned device, struct rt_program *p,
		struct rt_exe **out, struct err *err)
{
	struct rt_exe *x = calloc(1, sizeof(*x));
	int code;

	if (!x)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	atomic_init(&x->refs, 1);
	x->client = c;
	rt_client_ref(c);
	x->device = device;
	x->program = p;
	rt_program_ref(p);
	x->image = p->image;
	code = hal_exe_load_kept(c->devices[device].hal, p->bytes, p->n_bytes, &x->hal, err);
	if (code == ERR_RESOURCE_EXHAUSTED) {
		rt_make_room(c, device);
		code = hal_exe_load_kept(c->devices[device].hal, p->bytes, p->n_bytes,
					 &x->hal, err);
	}
	if (code) {
		free_exe(x);
		return code;
	}
	rt_scratch_join(x);
	*out = x;
	return 0;
}

int rt_load(struct rt_client *c, struct rt_program *p, const void *options,
	    size_t options_bytes, struct rt_exe **out, struct err *err)
{
	unsigned device;
	int code;

	if (!options_bytes) {
		options = p->options;
		options_bytes = p->options_bytes;
	}
	code = rt_parse_options(c->n_devices, options, options_bytes, &device, err);
	return code ? code : load(c, device, p, out, err);
}

/* A device that refuses what was just compiled for it: nothing is wrong with the source. */
static int not_the_users(int status, struct err *err)
{
	if (status != ERR_INVALID_ARGUMENT)
		return status;
	if (err)
		err->code = ERR_INTERNAL;
	return ERR_INTERNAL;
}

int rt_compile(struct rt_client *c, const void *code, size_t code_bytes, const char *format,
	       const void *options, size_t options_bytes, struct rt_exe **out,
	       struct err *err)
{
	struct rt_target target;
	struct rt_program *p;
	bool was_cached = false;
	unsigned device;
	int status = rt_parse_options(c->n_devices, options, options_bytes, &device, err);

	if (status)
		return status;
	target.cores = c->devices[device].info.cores;
	target.memory_bytes = c->devices[device].info.hbm_bytes;
	status = rt_program_make(&target, code, code_bytes, format, options, options_bytes,
				 &was_cached, &p, err);
	if (status)
		return status;
	status = load(c, device, p, out, err);
	rt_program_unref(p);
	if (!was_cached)
		return not_the_users(status, err);
	if (status != ERR_INVALID_ARGUMENT && status != ERR_UNIMPLEMENTED)
		return status;
	/* It was whole but this device refuses it: written by another build. */
	status = rt_program_make(&target, code, code_bytes, format, options, options_bytes,
				 &was_cached, &p, err);
	if (status)
		return status;
	status = load(c, device, p, out, err);
	rt_program_unref(p);
	return not_the_users(status, err);
}

struct rt_client *rt_exe_client(const struct rt_exe *x)
{
	return x->client;
}

struct rt_program *rt_exe_program(const struct rt_exe *x)
{
	return x->program;
}

unsigned rt_exe_device(const struct rt_exe *x)
{
	return x->device;
}

void rt_exe_delete(struct rt_exe *x)
{
	atomic_store(&x->is_deleted, true);
	if (!rt_is_orphan(x->client))
		rt_scratch_leave(x);
}

bool rt_exe_is_deleted(struct rt_exe *x)
{
	return atomic_load(&x->is_deleted);
}

/* ---- launching ---- */

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
	bool was_deferred;	/* the arguments are pinned once, deleted or not */
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

/* Whether these may be the arguments; *wait: one is not settled yet. */
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
		l->donated[i] = b->storage == l->storages[i] && !b->holds &&
				b->pins == l->was_deferred &&
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
		struct rt_shape shape = { .elem = (enum elem)s->elem, .rank = s->rank };
		enum rt_memory_kind kind = (enum rt_memory_kind)s->memory_kind;
		int code;

		memcpy(shape.dim, s->dim, s->rank * sizeof(*s->dim));
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
		case IMAGE_TEMP: m = d->scratch; break;
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

/* Results of a launch whose arguments hold an error: that error. */
static int spread_error(struct launch *l, const struct err *why, struct rt_event **done,
			struct err *err)
{
	const struct image *im = l->x->image;

	for (unsigned i = 0; i < im->info.n_results; i++) {
		const struct image_shape *s = &im->shapes[im->info.n_args + i];
		struct rt_shape shape = { .elem = (enum elem)s->elem, .rank = s->rank };
		int code;

		memcpy(shape.dim, s->dim, s->rank * sizeof(*s->dim));
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

static int run(struct launch *l, struct rt_event **done, struct err *err)
{
	struct rt_device *d = &l->x->client->devices[l->x->device];
	struct hal_launch launch = { .exe = l->x->hal, .bindings = l->bindings };
	struct rt_buffer probe;
	uint64_t value;
	int code;

	code = make_results(l, err);
	if (code)
		return code;
	code = rt_lock_with_scratch(l->x->client, l->x->device,
				    l->x->image->info.temp_bytes, err);
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
		code = hal_queue_execute(d->queue, &launch, &value, err);
	}
	if (!code)
		atomic_store(&l->x->last_use, value);
	if (!code && l->x->image->info.temp_bytes)
		d->scratch_use = value;
	if (!code)
		hal_note_executable(d->hal, image_string(l->x->image,
							 l->x->image->info.name));
	pthread_mutex_unlock(&d->lock);
	if (code)
		return code;
	finish(l, value);
	probe = (struct rt_buffer){ .client = l->x->client, .device = l->x->device,
				    .value = value };
	pthread_mutex_init(&probe.lock, NULL);
	*done = rt_buffer_ready(&probe);
	pthread_mutex_destroy(&probe.lock);
	return *done ? 0 : err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
}

int rt_execute_now(struct rt_exe *x, struct rt_buffer *const *args, size_t n_args,
		   const bool *keep, bool was_deferred, struct rt_buffer **outs,
		   struct rt_event **done, struct err *err)
{
	const struct image *im = x->image;
	size_t room = im->info.n_args + im->n_bindings + 1;
	struct rt_storage *few[BINDINGS_ON_STACK];
	struct hw_binding some[BINDINGS_ON_STACK];
	bool flags[BINDINGS_ON_STACK];
	struct launch l = { .x = x, .args = args, .outs = outs, .keep = keep,
			    .was_deferred = was_deferred };
	const struct err *broken = NULL;
	int code;

	l.storages = room <= BINDINGS_ON_STACK ? few : malloc(room * sizeof(*few));
	l.bindings = room <= BINDINGS_ON_STACK ? some : malloc(room * sizeof(*some));
	l.donated = room <= BINDINGS_ON_STACK ? flags : malloc(room * sizeof(*flags));
	if (!l.storages || !l.bindings || !l.donated) {
		code = err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
		goto free_lists;
	}
	memset(l.storages, 0, room * sizeof(*l.storages));
	memset(outs, 0, im->info.n_results * sizeof(*outs));
	memset(l.donated, 0, room * sizeof(*l.donated));
	code = take_arguments(&l, n_args, err);
	for (size_t i = 0; !code && i < n_args; i++)
		if (args[i]->error)
			broken = args[i]->error;
	if (!code)
		code = broken ? spread_error(&l, broken, done, err) : run(&l, done, err);
	if (code)
		give_back(&l);
	for (unsigned i = 0; i < im->info.n_args; i++)
		rt_storage_unref(l.storages[i]);
	if (code)
		for (unsigned i = 0; i < im->info.n_results; i++)
			rt_buffer_unref(outs[i]);
free_lists:
	if (room > BINDINGS_ON_STACK) {
		free(l.storages);
		free(l.bindings);
		free(l.donated);
	}
	return code;
}

int rt_execute(struct rt_exe *x, struct rt_buffer *const *args, size_t n_args,
	       const bool *keep, struct rt_buffer **outs, struct rt_event **done,
	       struct err *err)
{
	bool wait;
	int code;

	if (rt_exe_is_deleted(x))
		return err_set(err, ERR_INVALID_ARGUMENT, "the executable was deleted");
	code = check_arguments(x, args, n_args, &wait, err);
	if (!code)
		code = check_donations(x, args, n_args, keep, err);
	if (code)
		return code;
	return wait ? rt_execute_later(x, args, n_args, keep, outs, done, err) :
		      rt_execute_now(x, args, n_args, keep, false, outs, done, err);
}
