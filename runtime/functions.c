/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of the host that a program calls by name (hal/hw/image.h): what they are shown is
 * read once a load, for all members, and each call has a state of its own until the last member
 * is gone. Bytes are hostile: an executable may come from anywhere.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/rt_internal.h"

/* ---- reading ---- */

struct reader {
	const uint8_t *at, *end;
	struct arena *arena;
	bool is_bad;
};

static const void *take(struct reader *r, uint64_t n)
{
	const uint8_t *p = r->at;

	if (r->is_bad || n > (uint64_t)(r->end - p)) {
		r->is_bad = true;
		return NULL;
	}
	r->at += n;
	return p;
}

static uint64_t number(struct reader *r, unsigned bytes)
{
	const void *p = take(r, bytes);
	uint64_t v = 0;

	if (p)
		memcpy(&v, p, bytes);
	return v;
}

/* A copy that functions may read in whichever width, with a NUL behind it. */
static const void *copy(struct reader *r, uint64_t n)
{
	const void *p = take(r, n);
	char *to = p ? arena_alloc(r->arena, n + 1) : NULL;

	if (!to) {
		r->is_bad = true;
		return NULL;
	}
	memcpy(to, p, n);
	to[n] = 0;
	return to;
}

/* Room for as many as there may be: each takes a byte at least. */
static void *room(struct reader *r, uint64_t n, size_t each)
{
	void *p = r->is_bad || n > (uint64_t)(r->end - r->at) ? NULL :
		  arena_array(r->arena, n + 1, each);

	r->is_bad |= !p;
	return p;
}

static struct rt_attributes attributes(struct reader *r, unsigned depth);

static void value(struct reader *r, struct rt_attribute *a, unsigned depth)
{
	uint64_t bytes;

	a->kind = (uint8_t)number(r, 1);
	switch (a->kind) {
	case IMAGE_ATTRIBUTE_SCALAR:
	case IMAGE_ATTRIBUTE_ARRAY:
		a->elem = (uint8_t)number(r, 1);
		a->n = a->kind == IMAGE_ATTRIBUTE_ARRAY ? number(r, 8) : 1;
		if (!elem_valid(a->elem) ||
		    __builtin_mul_overflow(a->n, (uint64_t)elem_bytes(a->elem), &bytes))
			r->is_bad = true;
		else
			a->data = copy(r, bytes);
		break;
	case IMAGE_ATTRIBUTE_TEXT:
		a->n = number(r, 4);
		a->data = copy(r, a->n);
		break;
	case IMAGE_ATTRIBUTE_LIST:
		if (depth == IMAGE_MAX_NESTED)
			r->is_bad = true;
		else
			a->list = attributes(r, depth + 1);
		break;
	default:
		r->is_bad = true;
	}
}

static struct rt_attributes attributes(struct reader *r, unsigned depth)
{
	uint64_t n = number(r, 4);
	struct rt_attribute *list = room(r, n, sizeof(*list));

	for (uint64_t i = 0; !r->is_bad && i < n; i++) {
		struct rt_attribute *a = &list[i];

		*a = (struct rt_attribute){ .name_bytes = (uint32_t)number(r, 4) };
		a->name = copy(r, a->name_bytes);
		if (!r->is_bad && i && strcmp(a[-1].name, a->name) >= 0)
			r->is_bad = true;
		value(r, a, depth);
	}
	return (struct rt_attributes){ list, n };
}

static void array(struct reader *r, struct rt_function_array *a)
{
	int64_t *dim;

	*a = (struct rt_function_array){ .elem = (uint8_t)number(r, 1) };
	a->rank = (uint8_t)number(r, 1);
	a->alias = (int32_t)number(r, 4);
	dim = room(r, a->rank, sizeof(*dim));
	a->dim = dim;
	if (r->is_bad || !elem_valid(a->elem) || a->rank > IMAGE_MAX_RANK) {
		r->is_bad = true;
		return;
	}
	a->bytes = elem_bytes(a->elem);
	for (unsigned d = 0; d < a->rank; d++) {
		dim[d] = (int64_t)number(r, 8);
		if (dim[d] < 0 ||
		    __builtin_mul_overflow(a->bytes, (uint64_t)dim[d], &a->bytes))
			r->is_bad = true;
	}
}

/* An alias is an operand of the same elements and dims. */
static bool is_like(const struct rt_function *f, const struct rt_function_array *a)
{
	const struct rt_function_array *other;

	if ((uint32_t)a->alias >= f->n_in)
		return false;
	other = &f->arrays[a->alias];
	return a->elem == other->elem && a->rank == other->rank &&
	       !memcmp(a->dim, other->dim, a->rank * sizeof(*a->dim));
}

