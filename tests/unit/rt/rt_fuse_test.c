/* SPDX-License-Identifier: Apache-2.0 */
/* What must not join one instruction: values that something inside of it reads from
 * memory, and those that it needs in two ways. */
#include "hal/hw/image.h"
#include "hal/hw/isa.h"
#include "tests/unit/against_eval.h"

#define DOT "{lhs_batching_dimensions = [], rhs_batching_dimensions = [], " \
	"lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]}"
#define REDUCE(op, type) " : " type " (%900: tensor<f32>, %901: tensor<f32>) {\n" \
	"%902 = " op "(%900, %901) : tensor<f32>\nreturn(%902)\n}\n"
#define ZERO "%90 = constant() {value = dense<0x00000000> : tensor<f32>} : tensor<f32>\n"

static void an_operand_of_a_product_is_used_after_it(void **state)
{
	(void)state;
	/* y @ y + y, h * (h @ w), h - (w @ h), and h again outside */
	runs_as_evaluated(PROGRAM("%1: tensor<48x48xf32>",
		"%2 = negate(%1) : tensor<48x48xf32>\n"
		"%3 = dot_general(%2, %2) " DOT " : tensor<48x48xf32>\n"
		"%4 = add(%3, %2) : tensor<48x48xf32>\nreturn(%4)"));
	runs_as_evaluated(PROGRAM("%1: tensor<5x7xf32>, %5: tensor<7x7xf32>",
		"%2 = negate(%1) : tensor<5x7xf32>\n"
		"%3 = dot_general(%2, %5) " DOT " : tensor<5x7xf32>\n"
		"%4 = multiply(%2, %3) : tensor<5x7xf32>\nreturn(%4)"));
	runs_as_evaluated(PROGRAM("%1: tensor<7x5xf32>, %5: tensor<7x7xf32>",
		"%2 = negate(%1) : tensor<7x5xf32>\n"
		"%3 = dot_general(%5, %2) " DOT " : tensor<7x5xf32>\n"
		"%4 = subtract(%2, %3) : tensor<7x5xf32>\n"
		"%6 = abs(%4) : tensor<7x5xf32>\nreturn(%2, %6, %4)"));
}

static void an_operand_of_a_product_is_the_work_of_several_ops(void **state)
{
	(void)state;
	/* z = -x, y = z * z; (y @ y) * y + z: z may not join, since y reads it before */
	runs_as_evaluated(PROGRAM("%1: tensor<9x9xf32>",
		"%2 = negate(%1) : tensor<9x9xf32>\n"
		"%3 = multiply(%2, %2) : tensor<9x9xf32>\n"
		"%4 = dot_general(%3, %3) " DOT " : tensor<9x9xf32>\n"
		"%5 = multiply(%4, %3) : tensor<9x9xf32>\n"
		"%6 = add(%5, %2) : tensor<9x9xf32>\nreturn(%6)"));
	/* the operand is a view of what is used after */
	runs_as_evaluated(PROGRAM("%1: tensor<9x9xf32>",
		"%2 = negate(%1) : tensor<9x9xf32>\n"
		"%3 = transpose(%2) {permutation = [1, 0]} : tensor<9x9xf32>\n"
		"%4 = dot_general(%3, %1) " DOT " : tensor<9x9xf32>\n"
		"%5 = add(%4, %2) : tensor<9x9xf32>\nreturn(%5, %3)"));
}

static void two_products_share_an_operand_and_the_work_after(void **state)
{
	(void)state;
	runs_as_evaluated(PROGRAM("%1: tensor<9x9xf32>",
		"%2 = negate(%1) : tensor<9x9xf32>\n"
		"%3 = dot_general(%2, %1) " DOT " : tensor<9x9xf32>\n"
		"%4 = dot_general(%1, %2) " DOT " : tensor<9x9xf32>\n"
		"%5 = add(%3, %4) : tensor<9x9xf32>\n"
		"%6 = multiply(%5, %2) : tensor<9x9xf32>\nreturn(%6)"));
	/* a product of a product, both used after it */
	runs_as_evaluated(PROGRAM("%1: tensor<9x9xf32>",
		"%2 = dot_general(%1, %1) " DOT " : tensor<9x9xf32>\n"
		"%3 = dot_general(%2, %1) " DOT " : tensor<9x9xf32>\n"
		"%4 = subtract(%3, %2) : tensor<9x9xf32>\nreturn(%4)"));
}

