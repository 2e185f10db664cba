/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small meetings of the same members as one (opt/combine.c): which go together, and that they
 * give what they gave apart, by a gang of evaluators and on devices that are linked. And products
 * that are turned around behind their sum (lower/collective.c).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "runtime/compiler/tc.h"
#include "tests/unit/gang.h"

#define HEAD "module() () {\nfunc() {sym_name = \"main\"} "
/* The values of its region are numbered from k 0. */
#define ADD_AS(k, t) " (%" k "0: tensor<" t ">, %" k "1: tensor<" t ">) {\n%" k "2 = add(%" k \
	"0, %" k "1) : tensor<" t ">\nreturn(%" k "2)\n}\n"
#define ADD(t) ADD_AS("9", t)
#define ALL4 "{group_size = 4, replica_groups = [0, 1, 2, 3], use_global_device_ids = true}"

static const float four[4] = { 1, 2, 3, 4 };

/* Of four members, each with one of `four`, after a pass, or, without one, on devices. */
static void evaluate(const char *text, const char *after, float *out)
{
	const struct tc_source source = { text, strlen(text), "mlir" };
	struct tc_options o = { .partitions = 4, .level = 1, .verify = true,
				.evaluate_after = after };
	struct tc_array args[4], *outs;
	struct err err;
	size_t n;

	for (unsigned m = 0; m < 4; m++)
		args[m] = (struct tc_array){ .elem = ELEM_F32, .bytes = 4,
					     .data = (void *)(uintptr_t)&four[m] };
	if ((after ? tc_eval_gang : gang_evaluate)(&source, &o, args, 1, &outs, &n, &err))
		fail_msg("%s: %s", after ? after : "devices", err.msg);
	assert_int_equal(n, 1);
	for (unsigned m = 0; m < 4; m++)
		memcpy(&out[m], outs[m].data, 4);
	tc_array_free(outs, 4);
}

static void expect(const char *text, const float *want)
{
	static const char *const stages[] = { "host", "combine", NULL };
	float out[4];

	for (unsigned s = 0; s < 3; s++) {
		evaluate(text, stages[s], out);
		assert_memory_equal(out, want, sizeof(out));
	}
}

#define TWOS "{group_size = 2, replica_groups = [0, 2, 3, 1], use_global_device_ids = true}"
#define PAIRS(list) "{source_target_pairs = [" list "], use_global_device_ids = true}"

static unsigned occurs(const char *text, const char *word)
{
	unsigned n = 0;

	for (text = strstr(text, word); text; text = strstr(text + 1, word))
		n++;
	return n;
}

/* How many ops of the kind are left. */
static unsigned left_with(struct tc_options o, const char *text, const char *name)
{
	struct err err;
	unsigned n;
	char *ir;

	o.level = 1;
	o.verify = true;
	if (tc_print(&(struct tc_source){ text, strlen(text), "mlir" }, &o, "combine", &ir, &err))
		fail_msg("%s", err.msg);
	n = occurs(ir, name);
	free(ir);
	return n;
}

/* The same of a program of four. */
static unsigned left_of(const char *text, const char *name)
{
	return left_with((struct tc_options){ .partitions = 4 }, text, name);
}

static void small_meetings_become_one(void **state)
{
	/* %2 needs %1; %6 and %7 do not, nor do they know %2, which stands between. */
	static const char text[] = HEAD "(%0: tensor<f32>) {\n"
		"%1 = all_reduce(%0) " ALL4 " : tensor<f32>" ADD("f32")
		"%2 = all_reduce(%1) " ALL4 " : tensor<f32>" ADD_AS("7", "f32")
		"%3 = multiply(%0, %0) : tensor<f32>\n"
		"%4 = collective_permute(%0) " PAIRS("0, 1, 1, 3") " : tensor<f32>\n"
		"%5 = all_reduce(%3) " TWOS " : tensor<f32>" ADD_AS("6", "f32")
		"%6 = all_reduce(%3) " ALL4 " : tensor<f32> (%80: tensor<f32>, %81: tensor<f32>) {"
		"\n%82 = maximum(%80, %81) : tensor<f32>\nreturn(%82)\n}\n"
		"%7 = broadcast_in_dim(%3) {broadcast_dimensions = []} : tensor<1x3xf32>\n"
		"%8 = all_gather(%7) {all_gather_dim = 1, group_size = 4, replica_groups = "
		"[0, 1, 2, 3], use_global_device_ids = true} : tensor<1x12xf32>\n"
		"%9 = slice(%8) {start_indices = [0, 5], limit_indices = [1, 6], strides = "
		"[1, 1]} : tensor<1x1xf32>\n%10 = reshape(%9) : tensor<f32>\n"
		"%11 = collective_permute(%3) " PAIRS("0, 1, 1, 3") " : tensor<f32>\n"
		"%12 = collective_permute(%3) " PAIRS("0, 1, 1, 2") " : tensor<f32>\n"
		"%13 = add(%2, %4) : tensor<f32>\n%14 = add(%13, %5) : tensor<f32>\n"
		"%15 = add(%14, %6) : tensor<f32>\n%16 = add(%15, %10) : tensor<f32>\n"
		"%17 = add(%16, %11) : tensor<f32>\n%18 = add(%17, %12) : tensor<f32>\n"
		"return(%18)\n}\n}\n";

	(void)state;
	assert_int_equal(left_of(text, "tc.exchange("), 3);
	assert_int_equal(left_of(text, "collective_permute("), 2);
	/* 40, what was passed on, x^2 of two, 16, 4, and of the squares what was passed on */
	expect(text, (float[]){ 40 + 10 + 16 + 4, 40 + 1 + 20 + 16 + 4 + 1 + 1,
		40 + 10 + 16 + 4 + 4, 40 + 2 + 20 + 16 + 4 + 4 });
}

