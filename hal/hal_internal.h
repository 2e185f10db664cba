/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HAL_HAL_INTERNAL_H
#define HAL_HAL_INTERNAL_H
/*
 * The HAL's own structures, and what its files ask of each other. Private to hal/.
 *
 * Files, each of which calls only those before it:
 *
 *	heap.c telemetry.c dump.c dump_file.c	know nothing of devices
 *	crash.c			what is written down when a device fails
 *	state.c			whether a device may be used; its numbers in the page
 *	hbm.c			the heap over HBM, and where that comes from
 *	memory.c		allocation
 *	link.c			other devices' memory
 *	queue.c			submission, completion, failure
 *	copy.c			copies by the calling thread
 *	trace.c			what the device ran, and when
 *	trace_server.c		the same, for other processes
 *	loader.c		executables
 *	scan.c enumerate.c	which devices there are
 *	device.c		opening, the waiter thread, reset, closing
 *
 * Locks, in the one order in which they may be taken, each while holding any of those
 * before it; README.md says more of each:
 *
 *	hal.lock  hal.links  device.exes_lock  device.trace_lock  device.life
 *	queue.lock (compute, then DMA)  device.lock  device.death_lock  hal.page_lock
 *	dumps.lock  `sockets` of trace_server.c
 *
 * A transport and its bus lock for themselves, behind device.lock; under death_lock nothing
 * is called. No callback runs under any of them. Under hal.lock and exes_lock a thread may
 * wait for a queue, for HAL_CLOSE_NS or HAL_ADMIN_NS; under the others for the device's
 * answer to a request at most, which HAL_ADMIN_NS bounds. "Constant" below means: set before
 * a second thread sees the object.
 *
 * Functions return 0 or a code of err.def, with the text in *err (which may be NULL).
 */
#include <pthread.h>
#include <stdatomic.h>

#include "hal/base/files.h"
#include "hal/dump.h"
#include "hal/hal.h"
#include "hal/heap.h"
#include "hal/hw/image.h"
#include "hal/telemetry.h"
#include "hal/transport.h"

/* Programs estimated below may run on the caller, if the device has seen that they are quick. The
 * estimate knows no caches, and guesses how often loops turn. */
#define HAL_INLINE_NS 200000u
#define HAL_INLINE_LOOP_NS 50000u
#define HAL_SPIN_NS 20000	/* a waiter polls so long before it sleeps */
#define HAL_RING 1024u		/* descriptors of a queue, and of its completions */
#define HAL_ARGS ((uint64_t)2 << 20)	/* bytes of bindings in flight, of a queue */
#define HAL_FAILURES 4096u	/* failures of which a queue knows what was wrong */
#define HAL_CLOSE_NS 5000000000ll	/* closing and unloading wait so long for work */
#define HAL_STOPPED 256		/* bytes of a text that says why a queue was reset */
#define HAL_PEER_VA (1ull << 56)	/* others' HBM in a context: chip k's from k << 48 on */
#define HAL_CHIPS 128u		/* of a fabric, most */
#define HAL_VIEWS 8u		/* of one chip's windows, old ones that work may name included */
#define HAL_OWNER 128u		/* bytes of a borrowed chip's name */
#define HAL_PAGE_NS 100000000ll	/* device counters are read at most so often */

struct sim;

/* Crash dumps of this process, and the threads that write them. Of struct hal. */
#define HAL_DUMPS_MOST 16u	/* of a process, whatever TESSERA_CRASH_DUMPS says */
#define HAL_DUMP_PATH 224u	/* bytes of a dump's path, its end included */
struct hal_dumps {
	pthread_mutex_t lock;	/* over what follows; nothing is called that waits */
	int dir;		/* -1: none are written */
	unsigned most, n;	/* so many may be begun, and were */
	char path[HAL_DUMP_PATH - 64];	/* of dir, absolute */
	pthread_t threads[HAL_DUMPS_MOST];	/* [n]; each ends when its file is written */
};

