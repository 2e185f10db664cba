/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of buffers' content: from host memory, to host memory, to another buffer. What is
 * there is copied by the caller's thread, what is still to come by the client's. Between linked
 * devices the one that has the content copies, and the host has no part in it. Of arrays that are
 * stored padded to the bounds of their dims what counts is copied by itself. Truth values of host
 * memory, and of bytes that are copied as such, become 0 or 1 on their way (hal/base/elem.def).
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/rt_internal.h"

#define COPY_PIECE ((uint64_t)4 << 20)	/* of what goes by way of the host */
#define HEARD_NS 1000000000ll	/* the HAL has heard of a failure by then */

int rt_buffer_from_host(struct rt_client *c, unsigned device, enum rt_memory_kind kind,
			const struct rt_shape *shape, const void *data,
			const int64_t *strides, struct rt_buffer **out, struct err *err)
{
	struct rt_buffer *b;
	int code = rt_buffer_new(c, device, kind, shape, "array", false, &b, err);
	int64_t dim[IMAGE_MAX_RANK], stride[IMAGE_MAX_RANK], dense[IMAGE_MAX_RANK];
	struct rt_shape row_major = { 0 };
	struct hal_strided s = { shape->rank, elem_bytes(shape->elem), dim, stride,
				 shape->elem == ELEM_PRED };

	if (code)
		return code;
	row_major.elem = shape->elem;
	row_major.rank = shape->rank;
	memcpy(row_major.dim, shape->dim, sizeof(row_major.dim));
	rt_dense_strides(&row_major, dense);
	rt_memory_order(shape, strides ? strides : dense, dim, stride);
	if (b->storage->mem && (strides || !rt_is_row_major(shape)))
		code = hal_copy_in_strided(b->storage->mem, 0, data, &s, CLOCK_FOREVER, err);
	else if (b->storage->mem)
		code = hal_copy_in_elems(b->storage->mem, 0, data, rt_shape_bytes(shape),
					 s.is_truth, CLOCK_FOREVER, err);
	if (code) {
		rt_buffer_unref(b);
		return code;
	}
	*out = b;
	return 0;
}

/* A copy out of `from`, which is in use: to host memory, or to another buffer. */
struct rt_fetch {
	struct rt_buffer *from, *to;
	uint64_t offset, bytes;
	void *dst;
	struct rt_needs needs;	/* of `to`, while it waits for `from` */
	struct rt_event *done;
	bool is_strided;	/* dst is; then all of it: */
	int64_t stride[IMAGE_MAX_RANK];	/* in bytes, one a dim */
};

/* By way of the host, in pieces: neither the CPU nor the other device sees `from`. */
static int copy_over(struct hal_mem *to, struct hal_mem *from, uint64_t bytes, bool is_truth,
		     struct err *err)
{
	uint64_t room = bytes < COPY_PIECE ? bytes : COPY_PIECE, n;
	void *piece = malloc(room);
	int code = piece ? 0 : err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");

	for (uint64_t at = 0; !code && at < bytes; at += n) {
		n = bytes - at < room ? bytes - at : room;
		code = hal_copy_out(piece, from, at, n, CLOCK_FOREVER, err);
		if (!code)
			code = hal_copy_in_elems(to, at, piece, n, is_truth, CLOCK_FOREVER, err);
	}
	free(piece);
	return code;
}

static bool is_by_link(const struct rt_fetch *c)
{
	const struct rt_device *d = c->from->client->devices;

	return c->to && c->to->device != c->from->device && c->to->kind == RT_DEVICE &&
	       hal_may_copy(d[c->from->device].hal, d[c->to->device].hal);
}

/* By the device that has the content, to the one that is to have it. A program that fails on
 * either breaks the window between them (hal.h), which is not the copy's fault: it is made again
 * as soon as the HAL has heard of it, and lends anew. */
