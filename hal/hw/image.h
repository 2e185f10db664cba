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
 *	.tessera.functions  what calls by name show the host, by call: of each u32 call, u32 n,
 *	                  n bytes; see below
 *	.tessera.peers    u32[M][slots]: whose mailbox each peer binding of member m is
 *	.tessera.members  u64[M][words]: what each member binds as its row
 *	.tessera.meetings struct image_meeting[], in the order of the code (none: not said)
 *	.tessera.shardings  of arguments, then results: u32 n, then n bytes of a serialized
 *	                  xla.OpSharding (n = 0: replicated), unaligned; none: nothing to say
 *	.tessera.note     text for people: the compiler's version and options
 *
 * Members. A program for R replicas and P partitions (info) is run by M = R * P members at
 * once, each on a device of its own; member m is replica m / P, partition m % P. All run this
 * one image. .tessera.shapes are those of one member's arrays.
 *
 * Binding order, each kind with `index` ascending by one from 0:
 *
 *	0 constants, 1 temporaries
 *	arguments, then those results that do not live in an argument's memory (index: which)
 *	mailbox   at most one, index 0; there if and only if there are peers. Memory of the
 *	          member's own that others write to, of `bytes` at least, 64-aligned, kept from
 *	          run to run
 *	peers     index: the slot. Bound for member m: the mailbox of member peers[m][slot],
 *	          a valid one and never m, as hal_peer_va names it on m's device. Two slots
 *	          of a row may name the same member. Not more bytes than the mailbox. Slots
 *	          behind those that are bound so are for peer data alone, and may name m
 *	member    at most one, index 0, read only: words of it, bound for m: members[m], which
 *	          starts with the replica and the partition; the rest is the compiler's
 *	random    at most one, index 0: of a program that draws random numbers without being given
 *	          a state: the device's own, IMAGE_RANDOM_WORDS u64, an ISA_RNG_PHILOX state; the
 *	          same memory for all programs of the device
 *	peer data index: slot + n_slots * k. Bound for member m: what binding k, of the
 *	          temporaries, an argument or a result, is bound to for member peers[m][slot] in
 *	          the same launch. As large as binding k, in HBM. Declared for writing, or, of
 *	          what VECs read, for reading
 *
 * Mailboxes. Before the first launch all mailboxes of a load are zeros, whole; then nobody but
 * the members writes to them as long as launches go well. When a launch failed, for
 * whatever reason and on whichever member, the mailboxes of all M members are zeros again
 * before any member is launched anew. All M members are launched, each as often as the others,
 * and two programs with mailboxes in the same order on all the devices that they share. Two
 * launches of one load may be queued behind each other; they may use the same mailbox, and
 * no two loads may. A program of M > 1 members that meet nobody has no mailbox.
 *
 * Members may run images of their own, compiled apart, if these say the same in
 * .tessera.meetings but for `where`: such images have mailboxes of one layout and the same peers,
 * so all bind the mailboxes of one load. An image with peer data knows where the others have
 * what: it is the image of all members, and one process launches them all together.
 *
 * Dims with a bound. An argument or result whose shape has dims in `bounded` is as long as its
 * shape in memory, but may count as shorter: what lies past an argument's sizes is anything and no
 * result depends on it; zeros lie past a result's. The last arguments are the sizes of those with
 * such dims, one for each, in their order: ELEM_S32, rank 1, as many as the rank, in device
 * memory, row-major, not aliased; so are the last results. A size is from 0 to the bound, and the
 * dim where that has no bound; whoever launches ensures it. Programs of one partition only;
 * each replica has sizes of its own.
 *
 * A program with transfers calls the host: it ends several times. The first 8 bytes of its
 * temporaries hold a u64, 0 when it is launched. Where a run ends with number n there, n not 0,
 * the host moves the transfers of call n, and launches the program again on the same bindings:
 * it goes on. Where a run ends with 0 there, the program is over.
 *
 * A call by name is of a function that the host knows by it; its transfers have channel 0 and
 * are its operands and results but for tokens, in order (or one of no bytes, if there are none).
 * Its n bytes, without padding, little endian:
 *
 *	u32 n, the name: n bytes
 *	u32 operands, u32 results; of each u8 enum elem, u8 rank, s32 alias (result: the operand
 *	whose memory it takes; else -1), s64 dim[rank]
 *	attributes: u32 count; of each, ascending by name: u32 n, the name: n bytes, u8 kind, then
 *		IMAGE_ATTRIBUTE_SCALAR	u8 enum elem, the value
 *		IMAGE_ATTRIBUTE_ARRAY	u8 enum elem, u64 count, the elements
 *		IMAGE_ATTRIBUTE_TEXT	u32 n, n bytes
 *		IMAGE_ATTRIBUTE_LIST	attributes, at most IMAGE_MAX_NESTED in each other
 *
 * The dims are those that the function is told; the bytes may lie in another order of them,
 * which it knows.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hal/base/err.h"
