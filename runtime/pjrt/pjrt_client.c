/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin, its clients, their devices and memories. */
#include <stdio.h>
#include <stdlib.h>

#include "runtime/pjrt/pjrt_wrap.h"

/* ---- plugin ---- */

struct PJRT_Error *pjrt_Plugin_Initialize(struct PJRT_Plugin_Initialize_Args *args)
{
	(void)args;
	return NULL;
}

struct PJRT_Error *pjrt_Plugin_Attributes(struct PJRT_Plugin_Attributes_Args *args)
{
	static const int64_t current[] = { 1, 17, 0 }, minimum[] = { 1, 10, 0 };
	static const struct PJRT_NamedValue values[] = {
		{ .struct_size = PJRT_NamedValue_SIZE, .name = "xla_version", .name_size = 11,
		  .type = PJRT_NamedValue_kInt64, .int64_value = 2, .value_size = 1 },
		{ .struct_size = PJRT_NamedValue_SIZE, .name = "stablehlo_current_version",
		  .name_size = 25, .type = PJRT_NamedValue_kInt64List,
		  .int64_array_value = current, .value_size = 3 },
		{ .struct_size = PJRT_NamedValue_SIZE, .name = "stablehlo_minimum_version",
		  .name_size = 25, .type = PJRT_NamedValue_kInt64List,
		  .int64_array_value = minimum, .value_size = 3 },
	};

	args->attributes = values;
	args->num_attributes = sizeof(values) / sizeof(*values);
	return NULL;
}

/* ---- client ---- */

static void describe(struct PJRT_Device *d)
{
	unsigned id = (unsigned)(d - d->client->devices);
	struct rt_global g;

	rt_global_device(d->client->rt, id, &g);
	pjrt_describe(&d->description, id, &g);
	d->local = g.local;
	d->self = d;
	for (unsigned k = 0; k < RT_KINDS && d->local >= 0; k++) {
		struct PJRT_Memory *m = &d->memories[k];

		m->device = d;
		m->kind = (enum rt_memory_kind)k;
		m->id = (int)(id * RT_KINDS + k);
		snprintf(m->text, sizeof(m->text), "TesseraMemory(id=%d, kind=%s, device=%u)",
			 m->id, rt_memory_kind_names[k], id);
		d->memory_list[k] = m;
	}
}

static void free_client(struct PJRT_Client *c)
{
	pjrt_unlist_client(c);
	rt_client_close(c->rt);
	rt_client_unref(c->rt);
	free(c->devices);
	free(c->device_list);
	free(c->memory_list);
	free(c->topology.descriptions);
	free(c->store);
	free(c);
}

static char *copy_option(const struct PJRT_NamedValue *v)
{
	char *p = v->value_size < SIZE_MAX ? malloc(v->value_size + 1) : NULL;

	if (p) {
		memcpy(p, v->string_value, v->value_size);
		p[v->value_size] = 0;
	}
	return p;
}

static const char *type_text(unsigned type)
{
	static const char *const texts[] = {
		[PJRT_NamedValue_kString] = "a string", [PJRT_NamedValue_kInt64] = "an integer",
		[PJRT_NamedValue_kInt64List] = "a list of integers",
		[PJRT_NamedValue_kFloat] = "a float", [PJRT_NamedValue_kBool] = "a bool" };

	return type < sizeof(texts) / sizeof(*texts) ? texts[type] : "of no type there is";
}

/* What create_options say; texts are malloc'd. */
struct asked {
	char *devices, *sim;
	int64_t seed;
	bool has_seed;
	int64_t process, n_processes;	/* as a framework that spans several says */
};

/* Gives one text; the first of several of one name counts. */
static struct PJRT_Error *read_text(const struct PJRT_NamedValue *v, char **to)
{
	if (*to)
		return NULL;
	if (!v->string_value)
		return pjrt_error_text(ERR_INVALID_ARGUMENT, "create_options: \"%.*s\" has no "
				       "value", (int)v->name_size, v->name);
	*to = copy_option(v);
	return *to ? NULL : NO_ROOM();
}

