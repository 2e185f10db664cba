/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HAL_HAL_H
#define HAL_HAL_H
/*
 * The hardware abstraction layer: devices, memory, queues, executables, events.
 * The door of hal/: what is above includes nothing else of it (but hal/base, hal/hw).
 *
 *	struct hal *hal;
 *	hal_create(NULL, &hal, err);
 *	struct hal_device *dev;
 *	hal_device_open(hal, 0, &dev, err);
 *	struct hal_mem *mem;
 *	hal_mem_alloc(dev, HAL_MEM_HBM, 4096, "weights", &mem, err);
 *	struct hal_queue *q = hal_device_queue(dev, HAL_QUEUE_COMPUTE);
 *	hal_queue_execute(q, &launch, &value, err);
 *	hal_queue_wait(q, value, clock_after(ns), err);
 *
 * Which devices: TESSERA_DEVICES (or hal_options.devices) names them: "sim",
 * "sim:devices=4,hbm=8G", "vfio:0000:3b:00.0", "vfio-user:PATH", "accel:PATH". Unset:
 * the hardware that is there; if there is none, the model, with TESSERA_SIM as its
 * options. What was named or found and fails is reported; nothing falls back.
 *
 * Threads: every function may be called from any thread. Nothing blocks except
 * where said. Errors are of err.def. A device that died (hal_device_error) fails
 * every pending and later call with the first error. In a child of fork nothing reaches
 * the parent's devices: calls fail with FAILED_PRECONDITION, and what gives back gives
 * nothing back.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hal/base/clock.h"
#include "hal/base/err.h"
#include "hal/hw/desc.h"

/* What libtessera exports; everything else of the tree stays inside it. */
#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

struct hal;
struct hal_device;
struct hal_mem;
struct hal_queue;
struct hal_exe;

/* ---- life ---- */

struct hal_options {
	const char *devices;	/* as TESSERA_DEVICES; NULL: the environment */
	const char *sim;	/* as TESSERA_SIM; NULL: the environment */
};

/* Finds the devices, opens none. options may be NULL. INVALID_ARGUMENT: a word of
 * the selection is wrong; NOT_FOUND: a named device is not there. Owned by the caller. */
int hal_create(const struct hal_options *options, struct hal **out, struct err *err);
/* Closes what is open. NULL is fine. Objects of it must not be used afterwards. */
void hal_destroy(struct hal *hal);
/* A number that is another one in each child of fork. */
unsigned hal_generation(void);
/* Whether this process is a child of fork, and the HAL its parent's. */
bool hal_is_inherited(const struct hal *hal);

enum hal_kind { HAL_KIND_SIM, HAL_KIND_VFIO, HAL_KIND_VFIO_USER, HAL_KIND_ACCEL };

struct hal_device_info {
	enum hal_kind kind;
	bool is_model;		/* the software model, however it is reached */
	char name[32];		/* "Tessera T1" */
	char bus_id[64];	/* "0000:3b:00.0", "sim:0" */
	char serial[32];
	char firmware[32];
	char driver[32];	/* who holds it: "vfio-pci", "tessera", "in-process" */
	char state[96];		/* "ready", or why it can't be opened */
	bool can_open;
	int numa_node;		/* -1: unknown */
	uint64_t hbm_bytes;	/* 0: unknown before opening */
	unsigned cores;
};

unsigned hal_device_count(const struct hal *hal);
/* Filled from what is known without disturbing the device. OUT_OF_RANGE. */
int hal_device_info(const struct hal *hal, unsigned index,
		    struct hal_device_info *out, struct err *err);

/* Brings the device up: context, queues, waiter thread. Blocks (bounded by 10 s).
 * One opener at a time: FAILED_PRECONDITION if open; UNIMPLEMENTED for kinds that
 * this build does not reach; UNAVAILABLE. */
int hal_device_open(struct hal *hal, unsigned index, struct hal_device **out,
		    struct err *err);
/* Waits for running work (bounded: it is reset after 5 s), then frees the device
 * with all its queues, executables and memory. NULL is fine. */
void hal_device_close(struct hal_device *dev);
unsigned hal_device_index(const struct hal_device *dev);
/* 0 while the device lives; else the first error, copied to *err. */
int hal_device_error(struct hal_device *dev, struct err *err);
/* Resets the function: pending work fails with ABORTED, memory contents are lost
 * to programs (allocations stay valid), queues and executables work again. Blocks. */
