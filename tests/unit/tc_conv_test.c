/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions over inputs with holes: what the compiler makes of them gives the same
 * numbers, and multiplies no zeros. */
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

enum { FEATURES = 40, OUT = 3, BATCH = 2 };

struct shape {
	int64_t input[2], kernel[2], holes[2], low[2], high[2], output[2];
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
		s->output[d] = (s->input[d] - 1) * s->holes[d] + 1 + s->low[d] + s->high[d] -
			       s->kernel[d] + 1;
		if (s->output[d] < 1)
			return false;
	}
	return true;
}

static void write_program(const struct shape *s, char *text, size_t room)
{
	int n = snprintf(text, room,
		"module() {sym_name = \"m\"} () {\n"
		"  func() {sym_name = \"main\"} (%%2: tensor<%dx%lldx%lldx%dxf32>, "
		"%%3: tensor<%lldx%lldx%dx%dxf32>) {\n"
		"    %%5 = convolution(%%2, %%3) {batch_group_count = 1, feature_group_count = 1, "
		"input_batch_dimension = 0, input_feature_dimension = 3, "
		"input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, "
		"kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], "
		"lhs_dilation = [%lld, %lld], output_batch_dimension = 0, "
		"output_feature_dimension = 3, output_spatial_dimensions = [1, 2], "
		"padding = [%lld, %lld, %lld, %lld], precision_config = [0, 0], "
		"rhs_dilation = [1, 1], window_reversal = [0, 0], window_strides = [1, 1]}"
		" : tensor<%dx%lldx%lldx%dxf32>\n"
		"    return(%%5)\n  }\n}\n",
		BATCH, (long long)s->input[0], (long long)s->input[1], FEATURES,
		(long long)s->kernel[0], (long long)s->kernel[1], FEATURES, OUT,
		(long long)s->holes[0], (long long)s->holes[1],
		(long long)s->low[0], (long long)s->high[0], (long long)s->low[1],
		(long long)s->high[1], BATCH, (long long)s->output[0],
		(long long)s->output[1], OUT);

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

static void convolutions_with_holes_become_ones_without(void **state)
{
	const struct tc_options options = { .level = 1, .verify = true };
	unsigned n = 0, split = 0;

	(void)state;
	while (n < 150) {
		struct tc_array args[2], *want, *got;
		char text[2048], *final;
		struct shape s;
		struct err err;

		if (!pick_shape(&s))
			continue;
		n++;
		write_program(&s, text, sizeof(text));
		if (tc_print(&(struct tc_source){ text, strlen(text), "mlir" }, &options, "final",
			     &final, &err))
			fail_msg("%s\n%s", err.msg, text);
		args[0] = array(BATCH, s.input[0], s.input[1], FEATURES);
		args[1] = array(s.kernel[0], s.kernel[1], FEATURES, OUT);
		want = eval(text, args);
		got = eval(final, args);
		assert_int_equal(want->bytes, got->bytes);
		assert_memory_equal(want->data, got->data, want->bytes);
		/* With one tap left a dim need not be split. */
		if (s.kernel[0] * s.kernel[1] > 4 * s.holes[0])
			assert_false(has_holes(final, &s));
		split += !!strstr(final, "concatenate");
		tc_array_free(want, 1);
		tc_array_free(got, 1);
		free(args[0].data);
		free(args[1].data);
		free(final);
	}
	assert_true(split > n / 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(convolutions_with_holes_become_ones_without),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
