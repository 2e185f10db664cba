/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers: dense arrays in device or pinned host memory. The content comes from a
 * submission (value) or was written when the buffer was made (value 0), or it is an
 * error. Several buffers may share one storage.
 *
 * Content may come later. Whoever makes a pending buffer writes storage, value or error
 * under its lock and then sets the event `resolved`; everybody else looks at that first.
 * Nothing here waits.
 */
#include <stdlib.h>

#include "runtime/rt_internal.h"

#define LOOK_PIECE ((uint64_t)1 << 20)

static void free_view(void *arg)
{
	struct rt_storage *s = arg;
	struct rt_client *c = s->client;

	hal_mem_free(s->mem);
	rt_mapping_unref(c, s->mapping);
	if (s->on_free)
		s->on_free(s->pointer, s->arg);
	free(s);
	rt_client_unref(c);
}

/* On the device's waiter thread, which must not unmap. */
static void view_is_idle(void *arg, const struct err *err)
{
	struct rt_storage *s = arg;

	(void)err;
	if (rt_later(s->client, free_view, s, NULL)) {
		rt_in_callback++;
		free_view(s);
		rt_in_callback--;
	}
}

void rt_storage_unref(struct rt_storage *s)
{
	struct rt_client *c;
	uint64_t last;

	if (!s || atomic_fetch_sub(&s->refs, 1) != 1)
		return;
	c = s->client;
	last = atomic_load(&s->last_use);
	if (!s->pointer) {
		rt_discard(c, s->device, s->mem, last);
		free(s);
		return;
	}
	if (!last || hal_queue_done(c->devices[s->device].queue) >= last) {
		if (rt_in_callback)
			view_is_idle(s, NULL);
		else
			free_view(s);
	} else if (hal_queue_notify(c->devices[s->device].queue, last, view_is_idle, s,
				    NULL)) {
		hal_queue_wait(c->devices[s->device].queue, last, CLOCK_FOREVER, NULL);
		free_view(s);
	}
}

static struct rt_buffer *make(struct rt_client *c, unsigned device,
			      enum rt_memory_kind kind, const struct rt_shape *shape)
{
	struct rt_buffer *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	atomic_init(&b->refs, 1);
	b->client = c;
	rt_client_ref(c);
	b->device = device;
	b->kind = kind;
	b->shape = *shape;
	pthread_mutex_init(&b->lock, NULL);
	return b;
}

int rt_buffer_new(struct rt_client *c, unsigned device, enum rt_memory_kind kind,
		  const struct rt_shape *shape, const char *tag, bool in_order,
		  struct rt_buffer **out, struct err *err)
{
	uint64_t bytes = rt_shape_bytes(shape), value = 0;
	struct rt_buffer *b;
	int code = 0;

	if (bytes > INT64_MAX)
		return err_set(err, ERR_INVALID_ARGUMENT, "an array whose size overflows");
	b = make(c, device, kind, shape);
	if (b)
		b->storage = calloc(1, sizeof(*b->storage));
	if (!b || !b->storage) {
		rt_buffer_unref(b);
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	}
	atomic_init(&b->storage->refs, 1);
	b->storage->client = c;
	b->storage->device = device;
	if (bytes)
		code = rt_alloc(c, device, kind, bytes, tag, in_order ? &value : NULL,
				&b->storage->mem, err);
	/* It stays as long as these take, even if none uses it after them. */
	atomic_init(&b->storage->last_use, value);
	if (code) {
		rt_buffer_unref(b);
		return code;
	}
	*out = b;
	return 0;
}

int rt_buffer_new_pending(struct rt_client *c, unsigned device, enum rt_memory_kind kind,
			  const struct rt_shape *shape, const char *tag,
			  struct rt_buffer **out, struct err *err)
{
	struct rt_buffer *b = NULL;
	int code;

	if (tag) {
		code = rt_buffer_new(c, device, kind, shape, tag, false, &b, err);
		if (code)
			return code;
	} else if (rt_shape_bytes(shape) > INT64_MAX) {
		return err_set(err, ERR_INVALID_ARGUMENT, "an array whose size overflows");
	} else {
		b = make(c, device, kind, shape);
	}
	if (b) {
		b->resolved = rt_event_new();
		b->spare_error = malloc(sizeof(*b->spare_error));
	}
	if (!b || !b->resolved || !b->spare_error) {
		rt_buffer_unref(b);
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	}
	*out = b;
	return 0;
}

