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

#define KERNEL(name, SUM, DP) \
	static void name##_block(const int32_t *a, const int32_t *b, SUM *sums, unsigned ku, \
				 unsigned rows, unsigned cols, unsigned ld) \
	{ \
		const int32_t *below = a + 16 * SIM_PRODUCT_PITCH; \
		SUM tile[32][32] __attribute__((aligned(64))); \
	\
		_tile_zero(0); \
		_tile_zero(1); \
		_tile_zero(2); \
		_tile_zero(3); \
		for (unsigned k = 0; k < ku; k += 16) { \
			_tile_loadd(4, a + k, SIM_PRODUCT_PITCH * 4); \
			_tile_loadd(5, below + k, SIM_PRODUCT_PITCH * 4); \
			_tile_loadd(6, b + k * 32, 128); \
			_tile_loadd(7, b + k * 32 + 16, 128); \
			DP(0, 4, 6); \
			DP(1, 4, 7); \
			DP(2, 5, 6); \
			DP(3, 5, 7); \
		} \
		_tile_stored(0, &tile[0][0], 128); \
		_tile_stored(1, &tile[0][16], 128); \
		_tile_stored(2, &tile[16][0], 128); \
		_tile_stored(3, &tile[16][16], 128); \
		for (unsigned i = 0; i < rows && i < 32; i++) \
			for (unsigned j = 0; j < cols && j < 32; j++) \
				sums[i * ld + j] += tile[i][j]; \
	} \
	\
	void name(const void *a, const void *b, void *sums, unsigned ku, unsigned rows, \
		  unsigned cols, unsigned ld) \
	{ \
		configure(); \
		for (unsigned j = 0; j < cols; j += 32) \
			for (unsigned i = 0; i < rows; i += 32) \
				name##_block((const int32_t *)a + (size_t)i * SIM_PRODUCT_PITCH, \
					     (const int32_t *)b + (size_t)j * ku, \
					     (SUM *)sums + (size_t)i * ld + j, ku, rows - i, \
					     cols - j, ld); \
		_tile_release(); \
	}

/* Sums of integers wrap around. */
KERNEL(sim_product_bf16_amx, float, _tile_dpbf16ps)
KERNEL(sim_product_ss_amx, uint32_t, _tile_dpbssd)
KERNEL(sim_product_su_amx, uint32_t, _tile_dpbsud)
KERNEL(sim_product_us_amx, uint32_t, _tile_dpbusd)
KERNEL(sim_product_uu_amx, uint32_t, _tile_dpbuud)
