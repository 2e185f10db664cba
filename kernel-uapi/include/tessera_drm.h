/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR Apache-2.0 */
#ifndef TESSERA_DRM_H
#define TESSERA_DRM_H
/*
 * The ioctls of /dev/accel/accelN for a Tessera T1 (driver name "tessera").
 *
 * What programs exchange with the device itself, descriptors, completions and records, is in
 * tessera_device.h; its manual is hal/hw/DEVICE.md. Fences are core DRM syncobjs:
 * DRM_IOCTL_SYNCOBJ_TIMELINE_WAIT and its like work on this node, PRIME handles too.
 *
 * Rules of every structure: the same layout for 32 and 64 bits, multiples of 8
 * bytes; members called zero and flags that are not named here must be 0, or the
 * call fails with EINVAL. The core accepts shorter and longer structures: what
 * the caller does not know is 0. Ids of contexts and queues belong to the open
 * file; 0 is never an id. Sizes and addresses of memory are multiples of page_bytes.
 *
 * Arrays come with the size of a record of theirs, so that records can grow at their end: it is
 * at least what is named here, a multiple of 8, and at most 256. What the kernel does not know of
 * the caller's records must be 0 (else E2BIG); what the caller's are too short for is 0, or is not
 * given. Descriptors alone have 64 bytes for ever.
 *
 * Errors that any call may give: EFAULT (a pointer leads nowhere), EINVAL,
 * ENOMEM, EINTR, ENODEV (the device is gone or could not be recovered),
 * ETIMEDOUT (the device did not answer; it is being reset). ECANCELED: a reset,
 * of the function or by root of what this file has, ended the context; destroy it and make
 * another. Memory outlives a reset. The
 * machine's sleep is a reset too, and HBM's contents may be lost in it.
 *
 * Buffers go to other files and devices as dma-bufs, by DRM_IOCTL_PRIME_HANDLE_TO_FD and
 * DRM_IOCTL_PRIME_FD_TO_HANDLE: those that BO_CREATE gave, of the system or (ABI 7, for other
 * devices) of HBM, which the other device then reaches by itself. EOPNOTSUPP: it cannot, since the
 * PCI core knows of no way between the two, or its driver takes no such memory; the kernel's log
 * says which. HBM is taken back when its device is reset or its driver unbound, also from work
 * that runs. Then it is no more in the contexts of other devices: work that uses it faults (status
 * MAP), what runs or is queued in such a context fails if it used it at that moment, and its
 * mappings stay as holes until UNMAP. After a reset MAP fetches it again, with its contents.
 *
 * What an open file may have of a device is limited, so that none takes it all. EMFILE:
 * it has as many contexts, queues, programs or bytes of HBM as the module's parameters
 * file_contexts, file_queues, file_programs and file_hbm_mib, or its cgroup (dmem.max), say;
 * ENOSPC: the device itself has
 * none left. Memory of the system that cannot be swapped out (SYSTEM buffers, rings, user
 * memory) counts against RLIMIT_MEMLOCK, unless CAP_IPC_LOCK: ENOMEM.
 */
#ifdef __KERNEL__
#include <drm/drm.h>
#else
#include "drm.h"	/* libdrm's: -I as its .pc says */
#endif
#include "tessera_device.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* The driver's version in DRM_IOCTL_VERSION: a program that fits a major number fits all later
 * drivers of it. The minor is also drm_tessera_device.abi, and grows with additions. */
#define DRM_TESSERA_MAJOR 1
#define DRM_TESSERA_ABI 7

