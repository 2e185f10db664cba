/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs of four replicas as torch_xla sends them (tests/data/torch/replicated) through the
 * runtime, on four of eight devices in any order, each launched twice at once: they give what
 * XLA's CPU backend gives.
 */
#include "tests/unit/replicas.h"
#include "tests/unit/rt/rt_members.h"

static void replicas_of_torch_give_what_xla_gives(void **state)
{
	(void)state;
	replicas_check_all(&(struct tc_options){ .replicas = TORCH_REPLICAS }, 1,
			   evaluate_on_devices);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replicas_of_torch_give_what_xla_gives),
	};

	return cmocka_run_group_tests(tests, start_devices, stop_devices);
}
