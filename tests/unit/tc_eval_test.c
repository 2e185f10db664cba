/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reference evaluator against StableHLO's own test programs, and its manners:
 * what it says to arguments and programs that it cannot run.
 *
 * A program under tests/data/vectors takes nothing and returns pairs of an array and
 * what it should be, one pair for each rule that manifest.tsv names:
 *	expect_eq		equal elements; NaN equals nothing
 *	expect_close		at most 3 representable numbers apart
 *	expect_almost_eq	at most 0.001 apart
 * Where a sum was made in another order, or a function of another library is a few
 * numbers off, a relative error is allowed (the second bar) and counted apart.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <cmocka.h>

#include "hal/base/elem.h"
#include "runtime/compiler/tc.h"

#define VECTORS "tests/data/vectors/"
#define PROGRAMS "tests/data/eval/"

static char *read_file(const char *path, size_t *n)
{
	FILE *f = fopen(path, "rb");
	char *bytes = NULL;
	long size;

	if (!f)
		return NULL;
	if (!fseek(f, 0, SEEK_END) && (size = ftell(f)) >= 0 && !fseek(f, 0, SEEK_SET)) {
		bytes = malloc((size_t)size + 1);
		*n = bytes ? fread(bytes, 1, (size_t)size, f) : 0;
		bytes[*n] = 0;
	}
	fclose(f);
	return bytes;
}

/* Runs the file's program. */
static int run(const char *path, const struct tc_array *args, size_t n_args,
	       struct tc_array **outs, size_t *n_outs, struct err *err)
{
	size_t n = 0;
	char *bytes = read_file(path, &n);
	int code;

	if (!bytes)
		fail_msg("there is no %s", path);
	code = tc_eval(&(struct tc_source){ bytes, n, "mlir" }, args, n_args, outs, n_outs,
		       err);
	free(bytes);
	return code;
}

/* ---- the rules ---- */

enum verdict { STRICT, SECOND, WRONG };

/* The parts of an element, as numbers of one type. */
static unsigned part_of(unsigned elem)
{
	return elem == ELEM_C64 ? ELEM_F32 : elem == ELEM_C128 ? ELEM_F64 : elem;
}

static uint64_t raw(const void *p, unsigned bytes)
{
	uint64_t u = 0;

	memcpy(&u, p, bytes);
	return u;
}

static double value(unsigned elem, uint64_t u)
{
	unsigned m = elem == ELEM_F16 ? 10 : 7, top = elem == ELEM_F16 ? 31 : 255;
	unsigned e = (unsigned)(u >> m) & top, f = (unsigned)u & ((1u << m) - 1);
	uint32_t narrow = (uint32_t)u;
	double x;
	float s;

	if (elem == ELEM_F64) {
		memcpy(&x, &u, sizeof(x));
		return x;
	}
	if (elem == ELEM_F32) {
		memcpy(&s, &narrow, sizeof(s));
		return s;
	}
	if (e == top)
		x = f ? NAN : INFINITY;
	else
		x = ldexp(f + (e ? 1u << m : 0), (int)(e ? e : 1) - (int)(top >> 1) - (int)m);
	return u >> 15 & 1 ? -x : x;
}

/* Representable numbers from -max up, in order; both zeros are 0. */
static int64_t place(unsigned elem, uint64_t u)
{
	unsigned bits = elem_bits(elem);
	uint64_t sign = (uint64_t)1 << (bits - 1);

	return u & sign ? -(int64_t)(u ^ sign) : (int64_t)u;
}

static bool is_float(unsigned elem)
{
	return elem == ELEM_F16 || elem == ELEM_BF16 || elem == ELEM_F32 || elem == ELEM_F64;
}

static double tolerance(unsigned elem)
{
	return elem == ELEM_F64 ? 1e-9 : elem == ELEM_F32 ? 2e-4 : 4e-2;
}

