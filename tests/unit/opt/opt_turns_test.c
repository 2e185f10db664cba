/* SPDX-License-Identifier: Apache-2.0 */
/* Which elementwise work simplify/turns.c does along other dims first, by the text after the
 * pass simplify. */
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

#define THERE "tensor<4x2x3xf32>"
#define BACK "{permutation = [1, 2, 0]}"

/* Of %1, 2x3x4, and %2, %12 and %13, 4x2x3, lines make %9, which is turned back; that has n_moves
 * transposes, and `has`. */
static void expect(const char *lines, const char *back, unsigned n_moves, const char *has)
{
	char text[2000], *out;
	unsigned n = 0;

	snprintf(text, sizeof(text), "module() () {\nfunc() {sym_name = \"main\"} "
		 "(%%1: tensor<2x3x4xf32>, %%2: " THERE ", %%8: tensor<2xf32>, %%7: tensor<i1>, "
		 "%%12: " THERE ", %%13: " THERE ") {\n"
		 "%%3 = transpose(%%1) {permutation = [2, 0, 1]} : " THERE "\n%s"
		 "%%10 = transpose(%%9) %s : tensor<2x3x4xf32>\nreturn(%%10)\n}\n}\n", lines, back);
	out = opt_after("simplify", text);
	for (const char *p = out; (p = strstr(p, " transpose(")); p++)
		n++;
	if (n != n_moves || !strstr(out, has))
		fail_msg("%u moves, not %u, or no %s\n%s\nbecame\n%s", n, n_moves, has, text, out);
	free(out);
}

static void what_is_turned_back_is_never_turned(void **state)
{
	(void)state;
	expect("%9 = tanh(%3) : " THERE "\n", BACK, 0, "tanh(");
	expect("%9 = add(%3, %3) : " THERE "\n", BACK, 0, "add(");
	/* seen twice, but by one op */
	expect("%4 = sine(%3) : " THERE "\n%9 = multiply(%4, %4) : " THERE "\n", BACK, 0,
	       "multiply(");
	expect("%4 = constant() {value = dense<splat 0x0000803f> : " THERE "} : " THERE "\n"
	       "%9 = add(%3, %4) : " THERE "\n", BACK, 0, "splat 0x0000803f> : tensor<2x3x4xf32>");
	expect("%4 = iota() {iota_dimension = 0} : " THERE "\n"
	       "%9 = add(%3, %4) : " THERE "\n", BACK, 0, "iota_dimension = 2");
	expect("%4 = broadcast_in_dim(%8) {broadcast_dimensions = [1]} : " THERE "\n"
	       "%9 = add(%3, %4) : " THERE "\n", BACK, 0, "broadcast_dimensions = [0]");
	/* a choice by one truth for all */
	expect("%4 = sine(%3) : " THERE "\n%9 = select(%7, %3, %4) : " THERE "\n", BACK, 0,
	       "tensor<2x3x4xf32>");
}

static void there_are_no_more_moves_than_before(void **state)
{
	(void)state;
	expect("%9 = add(%3, %2) : " THERE "\n", BACK, 1, "add(");
	expect("%4 = add(%2, %3) : " THERE "\n%9 = multiply(%4, %2) : " THERE "\n", BACK, 2,
	       "multiply(");
	expect("%4 = add(%2, %3) : " THERE "\n%11 = subtract(%4, %12) : " THERE "\n"
	       "%9 = multiply(%11, %13) : " THERE "\n", BACK, 2, "multiply(");
	expect("%9 = tanh(%2) : " THERE "\n", BACK, 1, "tanh(");
}

static void what_others_see_or_is_turned_elsewhere_stays(void **state)
{
	(void)state;
	expect("%4 = transpose(%2) {permutation = [0, 2, 1]} : tensor<4x3x2xf32>\n"
	       "%9 = tanh(%4) : tensor<4x3x2xf32>\n", "{permutation = [2, 1, 0]}", 2, "tanh(");
	expect("%4 = tanh(%3) : " THERE "\n%5 = add(%4, %2) : " THERE "\n"
	       "%6 = multiply(%4, %2) : " THERE "\n%9 = subtract(%5, %6) : " THERE "\n", BACK, 2,
	       "multiply(");
}

