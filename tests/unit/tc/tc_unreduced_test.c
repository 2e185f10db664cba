/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays that are left as parts of a sum along axes of the mesh, as arguments, between ops and as
 * results: the parts add up to what they should at both levels, and where the compiler need not
 * touch them they are what each member has.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hal/base/elem.h"
#include "hal/base/str.h"
#include "hal/hw/image.h"
#include "runtime/compiler/tc.h"

enum { DEVICES = 8, ROWS = 8, COLUMNS = 4, N = ROWS * COLUMNS };

/* A mesh of x by y, [4, 2]: member m is at x m / 2, y m % 2. The whole is row by row 1, 2, ...; a
 * part of a sum is the whole times this. */
static int32_t weight(unsigned m)
{
	static const int32_t weights[] = { 3, -1, 4, 4 };

	return weights[m / 2];
}

struct program {
	const char *in, *out;	/* how the two arguments and the result lie */
	const char *body;	/* from %0 and %1 to return */
	int32_t times;		/* the whole, this often, is what the result's parts add up to */
	bool over_x, over_y;	/* along these it is left */
	int32_t each;		/* not 0: and each member's is its weight times that, at level 1 */
	bool by_rows;		/* a member has two rows of the result, by x */
};

static void run(const struct program *p, unsigned level, struct tc_array **outs)
{
	struct str text = { 0 };
	struct tc_array args[DEVICES * 2];
	struct tc_options o = { .level = level, .verify = true, .partitions = DEVICES };
	struct err err;
	size_t n;

	str_printf(&text, "module() {meshes = {mesh = \"[x=4,y=2]\"}} () {\n"
		   "func() {sym_name = \"main\"} (%%0: tensor<8x4xi32> {sharding = \"%s\"}, "
		   "%%1: tensor<8x4xi32> {sharding = \"%s\"}) -> ({sharding = \"%s\"}) {\n%s}\n}\n",
		   p->in, p->in, p->out, p->body);
	for (unsigned i = 0; i < DEVICES * 2; i++) {
		int32_t *v = malloc(N * sizeof(*v));

		assert_non_null(v);
		for (int k = 0; k < N; k++)
			v[k] = (k + 1) * (strstr(p->in, "unreduced") ? weight(i / 2) : 1);
		args[i] = (struct tc_array){ ELEM_S32, 2, { ROWS, COLUMNS }, v, N * sizeof(*v) };
	}
	if (tc_eval_gang(&(struct tc_source){ text.text, text.len, "mlir" }, &o, args, 2, outs, &n,
			 &err))
		fail_msg("level %u: %s\n%s", level, err.msg, text.text);
	assert_int_equal(n, 1);
	for (unsigned i = 0; i < DEVICES * 2; i++)
		free(args[i].data);
	str_free(&text);
}

static void check(const struct program *p)
{
	for (unsigned level = 0; level < 2; level++) {
		const int count = p->by_rows ? N / 4 : N;
		struct tc_array *outs;

		run(p, level, &outs);
		for (int m = 0; m < DEVICES; m++)
			for (int k = 0; k < count; k++) {
				int32_t whole = (p->by_rows ? m / 2 * count : 0) + k + 1, sum = 0;

				assert_int_equal(outs[m].bytes, count * 4);
				for (int other = 0; other < DEVICES; other++)
					if ((p->over_x || other / 2 == m / 2) &&
					    (p->over_y || other % 2 == m % 2))
						sum += ((int32_t *)outs[other].data)[k];
				if (sum != whole * p->times)
					fail_msg("%s to %s, level %u: member %d, element %d: the "
						 "parts add up to %d, should be %d", p->in, p->out,
						 level, m, k, sum, whole * p->times);
				if (level && p->each)
					assert_int_equal(((int32_t *)outs[m].data)[k],
							 (k + 1) * weight((unsigned)m) * p->each);
			}
		tc_array_free(outs, DEVICES);
	}
}

