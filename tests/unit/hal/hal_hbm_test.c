/* SPDX-License-Identifier: Apache-2.0 */
/* HBM that the kernel driver, which tests/fake plays, deals out among processes: taken as it is
 * needed, given back when nothing is in it, and honest about what the others have. A card of
 * 64 MiB, of which small blocks take 2 MiB at a time and at most 16 MiB are kept idle. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hal/base/clock.h"
#include "hal/hal.h"
#include "tests/fake/accel_fake.h"

#define NODE "accel:/dev/accel/accel0"
#define MIB ((uint64_t)1 << 20)
#define SECOND 1000000000ll

/* A process, as far as the driver sees: an open node. */
struct user {
	struct hal *hal;
	struct hal_device *dev;
};

static struct user one;

static void enter(struct user *u)
{
	struct err err;

	if (hal_create(&(struct hal_options){ .devices = NODE }, &u->hal, &err) ||
	    hal_device_open(u->hal, 0, &u->dev, &err))
		fail_msg("%s", err.msg);
}

static int start(void **state)
{
	unsetenv("TESSERA_HBM_BYTES");
	if (fake_open_card(64 * MIB))
		return -1;
	enter(&one);
	(void)state;
	return 0;
}

static int stop(void **state)
{
	(void)state;
	hal_destroy(one.hal);
	if (!fake_is_empty())
		return -1;
	fake_close_card();
	return 0;
}

static struct hal_mem *get(struct user *u, uint64_t bytes, const char *tag)
{
	struct hal_mem *m;
	struct err err;

	if (hal_mem_alloc(u->dev, HAL_MEM_HBM, bytes, tag, &m, &err))
		fail_msg("%s", err.msg);
	return m;
}

static void refuse(struct user *u, uint64_t bytes, struct err *err)
{
	struct hal_mem *m;

	assert_int_equal(hal_mem_alloc(u->dev, HAL_MEM_HBM, bytes, "x", &m, err),
			 ERR_RESOURCE_EXHAUSTED);
}

/* What the driver has given out, and in how many buffers. */
static uint64_t taken(unsigned *n)
{
	uint64_t sum = 0;

	*n = 0;
	pthread_mutex_lock(&fake.lock);
	for (const struct fake_bo *b = fake.bos; b; b = b->next)
		if (b->kind == FAKE_HBM) {
			sum += b->bytes;
			++*n;
		}
	pthread_mutex_unlock(&fake.lock);
	return sum;
}

static void expect_taken(uint64_t bytes, unsigned n)
{
	unsigned got;

	assert_int_equal(taken(&got), bytes);
	assert_int_equal(got, n);
}

/* Until the waiter has given back what is idle. */
static void await_taken(uint64_t bytes)
{
	int64_t deadline = clock_after(20 * SECOND);
	unsigned n;

	while (taken(&n) != bytes)
		if (clock_ns() > deadline)
			fail_msg("%llu bytes are still taken, %llu should be",
				 (unsigned long long)taken(&n), (unsigned long long)bytes);
		else
			usleep(10000);
}

static struct hal_mem_stats stats_of(struct user *u)
{
	struct hal_mem_stats s;

	hal_mem_stats(u->dev, HAL_MEM_HBM, &s);
	return s;
}

static void fill(struct user *u, struct hal_mem *m, uint64_t pattern)
{
	struct hal_queue *q = hal_device_queue(u->dev, HAL_QUEUE_DMA);
	uint64_t value;
	struct err err;

	assert_int_equal(hal_queue_fill(q, m, 0, hal_mem_bytes(m), pattern, &value, &err), 0);
	assert_int_equal(hal_queue_wait(q, value, clock_after(10 * SECOND), &err), 0);
}

static void holds(struct hal_mem *m, uint64_t pattern)
{
	uint64_t bytes = hal_mem_bytes(m), *x = malloc(bytes);
	struct err err;

	assert_int_equal(hal_copy_out(x, m, 0, bytes, CLOCK_FOREVER, &err), 0);
	for (uint64_t i = 0; i < bytes / 8; i++)
		assert_int_equal(x[i], pattern);
	free(x);
}

static void memory_is_taken_as_it_is_needed(void **state)
{
	struct hal_mem *m[4], *large;

	(void)state;
	expect_taken(0, 0);
	m[0] = get(&one, 1, "a");
	expect_taken(2 * MIB, 1);
	m[1] = get(&one, MIB, "b");
	expect_taken(2 * MIB, 1);
	m[2] = get(&one, MIB, "c");
	expect_taken(4 * MIB, 2);
	large = get(&one, 30 * MIB + 1, "d");
	expect_taken(36 * MIB, 3);
	/* In the rest of it. */
	m[3] = get(&one, 2 * MIB - 64, "e");
	expect_taken(36 * MIB, 3);
	for (unsigned i = 0; i < 4; i++)
		fill(&one, m[i], 0x100 + i);
	fill(&one, large, 7);
	holds(m[1], 0x101);
	holds(m[2], 0x102);
	holds(m[3], 0x103);
	holds(large, 7);
	hal_mem_free(m[3]);
	expect_taken(36 * MIB, 3);
	/* More than a quarter of the card is not kept for a moment. */
	hal_mem_free(large);
	expect_taken(4 * MIB, 2);
	hal_mem_free(m[2]);
	expect_taken(4 * MIB, 2);
	await_taken(2 * MIB);
	holds(m[1], 0x101);
	hal_mem_free(m[0]);
	hal_mem_free(m[1]);
	await_taken(0);
}

