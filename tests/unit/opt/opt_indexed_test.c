/* SPDX-License-Identifier: Apache-2.0 */
/* What gathers and scatters do themselves (simplify/indexed.c), by the text after the pass. */
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

#define I "tensor<20xi32>"
#define IS(name, elem, type) \
	name " = constant() {value = dense<splat 0x" elem "> : " type "} : " type "\n"
#define WRAP(cmp, zero, more) \
	IS("%20", zero, I) IS("%21", more, I) \
	"%22 = compare(%2, %20) {compare_type = <SIGNED>, comparison_direction = <" cmp ">} : " \
	"tensor<20xi1>\n%23 = add(%2, %21) : " I "\n%24 = select(%22, %23, %2) : " I "\n"
#define AS_VECTORS "%25 = broadcast_in_dim(%24) {broadcast_dimensions = [0]} : tensor<20x1xi32>\n"
#define GATHER \
	"%30 = gather(%1, %25) {offset_dims = [1], collapsed_slice_dims = [0], " \
	"operand_batching_dims = [], start_indices_batching_dims = [], start_index_map = [0], " \
	"index_vector_dim = 1, slice_sizes = [1, 5]} : tensor<20x5xf32>\n"
#define MASK(limit) \
	"%31 = bitcast_convert(%25) : tensor<20x1xui32>\n" IS("%32", limit, "tensor<20x1xui32>") \
	"%33 = compare(%31, %32) {comparison_direction = <LE>, compare_type = <UNSIGNED>} : " \
	"tensor<20x1xi1>\n%34 = reshape(%33) : tensor<20xi1>\n"
#define FILL(dim) \
	"%35 = broadcast_in_dim(%34) {broadcast_dimensions = [" dim "]} : tensor<20x5xi1>\n" \
	IS("%36", "0000c07f", "tensor<20x5xf32>") \
	"%37 = select(%35, %30, %36) : tensor<20x5xf32>\n"

/* After a pass a program of a table of 30 rows of 5, %1, and 20 indices, %2. */
static char *after(const char *pass, const char *lines, const char *results)
{
	char text[4000];

	snprintf(text, sizeof(text), "module() () {\nfunc() {sym_name = \"main\"} "
		 "(%%1: tensor<30x5xf32>, %%2: " I ", %%3: tensor<20x5xf32>) {\n%s"
		 "return(%s)\n}\n}\n", lines, results);
	return opt_after(pass, text);
}

static void expect(const char *lines, const char *results, bool wraps, bool fills, bool selects)
{
	char *out = after("indexed", lines, results);

	if (wraps != !!strstr(out, "wrap = [30]") || fills != !!strstr(out, "fill = dense<") ||
	    selects != !!strstr(out, "select("))
		fail_msg("%d %d %d: %s", wraps, fills, selects, out);
	free(out);
}

static void indices_below_0_are_wrapped_by_the_instruction(void **state)
{
	(void)state;
	expect(WRAP("LT", "00000000", "1e000000") AS_VECTORS GATHER, "%30", true, false, false);
	/* not those below another number, nor what is added to those that are not below 0 */
	expect(WRAP("LT", "01000000", "1e000000") AS_VECTORS GATHER, "%30", false, false, true);
	expect(WRAP("GE", "00000000", "1e000000") AS_VECTORS GATHER, "%30", false, false, true);
	expect(WRAP("LT", "00000000", "e2ffffff") AS_VECTORS GATHER, "%30", false, false, true);
	/* an argument is there, whoever else asks for what is made of it */
	expect(WRAP("LT", "00000000", "1e000000") AS_VECTORS GATHER, "%30, %24", true, false,
	       true);
}

static void what_is_outside_is_filled_by_the_instruction(void **state)
{
	(void)state;
	expect(WRAP("LT", "00000000", "1e000000") AS_VECTORS GATHER MASK("1d000000") FILL("0"),
	       "%37", true, true, false);
	/* another limit; the gathered array is looked at besides; the indices are others */
	expect(WRAP("LT", "00000000", "1e000000") AS_VECTORS GATHER MASK("1c000000") FILL("0"),
	       "%37", true, false, true);
	expect(WRAP("LT", "00000000", "1e000000") AS_VECTORS GATHER MASK("1d000000") FILL("0"),
	       "%37, %30", true, false, true);
	expect(WRAP("LT", "00000000", "1e000000") AS_VECTORS GATHER
	       "%31 = bitcast_convert(%2) : tensor<20xui32>\n" IS("%32", "1d000000",
								  "tensor<20xui32>")
	       "%34 = compare(%31, %32) {comparison_direction = <LE>, compare_type = <UNSIGNED>} : "
	       "tensor<20xi1>\n" FILL("0"), "%37", true, false, true);
}

