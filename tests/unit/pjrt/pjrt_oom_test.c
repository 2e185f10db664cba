/* SPDX-License-Identifier: Apache-2.0 */
/* Host memory that runs out: each scenario runs again and again, with the n-th
 * allocation of this thread failing, until it runs through. Whatever fails says so,
 * and nothing stays behind on the device. */
#include <malloc.h>
#include <sched.h>

#include "tests/unit/pjrt/pjrt_test.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
/* A sanitizer has an allocator of its own. */
int main(void)
{
	puts("skipped: the sanitizer's allocator can't be replaced");
	return 77;
}
#else

static _Thread_local long left = -1;	/* allocations until one fails; -1: never */
static _Thread_local int failed;

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);

static bool is_due(void)
{
	if (left < 0 || left--)
		return false;
	failed++;
	return true;
}

/* The plugin's allocations come here too: the program is looked at first. */
__attribute__((visibility("default"))) void *malloc(size_t n)
{
	return is_due() ? NULL : __libc_malloc(n);
}

__attribute__((visibility("default"))) void *calloc(size_t n, size_t size)
{
	return is_due() ? NULL : __libc_calloc(n, size);
}

__attribute__((visibility("default"))) void *realloc(void *p, size_t n)
{
	return is_due() ? NULL : __libc_realloc(p, n);
}

static struct PJRT_Client *client;
static struct PJRT_Device *dev[2];
static struct PJRT_LoadedExecutable *scale_add, *donating;

static int open_client(void **state)
{
	if (load_plugin(state))
		return -1;
	client = new_client("devices=2,hbm=64M,lanes=1");
	for (int i = 0; i < 2; i++)
		dev[i] = device_of(client, i);
	scale_add = compile_on(client, "scale_add.mlirbc", 0);
	donating = compile_on(client, "scale_add_donated.mlirbc", 0);
	return 0;
}

static int close_client(void **state)
{
	(void)state;
	drop_exe(scale_add);
	drop_exe(donating);
	drop_client(client);
	return 0;
}

static int64_t in_use(void)
{
	int64_t n = 0;

	for (int i = 0; i < 2; i++)
		n += GET(Device_MemoryStats, bytes_in_use, .device = dev[i]);
	return n;
}

/* libelf says only that it can't read the file. */
static bool is_libelf(struct PJRT_Error *e)
{
	return error_code(e) == INVALID && strstr(error_text(e), "not a Tessera executable");
}

/* Whether a call went well; if not, its error must be that memory ran out. */
static bool went(struct PJRT_Error *e)
{
	long keep = left;
	bool is_right;

	if (!e)
		return true;
	left = -1;
	is_right = error_code(e) == PJRT_Error_Code_RESOURCE_EXHAUSTED || is_libelf(e);
	if (!is_right)
		print_error("code %d: %s\n", error_code(e), error_text(e));
	drop_error(e);
	assert_true(is_right);
	left = keep;
	return false;
}

/* What other threads let go of comes back a little later. */
static bool comes_back_to(int64_t bytes)
{
	for (int i = 0; i < 100000 && in_use() != bytes; i++)
		sched_yield();
	return in_use() == bytes;
}

/* Every allocation fails once. */
static int fail_each(void (*scenario)(void))
{
	int64_t before = in_use();
	int rounds = 0;

	do {
		failed = 0;
		left = rounds++;
		scenario();
		left = -1;
		assert_true(comes_back_to(before));
		assert_true(rounds < 2000);
	} while (failed);
	return rounds - 1;
}

/* The host memory in use, once it is at most `most`; what more it is after a while. */
static size_t host_memory(size_t most)
{
	size_t n = mallinfo2().uordblks;

	for (int i = 0; i < 100000 && n > most; i++) {
		sched_yield();
		n = mallinfo2().uordblks;
	}
	return n;
}

static void torture(void (*scenario)(void))
{
	size_t host, was;
	int n, rounds = 0;

	scenario();
	host = host_memory(SIZE_MAX);
	/* The allocator and the device keep some for next time. What leaks grows each time. */
	do {
		assert_true(rounds++ < 50);
		was = host;
		n = fail_each(scenario);
		host = host_memory(was);
	} while (host > was);
	print_message("%d allocations\n", n);
}

static struct PJRT_Buffer *put(void)
{
	struct PJRT_Client_BufferFromHostBuffer_Args a;
	float data[16] = { 1 };
	int64_t n = 16;

