/* SPDX-License-Identifier: Apache-2.0 */
/* The programs of tests/data/fuzz_ops, each of which once gave something else on the
 * device than in the evaluator, or was refused. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/fuzz_ops/fuzz.h"

#define FOLDER "tests/data/fuzz_ops"

static void found_programs_are_the_same_on_device_and_evaluator(void **state)
{
	struct device *device = device_new();
	DIR *dir = opendir(FOLDER);
	unsigned n = 0, bad = 0;
	struct dirent *f;
	char path[400];

	(void)state;
	assert_non_null(dir);
	assert_non_null(device);
	while ((f = readdir(dir))) {
		if (!strstr(f->d_name, ".ir"))
			continue;
		snprintf(path, sizeof(path), FOLDER "/%.255s", f->d_name);
		bad += replay_file(path, device, NULL) != SAME;
		n++;
	}
	closedir(dir);
	device_free(device);
	assert_true(n > 0);
	assert_int_equal(bad, 0);
}

static void a_seed_gives_one_program(void **state)
{
	struct program a, b;
	struct err err;

	(void)state;
	for (uint64_t seed = 1; seed < 50; seed++) {
		if (program_generate(seed, seed % 2, &a, &err) ||
		    program_generate(seed, seed % 2, &b, &err))
			fail_msg("seed %u: %s", (unsigned)seed, err.msg);
		assert_string_equal(a.text, b.text);
		program_fill(&a, seed);
		program_fill(&b, seed);
		for (unsigned i = 0; i < a.n_args; i++)
			assert_memory_equal(a.in[i].data, b.in[i].data, a.in[i].bytes);
		program_free(&a);
		program_free(&b);
	}
}

/* A way that gives other numbers is noticed: by one element, by a sign, by an ulp. */
static void comparison_sees_the_least_difference(void **state)
{
	const struct fact whole = FACT(FACT_WHOLE, false, -8, 8),
			  open = FACT(FACT_WHOLE, true, -8, 8);
	const struct fact near = FACT(FACT_NEAR, false, 1, 2),
			  any = FACT(FACT_ANY, false, 0, 0);
	float a[3] = { 1, 0, 3 }, b[3] = { 1, -0.0f, 3 }, c[3] = { 1, 0, 0x1.800002p1f };
	float d[3] = { 1, 0, 0x1.800006p1f }, tiny[3] = { 0x1p-149f, 0, 3 },
	      none[3] = { 0, 0, 3 };

	(void)state;
	assert_int_equal(fact_compare(whole, ELEM_F32, a, a, 3, false), -1);
	assert_int_equal(fact_compare(whole, ELEM_F32, a, b, 3, false), 1);
	assert_int_equal(fact_compare(open, ELEM_F32, a, b, 3, false), -1);
	assert_int_equal(fact_compare(whole, ELEM_F32, a, c, 3, false), 2);
	assert_int_equal(fact_compare(near, ELEM_F32, a, c, 3, false), -1);
	assert_int_equal(fact_compare(near, ELEM_F32, a, d, 3, false), 2);
	assert_int_equal(fact_compare(any, ELEM_F32, tiny, none, 3, false), 0);
}

/* A failure of every program that sorts, slices and has a constant. */
static bool sorts(const char *text, void *arg)
{
	char *copy = strdup(text);
	struct program p;
	struct err err;
	bool shows;

	(void)arg;
	if (!copy || program_read(copy, &p, &err))
		return false;
	program_fill(&p, 1);
	shows = run_evaluator(&p, &err) == SAME && strstr(text, "sort(") &&
		strstr(text, "slice(") && strstr(text, "constant(");
	program_free(&p);
	return shows;
}

static void reduced_programs_are_of_small_arrays(void **state)
{
	static const char text[] =
		"module() () {\n"
		"  func() {sym_name = \"main\"} (%0: tensor<9x6xi32>) {\n"
		"    %1 = constant() {value = dense<0x"
		"000000000100000002000000030000000400000005000000> : tensor<6xi32>}"
		" : tensor<6xi32> # i\n"
		"    %2 = broadcast_in_dim(%1) {broadcast_dimensions = [1]} : tensor<9x6xi32> # i\n"
		"    %3 = slice(%0) {start_indices = [0, 0], limit_indices = [9, 6],"
		" strides = [1, 1]} : tensor<9x6xi32> # i\n"
		"    %4 = add(%3, %2) : tensor<9x6xi32> # i\n"
		"    %5 = sort(%4) {dimension = 1, is_stable = true} : tensor<9x6xi32>"
		" (%6: tensor<i32>, %7: tensor<i32>) {\n"
		"      %8 = compare(%6, %7) {comparison_direction = <LT>, compare_type = <SIGNED>}"
		" : tensor<i1> # i\n"
		"      return(%8)\n"
		"    } # i\n"
		"    return(%5)\n"
		"  }\n"
		"}\n";
	char *small;

	(void)state;
	small = reduce_program(text, sorts, NULL);
	assert_non_null(small);
	assert_null(strstr(small, "9x"));
	assert_null(strstr(small, "6x"));
	assert_non_null(strstr(small, "tensor<1x1xi32>"));
	free(small);
}

/* A failure of constants that are added and have two rows and three columns at least. */
static bool has_corner(const char *text, void *arg)
{
	char *copy = strdup(text);
	struct program p;
	struct err err;
	bool shows;

	(void)arg;
	if (!copy || program_read(copy, &p, &err))
		return false;
	shows = p.results[0].dim[0] >= 2 && p.results[0].dim[1] >= 3 && strstr(text, "add(") &&
		strstr(text, "constant(");
	program_free(&p);
	return shows;
}

static void reduced_constants_keep_their_first_elements(void **state)
{
	static const char text[] =
		"module() () {\n"
		"  func() {sym_name = \"main\"} (%0: tensor<4x7xi8>) {\n"
		"    %1 = constant() {value = dense<0x"
		"00010203040506101112131415162021222324252630313233343536> : tensor<4x7xi8>}"
		" : tensor<4x7xi8> # i\n"
		"    %2 = add(%0, %1) : tensor<4x7xi8> # i\n"
		"    return(%2)\n"
		"  }\n"
		"}\n";
	char *small = reduce_program(text, has_corner, NULL);

	(void)state;
	assert_non_null(small);
	assert_non_null(strstr(small, "dense<0x000102101112> : tensor<2x3xi8>"));
	free(small);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(found_programs_are_the_same_on_device_and_evaluator),
		cmocka_unit_test(a_seed_gives_one_program),
		cmocka_unit_test(comparison_sees_the_least_difference),
		cmocka_unit_test(reduced_programs_are_of_small_arrays),
		cmocka_unit_test(reduced_constants_keep_their_first_elements),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
