/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers through the table: types, strides, semantics, kinds of memory, deletion,
 * donation, external references, views. */
#include <sched.h>

#include "tests/unit/pjrt/pjrt_test.h"

static struct PJRT_Client *client;
static struct PJRT_Device *dev[2];

static int open_client(void **state)
{
	if (load_plugin(state))
		return -1;
	client = new_client("devices=2,hbm=64M,lanes=2");
	for (int i = 0; i < 2; i++)
		dev[i] = device_of(client, i);
	return 0;
}

static int close_client(void **state)
{
	(void)state;
	drop_client(client);
	return 0;
}

static int64_t in_use(int device)
{
	return GET(Device_MemoryStats, bytes_in_use, .device = dev[device]);
}

/* ---- round trips ---- */

static const struct { int type, bytes; } types[] = {
	{ PJRT_Buffer_Type_PRED, 1 }, { PJRT_Buffer_Type_S8, 1 }, { PJRT_Buffer_Type_S16, 2 },
	{ PJRT_Buffer_Type_S32, 4 }, { PJRT_Buffer_Type_S64, 8 }, { PJRT_Buffer_Type_U8, 1 },
	{ PJRT_Buffer_Type_U16, 2 }, { PJRT_Buffer_Type_U32, 4 }, { PJRT_Buffer_Type_U64, 8 },
	{ PJRT_Buffer_Type_F16, 2 }, { PJRT_Buffer_Type_F32, 4 }, { PJRT_Buffer_Type_F64, 8 },
	{ PJRT_Buffer_Type_BF16, 2 }, { PJRT_Buffer_Type_C64, 8 },
	{ PJRT_Buffer_Type_C128, 16 }, { PJRT_Buffer_Type_F8E5M2, 1 },
	{ PJRT_Buffer_Type_F8E4M3FN, 1 }, { PJRT_Buffer_Type_F8E4M3B11FNUZ, 1 },
	{ PJRT_Buffer_Type_F8E5M2FNUZ, 1 }, { PJRT_Buffer_Type_F8E4M3FNUZ, 1 },
	{ PJRT_Buffer_Type_S4, 1 }, { PJRT_Buffer_Type_U4, 1 }, { PJRT_Buffer_Type_S2, 1 },
	{ PJRT_Buffer_Type_U2, 1 }, { PJRT_Buffer_Type_F8E4M3, 1 },
	{ PJRT_Buffer_Type_F8E3M4, 1 }, { PJRT_Buffer_Type_F8E8M0FNU, 1 },
	{ PJRT_Buffer_Type_F4E2M1FN, 1 },
};

enum { N_TYPES = sizeof(types) / sizeof(*types) };

static void every_type_comes_back_from_every_memory(void **state)
{
	const int64_t dims[] = { 3, 5, 7 };
	char data[105 * 16], back[105 * 16];

	(void)state;
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (char)(i * 37 + 11);
	for (unsigned t = 0; t < N_TYPES; t++)
		for (int kind = 0; kind < 3; kind++) {
			struct PJRT_Client_BufferFromHostBuffer_Args a;
			struct PJRT_Buffer_ToHostBuffer_Args ask;
			struct PJRT_Memory *m = memory_of(dev[t % 2], kind);
			size_t bytes = 105u * (size_t)types[t].bytes;

			assert_ok(CALL_AS(&a, Client_BufferFromHostBuffer, .client = client,
					  .data = data, .type = types[t].type, .dims = dims,
					  .num_dims = 3, .memory = m,
					  .host_buffer_semantics = kind));
			assert_ok(finish(a.done_with_host_buffer));
			assert_int_equal(GET(Buffer_ElementType, type, .buffer = a.buffer),
					 types[t].type);
			assert_ptr_equal(GET(Buffer_Memory, memory, .buffer = a.buffer), m);
			assert_ptr_equal(GET(Buffer_Device, device, .buffer = a.buffer),
					 dev[t % 2]);
			assert_int_equal(GET(Buffer_OnDeviceSizeInBytes,
					     on_device_size_in_bytes, .buffer = a.buffer), bytes);
			assert_int_equal(GET(Buffer_Dimensions, num_dims, .buffer = a.buffer), 3);
			assert_int_equal(GET(Buffer_UnpaddedDimensions, num_dims,
					     .buffer = a.buffer), 3);
			assert_int_equal(GET(Buffer_DynamicDimensionIndices, num_dynamic_dims,
					     .buffer = a.buffer), 0);
			/* dst NULL asks for the size. */
			assert_ok(CALL_AS(&ask, Buffer_ToHostBuffer, .src = a.buffer));
			assert_int_equal(ask.dst_size, bytes);
			memset(back, 0, sizeof(back));
			assert_ok(fetch(a.buffer, back, bytes));
			/* Truth values are pjrt_truth_test's. */
			if (types[t].type != PJRT_Buffer_Type_PRED)
				assert_memory_equal(back, data, bytes);
			drop_buffer(a.buffer);
		}
}

static void unknown_types_are_refused(void **state)
{
	static const int wrong[] = { -1, 0, 30, 31, 32, 33, 1000, INT32_MAX, INT32_MIN };
	char data[16] = { 0 };
	int64_t n = 1;

	(void)state;
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_error(CALL(Client_BufferFromHostBuffer, .client = client, .data = data,
				  .type = wrong[i], .dims = &n, .num_dims = 1),
			     wrong[i] > 0 ? PJRT_Error_Code_UNIMPLEMENTED : INVALID, "");
}

static void strided(const int64_t *dims, const int64_t *strides, size_t rank, const char *data,
		    const char *want, size_t n)
{
	struct PJRT_Client_BufferFromHostBuffer_Args a;
	char back[256];

	assert_ok(CALL_AS(&a, Client_BufferFromHostBuffer, .client = client, .data = data,
			  .type = PJRT_Buffer_Type_U8, .dims = dims, .num_dims = rank,
			  .byte_strides = strides, .num_byte_strides = rank));
	drop_event(a.done_with_host_buffer);
	assert_ok(fetch(a.buffer, back, n));
	assert_memory_equal(back, want, n);
	drop_buffer(a.buffer);
}

