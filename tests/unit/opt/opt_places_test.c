/* SPDX-License-Identifier: Apache-2.0 */
/* Which gathers by several indices lower/places.c makes ones by one, by the text after it. */
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

struct lookup {
	const char *table, *map, *collapsed, *sizes, *offset, *result, *elem;
};

/* Whether the joined indices are gone after the pass. */
static bool is_by_one(const struct lookup *l)
{
	char text[1500], *out;
	bool is_gone;

	snprintf(text, sizeof(text),
		 "module() () {\nfunc() {sym_name = \"main\"} (%%1: tensor<%s>, "
		 "%%2: tensor<50x1x%s>, %%3: tensor<50x1x%s>) {\n"
		 "%%4 = concatenate(%%2, %%3) {dimension = 1} : tensor<50x2x%s>\n"
		 "%%5 = gather(%%1, %%4) {collapsed_slice_dims = [%s], index_vector_dim = 1, "
		 "indices_are_sorted = false, offset_dims = [%s], operand_batching_dims = [], "
		 "slice_sizes = [%s], start_index_map = [%s], start_indices_batching_dims = []} : "
		 "tensor<%s>\nreturn(%%5)\n}\n}\n",
		 l->table, l->elem, l->elem, l->elem, l->collapsed, l->offset, l->sizes, l->map,
		 l->result);
	out = opt_after("decompose", text);
	is_gone = strstr(out, "multiply(");
	free(out);
	return is_gone;
}

static void places_of_dims_side_by_side_are_one(void **state)
{
	(void)state;
	assert_true(is_by_one(&(struct lookup){ "9x8xf32", "0, 1", "0, 1", "1, 1", "", "50xf32",
						"i32" }));
	assert_true(is_by_one(&(struct lookup){ "9x8xf32", "1, 0", "0, 1", "1, 1", "", "50xf32",
						"i64" }));
	assert_true(is_by_one(&(struct lookup){ "9x8x3xf32", "0, 1", "0, 1", "1, 1, 2", "1",
						"50x2xf32", "i32" }));
	assert_true(is_by_one(&(struct lookup){ "9x8x3xf32", "1, 2", "1, 2", "9, 1, 1", "1",
						"50x9xf32", "i32" }));
}

static void other_places_stay(void **state)
{
	(void)state;
	/* Dims apart; one that stays in the result; more elements than 32 bits count. */
	assert_false(is_by_one(&(struct lookup){ "9x8x3xf32", "0, 2", "0, 2", "1, 8, 1", "1",
						 "50x8xf32", "i32" }));
	assert_false(is_by_one(&(struct lookup){ "9x8xf32", "0, 1", "0", "1, 2", "1", "50x2xf32",
						 "i32" }));
	assert_true(is_by_one(&(struct lookup){ "65536x32767xui8", "0, 1", "0, 1", "1, 1", "",
						"50xui8", "i32" }));
	assert_false(is_by_one(&(struct lookup){ "65536x32768xui8", "0, 1", "0, 1", "1, 1", "",
						 "50xui8", "i32" }));
}

/* Where dims have changed places on the way, the index is made of what came of it. */
static void indices_that_are_turned_stay_turned(void **state)
{
	char *out = opt_after("decompose",
		"module() () {\nfunc() {sym_name = \"main\"} (%1: tensor<9x8xf32>, "
		"%2: tensor<10x5xi32>) {\n"
		"%3 = broadcast_in_dim(%2) {broadcast_dimensions = [1, 0]} : tensor<5x10x1xi32>\n"
		"%4 = concatenate(%3, %3) {dimension = 2} : tensor<5x10x2xi32>\n"
		"%5 = gather(%1, %4) {collapsed_slice_dims = [0, 1], index_vector_dim = 2, "
		"indices_are_sorted = false, offset_dims = [], operand_batching_dims = [], "
		"slice_sizes = [1, 1], start_index_map = [0, 1], "
		"start_indices_batching_dims = []} : tensor<5x10xf32>\nreturn(%5)\n}\n}\n");
	const char *at = strstr(out, "minimum(");

	(void)state;
	assert_non_null(at);
	assert_memory_equal(strchr(at, '<'), "<5x10x1xi32>", 12);
	free(out);
}

/* Whether a table, %3, is gathered from by one index; else no copy of it is made. It is at the end
 * of lines that begin with what is `made` of %1, 8x9x3. */
