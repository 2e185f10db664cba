/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_SIM_INTERNAL_H
#define SIM_SIM_INTERNAL_H
/*
 * The structures of a model's devices, and what the files of hal/sim/device offer each
 * other and sim.c. Private to hal/sim; who may call from outside finds sim.h.
 *
 * Locks. A device has one mutex, `lock`, over its registers, tables, rings and semaphores.
 * It is never held while a program or a copy runs, so it is held briefly. What a run uses is
 * protected without it: a program by its reference count, host mappings by the run's number,
 * addresses of the context by a list in the engine. `admin_lock` makes admin requests and
 * resets run one at a time; it is taken before `lock` and may be held for long, since both
 * wait for runs to end. Where a comment says "under lock", the caller holds `lock`; what a
 * function waits for by `idle` or `timer` releases it meanwhile. The fabric's lock, one for
 * all devices of a model, is over what they share: windows and links. It is a leaf.
 *
 * Threads. A crew of them runs descriptors, on whichever engine has some; whoever rings a
 * doorbell may run small ones itself (HW_INLINE). The watchdog thread stops runs that pass
 * their deadline. Register accesses, resets and DMA mappings come on any thread of the host's.
 *
 * Errors. What the host asks for by a function gets a struct err; what it asks for by a
 * register or a descriptor gets a status of hw/fault.def, or is counted in bad_access.
 * Nothing that a driver writes ends the process.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "hal/base/clock.h"
#include "hal/hw/regs.h"
#include "hal/sim/core/program.h"
#include "hal/sim/sim.h"

#define SIM_MAX_PROGRAMS 65536u
#define SIM_MAX_MAPS 65536u	/* of a context, and of the IOMMU */
#define SIM_FAULTS 64u		/* records kept; older ones are overwritten */
#define SIM_CONTRACT 0x00010005u	/* the version of DEVICE.md that this is: 1.5 */
#define SIM_MAX_PEERS 64u	/* windows that a run may have bound */
#define SIM_INLINE_NS 60000	/* HW_FEATURE_INLINE_NS after a reset */

/* Host memory that the IOMMU lets the device reach. Owned by sim_device.dma; the memory
 * is the host's and stays until sim_dma_unmap() returns. */
struct sim_dma {
	uint64_t iova, bytes;
	uint8_t *host;
	bool writable;
	bool dying;		/* being unmapped: nothing resolves to it any more */
	bool is_taken;		/* somebody waits to free it */
	uint64_t used_by[2];	/* number of the last run of each engine to use it */
};

/* One mapping of a context: [va, va + bytes) is at pa, in HBM, as an iova, or in a window. */
struct sim_map {
	uint64_t va, pa, bytes;
	uint32_t flags;		/* HW_MAP_* */
	struct sim_window *window;	/* holds a reference; NULL: not another chip's */
};

/*
 * Memory of a context that linked chips may write to. Open until it breaks, which is for good.
 * Constant but for what is under the fabric's lock.
 */
struct sim_window {
	struct sim_window *next;	/* of dev->windows, under the fabric's lock */
	struct sim_device *dev;	/* whose memory it is */
	uint64_t key;
	unsigned ctx;
	uint64_t va, bytes;	/* in the context */
	uint8_t *memory;	/* in dev->hbm */
	unsigned refs;		/* the owner's while it is open, and one a mapping; under the
				 * fabric's lock, as users */
	unsigned users;		/* reads and writes under way */
	_Atomic uint32_t broken;	/* sim_break_why(); 0: open. Written under that lock */
};

/* A link to a neighbour; the counts are under the fabric's lock, as hw_link has them. */
struct sim_port {
	uint16_t peer;
	uint8_t dim;
	bool is_down;
	atomic_bool is_dead;	/* injected, at both ends; written under the fabric's lock */
	uint64_t tx_bytes, rx_bytes, n_packets, n_errors;
};

