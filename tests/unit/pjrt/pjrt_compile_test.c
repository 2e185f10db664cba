/* SPDX-License-Identifier: Apache-2.0 */
/* Compiling through the table: hostile options and programs, assignments, executables'
 * facts, serialization, topologies, the layouts extension. */
#include "tests/unit/pjrt/pjrt_test.h"

static struct PJRT_Client *client;

static int open_client(void **state)
{
	if (load_plugin(state))
		return -1;
	client = new_client("devices=2,hbm=64M,lanes=2");
	return 0;
}

static int close_client(void **state)
{
	(void)state;
	drop_client(client);
	return 0;
}

/* The same bytes in every run. */
static uint32_t next(uint32_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 17;
	*seed ^= *seed << 5;
	return *seed;
}

/* Compiles, and gives back whether it went well; an error must be readable. */
static bool try_compile(const struct PJRT_Program *p, const void *options, size_t n)
{
	struct PJRT_Client_Compile_Args a;
	struct PJRT_Error *e = CALL_AS(&a, Client_Compile, .client = client, .program = p,
				       .compile_options = options, .compile_options_size = n);

	if (!e) {
		drop_exe(a.executable);
		return true;
	}
	assert_true(error_code(e) > 0 && error_code(e) <= 16);
	assert_true(strlen(error_text(e)) > 4);
	drop_error(e);
	return false;
}

/* ---- options ---- */

static void random_options_never_crash(void **state)
{
	struct bytes b = read_bytes("scale_add.mlirbc");
	struct PJRT_Program p = program_of(b);
	uint32_t seed = 1;
	unsigned fine = 0;

	(void)state;
	assert_true(try_compile(&p, NULL, 0));
	for (unsigned i = 0; i < 3000; i++) {
		size_t n = next(&seed) % 64;
		unsigned char *options = malloc(n + 1);

		assert_non_null(options);
		for (size_t k = 0; k < n; k++)
			options[k] = (unsigned char)next(&seed);
		/* Half of them start like real ones. */
		if (i % 2 && n > 8)
			memcpy(options, "\x1a\x06\x20", 3);
		/* Options are read first: a program that is none saves time. */
		p.code_size = i % 50 ? 5 : b.n;
		fine += try_compile(&p, options, n);
		free(options);
	}
	assert_true(fine < 60);
	free(b.p);
}

static void malformed_options_are_named(void **state)
{
	struct bytes b = read_bytes("scale_add.mlirbc");
	struct PJRT_Program p = program_of(b);

	(void)state;
	assert_error(CALL(Client_Compile, .client = client, .program = &p,
			  .compile_options = "invalid options", .compile_options_size = 15),
		     INVALID, "PJRT_Client_Compile: failed to deserialize CompileOptionsProto");
	assert_error(CALL(Client_Compile, .client = client, .program = &p,
			  .compile_options_size = 15), INVALID, "NULL");
	free(b.p);
}

static void assignments_choose_the_device(void **state)
{
	struct bytes b = read_bytes("scale_add.mlirbc");
	struct PJRT_Program p = program_of(b);
	char options[32];
	size_t n;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct PJRT_LoadedExecutable *x = compile_on(client, "scale_add.mlirbc", i);
		struct PJRT_LoadedExecutable_AddressableDevices_Args d;
		struct PJRT_LoadedExecutable_GetDeviceAssignment_Args a;

		assert_ok(CALL_AS(&d, LoadedExecutable_AddressableDevices, .executable = x));
		assert_int_equal(d.num_addressable_devices, 1);
		assert_ptr_equal(d.addressable_devices[0], device_of(client, (int)i));
		assert_int_equal(GET(LoadedExecutable_AddressableDeviceLogicalIds,
				     num_addressable_device_logical_ids, .executable = x), 1);
		assert_ok(CALL_AS(&a, LoadedExecutable_GetDeviceAssignment, .executable = x));
		assert_int_equal(a.serialized_bytes_size, 9);
		assert_int_equal(a.serialized_bytes[8], i);
		((void (*)(void *))a.serialized_device_assignment_deleter)(
			a.serialized_device_assignment);
		drop_exe(x);
	}
	n = options_for(7, options);
	assert_error(CALL(Client_Compile, .client = client, .program = &p,
			  .compile_options = options, .compile_options_size = n),
		     INVALID, "the options name device 7; there are 2");
	n = options_for(0, options);
	options[5] = 2;		/* num_partitions */
	assert_error(CALL(Client_Compile, .client = client, .program = &p,
			  .compile_options = options, .compile_options_size = n),
		     INVALID, "assignment of 1 partitions for a program of 2");
	/* A device ordinal that only fits 64 bits is not device 0. */
	assert_error(CALL(Client_Compile, .client = client, .program = &p, .compile_options =
			  "\x1a\x06\x08\x80\x80\x80\x80\x10", .compile_options_size = 8),
		     INVALID, "device 4294967296");
	free(b.p);
}

/* ---- programs ---- */

