/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ops, and ops in twos, that move along a dim or look at windows of it, where the dim is cut:
 * members take what they need of their neighbours and give what one device does, bit for bit.
 * Sizes, steps, holes and padding are drawn; parts are as small as one row, and windows wider than
 * a part. Slices of one value, as halves, and what is joined of them.
 */
#include <math.h>

#include "tests/unit/gang.h"
#include "tests/unit/spmd.h"

enum kind { SLICE, PAD, WINDOW, CONV, TURN, ROLL, SHIFT, UNCUT, TRIMMED, GRADIENT, N_KINDS,
	    CUT_KERNEL /* CONV, its kernel in two along an axis of its own */ };
static const char *const kinds[] = { "slice", "pad", "reduce_window", "convolution", "reverse",
				     "slices that are joined", "a slice and other rows",
				     "what is cut off and padded",
				     "what is padded and cut off", "a kernel's gradient" };

/* An op along the middle dim of [2, n, 3]. */
struct drawn {
	enum kind kind;
	unsigned parts;
	bool is_other_order;	/* of the devices */
	int64_t n, out, stride, base, low, high, size, step;	/* size, step: the window's */
	int64_t padded, cut;	/* of a convolution: rows before by an own op, behind left out */
};

static uint64_t state_of_draw;

static int64_t draw(int64_t least, int64_t most)
{
	state_of_draw = state_of_draw * 6364136223846793005u + 1442695040888963407u;
	return least + (int64_t)(state_of_draw >> 33) % (most - least + 1);
}

static int64_t ceil_div(int64_t a, int64_t b)
{
	return a / b + (a % b > 0);
}

/* false: it is none, or its result is not cut evenly. */
static bool draw_op(struct drawn *k)
{
	static const unsigned parts[] = { 2, 3, 4, 6, 6, 8, 8, 8 };
	int64_t room;

	*k = (struct drawn){ .kind = (enum kind)draw(0, N_KINDS - 1), .stride = 1, .base = 1,
			     .size = 1, .step = 1 };
	k->parts = parts[draw(0, 7)];
	k->is_other_order = draw(0, 3) == 0;
	k->n = k->parts * draw(1, 4);
	if (k->kind == SLICE) {
		k->low = draw(0, k->n - 1);
		k->stride = draw(1, 3);
		k->high = draw(k->low, k->n);	/* where it ends */
		k->out = ceil_div(k->high - k->low, k->stride);
	} else if (k->kind == ROLL) {
		/* The second one begins where the first one ends, or anywhere. */
		k->size = draw(0, k->n);
		k->low = draw(0, k->n - k->size);
		k->high = draw(0, k->size);
		if (draw(0, 3)) {
			k->low = k->n - k->size;
			k->high = 0;
		}
		k->out = k->n;
	} else if (k->kind == SHIFT) {
		/* So many of other rows, before or behind. */
		k->size = draw(1, k->n < 4 ? k->n - 1 : 3);
		k->low = draw(0, k->size);
		k->step = draw(0, 1);
		k->out = k->n;
	} else if (k->kind == UNCUT) {
		k->size = draw(0, k->n - 1);	/* cut off before, and behind */
		k->step = draw(0, k->n - 1 - k->size);
		k->stride = draw(0, 1);		/* by a slice, or padding */
		k->base = draw(0, 7) ? 1 : 2;
		k->low = draw(-1, 3);
		k->high = draw(-1, 3);
		if (draw(0, 2)) {
			*(draw(0, 1) ? &k->size : &k->step) = 0;
			k->low = k->step;
			k->high = k->size;
		}
		k->out = (k->n - k->size - k->step - 1) * k->base + 1 + k->low + k->high;
	} else if (k->kind == TRIMMED) {
		k->base = draw(0, 7) ? 1 : 2;
		k->low = draw(-1, 3);
		k->high = draw(-1, 3);
		k->size = draw(0, 3);	/* cut off before, and behind */
		k->step = draw(0, 2) ? k->low + k->high - k->size : draw(0, 3);
		k->out = (k->n - 1) * k->base + 1 + k->low + k->high - k->size - k->step;
		if (k->step < 0 || k->low + k->high <= -k->n)
			return false;
	} else if (k->kind == GRADIENT) {
		k->size = draw(0, 2) ? k->n : k->parts * draw(1, k->n / k->parts);
		k->stride = draw(1, 2);
		k->base = draw(1, 2);
		k->step = draw(1, 2);
		k->low = draw(-1, 3);
		k->high = draw(-1, 3);
		room = (k->n - 1) * k->base + k->low + k->high - (k->size - 1) * k->step;
		k->out = room < 0 ? 0 : room / k->stride + 1;
		return k->out > 0 && k->out < 7 && draw(0, 3) == 0;
	} else if (k->kind == TURN) {
		k->out = k->n;
	} else {
		k->base = draw(1, 2 + (k->kind != WINDOW));
		k->low = draw(-3, 6);
		k->high = draw(-3, 6);
		room = k->n * k->base - k->base + 1 + k->low + k->high;
		if (k->kind != PAD) {
			k->stride = draw(1, 3);
			k->size = draw(1, 6);
			k->step = draw(1, 2);
		}
		room -= (k->size - 1) * k->step;
		/* More is cut off than is there: not every op has that. */
		if (room < 1 || k->low < 1 - k->n || k->high < 1 - k->n)
			return false;
		k->out = (room - 1) / k->stride + 1;
		if (k->kind == CONV && k->base == 1 && draw(0, 1)) {
			k->padded = draw(0, 3);
			k->cut = draw(0, 1);
			k->out -= k->cut;
		}
	}
	/* Others often do not fit. */
	if (k->kind >= TURN && draw(0, 9))
		return false;
	return k->out > 0 && k->out % k->parts == 0;
}

static void put_wide_rows(struct str *s, int number, int of, int from, int size, int wide)
{
	str_printf(s, "%%%d = slice(%%%d) {start_indices = [0, %d, 0], limit_indices = [2, %d, "
		   "%d], strides = [1, 1, 1]} : tensor<2x%dx%dxf32>\n", number, of, from,
		   from + size, wide, size, wide);
}

static void put_rows(struct str *s, int number, int of, int from, int size)
{
	put_wide_rows(s, number, of, from, size, 3);
}