static bool meets(const char *rule, unsigned elem, uint64_t a, uint64_t b)
{
	double x, y;

	if (!is_float(elem))
		return a == b;
	x = value(elem, a);
	y = value(elem, b);
	if (!strcmp(rule, "expect_eq"))
		return x == y;
	if (isnan(x) && isnan(y))
		return true;
	if (!isfinite(x) || !isfinite(y))
		return a == b;
	if (!strcmp(rule, "expect_almost_eq"))
		return fabs(x - y) <= 0.001;
	return llabs(place(elem, a) - place(elem, b)) <= 3;
}

static bool meets_second(unsigned elem, uint64_t a, uint64_t b)
{
	double x = value(elem, a), y = value(elem, b);

	if (!is_float(elem) || !isfinite(x) || !isfinite(y))
		return a == b;
	return fabs(x - y) <= tolerance(elem) * (fabs(y) + 1e-2);
}

static enum verdict judge(const char *rule, const struct tc_array *a,
			  const struct tc_array *b)
{
	unsigned elem = part_of(a->elem), bytes = elem_bytes(elem);
	enum verdict v = STRICT;

	if (a->elem != b->elem || a->rank != b->rank || a->bytes != b->bytes ||
	    memcmp(a->dim, b->dim, sizeof(a->dim)))
		return WRONG;
	for (size_t i = 0; i < a->bytes; i += bytes) {
		uint64_t x = raw((const char *)a->data + i, bytes);
		uint64_t y = raw((const char *)b->data + i, bytes);

		if (meets(rule, elem, x, y))
			continue;
		if (!meets_second(elem, x, y)) {
			if (getenv("TESSERA_TEST_VERBOSE"))
				printf("    element %zu: %a, not %a\n", i / bytes,
				       value(elem, x), value(elem, y));
			return WRONG;
		}
		v = SECOND;
	}
	return v;
}

/* ---- StableHLO's programs ---- */

struct tally { unsigned n, strict, second, refused, wrong; };

static void run_vector(struct tally *t, const char *name, char *rules)
{
	struct tc_array *outs = NULL;
	enum verdict worst = STRICT, v;
	char path[600], *rule, *rest = rules;
	size_t n_outs = 0, i = 0;
	struct err err;

	snprintf(path, sizeof(path), VECTORS "%s.mlirbc", name);
	t->n++;
	if (run(path, NULL, 0, &outs, &n_outs, &err)) {
		printf("  refused %s: %s\n", name, err.msg);
		t->refused++;
		return;
	}
	while ((rule = strsep(&rest, ","))) {
		assert_true(i + 2 <= n_outs);
		v = judge(rule, &outs[i], &outs[i + 1]);
		worst = v > worst ? v : worst;
		i += 2;
	}
	assert_int_equal(i, n_outs);
	tc_array_free(outs, n_outs);
	if (worst == WRONG)
		printf("  wrong %s\n", name);
	if (worst == SECOND)
		printf("  second bar %s\n", name);
	t->strict += worst == STRICT;
	t->second += worst == SECOND;
	t->wrong += worst == WRONG;
}

static void stablehlo_programs_give_what_they_expect(void **state)
{
	FILE *f = fopen(VECTORS "manifest.tsv", "r");
	struct tally t = { 0 };
	char line[512];

	(void)state;
	if (!f) {
		printf("skipped: " VECTORS " is not there\n");
		skip();
	}
	while (fgets(line, sizeof(line), f)) {
		char *rules = strchr(line, '\t');

		assert_non_null(rules);
		*rules++ = 0;
		rules[strcspn(rules, "\n")] = 0;
		run_vector(&t, line, rules);
	}
	fclose(f);
	printf("%u programs: %u strictly, %u under the second bar, %u refused, %u wrong\n",
	       t.n, t.strict, t.second, t.refused, t.wrong);
	/* What was reached: none may be lost. */
	assert_int_equal(t.wrong, 0);
	assert_int_equal(t.refused, 0);
	assert_true(t.n >= 764 && t.strict >= 756);
}

/* ---- programs of our own ---- */

