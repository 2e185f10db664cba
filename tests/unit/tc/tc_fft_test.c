/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fourier transforms: what lowering makes of them, by the evaluator, against what they are by
 * definition; the code that is written; and what is no transform. Large ones, and the device's
 * results, are held against NumPy's by tests/jax/test_fft.py.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hal/base/elem.h"
#include "hal/hw/image.h"
#include "hal/hw/isa.h"
#include "runtime/compiler/back/verify.h"
#include "runtime/compiler/tc.h"

enum { FFT, IFFT, RFFT, IRFFT };

static const char *const kinds[] = { "FFT", "IFFT", "RFFT", "IRFFT" };

/* A transform along `n` dims from `first` on; dim: of the side with all elements. */
struct transform {
	int kind;
	bool is_wide;
	unsigned rank, first, n;
	int64_t dim[12];
};

static struct tc_array array_of(const struct transform *t, bool is_result)
{
	bool is_real = t->kind == (is_result ? IRFFT : RFFT);
	bool is_half = t->kind == (is_result ? RFFT : IRFFT);
	struct tc_array a = { .rank = t->rank, .bytes = 1 };

	a.elem = is_real ? (t->is_wide ? ELEM_F64 : ELEM_F32) : t->is_wide ? ELEM_C128 : ELEM_C64;
	memcpy(a.dim, t->dim, t->rank * sizeof(*a.dim));
	if (is_half && a.dim[t->first + t->n - 1])
		a.dim[t->first + t->n - 1] = a.dim[t->first + t->n - 1] / 2 + 1;
	for (unsigned d = 0; d < t->rank; d++)
		a.bytes *= (size_t)a.dim[d];
	a.bytes *= elem_bytes(a.elem);
	return a;
}

static const char *type_text(char *out, const struct tc_array *a)
{
	size_t n = (size_t)sprintf(out, "tensor<");

	for (unsigned d = 0; d < a->rank; d++)
		n += (size_t)sprintf(out + n, "%ldx", (long)a->dim[d]);
	sprintf(out + n, "%s>", elem_text(a->elem));
	return out;
}

/* more: further attributes, or "". */
static void write_program(const struct transform *t, const char *more, char *out, size_t room)
{
	struct tc_array in = array_of(t, false), result = array_of(t, true);
	char types[2][200], lengths[100];
	size_t n = 0;

	lengths[0] = 0;
	for (unsigned i = 0; i < t->n; i++)
		n += (size_t)sprintf(lengths + n, "%s%ld", i ? ", " : "",
				     (long)t->dim[t->first + i]);
	snprintf(out, room, "module() () {\nfunc() {sym_name = \"main\"} (%%1: %s) {\n"
		 "%%2 = fft(%%1) {fft_type = <%s>, fft_length = [%s]%s} : %s # fft at f.py:3\n"
		 "return(%%2)\n}\n}\n", type_text(types[0], &in), kinds[t->kind], lengths, more,
		 type_text(types[1], &result));
}

static bool is_narrow(const struct tc_array *a)
{
	return a->elem == ELEM_F32 || a->elem == ELEM_C64;
}

static size_t parts_of(const struct tc_array *a)
{
	return a->bytes / (is_narrow(a) ? 4 : 8);
}

static double part_at(const struct tc_array *a, size_t i)
{
	return is_narrow(a) ? (double)((float *)a->data)[i] : ((double *)a->data)[i];
}

static void put(const struct tc_array *a, size_t i, double x)
{
	if (is_narrow(a))
		((float *)a->data)[i] = (float)x;
	else
		((double *)a->data)[i] = x;
}

static void fill(struct tc_array *a)
{
	static uint32_t seed = 1;

	a->data = malloc(a->bytes + 1);
	assert_non_null(a->data);
	for (size_t i = 0; i < parts_of(a); i++) {
		double x;

		seed = seed * 1664525u + 1013904223u;
		x = (double)(int32_t)seed * 0x1p-31;
		put(a, i, x);
	}
}

