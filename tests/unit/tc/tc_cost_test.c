/* SPDX-License-Identifier: Apache-2.0 */
/* The cost analysis: what programs compute and touch by their ops' own word, and the same
 * figures whichever format a program comes in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hal/hw/image.h"
#include "runtime/compiler/tc.h"
#include "tests/unit/torch.h"

#define PAIR(t) "(%10: tensor<" t ">, %11: tensor<" t ">) {\n"
#define LESS "%12 = compare(%10, %11) {comparison_direction = <LT>, compare_type = <FLOAT>} " \
	": tensor<i1>\nreturn(%12)\n}\n"

static struct image_info info_with(struct tc_source s, const struct tc_options *options,
				   const char *name)
{
	struct image_info info;
	struct tc_result r;
	struct image *im;
	struct err err;

	if (tc_compile(&s, options, &r, &err) || image_parse(r.image, r.image_bytes, &im, &err))
		fail_msg("%s as %s: %s", name, s.format, err.msg);
	info = im->info;
	image_free(im);
	tc_result_free(&r);
	return info;
}

static struct image_info info_of(struct tc_source s, const char *name)
{
	return info_with(s, NULL, name);
}

static const struct {
	const char *args, *lines;
	double flops, bytes, transcendentals;
} cases[] = {
	{ "%1: tensor<64x128xf32>", "%2 = add(%1, %1) : tensor<64x128xf32>\nreturn(%2)\n",
	  8192, 2 * 32768, 0 },
	{ "%1: tensor<64x128xf32>", "%2 = exponential(%1) : tensor<64x128xf32>\nreturn(%2)\n",
	  0, 2 * 32768, 8192 },
	{ "%1: tensor<64x128xf32>, %2: tensor<128x32xf32>", "%3 = dot_general(%1, %2) "
	  "{lhs_batching_dimensions = [], rhs_batching_dimensions = [], "
	  "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]} "
	  ": tensor<64x32xf32>\nreturn(%3)\n", 2 * 64 * 128 * 32, 32768 + 16384 + 8192, 0 },
	/* Merging 128 takes 7 comparisons an element. */
	{ "%1: tensor<64x128xf32>", "%2 = sort(%1) {dimension = 1, is_stable = true} "
	  ": tensor<64x128xf32> " PAIR("f32") LESS "return(%2)\n", 7 * 8192, 2 * 32768, 0 },
	/* A body of three operations that is no simple one. */
	{ "%1: tensor<64x128xf32>, %2: tensor<f32>", "%3 = reduce(%1, %2) {dimensions = [1]} "
	  ": tensor<64xf32> " PAIR("f32") "%12 = multiply(%10, %11) : tensor<f32>\n"
	  "%13 = subtract(%11, %12) : tensor<f32>\n%14 = add(%13, %10) : tensor<f32>\n"
	  "return(%14)\n}\nreturn(%3)\n", 3 * 8192, 32768 + 4 + 256, 0 },
	/* 16 rows of 8: those and their indices are read, and what is made is written. */
	{ "%1: tensor<64x8xf32>, %2: tensor<16xi32>", "%3 = gather(%1, %2) {offset_dims = [1], "
	  "collapsed_slice_dims = [0], operand_batching_dims = [], "
	  "start_indices_batching_dims = [], start_index_map = [0], index_vector_dim = 1, "
	  "slice_sizes = [1, 8]} : tensor<16x8xf32>\nreturn(%3)\n", 0, 2 * 512 + 64, 0 },
	{ "%1: tensor<2xui64>", "%2, %3 = rng_bit_generator(%1) {rng_algorithm = <PHILOX>} "
	  ": tensor<2xui64>, tensor<256xui32>\nreturn(%3)\n", 0, 2 * 16 + 1024, 0 },
};

static void ops_count_what_they_do(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct tc_source s = { .format = "mlir" };
		struct image_info info;
		char text[2048];

		s.bytes = (size_t)snprintf(text, sizeof(text), "module() () {\nfunc() {sym_name = "
					   "\"main\"} (%s) {\n%s}\n}\n", cases[i].args,
					   cases[i].lines);
		s.code = text;
		info = info_of(s, text);
		if (info.flops != cases[i].flops || info.bytes_accessed != cases[i].bytes ||
		    info.transcendentals != cases[i].transcendentals)
			fail_msg("%g operations, %g bytes, %g transcendentals:\n%s", info.flops,
				 info.bytes_accessed, info.transcendentals, text);
	}
}

/* torch_xla simplifies a few programs on their way to MLIR. */
static bool is_close(double a, double b)
{
	return a <= 1.5 * b && b <= 1.5 * a;
}

