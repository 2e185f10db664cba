/* SPDX-License-Identifier: Apache-2.0 */
/* Clients of a job of several processes: devices of all of them, which are whose, and jobs that
 * can't be. */
#include "tests/unit/pjrt/pjrt_store.h"

static struct vfio_server server;

/* Two processes with a chip of the server each. */
static void start_pair(struct process p[2])
{
	store_clear();
	for (int i = 0; i < 2; i++)
		p[i] = (struct process){ .number = i, .n = 2, .devices = server.device[i] };
	create_all(p, 2);
	for (int i = 0; i < 2; i++)
		expect_ok(p[i].error, "a process of two");
}

static void stop_pair(struct process p[2])
{
	for (int i = 0; i < 2; i++)
		drop_client(p[i].client);
	store_clear();
}

static void devices_of_all_processes_are_listed(void **state)
{
	struct process p[2];

	(void)state;
	start_pair(p);
	for (int me = 0; me < 2; me++) {
		struct PJRT_Client *c = p[me].client;
		struct PJRT_Client_Devices_Args all;
		struct PJRT_Client_AddressableDevices_Args own;
		struct PJRT_TopologyDescription *t = GET(Client_TopologyDescription, topology,
							 .client = c);

		assert_int_equal(GET(Client_ProcessIndex, process_index, .client = c), me);
		assert_ok(CALL_AS(&all, Client_Devices, .client = c));
		assert_int_equal(all.num_devices, 2);
		assert_ok(CALL_AS(&own, Client_AddressableDevices, .client = c));
		assert_int_equal(own.num_addressable_devices, 1);
		assert_ptr_equal(own.addressable_devices[0], all.devices[me]);
		assert_int_equal(GET(TopologyDescription_GetDeviceDescriptions, num_descriptions,
				     .topology = t), 2);
		for (int id = 0; id < 2; id++) {
			struct PJRT_Device *d = all.devices[id];
			struct PJRT_DeviceDescription *about = GET(Device_GetDescription,
								   device_description, .device = d);

			assert_ptr_equal(device_of(c, id), d);
			assert_int_equal(GET(DeviceDescription_Id, id,
					     .device_description = about), id);
			assert_int_equal(GET(DeviceDescription_ProcessIndex, process_index,
					     .device_description = about), id);
			assert_int_equal(GET(Device_IsAddressable, is_addressable, .device = d),
					 id == me);
			assert_int_equal(GET(Device_LocalHardwareId, local_hardware_id,
					     .device = d), id == me ? 0 : -1);
			assert_int_equal(GET(Device_AddressableMemories, num_memories,
					     .device = d), id == me ? 3 : 0);
		}
		assert_ptr_equal(GET(Client_LookupAddressableDevice, addressable_device,
				     .client = c, .local_hardware_id = 0), all.devices[me]);
		assert_error(CALL(Client_LookupAddressableDevice, .client = c,
				  .local_hardware_id = 1), INVALID, "No matching device");
		assert_error(CALL(Client_LookupDevice, .client = c, .id = 2), INVALID,
			     "No matching device");
		assert_int_equal(GET(Client_AddressableMemories, num_addressable_memories,
				     .client = c), 3);
		assert_int_equal(GET(Memory_Id, id, .memory = memory_of(all.devices[me], 1)),
				 3 * me + 1);
	}
	stop_pair(p);
}

/* A program for one device, on the device of this id. */
static struct PJRT_Error *try_compile(struct PJRT_Client *c, unsigned id)
{
	struct bytes b = read_bytes("jax_gelu.mlirbc");
	struct PJRT_Program program = program_of(b);
	char options[32];
	size_t n = options_for(id, options);
	struct PJRT_Client_Compile_Args a;
	struct PJRT_Error *e = CALL_AS(&a, Client_Compile, .client = c, .program = &program,
				       .compile_options = options, .compile_options_size = n);

	if (!e)
		drop_exe(a.executable);
	free(b.p);
	return e;
}