static void each_pair_agrees(const char *name)
{
	struct tc_array *outs = NULL;
	struct err err = { 0 };
	size_t n_outs = 0;
	char path[128];

	snprintf(path, sizeof(path), PROGRAMS "%s.mlirbc", name);
	if (run(path, NULL, 0, &outs, &n_outs, &err))
		fail_msg("%s", err.msg);
	assert_true(n_outs > 0 && n_outs % 2 == 0);
	for (size_t i = 0; i < n_outs; i += 2)
		if (judge("expect_close", &outs[i], &outs[i + 1]) != STRICT)
			fail_msg("pair %zu of %s differs", i / 2, name);
	tc_array_free(outs, n_outs);
}

static void structured_ops_run_their_regions(void **state)
{
	(void)state;
	each_pair_agrees("structure");
}

static void corner_cases_are_those_of_xla(void **state)
{
	(void)state;
	each_pair_agrees("corners");
}

static void regions_of_scalars_are_applied(void **state)
{
	(void)state;
	each_pair_agrees("bodies");
}

static void matrices_transforms_and_norms_follow_their_formulas(void **state)
{
	(void)state;
	each_pair_agrees("linalg");
}

static void indices_are_clamped_or_left_out(void **state)
{
	(void)state;
	each_pair_agrees("index");
}

static void random_bits_are_those_of_xla(void **state)
{
	(void)state;
	each_pair_agrees("random");
}

/* ---- manners ---- */

static float six[6] = { 1, 2, 3, 4, 5, 6 };
static int64_t three[3] = { 7, 8, -9 };

static const struct tc_array good[2] = {
	{ .elem = ELEM_F32, .rank = 2, .dim = { 2, 3 }, .data = six, .bytes = sizeof(six) },
	{ .elem = ELEM_S64, .rank = 1, .dim = { 3 }, .data = three, .bytes = sizeof(three) },
};

/* The program must refuse, with the code, in words that hold each of `words`. */
static void refuses(const char *name, const struct tc_array *args, size_t n_args, int code,
		    const char *const *words)
{
	struct tc_array *outs = NULL;
	struct err err = { 0 };
	size_t n_outs = 0;
	char path[128];

	snprintf(path, sizeof(path), PROGRAMS "%s.mlirbc", name);
	assert_int_equal(run(path, args, n_args, &outs, &n_outs, &err), code);
	assert_null(outs);
	for (; *words; words++)
		if (!strstr(err.msg, *words))
			fail_msg("\"%s\" does not say \"%s\"", err.msg, *words);
}

