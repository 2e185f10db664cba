/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * HBM is cleared when it is given out: nobody reads what another left in it. Large
 * pieces are filled by the device, on a queue of a context of the driver's own, whose
 * map is all of HBM; small ones, and all where the device cannot or does not in time,
 * by the CPU through the BAR.
 *
 * What the device was asked to fill it may still fill later: before the CPU takes over,
 * and before the memory is anybody's, that context ends on the device, or a function
 * reset does it.
 *
 * A function reset switches the BAR off for a while and stores to it are lost: what was
 * cleared while one began is cleared again.
 */
#include <linux/dma-mapping.h>
#include <linux/io.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>

#include <drm/drm_print.h>

#include "tessera_drv.h"

#define ENTRIES 2u			/* one fill is on its way at a time */
#define CQ_AT (PAGE_SIZE / 2)
#define VA HW_PAGE			/* where the context sees HBM; not 0 */
#define DEVICE_BYTES ((u64)SZ_256K)	/* less is not worth an interrupt */
#define FILL_BYTES ((u64)SZ_1G)		/* of one descriptor */
#define CPU_BYTES ((u64)SZ_16M)		/* between two chances to yield */
#define FILL_MS 500u			/* for others' descriptors that come first */
#define BYTES_PER_MS ((u64)SZ_256K)	/* slower than any device */

static bool has_completion(struct tessera_clear *c)
{
	struct hw_cqe *cqe = (struct hw_cqe *)(c->memory + CQ_AT) + c->head % ENTRIES;
	u16 phase = (c->head / ENTRIES + 1) & 1;

	return (READ_ONCE(cqe->phase) & 1) == phase;
}

/* Whether what was made in `generation` is still there. */
static bool is_lost(struct tessera_device *tdev, u32 generation)
{
	return READ_ONCE(tdev->generation) != generation ||
	       READ_ONCE(tdev->state) != TESSERA_RUNNING;
}

/* When this returns the device fills nothing any more. */
static void stop_queue(struct tessera_device *tdev)
{
	struct tessera_clear *c = &tdev->clear;

	tessera_make_end(tdev, c->generation, HW_CTX_DESTROY, c->hw_ctx);
	c->generation = 0;
}

static int start_queue(struct tessera_device *tdev, u32 generation)
{
	struct tessera_clear *c = &tdev->clear;
	struct hw_map map = { .va = VA, .bytes = tdev->hbm_bytes, .flags = HW_MAP_WRITE };
	struct hw_queue queue = {
		.sq_iova = c->iova, .cq_iova = c->iova + CQ_AT, .n_entries = ENTRIES,
		.cls = HW_CLASS_DMA, .priority = 1,
	};
	struct tessera_request r = {
		.sqe = { .op = HW_MAP }, .in = &map, .in_bytes = sizeof(map),
	};
	u64 ctx = 0;
	int ret;

	if (c->generation == generation)
		return 0;
	c->generation = 0;
	memset(c->memory, 0, PAGE_SIZE);
	c->tail = 0;
	c->head = 0;
	ret = tessera_simple(tdev, generation, HW_CTX_CREATE, 0, &ctx);
	if (ret)
		return ret;
	c->generation = generation;
	c->hw_ctx = ctx;
	r.sqe.id = ctx;
	ret = tessera_request(tdev, generation, &r);
	if (!ret) {
		queue.ctx = ctx;
		r = (struct tessera_request){
			.sqe = { .op = HW_QUEUE_CREATE },
			.in = &queue, .in_bytes = sizeof(queue),
		};
		ret = tessera_request(tdev, generation, &r);
		c->hw_queue = r.value;
	}
	if (ret)
		stop_queue(tdev);
	return ret;
}

/*
 * Rings under admin.lock, which a reset takes when it ends a generation: afterwards the
 * doorbell may be another's.
 */
static int ring(struct tessera_device *tdev)
{
	struct tessera_clear *c = &tdev->clear;
	int ret = -ECANCELED;

	mutex_lock(&tdev->admin.lock);
	if (!is_lost(tdev, c->generation)) {
		tessera_write(tdev, hw_doorbell(c->hw_queue), ++c->tail);
		ret = 0;
	}
	mutex_unlock(&tdev->admin.lock);
	return ret;
}

