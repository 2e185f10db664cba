/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that still read memory where their results are to be born, on the device
 * against the evaluator. Each body makes two arrays of two: straight, and as the turn of a
 * loop; with arguments kept, the first donated, both. Sizes lie on both sides of a tile of
 * the model (2048 elements of f32). All numbers are small and whole: results are exact.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hal/base/str.h"
#include "runtime/compiler/tc.h"
#include "runtime/rt.h"

/* In bodies: @A and @B are the two arrays, @V their type, @N a side's elements, @M one
 * less, @H half of them. `gives` names what is returned. */
struct program {
	const char *name, *body, *gives;
	bool is_square;
	int64_t least;
};

#define REVERSED "%30 = reverse(@A) {dimensions = [0]} : @V\n"
#define MINUS_LAST "%31 = slice(@B) {limit_indices = [@N], start_indices = [@M], strides = [1]} " \
		   ": tensor<1xf32>\n"
#define SPREAD(from) "%33 = reshape(" from ") : tensor<f32>\n" \
		     "%34 = broadcast_in_dim(%33) {broadcast_dimensions = []} : @V\n"
#define ZERO "%35 = constant() {value = dense<0x00000000> : tensor<f32>} : tensor<f32>\n"
#define ONE "%36 = constant() {value = dense<0x01000000> : tensor<i32>} : tensor<i32>\n"
#define PLACES "%37 = iota() {iota_dimension = 0} : tensor<@Nx1xi32>\n"
#define INTO "{index_vector_dim = 1, indices_are_sorted = false, input_batching_dims = [], " \
	     "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], " \
	     "scatter_indices_batching_dims = [], unique_indices = false, " \
	     "update_window_dims = []}"
#define TURNED "%30 = transpose(@A) {permutation = [1, 0]} : @V\n"
#define SIGNS "%31 = sign(@A) : @V\n%32 = sign(@B) : @V\n"
#define DOT "{lhs_batching_dimensions = [], lhs_contracting_dimensions = [1], " \
	    "precision_config = [0, 0], rhs_batching_dimensions = [], " \
	    "rhs_contracting_dimensions = [0]}"