static void both_formats_count_the_same(void **state)
{
	glob_t found = { 0 };
	unsigned n = 0, same = 0;

	(void)state;
	glob("tests/data/torch/*.hlo", 0, NULL, &found);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		struct tc_source hlo = { .format = "hlo" }, mlir = { .format = "mlir" };
		char path[512];
		struct image_info a, b;

		snprintf(path, sizeof(path), "%.*s.mlirbc",
			 (int)strlen(found.gl_pathv[i]) - 4, found.gl_pathv[i]);
		mlir.code = torch_read_file(path, &mlir.bytes);
		if (!mlir.code)
			continue;
		hlo.code = torch_read_file(found.gl_pathv[i], &hlo.bytes);
		a = info_of(hlo, path);
		b = info_of(mlir, path);
		n++;
		same += a.flops == b.flops && a.bytes_accessed == b.bytes_accessed &&
			a.transcendentals == b.transcendentals;
		if (!is_close(a.flops, b.flops) ||
		    !is_close(a.transcendentals, b.transcendentals))
			fail_msg("%s: %g and %g operations, %g and %g transcendentals", path,
				 a.flops, b.flops, a.transcendentals, b.transcendentals);
		free((void *)(uintptr_t)hlo.code);
		free((void *)(uintptr_t)mlir.code);
	}
	globfree(&found);
	assert_true(n >= 360 && same >= 300);
}

#define ARRAY "tensor<4096x64xf32>"
#define SQUARE "tensor<64x64xf32>"

/* Each is made in the place of what it updates. */
static void updates_of_a_carried_array_take_no_copy_of_it(void **state)
{
	static const char text[] = "module() () {\nfunc() {sym_name = \"main\"} "
		"(%1: " ARRAY ", %2: tensor<1x64xf32>) {\n"
		"%3 = constant() {value = dense<0x00000000> : tensor<i32>} : tensor<i32>\n"
		"%4, %5 = while(%3, %1) : tensor<i32>, " ARRAY
		" (%20: tensor<i32>, %21: " ARRAY ") {\n"
		"%22 = constant() {value = dense<0x0a000000> : tensor<i32>} : tensor<i32>\n"
		"%23 = compare(%20, %22) {comparison_direction = <LT>, "
		"compare_type = <SIGNED>} : tensor<i1>\nreturn(%23)\n}"
		" (%30: tensor<i32>, %31: " ARRAY ") {\n"
		"%32 = constant() {value = dense<0x01000000> : tensor<i32>} : tensor<i32>\n"
		"%33 = add(%30, %32) : tensor<i32>\n"
		"%34 = dynamic_update_slice(%31, %2, %30, %3) : " ARRAY "\n"
		"%35 = dynamic_update_slice(%34, %2, %33, %3) : " ARRAY "\n"
		"return(%33, %35)\n}\nreturn(%5)\n}\n}\n";
	struct tc_source s = { .format = "mlir", .code = text, .bytes = sizeof(text) - 1 };

	(void)state;
	assert_in_range(info_of(s, "two updates").temp_bytes, 1, 4096);
}

/* As a framework has a loop carry the weights of all layers, which its turns look at. */
static void what_a_loop_only_reads_is_not_copied(void **state)
{
	static const char text[] = "module() () {\nfunc() {sym_name = \"main\"} "
		"(%1: " ARRAY ", %2: tensor<1x64xf32>) {\n"
		"%3 = constant() {value = dense<0x00000000> : tensor<i32>} : tensor<i32>\n"
		"%4, %5, %6 = while(%3, %1, %2) : tensor<i32>, " ARRAY ", tensor<1x64xf32>"
		" (%20: tensor<i32>, %21: " ARRAY ", %22: tensor<1x64xf32>) {\n"
		"%23 = constant() {value = dense<0x0a000000> : tensor<i32>} : tensor<i32>\n"
		"%24 = compare(%20, %23) {comparison_direction = <LT>, "
		"compare_type = <SIGNED>} : tensor<i1>\nreturn(%24)\n}"
		" (%30: tensor<i32>, %31: " ARRAY ", %32: tensor<1x64xf32>) {\n"
		"%33 = constant() {value = dense<0x01000000> : tensor<i32>} : tensor<i32>\n"
		"%34 = constant() {value = dense<0x00000000> : tensor<i32>} : tensor<i32>\n"
		"%35 = add(%30, %33) : tensor<i32>\n"
		"%36 = dynamic_slice(%31, %30, %34) {slice_sizes = [1, 64]} : tensor<1x64xf32>\n"
		"%37 = add(%32, %36) : tensor<1x64xf32>\n"
		"return(%35, %31, %37)\n}\nreturn(%6)\n}\n}\n";
	struct tc_source s = { .format = "mlir", .code = text, .bytes = sizeof(text) - 1 };

	(void)state;
	assert_in_range(info_of(s, "a loop").temp_bytes, 1, 4096);
}

