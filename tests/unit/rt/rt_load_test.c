/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that the device refuses: the error says which op of the framework's program it is and
 * what to do. They are made by changing whole ones, with hashes that fit. And what others do to
 * arguments while a program that is there is launched.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "hal/base/str.h"
#include "hal/hw/isa.h"
#include "runtime/rt_internal.h"

enum { HEAD = 32 + 24, HASH = 64 };	/* of the serialized form: fields, then the hash */

static struct rt_client *client;

static int setup(void **state)
{
	struct rt_client_options o = { .devices = "sim:hbm=16M,lanes=1" };
	struct err err;

	(void)state;
	setenv("TESSERA_CACHE", "off", 1);
	return rt_client_create(&o, &client, &err);
}

static int teardown(void **state)
{
	(void)state;
	rt_client_unref(client);
	return 0;
}

static struct rt_program *compile(const char *text)
{
	struct rt_target target = { .cores = 2, .memory_bytes = 16 << 20 };
	struct rt_program *p;
	struct err err;

	if (!rt_program_compile(&target, text, strlen(text), "mlir", NULL, 0, &p, &err))
		return p;
	print_error("%s\n", err.msg);
	fail();
	return NULL;
}

/* Loads the program with the op of the instruction at a byte changed; the error's code. */
static int load_changed(struct rt_program *p, size_t at, struct err *err)
{
	const struct image *im = rt_program_image(p);
	struct rt_program *changed;
	struct rt_exe *x;
	char hex[65], *all, *text;
	size_t n;
	int code;

	assert_int_equal(rt_program_serialize(p, (void **)&all, &n, err), 0);
	text = memmem(all, n, im->text, im->text_bytes);
	assert_non_null(text);
	((struct isa_insn *)(void *)(text + at))->op = 0xee;
	rt_hash(all + HEAD + HASH, n - HEAD - HASH, hex);
	memcpy(all + HEAD, hex, HASH);
	assert_int_equal(rt_program_deserialize(all, n, &changed, err), 0);
	code = rt_load(client, changed, NULL, 0, &x, err);
	rt_program_unref(changed);
	free(all);
	if (!code)
		rt_exe_unref(x);
	return code;
}

static void a_refused_program_names_its_op(void **state)
{
	struct rt_program *p = compile(
		"module() {sym_name = \"two\"} () {\n"
		"  func() {sym_name = \"main\"} (%0: tensor<8x8xf32>) {\n"
		"    %1 = dot_general(%0, %0) {lhs_batching_dimensions = [], "
		"lhs_contracting_dimensions = [1], precision_config = [0, 0], "
		"rhs_batching_dimensions = [], rhs_contracting_dimensions = [0]} : "
		"tensor<8x8xf32> # product at net.py:12\n"
		"    %2 = reverse(%1) {dimensions = [0]} : tensor<8x8xf32> # order at net.py:13\n"
		"    return(%2)\n  }\n}\n");
	const struct image *im = rt_program_image(p);
	struct err err;

	(void)state;
	assert_true(im->n_debug >= 2);
	for (size_t i = 0; i < im->n_debug; i++) {
		size_t at = im->debug[i].offset;
		char want[64];

		assert_int_equal(load_changed(p, at, &err), ERR_INVALID_ARGUMENT);
		snprintf(want, sizeof(want), "op %s", image_string(im, im->debug[i].op));
		assert_non_null(strstr(err.msg, want));
		assert_non_null(strstr(err.msg, image_string(im, im->debug[i].where)));
		snprintf(want, sizeof(want), "at byte %zu of", at);
		assert_non_null(strstr(err.msg, want));
		assert_non_null(strstr(err.msg, "BAD_PROGRAM"));
		assert_non_null(strstr(err.msg, "TESSERA_DUMP"));
	}
	rt_program_unref(p);
}

static void sizes_that_are_not_those_of_the_bytes_are_refused(void **state)
{
	struct rt_program *p = compile(
		"module() {sym_name = \"twice\"} () {\n"
		"  func() {sym_name = \"main\"} (%0: tensor<4xf32>) {\n"
		"    %1 = add(%0, %0) : tensor<4xf32>\n"
		"    return(%1)\n  }\n}\n");
	static const uint64_t by[] = { 1, 8, (uint64_t)-1, 1ull << 63 };
	struct rt_program *q;
	uint64_t *size;
	struct err err;
	size_t n;
	char *all;

	(void)state;
	assert_int_equal(rt_program_serialize(p, (void **)&all, &n, &err), 0);
	size = (uint64_t *)(void *)(all + HEAD - 3 * sizeof(*size));
	for (unsigned i = 0; i < 12; i++) {
		size[i % 3] += by[i / 3];
		assert_int_equal(rt_program_deserialize(all, n, &q, &err),
				 ERR_INVALID_ARGUMENT);
		assert_non_null(strstr(err.msg, "was cut or changed"));
		size[i % 3] -= by[i / 3];
	}
	assert_int_equal(rt_program_deserialize(all, n, &q, &err), 0);
	rt_program_unref(q);
	rt_program_unref(p);
	free(all);
}

