/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TESSERA_DRV_H
#define TESSERA_DRV_H
/*
 * The driver's own structures. Locks and their order are in README.md#locks.
 */
#include <linux/dma-fence.h>
#include <linux/interrupt.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include <drm/drm_device.h>
#include <drm/drm_file.h>
#include <drm/drm_gem.h>
#include <drm/drm_mm.h>

#include "hal/hw/desc.h"
#include "hal/hw/regs.h"
#include "tessera_drm.h"

#define TESSERA_NAME "tessera"
#define TESSERA_VECTORS 8u		/* more are not asked for */
#define TESSERA_ADMIN_ENTRIES 16u
#define TESSERA_ADMIN_MS 10000u		/* a request unanswered so long: reset */
#define TESSERA_SUBMIT_MAX 1024u	/* descriptors of one submission */
#define TESSERA_SYNCS_MAX 256u
#define TESSERA_MAPS_MAX 256u	/* of one call */
#define TESSERA_RECORD_MAX 256u	/* bytes of a caller's record in an array */
#define TESSERA_QUEUE_WAITING 1024u	/* submissions of a queue beside those on its ring */
#define TESSERA_JOB_UNITS 8u		/* of TESSERA_USE_PENDING, for a job's own memory */
#define TESSERA_RING_MAX 65536u
#define TESSERA_VA_FIRST (1ull << 32)	/* where addresses are chosen */
#define TESSERA_VA_END (1ull << 47)
#define TESSERA_FAULT_RECORDS 64u
#define TESSERA_DUMP_BYTES (64u << 10)
#define TESSERA_PAGE_AGE_MS 50u		/* of cached telemetry */
#define TESSERA_PROGRAMS 65536u		/* one more than a device may have; 0 is none */
#define TESSERA_NO_GENERATION (~0u)	/* of a context that was ended alone */

struct drm_syncobj;
struct eventfd_ctx;
struct tessera_device;

/*
 * What the device can do now. Written under admin.lock, but for RUNNING to RESET_DUE; waiters
 * sleep on state_wait. Only RUNNING takes requests.
 */
enum tessera_state {
	TESSERA_STARTING,
	TESSERA_RUNNING,
	TESSERA_RESET_DUE,	/* for reset_work to make, unless somebody else does */
	TESSERA_RESETTING,	/* all is lost; whoever did that brings the device back */
	TESSERA_WEDGED,		/* a reset failed; bus mastering is off. Only GONE follows */
	TESSERA_GONE,		/* the driver is unbound or the device unplugged */
};

/* Queue 0. Layout of `memory`: page 0 submissions, 1 completions, 2.. arguments. */
struct tessera_admin {
	struct mutex lock;	/* one request at a time; nothing is allocated under it */
	wait_queue_head_t wait;	/* vector 0 fired */
	void *memory;
	dma_addr_t iova;
	size_t bytes;
	u32 tail, head;
	DECLARE_BITMAP(ctxs, HW_MAX_CONTEXTS);	/* ids that the device has given */
	u8 ctx_of_queue[HW_MAX_QUEUES];		/* 0: not given */
	u8 *ctx_of_program;			/* [TESSERA_PROGRAMS] */
};

/* The queue that fills HBM with zeros, and the context that it is in. */
struct tessera_clear {
	struct mutex lock;	/* over all but the counts; held while the device fills */
	void *memory;		/* a page: the submissions, the completions */
	dma_addr_t iova;
	u32 generation;		/* in which both ids were made; 0: there are none */
	u16 hw_ctx, hw_queue;
	u32 tail, head;
	atomic64_t by_device, by_cpu;	/* bytes so far */
};

/* An interrupt vector and the queues and traces that raise it. */
struct tessera_vector {
	struct tessera_device *tdev;
	struct mutex lock;	/* over both lists; nothing is allocated under it */
	struct list_head queues;	/* tessera_queue.vector_link */
	struct list_head traces;	/* tessera_trace.link */
	unsigned int index;
	int irq;		/* 0: not requested */
};

