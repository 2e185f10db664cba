/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
#ifndef HW_DESC_H
#define HW_DESC_H
/*
 * What travels between driver and device in memory: submissions, completions
 * and the structures that admin requests point to. DEVICE.md#queues is the
 * manual. All little endian. A reserved field is 0, or the request is refused.
 *
 * Rings live in host memory. The driver writes submissions, then one 32-bit store
 * of the new tail (a free-running count) to the queue's doorbell. The device
 * writes completions with a phase bit that flips on every lap, starting with 1.
 *
 * Addresses: `iova` is a DMA address as the IOMMU sees it; `va` is an address
 * in a context's map, which leads to HBM or to an iova.
 */
#include <assert.h>
#include <stdint.h>

#include "hal/hw/isa.h"

enum hw_opcode {
#define DESC(name, number, cls, status, effect) HW_##name = number,
#include "hal/hw/desc.def"
#undef DESC
};

enum hw_status {
#define FAULT(name, number, code, text) HW_ST_##name = number,
#include "hal/hw/fault.def"
#undef FAULT
	HW_ST_FAULTS = 16,	/* first status that stops a queue */
};

enum {
	HW_WAIT = 1u << 0,	/* begin when *wait_va >= wait_value */
	HW_SIGNAL = 1u << 1,	/* at the end *signal_va = max(old, signal_value) */
	HW_IRQ = 1u << 2,	/* raise the queue's vector after the completion */
	HW_INLINE = 1u << 3,	/* a hint: little work; a model may run it on the
				 * thread that rang the doorbell */
};

/* A submission, 64 bytes. */
struct hw_sqe {
	uint8_t op;		/* enum hw_opcode */
	uint8_t flags;		/* HW_* */
	uint16_t id;		/* admin: context, queue, log page, ...; EXECUTE: 0 */
	uint32_t tag;		/* comes back in the completion */
	uint64_t wait_va, wait_value;	/* admin: reserved */
	uint64_t signal_va, signal_value;
	union {
		struct {			/* admin */
			uint64_t addr;		/* iova */
			uint64_t value;
			uint64_t bytes;
		} admin;
		struct {
			uint64_t bindings;	/* va of struct hw_binding[n_bindings] */
			uint32_t program;
			uint32_t n_bindings;
			uint64_t limit_ns;	/* watchdog; 0: the queue's default */
		} execute;
		struct {
			uint64_t src, dst;	/* va */
			uint64_t bytes;
		} copy;				/* COPY, FILL, TIMESTAMP, COPY_2D (src) */
	} u;
};

/* A completion, 32 bytes. Every submission gets one, in order of end. */
struct hw_cqe {
	uint32_t tag;
	uint16_t status;	/* enum hw_status */
	uint16_t phase;		/* bit 0 */
	uint32_t sq_head;	/* submissions consumed so far, free-running */
	uint32_t zero;
	uint64_t value;		/* admin: result; work: ns of device time taken */
	uint64_t detail;	/* BAD_PROGRAM: offset; a fault: record number */
};

struct hw_binding {
	uint64_t va;
	uint64_t bytes;
};

enum { HW_MAP_WRITE = 1u << 0, HW_MAP_HOST = 1u << 1 };

/* MAP and UNMAP: va, pa and bytes are multiples of 4096. */
struct hw_map {
	uint64_t va;
	uint64_t pa;		/* offset in HBM, or iova with HW_MAP_HOST */
	uint64_t bytes;
	uint32_t flags;		/* HW_MAP_* */
	uint32_t zero;
};

/* WINDOW_OPEN: [va, va + bytes) of a context, which is HBM in one piece, writable; multiples
 * of 4096. It stays mapped as long as it is lent. */
struct hw_window {
	uint64_t va, bytes;
};

/* PEER_MAP: `bytes` at `offset` of chip `chip`'s window `key` appear at va; multiples of 4096. */
struct hw_peer_map {
	uint64_t va, offset, bytes;
	uint64_t key;
	uint32_t chip;
	uint32_t zero;
};

enum hw_class { HW_CLASS_COMPUTE = 1, HW_CLASS_DMA = 2 };

