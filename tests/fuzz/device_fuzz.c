/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hostile drivers and programs against the device model.
 *
 * An input is a list of records: a byte says what (a raw admin or work descriptor, a
 * register write, a program), the rest is its content. Before each input the device
 * is reset and given a context, a map and two queues, so that what follows
 * reaches deep. A completion that does not come within seconds is a finding: the
 * device must answer every descriptor that it consumed, or fault.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hal/base/clock.h"
#include "hal/hw/desc.h"
#include "hal/hw/regs.h"
#include "hal/sim/sim.h"

#define RING 16u
#define HBM_VA (1ull << 40)
#define HBM_MAPPED (1u << 20)
#define HOST_BYTES (1u << 16)
#define ANSWER_NS 5000000000ll

/* One page each; host memory that the device may reach. */
enum { ADMIN_SQ, ADMIN_CQ, WORK_SQ, WORK_CQ, DMA_SQ, DMA_CQ, ARGS, DATA };

struct ring {
	uint16_t id;
	unsigned sq_page, cq_page;
	uint32_t tail, head;
};

static struct sim_device *dev;
static _Alignas(4096) uint8_t host[HOST_BYTES];

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void *page(unsigned i)
{
	return host + i * 4096u;
}

static uint64_t iova(unsigned i)
{
	return (uintptr_t)page(i);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct sim_options options = { .n_devices = 1, .hbm_bytes = 4u << 20, .lanes = 1 };
	struct sim *sim;
	struct err err;

	(void)argc;
	(void)argv;
	if (sim_create(&options, &sim, &err) ||
	    sim_dma_map(sim_device(sim, 0), (uintptr_t)host, host, HOST_BYTES, true, &err)) {
		fprintf(stderr, "%s\n", err.msg);
		exit(1);
	}
	dev = sim_device(sim, 0);
	return 0;
}

static void put(struct ring *r, const struct hw_sqe *sqe)
{
	memcpy((uint8_t *)page(r->sq_page) + r->tail % RING * sizeof(*sqe), sqe, sizeof(*sqe));
	r->tail++;
	sim_mmio_write(dev, hw_doorbell(r->id), 4, r->tail);
}

/* The next completion, or NULL if none comes and the queue may be stopped. */
static const struct hw_cqe *take(struct ring *r, bool must)
{
	volatile struct hw_cqe *cqe = (struct hw_cqe *)page(r->cq_page) + r->head % RING;
	unsigned phase = (r->head / RING + 1) & 1;
	int64_t deadline = clock_after(must ? ANSWER_NS : 200000);

	while ((cqe->phase & 1) != phase) {
		if (sim_mmio_read(dev, HW_REG_STATUS, 4) & HW_STATUS_FATAL)
			return NULL;
		if (clock_ns() < deadline)
			continue;
		if (!must)
			return NULL;
		fprintf(stderr, "queue %u does not answer\n", r->id);
		abort();
	}
	r->head++;
	return (const struct hw_cqe *)cqe;
}

static uint64_t ask(struct ring *admin, struct hw_sqe sqe)
{
	const struct hw_cqe *cqe;

	put(admin, &sqe);
	cqe = take(admin, true);
	return cqe && !cqe->status ? cqe->value : 0;
}

static void make_queue(struct ring *admin, struct ring *r, uint64_t ctx, uint8_t cls)
{
	struct hw_queue *q = page(ARGS);

	*q = (struct hw_queue){ .sq_iova = iova(r->sq_page), .cq_iova = iova(r->cq_page),
				.n_entries = RING, .ctx = (uint16_t)ctx, .cls = cls,
				.vector = HW_NO_VECTOR, .limit_ns = 1000000 };
	r->id = (uint16_t)ask(admin, (struct hw_sqe){ .op = HW_QUEUE_CREATE,
						      .u.admin.addr = iova(ARGS) });
}

