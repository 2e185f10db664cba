/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers: dense arrays in device or pinned host memory. The content comes from a
 * submission (value) or was written when the buffer was made (value 0), or it is an
 * error. Several buffers may share one storage. Content that comes later is the
 * matter of pending.c, memory that is not ours that of view.c.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/rt_internal.h"

#define COPY_PIECE ((uint64_t)4 << 20)	/* of what goes by way of the host */

uint64_t rt_shape_bytes(const struct rt_shape *s)
{
	uint64_t n = elem_bytes(s->elem);

	for (unsigned d = 0; d < s->rank; d++)
		if (s->dim[d] < 0 || __builtin_mul_overflow(n, (uint64_t)s->dim[d], &n))
			return UINT64_MAX;
	return n;
}

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
		  const struct rt_shape *shape, const char *tag, struct rt_buffer **out,
		  struct err *err)
{
	uint64_t bytes = rt_shape_bytes(shape);
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
		code = rt_alloc(c, device, kind, bytes, tag, &b->storage->mem, err);
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
		code = rt_buffer_new(c, device, kind, shape, tag, &b, err);
		if (code)
			return code;
	} else if (rt_shape_bytes(shape) > INT64_MAX) {
		return err_set(err, ERR_INVALID_ARGUMENT, "an array whose size overflows");
	} else {
		b = make(c, device, kind, shape);
	}
	if (b) {
		b->gate = rt_event_new();
		b->spare_error = malloc(sizeof(*b->spare_error));
	}
	if (!b || !b->gate || !b->spare_error) {
		rt_buffer_unref(b);
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	}
	*out = b;
	return 0;
}

struct rt_buffer *rt_buffer_share(struct rt_buffer *b, const struct rt_shape *shape)
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
	pthread_mutex_lock(&b->lock);
	to->storage = b->storage;
	if (to->storage)
		atomic_fetch_add(&to->storage->refs, 1);
	to->value = b->value;
	pthread_mutex_unlock(&b->lock);
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
	rt_event_unref(b->gate);
	free(b->error);
	free(b->spare_error);
	pthread_mutex_destroy(&b->lock);
	free(b);
	rt_client_unref(c);
}

int rt_buffer_from_host(struct rt_client *c, unsigned device, enum rt_memory_kind kind,
			const struct rt_shape *shape, const void *data,
			const int64_t *strides, struct rt_buffer **out, struct err *err)
{
	struct rt_buffer *b;
	int code = rt_buffer_new(c, device, kind, shape, "array", &b, err);
	struct hal_strided s = { shape->rank, elem_bytes(shape->elem), shape->dim, strides };

	if (code)
		return code;
	if (b->storage->mem && strides)
		code = hal_copy_in_strided(b->storage->mem, 0, data, &s, CLOCK_FOREVER, err);
	else if (b->storage->mem)
		code = hal_copy_in(b->storage->mem, 0, data, rt_shape_bytes(shape),
				   CLOCK_FOREVER, err);
	if (code) {
		rt_buffer_unref(b);
		return code;
	}
	*out = b;
	return 0;
}

int rt_buffer_uninitialized(struct rt_client *c, unsigned device, enum rt_memory_kind kind,
			    const struct rt_shape *shape, struct rt_buffer **out,
			    struct err *err)
{
	return rt_buffer_new(c, device, kind, shape, "array", out, err);
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

void rt_buffer_delete(struct rt_buffer *b)
{
	struct rt_storage *s;

	if (rt_is_orphan(b->client)) {
		b->is_deleted = true;
		return;
	}
	pthread_mutex_lock(&b->lock);
	b->is_deleted = true;
	s = b->holds || b->pins || rt_buffer_is_pending(b) ? NULL : b->storage;
	if (s)
		b->storage = NULL;
	pthread_mutex_unlock(&b->lock);
	rt_storage_unref(s);
}

/* Of a settled buffer. */
static struct rt_event *settled_content(struct rt_buffer *b)
{
	struct hal_queue *q = b->client->devices[b->device].queue;
	struct rt_event *e;
	struct err why;
	int code;

