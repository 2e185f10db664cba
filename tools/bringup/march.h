/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BRINGUP_MARCH_H
#define BRINGUP_MARCH_H
/*
 * Tests of memory by the device itself: march.def's notation becomes programs, which do one element
 * to a run of words, each load and store in its turn. Private to tools/bringup.
 */
#include "tools/bringup/context.h"

struct bringup_march {
	const char *name, *elements;
	unsigned data;		/* enum bringup_data */
};
enum bringup_data { BRINGUP_SOLID, BRINGUP_WALK, BRINGUP_BANDS };
/* NULL: there is none of that name. */
const struct bringup_march *bringup_find_march(const char *name);

/* A pattern of rows that are hammered: what even rows and odd rows hold. */
struct bringup_hammer {
	const char *name;
	uint64_t even, odd;
};
extern const struct bringup_hammer bringup_hammers[];
extern const unsigned bringup_n_hammers;

/* Memory to be tested as one, ascending: whole words of blocks. */
struct bringup_window {
	struct hal_mem *mem;
	uint64_t offset, bytes;	/* multiples of 64 */
};

struct bringup_bad_word {
	uint64_t va, want, got;
	unsigned element, op;	/* in which read it was seen, from 0 */
};
#define BRINGUP_BAD_WORDS 64u

struct bringup_marched {
	uint64_t n_ops;		/* loads and stores */
	uint64_t n_bad;		/* reads that were wrong */
	unsigned n_words;	/* of them, the first that are told in detail */
	struct bringup_bad_word words[BRINGUP_BAD_WORDS];
};

/* Does the test to all windows as one memory, element after element. A code, with b->err: the
 * device failed, not the memory. What the memory did is in *out. */
int bringup_march(struct bringup *b, const struct bringup_march *m,
		  const struct bringup_window *windows, unsigned n, struct bringup_marched *out);

/*
 * Hammers the rows of a block (DEVICE.md#rows-of-hbm): writes the pattern; then for each row that
 * has both its neighbours in the block loads from these in turn, `turns` times each, and compares
 * the row between with what was written. Errors as above; `element` is the row of its bank, `op`
 * the bank. INVALID_ARGUMENT: there is no such row.
 */
int bringup_hammer(struct bringup *b, const struct bringup_hammer *h, struct hal_mem *mem,
		   uint64_t turns, struct bringup_marched *out);

#endif
