/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_CORE_H
#define SIM_CORE_H
/*
 * Between the core (fetch, check, dispatch: program.c, core.c) and the families of
 * instructions (exec_*.c). Private to hal/sim.
 *
 * A family has three functions. prepare() runs once, at PROGRAM_CREATE: it checks
 * every static rule of the instruction, resolves operands to struct sim_ref, picks
 * code paths and returns a plan. run() trusts the plan: it asks sim_at() for each
 * operand's memory, which checks what only the running program knows, then works.
 * Plans are immutable: several devices' cores may run one plan at once.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "hal/base/arena.h"
#include "hal/hw/desc.h"
#include "hal/hw/isa.h"
#include "hal/sim/kernels/cpu.h"

/* A checked operand. */
struct sim_ref {
	uint16_t binding;
	uint8_t reg;		/* 0: the address is static and was checked */
	uint8_t elem;
	bool write, is_peer;	/* is_peer: it may lie in another chip's memory */
	uint8_t operand;	/* its place in the instruction, for fault records */
	int64_t offset;
	int64_t lo, hi;		/* bytes touched, relative to offset (+ reg): [lo, hi) */
	int64_t stride[ISA_MAX_RANK];
};

/* Bytes of a binding. */
struct sim_span { uint16_t binding; int64_t lo, hi; };
/* An instruction, by index, and what it may write. */
struct sim_write { uint32_t insn; struct sim_span to; };

#define SIM_MAX_KEPT 64u	/* instructions of a program that keep something (kept.c) */

/* One program being loaded. */
struct sim_load {
	struct arena *arena;	/* plans live here, freed with the program */
	struct arena *small;	/* and here those of small instructions, side by side, and all
				 * that their calls point to */
	const struct sim_cpu *cpu;
	const struct hw_program_binding *bindings;
	unsigned n_bindings;
	size_t scratch;		/* bytes wanted for each lane: the most of all */
	size_t shared;		/* bytes wanted once for the run: the most of all */
	struct sim_span keeps[SIM_MAX_KEPT];	/* what is kept of */
	unsigned n_keeps;
	size_t kept;		/* bytes of it, the flags before it included; or 0 */
	struct sim_write *writes;	/* [n_writes], malloc'd */
	size_t n_writes, room_writes;
	uint32_t insn;		/* by index, and */
	uint64_t offset;	/* its offset, for messages */
	uint8_t brief;		/* enum sim_brief of it; its family's prepare() says so */
	char why[160];		/* why it was refused (log, debugging) */
};

/*
 * What an instruction of a family is for the scalar unit's loop, which runs those that end soon:
 * what goes on around others would take longer than they do.
 */
enum sim_brief {
	SIM_NOT_BRIEF,
	SIM_BRIEF,		/* it takes SIM_BRIEF_NS at most, and works on this chip's memory */
	SIM_BRIEF_MOVE,		/* and its plan begins with a struct sim_move, which says it all */
};
#define SIM_BRIEF_NS 1000

/* `bytes` from one place to another, which may overlap. */
struct sim_move {
	struct sim_ref src, dst;
	uint32_t bytes;
};

/*
 * Memory that another chip lends, and what the chip's links do with it for RPUT, RSIG and VEC. The
 * room above implements it (device/link.c); `link` is what it gave the core. Without locks of
 * this room; they block as long as a link's mutex is held, which is briefly.
 */