static void unknown_formats_are_refused(void **state)
{
	struct bytes b = read_bytes("scale_add.mlirbc");
	struct PJRT_Program p = program_of(b);

	(void)state;
	p.format = "invalid";
	p.format_size = 7;
	assert_error(CALL(Client_Compile, .client = client, .program = &p), INVALID,
		     "Unknown program format 'invalid'.");
	p.format = "a format with a name that is longer than any";
	p.format_size = strlen(p.format);
	assert_error(CALL(Client_Compile, .client = client, .program = &p), INVALID,
		     "Unknown program format");
	p.format = NULL;
	assert_error(CALL(Client_Compile, .client = client, .program = &p), INVALID, "format");
	p = program_of(b);
	p.code = NULL;
	assert_error(CALL(Client_Compile, .client = client, .program = &p), INVALID, "program");
	p = program_of(b);
	p.struct_size = 8;
	assert_error(CALL(Client_Compile, .client = client, .program = &p), INVALID,
		     "Unexpected PJRT_Program size");
	free(b.p);
}

static void cut_programs_are_refused(void **state)
{
	struct bytes b = read_bytes("two_results.mlirbc");

	(void)state;
	for (size_t n = 1; n < b.n; n += 1 + n / 64) {
		/* Memory of just that size, so that a sanitizer sees a byte too many. */
		struct bytes cut = { malloc(n), n };
		struct PJRT_Program p = program_of(cut);

		assert_non_null(cut.p);
		memcpy(cut.p, b.p, n);
		assert_false(try_compile(&p, NULL, 0));
		free(cut.p);
	}
	free(b.p);
}

static void changed_programs_never_crash(void **state)
{
	struct bytes b = read_bytes("loop.mlirbc"), copy = { malloc(b.n), b.n };
	struct PJRT_Program p = program_of(copy);
	uint32_t seed = 77;
	unsigned fine = 0;

	(void)state;
	for (unsigned i = 0; i < 1500; i++) {
		memcpy(copy.p, b.p, b.n);
		for (unsigned k = 0; k <= next(&seed) % 3; k++)
			copy.p[next(&seed) % b.n] = (char)next(&seed);
		fine += try_compile(&p, NULL, 0);
	}
	/* Names and the like may change; most of the bytes may not. */
	assert_true(fine > 10 && fine < 1000);
	print_message("%u of 1500 still compile\n", fine);
	free(copy.p);
	free(b.p);
}

static void random_programs_never_crash(void **state)
{
	static char text[] = "module @x { func.func @main() { return } }";
	struct PJRT_Program p = program_of((struct bytes){ text, sizeof(text) - 1 });
	uint32_t seed = 5;

	(void)state;
	try_compile(&p, NULL, 0);
	for (unsigned i = 0; i < 500; i++) {
		struct bytes b = { malloc(256), 1 + next(&seed) % 256 };

		assert_non_null(b.p);
		for (size_t k = 0; k < b.n; k++)
			b.p[k] = (char)next(&seed);
		if (i % 2 && b.n > 4)
			memcpy(b.p, "ML\xef\x52", 4);
		p = program_of(b);
		assert_false(try_compile(&p, NULL, 0));
		free(b.p);
	}
}

/* ---- what an executable says of itself ---- */

static void executables_know_their_results(void **state)
{
	struct PJRT_LoadedExecutable *l = compile_on(client, "two_results.mlirbc", 0);
	struct PJRT_Executable *x = GET(LoadedExecutable_GetExecutable, executable,
					.loaded_executable = l);
	struct PJRT_Executable_OutputElementTypes_Args t;
	struct PJRT_Executable_OutputDimensions_Args d;
	struct PJRT_Executable_OutputMemoryKinds_Args k;
	struct { struct PJRT_Executable_GetCompiledMemoryStats_Args a; } stats;

	(void)state;
	/* It lives on without the loaded one. */
	drop_exe(l);
	assert_int_equal(GET(Executable_NumOutputs, num_outputs, .executable = x), 2);
	assert_int_equal(GET(Executable_NumReplicas, num_replicas, .executable = x), 1);
	assert_int_equal(GET(Executable_NumPartitions, num_partitions, .executable = x), 1);
	assert_true(GET(Executable_SizeOfGeneratedCodeInBytes, size_in_bytes,
			.executable = x) > 0);
	assert_int_equal(GET(Executable_Fingerprint, executable_fingerprint_size,
			     .executable = x), 64);
	assert_int_equal(GET(Executable_GetCostAnalysis, num_properties, .executable = x), 4);
	assert_ok(CALL_AS(&t, Executable_OutputElementTypes, .executable = x));
	assert_int_equal(t.output_types[0], PJRT_Buffer_Type_F32);
	assert_int_equal(t.output_types[1], PJRT_Buffer_Type_S32);
	assert_ok(CALL_AS(&d, Executable_OutputDimensions, .executable = x));
	assert_int_equal(d.dim_sizes[0], 1);
	assert_int_equal(d.dim_sizes[1], 2);
	assert_int_equal(d.dims[0], 16);
	assert_int_equal(d.dims[1], 4);
	assert_int_equal(d.dims[2], 4);
	assert_ok(CALL_AS(&k, Executable_OutputMemoryKinds, .executable = x));
	assert_int_equal(k.memory_kind_sizes[0], 6);
	assert_memory_equal(k.memory_kinds[0], "device", 6);
	assert_int_equal(GET(Executable_ParameterMemoryKinds, num_parameters, .executable = x),
			 2);
	/* A 0.75 caller's struct ends at 112: nothing past it is written. */
	memset(&stats, 0x5a, sizeof(stats));
	stats.a.struct_size = 112;
	stats.a.executable = x;
	assert_ok(slot_at(OFFSET_Executable_GetCompiledMemoryStats)(&stats));
	assert_int_equal(stats.a.argument_size_in_bytes, 128);
	assert_int_equal(stats.a.output_size_in_bytes, 128);
	assert_int_equal(((char *)&stats)[112], 0x5a);
	assert_int_equal(((char *)&stats)[143], 0x5a);
	assert_ok(CALL(Executable_Destroy, .executable = x));
}

