/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PJRT_WRAP_H
#define PJRT_WRAP_H
/*
 * Handles and helpers of the C ABI. A handle owns one reference to a runtime object and
 * what PJRT asks to keep alive with it; it is malloc'd, the caller's, and freed by its
 * Destroy alone. Strings and lists that a slot gives are the handle's that it was asked of.
 *
 * Every function takes its Args by the size that the caller states: a field is read or
 * written only if that size covers it. Outputs are written on success only.
 *
 * Threads: slots may be called from any thread, on the same handle too; a Destroy is the
 * last call. Nothing here has a lock of its own: handles do not change once they are made
 * (but an executable's count, which is atomic, and an execute context, to which one thread at a
 * time adds), and what changes is the runtime's.
 * Blocking: as the function of runtime/rt.h that a slot wraps. No helper below blocks.
 * Errors: a slot and whoever helps it give NULL or an error that the caller destroys.
 */
#include <stdatomic.h>
#include <string.h>

#include "runtime/pjrt/pjrt_abi.h"
#include "runtime/rt.h"

/* Out of memory is one that is never freed; all others are malloc'd. */
struct PJRT_Error {
	const struct PJRT_Error_FunctionTable *vtable;	/* first: clients may look */
	struct err err;
	char *whole;	/* the text, where err's is cut; malloc'd, or NULL */
};

struct PJRT_Event { struct rt_event *event; };	/* a reference */

/* Memories, devices and descriptions are parts of a client, as long as it lives, but
 * descriptions of a topology made by hand, which are that topology's. */
struct PJRT_Memory {
	const void *vtable;	/* first: NULL, no user data */
	struct PJRT_Device *device;
	enum rt_memory_kind kind;	/* its kind id is kind + 1 */
	int id;			/* the device's id * RT_KINDS + kind */
	char text[96];		/* DebugString and ToString */
};

enum { PJRT_ATTRIBUTES = 3 };	/* of a device */

struct PJRT_DeviceDescription {
	int id;
	unsigned process;
	char kind[32];		/* "Tessera T1" */
	int64_t coords[3];	/* in the torus of the slice */
	struct PJRT_NamedValue attributes[PJRT_ATTRIBUTES];	/* point into this struct */
	char debug[128], text[96];	/* DebugString and ToString */
};

struct PJRT_Device {
	struct PJRT_Client *client;
	int local;		/* the runtime's number of it; -1: another process's */
	struct PJRT_DeviceDescription description;
	struct PJRT_Memory memories[RT_KINDS];	/* by kind; RT_DEVICE is the default */
	struct PJRT_Memory *memory_list[RT_KINDS];
	struct PJRT_Device *self;	/* a list of one device; it has memories if it is ours */
};

struct PJRT_TopologyDescription {
	struct rt_topology rt;	/* what programs are compiled for */
	const char *platform;	/* static, as of pjrt_read_platform */
	bool is_clients;	/* it goes with the client: Destroy leaves it alone */
	/* own: an array, NULL for a client's; descriptions: a pointer a device */
	struct PJRT_DeviceDescription *own, **descriptions;
};

/* PJRT has callers destroy buffers and executables first, but their runtime objects keep
 * the runtime's client all the same. */
struct PJRT_Client {
	struct PJRT_Client *next;	/* pjrt_ranks.c's */
	struct rt_client *rt;	/* a reference */
	unsigned n_devices, n_own;	/* of all processes; of this one */
	struct PJRT_Device *devices;	/* ids ascend from 0 */
	struct PJRT_Device *own;	/* among them: this process's, by the runtime's numbers */
	struct PJRT_Device **device_list;	/* devices as pointers, as PJRT lists them */
	struct PJRT_Memory **memory_list;	/* n_own * RT_KINDS */
	struct pjrt_store *store;	/* owned while the client is made; then NULL */
	struct PJRT_TopologyDescription topology;
};

/* Our own extension, see pjrt_ranks.c: a type that OpenXLA does not give out. */
enum { PJRT_RANKS_EXTENSION = 0x7e55 };
struct PJRT_Extension_Base *pjrt_ranks_extension(void);
/* The clients to which it speaks. */
void pjrt_list_client(struct PJRT_Client *c);
void pjrt_unlist_client(struct PJRT_Client *c);

