/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs of four replicas as torch_xla sends them (tests/data/torch/replicated) through the
 * runtime, on four of eight devices in any order, each launched twice at once: they give what
 * XLA's CPU backend gives.
 */
#include "tests/unit/replicas.h"
#include "tests/unit/rt/rt_members.h"

static void try(const struct torch_program *p, void *arg)
{
	replicas_check(p, &(struct tc_options){ .replicas = TORCH_REPLICAS },
		       evaluate_on_devices);
	++*(unsigned *)arg;
}

static void replicas_of_torch_give_what_xla_gives(void **state)
{
	const char *only = getenv("TESSERA_TORCH");
	unsigned n = 0;
	int found = torch_each_in(TORCH_REPLICATED, only, try, &n);

	(void)state;
	assert_int_equal(found, n);
	if (!only)
		assert_int_equal(n, TORCH_REPLICATED_COUNT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replicas_of_torch_give_what_xla_gives),
	};

	return cmocka_run_group_tests(tests, start_devices, stop_devices);
}
