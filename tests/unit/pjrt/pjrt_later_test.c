/* SPDX-License-Identifier: Apache-2.0 */
/* Content that comes later, through the table: transfers in pieces, aliases, launches
 * that wait for them, donation after an event, raw copies to a later place, poison. */
#include <pthread.h>
#include <sched.h>

#include "tests/unit/pjrt/pjrt_later.h"

static bool is_ready(struct PJRT_Buffer *b)
{
	struct PJRT_Event *e = GET(Buffer_ReadyEvent, event, .buffer = b);
	bool is = GET(Event_IsReady, is_ready, .event = e);

	drop_event(e);
	return is;
}

/* ---- transfers in pieces ---- */

static struct PJRT_AsyncHostToDeviceTransferManager *transfer(size_t n)
{
	static const int64_t dim = 16;
	struct PJRT_ShapeSpec specs[4];

	for (size_t i = 0; i < n; i++)
		specs[i] = (struct PJRT_ShapeSpec){
			/* What no caller sets must not matter. */
			.struct_size = i % 2 ? 0 : (size_t)0xa5a5a5a5a5a5a5a5,
			.extension_start = (void *)(uintptr_t)0xa5a5a5a5a5a5a5a5,
			.dims = &dim, .num_dims = 1, .element_type = PJRT_Buffer_Type_F32 };
	return GET(Client_CreateBuffersForAsyncHostToDevice, transfer_manager,
		   .client = client, .shape_specs = specs, .num_shape_specs = n,
		   .memory = memory_of(dev, 0));
}

#define PIECE(m, i, at, from, n, last) \
	CALL(AsyncHostToDeviceTransferManager_TransferData, .transfer_manager = m, \
	     .buffer_index = i, .data = from, .offset = at, .transfer_size = n, \
	     .is_last_transfer = last)

static void send(struct PJRT_AsyncHostToDeviceTransferManager *m, int i, int64_t at,
		 const void *from, int64_t n, bool last)
{
	struct PJRT_Event *e = GET(AsyncHostToDeviceTransferManager_TransferData,
				   done_with_h2d_transfer, .transfer_manager = m,
				   .buffer_index = i, .data = from, .offset = at,
				   .transfer_size = n, .is_last_transfer = last);

	assert_ok(finish(e));
}

static struct PJRT_Buffer *retrieve(struct PJRT_AsyncHostToDeviceTransferManager *m, int i)
{
	return GET(AsyncHostToDeviceTransferManager_RetrieveBuffer, buffer_out,
		   .transfer_manager = m, .buffer_index = i);
}

static void drop_transfer(struct PJRT_AsyncHostToDeviceTransferManager *m)
{
	assert_ok(CALL(AsyncHostToDeviceTransferManager_Destroy, .transfer_manager = m));
}

