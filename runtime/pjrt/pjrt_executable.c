/* SPDX-License-Identifier: Apache-2.0 */
/* Compiling, with a client or for a topology; executables; execution. */
#include <stdatomic.h>
#include <stdlib.h>

#include "runtime/pjrt/pjrt_wrap.h"

/* ---- making ---- */

static void unref_executable(struct PJRT_Executable *x)
{
	if (!x || __atomic_sub_fetch(&x->refs, 1, __ATOMIC_ACQ_REL))
		return;
	rt_program_unref(x->rt);
	free(x->output_types);
	free(x->output_dims);
	free(x->output_ranks);
	free(x->output_kinds);
	free(x->parameter_kinds);
	free(x->shardings);
	free(x->output_kind_sizes);
	free(x->parameter_kind_sizes);
	free(x->sharding_sizes);
	free(x->layouts);
	free(x->layout_list);
	free(x);
}

static struct PJRT_NamedValue cost(const char *name, double v)
{
	return (struct PJRT_NamedValue){ .struct_size = PJRT_NamedValue_SIZE, .name = name,
		.name_size = strlen(name), .type = PJRT_NamedValue_kFloat,
		.float_value = (float)v, .value_size = 1 };
}

static void fill_facts(struct PJRT_Executable *x)
{
	const struct image *im = rt_program_image(x->rt);
	size_t n_args = im->info.n_args, at = 0, next = 0;
	uint32_t bytes = 0;

	for (size_t i = 0; i < n_args + x->n_outputs; i++) {
		struct rt_shape shape;

		rt_shape_of(&im->shapes[i], &shape);
		x->layout_list[i] = &x->layouts[i];
		pjrt_layout_init(&x->layouts[i], &shape);
		x->layouts[i].is_executables = true;
		/* No bytes: replicated, which one device always is. */
		x->shardings[i] = im->shardings_bytes ?
				  image_next_sharding(im, &next, &bytes) : "";
		x->sharding_sizes[i] = bytes;
	}
	for (size_t i = 0; i < n_args; i++) {
		x->parameter_kinds[i] = rt_memory_kind_names[im->shapes[i].memory_kind];
		x->parameter_kind_sizes[i] = strlen(x->parameter_kinds[i]);
	}
	for (size_t i = 0; i < x->n_outputs; i++) {
		const struct image_shape *s = &im->shapes[n_args + i];

		x->output_types[i] = s->elem;
		x->output_ranks[i] = s->rank;
		memcpy(x->output_dims + at, s->dim, s->rank * sizeof(*s->dim));
		at += s->rank;
		x->output_kinds[i] = rt_memory_kind_names[s->memory_kind];
		x->output_kind_sizes[i] = strlen(x->output_kinds[i]);
	}
	x->cost[0] = cost("flops", im->info.flops);
	x->cost[1] = cost("bytes accessed", im->info.bytes_accessed);
	x->cost[2] = cost("transcendentals", im->info.transcendentals);
	x->cost[3] = cost("optimal_seconds", (double)im->info.cost_ns * 1e-9);
}

static struct PJRT_Executable *make_executable(struct rt_program *p)
{
	const struct image *im = rt_program_image(p);
	struct PJRT_Executable *x = calloc(1, sizeof(*x));
	size_t n_args = im->info.n_args, n = im->info.n_results - image_n_result_sizes(im);
	size_t both = n_args + n + 1;

	if (!x) {
		rt_program_unref(p);
		return NULL;
	}
	x->refs = 1;
	x->rt = p;
	x->n_outputs = n;
	x->n_parameters = n_args - image_n_arg_sizes(im);
	x->output_types = calloc(n + 1, sizeof(*x->output_types));
	x->output_dims = calloc(n * IMAGE_MAX_RANK + 1, sizeof(*x->output_dims));
	x->output_ranks = calloc(n + 1, sizeof(*x->output_ranks));
	x->output_kinds = calloc(n + 1, sizeof(*x->output_kinds));
	x->output_kind_sizes = calloc(n + 1, sizeof(*x->output_kind_sizes));
	x->parameter_kinds = calloc(n_args + 1, sizeof(*x->parameter_kinds));
	x->parameter_kind_sizes = calloc(n_args + 1, sizeof(*x->parameter_kind_sizes));
	x->shardings = calloc(both, sizeof(*x->shardings));
	x->sharding_sizes = calloc(both, sizeof(*x->sharding_sizes));
	x->layouts = calloc(both, sizeof(*x->layouts));
	x->layout_list = calloc(both, sizeof(*x->layout_list));
	if (!x->output_types || !x->output_dims || !x->output_ranks || !x->output_kinds ||
	    !x->output_kind_sizes || !x->shardings || !x->sharding_sizes ||
	    !x->parameter_kinds || !x->parameter_kind_sizes || !x->layouts ||
	    !x->layout_list) {
		unref_executable(x);
		return NULL;
	}
	fill_facts(x);
	return x;
}