/* The kernel is of the operand's own rows. */
static void put_gradient(const struct drawn *k, struct str *s)
{
	put_rows(s, 4, 0, 0, (int)k->size);
	str_printf(s, "%%6 = sharding_constraint(%%4) {sharding = \"@mesh[{},{x},{}]\"} : "
		   "tensor<2x%dx3xf32>\n"
		   "%%3 = convolution(%%0, %%6) {input_batch_dimension = 2, "
		   "input_feature_dimension = 0, input_spatial_dimensions = [1], "
		   "kernel_input_feature_dimension = 0, kernel_output_feature_dimension = 2, "
		   "kernel_spatial_dimensions = [1], output_batch_dimension = 1, "
		   "output_feature_dimension = 2, output_spatial_dimensions = [0], "
		   "window_strides = [%d], padding = [%d, %d], lhs_dilation = [%d], "
		   "rhs_dilation = [%d], window_reversal = [0], feature_group_count = 1, "
		   "batch_group_count = 1} : tensor<%dx3x3xf32>\n", (int)k->size, (int)k->stride,
		   (int)k->low, (int)k->high, (int)k->base, (int)k->step, (int)k->out);
}

/* Ops of two: what is left of the dim goes on. */
static void put_two(const struct drawn *k, struct str *s)
{
	int low = (int)k->low, high = (int)k->high, n = (int)k->n, size = (int)k->size;
	int step = (int)k->step, left = n - size - step;

	if (k->kind == TRIMMED) {
		str_printf(s, "%%4 = pad(%%0, %%2) {edge_padding_low = [0, %d, 0], "
			   "edge_padding_high = [0, %d, 0], interior_padding = [0, %d, 0]} : "
			   "tensor<2x%dx3xf32>\n", low, high, (int)k->base - 1,
			   size + step + (int)k->out);
		put_rows(s, 3, 4, size, (int)k->out);
		return;
	}
	if (k->kind == UNCUT && k->stride)
		put_rows(s, 4, 0, size, left);
	else if (k->kind == UNCUT)
		str_printf(s, "%%4 = pad(%%0, %%2) {edge_padding_low = [0, %d, 0], "
			   "edge_padding_high = [0, %d, 0], interior_padding = [0, 0, 0]} : "
			   "tensor<2x%dx3xf32>\n", -size, -step, left);
	if (k->kind == UNCUT) {
		str_printf(s, "%%3 = pad(%%4, %%2) {edge_padding_low = [0, %d, 0], "
			   "edge_padding_high = [0, %d, 0], interior_padding = [0, %d, 0]} : "
			   "tensor<2x%dx3xf32>\n", low, high, (int)k->base - 1, (int)k->out);
		return;
	}
	if (k->kind == ROLL) {
		put_rows(s, 4, 0, low, size);
		put_rows(s, 6, 0, high, n - size);
	} else {
		str_printf(s, "%%10 = slice(%%1) {start_indices = [0, 0, 0], limit_indices = [2, "
			   "3, 3], strides = [1, 1, 1]} : tensor<2x3x3xf32>\n");
		put_rows(s, step ? 4 : 6, 10, 0, size);
		put_rows(s, step ? 6 : 4, 0, low, n - size);
	}
	str_printf(s, "%%3 = concatenate(%%4, %%6) {dimension = 1} : tensor<2x%dx3xf32>\n", n);
}

static void put_op(const struct drawn *k, struct str *s)
{
	int low = (int)k->low, high = (int)k->high, base = (int)k->base, out = (int)k->out;
	int stride = (int)k->stride, size = (int)k->size, step = (int)k->step;

	switch (k->kind) {
	case SLICE:
		str_printf(s, "%%3 = slice(%%0) {start_indices = [0, %d, 0], limit_indices = [2, "
			   "%d, 3], strides = [1, %d, 1]} : tensor<2x%dx3xf32>\n", low, high,
			   stride, out);
		return;
	case PAD:
		str_printf(s, "%%3 = pad(%%0, %%2) {edge_padding_low = [0, %d, 0], "
			   "edge_padding_high = [0, %d, 0], interior_padding = [0, %d, 0]} : "
			   "tensor<2x%dx3xf32>\n", low, high, base - 1, out);
		return;
	case WINDOW:
		str_printf(s, "%%3 = reduce_window(%%0, %%2) {window_dimensions = [1, %d, 1], "
			   "window_strides = [1, %d, 1], base_dilations = [1, %d, 1], "
			   "window_dilations = [1, %d, 1], padding = [0, 0, %d, %d, 0, 0]} : "
			   "tensor<2x%dx3xf32> (%%7: tensor<f32>, %%8: tensor<f32>) {\n"
			   "%%9 = maximum(%%7, %%8) : tensor<f32>\nreturn(%%9)\n}\n", size, stride,
			   base, step, low, high, out);
		return;
	case CONV: case CUT_KERNEL:
		str_printf(s, "%%20 = constant() {value = dense<splat 0x00000000> : tensor<f32>} : "
			   "tensor<f32>\n"
			   "%%21 = pad(%%0, %%20) {edge_padding_low = [0, %d, 0], "
			   "edge_padding_high = [0, 0, 0], interior_padding = [0, 0, 0]} : "
			   "tensor<2x%dx3xf32>\n", (int)k->padded, (int)(k->n + k->padded));
		str_printf(s, "%%4 = slice(%%1) {start_indices = [0, 0, 0], limit_indices = [%d, "
			   "3, 3], strides = [1, 1, 1]} : tensor<%dx3x3xf32>\n"
			   "%%6 = sharding_constraint(%%4) {sharding = \"@mesh[{%s},{},{}]\"} : "
			   "tensor<%dx3x3xf32>\n"
			   "%%10 = maximum(%%6, %%6) : tensor<%dx3x3xf32>\n"
			   "%%22 = convolution(%%21, %%10) {input_batch_dimension = 0, "
			   "input_feature_dimension = 2, input_spatial_dimensions = [1], "
			   "kernel_input_feature_dimension = 1, kernel_output_feature_dimension = "
			   "2, kernel_spatial_dimensions = [0], output_batch_dimension = 0, "
			   "output_feature_dimension = 2, output_spatial_dimensions = [1], "
			   "window_strides = [%d], padding = [%d, %d], lhs_dilation = [%d], "
			   "rhs_dilation = [%d], window_reversal = [%d], feature_group_count = 1, "
			   "batch_group_count = 1} : tensor<2x%dx3xf32>\n", size, size,
			   k->kind == CUT_KERNEL ? "y" : "", size, size, stride,
			   low - (int)k->padded, high, base,
			   step, size & 1,
			   out + (int)k->cut);
		put_rows(s, 3, 22, 0, out);
		return;
	case GRADIENT:
		put_gradient(k, s);
		return;
	case ROLL: case SHIFT: case UNCUT: case TRIMMED:
		put_two(k, s);
		return;
	default:
		str_printf(s, "%%3 = reverse(%%0) {dimensions = [1]} : tensor<2x%dx3xf32>\n", out);
		return;
	}
}

