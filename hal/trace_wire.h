/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HAL_TRACE_WIRE_H
#define HAL_TRACE_WIRE_H
/*
 * How a process tells another one what its devices do: the traces of hal.h, over the socket
 * beside its telemetry page (telemetry.h). trace_server.c answers, xla-smi asks.
 *
 * Numbers are the machine's own. The asker connects and is told HELLO, or REFUSED and nothing
 * more; then it sends a struct hal_wire_ask for each step, in this order, each once the one
 * before was answered:
 *
 *	START	begins a trace of each device; a DEVICE for each that is open, then STARTED
 *	STOP	ends them; STOPPED
 *	FETCH	gives them away: for each a DEVICE and a TRACE, then WORD and RECORDS in any
 *		order, each word before the records that name it; at last END
 *
 * REFUSED may come in the place of any answer, and is the last. Whoever hangs up ends the
 * trace and discards it, and so does time: HAL_WIRE_ASK_NS for START, what START says for STOP,
 * HAL_WIRE_KEEP_NS for FETCH, HAL_WIRE_SEND_NS for taking anything of what is sent. A process
 * has one asker at a time. Either side may be hostile to the other and checks what it reads.
 */
#include <assert.h>
#include <stdint.h>

#define HAL_WIRE_MAGIC 0x54535354u	/* "TSST" */
#define HAL_WIRE_VERSION 1u
#define HAL_WIRE_TEXT 1024u	/* bytes of a word, at most */
#define HAL_WIRE_WORDS (1u << 20)	/* of one trace; records beyond name none */
#define HAL_WIRE_WORD_BYTES (64u << 20)	/* of all words of one trace */
#define HAL_WIRE_BATCH 512u	/* records of one message, at most */
#define HAL_WIRE_MOST ((uint64_t)4 << 20)	/* records of one trace; more are lost */
#define HAL_WIRE_TRACES 1024u	/* of one process: devices come and go meanwhile */
#define HAL_WIRE_ASK_NS 10000000000ll	/* longer than any asker waits for the HELLO of another */
#define HAL_WIRE_SEND_NS 5000000000ll
#define HAL_WIRE_KEEP_NS 600000000000ll
#define HAL_WIRE_LIMIT_MS 3600000u	/* the longest that START may ask for */

enum hal_wire_step { HAL_WIRE_START = 1, HAL_WIRE_STOP, HAL_WIRE_FETCH };

struct hal_wire_ask {
	uint32_t magic, version;
	uint32_t step;		/* enum hal_wire_step */
	uint32_t limit_ms;	/* START: the longest until STOP; else 0 */
};

/* What an answer is, and which structure it begins with. */
enum hal_wire_kind {
	HAL_WIRE_HELLO = 1,	/* struct hal_wire_hello */
	HAL_WIRE_REFUSED,	/* struct hal_wire_refused */
	HAL_WIRE_DEVICE,	/* struct hal_wire_device */
	HAL_WIRE_STARTED,	/* struct hal_wire_moment */
	HAL_WIRE_STOPPED,	/* struct hal_wire_moment */
	HAL_WIRE_TRACE,		/* struct hal_wire_trace */
	HAL_WIRE_WORD,		/* its text, without NUL; words of a trace are 1, 2, ... */
	HAL_WIRE_RECORDS,	/* struct hal_wire_record[], 1 to HAL_WIRE_BATCH */
	HAL_WIRE_END,		/* struct hal_wire_end */
};

struct hal_wire_head {
	uint32_t kind, bytes;	/* of what follows */
};

struct hal_wire_hello {
	uint32_t magic, version, pid, zero;
};

/* Texts end in NUL, here and below. */
struct hal_wire_refused {
	uint32_t code, zero;	/* of err.def */
	char text[504];
};

struct hal_wire_device {
	uint32_t index;
	uint32_t code;		/* of err.def, with `text`: why it is not traced; 0: it is */
	char bus_id[64], name[32], text[480];
};

struct hal_wire_moment {
	int64_t at_ns;		/* CLOCK_MONOTONIC */
	uint32_t n_devices;	/* STARTED: that are traced; none: nothing follows */
	uint32_t zero;
};

/* Of the device told of just before. */
struct hal_wire_trace {
	uint64_t n_records, n_lost;
	int64_t ended_ns;	/* as the times of a record */
};

/* struct hw_trace_record (desc.h) with times of the host, in ns since STARTED, and words. */
struct hal_wire_record {
	int64_t begin_ns, end_ns;	/* 0 <= begin <= end <= the trace's end */
	uint64_t bytes, ops;
	uint32_t tag, n_insns;
	/* Numbers of words, 0: none. The module; the HLO op; its name in the framework's words,
	 * and where that comes from, as FILE:LINE. */
	uint32_t program, op, framework, source;
	uint8_t kind, cls;	/* enum hw_trace_kind, enum hw_class */
	uint8_t code;		/* hw_trace_record.op */
	uint8_t zero;
	uint16_t status, queue;
};

struct hal_wire_end {
	uint64_t n_dropped;	/* traces of devices that were closed, past HAL_WIRE_TRACES */
};

static_assert(sizeof(struct hal_wire_ask) == 16, "ask");
static_assert(sizeof(struct hal_wire_head) == 8, "head");
static_assert(sizeof(struct hal_wire_refused) == 512, "refused");
static_assert(sizeof(struct hal_wire_device) == 584, "device");
static_assert(sizeof(struct hal_wire_moment) == 16, "moment");
static_assert(sizeof(struct hal_wire_trace) == 24, "trace");
static_assert(sizeof(struct hal_wire_record) == 64, "record");

#endif
