/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far elementary functions are from the right result, in units in the last place: programs of
 * one op on the model, each float type and path of the host, against glibc's functions of a wider
 * type (double for types up to f32, long double for f64). Types of 4, 8 and 16 bits are run with
 * all their numbers, and with all pairs of those of 4 and 8 bits; else half of the numbers are
 * spread over all that the type has, half over where the function is neither flat nor out of range.
 *
 * tests/data/numerics.txt has the largest error of each function and type; here a smaller sample
 * must stay within it. It is written by
 *
 *	numerics_real_test --measure 100000000 [TYPE [FUNCTION]]
 *
 * Numbers below the smallest normal one of bf16, f32 and f64 are zeros to the device: an argument
 * counts as a zero of its sign, and where such a number is right a zero is.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/numerics/numerics.h"

/* ---- types ---- */

/* What there is beside numbers; FINITE: nothing, no number is -0. SCALE: powers of two, NaN. */
enum specials { IEEE, NO_INF, NO_INF_UNSIGNED_ZERO, FINITE, SCALE };

static const struct format {
	enum elem elem;
	int exponent, fraction, bias;
	enum specials specials;
	bool flushes;
} formats[] = {
	{ ELEM_F8E5M2, 5, 2, 15, IEEE, false },
	{ ELEM_F8E4M3, 4, 3, 7, IEEE, false },
	{ ELEM_F8E3M4, 3, 4, 3, IEEE, false },
	{ ELEM_F8E4M3FN, 4, 3, 7, NO_INF, false },
	{ ELEM_F8E4M3FNUZ, 4, 3, 8, NO_INF_UNSIGNED_ZERO, false },
	{ ELEM_F8E4M3B11FNUZ, 4, 3, 11, NO_INF_UNSIGNED_ZERO, false },
	{ ELEM_F8E5M2FNUZ, 5, 2, 16, NO_INF_UNSIGNED_ZERO, false },
	{ ELEM_F4E2M1FN, 2, 1, 1, FINITE, false },
	{ ELEM_F8E8M0FNU, 8, 0, 127, SCALE, false },
	{ ELEM_BF16, 8, 7, 127, IEEE, true },
	{ ELEM_F16, 5, 10, 15, IEEE, false },
	{ ELEM_F32, 8, 23, 127, IEEE, true },
	{ ELEM_F64, 11, 52, 1023, IEEE, true },
};
#define N_FORMATS (sizeof(formats) / sizeof(*formats))

static double value_of(const struct format *f, uint64_t bits)
{
	int width = (int)elem_bits(f->elem), top = (1 << f->exponent) - 1;
	uint64_t all = ((uint64_t)1 << f->fraction) - 1, fraction = bits & all;
	int e = (int)(bits >> f->fraction) & top;
	double sign = bits >> (width - 1) & 1 ? -1 : 1, x;
	float narrow;

	if (f->elem == ELEM_F64) {
		memcpy(&x, &bits, sizeof(x));
		return x;
	}
	if (f->elem == ELEM_F32) {
		memcpy(&narrow, &bits, sizeof(narrow));
		return narrow;
	}
	if (f->specials == SCALE)
		return e == top ? NAN : ldexp(1, e - f->bias);
	if (f->specials == IEEE && e == top)
		return fraction ? NAN : sign * INFINITY;
	if (f->specials == NO_INF && e == top && fraction == all)
		return NAN;
	if (f->specials == NO_INF_UNSIGNED_ZERO && bits == (uint64_t)1 << (width - 1))
		return NAN;
	if (!e)
		return sign * ldexp((double)fraction, 1 - f->bias - f->fraction);
	return sign * ldexp((double)(fraction | (all + 1)), e - f->bias - f->fraction);
}

static wide smallest(const struct format *f) { return ldexpl(1, 1 - f->bias); }

/* What would be next if exponents went on: in its place stands an infinity or no number. */
static wide past(const struct format *f)
{
	int top = (1 << f->exponent) - 1;
	wide unit;

	if (f->specials == IEEE)
		return ldexpl(1, top - f->bias);
	unit = ldexpl(1, top - f->bias - f->fraction);
	return ldexpl(1, top + 1 - f->bias) - (f->specials == NO_INF ? unit : 0);
}

static wide unit_of(const struct format *f, wide x)
{
	int e;

	frexpl(x, &e);
	e = e - 1 < 1 - f->bias ? 1 - f->bias : e - 1;
	return ldexpl(1, e - f->fraction);
}

