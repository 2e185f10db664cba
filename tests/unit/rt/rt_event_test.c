/* SPDX-License-Identifier: Apache-2.0 */
/* Events of submissions: ready when those are done, with the error of those that failed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/rt_internal.h"

static struct hal *hal;
static struct hal_queue *queue;
static struct hal_device *dev;

static int open_device(void **state)
{
	const struct hal_options o = { .devices = "sim", .sim = "hbm=64M,lanes=1" };
	struct err err;

	(void)state;
	if (hal_create(&o, &hal, &err) || hal_device_open(hal, 0, &dev, &err))
		return -1;
	queue = hal_device_queue(dev, HAL_QUEUE_COMPUTE);
	return 0;
}

static int close_device(void **state)
{
	(void)state;
	hal_device_close(dev);
	hal_destroy(hal);
	return 0;
}

/* A copy between addresses where nothing is: the device refuses it. */
static uint64_t submit_fault(void)
{
	const struct hw_copy_2d nowhere = { .dst = 64, .src = 128, .row_bytes = 64, .rows = 1,
					    .planes = 1 };
	struct err err;
	uint64_t value;

	assert_int_equal(hal_queue_copy_2d(queue, &nowhere, NULL, 0, &value, &err), 0);
	return value;
}

static void an_event_made_late_has_the_error_too(void **state)
{
	uint64_t value = submit_fault();
	struct err first, err;
	struct rt_event *e;
	int code = hal_queue_wait(queue, value, CLOCK_FOREVER, &first);

	(void)state;
	assert_int_not_equal(code, 0);
	e = rt_event_of_submission(queue, value);
	assert_non_null(e);
	assert_true(rt_event_is_ready(e));
	assert_int_equal(rt_event_error(e, &err), code);
	assert_string_equal(err.msg, first.msg);
	rt_event_unref(e);
}

static void an_event_made_at_once_has_the_error(void **state)
{
	struct rt_event *e = rt_event_of_submission(queue, submit_fault());
	struct err err;

	(void)state;
	assert_non_null(e);
	assert_int_not_equal(rt_event_wait(e, &err), 0);
	assert_true(strlen(err.msg) > 0);
	rt_event_unref(e);
}

static void an_event_of_good_work_has_none(void **state)
{
	struct hal_mem *m;
	struct rt_event *e;
	struct err err;
	uint64_t value;

	(void)state;
	assert_int_equal(hal_mem_alloc(dev, HAL_MEM_HBM, 64, "test", &m, &err), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(hal_queue_fill(queue, m, 0, 64, 1, &value, &err), 0);
		if (i)
			assert_int_equal(hal_queue_wait(queue, value, CLOCK_FOREVER, &err), 0);
		e = rt_event_of_submission(queue, value);
		assert_non_null(e);
		assert_int_equal(rt_event_wait(e, &err), 0);
		rt_event_unref(e);
	}
	hal_mem_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_event_made_late_has_the_error_too),
		cmocka_unit_test(an_event_made_at_once_has_the_error),
		cmocka_unit_test(an_event_of_good_work_has_none),
	};

	return cmocka_run_group_tests(tests, open_device, close_device);
}