struct tessera_device {
	struct drm_device drm;
	struct pci_dev *pdev;
	void __iomem *regs;
	phys_addr_t bar0, bar2;
	struct hw_identify identity;
	unsigned int n_vectors;
	atomic_t next_vector;
	struct tessera_vector vectors[TESSERA_VECTORS];
	struct tessera_admin admin;

	enum tessera_state state;
	u32 generation;		/* +1 at each function reset; under admin.lock */
	wait_queue_head_t state_wait;
	struct work_struct reset_work;
	struct delayed_work tick;
	struct workqueue_struct *wq;	/* submission and faults: signals fences */
	const char *reset_reason;	/* a literal */
	unsigned long link_deadline;	/* of the PCI core, jiffies; 0: none; under admin.lock */
	bool is_absent;			/* it was not on the bus, and no error was told of */
	bool is_link_lost;		/* for reset_work: what is left to try, once it is due */
	struct pci_saved_state *config;	/* as probe left it */
	atomic64_t function_resets, queue_resets, lost_interrupts;
	struct device_dump {
		struct mutex lock;
		struct work_struct work;	/* sends it: that allocates */
		char *text;
		size_t bytes;		/* 0: nothing to send */
	} dump;

	struct mutex hbm_lock;		/* over hbm */
	struct drm_mm hbm;
	u64 hbm_bytes;			/* constant; 0 before bring-up */
	struct tessera_region *region;	/* of HBM, to cgroups; NULL: they know of none */
	u64 hbm_used;
	struct tessera_clear clear;

	struct mutex bos_lock;		/* over bos */
	struct list_head bos;		/* tessera_bo.link */
	atomic_t peer_pass;		/* counts searches for what others have of HBM */
	struct mutex ctxs_lock;		/* over ctxs */
	struct list_head ctxs;		/* tessera_ctx.link, until the device has forgotten it */
	atomic64_t system_used;

	struct mutex page_lock;		/* over what is below, to ras */
	unsigned long page_time;	/* jiffies of the last read; 0: never */
	unsigned long links_time;	/* the same of links */
	unsigned int n_links;
	struct hw_link links[HW_MAX_LINKS];
	struct hw_telemetry telemetry;
	struct hw_ras ras;

	struct mutex fault_lock;	/* over the two below, which requests fill */
	struct hw_fault *faults;	/* [TESSERA_FAULT_RECORDS] */
	struct hw_queue_state queue_states[HW_MAX_QUEUES];
};

/* What one open file has taken, against the limits of the module's parameters. */
enum tessera_use {
	TESSERA_USE_CONTEXTS,
	TESSERA_USE_QUEUES,
	TESSERA_USE_PROGRAMS,
	TESSERA_USE_HBM,	/* bytes */
	TESSERA_USE_PENDING,	/* memory of submissions, in descriptors */
	TESSERA_USES,
};

struct tessera_usage {		/* buffers may outlive their file */
	struct kref ref;
	wait_queue_head_t room;		/* a submission has ended */
	atomic64_t n[TESSERA_USES];
};

/* An open file. */
struct tessera_file {
	struct kref ref;	/* the open file's, and a reset's of what it has */
	struct tessera_device *tdev;
	struct tessera_usage *usage;	/* a reference */
	struct mutex lock;		/* over creation and destruction of both */
	struct xarray ctxs, queues;
	atomic64_t busy_ns[3];		/* by enum hw_class */
};

/* A range of a context's map. Under ctx.lock. */
struct tessera_mapping {
	struct drm_mm_node node;	/* of ctx.va, in bytes */
	struct list_head link;		/* of those that are to be freed */
	struct tessera_bo *bo;		/* a reference */
	u64 offset, bytes;
	u32 flags;			/* HW_MAP_WRITE or 0 */
	u64 gone;			/* bytes that UNMAP, or their owner, has taken back */
};

/* What the device records of a context's work. Under ctx.lock. */
struct tessera_trace {
	u64 va, bytes;			/* the ring; bytes 0: it is not traced */
	bool is_over;			/* nor will it be: the context ends */
	struct tessera_vector *vector;
	struct list_head link;		/* of vector.traces, if there is an eventfd */
	struct eventfd_ctx *eventfd;	/* or NULL */
};