/*
 * A device that can be opened, or that is listed with the reason why it can't. Made by
 * enumerate.c; constant but for `info`, to which opening adds what the device says, and
 * `open`, both under hal.lock.
 */
struct hal_entry {
	struct hal_device_info info;
	const struct hal_transport_ops *transport;
	struct hal_direct_host host;	/* for the direct transport: which bus */
	char where[128];	/* for the transport: an index, an address, a path */
	struct hal_device *open;	/* NULL: it is not */
	bool is_bare;		/* taken by hal_bare_open; under hal.lock */
	/* Why its work was last reset, and dropped; under hal.stopped_lock. */
	char reset[HAL_STOPPED], dropped[HAL_STOPPED];
};

struct vfio_domain;

/* What hal_create makes. Owned by its caller, and owns what is below. */
struct hal {
	pthread_mutex_t lock;	/* opening and closing, one at a time */
	pthread_mutex_t links;	/* over windows and views of all devices (link.c) */
	unsigned generation;	/* hal_generation() at creation: fork changes it. Constant */
	/* Constant once hal_create is done: devices point into the array. */
	struct hal_entry *entries;
	unsigned n_entries, room;
	/* The model in this process: made under lock when a device of it is first opened;
	 * its options are constant. */
	struct sim *sim;
	char sim_options[256];
	/* The address spaces of functions by VFIO, under lock but for what is in them. */
	struct vfio_domain *domains;
	/* This process's telemetry page: mapped under lock when a device is first opened;
	 * NULL where there is none, which is no error. */
	struct hal_page *page;
	int page_fd;
	struct files_own page_own;	/* page_fd: by its lock others see that we live */
	char page_path[128];
	pthread_mutex_t page_lock;	/* over groups of numbers in it; nothing is called */
	pthread_mutex_t stopped_lock;	/* over entries' `stopped`; nothing is called */
	pthread_mutex_t ask_lock;	/* over what follows; held while it is asked */
	bool (*on_stopped)(void *arg, const char *owner, char *text, size_t bytes);
	void *on_stopped_arg;
	pthread_mutex_t across_lock;	/* over waits for other devices (across.c) */
	struct hal_server *server;	/* made and owned with the page; NULL: there is none */
	struct hal_dumps dumps;	/* opened when a device first is */
};

/*
 * A range of host memory that is mapped for the device: pinned memory of the HAL's with a heap
 * over it, which stays until the device is closed, or the caller's own (hal_mem_map). Of
 * device.chunks, under device.lock. A reset has the new context see all of them, at the same va.
 */
struct hal_host_chunk {
	struct hal_host_chunk *next;
	void *host;		/* where the CPU sees it */
	uint64_t bytes, va;	/* va: where the device does; 0: not mapped yet */
	struct hal_heap *heap;	/* NULL: foreign */
	bool is_foreign;	/* the caller's memory: unmapped, never freed */
	bool is_granted;	/* came from the transport, which has it back */
};

/*
 * A block of memory, or a window on one. The caller's from hal_mem_alloc, _map or _view to
 * hal_mem_free; then the record is kept for the next one. Constant but for the list.
 */
struct hal_mem {
	struct hal_device *dev;
	enum hal_mem_kind kind;
	uint64_t va, bytes;	/* bytes: as asked for */
	uint8_t *host;		/* NULL: the CPU does not see it */
	struct hal_block *block;	/* NULL: mapped or a view, see chunk */
	struct hal_host_chunk *chunk;	/* HOST; NULL with block: a view */
	struct hal_range *range;	/* HBM: of a view, which keeps it */
	struct hal_mem *next_spare;	/* of device.spare_mems, under device.lock */
	struct hal_mem *next, **pprev;	/* of device.mems, under device.lock */
};

/*
 * A part of HBM that is ours: all of it, or what a kernel driver gave us. Of device.ranges,
 * ascending by offset, under device.lock.
 */
struct hal_range {
	struct hal_range *next;
	uint64_t offset, bytes;	/* where a context sees it: at HAL_HBM_VA + offset */
	uint8_t *host;		/* as the CPU sees it; NULL: it does not */
	struct hal_block *whole;	/* NULL: something is in it, or it stays */
	int64_t idle_since;	/* with whole: since when */
	unsigned n_views;	/* by which somebody may still reach it */
};

