/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes fall into 2^f * (1 + s/16) classes; bitmaps find the next class that holds a
 * block. Neighbouring free blocks are joined at once. */
#include "hal/heap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND_BITS 4
#define SECOND (1u << SECOND_BITS)
#define FIRST 58u
#define MOST_LOOKED_AT 16	/* blocks of a class, for one of just the size */

struct hal_heap {
	uint64_t bytes, in_use, n_blocks;
	uint64_t first_map;
	uint32_t second_map[FIRST];
	struct hal_block *lists[FIRST][SECOND];
	struct hal_block *lowest;
	struct hal_block *spare;	/* block records to use again */
};

/* The class of a size in units (>= 1). */
static void class_of(uint64_t units, unsigned *first, unsigned *second)
{
	unsigned top = 63u - (unsigned)__builtin_clzll(units);

	if (top < SECOND_BITS) {
		*first = 0;
		*second = (unsigned)units;
	} else {
		*first = top - SECOND_BITS + 1;
		*second = (unsigned)(units >> (top - SECOND_BITS)) - SECOND;
	}
}

static void list_add(struct hal_heap *h, struct hal_block *b)
{
	unsigned f, s;

	class_of(b->bytes / HAL_HEAP_UNIT, &f, &s);
	b->is_free = true;
	b->prev = NULL;
	b->next = h->lists[f][s];
	if (b->next)
		b->next->prev = b;
	h->lists[f][s] = b;
	h->second_map[f] |= 1u << s;
	h->first_map |= 1ull << f;
}

static void list_remove(struct hal_heap *h, struct hal_block *b)
{
	unsigned f, s;

	class_of(b->bytes / HAL_HEAP_UNIT, &f, &s);
	if (b->next)
		b->next->prev = b->prev;
	if (b->prev)
		b->prev->next = b->next;
	else
		h->lists[f][s] = b->next;
	if (!h->lists[f][s])
		h->second_map[f] &= ~(1u << s);
	if (!h->second_map[f])
		h->first_map &= ~(1ull << f);
	b->is_free = false;
}

static struct hal_block *new_block(struct hal_heap *h)
{
	struct hal_block *b = h->spare;

	if (b)
		h->spare = b->next;
	else
		b = malloc(sizeof(*b));
	if (b)
		memset(b, 0, sizeof(*b));
	return b;
}

static void put_spare(struct hal_heap *h, struct hal_block *b)
{
	b->next = h->spare;
	h->spare = b;
}

struct hal_heap *hal_heap_create(uint64_t bytes)
{
	struct hal_heap *h = calloc(1, sizeof(*h));
	struct hal_block *b = h ? new_block(h) : NULL;

	if (!b) {
		free(h);
		return NULL;
	}
	b->bytes = bytes / HAL_HEAP_UNIT * HAL_HEAP_UNIT;
	b->is_first = true;
	h->bytes = b->bytes;
	if (b->bytes) {
		h->lowest = b;
		list_add(h, b);
	} else {
		put_spare(h, b);
	}
	return h;
}

struct hal_block *hal_heap_add(struct hal_heap *h, uint64_t offset, uint64_t bytes)
{
	struct hal_block *b = new_block(h), *before = NULL;

	if (!b)
		return NULL;
	b->offset = offset;
	b->bytes = bytes / HAL_HEAP_UNIT * HAL_HEAP_UNIT;
	b->is_first = true;
	b->after = h->lowest;
	while (b->after && b->after->offset < offset) {
		before = b->after;
		b->after = before->after;
	}
	b->before = before;
	if (before)
		before->after = b;
	else
		h->lowest = b;
	if (b->after)
		b->after->before = b;
	h->bytes += b->bytes;
	list_add(h, b);
	return b;
}

void hal_heap_remove(struct hal_heap *h, struct hal_block *b)
{
	list_remove(h, b);
	h->bytes -= b->bytes;
	if (b->before)
		b->before->after = b->after;
	else
		h->lowest = b->after;
	if (b->after)
		b->after->before = b->before;
	put_spare(h, b);
}

void hal_heap_destroy(struct hal_heap *h)
{
	struct hal_block *b, *next;

	if (!h)
		return;
	for (b = h->lowest; b; b = next) {
		next = b->after;
		free(b);
	}
	for (b = h->spare; b; b = next) {
		next = b->next;
		free(b);
	}
	free(h);
}

/* A free block of at least `units`: one of just that size, of those that were freed last, which
 * are in caches; the first of the next class, where any fits; then the request's own class,
 * where some may. */