/* Which device and memory it lies in is asked of rt and looked up in the client. */
struct PJRT_Buffer {
	struct rt_buffer *rt;	/* a reference */
	struct PJRT_Client *client;	/* none */
	int64_t minor_to_major[IMAGE_MAX_RANK];	/* of its layout */
	size_t dynamic[IMAGE_MAX_RANK], n_dynamic;	/* dims that may be shorter */
};

/* Of the Layouts extension: the order of the dims, without tiles. */
struct pjrt_layout {
	unsigned rank;
	bool is_executables;	/* it goes with the executable */
	char text[IMAGE_MAX_RANK * 4 + 8];	/* "{1,0}", its serialized form */
};
/* That of a shape; writes the text too. */
void pjrt_layout_init(struct pjrt_layout *l, const struct rt_shape *s);

/* A compiled program; what a loaded executable and the Executable got from it share. */
struct PJRT_Executable {
	int refs;		/* atomic: handles and loaded executables */
	struct rt_program *rt;	/* a reference */
	size_t n_parameters, n_outputs;	/* without the sizes of others; lists of layouts and
					 * shardings are by the image's numbers */
	/* One an output; dims of all outputs one after the other. */
	int *output_types;
	int64_t *output_dims;
	size_t *output_ranks;
	/* Constant strings; shardings of parameters, then outputs: serialized xla.OpSharding of
	 * the program's image. */
	const char **output_kinds, **parameter_kinds, **shardings;
	size_t *output_kind_sizes, *parameter_kind_sizes, *sharding_sizes;
	struct pjrt_layout *layouts, **layout_list;	/* of parameters, then outputs */
	struct PJRT_NamedValue cost[4];	/* of one run, estimated by the compiler */
};
/* A program on the device of each member: by replica, then partition. An Executable that was got
 * from it may outlive it. */
struct PJRT_LoadedExecutable {
	struct PJRT_Executable *shared;	/* a reference */
	struct rt_gang rt;	/* owned */
	struct PJRT_Client *client;	/* none */
	struct PJRT_Device **devices;	/* of the members */
	struct PJRT_LogicalDeviceIds *logical;	/* which members they are */
};

/* What functions of the host may ask of an execution: types and pointers are the caller's. An
 * execution sees what its context had when it began, whatever is added later, and holds the context
 * until it ends. */
struct pjrt_user_data {
	struct pjrt_user_data *next;
	int64_t type;
	void *data;
	void (*deleter)(void *data);	/* NULL: the caller keeps it */
};
struct PJRT_ExecuteContext {
	atomic_uint refs;	/* its owner's, and each execution's on each device */
	struct pjrt_user_data *data;	/* owned; the newest first */
};
struct pjrt_run {
	int64_t id;		/* of all devices of an execution, and of no other */
	struct PJRT_ExecuteContext *context;	/* a reference, or NULL */
	const struct pjrt_user_data *data;	/* the context's */
};

struct PJRT_AsyncHostToDeviceTransferManager {
	struct rt_transfer *rt;	/* owned: its one owner is the handle's */
	struct PJRT_Client *client;
	struct PJRT_Device *device;	/* where its buffers lie */
};
struct PJRT_CopyToDeviceStream { struct rt_stream *rt; };	/* owned */

/* Whether the caller's struct reaches past `field`, which a version after the slot's first
 * has added. */
#define COVERS(args, type, field) \
	((args)->struct_size >= offsetof(struct type, field) + sizeof((args)->field))

extern const char pjrt_version[];	/* of the platform */