static void buffers_fill_in_pieces(void **state)
{
	struct PJRT_AsyncHostToDeviceTransferManager *m = transfer(3);
	float data[16], back[16];
	int64_t dim = 16;
	struct PJRT_Buffer *b;
	struct PJRT_NamedValue hint = { .struct_size = PJRT_NamedValue_SIZE };

	(void)state;
	for (int i = 0; i < 16; i++)
		data[i] = (float)i;
	assert_int_equal(GET(AsyncHostToDeviceTransferManager_BufferCount, buffer_count,
			     .transfer_manager = m), 3);
	assert_int_equal(GET(AsyncHostToDeviceTransferManager_BufferSize, buffer_size,
			     .transfer_manager = m, .buffer_index = 1), 64);
	assert_ptr_equal(GET(AsyncHostToDeviceTransferManager_Device, device_out,
			     .transfer_manager = m), dev);
	assert_ok(CALL(AsyncHostToDeviceTransferManager_AddMetadata, .transfer_manager = m,
		       .transfer_metadata = &hint, .num_metadata = 1));
	b = retrieve(m, 1);
	assert_error(CALL(AsyncHostToDeviceTransferManager_RetrieveBuffer,
			  .transfer_manager = m, .buffer_index = 1),
		     PJRT_Error_Code_FAILED_PRECONDITION, "already");
	assert_false(is_ready(b));
	assert_error(CALL(Buffer_UnsafePointer, .buffer = b),
		     PJRT_Error_Code_FAILED_PRECONDITION, "no content yet");
	send(m, 1, 32, data + 8, 32, false);
	assert_false(is_ready(b));
	send(m, 1, 0, data, 32, true);
	assert_true(is_ready(b));
	assert_ok(fetch(b, back, sizeof(back)));
	assert_memory_equal(back, data, sizeof(data));
	assert_error(PIECE(m, 1, 0, data, 4, false), PJRT_Error_Code_FAILED_PRECONDITION,
		     "last piece");
	drop_buffer(b);
	/* A literal is all of it. */
	assert_error(CALL(AsyncHostToDeviceTransferManager_TransferLiteral,
			  .transfer_manager = m, .buffer_index = 0, .data = data,
			  .shape_dims = &dim, .shape_num_dims = 1,
			  .shape_element_type = PJRT_Buffer_Type_S32), INVALID, "literal");
	drop_event(GET(AsyncHostToDeviceTransferManager_TransferLiteral,
		       done_with_h2d_transfer, .transfer_manager = m, .buffer_index = 0,
		       .data = data, .shape_dims = &dim, .shape_num_dims = 1,
		       .shape_element_type = PJRT_Buffer_Type_F32));
	b = retrieve(m, 0);
	drop_transfer(m);
	assert_ok(fetch(b, back, sizeof(back)));
	assert_memory_equal(back, data, sizeof(data));
	drop_buffer(b);
}

struct donation { struct PJRT_Buffer *in[2], *out; uintptr_t at; };

static void donate_it(struct PJRT_Error *error, void *arg)
{
	struct donation *d = arg;

	assert_ok(error);
	d->at = GET(Buffer_UnsafePointer, buffer_pointer, .buffer = d->in[0]);
	assert_ok(run_exe(donating, d->in, 2, &d->out, NULL));
}

/* Its memory and its use are its taker's, however long the transfer lives. */
static void a_transfer_keeps_nothing_that_is_complete(void **state)
{
	struct PJRT_AsyncHostToDeviceTransferManager *m = transfer(4);
	int64_t before = bytes_in_use(), each;
	float data[16] = { 0 };
	struct PJRT_Buffer *b[4];
	struct donation d = { .in[1] = filled(1) };
	struct PJRT_Event *e;

	(void)state;
	each = bytes_in_use() - before;
	before += each;
	for (int i = 1; i < 4; i++)
		b[i] = retrieve(m, i);
	send(m, 0, 0, data, 64, true);
	b[0] = retrieve(m, 0);	/* when it is there */
	drop_buffer(b[0]);
	assert_int_equal(bytes_in_use(), before - each);
	send(m, 1, 0, data, 64, true);
	assert_int_equal(GET(AsyncHostToDeviceTransferManager_BufferSize, buffer_size,
			     .transfer_manager = m, .buffer_index = 1), 64);
	assert_ok(CALL(Buffer_Delete, .buffer = b[1]));
	assert_int_equal(bytes_in_use(), before - 2 * each);
	drop_buffer(b[1]);
	/* Donated, it is written over: later, and as soon as it is there. */
	for (int i = 2; i < 4; i++) {
		d.in[0] = b[i];
		e = GET(Buffer_ReadyEvent, event, .buffer = b[i]);
		if (i == 3)
			assert_ok(CALL(Event_OnReady, .event = e, .callback = (void *)donate_it,
				       .user_arg = &d));
		send(m, i, 0, data, 64, true);
		if (i == 2)
			donate_it(NULL, &d);
		expect(d.out, 1);
		assert_int_equal(GET(Buffer_UnsafePointer, buffer_pointer, .buffer = d.out), d.at);
		drop_event(e);
		drop_buffer(b[i]);
		drop_buffer(d.out);
	}
	assert_error(PIECE(m, 3, 0, data, 4, true), PJRT_Error_Code_FAILED_PRECONDITION, "last");
	drop_buffer(d.in[1]);
	drop_transfer(m);
}