static void the_program_comes_back_as_it_went_in(void **state)
{
	struct bytes b = read_bytes("scale_add.mlirbc");
	struct PJRT_LoadedExecutable *l = compile_on(client, "scale_add.mlirbc", 0);
	struct PJRT_Executable *x = GET(LoadedExecutable_GetExecutable, executable,
					.loaded_executable = l);
	struct PJRT_Program p = { .struct_size = PJRT_Program_SIZE };
	char *code = malloc(b.n);

	(void)state;
	assert_non_null(code);
	assert_ok(CALL(Executable_OptimizedProgram, .executable = x, .program = &p));
	assert_int_equal(p.code_size, b.n);
	assert_int_equal(p.format_size, 4);
	assert_memory_equal(p.format, "mlir", 4);
	p.code = code;
	p.code_size = b.n - 1;
	assert_error(CALL(Executable_OptimizedProgram, .executable = x, .program = &p), INVALID,
		     "room for");
	p.code_size = b.n;
	assert_ok(CALL(Executable_OptimizedProgram, .executable = x, .program = &p));
	assert_memory_equal(code, b.p, b.n);
	p.struct_size = 16;
	assert_error(CALL(Executable_OptimizedProgram, .executable = x, .program = &p), INVALID,
		     "Unexpected PJRT_Program size");
	assert_ok(CALL(Executable_Destroy, .executable = x));
	drop_exe(l);
	free(code);
	free(b.p);
}

/* y = 2 * a + b on the executable's device. */
static void check_runs(struct PJRT_LoadedExecutable *x, struct PJRT_Client *c, unsigned device)
{
	float a[16], b[16], out[16];
	struct PJRT_Buffer *in[2], *result;
	struct PJRT_Client_BufferFromHostBuffer_Args put;
	struct PJRT_Event *done;
	int64_t n = 16;

	for (int i = 0; i < 16; i++) {
		a[i] = (float)i;
		b[i] = 100.0f;
	}
	for (int i = 0; i < 2; i++) {
		assert_ok(CALL_AS(&put, Client_BufferFromHostBuffer, .client = c,
				  .data = i ? b : a, .type = PJRT_Buffer_Type_F32, .dims = &n,
				  .num_dims = 1, .device = device_of(c, (int)device)));
		drop_event(put.done_with_host_buffer);
		in[i] = put.buffer;
	}
	assert_ok(run_exe(x, in, 2, &result, &done));
	assert_ok(finish(done));
	assert_ok(fetch(result, out, sizeof(out)));
	for (int i = 0; i < 16; i++)
		assert_true(out[i] == 2 * a[i] + b[i]);
	drop_buffer(result);
	drop_buffer(in[0]);
	drop_buffer(in[1]);
}

static struct bytes serialize(struct PJRT_LoadedExecutable *l)
{
	struct PJRT_Executable *x = GET(LoadedExecutable_GetExecutable, executable,
					.loaded_executable = l);
	struct PJRT_Executable_Serialize_Args a;
	struct bytes b;

	assert_ok(CALL_AS(&a, Executable_Serialize, .executable = x));
	b = (struct bytes){ malloc(a.serialized_bytes_size), a.serialized_bytes_size };
	assert_non_null(b.p);
	memcpy(b.p, a.serialized_bytes, b.n);
	((void (*)(void *))a.serialized_executable_deleter)(a.serialized_executable);
	assert_ok(CALL(Executable_Destroy, .executable = x));
	return b;
}

static void serialized_executables_run_where_they_did(void **state)
{
	struct PJRT_LoadedExecutable *l = compile_on(client, "scale_add.mlirbc", 1);
	struct PJRT_Executable_DeserializeAndLoad_Args a;
	struct bytes b = serialize(l);
	char options[32];
	size_t n;

	(void)state;
	drop_exe(l);
	assert_ok(CALL_AS(&a, Executable_DeserializeAndLoad, .client = client,
			  .serialized_executable = b.p, .serialized_executable_size = b.n));
	check_runs(a.loaded_executable, client, 1);
	drop_exe(a.loaded_executable);
	/* A 0.75 caller, and options that name another device. */
	n = options_for(0, options);
	a = (struct PJRT_Executable_DeserializeAndLoad_Args){ .struct_size = 64,
		.client = client, .serialized_executable = b.p,
		.serialized_executable_size = b.n,
		.overridden_serialized_compile_options = options,
		.overridden_serialized_compile_options_size = n };
	assert_ok(slot_at(OFFSET_Executable_DeserializeAndLoad)(&a));
	check_runs(a.loaded_executable, client, 0);
	drop_exe(a.loaded_executable);
	free(b.p);
}