/* Of a type without infinities: what is too large is the largest number, what is none -0. */
static double units_of_finite(const struct format *f, wide got, wide want)
{
	wide most = ldexpl(2, (1 << f->exponent) - 1 - f->bias) - ldexpl(1, (1 << f->exponent) -
		    1 - f->bias - f->fraction);

	if (want != want)
		return got == 0 && signbit(got) ? 0 : INFINITY;
	if (want == 0 && !signbit(got) != !signbit(want))
		return INFINITY;
	want = copysignl(fminl(fabsl(want), most), want);
	return (double)(fabsl(got - want) / unit_of(f, want));
}

/* Of powers of two: zero (f64 computes, without subnormals), negative numbers and those too large
 * are none; smaller ones than the least are the least. Halfway is up. */
static double units_of_scale(const struct format *f, wide got, wide want)
{
	wide most = ldexpl(1.5, (1 << f->exponent) - 2 - f->bias), least = ldexpl(1, -f->bias);

	if (!(want >= 0x1p-1022L) || want >= most)
		return got != got ? 0 : INFINITY;
	if (got != got)
		return INFINITY;
	if (want < least)
		want = least;
	return (double)(fabsl(got - want) / ldexpl(1, ilogbl(want)));
}

/* Distance of a result. INFINITY: it is another number altogether. */
static double units(const struct format *f, wide got, wide want)
{
	wide most = past(f), least = smallest(f), size = fabsl(want);

	if (f->specials == FINITE)
		return units_of_finite(f, got, want);
	if (f->specials == SCALE)
		return units_of_scale(f, got, want);
	if (want != want)
		return got != got ? 0 : INFINITY;
	if (size >= most)
		want = copysignl(size = most, want);
	if (isinf(got))
		got = copysignl(most, got);
	/* Where there is no infinity, out of range is no number. */
	if (got != got && f->specials != IEEE && size > most - unit_of(f, most / 2))
		got = copysignl(most, want);
	if (got != got)
		return INFINITY;
	if (f->specials != NO_INF_UNSIGNED_ZERO && want == 0 && !signbit(got) != !signbit(want))
		return INFINITY;
	/* Below the smallest number each one of this sign is a zero. */
	if (f->flushes && fabsl(got) < least && size < least + 4 * unit_of(f, least) &&
	    (got == 0 || want == 0))
		return 0;
	return (double)(fabsl(got - want) / unit_of(f, size >= most ? most / 2 : size));
}

/* ---- functions ---- */

static double rsqrt64(double x) { return 1 / sqrt(x); }
static wide rsqrt80(wide x) { return 1 / sqrtl(x); }
static double logistic64(double x) { return 1 / (1 + exp(-x)); }
static wide logistic80(wide x) { return 1 / (1 + expl(-x)); }
static double add64(double x, double y) { return x + y; }
static wide add80(wide x, wide y) { return x + y; }
static double multiply64(double x, double y) { return x * y; }
static wide multiply80(wide x, wide y) { return x * y; }
static double divide64(double x, double y) { return x / y; }
static wide divide80(wide x, wide y) { return x / y; }

/* With one argument or two; `low` to `high`: where it is interesting, of f32. */
static const struct function {
	const char *name;
	double (*one)(double);
	wide (*one_wide)(wide);
	double (*two)(double, double);
	wide (*two_wide)(wide, wide);
	double low, high;
} functions[] = {
	{ "add", NULL, NULL, add64, add80, -4, 4 },
	{ "multiply", NULL, NULL, multiply64, multiply80, -4, 4 },
	{ "divide", NULL, NULL, divide64, divide80, -4, 4 },
	{ "sqrt", sqrt, sqrtl, NULL, NULL, 0, 4 },
	{ "rsqrt", rsqrt64, rsqrt80, NULL, NULL, 0, 4 },
	{ "cbrt", cbrt, cbrtl, NULL, NULL, -8, 8 },
	{ "exponential", exp, expl, NULL, NULL, -104, 89 },
	{ "exponential_minus_one", expm1, expm1l, NULL, NULL, -20, 89 },
	{ "log", log, logl, NULL, NULL, 0, 4 },
	{ "log_plus_one", log1p, log1pl, NULL, NULL, -1, 4 },
	{ "sine", sin, sinl, NULL, NULL, -100, 100 },
	{ "cosine", cos, cosl, NULL, NULL, -100, 100 },
	{ "tan", tan, tanl, NULL, NULL, -100, 100 },
	{ "tanh", tanh, tanhl, NULL, NULL, -10, 10 },
	{ "logistic", logistic64, logistic80, NULL, NULL, -104, 20 },
	{ "tc.erf", erf, erfl, NULL, NULL, -5, 5 },
	{ "atan2", NULL, NULL, atan2, atan2l, -4, 4 },
	{ "power", NULL, NULL, pow, powl, 0, 0 },
};
#define N_FUNCTIONS (sizeof(functions) / sizeof(*functions))