struct tessera_ctx {
	struct kref ref;
	struct list_head link;		/* of tdev.ctxs */
	struct tessera_device *tdev;
	struct tessera_file *file;	/* lives longer: closing ends its contexts */
	u16 hw_id;
	u32 generation;			/* or TESSERA_NO_GENERATION */
	u64 born_ns;			/* device clock: older faults are another's */
	struct mutex lock;		/* over va, mappings, programs, trace */
	struct drm_mm va;
	struct xarray programs;
	struct tessera_trace trace;
	struct tessera_bo *wake;	/* a reference, or NULL; constant once it is known */
	struct drm_syncobj *timeline;
	struct mutex submit_lock;	/* over point: order of fences on timeline */
	u64 point;
	spinlock_t error_lock;		/* over error */
	struct drm_tessera_error error;
};

enum tessera_bo_kind {
	TESSERA_BO_HBM,
	TESSERA_BO_SYSTEM,	/* shmem pages */
	TESSERA_BO_CONTIGUOUS,	/* pages that the device sees as one piece */
	TESSERA_BO_USERPTR,
	TESSERA_BO_IMPORT,	/* another driver's or device's dma-buf */
	TESSERA_BO_BAR0,	/* a page of registers: a doorbell, or a wake page */
};

struct tessera_bo {
	struct drm_gem_object base;
	enum tessera_bo_kind kind;
	struct list_head link;		/* of tdev.bos */
	bool is_read_only;		/* for the device (USERPTR) or the CPU (a CQ) */
	bool is_private;		/* of a queue or BAR0: neither exported nor mapped by MAP */
	bool is_revoked;		/* BAR0: its queue or context is gone; under lock */
	bool is_one_piece;		/* CONTIGUOUS: of physical memory, too */
	bool is_detached;		/* the device is unbound: no DMA address any more */
	bool is_peer;			/* IMPORT: it may be taken back; sgt under its resv */
	bool is_pinned;			/* the same: as its exporter knows */
	bool is_exported;		/* HBM: other devices may have it */
	int pass;			/* HBM: the last search that found it; under bos_lock */
	struct list_head peers;		/* HBM: mappings for other devices; under its resv */
	struct mutex lock;		/* over the page tables of BAR0 */
	struct drm_mm_node hbm;
	struct page **pages;		/* SYSTEM, CONTIGUOUS, USERPTR; until the end */
	struct sg_table *sgt;		/* the same and IMPORT; until it is detached, or cut */
	dma_addr_t iova;		/* CONTIGUOUS */
	void *cpu;			/* a ring: where the kernel sees it */
	struct mm_struct *mm;		/* whose pinned pages are counted; or NULL */
	struct tessera_usage *usage;	/* HBM: who is charged, a reference */
	struct tessera_charge *charge;	/* HBM: of a cgroup; or NULL */
	u32 offset;			/* BAR0: where */
	struct page *dummy;		/* BAR0: what stores hit once it is revoked */
};

enum tessera_queue_state {
	TESSERA_QUEUE_LIVE,
	TESSERA_QUEUE_FAULTED,	/* fault_work is to reset it */
	TESSERA_QUEUE_ENDING,	/* no new work; the device is about to end it */
	TESSERA_QUEUE_DEAD,	/* ended, or lost by a function reset */
};

struct tessera_queue {
	struct kref ref;
	struct tessera_device *tdev;
	struct tessera_ctx *ctx;	/* a reference */
	struct tessera_vector *vector;
	struct list_head vector_link;
	struct tessera_bo *sq_bo, *cq_bo, *doorbell;	/* references; doorbell: USER */
	struct hw_sqe *sq;
	struct hw_cqe *cq;
	struct eventfd_ctx *eventfd;	/* or NULL */
	u64 limit_ns;
	u64 fence_context;
	u32 n_entries;
	u16 hw_id;			/* 0: the device does not have it */
	u8 cls, priority;
	bool is_user;
	bool is_uncapped;		/* its work may run longer than limit_ms */
	bool is_listed;
	bool is_stopped;		/* the device has forgotten it; under file.lock */
	atomic_t n_jobs;
	char name[24];

