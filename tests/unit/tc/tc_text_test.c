/* SPDX-License-Identifier: Apache-2.0 */
/* The IR's text: what is printed reads back as it was, and what is broken is refused
 * with its line and column. */
#include <dirent.h>
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

#define FOLDER "tests/data/programs"
#define MAX_PROGRAMS 1000

struct program {
	char name[128];
	void *bytes;
	size_t n;
};

static struct program programs[MAX_PROGRAMS];
static unsigned n_programs;

static void *read_file(const char *path, size_t *n)
{
	FILE *f = fopen(path, "rb");
	char *p = malloc(4 << 20);

	assert_non_null(f);
	assert_non_null(p);
	*n = fread(p, 1, 4 << 20, f);
	fclose(f);
	return p;
}

static int load(void **state)
{
	const char *folder = getenv("TESSERA_TEXT_PROGRAMS");
	struct dirent *d;
	DIR *dir;

	(void)state;
	if (!folder)
		folder = FOLDER;
	dir = opendir(folder);
	if (!dir)
		return -1;
	while ((d = readdir(dir))) {
		struct program *p = &programs[n_programs];
		char path[512];

		if (!strstr(d->d_name, ".mlirbc") || n_programs == MAX_PROGRAMS)
			continue;
		snprintf(p->name, sizeof(p->name), "%.127s", d->d_name);
		snprintf(path, sizeof(path), "%s/%s", folder, d->d_name);
		p->bytes = read_file(path, &p->n);
		n_programs++;
	}
	closedir(dir);
	return 0;
}

static int unload(void **state)
{
	(void)state;
	for (unsigned i = 0; i < n_programs; i++)
		free(programs[i].bytes);
	return 0;
}

static int print(const void *code, size_t n, const char *stage, char **text, struct err *err)
{
	struct tc_source s = { code, n, "mlir" };

	return tc_print(&s, NULL, stage, text, err);
}

static int compile(const void *code, size_t n, struct tc_result *out, struct err *err)
{
	struct tc_source s = { code, n, "mlir" };
	struct tc_options o = { .level = 1, .verify = true };

	return tc_compile(&s, &o, out, err);
}

static void reads_back(const char *stage)
{
	unsigned n = 0;

	for (unsigned i = 0; i < n_programs; i++) {
		struct program *p = &programs[i];
		char *first = NULL, *second = NULL;
		struct err err = { 0 };

		if (print(p->bytes, p->n, stage, &first, &err)) {
			print_message("%s: %s\n", p->name, err.msg);
			continue;
		}
		if (print(first, strlen(first), "read", &second, &err))
			fail_msg("%s: %s", p->name, err.msg);
		assert_string_equal(first, second);
		free(first);
		free(second);
		n++;
	}
	assert_true(n >= 10);
}

static void text_of_a_read_program_reads_back_as_it_was(void **state)
{
	(void)state;
	reads_back("read");
}

static void text_after_all_passes_reads_back_as_it_was(void **state)
{
	(void)state;
	reads_back("final");
}

static void text_compiles_to_the_image_of_its_bytecode(void **state)
{
	unsigned n = 0;

	(void)state;
	for (unsigned i = 0; i < n_programs; i++) {
		struct program *p = &programs[i];
		struct tc_result a = { 0 }, b = { 0 };
		struct err err = { 0 };
		char *text = NULL;

		if (compile(p->bytes, p->n, &a, &err)) {
			print_message("%s: %s\n", p->name, err.msg);
			continue;
		}
		assert_int_equal(print(p->bytes, p->n, "read", &text, &err), 0);
		if (compile(text, strlen(text), &b, &err))
			fail_msg("%s: %s", p->name, err.msg);
		assert_int_equal(a.image_bytes, b.image_bytes);
		assert_memory_equal(a.image, b.image, a.image_bytes);
		free(text);
		tc_result_free(&a);
		tc_result_free(&b);
		n++;
	}
	assert_true(n >= 10);
}