static void strides_of_any_sign_are_followed(void **state)
{
	const char data[] = "abcdefghijkl";

	(void)state;
	strided((int64_t[]){ 3, 4 }, (int64_t[]){ 4, 1 }, 2, data, "abcdefghijkl", 12);
	strided((int64_t[]){ 4, 3 }, (int64_t[]){ 1, 4 }, 2, data, "aeibfjcgkdhl", 12);
	strided((int64_t[]){ 12 }, (int64_t[]){ -1 }, 1, data + 11, "lkjihgfedcba", 12);
	strided((int64_t[]){ 2, 3 }, (int64_t[]){ 0, 2 }, 2, data, "aceace", 6);
	strided((int64_t[]){ 3, 2, 2 }, (int64_t[]){ -4, 2, 1 }, 3, data + 8, "ijklefghabcd", 12);
	strided((int64_t[]){ 2, 2, 2 }, (int64_t[]){ 1, 2, 4 }, 3, data, "aecgbfdh", 8);
	strided((int64_t[]){ 0, 4 }, (int64_t[]){ 0, 0 }, 2, data, "", 0);
	strided(NULL, NULL, 0, data, "a", 1);
}

static void wrong_host_arrays_are_refused(void **state)
{
	int64_t n = 4, negative = -1, huge[] = { INT64_MAX, INT64_MAX }, many[33], stride = 1;
	char data[4] = { 0 };

	(void)state;
	for (int i = 0; i < 33; i++)
		many[i] = 1;
#define PUT(...) CALL(Client_BufferFromHostBuffer, .client = client, \
		      .type = PJRT_Buffer_Type_U8, __VA_ARGS__)
	assert_error(PUT(.dims = &n, .num_dims = 1), INVALID, "`data` at NULL");
	assert_error(PUT(.data = data, .num_dims = 1), INVALID, "dims");
	assert_error(PUT(.data = data, .dims = &negative, .num_dims = 1), INVALID, "-1");
	assert_error(PUT(.data = data, .dims = huge, .num_dims = 2), INVALID, "overflow");
	assert_error(PUT(.data = data, .dims = huge, .num_dims = 1),
		     PJRT_Error_Code_RESOURCE_EXHAUSTED, "9223372036854775807");
	assert_error(PUT(.data = data, .dims = many, .num_dims = 33), INVALID, "33 dims");
	assert_error(PUT(.data = data, .dims = &n, .num_dims = SIZE_MAX), INVALID, "dims");
	assert_error(PUT(.data = data, .dims = many, .num_dims = 2, .byte_strides = &stride,
			 .num_byte_strides = 1), INVALID, "1 strides for 2 dims");
	assert_error(PUT(.data = data, .dims = &n, .num_dims = 1, .host_buffer_semantics = 4),
		     INVALID, "semantics");
#undef PUT
}

static void empty_arrays_may_have_dims_of_any_size(void **state)
{
	int64_t dims[] = { 0, INT64_MAX, INT64_MAX, 3 };
	char data[4] = { 0 };

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct PJRT_Buffer *b = put_as(client, data, PJRT_Buffer_Type_F32, dims, 4);

		assert_ok(fetch(b, data, 0));
		drop_buffer(b);
		dims[i] = 7;
		dims[(i + 1) % 4] = 0;
	}
}

static void layouts_of_the_host_are_orders_of_dims(void **state)
{
	int64_t dims[] = { 2, 2 }, up[] = { 0, 1 }, down[] = { 1, 0 }, none[] = { 7, 9 };
	int64_t twice[] = { 1, 1 };
	char data[4] = "abcd", back[4];
	struct PJRT_Buffer_MemoryLayout l = { .struct_size = PJRT_Buffer_MemoryLayout_SIZE,
		.tiled = { .struct_size = PJRT_Buffer_MemoryLayout_Tiled_SIZE,
			   .minor_to_major = down, .minor_to_major_size = 2 } };
	struct PJRT_Buffer *b = put_as(client, data, PJRT_Buffer_Type_U8, dims, 2);
	struct PJRT_Buffer_GetMemoryLayout_Args own;

	(void)state;
	assert_ok(CALL_AS(&own, Buffer_GetMemoryLayout, .buffer = b));
	assert_int_equal(own.layout.tiled.minor_to_major[0], 1);
	assert_int_equal(own.layout.tiled.minor_to_major[1], 0);
#define FETCH CALL(Buffer_ToHostBuffer, .src = b, .dst = back, .dst_size = 4, .host_layout = &l)
	drop_event(GET(Buffer_ToHostBuffer, event, .src = b, .dst = back, .dst_size = 4,
		       .host_layout = &l));
	assert_memory_equal(back, "abcd", 4);
	l.tiled.minor_to_major = up;
	assert_ok(finish(GET(Buffer_ToHostBuffer, event, .src = b, .dst = back, .dst_size = 4,
			     .host_layout = &l)));
	assert_memory_equal(back, "acbd", 4);
	l.tiled.minor_to_major = none;
	assert_error(FETCH, INVALID, "dim 7, out of range or twice");
	l.tiled.minor_to_major = twice;
	assert_error(FETCH, INVALID, "dim 1, out of range or twice");
	l.tiled.minor_to_major_size = SIZE_MAX;
	assert_error(FETCH, INVALID, "layout");
	l.tiled.minor_to_major_size = 2;
	l.tiled.minor_to_major = NULL;
	assert_error(FETCH, INVALID, "layout");
	l.tiled.minor_to_major = down;
	l.tiled.num_tiles = 1;
	assert_error(FETCH, INVALID, "tiled");
	l.type = PJRT_Buffer_MemoryLayout_Type_Strides;
	assert_error(FETCH, INVALID, "strided");
#undef FETCH
	assert_error(CALL(Buffer_ToHostBuffer, .src = b, .dst = back, .dst_size = 3), INVALID,
		     "`dst_size` must be >= 4, got 3.");
	drop_buffer(b);
}

