/* SPDX-License-Identifier: Apache-2.0 */
/* HLO modules through the table, as torch_xla sends them: what it asks of an executable,
 * replicas, donation. */
#include "runtime/compiler/front/hlo.pb-c.h"
#include "tests/unit/pjrt/pjrt_test.h"
#include "tests/unit/torch.h"

static struct PJRT_Client *client;

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

static struct bytes read_hlo(const char *name)
{
	struct bytes b = { 0 };
	char path[256];

	snprintf(path, sizeof(path), TORCH_DIR "/%s.hlo", name);
	b.p = torch_read_file(path, &b.n);
	assert_non_null(b.p);
	return b;
}

/* Build options for 2 replicas, on devices 1 and 0; and for 1. */
static const char two[] = "\x1a\x10\x20\x02\x28\x01\x4a\x0a\x08\x02\x10\x01\x1a\x04\x0a\x02\x01";
static const char one[] = "\x1a\x04\x20\x01\x28\x01";

static struct PJRT_Error *compile_bytes(struct bytes b, const char *format, bool is_for_two,
					struct PJRT_LoadedExecutable **out)
{
	struct PJRT_Program p = { .struct_size = PJRT_Program_SIZE, .code = b.p,
				  .code_size = b.n, .format = format,
				  .format_size = strlen(format) };
	struct PJRT_Client_Compile_Args a;
	struct PJRT_Error *e;

	/* The array's NUL is the id of the second device. */
	e = CALL_AS(&a, Client_Compile, .client = client, .program = &p,
		    .compile_options = is_for_two ? two : one,
		    .compile_options_size = is_for_two ? sizeof(two) : sizeof(one) - 1);
	*out = e ? NULL : a.executable;
	return e;
}

static struct PJRT_LoadedExecutable *compile_hlo(const char *name, bool is_for_two)
{
	struct PJRT_LoadedExecutable *x;
	struct bytes b = read_hlo(name);

	assert_ok(compile_bytes(b, "hlo", is_for_two, &x));
	free(b.p);
	return x;
}

/* As clients ask: for the size, then for the bytes. */
static struct bytes show(struct PJRT_LoadedExecutable *l, char format[16])
{
	struct PJRT_Executable *x = GET(LoadedExecutable_GetExecutable, executable,
					.loaded_executable = l);
	struct PJRT_Program p = { .struct_size = PJRT_Program_SIZE };
	struct bytes b;

	assert_ok(CALL(Executable_OptimizedProgram, .executable = x, .program = &p));
	b = (struct bytes){ malloc(p.code_size), p.code_size };
	assert_non_null(b.p);
	p.code = b.p;
	assert_ok(CALL(Executable_OptimizedProgram, .executable = x, .program = &p));
	snprintf(format, 16, "%.*s", (int)p.format_size, p.format);
	assert_ok(CALL(Executable_Destroy, .executable = x));
	return b;
}

static void assert_row_major(const Hlo__Shape *s)
{
	assert_int_equal(s->n_tuple_shapes || s->layout, 1);
	for (size_t i = 0; i < s->n_tuple_shapes; i++)
		assert_row_major(s->tuple_shapes[i]);
	if (!s->layout)
		return;
	assert_int_equal(s->layout->n_minor_to_major, s->n_dimensions);
	for (size_t d = 0; d < s->n_dimensions; d++)
		assert_int_equal(s->layout->minor_to_major[d], s->n_dimensions - 1 - d);
}

static void a_module_comes_back_with_layouts(void **state)
{
	/* The root of the second says {0,1}; the third has one parameter, a tuple. */
	static const struct { const char *name; size_t parameters, results; } cases[] = {
		{ "act__celu", 2, 2 }, { "matmul__einsum_one", 1, 3 },
		{ "control__params_3301", 1, 2 },
	};

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct bytes source = read_hlo(cases[i].name), shown;
		struct PJRT_LoadedExecutable *x = compile_hlo(cases[i].name, i == 0), *again;
		Hlo__ModuleWithConfig *m;
		char format[16];

		shown = show(x, format);
		assert_string_equal(format, "hlo_with_config");
		m = hlo__module_with_config__unpack(NULL, shown.n, (const uint8_t *)shown.p);
		assert_non_null(m);
		assert_int_equal(m->module.len, source.n);
		assert_memory_equal(m->module.data, source.p, source.n);
		assert_int_equal(m->config->replica_count, i == 0 ? 2 : 1);
		assert_int_equal(m->config->entry_computation_layout->n_parameters,
				 cases[i].parameters);
		assert_int_equal(m->config->entry_computation_layout->n_parameter_names,
				 cases[i].parameters);
		for (size_t k = 0; k < cases[i].parameters; k++)
			assert_row_major(m->config->entry_computation_layout->parameters[k]);
		assert_int_equal(m->config->entry_computation_layout->result->n_tuple_shapes,
				 cases[i].results);
		assert_row_major(m->config->entry_computation_layout->result);
		/* It is a program itself, and shown as such. */
		assert_ok(compile_bytes(shown, format, i == 0, &again));
		hlo__module_with_config__free_unpacked(m, NULL);
		free(source.p);
		source = show(again, format);
		assert_string_equal(format, "hlo_with_config");
		assert_int_equal(source.n, shown.n);
		assert_memory_equal(source.p, shown.p, shown.n);
		free(source.p);
		free(shown.p);
		drop_exe(again);
		drop_exe(x);
	}
}