#define DRM_TESSERA_QUERY		0x00
#define DRM_TESSERA_CTX_CREATE		0x01
#define DRM_TESSERA_CTX_DESTROY		0x02
#define DRM_TESSERA_BO_CREATE		0x03
#define DRM_TESSERA_BO_USERPTR		0x04
#define DRM_TESSERA_BO_INFO		0x05
#define DRM_TESSERA_MAP			0x06
#define DRM_TESSERA_UNMAP		0x07
#define DRM_TESSERA_QUEUE_CREATE	0x08
#define DRM_TESSERA_QUEUE_DESTROY	0x09
#define DRM_TESSERA_QUEUE_RESET		0x0a
#define DRM_TESSERA_PROGRAM_CREATE	0x0b
#define DRM_TESSERA_PROGRAM_DESTROY	0x0c
#define DRM_TESSERA_SUBMIT		0x0d
/* 0x0e is none and stays so */
#define DRM_TESSERA_TRACE_START		0x0f
#define DRM_TESSERA_TRACE_STOP		0x10

/*
 * DRM_IOCTL_TESSERA_QUERY: reads one kind of facts.
 *
 * Takes: type; ctx where the type asks for one; data and size, the room there; FAULTS and LINKS:
 * record_bytes, the size of the caller's records, 0 for that of the kernel's.
 * Gives: size, the bytes that there are; min(room, size) of them at data, for
 * these two whole records only, and record_bytes, the kernel's. data 0 asks for the sizes alone. A
 * longer answer of a newer kernel is cut, a shorter one leaves the rest of the room untouched.
 * Errors: EINVAL (no such type), ENOENT (no such context).
 */
enum drm_tessera_query_type {
	DRM_TESSERA_QUERY_DEVICE = 1,	/* struct drm_tessera_device */
	DRM_TESSERA_QUERY_IDENTIFY = 2,	/* struct drm_tessera_identity, of bring-up */
	DRM_TESSERA_QUERY_MEMORY = 3,	/* struct drm_tessera_memory */
	DRM_TESSERA_QUERY_TELEMETRY = 4, /* struct drm_tessera_telemetry, at most 50 ms old */
	DRM_TESSERA_QUERY_RAS = 5,	/* struct drm_tessera_ras, at most 50 ms old */
	DRM_TESSERA_QUERY_ERROR = 6,	/* struct drm_tessera_error of ctx */
	DRM_TESSERA_QUERY_FAULTS = 7,	/* struct drm_tessera_fault[] of ctx, newest first */
	DRM_TESSERA_QUERY_CLOCK = 8,	/* ABI 5: struct drm_tessera_clock, read now */
	DRM_TESSERA_QUERY_LINKS = 9,	/* ABI 5: struct drm_tessera_link[], at most 50 ms old;
					 * none where identity.fabric is 0 */
};

struct drm_tessera_query {
	__u32 type;		/* in: enum drm_tessera_query_type */
	__u32 ctx;		/* in: ERROR, FAULTS; else 0 */
	__u64 data;		/* in: user pointer, or 0 */
	__u32 size;		/* in: room; out: what there is */
	__u32 record_bytes;	/* FAULTS, LINKS: in: or 0; out. Else 0 */
};

struct drm_tessera_device {
	__u32 abi;		/* DRM_TESSERA_ABI */
	__u32 is_usable;	/* 0: a reset failed, only rebinding helps */
	__u32 queue_entries_max;
	__u32 submit_max;	/* descriptors of one SUBMIT */
	__u64 hbm_bytes;
	__u64 va_first, va_end;	/* where MAP chooses addresses by itself */
	__u64 function_resets;	/* since the driver was bound */
	__u64 queue_resets;
	__u64 lost_interrupts;	/* completions that were found by looking */
	__u64 limit_ns;		/* the longest that work may run, and its watchdog if it
				 * names none; 0: none */
	/* ABI 2: the most that a file may have */
	__u32 contexts_of_file, queues_of_file, programs_of_file;
	__u32 pending_of_file;	/* ABI 3: of descriptors, see SUBMIT; 0: any */
	__u64 program_bytes;	/* ABI 3: the longest code of a program */
	/* ABI 4 */
	__u32 page_bytes;	/* of the device: what sizes and addresses are multiples of */
	__u32 maps_max;		/* mappings of one MAP */
};

