/* SPDX-License-Identifier: Apache-2.0 */
/* Ops at the edges of what they may be: nothing to do, sizes of 0, kinds that differ. */
#include "tests/unit/against_eval.h"

static void arrays_without_elements_have_constants(void **state)
{
	(void)state;
	file_runs_as_evaluated("empty_splats");
	file_runs_as_evaluated("empty_lists");
}

static void no_random_bits_leave_the_key(void **state)
{
	static const char *const algorithms[] = { "DEFAULT", "THREE_FRY", "PHILOX" };
	static const char *const sizes[] = { "0xui32", "3x0xui64", "0xui8", "5xui32" };
	char text[1024];

	(void)state;
	for (unsigned a = 0; a < 3; a++)
		for (unsigned i = 0; i < 4; i++) {
			snprintf(text, sizeof(text), PROGRAM("%%1: tensor<2xui64>",
				"%%2, %%3 = rng_bit_generator(%%1) {rng_algorithm = <%s>} : "
				"tensor<2xui64>, tensor<%s>\nreturn(%%2, %%3)"), algorithms[a],
				sizes[i]);
			runs_as_evaluated(text);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arrays_without_elements_have_constants),
		cmocka_unit_test(no_random_bits_leave_the_key),
	};

	return cmocka_run_group_tests(tests, against_eval_start, against_eval_stop);
}