/* What links the devices of a model. Constant but for what the lock is over. */
struct sim_fabric {
	pthread_mutex_t lock;
	pthread_cond_t quiet;	/* the last write into a broken window has ended */
	uint64_t id;		/* 0: there is one chip, and no links */
	atomic_uint n_dead;	/* links, of all chips */
	uint16_t shape[3];
};

/* A range of a context's addresses that a run uses: UNMAP refuses it as busy. */
struct sim_use { uint64_t va, bytes; };

/* How far a copy or a fill has come; all zeros: it begins. */
struct sim_progress {
	uint64_t row, at;	/* COPY_2D: rows that are done; bytes of what is next */
	bool was_read;		/* COPY_2D: `rows` is what it says */
	bool is_checked;	/* COPY_2D: row counts what was copied, not what was checked */
	struct hw_copy_2d rows;
};

/*
 * A run that was taken off its engine: it waits at an RWAIT, or for its next turn. As long as
 * no other run begins there and no memory is unmapped, the engine has a program's bindings
 * still; else they are bound anew. Under lock, but for `run` while it runs.
 */
struct sim_parked {
	struct sim_run run;	/* of a program */
	struct sim_program *program;	/* holds a reference; NULL: it is no EXECUTE */
	struct sim_progress progress;	/* of what is none */
	bool is_ready;		/* it has yielded: it waits for its turn alone */
	struct sim_use *uses;	/* [n_uses], of `room` */
	unsigned n_uses, room;
	struct sim_window *peers[SIM_MAX_PEERS];	/* as sim_engine.peers */
	unsigned n_peers;
	uint64_t number;	/* sim_engine.run of its last turn */
	uint64_t n_unmaps;	/* sim_device.n_unmaps at its end */
	int64_t began, deadline;	/* of the descriptor; of one that is_ready, how long it may
					 * run yet. CLOCK_FOREVER: there is none */
	uint64_t ns;		/* that it has run */
	uint64_t trace;		/* sim_engine.trace */
	int64_t since;		/* clock_ns() when it was parked; only with a trace */
	int stop_status;	/* it is to end so; 0: it is not */
};

/* What a context's work is recorded in. */
struct sim_trace {
	uint64_t id;		/* another one for each trace of the device; 0: there is none */
	struct hw_trace in;	/* as TRACE_START gave it, checked */
	uint64_t next;		/* number of the next record */
	int64_t began;		/* clock_ns() */
};

/* An address space. Queues and programs name it by its index; 0 is nobody's. */
struct sim_ctx {
	bool used;
	struct sim_map *maps;	/* [n_maps], ascending by va, apart from each other */
	unsigned n_maps, room;
	unsigned n_peers;	/* of the maps, those into windows */
	/* Of each engine: */
	uint8_t next_queue[2];	/* to look at first, turns among equals */
	uint64_t used_ns[2];	/* time that it had of it; brought up to date by queue.c */
	struct sim_trace trace;
};

enum sim_queue_state { SIM_QUEUE_NONE, SIM_QUEUE_READY, SIM_QUEUE_FAULTED };

/*
 * A work queue. Descriptors between head and tail are submitted; the one at head is read
 * into sqe once, since the host can overwrite its ring at any time, and is judged there.
 */
struct sim_queue {
	enum sim_queue_state state;
	struct hw_queue info;	/* as QUEUE_CREATE gave it, checked */
	uint32_t tail, head;	/* free-running, as the indices of both rings are */
	uint32_t cq_tail;
	struct hw_sqe sqe;	/* the descriptor at head */
	bool has_sqe;
	bool is_lost;		/* sqe is empty: the ring could not be read */
	bool is_clearing;	/* begins nothing more */
	bool is_silent;		/* completes nothing more: the function is reset */
	struct sim_engine *running; /* the engine that executes sqe; NULL: none */
	bool is_parked;		/* sqe waits in *parked */
	struct sim_parked *parked; /* NULL: none of its runs was ever parked */
	/* What its head waits for, while it is in its engine's `waiting`. */
	_Atomic(const uint64_t *) sem;
	_Atomic uint64_t until;
	int64_t waits_since;	/* clock_ns() when its head was first seen to wait, of a context
				 * that is traced; 0: it was not */
};

