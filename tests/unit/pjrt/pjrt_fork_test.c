/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Children of fork: every slot of the table, called in a child with what its parent made
 * while another thread of the parent is at work. What needs the device is refused, the
 * rest answers or lets go; nothing crashes, hangs or disturbs the parent.
 */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pjrt_test.h"

/* What the parent made, for a field of this name in any slot's args. */
static struct {
	struct PJRT_Client *client;
	struct PJRT_Device *device;
	struct PJRT_DeviceDescription *description;
	struct PJRT_Memory *memory;
	struct PJRT_TopologyDescription *topology;
	struct PJRT_LoadedExecutable *loaded;
	struct PJRT_Executable *executable;
	struct PJRT_Buffer *buffer;	/* at rest */
	struct PJRT_Buffer *alias;	/* never resolved */
	struct PJRT_Event *event;	/* never set */
	struct PJRT_AsyncHostToDeviceTransferManager *transfer;
	struct PJRT_FulfillAliasBufferCallback *fulfill;
	struct PJRT_ExecuteContext *context;
	struct PJRT_Program program;
} have;

static pthread_t worker;
static bool quit;

/*
 * Under AddressSanitizer alone no child is forked in the middle of a run: gcc 12's does not
 * take the locks of its allocator over a fork, as glibc does, and a child in which a thread
 * of the parent held one waits for ever. `door` lets in who forks before the next run.
 */
#ifdef __SANITIZE_ADDRESS__
enum { IS_ASAN = 1 };
#else
enum { IS_ASAN = 0 };
#endif
static pthread_mutex_t door = PTHREAD_MUTEX_INITIALIZER, at_rest = PTHREAD_MUTEX_INITIALIZER;

static void begin(void)
{
	if (!IS_ASAN)
		return;
	pthread_mutex_lock(&door);
	pthread_mutex_lock(&at_rest);
	pthread_mutex_unlock(&door);
}

static void end(void)
{
	if (IS_ASAN)
		pthread_mutex_unlock(&at_rest);
}

static void *work(void *arg)
{
	struct PJRT_Buffer *in = have.buffer;

	(void)arg;
	while (!__atomic_load_n(&quit, __ATOMIC_RELAXED)) {
		struct PJRT_Buffer *args[2] = { in, in }, *out;
		struct PJRT_Error *e;
		float back[16];

		begin();
		e = run_exe(have.loaded, args, 2, &out, NULL);
		if (!e && IS_ASAN)
			e = fetch(out, back, sizeof(back));
		if (e) {
			end();
			return e;
		}
		CALL(Buffer_IncreaseExternalReferenceCount, .buffer = in);
		CALL(Buffer_DecreaseExternalReferenceCount, .buffer = in);
		CALL(Buffer_Destroy, .buffer = out);
		end();
	}
	return NULL;
}

static void ignore(struct PJRT_Error *e, void *arg)
{
	(void)arg;
	drop_error(e);
}

static int start(void **state)
{
	static const float ones[16] = { 1 };
	static const int64_t n = 16;
	static struct bytes code;
	struct PJRT_ShapeSpec spec = { .dims = &n, .num_dims = 1,
				       .element_type = PJRT_Buffer_Type_F32 };
	struct PJRT_Client_CreateAliasBuffer_Args a;

	if (load_plugin(state))
		return -1;
	have.client = new_client("hbm=64M,lanes=2");
	have.device = device_of(have.client, 0);
	have.description = GET(Device_GetDescription, device_description,
			       .device = have.device);
	have.memory = memory_of(have.device, 0);
	have.topology = GET(Client_TopologyDescription, topology, .client = have.client);
	have.loaded = compile_on(have.client, "scale_add.mlirbc", 0);
	have.executable = GET(LoadedExecutable_GetExecutable, executable,
			      .loaded_executable = have.loaded);
	have.buffer = put_floats(have.client, ones, 16);
	assert_ok(CALL_AS(&a, Client_CreateAliasBuffer, .client = have.client,
			  .memory = have.memory, .shape_dims = &n, .shape_num_dims = 1,
			  .shape_element_type = PJRT_Buffer_Type_F32));
	have.alias = a.alias_buffer;
	have.fulfill = a.fulfill_alias_buffer_cb;
	have.event = GET(Buffer_ReadyEvent, event, .buffer = have.alias);
	assert_ok(CALL(Event_OnReady, .event = have.event, .callback = (void *)ignore));
	have.transfer = GET(Client_CreateBuffersForAsyncHostToDevice, transfer_manager,
			    .client = have.client, .memory = have.memory,
			    .shape_specs = &spec, .num_shape_specs = 1);
	have.context = GET(ExecuteContext_Create, context);
	code = read_bytes("scale_add.mlirbc");
	have.program = program_of(code);
	return pthread_create(&worker, NULL, work, NULL);
}

