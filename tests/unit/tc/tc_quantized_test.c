/* SPDX-License-Identifier: Apache-2.0 */
/* Quantized types that lie, and values of one that are taken for another's: real programs of
 * tests/data/programs/make_quantized.py with a few bytes changed. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/compiler/tc.h"

struct program {
	uint8_t bytes[4096];
	size_t n;
};

static struct program load(const char *name)
{
	struct program p = { .n = 0 };
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "tests/data/programs/quantized_%s.mlirbc", name);
	f = fopen(path, "rb");
	if (!f)
		fail_msg("%s", path);
	p.n = fread(p.bytes, 1, sizeof(p.bytes), f);
	fclose(f);
	assert_true(p.n > 0 && p.n < sizeof(p.bytes));
	return p;
}

static int compile(const struct program *p, struct err *err)
{
	static const struct tc_options options = { .level = 1, .verify = true };
	struct tc_result r;
	int code;

	*err = (struct err){ 0 };
	code = tc_compile(&(struct tc_source){ p->bytes, p->n, "mlir" }, &options, &r, err);
	if (!code)
		tc_result_free(&r);
	return code;
}

static void refuses(const struct program *p, int code, const char *says)
{
	struct err err;

	assert_int_equal(compile(p, &err), code);
	if (!strstr(err.msg, says))
		fail_msg("\"%s\" does not say \"%s\"", err.msg, says);
}

/* Where the one place with these bytes is; `any` stands for any byte. */
static size_t find(const struct program *p, const int *bytes, size_t n)
{
	size_t at = p->n, found = 0;

	for (size_t i = 0; i + n <= p->n; i++) {
		size_t k = 0;

		while (k < n && (bytes[k] < 0 || p->bytes[i + k] == bytes[k]))
			k++;
		if (k == n) {
			at = i;
			found++;
		}
	}
	assert_int_equal(found, 1);
	return at;
}

enum { any = -1 };

/* Of !quant.uniform<i8:f32, 0.5:3> in quantized_types: code, flags, storage, expressed, scale,
 * zero point, bounds. */
static const int per_tensor[] = { 0x31, 3, any, any, 0, 0, 0, 0, 0, 0, 0, 0xc0, 0x7f, 0x0d,
				  0xfe, 3, 0xfa, 3 };
enum { FLAGS = 1, STORAGE, EXPRESSED, SCALE = 5, ZERO = 13, MIN = 14, MAX = 16 };

/* A number as it is encoded in two bytes. */
static void put_two(uint8_t *at, int v)
{
	unsigned zigzag = v < 0 ? (unsigned)-v * 2 - 1 : (unsigned)v * 2;

	at[0] = (uint8_t)(zigzag << 2 | 2);
	at[1] = (uint8_t)(zigzag >> 6);
}

static void put_scale(uint8_t *at, double scale)
{
	uint64_t bits, zigzag;

	memcpy(&bits, &scale, sizeof(bits));
	zigzag = bits << 1 ^ (0 - (bits >> 63));
	memcpy(at, &zigzag, sizeof(zigzag));
}

static void scales_that_are_none_are_refused(void **state)
{
	static const struct { double scale; int code; const char *says; } cases[] = {
		{ 0, ERR_INVALID_ARGUMENT, "a scale of 0: it must be above zero and finite" },
		{ -0.5, ERR_INVALID_ARGUMENT, "a scale of -0.5: it must be above zero" },
		{ NAN, ERR_INVALID_ARGUMENT, "nan: it must be above zero and finite" },
		{ INFINITY, ERR_INVALID_ARGUMENT, "a scale of inf: it must be above" },
		{ 1e-40, ERR_UNIMPLEMENTED, "a scale of 1e-40 for f32: scales from 1.17549e-38" },
		{ 1e39, ERR_UNIMPLEMENTED, "a scale of 1e+39 for f32" },
	};
	struct program p = load("types");
	size_t at = find(&p, per_tensor, sizeof(per_tensor) / sizeof(*per_tensor));

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		put_scale(p.bytes + at + SCALE, cases[i].scale);
		refuses(&p, cases[i].code, cases[i].says);
	}
}

static void bounds_and_zero_points_that_do_not_fit_are_refused(void **state)
{
	static const struct { int min, max; const char *says; } cases[] = {
		{ 10, 127, "a zero point of 3, which is not from 10 to 127" },
		{ -128, 2, "a zero point of 3, which is not from -128 to 2" },
		{ -129, 127, "from -129 to 127 of i8: it must be within -128 and 127" },
		{ -128, 128, "from -128 to 128 of i8: it must be within -128 and 127" },
		{ 100, -100, "from 100 to -100 of i8" },
		{ 3, 3, "from 3 to 3 of i8: it must be within -128 and 127, and not of one" },
	};
	struct program p = load("types");
	size_t at = find(&p, per_tensor, sizeof(per_tensor) / sizeof(*per_tensor));

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		put_two(p.bytes + at + MIN, cases[i].min);
		put_two(p.bytes + at + MAX, cases[i].max);
		refuses(&p, ERR_INVALID_ARGUMENT, cases[i].says);
	}
}

