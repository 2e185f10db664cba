/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RT_RT_H
#define RT_RT_H
/*
 * The runtime's door: client, devices, buffers, events, executables. It decides what
 * frameworks see; runtime/pjrt/ only wraps it. README.md has the threads and locks.
 *
 * Ownership: buffers, events, programs, executables and the client are reference counted.
 * An `out` or `done` is a new reference, the caller's, and is written on success only. An
 * argument is borrowed for the call unless said otherwise; what outlives the call takes a
 * reference of its own. unref, free and destroy take NULL. Objects keep their client alive.
 * Threads: every function may be called from any thread, on the same object too, except
 * where one owner is named; destroying is the owner's last call.
 * Blocking: a function that says "blocks" waits for the device or the disk. The others take
 * short locks only, but allocation of device memory (whatever makes a buffer with content)
 * waits for queued work, up to two minutes, when memory is short.
 * Callbacks run with no lock held, on the thread that makes the event ready: a caller's, the
 * client's or a device's waiter. They must not block.
 * Errors: 0 or a code of err.def, with a text in *err (NULL: not wanted). Any call that
 * allocates may give RESOURCE_EXHAUSTED; a device that died gives its first error to each
 * call that needs it. What fails after a call returned travels in its event or buffer.
 * In a child of fork a client and all that is its is only to be let go: unref, destroy
 * and delete do nothing but count, a buffer's or event's pending content is an error, and
 * whoever calls more asks rt_client_check first.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hal/base/elem.h"
#include "hal/base/err.h"
#include "hal/hal.h"
#include "hal/hw/image.h"

struct tc_partitioners;
struct rt_client;
struct rt_buffer;
struct rt_event;
struct rt_exe;
struct rt_program;
struct rt_transfer;
struct rt_stream;

/* PJRT's memories of a device. Both host kinds are pinned host memory of the HAL. */
enum rt_memory_kind { RT_DEVICE, RT_PINNED_HOST, RT_UNPINNED_HOST, RT_KINDS };
extern const char *const rt_memory_kind_names[RT_KINDS];

/* ---- client ---- */
/* Where the processes of a job tell each other things: a store of keys, each of which is written
 * once. Its functions are called from any thread, as long as the client lives. */
struct rt_exchange {
	int (*put)(void *arg, const char *key, const void *value, size_t bytes, struct err *err);
	/* Waits for it, `ms` at most: *value is malloc'd, the caller's. DEADLINE_EXCEEDED or
	 * NOT_FOUND: it is not there yet. */
	int (*get)(void *arg, const char *key, int ms, void **value, size_t *bytes,
		   struct err *err);
	/* Once, when a client that was made with it is no more; NULL: nothing to do. */
	void (*free)(void *arg);
	void *arg;
};
enum { RT_PROCESSES = 64 };	/* of a job, most */
/* Which of the processes of a job this one is. */
struct rt_world_options {
	unsigned process, n_processes;
	struct rt_exchange exchange;
};
struct rt_client_options {
	const char *devices, *sim;	/* as hal_options */
	/* Where the random numbers of programs that draw without a state start; NULL:
	 * TESSERA_RNG_SEED, a whole number of 64 bits, else somewhere new each time. */
	const uint64_t *seed;
	/* NULL: this process is alone. Else the client's devices are those of all processes, and
	 * the seed is that of the first. */
	const struct rt_world_options *world;
};
/* Opens every device of the selection and starts the client's thread. Blocks; with a world until
 * all its processes have come, for TESSERA_PEER_LIMIT_MS (300000) at most each. Errors as
 * hal_create and hal_device_open, INVALID_ARGUMENT for a seed or a limit in the
 * environment that is no number; UNIMPLEMENTED: the processes' devices can't meet, with what helps;
 * DEADLINE_EXCEEDED: a process did not come. On failure all that was opened is closed. */
int rt_client_create(const struct rt_client_options *o, struct rt_client **out,
		     struct err *err);
/* Any thread, at any depth of locks. */
void rt_client_ref(struct rt_client *c);
/* The caller's reference goes. The last one, of the caller or an object, ends the client's
 * thread and closes the devices: blocks, except in a callback, where a thread does it. */
