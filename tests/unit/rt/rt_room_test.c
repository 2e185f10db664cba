/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Temporaries that lie in results which are not born yet (back/room.c) or that are lines, on the
 * device against the evaluator; and how many bytes of temporaries are left. What is made in strips
 * (loop/strip.c), small enough to be looked at.
 */
#include "tests/unit/against_eval.h"

enum { V = 4096 * 4 };		/* bytes of @V */

struct program {
	const char *name, *args, *body;
	uint64_t temp_bytes;
};

/* What has to be made whole, in memory, before the next can begin. */
#define SORT_OF(out, in, type, elem) \
	out " = sort(" in ") {dimension = 0, is_stable = true} : tensor<" type "> " \
	"(" out "90: tensor<" elem ">, " out "91: tensor<" elem ">) {\n" \
	out "92 = compare(" out "90, " out "91) {compare_type = <FLOAT>, " \
	"comparison_direction = <LT>} : tensor<i1>\nreturn(" out "92)\n}\n"
#define SORT(out, in) SORT_OF(out, in, "4096xf32", "f32")
#define ONE "%1: tensor<4096xf32>"
#define TWO ONE ", %2: tensor<4096xf32>"
#define VEC " : tensor<4096xf32>\n"

#define ROWS \
	"%4 = reshape(%3) : tensor<64x64xf32>\n" \
	"%80 = constant() {value = dense<0x000080ff> : tensor<f32>} : tensor<f32>\n" \
	"%5 = reduce(%4, %80) {dimensions = [1]} : tensor<64xf32> " \
	"(%81: tensor<f32>, %82: tensor<f32>) {\n%83 = maximum(%81, %82) : tensor<f32>\n" \
	"return(%83)\n}\n%6 = broadcast_in_dim(%5) {broadcast_dimensions = [0]} : " \
	"tensor<64x64xf32>\n"
/* The end: a result in which no array has room. */
#define SHORTENED(of) \
	"%71 = slice(" of ") {limit_indices = [4095], start_indices = [0], strides = [1]} : " \
	"tensor<4095xf32>\n" SORT_OF("%72", "%71", "4095xf32", "f32") "return(%72)\n"