static struct PJRT_Error *read_option(const struct PJRT_NamedValue *v, struct asked *out)
{
	const struct { const char *name; char **text; int64_t *number; } ours[] = {
		{ "devices", &out->devices, NULL }, { "sim", &out->sim, NULL },
		{ "rng_seed", NULL, &out->seed }, { "num_nodes", NULL, &out->n_processes },
		{ "node_id", NULL, &out->process } };
	unsigned i = 0, n = sizeof(ours) / sizeof(*ours), want;

	while (i < n && !(v->name && v->name_size == strlen(ours[i].name) &&
			  !memcmp(v->name, ours[i].name, v->name_size)))
		i++;
	if (i == n)
		return NULL;
	want = ours[i].text ? PJRT_NamedValue_kString : PJRT_NamedValue_kInt64;
	if ((unsigned)v->type != want)
		return pjrt_error_text(ERR_INVALID_ARGUMENT, "create_options: \"%s\" is %s, and "
				       "has to be %s", ours[i].name, type_text((unsigned)v->type),
				       type_text(want));
	if (ours[i].text)
		return read_text(v, ours[i].text);
	*ours[i].number = v->int64_value;
	out->has_seed |= ours[i].number == &out->seed;
	return NULL;
}

/* The options that are ours; others are somebody else's. */
static struct PJRT_Error *read_options(const struct PJRT_Client_Create_Args *args,
				       struct asked *out)
{
	const struct PJRT_NamedValue *v = args->create_options;
	struct PJRT_Error *e = NULL;

	if (args->num_options && !v)
		return pjrt_error_text(ERR_INVALID_ARGUMENT, "%zu create_options at NULL",
				       args->num_options);
	for (size_t i = 0; i < args->num_options && !e; i++)
		e = read_option(&v[i], out);
	return e;
}

static bool make_lists(struct PJRT_Client *c)
{
	rt_client_use_functions(c->rt, pjrt_ffi_functions());
	rt_client_use_partitioners(c->rt, pjrt_partitioners());
	c->n_devices = rt_global_count(c->rt);
	c->n_own = rt_device_count(c->rt);
	c->devices = calloc(c->n_devices, sizeof(*c->devices));
	c->device_list = calloc(c->n_devices, sizeof(*c->device_list));
	c->memory_list = calloc((size_t)c->n_own * RT_KINDS, sizeof(*c->memory_list));
	c->topology.descriptions = calloc(c->n_devices, sizeof(void *));
	if (!c->devices || !c->device_list || !c->memory_list || !c->topology.descriptions)
		return false;
	c->own = c->devices + rt_first_id(c->rt);
	rt_topology_of(c->rt, &c->topology.rt);
	c->topology.is_clients = true;
	for (unsigned i = 0; i < c->n_devices; i++) {
		c->devices[i].client = c;
		describe(&c->devices[i]);
		c->device_list[i] = &c->devices[i];
		c->topology.descriptions[i] = &c->devices[i].description;
	}
	for (unsigned i = 0; i < c->n_own * RT_KINDS; i++)
		c->memory_list[i] = &c->own[i / RT_KINDS].memories[i % RT_KINDS];
	return true;
}

/* One of several processes, by what was asked; one alone otherwise. */
static struct PJRT_Error *read_world(const struct PJRT_Client_Create_Args *args,
				     const struct asked *asked, struct PJRT_Client *c,
				     struct rt_world_options *out)
{
	struct PJRT_Error *e;

	if (asked->n_processes > RT_PROCESSES || asked->process < 0 ||
	    asked->process >= asked->n_processes)
		return pjrt_error_text(ERR_INVALID_ARGUMENT, "create_options: node_id is %lld, "
				       "num_nodes %lld; there may be up to %d processes, numbered "
				       "from 0", (long long)asked->process,
				       (long long)asked->n_processes, RT_PROCESSES);
	e = pjrt_read_store(args, &c->store);
	if (e)
		return e;
	*out = (struct rt_world_options){ (unsigned)asked->process,
					  (unsigned)asked->n_processes,
					  pjrt_exchange(c->store) };
	return NULL;
}

struct PJRT_Error *pjrt_Client_Create(struct PJRT_Client_Create_Args *args)
{
	struct PJRT_Client *c = calloc(1, sizeof(*c));
	struct asked asked = { 0 };
	uint64_t seed;
	struct rt_world_options world;
	struct rt_client_options o;
	struct PJRT_Error *e;
	struct err err;