/* A literal has its own order, or that of the buffer; bytes are as they lie. */
static void arrays_lie_in_the_order_that_was_asked_for(void **state)
{
	/* [2,3,4] as [4,2,3] in memory: minor to major 1, 0, 2. */
	static const int64_t dims[] = { 2, 3, 4 }, m2m[] = { 1, 0, 2 }, plain[] = { 2, 1, 0 };
	static const int64_t strides[] = { 24, -8, 2 };
	struct PJRT_Buffer_MemoryLayout l = { .tiled = { .minor_to_major = m2m,
		.minor_to_major_size = 3 } }, row = { .tiled = { .minor_to_major = plain,
		.minor_to_major_size = 3 } };
	uint16_t data[24], as_it_lies[24], back[24], turned[24];
	struct PJRT_Client_BufferFromHostBuffer_Args a;
	struct PJRT_Buffer_GetMemoryLayout_Args own;
	struct PJRT_Buffer *copy;

	(void)state;
	for (unsigned i = 0; i < 2; i++)
		for (unsigned j = 0; j < 3; j++)
			for (unsigned k = 0; k < 4; k++) {
				data[(i * 3 + j) * 4 + k] = (uint16_t)(100 * i + 10 * j + k);
				turned[(i * 3 + 2 - j) * 4 + k] = (uint16_t)(100 * i + 10 * j + k);
				as_it_lies[(k * 2 + i) * 3 + j] = (uint16_t)(100 * i + 10 * j + k);
			}
	for (unsigned strided = 0; strided < 2; strided++) {
		assert_ok(CALL_AS(&a, Client_BufferFromHostBuffer, .client = client,
				  .data = strided ? turned + 8 : data,
				  .type = PJRT_Buffer_Type_U16, .dims = dims, .num_dims = 3,
				  .byte_strides = strides, .num_byte_strides = strided ? 3 : 0,
				  .device_layout = &l));
		drop_event(a.done_with_host_buffer);
		assert_ok(CALL_AS(&own, Buffer_GetMemoryLayout, .buffer = a.buffer));
		assert_memory_equal(own.layout.tiled.minor_to_major, m2m, sizeof(m2m));
		assert_ok(finish(GET(Buffer_CopyRawToHost, event, .buffer = a.buffer,
				     .dst = back, .transfer_size = sizeof(back))));
		assert_memory_equal(back, as_it_lies, sizeof(back));
		assert_ok(fetch(a.buffer, back, sizeof(back)));
		assert_memory_equal(back, as_it_lies, sizeof(back));
		copy = GET(Buffer_CopyToMemory, dst_buffer, .buffer = a.buffer,
			   .dst_memory = memory_of(dev[1], 1));
		assert_ok(finish(GET(Buffer_ToHostBuffer, event, .src = copy, .dst = back,
				     .dst_size = sizeof(back), .host_layout = &row)));
		assert_memory_equal(back, data, sizeof(back));
		drop_buffer(copy);
		drop_buffer(a.buffer);
	}
}

/* XLA's client sets neither size nor extensions of a layout and of its tiled part. */
static void what_clients_leave_unset_in_a_layout_is_not_read(void **state)
{
	static const int64_t dims[] = { 2, 2 }, down[] = { 1, 0 };
	static const unsigned char fills[] = { 0x00, 0x01, 0xa5, 0xff };
	char data[4] = "abcd", back[4];
	struct PJRT_Client_CreateBuffersForAsyncHostToDevice_Args t;
	struct PJRT_AsyncHostToDeviceTransferManager *m;
	struct PJRT_ShapeSpec spec = { .dims = dims, .num_dims = 2,
				       .element_type = PJRT_Buffer_Type_U8 };

	(void)state;
	for (size_t i = 0; i < sizeof(fills); i++) {
		struct PJRT_Buffer_MemoryLayout l, *list = &l;
		struct PJRT_Client_BufferFromHostBuffer_Args a;

		memset(&l, fills[i], sizeof(l));
		l.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
		l.tiled.minor_to_major = down;
		l.tiled.minor_to_major_size = 2;
		l.tiled.num_tiles = 0;
		assert_ok(CALL_AS(&a, Client_BufferFromHostBuffer, .client = client,
				  .data = data, .type = PJRT_Buffer_Type_U8, .dims = dims,
				  .num_dims = 2, .device_layout = &l));
		drop_event(a.done_with_host_buffer);
		memset(back, 0, sizeof(back));
		assert_ok(finish(GET(Buffer_ToHostBuffer, event, .src = a.buffer, .dst = back,
				     .dst_size = 4, .host_layout = &l)));
		assert_memory_equal(back, data, 4);
		drop_buffer(GET(Buffer_Bitcast, out_buffer, .buffer = a.buffer,
				.element_type = PJRT_Buffer_Type_S8, .dims = dims,
				.num_dims = 2, .device_layout = &l));
		drop_buffer(a.buffer);
		drop_buffer(GET(Client_CreateUninitializedBuffer, buffer, .client = client,
				.shape_element_type = PJRT_Buffer_Type_U8, .shape_dims = dims,
				.shape_num_dims = 2, .shape_layout = &l));
		memset(&spec.struct_size, fills[i], sizeof(spec.struct_size));
		memset(&spec.extension_start, fills[i], sizeof(spec.extension_start));
		assert_ok(CALL_AS(&t, Client_CreateBuffersForAsyncHostToDevice,
				  .client = client, .shape_specs = &spec, .num_shape_specs = 1,
				  .device_layouts = &list, .num_device_layouts = 1,
				  .memory = memory_of(dev[0], 0)));
		m = t.transfer_manager;
		drop_event(GET(AsyncHostToDeviceTransferManager_TransferLiteral,
			       done_with_h2d_transfer, .transfer_manager = m, .data = data,
			       .shape_element_type = PJRT_Buffer_Type_U8, .shape_dims = dims,
			       .shape_num_dims = 2, .shape_layout = &l));
		assert_ok(CALL(AsyncHostToDeviceTransferManager_Destroy,
			       .transfer_manager = m));
	}
}

/* ---- copies ---- */