void rt_client_unref(struct rt_client *c);
/* Its owner will ask no more: launches of members that wait for others to come fail with CANCELLED,
 * now and later. What else is under way goes on. */
void rt_client_close(struct rt_client *c);
/* FAILED_PRECONDITION: this is a child of fork, and the client its parent's. */
int rt_client_check(const struct rt_client *c, struct err *err);
/* This process's devices are numbered from 0. Numbers past the last are the caller's mistake. */
unsigned rt_device_count(const struct rt_client *c);
/* Devices of all processes have ids from 0 on, in the order of processes and of their devices;
 * where a process is alone that is their number. What follows does not change. */
struct rt_global {
	unsigned process;
	int local;		/* its number, or -1: it is another process's */
	unsigned cores;
	bool is_model;
	char kind[32], bus_id[64];
	int64_t coords[3];	/* in the torus of links; in a row where there is more than one */
};
unsigned rt_global_count(const struct rt_client *c);
void rt_global_device(const struct rt_client *c, unsigned id, struct rt_global *out);
unsigned rt_first_id(const struct rt_client *c);	/* of this process's device 0 */
unsigned rt_process(const struct rt_client *c);
/* HBM only, after freeing what is no longer in use. */
void rt_memory_stats(struct rt_client *c, unsigned device, struct hal_mem_stats *out);
void rt_clear_memory_stats(struct rt_client *c, unsigned device);	/* the peak */
/* Fails every later launch on the device with this error, whose code is not 0. The first
 * one stays. Work that is queued and copies go on. */
void rt_device_poison(struct rt_client *c, unsigned device, const struct err *why);

/* Whoever launches programs on the device by itself, where members meet, does not come again:
 * launches that wait for that member, now and later, fail with this error, whose code is not
 * 0. Until it is said to be there, or launches again. */
void rt_device_leave(struct rt_client *c, unsigned device, const struct err *why);
void rt_device_enter(struct rt_client *c, unsigned device);
/* All processes have left, each knows it of the others, and this one is back, as behind a barrier:
 * its devices enter, and what the others said when they left counts no more. */
void rt_client_return(struct rt_client *c);
/* Until other processes are done with what this one took part in, for 5 s at most: for those that
 * end without freeing their client, which waits for as much. Process 0 then waits, for 5 s at most,
 * until the others have ended: the store that they joined by is its own in every framework, and
 * XLA's aborts whoever still looks at it. */
void rt_client_settle(struct rt_client *c);

/* ---- events: set once, by whoever makes them; waited for by all ---- */
struct rt_event *rt_event_new(void);		/* not ready; NULL: out of memory */
/* Ready, with this error (copied) or NULL: none. NULL: out of memory. */
struct rt_event *rt_event_done(const struct err *why);
void rt_event_ref(struct rt_event *e);
void rt_event_unref(struct rt_event *e);
/* Makes it ready and calls the callbacks, in the order in which they came, before it
 * returns. `why` is copied. A second time: nothing. */
void rt_event_set(struct rt_event *e, const struct err *why);
bool rt_event_is_ready(const struct rt_event *e);
/* Of a ready event: its code, and its text. Does not wait. */
int rt_event_error(struct rt_event *e, struct err *err);
/* Blocks, without a limit, until it is ready; its error, as above. */
int rt_event_wait(struct rt_event *e, struct err *err);
/* A place in an event's list, the caller's; it is not looked at once fn was called. */
struct rt_callback {
	void (*fn)(void *arg, const struct err *err);
	void *arg;
	struct rt_callback *next;
};
/* fn exactly once: now if ready, else on the thread that sets it; err NULL: fine. If
 * the last reference goes and nobody has set it: CANCELLED. Never fails or waits. */
void rt_event_on_ready(struct rt_event *e, struct rt_callback *c,
		       void (*fn)(void *arg, const struct err *err), void *arg);

