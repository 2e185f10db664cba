/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR Apache-2.0 */
#ifndef TESSERA_DEVICE_H
#define TESSERA_DEVICE_H
/*
 * What programs exchange with a Tessera T1 itself: descriptors, completions, records. Part of
 * tessera_drm.h, which includes it; the device's manual is hal/hw/DEVICE.md.
 *
 * The driver's sources hold these to the device's own definitions when they are compiled.
 * Little endian. Addresses (va) are those of a context's map.
 */
#ifdef __KERNEL__
#include <linux/types.h>
#else
#include "drm.h"	/* libdrm's: -I as its .pc says; for its __u64 and their like */
#endif

enum drm_tessera_class {
	DRM_TESSERA_CLASS_COMPUTE = 1,
	DRM_TESSERA_CLASS_DMA = 2,
};

enum drm_tessera_op {
	DRM_TESSERA_OP_NOP = 0x00,
	DRM_TESSERA_OP_EXECUTE = 0x20,	/* run a program on bindings */
	DRM_TESSERA_OP_COPY = 0x21,
	DRM_TESSERA_OP_COPY_2D = 0x22,	/* as the struct drm_tessera_copy_2d at src says */
	DRM_TESSERA_OP_FILL = 0x23,	/* dst with the 64-bit pattern in src */
	DRM_TESSERA_OP_SEMAPHORE = 0x24,	/* only wait and signal */
	DRM_TESSERA_OP_TIMESTAMP = 0x25,	/* the device's clock to dst */
};

/* Of a completion. From 16 the queue is faulted. What each means: DEVICE.md. */
enum drm_tessera_status {
	DRM_TESSERA_STATUS_OK = 0,
	DRM_TESSERA_STATUS_BAD_OPCODE = 1,
	DRM_TESSERA_STATUS_BAD_FIELD = 2,
	DRM_TESSERA_STATUS_BAD_ADDRESS = 3,
	DRM_TESSERA_STATUS_NO_SUCH_ID = 4,
	DRM_TESSERA_STATUS_NO_ROOM = 5,
	DRM_TESSERA_STATUS_OVERLAP = 6,
	DRM_TESSERA_STATUS_BUSY = 7,
	DRM_TESSERA_STATUS_BAD_PROGRAM = 8,
	DRM_TESSERA_STATUS_NOT_BUILT = 9,
	DRM_TESSERA_STATUS_DROPPED = 10,
	DRM_TESSERA_STATUS_LINK = 11,
	DRM_TESSERA_STATUS_MAP = 16,
	DRM_TESSERA_STATUS_BOUNDS = 17,
	DRM_TESSERA_STATUS_ALIGNMENT = 18,
	DRM_TESSERA_STATUS_BINDING = 19,
	DRM_TESSERA_STATUS_STACK = 20,
	DRM_TESSERA_STATUS_PC = 21,
	DRM_TESSERA_STATUS_PROGRAM_TRAP = 22,
	DRM_TESSERA_STATUS_BAD_DESCRIPTOR = 23,
	DRM_TESSERA_STATUS_WATCHDOG = 24,
	DRM_TESSERA_STATUS_POISON = 25,
	DRM_TESSERA_STATUS_RESET = 26,
	DRM_TESSERA_STATUS_DEVICE_FATAL = 27,
	DRM_TESSERA_STATUS_NO_MEMORY = 28,
	DRM_TESSERA_STATUS_OPERANDS = 29,
	DRM_TESSERA_STATUS_UNWRITTEN = 30,
	DRM_TESSERA_STATUS_PEER = 31,
	DRM_TESSERA_STATUS_BUS = 32,
};

#define DRM_TESSERA_DESC_WAIT		(1u << 0)	/* begin when *wait_va >= wait_value */
#define DRM_TESSERA_DESC_SIGNAL		(1u << 1)	/* at the end raise *signal_va */
#define DRM_TESSERA_DESC_IRQ		(1u << 2)
#define DRM_TESSERA_DESC_INLINE		(1u << 3)	/* a hint: little work and no loop */

struct drm_tessera_desc {
	__u8 op;		/* enum drm_tessera_op */
	__u8 flags;		/* DRM_TESSERA_DESC_* */
	__u16 zero;
	__u32 tag;		/* comes back in the completion; SUBMIT: the kernel's */
	__u64 wait_va, wait_value;
	__u64 signal_va, signal_value;
	union {
		struct {
			__u64 bindings;	/* va of struct drm_tessera_binding[n_bindings] */
			__u32 program;
			__u32 n_bindings;
			__u64 limit_ns;	/* 0: the queue's */
		} execute;
		struct {
			__u64 src, dst;
			__u64 bytes;
		} copy;
	} u;
};

struct drm_tessera_completion {
	__u32 tag;
	__u16 status;		/* enum drm_tessera_status */
	__u16 phase;		/* bit 0: 1 on the first lap, 0 on the next; written last */
	__u32 sq_head;		/* descriptors consumed, free-running */
	__u32 zero;
	__u64 value;		/* ns of device time */
	__u64 detail;		/* a fault: its record's number */
};

struct drm_tessera_binding {
	__u64 va;		/* a multiple of 64 */
	__u64 bytes;
};

