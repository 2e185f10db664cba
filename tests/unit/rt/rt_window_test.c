/* SPDX-License-Identifier: Apache-2.0 */
/* Windows over padding of arrays on both sides of what is put together in parts
 * (opt/taps.c), against the evaluator; and which of them need no copy. */
#include "tests/unit/against_eval.h"

struct window {
	const char *op, *type, *elem, *init, *result, *shape, *strides, *dilations, *padding;
	bool in_parts;
};

static void check(const struct window *w)
{
	const struct tc_options o = { .level = 1, .verify = true };
	struct tc_result r;
	struct image *image;
	char text[1500];
	struct err err;

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
	if (tc_compile(&(struct tc_source){ text, strlen(text), "mlir" }, &o, &r, &err) ||
	    image_parse(r.image, r.image_bytes, &image, &err))
		fail_msg("%s\n%s", err.msg, text);
	if (w->in_parts != !image->info.temp_bytes)
		fail_msg("%llu bytes of temporaries:\n%s",
			 (unsigned long long)image->info.temp_bytes, text);
	image_free(image);
	tc_result_free(&r);
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
		/* 65,536 elements and one less */
		{ "add", "16x64x64", "f32", NONE, "16x64x64", "1, 2, 1", "1, 1, 1", "1, 1, 1",
		  "0, 0, 1, 0, 0, 0", true },
		{ "add", "15x17x257", "f32", NONE, "15x17x257", "1, 2, 1", "1, 1, 1", "1, 1, 1",
		  "0, 0, 1, 0, 0, 0", false },
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_of_padded_windows_are_the_windows),
		cmocka_unit_test(limits_of_parts),
	};

	return cmocka_run_group_tests(tests, against_eval_start, against_eval_stop);
}