/* ---- buffers: dense arrays, row-major but for those whose shape says otherwise ---- */
/* A value. dim[] in elements, rank of them; an element takes elem_bytes. */
struct rt_shape {
	enum elem elem;
	unsigned rank;
	uint8_t order[IMAGE_MAX_RANK];	/* in memory, as of struct image_shape; 0: row-major */
	uint32_t bounded;	/* dims (bits) that may be shorter: dim has their bounds */
	int64_t dim[IMAGE_MAX_RANK];
};
/* UINT64_MAX: negative or too large for 64 bits. */
uint64_t rt_shape_bytes(const struct rt_shape *s);
void rt_shape_of(const struct image_shape *s, struct rt_shape *out);
/* The dim at place i from the innermost, as layouts list them. */
unsigned rt_minor_to_major(const struct rt_shape *s, unsigned i);
/* Byte strides of its dims, as it lies in memory. */
void rt_dense_strides(const struct rt_shape *s, int64_t *stride);
/* Copies from host memory; `data` is the caller's again on return. Strides in bytes, one a
 * dim, may be NULL: dense. Of PRED a byte that is not 0 becomes 1, here and wherever else the
 * host's bytes come in. Blocks for the copy. INVALID_ARGUMENT: the size overflows. */
int rt_buffer_from_host(struct rt_client *c, unsigned device, enum rt_memory_kind kind,
			const struct rt_shape *shape, const void *data,
			const int64_t *strides, struct rt_buffer **out, struct err *err);
/* Memory with undefined content. INVALID_ARGUMENT as above. */
int rt_buffer_uninitialized(struct rt_client *c, unsigned device,
			    enum rt_memory_kind kind, const struct rt_shape *shape,
			    struct rt_buffer **out, struct err *err);
/* A buffer without memory, whose every use fails with `why` (copied). */
int rt_buffer_of_error(struct rt_client *c, unsigned device, enum rt_memory_kind kind,
		       const struct rt_shape *shape, const struct err *why,
		       struct rt_buffer **out, struct err *err);
/* The last unref lets the memory go once the device is done with it; it does not wait. */
void rt_buffer_ref(struct rt_buffer *b);
void rt_buffer_unref(struct rt_buffer *b);
/* What it was made with; the buffer's, as long as it lives. */
const struct rt_shape *rt_buffer_shape(const struct rt_buffer *b);
unsigned rt_buffer_device(const struct rt_buffer *b);
enum rt_memory_kind rt_buffer_kind(const struct rt_buffer *b);
struct rt_client *rt_buffer_client(const struct rt_buffer *b);	/* no new reference */
/* Deleted: the content can't be asked for any more. Memory goes with the last use and the
 * last external reference. Donation to a launch deletes too. */
bool rt_buffer_is_deleted(struct rt_buffer *b);
void rt_buffer_delete(struct rt_buffer *b);
/* A new reference to an event that is ready when the content is there, with its error;
 * INVALID_ARGUMENT at once if it is deleted. NULL: out of memory. */
struct rt_event *rt_buffer_ready(struct rt_buffer *b);
/* Part of the dense content to host memory as it lies there, in bytes; `dst` is ours until
 * *done is ready. Content that is there is copied before it returns, other content by the
 * client's thread. INVALID_ARGUMENT: past the end, or deleted. The content's own error is
 * in *done. */
int rt_buffer_to_host(struct rt_buffer *b, uint64_t offset, void *dst, uint64_t bytes,
		      struct rt_event **done, struct err *err);
/* All of it with these byte strides, one a dim, whatever order it has itself. */
int rt_buffer_to_host_strided(struct rt_buffer *b, void *dst, const int64_t *strides,
			      struct rt_event **done, struct err *err);
/* The same in two steps: *done at once, where to when it is known. Then exactly one of
 * start and fail takes the fetch; the content stays until then. Neither blocks. */
struct rt_fetch;
int rt_fetch_prepare(struct rt_buffer *b, uint64_t offset, uint64_t bytes,
		     struct rt_fetch **out, struct rt_event **done, struct err *err);
void rt_fetch_start(struct rt_fetch *f, void *dst);
void rt_fetch_fail(struct rt_fetch *f, const struct err *why);
/* An array of which a program said only the bounds of some dims (shape.bounded) is stored padded to
 * them. *dim, the buffer's: how long it is. Blocks until that is known; its error, if its
 * content is one. */