/* The comparator of ApproxTopK is a function: it may call others, and is to fit. */
static void comparators_of_top_k_are_followed(void **state)
{
#define TOP_K(types, body) "module() {sym_name = \"m\"} () {\n" \
	"func() {sym_name = \"main\"} (%0: tensor<8xf32>, %1: tensor<8xi32>, %2: tensor<f32>, " \
	"%3: tensor<i32>) {\n%4, %5 = custom_call(%0, %1, %2, %3) " \
	"{call_target_name = \"ApproxTopK\", called_computations = \"by\", " \
	"attributes = {reduction_dim = 0, top_k = 2}} : tensor<2xf32>, tensor<2xi32>\n" \
	"return(%4, %5)\n}\nfunc() {sym_name = \"gt\"} (%20: tensor<f32>, %21: tensor<f32>) {\n" \
	"%22 = compare(%20, %21) {comparison_direction = <GT>, compare_type = <FLOAT>} : " \
	"tensor<i1>\nreturn(%22)\n}\n" \
	"func() {sym_name = \"by\"} (" types ") {\n%14 = " body " : tensor<i1>\nreturn(%14)\n}\n}\n"
#define CALLS "call(%10, %11) {callee = \"gt\"}"
#define COMPARES "compare(%10, %11) {comparison_direction = <GT>, compare_type = <FLOAT>}"
	static const char wrong[] = TOP_K("%10: tensor<f64>, %11: tensor<f64>, "
					  "%12: tensor<8xi32>, %13: tensor<8xi32>", COMPARES);
	struct rt_target target = { .cores = 2, .memory_bytes = 16 << 20 };
	struct rt_program *p;
	struct err err;

	(void)state;
	rt_program_unref(compile(TOP_K("%10: tensor<f32>, %11: tensor<f32>, %12: tensor<i32>, "
				       "%13: tensor<i32>", CALLS)));
	assert_int_equal(rt_program_compile(&target, wrong, strlen(wrong), "mlir", NULL, 0, &p,
					    &err), ERR_INVALID_ARGUMENT);
	assert_non_null(strstr(err.msg, "its comparator's argument 0"));
}

/* Many functions, of which main is the last and calls the last before it. */
static void write_functions(struct str *out, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		str_printf(out, "func() {sym_name = \"f%u\"} () {\nreturn()\n}\n", i);
	str_printf(out, "func() {sym_name = \"main\"} (%%0: tensor<4xf32>) {\n");
	for (unsigned i = 0; i < n; i++)
		str_printf(out, "call() {callee = \"f%u\"}\n", n - 1);
	str_printf(out, "return(%%0)\n}\n");
}

/* Many constants that differ in their last bytes alone. */
static void write_constants(struct str *out, unsigned n)
{
	str_printf(out, "func() {sym_name = \"main\"} (%%0: tensor<9xf64>) {\n");
	for (unsigned i = 0; i < n; i++)
		str_printf(out, "%%%u = constant() {value = dense<0x%0136u%08x> : tensor<9xf64>} : "
			   "tensor<9xf64>\n%%%u = add(%%%u, %%%u) : tensor<9xf64>\n", 2 * i + 1, 0,
			   i + 1, 2 * i + 2, 2 * i, 2 * i + 1);
	str_printf(out, "return(%%%u)\n}\n", 2 * n);
}

/* A sort by many keys: x0 < y0 or (x0 = y0 and (x1 < y1 or ...)), written from the last one on. */
static void write_keys(struct str *out, unsigned n)
{
	unsigned id = 4 * n;	/* arrays, results, arguments by twos */

	str_printf(out, "func() {sym_name = \"main\"} (");
	for (unsigned i = 0; i < n; i++)
		str_printf(out, "%s%%%u: tensor<9xf32>", i ? ", " : "", i);
	str_printf(out, ") {\n");
	for (unsigned i = 0; i < n; i++)
		str_printf(out, "%s%%%u", i ? ", " : "", n + i);
	str_printf(out, " = sort(");
	for (unsigned i = 0; i < n; i++)
		str_printf(out, "%s%%%u", i ? ", " : "", i);
	str_printf(out, ") {dimension = 0, is_stable = true} : ");
	for (unsigned i = 0; i < n; i++)
		str_printf(out, "%stensor<9xf32>", i ? ", " : "");
	str_printf(out, " (");
	for (unsigned i = 0; i < 2 * n; i++)
		str_printf(out, "%s%%%u: tensor<f32>", i ? ", " : "", 2 * n + i);
	str_printf(out, ") {\n");
	for (unsigned i = n; i-- > 0; id += 4) {
		unsigned x = 2 * n + 2 * i;

		str_printf(out, "%%%u = compare(%%%u, %%%u) {comparison_direction = <LT>, "
			   "compare_type = <FLOAT>} : tensor<i1>\n", id + 3, x, x + 1);
		if (i == n - 1)
			continue;
		str_printf(out, "%%%u = compare(%%%u, %%%u) {comparison_direction = <EQ>, "
			   "compare_type = <FLOAT>} : tensor<i1>\n", id, x, x + 1);
		str_printf(out, "%%%u = and(%%%u, %%%u) : tensor<i1>\n", id + 1, id,
			   i == n - 2 ? id - 1 : id - 2);
		str_printf(out, "%%%u = or(%%%u, %%%u) : tensor<i1>\n", id + 2, id + 3, id + 1);
	}
	str_printf(out, "return(%%%u)\n}\nreturn(%%%u)\n}\n", id - 2, n);
}