	spinlock_t lock;		/* over all that follows */
	enum tessera_queue_state state;
	u32 tail, head;			/* free-running; USER: head as far as looked at */
	u64 seqno;
	struct list_head pending, running;	/* tessera_job.link, in order */
	unsigned long moved;		/* jiffies of the last progress */
	u64 looked_ns;			/* USER: when its completions were read */
	bool is_hung;			/* fault_work is to find out why */
	bool is_accused, is_condemned;	/* keeps an engine: fault_work is to look; to reset it */
	unsigned int n_idle_looks;	/* that found it ready and the engine idle */
	u64 fault_record;
	u16 fault_status;		/* 0: no fault is waiting to be read */
	struct work_struct run_work, fault_work;
};

/* A submission. Owned by its queue from submit to the signal. */
struct tessera_job {
	struct list_head link;
	struct tessera_queue *queue;
	struct dma_fence *fence;
	struct hw_sqe *descs;
	u32 n_descs, n_left;		/* n_left: completions still to come */
	u32 units;			/* of TESSERA_USE_PENDING */
	int error;
	struct dma_fence **deps;	/* what must be signalled before it begins */
	unsigned int n_deps, next_dep;
	struct dma_fence_cb cb;		/* on deps[next_dep] if is_armed */
	bool is_armed;
};

static inline struct tessera_device *to_tessera(struct drm_device *drm)
{
	return container_of(drm, struct tessera_device, drm);
}

/* Whose turn it is: 0 is queue 0's, unless there is no other. */
static inline struct tessera_vector *tessera_next_vector(struct tessera_device *tdev)
{
	unsigned int n = tdev->n_vectors;

	return &tdev->vectors[n > 1 ? 1 + (unsigned int)
			      atomic_inc_return(&tdev->next_vector) % (n - 1) : 0];
}

static inline struct tessera_bo *to_bo(struct drm_gem_object *obj)
{
	return container_of(obj, struct tessera_bo, base);
}

/* Of the descriptor that is `at` in a ring. Never 0 soon: memory where nothing was written
 * reads as a NOP with tag 0. */
static inline u32 tessera_tag(u32 at)
{
	return ~at;
}

/*
 * The files' functions, lower files first: a file calls those above it here, and none below.
 */

/*
 * Copies n records of which the caller says that they have user_bytes each into an array of
 * `bytes` each: EINVAL, E2BIG (it knows more than we), EFAULT.
 */
int tessera_copy_records(void *out, size_t bytes, u64 user, u32 user_bytes, u32 n);

/* tessera_limits.c */
extern unsigned int tessera_limit_ms, tessera_hang_ms, tessera_program_mib;
/* EMFILE: the file would have more than it may. */
int tessera_use(struct tessera_usage *u, enum tessera_use what, u64 n);
void tessera_unuse(struct tessera_usage *u, enum tessera_use what, u64 n);
u64 tessera_use_limit(enum tessera_use what);	/* 0: none */
void tessera_usage_put(struct tessera_usage *u);

/* tessera_state.c */
/* Begins a function reset unless one is under way. Any context; reason is a literal. */
void tessera_reset_begin(struct tessera_device *tdev, const char *reason);
/* Waits until no reset is under way: 0 if the device runs. */
int tessera_settle(struct tessera_device *tdev);
int tessera_settle_interruptible(struct tessera_device *tdev);

/* tessera_admin.c: registers and queue 0. */
struct tessera_request {
	struct hw_sqe sqe;
	const void *in;		/* copied to where the request points */
	size_t in_bytes;
	const void *in2;	/* PROGRAM_CREATE's bindings, one page further */
	size_t in2_bytes;
	void *out;		/* copied from there */
	size_t out_bytes;
	u64 value;		/* of the completion */
	u64 detail;
	u16 status;		/* 0 too if the device was not asked */
};

int tessera_admin_init(struct tessera_device *tdev);
void tessera_admin_fini(struct tessera_device *tdev);
u32 tessera_read(struct tessera_device *tdev, u32 offset);
/* Both halves of one moment. */
u64 tessera_read64(struct tessera_device *tdev, u32 offset);
void tessera_write(struct tessera_device *tdev, u32 offset, u32 value);
/* generation 0: any. Sleeps, at most TESSERA_ADMIN_MS. */
int tessera_request(struct tessera_device *tdev, u32 generation,
		    struct tessera_request *r);
