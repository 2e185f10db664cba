/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FUZZ_SEEDS_H
#define FUZZ_SEEDS_H
/*
 * What the targets share: the small programs of tests/data/programs, and random numbers
 * from a mutator's seed. Targets run from the top of the tree; a missing folder ends the
 * process with a message, since a target without seeds reaches nothing.
 */
#include <glob.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define SEEDS_MAX 64u

struct seed {
	uint8_t *bytes;
	size_t n;
};

static inline unsigned seeds_load(const char *pattern, struct seed *out)
{
	glob_t found = { 0 };
	unsigned n = 0;

	glob(pattern, 0, NULL, &found);
	for (size_t i = 0; i < found.gl_pathc && n < SEEDS_MAX; i++) {
		FILE *f = fopen(found.gl_pathv[i], "rb");
		long size = -1;

		if (f && !fseek(f, 0, SEEK_END))
			size = ftell(f);
		if (size > 0 && (out[n].bytes = malloc((size_t)size))) {
			rewind(f);
			out[n].n = fread(out[n].bytes, 1, (size_t)size, f);
			n++;
		}
		if (f)
			fclose(f);
	}
	globfree(&found);
	if (!n) {
		fprintf(stderr, "no seeds at %s: run from the top of the tree\n", pattern);
		exit(1);
	}
	return n;
}

/* xorshift: good enough to choose places; same seed, same choices. */
static inline uint32_t seeds_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (uint32_t)(*state >> 16);
}

#endif