static void free_loaded(struct PJRT_LoadedExecutable *l)
{
	rt_free_gang(&l->rt);
	unref_executable(l->shared);
	free(l->devices);
	free(l->logical);
	free(l);
}

/* Takes the executables. */
static struct PJRT_Error *give_loaded(struct PJRT_Client *c, struct rt_gang *r,
				      struct PJRT_LoadedExecutable **out)
{
	struct PJRT_LoadedExecutable *l = calloc(1, sizeof(*l));

	if (!l) {
		rt_free_gang(r);
		return NO_ROOM();
	}
	l->rt = *r;
	l->client = c;
	l->devices = calloc(r->n, sizeof(*l->devices));
	l->logical = calloc(r->n, sizeof(*l->logical));
	rt_program_ref(rt_exe_program(r->exe[0]));
	l->shared = make_executable(rt_exe_program(r->exe[0]));
	if (!l->devices || !l->logical || !l->shared) {
		free_loaded(l);
		return NO_ROOM();
	}
	for (unsigned i = 0; i < r->n; i++) {
		unsigned m = rt_exe_member(r->exe[i]);

		l->devices[i] = &c->own[rt_exe_device(r->exe[i])];
		l->logical[i].replica = (int)(m / r->members.partitions);
		l->logical[i].partition = (int)(m % r->members.partitions);
	}
	*out = l;
	return NULL;
}

static struct PJRT_Error *read_program(const struct PJRT_Program *p, char format[16])
{
	if (p->struct_size < PJRT_Program_SIZE)
		return pjrt_error_text(ERR_INVALID_ARGUMENT, "Unexpected PJRT_Program size: "
				       "expected %u, got %zu", PJRT_Program_SIZE,
				       p->struct_size);
	if (!p->code || !p->code_size || !p->format)
		return pjrt_error_text(ERR_INVALID_ARGUMENT, "a program of %zu bytes at %p, its "
				       "format at %p", p->code_size, (void *)p->code,
				       (const void *)p->format);
	if (p->format_size > 15 || memchr(p->format, 0, p->format_size))
		return pjrt_error_text(ERR_INVALID_ARGUMENT, "Unknown program format '%.*s'.",
				       (int)(p->format_size > 40 ? 40 : p->format_size),
				       p->format);
	memcpy(format, p->format, p->format_size);
	format[p->format_size] = 0;
	return NULL;
}

static struct PJRT_Error *check_bytes(const char *what, const void *p, size_t n)
{
	if (p || !n)
		return NULL;
	return pjrt_error_text(ERR_INVALID_ARGUMENT, "%zu bytes of %s at NULL", n, what);
}

struct PJRT_Error *pjrt_Client_Compile(struct PJRT_Client_Compile_Args *args)
{
	const struct PJRT_Program *p = args->program;
	char format[16];
	struct PJRT_Error *e = read_program(p, format);
	struct rt_gang x;
	struct err err;

	if (!e)
		e = check_bytes("compile_options", args->compile_options,
				args->compile_options_size);
	if (e)
		return e;
	if (rt_compile_gang(args->client->rt, p->code, p->code_size, format,
				args->compile_options, args->compile_options_size, &x, &err))
		return pjrt_error(&err);
	return give_loaded(args->client, &x, &args->executable);
}

struct PJRT_Error *pjrt_Compile(struct PJRT_Compile_Args *args)
{
	const struct PJRT_Program *p = args->program;
	const struct rt_topology *t = &args->topology->rt;
	struct rt_target target = t->target;
	struct rt_program *program;
	struct PJRT_Error *e;
	char format[16];
	struct err err;