static void copies_reach_every_memory(void **state)
{
	float data[8] = { 1, 2, 3, 4, 5, 6, 7, 8 }, back[8];
	struct PJRT_Client *other = new_client("hbm=64M,lanes=1");

	(void)state;
	for (int from = 0; from < 3; from++)
		for (int to = 0; to < 6; to++) {
			struct PJRT_Client_BufferFromHostBuffer_Args a;
			struct PJRT_Memory *m = memory_of(dev[to / 3], to % 3);
			struct PJRT_Buffer *b;
			int64_t n = 8;

			assert_ok(CALL_AS(&a, Client_BufferFromHostBuffer, .client = client,
					  .data = data, .type = PJRT_Buffer_Type_F32,
					  .dims = &n, .num_dims = 1,
					  .memory = memory_of(dev[0], from)));
			drop_event(a.done_with_host_buffer);
			b = GET(Buffer_CopyToMemory, dst_buffer, .buffer = a.buffer,
				.dst_memory = m);
			drop_buffer(a.buffer);
			assert_ptr_equal(GET(Buffer_Memory, memory, .buffer = b), m);
			assert_ok(finish(GET(Buffer_ReadyEvent, event, .buffer = b)));
			assert_ok(fetch(b, back, sizeof(back)));
			assert_memory_equal(back, data, sizeof(data));
			if (to == 5)
				assert_error(CALL(Buffer_CopyToMemory, .buffer = b,
						  .dst_memory = memory_of(device_of(other, 0), 0)),
					     INVALID, "another client");
			drop_buffer(b);
		}
	drop_client(other);
}

static void raw_copies_take_a_part(void **state)
{
	char data[] = "0123456789", back[10] = "";
	int64_t n = 10;
	struct PJRT_Buffer *b = put_as(client, data, PJRT_Buffer_Type_U8, &n, 1);

	(void)state;
	assert_ok(finish(GET(Buffer_CopyRawToHost, event, .buffer = b, .dst = back,
			     .offset = 3, .transfer_size = 4)));
	assert_memory_equal(back, "3456", 5);
#define RAW(o, s) CALL(Buffer_CopyRawToHost, .buffer = b, .dst = back, .offset = o, \
		       .transfer_size = s)
	assert_error(RAW(3, 8), INVALID, "invalid offset 3, transfer size 8");
	assert_error(RAW(11, 0), INVALID, "invalid offset 11");
	assert_error(RAW(-1, 2), INVALID, "invalid offset -1");
	assert_error(RAW(0, -2), INVALID, "transfer size -2");
	assert_error(RAW(INT64_MAX, INT64_MAX), INVALID, "invalid offset");
#undef RAW
	assert_error(CALL(Buffer_CopyRawToHost, .buffer = b, .transfer_size = 4), INVALID, "");
	drop_buffer(b);
}

static void a_bitcast_shares_the_memory(void **state)
{
	float data[4] = { 1, -2, 0, 8 };
	uint8_t back[16];
	int64_t dims[] = { 2, 8 };
	struct PJRT_Buffer *b = put_floats(client, data, 4), *c;
	int64_t before = in_use(0);

	(void)state;
	c = GET(Buffer_Bitcast, out_buffer, .buffer = b, .element_type = PJRT_Buffer_Type_U8,
		.dims = dims, .num_dims = 2);
	assert_int_equal(in_use(0), before);
	drop_buffer(b);
	assert_ok(fetch(c, back, sizeof(back)));
	assert_memory_equal(back, data, sizeof(data));
	assert_error(CALL(Buffer_Bitcast, .buffer = c, .element_type = PJRT_Buffer_Type_U16,
			  .dims = dims, .num_dims = 2), INVALID, "32 bytes in place of 16");
	drop_buffer(c);
	assert_true(in_use(0) < before);
}

/* ---- the end of a buffer ---- */

static void a_deleted_buffer_refuses_every_use(void **state)
{
	float data[16] = { 0 }, back[16];
	int64_t before = in_use(0), n = 16;
	struct PJRT_Buffer *b = put_floats(client, data, 16), *good, *in[2], *out;
	struct PJRT_LoadedExecutable *x = compile_on(client, "scale_add.mlirbc", 0);
	struct PJRT_Event *ready = GET(Buffer_ReadyEvent, event, .buffer = b), *done;

	(void)state;
	assert_ok(CALL(Buffer_Delete, .buffer = b));
	assert_ok(CALL(Buffer_Delete, .buffer = b));
	assert_true(is_deleted(b));
	/* Facts stay; an event that was there does not turn. */
	assert_int_equal(GET(Buffer_Dimensions, num_dims, .buffer = b), 1);
	assert_ok(finish(ready));
	assert_error(finish(GET(Buffer_ReadyEvent, event, .buffer = b)), INVALID, "deleted");
	assert_error(fetch(b, back, sizeof(back)), INVALID, "deleted");
	assert_error(CALL(Buffer_CopyRawToHost, .buffer = b, .dst = back, .transfer_size = 4),
		     INVALID, "deleted");
	assert_error(CALL(Buffer_CopyRawToHostFuture, .buffer = b, .transfer_size = 4), INVALID,
		     "deleted");
	assert_error(CALL(Buffer_CopyToDevice, .buffer = b, .dst_device = dev[1]), INVALID,
		     "deleted");
	assert_error(CALL(Buffer_CopyToMemory, .buffer = b, .dst_memory = memory_of(dev[0], 1)),
		     INVALID, "deleted");
	assert_error(CALL(Buffer_Bitcast, .buffer = b, .element_type = PJRT_Buffer_Type_F32,
			  .dims = &n, .num_dims = 1), INVALID, "deleted");
	assert_error(CALL(Buffer_UnsafePointer, .buffer = b), INVALID, "deleted");
	assert_error(CALL(Buffer_OpaqueDeviceMemoryDataPointer, .buffer = b), INVALID,
		     "deleted");
	assert_error(CALL(Buffer_DonateWithControlDependency, .buffer = b), INVALID, "deleted");
	good = put_floats(client, data, 16);
	in[0] = b;
	in[1] = good;
	assert_error(run_exe(x, in, 2, &out, &done), INVALID, "argument 0 was deleted");
	drop_buffer(good);
	drop_buffer(b);
	drop_exe(x);
	assert_int_equal(in_use(0), before);
}