struct hw_queue {
	uint64_t sq_iova, cq_iova;
	uint32_t n_entries;	/* of both rings; a power of two, 2 to 65536 */
	uint16_t ctx;
	uint8_t cls;		/* enum hw_class */
	uint8_t priority;	/* 0 to 3; 3 first */
	uint32_t vector;	/* MSI-X vector; HW_NO_VECTOR: completions are polled */
	uint32_t flags;		/* HW_QUEUE_* */
	uint64_t limit_ns;	/* default watchdog of a descriptor; 0: none */
};
enum { HW_QUEUE_UNCAPPED = 1u << 0 };	/* feature MAX_LIMIT_NS is not for its work */
#define HW_NO_VECTOR 0xffffffffu

/* PROGRAM_CREATE. The code is read from `code_va` once. */
struct hw_program {
	uint64_t code_va;
	uint64_t code_bytes;
	uint64_t bindings_iova;	/* struct hw_program_binding[n_bindings] */
	uint32_t n_bindings;
	uint16_t ctx;
	uint16_t zero;
};

enum {
	HW_BIND_READ = 1u << 0, HW_BIND_WRITE = 1u << 1,
	HW_BIND_SCRATCH = 1u << 2,	/* what it holds before and after a run is nobody's */
	/* With WRITE alone: it lies in another chip's window. With READ alone: there, or in this
	 * chip's own HBM. */
	HW_BIND_PEER = 1u << 3,
};

/* What a program asks of a binding. A binding's va must be a multiple of 64. */
struct hw_program_binding {
	uint64_t bytes;		/* the least that EXECUTE must give */
	uint32_t access;	/* HW_BIND_* */
	uint32_t zero;
};

/* COPY_2D: `rows` rows, in up to two outer levels. */
struct hw_copy_2d {
	uint64_t src, dst;	/* va */
	uint64_t row_bytes;
	uint64_t rows, planes;	/* >= 1 */
	int64_t src_row, dst_row;	/* bytes from row to row */
	int64_t src_plane, dst_plane;
};

#define HW_IDENTIFY_MAGIC 0x3153534554ull	/* "TESS1" */

struct hw_identify {
	uint64_t magic;
	uint32_t contract;	/* version of DEVICE.md */
	uint32_t isa;		/* ISA_VERSION */
	char name[32], serial[32], firmware[32];
	uint64_t hbm_bytes;
	uint32_t max_contexts, max_queues, max_programs, max_maps;
	uint32_t n_vectors;
	uint32_t cores;		/* parallel lanes, for the compiler's choices */
	uint64_t is_model;	/* 1: the software model */
	uint64_t fabric;	/* the same on all chips that are linked; 0: it has no links */
	uint16_t chip, n_chips;	/* its number in the fabric, of so many */
	uint16_t coords[3], shape[3];	/* its place in the torus, and the torus's size */
	uint8_t zero[16];
};

enum hw_log {
	HW_LOG_FAULT = 1, HW_LOG_TELEMETRY = 2, HW_LOG_RAS = 3, HW_LOG_QUEUES = 4,
	HW_LOG_LINKS = 5,
};

/* HW_LOG_FAULT: the newest records, newest first, at most 64. */
struct hw_fault {
	uint64_t number;	/* 1, 2, ...: cqe.detail of the descriptor at fault */
	uint64_t time_ns;
	uint16_t status;	/* enum hw_status */
	uint16_t queue, ctx;
	uint16_t operand;	/* which operand of the instruction; 0xffff: none */
	uint32_t program;
	uint32_t tag;
	uint64_t pc;		/* offset of the instruction in the program */
	uint64_t va;		/* address at fault: va, or offset in the binding */
	uint64_t bytes;		/* size of the access or of the binding */
	uint32_t binding;	/* 0xffffffff: none */
	uint32_t is_write;
};

/* HW_LOG_TELEMETRY: totals since reset, derived from work done. */
struct hw_telemetry {
	uint64_t time_ns;	/* device clock now */
	uint64_t busy_compute_ns, busy_dma_ns;
	uint64_t hbm_read_bytes, hbm_write_bytes;
	uint64_t dma_in_bytes, dma_out_bytes;
	uint64_t n_execute, n_copy, n_fault, n_insn;
	uint64_t matrix_ops, vector_ops;	/* multiply-adds; uops times elements */
	/* Sensors; 0: there is none. In the model as DEVICE.md#telemetry has it. */
	uint32_t temperature_mc, power_mw;
	uint32_t clock_khz, throttle;	/* HW_THROTTLE_* */
};

