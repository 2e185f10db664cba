/* SPDX-License-Identifier: Apache-2.0 */
/* What opt/pieces.c does to arrays that are put together of pieces, by the text after a pass. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/opt/opt_text.h"

static unsigned count(const char *text, const char *what)
{
	unsigned n = 0;

	for (; (text = strstr(text, what)); text++)
		n++;
	return n;
}

#define X "tensor<128x64xf32>"
#define HALF "tensor<128x32xf32>"
#define QUARTER "tensor<128x16xf32>"
#define TWO "tensor<128x32x2xf32>"

/* After `pass`, what lines make of %1, 128x64, and %2, 128x32, has so often what comes with it. */
static void expect(const char *pass, const char *lines, const char *result, unsigned n,
		   const char *what)
{
	char text[3000], *out;

	snprintf(text, sizeof(text), "module() () {\nfunc() {sym_name = \"main\"} (%%1: " X
		 ", %%2: " HALF ", %%3: " HALF ") {\n%sreturn(%%9)\n}\n}\n", lines);
	out = opt_after(pass, text);
	if (count(out, what) != n || !strstr(out, result))
		fail_msg("not %u of %s, or no %s\n%s\nbecame\n%s", n, what, result, text, out);
	free(out);
}

#define REPEATED "%4 = broadcast_in_dim(%2) {broadcast_dimensions = [0, 1]} : " TWO "\n" \
	"%5 = reshape(%4) : " X "\n"

static void repeated_elements_are_worked_on_before_they_are_joined(void **state)
{
	const char *wide = " : " TWO;

	(void)state;
	expect("simplify", REPEATED "%9 = tanh(%5) : " X "\n", "reshape(", 1, "tanh(");
	expect("simplify", REPEATED "%6 = add(%5, %1) : " X "\n%9 = tanh(%6) : " X "\n", "reshape(",
	       4, wide);
	/* also by what is made of other arrays, and by one that is broadcast along the dim */
	expect("simplify", REPEATED "%6 = sine(%1) : " X "\n%9 = add(%5, %6) : " X "\n", "sine(", 4,
	       wide);
	/* Who else looks at the array needs it anyway. */
	expect("simplify", REPEATED "%6 = tanh(%5) : " X "\n"
	       "%7 = reverse(%5) {dimensions = [0]} : " X "\n"
	       "%9 = concatenate(%6, %7) {dimension = 0} : tensor<256x64xf32>\n", "tanh(", 1, wide);
}

#define SLICE(name, from, to) name " = slice(%1) {start_indices = [0, " from "], " \
	"limit_indices = [128, " to "], strides = [1, 1]} : " HALF "\n"
#define JOIN(a, b) "%8 = concatenate(" a ", " b ") {dimension = 1} : " X "\n"

static void halves_that_change_places_are_a_view(void **state)
{
	(void)state;
	expect("simplify", SLICE("%4", "0", "32") SLICE("%5", "32", "64") JOIN("%5", "%4")
	       "%9 = add(%8, %1) : " X "\n", "reverse(", 0, "concatenate(");
	expect("simplify", SLICE("%4", "0", "32") SLICE("%5", "32", "64") "%6 = negate(%5) : " HALF
	       "\n" JOIN("%6", "%4") "%9 = add(%8, %1) : " X "\n", "select(", 0, "concatenate(");
	/* Halves at their own places, and those of two arrays, are put together. */
	expect("simplify", SLICE("%4", "0", "32") SLICE("%5", "32", "64") "%6 = negate(%5) : " HALF
	       "\n" JOIN("%4", "%6") "%9 = add(%8, %1) : " X "\n", "negate(", 1, "concatenate(");
	expect("simplify", SLICE("%4", "0", "32") JOIN("%2", "%4") "%9 = add(%8, %1) : " X "\n",
	       "add(", 1, "concatenate(");
	/* Those of less than 8192 elements are. */
	expect("simplify", "%4 = slice(%2) {start_indices = [0, 16], limit_indices = [128, 32], "
	       "strides = [1, 1]} : " QUARTER "\n%5 = slice(%2) {start_indices = [0, 0], "
	       "limit_indices = [128, 16], strides = [1, 1]} : " QUARTER "\n"
	       "%8 = concatenate(%4, %5) {dimension = 1} : " HALF "\n"
	       "%9 = add(%8, %2) : " HALF "\n", "add(", 1, "concatenate(");
}

#define TURN(name, of) name " = reshape(" of ") : tensor<128x32x1xf32>\n"
#define TURNS(a, b) "%9 = concatenate(" a ", " b ") {dimension = 2} : " TWO "\n"

static void elements_that_take_turns_are_of_one_fusion(void **state)
{
	(void)state;
	expect("fuse", TURN("%5", "%2") TURN("%6", "%3") TURNS("%5", "%6"), "concatenate(", 1,
	       "tc.fusion(");
	expect("fuse", "%4 = negate(%2) : " HALF "\n" TURN("%5", "%2") TURN("%6", "%4")
	       TURNS("%5", "%6"), "concatenate(", 1, "tc.fusion(");
	expect("fuse", "%4 = negate(%2) : " HALF "\n" TURN("%5", "%3") TURN("%6", "%4")
	       TURNS("%6", "%5"), "convert(", 1, "tc.fusion(");
	/* Rows are copied as they are, short ones, too. */
	expect("fuse", "%4 = reshape(%2) : tensor<2048x2xf32>\n%5 = reshape(%3) : "
	       "tensor<2048x2xf32>\n%9 = concatenate(%4, %5) {dimension = 1} : "
	       "tensor<2048x4xf32>\n", "concatenate(", 0, "tc.fusion(");
	expect("fuse", "%9 = concatenate(%2, %3) {dimension = 1} : " X "\n", "concatenate(", 0,
	       "tc.fusion(");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(repeated_elements_are_worked_on_before_they_are_joined),
		cmocka_unit_test(halves_that_change_places_are_a_view),
		cmocka_unit_test(elements_that_take_turns_are_of_one_fusion),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
