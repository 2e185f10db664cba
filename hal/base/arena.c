/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks double up to 1 MiB; larger requests get a block of their own. */
#include "hal/base/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BLOCK ((size_t)16 << 10)
#define LARGEST_BLOCK ((size_t)1 << 20)
#define ALIGN 16u

struct arena_block {
	struct arena_block *next;
	size_t bytes;		/* of the whole block, this header included */
	_Alignas(ALIGN) char data[];
};

static void *fail(struct arena *a)
{
	if (a->on_fail)
		a->on_fail(a->on_fail_arg);
	return NULL;
}

static int grow(struct arena *a, size_t n)
{
	size_t bytes = a->head ? a->head->bytes * 2 : FIRST_BLOCK;
	struct arena_block *b;

	if (bytes > LARGEST_BLOCK)
		bytes = LARGEST_BLOCK;
	if (bytes < n + sizeof(*b))
		bytes = n + sizeof(*b);
	if (a->limit && bytes > a->limit - a->total)
		return -1;
	b = malloc(bytes);
	if (!b)
		return -1;
	b->bytes = bytes;
	b->next = a->head;
	a->head = b;
	a->total += bytes;
	a->next = b->data;
	a->end = (char *)b + bytes;
	return 0;
}

void *arena_alloc(struct arena *a, size_t n)
{
	void *p;

	if (n > SIZE_MAX / 2)
		return fail(a);
	n = n ? (n + ALIGN - 1) & ~(size_t)(ALIGN - 1) : ALIGN;
	if ((size_t)(a->end - a->next) < n && grow(a, n))
		return fail(a);
	p = a->next;
	a->next += n;
	return memset(p, 0, n);
}

void *arena_array(struct arena *a, size_t count, size_t size)
{
	if (size && count > SIZE_MAX / size)
		return fail(a);
	return arena_alloc(a, count * size);
}

void *arena_copy(struct arena *a, const void *from, size_t n)
{
	void *p = arena_alloc(a, n);

	if (p && n)
		memcpy(p, from, n);
	return p;
}

char *arena_text(struct arena *a, const char *text, size_t n)
{
	char *p = n < SIZE_MAX ? arena_alloc(a, n + 1) : fail(a);

	if (p && n)
		memcpy(p, text, n);
	return p;
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
	va_list ap;
	char *p;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		return fail(a);
	p = arena_alloc(a, (size_t)n + 1);
	if (!p)
		return NULL;
	va_start(ap, fmt);
	vsnprintf(p, (size_t)n + 1, fmt, ap);
	va_end(ap);
	return p;
}

struct arena_mark arena_mark(const struct arena *a)
{
	return (struct arena_mark){ .head = a->head, .next = a->next };
}

void arena_rewind(struct arena *a, struct arena_mark to)
{
	while (a->head != to.head) {
		struct arena_block *b = a->head;

		a->head = b->next;
		a->total -= b->bytes;
		free(b);
	}
	a->next = to.next;
	a->end = to.head ? (char *)to.head + to.head->bytes : NULL;
}

void arena_free(struct arena *a)
{
	arena_rewind(a, (struct arena_mark){ .head = NULL });
}