/* Heat, in thousandths of a degree: DEVICE.md#telemetry. */
#define HW_AIR_MC 35000u		/* of the air, unless INJECT says another */
#define HW_MAX_AIR_MC 100000u		/* that INJECT takes */
#define HW_THROTTLE_ON_MC 90000u	/* from here on it is throttled, */
#define HW_THROTTLE_OFF_MC 85000u	/* until here */
#define HW_CLOCK_KHZ 1000000u
#define HW_CLOCK_THROTTLED_KHZ 500000u
#define HW_THROTTLE_HEAT 1u

/* HW_LOG_RAS */
struct hw_ras {
	uint64_t ecc_corrected, ecc_uncorrected, poisoned_pages, watchdog_fires;
	uint64_t queue_resets, function_resets, fatal;
};

/* HW_LOG_QUEUES: the work queues that are, ascending by number. */
enum hw_queue_is {
	HW_QUEUE_IDLE = 0,	/* nothing is queued */
	HW_QUEUE_READY = 1,	/* its head can begin or go on, or nobody has looked whether */
	HW_QUEUE_WAITING = 2,	/* its head waits for a semaphore */
	HW_QUEUE_RUNNING = 3,	/* the engine works on it */
	HW_QUEUE_FAULTED = 4,
	HW_QUEUE_PARKED = 5,	/* its program waits for a semaphore (RWAIT) */
};
struct hw_queue_state {
	uint16_t queue, ctx;
	uint8_t cls;		/* enum hw_class */
	uint8_t is;		/* enum hw_queue_is */
	uint16_t zero;
	uint32_t tail, head;	/* descriptors announced and begun, free-running */
	uint64_t run_ns;	/* RUNNING, PARKED: for how long its descriptor has, turns of other
				 * contexts aside; else 0 */
};

/* HW_LOG_LINKS: the links of a chip, to its neighbours in the torus; totals since reset. */
#define HW_MAX_LINKS 6u
enum hw_link_is {
	HW_LINK_UP = 1,
	HW_LINK_PEER_FATAL = 2,	/* the neighbour is in its fatal state */
	HW_LINK_PEER_OFF = 3,	/* the neighbour has no driver */
	HW_LINK_DOWN = 4,	/* it carries nothing; a reset at either end brings it up */
};
struct hw_link {
	uint16_t peer;		/* number of the neighbour */
	uint8_t dim;		/* of the torus, along which it is */
	uint8_t is_down;	/* 1: towards lower coordinates */
	uint8_t is;		/* enum hw_link_is */
	uint8_t zero[3];
	uint64_t tx_bytes, rx_bytes;	/* what it carried, passing traffic included */
	uint64_t n_packets;	/* sent: one an RPUT, RSIG or piece of a copy */
	uint64_t n_errors;	/* refused: the chip they were for had failed, or a link was down */
};

/* TRACE_START: a ring of records, host memory of the context's, writable. */
struct hw_trace {
	uint64_t va;		/* struct hw_trace_record[n_records]; a multiple of 64 */
	uint64_t first;		/* number of the first record, at least 1 */
	uint32_t n_records;	/* a power of two, 2 to HW_TRACE_MAX_RECORDS */
	uint32_t vector;	/* raised with each half of the ring; HW_NO_VECTOR: none */
};

#define HW_TRACE_MAX_RECORDS (1u << 20)

enum hw_trace_kind {
#define TRACE(name, number, what, pc) HW_TRACE_##name = number,
#include "hal/hw/trace.def"
#undef TRACE
};

/* Record n is at [(n - 1) % n_records]. `number` is 0 while the record is written. */
struct hw_trace_record {
	uint64_t number;	/* 1, 2, ...; stored last */
	uint64_t begin_ns, end_ns;	/* device clock */
	uint8_t kind;		/* enum hw_trace_kind */
	uint8_t cls;		/* enum hw_class: the engine */
	uint16_t queue;
	uint32_t program;	/* id; of what is no EXECUTE 0 */
	uint32_t tag;		/* the descriptor's */
	uint32_t pc;		/* see trace.def */
	uint64_t bytes;		/* GROUP: as HW_LOG_TELEMETRY counts them; COPY: written */
	uint64_t ops;		/* GROUP: two a multiply-add, one a vector operation's element */
	uint32_t n_insns;	/* GROUP: executed, HALT aside */
	uint16_t status;	/* PROGRAM, COPY: enum hw_status with which it ended */
	uint8_t op;		/* the descriptor's; GROUP: the instruction's at pc; PARKED: RWAIT,
				 * or 0: others had their turn */
	uint8_t zero;
};

