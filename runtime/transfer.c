/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transfers in pieces: buffers that are filled by several calls, and streams that a
 * callback fills. A piece is copied by the thread that brings it; a buffer is resolved
 * by whoever finds the last piece marked and none under way. From then on it is its taker's
 * alone: the transfer, which may live long, keeps neither its memory nor it from being donated.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/rt_internal.h"

struct slot {
	struct rt_buffer *buffer;	/* a reference; NULL: resolved, taken, nothing under way */
	struct rt_shape shape;
	unsigned under_way;	/* pieces, and resolving it */
	bool is_used;		/* the buffer is in use for us: until it is resolved and no piece
				 * is under way */
	bool is_last, is_resolved, is_taken;
};

struct rt_transfer {
	struct rt_client *client;
	size_t n;
	pthread_mutex_t lock;
	unsigned refs;		/* its owner's, and one for each call: callbacks of a buffer that
				 * is resolved may destroy the transfer */
	struct slot slots[];
};

/* Under t->lock, which is let go and taken again: lets go of what is resolved. */
static void settle(struct rt_transfer *t, struct slot *s)
{
	struct rt_buffer *used, *taken;

	if (!s->is_resolved || s->under_way)
		return;
	used = s->is_used ? s->buffer : NULL;
	taken = s->is_taken ? s->buffer : NULL;
	s->is_used = false;
	if (taken)
		s->buffer = NULL;
	pthread_mutex_unlock(&t->lock);
	if (used)
		rt_buffer_end_use(used);
	rt_buffer_unref(taken);
	pthread_mutex_lock(&t->lock);
}

/* As settle. Who waits for the buffer is to find it unused. */
static void resolve(struct rt_transfer *t, struct slot *s, const struct err *why)
{
	struct rt_buffer *b = s->buffer;
	bool is_idle = !s->under_way++;

	s->is_resolved = true;
	if (is_idle)
		s->is_used = false;
	pthread_mutex_unlock(&t->lock);
	if (is_idle)
		rt_buffer_end_use(b);
	rt_buffer_resolve(b, why);
	pthread_mutex_lock(&t->lock);
	s->under_way--;
	settle(t, s);
}

static void enter(struct rt_transfer *t)
{
	pthread_mutex_lock(&t->lock);
	t->refs++;
}

/* Lets go of the lock. */
static void leave(struct rt_transfer *t)
{
	struct rt_client *c = t->client;
	bool is_last = --t->refs == 0;

	pthread_mutex_unlock(&t->lock);
	if (!is_last)
		return;
	for (size_t i = 0; i < t->n; i++)
		rt_buffer_unref(t->slots[i].buffer);
	pthread_mutex_destroy(&t->lock);
	free(t);
	rt_client_unref(c);
}

int rt_transfer_create(struct rt_client *c, unsigned device, enum rt_memory_kind kind,
		       const struct rt_shape *shapes, size_t n, struct rt_transfer **out,
		       struct err *err)
{
	struct rt_transfer *t = NULL;
	size_t bytes;
	int code = 0;

	if (!__builtin_mul_overflow(n, sizeof(*t->slots), &bytes) &&
	    !__builtin_add_overflow(bytes, sizeof(*t), &bytes))
		t = calloc(1, bytes);
	if (!t)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	t->client = c;
	t->refs = 1;
	pthread_mutex_init(&t->lock, NULL);
	rt_client_ref(c);
	for (; !code && t->n < n; t->n += !code) {
		struct slot *s = &t->slots[t->n];

		s->shape = shapes[t->n];
		code = rt_buffer_new_pending(c, device, kind, &s->shape, "transfer", &s->buffer,
					     err);
		s->is_used = !code && !rt_buffer_begin_use(s->buffer, NULL);
	}
	if (code) {
		rt_transfer_destroy(t);
		return code;
	}
	*out = t;
	return 0;
}

