/* SPDX-License-Identifier: Apache-2.0 */
/* What tells one build from another in the cache's keys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/rt_internal.h"

static void the_build_id_is_the_one_that_readelf_shows(void **state)
{
	char mine[64] = "", line[256], theirs[128] = "";
	FILE *f = popen("readelf -n /proc/$PPID/exe 2>/dev/null", "r");

	(void)state;
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		sscanf(line, " Build ID: %127s", theirs);
	pclose(f);
	rt_build_id(mine, sizeof(mine));
	assert_string_equal(mine, theirs);
}

static void a_small_room_is_not_overrun(void **state)
{
	char room[8] = "xxxxxxx";

	(void)state;
	rt_build_id(room, 4);
	assert_true(strlen(room) < 4);
	assert_int_equal(room[5], 'x');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_build_id_is_the_one_that_readelf_shows),
		cmocka_unit_test(a_small_room_is_not_overrun),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
