/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays with dims of bounded size through the table, on the device: what clients are told of
 * results, and results as arguments, copied, donated. */
#include "tests/unit/dynamic.h"
#include "tests/unit/pjrt/pjrt_test.h"

static struct PJRT_Client *client;
static const char one[] = "\x1a\x04\x20\x01\x28\x01";	/* build options of one device */
/* Of two replicas, on devices 0 and 1. */
static const char two[] =
	"\x1a\x10\x20\x02\x28\x01\x4a\x0a\x08\x02\x10\x01\x1a\x04\x0a\x02\x00\x01";

static int setup(void **state)
{
	if (load_plugin(state))
		return -1;
	client = new_client("devices=2,hbm=64M,lanes=2");
	return !client;
}

static int teardown(void **state)
{
	(void)state;
	drop_client(client);
	return 0;
}

static struct PJRT_Error *compile_for(unsigned replicas, const void *code, size_t n,
				      const char *format, struct PJRT_LoadedExecutable **out)
{
	struct PJRT_Program p = { .struct_size = PJRT_Program_SIZE, .code = (char *)(uintptr_t)code,
				  .code_size = n, .format = format,
				  .format_size = strlen(format) };
	struct PJRT_Client_Compile_Args a;
	struct PJRT_Error *e = CALL_AS(&a, Client_Compile, .client = client, .program = &p,
				       .compile_options = replicas > 1 ? two : one,
				       .compile_options_size = replicas > 1 ? sizeof(two) - 1 :
				       sizeof(one) - 1);

	*out = e ? NULL : a.executable;
	return e;
}

static struct PJRT_Error *compile(const void *code, size_t n, const char *format,
				  struct PJRT_LoadedExecutable **out)
{
	return compile_for(1, code, n, format, out);
}

static struct PJRT_LoadedExecutable *made_of(const char *text)
{
	struct PJRT_LoadedExecutable *x;

	assert_ok(compile(text, strlen(text), "mlir", &x));
	return x;
}

/* ---- what results say ---- */

static void fetches(const char *name, size_t i, struct PJRT_Buffer *b, const struct tc_array *want,
		    struct tc_array *got)
{
	size_t bytes = GET(Buffer_OnDeviceSizeInBytes, on_device_size_in_bytes, .buffer = b);
	bool is_short = want->bytes < bytes;
	struct tc_array dense = *want;
	uint8_t *room = calloc(1, bytes + 1), *all = malloc(bytes + 1);
	size_t n_past = 0;

	assert_non_null(room);
	assert_non_null(all);
	assert_int_equal(got->bytes, bytes);
	assert_int_equal(GET(Buffer_ToHostBuffer, dst_size, .src = b), want->bytes);
	assert_ok(fetch(b, room, want->bytes));
	dense.data = room;
	dynamic_same(name, i, want->dim, &dense, want);
	if (want->bytes)
		assert_error(fetch(b, room, want->bytes - 1), INVALID, "`dst_size` must be >=");
	/* With room for the bounds: as long as these, zeros past what counts. */
	assert_ok(fetch(b, all, bytes));
	got->data = all;
	dynamic_same(name, i, want->dim, got, want);
	for (size_t k = 0; k < bytes; k += elem_bytes(got->elem))
		n_past += dynamic_number(got->elem, all, k / elem_bytes(got->elem)) != 0;
	for (size_t k = 0; k < want->bytes; k += elem_bytes(got->elem))
		n_past -= dynamic_number(got->elem, want->data, k / elem_bytes(got->elem)) != 0;
	assert_true(!is_short || !n_past);
	free(room);
	free(all);
}

static void tells(const char *name, size_t i, struct PJRT_Buffer *b, const struct image_shape *s,
		  const struct tc_array *want)
{
	struct PJRT_Buffer_DynamicDimensionIndices_Args which;
	struct PJRT_Buffer_UnpaddedDimensions_Args sizes;
	struct PJRT_Buffer_Dimensions_Args dims;
	struct tc_array got = { .elem = s->elem, .rank = s->rank,
				.bytes = image_shape_bytes(s) };
	size_t n = 0;

	memcpy(got.dim, s->dim, sizeof(got.dim));
	assert_int_equal(GET(Buffer_ElementType, type, .buffer = b), s->elem);
	assert_ok(CALL_AS(&dims, Buffer_Dimensions, .buffer = b));
	assert_ok(CALL_AS(&which, Buffer_DynamicDimensionIndices, .buffer = b));
	assert_ok(CALL_AS(&sizes, Buffer_UnpaddedDimensions, .buffer = b));
	assert_int_equal(dims.num_dims, s->rank);
	assert_int_equal(sizes.num_dims, s->rank);
	for (unsigned d = 0; d < s->rank; d++) {
		assert_int_equal(dims.dims[d], s->dim[d]);
		assert_int_equal(sizes.unpadded_dims[d], want->dim[d]);
		if (s->bounded >> d & 1)
			assert_int_equal(which.dynamic_dim_indices[n++], d);
	}
	assert_int_equal(which.num_dynamic_dims, n);
	fetches(name, i, b, want, &got);
}