/* Whom to call when `value` is done. The queue's, then that of the thread that calls. */
struct hal_notice {
	uint64_t value;
	void (*fn)(void *arg, const struct err *err);
	void *arg;
	struct hal_notice *next;	/* ascending by value */
};

/* Submissions first..last failed for one reason. */
struct hal_failure {
	uint64_t first, last;
	struct err err;
};

/* The same of older ones. */
struct hal_old_failure {
	uint64_t first, last;
	int code;
};

/* All failures of a queue, in ascending order. */
struct hal_failures {
	uint64_t n;		/* ever; read without the lock, to see whether there is any */
	struct hal_failure *recent;	/* [HAL_FAILURES], the newest, as a ring */
	struct hal_old_failure *old;	/* [n_old] of room_old */
	size_t n_old, room_old;
};

/* What is known of a submission in flight, at slots[number % HAL_RING]. */
struct hal_slot {
	struct hal_exe *exe;	/* what it runs, for messages; NULL: a copy or nothing */
	uint64_t args_end;	/* of its bindings in the ring of arguments */
	uint64_t dst;		/* of a copy, for messages; 0: it is none */
};

/*
 * A queue, from hal_queue_open to hal_queue_close. All under `lock` but for what is atomic
 * and what is constant: dev, cls, args, semaphore.
 */
struct hal_queue {
	struct hal_device *dev;
	enum hal_queue_class cls;
	/* The transport's; another one after a reset, NULL if that failed. Descriptors of what
	 * is not done are in its ring, so at most HAL_RING are in flight. */
	struct hal_ring *ring;
	pthread_mutex_t lock;	/* held while the doorbell rings, in which a model may work */
	pthread_cond_t moved;	/* done has grown; CLOCK_MONOTONIC */
	unsigned sleepers;	/* on `moved` */
	_Atomic uint64_t submitted;	/* the newest number; written under lock */
	uint64_t last_irq;	/* the newest that raises an interrupt */
	_Atomic uint64_t done;	/* the newest that is done; written under lock */
	struct hal_slot slots[HAL_RING];
	struct hal_mem *args;	/* bindings of submissions in flight, as a ring */
	uint64_t args_head, args_tail;	/* free-running bytes */
	/* Raised to a submission's number at its end; behind it a word for across.c. */
	struct hal_mem *semaphore;
	struct hal_across *across;	/* of what waits for other devices; under hal.across_lock */
	struct hal_failures failures;
	struct err reason;	/* why peers' queues are reset; code 0: unknown */
	struct err blamed;	/* the same, for what was submitted up to n_blamed */
	uint64_t n_blamed;
	struct hal_notice *notices;	/* not due yet, ascending by value */
	struct hal_notice *last_notice;
};

/* Where a device sees a window of another one, by the place among device.views. */
struct hal_view {
	uint64_t key;		/* of the window; 0: nothing is there */
	bool is_old;		/* the window was replaced; then what may still name it: */
	uint64_t last_use[2];	/* submissions by enum hal_queue_class */
};

/*
 * An open device, from hal_device_open to hal_device_close. Constant but for what stands
 * behind a lock or is atomic.
 */
struct hal_device {
	struct hal *hal;
	struct hal_entry *entry;	/* of hal.entries */
	unsigned index;		/* of it */
	struct hal_transport *t;	/* locks for itself */
	struct hw_identify identity;	/* as the device said when it was opened */
	/* Held while it is found out whether the device lives, and while it is reset: what is
	 * seen before a reset must not kill the device after it. */
	pthread_mutex_t life;

