/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The f32 kernel, compiled once for each instruction set: LANES floats a vector, NAME
 * the function. A panel of a is [kc][MR], of b [kc][32]; the sums of MR rows by 32
 * columns stay in registers for all of k. Contraction to fused multiply-add is what
 * the hardware does best and ISA.md allows in sums.
 */
#include "hal/sim/product.h"

#include <string.h>

typedef float vec __attribute__((vector_size(LANES * 4), aligned(4), may_alias));

#define VECS (32 / LANES)

static inline __attribute__((always_inline)) void
panel(const float *a, const float *b, float *sums, unsigned kc, unsigned rows, unsigned cols,
      unsigned ld)
{
	vec acc[MR][VECS] = { 0 };
	float tail[32];

	for (unsigned k = 0; k < kc; k++, a += MR, b += 32) {
		vec col[VECS];

		for (unsigned v = 0; v < VECS; v++)
			col[v] = *(const vec *)(b + v * LANES);
#pragma GCC unroll 16
		for (unsigned i = 0; i < MR; i++) {
			vec row = a[i] - (vec){ 0 };

#pragma GCC unroll 8
			for (unsigned v = 0; v < VECS; v++)
				acc[i][v] = row * col[v] + acc[i][v];
		}
	}
#pragma GCC unroll 16
	for (unsigned i = 0; i < MR; i++) {
		if (i >= rows)
			break;
		if (cols == 32) {
#pragma GCC unroll 8
			for (unsigned v = 0; v < VECS; v++)
				*(vec *)(sums + i * ld + v * LANES) += acc[i][v];
			continue;
		}
#pragma GCC unroll 8
		for (unsigned v = 0; v < VECS; v++)
			*(vec *)(tail + v * LANES) = acc[i][v];
		for (unsigned j = 0; j < cols; j++)
			sums[i * ld + j] += tail[j];
	}
}

SIM_PRODUCT_KERNEL(NAME)
{
	for (unsigned j = 0; j < cols; j += 32)
		for (unsigned i = 0; i < rows; i += MR)
			panel((const float *)a + (size_t)i * kc,
			      (const float *)b + (size_t)j * kc,
			      (float *)sums + (size_t)i * ld + j, kc,
			      rows - i < MR ? rows - i : MR, cols - j < 32 ? cols - j : 32,
			      ld);
}
