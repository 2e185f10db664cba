/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DMA steps. Each copy is judged by all of the destination: what was to move, and the bytes
 * around it, which must be as they were.
 */
#include <string.h>

#include "hal/hw/regs.h"
#include "tools/bringup/context.h"

#define MARGIN 128u		/* on either side of what is copied */

/* A source and a destination, with what they should hold. */
struct pair {
	struct hal_queue *queue;
	struct hal_mem *src, *dst;
	uint8_t *from, *to, *got;	/* the host's idea of both, and what came back */
	uint64_t bytes;
};

static enum bringup_result make_pair(struct bringup *b, struct pair *p, enum hal_mem_kind from,
				     enum hal_mem_kind to, uint64_t bytes)
{
	p->bytes = bytes;
	p->src = bringup_mem(b, from, bytes);
	NEED(b, p->src);
	p->dst = bringup_mem(b, to, bytes);
	NEED(b, p->dst);
	p->from = bringup_room(b, bytes);
	NEED(b, p->from);
	p->to = bringup_room(b, bytes);
	NEED(b, p->to);
	p->got = bringup_room(b, bytes);
	NEED(b, p->got);
	bringup_fill_random(p->from, bytes, 1);
	bringup_fill_random(p->to, bytes, 2);
	TRY(b, hal_copy_in(p->src, 0, p->from, bytes, SOON, &b->err));
	TRY(b, hal_copy_in(p->dst, 0, p->to, bytes, SOON, &b->err));
	return BRINGUP_PASS;
}

static enum bringup_result judge(struct bringup *b, struct pair *p, const char *what)
{
	size_t at;

	TRY(b, hal_copy_out(p->got, p->dst, 0, p->bytes, SOON, &b->err));
	at = bringup_differ(p->got, p->to, p->bytes);
	if (at == p->bytes)
		return BRINGUP_PASS;
	return bringup_fail(b, "%s: byte %zu of the destination is 0x%02x instead of 0x%02x", what,
			    at, p->got[at], p->to[at]);
}

static enum bringup_result move(struct bringup *b, struct pair *p, uint64_t to, uint64_t from,
				uint64_t n)
{
	char what[96];
	uint64_t value;

	snprintf(what, sizeof(what), "%llu bytes from offset %llu to %llu", (unsigned long long)n,
		 (unsigned long long)from, (unsigned long long)to);
	TRY(b, hal_queue_copy(p->queue, p->dst, to, p->src, from, n, NULL, 0, &value, &b->err));
	TRY(b, hal_queue_wait(p->queue, value, SOON, &b->err));
	memcpy(p->to + to, p->from + from, n);
	return judge(b, p, what);
}

enum bringup_result step_dma_sizes(struct bringup *b)
{
	const uint64_t most = 4 << 20;
	struct pair p;
	unsigned n = 0;

	STEP_TRY(bringup_need_device(b));
	p.queue = b->dma;
	STEP_TRY(make_pair(b, &p, HAL_MEM_HOST, HAL_MEM_HBM, most + 1 + 2 * MARGIN));
	for (uint64_t size = 1; size <= most; size *= 2)
		for (uint64_t k = size - 1; k <= size + 1; k++, n++)
			STEP_TRY(move(b, &p, MARGIN - n % 3, MARGIN - n % 5, k));
	return bringup_pass(b, "%u copies of 0 to %llu bytes", n, (unsigned long long)most + 1);
}

enum bringup_result step_dma_alignments(struct bringup *b)
{
	static const uint64_t sizes[] = { 1, 7, 64, 321 };
	struct pair p;
	unsigned n = 0;

	STEP_TRY(bringup_need_device(b));
	p.queue = b->dma;
	STEP_TRY(make_pair(b, &p, HAL_MEM_HBM, HAL_MEM_HBM, 512 + 2 * MARGIN));
	for (uint64_t to = 0; to < 64; to++)
		for (uint64_t from = 0; from < 64; from++, n++)
			STEP_TRY(move(b, &p, MARGIN + to, MARGIN + from, sizes[n % COUNT(sizes)]));
	return bringup_pass(b, "%u copies", n);
}