#define FOLDED "tensor<4000xf32>"
#define SPREAD(name, from, dim) \
	name " = broadcast_in_dim(" from ") {broadcast_dimensions = [" dim "]} : %s\n"

/* `op` of two arrays spread over `shape`, folded by `fold` along `dim` of what is left of it. */
static void expect_fold(const char *shape, const char *folded, const char *few, const char *op,
			const char *fold, unsigned dim, bool is_first)
{
	const char *none = strcmp(fold, "maximum") ? strcmp(fold, "minimum") ? "0x00000000" :
			   "0x0000807f" : "0x000080ff";
	char text[2000], *out;

	snprintf(text, sizeof(text), "module() () {\nfunc() {sym_name = \"main\"} "
		 "(%%1: %s, %%2: tensor<%sxf32>, %%10: %s) {\n" SPREAD("%%3", "%%1", "0")
		 SPREAD("%%4", "%%2", "1") "%%5 = %s : %s\n"
		 "%%6 = constant() {value = dense<%s> : tensor<f32>} : tensor<f32>\n"
		 "%%7 = reduce(%%5, %%6) {dimensions = [%u]} : %s (%%20: tensor<f32>, "
		 "%%21: tensor<f32>) {\n%%22 = %s(%%20, %%21) : tensor<f32>\nreturn(%%22)\n}\n"
		 "return(%%7)\n}\n}\n", FOLDED, few, shape, shape, shape, op, shape, none, dim,
		 folded, fold);
	out = opt_after("simplify", text);
	if (is_first != !!strstr(out, "x4000xf32>") || strstr(out, "transpose("))
		fail_msg("%d: %s\nbecame\n%s", is_first, text, out);
	free(out);
}

static void short_rows_of_what_is_spread_are_folded_first(void **state)
{
	(void)state;
	expect_fold("tensor<4000x30xf32>", FOLDED, "30", "subtract(%3, %4)", "maximum", 1, true);
	expect_fold("tensor<4000x30xf32>", FOLDED, "30", "subtract(%3, %4)", "minimum", 1, true);
	/* a sum would be another one */
	expect_fold("tensor<4000x30xf32>", FOLDED, "30", "subtract(%3, %4)", "add", 1, false);
	/* some of it is in memory, in rows */
	expect_fold("tensor<4000x30xf32>", FOLDED, "30", "subtract(%3, %10)", "maximum", 1, false);
	/* long rows; the few are left */
	expect_fold("tensor<4000x300xf32>", FOLDED, "300", "subtract(%3, %4)", "maximum", 1, false);
	expect_fold("tensor<4000x30xf32>", "tensor<30xf32>", "30", "subtract(%3, %4)", "maximum", 0,
		    false);
}

/* `lines` make %9 of %1, 2x3, and %2, 2x3 bytes; `uses` look at it turned, at %10. */
static void expect_before(const char *lines, const char *uses, bool is_before)
{
	char text[2000], *out;
	const char *move, *work;

	snprintf(text, sizeof(text), "module() () {\nfunc() {sym_name = \"main\"} "
		 "(%%1: tensor<2x3xf32>, %%2: tensor<2x3xui8>, %%3: tensor<2x3xf32>) {\n%s"
		 "%%10 = transpose(%%9) {permutation = [1, 0]} : tensor<3x2xf32>\n%s\n}\n}\n",
		 lines, uses);
	out = opt_after("simplify", text);
	move = strstr(out, " transpose(");
	work = strstr(out, "exponential(");
	if (!move || !work || is_before != (move < work))
		fail_msg("%d: %s\nbecame\n%s", is_before, text, out);
	free(out);
}

static void an_argument_is_turned_before_work(void **state)
{
	(void)state;
	expect_before("%9 = exponential(%1) : tensor<2x3xf32>\n", "return(%10)", true);
	expect_before("%4 = exponential(%1) : tensor<2x3xf32>\n"
		      "%9 = multiply(%4, %1) : tensor<2x3xf32>\n",
		      "%11 = sine(%10) : tensor<3x2xf32>\nreturn(%11)", true);
	expect_before("%4 = convert(%2) : tensor<2x3xf32>\n"
		      "%9 = exponential(%4) : tensor<2x3xf32>\n", "return(%10)", true);
	/* Two of them; what others see; what a product reads as it lies. */
	expect_before("%4 = exponential(%1) : tensor<2x3xf32>\n"
		      "%9 = multiply(%4, %3) : tensor<2x3xf32>\n", "return(%10)", false);
	expect_before("%9 = exponential(%1) : tensor<2x3xf32>\n", "return(%10, %9)", false);
	expect_before("%9 = exponential(%1) : tensor<2x3xf32>\n",
		      "%11 = dot_general(%10, %3) {lhs_batching_dimensions = [], "
		      "rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], "
		      "rhs_contracting_dimensions = [0]} : tensor<3x3xf32>\nreturn(%11)", false);
}