enum hw_feature {
	HW_FEATURE_INLINE_NS = 1, HW_FEATURE_DEFAULT_LIMIT_NS = 2,
	HW_FEATURE_MAX_LIMIT_NS = 3,
};

enum hw_inject {
	HW_INJECT_ECC_CORRECTED = 1,	/* value: how many */
	HW_INJECT_POISON = 2,		/* value: HBM offset of a 4 KiB page */
	HW_INJECT_FATAL = 3,		/* value: enum hw_fatal from THERMAL on, else INJECTED */
	HW_INJECT_DROP_IRQ = 4,		/* value: how many interrupts get lost */
	/* Faulty cells of HBM (cell.def), for tests of memory tests. A bit of HBM is named by
	 * its offset in bytes times 8 plus its number in the byte. */
	HW_INJECT_CELL = 9,		/* value: enum hw_cell << 56 | the bit */
	HW_INJECT_CELL_BY = 10,		/* value: the second cell of those that need one, or N */
	HW_INJECT_MEND = 11,		/* no cell is faulty any more */
	HW_INJECT_HANG = 12,		/* value: enum hw_class, whose engine's next run hangs */
	HW_INJECT_BUS = 13,		/* value: how many copies and fills fail */
	HW_INJECT_LINK_DOWN = 14,	/* value: number of a link, in HW_LOG_LINKS */
	HW_INJECT_AIR = 15,		/* value: how warm the air is, at most HW_MAX_AIR_MC */
	/* Lies, for tests of drivers. Of the requests that come after this one: */
	HW_INJECT_WRONG_VALUE = 5,	/* value: what the next one's completion says it is */
	HW_INJECT_WRONG_TAG = 6,	/* value: how many get another's tag back */
	HW_INJECT_NO_ANSWER = 7,	/* value: how many get no completion */
	HW_INJECT_DOORBELL = 8,		/* value: queue | tail << 32, as if somebody rang it */
	HW_INJECT_WRONG_STATUS = 16,	/* value: what the next one's completion says of it */
};

/* HBM is banks of rows: see DEVICE.md#rows-of-hbm. */
#define HW_HBM_ROW_BYTES 1024u
#define HW_HBM_BANKS 16u

/* What HW_INJECT_CELL makes of a cell. */
enum hw_cell {
#define CELL(name, number, class, needs, meaning) HW_CELL_##name = number,
#include "hal/hw/cell.def"
#undef CELL
};

static_assert(sizeof(struct hw_sqe) == 64, "submission");
static_assert(sizeof(struct hw_cqe) == 32, "completion");
static_assert(sizeof(struct hw_map) == 32, "map");
static_assert(sizeof(struct hw_queue) == 40, "queue");
static_assert(sizeof(struct hw_program) == 32, "program");
static_assert(sizeof(struct hw_fault) == 64, "fault");
static_assert(sizeof(struct hw_queue_state) == 24, "state of a queue");
static_assert(sizeof(struct hw_peer_map) == 40, "map of a window");
static_assert(sizeof(struct hw_link) == 40, "link");
static_assert(sizeof(struct hw_trace) == 24, "trace");
static_assert(sizeof(struct hw_trace_record) == 64, "record of a trace");
static_assert(sizeof(struct hw_identify) == 192, "identity");
static_assert(sizeof(struct isa_scalar) == 24, "scalar");
static_assert(sizeof(struct isa_operand) == 80, "operand");
static_assert(sizeof(struct isa_uop) == 16, "uop");

/* The error code and the text for a completion's status. */
int hw_status_code(unsigned status);
const char *hw_status_text(unsigned status);
const char *hw_status_name(unsigned status);	/* "BOUNDS" */
/* "copy": what people call a descriptor of a queue's that is no EXECUTE; "?" for others. */
const char *hw_work_name(unsigned op);

#endif
