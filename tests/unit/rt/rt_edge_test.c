/* SPDX-License-Identifier: Apache-2.0 */
/* Ops at the edges of what they may be: nothing to do, sizes of 0, kinds that differ. */
#include "hal/base/str.h"
#include "tests/unit/against_eval.h"

static void arrays_without_elements_have_constants(void **state)
{
	(void)state;
	file_runs_as_evaluated("empty_splats");
	file_runs_as_evaluated("empty_lists");
}

static void no_random_bits_leave_the_key(void **state)
{
	static const char *const algorithms[] = { "DEFAULT", "THREE_FRY", "PHILOX" };
	static const char *const sizes[] = { "0xui32", "3x0xui64", "0xui8", "5xui32" };
	char text[1024];

	(void)state;
	for (unsigned a = 0; a < 3; a++)
		for (unsigned i = 0; i < 4; i++) {
			snprintf(text, sizeof(text), PROGRAM("%%1: tensor<2xui64>",
				"%%2, %%3 = rng_bit_generator(%%1) {rng_algorithm = <%s>} : "
				"tensor<2xui64>, tensor<%s>\nreturn(%%2, %%3)"), algorithms[a],
				sizes[i]);
			runs_as_evaluated(text);
		}
}

/* Floats have the bits that integers of their width would have. */
static void random_bits_may_be_floats(void **state)
{
	static const char *const algorithms[] = { "THREE_FRY", "PHILOX" };
	static const struct { const char *floats, *bits; } types[] = {
		{ "f32", "ui32" }, { "f64", "ui64" }, { "bf16", "ui16" }, { "f16", "ui16" },
		{ "f8E5M2", "ui8" }, { "f8E8M0FNU", "ui8" }, { "f4E2M1FN", "ui4" },
	};
	char text[1024];

	(void)state;
	for (unsigned i = 0; i < 2 * sizeof(types) / sizeof(*types); i++) {
		const char *f = types[i / 2].floats, *u = types[i / 2].bits;
		const char *by = algorithms[i % 2];

		snprintf(text, sizeof(text), PROGRAM("%%1: tensor<2xui64>",
			"%%2, %%3 = rng_bit_generator(%%1) {rng_algorithm = <%s>} : "
			"tensor<2xui64>, tensor<3x5x%s>\n"
			"%%4, %%5 = rng_bit_generator(%%1) {rng_algorithm = <%s>} : "
			"tensor<2xui64>, tensor<3x5x%s>\n"
			"%%6 = bitcast_convert(%%3) : tensor<3x5x%s>\n"
			"%%7 = xor(%%5, %%6) : tensor<3x5x%s>\n"
			"%%8 = xor(%%2, %%4) : tensor<2xui64>\nreturn(%%2, %%6, %%7, %%8)"),
			by, f, by, u, u, u);
		runs_as_evaluated(text);
	}
}

/* Args for a body of `first` and more arguments, n of each kind, all of i32. */
static void write_args(struct str *t, unsigned n)
{
	for (unsigned j = 0; j < 2 * n; j++)
		str_printf(t, "%s%%%u: tensor<i32>", j ? ", " : "", 9000 + j);
}

/* Array j's sum, and to all but the first of three the product of the first's two, which is
 * made once. */
static void write_shared(struct str *t, unsigned n, unsigned j)
{
	unsigned first = j / 3 * 3;

	if (j == first)
		str_printf(t, "%%%u = multiply(%%%u, %%%u) : tensor<i32>\n", 11000 + j, 9000 + j,
			   9000 + n + j);
	str_printf(t, "%%%u = add(%%%u, %%%u) : tensor<i32>\n", j == first ? 20000 + j : 12000 + j,
		   9000 + j, 9000 + n + j);
	if (j != first)
		str_printf(t, "%%%u = add(%%%u, %%%u) : tensor<i32>\n", 20000 + j, 11000 + first,
			   12000 + j);
}

/* A body in which arrays look at each other in groups of `each`: as above, or as polynomials whose
 * product is taken. */
static void write_body(struct str *t, unsigned n, unsigned each)
{
	unsigned id = 11000;

	str_printf(t, " (");
	write_args(t, n);
	str_printf(t, ") {\n");
	for (unsigned j = 0; j < n; j++) {
		unsigned first = j / each * each, size = n - first < each ? n - first : each;

		if (each == 3)
			write_shared(t, n, j);
		for (unsigned i = 0; i < size && each != 3; i++, id += 2) {
			str_printf(t, "%%%u = multiply(%%%u, %%%u) : tensor<i32>\n", id,
				   9000 + first + i,
				   9000 + n + first + (j - first + size - i) % size);
			str_printf(t, "%%%u = %s(%%%u, %%%u) : tensor<i32>\n",
				   i + 1 < size ? id + 1 : 20000 + j, i ? "add" : "or", id,
				   i ? id - 1 : id);
		}
	}
	str_printf(t, "return(");
	for (unsigned j = 0; j < n; j++)
		str_printf(t, "%s%%%u", j ? ", " : "", 20000 + j);
	str_printf(t, ")\n}\n");
}

static void list_of(struct str *t, unsigned n, unsigned first, const char *type)
{
	for (unsigned j = 0; j < n; j++)
		if (type)
			str_printf(t, "%s%s", j ? ", " : "", type);
		else
			str_printf(t, "%s%%%u", j ? ", " : "", first + j);
}

