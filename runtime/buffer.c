/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers: dense arrays in device or pinned host memory. The content comes from a
 * submission (value) or was written when the buffer was made (value 0), or it is an
 * error. Several buffers may share one storage.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/rt_internal.h"

uint64_t rt_shape_bytes(const struct rt_shape *s)
{
	uint64_t n = elem_bytes(s->elem);

	for (unsigned d = 0; d < s->rank; d++)
		if (s->dim[d] < 0 || __builtin_mul_overflow(n, (uint64_t)s->dim[d], &n))
			return UINT64_MAX;
	return n;
}

void rt_storage_unref(struct rt_storage *s)
{
	if (!s || atomic_fetch_sub(&s->refs, 1) != 1)
		return;
	rt_discard(s->client, s->device, s->mem, atomic_load(&s->last_use));
	free(s);
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

void rt_buffer_ref(struct rt_buffer *b)
{
	atomic_fetch_add(&b->refs, 1);
}

void rt_buffer_unref(struct rt_buffer *b)
{
	struct rt_client *c;

	if (!b || atomic_fetch_sub(&b->refs, 1) != 1)
		return;
	c = b->client;
	rt_storage_unref(b->storage);
	free(b->error);
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

	pthread_mutex_lock(&b->lock);
	is = b->is_deleted;
	pthread_mutex_unlock(&b->lock);
	return is;
}

void rt_buffer_delete(struct rt_buffer *b)
{
	struct rt_storage *s;

	pthread_mutex_lock(&b->lock);
	b->is_deleted = true;
	s = b->holds ? NULL : b->storage;
	if (s)
		b->storage = NULL;
	pthread_mutex_unlock(&b->lock);
	rt_storage_unref(s);
}

static void on_done(void *arg, const struct err *err)
{
	rt_event_set(arg, err);
	rt_event_unref(arg);
}

struct rt_event *rt_buffer_ready(struct rt_buffer *b)
{
	struct hal_queue *q = b->client->devices[b->device].queue;
	struct rt_event *e;
	struct err why;
	int code;

	if (b->error)
		return rt_event_done(b->error);
	if (rt_buffer_is_deleted(b)) {
		err_set(&why, ERR_INVALID_ARGUMENT, "the buffer was deleted or donated");
		return rt_event_done(&why);
	}
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
	if (hal_queue_notify(q, b->value, on_done, e, &why)) {
		rt_event_set(e, &why);
		rt_event_unref(e);
	}
	return e;
}

/* The storage with a reference, or NULL and an error. */
static struct rt_storage *use(struct rt_buffer *b, struct err *err)
{
	struct rt_storage *s;

	if (b->error) {
		if (err)
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

struct fetch {
	struct rt_storage *storage;
	struct hal_queue *queue;
	uint64_t value, offset, bytes;
	void *dst;
	struct rt_event *done;
	struct rt_client *client;
};

static int do_fetch(struct fetch *f, struct err *err)
{
	int code = f->value ? hal_queue_wait(f->queue, f->value, CLOCK_FOREVER, err) : 0;

	if (!code && f->bytes)
		code = hal_copy_out(f->dst, f->storage->mem, f->offset, f->bytes,
				    CLOCK_FOREVER, err);
	return code;
}

static void fetch_later(void *arg)
{
	struct fetch *f = arg;
	struct rt_client *c = f->client;
	struct err why;
	int code = do_fetch(f, &why);

	rt_storage_unref(f->storage);
	rt_event_set(f->done, code ? &why : NULL);
	rt_event_unref(f->done);
	free(f);
	rt_client_unref(c);
}

int rt_buffer_to_host(struct rt_buffer *b, uint64_t offset, void *dst, uint64_t bytes,
		      struct rt_event **done, struct err *err)
{
	struct hal_queue *q = b->client->devices[b->device].queue;
	uint64_t size = rt_shape_bytes(&b->shape);
	struct rt_storage *s;
	struct fetch f, *later;
	int code;

	if (offset > size || bytes > size - offset)
		return err_set(err, ERR_INVALID_ARGUMENT, "invalid offset %llu, transfer size "
			       "%llu of a buffer of %llu bytes", (unsigned long long)offset,
			       (unsigned long long)bytes, (unsigned long long)size);
	s = use(b, err);
	if (!s)
		return err ? err->code : ERR_INVALID_ARGUMENT;
	f = (struct fetch){ s, q, b->value, offset, bytes, dst, NULL, b->client };
	if (!b->value || hal_queue_done(q) >= b->value) {
		code = do_fetch(&f, err);
		rt_storage_unref(s);
		*done = rt_event_done(code ? err : NULL);
		return *done ? 0 : err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	}
	later = malloc(sizeof(*later));
	f.done = rt_event_new();
	if (!later || !f.done) {
		free(later);
		rt_event_unref(f.done);
		rt_storage_unref(s);
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	}
	*later = f;
	rt_event_ref(f.done);
	rt_client_ref(b->client);
	code = rt_later(b->client, fetch_later, later, err);
	if (code) {
		free(later);
		rt_event_unref(f.done);
		rt_event_unref(f.done);
		rt_storage_unref(s);
		rt_client_unref(b->client);
		return code;
	}
	*done = f.done;
	return 0;
}

int rt_buffer_copy(struct rt_buffer *b, unsigned device, enum rt_memory_kind kind,
		   struct rt_buffer **out, struct err *err)
{
	struct hal_queue *q = b->client->devices[b->device].queue;
	uint64_t bytes = rt_shape_bytes(&b->shape);
	struct rt_buffer *to = NULL;
	struct rt_storage *s;
	void *direct;
	int code;

	if (b->error)
		return rt_buffer_of_error(b->client, device, kind, &b->shape, b->error, out,
					  err);
	s = use(b, err);
	if (!s)
		return err ? err->code : ERR_INVALID_ARGUMENT;
	code = rt_buffer_new(b->client, device, kind, &b->shape, "copy", &to, err);
	if (!code && b->value)
		code = hal_queue_wait(q, b->value, CLOCK_FOREVER, err);
	if (!code && bytes) {
		direct = hal_mem_host(s->mem);
		if (direct)
			code = hal_copy_in(to->storage->mem, 0, direct, bytes, CLOCK_FOREVER,
					   err);
		else
			code = err_set(err, ERR_UNIMPLEMENTED, "copies between devices whose "
				       "memory the CPU does not see");
	}
	rt_storage_unref(s);
	if (code) {
		rt_buffer_unref(to);
		return code;
	}
	*out = to;
	return 0;
}

int rt_buffer_write(struct rt_buffer *b, uint64_t offset, const void *src, uint64_t bytes,
		    struct err *err)
{
	struct rt_storage *s = use(b, err);
	int code = 0;

	if (!s)
		return err ? err->code : ERR_INVALID_ARGUMENT;
	if (bytes && !s->mem)
		code = err_set(err, ERR_OUT_OF_RANGE, "writing %llu bytes to an empty buffer",
			       (unsigned long long)bytes);
	else if (bytes)
		code = hal_copy_in(s->mem, offset, src, bytes, CLOCK_FOREVER, err);
	rt_storage_unref(s);
	return code;
}

int rt_buffer_bitcast(struct rt_buffer *b, const struct rt_shape *shape,
		      struct rt_buffer **out, struct err *err)
{
	struct rt_storage *s;
	struct rt_buffer *to;

	if (rt_shape_bytes(shape) != rt_shape_bytes(&b->shape))
		return err_set(err, ERR_INVALID_ARGUMENT, "a bitcast of %llu bytes to %llu",
			       (unsigned long long)rt_shape_bytes(&b->shape),
			       (unsigned long long)rt_shape_bytes(shape));
	s = use(b, err);
	if (!s)
		return err ? err->code : ERR_INVALID_ARGUMENT;
	to = make(b->client, b->device, b->kind, shape);
	if (!to) {
		rt_storage_unref(s);
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	}
	to->storage = s;
	to->value = b->value;
	*out = to;
	return 0;
}

uint64_t rt_buffer_address(struct rt_buffer *b)
{
	struct rt_storage *s = use(b, NULL);
	uint64_t va = s && s->mem ? hal_mem_va(s->mem) : 0;

	rt_storage_unref(s);
	return va;
}

void *rt_buffer_pointer(struct rt_buffer *b)
{
	struct rt_storage *s = use(b, NULL);
	void *p = s && s->mem ? hal_mem_host(s->mem) : NULL;

	rt_storage_unref(s);
	return p;
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
	if (!--b->holds && b->is_deleted) {
		s = b->storage;
		b->storage = NULL;
	}
	pthread_mutex_unlock(&b->lock);
	rt_storage_unref(s);
	return 0;
}