static void a_process_works_on_its_own_devices_alone(void **state)
{
	static const float data[4] = { 1, 2, 3, 4 };
	static const int64_t dims[1] = { 4 };
	struct process p[2];

	(void)state;
	start_pair(p);
	for (int me = 0; me < 2; me++) {
		struct PJRT_Client *c = p[me].client;
		struct PJRT_Device *own = device_of(c, me), *other = device_of(c, 1 - me);
		struct PJRT_Buffer *b = put_floats(c, data, 4);
		struct PJRT_LoadedExecutable *x;
		int both[2] = { -1, -1 };
		float back[4];
		char name[40];

		snprintf(name, sizeof(name), "device of process %d", 1 - me);
		assert_ptr_equal(GET(Buffer_Device, device, .buffer = b), own);
		assert_ptr_equal(GET(Buffer_Memory, memory, .buffer = b), memory_of(own, 0));
		assert_ok(fetch(b, back, sizeof(back)));
		assert_memory_equal(back, data, sizeof(data));
		assert_error(CALL(Client_BufferFromHostBuffer, .client = c, .data = data,
				  .type = PJRT_Buffer_Type_F32, .dims = dims, .num_dims = 1,
				  .device = other), INVALID, name);
		assert_error(CALL(Buffer_CopyToDevice, .buffer = b, .dst_device = other), INVALID,
			     name);
		assert_error(CALL(Device_DefaultMemory, .device = other), INVALID, name);
		assert_error(CALL(Device_MemoryStats, .device = other), INVALID, name);
		assert_error(CALL(Device_ClearMemoryStats, .device = other), INVALID, name);
		assert_error(CALL(Device_PoisonExecution, .device = other, .error_code = 2),
			     INVALID, name);
		assert_int_equal(GET(Device_MemoryStats, bytes_limit, .device = own) > 0, 1);
		assert_error(try_compile(c, (unsigned)(1 - me)), INVALID, "none of the devices");
		x = compile_on(c, "jax_gelu.mlirbc", (unsigned)me);
		assert_ptr_equal(((void *const *)GET(LoadedExecutable_AddressableDevices,
						     addressable_devices, .executable = x))[0],
				 own);
		assert_ok(CALL(Client_DefaultDeviceAssignment, .client = c, .num_replicas = 1,
			       .num_partitions = 1, .default_assignment = both,
			       .default_assignment_size = 2));
		assert_int_equal(both[0], me);
		assert_ok(CALL(Client_DefaultDeviceAssignment, .client = c, .num_replicas = 1,
			       .num_partitions = 2, .default_assignment = both,
			       .default_assignment_size = 2));
		assert_true(both[0] == 0 && both[1] == 1);
		drop_exe(x);
		drop_buffer(b);
	}
	stop_pair(p);
}

/* ---- what can't be ---- */

static void expect_refused(int number, int n, const char *devices, int code, const char *part)
{
	struct process p = { .number = number, .n = n, .devices = devices };

	create_process(&p);
	expect_error(p.error, code, part, devices);
	store_clear();
}

static void jobs_that_cant_be_are_refused_by_name(void **state)
{
	const int unimplemented = PJRT_Error_Code_UNIMPLEMENTED;
	char both[240];

	(void)state;
	expect_refused(0, 2, "sim:hbm=64M,lanes=1", unimplemented,
		       "tessera-sim --devices 8 --socket-dir DIR");
	expect_refused(0, 2, "sim:devices=2,hbm=64M,lanes=1", unimplemented, "sim:0 is a model in");
	expect_refused(2, 2, server.device[0], INVALID, "node_id is 2, num_nodes 2");
	expect_refused(-1, 2, server.device[0], INVALID, "node_id is -1");
	expect_refused(0, 65, server.device[0], INVALID, "up to 64");
	expect_refused(0, INT32_MAX, server.device[0], INVALID, "up to 64");
	/* One of one is alone. */
	snprintf(both, sizeof(both), "%s", server.device[0]);
	struct process p = { .number = 0, .n = 1, .devices = both };

	create_process(&p);
	expect_ok(p.error, "a process of one");
	assert_int_equal(store.n, 0);
	drop_client(p.client);
}

static void a_process_that_does_not_come_is_named(void **state)
{
	(void)state;
	setenv("TESSERA_PEER_LIMIT_MS", "300", 1);
	expect_refused(0, 2, server.device[0], PJRT_Error_Code_DEADLINE_EXCEEDED,
		       "process 1 of 2 has not told tessera/process/1 for 300 ms");
	unsetenv("TESSERA_PEER_LIMIT_MS");
}

