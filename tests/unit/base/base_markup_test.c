/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of strangers in HTML and XML. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "hal/base/markup.h"

static void is_written(const char *text, const char *as)
{
	char *got;
	size_t n;
	FILE *to = open_memstream(&got, &n);

	assert_non_null(to);
	markup_put(text, to);
	assert_int_equal(fclose(to), 0);
	assert_string_equal(got, as);
	free(got);
}

static void what_means_something_is_escaped(void **state)
{
	(void)state;
	is_written("", "");
	is_written("a step's <b>&amp;\"end\"</b>",
		   "a step&#39;s &lt;b&gt;&amp;amp;&quot;end&quot;&lt;/b&gt;");
	is_written("one\ntwo", "one&#10;two");
}

static void what_controls_is_no_text(void **state)
{
	char all[33] = "";

	(void)state;
	for (int i = 1; i < 32; i++)
		all[i - 1] = (char)(i == '\n' ? ' ' : i);
	all[31] = 127;
	is_written(all, "????????? ??????????????????????");
}

static void other_scripts_stay(void **state)
{
	static const char text[] = "\xc3\xa9 \xe2\x80\x94 \xf0\x9f\x99\x82";

	(void)state;
	is_written(text, text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_means_something_is_escaped),
		cmocka_unit_test(what_controls_is_no_text),
		cmocka_unit_test(other_scripts_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
