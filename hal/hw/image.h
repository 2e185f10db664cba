/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
#ifndef HW_IMAGE_H
#define HW_IMAGE_H
/*
 * The executable format: an ELF64 file, little endian, ET_EXEC, e_machine
 * IMAGE_MACHINE, read and written through libelf. Sections:
 *
 *	.text             the program's instructions (isa.h)
 *	.rodata           constants, bound to binding 0, aligned to 64
 *	.tessera.info     struct image_info
 *	.tessera.bindings struct image_binding[]
 *	.tessera.shapes   struct image_shape[] of arguments, then results
 *	.tessera.debug    struct image_debug[], ascending by offset
 *	.tessera.strings  NUL-terminated texts, offset 0 is ""
 *	.tessera.host     struct image_transfer[], by call (none: the program makes no calls)
 *	.tessera.note     text for people: the compiler's version and options
 *
 * Binding order: 0 constants, 1 temporaries, then arguments, then those results
 * that do not live in an argument's memory, then at most one mailbox, then peers; last, of a
 * program that draws random numbers without being given a state, the device's own:
 * IMAGE_RANDOM_WORDS u64, an ISA_RNG_PHILOX state, which is the same memory for all programs.
 *
 * A program that meets others on other chips has a mailbox: memory that those write to, kept
 * from run to run. Its first content is zeros, and again after a launch failed. A peer binding
 * is a binding of another member of the launch, which that lends; `index` is member << 16 |
 * its number there.
 *
 * A program with transfers calls the host: it ends several times. The first 8 bytes of its
 * temporaries hold a u64, 0 when it is launched. Where a run ends with number n there, n not 0,
 * the host moves the transfers of call n, and launches the program again on the same bindings:
 * it goes on. Where a run ends with 0 there, the program is over.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hal/base/err.h"
#include "hal/hw/desc.h"

#define IMAGE_MACHINE 0x7e55
#define IMAGE_VERSION 2u
#define IMAGE_MAX_RANK 32
#define IMAGE_RANDOM_WORDS 3u

enum image_kind {
	IMAGE_CONSTANTS, IMAGE_TEMP, IMAGE_ARG, IMAGE_RESULT, IMAGE_RANDOM, IMAGE_MAILBOX,
	IMAGE_PEER,
};

enum { IMAGE_STRAIGHT = 1u << 0 };	/* no backward branch: always ends */

struct image_info {
	uint32_t version;	/* IMAGE_VERSION */
	uint32_t isa;		/* ISA_VERSION */
	uint32_t n_args, n_results;
	uint32_t flags;		/* IMAGE_* */
	uint32_t name;		/* string: the program's name */
	uint64_t temp_bytes;
	uint64_t cost_ns;	/* estimated time on the device; 0: unknown */
	double flops, bytes_accessed, transcendentals;	/* cost analysis */
	uint8_t fingerprint[32];
};

struct image_binding {
	uint8_t kind;		/* enum image_kind */
	uint8_t zero;
	uint16_t access;	/* HW_BIND_* */
	uint32_t index;		/* of the argument or result; peers: see above; else 0 */
	uint64_t bytes;		/* the least that must be bound */
};

struct image_shape {
	uint8_t elem;		/* enum elem */
	uint8_t rank;
	uint8_t is_donated;	/* argument: its memory is a result's, see alias */
	uint8_t memory_kind;	/* 0 device, 1 pinned_host, 2 unpinned_host */
	int32_t alias;		/* result: argument whose memory it takes, or -1;
				 * argument: the result that takes it, or -1 */
	uint8_t order[IMAGE_MAX_RANK];	/* the dims from the outermost in memory to the
				 * innermost; all 0: as in dim, row-major */
	int64_t dim[IMAGE_MAX_RANK];
};

/* An array that a call of the host moves, dense and row-major. Calls are numbered from 1;
 * those of one call follow each other, what it sends before what it receives. */
struct image_transfer {
	uint32_t call;
	uint8_t is_recv;	/* from the host; else to it */
	uint8_t zero;
	uint16_t binding;	/* where it lies */
	uint64_t offset, bytes;	/* in the binding; bytes may be 0 */
	int64_t channel;	/* by which the framework names the transfer */
};

struct image_debug {
	uint64_t offset;	/* of an instruction in .text */
	uint32_t op;		/* string: "dot_general" or a fusion's ops */
	uint32_t where;		/* string: the framework's name and location */
};

/* A read or to-be-written image. Pointers lead into memory that the image owns
 * (after image_parse) or the writer owns (for image_write). */
struct image {
	struct image_info info;
	const void *text;
	size_t text_bytes;
	const void *rodata;
	size_t rodata_bytes;
	const struct image_binding *bindings;
	size_t n_bindings;
	const struct image_shape *shapes;	/* info.n_args + info.n_results */
	const struct image_debug *debug;
	size_t n_debug;
	const struct image_transfer *transfers;
	size_t n_transfers;
	const char *strings;
	size_t strings_bytes;
	const char *note;
	void *owned;		/* image_parse: what image_free frees */
};

/* Checks everything that can be checked without decoding instructions: counts,
 * kinds, order of bindings, string offsets, aliases in range and of equal size, transfers
 * within bindings of their direction.
 * The bytes are copied. INVALID_ARGUMENT says which rule is broken. */
int image_parse(const void *bytes, size_t n, struct image **out, struct err *err);
/* The same, but code and constants stay in `bytes`, which must live as long. */
int image_view(const void *bytes, size_t n, struct image **out, struct err *err);
void image_free(struct image *image);
/* Builds the ELF file; *out is malloc'd, the caller's. */
int image_write(const struct image *image, void **out, size_t *out_bytes,
		struct err *err);
/* Whether it draws from the device's random state: its last binding is that. */
bool image_draws(const struct image *image);
/* A text of the string section; "" if out of range. */
const char *image_string(const struct image *image, uint32_t offset);
/* The debug row that covers `offset`, or NULL. */
const struct image_debug *image_where(const struct image *image, uint64_t offset);
/* Bytes of a dense array of this shape. */
uint64_t image_shape_bytes(const struct image_shape *shape);

#endif