static void a_result_that_is_narrower_is_turned_behind(void **state)
{
	char *out = opt_after("simplify", "module() () {\nfunc() {sym_name = \"main\"} "
		"(%1: tensor<2x3xf32>) {\n%9 = convert(%1) : tensor<2x3xbf16>\n"
		"%10 = transpose(%9) {permutation = [1, 0]} : tensor<3x2xbf16>\n"
		"return(%10)\n}\n}\n");

	(void)state;
	assert_true(strstr(out, "convert(") < strstr(out, " transpose("));
	free(out);
}

/* Whether what is joined along dim 0 and turned in the text is joined along dim 1. */
static bool is_joined_last(const char *text)
{
	char *out = opt_after("simplify", text);
	bool is = strstr(out, "concatenate") && strstr(out, "{dimension = 1}");

	free(out);
	return is;
}

/* Whether two results of shape `part`, joined and turned, and `extra` returned, are joined where
 * they end. */
static bool are_joined_by_turns(const char *part, const char *joined, const char *turned,
				const char *extra)
{
	char text[1500];

	snprintf(text, sizeof(text), "module() () {\nfunc() {sym_name = \"main\"} "
		 "(%%1: tensor<%s>, %%2: tensor<%s>) {\n"
		 "%%3 = add(%%1, %%2) : tensor<%s>\n%%4 = subtract(%%1, %%2) : tensor<%s>\n"
		 "%%5 = concatenate(%%3, %%4) {dimension = 0} : tensor<%s>\n"
		 "%%6 = transpose(%%5) {permutation = [1, 0]} : tensor<%s>\n"
		 "return(%%6%s)\n}\n}\n", part, part, part, part, joined, turned, extra);
	return is_joined_last(text);
}

static void results_that_are_joined_and_turned_are_joined_by_turns(void **state)
{
	(void)state;
	assert_true(are_joined_by_turns("1x5xf32", "2x5xf32", "5x2xf32", ""));
	/* rows of more than one; and where others look at the whole, or at a part */
	assert_false(are_joined_by_turns("2x5xf32", "4x5xf32", "5x4xf32", ""));
	assert_false(are_joined_by_turns("1x5xf32", "2x5xf32", "5x2xf32", ", %5"));
	assert_false(are_joined_by_turns("1x5xf32", "2x5xf32", "5x2xf32", ", %3"));
}

#define PAD(name, from, low, high, t) name " = pad(" from ", %0) {edge_padding_low = [" low "], " \
	"edge_padding_high = [" high "], interior_padding = [0, 0]} : " t "\n"
#define SIX "tensor<2x6xf32>"

/* Of %1, %2 and %3, 2x2, %4, 2x6, and a zero %0, lines make %9, of how many padded arrays. */
static void expect_pads(const char *lines, unsigned n_pads)
{
	char text[2000], *out;
	unsigned n = 0;

	snprintf(text, sizeof(text), "module() () {\nfunc() {sym_name = \"main\"} "
		 "(%%1: tensor<2x2xf32>, %%2: tensor<2x2xf32>, %%3: tensor<2x2xf32>, %%4: " SIX
		 ") {\n%%0 = constant() {value = dense<0x00000000> : tensor<f32>} : tensor<f32>\n"
		 "%sreturn(%%9)\n}\n}\n", lines);
	out = opt_after("simplify", text);
	for (const char *p = out; (p = strstr(p, " pad(")); p++)
		n++;
	if (n != n_pads || (!n && !strstr(out, " concatenate(")))
		fail_msg("%u padded, not %u: %s\nbecame\n%s", n, n_pads, text, out);
	free(out);
}