static const struct program programs[] = {
	{ "minus its first", "%30 = slice(@A) {limit_indices = [1], start_indices = [0], "
	  "strides = [1]} : tensor<1xf32>\n" SPREAD("%30") "%50 = subtract(@A, %34) : @V\n",
	  "%50, @B", 0, 1 },
	{ "plus its reverse", REVERSED "%50 = subtract(%30, @A) : @V\n", "%50, @B", 0, 1 },
	{ "first minus the other's last", MINUS_LAST SPREAD("%31")
	  "%50 = subtract(@A, %34) : @V\n%51 = subtract(@B, %34) : @V\n", "%50, %51", 0, 1 },
	{ "exchanged", "", "@B, @A", 0, 1 },
	{ "reversed and exchanged", REVERSED "%31 = reverse(@B) {dimensions = [0]} : @V\n",
	  "%31, %30", 0, 1 },
	{ "reversed each", REVERSED "%31 = reverse(@B) {dimensions = [0]} : @V\n",
	  "%30, %31", 0, 1 },
	{ "both of the first", REVERSED, "@A, %30", 0, 1 },
	{ "a view first", REVERSED "%51 = add(@A, @B) : @V\n", "%30, %51", 0, 1 },
	{ "sum and difference", "%50 = add(@A, @B) : @V\n%51 = subtract(@A, @B) : @V\n",
	  "%50, %51", 0, 1 },
	{ "crossed sums", REVERSED "%50 = add(%30, @B) : @V\n%51 = subtract(@A, @B) : @V\n",
	  "%51, %50", 0, 1 },
	{ "behind a barrier", "%29 = optimization_barrier(@A) : @V\n"
	  "%30 = reverse(%29) {dimensions = [0]} : @V\n%50 = subtract(%29, %30) : @V\n",
	  "%50, @B", 0, 1 },
	{ "moved up by one", "%30 = slice(@A) {limit_indices = [@M], start_indices = [0], "
	  "strides = [1]} : tensor<@Mxf32>\n" ONE
	  "%50 = dynamic_update_slice(@A, %30, %36) : @V\n", "%50, @B", 0, 2 },
	{ "moved into the other", "%30 = slice(@A) {limit_indices = [@M], start_indices = [0], "
	  "strides = [1]} : tensor<@Mxf32>\n" ONE
	  "%50 = dynamic_update_slice(@B, %30, %36) : @V\n", "@A, %50", 0, 2 },
	{ "updated twice", "%30 = slice(@A) {limit_indices = [@H], start_indices = [0], "
	  "strides = [1]} : tensor<@Hxf32>\n" ONE
	  "%31 = dynamic_update_slice(@A, %30, %36) : @V\n"
	  "%50 = dynamic_update_slice(%31, %30, %36) : @V\n%51 = add(%31, @B) : @V\n",
	  "%50, %51", 0, 2 },
	{ "where it says itself", "%31 = slice(@A) {limit_indices = [1], start_indices = [0], "
	  "strides = [1]} : tensor<1xf32>\n%32 = reshape(%31) : tensor<f32>\n"
	  "%33 = convert(%32) : tensor<i32>\n"
	  "%30 = slice(@A) {limit_indices = [@N], start_indices = [@H], strides = [1]} : "
	  "tensor<@Rxf32>\n%50 = dynamic_update_slice(@A, %30, %33) : @V\n", "%50, @B", 0, 2 },
	{ "read from where it is written", ONE "%30 = dynamic_slice(@A, %36) "
	  "{slice_sizes = [@H]} : tensor<@Hxf32>\n"
	  "%31 = constant() {value = dense<0x00000000> : tensor<i32>} : tensor<i32>\n"
	  "%50 = dynamic_update_slice(@A, %30, %31) : @V\n", "%50, @B", 0, 2 },
	{ "rolled", "%30 = slice(@A) {limit_indices = [@N], start_indices = [1], "
	  "strides = [1]} : tensor<@Mxf32>\n"
	  "%31 = slice(@A) {limit_indices = [1], start_indices = [0], strides = [1]} : "
	  "tensor<1xf32>\n%50 = concatenate(%30, %31) {dimension = 0} : @V\n", "%50, @B", 0, 2 },
	{ "padded", ZERO "%30 = slice(@A) {limit_indices = [@N], start_indices = [1], "
	  "strides = [1]} : tensor<@Mxf32>\n%50 = pad(%30, %35) {edge_padding_high = [1], "
	  "edge_padding_low = [0], interior_padding = [0]} : @V\n", "%50, @A", 0, 2 },
	{ "scattered from behind", PLACES REVERSED "%50 = scatter(@A, %37, %30) " INTO " : @V "
	  "(%38: tensor<f32>, %39: tensor<f32>) {\nreturn(%39)\n}\n", "%50, @B", 0, 1 },
	{ "scattered at what it holds", "%40 = convert(@A) : tensor<@Nxi32>\n"
	  "%37 = reshape(%40) : tensor<@Nx1xi32>\n" REVERSED "%50 = scatter(@A, %37, %30) " INTO
	  " : @V (%38: tensor<f32>, %39: tensor<f32>) {\n%41 = maximum(%38, %39) : tensor<f32>\n"
	  "return(%41)\n}\n", "%50, @B", 0, 1 },
	{ "scattered into both", PLACES REVERSED "%50, %51 = scatter(@A, @A, %37, %30, @B) "
	  INTO " : @V, @V (%38: tensor<f32>, %39: tensor<f32>, %42: tensor<f32>, "
	  "%43: tensor<f32>) {\n%44 = add(%38, %42) : tensor<f32>\nreturn(%44, %43)\n}\n",
	  "%50, %51", 0, 1 },
	{ "gathered from behind", PLACES "%38 = reverse(%37) {dimensions = [0]} : "
	  "tensor<@Nx1xi32>\n%39 = gather(@A, %38) {collapsed_slice_dims = [0], "
	  "index_vector_dim = 1, indices_are_sorted = false, offset_dims = [], "
	  "operand_batching_dims = [], slice_sizes = [1], start_index_map = [0], "
	  "start_indices_batching_dims = []} : @V\n%50 = subtract(%39, @A) : @V\n",
	  "%50, %39", 0, 1 },
	{ "sorted from behind", REVERSED "%50, %51 = sort(%30, @B) {dimension = 0, "
	  "is_stable = true} : @V, @V (%38: tensor<f32>, %39: tensor<f32>, %40: tensor<f32>, "
	  "%41: tensor<f32>) {\n%42 = compare(%38, %39) {compare_type = <FLOAT>, "
	  "comparison_direction = <LT>} : tensor<i1>\nreturn(%42)\n}\n", "%50, %51", 0, 1 },
	{ "minus its maximum", ZERO "%31 = reduce(@A, %35) {dimensions = [0]} : tensor<f32> "
	  "(%38: tensor<f32>, %39: tensor<f32>) {\n%40 = maximum(%38, %39) : tensor<f32>\n"
	  "return(%40)\n}\n%34 = broadcast_in_dim(%31) {broadcast_dimensions = []} : @V\n"
	  "%50 = subtract(@A, %34) : @V\n", "%50, @B", 0, 1 },
	{ "views of a branch", REVERSED ONE "%31 = slice(@B) {limit_indices = [1], "
	  "start_indices = [0], strides = [1]} : tensor<1xf32>\n%32 = reshape(%31) : tensor<f32>\n"
	  "%33 = convert(%32) : tensor<i32>\n"
	  "%50, %51 = case(%33) : @V, @V () {\nreturn(%30, @A)\n} () {\nreturn(@B, @B)\n} () {\n"
	  "%40 = reverse(@B) {dimensions = [0]} : @V\nreturn(@A, %40)\n}\n", "%50, %51", 0, 1 },
	{ "captured by a loop", REVERSED ONE
	  "%31 = constant() {value = dense<0x00000000> : tensor<i32>} : tensor<i32>\n"
	  "%32, %50 = while(%31, @A) : tensor<i32>, @V (%38: tensor<i32>, %39: @V) {\n"
	  "%40 = compare(%38, %36) {compare_type = <SIGNED>, comparison_direction = <LE>} : "
	  "tensor<i1>\nreturn(%40)\n} (%41: tensor<i32>, %42: @V) {\n"
	  "%43 = subtract(%42, %30) : @V\n%44 = add(%41, %36) : tensor<i32>\n"
	  "return(%44, %43)\n}\n", "%50, @B", 0, 1 },
	{ "views into a loop", REVERSED ONE
	  "%31 = constant() {value = dense<0x00000000> : tensor<i32>} : tensor<i32>\n"
	  "%32, %50, %51 = while(%31, %30, @A) : tensor<i32>, @V, @V (%38: tensor<i32>, "
	  "%39: @V, %49: @V) {\n%40 = compare(%38, %36) {compare_type = <SIGNED>, "
	  "comparison_direction = <LE>} : tensor<i1>\nreturn(%40)\n} (%41: tensor<i32>, %42: @V, "
	  "%43: @V) {\n%44 = reverse(%43) {dimensions = [0]} : @V\n"
	  "%45 = subtract(%42, %44) : @V\n%46 = add(%41, %36) : tensor<i32>\n"
	  "return(%46, %43, %45)\n}\n", "%50, %51", 0, 1 },
	{ "sum with its transpose", TURNED "%50 = add(@A, %30) : @V\n", "%50, @B", 1, 1 },
	{ "transposed", TURNED, "%30, @A", 1, 1 },
	{ "minus its first row", "%31 = slice(@A) {limit_indices = [1, @N], "
	  "start_indices = [0, 0], strides = [1, 1]} : tensor<1x@Nxf32>\n"
	  "%32 = reshape(%31) : tensor<@Nxf32>\n"
	  "%33 = broadcast_in_dim(%32) {broadcast_dimensions = [1]} : @V\n"
	  "%50 = subtract(@A, %33) : @V\n", "%50, @B", 1, 1 },
	{ "a row from its column", "%31 = slice(@A) {limit_indices = [@N, 1], "
	  "start_indices = [0, 0], strides = [1, 1]} : tensor<@Nx1xf32>\n"
	  "%32 = transpose(%31) {permutation = [1, 0]} : tensor<1x@Nxf32>\n" ONE
	  "%33 = constant() {value = dense<0x00000000> : tensor<i32>} : tensor<i32>\n"
	  "%50 = dynamic_update_slice(@A, %32, %36, %33) : @V\n", "%50, @B", 1, 1 },
	{ "product plus itself", SIGNS "%33 = dot_general(%31, %32) " DOT " : @V\n"
	  "%34 = transpose(@A) {permutation = [1, 0]} : @V\n%50 = add(%33, %34) : @V\n",
	  "%50, @B", 1, 1 },
	{ "product over its factor", SIGNS "%50 = dot_general(%31, %31) " DOT " : @V\n"
	  "%51 = add(%50, @B) : @V\n", "%51, %50", 1, 1 },
	{ "columns exchanged", "%31 = slice(@A) {limit_indices = [@N, @N], "
	  "start_indices = [0, @H], strides = [1, 1]} : tensor<@Nx@Rxf32>\n"
	  "%32 = slice(@A) {limit_indices = [@N, @H], start_indices = [0, 0], strides = [1, 1]} "
	  ": tensor<@Nx@Hxf32>\n%50 = concatenate(%31, %32) {dimension = 1} : @V\n",
	  "%50, @B", 1, 2 },
	{ "minus its rows' sums", ZERO "%31 = reduce(@A, %35) {dimensions = [1]} : "
	  "tensor<@Nxf32> (%38: tensor<f32>, %39: tensor<f32>) {\n"
	  "%40 = maximum(%38, %39) : tensor<f32>\nreturn(%40)\n}\n"
	  "%34 = broadcast_in_dim(%31) {broadcast_dimensions = [1]} : @V\n"
	  "%50 = subtract(@A, %34) : @V\n", "%50, @B", 1, 1 },
};

