/* SPDX-License-Identifier: Apache-2.0 */
/* What simplify/simplify.c, simplify/turns.c, simplify/logic.c, loop/empty.c, lower/reduce.c and
 * lower/linalg.c make of programs, by their text after it. */
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

/* The steps of a logistic function of an array; `more` lines see to some of the values. */
static void expect_logistic(bool is_one, const char *type, const char *minus, const char *one,
			    const char *sum, const char *more)
{
	char text[1200], *out;

	snprintf(text, sizeof(text),
		 "module() () {\nfunc() {sym_name = \"main\"} (%%1: tensor<8x%s>) {\n"
		 "%%2 = %s(%%1) : tensor<8x%s>\n"
		 "%%3 = exponential(%%2) : tensor<8x%s>\n"
		 "%%4 = constant() {value = dense<splat %s> : tensor<8x%s>} : tensor<8x%s>\n"
		 "%%5 = %s : tensor<8x%s>\n"
		 "%%6 = divide(%%4, %%5) : tensor<8x%s>\n"
		 "return(%s)\n}\n}\n", type, minus, type, type, one, type, type, sum, type, type,
		 more);
	out = opt_after("simplify", text);
	if (is_one != !!strstr(out, "logistic(") || is_one != !strstr(out, "exponential("))
		fail_msg("%s\nbecame\n%s", text, out);
	free(out);
}

#define ONE32 "0x0000803f"
#define ONE64 "0x000000000000f03f"

static void the_steps_of_a_logistic_function_are_that(void **state)
{
	(void)state;
	expect_logistic(true, "f32", "negate", ONE32, "add(%4, %3)", "%6");
	expect_logistic(true, "f32", "negate", ONE32, "add(%3, %4)", "%6");
	expect_logistic(true, "f64", "negate", ONE64, "add(%4, %3)", "%6");
	expect_logistic(true, "f32", "negate", ONE32, "add(%4, %3)", "%6, %2");
}

static void other_steps_are_not(void **state)
{
	(void)state;
	/* rounded in between */
	expect_logistic(false, "bf16", "negate", "0x803f", "add(%4, %3)", "%6");
	expect_logistic(false, "f16", "negate", "0x003c", "add(%4, %3)", "%6");
	/* somebody looks at a step */
	expect_logistic(false, "f32", "negate", ONE32, "add(%4, %3)", "%6, %3");
	expect_logistic(false, "f32", "negate", ONE32, "add(%4, %3)", "%6, %5");
	/* other numbers and operations */
	expect_logistic(false, "f32", "negate", "0x0100803f", "add(%4, %3)", "%6");
	expect_logistic(false, "f32", "negate", ONE32, "add(%3, %1)", "%6");
	expect_logistic(false, "f32", "negate", ONE32, "add(%3, %3)", "%6");
	expect_logistic(false, "f32", "negate", ONE32, "subtract(%4, %3)", "%6");
	expect_logistic(false, "f32", "abs", ONE32, "add(%4, %3)", "%6");
}

/* A product of [batch, rows, 32] and [batch, 32, cols], moved by `permutation`. */
static void expect_turned(bool is_turned, const char *type, unsigned rows, unsigned cols,
			  const char *permutation, const char *more, const char *attrs)
{
	bool is_moved = !strcmp(permutation, "0, 2, 1");
	char text[1200], *out;

	snprintf(text, sizeof(text),
		 "module() () {\nfunc() {sym_name = \"main\"} (%%1: tensor<3x%ux32x%s>, "
		 "%%2: tensor<3x32x%ux%s>) {\n"
		 "%%3 = dot_general(%%1, %%2) {lhs_batching_dimensions = [0], "
		 "rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], "
		 "rhs_contracting_dimensions = [1]%s} : tensor<3x%ux%ux%s>\n"
		 "%%4 = transpose(%%3) {permutation = [%s]} : tensor<%ux%ux%ux%s>\n"
		 "return(%%4%s)\n}\n}\n",
		 rows, type, cols, type, attrs, rows, cols, type, permutation, is_moved ? 3 : rows,
		 is_moved ? cols : 3, is_moved ? rows : cols, type, more);
	out = opt_after("simplify", text);
	if (is_turned != !strstr(out, "transpose(") ||
	    is_turned != !!strstr(out, "dot_general(%2, %1)") ||
	    is_turned != !!strstr(out, "lhs_contracting_dimensions = [1]") ||
	    is_turned != !!strstr(out, "rhs_contracting_dimensions = [2]"))
		fail_msg("%s\nbecame\n%s", text, out);
	free(out);
}

static void a_product_that_is_turned_is_one_the_other_way_round(void **state)
{
	(void)state;
	expect_turned(true, "f32", 64, 64, "0, 2, 1", "", "");
	expect_turned(true, "bf16", 65, 100, "0, 2, 1", "", "");
	expect_turned(true, "i8", 64, 64, "0, 2, 1", "", ", precision_config = [0, 0]");
	/* parts of a product are added up in their order */
	expect_turned(false, "complex<f32>", 64, 64, "0, 2, 1", "", "");
	/* few rows or columns */
	expect_turned(false, "f32", 63, 64, "0, 2, 1", "", "");
	expect_turned(false, "f32", 64, 63, "0, 2, 1", "", "");
	/* another move; somebody looks at it as it is; sides that are rounded apart */
	expect_turned(false, "f32", 64, 64, "1, 0, 2", "", "");
	expect_turned(false, "f32", 64, 64, "0, 2, 1", ", %3", "");
	expect_turned(false, "f32", 64, 64, "0, 2, 1", "", ", lhs_precision_type = \"bf16\", "
		      "rhs_precision_type = \"f32\", accumulation_type = \"f32\"");
}