	e = read_program(p, format);
	if (!e)
		e = check_bytes("compile_options", args->compile_options,
				args->compile_options_size);
	if (e)
		return e;
	target.partitioners = pjrt_partitioners();
	if (rt_check_options(t->n_devices, args->compile_options, args->compile_options_size,
			     &err) ||
	    rt_program_compile(&target, p->code, p->code_size, format, args->compile_options,
			       args->compile_options_size, &program, &err))
		return pjrt_error(&err);
	args->executable = make_executable(program);
	return args->executable ? NULL : NO_ROOM();
}

struct PJRT_Error *pjrt_Client_Load(struct PJRT_Client_Load_Args *args)
{
	struct PJRT_Error *e = check_bytes("compile_options", args->compile_options,
					   args->compile_options_size);
	struct rt_gang x;
	struct err err;

	if (e)
		return e;
	if (rt_load_gang(args->client->rt, args->executable->rt, args->compile_options,
			     args->compile_options_size, &x, &err))
		return pjrt_error(&err);
	return give_loaded(args->client, &x, &args->loaded_executable);
}

struct PJRT_Error *pjrt_Executable_DeserializeAndLoad(
	struct PJRT_Executable_DeserializeAndLoad_Args *args)
{
	const char *options = args->overridden_serialized_compile_options;
	size_t n = options ? args->overridden_serialized_compile_options_size : 0;
	struct rt_program *p;
	struct rt_gang x;
	struct err err;
	int code;

	if (rt_program_deserialize(args->serialized_executable,
				   args->serialized_executable_size, &p, &err))
		return pjrt_error(&err);
	code = rt_load_gang(args->client->rt, p, options, n, &x, &err);
	rt_program_unref(p);
	return code ? pjrt_error(&err) :
		      give_loaded(args->client, &x, &args->loaded_executable);
}

/* ---- executables ---- */

struct PJRT_Error *pjrt_Executable_Destroy(struct PJRT_Executable_Destroy_Args *args)
{
	unref_executable(args->executable);
	return NULL;
}

struct PJRT_Error *pjrt_Executable_Name(struct PJRT_Executable_Name_Args *args)
{
	const struct image *im = rt_program_image(args->executable->rt);

	args->executable_name = image_string(im, im->info.name);
	args->executable_name_size = strlen(args->executable_name);
	return NULL;
}

struct PJRT_Error *pjrt_Executable_NumReplicas(struct PJRT_Executable_NumReplicas_Args *args)
{
	args->num_replicas = rt_program_members(args->executable->rt).replicas;
	return NULL;
}

struct PJRT_Error *pjrt_Executable_NumPartitions(
	struct PJRT_Executable_NumPartitions_Args *args)
{
	args->num_partitions = rt_program_members(args->executable->rt).partitions;
	return NULL;
}

struct PJRT_Error *pjrt_Executable_NumOutputs(struct PJRT_Executable_NumOutputs_Args *args)
{
	args->num_outputs = args->executable->n_outputs;
	return NULL;
}

struct PJRT_Error *pjrt_Executable_SizeOfGeneratedCodeInBytes(
	struct PJRT_Executable_SizeOfGeneratedCodeInBytes_Args *args)
{
	args->size_in_bytes = (int64_t)rt_program_image(args->executable->rt)->text_bytes;
	return NULL;
}

struct PJRT_Error *pjrt_Executable_GetCostAnalysis(
	struct PJRT_Executable_GetCostAnalysis_Args *args)
{
	args->properties = args->executable->cost;
	args->num_properties = 4;
	return NULL;
}

struct PJRT_Error *pjrt_Executable_OutputMemoryKinds(
	struct PJRT_Executable_OutputMemoryKinds_Args *args)
{
	args->num_outputs = args->executable->n_outputs;
	args->memory_kinds = args->executable->output_kinds;
	args->memory_kind_sizes = args->executable->output_kind_sizes;
	return NULL;
}

struct PJRT_Error *pjrt_Executable_ParameterMemoryKinds(
	struct PJRT_Executable_ParameterMemoryKinds_Args *args)
{
	args->num_parameters = args->executable->n_parameters;
	args->memory_kinds = args->executable->parameter_kinds;
	args->memory_kind_sizes = args->executable->parameter_kind_sizes;
	return NULL;
}