struct rt_buffer *rt_buffer_share(struct rt_buffer *b, struct rt_storage *storage,
				  const struct rt_shape *shape)
{
	struct rt_buffer *to = make(b->client, b->device, b->kind, shape);

	if (!to)
		return NULL;
	if (b->error) {
		to->error = malloc(sizeof(*to->error));
		if (!to->error) {
			rt_buffer_unref(to);
			return NULL;
		}
		*to->error = *b->error;
	}
	to->storage = storage;
	if (storage)
		atomic_fetch_add(&storage->refs, 1);
	to->value = b->value;
	return to;
}

void rt_buffer_ref(struct rt_buffer *b)
{
	atomic_fetch_add(&b->refs, 1);
}

void rt_buffer_unref(struct rt_buffer *b)
{
	struct rt_client *c;

	if (!b || atomic_fetch_sub(&b->refs, 1) != 1 || rt_is_orphan(b->client))
		return;
	c = b->client;
	rt_storage_unref(b->storage);
	rt_buffer_unref(b->sizes);
	rt_event_unref(b->resolved);
	free(b->error);
	free(b->spare_error);
	pthread_mutex_destroy(&b->lock);
	free(b);
	rt_client_unref(c);
}

int rt_buffer_uninitialized(struct rt_client *c, unsigned device, enum rt_memory_kind kind,
			    const struct rt_shape *shape, struct rt_buffer **out,
			    struct err *err)
{
	return rt_buffer_new(c, device, kind, shape, "array", false, out, err);
}

int rt_buffer_of_error(struct rt_client *c, unsigned device, enum rt_memory_kind kind,
		       const struct rt_shape *shape, const struct err *why,
		       struct rt_buffer **out, struct err *err)
{
	struct rt_buffer *b = make(c, device, kind, shape);

	if (b)
		b->error = malloc(sizeof(*b->error));
	if (!b || !b->error) {
		rt_buffer_unref(b);
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	}
	*b->error = *why;
	*out = b;
	return 0;
}

static bool is_truth(const uint8_t *p, uint64_t n)
{
	uint8_t all = 0;

	while (n--)
		all |= *p++;
	return all <= 1;
}

/* Looks at truth values that lie at *mem; if some are neither 0 nor 1, *mem becomes a copy of its
 * own in which they are. */
static int see_truth(struct rt_client *c, unsigned device, enum rt_memory_kind kind,
		     uint64_t bytes, struct hal_mem **mem, struct err *err)
{
	uint64_t room = bytes < LOOK_PIECE ? bytes : LOOK_PIECE, n, at = 0;
	uint8_t *piece = malloc(room);
	struct hal_mem *copy = NULL;
	int code = piece ? 0 : err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");

	while (!code && at < bytes) {
		n = bytes - at < room ? bytes - at : room;
		code = hal_copy_out(piece, *mem, at, n, CLOCK_FOREVER, err);
		if (!code && copy)
			code = hal_copy_in_elems(copy, at, piece, n, true, CLOCK_FOREVER, err);
		if (copy || code || is_truth(piece, n)) {
			at += n;
			continue;
		}
		code = rt_alloc(c, device, kind, bytes, "view", NULL, &copy, err);
		at = 0;
	}
	free(piece);
	if (code) {
		hal_mem_free(copy);
	} else if (copy) {
		hal_mem_free(*mem);
		*mem = copy;
	}
	return code;
}

int rt_buffer_view(struct rt_client *c, unsigned device, enum rt_memory_kind kind,
		   const struct rt_shape *shape, void *pointer,
		   void (*on_free)(void *pointer, void *arg), void *arg,
		   struct rt_buffer **out, struct err *err)
{
	static const struct rt_shape empty = { .elem = ELEM_U8, .rank = 1 };
	uint64_t bytes = rt_shape_bytes(shape);
	struct rt_storage reached = { 0 }, *s;
	struct rt_buffer *b;
	int code = 0;

	if (bytes > INT64_MAX || (uintptr_t)pointer % HAL_MEM_ALIGN || !pointer)
		return err_set(err, ERR_INVALID_ARGUMENT, "a view of %llu bytes at %p: views "
			       "start at multiples of %u", (unsigned long long)bytes, pointer,
			       HAL_MEM_ALIGN);
	if (bytes)
		code = rt_mapping_reach(c, device, kind, pointer, bytes, &reached, err);
	if (code)
		return code;
	if (bytes && shape->elem == ELEM_PRED)
		code = see_truth(c, device, kind, bytes, &reached.mem, err);
	/* An empty buffer's storage takes the memory over. */
	if (!code)
		code = rt_buffer_new(c, device, kind, &empty, "view", false, &b, err);
	if (code) {
		hal_mem_free(reached.mem);
		rt_mapping_unref(c, reached.mapping);
		return code;
	}
	s = b->storage;
	b->shape = *shape;
	s->mem = reached.mem;
	s->mapping = reached.mapping;
	s->on_free = on_free;
	s->pointer = pointer;
	s->arg = arg;
	rt_client_ref(c);
	*out = b;
	return 0;
}