/* Arrays of `cols` padded along the last of two dims, put together; whether no pad is left. */
static void expect_interleaved(bool is_interleaved, const int cols[2], const char *const pads[2],
			       int all, const char *more)
{
	char text[1200], *out;

	snprintf(text, sizeof(text),
		 "module() () {\nfunc() {sym_name = \"main\"} (%%1: tensor<4x%dxf32>, "
		 "%%2: tensor<4x%dxf32>, %%3: tensor<f32>) {\n"
		 "%%4 = pad(%%1, %%3) {%s} : tensor<4x%dxf32>\n"
		 "%%5 = pad(%%2, %%3) {%s} : tensor<4x%dxf32>\n"
		 "%%6 = add(%%4, %%5) : tensor<4x%dxf32>\n"
		 "return(%%6%s)\n}\n}\n", cols[0], cols[1], pads[0], all, pads[1], all, all, more);
	out = opt_after("simplify", text);
	if (is_interleaved != !strstr(out, "pad(") ||
	    is_interleaved != !!strstr(out, "concatenate("))
		fail_msg("%s\nbecame\n%s", text, out);
	free(out);
}

#define PAD(low, high, interior) \
	"edge_padding_low = [0, " low "], edge_padding_high = [0, " high "], " \
	"interior_padding = [0, " interior "]"

static void padded_halves_that_are_put_together_are_joined(void **state)
{
	const char *const even[2] = { PAD("0", "1", "1"), PAD("1", "0", "1") };
	const char *const odd[2] = { PAD("0", "0", "1"), PAD("1", "1", "1") };
	const char *const turned[2] = { even[1], even[0] };
	const char *const same[2] = { even[0], even[0] };
	const char *const thirds[2] = { PAD("0", "2", "2"), PAD("1", "1", "2") };
	const char *const longer[2] = { PAD("0", "2", "1"), PAD("1", "1", "1") };

	(void)state;
	expect_interleaved(true, (const int[]){ 5, 5 }, even, 10, "");
	expect_interleaved(true, (const int[]){ 5, 5 }, turned, 10, "");
	expect_interleaved(true, (const int[]){ 5, 4 }, odd, 9, "");
	expect_interleaved(true, (const int[]){ 1, 1 }, even, 2, "");
	/* at the same places; not at all places; one longer; somebody looks at one */
	expect_interleaved(false, (const int[]){ 5, 5 }, same, 10, "");
	expect_interleaved(false, (const int[]){ 5, 5 }, thirds, 15, "");
	expect_interleaved(false, (const int[]){ 5, 5 }, longer, 11, "");
	expect_interleaved(false, (const int[]){ 5, 5 }, even, 10, ", %4");
}

/* Turned around where it is looked at, it would be made in each turn. */
static void a_product_before_a_loop_stays_before_it(void **state)
{
	static const char text[] =
		"module() () {\nfunc() {sym_name = \"main\"} (%1: tensor<64x32xf32>, "
		"%2: tensor<32x64xf32>, %3: tensor<64x64xf32>, %4: tensor<i32>) {\n"
		"%5 = dot_general(%1, %2) {lhs_batching_dimensions = [], "
		"rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], "
		"rhs_contracting_dimensions = [0]} : tensor<64x64xf32>\n"
		"%6, %7 = while(%4, %3) : tensor<i32>, tensor<64x64xf32> "
		"(%10: tensor<i32>, %11: tensor<64x64xf32>) {\n"
		"%12 = compare(%10, %4) {comparison_direction = <LT>, compare_type = <SIGNED>} : "
		"tensor<i1>\nreturn(%12)\n} (%13: tensor<i32>, %14: tensor<64x64xf32>) {\n"
		"%15 = transpose(%5) {permutation = [1, 0]} : tensor<64x64xf32>\n"
		"%16 = multiply(%14, %15) : tensor<64x64xf32>\n"
		"%17 = add(%13, %4) : tensor<i32>\nreturn(%17, %16)\n}\nreturn(%7)\n}\n}\n";
	const char *dot, *loop;
	char *out;

	(void)state;
	out = opt_after("simplify", text);
	dot = strstr(out, "dot_general(");
	loop = strstr(out, "while(");
	if (!dot || !loop || dot > loop || !strstr(loop, "transpose("))
		fail_msg("became\n%s", out);
	free(out);
}

struct filling {
	const char *first, *step, *turns, *compare;	/* of the counter */
	const char *index;	/* where a turn puts its row */
	const char *body, *back;	/* more of its ops; what it leaves */
	const char *put;	/* what the row goes to, the row, where */
};

static const struct filling plain = { "0x00000000", "add(%10, %13)", "0x04000000", "<LT>",
	"add(%10, %12)", "", "%22", "%11, %1, %21, %12" };

#define NUMBER(id, bits) id " = constant() {value = dense<" bits "> : tensor<i32>} : tensor<i32>\n"
#define ROWS "tensor<4x8xf32>"

/* A loop that puts rows into an array of zeros. */
static void expect_empty(bool is_empty, struct filling f)
{
	char text[3000], *out;

	snprintf(text, sizeof(text),
		 "module() () {\nfunc() {sym_name = \"main\"} (%%1: tensor<1x8xf32>) {\n"
		 NUMBER("%%2", "%s")
		 "%%3 = constant() {value = dense<splat 0x00000000> : " ROWS "} : " ROWS "\n"
		 "%%4, %%5 = while(%%2, %%3) : tensor<i32>, " ROWS " "
		 "(%%6: tensor<i32>, %%7: " ROWS ") {\n" NUMBER("%%8", "%s")
		 "%%9 = compare(%%6, %%8) {comparison_direction = %s, compare_type = <SIGNED>} : "
		 "tensor<i1>\nreturn(%%9)\n} (%%10: tensor<i32>, %%11: " ROWS ") {\n"
		 NUMBER("%%12", "0x00000000") NUMBER("%%13", "0x01000000")
		 NUMBER("%%14", "0x03000000")
		 "%%21 = %s : tensor<i32>\n%s"
		 "%%22 = dynamic_update_slice(%s) : " ROWS "\n"
		 "%%23 = %s : tensor<i32>\nreturn(%%23, %s)\n}\nreturn(%%5)\n}\n}\n",
		 f.first, f.turns, f.compare, f.index, f.body, f.put, f.step, f.back);
	out = opt_after("empty", text);
	if (is_empty != !!strstr(out, "tc.empty("))
		fail_msg("%s\nbecame\n%s", text, out);
	free(out);
}