/* Parts for each go with parts for each, also of other shapes. */
static void parts_go_together_too(void **state)
{
	static const char text[] = HEAD "(%0: tensor<f32>) {\n"
		"%1 = broadcast_in_dim(%0) {broadcast_dimensions = []} : tensor<8x3xf32>\n"
		"%2 = iota() {iota_dimension = 0} : tensor<8x3xf32>\n"
		"%3 = multiply(%1, %2) : tensor<8x3xf32>\n"
		"%4 = reduce_scatter(%3) {scatter_dimension = 0, group_size = 4, replica_groups = "
		"[0, 1, 2, 3], use_global_device_ids = true} : tensor<2x3xf32>" ADD("f32")
		"%5 = slice(%3) {start_indices = [4, 0], limit_indices = [8, 1], strides = [1, 1]} "
		": tensor<4x1xf32>\n"
		"%6 = all_to_all(%5) {split_dimension = 0, concat_dimension = 1, split_count = 4, "
		"group_size = 4, replica_groups = [0, 1, 2, 3], use_global_device_ids = true} : "
		"tensor<1x4xf32>\n"
		"%7 = slice(%4) {start_indices = [1, 2], limit_indices = [2, 3], strides = [1, 1]} "
		": tensor<1x1xf32>\n"
		"%8 = slice(%6) {start_indices = [0, 2], limit_indices = [1, 3], strides = [1, 1]} "
		": tensor<1x1xf32>\n"
		"%9 = add(%7, %8) : tensor<1x1xf32>\n%10 = reshape(%9) : tensor<f32>\n"
		"return(%10)\n}\n}\n";

	(void)state;
	assert_int_equal(left_of(text, "tc.exchange("), 1);
	/* Row 2 m + 1 of the sum, which is 10 times its number, and row 4 + m of member 2. */
	expect(text, (float[]){ 10 + 12, 30 + 15, 50 + 18, 70 + 21 });
}

/* In another order, or in parts: each by itself. */
static void others_stay_apart(void **state)
{
	static const char text[] = HEAD "(%0: tensor<f32>) {\n"
		"%1 = broadcast_in_dim(%0) {broadcast_dimensions = []} : tensor<4xf32>\n"
		"%2 = slice(%1) {start_indices = [0], limit_indices = [1], strides = [1]} : "
		"tensor<1xf32>\n"
		"%3 = all_gather(%2) {all_gather_dim = 0, group_size = 4, replica_groups = [0, 1, "
		"2, 3], use_global_device_ids = true} : tensor<4xf32>\n"
		"%4 = all_gather(%2) {all_gather_dim = 0, group_size = 4, replica_groups = [2, 1, "
		"3, 0], use_global_device_ids = true} : tensor<4xf32>\n"
		"%5 = all_to_all(%1) {split_dimension = 0, concat_dimension = 0, split_count = 4, "
		"group_size = 4, replica_groups = [0, 1, 2, 3], use_global_device_ids = true} : "
		"tensor<4xf32>\n"
		"%6 = multiply(%3, %4) : tensor<4xf32>\n%7 = subtract(%6, %5) : tensor<4xf32>\n"
		"%8 = slice(%7) {start_indices = [2], limit_indices = [3], strides = [1]} : "
		"tensor<1xf32>\n%9 = reshape(%8) : tensor<f32>\nreturn(%9)\n}\n}\n";

	(void)state;
	assert_int_equal(left_of(text, "tc.exchange("), 3);
	/* 3 * 4 - 3 */
	expect(text, (float[]){ 9, 9, 9, 9 });
}

