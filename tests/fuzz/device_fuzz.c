/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hostile drivers and programs against the device model.
 *
 * An input is a list of records: a byte says what (a raw admin or work descriptor, bytes
 * for a page that descriptors point to, a register write, a program), the rest is its
 * content. Before each input the device is reset and given a context, a map and two
 * queues, so that what follows reaches deep; host memory is at a fixed address, so
 * that an input can name it. A completion that does not come within seconds is a finding:
 * the device must answer every descriptor that it consumed, or fault.
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
#define HOST_IOVA 0x10000u
#define N_BINDINGS 6u
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
	return HOST_IOVA + i * 4096u;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct sim_options options = { .n_devices = 1, .hbm_bytes = 4u << 20, .lanes = 1 };
	struct sim *sim;
	struct err err;

	(void)argc;
	(void)argv;
	if (sim_create(&options, &sim, &err) ||
	    sim_dma_map(sim_device(sim, 0), HOST_IOVA, host, HOST_BYTES, true, &err)) {
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

static uint64_t ask(struct ring *admin, struct hw_sqe sqe, bool must)
{
	const struct hw_cqe *cqe;

	put(admin, &sqe);
	cqe = take(admin, must);
	return cqe && !cqe->status ? cqe->value : 0;
}

static void make_queue(struct ring *admin, struct ring *r, uint64_t ctx, uint8_t cls)
{
	struct hw_queue *q = page(ARGS);

	*q = (struct hw_queue){ .sq_iova = iova(r->sq_page), .cq_iova = iova(r->cq_page),
				.n_entries = RING, .ctx = (uint16_t)ctx, .cls = cls,
				.vector = HW_NO_VECTOR, .limit_ns = 1000000 };
	r->id = (uint16_t)ask(admin, (struct hw_sqe){ .op = HW_QUEUE_CREATE,
						      .u.admin.addr = iova(ARGS) }, true);
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
	*ctx = ask(admin, (struct hw_sqe){ .op = HW_CTX_CREATE }, true);
	*m = (struct hw_map){ .va = HBM_VA, .bytes = HBM_MAPPED, .flags = HW_MAP_WRITE };
	ask(admin, (struct hw_sqe){ .op = HW_MAP, .id = (uint16_t)*ctx,
				    .u.admin.addr = iova(ARGS) }, true);
	*m = (struct hw_map){ .va = iova(DATA), .pa = iova(DATA), .bytes = 4096,
			      .flags = HW_MAP_WRITE | HW_MAP_HOST };
	ask(admin, (struct hw_sqe){ .op = HW_MAP, .id = (uint16_t)*ctx,
				    .u.admin.addr = iova(ARGS) }, true);
	make_queue(admin, work, *ctx, HW_CLASS_COMPUTE);
	make_queue(admin, dma, *ctx, HW_CLASS_DMA);
}

/* Loads `code` with bindings in HBM and runs it. `must`: the rings are as the harness
 * made them, so there must be answers. */
static void run_program(struct ring *admin, struct ring *work, uint64_t ctx,
			const uint8_t *code, size_t n, bool must)
{
	struct hw_program *p = page(ARGS);
	struct hw_program_binding *declared = (void *)(p + 1);
	struct hw_binding *bound = page(DATA);
	uint64_t bytes, id;
	uint8_t *hbm = sim_hbm(dev, &bytes);

	memcpy(hbm, code, n);
	*p = (struct hw_program){ .code_va = HBM_VA, .code_bytes = n & ~7ull,
				  .bindings_iova = iova(ARGS) + sizeof(*p),
				  .n_bindings = N_BINDINGS, .ctx = (uint16_t)ctx };
	for (unsigned i = 0; i < N_BINDINGS; i++) {
		declared[i] = (struct hw_program_binding){ 65536, HW_BIND_READ | HW_BIND_WRITE, 0 };
		bound[i] = (struct hw_binding){ HBM_VA + 65536u * (1u + i), 65536 };
	}
	id = ask(admin, (struct hw_sqe){ .op = HW_PROGRAM_CREATE, .id = (uint16_t)ctx,
					 .u.admin.addr = iova(ARGS) }, must);
	if (!id)
		return;
	put(work, &(struct hw_sqe){ .op = HW_EXECUTE, .flags = HW_INLINE, .tag = 7,
		.u.execute = { .bindings = iova(DATA), .program = (uint32_t)id,
			       .n_bindings = N_BINDINGS } });
	take(work, must);
	ask(admin, (struct hw_sqe){ .op = HW_QUEUE_RESET, .id = work->id }, must);
}

/* Bytes into the pages ARGS and DATA. Returns what it took of the input. */
static size_t fill_pages(const uint8_t *data, size_t n)
{
	size_t bytes, at;

	if (n < 3)
		return n;
	at = (data[0] | (size_t)data[1] << 8) % (2 * 4096);
	bytes = data[2];
	if (bytes > n - 3)
		bytes = n - 3;
	if (bytes > 2 * 4096 - at)
		bytes = 2 * 4096 - at;
	memcpy((uint8_t *)page(ARGS) + at, data + 3, bytes);
	return 3 + bytes;
}

static void touch_register(const struct hw_sqe *sqe)
{
	sim_mmio_write(dev, sqe->tag % HW_BAR0_BYTES, sqe->id % 2 ? 4 : 8, sqe->wait_va);
	sim_mmio_read(dev, (uint32_t)sqe->wait_value, sqe->id % 9);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct ring admin, work, dma;
	bool is_clean = true;
	struct hw_sqe sqe;
	uint64_t ctx;

	bring_up(&admin, &work, &dma, &ctx);
	while (n >= 1) {
		unsigned what = data[0] % 8;

		data++;
		n--;
		if (what == 4) {
			size_t took = fill_pages(data, n);

			data += took;
			n -= took;
			continue;
		}
		if (what > 4) {
			run_program(&admin, &work, ctx, data, n > 60000 ? 60000 : n, is_clean);
			break;
		}
		if (n < sizeof(sqe))
			break;
		memcpy(&sqe, data, sizeof(sqe));
		data += sizeof(sqe);
		n -= sizeof(sqe);
		/* What a descriptor asks for may lie on the rings: a driver is not
		 * protected from itself, and the answers may be overwritten. */
		is_clean = false;
		if (what == 0) {
			put(&admin, &sqe);
			take(&admin, false);
		} else if (what == 3) {
			touch_register(&sqe);
		} else {
			put(what == 1 ? &work : &dma, &sqe);
			take(what == 1 ? &work : &dma, false);
		}
	}
	return 0;
}
