/* SPDX-License-Identifier: Apache-2.0 */
/* Streams that callbacks fill: granules, totals, order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/rt.h"

static void a_stream_is_whole_when_all_granules_came(void **state)
{
	struct rt_stream *s = rt_stream_new(12, 4);
	struct err err;

	(void)state;
	assert_non_null(s);
	assert_int_equal(rt_stream_total(s), 12);
	assert_int_equal(rt_stream_granule(s), 4);
	assert_int_equal(rt_stream_add(s, "abcd", 4, &err), 0);
	assert_null(rt_stream_data(s));
	assert_int_equal(rt_stream_add(s, "efghijkl", 8, &err), 0);
	assert_int_equal(rt_stream_current(s), 12);
	assert_memory_equal(rt_stream_data(s), "abcdefghijkl", 12);
	assert_int_equal(rt_stream_add(s, "more", 4, &err), ERR_INVALID_ARGUMENT);
	assert_non_null(strstr(err.msg, "0 of 12 are missing"));
	rt_stream_unref(s);
}

static void chunks_of_part_of_a_granule_are_refused(void **state)
{
	struct rt_stream *s = rt_stream_new(12, 4);
	struct err err;

	(void)state;
	assert_int_equal(rt_stream_add(s, "abc", 3, &err), ERR_INVALID_ARGUMENT);
	assert_non_null(strstr(err.msg, "granule is 4"));
	assert_int_equal(rt_stream_add(s, "x", UINT64_MAX - 3, &err), ERR_INVALID_ARGUMENT);
	assert_int_equal(rt_stream_current(s), 0);
	assert_int_equal(rt_stream_add(s, NULL, 0, &err), 0);
	rt_stream_unref(s);
	rt_stream_unref(NULL);
}

static void streams_that_cant_be_are_not_made(void **state)
{
	struct rt_stream *s = rt_stream_new(0, 1);

	(void)state;
	assert_null(rt_stream_new(10, 4));
	assert_null(rt_stream_new(10, 0));
	assert_null(rt_stream_new(UINT64_MAX, 1));
	assert_non_null(s);
	assert_non_null(rt_stream_data(s));
	rt_stream_unref(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stream_is_whole_when_all_granules_came),
		cmocka_unit_test(chunks_of_part_of_a_granule_are_refused),
		cmocka_unit_test(streams_that_cant_be_are_not_made),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
