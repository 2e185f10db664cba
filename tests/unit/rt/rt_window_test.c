/* SPDX-License-Identifier: Apache-2.0 */
/* Windows over padding of arrays on both sides of what is put together in parts
 * (opt/taps.c), and over holes (lower/holes.c), against the evaluator; and which of them
 * need no copy. */
#include "tests/unit/against_eval.h"

struct window {
	const char *op, *type, *elem, *init, *result, *shape, *strides, *dilations, *padding;
	bool in_parts;
};

static void check(const struct window *w)
{
	char text[1500];

	snprintf(text, sizeof(text),
		 "module() () {\nfunc() {sym_name = \"main\"} (%%1: tensor<%sx%s>) {\n"
		 "%%2 = constant() {value = dense<%s> : tensor<%s>} : tensor<%s>\n"
		 "%%3 = reduce_window(%%1, %%2) {window_dimensions = [%s], window_strides = [%s], "
		 "base_dilations = [1, 1, 1], window_dilations = [%s], padding = [%s]} : "
		 "tensor<%sx%s> (%%90: tensor<%s>, %%91: tensor<%s>) {\n"
		 "%%92 = %s(%%90, %%91) : tensor<%s>\nreturn(%%92)\n}\n"
		 "return(%%3)\n}\n}\n", w->type, w->elem, w->init, w->elem, w->elem, w->shape,
		 w->strides, w->dilations, w->padding, w->result, w->elem, w->elem, w->elem, w->op,
		 w->elem);
	runs_as_evaluated(text);
	if (w->in_parts != !compiled_temp_bytes(text, 0))
		fail_msg("%llu bytes of temporaries:\n%s",
			 (unsigned long long)compiled_temp_bytes(text, 0), text);
}

#define LEAST "0x000080ff"	/* -inf */
#define MOST "0x0000807f"
#define ONE "0x0000803f"
#define NONE "0x00000000"

static void parts_of_padded_windows_are_the_windows(void **state)
{
	static const struct window list[] = {
		/* at the end only, as of an even size with a stride; on both sides */
		{ "maximum", "38x42x48", "f32", LEAST, "19x21x48", "3, 3, 1", "2, 2, 1", "1, 1, 1",
		  "0, 1, 0, 1, 0, 0", true },
		{ "minimum", "38x42x48", "f32", MOST, "38x42x48", "3, 3, 1", "1, 1, 1",
		  "1, 1, 1", "1, 1, 1, 1, 0, 0", true },
		{ "add", "38x42x48", "f32", NONE, "13x14x48", "4, 5, 1", "3, 3, 1", "1, 1, 1",
		  "2, 0, 3, 0, 0, 0", true },
		{ "multiply", "41x41x41", "f32", ONE, "41x41x41", "1, 1, 2", "1, 1, 1", "1, 1, 1",
		  "0, 0, 0, 0, 1, 0", true },
		/* windows of nothing but padding, at either end */
		{ "add", "38x42x48", "f32", NONE, "43x42x50", "2, 1, 1", "1, 1, 1", "1, 1, 1",
		  "3, 3, 0, 0, 1, 1", true },
		{ "maximum", "3x2x12000", "f32", LEAST, "4x5x12000", "2, 3, 1", "2, 1, 1",
		  "1, 1, 1", "2, 3, 3, 2, 0, 0", true },
		/* steps within a window, windows wider than the array, cut off elements */
		{ "maximum", "38x42x48", "f32", LEAST, "18x42x48", "3, 3, 1", "2, 1, 1", "2, 3, 1",
		  "1, 0, 3, 3, 0, 0", true },
		{ "add", "2x700x50", "f32", NONE, "3x700x50", "5, 1, 1", "1, 1, 1", "1, 1, 1",
		  "2, 3, 0, 0, 0, 0", true },
		{ "add", "38x42x48", "f32", NONE, "36x42x48", "2, 3, 1", "1, 1, 1", "1, 1, 1",
		  "-2, 1, 1, 1, 0, 0", true },
		/* whole numbers */
		{ "add", "38x42x48", "i32", NONE, "19x21x48", "3, 3, 1", "2, 2, 1", "1, 1, 1",
		  "1, 0, 1, 0, 0, 0", true },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(list) / sizeof(*list); i++)
		check(&list[i]);
}

