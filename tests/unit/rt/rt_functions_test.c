/* SPDX-License-Identifier: Apache-2.0 */
/* What functions of the host are shown: read as the compiler wrote it, or refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/compiler/tc.h"
#include "runtime/rt_internal.h"

static const char program[] =
	"module() {sym_name = \"calls\"} () {\n"
	"  func() {sym_name = \"main\"} (%1: tensor<2x3xf32>, %2: tensor<i32>) {\n"
	"    %3, %4 = custom_call(%1, %2) {call_target_name = \"f\", has_side_effect = true, "
	"aliases = [1, 0], frame = {by = dense<0x0000c03f> : tensor<f32>, "
	"all = dense<0x01000200> : tensor<2xi16>, text = \"abc\", "
	"in = {on = dense<0x01> : tensor<i1>, none = {}}}} : tensor<i64>, tensor<2x3xf32>\n"
	"    %5 = custom_call(%3) {call_target_name = \"g\", frame = {}, "
	"operand_layouts = {}, result_layouts = {}} : tensor<0xui8>\n"
	"    return(%4, %5)\n"
	"  }\n"
	"}\n";

static struct image *image;
static void *file;
static unsigned loaded, unloaded, sum;	/* sum: of all that was seen, so that it is read */

static void see_attributes(const struct rt_attributes *list)
{
	for (uint64_t i = 0; i < list->n; i++) {
		const struct rt_attribute *a = &list->at[i];
		uint64_t n = a->kind == IMAGE_ATTRIBUTE_TEXT ? a->n : a->n * elem_bytes(a->elem);

		sum += (unsigned)strlen(a->name);
		for (uint64_t k = 0; a->kind != IMAGE_ATTRIBUTE_LIST && k < n; k++)
			sum += ((const uint8_t *)a->data)[k];
		if (a->kind == IMAGE_ATTRIBUTE_LIST)
			see_attributes(&a->list);
	}
}

static void see(const struct rt_function *f)
{
	for (uint32_t i = 0; i < f->n_in + f->n_out; i++) {
		sum += (unsigned)f->arrays[i].bytes;
		for (unsigned d = 0; d < f->arrays[i].rank; d++)
			sum += (unsigned)f->arrays[i].dim[d];
	}
	see_attributes(&f->attributes);
}

static int load(const struct rt_function *f, void **state, struct err *err)
{
	if (!strcmp(f->name, "nobody"))
		return err_set(err, ERR_NOT_FOUND, "nobody");
	see(f);
	loaded++;
	*state = (void *)(uintptr_t)f;
	return 0;
}

static void unload(void *state)
{
	see(state);
	unloaded++;
}

static const struct rt_functions functions = { .load = load, .unload = unload };
static struct rt_client client = { .functions = &functions };

static int setup(void **state)
{
	struct tc_result r;
	struct err err;

	(void)state;
	if (tc_compile(&(struct tc_source){ program, sizeof(program) - 1, "mlir" }, NULL, &r,
		       &err) || image_view(r.image, r.image_bytes, &image, &err))
		fail_msg("%s", err.msg);
	file = r.image;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	image_free(image);
	free(file);
	return 0;
}

static void a_function_is_shown_what_the_program_says(void **state)
{
	const struct rt_attribute *a;
	const struct rt_function *f;
	struct rt_called *k;
	struct err err;

	(void)state;
	assert_int_equal(rt_called_new(&client, image, &k, &err), 0);
	assert_int_equal(k->n, 2);
	assert_int_equal(rt_called_find(k, 1), 0);
	assert_int_equal(rt_called_find(k, 2), 1);
	assert_int_equal(rt_called_find(k, 3), -1);
	f = &k->calls[0].function;
	assert_string_equal(f->name, "f");
	assert_int_equal(f->n_in, 2);
	assert_int_equal(f->n_out, 2);
	assert_int_equal(f->arrays[0].elem, ELEM_F32);
	assert_int_equal(f->arrays[0].dim[1], 3);
	assert_int_equal(f->arrays[0].bytes, 24);
	assert_int_equal(f->arrays[1].rank, 0);
	assert_int_equal(f->arrays[2].alias, -1);
	assert_int_equal(f->arrays[3].alias, 0);
	assert_int_equal(f->attributes.n, 4);
	a = f->attributes.at;	/* by name */
	assert_string_equal(a[0].name, "all");
	assert_int_equal(a[0].kind, IMAGE_ATTRIBUTE_ARRAY);
	assert_int_equal(a[0].n, 2);
	assert_int_equal(((const int16_t *)a[0].data)[1], 2);
	assert_string_equal(a[1].name, "by");
	assert_int_equal(a[1].kind, IMAGE_ATTRIBUTE_SCALAR);
	assert_true(*(const float *)a[1].data == 1.5f);
	assert_int_equal(a[2].list.n, 2);
	assert_string_equal(a[2].list.at[1].name, "on");
	assert_int_equal(a[2].list.at[0].list.n, 0);
	assert_string_equal(a[3].data, "abc");
	assert_int_equal(k->calls[1].function.arrays[1].bytes, 0);
	rt_called_unref(k);
	assert_int_equal(loaded, 2);
	assert_int_equal(unloaded, 2);
}