	if (b->error)
		return rt_event_done(b->error);
	if (!b->value)
		return rt_event_done(NULL);
	if (hal_queue_done(q) >= b->value) {
		code = hal_queue_error(q, b->value, &why);
		return rt_event_done(code ? &why : NULL);
	}
	e = rt_event_new();
	if (!e)
		return NULL;
	rt_event_ref(e);
	if (hal_queue_notify(q, b->value, rt_event_pass, e, &why))
		rt_event_pass(e, &why);
	return e;
}

struct gated {
	struct rt_buffer *buffer;
	struct rt_event *event;
	struct rt_callback callback;
};

static void content_is_there(void *arg, const struct err *err)
{
	struct gated *g = arg;

	rt_event_pass(g->event, err);
	rt_in_callback++;
	rt_buffer_unref(g->buffer);
	rt_in_callback--;
	free(g);
}

static void gate_is_set(void *arg, const struct err *err)
{
	struct gated *g = arg;
	struct rt_event *inner = settled_content(g->buffer);
	struct err why;

	(void)err;
	if (inner) {
		rt_event_on_ready(inner, &g->callback, content_is_there, g);
		rt_event_unref(inner);
		return;
	}
	err_set(&why, ERR_RESOURCE_EXHAUSTED, "out of memory");
	content_is_there(g, &why);
}

struct rt_event *rt_buffer_content(struct rt_buffer *b)
{
	struct rt_event *e;
	struct gated *g;

	if (!rt_buffer_is_pending(b))
		return settled_content(b);
	g = malloc(sizeof(*g));
	e = rt_event_new();
	if (!g || !e) {
		free(g);
		rt_event_unref(e);
		return NULL;
	}
	*g = (struct gated){ .buffer = b, .event = e };
	rt_event_ref(e);
	rt_buffer_ref(b);
	rt_event_on_ready(b->gate, &g->callback, gate_is_set, g);
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
	return rt_buffer_content(b);
}

/* The storage of a settled buffer with a reference, or NULL and an error. */
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

/* A copy out of `from`, which is pinned: to host memory, or to another buffer. */
struct rt_fetch {
	struct rt_buffer *from, *to;
	uint64_t offset, bytes;
	void *dst;
	struct rt_event *done;
};

/* By way of the host, in pieces: neither the CPU nor the other device sees `from`. */
static int copy_over(struct hal_mem *to, struct hal_mem *from, uint64_t bytes,
		     struct err *err)
{
	uint64_t room = bytes < COPY_PIECE ? bytes : COPY_PIECE, n;
	void *piece = malloc(room);
	int code = piece ? 0 : err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");

	for (uint64_t at = 0; !code && at < bytes; at += n) {
		n = bytes - at < room ? bytes - at : room;
		code = hal_copy_out(piece, from, at, n, CLOCK_FOREVER, err);
		if (!code)
			code = hal_copy_in(to, at, piece, n, CLOCK_FOREVER, err);
	}
	free(piece);
	return code;
}

static int do_copy(const struct rt_fetch *c, struct err *err)
{
	struct rt_buffer *from = c->from;
	struct hal_mem *mem;
	void *direct;
	int code;

	if (from->error) {
		*err = *from->error;
		return err->code;
	}
	if (from->value) {
		code = hal_queue_wait(from->client->devices[from->device].queue, from->value,
				      CLOCK_FOREVER, err);
		if (code)
			return code;
	}
	if (!c->bytes)
		return 0;
	mem = from->storage->mem;
	if (!c->to)
		return hal_copy_out(c->dst, mem, c->offset, c->bytes, CLOCK_FOREVER, err);
	direct = hal_mem_host(mem);
	if (!direct)
		return copy_over(c->to->storage->mem, mem, c->bytes, err);
	return hal_copy_in(c->to->storage->mem, 0, direct, c->bytes, CLOCK_FOREVER, err);
}

static void copy_later(void *arg)
{
	struct rt_fetch *c = arg;
	struct err why;
	int code = do_copy(c, &why);

	rt_buffer_unpin(c->from);
	if (c->to) {
		rt_buffer_settle(c->to, code ? &why : NULL);
		rt_buffer_unref(c->to);
	} else {
		rt_event_set(c->done, code ? &why : NULL);
		rt_event_unref(c->done);
	}
	free(c);
}

static bool is_there(const struct rt_buffer *b)
{
	return !rt_buffer_is_pending(b) && (!b->value || b->error ||
	       hal_queue_done(b->client->devices[b->device].queue) >= b->value);
}

static int check_range(const struct rt_buffer *b, uint64_t offset, uint64_t bytes,
		       struct err *err)
{
	uint64_t size = rt_shape_bytes(&b->shape);

	if (offset <= size && bytes <= size - offset)
		return 0;
	return err_set(err, ERR_INVALID_ARGUMENT, "invalid offset %llu, transfer size %llu of a "
		       "buffer of %llu bytes", (unsigned long long)offset,
		       (unsigned long long)bytes, (unsigned long long)size);
}

int rt_fetch_prepare(struct rt_buffer *b, uint64_t offset, uint64_t bytes,
		     struct rt_fetch **out, struct rt_event **done, struct err *err)
{
	struct rt_fetch *c;
	int code = check_range(b, offset, bytes, err);

