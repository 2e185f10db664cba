/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two functions of one HAL through VFIO, on a kernel in user space: they are in one address
 * space, where memory is pinned once for both, and each keeps what it mapped whatever happens to
 * the other. By groups and by device files.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hal/base/clock.h"
#include "hal/hal.h"
#include "tests/fake/vfio.c"

#define SECOND 1000000000ll
#define BYTES (16u * 4096)

static struct pair {
	struct hal *hal;
	struct hal_device *dev[2];
	struct hal_mem *mem[2];		/* of `memory` */
	int n_maps;			/* without these */
} pair;
static uint8_t memory[BYTES] __attribute__((aligned(4096)));

static void check(int code, const struct err *err)
{
	if (code)
		fail_msg("%s", err->msg);
}

static void pair_open(void)
{
	struct hal_options o = { .devices = "vfio:0000:01:00.0,vfio:0000:02:00.0" };
	struct err err;

	memset(&pair, 0, sizeof(pair));
	check(hal_create(&o, &pair.hal, &err), &err);
	for (unsigned i = 0; i < 2; i++)
		check(hal_device_open(pair.hal, i, &pair.dev[i], &err), &err);
	pair.n_maps = fake.n_maps;
}

static void pair_map(void)
{
	struct err err;

	for (unsigned i = 0; i < 2; i++)
		check(hal_mem_map(pair.dev[i], memory, BYTES, &pair.mem[i], &err), &err);
}

static void pair_close(void)
{
	hal_destroy(pair.hal);
	assert_int_equal(fake.n_files, 0);
	assert_int_equal(fake.n_maps, 0);
}

/* What is in `memory` goes into HBM of device i and comes back. */
static void moves(unsigned i)
{
	struct hal_queue *q = hal_device_queue(pair.dev[i], HAL_QUEUE_DMA);
	uint8_t got[BYTES];
	struct hal_mem *m;
	struct err err;
	uint64_t value;

	for (unsigned k = 0; k < BYTES; k++)
		memory[k] = (uint8_t)(k * 31 + k / 4096 + i);
	check(hal_mem_alloc(pair.dev[i], HAL_MEM_HBM, BYTES, "there", &m, &err), &err);
	check(hal_queue_copy(q, m, 0, pair.mem[i], 0, BYTES, NULL, 0, &value, &err), &err);
	check(hal_queue_wait(q, value, clock_after(5 * SECOND), &err), &err);
	check(hal_copy_out(got, m, 0, BYTES, CLOCK_FOREVER, &err), &err);
	assert_memory_equal(got, memory, BYTES);
	memset(memory, 0, BYTES);
	check(hal_queue_copy(q, pair.mem[i], 0, m, 0, BYTES, NULL, 0, &value, &err), &err);
	check(hal_queue_wait(q, value, clock_after(5 * SECOND), &err), &err);
	assert_memory_equal(got, memory, BYTES);
	hal_mem_free(m);
}

static void memory_of_two_functions_is_pinned_once(void **state)
{
	struct hal_mem *other;
	struct err err;

	(void)state;
	pair_open();
	check(hal_mem_map(pair.dev[0], memory, BYTES, &pair.mem[0], &err), &err);
	assert_int_equal(fake.n_maps, pair.n_maps + 1);
	/* No more may be pinned: what is pinned already may be used by another all the same. */
	fake.memlock = 0;
	check(hal_mem_map(pair.dev[1], memory, BYTES, &pair.mem[1], &err), &err);
	assert_int_equal(fake.n_maps, pair.n_maps + 1);
	assert_int_equal(hal_mem_va(pair.mem[0]), hal_mem_va(pair.mem[1]));
	hal_mem_free(pair.mem[1]);
	assert_int_equal(hal_mem_map(pair.dev[1], memory, BYTES / 2, &other, &err),
			 ERR_RESOURCE_EXHAUSTED);
	fake_be_good();
	check(hal_mem_map(pair.dev[1], memory, BYTES, &pair.mem[1], &err), &err);
	moves(0);
	moves(1);
	pair_close();
}

