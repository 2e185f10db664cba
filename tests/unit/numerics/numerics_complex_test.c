/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far functions of complex numbers are from the right result: programs of one op on the model,
 * c64 and c128 and each path of the host, against functions of glibc's long double complex, or
 * ones made of its long double where it has none.
 *
 * Two distances are measured, in units in the last place: by norm, |got - want| in units of
 * |want|; and of each part, in its own units, which means something where parts are made apart.
 * Half of the numbers are spread over all that the type has, each part for itself, half over where
 * functions are neither flat nor out of range; of each four of those one is next to the axes.
 *
 * tests/data/numerics.txt has the largest of both; a smaller sample must stay within them here.
 * It is written by
 *
 *	numerics_complex_test --measure 4000000 [TYPE [FUNCTION]]
 *
 * Parts below the smallest normal number are zeros, in arguments, results and on the way: a
 * result may be off by four such numbers beside what is measured. Where a part of the right result
 * is out of range, the result must not be finite.
 */
#include <complex.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/numerics/numerics.h"

typedef long double complex wider;

/* ---- types ---- */

static const struct format {
	enum elem elem, part;
	int fraction, least;	/* bits; exponent of the smallest normal number */
	wide most;
} formats[] = {
	{ ELEM_C64, ELEM_F32, 23, -126, 0x1.ffffffp127L },
	{ ELEM_C128, ELEM_F64, 52, -1022, 0x1.fffffffffffff8p1023L },
};
#define N_FORMATS (sizeof(formats) / sizeof(*formats))

static double part_of(const struct format *f, const char *p)
{
	double x;
	float narrow;

	if (f->part == ELEM_F64) {
		memcpy(&x, p, sizeof(x));
		return x;
	}
	memcpy(&narrow, p, sizeof(narrow));
	return narrow;
}

static void put_part(const struct format *f, char *p, double x)
{
	float narrow = (float)x;

	if (f->part == ELEM_F64)
		memcpy(p, &x, sizeof(x));
	else
		memcpy(p, &narrow, sizeof(narrow));
}

/* As the device sees it. */
static double argument(const struct format *f, double x)
{
	return fabs(x) < ldexp(1, f->least) ? copysign(0, x) : x;
}

static wide unit_of(const struct format *f, wide x)
{
	int e = x == 0 ? f->least : ilogbl(x);

	return ldexpl(1, (e < f->least ? f->least : e) - f->fraction);
}

/* ---- functions ---- */

static wider rsqrt_of(wider z)
{
	wide size = cabsl(z);
	wider r = csqrtl(z);

	if (size == 0)
		return CMPLXL(INFINITY, 0);
	if (isinf(size))
		return isnan(creall(r) * 0) || isnan(cimagl(r) * 0) ?
			CMPLXL(0, copysignl(0, -cimagl(z))) : 0;
	return CMPLXL(creall(r) / size, -cimagl(r) / size);
}

static wider expm1_of(wider z)
{
	wide x = creall(z), y = cimagl(z), s = sinl(y / 2);

	if (y == 0)
		return CMPLXL(expm1l(x), y);
	if (fabsl(x) > 1 || !isfinite(y))
		return CMPLXL(creall(cexpl(z)) - 1, cimagl(cexpl(z)));
	return CMPLXL(expm1l(x) * cosl(y) - 2 * s * s, expl(x) * sinl(y));
}

static wider log1p_of(wider z)
{
	wide x = creall(z), y = cimagl(z);

	if (fabsl(x) < 0.5 && fabsl(y) < 0.5)
		return CMPLXL(0.5L * log1pl(x * (2 + x) + y * y), atan2l(y, 1 + x));
	return clogl(CMPLXL(1 + x, y));
}

/* e^(z/2) / (2 cosh(z/2)): sums that cancel are in cosh only, which knows of them. */
static wider logistic_of(wider z)
{
	if (fabsl(creall(z)) > 100)
		return 1 / (1 + cexpl(-z));
	return cexpl(z / 2) / (2 * ccoshl(z / 2));
}

static wider sign_of(wider z)
{
	wide size = cabsl(z);

	return size == 0 ? z : CMPLXL(creall(z) / size, cimagl(z) / size);
}

static wider power_of(wider x, wider y)
{
	if (y == 0)
		return 1;
	return x == 0 && creall(y) > 0 ? 0 : cpowl(x, y);
}

static wider abs_of(wider z) { return cabsl(z); }
static wider multiply_of(wider x, wider y)
{
	wide a = creall(x), b = cimagl(x), c = creall(y), d = cimagl(y);

	return CMPLXL(a * c - b * d, a * d + b * c);
}
static wider divide_of(wider x, wider y) { return x / y; }

/* `apart`: its parts are no sums that may cancel. Parts are between -high and high, one for each
 * format. */