static void damaged_executables_are_refused(void **state)
{
	struct PJRT_LoadedExecutable *l = compile_on(client, "scale_add.mlirbc", 0);
	struct bytes b = serialize(l);
	uint32_t seed = 9;

	(void)state;
	drop_exe(l);
	for (size_t n = 0; n < b.n; n += 1 + n / 8) {
		struct bytes cut = { malloc(n + 1), n };

		memcpy(cut.p, b.p, n);
		assert_error(CALL(Executable_DeserializeAndLoad, .client = client,
				  .serialized_executable = cut.p,
				  .serialized_executable_size = n), INVALID,
			     "compile the program again");
		free(cut.p);
	}
	for (unsigned i = 0; i < 300; i++) {
		size_t at = next(&seed) % b.n;
		char old = b.p[at];
		struct PJRT_Executable_DeserializeAndLoad_Args a;
		struct PJRT_Error *e;

		b.p[at] = (char)(old ^ (1 << next(&seed) % 8));
		e = CALL_AS(&a, Executable_DeserializeAndLoad, .client = client,
			    .serialized_executable = b.p, .serialized_executable_size = b.n);
		/* Bits of the head that say nothing may change. */
		if (!e)
			drop_exe(a.loaded_executable);
		assert_true(e || at < 120);
		drop_error(e);
		b.p[at] = old;
	}
	free(b.p);
}

static void deleted_executables_do_not_run(void **state)
{
	struct PJRT_LoadedExecutable *x = compile_on(client, "scale_add.mlirbc", 0);
	struct PJRT_Buffer *none[2] = { NULL, NULL }, *out;
	float data[16] = { 0 };
	struct PJRT_Buffer *in[2] = { put_floats(client, data, 16), put_floats(client, data, 16) };
	struct PJRT_Event *done;

	(void)state;
	assert_error(run_exe(x, none, 2, &out, &done), INVALID, "argument 0 is NULL");
	assert_error(run_exe(x, in, 1, &out, &done), INVALID, "takes 2 arguments, not 1");
	assert_error(CALL(LoadedExecutable_Execute, .executable = x), INVALID, "for 0 came");
	assert_error(CALL(LoadedExecutable_Execute, .executable = x, .num_devices = 2), INVALID,
		     "loaded on 1 device; argument lists for 2 came");
	assert_error(CALL(LoadedExecutable_Execute, .executable = x, .num_devices = 1,
			  .execute_device = device_of(client, 1)), INVALID, "execute_device");
	assert_error(CALL(LoadedExecutable_Execute, .executable = x, .num_devices = 1,
			  .num_args = 2), INVALID, "`argument_lists` is NULL");
	assert_false(GET(LoadedExecutable_IsDeleted, is_deleted, .executable = x));
	assert_ok(CALL(LoadedExecutable_Delete, .executable = x));
	assert_true(GET(LoadedExecutable_IsDeleted, is_deleted, .executable = x));
	assert_error(run_exe(x, in, 2, &out, &done), INVALID, "deleted");
	drop_buffer(in[0]);
	drop_buffer(in[1]);
	drop_exe(x);
}

/* Runs with no more of the options in memory than a 0.75 caller has. */
static struct PJRT_Error *run_with(struct PJRT_LoadedExecutable *x,
				   const struct PJRT_ExecuteOptions *o,
				   struct PJRT_Buffer *const *args, struct PJRT_Buffer **outs)
{
	enum { OLDEST = 80 };
	void *old = malloc(OLDEST);
	struct PJRT_Error *e;

	assert_non_null(old);
	memcpy(old, o, OLDEST);
	e = CALL(LoadedExecutable_Execute, .executable = x, .options = old,
		 .argument_lists = (void *)&args, .num_devices = 1, .num_args = 2,
		 .output_lists = (void *)&outs);
	free(old);
	return e;
}

static void older_execute_options_are_read_as_far_as_they_go(void **state)
{
	struct PJRT_LoadedExecutable *x = compile_on(client, "scale_add_donated.mlirbc", 0);
	float data[16] = { 0 };
	struct PJRT_Buffer *in[2] = { put_floats(client, data, 16), put_floats(client, data, 16) };
	struct PJRT_Buffer *out;
	int64_t keep = 0;
	struct PJRT_ExecuteOptions o = { .struct_size = 80,
		.non_donatable_input_indices = &keep, .num_non_donatable_input_indices = 1 };

	(void)state;
	assert_ok(run_with(x, &o, in, &out));
	assert_false(is_deleted(in[0]));
	drop_buffer(out);
	o.struct_size = 79;
	assert_error(run_with(x, &o, in, &out), INVALID, "PJRT_ExecuteOptions");
	o.struct_size = 80;
	o.non_donatable_input_indices = NULL;
	assert_error(run_with(x, &o, in, &out), INVALID, "non_donatable");
	o.num_non_donatable_input_indices = 0;
	o.num_send_ops = 1;
	assert_error(run_with(x, &o, in, &out), INVALID, "`send_callbacks`");
	drop_buffer(in[0]);
	drop_buffer(in[1]);
	drop_exe(x);
}

