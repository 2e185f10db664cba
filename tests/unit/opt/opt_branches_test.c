/* SPDX-License-Identifier: Apache-2.0 */
/* Which choices opt/branches.c takes out of bodies of scalars, by the text after the pass. What
 * they compute is held by tests/jax/loops/test_branches.py. */
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

#define F32 "tensor<f32>"
#define BRANCH(v) " () {\nreturn(" v ")\n}"

/* `lines` make %9 of %3 and %4, the numbers %5 and %6 and the truth %7, in the body of a map. */
static void expect(const char *lines, const char *has, const char *lacks)
{
	char text[3000], *out;

	sprintf(text, "module() () {\nfunc() {sym_name = \"main\"} (%%1: tensor<8xf32>, "
		"%%2: tensor<8xi8>, %%10: tensor<8xi32>, %%11: tensor<8xi1>) {\n"
		"%%12 = map(%%1, %%1, %%2, %%10, %%11) {dimensions = [0]} : tensor<8xf32> "
		"(%%3: " F32 ", %%4: " F32 ", %%5: tensor<i8>, %%6: tensor<i32>, "
		"%%7: tensor<i1>) {\n%sreturn(%%9)\n}\nreturn(%%12)\n}\n}\n", lines);
	out = opt_after("branches", text);
	if (!strstr(out, has) || strstr(out, lacks))
		fail_msg("no %s, or %s\n%s\nbecame\n%s", has, lacks, text, out);
	free(out);
}

static void all_branches_are_computed(void **state)
{
	(void)state;
	expect("%9 = if(%7) : " F32 BRANCH("%3") BRANCH("%4") "\n", "select(%7, %3, %4)", "if(");
	expect("%9 = case(%6) : " F32 BRANCH("%3") BRANCH("%4") BRANCH("%3") "\n",
	       "compare(%6, ", "case(");
	expect("%9 = case(%6) : " F32 BRANCH("%4") "\n", "return(%4)", "case(");
	expect("%9 = if(%7) : " F32 " () {\n%8 = if(%7) : " F32 BRANCH("%3") BRANCH("%4")
	       "\nreturn(%8)\n}" BRANCH("%4") "\n", "select(%7, %3, %4)", "if(");
}

static void numbers_of_branches_do_not_wrap(void **state)
{
	(void)state;
	expect("%9 = case(%5) : " F32 BRANCH("%3") BRANCH("%4") "\n",
	       "convert(%5) : tensor<i32>", "case(");
}

static void what_may_not_be_computed_stays(void **state)
{
	(void)state;
	/* a loop, which may not end where it is not wanted */
	expect("%9 = if(%7) : " F32 " () {\n%8 = while(%3) : " F32 " (%20: " F32 ") {\n"
	       "return(%7)\n} (%21: " F32 ") {\nreturn(%21)\n}\nreturn(%8)\n}" BRANCH("%4") "\n",
	       "if(", "select(");
	/* what does more than give results */
	expect("%9 = if(%7) : " F32 " () {\n%8 = custom_call(%3) {call_target_name = \"f\", "
	       "has_side_effect = true} : " F32 "\nreturn(%8)\n}" BRANCH("%4") "\n",
	       "if(", "select(");
}

static void choices_elsewhere_stay(void **state)
{
	static const char text[] = "module() () {\nfunc() {sym_name = \"main\"} "
		"(%1: tensor<f32>, %2: tensor<f32>, %3: tensor<i1>) {\n"
		"%4 = if(%3) : " F32 BRANCH("%1") BRANCH("%2") "\nreturn(%4)\n}\n}\n";
	char *out = opt_after("branches", text);

	(void)state;
	assert_non_null(strstr(out, "if("));
	assert_null(strstr(out, "select("));
	free(out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_branches_are_computed),
		cmocka_unit_test(numbers_of_branches_do_not_wrap),
		cmocka_unit_test(what_may_not_be_computed_stays),
		cmocka_unit_test(choices_elsewhere_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