/*
 * An engine executes one descriptor at a time, on its own thread or on that of whoever rang
 * the doorbell. Members are under dev->lock but for the atomic ones.
 */
struct sim_engine {
	struct sim_device *dev;
	uint8_t cls;		/* enum hw_class */

	/* How a thread is had to serve it (sim_kick): without lock. */
	atomic_uint kick;	/* changes whenever there may be work */
	atomic_bool is_idle;	/* nobody serves it, until it is kicked */
	bool is_served;		/* a thread of the crew does; under lock */
	unsigned seen;		/* kick when a thread last looked */
	bool was_missed;	/* one looked while the engine was busy */
	bool is_lent;		/* whoever rang a doorbell runs it, who looks at made_ready */
	uint64_t made_ready[2];	/* engines that its run did, as sim_crew.ready; the run's alone */

	/* Its queues, a bit each. */
	uint64_t of_priority[4]; /* those of each priority, 3 first */
	uint64_t active;	/* those whose doorbell rang and that may have work */
	_Atomic uint64_t waiting; /* whose head waits for a semaphore; written under lock */
	unsigned last_ctx;	/* whose the last run was */
	uint64_t least_ns;	/* used_ns of who had used least and wanted it; never falls */
	atomic_bool is_shared;	/* its queues are of several contexts; written under lock */

	/* The run. */
	struct sim_queue *queue; /* whose descriptor it is; NULL: the engine is idle */
	uint64_t run;		/* its number, for sim_dma.used_by */
	int64_t began, deadline; /* clock_ns(); deadline CLOCK_FOREVER: none */
	int64_t look_at;	/* when it is seen whether others want a turn; CLOCK_FOREVER: not */
	uint64_t ran_before;	/* ns, in its earlier turns */
	struct sim_progress progress;
	atomic_bool stop;	/* tells it to end; read without lock */
	bool hangs;		/* injected: the next run does nothing until it is told */
	int stop_status;	/* why: HW_ST_RESET, WATCHDOG, MAP, DEVICE_FATAL */
	struct sim_turn turn;	/* on the card's engine, of which this is a part */
	struct sim_use *uses;	/* [ISA_MAX_BINDINGS], n_uses of them for this run: of an
				 * EXECUTE one a binding, empty ones too */
	unsigned n_uses;
	bool is_joint;		/* other chips rely on it: its failure breaks the windows */
	struct sim_window *peers[SIM_MAX_PEERS];	/* that it has bound, each once */
	unsigned n_peers;
	uint64_t moved;		/* bytes that its copy or fill writes */
	uint64_t trace;		/* sim_trace.id of the trace that the run is in; 0: none */
	struct sim_tracer tracer;	/* as core, but for what is between runs */
	struct sim_core core;	/* the run's alone, used without lock */
};

/* An MSI-X vector. */
struct sim_vector {
	int fd;			/* the host's eventfd, not owned; -1: none */
	bool masked, pending;
	uint32_t table[3];	/* address and data, kept for the driver */
};

/* Exponential averages of utilisation, 0 to 1 (log_page.c). */
struct sim_load_average {
	int64_t time;		/* clock_ns() of the last update */
	uint64_t busy[2];	/* of compute and DMA until then, in ns */
	double fast[2], slow[2]; /* averaged over about 1 s and 8 s */
};

/* One device. Under `lock` but for what says otherwise. */
struct sim_device {
	/* Constant while it lives. */
	struct sim *sim;
	unsigned index;		/* of its card, among the model's; the serial number */
	int hbm_fd;		/* memfd behind HBM, owned, or -1; under admin_lock (renewal) */
	uint8_t *hbm;		/* mapped, shared with the host's views */
	uint64_t hbm_bytes;
	int64_t power_on;	/* clock_ns(); the device's clock counts from here */