/* Its fusions are made anew, maybe in another order. */
static void text_after_all_passes_compiles_to_the_same_signature(void **state)
{
	unsigned n = 0;

	(void)state;
	for (unsigned i = 0; i < n_programs; i++) {
		struct program *p = &programs[i];
		struct tc_result a = { 0 }, b = { 0 };
		struct image *x, *y;
		struct err err = { 0 };
		char *text = NULL;

		if (compile(p->bytes, p->n, &a, &err))
			continue;
		assert_int_equal(print(p->bytes, p->n, "final", &text, &err), 0);
		if (compile(text, strlen(text), &b, &err))
			fail_msg("%s: %s", p->name, err.msg);
		assert_int_equal(image_parse(a.image, a.image_bytes, &x, &err), 0);
		assert_int_equal(image_parse(b.image, b.image_bytes, &y, &err), 0);
		assert_int_equal(x->info.n_args, y->info.n_args);
		assert_int_equal(x->info.n_results, y->info.n_results);
		assert_memory_equal(x->shapes, y->shapes, sizeof(*x->shapes) *
				    (x->info.n_args + x->info.n_results));
		image_free(x);
		image_free(y);
		free(text);
		tc_result_free(&a);
		tc_result_free(&b);
		n++;
	}
	assert_true(n >= 10);
}

/* Every form of the grammar that programs of the folder do not have. */
static const char forms[] =
	"module() {sym_name = \"a\\0a\\22\\5cb\"} () {\n"
	"  func() {sym_name = \"main\"} (%7: tensor<2xf32> {alias = 0, donor}, "
	"%3: tensor<4xcomplex<f64>> {memory_kind = 1, sharding = \"{x}\", "
	"layout = \"auto\"}) -> ({alias = 0}, {}, {memory_kind = 2}) {\n"
	"    %1 = create_token() : token\n"
	"    %90 = constant() {value = dense<splat 0x0000803f> : tensor<2xf32>} "
	": tensor<2xf32>\n"
	"    %91 = constant() {value = dense<0x> : tensor<0x5xui4>} : tensor<0x5xui4>\n"
	"    %2, %4 = tc.opaque(%7, %1) {name = \"f\", attributes = {a = -9223372036854775808, "
	"\"b c\" = <3>, comparison_direction = <LT>, transpose_a = <0>, "
	"fft_type = <6>, \"\" = {}, d.e = [-1, 0], f = true, g = false, h = []}} "
	": tuple<tensor<2xf32>, tuple<>, token>, tensor<f8E4M3B11FNUZ> none () {\n"
	"    } (%5: tensor<i1>) {\n"
	"      return(%5) # x\n"
	"    } # at \\07\\22f.py:1\\22 // no comment\n"
	"    return(%7, %3, %90)\n"
	"  } # main\n"
	"}\n";

static void every_form_of_the_grammar_reads_back(void **state)
{
	struct err err = { 0 };
	char *text = NULL;

	(void)state;
	if (print(forms, strlen(forms), "read", &text, &err))
		fail_msg("%s", err.msg);
	assert_string_equal(text, forms);
	free(text);
}

static void white_space_and_comments_mean_nothing(void **state)
{
	static const char loose[] =
		"// a program\n\tmodule ( ) ( ) {\r\n func(){sym_name=\"main\"}(%0:tensor<\n2x"
		"f32>)->({donor})\n{%1\n=add(%0,%0):tensor<2xf32>#where\n//end\nreturn(%1)}}";
	static const char tidy[] =
		"module() () {\n"
		"  func() {sym_name = \"main\"} (%0: tensor<2xf32>) -> ({donor}) {\n"
		"    %1 = add(%0, %0) : tensor<2xf32> # where\n"
		"    return(%1)\n"
		"  }\n"
		"}\n";
	struct err err = { 0 };
	char *text = NULL;

	(void)state;
	if (print(loose, strlen(loose), "read", &text, &err))
		fail_msg("%s", err.msg);
	assert_string_equal(text, tidy);
	free(text);
}

/* What stands in the second line of a function, and what is said of it. */
#define WRAP(line) "module() () {\n  func() {sym_name = \"main\"} (%0: tensor<2xf32>) {\n" \
	line "\n    return(%0)\n  }\n}\n"