int rt_buffer_unpadded(struct rt_buffer *b, const int64_t **dim, struct err *err);
/* What counts of it, with these byte strides, one a dim. Blocks until it is there. */
int rt_buffer_to_host_unpadded(struct rt_buffer *b, void *dst, const int64_t *strides,
			       struct err *err);
/* A new buffer with the same content, on any device of the client. Blocks for the copy if
 * the content is there; else the client's thread copies later and *out is pending. */
int rt_buffer_copy(struct rt_buffer *b, unsigned device, enum rt_memory_kind kind,
		   struct rt_buffer **out, struct err *err);
/* The same bits as another shape of equal size; shares memory. INVALID_ARGUMENT: the sizes
 * differ, deleted, it is stored padded, or PRED is to be made of another type. */
int rt_buffer_bitcast(struct rt_buffer *b, const struct rt_shape *shape,
		      struct rt_buffer **out, struct err *err);
/* Where the content lies for the device and for the CPU; 0 and NULL: an empty array, or
 * the CPU can't see it. FAILED_PRECONDITION: the content has no place yet. */
int rt_buffer_address(struct rt_buffer *b, uint64_t *out, struct err *err);
int rt_buffer_pointer(struct rt_buffer *b, void **out, struct err *err);
/* PJRT's external references: while there are any, the memory stays even if the buffer is
 * deleted, and is not donated. INVALID_ARGUMENT: unref without a ref. */
void rt_buffer_ref_external(struct rt_buffer *b);
int rt_buffer_unref_external(struct rt_buffer *b, struct err *err);
/* A buffer on memory that the device reaches (a device address, or where the CPU sees
 * it); host memory is mapped if its pages are not yet, which blocks briefly. It must stay
 * until on_free (NULL is fine), which is called once, when nothing on the device uses it
 * any more, on any thread and not in a child of fork. It is never donated. Of PRED it is
 * looked at, and where bytes are neither 0 nor 1 the buffer is a copy, on which on_free waits too.
 * INVALID_ARGUMENT: not a multiple of HAL_MEM_ALIGN, or memory of another kind;
 * NOT_FOUND: no memory of the device's. */
int rt_buffer_view(struct rt_client *c, unsigned device, enum rt_memory_kind kind,
		   const struct rt_shape *shape, void *pointer,
		   void (*on_free)(void *pointer, void *arg), void *arg,
		   struct rt_buffer **out, struct err *err);
/* A buffer whose content another one will give. Launches and transfers that use it
 * wait. Whoever makes it resolves it, once, with a buffer of equal size or an error. */
int rt_buffer_alias(struct rt_client *c, unsigned device, enum rt_memory_kind kind,
		    const struct rt_shape *shape, struct rt_buffer **out,
		    struct err *err);
/* INVALID_ARGUMENT: it does not fit, or waits for the alias (which then has that error as its
 * content). */
int rt_alias_fulfill(struct rt_buffer *alias, struct rt_buffer *with, struct err *err);
void rt_alias_fail(struct rt_buffer *alias, const struct err *why);
/* Moves the content to *out, which is ready once b is and `after` is set; `b` is
 * deleted. An error of `after` is *out's. INVALID_ARGUMENT: deleted.
 * FAILED_PRECONDITION: there are external references. */
int rt_buffer_donate(struct rt_buffer *b, struct rt_event *after, struct rt_buffer **out,
		     struct err *err);

/* Makes the caller's memory reachable for every device, whole pages around it. It
 * must stay until it is unmapped by the same pointer. Both block briefly.
 * ALREADY_EXISTS: a page is mapped; NOT_FOUND: no mapping was made for the pointer. */
int rt_dma_map(struct rt_client *c, void *data, size_t bytes, struct err *err);
int rt_dma_unmap(struct rt_client *c, void *data, struct err *err);

/* ---- transfers in pieces: buffers whose content comes by several calls ---- */
/* One owner. Calls on one transfer may come from several threads, but destroying it is the
 * last to begin; a callback of one of its buffers may do so. Makes n pending buffers with memory;
 * `shapes` is copied. */
int rt_transfer_create(struct rt_client *c, unsigned device, enum rt_memory_kind kind,
		       const struct rt_shape *shapes, size_t n, struct rt_transfer **out,
		       struct err *err);