struct sim_window;
struct sim_watch;
struct sim_links {
	/* A read of the window or a write into it begins; false: nobody reaches it. Until end()
	 * its memory is not anybody else's. */
	bool (*begin)(void *link, struct sim_window *w);
	/* `bytes` were read or written. */
	void (*end)(void *link, struct sim_window *w, uint64_t bytes, bool is_read);
	/* Whether the window's chip has lost some of these bytes. */
	bool (*is_poisoned)(struct sim_window *w, const uint8_t *p, uint64_t bytes);
	/* *sem = fn(*sem, value), and whoever waits for it looks. False: as begin. */
	bool (*raise)(void *link, struct sim_window *w, uint64_t *sem, unsigned fn,
		      uint64_t value);
	/* A semaphore that others raise was found to be there. */
	void (*hear)(void *link);
	/* A window that the run has bound and can't reach any more; NULL: there is none. */
	struct sim_window *(*broken)(void *link);
	/* Whether that goes for the window. */
	bool (*is_broken)(void *link, const struct sim_window *w);
	/* Of such a one: the chip that failed first, and the status with which. */
	void (*why)(void *link, const struct sim_window *w, uint64_t *chip, uint64_t *status);
	/* What a model that checks knows of the window's memory. */
	struct sim_watch *(*watch)(struct sim_window *w);
};

/*
 * Who records what a run does (DEVICE.md#traces). The room above owns it (device/trace.c); the
 * core fills records while it runs, without a lock, and has them taken when there is no room.
 */
#define SIM_TRACED 64u
struct sim_tracer {
	void (*take)(struct sim_tracer *t);	/* all n records; takes locks of its own */
	void *owner;		/* for take() */
	int64_t epoch;		/* clock_ns() at which the device's clock was 0 */
	int64_t last;		/* when the group before ended, and the run's counts then */
	uint64_t n_insns, ops, bytes;
	struct hw_trace_record like;	/* what records of this run have in common */
	unsigned n;
	struct hw_trace_record records[SIM_TRACED];
};

/* One program running. */
struct sim_run {
	const struct sim_cpu *cpu;
	struct sim_core *core;	/* its engine: pool, scratch, device */
	uint8_t **base;		/* [n_bindings] host address */
	const uint64_t *bytes;	/* [n_bindings] */
	uint64_t all_bytes;	/* of all bindings */
	int64_t reg[ISA_N_REG];
	void *shared;		/* sim_load.shared bytes, aligned to 64 */
	uint8_t *kept;		/* a flag for each that keeps, SIM_MAX_KEPT of them, and then
				 * what is kept; NULL: nothing is */
	atomic_bool *stop;	/* set: end soon (reset, watchdog); poll per tile */
	unsigned n_reached;	/* the instruction's operands in windows: it ends soon, too, once */
	const struct sim_ref *reached[ISA_MAX_IN];	/* one of these is broken */
	struct hw_fault fault;	/* status != 0: what went wrong */
	unsigned pc, depth;	/* where it goes on, by index, and how many calls deep */
	const uint64_t *sem;	/* parked: it goes on once *sem >= until. In HBM */
	uint64_t until;
	uint32_t stack[ISA_CALL_DEPTH];	/* of indices, as pc */
	uint64_t matrix_ops;	/* telemetry: multiply-adds, */
	uint64_t vector_ops, read_bytes, write_bytes;
};

struct sim_family {
	/* *plan on success. Otherwise a status below 16 (BAD_PROGRAM, NOT_BUILT,
	 * NO_ROOM) with load->why filled by sim_refuse(). insn is whole: insn->bytes
	 * readable bytes, at least the head of its layout. */
	int (*prepare)(struct sim_load *load, const struct isa_insn *insn,
		       const void **plan);
	/* 0, or a fault status that sim_fault() or sim_at() has recorded. */
	int (*run)(struct sim_run *run, const void *plan);
};

extern const struct sim_family sim_family_tensor;	/* exec_vec.c: VEC REDUCE */
extern const struct sim_family sim_family_copy;		/* exec_copy.c */
extern const struct sim_family sim_family_gather;	/* exec_index.c */
extern const struct sim_family sim_family_scatter;	/* exec_scatter.c */
extern const struct sim_family sim_family_sort;		/* exec_sort.c */
extern const struct sim_family sim_family_rng;		/* exec_rng.c */
extern const struct sim_family sim_family_fft;		/* exec_fft.c */
extern const struct sim_family sim_family_mm;		/* exec_product.c */
extern const struct sim_family sim_family_conv;		/* exec_conv.c */