int hal_device_reset(struct hal_device *dev, struct err *err);
/* The device's counters. Where the kernel driver owns it they may be a moment (50 ms) old,
 * so that nobody who looks keeps the device busy; a reset starts them anew at once. */
int hal_device_telemetry(struct hal_device *dev, struct hw_telemetry *out,
			 struct err *err);
/* Injects an error (enum hw_inject); for tests and xla-smi. Blocks briefly. */
int hal_device_inject(struct hal_device *dev, unsigned what, uint64_t value,
		      struct err *err);

/* ---- memory ---- */

enum hal_mem_kind {
	HAL_MEM_HBM,		/* device memory */
	HAL_MEM_HOST,		/* pinned host memory, near the device, reached by DMA */
};

#define HAL_MEM_ALIGN 64u	/* of every allocation's va */

struct hal_mem_stats {
	uint64_t bytes_in_use, peak_bytes, limit_bytes, largest_free_bytes;
	uint64_t largest_alloc_bytes, n_allocs;	/* n_allocs: live now */
	uint64_t total_allocs;			/* ever */
};

/*
 * bytes > 0, any size; the block starts at a multiple of 64 and is padded to one.
 * `tag` says who owns it in reports (copied, cut to 47 bytes). RESOURCE_EXHAUSTED
 * names the request, what is free, the largest free block and the five largest
 * owners. Time: O(log n). The contents are undefined.
 */
int hal_mem_alloc(struct hal_device *dev, enum hal_mem_kind kind, uint64_t bytes,
		  const char *tag, struct hal_mem **out, struct err *err);
/* HBM at the highest address that has room: what comes and goes there does not cut in two
 * what stays. Time: linear in the number of blocks. */
int hal_mem_alloc_high(struct hal_device *dev, uint64_t bytes, const char *tag,
		       struct hal_mem **out, struct err *err);
/*
 * Makes the caller's own host memory (whole pages) reachable for the device. It must
 * stay until hal_mem_free, which unmaps it and leaves it alone. ALREADY_EXISTS: a
 * part of it is mapped. Blocks briefly, as its hal_mem_free does.
 */
int hal_mem_map(struct hal_device *dev, void *host, uint64_t bytes, struct hal_mem **out,
		struct err *err);
/* A window on memory that the device reaches: `address` is a va, or where the CPU sees
 * it. Owns nothing: the caller keeps what is below. NOT_FOUND: not all of it is. */
int hal_mem_view(struct hal_device *dev, uint64_t address, uint64_t bytes,
		 struct hal_mem **out, struct err *err);
/* Frees now: the caller knows that no queued work uses it. NULL is fine. */
void hal_mem_free(struct hal_mem *mem);
uint64_t hal_mem_va(const struct hal_mem *mem);		/* for bindings */
uint64_t hal_mem_bytes(const struct hal_mem *mem);	/* as asked for */
enum hal_mem_kind hal_mem_kind(const struct hal_mem *mem);
/* Where the CPU sees it, or NULL where it cannot (HBM without a mapped BAR). */
void *hal_mem_host(const struct hal_mem *mem);
void hal_mem_stats(struct hal_device *dev, enum hal_mem_kind kind,
		   struct hal_mem_stats *out);
void hal_mem_clear_peak(struct hal_device *dev);

/*
 * Copies by the calling thread, at once, by stores to a mapped BAR or through
 * staging memory and a DMA queue, whichever the device makes faster. Blocks until
 * done, at most until `deadline`. They are not ordered with queued work: wait first.
 * OUT_OF_RANGE if offset + bytes passes the end.
 */
int hal_copy_in(struct hal_mem *dst, uint64_t offset, const void *src, uint64_t bytes,
		int64_t deadline, struct err *err);
int hal_copy_out(void *dst, struct hal_mem *src, uint64_t offset, uint64_t bytes,
		 int64_t deadline, struct err *err);
/* As above for a host array with byte strides (any sign, 0 too), to or from a dense
 * row-major block. elem_bytes 1..16, rank <= 32. */
struct hal_strided {
	unsigned rank, elem_bytes;
	const int64_t *dim, *stride;
};
int hal_copy_in_strided(struct hal_mem *dst, uint64_t offset, const void *src,
			const struct hal_strided *shape, int64_t deadline,
			struct err *err);
int hal_copy_out_strided(void *dst, struct hal_mem *src, uint64_t offset,
			 const struct hal_strided *shape, int64_t deadline,
			 struct err *err);

/* ---- queues ---- */

enum hal_queue_class { HAL_QUEUE_COMPUTE, HAL_QUEUE_DMA };