/* Buffers that are not complete get CANCELLED as their content; what is complete it lets be. */
void rt_transfer_destroy(struct rt_transfer *t);
struct rt_client *rt_transfer_client(const struct rt_transfer *t);
size_t rt_transfer_count(const struct rt_transfer *t);
/* INVALID_ARGUMENT below: no buffer has this index. */
int rt_transfer_bytes(struct rt_transfer *t, int64_t i, uint64_t *out, struct err *err);
/* A new reference, once for each buffer; FAILED_PRECONDITION: it was taken. */
int rt_transfer_buffer(struct rt_transfer *t, int64_t i, struct rt_buffer **out,
		       struct err *err);
/* Copies before it returns; once the last piece and all under way are copied the buffer
 * is ready. Offset and size in bytes of the dense content. A failed copy is the buffer's
 * error too. FAILED_PRECONDITION: it has had its last piece or an error. */
int rt_transfer_data(struct rt_transfer *t, int64_t i, uint64_t offset, const void *data,
		     uint64_t bytes, bool is_last, struct err *err);
/* The buffer's content is this error. FAILED_PRECONDITION: it has its content. */
int rt_transfer_fail(struct rt_transfer *t, int64_t i, const struct err *why,
		     struct err *err);
const struct rt_shape *rt_transfer_shape(const struct rt_transfer *t, size_t i);

/* Bytes that a callback hands over in chunks, granules of equal size. Counted: who fills it
 * and who waits for it have a reference each. Nothing but waiting blocks. NULL: out of memory,
 * or `total` is no multiple of `granule`. */
struct rt_stream *rt_stream_new(uint64_t total, uint64_t granule);
void rt_stream_ref(struct rt_stream *s);
void rt_stream_unref(struct rt_stream *s);
/* Blocks until all bytes are there. The error of the first chunk that was refused; ABORTED:
 * nobody else has a reference, so that no more will come. */
int rt_stream_wait(struct rt_stream *s, struct err *err);
/* Copies. INVALID_ARGUMENT: part of a granule, or more than is missing. */
int rt_stream_add(struct rt_stream *s, const void *p, uint64_t n, struct err *err);
uint64_t rt_stream_total(const struct rt_stream *s);
uint64_t rt_stream_granule(const struct rt_stream *s);
uint64_t rt_stream_current(struct rt_stream *s);
/* All bytes, the stream's; NULL before they are there. */
const void *rt_stream_data(struct rt_stream *s);

/* ---- traces: what the devices of this process ran, and when ---- */
struct rt_trace;
/* Records on all devices of all clients, also of clients that are made later, until it is stopped.
 * A device that can't be traced is told of in what comes of it, and logged. FAILED_PRECONDITION:
 * the process has one that runs. One owner. Blocks briefly, as the next does. */
int rt_trace_start(struct rt_trace **out, struct err *err);
/* Ends and frees it, whatever is returned. *out: a serialized XSpace with a plane for each device,
 * malloc'd, the caller's; NULL if there is nothing to tell (*bytes 0). In a child of fork its
 * parent's has nothing but what its parent's clients left. */
int rt_trace_stop(struct rt_trace *t, void **out, size_t *bytes, struct err *err);

/* ---- topologies: devices that need not be here; values, no thread but the caller's ---- */
struct rt_target {
	unsigned cores;
	uint64_t memory_bytes;
	bool has_all;		/* whoever runs programs for several has all of the devices */
	/* Functions that share out calls of programs for several, static (compiler/tc.h); NULL:
	 * none. They are called by whatever compiles, on its thread, with no lock held. */
	const struct tc_partitioners *partitioners;
};
struct rt_topology {
	char kind[32];		/* "Tessera T1" */
	unsigned n_devices;
	struct rt_target target;	/* of each device */
};
void rt_topology_of(const struct rt_client *c, struct rt_topology *out);
/* Reads "", "tessera", or "tessera:devices=4,cores=8,hbm=4294967296" (also what
 * rt_topology_write makes). INVALID_ARGUMENT: the word that is wrong. */