/* Of 4 partitions, each of one device. */
static const char four[] = "\x1a\x1e\x20\x01\x28\x04\x4a\x18\x08\x01\x10\x04"
	"\x1a\x03\x0a\x01\x00\x1a\x03\x0a\x01\x01\x1a\x03\x0a\x01\x02\x1a\x03\x0a\x01\x03";

static struct PJRT_LoadedExecutable *compile_for_four(struct PJRT_Client *on, struct bytes b,
						      const char *format)
{
	struct PJRT_Program p = { .struct_size = PJRT_Program_SIZE, .code = b.p,
				  .code_size = b.n, .format = format,
				  .format_size = strlen(format) };
	struct PJRT_Client_Compile_Args a;

	assert_ok(CALL_AS(&a, Client_Compile, .client = on, .program = &p,
			  .compile_options = four, .compile_options_size = sizeof(four) - 1));
	return a.executable;
}

/* torch_xla asks the module how results lie on the devices, and believes that they are
 * whole on each where it says nothing. */
static void a_module_says_how_results_lie(void **state)
{
	static const char path[] = "tests/data/spmd/captured/torch__both_axes_reversed.hlo.pb";
	struct PJRT_Client *on = new_client("devices=4,hbm=64M,lanes=1");
	struct bytes source = { 0 }, shown[2] = { { 0 } };
	char format[16] = "hlo";

	(void)state;
	source.p = torch_read_file(path, &source.n);
	assert_non_null(source.p);
	/* The second time it says so when it comes. */
	for (unsigned i = 0; i < 2; i++) {
		struct PJRT_LoadedExecutable *x = compile_for_four(on, i ? shown[0] : source,
								   format);
		Hlo__ModuleWithConfig *w;
		Hlo__Sharding *s;
		Hlo__Module *m;

		shown[i] = show(x, format);
		assert_string_equal(format, "hlo_with_config");
		w = hlo__module_with_config__unpack(NULL, shown[i].n, (uint8_t *)shown[i].p);
		assert_non_null(w);
		m = hlo__module__unpack(NULL, w->module.len, w->module.data);
		assert_non_null(m);
		s = m->spmd_output_sharding;
		assert_non_null(s);
		assert_int_equal(s->type, 2);
		assert_int_equal(s->n_tuple_shardings, 1);
		s = s->tuple_shardings[0];
		assert_int_equal(s->type, 3);
		assert_int_equal(s->n_tile_assignment_dimensions, 2);
		assert_int_equal(s->tile_assignment_dimensions[0], 4);
		assert_int_equal(s->tile_assignment_dimensions[1], 1);
		assert_int_equal(w->config->num_partitions, 4);
		hlo__module__free_unpacked(m, NULL);
		hlo__module_with_config__free_unpacked(w, NULL);
		drop_exe(x);
	}
	assert_int_equal(shown[0].n, shown[1].n);
	assert_memory_equal(shown[0].p, shown[1].p, shown[0].n);
	free(shown[0].p);
	free(shown[1].p);
	free(source.p);
	drop_client(on);
}

/* As a member runs it, which says how its results lie: whoever reads the program as it came
 * would take parts for the whole. */