struct PJRT_Error *pjrt_Executable_OutputElementTypes(
	struct PJRT_Executable_OutputElementTypes_Args *args)
{
	args->output_types = args->executable->output_types;
	args->num_output_types = args->executable->n_outputs;
	return NULL;
}

struct PJRT_Error *pjrt_Executable_OutputDimensions(
	struct PJRT_Executable_OutputDimensions_Args *args)
{
	args->num_outputs = args->executable->n_outputs;
	args->dims = args->executable->output_dims;
	args->dim_sizes = args->executable->output_ranks;
	return NULL;
}

struct PJRT_Error *pjrt_Executable_Fingerprint(struct PJRT_Executable_Fingerprint_Args *args)
{
	args->executable_fingerprint = rt_program_fingerprint(args->executable->rt);
	args->executable_fingerprint_size = 64;
	return NULL;
}

struct PJRT_Error *pjrt_LoadedExecutable_Fingerprint(
	struct PJRT_LoadedExecutable_Fingerprint_Args *args)
{
	args->executable_fingerprint = rt_program_fingerprint(args->executable->shared->rt);
	args->executable_fingerprint_size = 64;
	return NULL;
}

/* Of the arrays in one kind of memory, the device's own or the host's. */
struct sizes { int64_t in, out, alias; };

static struct sizes count_bytes(const struct image *im, bool is_host)
{
	struct sizes n = { 0 };

	for (uint32_t i = 0; i < im->info.n_args + im->info.n_results; i++) {
		const struct image_shape *s = &im->shapes[i];
		int64_t bytes = (int64_t)image_shape_bytes(s);

		if ((s->memory_kind != RT_DEVICE) != is_host)
			continue;
		if (i < im->info.n_args)
			n.in += bytes;
		else
			n.out += bytes;
		n.alias += i >= im->info.n_args && s->alias >= 0 ? bytes : 0;
	}
	return n;
}

struct PJRT_Error *pjrt_Executable_GetCompiledMemoryStats(
	struct PJRT_Executable_GetCompiledMemoryStats_Args *args)
{
	const struct image *im = rt_program_image(args->executable->rt);
	const struct sizes own = count_bytes(im, false), host = count_bytes(im, true);
	int64_t temp = (int64_t)im->info.temp_bytes, made = own.out - own.alias + temp;

	args->generated_code_size_in_bytes = (int64_t)im->text_bytes;
	args->argument_size_in_bytes = own.in;
	args->output_size_in_bytes = own.out;
	args->alias_size_in_bytes = own.alias;
	args->temp_size_in_bytes = temp;
	args->host_generated_code_size_in_bytes = args->host_temp_size_in_bytes = 0;
	args->host_argument_size_in_bytes = host.in;
	args->host_output_size_in_bytes = host.out;
	args->host_alias_size_in_bytes = host.alias;
	if (COVERS(args, PJRT_Executable_GetCompiledMemoryStats_Args, peak_memory_in_bytes))
		args->peak_memory_in_bytes = own.in + made;
	if (COVERS(args, PJRT_Executable_GetCompiledMemoryStats_Args,
		   peak_unpadded_heap_bytes)) {
		args->total_size_in_bytes = own.in + made;
		args->total_allocation_bytes = made;
		args->indefinite_allocations = 0;
		args->peak_unpadded_heap_bytes = made;
	}
	return NULL;
}

static void free_serialized(void *p)
{
	free(p);
}

struct PJRT_Error *pjrt_Executable_Serialize(struct PJRT_Executable_Serialize_Args *args)
{
	struct err err;
	void *p;
	size_t n;

	if (rt_program_serialize(args->executable->rt, &p, &n, &err))
		return pjrt_error(&err);
	args->serialized_bytes = p;
	args->serialized_bytes_size = n;
	args->serialized_executable = p;
	args->serialized_executable_deleter = (void *)free_serialized;
	return NULL;
}

static void keep(void *p)
{
	(void)p;
}

struct PJRT_Error *pjrt_Executable_GetCompileOptions(
	struct PJRT_Executable_GetCompileOptions_Args *args)
{
	args->serialized_bytes = rt_program_options(args->executable->rt,
						    &args->serialized_bytes_size);
	args->serialized_compile_options = NULL;
	args->serialized_compile_options_deleter = (void *)keep;
	return NULL;
}