int tessera_simple(struct tessera_device *tdev, u32 generation, u8 op, u16 id,
		   u64 *value);
/* CTX_DESTROY or QUEUE_DESTROY, or else a function reset: when this returns the
 * device has let go of what id named. Sleeps. */
void tessera_make_end(struct tessera_device *tdev, u32 generation, u8 op, u16 id);
/* The same in two steps: anything but 0 is to be followed by tessera_settle, without the locks
 * that a reset of another device may need. */
int tessera_begin_end(struct tessera_device *tdev, u32 generation, u8 op, u16 id);
/* QUEUE_RESET of all queues of a context: what runs fails, and what is queued. */
void tessera_reset_queues(struct tessera_device *tdev, u32 generation, u16 ctx);
/* A request of that generation failed because a reset is on its way: when this returns what was
 * made in it reaches no memory. */
void tessera_cut_off(struct tessera_device *tdev, u32 generation);
/* Stops all work and DMA, at most a second. Under admin.lock. */
void tessera_disable(struct tessera_device *tdev);
/* From a reset function to RUNNING. */
int tessera_bring_up(struct tessera_device *tdev);
int tessera_status_errno(unsigned int status);
const char *tessera_status_name(unsigned int status);
const char *tessera_status_text(unsigned int status);

/* tessera_log.c */
int tessera_page_read(struct tessera_device *tdev, struct hw_telemetry *t,
		      struct hw_ras *ras);
/* n: how many there are, at most HW_MAX_LINKS. */
int tessera_links_read(struct tessera_device *tdev, struct hw_link *out, unsigned int *n);
/* Fills tdev.faults, newest first. Under fault_lock. */
int tessera_faults_read(struct tessera_device *tdev, unsigned int *n);
/* Fills tdev.queue_states. Under fault_lock. */
int tessera_queues_read(struct tessera_device *tdev, unsigned int *n);

/* tessera_dump.c */
void tessera_dump_init(struct tessera_device *tdev);
void tessera_dump_fini(struct tessera_device *tdev);
/* guilty: only that queue; NULL: all. */
void tessera_dump(struct tessera_device *tdev, const char *reason,
		  struct tessera_queue *guilty);
void tessera_print_registers(struct tessera_device *tdev, struct drm_printer *p);
void tessera_print_queues(struct tessera_device *tdev, struct drm_printer *p);

/* tessera_clear.c */
int tessera_clear_init(struct tessera_device *tdev);
void tessera_clear_fini(struct tessera_device *tdev);
/* Fills HBM that is nobody's yet with zeros. EINTR: not all of it, and nothing is under way. */
int tessera_clear(struct tessera_device *tdev, u64 start, u64 bytes);
void tessera_clear_print(struct tessera_device *tdev, struct drm_printer *p);

/* tessera_ctx.c */
/* A context on the device, which nobody knows yet; back by tessera_ctx_end. ECANCELED: a reset
 * came between. */
struct tessera_ctx *tessera_ctx_new(struct tessera_device *tdev, struct tessera_file *f);
void tessera_ctx_put(struct tessera_ctx *ctx);
struct tessera_ctx *tessera_ctx_get(struct tessera_file *f, u32 id);
/* On the device and in its maps; its queues have ended, its wake page is revoked. Puts the
 * caller's reference. */
void tessera_ctx_end(struct tessera_ctx *ctx);
bool tessera_ctx_is_lost(struct tessera_ctx *ctx);
/* On the device alone: it is lost from here on, as by a function reset. Its queues are stopped,
 * its wake page is revoked. */
void tessera_ctx_stop(struct tessera_ctx *ctx);
int tessera_ctx_map(struct tessera_ctx *ctx, struct tessera_bo *bo, u64 offset,
		    u64 bytes, u32 flags, u64 *va);
