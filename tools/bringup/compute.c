/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that the compiler makes, against plain loops of the host's. Floats are small whole
 * numbers, so that sums are exact and their order does not matter: every bit must agree.
 */
#include <stdlib.h>
#include <string.h>

#include "hal/hw/image.h"
#include "runtime/compiler/tc.h"
#include "tools/bringup/compute.h"

#define MAIN(args) "module() {sym_name = \"bringup\"} () {\n" \
	"  func() {sym_name = \"main\"} (" args ") {\n"
#define END "  }\n}\n"

/* A program, its arguments and what its one result should be; bytes each. */
struct trial {
	const char *name, *text;
	const void *args[3];
	size_t arg_bytes[3];
	unsigned n_args;
	void *want;
	size_t want_bytes;
};

static struct hal_exe *compile(struct bringup *b, const char *text)
{
	struct tc_source s = { text, strlen(text), "mlir" };
	struct tc_options o = { .level = 1 };
	struct tc_result r;

	if (tc_compile(&s, &o, &r, &b->err))
		return NULL;
	return bringup_load(b, r.image, r.image_bytes);
}

/* Memory for a binding, NULL and no error if it needs none. */
static int bind(struct bringup *b, const struct trial *t, struct hal_exe *exe,
		const struct image_binding *want, struct hal_mem **m)
{
	*m = NULL;
	if (want->kind == IMAGE_CONSTANTS) {
		*m = hal_exe_constants(exe);
		return 0;
	}
	if (!want->bytes)
		return 0;
	*m = bringup_mem(b, HAL_MEM_HBM, want->bytes);
	if (!*m)
		return b->err.code;
	if (want->kind != IMAGE_ARG)
		return 0;
	if (want->index >= t->n_args || t->arg_bytes[want->index] > want->bytes)
		return err_set(&b->err, ERR_INTERNAL, "argument %u is not as the program has it",
			       want->index);
	return hal_copy_in(*m, 0, t->args[want->index], t->arg_bytes[want->index], SOON, &b->err);
}

/* The program, ready to run, and where its result will be. */
static int make_work(struct bringup *b, const struct trial *t, struct bringup_work *w,
		     struct hal_mem **result)
{
	const struct image *im;
	struct hal_mem *m;

	*w = (struct bringup_work){ .exe = compile(b, t->text) };
	*result = NULL;
	if (!w->exe)
		return b->err.code;
	im = hal_exe_image(w->exe);
	for (size_t i = 0; i < im->n_bindings && i < COUNT(w->bindings); i++) {
		if (bind(b, t, w->exe, &im->bindings[i], &m))
			return b->err.code;
		if (im->bindings[i].kind == IMAGE_RESULT)
			*result = m;
		if (m)
			w->bindings[i] = (struct hw_binding){ hal_mem_va(m), hal_mem_bytes(m) };
	}
	return 0;
}

int bringup_launch_work(struct bringup *b, const struct bringup_work *w, uint64_t *value)
{
	struct hal_launch l = { .exe = w->exe, .bindings = w->bindings };

	return hal_queue_execute(b->compute, &l, value, &b->err);
}

static enum bringup_result run(struct bringup *b, const struct trial *t)
{
	struct bringup_work w;
	struct hal_mem *result;
	uint64_t value;
	uint8_t *got;
	size_t at;

	TRY(b, make_work(b, t, &w, &result));
	if (!result || hal_mem_bytes(result) < t->want_bytes)
		return bringup_fail(b, "%s: the program has no result of %zu bytes", t->name,
				    t->want_bytes);
	TRY(b, bringup_launch_work(b, &w, &value));
	TRY(b, hal_queue_wait(b->compute, value, SOON, &b->err));
	got = bringup_room(b, t->want_bytes);
	NEED(b, got);
	TRY(b, hal_copy_out(got, result, 0, t->want_bytes, SOON, &b->err));
	at = bringup_differ(got, t->want, t->want_bytes);
	if (at < t->want_bytes)
		return bringup_fail(b, "%s: byte %zu of the result is 0x%02x instead of 0x%02x",
				    t->name, at, got[at], ((uint8_t *)t->want)[at]);
	return BRINGUP_PASS;
}