static const struct function {
	const char *name;
	wider (*one)(wider);
	wider (*two)(wider, wider);
	double high[N_FORMATS];
	bool apart;
} functions[] = {
	{ "multiply", NULL, multiply_of, { 4, 4 }, false },
	{ "divide", NULL, divide_of, { 4, 4 }, false },
	{ "abs", abs_of, NULL, { 4, 4 }, true },
	{ "sign", sign_of, NULL, { 4, 4 }, true },
	{ "sqrt", csqrtl, NULL, { 4, 4 }, true },
	{ "rsqrt", rsqrt_of, NULL, { 4, 4 }, true },
	{ "exponential", cexpl, NULL, { 90, 745 }, true },
	{ "exponential_minus_one", expm1_of, NULL, { 90, 745 }, false },
	{ "log", clogl, NULL, { 4, 4 }, true },
	{ "log_plus_one", log1p_of, NULL, { 4, 4 }, false },
	{ "sine", csinl, NULL, { 90, 745 }, true },
	{ "cosine", ccosl, NULL, { 90, 745 }, true },
	{ "tan", ctanl, NULL, { 10, 10 }, true },
	{ "tanh", ctanhl, NULL, { 10, 10 }, true },
	{ "logistic", logistic_of, NULL, { 90, 20 }, false },
	{ "power", NULL, power_of, { 4, 4 }, false },
};
#define N_FUNCTIONS (sizeof(functions) / sizeof(*functions))

/* ---- arguments ---- */

static double any(const struct format *f, uint64_t random)
{
	double x;
	char bytes[8];

	memcpy(bytes, &random, 8);
	x = part_of(f, bytes);
	/* what is not finite is for specials() */
	return isfinite(x) ? x : (double)(random & 0xff);
}

/* The i-th of n numbers, or pairs. */
static void arguments(const struct function *fn, const struct format *f, uint64_t i, double *x)
{
	double high = fn->high[f - formats];
	double largest = f->elem == ELEM_C64 ? 0x1.fffffep127 : 0x1.fffffffffffffp1023;

	for (unsigned k = 0; k < 4; k++) {
		uint64_t random = measure_mixed(4 * i + k);
		double near = measure_between(-high, high, measure_mixed(~random));

		x[k] = i & 1 ? any(f, random) : near;
		if (i % 8 == 2)		/* near one of the axes, or on it */
			x[k] = random & 4 ? near * ldexp(1, -(int)(random >> 3 & 63)) :
			       random & 8 ? near : random & 16 ? 0 : -0.0;
		if (i % 8 == 4)		/* as large as can be */
			x[k] = near / high * largest;
	}
	/* |y log x| stays where the measure is good. */
	if (fn->two == power_of && i & 1) {
		double most = f->elem == ELEM_C64 ? 80 : 600, size = fabs(log(hypot(x[0], x[1])));

		for (unsigned k = 2; k < 4; k++)
			x[k] = measure_between(-most, most, measure_mixed(5 * i + k)) /
			       (size + 4);
	}
	for (unsigned k = 0; k < 4; k++)
		x[k] = f->elem == ELEM_C64 ? (double)(float)x[k] : x[k];
}

/* ---- distances ---- */

struct distance { double norm, part; };

static double part_units(const struct format *f, wide got, wide want)
{
	wide far = fabsl(got - want) - ldexpl(4, f->least);

	return far <= 0 ? 0 : (double)(far / unit_of(f, want));
}

static struct distance distance(const struct format *f, wider got, wider want)
{
	wide re = creall(want), im = cimagl(want), far;
	struct distance d = { INFINITY, INFINITY };

	if (isnan(re) || isnan(im) || fabsl(re) >= f->most || fabsl(im) >= f->most) {
		if (!isfinite(creall(got)) || !isfinite(cimagl(got)))
			d = (struct distance){ 0 };
		return d;
	}
	if (isnan(creall(got)) || isnan(cimagl(got)))
		return d;
	d.part = fmax(part_units(f, creall(got), re), part_units(f, cimagl(got), im));
	far = cabsl(got - want) - ldexpl(4, f->least);
	d.norm = far <= 0 ? 0 : (double)(far / unit_of(f, cabsl(want)));
	return d;
}

/* ---- runs ---- */

static enum elem result_of(const struct function *fn, const struct format *f)
{
	return fn->one == abs_of ? f->part : f->elem;
}