static const struct program programs[] = {
	{ "a result that comes later", ONE, SORT("%3", "%1") SORT("%4", "%3") SORT("%5", "%4")
	  "return(%4, %5)\n", 0 },
	{ "one that begins as the last look ends", ONE, SORT("%3", "%1") SORT("%4", "%3")
	  "return(%4)\n", V },
	/* what is looked at by views, and by what goes on in its memory */
	{ "a view that is looked at longer", TWO, SORT("%3", "%1") "%4 = reverse(%3) {dimensions "
	  "= [0]}" VEC SORT("%5", "%2") SORT("%6", "%5") "%7 = subtract(%4, %6)" VEC
	  "return(%6, %7)\n", V },
	{ "a view of a view", TWO, SORT("%3", "%1") "%4 = reshape(%3) : tensor<64x64xf32>\n"
	  "%8 = transpose(%4) {permutation = [1, 0]} : tensor<64x64xf32>\n" SORT("%5", "%2")
	  SORT("%6", "%5") "%9 = reshape(%6) : tensor<64x64xf32>\n"
	  "%7 = subtract(%8, %9) : tensor<64x64xf32>\nreturn(%6, %7)\n", V },
	{ "a copy with other bits that is looked at longer", TWO, SORT("%3", "%1")
	  "%4 = reverse(%3) {dimensions = [0]}" VEC "%8 = bitcast_convert(%4) : "
	  "tensor<4096xi32>\n" SORT("%5", "%2") SORT("%6", "%5") "%9 = bitcast_convert(%6) : "
	  "tensor<4096xi32>\n%7 = subtract(%8, %9) : tensor<4096xi32>\nreturn(%6, %7)\n", V },
	{ "an update of a part that lives longer", TWO,
	  "%10 = constant() {value = dense<0x05000000> : tensor<i32>} : tensor<i32>\n"
	  "%11 = slice(%2) {limit_indices = [7], start_indices = [0], strides = [1]} : "
	  "tensor<7xf32>\n" SORT("%3", "%1") "%4 = dynamic_update_slice(%3, %11, %10)" VEC
	  SORT("%5", "%2") "%8 = concatenate(%5, %1) {dimension = 0} : tensor<8192xf32>\n"
	  SORT_OF("%6", "%8", "8192xf32", "f32") "%9 = concatenate(%4, %5) {dimension = 0} : "
	  "tensor<8192xf32>\n%7 = subtract(%9, %6) : tensor<8192xf32>\nreturn(%6, %7)\n",
	  2 * V },
	{ "a loop that carries it", TWO,
	  "%10 = constant() {value = dense<0x00000000> : tensor<i32>} : tensor<i32>\n"
	  "%12 = constant() {value = dense<0x03000000> : tensor<i32>} : tensor<i32>\n"
	  "%13 = constant() {value = dense<0x01000000> : tensor<i32>} : tensor<i32>\n"
	  SORT("%3", "%1") "%20, %21 = while(%10, %3) : tensor<i32>, tensor<4096xf32> "
	  "(%22: tensor<i32>, %23: tensor<4096xf32>) {\n"
	  "%24 = compare(%22, %12) {compare_type = <SIGNED>, comparison_direction = <LT>} : "
	  "tensor<i1>\nreturn(%24)\n} (%25: tensor<i32>, %26: tensor<4096xf32>) {\n"
	  "%27 = add(%25, %13) : tensor<i32>\n" SORT("%28", "%26")
	  "%29 = reverse(%28) {dimensions = [0]}" VEC "%30 = subtract(%29, %28)" VEC
	  "return(%27, %30)\n}\n" SORT("%5", "%2") SORT("%6", "%5") "%7 = subtract(%21, %6)" VEC
	  "return(%6, %7)\n", V },
	/* births before the op: of parts, and where a loop starts */
	{ "a result of parts", TWO, SORT("%3", "%1") "%4 = add(%1, %2)" VEC
	  "%5 = subtract(%1, %2)" VEC SORT("%6", "%3")
	  "%7 = concatenate(%4, %5) {dimension = 0} : tensor<8192xf32>\nreturn(%7, %6)\n", V },
	/* whose turns are not counted (loop/turns.c), or they would be three in a row */
	{ "a result of a loop", TWO,
	  "%10 = constant() {value = dense<0x00000000> : tensor<i32>} : tensor<i32>\n"
	  "%12 = constant() {value = dense<0x03000000> : tensor<i32>} : tensor<i32>\n"
	  "%13 = constant() {value = dense<0x01000000> : tensor<i32>} : tensor<i32>\n"
	  SORT("%3", "%1") SORT("%4", "%3") SORT("%5", "%2")
	  "%20, %21 = while(%10, %5) : tensor<i32>, tensor<4096xf32> "
	  "(%22: tensor<i32>, %23: tensor<4096xf32>) {\n"
	  "%24 = compare(%22, %12) {compare_type = <SIGNED>, comparison_direction = <LE>} : "
	  "tensor<i1>\nreturn(%24)\n} (%25: tensor<i32>, %26: tensor<4096xf32>) {\n"
	  "%27 = add(%25, %13) : tensor<i32>\n%30 = subtract(%4, %26)" VEC
	  "return(%27, %30)\n}\nreturn(%21)\n", V + 128 },
	/* results that nothing is born in */
	{ "the same result twice", ONE, SORT("%3", "%1") SORT("%4", "%3") "return(%4, %4)\n", 0 },
	{ "an argument as it is", ONE, SORT("%3", "%1") SORT("%4", "%3") "return(%4, %1)\n", 0 },
	{ "each the other's temporary", TWO, SORT("%3", "%1") SORT("%4", "%2")
	  "%5 = reverse(%3) {dimensions = [0]}" VEC "%6 = reverse(%4) {dimensions = [0]}" VEC
	  "return(%6, %5, %3, %4)\n", 0 },
	/* sizes: a multiple of 64 bytes, one less; larger than the result; two in one */
	{ "sixteen of sixteen", "%1: tensor<16xf32>", SORT_OF("%3", "%1", "16xf32", "f32")
	  SORT_OF("%4", "%3", "16xf32", "f32") SORT_OF("%5", "%4", "16xf32", "f32")
	  "return(%4, %5)\n", 0 },
	{ "fifteen of fifteen", "%1: tensor<15xf32>", SORT_OF("%3", "%1", "15xf32", "f32")
	  SORT_OF("%4", "%3", "15xf32", "f32") SORT_OF("%5", "%4", "15xf32", "f32")
	  "return(%4, %5)\n", 64 },
	{ "larger than the result", ONE, SORT("%3", "%1") SORT("%4", "%3")
	  "%5 = slice(%4) {limit_indices = [4095], start_indices = [0], strides = [1]} : "
	  "tensor<4095xf32>\n" SORT_OF("%6", "%5", "4095xf32", "f32") "return(%6)\n", 2 * V },
	{ "two beside each other", TWO, SORT("%3", "%1") SORT("%4", "%2")
	  "%5 = subtract(%3, %4)" VEC SORT("%6", "%5")
	  "%7 = concatenate(%6, %1) {dimension = 0} : tensor<8192xf32>\nreturn(%6, %7)\n", 0 },
	/* what ends where it is read, by points and by rows; and what is read elsewhere, too */
	{ "one after the other", ONE, SORT("%3", "%1") "%4 = exponential(%3)" VEC
	  SHORTENED("%4"), V },
	{ "the largest of each row taken away", ONE, SORT("%3", "%1") ROWS
	  "%7 = subtract(%4, %6) : tensor<64x64xf32>\n%8 = reshape(%7)" VEC SHORTENED("%8"),
	  V },
	{ "the largest of each row of another order taken away", ONE, SORT("%3", "%1") ROWS
	  "%9 = transpose(%4) {permutation = [1, 0]} : tensor<64x64xf32>\n"
	  "%7 = subtract(%9, %6) : tensor<64x64xf32>\n%8 = reshape(%7)" VEC SHORTENED("%8"),
	  2 * V },
	/* numbers along one dim, of which a line is enough, unless a result is made of them */
	{ "numbers down", "%1: tensor<64x32xi32>", "%3 = iota() {iota_dimension = 0} : "
	  "tensor<64x32xi32>\n%4 = concatenate(%3, %1) {dimension = 0} : tensor<128x32xi32>\n"
	  "return(%4)\n", 256 },
	{ "numbers across", "%1: tensor<64x32xi32>", "%3 = iota() {iota_dimension = 1} : "
	  "tensor<64x32xi32>\n%4 = concatenate(%3, %1) {dimension = 1} : tensor<64x64xi32>\n"
	  "return(%4)\n", 128 },
	{ "numbers that are a result", "%1: tensor<64x32xi32>", "%3 = iota() {iota_dimension = 1} "
	  ": tensor<64x32xi32>\n%4 = concatenate(%3, %1) {dimension = 1} : tensor<64x64xi32>\n"
	  "return(%3, %4)\n", 0 },
	/* memory that nobody may lie in */
	{ "a donated argument", "%1: tensor<4096xf32> {alias = 0}", SORT("%3", "%1")
	  SORT("%4", "%3") SORT("%5", "%4") "return(%5)\n", 2 * V },
};