static unsigned members_of(const struct drawn *k)
{
	return k->parts * (k->kind == CUT_KERNEL ? 2 : 1);
}

/* What is outside is 1.5, below nothing that is there. */
static void write_program(const struct drawn *k, struct str *s)
{
	str_printf(s, "module() {num_partitions = %u, meshes = {mesh = \"[x=%u%s]", members_of(k),
		   k->parts, k->kind == CUT_KERNEL ? ",y=2" : "");
	for (unsigned i = 0; k->is_other_order && i < k->parts; i++)
		str_printf(s, i ? ",%u" : "ids[%u", (i + 1) % k->parts);
	str_printf(s, "%s\"}} () {\nfunc() {sym_name = \"main\"} (%%0: tensor<2x%dx3xf32> "
		   "{sharding = \"@mesh[{},{x},{}]\"}, %%1: tensor<6x3x3xf32>) {\n"
		   "%%2 = constant() {value = dense<splat 0x0000c03f> : tensor<f32>} : "
		   "tensor<f32>\n", k->is_other_order ? "]" : "", (int)k->n);
	put_op(k, s);
	if (k->kind == GRADIENT)
		str_printf(s, "%%5 = sharding_constraint(%%3) {sharding = \"@mesh[{},{},{}]\"} : "
			   "tensor<%dx3x3xf32>\nreturn(%%5)\n}\n}\n", (int)k->out);
	else
		str_printf(s, "%%5 = sharding_constraint(%%3) {sharding = \"@mesh[{},{x},{}]\"} : "
			   "tensor<2x%dx3xf32>\nreturn(%%5)\n}\n}\n", (int)k->out);
}

static unsigned occurs(const char *text, const char *word)
{
	unsigned n = 0;

	for (text = strstr(text, word); text; text = strstr(text + 1, word))
		n++;
	return n;
}

/* How many permutations the members' program has; 100: it collects, more often than `collects`. */
static unsigned hops_of(const struct tc_source *source, const struct tc_options *o,
			unsigned collects)
{
	struct err err;
	unsigned n;
	char *ir;

	if (tc_print(source, o, "shard", &ir, &err))
		fail_msg("%s", err.msg);
	n = occurs(ir, "all_gather(") > collects ? 100 : occurs(ir, "collective_permute(");
	free(ir);
	return n;
}

static struct tc_array new_array(unsigned rank, const int64_t *dim)
{
	struct tc_array a = { .elem = ELEM_F32, .rank = (uint8_t)rank, .bytes = 4 };

	for (unsigned d = 0; d < rank; d++) {
		a.dim[d] = dim[d];
		a.bytes *= (size_t)dim[d];
	}
	a.data = malloc(a.bytes);
	assert_non_null(a.data);
	for (size_t i = 0; i < a.bytes / 4; i++)
		((float *)a.data)[i] = (float)draw(-8, 8);
	return a;
}

/* Returns its hops. */
static unsigned check_op(const struct drawn *k, spmd_evaluate *evaluate)
{
	struct tc_options o = { .level = 1, .verify = true, .partitions = members_of(k),
				.evaluate_after = "shard" };
	struct tc_array args[2];
	struct tc_source source;
	struct str text = { 0 };
	unsigned hops;

	write_program(k, &text);
	source = (struct tc_source){ text.text, text.len, "mlir" };
	args[0] = new_array(3, (const int64_t[]){ 2, k->n, 3 });
	args[1] = new_array(3, (const int64_t[]){ 6, 3, 3 });
	agree_exactly(evaluate, &source, &o, args, 2);
	hops = hops_of(&source, &o, k->kind == CUT_KERNEL);
	free(args[0].data);
	free(args[1].data);
	str_free(&text);
	return hops;
}

/* n ops; most of each kind are to run in parts, some with several neighbours. */
static void check_drawn(unsigned n, uint64_t seed, spmd_evaluate *evaluate)
{
	unsigned in_parts[N_KINDS] = { 0 }, all[N_KINDS] = { 0 }, far = 0;
	struct drawn k;

	state_of_draw = seed;
	for (unsigned i = 0; i < n; i++) {
		unsigned hops;

		while (!draw_op(&k))
			;
		hops = check_op(&k, evaluate);
		all[k.kind]++;
		in_parts[k.kind] += hops < 100;
		far += hops > 2 && hops < 100;
	}
	for (unsigned i = 0; i < N_KINDS; i++)
		print_message("%s: %u of %u in parts\n", kinds[i], in_parts[i], all[i]);
	print_message("%u take from more than two\n", far);
	assert_int_equal(in_parts[TURN], all[TURN]);
	for (unsigned i = 0; i < N_KINDS; i++)
		assert_true(3 * in_parts[i] >= all[i]);
	assert_true(far > 0);
}

static void neighbours_give_what_is_needed(void **state)
{
	(void)state;
	check_drawn(1000, 1, tc_eval_gang);
}

static void neighbours_give_it_on_devices(void **state)
{
	gang_start(state);
	check_drawn(200, 2, gang_evaluate);
	gang_stop(state);
}

/* ---- dims that the parts do not divide ---- */

enum end { SUM, LARGEST, DOT, PADDED, JOINED, WINDOWED, CUT_ON, AS_IT_IS, N_ENDS };
static const char *const ends[] = { "summed", "the largest", "a product", "padded", "joined",
				    "windows", "cut once more", "returned" };

/* One or two slices of m rows, with steps of a value of as many times n, what is done with them,
 * and how the dim ends. */