enum many { REDUCE, WINDOW, SCATTER, SORT, MAP };

/* One op on n arrays, the sums of an argument and a number each; %3000 on: its results. */
static void write_many(struct str *t, enum many kind, unsigned n, unsigned each)
{
	static const char *const ops[] = { "reduce", "reduce_window", "scatter", "sort", "map" };
	static const char *const attributes[] = {
		"dimensions = [1]", "window_dimensions = [1, 3], window_strides = [1, 2], "
		"base_dilations = [1, 1], window_dilations = [1, 1], padding = [0, 0, 1, 0]",
		"update_window_dims = [1], inserted_window_dims = [0], input_batching_dims = [], "
		"scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], "
		"index_vector_dim = 1, indices_are_sorted = false, unique_indices = false",
		"dimension = 1, is_stable = true", "dimensions = [0, 1]" };
	static const char *const results[] = { "tensor<4xi32>", "tensor<4x4xi32>",
		"tensor<4x8xi32>", "tensor<4x8xi32>", "tensor<4x8xi32>" };
	unsigned n_results = kind == MAP ? 1 : n;

	str_printf(t, "module() () {\nfunc() {sym_name = \"main\"} (%%0: tensor<4x8xi32>, %%1: "
		   "tensor<4x8xi32>) {\n%%2 = constant() {value = dense<0x000000000200000000000000"
		   "01000000> : tensor<4x1xi32>} : tensor<4x1xi32>\n");
	for (unsigned j = 0; j < n; j++)
		str_printf(t, "%%%u = constant() {value = dense<0x%02x000000> : tensor<i32>} : "
			   "tensor<i32>\n%%%u = broadcast_in_dim(%%%u) {broadcast_dimensions = []} "
			   ": tensor<4x8xi32>\n%%%u = add(%%%u, %%%u) : tensor<4x8xi32>\n"
			   "%%%u = constant() {value = dense<0x%02x000000> : tensor<i32>} : "
			   "tensor<i32>\n", 7000 + j, j, 5000 + j, 7000 + j, 2000 + j, j & 1,
			   5000 + j, 4000 + j, j % each == 0 && each != 3);
	list_of(t, n_results, 3000, NULL);
	str_printf(t, " = %s(", ops[kind]);
	list_of(t, n, 2000, NULL);
	str_printf(t, kind == SCATTER ? ", %%2, " : kind < SORT ? ", " : "");
	if (kind < SORT)
		list_of(t, n, kind == SCATTER ? 2000 : 4000, NULL);
	str_printf(t, ") {%s} : ", attributes[kind]);
	list_of(t, n_results, 0, results[kind]);
	if (kind < SORT) {
		write_body(t, n, each);
	} else if (kind == SORT) {	/* by its last array */
		str_printf(t, " (");
		write_args(t, n);
		str_printf(t, ") {\n%%11000 = compare(%%%u, %%%u) {compare_type = <SIGNED>, "
			   "comparison_direction = <LT>} : tensor<i1>\nreturn(%%11000)\n}\n",
			   9000 + 2 * n - 2, 9000 + 2 * n - 1);
	} else {
		str_printf(t, " (");
		for (unsigned j = 0; j < n; j++)
			str_printf(t, "%s%%%u: tensor<i32>", j ? ", " : "", 9000 + j);
		str_printf(t, ") {\n%%11000 = subtract(%%9000, %%%u) : tensor<i32>\n"
			   "return(%%11000)\n}\n", 9000 + n - 1);
	}
	str_printf(t, "return(%%3000, %%%u)\n}\n}\n", 3000 + n_results - 1);
}