#define BELOW(direction, index, zero) "%24 = compare(" index ", " zero ") " \
	"{comparison_direction = " direction ", compare_type = <SIGNED>} : tensor<i1>\n" \
	"%25 = add(%10, %14) : tensor<i32>\n%26 = select(%24, %25, %10) : tensor<i32>\n"
#define EXPECT(is_empty, ...) do { \
		struct filling f = plain; \
	\
		__VA_ARGS__; \
		expect_empty(is_empty, f); \
	} while (0)

static void what_a_loop_fills_is_not_filled_before(void **state)
{
	(void)state;
	expect_empty(true, plain);
	EXPECT(true, f.index = "subtract(%14, %10)");	/* from the last row on */
	EXPECT(true, f.step = "add(%13, %10)");
	/* by an index that would count from the end, were it below 0 */
	EXPECT(true, f.body = BELOW("<LT>", "%10", "%12"), f.put = "%11, %1, %26, %12");
	EXPECT(false, f.body = BELOW("<GE>", "%10", "%12"), f.put = "%11, %1, %26, %12");
	EXPECT(false, f.body = BELOW("<LT>", "%10", "%13"), f.put = "%11, %1, %26, %12");
	EXPECT(false, f.body = "%27 = subtract(%12, %14) : tensor<i32>\n"
	       BELOW("<LT>", "%27", "%12"), f.put = "%11, %1, %26, %12");
}

static void what_a_loop_does_not_fill_is_left(void **state)
{
	(void)state;
	/* rows that no turn puts, or no turn at all */
	EXPECT(false, f.turns = "0x03000000");
	EXPECT(false, f.turns = "0x00000000");
	EXPECT(false, f.first = "0x01000000");
	EXPECT(false, f.index = "add(%10, %13)");
	EXPECT(false, f.index = "subtract(%10, %13)");
	EXPECT(false, f.index = "multiply(%10, %14)");
	EXPECT(false, f.index = "add(%12, %12)");
	EXPECT(false, f.index = "add(%10, %10)");
	EXPECT(false, f.step = "add(%10, %14)");
	EXPECT(false, f.step = "subtract(%10, %13)");
	/* turns that are not counted as here, or more than there are rows */
	EXPECT(false, f.compare = "<LE>");
	EXPECT(false, f.compare = "<NE>");
	EXPECT(false, f.turns = "0x05000000");
	/* somebody looks at what is not there yet */
	EXPECT(false, f.put = "%11, %24, %21, %12",
	       f.body = "%24 = slice(%11) {start_indices = [3, 0], limit_indices = [4, 8], "
			"strides = [1, 1]} : tensor<1x8xf32>\n");
	EXPECT(false, f.put = "%24, %1, %21, %12",
	       f.body = "%24 = negate(%11) : tensor<4x8xf32>\n");
	EXPECT(false, f.back = "%11");
}

/* Whatever others left in memory would be seen by it. */
static void an_empty_array_that_a_text_brings_is_of_zeros(void **state)
{
	static const char text[] = "module() () {\nfunc() {sym_name = \"main\"} () {\n"
		"%1 = tc.empty() : tensor<4xf32>\nreturn(%1)\n}\n}\n";
	static const char token[] = "module() () {\nfunc() {sym_name = \"main\"} () {\n"
		"%1 = tc.empty() : token\nreturn(%1)\n}\n}\n";
	struct err err;
	char *out;

	(void)state;
	for (int level = 0; level < 2; level++) {
		const struct tc_options o = { .level = level, .verify = true };

		assert_int_equal(tc_print(&(struct tc_source){ text, strlen(text), "mlir" }, &o,
					  "final", &out, &err), 0);
		assert_null(strstr(out, "tc.empty"));
		assert_non_null(strstr(out, "dense<splat 0x00000000>"));
		free(out);
	}
	assert_int_equal(tc_print(&(struct tc_source){ token, strlen(token), "mlir" }, NULL,
				  "final", &out, &err), ERR_INVALID_ARGUMENT);
	assert_non_null(strstr(err.msg, "no array"));
}

/* What a power of an array by a constant becomes: `ops` are there, and no power. */
static void expect_power(const char *type, const char *by, const char *const *ops)
{
	char text[600], *out;

	snprintf(text, sizeof(text),
		 "module() () {\nfunc() {sym_name = \"main\"} (%%1: tensor<8x%s>) {\n"
		 "%%2 = constant() {value = dense<splat %s> : tensor<8x%s>} : tensor<8x%s>\n"
		 "%%3 = power(%%1, %%2) : tensor<8x%s>\nreturn(%%3)\n}\n}\n",
		 type, by, type, type, type);
	out = opt_after("simplify", text);
	if (!!*ops != !strstr(out, "power("))
		fail_msg("%s\nbecame\n%s", text, out);
	for (; *ops; ops++)
		if (!strstr(out, *ops))
			fail_msg("no %s in\n%s", *ops, out);
	free(out);
}

#define OPS(...) (const char *const[]){ __VA_ARGS__, NULL }
#define NO_OTHERS (const char *const[]){ NULL }

static void powers_of_a_few_constants_are_products_and_the_like(void **state)
{
	(void)state;
	expect_power("f32", "0x00000000", OPS("0x0000803f", "return"));
	expect_power("f32", "0x0000803f", OPS("return(%1)"));
	expect_power("f32", "0x00000040", OPS("multiply(%1, %1)"));
	expect_power("f32", "0x00004040", OPS("multiply(%1, %1)", ", %1) : tensor<8xf32>"));
	expect_power("f32", "0x000080bf", OPS("divide("));
	expect_power("f32", "0x0000003f", OPS("sqrt(%1)", "add(", "select("));
	expect_power("f64", "0x0000000000000040", OPS("multiply(%1, %1)"));
	/* in 16 bits, rounded once */
	expect_power("bf16", "0x4040", OPS("convert(%1) : tensor<8xf32>", "multiply(",
					   ": tensor<8xbf16>"));
	expect_power("f16", "0x0042", OPS("convert(%1) : tensor<8xf32>", "multiply("));
}