/* ---- for prepare() (operand.c) ---- */

/* Notes why and returns `status`. */
int sim_refuse(struct sim_load *load, int status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/*
 * Checks operand `op` (number `operand` of its instruction) over `rank` dims: its
 * type, binding, access rights, register, alignment of offset and strides to
 * the element (`elem_bytes` for COPY, else 0), absence of overflow, and for reg
 * == 0 that every address lies in the binding. extra[] are n_extra more ranges
 * (count, byte stride) that addresses run over besides the dims (k of MM, index
 * components). Fills *ref. 0 or BAD_PROGRAM.
 */
struct sim_range { int64_t count, stride; };
/* As sim_ref of what RPUT and RSIG write: the binding must be a peer's, which sim_ref
 * refuses. */
int sim_peer_ref(struct sim_load *load, const struct isa_operand *op, unsigned operand,
		 unsigned elem_bytes, unsigned rank, const int64_t *dim, struct sim_ref *ref);
/* As sim_ref of an input that may be read from a peer. */
int sim_input_ref(struct sim_load *load, const struct isa_operand *op, unsigned operand,
		  unsigned rank, const int64_t *dim, struct sim_ref *ref);
int sim_ref(struct sim_load *load, const struct isa_operand *op, unsigned operand,
	    bool write, unsigned elem_bytes, unsigned rank, const int64_t *dim,
	    const struct sim_range *extra, unsigned n_extra, struct sim_ref *ref);
/* Whether an iteration space is one that families can count in 64 bits: no dim below 0, at
 * most 2^56 points. */
bool sim_is_countable(unsigned rank, const int64_t *dim);
/* Ensures that each lane's scratch (shared memory) has at least `bytes`. */
void sim_need_scratch(struct sim_load *load, size_t bytes);
void sim_need_shared(struct sim_load *load, size_t bytes);

/* ---- what is kept from one turn of a loop to the next (kept.c) ---- */

/* For prepare(): whether the instruction may keep `bytes` that it makes of `ref`, at run->kept +
 * *at; and by which flag, counted from 1. 0: it may not. */
unsigned sim_keep(struct sim_load *load, const struct sim_ref *ref, size_t bytes, size_t *at);
/* An operand is written. 0, or -1: no memory. */
int sim_note_write(struct sim_load *load, const struct sim_ref *ref);

/* For run(): the flag of that number, or NULL: nothing is kept now. */
uint8_t *sim_kept_flag(struct sim_run *run, unsigned n);
/* What a flag says of what is kept: the instruction runs for the first time, ran once, and has made
 * it. It is made the second time, so that what runs once does nothing for it. */
enum { SIM_KEPT_NEW, SIM_KEPT_SEEN, SIM_KEPT_READY };
static inline void sim_forget_keeps(struct sim_run *run)
{
	memset(run->kept, SIM_KEPT_NEW, SIM_MAX_KEPT);
}

/* ---- for run() (operand.c) ---- */

/* The host address of the operand's first element (all its strides at 0), or NULL
 * after recording a BOUNDS or ALIGNMENT fault. For COPY and VEC alike. */
static inline uint8_t *sim_at(struct sim_run *run, const struct sim_ref *ref);
uint8_t *sim_at_dynamic(struct sim_run *run, const struct sim_ref *ref);
/* The same, but that nothing is recorded. */
static inline uint8_t *sim_at_quietly(const struct sim_run *run, const struct sim_ref *ref);
/* Around what is read from or written to a peer's operand: `bytes`. False: a fault was recorded.
 * In between sim_stopped() is true from when the window breaks, so that who takes it back
 * waits for no more than a tile. */
bool sim_reach_begin(struct sim_run *run, const struct sim_ref *ref);
bool sim_reach_end(struct sim_run *run, const struct sim_ref *ref, uint64_t bytes);
/* Whether an operand that is reached was found in a broken window; stays so to its end. */
bool sim_is_cut(const struct sim_run *run);
/* Records that w is broken; returns the status. */
int sim_peer_fault(struct sim_run *run, const struct sim_ref *ref, const struct sim_window *w);
/* Records a fault (the core adds pc, program and queue) and returns `status`. */
int sim_fault(struct sim_run *run, int status, const struct sim_ref *ref,
	      uint64_t va, uint64_t bytes);

/*
 * Runs fn over [0, n) in parts, on as many lanes as is worth while: `ns` is the
 * estimated time of the whole on one lane; below SIM_PARALLEL_NS it stays on the caller.
 * Parts are multiples of `grain` (but for the last). lane tells which scratch is
 * fn's own. Returns after all parts. fn polls run->stop in long loops.
 */
#define SIM_PARALLEL_NS 20000
void sim_parallel(struct sim_run *run, uint64_t n, uint64_t grain, uint64_t ns,
		  void (*fn)(void *arg, uint64_t begin, uint64_t end, unsigned lane),
		  void *arg);
/* Lane `lane`'s scratch: sim_load.scratch bytes, aligned to 64, contents undefined. */
void *sim_scratch(struct sim_run *run, unsigned lane);
static inline bool sim_stopped(const struct sim_run *run)
{
	return atomic_load_explicit(run->stop, memory_order_relaxed) ||
	       (run->n_reached && sim_is_cut(run));
}

/* Of an operand with elements and a register: the offset of the first one, and whether all lie in
 * the binding. */
static inline bool sim_is_inside(const struct sim_run *run, const struct sim_ref *ref, int64_t *at)
{
	int64_t lo, hi;

	return !__builtin_add_overflow(ref->offset, run->reg[ref->reg], at) &&
	       !__builtin_add_overflow(*at, ref->lo, &lo) &&
	       !__builtin_add_overflow(*at, ref->hi, &hi) && lo >= 0 &&
	       (uint64_t)hi <= run->bytes[ref->binding];
}

static inline bool sim_is_aligned(const struct sim_ref *ref, int64_t at)
{
	unsigned size = elem_bytes(ref->elem);

	return !(at & (int64_t)((size > 8 ? 8 : size) - 1));
}

static inline uint8_t *sim_at_quietly(const struct sim_run *run, const struct sim_ref *ref)
{
	int64_t at = ref->offset;

	if (ref->reg && ref->lo == ref->hi)
		at = 0;
	else if (ref->reg && (!sim_is_inside(run, ref, &at) || !sim_is_aligned(ref, at)))
		return NULL;
	return run->base[ref->binding] + at;
}

static inline uint8_t *sim_at(struct sim_run *run, const struct sim_ref *ref)
{
	if (ref->reg)
		return sim_at_dynamic(run, ref);
	return run->base[ref->binding] + ref->offset;
}

/* The number that an index of GATHER or SCATTER stands for. Here, because it is asked for
 * each index. */
static inline int64_t sim_index_at(const uint8_t *p, unsigned elem)
{
	unsigned bits = elem_bytes(elem) * 8;
	int64_t v = 0;
	int32_t narrow;

	if (elem == ELEM_S32) {
		memcpy(&narrow, p, sizeof(narrow));
		return narrow;
	}
	memcpy(&v, p, elem_bytes(elem));
	if (elem_class(elem) == ELEM_CLASS_SINT && bits < 64)
		return (int64_t)((uint64_t)v << (64 - bits)) >> (64 - bits);
	/* An unsigned index past the signed range is too large. */
	return v < 0 && elem == ELEM_U64 ? INT64_MAX : v;
}

/* Where a start is, whatever its limit. */
static inline int64_t sim_start_at(const uint8_t *p, unsigned elem, int64_t wrap)
{
	int64_t v = sim_index_at(p, elem);

	return v < 0 ? v + wrap : v;
}

/* ---- bodies, shared by VEC, REDUCE, SCATTER, SORT, MM, CONV (body.c) ---- */

/*
 * A body made ready to run on tiles. A tile is `rows` x `cols` points; values are
 * dense arrays, full ones [rows][cols], row values [rows], in the type of the value.
 * Storage types are held as stored.
 */
struct sim_body;

/* Where a tile's values start: filled by the family for each tile. */
struct sim_tile {
	unsigned rank;		/* of the iteration space */
	unsigned rows, cols;	/* rows * cols <= the points of prepare */
	const void *pre[2 * ISA_MAX_SORT + ISA_MAX_OUT]; /* values the family gives, dense */
	const void *in[ISA_MAX_IN];	/* inputs, dense */
	uint32_t in_spread;	/* bit j: in[j] is one element for the whole tile */
	uint32_t in_row;	/* bit j: in[j] holds one element a row */
	int64_t index[ISA_MAX_RANK];	/* coordinates of the tile's first point (IOTA) */
	unsigned col_dims;	/* how many trailing dims cols runs over; the rows run
				 * over the dim before. The tile is a box of dims */
	int64_t col_dim[ISA_MAX_RANK];	/* their sizes within the tile: col_dim[0]
				 * is that of dim rank - col_dims */
	bool goes_on;	/* full, and scratch is as a full tile of the same run left it */
};

/*
 * Checks the uops after `insn`'s operands and plans them: value types, buffers
 * (values whose lives do not meet share one), code paths. pre_elem[n_pre] are the
 * types of the values that the family gives. points: the most points of a tile.
 * A family whose inputs are no values of the body (SORT) passes n_in = 0 in a copy
 * of the body; outputs name the values that must outlive the run (SORT passes one
 * out operand that names `first`). 0 or BAD_PROGRAM. Adds nothing to
 * load->scratch: sim_body_scratch() says what
 * the family must set aside in each lane.
 */
int sim_body_prepare(struct sim_load *load, const struct isa_body *body,
		     const struct isa_operand *in, const struct isa_operand *out,
		     const struct isa_uop *uops, const uint8_t *pre_elem,
		     unsigned n_pre, unsigned points, const struct sim_body **out_body);
size_t sim_body_scratch(const struct sim_body *b);
/* A number of points that keeps this body's buffers within L1, or not much past it. For
 * choosing `points` before prepare. */
unsigned sim_body_points(const struct sim_cpu *cpu, const struct isa_body *body);
/* Runs all uops on one tile. scratch: sim_body_scratch() bytes of this lane.
 * Afterwards sim_body_value() gives the dense array of a value that an output names
 * (spread: one element for the tile; row: one a row). */
void sim_body_run(const struct sim_body *b, const struct sim_run *run,
		  const struct sim_tile *tile, void *scratch);
const void *sim_body_value(const struct sim_body *b, unsigned value,
			   const struct sim_tile *tile, void *scratch,
			   bool *is_spread, bool *is_row);

/* Makes input j of the tile ready: `first` is the operand's address at all-zero
 * coordinates. Where memory is dense already the tile points straight at it;
 * else elements are gathered into `room` (elem_bytes * rows * cols bytes). */
void sim_tile_in(const struct sim_ref *ref, const uint8_t *first,
		 struct sim_tile *tile, unsigned j, void *room);
/* Moves input j into `room` if it is still in memory, where an output may be stored over
 * it before another output stores it. */
void sim_tile_keep(struct sim_tile *tile, unsigned j, unsigned bytes, void *room);
/* Stores a value over the tile's box. `combine` as in the operand; the caller sees
 * to it that no other lane stores to the same place when it is not ISA_STORE. */
void sim_tile_out(const struct sim_ref *ref, uint8_t *first,
		  const struct sim_tile *tile, const void *value, bool is_spread,
		  bool is_row, unsigned combine);

#endif