/* Of one width they are moved as bits; of another width apart. */
static void numbers_of_one_width_go_together(void **state)
{
	static const char text[] = HEAD "(%0: tensor<f32>) {\n"
		"%1 = convert(%0) : tensor<i32>\n%2 = convert(%0) : tensor<i8>\n"
		"%3 = all_reduce(%0) " ALL4 " : tensor<f32>" ADD("f32")
		"%4 = all_reduce(%1) " ALL4 " : tensor<i32>" ADD_AS("8", "i32")
		"%5 = all_reduce(%2) " ALL4 " : tensor<i8>" ADD_AS("7", "i8")
		"%6 = convert(%4) : tensor<f32>\n%10 = convert(%5) : tensor<f32>\n"
		"%11 = multiply(%3, %6) : tensor<f32>\n%12 = add(%11, %10) : tensor<f32>\n"
		"return(%12)\n}\n}\n";

	(void)state;
	assert_int_equal(left_of(text, "tc.exchange("), 2);
	expect(text, (float[]){ 110, 110, 110, 110 });
}

/* n sums of 6 KiB each: of k times what a member has, from k = 1 on. */
static void sum_arrays(char *text, size_t room, unsigned n)
{
	size_t at = (size_t)snprintf(text, room, HEAD "(%%0: tensor<f32>) {\n%%1 = "
		"broadcast_in_dim(%%0) {broadcast_dimensions = []} : tensor<1536xf32>\n");

	for (unsigned k = 1; k <= n; k++) {
		unsigned id = 10 * k;

		at += (size_t)snprintf(text + at, room - at, "%%%u = add(%%1, %%%u) : "
			"tensor<1536xf32>\n%%%u = all_reduce(%%%u) " ALL4 " : tensor<1536xf32> "
			"(%%%u: tensor<f32>, %%%u: tensor<f32>) {\n%%%u = add(%%%u, %%%u) : "
			"tensor<f32>\nreturn(%%%u)\n}\n%%%u = slice(%%%u) {start_indices = [%u], "
			"limit_indices = [%u], strides = [1]} : tensor<1xf32>\n%%%u = "
			"reshape(%%%u) : tensor<f32>\n%%%u = add(%%%u, %%%u) : tensor<f32>\n",
			id, k > 1 ? id - 10 : 1, id + 1, id, id + 2, id + 3, id + 4, id + 2,
			id + 3, id + 4, id + 5, id + 1, 100 * k, 100 * k + 1, id + 6, id + 5,
			id + 7, id + 6, k > 1 ? id - 3 : 0);
	}
	snprintf(text + at, room - at, "return(%%%u)\n}\n}\n", 10 * n + 7);
}

/* Two are small: they go whole to all. Eight go in parts, as one of their size does. */
static void sums_meet_by_what_they_are_together(void **state)
{
	static char text[8192];

	(void)state;
	sum_arrays(text, sizeof(text), 2);
	assert_int_equal(left_of(text, "tc.exchange("), 1);
	assert_int_equal(left_of(text, "is_same = true"), 1);
	sum_arrays(text, sizeof(text), 8);
	assert_int_equal(left_of(text, "tc.exchange("), 2);
	assert_int_equal(left_of(text, "is_same = false"), 1);
	/* 10 times 2 .. 9, and the member's own. */
	expect(text, (float[]){ 441, 442, 443, 444 });
}

/* Two sums of n numbers, from an argument of one. */
static unsigned left_of_two(unsigned n)
{
	char text[2048];

	snprintf(text, sizeof(text), HEAD "(%%0: tensor<%ux2xf32>) {\n"
		 "%%1 = slice(%%0) {start_indices = [0, 0], limit_indices = [%u, 1], strides = "
		 "[1, 1]} : tensor<%ux1xf32>\n"
		 "%%2 = slice(%%0) {start_indices = [0, 1], limit_indices = [%u, 2], strides = "
		 "[1, 1]} : tensor<%ux1xf32>\n"
		 "%%3 = all_gather(%%1) {all_gather_dim = 0, group_size = 4, replica_groups = [0, "
		 "1, 2, 3], use_global_device_ids = true} : tensor<%ux1xf32>\n"
		 "%%4 = all_gather(%%2) {all_gather_dim = 0, group_size = 4, replica_groups = [0, "
		 "1, 2, 3], use_global_device_ids = true} : tensor<%ux1xf32>\n"
		 "return(%%3, %%4)\n}\n}\n", n, n, n, n, n, 4 * n, 4 * n);
	return left_of(text, "tc.exchange(");
}

static void large_meetings_stay_apart(void **state)
{
	(void)state;
	assert_int_equal(left_of_two(65536 / 16), 1);
	assert_int_equal(left_of_two(65536 / 16 + 1), 2);
}

