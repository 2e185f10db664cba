/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_PROGRAM_H
#define SIM_PROGRAM_H
/*
 * Programs and the cores that run them: what hal/sim/device and sim.c ask of this room,
 * which knows neither devices nor queues. Private to hal/sim.
 *
 * Threads: programs are loaded on any thread, several at once. A loaded program does not
 * change but for the fields that are its owner's, so several cores may run it at once. A core
 * is used by one thread at a time; inside a run its families share their work with the
 * pool's threads. The only lock in the room is sim_watch.lock.
 *
 * Errors are statuses of hw/fault.def: below 16 for a program that is refused, from 16 on
 * for one that faults. A fault's record is in sim_run.fault.
 */
#include <pthread.h>

#include "hal/base/err.h"
#include "hal/sim/core/core.h"
#include "hal/sim/threads/pool.h"
#include "hal/sim/threads/turn.h"

#define SIM_MAX_CODE ((uint64_t)64 << 20)	/* bytes of one program's code */

/* What sim_core_run returns of a run that waits for a semaphore, or was told to let others go
 * first: no statuses of the device. */
#define SIM_PARKED (-1)
#define SIM_YIELDED (-2)

/*
 * Scalar instructions that need nothing but registers and addresses that were checked when the
 * program was loaded, by all that there is to decide about them, and a family's that end soon
 * (enum sim_brief): the core runs of these as many as follow each other in a loop of their own.
 */
enum sim_quick {
	SIM_NOT_QUICK,
	SIM_LI, SIM_JMP, SIM_BZ, SIM_BNZ,
	SIM_LD_S8, SIM_LD_S16, SIM_LD_S32, SIM_LD_U8, SIM_LD_U16, SIM_LD_U32, SIM_LD_64,
	SIM_ST_8, SIM_ST_16, SIM_ST_32, SIM_ST_64,
	SIM_MOVE_4, SIM_MOVE_8, SIM_MOVE,	/* a family's, of SIM_BRIEF_MOVE */
	SIM_BRIEFLY,		/* ... of SIM_BRIEF */
	SIM_ALU,		/* + enum isa_alu */
	SIM_ALUI = SIM_ALU + ISA_ALU_COUNT,	/* + enum isa_alu */
};

/* A checked instruction. */
struct sim_insn {
	const struct sim_family *family; /* NULL: scalar, executed by core.c itself */
	const void *plan;	/* the family's; of a scalar one with an address a struct
				 * sim_ref; in the arena */
	uint32_t offset;	/* in the code, for fault records */
	uint32_t target;	/* branches: index of the instruction */
	uint8_t quick;		/* enum sim_quick */
	bool forgets;		/* what is kept (kept.c), once it ran: it may have changed that */
	struct isa_scalar s;	/* the fields of a scalar one, copied out of the code */
};

/* A loaded program. Made by sim_program_load(), freed by sim_program_free(). */
struct sim_program {
	/* The owner's, under the owner's lock; the core looks at none of them. */
	unsigned refs;		/* 1 when loaded: the program table's, and one a run */
	uint16_t ctx;		/* the context that created it */
	uint64_t last_ns;	/* how long its last run took; 0 before the first */
	uint64_t last_insns;	/* and how many instructions it was, since it was parked last */

	/* What loading found; constant. */
	bool is_straight;	/* no backward branch, no call: it ends soon, or waits */
	bool waits;		/* it has an RWAIT */
	bool is_joint;		/* it has a binding in other chips' memory */
	uint64_t bytes;		/* of memory that it takes, plans included */
	void *code;		/* a copy, of code_bytes: plans may point into it */
	uint64_t code_bytes;
	struct arena arena;	/* owns insns, bindings and plans, */
	struct arena small;	/* but for some of small instructions, and terms of bodies */
	struct sim_insn *insns;	/* [n_insns], ascending by offset; behind them one of zeros */
	unsigned n_insns;
	struct hw_program_binding *bindings;	/* [n_bindings] */
	unsigned n_bindings;
	size_t scratch, shared;	/* working memory that a run needs: of a lane, once */
	struct sim_span *keeps;	/* [n_keeps] what it keeps something of (kept.c), */
	unsigned n_keeps;
	size_t kept;		/* and the bytes that takes; 0: it keeps nothing */
};

