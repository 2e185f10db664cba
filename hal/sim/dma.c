/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The copy engine's descriptors. Addresses are translated under the lock, host
 * mappings are held, then bytes move without the lock in blocks, so that a
 * reset stops a long copy soon.
 */
#include <string.h>

#include "hal/sim/sim_internal.h"

#define BLOCK ((uint64_t)1 << 20)

static int fail(struct hw_fault *f, int status, uint64_t va, uint64_t bytes, bool write)
{
	f->status = (uint16_t)status;
	f->va = va;
	f->bytes = bytes;
	f->is_write = write;
	return status;
}

/* Translates and holds; NULL after recording a fault. */
static uint8_t *reach(struct sim_device *dev, const struct sim_queue *q,
		      struct sim_core *core, uint64_t va, uint64_t bytes, bool write,
		      struct hw_fault *f)
{
	struct sim_dma *dma;
	bool poison = false;
	uint8_t *p;

	pthread_mutex_lock(&dev->lock);
	p = sim_va(dev, q->info.ctx, va, bytes, write, &dma, &poison);
	if (p && dma) {
		dma->users++;
		core->held[core->n_held++] = dma;
		if (write)
			dev->total.dma_out_bytes += bytes;
		else
			dev->total.dma_in_bytes += bytes;
	}
	if (p && !dma && write)
		dev->total.hbm_write_bytes += bytes;
	if (p && !dma && !write)
		dev->total.hbm_read_bytes += bytes;
	pthread_mutex_unlock(&dev->lock);
	if (!p)
		fail(f, HW_ST_MAP, va, bytes, write);
	else if (poison && !write)
		fail(f, HW_ST_POISON, va, bytes, write);
	return f->status ? NULL : p;
}

static int copy(uint8_t *dst, const uint8_t *src, uint64_t bytes, const atomic_bool *stop,
		struct hw_fault *f)
{
	for (uint64_t at = 0; at < bytes; at += BLOCK) {
		if (atomic_load_explicit(stop, memory_order_relaxed))
			return fail(f, HW_ST_RESET, 0, 0, false);
		memmove(dst + at, src + at, bytes - at < BLOCK ? bytes - at : BLOCK);
	}
	return 0;
}

static int fill(uint8_t *dst, uint64_t pattern, uint64_t bytes, const atomic_bool *stop,
		struct hw_fault *f)
{
	for (uint64_t at = 0; at < bytes; at += 8) {
		if (at % BLOCK == 0 && atomic_load_explicit(stop, memory_order_relaxed))
			return fail(f, HW_ST_RESET, 0, 0, false);
		memcpy(dst + at, &pattern, bytes - at < 8 ? bytes - at : 8);
	}
	return 0;
}

/* The lowest byte and the number of bytes that rows and planes cover. */
static int extent(const struct hw_copy_2d *c, uint64_t base, int64_t row, int64_t plane,
		  uint64_t *va, uint64_t *bytes)
{
	__int128 lo = 0, hi = c->row_bytes;
	__int128 rows = (__int128)(c->rows - 1) * row;
	__int128 planes = (__int128)(c->planes - 1) * plane;

	*(rows < 0 ? &lo : &hi) += rows;
	*(planes < 0 ? &lo : &hi) += planes;
	if (base + lo < 0 || hi - lo > INT64_MAX || base + hi > UINT64_MAX)
		return -1;
	*va = (uint64_t)(base + lo);
	*bytes = (uint64_t)(hi - lo);
	return 0;
}

static int copy_2d(struct sim_device *dev, const struct sim_queue *q, struct sim_core *core,
		   const struct hw_sqe *sqe, const atomic_bool *stop, struct hw_fault *f)
{
	struct hw_copy_2d c;
	uint64_t src_va, dst_va, src_bytes, dst_bytes;
	const uint8_t *p, *src;
	uint8_t *dst;

	p = reach(dev, q, core, sqe->u.copy.src, sizeof(c), false, f);
	if (!p)
		return f->status;
	memcpy(&c, p, sizeof(c));
	if (!c.rows || !c.planes || !c.row_bytes || c.rows >> 40 || c.planes >> 40 ||
	    extent(&c, c.src, c.src_row, c.src_plane, &src_va, &src_bytes) ||
	    extent(&c, c.dst, c.dst_row, c.dst_plane, &dst_va, &dst_bytes))
		return fail(f, HW_ST_BAD_DESCRIPTOR, sqe->u.copy.src, sizeof(c), false);
	src = reach(dev, q, core, src_va, src_bytes, false, f);
	dst = src ? reach(dev, q, core, dst_va, dst_bytes, true, f) : NULL;
	if (!dst)
		return f->status;
	src += c.src - src_va;
	dst += c.dst - dst_va;
	for (uint64_t z = 0; z < c.planes; z++)
		for (uint64_t y = 0; y < c.rows; y++) {
			int64_t from = (int64_t)z * c.src_plane + (int64_t)y * c.src_row;
			int64_t to = (int64_t)z * c.dst_plane + (int64_t)y * c.dst_row;

			if (copy(dst + to, src + from, c.row_bytes, stop, f))
				return f->status;
		}
	return 0;
}

int sim_dma_run(struct sim_device *dev, const struct sim_queue *q, struct sim_core *core,
		const struct hw_sqe *sqe, const atomic_bool *stop, struct hw_fault *f)
{
	uint64_t n = sqe->u.copy.bytes, now = (uint64_t)(clock_ns() - dev->power_on);
	int64_t began = clock_ns();
	const uint8_t *src;
	uint8_t *dst;
	int status = 0;

	switch (sqe->op) {
	case HW_COPY:
		src = n ? reach(dev, q, core, sqe->u.copy.src, n, false, f) : NULL;
		dst = src ? reach(dev, q, core, sqe->u.copy.dst, n, true, f) : NULL;
		status = dst ? copy(dst, src, n, stop, f) : f->status;
		break;
	case HW_FILL:
		dst = n ? reach(dev, q, core, sqe->u.copy.dst, n, true, f) : NULL;
		status = dst ? fill(dst, sqe->u.copy.src, n, stop, f) : f->status;
		break;
	case HW_COPY_2D:
		status = copy_2d(dev, q, core, sqe, stop, f);
		break;
	case HW_TIMESTAMP:
		dst = reach(dev, q, core, sqe->u.copy.dst, 8, true, f);
		if (dst)
			memcpy(dst, &now, 8);
		status = f->status;
		break;
	default:	/* NOP, SEMAPHORE */
		return 0;
	}
	pthread_mutex_lock(&dev->lock);
	dev->total.n_copy++;
	dev->total.busy_dma_ns += (uint64_t)(clock_ns() - began);
	pthread_mutex_unlock(&dev->lock);
	return status;
}