static void what_is_idle_is_used_again(void **state)
{
	struct hal_mem *m = get(&one, 10 * MIB, "a");
	long before;

	(void)state;
	expect_taken(10 * MIB, 1);
	hal_mem_free(m);
	before = fake.n_calls;
	for (int i = 0; i < 100; i++) {
		m = get(&one, 10 * MIB - 64 * (uint64_t)i, "a");
		hal_mem_free(m);
	}
	/* No call of the driver. */
	assert_int_equal(fake.n_calls, before);
	/* It stands in the way of something larger: it goes. */
	m = get(&one, 60 * MIB, "b");
	expect_taken(60 * MIB, 1);
	hal_mem_free(m);
	expect_taken(0, 0);
}

static void two_fill_the_card_in_turn(void **state)
{
	char node[100], link[100];
	struct hal_mem *m, *n;
	struct user other;
	struct err err;

	(void)state;
	enter(&other);
	for (unsigned round = 0; round < 3; round++) {
		m = get(&one, 40 * MIB, "weights");
		fill(&one, m, 1);
		assert_int_equal(stats_of(&one).limit_bytes, 64 * MIB);
		assert_int_equal(stats_of(&other).limit_bytes, 24 * MIB);
		assert_int_equal(stats_of(&other).largest_free_bytes, 24 * MIB);
		refuse(&other, 40 * MIB, &err);
		assert_non_null(strstr(err.msg, "free are 25165824 of 67108864, the largest free "
				       "block is 25165824. Others hold 41943040 bytes of the "
				       "card: "));
		/* What is left it may have. */
		n = get(&other, 24 * MIB, "y");
		fill(&other, n, 2);
		assert_int_equal(stats_of(&one).limit_bytes, 40 * MIB);
		assert_int_equal(stats_of(&one).largest_free_bytes, 0);
		holds(m, 1);
		hal_mem_free(n);
		hal_mem_free(m);
		n = get(&other, 40 * MIB, "y");
		holds(n, 0);
		refuse(&one, 40 * MIB, &err);
		if (round < 2)
			hal_mem_free(n);
	}
	/* Who holds it is named, as far as /proc tells. */
	fake_put("/proc/4711/comm", "trainer\n");
	fake_put("/proc/4711/fdinfo/5", "pos:\t0\ndrm-driver:\ttessera\ndrm-client-id:\t7\n"
		 "drm-total-hbm:\t30720 KiB\n");
	fake_put("/proc/4711/fdinfo/6", "drm-client-id:\t7\ndrm-total-hbm:\t30720 KiB\n");
	fake_put("/proc/4711/fdinfo/9", "drm-client-id:\t8\ndrm-total-hbm:\t1 MiB\n");
	fake_put("/proc/4712/comm", "elsewhere\n");
	fake_put("/proc/4712/fdinfo/5", "drm-client-id:\t9\ndrm-total-hbm:\t512 MiB\n");
	fake_put("/proc/4711/fd/0", "");
	fake_put("/proc/4712/fd/5", "");
	snprintf(node, sizeof(node), "%s/dev/accel/accel0", fake.root);
	for (unsigned fd = 5; fd < 10; fd += fd == 6 ? 3 : 1) {
		snprintf(link, sizeof(link), "%s/proc/4711/fd/%u", fake.root, fd);
		assert_int_equal(symlink(node, link), 0);
	}
	refuse(&one, 40 * MIB, &err);
	assert_non_null(strstr(err.msg, "Others hold 41943040 bytes of the card: process 4711 "
			       "(trainer) 32505856, processes that are not named here 9437184; "
			       "sudo xla-smi proc shows all"));
	assert_null(strstr(err.msg, "elsewhere"));
	/* Its end gives it to the other. */
	hal_destroy(other.hal);
	m = get(&one, 64 * MIB, "all");
	assert_int_equal(stats_of(&one).limit_bytes, 64 * MIB);
	hal_mem_free(m);
	refuse(&one, 65 * MIB, &err);
	assert_null(strstr(err.msg, "Others"));
}

static void a_process_keeps_to_what_it_wants(void **state)
{
	struct hal_mem *m[3];
	struct user other;
	struct err err;

	(void)state;
	setenv("TESSERA_HBM_BYTES", "5M", 1);
	enter(&other);
	unsetenv("TESSERA_HBM_BYTES");
	assert_int_equal(stats_of(&other).limit_bytes, 5 * MIB);
	for (unsigned i = 0; i < 3; i++)
		m[i] = get(&other, i < 2 ? 2 * MIB : MIB, "x");
	expect_taken(5 * MIB, 3);
	refuse(&other, 1, &err);
	assert_non_null(strstr(err.msg, "free are 0 of 5242880"));
	hal_mem_free(m[1]);
	refuse(&other, 2 * MIB + 1, &err);
	hal_mem_free(get(&other, 2 * MIB, "x"));
	hal_destroy(other.hal);
	expect_taken(0, 0);
}

