/* SPDX-License-Identifier: Apache-2.0 */
/* Which gathers and scatters of elements simplify/rows.c makes those of rows, by the text after
 * it. */
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

#define INDEX "tensor<20x5x1xi32>"
/* %3: a row's index, along the columns; %4: the columns */
#define SPREAD "%3 = broadcast_in_dim(%2) {broadcast_dimensions = [0]} : " INDEX "\n"
#define COUNT "%4 = iota() {iota_dimension = 1} : " INDEX "\n"
#define ORDER(a, b) "%5 = concatenate(" a ", " b ") {dimension = 2} : tensor<20x5x2xi32>\n"

/* A gather from, and a scatter of maxima into, 30 rows of 5 by indices %5. */
static char *simplified(const char *lines, bool gathers, const char *map)
{
	char text[3000];

	snprintf(text, sizeof(text), "module() () {\nfunc() {sym_name = \"main\"} "
		 "(%%1: tensor<30x5xf32>, %%2: tensor<20xi32>, %%9: tensor<20x5xf32>) {\n%s",
		 lines);
	snprintf(text + strlen(text), sizeof(text) - strlen(text), gathers ?
		 "%%6 = gather(%%1, %%5) {offset_dims = [], collapsed_slice_dims = [0, 1], "
		 "operand_batching_dims = [], start_indices_batching_dims = [], "
		 "start_index_map = %s, index_vector_dim = 2, slice_sizes = [1, 1]} : "
		 "tensor<20x5xf32>\n" :
		 "%%6 = scatter(%%1, %%5, %%9) {update_window_dims = [], "
		 "inserted_window_dims = [0, 1], input_batching_dims = [], "
		 "scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = %s, "
		 "index_vector_dim = 2, indices_are_sorted = true} : tensor<30x5xf32> "
		 "(%%20: tensor<f32>, %%21: tensor<f32>) {\n%%22 = maximum(%%20, %%21) : "
		 "tensor<f32>\nreturn(%%22)\n}\n", map);
	snprintf(text + strlen(text), sizeof(text) - strlen(text), "return(%%6)\n}\n}\n");
	return opt_after("simplify", text);
}

static void expect(const char *lines, const char *map, bool are_rows)
{
	for (unsigned gathers = 0; gathers < 2; gathers++) {
		char *out = simplified(lines, gathers, map);

		if (are_rows != !!strstr(out, gathers ? "offset_dims = [1]" :
					 "update_window_dims = [1]") ||
		    are_rows != !!strstr(out, gathers ? "collapsed_slice_dims = [0]" :
					 "inserted_window_dims = [0]") ||
		    are_rows != !strstr(out, "concatenate(") ||
		    (gathers && are_rows != !!strstr(out, "slice_sizes = [1, 5]")))
			fail_msg("%d, gathers %u: %s", are_rows, gathers, out);
		free(out);
	}
}

static void an_index_that_counts_is_the_window_s(void **state)
{
	(void)state;
	expect(SPREAD COUNT ORDER("%3", "%4"), "[0, 1]", true);
	expect(SPREAD COUNT ORDER("%4", "%3"), "[1, 0]", true);
	/* through what only moves: as JAX writes it */
	expect(SPREAD "%10 = iota() {iota_dimension = 0} : tensor<5xi32>\n"
	       "%11 = broadcast_in_dim(%10) {broadcast_dimensions = [1]} : tensor<1x5xi32>\n"
	       "%12 = constant() {value = dense<splat 0x00000000> : tensor<1x5xi32>} : "
	       "tensor<1x5xi32>\n%13 = compare(%11, %12) {compare_type = <SIGNED>, "
	       "comparison_direction = <LT>} : tensor<1x5xi1>\n"
	       "%14 = add(%11, %11) : tensor<1x5xi32>\n"
	       "%15 = select(%13, %14, %11) : tensor<1x5xi32>\n"
	       "%4 = broadcast_in_dim(%15) {broadcast_dimensions = [0, 1]} : " INDEX "\n"
	       ORDER("%3", "%4"), "[0, 1]", true);
}

static void another_index_stays(void **state)
{
	(void)state;
	/* both vary; it begins behind 0; it counts along the rows of updates */
	expect(SPREAD COUNT "%7 = add(%3, %4) : " INDEX "\n" ORDER("%7", "%4"), "[0, 1]", false);
	expect(SPREAD COUNT "%7 = constant() {value = dense<splat 0x01000000> : " INDEX "} : " INDEX
	       "\n%8 = add(%4, %7) : " INDEX "\n" ORDER("%3", "%8"), "[0, 1]", false);
	expect(SPREAD "%4 = iota() {iota_dimension = 0} : " INDEX "\n" ORDER("%3", "%4"), "[0, 1]",
	       false);
}

static void what_is_in_order_by_columns_is_not_by_rows(void **state)
{
	char *out = simplified(SPREAD COUNT ORDER("%4", "%3"), false, "[1, 0]");

	(void)state;
	assert_non_null(strstr(out, "indices_are_sorted = false"));
	free(out);
	out = simplified(SPREAD COUNT ORDER("%3", "%4"), false, "[0, 1]");
	assert_non_null(strstr(out, "indices_are_sorted = true"));
	free(out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_index_that_counts_is_the_window_s),
		cmocka_unit_test(another_index_stays),
		cmocka_unit_test(what_is_in_order_by_columns_is_not_by_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