static struct hal_block *find(struct hal_heap *h, uint64_t units)
{
	unsigned f, s, n = 0;
	uint64_t firsts;
	uint32_t seconds;

	class_of(units, &f, &s);
	for (struct hal_block *b = h->lists[f][s]; b && n < MOST_LOOKED_AT; b = b->next, n++)
		if (b->bytes / HAL_HEAP_UNIT == units)
			return b;
	seconds = s + 1 < SECOND ? h->second_map[f] & (~0u << (s + 1)) : 0;
	if (!seconds) {
		firsts = h->first_map & (~0ull << (f + 1));
		if (firsts) {
			f = (unsigned)__builtin_ctzll(firsts);
			seconds = h->second_map[f];
		}
	}
	if (seconds)
		return h->lists[f][__builtin_ctz(seconds)];
	class_of(units, &f, &s);
	for (struct hal_block *b = h->lists[f][s]; b; b = b->next)
		if (b->bytes / HAL_HEAP_UNIT >= units)
			return b;
	return NULL;
}

static uint64_t units_of(uint64_t bytes)
{
	uint64_t units = bytes / HAL_HEAP_UNIT + (bytes % HAL_HEAP_UNIT != 0);

	return units ? units : 1;
}

/* Cuts the free block `b` at `bytes`: what is behind is a free block of its own. */
static bool cut(struct hal_heap *h, struct hal_block *b, uint64_t bytes)
{
	struct hal_block *rest = new_block(h);

	if (!rest)
		return false;
	list_remove(h, b);
	rest->offset = b->offset + bytes;
	rest->bytes = b->bytes - bytes;
	b->bytes = bytes;
	rest->before = b;
	rest->after = b->after;
	if (rest->after)
		rest->after->before = rest;
	b->after = rest;
	list_add(h, b);
	list_add(h, rest);
	return true;
}

void hal_heap_tag(struct hal_block *b, const char *tag)
{
	snprintf(b->tag, sizeof(b->tag), "%s", tag ? tag : "");
}

static struct hal_block *take(struct hal_heap *h, struct hal_block *b, const char *tag)
{
	list_remove(h, b);
	hal_heap_tag(b, tag);
	h->in_use += b->bytes;
	h->n_blocks++;
	return b;
}

struct hal_block *hal_heap_alloc(struct hal_heap *h, uint64_t bytes, const char *tag)
{
	uint64_t units = units_of(bytes);
	struct hal_block *b = find(h, units);

	if (!b || (b->bytes > units * HAL_HEAP_UNIT && !cut(h, b, units * HAL_HEAP_UNIT)))
		return NULL;
	return take(h, b, tag);
}

struct hal_block *hal_heap_alloc_high(struct hal_heap *h, uint64_t bytes, const char *tag)
{
	uint64_t units = units_of(bytes);
	struct hal_block *highest = NULL;

	for (struct hal_block *b = h->lowest; b; b = b->after)
		if (b->is_free && b->bytes / HAL_HEAP_UNIT >= units)
			highest = b;
	if (!highest)
		return NULL;
	if (highest->bytes > units * HAL_HEAP_UNIT) {
		if (!cut(h, highest, highest->bytes - units * HAL_HEAP_UNIT))
			return NULL;
		highest = highest->after;
	}
	return take(h, highest, tag);
}

/* Joins `b` with the block after it, whose record becomes spare. */
static void join(struct hal_heap *h, struct hal_block *b)
{
	struct hal_block *gone = b->after;

	b->bytes += gone->bytes;
	b->after = gone->after;
	if (b->after)
		b->after->before = b;
	put_spare(h, gone);
}

struct hal_block *hal_heap_free(struct hal_heap *h, struct hal_block *b)
{
	h->in_use -= b->bytes;
	h->n_blocks--;
	if (b->after && b->after->is_free && !b->after->is_first) {
		list_remove(h, b->after);
		join(h, b);
	}
	if (!b->is_first && b->before->is_free) {
		b = b->before;
		list_remove(h, b);
		join(h, b);
	}
	list_add(h, b);
	return b->is_first && (!b->after || b->after->is_first) ? b : NULL;
}

uint64_t hal_heap_largest(const struct hal_heap *h)
{
	unsigned f, s;
	uint64_t most = 0;

	if (!h->first_map)
		return 0;
	f = 63u - (unsigned)__builtin_clzll(h->first_map);
	s = 31u - (unsigned)__builtin_clz(h->second_map[f]);
	for (const struct hal_block *b = h->lists[f][s]; b; b = b->next)
		if (b->bytes > most)
			most = b->bytes;
	return most;
}

