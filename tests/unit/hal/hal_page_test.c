/* SPDX-License-Identifier: Apache-2.0 */
/* What a process's telemetry page tells of its device: counters, heap, what went wrong. */
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "hal/hal.h"
#include "hal/telemetry.h"

static char dir[] = "/tmp/tessera-pages-XXXXXX";
static struct hal *hal;
static struct hal_device *dev;
static struct hal_page page;

static int open_device(void **state)
{
	struct err err;

	(void)state;
	if (!hal_create(&(struct hal_options){ .devices = "sim:hbm=64M,lanes=1" }, &hal, &err) &&
	    !hal_device_open(hal, 0, &dev, &err))
		return 0;
	fprintf(stderr, "%s\n", err.msg);
	return -1;
}

static int close_device(void **state)
{
	(void)state;
	hal_destroy(hal);
	return 0;
}

static const struct hal_page_device *read_page(void)
{
	char pattern[300];
	glob_t found;
	struct err err;

	snprintf(pattern, sizeof(pattern), "%s/tessera-%u-%d*", hal_page_dir(), getuid(), getpid());
	assert_int_equal(glob(pattern, 0, NULL, &found), 0);
	assert_int_equal(found.gl_pathc, 1);
	if (hal_page_read(found.gl_pathv[0], &page, &err))
		fail_msg("%s", err.msg);
	globfree(&found);
	assert_int_equal(page.n_devices, 1);
	return &page.devices[0];
}

static struct hal_mem *get(uint64_t bytes, const char *tag)
{
	struct hal_mem *m;
	struct err err;

	if (hal_mem_alloc(dev, HAL_MEM_HBM, bytes, tag, &m, &err))
		fail_msg("%s", err.msg);
	return m;
}

/* The map of the heap as it is now. While there is no work the waiter looks once a second. */
static const struct hal_page_device *wait_for_map(void)
{
	const struct hal_page_device *d;

	alarm(20);
	do
		d = read_page();
	while (!d->heap.read_at_ns || d->heap.changes != d->heap_changes);
	alarm(0);
	return d;
}

static void heap_and_counters_are_told(void **state)
{
	struct hal_mem *a = get(1 << 20, "weights"), *b = get(8 << 20, "batch");
	struct hw_copy_2d rows = { .src = hal_mem_va(a), .dst = hal_mem_va(b), .row_bytes = 4096,
				   .rows = 1, .planes = 1 };
	struct hal_queue *q = hal_device_queue(dev, HAL_QUEUE_DMA);
	const struct hal_page_device *d = wait_for_map();
	uint64_t value;
	unsigned i = 0;
	struct err err;

	(void)state;
	/* Its interrupt wakes the waiter, who reads the counters. */
	assert_int_equal(hal_queue_copy_2d(q, &rows, NULL, 0, &value, &err), 0);
	alarm(20);
	while (!read_page()->counters.n_copy)
		;
	alarm(0);
	assert_int_equal(d->heap.is_whole, 1);
	assert_int_equal(d->heap.bytes, 64 << 20);
	assert_int_equal(d->heap.in_use, d->used_bytes);
	while (i < d->heap.n_owners && strcmp(d->heap.owners[i].tag, "batch"))
		i++;
	assert_int_not_equal(i, d->heap.n_owners);
	assert_int_equal(d->heap.owners[i].bytes, 8 << 20);
	assert_true(d->counters.hbm_write_bytes >= 4096);
	assert_int_equal(d->ras.fatal, 0);
	hal_mem_free(a);
	hal_mem_free(b);
	/* Nobody looked since: the page says so itself. */
	d = read_page();
	assert_true(d->heap_changes > d->heap.changes);
}

static void what_went_wrong_is_told_once(void **state)
{
	struct hw_copy_2d stray = { .src = 64, .dst = 64, .row_bytes = 64, .rows = 1,
				    .planes = 1 };
	struct hal_queue *q = hal_device_queue(dev, HAL_QUEUE_DMA);
	struct hal_mem *m;
	uint64_t value, before;
	struct err err;

	(void)state;
	read_page();
	before = page.n_events;
	assert_int_equal(hal_queue_copy_2d(q, &stray, NULL, 0, &value, &err), 0);
	assert_int_not_equal(hal_queue_wait(q, value, CLOCK_FOREVER, &err), 0);
	read_page();
	assert_int_equal(page.n_events, before + 1);
	assert_int_equal(page.events[before].number, before + 1);
	assert_int_equal(page.events[before].code, err.code);
	assert_int_equal(strncmp(page.events[before].text, err.msg,
				 sizeof(page.events[before].text) - 1), 0);
	assert_true(page.events[before].time_ns > 1500000000000000000ull);
	/* Who asks for memory in a loop leaves the others' lines. */
	for (int i = 0; i < 100; i++)
		assert_int_not_equal(hal_mem_alloc(dev, HAL_MEM_HBM, 1ull << 40, "huge", &m, NULL),
				     0);
	assert_int_equal(hal_device_reset(dev, &err), 0);
	read_page();
	assert_int_equal(page.n_events, before + 3);
	assert_int_equal(page.events[before + 1].code, ERR_RESOURCE_EXHAUSTED);
	assert_non_null(strstr(page.events[before + 1].text, "\"huge\""));
	assert_int_equal(page.events[before + 2].code, 0);
	assert_string_equal(page.events[before + 2].text, "the function was reset");
	assert_int_equal(hal_device_inject(dev, HW_INJECT_FATAL, 0, &err), 0);
	assert_int_not_equal(hal_queue_copy_2d(q, &stray, NULL, 0, &value, &err) ||
			     hal_queue_wait(q, value, CLOCK_FOREVER, &err), 0);
	read_page();
	assert_int_equal(page.n_events, before + 4);
	assert_non_null(strstr(page.events[before + 3].text, "died"));
	assert_int_equal(hal_device_reset(dev, &err), 0);
}

/* The ring keeps the newest. */
static void old_events_make_room(void **state)
{
	struct err err;

	(void)state;
	for (unsigned i = 0; i < HAL_PAGE_EVENTS + 5; i++)
		assert_int_equal(hal_device_reset(dev, &err), 0);
	read_page();
	for (unsigned i = 0; i < HAL_PAGE_EVENTS; i++) {
		uint64_t number = page.n_events - i;

		assert_int_equal(page.events[(number - 1) % HAL_PAGE_EVENTS].number, number);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(heap_and_counters_are_told),
		cmocka_unit_test(what_went_wrong_is_told_once),
		cmocka_unit_test(old_events_make_room),
	};
	int failed;

	if (!mkdtemp(dir) || setenv("TESSERA_TELEMETRY_DIR", dir, 1))
		return 1;
	failed = cmocka_run_group_tests(tests, open_device, close_device);
	rmdir(dir);
	return failed;
}