	if (!went(CALL_AS(&a, Client_BufferFromHostBuffer, .client = client, .data = data,
			  .type = PJRT_Buffer_Type_F32, .dims = &n, .num_dims = 1)))
		return NULL;
	drop_event(a.done_with_host_buffer);
	return a.buffer;
}

static void drop(struct PJRT_Buffer *b)
{
	if (b)
		drop_buffer(b);
}

static void get(struct PJRT_Buffer *b)
{
	struct PJRT_Buffer_ToHostBuffer_Args a;
	float back[16];

	if (!went(CALL_AS(&a, Buffer_ToHostBuffer, .src = b, .dst = back,
			  .dst_size = sizeof(back))))
		return;
	went(CALL(Event_Await, .event = a.event));
	drop_event(a.event);
}

static void move(void)
{
	struct PJRT_Buffer *b = put();
	struct PJRT_Buffer_CopyToDevice_Args copy;
	struct PJRT_Buffer_Bitcast_Args cast;
	struct PJRT_Buffer_ReadyEvent_Args ready;
	int64_t dims[] = { 4, 4 };

	if (!b)
		return;
	if (went(CALL_AS(&ready, Buffer_ReadyEvent, .buffer = b)))
		drop_event(ready.event);
	if (went(CALL_AS(&copy, Buffer_CopyToDevice, .buffer = b, .dst_device = dev[1]))) {
		get(copy.dst_buffer);
		drop_buffer(copy.dst_buffer);
	}
	if (went(CALL_AS(&cast, Buffer_Bitcast, .buffer = b, .dims = dims, .num_dims = 2,
			 .element_type = PJRT_Buffer_Type_F32))) {
		get(cast.out_buffer);
		drop_buffer(cast.out_buffer);
	}
	drop(b);
}

static void moving_survives(void **state)
{
	(void)state;
	torture(move);
}

static void launch(void)
{
	struct PJRT_Buffer *in[2] = { put(), put() }, *out;
	struct PJRT_Event *done;

	for (int i = 0; i < 2 && in[0] && in[1]; i++)
		if (went(run_exe(i ? donating : scale_add, in, 2, &out, &done))) {
			went(CALL(Event_Await, .event = done));
			drop_event(done);
			get(out);
			drop_buffer(out);
		}
	drop(in[0]);
	drop(in[1]);
}

static void launching_survives(void **state)
{
	(void)state;
	torture(launch);
}

static void count(struct PJRT_Error *e, void *arg)
{
	drop_error(e);
	__atomic_add_fetch((int *)arg, 1, __ATOMIC_RELEASE);
}

static void wait_for_alias(void)
{
	struct PJRT_Client_CreateAliasBuffer_Args a;
	struct PJRT_Buffer *in[2] = { NULL, put() }, *real = put(), *out = NULL;
	struct PJRT_Buffer_ToHostBuffer_Args fetched = { .event = NULL };
	struct PJRT_Event *done = NULL;
	int64_t n = 16;
	int calls = 0, wanted = 0;
	float back[16];

	if (!in[1] || !real ||
	    !went(CALL_AS(&a, Client_CreateAliasBuffer, .client = client,
			  .memory = memory_of(dev[0], 0), .shape_dims = &n, .shape_num_dims = 1,
			  .shape_element_type = PJRT_Buffer_Type_F32))) {
		drop(in[1]);
		drop(real);
		return;
	}
	in[0] = a.alias_buffer;
	if (went(run_exe(scale_add, in, 2, &out, &done))) {
		wanted += went(CALL(Event_OnReady, .event = done, .callback = (void *)count,
				    .user_arg = &calls));
		if (!went(CALL_AS(&fetched, Buffer_ToHostBuffer, .src = out, .dst = back,
				  .dst_size = sizeof(back))))
			fetched.event = NULL;
	}
	went(CALL(Client_FulfillAliasBuffer, .client = client, .buffer = real,
		  .fulfill_alias_buffer_cb = a.fulfill_alias_buffer_cb));
	/* Whatever went wrong, nobody waits forever. */
	if (fetched.event) {
		went(CALL(Event_Await, .event = fetched.event));
		drop_event(fetched.event);
	}
	if (done) {
		went(CALL(Event_Await, .event = done));
		drop_event(done);
	}
	/* Those who wait with it may be called a little after. */
	while (__atomic_load_n(&calls, __ATOMIC_ACQUIRE) < wanted)
		sched_yield();
	drop(out);
	drop(in[0]);
	drop(in[1]);
	drop(real);
}