static void arguments_come_in_and_results_go_out(void **state)
{
	struct tc_array *outs = NULL;
	struct err err = { 0 };
	size_t n_outs = 0;

	(void)state;
	if (run(PROGRAMS "arguments.mlirbc", good, 2, &outs, &n_outs, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(n_outs, 2);
	assert_int_equal(outs[0].elem, ELEM_F32);
	assert_int_equal(outs[0].rank, 2);
	assert_int_equal(outs[0].bytes, sizeof(six));
	for (int i = 0; i < 6; i++)
		assert_true(((float *)outs[0].data)[i] == 2 * six[i]);
	assert_memory_equal(outs[1].data, three, sizeof(three));
	tc_array_free(outs, n_outs);
}

static void arguments_that_do_not_fit_are_told_apart(void **state)
{
	struct tc_array bad[2] = { good[0], good[1] };

	(void)state;
	refuses("arguments", good, 1, ERR_INVALID_ARGUMENT,
		(const char *[]){ "1 arguments", "takes 2", NULL });
	bad[0].dim[0] = 3;
	bad[0].dim[1] = 2;
	refuses("arguments", bad, 2, ERR_INVALID_ARGUMENT,
		(const char *[]){ "argument 0", "tensor<3x2xf32>", "tensor<2x3xf32>", NULL });
	bad[0] = good[0];
	bad[1].elem = ELEM_U64;
	refuses("arguments", bad, 2, ERR_INVALID_ARGUMENT,
		(const char *[]){ "argument 1", "tensor<3xui64>", "tensor<3xi64>", NULL });
	bad[1] = good[1];
	bad[1].bytes = 16;
	refuses("arguments", bad, 2, ERR_INVALID_ARGUMENT,
		(const char *[]){ "argument 1", "16 bytes", "takes 24", NULL });
	bad[1] = good[1];
	bad[1].data = NULL;
	refuses("arguments", bad, 2, ERR_INVALID_ARGUMENT,
		(const char *[]){ "argument 1", "no address", NULL });
	bad[1] = good[1];
	bad[1].rank = 33;
	refuses("arguments", bad, 2, ERR_INVALID_ARGUMENT,
		(const char *[]){ "rank 33", NULL });
}

static void what_does_not_run_names_itself_and_its_place(void **state)
{
	static float two[2] = { 1, 2 };
	static double complex_two[2] = { 0 };
	struct tc_array a = { .elem = ELEM_F32, .rank = 1, .dim = { 2 }, .data = two,
			      .bytes = sizeof(two) };
	struct tc_array z = { .elem = ELEM_C64, .rank = 1, .dim = { 2 },
			      .data = complex_two, .bytes = sizeof(complex_two) };

	(void)state;
	refuses("refused_custom_call", &a, 1, ERR_UNIMPLEMENTED,
		(const char *[]){ "custom_call", "somebody.else", "jit(f)/call", NULL });
	refuses("refused_collective", &a, 1, ERR_UNIMPLEMENTED,
		(const char *[]){ "collective_permute", "jit(f)/permute", NULL });
	refuses("refused_type", &z, 1, ERR_UNIMPLEMENTED,
		(const char *[]){ "atan2", "complex<f32>", "jit(f)/atan2", NULL });
	refuses("recursion", &a, 1, ERR_INVALID_ARGUMENT,
		(const char *[]){ "again", "calls itself", NULL });
	refuses("huge", &a, 1, ERR_RESOURCE_EXHAUSTED,
		(const char *[]){ "80000000000 bytes", "jit(f)/grow", NULL });
}

static void garbage_is_refused(void **state)
{
	struct tc_array *outs = NULL;
	size_t n_outs = 0;
	struct err err;

	(void)state;
	assert_int_equal(tc_eval(&(struct tc_source){ "no program", 10, "mlir" }, NULL, 0,
				 &outs, &n_outs, &err), ERR_INVALID_ARGUMENT);
	assert_null(outs);
}

/* 2000 turns that make half a megabyte each. */
static void a_loop_holds_no_more_at_its_end(void **state)
{
	int32_t turns = 2000;
	struct tc_array n = { .elem = ELEM_S32, .data = &turns, .bytes = sizeof(turns) };
	struct tc_array *outs = NULL;
	struct rusage before, after;
	struct err err = { 0 };
	size_t n_outs = 0;

	(void)state;
	getrusage(RUSAGE_SELF, &before);
	if (run(PROGRAMS "long_loop.mlirbc", &n, 1, &outs, &n_outs, &err))
		fail_msg("%s", err.msg);
	getrusage(RUSAGE_SELF, &after);
	assert_int_equal(*(int32_t *)outs[0].data, turns);
	tc_array_free(outs, n_outs);
	/* in KiB; a sanitizer keeps freed memory for a while */
	assert_true(after.ru_maxrss - before.ru_maxrss < 500 * 1024);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stablehlo_programs_give_what_they_expect),
		cmocka_unit_test(structured_ops_run_their_regions),
		cmocka_unit_test(corner_cases_are_those_of_xla),
		cmocka_unit_test(regions_of_scalars_are_applied),
		cmocka_unit_test(matrices_transforms_and_norms_follow_their_formulas),
		cmocka_unit_test(indices_are_clamped_or_left_out),
		cmocka_unit_test(random_bits_are_those_of_xla),
		cmocka_unit_test(arguments_come_in_and_results_go_out),
		cmocka_unit_test(arguments_that_do_not_fit_are_told_apart),
		cmocka_unit_test(what_does_not_run_names_itself_and_its_place),
		cmocka_unit_test(garbage_is_refused),
		cmocka_unit_test(a_loop_holds_no_more_at_its_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
