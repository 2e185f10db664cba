/* SPDX-License-Identifier: Apache-2.0 */
/* Address maps: of contexts, and what the IOMMU lets through; HBM as a file that others may hold:
 * its size stays, and new memory takes its place. */
#include "tests/unit/sim/sim_test.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define FILE_BYTES (4u << 20)

static struct t_sim t;

static int setup(void **state)
{
	(void)state;
	t_open(&t, "lanes=1");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	t_close(&t);
	return 0;
}

static unsigned new_ctx(void)
{
	assert_int_equal(t_admin(&t, HW_CTX_CREATE, 0, 0), 0);
	return (unsigned)t.cqe.value;
}

static unsigned copy(uint64_t dst, uint64_t src, uint64_t bytes)
{
	unsigned status = t_ask(&t, &t.dma, (struct hw_sqe){ .op = HW_COPY,
		.u.copy = { .src = src, .dst = dst, .bytes = bytes } });

	if (status >= HW_ST_FAULTS) {
		t_last_fault(&t);
		assert_int_equal(t_reset(&t, &t.dma), 0);
	}
	return status;
}

static void bad_mappings_are_refused(void **state)
{
	unsigned ctx = new_ctx();
	uint64_t max = UINT64_MAX - 4095;

	(void)state;
	assert_int_equal(t_map(&t, ctx, 1, 0, 4096, 0), HW_ST_BAD_FIELD);
	assert_int_equal(t_map(&t, ctx, 0, 1, 4096, 0), HW_ST_BAD_FIELD);
	assert_int_equal(t_map(&t, ctx, 0, 0, 4095, 0), HW_ST_BAD_FIELD);
	assert_int_equal(t_map(&t, ctx, 0, 0, 0, 0), HW_ST_BAD_FIELD);
	assert_int_equal(t_map(&t, ctx, max, 0, 8192, 0), HW_ST_BAD_FIELD);
	assert_int_equal(t_map(&t, ctx, 0, max, 8192, HW_MAP_HOST), HW_ST_BAD_FIELD);
	assert_int_equal(t_map(&t, ctx, 0, t.hbm_bytes, 4096, 0), HW_ST_BAD_FIELD);
	assert_int_equal(t_map(&t, ctx, 0, 4096, t.hbm_bytes, 0), HW_ST_BAD_FIELD);
	assert_int_equal(t_map(&t, ctx, 0, 0, 4096, 4), HW_ST_BAD_FIELD);
	assert_int_equal(t_map(&t, 63, 0, 0, 4096, 0), HW_ST_NO_SUCH_ID);
	assert_int_equal(t_map(&t, 0, 0, 0, 4096, 0), HW_ST_NO_SUCH_ID);
	assert_int_equal(t_map(&t, 0xffff, 0, 0, 4096, 0), HW_ST_NO_SUCH_ID);
	assert_int_equal(t_admin(&t, HW_CTX_DESTROY, ctx, 0), 0);
	assert_int_equal(t_admin(&t, HW_CTX_DESTROY, ctx, 0), HW_ST_NO_SUCH_ID);
}

static void overlaps_are_refused_and_neighbours_not(void **state)
{
	unsigned ctx = new_ctx();
	uint64_t m = 1 << 20;

	(void)state;
	assert_int_equal(t_map(&t, ctx, m, 0, 8192, 0), 0);
	assert_int_equal(t_map(&t, ctx, m, 0, 4096, 0), HW_ST_OVERLAP);
	assert_int_equal(t_map(&t, ctx, m + 4096, 0, 8192, 0), HW_ST_OVERLAP);
	assert_int_equal(t_map(&t, ctx, m - 4096, 0, 8192, 0), HW_ST_OVERLAP);
	assert_int_equal(t_map(&t, ctx, 0, 0, 2 * m, 0), HW_ST_OVERLAP);
	assert_int_equal(t_map(&t, ctx, m - 4096, 0, 4096, 0), 0);
	assert_int_equal(t_map(&t, ctx, m + 8192, 0, 4096, 0), 0);
	assert_int_equal(t_unmap(&t, ctx, m + 4096), HW_ST_NO_SUCH_ID);
	assert_int_equal(t_unmap(&t, ctx, m), 0);
	assert_int_equal(t_unmap(&t, ctx, m), HW_ST_NO_SUCH_ID);
	assert_int_equal(t_map(&t, ctx, m, 0, 8192, 0), 0);
	assert_int_equal(t_admin(&t, HW_CTX_DESTROY, ctx, 0), 0);
}