struct drm_tessera_memory {
	__u64 hbm_total, hbm_used, hbm_largest_free;
	__u64 system_used;	/* by this device's buffers, user memory included */
	__u64 hbm_used_by_file;	/* that it made, as long as anybody holds it */
	__u64 system_used_by_file;	/* that it has handles of */
	__u64 hbm_limit_of_file;	/* ABI 2 */
};

/* Those of records, and of drm_tessera_fault. Who wants the host's time looks at his own clock
 * before and after. */
struct drm_tessera_clock {
	__u64 device_ns;
};

enum drm_tessera_ctx_state {
	DRM_TESSERA_CTX_OK = 0,
	DRM_TESSERA_CTX_LOST = 1,	/* a reset ended it, of the function or of the file */
};

struct drm_tessera_error {
	__u32 state;		/* enum drm_tessera_ctx_state */
	__u32 last_status;	/* enum drm_tessera_status of the newest fault; 0: none */
	__u64 n_faults;		/* of queues that the kernel runs */
	__u64 n_hangs;		/* queue resets because nothing moved */
	__u64 last_record;	/* drm_tessera_fault.number of it */
	__u32 last_queue;	/* its queue */
	__u32 zero;
};

/*
 * DRM_IOCTL_TESSERA_CTX_CREATE: an address map of its own, and a timeline.
 *
 * Takes: flags. Gives: id; syncobj, a handle of the timeline whose point n is reached when the
 * first n submissions to the context's queues have ended (well or not). The
 * caller owns the handle; destroying it does not disturb the context.
 *
 * With the flag WAKE (ABI 6) also the context's wake page, by wake_offset for mmap of one page
 * (MAP_SHARED) and wake_handle (for DRM_IOCTL_GEM_CLOSE; it cannot be exported): whoever wrote
 * a semaphore that a USER queue of the context waits for, and is not the device, stores there
 * afterwards, anything of any size at any place, and the device looks again at what waits in
 * this context. A store too many does no harm, and none concerns another context. A child of
 * fork does not inherit the mapping. After the context's end, a function reset or root's of
 * what this file has, stores do nothing.
 *
 * Waits for a reset that is under way. Errors: ENOSPC (no context is left),
 * EMFILE, EOPNOTSUPP (WAKE where pages are not of 4096 bytes).
 */
#define DRM_TESSERA_CTX_WAKE		(1u << 0)

struct drm_tessera_ctx_create {
	__u32 flags;		/* in: DRM_TESSERA_CTX_* */
	__u32 id;		/* out */
	__u32 syncobj;		/* out */
	__u32 zero;
	__u64 wake_offset;	/* out, ABI 6: WAKE */
	__u32 wake_handle;	/* out, ABI 6: WAKE; else 0 */
	__u32 zero2;
};

/*
 * DRM_IOCTL_TESSERA_CTX_DESTROY: ends the context with its queues, programs and
 * mappings. Work that has not ended fails with ECANCELED. Bounded by milliseconds.
 * Takes: id. Errors: ENOENT. Closing the file does this for every context.
 */
struct drm_tessera_ctx_destroy {
	__u32 id;
	__u32 zero;
};

/*
 * DRM_IOCTL_TESSERA_BO_CREATE: memory, filled with zeros.
 *
 * Takes: size; where (one of the first two flags); ctx to have it mapped there at
 * once, writable (0: not), at va if that is not 0.
 * Gives: handle (DRM_IOCTL_GEM_CLOSE ends it; mappings keep the memory); size,
 * rounded up to pages; mmap_offset for mmap of this file (MAP_SHARED alone); va.
 * HBM is contiguous and mapped write-combined. SYSTEM is cached memory; behind an
 * IOMMU the device sees it as one piece, without one perhaps as many: a program's
 * operand must then ask for CONTIGUOUS.
 * Errors: ENOSPC (HBM or the map has no room), EMFILE, ENOENT (no such context),
 * EEXIST (va is taken), ENOMEM (or over RLIMIT_MEMLOCK), ECANCELED.
 */