	pthread_mutex_t admin_lock, lock;
	pthread_cond_t idle;	/* a run ended */
	pthread_cond_t timer;	/* a deadline came before watch_until */
	int64_t watch_until;	/* when the watchdog looks next */
	pthread_t watchdog;
	bool has_watchdog;
	bool quit;		/* all threads of the device end */

	/* Registers, by the names of regs.def; queue 0's rings. */
	uint32_t ctrl, fatal, bad_access;
	_Atomic uint32_t status;	/* also read by linked chips, without the lock */
	uint64_t asq, acq, scratch;
	uint32_t aqsize, avector;
	uint32_t admin_tail, admin_head, admin_cq_tail;
	struct sim_vector vectors[HW_MAX_VECTORS];
	void (*add)(int fd);	/* sim_irq_by(): constant */
	uint64_t drop_irqs;	/* injected: so many interrupts more are lost */
	uint64_t bus_errors;	/* injected: so many copies more fail */
	struct sim_lies {	/* injected into queue 0's next completions */
		bool has_value, has_status;
		uint16_t status;
		uint64_t value, wrong_tags, no_answers;
	} lies;

	/* What descriptors name. */
	struct sim_dma **dma;	/* [room_dma], ascending by iova */
	bool is_apart;		/* set before any work, constant then */
	struct sim_far *_Atomic far;	/* NULL: all that is stored is there at once */
	unsigned n_dma, room_dma;
	struct sim_ctx contexts[HW_MAX_CONTEXTS];
	struct sim_program **programs;	/* [room_programs]; id is the index */
	unsigned room_programs, program_hint;	/* no id below the hint is free */
	uint64_t program_bytes;	/* of all of them */

	/* Doorbells, without lock: what they were last written with; those that nobody
	 * has looked at since; whose queues are the DMA engine's. */
	_Atomic uint32_t bell[HW_MAX_QUEUES];
	_Alignas(64) _Atomic uint64_t rung;
	_Atomic uint64_t of_dma;
	uint64_t n_traces;	/* started ever */
	unsigned n_parked;	/* queues whose run is parked, or has yielded */
	uint64_t n_unmaps;	/* times that the IOMMU took memory away */
	_Alignas(64) struct sim_queue queues[HW_MAX_QUEUES];
	struct sim_engine engines[2];	/* compute, DMA */

	/* What log pages tell. */
	struct hw_fault faults[SIM_FAULTS];	/* record n at (n - 1) % SIM_FAULTS */
	uint64_t n_faults;
	struct hw_telemetry total;
	struct sim_load_average average;
	uint32_t air_mc;
	bool is_throttled;
	struct hw_ras ras;
	uint64_t default_limit_ns, max_limit_ns, inline_ns;	/* features */
	struct sim_poison { pthread_mutex_t lock; uint64_t *pages; atomic_uint n; } poison;

	uint16_t coords[3];	/* in the fabric's torus: constant, as the next but for counts */
	unsigned n_ports;
	struct sim_port ports[HW_MAX_LINKS];
	struct sim_window *windows;	/* that it lends or lent, under the fabric's lock */

	struct sim_watch watch;	/* has a lock of its own, taken last */
	struct sim_cells cells;	/* so have these */
};

/* The threads that run engines (crew.c). */
struct sim_crew {
	_Atomic uint64_t ready[2];	/* engines that were kicked, compute and DMA: a bit each */
	atomic_uint n_kicks;		/* changes when one becomes ready */
	atomic_uint n_looking;		/* threads that look for one, or are woken to */
	unsigned most;			/* of these, at a time */
	atomic_uint next;		/* the device whose turn it is to be looked at first */
	atomic_uint n_woken;		/* futex: of these, who may get up */
	atomic_bool quit;
	pthread_t *threads;
	unsigned n_threads;
};

