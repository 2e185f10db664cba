/* SPDX-License-Identifier: Apache-2.0 */
/* A link that is down: whose copies fail and whose do not, what the chips say of it, and what
 * brings it up. Programs that wait for each other meanwhile are in tests/conformance/link.c. */
#include "tests/unit/sim/sim_test.h"

#define N 8
#define PEER_VA (1ull << 44)	/* where chip k's window is seen: PEER_VA + (k << 36) */

static struct t_sim t[N];

static uint64_t peer_va(unsigned chip)
{
	return PEER_VA + ((uint64_t)chip << 36);
}

static void lend_to_all(unsigned chip)
{
	uint64_t key = 0;

	assert_int_equal(t_lend(&t[chip], T_HBM_VA, t[chip].hbm_bytes, &key), 0);
	for (unsigned i = 0; i < N; i++) {
		struct hw_peer_map m = { .va = peer_va(chip), .bytes = t[chip].hbm_bytes,
					 .key = key, .chip = chip };

		if (i == chip)
			continue;
		t_unmap(&t[i], t[i].ctx, m.va);
		assert_int_equal(t_borrow(&t[i], m), 0);
	}
}

static int setup(void **state)
{
	(void)state;
	t_open_chips(t, N, "devices=8,lanes=1,hbm=64M");
	for (unsigned i = 0; i < N; i++)
		lend_to_all(i);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	t_close_chips(t, N);
	return 0;
}

static struct hw_link link_of(unsigned chip, unsigned port)
{
	struct hw_link l;

	assert_int_equal(t_admin(&t[chip], HW_LOG_PAGE, HW_LOG_LINKS, 0), 0);
	memcpy(&l, (char *)t_args(&t[chip]) + port * sizeof(l), sizeof(l));
	return l;
}

/* The status of a copy; one that fails says which chip it was for, and that a link is why. */
static unsigned copy(unsigned from, unsigned to)
{
	unsigned status = t_ask(&t[from], &t[from].dma, (struct hw_sqe){ .op = HW_COPY,
		.u.copy = { T_HBM_VA, peer_va(to), 4096 } });

	if (!status)
		return 0;
	t_last_fault(&t[from]);
	assert_int_equal(t[from].fault.va, to);
	assert_int_equal(t[from].fault.bytes, HW_ST_LINK);
	assert_int_equal(t_reset(&t[from], &t[from].dma), 0);
	return status;
}

/* Chips are in two rows of four, 0 to 3 and 4 to 7, and packets go along the row first. */
static void only_what_goes_over_it_fails(void **state)
{
	static const unsigned cut[][2] = { { 0, 1 }, { 1, 0 }, { 0, 5 }, { 0, 2 }, { 3, 1 } };
	static const unsigned whole[][2] = { { 0, 3 }, { 0, 4 }, { 1, 2 }, { 5, 0 }, { 2, 0 },
					     { 4, 5 } };
	uint64_t errors = link_of(0, 0).n_errors;

	(void)state;
	assert_int_equal(t_admin(&t[0], HW_INJECT, HW_INJECT_LINK_DOWN, 0), 0);
	for (size_t i = 0; i < sizeof(cut) / sizeof(*cut); i++)
		assert_int_equal(copy(cut[i][0], cut[i][1]), HW_ST_PEER);
	for (size_t i = 0; i < sizeof(whole) / sizeof(*whole); i++)
		assert_int_equal(copy(whole[i][0], whole[i][1]), 0);
	assert_int_equal(link_of(0, 0).n_errors, errors + 3);
	assert_int_equal(link_of(0, 0).is, HW_LINK_DOWN);
	assert_int_equal(link_of(0, 1).is, HW_LINK_UP);
	assert_int_equal(link_of(1, 0).is, HW_LINK_UP);
	assert_int_equal(link_of(1, 1).is, HW_LINK_DOWN);
	assert_int_equal(t_admin(&t[0], HW_INJECT, HW_INJECT_LINK_DOWN, 3), HW_ST_BAD_FIELD);
	assert_int_equal(t_admin(&t[0], HW_INJECT, HW_INJECT_LINK_DOWN, ~0ull),
			 HW_ST_BAD_FIELD);
}

static void a_reset_at_either_end_brings_it_up(void **state)
{
	(void)state;
	for (unsigned end = 0; end < 2; end++) {
		/* Told twice, from both ends, it is down once. */
		assert_int_equal(t_admin(&t[0], HW_INJECT, HW_INJECT_LINK_DOWN, 0), 0);
		assert_int_equal(t_admin(&t[1], HW_INJECT, HW_INJECT_LINK_DOWN, 1), 0);
		sim_flr(t[2].dev);
		t_bring_up(&t[2]);
		assert_int_equal(link_of(0, 0).is, HW_LINK_DOWN);
		assert_int_equal(copy(0, 1), HW_ST_PEER);
		sim_flr(t[end].dev);
		t_bring_up(&t[end]);
		assert_int_equal(link_of(0, 0).is, HW_LINK_UP);
		assert_int_equal(link_of(1, 1).is, HW_LINK_UP);
		for (unsigned i = 0; i < N; i++)
			lend_to_all(i);
		assert_int_equal(copy(0, 1), 0);
		assert_int_equal(copy(3, 1), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_what_goes_over_it_fails),
		cmocka_unit_test(a_reset_at_either_end_brings_it_up),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