struct chain {
	unsigned parts;
	enum end end;
	bool is_two, is_turned;
	int64_t n, m, start[2], low, size, step, first;
};

static bool draw_chain(struct chain *k)
{
	static const unsigned parts[] = { 2, 3, 4, 6, 8, 8 };

	*k = (struct chain){ .parts = parts[draw(0, 5)], .end = (enum end)draw(0, N_ENDS - 1),
			     .is_two = draw(0, 1), .is_turned = draw(0, 1) };
	k->n = k->parts * draw(2, 4);
	k->m = k->n - draw(1, k->n / k->parts < 3 ? 1 : 2);
	for (unsigned i = 0; i < 2; i++)
		k->start[i] = draw(0, k->n - k->m);
	k->low = draw(0, k->n - k->m);
	k->size = draw(1, 3);
	k->step = draw(0, 2) ? 1 : draw(2, 3);
	k->first = draw(0, k->step - 1);
	if (k->end == WINDOWED)
		return draw(0, 1) || k->n - k->m + k->size - 1 >= 0;
	return k->m % k->parts;
}

static void put_end(const struct chain *k, struct str *s)
{
	int n = (int)k->n, m = (int)k->m, low = (int)k->low, size = (int)k->size;
	int half = n / (int)k->parts * ((int)k->parts - 1);

	switch (k->end) {
	case SUM: case LARGEST:
		str_printf(s, "%%30 = reduce(%%20, %%%d) {dimensions = [1]} : tensor<2x3xf32> "
			   "(%%31: tensor<f32>, %%32: tensor<f32>) {\n%%33 = %s(%%31, %%32) : "
			   "tensor<f32>\nreturn(%%33)\n}\n", k->end == SUM ? 3 : 2,
			   k->end == SUM ? "add" : "maximum");
		return;
	case DOT:
		str_printf(s, "%%30 = dot_general(%%20, %%20) {lhs_batching_dimensions = [0], "
			   "rhs_batching_dimensions = [0], lhs_contracting_dimensions = [1], "
			   "rhs_contracting_dimensions = [1]} : tensor<2x3x3xf32>\n");
		return;
	case PADDED:
		str_printf(s, "%%30 = pad(%%20, %%2) {edge_padding_low = [0, %d, 0], "
			   "edge_padding_high = [0, %d, 0], interior_padding = [0, 0, 0]} : "
			   "tensor<2x%dx3xf32>\n", low, n - m - low, n);
		return;
	case JOINED:
		str_printf(s, "%%29 = slice(%%1) {start_indices = [0, 0, 0], limit_indices = "
			   "[2, %d, 3], strides = [1, 1, 1]} : tensor<2x%dx3xf32>\n"
			   "%%30 = concatenate(%s) {dimension = 1} : tensor<2x%dx3xf32>\n", n - m,
			   n - m, k->low ? "%20, %29" : "%29, %20", n);
		return;
	case WINDOWED:
		str_printf(s, "%%30 = reduce_window(%%20, %%3) {window_dimensions = [1, %d, 1], "
			   "window_strides = [1, 1, 1], base_dilations = [1, 1, 1], "
			   "window_dilations = [1, 1, 1], padding = [0, 0, %d, %d, 0, 0]} : "
			   "tensor<2x%dx3xf32> (%%31: tensor<f32>, %%32: tensor<f32>) {\n"
			   "%%33 = add(%%31, %%32) : tensor<f32>\nreturn(%%33)\n}\n", size, low,
			   n - m + size - 1 - low, n);
		return;
	case CUT_ON:
		str_printf(s, "%%30 = slice(%%20) {start_indices = [0, %d, 0], limit_indices = "
			   "[2, %d, 3], strides = [1, 1, 1]} : tensor<2x%dx3xf32>\n",
			   low < m - half ? low : m - half, half + (low < m - half ? low :
								    m - half), half);
		return;
	default:
		str_printf(s, "%%30 = add(%%20, %%20) : tensor<2x%dx3xf32>\n", m);
	}
}

/* Behind the true rows there are 0/0; where they would count, so would these. */
static void write_chain(const struct chain *k, struct str *s)
{
	int m = (int)k->m;

	str_printf(s, "module() {num_partitions = %u, meshes = {mesh = \"[x=%u]\"}} () {\n"
		   "func() {sym_name = \"main\"} (%%0: tensor<2x%dx3xf32> "
		   "{sharding = \"@mesh[{},{x},{}]\"}, %%1: tensor<6x3x3xf32>) {\n"
		   "%%2 = constant() {value = dense<splat 0x000080ff> : tensor<f32>} : "
		   "tensor<f32>\n"
		   "%%3 = constant() {value = dense<splat 0x00000000> : tensor<f32>} : "
		   "tensor<f32>\n", k->parts, k->parts, (int)(k->n * k->step));
	for (int i = 0; i < 2; i++) {
		int start = (int)(k->start[i] * k->step + k->first);

		str_printf(s, "%%%d = slice(%%0) {start_indices = [0, %d, 0], limit_indices = [2, "
			   "%d, 3], strides = [1, %d, 1]} : tensor<2x%dx3xf32>\n", 10 + i, start,
			   start + (m - 1) * (int)k->step + 1, (int)k->step, m);
		str_printf(s, "%%%d = divide(%%%d, %%%d) : tensor<2x%dx3xf32>\n"
			   "%%%d = multiply(%%%d, %%%d) : tensor<2x%dx3xf32>\n", 12 + i, 10 + i,
			   10 + i, m, 14 + i, 12 + i, 10 + i, m);
	}
	str_printf(s, "%%16 = iota() {iota_dimension = 1} : tensor<2x%dx3xf32>\n"
		   "%%17 = multiply(%%14, %%%d) : tensor<2x%dx3xf32>\n"
		   "%%18 = transpose(%%17) {permutation = [1, 0, 2]} : tensor<%dx2x3xf32>\n"
		   "%%19 = transpose(%%18) {permutation = [1, 0, 2]} : tensor<2x%dx3xf32>\n"
		   "%%20 = add(%%%d, %%%d) : tensor<2x%dx3xf32>\n", m, k->is_two ? 15 : 16, m, m,
		   m, k->is_turned ? 19 : 17, k->is_two ? 16 : 14, m);
	put_end(k, s);
}