const struct rt_shape *rt_buffer_shape(const struct rt_buffer *b)
{
	return &b->shape;
}

unsigned rt_buffer_device(const struct rt_buffer *b)
{
	return b->device;
}

enum rt_memory_kind rt_buffer_kind(const struct rt_buffer *b)
{
	return b->kind;
}

struct rt_client *rt_buffer_client(const struct rt_buffer *b)
{
	return b->client;
}

bool rt_buffer_is_deleted(struct rt_buffer *b)
{
	bool is;

	if (rt_is_orphan(b->client))
		return b->is_deleted;
	pthread_mutex_lock(&b->lock);
	is = b->is_deleted;
	pthread_mutex_unlock(&b->lock);
	return is;
}

void rt_buffer_give_sizes(struct rt_buffer *b, struct rt_buffer *sizes)
{
	b->sizes = sizes;
	if (sizes)
		rt_buffer_ref(sizes);
}

/* ---- use, deletion, resolving ---- */

bool rt_buffer_is_pending(const struct rt_buffer *b)
{
	return b->resolved && !rt_event_is_ready(b->resolved);
}

int rt_buffer_begin_use(struct rt_buffer *b, struct err *err)
{
	int code = 0;

	pthread_mutex_lock(&b->lock);
	if (b->is_deleted)
		code = err_set(err, ERR_INVALID_ARGUMENT, "the buffer was deleted or donated");
	else
		b->uses++;
	pthread_mutex_unlock(&b->lock);
	if (!code)
		rt_buffer_ref(b);
	return code;
}

void rt_buffer_delete(struct rt_buffer *b)
{
	struct rt_storage *s;

	if (rt_is_orphan(b->client)) {
		b->is_deleted = true;
		return;
	}
	pthread_mutex_lock(&b->lock);
	b->is_deleted = true;
	s = b->external_refs || b->uses || rt_buffer_is_pending(b) ? NULL : b->storage;
	if (s)
		b->storage = NULL;
	pthread_mutex_unlock(&b->lock);
	rt_storage_unref(s);
}

/* Under b->lock, resolved: the storage, if nobody may use it any more. */
static struct rt_storage *drop(struct rt_buffer *b)
{
	struct rt_storage *s = b->storage;

	if (!b->is_deleted || b->uses || b->external_refs)
		return NULL;
	b->storage = NULL;
	return s;
}

void rt_buffer_end_use(struct rt_buffer *b)
{
	struct rt_storage *s;

	pthread_mutex_lock(&b->lock);
	b->uses--;
	s = rt_buffer_is_pending(b) ? NULL : drop(b);
	pthread_mutex_unlock(&b->lock);
	rt_storage_unref(s);
	rt_buffer_unref(b);
}

/* The last step of resolving: takes b->lock held and lets it go. */
static void publish(struct rt_buffer *b)
{
	struct rt_event *resolved = b->resolved;
	struct rt_storage *s = drop(b);

	rt_event_ref(resolved);
	pthread_mutex_unlock(&b->lock);
	rt_event_set(resolved, NULL);
	rt_event_unref(resolved);
	/* Who deleted it in between saw it pending and left the storage to us. */
	pthread_mutex_lock(&b->lock);
	if (!s)
		s = drop(b);
	pthread_mutex_unlock(&b->lock);
	rt_storage_unref(s);
}

void rt_buffer_resolve(struct rt_buffer *b, const struct err *why)
{
	rt_buffer_ref(b);
	pthread_mutex_lock(&b->lock);
	if (why) {
		*b->spare_error = *why;
		b->error = b->spare_error;
		b->spare_error = NULL;
	}
	publish(b);
	rt_buffer_unref(b);
}

void rt_buffer_resolve_from(struct rt_buffer *b, struct rt_buffer *from)
{
	struct rt_storage *s;
	uint64_t value;

	if (from->error) {
		rt_buffer_resolve(b, from->error);
		return;
	}
	pthread_mutex_lock(&from->lock);
	s = from->storage;
	if (s)
		atomic_fetch_add(&s->refs, 1);
	value = from->value;
	pthread_mutex_unlock(&from->lock);
	rt_buffer_ref(b);
	pthread_mutex_lock(&b->lock);
	b->storage = s;
	b->value = value;
	publish(b);
	rt_buffer_unref(b);
}