/* The least of three, of this thread. */
static int64_t ns_to_compile(void (*write)(struct str *out, unsigned n), unsigned n)
{
	struct str text = { 0 };
	int64_t least = INT64_MAX;

	str_printf(&text, "module() {sym_name = \"m\"} () {\n");
	write(&text, n);
	str_printf(&text, "}\n");
	assert_false(text.failed);
	for (unsigned i = 0; i < 3; i++) {
		struct timespec a, b;
		int64_t ns;

		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
		rt_program_unref(compile(text.text));
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
		ns = (b.tv_sec - a.tv_sec) * 1000000000ll + b.tv_nsec - a.tv_nsec;
		least = ns < least ? ns : least;
	}
	free(text.text);
	return least;
}

/* Eight times as much takes 64 times as long if everything is compared with everything. */
static void time_grows_with_the_program_not_its_square(void **state)
{
	void (*const writers[])(struct str *out, unsigned n) = { write_functions,
								 write_constants };

	(void)state;
	for (unsigned k = 0; k < 2; k++) {
		int64_t small = ns_to_compile(writers[k], 2000);
		int64_t large = ns_to_compile(writers[k], 16000);

		if (large > 32 * small)
			fail_msg("%u: %.1f ms become %.1f", k, (double)small / 1e6,
				 (double)large / 1e6);
	}
}

/* Each pass over three keys looks at the whole comparator, so that eight times as many take up to
 * 64 times as long; and 512 times if it also looks at each of the keys for itself. */
static void time_to_sort_by_many_keys_grows_with_their_square(void **state)
{
	int64_t small = ns_to_compile(write_keys, 120), large = ns_to_compile(write_keys, 960);

	(void)state;
	if (large > 160 * small)
		fail_msg("%.1f ms become %.1f", (double)small / 1e6, (double)large / 1e6);
}

/* Who donates an argument has its memory, and whoever deletes the buffer meanwhile takes nothing
 * from the result that lies there. */
static void a_donated_argument_may_be_deleted_meanwhile(void **state)
{
	struct rt_program *p = compile(
		"module() {sym_name = \"next\"} () {\n"
		"  func() {sym_name = \"main\"} (%0: tensor<4xf32> {alias = 0}) {\n"
		"    %1 = add(%0, %0) : tensor<4xf32>\n"
		"    return(%1)\n  }\n}\n");
	const float in[4] = { 1, 2, 3, 4 };
	float out[4] = { 0 };
	struct rt_shape shape;
	struct rt_buffer *arg, *result = NULL;
	struct rt_event *done = NULL;
	struct rt_exe *x;
	struct err err;

	(void)state;
	assert_int_equal(rt_load(client, p, NULL, 0, &x, &err), 0);
	rt_shape_of(&rt_program_image(p)->shapes[0], &shape);
	assert_int_equal(rt_buffer_new(client, 0, RT_DEVICE, &shape, "test", false, &arg, &err), 0);
	assert_int_equal(hal_copy_in(arg->storage->mem, 0, in, sizeof(in), CLOCK_FOREVER, &err),
			 0);

	struct rt_launch l = { .x = x, .args = &arg, .outs = &result, .done = &done };

	assert_int_equal(rt_launch_take(&l, NULL, &err), 0);
	assert_true(l.donated[0]);
	rt_buffer_delete(arg);
	assert_int_equal(rt_launch_make_results(&l, &err), 0);
	assert_ptr_equal(result->storage, l.storages[0]);
	assert_int_equal(rt_launch_lock(&l, &err), 0);
	assert_int_equal(rt_launch_bind(&l, &err), 0);
	assert_int_equal(rt_launch_submit(&l, &err), 0);
	rt_launch_unlock(&l);
	rt_launch_finish(&l);
	rt_launch_end(&l, false);
	rt_buffer_unref(arg);
	assert_int_equal(hal_queue_wait(client->devices[0].queue, result->value, CLOCK_FOREVER,
					&err), 0);
	assert_int_equal(hal_copy_out(out, result->storage->mem, 0, sizeof(out), CLOCK_FOREVER,
				      &err), 0);
	for (unsigned i = 0; i < 4; i++)
		assert_true(out[i] == 2 * in[i]);
	rt_buffer_unref(result);
	rt_exe_unref(x);
	rt_program_unref(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_refused_program_names_its_op),
		cmocka_unit_test(sizes_that_are_not_those_of_the_bytes_are_refused),
		cmocka_unit_test(comparators_of_top_k_are_followed),
		cmocka_unit_test(time_grows_with_the_program_not_its_square),
		cmocka_unit_test(time_to_sort_by_many_keys_grows_with_their_square),
		cmocka_unit_test(a_donated_argument_may_be_deleted_meanwhile),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