/* ---- without a client ---- */

static struct PJRT_TopologyDescription *topology(const char *name)
{
	return GET(TopologyDescription_Create, topology, .topology_name = name,
		   .topology_name_size = strlen(name));
}

static void topologies_are_made_by_name(void **state)
{
	static const char *const wrong[] = {
		"gpu", "tessera4", "tessera:", "tessera:devices", "tessera:devices=0",
		"tessera:devices=-1", "tessera:wheels=4", "tessera:devices=4x",
		"tessera:devices=99999999999999999999", "tessera:hbm=0",
	};
	struct PJRT_TopologyDescription *t = topology("tessera:devices=3,cores=4,hbm=67108864");
	struct PJRT_NamedValue v = { .struct_size = PJRT_NamedValue_SIZE, .name = "devices",
				     .name_size = 7, .type = PJRT_NamedValue_kInt64,
				     .int64_value = 5, .value_size = 1 };
	struct PJRT_TopologyDescription_GetDeviceDescriptions_Args d;

	(void)state;
	assert_ok(CALL_AS(&d, TopologyDescription_GetDeviceDescriptions, .topology = t));
	assert_int_equal(d.num_descriptions, 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(GET(DeviceDescription_Id, id,
				     .device_description = d.descriptions[i]), i);
	assert_int_equal(GET(DeviceDescription_Kind, device_kind_size,
			     .device_description = d.descriptions[2]), 10);
	assert_int_equal(GET(TopologyDescription_PlatformName, platform_name_size,
			     .topology = t), 7);
	assert_ok(CALL(TopologyDescription_PlatformVersion, .topology = t));
	assert_ok(CALL(TopologyDescription_Attributes, .topology = t));
	assert_ok(CALL(TopologyDescription_Destroy, .topology = t));
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct PJRT_TopologyDescription_Create_Args a;
		struct PJRT_Error *e = CALL_AS(&a, TopologyDescription_Create,
					       .topology_name = wrong[i],
					       .topology_name_size = strlen(wrong[i]));

		/* "tessera:" with no words is the plain one. */
		if (!strcmp(wrong[i], "tessera:")) {
			assert_null(e);
			assert_ok(CALL(TopologyDescription_Destroy, .topology = a.topology));
			continue;
		}
		assert_error(e, INVALID, "topology");
	}
	t = GET(TopologyDescription_Create, topology, .create_options = &v, .num_options = 1);
	assert_int_equal(GET(TopologyDescription_GetDeviceDescriptions, num_descriptions,
			     .topology = t), 5);
	assert_ok(CALL(TopologyDescription_Destroy, .topology = t));
	v.int64_value = 0;
	assert_error(CALL(TopologyDescription_Create, .create_options = &v, .num_options = 1),
		     INVALID, "devices=0");
}

static void topologies_are_serialized(void **state)
{
	struct PJRT_TopologyDescription *own = GET(Client_TopologyDescription, topology,
						   .client = client), *t, *other;
	struct PJRT_TopologyDescription_Serialize_Args a;
	uint64_t print = GET(TopologyDescription_Fingerprint, fingerprint, .topology = own);

	(void)state;
	assert_ok(CALL_AS(&a, TopologyDescription_Serialize, .topology = own));
	t = GET(TopologyDescription_Deserialize, topology,
		.serialized_topology = a.serialized_bytes,
		.serialized_topology_size = a.serialized_bytes_size);
	assert_int_equal(GET(TopologyDescription_Fingerprint, fingerprint, .topology = t), print);
	assert_int_equal(GET(TopologyDescription_GetDeviceDescriptions, num_descriptions,
			     .topology = t), 2);
	assert_error(CALL(TopologyDescription_Deserialize,
			  .serialized_topology = a.serialized_bytes,
			  .serialized_topology_size = 6), INVALID, "topology");
	assert_error(CALL(TopologyDescription_Deserialize, .serialized_topology = ""), INVALID,
		     "0 bytes");
	((void (*)(void *))a.serialized_topology_deleter)(a.serialized_topology);
	other = topology("tessera:devices=1");
	assert_true(GET(TopologyDescription_Fingerprint, fingerprint, .topology = other) !=
		    print);
	assert_ok(CALL(TopologyDescription_Destroy, .topology = other));
	assert_ok(CALL(TopologyDescription_Destroy, .topology = t));
	/* The client's own goes with the client. */
	assert_ok(CALL(TopologyDescription_Destroy, .topology = own));
	assert_int_equal(GET(TopologyDescription_Fingerprint, fingerprint, .topology = own),
			 print);
}

