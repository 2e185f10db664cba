/* SPDX-License-Identifier: Apache-2.0 */
/* The table: layouts of every known version, slots, struct sizes, NULLs, errors,
 * events, extensions. */
#include <json-c/json.h>

#include "tests/unit/pjrt/pjrt_test.h"

/* ---- layouts ---- */

struct field {
	const char *owner, *name;
	size_t offset, size, owner_size;
};

static const struct field fields[] = {
#define FIELD(owner, name) { #owner, #name, offsetof(struct owner, name), \
			     sizeof(((struct owner *)0)->name), sizeof(struct owner) },
#include "tests/unit/pjrt/pjrt_fields.def"
#undef FIELD
};

enum { N_FIELDS = sizeof(fields) / sizeof(*fields) };

/* Structs that changed where they stand: 0.75 has no struct_size in ProcessInfo. */
static bool is_broken(const char *owner, int minor)
{
	return minor == 75 && (!strcmp(owner, "PJRT_ProcessInfo") ||
			       !strcmp(owner, "PJRT_FFI_UserData_Add_Args"));
}

static struct json_object *look_up(struct json_object *facts, const char *owner)
{
	struct json_object *in, *s;

	if (json_object_object_get_ex(facts, "structs", &in) &&
	    json_object_object_get_ex(in, owner, &s))
		return s;
	if (json_object_object_get_ex(facts, "extension_structs", &in) &&
	    json_object_object_get_ex(in, owner, &s))
		return s;
	return NULL;
}

static int at(struct json_object *list, int i)
{
	return json_object_get_int(json_object_array_get_idx(list, (size_t)i));
}

/* The row of a field: [name, offset, size]. */
static struct json_object *row_of(struct json_object *s, const char *name)
{
	struct json_object *list, *row;

	assert_true(json_object_object_get_ex(s, "fields", &list));
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		row = json_object_array_get_idx(list, i);
		if (!strcmp(json_object_get_string(json_object_array_get_idx(row, 0)), name))
			return row;
	}
	return NULL;
}

static void compare(const char *path, int minor, unsigned least)
{
	struct json_object *facts = json_object_from_file(path), *s, *row, *slots;
	unsigned compared = 0;

	assert_non_null(facts);
	for (unsigned i = 0; i < N_FIELDS; i++) {
		const struct field *f = &fields[i];

		s = look_up(facts, f->owner);
		row = s ? row_of(s, f->name) : NULL;
		if (!row || is_broken(f->owner, minor))
			continue;
		if ((size_t)at(row, 1) != f->offset || (size_t)at(row, 2) != f->size) {
			print_error("0.%d: %s.%s at %d of %d bytes, ours at %zu of %zu\n", minor,
				    f->owner, f->name, at(row, 1), at(row, 2), f->offset,
				    f->size);
			fail();
		}
		if (minor == 112) {
			json_object_object_get_ex(s, "size", &row);
			assert_int_equal(json_object_get_int(row), f->owner_size);
		}
		compared++;
	}
	assert_true(compared >= least);
	if (minor == 112)
		assert_int_equal(compared, N_FIELDS);
	/* Slots keep their places from version to version. */
	assert_true(json_object_object_get_ex(facts, "api", &slots));
	compared = 0;
#define SLOT(name, offset) { \
	row = json_object_array_get_idx(slots, compared); \
	if (row) { \
		assert_string_equal(json_object_get_string(json_object_array_get_idx(row, 0)), \
				    "PJRT_" #name); \
		assert_int_equal(at(row, 1), offset); \
		compared++; \
	} \
}
	PJRT_SLOTS(SLOT)
#undef SLOT
	assert_int_equal(compared, json_object_array_length(slots));
	json_object_put(facts);
}

static void layouts_agree_with_0_75(void **state)
{
	(void)state;
	compare("tests/data/pjrt_layout_75.json", 75, 500);
}

static void layouts_agree_with_0_112(void **state)
{
	(void)state;
	compare("tests/data/pjrt_layout.json", 112, 900);
}

static void layouts_agree_with_0_114(void **state)
{
	(void)state;
	compare("tests/data/pjrt_layout_114.json", 114, 900);
}

/* ---- slots ---- */