static void a_thousand_mappings_in_any_order(void **state)
{
	unsigned ctx = new_ctx(), n = 1000;

	(void)state;
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(t_map(&t, ctx, (uint64_t)(i * 389 % n) << 13, 0, 4096, 0), 0);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(t_unmap(&t, ctx, (uint64_t)(i * 577 % n) << 13), 0);
	assert_int_equal(t_admin(&t, HW_CTX_DESTROY, ctx, 0), 0);
}

static void contexts_run_out_and_come_back(void **state)
{
	unsigned n = 0, ids[HW_MAX_CONTEXTS];

	(void)state;
	while (!t_admin(&t, HW_CTX_CREATE, 0, 0))
		ids[n++] = (unsigned)t.cqe.value;
	assert_int_equal(t.cqe.status, HW_ST_NO_ROOM);
	assert_int_equal(n, HW_MAX_CONTEXTS - 2);
	while (n)
		assert_int_equal(t_admin(&t, HW_CTX_DESTROY, ids[--n], 0), 0);
}

static void read_only_memory_is_not_written(void **state)
{
	uint64_t ro = 1ull << 33;

	(void)state;
	assert_int_equal(t_map(&t, t.ctx, ro, 0, 4096, 0), 0);
	memset(t.hbm, 7, 4096);
	assert_int_equal(copy(T_HBM_VA + 8192, ro, 4096), 0);
	assert_int_equal(copy(ro, T_HBM_VA + 8192, 4096), HW_ST_MAP);
	assert_int_equal(t.fault.va, ro);
	assert_int_equal(t.fault.is_write, 1);
	assert_int_equal(copy(ro + 4096, T_HBM_VA, 8), HW_ST_MAP);
	assert_int_equal(copy(T_HBM_VA, ro - 8, 16), HW_ST_MAP);
	assert_int_equal(t.fault.is_write, 0);
	assert_int_equal(t_unmap(&t, t.ctx, ro), 0);
	assert_int_equal(copy(T_HBM_VA, ro, 8), HW_ST_MAP);
}

/* Memory that goes on behind the map, but of which a later part may not be written. */
static void writes_do_not_run_on_into_read_only_memory(void **state)
{
	const uint64_t va = 1ull << 35, at = 64 << 20;
	static uint8_t want[8192];

	(void)state;
	memset(want, 0x33, sizeof(want));
	for (unsigned how = 0; how < 2; how++) {
		uint8_t *p = how ? t.window : t.hbm + at;
		uint64_t pa = how ? T_IOVA + T_WINDOW * HW_PAGE : at;
		unsigned host = how ? HW_MAP_HOST : 0;
		struct t_program prog;

		memset(p, 0x33, sizeof(want));
		assert_int_equal(t_map(&t, t.ctx, va, pa, 4096, HW_MAP_WRITE | host), 0);
		assert_int_equal(t_map(&t, t.ctx, va + 4096, pa + 4096, 4096, host), 0);
		assert_int_equal(copy(va + 4088, T_HBM_VA, 8), 0);
		memset(p, 0x33, sizeof(want));
		assert_int_equal(copy(va + 4088, T_HBM_VA, 16), HW_ST_MAP);
		assert_int_equal(t.fault.va, va + 4096);
		assert_int_equal(t.fault.is_write, 1);
		assert_int_equal(copy(va, T_HBM_VA, 8192), HW_ST_MAP);
		/* a program's binding is read in one piece, and not written */
		for (unsigned write = 0; write < 2; write++) {
			t_program(&prog);
			t_bind(&prog, va, 8192, HW_BIND_READ | (write ? HW_BIND_WRITE : 0));
			if (write)
				t_scalar(&prog, (struct isa_scalar){ .insn.op = ISA_ST,
					 .elem = ELEM_U64, .imm = 4096 });
			t_halt(&prog);
			assert_int_equal(t_run(&t, &prog), write ? HW_ST_MAP : 0);
		}
		assert_memory_equal(p, want, sizeof(want));
		assert_int_equal(t_unmap(&t, t.ctx, va), 0);
		assert_int_equal(t_unmap(&t, t.ctx, va + 4096), 0);
	}
}

