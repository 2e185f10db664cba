/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SIM_TEST_H
#define TESTS_SIM_TEST_H
/*
 * A driver in miniature for tests of the model: rings, a context with HBM at
 * T_HBM_VA and a window of host memory, one compute and one DMA queue.
 *
 *	struct t_sim t;
 *	t_open(&t, "lanes=2");
 *	struct t_program p;
 *	t_program(&p);
 *	t_bind(&p, T_HBM_VA + 4096, 1024, HW_BIND_READ | HW_BIND_WRITE);
 *	t_li(&p, 1, 7);
 *	t_add(&p, &insn, bytes);
 *	t_halt(&p);
 *	assert_int_equal(t_run(&t, &p), HW_ST_OK);	t.fault says more
 *	t_close(&t);
 *
 * Everything runs through the public door, sim.h, as a driver's work would.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hal/base/clock.h"
#include "hal/hw/desc.h"
#include "hal/hw/regs.h"
#include "hal/sim/sim.h"

#define T_HBM_VA (1ull << 40)		/* the whole HBM */
#define T_HOST_VA (1ull << 32)		/* t_sim.window, writable */
#define T_IOVA (1ull << 20)		/* of t_sim.host */
#define T_ENTRIES 16u
#define T_ANSWER_NS 60000000000ll	/* a completion later than this failed */
#define T_CODE_ROOM (256u << 10)
#define T_HBM_BYTES (256ull << 20)

/* Pages of t_sim.host: rings of many queues, arguments, then the window. */
enum { T_RINGS = 96, T_ARGS = T_RINGS * 2, T_ARGS_PAGES = 40,
       T_WINDOW = T_ARGS + T_ARGS_PAGES, T_WINDOW_PAGES = 64,
       T_PAGES = T_WINDOW + T_WINDOW_PAGES };

struct t_ring {
	unsigned id;
	unsigned page;		/* submissions; completions in the next */
	uint32_t tail, head;
};

struct t_sim {
	struct sim *sim;
	struct sim_device *dev;
	uint8_t *host;		/* T_PAGES pages at T_IOVA */
	uint8_t *window;	/* T_WINDOW_PAGES pages of it at T_HOST_VA */
	uint8_t *hbm;		/* the host's view; T_HBM_VA is its start */
	uint64_t hbm_bytes;
	unsigned ctx;
	struct t_ring admin, work, dma;
	unsigned n_rings;
	struct hw_cqe cqe;	/* the last completion taken */
	struct hw_fault fault;	/* of the last t_run() that faulted */
	uint64_t refused_at;	/* of the last program that did not load */
};

/* A program being written. */
struct t_program {
	_Alignas(8) uint8_t code[T_CODE_ROOM];
	size_t bytes;
	struct hw_binding bind[64];
	struct hw_program_binding want[64];
	unsigned n_bindings;
	uint64_t limit_ns;	/* watchdog of the run */
	uint8_t flags;		/* HW_INLINE to run on the caller's thread */
};

/* ---- rings ---- */

static inline uint64_t t_iova(const struct t_sim *t, const void *p)
{
	return T_IOVA + (uint64_t)((const uint8_t *)p - t->host);
}

static inline void *t_args(const struct t_sim *t)
{
	return t->host + T_ARGS * HW_PAGE;
}

/* Writes a submission; t_ring_bell() announces it. */
static inline void t_put(struct t_sim *t, struct t_ring *r, struct hw_sqe sqe)
{
	memcpy(t->host + r->page * HW_PAGE + r->tail % T_ENTRIES * sizeof(sqe), &sqe,
	       sizeof(sqe));
	r->tail++;
}

static inline void t_ring_bell(struct t_sim *t, const struct t_ring *r)
{
	sim_mmio_write(t->dev, hw_doorbell(r->id), 4, r->tail);
}

/* Whether the next completion is there; then it is in t->cqe. */
static inline bool t_poll(struct t_sim *t, struct t_ring *r)
{
	const struct hw_cqe *cqe = (const struct hw_cqe *)(t->host + (r->page + 1) * HW_PAGE) +
				   r->head % T_ENTRIES;
	uint64_t word[4];

	word[0] = __atomic_load_n((const uint64_t *)cqe, __ATOMIC_ACQUIRE);
	if ((word[0] >> 48 & 1) != ((r->head / T_ENTRIES + 1) & 1))
		return false;
	for (unsigned i = 1; i < 4; i++)
		word[i] = __atomic_load_n((const uint64_t *)cqe + i, __ATOMIC_RELAXED);
	memcpy(&t->cqe, word, sizeof(t->cqe));
	r->head++;
	return true;
}

