/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One member's part of a launch, put together: its arguments checked and taken, its results made,
 * its bindings filled in, one submission. gang.c says in which order members do that.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/rt_internal.h"

/* ---- checking ---- */

/* It may be shorter where the program takes it for long. */
static int refuse_short(const struct rt_shape *s, const struct image_shape *want, unsigned i,
			struct err *err)
{
	int d = __builtin_ctz(s->bounded & ~want->bounded);

	return err_set(err, ERR_INVALID_ARGUMENT, "argument %u has a dim %d of at most %lld, whose "
		       "size is known on the device only; the program takes one of %lld", i, d,
		       (long long)s->dim[d], (long long)want->dim[d]);
}

static bool is_integer(unsigned elem)
{
	unsigned c = elem_class(elem);

	return c == ELEM_CLASS_SINT || c == ELEM_CLASS_UINT;
}

static bool is_empty(const struct rt_shape *s)
{
	for (unsigned d = 0; d < s->rank; d++)
		if (!s->dim[d])
			return true;
	return false;
}

/*
 * Whether an array is read as one of the wanted type: of integers that only differ in having a
 * sign; of truth values, which are 0 or 1, as bytes; of nothing, as anything. torch_xla declares
 * some results so (int8's remainder is computed in ui8), as XLA's CPU and GPU backends let it.
 * Bytes as truth values could be others than 0 and 1, so they come as a copy (rt_sized_begin); a
 * number as another would be silent nonsense.
 */
static bool reads_as(const struct rt_shape *s, unsigned want)
{
	if (s->elem == want || is_empty(s))
		return true;
	if (s->elem == ELEM_PRED)
		return is_integer(want) && elem_bits(want) == 8;
	return is_integer(s->elem) && is_integer(want) && elem_bits(s->elem) == elem_bits(want);
}

static int check_argument(const struct rt_exe *x, unsigned i, struct rt_buffer *b,
			  struct err *err)
{
	const struct image_shape *want = &x->image->shapes[i];
	const struct rt_shape *s = &b->shape;