	pthread_mutex_t lock;	/* over what follows, up to `total` */
	struct hal_range *ranges;	/* of HBM */
	struct hal_heap *heap;	/* over them */
	uint64_t idle_bytes;	/* of ranges with nothing in them */
	atomic_int_fast64_t tidy_due;	/* when one may be given back; CLOCK_FOREVER: none is */
	struct hal_host_chunk *chunks;
	struct hal_mem *spare_mems;	/* records for the next blocks */
	struct hal_mem *mems;	/* blocks, views and mappings that live */
	uint64_t used[2], peak[2], largest[2], total[2];	/* by enum hal_mem_kind */

	struct hal_queue *queues[2];	/* by enum hal_queue_class */
	/* The waiter thread: handles completions, tells of death, runs callbacks. It starts last
	 * and ends first. irq_fd, an eventfd, wakes it: interrupts and hal_wake_waiter add. */
	int irq_fd;
	pthread_t waiter;
	atomic_bool quit;	/* it is to end */
	atomic_bool must_wake;	/* a queue failed: others may wait for its semaphore */

	/* Set by hal_die under lock; taken back by a reset, which has all locks above. */
	atomic_bool is_dead;
	struct err death;	/* why; set once in a life, before is_dead */
	pthread_mutex_t death_lock;	/* while it is set or copied, and over on_death */
	atomic_bool must_tell;		/* the waiter is to call on_death */
	void (*on_death)(void *arg, unsigned index, const struct err *why);	/* or NULL */
	void *on_death_arg;

	/* Links; under hal.links but for what is atomic. */
	uint64_t window;	/* key of what it lends; 0: nothing yet */
	atomic_bool is_window_stale;	/* work that peers relied on failed: lend anew */
	_Atomic uint64_t n_lent;	/* windows opened; written under hal.links */
	struct hal_view views[HAL_CHIPS][HAL_VIEWS];	/* of other chips */
	_Atomic(const char *) chips[HAL_CHIPS];	/* of those it may hear of: names */
	char owners[HAL_CHIPS][HAL_OWNER];	/* such names, of other processes' */

	uint64_t default_limit_ns;	/* watchdog of what names none; 0: none */
	/* Its part of the page (NULL: none) and the page. Memory's numbers and the state are
	 * written under lock, the name of what runs without, counters as below. */
	struct hal_page_device *page;
	struct hal_page *page_head;
	/* When counters are read again. Whoever puts CLOCK_FOREVER there reads them, and the
	 * two numbers, the newest counters, are that thread's until it puts a time back. */
	atomic_int_fast64_t page_due;
	uint64_t last_busy_ns, last_time_ns;
	uint64_t told_submitted;	/* all that was submitted before; also that thread's */
	int64_t heap_due;	/* that thread's, too: the heap is looked at again */
	pthread_mutex_t trace_lock;	/* over the next */
	struct hal_tracing *tracing;	/* owned; NULL: it is not traced */
	atomic_bool is_traced;	/* a hint, without the lock */
	bool is_told;		/* its trace is hal.server's; under hal.lock */
	pthread_mutex_t exes_lock;	/* held while one is loaded, unloaded, loaded again */
	struct hal_exe *exes;	/* those that are on the device, or were before a reset */
};

/* An executable, the caller's from hal_exe_load to hal_exe_unload. Constant but for what is
 * atomic and the list. */
struct hal_exe {
	struct hal_device *dev;
	struct image *image;	/* owned */
	struct hal_mem *constants;	/* owned; NULL: it has none */
	/* The device's number for it. 0: lost in a reset, not yet loaded again; then nothing
	 * of it is submitted. Written under exes_lock; a reset clears it under queue.lock, too,
	 * under which it is read. */
	_Atomic uint32_t program;
	uint32_t flags;		/* HW_INLINE or 0: then its end raises an interrupt */
	bool is_joint;		/* peers rely on its runs */
	int64_t since;		/* clock_ns() before it had its number; under exes_lock */
	_Atomic uint64_t last_use;	/* newest submission that runs it; under queue.lock */
	char name[64];
	struct hal_exe *next, **pprev;	/* of device.exes, under exes_lock */
};

/* ---- dump_file.c ---- */

/* Nothing is written until hal_dumps_start. */
void hal_dumps_open(struct hal_dumps *dumps);
/* Opens the folder, once, as the environment says. A folder that can't be had is warned of, and
 * no error: then no dumps are written. May block as opening a folder may. Under hal.lock. */