/* The model: devices that share a crew and a pool of worker threads. */
struct sim {
	unsigned n_cards, n_functions;	/* functions of each card */
	unsigned n_devices;	/* made so far: functions, of one card after the other */
	struct sim_device *devices;
	struct sim_turns *turns;	/* [2] of each card: compute, DMA; NULL: one function */
	struct sim_cpu cpu;
	bool spins;		/* more than one CPU: waiting threads may spin */
	struct sim_pool *pool;
	struct sim_crew crew;
	struct sim_fabric fabric;
};

static inline bool sim_is_alive(const struct sim_device *dev)
{
	return dev->status & HW_STATUS_READY && !dev->fatal;
}

/* ---- map.c: addresses; all under lock but sim_dma_free() ---- */

/*
 * The host address of [iova, iova + bytes), or NULL if any of it can't be reached. Valid
 * until the lock is released; with an engine the mappings are marked as used by its run, and
 * it is valid until the run ends.
 */
uint8_t *sim_iova(struct sim_device *dev, struct sim_engine *e, uint64_t iova,
		  uint64_t bytes, bool write);
/* Whether the device reaches all of it, in however many pieces. */
bool sim_iova_reaches(struct sim_device *dev, uint64_t iova, uint64_t bytes, bool write);
/* As sim_iova of a context's va; other chips' memory is none. *got is how many bytes follow
 * one another in the model's memory; with got NULL it must be all. *is_host (may be NULL):
 * not HBM. */
uint8_t *sim_va(struct sim_device *dev, struct sim_engine *e, unsigned ctx, uint64_t va,
		uint64_t bytes, bool write, uint64_t *got, bool *is_host);
/* Requests MAP and UNMAP of a context that is used: 0 or their status. A range that a run
 * uses is BUSY. */
int sim_ctx_map(struct sim_device *dev, unsigned ctx, const struct hw_map *m);
int sim_ctx_unmap(struct sim_device *dev, unsigned ctx, uint64_t va);
/* Adds a mapping that was checked; a window's reference is the map's then. */
int sim_ctx_add(struct sim_device *dev, unsigned ctx, const struct sim_map *m);
/* Forgets a context's mappings. Nothing of it runs. */
void sim_ctx_free(struct sim_ctx *ctx);
/* Where a context's va leads into another chip's window, `bytes` of it: the address in that
 * chip's HBM, which lives as long as the model; NULL: not all of it does. */
uint8_t *sim_peer_va(struct sim_device *dev, unsigned ctx, uint64_t va, uint64_t bytes,
		     struct sim_window **w);
/* Frees all DMA mappings; the device has no threads any more. */
void sim_dma_free(struct sim_device *dev);

/* poison.c: pages of HBM whose content is lost, until new content covers them; any thread. */
int sim_poison_add(struct sim_device *dev, uint64_t page);	/* 0, or a status */
void sim_poison_clear(struct sim_device *dev);
bool sim_is_poisoned(struct sim_device *dev, const uint8_t *p, uint64_t bytes);
void sim_heal(struct sim_device *dev, const uint8_t *p, uint64_t bytes);

/* ---- signal.c ---- */

/* Has a thread look for work of the engine; without or under lock. */
void sim_kick(struct sim_engine *e);
/* In a run of `by`: so, or leaves it to the thread that lends itself to that run. */
void sim_kick_by(struct sim_engine *by, struct sim_engine *e);
/* Whether device i's engine of class `cls` (0: compute, 1: DMA) is ready, which it is no more:
 * whoever gets true serves it, or kicks it again. */
bool sim_take_kick(struct sim *sim, unsigned cls, unsigned i);
/* Wakes a thread if an engine is ready and none looks for it. */
void sim_rouse(struct sim *sim);
/* The following under lock. Tells a run to end with this status, the first one given;
 * nothing if the engine is idle. Does not wait: `idle` is signalled when it has ended. */