static void external_references_keep_the_memory(void **state)
{
	float data[4] = { 1, 2, 3, 4 };
	struct PJRT_Buffer *b = put_floats(client, data, 4);
	int64_t before = in_use(0);
	float back[4];
	void *p;

	(void)state;
	assert_error(CALL(Buffer_DecreaseExternalReferenceCount, .buffer = b), INVALID,
		     "Attempting to decrease reference on a buffer with zero reference count.");
	assert_ok(CALL(Buffer_IncreaseExternalReferenceCount, .buffer = b));
	assert_ok(CALL(Buffer_DecreaseExternalReferenceCount, .buffer = b));
	assert_ok(fetch(b, back, sizeof(back)));
	assert_memory_equal(back, data, sizeof(data));
	assert_ok(CALL(Buffer_IncreaseExternalReferenceCount, .buffer = b));
	p = GET(Buffer_OpaqueDeviceMemoryDataPointer, device_memory_ptr, .buffer = b);
	assert_ok(CALL(Buffer_Delete, .buffer = b));
	assert_true(is_deleted(b));
	assert_error(CALL(Buffer_UnsafePointer, .buffer = b), INVALID, "deleted");
	assert_int_equal(in_use(0), before);
	assert_memory_equal(p, data, sizeof(data));
	assert_ok(CALL(Buffer_DecreaseExternalReferenceCount, .buffer = b));
	assert_true(in_use(0) < before);
	drop_buffer(b);
}

static void error_buffers_pass_their_error_on(void **state)
{
	struct PJRT_LoadedExecutable *x = compile_on(client, "two_results.mlirbc", 0);
	float data[16] = { 0 }, back[16];
	int64_t n = 16;
	struct PJRT_Buffer *in[2], *out[2], *copy;
	struct PJRT_Event *done;

	(void)state;
	in[0] = put_floats(client, data, 16);
	in[1] = GET(Client_CreateErrorBuffer, buffer, .client = client,
		    .error_code = PJRT_Error_Code_ABORTED, .error_message = "no luck today",
		    .error_message_size = 7, .shape_dims = &n, .shape_num_dims = 1,
		    .shape_element_type = PJRT_Buffer_Type_F32, .memory = memory_of(dev[0], 0));
	assert_error(finish(GET(Buffer_ReadyEvent, event, .buffer = in[1])),
		     PJRT_Error_Code_ABORTED, "no luck");
	assert_error(fetch(in[1], back, 64), PJRT_Error_Code_ABORTED, "no luck");
	copy = GET(Buffer_CopyToDevice, dst_buffer, .buffer = in[1], .dst_device = dev[1]);
	assert_error(fetch(copy, back, 64), PJRT_Error_Code_ABORTED, "no luck");
	assert_ok(run_exe(x, in, 2, out, &done));
	assert_error(finish(done), PJRT_Error_Code_ABORTED, "no luck");
	for (int i = 0; i < 2; i++) {
		assert_error(finish(GET(Buffer_ReadyEvent, event, .buffer = out[i])),
			     PJRT_Error_Code_ABORTED, "no luck");
		drop_buffer(out[i]);
		drop_buffer(in[i]);
	}
	drop_buffer(copy);
	drop_exe(x);
}

static void an_error_lies_in_the_order_that_was_asked_for(void **state)
{
	static const int64_t dims[] = { 2, 3 }, up[] = { 0, 1 };
	struct PJRT_Buffer_MemoryLayout l = { .tiled = { .minor_to_major = up,
		.minor_to_major_size = 2 } };
	struct PJRT_Buffer_GetMemoryLayout_Args own;
	struct PJRT_Buffer *b;

	(void)state;
#define ARGS .client = client, .error_code = PJRT_Error_Code_ABORTED, .shape_dims = dims, \
	     .shape_num_dims = 2, .shape_element_type = PJRT_Buffer_Type_F32, \
	     .shape_layout = &l, .memory = memory_of(dev[0], 0)
	b = GET(Client_CreateErrorBuffer, buffer, ARGS);
	assert_ok(CALL_AS(&own, Buffer_GetMemoryLayout, .buffer = b));
	assert_memory_equal(own.layout.tiled.minor_to_major, up, sizeof(up));
	drop_buffer(b);
	l.tiled.minor_to_major_size = 1;
	assert_error(CALL(Client_CreateErrorBuffer, ARGS), INVALID, "layout");
#undef ARGS
}

static void an_error_buffers_first_version_is_taken(void **state)
{
	int64_t n = 16;
	struct PJRT_Client_CreateErrorBuffer_Args full = {
		.struct_size = 96, .client = client, .error_code = PJRT_Error_Code_INTERNAL,
		.error_message = "old", .error_message_size = 3, .shape_dims = &n,
		.shape_num_dims = 1, .shape_element_type = PJRT_Buffer_Type_F32,
		.memory = memory_of(dev[0], 0) };
	void *args = malloc(96);
	struct PJRT_Buffer *b;

	(void)state;
	assert_non_null(args);
	memcpy(args, &full, 96);
	assert_ok(slot_at(OFFSET_Client_CreateErrorBuffer)(args));
	memcpy(&b, (char *)args + offsetof(struct PJRT_Client_CreateErrorBuffer_Args, buffer),
	       sizeof(b));
	free(args);
	assert_error(finish(GET(Buffer_ReadyEvent, event, .buffer = b)),
		     PJRT_Error_Code_INTERNAL, "old");
	drop_buffer(b);
}

/* ---- donation ---- */

static void a_donated_argument_lends_its_memory(void **state)
{
	struct PJRT_LoadedExecutable *x = compile_on(client, "scale_add_donated.mlirbc", 0);
	float data[16], back[16];
	struct PJRT_Buffer *in[2], *out;
	struct PJRT_Event *done;
	uintptr_t was;

	(void)state;
	for (int i = 0; i < 16; i++)
		data[i] = (float)i;
	in[0] = put_floats(client, data, 16);
	in[1] = put_floats(client, data, 16);
	was = GET(Buffer_UnsafePointer, buffer_pointer, .buffer = in[0]);
	assert_ok(run_exe(x, in, 2, &out, &done));
	assert_true(is_deleted(in[0]));
	assert_false(is_deleted(in[1]));
	assert_ok(finish(done));
	assert_int_equal(GET(Buffer_UnsafePointer, buffer_pointer, .buffer = out), was);
	assert_ok(fetch(out, back, sizeof(back)));
	for (int i = 0; i < 16; i++)
		assert_true(back[i] == 3.0f * (float)i);
	assert_error(run_exe(x, in, 2, &out, &done), INVALID, "deleted or donated");
	drop_buffer(out);
	drop_buffer(in[0]);
	drop_buffer(in[1]);
	drop_exe(x);
}