/*
 * A queue runs submissions in order and numbers them 1, 2, 3...: submission v is
 * done when hal_queue_done(q) >= v. Some numbers are of empty submissions that the HAL
 * makes for itself, so a caller's own ascend with gaps. A fault fails the submission it happened in
 * with a full message (instruction, operand, address) and those queued behind
 * it with ABORTED naming it; the queue is then reset and takes work again.
 */
struct hal_queue *hal_device_queue(struct hal_device *dev, enum hal_queue_class cls);

/* Submission `value` of queue `queue` must be done first. */
struct hal_after {
	struct hal_queue *queue;
	uint64_t value;
};

struct hal_launch {
	struct hal_exe *exe;
	const struct hw_binding *bindings;	/* exe's n_bindings, copied */
	const struct hal_after *after;		/* of other queues of this device */
	unsigned n_after;
	uint64_t limit_ns;	/* watchdog; 0: TESSERA_LIMIT_MS or none */
};

/* Runs an executable. *value is its number. Does not block, except while the
 * ring is full. INVALID_ARGUMENT: bindings that do not match the executable. */
int hal_queue_execute(struct hal_queue *q, const struct hal_launch *launch,
		      uint64_t *value, struct err *err);
/* Copies between memory of this device (HBM or host) in queue order. */
int hal_queue_copy(struct hal_queue *q, struct hal_mem *dst, uint64_t dst_offset,
		   struct hal_mem *src, uint64_t src_offset, uint64_t bytes,
		   const struct hal_after *after, unsigned n_after,
		   uint64_t *value, struct err *err);
int hal_queue_copy_2d(struct hal_queue *q, const struct hw_copy_2d *what,
		      const struct hal_after *after, unsigned n_after,
		      uint64_t *value, struct err *err);
int hal_queue_fill(struct hal_queue *q, struct hal_mem *dst, uint64_t offset,
		   uint64_t bytes, uint64_t pattern, uint64_t *value,
		   struct err *err);

/* The newest submission that is done, failed ones included. Polls the completion
 * ring: cheap, and does not enter the kernel. */
uint64_t hal_queue_done(struct hal_queue *q);
/* Blocks until `value` is done or `deadline` passes (DEADLINE_EXCEEDED, names the
 * executable, instruction and op that run). Returns the submission's own error. */
int hal_queue_wait(struct hal_queue *q, uint64_t value, int64_t deadline,
		   struct err *err);
/* The error of a done submission; 0 if it went well. Kept until 4096 later failures. */
int hal_queue_error(struct hal_queue *q, uint64_t value, struct err *err);
/* Calls fn(arg, err) exactly once when `value` is done (err NULL: success): at once
 * if it is, else on the device's waiter thread, with no lock held. fn must be brief
 * and may call any hal_ function that does not block. RESOURCE_EXHAUSTED;
 * INVALID_ARGUMENT: `value` was never submitted (hal_queue_wait says so too). */
int hal_queue_notify(struct hal_queue *q, uint64_t value,
		     void (*fn)(void *arg, const struct err *err), void *arg,
		     struct err *err);
/* Stops what runs, fails everything pending with ABORTED: `why`. Blocks (bounded). */
int hal_queue_reset(struct hal_queue *q, const char *why, struct err *err);

/* ---- executables ---- */

/* Loads an ELF executable (hal/hw/image.h) into HBM and onto the device; `image` is
 * not kept. INVALID_ARGUMENT: malformed, or refused by the device, with the offset.
 * Blocks briefly. */
int hal_exe_load(struct hal_device *dev, const void *image, size_t bytes,
		 struct hal_exe **out, struct err *err);
/* The same, but the image stays where it is and must live as long as the executable. */
int hal_exe_load_kept(struct hal_device *dev, const void *image, size_t bytes,
		      struct hal_exe **out, struct err *err);
/* Waits for submitted runs of it (bounded as close). NULL is fine. */
void hal_exe_unload(struct hal_exe *exe);
struct image;
/* What the image says: bindings, debug map. Valid as long as the executable. */
const struct image *hal_exe_image(const struct hal_exe *exe);
/* The constants' block, for binding 0 (NULL: the image has none). */
struct hal_mem *hal_exe_constants(const struct hal_exe *exe);

/* ---- being watched ---- */

/* What this process does, for xla-smi; published in the telemetry page of the
 * process (hal/telemetry.h). `what` is copied, cut to 63 bytes. */
void hal_note_executable(struct hal_device *dev, const char *what);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