struct slot {
	const char *name;
	unsigned offset, oldest, size;
	bool is_mute;
	unsigned n_needs;
};

#define NEED(field) + 1
#define OURS(client)
#define ROW(name, needs, mute) { #name, OFFSET_##name, PJRT_##name##_Args_OLDEST, \
				 PJRT_##name##_Args_SIZE, mute, 0 needs },
#define SLOT(name, needs) ROW(name, needs, false)
#define MUTE(name, needs) ROW(name, needs, true)
static const struct slot slots[] = {
#include "runtime/pjrt/slots.def"
};
#undef SLOT
#undef MUTE

enum { N_SLOTS = sizeof(slots) / sizeof(*slots) };

/* The caller's struct on the heap, so that a sanitizer sees what lies past it. */
static struct PJRT_Error *call_with(const struct slot *s, size_t size, size_t room)
{
	char *args = calloc(1, room);
	struct PJRT_Error *e;

	assert_non_null(args);
	memcpy(args, &size, sizeof(size));
	e = slot_at(s->offset)(args);
	free(args);
	return e;
}

static void every_slot_is_there(void **state)
{
	size_t size;
	int minor;

	(void)state;
	memcpy(&size, api, sizeof(size));
	memcpy(&minor, api + 36, sizeof(minor));
	assert_int_equal(size, PJRT_API_SIZE);
	assert_int_equal(minor, PJRT_API_MINOR);
	assert_int_equal(N_SLOTS, 138);
	for (unsigned i = 0; i < N_SLOTS; i++) {
		assert_int_equal(slots[i].offset, 40 + 8 * i);
		assert_non_null(slot_at(slots[i].offset));
	}
	/* Clients look past the table's end for later slots. */
	for (size_t i = PJRT_API_SIZE; i < 4096; i += 8)
		assert_null(slot_at((unsigned)i));
}

static void short_structs_are_refused_by_name(void **state)
{
	(void)state;
	for (unsigned i = 0; i < N_SLOTS; i++) {
		const struct slot *s = &slots[i];
		size_t sizes[] = { 0, 1, 8, s->oldest - 1 };
		char want[128];

		snprintf(want, sizeof(want), "Unexpected PJRT_%s_Args size: expected %u", s->name,
			 s->oldest);
		for (unsigned k = 0; k < 4; k++) {
			/* As little memory as the caller claims, and the size itself. */
			size_t room = sizes[k] < 8 ? 8 : sizes[k];
			struct PJRT_Error *e = call_with(s, sizes[k], room);

			if (s->is_mute)
				assert_null(e);
			else
				assert_error(e, INVALID, want);
		}
	}
}

static void null_where_a_pointer_must_be_is_refused(void **state)
{
	(void)state;
	for (unsigned i = 0; i < N_SLOTS; i++) {
		const struct slot *s = &slots[i];
		char want[128];

		snprintf(want, sizeof(want), "PJRT_%s_Args", s->name);
		if (s->is_mute) {
			assert_null(slot_at(s->offset)(NULL));
			assert_null(call_with(s, s->oldest, s->oldest));
			continue;
		}
		assert_error(slot_at(s->offset)(NULL), INVALID, "`args` is NULL");
		if (!s->n_needs)
			continue;
		assert_error(call_with(s, s->oldest, s->oldest), INVALID, want);
		/* A younger caller's struct is longer. */
		assert_error(call_with(s, s->size + 64, s->size + 64), INVALID, want);
	}
}

static void destroying_null_is_fine(void **state)
{
	static const char *const names[] = {
		"Error_Destroy", "Event_Destroy", "Client_Destroy", "Executable_Destroy",
		"LoadedExecutable_Destroy", "Buffer_Destroy", "CopyToDeviceStream_Destroy",
		"TopologyDescription_Destroy", "ExecuteContext_Destroy",
		"AsyncHostToDeviceTransferManager_Destroy", "AsyncTrackingEvent_Destroy",
	};
	unsigned called = 0;

	(void)state;
	for (unsigned i = 0; i < N_SLOTS; i++)
		for (unsigned k = 0; k < sizeof(names) / sizeof(*names); k++)
			if (!strcmp(slots[i].name, names[k])) {
				assert_ok(call_with(&slots[i], slots[i].oldest, 64));
				called++;
			}
	assert_int_equal(called, sizeof(names) / sizeof(*names));
}