static void waiting_survives(void **state)
{
	(void)state;
	torture(wait_for_alias);
}

static void transfer(void)
{
	struct PJRT_Client_CreateBuffersForAsyncHostToDevice_Args m;
	struct PJRT_AsyncHostToDeviceTransferManager_TransferData_Args t;
	struct PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args r;
	int64_t n = 16;
	struct PJRT_ShapeSpec specs[2];
	float data[16] = { 0 };

	for (int i = 0; i < 2; i++)
		specs[i] = (struct PJRT_ShapeSpec){ .struct_size = PJRT_ShapeSpec_SIZE,
			.dims = &n, .num_dims = 1, .element_type = PJRT_Buffer_Type_F32 };
	if (!went(CALL_AS(&m, Client_CreateBuffersForAsyncHostToDevice, .client = client,
			  .shape_specs = specs, .num_shape_specs = 2,
			  .memory = memory_of(dev[0], 0))))
		return;
	if (went(CALL_AS(&t, AsyncHostToDeviceTransferManager_TransferData,
			 .transfer_manager = m.transfer_manager, .data = data,
			 .transfer_size = 64, .is_last_transfer = true)))
		drop_event(t.done_with_h2d_transfer);
	if (went(CALL_AS(&r, AsyncHostToDeviceTransferManager_RetrieveBuffer,
			 .transfer_manager = m.transfer_manager)))
		drop_buffer(r.buffer_out);
	assert_ok(CALL(AsyncHostToDeviceTransferManager_Destroy,
		       .transfer_manager = m.transfer_manager));
}

static void transfers_survive(void **state)
{
	(void)state;
	torture(transfer);
}

static void donate(void)
{
	struct PJRT_Buffer_DonateWithControlDependency_Args d;
	struct PJRT_Buffer_CopyRawToHostFuture_Args f;
	struct PJRT_Buffer *b = put();
	float back[16];

	if (!b)
		return;
	if (went(CALL_AS(&f, Buffer_CopyRawToHostFuture, .buffer = b, .transfer_size = 64))) {
		struct PJRT_Buffer_CopyRawToHostFuture_Callback_Args a = {
			.struct_size = PJRT_Buffer_CopyRawToHostFuture_Callback_Args_SIZE,
			.callback_data = f.callback_data, .dst = back };

		((void (*)(void *))f.future_ready_callback)(&a);
		went(CALL(Event_Await, .event = f.event));
		drop_event(f.event);
	}
	if (went(CALL_AS(&d, Buffer_DonateWithControlDependency, .buffer = b))) {
		struct PJRT_Buffer_DonateWithControlDependency_Callback_Args a = {
			.struct_size =
				PJRT_Buffer_DonateWithControlDependency_Callback_Args_SIZE,
			.callback_data = d.callback_data };

		((void (*)(void *))d.dependency_ready_callback)(&a);
		get(d.out_buffer);
		drop_buffer(d.out_buffer);
	}
	drop(b);
}

static void donating_survives(void **state)
{
	(void)state;
	torture(donate);
}

static void is_deleted_now(void *pointer, void *arg)
{
	(void)pointer;
	++*(int *)arg;
}

static void view(void)
{
	struct PJRT_Client_CreateViewOfDeviceBuffer_Args v;
	static _Alignas(4096) float host[1024];
	int64_t n = 16;
	int calls = 0;
	bool mapped = went(CALL(Client_DmaMap, .client = client, .data = host,
				.size = sizeof(host)));

	if (went(CALL_AS(&v, Client_CreateViewOfDeviceBuffer, .client = client,
			 .device_buffer_ptr = host, .dims = &n, .num_dims = 1,
			 .element_type = PJRT_Buffer_Type_F32, .memory = memory_of(dev[0], 1),
			 .on_delete_callback = (void *)is_deleted_now,
			 .on_delete_callback_arg = &calls))) {
		drop_buffer(v.buffer);
		assert_int_equal(calls, 1);
	} else {
		assert_int_equal(calls, 0);
	}
	if (mapped)
		assert_ok(CALL(Client_DmaUnmap, .client = client, .data = host));
}

static void views_survive(void **state)
{
	(void)state;
	torture(view);
}

