/* SPDX-License-Identifier: Apache-2.0 */
/* What simplify/narrow.c counts in fewer bits and which operations on whole numbers simplify
 * takes out, by the text after it. */
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

/* The text of a function whose body these lines are, after the pass. */
static char *simplified(const char *lines)
{
	char text[3000];

	snprintf(text, sizeof(text), "module() () {\nfunc() {sym_name = \"main\"} "
		 "(%%1: tensor<6x5xui64>, %%2: tensor<6x5xf32>) {\n%s}\n}\n", lines);
	return opt_after("simplify", text);
}

static void expect(const char *lines, const char *what, bool is_there)
{
	char *out = simplified(lines);

	if (is_there != !!strstr(out, what))
		fail_msg("'%s' is %s in\n%s", what, is_there ? "not" : "still", out);
	free(out);
}

#define OF(type) " : tensor<6x5x" type ">\n"
#define SPLAT(id, bits, type) id " = constant() {value = dense<splat " bits "> : tensor<6x5x" \
	type ">} : tensor<6x5x" type ">\n"
#define ONE "0x0100000000000000"
#define IOTAS "%10 = iota() {iota_dimension = 0}" OF("ui64") "%11 = iota() {iota_dimension = 1}" \
	OF("ui64") SPLAT("%12", "0x0500000000000000", "ui64") SPLAT("%13", ONE, "ui64") \
	"%14 = multiply(%12, %10)" OF("ui64") "%15 = multiply(%13, %11)" OF("ui64") \
	"%16 = add(%14, %15)" OF("ui64")
#define SHIFT(v, bits) SPLAT("%20", bits, "ui64") \
	"%21 = shift_right_logical(" v ", %20)" OF("ui64") "return(%21)\n"

static void upper_bits_of_small_numbers_are_zero(void **state)
{
	(void)state;
	/* 0 to 29 */
	expect(IOTAS SHIFT("%16", "0x2000000000000000"), "iota", false);
	expect(IOTAS SHIFT("%16", "0x0500000000000000"), "iota", false);
	expect(IOTAS SHIFT("%16", "0x0400000000000000"), "shift_right_logical", true);
	/* by all bits, or more, has an answer of its own */
	expect(IOTAS SHIFT("%16", "0x4000000000000000"), "shift_right_logical", true);
	/* what may be anything, or below 0 */
	expect(IOTAS SHIFT("%1", "0x3f00000000000000"), "shift_right_logical", true);
	expect(IOTAS "%17 = subtract(%16, %13)" OF("ui64") SHIFT("%17", "0x2000000000000000"),
	       "shift_right_logical", true);
	/* what passes 64 bits on the way */
	expect(IOTAS SPLAT("%17", "0x0000000000000080", "ui64")
	       "%18 = multiply(%16, %17)" OF("ui64") SHIFT("%18", "0x2000000000000000"),
	       "shift_right_logical", true);
	/* ... up to 2^64, which looks like 0 */
	expect("%10 = iota() {iota_dimension = 0} : tensor<17xui64>\n"
	       "%11 = constant() {value = dense<splat 0x0000000000000010> : tensor<17xui64>} : "
	       "tensor<17xui64>\n%12 = multiply(%10, %11) : tensor<17xui64>\n"
	       "%20 = constant() {value = dense<splat 0x2000000000000000> : tensor<17xui64>} : "
	       "tensor<17xui64>\n%21 = shift_right_logical(%12, %20) : tensor<17xui64>\n"
	       "return(%21)\n", "shift_right_logical", true);
	/* below 0 where 8 bits end, and large as an unsigned number */
	expect("%10 = iota() {iota_dimension = 0} : tensor<300xui64>\n"
	       "%11 = convert(%10) : tensor<300xi8>\n%12 = convert(%11) : tensor<300xui32>\n"
	       "%20 = constant() {value = dense<splat 0x09000000> : tensor<300xui32>} : "
	       "tensor<300xui32>\n%21 = shift_right_logical(%12, %20) : tensor<300xui32>\n"
	       "return(%21)\n", "shift_right_logical", true);
	/* a number of 8 bits that counts past them */
	expect("%10 = iota() {iota_dimension = 0} : tensor<300xi8>\n"
	       "%20 = constant() {value = dense<splat 0x07> : tensor<300xi8>} : tensor<300xi8>\n"
	       "%21 = shift_right_logical(%10, %20) : tensor<300xi8>\nreturn(%21)\n",
	       "shift_right_logical", true);
}

#define NARROW(v, type) "%30 = convert(" v ")" OF(type) "return(%30)\n"

static void what_is_narrowed_is_counted_so(void **state)
{
	(void)state;
	expect(IOTAS NARROW("%16", "ui32"), "ui64", true);	/* an argument's type */
	expect(IOTAS NARROW("%16", "ui32"), "{iota_dimension = 1} : tensor<6x5xui64>", false);
	expect(IOTAS NARROW("%16", "i8"), "{iota_dimension = 1} : tensor<6x5xi8>", true);
	expect(IOTAS "%17 = add(%16, %1)" OF("ui64") NARROW("%17", "ui32"), "convert", true);
	expect(IOTAS NARROW("%16", "f32"), "convert", true);
	expect(IOTAS NARROW("%16", "i1"), "convert", true);
	expect(IOTAS NARROW("%16", "i4"), "convert", true);
	/* somebody needs a part of it as it is */
	expect(IOTAS "%30 = convert(%16)" OF("ui32") "return(%30, %14)\n", "convert", true);
}

