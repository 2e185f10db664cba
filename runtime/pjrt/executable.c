/* SPDX-License-Identifier: Apache-2.0 */
/* Compiling, executables, execution, and the Layouts and Shardings extensions. */
#include <stdio.h>
#include <stdlib.h>

#include "runtime/pjrt/wrap.h"

/* ---- making ---- */

void pjrt_executable_unref(struct PJRT_Executable *x)
{
	if (!x || __atomic_sub_fetch(&x->refs, 1, __ATOMIC_ACQ_REL))
		return;
	rt_exe_unref(x->rt);
	free(x->output_types);
	free(x->output_dims);
	free(x->output_ranks);
	free(x->output_kinds);
	free(x->parameter_kinds);
	free(x->output_shardings);
	free(x->output_kind_sizes);
	free(x->parameter_kind_sizes);
	free(x->output_sharding_sizes);
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
	const struct image *im = rt_exe_image(x->rt);
	size_t n_args = im->info.n_args, at = 0;

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
		/* No bytes: replicated, which one device always is. */
		x->output_shardings[i] = "";
	}
	x->cost[0] = cost("flops", im->info.flops);
	x->cost[1] = cost("bytes accessed", im->info.bytes_accessed);
	x->cost[2] = cost("transcendentals", im->info.transcendentals);
	x->cost[3] = cost("optimal_seconds", (double)im->info.cost_ns * 1e-9);
}

static struct PJRT_Executable *make_shared(struct PJRT_Client *c, struct rt_exe *rt)
{
	const struct image *im = rt_exe_image(rt);
	struct PJRT_Executable *x = calloc(1, sizeof(*x));
	size_t n_args = im->info.n_args, n = im->info.n_results;

	if (!x) {
		rt_exe_unref(rt);
		return NULL;
	}
	x->refs = 1;
	x->rt = rt;
	x->client = c;
	x->n_outputs = n;
	x->output_types = calloc(n + 1, sizeof(*x->output_types));
	x->output_dims = calloc(n * IMAGE_MAX_RANK + 1, sizeof(*x->output_dims));
	x->output_ranks = calloc(n + 1, sizeof(*x->output_ranks));
	x->output_kinds = calloc(n + 1, sizeof(*x->output_kinds));
	x->output_kind_sizes = calloc(n + 1, sizeof(*x->output_kind_sizes));
	x->output_shardings = calloc(n + 1, sizeof(*x->output_shardings));
	x->output_sharding_sizes = calloc(n + 1, sizeof(*x->output_sharding_sizes));
	x->parameter_kinds = calloc(n_args + 1, sizeof(*x->parameter_kinds));
	x->parameter_kind_sizes = calloc(n_args + 1, sizeof(*x->parameter_kind_sizes));
	if (!x->output_types || !x->output_dims || !x->output_ranks || !x->output_kinds ||
	    !x->output_kind_sizes || !x->output_shardings || !x->output_sharding_sizes ||
	    !x->parameter_kinds || !x->parameter_kind_sizes) {
		pjrt_executable_unref(x);
		return NULL;
	}
	fill_facts(x);
	return x;
}

struct PJRT_LoadedExecutable *pjrt_loaded(struct PJRT_Client *c, struct rt_exe *x)
{
	struct PJRT_LoadedExecutable *l = calloc(1, sizeof(*l));

	if (!l) {
		rt_exe_unref(x);
		return NULL;
	}
	l->device = &c->devices[rt_exe_device(x)];
	l->shared = make_shared(c, x);
	if (!l->shared) {
		free(l);
		return NULL;
	}
	return l;
}

struct PJRT_Error *pjrt_Client_Compile(struct PJRT_Client_Compile_Args *args)
{
	const struct PJRT_Program *p = args->program;
	char format[16];
	struct rt_exe *x;
	struct err err;

	snprintf(format, sizeof(format), "%.*s", (int)(p->format_size > 15 ? 15 :
		 p->format_size), p->format);
	if (rt_compile(args->client->rt, p->code, p->code_size, format, args->compile_options,
		       args->compile_options_size, &x, &err))
		return pjrt_error(&err);
	args->executable = pjrt_loaded(args->client, x);
	return args->executable ? NULL : NO_ROOM();
}

struct PJRT_Error *pjrt_Executable_DeserializeAndLoad(
	struct PJRT_Executable_DeserializeAndLoad_Args *args)
{
	bool has_options = COVERS(args, PJRT_Executable_DeserializeAndLoad_Args,
				  overridden_serialized_compile_options_size) &&
			   args->overridden_serialized_compile_options;
	struct rt_exe *x;
	struct err err;