static void destroy_it(struct PJRT_Error *error, void *arg)
{
	assert_ok(error);
	drop_transfer(arg);
}

/* The call that brings the last piece, or the error, may find the transfer gone behind it. */
static void a_transfer_may_be_destroyed_when_a_buffer_is_there(void **state)
{
	float data[16] = { 5 };

	(void)state;
	for (unsigned k = 0; k < 2; k++) {
		struct PJRT_AsyncHostToDeviceTransferManager *m = transfer(2);
		struct PJRT_Buffer *b = retrieve(m, 0), *left = retrieve(m, 1);
		struct PJRT_Event *e = GET(Buffer_ReadyEvent, event, .buffer = b);
		float back[16];

		assert_ok(CALL(Event_OnReady, .event = e, .callback = (void *)destroy_it,
			       .user_arg = m));
		drop_event(e);
		if (k)
			send(m, 0, 0, data, 32, false);
		send(m, 0, k ? 32 : 0, data, k ? 32 : 64, true);
		assert_ok(fetch(b, back, sizeof(back)));
		assert_true(back[0] == 5);
		assert_error(fetch(left, back, sizeof(back)), PJRT_Error_Code_CANCELLED,
			     "destroyed");
		drop_buffer(b);
		drop_buffer(left);
	}
}

static void an_event_is_set_once(void **state)
{
	struct PJRT_Event *e = GET(Event_Create, event);

	(void)state;
	assert_ok(CALL(Event_Set, .event = e));
	assert_ok(CALL(Event_Set, .event = e, .error_code = INVALID));
	assert_ok(CALL(Event_Error, .event = e));
	assert_ok(finish(e));
}

static void wrong_pieces_are_refused(void **state)
{
	struct PJRT_AsyncHostToDeviceTransferManager *m = transfer(1);
	struct PJRT_ShapeSpec spec = { .struct_size = PJRT_ShapeSpec_SIZE };
	float data[16] = { 0 };

	(void)state;
	assert_error(PIECE(m, 1, 0, data, 4, false), INVALID, "buffer 1 of a transfer of 1");
	assert_error(PIECE(m, -1, 0, data, 4, false), INVALID, "buffer -1");
	assert_error(PIECE(m, 0, 61, data, 4, false), INVALID, "61");
	assert_error(PIECE(m, 0, -4, data, 4, false), INVALID, "-4");
	assert_error(PIECE(m, 0, 0, data, -4, false), INVALID, "-4");
	assert_error(PIECE(m, 0, INT64_MAX, data, INT64_MAX, false), INVALID, "offset");
	assert_error(PIECE(m, 0, 0, NULL, 4, false), INVALID, "");
	assert_error(CALL(AsyncHostToDeviceTransferManager_BufferSize, .transfer_manager = m,
			  .buffer_index = 7), INVALID, "buffer 7");
	assert_error(CALL(AsyncHostToDeviceTransferManager_SetBufferError,
			  .transfer_manager = m, .buffer_index = 7), INVALID, "buffer 7");
	drop_transfer(m);
	assert_error(CALL(Client_CreateBuffersForAsyncHostToDevice, .client = client,
			  .shape_specs = &spec, .num_shape_specs = 1,
			  .memory = memory_of(dev, 0)), INVALID, "type 0");
	assert_error(CALL(Client_CreateBuffersForAsyncHostToDevice, .client = client,
			  .shape_specs = &spec, .num_shape_specs = SIZE_MAX / 8,
			  .memory = memory_of(dev, 0)),
		     PJRT_Error_Code_RESOURCE_EXHAUSTED, "memory");
}