static void limits_of_parts(void **state)
{
	static const struct window list[] = {
		/* 65,536 elements; and one less, of which the fusion reads the padding in boxes */
		{ "add", "16x64x64", "f32", NONE, "16x64x64", "1, 2, 1", "1, 1, 1", "1, 1, 1",
		  "0, 0, 1, 0, 0, 0", true },
		{ "add", "15x17x257", "f32", NONE, "15x17x257", "1, 2, 1", "1, 1, 1", "1, 1, 1",
		  "0, 0, 1, 0, 0, 0", true },
		/* 20 elements and 21 */
		{ "add", "20x60x60", "f32", NONE, "20x60x60", "1, 5, 4", "1, 1, 1", "1, 1, 1",
		  "0, 0, 2, 2, 2, 1", true },
		{ "add", "20x60x60", "f32", NONE, "20x60x60", "1, 7, 3", "1, 1, 1", "1, 1, 1",
		  "0, 0, 3, 3, 1, 1", false },
		/* 27 boxes and 45 */
		{ "maximum", "42x42x42", "f32", LEAST, "43x43x42", "2, 2, 3", "1, 1, 1", "1, 1, 1",
		  "1, 1, 1, 1, 1, 1", true },
		{ "maximum", "42x42x42", "f32", LEAST, "43x43x44", "2, 2, 3", "1, 1, 1", "1, 1, 1",
		  "1, 1, 1, 1, 2, 2", false },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(list) / sizeof(*list); i++)
		check(&list[i]);
}

struct holes {
	const char *op, *by, *init, *in, *padded, *out, *shape, *strides, *dilations, *low,
		*high, *interior;
	bool repeats;
};

/* The holes are the window's own, or a pad's in front of it. */
static void check_holes(const struct holes *h, bool own)
{
	char text[2500], padding[100] = "", base[100] = "";
	int64_t low[3], high[3], interior[3], dim[3];
	uint64_t temps;

	sscanf(h->low, "%ld, %ld, %ld", &low[0], &low[1], &low[2]);
	sscanf(h->high, "%ld, %ld, %ld", &high[0], &high[1], &high[2]);
	sscanf(h->interior, "%ld, %ld, %ld", &interior[0], &interior[1], &interior[2]);
	sscanf(h->padded, "%ldx%ldx%ld", &dim[0], &dim[1], &dim[2]);
	for (unsigned d = 0; d < 3; d++) {
		snprintf(padding + strlen(padding), sizeof(padding) - strlen(padding),
			 "%s%ld, %ld", d ? ", " : "", own ? low[d] : 0, own ? high[d] : 0);
		snprintf(base + strlen(base), sizeof(base) - strlen(base), "%s%ld",
			 d ? ", " : "", own ? interior[d] + 1 : 1);
	}
	snprintf(text, sizeof(text),
		 "module() () {\nfunc() {sym_name = \"main\"} (%%1: tensor<%sxf32>) {\n"
		 "%%2 = constant() {value = dense<%s> : tensor<f32>} : tensor<f32>\n"
		 "%%3 = constant() {value = dense<%s> : tensor<f32>} : tensor<f32>\n"
		 "%%4 = pad(%%1, %%3) {edge_padding_low = [%s], edge_padding_high = [%s], "
		 "interior_padding = [%s]} : tensor<%sxf32>\n"
		 "%%5 = reduce_window(%s, %%2) {window_dimensions = [%s], window_strides = [%s], "
		 "base_dilations = [%s], window_dilations = [%s], padding = [%s]} : "
		 "tensor<%sxf32> (%%90: tensor<f32>, %%91: tensor<f32>) {\n"
		 "%%92 = %s(%%90, %%91) : tensor<f32>\nreturn(%%92)\n}\nreturn(%%5)\n}\n}\n",
		 h->in, h->init, h->by, h->low, h->high, h->interior, h->padded,
		 own ? "%1" : "%4", h->shape, h->strides, base, h->dilations, padding, h->out,
		 h->op);
	runs_as_evaluated(text);
	temps = compiled_temp_bytes(text, 0);
	if (h->repeats != (temps < 4 * (uint64_t)(dim[0] * dim[1] * dim[2])))
		fail_msg("%llu bytes of temporaries, %s holes:\n%s", (unsigned long long)temps,
			 own ? "own" : "a pad's", text);
}

