/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_SIM_INTERNAL_H
#define SIM_SIM_INTERNAL_H
/*
 * The model's own structures. Private to hal/sim.
 *
 * Locks: a device has one mutex, `lock`, over its registers, tables, rings and
 * semaphores. It is never held while a program or a copy runs, so it is held briefly.
 * What a run uses is marked instead: a program is counted, host mappings carry the
 * run's number, address ranges are noted in its core. `admin_lock` makes admin
 * requests and resets run one at a time and is taken before `lock`.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "hal/base/clock.h"
#include "hal/hw/regs.h"
#include "hal/sim/core/core.h"
#include "hal/sim/sim.h"

#define SIM_MAX_PROGRAMS 65536u
#define SIM_MAX_MAPS 65536u	/* of a context, and of the IOMMU */
#define SIM_MAX_CODE ((uint64_t)64 << 20)
#define SIM_FAULTS 64u		/* records kept */
#define SIM_CONTRACT 0x00010000u
#define SIM_SPIN_NS 20000	/* before an engine or worker sleeps */
#define SIM_PARALLEL_NS 20000	/* less work than this stays on one lane */
#define SIM_INLINE_NS 20000	/* HW_FEATURE_INLINE_NS after a reset */

struct sim_pool;

/* Host memory that the IOMMU lets the device reach. */
struct sim_dma {
	uint64_t iova, bytes;
	uint8_t *host;
	bool writable;
	bool dying;		/* being unmapped: nobody reaches it any more */
	uint64_t used_by[2];	/* number of the last run of each engine to use it */
};

/* One mapping of a context. */
struct sim_map {
	uint64_t va, pa, bytes;
	uint32_t flags;		/* HW_MAP_* */
};

struct sim_ctx {
	bool used;
	struct sim_map *maps;	/* ascending by va */
	unsigned n_maps, room;
};

/* A checked instruction. */
struct sim_insn {
	const struct sim_family *family; /* NULL: scalar */
	const void *plan;	/* a family's; LD and ST: struct sim_ref */
	uint32_t offset;	/* in the code, for records */
	uint32_t target;	/* branches: index of the instruction */
	struct isa_scalar s;
};

struct sim_program {
	unsigned refs;		/* the table's and each run's; under dev->lock */
	uint16_t ctx;
	bool is_straight;	/* no backward branch, no call: it ends soon */
	uint64_t last_ns;	/* its last run's time; under dev->lock */
	uint64_t bytes;		/* of memory that it takes */
	void *code;		/* a copy: plans may point into it */
	uint64_t code_bytes;
	struct arena arena;
	struct sim_insn *insns;
	unsigned n_insns;
	struct hw_program_binding *bindings;
	unsigned n_bindings;
	size_t scratch, shared;
};

enum sim_queue_state { SIM_QUEUE_NONE, SIM_QUEUE_READY, SIM_QUEUE_FAULTED };

struct sim_queue {
	enum sim_queue_state state;
	struct hw_queue info;
	uint32_t tail, head;	/* free-running */
	uint32_t cq_tail;
	struct hw_sqe sqe;	/* the descriptor at head, read once */
	bool has_sqe;
	bool is_lost;		/* the ring could not be read for it */
	bool is_clearing;	/* starts nothing more */
	bool is_silent;		/* completes nothing more: the function is reset */
	struct sim_engine *running; /* the engine that works on its descriptor */
};

/* A range of a context's addresses that a run uses. */
struct sim_use { uint64_t va, bytes; };

/* One engine's working memory. */
struct sim_core {
	struct sim_device *dev;
	unsigned n_lanes;
	void **scratch;		/* [n_lanes] */
	size_t scratch_bytes, shared_bytes;
	void *shared;
	uint8_t **base;		/* [ISA_MAX_BINDINGS] */
	uint64_t *bytes;
	struct sim_use *uses;	/* [ISA_MAX_BINDINGS] */
	unsigned n_uses;
	uint64_t n_insns;	/* that the last run executed */
	atomic_flag faulting;	/* the first fault of a run is kept */
};

struct sim_engine {
	struct sim_device *dev;
	uint8_t cls;		/* enum hw_class */
	pthread_t thread;
	bool has_thread;
	atomic_uint kick;	/* futex: changes whenever there may be work */
	atomic_bool is_asleep;
	atomic_bool is_idle;	/* its thread found nothing, and waits for a kick */
	unsigned seen;		/* kick when the thread last looked */
	bool was_missed;	/* it looked while the engine was busy */
	uint64_t of_priority[4]; /* its queues, a bit each */
	uint64_t active;	/* those whose doorbell rang and that may have work */
	_Atomic uint64_t waiting; /* whose head waits for a semaphore; written under lock */
	unsigned next;		/* queue to look at first */

	/* the run, under dev->lock; `stop` is read without */
	struct sim_queue *queue; /* NULL: idle */
	uint64_t run;		/* its number, for sim_dma.used_by */
	int64_t began, deadline; /* FOREVER: none */
	atomic_bool stop;	/* tells it to end */
	int stop_status;	/* why: HW_ST_RESET, WATCHDOG, MAP, DEVICE_FATAL */
	struct sim_core core;
};