static void an_unfinished_transfer_ends_in_an_error(void **state)
{
	struct PJRT_AsyncHostToDeviceTransferManager *m = transfer(2);
	struct PJRT_Buffer *told = retrieve(m, 0), *left = retrieve(m, 1);
	struct PJRT_Event *e = GET(Buffer_ReadyEvent, event, .buffer = left);
	float data[16] = { 0 }, back[16];

	(void)state;
	send(m, 1, 0, data, 32, false);
	assert_ok(CALL(AsyncHostToDeviceTransferManager_SetBufferError, .transfer_manager = m,
		       .buffer_index = 0, .error_code = PJRT_Error_Code_INTERNAL,
		       .error_message = "test error", .error_message_size = 10));
	assert_error(finish(GET(Buffer_ReadyEvent, event, .buffer = told)),
		     PJRT_Error_Code_INTERNAL, "test error");
	assert_error(CALL(AsyncHostToDeviceTransferManager_SetBufferError,
			  .transfer_manager = m, .buffer_index = 0, .error_code = 1),
		     PJRT_Error_Code_FAILED_PRECONDITION, "content");
	assert_error(PIECE(m, 0, 0, data, 4, true), PJRT_Error_Code_FAILED_PRECONDITION,
		     "error");
	drop_transfer(m);
	assert_error(finish(e), PJRT_Error_Code_CANCELLED, "destroyed");
	assert_error(fetch(left, back, 64), PJRT_Error_Code_CANCELLED, "destroyed");
	drop_buffer(told);
	drop_buffer(left);
}

struct piece {
	struct PJRT_AsyncHostToDeviceTransferManager *m;
	const char *data;
	int part;
};

static void *send_part(void *arg)
{
	const struct piece *p = arg;
	struct PJRT_AsyncHostToDeviceTransferManager_TransferData_Args a;

	for (int i = p->part; i < 15; i += 3)
		if (CALL_AS(&a, AsyncHostToDeviceTransferManager_TransferData,
			    .transfer_manager = p->m, .data = p->data + 4 * i, .offset = 4 * i,
			    .transfer_size = 4) ||
		    CALL(Event_Destroy, .event = a.done_with_h2d_transfer))
			return (void *)1;
	return NULL;
}

static void pieces_may_come_from_several_threads(void **state)
{
	float data[16], back[16];

	(void)state;
	for (int i = 0; i < 16; i++)
		data[i] = (float)(i * i);
	for (int round = 0; round < 50; round++) {
		struct PJRT_AsyncHostToDeviceTransferManager *m = transfer(1);
		struct PJRT_Buffer *b = retrieve(m, 0);
		struct piece parts[3];
		pthread_t threads[3];
		void *failed;

		for (int i = 0; i < 3; i++) {
			parts[i] = (struct piece){ m, (char *)data, i };
			assert_int_equal(pthread_create(&threads[i], NULL, send_part,
							&parts[i]), 0);
		}
		for (int i = 0; i < 3; i++) {
			pthread_join(threads[i], &failed);
			assert_null(failed);
		}
		send(m, 0, 60, data + 15, 4, true);
		drop_transfer(m);
		assert_ok(fetch(b, back, sizeof(back)));
		assert_memory_equal(back, data, sizeof(data));
		drop_buffer(b);
	}
}

/* ---- aliases ---- */

static void an_alias_is_what_it_is_given(void **state)
{
	struct alias a = new_alias(), b = new_alias(), c = new_alias();
	struct PJRT_Buffer *real = filled(3), *small;
	struct PJRT_Event *e = GET(Buffer_ReadyEvent, event, .buffer = a.b);
	float data[16] = { 0 }, back[16];

	(void)state;
	assert_false(is_ready(a.b));
	assert_int_equal(GET(Buffer_Dimensions, num_dims, .buffer = a.b), 1);
	assert_error(CALL(Client_FulfillAliasBuffer, .client = client,
			  .fulfill_alias_buffer_cb = a.cb), INVALID, "neither");
	assert_ok(fulfill(a, real));
	drop_buffer(real);
	assert_ok(finish(e));
	expect(a.b, 3);
	drop_buffer(a.b);
	assert_ok(break_it(b));
	assert_error(fetch(b.b, back, 64), PJRT_Error_Code_UNAVAILABLE, "it went away");
	drop_buffer(b.b);
	small = put_floats(client, data, 8);
	assert_error(fulfill(c, small), INVALID, "32 bytes in place of 64");
	assert_error(fetch(c.b, back, 64), INVALID, "32 bytes in place of 64");
	drop_buffer(small);
	drop_buffer(c.b);
}

