/* SPDX-License-Identifier: Apache-2.0 */
/* What opt/simplify.c makes of programs, by their text after it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "runtime/compiler/tc.h"

/* The steps of a logistic function of an array; `more` lines see to some of the values. */
static void expect_logistic(bool is_one, const char *type, const char *minus, const char *one,
			    const char *sum, const char *more)
{
	const struct tc_options o = { .level = 1, .verify = true };
	char text[1200], *out;
	struct err err;

	snprintf(text, sizeof(text),
		 "module() () {\nfunc() {sym_name = \"main\"} (%%1: tensor<8x%s>) {\n"
		 "%%2 = %s(%%1) : tensor<8x%s>\n"
		 "%%3 = exponential(%%2) : tensor<8x%s>\n"
		 "%%4 = constant() {value = dense<splat %s> : tensor<8x%s>} : tensor<8x%s>\n"
		 "%%5 = %s : tensor<8x%s>\n"
		 "%%6 = divide(%%4, %%5) : tensor<8x%s>\n"
		 "return(%s)\n}\n}\n", type, minus, type, type, one, type, type, sum, type, type,
		 more);
	if (tc_print(&(struct tc_source){ text, strlen(text), "mlir" }, &o, "simplify", &out, &err))
		fail_msg("%s\n%s", err.msg, text);
	if (is_one != !!strstr(out, "logistic(") || is_one != !strstr(out, "exponential("))
		fail_msg("%s\nbecame\n%s", text, out);
	free(out);
}

#define ONE32 "0x0000803f"
#define ONE64 "0x000000000000f03f"

static void the_steps_of_a_logistic_function_are_that(void **state)
{
	(void)state;
	expect_logistic(true, "f32", "negate", ONE32, "add(%4, %3)", "%6");
	expect_logistic(true, "f32", "negate", ONE32, "add(%3, %4)", "%6");
	expect_logistic(true, "f64", "negate", ONE64, "add(%4, %3)", "%6");
	expect_logistic(true, "f32", "negate", ONE32, "add(%4, %3)", "%6, %2");
}

static void other_steps_are_not(void **state)
{
	(void)state;
	/* rounded in between */
	expect_logistic(false, "bf16", "negate", "0x803f", "add(%4, %3)", "%6");
	expect_logistic(false, "f16", "negate", "0x003c", "add(%4, %3)", "%6");
	/* somebody looks at a step */
	expect_logistic(false, "f32", "negate", ONE32, "add(%4, %3)", "%6, %3");
	expect_logistic(false, "f32", "negate", ONE32, "add(%4, %3)", "%6, %5");
	/* other numbers and operations */
	expect_logistic(false, "f32", "negate", "0x0100803f", "add(%4, %3)", "%6");
	expect_logistic(false, "f32", "negate", ONE32, "add(%3, %1)", "%6");
	expect_logistic(false, "f32", "negate", ONE32, "add(%3, %3)", "%6");
	expect_logistic(false, "f32", "negate", ONE32, "subtract(%4, %3)", "%6");
	expect_logistic(false, "f32", "abs", ONE32, "add(%4, %3)", "%6");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_steps_of_a_logistic_function_are_that),
		cmocka_unit_test(other_steps_are_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