#include "hal/hw/desc.h"

#define IMAGE_MACHINE 0x7e55
#define IMAGE_VERSION 6u
#define IMAGE_MAX_RANK 32
#define IMAGE_RANDOM_WORDS 3u
#define IMAGE_MAX_MEMBERS 65536u
#define IMAGE_MAX_NESTED 16

enum {
	IMAGE_ATTRIBUTE_SCALAR, IMAGE_ATTRIBUTE_ARRAY, IMAGE_ATTRIBUTE_TEXT, IMAGE_ATTRIBUTE_LIST,
};

enum image_kind {
	IMAGE_CONSTANTS, IMAGE_TEMP, IMAGE_ARG, IMAGE_RESULT, IMAGE_RANDOM, IMAGE_MAILBOX,
	IMAGE_PEER, IMAGE_MEMBER, IMAGE_PEER_DATA,
};

enum { IMAGE_STRAIGHT = 1u << 0 };	/* no backward branch: it ends, or waits for others */

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
	uint32_t n_replicas, n_partitions;	/* both at least 1 */
};

struct image_binding {
	uint8_t kind;		/* enum image_kind */
	uint8_t zero;
	uint16_t access;	/* HW_BIND_* */
	uint32_t index;		/* of the argument, result or slot; see above; else 0 */
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
	uint32_t bounded;	/* dims (bits) that have a bound, and a size of their own */
	uint32_t zero;
	int64_t dim[IMAGE_MAX_RANK];
};

/* An array that a call of the host moves, dense and row-major. Calls are numbered from 1;
 * those of one call follow each other, what it sends before what it receives. */
enum image_way {
	IMAGE_TO_HOST,
	IMAGE_FROM_HOST,
	IMAGE_FROM_HOST_TRUTH,	/* truth values: a byte that is not 0 arrives as 1 */
	IMAGE_WAYS
};

struct image_transfer {
	uint32_t call;
	uint8_t way;		/* enum image_way */
	uint8_t only;		/* 0: of each member; n: of those of partition n - 1, the same in
				 * all of a call; the others stop, too, and receive zeros */
	uint16_t binding;	/* where it lies */
	uint64_t offset, bytes;	/* in the binding; bytes may be 0 */
	int64_t channel;	/* by which the framework names the transfer */
};

struct image_debug {
	uint64_t offset;	/* of an instruction in .text */
	uint32_t op;		/* string: "dot_general" or a fusion's ops */
	/* string: the framework's name and location, "NAME at FILE:LINE (OP)", of which any part
	 * may be missing */
	uint32_t where;
};

enum image_meeting_kind {
	IMAGE_WHOLE,	/* each member of a group gives what it has to all others of it */
	IMAGE_PARTS,	/* a part to each */
	IMAGE_PAIRS,	/* from one to another */
	IMAGE_MEETING_KINDS
};

/* A place in the code where members meet, others or none of a group of one left out. Where it
 * is in a loop or a branch it may be passed any number of times. */