#define SUM_X "@mesh[{},{}]unreduced{x}"
#define WHOLE "@mesh[{},{}]"
#define AS(n, from, sharding) "%" n " = sharding_constraint(%" from ") {sharding = \"" sharding \
	"\"} : tensor<8x4xi32>\n"
#define OP(n, name, a, b) "%" n " = " name "(%" a ", %" b ") : tensor<8x4xi32>\n"

/* Along x weights add up to 10. */
static void test_sums(void **state)
{
	static const struct program programs[] = {
		{ SUM_X, WHOLE, "return(%0)\n", 10, false, false, 0, false },
		{ SUM_X, WHOLE, AS("2", "0", WHOLE) "return(%2)\n", 10, false, false, 0, false },
		{ SUM_X, "@mesh[{x},{}]", "return(%0)\n", 10, false, false, 0, true },
		{ SUM_X, SUM_X, "return(%0)\n", 10, true, false, 1, false },
		{ WHOLE, SUM_X, "return(%0)\n", 1, true, false, 0, false },
		{ "@mesh[{},{}]unreduced{x,y}", WHOLE, "return(%0)\n", 20, false, false, 0, false },
		{ "@mesh[{},{}]unreduced{x,y}", "@mesh[{},{}]unreduced{y}", "return(%0)\n", 20,
		  false, true, 0, false },
		{ SUM_X, "@mesh[{},{}]unreduced{y}", "return(%0)\n", 10, false, true, 0, false },
		{ WHOLE, "@mesh[{},{}]unreduced{x,y}", "return(%0)\n", 1, true, true, 0, false },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(programs) / sizeof(*programs); i++)
		check(&programs[i]);
}

/* Sums and differences stay parts; for anything else they are put together first. */
static void test_ops(void **state)
{
	static const struct program programs[] = {
		{ SUM_X, SUM_X, OP("2", "add", "0", "1") AS("3", "2", SUM_X) "return(%3)\n", 20,
		  true, false, 2, false },
		{ SUM_X, SUM_X, OP("2", "add", "0", "1") OP("3", "subtract", "2", "0")
		  AS("4", "3", SUM_X) "return(%4)\n", 10, true, false, 0, false },
		{ SUM_X, WHOLE, OP("2", "add", "0", "1") "return(%2)\n", 20, false, false, 0,
		  false },
		/* The larger of what is 10 and -10, not of the parts. */
		{ SUM_X, SUM_X, "%2 = negate(%0) : tensor<8x4xi32>\n" AS("3", "2", SUM_X)
		  OP("4", "maximum", "0", "3") AS("5", "4", SUM_X) "return(%5)\n", 10, true, false,
		  0, false },
		{ WHOLE, SUM_X, OP("2", "add", "0", "1") AS("3", "2", SUM_X) "return(%3)\n", 2,
		  true, false, 0, false },
		/* Twice, once as it lies and once whole. */
		{ SUM_X, WHOLE, AS("2", "0", WHOLE) OP("3", "maximum", "2", "0") "return(%3)\n", 10,
		  false, false, 0, false },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(programs) / sizeof(*programs); i++)
		check(&programs[i]);
}

