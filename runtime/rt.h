/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RT_RT_H
#define RT_RT_H
/*
 * The runtime's door: client, devices, buffers, events, executables. It decides what
 * frameworks see; runtime/pjrt/ only wraps it.
 *
 * Shared objects (buffer, event, executable) are counted: rt_x_ref and rt_x_unref,
 * any thread; unref takes NULL. A client must outlive nothing: it is counted by its objects.
 * Work on a device is asynchronous: launches return at once, and what fails later
 * travels in events. Callbacks run with no lock held. Codes are those of err.def.
 *
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

struct rt_client;
struct rt_buffer;
struct rt_event;
struct rt_exe;
struct rt_program;
struct rt_transfer;
struct rt_stream;

enum rt_memory_kind { RT_DEVICE, RT_PINNED_HOST, RT_UNPINNED_HOST, RT_KINDS };
extern const char *const rt_memory_kind_names[RT_KINDS];

/* ---- client ---- */
struct rt_client_options { const char *devices, *sim; };	/* as hal_options */
/* Opens every device of the selection. Blocks. */
int rt_client_create(const struct rt_client_options *o, struct rt_client **out,
		     struct err *err);
/* The caller's reference goes; devices close when the last object is gone. */
void rt_client_unref(struct rt_client *c);
/* FAILED_PRECONDITION: this is a child of fork, and the client its parent's. */
int rt_client_check(const struct rt_client *c, struct err *err);
unsigned rt_device_count(const struct rt_client *c);
const struct hal_device_info *rt_device_info(const struct rt_client *c, unsigned device);
void rt_memory_stats(struct rt_client *c, unsigned device, struct hal_mem_stats *out);
void rt_clear_memory_stats(struct rt_client *c, unsigned device);
/* Fails every later use of the device with this error. */
int rt_device_poison(struct rt_client *c, unsigned device, const struct err *why);

/* ---- events ---- */
struct rt_event *rt_event_new(void);		/* not ready; NULL: out of memory */
struct rt_event *rt_event_done(const struct err *why);	/* ready; why may be NULL */
void rt_event_ref(struct rt_event *e);
void rt_event_unref(struct rt_event *e);
void rt_event_set(struct rt_event *e, const struct err *why);	/* once */
bool rt_event_is_ready(const struct rt_event *e);
int rt_event_error(struct rt_event *e, struct err *err);	/* of a ready event */
int rt_event_wait(struct rt_event *e, struct err *err);	/* blocks */
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

/* ---- buffers: dense row-major arrays ---- */
struct rt_shape { enum elem elem; unsigned rank; int64_t dim[IMAGE_MAX_RANK]; };
uint64_t rt_shape_bytes(const struct rt_shape *s);
/* Copies from host memory at once; strides (bytes) may be NULL: dense. */
int rt_buffer_from_host(struct rt_client *c, unsigned device, enum rt_memory_kind kind,
			const struct rt_shape *shape, const void *data,
			const int64_t *strides, struct rt_buffer **out, struct err *err);
int rt_buffer_uninitialized(struct rt_client *c, unsigned device,
			    enum rt_memory_kind kind, const struct rt_shape *shape,
			    struct rt_buffer **out, struct err *err);
/* A buffer whose every use fails so. */
int rt_buffer_of_error(struct rt_client *c, unsigned device, enum rt_memory_kind kind,
		       const struct rt_shape *shape, const struct err *why,
		       struct rt_buffer **out, struct err *err);
void rt_buffer_ref(struct rt_buffer *b);
void rt_buffer_unref(struct rt_buffer *b);
const struct rt_shape *rt_buffer_shape(const struct rt_buffer *b);
unsigned rt_buffer_device(const struct rt_buffer *b);
enum rt_memory_kind rt_buffer_kind(const struct rt_buffer *b);
struct rt_client *rt_buffer_client(const struct rt_buffer *b);
bool rt_buffer_is_deleted(struct rt_buffer *b);
void rt_buffer_delete(struct rt_buffer *b);
/* A new reference to the event of its content. NULL: out of memory. */
struct rt_event *rt_buffer_ready(struct rt_buffer *b);
/* Part of the dense content to host memory; *done is a new reference. */
int rt_buffer_to_host(struct rt_buffer *b, uint64_t offset, void *dst, uint64_t bytes,
		      struct rt_event **done, struct err *err);
/* The same in two steps: *done at once, where to when it is known. Then one of start
 * and fail takes the fetch; the content stays until then. */
