/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs of four replicas as torch_xla sends them (tests/data/torch), by a gang of
 * evaluators: as they come, and with their collectives taken apart. XLA's CPU backend says
 * what is right. And small programs with each of the forms in which bytecode says who meets.
 */
#include "tests/unit/replicas.h"

static void replicas_of_torch_give_what_xla_gives(void **state)
{
	const struct tc_options o[] = {
		{ .level = 1, .replicas = TORCH_REPLICAS, .verify = true,
		  .evaluate_after = "host" },
		{ .level = 1, .replicas = TORCH_REPLICAS, .verify = true,
		  .evaluate_after = "collectives" },
	};

	(void)state;
	replicas_check_all(o, 2, tc_eval_gang);
}

/* ---- the forms in which StableHLO says who meets ---- */

/* Member m brings m + 1, and ten, hundred and thousand times as much. */
static const struct form {
	const char *name;
	unsigned replicas, partitions;
	float out[8];		/* the first element */
} forms[] = {
	{ "axis_part", 1, 8, { 4, 6, 4, 6, 12, 14, 12, 14 } },
	{ "axes_two", 1, 8, { 1, 1, 1, 1, 1, 1, 1, 1 } },
	{ "axes_ids", 1, 4, { 5, 5, 5, 5 } },
	{ "axes_named", 1, 8, { 10, 10, 10, 10, 26, 26, 26, 26 } },
	{ "cross_replica_sum", 2, 1, { 3, 3 } },
	{ "cross_replica_sum", 2, 2, { 4, 6, 4, 6 } },
	{ "broadcast", 2, 1, { 2, 2 } },
	{ "to_all_old", 2, 1, { 200, 2 } },
	{ "reduce_all", 3, 2, { 9, 12, 9, 12, 9, 12 } },
	{ "reduce_all", 1, 1, { 1 } },
};

static void evaluate_form(const struct form *f)
{
	struct tc_source s = { .format = "mlir" };
	struct tc_array args[8], *outs;
	unsigned members = f->replicas * f->partitions;
	float in[8][4];
	char path[128];
	struct err err;
	size_t n;

	snprintf(path, sizeof(path), "tests/data/spmd/groups/%s.mlirbc", f->name);
	s.code = torch_read_file(path, &s.bytes);
	assert_non_null(s.code);
	for (unsigned m = 0; m < members; m++) {
		for (unsigned i = 0; i < 4; i++)
			in[m][i] = (float)(m + 1) * (i > 2 ? 1000 : i > 1 ? 100 : i ? 10 : 1);
		args[m] = (struct tc_array){ .elem = ELEM_F32, .rank = 1, .dim = { 4 },
					     .data = in[m], .bytes = 16 };
	}
	for (unsigned k = 0; k < 2; k++) {
		struct tc_options o = { .replicas = f->replicas, .partitions = f->partitions,
					.level = 1, .evaluate_after = k ? "collectives" : NULL };

		if (tc_eval_gang(&s, &o, args, 1, &outs, &n, &err))
			fail_msg("%s: %s", f->name, err.msg);
		for (unsigned m = 0; m < members; m++)
			if (memcmp(outs[m].data, &f->out[m], 4))
				fail_msg("%s: %g at member %u of %u", f->name,
					 (double)*(float *)outs[m].data, m, members);
		/* y is the major axis of the groups, x of the mesh. */
		for (unsigned i = 0; !strcmp(f->name, "axes_two") && i < 8; i++)
			assert_int_equal(((float *)outs[0].data)[4 * i], 1 + i / 2 + i % 2 * 4);
		tc_array_free(outs, members);
	}
	free((void *)(uintptr_t)s.code);
}

static void groups_are_read_in_every_form(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++)
		evaluate_form(&forms[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replicas_of_torch_give_what_xla_gives),
		cmocka_unit_test(groups_are_read_in_every_form),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