static void shapes_are_written_as_xla_does(void **state)
{
	/* bf16[3,300] in host memory: type 16, dims, layout {1,0} with space 5, static. */
	static const unsigned char want[] = { 0x10, 16, 0x18, 3, 0x18, 0xac, 0x02, 0x2a, 6,
					      0x08, 1, 0x08, 0, 0x40, 5, 0x30, 0, 0x30, 0 };
	struct PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args a;
	struct PJRT_TopologyDescription_GetMemorySpaceKindIds_Args ids;
	struct PJRT_TopologyDescription *t = topology("");
	int64_t dims[] = { 3, 300 }, many[33] = { 0 };

	(void)state;
	assert_ok(CALL_AS(&ids, TopologyDescription_GetMemorySpaceKindIds, .topology = t));
	assert_int_equal(ids.num_memory_space_kind_ids, 3);
	for (int k = 0; k < 3; k++)
		assert_int_equal(ids.memory_space_kind_ids[k],
				 GET(Memory_Kind_Id, kind_id,
				     .memory = memory_of(device_of(client, 0), k)));
	assert_ok(CALL_AS(&a, TopologyDescription_MakeCanonicalShapeForMemorySpace,
			  .topology = t, .memory_space_kind_id = ids.memory_space_kind_ids[1],
			  .dims = dims, .num_dims = 2,
			  .element_type = PJRT_Buffer_Type_BF16));
	assert_int_equal(a.serialized_shape_size, sizeof(want));
	assert_memory_equal(a.serialized_shape, want, sizeof(want));
	((void (*)(const char *))a.serialized_shape_deleter)(a.serialized_shape);
	assert_error(CALL(TopologyDescription_MakeCanonicalShapeForMemorySpace, .topology = t,
			  .memory_space_kind_id = 4, .element_type = PJRT_Buffer_Type_F32),
		     INVALID, "kind id 4");
	assert_error(CALL(TopologyDescription_MakeCanonicalShapeForMemorySpace, .topology = t,
			  .memory_space_kind_id = 1, .element_type = PJRT_Buffer_Type_F32,
			  .dims = many, .num_dims = 33), INVALID, "33 dims");
	assert_ok(CALL(TopologyDescription_Destroy, .topology = t));
}

static void programs_compile_without_a_client(void **state)
{
	struct PJRT_TopologyDescription *t = topology("tessera:devices=2,hbm=67108864");
	struct bytes b = read_bytes("scale_add.mlirbc");
	struct PJRT_Program p = program_of(b);
	struct PJRT_LoadedExecutable *l;
	struct PJRT_Executable *x;
	char options[32];
	size_t n = options_for(1, options);

	(void)state;
	x = GET(Compile, executable, .topology = t, .program = &p, .compile_options = options,
		.compile_options_size = n);
	assert_int_equal(GET(Executable_NumOutputs, num_outputs, .executable = x), 1);
	l = GET(Client_Load, loaded_executable, .client = client, .executable = x);
	check_runs(l, client, 1);
	drop_exe(l);
	n = options_for(0, options);
	l = GET(Client_Load, loaded_executable, .client = client, .executable = x,
		.compile_options = options, .compile_options_size = n);
	check_runs(l, client, 0);
	drop_exe(l);
	assert_error(CALL(Client_Load, .client = client, .executable = x,
			  .compile_options = "x", .compile_options_size = 1), INVALID,
		     "CompileOptionsProto");
	n = options_for(2, options);
	assert_error(CALL(Compile, .topology = t, .program = &p, .compile_options = options,
			  .compile_options_size = n), INVALID, "device 2; there are 2");
	assert_ok(CALL(Executable_Destroy, .executable = x));
	assert_ok(CALL(TopologyDescription_Destroy, .topology = t));
	free(b.p);
}

/* ---- extensions ---- */

static const struct PJRT_Extension_Base *extension(int type)
{
	const struct PJRT_Extension_Base *e;

	memcpy(&e, api + 8, sizeof(e));
	while (e && e->type != type)
		e = e->next;
	return e;
}

static const char *layout_text(const struct PJRT_Layouts_Extension *ext,
			       struct PJRT_Layouts_MemoryLayout *l)
{
	struct PJRT_Layouts_MemoryLayout_Serialize_Args a = {
		.struct_size = PJRT_Layouts_MemoryLayout_Serialize_Args_SIZE, .layout = l };
	static char text[256];

	assert_ok(((slot_fn *)ext->PJRT_Layouts_MemoryLayout_Serialize)(&a));
	assert_true(a.serialized_bytes_size < sizeof(text));
	memcpy(text, a.serialized_bytes, a.serialized_bytes_size);
	text[a.serialized_bytes_size] = 0;
	((void (*)(void *))a.serialized_layout_deleter)(a.serialized_layout);
	return text;
}

