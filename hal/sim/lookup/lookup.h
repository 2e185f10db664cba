/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_LOOKUP_H
#define SIM_LOOKUP_H
/*
 * Elements of a table by their indices: what most gathers come to. Private to hal/sim.
 */
#include <stdbool.h>
#include <stdint.h>

#include "hal/hw/isa.h"
#include "hal/sim/kernels/cpu.h"

/* What lies anywhere no cache guesses, so it is asked for: */
#define SIM_WALK_AHEAD 8	/* so many windows before they are needed */
#define SIM_FETCHED 512		/* bytes of each, at most: the rest follows by itself */
#define SIM_LINE 64		/* of a cache */

/* What becomes of an index: wrap, from 0 on, is added to one below 0; if it is below 0 or above
 * limit then, it gives the element `fill`, or, if there is none, 0 or limit is taken for it. */
struct sim_lookup {
	int64_t limit, wrap;
	const void *fill;	/* or NULL */
	int64_t step;		/* bytes from an index's element to the next one's */
};

/* dst[i] = table[idx[i]], i < n. All lie side by side, none need be aligned. If dst meets the
 * others, what arrives is undefined. */
typedef void sim_lookup_fn(void *dst, const void *table, const void *idx, int64_t n,
			   const struct sim_lookup *l);

/* dst[i] = the element from[i] + step * idx[i] bytes behind table, i < n. dst and idx lie side by
 * side. Elements of 2 bytes lie at even addresses of the table; the words that they, and bytes, are
 * parts of are read. Such a word may begin 3 bytes before the table, and places are counted from
 * there: with those 3 added each is less than SIM_LOOKUP_MOST. */
typedef void sim_lookup_from_fn(void *dst, const void *table, const int32_t *from,
				const void *idx, int64_t n, const struct sim_lookup *l);

#define SIM_LOOKUP_MOST INT32_MAX	/* of limit and wrap, for indices of 32 bits */

struct sim_lookup_fns {
	/* Of elements of 1, 2, 4 and 8 bytes, by indices of s32, s64 and u32. */
	sim_lookup_fn *lookup[4][3];
	sim_lookup_from_fn *from[4][3];	/* or NULL: one by one is as fast */
	/* Adds c.step times the index, wrapped and from 0 to c.limit as above, to each of n
	 * places. The indices are integers of type elem, idx_step bytes apart. */
	void (*add)(int64_t *place, unsigned n, const uint8_t *idx, int64_t idx_step,
		    unsigned elem, struct isa_index c);
	/* Sets outside[i] for each of n such indices that is, wrapped, below 0 or above c.limit,
	 * and leaves the others; whether there is one. */
	bool (*mark)(uint8_t *outside, unsigned n, const uint8_t *idx, int64_t idx_step,
		     unsigned elem, struct isa_index c);
	/* Copies n elements of 1, 2, 4 and 8 bytes from table + place[i] to dst, side by side. */
	void (*fetch[4])(uint8_t *dst, const uint8_t *table, const int64_t *place, unsigned n);
};
extern const struct sim_lookup_fns sim_lookup_portable;
extern SIM_X86 const struct sim_lookup_fns sim_lookup_avx2, sim_lookup_avx512;

#endif