/* ---- pjrt_error.c: calls nothing of this folder ---- */
/* A copy of err, whose code is not 0. Never NULL. */
struct PJRT_Error *pjrt_error(const struct err *err);
/* The same of a text, cut to what struct err holds. */
struct PJRT_Error *pjrt_error_text(int code, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
#define NO_ROOM() pjrt_error_text(ERR_RESOURCE_EXHAUSTED, "out of host memory")
/* UNIMPLEMENTED in the words of unimplemented.def. */
enum pjrt_part {
#define PART(id, where, what, why) PART_##id,
#include "runtime/pjrt/unimplemented.def"
#undef PART
};
struct PJRT_Error *pjrt_part(enum pjrt_part part);
/* The error that a caller hands over as a code and a text that need not end in NUL. A text that
 * is too long loses its middle, but errors that are made of it soon have it whole. */
struct err pjrt_read_error(int code, const char *text, size_t n);

/* ---- pjrt_wrap.c: calls pjrt_error.c ---- */
/* INVALID_ARGUMENT: rank or a dim out of range; UNIMPLEMENTED: no such element type. */
struct PJRT_Error *pjrt_read_shape(int type, const int64_t *dims, size_t n,
				   struct rt_shape *out);
/* The layout's order into s, a shape that is read. NULL: row-major. INVALID_ARGUMENT: it has
 * tiles, or is not dense. */
struct PJRT_Error *pjrt_read_layout(const struct PJRT_Buffer_MemoryLayout *l,
				    struct rt_shape *s);
/* What clients and topologies made from now on call their platform: "tessera", or what
 * TESSERA_PLATFORM_NAME says. INVALID_ARGUMENT: it says something else than "tpu". */
struct PJRT_Error *pjrt_read_platform(const char **out);
/* INVALID_ARGUMENT: the device is another process's. */
struct PJRT_Error *pjrt_check_own(const struct PJRT_Device *d);
/* Where a new buffer goes: the memory if named, else the device's default memory, else
 * device 0. INVALID_ARGUMENT: it belongs to another client, or process. */
struct PJRT_Error *pjrt_find_place(const struct PJRT_Client *c, const struct PJRT_Memory *m,
				   const struct PJRT_Device *d, unsigned *device,
				   enum rt_memory_kind *kind);
/* Wrap; take the reference, also on failure. NULL for event NULL and out of memory. */
struct PJRT_Event *pjrt_event(struct rt_event *e);
struct PJRT_Buffer *pjrt_buffer(struct PJRT_Client *c, struct rt_buffer *b);
/* Wrap and store *out; take the reference, also on failure. */
struct PJRT_Error *pjrt_give_event(struct rt_event *e, struct PJRT_Event **out);
struct PJRT_Error *pjrt_give_buffer(struct PJRT_Client *c, struct rt_buffer *b,
				    struct PJRT_Buffer **out);
/* Fills a description in its place: its attributes point into it. */
void pjrt_describe(struct PJRT_DeviceDescription *t, unsigned id, const struct rt_global *d);

/* ---- one file a section of the ABI ---- */
/* The function behind each slot: pjrt_SLOT(Args *), called with a struct that covers
 * all fields of its oldest version and with the pointers that slots.def wants. */
#define SLOT(name, needs) \
	struct PJRT_Error *pjrt_##name(struct PJRT_##name##_Args *args);
#define MUTE(name, needs) SLOT(name, needs)
#include "runtime/pjrt/slots.def"
#undef SLOT
#undef MUTE

/* pjrt_callback.c: the functions that a caller gives to execution `id` for the device of this
 * place in its lists, copied; *host is freed by its own `free`. o: NULL: it gives none. */
struct PJRT_Error *pjrt_read_callbacks(const struct PJRT_ExecuteOptions *o, int64_t id,
				       unsigned device, struct rt_host *host);
/* Of a struct rt_host's arg that was read so; lives as long. */
const struct pjrt_run *pjrt_run_of(const void *arg);
/* NULL: nothing. The last one frees it, by its user data's deleters. */
void pjrt_context_unref(struct PJRT_ExecuteContext *c);

/* pjrt_ffi_call.c: the functions that programs call by name. Static. */
const struct rt_functions *pjrt_ffi_functions(void);
/* pjrt_ffi.c: two extensions, and `next` behind them. Static. */
struct PJRT_Extension_Base *pjrt_ffi_extensions(struct PJRT_Extension_Base *next);

/* pjrt_partitioner.c: functions that share out calls, as the compiler asks them; the extension by
 * which they are registered, and `next` behind it. Both static. */
const struct tc_partitioners *pjrt_partitioners(void);
struct PJRT_Extension_Base *pjrt_partitioner_extension(struct PJRT_Extension_Base *next);

/* pjrt_store.c: the store that a framework's processes share, as the runtime asks it; it keeps
 * what it needs of the arguments. Its memory is freed by free(). INVALID_ARGUMENT: the functions
 * are missing. */
struct pjrt_store;
struct PJRT_Error *pjrt_read_store(const struct PJRT_Client_Create_Args *args,
				   struct pjrt_store **out);
struct rt_exchange pjrt_exchange(struct pjrt_store *s);

/* pjrt_extension.c: the list that the table begins with. Static. */
struct PJRT_Extension_Base *pjrt_extensions(void);
/* pjrt_profiler.c: what that list ends with. Static. */
struct PJRT_Extension_Base *pjrt_profiler_extension(void);

#endif
