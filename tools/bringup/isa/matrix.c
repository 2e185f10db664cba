/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The matrix unit, on small whole numbers, whose sums are exact in any order: every bit of the
 * result must be right.
 */
#include <stdio.h>
#include <string.h>

#include "tools/bringup/isa/bench.h"
#include "tools/bringup/isa/data.h"
#include "tools/bringup/isa/isa.h"

/* Types of both sides and of the sum, as isa.h has them. */
static const struct { enum elem in, acc; } types[] = {
	{ ELEM_F32, ELEM_F32 }, { ELEM_BF16, ELEM_F32 }, { ELEM_F16, ELEM_F32 },
	{ ELEM_F8E4M3FN, ELEM_F32 }, { ELEM_F64, ELEM_F64 }, { ELEM_F32, ELEM_F64 },
	{ ELEM_S8, ELEM_S32 }, { ELEM_S16, ELEM_S64 }, { ELEM_U8, ELEM_U32 },
	{ ELEM_U32, ELEM_U64 }, { ELEM_C64, ELEM_C64 }, { ELEM_C128, ELEM_C128 },
	{ ELEM_PRED, ELEM_PRED },
};

/* Whole numbers of any type, by way of one that computes. */
static void *whole(struct bringup *b, enum elem e, size_t n, uint64_t seed)
{
	enum elem by = elem_computes(e) ? e : ELEM_F32;
	struct tc_array a = isa_array(by, bringup_room(b, n * elem_bytes(by)), n, 0);
	struct tc_array result = isa_array(e, NULL, n, 0);

	if (!a.data)
		return NULL;
	isa_fill(by, a.data, n, ISA_WHOLE, seed);
	return by == e ? a.data : isa_evaluate(b, "%9 = convert(%0) : @R", &a, 1, &result);
}

/* ---- MM ---- */

/* x[i][c] * y[c][j], y as it stands or turned. */
static enum bringup_result product(struct bringup *b, unsigned type, size_t m, size_t k, size_t n,
				   bool is_turned)
{
	enum elem in = types[type].in, acc = types[type].acc;
	int64_t bytes = elem_bytes(in), sum = elem_bytes(acc), s_m = (int64_t)m, s_n = (int64_t)n;
	struct isa_mm head = { .insn.op = ISA_MM, .acc = (uint8_t)acc, .k = (int64_t)k,
		.a_k_stride = bytes, .b_k_stride = is_turned ? bytes : s_n * bytes,
		.body = { .rank = 2, .n_out = 1, .dim = { s_m, s_n, 1, 1, 1, 1, 1, 1 } } };
	void *x = whole(b, in, m * k, 1), *y = whole(b, in, k * n, 2);
	struct isa_bench *t = isa_bench(b);
	struct tc_array args[2], result = isa_array(acc, NULL, m, n);
	struct isa_operand out;
	const void *want;
	char lines[320];

	NEED(b, x && y ? t : NULL);
	args[0] = isa_array(in, x, m, k);
	args[1] = is_turned ? isa_array(in, y, n, k) : isa_array(in, y, k, n);
	snprintf(lines, sizeof(lines), "%%9 = dot_general(%%0, %%1) {lhs_batching_dimensions = [], "
		 "lhs_contracting_dimensions = [1], rhs_batching_dimensions = [], "
		 "rhs_contracting_dimensions = [%d]} : @R", is_turned);
	want = isa_evaluate(b, lines, args, 2, &result);
	NEED(b, want);
	head.a = ISA_AT(in, isa_in(t, x, args[0].bytes), (int64_t)k * bytes, 0);
	head.b = ISA_AT(in, isa_in(t, y, args[1].bytes), 0, is_turned ? (int64_t)k * bytes : bytes);
	out = ISA_AT(acc, isa_out(t, acc, want, m * n, ISA_ZEROS, "mm of %s in %s, %zu x %zu x %zu",
				  elem_text(in), elem_text(acc), m, k, n), s_n * sum, sum);
	isa_put(t, &head, sizeof(head), &out, 1, NULL, 0);
	STEP_TRY(isa_run(t));
	bringup_give_back(b);
	return BRINGUP_PASS;
}

enum bringup_result isa_cases_mm(struct bringup *b)
{
	static const struct { size_t m, k, n; } sizes[] = {
		{ 1, 1, 1 }, { 1, 65, 17 }, { 15, 16, 17 }, { 64, 64, 64 }, { 65, 33, 67 },
		{ 33, 257, 9 }, { 385, 3, 5 }, { 3, 2, 513 },
	};

	for (unsigned i = 0; i < COUNT(sizes); i++)
		for (unsigned k = 0; k < COUNT(types) * 2; k++)
			STEP_TRY(product(b, k / 2, sizes[i].m, sizes[i].k, sizes[i].n, k & 1));
	return BRINGUP_PASS;
}

/* ---- CONV ---- */

/* Two spatial dims, of one size each way. */
struct window {
	unsigned n, features, outs, in, kernel, stride, pad, lhs, rhs, groups;
	bool is_reversed;
	unsigned size;		/* of the result, each way */
};