static void temporaries_lie_in_results_until_they_are_born(void **state)
{
	char text[4000];
	unsigned n_wrong = 0;

	(void)state;
	for (unsigned i = 0; i < sizeof(programs) / sizeof(*programs); i++) {
		const struct program *p = &programs[i];

		snprintf(text, sizeof(text), PROGRAM("%s", "%s"), p->args, p->body);
		runs_as_evaluated(text);
		if (compiled_temp_bytes(text, 0) == p->temp_bytes)
			continue;
		print_error("%s: %llu bytes of temporaries, not %llu\n", p->name,
			    (unsigned long long)compiled_temp_bytes(text, 0),
			    (unsigned long long)p->temp_bytes);
		n_wrong++;
	}
	assert_int_equal(n_wrong, 0);
}

static void results_in_host_memory_are_not_lent(void **state)
{
	static const char text[] =
		"module() () {\nfunc() {sym_name = \"main\"} (" ONE ") -> ({}, "
		"{memory_kind = 1}) {\n"
		SORT("%3", "%1") SORT("%4", "%3") SORT("%5", "%4") "return(%4, %5)\n}\n}\n";

	(void)state;
	runs_as_evaluated(text);
	assert_int_equal(compiled_temp_bytes(text, 0), V);
}

#define LOOP_OF_SORTS \
	"%3 = constant() {value = dense<0x00000000> : tensor<i32>} : tensor<i32>\n" \
	"%4, %5 = while(%3, %1) : tensor<i32>, tensor<4096xf32> " \
	"(%6: tensor<i32>, %7: tensor<4096xf32>) {\n" \
	"%8 = constant() {value = dense<0x0a000000> : tensor<i32>} : tensor<i32>\n" \
	"%9 = compare(%6, %8) {comparison_direction = <LT>, compare_type = <SIGNED>} : " \
	"tensor<i1>\nreturn(%9)\n} (%10: tensor<i32>, %11: tensor<4096xf32>) {\n" \
	"%12 = constant() {value = dense<0x01000000> : tensor<i32>} : tensor<i32>\n" \
	"%13 = add(%10, %12) : tensor<i32>\n" SORT("%14", "%11") "return(%13, %14)\n}\n"

