/* SPDX-License-Identifier: Apache-2.0 */
/* Truth values that callers hand over as bytes of any value: by each way in they are 0 or 1 for
 * programs, as they are for whoever made them. */
#include "runtime/pjrt/ffi_abi.h"
#include "tests/unit/pjrt/pjrt_test.h"

enum { N = 200, PRED = PJRT_Buffer_Type_PRED, U8 = PJRT_Buffer_Type_U8 };

#define PROGRAM(body) "module() {sym_name = \"m\"} () {\n" \
	"  func() {sym_name = \"main\"} () -> ({}) {\n" body "    return(%1)\n  }\n}\n"

static struct PJRT_Client *client;
static struct PJRT_Device *dev;
static uint8_t bytes[N];

/* Some of each kind, also in runs. */
static int open_client(void **state)
{
	if (load_plugin(state))
		return -1;
	for (int i = 0; i < N; i++)
		bytes[i] = (uint8_t)(i < 70 ? i % 3 * 85 : i < 140 ? i : i & 1);
	client = new_client("hbm=64M,lanes=1");
	dev = device_of(client, 0);
	return 0;
}

static int close_client(void **state)
{
	(void)state;
	drop_client(client);
	return 0;
}

/* Takes b. */
static void expect(struct PJRT_Buffer *b, const uint8_t *from, int n)
{
	uint8_t back[N];

	assert_ok(fetch(b, back, (size_t)n));
	for (int i = 0; i < n; i++)
		assert_int_equal(back[i], from[i] != 0);
	drop_buffer(b);
}

static void arrays_of_the_host_are_0_or_1(void **state)
{
	(void)state;
	for (int64_t n = 0; n < N; n++)
		expect(put_as(client, bytes, PRED, &n, 1), bytes, (int)n);
}

static void so_are_strided_ones(void **state)
{
	int64_t dims[2] = { 10, 20 }, strides[2] = { 1, 10 };
	struct PJRT_Client_BufferFromHostBuffer_Args a;
	uint8_t turned[N];

	(void)state;
	for (int i = 0; i < N; i++)
		turned[i] = bytes[i % 20 * 10 + i / 20];
	assert_ok(CALL_AS(&a, Client_BufferFromHostBuffer, .client = client, .data = bytes,
			  .type = PRED, .dims = dims, .num_dims = 2, .byte_strides = strides,
			  .num_byte_strides = 2));
	assert_ok(finish(a.done_with_host_buffer));
	expect(a.buffer, turned, N);
}

static void other_bytes_stay_what_they_are(void **state)
{
	uint8_t back[N];
	int64_t n = N;
	struct PJRT_Buffer *b = put_as(client, bytes, U8, &n, 1);

	(void)state;
	assert_ok(fetch(b, back, N));
	assert_memory_equal(back, bytes, N);
	drop_buffer(b);
}

static void so_are_pieces(void **state)
{
	int64_t dim = N;
	struct PJRT_ShapeSpec spec = { .struct_size = PJRT_ShapeSpec_SIZE, .dims = &dim,
				       .num_dims = 1, .element_type = PRED };
	struct PJRT_AsyncHostToDeviceTransferManager *m =
		GET(Client_CreateBuffersForAsyncHostToDevice, transfer_manager, .client = client,
		    .shape_specs = &spec, .num_shape_specs = 1, .memory = memory_of(dev, 0));
	struct PJRT_Buffer *b = GET(AsyncHostToDeviceTransferManager_RetrieveBuffer, buffer_out,
				    .transfer_manager = m);

	(void)state;
	for (int64_t at = 0; at < N; at += 50)
		assert_ok(finish(GET(AsyncHostToDeviceTransferManager_TransferData,
				     done_with_h2d_transfer, .transfer_manager = m,
				     .data = bytes + at, .offset = at, .transfer_size = 50,
				     .is_last_transfer = at + 50 == N)));
	assert_ok(CALL(AsyncHostToDeviceTransferManager_Destroy, .transfer_manager = m));
	expect(b, bytes, N);
}

static void count_call(void *pointer, void *arg)
{
	(void)pointer;
	++*(int *)arg;
}

static struct PJRT_Buffer *view(void *p, int memory, int *calls)
{
	int64_t n = N;