/* ---- arguments ---- */

static uint64_t bits_of(const struct format *f, double x)
{
	uint64_t u = 0;
	float narrow = (float)x;

	if (f->elem == ELEM_F64) {
		memcpy(&u, &x, 8);
		return u;
	}
	memcpy(&u, &narrow, 4);
	return f->elem == ELEM_BF16 ? u >> 16 : u;
}

static bool is_exhaustive(const struct function *fn, const struct format *f)
{
	return elem_bits(f->elem) <= 8 || (fn->one && elem_bits(f->elem) == 16);
}

/* A NaN is a quiet one: what libm makes of others differs. */
static uint64_t quiet(const struct format *f, uint64_t bits)
{
	double x = value_of(f, bits);

	return x != x && f->fraction ? bits | (uint64_t)1 << (f->fraction - 1) : bits;
}

/* The i-th of n arguments, or pairs. */
static void arguments(const struct function *fn, const struct format *f, uint64_t i, uint64_t *x)
{
	unsigned width = elem_bits(f->elem);
	uint64_t mask = UINT64_MAX >> (64 - width);
	double bound = f->elem == ELEM_F64 ? 1000 : f->elem == ELEM_F16 ? 15 : 120, a;

	if (is_exhaustive(fn, f)) {
		x[0] = i & mask;
		x[1] = i >> width & mask;
		return;
	}
	for (unsigned k = 0; k < 2; k++)
		x[k] = quiet(f, measure_mixed(2 * i + k) & mask);
	/* Of f32 each number is as near to one of these as any is to another. */
	if (fn->one && width == 32)
		x[0] = quiet(f, i / 2 * 0x9e3779b1u & mask);
	if (i & 1 || f->elem == ELEM_F16)
		return;
	if (fn->high > fn->low) {
		for (unsigned k = 0; k < 2; k++)
			x[k] = bits_of(f, measure_between(fn->low, fn->high,
							  measure_mixed(~(2 * i + k))));
		return;
	}
	/* A power in range. */
	a = exp2(measure_between(-bound, bound, measure_mixed(~i)) *
		 measure_between(0, 1, measure_mixed(i * 3)));
	x[0] = bits_of(f, a);
	a = value_of(f, x[0]);
	x[1] = bits_of(f, measure_between(-bound, bound, measure_mixed(~i * 5)) / log2(a));
}

/* ---- runs ---- */

static struct rt_exe *compiled(struct rt_client *c, const struct function *fn, enum elem elem)
{
	char text[512], type[64];
	struct rt_exe *x;
	struct err err;

	snprintf(type, sizeof(type), "tensor<%ux%s>", MEASURE_N, elem_text(elem));
	snprintf(text, sizeof(text),
		 PROGRAM("%%0: %s%s%s", "%%9 = %s(%%0%s) : %s\nreturn(%%9)\n"), type,
		 fn->two ? ", %1: " : "", fn->two ? type : "", fn->name, fn->two ? ", %1" : "",
		 type);
	if (rt_compile(c, text, strlen(text), "mlir", NULL, 0, &x, &err))
		fail_msg("%s\n%s", err.msg, text);
	return x;
}

struct worst { double units; uint64_t at[2]; double got; wide want; };

static uint64_t element(const char *p, unsigned bytes, size_t i)
{
	uint64_t u = 0;

	memcpy(&u, p + i * bytes, bytes);
	return u;
}

/* As the device sees it. */
static double argument(const struct format *f, uint64_t bits)
{
	double x = value_of(f, bits);

	return f->flushes && fabs(x) < (double)smallest(f) ? copysign(0, x) : x;
}

static wide right(const struct function *fn, const struct format *f, const uint64_t *x)
{
	double a = argument(f, x[0]), b = argument(f, x[1]);

	if (f->elem == ELEM_F64)
		return fn->one ? fn->one_wide(a) : fn->two_wide(a, b);
	return fn->one ? fn->one(a) : fn->two(a, b);
}

