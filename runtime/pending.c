/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Content that comes later: pins, settling, aliases, donation after an event. The one
 * idea: whoever makes a pending buffer writes storage, value or error under its lock
 * and then sets the gate; everybody else looks at the gate first. Nothing here waits.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/rt_internal.h"

bool rt_buffer_is_pending(const struct rt_buffer *b)
{
	return b->gate && !rt_event_is_ready(b->gate);
}

int rt_buffer_pin(struct rt_buffer *b, struct err *err)
{
	int code = 0;

	pthread_mutex_lock(&b->lock);
	if (b->is_deleted)
		code = err_set(err, ERR_INVALID_ARGUMENT, "the buffer was deleted or donated");
	else
		b->pins++;
	pthread_mutex_unlock(&b->lock);
	if (!code)
		rt_buffer_ref(b);
	return code;
}

/* Under b->lock, settled: the storage, if nobody may use it any more. */
static struct rt_storage *drop(struct rt_buffer *b)
{
	struct rt_storage *s = b->storage;

	if (!b->is_deleted || b->pins || b->holds)
		return NULL;
	b->storage = NULL;
	return s;
}

void rt_buffer_unpin(struct rt_buffer *b)
{
	struct rt_storage *s;

	pthread_mutex_lock(&b->lock);
	b->pins--;
	s = rt_buffer_is_pending(b) ? NULL : drop(b);
	pthread_mutex_unlock(&b->lock);
	rt_storage_unref(s);
	rt_buffer_unref(b);
}

/* The last step of settling: takes b->lock held and lets it go. */
static void open_gate(struct rt_buffer *b)
{
	struct rt_event *gate = b->gate;
	struct rt_storage *s = drop(b);

	rt_event_ref(gate);
	pthread_mutex_unlock(&b->lock);
	rt_event_set(gate, NULL);
	rt_event_unref(gate);
	/* Who deleted it in between saw it pending and left the storage to us. */
	pthread_mutex_lock(&b->lock);
	if (!s)
		s = drop(b);
	pthread_mutex_unlock(&b->lock);
	rt_storage_unref(s);
}

void rt_buffer_settle(struct rt_buffer *b, const struct err *why)
{
	rt_buffer_ref(b);
	pthread_mutex_lock(&b->lock);
	if (why) {
		*b->spare_error = *why;
		b->error = b->spare_error;
		b->spare_error = NULL;
	}
	open_gate(b);
	rt_buffer_unref(b);
}

