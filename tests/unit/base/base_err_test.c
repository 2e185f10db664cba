/* SPDX-License-Identifier: Apache-2.0 */
/* Base library: errors, arena, text, element types. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "hal/base/arena.h"
#include "hal/base/elem.h"
#include "hal/base/err.h"
#include "hal/base/str.h"

static void err_set_keeps_code_and_text(void **state)
{
	struct err err = { 0 };

	(void)state;
	assert_int_equal(err_set(&err, ERR_NOT_FOUND, "no device %d", 3),
			 ERR_NOT_FOUND);
	assert_string_equal(err.msg, "no device 3");
	assert_int_equal(err_add(&err, "open"), ERR_NOT_FOUND);
	assert_string_equal(err.msg, "open: no device 3");
	assert_int_equal(err_set(NULL, ERR_INTERNAL, "x"), ERR_INTERNAL);
	assert_string_equal(err_name(err.code), "NOT_FOUND");
	assert_string_equal(err_name(99), "UNKNOWN");
}

static void err_sys_maps_errno_and_says_it(void **state)
{
	struct err err;

	(void)state;
	assert_int_equal(err_sys(&err, EACCES, "open x"), ERR_PERMISSION_DENIED);
	assert_int_equal(err.sys, EACCES);
	assert_non_null(strstr(err.msg, "Permission denied"));
	assert_null(strstr(err.msg, "ulimit"));
	/* the cure differs from that of other lacks */
	assert_int_equal(err_sys(&err, EMFILE, "open x"), ERR_RESOURCE_EXHAUSTED);
	assert_non_null(strstr(err.msg, "Too many open files in this process: ulimit -n"));
}

static void err_cuts_long_texts(void **state)
{
	char text[2000];
	struct err err;

	(void)state;
	memset(text, 'a', sizeof(text));
	text[sizeof(text) - 1] = 0;
	err_set(&err, ERR_INTERNAL, "%s", text);
	err_add(&err, "%s", text);
	err_sys(&err, ENOMEM, "%s", text);
	assert_int_equal(strlen(err.msg), ERR_MSG_BYTES - 1);
}

static void count_call(void *arg)
{
	++*(int *)arg;
}

static void arena_zeroes_aligns_and_honours_its_limit(void **state)
{
	struct arena a = { 0 };
	int calls = 0;
	char *p, *q;

	(void)state;
	p = arena_alloc(&a, 3);
	q = arena_alloc(&a, 100000);
	assert_int_equal((uintptr_t)p % 16, 0);
	assert_int_equal((uintptr_t)q % 16, 0);
	for (int i = 0; i < 100000; i++)
		assert_int_equal(q[i], 0);
	assert_string_equal(arena_printf(&a, "%s-%d", "x", 7), "x-7");
	a.limit = a.total;
	a.on_fail = count_call;
	a.on_fail_arg = &calls;
	assert_null(arena_alloc(&a, 1 << 22));
	assert_null(arena_array(&a, SIZE_MAX / 2, 3));
	assert_int_equal(calls, 2);
	arena_free(&a);
	assert_int_equal(a.total, 0);
}

static void arena_gives_back_what_came_after_a_mark(void **state)
{
	struct arena a = { 0 };
	struct arena_mark empty = arena_mark(&a), mark;
	char *kept, *first, *again;
	size_t total;

	(void)state;
	kept = arena_text(&a, "kept", 4);
	mark = arena_mark(&a);
	total = a.total;
	first = arena_alloc(&a, 100);
	memset(first, 1, 100);
	for (int i = 0; i < 10; i++)
		assert_non_null(arena_alloc(&a, 100000));
	arena_rewind(&a, mark);
	assert_int_equal(a.total, total);
	again = arena_alloc(&a, 100);
	assert_ptr_equal(again, first);
	for (int i = 0; i < 100; i++)
		assert_int_equal(again[i], 0);
	assert_string_equal(kept, "kept");
	arena_rewind(&a, empty);
	assert_int_equal(a.total, 0);
	assert_non_null(arena_alloc(&a, 100));
	arena_free(&a);
}

static void str_grows(void **state)
{
	struct str s = { 0 };

	(void)state;
	for (int i = 0; i < 1000; i++)
		str_printf(&s, "%d,", i);
	assert_false(s.failed);
	assert_int_equal(s.len, strlen(s.text));
	assert_memory_equal(s.text, "0,1,2,", 6);
	str_free(&s);
}

static void elem_texts_parse_back(void **state)
{
	(void)state;
	for (unsigned e = 1; e < ELEM_COUNT; e++)
		assert_int_equal(elem_parse(elem_text(e),
					    (unsigned)strlen(elem_text(e))), e);
	assert_int_equal(elem_parse("f33", 3), ELEM_INVALID);
	assert_int_equal(elem_bytes(ELEM_S4), 1);
	assert_true(elem_computes(ELEM_F32));
	assert_false(elem_computes(ELEM_BF16));
}

static void every_code_has_a_severity_and_a_next_step(void **state)
{
	static const int codes[] = {
#define ERR(name, number, severity, meaning, next) number,
#include "hal/base/err.def"
#undef ERR
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(codes) / sizeof(*codes); i++) {
		const char *s = err_severity(codes[i]);

		assert_true(!strcmp(s, "none") == !codes[i]);
		assert_true(!strcmp(s, "none") || !strcmp(s, "note") || !strcmp(s, "error") ||
			    !strcmp(s, "critical"));
		/* It fits a field of xla-smi's. */
		assert_in_range(strlen(err_next(codes[i])), 5, 159);
	}
	assert_string_equal(err_severity(ERR_INTERNAL), "critical");
	assert_non_null(strstr(err_next(ERR_RESOURCE_EXHAUSTED), "xla-smi mem"));
	assert_string_equal(err_severity(999), "error");
	assert_string_equal(err_next(-1), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(err_set_keeps_code_and_text),
		cmocka_unit_test(err_sys_maps_errno_and_says_it),
		cmocka_unit_test(err_cuts_long_texts),
		cmocka_unit_test(every_code_has_a_severity_and_a_next_step),
		cmocka_unit_test(arena_zeroes_aligns_and_honours_its_limit),
		cmocka_unit_test(arena_gives_back_what_came_after_a_mark),
		cmocka_unit_test(str_grows),
		cmocka_unit_test(elem_texts_parse_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
