/* SPDX-License-Identifier: Apache-2.0 */
/* Topologies: devices that programs are compiled for without a client. */
#include <stdlib.h>

#include "runtime/pjrt/pjrt_wrap.h"

static void free_topology(struct PJRT_TopologyDescription *t)
{
	free(t->own);
	free(t->descriptions);
	free(t);
}

static struct PJRT_Error *make(const struct rt_topology *rt,
			       struct PJRT_TopologyDescription **out)
{
	struct PJRT_TopologyDescription *t = calloc(1, sizeof(*t));
	struct PJRT_Error *e;

	if (!t)
		return NO_ROOM();
	e = pjrt_read_platform(&t->platform);
	if (e) {
		free_topology(t);
		return e;
	}
	t->rt = *rt;
	t->own = calloc(rt->n_devices, sizeof(*t->own));
	t->descriptions = calloc(rt->n_devices, sizeof(*t->descriptions));
	if (!t->own || !t->descriptions) {
		free_topology(t);
		return NO_ROOM();
	}
	for (unsigned i = 0; i < rt->n_devices; i++) {
		/* Nobody knows how these are joined: in a row. */
		struct rt_global d = { .cores = rt->target.cores, .bus_id = "topology",
				       .coords = { i, 0, 0 } };

		memcpy(d.kind, rt->kind, sizeof(d.kind));
		pjrt_describe(&t->own[i], i, &d);
		t->descriptions[i] = &t->own[i];
	}
	*out = t;
	return NULL;
}

struct PJRT_Error *pjrt_TopologyDescription_Create(
	struct PJRT_TopologyDescription_Create_Args *args)
{
	const struct PJRT_NamedValue *v = args->create_options;
	struct rt_topology rt;
	struct err err;

	if ((args->topology_name_size && !args->topology_name) || (args->num_options && !v))
		return pjrt_error_text(ERR_INVALID_ARGUMENT, "PJRT_TopologyDescription_Create: "
				       "a name or options at NULL");
	if (rt_topology_parse(args->topology_name, args->topology_name_size, &rt, &err))
		return pjrt_error(&err);
	for (size_t i = 0; i < args->num_options; i++, v++) {
		char name[32] = "";

		if (v->name && v->name_size < sizeof(name))
			memcpy(name, v->name, v->name_size);
		if (v->type != PJRT_NamedValue_kInt64)
			return pjrt_error_text(ERR_INVALID_ARGUMENT, "a topology's option "
					       "\"%s\" is no integer", name);
		if (rt_topology_set(&rt, name, v->int64_value, &err))
			return pjrt_error(&err);
	}
	return make(&rt, &args->topology);
}

struct PJRT_Error *pjrt_TopologyDescription_Destroy(
	struct PJRT_TopologyDescription_Destroy_Args *args)
{
	if (args->topology && !args->topology->is_clients)
		free_topology(args->topology);
	return NULL;
}

struct PJRT_Error *pjrt_Client_TopologyDescription(
	struct PJRT_Client_TopologyDescription_Args *args)
{
	args->topology = &args->client->topology;
	return NULL;
}

struct PJRT_Error *pjrt_TopologyDescription_PlatformName(
	struct PJRT_TopologyDescription_PlatformName_Args *args)
{
	args->platform_name = args->topology->platform;
	args->platform_name_size = strlen(args->platform_name);
	return NULL;
}

struct PJRT_Error *pjrt_TopologyDescription_PlatformVersion(
	struct PJRT_TopologyDescription_PlatformVersion_Args *args)
{
	args->platform_version = pjrt_version;
	args->platform_version_size = strlen(pjrt_version);
	return NULL;
}

struct PJRT_Error *pjrt_TopologyDescription_GetDeviceDescriptions(
	struct PJRT_TopologyDescription_GetDeviceDescriptions_Args *args)
{
	args->descriptions = args->topology->descriptions;
	args->num_descriptions = args->topology->rt.n_devices;
	return NULL;
}

struct PJRT_Error *pjrt_TopologyDescription_Attributes(
	struct PJRT_TopologyDescription_Attributes_Args *args)
{
	args->attributes = NULL;
	args->num_attributes = 0;
	return NULL;
}

static void free_bytes(void *p)
{
	free(p);
}

struct PJRT_Error *pjrt_TopologyDescription_Serialize(
	struct PJRT_TopologyDescription_Serialize_Args *args)
{
	char *text = malloc(RT_TOPOLOGY_TEXT);

	if (!text)
		return NO_ROOM();
	rt_topology_write(&args->topology->rt, text);
	args->serialized_bytes = text;
	args->serialized_bytes_size = strlen(text);
	args->serialized_topology = (void *)text;
	args->serialized_topology_deleter = (void *)free_bytes;
	return NULL;
}

struct PJRT_Error *pjrt_TopologyDescription_Deserialize(
	struct PJRT_TopologyDescription_Deserialize_Args *args)
{
	struct rt_topology rt;
	struct err err;

	if (!args->serialized_topology_size)
		return pjrt_error_text(ERR_INVALID_ARGUMENT, "a serialized topology of 0 bytes");
	if (rt_topology_parse(args->serialized_topology, args->serialized_topology_size, &rt,
			      &err))
		return pjrt_error(&err);
	return make(&rt, &args->topology);
}

struct PJRT_Error *pjrt_TopologyDescription_Fingerprint(
	struct PJRT_TopologyDescription_Fingerprint_Args *args)
{
	char text[RT_TOPOLOGY_TEXT], hex[65];

	rt_topology_write(&args->topology->rt, text);
	rt_hash(text, strlen(text), hex);
	hex[16] = 0;
	args->fingerprint = strtoull(hex, NULL, 16);
	return NULL;
}

struct PJRT_Error *pjrt_TopologyDescription_GetMemorySpaceKindIds(
	struct PJRT_TopologyDescription_GetMemorySpaceKindIds_Args *args)
{
	/* As PJRT_Memory_Kind_Id: enum rt_memory_kind + 1. */
	static const int ids[RT_KINDS] = { RT_DEVICE + 1, RT_PINNED_HOST + 1,
					   RT_UNPINNED_HOST + 1 };

	args->memory_space_kind_ids = ids;
	args->num_memory_space_kind_ids = RT_KINDS;
	return NULL;
}

struct PJRT_Error *pjrt_TopologyDescription_MakeCanonicalShapeForMemorySpace(
	struct PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args *args)
{
	int id = args->memory_space_kind_id;
	struct rt_shape shape;
	struct PJRT_Error *e = pjrt_read_shape(args->element_type, args->dims, args->num_dims,
					       &shape);
	struct err err;
	void *p;

	if (!e)
		e = pjrt_read_layout(args->layout, &shape);
	if (!e && (id < 1 || id > RT_KINDS))
		e = pjrt_error_text(ERR_INVALID_ARGUMENT, "no memory has kind id %d; there are "
				    "1 to %d", id, RT_KINDS);
	if (e)
		return e;
	if (rt_shape_proto(&shape, (enum rt_memory_kind)(id - 1), &p,
			   &args->serialized_shape_size, &err))
		return pjrt_error(&err);
	args->serialized_shape = p;
	args->serialized_shape_deleter = (void *)free_bytes;
	return NULL;
}