/* Asked twice: for the size, and for the bytes. */
struct PJRT_Error *pjrt_Executable_OptimizedProgram(
	struct PJRT_Executable_OptimizedProgram_Args *args)
{
	struct PJRT_Program *p = args->program;
	const char *format;
	const void *source;
	struct err err;
	size_t n;

	if (p->struct_size < PJRT_Program_SIZE)
		return pjrt_error_text(ERR_INVALID_ARGUMENT, "Unexpected PJRT_Program size: "
				       "expected %u, got %zu", PJRT_Program_SIZE,
				       p->struct_size);
	if (rt_program_show(args->executable->rt, &source, &n, &format, &err))
		return pjrt_error(&err);
	if (p->code && p->code_size < n)
		return pjrt_error_text(ERR_INVALID_ARGUMENT, "PJRT_Executable_OptimizedProgram: "
				       "room for %zu bytes, the program has %zu", p->code_size,
				       n);
	if (p->code)
		memcpy(p->code, source, n);
	p->code_size = n;
	p->format = format;
	p->format_size = strlen(format);
	return NULL;
}

/* ---- loaded executables ---- */

struct PJRT_Error *pjrt_LoadedExecutable_Destroy(
	struct PJRT_LoadedExecutable_Destroy_Args *args)
{
	if (args->executable)
		free_loaded(args->executable);
	return NULL;
}

struct PJRT_Error *pjrt_LoadedExecutable_GetExecutable(
	struct PJRT_LoadedExecutable_GetExecutable_Args *args)
{
	args->executable = args->loaded_executable->shared;
	__atomic_add_fetch(&args->executable->refs, 1, __ATOMIC_RELAXED);
	return NULL;
}

struct PJRT_Error *pjrt_LoadedExecutable_AddressableDevices(
	struct PJRT_LoadedExecutable_AddressableDevices_Args *args)
{
	args->addressable_devices = args->executable->devices;
	args->num_addressable_devices = args->executable->rt.n;
	return NULL;
}

struct PJRT_Error *pjrt_LoadedExecutable_AddressableDeviceLogicalIds(
	struct PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args *args)
{
	args->addressable_device_logical_ids = args->executable->logical;
	args->num_addressable_device_logical_ids = args->executable->rt.n;
	return NULL;
}

struct PJRT_Error *pjrt_LoadedExecutable_GetDeviceAssignment(
	struct PJRT_LoadedExecutable_GetDeviceAssignment_Args *args)
{
	const struct PJRT_LoadedExecutable *l = args->executable;
	unsigned n = l->rt.members.replicas * l->rt.members.partitions;
	int64_t *ids = calloc(n, sizeof(*ids));
	struct err err;
	void *p;
	int code;

	if (!ids)
		return NO_ROOM();
	for (unsigned i = 0; i < n; i++)
		ids[i] = l->rt.ids[i];
	code = rt_assignment_proto(ids, l->rt.members, &p, &args->serialized_bytes_size, &err);
	free(ids);
	if (code)
		return pjrt_error(&err);
	args->serialized_bytes = p;
	args->serialized_device_assignment = p;
	args->serialized_device_assignment_deleter = (void *)free_serialized;
	return NULL;
}

struct PJRT_Error *pjrt_LoadedExecutable_Delete(
	struct PJRT_LoadedExecutable_Delete_Args *args)
{
	for (unsigned i = 0; i < args->executable->rt.n; i++)
		rt_exe_delete(args->executable->rt.exe[i]);
	return NULL;
}

struct PJRT_Error *pjrt_LoadedExecutable_IsDeleted(
	struct PJRT_LoadedExecutable_IsDeleted_Args *args)
{
	args->is_deleted = rt_exe_is_deleted(args->executable->rt.exe[0]);
	return NULL;
}

/* ---- execution ---- */

/* An execution: on all devices of the executable at once, or on one of them. */
struct execution {
	const struct PJRT_LoadedExecutable_Execute_Args *args;
	struct rt_gang on;	/* borrowed: the executables, a list for each */
	size_t n_args, n_outs;	/* of a device */
	bool *kept;	/* [n_args] */
	struct rt_buffer **in, **out;	/* by device, one after the other */
	struct rt_buffer *const **in_of;	/* [on.n], into in */
	struct rt_buffer ***out_of;
	struct rt_event **done;	/* [on.n] */
	struct PJRT_Event **events;	/* wrapped, if they are wanted */
};

