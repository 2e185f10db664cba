/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HAL_DUMP_H
#define HAL_DUMP_H
/*
 * The crash dump: what the HAL writes down when a submission fails by a fault of the device's
 * record, or the device dies, for tessera-objdump --dump.
 *
 * A file of struct hal_dump_header, then n_sections times struct hal_dump_section with its
 * rows behind it, padded to 8 bytes; little endian, at most HAL_DUMP_BYTES. dump.def says which
 * sections there are. Sections of a kind that a reader does not know are passed over; rows or
 * a header that change are another HAL_DUMP_VERSION.
 *
 * Where: TESSERA_DUMP_DIR (made if need be, mode 0700), else the folder of the telemetry pages;
 * named tessera-dump-UID-PID-RANDOM, mode 0600, and complete from the moment that it has that
 * name. A process writes TESSERA_CRASH_DUMPS of them (unset: HAL_DUMPS; 0: none), its first ones;
 * of a user's dumps in the folder the newest HAL_DUMP_FILES stay.
 *
 * Tools include this beside hal.h; nothing here needs a device. Files are hostile: a reader
 * gets tables that lie within the file's bytes, with clean texts, and has to check numbers that
 * name rows of other tables, or instructions.
 */
#include <stddef.h>
#include <stdint.h>

#include "hal/base/err.h"
#include "hal/hw/desc.h"
#include "hal/telemetry.h"

#define HAL_DUMP_MAGIC 0x31504d5544534554ull	/* "TESDUMP1" */
#define HAL_DUMP_VERSION 1u
#define HAL_DUMP_BYTES (256u << 10)
#define HAL_DUMP_PREFIX "tessera-dump-"
#define HAL_DUMP_FILES 16u
#define HAL_DUMPS 4u

struct hal_dump_header {
	uint64_t magic;
	uint32_t version, n_sections;
	uint64_t bytes;		/* of the file */
};

struct hal_dump_section {
	uint32_t kind;		/* enum hal_dump_kind */
	uint32_t row_bytes;
	uint64_t n_rows;
};

enum hal_dump_reason {
	HAL_DUMP_FAULT = 1,	/* a submission failed by the device's record */
	HAL_DUMP_DEATH = 2,	/* the device is dead from now on */
};

struct hal_dump_about {
	uint64_t time_ns;	/* CLOCK_REALTIME */
	uint32_t reason;	/* enum hal_dump_reason */
	uint32_t code;		/* of err.def */
	uint32_t pid, kind;	/* of the process; enum hal_kind */
	uint32_t contract, isa;	/* what the device says it is */
	uint32_t image_version, is_model;	/* IMAGE_VERSION of this HAL */
	uint64_t hbm_bytes;
	char command[64], system[64];	/* of the process; the kernel's release */
	char bus_id[64], name[32], serial[32], firmware[32], driver[32];
	char text[ERR_MSG_BYTES];	/* the error's */
};

struct hal_dump_register {
	uint32_t offset, value;	/* 32 bits each: longer ones are two rows */
};

/* A queue of the HAL's. */
struct hal_dump_ring {
	uint32_t cls;		/* enum hal_queue_class */
	uint32_t id;		/* the device's number; 0: not known, others had its lock */
	uint64_t submitted, done;	/* the newest numbers */
	uint64_t n_failures;	/* ever */
};

struct hal_dump_work {
	uint64_t number;	/* of the submission */
	uint32_t cls, is_program;	/* enum hal_queue_class; 0: a copy, a fill or nothing */
	char name[64];		/* of the executable */
};

struct hal_dump_place {
	uint64_t pc, code_from;	/* the instruction's offset in the program; where CODE begins */
	uint64_t text_bytes;	/* of the program */
	uint8_t fingerprint[32];
	char program[64], made_by[128];	/* the image's name and note */
};

struct hal_dump_op {
	uint64_t offset;	/* of its first instruction */
	char op[80], where[168];	/* as image_debug's */
};

struct hal_dump_binding {
	uint64_t va, bytes, least;	/* least: what the program declares */
	uint32_t kind, index;	/* enum image_kind; of the argument or result */
	uint32_t access, zero;	/* HW_BIND_* */
};

struct hal_dump_block {
	uint64_t va, bytes;
	uint32_t is_host, is_mapped;	/* pinned host memory; the caller's own */
	char owner[48];		/* the tag it was allocated with */
};

enum hal_dump_kind {
#define DUMP(name, number, row, field, most, meaning) HAL_DUMP_##name = number,
#include "hal/dump.def"
#undef DUMP
};

/* A dump that was read, or is made: n_ says how many rows there are. */
struct hal_dump {
#define DUMP(name, number, row, field, most, meaning) \
	const row *field; \
	size_t n_##field;
#include "hal/dump.def"
#undef DUMP
	void *owned;		/* hal_dump_parse: what hal_dump_free frees */
};

/* Reads n bytes, which are copied. INVALID_ARGUMENT says what is wrong with them. */
int hal_dump_parse(const void *bytes, size_t n, struct hal_dump **out, struct err *err);
void hal_dump_free(struct hal_dump *dump);
/* The bytes of a file with these tables, *out the caller's, from malloc. INVALID_ARGUMENT: a
 * table has too many rows; RESOURCE_EXHAUSTED. */
int hal_dump_write(const struct hal_dump *dump, void **out, size_t *n, struct err *err);

#endif