	if (!c)
		return NO_ROOM();
	e = pjrt_read_platform(&c->topology.platform);
	if (!e)
		e = read_options(args, &asked);
	if (!e && asked.n_processes > 1)
		e = read_world(args, &asked, c, &world);
	seed = (uint64_t)asked.seed;
	o = (struct rt_client_options){ asked.devices, asked.sim,
					asked.has_seed ? &seed : NULL,
					asked.n_processes > 1 ? &world : NULL };
	if (!e && rt_client_create(&o, &c->rt, &err))
		e = pjrt_error(&err);
	if (!e)
		c->store = NULL;	/* the runtime's from now on */
	free(asked.devices);
	free(asked.sim);
	if (!e && !make_lists(c))
		e = NO_ROOM();
	if (e) {
		free_client(c);
		return e;
	}
	pjrt_list_client(c);
	args->client = c;
	return NULL;
}

struct PJRT_Error *pjrt_Client_Destroy(struct PJRT_Client_Destroy_Args *args)
{
	if (args->client)
		free_client(args->client);
	return NULL;
}

struct PJRT_Error *pjrt_Client_PlatformName(struct PJRT_Client_PlatformName_Args *args)
{
	args->platform_name = args->client->topology.platform;
	args->platform_name_size = strlen(args->platform_name);
	return NULL;
}

struct PJRT_Error *pjrt_Client_ProcessIndex(struct PJRT_Client_ProcessIndex_Args *args)
{
	args->process_index = (int)rt_process(args->client->rt);
	return NULL;
}

struct PJRT_Error *pjrt_Client_PlatformVersion(struct PJRT_Client_PlatformVersion_Args *args)
{
	args->platform_version = pjrt_version;
	args->platform_version_size = strlen(pjrt_version);
	return NULL;
}

struct PJRT_Error *pjrt_Client_Devices(struct PJRT_Client_Devices_Args *args)
{
	args->devices = args->client->device_list;
	args->num_devices = args->client->n_devices;
	return NULL;
}

struct PJRT_Error *pjrt_Client_AddressableDevices(
	struct PJRT_Client_AddressableDevices_Args *args)
{
	args->addressable_devices = args->client->device_list + rt_first_id(args->client->rt);
	args->num_addressable_devices = args->client->n_own;
	return NULL;
}

static struct PJRT_Error *look_up(struct PJRT_Device *list, unsigned n, int id,
				  struct PJRT_Device **out)
{
	if (id < 0 || (unsigned)id >= n)
		return pjrt_error_text(ERR_INVALID_ARGUMENT,
				       "No matching device found for device_id %d", id);
	*out = &list[id];
	return NULL;
}

struct PJRT_Error *pjrt_Client_LookupDevice(struct PJRT_Client_LookupDevice_Args *args)
{
	return look_up(args->client->devices, args->client->n_devices, args->id, &args->device);
}

struct PJRT_Error *pjrt_Client_LookupAddressableDevice(
	struct PJRT_Client_LookupAddressableDevice_Args *args)
{
	return look_up(args->client->own, args->client->n_own, args->local_hardware_id,
		       &args->addressable_device);
}

struct PJRT_Error *pjrt_Client_AddressableMemories(
	struct PJRT_Client_AddressableMemories_Args *args)
{
	args->addressable_memories = args->client->memory_list;
	args->num_addressable_memories = args->client->n_own * RT_KINDS;
	return NULL;
}

struct PJRT_Error *pjrt_Client_UpdateGlobalProcessInfo(
	struct PJRT_Client_UpdateGlobalProcessInfo_Args *args)
{
	(void)args;
	return NULL;
}

struct PJRT_Error *pjrt_Client_DefaultDeviceAssignment(
	struct PJRT_Client_DefaultDeviceAssignment_Args *args)
{
	static const char name[] = "PJRT_Client_DefaultDeviceAssignment";
	int r = args->num_replicas, p = args->num_partitions, first;
	int64_t n = (int64_t)r * p;