static void reload(void)
{
	struct PJRT_LoadedExecutable_GetExecutable_Args x;
	struct PJRT_Executable_Serialize_Args s;
	struct PJRT_Executable_DeserializeAndLoad_Args l;
	struct PJRT_LoadedExecutable_GetDeviceAssignment_Args d;

	if (went(CALL_AS(&d, LoadedExecutable_GetDeviceAssignment, .executable = scale_add)))
		((void (*)(void *))d.serialized_device_assignment_deleter)(
			d.serialized_device_assignment);
	assert_ok(CALL_AS(&x, LoadedExecutable_GetExecutable, .loaded_executable = scale_add));
	if (went(CALL_AS(&s, Executable_Serialize, .executable = x.executable))) {
		if (went(CALL_AS(&l, Executable_DeserializeAndLoad, .client = client,
				 .serialized_executable = s.serialized_bytes,
				 .serialized_executable_size = s.serialized_bytes_size)))
			drop_exe(l.loaded_executable);
		((void (*)(void *))s.serialized_executable_deleter)(s.serialized_executable);
	}
	assert_ok(CALL(Executable_Destroy, .executable = x.executable));
}

static void loading_survives(void **state)
{
	(void)state;
	torture(reload);
}

static struct PJRT_Executable_Serialize_Args serialized;

/* A program of two replicas, from an HLO module, and what is shown of it. It is not compiled
 * here: libelf, which writes images, does not survive where memory ends. */
static void load_replicas(void)
{
	struct PJRT_Program p = { .struct_size = PJRT_Program_SIZE };
	struct PJRT_Executable_DeserializeAndLoad_Args l;
	struct PJRT_LoadedExecutable_GetExecutable_Args x;

	if (!went(CALL_AS(&l, Executable_DeserializeAndLoad, .client = client,
			  .serialized_executable = serialized.serialized_bytes,
			  .serialized_executable_size = serialized.serialized_bytes_size)))
		return;
	assert_ok(CALL_AS(&x, LoadedExecutable_GetExecutable,
			  .loaded_executable = l.loaded_executable));
	went(CALL(Executable_OptimizedProgram, .executable = x.executable, .program = &p));
	assert_ok(CALL(Executable_Destroy, .executable = x.executable));
	drop_exe(l.loaded_executable);
}

static void replicas_and_modules_survive(void **state)
{
	static const char options[] = "\x1a\x02\x20\x02";
	static char module[8192];
	FILE *f = fopen("tests/data/torch/reduce__prod.hlo", "rb");
	struct PJRT_Program p = { .struct_size = PJRT_Program_SIZE, .code = module,
				  .format = "hlo", .format_size = 3 };
	struct PJRT_LoadedExecutable *l;
	struct PJRT_Executable *x;

	(void)state;
	assert_non_null(f);
	p.code_size = fread(module, 1, sizeof(module), f);
	fclose(f);
	l = GET(Client_Compile, executable, .client = client, .program = &p,
		.compile_options = options, .compile_options_size = sizeof(options) - 1);
	x = GET(LoadedExecutable_GetExecutable, executable, .loaded_executable = l);
	assert_ok(CALL_AS(&serialized, Executable_Serialize, .executable = x));
	torture(load_replicas);
	((void (*)(void *))serialized.serialized_executable_deleter)(
		serialized.serialized_executable);
	assert_ok(CALL(Executable_Destroy, .executable = x));
	drop_exe(l);
}

static void describe(void)
{
	struct PJRT_TopologyDescription_Create_Args t;
	struct PJRT_TopologyDescription_Serialize_Args s;
	struct PJRT_ExecuteContext_Create_Args x;
	struct PJRT_Event_Create_Args e;

	if (went(CALL_AS(&t, TopologyDescription_Create))) {
		if (went(CALL_AS(&s, TopologyDescription_Serialize, .topology = t.topology)))
			((void (*)(void *))s.serialized_topology_deleter)(s.serialized_topology);
		assert_ok(CALL(TopologyDescription_Destroy, .topology = t.topology));
	}
	if (went(CALL_AS(&x, ExecuteContext_Create)))
		assert_ok(CALL(ExecuteContext_Destroy, .context = x.context));
	if (went(CALL_AS(&e, Event_Create)))
		drop_event(e.event);
}

static void describing_survives(void **state)
{
	(void)state;
	torture(describe);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(moving_survives),
		cmocka_unit_test(launching_survives),
		cmocka_unit_test(waiting_survives),
		cmocka_unit_test(transfers_survive),
		cmocka_unit_test(donating_survives),
		cmocka_unit_test(views_survive),
		cmocka_unit_test(loading_survives),
		cmocka_unit_test(replicas_and_modules_survive),
		cmocka_unit_test(describing_survives),
	};

	return cmocka_run_group_tests(tests, open_client, close_client);
}
#endif
