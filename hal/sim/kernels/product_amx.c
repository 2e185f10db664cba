/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products in matrix tiles of 16 rows by 64 bytes: 32 rows and 32 columns at a time are
 * four tiles of sums, fed by two of a and two of b. Panels are tiles as they lie.
 *
 * The process has asked for tile state (cpu.c); configuration belongs to the thread.
 */
#include <immintrin.h>
#include <string.h>

#include "hal/sim/kernels/panel.h"

struct config {
	uint8_t palette, start_row, zero[14];
	uint16_t row_bytes[16];
	uint8_t rows[16];
} __attribute__((aligned(64)));

/* A constant, for the compiler takes it that loading reads no more than its first bytes. */
static const struct config whole = {
	.palette = 1,
	.row_bytes = { 64, 64, 64, 64, 64, 64, 64, 64 },
	.rows = { 16, 16, 16, 16, 16, 16, 16, 16 },
};

/* A block of sums of fewer rows or columns than tiles have, to and from whole tiles. */
static void move_block(void *to, unsigned to_ld, const void *from, unsigned from_ld, unsigned rows,
		       unsigned cols)
{
	for (unsigned i = 0; i < rows; i++)
		memcpy((uint32_t *)to + (size_t)i * to_ld,
		       (const uint32_t *)from + (size_t)i * from_ld, cols * 4);
}

/* Memory beyond L2 answers too late for tiles that are asked for when they are needed: what is
 * multiplied next is fetched, so many lines of it for each tile along k. */
static inline __attribute__((always_inline)) const uint8_t *fetch(const uint8_t *at, unsigned lines,
								  int64_t pitch)
{
	for (; lines; lines--, at += pitch)
		_mm_prefetch((const char *)at, _MM_HINT_T1);
	return at;
}

struct block {
	const int32_t *a, *b;
	unsigned ku;
	int32_t *sums;
	const int32_t *before;	/* or NULL */
	size_t ld, before_ld;
	/* For each tile along k: so many lines of the next columns of b, and one of each of so many
	 * rows of a's next panel. */
	const uint8_t *columns, *rows;
	int64_t row_pitch;
	unsigned n_lines, n_rows;
};

/* The block of rows i .. and columns j .. */
static struct block block_at(const struct sim_product_step *s, unsigned i, unsigned j)
{
	unsigned down = (s->rows + 31) / 32, across = (s->cols + 31) / 32;
	unsigned each = (s->n_soon + down * across - 1) / (down * across);
	unsigned row = (j / 32 * down + i / 32) * each;
	struct block x = { .a = (const int32_t *)s->a + (size_t)i * SIM_PRODUCT_PITCH,
		.b = (const int32_t *)s->b + (size_t)j * s->ku, .ku = s->ku,
		.sums = (int32_t *)s->sums + (size_t)i * s->ld + j, .ld = s->ld,
		.before_ld = s->before_ld, .n_lines = 32 / down, .row_pitch = s->soon_pitch };

	if (s->before)
		x.before = (const int32_t *)s->before + (size_t)i * s->before_ld + j;
	x.columns = (const uint8_t *)(x.b + (size_t)32 * s->ku) +
		    (size_t)i / 32 * x.n_lines * s->ku * 4;
	if (row < s->n_soon) {
		x.rows = s->soon + row * s->soon_pitch;
		x.n_rows = s->n_soon - row < each ? s->n_soon - row : each;
	}
	return x;
}

/* Tiles of a are read for the last time until other columns are done; said so, they leave the
 * columns' own in L1. */
#define KERNEL(name, DP) \
	static void name##_block(const struct block *x) \
	{ \
		const int32_t *a = x->a, *below = a + 16 * SIM_PRODUCT_PITCH; \
		const int32_t *b = x->b, *before = x->before; \
		const uint8_t *columns = x->columns; \
		size_t ld = x->ld, before_ld = x->before_ld; \
		int32_t *sums = x->sums; \
	\
		/* The compiler does not know that tiles are loaded from memory. */ \
		__asm__ volatile ("" : : : "memory"); \
		if (before) { \
			_tile_stream_loadd(0, before, before_ld * 4); \
			_tile_stream_loadd(1, before + 16, before_ld * 4); \
			_tile_stream_loadd(2, before + 16 * before_ld, before_ld * 4); \
			_tile_stream_loadd(3, before + 16 * before_ld + 16, before_ld * 4); \
		} else { \
			_tile_zero(0); \
			_tile_zero(1); \
			_tile_zero(2); \
			_tile_zero(3); \
		} \
		for (unsigned k = 0; k < x->ku; k += 16) { \
			_tile_loadd(6, b + k * 32, 128); \
			_tile_stream_loadd(4, a + k, SIM_PRODUCT_PITCH * 4); \
			DP(0, 4, 6); \
			columns = fetch(columns, x->n_lines, 64); \
			_tile_loadd(7, b + k * 32 + 16, 128); \
			DP(1, 4, 7); \
			if (x->n_rows) \
				fetch(x->rows + k * 4, x->n_rows, x->row_pitch); \
			_tile_stream_loadd(5, below + k, SIM_PRODUCT_PITCH * 4); \
			DP(2, 5, 6); \
			DP(3, 5, 7); \
		} \
		_tile_stored(0, sums, ld * 4); \
		_tile_stored(1, sums + 16, ld * 4); \
		_tile_stored(2, sums + 16 * ld, ld * 4); \
		_tile_stored(3, sums + 16 * ld + 16, ld * 4); \
	} \
	\
	void name(const struct sim_product_step *s) \
	{ \
		int32_t edge[32 * 32] __attribute__((aligned(64))) = { 0 }; \
	\
		_tile_loadconfig(&whole); \
		for (unsigned j = 0; j < s->cols; j += 32) \
			for (unsigned i = 0; i < s->rows; i += 32) { \
				struct block x = block_at(s, i, j), part = x; \
				unsigned h = s->rows - i < 32 ? s->rows - i : 32; \
				unsigned w = s->cols - j < 32 ? s->cols - j : 32; \
	\
				if (h == 32 && w == 32) { \
					name##_block(&x); \
					continue; \
				} \
				part.sums = edge; \
				part.ld = part.before_ld = 32; \
				if (x.before) { \
					move_block(edge, 32, x.before, s->before_ld, h, w); \
					part.before = edge; \
				} \
				name##_block(&part); \
				move_block(x.sums, s->ld, edge, 32, h, w); \
			} \
		_tile_release(); \
	}

/* Sums of integers wrap around. */
KERNEL(sim_product_bf16_amx, _tile_dpbf16ps)
KERNEL(sim_product_ss_amx, _tile_dpbssd)
KERNEL(sim_product_su_amx, _tile_dpbsud)
KERNEL(sim_product_us_amx, _tile_dpbusd)
KERNEL(sim_product_uu_amx, _tile_dpbuud)
