/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two cards of the kernel driver in one HAL, which tests/fake plays: copies from one's HBM to the
 * other's, what becomes of them when either card is reset, what people are told where there is
 * no way between the two, and every call failing. Under the driver itself: tests/guest/peers.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hal/base/clock.h"
#include "hal/hal.h"
#include "tests/fake/accel_fake.h"

#define SECOND 1000000000ll
#define KiB 1024ull
#define MOST (1280 * KiB)

static struct hal *hal;
static struct hal_device *dev[2];
static struct err err;

#define OK(call) do { \
	memset(&err, 0, sizeof(err)); \
	if (call) \
		fail_msg("%s: %s", #call, err.msg); \
} while (0)
#define SAYS(text) do { \
	if (!strstr(err.msg, (text))) \
		fail_msg("\"%s\" is not in: %s", (text), err.msg); \
} while (0)

static void open_both(void)
{
	OK(hal_create(&(struct hal_options){ .devices = "accel:0,accel:1" }, &hal, &err));
	for (unsigned i = 0; i < 2; i++)
		OK(hal_device_open(hal, i, &dev[i], &err));
}

static void close_both(void)
{
	for (unsigned i = 0; i < 2; i++)
		hal_device_close(dev[i]);
	hal_destroy(hal);
}

static int setup(void **state)
{
	(void)state;
	unsetenv("TESSERA_HBM_BYTES");
	if (fake_open_cards(2, 64 << 20))
		return -1;
	open_both();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	close_both();
	if (!fake_is_empty())
		return -1;
	fake_close_card();
	return 0;
}

static struct hal_mem *get(unsigned card, uint64_t bytes)
{
	struct hal_mem *m;

	OK(hal_mem_alloc(dev[card], HAL_MEM_HBM, bytes, "tested", &m, &err));
	return m;
}

static int copy(unsigned from, struct hal_mem *dst, struct hal_mem *src, uint64_t bytes)
{
	struct hal_queue *q = hal_device_queue(dev[from], HAL_QUEUE_DMA);
	uint64_t value;
	int code = hal_queue_copy(q, dst, 64, src, 128, bytes, NULL, 0, &value, &err);

	return code ? code : hal_queue_wait(q, value, clock_after(60 * SECOND), &err);
}

/* `bytes` of it, from dev[from] to the other; what is around them stays. */
static void check_between(unsigned from, struct hal_mem *src, struct hal_mem *dst, uint64_t bytes,
			  unsigned seed)
{
	static uint8_t x[MOST], got[MOST];

	for (uint64_t i = 0; i < bytes + 192; i++)
		x[i] = (uint8_t)((i + seed) * 2654435761u >> 13);
	memset(got, 0xa5, bytes + 192);
	OK(hal_copy_in(src, 0, x, bytes + 192, CLOCK_FOREVER, &err));
	OK(hal_copy_in(dst, 0, got, bytes + 192, CLOCK_FOREVER, &err));
	OK(copy(from, dst, src, bytes));
	OK(hal_copy_out(got, dst, 0, bytes + 192, CLOCK_FOREVER, &err));
	assert_memory_equal(got + 64, x + 128, bytes);
	for (unsigned i = 0; i < 64; i++)
		assert_true(got[i] == 0xa5 && got[64 + bytes + i] == 0xa5);
}

static void check_copy(unsigned from, uint64_t bytes, unsigned seed)
{
	struct hal_mem *src = get(from, bytes + 192), *dst = get(!from, bytes + 192);

	check_between(from, src, dst, bytes, seed);
	hal_mem_free(src);
	hal_mem_free(dst);
}

static void reset_function(unsigned card)
{
	pthread_mutex_lock(&fake.lock);
	fake.now = &fake.card[card];
	fake_function_reset();
	fake.now = fake.card;
	pthread_mutex_unlock(&fake.lock);
}

static void copies_cross_both_ways(void **state)
{
	const uint64_t sizes[] = { 1, 63, 4095, 4096, 4097, 64 * KiB, MOST - 192 };

	(void)state;
	assert_true(hal_may_copy(dev[0], dev[1]) && hal_may_copy(dev[1], dev[0]));
	assert_false(hal_is_linked(dev[0], dev[1]));
	for (unsigned i = 0; i < 14; i++)
		check_copy(i % 2, sizes[i / 2], i);
}