/* What draws numbers stays in its order. */
static void draws_keep_their_order(void **state)
{
	static const char text[] = HEAD "(%0: tensor<f32>) {\n"
		"%1 = all_reduce(%0) " ALL4 " : tensor<f32>" ADD("f32")
		"%2 = constant() {value = dense<0x00000000> : tensor<f32>} : tensor<f32>\n"
		"%3 = compare(%1, %2) {comparison_direction = <GT>, compare_type = <FLOAT>} : "
		"tensor<i1>\n"
		"%4 = if(%3) : tensor<4xui32> () {\n%5 = tc.draw() : tensor<4xui32>\n"
		"return(%5)\n} () {\n%6 = tc.draw() : tensor<4xui32>\nreturn(%6)\n}\n"
		"%7 = tc.draw() : tensor<4xui32>\n"
		"%8 = convert(%7) : tensor<4xf32>\n"
		"%9 = slice(%8) {start_indices = [1], limit_indices = [2], strides = [1]} : "
		"tensor<1xf32>\n%10 = reshape(%9) : tensor<f32>\n"
		"%11 = all_reduce(%10) " ALL4 " : tensor<f32>" ADD_AS("8", "f32")
		"%12 = convert(%4) : tensor<4xf32>\n"
		"%13 = slice(%12) {start_indices = [1], limit_indices = [2], strides = [1]} : "
		"tensor<1xf32>\n%14 = reshape(%13) : tensor<f32>\n"
		"%15 = subtract(%11, %14) : tensor<f32>\nreturn(%15)\n}\n}\n";
	float before[4], behind[4];

	(void)state;
	assert_int_equal(left_of(text, "tc.exchange("), 2);
	evaluate(text, "collectives", before);
	evaluate(text, "combine", behind);
	assert_memory_equal(before, behind, sizeof(before));
}

/* Element i, j of the product is 3 i j j of what a member has; behind the sum it is at j, i. */
#define TURNED_SUM(rows, maker) HEAD "(%0: tensor<f32>) {\n" \
	"%1 = broadcast_in_dim(%0) {broadcast_dimensions = []} : tensor<" rows "x3xf32>\n" \
	"%2 = iota() {iota_dimension = 0} : tensor<" rows "x3xf32>\n" \
	"%3 = multiply(%1, %2) : tensor<" rows "x3xf32>\n" \
	"%4 = iota() {iota_dimension = 1} : tensor<3x96xf32>\n" \
	"%5 = multiply(%4, %4) : tensor<3x96xf32>\n" \
	"%6 = dot_general(%3, %5) {lhs_batching_dimensions = [], rhs_batching_dimensions = [], " \
	"lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]} : " \
	"tensor<" rows "x96xf32>\n" maker \
	"%8 = transpose(%7) {permutation = [1, 0]} : tensor<96x" rows "xf32>\n" \
	"%9 = slice(%8) {start_indices = [5, 7], limit_indices = [6, 8], strides = [1, 1]} : " \
	"tensor<1x1xf32>\n%10 = reshape(%9) : tensor<f32>\nreturn(%10)\n}\n}\n"
#define SUM(rows) "%7 = all_reduce(%6) " ALL4 " : tensor<" rows "x96xf32>" ADD("f32")

static void products_are_turned_before_their_sum(void **state)
{
	static const char text[] = TURNED_SUM("64", SUM("64"));
	float want = 3 * 7 * 5 * 5 * 10;

	(void)state;
	assert_int_equal(left_of(text, "transpose("), 0);
	expect(text, (float[]){ want, want, want, want });
	/* What has few rows is not the same the other way round. */
	assert_int_equal(left_of(TURNED_SUM("63", SUM("63")), "transpose("), 1);
	/* Something else looks at the sum. */
	assert_int_equal(left_of(TURNED_SUM("64", SUM("64") "%77 = negate(%7) : "
					    "tensor<64x96xf32>\n"), "transpose("), 1);
	/* Another replica's program may have it as it is. */
	assert_int_equal(left_with((struct tc_options){ .replicas = 4 }, text, "transpose("), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_meetings_become_one),
		cmocka_unit_test(parts_go_together_too),
		cmocka_unit_test(others_stay_apart),
		cmocka_unit_test(numbers_of_one_width_go_together),
		cmocka_unit_test(sums_meet_by_what_they_are_together),
		cmocka_unit_test(large_meetings_stay_apart),
		cmocka_unit_test(draws_keep_their_order),
		cmocka_unit_test(products_are_turned_before_their_sum),
	};

	return cmocka_run_group_tests(tests, gang_start, gang_stop);
}
