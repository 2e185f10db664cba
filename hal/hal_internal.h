/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HAL_HAL_INTERNAL_H
#define HAL_HAL_INTERNAL_H
/*
 * The HAL's own structures. Private to hal/.
 *
 * Locks, in the order in which they may be taken: device.lock (heaps, host memory,
 * the page), queue.lock (ring, numbering, failures, notices). Neither is held
 * while a callback runs. A queue's lock is held across its doorbell.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "hal/hal.h"
#include "hal/heap.h"
#include "hal/hw/image.h"
#include "hal/telemetry.h"
#include "hal/transport.h"

#define HAL_INLINE_NS 20000u	/* programs estimated below run on the caller */
#define HAL_SPIN_NS 20000	/* a waiter polls so long before it sleeps */
#define HAL_RING 1024u		/* descriptors of a queue */
#define HAL_ARGS ((uint64_t)2 << 20)	/* bytes of bindings in flight */
#define HAL_FAILURES 4096u
#define HAL_CLOSE_NS 5000000000ll
#define HAL_PAGE_NS 100000000ll	/* device counters are read at most so often */

struct sim;

struct hal_entry {
	struct hal_device_info info;
	const struct hal_transport_ops *transport;	/* NULL: not reached by this build */
	struct hal_direct_host host;
	char where[128];
	struct hal_device *open;
};

struct hal {
	pthread_mutex_t lock;	/* over opening and closing */
	unsigned generation;	/* hal_generation() at creation: fork changes it */
	struct hal_entry *entries;
	unsigned n_entries, room;
	struct sim *sim;	/* the model in this process, made when first needed */
	char sim_options[256];
	struct hal_page *page;
	int page_fd;
	char page_path[128];
};

/* A range of pinned host memory, mapped for the device. */
struct hal_host_chunk {
	struct hal_host_chunk *next;
	void *host;
	uint64_t bytes, va;
	struct hal_heap *heap;	/* NULL: foreign */
	bool is_foreign;	/* the caller's memory (hal_mem_map) */
	bool is_granted;	/* came from the transport, which has it back */
};

struct hal_mem {
	struct hal_device *dev;
	enum hal_mem_kind kind;
	uint64_t va, bytes;
	uint8_t *host;
	struct hal_block *block;	/* NULL: mapped or a view, see chunk */
	struct hal_host_chunk *chunk;	/* HOST; NULL with block: a view */
	struct hal_mem *next_spare;
	struct hal_mem *next, **link;	/* of device.mems */
};

struct hal_notice {
	uint64_t value;
	void (*fn)(void *arg, const struct err *err);
	void *arg;
	struct hal_notice *next;
};

struct hal_failure {
	uint64_t first, last;
	struct err err;
};

struct hal_slot {
	struct hal_exe *exe;	/* what the submission runs, for messages */
	uint64_t args_end;	/* of its bindings in the ring of arguments */
};

struct hal_queue {
	struct hal_device *dev;
	enum hal_queue_class cls;
	struct hal_ring *ring;
	pthread_mutex_t lock;
	pthread_cond_t moved;	/* done has grown; CLOCK_MONOTONIC */
	unsigned sleepers;
	_Atomic uint64_t submitted;	/* written under lock */
	uint64_t last_irq;
	_Atomic uint64_t done;
	struct hal_slot slots[HAL_RING];
	struct hal_mem *args;	/* bindings of submissions in flight */
	uint64_t args_head, args_tail;	/* free-running bytes */
	struct hal_mem *semaphore;	/* raised to a submission's number at its end */
	struct hal_failure *failures;	/* [HAL_FAILURES], oldest first, as a ring */
	uint64_t n_failures;
	struct hal_notice *notices;	/* not due yet, ascending by value */
	struct hal_notice *last_notice;
};

struct hal_device {
	struct hal *hal;
	struct hal_entry *entry;
	unsigned index;
	struct hal_transport *t;
	struct hw_identify identity;
	uint8_t *hbm;		/* as the CPU sees it; NULL: it does not */
	pthread_mutex_t life;	/* looking whether it lives, and resetting */
	pthread_mutex_t lock;
	struct hal_heap *heap;
	struct hal_host_chunk *chunks;
	struct hal_mem *spare_mems;
	struct hal_mem *mems;	/* allocated */
	uint64_t used[2], peak[2], largest[2], total[2];	/* by enum hal_mem_kind */
	struct hal_queue *queues[2];
	int irq_fd;
	pthread_t waiter;
	bool has_waiter;
	atomic_bool quit;
	atomic_bool is_dead;
	struct err death;	/* set once in a life, before is_dead */
	pthread_mutex_t death_lock;	/* for death, as it is copied; innermost */
	uint64_t default_limit_ns;
	struct hal_page_device *page;
	struct hal_page *page_head;
	atomic_int_fast64_t page_due;	/* when counters are read again */
	uint64_t last_busy_ns, last_time_ns;
	pthread_mutex_t exes_lock;	/* first of all locks: a reset loads them again */
	struct hal_exe *exes;	/* loaded */
	atomic_bool nudge;	/* a queue failed: others may wait for it */
};

struct hal_exe {
	struct hal_device *dev;
	struct image *image;
	struct hal_mem *constants;
	_Atomic uint32_t program; /* 0: lost in a reset, not yet loaded again */
	uint32_t flags;		/* HW_INLINE or 0 */
	_Atomic uint64_t last_use;	/* newest submission that runs it */
	char name[64];
	struct hal_exe *next, **link;	/* of device.exes */
};

/* In a child of fork: locks may be held by threads that are not here, pinned memory is not
 * mapped, and shared memory is the parent's. */
static inline bool hal_is_orphan(const struct hal_device *dev)
{
	return dev->hal->generation != hal_generation();
}
/* FAILED_PRECONDITION in a child of fork; the first error of a dead device. */
int hal_check(struct hal_device *dev, struct err *err);
void hal_die(struct hal_device *dev, const struct err *why);
/* Looks at the device's own state and lets it die if it is fatal. */
int hal_check_alive(struct hal_device *dev, struct err *err);

int hal_enumerate(struct hal *hal, const char *devices, struct err *err);
int hal_sim_start(struct hal *hal, struct err *err);

int hal_queue_open(struct hal_device *dev, enum hal_queue_class cls, struct err *err);
void hal_queue_close(struct hal_queue *q);
void hal_queue_reap(struct hal_queue *q);	/* on the waiter thread: runs callbacks */
void hal_queue_fail_all(struct hal_queue *q, const struct err *why);
int hal_queue_reopen(struct hal_queue *q, struct err *err);	/* after a reset */
int hal_exe_reload(struct hal_exe *exe, struct err *err);

int hal_memory_open(struct hal_device *dev, struct err *err);
void hal_memory_close(struct hal_device *dev);
void hal_page_update(struct hal_device *dev);

#endif