/* Whether two of them are made one or an odd one goes before it (loop/alternate.c), of what a turn
 * does one is told. */
static void loops_count_one_turn(void **state)
{
	const double product = 2.0 * 64 * 64 * 64, element = 64 * 64;

	(void)state;
	for (unsigned turns = 3; turns < 30; turns++) {
		struct tc_source s = { .format = "mlir" };
		struct image_info info;
		char text[2048];

		s.bytes = (size_t)snprintf(text, sizeof(text), "module() () {\nfunc() {sym_name = "
			"\"main\"} (%%1: " SQUARE ", %%2: " SQUARE ") {\n"
			"%%3 = constant() {value = dense<0x00000000> : tensor<i32>} "
			": tensor<i32>\n"
			"%%4, %%5 = while(%%3, %%1) : tensor<i32>, " SQUARE
			" (%%20: tensor<i32>, %%21: " SQUARE ") {\n"
			"%%22 = constant() {value = dense<0x%02x000000> : tensor<i32>} "
			": tensor<i32>\n"
			"%%23 = compare(%%20, %%22) {comparison_direction = <LT>, "
			"compare_type = <SIGNED>} : tensor<i1>\nreturn(%%23)\n}"
			" (%%30: tensor<i32>, %%31: " SQUARE ") {\n"
			"%%32 = constant() {value = dense<0x01000000> : tensor<i32>} "
			": tensor<i32>\n"
			"%%33 = add(%%30, %%32) : tensor<i32>\n"
			"%%34 = dot_general(%%31, %%2) {lhs_batching_dimensions = [], "
			"rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], "
			"rhs_contracting_dimensions = [0]} : " SQUARE "\n"
			"%%35 = exponential(%%34) : " SQUARE "\n"
			"return(%%33, %%35)\n}\nreturn(%%5)\n}\n}\n", turns);
		s.code = text;
		info = info_of(s, text);
		if (info.flops < product || info.flops > product + 16 ||
		    info.transcendentals != element || info.bytes_accessed < 3 * 4 * element ||
		    info.bytes_accessed > 9 * 4 * element)
			fail_msg("%u turns: %g operations, %g transcendentals, %g bytes", turns,
				 info.flops, info.transcendentals, info.bytes_accessed);
	}
}

/* 1 MiB from four members: what HALs take for long does not run on the thread that launches it. */
static void members_that_exchange_lines_take_little_time(void **state)
{
	static const char text[] = "module() {sym_name = \"test\"} () {\nfunc() {sym_name = "
		"\"main\"} (%0: tensor<65536xf32>) {\n%1 = all_gather(%0) {all_gather_dim = 0, "
		"replica_groups = [0, 1, 2, 3], group_size = 4, use_global_device_ids = true} "
		": tensor<262144xf32>\nreturn(%1)\n}\n}\n";
	const struct tc_options four = { .level = 1, .partitions = 4, .direct_bytes = 1 << 16 };
	struct tc_source s = { .format = "mlir", .code = text, .bytes = sizeof(text) - 1 };

	(void)state;
	assert_in_range(info_with(s, &four, "all_gather").cost_ns, 20000, 100000);
}

/* Elements one by one, and rows of few, take several times as long as lines. */
static void copies_of_elements_take_longer_than_of_lines(void **state)
{
	static const char *const lines[] = {
		"%2 = transpose(%1) {permutation = [1, 0, 2]} : tensor<256x512x2xf32>\n",
		"%2 = transpose(%1) {permutation = [2, 1, 0]} : tensor<2x256x512xf32>\n",
		"%2 = concatenate(%1, %1) {dimension = 0} : tensor<1024x256x2xf32>\n",
	};
	uint64_t ns[3];

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		char text[512];
		struct tc_source s = { .format = "mlir", .code = text };

		s.bytes = (size_t)snprintf(text, sizeof(text), "module() () {\nfunc() {sym_name = "
					   "\"main\"} (%%1: tensor<512x256x2xf32>) {\n%s"
					   "return(%%2)\n}\n}\n", lines[i]);
		ns[i] = info_of(s, lines[i]).cost_ns;
	}
	for (unsigned i = 0; i < 2; i++)
		assert_true(ns[i] > 3 * (ns[2] / 2));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ops_count_what_they_do),
		cmocka_unit_test(both_formats_count_the_same),
		cmocka_unit_test(updates_of_a_carried_array_take_no_copy_of_it),
		cmocka_unit_test(what_a_loop_only_reads_is_not_copied),
		cmocka_unit_test(loops_count_one_turn),
		cmocka_unit_test(members_that_exchange_lines_take_little_time),
		cmocka_unit_test(copies_of_elements_take_longer_than_of_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