static struct rt_exe *compiled(struct rt_client *c, const struct function *fn,
			       const struct format *f)
{
	char text[512], type[64];
	struct rt_exe *x;
	struct err err;

	snprintf(type, sizeof(type), "tensor<%ux%s>", MEASURE_N, elem_text(f->elem));
	snprintf(text, sizeof(text),
		 PROGRAM("%%0: %s%s%s", "%%9 = %s(%%0%s) : tensor<%ux%s>\nreturn(%%9)\n"), type,
		 fn->two ? ", %1: " : "", fn->two ? type : "", fn->name, fn->two ? ", %1" : "",
		 MEASURE_N, elem_text(result_of(fn, f)));
	if (rt_compile(c, text, strlen(text), "mlir", NULL, 0, &x, &err))
		fail_msg("%s\n%s", err.msg, text);
	return x;
}

struct run {
	const struct function *fn;
	const struct format *f;
	struct rt_exe *x[MEASURE_PATHS];
	measure_numbers in[2], out[MEASURE_PATHS];
};

static void open_run(struct run *r, const struct function *fn, const struct format *f)
{
	r->fn = fn;
	r->f = f;
	for (unsigned p = 0; p < MEASURE_PATHS; p++)
		r->x[p] = measure_client[p] ? compiled(measure_client[p], fn, f) : NULL;
}

static void launch(struct run *r)
{
	size_t bytes = MEASURE_N * elem_bytes(result_of(r->fn, r->f));

	for (unsigned p = 0; p < MEASURE_PATHS; p++)
		if (r->x[p])
			measure_launch(measure_client[p], r->x[p], r->f->elem,
				       r->fn->two ? 2 : 1, r->in, bytes, r->out[p]);
}

static void close_run(struct run *r)
{
	for (unsigned p = 0; p < MEASURE_PATHS; p++)
		if (r->x[p])
			rt_exe_unref(r->x[p]);
}

static void put(struct run *r, unsigned k, const double *x)
{
	unsigned part = elem_bytes(r->f->part);

	for (unsigned j = 0; j < 4; j++)
		put_part(r->f, r->in[j / 2] + (2 * k + j % 2) * part, x[j]);
}

static void take(const struct run *r, unsigned k, double *x)
{
	unsigned part = elem_bytes(r->f->part);

	for (unsigned j = 0; j < 4; j++)
		x[j] = part_of(r->f, r->in[j / 2] + (2 * k + j % 2) * part);
}

static wider right(const struct run *r, unsigned k)
{
	double x[4];

	take(r, k, x);
	for (unsigned j = 0; j < 4; j++)
		x[j] = argument(r->f, x[j]);
	return r->fn->one ? r->fn->one(CMPLXL(x[0], x[1])) :
			    r->fn->two(CMPLXL(x[0], x[1]), CMPLXL(x[2], x[3]));
}

static wider got_of(const struct run *r, unsigned path, unsigned k)
{
	unsigned part = elem_bytes(r->f->part);

	if (r->fn->one == abs_of)
		return part_of(r->f, r->out[path] + k * part);
	return CMPLXL(part_of(r->f, r->out[path] + 2 * k * part),
		      part_of(r->f, r->out[path] + (2 * k + 1) * part));
}

struct worst {
	struct distance far;
	double at[4];
	wider got, want;
};

static void judge(const struct run *r, unsigned k, struct worst *worst)
{
	unsigned bytes = elem_bytes(result_of(r->fn, r->f));
	wider want = right(r, k);

	for (unsigned p = 0; p < MEASURE_PATHS; p++) {
		wider got;
		struct distance d;

		if (!r->x[p] || (p && r->x[0] && !memcmp(r->out[p] + k * bytes,
							  r->out[0] + k * bytes, bytes)))
			continue;
		got = got_of(r, p, k);
		d = distance(r->f, got, want);
		worst->far.part = fmax(worst->far.part, d.part);
		if (d.norm <= worst->far.norm)
			continue;
		worst->far.norm = d.norm;
		worst->got = got;
		worst->want = want;
		take(r, k, worst->at);
	}
}

static struct worst measure(const struct function *fn, const struct format *f, uint64_t n)
{
	static struct run r;
	struct worst worst = { .far = { -1, -1 } };
	double x[4];

	open_run(&r, fn, f);
	for (uint64_t i = 0; i < n; i += MEASURE_N) {
		for (unsigned k = 0; k < MEASURE_N; k++) {
			arguments(fn, f, i + k, x);
			put(&r, k, x);
		}
		launch(&r);
		for (unsigned k = 0; k < MEASURE_N; k++)
			judge(&r, k, &worst);
	}
	close_run(&r);
	return worst;
}

