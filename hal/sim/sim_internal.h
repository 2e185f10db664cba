/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_SIM_INTERNAL_H
#define SIM_SIM_INTERNAL_H
/*
 * The model's own structures. Private to hal/sim.
 *
 * Locks: a device has one mutex, `lock`, over its registers, tables, rings and
 * semaphores; it is never held while a program or a copy runs. What a run uses
 * (programs, host mappings) is held by counts instead. `admin_lock` makes admin
 * requests run one at a time and is taken before `lock`.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "hal/base/clock.h"
#include "hal/hw/regs.h"
#include "hal/sim/core.h"
#include "hal/sim/sim.h"

#define SIM_MAX_PROGRAMS 65536u
#define SIM_MAX_MAPS 4096u	/* of a context, and of the IOMMU */
#define SIM_FAULTS 64u		/* records kept */
#define SIM_CONTRACT 0x00010000u
#define SIM_SPIN_NS 20000	/* before an engine or worker sleeps */
#define SIM_PARALLEL_NS 20000	/* less work than this stays on one lane */

struct sim_pool;

/* Host memory that the IOMMU lets the device reach. */
struct sim_dma {
	uint64_t iova, bytes;
	uint8_t *host;
	bool writable;
	bool dying;		/* being unmapped: no new users */
	unsigned users;		/* runs that hold it */
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
	const void *plan;
	uint32_t offset;	/* in the code, for records */
	uint32_t target;	/* branches: index of the instruction */
	struct isa_scalar s;
	struct sim_ref ref;	/* LD, ST */
};

struct sim_program {
	unsigned refs;		/* the table's and each run's; under lock */
	uint16_t ctx;
	bool is_straight;	/* no backward branch, no call */
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
	bool is_running;	/* an engine works on its descriptor */
	atomic_bool stop;	/* tells that run to end */
	int stop_status;	/* why: HW_ST_RESET or HW_ST_WATCHDOG */
	int64_t run_deadline;	/* of the running descriptor; FOREVER: none */
};

/* One engine's working memory. */
struct sim_core {
	struct sim_device *dev;
	unsigned n_lanes;
	void **scratch;		/* [n_lanes] */
	size_t scratch_bytes, shared_bytes;
	void *shared;
	uint8_t **base;		/* [ISA_MAX_BINDINGS] */
	uint64_t *bytes;
	struct sim_dma **held;	/* host mappings that the run uses */
	unsigned n_held;
};

struct sim_engine {
	struct sim_device *dev;
	uint8_t cls;		/* enum hw_class */
	pthread_t thread;
	bool has_thread;
	bool is_busy;		/* its core is in use; under lock */
	bool was_missed;	/* its thread looked for work while it was busy */
	unsigned next;		/* queue to look at first */
	struct sim_core core;
};

struct sim_vector {
	int fd;			/* -1: none */
	bool masked, pending;
	uint32_t table[3];	/* address and data, kept for the driver */
};

struct sim_device {
	struct sim *sim;
	unsigned index;
	int hbm_fd;
	uint8_t *hbm;
	uint64_t hbm_bytes;
	int64_t power_on;	/* clock_ns() */

	pthread_mutex_t admin_lock, lock;
	pthread_cond_t work;	/* something for the engines to do */
	pthread_cond_t idle;	/* a run ended, a count fell */
	pthread_cond_t timer;	/* a deadline was set; CLOCK_MONOTONIC */
	pthread_t watchdog;
	bool has_watchdog;
	atomic_uint kick;	/* changes whenever there may be work; engines spin on it */
	bool quit;

	uint32_t ctrl, status, fatal, bad_access;
	uint64_t asq, acq, scratch;
	uint32_t aqsize, avector;
	uint32_t admin_tail, admin_head, admin_cq_tail;
	struct sim_vector vectors[HW_MAX_VECTORS];
	uint64_t drop_irqs;