/* Looks at one result of every path. */
static void judge(const struct function *fn, const struct format *f, const uint64_t *at,
		  const uint64_t *bits, unsigned n_bits, struct worst *worst)
{
	wide want = right(fn, f, at);

	for (unsigned p = 0; p < n_bits; p++) {
		double got = value_of(f, bits[p]), far;

		/* Half a unit at most, and quickly seen. */
		if ((p && bits[p] == bits[p - 1]) || (worst->units > 0.5 && got != 0 &&
		    got == (f->elem == ELEM_F64 ? (double)want : (double)(float)want)))
			continue;
		far = units(f, got, want);
		if (far > worst->units)
			*worst = (struct worst){ far, { at[0], at[1] }, got, want };
	}
}

static struct worst measure(const struct function *fn, const struct format *f, uint64_t n)
{
	static measure_numbers in[2], out[MEASURE_PATHS];
	unsigned bytes = elem_bytes(f->elem), n_in = fn->one ? 1 : 2;
	struct worst worst = { .units = -1 };
	struct rt_exe *x[MEASURE_PATHS];
	uint64_t at[2];

	if (is_exhaustive(fn, f))
		n = MEASURE_N;
	for (unsigned p = 0; p < MEASURE_PATHS; p++)
		x[p] = measure_client[p] ? compiled(measure_client[p], fn, f->elem) : NULL;
	for (uint64_t i = 0; i < n; i += MEASURE_N) {
		for (unsigned k = 0; k < MEASURE_N; k++) {
			arguments(fn, f, i + k, at);
			memcpy(in[0] + k * bytes, &at[0], bytes);
			memcpy(in[1] + k * bytes, &at[1], bytes);
		}
		for (unsigned p = 0; p < MEASURE_PATHS; p++)
			if (x[p])
				measure_launch(measure_client[p], x[p], f->elem, n_in, in,
					       bytes * MEASURE_N, out[p]);
		for (unsigned k = 0; k < MEASURE_N; k++) {
			uint64_t bits[MEASURE_PATHS];
			unsigned n_bits = 0;

			for (unsigned j = 0; j < 2; j++)
				at[j] = element(in[j], bytes, k);
			for (unsigned p = 0; p < MEASURE_PATHS; p++)
				if (x[p])
					bits[n_bits++] = element(out[p], bytes, k);
			judge(fn, f, at, bits, n_bits, &worst);
		}
	}
	for (unsigned p = 0; p < MEASURE_PATHS; p++)
		if (x[p])
			rt_exe_unref(x[p]);
	return worst;
}

static void print(FILE *to, const struct function *fn, const struct format *f, uint64_t n,
		  const struct worst *w)
{
	fprintf(to, "%s %s %" PRIu64 " %.3f at %a", fn->name, elem_text(f->elem),
		is_exhaustive(fn, f) ? (uint64_t)1 << (elem_bits(f->elem) * (fn->one ? 1 : 2)) : n,
		w->units, value_of(f, w->at[0]));
	if (fn->two)
		fprintf(to, ", %a", value_of(f, w->at[1]));
	fprintf(to, ": %a, not %La\n", w->got, w->want);
	fflush(to);
}

/* ---- the test ---- */

static void functions_are_as_near_as_the_table_says(void **state)
{
	(void)state;
	for (size_t k = 0; k < N_FUNCTIONS; k++)
		for (size_t t = 0; t < N_FORMATS; t++) {
			const struct function *fn = &functions[k];
			const struct format *f = &formats[t];
			double bound = measure_listed(fn->name, elem_text(f->elem));
			struct worst w = measure(fn, f, MEASURE_FEW);

			if (bound >= 0 && w.units <= bound + 0.0005)
				continue;
			print(stderr, fn, f, MEASURE_FEW, &w);
			fail_msg("%s of %s: %.3f units, %.3f in " MEASURE_TABLE, fn->name,
				 elem_text(f->elem), w.units, bound);
		}
}

/* Of one type and function, or (NULL) all. */
static int table(uint64_t n, const char *type, const char *name)
{
	if (measure_start(NULL))
		return 1;
	for (size_t k = 0; k < N_FUNCTIONS; k++)
		for (size_t t = 0; t < N_FORMATS; t++) {
			struct worst w;

			if ((type && strcmp(type, elem_text(formats[t].elem))) ||
			    (name && strcmp(name, functions[k].name)))
				continue;
			w = measure(&functions[k], &formats[t], n);
			print(stdout, &functions[k], &formats[t], n, &w);
		}
	return measure_stop(NULL);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_are_as_near_as_the_table_says),
	};

	if (argc > 2 && !strcmp(argv[1], "--measure"))
		return table(strtoull(argv[2], NULL, 10), argc > 3 ? argv[3] : NULL,
			     argc > 4 ? argv[4] : NULL);
	return cmocka_run_group_tests(tests, measure_start, measure_stop);
}