int rt_topology_parse(const char *text, size_t n, struct rt_topology *out,
		      struct err *err);
/* One of the words by name: "devices", "cores", "hbm" (bytes). */
int rt_topology_set(struct rt_topology *t, const char *name, int64_t value,
		    struct err *err);
#define RT_TOPOLOGY_TEXT 128
void rt_topology_write(const struct rt_topology *t, char out[RT_TOPOLOGY_TEXT]);

/* ---- answers as XLA's protobufs, malloc'd: the caller frees ---- */
/* xla.ShapeProto: in its order, in memory of this kind; of a token, which has no layout. */
int rt_shape_proto(const struct rt_shape *s, enum rt_memory_kind kind, void **out,
		   size_t *bytes, struct err *err);
/* How many run a program: a member for each partition of each replica, each on a device of its
 * own; member = replica * partitions + partition. Both at least 1. */
struct rt_counts { unsigned replicas, partitions; };
/* xla.DeviceAssignmentProto: the device of each member, by member. */
int rt_assignment_proto(const int64_t *devices, struct rt_counts n, void **out, size_t *bytes,
			struct err *err);

/* ---- programs: compiled, on no device; they do not change ---- */
/* Compiles, or takes from the cache on disk. Needs no device. Blocks. Errors as
 * tc_compile; a cache that can't be read or written is no error. */
int rt_program_compile(const struct rt_target *target, const void *code,
		       size_t code_bytes, const char *format, const void *options,
		       size_t options_bytes, struct rt_program **out, struct err *err);
/* *out is malloc'd, the caller's. */
int rt_program_serialize(const struct rt_program *p, void **out, size_t *bytes,
			 struct err *err);
/* INVALID_ARGUMENT: not what rt_program_serialize made, or damaged. */
int rt_program_deserialize(const void *p, size_t n, struct rt_program **out,
			   struct err *err);
void rt_program_ref(struct rt_program *p);
void rt_program_unref(struct rt_program *p);
/* What these give is the program's, as long as it lives. */
const struct image *rt_program_image(const struct rt_program *p);
const void *rt_program_options(const struct rt_program *p, size_t *bytes);
const char *rt_program_fingerprint(const struct rt_program *p);	/* 64 hex digits */
struct rt_counts rt_program_members(const struct rt_program *p);
/* The program in a form that frameworks read back: MLIR as it came, format "mlir", or for
 * several partitions as each of them runs it (tc_member_program, whose errors it has); of an
 * HLO module, "hlo_with_config" with the layouts of its arguments and results. *format is
 * NUL-terminated. The first call that makes one makes it, the others wait for that one. */
int rt_program_show(struct rt_program *p, const void **out, size_t *bytes,
		    const char **format, struct err *err);
/* Checks CompileOptionsProto bytes for n devices: INVALID_ARGUMENT, UNIMPLEMENTED. */
int rt_check_options(unsigned n_devices, const void *p, size_t n, struct err *err);
/* SHA-256 of bytes as 64 hex digits. */
void rt_hash(const void *p, size_t n, char hex[65]);

/* ---- executables: programs on a device ---- */
/* Compiles (or takes from the cache) for the device that the options name. Blocks.
 * INVALID_ARGUMENT: the options name several. */
int rt_compile(struct rt_client *c, const void *code, size_t code_bytes,
	       const char *format, const void *options, size_t options_bytes,
	       struct rt_exe **out, struct err *err);
/* Loads on the device that the options name (NULL: the program's own). Blocks for the
 * upload of code and constants. INVALID_ARGUMENT: the device refuses the program, it was
 * compiled for other members than the options name, or those are several. */
int rt_load(struct rt_client *c, struct rt_program *p, const void *options,
	    size_t options_bytes, struct rt_exe **out, struct err *err);
/* A program on the device of each of its members that is this process's: exe[n], by member, a
 * reference each. Without other processes that is all members. */
struct rt_gang {
	struct rt_counts members;
	unsigned n;
	struct rt_exe **exe;
	unsigned *ids;		/* of the devices of all members; the gang's */
};
unsigned rt_exe_member(const struct rt_exe *x);
/* As rt_compile and rt_load, on all devices that the options name; the caller frees *out.
 * INVALID_ARGUMENT: none of these devices is this process's. */
