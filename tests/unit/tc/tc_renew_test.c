/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that StableHLO has given up (opt/renew.c), as texts in which nobody has judged them: each is
 * an op that there is, or an error that says what is wrong. jax/ops/test_renewed.py has what they
 * compute. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hal/base/elem.h"
#include "runtime/compiler/tc.h"

#define MAIN(arguments, lines) \
	"module() () {\nfunc() {sym_name = \"main\"} (" arguments ") {\n" lines "}\n}\n"
#define OP(arguments, operands, rest) \
	MAIN(arguments, "%9 = tc.opaque(" operands ") {name = " rest "\nreturn(%9)\n")
#define ONE(type, rest) OP("%0: " type, "%0", rest)
#define TWO(x, y, rest) OP("%0: " x ", %1: " y, "%0, %1", rest)
#define EINSUM(config) "\"einsum_v1\", einsum_config = \"" config "\"} : "
#define UNARY(config) "\"unary_einsum_v1\", einsum_config = \"" config "\"} : "
#define SELECT "\"torch_index_select_v1\", "
#define BROADCAST "\"broadcast_v1\""
#define REDUCE "\"collective_reduce_v1\", "
#define SUM " (%7: tensor<f32>, %8: tensor<f32>) {\n%6 = add(%7, %8) : tensor<f32>\nreturn(%6)\n}"

struct refused { const char *text; int code; const char *says; };

static void refuses(const struct refused *r, const struct tc_options *options)
{
	const struct tc_source source = { r->text, strlen(r->text), "mlir" };
	struct tc_result out;
	struct err err = { 0 };
	int code = tc_compile(&source, options, &out, &err);

	if (code != r->code || !strstr(err.msg, r->says))
		fail_msg("%s\ngives %d, \"%s\", not \"%s\"", r->text, code, err.msg, r->says);
}