static void memory_that_others_use_is_not_lent(void **state)
{
	struct PJRT_LoadedExecutable *x = compile_on(client, "scale_add_donated.mlirbc", 0);
	float data[16], back[16];
	struct PJRT_Buffer *in[2], *out, *twin;
	struct PJRT_Event *done;
	int64_t n = 16;
	void *p;

	(void)state;
	for (int i = 0; i < 16; i++)
		data[i] = (float)i;
	/* An external reference; a twin on the same memory. */
	for (int how = 0; how < 2; how++) {
		in[0] = put_floats(client, data, 16);
		in[1] = put_floats(client, data, 16);
		p = GET(Buffer_OpaqueDeviceMemoryDataPointer, device_memory_ptr,
			.buffer = in[0]);
		twin = how != 1 ? NULL : GET(Buffer_Bitcast, out_buffer, .buffer = in[0],
					     .element_type = PJRT_Buffer_Type_F32, .dims = &n,
					     .num_dims = 1);
		if (how == 0)
			assert_ok(CALL(Buffer_IncreaseExternalReferenceCount, .buffer = in[0]));
		assert_ok(run_exe(x, in, 2, &out, &done));
		assert_ok(finish(done));
		assert_true(is_deleted(in[0]));
		assert_ok(fetch(out, back, sizeof(back)));
		for (int i = 0; i < 16; i++)
			assert_true(back[i] == 3.0f * (float)i);
		/* Whoever holds on to it sees what was there. */
		assert_memory_equal(p, data, sizeof(data));
		if (twin) {
			assert_ok(fetch(twin, back, sizeof(back)));
			assert_memory_equal(back, data, sizeof(data));
			drop_buffer(twin);
		}
		if (how == 0)
			assert_ok(CALL(Buffer_DecreaseExternalReferenceCount, .buffer = in[0]));
		drop_buffer(out);
		drop_buffer(in[0]);
		drop_buffer(in[1]);
	}
	/* A view's memory belongs to somebody else. */
	in[1] = put_floats(client, data, 16);
	twin = put_floats(client, data, 16);
	p = GET(Buffer_OpaqueDeviceMemoryDataPointer, device_memory_ptr, .buffer = twin);
	in[0] = GET(Client_CreateViewOfDeviceBuffer, buffer, .client = client,
		    .device_buffer_ptr = p, .dims = &n, .num_dims = 1,
		    .element_type = PJRT_Buffer_Type_F32);
	assert_ok(run_exe(x, in, 2, &out, &done));
	assert_ok(finish(done));
	assert_ok(fetch(twin, back, sizeof(back)));
	assert_memory_equal(back, data, sizeof(data));
	drop_buffer(out);
	drop_buffer(in[0]);
	drop_buffer(in[1]);
	drop_buffer(twin);
	drop_exe(x);
}

/* As run_exe, with arguments that must not be donated. */
static struct PJRT_Error *run_keeping(struct PJRT_LoadedExecutable *x,
				      struct PJRT_Buffer *const *args, size_t n,
				      const int64_t *kept, size_t n_kept,
				      struct PJRT_Buffer **outs)
{
	struct PJRT_ExecuteOptions o = { .struct_size = PJRT_ExecuteOptions_SIZE,
		.non_donatable_input_indices = kept, .num_non_donatable_input_indices = n_kept };

	return CALL(LoadedExecutable_Execute, .executable = x, .options = &o,
		    .argument_lists = (void *)&args, .num_devices = 1, .num_args = n,
		    .output_lists = (void *)&outs);
}

static void an_array_donated_and_used_is_refused(void **state)
{
	struct PJRT_LoadedExecutable *x = compile_on(client, "scale_add_donated.mlirbc", 0);
	struct PJRT_FulfillAliasBufferCallback *cb;
	struct PJRT_Client_CreateAliasBuffer_Args a;
	float data[16] = { 1, 2, 3 }, back[16];
	int64_t none = 0, n = 16;
	struct PJRT_Buffer *in[2], *out;

	(void)state;
	in[0] = in[1] = put_floats(client, data, 16);
	assert_error(run_exe(x, in, 2, &out, NULL), INVALID, "`f(donate(a), a)`");
	assert_false(is_deleted(in[0]));
	assert_ok(fetch(in[0], back, sizeof(back)));
	assert_memory_equal(back, data, sizeof(data));
	/* Not donated this time. */
	assert_ok(run_keeping(x, in, 2, &none, 1, &out));
	assert_ok(fetch(out, back, sizeof(back)));
	assert_true(back[2] == 9);
	assert_false(is_deleted(in[0]));
	drop_buffer(out);
	drop_buffer(in[0]);
	/* Nor before its content is there. */
	assert_ok(CALL_AS(&a, Client_CreateAliasBuffer, .client = client,
			  .memory = memory_of(dev[0], 0), .shape_dims = &n,
			  .shape_num_dims = 1, .shape_element_type = PJRT_Buffer_Type_F32));
	cb = a.fulfill_alias_buffer_cb;
	in[0] = in[1] = a.alias_buffer;
	assert_error(run_exe(x, in, 2, &out, NULL), INVALID, "first use: 0");
	assert_false(is_deleted(in[0]));
	assert_ok(CALL(Client_FulfillAliasBuffer, .client = client,
		       .fulfill_alias_buffer_cb = cb, .status_code = INVALID));
	drop_buffer(in[0]);
	drop_exe(x);
}

static void an_array_given_twice_is_read_whole(void **state)
{
	/* x + flip(cumsum(y)): each result needs many elements of y. */
	struct PJRT_LoadedExecutable *x = compile_on(client, "reverse_add_donated.mlirbc", 0);
	float data[16], back[16];
	struct PJRT_Buffer *in[2], *out;
	int64_t none = 0;

	(void)state;
	for (int i = 0; i < 16; i++)
		data[i] = 1;
	for (int round = 0; round < 10; round++) {
		in[0] = in[1] = put_floats(client, data, 16);
		assert_ok(run_keeping(x, in, 2, &none, 1, &out));
		assert_ok(fetch(out, back, sizeof(back)));
		for (int i = 0; i < 16; i++)
			assert_true(back[i] == 1.0f + (float)(16 - i));
		drop_buffer(out);
		drop_buffer(in[0]);
	}
	drop_exe(x);
}