/* ---- errors and events ---- */

static void count_payload(const char *key, size_t n, const char *value, size_t m, void *arg)
{
	(void)key;
	(void)n;
	(void)value;
	(void)m;
	++*(int *)arg;
}

static void errors_can_be_read_and_destroyed(void **state)
{
	struct PJRT_Error *e = CALL(Client_PlatformName);
	int payloads = 0;
	struct {
		size_t struct_size, instance_size;
		void *extension_start;
		void (*destroy)(struct PJRT_Error *e);
		void (*message)(const struct PJRT_Error *e, const char **text, size_t *n);
		int (*code)(const struct PJRT_Error *e);
	} *const *table = (void *)e;
	const char *text;
	size_t n;

	(void)state;
	assert_int_equal(error_code(e), INVALID);
	assert_string_equal(error_text(e), "PJRT_Client_PlatformName_Args: `client` is NULL");
	assert_ok(CALL(Error_ForEachPayload, .error = e, .visitor = (void *)count_payload,
		       .user_arg = &payloads));
	assert_int_equal(payloads, 0);
	/* An error's first word is its own table. */
	assert_int_equal((*table)->struct_size, PJRT_Error_FunctionTable_SIZE);
	assert_int_equal((*table)->code(e), INVALID);
	(*table)->message(e, &text, &n);
	assert_int_equal(n, strlen("PJRT_Client_PlatformName_Args: `client` is NULL"));
	(*table)->destroy(e);
}

struct heard { int calls, code; char text[64]; };

static void hear(struct PJRT_Error *e, void *arg)
{
	struct heard *h = arg;

	h->calls++;
	h->code = error_code(e);
	if (e)
		memcpy(h->text, error_text(e), sizeof(h->text) - 1);
	drop_error(e);
}

static void events_call_back_once_with_their_own_error(void **state)
{
	struct PJRT_Event *e = GET(Event_Create, event);
	struct heard before = { 0 }, after = { 0 };
	/* Not terminated, and longer than an error's text can be. */
	const size_t n = 70000;
	char *text = malloc(n);

	(void)state;
	assert_non_null(text);
	memset(text, 'x', n);
	assert_false(GET(Event_IsReady, is_ready, .event = e));
	assert_null(CALL(Event_Error, .event = e));
	assert_ok(CALL(Event_OnReady, .event = e, .callback = (void *)hear,
		       .user_arg = &before));
	assert_int_equal(before.calls, 0);
	assert_ok(CALL(Event_Set, .event = e, .error_code = PJRT_Error_Code_DATA_LOSS,
		       .error_message = text, .error_message_size = n));
	assert_int_equal(before.calls, 1);
	assert_int_equal(before.code, PJRT_Error_Code_DATA_LOSS);
	assert_memory_equal(before.text, "xxxx", 4);
	/* Setting it again changes nothing. */
	assert_ok(CALL(Event_Set, .event = e));
	assert_ok(CALL(Event_OnReady, .event = e, .callback = (void *)hear,
		       .user_arg = &after));
	assert_int_equal(after.calls, 1);
	assert_int_equal(after.code, PJRT_Error_Code_DATA_LOSS);
	assert_int_equal(before.calls, 1);
	assert_true(GET(Event_IsReady, is_ready, .event = e));
	assert_error(CALL(Event_Error, .event = e), PJRT_Error_Code_DATA_LOSS, "xxx");
	assert_error(CALL(Event_Await, .event = e), PJRT_Error_Code_DATA_LOSS, "xxx");
	drop_event(e);
	free(text);
}

static void drop_it(struct PJRT_Error *e, void *arg)
{
	drop_error(e);
	drop_event(*(struct PJRT_Event **)arg);
}

static void a_callback_may_destroy_its_event(void **state)
{
	struct PJRT_Event *ready = GET(Event_Create, event), *later = GET(Event_Create, event);

	(void)state;
	assert_ok(CALL(Event_Set, .event = ready));
	assert_ok(CALL(Event_OnReady, .event = ready, .callback = (void *)drop_it,
		       .user_arg = &ready));
	assert_ok(CALL(Event_OnReady, .event = later, .callback = (void *)drop_it,
		       .user_arg = &later));
	assert_ok(CALL(Event_Set, .event = later));
}