/* What a loop gives lies where a fusion writes its result over it, but not in the host's. */
static void what_is_written_over_lies_in_the_result(void **state)
{
	static const char *const texts[] = {
		"module() () {\nfunc() {sym_name = \"main\"} (" ONE ") {\n" LOOP_OF_SORTS
		"%20 = exponential(%5)" VEC "return(%20)\n}\n}\n",
		"module() () {\nfunc() {sym_name = \"main\"} (" ONE ") -> ({memory_kind = 1}) "
		"{\n" LOOP_OF_SORTS "%20 = exponential(%5)" VEC "return(%20)\n}\n}\n" };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		runs_as_evaluated(texts[i]);
		/* and what a turn sorts */
		assert_int_equal(compiled_temp_bytes(texts[i], 0) / V, 1 + i);
	}
}

/* ---- strips ---- */

#define QKV "%1: tensor<4x64x2xf32>, %2: tensor<4x64x2xf32>, %3: tensor<4x64x2xf32>"
#define SCORES \
	"%4 = dot_general(%1, %2) {lhs_batching_dimensions = [0], lhs_contracting_dimensions = " \
	"[2], rhs_batching_dimensions = [0], rhs_contracting_dimensions = [2]} : " S
#define MIXED(of) \
	"%9 = dot_general(" of ", %3) {lhs_batching_dimensions = [0], lhs_contracting_dimensions " \
	"= [2], rhs_batching_dimensions = [0], rhs_contracting_dimensions = [1]} : " \
	"tensor<4x64x2xf32>\n"
enum { LIMIT = 4 * 64 * 64 * 4 / 2 };	/* half of the scores */
#define S "tensor<4x64x64xf32>\n"
#define REDUCED(out, op, in, start, dim, type) \
	out "0 = constant() {value = dense<" start "> : tensor<f32>} : tensor<f32>\n" \
	out " = reduce(" in ", " out "0) {dimensions = [" dim "]} : tensor<" type "> " \
	"(" out "1: tensor<f32>, " out "2: tensor<f32>) {\n" \
	out "3 = " op "(" out "1, " out "2) : tensor<f32>\nreturn(" out "3)\n}\n"