static int copy_by_link(const struct rt_fetch *c, struct err *err)
{
	struct rt_device *from = &c->from->client->devices[c->from->device];
	struct rt_device *to = &c->from->client->devices[c->to->device];
	struct hal_queue *q = hal_device_queue(from->hal, HAL_QUEUE_DMA);
	int64_t deadline = 0;
	uint64_t value;
	int code;

	for (;;) {
		code = hal_queue_copy(q, c->to->storage->mem, 0, c->from->storage->mem, 0,
				      c->bytes, NULL, 0, &value, err);
		if (!code)
			code = hal_queue_wait(q, value, CLOCK_FOREVER, err);
		if ((code != ERR_UNAVAILABLE && code != ERR_ABORTED) ||
		    hal_device_error(from->hal, NULL) || hal_device_error(to->hal, NULL))
			return code;
		if (!deadline)
			deadline = clock_after(HEARD_NS);
		if (clock_ns() > deadline)
			return code;
		hal_queue_done(from->queue);	/* hears of what is there to hear */
		hal_queue_done(to->queue);
		sched_yield();
	}
}

static int copy_strided(const struct rt_fetch *c, struct err *err)
{
	const struct rt_shape *s = &c->from->shape;
	int64_t dim[IMAGE_MAX_RANK], stride[IMAGE_MAX_RANK];
	struct hal_strided to = { .rank = s->rank, .elem_bytes = elem_bytes(s->elem),
				  .dim = dim, .stride = stride };

	rt_memory_order(s, c->stride, dim, stride);
	return hal_copy_out_strided(c->dst, c->from->storage->mem, 0, &to, CLOCK_FOREVER, err);
}

static int do_copy(const struct rt_fetch *c, struct err *err)
{
	struct rt_buffer *from = c->from;
	struct hal_mem *mem;
	bool is_truth;
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
	if (c->is_strided)
		return copy_strided(c, err);
	if (!c->to)
		return hal_copy_out(c->dst, mem, c->offset, c->bytes, CLOCK_FOREVER, err);
	/* Whether two cards of the kernel driver reach each other it tells when it is asked. */
	if (is_by_link(c) && (code = copy_by_link(c, err)) != ERR_UNIMPLEMENTED)
		return code;
	is_truth = c->to->shape.elem != from->shape.elem;
	direct = hal_mem_host(mem);
	if (!direct)
		return copy_over(c->to->storage->mem, mem, c->bytes, is_truth, err);
	return hal_copy_in_elems(c->to->storage->mem, 0, direct, c->bytes, is_truth, CLOCK_FOREVER,
				 err);
}