static void runs(struct PJRT_LoadedExecutable *x, const char *name, const struct image *im,
		 const struct dynamic_run *run)
{
	struct PJRT_Buffer *in[8], *out[8];

	assert_true(run->n_in <= 8 && run->n_out <= 8);
	for (size_t i = 0; i < run->n_in; i++)
		in[i] = put_as(client, run->in[i].data, run->in[i].elem, run->in[i].dim,
			       run->in[i].rank);
	assert_ok(run_exe(x, in, run->n_in, out, NULL));
	for (size_t i = 0; i < run->n_out; i++) {
		tells(name, i, out[i], &im->shapes[im->info.n_args + i], &run->out[i]);
		drop_buffer(out[i]);
	}
	for (size_t i = 0; i < run->n_in; i++)
		drop_buffer(in[i]);
}

static void check(const struct torch_program *p, void *arg)
{
	const struct tc_source *forms[] = { &p->source, &p->mlir };
	unsigned *n_runs = arg;

	for (unsigned k = 0; k < 2; k++) {
		struct PJRT_LoadedExecutable *x;
		struct PJRT_Executable *shared;
		struct dynamic_run run;
		struct image *im;

		if (!forms[k]->code)
			continue;
		im = dynamic_image(forms[k], p->name);
		assert_ok(compile(forms[k]->code, forms[k]->bytes, forms[k]->format, &x));
		shared = GET(LoadedExecutable_GetExecutable, executable, .loaded_executable = x);
		assert_int_equal(GET(Executable_NumOutputs, num_outputs, .executable = shared),
				 im->info.n_results - image_n_result_sizes(im));
		assert_ok(CALL(Executable_Destroy, .executable = shared));
		for (size_t i = 0; dynamic_run_of(p, im, i, &run); i++, (*n_runs)++)
			runs(x, p->name, im, &run);
		drop_exe(x);
		image_free(im);
	}
}

static void results_say_how_long_they_are(void **state)
{
	unsigned n_runs = 0;

	(void)state;
	assert_int_equal(dynamic_each(check, &n_runs), DYNAMIC_COUNT);
	assert_true(n_runs > 4 * DYNAMIC_COUNT);
}

/* ---- results as arguments ---- */

#define FIVE "tensor<<=5xf32>"
static const char set[] = "module() () {\nfunc() {sym_name = \"main\"} (%0: tensor<5xf32>, "
	"%1: tensor<i32>) {\n%2 = set_dimension_size(%0, %1) {dimension = 0} : " FIVE "\n"
	"return(%2)\n}\n}\n";
/* Its argument, which it may write over, twice; and its size. */
static const char twice[] = "module() () {\nfunc() {sym_name = \"main\"} (%0: " FIVE
	" {alias = 0}) {\n%1 = add(%0, %0) : " FIVE "\n%2 = get_dimension_size(%0) "
	"{dimension = 0} : tensor<i32>\nreturn(%1, %2)\n}\n}\n";

static struct PJRT_Buffer *short_array(int32_t size)
{
	static const float data[] = { 1, 2, 3, 4, 5 };
	struct PJRT_LoadedExecutable *x = made_of(set);
	struct PJRT_Buffer *in[] = { put_floats(client, data, 5), put_as(client, &size,
				     PJRT_Buffer_Type_S32, NULL, 0) }, *out;

	assert_ok(run_exe(x, in, 2, &out, NULL));
	drop_buffer(in[0]);
	drop_buffer(in[1]);
	drop_exe(x);
	return out;
}

/* Takes b, of so many elements, which are first, 2 * first, ... */
static void twice_is(struct PJRT_LoadedExecutable *x, struct PJRT_Buffer *b, size_t n, float first)
{
	struct PJRT_Buffer *out[2];
	float got[5];
	int32_t size;

	assert_ok(run_exe(x, &b, 1, out, NULL));
	assert_int_equal(GET(Buffer_UnpaddedDimensions, unpadded_dims[0], .buffer = out[0]), n);
	assert_ok(fetch(out[0], got, n * sizeof(*got)));
	for (size_t i = 0; i < n; i++)
		assert_true(got[i] == 2 * first * (float)(i + 1));
	assert_ok(fetch(out[1], &size, sizeof(size)));
	assert_int_equal(size, n);
	drop_buffer(b);
	drop_buffer(out[0]);
	drop_buffer(out[1]);
}