static void ops_take_any_number_of_arrays(void **state)
{
	static const unsigned numbers[] = { 4, 5, 8, 9, 33, 70, 200 };

	(void)state;
	for (unsigned i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		for (enum many kind = REDUCE; kind <= MAP; kind++)
			for (unsigned each = 1; each <= (kind < SORT ? 3 : 1); each++) {
				struct str text = { 0 };

				write_many(&text, kind, numbers[i], each);
				assert_false(text.failed);
				runs_as_evaluated(text.text);
				free(text.text);
			}
}

/* What one instruction takes of arrays that all look at each other. */
static void too_many_together_are_refused_by_number(void **state)
{
	static const char *const words[] = { "more than 8 arrays together",
					     "more than 8", "more than 4 arrays together" };

	(void)state;
	for (enum many kind = REDUCE; kind <= SCATTER; kind++) {
		struct str text = { 0 };
		struct rt_exe *x;
		struct err err;

		write_many(&text, kind, 12, 12);
		assert_false(text.failed);
		if (kind == WINDOW) {	/* its taps are elementwise work */
			runs_as_evaluated(text.text);
		} else {
			assert_int_equal(rt_compile(eval_client, text.text, strlen(text.text),
						    "mlir", NULL, 0, &x, &err), ERR_UNIMPLEMENTED);
			assert_non_null(strstr(err.msg, words[kind]));
			assert_non_null(strstr(err.msg, "does not fall into parts"));
		}
		free(text.text);
	}
}

/* One permutation after another is their product, in the right order. */
static void transposes_follow_each_other(void **state)
{
	static const unsigned orders[6][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
					       { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
	static const unsigned dim[3] = { 2, 3, 4 };
	char text[1024];

	(void)state;
	for (unsigned i = 0; i < 36; i++) {
		const unsigned *a = orders[i / 6], *b = orders[i % 6];

		snprintf(text, sizeof(text), PROGRAM("%%1: tensor<2x3x4xi32>",
			"%%2 = transpose(%%1) {permutation = [%u, %u, %u]} : "
			"tensor<%ux%ux%uxi32>\n"
			"%%3 = transpose(%%2) {permutation = [%u, %u, %u]} : "
			"tensor<%ux%ux%uxi32>\nreturn(%%3)"), a[0], a[1], a[2], dim[a[0]],
			dim[a[1]], dim[a[2]], b[0], b[1], b[2], dim[a[b[0]]], dim[a[b[1]]],
			dim[a[b[2]]]);
		runs_as_evaluated(text);
	}
}

/* Products whose operands and result are different kinds of numbers. */
static void products_of_any_kinds(void **state)
{
	static const char *const types[] = { "i1", "i8", "i32", "i64", "ui8", "ui32", "f32", "f64",
					     "complex<f32>" };
	enum { N = sizeof(types) / sizeof(*types) };
	char text[2048];

	(void)state;
	for (unsigned i = 0; i < N * N * N; i++) {
		const char *a = types[i / N / N], *b = types[i / N % N], *r = types[i % N];

		snprintf(text, sizeof(text), PROGRAM("%%1: tensor<3x5x%s>, %%2: tensor<5x4x%s>",
			"%%3 = dot_general(%%1, %%2) {lhs_batching_dimensions = [], "
			"rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], "
			"rhs_contracting_dimensions = [0]} : tensor<3x4x%s>\n"
			"return(%%3)"), a, b, r);
		runs_as_evaluated(text);
		if (i % 5)
			continue;
		snprintf(text, sizeof(text), PROGRAM("%%1: tensor<1x5x2x%s>, "
			"%%2: tensor<3x2x4x%s>",
			"%%3 = convolution(%%1, %%2) {input_batch_dimension = 0, "
			"input_feature_dimension = 2, input_spatial_dimensions = [1], "
			"kernel_input_feature_dimension = 1, "
			"kernel_output_feature_dimension = 2, "
			"kernel_spatial_dimensions = [0], output_batch_dimension = 0, "
			"output_feature_dimension = 2, output_spatial_dimensions = [1], "
			"window_strides = [1], padding = [1, 1], lhs_dilation = [1], "
			"rhs_dilation = [1], window_reversal = [0], "
			"feature_group_count = 1, batch_group_count = 1} : "
			"tensor<1x5x4x%s>\nreturn(%%3)"), a, b, r);
		runs_as_evaluated(text);
	}
}

/* Features lie apart, as in PyTorch's order, and there is nothing of something. */
static void convolutions_of_nothing_are_zeros(void **state)
{
	static const struct { const char *in, *kernel, *out; } shapes[] = {
		{ "2x3x0", "4x3x2", "2x4x3" },		/* points */
		{ "2x0x5", "4x0x2", "2x4x8" },		/* features */
		{ "0x3x5", "4x3x2", "0x4x8" },		/* batch */
		{ "2x3x5", "0x3x2", "2x0x8" },		/* features of the result */
		{ "2x3x5", "4x3x2", "2x4x8" },
	};
	char text[1024];

	(void)state;
	for (unsigned i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
		snprintf(text, sizeof(text), PROGRAM("%%1: tensor<%sxf32>, %%2: tensor<%sxf32>",
			"%%3 = convolution(%%1, %%2) {input_batch_dimension = 0, "
			"input_feature_dimension = 1, input_spatial_dimensions = [2], "
			"kernel_input_feature_dimension = 1, "
			"kernel_output_feature_dimension = 0, "
			"kernel_spatial_dimensions = [2], output_batch_dimension = 0, "
			"output_feature_dimension = 1, output_spatial_dimensions = [2], "
			"window_strides = [1], padding = [2, 2], lhs_dilation = [1], "
			"rhs_dilation = [1], window_reversal = [0], "
			"feature_group_count = 1, batch_group_count = 1} : "
			"tensor<%sxf32>\nreturn(%%3)"), shapes[i].in, shapes[i].kernel,
			shapes[i].out);
		runs_as_evaluated(text);
	}
}

#define FACTORS "{lhs_batching_dimensions = [], rhs_batching_dimensions = [], " \
	"lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]}"

/* 2^24 + 1 and 2^40 + 1 fit the widest of the three types only. */
static void products_of_any_kinds_lose_nothing(void **state)
{
	(void)state;
	runs_as_evaluated(PROGRAM("",
		"%1 = constant() {value = dense<0x0100000101000000> : tensor<2xi32>} : "
		"tensor<2xi32>\n"
		"%2 = constant() {value = dense<0x000000000000f03f000000000000f03f> : "
		"tensor<2xf64>} : tensor<2xf64>\n"
		"%3 = dot_general(%1, %2) " FACTORS " : tensor<f64>\n"
		"%4 = dot_general(%2, %1) " FACTORS " : tensor<i32>\nreturn(%3, %4)"));
	runs_as_evaluated(PROGRAM("",
		"%1 = constant() {value = dense<0x01000000000100000100000000000000> : "
		"tensor<2xi64>} : tensor<2xi64>\n"
		"%2 = constant() {value = dense<0x0101> : tensor<2xi1>} : tensor<2xi1>\n"
		"%3 = dot_general(%1, %2) " FACTORS " : tensor<i64>\n"
		"%4 = dot_general(%2, %1) " FACTORS " : tensor<ui64>\nreturn(%3, %4)"));
}

/* Summed dims that lie in memory in another order than they pair up. */
static void products_sum_over_dims_in_any_order(void **state)
{
	static const char *const orders[] = { "[1, 2]", "[2, 1]" };
	char text[1024];

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		snprintf(text, sizeof(text), PROGRAM("%%1: tensor<3x4x4xi32>, "
			"%%2: tensor<5x4x4xi32>",
			"%%3 = dot_general(%%1, %%2) {lhs_batching_dimensions = [], "
			"rhs_batching_dimensions = [], lhs_contracting_dimensions = %s, "
			"rhs_contracting_dimensions = %s} : tensor<3x5xi32>\nreturn(%%3)"),
			orders[i % 2], orders[i / 2]);
		runs_as_evaluated(text);
	}
}

static void refused(const char *text, const char *says)
{
	struct tc_source source = { text, strlen(text), "mlir" };
	struct tc_result r;
	struct err err;

	assert_int_equal(tc_compile(&source, NULL, &r, &err), ERR_INVALID_ARGUMENT);
	if (!strstr(err.msg, says))
		fail_msg("\"%s\" does not say \"%s\"", err.msg, says);
}

static void shapes_that_do_not_fit_are_refused_both_ways(void **state)
{
	(void)state;
	refused(PROGRAM("%1: tensor<2xi32>, %2: tensor<3xi32>",
		"%3 = dot_general(%1, %2) " FACTORS " : tensor<i32>\nreturn(%3)"),
		"contracting dim 0 differs");
	refused(PROGRAM("%1: tensor<2xi32>, %2: tensor<3xi32>",
		"%3 = dot_general(%2, %1) " FACTORS " : tensor<i32>\nreturn(%3)"),
		"contracting dim 0 differs");
	refused(PROGRAM("%1: tensor<2xi32>",
		"%3 = concatenate(%1, %1) {dimension = 0} : tensor<5xi32>\nreturn(%3)"),
		"do not add up");
	refused(PROGRAM("%1: tensor<2xi32>",
		"%3 = concatenate(%1, %1) {dimension = 0} : tensor<3xi32>\nreturn(%3)"),
		"larger than the whole");
}

/* The padding is the initial value, which counts: the body has to run on marked values. */
static void windows_whose_body_cant_be_marked_are_refused(void **state)
{
	static const char text[] = PROGRAM("%1: tensor<5xi32>, %2: tensor<i32>",
		"%3 = reduce_window(%1, %2) {window_dimensions = [2], window_strides = [1], "
		"base_dilations = [1], window_dilations = [1], padding = [1, 0]} : "
		"tensor<5xi32> (%4: tensor<i32>, %5: tensor<i32>) {\n"
		"%6 = bitcast_convert(%5) : tensor<ui32>\n"
		"%7 = bitcast_convert(%6) : tensor<i32>\n"
		"%8 = add(%4, %7) : tensor<i32>\nreturn(%8)\n}\nreturn(%3)");
	struct tc_source source = { text, strlen(text), "mlir" };
	struct tc_result r;
	struct err err;

	(void)state;
	assert_int_equal(tc_compile(&source, NULL, &r, &err), ERR_UNIMPLEMENTED);
	assert_non_null(strstr(err.msg, "bitcast_convert: it does not run yet in the region"));
}

/* Of numbers whose upper bits are set, so that a fold of any value shows. */
static void an_and_starts_at_any_value(void **state)
{
	static const char *const inits[] = { "ffffffff", "ffffff7f", "00000000", "0ff00ff0" };
	char text[1024];

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		snprintf(text, sizeof(text), PROGRAM("%%1: tensor<4x4xi32>",
			"%%2 = constant() {value = dense<0x%s> : tensor<i32>} : tensor<i32>\n"
			"%%8 = constant() {value = dense<splat 0xfffffff0> : tensor<4x4xi32>} : "
			"tensor<4x4xi32>\n%%9 = or(%%1, %%8) : tensor<4x4xi32>\n"
			"%%3 = reduce(%%9, %%2) {dimensions = [1]} : tensor<4xi32> "
			"(%%5: tensor<i32>, %%6: tensor<i32>) {\n"
			"%%7 = and(%%5, %%6) : tensor<i32>\nreturn(%%7)\n}\nreturn(%%3)"),
			inits[i]);
		runs_as_evaluated(text);
	}
}

static void bits_of_types_narrower_than_a_byte(void **state)
{
	static const struct { const char *from, *to; } as[] = {
		{ "5xi8", "5x2xi4" }, { "5xui8", "5x4xui2" }, { "3xi32", "3x8xui4" },
		{ "3xf32", "3x8xi4" }, { "2x3xi64", "2x3x32xi2" }, { "3x2xi4", "3xi8" },
		{ "3x8xui4", "3xf32" }, { "3x4xi2", "3xui8" }, { "3x16xui2", "3xi32" },
		{ "4x2xui2", "4xi4" }, { "4xui4", "4x2xi2" }, { "4x2xf4E2M1FN", "4xui8" },
		{ "4xi8", "4x2xf4E2M1FN" }, { "0xi8", "0x2xi4" }, { "i8", "2xi4" },
		{ "2xi4", "i8" },
	};
	char text[1024];

	(void)state;
	for (unsigned i = 0; i < sizeof(as) / sizeof(*as); i++) {
		bool is_float = strstr(as[i].from, "f4") != NULL;

		snprintf(text, sizeof(text), PROGRAM("%%1: tensor<%s>",
			"%s%%3 = bitcast_convert(%%%u) : tensor<%s>\nreturn(%%3)"),
			is_float ? "4x2xi8" : as[i].from,
			is_float ? "%2 = convert(%1) : tensor<4x2xf4E2M1FN>\n" : "",
			is_float ? 2 : 1, as[i].to);
		runs_as_evaluated(text);
	}
}

/* -1, 2 and 7: a start is held to the array, an update before it is not made. */
static void places_of_few_bits_have_a_sign(void **state)
{
	(void)state;
	runs_as_evaluated(PROGRAM("%0: tensor<16xf32>, %1: tensor<3xf32>",
		"%2 = constant() {value = dense<0x0f0207> : tensor<3x1xi4>} : tensor<3x1xi4>\n"
		"%3 = constant() {value = dense<0x0f> : tensor<i4>} : tensor<i4>\n"
		"%4 = gather(%0, %2) {offset_dims = [], collapsed_slice_dims = [0], "
		"operand_batching_dims = [], start_indices_batching_dims = [], "
		"start_index_map = [0], index_vector_dim = 1, slice_sizes = [1]} : tensor<3xf32>\n"
		"%5 = scatter(%0, %2, %1) {update_window_dims = [], inserted_window_dims = [0], "
		"input_batching_dims = [], scatter_indices_batching_dims = [], "
		"scatter_dims_to_operand_dims = [0], index_vector_dim = 1} : tensor<16xf32> "
		"(%10: tensor<f32>, %11: tensor<f32>) {\n%12 = add(%10, %11) : tensor<f32>\n"
		"return(%12)\n}\n"
		"%6 = dynamic_slice(%0, %3) {slice_sizes = [3]} : tensor<3xf32>\n"
		"%7 = dynamic_update_slice(%0, %1, %3) : tensor<16xf32>\n"
		"return(%4, %5, %6, %7)"));
}

static void parts_of_real_numbers(void **state)
{
	(void)state;
	runs_as_evaluated(PROGRAM("%1: tensor<4xf32>, %4: tensor<0x0xf64>",
		"%2 = real(%1) : tensor<4xf32>\n%3 = imag(%1) : tensor<4xf32>\n"
		"%5 = real(%4) : tensor<0x0xf64>\nreturn(%2, %3, %5)"));
}

#define SUM(n) " : tensor<3xf32> (%" n "0: tensor<f32>, %" n "1: tensor<f32>) {\n" \
	"%" n "2 = add(%" n "0, %" n "1) : tensor<f32>\nreturn(%" n "2)\n}\n"

static void rows_of_constants_are_reduced_twice(void **state)
{
	(void)state;
	/* x - sum(x), and the sum of that, of an array of twos and of one of numbers */
	runs_as_evaluated(PROGRAM("",
		"%90 = constant() {value = dense<0x00000000> : tensor<f32>} : tensor<f32>\n"
		"%1 = constant() {value = dense<splat 0x00000040> : tensor<3x4xf32>} : "
		"tensor<3x4xf32>\n"
		"%2 = reduce(%1, %90) {dimensions = [1]}" SUM("81")
		"%3 = broadcast_in_dim(%2) {broadcast_dimensions = [0]} : tensor<3x4xf32>\n"
		"%4 = subtract(%1, %3) : tensor<3x4xf32>\n"
		"%5 = reduce(%4, %90) {dimensions = [1]}" SUM("82")
		"%6 = broadcast_in_dim(%5) {broadcast_dimensions = [0]} : tensor<3x4xf32>\n"
		"%7 = subtract(%4, %6) : tensor<3x4xf32>\nreturn(%7, %5)"));
	runs_as_evaluated(PROGRAM("",
		"%90 = constant() {value = dense<0x00000000> : tensor<f32>} : tensor<f32>\n"
		"%1 = iota() {iota_dimension = 1} : tensor<3x4xf32>\n"
		"%2 = reduce(%1, %90) {dimensions = [1]}" SUM("83")
		"%3 = broadcast_in_dim(%2) {broadcast_dimensions = [0]} : tensor<3x4xf32>\n"
		"%4 = subtract(%1, %3) : tensor<3x4xf32>\n"
		"%5 = reduce(%3, %90) {dimensions = [1]}" SUM("84")
		"%6 = broadcast_in_dim(%5) {broadcast_dimensions = [0]} : tensor<3x4xf32>\n"
		"%7 = subtract(%4, %6) : tensor<3x4xf32>\nreturn(%7, %5)"));
}

static void calls_give_and_take_tuples(void **state)
{
	(void)state;
	runs_as_evaluated(
		"module() () {\nfunc() {sym_name = \"main\"} (%1: tensor<4xf32>) {\n"
		"%2 = call(%1) {callee = \"two\"} : tuple<tensor<4xf32>, tensor<4xf32>>\n"
		"%3 = call(%2) {callee = \"turn\"} : tuple<tensor<4xf32>, tensor<4xf32>>\n"
		"%4 = get_tuple_element(%3) {index = 0} : tensor<4xf32>\n"
		"%5 = get_tuple_element(%3) {index = 1} : tensor<4xf32>\n"
		"return(%4, %5)\n}\n"
		"func() {sym_name = \"two\"} (%11: tensor<4xf32>) {\n"
		"%12 = negate(%11) : tensor<4xf32>\n"
		"%13 = tuple(%11, %12) : tuple<tensor<4xf32>, tensor<4xf32>>\n"
		"return(%13)\n}\n"
		"func() {sym_name = \"turn\"} (%21: tuple<tensor<4xf32>, tensor<4xf32>>) {\n"
		"%22 = get_tuple_element(%21) {index = 0} : tensor<4xf32>\n"
		"%23 = get_tuple_element(%21) {index = 1} : tensor<4xf32>\n"
		"%24 = abs(%22) : tensor<4xf32>\n"
		"%25 = tuple(%23, %24) : tuple<tensor<4xf32>, tensor<4xf32>>\n"
		"return(%25)\n}\n}\n");
}

static void padding_below_zero_with_holes(void **state)
{
	char text[1024];

	(void)state;
	for (int low = -7; low <= 2; low++)
		for (int high = -3; high <= 1; high++)
			for (int inner = 0; inner <= 3; inner++) {
				int wide = 5 + 4 * inner + low + high;

				snprintf(text, sizeof(text), PROGRAM(
					"%%1: tensor<2x5xi32>, %%2: tensor<i32>",
					"%%3 = pad(%%1, %%2) {edge_padding_low = [0, %d], "
					"edge_padding_high = [0, %d], interior_padding = [1, %d]} "
					": tensor<3x%dxi32>\nreturn(%%3)"), low, high, inner,
					wide);
				if (wide >= 0)
					runs_as_evaluated(text);
			}
}

/* What goes out at one end comes in at the other: the same shape, other elements. */
static void padding_that_keeps_the_shape(void **state)
{
	(void)state;
	runs_as_evaluated(PROGRAM("%1: tensor<5xi32>, %2: tensor<i32>",
		"%3 = pad(%1, %2) {edge_padding_low = [-1], edge_padding_high = [1], "
		"interior_padding = [0]} : tensor<5xi32>\n"
		"%4 = pad(%1, %2) {edge_padding_low = [2], edge_padding_high = [-2], "
		"interior_padding = [0]} : tensor<5xi32>\n"
		"%5 = pad(%1, %2) {edge_padding_low = [0], edge_padding_high = [-4], "
		"interior_padding = [1]} : tensor<5xi32>\n"
		"%6 = pad(%1, %2) {edge_padding_low = [0], edge_padding_high = [0], "
		"interior_padding = [0]} : tensor<5xi32>\nreturn(%3, %4, %5, %6)"));
}

/* Every pair of NaNs of both signs, infinities, zeros, numbers; every direction. */
static void comparisons_of_special_values(void **state)
{
	static const char values[] = "0000c0ff0000807f000080ff0000807f"
		"000080bf0000008000000000000080000000803f0000c07f";
	static const char *const directions[] = { "EQ", "NE", "GE", "GT", "LE", "LT" };
	char text[2048];

	(void)state;
	for (unsigned i = 0; i < 12; i++) {
		snprintf(text, sizeof(text), PROGRAM("",
			"%%1 = constant() {value = dense<0x%s> : tensor<10xf32>} : "
			"tensor<10xf32>\n"
			"%%2 = broadcast_in_dim(%%1) {broadcast_dimensions = [0]} : "
			"tensor<10x10xf32>\n"
			"%%3 = broadcast_in_dim(%%1) {broadcast_dimensions = [1]} : "
			"tensor<10x10xf32>\n"
			"%%4 = compare(%%2, %%3) {comparison_direction = <%s>, "
			"compare_type = <%s>} : tensor<10x10xi1>\nreturn(%%4)"), values,
			directions[i % 6], i < 6 ? "TOTALORDER" : "FLOAT");
		runs_as_evaluated(text);
	}
}

/* The same of complex numbers: by the real part, then the imaginary, where neither is NaN. */
static void complex_numbers_have_an_order(void **state)
{
	static const char values[] =
		"000000000000803f000000800000803f00000000000080bf0000803f00000000"
		"000080ff000000400000807f000000c00000c07f00000000000000000000c07f"
		"0000803f0000807f0000803f000080ff";
	static const char *const ops[] = {
		"compare(%2, %3) {comparison_direction = <GE>, compare_type = <FLOAT>} : "
			"tensor<10x10xi1>",
		"compare(%2, %3) {comparison_direction = <GT>, compare_type = <FLOAT>} : "
			"tensor<10x10xi1>",
		"compare(%2, %3) {comparison_direction = <LE>, compare_type = <FLOAT>} : "
			"tensor<10x10xi1>",
		"compare(%2, %3) {comparison_direction = <LT>, compare_type = <FLOAT>} : "
			"tensor<10x10xi1>",
		"maximum(%2, %3) : tensor<10x10xcomplex<f32>>",
		"minimum(%2, %3) : tensor<10x10xcomplex<f32>>",
		"clamp(%2, %5, %3) : tensor<10x10xcomplex<f32>>",
		"clamp(%6, %2, %7) : tensor<10x10xcomplex<f32>>",
	};
	char text[2048];

	(void)state;
	for (unsigned i = 0; i < sizeof(ops) / sizeof(*ops); i++) {
		snprintf(text, sizeof(text), PROGRAM("%%5: tensor<10x10xcomplex<f32>>, "
			"%%6: tensor<complex<f32>>, %%7: tensor<complex<f32>>",
			"%%1 = constant() {value = dense<0x%s> : tensor<10xcomplex<f32>>} : "
			"tensor<10xcomplex<f32>>\n"
			"%%2 = broadcast_in_dim(%%1) {broadcast_dimensions = [0]} : "
			"tensor<10x10xcomplex<f32>>\n"
			"%%3 = broadcast_in_dim(%%1) {broadcast_dimensions = [1]} : "
			"tensor<10x10xcomplex<f32>>\n"
			"%%4 = %s\nreturn(%%4)"), values, ops[i]);
		runs_as_evaluated(text);
	}
}

#define PAIR "(%10: tensor<complex<f64>>, %11: tensor<complex<f64>>) {\n"
#define GREATER "%12 = compare(%10, %11) {comparison_direction = <GE>, " \
	"compare_type = <FLOAT>} : tensor<i1>\nreturn(%12)\n}"
#define LARGEST "%12 = maximum(%10, %11) : tensor<complex<f64>>\nreturn(%12)\n}"

/* In regions, too. */
static void complex_numbers_are_sorted_and_reduced(void **state)
{
	static const char *const lines[] = {
		"%4 = sort(%1) {dimension = 1, is_stable = true} : tensor<6x8xcomplex<f64>> "
			PAIR GREATER "\nreturn(%4)",
		"%4 = reduce(%1, %3) {dimensions = [0]} : tensor<8xcomplex<f64>> "
			PAIR LARGEST "\nreturn(%4)",
		"%4 = reduce(%1, %3) {dimensions = [1]} : tensor<6xcomplex<f64>> "
			PAIR LARGEST "\nreturn(%4)",
		"%4 = reduce_window(%1, %3) {window_dimensions = [2, 2], window_strides = [2, 2], "
			"base_dilations = [1, 1], window_dilations = [1, 1], "
			"padding = [0, 0, 0, 0]} : tensor<3x4xcomplex<f64>> "
			PAIR LARGEST "\nreturn(%4)",
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		char text[2048];

		snprintf(text, sizeof(text), PROGRAM("%%0: tensor<6x8xcomplex<f32>>",
			"%%1 = convert(%%0) : tensor<6x8xcomplex<f64>>\n"
			"%%3 = constant() {value = dense<0x000000000000f0ff000000000000f0ff> : "
			"tensor<complex<f64>>} : tensor<complex<f64>>\n%s"), lines[i]);
		runs_as_evaluated(text);
	}
}

/* Starts far outside, as each type of index writes them. */
static void starts_are_clamped(void **state)
{
	static const struct { const char *type, *bytes; } starts[] = {
		{ "ui64", "ffffffffffffffff" }, { "ui64", "0000000000000080" },
		{ "i64", "ffffffffffffffff" }, { "i64", "0000000000000080" },
		{ "i64", "ffffffffffffff7f" }, { "ui32", "ffffffff" }, { "i32", "ffffffff" },
		{ "ui32", "00000080" }, { "i32", "00000080" }, { "ui8", "ff" }, { "i8", "ff" },
		{ "ui8", "06" }, { "i8", "07" }, { "ui64", "0600000000000000" },
	};
	char text[1024];

	(void)state;
	for (unsigned i = 0; i < sizeof(starts) / sizeof(*starts); i++) {
		snprintf(text, sizeof(text), PROGRAM("%%1: tensor<9xi32>, %%2: tensor<3xi32>",
			"%%3 = constant() {value = dense<0x%s> : tensor<%s>} : tensor<%s>\n"
			"%%4 = dynamic_slice(%%1, %%3) {slice_sizes = [3]} : tensor<3xi32>\n"
			"%%5 = dynamic_update_slice(%%1, %%2, %%3) : tensor<9xi32>\n"
			"return(%%4, %%5)"), starts[i].bytes, starts[i].type, starts[i].type);
		runs_as_evaluated(text);
	}
}

/* A fold starts where it is told to, be that what changes nothing or not. */
static void reductions_start_at_any_value(void **state)
{
	static const struct { const char *op, *type, *init; } of[] = {
		{ "minimum", "f32", "0000807f" }, { "minimum", "f32", "000000c0" },
		{ "minimum", "f32", "ffff7f7f" }, { "minimum", "i32", "ffffff7f" },
		{ "minimum", "i32", "fdffffff" }, { "minimum", "i32", "ffffffff" },
		{ "minimum", "ui32", "ffffffff" }, { "minimum", "ui32", "ffffff7f" },
		{ "minimum", "ui32", "01000000" }, { "minimum", "i8", "7f" },
		{ "minimum", "i8", "ff" }, { "minimum", "i8", "80" },
		{ "maximum", "f32", "000080ff" }, { "maximum", "f32", "0000a040" },
		{ "maximum", "i32", "00000080" }, { "maximum", "i32", "00000000" },
		{ "maximum", "i32", "07000000" }, { "maximum", "ui32", "00000000" },
		{ "maximum", "ui32", "00000080" }, { "maximum", "ui32", "05000000" },
		{ "maximum", "i8", "80" }, { "maximum", "i8", "00" }, { "maximum", "i8", "7f" },
		{ "add", "f32", "00000000" }, { "add", "f32", "00000080" },
		{ "add", "f32", "0000803f" }, { "add", "i32", "01000000" },
		{ "multiply", "i32", "01000000" }, { "multiply", "i32", "02000000" },
		{ "multiply", "f64", "000000000000f03f" },
		{ "multiply", "f64", "0000000000000000" },
		{ "and", "i32", "ffffffff" }, { "and", "i32", "ffffff7f" },
		{ "and", "i1", "01" }, { "and", "i1", "00" }, { "or", "i1", "00" },
		{ "or", "i1", "01" }, { "or", "i32", "00000000" }, { "or", "i32", "10000000" },
		{ "xor", "i32", "00000000" }, { "xor", "i32", "10000000" },
		{ "xor", "i1", "01" }, { "minimum", "i1", "01" }, { "minimum", "i1", "00" },
		{ "maximum", "i1", "00" }, { "maximum", "i1", "01" }, { "add", "i1", "00" },
	};
	char text[2048];

	(void)state;
	for (unsigned i = 0; i < sizeof(of) / sizeof(*of); i++)
		for (unsigned d = 0; d < 2; d++) {
			const char *t = of[i].type;

			snprintf(text, sizeof(text), PROGRAM("%%1: tensor<4x4x%s>",
				"%%2 = constant() {value = dense<0x%s> : tensor<%s>} : "
				"tensor<%s>\n"
				"%%3 = reduce(%%1, %%2) {dimensions = [%u]} : tensor<4x%s> "
				"(%%5: tensor<%s>, %%6: tensor<%s>) {\n"
				"%%7 = %s(%%5, %%6) : tensor<%s>\nreturn(%%7)\n}\n"
				"return(%%3)"), t, of[i].init, t, t, d, t, t, t, of[i].op, t);
			runs_as_evaluated(text);
		}
}

/* A table without rows has no row of one element either; only nobody may ask for one. */
#define LOOKED_UP(indices, result, size) \
	PROGRAM("%1: tensor<0x3xf32>, %2: tensor<" indices "xi32>", \
		"%3 = gather(%1, %2) {offset_dims = [1], collapsed_slice_dims = [0], " \
		"operand_batching_dims = [], start_indices_batching_dims = [], " \
		"start_index_map = [0], index_vector_dim = 1, slice_sizes = [" size ", 3], " \
		"indices_are_sorted = false} : tensor<" result "xf32>\nreturn(%3)")

static void nothing_is_looked_up_in_nothing(void **state)
{
	(void)state;
	runs_as_evaluated(LOOKED_UP("0", "0x3", "0"));
	refused(LOOKED_UP("2", "2x3", "0"), "larger than dim 0");
	refused(LOOKED_UP("0", "0x3", "1"), "larger than dim 0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arrays_without_elements_have_constants),
		cmocka_unit_test(no_random_bits_leave_the_key),
		cmocka_unit_test(random_bits_may_be_floats),
		cmocka_unit_test(ops_take_any_number_of_arrays),
		cmocka_unit_test(too_many_together_are_refused_by_number),
		cmocka_unit_test(transposes_follow_each_other),
		cmocka_unit_test(products_of_any_kinds),
		cmocka_unit_test(convolutions_of_nothing_are_zeros),
		cmocka_unit_test(products_of_any_kinds_lose_nothing),
		cmocka_unit_test(products_sum_over_dims_in_any_order),
		cmocka_unit_test(shapes_that_do_not_fit_are_refused_both_ways),
		cmocka_unit_test(windows_whose_body_cant_be_marked_are_refused),
		cmocka_unit_test(an_and_starts_at_any_value),
		cmocka_unit_test(bits_of_types_narrower_than_a_byte),
		cmocka_unit_test(places_of_few_bits_have_a_sign),
		cmocka_unit_test(parts_of_real_numbers),
		cmocka_unit_test(rows_of_constants_are_reduced_twice),
		cmocka_unit_test(calls_give_and_take_tuples),
		cmocka_unit_test(padding_below_zero_with_holes),
		cmocka_unit_test(padding_that_keeps_the_shape),
		cmocka_unit_test(comparisons_of_special_values),
		cmocka_unit_test(complex_numbers_have_an_order),
		cmocka_unit_test(complex_numbers_are_sorted_and_reduced),
		cmocka_unit_test(starts_are_clamped),
		cmocka_unit_test(nothing_is_looked_up_in_nothing),
		cmocka_unit_test(reductions_start_at_any_value),
	};

	return cmocka_run_group_tests(tests, against_eval_start, against_eval_stop);
}