#define TWO "0x00000040"

static void windows_over_holes_are_as_many_times_one(void **state)
{
	static const struct holes list[] = {
		/* as wide as the holes are apart; twice as wide, and some before and after it */
		{ "add", NONE, NONE, "28x28x32", "57x57x32", "56x56x32", "2, 2, 1", "1, 1, 1",
		  "1, 1, 1", "1, 1, 0", "1, 1, 0", "1, 1, 0", true },
		{ "add", NONE, NONE, "28x28x32", "63x59x32", "60x56x32", "4, 4, 1", "1, 1, 1",
		  "1, 1, 1", "5, 3, 0", "3, 1, 0", "1, 1, 0", true },
		{ "maximum", LEAST, LEAST, "28x28x32", "55x57x32", "54x56x32", "2, 2, 1",
		  "1, 1, 1", "1, 1, 1", "-1, 1, 0", "1, 1, 0", "1, 1, 0", true },
		{ "multiply", ONE, ONE, "8x8x32", "50x62x32", "42x54x32", "9, 9, 1", "1, 1, 1",
		  "1, 1, 1", "-1, 8, 0", "-13, -10, 0", "8, 8, 0", true },
		{ "multiply", ONE, ONE, "8x8x32", "62x62x32", "54x54x32", "9, 9, 1", "1, 1, 1",
		  "1, 1, 1", "-1, 8, 0", "-1, -10, 0", "8, 8, 0", true },
		/* one before that, one after it, one more, one less */
		{ "maximum", LEAST, LEAST, "28x28x32", "57x57x32", "56x56x32", "2, 2, 1",
		  "1, 1, 1", "1, 1, 1", "0, 2, 0", "2, 0, 0", "1, 1, 0", false },
		{ "add", NONE, NONE, "28x28x32", "57x57x32", "55x55x32", "3, 3, 1", "1, 1, 1",
		  "1, 1, 1", "1, 1, 0", "1, 1, 0", "1, 1, 0", false },
		{ "minimum", MOST, MOST, "20x20x32", "61x60x32", "60x59x32", "2, 2, 1",
		  "1, 1, 1", "1, 1, 1", "2, 2, 0", "1, 0, 0", "2, 2, 0", false },
		{ "add", NONE, NONE, "28x28x32", "57x56x32", "56x55x32", "2, 2, 1", "1, 1, 1",
		  "1, 1, 1", "1, 1, 0", "1, 0, 0", "1, 1, 0", true },
		/* 16 elements behind it, and one less */
		{ "add", NONE, NONE, "64x28x16", "64x57x16", "64x56x16", "1, 2, 1", "1, 1, 1",
		  "1, 1, 1", "0, 1, 0", "0, 1, 0", "0, 1, 0", true },
		{ "add", NONE, NONE, "64x28x15", "64x57x15", "64x56x15", "1, 2, 1", "1, 1, 1",
		  "1, 1, 1", "0, 1, 0", "0, 1, 0", "0, 1, 0", false },
		/* strides and dilated windows in that dim, and in another */
		{ "add", NONE, NONE, "28x28x32", "28x57x32", "28x28x32", "1, 2, 1", "1, 2, 1",
		  "1, 1, 1", "0, 1, 0", "0, 1, 0", "0, 1, 0", false },
		{ "add", NONE, NONE, "28x28x32", "28x58x32", "28x56x32", "1, 2, 1", "1, 1, 1",
		  "1, 2, 1", "0, 1, 0", "0, 2, 0", "0, 1, 0", false },
		{ "add", NONE, NONE, "28x28x32", "28x57x32", "12x56x32", "3, 2, 1", "2, 1, 1",
		  "2, 1, 1", "0, 1, 0", "0, 1, 0", "0, 1, 0", true },
	};
	static const struct holes other[] = {
		/* what is padded with is not what the window begins with, or counts */
		{ "add", TWO, NONE, "28x28x32", "28x57x32", "28x56x32", "1, 2, 1", "1, 1, 1",
		  "1, 1, 1", "0, 1, 0", "0, 1, 0", "0, 1, 0", false },
		{ "add", TWO, TWO, "28x28x32", "28x57x32", "28x56x32", "1, 2, 1", "1, 1, 1",
		  "1, 1, 1", "0, 1, 0", "0, 1, 0", "0, 1, 0", false },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(list) / sizeof(*list); i++)
		for (unsigned own = 0; own < 2; own++)
			check_holes(&list[i], own);
	for (unsigned i = 0; i < sizeof(other) / sizeof(*other); i++)
		check_holes(&other[i], false);
}