static void a_result_goes_into_the_next_program(void **state)
{
	static const int32_t sizes[] = { -1, 0, 1, 4, 5, 6 };
	struct PJRT_LoadedExecutable *x = made_of(twice);

	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		size_t n = sizes[i] < 0 ? 0 : sizes[i] > 5 ? 5 : (size_t)sizes[i];
		struct PJRT_Buffer *b = short_array(sizes[i]), *copy;

		copy = GET(Buffer_CopyToDevice, dst_buffer, .buffer = b,
			   .dst_device = device_of(client, 0));
		twice_is(x, b, n, 1);
		twice_is(x, copy, n, 1);
		b = short_array(sizes[i]);
		copy = GET(Buffer_CopyToMemory, dst_buffer, .buffer = b,
			   .dst_memory = memory_of(device_of(client, 0), 1));
		assert_int_equal(GET(Buffer_UnpaddedDimensions, unpadded_dims[0],
				     .buffer = copy), n);
		drop_buffer(copy);
		drop_buffer(b);
	}
	drop_exe(x);
}

static void an_array_from_the_host_is_as_long_as_it_is(void **state)
{
	static const float data[] = { 1, 2, 3, 4, 5, 6 };
	struct PJRT_LoadedExecutable *x = made_of(twice);
	struct PJRT_Buffer *b, *out[2];

	(void)state;
	for (int64_t n = 0; n <= 5; n++)
		twice_is(x, put_floats(client, data, n), (size_t)n, 1);
	b = put_floats(client, data, 6);
	assert_error(run_exe(x, &b, 1, out, NULL), INVALID, "dim 0 of argument 0 is 6: the "
		     "program takes at most 5");
	drop_buffer(b);
	b = put_as(client, data, PJRT_Buffer_Type_S32, (int64_t[]){ 5 }, 1);
	assert_error(run_exe(x, &b, 1, out, NULL), INVALID, "argument 0 is of i32 rank 1");
	drop_buffer(b);
	b = put_as(client, data, PJRT_Buffer_Type_F32, (int64_t[]){ 1, 5 }, 2);
	assert_error(run_exe(x, &b, 1, out, NULL), INVALID, "argument 0 is of f32 rank 2");
	drop_buffer(b);
	b = put_floats(client, data, 5);
	assert_error(run_exe(x, (struct PJRT_Buffer *[]){ b, b }, 2, out, NULL), INVALID,
		     "takes 1 arguments, not 2");
	drop_buffer(b);
	drop_exe(x);
}

static void a_donated_array_is_gone_however_long(void **state)
{
	static const float data[] = { 1, 2, 3, 4, 5, 6 };
	struct PJRT_LoadedExecutable *x = made_of(twice);
	struct PJRT_ExecuteOptions keep = { .struct_size = PJRT_ExecuteOptions_SIZE,
					    .non_donatable_input_indices = (int64_t[]){ 0 },
					    .num_non_donatable_input_indices = 1 };
	struct PJRT_Buffer *b, *out[2], **outs = out, *const *args = &b;
	float back[5];

	(void)state;
	for (int64_t n = 0; n <= 5; n++) {
		b = put_floats(client, data, n);
		assert_ok(CALL(LoadedExecutable_Execute, .executable = x, .options = &keep,
			       .argument_lists = (void *)&args, .num_devices = 1, .num_args = 1,
			       .output_lists = (void *)&outs));
		drop_buffer(out[0]);
		drop_buffer(out[1]);
		assert_false(is_deleted(b));
		assert_ok(fetch(b, back, (size_t)n * sizeof(*back)));
		assert_memory_equal(back, data, (size_t)n * sizeof(*back));
		assert_ok(run_exe(x, &b, 1, out, NULL));
		assert_true(is_deleted(b));
		assert_error(run_exe(x, &b, 1, out, NULL), INVALID, "deleted or donated");
		drop_buffer(out[0]);
		drop_buffer(out[1]);
		drop_buffer(b);
	}
	b = put_floats(client, data, 6);
	assert_error(run_exe(x, &b, 1, out, NULL), INVALID, "at most 5");
	assert_false(is_deleted(b));
	drop_buffer(b);
	drop_exe(x);
}

