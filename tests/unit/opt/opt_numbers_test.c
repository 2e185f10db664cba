/* SPDX-License-Identifier: Apache-2.0 */
/* What simplify/numbers.c makes of work on a few numbers that are put together, by the text
 * after the pass simplify. Numbers are tested by tests/jax/loops. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "runtime/compiler/tc.h"
#include "tests/unit/opt/opt_text.h"

#define ONE "tensor<1xf32>"
#define THREE "tensor<3xf32>"
#define JOIN(name, a, b, c) name " = concatenate(" a ", " b ", " c ") {dimension = 0} : " THREE "\n"
#define TAKE(name, x) name " = slice(" x ") {limit_indices = [2], start_indices = [1], " \
	"strides = [1]} : " ONE "\n"

/* Of %1, %2, %3, numbers each as an array, and %4, an array of three, lines make `results`, of
 * which `whole` ops of the kind are left that make an array. */
static void expect(const char *lines, const char *results, const char *kind, unsigned whole)
{
	char text[3000], *out;
	unsigned n = 0;

	snprintf(text, sizeof(text), "module() () {\nfunc() {sym_name = \"main\"} (%%1: " ONE
		 ", %%2: " ONE ", %%3: " ONE ", %%4: " THREE ") {\n%sreturn(%s)\n}\n}\n", lines,
		 results);
	out = opt_after("simplify", text);
	for (const char *p = out; (p = strstr(p, kind)); p++)
		n += !strncmp(strstr(p, " : "), " : tensor<3", 11);
	if (n != whole)
		fail_msg("%u of %s, not %u, in\n%s", n, kind, whole, out);
	free(out);
}

static void what_is_taken_apart_is_done_number_by_number(void **state)
{
	(void)state;
	expect(JOIN("%5", "%1", "%2", "%3") "%6 = multiply(%5, %4) : " THREE "\n" TAKE("%7", "%6"),
	       "%7", "= multiply(", 0);
	/* some ops on */
	expect(JOIN("%5", "%1", "%2", "%3") "%6 = multiply(%5, %4) : " THREE "\n"
	       "%8 = multiply(%6, %4) : " THREE "\n" TAKE("%7", "%8"), "%7, %8", "= multiply(", 0);
	expect(JOIN("%5", "%1", "%2", "%3") "%6 = multiply(%5, %4) : " THREE "\n"
	       JOIN("%8", "%2", "%2", "%1") "%9 = multiply(%6, %8) : " THREE "\n" TAKE("%7", "%9"),
	       "%7", "= multiply(", 0);
}

static void what_stays_together_is_done_together(void **state)
{
	(void)state;
	expect(JOIN("%5", "%1", "%2", "%3") "%6 = multiply(%5, %4) : " THREE "\n", "%6",
	       "= multiply(", 1);
	/* of which two elements are taken */
	expect(JOIN("%5", "%1", "%2", "%3") "%6 = multiply(%5, %4) : " THREE "\n"
	       "%7 = slice(%6) {limit_indices = [2], start_indices = [0], strides = [1]} : "
	       "tensor<2xf32>\n", "%7", "= multiply(", 1);
	/* parts of more than one element; and nothing that is put together */
	expect("%5 = concatenate(%1, %2) {dimension = 0} : tensor<2xf32>\n"
	       "%8 = concatenate(%5, %3) {dimension = 0} : " THREE "\n"
	       "%6 = multiply(%8, %4) : " THREE "\n" TAKE("%7", "%6"), "%7, %5", "= multiply(", 1);
	expect("%6 = multiply(%4, %4) : " THREE "\n" TAKE("%7", "%6"), "%7", "= multiply(", 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_taken_apart_is_done_number_by_number),
		cmocka_unit_test(what_stays_together_is_done_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