static void write_chain_end(const struct chain *k, struct str *s)
{
	static const char *const shapes[] = { "2x3", "2x3", "2x3x3", "", "", "", "", "" };
	char shape[32];
	int64_t rows = k->end == AS_IT_IS ? k->m : k->end == CUT_ON ?
		       k->n / k->parts * (k->parts - 1) : k->n;

	snprintf(shape, sizeof(shape), "2x%dx3", (int)rows);
	/* As the dim was, where it is as long as that. */
	if (rows == k->n && !*shapes[k->end])
		str_printf(s, "%%40 = sharding_constraint(%%30) {sharding = "
			   "\"@mesh[{},{x},{}]\"} : tensor<%sxf32>\nreturn(%%40)\n}\n}\n", shape);
	else
		str_printf(s, "return(%%30)\n}\n}\n");
}

static unsigned check_chain(const struct chain *k, spmd_evaluate *evaluate)
{
	struct tc_options o = { .level = 1, .verify = true, .partitions = k->parts,
				.evaluate_after = "shard" };
	struct tc_array args[2];
	struct tc_source source;
	struct str text = { 0 };
	unsigned hops;

	write_chain(k, &text);
	write_chain_end(k, &text);
	source = (struct tc_source){ text.text, text.len, "mlir" };
	args[0] = new_array(3, (const int64_t[]){ 2, k->n * k->step, 3 });
	args[1] = new_array(3, (const int64_t[]){ 6, 3, 3 });
	for (size_t i = 0; i < args[0].bytes / 4; i++)
		if (((float *)args[0].data)[i] == 0)
			((float *)args[0].data)[i] = 9;
	agree_exactly(evaluate, &source, &o, args, 2);
	hops = hops_of(&source, &o, 0);
	free(args[0].data);
	free(args[1].data);
	str_free(&text);
	return hops;
}

static void check_chains(unsigned n, uint64_t seed, spmd_evaluate *evaluate)
{
	unsigned in_parts[N_ENDS] = { 0 }, all[N_ENDS] = { 0 };
	struct chain k;

	state_of_draw = seed;
	for (unsigned i = 0; i < n; i++) {
		while (!draw_chain(&k))
			;
		all[k.end]++;
		in_parts[k.end] += check_chain(&k, evaluate) < 100;
	}
	for (unsigned i = 0; i < N_ENDS; i++)
		print_message("%s: %u of %u in parts\n", ends[i], in_parts[i], all[i]);
	for (unsigned i = 0; i < N_ENDS; i++)
		if (i != CUT_ON && i != AS_IT_IS)
			assert_true(4 * in_parts[i] >= 3 * all[i]);
}

static void dims_that_do_not_divide_run_in_parts(void **state)
{
	(void)state;
	check_chains(400, 3, tc_eval_gang);
}

static void they_do_so_on_devices(void **state)
{
	gang_start(state);
	check_chains(100, 4, gang_evaluate);
	gang_stop(state);
}

/* ---- windows that select ---- */

/* The gradient of a pool along two dims, of which the first is cut: windows that overlap, at the
 * ends partly over nothing, and parts of few rows. Some rows have nothing but the least number. */
static void check_pool(unsigned parts, int64_t part, int64_t size, int64_t stride, int64_t low,
		       unsigned *in_parts, spmd_evaluate *evaluate)
{
	int64_t n = parts * part, m = n / stride, high = (m - 1) * stride + size - low - n;
	struct tc_options o = { .level = 1, .verify = true, .partitions = parts,
				.evaluate_after = "shard" };
	struct tc_array args[2];
	struct tc_source source;
	struct str text = { 0 };

	str_printf(&text, "module() {num_partitions = %u, meshes = {mesh = \"[x=%u]\"}} () {\n"
		   "func() {sym_name = \"main\"} (%%0: tensor<2x%dx6xf32> {sharding = "
		   "\"@mesh[{},{x},{}]\"}, %%1: tensor<2x%dx3xf32> {sharding = "
		   "\"@mesh[{},{x},{}]\"}) {\n"
		   "%%2 = constant() {value = dense<splat 0x0000c03f> : tensor<f32>} : "
		   "tensor<f32>\n"
		   "%%3 = select_and_scatter(%%0, %%1, %%2) {window_dimensions = [1, %d, 3], "
		   "window_strides = [1, %d, 2], padding = [0, 0, %d, %d, 0, 1]} : "
		   "tensor<2x%dx6xf32> (%%4: tensor<f32>, %%5: tensor<f32>) {\n"
		   "%%6 = compare(%%4, %%5) {comparison_direction = <GE>, compare_type = "
		   "<FLOAT>} : tensor<i1>\n"
		   "return(%%6)\n} (%%7: tensor<f32>, %%8: tensor<f32>) {\n"
		   "%%9 = add(%%7, %%8) : tensor<f32>\nreturn(%%9)\n}\n"
		   "%%10 = sharding_constraint(%%3) {sharding = \"@mesh[{},{x},{}]\"} : "
		   "tensor<2x%dx6xf32>\nreturn(%%10)\n}\n}\n", parts, parts, (int)n, (int)m,
		   (int)size, (int)stride, (int)low, (int)high, (int)n, (int)n);
	source = (struct tc_source){ text.text, text.len, "mlir" };
	args[0] = new_array(3, (const int64_t[]){ 2, n, 6 });
	args[1] = new_array(3, (const int64_t[]){ 2, m, 3 });
	for (size_t i = 0; i < args[0].bytes / 4; i++)
		if (draw(0, 3) == 0 || i < 18)
			((float *)args[0].data)[i] = -INFINITY;
	agree_exactly(evaluate, &source, &o, args, 2);
	*in_parts += hops_of(&source, &o, 0) < 100;
	free(args[0].data);
	free(args[1].data);
	str_free(&text);
}

static void check_pools(unsigned n, uint64_t seed, spmd_evaluate *evaluate)
{
	static const unsigned parts[] = { 2, 3, 4, 6, 8 };
	unsigned in_parts = 0;

	state_of_draw = seed;
	for (unsigned i = 0; i < n; i++) {
		int64_t stride = draw(1, 3), size = stride + draw(0, 3), m = draw(1, 3);
		unsigned k = parts[draw(0, 4)];
		int64_t most = size - stride, low = draw(0, most);

		check_pool(k, m * stride, size, stride, low, &in_parts, evaluate);
	}
	print_message("%u of %u pools in parts\n", in_parts, n);
	assert_true(3 * in_parts >= 2 * n);
}