static void padded_arrays_that_do_not_meet_are_put_together(void **state)
{
	(void)state;
	expect_pads(PAD("%5", "%1", "0, 0", "0, 4", SIX) PAD("%6", "%2", "0, 2", "0, 2", SIX)
		    PAD("%7", "%3", "0, 4", "0, 0", SIX) "%8 = add(%5, %6) : " SIX "\n"
		    "%9 = add(%8, %7) : " SIX "\n", 0);
	expect_pads(PAD("%5", "%1", "0, 4", "0, 0", SIX) PAD("%6", "%2", "0, 0", "0, 4", SIX)
		    "%9 = maximum(%5, %6) : " SIX "\n", 0);
	/* the same places */
	expect_pads(PAD("%5", "%1", "0, 1", "0, 3", SIX) PAD("%6", "%2", "0, 1", "0, 3", SIX)
		    "%9 = multiply(%5, %6) : " SIX "\n", 0);
	/* one within the other, either way round */
	expect_pads("%7 = concatenate(%1, %2) {dimension = 1} : tensor<2x4xf32>\n"
		    PAD("%5", "%7", "0, 1", "0, 1", SIX) PAD("%6", "%3", "0, 2", "0, 2", SIX)
		    "%9 = add(%5, %6) : " SIX "\n", 2);
	expect_pads("%7 = concatenate(%1, %2) {dimension = 1} : tensor<2x4xf32>\n"
		    PAD("%5", "%7", "0, 1", "0, 1", SIX) PAD("%6", "%3", "0, 2", "0, 2", SIX)
		    "%9 = add(%6, %5) : " SIX "\n", 2);
	/* Places that meet in part; another dim; two dims; something else looks at one. */
	expect_pads(PAD("%5", "%1", "0, 1", "0, 3", SIX) PAD("%6", "%2", "0, 2", "0, 2", SIX)
		    "%9 = add(%5, %6) : " SIX "\n", 2);
	expect_pads(PAD("%5", "%1", "0, 0", "1, 0", "tensor<3x2xf32>")
		    PAD("%6", "%1", "1, 0", "0, 0", "tensor<3x2xf32>")
		    PAD("%7", "%2", "1, 0", "0, 0", "tensor<3x2xf32>")
		    "%8 = add(%5, %6) : tensor<3x2xf32>\n%9 = add(%8, %7) : tensor<3x2xf32>\n", 3);
	expect_pads(PAD("%5", "%1", "0, 0", "1, 1", "tensor<3x3xf32>")
		    PAD("%6", "%2", "1, 1", "0, 0", "tensor<3x3xf32>")
		    "%9 = add(%5, %6) : tensor<3x3xf32>\n", 2);
	expect_pads(PAD("%5", "%1", "0, 0", "0, 4", SIX) PAD("%6", "%2", "0, 2", "0, 2", SIX)
		    "%7 = add(%5, %6) : " SIX "\n%9 = multiply(%7, %5) : " SIX "\n", 2);
	expect_pads(PAD("%5", "%1", "0, 0", "0, 4", SIX) "%9 = add(%5, %4) : " SIX "\n", 1);
	expect_pads(PAD("%5", "%1", "0, -1", "0, 5", SIX) PAD("%6", "%2", "0, 1", "0, 3", SIX)
		    "%9 = add(%5, %6) : " SIX "\n", 2);
}

/* Whether three results of `elem`s that are joined and turned are joined where they end; `then` is
 * what is done with them, %7, before it is returned. */
static bool are_three_joined_by_turns(const char *elem, const char *then, const char *returned)
{
	char text[1500];

	snprintf(text, sizeof(text), "module() () {\nfunc() {sym_name = \"main\"} "
		 "(%%1: tensor<1x5x%s>, %%2: tensor<1x5x%s>) {\n"
		 "%%3 = add(%%1, %%2) : tensor<1x5x%s>\n"
		 "%%4 = subtract(%%1, %%2) : tensor<1x5x%s>\n"
		 "%%5 = multiply(%%1, %%2) : tensor<1x5x%s>\n"
		 "%%6 = concatenate(%%3, %%4, %%5) {dimension = 0} : tensor<3x5x%s>\n"
		 "%%7 = transpose(%%6) {permutation = [1, 0]} : tensor<5x3x%s>\n"
		 "%sreturn(%s)\n}\n}\n", elem, elem, elem, elem, elem, elem, elem, then,
		 returned);
	return is_joined_last(text);
}