static void copy_later(void *arg)
{
	struct rt_fetch *c = arg;
	struct err why;
	int code = do_copy(c, &why);

	if (c->to)
		rt_needs_end(&c->to, 1);
	rt_buffer_end_use(c->from);
	if (c->to) {
		rt_buffer_resolve(c->to, code ? &why : NULL);
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
		code = rt_buffer_begin_use(b, err);
	if (code)
		return code;
	c = calloc(1, sizeof(*c));
	if (c)
		c->done = rt_event_new();
	if (!c || !c->done) {
		free(c);
		rt_buffer_end_use(b);
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
		rt_buffer_end_use(c->from);
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

/* `what` has everything but `done`. */
static int fetch(const struct rt_fetch *what, struct rt_event **done, struct err *err)
{
	struct rt_buffer *b = what->from;
	struct rt_fetch *later;
	struct err why;
	int code;

	if (!is_there(b)) {
		code = rt_fetch_prepare(b, what->offset, what->bytes, &later, done, err);
		if (code)
			return code;
		later->is_strided = what->is_strided;
		memcpy(later->stride, what->stride, sizeof(later->stride));
		rt_fetch_start(later, what->dst);
		return 0;
	}
	code = check_range(b, what->offset, what->bytes, err);
	if (!code)
		code = rt_buffer_begin_use(b, err);
	if (code)
		return code;
	code = do_copy(what, &why);
	rt_buffer_end_use(b);
	*done = rt_event_done(code ? &why : NULL);
	return *done ? 0 : err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
}

int rt_buffer_to_host(struct rt_buffer *b, uint64_t offset, void *dst, uint64_t bytes,
		      struct rt_event **done, struct err *err)
{
	const struct rt_fetch c = { .from = b, .offset = offset, .bytes = bytes, .dst = dst };

	return fetch(&c, done, err);
}

int rt_buffer_to_host_strided(struct rt_buffer *b, void *dst, const int64_t *strides,
			      struct rt_event **done, struct err *err)
{
	struct rt_fetch c = { .from = b, .bytes = rt_shape_bytes(&b->shape), .dst = dst,
			      .is_strided = true };

	memcpy(c.stride, strides, b->shape.rank * sizeof(*strides));
	return fetch(&c, done, err);
}

/* Gives the use and the reference of `to` back if it fails. */
static int copy_aside(const struct rt_fetch *what, struct err *err)
{
	struct rt_fetch *c = malloc(sizeof(*c));
	int code;

	if (c) {
		*c = *what;
		c->needs = (struct rt_needs){ .of = &c->from, .n = 1 };
		rt_needs_begin(&c->needs, &c->to, 1);
	}
	code = c ? rt_after(c->from, copy_later, c, err) :
		   err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	if (code) {
		free(c);
		rt_buffer_unref(what->to);
		rt_buffer_end_use(what->from);
	}
	return code;
}

/* As an array of `elem`: the type that it has, or ELEM_PRED of bytes. */
static int copy(struct rt_buffer *b, unsigned device, enum rt_memory_kind kind, unsigned elem,
		struct rt_buffer **out, struct err *err)
{
	struct rt_fetch c = { .from = b, .bytes = rt_shape_bytes(&b->shape) };
	struct rt_shape shape = b->shape;
	struct rt_buffer *to;
	bool now;
	int code = rt_buffer_begin_use(b, err);

	if (code)
		return code;
	shape.elem = elem;
	now = is_there(b);
	if (now && b->error)
		code = rt_buffer_of_error(b->client, device, kind, &shape, b->error, &to, err);
	else if (now)
		code = rt_buffer_new(b->client, device, kind, &shape, "copy", false, &to, err);
	else
		code = rt_buffer_new_pending(b->client, device, kind, &shape, "copy", &to, err);
	if (code) {
		rt_buffer_end_use(b);
		return code;
	}
	c.to = to;
	if (now) {
		code = b->error ? 0 : do_copy(&c, err);
		rt_buffer_end_use(b);
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

int rt_buffer_copy(struct rt_buffer *b, unsigned device, enum rt_memory_kind kind,
		   struct rt_buffer **out, struct err *err)
{
	struct rt_buffer *sizes = NULL;
	int code = b->sizes ? copy(b->sizes, device, RT_DEVICE, ELEM_S32, &sizes, err) : 0;

	if (!code)
		code = copy(b, device, kind, b->shape.elem, out, err);
	if (!code)
		rt_buffer_give_sizes(*out, sizes);
	rt_buffer_unref(sizes);
	return code;
}

int rt_buffer_as_truth(struct rt_buffer *b, struct rt_buffer **out, struct err *err)
{
	return copy(b, b->device, b->kind, ELEM_PRED, out, err);
}

/* ---- arrays whose dims have bounds ---- */

/* From the device; waits for what computes them. */
static int fetch_sizes(struct rt_buffer *b, int64_t *dim, struct err *err)
{
	int32_t size[IMAGE_MAX_RANK];
	struct rt_event *done;
	int code = rt_buffer_to_host(b->sizes, 0, size, b->shape.rank * sizeof(*size), &done, err);

	if (code)
		return code;
	code = rt_event_wait(done, err);
	rt_event_unref(done);
	for (unsigned d = 0; !code && d < b->shape.rank; d++) {
		if (!(b->shape.bounded >> d & 1)) {
			dim[d] = b->shape.dim[d];
			continue;
		}
		dim[d] = size[d];
		if (size[d] < 0 || size[d] > b->shape.dim[d])
			code = err_set(err, ERR_INTERNAL, "dim %u of an array, of at most %lld, "
				       "is %d", d, (long long)b->shape.dim[d], size[d]);
	}
	return code;
}

int rt_buffer_unpadded(struct rt_buffer *b, const int64_t **dim, struct err *err)
{
	int64_t fetched[IMAGE_MAX_RANK];
	bool is_known;
	int code;

	if (!b->sizes) {
		*dim = b->shape.dim;
		return 0;
	}
	pthread_mutex_lock(&b->lock);
	is_known = b->is_unpadded_known;
	pthread_mutex_unlock(&b->lock);
	if (!is_known) {
		code = fetch_sizes(b, fetched, err);
		if (code)
			return code;
		pthread_mutex_lock(&b->lock);
		if (!b->is_unpadded_known)
			memcpy(b->unpadded, fetched, sizeof(fetched));
		b->is_unpadded_known = true;
		pthread_mutex_unlock(&b->lock);
	}
	*dim = b->unpadded;
	return 0;
}

/* Elements of `bytes` each: so many of each dim, the others' strides being in bytes. */
static void copy_dims(uint8_t *to, const int64_t *to_stride, const uint8_t *from,
		      const int64_t *from_stride, const int64_t *dim, unsigned rank, size_t bytes)
{
	if (!rank) {
		memcpy(to, from, bytes);
		return;
	}
	for (int64_t i = 0; i < *dim; i++)
		copy_dims(to + i * *to_stride, to_stride + 1, from + i * *from_stride,
			  from_stride + 1, dim + 1, rank - 1, bytes);
}

/* All of it, as it lies on the device; malloc'd. */
static int fetch_all(struct rt_buffer *b, uint8_t **out, struct err *err)
{
	uint64_t bytes = rt_shape_bytes(&b->shape);
	uint8_t *p = malloc(bytes + 1);
	struct rt_event *done;
	int code;

	if (!p)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory for %llu bytes",
			       (unsigned long long)bytes);
	code = rt_buffer_to_host(b, 0, p, bytes, &done, err);
	if (!code) {
		code = rt_event_wait(done, err);
		rt_event_unref(done);
	}
	if (code)
		free(p);
	else
		*out = p;
	return code;
}

int rt_buffer_to_host_unpadded(struct rt_buffer *b, void *dst, const int64_t *strides,
			       struct err *err)
{
	int64_t from[IMAGE_MAX_RANK];
	const int64_t *dim;
	uint8_t *all = NULL;
	int code = rt_buffer_unpadded(b, &dim, err);

	if (!code)
		code = fetch_all(b, &all, err);
	if (code)
		return code;
	rt_dense_strides(&b->shape, from);
	copy_dims(dst, strides, all, from, dim, b->shape.rank, elem_bytes(b->shape.elem));
	free(all);
	return 0;
}

int rt_buffer_padded(struct rt_buffer *b, const struct rt_shape *want, struct rt_buffer **out,
		     struct err *err)
{
	int64_t from[IMAGE_MAX_RANK], to[IMAGE_MAX_RANK];
	uint64_t bytes = rt_shape_bytes(want);
	uint8_t *all = NULL, *more = calloc(1, bytes + 1);
	int code = more ? fetch_all(b, &all, err) :
		   err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");

	if (!code) {
		rt_dense_strides(&b->shape, from);
		rt_dense_strides(want, to);
		copy_dims(more, to, all, from, b->shape.dim, want->rank, elem_bytes(want->elem));
		code = rt_buffer_from_host(b->client, b->device, b->kind, want, more, to, out, err);
	}
	free(all);
	free(more);
	return code;
}