static const char straight[] =
	"module() {sym_name = \"m\"} () {\nfunc() {sym_name = \"main\"} (%0: @V @D, %1: @V @E) {\n"
	"@X"
	"return(@G)\n}\n}\n";
static const char looped[] =
	"module() {sym_name = \"m\"} () {\nfunc() {sym_name = \"main\"} (%0: @V @D, %1: @V @E) {\n"
	"%60 = constant() {value = dense<0x00000000> : tensor<i32>} : tensor<i32>\n"
	"%61 = constant() {value = dense<0x01000000> : tensor<i32>} : tensor<i32>\n"
	"%62 = constant() {value = dense<0x03000000> : tensor<i32>} : tensor<i32>\n"
	"%10, %11, %12 = while(%60, %0, %1) : tensor<i32>, @V, @V "
	"(%13: tensor<i32>, %14: @V, %15: @V) {\n"
	"%16 = compare(%13, %62) {compare_type = <SIGNED>, comparison_direction = <LT>} : "
	"tensor<i1>\nreturn(%16)\n} (%20: tensor<i32>, %21: @V, %22: @V) {\n"
	"@X"
	"%23 = add(%20, %61) : tensor<i32>\nreturn(%23, @G)\n}\n"
	"return(%11, %12)\n}\n}\n";