	return GET(Client_CreateViewOfDeviceBuffer, buffer, .client = client,
		   .device_buffer_ptr = p, .dims = &n, .num_dims = 1, .element_type = PRED,
		   .memory = memory_of(dev, memory), .on_delete_callback = (void *)count_call,
		   .on_delete_callback_arg = calls);
}

static void a_view_is_in_place_only_if_it_may(void **state)
{
	uint8_t *mine = aligned_alloc(64, 4096);
	struct PJRT_Buffer *below, *v;
	int calls = 0;
	uintptr_t va;
	int64_t n = N;

	(void)state;
	assert_non_null(mine);
	memcpy(mine, bytes, N);
	v = view(mine, 1, &calls);
	assert_memory_equal(mine, bytes, N);	/* is not ours to change */
	assert_int_equal(calls, 0);
	expect(v, bytes, N);
	assert_int_equal(calls, 1);
	for (int i = 0; i < N; i++)
		mine[i] = bytes[i] != 0;
	v = view(mine, 1, &calls);
	mine[3] = !mine[3];
	expect(v, mine, N);
	assert_int_equal(calls, 2);
	/* And of the device's memory. */
	below = put_as(client, bytes, U8, &n, 1);
	va = GET(Buffer_UnsafePointer, buffer_pointer, .buffer = below);
	expect(view((void *)va, 0, &calls), bytes, N);
	drop_buffer(below);
	below = put_as(client, bytes, PRED, &n, 1);
	va = GET(Buffer_UnsafePointer, buffer_pointer, .buffer = below);
	v = view((void *)va, 0, &calls);
	assert_int_equal(GET(Buffer_UnsafePointer, buffer_pointer, .buffer = v), va);
	expect(v, bytes, N);
	drop_buffer(below);
	assert_int_equal(calls, 4);
	free(mine);
}

static void bytes_do_not_become_truth_values_by_name(void **state)
{
	struct PJRT_Client_CreateAliasBuffer_Args a;
	int64_t n = N;
	struct PJRT_Buffer *b = put_as(client, bytes, U8, &n, 1), *t;

	(void)state;
	assert_error(CALL(Buffer_Bitcast, .buffer = b, .element_type = PRED, .dims = &n,
			  .num_dims = 1), INVALID, "a bitcast: bytes of ui8 in place of truth");
	assert_ok(CALL_AS(&a, Client_CreateAliasBuffer, .client = client,
			  .memory = memory_of(dev, 0), .shape_dims = &n, .shape_num_dims = 1,
			  .shape_element_type = PRED));
	assert_error(CALL(Client_FulfillAliasBuffer, .client = client, .buffer = b,
			  .fulfill_alias_buffer_cb = a.fulfill_alias_buffer_cb), INVALID,
		     "an alias: bytes of ui8 in place of truth");
	drop_buffer(a.alias_buffer);
	drop_buffer(b);
	/* The other way they are what they are. */
	b = put_as(client, bytes, PRED, &n, 1);
	t = GET(Buffer_Bitcast, out_buffer, .buffer = b, .element_type = U8, .dims = &n,
		.num_dims = 1);
	expect(t, bytes, N);
	drop_buffer(b);
}

/* ---- functions of the host ---- */

static struct PJRT_LoadedExecutable *compile(const char *text)
{
	struct PJRT_Program p = program_of((struct bytes){ (char *)(uintptr_t)text,
							   strlen(text) });
	char options[32];
	size_t n = options_for(0, options);

	return GET(Client_Compile, executable, .client = client, .program = &p,
		   .compile_options = options, .compile_options_size = n);
}

static void nothing(void *data, void *arg)
{
	(void)data;
	(void)arg;
}

static void on_recv(struct PJRT_CopyToDeviceStream *s, void *arg)
{
	struct PJRT_Chunk chunk = { .data = arg, .size = N, .deleter = (void *)nothing };
	struct PJRT_CopyToDeviceStream_AddChunk_Args a;

	assert_ok(CALL_AS(&a, CopyToDeviceStream_AddChunk, .stream = s, .chunk = &chunk));
	drop_event(a.transfer_complete);
	assert_ok(CALL(CopyToDeviceStream_Destroy, .stream = s));
}