static struct tc_array *evaluate(const char *text, const struct tc_array *in, size_t n_outs)
{
	struct tc_array *out;
	struct err err;
	size_t n;

	if (tc_eval(&(struct tc_source){ text, strlen(text), "mlir" }, in, 1, &out, &n, &err))
		fail_msg("%s\n%.2000s", err.msg, text);
	assert_int_equal(n, n_outs);
	return out;
}

static char *lowered(const char *text)
{
	const struct tc_options options = { .level = 1, .verify = true };
	struct err err;
	char *out;

	if (tc_print(&(struct tc_source){ text, strlen(text), "mlir" }, &options, "decompose",
		     &out, &err))
		fail_msg("%s\n%s", err.msg, text);
	return out;
}

/* By the size of the whole, as errors of transforms spread. */
static void same_numbers(const char *text, const struct tc_array *got, const struct tc_array *want)
{
	double size = 0, error = 0, most = is_narrow(want) ? 4e-7 : 4e-15;

	assert_int_equal(got->elem, want->elem);
	assert_int_equal(got->bytes, want->bytes);
	for (size_t i = 0; i < parts_of(want); i++) {
		double x = part_at(got, i), y = part_at(want, i);

		size += y * y;
		error += (x - y) * (x - y);
	}
	if (!(sqrt(error) <= most * sqrt(size)))
		fail_msg("off by %g:\n%s", sqrt(error / size), text);
}

static unsigned count(const char *text, const char *what)
{
	unsigned n = 0;

	for (; (text = strstr(text, what)); text++)
		n++;
	return n;
}

/* What does not count of half a spectrum along the last dim. */
static void spoil_ends(const struct tc_array *a, int64_t n)
{
	size_t row = 2 * (size_t)(n / 2 + 1);

	for (size_t i = 0; n && i < parts_of(a); i += row) {
		put(a, i + 1, INFINITY);
		if (n % 2 == 0)
			put(a, i + row - 1, NAN);
	}
}

/* The lowered program is the same function; n_ops: transforms in it. */
static void check(const struct transform *t, const char *more, unsigned n_ops)
{
	struct tc_array in = array_of(t, false), *want, *got;
	char text[1200], *low;

	write_program(t, more, text, sizeof(text));
	low = lowered(text);
	fill(&in);
	if (t->kind == IRFFT && t->n == 1 && t->first + 1 == t->rank)
		spoil_ends(&in, t->dim[t->first]);
	want = evaluate(text, &in, 1);
	got = evaluate(low, &in, 1);
	same_numbers(text, got, want);
	if (count(low, " = fft(") != n_ops || count(low, "dimension = ") < n_ops)
		fail_msg("%u transforms, not %u:\n%.4000s", count(low, " = fft("), n_ops, low);
	tc_array_free(want, 1);
	tc_array_free(got, 1);
	free(low);
	free(in.data);
}

/* 61: the largest prime of the instruction; 67, 97 and others go by convolution: a transform of its
 * filter, one there and one back. */
static void each_length_is_the_same_function(void **state)
{
	static const int64_t more[] = { 97, 122, 127, 134, 210, 256, 257, 509 };

	(void)state;
	for (int64_t i = 1; i <= 78; i++)
		for (unsigned k = 0; k < 8; k++) {
			int64_t n = i <= 70 ? i : more[i - 71];

			check(&(struct transform){ (int)k / 2, k % 2, 2, 1, 1, { 2, n } }, "",
			      isa_fft_fits(n) ? 1 : 3);
		}
}

/* 20100 = 67 * 300: as along its largest prime, of which there are many lines, not along all. */
static void a_long_length_goes_by_convolution_of_its_prime_alone(void **state)
{
	char text[1200], *low;

	(void)state;
	write_program(&(struct transform){ FFT, false, 1, 0, 1, { 20100 } }, "", text,
		      sizeof(text));
	low = lowered(text);
	assert_int_equal(count(low, " = fft("), 4);
	assert_int_equal(count(low, "fft_length = [144]"), 3);
	assert_int_equal(count(low, "fft_length = [300]"), 1);
	free(low);
}