static void an_alias_takes_no_array_of_another_device(void **state)
{
	struct alias a = new_alias();
	struct PJRT_Buffer *real = filled(3), *far;

	(void)state;
	far = GET(Buffer_CopyToDevice, dst_buffer, .buffer = real,
		  .dst_device = device_of(client, 1));
	assert_error(fulfill(a, far), INVALID, "device 1");
	drop_buffer(a.b);
	drop_buffer(far);
	drop_buffer(real);
}

/* A launch that waits and then can't be made: its results and its event say why. */
static void a_launch_that_fails_later_says_so(void **state)
{
	struct PJRT_Client *c = new_client("hbm=16M,lanes=1");
	struct PJRT_LoadedExecutable *x = compile_on(c, "scale_add.mlirbc", 0);
	struct PJRT_Client_CreateAliasBuffer_Args a;
	float data[16] = { 0 }, back[16];
	struct PJRT_Buffer *real = put_floats(c, data, 16), *in[2] = { real }, *out;
	struct PJRT_Event *done;
	int64_t n = 16;

	(void)state;
	assert_ok(CALL_AS(&a, Client_CreateAliasBuffer, .client = c,
			  .memory = memory_of(device_of(c, 0), 0), .shape_dims = &n,
			  .shape_num_dims = 1, .shape_element_type = PJRT_Buffer_Type_F32));
	in[1] = a.alias_buffer;
	assert_ok(run_exe(x, in, 2, &out, &done));
	assert_ok(CALL(Device_PoisonExecution, .device = device_of(c, 0),
		       .error_code = PJRT_Error_Code_INTERNAL, .error_message = "bad",
		       .error_message_size = 3));
	assert_ok(CALL(Client_FulfillAliasBuffer, .client = c, .buffer = real,
		       .fulfill_alias_buffer_cb = a.fulfill_alias_buffer_cb));
	assert_error(fetch(out, back, sizeof(back)), PJRT_Error_Code_INTERNAL, "bad");
	assert_error(finish(done), PJRT_Error_Code_INTERNAL, "bad");
	drop_buffer(out);
	drop_buffer(in[1]);
	drop_buffer(real);
	drop_exe(x);
	drop_client(c);
}

static void an_alias_may_be_deleted_first(void **state)
{
	int64_t before = GET(Device_MemoryStats, bytes_in_use, .device = dev);
	struct alias a = new_alias(), b = new_alias();
	struct PJRT_Buffer *real = filled(1);

	(void)state;
	assert_ok(CALL(Buffer_Delete, .buffer = a.b));
	assert_true(is_deleted(a.b));
	assert_ok(fulfill(a, real));
	drop_buffer(a.b);
	drop_buffer(b.b);
	assert_ok(fulfill(b, real));
	drop_buffer(real);
	assert_int_equal(GET(Device_MemoryStats, bytes_in_use, .device = dev), before);
}

static void aliases_of_aliases_are_followed(void **state)
{
	struct alias a = new_alias(), b = new_alias(), own = new_alias();
	int64_t dims[] = { 4, 4 };
	struct PJRT_Buffer *real = filled(5), *cast, *copy;
	float back[16];

	(void)state;
	cast = GET(Buffer_Bitcast, out_buffer, .buffer = b.b,
		   .element_type = PJRT_Buffer_Type_F32, .dims = dims, .num_dims = 2);
	copy = GET(Buffer_CopyToDevice, dst_buffer, .buffer = b.b,
		   .dst_device = device_of(client, 1));
	assert_ok(fulfill(b, a.b));
	assert_false(is_ready(b.b) || is_ready(cast) || is_ready(copy));
	assert_ok(fulfill(a, real));
	expect(b.b, 5);
	expect(cast, 5);
	expect(copy, 5);
	assert_error(fulfill(own, own.b), INVALID, "its own content");
	assert_error(fetch(own.b, back, 64), INVALID, "its own content");
	drop_buffer(own.b);
	drop_buffer(cast);
	drop_buffer(copy);
	drop_buffer(a.b);
	drop_buffer(b.b);
	drop_buffer(real);
}