static int await_completion(struct tessera_device *tdev, u64 bytes)
{
	struct tessera_clear *c = &tdev->clear;
	unsigned long deadline = jiffies + msecs_to_jiffies(FILL_MS + bytes / BYTES_PER_MS);
	struct hw_cqe *cqe;
	long left;

	/* Looks every few milliseconds too: an interrupt may be lost. */
	while (!(left = wait_event_killable_timeout(tdev->admin.wait, has_completion(c),
						    msecs_to_jiffies(10)))) {
		if (is_lost(tdev, c->generation))
			return -ECANCELED;
		if (time_after(jiffies, deadline))
			return -ETIMEDOUT;
	}
	if (left < 0)
		return -EINTR;
	dma_rmb();
	cqe = (struct hw_cqe *)(c->memory + CQ_AT) + c->head++ % ENTRIES;
	return tessera_status_errno(cqe->status);
}

/* 0: cleared. Else the device does nothing to it any more. */
static int clear_by_device(struct tessera_device *tdev, u64 start, u64 bytes)
{
	struct tessera_clear *c = &tdev->clear;
	int ret;

	if (mutex_lock_killable(&c->lock))
		return -EINTR;
	ret = start_queue(tdev, READ_ONCE(tdev->generation));
	if (!ret) {
		((struct hw_sqe *)c->memory)[c->tail % ENTRIES] = (struct hw_sqe){
			.op = HW_FILL, .flags = HW_IRQ, .tag = c->tail,
			.u.copy = { .dst = VA + start, .bytes = bytes },
		};
		ret = ring(tdev);
		if (!ret)
			ret = await_completion(tdev, bytes);
		if (ret)
			stop_queue(tdev);
	}
	mutex_unlock(&c->lock);
	return ret;
}

static int clear_by_cpu(struct tessera_device *tdev, u64 start, u64 bytes)
{
	void __iomem *p = ioremap_wc(tdev->bar2 + start, bytes);

	if (!p)
		return -ENOMEM;
	memset_io(p, 0, bytes);
	/* All of it has arrived when a load has come back. */
	mb();
	readl(p + bytes - sizeof(u32));
	iounmap(p);
	cond_resched();
	return 0;
}

static int clear(struct tessera_device *tdev, u64 start, u64 bytes)
{
	struct tessera_clear *c = &tdev->clear;
	bool by_device = true;
	u64 n;
	int ret;

	for (; bytes; start += n, bytes -= n) {
		if (by_device && bytes >= DEVICE_BYTES) {
			n = min(bytes, FILL_BYTES);
			ret = clear_by_device(tdev, start, n);
			by_device = !ret;
		} else {
			by_device = false;
		}
		if (by_device) {
			atomic64_add(n, &c->by_device);
			continue;
		}
		n = min(bytes, CPU_BYTES);
		ret = clear_by_cpu(tdev, start, n);
		if (ret)
			return ret;
		atomic64_add(n, &c->by_cpu);
		if (fatal_signal_pending(current))
			return -EINTR;
	}
	return 0;
}

int tessera_clear(struct tessera_device *tdev, u64 start, u64 bytes)
{
	u32 generation;
	int ret;

	do {
		ret = tessera_settle_interruptible(tdev);
		if (ret)
			return ret;
		generation = READ_ONCE(tdev->generation);
		ret = clear(tdev, start, bytes);
		if (ret)
			return ret;
	} while (is_lost(tdev, generation));
	return 0;
}

void tessera_clear_print(struct tessera_device *tdev, struct drm_printer *p)
{
	drm_printf(p, "cleared by the device: %lld, by the CPU: %lld\n",
		   atomic64_read(&tdev->clear.by_device),
		   atomic64_read(&tdev->clear.by_cpu));
}

int tessera_clear_init(struct tessera_device *tdev)
{
	struct tessera_clear *c = &tdev->clear;

	mutex_init(&c->lock);
	c->memory = dma_alloc_coherent(&tdev->pdev->dev, PAGE_SIZE, &c->iova, GFP_KERNEL);
	return c->memory ? 0 : -ENOMEM;
}

/* The device is stopped: its context went with that. */
void tessera_clear_fini(struct tessera_device *tdev)
{
	struct tessera_clear *c = &tdev->clear;

	if (c->memory)
		dma_free_coherent(&tdev->pdev->dev, PAGE_SIZE, c->memory, c->iova);
	c->memory = NULL;
}