static void types_of_other_types_are_refused(void **state)
{
	const struct program good = load("types");
	size_t at = find(&good, per_tensor, sizeof(per_tensor) / sizeof(*per_tensor));
	struct program p = good;

	(void)state;
	p.bytes[at + FLAGS] = 2 << 1 | 1;
	refuses(&p, ERR_INVALID_ARGUMENT, "a quantized type with flags 2");
	p = good;
	p.bytes[at + STORAGE] = good.bytes[at + EXPRESSED];
	refuses(&p, ERR_INVALID_ARGUMENT, "a quantized type of integers of type f32");
	p = good;
	p.bytes[at + EXPRESSED] = good.bytes[at + STORAGE];
	refuses(&p, ERR_UNIMPLEMENTED, "that stand for i8 do not run");
	p = good;
	p.bytes[at + EXPRESSED] = 0xff;
	refuses(&p, ERR_INVALID_ARGUMENT, "type 127 of");
}

static void scales_that_do_not_fit_a_dim_are_refused(void **state)
{
	/* !quant.uniform<i8:f32:1, {0.5, 0.25, 2.0}>: ..., dim, bounds, 3, scales, 3, zeros */
	static const int per_axis[] = { 0x3d, 3, any, any, 3, 0xfe, 3, 0xfa, 3, 7 };
	const struct program good = load("dot");
	size_t at = find(&good, per_axis, sizeof(per_axis) / sizeof(*per_axis));
	struct program p = good;

	(void)state;
	p.bytes[at + 4] = 0 << 1 | 1;
	refuses(&p, ERR_INVALID_ARGUMENT, "whose 3 scales do not fit a dim of 70");
	p.bytes[at + 4] = 5 << 1 | 1;
	refuses(&p, ERR_INVALID_ARGUMENT, "whose 3 scales do not fit a dim of 0");
	p.bytes[at + 4] = 127 << 1 | 1;
	refuses(&p, ERR_INVALID_ARGUMENT, "scales along dim 127");
	p = good;
	assert_int_equal(p.bytes[at + 10 + 3 * 9], 7);
	p.bytes[at + 10 + 3 * 9] = 2 << 1 | 1;
	refuses(&p, ERR_INVALID_ARGUMENT, "3 scales and 2 zero points");
	p = good;
	p.bytes[at + 9] = 0 << 1 | 1;
	assert_int_equal(compile(&p, &(struct err){ 0 }), ERR_INVALID_ARGUMENT);
	/* code 24 in place of 30: the rest of it is another type, whatever it says */
	p = good;
	p.bytes[at] = 24 << 1 | 1;
	assert_int_not_equal(compile(&p, &(struct err){ 0 }), 0);
}

/* Of a name that has one op in the program. */
static void rename_op(struct program *p, const char *from, const char *to)
{
	size_t n = strlen(from);
	uint8_t *at = memmem(p->bytes, p->n, from, n);

	assert_non_null(at);
	assert_int_equal(strlen(to), n);
	memcpy(at, to, n);
}

static void ops_without_a_meaning_are_refused_by_name(void **state)
{
	struct program p = load("narrow");

	(void)state;
	rename_op(&p, "add_v1", "and_v1");
	refuses(&p, ERR_UNIMPLEMENTED, "and: values of !quant.uniform<i4<-7:7>:bf16, 2:1> do not");
	p = load("types");
	rename_op(&p, "uniform_dequantize_v1", "uniform_dequantize_v9");
	refuses(&p, ERR_UNIMPLEMENTED, "uniform_dequantize_v9");
}

/* Each byte a little more or less: some change a type's number, where other integers are meant. */
static void integers_of_one_type_are_not_taken_for_anothers(void **state)
{
	static const char *const names[] = { "bodies", "types", "narrow", "dot", "conv" };
	unsigned found[5] = { 0 };

	(void)state;
	for (unsigned k = 0; k < 5; k++) {
		struct program p = load(names[k]);

		for (size_t i = 0; i < p.n; i++)
			for (int by = -8; by <= 8; by++) {
				struct err err;

				p.bytes[i] = (uint8_t)(p.bytes[i] + by);
				if (compile(&p, &err))
					found[k] += strstr(err.msg, "stand for other") != NULL;
				p.bytes[i] = (uint8_t)(p.bytes[i] - by);
			}
	}
	assert_true(found[0] > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scales_that_are_none_are_refused),
		cmocka_unit_test(bounds_and_zero_points_that_do_not_fit_are_refused),
		cmocka_unit_test(types_of_other_types_are_refused),
		cmocka_unit_test(scales_that_do_not_fit_a_dim_are_refused),
		cmocka_unit_test(ops_without_a_meaning_are_refused_by_name),
		cmocka_unit_test(integers_of_one_type_are_not_taken_for_anothers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