static void a_short_array_fits_no_static_parameter(void **state)
{
	struct PJRT_LoadedExecutable *x = made_of(set);
	struct PJRT_Buffer *b = short_array(5), *out;
	struct PJRT_Buffer *in[] = { b, put_as(client, (int32_t[]){ 2 }, PJRT_Buffer_Type_S32,
					       NULL, 0) };

	(void)state;
	assert_error(run_exe(x, in, 2, &out, NULL), INVALID, "argument 0 has a dim 0 of at most "
		     "5, whose size is known on the device only");
	drop_buffer(in[1]);
	drop_buffer(b);
	drop_exe(x);
	x = made_of("module() () {\nfunc() {sym_name = \"main\"} (%0: tensor<<=6xf32>) {\n"
		    "return(%0)\n}\n}\n");
	b = short_array(5);
	assert_error(run_exe(x, &b, 1, &out, NULL), INVALID, "dim 0 of argument 0 has a bound of "
		     "5: the program takes arrays with one of 6");
	assert_error(CALL(Buffer_Bitcast, .buffer = b, .element_type = PJRT_Buffer_Type_S32,
			  .dims = (int64_t[]){ 5 }, .num_dims = 1), INVALID, "bounds");
	drop_buffer(b);
	drop_exe(x);
}

static void serialized_programs_keep_bounds(void **state)
{
	struct PJRT_LoadedExecutable *x = made_of(twice), *again;
	struct PJRT_Executable *shared = GET(LoadedExecutable_GetExecutable, executable,
					     .loaded_executable = x);
	struct PJRT_Executable_Serialize_Args a;

	(void)state;
	assert_ok(CALL_AS(&a, Executable_Serialize, .executable = shared));
	again = GET(Executable_DeserializeAndLoad, loaded_executable, .client = client,
		    .serialized_executable = a.serialized_bytes,
		    .serialized_executable_size = a.serialized_bytes_size);
	((void (*)(void *))a.serialized_executable_deleter)(a.serialized_executable);
	assert_ok(CALL(Executable_Destroy, .executable = shared));
	drop_exe(x);
	twice_is(again, short_array(3), 3, 1);
	drop_exe(again);
}

/* ---- replicas ---- */

/* What both have, behind each other. */
static const char gather[] = "module() () {\nfunc() {sym_name = \"main\"} (%0: " FIVE ") {\n"
	"%1 = all_gather(%0) {all_gather_dim = 0, group_size = 2, replica_groups = [0, 1], "
	"use_global_device_ids = true} : tensor<<=10xf32>\n%2 = add(%0, %0) : " FIVE "\n"
	"return(%1, %2)\n}\n}\n";

/* n elements from `first` on: a host's array, or if there are bounds a result of a program. */
static struct PJRT_Buffer *part_on(int device, int32_t n, float first, bool has_bounds)
{
	float data[] = { first, first + 1, first + 2, first + 3, first + 4 };
	struct PJRT_Client_BufferFromHostBuffer_Args a;
	struct PJRT_LoadedExecutable *x;
	struct PJRT_Buffer *in[2], *out, *there;

	if (!has_bounds) {
		assert_ok(CALL_AS(&a, Client_BufferFromHostBuffer, .client = client, .data = data,
				  .type = PJRT_Buffer_Type_F32, .dims = (int64_t[]){ n },
				  .num_dims = 1, .device = device_of(client, device)));
		assert_ok(finish(a.done_with_host_buffer));
		return a.buffer;
	}
	x = made_of(set);
	in[0] = put_floats(client, data, 5);
	in[1] = put_as(client, &n, PJRT_Buffer_Type_S32, NULL, 0);
	assert_ok(run_exe(x, in, 2, &out, NULL));
	there = GET(Buffer_CopyToDevice, dst_buffer, .buffer = out,
		    .dst_device = device_of(client, device));
	drop_buffer(in[0]);
	drop_buffer(in[1]);
	drop_buffer(out);
	drop_exe(x);
	return there;
}

/* Together, or each by a call of its own. */
static void launch(struct PJRT_LoadedExecutable *x, struct PJRT_Buffer *const *in,
		   struct PJRT_Buffer *(*out)[2], bool is_one_call)
{
	struct PJRT_ExecuteOptions o = { .struct_size = PJRT_ExecuteOptions_SIZE };
	struct PJRT_Buffer *const *args[2] = { &in[0], &in[1] };
	struct PJRT_Buffer **outs[2] = { out[0], out[1] };