enum { KEPT, FIRST, BOTH, DONATIONS };
enum { MAX_SIDE = 6000 };

static struct rt_client *client;

static void write_text(const char *from, const struct program *p, bool is_loop, int64_t n,
		       unsigned donated, struct str *out)
{
	for (; *from; from++) {
		if (*from != '@') {
			str_add(out, from, 1);
			continue;
		}
		switch (*++from) {
		case 'A': str_printf(out, is_loop ? "%%21" : "%%0"); break;
		case 'B': str_printf(out, is_loop ? "%%22" : "%%1"); break;
		case 'D': str_printf(out, donated ? "{alias = 0}" : ""); break;
		case 'E': str_printf(out, donated == BOTH ? "{alias = 1}" : ""); break;
		case 'N': str_printf(out, "%ld", n); break;
		case 'M': str_printf(out, "%ld", n - 1); break;
		case 'H': str_printf(out, "%ld", n / 2); break;
		case 'R': str_printf(out, "%ld", n - n / 2); break;
		case 'V':
			str_printf(out, p->is_square ? "tensor<%ldx%ldxf32>" : "tensor<%ldxf32>",
				   n, n);
			break;
		case 'X': write_text(p->body, p, is_loop, n, donated, out); break;
		default: write_text(p->gives, p, is_loop, n, donated, out); break;
		}
	}
}

/* Two arrays of whole numbers from -2 to 4. */
static struct tc_array array(const struct program *p, int64_t n, int64_t step)
{
	size_t count = (size_t)(p->is_square ? n * n : n);
	struct tc_array a = { ELEM_F32, p->is_square ? 2 : 1, { n, n }, malloc(4 * count + 1),
			      4 * count };