/* That all of [va, + bytes) is in, or NULL. Under ctx.lock. */
struct tessera_mapping *tessera_ctx_mapping(struct tessera_ctx *ctx, u64 va, u64 bytes);
/* Takes memory back from all contexts, whatever they do with it: when this returns the device does
 * not reach it. Mappings stay as holes. Under the reservation lock of bo, a peer's. */
void tessera_ctx_cut(struct tessera_device *tdev, struct tessera_bo *bo);
/* A peer's addresses, if we lack them, once its memory is there. Under its reservation lock. */
int tessera_ctx_fetch(struct tessera_bo *bo);
/* A whole mapping; bo: only if it is of that buffer. */
int tessera_ctx_unmap(struct tessera_ctx *ctx, u64 va, struct tessera_bo *bo);
int tessera_ioctl_map(struct drm_device *drm, void *data, struct drm_file *file);
int tessera_ioctl_unmap(struct drm_device *drm, void *data, struct drm_file *file);
int tessera_ioctl_program_create(struct drm_device *drm, void *data,
				 struct drm_file *file);
int tessera_ioctl_program_destroy(struct drm_device *drm, void *data,
				  struct drm_file *file);

/* tessera_trace.c */
/* Wakes who reads traces. Under the vector's lock. */
void tessera_trace_wake(struct tessera_vector *v);
/* The context is about to end, and with it what the device records: tells nobody any more. */
void tessera_trace_end(struct tessera_ctx *ctx);
int tessera_ioctl_trace_start(struct drm_device *drm, void *data, struct drm_file *file);
int tessera_ioctl_trace_stop(struct drm_device *drm, void *data, struct drm_file *file);

/* tessera_peer.c */
struct dma_buf *tessera_peer_export(struct tessera_bo *bo, int flags);
/* The buffer of this device of which buf was made by the function above; or NULL. */
struct tessera_bo *tessera_peer_own(struct drm_device *drm, struct dma_buf *buf);
/* The device is lost: others reach none of its memory when this returns. It sleeps. */
void tessera_peer_revoke_all(struct tessera_device *tdev);
/* Whether its exporter may take it back: then the next two are how to import it. */
bool tessera_peer_may_go(const struct dma_buf *buf);
/* For a new buffer. Also when it fails the last reference sees to what there is. */
int tessera_peer_attach(struct tessera_bo *bo, struct dma_buf *buf);
/* The device has no address of it any more. */
void tessera_peer_let_go(struct tessera_bo *bo);

/* tessera_bo.c */
/* Fails where the kernel would copy DMA through memory of its own, and says so. */
int tessera_bo_probe(struct tessera_device *tdev);
/* Contiguous, and mapped for the kernel too. */
struct tessera_bo *tessera_bo_ring(struct tessera_device *tdev, size_t bytes);
/* The page of BAR0 at `offset`, for the one to whom it is; a reset that has begun since
 * may have missed it. */
struct tessera_bo *tessera_bo_bar0(struct tessera_device *tdev, u32 offset);
/* Of BAR0: mappings, those that come too, lead to a page of nobody's. NULL is fine. */
void tessera_bo_revoke(struct tessera_bo *bo);
void tessera_bo_revoke_all(struct tessera_device *tdev);
/* A handle, the last thing that may fail; and where to mmap it unless that is NULL. */
int tessera_bo_share(struct tessera_bo *bo, struct drm_file *file, u32 *handle,
		     u64 *mmap_offset);
void tessera_bo_detach_all(struct tessera_device *tdev);
int tessera_bo_hbm_init(struct tessera_device *tdev);
u64 tessera_bo_largest_free(struct tessera_device *tdev);
struct drm_gem_object *tessera_bo_import(struct drm_device *drm, struct dma_buf *buf);
struct drm_gem_object *
tessera_bo_import_sg_table(struct drm_device *drm, struct dma_buf_attachment *attach,
			   struct sg_table *sgt);
int tessera_ioctl_bo_create(struct drm_device *drm, void *data, struct drm_file *file);
int tessera_ioctl_bo_userptr(struct drm_device *drm, void *data, struct drm_file *file);
int tessera_ioctl_bo_info(struct drm_device *drm, void *data, struct drm_file *file);