/* A fault in the second piece leaves the first unwritten. */
static void ranges_span_mappings(void **state)
{
	uint64_t va = 1ull << 34;

	(void)state;
	assert_int_equal(t_map(&t, t.ctx, va, 1 << 20, 4096, HW_MAP_WRITE), 0);
	assert_int_equal(t_map(&t, t.ctx, va + 4096, 3 << 20, 4096, HW_MAP_WRITE), 0);
	assert_int_equal(t_map(&t, t.ctx, va + 8192, T_IOVA + T_WINDOW * HW_PAGE, 4096,
			       HW_MAP_WRITE | HW_MAP_HOST), 0);
	for (unsigned i = 0; i < 12288; i++)
		t.hbm[i] = (uint8_t)(i * 31 + (i >> 8));
	memset(t.window, 0, 4096);
	assert_int_equal(copy(va, T_HBM_VA, 12288), 0);
	assert_memory_equal(t.hbm + (1 << 20), t.hbm, 4096);
	assert_memory_equal(t.hbm + (3 << 20), t.hbm + 4096, 4096);
	assert_memory_equal(t.window, t.hbm + 8192, 4096);
	assert_int_equal(copy(T_HBM_VA + 65536, va + 100, 12000), 0);
	assert_memory_equal(t.hbm + 65536, t.hbm + 100, 12000);
	memset(t.hbm + (1 << 20), 0, 4096);
	assert_int_equal(copy(va, T_HBM_VA, 12289), HW_ST_MAP);
	assert_int_equal(t.fault.va, va + 12288);
	assert_int_equal(t.hbm[1 << 20], 0);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(t_unmap(&t, t.ctx, va + 4096 * i), 0);
}

/* Its second half lies before the first, then in HBM, then nowhere. */
static void a_bindings_table_spans_mappings(void **state)
{
	const uint64_t va = 1ull << 34, window = T_IOVA + T_WINDOW * HW_PAGE;
	struct hw_binding *table = (void *)(t.window + 4096 - 24);
	static struct t_program p;
	struct hw_sqe d;
	uint32_t id;

	(void)state;
	t_program(&p);
	for (unsigned i = 0; i < 3; i++)
		t_bind(&p, T_HBM_VA + i * 64, 64, HW_BIND_WRITE);
	for (unsigned i = 0; i < 3; i++) {
		t_li(&p, 1, 70 + i);
		t_scalar(&p, (struct isa_scalar){ .insn.op = ISA_ST, .rb = 1, .elem = ELEM_U64,
						  .binding = (uint16_t)i });
	}
	t_halt(&p);
	assert_int_equal(t_load(&t, &p, &id), 0);
	d = t_execute(&t, &p, id);
	d.u.execute.bindings = va + 4096 - 24;
	/* Row 1 lies on both sides of the border. */
	memcpy(table, p.bind, 24);
	for (unsigned how = 0; how < 3; how++) {
		memset(t.hbm, 0, 4096);
		assert_int_equal(t_map(&t, t.ctx, va, window, 4096, HW_MAP_HOST), 0);
		if (how == 0) {
			assert_int_equal(t_map(&t, t.ctx, va + 4096, window + 8192, 4096,
					       HW_MAP_HOST), 0);
			memcpy(t.window + 8192, (uint8_t *)p.bind + 24, 24);
		} else if (how == 1) {
			assert_int_equal(t_map(&t, t.ctx, va + 4096, 1 << 20, 4096, 0), 0);
			memcpy(t.hbm + (1 << 20), (uint8_t *)p.bind + 24, 24);
		}
		if (how < 2) {
			assert_int_equal(t_ask(&t, &t.work, d), 0);
			for (unsigned i = 0; i < 3; i++)
				assert_int_equal(t.hbm[i * 64], 70 + i);
			assert_int_equal(t_unmap(&t, t.ctx, va + 4096), 0);
		} else {
			assert_int_equal(t_ask(&t, &t.work, d), HW_ST_MAP);
			t_last_fault(&t);
			assert_int_equal(t.fault.va, va + 4096);
			assert_int_equal(t.fault.binding, 0xffffffffu);
			assert_int_equal(t.hbm[0], 0);
			assert_int_equal(t_reset(&t, &t.work), 0);
		}
		assert_int_equal(t_unmap(&t, t.ctx, va), 0);
	}
	assert_int_equal(t_unload(&t, id), 0);
}