void rt_transfer_destroy(struct rt_transfer *t)
{
	struct err why;

	if (!t || rt_is_orphan(t->client))
		return;
	err_set(&why, ERR_CANCELLED, "the transfer was destroyed before all data came");
	pthread_mutex_lock(&t->lock);
	for (size_t i = 0; i < t->n; i++)
		if (!t->slots[i].is_resolved)
			resolve(t, &t->slots[i], &why);
	leave(t);
}

struct rt_client *rt_transfer_client(const struct rt_transfer *t)
{
	return t->client;
}

size_t rt_transfer_count(const struct rt_transfer *t)
{
	return t->n;
}

static struct slot *find(struct rt_transfer *t, int64_t i, struct err *err)
{
	if (i >= 0 && (uint64_t)i < t->n)
		return &t->slots[i];
	err_set(err, ERR_INVALID_ARGUMENT, "buffer %lld of a transfer of %zu", (long long)i,
		t->n);
	return NULL;
}

int rt_transfer_bytes(struct rt_transfer *t, int64_t i, uint64_t *out, struct err *err)
{
	struct slot *s = find(t, i, err);

	if (!s)
		return ERR_INVALID_ARGUMENT;
	*out = rt_shape_bytes(&s->shape);
	return 0;
}

const struct rt_shape *rt_transfer_shape(const struct rt_transfer *t, size_t i)
{
	return i < t->n ? &t->slots[i].shape : NULL;
}

int rt_transfer_buffer(struct rt_transfer *t, int64_t i, struct rt_buffer **out,
		       struct err *err)
{
	struct slot *s = find(t, i, err);
	bool again;

	if (!s)
		return ERR_INVALID_ARGUMENT;
	enter(t);
	again = s->is_taken;
	s->is_taken = true;
	if (!again) {
		rt_buffer_ref(s->buffer);
		*out = s->buffer;
		settle(t, s);
	}
	leave(t);
	return again ? err_set(err, ERR_FAILED_PRECONDITION, "buffer %lld of the transfer was "
			       "retrieved already", (long long)i) : 0;
}

static int check_piece(const struct slot *s, uint64_t offset, uint64_t bytes,
		       struct err *err)
{
	uint64_t size = rt_shape_bytes(&s->shape);

	if (offset > size || bytes > size - offset)
		return err_set(err, ERR_INVALID_ARGUMENT, "a piece of %llu bytes at offset "
			       "%llu of a buffer of %llu", (unsigned long long)bytes,
			       (unsigned long long)offset, (unsigned long long)size);
	if (s->is_resolved || s->is_last)
		return err_set(err, ERR_FAILED_PRECONDITION, "a piece of %llu bytes for a "
			       "buffer that has had its %s", (unsigned long long)bytes,
			       s->is_last ? "last piece" : "error");
	return 0;
}

int rt_transfer_data(struct rt_transfer *t, int64_t i, uint64_t offset, const void *data,
		     uint64_t bytes, bool is_last, struct err *err)
{
	struct slot *s = find(t, i, err);
	struct err why;
	int code;

	if (!s)
		return ERR_INVALID_ARGUMENT;
	enter(t);
	code = check_piece(s, offset, bytes, err);
	if (code) {
		leave(t);
		return code;
	}
	s->under_way++;
	s->is_last = is_last;
	pthread_mutex_unlock(&t->lock);
	if (bytes)
		code = hal_copy_in_elems(s->buffer->storage->mem, offset, data, bytes,
					 s->shape.elem == ELEM_PRED, CLOCK_FOREVER, &why);
	pthread_mutex_lock(&t->lock);
	s->under_way--;
	if (code && !s->is_resolved)
		resolve(t, s, &why);
	else if (s->is_last && !s->under_way && !s->is_resolved)
		resolve(t, s, NULL);
	else
		settle(t, s);
	leave(t);
	if (code && err)
		*err = why;
	return code;
}

int rt_transfer_fail(struct rt_transfer *t, int64_t i, const struct err *why, struct err *err)
{
	struct slot *s = find(t, i, err);
	int code = 0;

	if (!s)
		return ERR_INVALID_ARGUMENT;
	enter(t);
	if (s->is_resolved)
		code = err_set(err, ERR_FAILED_PRECONDITION, "an error for a buffer that has "
			       "its content");
	else
		resolve(t, s, why);
	leave(t);
	return code;
}

