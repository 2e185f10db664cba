/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts about elements (fact.h): their text, data that obeys them, comparison by them.
 *
 * Numbers are read and written by the evaluator's tc_num_load and tc_num_store. A bug in these
 * would show in the third way: the CPU backend gets bytes and returns bytes.
 */
#include "tests/fuzz_ops/fact.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/compiler/eval/eval.h"

int64_t fact_reach(unsigned elem)
{
	switch (elem) {
	case ELEM_F64:
	case ELEM_C128: return (int64_t)1 << 53;
	case ELEM_F32:
	case ELEM_C64: return 1 << 24;
	case ELEM_F16: return 1 << 11;
	case ELEM_BF16: return 1 << 8;
	case ELEM_F8E5M2:
	case ELEM_F8E5M2FNUZ: return 8;
	case ELEM_F8E4M3FN:
	case ELEM_F8E4M3FNUZ:
	case ELEM_F8E4M3B11FNUZ:
	case ELEM_F8E4M3: return 16;
	case ELEM_F8E3M4: return 15;
	case ELEM_F4E2M1FN: return 4;
	default: return 0;
	}
}

struct fact fact_of_type(unsigned elem)
{
	unsigned bits = elem_bits(elem) > 62 ? 62 : elem_bits(elem);

	switch (elem_class(elem)) {
	case ELEM_CLASS_PRED: return FACT(FACT_RANGE, false, 0, 1);
	case ELEM_CLASS_SINT:
		return FACT(FACT_RANGE, false, -((int64_t)1 << (bits - 1)),
				      ((int64_t)1 << (bits - 1)) - 1);
	default:
		return FACT(FACT_RANGE, false, 0, ((int64_t)1 << bits) - 1);
	}
}

static int loose(char kind)
{
	static const char order[] = "urifsdan";

	return (int)(strchr(order, kind) - order);
}

struct fact fact_join(struct fact a, struct fact b)
{
	struct fact f = loose(a.kind) >= loose(b.kind) ? a : b;
	struct fact g = loose(a.kind) >= loose(b.kind) ? b : a;

	if (f.kind == FACT_DISTINCT)
		return FACT(FACT_BITS, false, 0, 0);
	if (f.kind == FACT_RANGE && g.kind == FACT_DISTINCT)
		f.kind = FACT_BITS;
	f.open = a.open || b.open;
	if (a.kind == b.kind) {
		f.lo = a.lo < b.lo ? a.lo : b.lo;
		f.hi = a.hi > b.hi ? a.hi : b.hi;
		if (f.kind == FACT_NEAR || f.kind == FACT_NORM)
			f.lo = a.lo > b.lo ? a.lo : b.lo;
	}
	return f;
}

bool fact_within(struct fact a, struct fact b)
{
	struct fact f = fact_join(a, b);

	return f.kind == b.kind && f.open == b.open && f.lo == b.lo && f.hi == b.hi;
}

void fact_print(struct fact f, struct str *out)
{
	str_printf(out, "%c%s", f.kind, f.open ? "z" : "");
	if (strchr("rfan", f.kind))
		str_printf(out, "%" PRId64 ":%" PRId64, f.lo, f.hi);
	if (f.data)
		str_printf(out, "@%u", f.data);
}

bool fact_parse(const char **text, struct fact *out)
{
	const char *p = *text + strspn(*text, " ");
	struct fact f = { 0 };
	char *end;

	if (!*p || !strchr("iurfsdan", *p))
		return false;
	f.kind = *p++;
	if (*p == 'z') {
		f.open = true;
		p++;
	}
	if (strchr("rfan", f.kind)) {
		f.lo = strtoll(p, &end, 10);
		if (*end != ':')
			return false;
		f.hi = strtoll(end + 1, &end, 10);
		p = end;
	}
	if (*p == '@') {
		f.data = (unsigned)strtoul(p + 1, &end, 10);
		p = end;
	}
	*text = p;
	*out = f;
	return true;
}

/* ---- data ---- */