static void small_pieces_of_a_full_card_are_had(void **state)
{
	struct hal_mem *m[3];
	struct user other;
	struct err err;

	(void)state;
	enter(&other);
	m[0] = get(&other, 63 * MIB + 4096, "most");
	/* Rounded up it would not fit, nor would as much as is taken at once. */
	expect_taken(64 * MIB, 1);
	hal_mem_free(m[0]);
	setenv("TESSERA_HBM_BYTES", "64507904", 1);	/* 63 MiB - 1.5 MiB - 4096 */
	hal_destroy(other.hal);
	enter(&other);
	unsetenv("TESSERA_HBM_BYTES");
	m[0] = get(&other, 64507904, "most");
	m[1] = get(&one, 2 * MIB, "x");
	m[2] = get(&one, 4096, "x");
	refuse(&one, MIB, &err);
	assert_int_equal(stats_of(&one).largest_free_bytes, 64 * MIB - 64507904 - 2 * MIB - 4096);
	hal_mem_free(m[1]);
	hal_mem_free(m[2]);
	hal_destroy(other.hal);
	await_taken(0);
}

static void a_view_keeps_what_it_shows(void **state)
{
	struct hal_mem *m = get(&one, 20 * MIB, "a"), *view, *no;
	uint64_t va = hal_mem_va(m);
	struct err err;

	(void)state;
	fill(&one, m, 5);
	assert_int_equal(hal_mem_view(one.dev, va + 4096, 8192, &view, &err), 0);
	/* Nor can one run over what is ours. */
	assert_int_equal(hal_mem_view(one.dev, va + 4096, 20 * MIB, &no, &err), ERR_NOT_FOUND);
	assert_int_equal(hal_mem_view(one.dev, va + 40 * MIB, 1, &no, &err), ERR_NOT_FOUND);
	hal_mem_free(m);
	expect_taken(20 * MIB, 1);
	holds(view, 5);
	hal_mem_free(view);
	expect_taken(0, 0);
	assert_int_equal(hal_mem_view(one.dev, va, 1, &no, &err), ERR_NOT_FOUND);
}

static void memory_that_work_uses_stays(void **state)
{
	struct hal_mem *m = get(&one, 20 * MIB, "a");

	(void)state;
	fake.is_busy = true;
	hal_mem_free(m);
	expect_taken(20 * MIB, 1);
	/* It can be used again meanwhile. */
	m = get(&one, 20 * MIB, "b");
	expect_taken(20 * MIB, 1);
	fill(&one, m, 3);
	holds(m, 3);
	hal_mem_free(m);
	expect_taken(20 * MIB, 1);
	fake.is_busy = false;
	await_taken(0);
}

static void a_reset_keeps_what_is_had(void **state)
{
	struct hal_mem *a = get(&one, 3 * MIB, "a"), *b = get(&one, 4096, "b"), *c;
	struct err err;

	(void)state;
	fill(&one, a, 11);
	fill(&one, b, 12);
	assert_int_equal(hal_device_reset(one.dev, &err), 0);
	holds(a, 11);
	holds(b, 12);
	fill(&one, a, 13);
	holds(a, 13);
	hal_mem_free(a);
	/* A context that was lost can't be given more; after a reset it can. */
	pthread_mutex_lock(&fake.lock);
	fake_function_reset();
	pthread_mutex_unlock(&fake.lock);
	assert_int_not_equal(hal_mem_alloc(one.dev, HAL_MEM_HBM, 30 * MIB, "c", &c, &err), 0);
	assert_int_not_equal(err.code, ERR_RESOURCE_EXHAUSTED);
	assert_int_equal(hal_device_reset(one.dev, &err), 0);
	c = get(&one, 30 * MIB, "c");
	fill(&one, c, 14);
	holds(c, 14);
	holds(b, 12);
	hal_mem_free(b);
	hal_mem_free(c);
	await_taken(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is_taken_as_it_is_needed),
		cmocka_unit_test(what_is_idle_is_used_again),
		cmocka_unit_test(two_fill_the_card_in_turn),
		cmocka_unit_test(a_process_keeps_to_what_it_wants),
		cmocka_unit_test(small_pieces_of_a_full_card_are_had),
		cmocka_unit_test(a_view_keeps_what_it_shows),
		cmocka_unit_test(memory_that_work_uses_stays),
		cmocka_unit_test(a_reset_keeps_what_is_had),
	};
	const struct CMUnitTest silicon[] = {
		cmocka_unit_test(memory_is_taken_as_it_is_needed),
		cmocka_unit_test(two_fill_the_card_in_turn),
		cmocka_unit_test(a_view_keeps_what_it_shows),
		cmocka_unit_test(a_reset_keeps_what_is_had),
	};
	int failed = cmocka_run_group_tests(tests, start, stop);

	fake.is_silicon = true;
	return failed + cmocka_run_group_tests(silicon, start, stop);
}