struct sim_vector {
	int fd;			/* -1: none */
	bool masked, pending;
	uint32_t table[3];	/* address and data, kept for the driver */
};

/* Exponential averages of utilisation, 0 to 1 (telemetry.c). */
struct sim_load_average {
	int64_t time;
	uint64_t busy[2];
	double fast[2], slow[2];
};

struct sim_device {
	struct sim *sim;
	unsigned index;
	int hbm_fd;
	uint8_t *hbm;
	uint64_t hbm_bytes;
	int64_t power_on;	/* clock_ns() */

	pthread_mutex_t admin_lock, lock;
	pthread_cond_t idle;	/* a run ended */
	pthread_cond_t timer;	/* a deadline came before watch_until */
	int64_t watch_until;	/* when the watchdog looks next */
	pthread_t watchdog;
	bool has_watchdog;
	bool quit;

	uint32_t ctrl, status, fatal, bad_access;
	uint64_t asq, acq, scratch;
	uint32_t aqsize, avector;
	uint32_t admin_tail, admin_head, admin_cq_tail;
	struct sim_vector vectors[HW_MAX_VECTORS];
	uint64_t drop_irqs;

	struct sim_dma **dma;	/* [room_dma], ascending by iova */
	unsigned n_dma, room_dma;
	struct sim_ctx contexts[HW_MAX_CONTEXTS];
	/* Doorbells, without lock: what they were last written with; those that nobody
	 * has looked at since; whose queues are the DMA engine's. */
	_Atomic uint32_t bell[HW_MAX_QUEUES];
	_Alignas(64) _Atomic uint64_t rung;
	_Atomic uint64_t of_dma;
	_Alignas(64) struct sim_queue queues[HW_MAX_QUEUES];
	struct sim_program **programs;	/* [room_programs]; id is the index */
	unsigned room_programs, program_hint;
	uint64_t program_bytes;
	struct sim_engine engines[2];	/* compute, DMA */

	struct hw_fault faults[SIM_FAULTS];
	uint64_t n_faults;
	struct hw_telemetry total;
	struct sim_load_average average;
	struct hw_ras ras;
	uint64_t default_limit_ns, inline_ns;
	uint64_t *poisoned;	/* HBM offsets of poisoned pages */
	unsigned n_poisoned;

	/* A model that checks (watch.c): a bit for each byte of HBM, set once something
	 * wrote it; else NULL. The lock is a leaf. */
	pthread_mutex_t watch_lock;
	uint64_t *written;
};

struct sim {
	unsigned n_devices;
	struct sim_device *devices;
	struct sim_cpu cpu;
	bool spins;		/* more than one CPU: waiting threads may spin */
	struct sim_pool *pool;
};

/* What FATAL reads. */
enum { SIM_FATAL_ADMIN_RING = 1, SIM_FATAL_INJECTED = 3 };

/* ---- cpu.c: the host ---- */

/* What the CPU has and the operating system saves; path is the widest. */
void sim_cpu_detect(struct sim_cpu *cpu);
/* Takes no path wider than the one named; FAILED_PRECONDITION if the CPU lacks it. */
int sim_cpu_cap(struct sim_cpu *cpu, const char *path, struct err *err);

/* ---- pool.c: threads ---- */

int sim_pool_create(unsigned lanes, bool spins, struct sim_pool **out, struct err *err);
void sim_pool_destroy(struct sim_pool *pool);
/* fn over [0, n) in parts of `grain` on at most `lanes` lanes; all parts run. */
void sim_pool_run(struct sim_pool *pool, uint64_t n, uint64_t grain, unsigned lanes,
		  void (*fn)(void *arg, uint64_t begin, uint64_t end, unsigned lane),
		  void *arg);
void sim_futex_wait(atomic_uint *word, unsigned seen);
void sim_futex_wake(atomic_uint *word, unsigned n);
/* Whether *word left `seen` within SIM_SPIN_NS. */
bool sim_spin(const atomic_uint *word, unsigned seen);

/* ---- map.c: addresses; all under dev->lock ---- */

/* The host address of [iova, iova + bytes), or NULL if any of it cannot be reached.
 * With an engine, the mappings are marked as used by its run. */
uint8_t *sim_iova(struct sim_device *dev, struct sim_engine *e, uint64_t iova,
		  uint64_t bytes, bool write);
/* Whether the device reaches all of it, in however many pieces. */
bool sim_iova_reaches(struct sim_device *dev, uint64_t iova, uint64_t bytes, bool write);
/* As sim_iova of a context's va. *got is how many bytes follow one another in the
 * model's memory; with got NULL it must be all. *is_host (may be NULL): not HBM. */
uint8_t *sim_va(struct sim_device *dev, struct sim_engine *e, unsigned ctx, uint64_t va,
		uint64_t bytes, bool write, uint64_t *got, bool *is_host);