	if (!code)
		code = rt_buffer_pin(b, err);
	if (code)
		return code;
	c = calloc(1, sizeof(*c));
	if (c)
		c->done = rt_event_new();
	if (!c || !c->done) {
		free(c);
		rt_buffer_unpin(b);
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	}
	c->from = b;
	c->offset = offset;
	c->bytes = bytes;
	rt_event_ref(c->done);
	*done = c->done;
	*out = c;
	return 0;
}

void rt_fetch_fail(struct rt_fetch *c, const struct err *why)
{
	if (!rt_is_orphan(c->from->client))
		rt_buffer_unpin(c->from);
	rt_event_set(c->done, why);
	rt_event_unref(c->done);
	free(c);
}

void rt_fetch_start(struct rt_fetch *c, void *dst)
{
	struct err why;

	if (rt_client_check(c->from->client, &why)) {
		rt_fetch_fail(c, &why);
		return;
	}
	c->dst = dst;
	if (rt_after(c->from, copy_later, c, &why))
		rt_fetch_fail(c, &why);
}

int rt_buffer_to_host(struct rt_buffer *b, uint64_t offset, void *dst, uint64_t bytes,
		      struct rt_event **done, struct err *err)
{
	struct rt_fetch c = { .from = b, .offset = offset, .bytes = bytes, .dst = dst }, *later;
	struct err why;
	int code;

	if (!is_there(b)) {
		code = rt_fetch_prepare(b, offset, bytes, &later, done, err);
		if (!code)
			rt_fetch_start(later, dst);
		return code;
	}
	code = check_range(b, offset, bytes, err);
	if (!code)
		code = rt_buffer_pin(b, err);
	if (code)
		return code;
	code = do_copy(&c, &why);
	rt_buffer_unpin(b);
	*done = rt_event_done(code ? &why : NULL);
	return *done ? 0 : err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
}

/* Gives the pin and the reference of `to` back if it fails. */
static int copy_aside(const struct rt_fetch *what, struct err *err)
{
	struct rt_fetch *c = malloc(sizeof(*c));
	int code;

	if (c)
		*c = *what;
	code = c ? rt_after(c->from, copy_later, c, err) :
		   err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	if (code) {
		free(c);
		rt_buffer_unref(what->to);
		rt_buffer_unpin(what->from);
	}
	return code;
}

int rt_buffer_copy(struct rt_buffer *b, unsigned device, enum rt_memory_kind kind,
		   struct rt_buffer **out, struct err *err)
{
	struct rt_fetch c = { .from = b, .bytes = rt_shape_bytes(&b->shape) };
	struct rt_buffer *to;
	bool now;
	int code = rt_buffer_pin(b, err);

	if (code)
		return code;
	now = is_there(b);
	if (now && b->error)
		code = rt_buffer_of_error(b->client, device, kind, &b->shape, b->error, &to,
					  err);
	else if (now)
		code = rt_buffer_new(b->client, device, kind, &b->shape, "copy", &to, err);
	else
		code = rt_buffer_new_pending(b->client, device, kind, &b->shape, "copy", &to,
					     err);
	if (code) {
		rt_buffer_unpin(b);
		return code;
	}
	c.to = to;
	if (now) {
		code = b->error ? 0 : do_copy(&c, err);
		rt_buffer_unpin(b);
	} else {
		rt_buffer_ref(to);
		code = copy_aside(&c, err);
	}
	if (code) {
		rt_buffer_unref(to);
		return code;
	}
	*out = to;
	return 0;
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

void rt_buffer_hold(struct rt_buffer *b)
{
	pthread_mutex_lock(&b->lock);
	b->holds++;
	pthread_mutex_unlock(&b->lock);
}

int rt_buffer_release(struct rt_buffer *b, struct err *err)
{
	struct rt_storage *s = NULL;

	pthread_mutex_lock(&b->lock);
	if (!b->holds) {
		pthread_mutex_unlock(&b->lock);
		return err_set(err, ERR_INVALID_ARGUMENT, "Attempting to decrease reference "
			       "on a buffer with zero reference count.");
	}
	b->holds--;
	if (!b->holds && !b->pins && b->is_deleted && !rt_buffer_is_pending(b)) {
		s = b->storage;
		b->storage = NULL;
	}
	pthread_mutex_unlock(&b->lock);
	rt_storage_unref(s);
	return 0;
}