/* Of a product over what is cut along x each member leaves its own part. */
static void test_product(void **state)
{
	static const char text[] = "module() {meshes = {mesh = \"[x=4,y=2]\"}} () {\n"
		"func() {sym_name = \"main\"} (%0: tensor<2x8xi32> {sharding = \"@mesh[{},{x}]\"}, "
		"%1: tensor<8x3xi32> {sharding = \"@mesh[{x},{}]\"}) -> ({sharding = \"" SUM_X
		"\"}) {\n%2 = dot_general(%0, %1) {lhs_batching_dimensions = [], "
		"rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], "
		"rhs_contracting_dimensions = [0]} : tensor<2x3xi32>\n"
		"%3 = sharding_constraint(%2) {sharding = \"" SUM_X "\"} : tensor<2x3xi32>\n"
		"return(%3)\n}\n}\n";
	const struct tc_options o = { .level = 1, .verify = true, .partitions = DEVICES };
	int32_t a[2 * 2], b[2 * 3];
	struct tc_array args[DEVICES * 2], *outs;
	struct err err;
	size_t n;

	(void)state;
	for (int k = 0; k < 4; k++)
		a[k] = k + 1;
	for (int k = 0; k < 6; k++)
		b[k] = 10 * k;
	for (int m = 0; m < DEVICES; m++) {
		args[2 * m] = (struct tc_array){ ELEM_S32, 2, { 2, 2 }, a, sizeof(a) };
		args[2 * m + 1] = (struct tc_array){ ELEM_S32, 2, { 2, 3 }, b, sizeof(b) };
	}
	if (tc_eval_gang(&(struct tc_source){ text, sizeof(text) - 1, "mlir" }, &o, args, 2, &outs,
			 &n, &err))
		fail_msg("%s", err.msg);
	for (int m = 0; m < DEVICES; m++)
		for (int i = 0; i < 2; i++)
			for (int j = 0; j < 3; j++)
				assert_int_equal(((int32_t *)outs[m].data)[3 * i + j],
						 a[2 * i] * b[j] + a[2 * i + 1] * b[3 + j]);
	tc_array_free(outs, DEVICES);
}

/* As JAX 0.10.2's CPU backend writes them: of x; of x and cut by y; of both. */
static void test_what_frameworks_are_told(void **state)
{
	static const struct { const char *text, *bytes; size_t n; } is[] = {
#define ROW(text, bytes) { text, bytes, sizeof(bytes) - 1 }
		ROW(SUM_X,
		    "\x08\x03\x1a\x04\x01\x01\x04\x02\x42\x02\x06\x00\x4a\x01\x08\x52\x01\x00"),
		ROW("@mesh[{y},{}]unreduced{x}",
		    "\x08\x03\x1a\x03\x02\x01\x04\x42\x01\x06\x4a\x02\x04\x02\x52\x02\x01\x00"),
		ROW("@mesh[{x},{}]unreduced{y}",
		    "\x08\x03\x1a\x03\x04\x01\x02\x42\x01\x06\x4a\x01\x08\x52\x01\x00"),
		ROW("@mesh[{},{}]unreduced{y}", "\x08\x03\x1a\x04\x01\x01\x02\x04\x42\x02\x06\x00"
						"\x4a\x02\x04\x02\x52\x02\x01\x00"),
		ROW("@mesh[{},{}]unreduced{x,y}", "\x08\x06"),
#undef ROW
	};
	const struct tc_options o = { .level = 1, .partitions = DEVICES };

	(void)state;
	for (unsigned i = 0; i < sizeof(is) / sizeof(*is); i++) {
		struct str text = { 0 };
		struct tc_result r;
		struct image *im;
		const void *bytes;
		struct err err;
		size_t at = 0;
		uint32_t n;

		str_printf(&text, "module() {meshes = {mesh = \"[x=4,y=2]\"}} () {\n"
			   "func() {sym_name = \"main\"} (%%0: tensor<8x4xf32> {sharding = "
			   "\"%s\"}) -> ({}) {\nreturn(%%0)\n}\n}\n", is[i].text);
		if (tc_compile(&(struct tc_source){ text.text, text.len, "mlir" }, &o, &r, &err) ||
		    image_parse(r.image, r.image_bytes, &im, &err))
			fail_msg("%s", err.msg);
		bytes = image_next_sharding(im, &at, &n);
		assert_non_null(bytes);
		assert_int_equal(n, is[i].n);
		assert_memory_equal(bytes, is[i].bytes, n);
		image_free(im);
		tc_result_free(&r);
		str_free(&text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_ops),
		cmocka_unit_test(test_product),
		cmocka_unit_test(test_what_frameworks_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