void hal_dumps_start(struct hal_dumps *dumps);
/* Whether one more is wanted. */
bool hal_dumps_want(struct hal_dumps *dumps);
/* Has a thread write these bytes, which are its own from now on, and gives the file's path. False:
 * it can't or need not; the bytes are freed. Waits for nothing. */
bool hal_dumps_put(struct hal_dumps *dumps, void *bytes, size_t n, char path[HAL_DUMP_PATH]);
/* Waits up to a second for what is being written; alone. */
void hal_dumps_close(struct hal_dumps *dumps);

/* ---- crash.c ---- */

#define HAL_DUMP_SAYS "; for tessera-objdump --dump: "
struct hal_crash;
/* Takes down what is known of submission `value` of q at fault, whose record is *fault (NULL: the
 * device gives none, and is asked nothing); with q NULL, of a device that dies. Under q's lock,
 * not under device.lock. Requests are bounded by HAL_ADMIN_NS. NULL: no dump is wanted, or there
 * is no memory. */
struct hal_crash *hal_crash_begin(struct hal_device *dev, struct hal_queue *q, uint64_t value,
				  const struct hw_fault *fault);
/* Adds why, the memory's owners and the last events, and has all of it written. *why then
 * names the file at its end, behind HAL_DUMP_SAYS. Frees c; NULL is fine. Under device.lock. */
void hal_crash_end(struct hal_crash *c, struct err *why);
/* Frees it, unwritten. NULL is fine. */
void hal_crash_drop(struct hal_crash *c);

/* ---- state.c ---- */

/* In a child of fork: locks may be held by threads that are not here, pinned memory is not
 * mapped, and shared memory is the parent's. Whoever may be called there asks this before it
 * takes a lock. */
static inline bool hal_is_orphan(const struct hal_device *dev)
{
	return dev->hal->generation != hal_generation();
}
/* FAILED_PRECONDITION, and what to do instead. */
int hal_refuse_child(struct err *err);
/* FAILED_PRECONDITION in a child of fork; the first error of a dead device. A few loads if
 * all is well; takes death_lock otherwise, and may be called under any other lock. */
int hal_check(struct hal_device *dev, struct err *err);
/* Calls on_death if the device died since the last time. On the waiter thread. */
void hal_tell_of_death(struct hal_device *dev);
/* The device is dead from now on, for the reason *why (copied) unless it is already. Fails
 * nothing itself: the waiter does, because the caller may hold a queue's lock. Takes
 * device.lock. */
void hal_die(struct hal_device *dev, const struct err *why);
/* Why work of the device is about to be dropped, and if is_reset what runs stopped, for those that
 * meet it; and what was said last of the device that is called so by hal_chip_name(): nothing of
 * other processes' and of NULL. */
void hal_say_stopped(struct hal_device *dev, bool is_reset, const char *why);
void hal_why_stopped(struct hal *hal, const char *name, bool is_reset, char out[HAL_STOPPED]);
/* Whether somebody says why another process's device, called so by hal_chip_name(), stopped. Under
 * a queue's lock; may wait for a while. */
bool hal_ask_stopped(struct hal *hal, const char *name, char out[HAL_STOPPED]);
/* Has the waiter thread look at completions, death and notices. Under any lock. */
void hal_wake_waiter(struct hal_device *dev);
/* hal_check, after a look at the device itself, which dies if it is in its fatal state or
 * gone. Takes device.life, so under no lock behind it. A look may cost a message. */
int hal_check_alive(struct hal_device *dev, struct err *err);
/* Reads the heap's map for the page, if that is due, for which at most a hundredth of the time
 * is taken, and if it may ask the device, something was submitted since or a link does not
 * work, its counters: three requests, so it blocks briefly ten times a second. Under no lock.
 * The device has a page. */
