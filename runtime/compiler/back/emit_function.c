/* SPDX-License-Identifier: Apache-2.0 */
/* What a function of the host sees, as bytes (hal/hw/image.h, functions). */
#include <string.h>

#include "runtime/compiler/back/emit.h"

enum { MOST_ATTRIBUTES = 1024 };

static void put(struct str *s, const void *p, size_t n)
{
	str_add(s, p, n);
}

static void put_u32(struct emit *e, const struct tc_op *op, struct str *s, size_t n)
{
	uint32_t v = (uint32_t)n;

	if (n > UINT32_MAX)
		tc_fail(e->c, ERR_UNIMPLEMENTED, op, "a function of the host is given %zu bytes "
			"or entries of attributes at once", n);
	put(s, &v, sizeof(v));
}

static void put_byte(struct str *s, unsigned v)
{
	uint8_t byte = (uint8_t)v;

	put(s, &byte, 1);
}

static void put_elements(struct str *s, const struct tc_attr *a)
{
	size_t each = elem_bytes(a->type->elem);

	if (!a->is_splat)
		put(s, a->data, (size_t)a->type->count * each);
	for (int64_t i = 0; a->is_splat && i < a->type->count && !s->failed; i++)
		put(s, a->data, each);
}

static void put_attributes(struct emit *e, const struct tc_op *op, struct str *s,
			   const struct tc_attr *list, uint32_t n);

static void put_attribute(struct emit *e, const struct tc_op *op, struct str *s,
			  const struct tc_attr *a)
{
	uint64_t count;

	put_u32(e, op, s, strlen(a->key));
	put(s, a->key, strlen(a->key));
	if (a->kind == TC_ATTR_DENSE) {
		put_byte(s, a->type->rank ? IMAGE_ATTRIBUTE_ARRAY : IMAGE_ATTRIBUTE_SCALAR);
		put_byte(s, a->type->elem);
		count = (uint64_t)a->type->count;
		if (a->type->rank)
			put(s, &count, sizeof(count));
		put_elements(s, a);
	} else if (a->kind == TC_ATTR_STR) {
		put_byte(s, IMAGE_ATTRIBUTE_TEXT);
		put_u32(e, op, s, a->n);
		put(s, a->text, a->n);
	} else if (a->kind == TC_ATTR_ATTRS) {
		put_byte(s, IMAGE_ATTRIBUTE_LIST);
		put_attributes(e, op, s, a->attrs, a->n);
	} else {
		tc_fail(e->c, ERR_INVALID_ARGUMENT, op, "its attribute \"%.60s\" is of a kind that "
			"functions of the host don't know", a->key);
	}
}

/* By name, as functions look for them. */
static void put_attributes(struct emit *e, const struct tc_op *op, struct str *s,
			   const struct tc_attr *list, uint32_t n)
{
	const struct tc_attr *last = NULL, *next;

	if (n > MOST_ATTRIBUTES)
		tc_fail(e->c, ERR_UNIMPLEMENTED, op, "a function of the host is given %u "
			"attributes in one list, at most %d", n, MOST_ATTRIBUTES);
	put_u32(e, op, s, n);
	for (uint32_t done = 0; done < n; done++, last = next) {
		next = NULL;
		for (uint32_t i = 0; i < n; i++)
			if ((!last || strcmp(list[i].key, last->key) > 0) &&
			    (!next || strcmp(list[i].key, next->key) < 0))
				next = &list[i];
		if (!next)
			tc_fail(e->c, ERR_INVALID_ARGUMENT, op, "two of its attributes have one "
				"name");
		put_attribute(e, op, s, next);
	}
}

/* Verified: ir_shape.c. */
static void put_arrays(const struct tc_op *op, struct str *s)
{
	unsigned n, at = 1;
	const int64_t *a = tc_attr_ints(op, "arrays", &n);
	size_t where = s->len;
	uint32_t counts[2] = { (uint32_t)a[0], 0 };

	put(s, counts, sizeof(counts));
	for (uint32_t i = 0; at < n; i++) {
		unsigned rank = (unsigned)a[at + 1];
		bool is_result = i >= counts[0];
		int32_t alias = is_result ? (int32_t)a[at + 2 + rank] : -1;

		put_byte(s, (unsigned)a[at]);
		put_byte(s, rank);
		put(s, &alias, sizeof(alias));
		put(s, &a[at + 2], rank * sizeof(*a));
		at += 2 + rank + is_result;
		counts[1] += is_result;
	}
	if (!s->failed)
		memcpy(s->text + where, counts, sizeof(counts));
}

void tc_emit_function(struct emit *e, const struct tc_op *op)
{
	struct str *s = &e->functions;
	const char *target = tc_attr_str(op, "target");
	const struct tc_attr *frame = tc_attr(op, "frame");
	size_t head = s->len;
	uint32_t bytes = 0;

	put_u32(e, op, s, e->next_call);
	put(s, &bytes, sizeof(bytes));
	put_u32(e, op, s, strlen(target));
	put(s, target, strlen(target));
	put_arrays(op, s);
	put_attributes(e, op, s, frame->attrs, frame->n);
	if (s->failed || s->len - head > UINT32_MAX)
		tc_fail(e->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory for what the function "
			"\"%.60s\" is given", target);
	bytes = (uint32_t)(s->len - head - 2 * sizeof(bytes));
	memcpy(s->text + head + sizeof(bytes), &bytes, sizeof(bytes));
}
