/* SPDX-License-Identifier: Apache-2.0 */
/* Which elementwise work simplify/slices.c does slice by slice, by the text after it. */
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

#define WHOLE "tensor<40x40x2xf32>"
#define PART "tensor<40x40x1xf32>"
/* %5: work on both arguments, spread out; %6 and %7: its halves, and what is made of them */
#define SPREAD "%3 = broadcast_in_dim(%1) {broadcast_dimensions = [0, 2]} : " WHOLE "\n" \
	"%4 = broadcast_in_dim(%2) {broadcast_dimensions = [1, 2]} : " WHOLE "\n"
#define WORK "%5 = maximum(%3, %4) : " WHOLE "\n"
#define HALF(to, of, from, end) to " = slice(" of ") {limit_indices = [40, 40, " end "], " \
	"start_indices = [0, 0, " from "], strides = [1, 1, 1]} : " PART "\n"
#define HALVES HALF("%6", "%5", "0", "1") HALF("%7", "%5", "1", "2")
#define TIMES "%8 = multiply(%6, %7) : " PART "\n"

/* Whether the whole is still made. */
static bool makes_whole(const char *lines, const char *results)
{
	char text[3000], *out;
	bool is;

	snprintf(text, sizeof(text), "module() () {\nfunc() {sym_name = \"main\"} "
		 "(%%1: tensor<40x2xf32>, %%2: tensor<40x2xf32>, %%9: " WHOLE ", %%10: " WHOLE
		 ", %%11: " WHOLE ") {\n%sreturn(%s)\n}\n}\n", lines, results);
	out = opt_after("simplify", text);
	is = strstr(out, ") : " WHOLE) != NULL;
	free(out);
	return is;
}

static void halves_are_made_apart(void **state)
{
	(void)state;
	assert_false(makes_whole(SPREAD WORK HALVES TIMES, "%8"));
	/* and so what it is made of */
	assert_false(makes_whole(SPREAD "%12 = negate(%4) : " WHOLE "\n"
				 "%5 = maximum(%3, %12) : " WHOLE "\n" HALVES TIMES, "%8"));
	/* of arrays of its size, too */
	assert_false(makes_whole("%5 = maximum(%9, %10) : " WHOLE "\n" HALVES TIMES, "%8"));
}

static void the_whole_stays_where_it_is_looked_at(void **state)
{
	(void)state;
	assert_true(makes_whole(SPREAD WORK HALVES TIMES, "%8, %5"));
	/* halves that are wanted in memory, and more than there is of it */
	assert_true(makes_whole(SPREAD WORK HALVES, "%6, %7"));
	assert_true(makes_whole(SPREAD WORK HALVES HALF("%12", "%5", "1", "2") TIMES
				"%13 = add(%8, %12) : " PART "\n", "%13"));
	/* of more arrays than slices had better read by steps */
	assert_true(makes_whole("%12 = maximum(%9, %10) : " WHOLE "\n"
				"%5 = add(%12, %11) : " WHOLE "\n" HALVES TIMES, "%8"));
	/* part of it is a result itself */
	assert_true(makes_whole(SPREAD "%12 = negate(%4) : " WHOLE "\n"
				"%5 = maximum(%3, %12) : " WHOLE "\n" HALVES TIMES, "%8, %12"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(halves_are_made_apart),
		cmocka_unit_test(the_whole_stays_where_it_is_looked_at),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