struct rt_fetch;
int rt_fetch_prepare(struct rt_buffer *b, uint64_t offset, uint64_t bytes,
		     struct rt_fetch **out, struct rt_event **done, struct err *err);
void rt_fetch_start(struct rt_fetch *f, void *dst);
void rt_fetch_fail(struct rt_fetch *f, const struct err *why);
int rt_buffer_copy(struct rt_buffer *b, unsigned device, enum rt_memory_kind kind,
		   struct rt_buffer **out, struct err *err);
/* The same bits as another shape of equal size; shares memory. */
int rt_buffer_bitcast(struct rt_buffer *b, const struct rt_shape *shape,
		      struct rt_buffer **out, struct err *err);
/* Where the content lies for the device and for the CPU; 0 and NULL: an empty array, or
 * the CPU can't see it. FAILED_PRECONDITION: the content has no place yet. */
int rt_buffer_address(struct rt_buffer *b, uint64_t *out, struct err *err);
int rt_buffer_pointer(struct rt_buffer *b, void **out, struct err *err);
void rt_buffer_hold(struct rt_buffer *b);		/* an external reference */
int rt_buffer_release(struct rt_buffer *b, struct err *err);
/* A buffer on memory that the device reaches (a device address, or where the CPU sees
 * it); host memory is mapped if its pages are not yet. It must stay until on_free
 * (NULL is fine), which is called once, when nothing on the device uses it any more. */
int rt_buffer_view(struct rt_client *c, unsigned device, enum rt_memory_kind kind,
		   const struct rt_shape *shape, void *pointer,
		   void (*on_free)(void *pointer, void *arg), void *arg,
		   struct rt_buffer **out, struct err *err);
/* A buffer whose content another one will give. Launches and transfers that use it
 * wait. Whoever makes it settles it, once, with a buffer of equal size or an error. */
int rt_buffer_alias(struct rt_client *c, unsigned device, enum rt_memory_kind kind,
		    const struct rt_shape *shape, struct rt_buffer **out,
		    struct err *err);
/* INVALID_ARGUMENT: it does not fit (the alias then holds that error). */
int rt_alias_fulfill(struct rt_buffer *alias, struct rt_buffer *with, struct err *err);
void rt_alias_fail(struct rt_buffer *alias, const struct err *why);
/* Moves the content to *out, which is ready once b is and `after` is set; `b` is
 * deleted. FAILED_PRECONDITION: there are external references. */
int rt_buffer_donate(struct rt_buffer *b, struct rt_event *after, struct rt_buffer **out,
		     struct err *err);

/* Makes the caller's memory reachable for every device, whole pages around it. It
 * must stay until it is unmapped by the same pointer. ALREADY_EXISTS, NOT_FOUND. */
int rt_dma_map(struct rt_client *c, void *data, size_t bytes, struct err *err);
int rt_dma_unmap(struct rt_client *c, void *data, struct err *err);

/* ---- transfers in pieces ---- */
/* Makes n buffers whose content comes in pieces. Calls on one transfer may come from
 * several threads. Destroying it fails buffers that are not complete. */
int rt_transfer_create(struct rt_client *c, unsigned device, enum rt_memory_kind kind,
		       const struct rt_shape *shapes, size_t n, struct rt_transfer **out,
		       struct err *err);
void rt_transfer_destroy(struct rt_transfer *t);
struct rt_client *rt_transfer_client(const struct rt_transfer *t);
size_t rt_transfer_count(const struct rt_transfer *t);
unsigned rt_transfer_device(const struct rt_transfer *t);
/* INVALID_ARGUMENT below: no buffer has this index. */
int rt_transfer_bytes(struct rt_transfer *t, int64_t i, uint64_t *out, struct err *err);
/* A new reference, once for each. */
int rt_transfer_buffer(struct rt_transfer *t, int64_t i, struct rt_buffer **out,
		       struct err *err);
/* Copies before it returns; after the last piece the buffer is ready. */
int rt_transfer_data(struct rt_transfer *t, int64_t i, uint64_t offset, const void *data,
		     uint64_t bytes, bool is_last, struct err *err);
int rt_transfer_fail(struct rt_transfer *t, int64_t i, const struct err *why,
		     struct err *err);
const struct rt_shape *rt_transfer_shape(const struct rt_transfer *t, size_t i);