static void dma_mappings_follow_their_rules(void **state)
{
	static _Alignas(4096) uint8_t memory[4][4096];
	uint64_t at = 1ull << 40, va = 1ull << 35;
	struct err err;

	(void)state;
	assert_int_equal(sim_dma_map(t.dev, at + 1, memory, 4096, true, &err),
			 ERR_INVALID_ARGUMENT);
	assert_int_equal(sim_dma_map(t.dev, at, memory, 100, true, &err), ERR_INVALID_ARGUMENT);
	assert_int_equal(sim_dma_map(t.dev, at, memory, 0, true, &err), ERR_INVALID_ARGUMENT);
	assert_int_equal(sim_dma_map(t.dev, UINT64_MAX - 4095, memory, 8192, true, &err),
			 ERR_INVALID_ARGUMENT);
	assert_int_equal(sim_dma_map(t.dev, at, memory[0], 4096, true, &err), 0);
	assert_int_equal(sim_dma_map(t.dev, at, memory, 8192, true, &err), ERR_ALREADY_EXISTS);
	assert_int_equal(sim_dma_map(t.dev, at + 4096, memory[1], 4096, false, &err), 0);
	assert_int_equal(t_map(&t, t.ctx, va, at, 12288, HW_MAP_WRITE | HW_MAP_HOST), 0);
	memset(memory, 5, sizeof(memory));
	assert_int_equal(copy(T_HBM_VA, va, 8192), 0);
	assert_int_equal(t.hbm[8191], 5);
	assert_int_equal(copy(va, T_HBM_VA, 4096), 0);
	assert_int_equal(copy(va, T_HBM_VA, 4097), HW_ST_MAP);	/* read only */
	assert_int_equal(copy(T_HBM_VA, va, 8193), HW_ST_MAP);	/* not there */
	assert_int_equal(sim_dma_unmap(t.dev, at + 4096, &err), 0);
	assert_int_equal(sim_dma_unmap(t.dev, at + 4096, &err), ERR_NOT_FOUND);
	assert_int_equal(copy(T_HBM_VA, va, 4097), HW_ST_MAP);
	assert_int_equal(sim_dma_unmap(t.dev, at, &err), 0);
	assert_int_equal(copy(T_HBM_VA, va, 1), HW_ST_MAP);
	assert_int_equal(t_unmap(&t, t.ctx, va), 0);
}

/* Starts a program that runs until it is stopped, on a binding at va. */
static void run_for_ever(struct t_program *p, uint64_t va, uint32_t *id)
{
	struct hw_sqe sqe;

	t_program(p);
	t_bind(p, T_HBM_VA, 64, HW_BIND_READ | HW_BIND_WRITE);
	t_bind(p, va, 64, HW_BIND_READ);
	t_li(p, 1, 1);
	t_scalar(p, (struct isa_scalar){ .insn.op = ISA_ST, .elem = ELEM_U64, .rb = 1 });
	t_branch(p, ISA_JMP, 0, -24);
	*(volatile uint64_t *)t.hbm = 0;
	assert_int_equal(t_load(&t, p, id), 0);
	sqe = t_execute(&t, p, *id);
	t_put(&t, &t.work, sqe);
	t_ring_bell(&t, &t.work);
	while (!__atomic_load_n((uint64_t *)t.hbm, __ATOMIC_ACQUIRE))
		;
}