void sim_engine_halt(struct sim_engine *e, int status);
/* Raises an interrupt, or leaves it pending if the vector is masked. */
void sim_irq(struct sim_device *dev, uint32_t vector);
/* Before the host, or another chip, is told of stores: returns when they are where they belong
 * (struct sim_far). Without lock, as the next. */
void sim_send(struct sim_device *dev);
/* After the host, or another chip, told of theirs: what is read next is at least as new. */
void sim_forget(struct sim_device *dev);
/* How often such memory was not reached: what read it since this was less may have read zeros. */
unsigned sim_far_failures(struct sim_device *dev);
/* Whether p is in such memory: a store there may block. */
bool sim_is_far(struct sim_device *dev, const void *p);
/* Whether such zeros may be read still. */
bool sim_far_is_bad(struct sim_device *dev);
/* Both with the lock, which is released meanwhile. */
void sim_send_first(struct sim_device *dev);
void sim_forget_first(struct sim_device *dev);

/* ---- fabric.c ---- */

/* Makes the torus, before any device, and frees it after all. */
void sim_fabric_init(struct sim *sim, unsigned n_devices);
void sim_fabric_free(struct sim *sim);
/* A device's place and links, when all devices have memory. */
void sim_links_init(struct sim_device *dev);
/* Of a reset: the counts begin anew and dead links work again; with or without lock. */
void sim_links_clear(struct sim_device *dev);
/* Kills link number `port` of dev and wakes those who may wait for it: 0 or BAD_FIELD. */
int sim_link_kill(struct sim_device *dev, uint64_t port);
/* HW_LOG_LINKS; out has room for HW_MAX_LINKS; how many there are. Under lock. */
unsigned sim_link_states(struct sim_device *dev, struct hw_link *out);
/* Why a window is broken: by which chip, and the status with which that began. */
static inline uint32_t sim_break_why(const struct sim_device *dev, unsigned status)
{
	return 1u << 31 | dev->index << 16 | status;
}
static inline unsigned sim_broken_by(uint32_t why) { return why >> 16 & 0x7fff; }
static inline unsigned sim_broken_as(uint32_t why) { return why & 0xffff; }
/* Why dev can't write into the window: it is broken, or a link on the way there is dead; 0: it
 * can. With or without lock. */
uint32_t sim_window_why(struct sim_device *dev, const struct sim_window *w);
/* Opens a window of dev like `like`; NO_ROOM. With or without lock, as all up to sim_break. */
int sim_window_add(struct sim_device *dev, const struct sim_window *like, uint64_t *key);
/* The open window of dev with this key and a reference to it, or NULL; and back. */
struct sim_window *sim_window_get(struct sim_device *dev, uint64_t key);
void sim_window_put(struct sim_window *w);
/* Whether any of a context's range is lent. */
bool sim_is_lent(struct sim_device *dev, unsigned ctx, uint64_t va, uint64_t bytes);
/* Around what dev reads from a window or writes into it, without lock. False: sim_window_why. */
bool sim_window_begin(struct sim_device *dev, struct sim_window *w);
void sim_window_end(struct sim_device *dev, struct sim_window *w, uint64_t bytes, bool is_read);
/* *sem, which is in the window, becomes fn (ADD, MAX) of itself and value; its chip's engines
 * look if they wait for that. Without lock. False: sim_window_why. */
bool sim_window_raise(struct sim_engine *by, struct sim_window *w, uint64_t *sem, unsigned fn,
		      uint64_t value);
/* Breaks the windows of a context (0: of all) and wakes those who may wait for it. Under
 * lock; does not wait. */
void sim_break(struct sim_device *dev, unsigned ctx, uint32_t why);
/* Waits until nobody writes into broken windows any more, lock released: then the memory is
 * the context's alone. */
void sim_break_wait(struct sim_device *dev);
/* WINDOW_CLOSE, under lock, which it releases to wait as sim_break_wait: 0 or its status. */
int sim_window_close(struct sim_device *dev, uint64_t key);

/* ---- link.c; under lock ---- */

