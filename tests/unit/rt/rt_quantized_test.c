/* SPDX-License-Identifier: Apache-2.0 */
/* Programs whose arguments and results are quantized: the runtime sees their integers. */
#include "tests/unit/against_eval.h"

static void they_run_as_evaluated(void **state)
{
	static const char *const names[] = { "types", "dot", "conv", "narrow", "bodies" };

	(void)state;
	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++) {
		char file[64];

		snprintf(file, sizeof(file), "quantized_%s", names[i]);
		file_runs_as_evaluated(file);
	}
}

/* tests/data/programs/quantized_NAME.mlirbc on arguments, by the evaluator, which the device
 * agrees with. */
static struct tc_array *evaluate(const char *name, const struct tc_array *args, size_t n_args)
{
	char path[256], bytes[4096];
	struct tc_array *outs;
	struct err err;
	size_t n, n_outs;
	FILE *f;

	snprintf(path, sizeof(path), "tests/data/programs/quantized_%s.mlirbc", name);
	f = fopen(path, "rb");
	assert_non_null(f);
	n = fread(bytes, 1, sizeof(bytes), f);
	fclose(f);
	if (tc_eval(&(struct tc_source){ bytes, n, "mlir" }, args, n_args, &outs, &n_outs, &err))
		fail_msg("%s", err.msg);
	assert_true(n_outs <= 3);
	outs = realloc(outs, 3 * sizeof(*outs));
	assert_non_null(outs);
	return outs;
}

/* From i8:f32, 0.5:3 to u8:f32, 0.25:128 and to floats. */
static void integers_become_those_of_another_type(void **state)
{
	static int8_t in[] = { -128, 3, 127, 5 };
	static const uint8_t as_u8[] = { 0, 128, 255, 132 };
	static const float as_f32[] = { -65.5f, 0, 62, 1 };
	struct tc_array a = { .elem = ELEM_S8, .rank = 1, .dim = { 4 }, .data = in, .bytes = 4 };
	struct tc_array *out = evaluate("types", &a, 1);

	(void)state;
	assert_int_equal(out[0].elem, ELEM_U8);
	assert_memory_equal(out[0].data, as_u8, sizeof(as_u8));
	assert_int_equal(out[1].elem, ELEM_F32);
	assert_memory_equal(out[1].data, as_f32, sizeof(as_f32));
	tc_array_free(out, 2);
}

/* i8:f32, 0.5:3 times i8:f32:1, {0.5, 0.25, 2.0}, as i32:f32, 0.125:-5. */
static void products_have_the_scale_of_each_column(void **state)
{
	static int8_t x[5 * 70], y[70 * 3];
	static const int scale[] = { 2, 1, 8 };	/* of the product, by 0.125 */
	struct tc_array args[] = {
		{ .elem = ELEM_S8, .rank = 2, .dim = { 5, 70 }, .data = x, .bytes = sizeof(x) },
		{ .elem = ELEM_S8, .rank = 2, .dim = { 70, 3 }, .data = y, .bytes = sizeof(y) },
	};
	struct tc_array *out;

	(void)state;
	for (int i = 0; i < 5 * 70; i++)
		x[i] = (int8_t)(i * 37 % 256 - 128);
	for (int i = 0; i < 70 * 3; i++)
		y[i] = (int8_t)(i * 91 % 256 - 128);
	out = evaluate("dot", args, 2);
	assert_int_equal(out[0].elem, ELEM_S32);
	for (int i = 0; i < 5; i++)
		for (int j = 0; j < 3; j++) {
			int sum = 0;

			for (int k = 0; k < 70; k++)
				sum += (x[i * 70 + k] - 3) * y[k * 3 + j];
			assert_int_equal(((const int32_t *)out[0].data)[i * 3 + j],
					 sum * scale[j] - 5);
		}
	tc_array_free(out, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(they_run_as_evaluated),
		cmocka_unit_test(integers_become_those_of_another_type),
		cmocka_unit_test(products_have_the_scale_of_each_column),
	};

	return cmocka_run_group_tests(tests, against_eval_start, against_eval_stop);
}