static struct isa_conv conv_of(const struct window *w, enum elem acc)
{
	struct isa_conv c = { .insn.op = ISA_CONV, .acc = (uint8_t)acc, .n_spatial = 2,
		.reversed = w->is_reversed ? 3 : 0, .in_features = w->features / w->groups,
		.feature_groups = w->groups, .batch_groups = 1, .body = { .rank = 4, .n_out = 1,
		.dim = { w->n, w->outs, w->size, w->size, 1, 1, 1, 1 } } };

	for (unsigned d = 0; d < 2; d++) {
		c.in_size[d] = w->in;
		c.kernel[d] = w->kernel;
		c.window_stride[d] = w->stride;
		c.pad_low[d] = w->pad;
		c.lhs_dilation[d] = w->lhs;
		c.rhs_dilation[d] = w->rhs;
	}
	return c;
}

static struct tc_array array4(enum elem e, void *data, unsigned a, unsigned c, unsigned size)
{
	return (struct tc_array){ .elem = (uint8_t)e, .rank = 4, .dim = { a, c, size, size },
		.data = data, .bytes = (size_t)a * c * size * size * elem_bytes(e) };
}

/* ... which lies as in row-major order. */
static struct isa_operand operand4(const struct tc_array *a, uint64_t at)
{
	int64_t bytes = elem_bytes(a->elem), row = a->dim[3] * bytes;

	return ISA_AT(a->elem, at, a->dim[1] * a->dim[2] * row, a->dim[2] * row, row, bytes);
}

static const void *convolve(struct bringup *b, const struct window *w, const struct tc_array *args,
			    const struct tc_array *result)
{
	char lines[1024];
	const char *reversed = w->is_reversed ? "1, 1" : "0, 0";

	snprintf(lines, sizeof(lines), "%%9 = convolution(%%0, %%1) {input_batch_dimension = 0, "
		 "input_feature_dimension = 1, input_spatial_dimensions = [2, 3], "
		 "kernel_input_feature_dimension = 1, kernel_output_feature_dimension = 0, "
		 "kernel_spatial_dimensions = [2, 3], output_batch_dimension = 0, "
		 "output_feature_dimension = 1, output_spatial_dimensions = [2, 3], "
		 "window_strides = [%u, %u], padding = [%u, %u, %u, %u], lhs_dilation = [%u, %u], "
		 "rhs_dilation = [%u, %u], window_reversal = [%s], feature_group_count = %u, "
		 "batch_group_count = 1} : @R", w->stride, w->stride, w->pad, w->pad, w->pad,
		 w->pad, w->lhs, w->lhs, w->rhs, w->rhs, reversed, w->groups);
	return isa_evaluate(b, lines, args, 2, result);
}

static enum bringup_result convolution(struct bringup *b, unsigned type, struct window w)
{
	enum elem in = types[type].in, acc = types[type].acc;
	unsigned spread = (w.in - 1) * w.lhs + 1, reach = (w.kernel - 1) * w.rhs + 1;
	struct tc_array args[2], result;
	struct isa_bench *t = isa_bench(b);
	struct isa_operand out;
	struct isa_conv head;
	const void *want;

	NEED(b, t);
	w.size = (spread + 2 * w.pad - reach) / w.stride + 1;
	head = conv_of(&w, acc);
	args[0] = array4(in, NULL, w.n, w.features, w.in);
	args[1] = array4(in, NULL, w.outs, w.features / w.groups, w.kernel);
	for (unsigned i = 0; i < 2; i++) {
		args[i].data = whole(b, in, args[i].bytes / elem_bytes(in), i + 3);
		NEED(b, args[i].data);
	}
	result = array4(acc, NULL, w.n, w.outs, w.size);
	want = convolve(b, &w, args, &result);
	NEED(b, want);
	head.lhs = operand4(&args[0], isa_in(t, args[0].data, args[0].bytes));
	head.rhs = operand4(&args[1], isa_in(t, args[1].data, args[1].bytes));
	out = operand4(&result, isa_out(t, acc, want, result.bytes / elem_bytes(acc), ISA_ZEROS,
					"conv of %s in %s, %u x %u by %u x %u", elem_text(in),
					elem_text(acc), w.in, w.in, w.kernel, w.kernel));
	isa_put(t, &head, sizeof(head), &out, 1, NULL, 0);
	STEP_TRY(isa_run(t));
	bringup_give_back(b);
	return BRINGUP_PASS;
}

enum bringup_result isa_cases_conv(struct bringup *b)
{
	static const struct window windows[] = {
		{ 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, false, 0 },
		{ 2, 3, 4, 7, 3, 1, 1, 1, 1, 1, false, 0 },
		{ 1, 4, 6, 17, 5, 2, 3, 1, 1, 2, false, 0 },
		{ 2, 2, 3, 9, 3, 1, 2, 2, 2, 1, true, 0 },
		{ 1, 16, 17, 16, 3, 1, 0, 1, 1, 1, false, 0 },
		{ 1, 33, 65, 5, 2, 3, 1, 1, 2, 1, true, 0 },
		{ 3, 5, 5, 33, 1, 1, 0, 1, 1, 5, false, 0 },
	};

	for (unsigned i = 0; i < COUNT(windows); i++)
		for (unsigned k = 0; k < COUNT(types); k++)
			STEP_TRY(convolution(b, k, windows[i]));
	return BRINGUP_PASS;
}