int rt_compile_gang(struct rt_client *c, const void *code, size_t code_bytes,
		    const char *format, const void *options, size_t options_bytes,
		    struct rt_gang *out, struct err *err);
int rt_load_gang(struct rt_client *c, struct rt_program *p, const void *options,
		 size_t options_bytes, struct rt_gang *out, struct err *err);
/* Gives the references and ids back and empties *g. */
void rt_free_gang(struct rt_gang *g);
/* Queued runs need it: the last unref leaves freeing to their end and does not wait. */
void rt_exe_ref(struct rt_exe *x);
void rt_exe_unref(struct rt_exe *x);
struct rt_program *rt_exe_program(const struct rt_exe *x);	/* no new reference */
unsigned rt_exe_device(const struct rt_exe *x);
/* Refuses later launches; those that are queued run. */
void rt_exe_delete(struct rt_exe *x);
bool rt_exe_is_deleted(struct rt_exe *x);
/* Launches. outs[n_results] are new references. keep[i] (NULL: none): argument i must not
 * be donated. *done: a new reference, the end of the run. A launch with an argument that
 * is still pending starts when it is resolved; its arguments count as used already.
 * Returns before the program runs; blocks while the queue's ring is full. Donated arguments
 * are deleted, unless it fails. An argument whose content is an error makes its results
 * that error. INVALID_ARGUMENT: number, shape, device of arguments; deleted; an array that
 * is donated and used again.
 * Where the program's members meet, one that is launched alone waits for the others: its results
 * are pending until each of them was launched, in whatever order, by whatever threads. They may
 * be of programs compiled apart, if these have the same collectives in the same order. The k-th
 * launch of a member by itself on a list of devices goes with the k-th of each other member
 * on that list; so does one that fails, and the others get its error. INVALID_ARGUMENT is in the
 * results where collectives differ; CANCELLED and others where a member will not come. */
int rt_execute(struct rt_exe *x, struct rt_buffer *const *args, size_t n_args,
	       const bool *keep, struct rt_buffer **outs, struct rt_event **done,
	       struct err *err);
/* The same on all devices of a gang, at once: args[n][n_args], outs[n][n_results] and done[n] by
 * member. All members start, or none: where this fails nothing has begun. An argument of any
 * of them that is pending defers all; one whose content is an error makes all results that
 * error. Launches that share devices run in one order on all of these, whatever threads make
 * them. Where members meet and one fails, those that rely on it fail with a text that names its
 * device, and the next launch runs again; who had ended before has right results. Where it fails
 * outs and done hold no reference: each is as it was, or NULL. */
int rt_execute_gang(const struct rt_gang *g, struct rt_buffer *const *const *args, size_t n_args,
		    const bool *keep, struct rt_buffer **const *outs, struct rt_event **done,
		    struct err *err);

/*
 * Functions that programs call by name (functions of hal/hw/image.h): what one is shown, and
 * whoever knows them. Everything of a struct rt_function lives until its call is unloaded.
 */
struct rt_attributes {
	const struct rt_attribute *at;	/* ascending by name */
	uint64_t n;
};
struct rt_attribute {
	const char *name;	/* ends in NUL, too, as texts do */
	uint32_t name_bytes;
	uint8_t kind;		/* IMAGE_ATTRIBUTE_* */
	uint8_t elem;		/* of SCALAR and ARRAY */
	uint64_t n;		/* elements; of TEXT: bytes */
	const void *data;	/* aligned for any type */
	struct rt_attributes list;	/* of LIST */
};
struct rt_function_array {
	uint8_t elem, rank;	/* TOKEN: no bytes */
	int32_t alias;		/* of a result: the operand in whose memory it is; else -1 */
	const int64_t *dim;	/* [rank] */
	uint64_t bytes;
};
struct rt_function {
	const char *name;
	uint32_t n_in, n_out;
	const struct rt_function_array *arrays;	/* operands, then results */
	struct rt_attributes attributes;
};
/* All but begin and end may block and give errors of their own choice. Threads: those of turns, any
 * number at once, but load (the caller's) and unload (any). */