void rt_buffer_settle_from(struct rt_buffer *b, struct rt_buffer *from)
{
	struct rt_storage *s;
	uint64_t value;

	if (from->error) {
		rt_buffer_settle(b, from->error);
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
	open_gate(b);
	rt_buffer_unref(b);
}

/* ---- one buffer from another, when that is settled ---- */

struct link {
	struct rt_buffer *from;	/* pinned */
	struct rt_buffer *to;
	struct rt_callback callback;
};

static void follow(void *arg, const struct err *err)
{
	struct link *l = arg;

	(void)err;
	rt_in_callback++;
	rt_buffer_settle_from(l->to, l->from);
	rt_buffer_unpin(l->from);
	rt_buffer_unref(l->to);
	free(l);
	rt_in_callback--;
}

/* Takes the pin of `from`, and a reference to `to`. */
static void link_to(struct link *l, struct rt_buffer *from, struct rt_buffer *to)
{
	*l = (struct link){ .from = from, .to = to };
	rt_buffer_ref(to);
	if (from->gate)
		rt_event_on_ready(from->gate, &l->callback, follow, l);
	else
		follow(l, NULL);
}

static int check_fit(const struct rt_shape *want, const struct rt_shape *is, const char *what,
		     struct err *err)
{
	if (rt_shape_bytes(want) == rt_shape_bytes(is))
		return 0;
	return err_set(err, ERR_INVALID_ARGUMENT, "%s: %llu bytes in place of %llu", what,
		       (unsigned long long)rt_shape_bytes(is),
		       (unsigned long long)rt_shape_bytes(want));
}

int rt_buffer_bitcast(struct rt_buffer *b, const struct rt_shape *shape,
		      struct rt_buffer **out, struct err *err)
{
	struct rt_buffer *to;
	struct link *l;
	int code = check_fit(&b->shape, shape, "a bitcast", err);

	if (!code)
		code = rt_buffer_pin(b, err);
	if (code)
		return code;
	if (!rt_buffer_is_pending(b)) {
		to = rt_buffer_share(b, shape);
		rt_buffer_unpin(b);
		*out = to;
		return to ? 0 : err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	}
	l = malloc(sizeof(*l));
	code = l ? rt_buffer_new_pending(b->client, b->device, b->kind, shape, NULL, &to, err) :
		   err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	if (code) {
		free(l);
		rt_buffer_unpin(b);
		return code;
	}
	link_to(l, b, to);
	*out = to;
	return 0;
}

/* ---- aliases ---- */

int rt_buffer_alias(struct rt_client *c, unsigned device, enum rt_memory_kind kind,
		    const struct rt_shape *shape, struct rt_buffer **out, struct err *err)
{
	return rt_buffer_new_pending(c, device, kind, shape, NULL, out, err);
}

void rt_alias_fail(struct rt_buffer *alias, const struct err *why)
{
	rt_buffer_settle(alias, why);
}

int rt_alias_fulfill(struct rt_buffer *alias, struct rt_buffer *with, struct err *err)
{
	struct link *l;
	struct err why;
	int code;

	if (with == alias)
		code = err_set(&why, ERR_INVALID_ARGUMENT, "an alias can't be its own content");
	else if (with->client != alias->client || with->device != alias->device ||
		 (with->kind == RT_DEVICE) != (alias->kind == RT_DEVICE))
		code = err_set(&why, ERR_INVALID_ARGUMENT, "an alias in %s of device %u is "
			       "given a buffer in %s of device %u",
			       rt_memory_kind_names[alias->kind], alias->device,
			       rt_memory_kind_names[with->kind], with->device);
	else
		code = check_fit(&alias->shape, &with->shape, "an alias", &why);
	if (!code)
		code = rt_buffer_pin(with, &why);
	l = malloc(sizeof(*l));
	if (!code && !l) {
		rt_buffer_unpin(with);
		code = err_set(&why, ERR_RESOURCE_EXHAUSTED, "out of memory");
	}
	if (code) {
		free(l);
		rt_buffer_settle(alias, &why);
		if (err)
			*err = why;
		return code;
	}
	link_to(l, with, alias);
	return 0;
}

/* ---- donation after an event ---- */

static void may_donate(void *arg, const struct err *err)
{
	struct link *l = arg;

	if (!err && l->from->gate) {
		rt_event_on_ready(l->from->gate, &l->callback, follow, l);
		return;
	}
	if (!err) {
		follow(l, NULL);
		return;
	}
	rt_in_callback++;
	rt_buffer_settle(l->to, err);
	rt_buffer_unpin(l->from);
	rt_buffer_unref(l->to);
	free(l);
	rt_in_callback--;
}

int rt_buffer_donate(struct rt_buffer *b, struct rt_event *after, struct rt_buffer **out,
		     struct err *err)
{
	struct link *l = malloc(sizeof(*l));
	struct rt_buffer *to;
	int code = l ? rt_buffer_new_pending(b->client, b->device, b->kind, &b->shape, NULL,
					     &to, err) :
		       err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");

	if (code) {
		free(l);
		return code;
	}
	pthread_mutex_lock(&b->lock);
	if (b->is_deleted)
		code = err_set(err, ERR_INVALID_ARGUMENT, "the buffer was deleted or donated");
	else if (b->holds)
		code = err_set(err, ERR_FAILED_PRECONDITION, "the buffer has %u external "
			       "references: it can't be donated", b->holds);
	if (!code) {
		b->is_deleted = true;
		b->pins++;
	}
	pthread_mutex_unlock(&b->lock);
	if (code) {
		free(l);
		rt_buffer_unref(to);
		return code;
	}
	rt_buffer_ref(b);
	rt_buffer_ref(to);
	*l = (struct link){ .from = b, .to = to };
	rt_event_on_ready(after, &l->callback, may_donate, l);
	*out = to;
	return 0;
}