/* The status of the next completion. */
static inline unsigned t_take(struct t_sim *t, struct t_ring *r)
{
	int64_t deadline = clock_after(T_ANSWER_NS);

	while (!t_poll(t, r))
		if (clock_ns() > deadline)
			fail_msg("queue %u does not answer", r->id);
	return t->cqe.status;
}

/* Submits one descriptor and waits: its status. */
static inline unsigned t_ask(struct t_sim *t, struct t_ring *r, struct hw_sqe sqe)
{
	t_put(t, r, sqe);
	t_ring_bell(t, r);
	return t_take(t, r);
}

static inline unsigned t_admin(struct t_sim *t, unsigned op, unsigned id, uint64_t value)
{
	return t_ask(t, &t->admin, (struct hw_sqe){
		.op = (uint8_t)op, .id = (uint16_t)id,
		.u.admin = { .addr = t_iova(t, t_args(t)), .value = value,
			     .bytes = T_ARGS_PAGES * HW_PAGE } });
}

/* What log page QUEUES says a queue is (enum hw_queue_is); 0: there is none. */
static inline unsigned t_queue_state(struct t_sim *t, unsigned id)
{
	const struct hw_queue_state *s = t_args(t);

	assert_int_equal(t_admin(t, HW_LOG_PAGE, HW_LOG_QUEUES, 0), 0);
	for (uint64_t i = 0; i < t->cqe.value / sizeof(*s); i++)
		if (s[i].queue == id)
			return s[i].is;
	return 0;
}

/* ---- what queue 0 makes ---- */

static inline unsigned t_map(struct t_sim *t, unsigned ctx, uint64_t va, uint64_t pa,
			     uint64_t bytes, unsigned flags)
{
	struct hw_map m = { .va = va, .pa = pa, .bytes = bytes, .flags = flags };

	memcpy(t_args(t), &m, sizeof(m));
	return t_admin(t, HW_MAP, ctx, 0);
}

static inline unsigned t_unmap(struct t_sim *t, unsigned ctx, uint64_t va)
{
	struct hw_map m = { .va = va };

	memcpy(t_args(t), &m, sizeof(m));
	return t_admin(t, HW_UNMAP, ctx, 0);
}

/* A queue with rings of its own; *r is filled if it was made. */
static inline unsigned t_queue(struct t_sim *t, struct t_ring *r, struct hw_queue q)
{
	unsigned page = 2 * t->n_rings, status;

	assert_true(t->n_rings < T_RINGS);
	*r = (struct t_ring){ 0 };
	q.sq_iova = q.sq_iova ? q.sq_iova : T_IOVA + page * HW_PAGE;
	q.cq_iova = q.cq_iova ? q.cq_iova : T_IOVA + (page + 1) * HW_PAGE;
	q.n_entries = q.n_entries ? q.n_entries : T_ENTRIES;
	memset(t->host + page * HW_PAGE, 0, 2 * HW_PAGE);
	memcpy(t_args(t), &q, sizeof(q));
	status = t_admin(t, HW_QUEUE_CREATE, 0, 0);
	if (status)
		return status;
	*r = (struct t_ring){ .id = (unsigned)t->cqe.value, .page = page };
	t->n_rings++;
	return 0;
}