static bool is_read_as_one(const char *made, const char *line, const char *table, int lookups)
{
	char text[1500], *out;
	bool is_one;

	snprintf(text, sizeof(text),
		 "module() () {\nfunc() {sym_name = \"main\"} (%%1: tensor<8x9x3xf32>, "
		 "%%2: tensor<%dx1xi32>) {\n%s = %s : tensor<%s>\n"
		 "%%4 = concatenate(%%2, %%2) {dimension = 1} : tensor<%dx2xi32>\n"
		 "%%5 = gather(%%3, %%4) {collapsed_slice_dims = [0, 1], index_vector_dim = 1, "
		 "indices_are_sorted = false, offset_dims = [1], operand_batching_dims = [], "
		 "slice_sizes = [1, 1, 1], start_index_map = [0, 1], "
		 "start_indices_batching_dims = []} : tensor<%dx1xf32>\nreturn(%%5)\n}\n}\n",
		 lookups, made, line, table, lookups, lookups);
	out = opt_after("decompose", text);
	is_one = strstr(out, "multiply(");
	free(out);
	return is_one;
}

static bool is_seen_as_one(const char *line, const char *table)
{
	return is_read_as_one("%3", line, table, 50);
}

static void tables_seen_in_another_order_are_not_copied(void **state)
{
	(void)state;
	assert_false(is_seen_as_one("transpose(%1) {permutation = [1, 0, 2]}", "9x8x3xf32"));
	assert_true(is_seen_as_one("transpose(%1) {permutation = [1, 2, 0]}", "9x3x8xf32"));
	assert_false(is_seen_as_one("reverse(%1) {dimensions = [0]}", "8x9x3xf32"));
	assert_false(is_seen_as_one("slice(%1) {limit_indices = [8, 8, 3], "
				    "start_indices = [0, 0, 0], strides = [1, 1, 1]}",
				    "8x8x3xf32"));
	assert_false(is_seen_as_one("slice(%1) {limit_indices = [8, 9, 3], "
				    "start_indices = [0, 0, 0], strides = [2, 1, 1]}",
				    "4x9x3xf32"));
	assert_true(is_seen_as_one("slice(%1) {limit_indices = [8, 9, 3], "
				   "start_indices = [2, 0, 2], strides = [1, 1, 1]}",
				   "6x9x1xf32"));
}

/* Whether %1, 8x9x3, `view`ed as `seen` and that reshaped to a table is gathered from by one. */
static bool is_one_of(const char *view, const char *seen, const char *table, int lookups)
{
	char line[300];

	snprintf(line, sizeof(line), "%s : tensor<%s>\n%%3 = reshape(%%6)", view, seen);
	return is_read_as_one("%6", line, table, lookups);
}

static bool is_one_behind(const char *view, const char *seen, const char *table)
{
	return is_one_of(view, seen, table, 50);
}

/* What a reshape parts or joins is asked for behind it. */
static void reshaped_views_are_not_copied(void **state)
{
	(void)state;
	assert_false(is_one_behind("transpose(%1) {permutation = [2, 1, 0]}", "3x9x8xf32",
				   "9x3x8xf32"));
	assert_true(is_one_behind("transpose(%1) {permutation = [1, 0, 2]}", "9x8x3xf32",
				  "3x3x24xf32"));
	assert_false(is_one_behind("transpose(%1) {permutation = [1, 0, 2]}", "9x8x3xf32",
				   "3x24x3xf32"));
	assert_false(is_one_behind("transpose(%1) {permutation = [0, 2, 1]}", "8x3x9xf32",
				   "12x18x1xf32"));
	assert_true(is_one_behind("slice(%1) {limit_indices = [8, 9, 3], "
				  "start_indices = [0, 0, 0], strides = [2, 1, 1]}", "4x9x3xf32",
				  "2x2x27xf32"));
}

/* Where no fewer are asked for than the table has. */
static void reshaped_views_are_copied_for_many_lookups(void **state)
{
	(void)state;
	assert_false(is_one_of("transpose(%1) {permutation = [2, 1, 0]}", "3x9x8xf32",
			       "9x3x8xf32", 215));
	assert_true(is_one_of("transpose(%1) {permutation = [2, 1, 0]}", "3x9x8xf32",
			      "9x3x8xf32", 216));
	/* but for dims that the reshape leaves as they were: such a view is read where it is */
	assert_false(is_one_of("transpose(%1) {permutation = [2, 1, 0]}", "3x9x8xf32",
			       "3x9x8xf32", 216));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(places_of_dims_side_by_side_are_one),
		cmocka_unit_test(other_places_stay),
		cmocka_unit_test(indices_that_are_turned_stay_turned),
		cmocka_unit_test(tables_seen_in_another_order_are_not_copied),
		cmocka_unit_test(reshaped_views_are_not_copied),
		cmocka_unit_test(reshaped_views_are_copied_for_many_lookups),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