/* A pad may take away more than there is, if no window is left. */
static void no_window_is_left(void **state)
{
	(void)state;
	runs_as_evaluated("module() () {\nfunc() {sym_name = \"main\"} (%1: tensor<2x1x16xf32>) {\n"
			  "%2 = constant() {value = dense<" NONE "> : tensor<f32>} : tensor<f32>\n"
			  "%3 = reduce_window(%1, %2) {window_dimensions = [1, 4, 1], "
			  "window_strides = [1, 1, 1], base_dilations = [4, 4, 3], "
			  "window_dilations = [1, 1, 1], padding = [1, 1, -1, -1, 5, 4]} : "
			  "tensor<7x0x55xf32> (%90: tensor<f32>, %91: tensor<f32>) {\n"
			  "%92 = add(%90, %91) : tensor<f32>\nreturn(%92)\n}\nreturn(%3)\n}\n}\n");
}

/* A sum of windows of 2 x 1 over a pad of 8 x 32; both pad, or take away. */
static void pad_and_window(const char *low, const char *high, const char *padded,
			   const char *padding, const char *out)
{
	char text[1200];

	snprintf(text, sizeof(text),
		 "module() () {\nfunc() {sym_name = \"main\"} (%%1: tensor<8x32xf32>) {\n"
		 "%%2 = constant() {value = dense<" NONE "> : tensor<f32>} : tensor<f32>\n"
		 "%%3 = pad(%%1, %%2) {edge_padding_low = [%s], edge_padding_high = [%s], "
		 "interior_padding = [1, 0]} : tensor<%sxf32>\n"
		 "%%4 = reduce_window(%%3, %%2) {window_dimensions = [2, 1], "
		 "window_strides = [1, 1], base_dilations = [1, 1], window_dilations = [1, 1], "
		 "padding = [%s]} : tensor<%sxf32> (%%90: tensor<f32>, %%91: tensor<f32>) {\n"
		 "%%92 = add(%%90, %%91) : tensor<f32>\nreturn(%%92)\n}\nreturn(%%4)\n}\n}\n",
		 low, high, padded, padding, out);
	runs_as_evaluated(text);
}

static void what_a_pad_takes_away_stays_away(void **state)
{
	(void)state;
	pad_and_window("1, -1", "1, 0", "17x31", "0, 0, 1, 0", "16x32");
	pad_and_window("1, 0", "1, -2", "17x30", "0, 0, 0, 2", "16x32");
	pad_and_window("-1, 0", "1, 0", "15x32", "2, 0, 0, 0", "16x32");
	pad_and_window("1, 0", "-1, 0", "15x32", "0, 2, 0, 0", "16x32");
	pad_and_window("1, -1", "1, -1", "17x30", "0, 0, -1, 0", "16x29");
	pad_and_window("1, 1", "1, 1", "17x34", "0, 0, 1, -2", "16x33");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_of_padded_windows_are_the_windows),
		cmocka_unit_test(limits_of_parts),
		cmocka_unit_test(windows_over_holes_are_as_many_times_one),
		cmocka_unit_test(no_window_is_left),
		cmocka_unit_test(what_a_pad_takes_away_stays_away),
	};

	return cmocka_run_group_tests(tests, against_eval_start, against_eval_stop);
}
