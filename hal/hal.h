/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HAL_HAL_H
#define HAL_HAL_H
/*
 * The hardware abstraction layer: devices, memory, queues, executables, events.
 * The door of hal/: what is above includes nothing else of it (but hal/base, hal/hw, and a
 * tool that only looks hal/telemetry.h and hal/scan.h).
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

/* Finds the devices and brings none up. options may be NULL. INVALID_ARGUMENT: a word of
 * the selection is wrong; NOT_FOUND: a named device is not there. Owned by the caller. */
int hal_create(const struct hal_options *options, struct hal **out, struct err *err);
/* Closes what is open, and blocks as hal_device_close does. NULL is fine. Objects of it
 * must not be used afterwards. */
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
/* Filled from what is known without disturbing the device, and once it was opened from what
 * it said; not to be asked for while another thread opens it. OUT_OF_RANGE. */
int hal_device_info(const struct hal *hal, unsigned index,
		    struct hal_device_info *out, struct err *err);

/* Brings the device up: context, queues, waiter thread. Blocks (10 s at most for each of
 * its answers). OUT_OF_RANGE; FAILED_PRECONDITION: it is open in this process, or something
 * has to be done first; PERMISSION_DENIED; RESOURCE_EXHAUSTED; UNAVAILABLE. Owned by the
 * HAL: hal_device_close gives it back early, hal_destroy in any case. */
int hal_device_open(struct hal *hal, unsigned index, struct hal_device **out,
		    struct err *err);
/* Waits for running work (a queue is reset after 5 s), delivers the last notices, on the
 * calling thread, too, and frees the device with all its queues, executables and memory.
 * NULL is fine. */
void hal_device_close(struct hal_device *dev);
unsigned hal_device_index(const struct hal_device *dev);
/* 0 while the device lives, or the first error, copied to *err, which stays the same until
 * a reset. Looks at no hardware. */
int hal_device_error(struct hal_device *dev, struct err *err);
/* fn is called each time the device dies, on its waiter thread with no lock held, after what is
 * pending has failed; not if it was reset meanwhile. It must not block. One a device: a second
 * call takes the first one's place. Until the device is closed. */
void hal_device_on_death(struct hal_device *dev,
			 void (*fn)(void *arg, unsigned index, const struct err *why), void *arg);
/* Resets what this process has of the device: pending work fails with ABORTED, what is in
 * HBM is lost but for executables and their constants, allocations stay valid where they
 * are, queues and executables work again, a dead device lives. If that fails it is dead, or
 * stays so. That is a reset of the function where the function is ours alone; where the kernel
 * driver owns it, a new context, and other processes do not notice, whoever asks. Blocks. */
int hal_device_reset(struct hal_device *dev, struct err *err);
/* The device's counters. Where the kernel driver owns it they may be a moment (50 ms) old,
 * so that nobody who looks keeps the device busy; a reset starts them anew at once. Blocks
 * briefly. */
int hal_device_telemetry(struct hal_device *dev, struct hw_telemetry *out,
			 struct err *err);
/* Injects an error (enum hw_inject), for tests. UNIMPLEMENTED where the kernel driver owns
 * the device. Blocks briefly. */
int hal_device_inject(struct hal_device *dev, unsigned what, uint64_t value,
		      struct err *err);

/* A log page (enum hw_log): as much of it as fits, *got bytes. UNIMPLEMENTED: the kernel
 * driver gives faults, telemetry and RAS only. Blocks briefly. */
int hal_device_log(struct hal_device *dev, unsigned page, void *out, uint64_t bytes,
		   uint64_t *got, struct err *err);
/* A register of BAR0 (regs.def) as it reads now, of a device that is dead, too. A multiple of
 * 4 below HW_MSIX_TABLE, else OUT_OF_RANGE; UNIMPLEMENTED: the kernel driver owns them. */
int hal_device_register(struct hal_device *dev, uint32_t offset, uint32_t *value,
			struct err *err);

/* ---- links ---- */

/* Where a device is among those that it is linked with: chips in a torus. */
struct hal_position {
	uint64_t fabric;	/* the same of devices that are linked; 0: it has no links */
	unsigned chip, n_chips;	/* its number there, of so many, opened here or not */
	unsigned coords[3], shape[3];
};
void hal_device_position(const struct hal_device *dev, struct hal_position *out);
/* Its links to neighbours, with what they carried. *n is 0 where it has none. UNIMPLEMENTED:
 * the kernel driver is too old to tell. Blocks briefly. */