/* ---- when the content is there ---- */

/* Of a buffer that is not pending. */
static struct rt_event *event_of_value(struct rt_buffer *b)
{
	if (b->error || !b->value)
		return rt_event_done(b->error);
	return rt_event_of_submission(b->client->devices[b->device].queue, b->value);
}

struct wait {
	struct rt_buffer *buffer;
	struct rt_event *event;
	struct rt_callback callback;
};

static void content_is_there(void *arg, const struct err *err)
{
	struct wait *w = arg;

	rt_event_pass(w->event, err);
	rt_in_callback++;
	rt_buffer_unref(w->buffer);
	rt_in_callback--;
	free(w);
}

static void on_resolved(void *arg, const struct err *err)
{
	struct wait *w = arg;
	struct rt_event *inner = event_of_value(w->buffer);
	struct err why;

	(void)err;
	if (inner) {
		rt_event_on_ready(inner, &w->callback, content_is_there, w);
		rt_event_unref(inner);
		return;
	}
	err_set(&why, ERR_RESOURCE_EXHAUSTED, "out of memory");
	content_is_there(w, &why);
}

/* Ready when the content is, whether the buffer was deleted or not. */
static struct rt_event *content(struct rt_buffer *b)
{
	struct rt_event *e;
	struct wait *w;

	if (!rt_buffer_is_pending(b))
		return event_of_value(b);
	w = malloc(sizeof(*w));
	e = rt_event_new();
	if (!w || !e) {
		free(w);
		rt_event_unref(e);
		return NULL;
	}
	*w = (struct wait){ .buffer = b, .event = e };
	rt_event_ref(e);
	rt_buffer_ref(b);
	rt_event_on_ready(b->resolved, &w->callback, on_resolved, w);
	return e;
}

struct rt_event *rt_buffer_ready(struct rt_buffer *b)
{
	struct err why;

	if (rt_client_check(b->client, &why))
		return rt_event_done(&why);
	if (rt_buffer_is_deleted(b)) {
		err_set(&why, ERR_INVALID_ARGUMENT, "the buffer was deleted or donated");
		return rt_event_done(&why);
	}
	return content(b);
}

/* The storage of a buffer with a reference, or NULL and an error. */
static struct rt_storage *use(struct rt_buffer *b, struct err *err)
{
	struct rt_storage *s;

	if (rt_buffer_is_pending(b)) {
		err_set(err, ERR_FAILED_PRECONDITION, "the buffer has no content yet: wait for "
			"its event first");
		return NULL;
	}
	if (b->error) {
		*err = *b->error;
		return NULL;
	}
	pthread_mutex_lock(&b->lock);
	s = b->is_deleted ? NULL : b->storage;
	if (s)
		atomic_fetch_add(&s->refs, 1);
	pthread_mutex_unlock(&b->lock);
	if (!s)
		err_set(err, ERR_INVALID_ARGUMENT, "the buffer was deleted or donated");
	return s;
}

int rt_buffer_address(struct rt_buffer *b, uint64_t *out, struct err *err)
{
	struct err why;
	struct rt_storage *s = use(b, &why);

	if (!s)
		return err_set(err, why.code, "%s", why.msg);
	*out = s->mem ? hal_mem_va(s->mem) : 0;
	rt_storage_unref(s);
	return 0;
}

int rt_buffer_pointer(struct rt_buffer *b, void **out, struct err *err)
{
	struct err why;
	struct rt_storage *s = use(b, &why);

	if (!s)
		return err_set(err, why.code, "%s", why.msg);
	*out = s->mem ? hal_mem_host(s->mem) : NULL;
	rt_storage_unref(s);
	return 0;
}

void rt_buffer_ref_external(struct rt_buffer *b)
{
	pthread_mutex_lock(&b->lock);
	b->external_refs++;
	pthread_mutex_unlock(&b->lock);
}

int rt_buffer_unref_external(struct rt_buffer *b, struct err *err)
{
	struct rt_storage *s = NULL;

	pthread_mutex_lock(&b->lock);
	if (!b->external_refs) {
		pthread_mutex_unlock(&b->lock);
		return err_set(err, ERR_INVALID_ARGUMENT, "Attempting to decrease reference "
			       "on a buffer with zero reference count.");
	}
	b->external_refs--;
	if (!b->external_refs && !b->uses && b->is_deleted && !rt_buffer_is_pending(b)) {
		s = b->storage;
		b->storage = NULL;
	}
	pthread_mutex_unlock(&b->lock);
	rt_storage_unref(s);
	return 0;
}