	if (rt_exe_deserialize(args->client->rt, args->serialized_executable,
			       args->serialized_executable_size, has_options ?
			       args->overridden_serialized_compile_options : NULL,
			       has_options ? args->overridden_serialized_compile_options_size :
			       0, &x, &err))
		return pjrt_error(&err);
	args->loaded_executable = pjrt_loaded(args->client, x);
	return args->loaded_executable ? NULL : NO_ROOM();
}

/* ---- executables ---- */

struct PJRT_Error *pjrt_Executable_Destroy(struct PJRT_Executable_Destroy_Args *args)
{
	pjrt_executable_unref(args->executable);
	return NULL;
}

struct PJRT_Error *pjrt_Executable_Name(struct PJRT_Executable_Name_Args *args)
{
	const struct image *im = rt_exe_image(args->executable->rt);

	args->executable_name = image_string(im, im->info.name);
	args->executable_name_size = strlen(args->executable_name);
	return NULL;
}

struct PJRT_Error *pjrt_Executable_NumReplicas(struct PJRT_Executable_NumReplicas_Args *args)
{
	args->num_replicas = 1;
	return NULL;
}

struct PJRT_Error *pjrt_Executable_NumPartitions(
	struct PJRT_Executable_NumPartitions_Args *args)
{
	args->num_partitions = 1;
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
	args->size_in_bytes = (int64_t)rt_exe_image(args->executable->rt)->text_bytes;
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
	args->num_parameters = rt_exe_image(args->executable->rt)->info.n_args;
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
	args->executable_fingerprint = rt_exe_fingerprint(args->executable->rt);
	args->executable_fingerprint_size = 64;
	return NULL;
}

struct PJRT_Error *pjrt_LoadedExecutable_Fingerprint(
	struct PJRT_LoadedExecutable_Fingerprint_Args *args)
{
	args->executable_fingerprint = rt_exe_fingerprint(args->executable->shared->rt);
	args->executable_fingerprint_size = 64;
	return NULL;
}

struct PJRT_Error *pjrt_Executable_GetCompiledMemoryStats(
	struct PJRT_Executable_GetCompiledMemoryStats_Args *args)
{
	const struct image *im = rt_exe_image(args->executable->rt);
	int64_t in = 0, out = 0, alias = 0, temp = (int64_t)im->info.temp_bytes;

	for (uint32_t i = 0; i < im->info.n_args; i++)
		in += (int64_t)image_shape_bytes(&im->shapes[i]);
	for (uint32_t i = 0; i < im->info.n_results; i++) {
		const struct image_shape *s = &im->shapes[im->info.n_args + i];

		out += (int64_t)image_shape_bytes(s);
		alias += s->alias >= 0 ? (int64_t)image_shape_bytes(s) : 0;
	}
	args->generated_code_size_in_bytes = (int64_t)im->text_bytes;
	args->argument_size_in_bytes = in;
	args->output_size_in_bytes = out;
	args->alias_size_in_bytes = alias;
	args->temp_size_in_bytes = temp;
	args->host_generated_code_size_in_bytes = args->host_argument_size_in_bytes =
		args->host_output_size_in_bytes = args->host_alias_size_in_bytes =
		args->host_temp_size_in_bytes = 0;
	if (COVERS(args, PJRT_Executable_GetCompiledMemoryStats_Args, peak_memory_in_bytes))
		args->peak_memory_in_bytes = in + out - alias + temp;
	if (COVERS(args, PJRT_Executable_GetCompiledMemoryStats_Args,
		   peak_unpadded_heap_bytes)) {
		args->total_size_in_bytes = in + out - alias + temp;
		args->total_allocation_bytes = out - alias + temp;
		args->indefinite_allocations = 0;
		args->peak_unpadded_heap_bytes = out - alias + temp;
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

	if (rt_exe_serialize(args->executable->rt, &p, &n, &err))
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
	args->serialized_bytes = rt_exe_options(args->executable->rt,
						&args->serialized_bytes_size);
	args->serialized_compile_options = NULL;
	args->serialized_compile_options_deleter = (void *)keep;
	return NULL;
}

/* ---- loaded executables ---- */

struct PJRT_Error *pjrt_LoadedExecutable_Destroy(
	struct PJRT_LoadedExecutable_Destroy_Args *args)
{
	if (args->executable)
		pjrt_executable_unref(args->executable->shared);
	free(args->executable);
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
	args->addressable_devices = &args->executable->device->self;
	args->num_addressable_devices = 1;
	return NULL;
}

struct PJRT_Error *pjrt_LoadedExecutable_AddressableDeviceLogicalIds(
	struct PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args *args)
{
	args->addressable_device_logical_ids = &args->executable->logical;
	args->num_addressable_device_logical_ids = 1;
	return NULL;
}

struct PJRT_Error *pjrt_LoadedExecutable_GetDeviceAssignment(
	struct PJRT_LoadedExecutable_GetDeviceAssignment_Args *args)
{
	/* replica_count 1, computation_count 1, one list of one id (a varint). */
	uint8_t *p = malloc(24), *id;
	unsigned n = 0, v = args->executable->device->index;