static void a_limit_that_is_no_number_is_refused(void **state)
{
	static const char *const bad[] = { "0", "10s", "-1", "1.5", "abc", "9223372036855" };

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct process p = { .number = 0, .n = 2, .devices = server.device[0] };

		setenv("TESSERA_PEER_LIMIT_MS", bad[i], 1);
		create_process(&p);
		expect_error(p.error, INVALID, "TESSERA_PEER_LIMIT_MS", bad[i]);
		/* Nobody waits for a process that was told of and is none. */
		assert_int_equal(store.n, 0);
	}
	unsetenv("TESSERA_PEER_LIMIT_MS");
}

static void processes_of_two_servers_are_refused(void **state)
{
	struct vfio_server second;
	struct process p[2] = {
		{ .number = 0, .n = 2, .devices = server.device[0] },
		{ .number = 1, .n = 2, .devices = second.device[0] },
	};

	(void)state;
	assert_int_equal(server_start(&second), 0);
	create_all(p, 2);
	for (int i = 0; i < 2; i++)
		expect_error(p[i].error, PJRT_Error_Code_UNIMPLEMENTED, "are not linked: give all",
			     "two servers");
	server_stop(&second, SIGTERM);
	store_clear();
}

static void two_with_one_number_are_refused(void **state)
{
	struct process p[2] = {
		{ .number = 0, .n = 2, .devices = server.device[0] },
		{ .number = 0, .n = 2, .devices = server.device[1] },
	};

	(void)state;
	setenv("TESSERA_PEER_LIMIT_MS", "300", 1);
	create_all(p, 2);
	unsetenv("TESSERA_PEER_LIMIT_MS");
	assert_true(p[0].error && p[1].error);
	if (error_code(p[0].error) == PJRT_Error_Code_ALREADY_EXISTS) {
		drop_error(p[0].error);
		drop_error(p[1].error);
	} else {
		drop_error(p[0].error);
		expect_error(p[1].error, PJRT_Error_Code_ALREADY_EXISTS, "it is there", "second");
	}
	store_clear();
}

/* ---- cards that lie ---- */

static size_t at, cut;

static void flip(const char *key, char *value, size_t *bytes)
{
	if (strcmp(key, "tessera/process/1"))
		return;
	if (cut)
		*bytes = cut == SIZE_MAX ? *bytes + 1000 : cut - 1;
	else if (at < *bytes)
		value[at] ^= 0x55;
}

/* Whatever is heard of another process, the client is made or refused, and nothing breaks. */
static void cards_that_lie_do_no_harm(void **state)
{
	static const size_t cuts[] = { 1, 2, 17, 100, 161, 162, 300, SIZE_MAX };
	struct process p[2];
	unsigned n_refused = 0;

	(void)state;
	start_pair(p);
	drop_client(p[0].client);
	/* Its card stays; process 0 begins again. */
	for (unsigned i = 0; i < 60 + sizeof(cuts) / sizeof(*cuts); i++) {
		cut = i < 60 ? 0 : cuts[i - 60];
		at = i * 7;
		for (unsigned k = 0; k < store.n; k++)
			if (!strcmp(store.list[k].key, "tessera/process/0"))
				snprintf(store.list[k].key, 40, "gone/%u", i);
		store.spoil = flip;
		create_process(&p[0]);
		n_refused += p[0].error != NULL;
		if (p[0].error && cut)
			expect_error(p[0].error, INVALID, "is no card", "a card that was cut");
		else if (p[0].error)
			drop_error(p[0].error);
		else
			drop_client(p[0].client);
	}
	assert_true(n_refused >= 20);
	drop_client(p[1].client);
	store_clear();
}

static int start(void **state)
{
	return load_plugin(state) || server_start(&server);
}

static int stop(void **state)
{
	(void)state;
	return server_stop(&server, SIGTERM) ? -1 : 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(devices_of_all_processes_are_listed),
		cmocka_unit_test(a_process_works_on_its_own_devices_alone),
		cmocka_unit_test(jobs_that_cant_be_are_refused_by_name),
		cmocka_unit_test(a_process_that_does_not_come_is_named),
		cmocka_unit_test(a_limit_that_is_no_number_is_refused),
		cmocka_unit_test(processes_of_two_servers_are_refused),
		cmocka_unit_test(two_with_one_number_are_refused),
		cmocka_unit_test(cards_that_lie_do_no_harm),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
