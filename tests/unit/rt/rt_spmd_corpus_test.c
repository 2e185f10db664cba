/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JAX's and torch_xla's programs for several devices through the runtime, as a framework runs
 * them: compiled for members on devices in any order, arguments as buffers, launched again
 * before the first launch is over. Both launches give the parts of what XLA's CPU backend gives.
 *
 * TESSERA_SPMD=text runs the programs whose names contain it.
 */
#include "tests/unit/rt/rt_members.h"
#include "tests/unit/spmd.h"

/* Programs that do not compile, and what their error says. */
static const struct { const char *name, *says; } refused[] = {
	{ "jit__custom_partitioning", "(custom_partitioning), and none is registered" },
};

static unsigned n_refused;

static int start(void **state)
{
	return start_devices(state) || load_programs(state);
}

static int stop(void **state)
{
	stop_devices(state);
	return unload_programs(state);
}

/* Says what the table says. */
static bool is_refused(const struct program *p)
{
	struct rt_gang g;
	struct err err;

	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
		if (strcmp(p->name, refused[i].name))
			continue;
		assert_int_equal(compile(&g, &(struct tc_source){ p->code, p->bytes, p->format },
					 1, p->partitions, &err), ERR_UNIMPLEMENTED);
		if (!strstr(err.msg, refused[i].says))
			fail_msg("%s: %s", p->name, err.msg);
		n_refused++;
		return true;
	}
	return false;
}

static void programs_give_the_parts_of_what_one_device_gives(void **state)
{
	const struct tc_options o = { .level = 1 };
	const char *only = getenv("TESSERA_SPMD");
	unsigned n = 0, n_wrong = 0;

	(void)state;
	for (unsigned i = 0; i < n_programs; i++) {
		if ((only && !strstr(programs[i].name, only)) || is_refused(&programs[i]))
			continue;
		n++;
		n_wrong += !agrees(&programs[i], &o, evaluate_on_devices);
	}
	print_message("%u of %u programs agree, refused: %u\n", n - n_wrong, n, n_refused);
	assert_int_equal(n_wrong, 0);
	if (only)
		return;
	assert_int_equal(n_refused, sizeof(refused) / sizeof(*refused));
	assert_true(n >= 450);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(programs_give_the_parts_of_what_one_device_gives),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