static const struct { const char *text, *says; } broken[] = {
	{ "modul()", "line 1, column 1: found \"modul\", expected \"module\"" },
	{ "module @f {", "line 1, column 8: found \"@f\", expected \"(\" (only the compiler's "
	  "own text form is read; give other programs as MLIR bytecode)" },
	{ "module() () {\n  add()\n}", "line 2, column 3: found \"add\", expected \"func\" or "
	  "\"}\"" },
	{ "module() () {}\nmodule", "line 2, column 1: found \"module\", expected the end of the "
	  "text after the module" },
	{ "module() none", "line 1, column 14: found the end of the text, expected a module "
	  "with one region" },
	{ WRAP("%1 = plus(%0, %0)"), "line 3, column 6: found \"plus\", expected the name of an "
	  "operation" },
	{ WRAP("func()"), "line 3, column 1: found \"func\", expected the name of an "
	  "operation" },
	{ WRAP("%1 = add(%0, %9) : tensor<2xf32>"), "line 3, column 14: found \"%9\", expected a "
	  "value that is defined above" },
	{ WRAP("%0 = abs(%0) : tensor<2xf32>"), "line 3, column 1: found \"%0\", expected a "
	  "number that no other value has" },
	{ WRAP("%67108864 = abs(%0) : tensor<2xf32>"), "line 3, column 2: found \"67108864\", "
	  "expected a number from 0 to 67108863" },
	{ WRAP("%1 = abs(%0) : tensor<2xf33>"), "line 3, column 25: found \"f33\", expected a dim "
	  "or an element type" },
	{ WRAP("%1 = abs(%0) : tensor<2yf32>"), "line 3, column 24: found \"yf32\", expected "
	  "\"x\" after a dim" },
	{ WRAP("%1 = abs(%0) : tensor<4294967296x4294967296xf32>"), "line 3, column 34: found "
	  "\"4294967296xf32\", expected dims whose product has 63 bits" },
	{ WRAP("%1 = abs(%0) : tensor<9223372036854775808xf32>"), "line 3, column 23: found "
	  "\"9223372036854775808xf32\", expected a number of 64 bits" },
	{ WRAP("%1 = abs(%0) : vector<2>"), "line 3, column 16: found \"vector\", expected a type: "
	  "tensor<...>, tuple<...> or token" },
	{ WRAP("%1 = abs(%0)"), "line 4, column 5: found \"return\", expected \":\"" },
	{ WRAP("%1 = abs(%0, ) : tensor<2xf32>"), "line 3, column 14: found \")\", expected a "
	  "value: % and a number" },
	{ WRAP("%1 = abs(%0) {k 3} : tensor<2xf32>"), "line 3, column 17: found \"3\", expected "
	  "\"=\"" },
	{ WRAP("%1 = abs(%0) {k = maybe} : tensor<2xf32>"), "line 3, column 19: found \"maybe\", "
	  "expected an attribute's value" },
	{ WRAP("%1 = abs(%0) {fft_type = <GT>} : tensor<2xf32>"), "line 3, column 27: found "
	  "\"GT\", expected a name that fft_type has, or a number" },
	{ WRAP("%1 = abs(%0) {k = <GT>} : tensor<2xf32>"), "line 3, column 20: found "
	  "\"GT\", expected a name that k has, or a number" },
	{ WRAP("%1 = abs(%0) {k = 1, k = 2} : tensor<2xf32>"), "line 3, column 14: found \"{\", "
	  "expected each attribute once; \"k\" is there twice" },
	{ WRAP("%1 = abs(%0) {k = \"a\\zz\"} : tensor<2xf32>"), "line 3, column 21: found "
	  "\"\\zz\", expected \"\\\" and two hexadecimal digits" },
	{ WRAP("%1 = constant() {value = dense<0x00> : tensor<2xi8>} : tensor<2xi8>"), "line 3, "
	  "column 32: found \"0x00\", expected 2 bytes for the type, not 1" },
	{ WRAP("%1 = constant() {value = dense<0x000> : tensor<i8>} : tensor<i8>"), "line 3, "
	  "column 37: found \">\", expected another hexadecimal digit" },
	{ WRAP("%1 = constant() {value = dense<0x0102> : tensor<2xi1>} : tensor<2xi1>"), "line 3, "
	  "column 36: found \"02\", expected 00 or 01: a byte of i1" },
	{ WRAP("%1 = constant() {value = dense<0x> : token} : token"), "line 3, column 32: found "
	  "\"0x\", expected no bytes: the type has no elements" },
	{ WRAP("\x01"), "line 3, column 1: found byte 0x01, expected the name of an operation" },
	{ "module() () {\n  func() () -> ({}) {\n  }\n}", "line 2, column 13: found \"-\", "
	  "expected as many results as the function returns, 0, not 1" },
	{ "module() () {\n  func() (%0: token {lent}) {\n  }\n}", "line 2, column 22: found "
	  "\"lent\", expected alias, donor, memory_kind, sharding or layout" },
};

static void what_is_broken_is_named_with_line_and_column(void **state)
{
	(void)state;
	for (unsigned i = 0; i < sizeof(broken) / sizeof(*broken); i++) {
		struct err err = { 0 };
		char *text, want[300];

		snprintf(want, sizeof(want), "program text, %s", broken[i].says);
		assert_int_equal(print(broken[i].text, strlen(broken[i].text), "read", &text,
				       &err), ERR_INVALID_ARGUMENT);
		assert_string_equal(err.msg, want);
	}
}