static void several_dims_are_one_after_the_other(void **state)
{
	static const int64_t shapes[][3] = { { 3, 4, 5 }, { 5, 6, 8 }, { 2, 67, 5 }, { 67, 2, 3 },
					     { 3, 4, 67 }, { 1, 1, 1 }, { 6, 1, 7 } };

	(void)state;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++)
		for (unsigned n = 1; n <= 3; n++)
			for (int kind = FFT; kind <= IRFFT; kind++) {
				struct transform t = { kind, i % 2, 3, 3 - n, n, { 0 } };
				unsigned ops = n;

				memcpy(t.dim, shapes[i], sizeof(shapes[i]));
				for (unsigned d = t.first; d < 3; d++)
					ops += t.dim[d] == 67 ? 2 : 0;
				check(&t, "", ops);
			}
}

#define HALF ", scale = dense<0x000000000000e03f> : tensor<f64>"

static void nothing_is_transformed_to_nothing(void **state)
{
	static const int64_t shapes[][2] = { { 0, 4 }, { 3, 0 }, { 0, 0 }, { 0, 67 } };

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		for (int kind = FFT; kind <= IRFFT; kind++) {
			struct transform t = { kind, false, 2, 1, 1,
					       { shapes[i][0], shapes[i][1] } };

			check(&t, "", 0);
			check(&t, ", dimension = 1" HALF, 0);
		}
}

/* More dims than an instruction has. */
static void others_are_joined_where_there_are_many(void **state)
{
	(void)state;
	for (int kind = FFT; kind <= IRFFT; kind++) {
		check(&(struct transform){ kind, false, 9, 8, 1, { 2, 1, 2, 1, 1, 3, 1, 2, 6 } },
		      "", 1);
		check(&(struct transform){ kind, true, 9, 6, 3, { 2, 1, 2, 1, 1, 3, 2, 5, 67 } },
		      "", 5);
		check(&(struct transform){ kind, true, 8, 6, 2, { 2, 1, 2, 1, 1, 3, 5, 67 } },
		      "", 4);
	}
}

/* As the device has it: any dim, any number. */
static void along_any_dim_it_is_the_same_function(void **state)
{
	static const char *const along[] = { ", dimension = 0" HALF, ", dimension = 1" HALF,
					     ", dimension = 2" HALF };

	(void)state;
	for (unsigned d = 0; d < 3; d++)
		for (int kind = FFT; kind <= IRFFT; kind++) {
			struct transform t = { kind, kind % 2, 3, d, 1, { 5, 6, 7 } };

			check(&t, along[d], 1);
			t.dim[d] = 69;
			check(&t, along[d], 1);
			t.dim[d] = 71;
			check(&t, along[d], 3);
		}
}

/* Dim 0 and the number by definition. */
static void along_a_dim_is_along_the_last_one_of_it_turned(void **state)
{
	static const char text[] =
		"module() () {\nfunc() {sym_name = \"main\"} (%1: tensor<5x3xcomplex<f64>>) {\n"
		"%2 = fft(%1) {fft_type = <IFFT>, fft_length = [5], dimension = 0"
		", scale = dense<0x000000000000f03f> : tensor<f64>} : tensor<5x3xcomplex<f64>>\n"
		"%3 = transpose(%1) {permutation = [1, 0]} : tensor<3x5xcomplex<f64>>\n"
		"%4 = fft(%3) {fft_type = <IFFT>, fft_length = [5]} : tensor<3x5xcomplex<f64>>\n"
		"%5 = transpose(%4) {permutation = [1, 0]} : tensor<5x3xcomplex<f64>>\n"
		"return(%2, %5)\n}\n}\n";
	struct tc_array in = { ELEM_C128, 2, { 5, 3 }, NULL, 240 }, *out;

	(void)state;
	fill(&in);
	out = evaluate(text, &in, 2);
	for (size_t i = 0; i < 30; i++)
		assert_true(fabs(part_at(&out[0], i) - 5 * part_at(&out[1], i)) < 1e-14);
	tc_array_free(out, 2);
	free(in.data);
}