static void windows_that_overlap_select_in_parts(void **state)
{
	(void)state;
	check_pools(100, 5, tc_eval_gang);
}

static void they_select_so_on_devices(void **state)
{
	gang_start(state);
	check_pools(30, 6, gang_evaluate);
	gang_stop(state);
}

/* ---- places that are known only as it runs ---- */

struct dynamic {
	unsigned parts;
	bool is_update, is_two;
	bool is_static;		/* a slice */
	int64_t n, size, at;
	unsigned elem;
};

static void draw_dynamic(struct dynamic *k)
{
	static const unsigned parts[] = { 2, 3, 4, 6, 8 };
	static const unsigned elems[] = { ELEM_F32, ELEM_S8, ELEM_BF16, ELEM_PRED };

	k->parts = parts[draw(0, 4)];
	k->is_two = k->parts < 6 && draw(0, 1);
	k->n = k->parts * draw(1, 4);
	k->size = draw(1, draw(0, 2) ? k->n / k->parts : k->n - 1);
	k->at = draw(-3, k->n + 2);
	k->is_update = draw(0, 1);
	k->is_static = !k->is_update && !k->is_two && draw(0, 1);
	if (k->is_static)
		k->at = draw(0, k->n - k->size);
	k->elem = elems[draw(0, 3)];
}

/* With two axes slices are of one element of the outer dim, too. */
static void write_dynamic(const struct dynamic *k, struct str *s)
{
	const char *elem = elem_text((enum elem)k->elem);
	int n = (int)k->n, size = (int)k->size, outer = k->is_two ? 1 : 2;
	const char *lies = k->is_two ? "@mesh[{y},{x},{}]" : "@mesh[{},{x},{}]";

	str_printf(s, "module() {num_partitions = %u, meshes = {mesh = \"[x=%u%s]\"}} () {\n"
		   "func() {sym_name = \"main\"} (%%0: tensor<2x%dx3x%s> {sharding = \"%s\"}, "
		   "%%1: tensor<%dx%dx3x%s>, %%2: tensor<i32>, %%3: tensor<i32>) {\n",
		   k->parts * (k->is_two ? 2 : 1), k->parts, k->is_two ? ",y=2" : "", n, elem,
		   lies, outer, size, elem);
	if (k->is_update)
		str_printf(s, "%%4 = dynamic_update_slice(%%0, %%1, %%3, %%2, %%3) : "
			   "tensor<2x%dx3x%s>\n%%5 = sharding_constraint(%%4) {sharding = "
			   "\"%s\"} : tensor<2x%dx3x%s>\n", n, elem, lies, n, elem);
	else if (k->is_static)
		str_printf(s, "%%4 = slice(%%0) {start_indices = [0, %d, 0], limit_indices = [2, "
			   "%d, 3], strides = [1, 1, 1]} : tensor<2x%dx3x%s>\n"
			   "%%5 = sharding_constraint(%%4) {sharding = \"@mesh[{},{},{}]\"} : "
			   "tensor<2x%dx3x%s>\n", (int)k->at, (int)k->at + size, size, elem, size,
			   elem);
	else
		str_printf(s, "%%5 = dynamic_slice(%%0, %%3, %%2, %%3) {slice_sizes = [%d, %d, 3]} "
			   ": tensor<%dx%dx3x%s>\n", outer, size, outer, size, elem);
	str_printf(s, "return(%%5)\n}\n}\n");
}

static struct tc_array new_bytes(unsigned elem, unsigned rank, const int64_t *dim)
{
	static const uint32_t values[] = { 0x80000000, 0, 0x3f800000, 0xff7fffff, 0x7f800000 };
	struct tc_array a = { .elem = (uint8_t)elem, .rank = (uint8_t)rank,
			      .bytes = elem_bytes(elem) };

	for (unsigned d = 0; d < rank; d++) {
		a.dim[d] = dim[d];
		a.bytes *= (size_t)dim[d];
	}
	a.data = malloc(a.bytes);
	assert_non_null(a.data);
	for (size_t i = 0; i < a.bytes; i += elem_bytes(elem)) {
		uint32_t v = values[draw(0, 4)];

		v = elem == ELEM_F32 ? v : elem == ELEM_PRED ? v & 1 ? 1 : v != 0 :
		    elem == ELEM_S8 ? (uint32_t)draw(0, 255) : v >> 16;
		memcpy((char *)a.data + i, &v, elem_bytes(elem));
	}
	return a;
}

/* A member's part, bit for bit: of a slice the whole. */
static void check_parts(const struct dynamic *k, const struct lay *l, unsigned members,
			const struct tc_array *outs, const struct tc_array *should,
			const char *text)
{
	for (unsigned m = 0; m < members; m++) {
		struct tc_array part = lay_cut(l, should, m);

		if (part.bytes != outs[m].bytes || memcmp(part.data, outs[m].data, part.bytes))
			fail_msg("member %u, start %d\n%s", m, (int)k->at, text);
		free(part.data);
	}
}

static void check_dynamic(const struct dynamic *k, spmd_evaluate *evaluate)
{
	unsigned members = k->parts * (k->is_two ? 2 : 1);
	struct tc_options o = { .level = 1, .verify = true, .partitions = members,
				.evaluate_after = "shard" };
	int32_t starts[2] = { (int32_t)k->at, k->at & 1 };
	struct tc_array whole[4], args[4 * 8], *should, *outs;
	static struct lays l;
	struct tc_source source;
	struct str text = { 0 };
	struct err err;
	size_t n;

	write_dynamic(k, &text);
	source = (struct tc_source){ text.text, text.len, "mlir" };
	whole[0] = new_bytes(k->elem, 3, (const int64_t[]){ 2, k->n, 3 });
	whole[1] = new_bytes(k->elem, 3, (const int64_t[]){ k->is_two ? 1 : 2, k->size, 3 });
	for (unsigned i = 0; i < 2; i++)
		whole[2 + i] = (struct tc_array){ .elem = ELEM_S32, .bytes = 4,
						  .data = &starts[i] };
	l = (struct lays){ .partitions = members };
	if (tc_eval(&source, whole, 4, &should, &n, &err) ||
	    tc_enter(&source, &o, &err, lay_find_all, &l))
		fail_msg("%s\n%s", err.msg, text.text);
	for (unsigned m = 0; m < members; m++)
		for (unsigned i = 0; i < 4; i++)
			args[4 * m + i] = lay_cut(&l.arg[i], &whole[i], m);
	if (evaluate(&source, &o, args, 4, &outs, &n, &err))
		fail_msg("%s\n%s", err.msg, text.text);
	check_parts(k, &l.result[0], members, outs, should, text.text);
	/* Nobody collects what is sliced or updated. */
	if ((k->is_update || k->size <= k->n / k->parts) &&
	    !(k->is_static && 2 * k->size >= k->n) && hops_of(&source, &o, 0) == 100)
		fail_msg("it collects\n%s", text.text);
	tc_array_free(outs, members);
	tc_array_free(should, 1);
	for (unsigned i = 0; i < 4 * members; i++)
		free(args[i].data);
	free(whole[0].data);
	free(whole[1].data);
	str_free(&text);
}