	if (!p)
		return NO_ROOM();
	memcpy(p, "\x08\x01\x10\x01\x1a", 5);
	id = p + 8;
	do {
		id[n++] = (uint8_t)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
		v >>= 7;
	} while (v);
	p[5] = (uint8_t)(n + 2);
	p[6] = 0x0a;
	p[7] = (uint8_t)n;
	args->serialized_bytes = (const char *)p;
	args->serialized_bytes_size = 8 + n;
	args->serialized_device_assignment = (void *)p;
	args->serialized_device_assignment_deleter = (void *)free_serialized;
	return NULL;
}

struct PJRT_Error *pjrt_LoadedExecutable_Delete(
	struct PJRT_LoadedExecutable_Delete_Args *args)
{
	rt_exe_delete(args->executable->shared->rt);
	return NULL;
}

struct PJRT_Error *pjrt_LoadedExecutable_IsDeleted(
	struct PJRT_LoadedExecutable_IsDeleted_Args *args)
{
	args->is_deleted = rt_exe_is_deleted(args->executable->shared->rt);
	return NULL;
}

/* ---- execution ---- */

static void mark_kept(const struct PJRT_ExecuteOptions *o, size_t n, bool *kept)
{
	memset(kept, 0, n);
	for (size_t i = 0; o && i < o->num_non_donatable_input_indices; i++) {
		int64_t k = o->non_donatable_input_indices[i];

		if (k >= 0 && (size_t)k < n)
			kept[k] = true;
	}
}

static struct PJRT_Error *wrap_outputs(struct PJRT_Client *c, struct rt_buffer **from,
				       size_t n, struct PJRT_Buffer **to)
{
	for (size_t i = 0; i < n; i++) {
		to[i] = pjrt_buffer(c, from[i]);
		if (to[i])
			continue;
		for (size_t k = i + 1; k < n; k++)
			rt_buffer_unref(from[k]);
		while (i-- > 0) {
			rt_buffer_unref(to[i]->rt);
			free(to[i]);
		}
		return NO_ROOM();
	}
	return NULL;
}

struct PJRT_Error *pjrt_LoadedExecutable_Execute(
	struct PJRT_LoadedExecutable_Execute_Args *args)
{
	enum { FEW = 64 };
	struct PJRT_Executable *x = args->executable->shared;
	size_t n = args->num_args, n_out = x->n_outputs;
	struct rt_buffer *some_in[FEW], *some_out[FEW], **in, **out;
	bool some_kept[FEW], *kept;
	struct PJRT_Error *e = NULL;
	struct rt_event *done;
	struct err err;

	if (args->num_devices != 1)
		return pjrt_error_text(ERR_INVALID_ARGUMENT, "the program runs on 1 device; "
				       "argument lists for %zu came", args->num_devices);
	if (args->options && (args->options->num_send_ops || args->options->num_recv_ops))
		return pjrt_error_text(ERR_UNIMPLEMENTED, "host callbacks do not run yet");
	in = n <= FEW ? some_in : malloc(n * sizeof(*in));
	kept = n <= FEW ? some_kept : malloc(n * sizeof(*kept));
	out = n_out <= FEW ? some_out : malloc(n_out * sizeof(*out));
	if (!in || !kept || !out) {
		e = NO_ROOM();
		goto free_lists;
	}
	for (size_t i = 0; i < n; i++)
		in[i] = args->argument_lists[0][i]->rt;
	mark_kept(args->options, n, kept);
	if (rt_execute(x->rt, in, n, kept, out, &done, &err)) {
		e = pjrt_error(&err);
		goto free_lists;
	}
	e = wrap_outputs(x->client, out, n_out, args->output_lists[0]);
	if (!e && args->device_complete_events) {
		args->device_complete_events[0] = pjrt_event(done);
		if (!args->device_complete_events[0])
			e = NO_ROOM();
	} else {
		rt_event_unref(done);
	}
free_lists:
	if (in != some_in)
		free(in);
	if (kept != some_kept)
		free(kept);
	if (out != some_out)
		free(out);
	return e;
}

/* ---- extensions ---- */

/* A layout is a rank: all are row-major. */
struct layout {
	unsigned rank;
	char text[IMAGE_MAX_RANK * 4 + 8];
};

static struct layout *new_layout(unsigned rank)
{
	struct layout *l = calloc(1, sizeof(*l));
	size_t n = 0;

