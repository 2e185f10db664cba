/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reference evaluator against StableHLO's own test programs, and its manners:
 * what it says to arguments and programs that it cannot run.
 *
 * What the programs are and how they are judged: tests/unit/vectors.h.
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
#include "tests/unit/vectors.h"

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

static int run_bytes(const void *bytes, size_t n, const struct tc_array *args, size_t n_args,
		     struct tc_array **outs, size_t *n_outs, struct err *err)
{
	return tc_eval(&(struct tc_source){ bytes, n, "mlir" }, args, n_args, outs, n_outs,
		       err);
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
	code = run_bytes(bytes, n, args, n_args, outs, n_outs, err);
	free(bytes);
	return code;
}

static enum verdict judge(enum rule rule, double near, const struct tc_array *a,
			  const struct tc_array *b)
{
	size_t at;
	enum verdict v;

	if (a->elem != b->elem || a->rank != b->rank || a->bytes != b->bytes ||
	    memcmp(a->dim, b->dim, sizeof(a->dim)))
		return WRONG;
	v = vector_compare(a->elem, a->data, b->data, a->bytes / elem_bytes(a->elem), rule,
			   near, &at);
	if (v == WRONG)
		print_message("    element %zu differs\n", at);
	return v;
}

/* ---- StableHLO's programs ---- */

/* The programs that do not meet their rule, each with why. */
static const struct vector_near near_programs[] = {
	/* Sums in another order, some near zero. */
	{ "dot_general_float32_4_3_complex64_3_6", 0.125, false },
	{ "dot_general_int32_4_3_float32_3_6", 0.5, false },
	{ "dot_general_int8_4_3_float32_3_6", 0.0625, false },
	{ "dot_general_uint16_4_3_float32_3_6", 0.046875, false },
	{ "dot_general_uint8_4_3_complex64_3_6", 0.09375, false },
	{ "fft_complex64_14_15_16_17", 2, false },
	{ "fft_float32_14_15_16_17", 1, false },
	/* One unit, where the rule asks for 0.001 of values of some thousands. */
	{ "sin_complex64_20_20", 1, false },
};

static void count(const struct vector_program *v, void *arg)
{
	const struct vector_near *near = vector_near_of(
		near_programs, sizeof(near_programs) / sizeof(near_programs[0]), v->name);
	unsigned *counts = arg;
	struct tc_array *outs = NULL;
	enum verdict worst = STRICT, is;
	size_t n_outs = 0;
	struct err err;

	if (run_bytes(v->code, v->bytes, NULL, 0, &outs, &n_outs, &err)) {
		print_message("  refused %s: %s\n", v->name, err.msg);
		counts[REFUSED]++;
		return;
	}
	assert_int_equal(n_outs, 2 * v->n_rules);
	for (unsigned i = 0; i < v->n_rules; i++) {
		is = judge(v->rules[i], near ? near->units : 0, &outs[2 * i],
			   &outs[2 * i + 1]);
		worst = is > worst ? is : worst;
	}
	tc_array_free(outs, n_outs);
	if (worst == WRONG)
		print_message("  wrong %s\n", v->name);
	if (near && worst == STRICT) {
		print_message("  %s meets its rule: remove it from near_programs\n", v->name);
		worst = WRONG;
	}
	counts[worst]++;
}

static void stablehlo_programs_give_what_they_expect(void **state)
{
	unsigned counts[VERDICTS] = { 0 };
	int n = vectors_each(count, counts);

	(void)state;
	print_message("%d programs: %u strict, %u near, %u wrong, %u refused\n", n,
		      counts[STRICT], counts[NEAR], counts[WRONG], counts[REFUSED]);
	assert_int_equal(n, VECTORS_COUNT);
	assert_int_equal(counts[WRONG], 0);
	assert_int_equal(counts[REFUSED], 0);
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
		if (judge(RULE_CLOSE, 0, &outs[i], &outs[i + 1]) != STRICT)
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
	refuses("refused_collective", &a, 1, ERR_INVALID_ARGUMENT,
		(const char *[]){ "collective_permute", "device 1", "jit(f)/permute", NULL });
	refuses("refused_compute_on_host", &a, 1, ERR_UNIMPLEMENTED,
		(const char *[]){ "sine", "compute_on \"device_host\"", "jit(f)/sin", NULL });
	refuses("refused_compute_on_sparse_core", &a, 1, ERR_UNIMPLEMENTED,
		(const char *[]){ "call", "sparse core", "jit(f)/compute_on", NULL });
	refuses("refused_type", &z, 1, ERR_UNIMPLEMENTED,
		(const char *[]){ "atan2", "complex<f32>", "jit(f)/atan2", NULL });
	refuses("refused_infeed", &a, 1, ERR_UNIMPLEMENTED,
		(const char *[]){ "infeed", "jit(f)/infeed", NULL });
	refuses("refused_outfeed", &a, 1, ERR_UNIMPLEMENTED,
		(const char *[]){ "outfeed", "jit(f)/outfeed", NULL });
	refuses("refused_dynamic", &a, 1, ERR_UNIMPLEMENTED,
		(const char *[]){ "func", "argument 0 has a dim without a bound", NULL });
	refuses("refused_unbounded", &a, 1, ERR_UNIMPLEMENTED,
		(const char *[]){ "dynamic_reshape", "result 0 has a dim without a bound",
				  "jit(f)/reshape", NULL });
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