#define ROW_MAX REDUCED("%5", "maximum", "%4", "0x000080ff", "2", "4x64xf32")
#define LESS_MAX \
	ROW_MAX "%6 = broadcast_in_dim(%5) {broadcast_dimensions = [0, 1]} : " S \
	"%7 = subtract(%4, %6) : " S
#define PAIRS "tensor<64x64x2xf32>\n"
#define SORTED(out, in) \
	out " = sort(" in ") {dimension = 1, is_stable = true} : tensor<4x64xf32> " \
	"(" out "0: tensor<f32>, " out "1: tensor<f32>) {\n" \
	out "2 = compare(" out "0, " out "1) {compare_type = <FLOAT>, " \
	"comparison_direction = <LT>} : tensor<i1>\nreturn(" out "2)\n}\n"

static const struct { const char *name, *args, *body; uint64_t strip_bytes; unsigned loops; }
stripped[] = {
	/* a turn for each product, in each of which one for some rows */
	{ "scores", QKV, SCORES LESS_MAX MIXED("%7") "return(%9)\n", LIMIT, 2 },
	{ "scores of the limit's size", QKV, SCORES LESS_MAX MIXED("%7") "return(%9)\n", 2 * LIMIT,
	  1 },
	{ "smaller scores", QKV, SCORES LESS_MAX MIXED("%7") "return(%9)\n", 2 * LIMIT + 1, 0 },
	{ "scores that are a result", QKV, SCORES LESS_MAX MIXED("%7") "return(%9, %7)\n", 512,
	  0 },
	{ "a small result beside", QKV, SCORES LESS_MAX MIXED("%7") "return(%9, %5)\n", LIMIT, 2 },
	{ "what looks at such a one meanwhile", QKV, SCORES LESS_MAX SORTED("%8", "%5") MIXED("%7")
	  "return(%9, %8)\n", LIMIT, 2 },
	{ "what looks at such a one and is looked at", QKV, SCORES ROW_MAX SORTED("%8", "%5")
	  "%6 = broadcast_in_dim(%8) {broadcast_dimensions = [0, 1]} : " S
	  "%7 = subtract(%4, %6) : " S MIXED("%7") "return(%9)\n", LIMIT, 0 },
	{ "a sum over what would be cut first", QKV, SCORES LESS_MAX MIXED("%7")
	  REDUCED("%8", "add", "%7", "0x00000000", "0", "64x64xf32") "return(%9, %8)\n", LIMIT, 1 },
	{ "a sum over all", QKV, SCORES "%7 = abs(%4) : " S
	  REDUCED("%8", "add", "%7", "0x00000000", "0, 1, 2", "f32") MIXED("%7")
	  "return(%9, %8)\n", LIMIT, 0 },
	{ "numbers of the products", QKV, SCORES "%5 = iota() {iota_dimension = 0} : " S
	  "%7 = multiply(%4, %5) : " S MIXED("%7") "return(%9)\n", LIMIT, 1 },
	{ "numbers of the columns", QKV, SCORES "%5 = iota() {iota_dimension = 2} : " S
	  "%7 = multiply(%4, %5) : " S MIXED("%7") "return(%9)\n", LIMIT, 2 },
	{ "products in the opposite order", QKV, SCORES "%5 = reverse(%4) {dimensions = [0]} : " S
	  "%7 = subtract(%4, %5) : " S MIXED("%7") "return(%9)\n", LIMIT, 1 },
	{ "columns in the opposite order", QKV, SCORES "%5 = reverse(%4) {dimensions = [2]} : " S
	  "%7 = subtract(%4, %5) : " S MIXED("%7") "return(%9)\n", LIMIT, 2 },
	{ "rows turned around", QKV, SCORES "%5 = transpose(%4) {permutation = [0, 2, 1]} : " S
	  "%7 = subtract(%4, %5) : " S MIXED("%7") "return(%9)\n", LIMIT, 1 },
	{ "products as two dims", QKV, SCORES "%5 = reshape(%4) : tensor<2x2x64x64xf32>\n"
	  "%6 = constant() {value = dense<0x000000000000803f0000004000004040> : tensor<2x2xf32>} "
	  ": tensor<2x2xf32>\n%8 = broadcast_in_dim(%6) {broadcast_dimensions = [0, 1]} : "
	  "tensor<2x2x64x64xf32>\n%20 = multiply(%5, %8) : tensor<2x2x64x64xf32>\n"
	  "%7 = reshape(%20) : " S MIXED("%7") "return(%9)\n", LIMIT, 3 },
	/* which is to be copied, and is worth it for two arrays of the size, not for one */
	{ "what is added from outside", QKV ", %11: tensor<4x64x64xf32>", SCORES
	  "%7 = add(%4, %11) : " S MIXED("%7") "return(%9)\n", LIMIT, 0 },
	{ "what is taken away from outside at last", QKV ", %11: tensor<4x64x64xf32>", SCORES
	  LESS_MAX "%8 = subtract(%7, %11) : " S MIXED("%8") "return(%9)\n", LIMIT, 2 },
	/* one argument, cut for one reader and whole for the other */
	{ "all pairs of points", "%1: tensor<64x2xf32>", "%4 = broadcast_in_dim(%1) "
	  "{broadcast_dimensions = [0, 2]} : " PAIRS "%5 = broadcast_in_dim(%1) "
	  "{broadcast_dimensions = [1, 2]} : " PAIRS "%6 = subtract(%4, %5) : " PAIRS
	  "%8 = multiply(%6, %6) : " PAIRS
	  REDUCED("%7", "add", "%8", "0x00000000", "2", "64x64xf32")
	  "%20 = broadcast_in_dim(%7) {broadcast_dimensions = [0, 1]} : " PAIRS
	  "%21 = multiply(%20, %6) : " PAIRS
	  REDUCED("%9", "add", "%21", "0x00000000", "1", "64x2xf32") "return(%9)\n", LIMIT / 4, 1 },
	{ "weights that are large beside", "%1: tensor<64x16xf32>, %2: tensor<16x64xf32>, "
	  "%3: tensor<64x16xf32>", "%4 = dot_general(%1, %2) {lhs_batching_dimensions = [], "
	  "lhs_contracting_dimensions = [1], rhs_batching_dimensions = [], "
	  "rhs_contracting_dimensions = [0]} : tensor<64x64xf32>\n"
	  "%5 = abs(%4) : tensor<64x64xf32>\n"
	  "%6 = dot_general(%5, %3) {lhs_batching_dimensions = [], lhs_contracting_dimensions = "
	  "[1], rhs_batching_dimensions = [], rhs_contracting_dimensions = [0]} : "
	  "tensor<64x16xf32>\nreturn(%6)\n", LIMIT / 4, 0 },
};

