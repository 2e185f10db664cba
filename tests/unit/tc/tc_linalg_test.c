/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that stand for factorisations: what compiles, what is said where one cannot, and what
 * LU is made of against the evaluator's. Results are held against LAPACK's by
 * tests/jax/test_linalg.py.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hal/base/elem.h"
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
		{ "tensor<3x3xf64>", CALL("tessera.tridiagonal"),
		  "tensor<3x3xf64>, tensor<2xf64>" },
		{ "tensor<0x2x2xf32>", CALL("tessera.tridiagonal"),
		  "tensor<0x2x2xf32>, tensor<0x1xf32>" },
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
		  { "Unsupported dtype: Qr is given a matrix of bf16", "convert it first" } },
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
		{ "tensor<2x2xf16>", CALL("tessera.tridiagonal"), "tensor<2x2xf16>, tensor<1xf16>",
		  { "tridiagonal is given a matrix of f16", "f.py:3" } },
		{ "tensor<2x3xf32>", CALL("tessera.tridiagonal"), "tensor<2x3xf32>, tensor<1xf32>",
		  { "2 rows or more, not 2 x 3", "f.py:3" } },
		{ "tensor<1x1xf32>", CALL("tessera.tridiagonal"), "tensor<1x1xf32>, tensor<0xf32>",
		  { "2 rows or more, not 1 x 1", "f.py:3" } },
		{ "tensor<3x3xf32>", CALL("tessera.tridiagonal"), "tensor<3x3xf32>, tensor<3xf32>",
		  { "the 2 factors of its reflections", "f.py:3" } },
		{ "tensor<2x3xf16>", CALL("LuDecomposition"), "tensor<2x3xf16>, tensor<2xi32>",
		  { "LuDecomposition is given a matrix of f16", "convert it first" } },
		{ "tensor<2x3xf32>", CALL("LuDecomposition"), "tensor<2x3xf32>, tensor<2xi32>",
		  { "LuDecomposition of 2 x 3 gives", "2 pivots and the order of 2 rows" } },
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

/* ---- LU against the evaluator ---- */

enum kind { RANDOM, ZERO, DEFICIENT, TIES, LATE_TIES, A_NAN, AN_INFINITY, KINDS };

static uint32_t seed = 1;

static double pick(void)
{
	seed = seed * 1664525u + 1013904223u;
	return (double)(int32_t)seed * 0x1p-31;
}

/* Entry (i, j) of the matrix number `b` of a batch: others than the last are random. */
static double entry(enum kind kind, bool is_last, int64_t i, int64_t j)
{
	double x = pick();

	if (!is_last || kind == RANDOM)
		return x;
	if (kind == ZERO)
		return 0;
	if (kind == DEFICIENT)
		return (double)((i % 3 + 1) * (j % 2 + 1));
	if (kind == TIES)
		return (i + j) % 2 ? 1 : -1;
	if (kind == LATE_TIES)	/* once rows 0 and 2 are exchanged */
		return j ? i * j % 3 ? 1 : -1 : 2 * (i == 2);
	if (i == 1 && j == 0)
		return kind == A_NAN ? NAN : INFINITY;
	return x;
}

struct lu_case {
	enum elem elem;
	int64_t batch, m, n;
	enum kind kind;
};

static struct tc_array make_matrices(const struct lu_case *t)
{
	unsigned parts = elem_class(t->elem) == ELEM_CLASS_COMPLEX ? 2 : 1;
	size_t n = (size_t)(t->batch * t->m * t->n) * parts;
	struct tc_array a = { t->elem, 3, { t->batch, t->m, t->n }, NULL,
			      n / parts * elem_bytes(t->elem) };

	a.data = malloc(a.bytes + 1);
	assert_non_null(a.data);
	for (size_t i = 0; i < n; i++) {
		int64_t at = (int64_t)(i / parts);
		double x = entry(t->kind, at / (t->m * t->n) == t->batch - 1,
				 at / t->n % t->m, at % t->n);

		if (elem_bytes(t->elem) / parts == 4)
			((float *)a.data)[i] = (float)x;
		else
			((double *)a.data)[i] = x;
	}
	return a;
}

static struct tc_array *eval_lu(const char *text, const struct tc_array *a)
{
	struct tc_array *out;
	struct err err;
	size_t n;

	if (tc_eval(&(struct tc_source){ text, strlen(text), "mlir" }, a, 1, &out, &n, &err))
		fail_msg("%s\n%.2000s", err.msg, text);
	assert_int_equal(n, 3);
	return out;
}

static double part_at(const struct tc_array *a, size_t i)
{
	bool is_narrow = a->elem == ELEM_F32 || a->elem == ELEM_C64;

	return is_narrow ? (double)((float *)a->data)[i] : ((double *)a->data)[i];
}