static void an_event_that_nobody_sets_is_cancelled(void **state)
{
	struct PJRT_Event *e = GET(Event_Create, event);
	struct heard h = { 0 };

	(void)state;
	assert_ok(CALL(Event_OnReady, .event = e, .callback = (void *)hear, .user_arg = &h));
	assert_int_equal(h.calls, 0);
	drop_event(e);
	assert_int_equal(h.calls, 1);
	assert_int_equal(h.code, PJRT_Error_Code_CANCELLED);
}

/* ---- plugin, client, devices ---- */

static void the_plugin_names_its_attributes(void **state)
{
	struct PJRT_Plugin_Attributes_Args a;
	unsigned found = 0;

	(void)state;
	assert_ok(CALL(Plugin_Initialize));
	assert_ok(CALL_AS(&a, Plugin_Attributes));
	for (size_t i = 0; i < a.num_attributes; i++) {
		static const char *const names[] = { "xla_version", "stablehlo_current_version",
						     "stablehlo_minimum_version" };

		for (unsigned k = 0; k < 3; k++)
			if (a.attributes[i].name_size == strlen(names[k]) &&
			    !memcmp(a.attributes[i].name, names[k], strlen(names[k])))
				found |= 1u << k;
	}
	assert_int_equal(found, 7);
	assert_int_equal(a.num_attributes, 3);
}

static void wrong_client_options_are_refused(void **state)
{
	struct PJRT_NamedValue v = { .struct_size = PJRT_NamedValue_SIZE, .name = "devices",
				     .name_size = 7, .type = PJRT_NamedValue_kString,
				     .string_value = "sim:nonsense=1", .value_size = 14 };

	(void)state;
	assert_error(CALL(Client_Create, .num_options = 3), INVALID, "NULL");
	assert_error(CALL(Client_Create, .create_options = &v, .num_options = 1), INVALID,
		     "nonsense");
	v.value_size = SIZE_MAX;
	assert_error(CALL(Client_Create, .create_options = &v, .num_options = 1),
		     PJRT_Error_Code_RESOURCE_EXHAUSTED, "memory");
	v.string_value = NULL;
	assert_error(CALL(Client_Create, .create_options = &v, .num_options = 1), INVALID,
		     "has no value");
}

static void several_processes_need_a_store(void **state)
{
	struct PJRT_NamedValue v[] = {
		{ .struct_size = PJRT_NamedValue_SIZE, .name = "node_id", .name_size = 7,
		  .type = PJRT_NamedValue_kInt64, .int64_value = 0, .value_size = 1 },
		{ .struct_size = PJRT_NamedValue_SIZE, .name = "num_nodes", .name_size = 9,
		  .type = PJRT_NamedValue_kInt64, .int64_value = 2, .value_size = 1 },
		{ .struct_size = PJRT_NamedValue_SIZE, .name = "devices", .name_size = 7,
		  .type = PJRT_NamedValue_kString, .string_value = "sim:hbm=64M,lanes=1",
		  .value_size = 19 },
	};

	(void)state;
	assert_error(CALL(Client_Create, .create_options = v, .num_options = 3),
		     INVALID, "kv_get_callback");
	v[1].int64_value = 1;
	drop_client(GET(Client_Create, client, .create_options = v, .num_options = 3));
}

static void platform_is(struct PJRT_Client *c, const char *name)
{
	struct PJRT_Client_PlatformName_Args a;
	struct PJRT_TopologyDescription_PlatformName_Args t;
	struct PJRT_TopologyDescription *own = GET(Client_TopologyDescription, topology,
						   .client = c);

	assert_ok(CALL_AS(&a, Client_PlatformName, .client = c));
	assert_int_equal(a.platform_name_size, strlen(name));
	assert_memory_equal(a.platform_name, name, strlen(name));
	assert_ok(CALL_AS(&t, TopologyDescription_PlatformName, .topology = own));
	assert_int_equal(t.platform_name_size, strlen(name));
	assert_memory_equal(t.platform_name, name, strlen(name));
}

