/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions that the compiler rewrites, over inputs with holes and of features by
 * themselves: what it makes of them gives the same numbers, and has no more of them. */
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

struct shape {
	int64_t input[2], kernel[2], holes[2], low[2], high[2], output[2], stride[2], apart[2];
	int64_t batch, features, feature_groups, batch_groups, out;
};

static uint32_t seed = 1;

static int64_t pick(int64_t low, int64_t high)
{
	seed = seed * 1664525u + 1013904223u;
	return low + (int64_t)(seed >> 8) % (high - low + 1);
}

/* False if nothing of it is left. */
static bool pick_shape(struct shape *s)
{
	for (unsigned d = 0; d < 2; d++) {
		s->input[d] = pick(1, 6);
		s->kernel[d] = pick(1, 5);
		s->holes[d] = pick(1, 4);
		s->low[d] = pick(-2, 5);
		s->high[d] = pick(-2, 5);
		s->output[d] = ((s->input[d] - 1) * s->holes[d] + 1 + s->low[d] + s->high[d] -
				(s->kernel[d] - 1) * s->apart[d] - 1 + s->stride[d]) / s->stride[d];
		if (s->output[d] < 1)
			return false;
	}
	return true;
}

static void write_program(const struct shape *s, char *text, size_t room)
{
	int64_t kernel_in = s->features / s->feature_groups;
	int n = snprintf(text, room,
		"module() {sym_name = \"m\"} () {\n"
		"  func() {sym_name = \"main\"} (%%2: tensor<%ldx%ldx%ldx%ldxf32>, "
		"%%3: tensor<%ldx%ldx%ldx%ldxf32>) {\n"
		"    %%5 = convolution(%%2, %%3) {batch_group_count = %ld, "
		"feature_group_count = %ld, input_batch_dimension = 0, "
		"input_feature_dimension = 3, input_spatial_dimensions = [1, 2], "
		"kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, "
		"kernel_spatial_dimensions = [0, 1], lhs_dilation = [%ld, %ld], "
		"output_batch_dimension = 0, output_feature_dimension = 3, "
		"output_spatial_dimensions = [1, 2], padding = [%ld, %ld, %ld, %ld], "
		"precision_config = [0, 0], rhs_dilation = [%ld, %ld], "
		"window_reversal = [0, 0], window_strides = [%ld, %ld]}"
		" : tensor<%ldx%ldx%ldx%ldxf32>\n"
		"    return(%%5)\n  }\n}\n",
		s->batch, s->input[0], s->input[1], s->features,
		s->kernel[0], s->kernel[1], kernel_in, s->out,
		s->batch_groups, s->feature_groups, s->holes[0], s->holes[1],
		s->low[0], s->high[0], s->low[1], s->high[1], s->apart[0], s->apart[1],
		s->stride[0], s->stride[1],
		s->batch / s->batch_groups, s->output[0], s->output[1], s->out);

	assert_true(n > 0 && (size_t)n < room);
}

static struct tc_array array(int64_t a, int64_t b, int64_t c, int64_t d)
{
	size_t n = (size_t)(a * b * c * d);
	struct tc_array x = { ELEM_F32, 4, { a, b, c, d }, malloc(4 * n), 4 * n };

	/* Small whole numbers: sums are exact in any order. */
	for (size_t i = 0; i < n; i++)
		((float *)x.data)[i] = (float)pick(-3, 3);
	return x;
}

static struct tc_array *eval(const char *text, const struct tc_array *args)
{
	struct tc_array *out;
	struct err err;
	size_t n;

	if (tc_eval(&(struct tc_source){ text, strlen(text), "mlir" }, args, 2, &out, &n, &err))
		fail_msg("%s\n%s", err.msg, text);
	assert_int_equal(n, 1);
	return out;
}

/* Whether a dim that has several taps and holes still meets zeros. */
static bool has_holes(const char *text, const struct shape *s)
{
	bool has = false;

	for (const char *at = text; (at = strstr(at, "lhs_dilation = [")); at++) {
		long long holes[2];

		assert_int_equal(sscanf(at, "lhs_dilation = [%lld, %lld]", holes, holes + 1), 2);
		for (unsigned d = 0; d < 2; d++)
			has |= holes[d] > 1 && s->kernel[d] > 1;
	}
	return has;
}

/* The compiler's program, checked to give what was asked for; malloc'd. */
static char *compile(const struct shape *s)
{
	const struct tc_options options = { .level = 1, .verify = true };
	struct tc_array args[2], *want, *got;
	char text[2048], *final;
	struct err err;

	write_program(s, text, sizeof(text));
	if (tc_print(&(struct tc_source){ text, strlen(text), "mlir" }, &options,
		     "decompose", &final, &err))
		fail_msg("%s\n%s", err.msg, text);
	args[0] = array(s->batch, s->input[0], s->input[1], s->features);
	args[1] = array(s->kernel[0], s->kernel[1], s->features / s->feature_groups, s->out);
	want = eval(text, args);
	got = eval(final, args);
	assert_int_equal(want->bytes, got->bytes);
	for (size_t i = 0; i < want->bytes / sizeof(float); i++)
		if (((float *)want->data)[i] != ((float *)got->data)[i])
			fail_msg("element %zu of\n%s", i, text);
	tc_array_free(want, 1);
	tc_array_free(got, 1);
	free(args[0].data);
	free(args[1].data);
	return final;
}

static void convolutions_with_holes_become_ones_without(void **state)
{
	unsigned n = 0, split = 0;

	(void)state;
	while (n < 150) {
		struct shape s = { .stride = { 1, 1 }, .apart = { 1, 1 }, .batch = 2, .out = 3,
				   .features = 40, .feature_groups = 1, .batch_groups = 1 };
		char *final;

		if (!pick_shape(&s))
			continue;
		n++;
		final = compile(&s);
		/* With one tap left a dim need not be split. */
		if (s.kernel[0] * s.kernel[1] > 4 * s.holes[0])
			assert_false(has_holes(final, &s));
		split += !!strstr(final, "concatenate");
		free(final);
	}
	assert_true(split > n / 3);
}

static void features_by_themselves_need_no_convolution(void **state)
{
	unsigned gone = 0, n = 0;

	(void)state;
	while (n < 150) {
		struct shape s = { .feature_groups = 1, .batch_groups = 1 };
		bool by_batch = pick(0, 1);
		char *final;

		for (unsigned d = 0; d < 2; d++) {
			s.apart[d] = pick(1, 2);
			s.stride[d] = pick(1, 2);
		}
		s.batch = by_batch ? 5 : 2;
		s.features = by_batch ? 3 : 5;
		*(by_batch ? &s.batch_groups : &s.feature_groups) = 5;
		s.out = 5 * pick(1, 3);
		if (!pick_shape(&s))
			continue;
		n++;
		final = compile(&s);
		if (s.holes[0] == 1 && s.holes[1] == 1 &&
		    (!by_batch || s.output[0] * s.output[1] <= 64)) {
			assert_null(strstr(final, "convolution("));
			gone++;
		}
		free(final);
	}
	assert_true(gone > 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(convolutions_with_holes_become_ones_without),
		cmocka_unit_test(features_by_themselves_need_no_convolution),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
