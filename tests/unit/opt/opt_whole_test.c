/* SPDX-License-Identifier: Apache-2.0 */
/* What simplify/whole.c makes of quotients and remainders by powers of 2 and of questions about
 * known numbers, and of their types, by the text after the pass simplify. */
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

/* Of %1, of such a type, lines with the type in place of @ make %9; `has` comes of them, `lacks`
 * does not. */
static void expect(const char *type, const char *lines, const char *has, const char *lacks)
{
	char text[3000], *out, *to = text;

	to += sprintf(to, "module() () {\nfunc() {sym_name = \"main\"} (%%1: %s) {\n", type);
	for (const char *p = lines; *p; p++)
		if (*p == '@')
			to += sprintf(to, "%s", type);
		else
			*to++ = *p;
	sprintf(to, "return(%%9)\n}\n}\n");
	out = opt_after("simplify", text);
	if (!strstr(out, has) || strstr(out, lacks))
		fail_msg("no %s, or %s\n%s\nbecame\n%s", has, lacks, text, out);
	free(out);
}

#define NUMBER(name, element) name " = constant() {value = dense<splat " element "> : @} : @\n"
#define COMPARE(name, x, how, y) \
	name " = compare(" x ", " y ") {compare_type = <SIGNED>, comparison_direction = <" how \
	">} : tensor<8xi1>\n"
#define S32 "tensor<8xi32>"
#define U32 "tensor<8xui32>"

static void unsigned_ones_are_shifts_and_bits(void **state)
{
	(void)state;
	expect(U32, NUMBER("%2", "0x08000000") "%9 = divide(%1, %2) : @\n",
	       "shift_right_logical(", "divide(");
	expect(U32, NUMBER("%2", "0x00000080") "%9 = remainder(%1, %2) : @\n", "0xffffff7f",
	       "remainder(");
	expect(U32, NUMBER("%2", "0x06000000") "%9 = divide(%1, %2) : @\n", "divide(", "shift");
	expect(U32, NUMBER("%2", "0x00000000") "%9 = remainder(%1, %2) : @\n", "remainder(",
	       "and(");
	/* these round to 0 */
	expect(S32, NUMBER("%2", "0x08000000") "%9 = divide(%1, %2) : @\n", "divide(", "shift");
	expect(S32, NUMBER("%2", "0x08000000") "%9 = remainder(%1, %2) : @\n", "remainder(",
	       "and(");
}

#define REMAINDER(by, added) \
	NUMBER("%2", by) NUMBER("%3", "0x00000000") NUMBER("%4", added) \
	"%5 = remainder(%1, %2) : @\n" COMPARE("%6", "%5", "LT", "%3") \
	COMPARE("%7", "%5", "NE", "%3") "%8 = and(%6, %7) : tensor<8xi1>\n" \
	"%10 = add(%5, %4) : @\n%9 = select(%8, %10, %5) : @\n"
#define QUOTIENT(by, with, less) \
	NUMBER("%2", by) NUMBER("%11", with) NUMBER("%3", "0x00000000") NUMBER("%4", less) \
	"%5 = divide(%1, %2) : @\n%12 = sign(%1) : @\n%13 = remainder(%1, %11) : @\n" \
	NUMBER("%14", "0x01000000") COMPARE("%6", "%12", "NE", "%14") \
	COMPARE("%7", "%13", "NE", "%3") "%8 = and(%6, %7) : tensor<8xi1>\n" \
	"%10 = subtract(%5, %4) : @\n%9 = select(%8, %10, %5) : @\n"

static void those_that_round_down_are_shifts_and_bits(void **state)
{
	(void)state;
	expect(S32, REMAINDER("0x08000000", "0x08000000"), "0x07000000", "remainder(");
	expect(S32, QUOTIENT("0x08000000", "0x08000000", "0x01000000"),
	       "shift_right_arithmetic(", "divide(");
	expect(S32, REMAINDER("0x08000000", "0x04000000"), "remainder(", "0x07000000");
	expect(S32, REMAINDER("0x07000000", "0x07000000"), "remainder(", "0x06000000");
	expect(S32, QUOTIENT("0x08000000", "0x04000000", "0x01000000"), "divide(", "shift");
	expect(S32, QUOTIENT("0x08000000", "0x08000000", "0x02000000"), "divide(", "shift");
	expect(S32, QUOTIENT("0x00000080", "0x00000080", "0x01000000"), "divide(", "shift");
}

