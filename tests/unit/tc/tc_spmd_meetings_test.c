/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often the members of a program meet, beside the collectives that XLA's CPU backend leaves
 * of it (JAX 0.10.2, 8 devices; tests/data/spmd/collectives.txt: program, number). An exchange
 * and a permutation count one each.
 */
#include "tests/unit/spmd.h"

/* Programs in which we meet more often, and why. */
static const struct { const char *name, *why; } more[] = {
	{ "jit__zero_size", "a slice of nothing is taken of what was collected" },
};

static bool is_excused(const char *name)
{
	for (size_t i = 0; i < sizeof(more) / sizeof(*more); i++)
		if (!strcmp(more[i].name, name))
			return true;
	return false;
}

static unsigned occurs(const char *text, const char *word)
{
	unsigned n = 0;

	for (text = strstr(text, word); text; text = strstr(text + 1, word))
		n++;
	return n;
}

static unsigned meetings_of(const struct program *p)
{
	const struct tc_options o = { .level = 1, .partitions = p->partitions };
	struct err err;
	unsigned n;
	char *ir;

	if (tc_print(&(struct tc_source){ p->code, p->bytes, p->format }, &o, "combine", &ir,
		     &err))
		fail_msg("%s: %s", p->name, err.msg);
	n = occurs(ir, "tc.exchange(") + occurs(ir, "collective_permute(");
	free(ir);
	return n;
}

static const struct program *find(const char *name)
{
	for (unsigned i = 0; i < n_programs; i++)
		if (!strcmp(programs[i].name, name))
			return &programs[i];
	fail_msg("no program %s", name);
	return NULL;
}

static void members_meet_no_more_often_than_with_xla(void **state)
{
	FILE *f = fopen("tests/data/spmd/collectives.txt", "r");
	unsigned xla, all = 0, all_xla = 0, n = 0, n_fewer = 0, n_odd = 0;
	char name[64];

	(void)state;
	assert_non_null(f);
	while (fscanf(f, "%63s %u", name, &xla) == 2) {
		unsigned is = meetings_of(find(name));

		if ((is > xla) != is_excused(name)) {
			print_message("%s: %u meetings, %u with XLA\n", name, is, xla);
			n_odd++;
		}
		n_fewer += is < xla;
		all += is;
		all_xla += xla;
		n++;
	}
	fclose(f);
	print_message("%u programs, %u meetings, %u with XLA; fewer in %u\n", n, all, all_xla,
		      n_fewer);
	assert_int_equal(n, 322);
	assert_int_equal(n_odd, 0);
	assert_true(all < all_xla);
}

/* That XLA takes it and gets the same results: tests/jax/devices/shown.py. */
static void what_a_member_runs_can_be_shown(void **state)
{
	unsigned n_shown = 0;

	(void)state;
	for (unsigned i = 0; i < n_programs; i++) {
		const struct program *p = &programs[i];
		const struct tc_options o = { .level = 1, .partitions = p->partitions };
		struct err err;
		size_t bytes;
		char *text;

		if (tc_member_program(&(struct tc_source){ p->code, p->bytes, p->format }, &o,
				      &text, &bytes, &err)) {
			if (!strstr(err.msg, "does not run yet") &&
			    !strstr(err.msg, "(custom_partitioning), and none is registered"))
				fail_msg("%s: %s", p->name, err.msg);
			continue;
		}
		n_shown++;
		assert_int_equal(strlen(text), bytes);
		assert_non_null(strstr(text, "func.return"));
		assert_null(strstr(text, "tc."));
		free(text);
	}
	assert_true(n_shown > n_programs - 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_meet_no_more_often_than_with_xla),
		cmocka_unit_test(what_a_member_runs_can_be_shown),
	};

	return cmocka_run_group_tests(tests, load_programs, unload_programs);
}