static void whole_numbers_and_what_changes_none(void **state)
{
	static const char *const either[] = { "add", "or", "xor" };
	static const char *const right[] = { "add", "or", "xor", "subtract", "shift_left",
					     "shift_right_logical", "shift_right_arithmetic" };
	char lines[600];

	(void)state;
#define LINES(op, bits, x, y, type) (snprintf(lines, sizeof(lines), \
	SPLAT("%%8", bits, type) "%%9 = %s(%s, %s)" OF(type) "return(%%9)\n", op, x, y), lines)
	for (unsigned i = 0; i < 7; i++)
		expect(LINES(right[i], "0x0000000000000000", "%1", "%8", "ui64"), "%9 =", false);
	for (unsigned i = 0; i < 3; i++)
		expect(LINES(either[i], "0x0000000000000000", "%8", "%1", "ui64"), "%9 =", false);
	for (unsigned i = 3; i < 7; i++)
		expect(LINES(right[i], "0x0000000000000000", "%8", "%1", "ui64"), "%9 =", true);
	expect(LINES("multiply", ONE, "%1", "%8", "ui64"), "%9 =", false);
	expect(LINES("multiply", ONE, "%8", "%1", "ui64"), "%9 =", false);
	expect(LINES("divide", ONE, "%1", "%8", "ui64"), "%9 =", false);
	expect(LINES("divide", ONE, "%8", "%1", "ui64"), "%9 =", true);
	expect(LINES("multiply", "0x0000000000000000", "%1", "%8", "ui64"), "%9 =", true);
	expect(LINES("add", ONE, "%1", "%8", "ui64"), "%9 =", true);
	/* -0 + 0 is 0 */
	expect(LINES("add", "0x00000000", "%2", "%8", "f32"), "%9 =", true);
}

/* Of a loop that begins at `first`, turns while its number is `direction` than `most` and adds
 * `step` in each turn: whether its body still asks if %30, of its number, is below 0. */
static bool asks_below_zero(const char *first, const char *direction, const char *most,
			    const char *step, const char *index)
{
	char text[3000], *out;
	bool asks;

	snprintf(text, sizeof(text), "module() () {\nfunc() {sym_name = \"main\"} "
		 "(%%1: tensor<i32>, %%2: tensor<f32>) {\n%%3 = constant() {value = dense<%s> : "
		 "tensor<i32>} : tensor<i32>\n%%4 = constant() {value = dense<%s> : tensor<i32>} "
		 ": tensor<i32>\n%%5 = constant() {value = dense<%s> : tensor<i32>} : tensor<i32>\n"
		 "%%6 = constant() {value = dense<0x00000000> : tensor<i32>} : tensor<i32>\n"
		 "%%7 = constant() {value = dense<0x07000000> : tensor<i32>} : tensor<i32>\n"
		 "%%8, %%9 = while(%%3, %%2) : tensor<i32>, tensor<f32> (%%10: tensor<i32>, "
		 "%%11: tensor<f32>) {\n%%12 = compare(%%10, %%4) {compare_type = <SIGNED>, "
		 "comparison_direction = <%s>} : tensor<i1>\nreturn(%%12)\n} (%%20: tensor<i32>, "
		 "%%21: tensor<f32>) {\n%s%%31 = compare(%%30, %%6) {compare_type = <SIGNED>, "
		 "comparison_direction = <LT>} : tensor<i1>\n%%32 = convert(%%30) : tensor<f32>\n"
		 "%%33 = select(%%31, %%21, %%32) : tensor<f32>\n%%34 = add(%%20, %%5) : "
		 "tensor<i32>\n%%35 = add(%%5, %%34) : tensor<i32>\n"
		 "return(%%35, %%33)\n}\nreturn(%%9)\n}\n}\n", first, most, step, direction, index);
	out = opt_after("simplify", text);
	asks = strstr(out, "select(");
	free(out);
	return asks;
}

#define BY(op, x, y) "%30 = " op "(" x ", " y ") : tensor<i32>\n"
#define SEVENTH BY("remainder", "%20", "%7")
#define MOST "0xffffff7f"	/* 2^31 - 1 */

static void what_a_loop_counts_is_not_below_zero(void **state)
{
	static const char zero[] = "0x00000000", one[] = "0x01000000", many[] = "0xe8030000";

	(void)state;
	assert_false(asks_below_zero(zero, "LT", many, one, BY("multiply", "%20", "%7")));
	assert_false(asks_below_zero(zero, "LT", many, one, SEVENTH));
	assert_false(asks_below_zero(one, "LT", many, many, BY("divide", "%20", "%7")));
	/* before the first turn, by less than nothing, past the last number */
	assert_true(asks_below_zero("0xffffffff", "LT", many, one, SEVENTH));
	assert_true(asks_below_zero(zero, "LT", many, "0xffffffff", SEVENTH));
	assert_true(asks_below_zero(zero, "LT", MOST, one, SEVENTH));
	assert_false(asks_below_zero(zero, "LT", "0xfdffff7f", one, SEVENTH));
	/* what ends it otherwise, and what is not known or passes 31 bits */
	assert_true(asks_below_zero(zero, "NE", many, one, SEVENTH));
	assert_true(asks_below_zero(zero, "LT", many, one, BY("remainder", "%20", "%1")));
	assert_true(asks_below_zero(zero, "LT", many, one, BY("remainder", "%1", "%7")));
	assert_true(asks_below_zero(zero, "LT", many, one, BY("divide", "%20", "%6")));
	assert_true(asks_below_zero(zero, "LT", "0x00000040", one, BY("multiply", "%20", "%7")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(upper_bits_of_small_numbers_are_zero),
		cmocka_unit_test(what_is_narrowed_is_counted_so),
		cmocka_unit_test(whole_numbers_and_what_changes_none),
		cmocka_unit_test(what_a_loop_counts_is_not_below_zero),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