static void bring_up(struct ring *admin, struct ring *work, struct ring *dma,
		     uint64_t *ctx)
{
	struct hw_map *m = page(ARGS);

	sim_flr(dev);
	memset(host, 0, HOST_BYTES);
	*admin = (struct ring){ 0, ADMIN_SQ, ADMIN_CQ, 0, 0 };
	*work = (struct ring){ 0, WORK_SQ, WORK_CQ, 0, 0 };
	*dma = (struct ring){ 0, DMA_SQ, DMA_CQ, 0, 0 };
	sim_mmio_write(dev, HW_REG_ASQ, 8, iova(ADMIN_SQ));
	sim_mmio_write(dev, HW_REG_ACQ, 8, iova(ADMIN_CQ));
	sim_mmio_write(dev, HW_REG_AQSIZE, 4, RING);
	sim_mmio_write(dev, HW_REG_CTRL, 4, HW_CTRL_ENABLE);
	*ctx = ask(admin, (struct hw_sqe){ .op = HW_CTX_CREATE });
	*m = (struct hw_map){ .va = HBM_VA, .bytes = HBM_MAPPED, .flags = HW_MAP_WRITE };
	ask(admin, (struct hw_sqe){ .op = HW_MAP, .id = (uint16_t)*ctx,
				    .u.admin.addr = iova(ARGS) });
	*m = (struct hw_map){ .va = iova(DATA), .pa = iova(DATA), .bytes = 4096,
			      .flags = HW_MAP_WRITE | HW_MAP_HOST };
	ask(admin, (struct hw_sqe){ .op = HW_MAP, .id = (uint16_t)*ctx,
				    .u.admin.addr = iova(ARGS) });
	make_queue(admin, work, *ctx, HW_CLASS_COMPUTE);
	make_queue(admin, dma, *ctx, HW_CLASS_DMA);
}

/* Loads `code` with two bindings in HBM and runs it. */
static void run_program(struct ring *admin, struct ring *work, uint64_t ctx,
			const uint8_t *code, size_t n)
{
	struct hw_program *p = page(ARGS);
	struct hw_program_binding *declared = (void *)(p + 1);
	struct hw_binding *bound = page(DATA);
	uint64_t bytes, id;
	uint8_t *hbm = sim_hbm(dev, &bytes);

	memcpy(hbm, code, n);
	*p = (struct hw_program){ .code_va = HBM_VA, .code_bytes = n & ~7ull,
				  .bindings_iova = iova(ARGS) + sizeof(*p),
				  .n_bindings = 2, .ctx = (uint16_t)ctx };
	for (int i = 0; i < 2; i++) {
		declared[i] = (struct hw_program_binding){ 65536, HW_BIND_READ | HW_BIND_WRITE, 0 };
		bound[i] = (struct hw_binding){ HBM_VA + 65536u * (1u + (unsigned)i), 65536 };
	}
	id = ask(admin, (struct hw_sqe){ .op = HW_PROGRAM_CREATE, .id = (uint16_t)ctx,
					 .u.admin.addr = iova(ARGS) });
	if (!id)
		return;
	put(work, &(struct hw_sqe){ .op = HW_EXECUTE, .flags = HW_INLINE, .tag = 7,
		.u.execute = { .bindings = iova(DATA), .program = (uint32_t)id,
			       .n_bindings = 2 } });
	take(work, true);
	ask(admin, (struct hw_sqe){ .op = HW_QUEUE_RESET, .id = work->id });
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct ring admin, work, dma;
	struct hw_sqe sqe;
	uint64_t ctx;

	bring_up(&admin, &work, &dma, &ctx);
	while (n >= 1) {
		unsigned what = data[0] % 8;

		data++;
		n--;
		if (what < 4 && n < sizeof(sqe))
			break;
		if (what < 4)
			memcpy(&sqe, data, sizeof(sqe));
		if (what == 0) {
			/* Leave memory and rings to the harness: they are not isolated
			 * from a driver that asks for them. */
			put(&admin, &sqe);
			take(&admin, false);
		} else if (what == 1 || what == 2) {
			put(what == 1 ? &work : &dma, &sqe);
			take(what == 1 ? &work : &dma, false);
		} else if (what == 3) {
			sim_mmio_write(dev, sqe.tag % HW_BAR0_BYTES,
				       sqe.id % 2 ? 4 : 8, sqe.wait_va);
			sim_mmio_read(dev, (uint32_t)sqe.wait_value, sqe.id % 9);
			break;
		} else {
			run_program(&admin, &work, ctx, data, n > 60000 ? 60000 : n);
			break;
		}
		data += sizeof(sqe);
		n -= sizeof(sqe);
	}
	return 0;
}