#define DRM_TESSERA_BO_HBM		(1u << 0)
#define DRM_TESSERA_BO_SYSTEM		(1u << 1)
#define DRM_TESSERA_BO_CONTIGUOUS	(1u << 2)	/* SYSTEM: one piece for the device */
/* Only in what BO_INFO gives: */
#define DRM_TESSERA_BO_USER		(1u << 3)
#define DRM_TESSERA_BO_IMPORTED		(1u << 4)
#define DRM_TESSERA_BO_READ_ONLY	(1u << 5)

struct drm_tessera_bo_create {
	__u64 size;		/* in, out */
	__u32 flags;		/* in: DRM_TESSERA_BO_* */
	__u32 ctx;		/* in */
	__u64 va;		/* in: 0 or wanted; out: 0 if ctx is 0 */
	__u64 mmap_offset;	/* out */
	__u32 handle;		/* out */
	__u32 zero;
};

/*
 * DRM_IOCTL_TESSERA_BO_USERPTR: the caller's own memory as a buffer. The pages are
 * pinned until the buffer's end and count against RLIMIT_MEMLOCK.
 *
 * Takes: address and size, multiples of 4096; READ_ONLY if the device shall not
 * write (then memory that is mapped read-only will do). Gives: handle, which
 * cannot be exported or mapped through this file.
 * Errors: EFAULT (not all of it is memory that can be pinned), ENOMEM (over the
 * limit).
 */
struct drm_tessera_bo_userptr {
	__u64 address;
	__u64 size;
	__u32 flags;		/* in: 0 or DRM_TESSERA_BO_READ_ONLY */
	__u32 handle;		/* out */
};

/*
 * DRM_IOCTL_TESSERA_BO_INFO. Takes: handle. Gives: the rest. segments: how many
 * pieces the device sees, each of which takes an entry of a context's map.
 * Errors: ENOENT.
 */
struct drm_tessera_bo_info {
	__u32 handle;		/* in */
	__u32 flags;		/* out: DRM_TESSERA_BO_* */
	__u64 size;
	__u64 mmap_offset;	/* 0: cannot be mapped through this file */
	__u32 segments;
	__u32 zero;
};

/*
 * DRM_IOCTL_TESSERA_MAP: lets a context reach memory.
 *
 * Takes: ctx; ops, a user pointer to n_ops (1 to maps_max) struct drm_tessera_map_op of op_bytes
 * each: handle, offset and bytes in it (bytes 0: to its end), WRITE or not, va or 0 to have one
 * chosen between va_first and va_end. Gives: each op's va; n_done, how many there are. They are
 * done in order. The first that fails is the call's error; those before it stay.
 * Errors: ENOENT (context or handle), EEXIST (va is taken), ENOSPC (no room for
 * so many pieces), EACCES (WRITE of a read-only buffer), ECANCELED, E2BIG (see above). Of
 * memory of another device: EBUSY (that is being reset), ENODEV (it is gone).
 */
#define DRM_TESSERA_MAP_WRITE		(1u << 0)

struct drm_tessera_map_op {
	__u32 handle;
	__u32 flags;		/* DRM_TESSERA_MAP_* */
	__u64 offset;
	__u64 bytes;
	__u64 va;		/* 0 or wanted; out */
};

struct drm_tessera_map {
	__u32 ctx;
	__u32 n_ops;
	__u32 op_bytes;		/* sizeof(struct drm_tessera_map_op) */
	__u32 n_done;		/* out */
	__u64 ops;
};