static void each_function_keeps_what_it_mapped(void **state)
{
	struct err err;

	(void)state;
	for (unsigned first = 0; first < 2; first++) {
		pair_open();
		pair_map();
		hal_mem_free(pair.mem[first]);
		assert_int_equal(fake.n_maps, pair.n_maps + 1);
		moves(!first);
		check(hal_mem_map(pair.dev[first], memory, BYTES, &pair.mem[first], &err), &err);
		check(hal_device_reset(pair.dev[first], &err), &err);
		moves(first);
		moves(!first);
		hal_device_close(pair.dev[first]);
		moves(!first);
		hal_mem_free(pair.mem[!first]);
		/* The other's own are left, and it can be joined again. */
		check(hal_device_open(pair.hal, first, &pair.dev[first], &err), &err);
		pair_map();
		assert_int_equal(fake.n_maps, pair.n_maps + 1);
		moves(first);
		moves(!first);
		pair_close();
	}
}

static void functions_that_cannot_share_have_a_space_each(void **state)
{
	(void)state;
	fake.apart = true;
	pair_open();
	pair_map();
	assert_int_equal(fake.n_maps, pair.n_maps + 2);
	moves(0);
	moves(1);
	pair_close();
	fake_be_good();
}

static atomic_bool has_joined;

static void *map_on_and_on(void *arg)
{
	struct hal_device *dev = arg;
	unsigned long n_bad = 0;
	struct err err;

	while (!atomic_load(&has_joined)) {
		struct hal_mem *m = NULL;

		n_bad += !!hal_mem_map(dev, memory, BYTES, &m, &err);
		hal_mem_free(m);
	}
	return (void *)n_bad;
}

/* Two threads, one of which brings the second function in and out of the first one's space. */
static void one_function_maps_while_another_joins(void **state)
{
	pthread_t thread;
	void *n_bad;
	struct err err;

	(void)state;
	pair_open();
	hal_device_close(pair.dev[1]);
	atomic_store(&has_joined, false);
	assert_int_equal(pthread_create(&thread, NULL, map_on_and_on, pair.dev[0]), 0);
	for (unsigned i = 0; i < 50; i++) {
		check(hal_device_open(pair.hal, 1, &pair.dev[1], &err), &err);
		check(hal_mem_map(pair.dev[1], memory, BYTES, &pair.mem[1], &err), &err);
		moves(1);
		hal_device_close(pair.dev[1]);
	}
	atomic_store(&has_joined, true);
	pthread_join(thread, &n_bad);
	assert_null(n_bad);
	pair_close();
}

/* Of what opens the second function any call may fail: the first goes on, nothing is left. */
static void who_fails_to_join_leaves_the_other_alone(void **state)
{
	struct hal_options o = { .devices = "vfio:0000:01:00.0,vfio:0000:02:00.0" };
	unsigned n_failed = 0;
	struct err err;
	bool all = false;

	(void)state;
	memset(&pair, 0, sizeof(pair));
	check(hal_create(&o, &pair.hal, &err), &err);
	check(hal_device_open(pair.hal, 0, &pair.dev[0], &err), &err);
	check(hal_mem_map(pair.dev[0], memory, BYTES, &pair.mem[0], &err), &err);
	for (long n = 1; !all; n++) {
		int files = fake.n_files, maps = fake.n_maps;
		long before = atomic_load(&fake.calls);

		fake.fail_errno = n % 2 ? EIO : EINVAL;
		atomic_store(&fake.fail_at, before + n);
		if (hal_device_open(pair.hal, 1, &pair.dev[1], &err)) {
			n_failed++;
		} else {
			atomic_store(&fake.fail_at, 0);
			check(hal_mem_map(pair.dev[1], memory, BYTES, &pair.mem[1], &err), &err);
			moves(1);
			hal_device_close(pair.dev[1]);
		}
		all = atomic_load(&fake.calls) - before < n;
		atomic_store(&fake.fail_at, 0);
		assert_int_equal(fake.n_files, files);
		assert_int_equal(fake.n_maps, maps);
		moves(0);
	}
	assert_true(n_failed > 5);
	pair_close();
}

static int begin_group(void **state)
{
	(void)state;
	return fake_start();
}

static int begin_cdev(void **state)
{
	if (begin_group(state))
		return -1;
	fake_set_cdev(true);
	return 0;
}

static int end(void **state)
{
	(void)state;
	fake_stop();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_of_two_functions_is_pinned_once),
		cmocka_unit_test(each_function_keeps_what_it_mapped),
		cmocka_unit_test(functions_that_cannot_share_have_a_space_each),
		cmocka_unit_test(one_function_maps_while_another_joins),
		cmocka_unit_test(who_fails_to_join_leaves_the_other_alone),
	};

	return cmocka_run_group_tests_name("group and type 1", tests, begin_group, end) +
	       cmocka_run_group_tests_name("device file and iommufd", tests, begin_cdev, end);
}