/* Larger than a range for small blocks: it has one of its own, which is given back, and so is
 * what the other card has of it. */
static void what_is_freed_is_seen_no_more(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		struct hal_mem *src = get(i % 2, 20 << 20), *dst = get(!(i % 2), 20 << 20);
		struct hal_mem_stats s;

		check_between(i % 2, src, dst, 64 * KiB, i);
		hal_mem_free(src);
		hal_mem_free(dst);
		for (unsigned k = 0; k < 2; k++)
			hal_mem_stats(dev[k], HAL_MEM_HBM, &s);
		pthread_mutex_lock(&fake.lock);
		for (struct fake_bo *b = fake.bos; b; b = b->next)
			assert_true(b->kind != FAKE_PEER || b->bytes < 20 << 20);
		pthread_mutex_unlock(&fake.lock);
	}
}

/* Of the kernel driver, too: what a card does waits for what the other one is to do. */
static void a_card_waits_for_the_other_ones_work(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		struct hal_queue *by = hal_device_queue(dev[i % 2], HAL_QUEUE_DMA);
		struct hal_queue *of = hal_device_queue(dev[!(i % 2)], HAL_QUEUE_COMPUTE);
		struct hal_queue *opens = hal_device_queue(dev[!(i % 2)], HAL_QUEUE_DMA);
		struct hal_mem *m = get(i % 2, 4096), *theirs = get(!(i % 2), 4096);
		struct hal_after held = { opens, 0 }, after = { of, 0 };
		uint64_t value;

		OK(hal_queue_fill(opens, theirs, 0, 64, 1, &held.value, &err));
		held.value++;
		OK(hal_queue_copy(of, theirs, 0, theirs, 2048, 64, &held, 1, &after.value, &err));
		OK(hal_queue_copy(by, m, 0, m, 2048, 64, &after, 1, &value, &err));
		assert_int_equal(hal_queue_wait(by, value, clock_after(SECOND / 20), &err),
				 ERR_DEADLINE_EXCEEDED);
		OK(hal_queue_fill(opens, theirs, 0, 64, 1, &held.value, &err));
		OK(hal_queue_wait(by, value, clock_after(60 * SECOND), &err));
		assert_true(hal_queue_done(of) >= after.value);
		hal_mem_free(m);
		hal_mem_free(theirs);
	}
}

/* The owner's: whoever copies there is told its name, and goes on when both live. */
static void a_reset_of_the_owner_ends_copies_by_its_name(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		unsigned from = i % 2;
		struct hal_mem *src = get(from, 64 * KiB + 192), *dst = get(!from, 64 * KiB + 192);
		struct hal_device_info info;
		int code = 0;

		OK(hal_device_info(hal, !from, &info, &err));
		check_between(from, src, dst, 64 * KiB, i);
		reset_function(!from);
		for (int64_t end = clock_after(20 * SECOND); !code && clock_ns() < end; )
			code = copy(from, dst, src, 64 * KiB);
		assert_int_not_equal(code, 0);
		SAYS(info.bus_id);
		/* This one lives. */
		OK(hal_device_error(dev[from], &err));
		OK(hal_device_reset(dev[!from], &err));
		check_between(from, src, dst, 64 * KiB, i + 1);
		check_copy(!from, 64 * KiB, i);
		hal_mem_free(src);
		hal_mem_free(dst);
	}
}

/* What runs is stopped or faults, what waits behind it fails too, and all tell the owner's name. */
static void pending_copies_end_with_the_owner(void **state)
{
	enum { N = 24 };
	struct hal_queue *q = hal_device_queue(dev[0], HAL_QUEUE_DMA);
	struct hal_mem *src = get(0, 16 << 20), *dst = get(1, 16 << 20);
	uint64_t value[N];
	struct hal_device_info info;
	unsigned n_failed = 0;

	(void)state;
	OK(hal_device_info(hal, 1, &info, &err));
	for (unsigned i = 0; i < N; i++)
		OK(hal_queue_copy(q, dst, 0, src, 0, 16 << 20, NULL, 0, &value[i], &err));
	reset_function(1);
	for (unsigned i = 0; i < N; i++) {
		memset(&err, 0, sizeof(err));
		if (!hal_queue_wait(q, value[i], clock_after(60 * SECOND), &err))
			continue;
		assert_int_not_equal(err.code, ERR_DEADLINE_EXCEEDED);
		SAYS(info.bus_id);
		n_failed++;
	}
	assert_true(n_failed > 0);
	OK(hal_device_error(dev[0], &err));
	OK(hal_device_reset(dev[1], &err));
	check_between(0, src, dst, 64 * KiB, 5);
	hal_mem_free(src);
	hal_mem_free(dst);
}