/*
 * What a model that checks knows of HBM (watch.c): a bit for each byte, set once something
 * wrote it. `lock` guards the bits; it is a leaf, and instructions are checked under it.
 * All functions may be called on a watch that was never started: they do nothing.
 */
struct sim_watch {
	pthread_mutex_t lock;
	uint8_t *hbm;		/* the device's, not owned */
	uint64_t hbm_bytes;
	uint64_t *written;	/* NULL: this model does not check */
};

#define SIM_MAX_CELLS 64u

/* A faulty cell. Bits are counted over all of HBM. */
struct sim_cell {
	uint8_t kind;		/* enum hw_cell */
	bool was_victim, was_by;	/* what the two held after the last store */
	uint64_t victim, by;	/* by: the victim itself where there is no second cell */
	uint64_t own, victim_word, by_word;	/* of AF: its own cell; the two words, as above */
	/* Of ROW: activations that it bears and has borne; the row of its bank that is open. */
	uint64_t most, borne, open;
};

/* The faulty cells of a device's HBM (cells.c). Under `lock`, a leaf, but for reading n. */
struct sim_cells {
	pthread_mutex_t lock;
	uint8_t *hbm;		/* the device's, not owned; constant, as its size */
	uint64_t bytes;
	_Atomic unsigned n;
	uint64_t by;		/* of the next one, as CELL_BY says; under the device's lock */
	atomic_bool has_rows;	/* one is of class ROW: loads count */
	struct sim_cell cells[SIM_MAX_CELLS];
};

/* An engine's core: its registers are in struct sim_run, here is its working memory. */
struct sim_core {
	const struct sim_cpu *cpu;	/* these three are shared and outlive the core */
	struct sim_pool *pool;
	struct sim_watch *watch;
	struct sim_turn *turn;	/* the engine's, who sets it and has it in a run; NULL: none */
	unsigned n_lanes;
	void **scratch;		/* [n_lanes], each of scratch_bytes; grows, never shrinks */
	size_t scratch_bytes, shared_bytes;
	void *shared;		/* shared_bytes, for all lanes */
	void *kept;		/* kept_bytes, for what the program keeps (kept.c) */
	size_t kept_bytes;
	uint8_t **base;		/* [ISA_MAX_BINDINGS] the run's bindings: host address */
	uint64_t *bytes;	/* [ISA_MAX_BINDINGS] and size */
	struct sim_window **window;	/* [ISA_MAX_BINDINGS] of those declared a peer's that are
				 * not empty; NULL: in this chip's memory. Others hold anything */
	/* The owner's, before programs that need them: what other chips' memory is reached by,
	 * and where semaphores may be that RWAIT waits for. */
	struct sim_cells *cells;	/* NULL: memory is good */
	const struct sim_links *links;
	void *link;
	const uint8_t *hbm;
	uint64_t hbm_bytes;
	struct sim_tracer *tracer;	/* before each run; NULL: nobody wants to know */
	uint64_t n_insns;	/* that the last run executed */
	uint64_t most_insns;	/* the owner's, before runs: after about so many, at a branch, they
				 * yield; UINT64_MAX: they do not */
	atomic_bool yield;	/* tells a run to let others have the core; without lock */
	_Atomic(const struct sim_ref *) cut;	/* of run->reached: the first seen to be broken */
	atomic_flag faulting;	/* taken by the first lane that faults: its record is kept */
};

/* ---- program.c ---- */

/*
 * Copies `code` and `bindings`, checks every static rule of ISA.md and plans each
 * instruction for this CPU. 0 and a program for the caller; or a status below 16, with the
 * offset of the instruction that was refused in *detail. Takes a while for long code; holds
 * no lock and does not block.
 */
int sim_program_load(const struct sim_cpu *cpu, const void *code, size_t bytes,
		     const struct hw_program_binding *bindings, unsigned n_bindings,
		     struct sim_program **out, uint64_t *detail);
/* No run uses it any more. NULL is fine. */
void sim_program_free(struct sim_program *p);

/* ---- operand.c ---- */