static void a_failed_launch_gives_its_arguments_back(void **state)
{
	struct PJRT_LoadedExecutable *x = compile_on(client, "scale_add_donated.mlirbc", 0);
	float data[16] = { 0 }, back[16];
	struct PJRT_Buffer *in[2] = { put_floats(client, data, 16), put_floats(client, data, 16) };
	struct PJRT_Buffer *out;
	struct PJRT_Event *done;

	(void)state;
	assert_ok(CALL(Buffer_Delete, .buffer = in[1]));
	assert_error(run_exe(x, in, 2, &out, &done), INVALID, "argument 1 was deleted");
	assert_false(is_deleted(in[0]));
	assert_ok(fetch(in[0], back, sizeof(back)));
	drop_buffer(in[0]);
	drop_buffer(in[1]);
	drop_exe(x);
}

static void a_launch_refused_late_gives_its_arguments_back(void **state)
{
	struct PJRT_Client *c = new_client("hbm=64M,lanes=2");
	struct PJRT_LoadedExecutable *x = compile_on(c, "scale_add_donated.mlirbc", 0);
	float data[16] = { 5, 6, 7 }, back[16];
	struct PJRT_Buffer *in[2] = { put_floats(c, data, 16), put_floats(c, data, 16) }, *out;
	struct PJRT_Event *done;

	(void)state;
	assert_ok(CALL(Device_PoisonExecution, .device = device_of(c, 0),
		       .error_code = PJRT_Error_Code_ABORTED, .error_message = "over",
		       .error_message_size = 4));
	assert_error(run_exe(x, in, 2, &out, &done), PJRT_Error_Code_ABORTED, "over");
	for (int i = 0; i < 2; i++) {
		assert_false(is_deleted(in[i]));
		assert_ok(fetch(in[i], back, sizeof(back)));
		assert_memory_equal(back, data, sizeof(data));
		drop_buffer(in[i]);
	}
	drop_exe(x);
	drop_client(c);
}

static void arguments_must_fit(void **state)
{
	struct PJRT_LoadedExecutable *x = compile_on(client, "scale_add.mlirbc", 0);
	float data[64] = { 0 };
	int64_t n = 16;
	struct PJRT_Buffer *good = put_floats(client, data, 16), *in[2] = { good, NULL }, *out;
	struct PJRT_Event *done;

	(void)state;
	in[1] = put_floats(client, data, 15);
	assert_error(run_exe(x, in, 2, &out, &done), INVALID, "argument 1");
	drop_buffer(in[1]);
	in[1] = put_as(client, data, PJRT_Buffer_Type_S32, &n, 1);
	assert_error(run_exe(x, in, 2, &out, &done), INVALID, "argument 1");
	drop_buffer(in[1]);
	in[1] = GET(Buffer_CopyToDevice, dst_buffer, .buffer = good, .dst_device = dev[1]);
	assert_error(run_exe(x, in, 2, &out, &done), INVALID, "device 1");
	drop_buffer(in[1]);
	drop_buffer(good);
	drop_exe(x);
}

static void another_clients_buffers_are_refused(void **state)
{
	struct PJRT_Client *other = new_client("hbm=16M,lanes=1");
	struct PJRT_LoadedExecutable *x = compile_on(client, "scale_add.mlirbc", 0);
	struct PJRT_Client_CreateAliasBuffer_Args a;
	float data[16] = { 0 };
	struct PJRT_Buffer *in[2] = { put_floats(client, data, 16),
				      put_floats(other, data, 16) }, *out;
	int64_t n = 16;

	(void)state;
	assert_error(run_exe(x, in, 2, &out, NULL), INVALID, "argument 1 belongs to another "
		     "client");
	assert_ok(CALL_AS(&a, Client_CreateAliasBuffer, .client = client,
			  .memory = memory_of(dev[0], 0), .shape_dims = &n, .shape_num_dims = 1,
			  .shape_element_type = PJRT_Buffer_Type_F32));
	assert_error(CALL(Client_FulfillAliasBuffer, .client = client, .buffer = in[1],
			  .fulfill_alias_buffer_cb = a.fulfill_alias_buffer_cb), INVALID,
		     "a buffer of another client");
	drop_buffer(a.alias_buffer);
	drop_buffer(in[0]);
	drop_buffer(in[1]);
	drop_exe(x);
	drop_client(other);
}

/* ---- views and mappings ---- */

static void count_call(void *pointer, void *arg)
{
	(void)pointer;
	__atomic_add_fetch((int *)arg, 1, __ATOMIC_ACQ_REL);
}

static void a_view_reads_what_lies_there(void **state)
{
	float data[32], back[16];
	struct PJRT_Buffer *b, *v;
	int64_t n = 16;
	uintptr_t va;
	int calls = 0;

	(void)state;
	for (int i = 0; i < 32; i++)
		data[i] = (float)i;
	b = put_floats(client, data, 32);
	va = GET(Buffer_UnsafePointer, buffer_pointer, .buffer = b);
	v = GET(Client_CreateViewOfDeviceBuffer, buffer, .client = client,
		.device_buffer_ptr = (void *)(va + 64), .dims = &n, .num_dims = 1,
		.element_type = PJRT_Buffer_Type_F32, .device = dev[0],
		.on_delete_callback = (void *)count_call, .on_delete_callback_arg = &calls);
	assert_ok(fetch(v, back, sizeof(back)));
	assert_memory_equal(back, data + 16, sizeof(back));
	assert_int_equal(GET(Buffer_UnsafePointer, buffer_pointer, .buffer = v), va + 64);
	assert_ok(CALL(Buffer_Delete, .buffer = v));
	assert_int_equal(calls, 1);
	drop_buffer(v);
	assert_int_equal(calls, 1);
	drop_buffer(b);
#define VIEW(...) CALL(Client_CreateViewOfDeviceBuffer, .client = client, .dims = &n, \
		       .num_dims = 1, .element_type = PJRT_Buffer_Type_F32, __VA_ARGS__)
	assert_error(VIEW(.device_buffer_ptr = (void *)(va + 4)), INVALID, "multiples of 64");
	assert_error(VIEW(.device_buffer_ptr = NULL), INVALID, "view");
	assert_error(VIEW(.device_buffer_ptr = (void *)0x1000), PJRT_Error_Code_NOT_FOUND,
		     "neither HBM");
	assert_error(VIEW(.device_buffer_ptr = (void *)-64), PJRT_Error_Code_NOT_FOUND, "");
	assert_error(VIEW(.device_buffer_ptr = (void *)va, .stream = 5), INVALID, "stream");
	assert_error(VIEW(.device_buffer_ptr = (void *)va, .memory = memory_of(dev[0], 1)),
		     INVALID, "device memory");