static void received(const char *text, bool is_truth)
{
	struct PJRT_LoadedExecutable *x = compile(text);
	struct PJRT_RecvCallbackInfo recv = { 9, bytes, (void *)on_recv }, *recvs = &recv;
	struct PJRT_ExecuteOptions o = { .struct_size = PJRT_ExecuteOptions_SIZE,
					 .recv_callbacks = &recvs, .num_recv_ops = 1 };
	struct PJRT_Buffer *out, **outs = &out, *const *none = NULL;
	uint8_t back[N];

	assert_ok(CALL(LoadedExecutable_Execute, .executable = x, .options = &o,
		       .argument_lists = (void *)&none, .num_devices = 1,
		       .output_lists = (void *)&outs));
	assert_ok(fetch(out, back, N));
	for (int i = 0; i < N; i++)
		assert_int_equal(back[i], is_truth ? bytes[i] != 0 : bytes[i]);
	drop_buffer(out);
	drop_exe(x);
}

static void what_is_received_is_0_or_1(void **state)
{
	(void)state;
#define RECEIVES(type) PROGRAM("    %0 = create_token() : token\n" \
		"    %1, %2 = recv(%0) {channel_id = 9, is_host_transfer = true} : " type \
		", token\n")
	received(RECEIVES("tensor<200xi1>"), true);
	received(RECEIVES("tensor<200xui8>"), false);
}

static struct XLA_FFI_Error *make_truth(struct XLA_FFI_CallFrame *f)
{
	struct XLA_FFI_Metadata_Extension *ask = (void *)f->extension_start;

	if (ask && ask->extension_base.type == XLA_FFI_Extension_Metadata) {
		ask->metadata->api_version.major_version = XLA_FFI_MAJOR;
		ask->metadata->api_version.minor_version = XLA_FFI_MINOR;
		return NULL;
	}
	memcpy(((const struct XLA_FFI_Buffer *)f->rets.rets[0])->data, bytes, N);
	return NULL;
}

static void what_functions_give_is_0_or_1(void **state)
{
	struct PJRT_FFI_Register_Handler_Args a = {
		.struct_size = PJRT_FFI_Register_Handler_Args_SIZE, .target_name = "make_truth",
		.target_name_size = 10, .handler = (void *)make_truth,
		.platform_name = "tessera", .platform_name_size = 7 };
	const struct PJRT_Extension_Base *e;
	struct PJRT_LoadedExecutable *x;
	struct PJRT_Buffer *out;

	(void)state;
	memcpy(&e, api + 8, sizeof(e));
	while (e && e->type != PJRT_Extension_Type_FFI)
		e = e->next;
	assert_non_null(e);
	assert_ok(((slot_fn *)((const struct PJRT_FFI_Extension *)e)->register_handler)(&a));
	x = compile(PROGRAM("    %1 = custom_call() {call_target_name = \"make_truth\", "
			    "frame = {}} : tensor<200xi1>\n"));
	assert_ok(run_exe(x, NULL, 0, &out, NULL));
	expect(out, bytes, N);
	drop_exe(x);
}

/* x, of one argument, gives these numbers for the bytes as an array of that type. */
static void expect_numbers(struct PJRT_LoadedExecutable *x, int type, const int32_t *wanted)
{
	const int64_t n = N;
	struct PJRT_Buffer *b = put_as(client, bytes, type, &n, 1), *out;
	int32_t back[N];

	assert_ok(run_exe(x, &b, 1, &out, NULL));
	assert_ok(fetch(out, back, sizeof(back)));
	assert_memory_equal(back, wanted, sizeof(back));
	drop_buffer(out);
	drop_buffer(b);
}

/* torch_xla declares some results of one sign as of the other. */
static void bytes_are_read_with_a_sign_or_without(void **state)
{
	struct PJRT_LoadedExecutable *x = compile("module() {sym_name = \"m\"} () {\n"
		"  func() {sym_name = \"main\"} (%0: tensor<200xi8>) {\n"
		"    %1 = convert(%0) : tensor<200xi32>\n    return(%1)\n  }\n}\n");
	int32_t with_sign[N], truths[N];

	(void)state;
	for (int i = 0; i < N; i++) {
		with_sign[i] = (int8_t)bytes[i];
		truths[i] = bytes[i] != 0;
	}
	expect_numbers(x, U8, with_sign);
	expect_numbers(x, PRED, truths);
	drop_exe(x);
}