static void layouts_of_an_executable_are_its_own(void **state)
{
	const struct PJRT_Layouts_Extension *ext =
		(const void *)extension(PJRT_Extension_Type_Layouts);
	struct PJRT_LoadedExecutable *l = compile_on(client, "two_results.mlirbc", 0);
	struct PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args out = {
		.struct_size = PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args_SIZE };
	struct PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args in = {
		.struct_size = PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args_SIZE };
	struct PJRT_Layouts_MemoryLayout_Destroy_Args gone = {
		.struct_size = PJRT_Layouts_MemoryLayout_Destroy_Args_SIZE };
	struct PJRT_Layouts_MemoryLayout **first;

	(void)state;
	assert_non_null(ext);
	assert_true(ext->base.struct_size >= PJRT_Layouts_Extension_SIZE);
	out.executable = in.executable = GET(LoadedExecutable_GetExecutable, executable,
					     .loaded_executable = l);
	/* Asked again and again they are the same: nobody frees them. */
	for (int i = 0; i < 100; i++) {
		assert_ok(((slot_fn *)ext->PJRT_Layouts_PJRT_Executable_GetOutputLayouts)(&out));
		if (!i)
			first = out.layouts;
		assert_ptr_equal(out.layouts, first);
	}
	assert_int_equal(out.num_outputs, 2);
	assert_string_equal(layout_text(ext, out.layouts[0]), "{0}");
	assert_string_equal(layout_text(ext, out.layouts[1]), "{1,0}");
	assert_ok(((slot_fn *)ext->PJRT_Layouts_PJRT_Executable_GetParameterLayouts)(&in));
	assert_int_equal(in.num_parameters, 2);
	assert_string_equal(layout_text(ext, in.layouts[1]), "{0}");
	/* Destroying one does no harm. */
	gone.layout = out.layouts[1];
	assert_ok(((slot_fn *)ext->PJRT_Layouts_MemoryLayout_Destroy)(&gone));
	assert_string_equal(layout_text(ext, out.layouts[1]), "{1,0}");
	assert_ok(CALL(Executable_Destroy, .executable = out.executable));
	drop_exe(l);
}

static void default_layouts_are_their_askers(void **state)
{
	const struct PJRT_Layouts_Extension *ext =
		(const void *)extension(PJRT_Extension_Type_Layouts);
	struct PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args a = {
		.struct_size = PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args_SIZE,
		.client = client, .type = PJRT_Buffer_Type_F32, .num_dims = 32 };
	struct PJRT_Layouts_MemoryLayout_Destroy_Args gone = {
		.struct_size = PJRT_Layouts_MemoryLayout_Destroy_Args_SIZE };

	(void)state;
	assert_ok(((slot_fn *)ext->PJRT_Layouts_PJRT_Client_GetDefaultLayout)(&a));
	assert_non_null(strstr(layout_text(ext, a.layout), "{31,30,29,"));
	gone.layout = a.layout;
	assert_ok(((slot_fn *)ext->PJRT_Layouts_MemoryLayout_Destroy)(&gone));
	a.num_dims = 33;
	assert_error(((slot_fn *)ext->PJRT_Layouts_PJRT_Client_GetDefaultLayout)(&a), INVALID,
		     "33 dims");
	a.num_dims = SIZE_MAX;
	assert_error(((slot_fn *)ext->PJRT_Layouts_PJRT_Client_GetDefaultLayout)(&a), INVALID,
		     "at most");
	a.struct_size = 8;
	assert_error(((slot_fn *)ext->PJRT_Layouts_PJRT_Client_GetDefaultLayout)(&a), INVALID,
		     "struct_size");
}

static void shardings_are_replicated(void **state)
{
	const struct PJRT_Shardings_Extension *ext =
		(const void *)extension(PJRT_Extension_Type_Shardings);
	struct PJRT_LoadedExecutable *l = compile_on(client, "two_results.mlirbc", 0);
	struct PJRT_Shardings_PJRT_Executable_OutputShardings_Args a = {
		.struct_size = PJRT_Shardings_PJRT_Executable_OutputShardings_Args_SIZE };

	(void)state;
	assert_non_null(ext);
	a.executable = GET(LoadedExecutable_GetExecutable, executable, .loaded_executable = l);
	assert_ok(((slot_fn *)ext->PJRT_Shardings_PJRT_Executable_OutputShardings)(&a));
	assert_int_equal(a.num_outputs, 2);
	assert_non_null(a.shardings[1]);
	assert_int_equal(a.sharding_sizes[1], 0);
	assert_ok(CALL(Executable_Destroy, .executable = a.executable));
	drop_exe(l);
}