	if (r <= 0 || p <= 0)
		return pjrt_error_text(ERR_INVALID_ARGUMENT, "%s: num_replicas and "
				       "num_partitions must be positive, got %d and %d", name,
				       r, p);
	if ((uint64_t)n > args->default_assignment_size)
		return pjrt_error_text(ERR_FAILED_PRECONDITION, "%s: `default_assignment_size` "
				       "%zu < `num_replicas * num_partitions`, %d * %d = %lld",
				       name, args->default_assignment_size, r, p,
				       (long long)n);
	if (n > args->client->n_devices)
		return pjrt_error_text(ERR_INVALID_ARGUMENT, "%s: %lld devices are wanted, "
				       "there are %u", name, (long long)n,
				       args->client->n_devices);
	/* This process's own devices, if these are enough. */
	first = n <= args->client->n_own ? (int)rt_first_id(args->client->rt) : 0;
	for (int i = 0; i < n; i++)
		args->default_assignment[i] = first + i;
	return NULL;
}

/* ---- devices ---- */

struct PJRT_Error *pjrt_DeviceDescription_Id(struct PJRT_DeviceDescription_Id_Args *args)
{
	args->id = args->device_description->id;
	return NULL;
}

struct PJRT_Error *pjrt_DeviceDescription_ProcessIndex(
	struct PJRT_DeviceDescription_ProcessIndex_Args *args)
{
	args->process_index = (int)args->device_description->process;
	return NULL;
}

struct PJRT_Error *pjrt_DeviceDescription_Attributes(
	struct PJRT_DeviceDescription_Attributes_Args *args)
{
	args->attributes = args->device_description->attributes;
	args->num_attributes = PJRT_ATTRIBUTES;
	return NULL;
}

struct PJRT_Error *pjrt_DeviceDescription_Kind(struct PJRT_DeviceDescription_Kind_Args *args)
{
	args->device_kind = args->device_description->kind;
	args->device_kind_size = strlen(args->device_kind);
	return NULL;
}

struct PJRT_Error *pjrt_DeviceDescription_DebugString(
	struct PJRT_DeviceDescription_DebugString_Args *args)
{
	args->debug_string = args->device_description->debug;
	args->debug_string_size = strlen(args->debug_string);
	return NULL;
}

struct PJRT_Error *pjrt_DeviceDescription_ToString(
	struct PJRT_DeviceDescription_ToString_Args *args)
{
	args->to_string = args->device_description->text;
	args->to_string_size = strlen(args->to_string);
	return NULL;
}

struct PJRT_Error *pjrt_Device_GetDescription(struct PJRT_Device_GetDescription_Args *args)
{
	args->device_description = &args->device->description;
	return NULL;
}

struct PJRT_Error *pjrt_Device_IsAddressable(struct PJRT_Device_IsAddressable_Args *args)
{
	args->is_addressable = args->device->local >= 0;
	return NULL;
}

struct PJRT_Error *pjrt_Device_LocalHardwareId(struct PJRT_Device_LocalHardwareId_Args *args)
{
	args->local_hardware_id = args->device->local;
	return NULL;
}

struct PJRT_Error *pjrt_Device_AddressableMemories(
	struct PJRT_Device_AddressableMemories_Args *args)
{
	args->memories = args->device->memory_list;
	args->num_memories = args->device->local < 0 ? 0 : RT_KINDS;
	return NULL;
}

struct PJRT_Error *pjrt_Device_DefaultMemory(struct PJRT_Device_DefaultMemory_Args *args)
{
	struct PJRT_Error *e = pjrt_check_own(args->device);

	if (!e)
		args->memory = &args->device->memories[RT_DEVICE];
	return e;
}

/* Offsets of the fields that 0.113 appended. */
enum { PEAK_ALLOCATED = 192, PEAK_ALLOCATED_IS_SET = 200 };

struct PJRT_Error *pjrt_Device_MemoryStats(struct PJRT_Device_MemoryStats_Args *args)
{
	struct PJRT_Error *e = pjrt_check_own(args->device);
	struct hal_mem_stats s;