/*
 * DRM_IOCTL_TESSERA_UNMAP: takes back a whole mapping. Takes: ctx, va as MAP gave
 * it. Work that is queued and not begun does not hold a mapping; it will fault.
 * Errors: ENOENT (no mapping starts there), EBUSY (work that runs uses it; part of
 * it may be gone already; call again when the work has ended. Or a trace is written there:
 * TRACE_STOP comes first).
 */
struct drm_tessera_unmap {
	__u32 ctx;
	__u32 zero;
	__u64 va;
};

/*
 * DRM_IOCTL_TESSERA_QUEUE_CREATE: a ring on one of the engines.
 *
 * Takes: ctx; cls (enum drm_tessera_class); priority 0 to 3 (more
 * than 1, which is normal, needs CAP_SYS_NICE);
 * n_entries, a power of two from 2 to queue_entries_max; limit_ns, the watchdog of
 * descriptors that have none (0: the device's); eventfd or -1. Whatever the limits, no
 * descriptor runs longer than drm_tessera_device.limit_ns, unless CAP_SYS_NICE; and if a queue
 * without USER completes nothing for as long as the module's parameter hang_ms says, then
 * what keeps it so long is reset, be it itself or another's work: fences must come.
 *
 * Without USER the kernel writes the ring and SUBMIT is the way in. With USER the
 * caller does: it maps the three buffers that are given, writes descriptors to the
 * first, stores the tail to word 0 of the third, and reads completions from the
 * second (read-only) as DEVICE.md tells. The kernel does not look at what is
 * queued; the device checks each descriptor against the context's map. eventfd
 * (USER only) counts interrupts, at least one for each that the queue raised.
 * After the queue's end, or a function reset, stores to the doorbell do nothing. What waits for
 * a semaphore that the host writes is woken by the context's wake page (CTX_CREATE).
 *
 * Gives: id; USER: offsets for mmap and handles of the three buffers (for
 * DRM_IOCTL_GEM_CLOSE; they cannot be exported).
 * Errors: ENOENT, ENOSPC (no queue left), EMFILE, EACCES (priority), EBADF (eventfd),
 * EOPNOTSUPP (USER where pages are not of 4096 bytes), ECANCELED.
 */
#define DRM_TESSERA_QUEUE_USER		(1u << 0)

struct drm_tessera_queue_create {
	__u32 ctx;
	__u32 flags;		/* in: DRM_TESSERA_QUEUE_* */
	__u32 n_entries;
	__u8 cls;
	__u8 priority;
	__u16 zero;
	__u64 limit_ns;
	__s32 eventfd;		/* in: -1, or an eventfd */
	__u32 id;		/* out */
	__u64 sq_offset, cq_offset, doorbell_offset;	/* out */
	__u32 sq_handle, cq_handle, doorbell_handle;	/* out */
	__u32 zero2;
};

/*
 * DRM_IOCTL_TESSERA_QUEUE_DESTROY: ends a queue; what had not ended fails with
 * ECANCELED. Bounded by milliseconds. Takes: id. Errors: ENOENT.
 *
 * DRM_IOCTL_TESSERA_QUEUE_RESET: stops what runs and drops what is queued on the
 * device (both fail with ECANCELED, or as completions RESET and DROPPED), clears
 * a fault; the queue works on. The kernel does this by itself for its own queues
 * when they fault. Takes: id. Errors: ENOENT, ECANCELED.
 */
struct drm_tessera_queue_id {
	__u32 id;
	__u32 zero;
};

/*
 * DRM_IOCTL_TESSERA_PROGRAM_CREATE: has the device check and keep a program.
 *
 * Takes: ctx; code_va and code_bytes, the code in the context's map; bindings, a
 * user pointer to n_bindings struct drm_tessera_program_binding of binding_bytes each. Gives: id
 * for EXECUTE.
 * Errors: E2BIG (code_bytes is more than drm_tessera_device.program_bytes: to load it keeps all
 * others waiting), EINVAL (status is BAD_PROGRAM and detail the offset of what is wrong, or
 * a field is bad), EOPNOTSUPP (NOT_BUILT), ENOSPC, EMFILE, ENOENT, ECANCELED. After an
 * error status is the device's, or 0 if it was not asked.
 *
 * DRM_IOCTL_TESSERA_PROGRAM_DESTROY: forgets one once nothing runs it. Takes: ctx,
 * id. Errors: ENOENT.
 */