static void other_powers_are_powers(void **state)
{
	(void)state;
	expect_power("f32", "0x00008040", NO_OTHERS);	/* 4 */
	expect_power("f32", "0x01000040", NO_OTHERS);	/* a little more than 2 */
	expect_power("f32", "0x000000c0", NO_OTHERS);	/* -2 */
	expect_power("f32", "0x00000080", NO_OTHERS);	/* -0 */
	expect_power("f16", "0x0040", OPS("multiply("));
	expect_power("f16", "0x4040", NO_OTHERS);	/* what 3 is in bf16 */
	expect_power("bf16", "0x0042", NO_OTHERS);
}

/* A slice of two rows and three behind each other. */
static void expect_slice(const char *slice, const char *became)
{
	char text[800], *out;

	snprintf(text, sizeof(text), "module() () {\nfunc() {sym_name = \"main\"} "
		 "(%%1: tensor<2x4xf32>, %%2: tensor<3x4xf32>) {\n"
		 "%%3 = concatenate(%%1, %%2) {dimension = 0} : tensor<5x4xf32>\n"
		 "%%4 = slice(%%3) %s\nreturn(%%4)\n}\n}\n", slice);
	out = opt_after("simplify", text);
	if (!strstr(out, became))
		fail_msg("%s\nbecame\n%s", text, out);
	free(out);
}

static void slices_of_one_part_of_a_concatenation_are_the_parts(void **state)
{
	(void)state;
	expect_slice("{start_indices = [0, 0], limit_indices = [2, 4], strides = [1, 1]} : "
		     "tensor<2x4xf32>", "return(%1)");
	expect_slice("{start_indices = [2, 0], limit_indices = [5, 4], strides = [1, 1]} : "
		     "tensor<3x4xf32>", "return(%2)");
	expect_slice("{start_indices = [3, 1], limit_indices = [5, 4], strides = [1, 2]} : "
		     "tensor<2x2xf32>",
		     "slice(%2) {start_indices = [1, 1], limit_indices = [3, 4]");
	expect_slice("{start_indices = [1, 0], limit_indices = [2, 4], strides = [1, 1]} : "
		     "tensor<1x4xf32>",
		     "slice(%1) {start_indices = [1, 0], limit_indices = [2, 4]");
	expect_slice("{start_indices = [1, 0], limit_indices = [3, 4], strides = [1, 1]} : "
		     "tensor<2x4xf32>", "concatenate(");
	expect_slice("{start_indices = [2, 0], limit_indices = [2, 4], strides = [1, 1]} : "
		     "tensor<0x4xf32>", "slice(%");
}

/* `lines` of main, whose arguments are %1 and %2 of 8x`type` and %3 of 8x9xi32, become a text with
 * `has` and, if not NULL, without `lacks`. */
static void expect_text(const char *type, const char *lines, const char *has, const char *lacks)
{
	char text[2000], *out;

	snprintf(text, sizeof(text),
		 "module() () {\nfunc() {sym_name = \"main\"} (%%1: tensor<8x%s>, "
		 "%%2: tensor<8x%s>, %%3: tensor<8x9xi32>) {\n%s\n}\n}\n", type, type, lines);
	out = opt_after("simplify", text);
	if (!strstr(out, has) || (lacks && strstr(out, lacks)))
		fail_msg("%s\nbecame\n%s", text, out);
	free(out);
}

#define ASKS(n, x, y, direction, kind) \
	"%" n " = compare(%" x ", %" y ") {comparison_direction = <" direction ">, " \
	"compare_type = <" kind ">} : tensor<8xi1>\n"

static void questions_are_as_simple_as_their_answers(void **state)
{
	(void)state;
	/* with itself: known of integers, not of floats */
	expect_text("i32", ASKS("4", "1", "1", "NE", "SIGNED") "return(%4)", "dense<splat 0x00>",
		    "compare");
	expect_text("i32", ASKS("4", "1", "1", "LE", "SIGNED") "return(%4)", "dense<splat 0x01>",
		    "compare");
	expect_text("f32", ASKS("4", "1", "1", "NE", "FLOAT") "return(%4)", "compare", NULL);
	/* two questions that are one, and two that are not */
	expect_text("f32", ASKS("4", "1", "2", "GT", "FLOAT") ASKS("5", "1", "2", "EQ", "FLOAT")
		    "%6 = or(%5, %4) : tensor<8xi1>\nreturn(%6)", "<GE>", "or(");
	expect_text("f32", ASKS("4", "1", "2", "LT", "FLOAT") ASKS("5", "1", "2", "EQ", "FLOAT")
		    "%6 = or(%4, %5) : tensor<8xi1>\nreturn(%6)", "<LE>", "or(");
	expect_text("f32", ASKS("4", "1", "2", "LT", "FLOAT") ASKS("5", "2", "1", "EQ", "FLOAT")
		    "%6 = or(%4, %5) : tensor<8xi1>\nreturn(%6)", "or(", NULL);
	expect_text("f32", ASKS("4", "1", "2", "LT", "FLOAT") ASKS("5", "1", "2", "EQ", "FLOAT")
		    "%6 = and(%4, %5) : tensor<8xi1>\nreturn(%6)", "and(", NULL);
	/* the larger of two: a NaN and zeros of two signs forbid it to floats */
	expect_text("i32", ASKS("4", "1", "2", "GT", "SIGNED")
		    "%5 = select(%4, %1, %2) : tensor<8xi32>\nreturn(%5)", "maximum(", "select(");
	expect_text("i32", ASKS("4", "1", "2", "LT", "SIGNED")
		    "%5 = select(%4, %2, %1) : tensor<8xi32>\nreturn(%5)", "maximum(", "select(");
	expect_text("i32", ASKS("4", "1", "2", "GE", "SIGNED")
		    "%5 = select(%4, %2, %1) : tensor<8xi32>\nreturn(%5)", "minimum(", "select(");
	expect_text("f32", ASKS("4", "1", "2", "GT", "FLOAT")
		    "%5 = select(%4, %1, %2) : tensor<8xf32>\nreturn(%5)", "select(", "maximum(");
}

