/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RT_RT_INTERNAL_H
#define RT_RT_INTERNAL_H
/*
 * The runtime's structures. Private to runtime/.
 *
 * Memory that queued work may use is not freed but laid on the device's heap of garbage
 * with the number of the last submission that uses it, and swept when that is done.
 * Locks, in the order in which they may be taken: rt_device.grow_lock (making scratch),
 * rt_device.lock (garbage, scratch, launches), rt_buffer.lock (a buffer's own state).
 */
#include <pthread.h>
#include <stdatomic.h>

#include "runtime/rt.h"

struct rt_garbage {
	struct hal_mem *mem;
	uint64_t value;		/* free when this submission is done */
	struct rt_garbage *next;
};

struct rt_device {
	struct hal_device *hal;
	struct hal_queue *queue;
	struct hal_device_info info;
	pthread_mutex_t lock;
	struct rt_garbage *garbage, *spare;
	pthread_mutex_t grow_lock;
	struct hal_mem *scratch;	/* of all launches: they run in order; see memory.c */
	uint64_t scratch_use;	/* newest submission that uses it */
	struct rt_exe *scratch_users;	/* executables that need any */
	bool is_poisoned;
	struct err poison;
};

struct rt_job {
	struct rt_client *client;
	void (*fn)(void *arg);
	void *arg;
	struct rt_job *next;
	struct rt_callback callback;
};

/* The caller's memory, mapped for every device. Under client.map_lock. */
struct rt_mapping {
	uint8_t *host;		/* whole pages */
	uint64_t bytes;
	void *asked;		/* as rt_dma_map was called; NULL: for a view */
	unsigned refs;
	struct rt_mapping *next;
	struct hal_mem *mems[];	/* one a device */
};

struct rt_client {
	atomic_uint refs;
	struct hal *hal;
	struct rt_device *devices;
	unsigned n_devices;
	/* the transfer thread */
	pthread_mutex_t job_lock;
	pthread_cond_t job_cond;
	struct rt_job *jobs, **last_job;
	pthread_t worker;
	bool has_worker, quit;
	pthread_mutex_t map_lock;
	struct rt_mapping *mappings;
};

/* Memory that buffers share (aliases, bitcasts). */
struct rt_storage {
	atomic_uint refs;
	struct rt_client *client;
	unsigned device;
	struct hal_mem *mem;	/* NULL: no bytes */
	_Atomic uint64_t last_use;
	/* Of a view: called when no device work uses the memory any more. */
	void (*on_free)(void *pointer, void *arg);
	void *pointer, *arg;
	struct rt_mapping *mapping;
};

/*
 * The content of a buffer with a gate comes from elsewhere (an alias, a transfer, a
 * launch that waits): storage, value and error are final once the gate is set, and are
 * not looked at before by anyone but who settles it. Pins keep the content for work
 * that waits, even when the buffer is deleted meanwhile.
 */
struct rt_buffer {
	atomic_uint refs;
	struct rt_client *client;
	unsigned device;
	enum rt_memory_kind kind;
	struct rt_shape shape;
	pthread_mutex_t lock;
	struct rt_storage *storage;	/* NULL: deleted, or not there yet */
	uint64_t value;		/* the submission that makes the content; 0: there */
	struct err *error;	/* the content is this error */
	struct err *spare_error;	/* room for it while the gate is open */
	struct rt_event *gate;
	unsigned holds, pins;
	bool is_deleted;
};

struct rt_program {
	atomic_uint refs;
	struct image *image;
	void *bytes;		/* the ELF image */
	size_t n_bytes;
	void *source;		/* the framework's program */
	size_t source_bytes;
	char format[16];
	void *options;		/* CompileOptionsProto */
	size_t options_bytes;
	char fingerprint[65];
};

struct rt_exe {
	atomic_uint refs;
	struct rt_client *client;
	unsigned device;
	struct hal_exe *hal;
	struct rt_program *program;
	const struct image *image;	/* the program's */
	atomic_bool is_deleted;
	_Atomic uint64_t last_use;	/* newest submission that runs it */
	struct rt_exe *next, **link;	/* of device.scratch_users; link NULL: not there */
};