struct drm_tessera_program_create {
	__u32 ctx;
	__u32 n_bindings;
	__u64 code_va;
	__u64 code_bytes;
	__u64 bindings;
	__u64 detail;		/* out */
	__u32 status;		/* out: enum drm_tessera_status */
	__u32 id;		/* out */
	__u32 binding_bytes;	/* sizeof(struct drm_tessera_program_binding) */
	__u32 zero;
};

struct drm_tessera_program_destroy {
	__u32 ctx;
	__u32 id;
};

/*
 * DRM_IOCTL_TESSERA_SUBMIT: work for a queue that the kernel runs.
 *
 * Takes: descs, a user pointer to n_descs (1 to submit_max, at most the queue's
 * entries) struct drm_tessera_desc of desc_bytes (64) each: work descriptors or NOP, with
 * signal and INLINE as they like; tag is the kernel's. Not wait: who writes a semaphore
 * would decide when a fence comes (USER queues wait, and have no fences). in_syncs: points
 * to be reached first, of sync_bytes each; out_syncs: points that this submission's fence
 * becomes (a binary syncobj has point 0).
 * Gives: point on the context's timeline. What is submitted to a queue runs in
 * order; the call does not wait for the device. What a file has submitted and is not done is
 * limited (pending_of_file descriptors, 8 more for each submission and one for each sync), and a
 * queue has at most 1024 submissions more than entries: then EAGAIN, or with the flag WAIT the
 * call sleeps until there is room.
 *
 * The fence carries 0, or (a sync_file of a binary out_sync tells): the errno of the
 * first descriptor's status that failed; ETIME (watchdog or hang); ECANCELED (an
 * in_sync failed, an earlier submission of the queue faulted while this was on the
 * device, the queue or context ended); ENODEV (function reset). A timeline's point
 * that was reached before the call has forgotten how.
 * Errors: EAGAIN, ENOENT (queue, or a syncobj), EINVAL (descriptor, point not submitted
 * yet), ENOTTY (the queue is USER), ECANCELED.
 */
struct drm_tessera_sync {
	__u32 handle;
	__u32 zero;
	__u64 point;
};

#define DRM_TESSERA_SUBMIT_WAIT		(1u << 0)

struct drm_tessera_submit {
	__u32 queue;
	__u32 flags;		/* in: DRM_TESSERA_SUBMIT_* */
	__u32 n_descs;
	__u32 desc_bytes;	/* in: 64 */
	__u64 descs;
	__u32 n_in, n_out;	/* at most 256 each */
	__u64 in_syncs, out_syncs;	/* struct drm_tessera_sync[] */
	__u64 point;		/* out */
	__u32 sync_bytes;	/* sizeof(struct drm_tessera_sync), where there are any */
	__u32 zero;
};

/*
 * DRM_IOCTL_TESSERA_TRACE_START (ABI 5): has the device record what the context's queues run, and
 * when (DEVICE.md, Traces). What has begun already is not recorded, nor what other contexts run.
 *
 * Takes: ctx; va of the ring, a multiple of 64: struct drm_tessera_trace_record[n_records] in one
 * mapping of the context that has WRITE and is neither of HBM nor of what another device may take
 * back; n_records, a power of two between the
 * two below; first, the number of the first record (1 to 2^63 - 1); eventfd or -1. It counts at
 * least one for each half of the ring that was written, more when other interrupts come, and one
 * each second. The device waits for no reader. The mapping stays until the trace ends: UNMAP of
 * it fails with EBUSY.
 * TRACE_STOP, the end of the context and resets end it.
 * Errors: ENOENT (context, or no mapping has all of the ring), EACCES (it has no WRITE), EBUSY
 * (the context is traced already), EBADF (eventfd), ECANCELED.
 *
 * DRM_IOCTL_TESSERA_TRACE_STOP (ABI 5): the device writes no more of it once this returns. Takes:
 * ctx. Gives: last, the number of the last record. Errors: ENOENT (context, or it is not traced),
 * ECANCELED (a reset has ended it).
 */