	assert_non_null(a.data);
	for (size_t i = 0; i < count; i++)
		((float *)a.data)[i] = (float)((int64_t)(i * 7919 + i / 5) * step % 7 - 2);
	return a;
}

static struct rt_buffer *buffer_of(const struct tc_array *a)
{
	struct rt_shape s = { .elem = ELEM_F32, .rank = a->rank };
	struct rt_buffer *b;
	struct err err;

	memcpy(s.dim, a->dim, a->rank * sizeof(*a->dim));
	if (rt_buffer_from_host(client, 0, RT_DEVICE, &s, a->data, NULL, &b, &err))
		fail_msg("%s", err.msg);
	return b;
}

static void same(struct rt_buffer *b, const struct tc_array *want, const char *what,
		 const char *text)
{
	float *got = malloc(want->bytes + 1);
	struct rt_event *done;
	struct err err;

	assert_non_null(got);
	if (rt_buffer_to_host(b, 0, got, want->bytes, &done, &err) || rt_event_wait(done, &err))
		fail_msg("%s: %s\n%s", what, err.msg, text);
	rt_event_unref(done);
	for (size_t i = 0; i < want->bytes / 4; i++)
		if (got[i] != ((float *)want->data)[i])
			fail_msg("%s: element %zu is %g, not %g, in\n%s", what, i, (double)got[i],
				 (double)((float *)want->data)[i], text);
	free(got);
}

static void check(const struct program *p, bool is_loop, int64_t n, unsigned donated)
{
	struct tc_array in[2] = { array(p, n, 1), array(p, n, 3) }, *want;
	struct rt_buffer *args[2] = { buffer_of(&in[0]), buffer_of(&in[1]) }, *outs[2];
	struct rt_event *done;
	struct str text = { 0 };
	struct rt_exe *x;
	struct err err;
	size_t n_want;

	write_text(is_loop ? looped : straight, p, is_loop, n, donated, &text);
	assert_false(text.failed);
	if (tc_eval(&(struct tc_source){ text.text, text.len, "mlir" }, in, 2, &want, &n_want,
		    &err))
		fail_msg("%s: %s\n%s", p->name, err.msg, text.text);
	assert_int_equal(n_want, 2);
	if (rt_compile(client, text.text, text.len, "mlir", NULL, 0, &x, &err) ||
	    rt_execute(x, args, 2, NULL, outs, &done, &err) || rt_event_wait(done, &err))
		fail_msg("%s: %s\n%s", p->name, err.msg, text.text);
	rt_event_unref(done);
	for (unsigned i = 0; i < 2; i++) {
		same(outs[i], &want[i], p->name, text.text);
		/* What was not given away is as it was. */
		if (donated == KEPT || (donated == FIRST && i))
			same(args[i], &in[i], "an argument", text.text);
		rt_buffer_unref(outs[i]);
		rt_buffer_unref(args[i]);
		free(in[i].data);
	}
	tc_array_free(want, 2);
	rt_exe_unref(x);
	str_free(&text);
}

static void results_are_right_wherever_they_are_born(void **state)
{
	static const int64_t sizes[2][6] = { { 1, 2, 2047, 2048, 2049, MAX_SIDE },
					     { 1, 2, 45, 46, 64, 70 } };

	(void)state;
	for (unsigned i = 0; i < sizeof(programs) / sizeof(*programs); i++)
		for (unsigned k = 0; k < 6; k++)
			for (unsigned how = 0; how < 2 * DONATIONS; how++) {
				int64_t n = sizes[programs[i].is_square][k];

				if (n >= programs[i].least)
					check(&programs[i], how % 2, n, how / 2);
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(results_are_right_wherever_they_are_born),
	};
	const char *devices = getenv("TESSERA_DEVICES");
	struct rt_client_options o = { .devices = devices ? devices : "sim:hbm=256M" };
	struct err err;
	int failed;

	setenv("TESSERA_CACHE", "off", 1);
	if (rt_client_create(&o, &client, &err)) {
		fprintf(stderr, "%s\n", err.msg);
		return 1;
	}
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rt_client_unref(client);
	return failed;
}