static void slices_are_taken_and_put_where_they_lie(void **state)
{
	struct dynamic k;

	(void)state;
	state_of_draw = 4;
	for (unsigned i = 0; i < 500; i++) {
		draw_dynamic(&k);
		check_dynamic(&k, tc_eval_gang);
	}
}

static void they_are_so_on_devices(void **state)
{
	struct dynamic k;

	gang_start(state);
	state_of_draw = 5;
	for (unsigned i = 0; i < 80; i++) {
		draw_dynamic(&k);
		check_dynamic(&k, gang_evaluate);
	}
	gang_stop(state);
}

/* ---- slices of one value, and what is joined of them ---- */

/* `n_parts` slices of m rows, one behind the other (`is_split`) or anywhere; then two of them, and
 * often rows of another value, are joined; if anywhere, it is padded, too. Another axis of the
 * mesh, before or behind the dim's. Rows are of 1 KiB: less it is as well to collect. */
enum { WIDE = 128 };
struct pieces {
	unsigned parts, n_parts;
	bool is_split, has_rest;
	int other;		/* -1: before, 1: behind */
	int64_t n, m, rest, start[4], low, high;
};

static void draw_pieces(struct pieces *k)
{
	static const unsigned parts[] = { 2, 3, 4, 6, 8 };

	*k = (struct pieces){ .parts = parts[draw(0, 4)], .n_parts = (unsigned)draw(2, 4),
			      .is_split = draw(0, 2) > 0, .has_rest = draw(0, 1) };
	k->other = k->parts < 6 ? (int)draw(-1, 1) : 0;
	k->m = k->parts * draw(1, 3);
	k->n = k->m * k->n_parts;
	if (!k->is_split)
		k->n = k->m + k->parts * draw(0, 4);
	for (unsigned i = 0; i < k->n_parts; i++)
		k->start[i] = k->is_split ? i * k->m : draw(0, k->n - k->m);
	k->rest = k->parts * draw(1, 3) - (draw(0, 2) ? 0 : k->has_rest);
	if (k->is_split)
		return;
	k->low = draw(0, 3) ? draw(1 - k->n, k->n) : 0;
	k->high = k->parts * draw(1, 8) - k->n - k->low;
	if (k->n + (k->low < 0 ? k->low : 0) + (k->high < 0 ? k->high : 0) < 1)
		k->high = -k->low;
}

static void write_pieces(const struct pieces *k, struct str *s)
{
	int m = (int)k->m, padded = (int)(k->n + k->low + k->high), joined;

	joined = 2 * m + (k->has_rest ? (int)k->rest : 0);
	str_printf(s, "module() {num_partitions = %u, meshes = {mesh = \"[%sx=%u%s]\"}} () {\n"
		   "func() {sym_name = \"main\"} (%%0: tensor<2x%dx128xf32> {sharding = "
		   "\"@mesh[{},{x},{}]\"}, %%1: tensor<2x%dx128xf32> {sharding = "
		   "\"@mesh[{},{%s},{}]\"}) {\n"
		   "%%2 = constant() {value = dense<splat 0x0000c03f> : tensor<f32>} : "
		   "tensor<f32>\n", k->parts * (k->other ? 2 : 1),
		   k->other < 0 ? "y=2," : "", k->parts, k->other > 0 ? ",y=2" : "", (int)k->n,
		   (int)k->rest, k->rest % k->parts ? "" : "x");
	for (unsigned i = 0; i < k->n_parts; i++) {
		put_wide_rows(s, 10 + (int)i, 0, (int)k->start[i], m, WIDE);
		str_printf(s, "%%%u = sharding_constraint(%%%u) {sharding = \"@mesh[{},{x},{}]\"}"
			   " : tensor<2x%dx128xf32>\n%%%u = add(%%%u, %%%u) : "
			   "tensor<2x%dx128xf32>\n", 20 + i, 10 + i, m, 30 + i, 20 + i,
			   20 + i, m);
	}
	str_printf(s, "%%50 = pad(%%0, %%2) {edge_padding_low = [0, %d, 0], edge_padding_high = "
		   "[0, %d, 0], interior_padding = [0, 0, 0]} : tensor<2x%dx128xf32>\n"
		   "%%51 = sharding_constraint(%%50) {sharding = \"@mesh[{},{x},{}]\"} : "
		   "tensor<2x%dx128xf32>\n", (int)k->low, (int)k->high, padded, padded);
	str_printf(s, "%%40 = concatenate(%%%u, %s%%30) {dimension = 1} : tensor<2x%dx128xf32>\n"
		   "%%41 = sharding_constraint(%%40) {sharding = \"@mesh[{},{%s},{}]\"} : "
		   "tensor<2x%dx128xf32>\nreturn(%%41", 29 + k->n_parts, k->has_rest ? "%1, " : "",
		   joined, joined % (int)k->parts ? "" : "x", joined);
	for (unsigned i = 0; i < k->n_parts; i++)
		str_printf(s, ", %%%u", 30 + i);
	str_printf(s, "%s)\n}\n}\n", k->is_split ? "" : ", %51");
}

