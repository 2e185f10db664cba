/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of bytes, four at a time. The instruction multiplies unsigned by signed, so a
 * signed b comes with its sign bits flipped, which is 128 more than it is; 128 times
 * the sum of a's row goes off its sums.
 */
#include <immintrin.h>

#include "hal/sim/kernels/panel.h"

typedef uint32_t v16u32 __attribute__((vector_size(64)));
#define NAME sim_product_u8_avx512vnni
#define SUM uint32_t
#define LANES 16
#define UNIT int32_t
#define MR 12
#define STEP(acc, a, b) \
	((v16u32)_mm512_dpbusd_epi32((__m512i)(acc), (__m512i)(b), _mm512_set1_epi32(a)))
#include "hal/sim/kernels/product_kernels.h"

static uint32_t sum_row(const int8_t *a, unsigned ku)
{
	__m512i sum = _mm512_setzero_si512(), one = _mm512_set1_epi8(1);

	for (unsigned k = 0; k < ku * 4; k += 64)
		sum = _mm512_dpbusd_epi32(sum, one, _mm512_loadu_si512(a + k));
	return (uint32_t)_mm512_reduce_add_epi32(sum);
}

#define NAME signed_bytes
#define SUM uint32_t
#define LANES 16
#define UNIT int32_t
#define MR 12
#define STEP(acc, a, b) \
	((v16u32)_mm512_dpbusd_epi32((__m512i)(acc), (__m512i)(b), _mm512_set1_epi32(a)))
#define LESS
#include "hal/sim/kernels/product_kernels.h"

void sim_product_s8_avx512vnni(const struct sim_product_step *x)
{
	uint32_t less[SIM_PRODUCT_MB];

	for (unsigned i = 0; i < x->rows; i++)
		less[i] = 128 * sum_row((const int8_t *)x->a + i * SIM_PRODUCT_PITCH * 4ul, x->ku);
	signed_bytes(x, less);
}