static void mlir_is_shown_as_a_member_runs_it(void **state)
{
	static const struct { const char *sharding, *type, *lies; } cases[] = {
		{ "[{x}]", "(tensor<2xf32>) -> (tensor<2xf32>)",
		  "mhlo.spmd_output_sharding = \"\\08\\03" },
		{ "[{}]", "(tensor<8xf32>) -> (tensor<8xf32>)", "\"builtin.module\"" },
	};
	struct PJRT_Client *on = new_client("devices=4,hbm=64M,lanes=1");

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct PJRT_LoadedExecutable *l;
		char text[512], format[16];
		struct bytes shown;

		snprintf(text, sizeof(text), "module() {meshes = {mesh = \"[x=4]\"}} () {\n"
			 "func() {sym_name = \"main\"} (%%1: tensor<8xf32> "
			 "{sharding = \"@mesh%s\"}) {\n%%2 = add(%%1, %%1) : tensor<8xf32>\n"
			 "%%3 = sharding_constraint(%%2) {sharding = \"@mesh%s\"} : tensor<8xf32>\n"
			 "return(%%3)\n}\n}", cases[i].sharding, cases[i].sharding);
		l = compile_for_four(on, (struct bytes){ text, strlen(text) }, "mlir");
		shown = show(l, format);
		assert_string_equal(format, "mlir");
		shown.p = realloc(shown.p, shown.n + 1);
		assert_non_null(shown.p);
		((char *)shown.p)[shown.n] = 0;
		assert_non_null(strstr(shown.p, "\"stablehlo.add\"("));
		assert_non_null(strstr(shown.p, "mhlo.num_partitions = 4 : i32"));
		assert_non_null(strstr(shown.p, cases[i].type));
		assert_non_null(strstr(shown.p, cases[i].lies));
		free(shown.p);
		drop_exe(l);
	}
	drop_client(on);
}

static void mlir_comes_back_as_it_was(void **state)
{
	struct PJRT_LoadedExecutable *x = compile_on(client, "scale_add.mlirbc", 0);
	struct bytes source = read_bytes("scale_add.mlirbc"), shown;
	char format[16];

	(void)state;
	shown = show(x, format);
	assert_string_equal(format, "mlir");
	assert_int_equal(shown.n, source.n);
	assert_memory_equal(shown.p, source.p, shown.n);
	free(shown.p);
	free(source.p);
	drop_exe(x);
}

static struct PJRT_Buffer *put_floats_on(int device, const float *data, const int64_t *dims,
					 size_t rank)
{
	struct PJRT_Client_BufferFromHostBuffer_Args a;

	assert_ok(CALL_AS(&a, Client_BufferFromHostBuffer, .client = client, .data = data,
			  .type = PJRT_Buffer_Type_F32, .dims = dims, .num_dims = rank,
			  .device = device_of(client, device)));
	assert_ok(finish(a.done_with_host_buffer));
	return a.buffer;
}

static struct PJRT_Buffer *put_on(const float *data, int64_t rows, int64_t columns, int device)
{
	int64_t dims[] = { rows, columns };

	return put_floats_on(device, data, dims, 2);
}

static struct PJRT_Error *run_on(struct PJRT_LoadedExecutable *x, struct PJRT_Device *device,
				 struct PJRT_Buffer *const *args, size_t n,
				 struct PJRT_Buffer **outs)
{
	struct PJRT_ExecuteOptions o = { .struct_size = PJRT_ExecuteOptions_SIZE };

	return CALL(LoadedExecutable_Execute, .executable = x, .options = &o,
		    .argument_lists = (void *)&args, .num_devices = 1, .num_args = n,
		    .output_lists = (void *)&outs, .execute_device = device);
}