/* Also one that is longer than a thread's stack has room for. */
static void a_chain_of_any_length_is_followed(void **state)
{
	enum { LONG = 300000 };
	struct PJRT_Buffer **chain = malloc((LONG + 1) * sizeof(struct PJRT_Buffer *)), *real;
	int64_t dims[] = { 4, 4 };

	(void)state;
	assert_non_null(chain);
	for (int fails = 0; fails < 2; fails++) {
		struct alias a = new_alias();

		chain[0] = a.b;
		for (int i = 0; i < LONG; i++)
			chain[i + 1] = GET(Buffer_Bitcast, out_buffer, .buffer = chain[i],
					   .element_type = PJRT_Buffer_Type_F32, .dims = dims,
					   .num_dims = 2);
		real = filled(7);
		assert_ok(fails ? break_it(a) : fulfill(a, real));
		assert_true(is_ready(chain[LONG]));
		if (!fails)
			expect(chain[LONG], 7);
		for (int i = 0; i <= LONG; i++)
			drop_buffer(chain[i]);
		drop_buffer(real);
	}
	free(chain);
}

/* ---- launches that wait ---- */

static void a_launch_waits_for_its_alias(void **state)
{
	struct alias a = new_alias();
	struct PJRT_Buffer *one = filled(1), *real = filled(3), *in[2] = { a.b, one };
	struct PJRT_Buffer *out, *out2, *in2[2];
	struct PJRT_Event *done, *done2, *late;
	float back[16];
	struct PJRT_Buffer_ToHostBuffer_Args ask;

	(void)state;
	assert_ok(run_exe(scale_add, in, 2, &out, &done));
	/* And one that waits for that one. */
	in2[0] = out;
	in2[1] = one;
	assert_ok(run_exe(scale_add, in2, 2, &out2, &done2));
	late = GET(Buffer_ReadyEvent, event, .buffer = out2);
	assert_ok(CALL_AS(&ask, Buffer_ToHostBuffer, .src = out2, .dst = back,
			  .dst_size = sizeof(back)));
	assert_false(is_ready(out) || is_ready(out2));
	assert_false(GET(Event_IsReady, is_ready, .event = done));
	/* Nobody here needs these any more; the launches do. */
	drop_buffer(a.b);
	drop_buffer(one);
	drop_buffer(out);
	assert_ok(fulfill(a, real));
	drop_buffer(real);
	assert_ok(finish(done));
	assert_ok(finish(done2));
	assert_ok(finish(late));
	assert_ok(finish(ask.event));
	/* 2 * (2 * 3 + 1) + 1 */
	for (int i = 0; i < 16; i++)
		assert_true(back[i] == 15);
	expect(out2, 15);
	drop_buffer(out2);
}

static void a_launch_that_waited_passes_the_error_on(void **state)
{
	struct alias a = new_alias();
	struct PJRT_Buffer *one = filled(1), *in[2] = { a.b, one }, *out;
	struct PJRT_Event *done;
	float back[16];

	(void)state;
	assert_ok(run_exe(scale_add, in, 2, &out, &done));
	assert_ok(break_it(a));
	assert_error(finish(done), PJRT_Error_Code_UNAVAILABLE, "it went away");
	assert_error(fetch(out, back, 64), PJRT_Error_Code_UNAVAILABLE, "it went away");
	drop_buffer(out);
	drop_buffer(a.b);
	drop_buffer(one);
}

