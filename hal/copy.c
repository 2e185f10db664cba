/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies and fills by a queue, over links as well.
 *
 * Copies by the calling thread: stores through the mapped BAR where there is one, else
 * through staging memory and the DMA queue in pieces. Strided host arrays are
 * walked with their trailing dense dims as one run. Truth values become 0 or 1 as they are
 * stored, which takes no longer than to store them.
 */
#include <string.h>

#include "hal/hal_internal.h"

#define STAGE ((uint64_t)4 << 20)
#define MAX_RANK 32u
#define SMALL_COPY 65536u	/* bytes; more is worth an interrupt */

static int check_range(const struct hal_mem *m, uint64_t offset, uint64_t bytes,
		       const char *what, struct err *err)
{
	if (offset > m->bytes || bytes > m->bytes - offset)
		return err_set(err, ERR_OUT_OF_RANGE, "%s of %llu bytes at offset %llu of a "
			       "block of %llu", what, (unsigned long long)bytes,
			       (unsigned long long)offset, (unsigned long long)m->bytes);
	return 0;
}

static int check(struct hal_mem *m, uint64_t offset, uint64_t bytes, struct err *err)
{
	int code = hal_check(m->dev, err);

	return code ? code : check_range(m, offset, bytes, "a copy", err);
}

static void free_mem(void *arg, const struct err *err)
{
	(void)err;
	hal_mem_free(arg);
}

void hal_free_late(struct hal_mem *m)
{
	struct hal_queue *q = hal_device_queue(m->dev, HAL_QUEUE_DMA);

	hal_queue_notify(q, atomic_load(&q->submitted), free_mem, m, NULL);
}

typedef uint8_t bytes16 __attribute__((vector_size(16), aligned(1), may_alias));

/* What is not 0 becomes 1. */
static void copy_truth(uint8_t *to, const uint8_t *from, uint64_t n)
{
	for (; n >= 64; to += 64, from += 64, n -= 64) {
		const bytes16 *v = (const bytes16 *)from;
		bytes16 a = v[0], b = v[1], c = v[2], d = v[3], *w = (bytes16 *)to;

		w[0] = (bytes16)(a != 0) & 1;
		w[1] = (bytes16)(b != 0) & 1;
		w[2] = (bytes16)(c != 0) & 1;
		w[3] = (bytes16)(d != 0) & 1;
	}
	while (n--)
		*to++ = *from++ != 0;
}

static void store(void *to, const void *from, uint64_t n, bool is_truth)
{
	if (is_truth)
		copy_truth(to, from, n);
	else
		memcpy(to, from, n);
}

/* What goes through the CPU's hands. */
enum way { OUT, IN, IN_TRUTH };

/* Through staging memory. */
static int copy_staged(struct hal_mem *m, uint64_t offset, void *host, uint64_t bytes,
		       enum way way, int64_t deadline, struct err *err)
{
	bool in = way != OUT;
	struct hal_queue *q = hal_device_queue(m->dev, HAL_QUEUE_DMA);
	struct hal_mem *stage = NULL;
	uint64_t value = 0, n;
	int code = hal_mem_alloc(m->dev, HAL_MEM_HOST, bytes < STAGE ? bytes : STAGE,
				 "staging", &stage, err);

	for (uint64_t at = 0; !code && at < bytes; at += n) {
		n = bytes - at < STAGE ? bytes - at : STAGE;
		if (in)
			store(stage->host, (char *)host + at, n, way == IN_TRUTH);
		code = hal_queue_copy(q, in ? m : stage, in ? offset + at : 0, in ? stage : m,
				      in ? 0 : offset + at, n, NULL, 0, &value, err);
		if (!code)
			code = hal_queue_wait(q, value, deadline, err);
		if (!code && !in)
			memcpy((char *)host + at, stage->host, n);
	}
	if (code == ERR_DEADLINE_EXCEEDED)
		hal_free_late(stage);
	else
		hal_mem_free(stage);
	return code;
}