static void the_platform_may_be_called_tpu(void **state)
{
	struct PJRT_Client *plain = new_client("hbm=64M,lanes=1"), *tpu;

	(void)state;
	setenv("TESSERA_PLATFORM_NAME", "tpu", 1);
	tpu = new_client("hbm=64M,lanes=1");
	setenv("TESSERA_PLATFORM_NAME", "gpu", 1);
	assert_error(CALL(Client_Create), INVALID, "TESSERA_PLATFORM_NAME=\"gpu\": say tpu");
	assert_error(CALL(TopologyDescription_Create), INVALID, "say tpu");
	unsetenv("TESSERA_PLATFORM_NAME");
	platform_is(tpu, "tpu");
	platform_is(plain, "tessera");
	drop_client(tpu);
	drop_client(plain);
}

/* slice_index is not among them: HybridMesh of torch_xla refuses one slice that has it. */
static void attributes_are_of_one_slice(struct PJRT_DeviceDescription *t, int id)
{
	static const char *const names[] = { "coords", "core_on_chip", "num_cores" };
	struct PJRT_DeviceDescription_Attributes_Args a;

	assert_ok(CALL_AS(&a, DeviceDescription_Attributes, .device_description = t));
	assert_int_equal(a.num_attributes, 3);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(a.attributes[i].name_size, strlen(names[i]));
		assert_memory_equal(a.attributes[i].name, names[i], strlen(names[i]));
	}
	assert_int_equal(a.attributes[0].value_size, 3);
	assert_int_equal(a.attributes[0].int64_array_value[0], id);
}

/* Of eight that are linked: 4 x 2. */
static void coords_are_places_in_the_torus(void **state)
{
	struct PJRT_Client *c = new_client("devices=8,hbm=64M,lanes=1");

	(void)state;
	for (int i = 0; i < 8; i++) {
		struct PJRT_Device *d = device_of(c, i);
		struct PJRT_DeviceDescription *t = GET(Device_GetDescription, device_description,
						       .device = d);
		struct PJRT_DeviceDescription_Attributes_Args a;
		const int64_t *at;

		assert_ok(CALL_AS(&a, DeviceDescription_Attributes, .device_description = t));
		at = a.attributes[0].int64_array_value;
		assert_int_equal(at[0], i % 4);
		assert_int_equal(at[1], i / 4);
		assert_int_equal(at[2], 0);
	}
	drop_client(c);
}

static void devices_are_described(void **state)
{
	struct PJRT_Client *c = new_client("devices=2,hbm=64M,lanes=1");
	struct PJRT_Client_Devices_Args all;
	struct PJRT_Device_MemoryStats_Args stats;
	struct { struct PJRT_Device_MemoryStats_Args a; char more[32]; } younger;

	(void)state;
	assert_ok(CALL_AS(&all, Client_Devices, .client = c));
	assert_int_equal(all.num_devices, 2);
	for (int i = 0; i < 2; i++) {
		struct PJRT_Device *d = all.devices[i];
		struct PJRT_DeviceDescription *t = GET(Device_GetDescription,
						       device_description, .device = d);

		assert_int_equal(GET(DeviceDescription_Id, id, .device_description = t), i);
		assert_true(GET(Device_IsAddressable, is_addressable, .device = d));
		assert_int_equal(GET(Device_LocalHardwareId, local_hardware_id, .device = d), i);
		assert_ptr_equal(device_of(c, i), d);
		assert_int_equal(GET(Device_AddressableMemories, num_memories, .device = d), 3);
		for (int k = 0; k < 3; k++)
			assert_true(GET(Memory_Kind_Id, kind_id, .memory = memory_of(d, k)) > 0);
		assert_non_null(GET(Device_GetAttributes, attributes, .device = d));
		attributes_are_of_one_slice(t, i);
	}
	assert_error(CALL(Client_LookupDevice, .client = c, .id = 2), INVALID,
		     "No matching device found for device_id 2");
	assert_error(CALL(Client_LookupDevice, .client = c, .id = -1), INVALID, "-1");
	assert_ok(CALL_AS(&stats, Device_MemoryStats, .device = all.devices[0]));
	assert_int_equal(stats.bytes_limit, 64 << 20);
	assert_true(stats.bytes_limit_is_set && stats.peak_pool_bytes_is_set);
	/* 0.113 has one value more, and must find its flag written. */
	memset(&younger, 0xa5, sizeof(younger));
	younger.a = (struct PJRT_Device_MemoryStats_Args){ .struct_size = 201,
							   .device = all.devices[0] };
	((char *)&younger)[200] = 7;
	assert_ok(slot_at(OFFSET_Device_MemoryStats)(&younger));
	assert_int_equal(((char *)&younger)[200], 1);
	assert_ok(CALL(Device_ClearMemoryStats, .device = all.devices[1]));
	drop_client(c);
}