enum bringup_result step_dma_directions(struct bringup *b)
{
	static const enum hal_mem_kind kinds[] = { HAL_MEM_HOST, HAL_MEM_HBM };
	static const char *const names[] = { "host", "device" };
	static const uint64_t sizes[] = { 3, 4096, 65537, 1048583 };

	STEP_TRY(bringup_need_device(b));
	for (unsigned i = 0; i < 8; i++) {
		enum hal_mem_kind from = kinds[i & 1], to = kinds[i >> 1 & 1];
		struct pair p = { .queue = i & 4 ? b->compute : b->dma };

		STEP_TRY(make_pair(b, &p, from, to, sizes[3] + 2 * MARGIN));
		for (unsigned k = 0; k < COUNT(sizes); k++) {
			enum bringup_result r = move(b, &p, MARGIN - k, MARGIN + k, sizes[k]);
			char text[BRINGUP_TEXT];

			memcpy(text, b->row->text, sizeof(text));
			if (r != BRINGUP_PASS)
				return bringup_fail(b, "%s to %s, %s queue: %.500s", names[i & 1],
						    names[i >> 1 & 1],
						    i & 4 ? "compute" : "DMA", text);
		}
		bringup_give_back(b);
	}
	return bringup_pass(b, "4 directions, 2 queues, up to %llu bytes",
			    (unsigned long long)sizes[3]);
}

/* ---- pages ---- */

/* Begins and ends before, at and behind page borders. */
static enum bringup_result around_pages(struct bringup *b, struct pair *p)
{
	for (uint64_t from = HW_PAGE - 1; from <= HW_PAGE + 1; from++)
		for (uint64_t to = 2 * HW_PAGE - 1; to <= 2 * HW_PAGE + 1; to++)
			for (uint64_t n = HW_PAGE - 1; n <= 3 * HW_PAGE + 1;
			     n += n % HW_PAGE == 1 ? HW_PAGE - 2 : 1)
				STEP_TRY(move(b, p, to, from, n));
	return BRINGUP_PASS;
}

/* A column of one byte, a row a page: as scattered as can be. */
static enum bringup_result scatter(struct bringup *b, struct pair *p)
{
	struct hw_copy_2d r = { .src = hal_mem_va(p->src) + 5, .dst = hal_mem_va(p->dst) + 77,
				.row_bytes = 16, .rows = p->bytes / HW_PAGE - 1, .planes = 1,
				.src_row = HW_PAGE, .dst_row = HW_PAGE - 24 };
	uint64_t value;

	TRY(b, hal_queue_copy_2d(p->queue, &r, NULL, 0, &value, &b->err));
	TRY(b, hal_queue_wait(p->queue, value, SOON, &b->err));
	for (uint64_t i = 0; i < r.rows; i++)
		memcpy(p->to + 77 + i * (uint64_t)r.dst_row, p->from + 5 + i * (uint64_t)r.src_row,
		       16);
	return judge(b, p, "rows of 16 bytes a page apart");
}

static enum bringup_result fill_over(struct bringup *b, struct pair *p)
{
	const uint64_t at = HW_PAGE - 3, n = 2 * HW_PAGE + 5, pattern = 0x0123456789abcdef;
	uint64_t value;

	TRY(b, hal_queue_fill(p->queue, p->dst, at, n, pattern, &value, &b->err));
	TRY(b, hal_queue_wait(p->queue, value, SOON, &b->err));
	for (uint64_t i = 0; i < n; i++)
		p->to[at + i] = (uint8_t)(pattern >> i % 8 * 8);
	return judge(b, p, "a fill over two page borders");
}

enum bringup_result step_dma_pages(struct bringup *b)
{
	static const enum hal_mem_kind ways[][2] = { { HAL_MEM_HOST, HAL_MEM_HBM },
						     { HAL_MEM_HBM, HAL_MEM_HOST } };

	STEP_TRY(bringup_need_device(b));
	for (unsigned i = 0; i < 2; i++) {
		struct pair p = { .queue = b->dma };

		STEP_TRY(make_pair(b, &p, ways[i][0], ways[i][1], 16 * HW_PAGE));
		STEP_TRY(around_pages(b, &p));
		STEP_TRY(scatter(b, &p));
		STEP_TRY(fill_over(b, &p));
		bringup_give_back(b);
	}
	return bringup_pass(b, "both ways over page borders, rows in %u pages, fills", 16);
}
