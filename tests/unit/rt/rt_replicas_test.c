/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs of four replicas as torch_xla sends them (tests/data/torch/replicated) through the
 * runtime, on four of eight devices in any order, each launched twice at once: they give what
 * XLA's CPU backend gives. And whose code may tell where others have their results.
 */
#include "tests/unit/replicas.h"
#include "tests/unit/rt/rt_members.h"

static void replicas_of_torch_give_what_xla_gives(void **state)
{
	(void)state;
	replicas_check_all(&(struct tc_options){ .replicas = TORCH_REPLICAS }, 1,
			   evaluate_on_devices);
}

/* Replicas may come one by one, each on a thread of its own, and so may processes. */
static void only_who_launches_all_members_knows_their_memory(void **state)
{
	static const char text[] =
		"module() {sym_name = \"all\"} () {\n"
		"func() {sym_name = \"main\"} (%0: tensor<262144xf32>) {\n"
		"%1 = tc.exchange(%0) {replica_groups = [0, 1], group_size = 2, is_same = true} "
		": tensor<2x262144xf32>\nreturn(%1)\n}\n}\n";
	static const unsigned devices[] = { 0, 1 };
	static const struct { unsigned replicas, partitions; bool has_all, knows; } cases[] = {
		{ 1, 2, true, true }, { 1, 2, false, false }, { 2, 1, true, false },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct rt_target target = { .cores = 1, .memory_bytes = 1 << 30,
						  .has_all = cases[i].has_all };
		uint8_t options[256];
		size_t bytes = options_of(devices, cases[i].replicas, cases[i].partitions,
					  options);
		struct rt_program *p;
		struct err err;

		if (rt_program_compile(&target, text, strlen(text), "mlir", options, bytes, &p,
				       &err))
			fail_msg("%s", err.msg);
		assert_int_equal(image_is_for_one_process(rt_program_image(p)), cases[i].knows);
		rt_program_unref(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_who_launches_all_members_knows_their_memory),
		cmocka_unit_test(replicas_of_torch_give_what_xla_gives),
	};

	return cmocka_run_group_tests(tests, start_devices, stop_devices);
}
