/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is the caller's: mapped for the device, and windows on what it reaches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hal/hal.h"

#define PAGE 4096u
#define SOON clock_after(10000000000ll)

static struct hal *hal;
static struct hal_device *dev;
static uint8_t *pages;	/* 4 of ours */

static int open_device(void **state)
{
	struct hal_options o = { .devices = "sim:hbm=64M,lanes=1" };
	struct err err;

	(void)state;
	pages = aligned_alloc(PAGE, 4 * PAGE);
	if (!pages || hal_create(&o, &hal, &err) || hal_device_open(hal, 0, &dev, &err))
		return -1;
	for (unsigned i = 0; i < 4 * PAGE; i++)
		pages[i] = (uint8_t)(i * 7);
	return 0;
}

static int close_device(void **state)
{
	(void)state;
	hal_device_close(dev);
	hal_destroy(hal);
	free(pages);
	return 0;
}

/* The device copies from `from` to HBM and back to host memory of its own. */
static void check_reached(struct hal_mem *from, uint64_t offset, const uint8_t *want)
{
	struct hal_queue *q = hal_device_queue(dev, HAL_QUEUE_DMA);
	struct hal_mem *hbm;
	uint8_t back[256];
	struct err err;
	uint64_t value;

	assert_int_equal(hal_mem_alloc(dev, HAL_MEM_HBM, 256, "test", &hbm, &err), 0);
	assert_int_equal(hal_queue_copy(q, hbm, 0, from, offset, 256, NULL, 0, &value, &err), 0);
	assert_int_equal(hal_queue_wait(q, value, SOON, &err), 0);
	assert_int_equal(hal_copy_out(back, hbm, 0, 256, SOON, &err), 0);
	assert_memory_equal(back, want, 256);
	hal_mem_free(hbm);
}

static void the_device_reads_mapped_memory(void **state)
{
	struct hal_mem *m;
	struct err err;

	(void)state;
	for (int round = 0; round < 3; round++) {
		assert_int_equal(hal_mem_map(dev, pages, 4 * PAGE, &m, &err), 0);
		assert_ptr_equal(hal_mem_host(m), pages);
		assert_int_equal(hal_mem_bytes(m), 4 * PAGE);
		check_reached(m, 5000, pages + 5000);
		hal_mem_free(m);
	}
	/* It is ours still. */
	assert_int_equal(pages[100], (uint8_t)700);
}

static void mapped_memory_survives_a_reset(void **state)
{
	struct hal_mem *m;
	struct err err;

	(void)state;
	assert_int_equal(hal_mem_map(dev, pages, 4 * PAGE, &m, &err), 0);
	assert_int_equal(hal_device_reset(dev, &err), 0);
	check_reached(m, 0, pages);
	hal_mem_free(m);
}

static void pages_are_mapped_whole_and_once(void **state)
{
	struct hal_mem *m, *other;
	struct err err;

	(void)state;
	assert_int_equal(hal_mem_map(dev, pages + 64, PAGE, &m, &err), ERR_INVALID_ARGUMENT);
	assert_int_equal(hal_mem_map(dev, pages, 100, &m, &err), ERR_INVALID_ARGUMENT);
	assert_int_equal(hal_mem_map(dev, pages, 0, &m, &err), ERR_INVALID_ARGUMENT);
	assert_int_equal(hal_mem_map(dev, NULL, PAGE, &m, &err), ERR_INVALID_ARGUMENT);
	assert_int_equal(hal_mem_map(dev, pages, UINT64_MAX - PAGE + 1, &m, &err),
			 ERR_INVALID_ARGUMENT);
	assert_int_equal(hal_mem_map(dev, pages + PAGE, 2 * PAGE, &m, &err), 0);
	assert_int_equal(hal_mem_map(dev, pages, 2 * PAGE, &other, &err), ERR_ALREADY_EXISTS);
	assert_non_null(strstr(err.msg, "mapped already"));
	assert_int_equal(hal_mem_map(dev, pages, PAGE, &other, &err), 0);
	hal_mem_free(m);
	hal_mem_free(other);
}

static void a_window_shows_what_lies_there(void **state)
{
	struct hal_mem_stats before, after;
	struct hal_mem *hbm, *host, *mine, *v;
	struct err err;

	(void)state;
	assert_int_equal(hal_mem_alloc(dev, HAL_MEM_HBM, 4096, "hbm", &hbm, &err), 0);
	assert_int_equal(hal_mem_alloc(dev, HAL_MEM_HOST, 4096, "host", &host, &err), 0);
	assert_int_equal(hal_mem_map(dev, pages, 4 * PAGE, &mine, &err), 0);
	assert_int_equal(hal_copy_in(hbm, 0, pages, 4096, SOON, &err), 0);
	assert_int_equal(hal_copy_in(host, 0, pages, 4096, SOON, &err), 0);
	hal_mem_stats(dev, HAL_MEM_HBM, &before);
	for (int how = 0; how < 6; how++) {
		struct hal_mem *of = how / 2 == 0 ? hbm : how / 2 == 1 ? host : mine;
		uint64_t at = how % 2 ? (uintptr_t)hal_mem_host(of) : hal_mem_va(of);

		assert_int_equal(hal_mem_view(dev, at + 512, 1024, &v, &err), 0);
		assert_int_equal(hal_mem_va(v), hal_mem_va(of) + 512);
		assert_int_equal(hal_mem_kind(v), hal_mem_kind(of));
		check_reached(v, 128, pages + 640);
		hal_mem_free(v);
	}
	hal_mem_stats(dev, HAL_MEM_HBM, &after);
	assert_int_equal(after.bytes_in_use, before.bytes_in_use);
	assert_int_equal(hal_mem_view(dev, 64, 64, &v, &err), ERR_NOT_FOUND);
	assert_int_equal(hal_mem_view(dev, UINT64_MAX, 64, &v, &err), ERR_NOT_FOUND);
	/* to the last byte and not beyond */
	assert_int_equal(hal_mem_view(dev, hal_mem_va(mine) + 4 * PAGE - 1, 1, &v, &err), 0);
	hal_mem_free(v);
	assert_int_equal(hal_mem_view(dev, hal_mem_va(mine) + 4 * PAGE - 1, 2, &v, &err),
			 ERR_NOT_FOUND);
	assert_int_equal(hal_mem_view(dev, (uintptr_t)pages + PAGE, 4 * PAGE, &v, &err),
			 ERR_NOT_FOUND);
	assert_int_equal(hal_mem_view(dev, hal_mem_va(hbm), UINT64_MAX, &v, &err),
			 ERR_NOT_FOUND);
	assert_int_equal(hal_mem_view(dev, hal_mem_va(hbm), 0, &v, &err), ERR_NOT_FOUND);
	hal_mem_free(mine);
	assert_int_equal(hal_mem_view(dev, (uintptr_t)pages, 64, &v, &err), ERR_NOT_FOUND);
	hal_mem_free(host);
	hal_mem_free(hbm);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_device_reads_mapped_memory),
		cmocka_unit_test(mapped_memory_survives_a_reset),
		cmocka_unit_test(pages_are_mapped_whole_and_once),
		cmocka_unit_test(a_window_shows_what_lies_there),
	};

	return cmocka_run_group_tests(tests, open_device, close_device);
}