static int stop(void **state)
{
	float back[16];
	void *e;

	(void)state;
	__atomic_store_n(&quit, true, __ATOMIC_RELAXED);
	pthread_join(worker, &e);
	expect_ok(e, "the parent's work");
	/* The parent's things are as they were. */
	assert_ok(fetch(have.buffer, back, sizeof(back)));
	assert_true(back[0] == 1 && back[1] == 0);
	assert_ok(CALL(Client_FulfillAliasBuffer, .client = have.client,
		       .fulfill_alias_buffer_cb = have.fulfill, .buffer = have.buffer));
	assert_ok(finish(have.event));
	assert_ok(CALL(AsyncHostToDeviceTransferManager_Destroy,
		       .transfer_manager = have.transfer));
	assert_ok(CALL(ExecuteContext_Destroy, .context = have.context));
	assert_ok(CALL(Executable_Destroy, .executable = have.executable));
	drop_buffer(have.alias);
	drop_buffer(have.buffer);
	drop_exe(have.loaded);
	drop_client(have.client);
	free(have.program.code);
	return 0;
}

/* Runs fn(arg) in a child: its exit status, or -1 if it crashed or hung for 30 s. */
static int in_child(int (*fn)(const void *arg), const void *arg)
{
	int status = -1;
	pid_t pid;

	begin();
	pid = fork();
	if (pid)
		end();
	assert_true(pid >= 0);
	if (!pid) {
		alarm(30);
		status = fn(arg);
		/* What is the parent's is not freed here: LeakSanitizer would call it lost. */
		if (IS_ASAN)
			_exit(status);
		exit(status);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	print_error("signal %d\n", WTERMSIG(status));
	return -1;
}

/* ---- every slot ---- */

struct slot {
	const char *name;
	unsigned offset, size;
	bool is_ours;
};

#define NEED(field)
#define OURS(client) + 1
#define ROW(name, needs) { #name, OFFSET_##name, PJRT_##name##_Args_SIZE, (0 needs) > 0 },
#define SLOT(name, needs) ROW(name, needs)
#define MUTE(name, needs) ROW(name, needs)
static const struct slot slots[] = {
#include "runtime/pjrt/slots.def"
};
#undef SLOT
#undef MUTE

static const struct { const char *owner, *name; size_t offset, size; } fields[] = {
#define FIELD(owner, name) { #owner, #name, offsetof(struct owner, name), \
			     sizeof(((struct owner *)0)->name) },
#include "tests/unit/pjrt/pjrt_fields.def"
#undef FIELD
};

static void set_pointer(char *args, size_t at, const char *slot, const char *field)
{
	static char bytes[4096];
	static const int64_t dims[] = { 16 };
	static struct PJRT_ShapeSpec spec = { .dims = dims, .num_dims = 1,
					      .element_type = PJRT_Buffer_Type_F32 };
	static struct PJRT_Buffer *in[2], *out[2], **ins = in, **outs = out;
	const struct { const char *field; const void *value; } values[] = {
		{ "client", have.client }, { "device", have.device },
		{ "dst_device", have.device }, { "device_description", have.description },
		{ "memory", have.memory }, { "dst_memory", have.memory },
		{ "topology", have.topology }, { "buffer", have.buffer },
		{ "src", have.buffer }, { "event", have.event },
		{ "transfer_manager", have.transfer }, { "context", have.context },
		{ "loaded_executable", have.loaded }, { "program", &have.program },
		{ "executable", strncmp(slot, "Loaded", 6) ? (void *)have.executable :
							     (void *)have.loaded },
		{ "fulfill_alias_buffer_cb", have.fulfill }, { "callback", ignore },
		{ "dims", dims }, { "shape_dims", dims }, { "shape_specs", &spec },
		{ "argument_lists", &ins }, { "output_lists", &outs },
		{ "data", bytes }, { "dst", bytes }, { "default_assignment", bytes },
		{ "device_buffer_ptr", bytes }, { "serialized_executable", bytes },
		{ "serialized_topology", bytes },
	};

	in[0] = in[1] = have.buffer;
	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++)
		if (!strcmp(values[i].field, field))
			memcpy(args + at, &values[i].value, sizeof(values[i].value));
}

static void set_number(char *args, size_t at, size_t size, const char *field)
{
	static const struct { const char *field; uint64_t value; } values[] = {
		{ "num_dims", 1 }, { "shape_num_dims", 1 }, { "num_shape_specs", 1 },
		{ "type", PJRT_Buffer_Type_F32 }, { "element_type", PJRT_Buffer_Type_F32 },
		{ "shape_element_type", PJRT_Buffer_Type_F32 }, { "dst_size", 64 },
		{ "transfer_size", 64 }, { "size", 64 }, { "num_devices", 1 },
		{ "num_args", 2 }, { "num_replicas", 1 }, { "num_partitions", 1 },
		{ "default_assignment_size", 1 }, { "error_code", 3 },
		{ "serialized_executable_size", 64 }, { "serialized_topology_size", 1 },
	};

	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++)
		if (!strcmp(values[i].field, field))
			memcpy(args + at, &values[i].value, size);
}