static inline void t_bring_up(struct t_sim *t)
{
	t->n_rings = 1;
	t->admin = (struct t_ring){ 0 };
	memset(t->host, 0, 2 * HW_PAGE);
	sim_mmio_write(t->dev, HW_REG_ASQ, 8, T_IOVA);
	sim_mmio_write(t->dev, HW_REG_ACQ, 8, T_IOVA + HW_PAGE);
	sim_mmio_write(t->dev, HW_REG_AQSIZE, 4, T_ENTRIES);
	sim_mmio_write(t->dev, HW_REG_CTRL, 4, HW_CTRL_ENABLE);
	assert_true(sim_mmio_read(t->dev, HW_REG_STATUS, 4) & HW_STATUS_READY);
	assert_int_equal(t_admin(t, HW_CTX_CREATE, 0, 0), 0);
	t->ctx = (unsigned)t->cqe.value;
	assert_int_equal(t_map(t, t->ctx, T_HBM_VA, 0, t->hbm_bytes, HW_MAP_WRITE), 0);
	assert_int_equal(t_map(t, t->ctx, T_HOST_VA, T_IOVA + T_WINDOW * HW_PAGE,
			       T_WINDOW_PAGES * HW_PAGE, HW_MAP_WRITE | HW_MAP_HOST), 0);
	assert_int_equal(t_queue(t, &t->work, (struct hw_queue){
		.ctx = (uint16_t)t->ctx, .cls = HW_CLASS_COMPUTE,
		.vector = HW_NO_VECTOR }), 0);
	assert_int_equal(t_queue(t, &t->dma, (struct hw_queue){
		.ctx = (uint16_t)t->ctx, .cls = HW_CLASS_DMA, .vector = HW_NO_VECTOR }), 0);
}

/* A device, of a model that is the caller's. */
static inline void t_attach(struct t_sim *t, struct sim_device *dev)
{
	struct err err = { 0 };

	memset(t, 0, sizeof(*t));
	t->dev = dev;
	t->host = aligned_alloc(HW_PAGE, T_PAGES * HW_PAGE);
	assert_non_null(t->host);
	memset(t->host, 0, T_PAGES * HW_PAGE);
	t->window = t->host + T_WINDOW * HW_PAGE;
	t->hbm = sim_hbm(t->dev, &t->hbm_bytes);
	assert_int_equal(sim_dma_map(t->dev, T_IOVA, t->host, T_PAGES * HW_PAGE, true, &err),
			 0);
	t_bring_up(t);
}

/* Device 0 of a model with these options ("lanes=2,path=avx2", NULL: defaults). */
static inline void t_open(struct t_sim *t, const char *options)
{
	struct sim_options o;
	struct err err = { 0 };
	struct sim *sim;

	assert_int_equal(sim_options_parse(options, &o, &err), 0);
	if (!o.hbm_bytes)
		o.hbm_bytes = T_HBM_BYTES;
	if (sim_create(&o, &sim, &err))
		fail_msg("%s", err.msg);
	t_attach(t, sim_device(sim, 0));
	t->sim = sim;
}

/* After t_attach: once the model is destroyed. */
static inline void t_close(struct t_sim *t)
{
	sim_destroy(t->sim);
	free(t->host);
}

/* The n chips of a model with these options. */
static inline void t_open_chips(struct t_sim *t, unsigned n, const char *options)
{
	t_open(&t[0], options);
	for (unsigned i = 1; i < n; i++)
		t_attach(&t[i], sim_device(t[0].sim, i));
}

static inline void t_close_chips(struct t_sim *t, unsigned n)
{
	sim_destroy(t[0].sim);
	for (unsigned i = 0; i < n; i++)
		free(t[i].host);
}

/* A window on its HBM: the request's status, and the key. */
static inline unsigned t_lend(struct t_sim *t, uint64_t va, uint64_t bytes, uint64_t *key)
{
	struct hw_window w = { va, bytes };
	unsigned status;

	memcpy(t_args(t), &w, sizeof(w));
	status = t_admin(t, HW_WINDOW_OPEN, t->ctx, 0);
	if (!status)
		*key = t->cqe.value;
	return status;
}

static inline unsigned t_borrow(struct t_sim *t, struct hw_peer_map m)
{
	memcpy(t_args(t), &m, sizeof(m));
	return t_admin(t, HW_PEER_MAP, t->ctx, 0);
}

/* ---- programs ---- */

static inline void t_program(struct t_program *p)
{
	memset(p, 0, sizeof(*p));
}

/* The number of the new binding. */
static inline unsigned t_bind(struct t_program *p, uint64_t va, uint64_t bytes,
			      unsigned access)
{
	p->bind[p->n_bindings] = (struct hw_binding){ va, bytes };
	p->want[p->n_bindings] = (struct hw_program_binding){ bytes, access, 0 };
	return p->n_bindings++;
}

