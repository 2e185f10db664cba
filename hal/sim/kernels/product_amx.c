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

static void configure(void)
{
	struct config c = { .palette = 1 };

	for (unsigned i = 0; i < 8; i++) {
		c.row_bytes[i] = 64;
		c.rows[i] = 16;
	}
	_tile_loadconfig(&c);
}

/* A block of sums of fewer rows or columns than tiles have, to and from whole tiles. */
static void move_block(void *to, unsigned to_ld, const void *from, unsigned from_ld, unsigned rows,
		       unsigned cols)
{
	for (unsigned i = 0; i < rows; i++)
		memcpy((uint32_t *)to + (size_t)i * to_ld,
		       (const uint32_t *)from + (size_t)i * from_ld, cols * 4);
}

#define KERNEL(name, DP) \
	static void name##_block(const int32_t *a, const int32_t *b, int32_t *sums, unsigned ku, \
				 size_t ld, const int32_t *before, size_t before_ld) \
	{ \
		const int32_t *below = a + 16 * SIM_PRODUCT_PITCH; \
	\
		if (before) { \
			_tile_loadd(0, before, before_ld * 4); \
			_tile_loadd(1, before + 16, before_ld * 4); \
			_tile_loadd(2, before + 16 * before_ld, before_ld * 4); \
			_tile_loadd(3, before + 16 * before_ld + 16, before_ld * 4); \
		} else { \
			_tile_zero(0); \
			_tile_zero(1); \
			_tile_zero(2); \
			_tile_zero(3); \
		} \
		for (unsigned k = 0; k < ku; k += 16) { \
			_tile_loadd(6, b + k * 32, 128); \
			_tile_loadd(4, a + k, SIM_PRODUCT_PITCH * 4); \
			DP(0, 4, 6); \
			_tile_loadd(7, b + k * 32 + 16, 128); \
			DP(1, 4, 7); \
			_tile_loadd(5, below + k, SIM_PRODUCT_PITCH * 4); \
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
		configure(); \
		for (unsigned j = 0; j < s->cols; j += 32) \
			for (unsigned i = 0; i < s->rows; i += 32) { \
				const int32_t *x = (const int32_t *)s->a + \
						   (size_t)i * SIM_PRODUCT_PITCH; \
				const int32_t *y = (const int32_t *)s->b + (size_t)j * s->ku; \
				int32_t *out = (int32_t *)s->sums + (size_t)i * s->ld + j; \
				const int32_t *before = !s->before ? NULL : \
					(const int32_t *)s->before + (size_t)i * s->before_ld + j; \
				unsigned h = s->rows - i < 32 ? s->rows - i : 32; \
				unsigned w = s->cols - j < 32 ? s->cols - j : 32; \
	\
				if (h == 32 && w == 32) { \
					name##_block(x, y, out, s->ku, s->ld, before, \
						     s->before_ld); \
					continue; \
				} \
				if (before) \
					move_block(edge, 32, before, s->before_ld, h, w); \
				name##_block(x, y, edge, s->ku, 32, before ? edge : NULL, 32); \
				move_block(out, s->ld, edge, 32, h, w); \
			} \
		_tile_release(); \
	}

/* Sums of integers wrap around. */
KERNEL(sim_product_bf16_amx, _tile_dpbf16ps)
KERNEL(sim_product_ss_amx, _tile_dpbssd)
KERNEL(sim_product_su_amx, _tile_dpbsud)
KERNEL(sim_product_us_amx, _tile_dpbusd)
KERNEL(sim_product_uu_amx, _tile_dpbuud)