/* Its context is gone, and with it what it saw of others. */
static void a_reset_of_who_copies_sees_memory_anew(void **state)
{
	struct hal_mem *src = get(0, 64 * KiB + 192), *dst = get(1, 64 * KiB + 192);

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		check_between(0, src, dst, 64 * KiB, i);
		if (i % 2)
			reset_function(0);
		OK(hal_device_reset(dev[0], &err));
		OK(hal_device_error(dev[1], &err));
	}
	check_between(0, src, dst, 64 * KiB, 9);
	hal_mem_free(src);
	hal_mem_free(dst);
}

/* In place of a copy. */
static void expect(int code, const char *one, const char *other)
{
	struct hal_mem *src = get(0, 4096), *dst = get(1, 4096);

	assert_int_equal(copy(0, dst, src, 64), code);
	SAYS(one);
	SAYS(other);
	SAYS("accel0");
	OK(hal_device_error(dev[0], &err));
	OK(hal_device_error(dev[1], &err));
	hal_mem_free(src);
	hal_mem_free(dst);
}

static void people_are_told_why_there_is_no_way(void **state)
{
	(void)state;
	fake.has_no_way = true;
	expect(ERR_UNIMPLEMENTED, "CONFIG_PCI_P2PDMA", "accel1");
	fake.has_no_way = false;
	fake.is_resetting = true;
	expect(ERR_ABORTED, "is being reset", "accel1");
	fake.is_resetting = false;
	fake.abi = 6;
	expect(ERR_UNIMPLEMENTED, "other cards' memory needs 7", "accel1");
	fake.abi = DRM_TESSERA_ABI;
	check_copy(0, 4096, 1);
}

/* Each call once, with an errno of its own: nothing stays behind, and the next copy works. */
static void every_call_may_fail(void **state)
{
	const int errnos[] = { ENOMEM, EINTR, EMFILE };
	unsigned n_failed = 0;

	(void)state;
	for (unsigned e = 0; e < 3; e++) {
		bool is_past = false;

		for (long at = 1; !is_past; at++) {
			struct hal_mem *src, *dst;
			int code;

			/* No view is left of before. */
			close_both();
			open_both();
			src = get(0, 4096);
			dst = get(1, 4096);
			fake.fail_errno = errnos[e];
			fake.fail_at = at;
			memset(&err, 0, sizeof(err));
			code = copy(0, dst, src, 64);
			is_past = fake.fail_at > 0;
			fake.fail_at = 0;
			if (code)
				assert_true(err.msg[0]);
			n_failed += code != 0;
			assert_true(at < 50);
			OK(hal_device_error(dev[0], &err));
			OK(hal_device_error(dev[1], &err));
			OK(copy(0, dst, src, 64));
			hal_mem_free(src);
			hal_mem_free(dst);
		}
	}
	assert_true(n_failed >= 9);
	fake.fail_errno = ENOMEM;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(copies_cross_both_ways, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_freed_is_seen_no_more, setup, teardown),
		cmocka_unit_test_setup_teardown(a_card_waits_for_the_other_ones_work, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_reset_of_the_owner_ends_copies_by_its_name, setup,
						teardown),
		cmocka_unit_test_setup_teardown(pending_copies_end_with_the_owner, setup, teardown),
		cmocka_unit_test_setup_teardown(a_reset_of_who_copies_sees_memory_anew, setup,
						teardown),
		cmocka_unit_test_setup_teardown(people_are_told_why_there_is_no_way, setup,
						teardown),
		cmocka_unit_test_setup_teardown(every_call_may_fail, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