static void default_assignments_are_checked(void **state)
{
	struct PJRT_Client *c = new_client("devices=2,hbm=64M,lanes=1");
	int ids[8] = { -1, -1 };

	(void)state;
	assert_ok(CALL(Client_DefaultDeviceAssignment, .client = c, .num_replicas = 2,
		       .num_partitions = 1, .default_assignment_size = 8,
		       .default_assignment = ids));
	assert_int_equal(ids[0], 0);
	assert_int_equal(ids[1], 1);
	assert_error(CALL(Client_DefaultDeviceAssignment, .client = c, .num_replicas = 4,
			  .num_partitions = 2, .default_assignment_size = 7,
			  .default_assignment = ids),
		     PJRT_Error_Code_FAILED_PRECONDITION,
		     "PJRT_Client_DefaultDeviceAssignment: `default_assignment_size` 7 < "
		     "`num_replicas * num_partitions`, 4 * 2 = 8");
	assert_error(CALL(Client_DefaultDeviceAssignment, .client = c, .num_replicas = 65536,
			  .num_partitions = 65537, .default_assignment_size = 8,
			  .default_assignment = ids),
		     PJRT_Error_Code_FAILED_PRECONDITION, "65536");
	assert_error(CALL(Client_DefaultDeviceAssignment, .client = c, .num_replicas = -1,
			  .num_partitions = 2, .default_assignment_size = 8,
			  .default_assignment = ids),
		     INVALID, "must be positive, got -1 and 2");
	drop_client(c);
}

static void small_objects_come_and_go(void **state)
{
	struct PJRT_Client *c = new_client("hbm=64M,lanes=1");
	struct PJRT_AsyncTrackingEvent *t;
	struct PJRT_ExecuteContext *x = GET(ExecuteContext_Create, context);

	(void)state;
	assert_non_null(x);
	assert_ok(CALL(ExecuteContext_Destroy, .context = x));
	t = GET(Device_CreateAsyncTrackingEvent, event, .device = device_of(c, 0),
		.description = "copy of weights", .description_size = 15);
	assert_non_null(t);
	assert_ok(CALL(AsyncTrackingEvent_Destroy, .event = t));
	assert_ok(CALL(Client_UpdateGlobalProcessInfo, .client = c));
	assert_int_equal(GET(Client_ProcessIndex, process_index, .client = c), 0);
	drop_client(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(layouts_agree_with_0_75),
		cmocka_unit_test(layouts_agree_with_0_112),
		cmocka_unit_test(layouts_agree_with_0_114),
		cmocka_unit_test(every_slot_is_there),
		cmocka_unit_test(short_structs_are_refused_by_name),
		cmocka_unit_test(null_where_a_pointer_must_be_is_refused),
		cmocka_unit_test(destroying_null_is_fine),
		cmocka_unit_test(errors_can_be_read_and_destroyed),
		cmocka_unit_test(events_call_back_once_with_their_own_error),
		cmocka_unit_test(a_callback_may_destroy_its_event),
		cmocka_unit_test(an_event_that_nobody_sets_is_cancelled),
		cmocka_unit_test(the_plugin_names_its_attributes),
		cmocka_unit_test(wrong_client_options_are_refused),
		cmocka_unit_test(several_processes_need_a_store),
		cmocka_unit_test(the_platform_may_be_called_tpu),
		cmocka_unit_test(coords_are_places_in_the_torus),
		cmocka_unit_test(devices_are_described),
		cmocka_unit_test(default_assignments_are_checked),
		cmocka_unit_test(small_objects_come_and_go),
	};

	return cmocka_run_group_tests(tests, load_plugin, NULL);
}