static void an_input_of_a_convolution_is_used_after_it(void **state)
{
	(void)state;
	runs_as_evaluated(PROGRAM("%1: tensor<2x6x6x3xf32>, %5: tensor<3x3x3x3xf32>",
		"%2 = negate(%1) : tensor<2x6x6x3xf32>\n"
		"%6 = abs(%5) : tensor<3x3x3x3xf32>\n"
		"%3 = convolution(%2, %6) {input_batch_dimension = 0, "
		"input_feature_dimension = 3, input_spatial_dimensions = [1, 2], "
		"kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, "
		"kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, "
		"output_feature_dimension = 3, output_spatial_dimensions = [1, 2], "
		"window_strides = [1, 1], padding = [1, 1, 1, 1], lhs_dilation = [1, 1], "
		"rhs_dilation = [1, 1], window_reversal = [0, 0], "
		"feature_group_count = 1, batch_group_count = 1} : tensor<2x6x6x3xf32>\n"
		"%4 = add(%3, %2) : tensor<2x6x6x3xf32>\nreturn(%4)"));
}

static void a_value_is_read_as_it_is_and_turned(void **state)
{
	(void)state;
	/* y + broadcast of y with its dims exchanged */
	runs_as_evaluated(PROGRAM("%1: tensor<48x48xf32>",
		"%2 = negate(%1) : tensor<48x48xf32>\n"
		"%3 = broadcast_in_dim(%2) {broadcast_dimensions = [1, 0]} : "
		"tensor<48x48xf32>\n"
		"%4 = add(%3, %2) : tensor<48x48xf32>\nreturn(%4)"));
	runs_as_evaluated(PROGRAM("%1: tensor<48x48xf32>",
		"%2 = negate(%1) : tensor<48x48xf32>\n"
		"%3 = broadcast_in_dim(%2) {broadcast_dimensions = [0, 1]} : "
		"tensor<48x48xf32>\n"
		"%4 = add(%2, %3) : tensor<48x48xf32>\nreturn(%4)"));
	/* a product and its turned broadcast */
	runs_as_evaluated(PROGRAM("%1: tensor<9x9xf32>",
		"%2 = dot_general(%1, %1) " DOT " : tensor<9x9xf32>\n"
		"%3 = broadcast_in_dim(%2) {broadcast_dimensions = [1, 0]} : "
		"tensor<9x9xf32>\n"
		"%4 = subtract(%3, %2) : tensor<9x9xf32>\nreturn(%4)"));
}

static void a_row_reduction_comes_back_in_two_ways(void **state)
{
	(void)state;
	runs_as_evaluated(PROGRAM("%1: tensor<6x6x8xf32>", ZERO
		"%2 = reduce(%1, %90) {dimensions = [2]}" REDUCE("add", "tensor<6x6xf32>")
		"%3 = broadcast_in_dim(%2) {broadcast_dimensions = [0, 1]} : "
		"tensor<6x6x8xf32>\n"
		"%4 = broadcast_in_dim(%2) {broadcast_dimensions = [1, 0]} : "
		"tensor<6x6x8xf32>\n"
		"%5 = subtract(%3, %4) : tensor<6x6x8xf32>\n"
		"%6 = add(%5, %1) : tensor<6x6x8xf32>\nreturn(%6)"));
	/* along the rows' own dim */
	runs_as_evaluated(PROGRAM("%1: tensor<8x8xf32>", ZERO
		"%2 = reduce(%1, %90) {dimensions = [1]}" REDUCE("add", "tensor<8xf32>")
		"%3 = broadcast_in_dim(%2) {broadcast_dimensions = [0]} : tensor<8x8xf32>\n"
		"%4 = broadcast_in_dim(%2) {broadcast_dimensions = [1]} : tensor<8x8xf32>\n"
		"%5 = subtract(%3, %4) : tensor<8x8xf32>\n"
		"%6 = add(%5, %1) : tensor<8x8xf32>\nreturn(%6, %2)"));
}

static void a_reduction_over_leading_dims_makes_no_rows(void **state)
{
	(void)state;
	runs_as_evaluated(PROGRAM("%1: tensor<8x1xf32>", ZERO
		"%2 = reduce(%1, %90) {dimensions = [0]}" REDUCE("add", "tensor<1xf32>")
		"%3 = broadcast_in_dim(%2) {broadcast_dimensions = [1]} : tensor<8x1xf32>\n"
		"%4 = subtract(%1, %3) : tensor<8x1xf32>\nreturn(%4)"));
	runs_as_evaluated(PROGRAM("%1: tensor<6x5x8xf32>", ZERO
		"%2 = reduce(%1, %90) {dimensions = [1]}" REDUCE("add", "tensor<6x8xf32>")
		"%3 = broadcast_in_dim(%2) {broadcast_dimensions = [0, 2]} : "
		"tensor<6x5x8xf32>\n"
		"%4 = subtract(%1, %3) : tensor<6x5x8xf32>\nreturn(%4)"));
}