/* Whether a number lies between 0 and `most`, as two questions. */
#define INSIDE(type, low, most, from, to, of) \
	"%4 = constant() {value = dense<splat " low "> : tensor<8x" type ">} : " \
	"tensor<8x" type ">\n" \
	"%5 = constant() {value = dense<splat " most "> : tensor<8x" type ">} : " \
	"tensor<8x" type ">\n" ASKS("6", "1", "4", from, "SIGNED") \
	ASKS("7", of, "5", to, "SIGNED") \
	"%8 = and(%7, %6) : tensor<8xi1>\nreturn(%8)"

static void inside_is_one_question_of_a_number_without_a_sign(void **state)
{
	(void)state;
	expect_text("i32", INSIDE("i32", "0x00000000", "0x07000000", "GE", "LE", "1"),
		    "<UNSIGNED>", "and(");
	expect_text("i32", INSIDE("i32", "0x00000000", "0xffffff7f", "GE", "LT", "1"),
		    "<UNSIGNED>", "<GE>");
	expect_text("i8", INSIDE("i8", "0x00", "0x7f", "GE", "LE", "1"), "<UNSIGNED>", "and(");
	expect_text("i64", INSIDE("i64", "0x0000000000000000", "0x0000000001000000", "GE", "LE",
				  "1"), "<UNSIGNED>", "and(");
	/* none is: as one without a sign the most would be the largest of all */
	expect_text("i32", INSIDE("i32", "0x00000000", "0xffffffff", "GE", "LE", "1"), "and(",
		    "<UNSIGNED>");
	/* other questions */
	expect_text("i32", INSIDE("i32", "0x01000000", "0x07000000", "GE", "LE", "1"), "and(",
		    "<UNSIGNED>");
	expect_text("i32", INSIDE("i32", "0x00000000", "0x07000000", "GT", "LE", "1"), "and(",
		    "<UNSIGNED>");
	expect_text("i32", INSIDE("i32", "0x00000000", "0x07000000", "GE", "NE", "1"), "and(",
		    "<UNSIGNED>");
	expect_text("i32", INSIDE("i32", "0x00000000", "0x07000000", "GE", "LE", "2"), "and(",
		    "<UNSIGNED>");
}

/* The largest of each row of %3, and where: indices that `count` makes, from `first` on. */
#define FINDS(count, first, direction) \
	"%4 = " count " : tensor<8x9xi32>\n" \
	"%5 = constant() {value = dense<0x00000080> : tensor<i32>} : tensor<i32>\n" \
	"%6 = constant() {value = dense<" first "> : tensor<i32>} : tensor<i32>\n" \
	"%7, %8 = reduce(%3, %4, %5, %6) {dimensions = [1]} : tensor<8xi32>, tensor<8xi32> " \
	"(%10: tensor<i32>, %11: tensor<i32>, %12: tensor<i32>, %13: tensor<i32>) {\n" \
	"%14 = compare(%10, %12) {comparison_direction = <GE>, compare_type = <SIGNED>} : " \
	"tensor<i1>\n" \
	"%15 = compare(%11, %13) {comparison_direction = <" direction ">, " \
	"compare_type = <SIGNED>} : tensor<i1>\n" \
	"%16 = and(%14, %15) : tensor<i1>\n" \
	"%17 = maximum(%10, %12) : tensor<i32>\n" \
	"%18 = select(%16, %11, %13) : tensor<i32>\n" \
	"return(%17, %18)\n}\nreturn(%7, %8)"

static void who_folds_in_order_asks_no_index(void **state)
{
	(void)state;
	expect_text("i32", FINDS("iota() {iota_dimension = 1}", "0x00000000", "LT"), "<GE>",
		    "<LT>");
	expect_text("i32", FINDS("iota() {iota_dimension = 1}", "0x00000000", "LE"), "<GE>",
		    "<LE>");
	expect_text("i32", FINDS("iota() {iota_dimension = 0}", "0x00000000", "LT"), "<LT>", NULL);
	expect_text("i32", FINDS("iota() {iota_dimension = 1}", "0x02000000", "LT"), "<LT>", NULL);
	expect_text("i32", FINDS("negate(%3)", "0x00000000", "LT"), "<LT>", NULL);
	expect_text("i32", FINDS("iota() {iota_dimension = 1}", "0x00000000", "EQ"), "<EQ>", NULL);
}

static void the_largest_of_narrow_floats_is_found_in_wide_ones(void **state)
{
#define LARGEST(name, first) \
	"%4 = constant() {value = dense<" first "> : tensor<bf16>} : tensor<bf16>\n" \
	"%5 = reduce(%1, %4) {dimensions = [0]} : tensor<bf16> (%6: tensor<bf16>, " \
	"%7: tensor<bf16>) {\n%8 = " name "(%6, %7) : tensor<bf16>\nreturn(%8)\n}\nreturn(%5)"
	(void)state;
	expect_text("bf16", LARGEST("maximum", "0x80ff"), "maximum(%", "tensor<bf16> (");
	expect_text("bf16", LARGEST("minimum", "0x807f"), "minimum(%", "tensor<bf16> (");
	/* one that counts, and sums, which are rounded on the way */
	expect_text("bf16", LARGEST("maximum", "0x803f"), "tensor<bf16> (", NULL);
	expect_text("bf16", LARGEST("add", "0x0000"), "tensor<bf16> (", NULL);
#undef LARGEST
}

/* A body that reads each of many values twice is looked at for a while only, or it would be for
 * ever: `first` of the index so far, %11, and the element's, %13, then `next` of the one before. */