#undef VIEW
}

static void host_memory_is_used_where_it_lies(void **state)
{
	struct PJRT_LoadedExecutable *x = compile_on(client, "scale_add.mlirbc", 0);
	float *mine = aligned_alloc(64, 8192), back[16], ones[16];
	struct PJRT_Buffer *in[2], *out;
	struct PJRT_Event *done;
	int64_t n = 16;
	int calls = 0;

	(void)state;
	assert_non_null(mine);
	for (int i = 0; i < 16; i++) {
		mine[i] = (float)i;
		ones[i] = 1;
	}
	/* Mapped before, then mapped by the view itself. */
	for (int mapped = 1; mapped >= 0; mapped--) {
		if (mapped)
			assert_ok(CALL(Client_DmaMap, .client = client, .data = mine,
				       .size = 8192));
		in[0] = GET(Client_CreateViewOfDeviceBuffer, buffer, .client = client,
			    .device_buffer_ptr = mine, .dims = &n, .num_dims = 1,
			    .element_type = PJRT_Buffer_Type_F32,
			    .memory = memory_of(dev[0], 1),
			    .on_delete_callback = (void *)count_call,
			    .on_delete_callback_arg = &calls);
		/* The view keeps what it stands on. */
		if (mapped)
			assert_ok(CALL(Client_DmaUnmap, .client = client, .data = mine));
		in[1] = put_floats(client, ones, 16);
		assert_ok(run_exe(x, in, 2, &out, &done));
		drop_buffer(in[0]);
		assert_ok(finish(done));
		assert_ok(fetch(out, back, sizeof(back)));
		for (int i = 0; i < 16; i++)
			assert_true(back[i] == 2.0f * (float)i + 1);
		drop_buffer(in[1]);
		drop_buffer(out);
	}
	drop_exe(x);
	/* The callback comes when the device is done; mapping again shows that it is. */
	while (__atomic_load_n(&calls, __ATOMIC_ACQUIRE) < 2)
		sched_yield();
	assert_ok(CALL(Client_DmaMap, .client = client, .data = mine, .size = 100));
	assert_error(CALL(Client_DmaMap, .client = client, .data = mine, .size = 8192),
		     PJRT_Error_Code_ALREADY_EXISTS, "mapped already");
	assert_ok(CALL(Client_DmaUnmap, .client = client, .data = mine));
	assert_error(CALL(Client_DmaUnmap, .client = client, .data = mine),
		     PJRT_Error_Code_NOT_FOUND, "no mapping");
	assert_error(CALL(Client_DmaMap, .client = client, .data = mine), INVALID, "0 bytes");
	assert_error(CALL(Client_DmaMap, .client = client, .data = mine, .size = SIZE_MAX),
		     INVALID, "can't be mapped");
	free(mine);
}

static void memory_runs_out_with_an_answer(void **state)
{
	int64_t n = 40 << 20, before = in_use(0);
	struct PJRT_Buffer *a = GET(Client_CreateUninitializedBuffer, buffer, .client = client,
				    .shape_dims = &n, .shape_num_dims = 1,
				    .shape_element_type = PJRT_Buffer_Type_U8,
				    .device = dev[0]);

	(void)state;
	assert_error(CALL(Client_CreateUninitializedBuffer, .client = client, .shape_dims = &n,
			  .shape_num_dims = 1, .shape_element_type = PJRT_Buffer_Type_U8,
			  .device = dev[0]), PJRT_Error_Code_RESOURCE_EXHAUSTED,
		     "largest free block");
	drop_buffer(a);
	assert_int_equal(in_use(0), before);
	/* The peak stays until it is cleared. */
	a = put_as(client, "x", PJRT_Buffer_Type_U8, NULL, 0);
	drop_buffer(a);
	assert_true(GET(Device_MemoryStats, peak_bytes_in_use, .device = dev[0]) >= before + n);
	assert_ok(CALL(Device_ClearMemoryStats, .device = dev[0]));
	assert_int_equal(GET(Device_MemoryStats, peak_bytes_in_use, .device = dev[0]), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_type_comes_back_from_every_memory),
		cmocka_unit_test(unknown_types_are_refused),
		cmocka_unit_test(strides_of_any_sign_are_followed),
		cmocka_unit_test(wrong_host_arrays_are_refused),
		cmocka_unit_test(empty_arrays_may_have_dims_of_any_size),
		cmocka_unit_test(layouts_of_the_host_are_orders_of_dims),
		cmocka_unit_test(arrays_lie_in_the_order_that_was_asked_for),
		cmocka_unit_test(what_clients_leave_unset_in_a_layout_is_not_read),
		cmocka_unit_test(copies_reach_every_memory),
		cmocka_unit_test(raw_copies_take_a_part),
		cmocka_unit_test(a_bitcast_shares_the_memory),
		cmocka_unit_test(a_deleted_buffer_refuses_every_use),
		cmocka_unit_test(external_references_keep_the_memory),
		cmocka_unit_test(error_buffers_pass_their_error_on),
		cmocka_unit_test(an_error_lies_in_the_order_that_was_asked_for),
		cmocka_unit_test(an_error_buffers_first_version_is_taken),
		cmocka_unit_test(a_donated_argument_lends_its_memory),
		cmocka_unit_test(memory_that_others_use_is_not_lent),
		cmocka_unit_test(an_array_donated_and_used_is_refused),
		cmocka_unit_test(an_array_given_twice_is_read_whole),
		cmocka_unit_test(a_failed_launch_gives_its_arguments_back),
		cmocka_unit_test(a_launch_refused_late_gives_its_arguments_back),
		cmocka_unit_test(arguments_must_fit),
		cmocka_unit_test(another_clients_buffers_are_refused),
		cmocka_unit_test(a_view_reads_what_lies_there),
		cmocka_unit_test(host_memory_is_used_where_it_lies),
		cmocka_unit_test(memory_runs_out_with_an_answer),
	};

	return cmocka_run_group_tests(tests, open_client, close_client);
}