	if (e)
		return e;
	rt_memory_stats(args->device->client->rt, (unsigned)args->device->local, &s);
	args->bytes_in_use = (int64_t)s.bytes_in_use;
	args->peak_bytes_in_use = (int64_t)s.peak_bytes;
	args->num_allocs = (int64_t)s.n_allocs;
	args->largest_alloc_size = (int64_t)s.largest_alloc_bytes;
	args->bytes_limit = (int64_t)s.limit_bytes;
	args->bytes_reserved = 0;
	args->peak_bytes_reserved = 0;
	args->bytes_reservable_limit = 0;
	args->largest_free_block_bytes = (int64_t)s.largest_free_bytes;
	args->pool_bytes = (int64_t)s.limit_bytes;
	args->peak_pool_bytes = (int64_t)s.limit_bytes;
	/* 0.113 asks for one more; we have it as the peak above. */
	if (args->struct_size > PEAK_ALLOCATED_IS_SET) {
		memcpy((char *)args + PEAK_ALLOCATED, &args->peak_bytes_in_use,
		       sizeof(args->peak_bytes_in_use));
		*((bool *)args + PEAK_ALLOCATED_IS_SET) = true;
	}
	args->peak_bytes_in_use_is_set = args->num_allocs_is_set =
		args->largest_alloc_size_is_set = args->bytes_limit_is_set =
		args->bytes_reserved_is_set = args->peak_bytes_reserved_is_set =
		args->bytes_reservable_limit_is_set =
		args->largest_free_block_bytes_is_set = args->pool_bytes_is_set =
		args->peak_pool_bytes_is_set = true;
	return NULL;
}

struct PJRT_Error *pjrt_Device_ClearMemoryStats(
	struct PJRT_Device_ClearMemoryStats_Args *args)
{
	struct PJRT_Error *e = pjrt_check_own(args->device);

	if (!e)
		rt_clear_memory_stats(args->device->client->rt, (unsigned)args->device->local);
	return e;
}

static void keep_attributes(struct PJRT_Device_Attributes *attributes)
{
	(void)attributes;	/* they live as long as the device */
}

struct PJRT_Error *pjrt_Device_GetAttributes(struct PJRT_Device_GetAttributes_Args *args)
{
	args->attributes = args->device->description.attributes;
	args->num_attributes = PJRT_ATTRIBUTES;
	args->device_attributes = (void *)args->device->description.attributes;
	args->attributes_deleter = (void *)keep_attributes;
	return NULL;
}

struct PJRT_Error *pjrt_Device_PoisonExecution(struct PJRT_Device_PoisonExecution_Args *args)
{
	struct err err = pjrt_read_error(args->error_code, args->error_message,
					 args->error_message_size);
	struct PJRT_Error *e;

	if (!err.code)
		return pjrt_error_text(ERR_INVALID_ARGUMENT, "PJRT_Device_PoisonExecution: the "
				       "error's code is OK");
	e = pjrt_check_own(args->device);
	if (e)
		return e;
	rt_device_poison(args->device->client->rt, (unsigned)args->device->local, &err);
	if (COVERS(args, PJRT_Device_PoisonExecution_Args, poisoned))
		args->poisoned = true;
	return NULL;
}

/* ---- memories ---- */

struct PJRT_Error *pjrt_Memory_Id(struct PJRT_Memory_Id_Args *args)
{
	args->id = args->memory->id;
	return NULL;
}

struct PJRT_Error *pjrt_Memory_Kind(struct PJRT_Memory_Kind_Args *args)
{
	args->kind = rt_memory_kind_names[args->memory->kind];
	args->kind_size = strlen(args->kind);
	return NULL;
}

struct PJRT_Error *pjrt_Memory_Kind_Id(struct PJRT_Memory_Kind_Id_Args *args)
{
	args->kind_id = (int)args->memory->kind + 1;
	return NULL;
}

struct PJRT_Error *pjrt_Memory_DebugString(struct PJRT_Memory_DebugString_Args *args)
{
	args->debug_string = args->memory->text;
	args->debug_string_size = strlen(args->memory->text);
	return NULL;
}

struct PJRT_Error *pjrt_Memory_ToString(struct PJRT_Memory_ToString_Args *args)
{
	args->to_string = args->memory->text;
	args->to_string_size = strlen(args->memory->text);
	return NULL;
}

struct PJRT_Error *pjrt_Memory_AddressableByDevices(
	struct PJRT_Memory_AddressableByDevices_Args *args)
{
	args->devices = &args->memory->device->self;
	args->num_devices = 1;
	return NULL;
}