static void well_formed_text_of_a_wrong_program_fails_verification(void **state)
{
	static const struct { const char *text, *says; } wrong[] = {
		{ "module() () {}", "module: the module has no function" },
		{ WRAP("%1 = add(%0) : tensor<2xf32> # f.py:3"), "add: it has 1 operands, "
		  "1 results and 0 regions, at f.py:3" },
		{ WRAP("%1 = abs(%0) : tensor<3xf32>"), "abs: " },
		{ WRAP("%1 = tc.fusion(%0) {kind = <LOOP>} : tensor<2xf32> () {\nreturn(%0)\n}"),
		  "tc.fusion: its region has 0 arguments for 1 operands" },
		{ WRAP("%1 = tc.fusion(%0) {kind = <LOOP>} : tensor<2xf32> (%2: tensor<3xf32>) {\n"
		       "return(%0)\n}"),
		  "tc.fusion: argument 0 of its region has another type" },
		{ WRAP("%1 = tc.fusion() {kind = <LOOP>} : tensor<2xi32> () {\nreturn(%0)\n}"),
		  "tc.fusion: a region yields another type as value 0" },
		{ WRAP("%1 = tc.fusion() {kind = <LOOP>} : tensor<2xf32> () {\nreturn(%1)\n}"),
		  "return: operand 0 is not defined there" },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct err err = { 0 };
		char *text;

		assert_int_equal(print(wrong[i].text, strlen(wrong[i].text), "read", &text,
				       &err), ERR_INVALID_ARGUMENT);
		assert_memory_equal(err.msg, wrong[i].says, strlen(wrong[i].says));
	}
}

/* Whatever a fusion of a text holds, it is taken apart before it is believed. */
static void a_fusion_that_no_instruction_can_do_compiles(void **state)
{
	static const char odd[] = WRAP(
		"%1 = tc.fusion(%0) {kind = <MATMUL>} : tensor<2xf32> (%2: tensor<2xf32>) {\n"
		"  %3, %8 = tc.fusion(%2, %2) {kind = <77>} : tensor<2xf32>, tensor<1xf32> "
		"(%4: tensor<2xf32>, %5: tensor<2xf32>) {\n"
		"    %6 = slice(%4) {start_indices = [1], limit_indices = [2], strides = [1]} "
		": tensor<1xf32>\n"
		"    %7 = concatenate(%6, %6) {dimension = 0} : tensor<2xf32>\n"
		"    return(%7, %6)\n"
		"  }\n"
		"  %9 = add(%3, %0) : tensor<2xf32>\n"
		"  return(%9)\n"
		"}\n"
		"return(%1) }}  //");
	struct tc_result r = { 0 };
	struct err err = { 0 };

	(void)state;
	if (compile(odd, strstr(odd, "//") - odd, &r, &err))
		fail_msg("%s", err.msg);
	assert_true(r.image_bytes > 0);
	tc_result_free(&r);
}

static void nesting_is_bounded(void **state)
{
	static const struct { const char *open; unsigned n; } deep[] = {
		{ "{a = ", 100000 }, { "tuple<", 100000 }, { "tc.opaque() (){", 100000 },
	};
	char *text = malloc(4 << 20), *out;

	(void)state;
	assert_non_null(text);
	for (unsigned i = 0; i < sizeof(deep) / sizeof(*deep); i++) {
		struct err err = { 0 };
		size_t at = (size_t)sprintf(text, "module() () {func() () {%s",
					    i == 0 ? "tc.opaque() " :
					    i == 1 ? "%1 = tc.opaque() : " : "");

		for (unsigned k = 0; k < deep[i].n; k++)
			at += (size_t)sprintf(text + at, "%s", deep[i].open);
		assert_int_equal(print(text, at, "read", &out, &err), ERR_INVALID_ARGUMENT);
		assert_non_null(strstr(err.msg, "in each other"));
	}
	free(text);
}

/* Shared parts make a type of few bytes that would take forever to walk. */
static void a_tuple_of_too_many_values_is_refused(void **state)
{
	char *text = malloc(1 << 20), *out;
	struct err err = { 0 };
	size_t at;

	(void)state;
	assert_non_null(text);
	at = (size_t)sprintf(text, "module() () {func() () {%%1 = tc.opaque() : tuple<");
	for (unsigned k = 0; k < 70000; k++)
		at += (size_t)sprintf(text + at, "token, ");
	assert_int_equal(print(text, at, "read", &out, &err), ERR_INVALID_ARGUMENT);
	at += (size_t)sprintf(text + at, "token> return()}}");
	assert_int_equal(print(text, at, "read", &out, &err), ERR_UNIMPLEMENTED);
	assert_non_null(strstr(err.msg, "a tuple of 70001 values"));
	free(text);
}