static void a_row_reduction_is_an_operand_of_a_product_too(void **state)
{
	(void)state;
	runs_as_evaluated(PROGRAM("%1: tensor<8x8xf32>", ZERO
		"%2 = negate(%1) : tensor<8x8xf32>\n"
		"%3 = reduce(%2, %90) {dimensions = [1]}" REDUCE("add", "tensor<8xf32>")
		"%4 = dot_general(%1, %3) " DOT " : tensor<8xf32>\n"
		"%5 = broadcast_in_dim(%3) {broadcast_dimensions = [0]} : tensor<8x8xf32>\n"
		"%6 = broadcast_in_dim(%4) {broadcast_dimensions = [0]} : tensor<8x8xf32>\n"
		"%7 = subtract(%2, %5) : tensor<8x8xf32>\n"
		"%8 = add(%7, %6) : tensor<8x8xf32>\nreturn(%8)"));
	/* what a product gives is reduced and comes back to it */
	runs_as_evaluated(PROGRAM("%1: tensor<8x8xf32>", ZERO
		"%2 = dot_general(%1, %1) " DOT " : tensor<8x8xf32>\n"
		"%3 = reduce(%2, %90) {dimensions = [1]}" REDUCE("maximum", "tensor<8xf32>")
		"%5 = broadcast_in_dim(%3) {broadcast_dimensions = [0]} : tensor<8x8xf32>\n"
		"%7 = subtract(%2, %5) : tensor<8x8xf32>\nreturn(%7)"));
}

static void rows_of_one_element(void **state)
{
	(void)state;
	runs_as_evaluated(PROGRAM("%1: tensor<6x1xf32>", ZERO
		"%2 = negate(%1) : tensor<6x1xf32>\n"
		"%3 = reduce(%2, %90) {dimensions = [1]}" REDUCE("add", "tensor<6xf32>")
		"%4 = reshape(%3) : tensor<6x1xf32>\n"
		"%5 = abs(%4) : tensor<6x1xf32>\n"
		"%6 = broadcast_in_dim(%5) {broadcast_dimensions = [0, 1]} : "
		"tensor<6x1xf32>\n"
		"%7 = subtract(%2, %6) : tensor<6x1xf32>\n"
		"%8 = add(%7, %5) : tensor<6x1xf32>\n"
		"%9 = multiply(%8, %4) : tensor<6x1xf32>\nreturn(%9)"));
}

#define JOIN "concatenate"
#define TYPE " : tensor<6x5xf32>\n"

