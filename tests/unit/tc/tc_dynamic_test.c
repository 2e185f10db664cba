/* SPDX-License-Identifier: Apache-2.0 */
/* Programs with dims of bounded size (tests/data/dynamic), by the evaluator; what is refused. */
#include "hal/base/err.h"
#include "tests/unit/dynamic.h"
#include "tests/unit/gang.h"

/* One run: results, then the sizes of those that have some. */
static void evaluates(const struct tc_source *source, const char *name, const struct image *im,
		      const struct dynamic_run *run)
{
	const struct image_shape *shapes = im->shapes + im->info.n_args;
	struct tc_array *out = NULL;
	struct err err = { 0 };
	size_t n = 0, at = run->n_out;

	if (tc_eval(source, run->in, run->n_in, &out, &n, &err))
		fail_msg("%s as %s: %s", name, source->format, err.msg);
	assert_int_equal(n, im->info.n_results);
	for (size_t i = 0; i < run->n_out; i++) {
		int64_t dim[32];

		memcpy(dim, out[i].dim, sizeof(dim));
		for (unsigned d = 0; shapes[i].bounded && d < out[i].rank; d++)
			dim[d] = ((const int32_t *)out[at].data)[d];
		at += shapes[i].bounded != 0;
		dynamic_same(name, i, dim, &out[i], &run->out[i]);
	}
	tc_array_free(out, n);
}

static void check(const struct torch_program *p, void *arg)
{
	const struct tc_source *forms[] = { &p->source, &p->mlir };
	unsigned *n_runs = arg;

	for (unsigned k = 0; k < 2; k++) {
		struct dynamic_run run;
		struct image *im;

		if (!forms[k]->code)
			continue;
		im = dynamic_image(forms[k], p->name);
		for (size_t i = 0; dynamic_run_of(p, im, i, &run); i++, (*n_runs)++)
			evaluates(forms[k], p->name, im, &run);
		image_free(im);
	}
}

static void programs_give_what_counts(void **state)
{
	unsigned n_runs = 0;

	(void)state;
	assert_int_equal(dynamic_each(check, &n_runs), DYNAMIC_COUNT);
	assert_true(n_runs > 4 * DYNAMIC_COUNT);
}

/* ---- what is refused ---- */

#define MAIN(arguments, lines) \
	"module() () {\nfunc() {sym_name = \"main\"} (" arguments ") {\n" lines "}\n}\n"

struct refused { const char *text; int code; const char *says, *also; };

static void refuses(const struct refused *r, const struct tc_options *options)
{
	struct tc_source source = { r->text, strlen(r->text), "mlir" };
	struct tc_result out;
	struct err err = { 0 };

	assert_int_equal(tc_compile(&source, options, &out, &err), r->code);
	if (!strstr(err.msg, r->says) || !strstr(err.msg, r->also))
		fail_msg("\"%s\" does not say \"%s\" and \"%s\"", err.msg, r->says, r->also);
}

