/* SPDX-License-Identifier: Apache-2.0 */
/* Products of bf16: two at a time, summed in f32; subnormals count as zero, as the
 * instruction has it. */
#include <immintrin.h>

#include "hal/sim/kernels/panel.h"

typedef float v16f32 __attribute__((vector_size(64)));

/* Register v of the columns of two lines, the elements of both in turn. */
static inline v16f32 pair(const uint8_t *x, const uint8_t *y, unsigned v)
{
	static const uint16_t turns[2][32] __attribute__((aligned(64))) = {
#define TURNS(i) (i), (i) + 32, (i) + 1, (i) + 33, (i) + 2, (i) + 34, (i) + 3, (i) + 35
		{ TURNS(0), TURNS(4), TURNS(8), TURNS(12) },
		{ TURNS(16), TURNS(20), TURNS(24), TURNS(28) },
#undef TURNS
	};

	return (v16f32)_mm512_permutex2var_epi16(_mm512_loadu_si512(x),
						 _mm512_load_si512(turns[v]),
						 _mm512_loadu_si512(y));
}

#define NAME sim_product_bf16_avx512bf16
#define SUM float
#define LANES 16
#define UNIT int32_t
#define MR 12
#define STEP(acc, a, b) \
	((v16f32)_mm512_dpbf16_ps((__m512)(acc), (__m512bh)_mm512_set1_epi32(a), \
				  (__m512bh)(b)))
#define PAIR pair
#include "hal/sim/kernels/product_kernels.h"
