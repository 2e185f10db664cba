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

/* A program of n convolutions alike, each of what the one before it gives. */
static int compile_chain(const struct shape *s, unsigned n, uint64_t limit, struct err *err)
{
	size_t room = 2048 + n * 1024;
	char *text = malloc(room), one[2048], *head, *op, *end;
	const struct tc_options o = { .level = 1, .memory_limit = limit };
	struct tc_result r = { 0 };
	int code, at;

	write_program(s, one, sizeof(one));
	head = strstr(one, "%5 = ");
	op = strstr(head, " {");
	end = strchr(op, '\n');
	at = snprintf(text, room, "%.*s", (int)(head - one), one);
	for (unsigned i = 0; i < n; i++)
		at += snprintf(text + at, room - (size_t)at,
			       "%%%u = convolution(%%%u, %%3)%.*s\n",
			       i + 10, i ? i + 9 : 2, (int)(end - op), op);
	snprintf(text + at, room - (size_t)at, "return(%%%u)\n}\n}\n", n + 9);
	code = tc_compile(&(struct tc_source){ text, strlen(text), "mlir" }, &o, &r, err);
	tc_result_free(&r);
	free(text);
	return code;
}

#define ONE_APART .holes = { 1, 1 }, .stride = { 1, 1 }, .feature_groups = 1, .batch_groups = 1

/* Of one feature that is padded, by taps along one dim and two; and of few features of many. */
static void what_is_sooner_done_takes_no_more_memory_than_there_is(void **state)
{
	static const struct shape shapes[] = {
		{ { 1, 5000 }, { 1, 31 }, .low = { 0, 15 }, .high = { 0, 15 }, ONE_APART,
		  .output = { 1, 5000 }, .apart = { 1, 1 }, .batch = 1, .features = 1, .out = 1 },
		{ { 100, 100 }, { 7, 7 }, .low = { 3, 3 }, .high = { 3, 3 }, ONE_APART,
		  .output = { 100, 100 }, .apart = { 1, 1 }, .batch = 1, .features = 1, .out = 1 },
		{ { 30, 30 }, { 3, 3 }, .low = { 1, 1 }, .high = { 1, 1 }, ONE_APART,
		  .output = { 30, 30 }, .apart = { 1, 1 }, .batch = 1, .features = 40, .out = 4 },
	};
	struct err err;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		const struct shape *s = &shapes[i];
		uint64_t need = 4u * (uint64_t)(s->input[0] * s->input[1] * s->features +
						s->kernel[0] * s->kernel[1] * s->features * s->out +
						s->output[0] * s->output[1] * s->out);

		if (compile_chain(s, 1, need + 512, &err))
			fail_msg("%u: %s", i, err.msg);
		assert_int_not_equal(compile_chain(s, 1, need - 1, &err), 0);
	}
}

/* Nor does it take more of the compiler's own than a compile may. */
static void programs_of_many_taps_compile(void **state)
{
	static const struct shape s = {
		{ 64, 64 }, { 31, 31 }, .low = { 15, 15 }, .high = { 15, 15 }, ONE_APART,
		.output = { 64, 64 }, .apart = { 1, 1 }, .batch = 1, .features = 1, .out = 1
	};
	struct err err;

	(void)state;
	if (compile_chain(&s, 100, 0, &err))
		fail_msg("%s", err.msg);
}

/* By taps far apart, all but few of whose products with all points nobody would look at; and by
 * more taps than there are points. */
static void few_points_are_convolved_as_they_are(void **state)
{
	static const struct shape shapes[] = {
		{ { 64, 64 }, { 3, 3 }, ONE_APART, .output = { 8, 8 }, .apart = { 28, 28 },
		  .batch = 1, .features = 64, .out = 1 },
		{ { 30, 30 }, { 28, 28 }, ONE_APART, .output = { 3, 3 }, .apart = { 1, 1 },
		  .batch = 1, .features = 1, .out = 1 },
	};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		char *final = compile(&shapes[i]);

		assert_non_null(strstr(final, "convolution("));
		free(final);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(convolutions_with_holes_become_ones_without),
		cmocka_unit_test(features_by_themselves_need_no_convolution),
		cmocka_unit_test(what_is_sooner_done_takes_no_more_memory_than_there_is),
		cmocka_unit_test(programs_of_many_taps_compile),
		cmocka_unit_test(few_points_are_convolved_as_they_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