int hal_device_links(struct hal_device *dev, struct hw_link out[HW_MAX_LINKS], unsigned *n,
		     struct err *err);
/* Whether programs on dev can write to peer's memory, both of one HAL, and so meet its own. */
bool hal_is_linked(const struct hal_device *dev, const struct hal_device *peer);
/* Whether hal_queue_copy on dev may reach peer's memory: they are linked, or the kernel driver has
 * both, which may yet know of no way between the two. */
bool hal_may_copy(const struct hal_device *dev, const struct hal_device *peer);

struct hal_mem;
/*
 * Where dev sees memory of another device, for bindings that a program declares as a peer's
 * (HW_BIND_PEER), and for the ends of copies. Links the two if that is due: blocks briefly then.
 * For memory of its own it is hal_mem_va.
 *
 * Through the kernel driver it is for copies alone, which go over PCI. The address holds as
 * long as the memory, but not over a reset of either device: then what uses it fails with a text
 * that names the other one, and once both live asking again maps it anew. The copy of a
 * device whose peer has just died may be the first to tell. What follows is about links.
 *
 * An address holds until work fails that others rely on, on either of the two (or either is
 * reset); after that what was launched with it fails, and asking again gives another one. So
 * who launches one program on several devices asks for all addresses of the launch before its
 * first submission, and lets no other launch come between: then either all members meet, or
 * each of them fails with a text that names the device that failed first.
 *
 * UNIMPLEMENTED: not linked, or not by this way to the device, or the kernel knows of no way; the
 * text says which and what helps. ABORTED: the other device is being reset. INVALID_ARGUMENT: host
 * memory. A dead device's error, of either.
 */
int hal_peer_va(struct hal_device *dev, const struct hal_mem *mem, uint64_t *va,
		struct err *err);
/* How often dev's memory was lent. An address of it that was asked for while this stayed the same
 * is the one of before; where it has grown between two launches, the first may have failed. */
uint64_t hal_times_lent(const struct hal_device *dev);
/* Fails whatever was launched with addresses of dev's memory, also what has not begun, as when
 * work of dev's fails; the next hal_peer_va lends anew. For a launch of which only a part could
 * be submitted. Blocks briefly. A dead device's error. */
int hal_take_back(struct hal_device *dev, struct err *err);

/* What a process lends of a device to others that it tells the key, which nobody can guess: all of
 * its HBM, to be written by links. Plain numbers, to be handed on by any way. */
struct hal_lent {
	uint64_t fabric, key, bytes;
	unsigned chip;
};
/* Lends dev, or says what it lends already. It holds as an address of hal_peer_va does, for
 * everybody who borrowed it; after that this lends anew, by another key. UNIMPLEMENTED: it has
 * no links, or not by this way to the device. A dead device's error. Blocks briefly. */
int hal_lend(struct hal_device *dev, struct hal_lent *out, struct err *err);
/* Where in what is lent a block of HBM begins: bytes. */
uint64_t hal_lent_offset(const struct hal_mem *mem);
/* Whether it still holds, as far as is known here. */
bool hal_is_lent(struct hal_device *dev, const struct hal_lent *lent);
/* Where dev sees the first byte of what another process lends. *lent is not trusted: the device
 * checks it. `owner` (copied, cut to 127 bytes) is what errors call the other device.
 * UNIMPLEMENTED: not linked; INVALID_ARGUMENT: it can't be so; NOT_FOUND: there is no such
 * key, or no more. Blocks briefly. */
int hal_borrow(struct hal_device *dev, const struct hal_lent *lent, const char *owner,
	       uint64_t *va, struct err *err);
/* The same name, for errors that come from there by way of a third device, also where dev never
 * borrows of it. Nothing happens where it can't be a peer of dev. */
void hal_name_lender(struct hal_device *dev, const struct hal_lent *lent, const char *owner);
/* Who knows why another process's device stopped: fn(arg, owner, text, bytes) is asked when work
 * here failed since that dropped its work or had a queue reset, and nothing here says why; owner is
 * its name as above. True: text says why, and that work fails with ABORTED and it. Under a queue's
 * lock, so fn may wait for a while and calls nothing of the HAL. NULL: nobody knows any more; waits
 * for one that is being asked. */
void hal_on_stopped(struct hal *hal, bool (*fn)(void *arg, const char *owner, char *text,
						size_t bytes), void *arg);

