/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KMOD_CENSUS_H
#define KMOD_CENSUS_H
/*
 * What there is of everything that a process could leave behind, and whether it grows.
 * Some is known exactly: what the driver and the device hold. The rest of the kernel
 * breathes: its slab objects and pages are judged by their trend over many counts.
 * One thread, root, debugfs mounted. Failures end the test (kmod.h).
 */
#include "tests/kmod/kmod.h"

#define CENSUS_EXACT 9
#define CENSUS_SAMPLES 64

struct census_series {
	char name[32];
	unsigned n;		/* samples, 0 for those before it was seen */
	uint64_t value[CENSUS_SAMPLES];
};

struct census {
	uint64_t exact[CENSUS_EXACT];	/* of the first count */
	unsigned n;
	unsigned cycle[CENSUS_SAMPLES];
	struct census_series *series;	/* slab objects, pages, each cache */
	unsigned n_series;
};

/*
 * Counts, waiting until what is exact is as it was the first time, at most 10 s. Gives
 * the number of exact counts that differ even then, and says which on stdout, adding
 * their names to `found`. cycle: how many there were before. Others who use the device
 * must stand still.
 */
unsigned census_take(struct census *c, unsigned cycle, char *found, size_t n);
/*
 * Judges the trends of the counts from `first` cycles on, in three equal parts: a thing
 * leaks if the median of the second is above that of the first, and the third's above
 * the second's, each by more than one for four cycles that lie between (for two, of all
 * slabs together). (A cache that fills, of the IOMMU's addresses say, grows in one of
 * the two, or by less.) Gives the number of series that do, prints all that grew, adds the
 * names of those to `found`.
 * Ends the test with fewer than 9 counts.
 */
unsigned census_judge(const struct census *c, unsigned first, char *found, size_t n);

#endif