/* Wraps what came; takes it, also on failure. */
static struct PJRT_Error *wrap(struct execution *e)
{
	struct PJRT_Client *c = e->args->executable->client;
	bool is_asked = e->args->device_complete_events;
	size_t n = e->on.n * e->n_outs, n_wrapped = 0;
	bool failed = false;

	for (unsigned d = 0; d < e->on.n; d++) {
		e->events[d] = is_asked ? pjrt_event(e->done[d]) : NULL;
		if (!is_asked)
			rt_event_unref(e->done[d]);
		failed |= is_asked && !e->events[d];
	}
	for (size_t i = 0; i < n; i++) {
		struct PJRT_Buffer *b = failed ? NULL : pjrt_buffer(c, e->out[i]);

		if (failed)
			rt_buffer_unref(e->out[i]);
		if (b)
			e->args->output_lists[i / e->n_outs][i % e->n_outs] = b;
		n_wrapped += b != NULL;
		failed |= !b;
	}
	for (unsigned d = 0; !failed && is_asked && d < e->on.n; d++)
		e->args->device_complete_events[d] = e->events[d];
	if (!failed)
		return NULL;
	for (size_t i = 0; i < n_wrapped; i++) {
		struct PJRT_Buffer *b = e->args->output_lists[i / e->n_outs][i % e->n_outs];

		rt_buffer_unref(b->rt);
		free(b);
	}
	for (unsigned d = 0; d < e->on.n; d++) {
		rt_event_unref(e->events[d] ? e->events[d]->event : NULL);
		free(e->events[d]);
	}
	return NO_ROOM();
}

/* How many devices the executable is to run on, by its number from *first on; 0: the caller
 * names one on which it was not loaded. */
static unsigned devices_of(const struct PJRT_LoadedExecutable_Execute_Args *args,
			   unsigned *first)
{
	const struct PJRT_LoadedExecutable *l = args->executable;

	*first = 0;
	if (!args->execute_device)
		return l->rt.n;
	for (; *first < l->rt.n; (*first)++)
		if (args->execute_device == l->devices[*first])
			return 1;
	return 0;
}

static struct PJRT_Error *check_options(const struct PJRT_ExecuteOptions *o, size_t n_devices)
{
	static const char name[] = "PJRT_LoadedExecutable_Execute";
	enum { OLDEST = 80 };	/* of PJRT_ExecuteOptions, in 0.75 */
	bool missing = false;

	if (!o)
		return NULL;
	if (o->struct_size < OLDEST)
		return pjrt_error_text(ERR_INVALID_ARGUMENT, "Unexpected PJRT_ExecuteOptions "
				       "size: expected %d, got %zu", OLDEST, o->struct_size);
	for (size_t d = 0; d < n_devices; d++)
		missing |= (o->num_send_ops && (!o->send_callbacks || !o->send_callbacks[d])) ||
			   (o->num_recv_ops && (!o->recv_callbacks || !o->recv_callbacks[d]));
	if (missing)
		return pjrt_error_text(ERR_INVALID_ARGUMENT, "%s: `send_callbacks` or "
				       "`recv_callbacks` is NULL", name);
	if (o->num_non_donatable_input_indices && !o->non_donatable_input_indices)
		return pjrt_error_text(ERR_INVALID_ARGUMENT, "%s: "
				       "`non_donatable_input_indices` is NULL", name);
	return NULL;
}

static struct PJRT_Error *check_lists(const struct PJRT_LoadedExecutable_Execute_Args *args)
{
	static const char name[] = "PJRT_LoadedExecutable_Execute";

	for (size_t d = 0; d < args->num_devices; d++) {
		if (args->num_args && (!args->argument_lists || !args->argument_lists[d]))
			return pjrt_error_text(ERR_INVALID_ARGUMENT, "%s: `argument_lists` is "
					       "NULL", name);
		for (size_t i = 0; i < args->num_args; i++)
			if (!args->argument_lists[d][i])
				return pjrt_error_text(ERR_INVALID_ARGUMENT, "%s: argument %zu "
						       "is NULL", name, i);
		if (args->executable->shared->n_outputs &&
		    (!args->output_lists || !args->output_lists[d]))
			return pjrt_error_text(ERR_INVALID_ARGUMENT, "%s: `output_lists` is NULL",
					       name);
	}
	return NULL;
}

