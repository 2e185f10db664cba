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

/* A product of [batch, rows, 32] and [batch, 32, cols], moved by `permutation`. */
static void expect_turned(bool is_turned, const char *type, unsigned rows, unsigned cols,
			  const char *permutation, const char *more, const char *attrs)
{
	const struct tc_options o = { .level = 1, .verify = true };
	bool is_moved = !strcmp(permutation, "0, 2, 1");
	char text[1200], *out;
	struct err err;

	snprintf(text, sizeof(text),
		 "module() () {\nfunc() {sym_name = \"main\"} (%%1: tensor<3x%ux32x%s>, "
		 "%%2: tensor<3x32x%ux%s>) {\n"
		 "%%3 = dot_general(%%1, %%2) {lhs_batching_dimensions = [0], "
		 "rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], "
		 "rhs_contracting_dimensions = [1]%s} : tensor<3x%ux%ux%s>\n"
		 "%%4 = transpose(%%3) {permutation = [%s]} : tensor<%ux%ux%ux%s>\n"
		 "return(%%4%s)\n}\n}\n", rows, type, cols, type, attrs, rows, cols, type, permutation,
		 is_moved ? 3 : rows, is_moved ? cols : 3, is_moved ? rows : cols, type, more);
	if (tc_print(&(struct tc_source){ text, strlen(text), "mlir" }, &o, "simplify", &out, &err))
		fail_msg("%s\n%s", err.msg, text);
	if (is_turned != !strstr(out, "transpose(") ||
	    is_turned != !!strstr(out, "dot_general(%2, %1)") ||
	    is_turned != !!strstr(out, "lhs_contracting_dimensions = [1]") ||
	    is_turned != !!strstr(out, "rhs_contracting_dimensions = [2]"))
		fail_msg("%s\nbecame\n%s", text, out);
	free(out);
}

static void a_product_that_is_turned_is_one_the_other_way_round(void **state)
{
	(void)state;
	expect_turned(true, "f32", 64, 64, "0, 2, 1", "", "");
	expect_turned(true, "bf16", 65, 100, "0, 2, 1", "", "");
	expect_turned(true, "i8", 64, 64, "0, 2, 1", "", ", precision_config = [0, 0]");
	/* parts of a product are added up in their order */
	expect_turned(false, "complex<f32>", 64, 64, "0, 2, 1", "", "");
	/* few rows or columns */
	expect_turned(false, "f32", 63, 64, "0, 2, 1", "", "");
	expect_turned(false, "f32", 64, 63, "0, 2, 1", "", "");
	/* another move; somebody looks at it as it is; sides that are rounded apart */
	expect_turned(false, "f32", 64, 64, "1, 0, 2", "", "");
	expect_turned(false, "f32", 64, 64, "0, 2, 1", ", %3", "");
	expect_turned(false, "f32", 64, 64, "0, 2, 1", "", ", lhs_precision_type = \"bf16\", "
		      "rhs_precision_type = \"f32\", accumulation_type = \"f32\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_steps_of_a_logistic_function_are_that),
		cmocka_unit_test(other_steps_are_not),
		cmocka_unit_test(a_product_that_is_turned_is_one_the_other_way_round),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