	if (b->client != x->client)
		return err_set(err, ERR_INVALID_ARGUMENT, "argument %u belongs to another client "
			       "than the program's: bring it over by way of the host", i);
	if (b->device != x->device)
		return err_set(err, ERR_INVALID_ARGUMENT, "argument %u lies on device %u, the "
			       "program runs on device %u", i, b->device, x->device);
	/* Tokens arrive as empty arrays of pred. */
	if (want->elem == ELEM_TOKEN)
		return 0;
	if (s->bounded & ~want->bounded && s->rank == want->rank)
		return refuse_short(s, want, i, err);
	if (!reads_as(s, want->elem) || s->rank != want->rank ||
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

int rt_launch_check(struct rt_exe *x, struct rt_buffer *const *args, size_t n_args,
		    const bool *keep, bool *wait, struct err *err)
{
	int code;

	if (atomic_load(&x->is_deleted))
		return err_set(err, ERR_INVALID_ARGUMENT, "the executable was deleted");
	code = check_arguments(x, args, n_args, wait, err);
	return code ? code : check_donations(x, args, n_args, keep, err);
}

/* ---- putting together ---- */

static bool may_donate(const struct rt_launch *l, unsigned i)
{
	return l->x->image->shapes[i].alias >= 0 && !(l->keep && l->keep[i]);
}

static bool make_lists(struct rt_launch *l, struct rt_launch_room *few)
{
	const struct image *im = l->x->image;
	size_t room = im->info.n_args + im->n_bindings + 1;

	l->is_few = few && room <= RT_LAUNCH_FEW;
	l->storages = l->is_few ? few->storages : malloc(room * sizeof(*l->storages));
	l->bindings = l->is_few ? few->bindings : malloc(room * sizeof(*l->bindings));
	l->donated = l->is_few ? few->donated : malloc(room * sizeof(*l->donated));
	l->mems = l->host ? calloc(im->n_bindings, sizeof(*l->mems)) : NULL;
	if (im->info.n_results)
		memset(l->outs, 0, im->info.n_results * sizeof(*l->outs));
	if (l->storages)
		memset(l->storages, 0, room * sizeof(*l->storages));
	if (l->donated)
		memset(l->donated, 0, room * sizeof(*l->donated));
	return l->storages && l->bindings && l->donated && (l->mems || !l->host);
}

int rt_launch_take(struct rt_launch *l, struct rt_launch_room *few, struct err *err)
{
	unsigned n = l->x->image->info.n_args;

	if (!make_lists(l, few))
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
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
static void give_back(struct rt_launch *l)
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

int rt_launch_make_results(struct rt_launch *l, struct err *err)
{
	const struct image *im = l->x->image;
	/* The host writes what its functions give. Members send each other what was asked for by
	 * the same launch, so when the receiver has come to it. */
	bool in_order = !l->host;

	for (unsigned i = 0; i < im->info.n_results; i++) {
		const struct image_shape *s = &im->shapes[im->info.n_args + i];
		struct rt_shape shape;
		enum rt_memory_kind kind = (enum rt_memory_kind)s->memory_kind;
		int code;

		rt_shape_of(s, &shape);
		if (s->alias >= 0 && l->donated[s->alias]) {
			l->outs[i] = rt_buffer_share(l->args[s->alias], l->storages[s->alias],
						     &shape);
			code = l->outs[i] ? 0 : err_set(err, ERR_RESOURCE_EXHAUSTED,
							"out of memory");
		} else {
			code = rt_buffer_new(l->x->client, l->x->device, kind, &shape,
					     image_string(im, im->info.name), in_order,
					     &l->outs[i], err);
		}
		if (code)
			return code;
	}
	if (!l->host)
		return 0;
	return rt_alloc(l->x->client, l->x->device, RT_DEVICE, im->info.temp_bytes,
			image_string(im, im->info.name), NULL, &l->temp, err);
}

/* Another member's mailbox, where this one's device sees it. */
static struct hw_binding bind_peer(const struct rt_launch *l, unsigned slot)
{
	const struct rt_meeting *g = l->meeting;
	size_t i = l->x->member * l->x->image->n_slots + slot;

	return (struct hw_binding){ g->va[i], g->box_bytes };
}

static void bind(struct rt_launch *l, struct rt_device *d)
{
	const struct image *im = l->x->image;
	unsigned member = l->x->member;
	struct hal_mem *constants = hal_exe_constants(l->x->hal);

	for (size_t i = 0; i < im->n_bindings; i++) {
		const struct image_binding *b = &im->bindings[i];
		struct hal_mem *m = NULL;

		switch (b->kind) {
		case IMAGE_CONSTANTS: m = constants; break;
		case IMAGE_TEMP: m = l->host ? l->temp : d->scratch; break;
		case IMAGE_RANDOM: m = d->random; break;
		case IMAGE_MAILBOX: m = l->meeting->at[member].mailbox; break;
		case IMAGE_MEMBER: m = l->x->meeting->at[member].row; break;
		case IMAGE_PEER: l->bindings[i] = bind_peer(l, b->index); continue;
		case IMAGE_PEER_DATA: continue;	/* rt_launch_bind_peers */
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
static int save_kept(struct rt_launch *l, struct rt_device *d, struct err *err)
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

void rt_launch_finish(struct rt_launch *l)
{
	const struct image *im = l->x->image;
	uint64_t value = l->value;

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

/* Work that is pending when another fails is dropped with it (hal.h), so that only what was
 * submitted later has to ask. */
int rt_launch_argument_error(const struct rt_launch *l, struct err *why)
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

static int tell(struct rt_event *e, struct rt_event **done, struct err *err)
{
	*done = e;
	return e ? 0 : err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
}

int rt_launch_spoil(struct rt_launch *l, const struct err *why, struct err *err)
{
	for (unsigned i = 0; i < l->x->image->info.n_results; i++) {
		struct rt_buffer *b = l->outs[i];

		b->error = malloc(sizeof(*b->error));
		if (!b->error)
			return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
		*b->error = *why;
	}
	return tell(rt_event_done(why), l->done, err);
}

int rt_launch_spread(struct rt_launch *l, const struct err *why, struct err *err)
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
	return tell(rt_event_done(why), l->done, err);
}

int rt_launch_tell(struct rt_launch *l, struct err *err)
{
	struct hal_queue *q = l->x->client->devices[l->x->device].queue;

	return tell(rt_event_of_submission(q, l->value), l->done, err);
}

int rt_launch_lock(struct rt_launch *l, struct err *err)
{
	struct rt_device *d = &l->x->client->devices[l->x->device];

	pthread_mutex_lock(&d->lock);
	if (!d->is_poisoned)
		return 0;
	*err = d->poison;
	pthread_mutex_unlock(&d->lock);
	return err->code;
}

void rt_launch_unlock(struct rt_launch *l)
{
	pthread_mutex_unlock(&l->x->client->devices[l->x->device].lock);
}

/* Whether the queue has room for the submission and for what comes before it. */
static bool has_room(const struct rt_launch *l)
{
	const struct image *im = l->x->image;
	unsigned n = 1 + !!l->host;

	for (unsigned i = 0; i < im->info.n_args; i++)
		n += im->shapes[i].alias >= 0 && !l->donated[i];
	return hal_queue_has_room(l->x->client->devices[l->x->device].queue, n, im->n_bindings);
}

/* Bytes of temporaries in what the device's programs share. */
static uint64_t shared_bytes(const struct rt_launch *l)
{
	return l->host ? 0 : l->x->image->info.temp_bytes;
}

bool rt_launch_is_ready(const struct rt_launch *l)
{
	return rt_has_scratch(&l->x->client->devices[l->x->device], shared_bytes(l)) &&
	       has_room(l);
}

int rt_launch_get_ready(const struct rt_launch *l, struct rt_event **later, struct err *err)
{
	struct rt_client *c = l->x->client;
	struct hal_queue *q = c->devices[l->x->device].queue;
	int code = rt_need_scratch(c, l->x->device, shared_bytes(l), err);

	while (!code && !has_room(l)) {
		if (!later) {
			code = hal_queue_await_room(q, err);
			continue;
		}
		*later = rt_event_of_submission(q, hal_queue_room_at(q));
		code = *later ? err_set(err, ERR_ABORTED, "the queue is full") :
				err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	}
	return code;
}

/* Says to the program's first run that no call was made yet. */
static int clear_call(struct rt_launch *l, struct rt_device *d, struct err *err)
{
	return l->host ? hal_queue_fill(d->queue, l->temp, 0, 8, 0, &l->temp_use, err) : 0;
}

int rt_launch_bind(struct rt_launch *l, struct err *err)
{
	struct rt_device *d = &l->x->client->devices[l->x->device];
	int code = save_kept(l, d, err);

	if (code)
		return code;
	bind(l, d);
	return clear_call(l, d, err);
}

static const struct rt_launch *launch_of(const struct rt_launch *all, unsigned n, unsigned member)
{
	for (unsigned i = 0; i < n; i++)
		if (all[i].x->member == member)
			return &all[i];
	return NULL;
}

int rt_launch_bind_peers(struct rt_launch *l, const struct rt_launch *all, unsigned n,
			 struct err *err)
{
	const struct image *im = l->x->image;

	for (size_t i = im->n_bindings; i-- > 0 && im->bindings[i].kind == IMAGE_PEER_DATA;) {
		size_t of = im->bindings[i].index / im->n_slots;
		size_t slot = im->bindings[i].index % im->n_slots;
		size_t at = l->x->member * im->n_slots + slot;
		const struct rt_launch *peer = launch_of(all, n, im->peers[at]);
		const struct hw_binding *b;

		if (!peer)
			return err_set(err, ERR_INTERNAL, "member %u is not launched with the "
				       "others", im->peers[at]);
		/* All of its HBM is seen as its mailbox is. */
		b = &peer->bindings[of];
		l->bindings[i] = (struct hw_binding){ b->va -
			hal_mem_va(l->meeting->at[im->peers[at]].mailbox) + l->meeting->va[at],
			b->bytes };
	}
	return 0;
}

int rt_launch_submit(struct rt_launch *l, struct err *err)
{
	struct rt_device *d = &l->x->client->devices[l->x->device];
	/* Others compute with what a member sends before it is known to be spoilt, and a member
	 * with what a failure left in its mailbox. */
	bool is_strict = l->meeting && l->meeting->image->n_slots;
	struct hal_launch launch = { .exe = l->x->hal, .bindings = l->bindings,
				     .n_failures = is_strict ? &l->n_failures : NULL };
	const struct image *im = l->x->image;
	int code = hal_queue_execute(d->queue, &launch, &l->value, err);

	if (code)
		return code;
	atomic_store(&l->x->last_use, l->value);
	if (l->meeting)
		rt_meeting_note(l->meeting, l->x->member, l->value);
	if (l->host)
		l->temp_use = l->value;
	else if (im->info.temp_bytes)
		d->scratch_use = l->value;
	hal_note_executable(d->hal, image_string(im, im->info.name));
	return 0;
}

int rt_launch_run_calls(struct rt_launch *l, const atomic_bool *stop, struct err *err)
{
	const struct rt_calls calls = { l->x, l->bindings, l->mems, l->host, stop, NULL };
	int code = rt_run_calls(&calls, &l->value, err);

	l->temp_use = l->value;
	return code;
}

void rt_launch_end(struct rt_launch *l, bool is_failed)
{
	const struct image *im = l->x->image;

	if (is_failed && l->donated && !l->value)
		give_back(l);
	rt_discard(l->x->client, l->x->device, l->temp, l->temp_use);
	for (unsigned i = 0; l->storages && i < im->info.n_args; i++)
		rt_storage_unref(l->storages[i]);
	for (unsigned i = 0; is_failed && i < im->info.n_results; i++) {
		rt_buffer_unref(l->outs[i]);
		l->outs[i] = NULL;
	}
	free(l->mems);
	if (l->is_few)
		return;
	free(l->storages);
	free(l->bindings);
	free(l->donated);
}