/* torch_xla computes torch.sign of truth values in bytes, and later takes these as truth values. */
static void bytes_are_read_as_truth_values(void **state)
{
	struct PJRT_LoadedExecutable *x = compile("module() {sym_name = \"m\"} () {\n"
		"  func() {sym_name = \"main\"} (%0: tensor<200xi1>) {\n"
		"    %1 = convert(%0) : tensor<200xi32>\n    return(%1)\n  }\n}\n");
	int64_t fewer = N - 1;
	struct PJRT_Buffer *b, *out;
	int32_t truths[N];

	(void)state;
	for (int i = 0; i < N; i++)
		truths[i] = bytes[i] != 0;
	expect_numbers(x, U8, truths);
	expect_numbers(x, PJRT_Buffer_Type_S8, truths);
	b = put_as(client, bytes, U8, &fewer, 1);
	assert_error(run_exe(x, &b, 1, &out, NULL), INVALID, "argument 0 is of ui8 rank 1 and 199 "
		     "bytes; the program takes i1 rank 1");
	drop_buffer(b);
	drop_exe(x);
}

/* What another program has yet to write, and memory that becomes the result's. */
static void bytes_to_come_are_read_as_truth_values(void **state)
{
	struct PJRT_LoadedExecutable *first = compile("module() {sym_name = \"m\"} () {\n"
		"  func() {sym_name = \"main\"} (%0: tensor<200xui8>) {\n"
		"    %1 = add(%0, %0) : tensor<200xui8>\n    return(%1)\n  }\n}\n");
	struct PJRT_LoadedExecutable *then = compile("module() {sym_name = \"m\"} () {\n"
		"  func() {sym_name = \"main\"} (%0: tensor<200xi1> {alias = 0}) -> ({}) {\n"
		"    %1 = not(%0) : tensor<200xi1>\n    return(%1)\n  }\n}\n");
	struct PJRT_Buffer *b, *sum, *out;
	uint8_t wanted[N];
	int64_t n = N;

	(void)state;
	for (int i = 0; i < N; i++)
		wanted[i] = (bytes[i] & 127) == 0;
	for (int k = 0; k < 20; k++) {
		b = put_as(client, bytes, U8, &n, 1);
		assert_ok(run_exe(first, &b, 1, &sum, NULL));
		assert_ok(run_exe(then, &sum, 1, &out, NULL));
		assert_true(is_deleted(sum));
		assert_false(is_deleted(b));
		expect(out, wanted, N);
		drop_buffer(sum);
		drop_buffer(b);
	}
	drop_exe(first);
	drop_exe(then);
}

/* What has no elements has none of any type, but the dims still count. */
static void nothing_is_read_as_any_type(void **state)
{
	struct PJRT_LoadedExecutable *x = compile("module() {sym_name = \"m\"} () {\n"
		"  func() {sym_name = \"main\"} (%0: tensor<0x5xf64>) {\n"
		"    %1 = convert(%0) : tensor<0x5xi32>\n    return(%1)\n  }\n}\n");
	int64_t dims[2] = { 0, 5 }, turned[2] = { 5, 0 };
	struct PJRT_Buffer *b = put_as(client, bytes, U8, dims, 2), *out;

	(void)state;
	assert_ok(run_exe(x, &b, 1, &out, NULL));
	drop_buffer(out);
	drop_buffer(b);
	b = put_as(client, bytes, U8, turned, 2);
	assert_error(run_exe(x, &b, 1, &out, NULL), INVALID, "argument 0 is of ui8 rank 2");
	drop_buffer(b);
	drop_exe(x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arrays_of_the_host_are_0_or_1),
		cmocka_unit_test(so_are_strided_ones),
		cmocka_unit_test(so_are_pieces),
		cmocka_unit_test(other_bytes_stay_what_they_are),
		cmocka_unit_test(a_view_is_in_place_only_if_it_may),
		cmocka_unit_test(bytes_do_not_become_truth_values_by_name),
		cmocka_unit_test(bytes_are_read_with_a_sign_or_without),
		cmocka_unit_test(bytes_are_read_as_truth_values),
		cmocka_unit_test(bytes_to_come_are_read_as_truth_values),
		cmocka_unit_test(nothing_is_read_as_any_type),
		cmocka_unit_test(what_is_received_is_0_or_1),
		cmocka_unit_test(what_functions_give_is_0_or_1),
	};

	return cmocka_run_group_tests(tests, open_client, close_client);
}