/* The program's text after a pass. */
static char *print_after(const char *text, const char *pass, const struct tc_options *o)
{
	struct tc_source source = { text, strlen(text), "mlir" };
	struct err err;
	char *out;

	if (tc_print(&source, o, pass, &out, &err))
		fail_msg("%s\n%s", err.msg, text);
	return out;
}

/* Two texts of one program, by the evaluator. */
static void evaluates_alike(const char *text, const char *other)
{
	struct tc_source a = { text, strlen(text), "mlir" }, b = { other, strlen(other), "mlir" };
	const struct tc_options o = { .level = 1 };
	struct tc_array *args, *want, *got;
	struct image *image;
	struct tc_result r;
	size_t n, m;
	struct err err;

	if (tc_compile(&a, &o, &r, &err) || image_parse(r.image, r.image_bytes, &image, &err))
		fail_msg("%s", err.msg);
	args = against_eval_args(image);
	if (tc_eval(&a, args, image->info.n_args, &want, &n, &err) ||
	    tc_eval(&b, args, image->info.n_args, &got, &m, &err))
		fail_msg("%s\n%s", err.msg, other);
	assert_int_equal(n, m);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(want[i].bytes, got[i].bytes);
		if (memcmp(want[i].data, got[i].data, want[i].bytes))
			fail_msg("result %zu differs:\n%s", i, other);
	}
	tc_array_free(want, n);
	tc_array_free(got, m);
	tc_array_free(args, image->info.n_args);
	image_free(image);
	tc_result_free(&r);
}