/* Whether a poisoned page of HBM lies in `bytes` from this host address. */
bool sim_is_poisoned(const struct sim_device *dev, const uint8_t *p, uint64_t bytes);
/* New content heals the poisoned pages that it covers whole. */
void sim_heal(struct sim_device *dev, const uint8_t *p, uint64_t bytes);
int sim_ctx_map(struct sim_device *dev, unsigned ctx, const struct hw_map *m);
int sim_ctx_unmap(struct sim_device *dev, unsigned ctx, uint64_t va);
void sim_dma_free(struct sim_device *dev);

/* ---- program.c; without dev->lock ---- */

/* Copies and checks. Below 16: refused, *detail is the offset. */
int sim_program_load(const struct sim_cpu *cpu, const void *code, size_t bytes,
		     const struct hw_program_binding *bindings, unsigned n_bindings,
		     struct sim_program **out, uint64_t *detail);
void sim_program_free(struct sim_program *p);

/* ---- core.c ---- */

int sim_core_init(struct sim_core *core, struct sim_device *dev, unsigned lanes);
void sim_core_free(struct sim_core *core);
/* Runs p; core->base and bytes are filled. 0 or the fault status in run->fault. */
int sim_core_run(struct sim_core *core, const struct sim_program *p,
		 atomic_bool *stop, struct sim_run *run);

/* ---- watch.c: what a model that checks looks at; all do nothing in others ---- */

int sim_watch_start(struct sim_device *dev, struct err *err);
void sim_watch_end(struct sim_device *dev);
/* Before an instruction of a checked program runs: 0, or the status of a fault that it
 * recorded. What the instruction will write counts as written. Only if dev->written. */
int sim_watch_insn(struct sim_run *run, const struct isa_insn *insn);
/* Before a program runs: its scratch holds nothing. */
void sim_watch_begin(struct sim_run *run, const struct sim_program *p);
/* Something else wrote `bytes` at p, or copied them from `from`: whatever was not written
 * there is not written here either. Memory other than HBM is always written. */
void sim_watch_write(struct sim_device *dev, const uint8_t *p, uint64_t bytes);
void sim_watch_copy(struct sim_device *dev, const uint8_t *p, const uint8_t *from,
		    uint64_t bytes);

/* ---- queue.c ---- */

/* A doorbell: a store, unless the engine is idle. Without lock. */
void sim_queue_ring(struct sim_device *dev, unsigned queue, uint32_t tail);
/* Brings what doorbells said into the queues; under lock. Whoever tells of queues, or
 * changes them, calls it first: then doorbells count in the order in which they came. */
void sim_queue_hear(struct sim_device *dev);
int sim_engine_start(struct sim_device *dev, struct sim_engine *e, uint8_t cls);
void sim_engine_stop(struct sim_engine *e);
static inline struct sim_engine *sim_engine_of(struct sim_device *dev, uint8_t cls)
{
	return &dev->engines[cls == HW_CLASS_DMA];
}
/* Lets the engine's thread look for work. */
void sim_kick(struct sim_engine *e);
/* The following under lock. Joins a queue to its engine, and takes it away. */
void sim_queue_join(struct sim_device *dev, struct sim_queue *q);
void sim_queue_part(struct sim_device *dev, struct sim_queue *q);
/* Wakes the engines for which a wait has ended; the others sleep on. */
void sim_look_at_waiting(struct sim_device *dev);
/* Stops what runs and empties the queue; also under admin_lock. with_completions:
 * what had not begun completes as DROPPED, else nothing completes. */
void sim_queue_clear(struct sim_device *dev, struct sim_queue *q, bool with_completions);
/* Tells a run to end with this status. */
void sim_engine_halt(struct sim_engine *e, int status);
void sim_irq(struct sim_device *dev, uint32_t vector);
/* Copies a descriptor out of ring memory, reading each byte once. */
void sim_sqe_read(const uint8_t *from, struct hw_sqe *sqe);
/* Writes a completion into ring memory, the phase last. */
void sim_cqe_write(uint8_t *to, const struct hw_cqe *cqe);
/* The device enters its fatal state: see DEVICE.md#fatal. */
void sim_die(struct sim_device *dev, uint32_t why);

/* ---- admin.c ---- */

void sim_admin_ring(struct sim_device *dev, uint32_t tail);

/* ---- sim.c ---- */

/* Ends all queues, contexts and programs; under admin_lock. */
void sim_clear(struct sim_device *dev);

/* ---- dma.c ---- */

/* A descriptor other than EXECUTE, on engine e; without lock. 0 or f's status. */
int sim_dma_run(struct sim_engine *e, const struct sim_queue *q, struct hw_fault *f);

/* ---- telemetry.c; under lock ---- */

void sim_telemetry(struct sim_device *dev, struct hw_telemetry *out);
void sim_fault_record(struct sim_device *dev, struct hw_fault *f);
/* Fills `page` (room for SIM_FAULTS records); bytes, or 0: no such page. */
size_t sim_log_page(struct sim_device *dev, unsigned id, void *page);

#endif