/* Loads a changed copy of what functions are shown, in memory that ends where it ends. */
static int load_changed(const uint8_t *bytes, size_t n)
{
	struct image im = *image;
	struct rt_called *k = NULL;
	uint8_t *copy = malloc(n);
	struct err err;
	int code;

	memcpy(copy, bytes, n);
	im.functions = copy;
	im.functions_bytes = n;
	code = rt_called_new(&client, &im, &k, &err);
	if (!code)
		rt_called_unref(k);
	free(copy);
	return code;
}

static void every_changed_byte_is_refused_or_harmless(void **state)
{
	static const uint8_t values[] = { 0, 1, 2, 3, 16, 17, 33, 127, 128, 254, 255 };
	size_t n = image->functions_bytes, refused = 0;
	uint8_t *bytes = malloc(n);

	(void)state;
	for (size_t i = 8; i < n; i++)
		for (size_t v = 0; v < sizeof(values); v++) {
			uint32_t call, m;
			struct image im = *image;
			size_t at = 0;
			int code;

			memcpy(bytes, image->functions, n);
			bytes[i] = values[v];
			/* Headers are image_parse's to check. */
			im.functions = bytes;
			while (image_next_function(&im, &at, &call, &m))
				;
			if (at != n)
				continue;
			code = load_changed(bytes, n);
			assert_true(!code || code == ERR_INVALID_ARGUMENT);
			refused += code != 0;
		}
	assert_true(refused > n);
	assert_int_equal(loaded, unloaded);
	free(bytes);
}

static void a_function_that_is_cut_off_is_refused(void **state)
{
	uint32_t call, bytes;
	size_t at = 0;
	uint8_t *copy = malloc(image->functions_bytes);

	(void)state;
	assert_non_null(image_next_function(image, &at, &call, &bytes));
	for (uint32_t n = 0; n < bytes; n++) {
		memcpy(copy, image->functions, 8 + n);
		memcpy(copy + 4, &n, 4);
		assert_int_equal(load_changed(copy, 8 + n), ERR_INVALID_ARGUMENT);
	}
	free(copy);
}

static void a_client_without_functions_says_so(void **state)
{
	struct rt_client none = { 0 };
	struct rt_called *k;
	struct err err;

	(void)state;
	assert_int_equal(rt_called_new(&none, image, &k, &err), ERR_UNIMPLEMENTED);
}

static void what_fails_to_load_unloads_the_others(void **state)
{
	struct image im = *image;
	uint8_t *copy = malloc(im.functions_bytes + 5);
	uint32_t call, bytes, name = 6;
	size_t second, at = 0;
	struct rt_called *k;
	struct err err;

	(void)state;
	/* "g" becomes "nobody". */
	image_next_function(image, &at, &call, &bytes);
	second = at;
	image_next_function(image, &at, &call, &bytes);
	bytes += 5;
	memcpy(copy, im.functions, second + 8);
	memcpy(copy + second + 4, &bytes, 4);
	memcpy(copy + second + 8, &name, 4);
	memcpy(copy + second + 12, "nobody", 6);
	memcpy(copy + second + 18, im.functions + second + 13, at - second - 13);
	im.functions = copy;
	im.functions_bytes += 5;
	loaded = unloaded = 0;
	assert_int_equal(rt_called_new(&client, &im, &k, &err), ERR_NOT_FOUND);
	assert_int_equal(loaded, 1);
	assert_int_equal(unloaded, 1);
	free(copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_function_is_shown_what_the_program_says),
		cmocka_unit_test(every_changed_byte_is_refused_or_harmless),
		cmocka_unit_test(a_function_that_is_cut_off_is_refused),
		cmocka_unit_test(a_client_without_functions_says_so),
		cmocka_unit_test(what_fails_to_load_unloads_the_others),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
