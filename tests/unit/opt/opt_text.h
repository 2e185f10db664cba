/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_OPT_TEXT_H
#define TEST_OPT_TEXT_H
/* The text of a program after a pass, for tests of what passes do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "runtime/compiler/tc.h"

/* The test fails where the compiler does. The caller frees it. Not inline, for where it is gcc 12
 * takes the text for a pointer to the variable that held it, and warns that it dangles. */
__attribute__((noinline, unused))
static char *opt_after(const char *pass, const char *text)
{
	const struct tc_options o = { .level = 1, .verify = true };
	struct err err;
	char *out = NULL;

	if (tc_print(&(struct tc_source){ text, strlen(text), "mlir" }, &o, pass, &out, &err))
		fail_msg("%s\n%s", err.msg, text);
	return out;
}

#endif