/* ---- elementwise ---- */

enum { N = 37 * 129 };

static enum bringup_result integers(struct bringup *b)
{
	int32_t *x = bringup_room(b, N * 4), *y = bringup_room(b, N * 4);
	int32_t *want = bringup_room(b, N * 4);
	struct trial t = { .name = "multiply, xor, subtract, maximum of i32", .n_args = 2,
		.args = { x, y }, .arg_bytes = { N * 4, N * 4 }, .want = want, .want_bytes = N * 4,
		.text = MAIN("%0: tensor<37x129xi32>, %1: tensor<37x129xi32>")
		"    %2 = multiply(%0, %1) : tensor<37x129xi32>\n"
		"    %3 = xor(%2, %0) : tensor<37x129xi32>\n"
		"    %4 = subtract(%3, %1) : tensor<37x129xi32>\n"
		"    %5 = maximum(%4, %0) : tensor<37x129xi32>\n"
		"    return(%5)\n" END };

	NEED(b, x && y ? want : NULL);
	bringup_fill_random(x, N * 4, 11);
	bringup_fill_random(y, N * 4, 12);
	for (unsigned i = 0; i < N; i++) {
		uint32_t p = (uint32_t)x[i] * (uint32_t)y[i];
		int32_t d = (int32_t)((p ^ (uint32_t)x[i]) - (uint32_t)y[i]);

		want[i] = d > x[i] ? d : x[i];
	}
	return run(b, &t);
}

static float whole(uint64_t *seed)
{
	return (float)((int)(bringup_random(seed) % 17) - 8);
}

static enum bringup_result floats(struct bringup *b)
{
	float *x = bringup_room(b, N * 4), *y = bringup_room(b, 129 * 4);
	float *want = bringup_room(b, N * 4);
	struct trial t = { .name = "broadcast, multiply, add, abs of f32", .n_args = 2,
		.args = { x, y }, .arg_bytes = { N * 4, 129 * 4 }, .want = want,
		.want_bytes = N * 4,
		.text = MAIN("%0: tensor<37x129xf32>, %1: tensor<129xf32>")
		"    %2 = broadcast_in_dim(%1) {broadcast_dimensions = [1]} : tensor<37x129xf32>\n"
		"    %3 = multiply(%0, %2) : tensor<37x129xf32>\n"
		"    %4 = add(%3, %0) : tensor<37x129xf32>\n"
		"    %5 = abs(%4) : tensor<37x129xf32>\n"
		"    return(%5)\n" END };
	uint64_t seed = 13;

	NEED(b, x && y ? want : NULL);
	for (unsigned i = 0; i < 129; i++)
		y[i] = whole(&seed);
	for (unsigned i = 0; i < N; i++) {
		x[i] = whole(&seed);
		want[i] = x[i] * y[i % 129] + x[i];
		want[i] = want[i] < 0 ? -want[i] : want[i];
		want[i] += 0.0f;	/* no -0 */
	}
	return run(b, &t);
}

enum bringup_result step_elementwise(struct bringup *b)
{
	STEP_TRY(bringup_need_device(b));
	STEP_TRY(integers(b));
	bringup_give_back(b);
	STEP_TRY(floats(b));
	return bringup_pass(b, "%d elements of i32 and f32, bit for bit", N);
}

/* ---- products ---- */

/* Each with sizes that fill no tile. */
enum { ROWS = 67, INNER = 131, COLUMNS = 73 };

#define PRODUCT(in, out) MAIN("%0: tensor<67x131x" in ">, %1: tensor<131x73x" in ">") \
	"    %2 = dot_general(%0, %1) {lhs_batching_dimensions = [], " \
	"lhs_contracting_dimensions = [1], precision_config = [0, 0], " \
	"rhs_batching_dimensions = [], rhs_contracting_dimensions = [0]} : " \
	"tensor<67x73x" out ">\n    return(%2)\n" END