/* -1: no memory; sim_core_free() is due all the same. */
int sim_core_init(struct sim_core *core, const struct sim_cpu *cpu, struct sim_pool *pool,
		  struct sim_watch *watch);
/* Frees what the core owns. No run is in progress; a core of zeros is fine. */
void sim_core_free(struct sim_core *core);
/* Grows the lanes' scratch and the shared memory to what p needs; -1: no memory. That for what it
 * keeps grows if it can. */
int sim_core_reserve(struct sim_core *core, const struct sim_program *p);

/* ---- kept.c ---- */

/* p's instructions are all there: says which of them forget. Without memory p keeps nothing. */
void sim_settle_keeps(struct sim_load *load, struct sim_program *p);
/* A run begins or goes on, its bindings are there: nothing has been kept. Sets run->kept. */
void sim_begin_keeps(struct sim_run *run, const struct sim_program *p);

/* ---- core.c ---- */

/*
 * Runs p to its end on the calling thread and the pool's. The caller filled core->base,
 * bytes and window for p's bindings, of whose memory nothing may be unmapped meanwhile, and
 * zeroed run's counters and fault. 0, or the status that run->fault tells. A run in which *stop
 * becomes true ends at its next instruction or tile with HW_ST_RESET. Between instructions
 * it lets other engines have core->turn. SIM_PARKED: it waits for run->sem; SIM_YIELDED: it
 * saw core->yield, or executed core->most_insns; the core is free for other programs.
 */
int sim_core_run(struct sim_core *core, const struct sim_program *p,
		 atomic_bool *stop, struct sim_run *run);
/* Goes on with a run that was parked, and looks at its semaphore again, or that has yielded.
 * Its bindings are in the core as before; `run` may have moved, its counters may have been
 * zeroed. */
int sim_core_resume(struct sim_core *core, const struct sim_program *p,
		    atomic_bool *stop, struct sim_run *run);

/* ---- cells.c ---- */

/* The device stored `bytes` at p (NULL: it is not known where, or the host may have). For
 * sim_cells_wrote(). Takes the lock. */
void sim_cells_settle(struct sim_cells *c, const void *p, uint64_t bytes);
static inline void sim_cells_wrote(struct sim_cells *c, const void *p, uint64_t bytes)
{
	if (c && atomic_load_explicit(&c->n, memory_order_relaxed))
		sim_cells_settle(c, p, bytes);
}
/* The scalar unit loads or stores at p, which may open a row: before it does. Takes the lock. */
void sim_cells_activate(struct sim_cells *c, const void *p);
static inline void sim_cells_access(struct sim_cells *c, const void *p)
{
	if (c && atomic_load_explicit(&c->has_rows, memory_order_relaxed))
		sim_cells_activate(c, p);
}
/* INJECT of CELL and MEND: 0 or the status. */
int sim_cells_add(struct sim_cells *c, unsigned kind, uint64_t victim);
void sim_cells_mend(struct sim_cells *c);

/* ---- watch.c ---- */

/* Starts to check hbm_bytes of memory at hbm, which nothing has written yet.
 * RESOURCE_EXHAUSTED: no address space for the bits. */
int sim_watch_start(struct sim_watch *w, uint8_t *hbm, uint64_t hbm_bytes, struct err *err);
void sim_watch_end(struct sim_watch *w);
/* Before an instruction of a checked program runs: 0, or the status of a fault that it
 * recorded. What the instruction will write counts as written. Only if w->written. */
int sim_watch_insn(struct sim_run *run, const struct sim_program *p, const struct isa_insn *insn);
/* Before a program runs: its scratch bindings hold nothing. */
void sim_watch_begin(struct sim_run *run, const struct sim_program *p);
/* `bytes` from offset on in HBM are allocated anew: nothing has written them. */
void sim_watch_discard(struct sim_watch *w, uint64_t offset, uint64_t bytes);
/* Something other than an instruction wrote `bytes` at p. Memory other than HBM counts as
 * written always. */
void sim_watch_write(struct sim_watch *w, const uint8_t *p, uint64_t bytes);
/* ... or copied them from `from`: whatever was not written there is not written at p. */
void sim_watch_copy(struct sim_watch *w, const uint8_t *p, const uint8_t *from,
		    uint64_t bytes);

#endif