static int copy_in(struct hal_mem *dst, uint64_t offset, const void *src, uint64_t bytes,
		   enum way way, int64_t deadline, struct err *err)
{
	int code = check(dst, offset, bytes, err);

	if (code || !bytes)
		return code;
	if (!dst->host)
		return copy_staged(dst, offset, (void *)(uintptr_t)src, bytes, way,
				   deadline, err);
	store(dst->host + offset, src, bytes, way == IN_TRUTH);
	return 0;
}

int hal_copy_in(struct hal_mem *dst, uint64_t offset, const void *src, uint64_t bytes,
		int64_t deadline, struct err *err)
{
	return copy_in(dst, offset, src, bytes, IN, deadline, err);
}

int hal_copy_in_elems(struct hal_mem *dst, uint64_t offset, const void *src, uint64_t bytes,
		      bool is_truth, int64_t deadline, struct err *err)
{
	return copy_in(dst, offset, src, bytes, is_truth ? IN_TRUTH : IN, deadline, err);
}

int hal_copy_out(void *dst, struct hal_mem *src, uint64_t offset, uint64_t bytes,
		 int64_t deadline, struct err *err)
{
	int code = check(src, offset, bytes, err);

	if (code || !bytes)
		return code;
	if (!src->host)
		return copy_staged(src, offset, dst, bytes, OUT, deadline, err);
	memcpy(dst, src->host + offset, bytes);
	return 0;
}

/* A strided array as runs: the trailing dims that are dense are one run of
 * `run` bytes, the others are counted. */
struct walk {
	unsigned rank;		/* of the outer dims */
	int64_t dim[MAX_RANK], stride[MAX_RANK];
	uint64_t run, total;
};

static int plan_walk(const struct hal_strided *s, struct walk *w, struct err *err)
{
	uint64_t run = s->elem_bytes;

	if (s->rank > MAX_RANK || !s->elem_bytes || s->elem_bytes > 16)
		return err_set(err, ERR_INVALID_ARGUMENT, "a strided copy of rank %u with "
			       "elements of %u bytes", s->rank, s->elem_bytes);
	w->total = s->elem_bytes;
	w->rank = 0;
	for (unsigned d = 0; d < s->rank; d++)
		if (s->dim[d] < 0 ||
		    __builtin_mul_overflow(w->total, (uint64_t)s->dim[d], &w->total))
			return err_set(err, ERR_INVALID_ARGUMENT, "dim %u of a strided copy is "
				       "%lld", d, (long long)s->dim[d]);
	unsigned d = s->rank;

	while (d && (s->dim[d - 1] == 1 || s->stride[d - 1] == (int64_t)run))
		run *= (uint64_t)s->dim[--d];
	w->run = run;
	for (unsigned i = 0; i < d; i++)
		if (s->dim[i] != 1) {
			w->dim[w->rank] = s->dim[i];
			w->stride[w->rank++] = s->stride[i];
		}
	return 0;
}

/* Copies all runs between the strided host array and the dense block. */
static void walk(const struct walk *w, uint8_t *dense, uint8_t *host, enum way way)
{
	bool in = way != OUT;
	int64_t at[MAX_RANK] = { 0 };
	uint8_t *p = host;

	if (!w->total)
		return;
	for (;;) {
		unsigned d = w->rank;

		if (w->rank && w->run <= 16) {
			/* The innermost counted dim in one loop. */
			int64_t n = w->dim[w->rank - 1], step = w->stride[w->rank - 1];

			for (int64_t i = 0; i < n; i++, dense += w->run)
				store(in ? dense : p + i * step, in ? p + i * step : dense,
				      w->run, way == IN_TRUTH);
			d--;
		} else {
			store(in ? dense : p, in ? p : dense, w->run, way == IN_TRUTH);
			dense += w->run;
		}
		while (d) {
			d--;
			p += w->stride[d];
			if (++at[d] < w->dim[d])
				break;
			p -= w->stride[d] * w->dim[d];
			at[d] = 0;
			if (!d)
				return;
		}
		if (w->rank == 0 || (w->rank == 1 && w->run <= 16))
			return;
	}
}