struct image_meeting {
	uint8_t kind;		/* enum image_meeting_kind */
	uint8_t elem;		/* enum elem: of what is sent */
	uint16_t depth;		/* of loops and branches that it is in */
	uint32_t groups;	/* string: "{{0,1},{2,3}}", members; or pairs, from and to */
	uint64_t bytes;		/* of what a member has from all of its group */
	uint32_t where;		/* string: the framework's name and location */
	uint32_t zero;
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
	const uint8_t *functions;	/* see image_next_function */
	size_t functions_bytes;
	const uint32_t *peers;		/* [M][n_slots] */
	size_t n_slots;			/* peer bindings */
	const uint64_t *members;	/* [M][n_words] */
	size_t n_words;			/* 0: no member binding */
	const struct image_meeting *meetings;
	size_t n_meetings;
	const uint8_t *shardings;	/* see image_next_sharding */
	size_t shardings_bytes;
	const char *strings;
	size_t strings_bytes;
	const char *note;
	void *owned;		/* image_parse: what image_free frees */
};

/* Checks everything that can be checked without decoding instructions: counts,
 * kinds, order of bindings, string offsets, aliases in range and of equal size, transfers
 * within bindings of their direction, functions of calls that are there (not what they are
 * shown), members that are there and meet only if they have peers, one sharding for each argument
 * and result or none at all.
 * The bytes are copied. INVALID_ARGUMENT says which rule is broken. */
int image_parse(const void *bytes, size_t n, struct image **out, struct err *err);
/* The same, but code and constants stay in `bytes`, which must live as long. */
int image_view(const void *bytes, size_t n, struct image **out, struct err *err);
void image_free(struct image *image);
/* Builds the ELF file; *out is malloc'd, the caller's. */
int image_write(const struct image *image, void **out, size_t *out_bytes,
		struct err *err);
/* R * P. */
uint32_t image_n_members(const struct image *image);
/* The next sharding of an image that has them: those of the arguments come first, then the
 * results'. *at is where to look, 0 for the first; it is moved on. NULL: no more. */
const void *image_next_sharding(const struct image *image, size_t *at, uint32_t *bytes);
/* The next call by name: its number, and what the function is shown. *at is where to look, 0 for
 * the first; it is moved on. NULL: no more. */
const void *image_next_function(const struct image *image, size_t *at, uint32_t *call,
				uint32_t *bytes);
/* Whether it draws from the device's random state, which it binds. */
bool image_draws(const struct image *image);
/* Whether its members write to each other's data: it has bindings of such. */
bool image_is_for_one_process(const struct image *image);
/* A text of the string section; "" if out of range. */
const char *image_string(const struct image *image, uint32_t offset);
/* The first meeting that is not the same in both images, so that members of one can't meet those
 * of the other; n_meetings where all are, but peers or mailboxes are not, or the code where
 * there is peer data; -1: they can. An image
 * that has peers but does not say how they meet is like none. */
int64_t image_meets_otherwise(const struct image *a, const struct image *b);
/* A number of how its members meet: the same for all images that do alike. 0: it does not say. */
uint64_t image_meeting_number(const struct image *image);
/* "all to each", "parts to each" or "pairs". */
const char *image_meeting_kind_text(const struct image_meeting *m);
/* The debug row that covers `offset`, or NULL. */
const struct image_debug *image_where(const struct image *image, uint64_t offset);
/* Splits such a row's `where` into its name, of *name_bytes from the start on, and FILE:LINE, of
 * *source_bytes from *source on; 0 bytes: it has none. */
void image_split(const char *where, size_t *name_bytes, const char **source,
		 size_t *source_bytes);
/* How many of the arguments, or of the results, are sizes of others. */
uint32_t image_n_arg_sizes(const struct image *image);
uint32_t image_n_result_sizes(const struct image *image);
/* Bytes of a dense array of this shape. */
uint64_t image_shape_bytes(const struct image_shape *shape);

#endif