static void what_is_no_transform_is_refused(void **state)
{
	static const struct { struct transform t; const char *more, *says; } bad[] = {
		{ { FFT, 0, 2, 1, 1, { 4, 6 } }, ", dimension = 1", "a scale is one f64" },
		{ { FFT, 0, 2, 1, 1, { 4, 6 } }, HALF, "a scale is one f64" },
		{ { FFT, 0, 2, 1, 1, { 4, 6 } }, ", dimension = 1, scale = dense<0x00000000> : "
		  "tensor<f32>", "a scale is one f64" },
		{ { FFT, 0, 2, 0, 2, { 4, 6 } }, ", dimension = 0" HALF, "a scale is one f64" },
		{ { FFT, 0, 2, 1, 1, { 4, 6 } }, ", dimension = 2" HALF, "dimension is 2 of 2" },
		{ { FFT, 0, 2, 1, 1, { 4, 6 } }, ", dimension = -1" HALF, "dimension is -1" },
		{ { FFT, 0, 2, 1, 1, { 4, 6 } }, ", dimension = 0" HALF, "dim 0 does not fit" },
		{ { RFFT, 0, 2, 1, 1, { 6, 6 } }, ", dimension = 0" HALF, "dim 0 does not fit" },
		{ { FFT, 0, 2, 0, 1, { 4, 6 } }, "", "dim 1 does not fit" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct tc_result r;
		char text[1200];
		struct err err;

		write_program(&bad[i].t, bad[i].more, text, sizeof(text));
		if (!tc_compile(&(struct tc_source){ text, strlen(text), "mlir" }, NULL, &r, &err))
			fail_msg("it compiles:\n%s", text);
		if (err.code != ERR_INVALID_ARGUMENT || !strstr(err.msg, bad[i].says))
			fail_msg("\"%s\" does not say \"%s\"", err.msg, bad[i].says);
	}
}

/* StableHLO has the last dims alone. */
static void along_a_dim_it_has_no_words_in_stablehlo(void **state)
{
	const struct tc_options options = { .level = 1, .partitions = 2 };
	const struct transform t = { FFT, 0, 2, 0, 1, { 4, 6 } };
	char text[1200], *out;
	struct err err;
	size_t n;

	(void)state;
	write_program(&t, ", dimension = 0" HALF, text, sizeof(text));
	assert_int_equal(tc_member_program(&(struct tc_source){ text, strlen(text), "mlir" },
					   &options, &out, &n, &err), ERR_UNIMPLEMENTED);
	if (!strstr(err.msg, "fft") || !strstr(err.msg, "it can't be shown"))
		fail_msg("%s", err.msg);
}

/* ---- code ---- */

struct code { struct isa_fft fft[8]; unsigned n_fft, n_other; uint64_t temp_bytes; };

/* The instructions of a program with these lines but for HALT. */
static struct code code_of(const char *args, const char *lines)
{
	struct code code = { .n_fft = 0 };
	struct tc_result r;
	struct image *im;
	char text[1200];
	struct err err;

	snprintf(text, sizeof(text), "module() () {\nfunc() {sym_name = \"main\"} (%s) {\n%s"
		 "}\n}\n", args, lines);
	if (tc_compile(&(struct tc_source){ text, strlen(text), "mlir" }, NULL, &r, &err) ||
	    image_parse(r.image, r.image_bytes, &im, &err))
		fail_msg("%s\n%s", err.msg, text);
	for (size_t at = 0; at < im->text_bytes;) {
		const struct isa_insn *insn = (const void *)((const char *)im->text + at);

		if (insn->op == ISA_FFT && code.n_fft < 8)
			code.fft[code.n_fft++] = *(const struct isa_fft *)(const void *)insn;
		else
			code.n_other += insn->op != ISA_HALT;
		at += insn->bytes;
	}
	code.temp_bytes = im->info.temp_bytes;
	image_free(im);
	tc_result_free(&r);
	return code;
}

enum { ARG = 2, RESULT = 3 };	/* bindings, of programs with one of each */

static void a_transform_is_one_instruction(void **state)
{
	struct code c = code_of("%1: tensor<4x6x5xf32>", "%2 = fft(%1) {fft_type = <RFFT>, "
				"fft_length = [5]} : tensor<4x6x3xcomplex<f32>>\nreturn(%2)\n");

	(void)state;
	assert_int_equal(c.n_fft, 1);
	assert_int_equal(c.n_other, 0);
	assert_int_equal(c.fft[0].insn.flags, 0);
	assert_int_equal(c.fft[0].axis, 2);
	assert_int_equal(c.fft[0].dim[2], 5);
	assert_int_equal(c.fft[0].src.binding, ARG);
	assert_int_equal(c.fft[0].dst.binding, RESULT);
	assert_int_equal(c.fft[0].src.stride[1], 20);
	assert_int_equal(c.fft[0].dst.stride[1], 24);
	assert_true(c.fft[0].scale == 1);
	c = code_of("%1: tensor<7x3xcomplex<f64>>", "%2 = fft(%1) {fft_type = <IRFFT>, "
		    "fft_length = [4]} : tensor<7x4xf64>\nreturn(%2)\n");
	assert_int_equal(c.n_fft, 1);
	assert_int_equal(c.n_other, 0);
	assert_int_equal(c.fft[0].insn.flags, ISA_FLAG_INVERSE);
	assert_int_equal(c.fft[0].src.elem, ELEM_C128);
	assert_int_equal(c.fft[0].dst.elem, ELEM_F64);
	assert_true(c.fft[0].scale == 0.25);
}

/* Frameworks turn the dim to the end and back. */
static void views_are_read_and_written_where_they_lie(void **state)
{
	struct code c = code_of("%1: tensor<8x6xcomplex<f32>>",
				"%2 = transpose(%1) {permutation = [1, 0]} : "
				"tensor<6x8xcomplex<f32>>\n"
				"%3 = fft(%2) {fft_type = <FFT>, fft_length = [8]} : "
				"tensor<6x8xcomplex<f32>>\n"
				"%4 = transpose(%3) {permutation = [1, 0]} : "
				"tensor<8x6xcomplex<f32>>\nreturn(%4)\n");

	(void)state;
	assert_int_equal(c.n_fft, 1);
	assert_int_equal(c.n_other, 0);
	assert_int_equal(c.fft[0].src.stride[1], 48);
	assert_int_equal(c.fft[0].dst.binding, RESULT);
	assert_int_equal(c.fft[0].dst.stride[0], 8);
	assert_int_equal(c.fft[0].dst.stride[1], 48);
	c = code_of("%1: tensor<10x9xf32>",
		    "%2 = slice(%1) {start_indices = [1, 3], limit_indices = [9, 9], strides = "
		    "[2, 1]} : tensor<4x6xf32>\n"
		    "%3 = fft(%2) {fft_type = <RFFT>, fft_length = [6]} : "
		    "tensor<4x4xcomplex<f32>>\nreturn(%3)\n");
	assert_int_equal(c.n_fft, 1);
	assert_int_equal(c.n_other, 0);
	assert_int_equal(c.fft[0].src.offset, 48);
	assert_int_equal(c.fft[0].src.stride[0], 72);
}

/* The result is the place of all steps; turned ones stay in a temporary that ends, or where an
 * argument ends that the result may take. */
static void complex_numbers_are_changed_in_their_places(void **state)
{
	struct code c = code_of("%1: tensor<4x8x6xcomplex<f32>>",
				"%2 = fft(%1) {fft_type = <FFT>, fft_length = [4, 8, 6]} : "
				"tensor<4x8x6xcomplex<f32>>\nreturn(%2)\n");

	(void)state;
	assert_int_equal(c.n_fft, 3);
	assert_int_equal(c.n_other, 0);
	assert_int_equal(c.temp_bytes, 0);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(c.fft[i].axis, 2 - i);
		assert_int_equal(c.fft[i].src.binding, i ? RESULT : ARG);
		assert_int_equal(c.fft[i].dst.binding, RESULT);
	}
	c = code_of("%1: tensor<8x6xcomplex<f32>> {alias = 0}",
		    "%2 = transpose(%1) {permutation = [1, 0]} : tensor<6x8xcomplex<f32>>\n"
		    "%3 = fft(%2) {fft_type = <FFT>, fft_length = [8]} : "
		    "tensor<6x8xcomplex<f32>>\n"
		    "%4 = transpose(%3) {permutation = [1, 0]} : tensor<8x6xcomplex<f32>>\n"
		    "return(%4)\n");
	assert_int_equal(c.n_fft, 1);
	assert_int_equal(c.n_other, 0);
	assert_int_equal(c.temp_bytes, 0);
	assert_int_equal(c.fft[0].dst.binding, ARG);
}