static void a_scatter_wraps_too(void **state)
{
	(void)state;
	expect(WRAP("LT", "00000000", "1e000000") AS_VECTORS
	       "%30 = scatter(%1, %25, %3) {update_window_dims = [1], inserted_window_dims = [0], "
	       "input_batching_dims = [], scatter_indices_batching_dims = [], "
	       "scatter_dims_to_operand_dims = [0], index_vector_dim = 1} : tensor<30x5xf32> "
	       "(%40: tensor<f32>, %41: tensor<f32>) {\n%42 = add(%40, %41) : tensor<f32>\n"
	       "return(%42)\n}\n", "%30", true, false, false);
}

static void a_scatter_of_elements_leaves_it_to_a_fusion(void **state)
{
	(void)state;
	expect(WRAP("LT", "00000000", "1e000000") AS_VECTORS
	       IS("%50", "00000000", "tensor<30xf32>") IS("%51", "0000803f", "tensor<20xf32>")
	       "%30 = scatter(%50, %25, %51) {update_window_dims = [], inserted_window_dims = [0], "
	       "input_batching_dims = [], scatter_indices_batching_dims = [], "
	       "scatter_dims_to_operand_dims = [0], index_vector_dim = 1} : tensor<30xf32> "
	       "(%40: tensor<f32>, %41: tensor<f32>) {\n%42 = add(%40, %41) : tensor<f32>\n"
	       "return(%42)\n}\n", "%30", false, false, true);
}

/* A scatter of updates into `to` by a body of one op, whose values have numbers with `n` first. */
#define SCATTER(name, op, to, n) \
	name " = scatter(" to ", %24, %3) {update_window_dims = [1], inserted_window_dims = [0], " \
	"input_batching_dims = [], scatter_indices_batching_dims = [], " \
	"scatter_dims_to_operand_dims = [0], index_vector_dim = 1} : tensor<30x5xf32> " \
	"(%" n "1: tensor<f32>, %" n "2: tensor<f32>) {\n%" n "3 = " op "(%" n "1, %" n "2) : " \
	"tensor<f32>\nreturn(%" n "3)\n}\n"
#define STARTS "%24 = reshape(%2) : tensor<20x1xi32>\n"
#define SUM(name, a, b) name " = add(" a ", " b ") : tensor<30x5xf32>\n"

static void expect_additions(const char *lines, const char *results, unsigned scalars, bool adds)
{
	char *out = after("indexed", lines, results), *at = out;
	unsigned n = 0;

	for (; (at = strstr(at, "add(")); at++)
		n++;
	if (n != scalars + adds)
		fail_msg("%u: %s", n, out);
	free(out);
}

static void scatters_add_to_each_other(void **state)
{
	static const char *const zeros = IS("%60", "00000000", "tensor<30x5xf32>"),
				*const below = IS("%60", "00000080", "tensor<30x5xf32>");
	const struct {
		const char *zeros, *first, *second, *third, *results;
		bool adds;
	} cases[] = {
		{ zeros, SCATTER("%61", "add", "%60", "7"), SCATTER("%62", "add", "%60", "8"),
		  SUM("%63", "%61", "%62"), "%63", false },
		{ zeros, SCATTER("%61", "add", "%60", "7"), SCATTER("%62", "add", "%60", "8"),
		  SUM("%63", "%62", "%61"), "%63", false },
		/* of what others look at, to what is there, to zeros below 0, by another op */
		{ zeros, SCATTER("%61", "add", "%60", "7"), SCATTER("%62", "add", "%60", "8"),
		  SUM("%63", "%61", "%62"), "%63, %61, %62", true },
		{ zeros, SCATTER("%61", "add", "%1", "7"), SCATTER("%62", "add", "%60", "8"),
		  SUM("%63", "%61", "%62"), "%63", true },
		{ below, SCATTER("%61", "add", "%60", "7"), SCATTER("%62", "add", "%60", "8"),
		  SUM("%63", "%61", "%62"), "%63", true },
	};
	char lines[2500];

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		snprintf(lines, sizeof(lines), "%s%s%s%s%s", STARTS, cases[i].zeros, cases[i].first,
			 cases[i].second, cases[i].third);
		expect_additions(lines, cases[i].results, 2, cases[i].adds);
	}
	snprintf(lines, sizeof(lines), "%s%s%s%s%s", STARTS, zeros,
		 SCATTER("%61", "add", "%60", "7"), SCATTER("%62", "maximum", "%60", "8"),
		 SUM("%63", "%61", "%62"));
	expect_additions(lines, "%63", 1, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(indices_below_0_are_wrapped_by_the_instruction),
		cmocka_unit_test(what_is_outside_is_filled_by_the_instruction),
		cmocka_unit_test(a_scatter_wraps_too),
		cmocka_unit_test(a_scatter_of_elements_leaves_it_to_a_fusion),
		cmocka_unit_test(scatters_add_to_each_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