	for (unsigned d = 0; d < (is_one_call ? 1 : 2); d++)
		assert_ok(CALL(LoadedExecutable_Execute, .executable = x, .options = &o,
			       .argument_lists = (void *)&args[d], .num_args = 1,
			       .output_lists = (void *)&outs[d],
			       .num_devices = is_one_call ? 2 : 1,
			       .execute_device = is_one_call ? NULL : device_of(client, (int)d)));
}

static void each_replica_has_sizes_of_its_own(void **state)
{
	struct PJRT_LoadedExecutable *x;

	(void)state;
	assert_ok(compile_for(2, gather, strlen(gather), "mlir", &x));
	for (unsigned k = 0; k < 36; k++)
		for (unsigned way = 0; way < 4; way++) {
			int32_t n[2] = { (int32_t)k / 6, (int32_t)k % 6 };
			struct PJRT_Buffer *in[2], *out[2][2];

			for (int d = 0; d < 2; d++)
				in[d] = part_on(d, n[d], d ? 100 : 1, way & 1);
			launch(x, in, out, way & 2);
			for (int d = 0; d < 2; d++) {
				float got[10], doubled[5];

				assert_int_equal(GET(Buffer_UnpaddedDimensions, unpadded_dims[0],
						     .buffer = out[d][0]), n[0] + n[1]);
				assert_int_equal(GET(Buffer_UnpaddedDimensions, unpadded_dims[0],
						     .buffer = out[d][1]), n[d]);
				assert_ok(fetch(out[d][0], got, sizeof(got)));
				assert_ok(fetch(out[d][1], doubled, sizeof(doubled)));
				for (int i = 0; i < 10; i++)
					assert_true(got[i] == (float)(i < n[0] ? 1 + i :
						    i < n[0] + n[1] ? 100 + i - n[0] : 0));
				for (int i = 0; i < 5; i++)
					assert_true(doubled[i] == (i < n[d] ? 2 *
						    (float)((d ? 100 : 1) + i) : 0));
				drop_buffer(out[d][0]);
				drop_buffer(out[d][1]);
				drop_buffer(in[d]);
			}
		}
	drop_exe(x);
}

/* An argument of the second one that is too long is the call's error, and nothing has begun. */
static void a_replica_with_a_long_array_is_refused(void **state)
{
	struct PJRT_ExecuteOptions o = { .struct_size = PJRT_ExecuteOptions_SIZE };
	struct PJRT_Buffer *in[2] = { part_on(0, 2, 1, false), NULL }, *out[2][2];
	struct PJRT_Buffer *const *args[2] = { &in[0], &in[1] };
	struct PJRT_Buffer **outs[2] = { out[0], out[1] };
	struct PJRT_Client_BufferFromHostBuffer_Args a;
	static const float data[6];
	struct PJRT_LoadedExecutable *x;

	(void)state;
	assert_ok(compile_for(2, gather, strlen(gather), "mlir", &x));
	assert_ok(CALL_AS(&a, Client_BufferFromHostBuffer, .client = client, .data = data,
			  .type = PJRT_Buffer_Type_F32, .dims = (int64_t[]){ 6 }, .num_dims = 1,
			  .device = device_of(client, 1)));
	assert_ok(finish(a.done_with_host_buffer));
	in[1] = a.buffer;
	assert_error(CALL(LoadedExecutable_Execute, .executable = x, .options = &o,
			  .argument_lists = (void *)args, .num_args = 1, .num_devices = 2,
			  .output_lists = (void *)outs), INVALID, "dim 0 of argument 0 is 6");
	drop_buffer(in[1]);
	in[1] = part_on(1, 5, 3, false);
	launch(x, in, out, true);
	assert_int_equal(GET(Buffer_UnpaddedDimensions, unpadded_dims[0], .buffer = out[0][0]), 7);
	for (unsigned d = 0; d < 2; d++) {
		drop_buffer(in[d]);
		drop_buffer(out[d][0]);
		drop_buffer(out[d][1]);
	}
	drop_exe(x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(results_say_how_long_they_are),
		cmocka_unit_test(a_result_goes_into_the_next_program),
		cmocka_unit_test(an_array_from_the_host_is_as_long_as_it_is),
		cmocka_unit_test(a_donated_array_is_gone_however_long),
		cmocka_unit_test(a_short_array_fits_no_static_parameter),
		cmocka_unit_test(serialized_programs_keep_bounds),
		cmocka_unit_test(each_replica_has_sizes_of_its_own),
		cmocka_unit_test(a_replica_with_a_long_array_is_refused),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