static void expect_soon(const char *first, const char *next, const char *last)
{
	char *text = malloc(20000), *out;
	size_t n;

	assert_non_null(text);
	n = (size_t)snprintf(text, 20000, "module() () {\nfunc() {sym_name = \"main\"} "
		"(%%3: tensor<8x9xi32>) {\n%%4 = iota() {iota_dimension = 1} : tensor<8x9xi32>\n"
		"%%6 = constant() {value = dense<0x00000000> : tensor<i32>} : tensor<i32>\n"
		"%%7, %%8 = reduce(%%3, %%4, %%6, %%6) {dimensions = [1]} : tensor<8xi32>, "
		"tensor<8xi32> (%%10: tensor<i32>, %%11: tensor<i32>, %%12: tensor<i32>, "
		"%%13: tensor<i32>) {\n%%16 = compare(%%11, %%13) {comparison_direction = <LT>, "
		"compare_type = <SIGNED>} : tensor<i1>\n%%20 = %s\n", first);
	for (unsigned i = 20; i < 100; i++) {
		n += (size_t)snprintf(text + n, 20000 - n, "%%%u = ", i + 1);
		n += (size_t)snprintf(text + n, 20000 - n, next, i, i);
	}
	snprintf(text + n, 20000 - n, "%%110 = %s : tensor<i32>\n%%111 = maximum(%%10, %%12) : "
		 "tensor<i32>\nreturn(%%111, %%110)\n}\nreturn(%%7, %%8)\n}\n}\n", last);
	out = opt_after("decompose", text);
	free(out);
	free(text);
}

static void bodies_with_many_ways_are_compiled_soon(void **state)
{
	(void)state;
	expect_soon("select(%16, %11, %13) : tensor<i32>",
		    "select(%%16, %%%u, %%%u) : tensor<i32>\n", "select(%16, %100, %100)");
	expect_soon("minimum(%11, %13) : tensor<i32>", "minimum(%%%u, %%%u) : tensor<i32>\n",
		    "select(%16, %100, %100)");
	expect_soon("and(%16, %16) : tensor<i1>", "and(%%%u, %%%u) : tensor<i1>\n",
		    "select(%100, %11, %13)");
}

/* What is put together of %3, itself that of the arguments along `dim`, and others is one
 * concatenation of these operands. */
static void expect_parts(const char *want, const char *dim, const char *lines)
{
	char text[1200], *out;

	snprintf(text, sizeof(text),
		 "module() () {\nfunc() {sym_name = \"main\"} (%%1: tensor<3x3xf32>, "
		 "%%2: tensor<3x3xf32>, %%9: tensor<0x3xf32>) {\n"
		 "%%3 = concatenate(%%1, %%2) {dimension = %s} : %s\n%s}\n}\n", dim,
		 *dim == '0' ? "tensor<6x3xf32>" : "tensor<3x6xf32>", lines);
	out = opt_after("simplify", text);
	if (!strstr(out, want))
		fail_msg("%s\nbecame\n%s", text, out);
	free(out);
}

static void what_is_put_together_of_parts_is_of_theirs(void **state)
{
	(void)state;
	expect_parts("concatenate(%2, %1, %2)", "0", "%4 = concatenate(%2, %3) {dimension = 0} : "
		     "tensor<9x3xf32>\nreturn(%4)\n");
	expect_parts("concatenate(%1, %2, %1)", "0", "%4 = concatenate(%9, %3, %9, %1) "
		     "{dimension = 0} : tensor<9x3xf32>\nreturn(%4)\n");
	/* nothing else is left */
	expect_parts("return(%1)", "0", "%4 = concatenate(%9, %1, %9) {dimension = 0} : "
		     "tensor<3x3xf32>\nreturn(%4)\n");
	/* along another dim; somebody looks at the part; nothing at all */
	expect_parts("concatenate(%3, %3)", "0", "%4 = concatenate(%3, %3) {dimension = 1} : "
		     "tensor<6x6xf32>\nreturn(%4)\n");
	expect_parts("concatenate(%1, %3)", "0", "%4 = concatenate(%1, %3) {dimension = 0} : "
		     "tensor<9x3xf32>\nreturn(%4, %3)\n");
	expect_parts("concatenate(%9, %9)", "0", "%4 = concatenate(%9, %9) {dimension = 0} : "
		     "tensor<0x3xf32>\nreturn(%4)\n");
	expect_parts("concatenate(%3, %5)", "1", "%5 = concatenate(%1, %1) {dimension = 1} : "
		     "tensor<3x6xf32>\n%4 = concatenate(%3, %5) {dimension = 0} : "
		     "tensor<6x6xf32>\nreturn(%4)\n");
}

/* Twice spread along a new dim, `more` after that: whether once is left. */
static void expect_once(bool is_once, const char *in, const char *lines)
{
	char text[1600], *out;
	const char *at;

	snprintf(text, sizeof(text),
		 "module() () {\nfunc() {sym_name = \"main\"} (%%1: tensor<%sxf32>) {\n"
		 "%s}\n}\n", in, lines);
	out = opt_after("simplify", text);
	at = strstr(out, "broadcast_in_dim(");
	if (!at || is_once != !strstr(at + 1, "broadcast_in_dim("))
		fail_msg("%s\nbecame\n%s", text, out);
	free(out);
}

#define SPREAD(to, from, dims, type) \
	to " = broadcast_in_dim(" from ") {broadcast_dimensions = [" dims "]} : tensor<" type \
	"xf32>\n"
#define SHAPED(to, from, type) to " = reshape(" from ") : tensor<" type "xf32>\n"