uint64_t hal_heap_in_use(const struct hal_heap *h)
{
	return h->in_use;
}

const struct hal_block *hal_heap_lowest(const struct hal_heap *h)
{
	return h->lowest;
}

uint64_t hal_heap_blocks(const struct hal_heap *h)
{
	return h->n_blocks;
}

#define OWNERS 64

struct owner {
	const char *tag;
	uint64_t bytes, n;
};

static int by_bytes(const void *a, const void *b)
{
	const struct owner *x = a, *y = b;

	return x->bytes < y->bytes ? 1 : x->bytes > y->bytes ? -1 : 0;
}

/* The tags of all blocks in use, most bytes first; those past OWNERS are summed up behind
 * them. Gives how many there are. */
static unsigned find_owners(const struct hal_heap *h, struct owner owners[OWNERS + 1])
{
	unsigned n = 0;

	memset(owners, 0, (OWNERS + 1) * sizeof(*owners));
	for (const struct hal_block *b = h->lowest; b; b = b->after) {
		unsigned i = 0;

		if (b->is_free)
			continue;
		while (i < n && strcmp(owners[i].tag, b->tag))
			i++;
		if (i == n && n < OWNERS)
			owners[n++].tag = b->tag;
		owners[i].bytes += b->bytes;
		owners[i].n++;
	}
	qsort(owners, n, sizeof(*owners), by_bytes);
	return n;
}

void hal_heap_owners(const struct hal_heap *h, struct str *out)
{
	struct owner owners[OWNERS + 1];
	unsigned n = find_owners(h, owners);

	for (unsigned i = 0; i < n && i < 5; i++)
		str_printf(out, "%s%s %llu bytes in %llu", i ? ", " : "",
			   *owners[i].tag ? owners[i].tag : "(untagged)",
			   (unsigned long long)owners[i].bytes,
			   (unsigned long long)owners[i].n);
	if (!n)
		str_printf(out, "nobody");
}

/* Adds [at, end), in use, to the parts of the heap that it lies in, `room` bytes each. */
static void fill_cells(uint64_t *used, uint64_t room, uint64_t at, uint64_t end)
{
	uint64_t n;

	for (; at < end; at += n) {
		uint64_t cell = at / room;

		n = (cell + 1) * room - at;
		if (n > end - at)
			n = end - at;
		used[cell < HAL_PAGE_CELLS ? cell : HAL_PAGE_CELLS - 1] += n;
	}
}

static void draw(const struct hal_heap *h, struct hal_page_heap *out)
{
	uint64_t used[HAL_PAGE_CELLS] = { 0 };
	uint64_t room = h->bytes / HAL_PAGE_CELLS + (h->bytes % HAL_PAGE_CELLS != 0);
	uint64_t at = 0;	/* ranges are drawn one behind the other */

	for (const struct hal_block *b = h->lowest; b; b = b->after) {
		if (!b->is_free)
			fill_cells(used, room, at, at + b->bytes);
		else if (b->bytes)
			out->n_holes++;
		at += b->bytes;
	}
	for (unsigned i = 0; i < HAL_PAGE_CELLS; i++) {
		uint64_t start = i * room, size = start >= h->bytes ? 0 :
				 h->bytes - start < room ? h->bytes - start : room;

		if (used[i])
			out->cells[i] = used[i] >= size ? 255 :
				(uint8_t)(1 + (double)used[i] / (double)size * 253);
	}
}

void hal_heap_show(const struct hal_heap *h, struct hal_page_heap *out)
{
	struct owner owners[OWNERS + 1];
	unsigned n;

	memset(out, 0, sizeof(*out));
	out->bytes = h->bytes;
	out->in_use = h->in_use;
	out->largest_free_bytes = hal_heap_largest(h);
	out->n_blocks = h->n_blocks;
	if (h->n_blocks > HAL_HEAP_SHOWN)
		return;
	out->is_whole = 1;
	draw(h, out);
	n = find_owners(h, owners);
	out->n_owners = n < HAL_PAGE_OWNERS ? n : HAL_PAGE_OWNERS;
	for (unsigned i = 0; i < out->n_owners; i++) {
		snprintf(out->owners[i].tag, sizeof(out->owners[i].tag), "%s", owners[i].tag);
		out->owners[i].bytes = owners[i].bytes;
		out->owners[i].n_blocks = owners[i].n;
	}
}