/* A temporary that ends is the place of what lies as it does. */
static void what_is_turned_is_changed_in_its_place_where_that_is_turned(void **state)
{
	static const char turned[] =
		"%2 = negate(%1) : tensor<8x6xcomplex<f32>>\n"
		"%3 = transpose(%2) {permutation = [1, 0]} : tensor<6x8xcomplex<f32>>\n"
		"%4 = fft(%3) {fft_type = <FFT>, fft_length = [8]} : tensor<6x8xcomplex<f32>>\n"
		"%5 = transpose(%4) {permutation = [1, 0]} : tensor<8x6xcomplex<f32>>\n"
		"%6 = slice(%5) {start_indices = [0, 0], limit_indices = [1, 6], strides = [1, 1]} "
		": tensor<1x6xcomplex<f32>>\n"
		"%7 = multiply(%6, %6) : tensor<1x6xcomplex<f32>>\nreturn(%7)\n";
	static const char plain[] =
		"%2 = negate(%1) : tensor<8x6xcomplex<f32>>\n"
		"%4 = fft(%2) {fft_type = <FFT>, fft_length = [6]} : tensor<8x6xcomplex<f32>>\n"
		"%5 = transpose(%4) {permutation = [1, 0]} : tensor<6x8xcomplex<f32>>\n"
		"%6 = slice(%5) {start_indices = [0, 0], limit_indices = [1, 8], strides = [1, 1]} "
		": tensor<1x8xcomplex<f32>>\n"
		"%7 = multiply(%6, %6) : tensor<1x8xcomplex<f32>>\nreturn(%7)\n";

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct code c = code_of("%1: tensor<8x6xcomplex<f32>>", i ? plain : turned);
		const struct isa_operand *src = &c.fft[0].src, *dst = &c.fft[0].dst;

		assert_int_equal(c.n_fft, 1);
		assert_int_equal(c.n_other, 2);
		assert_int_equal(src->binding == dst->binding && src->offset == dst->offset, !i);
	}
}