void hal_page_update(struct hal_device *dev, bool may_ask);
/* Tells in the page what went wrong (a code of err.def; 0: nothing). Under any lock. */
void hal_page_tell(struct hal_device *dev, int code, const char *text);
/* Of a queue, under its lock. */
int hal_failures_init(struct hal_failures *f, struct err *err);
void hal_failures_free(struct hal_failures *f);
/* Submissions first..last failed; those of earlier failures were before them. */
void hal_failures_add(struct hal_failures *f, uint64_t first, uint64_t last,
		      const struct err *why);
/* 0, or the code and the text of what submission `value` failed of. */
int hal_failures_find(const struct hal_failures *f, uint64_t value, struct err *err);
/* The newest one's text, as long as the queue's lock is held. */
const char *hal_failures_last(const struct hal_failures *f);

/* ---- hbm.c ---- */

/* Whether [address, + bytes) lies in [base, + room); then *offset is where. */
static inline bool hal_is_within(uint64_t address, uint64_t bytes, uint64_t base, uint64_t room,
				 uint64_t *offset)
{
	*offset = address - base;
	return base && address >= base && *offset <= room && bytes <= room - *offset;
}
/* Below all but open, close and tidy are for whoever has device.lock. */
/* Makes the heap over HBM; at opening. RESOURCE_EXHAUSTED. */
int hal_hbm_open(struct hal_device *dev, struct err *err);
void hal_hbm_close(struct hal_device *dev);
/* Fills in block, va and host for m->bytes. RESOURCE_EXHAUSTED without a text of its own, or why
 * the driver gives nothing. Takes constant time, or where more has to be taken what the driver
 * needs to clear it. */
int hal_hbm_alloc(struct hal_device *dev, struct hal_mem *m, bool is_high, const char *tag,
		  struct err *err);
void hal_hbm_free(struct hal_device *dev, struct hal_block *block);
/* Fills in kind, va, host and range, where [address, + bytes) is HBM of ours; false: it is not. */
bool hal_hbm_view(struct hal_device *dev, uint64_t address, uint64_t bytes, struct hal_mem *out);
/* As long as it is held the range is not given back. */
void hal_hbm_hold(struct hal_range *range);
void hal_hbm_let_go(struct hal_device *dev, struct hal_range *range);
/* What could be had now; what is idle is given back for that. */
void hal_hbm_room(struct hal_device *dev, struct hal_room *out);
/* Gives back what has been idle for long enough. For the waiter: one load if there is nothing. */
void hal_hbm_tidy(struct hal_device *dev);

/* ---- memory.c ---- */

/* Unmaps and frees all host memory and records, also of what its user did not free. At
 * closing, when the queues are gone; a device that was never quite opened is fine. */
void hal_memory_close(struct hal_device *dev);

/* ---- link.c ---- */

/* What a device's driver calls a chip that it may hear of, or is; NULL: not known. */
const char *hal_chip_name(struct hal_device *dev, uint64_t chip);
/* The device whose HBM is at an address that hal_peer_va gave through the kernel driver; NULL: it
 * gave no such. */
const char *hal_peer_name(const struct hal_device *dev, uint64_t va);
/* It and those of its fabric that are open here hear of each other's names. Under hal.lock. */
void hal_links_join(struct hal_device *dev);
/* A reset forgot windows and views. Under hal.links. */
void hal_links_forget(struct hal_device *dev);

/* ---- across.c: takes hal.across_lock ---- */

#define HAL_ACROSS_AT 8u	/* where its word is, behind a queue's semaphore */
/* A submission that waits for work of other devices, the caller's until hal_across_begin or
 * _drop. NULL: out of memory. */
struct hal_across *hal_across_new(struct hal *hal);
/* Before each notice that is asked for, and as the notice; if there will be none, called too. */
void hal_across_expect(struct hal_across *w);
void hal_across_ended(void *across, const struct err *err);
/* Submission `value` of q, the newest, waits until the word is as much: which it is once all of
 * that ended. Under queue.lock, before the device sees it. */