/* Bytes that a callback hands over in chunks, granules of equal size. */
struct rt_stream *rt_stream_new(uint64_t total, uint64_t granule);
void rt_stream_free(struct rt_stream *s);
int rt_stream_add(struct rt_stream *s, const void *p, uint64_t n, struct err *err);
uint64_t rt_stream_total(const struct rt_stream *s);
uint64_t rt_stream_granule(const struct rt_stream *s);
uint64_t rt_stream_current(struct rt_stream *s);
/* All bytes, or NULL before they are there. */
const void *rt_stream_data(struct rt_stream *s);

/* ---- topologies: devices that need not be here ---- */
struct rt_target { unsigned cores; uint64_t memory_bytes; };
struct rt_topology {
	char kind[32];		/* "Tessera T1" */
	unsigned n_devices;
	struct rt_target target;
};
void rt_topology_of(const struct rt_client *c, struct rt_topology *out);
/* Reads "", "tessera", or "tessera:devices=4,cores=8,hbm=4294967296" (also what
 * rt_topology_write makes). INVALID_ARGUMENT: the word that is wrong. */
int rt_topology_parse(const char *text, size_t n, struct rt_topology *out,
		      struct err *err);
/* One of the words by name: "devices", "cores", "hbm". */
int rt_topology_set(struct rt_topology *t, const char *name, int64_t value,
		    struct err *err);
#define RT_TOPOLOGY_TEXT 128
void rt_topology_write(const struct rt_topology *t, char out[RT_TOPOLOGY_TEXT]);
/* A serialized xla.ShapeProto, malloc'd: row-major, in memory of this kind. */
int rt_shape_proto(const struct rt_shape *s, enum rt_memory_kind kind, void **out,
		   size_t *bytes, struct err *err);

/* ---- programs: compiled, on no device ---- */
/* Compiles, or takes from the cache on disk. Needs no device. Errors as tc_compile. */
int rt_program_compile(const struct rt_target *target, const void *code,
		       size_t code_bytes, const char *format, const void *options,
		       size_t options_bytes, struct rt_program **out, struct err *err);
int rt_program_serialize(const struct rt_program *p, void **out, size_t *bytes,
			 struct err *err);
/* INVALID_ARGUMENT: not what rt_program_serialize made, or damaged. */
int rt_program_deserialize(const void *p, size_t n, struct rt_program **out,
			   struct err *err);
void rt_program_ref(struct rt_program *p);
void rt_program_unref(struct rt_program *p);
const struct image *rt_program_image(const struct rt_program *p);
const void *rt_program_options(const struct rt_program *p, size_t *bytes);
const char *rt_program_fingerprint(const struct rt_program *p);	/* 64 hex digits */
/* The framework's program as it came; *format is NUL-terminated. */
const void *rt_program_source(const struct rt_program *p, size_t *bytes,
			      const char **format);
/* Checks options for n devices: INVALID_ARGUMENT, UNIMPLEMENTED. */
int rt_check_options(unsigned n_devices, const void *p, size_t n, struct err *err);
/* SHA-256 of bytes as 64 hex digits. */
void rt_hash(const void *p, size_t n, char hex[65]);

/* ---- executables: programs on a device ---- */
/* Compiles (or takes from the cache) for the device that the options name. */
int rt_compile(struct rt_client *c, const void *code, size_t code_bytes,
	       const char *format, const void *options, size_t options_bytes,
	       struct rt_exe **out, struct err *err);
/* Loads on the device that the options name (NULL: the program's own). */
int rt_load(struct rt_client *c, struct rt_program *p, const void *options,
	    size_t options_bytes, struct rt_exe **out, struct err *err);
void rt_exe_ref(struct rt_exe *x);
void rt_exe_unref(struct rt_exe *x);
struct rt_client *rt_exe_client(const struct rt_exe *x);
struct rt_program *rt_exe_program(const struct rt_exe *x);	/* as long as x */
unsigned rt_exe_device(const struct rt_exe *x);
void rt_exe_delete(struct rt_exe *x);
bool rt_exe_is_deleted(struct rt_exe *x);
/* Launches. outs[n_results] are new references. keep[i]: argument i must not be
 * donated. *done: a new reference, the end of the run. A launch with an argument that
 * is not settled yet starts when it is; its arguments count as used already. */
int rt_execute(struct rt_exe *x, struct rt_buffer *const *args, size_t n_args,
	       const bool *keep, struct rt_buffer **outs, struct rt_event **done,
	       struct err *err);

#endif