static void what_is_repeated_along_two_dims_is_moved_once(void **state)
{
	(void)state;
	expect_once(true, "4x64", SPREAD("%2", "%1", "0, 2", "4x3x64") SHAPED("%3", "%2", "12x64")
		    SPREAD("%4", "%3", "0, 1", "12x64x5") SHAPED("%5", "%4", "12x320")
		    "return(%5)\n");
	expect_once(true, "1x4x64x1", SPREAD("%2", "%1", "0, 1, 2, 4", "1x4x64x3x1")
		    SHAPED("%3", "%2", "1x4x192x1") SPREAD("%4", "%3", "0, 1, 3, 4", "1x4x2x192x1")
		    SHAPED("%5", "%4", "1x8x192x1") "return(%5)\n");
	/* as many dims as an instruction has, and one more */
	expect_once(true, "2x2x2x2x2x256", SPREAD("%2", "%1", "0, 1, 2, 3, 4, 5", "2x2x2x2x2x256x5")
		    SHAPED("%3", "%2", "2x2x2x2x2x1280")
		    SPREAD("%4", "%3", "0, 1, 2, 3, 4, 6", "2x2x2x2x2x7x1280")
		    SHAPED("%5", "%4", "2x2x2x2x14x1280") "return(%5)\n");
	expect_once(false, "2x2x2x2x2x2x256",
		    SPREAD("%2", "%1", "0, 1, 2, 3, 4, 5, 6", "2x2x2x2x2x2x256x5")
		    SHAPED("%3", "%2", "2x2x2x2x2x2x1280")
		    SPREAD("%4", "%3", "0, 1, 2, 3, 4, 5, 7", "2x2x2x2x2x2x7x1280")
		    SHAPED("%5", "%4", "2x2x2x2x2x14x1280") "return(%5)\n");
}

static void what_is_spread_for_work_is_left(void **state)
{
	(void)state;
	/* what is repeated is looked at, too */
	expect_once(false, "4x64", SPREAD("%2", "%1", "0, 2", "4x3x64") SHAPED("%3", "%2", "12x64")
		    SPREAD("%4", "%3", "0, 1", "12x64x5") SHAPED("%5", "%4", "12x320")
		    "return(%5, %3)\n");
	/* nothing but a view is made of the second */
	expect_once(false, "4x64", SPREAD("%2", "%1", "0, 2", "4x3x64") SHAPED("%3", "%2", "12x64")
		    SPREAD("%4", "%3", "1, 2", "5x12x64") SHAPED("%5", "%4", "5x768")
		    "return(%5)\n");
	expect_once(false, "4x64", SPREAD("%2", "%1", "0, 2", "4x3x64") SHAPED("%3", "%2", "12x64")
		    SPREAD("%4", "%3", "0, 1", "12x64x5") "return(%4)\n");
	/* nor of the first; a dim that was there is widened; dims change places */
	expect_once(false, "4x64", SPREAD("%2", "%1", "1, 2", "3x4x64") SHAPED("%3", "%2", "3x256")
		    SPREAD("%4", "%3", "0, 1", "3x256x5") SHAPED("%5", "%4", "3x1280")
		    "return(%5)\n");
	expect_once(false, "4x64", SPREAD("%2", "%1", "0, 2", "4x3x64")
		    SHAPED("%3", "%2", "1x12x64")
		    SPREAD("%4", "%3", "0, 1, 2", "2x12x64x5") SHAPED("%5", "%4", "2x12x320")
		    "return(%5)\n");
	expect_once(false, "4x64", SPREAD("%2", "%1", "0, 2", "4x3x64") SHAPED("%3", "%2", "12x64")
		    SPREAD("%4", "%3", "1, 0", "64x12x5") SHAPED("%5", "%4", "64x60")
		    "return(%5)\n");
}

static void short_rows_that_are_repeated_are_left(void **state)
{
	(void)state;
	/* element by element, in rows of 252 and of 256 bytes */
	expect_once(false, "4x63", SPREAD("%2", "%1", "0, 2", "4x3x63") SHAPED("%3", "%2", "12x63")
		    SPREAD("%4", "%3", "0, 1", "12x63x5") SHAPED("%5", "%4", "12x315")
		    "return(%5)\n");
	expect_once(true, "4x64", SPREAD("%2", "%1", "0, 1", "4x64x5") SHAPED("%3", "%2", "4x320")
		    SPREAD("%4", "%3", "0, 2", "4x2x320") SHAPED("%5", "%4", "8x320")
		    "return(%5)\n");
	/* each row four times, once its elements are spread */
	expect_once(false, "4x64", SPREAD("%2", "%1", "0, 1", "4x64x5") SHAPED("%3", "%2", "4x320")
		    SPREAD("%4", "%3", "0, 2", "4x4x320") SHAPED("%5", "%4", "16x320")
		    "return(%5)\n");
	/* whole rows of any length */
	expect_once(true, "4x6x2", SPREAD("%2", "%1", "0, 2, 3", "4x3x6x2")
		    SHAPED("%3", "%2", "12x6x2") SPREAD("%4", "%3", "0, 1, 3", "12x6x5x2")
		    SHAPED("%5", "%4", "12x30x2") "return(%5)\n");
}

/* What is left of steps that end in %9, of an array %1 and a scalar %2: `want` among it, and none
 * of `gone`. */
static void expect_left(const char *steps, const char *type, const char *want, const char *gone)
{
	char text[1200], *out;

	snprintf(text, sizeof(text), "module() () {\nfunc() {sym_name = \"main\"} "
		 "(%%1: tensor<8xf32>, %%2: tensor<i1>) {\n%s : tensor<%s>\nreturn(%%9)\n}\n}\n",
		 steps, type);
	out = opt_after("simplify", text);
	if (!strstr(out, want) || strstr(out, gone))
		fail_msg("%s\nbecame\n%s", text, out);
	free(out);
}

#define OF(type, values) "%3 = constant() {value = dense<" values "> : tensor<" type ">} : " \
	"tensor<" type ">\n"
#define TAKE(from, to, step, type) "%4 = slice(%3) {limit_indices = [" to "], " \
	"start_indices = [" from "], strides = [" step "]} : tensor<" type ">\n"
#define SPREAD_TO_9 "%5 = reshape(%4) : tensor<f32>\n" \
	"%9 = broadcast_in_dim(%5) {broadcast_dimensions = []}"