void hal_across_begin(struct hal_across *w, struct hal_queue *q, uint64_t value);
/* Whether submission `value` of q waits so. */
bool hal_across_waits(struct hal_queue *q, uint64_t value);
/* There is no submission after all. NULL is fine. */
void hal_across_drop(struct hal_across *w);
/* None of a queue's submissions waits any more: they failed, or the queue ends. */
void hal_across_end(struct hal_queue *q);

/* ---- copy.c ---- */
/* Frees what a copy by the DMA queue that is late may yet read or write, once that is done; or with
 * the device, if that can't be arranged. */
void hal_free_late(struct hal_mem *m);

/* ---- queue.c ---- */

/* Makes device.queues[cls]; at opening, and before any other thread. On failure what there
 * is of it stays for hal_queue_close. RESOURCE_EXHAUSTED, or why the device made no queue. */
int hal_queue_open(struct hal_device *dev, enum hal_queue_class cls, struct err *err);
/* Frees it, with notices that nobody was told. NULL is fine. At closing, alone. */
void hal_queue_close(struct hal_queue *q);
/* Takes completions and runs the callbacks that are due, with no lock held: on the waiter
 * thread, or where that has ended on the one that closes the device. */
void hal_queue_reap(struct hal_queue *q);
/* What is pending is done and failed with *why (copied). For a device that is dead or ends:
 * the queue itself is not touched. Takes queue.lock; wakes sleepers, calls nobody. */
void hal_queue_fail_all(struct hal_queue *q, const struct err *why);
/* What is no executable. `args`: what a HW_COPY_2D says beside its descriptor, else NULL. */
int hal_queue_submit(struct hal_queue *q, struct hw_sqe *sqe, const struct hw_copy_2d *args,
		     const struct hal_after *after, unsigned n_after, uint64_t *value,
		     struct err *err);
/* Waits until the window is known to be stale, the queue has failed once more, nothing of it is
 * pending, or the deadline has passed. Takes completions itself, since the waiter may be in a
 * callback that waits for our caller. 0, or the error that the device died of. */
int hal_queue_await_failure(struct hal_queue *q, int64_t deadline, struct err *err);
/* The device is reset: counts as a failure (hal_queue_failures). The caller holds queue.lock. */
void hal_queue_note_reset(struct hal_queue *q, const struct err *why);
/* Makes its ring anew, at opening and in a reset; the caller holds queue.lock or is alone.
 * Numbers go on where they were. */
int hal_queue_reopen(struct hal_queue *q, struct err *err);

/* ---- trace.c ---- */

/* Takes away what the device has recorded. On the waiter thread, under no lock. */
void hal_trace_drain(struct hal_device *dev);
/* The executable's number will be another's: keeps what it was. Takes trace_lock. */
void hal_trace_forget(struct hal_exe *exe);
/* Around a reset, under trace_lock and exes_lock: as above for all; goes on with the trace. */
void hal_trace_reset(struct hal_device *dev);
int hal_trace_renew(struct hal_device *dev, struct err *err);

/* ---- trace_server.c ---- */

/* Has other processes of this user be told, by a thread of its own, what devices do. Failure is
 * warned of, and no error. Under hal.lock, with a page. */
void hal_server_start(struct hal *hal);
/* Ends it, within what hal_trace_start and hal_trace_stop take. Under no lock, before devices
 * are closed. */
void hal_server_stop(struct hal *hal);
/* A device was opened; a device is about to be freed. Under hal.lock. */
void hal_server_join(struct hal_device *dev);
void hal_server_leave(struct hal_device *dev);

/* ---- loader.c ---- */

/* Puts constants and code onto a device that was reset. The caller holds exes_lock and no
 * lock behind it. Blocks briefly. */
int hal_exe_reload(struct hal_exe *exe, struct err *err);

/* ---- enumerate.c ---- */

/* Fills hal.entries by a selection as in TESSERA_DEVICES; "" is none. For hal_create, whose
 * errors these are. */
int hal_enumerate(struct hal *hal, const char *devices, struct err *err);
/* Makes hal.sim, if there is none yet. Under hal.lock. */
int hal_sim_start(struct hal *hal, struct err *err);

#endif