/* Requests WINDOW_OPEN and PEER_MAP of a context that is used: 0 or their status. */
int sim_window_open(struct sim_device *dev, unsigned ctx, const struct hw_window *in,
		    uint64_t *key);
int sim_peer_map(struct sim_device *dev, unsigned ctx, const struct hw_peer_map *in);
/* Binding i, declared a peer's, of what e is to run: 0 or a fault's status. */
int sim_bind_peer(struct sim_device *dev, struct sim_engine *e, unsigned i,
		  const struct hw_binding *b, bool write, struct hw_fault *f);
extern const struct sim_links sim_links;	/* for cores; their link is the engine */

/* ---- queue.c; under lock but for sim_wake() ---- */

static inline uint64_t sim_queue_bit(const struct sim_device *dev, const struct sim_queue *q)
{
	return 1ull << (q - dev->queues);
}
/* Adds a queue to those of its engine, and takes it away. */
void sim_queue_join(struct sim_device *dev, struct sim_queue *q);
void sim_queue_part(struct sim_device *dev, struct sim_queue *q);
/* Brings what doorbells said into the queues. Whoever tells of queues, or
 * changes them, calls it first: then doorbells count in the order in which they came. */
void sim_queue_hear(struct sim_device *dev);
/* A doorbell that no driver rang. */
void sim_queue_ring_by_itself(struct sim_device *dev, unsigned queue, uint32_t tail);
/* Brings the next descriptor into q->sqe. False: there is none. */
bool sim_queue_fetch(struct sim_device *dev, struct sim_queue *q);
/* Whether the head of q can begin, or go on. One with a bad wait address can: it faults. */
bool sim_queue_can_begin(struct sim_device *dev, struct sim_engine *e, struct sim_queue *q);
/* Whose descriptor is next: the highest priority first; among equals the context that had the
 * engine least, and of it queues take turns. NULL: none. */
struct sim_queue *sim_queue_pick(struct sim_device *dev, struct sim_engine *e);
/* Looks whether the engine's run lets others go first, and sets when that is looked at next. */
void sim_queue_look(struct sim_engine *e, int64_t now);
/* The watchdog sleeps on to an earlier time if the engine has one. */
void sim_watch(struct sim_device *dev, const struct sim_engine *e);
/* The host address of a semaphore of q's context, or NULL. e: whose run uses it, or NULL. */
uint64_t *sim_semaphore(struct sim_device *dev, struct sim_engine *e, const struct sim_queue *q,
			uint64_t va, bool write);
/* A store to a context's wake page, which may be nobody's. Without lock. */
void sim_wake(struct sim_device *dev, unsigned ctx);
/* Wakes the engines for which a wait of the context's queues (0: of all) has ended; the others
 * sleep on. */
void sim_look_at_waiting(struct sim_device *dev, unsigned ctx);
/* HW_LOG_QUEUES; out has room for all; how many there are. */
unsigned sim_queue_states(struct sim_device *dev, struct hw_queue_state *out);
/* Copies a descriptor out of ring memory, reading each byte once. */
void sim_sqe_read(const uint8_t *from, struct hw_sqe *sqe);
/* Writes a completion into ring memory, the phase last. */
void sim_cqe_write(uint8_t *to, const struct hw_cqe *cqe);

/* ---- engine.c ---- */

/* A doorbell: a store, unless the engine is idle; then it may run the work. Without lock. */
void sim_queue_ring(struct sim_device *dev, unsigned queue, uint32_t tail);
/* The watchdog's look at what runs or is parked: what is past its deadline ends, and what others
 * wait for lets them go first; *next becomes when to look again, if that is earlier. Under lock. */
void sim_runs_look(struct sim_device *dev, int64_t now, int64_t *next);
/* `turns` (NULL: nobody) are whom it shares the card with. -1: no memory, and sim_engine_free()
 * is due. */
int sim_engine_init(struct sim_device *dev, struct sim_engine *e, uint8_t cls,
		    struct sim_turns *turns);