	struct sim_dma *dma[SIM_MAX_MAPS];
	unsigned n_dma;
	struct sim_ctx contexts[HW_MAX_CONTEXTS];
	struct sim_queue queues[HW_MAX_QUEUES];
	unsigned n_queues;	/* the highest id in use, plus 1 */
	struct sim_program **programs;	/* [room_programs]; id is the index */
	unsigned room_programs, program_hint;
	struct sim_engine compute, copy;

	struct hw_fault faults[SIM_FAULTS];
	uint64_t n_faults;
	struct hw_telemetry total;
	struct hw_ras ras;
	uint64_t default_limit_ns, inline_ns;
	uint64_t *poisoned;	/* HBM offsets of poisoned pages */
	unsigned n_poisoned;
};

struct sim {
	unsigned n_devices;
	struct sim_device *devices;
	struct sim_cpu cpu;
	struct sim_pool *pool;
};

/* pool.c: worker threads shared by all devices of a sim. */
int sim_pool_create(unsigned lanes, struct sim_pool **out, struct err *err);
void sim_pool_destroy(struct sim_pool *pool);
void sim_pool_run(struct sim_pool *pool, uint64_t n, uint64_t grain,
		  void (*fn)(void *arg, uint64_t begin, uint64_t end, unsigned lane),
		  void *arg);

/* Sets flush-to-zero arithmetic on this thread; returns what to restore. */
unsigned sim_enter_arithmetic(void);
void sim_leave_arithmetic(unsigned saved);

/* map.c; all under dev->lock. */
/* The host address of [iova, iova + bytes), or NULL. *dma is the mapping. */
uint8_t *sim_iova(struct sim_device *dev, uint64_t iova, uint64_t bytes, bool write,
		  struct sim_dma **dma);
/* The same of a context's va; *dma NULL for HBM. *poison set if it holds poison. */
uint8_t *sim_va(struct sim_device *dev, unsigned ctx, uint64_t va, uint64_t bytes,
		bool write, struct sim_dma **dma, bool *poison);
int sim_ctx_map(struct sim_device *dev, unsigned ctx, const struct hw_map *m);
int sim_ctx_unmap(struct sim_device *dev, unsigned ctx, uint64_t va);

/* program.c; without dev->lock. */
int sim_program_load(const struct sim_cpu *cpu, const void *code, size_t bytes,
		     const struct hw_program_binding *bindings, unsigned n_bindings,
		     struct sim_program **out, uint64_t *detail);
void sim_program_free(struct sim_program *p);

/* core.c */
int sim_core_init(struct sim_core *core, struct sim_device *dev, unsigned lanes);
void sim_core_free(struct sim_core *core);
/* Runs p; core->base and bytes are filled. 0 or the fault status in run->fault. */
int sim_core_run(struct sim_core *core, const struct sim_program *p,
		 atomic_bool *stop, struct sim_run *run);

/* queue.c */
void sim_queue_ring(struct sim_device *dev, unsigned queue, uint32_t tail);
int sim_engine_start(struct sim_device *dev, struct sim_engine *e, uint8_t cls);
void sim_engine_stop(struct sim_engine *e);
/* Stops and empties a queue, completing what it held; under admin_lock and lock. */
void sim_queue_clear(struct sim_device *dev, struct sim_queue *q, bool complete);
void sim_irq(struct sim_device *dev, uint32_t vector);	/* under lock */
void sim_kick(struct sim_device *dev);			/* under lock */
void sim_record_fault(struct sim_device *dev, struct hw_fault *f); /* under lock */

/* admin.c */
void sim_admin_ring(struct sim_device *dev, uint32_t tail);

/* dma.c: a descriptor other than EXECUTE; without lock. Host mappings that it uses
 * are left in core->held, for the caller to let go. 0 or the status of f. */
int sim_dma_run(struct sim_device *dev, const struct sim_queue *q, struct sim_core *core,
		const struct hw_sqe *sqe, const atomic_bool *stop, struct hw_fault *f);

/* telemetry.c; under lock. */
void sim_telemetry(struct sim_device *dev, struct hw_telemetry *out);

#endif