static struct PJRT_Error *check_execute(const struct PJRT_LoadedExecutable_Execute_Args *args)
{
	static const char name[] = "PJRT_LoadedExecutable_Execute";
	const struct PJRT_LoadedExecutable *l = args->executable;
	unsigned first, n = devices_of(args, &first);
	struct PJRT_Error *e;

	if (!n)
		return pjrt_error_text(ERR_INVALID_ARGUMENT, "%s: `execute_device` is %s, the "
				       "program was loaded on %s%s", name,
				       args->execute_device->description.text,
				       l->devices[0]->description.text,
				       l->rt.n > 1 ? " and others" : "");
	if (args->num_devices != n)
		return pjrt_error_text(ERR_INVALID_ARGUMENT, "%s: the program %s on %u device%s; "
				       "argument lists for %zu came%s", name, args->execute_device ?
				       "is to run" : "was loaded", n, n > 1 ? "s" : "",
				       args->num_devices, n > 1 && args->num_devices == 1 ?
				       ": give one for each, or say by `execute_device` on which "
				       "one it is to run" : "");
	e = check_options(args->options, n);
	return e ? e : check_lists(args);
}

static struct PJRT_Error *launch_all(struct execution *x)
{
	static atomic_llong executions;
	const struct PJRT_ExecuteOptions *o = x->args->options;
	const struct image *im = rt_program_image(x->args->executable->shared->rt);
	int64_t id = atomic_fetch_add(&executions, 1) + 1;
	struct rt_host *hosts;
	struct PJRT_Error *e = NULL;
	unsigned n = 0;
	struct err err;
	int code;

	if (!im->n_transfers && !(o && (o->num_send_ops || o->num_recv_ops)))
		return rt_execute_gang(&x->on, x->in_of, x->n_args, x->kept, x->out_of, x->done,
				       &err) ? pjrt_error(&err) : NULL;
	hosts = calloc(x->on.n, sizeof(*hosts));
	if (!hosts)
		return NO_ROOM();
	while (!e && n < x->on.n) {
		e = pjrt_read_callbacks(o, id, n, &hosts[n]);
		n += !e;
	}
	if (e) {
		while (n--)
			hosts[n].free(hosts[n].arg);
	} else {
		code = rt_execute_gang_with_hosts(&x->on, x->in_of, x->n_args, x->kept, hosts,
						  x->out_of, x->done, &err);
		e = code ? pjrt_error(&err) : NULL;
	}
	free(hosts);
	return e;
}

/* With the sizes of arguments and results, of which the caller knows nothing, and with copies of
 * what the program takes as truth values. */
static struct PJRT_Error *launch_sized(struct execution *x)
{
	struct rt_sized *s = calloc(x->on.n, sizeof(*s));
	struct rt_buffer *const **in = calloc(x->on.n, sizeof(*in));
	struct rt_buffer ***out = calloc(x->on.n, sizeof(*out));
	struct PJRT_Error *e = s && in && out ? NULL : NO_ROOM();
	struct execution with = *x;
	unsigned n = 0;
	struct err err;

	for (; !e && n < x->on.n; n += !e) {
		if (rt_sized_begin(x->on.exe[n], x->in_of[n], x->n_args, x->kept, &s[n], &err))
			e = pjrt_error(&err);
		in[n] = s[n].in;
		out[n] = s[n].out;
	}
	if (!e) {
		with.n_args = s->n_args;
		with.kept = s->keep;
		with.in_of = in;
		with.out_of = out;
		e = launch_all(&with);
	}
	for (unsigned d = 0; d < n; d++)
		rt_sized_end(&s[d], !e, x->out_of[d]);
	free(s);
	free(in);
	free(out);
	return e;
}

static void mark_kept(const struct PJRT_ExecuteOptions *o, size_t n, bool *kept)
{
	memset(kept, 0, n);
	for (size_t i = 0; o && i < o->num_non_donatable_input_indices; i++) {
		int64_t k = o->non_donatable_input_indices[i];

		if (k >= 0 && (size_t)k < n)
			kept[k] = true;
	}
}