static uint16_t to_bf16(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, 4);
	return (uint16_t)(bits >> 16);
}

/* Writes the whole numbers of x as the type that the program takes. */
static void narrow(void *to, const float *x, size_t n, unsigned bytes)
{
	for (size_t i = 0; i < n; i++) {
		if (bytes == 4)
			((float *)to)[i] = x[i];
		else if (bytes == 2)
			((uint16_t *)to)[i] = to_bf16(x[i]);
		else
			((int8_t *)to)[i] = (int8_t)x[i];
	}
}

static enum bringup_result multiply(struct bringup *b, const char *name, const char *text,
				    unsigned bytes)
{
	float *x = bringup_room(b, ROWS * INNER * 4), *y = bringup_room(b, INNER * COLUMNS * 4);
	void *a = bringup_room(b, ROWS * INNER * 4), *c = bringup_room(b, INNER * COLUMNS * 4);
	float *want = bringup_room(b, ROWS * COLUMNS * 4);
	struct trial t = { .name = name, .text = text, .n_args = 2, .args = { a, c }, .want = want,
		.arg_bytes = { (size_t)ROWS * INNER * bytes, (size_t)INNER * COLUMNS * bytes },
		.want_bytes = (size_t)ROWS * COLUMNS * 4 };
	uint64_t seed = 14;

	NEED(b, x && y && a && c ? want : NULL);
	for (unsigned i = 0; i < ROWS * INNER; i++)
		x[i] = whole(&seed);
	for (unsigned i = 0; i < INNER * COLUMNS; i++)
		y[i] = whole(&seed);
	for (unsigned i = 0; i < ROWS * COLUMNS; i++) {
		float sum = 0;
		int32_t s;

		for (unsigned k = 0; k < INNER; k++)
			sum += x[i / COLUMNS * INNER + k] * y[k * COLUMNS + i % COLUMNS];
		want[i] = sum;
		s = (int32_t)sum;
		if (bytes == 1)
			memcpy(&want[i], &s, 4);
	}
	narrow(a, x, ROWS * INNER, bytes);
	narrow(c, y, INNER * COLUMNS, bytes);
	return run(b, &t);
}

enum bringup_result step_product(struct bringup *b)
{
	static const struct { const char *name, *text; unsigned bytes; } products[] = {
		{ "product of f32", PRODUCT("f32", "f32"), 4 },
		{ "product of bf16", PRODUCT("bf16", "f32"), 2 },
		{ "product of s8", PRODUCT("i8", "i32"), 1 },
	};

	STEP_TRY(bringup_need_device(b));
	for (unsigned i = 0; i < COUNT(products); i++) {
		STEP_TRY(multiply(b, products[i].name, products[i].text, products[i].bytes));
		bringup_give_back(b);
	}
	return bringup_pass(b, "%d x %d x %d in f32, bf16 and s8, bit for bit", ROWS, INNER,
			    COLUMNS);
}

/* ---- load ---- */

enum { LOAD = 512 };

int bringup_product(struct bringup *b, struct bringup_work *out)
{
	size_t bytes = (size_t)LOAD * LOAD * 2;
	uint16_t *x = bringup_room(b, bytes);
	struct trial t = { .name = "load", .n_args = 2, .args = { x, x },
		.arg_bytes = { bytes, bytes },
		.text = MAIN("%0: tensor<512x512xbf16>, %1: tensor<512x512xbf16>")
		"    %2 = dot_general(%0, %1) {lhs_batching_dimensions = [], "
		"lhs_contracting_dimensions = [1], precision_config = [0, 0], "
		"rhs_batching_dimensions = [], rhs_contracting_dimensions = [0]} : "
		"tensor<512x512xf32>\n    return(%2)\n" END };
	struct hal_mem *result;
	uint64_t seed = 15;

	if (!x)
		return b->err.code;
	for (unsigned i = 0; i < LOAD * LOAD; i++)
		x[i] = to_bf16(whole(&seed));
	return make_work(b, &t, out, &result);
}