static void unmapping_what_runs_is_safe(void **state)
{
	static struct t_program p;
	uint8_t *memory = aligned_alloc(4096, 4096);
	uint64_t at = 1ull << 40, va = 1ull << 35, hva = 1ull << 36;
	uint32_t id;

	(void)state;
	memset(memory, 0, 4096);
	assert_int_equal(sim_dma_map(t.dev, at, memory, 4096, true, NULL), 0);
	assert_int_equal(t_map(&t, t.ctx, va, at, 4096, HW_MAP_HOST), 0);
	assert_int_equal(t_map(&t, t.ctx, hva, 4096, 4096, 0), 0);
	run_for_ever(&p, va, &id);
	/* In the context's map: refused while in use, others not. */
	assert_int_equal(t_unmap(&t, t.ctx, va), HW_ST_BUSY);
	assert_int_equal(t_unmap(&t, t.ctx, T_HBM_VA), HW_ST_BUSY);
	assert_int_equal(t_unmap(&t, t.ctx, hva), 0);
	assert_false(t_poll(&t, &t.work));
	/* In the IOMMU: the run is stopped first. */
	assert_int_equal(sim_dma_unmap(t.dev, at, NULL), 0);
	free(memory);
	assert_int_equal(t_take(&t, &t.work), HW_ST_MAP);
	assert_int_equal(t_reset(&t, &t.work), 0);
	assert_int_equal(t_unmap(&t, t.ctx, va), 0);
	assert_int_equal(t_unload(&t, id), 0);
}

static void unmapping_what_others_use_leaves_them(void **state)
{
	static _Alignas(4096) uint8_t memory[4096];
	static struct t_program p;
	uint64_t at = 1ull << 40;
	uint32_t id;

	(void)state;
	assert_int_equal(sim_dma_map(t.dev, at, memory, 4096, true, NULL), 0);
	run_for_ever(&p, T_HOST_VA, &id);
	assert_int_equal(sim_dma_unmap(t.dev, at, NULL), 0);
	assert_false(t_poll(&t, &t.work));
	assert_int_equal(t_reset(&t, &t.work), 0);
	assert_int_equal(t_take(&t, &t.work), HW_ST_RESET);
	assert_int_equal(t_unload(&t, id), 0);
}