/* No thread serves it any more. */
void sim_engine_free(struct sim_engine *e);
/* Runs what its queues have, to the end; returns at once if another thread of the crew is at it,
 * which looks again before it goes. */
void sim_engine_serve(struct sim_engine *e);
static inline struct sim_engine *sim_engine_of(struct sim_device *dev, uint8_t cls)
{
	return &dev->engines[cls == HW_CLASS_DMA];
}
/* For how long what the engine runs has run until `now`. Under lock. */
static inline uint64_t sim_engine_ran(struct sim_engine *e, int64_t now)
{
	int64_t ns = sim_turn_ran(&e->turn, e->began, now);

	return ns > 0 ? (uint64_t)ns : 0;
}
/* Fills in what a descriptor failed of, in f; returns the status. */
static inline int sim_fail(struct hw_fault *f, int status, uint64_t va, uint64_t bytes,
			   bool write)
{
	f->status = (uint16_t)status;
	f->va = va;
	f->bytes = bytes;
	f->is_write = write;
	return status;
}
/* Stops what runs, waits for its end and empties the queue; also under admin_lock.
 * with_completions: what had not begun completes as DROPPED, else nothing completes. Under lock. */
void sim_queue_clear(struct sim_device *dev, struct sim_queue *q, bool with_completions);

/* ---- crew.c ---- */

/* When all devices are there. -1: no memory or thread, and sim_crew_stop() is due. */
int sim_crew_start(struct sim *sim);
/* Nothing runs, or will. */
void sim_crew_stop(struct sim *sim);

/* ---- trace.c; under lock ---- */

/* Requests TRACE_START and TRACE_STOP of a context that is used: 0 or their status. */
int sim_trace_start(struct sim_device *dev, unsigned ctx, const struct hw_trace *in);
int sim_trace_stop(struct sim_device *dev, unsigned ctx, uint64_t *last);
/* The head of q waits for its semaphore. */
void sim_trace_wait(struct sim_device *dev, struct sim_queue *q);
/* The engine's descriptor begins; goes on after it was parked; is parked, as k has it; ended,
 * after it was `parked` or not. */
void sim_trace_begin(struct sim_device *dev, struct sim_engine *e);
void sim_trace_resume(struct sim_device *dev, struct sim_engine *e);
void sim_trace_park(struct sim_engine *e, struct sim_parked *k);
void sim_trace_end(struct sim_device *dev, struct sim_engine *e, bool was_parked, int status);
/* The parked run of q ends without another turn. */
void sim_trace_drop(struct sim_device *dev, struct sim_queue *q, int status);

/* ---- admin.c ---- */

/* Queue 0's doorbell: runs its requests and waits for them. Takes both locks. */
void sim_admin_ring(struct sim_device *dev, uint32_t tail);

/* ---- reset.c ---- */

/* The device enters its fatal state: see DEVICE.md#fatal-state. Under lock. */
void sim_die(struct sim_device *dev, uint32_t why);

/* Ends all queues, contexts and programs, and waits for runs; under admin_lock. */
void sim_clear(struct sim_device *dev);
/* What a function reset gives back; under lock. The clock and RAS counts go on. */
void sim_power_on(struct sim_device *dev);

/* ---- dma.c ---- */

/* Executes a descriptor other than EXECUTE, on engine e whose run it is, from e->progress on;
 * without lock. 0, f's status, or SIM_YIELDED, with which e->progress says how far it came. */
int sim_dma_run(struct sim_engine *e, const struct sim_queue *q, struct hw_fault *f);

/* ---- log_page.c; under lock ---- */

/* Numbers and dates a fault and keeps it; older records may go. */
void sim_fault_record(struct sim_device *dev, struct hw_fault *f);
/* Fills `page` (room for SIM_FAULTS records); bytes, or 0: no such page. */
size_t sim_log_page(struct sim_device *dev, unsigned id, void *page);

#endif