static inline void tessera_bo_put(struct tessera_bo *bo)
{
	if (bo)
		drm_gem_object_put(&bo->base);
}

static inline bool tessera_bo_is_hbm(const struct tessera_bo *bo)
{
	return bo->kind == TESSERA_BO_HBM;
}

/* tessera_job.c */
/* Takes room for a submission: EAGAIN if there is none. tessera_job_leave gives it back, as the
 * end of a job does whose units it is. */
int tessera_job_enter(struct tessera_queue *q, u32 units);
void tessera_job_leave(struct tessera_queue *q, u32 units);
/* Of no queue's lists yet, with a fence that has no number; NULL: no memory. */
struct tessera_job *tessera_job_new(struct tessera_queue *q);
/* Of a job that was never queued, or whose fence is signalled. */
void tessera_job_free(struct tessera_job *job);
/* Signals the fence and frees the job, which is in no list. Any context. */
void tessera_job_end(struct tessera_job *job, int error);
void tessera_run_work(struct work_struct *work);
/* Fails what has not begun. run_work does not run, nor will it. */
void tessera_drain_pending(struct tessera_queue *q);

/* tessera_queue.c */
struct tessera_queue *tessera_queue_get(struct tessera_file *f, u32 id);
void tessera_queue_put(struct tessera_queue *q);
void tessera_queue_end(struct tessera_file *f, u32 id);
/* On the device alone; its work fails and there is no more. Under f.lock. */
void tessera_queue_stop(struct tessera_queue *q);
/* Takes completions, or wakes the caller of a USER queue. */
void tessera_queue_reap(struct tessera_queue *q);
/* A function reset ended it: every fence is signalled, at once or by run_work. */
void tessera_queue_lose(struct tessera_queue *q);
/* Brings the count of engine time up to date. */
void tessera_queue_look(struct tessera_queue *q);
/* Under the vector's lock. */
void tessera_queue_check(struct tessera_queue *q);
int tessera_ioctl_queue_create(struct drm_device *drm, void *data, struct drm_file *file);
int tessera_ioctl_queue_destroy(struct drm_device *drm, void *data,
				struct drm_file *file);
int tessera_ioctl_queue_reset(struct drm_device *drm, void *data, struct drm_file *file);

/* tessera_submit.c */
int tessera_ioctl_submit(struct drm_device *drm, void *data, struct drm_file *file);

/* tessera_irq.c */
int tessera_irq_init(struct tessera_device *tdev);
void tessera_irq_fini(struct tessera_device *tdev);

/* tessera_reset.c */
void tessera_reset_init(struct tessera_device *tdev);
void tessera_reset_start(struct tessera_device *tdev);	/* the tick */
void tessera_reset_fini(struct tessera_device *tdev);
/* What is out of use stays so, until it is GONE. */
void tessera_lose_all(struct tessera_device *tdev, enum tessera_state state);
void tessera_sleep(struct tessera_device *tdev);
void tessera_wake(struct tessera_device *tdev);
extern const struct pci_error_handlers tessera_err_handlers;

/* tessera_file.c */
int tessera_file_open(struct drm_device *drm, struct drm_file *file);
void tessera_file_close(struct drm_device *drm, struct drm_file *file);
/* Ends all contexts of a DRM client, for which they are lost: ENOENT. */
int tessera_file_reset(struct tessera_device *tdev, u64 client);
int tessera_ioctl_ctx_create(struct drm_device *drm, void *data, struct drm_file *file);
int tessera_ioctl_ctx_destroy(struct drm_device *drm, void *data, struct drm_file *file);

/* tessera_query.c */
void tessera_show_fdinfo(struct drm_printer *p, struct drm_file *file);
int tessera_ioctl_query(struct drm_device *drm, void *data, struct drm_file *file);

/* tessera_debugfs.c */
void tessera_debugfs_init(struct tessera_device *tdev);

/* tessera_hwmon.c */
#if IS_ENABLED(CONFIG_HWMON)
int tessera_hwmon_init(struct tessera_device *tdev);
#else
static inline int tessera_hwmon_init(struct tessera_device *tdev)
{
	return 0;
}
#endif

#endif
