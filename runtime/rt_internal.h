/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RT_RT_INTERNAL_H
#define RT_RT_INTERNAL_H
/*
 * The runtime's structures. Private to runtime/.
 *
 * Memory that queued work may use is not freed but laid on the device's heap of garbage
 * with the number of the last submission that uses it, and swept when that is done.
 * Locks: rt_device.lock (garbage, temporaries, launches); buffers' own state is under
 * rt_buffer.lock. device.lock is taken before buffer.lock, never the other way.
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
	struct hal_mem *temp;	/* temporaries of all launches: they run in order */
	uint64_t temp_use;	/* newest submission that uses temp */
	bool is_poisoned;
	struct err poison;
};

struct rt_job {
	void (*fn)(void *arg);
	void *arg;
	struct rt_job *next;
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
};

/* Memory that buffers share (aliases, bitcasts). */
struct rt_storage {
	atomic_uint refs;
	struct rt_client *client;
	unsigned device;
	struct hal_mem *mem;	/* NULL: no bytes */
	_Atomic uint64_t last_use;
};

struct rt_buffer {
	atomic_uint refs;
	struct rt_client *client;
	unsigned device;
	enum rt_memory_kind kind;
	struct rt_shape shape;
	pthread_mutex_t lock;
	struct rt_storage *storage;	/* NULL: deleted */
	uint64_t value;		/* the submission that makes the content; 0: there */
	struct err *error;	/* the content is this error */
	unsigned holds;
	bool is_deleted;
};

struct rt_exe {
	atomic_uint refs;
	struct rt_client *client;
	unsigned device;
	struct hal_exe *hal;
	const struct image *image;
	void *bytes;		/* the ELF image, for serialization */
	size_t n_bytes;
	void *options;
	size_t options_bytes;
	char fingerprint[65];
	atomic_bool is_deleted;
	pthread_mutex_t lock;
};

void rt_client_ref(struct rt_client *c);
int rt_later(struct rt_client *c, void (*fn)(void *arg), void *arg, struct err *err);
void rt_sweep(struct rt_device *d);	/* under d->lock */
void rt_discard(struct rt_client *c, unsigned device, struct hal_mem *mem, uint64_t value);
/* Allocates; when memory is short, waits for queued work and tries once more. */
int rt_alloc(struct rt_client *c, unsigned device, enum rt_memory_kind kind,
	     uint64_t bytes, const char *tag, struct hal_mem **out, struct err *err);
/* A buffer with fresh storage (bytes > 0) and undefined content. */
int rt_buffer_new(struct rt_client *c, unsigned device, enum rt_memory_kind kind,
		  const struct rt_shape *shape, const char *tag, struct rt_buffer **out,
		  struct err *err);
void rt_storage_unref(struct rt_storage *s);

void rt_sha256(const void *p, size_t n, char hex[65]);
int rt_cache_get(const char *key, void **out, size_t *bytes);	/* 0: found */
void rt_cache_put(const char *key, const void *p, size_t n);
/* The device that CompileOptionsProto bytes name. */
int rt_parse_options(struct rt_client *c, const void *p, size_t n, unsigned *device,
		     struct err *err);

#endif