static void same_numbers(const struct lu_case *t, const struct tc_array *got,
			 const struct tc_array *want)
{
	bool is_narrow = t->elem == ELEM_F32 || t->elem == ELEM_C64;
	double most = (is_narrow ? 1e-4 : 1e-12) * (double)(t->m + t->n);

	assert_int_equal(got->bytes, want->bytes);
	for (size_t i = 0; i < got->bytes / (is_narrow ? 4 : 8); i++) {
		double x = part_at(got, i), y = part_at(want, i);

		if (isnan(x) != isnan(y) || isinf(x) != isinf(y) ||
		    (isfinite(x) && fabs(x - y) > most * fmax(1, fabs(y))))
			fail_msg("%s, %ld x %ld x %ld, kind %d: part %zu is %g, not %g",
				 elem_text(t->elem), t->batch, t->m, t->n, t->kind, i, x, y);
	}
}

/* The same pivots, so the same rows; and L and U but for rounding. */
static void check_lu(const struct lu_case *t)
{
	const struct tc_options options = { .level = 1, .verify = true };
	struct tc_array a = make_matrices(t), *want, *got;
	int64_t k = t->m < t->n ? t->m : t->n;
	char text[512], type[64], *final;
	struct err err;

	snprintf(type, sizeof(type), "tensor<%ldx%ldx%ldx%s>", t->batch, t->m, t->n,
		 elem_text(t->elem));
	snprintf(text, sizeof(text), "module() {sym_name = \"m\"} () {\n"
		 "  func() {sym_name = \"main\"} (%%1: %s) {\n    %%2, %%3, %%4 = "
		 "%s : %s, tensor<%ldx%ldxi32>, tensor<%ldx%ldxi32>\n"
		 "    return(%%2, %%3, %%4)\n  }\n}\n",
		 type, CALL("LuDecomposition"), type, t->batch, k, t->batch, t->m);
	if (tc_print(&(struct tc_source){ text, strlen(text), "mlir" }, &options, "decompose",
		     &final, &err))
		fail_msg("%s\n%s", err.msg, text);
	assert_null(strstr(final, "custom_call"));
	want = eval_lu(text, &a);
	got = eval_lu(final, &a);
	same_numbers(t, &got[0], &want[0]);
	for (unsigned i = 1; i < 3; i++) {
		assert_int_equal(got[i].bytes, want[i].bytes);
		if (memcmp(got[i].data, want[i].data, want[i].bytes))
			fail_msg("%s, %ld x %ld x %ld, kind %d: %s differ", elem_text(t->elem),
				 t->batch, t->m, t->n, t->kind, i == 1 ? "pivots" : "rows");
	}
	tc_array_free(want, 3);
	tc_array_free(got, 3);
	free(final);
	free(a.data);
}

/* FEW of lower/lu.c and of linalg.c is 16: one block of columns, two, three, and none at all; more
 * than 256 rows have loops. */
static void lu_has_the_pivots_and_the_factors_of_plain_loops(void **state)
{
	static const int64_t shapes[][2] = {
		{ 1, 1 }, { 2, 2 }, { 15, 15 }, { 16, 16 }, { 17, 17 }, { 32, 32 }, { 33, 33 },
		{ 49, 49 }, { 1, 9 }, { 9, 1 }, { 16, 40 }, { 40, 16 }, { 17, 16 }, { 16, 17 },
		{ 70, 33 }, { 33, 70 }, { 0, 0 }, { 0, 3 }, { 3, 0 }, { 270, 20 },
	};
	static const enum elem elems[] = { ELEM_F32, ELEM_F64, ELEM_C64, ELEM_C128 };

	(void)state;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++)
		for (unsigned e = 0; e < 4; e++)
			for (int64_t batch = 1; batch <= 3; batch += 2)
				check_lu(&(struct lu_case){ elems[e], batch, shapes[i][0],
							    shapes[i][1], RANDOM });
	check_lu(&(struct lu_case){ ELEM_F32, 0, 4, 4, RANDOM });
}

static void lu_of_a_singular_or_spoiled_matrix_is_that_of_plain_loops(void **state)
{
	/* Of numbers, of columns, with a loop; batches smaller and larger than a matrix. */
	static const int64_t shapes[][2] = { { 4, 4 }, { 6, 3 }, { 3, 6 }, { 20, 12 }, { 12, 20 },
					     { 260, 5 } };
	static const int64_t batches[] = { 1, 2, 30 };

	(void)state;
	for (int kind = ZERO; kind < KINDS; kind++)
		for (unsigned i = 0; i < sizeof(shapes) / sizeof(*shapes); i++)
			for (unsigned k = 0; k < 3; k++)
				check_lu(&(struct lu_case){ ELEM_F64, batches[k], shapes[i][0],
							    shapes[i][1], (enum kind)kind });
	check_lu(&(struct lu_case){ ELEM_C64, 2, 33, 33, ZERO });
	check_lu(&(struct lu_case){ ELEM_F32, 2, 20, 20, A_NAN });
}

