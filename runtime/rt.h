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

enum rt_memory_kind { RT_DEVICE, RT_PINNED_HOST, RT_UNPINNED_HOST, RT_KINDS };
extern const char *const rt_memory_kind_names[RT_KINDS];

/* ---- client ---- */
struct rt_client_options { const char *devices, *sim; };	/* as hal_options */
/* Opens every device of the selection. Blocks. */
int rt_client_create(const struct rt_client_options *o, struct rt_client **out,
		     struct err *err);
/* The caller's reference goes; devices close when the last object is gone. */
void rt_client_unref(struct rt_client *c);
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
/* fn exactly once: now if ready, else on the thread that sets it. err NULL: fine. */
void rt_event_on_ready(struct rt_event *e, void (*fn)(void *arg, const struct err *err),
		       void *arg);

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
int rt_buffer_copy(struct rt_buffer *b, unsigned device, enum rt_memory_kind kind,
		   struct rt_buffer **out, struct err *err);
/* Writes part of an uninitialized buffer; blocks for the copy. */
int rt_buffer_write(struct rt_buffer *b, uint64_t offset, const void *src,
		    uint64_t bytes, struct err *err);
/* The same bits as another shape of equal size; shares memory. */
int rt_buffer_bitcast(struct rt_buffer *b, const struct rt_shape *shape,
		      struct rt_buffer **out, struct err *err);
uint64_t rt_buffer_address(struct rt_buffer *b);	/* device address; 0: none */
void *rt_buffer_pointer(struct rt_buffer *b);		/* as the CPU sees it, or NULL */
void rt_buffer_hold(struct rt_buffer *b);		/* an external reference */
int rt_buffer_release(struct rt_buffer *b, struct err *err);

/* ---- executables ---- */
/* Compiles (or takes from the cache) for the device that the options name. */
int rt_compile(struct rt_client *c, const void *code, size_t code_bytes,
	       const char *format, const void *options, size_t options_bytes,
	       struct rt_exe **out, struct err *err);
int rt_exe_serialize(struct rt_exe *x, void **out, size_t *bytes, struct err *err);
int rt_exe_deserialize(struct rt_client *c, const void *p, size_t n, const void *options,
		       size_t options_bytes, struct rt_exe **out, struct err *err);
void rt_exe_ref(struct rt_exe *x);
void rt_exe_unref(struct rt_exe *x);
const struct image *rt_exe_image(const struct rt_exe *x);
unsigned rt_exe_device(const struct rt_exe *x);
struct rt_client *rt_exe_client(const struct rt_exe *x);
const void *rt_exe_options(const struct rt_exe *x, size_t *bytes);
const char *rt_exe_fingerprint(const struct rt_exe *x);	/* 64 hex digits */
void rt_exe_delete(struct rt_exe *x);
bool rt_exe_is_deleted(struct rt_exe *x);
/* Launches. outs[n_results] are new references. keep[i]: argument i must not be
 * donated. *done: a new reference, the end of the run. */
int rt_execute(struct rt_exe *x, struct rt_buffer *const *args, size_t n_args,
	       const bool *keep, struct rt_buffer **outs, struct rt_event **done,
	       struct err *err);

#endif