static void waiting_launches_keep_what_they_read(void **state)
{
	struct alias a = new_alias();
	struct PJRT_Buffer *x = filled(1), *one = filled(1), *real = filled(0);
	struct PJRT_Buffer *first[2] = { a.b, x }, *then[2] = { x, one }, *out, *out2;
	struct PJRT_Event *done, *done2;

	(void)state;
	/* The first reads x when the alias is there; the second overwrites it now. */
	assert_ok(run_exe(scale_add, first, 2, &out, &done));
	assert_ok(run_exe(donating, then, 2, &out2, &done2));
	assert_true(is_deleted(x));
	assert_ok(finish(done2));
	expect(out2, 3);
	assert_ok(fulfill(a, real));
	assert_ok(finish(done));
	expect(out, 1);
	drop_buffer(out);
	drop_buffer(out2);
	drop_buffer(a.b);
	drop_buffer(x);
	drop_buffer(one);
	drop_buffer(real);
}

static void a_waiting_launch_takes_its_donation_at_once(void **state)
{
	struct alias a = new_alias(), lent = new_alias();
	struct PJRT_Buffer *x = filled(4), *real = filled(1);
	struct PJRT_Buffer *in[2] = { x, a.b }, *again[2] = { lent.b, real }, *out, *out2;
	struct PJRT_Event *done, *done2;
	uintptr_t was = GET(Buffer_UnsafePointer, buffer_pointer, .buffer = x);
	float back[16];

	(void)state;
	assert_ok(run_exe(donating, in, 2, &out, &done));
	assert_true(is_deleted(x));
	assert_error(fetch(x, back, 64), INVALID, "deleted");
	assert_error(run_exe(donating, in, 2, &out2, &done2), INVALID, "donated");
	assert_ok(fulfill(a, real));
	assert_ok(finish(done));
	expect(out, 9);
	assert_int_equal(GET(Buffer_UnsafePointer, buffer_pointer, .buffer = out), was);
	/* The alias itself may be what is donated. */
	assert_ok(run_exe(donating, again, 2, &out2, &done2));
	assert_true(is_deleted(lent.b));
	assert_ok(fulfill(lent, out));
	assert_ok(finish(done2));
	expect(out2, 19);
	expect(out, 9);
	drop_buffer(out);
	drop_buffer(out2);
	drop_buffer(lent.b);
	drop_buffer(a.b);
	drop_buffer(x);
	drop_buffer(real);
}

/* ---- donation after an event ---- */

static void a_donated_buffer_waits_for_its_dependency(void **state)
{
	struct PJRT_Buffer_DonateWithControlDependency_Args d;
	struct PJRT_Buffer *b = filled(7);
	float back[16];

	(void)state;
	assert_ok(CALL_AS(&d, Buffer_DonateWithControlDependency, .buffer = b));
	assert_true(is_deleted(b));
	assert_false(is_ready(d.out_buffer));
	drop_buffer(b);
	release(&d, 0);
	expect(d.out_buffer, 7);
	/* Once more, with an error. */
	b = d.out_buffer;
	assert_ok(CALL_AS(&d, Buffer_DonateWithControlDependency, .buffer = b));
	release(&d, PJRT_Error_Code_ABORTED);
	assert_error(fetch(d.out_buffer, back, 64), PJRT_Error_Code_ABORTED, "not this time");
	drop_buffer(d.out_buffer);
	drop_buffer(b);
	b = filled(7);
	assert_ok(CALL(Buffer_IncreaseExternalReferenceCount, .buffer = b));
	assert_error(CALL(Buffer_DonateWithControlDependency, .buffer = b),
		     PJRT_Error_Code_FAILED_PRECONDITION, "external");
	assert_ok(CALL(Buffer_DecreaseExternalReferenceCount, .buffer = b));
	drop_buffer(b);
}

/* ---- raw copies to a later place ---- */

static void tell_place(const struct PJRT_Buffer_CopyRawToHostFuture_Args *f, void *dst, int code)
{
	struct PJRT_Buffer_CopyRawToHostFuture_Callback_Args a = {
		.struct_size = PJRT_Buffer_CopyRawToHostFuture_Callback_Args_SIZE,
		.callback_data = f->callback_data, .error_code = code, .dst = dst,
		.error_message = "no room", .error_message_size = 7 };

	((void (*)(void *))f->future_ready_callback)(&a);
}

