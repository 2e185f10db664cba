/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What both halves of the bytecode reader stand on: numbers and counts out of hostile bytes,
 * memory, and the one way to give up. Nothing here knows what the bytes mean.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runtime/compiler/front/reader.h"

void bc_bad(struct bc *r, const uint8_t *at, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	tc_fail(r->c, ERR_INVALID_ARGUMENT, NULL, "broken program at byte %zu of %zu: %s",
		at >= r->base && at <= r->base + r->bytes ? (size_t)(at - r->base) : 0,
		r->bytes, text);
}

void *bc_get(struct bc *r, size_t count, size_t size)
{
	void *p = arena_array(&r->c->arena, count, size);

	if (!p)
		tc_fail(r->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory while reading a "
			"program of %zu bytes", r->bytes);
	return p;
}

uint8_t bc_byte(struct bc *r, struct bc_cursor *c)
{
	if (c->p >= c->end)
		bc_bad(r, c->end, "it ends too early");
	return *c->p++;
}

uint64_t bc_varint(struct bc *r, struct bc_cursor *c)
{
	const uint8_t *at = c->p;
	uint8_t first = bc_byte(r, c);
	unsigned extra = first ? (unsigned)__builtin_ctz(first) : 8;
	uint64_t v = first;

	if (extra > (size_t)(c->end - c->p))
		bc_bad(r, at, "a number passes the end");
	if (extra == 8) {
		memcpy(&v, c->p, 8);
		c->p += 8;
		return v;
	}
	for (unsigned i = 0; i < extra; i++)
		v |= (uint64_t)*c->p++ << (8 * (i + 1));
	return v >> (extra + 1);
}

int64_t bc_svarint(struct bc *r, struct bc_cursor *c)
{
	uint64_t v = bc_varint(r, c);

	return (int64_t)(v >> 1 ^ (0 - (v & 1)));
}

uint64_t bc_count(struct bc *r, struct bc_cursor *c)
{
	const uint8_t *at = c->p;
	uint64_t n = bc_varint(r, c);

	if (n > (uint64_t)(c->end - c->p))
		bc_bad(r, at, "%llu things in %zu bytes", (unsigned long long)n,
		       (size_t)(c->end - c->p));
	return n;
}

uint64_t bc_index(struct bc *r, struct bc_cursor *c, uint64_t limit, const char *what)
{
	const uint8_t *at = c->p;
	uint64_t i = bc_varint(r, c);

	if (i >= limit)
		bc_bad(r, at, "%s %llu of %llu", what, (unsigned long long)i,
		       (unsigned long long)limit);
	return i;
}