/* What a concatenation joins is made by one instruction, if that can be. */
static void results_that_are_joined(void **state)
{
	(void)state;
	/* side by side, and interleaved */
	runs_as_evaluated(PROGRAM("%1: tensor<6x5xf32>, %2: tensor<6x5xf32>",
		"%3 = multiply(%1, %2)" TYPE "%4 = add(%1, %3)" TYPE
		"%5 = subtract(%1, %3)" TYPE "%6 = " JOIN "(%4, %5) {dimension = 1} : "
		"tensor<6x10xf32>\nreturn(%6)"));
	runs_as_evaluated(PROGRAM("%1: tensor<6x5xf32>, %2: tensor<6x5xf32>",
		"%3 = multiply(%1, %2)" TYPE "%4 = add(%1, %3)" TYPE
		"%5 = subtract(%1, %3)" TYPE
		"%7 = reshape(%4) : tensor<6x5x1xf32>\n%8 = reshape(%5) : tensor<6x5x1xf32>\n"
		"%6 = " JOIN "(%8, %7) {dimension = 2} : tensor<6x5x2xf32>\nreturn(%6)"));
	/* one is seen in another shape before the other is there */
	runs_as_evaluated(PROGRAM("%1: tensor<6x5xf32>, %2: tensor<6x5xf32>",
		"%4 = add(%1, %2)" TYPE "%8 = reshape(%4) : tensor<6x5x1xf32>\n"
		"%5 = subtract(%1, %2)" TYPE "%7 = reshape(%5) : tensor<6x5x1xf32>\n"
		"%6 = " JOIN "(%8, %7) {dimension = 2} : tensor<6x5x2xf32>\nreturn(%6)"));
	/* the work before is looked at outside, too; one of them is there twice */
	runs_as_evaluated(PROGRAM("%1: tensor<6x5xf32>, %2: tensor<6x5xf32>",
		"%3 = multiply(%1, %2)" TYPE "%4 = add(%1, %3)" TYPE
		"%5 = subtract(%3, %1)" TYPE "%6 = " JOIN "(%4, %5, %4) {dimension = 0} : "
		"tensor<18x5xf32>\n%7 = " JOIN "(%3, %4) {dimension = 0} : tensor<12x5xf32>\n"
		"return(%6, %7)"));
	/* one needs another's memory, turned */
	runs_as_evaluated(PROGRAM("%1: tensor<5x5xf32>",
		"%2 = negate(%1) : tensor<5x5xf32>\n"
		"%3 = transpose(%2) {permutation = [1, 0]} : tensor<5x5xf32>\n"
		"%4 = add(%3, %1) : tensor<5x5xf32>\n%5 = abs(%2) : tensor<5x5xf32>\n"
		"%6 = " JOIN "(%4, %5) {dimension = 0} : tensor<10x5xf32>\nreturn(%6)"));
	/* products and rows, which are their own group's */
	runs_as_evaluated(PROGRAM("%1: tensor<5x5xf32>, %2: tensor<5x5xf32>",
		"%3 = dot_general(%1, %2) " DOT " : tensor<5x5xf32>\n"
		"%4 = add(%3, %1) : tensor<5x5xf32>\n%5 = subtract(%2, %1) : tensor<5x5xf32>\n"
		"%6 = " JOIN "(%4, %5) {dimension = 1} : tensor<5x10xf32>\nreturn(%6)"));
	runs_as_evaluated(PROGRAM("%1: tensor<5x5xf32>, %2: tensor<5x5xf32>",
		"%3 = dot_general(%1, %2) " DOT " : tensor<5x5xf32>\n"
		"%5 = subtract(%2, %1) : tensor<5x5xf32>\n%4 = add(%3, %1) : tensor<5x5xf32>\n"
		"%6 = " JOIN "(%4, %5) {dimension = 1} : tensor<5x10xf32>\nreturn(%6)"));
	runs_as_evaluated(PROGRAM("%1: tensor<6x5xf32>, %2: tensor<6x5xf32>", ZERO
		"%3 = reduce(%1, %90) {dimensions = [1]}" REDUCE("add", "tensor<6xf32>")
		"%4 = broadcast_in_dim(%3) {broadcast_dimensions = [0]}" TYPE
		"%5 = subtract(%1, %4)" TYPE "%7 = multiply(%2, %1)" TYPE
		"%6 = " JOIN "(%5, %7) {dimension = 0} : tensor<12x5xf32>\nreturn(%6)"));
}

/* More than an instruction reads, or writes. */
static void joined_results_of_too_much(void **state)
{
	char body[8192], *text = NULL;

	(void)state;
	for (unsigned n = 7; n <= 9; n++) {
		size_t at = 0;

		for (unsigned i = 0; i < n; i++)
			at += (size_t)snprintf(body + at, sizeof(body) - at,
				"%%%u = slice(%%1) {start_indices = [%u, 0], limit_indices = "
				"[%u, 5], strides = [1, 1]} : tensor<6x5xf32>\n"
				"%%%u = slice(%%1) {start_indices = [%u, 0], limit_indices = "
				"[%u, 5], strides = [1, 1]} : tensor<6x5xf32>\n"
				"%%%u = add(%%%u, %%%u) : tensor<6x5xf32>\n", 100 + i, i,
				i + 6, 200 + i, i + 30, i + 36, 300 + i, 100 + i, 200 + i);
		at += (size_t)snprintf(body + at, sizeof(body) - at, "%%2 = " JOIN "(");
		for (unsigned i = 0; i < n; i++)
			at += (size_t)snprintf(body + at, sizeof(body) - at, "%s%%%u",
					       i ? ", " : "", 300 + i);
		snprintf(body + at, sizeof(body) - at, ") {dimension = 0} : tensor<%ux5xf32>\n"
			 "return(%%2)", 6 * n);
		assert_true(asprintf(&text, PROGRAM("%%1: tensor<48x5xf32>", "%s"), body) > 0);
		runs_as_evaluated(text);
		free(text);
	}
}