static void a_raw_copy_waits_for_its_place(void **state)
{
	struct PJRT_Buffer_CopyRawToHostFuture_Args f[3];
	struct PJRT_Buffer *b = filled(2);
	float back[2] = { 0 };

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_ok(CALL_AS(&f[i], Buffer_CopyRawToHostFuture, .buffer = b, .offset = 8,
				  .transfer_size = 8));
	assert_error(CALL(Buffer_CopyRawToHostFuture, .buffer = b, .offset = 60,
			  .transfer_size = 8), INVALID, "invalid offset 60, transfer size 8");
	assert_error(CALL(Buffer_CopyRawToHostFuture, .buffer = b, .offset = -1), INVALID,
		     "invalid offset -1");
	/* The content stays for them. */
	drop_buffer(b);
	assert_false(GET(Event_IsReady, is_ready, .event = f[0].event));
	tell_place(&f[0], back, 0);
	assert_ok(finish(f[0].event));
	assert_true(back[0] == 2 && back[1] == 2);
	tell_place(&f[1], NULL, PJRT_Error_Code_RESOURCE_EXHAUSTED);
	assert_error(finish(f[1].event), PJRT_Error_Code_RESOURCE_EXHAUSTED, "no room");
	tell_place(&f[2], NULL, 0);
	assert_error(finish(f[2].event), INVALID, "NULL");
}

/* ---- poison ---- */

static void a_poisoned_device_fails_each_launch(void **state)
{
	struct PJRT_Client *c = new_client("hbm=64M,lanes=1");
	struct PJRT_LoadedExecutable *x = compile_on(c, "scale_add_donated.mlirbc", 0);
	float data[16] = { 0 };
	struct PJRT_Buffer *in[2] = { put_floats(c, data, 16), put_floats(c, data, 16) }, *out;
	struct PJRT_Event *done;

	(void)state;
	assert_error(CALL(Device_PoisonExecution, .device = device_of(c, 0)), INVALID, "OK");
	assert_true(GET(Device_PoisonExecution, poisoned, .device = device_of(c, 0),
			.error_code = PJRT_Error_Code_DATA_LOSS, .error_message = "task 3 died",
			.error_message_size = 11));
	for (int i = 0; i < 2; i++)
		assert_error(run_exe(x, in, 2, &out, &done), PJRT_Error_Code_DATA_LOSS,
			     "task 3 died");
	/* What was to be donated is still there. */
	assert_false(is_deleted(in[0]));
	assert_ok(fetch(in[0], data, sizeof(data)));
	drop_buffer(in[0]);
	drop_buffer(in[1]);
	drop_exe(x);
	drop_client(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buffers_fill_in_pieces),
		cmocka_unit_test(a_transfer_keeps_nothing_that_is_complete),
		cmocka_unit_test(a_transfer_may_be_destroyed_when_a_buffer_is_there),
		cmocka_unit_test(an_event_is_set_once),
		cmocka_unit_test(wrong_pieces_are_refused),
		cmocka_unit_test(an_unfinished_transfer_ends_in_an_error),
		cmocka_unit_test(pieces_may_come_from_several_threads),
		cmocka_unit_test(an_alias_is_what_it_is_given),
		cmocka_unit_test(an_alias_takes_no_array_of_another_device),
		cmocka_unit_test(a_launch_that_fails_later_says_so),
		cmocka_unit_test(an_alias_may_be_deleted_first),
		cmocka_unit_test(aliases_of_aliases_are_followed),
		cmocka_unit_test(a_chain_of_any_length_is_followed),
		cmocka_unit_test(a_launch_waits_for_its_alias),
		cmocka_unit_test(a_launch_that_waited_passes_the_error_on),
		cmocka_unit_test(waiting_launches_keep_what_they_read),
		cmocka_unit_test(a_waiting_launch_takes_its_donation_at_once),
		cmocka_unit_test(a_donated_buffer_waits_for_its_dependency),
		cmocka_unit_test(a_raw_copy_waits_for_its_place),
		cmocka_unit_test(a_poisoned_device_fails_each_launch),
	};

	return cmocka_run_group_tests(tests, open_client, close_client);
}