static int copy_strided(struct hal_mem *m, uint64_t offset, void *host,
			const struct hal_strided *shape, enum way way, int64_t deadline,
			struct err *err)
{
	struct hal_mem *stage;
	struct walk w;
	int code = plan_walk(shape, &w, err);

	if (!code)
		code = check(m, offset, w.total, err);
	if (code || !w.total)
		return code;
	if (m->host) {
		walk(&w, m->host + offset, host, way);
		return 0;
	}
	code = hal_mem_alloc(m->dev, HAL_MEM_HOST, w.total, "staging", &stage, err);
	if (code)
		return code;
	if (way != OUT)
		walk(&w, stage->host, host, way);
	code = copy_staged(m, offset, stage->host, w.total, way == OUT ? OUT : IN, deadline, err);
	if (!code && way == OUT)
		walk(&w, stage->host, host, OUT);
	hal_mem_free(stage);
	return code;
}

int hal_copy_in_strided(struct hal_mem *dst, uint64_t offset, const void *src,
			const struct hal_strided *shape, int64_t deadline, struct err *err)
{
	return copy_strided(dst, offset, (void *)(uintptr_t)src, shape,
			    shape->is_truth ? IN_TRUTH : IN, deadline, err);
}

int hal_copy_out_strided(void *dst, struct hal_mem *src, uint64_t offset,
			 const struct hal_strided *shape, int64_t deadline, struct err *err)
{
	return copy_strided(src, offset, dst, shape, OUT, deadline, err);
}

/* ---- by a queue ---- */

static uint8_t copy_flags(uint64_t bytes)
{
	return bytes <= SMALL_COPY ? HW_INLINE : HW_IRQ;
}

int hal_queue_copy(struct hal_queue *q, struct hal_mem *dst, uint64_t dst_offset,
		   struct hal_mem *src, uint64_t src_offset, uint64_t bytes,
		   const struct hal_after *after, unsigned n_after, uint64_t *value,
		   struct err *err)
{
	struct hw_sqe sqe = { .op = HW_COPY, .flags = copy_flags(bytes),
			      .u.copy = { src->va + src_offset, dst->va + dst_offset, bytes } };
	int code = check_range(dst, dst_offset, bytes, "a copy into", err);

	if (!code)
		code = check_range(src, src_offset, bytes, "a copy out", err);
	if (!code && src->dev != q->dev)
		return err_set(err, ERR_INVALID_ARGUMENT, "a copy out of %s by a queue of %s: "
			       "copies only write over links, so ask the device that has the data",
			       src->dev->entry->info.bus_id, q->dev->entry->info.bus_id);
	if (!code && dst->dev != q->dev) {
		code = hal_peer_va(q->dev, dst, &sqe.u.copy.dst, err);
		sqe.u.copy.dst += dst_offset;
	}
	return code ? code : hal_queue_submit(q, &sqe, NULL, after, n_after, value, err);
}

int hal_queue_copy_2d(struct hal_queue *q, const struct hw_copy_2d *what,
		      const struct hal_after *after, unsigned n_after, uint64_t *value,
		      struct err *err)
{
	struct hw_sqe sqe = { .op = HW_COPY_2D, .flags = HW_IRQ };

	return hal_queue_submit(q, &sqe, what, after, n_after, value, err);
}

int hal_queue_fill(struct hal_queue *q, struct hal_mem *dst, uint64_t offset,
		   uint64_t bytes, uint64_t pattern, uint64_t *value, struct err *err)
{
	struct hw_sqe sqe = { .op = HW_FILL, .flags = copy_flags(bytes),
			      .u.copy = { pattern, dst->va + offset, bytes } };
	int code = check_range(dst, offset, bytes, "a fill", err);

	return code ? code : hal_queue_submit(q, &sqe, NULL, NULL, 0, value, err);
}
