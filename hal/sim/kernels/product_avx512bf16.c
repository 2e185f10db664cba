/* SPDX-License-Identifier: Apache-2.0 */
/* Products of bf16: two at a time, summed in f32; subnormals count as zero, as the
 * instruction has it. */
#include <immintrin.h>

#include "hal/sim/kernels/panel.h"

typedef float v16f32 __attribute__((vector_size(64)));
#define NAME sim_product_bf16_avx512bf16
#define SUM float
#define LANES 16
#define UNIT int32_t
#define MR 12
#define STEP(acc, a, b) \
	((v16f32)_mm512_dpbf16_ps((__m512)(acc), (__m512bh)_mm512_set1_epi32(a), \
				  (__m512bh)(b)))
#include "hal/sim/kernels/product_kernels.h"