/* ---- memory ---- */

enum hal_mem_kind {
	HAL_MEM_HBM,		/* device memory */
	HAL_MEM_HOST,		/* pinned host memory, near the device, reached by DMA */
};

#define HAL_MEM_ALIGN 64u	/* of every allocation's va */

/* Of one kind of memory, also what the HAL takes for itself; not what is mapped
 * (hal_mem_map), nor views. */
struct hal_mem_stats {
	uint64_t bytes_in_use;		/* of blocks, padded */
	uint64_t peak_bytes;		/* the most of them since hal_mem_clear_peak */
	uint64_t limit_bytes;		/* of HBM: had, or to be had; 0 for host memory */
	uint64_t largest_free_bytes;	/* of host memory: of what is pinned already */
	uint64_t largest_alloc_bytes;	/* as asked for, since hal_mem_clear_peak */
	uint64_t n_allocs;		/* live now */
	uint64_t total_allocs;		/* ever */
};

/*
 * bytes > 0, any size; the block starts at a multiple of 64 and is padded to one.
 * `tag` says who owns it in reports (copied, cut to 47 bytes). INVALID_ARGUMENT;
 * RESOURCE_EXHAUSTED, which for HBM names the request, what is free, the largest free block,
 * the five largest owners and, where processes share a card, who has the rest of it. HBM takes
 * constant time, or where a kernel driver has to give more as long as it takes to clear that;
 * host memory blocks briefly where more has to be pinned, which stays pinned until the device is
 * closed. The contents are
 * undefined. Owned by the caller until hal_mem_free, or the device's close.
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
 *
 * Over vfio-user the call copies the memory to pages that the server shares and puts those
 * in its place, where they stay after hal_mem_free, too. So nothing may store to it during
 * the call: what other threads store, or the kernel for them (a read() under way), may be
 * lost. What was pinned for another device is no longer what is seen here, and a child of
 * fork has nothing at these addresses.
 */
int hal_mem_map(struct hal_device *dev, void *host, uint64_t bytes, struct hal_mem **out,
		struct err *err);
/* A window on memory that the device reaches: `address` is a va, or where the CPU sees
 * it. Owns nothing: the caller keeps what is below. NOT_FOUND: not all of it is. */
int hal_mem_view(struct hal_device *dev, uint64_t address, uint64_t bytes,
		 struct hal_mem **out, struct err *err);
/* Frees now: the caller knows that no queued work uses it. NULL is fine. */
void hal_mem_free(struct hal_mem *mem);
/* Who is named as its owner from now on. Of memory that was allocated. */
void hal_mem_tag(struct hal_mem *mem, const char *tag);
uint64_t hal_mem_va(const struct hal_mem *mem);		/* for bindings */
uint64_t hal_mem_bytes(const struct hal_mem *mem);	/* as asked for */
enum hal_mem_kind hal_mem_kind(const struct hal_mem *mem);
/* Where the CPU sees it, or NULL where it cannot (HBM without a mapped BAR). */
void *hal_mem_host(const struct hal_mem *mem);
void hal_mem_stats(struct hal_device *dev, enum hal_mem_kind kind,
		   struct hal_mem_stats *out);
void hal_mem_clear_peak(struct hal_device *dev);

/*
 * Copies by the calling thread: at once where the CPU sees the memory (hal_mem_host), else
 * through staging memory and the DMA queue. Blocks until done; a wait for the DMA queue ends
 * at `deadline` with DEADLINE_EXCEEDED, and what is under way then may yet be done. They are
 * not ordered with queued work: wait first. OUT_OF_RANGE if offset + bytes passes the end.
 */
int hal_copy_in(struct hal_mem *dst, uint64_t offset, const void *src, uint64_t bytes,
		int64_t deadline, struct err *err);
int hal_copy_out(void *dst, struct hal_mem *src, uint64_t offset, uint64_t bytes,
		 int64_t deadline, struct err *err);
/* As hal_copy_in; of truth values a byte that is not 0 becomes 1. */
int hal_copy_in_elems(struct hal_mem *dst, uint64_t offset, const void *src, uint64_t bytes,
		      bool is_truth, int64_t deadline, struct err *err);
/* As above for a host array with byte strides (any sign, 0 too), to or from a dense
 * row-major block. elem_bytes 1..16, rank <= 32, else INVALID_ARGUMENT. */