/* How often `what` stands in the program of one call on f32[rows, columns], once it is taken
 * apart. */
static unsigned count_of(const char *what, const char *call, const char *in, const char *out)
{
	const struct tc_options options = { .level = 1, .verify = true };
	char text[512], *final;
	unsigned n = 0;
	struct err err;

	snprintf(text, sizeof(text), "module() {sym_name = \"m\"} () {\n"
		 "  func() {sym_name = \"main\"} (%%1: %s) {\n    %%2, %%3%s = %s : %s\n"
		 "    return(%%2)\n  }\n}\n", in, strstr(call, "Lu") ? ", %4" : "", call, out);
	if (tc_print(&(struct tc_source){ text, strlen(text), "mlir" }, &options, "decompose",
		     &final, &err))
		fail_msg("%s\n%s", err.msg, text);
	for (const char *at = final; (at = strstr(at, what)); at++)
		n++;
	free(final);
	return n;
}

/* A loop takes more instructions a column; it keeps the programs of many columns small. */
static void few_columns_have_no_loop(void **state)
{
	static const char while_op[] = " = while(";

	(void)state;
	assert_int_equal(count_of(while_op, CALL("Qr"), "tensor<128x128xf32>",
				  "tensor<128x128xf32>, tensor<128xf32>"), 0);
	assert_int_equal(count_of(while_op, CALL("Qr"), "tensor<160x144xf32>",
				  "tensor<160x144xf32>, tensor<144xf32>"), 9);
	assert_int_equal(count_of(while_op, CALL("LuDecomposition"), "tensor<100x100xf32>",
				  "tensor<100x100xf32>, tensor<100xi32>, tensor<100xi32>"), 0);
	assert_int_equal(count_of(while_op, CALL("LuDecomposition"), "tensor<272x16xf32>",
				  "tensor<272x16xf32>, tensor<16xi32>, tensor<272xi32>"), 1);
	assert_int_equal(count_of(while_op, CALL("tessera.tridiagonal"), "tensor<32x32xf64>",
				  "tensor<32x32xf64>, tensor<31xf64>"), 0);
	assert_int_not_equal(count_of(while_op, CALL("tessera.tridiagonal"), "tensor<33x33xf64>",
				      "tensor<33x33xf64>, tensor<32xf64>"), 0);
}

/* Numbers one by one are many instructions, but of many matrices, of which each is long. */
static void a_small_matrix_alone_is_done_by_columns(void **state)
{
	static const char product[] = " = multiply(";

	(void)state;
	assert_in_range(count_of(product, CALL("LuDecomposition"), "tensor<8x8x8xf32>",
				 "tensor<8x8x8xf32>, tensor<8x8xi32>, tensor<8x8xi32>"), 7, 20);
	assert_in_range(count_of(product, CALL("LuDecomposition"), "tensor<9x8x8xf32>",
				 "tensor<9x8x8xf32>, tensor<9x8xi32>, tensor<9x8xi32>"), 100, 200);
	assert_in_range(count_of(product, CALL("Qr"), "tensor<8x8x8xf32>",
				 "tensor<8x8x8xf32>, tensor<8x8xf32>"), 8, 80);
	assert_in_range(count_of(product, CALL("Qr"), "tensor<9x8x8xf32>",
				 "tensor<9x8x8xf32>, tensor<9x8xf32>"), 300, 800);
}

/* Products of few long columns would wait for memory; a small matrix is not cut in blocks. */
static void few_products_are_made_of_few_columns(void **state)
{
	static const char product[] = " = dot_general(";

	(void)state;
	assert_int_equal(count_of(product, CALL("Qr"), "tensor<4096x8xf32>",
				  "tensor<4096x8xf32>, tensor<8xf32>"), 0);
	assert_int_equal(count_of(product, CALL("Qr"), "tensor<32x32xf32>",
				  "tensor<32x32xf32>, tensor<32xf32>"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(factorisations_compile),
		cmocka_unit_test(a_part_of_a_real_number_compiles),
		cmocka_unit_test(results_may_come_in_a_tuple),
		cmocka_unit_test(what_cannot_be_factorised_is_named),
		cmocka_unit_test(lu_has_the_pivots_and_the_factors_of_plain_loops),
		cmocka_unit_test(lu_of_a_singular_or_spoiled_matrix_is_that_of_plain_loops),
		cmocka_unit_test(few_columns_have_no_loop),
		cmocka_unit_test(a_small_matrix_alone_is_done_by_columns),
		cmocka_unit_test(few_products_are_made_of_few_columns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