static void check_pieces(unsigned n, uint64_t seed, spmd_evaluate *evaluate)
{
	unsigned n_split = 0, in_parts = 0;
	struct pieces k;

	state_of_draw = seed;
	for (unsigned i = 0; i < n; i++) {
		struct tc_options o = { .level = 1, .verify = true, .evaluate_after = "shard" };
		struct tc_array args[2];
		struct tc_source source;
		struct str text = { 0 };

		draw_pieces(&k);
		o.partitions = k.parts * (k.other ? 2 : 1);
		write_pieces(&k, &text);
		source = (struct tc_source){ text.text, text.len, "mlir" };
		args[0] = new_array(3, (const int64_t[]){ 2, k.n, WIDE });
		args[1] = new_array(3, (const int64_t[]){ 2, k.rest, WIDE });
		agree_exactly(evaluate, &source, &o, args, 2);
		if (k.is_split && !k.has_rest) {
			n_split++;
			in_parts += hops_of(&source, &o, 0) <= 2 * k.n_parts;
		}
		free(args[0].data);
		free(args[1].data);
		str_free(&text);
	}
	print_message("%u of %u split in parts\n", in_parts, n_split);
	assert_int_equal(in_parts, n_split);
}

static void members_get_the_pieces_that_they_lack(void **state)
{
	(void)state;
	check_pieces(200, 7, tc_eval_gang);
}

static void they_get_them_on_devices(void **state)
{
	gang_start(state);
	check_pieces(40, 8, gang_evaluate);
	gang_stop(state);
}

/* By how many neighbours' rows an op is made. */
static void as_few_as_can_be(void **state)
{
	static const struct { struct drawn k; unsigned hops; } cases[] = {
		/* Of 4 rows each: itself, one row of each side, of two, of four. */
		{ { CONV, 8, false, 32, 32, 1, 1, 0, 0, 1, 1, 0, 0 }, 0 },
		{ { CONV, 8, false, 32, 32, 1, 1, 1, 1, 3, 1, 0, 0 }, 2 },
		{ { CONV, 8, false, 32, 32, 1, 1, 2, 0, 3, 1, 0, 0 }, 1 },
		{ { CONV, 8, false, 8, 8, 1, 1, 2, 2, 5, 1, 0, 0 }, 4 },
		{ { CONV, 8, false, 8, 8, 1, 1, 5, 0, 6, 1, 0, 0 }, 100 },
		/* The kernel has six rows, not the three that a member has of it. */
		{ { CUT_KERNEL, 8, false, 8, 8, 1, 1, 4, 1, 6, 1, 0, 0 }, 100 },
		{ { CUT_KERNEL, 8, false, 32, 32, 1, 1, 3, 2, 6, 1, 0, 0 }, 2 },
		/* A gradient's kernel of 32 rows: a row of each side, or two of one. */
		{ { GRADIENT, 8, false, 32, 3, 1, 1, 1, 1, 32, 1, 0, 0 }, 2 },
		{ { GRADIENT, 8, false, 32, 2, 2, 1, 0, 2, 32, 1, 0, 0 }, 1 },
		/* By two neighbours all that there is. */
		{ { CONV, 3, false, 6, 6, 1, 1, 4, 4, 5, 2, 0, 0 }, 100 },
		{ { CONV, 3, false, 6, 6, 1, 1, 1, 1, 3, 1, 0, 0 }, 2 },
		/* Every other one, from the first or second. */
		{ { SLICE, 8, false, 16, 8, 2, 1, 0, 16, 1, 1, 0, 0 }, 0 },
		{ { SLICE, 8, false, 16, 8, 2, 1, 1, 16, 1, 1, 0, 0 }, 0 },
		/* Holes between, and the other way round. */
		{ { PAD, 4, false, 8, 16, 1, 2, 0, 1, 1, 1, 0, 0 }, 0 },
		{ { PAD, 4, false, 8, 8, 1, 1, 1, -1, 1, 1, 0, 0 }, 1 },
		{ { TURN, 3, false, 3, 3, 1, 1, 0, 0, 1, 1, 0, 0 }, 1 },
		/* Round by one row, by a part, by a part and a row; of two members by a row. */
		{ { ROLL, 8, false, 32, 32, 1, 1, 31, 0, 1, 1, 0, 0 }, 1 },
		{ { ROLL, 8, false, 32, 32, 1, 1, 28, 0, 4, 1, 0, 0 }, 1 },
		{ { ROLL, 8, false, 32, 32, 1, 1, 27, 0, 5, 1, 0, 0 }, 2 },
		{ { ROLL, 2, false, 8, 8, 1, 1, 7, 0, 1, 1, 0, 0 }, 1 },
		/* A row before, a row behind, more rows than a part has. */
		{ { SHIFT, 8, false, 32, 32, 1, 1, 0, 0, 1, 1, 0, 0 }, 1 },
		{ { SHIFT, 8, false, 32, 32, 1, 1, 1, 0, 1, 0, 0, 0 }, 1 },
		{ { SHIFT, 8, false, 16, 16, 1, 1, 0, 0, 3, 1, 0, 0 }, 100 },
		{ { UNCUT, 8, false, 32, 32, 1, 1, 1, 0, 0, 1, 0, 0 }, 1 },
		{ { UNCUT, 8, false, 32, 32, 0, 1, 0, 1, 1, 0, 0, 0 }, 1 },
		{ { TRIMMED, 8, false, 32, 32, 1, 1, 1, 0, 0, 1, 0, 0 }, 1 },
	};

	(void)state;
	state_of_draw = 3;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		unsigned hops = check_op(&cases[i].k, tc_eval_gang);

		if (hops != cases[i].hops)
			fail_msg("case %u: %u hops", i, hops);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(neighbours_give_what_is_needed),
		cmocka_unit_test(neighbours_give_it_on_devices),
		cmocka_unit_test(dims_that_do_not_divide_run_in_parts),
		cmocka_unit_test(they_do_so_on_devices),
		cmocka_unit_test(windows_that_overlap_select_in_parts),
		cmocka_unit_test(they_select_so_on_devices),
		cmocka_unit_test(slices_are_taken_and_put_where_they_lie),
		cmocka_unit_test(they_are_so_on_devices),
		cmocka_unit_test(members_get_the_pieces_that_they_lack),
		cmocka_unit_test(they_get_them_on_devices),
		cmocka_unit_test(as_few_as_can_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