/* By op, place and dim. */
static void an_op_without_a_rule_names_itself(void **state)
{
	static const struct refused cases[] = {
		{ MAIN("%0: tensor<4x<=8xf32>", "%1 = fft(%0) {fft_type = <RFFT>, fft_length = "
		       "[8]} : tensor<4x5xcomplex<f32>> # fft at f.py:3\nreturn(%1)\n"),
		  ERR_UNIMPLEMENTED, "fft: dim 1 of operand 0, of up to 8", "f.py:3" },
		{ MAIN("%0: tensor<<=8x4xcomplex<f32>>", "%1 = fft(%0) {fft_type = <FFT>, "
		       "fft_length = [8], dimension = 0, scale = dense<0x000000000000f03f> : "
		       "tensor<f64>} : tensor<8x4xcomplex<f32>>\nreturn(%1)\n"),
		  ERR_UNIMPLEMENTED, "fft: dim 0 of operand 0, of up to 8", "takes all of it" },
		{ MAIN("%0: tensor<<=4x4xf32>", "%1 = cholesky(%0) {lower = true} : "
		       "tensor<<=4x4xf32> # here\nreturn(%1)\n"),
		  ERR_UNIMPLEMENTED, "cholesky: dim 0 of operand 0", "at here" },
		{ MAIN("%0: tensor<<=4xf32>", "%1 = custom_call(%0) {call_target_name = \"f\"} : "
		       "tensor<4xf32> # there\nreturn(%1)\n"),
		  ERR_UNIMPLEMENTED, "custom_call: dim 0 of operand 0", "at there" },
		{ MAIN("", "%1 = custom_call() {call_target_name = \"f\"} : tensor<<=4xf32>\n"
		       "return(%1)\n"),
		  ERR_UNIMPLEMENTED, "custom_call: dim 0 of its result 0", "nothing says" },
		{ MAIN("%0: tensor<6xf32>, %1: tensor<4x<=1xi32>",
		       "%2 = gather(%0, %1) {offset_dims = [], collapsed_slice_dims = [0], "
		       "operand_batching_dims = [], start_indices_batching_dims = [], "
		       "start_index_map = [0], index_vector_dim = 1, slice_sizes = [1]} : "
		       "tensor<4xf32>\nreturn(%2)\n"),
		  ERR_UNIMPLEMENTED, "gather: dim 1 of operand 1", "the parts of an index" },
		{ MAIN("%0: tensor<<=6xf32>", "%1 = reshape(%0) : tensor<2x3xf32>\nreturn(%1)\n"),
		  ERR_UNIMPLEMENTED, "reshape: 2 dims of its result", "none of them says" },
		{ MAIN("%0: tensor<<=6xf32>", "%1 = reshape(%0) : tensor<<=2x<=3xf32>\n"
		       "return(%1)\n"),
		  ERR_UNIMPLEMENTED, "reshape: 2 dims of its result", "several of them" },
		{ MAIN("%0: tensor<<=1xf32>", "%1 = broadcast_in_dim(%0) {broadcast_dimensions = "
		       "[0]} : tensor<4xf32>\nreturn(%1)\n"),
		  ERR_UNIMPLEMENTED, "broadcast_in_dim: dim 0 of operand 0", "whether it is" },
		{ MAIN("%0: tensor<4x4xf32>, %1: tensor<4x<=3xf32>",
		       "%2 = triangular_solve(%0, %1) {left_side = true, lower = true, "
		       "unit_diagonal = false, transpose_a = <1>} : tensor<4x<=3xf32> # here\n"
		       "return(%2)\n"),
		  ERR_UNIMPLEMENTED, "triangular_solve: dim 1 of operand 1, of up to 3",
		  "at here" },
		{ MAIN("%0: tensor<4xf32>, %1: tensor<f32>, %2: tensor<1xi64>",
		       "%3 = tc.opaque(%0, %1, %2, %2, %2) {name = \"dynamic_pad_v1\"} : "
		       "tensor<<=9xf32> # here\nreturn(%3)\n"),
		  ERR_UNIMPLEMENTED, "dynamic_pad_v1: what it is given as operand 2", "at here" },
		{ MAIN("%0: tensor<4xf32>, %1: tensor<3x1xi32>, %2: tensor<1xi64>",
		       "%3 = tc.opaque(%0, %1, %2) {name = \"dynamic_gather_v2\"} : "
		       "tensor<3x<=4xf32> # here\nreturn(%3)\n"),
		  ERR_UNIMPLEMENTED, "dynamic_gather_v2: what it is given as operand 2",
		  "at here" },
		{ MAIN("%0: tensor<1x4x1xf32>, %1: tensor<2x1x1xf32>, %2: tensor<2xi64>",
		       "%3 = tc.opaque(%0, %1, %2) {name = \"dynamic_conv_v2\"} : "
		       "tensor<1x<=9x1xf32> # here\nreturn(%3)\n"),
		  ERR_UNIMPLEMENTED, "dynamic_conv_v2: what it is given as operand 2",
		  "at here" },
		{ MAIN("%0: tensor<f32>, %1: tensor<1xf32>",
		       "%2 = rng(%0, %0, %1) {rng_distribution = <1>} : tensor<<=4xf32> # here\n"
		       "return(%2)\n"),
		  ERR_INVALID_ARGUMENT, "rng: its shape is no list", "at here" },
		{ MAIN("%0: tensor<<=4xf32>", "%1 = negate(%0) : tensor<4xf32>\nreturn(%1)\n"),
		  ERR_UNIMPLEMENTED, "func: result 0 of main has a dim 0", "does not say so" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		refuses(&cases[i], NULL);
}

/* Numbers that a shape asks for at run time, held to the bound. */
static void random_numbers_are_as_many_as_their_shape_says(void **state)
{
	static const char text[] = MAIN("%0: tensor<f32>, %1: tensor<f32>, %2: tensor<2xi64>",
		"%3 = rng(%0, %1, %2) {rng_distribution = <1>} : tensor<2x<=4xf32>\n"
		"return(%3)\n");
	const struct tc_source source = { text, strlen(text), "mlir" };
	float low = 2, high = 3;
	struct tc_result made;

	(void)state;
	assert_int_equal(tc_compile(&source, NULL, &made, NULL), 0);
	tc_result_free(&made);
	for (int64_t n = -1; n <= 5; n++) {
		const int64_t shape[] = { 2, n };
		const int32_t want = n < 0 ? 0 : n > 4 ? 4 : (int32_t)n;
		const struct tc_array args[] = { { ELEM_F32, 0, { 0 }, &low, 4 },
						 { ELEM_F32, 0, { 0 }, &high, 4 },
						 { ELEM_S64, 1, { 2 }, (void *)(uintptr_t)shape,
						   16 } };
		struct tc_array *outs;
		struct err err = { 0 };
		size_t n_outs;

		if (tc_eval(&source, args, 3, &outs, &n_outs, &err))
			fail_msg("%s", err.msg);
		assert_int_equal(n_outs, 2);
		assert_int_equal(((const int32_t *)outs[1].data)[0], 2);
		assert_int_equal(((const int32_t *)outs[1].data)[1], want);
		for (int i = 0; i < 8; i++) {
			float x = ((const float *)outs[0].data)[i];

			assert_true(i % 4 < want ? x >= 2 && x < 3 : x == 0);
		}
		tc_array_free(outs, n_outs);
	}
}

/* A reshape's type says of no dim that it may be shorter: one of several that is longer than 1 is
 * it, and where there is none, it is the same whichever is. Dims of 1 that vanish take all of the
 * next dim with them. */
static void a_dim_among_ones_is_the_one_that_is_shorter(void **state)
{
	static const struct { const char *text; int n, each; } cases[] = {
		{ MAIN("%0: tensor<4xf32>, %1: tensor<i32>",
		       "%2 = set_dimension_size(%0, %1) {dimension = 0} : tensor<<=4xf32>\n"
		       "%3 = reshape(%2) : tensor<1x4x1xf32>\n"
		       "%4 = reshape(%3) : tensor<<=4xf32>\nreturn(%4)\n"), 4, 1 },
		{ MAIN("%0: tensor<1xf32>, %1: tensor<i32>",
		       "%2 = set_dimension_size(%0, %1) {dimension = 0} : tensor<<=1xf32>\n"
		       "%3 = reshape(%2) : tensor<1x1xf32>\n"
		       "%4 = reshape(%3) : tensor<<=1xf32>\nreturn(%4)\n"), 1, 1 },
		{ MAIN("%0: tensor<4xf32>, %1: tensor<i32>",
		       "%2 = reshape(%0) : tensor<1x4xf32>\n"
		       "%3 = set_dimension_size(%2, %1) {dimension = 0} : tensor<<=1x4xf32>\n"
		       "%4 = reshape(%3) : tensor<<=4xf32>\nreturn(%4)\n"), 1, 4 },
		{ MAIN("%0: tensor<4xf32>, %1: tensor<i32>",
		       "%2 = reshape(%0) : tensor<1x1x2x2xf32>\n"
		       "%3 = set_dimension_size(%2, %1) {dimension = 1} : "
		       "tensor<1x<=1x2x2xf32>\n%4 = reshape(%3) : tensor<2x2xf32>\n"
		       "%5 = reshape(%4) : tensor<<=4xf32>\nreturn(%5)\n"), 1, 4 },
	};
	float x[] = { 1, 2, 3, 4 };

	(void)state;
	for (size_t k = 0; k < sizeof(cases) / sizeof(*cases); k++) {
		const struct tc_source source = { cases[k].text, strlen(cases[k].text), "mlir" };
		int all = cases[k].n * cases[k].each;

		for (int32_t n = 0; n <= cases[k].n; n++) {
			const struct tc_array args[] = {
				{ ELEM_F32, 1, { all }, x, 4u * (size_t)all },
				{ ELEM_S32, 0, { 0 }, &n, 4 } };
			struct tc_array *outs;
			struct err err = { 0 };
			size_t n_outs;

			if (tc_eval(&source, args, 2, &outs, &n_outs, &err))
				fail_msg("%s", err.msg);
			assert_int_equal(n_outs, 2);
			assert_int_equal(*(const int32_t *)outs[1].data, n * cases[k].each);
			for (int i = 0; i < all; i++)
				assert_true(((const float *)outs[0].data)[i] ==
					    (i < n * cases[k].each ? x[i] : 0));
			tc_array_free(outs, n_outs);
		}
	}
}

static void a_loop_says_what_gets_shorter(void **state)
{
	static const struct refused loop = {
		MAIN("%0: tensor<4xf32>, %1: tensor<i32>",
		     "%2 = while(%0) : tensor<4xf32> (%3: tensor<4xf32>) {\n"
		     "%4 = constant() {value = dense<0x00> : tensor<i1>} : tensor<i1>\n"
		     "return(%4)\n} (%5: tensor<4xf32>) {\n"
		     "%6 = set_dimension_size(%5, %1) {dimension = 0} : tensor<<=4xf32>\n"
		     "return(%6)\n} # loop at f.py:1\nreturn(%2)\n"),
		ERR_UNIMPLEMENTED, "while: value 0 of the loop gets a dim 0", "f.py:1",
	};

	(void)state;
	refuses(&loop, NULL);
}

static void bounds_are_at_most_31_bits(void **state)
{
	static const struct refused cases[] = {
		{ MAIN("%0: tensor<<=2147483648xi8>", "return(%0)\n"), ERR_UNIMPLEMENTED,
		  "a dim with a bound of 2147483648", "at most" },
		{ MAIN("%0: tensor<<=9223372036854775807xi8>", "return(%0)\n"),
		  ERR_RESOURCE_EXHAUSTED, "out of memory", "" },
		{ MAIN("%0: tensor<<4xi8>", "return(%0)\n"), ERR_INVALID_ARGUMENT,
		  "\"<=\" and a bound", "" },
		{ MAIN("%0: tensor<<=xi8>", "return(%0)\n"), ERR_INVALID_ARGUMENT, "", "" },
		{ MAIN("%0: tensor<?xi8>", "return(%0)\n"), ERR_INVALID_ARGUMENT,
		  "a dim or an element type", "" },
		{ MAIN("%0: tensor<4xi8>, %1: tensor<f32>", "%2 = set_dimension_size(%0, %1) "
		       "{dimension = 0} : tensor<4xi8>\nreturn(%2)\n"), ERR_INVALID_ARGUMENT,
		  "set_dimension_size", "no integer" },
		{ MAIN("%0: tensor<4xi8>, %1: tensor<i32>", "%2 = set_dimension_size(%0, %1) "
		       "{dimension = 1} : tensor<4xi8>\nreturn(%2)\n"), ERR_INVALID_ARGUMENT,
		  "set_dimension_size", "dimension" },
		{ MAIN("%0: tensor<4xi8>, %1: tensor<i32>", "%2 = set_dimension_size(%0, %1) "
		       "{dimension = 0} : tensor<<=5xi8>\nreturn(%2)\n"), ERR_INVALID_ARGUMENT,
		  "set_dimension_size", "another type" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		refuses(&cases[i], NULL);
}

static void parts_of_an_array_are_static(void **state)
{
	static const struct tc_options two = { .level = 1, .partitions = 2 };
	static const struct refused argument = {
		MAIN("%0: tensor<<=4xf32>", "return(%0)\n"), ERR_UNIMPLEMENTED,
		"func: argument 0 of main", "several partitions" };
	static const struct refused result = {
		MAIN("%0: tensor<4xf32>, %1: tensor<i32>", "%2 = set_dimension_size(%0, %1) "
		     "{dimension = 0} : tensor<<=4xf32>\nreturn(%2)\n"), ERR_UNIMPLEMENTED,
		"func: result 0 of main", "several partitions" };

	(void)state;
	refuses(&argument, &two);
	refuses(&result, &two);
}

/* ---- several members ---- */

#define MEMBERS 4
#define ROW(m) { (m) % 2, (m) % 2 + 2 }		/* who meets with m, in order */
#define ROWS "group_size = 2, replica_groups = [0, 2, 1, 3], use_global_device_ids = true"
#define SUM(x) " (%" x "0: tensor<f32>, %" x "1: tensor<f32>) {\n%" x "2 = add(%" x "0, %" x \
	"1) : tensor<f32>\nreturn(%" x "2)\n}\n"
enum meeting { REDUCED, GATHERED, STACKED, PERMUTED, BROADCAST, EXCHANGED, SCATTERED, N_MEETINGS };

/* %0 counts as far as %1; %4 has it in its first row, and in the second one with other signs. */
static const char meetings[] = MAIN("%0: tensor<4xf32>, %1: tensor<i32>",
	"%2 = set_dimension_size(%0, %1) {dimension = 0} : tensor<<=4xf32>\n"
	"%3 = reshape(%2) : tensor<1x<=4xf32>\n%5 = negate(%3) : tensor<1x<=4xf32>\n"
	"%4 = concatenate(%3, %5) {dimension = 0} : tensor<2x<=4xf32>\n"
	"%10 = all_reduce(%2) {" ROWS "} : tensor<<=4xf32>" SUM("8")
	"%11 = all_gather(%2) {all_gather_dim = 0, " ROWS "} : tensor<<=8xf32>\n"
	"%12 = all_gather(%3) {all_gather_dim = 0, " ROWS "} : tensor<2x<=4xf32>\n"
	"%13 = collective_permute(%2) {source_target_pairs = [0, 1, 1, 2, 2, 3], "
	"use_global_device_ids = true} : tensor<<=4xf32>\n"
	"%14 = collective_broadcast(%2) {" ROWS "} : tensor<<=4xf32>\n"
	"%15 = all_to_all(%4) {split_dimension = 0, concat_dimension = 1, split_count = 2, " ROWS
	"} : tensor<1x<=8xf32>\n"
	"%16 = reduce_scatter(%4) {scatter_dimension = 0, " ROWS "} : tensor<1x<=4xf32>" SUM("9")
	"return(%10, %11, %12, %13, %14, %15, %16)\n");

static float brought(unsigned m, int i) { return (float)(10 * m + (unsigned)i + 1); }

/* What member m has of a result, one row behind the other; *rows and *size of each. */
static void wanted(enum meeting what, unsigned m, const int32_t *sizes, float *to, int *rows,
		   int *size)
{
	const unsigned row[] = ROW(m);
	float sign = m < 2 ? 1 : -1;
	int a = sizes[row[0]], b = sizes[row[1]], least = a < b ? a : b;

	*rows = what == STACKED ? 2 : 1;
	*size = what == GATHERED || what == EXCHANGED ? a + b : what == BROADCAST ? a :
		what == PERMUTED ? m ? sizes[m - 1] : 0 : least;
	for (int r = 0; r < *rows; r++)
		for (int i = 0; i < *size; i++)
			switch (what) {
			case REDUCED:
				*to++ = brought(row[0], i) + brought(row[1], i);
				break;
			case SCATTERED:
				*to++ = sign * (brought(row[0], i) + brought(row[1], i));
				break;
			case STACKED: *to++ = brought(row[r], i); break;
			case PERMUTED: *to++ = brought(m - 1, i); break;
			case BROADCAST: *to++ = brought(row[0], i); break;
			case GATHERED:
			case EXCHANGED:
				*to = i < a ? brought(row[0], i) : brought(row[1], i - a);
				*to++ *= what == EXCHANGED ? sign : 1;
				break;
			default: fail();
			}
}

/* Results of a member, and behind them the sizes of each. */
static void has(const struct tc_array *outs, unsigned m, const int32_t *sizes, const char *stage)
{
	for (unsigned k = 0; k < N_MEETINGS; k++) {
		const struct tc_array *out = &outs[k], *dims = &outs[N_MEETINGS + k];
		const int32_t *dim = dims->data;
		const float *got = out->data;
		float want[16];
		int rows, size, bound = (int)out->dim[out->rank - 1];

		wanted((enum meeting)k, m, sizes, want, &rows, &size);
		assert_int_equal(dims->bytes, out->rank * sizeof(*dim));
		assert_int_equal(out->bytes, (unsigned)(rows * bound) * sizeof(*got));
		if (out->rank > 1)
			assert_int_equal(dim[0], rows);
		if (dim[out->rank - 1] != size)
			fail_msg("%s: result %u of member %u has %d, not %d", stage, k, m,
				 dim[out->rank - 1], size);
		for (int i = 0; i < rows * bound; i++) {
			float w = i % bound < size ? want[i / bound * size + i % bound] : 0;

			if (got[i] != w)
				fail_msg("%s: element %d of result %u of member %u is %g, not %g",
					 stage, i, k, m, (double)got[i], (double)w);
		}
	}
}

static void members_tell_each_other_their_sizes(void **state)
{
	static const char *const stages[] = { "dynamic", "collectives", "combine", NULL };
	static const int32_t cases[][MEMBERS] = {
		{ 4, 4, 4, 4 }, { 0, 0, 0, 0 }, { 1, 3, 4, 0 }, { 0, 4, 1, 2 }, { 3, 1, 0, 4 },
	};
	const struct tc_source source = { meetings, strlen(meetings), "mlir" };

	(void)state;
	for (unsigned s = 0; s < 4; s++)
		for (unsigned n = 0; n < sizeof(cases) / sizeof(*cases); n++) {
			struct tc_options o = { .level = 1, .verify = true, .replicas = MEMBERS,
						.evaluate_after = stages[s] };
			struct tc_array args[2 * MEMBERS] = { 0 }, *outs;
			float data[MEMBERS][4];
			size_t n_outs;
			struct err err;

			for (unsigned m = 0; m < MEMBERS; m++) {
				for (int i = 0; i < 4; i++)
					data[m][i] = i < cases[n][m] ? brought(m, i) : INFINITY;
				args[2 * m] = (struct tc_array){ ELEM_F32, 1, { 4 }, data[m], 16 };
				args[2 * m + 1] = (struct tc_array){
					ELEM_S32, 0, { 0 }, (void *)(uintptr_t)&cases[n][m], 4 };
			}
			/* At last on devices. */
			if ((stages[s] ? tc_eval_gang : gang_evaluate)(&source, &o, args, 2, &outs,
								       &n_outs, &err))
				fail_msg("%s: %s", stages[s] ? stages[s] : "devices", err.msg);
			assert_int_equal(n_outs, 2 * N_MEETINGS);
			for (unsigned m = 0; m < MEMBERS; m++)
				has(outs + m * n_outs, m, cases[n],
				    stages[s] ? stages[s] : "devices");
			tc_array_free(outs, MEMBERS * n_outs);
		}
}

/* How an array is shared out among members can't depend on how long each has it. */
static void what_is_shared_out_is_static(void **state)
{
	static const struct tc_options four = { .level = 1, .replicas = MEMBERS };
	static const struct refused cases[] = {
		{ MAIN("%0: tensor<<=4xf32>",
		       "%1 = reduce_scatter(%0) {scatter_dimension = 0, " ROWS "} : tensor<2xf32>"
		       SUM("9") "return(%1)\n"), ERR_UNIMPLEMENTED,
		  "reduce_scatter: dim 0 of operand 0", "what each member gets" },
		{ MAIN("%0: tensor<<=4xf32>", "%1 = all_to_all(%0) {split_dimension = 0, "
		       "concat_dimension = 0, split_count = 2, " ROWS "} : tensor<4xf32>\n"
		       "return(%1)\n"),
		  ERR_UNIMPLEMENTED, "all_to_all: dim 0 of operand 0", "what each member gets" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		refuses(&cases[i], &four);
}

/* A text with bounds is printed as it was read. */
static void bounds_are_printed(void **state)
{
	static const char text[] = MAIN("%0: tensor<2x<=4xf32>", "%1 = negate(%0) : "
					"tensor<2x<=4xf32>\nreturn(%1)\n");
	struct tc_source source = { text, strlen(text), "mlir" };
	struct err err;
	char *out;

	(void)state;
	assert_int_equal(tc_print(&source, NULL, "read", &out, &err), 0);
	assert_non_null(strstr(out, "(%0: tensor<2x<=4xf32>)"));
	assert_non_null(strstr(out, "negate(%0) : tensor<2x<=4xf32>"));
	free(out);
	assert_int_equal(tc_print(&source, NULL, "dynamic", &out, &err), 0);
	assert_null(strstr(out, "<="));
	assert_non_null(strstr(out, "tensor<2xi32>"));	/* sizes of all dims */
	free(out);
}

/* ---- broken bytecode ---- */

/* The one place of these bytes in elementwise.mlirbc gets others. */
static void broken(const char *from, const char *to, size_t n, const char *says)
{
	size_t bytes = 0, found = 0, at = 0;
	char *p = torch_read_file(DYNAMIC_DIR "/elementwise.mlirbc", &bytes);
	struct tc_result out;
	struct err err = { 0 };

	assert_non_null(p);
	for (size_t i = 0; i + n <= bytes; i++)
		if (!memcmp(p + i, from, n)) {
			at = i;
			found++;
		}
	assert_int_equal(found, 1);
	memcpy(p + at, to, n);
	assert_int_equal(tc_compile(&(struct tc_source){ p, bytes, "mlir" }, NULL, &out, &err),
			 ERR_INVALID_ARGUMENT);
	if (!strstr(err.msg, says))
		fail_msg("\"%s\" does not say \"%s\"", err.msg, says);
	free(p);
}

static void bounds_that_lie_are_refused(void **state)
{
	/* a list of one bound, 5 */
	static const char bound[] = { 0x25, 0x03, 0x15 };
	/* a dim that is not known */
	static const char dim[] = { 0, -1, -1, -1, -1, -1, -1, -1, -1 };

	(void)state;
	broken(bound, "\x25\x03\x07", 3, "a dim of -2");
	broken(bound, "\x25\x03\x01", 3, "set_dimension_size");	/* 0: it is static */
	broken(bound, "\x25\x01\x15", 3, "a tensor of rank 1 with an encoding that is not");
	broken(bound, "\x05\x03\x15", 3, "a tensor of rank 1 with an encoding that is not");
	broken(dim, "\0\xfe\xff\xff\xff\xff\xff\xff\xff", 9, "that has a bound, too");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(programs_give_what_counts),
		cmocka_unit_test(an_op_without_a_rule_names_itself),
		cmocka_unit_test(random_numbers_are_as_many_as_their_shape_says),
		cmocka_unit_test(a_dim_among_ones_is_the_one_that_is_shorter),
		cmocka_unit_test(a_loop_says_what_gets_shorter),
		cmocka_unit_test(bounds_are_at_most_31_bits),
		cmocka_unit_test(parts_of_an_array_are_static),
		cmocka_unit_test(members_tell_each_other_their_sizes),
		cmocka_unit_test(what_is_shared_out_is_static),
		cmocka_unit_test(bounds_are_printed),
		cmocka_unit_test(bounds_that_lie_are_refused),
	};

	return cmocka_run_group_tests(tests, gang_start, gang_stop);
}