/* In the child: 0 if the slot answered as it should. */
static int call_slot(const void *arg)
{
	const struct slot *s = arg;
	char *args = calloc(1, 1024), owner[128];
	struct PJRT_Error *e;
	size_t size = s->size;
	int code;

	snprintf(owner, sizeof(owner), "PJRT_%s_Args", s->name);
	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		if (strcmp(fields[i].owner, owner))
			continue;
		if (fields[i].size == 8)
			set_pointer(args, fields[i].offset, s->name, fields[i].name);
		set_number(args, fields[i].offset, fields[i].size, fields[i].name);
	}
	memcpy(args, &size, sizeof(size));
	e = slot_at(s->offset)(args);
	code = error_code(e);
	if (s->is_ours && (code != PJRT_Error_Code_FAILED_PRECONDITION ||
			   !strstr(error_text(e), "forked")))
		return 2;
	drop_error(e);
	return 0;
}

static void every_slot_answers_in_a_child(void **state)
{
	unsigned n_ours = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(slots) / sizeof(*slots); i++) {
		int status = in_child(call_slot, &slots[i]);

		if (status)
			print_error("%s: %d\n", slots[i].name, status);
		assert_int_equal(status, 0);
		n_ours += slots[i].is_ours;
	}
	assert_true(n_ours > 25);
}

/* As an interpreter ends: everything is let go, in every order. */
static int let_all_go(const void *arg)
{
	bool client_first = *(const bool *)arg;

	if (client_first)
		drop_error(CALL(Client_Destroy, .client = have.client));
	drop_error(CALL(Event_Destroy, .event = have.event));
	drop_error(CALL(LoadedExecutable_Delete, .executable = have.loaded));
	drop_error(CALL(LoadedExecutable_Destroy, .executable = have.loaded));
	drop_error(CALL(Executable_Destroy, .executable = have.executable));
	drop_error(CALL(Buffer_Delete, .buffer = have.alias));
	drop_error(CALL(Buffer_Destroy, .buffer = have.alias));
	drop_error(CALL(Buffer_Delete, .buffer = have.buffer));
	if (!is_deleted(have.buffer))
		return 2;
	drop_error(CALL(Buffer_Destroy, .buffer = have.buffer));
	drop_error(CALL(AsyncHostToDeviceTransferManager_Destroy,
			.transfer_manager = have.transfer));
	if (!client_first)
		drop_error(CALL(Client_Destroy, .client = have.client));
	return 0;
}

static void a_child_may_let_everything_go(void **state)
{
	(void)state;
	for (int i = 0; i < 6; i++) {
		bool client_first = i % 2;

		assert_int_equal(in_child(let_all_go, &client_first), 0);
	}
}

/* Clients give up, as in JAX, if ReadyEvent itself fails: its event says what is wrong. */
static int look_at_events(const void *arg)
{
	struct PJRT_Event *e = GET(Buffer_ReadyEvent, event, .buffer = have.buffer);
	struct PJRT_Error *why = CALL(Event_Error, .event = e);

	(void)arg;
	if (!GET(Event_IsReady, is_ready, .event = e) ||
	    error_code(why) != PJRT_Error_Code_FAILED_PRECONDITION)
		return 2;
	drop_error(why);
	why = CALL(Event_Await, .event = have.event);
	if (error_code(why) != PJRT_Error_Code_FAILED_PRECONDITION)
		return 3;
	drop_error(why);
	drop_error(CALL(Event_Set, .event = have.event));
	return 0;
}

static void events_of_the_parent_do_not_hang_a_child(void **state)
{
	(void)state;
	assert_int_equal(in_child(look_at_events, NULL), 0);
}

static int compute(const void *arg)
{
	static const float data[16] = { 2 };
	struct PJRT_Client *c = new_client("hbm=64M,lanes=2");
	struct PJRT_LoadedExecutable *x = compile_on(c, "scale_add.mlirbc", 0);
	struct PJRT_Buffer *in[2], *out;
	float back[16] = { 0 };

	(void)arg;
	in[0] = in[1] = put_floats(c, data, 16);
	if (run_exe(x, in, 2, &out, NULL) || fetch(out, back, sizeof(back)) || back[0] != 6)
		return 2;
	drop_buffer(out);
	drop_buffer(in[0]);
	drop_exe(x);
	drop_client(c);
	return 0;
}

static void a_child_may_have_a_client_of_its_own(void **state)
{
	(void)state;
	assert_int_equal(in_child(compute, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_slot_answers_in_a_child),
		cmocka_unit_test(a_child_may_let_everything_go),
		cmocka_unit_test(events_of_the_parent_do_not_hang_a_child),
		cmocka_unit_test(a_child_may_have_a_client_of_its_own),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