/* As in the table: parts after the norm, "-" where they mean nothing. */
static void print(FILE *to, const struct function *fn, const struct format *f, uint64_t n,
		  const struct worst *w)
{
	char part[32] = "-";

	if (fn->apart)
		snprintf(part, sizeof(part), "%.3f", w->far.part);
	fprintf(to, "%s %s %" PRIu64 " %.3f %s at %a %a", fn->name, elem_text(f->elem), n,
		w->far.norm, part, w->at[0], w->at[1]);
	if (fn->two)
		fprintf(to, ", %a %a", w->at[2], w->at[3]);
	fprintf(to, ": %La %La, not %La %La\n", creall(w->got), cimagl(w->got),
		creall(w->want), cimagl(w->want));
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
			const char *type = elem_text(f->elem);
			struct worst w = measure(fn, f, MEASURE_FEW);
			double bound = measure_listed(fn->name, type), parts = bound;

			if (fn->apart)
				parts = measure_column(fn->name, type, 1);
			if (bound >= 0 && w.far.norm <= bound + 0.0005 &&
			    (!fn->apart || w.far.part <= parts + 0.0005))
				continue;
			print(stderr, fn, f, MEASURE_FEW, &w);
			fail_msg("%s of %s: %.3f and %.3f units, %.3f and %.3f in " MEASURE_TABLE,
				 fn->name, type, w.far.norm, w.far.part, bound, parts);
		}
}

/* Both not numbers, or infinities or zeros of one sign, or numbers of one sign. */
static bool is_alike(wide a, wide b)
{
	if (isnan(a) || isnan(b))
		return isnan(a) && isnan(b);
	return !isinf(a) == !isinf(b) && (a == 0) == (b == 0) && !signbit(a) == !signbit(b);
}

/* Functions of one number at zeros, infinities and what is none: as C's Annex G has them. */
static void specials_are_as_in_c(void **state)
{
	static const double special[] = { 0, -0.0, 1, -1, INFINITY, -INFINITY, NAN };
	enum { EACH = sizeof(special) / sizeof(*special) };
	static struct run r;

	(void)state;
	for (size_t j = 0; j < N_FUNCTIONS * N_FORMATS; j++) {
		const struct function *fn = &functions[j / N_FORMATS];
		const struct format *f = &formats[j % N_FORMATS];

		if (!fn->one)
			continue;
		open_run(&r, fn, f);
		memset(r.in, 0, sizeof(r.in));
		for (unsigned k = 0; k < EACH * EACH; k++)
			put(&r, k, (double[4]){ special[k / EACH], special[k % EACH] });
		launch(&r);
		for (unsigned k = 0; k < EACH * EACH * MEASURE_PATHS; k++) {
			unsigned p = k % MEASURE_PATHS, i = k / MEASURE_PATHS;
			wider got, want = right(&r, i);

			if (!r.x[p])
				continue;
			got = got_of(&r, p, i);
			if (is_alike(creall(got), creall(want)) &&
			    is_alike(cimagl(got), cimagl(want)))
				continue;
			fail_msg("%s of %s at %g %g: %Lg %Lg, not %Lg %Lg", fn->name,
				 elem_text(f->elem), special[i / EACH], special[i % EACH],
				 creall(got), cimagl(got), creall(want), cimagl(want));
		}
		close_run(&r);
	}
}

/* c64's are of doubles, as are C's: those of long doubles have other zeros. */
static void quotients_of_specials_are_as_in_c(void **state)
{
	static const double special[] = { 0, -0.0, 1, -1, 0x1p127, INFINITY, -INFINITY, NAN };
	enum { EACH = sizeof(special) / sizeof(*special) };
	const struct function *fn = functions;
	static struct run r;

	(void)state;
	while (fn->two != divide_of)
		fn++;
	open_run(&r, fn, &formats[0]);
	for (unsigned k = 0; k < MEASURE_N; k++)
		put(&r, k, (double[4]){ special[k % EACH], special[k / EACH % EACH],
					special[k / EACH / EACH % EACH],
					special[k / EACH / EACH / EACH % EACH] });
	launch(&r);
	for (unsigned k = 0; k < MEASURE_N; k++) {
		double x[4];
		double complex want;

		take(&r, k, x);
		want = CMPLX(x[0], x[1]) / CMPLX(x[2], x[3]);
		for (unsigned p = 0; p < MEASURE_PATHS; p++) {
			wider got = r.x[p] ? got_of(&r, p, k) : want;

			if (is_alike(creall(got), argument(&formats[0], creal(want))) &&
			    is_alike(cimagl(got), argument(&formats[0], cimag(want))))
				continue;
			fail_msg("%g %g by %g %g: %Lg %Lg, not %g %g", x[0], x[1], x[2], x[3],
				 creall(got), cimagl(got), creal(want), cimag(want));
		}
	}
	close_run(&r);
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
		cmocka_unit_test(specials_are_as_in_c),
		cmocka_unit_test(quotients_of_specials_are_as_in_c),
	};

	if (argc > 2 && !strcmp(argv[1], "--measure"))
		return table(strtoull(argv[2], NULL, 10), argc > 3 ? argv[3] : NULL,
			     argc > 4 ? argv[4] : NULL);
	return cmocka_run_group_tests(tests, measure_start, measure_stop);
}
