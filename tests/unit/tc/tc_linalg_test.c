/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that stand for factorisations: what compiles, and what is said where one cannot.
 * Results are held against LAPACK's by tests/jax/test_linalg.py.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "hal/hw/image.h"
#include "runtime/compiler/tc.h"

/* Compiles a function of one argument whose body is `op`, of its results' types. */
static int compile(const char *in, const char *op, const char *out, struct err *err)
{
	const struct tc_options options = { .level = 1, .verify = true };
	struct tc_result r;
	struct tc_source s = { .format = "mlir" };
	char text[1024];

	snprintf(text, sizeof(text), "module() {sym_name = \"m\"} () {\n"
		 "  func() {sym_name = \"main\"} (%%1: %s) {\n"
		 "    %%2%s = %s : %s # jit(f)/call at f.py:3\n    return(%%2)\n  }\n}\n",
		 in, strstr(out, ">,") ? ", %3" : "", op, out);
	s.code = text;
	s.bytes = strlen(text);
	if (tc_compile(&s, &options, &r, err))
		return -1;
	tc_result_free(&r);
	return 0;
}

#define CALL(name) "custom_call(%1) {call_target_name = \"" name "\"}"

static void factorisations_compile(void **state)
{
	static const char *const good[][3] = {
		{ "tensor<3x2xf32>", CALL("Qr"), "tensor<3x2xf32>, tensor<2xf32>" },
		{ "tensor<2x2xf64>", CALL("Eigh"), "tensor<2x2xf64>, tensor<2xf64>" },
		{ "tensor<0x0xf32>", CALL("Eigh"), "tensor<0x0xf32>, tensor<0xf32>" },
		{ "tensor<3x2xcomplex<f32>>", CALL("tessera.svd"), "tensor<2xf32>" },
		{ "tensor<3x0xf32>", CALL("tessera.svd"), "tensor<0xf32>" },
	};
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		if (compile(good[i][0], good[i][1], good[i][2], &err))
			fail_msg("%s of %s: %s", good[i][1], good[i][0], err.msg);
}

static void a_part_of_a_real_number_compiles(void **state)
{
	struct err err;

	(void)state;
	if (compile("tensor<4xf32>", "real(%1)", "tensor<4xf32>", &err) ||
	    compile("tensor<0xf32>", "real(%1)", "tensor<0xf32>", &err) ||
	    compile("tensor<4xf32>", "imag(%1)", "tensor<4xf32>", &err))
		fail_msg("%s", err.msg);
}

/* The code of a program with these lines. */
static struct image *compiled(const char *lines)
{
	struct tc_source s = { .format = "mlir" };
	struct tc_result r;
	struct image *im;
	char text[1024];
	struct err err;

	s.bytes = (size_t)snprintf(text, sizeof(text), "module() () {\n"
				   "func() {sym_name = \"main\"} (%%1: tensor<3x2xf32>) {\n"
				   "%s}\n}\n", lines);
	s.code = text;
	if (tc_compile(&s, NULL, &r, &err) ||
	    image_parse(r.image, r.image_bytes, &im, &err))
		fail_msg("%s", err.msg);
	tc_result_free(&r);
	return im;
}

static void results_may_come_in_a_tuple(void **state)
{
	struct image *apart, *together;

	(void)state;
	apart = compiled("%2, %3 = " CALL("Qr") " : tensor<3x2xf32>, tensor<2xf32>\n"
			 "return(%3, %2)\n");
	together = compiled("%2 = " CALL("Qr") " : tuple<tensor<3x2xf32>, tensor<2xf32>>\n"
			    "%3 = get_tuple_element(%2) {index = 0} : tensor<3x2xf32>\n"
			    "%4 = get_tuple_element(%2) {index = 1} : tensor<2xf32>\n"
			    "return(%4, %3)\n");
	assert_int_equal(apart->text_bytes, together->text_bytes);
	assert_memory_equal(apart->text, together->text, apart->text_bytes);
	image_free(apart);
	image_free(together);
}

static void what_cannot_be_factorised_is_named(void **state)
{
	static const struct {
		const char *in, *op, *out, *says[2];
	} bad[] = {
		{ "tensor<3x2xbf16>", CALL("Qr"), "tensor<3x2xbf16>, tensor<2xbf16>",
		  { "Qr is given a matrix of bf16", "convert it first" } },
		{ "tensor<2x2xi32>", CALL("Eigh"), "tensor<2x2xi32>, tensor<2xi32>",
		  { "Eigh is given a matrix of i32", "f32, f64" } },
		{ "tensor<2x2xf16>", CALL("tessera.svd"), "tensor<2xf16>",
		  { "svd is given a matrix of f16", "f.py:3" } },
		{ "tensor<4xf32>", CALL("Qr"), "tensor<4xf32>, tensor<f32>",
		  { "an array of rank 1", "f.py:3" } },
		{ "tensor<2x3xf32>", CALL("Eigh"), "tensor<2x3xf32>, tensor<2xf32>",
		  { "square matrices, not 2 x 3", "f.py:3" } },
		{ "tensor<2x3xf32>", CALL("tessera.svd"), "tensor<3xf32>",
		  { "svd of 2 x 3 gives 2 real values", "f.py:3" } },
		{ "tensor<2x3xf32>", CALL("Qr"), "tensor<2x3xf32>, tensor<3xf32>",
		  { "Qr gives 2 factors", "f.py:3" } },
	};
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_equal(compile(bad[i].in, bad[i].op, bad[i].out, &err), -1);
		for (unsigned j = 0; j < 2; j++)
			if (!strstr(err.msg, bad[i].says[j]))
				fail_msg("no \"%s\" in: %s", bad[i].says[j], err.msg);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(factorisations_compile),
		cmocka_unit_test(a_part_of_a_real_number_compiles),
		cmocka_unit_test(results_may_come_in_a_tuple),
		cmocka_unit_test(what_cannot_be_factorised_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