/* An IOMMU makes one range of scattered pages, a ring that has a hole is refused. */
static void rings_may_lie_in_pieces(void **state)
{
	static _Alignas(4096) uint8_t memory[3][4096];
	const struct hw_cqe *cq = (void *)memory[1];
	uint64_t at = 1ull << 41;
	struct hw_queue info = { .ctx = (uint16_t)t.ctx, .cls = HW_CLASS_DMA,
				 .vector = HW_NO_VECTOR, .n_entries = 128, .sq_iova = at,
				 .cq_iova = at + 8192 };
	int64_t deadline = clock_after(10000000000);
	struct t_ring q;

	(void)state;
	/* In the model's memory: second half, completions, first half. */
	assert_int_equal(sim_dma_map(t.dev, at, memory[2], 4096, true, NULL), 0);
	assert_int_equal(sim_dma_map(t.dev, at + 8192, memory[1], 4096, true, NULL), 0);
	assert_int_equal(t_queue(&t, &q, info), HW_ST_BAD_ADDRESS);
	assert_int_equal(sim_dma_map(t.dev, at + 4096, memory[0], 4096, true, NULL), 0);
	assert_int_equal(t_queue(&t, &q, info), 0);
	for (uint32_t i = 0; i < 128; i++)
		((struct hw_sqe *)memory[i < 64 ? 2 : 0])[i % 64] = (struct hw_sqe){
			.op = HW_NOP, .tag = i * 3 };
	q.tail = 128;
	t_ring_bell(&t, &q);
	for (uint32_t i = 0; i < 128; i++) {
		while (!(__atomic_load_n(&cq[i].phase, __ATOMIC_ACQUIRE) & 1) &&
		       clock_ns() < deadline)
			sched_yield();
		assert_int_equal(cq[i].tag, i * 3);
		assert_int_equal(cq[i].status, 0);
	}
	assert_int_equal(t_admin(&t, HW_QUEUE_DESTROY, q.id, 0), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(sim_dma_unmap(t.dev, at + i * 4096, NULL), 0);
}

/* Rings that vanish cost their queue, nothing else. */
static void rings_may_vanish(void **state)
{
	uint8_t *memory = aligned_alloc(4096, 8192);
	uint64_t at = 1ull << 40;
	struct t_ring q;

	(void)state;
	memset(memory, 0, 8192);
	assert_int_equal(sim_dma_map(t.dev, at, memory, 8192, true, NULL), 0);
	assert_int_equal(t_queue(&t, &q, (struct hw_queue){ .ctx = (uint16_t)t.ctx,
		.cls = HW_CLASS_DMA, .vector = HW_NO_VECTOR, .sq_iova = at,
		.cq_iova = at + 4096 }), 0);
	assert_int_equal(sim_dma_unmap(t.dev, at, NULL), 0);
	free(memory);
	q.tail = 3;
	t_ring_bell(&t, &q);
	assert_int_equal(t_ask(&t, &t.dma, (struct hw_sqe){ .op = HW_NOP }), 0);
	assert_int_equal(t_reset(&t, &q), 0);
	assert_int_equal(t_admin(&t, HW_QUEUE_DESTROY, q.id, 0), 0);
}

static void queue_0_without_rings_is_fatal(void **state)
{
	uint8_t *memory = aligned_alloc(4096, 8192);
	uint64_t at = 1ull << 40;

	(void)state;
	memset(memory, 0, 8192);
	sim_flr(t.dev);
	assert_int_equal(sim_dma_map(t.dev, at, memory, 8192, true, NULL), 0);
	sim_mmio_write(t.dev, HW_REG_ASQ, 8, at);
	sim_mmio_write(t.dev, HW_REG_ACQ, 8, at + 4096);
	sim_mmio_write(t.dev, HW_REG_AQSIZE, 4, 16);
	sim_mmio_write(t.dev, HW_REG_CTRL, 4, HW_CTRL_ENABLE);
	assert_int_equal(sim_mmio_read(t.dev, HW_REG_STATUS, 4), HW_STATUS_READY);
	assert_int_equal(sim_dma_unmap(t.dev, at, NULL), 0);
	free(memory);
	sim_mmio_write(t.dev, hw_doorbell(0), 4, 1);
	assert_int_equal(sim_mmio_read(t.dev, HW_REG_STATUS, 4), HW_STATUS_FATAL);
	assert_int_equal(sim_mmio_read(t.dev, HW_REG_FATAL, 4), 1);
	sim_flr(t.dev);
	t_bring_up(&t);
}

/* ---- the file ---- */

static void size_is_sealed(void **state)
{
	struct sim_options o = { .hbm_bytes = FILE_BYTES, .lanes = 1, .hbm_file = true };
	struct sim *sim;
	struct err err;
	int fd;

	(void)state;
	assert_int_equal(sim_create(&o, &sim, &err), 0);
	fd = dup(sim_hbm_fd(sim_device(sim, 0)));
	assert_int_equal(ftruncate(fd, 4096), -1);
	assert_int_equal(ftruncate(fd, 2 * FILE_BYTES), -1);
	assert_int_equal(lseek(fd, 0, SEEK_END), FILE_BYTES);
	close(fd);
	sim_destroy(sim);
}

static void renewed_memory_is_zero_and_nobody_elses(void **state)
{
	struct sim_options o = { .n_devices = 2, .hbm_bytes = FILE_BYTES, .lanes = 1,
				 .hbm_file = true };
	uint64_t bytes;
	struct sim *sim;
	struct err err;
	uint8_t *hbm, *other, *held;

	(void)state;
	assert_int_equal(sim_create(&o, &sim, &err), 0);
	hbm = sim_hbm(sim_device(sim, 0), &bytes);
	other = sim_hbm(sim_device(sim, 1), &bytes);
	held = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
		    sim_hbm_fd(sim_device(sim, 0)), 0);
	assert_ptr_not_equal(held, MAP_FAILED);
	hbm[0] = other[0] = 1;
	hbm[FILE_BYTES - 1] = 2;
	assert_int_equal(held[0], 1);
	assert_int_equal(sim_hbm_renew(sim_device(sim, 0), &err), 0);
	assert_ptr_equal(sim_hbm(sim_device(sim, 0), &bytes), hbm);
	assert_int_equal(bytes, FILE_BYTES);
	assert_int_equal(hbm[0] | hbm[FILE_BYTES - 1], 0);
	assert_int_equal(other[0], 1);
	hbm[0] = 7;
	assert_int_equal(held[0], 1);
	held[0] = 9;
	assert_int_equal(hbm[0], 7);
	/* The new file is what the address shows. */
	munmap(held, FILE_BYTES);
	held = mmap(NULL, FILE_BYTES, PROT_READ, MAP_SHARED, sim_hbm_fd(sim_device(sim, 0)), 0);
	assert_int_equal(held[0], 7);
	munmap(held, FILE_BYTES);
	sim_destroy(sim);
}

