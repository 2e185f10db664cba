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
	int id;
	char kind[32];
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
	struct rt_topology rt;
	bool is_clients;	/* it goes with the client */
	struct PJRT_DeviceDescription *own, **descriptions;
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

/* Of the Layouts extension: a rank, as all are row-major. */
struct pjrt_layout {
	unsigned rank;
	bool is_executables;	/* it goes with the executable */
	char text[IMAGE_MAX_RANK * 4 + 8];
};
void pjrt_layout_init(struct pjrt_layout *l, unsigned rank);

/* A compiled program; what a loaded executable and the Executable got from it share. */
struct PJRT_Executable {
	int refs;
	struct rt_program *rt;
	size_t n_outputs;
	int *output_types;
	int64_t *output_dims;
	size_t *output_ranks;
	const char **output_kinds, **parameter_kinds, **shardings;
	size_t *output_kind_sizes, *parameter_kind_sizes, *sharding_sizes;
	struct pjrt_layout *layouts, **layout_list;	/* of parameters, then outputs */
	struct PJRT_NamedValue cost[4];
};
struct PJRT_LoadedExecutable {
	struct PJRT_Executable *shared;
	struct rt_exe *rt;
	struct PJRT_Client *client;
	struct PJRT_Device *device;
	struct PJRT_LogicalDeviceIds logical;
};

struct PJRT_AsyncHostToDeviceTransferManager {
	struct rt_transfer *rt;
	struct PJRT_Client *client;
	struct PJRT_Device *device;
};
struct PJRT_CopyToDeviceStream { struct rt_stream *rt; };

/* Whether the caller's struct reaches past `field`. */
#define COVERS(args, type, field) \
	((args)->struct_size >= offsetof(struct type, field) + sizeof((args)->field))

extern const char pjrt_platform[], pjrt_version[];

struct PJRT_Error *pjrt_error(const struct err *err);
struct PJRT_Error *pjrt_error_text(int code, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* NULL for event NULL and out of memory. Takes the reference. */
struct PJRT_Event *pjrt_event(struct rt_event *e);
struct PJRT_Buffer *pjrt_buffer(struct PJRT_Client *c, struct rt_buffer *b);
/* Wraps and stores *out; takes the reference, also on failure. */
struct PJRT_Error *pjrt_give_buffer(struct PJRT_Client *c, struct rt_buffer *b,
				    struct PJRT_Buffer **out);
struct PJRT_Error *pjrt_give_event(struct rt_event *e, struct PJRT_Event **out);
struct PJRT_Executable *pjrt_executable(struct rt_program *p);
void pjrt_executable_unref(struct PJRT_Executable *x);
/* The error that a caller hands over as a code and a text that need not end in NUL. */
struct err pjrt_read_error(int code, const char *text, size_t n);
struct PJRT_Error *pjrt_read_shape(int type, const int64_t *dims, size_t n,
				   struct rt_shape *out);
/* Layouts that are not row-major, dense and untiled are refused. */
struct PJRT_Error *pjrt_check_layout(const struct PJRT_Buffer_MemoryLayout *l, size_t rank);
/* Where a new buffer goes: the memory if named, else the device's default memory, else
 * device 0. INVALID_ARGUMENT: it belongs to another client. */
struct PJRT_Error *pjrt_find_place(const struct PJRT_Client *c, const struct PJRT_Memory *m,
				   const struct PJRT_Device *d, unsigned *device,
				   enum rt_memory_kind *kind);
/* Checks a program and gives its format as a string. */
struct PJRT_Error *pjrt_read_program(const struct PJRT_Program *p, char format[16]);
struct PJRT_NamedValue pjrt_int_value(const char *name, int64_t v);
void pjrt_describe(struct PJRT_DeviceDescription *t, unsigned id, const char *kind,
		   const char *bus_id, bool is_model, unsigned cores);

enum pjrt_part {
#define PART(id, where, what, why) PART_##id,
#include "runtime/pjrt/unimplemented.def"
#undef PART
};
struct PJRT_Error *pjrt_part(enum pjrt_part part);

#define NO_ROOM() pjrt_error_text(ERR_RESOURCE_EXHAUSTED, "out of host memory")

/* The function behind each slot: pjrt_SLOT(Args *), called with a struct that covers
 * all fields of its oldest version and with the pointers that slots.def wants. */
#define SLOT(name, needs) \
	struct PJRT_Error *pjrt_##name(struct PJRT_##name##_Args *args);
#define MUTE(name, needs) SLOT(name, needs)
#include "runtime/pjrt/slots.def"
#undef SLOT
#undef MUTE

struct PJRT_Extension_Base *pjrt_extensions(void);

#endif