static void each_replica_runs_on_its_device(void **state)
{
	struct PJRT_LoadedExecutable *x = compile_hlo("act__celu", true);
	struct PJRT_LoadedExecutable_AddressableDevices_Args d;
	struct PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args l;
	struct PJRT_LoadedExecutable_GetDeviceAssignment_Args a;
	struct PJRT_Executable *shared = GET(LoadedExecutable_GetExecutable, executable,
					     .loaded_executable = x);
	float data[18] = { 0, 1, 2 }, back[2][18];

	(void)state;
	assert_ok(CALL_AS(&d, LoadedExecutable_AddressableDevices, .executable = x));
	assert_int_equal(d.num_addressable_devices, 2);
	assert_ptr_equal(d.addressable_devices[0], device_of(client, 1));
	assert_ptr_equal(d.addressable_devices[1], device_of(client, 0));
	assert_ok(CALL_AS(&l, LoadedExecutable_AddressableDeviceLogicalIds, .executable = x));
	assert_int_equal(l.num_addressable_device_logical_ids, 2);
	assert_int_equal(l.addressable_device_logical_ids[1].replica, 1);
	assert_int_equal(l.addressable_device_logical_ids[1].partition, 0);
	assert_int_equal(GET(Executable_NumReplicas, num_replicas, .executable = shared), 2);
	assert_int_equal(GET(Executable_NumPartitions, num_partitions, .executable = shared), 1);
	assert_ok(CALL_AS(&a, LoadedExecutable_GetDeviceAssignment, .executable = x));
	assert_int_equal(a.serialized_bytes_size, 10);
	assert_memory_equal(a.serialized_bytes, "\x08\x02\x10\x01\x1a\x04\x0a\x02\x01\x00", 10);
	((void (*)(void *))a.serialized_device_assignment_deleter)(
		a.serialized_device_assignment);
	for (int i = 0; i < 2; i++) {
		struct PJRT_Buffer *in[2] = { put_on(data, 3, 6, i), put_on(data, 3, 6, i) };
		struct PJRT_Buffer *out[2];

		assert_error(run_on(x, NULL, in, 2, out), INVALID, "loaded on 2 devices");
		assert_error(run_on(x, device_of(client, !i), in, 2, out), INVALID,
			     "argument 0 lies on device");
		assert_ok(run_on(x, device_of(client, i), in, 2, out));
		assert_ptr_equal(GET(Buffer_Device, device, .buffer = out[0]),
				 device_of(client, i));
		assert_ok(fetch(out[0], back[i], sizeof(back[i])));
		for (unsigned k = 0; k < 2; k++) {
			drop_buffer(in[k]);
			drop_buffer(out[k]);
		}
	}
	assert_memory_equal(back[0], back[1], sizeof(back[0]));
	assert_ok(CALL(LoadedExecutable_Delete, .executable = x));
	assert_true(GET(LoadedExecutable_IsDeleted, is_deleted, .executable = x));
	assert_ok(CALL(Executable_Destroy, .executable = shared));
	drop_exe(x);
}

/* Our own extension, as a caller sees it. */
struct ranks {
	struct PJRT_Extension_Base base;
	void (*enter)(int device);
	void (*leave)(int device, const char *why);
	void (*settle)(void);
};

static const struct ranks *find_ranks(void)
{
	const struct PJRT_Extension_Base *e;

	memcpy(&e, api + 8, sizeof(e));	/* extension_start */
	while (e && e->type != 0x7e55)
		e = e->next;
	assert_non_null(e);
	assert_int_equal(e->struct_size, sizeof(struct ranks));
	return (const struct ranks *)e;
}

/* The sum over two replicas, on devices 1 and 0. Arguments: a scalar that it does not use, and
 * the array. */
static void replicas_that_talk_run_by_one_call_or_one_each(void **state)
{
	struct PJRT_LoadedExecutable *x = compile_hlo("coll1__all_reduce_sum", true);
	struct PJRT_Buffer *in[2][2], *out[2], **outs[2] = { &out[0], &out[1] };
	struct PJRT_Buffer *const *ins[2] = { in[0], in[1] }, *swapped[2][2];
	struct PJRT_Buffer *const *wrong[2] = { swapped[0], swapped[1] };
	struct PJRT_ExecuteOptions o = { .struct_size = PJRT_ExecuteOptions_SIZE };
	struct PJRT_Event *done[2];
	struct PJRT_LoadedExecutable_Execute_Args a;
	const struct ranks *ranks = find_ranks();
	float data[2][12], back[12];

	(void)state;
	for (int r = 0; r < 2; r++) {
		for (int i = 0; i < 12; i++)
			data[r][i] = (float)(100 * r + i);
		in[r][0] = put_floats_on(1 - r, &data[r][0], NULL, 0);
		in[r][1] = put_on(data[r], 3, 4, 1 - r);
		memcpy(swapped[1 - r], in[r], sizeof(in[r]));
	}
	assert_error(run_on(x, NULL, in[0], 2, out), INVALID, "loaded on 2 devices");
	assert_error(CALL(LoadedExecutable_Execute, .executable = x, .options = &o,
			  .argument_lists = (void *)wrong, .num_devices = 2, .num_args = 2,
			  .output_lists = (void *)outs), INVALID, "lies on device 0");
	for (int turn = 0; turn < 3; turn++) {
		assert_ok(CALL_AS(&a, LoadedExecutable_Execute, .executable = x, .options = &o,
				  .argument_lists = (void *)ins, .num_devices = 2, .num_args = 2,
				  .output_lists = (void *)outs,
				  .device_complete_events = done));
		for (int r = 0; r < 2; r++) {
			assert_ok(finish(done[r]));
			assert_ptr_equal(GET(Buffer_Device, device, .buffer = out[r]),
					 device_of(client, 1 - r));
			assert_ok(fetch(out[r], back, sizeof(back)));
			for (int i = 0; i < 12; i++)
				assert_true(back[i] == (float)(100 + 2 * i));
			drop_buffer(out[r]);
		}
	}
	/* Each by itself, in either order: the first waits for the other, but not in its call. */
	for (int turn = 0; turn < 4; turn++) {
		int first = turn % 2;

		assert_ok(run_on(x, device_of(client, 1 - first), in[first], 2, &out[first]));
		assert_ok(run_on(x, device_of(client, first), in[!first], 2, &out[!first]));
		for (int r = 0; r < 2; r++) {
			assert_ok(fetch(out[r], back, sizeof(back)));
			for (int i = 0; i < 12; i++)
				assert_true(back[i] == (float)(100 + 2 * i));
			drop_buffer(out[r]);
		}
	}
	/* The one on device 0 will not come, and then does. */
	ranks->leave(0, "KeyError: of a test");
	assert_ok(run_on(x, device_of(client, 1), in[0], 2, &out[0]));
	assert_error(fetch(out[0], back, sizeof(back)), PJRT_Error_Code_CANCELLED,
		     "member 1, on device 0, does not come");
	drop_buffer(out[0]);
	ranks->enter(0);
	ranks->leave(-1, "the process ends");
	assert_ok(run_on(x, device_of(client, 1), in[0], 2, &out[0]));
	assert_error(fetch(out[0], back, sizeof(back)), PJRT_Error_Code_CANCELLED,
		     "the process ends");
	drop_buffer(out[0]);
	ranks->enter(-1);
	ranks->leave(7, "no such device");
	ranks->enter(-2);
	ranks->settle();	/* nobody in another process waits */
	for (int r = 0; r < 2; r++)
		assert_ok(run_on(x, device_of(client, 1 - r), in[r], 2, &out[r]));
	for (int r = 0; r < 2; r++) {
		assert_ok(fetch(out[r], back, sizeof(back)));
		assert_true(back[11] == 122);
		drop_buffer(out[r]);
	}
	for (int r = 0; r < 2; r++)
		for (int i = 0; i < 2; i++)
			drop_buffer(in[r][i]);
	drop_exe(x);
}