/* Everything but the lists' own memory is filled in. */
static struct PJRT_Error *execute(struct execution *x)
{
	bool is_sized = false;
	struct PJRT_Error *e;

	for (unsigned d = 0; d < x->on.n; d++) {
		x->in_of[d] = x->in + d * x->n_args;
		x->out_of[d] = x->out + d * x->n_outs;
		for (size_t i = 0; i < x->n_args; i++)
			x->in[d * x->n_args + i] = x->args->argument_lists[d][i]->rt;
		is_sized = is_sized || rt_sized_is_due(x->on.exe[d], x->in_of[d], x->n_args);
	}
	mark_kept(x->args->options, x->n_args, x->kept);
	e = is_sized ? launch_sized(x) : launch_all(x);
	return e ? e : wrap(x);
}

/* A block of it: of the room on the stack while that lasts. */
struct room { char *at, *end, *more; };

static void *take_room(struct room *r, size_t bytes)
{
	void *p = r->at;

	bytes = (bytes + 15) & ~(size_t)15;
	if ((size_t)(r->end - r->at) < bytes)
		return NULL;
	r->at += bytes;
	return p;
}

struct PJRT_Error *pjrt_LoadedExecutable_Execute(
	struct PJRT_LoadedExecutable_Execute_Args *args)
{
	enum { FEW = 2048, LISTS = 8, ALIGN = 16 };
	const struct PJRT_LoadedExecutable *l = args->executable;
	struct execution x = { .args = args, .n_args = args->num_args,
			       .n_outs = l->shared->n_outputs };
	_Alignas(16) char some[FEW];
	struct room room = { some, some + sizeof(some), NULL };
	struct PJRT_Error *e = check_execute(args);
	unsigned first;
	size_t n, bytes;

	if (e)
		return e;
	n = devices_of(args, &first);
	x.on = (struct rt_gang){ .members = l->rt.members, .n = (unsigned)n,
				 .exe = l->rt.exe + first };
	bytes = x.n_args + (n * (x.n_args + x.n_outs + 4)) * sizeof(void *) + LISTS * ALIGN;
	if (bytes > sizeof(some)) {
		room.more = malloc(bytes);
		if (!room.more)
			return NO_ROOM();
		room.at = room.more;
		room.end = room.more + bytes;
	}
	x.kept = take_room(&room, x.n_args);
	x.in = take_room(&room, n * x.n_args * sizeof(*x.in));
	x.out = take_room(&room, n * x.n_outs * sizeof(*x.out));
	x.in_of = take_room(&room, n * sizeof(*x.in_of));
	x.out_of = take_room(&room, n * sizeof(*x.out_of));
	x.done = take_room(&room, n * sizeof(*x.done));
	x.events = take_room(&room, n * sizeof(*x.events));
	e = execute(&x);
	free(room.more);
	return e;
}

/* ---- execute contexts, tracking events ---- */

/* Carries user data of the FFI extension. */
struct PJRT_Error *pjrt_ExecuteContext_Create(struct PJRT_ExecuteContext_Create_Args *args)
{
	struct PJRT_ExecuteContext *c = calloc(1, sizeof(*c));

	if (!c)
		return NO_ROOM();
	atomic_init(&c->refs, 1);
	args->context = c;
	return NULL;
}

struct PJRT_Error *pjrt_ExecuteContext_Destroy(struct PJRT_ExecuteContext_Destroy_Args *args)
{
	pjrt_context_unref(args->context);
	return NULL;
}

/* What the caller does on the device between creating and destroying it, for people. */
struct PJRT_AsyncTrackingEvent { char what[64]; };

struct PJRT_Error *pjrt_Device_CreateAsyncTrackingEvent(
	struct PJRT_Device_CreateAsyncTrackingEvent_Args *args)
{
	struct err text = pjrt_read_error(0, args->description, args->description_size);
	struct PJRT_AsyncTrackingEvent *t = calloc(1, sizeof(*t));

	if (!t)
		return NO_ROOM();
	memcpy(t->what, text.msg, sizeof(t->what) - 1);
	args->event = t;
	return NULL;
}

struct PJRT_Error *pjrt_AsyncTrackingEvent_Destroy(
	struct PJRT_AsyncTrackingEvent_Destroy_Args *args)
{
	free(args->event);
	return NULL;
}