static void cut_anywhere_it_is_refused(void **state)
{
	const struct program *p = &programs[0];
	char *text = NULL, *out, *cut;
	size_t n;

	(void)state;
	for (unsigned i = 1; i < n_programs; i++)
		if (programs[i].n < p->n)
			p = &programs[i];
	assert_int_equal(print(p->bytes, p->n, "final", &text, NULL), 0);
	n = (size_t)(strrchr(text, '}') - text);
	for (size_t at = 0; at <= n; at++) {
		struct err err = { 0 };

		cut = malloc(at ? at : 1);
		assert_non_null(cut);
		memcpy(cut, text, at);
		assert_int_equal(print(cut, at, "read", &out, &err), ERR_INVALID_ARGUMENT);
		assert_true(!at || strstr(err.msg, "line ") != NULL);
		free(cut);
	}
	free(text);
}

static unsigned next_random(unsigned *s)
{
	return *s = *s * 1664525u + 1013904223u;
}

/* Bytes of a text changed at random: it compiles or is refused, nothing else. */
static void changed_anywhere_it_compiles_or_is_refused(void **state)
{
	static const char signs[] = "%(){}[]<>=:,\"\\#x019-anz \n";
	unsigned seed = 1, n_refused = 0;

	(void)state;
	for (unsigned i = 0; i < n_programs; i++) {
		char *text = NULL;
		size_t n;

		assert_int_equal(print(programs[i].bytes, programs[i].n,
				       i % 2 ? "final" : "read", &text, NULL), 0);
		n = strlen(text);
		for (unsigned k = 0; k < 60; k++) {
			struct tc_result r = { 0 };
			char *copy = malloc(n);

			assert_non_null(copy);
			memcpy(copy, text, n);
			for (unsigned j = 0; j <= k % 3; j++)
				copy[(next_random(&seed) >> 4) % n] =
					signs[(next_random(&seed) >> 8) % (sizeof(signs) - 1)];
			if (compile(copy, n, &r, NULL))
				n_refused++;
			tc_result_free(&r);
			free(copy);
		}
		free(text);
	}
	assert_true(n_refused > 0);
}

static void what_has_no_instruction_compiles_without_optimisation(void **state)
{
	static const char text[] =
		"module() {sym_name = \"m\"} () {\n"
		"  func() {sym_name = \"main\"} (%1: tensor<4xf32>) {\n"
		"    %2 = map(%1) {dimensions = [0]} : tensor<4xf32> (%3: tensor<f32>) {\n"
		"      %4 = add(%3, %3) : tensor<f32>\n"
		"      return(%4)\n    }\n"
		"    return(%2)\n  }\n}\n";

	(void)state;
	for (unsigned level = 0; level < 2; level++) {
		const struct tc_options options = { .level = level, .verify = true };
		struct tc_source s = { text, strlen(text), "mlir" };
		struct tc_result r;
		struct err err;

		if (tc_compile(&s, &options, &r, &err))
			fail_msg("level %u: %s", level, err.msg);
		tc_result_free(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_of_a_read_program_reads_back_as_it_was),
		cmocka_unit_test(text_after_all_passes_reads_back_as_it_was),
		cmocka_unit_test(text_compiles_to_the_image_of_its_bytecode),
		cmocka_unit_test(text_after_all_passes_compiles_to_the_same_signature),
		cmocka_unit_test(every_form_of_the_grammar_reads_back),
		cmocka_unit_test(white_space_and_comments_mean_nothing),
		cmocka_unit_test(what_is_broken_is_named_with_line_and_column),
		cmocka_unit_test(well_formed_text_of_a_wrong_program_fails_verification),
		cmocka_unit_test(a_fusion_that_no_instruction_can_do_compiles),
		cmocka_unit_test(nesting_is_bounded),
		cmocka_unit_test(a_tuple_of_too_many_values_is_refused),
		cmocka_unit_test(cut_anywhere_it_is_refused),
		cmocka_unit_test(changed_anywhere_it_compiles_or_is_refused),
		cmocka_unit_test(what_has_no_instruction_compiles_without_optimisation),
	};

	return cmocka_run_group_tests(tests, load, unload);
}