struct rt_functions {
	/* A call of a program that is loaded; NOT_FOUND: there is no such function. */
	int (*load)(const struct rt_function *f, void **state, struct err *err);
	void (*unload)(void *state);
	/* A run of the program: *run is ended even if begin fails after it was set. host: what its
	 * struct rt_host has as arg. First all calls begin, then all are initialized. */
	int (*begin)(void *state, void *host, unsigned device, void **run, struct err *err);
	int (*initialize)(void *run, struct err *err);
	/* data[n_in + n_out], 64-aligned; NULL: a token. */
	int (*call)(void *run, void *const *data, struct err *err);
	void (*end)(void *run);
};
/* Before the client is used. f is static. */
void rt_client_use_functions(struct rt_client *c, const struct rt_functions *f);
/* Before the client is used: what its programs are compiled with (struct rt_target). */
void rt_client_use_partitioners(struct rt_client *c, const struct tc_partitioners *p);

/* Functions of the framework that a program calls where it sends and receives (transfers of
 * hal/hw/image.h), by its channels. They are called on a thread of the client's, one after the
 * other for a launch, may block and may call anything here but what waits for this launch. An
 * error, which is theirs to choose, ends the launch. */
struct rt_host {
	/* An array, dense; `data` is malloc'd, and theirs. */
	int (*send)(void *arg, int64_t channel, void *data, uint64_t bytes, struct err *err);
	/* Asks for an array: a reference of theirs, also on failure, to be filled now or
	 * later. */
	int (*recv)(void *arg, int64_t channel, struct rt_stream *to, struct err *err);
	/* Whether there is a function for the channel; called before anything runs. */
	bool (*knows)(void *arg, int64_t channel, bool is_recv);
	void (*free)(void *arg);	/* once, when the launch is over */
	void *arg;
};
/* As rt_execute_gang, for a program that calls the host: hosts[n], one for each member, copied and
 * taken also on failure. done[n] and the results of a member are ready, and its arguments free,
 * when the last of the program's runs is over. Launches of a device that call the host run in the
 * order in which their arguments were there, one at a time, but for those that host functions
 * make and while functions do not return. INVALID_ARGUMENT: a channel has no function.
 * Members that do not meet are launched one by one, and where it fails those that were run to
 * their ends. Those that meet are launched together; until all are over other launches whose
 * members meet on one of these devices are made later, and FAILED_PRECONDITION if one of these
 * functions asks for them. An error of one member's function is all results'. */
int rt_execute_gang_with_hosts(const struct rt_gang *g, struct rt_buffer *const *const *args,
			       size_t n_args, const bool *keep, const struct rt_host *hosts,
			       struct rt_buffer **const *outs, struct rt_event **done,
			       struct err *err);

/* A launch of which the program has more arguments and results than the caller knows of, since they
 * are sizes of others (hal/hw/image.h), or takes bytes as truth values: begin puts the sizes to the
 * arguments and copies of bytes in their place, the caller executes with in[n_args],
 * keep[n_args] and out[n_outs], and end takes the sizes off the results. One owner. */
struct rt_sized {
	unsigned n_args, n_outs, n_seen;	/* seen: results that the caller gets */
	struct rt_buffer **in, **out, **made;
	struct rt_buffer *const *args;	/* the caller's */
	bool *keep;
	unsigned n_made;
	const struct image *image;
};
/* Whether a launch with these arguments is one; others need none of it. */
bool rt_sized_is_due(const struct rt_exe *x, struct rt_buffer *const *args, size_t n_args);
/* After success end is due. Blocks for the copy of an array that is shorter than its bounds and is
 * not padded, and until it is there. INVALID_ARGUMENT: the number of arguments; one is longer than
 * its bounds, or has others. args stay until the end. */
int rt_sized_begin(const struct rt_exe *x, struct rt_buffer *const *args, size_t n_args,
		   const bool *keep, struct rt_sized *s, struct err *err);
/* outs[n_seen]: new references, the results; NULL if nothing has run. If it has, donated arguments
 * that were copied are gone as well. */
void rt_sized_end(struct rt_sized *s, bool has_run, struct rt_buffer **outs);

#endif
