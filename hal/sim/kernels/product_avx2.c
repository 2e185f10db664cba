/* SPDX-License-Identifier: Apache-2.0 */
#include <immintrin.h>

#include "hal/sim/kernels/panel.h"

#pragma GCC optimize("fp-contract=fast")

#define NAME sim_product_f32_avx2
#define FEW sim_product_few_f32_avx2
#define FEW_BF16 sim_product_few_bf16_avx2
#define TINY sim_product_tiny_f32_avx2
#define LONE sim_product_lone_f32_avx2
#define SUM float
#define LANES 8
#define UNIT float
#define MR 3
#define STEP(acc, a, b) ((a) * (b) + (acc))
#include "hal/sim/kernels/product_kernels.h"

#define NAME sim_product_f64_avx2
#define FEW sim_product_few_f64_avx2
#define TINY sim_product_tiny_f64_avx2
#define LONE sim_product_lone_f64_avx2
#define SUM double
#define LANES 4
#define UNIT double
#define MR 1
#define STEP(acc, a, b) ((a) * (b) + (acc))
#include "hal/sim/kernels/product_kernels.h"

typedef uint32_t v8u32 __attribute__((vector_size(32)));
#define NAME sim_product_s16_avx2
#define SUM uint32_t
#define LANES 8
#define UNIT int32_t
#define MR 2
#define STEP(acc, a, b) \
	((acc) + (v8u32)_mm256_madd_epi16(_mm256_set1_epi32(a), (__m256i)(b)))
#include "hal/sim/kernels/product_kernels.h"

#define NAME sim_product_i32_avx2
#define FEW sim_product_few_i32_avx2
#define TINY sim_product_tiny_i32_avx2
#define LONE sim_product_lone_i32_avx2
#define SUM uint32_t
#define LANES 8
#define UNIT uint32_t
#define MR 3
#define STEP(acc, a, b) ((acc) + (a) * (b))
#include "hal/sim/kernels/product_kernels.h"

#define NAME sim_product_i64_avx2
#define FEW sim_product_few_i64_avx2
#define TINY sim_product_tiny_i64_avx2
#define LONE sim_product_lone_i64_avx2
#define SUM uint64_t
#define LANES 4
#define UNIT uint64_t
#define MR 1
#define STEP(acc, a, b) ((acc) + (a) * (b))
#include "hal/sim/kernels/product_kernels.h"

#define NAME sim_product_c64_avx2
#define SUM float
#define WORD int32_t
#define LANES 8
#define TURNED 1, 0, 3, 2, 5, 4, 7, 6
#define MR 3
#define VECS 2
#include "hal/sim/kernels/product_complex_kernels.h"

#define NAME sim_product_c128_avx2
#define SUM double
#define WORD int64_t
#define LANES 4
#define TURNED 1, 0, 3, 2
#define MR 3
#define VECS 2
#include "hal/sim/kernels/product_complex_kernels.h"

#define PATH avx2
#include "hal/sim/kernels/product_pack_kernels.h"