void rt_client_ref(struct rt_client *c);
/* Whether this is a child of fork: locks may be held by threads that are not here. */
bool rt_is_orphan(const struct rt_client *c);
/* Runs fn on the client's thread; it may wait for the device, never for a gate. */
int rt_later(struct rt_client *c, void (*fn)(void *arg), void *arg, struct err *err);
/* The same once the buffer is settled. */
int rt_after(struct rt_buffer *b, void (*fn)(void *arg), void *arg, struct err *err);
/* Set on threads where the client can't be freed: it would wait for itself. */
extern _Thread_local unsigned rt_in_callback;
void rt_sweep(struct rt_device *d);	/* under d->lock */
void rt_discard(struct rt_client *c, unsigned device, struct hal_mem *mem, uint64_t value);
/* Allocates; when memory is short, waits for queued work, gives scratch up too, and tries
 * again. */
int rt_alloc(struct rt_client *c, unsigned device, enum rt_memory_kind kind,
	     uint64_t bytes, const char *tag, struct hal_mem **out, struct err *err);
/* Waits for queued work and frees what it held, and scratch. */
void rt_make_room(struct rt_client *c, unsigned device);
/* Takes device.lock with scratch of so many bytes there until it is let go; not on failure. */
int rt_lock_with_scratch(struct rt_client *c, unsigned device, uint64_t bytes,
			 struct err *err);
/* From when an executable may need scratch; when it no longer does, once or more. */
void rt_scratch_join(struct rt_exe *x);
void rt_scratch_leave(struct rt_exe *x);
/* A buffer with fresh storage (bytes > 0) and undefined content. */
int rt_buffer_new(struct rt_client *c, unsigned device, enum rt_memory_kind kind,
		  const struct rt_shape *shape, const char *tag, struct rt_buffer **out,
		  struct err *err);
void rt_storage_unref(struct rt_storage *s);
/* A buffer with an open gate; with storage if `tag` is given. */
int rt_buffer_new_pending(struct rt_client *c, unsigned device, enum rt_memory_kind kind,
			  const struct rt_shape *shape, const char *tag,
			  struct rt_buffer **out, struct err *err);
bool rt_buffer_is_pending(const struct rt_buffer *b);
/* Opens the way: the content is there (NULL), or it is this error. Once. */
void rt_buffer_settle(struct rt_buffer *b, const struct err *why);
/* The content of `b` is that of `from`, which is settled. Sizes agree. */
void rt_buffer_settle_from(struct rt_buffer *b, struct rt_buffer *from);
/* Takes a reference and a pin; INVALID_ARGUMENT: deleted. */
int rt_buffer_pin(struct rt_buffer *b, struct err *err);
void rt_buffer_unpin(struct rt_buffer *b);
/* Another buffer on the same storage, value and error; for launches and settled b. */
struct rt_buffer *rt_buffer_share(struct rt_buffer *b, const struct rt_shape *shape);
/* Ready when the content is, whether the buffer was deleted or not. */
struct rt_event *rt_buffer_content(struct rt_buffer *b);
/* Sets an event of which it takes the reference; for callbacks. */
void rt_event_pass(void *event, const struct err *err);
void rt_mapping_unref(struct rt_client *c, struct rt_mapping *m);

/* `hash`: rt_hash of the image, in hex. */
int rt_cache_get(const char *key, void **out, size_t *bytes, char hash[65]); /* 0: found */
void rt_cache_put(const char *key, const void *p, size_t n, const char *hash);
/* What tells this build of the compiler from others: its object's build id as hex digits,
 * or "" if the linker left none. */
void rt_build_id(char *out, size_t room);
/* The device that CompileOptionsProto bytes name, of n_devices. */
int rt_parse_options(unsigned n_devices, const void *p, size_t n, unsigned *device,
		     struct err *err);
/* The halves of rt_execute, on checked arguments: with settled ones now (pinned by us
 * once if it was deferred), or when they are settled. */
int rt_execute_now(struct rt_exe *x, struct rt_buffer *const *args, size_t n_args,
		   const bool *keep, bool was_deferred, struct rt_buffer **outs,
		   struct rt_event **done, struct err *err);
int rt_execute_later(struct rt_exe *x, struct rt_buffer *const *args, size_t n_args,
		     const bool *keep, struct rt_buffer **outs, struct rt_event **done,
		     struct err *err);
/* As rt_program_compile; *was_cached tells where it came from, and bypasses the cache
 * if it is set on the way in. */
int rt_program_make(const struct rt_target *target, const void *code, size_t code_bytes,
		    const char *format, const void *options, size_t options_bytes,
		    bool *was_cached, struct rt_program **out, struct err *err);

#endif