/* Adds a whole instruction; its offset. */
static inline size_t t_add(struct t_program *p, const void *insn, size_t bytes)
{
	size_t at = p->bytes;

	assert_true(at + bytes <= sizeof(p->code));
	memcpy(p->code + at, insn, bytes);
	p->bytes += bytes;
	return at;
}

static inline size_t t_scalar(struct t_program *p, struct isa_scalar s)
{
	s.insn.bytes = sizeof(s);
	return t_add(p, &s, sizeof(s));
}

static inline size_t t_li(struct t_program *p, unsigned rd, int64_t imm)
{
	return t_scalar(p, (struct isa_scalar){ .insn.op = ISA_LI, .rd = (uint8_t)rd,
						.imm = imm });
}

static inline size_t t_halt(struct t_program *p)
{
	return t_scalar(p, (struct isa_scalar){ .insn.op = ISA_HALT });
}

/* A branch (JMP, BZ, BNZ, CALL) of `imm` bytes. */
static inline size_t t_branch(struct t_program *p, unsigned op, unsigned ra, int64_t imm)
{
	return t_scalar(p, (struct isa_scalar){ .insn.op = (uint16_t)op, .ra = (uint8_t)ra,
						.imm = imm });
}

/* Loads into `ctx`: 0 and *id, or the status, and t->refused_at. */
static inline unsigned t_load_in(struct t_sim *t, const struct t_program *p, unsigned ctx,
				 uint32_t *id)
{
	uint64_t code = t->hbm_bytes - T_CODE_ROOM;
	struct hw_program h = { .code_va = T_HBM_VA + code, .code_bytes = p->bytes,
				.bindings_iova = t_iova(t, t_args(t)) + sizeof(h),
				.n_bindings = p->n_bindings, .ctx = (uint16_t)ctx };
	unsigned status;

	memcpy(t->hbm + code, p->code, p->bytes);
	memcpy(t_args(t), &h, sizeof(h));
	memcpy((uint8_t *)t_args(t) + sizeof(h), p->want, sizeof(p->want));
	status = t_admin(t, HW_PROGRAM_CREATE, 0, 0);
	*id = (uint32_t)t->cqe.value;
	t->refused_at = t->cqe.detail;
	return status;
}

static inline unsigned t_load(struct t_sim *t, const struct t_program *p, uint32_t *id)
{
	return t_load_in(t, p, t->ctx, id);
}

static inline unsigned t_unload(struct t_sim *t, uint32_t id)
{
	return t_admin(t, HW_PROGRAM_DESTROY, 0, id);
}

/* The descriptor that runs p as `id`. Its bindings go to the last page of the window,
 * which the next call overwrites. */
static inline struct hw_sqe t_execute(struct t_sim *t, const struct t_program *p,
				      uint32_t id)
{
	uint64_t at = (T_WINDOW_PAGES - 1) * HW_PAGE;

	memcpy(t->window + at, p->bind, sizeof(p->bind));
	return (struct hw_sqe){ .op = HW_EXECUTE, .flags = p->flags,
		.u.execute = { .bindings = T_HOST_VA + at, .program = id,
			       .n_bindings = p->n_bindings, .limit_ns = p->limit_ns } };
}

/* The newest fault record. */
static inline void t_last_fault(struct t_sim *t)
{
	assert_int_equal(t_admin(t, HW_LOG_PAGE, HW_LOG_FAULT, 0), 0);
	memcpy(&t->fault, t_args(t), sizeof(t->fault));
}

static inline unsigned t_reset(struct t_sim *t, const struct t_ring *r)
{
	return t_admin(t, HW_QUEUE_RESET, r->id, 0);
}

/* Loads, runs and unloads p: 0, the status of the refusal (t->refused_at), or that of
 * the fault (t->fault; the queue is reset). */
static inline unsigned t_run(struct t_sim *t, const struct t_program *p)
{
	unsigned status, end;
	uint32_t id;

	status = t_load(t, p, &id);
	if (status)
		return status;
	status = t_ask(t, &t->work, t_execute(t, p, id));
	if (status >= HW_ST_FAULTS) {
		t_last_fault(t);
		assert_int_equal(t_reset(t, &t->work), 0);
	}
	end = t_unload(t, id);
	assert_int_equal(end, 0);
	return status;
}

#endif