static double special(unsigned elem, uint64_t r)
{
	static const double few[] = { 0, -0.0, 1, -1, 0.5, -0.5, 2, -2, 3, 4, 1.5, -1.5 };
	bool has_infinity = elem == ELEM_F32 || elem == ELEM_F64 || elem == ELEM_F16 ||
			    elem == ELEM_BF16 || elem == ELEM_C64 || elem == ELEM_C128 ||
			    elem == ELEM_F8E5M2 || elem == ELEM_F8E4M3 || elem == ELEM_F8E3M4;
	double least = elem == ELEM_F64 || elem == ELEM_C128 ? 0x1p-1022 :
		       elem == ELEM_F16 ? 0x1p-14 : 0x1p-126;
	double most = elem == ELEM_F64 || elem == ELEM_C128 ? 0x1.fffffffffffffp1023 :
		      elem == ELEM_F16			    ? 65504 :
		      elem == ELEM_BF16			    ? 0x1.fep127 :
							      0x1.fffffep127;

	switch (r % 16) {
	case 0: return elem == ELEM_F4E2M1FN ? 1 : NAN;
	case 1: return has_infinity ? INFINITY : 1;
	case 2: return has_infinity ? -INFINITY : -1;
	case 3: return elem_bits(elem) > 8 ? least : 1;
	case 4: return elem_bits(elem) > 8 ? -most : 2;
	default: return few[(r >> 8) % 12];
	}
}

static uint64_t bits(unsigned elem, uint64_t *seed)
{
	static const int64_t corners[] = { 0, 1, -1, INT8_MIN, INT8_MAX, UINT8_MAX, INT16_MIN,
		INT16_MAX, INT32_MIN, INT32_MAX, UINT32_MAX, INT64_MIN, INT64_MAX, 2, 3, -2 };
	uint64_t r = fuzz_next(seed), top = (uint64_t)1 << (elem_bits(elem) - 1);

	switch (r & 7) {
	case 0: return (uint64_t)corners[r >> 8 & 15];
	case 1: return r & 8 ? top : top - 1;
	case 2:
	case 3: return r >> 8 & 15;
	default: return fuzz_next(seed);
	}
}

/* A permutation by its place: multiplication by something without common divisors. */
static uint64_t shuffled(uint64_t seed, int64_t i, int64_t n)
{
	static const int64_t primes[] = { 1, 3, 7, 11, 13, 17, 1009, 7919 };
	int64_t p = primes[seed & 7];

	if (n % p == 0)
		p = 1;
	return (uint64_t)((i * p + (int64_t)(seed >> 8) % n) % n);
}

static double one_part(struct fact f, unsigned elem, uint64_t *seed)
{
	uint64_t r = fuzz_next(seed);
	double x;

	if (f.kind == FACT_SPECIAL)
		return special(elem, r);
	if (f.kind != FACT_WHOLE)
		return (double)(int64_t)(r % 9) - 4;
	x = (double)(f.lo + (int64_t)(r % (uint64_t)(f.hi - f.lo + 1)));
	return x == 0 && f.lo < 0 && r >> 62 == 3 ? -0.0 : x;
}

static void fill_one(struct fact f, unsigned elem, uint64_t *seed, void *p, int64_t i,
		     int64_t n)
{
	unsigned bytes = elem_bytes(elem);
	struct num x = { 0 };
	uint64_t raw;

	switch (f.kind) {
	case FACT_BITS:
		x.i = bits(elem, seed);
		x.i = elem == ELEM_PRED ? x.i & 1 : x.i;
		break;
	case FACT_DISTINCT:
		x.i = shuffled(*seed, i, n);
		break;
	case FACT_RANGE:
		x.i = (uint64_t)(f.lo +
				 (int64_t)(fuzz_next(seed) % (uint64_t)(f.hi - f.lo + 1)));
		break;
	case FACT_ANY:
		for (unsigned b = 0; b < bytes; b += 8) {
			raw = fuzz_next(seed);
			raw = raw & 15 ? raw : raw >> 60;
			memcpy((char *)p + b, &raw, bytes - b < 8 ? bytes - b : 8);
		}
		/* in memory an element of less than a byte is its own bits */
		if (elem_bits(elem) < 8)
			*(uint8_t *)p &= (uint8_t)((1u << elem_bits(elem)) - 1);
		return;
	default:
		x.re = one_part(f, elem, seed);
		x.im = elem_class(elem) == ELEM_CLASS_COMPLEX ? one_part(f, elem, seed) : 0;
		break;
	}
	tc_num_store(elem, p, x);
}