#define DRM_TESSERA_BIND_READ		(1u << 0)
#define DRM_TESSERA_BIND_WRITE		(1u << 1)
#define DRM_TESSERA_BIND_SCRATCH	(1u << 2)	/* nobody's outside of a run */
#define DRM_TESSERA_BIND_PEER		(1u << 3)	/* with WRITE: another chip's memory */

struct drm_tessera_program_binding {
	__u64 bytes;		/* the least that EXECUTE must give */
	__u32 access;		/* DRM_TESSERA_BIND_* */
	__u32 zero;
};

struct drm_tessera_copy_2d {
	__u64 src, dst;
	__u64 row_bytes;
	__u64 rows, planes;	/* 1 or more */
	__s64 src_row, dst_row;	/* bytes from row to row */
	__s64 src_plane, dst_plane;
};

#define DRM_TESSERA_IDENTITY_MAGIC 0x3153534554ull

struct drm_tessera_identity {
	__u64 magic;
	__u32 contract;		/* version of DEVICE.md */
	__u32 isa;		/* version of the programs that it runs */
	char name[32], serial[32], firmware[32];
	__u64 hbm_bytes;
	__u32 max_contexts, max_queues, max_programs, max_maps;
	__u32 n_vectors;
	__u32 cores;
	__u64 is_model;		/* 1: the software model */
	__u64 fabric;		/* the same on all chips that are linked; 0: no links */
	__u16 chip, n_chips;
	__u16 coords[3], shape[3];
	__u8 zero[16];
};

struct drm_tessera_fault {
	__u64 number;		/* 1, 2, ...: detail of the completion */
	__u64 time_ns;
	__u16 status;		/* enum drm_tessera_status */
	__u16 queue, ctx;	/* the device's numbers */
	__u16 operand;		/* 0xffff: none */
	__u32 program;
	__u32 tag;
	__u64 pc;
	__u64 va;
	__u64 bytes;
	__u32 binding;		/* 0xffffffff: none */
	__u32 is_write;
};

enum drm_tessera_trace_kind {
	DRM_TESSERA_TRACE_PROGRAM = 1,	/* an EXECUTE */
	DRM_TESSERA_TRACE_GROUP = 2,	/* instructions of a run, up to one that works on tensors */
	DRM_TESSERA_TRACE_PARKED = 3,	/* a run that waited off its engine */
	DRM_TESSERA_TRACE_COPY = 4,	/* a COPY, COPY_2D, FILL or TIMESTAMP */
	DRM_TESSERA_TRACE_WAIT = 5,	/* the head of a queue that waited for its semaphore */
};

/* Record n is at [(n - 1) % n_records]. */
struct drm_tessera_trace_record {
	__u64 number;		/* from first on; stored last, 0 while it is written */
	__u64 begin_ns, end_ns;	/* device clock */
	__u8 kind;		/* enum drm_tessera_trace_kind */
	__u8 cls;		/* enum drm_tessera_class */
	__u16 queue;		/* the device's number */
	__u32 program;		/* of EXECUTE */
	__u32 tag;		/* the descriptor's */
	__u32 pc;		/* GROUP, PARKED: offset of the last instruction */
	__u64 bytes;		/* GROUP: moved; COPY: written */
	__u64 ops;		/* GROUP: two a multiply-add, one a vector operation's element */
	__u32 n_insns;		/* GROUP */
	__u16 status;		/* PROGRAM, COPY: enum drm_tessera_status */
	__u8 op;		/* the descriptor's; GROUP: the instruction's at pc; PARKED: that
				 * it waits at, or 0: others had their turn */
	__u8 zero;
};

/* Totals since the last function reset, of the whole device. */
struct drm_tessera_telemetry {
	__u64 time_ns;
	__u64 busy_compute_ns, busy_dma_ns;
	__u64 hbm_read_bytes, hbm_write_bytes;
	__u64 dma_in_bytes, dma_out_bytes;
	__u64 n_execute, n_copy, n_fault, n_insn;
	__u64 matrix_ops, vector_ops;
	__u32 temperature_mc, power_mw;
	__u32 clock_khz, throttle;
};

enum drm_tessera_link_state {
	DRM_TESSERA_LINK_UP = 1,
	DRM_TESSERA_LINK_PEER_FATAL = 2,	/* the neighbour is in its fatal state */
	DRM_TESSERA_LINK_PEER_OFF = 3,	/* the neighbour has no driver */
	DRM_TESSERA_LINK_DOWN = 4,	/* it carries nothing; a reset at either end brings it up */
};

/* A link of a chip to a neighbour in the torus. Totals since the last function reset. */
struct drm_tessera_link {
	__u16 peer;		/* drm_tessera_identity.chip of the neighbour */
	__u8 dim;		/* of the torus, along which it is */
	__u8 is_down;		/* 1: towards lower coordinates */
	__u8 is;		/* enum drm_tessera_link_state */
	__u8 zero[3];
	__u64 tx_bytes, rx_bytes;	/* what it carried, passing traffic included */
	__u64 n_packets;	/* sent */
	__u64 n_errors;		/* refused, because the chip they were for had failed */
};

/* Totals since power on. */
struct drm_tessera_ras {
	__u64 ecc_corrected, ecc_uncorrected, poisoned_pages, watchdog_fires;
	__u64 queue_resets, function_resets, fatal;
};

#endif
