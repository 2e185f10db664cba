/* SPDX-License-Identifier: Apache-2.0 */
/* Small programs that meet run on the thread that rings: whoever rings for the last member goes on
 * with all the others, and nobody is woken, if all have one host. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tests/unit/chips/chips.h"

#define TURNS 100

/* A doorbell goes on with other chips' members for 200 us. Under the thread sanitizer these are
 * over before all have ended, and the crew goes on with the rest. */
#ifdef __SANITIZE_THREAD__
enum { LEAST = 0 };
#else
enum { LEAST = TURNS / 2 };
#endif

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
		assert_in_range(meet_often(&m), LEAST, TURNS);
		unload(&m);
	}
}

/* A run may have taken two thirds of INLINE_NS: here somewhat less, which is more than a third. */
static void members_that_take_as_long_as_waking_does_run_at_once(void **state)
{
	struct meeting m = { .n = 2, .elements = 64 };
	unsigned n_at_once = 0;

	(void)state;
	prepare(&m, ring_all_reduce);
	meet_often(&m);
	for (unsigned turn = 0; turn < TURNS; turn++) {
		for (unsigned r = 0; r < m.n; r++)
			assert_int_equal(t_admin(&t[r], HW_SET_FEATURE, HW_FEATURE_INLINE_NS,
						 t[r].cqe.value * 2), 0);
		for (unsigned r = 0; r < m.n; r++)
			begin(&m, r);
		n_at_once += take_all(&m);
	}
	unload(&m);
	assert_true(n_at_once > TURNS / 2);
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

/* What a chip is told of is known to be told of on the thread that runs it. */
static struct host_memory { struct sim_far far; unsigned chip; } memory[N];
static pthread_t bell;
static atomic_uint rung, n_for_others, n_told;

static void note_thread(struct sim_far *far)
{
	const struct host_memory *m = (const void *)far;

	atomic_fetch_add(&n_told, 1);
	if (pthread_equal(pthread_self(), bell) && m->chip != atomic_load(&rung))
		atomic_fetch_add(&n_for_others, 1);
}

static bool holds_nothing(struct sim_far *far, const void *at)
{
	(void)far;
	(void)at;
	return false;
}

/* Each of them may wait for its own host, for as long as that likes. */
static void who_rings_for_one_host_works_for_no_other(void **state)
{
	struct meeting m = { .n = N, .elements = 64 };

	(void)state;
	bell = pthread_self();
	for (unsigned i = 0; i < N; i++) {
		memory[i] = (struct host_memory){ .chip = i, .far = { .is_kept = true,
			.send = note_thread, .forget = note_thread, .holds = holds_nothing } };
		sim_set_far(t[i].dev, &memory[i].far);
		sim_keep_apart(t[i].dev);
		assert_int_equal(t_admin(&t[i], HW_SET_FEATURE, HW_FEATURE_INLINE_NS,
					 1000000000), 0);
	}
	prepare(&m, ring_all_pairs);
	for (unsigned turn = 0; turn < TURNS; turn++) {
		fill(&m);
		for (unsigned r = 0; r < N; r++) {
			atomic_store(&rung, (r + turn) % N);
			begin(&m, (r + turn) % N);
		}
		take_all(&m);
		check_sums(&m);
	}
	unload(&m);
	assert_true(n_told);
	assert_int_equal(n_for_others, 0);
}

/* An interrupt is raised with the chip's lock, and its host may keep that waiting. */
static void who_waits_for_its_host_keeps_no_linked_chip(void **state)
{
	uint64_t most = UINT64_MAX - 1;
	int fd = eventfd(0, EFD_CLOEXEC), told = 0;
	struct t_ring r;
	int64_t until;

	(void)state;
	assert_int_equal(write(fd, &most, sizeof(most)), sizeof(most));
	assert_int_equal(sim_irq_fd(t[1].dev, 1, fd, NULL), 0);
	sim_mmio_write(t[1].dev, HW_MSIX_TABLE + 16 + 12, 4, 0);
	assert_int_equal(t_queue(&t[1], &r, (struct hw_queue){ .ctx = (uint16_t)t[1].ctx,
			 .cls = HW_CLASS_DMA, .vector = 1 }), 0);
	t_put(&t[1], &r, (struct hw_sqe){ .op = HW_FILL, .flags = HW_IRQ,
					  .u.copy = { 1, T_HBM_VA, 8 } });
	t_ring_bell(&t[1], &r);
	assert_int_equal(t_take(&t[1], &r), 0);
	t_put(&t[0], &t[0].dma, (struct hw_sqe){ .op = HW_COPY,
						 .u.copy = { T_HBM_VA, peer_va(1) + DATA, 4096 } });
	t_ring_bell(&t[0], &t[0].dma);
	until = clock_after(T_ANSWER_NS / 4);
	while (!told && clock_ns() < until)
		told = t_poll(&t[0], &t[0].dma);
	assert_int_equal(read(fd, &most, sizeof(most)), sizeof(most));
	assert_true(told);
	assert_int_equal(t[0].cqe.status, 0);
	assert_int_equal(sim_irq_fd(t[1].dev, 1, -1, NULL), 0);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_rings_last_ends_all_members),
		cmocka_unit_test(members_that_take_as_long_as_waking_does_run_at_once),
		cmocka_unit_test(who_may_not_be_run_so_is_left_to_the_crew),
		cmocka_unit_test(who_waits_for_its_host_keeps_no_linked_chip),
		cmocka_unit_test(who_rings_for_one_host_works_for_no_other),
	};

	return cmocka_run_group_tests(tests, setup_small, teardown);
}