/* A line of n points, which real forms have n / 2 + 1 complex numbers of, in code as it is. */
static void what_is_touched_is_checked(void **state)
{
	enum { BYTES = 256 };
	static const struct image_binding bindings[] = {
		{ IMAGE_CONSTANTS, 0, HW_BIND_READ, 0, 64 },
		{ IMAGE_TEMP, 0, HW_BIND_READ | HW_BIND_WRITE, 0, 64 },
		{ IMAGE_ARG, 0, HW_BIND_READ, 0, BYTES },
		{ IMAGE_RESULT, 0, HW_BIND_READ | HW_BIND_WRITE, 0, BYTES },
	};
	static const char out[] = "goes outside of binding", over[] =
		"an input otherwise than element for element";
	static const struct {
		uint8_t from, to, src, axis;
		int64_t n, offset, stride;
		const char *says;
	} forms[] = {
		{ ELEM_C64, ELEM_C64, ARG, 0, 32, 0, 8, NULL },
		{ ELEM_C64, ELEM_C64, ARG, 0, 33, 0, 8, out },
		{ ELEM_C64, ELEM_C64, ARG, 1, 32, 0, 8, "has counts that do not hold together" },
		{ ELEM_C64, ELEM_C64, RESULT, 0, 32, 0, 8, NULL },
		{ ELEM_C64, ELEM_C64, RESULT, 0, 32, 248, -8, over },
		{ ELEM_C64, ELEM_C64, RESULT, 0, 31, 8, 8, over },
		{ ELEM_F32, ELEM_C64, ARG, 0, 62, 0, 4, NULL },
		{ ELEM_F32, ELEM_C64, ARG, 0, 64, 0, 4, out },
		{ ELEM_F32, ELEM_C64, RESULT, 0, 62, 0, 4, over },
		{ ELEM_C64, ELEM_F32, ARG, 0, 62, 0, 8, NULL },
		{ ELEM_C64, ELEM_F32, ARG, 0, 64, 0, 8, out },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		struct { struct isa_copy fill; struct isa_fft f; struct isa_scalar halt; } text = {
			.fill = { .insn = { ISA_COPY, 0, sizeof(text.fill) }, .rank = 1,
				  .elem_bytes = 4, .dim = { BYTES / 4, 1, 1, 1, 1, 1, 1, 1 },
				  .src = { .binding = ARG, .stride = { 4 } },
				  .dst = { .binding = RESULT, .stride = { 4 } } },
			.f = { .insn = { ISA_FFT, 0, sizeof(text.f) }, .rank = 1,
			       .axis = forms[i].axis, .scale = 1,
			       .dim = { forms[i].n, 1, 1, 1, 1, 1, 1, 1 },
			       .src = { .elem = forms[i].from, .binding = forms[i].src,
					.offset = forms[i].offset, .stride = { forms[i].stride } },
			       .dst = { .elem = forms[i].to, .binding = RESULT,
					.stride = { forms[i].to == ELEM_F32 ? 4 : 8 } } },
			.halt = { .insn = { ISA_HALT, 0, sizeof(text.halt) } },
		};
		struct image im = { .text = &text, .text_bytes = sizeof(text),
				    .bindings = bindings, .n_bindings = 4 };
		struct tc_verdict why;
		int got = tc_verify(&im, NULL, &why);

		if (got != (forms[i].says ? ERR_INTERNAL : 0) ||
		    (got && !strstr(why.why, forms[i].says)))
			fail_msg("form %u: %d, %s", i, got, got ? why.why : "");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_length_is_the_same_function),
		cmocka_unit_test(a_long_length_goes_by_convolution_of_its_prime_alone),
		cmocka_unit_test(several_dims_are_one_after_the_other),
		cmocka_unit_test(nothing_is_transformed_to_nothing),
		cmocka_unit_test(others_are_joined_where_there_are_many),
		cmocka_unit_test(along_any_dim_it_is_the_same_function),
		cmocka_unit_test(along_a_dim_is_along_the_last_one_of_it_turned),
		cmocka_unit_test(what_is_no_transform_is_refused),
		cmocka_unit_test(along_a_dim_it_has_no_words_in_stablehlo),
		cmocka_unit_test(a_transform_is_one_instruction),
		cmocka_unit_test(views_are_read_and_written_where_they_lie),
		cmocka_unit_test(complex_numbers_are_changed_in_their_places),
		cmocka_unit_test(what_is_turned_is_changed_in_its_place_where_that_is_turned),
		cmocka_unit_test(what_is_touched_is_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