static void an_element_of_a_constant_is_a_constant(void **state)
{
	(void)state;
	expect_left(OF("3xf32", "0x0000803f0000004000004040") TAKE("0", "1", "1", "1xf32")
		    SPREAD_TO_9, "8xf32", "0x0000803f", "slice(");
	expect_left(OF("3xf32", "0x0000803f0000004000004040") TAKE("2", "3", "2", "1xf32")
		    SPREAD_TO_9, "8xf32", "0x00004040", "slice(");
	expect_left(OF("2x3xi16", "0x010002000300040005000600")
		    "%9 = slice(%3) {limit_indices = [2, 2], start_indices = [1, 1], "
		    "strides = [1, 1]}", "1x1xi16", "0x0500", "slice(");
	/* the whole row stays */
	expect_left(OF("2x3xi16", "0x010002000300040005000600")
		    "%9 = slice(%3) {limit_indices = [2, 3], start_indices = [1, 0], "
		    "strides = [1, 1]}", "1x3xi16", "slice(", "splat");
}

static void a_choice_of_the_same_is_that(void **state)
{
	(void)state;
	expect_left("%3 = negate(%1) : tensor<8xf32>\n%9 = select(%2, %3, %3)", "8xf32",
		    "negate(", "select(");
	expect_left("%3 = negate(%1) : tensor<8xf32>\n%9 = select(%2, %3, %1)", "8xf32",
		    "select(", "splat");
}

/* `step`, of %1 and a constant everywhere. */
static void expect_identity(bool is_one, const char *type, const char *element, const char *step)
{
	char text[600], *out;

	snprintf(text, sizeof(text), "module() () {\nfunc() {sym_name = \"main\"} "
		 "(%%1: tensor<8x%s>) {\n%%2 = constant() {value = dense<splat %s> : tensor<8x%s>} "
		 ": tensor<8x%s>\n%%9 = %s : tensor<8x%s>\nreturn(%%9)\n}\n}\n", type, element,
		 type, type, step, type);
	out = opt_after("simplify", text);
	if (is_one != !!strstr(out, "return(%1)"))
		fail_msg("%s\nbecame\n%s", text, out);
	free(out);
}

static void a_product_with_one_is_the_other(void **state)
{
	(void)state;
	expect_identity(true, "f32", "0x0000803f", "multiply(%1, %2)");
	expect_identity(true, "bf16", "0x803f", "multiply(%2, %1)");
	expect_identity(true, "f64", "0x000000000000f03f", "divide(%1, %2)");
	expect_identity(true, "i32", "0x00000000", "add(%1, %2)");
	expect_identity(false, "f32", "0x0000803f", "divide(%2, %1)");
	expect_identity(false, "f32", "0x00000040", "multiply(%1, %2)");
	/* -0 + 0 is 0, and an infinity by 1 + 0i has no imaginary part */
	expect_identity(false, "f32", "0x00000000", "add(%1, %2)");
	expect_identity(false, "complex<f32>", "0x0000803f00000000", "multiply(%1, %2)");
}

static bool is_factored_by_a_loop(const char *shape)
{
	char text[400], *out;
	bool is_loop;

	snprintf(text, sizeof(text), "module() () {\nfunc() {sym_name = \"main\"} "
		 "(%%1: tensor<%sxf32>) {\n%%2 = cholesky(%%1) {lower = true} : tensor<%sxf32>\n"
		 "return(%%2)\n}\n}\n", shape, shape);
	out = opt_after("decompose", text);
	assert_null(strstr(out, "cholesky("));
	is_loop = strstr(out, "while(");
	free(out);
	return is_loop;
}

/* lower/linalg.c: of more rows the compiler would be slow; of more than 8 matrices of fewer. */
static void matrices_of_up_to_512_rows_are_factored_without_a_loop(void **state)
{
	(void)state;
	assert_false(is_factored_by_a_loop("9x9"));
	assert_false(is_factored_by_a_loop("3x64x64"));
	assert_false(is_factored_by_a_loop("65x65"));
	assert_false(is_factored_by_a_loop("9x256x256"));
	assert_false(is_factored_by_a_loop("512x512"));
	assert_true(is_factored_by_a_loop("9x257x257"));
	assert_true(is_factored_by_a_loop("513x513"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_steps_of_a_logistic_function_are_that),
		cmocka_unit_test(other_steps_are_not),
		cmocka_unit_test(a_product_that_is_turned_is_one_the_other_way_round),
		cmocka_unit_test(padded_halves_that_are_put_together_are_joined),
		cmocka_unit_test(a_product_before_a_loop_stays_before_it),
		cmocka_unit_test(what_a_loop_fills_is_not_filled_before),
		cmocka_unit_test(what_a_loop_does_not_fill_is_left),
		cmocka_unit_test(powers_of_a_few_constants_are_products_and_the_like),
		cmocka_unit_test(other_powers_are_powers),
		cmocka_unit_test(slices_of_one_part_of_a_concatenation_are_the_parts),
		cmocka_unit_test(an_empty_array_that_a_text_brings_is_of_zeros),
		cmocka_unit_test(questions_are_as_simple_as_their_answers),
		cmocka_unit_test(inside_is_one_question_of_a_number_without_a_sign),
		cmocka_unit_test(who_folds_in_order_asks_no_index),
		cmocka_unit_test(the_largest_of_narrow_floats_is_found_in_wide_ones),
		cmocka_unit_test(bodies_with_many_ways_are_compiled_soon),
		cmocka_unit_test(what_is_put_together_of_parts_is_of_theirs),
		cmocka_unit_test(what_is_repeated_along_two_dims_is_moved_once),
		cmocka_unit_test(what_is_spread_for_work_is_left),
		cmocka_unit_test(short_rows_that_are_repeated_are_left),
		cmocka_unit_test(an_element_of_a_constant_is_a_constant),
		cmocka_unit_test(a_choice_of_the_same_is_that),
		cmocka_unit_test(a_product_with_one_is_the_other),
		cmocka_unit_test(matrices_of_up_to_512_rows_are_factored_without_a_loop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