/* Without a file, too. */
static void renewed_memory_of_one_process_is_zero(void **state)
{
	struct sim_options o = { .hbm_bytes = FILE_BYTES, .lanes = 1 };
	uint64_t bytes;
	struct sim *sim;
	struct err err;
	uint8_t *hbm;

	(void)state;
	assert_int_equal(sim_create(&o, &sim, &err), 0);
	assert_int_equal(sim_hbm_fd(sim_device(sim, 0)), -1);
	hbm = sim_hbm(sim_device(sim, 0), &bytes);
	assert_int_equal(bytes, FILE_BYTES);
	assert_int_equal((uintptr_t)hbm % (2 << 20), 0);
	hbm[0] = hbm[FILE_BYTES - 1] = 1;
	assert_int_equal(sim_hbm_renew(sim_device(sim, 0), &err), 0);
	assert_ptr_equal(sim_hbm(sim_device(sim, 0), &bytes), hbm);
	assert_int_equal(hbm[0] | hbm[FILE_BYTES - 1], 0);
	hbm[0] = hbm[FILE_BYTES - 1] = 1;
	sim_destroy(sim);
}

/* Bytes that the process may come to use now: with AddressSanitizer they are many. */
static rlim_t data_bytes(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	unsigned long long kib = 0;
	char line[128];

	assert_non_null(f);
	while (fgets(line, sizeof(line), f) && !sscanf(line, "VmData: %llu kB", &kib))
		;
	fclose(f);
	assert_true(kib > 0);
	return (rlim_t)kib << 10;
}

/* What may be used and never is, as most of HBM, counts as memory of the process, and not as a
 * file's. */
static void a_process_short_of_memory_has_hbm_in_a_file(void **state)
{
	struct sim_options o = { .hbm_bytes = (uint64_t)4 << 30, .lanes = 1 };
	struct rlimit before, less;
	uint64_t bytes;
	struct sim *sim;
	struct err err;
	uint8_t *hbm;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_DATA, &before), 0);
	less = before;
	less.rlim_cur = data_bytes() + ((rlim_t)2 << 30);
	assert_int_equal(setrlimit(RLIMIT_DATA, &less), 0);
	assert_int_equal(sim_create(&o, &sim, &err), 0);
	assert_int_equal(setrlimit(RLIMIT_DATA, &before), 0);
	assert_true(sim_hbm_fd(sim_device(sim, 0)) >= 0);
	hbm = sim_hbm(sim_device(sim, 0), &bytes);
	assert_int_equal(bytes, o.hbm_bytes);
	hbm[0] = hbm[bytes - 1] = 1;
	sim_destroy(sim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_mappings_are_refused),
		cmocka_unit_test(overlaps_are_refused_and_neighbours_not),
		cmocka_unit_test(a_thousand_mappings_in_any_order),
		cmocka_unit_test(contexts_run_out_and_come_back),
		cmocka_unit_test(read_only_memory_is_not_written),
		cmocka_unit_test(writes_do_not_run_on_into_read_only_memory),
		cmocka_unit_test(ranges_span_mappings),
		cmocka_unit_test(a_bindings_table_spans_mappings),
		cmocka_unit_test(dma_mappings_follow_their_rules),
		cmocka_unit_test(unmapping_what_runs_is_safe),
		cmocka_unit_test(unmapping_what_others_use_leaves_them),
		cmocka_unit_test(rings_may_lie_in_pieces),
		cmocka_unit_test(rings_may_vanish),
		cmocka_unit_test(queue_0_without_rings_is_fatal),
		cmocka_unit_test(size_is_sealed),
		cmocka_unit_test(renewed_memory_is_zero_and_nobody_elses),
		cmocka_unit_test(renewed_memory_of_one_process_is_zero),
		cmocka_unit_test(a_process_short_of_memory_has_hbm_in_a_file),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