static void what_is_known_is_not_asked(void **state)
{
	(void)state;
	expect(S32, NUMBER("%2", "0xffffffff") NUMBER("%3", "0x01000000")
	       COMPARE("%9", "%2", "LT", "%3"), "splat 0x01>", "compare(");
	expect(U32, NUMBER("%2", "0xffffffff") NUMBER("%3", "0x01000000")
	       COMPARE("%9", "%2", "LT", "%3"), "splat 0x00>", "compare(");
	expect(U32, NUMBER("%3", "0x00000000") COMPARE("%9", "%1", "LT", "%3"), "splat 0x00>",
	       "compare(");
	expect(S32, NUMBER("%2", "0xfeffffff") "%9 = sign(%2) : @\n", "0xffffffff", "sign(");
	expect("tensor<8xi1>", NUMBER("%2", "0x00") COMPARE("%9", "%1", "NE", "%2"), "return(%1)",
	       "compare(");
	expect("tensor<8xi1>", NUMBER("%2", "0x00") COMPARE("%9", "%1", "EQ", "%2"), "not(%1)",
	       "compare(");
	expect("tensor<8xi1>", NUMBER("%2", "0x01") COMPARE("%9", "%1", "NE", "%2"), "not(%1)",
	       "compare(");
}

static void known_numbers_are_added_up(void **state)
{
	(void)state;
	expect(S32, NUMBER("%2", "0x05000000") NUMBER("%3", "0x03000000") "%4 = add(%1, %2) : @\n"
	       "%9 = add(%3, %4) : @\n", "0x08000000", "0x03000000");
	expect(S32, NUMBER("%2", "0x05000000") NUMBER("%3", "0x03000000")
	       "%4 = subtract(%1, %2) : @\n%9 = add(%4, %3) : @\n", "0xfeffffff", "subtract(");
	expect(S32, NUMBER("%2", "0x05000000") NUMBER("%3", "0x03000000")
	       "%4 = subtract(%2, %1) : @\n%9 = subtract(%4, %3) : @\n", "0x02000000", "add(");
	/* what comes out is one of as many bits */
	expect("tensor<8xui8>", NUMBER("%2", "0xff") NUMBER("%3", "0x03") "%4 = add(%1, %2) : @\n"
	       "%9 = add(%4, %3) : @\n", "0x02", "0xff");
	/* floats are rounded in between, and an array that is there is read as soon */
	expect("tensor<8xf32>", NUMBER("%2", "0x0000803f") NUMBER("%3", "0x00000040")
	       "%4 = add(%1, %2) : @\n%9 = add(%4, %3) : @\n", "0x0000803f", "0x00004040");
	expect(S32, NUMBER("%2", "0x05000000") NUMBER("%3", "0x03000000") "%4 = add(%1, %2) : @\n"
	       "%5 = add(%4, %3) : @\n%9 = multiply(%4, %5) : @\n", "0x03000000", "0x08000000");
	/* a known number less a sum stays */
	expect(S32, NUMBER("%2", "0x05000000") NUMBER("%3", "0x03000000") "%4 = add(%1, %2) : @\n"
	       "%9 = subtract(%3, %4) : @\n", "0x05000000", "0x02000000");
}

/* Of a constant of type `from`, the number it is as `to`; or it stays. */
static void expect_converted(const char *from, const char *element, const char *to,
			     const char *has)
{
	char lines[400];

	snprintf(lines, sizeof(lines), "%%2 = constant() {value = dense<splat %s> : tensor<8x%s>} "
		 ": tensor<8x%s>\n%%9 = convert(%%2) : tensor<8x%s>\n", element, from, from, to);
	expect(S32, lines, has ? has : "convert(", has ? "convert(" : "splat 0xff");
}

static void known_numbers_become_floats(void **state)
{
	(void)state;
	expect_converted("i32", "0x80ffffff", "f32", "0x000000c3");	/* -128 */
	expect_converted("i8", "0x7f", "bf16", "0xfe42");
	expect_converted("i1", "0x01", "f32", "0x0000803f");
	expect_converted("ui8", "0xff", "f16", "0xf85b");
	expect_converted("i64", "0x0000000000002000", "f64", "0x0000000000004043");	/* 2^53 */
	expect_converted("f64", "0x00000000000008c0", "f32", "0x000040c0");		/* -3 */
	expect_converted("f32", "0x00004040", "bf16", "0x4040");			/* 3 */
	/* what is rounded, and what is no whole number, the device converts */
	expect_converted("i32", "0x01000001", "f32", NULL);		/* 2^24 + 1 */
	expect_converted("i32", "0x01010000", "bf16", NULL);		/* 257 */
	expect_converted("i64", "0x0100000000002000", "f64", NULL);
	expect_converted("ui64", "0x00000000000000f0", "f64", NULL);
	expect_converted("f32", "0x0000003f", "f64", NULL);		/* 1 / 2 */
	expect_converted("f32", "0x00000080", "f64", NULL);		/* -0 */
	expect_converted("f64", "0x000000000000f07f", "f32", NULL);	/* infinity */
	expect_converted("f32", "0x0000c07f", "f64", NULL);		/* NaN */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unsigned_ones_are_shifts_and_bits),
		cmocka_unit_test(those_that_round_down_are_shifts_and_bits),
		cmocka_unit_test(what_is_known_is_not_asked),
		cmocka_unit_test(known_numbers_are_added_up),
		cmocka_unit_test(known_numbers_become_floats),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