static void function(struct reader *r, struct rt_function *f)
{
	struct rt_function_array *list;
	uint64_t n;

	f->name = copy(r, number(r, 4));
	f->n_in = (uint32_t)number(r, 4);
	f->n_out = (uint32_t)number(r, 4);
	n = (uint64_t)f->n_in + f->n_out;
	list = room(r, n, sizeof(*list));
	f->arrays = list;
	for (uint64_t i = 0; !r->is_bad && i < n; i++) {
		array(r, &list[i]);
		if (!r->is_bad && list[i].alias != -1 &&
		    (list[i].alias < 0 || i < f->n_in || !is_like(f, &list[i])))
			r->is_bad = true;
	}
	f->attributes = attributes(r, 0);
	r->is_bad |= r->at != r->end;
}

/* Whether the call's transfers are the arrays of the function. */
static bool has_its_transfers(const struct image *im, uint32_t call, const struct rt_function *f)
{
	size_t t = 0, n = 0;

	while (t < im->n_transfers && im->transfers[t].call != call)
		t++;
	for (uint32_t i = 0; i < f->n_in + f->n_out; i++) {
		if (f->arrays[i].elem == ELEM_TOKEN)
			continue;
		if (t == im->n_transfers || im->transfers[t].call != call ||
		    (im->transfers[t].way != IMAGE_TO_HOST) != (i >= f->n_in) ||
		    im->transfers[t].only ||
		    im->transfers[t].bytes != f->arrays[i].bytes)
			return false;
		t++;
		n++;
	}
	if (!n)
		return im->transfers[t++].bytes == 0;
	return t == im->n_transfers || im->transfers[t].call != call;
}

/* ---- a load ---- */

static unsigned count(const struct image *im)
{
	uint32_t call, bytes;
	unsigned n = 0;
	size_t at = 0;

	while (image_next_function(im, &at, &call, &bytes))
		n++;
	return n;
}

void rt_called_unref(struct rt_called *k)
{
	if (!k || atomic_fetch_sub(&k->refs, 1) != 1)
		return;
	for (unsigned i = 0; i < k->n; i++)
		if (k->calls[i].is_loaded)
			k->by->unload(k->calls[i].state);
	arena_free(&k->arena);
	free(k);
}

static int load(struct rt_called *k, const struct image *im, struct err *err)
{
	struct rt_called_function *c = k->calls;
	const uint8_t *p;
	uint32_t bytes;
	size_t at = 0;

	for (; (p = image_next_function(im, &at, &c->call, &bytes)); c++) {
		struct reader r = { p, p + bytes, &k->arena, false };

		function(&r, &c->function);
		if (r.is_bad || !has_its_transfers(im, c->call, &c->function))
			return err_set(err, ERR_INVALID_ARGUMENT, "call %u of the executable, of a "
				       "function by name, is broken or does not fit into memory: "
				       "compile the program again", c->call);
	}
	for (c = k->calls; c < k->calls + k->n; c++) {
		int code = k->by->load(&c->function, &c->state, err);

		if (code)
			return code;
		c->is_loaded = true;
	}
	return 0;
}

int rt_called_new(struct rt_client *c, const struct image *im, struct rt_called **out,
		  struct err *err)
{
	unsigned n = count(im);
	struct rt_called *k;
	int code;

	*out = NULL;
	if (!n)
		return 0;
	if (!c->functions)
		return err_set(err, ERR_UNIMPLEMENTED, "the program calls functions of the host by "
			       "name, and this client has none");
	k = calloc(1, sizeof(*k) + n * sizeof(*k->calls));
	if (!k)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	atomic_init(&k->refs, 1);
	k->by = c->functions;
	k->n = n;
	code = load(k, im, err);
	if (code)
		rt_called_unref(k);
	else
		*out = k;
	return code;
}

int rt_called_find(const struct rt_called *k, uint64_t call)
{
	for (unsigned i = 0; k && i < k->n; i++)
		if (k->calls[i].call == call)
			return (int)i;
	return -1;
}

/* ---- a run ---- */

void rt_called_end(const struct rt_called *k, void **runs)
{
	for (unsigned i = 0; runs && i < k->n; i++)
		if (runs[i])
			k->by->end(runs[i]);
	free(runs);
}

int rt_called_begin(const struct rt_called *k, const struct rt_host *host, unsigned device,
		    void ***out, struct err *err)
{
	void **runs = calloc(k->n, sizeof(*runs));
	int code = runs ? 0 : err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");

	for (unsigned i = 0; !code && i < k->n; i++)
		code = k->by->begin(k->calls[i].state, host->arg, device, &runs[i], err);
	for (unsigned i = 0; !code && i < k->n; i++)
		code = k->by->initialize(runs[i], err);
	if (code)
		rt_called_end(k, runs);
	else
		*out = runs;
	return code;
}