/* ---- streams ---- */

struct rt_stream {
	pthread_mutex_t lock;
	pthread_cond_t cond;	/* something came, or somebody let go */
	unsigned generation;	/* a child of fork leaves the lock alone */
	unsigned refs;
	uint64_t total, granule, current;
	struct err refused;	/* the first chunk that was */
	uint8_t data[];
};

struct rt_stream *rt_stream_new(uint64_t total, uint64_t granule)
{
	struct rt_stream *s;

	if (!granule || total % granule || total > INT64_MAX - sizeof(*s))
		return NULL;
	s = malloc(sizeof(*s) + total);
	if (!s)
		return NULL;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->cond, NULL);
	s->generation = hal_generation();
	s->refs = 1;
	s->total = total;
	s->granule = granule;
	s->current = 0;
	s->refused.code = 0;
	return s;
}

void rt_stream_ref(struct rt_stream *s)
{
	pthread_mutex_lock(&s->lock);
	s->refs++;
	pthread_mutex_unlock(&s->lock);
}

void rt_stream_unref(struct rt_stream *s)
{
	bool is_last;

	if (!s || s->generation != hal_generation())
		return;
	pthread_mutex_lock(&s->lock);
	is_last = --s->refs == 0;
	if (!is_last)
		pthread_cond_broadcast(&s->cond);
	pthread_mutex_unlock(&s->lock);
	if (!is_last)
		return;
	pthread_cond_destroy(&s->cond);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static int add_chunk(struct rt_stream *s, const void *p, uint64_t n, struct err *err)
{
	if (n % s->granule)
		return err_set(err, ERR_INVALID_ARGUMENT, "a chunk of %llu bytes where the "
			       "granule is %llu", (unsigned long long)n,
			       (unsigned long long)s->granule);
	if (n > s->total - s->current)
		return err_set(err, ERR_INVALID_ARGUMENT, "a chunk of %llu bytes where %llu "
			       "of %llu are missing", (unsigned long long)n,
			       (unsigned long long)(s->total - s->current),
			       (unsigned long long)s->total);
	if (n)
		memcpy(s->data + s->current, p, n);
	s->current += n;
	return 0;
}

int rt_stream_add(struct rt_stream *s, const void *p, uint64_t n, struct err *err)
{
	struct err why;
	int code;

	if (s->generation != hal_generation())
		return err_set(err, ERR_FAILED_PRECONDITION, "a stream of the process that "
			       "this one was forked from");
	pthread_mutex_lock(&s->lock);
	code = add_chunk(s, p, n, &why);
	if (code && !s->refused.code)
		s->refused = why;
	pthread_cond_broadcast(&s->cond);
	pthread_mutex_unlock(&s->lock);
	if (code && err)
		*err = why;
	return code;
}

int rt_stream_wait(struct rt_stream *s, struct err *err)
{
	int code = 0;

	pthread_mutex_lock(&s->lock);
	while (s->current < s->total && !s->refused.code && s->refs > 1)
		pthread_cond_wait(&s->cond, &s->lock);
	if (s->refused.code) {
		code = s->refused.code;
		if (err)
			*err = s->refused;
	} else if (s->current < s->total) {
		code = err_set(err, ERR_ABORTED, "the stream ended after %llu of %llu bytes",
			       (unsigned long long)s->current, (unsigned long long)s->total);
	}
	pthread_mutex_unlock(&s->lock);
	return code;
}

uint64_t rt_stream_total(const struct rt_stream *s)
{
	return s->total;
}

uint64_t rt_stream_granule(const struct rt_stream *s)
{
	return s->granule;
}

uint64_t rt_stream_current(struct rt_stream *s)
{
	uint64_t n;

	if (s->generation != hal_generation())
		return s->current;
	pthread_mutex_lock(&s->lock);
	n = s->current;
	pthread_mutex_unlock(&s->lock);
	return n;
}

const void *rt_stream_data(struct rt_stream *s)
{
	return rt_stream_current(s) == s->total ? s->data : NULL;
}