static void a_profiler_starts_and_stops(void **state)
{
	const struct PJRT_Profiler_Extension *ext =
		(const void *)extension(PJRT_Extension_Type_Profiler);
	struct PLUGIN_Profiler_Create_Args made = {
		.struct_size = PLUGIN_Profiler_Create_Args_SIZE };
	struct PLUGIN_Profiler_Start_Args start = {
		.struct_size = PLUGIN_Profiler_Start_Args_SIZE };
	struct PLUGIN_Profiler_Stop_Args stop = { .struct_size = PLUGIN_Profiler_Stop_Args_SIZE };
	struct PLUGIN_Profiler_CollectData_Args data = {
		.struct_size = PLUGIN_Profiler_CollectData_Args_SIZE, .buffer_size_in_bytes = 9 };
	struct PLUGIN_Profiler_Destroy_Args gone = {
		.struct_size = PLUGIN_Profiler_Destroy_Args_SIZE };
	struct PLUGIN_Profiler_Error_Message_Args text = {
		.struct_size = PLUGIN_Profiler_Error_Message_Args_SIZE };
	struct PLUGIN_Profiler_Error_GetCode_Args code = {
		.struct_size = PLUGIN_Profiler_Error_GetCode_Args_SIZE };
	struct PLUGIN_Profiler_Error_Destroy_Args drop = {
		.struct_size = PLUGIN_Profiler_Error_Destroy_Args_SIZE };
	const struct PLUGIN_Profiler_Api *calls;
	uint8_t *copy;

	(void)state;
	assert_non_null(ext);
	calls = ext->profiler_api;
	assert_int_equal(calls->struct_size, PLUGIN_Profiler_Api_SIZE);
	assert_ok(((slot_fn *)calls->create)(&made));
	start.profiler = stop.profiler = data.profiler = gone.profiler = made.profiler;
	assert_ok(((slot_fn *)calls->start)(&start));
	text.error = code.error = drop.error = ((slot_fn *)calls->start)(&start);
	assert_non_null(text.error);
	((void (*)(void *))calls->error_message)(&text);
	assert_non_null(strstr(text.message, "runs already"));
	assert_null(((slot_fn *)calls->error_get_code)(&code));
	assert_int_equal(code.code, PJRT_Error_Code_FAILED_PRECONDITION);
	((void (*)(void *))calls->error_destroy)(&drop);
	assert_ok(((slot_fn *)calls->stop)(&stop));
	assert_error(((slot_fn *)calls->stop)(&stop), PJRT_Error_Code_FAILED_PRECONDITION,
		     "was not started");
	assert_ok(((slot_fn *)calls->collect_data)(&data));
	/* Newer clients read it where it is, older ones bring memory. */
	assert_true(data.buffer_size_in_bytes > 100);
	assert_non_null(memmem(data.buffer, data.buffer_size_in_bytes,
			       "/device:CUSTOM:TESSERA:0", 24));
	copy = malloc(data.buffer_size_in_bytes);
	memcpy(copy, data.buffer, data.buffer_size_in_bytes);
	data.buffer = memset(malloc(data.buffer_size_in_bytes), 0, data.buffer_size_in_bytes);
	assert_ok(((slot_fn *)calls->collect_data)(&data));
	assert_memory_equal(copy, data.buffer, data.buffer_size_in_bytes);
	free(data.buffer);
	free(copy);
	assert_ok(((slot_fn *)calls->destroy)(&gone));
	start.profiler = NULL;
	assert_error(((slot_fn *)calls->start)(&start), INVALID, "`profiler` is NULL");
}

/* Clients refuse a list of no shardings, and with it the program. */
static void a_program_without_results_has_no_list_of_shardings(void **state)
{
	const struct PJRT_Shardings_Extension *ext =
		(const void *)extension(PJRT_Extension_Type_Shardings);
	struct PJRT_LoadedExecutable *l = compile_on(client, "no_results.mlirbc", 0);
	struct PJRT_Shardings_PJRT_Executable_OutputShardings_Args a = {
		.struct_size = PJRT_Shardings_PJRT_Executable_OutputShardings_Args_SIZE };
	struct PJRT_Shardings_PJRT_Executable_ParameterShardings_Args p = {
		.struct_size = PJRT_Shardings_PJRT_Executable_ParameterShardings_Args_SIZE };

	(void)state;
	a.executable = GET(LoadedExecutable_GetExecutable, executable, .loaded_executable = l);
	p.executable = a.executable;
	a.num_outputs = 7;
	a.shardings = (void *)&a;
	assert_ok(((slot_fn *)ext->PJRT_Shardings_PJRT_Executable_OutputShardings)(&a));
	assert_int_equal(a.num_outputs, 0);
	assert_null(a.shardings);
	assert_null(a.sharding_sizes);
	assert_ok(((slot_fn *)ext->PJRT_Shardings_PJRT_Executable_ParameterShardings)(&p));
	assert_int_equal(p.num_parameters, 0);
	assert_null(p.shardings);
	assert_ok(CALL(Executable_Destroy, .executable = a.executable));
	drop_exe(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_options_never_crash),
		cmocka_unit_test(malformed_options_are_named),
		cmocka_unit_test(assignments_choose_the_device),
		cmocka_unit_test(unknown_formats_are_refused),
		cmocka_unit_test(cut_programs_are_refused),
		cmocka_unit_test(changed_programs_never_crash),
		cmocka_unit_test(random_programs_never_crash),
		cmocka_unit_test(executables_know_their_results),
		cmocka_unit_test(the_program_comes_back_as_it_went_in),
		cmocka_unit_test(serialized_executables_run_where_they_did),
		cmocka_unit_test(damaged_executables_are_refused),
		cmocka_unit_test(deleted_executables_do_not_run),
		cmocka_unit_test(older_execute_options_are_read_as_far_as_they_go),
		cmocka_unit_test(topologies_are_made_by_name),
		cmocka_unit_test(topologies_are_serialized),
		cmocka_unit_test(shapes_are_written_as_xla_does),
		cmocka_unit_test(programs_compile_without_a_client),
		cmocka_unit_test(layouts_of_an_executable_are_its_own),
		cmocka_unit_test(default_layouts_are_their_askers),
		cmocka_unit_test(shardings_are_replicated),
		cmocka_unit_test(a_profiler_starts_and_stops),
		cmocka_unit_test(a_program_without_results_has_no_list_of_shardings),
	};

	return cmocka_run_group_tests(tests, open_client, close_client);
}
