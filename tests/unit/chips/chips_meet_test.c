/* SPDX-License-Identifier: Apache-2.0 */
/* Small programs that meet run on the thread that rings: whoever rings for the last member goes on
 * with all the others, and nobody is woken. */
#include "tests/unit/chips/chips.h"

#define TURNS 100

/* However busy the machine is, a run is small. */
static int setup_small(void **state)
{
	setup(state);
	hint = HW_INLINE;
	for (unsigned i = 0; i < N; i++)
		assert_int_equal(t_admin(&t[i], HW_SET_FEATURE, HW_FEATURE_INLINE_NS,
					 1000000000), 0);
	return 0;
}

/* Takes all members' completions; whether all were there already. */
static bool take_all(const struct meeting *m)
{
	bool were_there = true;

	for (unsigned r = 0; r < m->n; r++)
		if (t_poll(&t[r], &t[r].work)) {
			assert_int_equal(t[r].cqe.status, 0);
		} else {
			were_there = false;
			assert_int_equal(t_take(&t[r], &t[r].work), 0);
		}
	return were_there;
}

/* How often all members had ended when the last bell returned. */
static unsigned meet_often(const struct meeting *m)
{
	unsigned n_at_once = 0;

	for (unsigned turn = 0; turn < TURNS; turn++) {
		fill(m);
		for (unsigned r = 0; r < m->n; r++)
			begin(m, (r + turn) % m->n);
		n_at_once += take_all(m);
		check_sums(m);
	}
	return n_at_once;
}

/* Time that another program takes from the thread counts as its own, so not each time. */
static void who_rings_last_ends_all_members(void **state)
{
	void (*const make[])(struct ring_code *) = { ring_all_pairs, ring_all_reduce };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct meeting m = { .n = N, .elements = 64 };

		prepare(&m, make[i]);
		assert_true(meet_often(&m) > TURNS / 2);
		unload(&m);
	}
}

/* Some chips let nobody lend them a thread. */
static void who_may_not_be_run_so_is_left_to_the_crew(void **state)
{
	struct meeting m = { .n = N, .elements = 64 };

	(void)state;
	prepare(&m, ring_all_reduce);
	for (unsigned some = 1; some < 1u << N; some = some * 3 + 1) {
		for (unsigned i = 0; i < N; i++)
			assert_int_equal(t_admin(&t[i], HW_SET_FEATURE, HW_FEATURE_INLINE_NS,
						 some >> i & 1 ? 0 : 1000000000), 0);
		meet_often(&m);
	}
	unload(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_rings_last_ends_all_members),
		cmocka_unit_test(who_may_not_be_run_so_is_left_to_the_crew),
	};

	return cmocka_run_group_tests(tests, setup_small, teardown);
}