void fact_fill(struct fact f, unsigned elem, uint64_t seed, void *out, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		fill_one(f, elem, &seed, (char *)out + i * elem_bytes(elem), i, n);
}

/* ---- comparison ---- */

static unsigned part_of(unsigned elem)
{
	return elem == ELEM_C64 ? ELEM_F32 : elem == ELEM_C128 ? ELEM_F64 : elem;
}

/* The raw bits of a float in the order of the numbers. */
static int64_t rank_of(unsigned elem, const void *p)
{
	unsigned n = elem_bits(elem);
	uint64_t u = 0, sign = (uint64_t)1 << (n - 1);

	memcpy(&u, p, elem_bytes(elem));
	return u & sign ? -(int64_t)(u ^ sign) : (int64_t)u;
}

/* Half of the last bit of 1, as a share. */
static double epsilon(unsigned elem)
{
	return 1.0 / (double)fact_reach(elem);
}

static bool same_float(struct fact f, unsigned elem, const void *a, const void *b, double most,
		       bool is_jax)
{
	double x = tc_num_load(elem, a).re, y = tc_num_load(elem, b).re;
	int64_t apart;

	if (isnan(x) || isnan(y))
		return isnan(x) && isnan(y);
	if (!memcmp(a, b, elem_bytes(elem)))
		return true;
	if (x == 0 && y == 0)
		return f.open || f.kind == FACT_NEAR || f.kind == FACT_NORM;
	if (f.kind == FACT_NORM)
		return fabs(x - y) <= (double)(is_jax ? f.hi : f.lo) * epsilon(elem) * most;
	if (f.kind != FACT_NEAR)
		return false;
	apart = rank_of(elem, a) - rank_of(elem, b);
	return llabs(apart) <= (is_jax ? f.hi : f.lo);
}

/* At least 1: what the numbers came from are integers. */
static double largest(unsigned elem, const char *p, int64_t n)
{
	double most = 1, x;

	for (int64_t i = 0; i < n; i++) {
		x = fabs(tc_num_load(elem, p + i * elem_bytes(elem)).re);
		most = x > most ? x : most;
	}
	return most;
}

int64_t fact_compare(struct fact f, unsigned elem, const void *a, const void *b, int64_t n,
		     bool is_jax)
{
	unsigned part = part_of(elem), parts = part == elem ? 1 : 2, size = elem_bytes(part);
	const char *p = a, *q = b;
	double most = f.kind == FACT_NORM ? largest(part, q, n * parts) : 0;

	if (elem_class(elem) != ELEM_CLASS_FLOAT && elem_class(elem) != ELEM_CLASS_COMPLEX) {
		for (int64_t i = 0; i < n; i++)
			if (tc_num_load(elem, p + i * size).i !=
			    tc_num_load(elem, q + i * size).i)
				return i;
		return -1;
	}
	if (!memcmp(a, b, (size_t)n * elem_bytes(elem)))
		return -1;
	for (int64_t i = 0; i < n * parts; i++)
		if (!same_float(f, part, p + i * size, q + i * size, most, is_jax))
			return i / parts;
	return -1;
}

void fact_show(unsigned elem, const void *p, char *out, size_t room)
{
	struct num x = tc_num_load(elem, p);

	switch (elem_class(elem)) {
	case ELEM_CLASS_FLOAT: snprintf(out, room, "%.17g", x.re); break;
	case ELEM_CLASS_COMPLEX: snprintf(out, room, "(%.17g, %.17g)", x.re, x.im); break;
	case ELEM_CLASS_UINT: snprintf(out, room, "%" PRIu64, x.i); break;
	default: snprintf(out, room, "%" PRId64, (int64_t)x.i); break;
	}
}