struct hal_strided {
	unsigned rank, elem_bytes;
	const int64_t *dim, *stride;
	bool is_truth;	/* as hal_copy_in_elems; not looked at on the way out */
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
 * A device has one queue of each class, which lives as long as it does. A queue runs
 * submissions in order and numbers them 1, 2, 3...: submission v is done when
 * hal_queue_done(q) >= v. Some numbers are of empty submissions that the HAL makes for
 * itself, so a caller's own ascend with gaps. A fault fails the submission it happened in
 * with a full message (instruction, operand, address) and those queued behind
 * it with ABORTED naming it; the queue is then reset and takes work again.
 */
struct hal_queue *hal_device_queue(struct hal_device *dev, enum hal_queue_class cls);

/*
 * Submission `value` of queue `queue` must be done first, however it ends: a queue of any device of
 * the same HAL. It may be one that is yet to be made if that is the same device's other queue. Of
 * another device's work the two waiter threads tell, so that takes two wake-ups of threads more.
 * INVALID_ARGUMENT: the queue is none, another HAL's, or has not come so far.
 */
struct hal_after {
	struct hal_queue *queue;
	uint64_t value;
};

struct hal_launch {
	struct hal_exe *exe;
	const struct hw_binding *bindings;	/* exe's n_bindings, copied */
	const struct hal_after *after;		/* n_after, or NULL */
	unsigned n_after;
	uint64_t limit_ns;	/* watchdog; 0: TESSERA_LIMIT_MS or none */
	/* Not NULL: only if no more work of the queue has failed than hal_queue_failures said,
	 * else ABORTED. For work whose input others can't be told of later. */
	const uint64_t *n_failures;
};
/* How often work of the queue has failed, as far as its completions were taken, or its device
 * was reset. */
uint64_t hal_queue_failures(const struct hal_queue *q);

/* Whether n submissions, of which one may be an executable's with n_bindings, are taken without
 * waiting for room, if nobody else submits meanwhile. Does not block. For who holds locks that
 * the work which keeps the ring full may need to go on. */
bool hal_queue_has_room(struct hal_queue *q, unsigned n, size_t n_bindings);
/* The submission whose end makes some room: then an eighth of what is pending is done. */
uint64_t hal_queue_room_at(struct hal_queue *q);
/* Blocks until then. The device's error. */
int hal_queue_await_room(struct hal_queue *q, struct err *err);

/* Runs an executable. *value is its number. Does not block, except while the ring is full;
 * a short program may run before this returns. INVALID_ARGUMENT: bindings that do not match
 * the executable; ABORTED: it is being loaded again after a reset. */
int hal_queue_execute(struct hal_queue *q, const struct hal_launch *launch,
		      uint64_t *value, struct err *err);
/* Copies from memory of this device (HBM or host) to memory of it or HBM of a device that it
 * reaches (hal_may_copy), in queue order: by links or over PCI, not through the host. The
 * memory must stay until that is done. OUT_OF_RANGE; INVALID_ARGUMENT: from another device; of
 * another's as hal_peer_va. Blocks, as what follows does, while the ring is full. */
int hal_queue_copy(struct hal_queue *q, struct hal_mem *dst, uint64_t dst_offset,
		   struct hal_mem *src, uint64_t src_offset, uint64_t bytes,
		   const struct hal_after *after, unsigned n_after,
		   uint64_t *value, struct err *err);
/* The same, by addresses that the device checks itself. `what` is copied. */
int hal_queue_copy_2d(struct hal_queue *q, const struct hw_copy_2d *what,
		      const struct hal_after *after, unsigned n_after,
		      uint64_t *value, struct err *err);
/* Stores the 8 bytes of `pattern` again and again, the last time as much as fits. */
int hal_queue_fill(struct hal_queue *q, struct hal_mem *dst, uint64_t offset,
		   uint64_t bytes, uint64_t pattern, uint64_t *value,
		   struct err *err);

/* The newest submission that is done, failed ones included. Polls the completion ring,
 * unless another thread is at it: cheap, and enters the kernel only where a notice became
 * due or work failed. */
uint64_t hal_queue_done(struct hal_queue *q);
/* Blocks until `value` is done or `deadline` passes (DEADLINE_EXCEEDED, names the
 * submission and the executable that run). Returns the submission's own error, or the
 * device's. */
int hal_queue_wait(struct hal_queue *q, uint64_t value, int64_t deadline,
		   struct err *err);
/* The error of a done submission; 0 if it went well. Kept until 4096 later failures. */
int hal_queue_error(struct hal_queue *q, uint64_t value, struct err *err);
/* Calls fn(arg, err) exactly once when `value` is done (err NULL: success): at once
 * if it is, else on the device's waiter thread or the one that closes the device, with no
 * lock of the HAL held. fn must be brief and may call any hal_ function that does not block.
 * Where this fails fn is not called. RESOURCE_EXHAUSTED; the dead device's error;
 * INVALID_ARGUMENT: `value` was never submitted (hal_queue_wait says so too). */
int hal_queue_notify(struct hal_queue *q, uint64_t value,
		     void (*fn)(void *arg, const struct err *err), void *arg,
		     struct err *err);
/* Stops what runs, fails everything pending with ABORTED: `why`. Blocks (bounded). */
int hal_queue_reset(struct hal_queue *q, const char *why, struct err *err);
/* The same, unless `value` is done: then what came behind it goes on, and nothing happens. */
int hal_queue_stop(struct hal_queue *q, uint64_t value, const char *why, struct err *err);
/* Before several queues are stopped whose programs meet: what fails here from now on because a
 * peer's queue was reset fails with ABORTED: `why`, as if this one had been. NULL: no more. */
void hal_queue_set_reason(struct hal_queue *q, const char *why);
/* The same for what has been submitted here until now, and for no more. */
void hal_queue_blame(struct hal_queue *q, const char *why);

/* ---- executables ---- */

/* Loads an ELF executable (hal/hw/image.h) into HBM and onto the device; `image` is
 * not kept. INVALID_ARGUMENT: malformed, or refused by the device, with the offset;
 * RESOURCE_EXHAUSTED. Blocks briefly. Owned by the caller until hal_exe_unload, or the
 * device's close. */
int hal_exe_load(struct hal_device *dev, const void *image, size_t bytes,
		 struct hal_exe **out, struct err *err);
/* The same, but the image stays where it is and must live as long as the executable. */
int hal_exe_load_kept(struct hal_device *dev, const void *image, size_t bytes,
		      struct hal_exe **out, struct err *err);
/* Waits for submitted runs of it, for 5 s at most. NULL is fine. */
void hal_exe_unload(struct hal_exe *exe);
struct image;
/* What the image says: bindings, debug map. Valid as long as the executable. */
const struct image *hal_exe_image(const struct hal_exe *exe);
/* The constants' block, for binding 0 (NULL: the image has none). */
struct hal_mem *hal_exe_constants(const struct hal_exe *exe);

/* ---- traces ---- */

/*
 * What a device ran for this process, and when. Records are those of DEVICE.md#traces, in the
 * order in which the device wrote them; those that nobody took in time, and those past 4 Mi, are
 * counted. Times are in ns.
 */
struct hal_trace {
	const struct hw_trace_record *records;
	size_t n_records;
	uint64_t n_lost;
	int64_t began, ended;	/* CLOCK_MONOTONIC */
};
/* Has the device record what begins from now on; one trace at a time. Takes 4 MiB of pinned
 * memory. A reset of the device does not end it. ALREADY_EXISTS: it is traced; UNIMPLEMENTED:
 * the kernel driver is too old for it; RESOURCE_EXHAUSTED. Blocks briefly, as the next does. */
int hal_trace_start(struct hal_device *dev, struct err *err);
/* Ends the trace: work that is done is in it. The caller's until hal_trace_free, longer than the
 * device if need be. A device that died or was reset meanwhile gives what it had recorded.
 * FAILED_PRECONDITION: it is not traced. */
int hal_trace_stop(struct hal_device *dev, struct hal_trace **out, struct err *err);
void hal_trace_free(struct hal_trace *trace);	/* NULL is fine */
/* A time of a record, as CLOCK_MONOTONIC. */
int64_t hal_trace_time(const struct hal_trace *trace, uint64_t device_ns);
/* What a record's program was: its name; of what was at pc, the operation, and where it comes from
 * in the framework's words. "" where nobody knows. The trace's. */
struct hal_trace_words {
	const char *program, *op, *where;
};
void hal_trace_tell(const struct hal_trace *trace, const struct hw_trace_record *record,
		    struct hal_trace_words *out);

/* ---- being watched ---- */

/* What this process does, for xla-smi; published in the telemetry page of the
 * process (hal/telemetry.h). `what` is copied, cut to 63 bytes. */
void hal_note_executable(struct hal_device *dev, const char *what);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
