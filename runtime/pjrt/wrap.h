/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PJRT_WRAP_H
#define PJRT_WRAP_H
/*
 * Handles and helpers of the C ABI. A handle owns one reference to a runtime object and
 * what PJRT asks to keep alive with it. Every function takes its Args by the size
 * that the caller states: a field is read or written only if that size covers it.
 */
#include <string.h>

#include "runtime/pjrt/pjrt_abi.h"
#include "runtime/rt.h"

struct PJRT_Error {
	const struct PJRT_Error_FunctionTable *vtable;	/* first: clients may look */
	struct err err;
};

struct PJRT_Event { struct rt_event *event; };

struct PJRT_Memory {
	const void *vtable;	/* first: NULL, no user data */
	struct PJRT_Device *device;
	enum rt_memory_kind kind;
	int id;
	char text[96];
};

struct PJRT_DeviceDescription {
	struct PJRT_Device *device;
	int64_t coords[3];
	struct PJRT_NamedValue attributes[4];
	char debug[128], text[96];
};

struct PJRT_Device {
	struct PJRT_Client *client;
	unsigned index;
	struct PJRT_DeviceDescription description;
	struct PJRT_Memory memories[RT_KINDS];
	struct PJRT_Memory *memory_list[RT_KINDS];
	struct PJRT_Device *self;
};

struct PJRT_TopologyDescription {
	struct PJRT_Client *client;
	struct PJRT_DeviceDescription **descriptions;
};

struct PJRT_Client {
	struct rt_client *rt;
	unsigned n_devices;
	struct PJRT_Device *devices;
	struct PJRT_Device **device_list;
	struct PJRT_Memory **memory_list;
	struct PJRT_TopologyDescription topology;
};

struct PJRT_Buffer {
	struct rt_buffer *rt;
	struct PJRT_Client *client;
	int64_t minor_to_major[IMAGE_MAX_RANK];
};

/* What a loaded executable and the Executable got from it share. */
struct PJRT_Executable {
	int refs;
	struct rt_exe *rt;
	struct PJRT_Client *client;
	size_t n_outputs;
	int *output_types;
	int64_t *output_dims;
	size_t *output_ranks;
	const char **output_kinds, **parameter_kinds, **output_shardings;
	size_t *output_kind_sizes, *parameter_kind_sizes, *output_sharding_sizes;
	struct PJRT_NamedValue cost[4];
};
struct PJRT_LoadedExecutable {
	struct PJRT_Executable *shared;
	struct PJRT_Device *device;
	struct PJRT_LogicalDeviceIds logical;
};

/* Whether the caller's struct reaches past `field`. */
#define COVERS(args, type, field) \
	((args)->struct_size >= offsetof(struct type, field) + sizeof((args)->field))

struct PJRT_Error *pjrt_error(const struct err *err);
struct PJRT_Error *pjrt_error_text(int code, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* NULL for event NULL and out of memory. Takes the reference. */
struct PJRT_Event *pjrt_event(struct rt_event *e);
struct PJRT_Buffer *pjrt_buffer(struct PJRT_Client *c, struct rt_buffer *b);
struct PJRT_LoadedExecutable *pjrt_loaded(struct PJRT_Client *c, struct rt_exe *x);
void pjrt_executable_unref(struct PJRT_Executable *x);
struct PJRT_Memory *pjrt_memory_of(struct PJRT_Client *c, const struct rt_buffer *b);

#define NO_ROOM() pjrt_error_text(ERR_RESOURCE_EXHAUSTED, "out of host memory")

/* The function behind each slot: pjrt_SLOT(Args *). Those of pjrt_slots.c are made of
 * the list; extension.c gives the extensions. */
#define DECLARE(name, offset) \
	struct PJRT_Error *pjrt_##name(struct PJRT_##name##_Args *args);
PJRT_SLOTS(DECLARE)
#undef DECLARE

struct PJRT_Extension_Base *pjrt_extensions(void);

#endif