static void what_is_not_stored_by_turns_is_joined_as_it_was(void **state)
{
	(void)state;
	assert_true(are_three_joined_by_turns("f32", "", "%7"));
	assert_false(are_three_joined_by_turns("ui8", "", "%7"));
	assert_false(are_three_joined_by_turns("bf16", "", "%7"));
	/* more is done with it */
	assert_false(are_three_joined_by_turns("f32", "%8 = negate(%7) : tensor<5x3xf32>\n",
					       "%8"));
	assert_false(are_three_joined_by_turns("f32", "%8 = slice(%7) {limit_indices = [3, 2], "
					       "start_indices = [0, 1], strides = [1, 1]} : "
					       "tensor<3x1xf32>\n", "%7, %8"));
}

/* Whether lines, which make %9 of %3, the sine of %1 in another shape, make it of the sine, whose
 * shape is `shape`, and then reshape that. */
static bool is_before_ones(const char *from, const char *to, const char *shape, const char *lines)
{
	char text[2000], *out, want[100];
	bool is;

	snprintf(text, sizeof(text), "module() () {\nfunc() {sym_name = \"main\"} (%%1: "
		 "tensor<%sxf32>, %%8: tensor<%sxf32>) {\n%%2 = sine(%%1) : tensor<%sxf32>\n"
		 "%%3 = reshape(%%2) : tensor<%sxf32>\n%%4 = constant() {value = dense<splat "
		 "0x0000803f> : tensor<%sxf32>} : tensor<%sxf32>\n%s%%10 = sort(%%9) {dimension = "
		 "0, is_stable = true} : tensor<%sxf32> (%%11: tensor<f32>, %%12: tensor<f32>) {\n"
		 "%%13 = compare(%%11, %%12) {compare_type = <FLOAT>, comparison_direction = <LT>} "
		 ": tensor<i1>\nreturn(%%13)\n}\nreturn(%%10, %%2)\n}\n}\n", from, to, from, to, to,
		 to, lines, to);
	out = opt_after("simplify", text);
	snprintf(want, sizeof(want), ") : tensor<%sxf32>\n", shape);
	is = strstr(strstr(out, " add("), want) && strstr(strstr(out, " add("), "reshape(");
	free(out);
	return is;
}

#define ADD(x, y, type) "%9 = add(" x ", " y ") : tensor<" type "xf32>\n"

static void work_is_done_before_dims_of_one_come(void **state)
{
	(void)state;
	assert_true(is_before_ones("32x5", "32x5x1", "32x5", ADD("%3", "%4", "32x5x1")));
	assert_true(is_before_ones("32x5", "32x1x5", "32x5", ADD("%4", "%3", "32x1x5")));
	assert_true(is_before_ones("1x160", "160", "1x160", ADD("%3", "%3", "160")));
	/* other work is on what was not made so */
	assert_false(is_before_ones("32x5", "32x5x1", "32x5", ADD("%3", "%8", "32x5x1")));
	/* other dims, and few elements */
	assert_false(is_before_ones("32x5", "160x1", "32x5", ADD("%3", "%4", "160x1")));
	assert_false(is_before_ones("5x32", "32x5", "5x32", ADD("%3", "%4", "32x5")));
	assert_false(is_before_ones("3x5", "3x5x1", "3x5", ADD("%3", "%4", "3x5x1")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_turned_back_is_never_turned),
		cmocka_unit_test(there_are_no_more_moves_than_before),
		cmocka_unit_test(short_rows_of_what_is_spread_are_folded_first),
		cmocka_unit_test(what_others_see_or_is_turned_elsewhere_stays),
		cmocka_unit_test(an_argument_is_turned_before_work),
		cmocka_unit_test(a_result_that_is_narrower_is_turned_behind),
		cmocka_unit_test(results_that_are_joined_and_turned_are_joined_by_turns),
		cmocka_unit_test(padded_arrays_that_do_not_meet_are_put_together),
		cmocka_unit_test(what_is_not_stored_by_turns_is_joined_as_it_was),
		cmocka_unit_test(work_is_done_before_dims_of_one_come),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
