/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HAL_HEAP_H
#define HAL_HEAP_H
/*
 * An allocator over ranges of numbers, at first [0, bytes): the book-keeping of device memory,
 * kept outside of that memory. No block runs over the end of a range. Two-level segregated
 * fit (Masmano et al., "TLSF: a new dynamic memory allocator for real-time systems", 2004):
 * allocation and release take constant time. Not thread-safe: the owner locks. Private to hal/.
 */
#include <stdint.h>

#include "hal/base/str.h"
#include "hal/telemetry.h"

#define HAL_HEAP_UNIT 64u	/* every block's start and size are multiples */

struct hal_heap;

struct hal_block {
	uint64_t offset, bytes;		/* bytes: rounded up to the unit */
	struct hal_block *before, *after;	/* neighbours by address */
	struct hal_block *next, *prev;	/* of one free list */
	char tag[48];
	bool is_free;
	bool is_first;		/* a range begins here: not joined with what is before */
};

struct hal_heap *hal_heap_create(uint64_t bytes);	/* NULL: out of memory */
void hal_heap_destroy(struct hal_heap *heap);
/* Another range, which meets none that there is; bytes > 0. NULL: out of memory. Takes time
 * linear in the number of blocks. */
struct hal_block *hal_heap_add(struct hal_heap *heap, uint64_t offset, uint64_t bytes);
/* Takes the range back that `whole` is. */
void hal_heap_remove(struct hal_heap *heap, struct hal_block *whole);
/* NULL if no free block is large enough (or out of host memory). */
struct hal_block *hal_heap_alloc(struct hal_heap *heap, uint64_t bytes, const char *tag);
/* The same, as high as there is room; takes time linear in the number of blocks. */
struct hal_block *hal_heap_alloc_high(struct hal_heap *heap, uint64_t bytes, const char *tag);
/* The free block that it is now a part of, where that is a whole range; else NULL. */
struct hal_block *hal_heap_free(struct hal_heap *heap, struct hal_block *block);
uint64_t hal_heap_largest(const struct hal_heap *heap);
uint64_t hal_heap_in_use(const struct hal_heap *heap);
uint64_t hal_heap_blocks(const struct hal_heap *heap);	/* allocated ones */
/* The first block by address, free or not; the others by ->after. */
const struct hal_block *hal_heap_lowest(const struct hal_heap *heap);
/* From now on the block is this one's. */
void hal_heap_tag(struct hal_block *b, const char *tag);
/* "weights 1024 bytes in 2 blocks, ..." of the five tags that hold most. */
void hal_heap_owners(const struct hal_heap *heap, struct str *out);
/* What the page tells of it, but for `changes` and `read_at_ns`, which are 0. Time: linear
 * in the number of blocks up to HAL_HEAP_SHOWN of them; constant above, where the map is
 * left out. */
#define HAL_HEAP_SHOWN 16384u
void hal_heap_show(const struct hal_heap *heap, struct hal_page_heap *out);

#endif