static void what_contradicts_itself_says_how(void **state)
{
	static const struct refused cases[] = {
		{ TWO("tensor<2x3xf32>", "tensor<3x4xf32>", "\"einsum_v1\"} : tensor<2x4xf32>"),
		  ERR_INVALID_ARGUMENT, "its einsum_config is \"\"" },
		{ TWO("tensor<2x3xf32>", "tensor<3x4xf32>",
		      "\"einsum_v1\", einsum_config = 4} : tensor<2x4xf32>"),
		  ERR_INVALID_ARGUMENT, "its einsum_config is \"\"" },
		{ ONE("tensor<2x3xf32>", EINSUM("ij,jk->ik") "tensor<2x4xf32>"),
		  ERR_INVALID_ARGUMENT, "it has 1 operands, 1 results" },
		{ MAIN("%0: tensor<2x3xf32>", "%1 = tuple(%0) : tuple<tensor<2x3xf32>>\n"
		       "%9 = tc.opaque(%1, %0) {name = " EINSUM("ij,jk->ik")
		       "tensor<2x4xf32>\nreturn(%9)\n"), ERR_INVALID_ARGUMENT,
		  "operand 0 is no array" },
		{ TWO("tensor<2x3xf32>", "token", EINSUM("ij,jk->ik") "tensor<2x4xf32>"),
		  ERR_INVALID_ARGUMENT, "operand 1 is no array" },
		{ MAIN("%0: tensor<2x3xf32>, %1: tensor<3x4xf32>", "%9 = tc.opaque(%0, %1) {name = "
		       EINSUM("ij,jk->ik") "tuple<tensor<2x4xf32>>\nreturn(%0)\n"),
		  ERR_INVALID_ARGUMENT, "its result is no array" },
		{ TWO("tensor<2x3xf32>", "tensor<3x4xf32>", EINSUM("ij,jk->ki") "tensor<2x4xf32>"),
		  ERR_INVALID_ARGUMENT, "another type" },
		{ TWO("tensor<2x3xf32>", "tensor<3x4xf32>", EINSUM("ij,jk,->ik")
		      "tensor<2x4xf32>"), ERR_INVALID_ARGUMENT, "\",\" where a letter" },
		{ TWO("tensor<2x3xf32>", "tensor<3x4xf32>", EINSUM("ij->jk,ik") "tensor<2x4xf32>"),
		  ERR_INVALID_ARGUMENT, "2 operands" },
		{ TWO("tensor<2x3xf32>", "tensor<3x4xf32>", EINSUM("ij,jk->i..") "tensor<2xf32>"),
		  ERR_INVALID_ARGUMENT, "\"..\" where a letter" },
		{ TWO("tensor<2x3xf32>", "tensor<3x4xf32>", EINSUM("ij,jk->ik...k")
		      "tensor<2x4xf32>"), ERR_INVALID_ARGUMENT, "a letter twice" },
		/* dims of 1 stand for more only where they have no letter */
		{ TWO("tensor<2x3xf32>", "tensor<1x4xf32>", EINSUM("ij,jk->ik") "tensor<2x4xf32>"),
		  ERR_INVALID_ARGUMENT, "dims of 3 and 1 have one letter" },
		{ TWO("tensor<2x3xf32>", "tensor<3x3xf32>", EINSUM("...i,...i->...i")
		      "tensor<3x3xf32>"), ERR_INVALID_ARGUMENT, "dims of 2 and 3" },
		{ ONE("tensor<2x3xf32>", UNARY("ij->i") "tensor<2xi32>"), ERR_INVALID_ARGUMENT,
		  "another type" },
		{ ONE("tensor<2x3xf32>", UNARY("ij,i->i") "tensor<2xf32>"), ERR_INVALID_ARGUMENT,
		  "1 operands" },
		{ ONE("tensor<2x3xf32>", UNARY("ij->") "tensor<2xf32>"), ERR_INVALID_ARGUMENT,
		  "another type" },
		{ TWO("tensor<5x4xf32>", "tensor<2xi32>", SELECT "dim = 0} : tensor<2x4xf32>"),
		  ERR_INVALID_ARGUMENT, "its batch_dims is missing" },
		{ TWO("tensor<5x4xf32>", "tensor<2xi32>", SELECT "dim = 2, batch_dims = 0} : "
		      "tensor<2x4xf32>"), ERR_INVALID_ARGUMENT, "its dim is none" },
		{ TWO("tensor<5x4xf32>", "tensor<2xi32>", SELECT "dim = -3, batch_dims = 0} : "
		      "tensor<2x4xf32>"), ERR_INVALID_ARGUMENT, "its dim is none" },
		{ TWO("tensor<5x4xf32>", "tensor<2xi32>", SELECT
		      "dim = -9223372036854775808, batch_dims = 0} : tensor<2x4xf32>"),
		  ERR_INVALID_ARGUMENT, "its dim is none" },
		{ TWO("tensor<5x4xf32>", "tensor<2xi32>", SELECT "dim = 0, batch_dims = 2} : "
		      "tensor<2x4xf32>"), ERR_INVALID_ARGUMENT, "its batch_dims is none" },
		{ TWO("tensor<5x4xf32>", "tensor<5xi32>", SELECT "dim = 0, batch_dims = 1} : "
		      "tensor<5x4xf32>"), ERR_INVALID_ARGUMENT, "its dim is one of" },
		{ TWO("tensor<5x4xf32>", "tensor<3x2xi32>", SELECT "dim = 1, batch_dims = 1} : "
		      "tensor<5x2xf32>"), ERR_INVALID_ARGUMENT, "gather" },
		{ TWO("tensor<5x4xf32>", "tensor<2xf32>", SELECT "dim = 0, batch_dims = 0} : "
		      "tensor<2x4xf32>"), ERR_INVALID_ARGUMENT, "gather" },
		{ TWO("tensor<5x4xf32>", "tensor<2xi32>", SELECT "dim = 0, batch_dims = 0} : "
		      "tensor<3x4xf32>"), ERR_INVALID_ARGUMENT, "gather" },
		{ TWO("tensor<f32>", "tensor<2xi32>", SELECT "dim = 0, batch_dims = 0} : "
		      "tensor<2xf32>"), ERR_INVALID_ARGUMENT, "its dim is none" },
		{ ONE("tensor<3xf32>", BROADCAST "} : tensor<2x3xf32>"), ERR_INVALID_ARGUMENT,
		  "its broadcast_sizes" },
		{ ONE("tensor<3xf32>", BROADCAST ", broadcast_sizes = [2, 2]} : tensor<2x3xf32>"),
		  ERR_INVALID_ARGUMENT, "its broadcast_sizes" },
		{ ONE("tensor<3xf32>", BROADCAST ", broadcast_sizes = [4]} : tensor<2x3xf32>"),
		  ERR_INVALID_ARGUMENT, "dim 0 of its result is 2" },
		{ ONE("tensor<3xf32>", BROADCAST ", broadcast_sizes = [2]} : tensor<2x4xf32>"),
		  ERR_INVALID_ARGUMENT, "dim 1 of its result is 4" },
		{ ONE("tensor<3xf32>", BROADCAST ", broadcast_sizes = [2]} : tensor<2x3xi32>"),
		  ERR_INVALID_ARGUMENT, "its broadcast_sizes" },
		{ ONE("tensor<3xf32>", REDUCE "replica_groups = [1]} : tensor<3xf32>" SUM),
		  ERR_INVALID_ARGUMENT, "not [[0]]" },
		{ ONE("tensor<3xf32>", REDUCE "replica_groups = [0]} : tensor<2xf32>" SUM),
		  ERR_INVALID_ARGUMENT, "another type" },
		{ ONE("tensor<3xf32>", REDUCE "has_dynamic_root = true, replica_groups = [0]} : "
		      "tensor<3xf32>" SUM), ERR_UNIMPLEMENTED, "a root that is computed" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		refuses(&cases[i], NULL);
}

static void a_reduction_to_one_of_several_says_what_to_use(void **state)
{
	static const struct tc_options two = { .level = 1, .replicas = 2 };
	static const struct refused reduce = {
		ONE("tensor<3xf32>", REDUCE "replica_groups = [0, 1]} : tensor<3xf32>" SUM),
		ERR_UNIMPLEMENTED, "use an all_reduce" };

	(void)state;
	refuses(&reduce, &two);
}

/* What a text evaluates to: n numbers. */
static void gives(const char *text, const struct tc_array *args, size_t n_args, const float *want,
		  size_t n)
{
	const struct tc_source source = { text, strlen(text), "mlir" };
	struct tc_array *out;
	struct err err = { 0 };
	size_t n_out;

	if (tc_eval(&source, args, n_args, &out, &n_out, &err))
		fail_msg("%s: %s", text, err.msg);
	assert_true(out[0].bytes == n * sizeof(float));
	for (size_t i = 0; i < n; i++)
		if (((float *)out[0].data)[i] != want[i])
			fail_msg("%s: number %zu is %g, not %g", text, i,
				 (double)((float *)out[0].data)[i], (double)want[i]);
	tc_array_free(out, n_out);
}

static void one_alone_reduces_to_what_it_has(void **state)
{
	float x[3] = { 1, -2, 4 };
	const struct tc_array arg = { ELEM_F32, 1, { 3 }, x, sizeof(x) };

	(void)state;
	gives(ONE("tensor<3xf32>", REDUCE "replica_groups = [0]} : tensor<3xf32>" SUM), &arg, 1, x,
	      3);
}

/* Past a size nothing counts, on no diagonal either. */
static void dims_may_be_shorter(void **state)
{
#define SHORTER(config, result) \
	MAIN("%0: tensor<3x3xf32>, %1: tensor<i32>", \
	     "%2 = set_dimension_size(%0, %1) {dimension = 0} : tensor<<=3x3xf32>\n" \
	     "%3 = set_dimension_size(%2, %1) {dimension = 1} : tensor<<=3x<=3xf32>\n" \
	     "%9 = tc.opaque(%3) {name = " UNARY(config) result "\nreturn(%9)\n")
	float x[9] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 };

	(void)state;
	for (int32_t n = 0; n <= 3; n++) {
		const struct tc_array args[] = { { ELEM_F32, 2, { 3, 3 }, x, sizeof(x) },
						 { ELEM_S32, 0, { 0 }, &n, 4 } };
		float diagonal[3] = { 0 }, trace = 0, sum = 0;

		for (int i = 0; i < n; i++) {
			diagonal[i] = x[4 * i];
			trace += x[4 * i];
			for (int k = 0; k < n; k++)
				sum += x[3 * i + k];
		}
		gives(SHORTER("ii->i", "tensor<<=3xf32>"), args, 2, diagonal, 3);
		gives(SHORTER("ii->", "tensor<f32>"), args, 2, &trace, 1);
		gives(SHORTER("ij->", "tensor<f32>"), args, 2, &sum, 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_contradicts_itself_says_how),
		cmocka_unit_test(a_reduction_to_one_of_several_says_what_to_use),
		cmocka_unit_test(one_alone_reduces_to_what_it_has),
		cmocka_unit_test(dims_may_be_shorter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
