/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H
/*
 * A bump allocator for work that is freed all at once, such as one compile.
 *
 *	struct arena a = { 0 };
 *	p = arena_alloc(&a, n);
 *	arena_free(&a);
 *
 * Not thread-safe: one arena has one user at a time.
 */
#include <stddef.h>

struct arena_block;

struct arena {
	struct arena_block *head;	/* the block being filled, then full ones */
	char *next, *end;		/* free room in head */
	size_t total;			/* bytes taken from malloc */
	size_t limit;			/* most that `total` may reach; 0: none */
	void (*on_fail)(void *arg);	/* called when out of memory; may longjmp */
	void *on_fail_arg;
};

/* n zeroed bytes, aligned to 16. NULL when out of memory and on_fail returns
 * (or is not set). n == 0 gives a unique pointer. */
void *arena_alloc(struct arena *a, size_t n);
/* As arena_alloc(count * size), NULL on overflow. */
void *arena_array(struct arena *a, size_t count, size_t size);
void *arena_copy(struct arena *a, const void *from, size_t n);
/* A NUL-terminated copy of n bytes of text. */
char *arena_text(struct arena *a, const char *text, size_t n);
char *arena_printf(struct arena *a, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Where the arena stands; and frees all that it has given since it stood there. */
struct arena_mark { struct arena_block *head; char *next; };
struct arena_mark arena_mark(const struct arena *a);
void arena_rewind(struct arena *a, struct arena_mark to);
/* Frees everything; the arena is empty and usable again. */
void arena_free(struct arena *a);

#endif