	if (!l)
		return NULL;
	l->rank = rank;
	n += (size_t)snprintf(l->text, sizeof(l->text), "{");
	for (unsigned d = 0; d < rank; d++)
		n += (size_t)snprintf(l->text + n, sizeof(l->text) - n, "%s%u", d ? "," : "",
				      rank - 1 - d);
	snprintf(l->text + n, sizeof(l->text) - n, "}");
	return l;
}

static struct PJRT_Error *layout_destroy(struct PJRT_Layouts_MemoryLayout_Destroy_Args *args)
{
	free(args->layout);
	return NULL;
}

static struct PJRT_Error *layout_serialize(
	struct PJRT_Layouts_MemoryLayout_Serialize_Args *args)
{
	struct layout *l = (void *)args->layout;

	args->serialized_bytes = l->text;
	args->serialized_bytes_size = strlen(l->text);
	args->serialized_layout = NULL;
	args->serialized_layout_deleter = (void *)keep;
	return NULL;
}

static struct PJRT_Error *layout_default(
	struct PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args *args)
{
	args->layout = (void *)new_layout((unsigned)args->num_dims);
	return args->layout ? NULL : NO_ROOM();
}

static struct PJRT_Error *layout_topology(
	struct PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args *args)
{
	args->layout = (void *)new_layout((unsigned)args->num_dims);
	return args->layout ? NULL : NO_ROOM();
}

static struct PJRT_Error *layout_of_buffer(
	struct PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args *args)
{
	args->layout = (void *)new_layout(rt_buffer_shape(args->buffer->rt)->rank);
	return args->layout ? NULL : NO_ROOM();
}

/* The lists are the caller's layouts to destroy; the array is ours, kept with the
 * executable's life by being one of a kind. */
static struct PJRT_Error *layouts_of(const struct image_shape *shapes, size_t n, void **out)
{
	struct layout **list = calloc(n + 1, sizeof(*list));

	if (!list)
		return NO_ROOM();
	for (size_t i = 0; i < n; i++) {
		list[i] = new_layout(shapes[i].rank);
		if (list[i])
			continue;
		while (i-- > 0)
			free(list[i]);
		free(list);
		return NO_ROOM();
	}
	*out = list;
	return NULL;
}

static struct PJRT_Error *layouts_out(
	struct PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args *args)
{
	const struct image *im = rt_exe_image(args->executable->rt);
	void *list;
	struct PJRT_Error *e = layouts_of(im->shapes + im->info.n_args,
					  im->info.n_results, &list);

	if (e)
		return e;
	args->num_outputs = im->info.n_results;
	args->layouts = list;
	return NULL;
}

static struct PJRT_Error *layouts_in(
	struct PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args *args)
{
	const struct image *im = rt_exe_image(args->executable->rt);
	void *list;
	struct PJRT_Error *e = layouts_of(im->shapes, im->info.n_args, &list);

	if (e)
		return e;
	args->num_parameters = im->info.n_args;
	args->layouts = list;
	return NULL;
}

static struct PJRT_Error *shardings_out(
	struct PJRT_Shardings_PJRT_Executable_OutputShardings_Args *args)
{
	args->num_outputs = args->executable->n_outputs;
	args->shardings = args->executable->output_shardings;
	args->sharding_sizes = args->executable->output_sharding_sizes;
	return NULL;
}

static struct PJRT_Error *shardings_in(
	struct PJRT_Shardings_PJRT_Executable_ParameterShardings_Args *args)
{
	args->num_parameters = rt_exe_image(args->executable->rt)->info.n_args;
	args->shardings = NULL;
	args->sharding_sizes = NULL;
	return NULL;
}

struct PJRT_Extension_Base *pjrt_extensions(void)
{
	static struct PJRT_Shardings_Extension shardings = {
		.base = { .struct_size = PJRT_Shardings_Extension_SIZE,
			  .type = PJRT_Extension_Type_Shardings },
		.PJRT_Shardings_PJRT_Executable_ParameterShardings = (void *)shardings_in,
		.PJRT_Shardings_PJRT_Executable_OutputShardings = (void *)shardings_out,
	};
	static struct PJRT_Layouts_Extension layouts = {
		.base = { .struct_size = PJRT_Layouts_Extension_SIZE,
			  .type = PJRT_Extension_Type_Layouts, .next = &shardings.base },
		.PJRT_Layouts_MemoryLayout_Destroy = (void *)layout_destroy,
		.PJRT_Layouts_MemoryLayout_Serialize = (void *)layout_serialize,
		.PJRT_Layouts_PJRT_Client_GetDefaultLayout = (void *)layout_default,
		.PJRT_Layouts_PJRT_Buffer_MemoryLayout = (void *)layout_of_buffer,
		.PJRT_Layouts_PJRT_Topology_GetDefaultLayout = (void *)layout_topology,
		.PJRT_Layouts_PJRT_Executable_GetOutputLayouts = (void *)layouts_out,
		.PJRT_Layouts_PJRT_Executable_GetParameterLayouts = (void *)layouts_in,
	};

	return &layouts.base;
}
