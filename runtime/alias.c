/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers whose content another buffer gives: bitcasts, aliases, donation after an event.
 * Nothing here waits.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/rt_internal.h"

#define DEEP 64u

struct forward {
	struct rt_buffer *from;	/* in use */
	struct rt_buffer *to;
	struct rt_needs needs;	/* of `to`: `from` */
	struct rt_callback callback;
	struct forward *next;	/* of `later` */
};

/* What resolves a buffer resolves those that follow it, and those that follow these: so many deep
 * in one another, and the others after these, however long the chain is. Of this thread. */
static _Thread_local unsigned depth;
static _Thread_local struct forward *later, **last;

/* why NULL: with what `from` has. */
static void resolve(struct forward *f, const struct err *why)
{
	depth++;
	rt_in_callback++;
	rt_needs_end(&f->to, 1);
	if (why)
		rt_buffer_resolve(f->to, why);
	else
		rt_buffer_resolve_from(f->to, f->from);
	rt_buffer_end_use(f->from);
	rt_buffer_unref(f->to);
	free(f);
	rt_in_callback--;
	depth--;
}

/* The same, and then what was put off. */
static void pass(struct forward *f, const struct err *why)
{
	resolve(f, why);
	while (!depth && later) {
		f = later;
		later = f->next;
		resolve(f, NULL);
	}
}

static void follow(void *arg, const struct err *err)
{
	struct forward *f = arg;

	(void)err;
	if (depth < DEEP) {
		pass(f, NULL);
		return;
	}
	last = later ? last : &later;
	f->next = NULL;
	*last = f;
	last = &f->next;
}

static void prepare(struct forward *f, struct rt_buffer *from, struct rt_buffer *to)
{
	*f = (struct forward){ .from = from, .to = to, .needs = { .of = &f->from, .n = 1 } };
}

/* Takes the use of what it goes from, and a reference to what it goes to. */
static void start(struct forward *f)
{
	rt_buffer_ref(f->to);
	if (f->from->resolved)
		rt_event_on_ready(f->from->resolved, &f->callback, follow, f);
	else
		follow(f, NULL);
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

/* Whether elements of `is` may be called those of `want`, as they lie there. */
static int check_truth(const struct rt_shape *want, const struct rt_shape *is, const char *what,
		       struct err *err)
{
	if (want->elem != ELEM_PRED || is->elem == ELEM_PRED || !rt_shape_bytes(is))
		return 0;
	return err_set(err, ERR_INVALID_ARGUMENT, "%s: bytes of %s in place of truth values, which "
		       "are 0 or 1: have a program compare them with 0", what,
		       elem_text(is->elem));
}

int rt_buffer_bitcast(struct rt_buffer *b, const struct rt_shape *shape,
		      struct rt_buffer **out, struct err *err)
{
	struct rt_buffer *to;
	struct forward *f;
	int code = b->sizes ? err_set(err, ERR_INVALID_ARGUMENT, "a bitcast of an array whose dims "
				      "have bounds: what counts of it is not one block") :
		   check_fit(&b->shape, shape, "a bitcast", err);

	if (!code)
		code = check_truth(shape, &b->shape, "a bitcast", err);
	if (!code)
		code = rt_buffer_begin_use(b, err);
	if (code)
		return code;
	if (!rt_buffer_is_pending(b)) {
		to = rt_buffer_share(b, b->storage, shape);
		rt_buffer_end_use(b);
		*out = to;
		return to ? 0 : err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	}
	f = malloc(sizeof(*f));
	code = f ? rt_buffer_new_pending(b->client, b->device, b->kind, shape, NULL, &to, err) :
		   err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	if (code) {
		free(f);
		rt_buffer_end_use(b);
		return code;
	}
	prepare(f, b, to);
	rt_needs_begin(&f->needs, &to, 1);
	start(f);
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
	rt_buffer_resolve(alias, why);
}

static int check_content(const struct rt_buffer *alias, const struct rt_buffer *with,
			 struct err *err)
{
	if (with->client != alias->client)
		return err_set(err, ERR_INVALID_ARGUMENT, "an alias is given a buffer of another "
			       "client than its own: bring it over by way of the host");
	if (with->device != alias->device ||
	    (with->kind == RT_DEVICE) != (alias->kind == RT_DEVICE))
		return err_set(err, ERR_INVALID_ARGUMENT, "an alias in %s of device %u is given a "
			       "buffer in %s of device %u", rt_memory_kind_names[alias->kind],
			       alias->device, rt_memory_kind_names[with->kind], with->device);
	if (with->sizes)
		return err_set(err, ERR_UNIMPLEMENTED, "an alias is given an array whose sizes "
			       "are known on the device only; copy it to one of a fixed shape");
	if (memcmp(alias->shape.order, with->shape.order, sizeof(with->shape.order)))
		return err_set(err, ERR_INVALID_ARGUMENT, "an alias is given a buffer whose dims "
			       "lie in memory in another order");
	if (check_truth(&alias->shape, &with->shape, "an alias", err))
		return err->code;
	return check_fit(&alias->shape, &with->shape, "an alias", err);
}

int rt_alias_fulfill(struct rt_buffer *alias, struct rt_buffer *with, struct err *err)
{
	struct forward *f = malloc(sizeof(*f));
	bool is_used = false;
	struct err why;
	int code = check_content(alias, with, &why);

	if (!code) {
		code = rt_buffer_begin_use(with, &why);
		is_used = !code;
	}
	if (!code && !f)
		code = err_set(&why, ERR_RESOURCE_EXHAUSTED, "out of memory");
	if (!code)
		prepare(f, with, alias);
	if (!code && !rt_needs_give(&f->needs, alias))
		code = err_set(&why, ERR_INVALID_ARGUMENT, "an alias can't be its own content: "
			       "what it is given waits for it");
	if (!code) {
		start(f);
		return 0;
	}
	if (is_used)
		rt_buffer_end_use(with);
	free(f);
	rt_buffer_resolve(alias, &why);
	if (err)
		*err = why;
	return code;
}

/* ---- donation after an event ---- */

static void may_donate(void *arg, const struct err *err)
{
	struct forward *f = arg;

	if (!err && f->from->resolved) {
		rt_event_on_ready(f->from->resolved, &f->callback, follow, f);
		return;
	}
	if (!err) {
		follow(f, NULL);
		return;
	}
	pass(f, err);
}

int rt_buffer_donate(struct rt_buffer *b, struct rt_event *after, struct rt_buffer **out,
		     struct err *err)
{
	struct forward *f = malloc(sizeof(*f));
	struct rt_buffer *to;
	int code = f ? rt_buffer_new_pending(b->client, b->device, b->kind, &b->shape, NULL,
					     &to, err) :
		       err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");

	if (code) {
		free(f);
		return code;
	}
	pthread_mutex_lock(&b->lock);
	if (b->is_deleted)
		code = err_set(err, ERR_INVALID_ARGUMENT, "the buffer was deleted or donated");
	else if (b->external_refs)
		code = err_set(err, ERR_FAILED_PRECONDITION, "the buffer has %u external "
			       "references: it can't be donated", b->external_refs);
	if (!code) {
		b->is_deleted = true;
		b->uses++;
	}
	pthread_mutex_unlock(&b->lock);
	if (code) {
		free(f);
		rt_buffer_unref(to);
		return code;
	}
	rt_buffer_ref(b);
	rt_buffer_ref(to);
	rt_buffer_give_sizes(to, b->sizes);
	prepare(f, b, to);
	rt_needs_begin(&f->needs, &to, 1);
	rt_event_on_ready(after, &f->callback, may_donate, f);
	*out = to;
	return 0;
}
