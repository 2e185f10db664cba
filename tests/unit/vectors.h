/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_VECTORS_H
#define TESTS_VECTORS_H
/*
 * The StableHLO test programs of tests/data/vectors: each one's main takes nothing and
 * returns (actual, expected) pairs, one for each rule that manifest.tsv names.
 *
 * A pair is STRICT if its rule holds: expect_eq, equal elements (a NaN equals none);
 * expect_close, at most 3 units in the last place; expect_almost_eq, at most 0.001
 * apart. It is NEAR if its program is known to miss that, as a sum in another order or
 * a transcendental function of 4 units does, and misses it by no more than is known;
 * else WRONG.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hal/base/elem.h"

#define VECTORS_DIR "tests/data/vectors"
#define VECTORS_COUNT 764	/* what manifest.tsv lists: none may be lost */

enum verdict { STRICT, NEAR, WRONG, REFUSED, VERDICTS };
enum rule { RULE_EQ, RULE_CLOSE, RULE_ALMOST };

/* A program that does not meet its rule, and how far it is off at most: in units in the
 * last place of the largest expected value. by_path: on some of the model's paths only. */
struct vector_near { const char *name; double units; bool by_path; };

struct vector_program {
	char name[160];
	enum rule rules[4];
	unsigned n_rules;
	void *code;
	size_t bytes;
};

static inline bool vector_read(struct vector_program *v)
{
	char path[256];
	FILE *f;
	long n;

	snprintf(path, sizeof(path), VECTORS_DIR "/%.159s.mlirbc", v->name);
	f = fopen(path, "rb");
	if (!f)
		return false;
	fseek(f, 0, SEEK_END);
	n = ftell(f);
	rewind(f);
	v->code = malloc(n > 0 ? (size_t)n : 1);
	v->bytes = fread(v->code, 1, (size_t)n, f);
	fclose(f);
	return v->bytes == (size_t)n;
}

/* Calls fn for every program of the manifest; the count of them, -1: not there. */
static inline int vectors_each(void (*fn)(const struct vector_program *v, void *arg),
			       void *arg)
{
	FILE *f = fopen(VECTORS_DIR "/manifest.tsv", "r");
	char line[512];
	int n = 0;

	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f)) {
		struct vector_program v = { 0 };
		char *rules = strchr(line, '\t'), *word, *save;

		if (!rules)
			continue;
		*rules++ = '\0';
		snprintf(v.name, sizeof(v.name), "%.159s", line);
		for (word = strtok_r(rules, ",\n", &save); word && v.n_rules < 4;
		     word = strtok_r(NULL, ",\n", &save))
			v.rules[v.n_rules++] = !strcmp(word, "expect_eq") ? RULE_EQ :
				!strcmp(word, "expect_close") ? RULE_CLOSE : RULE_ALMOST;
		if (!vector_read(&v)) {
			fprintf(stderr, "%s.mlirbc cannot be read\n", v.name);
			fclose(f);
			return -1;
		}
		fn(&v, arg);
		free(v.code);
		n++;
	}
	fclose(f);
	return n;
}

/* Bits of a float type's value, exponent and fraction. */
struct vector_float { unsigned bytes, fraction, exponent; };

static inline struct vector_float vector_float_of(enum elem e)
{
	switch (e) {
	case ELEM_F16:	return (struct vector_float){ 2, 10, 5 };
	case ELEM_BF16:	return (struct vector_float){ 2, 7, 8 };
	case ELEM_F32:
	case ELEM_C64:	return (struct vector_float){ 4, 23, 8 };
	default:	return (struct vector_float){ 8, 52, 11 };
	}
}

static inline double vector_value(uint64_t bits, const struct vector_float *t)
{
	unsigned bias = (1u << (t->exponent - 1)) - 1;
	uint64_t fraction = bits & ((1ull << t->fraction) - 1);
	uint64_t e = bits >> t->fraction & ((1u << t->exponent) - 1);
	double sign = bits >> (t->bytes * 8 - 1) ? -1 : 1;

	if (e == (1u << t->exponent) - 1)
		return fraction ? NAN : sign * INFINITY;
	if (!e)
		return sign * ldexp((double)fraction, 1 - (int)bias - (int)t->fraction);
	return sign * ldexp((double)(fraction | 1ull << t->fraction),
			    (int)e - (int)bias - (int)t->fraction);
}

/* bar: how far apart the values may be where the rule does not hold. */
static inline enum verdict vector_float_pair(uint64_t a, uint64_t b, enum rule rule,
					     const struct vector_float *t, double bar)
{
	double x = vector_value(a, t), y = vector_value(b, t);
	uint64_t top = 1ull << (t->bytes * 8 - 1), ma = a & (top - 1), mb = b & (top - 1);
	uint64_t ulps = (a & top) == (b & top) ? (ma > mb ? ma - mb : mb - ma) : ma + mb;

	if (rule == RULE_EQ && x == y)
		return STRICT;
	if (rule != RULE_EQ && ((isnan(x) && isnan(y)) || a == b))
		return STRICT;
	if (isfinite(x) && isfinite(y)) {
		if ((rule == RULE_CLOSE && ulps <= 3) ||
		    (rule == RULE_ALMOST && fabs(x - y) <= 0.001))
			return STRICT;
		if (fabs(x - y) <= bar)
			return NEAR;
	}
	return WRONG;
}

/* Two dense arrays of n elements; near: units in the last place that are known, 0: none;
 * *at: the first element of the worst verdict. */
static inline enum verdict vector_compare(enum elem e, const void *actual,
					  const void *expected, size_t n, enum rule rule,
					  double near, size_t *at)
{
	bool is_float = e == ELEM_F16 || e == ELEM_BF16 || e == ELEM_F32 || e == ELEM_F64 ||
		elem_class(e) == ELEM_CLASS_COMPLEX;
	struct vector_float t = vector_float_of(e);
	enum verdict worst = STRICT, is;
	size_t i, count = n * elem_bytes(e) / t.bytes;
	double largest = 0, bar;

	*at = 0;
	if (!is_float) {
		for (i = 0; i < n; i++)
			if (memcmp((const char *)actual + i * elem_bytes(e),
				   (const char *)expected + i * elem_bytes(e),
				   elem_bytes(e))) {
				*at = i;
				return WRONG;
			}
		return STRICT;
	}
	for (i = 0; i < count; i++) {
		uint64_t b = 0;
		double y;

		memcpy(&b, (const char *)expected + i * t.bytes, t.bytes);
		y = fabs(vector_value(b, &t));
		largest = isfinite(y) && y > largest ? y : largest;
	}
	bar = largest > 0 ? near * ldexp(1, ilogb(largest) - (int)t.fraction) : 0;
	for (i = 0; i < count; i++) {
		uint64_t a = 0, b = 0;

		memcpy(&a, (const char *)actual + i * t.bytes, t.bytes);
		memcpy(&b, (const char *)expected + i * t.bytes, t.bytes);
		is = vector_float_pair(a, b, rule, &t, bar);
		if (is > worst) {
			worst = is;
			*at = i;
		}
	}
	return worst;
}

/* The entry of a program, NULL: it meets its rule. */
static inline const struct vector_near *vector_near_of(const struct vector_near *list,
						       size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(list[i].name, name))
			return &list[i];
	return NULL;
}

#endif