#define DRM_TESSERA_TRACE_MIN_RECORDS (1u << 6)
#define DRM_TESSERA_TRACE_MAX_RECORDS (1u << 20)

struct drm_tessera_trace_start {
	__u32 ctx;
	__u32 n_records;
	__u64 va;
	__u64 first;
	__s32 eventfd;		/* in: -1, or an eventfd */
	__u32 zero;
};

struct drm_tessera_trace_stop {
	__u32 ctx;
	__u32 zero;
	__u64 last;		/* out */
};

#define DRM_IOCTL_TESSERA_QUERY \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_TESSERA_QUERY, struct drm_tessera_query)
#define DRM_IOCTL_TESSERA_CTX_CREATE \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_TESSERA_CTX_CREATE, struct drm_tessera_ctx_create)
#define DRM_IOCTL_TESSERA_CTX_DESTROY \
	DRM_IOW(DRM_COMMAND_BASE + DRM_TESSERA_CTX_DESTROY, struct drm_tessera_ctx_destroy)
#define DRM_IOCTL_TESSERA_BO_CREATE \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_TESSERA_BO_CREATE, struct drm_tessera_bo_create)
#define DRM_IOCTL_TESSERA_BO_USERPTR \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_TESSERA_BO_USERPTR, struct drm_tessera_bo_userptr)
#define DRM_IOCTL_TESSERA_BO_INFO \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_TESSERA_BO_INFO, struct drm_tessera_bo_info)
#define DRM_IOCTL_TESSERA_MAP \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_TESSERA_MAP, struct drm_tessera_map)
#define DRM_IOCTL_TESSERA_UNMAP \
	DRM_IOW(DRM_COMMAND_BASE + DRM_TESSERA_UNMAP, struct drm_tessera_unmap)
#define DRM_IOCTL_TESSERA_QUEUE_CREATE \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_TESSERA_QUEUE_CREATE, struct drm_tessera_queue_create)
#define DRM_IOCTL_TESSERA_QUEUE_DESTROY \
	DRM_IOW(DRM_COMMAND_BASE + DRM_TESSERA_QUEUE_DESTROY, struct drm_tessera_queue_id)
#define DRM_IOCTL_TESSERA_QUEUE_RESET \
	DRM_IOW(DRM_COMMAND_BASE + DRM_TESSERA_QUEUE_RESET, struct drm_tessera_queue_id)
#define DRM_IOCTL_TESSERA_PROGRAM_CREATE \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_TESSERA_PROGRAM_CREATE, struct drm_tessera_program_create)
#define DRM_IOCTL_TESSERA_PROGRAM_DESTROY \
	DRM_IOW(DRM_COMMAND_BASE + DRM_TESSERA_PROGRAM_DESTROY, struct drm_tessera_program_destroy)
#define DRM_IOCTL_TESSERA_SUBMIT \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_TESSERA_SUBMIT, struct drm_tessera_submit)
#define DRM_IOCTL_TESSERA_TRACE_START \
	DRM_IOW(DRM_COMMAND_BASE + DRM_TESSERA_TRACE_START, struct drm_tessera_trace_start)
#define DRM_IOCTL_TESSERA_TRACE_STOP \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_TESSERA_TRACE_STOP, struct drm_tessera_trace_stop)

#if defined(__cplusplus)
}
#endif

#endif