static void a_reduction_to_a_scalar_chooses(void **state)
{
	(void)state;
	runs_as_evaluated(PROGRAM("%1: tensor<8xf32>", ZERO
		"%2 = negate(%1) : tensor<8xf32>\n"
		"%3 = reduce(%2, %90) {dimensions = [0]}" REDUCE("add", "tensor<f32>")
		"%4 = compare(%3, %90) {comparison_direction = <GT>, compare_type = <FLOAT>} "
		": tensor<i1>\n"
		"%5 = select(%4, %1, %2) : tensor<8xf32>\n"
		"%6 = broadcast_in_dim(%4) {broadcast_dimensions = []} : tensor<8xi1>\n"
		"%7 = select(%6, %2, %5) : tensor<8xf32>\n"
		"%8 = clamp(%90, %7, %3) : tensor<8xf32>\n"
		"%9 = add(%8, %5) : tensor<8xf32>\nreturn(%9, %3)"));
}

/* -0 is what a sum of none is that begins with it: 1 over it tells. */
static void sums_begin_with_the_zero_that_they_are_given(void **state)
{
	char text[1500];

	(void)state;
	for (unsigned k = 0; k < 4; k++) {
		const char *type = k % 2 ? "f64" : "f32";
		const char *none = k % 2 ? "0x0000000000000080" : "0x00000080";
		const char *one = k % 2 ? "0x000000000000f03f" : "0x0000803f";
		const char *first = k < 2 ? none : k % 2 ? "0x0000000000000000" : "0x00000000";

		snprintf(text, sizeof(text), PROGRAM("%%1: tensor<6x40x%s>",
			 "%%2 = constant() {value = dense<%s> : tensor<%s>} : tensor<%s>\n"
			 "%%3 = constant() {value = dense<splat %s> : tensor<6x40x%s>} : "
			 "tensor<6x40x%s>\n"
			 "%%4 = abs(%%1) : tensor<6x40x%s>\n"
			 "%%5 = multiply(%%4, %%3) : tensor<6x40x%s>\n"
			 "%%6 = reduce(%%5, %%2) {dimensions = [1]} : tensor<6x%s> "
			 "(%%900: tensor<%s>, %%901: tensor<%s>) {\n"
			 "%%902 = add(%%900, %%901) : tensor<%s>\nreturn(%%902)\n}\n"
			 "%%7 = constant() {value = dense<splat %s> : tensor<6x%s>} : "
			 "tensor<6x%s>\n"
			 "%%8 = divide(%%7, %%6) : tensor<6x%s>\nreturn(%%8)\n"),
			 type, first, type, type, none, type, type, type, type, type, type, type,
			 type, one, type, type, type);
		runs_as_evaluated(text);
	}
}

#define PAD(low, high, inner, type) "pad(%1, %90) {edge_padding_low = [" low "], " \
	"edge_padding_high = [" high "], interior_padding = [" inner "]} : tensor<" type "xf32>\n"
#define PADDED(low, high, inner, type) PROGRAM("%1: tensor<64x65xf32>", \
	"%90 = constant() {value = dense<0x0000e040> : tensor<f32>} : tensor<f32>\n" \
	"%2 = " PAD(low, high, inner, type) "return(%2)")

/* Large arrays, of which a frame alone is filled; and parts of a whole, each in its place. */
static void what_is_padded_has_its_frame(void **state)
{
	(void)state;
	runs_as_evaluated(PADDED("3, 5", "2, 7", "0, 0", "69x77"));
	runs_as_evaluated(PADDED("0, 65", "0, 0", "0, 0", "64x130"));
	runs_as_evaluated(PADDED("0, 0", "1, 0", "0, 0", "65x65"));
	runs_as_evaluated(PADDED("3, -5", "2, 7", "0, 0", "69x67"));
	runs_as_evaluated(PADDED("3, 5", "-2, 7", "0, 0", "65x77"));
	runs_as_evaluated(PADDED("3, 5", "2, 7", "1, 0", "132x77"));
	runs_as_evaluated(PADDED("0, 1", "0, 0", "0, 2", "64x194"));
	runs_as_evaluated(PROGRAM("%1: tensor<64x65xf32>", ZERO
		"%2 = " PAD("0, 0", "0, 65", "0, 0", "64x130")
		"%3 = " PAD("0, 65", "1, 0", "0, 0", "65x130")
		"%4 = concatenate(%2, %3, %2) {dimension = 0} : tensor<193x130xf32>\n"
		"return(%4, %3)"));
	runs_as_evaluated(PROGRAM("%1: tensor<64x65xf32>", ZERO
		"%2 = " PAD("0, 0", "0, 65", "0, 0", "64x130")
		"%3 = " PAD("0, 65", "1, 0", "0, 0", "65x130")
		"%4 = concatenate(%3, %2) {dimension = 0} : tensor<129x130xf32>\nreturn(%4)"));
}