static unsigned count_loops(const char *text)
{
	unsigned n = 0;

	while ((text = strstr(text, " = while("))) {
		text++;
		n++;
	}
	return n;
}

static void arrays_in_passing_are_made_in_strips(void **state)
{
	unsigned n_wrong = 0;

	(void)state;
	for (unsigned i = 0; i < sizeof(stripped) / sizeof(*stripped); i++) {
		const struct tc_options o = { .level = 1, .verify = true,
					      .strip_bytes = stripped[i].strip_bytes };
		const struct tc_options plain = { .level = 0, .verify = true };
		char text[4000], *cut, *flat;
		unsigned n;

		snprintf(text, sizeof(text), PROGRAM("%s", "%s"), stripped[i].args,
			 stripped[i].body);
		runs_as_evaluated(text);
		cut = print_after(text, "strip", &o);
		/* without what the evaluator does not know: fusions, and memory without a fill */
		flat = print_after(cut, "empty", &plain);
		evaluates_alike(text, flat);
		runs_as_evaluated(flat);
		n = count_loops(cut);
		if (n != stripped[i].loops) {
			print_error("%s: %u loops\n", stripped[i].name, n);
			n_wrong++;
		}
		if (n && compiled_temp_bytes(text, o.strip_bytes) >= compiled_temp_bytes(text, 0)) {
			print_error("%s: no less memory\n", stripped[i].name);
			n_wrong++;
		}
		free(cut);
		free(flat);
	}
	assert_int_equal(n_wrong, 0);
}

#define PRODUCT(out, a, b, t) \
	out " = dot_general(" a ", " b ") {lhs_batching_dimensions = [], " \
	"lhs_contracting_dimensions = [1], rhs_batching_dimensions = [], " \
	"rhs_contracting_dimensions = [0]} : tensor<" t "xi8>\n"

/* Of a prime length, of which strips are as short as none may be: not all others are tried. */
static void a_long_dim_that_cannot_be_cut_takes_no_time(void **state)
{
	static const char text[] = PROGRAM("%1: tensor<2147483647x1xi8>, %2: tensor<1x2xi8>, "
		"%3: tensor<2x1xi8>", PRODUCT("%4", "%1", "%2", "2147483647x2")
		"%5 = abs(%4) : tensor<2147483647x2xi8>\n"
		PRODUCT("%6", "%5", "%3", "2147483647x1") "return(%6)\n");
	const struct tc_options o = { .level = 1 };
	struct timespec a, b;

	(void)state;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
	free(print_after(text, "strip", &o));
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
	assert_true(b.tv_sec - a.tv_sec < 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(temporaries_lie_in_results_until_they_are_born),
		cmocka_unit_test(results_in_host_memory_are_not_lent),
		cmocka_unit_test(what_is_written_over_lies_in_the_result),
		cmocka_unit_test(arrays_in_passing_are_made_in_strips),
		cmocka_unit_test(a_long_dim_that_cannot_be_cut_takes_no_time),
	};

	return cmocka_run_group_tests(tests, against_eval_start, against_eval_stop);
}
