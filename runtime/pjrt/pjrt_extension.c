/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Layouts and Shardings extensions. Layouts and shardings of an executable are its
 * own and live as long; a layout of a buffer or a default one is its asker's.
 */
#include <stdlib.h>

#include "runtime/pjrt/pjrt_wrap.h"

static struct PJRT_Error *refuse(const char *name, const char *what)
{
	return pjrt_error_text(ERR_INVALID_ARGUMENT, "%s: %s", name, what);
}

/* As in pjrt_api.c: a struct that is too short, or lacks what the function stands on. */
#define CHECK(args, type, field) do { \
	if (!(args)) \
		return refuse(#type, "NULL"); \
	if ((args)->struct_size < type##_SIZE) \
		return refuse(#type, "unexpected struct_size"); \
	if (!(args)->field) \
		return refuse(#type, "`" #field "` is NULL"); \
} while (0)

static struct PJRT_Error *give_layout(const struct rt_shape *s,
				      struct PJRT_Layouts_MemoryLayout **out)
{
	struct pjrt_layout *l = calloc(1, sizeof(*l));

	if (!l)
		return NO_ROOM();
	pjrt_layout_init(l, s);
	*out = (void *)l;
	return NULL;
}

/* Row-major. */
static struct PJRT_Error *give_default(size_t rank, struct PJRT_Layouts_MemoryLayout **out)
{
	const struct rt_shape s = { .rank = (unsigned)rank };

	if (rank > IMAGE_MAX_RANK)
		return pjrt_error_text(ERR_INVALID_ARGUMENT, "a layout of %zu dims, at most %d",
				       rank, IMAGE_MAX_RANK);
	return give_layout(&s, out);
}

static struct PJRT_Error *layout_destroy(struct PJRT_Layouts_MemoryLayout_Destroy_Args *args)
{
	struct pjrt_layout *l;

	CHECK(args, PJRT_Layouts_MemoryLayout_Destroy_Args, struct_size);
	l = (void *)args->layout;
	if (l && !l->is_executables)
		free(l);
	return NULL;
}

static void keep(void *p)
{
	(void)p;	/* the text is the layout's */
}

static struct PJRT_Error *layout_serialize(
	struct PJRT_Layouts_MemoryLayout_Serialize_Args *args)
{
	struct pjrt_layout *l;

	CHECK(args, PJRT_Layouts_MemoryLayout_Serialize_Args, layout);
	l = (void *)args->layout;
	args->serialized_bytes = l->text;
	args->serialized_bytes_size = strlen(l->text);
	args->serialized_layout = NULL;
	args->serialized_layout_deleter = (void *)keep;
	return NULL;
}

static struct PJRT_Error *layout_default(
	struct PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args *args)
{
	CHECK(args, PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args, client);
	return give_default(args->num_dims, &args->layout);
}

static struct PJRT_Error *layout_topology(
	struct PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args *args)
{
	CHECK(args, PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args, topology_description);
	return give_default(args->num_dims, &args->layout);
}

static struct PJRT_Error *layout_of_buffer(
	struct PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args *args)
{
	CHECK(args, PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args, buffer);
	return give_layout(rt_buffer_shape(args->buffer->rt), &args->layout);
}

static struct PJRT_Error *layouts_out(
	struct PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args *args)
{
	struct PJRT_Executable *x;

	CHECK(args, PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args, executable);
	x = args->executable;
	args->num_outputs = x->n_outputs;
	args->layouts = (void *)(x->layout_list + rt_program_image(x->rt)->info.n_args);
	return NULL;
}

static struct PJRT_Error *layouts_in(
	struct PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args *args)
{
	CHECK(args, PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args, executable);
	args->num_parameters = args->executable->n_parameters;
	args->layouts = (void *)args->executable->layout_list;
	return NULL;
}

static struct PJRT_Error *shardings_out(
	struct PJRT_Shardings_PJRT_Executable_OutputShardings_Args *args)
{
	struct PJRT_Executable *x;
	size_t first;

	CHECK(args, PJRT_Shardings_PJRT_Executable_OutputShardings_Args, executable);
	x = args->executable;
	first = rt_program_image(x->rt)->info.n_args;
	/* A list without entries is refused by clients; NULL says that there is none. */
	args->num_outputs = x->n_outputs;
	args->shardings = x->n_outputs ? x->shardings + first : NULL;
	args->sharding_sizes = x->n_outputs ? x->sharding_sizes + first : NULL;
	return NULL;
}

static struct PJRT_Error *shardings_in(
	struct PJRT_Shardings_PJRT_Executable_ParameterShardings_Args *args)
{
	CHECK(args, PJRT_Shardings_PJRT_Executable_ParameterShardings_Args, executable);
	args->num_parameters = args->executable->n_parameters;
	args->shardings = args->num_parameters ? args->executable->shardings : NULL;
	args->sharding_sizes = args->num_parameters ? args->executable->sharding_sizes : NULL;
	return NULL;
}

struct PJRT_Extension_Base *pjrt_extensions(void)
{
	struct PJRT_Extension_Base *profiler = pjrt_profiler_extension();
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

	profiler->next = pjrt_partitioner_extension(pjrt_ranks_extension());
	shardings.base.next = pjrt_ffi_extensions(profiler);
	return &layouts.base;
}
