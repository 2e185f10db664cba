/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FUZZ_OPS_FACT_H
#define FUZZ_OPS_FACT_H
/*
 * What is known of the elements of a value: which data an argument may hold, which ops may take
 * the value, and how two ways' results are compared. It travels in the text as the op's
 * location, so that a reduced program is still compared, and still fed, as the whole one was.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hal/base/elem.h"
#include "hal/base/str.h"

enum fact_kind {
	FACT_BITS = 'i',     /* integers and predicates, any bits */
	FACT_RANGE = 'r',    /* integers in lo..hi */
	FACT_DISTINCT = 'u', /* integers, a permutation of 0..count-1 */
	FACT_WHOLE = 'f',    /* floats that hold integers in lo..hi (of complex: both parts) */
	FACT_SPECIAL = 's',  /* floats: NaN, infinities, both zeros, limits; no denormals */
	FACT_ANY = 'd',	 /* floats, any bits, denormals too: may be moved, not computed with */
	FACT_NEAR = 'a', /* floats, equal but for lo units in the last place (hi: for JAX) */
	FACT_NORM = 'n', /* floats, equal but for lo * epsilon * the largest magnitude */
};

struct fact {
	char kind;
	/* The sign of zeros and of NaNs is not known: it is not compared, and no op whose
	 * result depends on it may take the value. */
	bool open;
	int64_t lo, hi;
	unsigned data;	/* of an argument: which of the seed's data it holds */
};

#define FACT(k, o, l, h) \
	((struct fact){ .kind = (k), .open = (o), .lo = (l), .hi = (h) })

/* The largest N so that all integers of -N..N are exact in the float (or complex) type; 0: none. */
int64_t fact_reach(unsigned elem);
/* The range of an integer type, cut to 62 bits. */
struct fact fact_of_type(unsigned elem);
/* What is known of an element that comes from either. */
struct fact fact_join(struct fact a, struct fact b);
/* Whether all that `a` allows is allowed by `b`. */
bool fact_within(struct fact a, struct fact b);
void fact_print(struct fact f, struct str *out);
/* Reads one and moves *text behind it; false: there is none. */
bool fact_parse(const char **text, struct fact *out);

/* Fills n elements with what the fact allows: the same for the same seed. */
void fact_fill(struct fact f, unsigned elem, uint64_t seed, void *out, int64_t n);
/* Where two arrays first differ by more than the fact allows; -1: nowhere. */
int64_t fact_compare(struct fact f, unsigned elem, const void *a, const void *b, int64_t n,
		     bool is_jax);
/* An element for people. */
void fact_show(unsigned elem, const void *p, char *out, size_t room);

/* Random numbers by a counter: splitmix64. */
static inline uint64_t fuzz_next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

#endif
