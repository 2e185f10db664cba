/* SPDX-License-Identifier: Apache-2.0 */
/* The programs of tests/data/fuzz_ops, each of which once gave something else on the
 * device than in the evaluator, or was refused. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
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
		if (program_generate(seed, &a, &err) || program_generate(seed, &b, &err))
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(found_programs_are_the_same_on_device_and_evaluator),
		cmocka_unit_test(a_seed_gives_one_program),
		cmocka_unit_test(comparison_sees_the_least_difference),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
