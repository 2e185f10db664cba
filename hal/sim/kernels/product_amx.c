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
static void move_block(int32_t *to, size_t to_ld, const int32_t *from, size_t from_ld,
		       unsigned rows, unsigned cols)
{
	for (unsigned i = 0; i < rows; i++, to += to_ld, from += from_ld) {
		unsigned j = 0;

		for (; j + 16 <= cols; j += 16)
			memcpy(to + j, from + j, 64);
		if (j < cols)
			memcpy(to + j, from + j, (cols - j) * 4);
	}
}

/* Memory beyond L2 answers too late for what is asked for when it is needed. So, while tiles are
 * multiplied, lines of memory that come next are fetched: of the columns behind these, where each
 * block of rows has its part, and what the caller names, where each block has. */
struct ahead {
	const uint8_t *columns, *row;	/* row: the caller's */
	int64_t pitch;
	unsigned n_columns, n_rows;	/* lines for each tile along k */
	unsigned line, lines;		/* of a row: the next one, all */
	unsigned left;			/* lines of this block */
};

/* For the block at row i, column j. */
static struct ahead look_ahead(const struct sim_product_step *s, unsigned i, unsigned j)
{
	unsigned down = (s->rows + 31) / 32, blocks = down * ((s->cols + 31) / 32);
	unsigned lines = (s->soon_bytes + 63) / 64, all = s->n_soon * lines, steps = s->ku / 16;
	unsigned each = (all + blocks * steps - 1) / (blocks * steps);
	unsigned first = (j / 32 * down + i / 32) * steps * each;
	struct ahead x = { .columns = (const uint8_t *)s->b + (size_t)(j + 32) * s->ku * 4,
		.n_columns = 32 / down, .lines = lines };

	x.columns += (size_t)i / 32 * x.n_columns * steps * 64;
	if (first >= all)
		return x;
	x.n_rows = each;
	x.line = first % lines;
	x.row = s->soon + first / lines * s->soon_pitch;
	x.pitch = s->soon_pitch;
	x.left = all - first;
	return x;
}

static inline __attribute__((always_inline)) void fetch(struct ahead *x)
{
	for (unsigned n = x->n_columns; n; n--, x->columns += 64)
		_mm_prefetch((const char *)x->columns, _MM_HINT_T1);
	for (unsigned n = x->n_rows; n && x->left; n--, x->left--) {
		_mm_prefetch((const char *)x->row + (size_t)x->line * 64, _MM_HINT_T1);
		if (++x->line == x->lines) {
			x->line = 0;
			x->row += x->pitch;
		}
	}
}

/* Tiles of a are read for the last time until other columns are done; said so, they leave the
 * columns' own in L1. */
#define KERNEL(name, DP) \
	static void name##_block(const struct sim_product_step *s, unsigned i, unsigned j, \
				 int32_t *sums, size_t ld, const int32_t *before, \
				 size_t before_ld) \
	{ \
		const int32_t *a = (const int32_t *)s->a + (size_t)i * SIM_PRODUCT_PITCH; \
		const int32_t *below = a + 16 * SIM_PRODUCT_PITCH; \
		const int32_t *b = (const int32_t *)s->b + (size_t)j * s->ku; \
		struct ahead ahead = look_ahead(s, i, j); \
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
		for (unsigned k = 0; k < s->ku; k += 16) { \
			_tile_loadd(6, b + k * 32, 128); \
			_tile_stream_loadd(4, a + k, SIM_PRODUCT_PITCH * 4); \
			DP(0, 4, 6); \
			_tile_loadd(7, b + k * 32 + 16, 128); \
			DP(1, 4, 7); \
			fetch(&ahead); \
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
	static void name##_edge(const struct sim_product_step *s, unsigned i, unsigned j, \
				unsigned rows, unsigned cols, int32_t *sums, \
				const int32_t *before) \
	{ \
		int32_t room[32 * 32] __attribute__((aligned(64))); \
	\
		if (before) { \
			memset(room, 0, sizeof(room)); \
			move_block(room, 32, before, s->before_ld, rows, cols); \
		} \
		name##_block(s, i, j, room, 32, before ? room : NULL, 32); \
		move_block(sums, s->ld, room, 32, rows, cols); \
	} \
	\
	void name(const struct sim_product_step *s) \
	{ \
		_tile_loadconfig(&whole); \
		for (unsigned j = 0; j < s->cols; j += 32) \
			for (unsigned i = 0; i < s->rows; i += 32) { \
				int32_t *sums = (int32_t *)s->sums + (size_t)i * s->ld + j; \
				const int32_t *before = !s->before ? NULL : \
					(const int32_t *)s->before + (size_t)i * s->before_ld + j; \
				unsigned h = s->rows - i, w = s->cols - j; \
	\
				if (h >= 32 && w >= 32) \
					name##_block(s, i, j, sums, s->ld, before, s->before_ld); \
				else \
					name##_edge(s, i, j, h < 32 ? h : 32, w < 32 ? w : 32, \
						    sums, before); \
			} \
		_tile_release(); \
	}

/* Sums of integers wrap around. */
KERNEL(sim_product_bf16_amx, _tile_dpbf16ps)
KERNEL(sim_product_ss_amx, _tile_dpbssd)
KERNEL(sim_product_su_amx, _tile_dpbsud)
KERNEL(sim_product_us_amx, _tile_dpbusd)
KERNEL(sim_product_uu_amx, _tile_dpbuud)