/* The instructions that a text becomes. */
static unsigned count_instructions(const char *text)
{
	struct tc_result r;
	struct image *im;
	struct err err;
	unsigned n = 0;

	if (tc_compile(&(struct tc_source){ text, strlen(text), "mlir" }, NULL, &r, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(image_parse(r.image, r.image_bytes, &im, NULL), 0);
	for (size_t at = 0; at < im->text_bytes; n++)
		at += ((const struct isa_insn *)(const void *)((const char *)im->text + at))->bytes;
	image_free(im);
	tc_result_free(&r);
	return n;
}

#define BESIDE(n, low, high, whole) "module() {} () {\nfunc() {sym_name = \"main\"} " \
	"(%1: tensor<8192x" n "xf32>) {\n" ZERO \
	"%2 = pad(%1, %90) {edge_padding_low = [0, " low "], " \
	"edge_padding_high = [0, " high "], interior_padding = [0, 0]} : tensor<8192x" whole \
	"xf32>\nreturn(%2)\n}\n}\n"

/* A run of few bytes for each row would take longer than to fill all: the frame has two ends. */
static void a_frame_of_short_rows_is_filled_with_all(void **state)
{
	(void)state;
	assert_int_equal(count_instructions(BESIDE("100", "1", "1", "102")),
			 count_instructions(BESIDE("100", "0", "2", "102")) + 1);
	assert_int_equal(count_instructions(BESIDE("2", "1", "1", "4")),
			 count_instructions(BESIDE("2", "0", "2", "4")));
}

/* Rolled, and then read along the other dim: not where it lies. */
static void what_is_put_together_is_read_turned(void **state)
{
#define ROLLED(n, from) \
	"%" n "1 = slice(%" from ") {start_indices = [1, 0], limit_indices = [300, 300], " \
	"strides = [1, 1]} : tensor<299x300xf32>\n" \
	"%" n "2 = slice(%" from ") {start_indices = [0, 0], limit_indices = [1, 300], " \
	"strides = [1, 1]} : tensor<1x300xf32>\n" \
	"%" n "3 = concatenate(%" n "1, %" n "2) {dimension = 0} : tensor<300x300xf32>\n"
	(void)state;
	runs_as_evaluated(PROGRAM("%1: tensor<300x300xf32>, %2: tensor<300x300xf32>",
		ROLLED("1", "1") ROLLED("2", "2")
		"%30 = broadcast_in_dim(%13) {broadcast_dimensions = [1, 0]} : "
		"tensor<300x300xf32>\n"
		"%31 = subtract(%30, %23) : tensor<300x300xf32>\n"
		"%32 = add(%31, %2) : tensor<300x300xf32>\nreturn(%32)"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_put_together_is_read_turned),
		cmocka_unit_test(an_operand_of_a_product_is_used_after_it),
		cmocka_unit_test(sums_begin_with_the_zero_that_they_are_given),
		cmocka_unit_test(an_operand_of_a_product_is_the_work_of_several_ops),
		cmocka_unit_test(two_products_share_an_operand_and_the_work_after),
		cmocka_unit_test(an_input_of_a_convolution_is_used_after_it),
		cmocka_unit_test(a_value_is_read_as_it_is_and_turned),
		cmocka_unit_test(a_row_reduction_comes_back_in_two_ways),
		cmocka_unit_test(a_reduction_over_leading_dims_makes_no_rows),
		cmocka_unit_test(a_row_reduction_is_an_operand_of_a_product_too),
		cmocka_unit_test(rows_of_one_element),
		cmocka_unit_test(results_that_are_joined),
		cmocka_unit_test(joined_results_of_too_much),
		cmocka_unit_test(a_reduction_to_a_scalar_chooses),
		cmocka_unit_test(what_is_padded_has_its_frame),
		cmocka_unit_test(a_frame_of_short_rows_is_filled_with_all),
	};

	return cmocka_run_group_tests(tests, against_eval_start, against_eval_stop);
}