/* Takes what HloModuleProto.buffer_donor names. */
static void a_step_of_training_takes_its_parameters(void **state)
{
	struct PJRT_LoadedExecutable *x = compile_hlo("train__mlp_sgd_mom.1", false);
	static const bool donated[13] = { [1] = true, [2] = true, [3] = true, [4] = true,
					  [8] = true, [10] = true, [11] = true, [12] = true };
	struct PJRT_Executable *shared = GET(LoadedExecutable_GetExecutable, executable,
					     .loaded_executable = x);
	int64_t alias = GET(Executable_GetCompiledMemoryStats, alias_size_in_bytes,
			    .executable = shared);
	struct PJRT_Buffer *in[13], *out[17];
	size_t bytes = 0;
	FILE *f = fopen(TORCH_DIR "/train__mlp_sgd_mom.1.arrays", "rb");
	char line[64];

	(void)state;
	assert_non_null(f);
	for (unsigned i = 0; i < 13; i++) {
		static const float zero[64];
		int64_t dims[4];
		size_t n = 0, count = 1;
		char *at, type[8];

		assert_non_null(fgets(line, sizeof(line), f));
		assert_int_equal(sscanf(line, "in %7s", type), 1);
		for (at = line + 4 + strlen(type); *at && *at != '\n'; n++) {
			dims[n] = strtoll(at, &at, 10);
			count *= (size_t)dims[n];
		}
		assert_true(count <= 64);
		bytes += donated[i] ? count * sizeof(float) : 0;
		in[i] = put_as(client, zero, strcmp(type, "s64") ? PJRT_Buffer_Type_F32 :
			       PJRT_Buffer_Type_S64, dims, n);
	}
	fclose(f);
	assert_int_equal(alias, bytes);
	assert_ok(run_on(x, NULL, in, 13, out));
	for (unsigned i = 0; i < 13; i++) {
		assert_int_equal(is_deleted(in[i]), donated[i]);
		drop_buffer(in[i]);
	}
	for (unsigned i = 0; i < 17; i++)
		drop_buffer(out[i]);
	assert_ok(CALL(Executable_Destroy, .executable = shared));
	drop_exe(x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_module_comes_back_with_layouts),
		cmocka_unit_test(a_module_says_how_results_lie),
		cmocka_unit_test(mlir_is_shown_as_a_member_runs_it),
		cmocka_unit_test(mlir_comes_back_as_it_was),
		cmocka_unit_test(each_replica_runs_on_its_device),
		cmocka_unit_test(replicas_that_talk_run_by_one_call_or_one_each),
		cmocka_unit_test(a_step_of_training_takes_its_parameters),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
