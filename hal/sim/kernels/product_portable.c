/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels that every CPU runs, in vectors of 16 bytes. */
#include "hal/sim/kernels/panel.h"

#define NAME sim_product_f32_portable
#define FEW sim_product_few_f32_portable
#define FEW_BF16 sim_product_few_bf16_portable
#define TINY sim_product_tiny_f32_portable
#define LONE sim_product_lone_f32_portable
#define SUM float
#define LANES 4
#define UNIT float
#define MR 1
#define STEP(acc, a, b) ((acc) + (a) * (b))
#include "hal/sim/kernels/product_kernels.h"

#define NAME sim_product_f64_portable
#define FEW sim_product_few_f64_portable
#define TINY sim_product_tiny_f64_portable
#define LONE sim_product_lone_f64_portable
#define SUM double
#define LANES 2
#define UNIT double
#define MR 1
#define STEP(acc, a, b) ((acc) + (a) * (b))
#include "hal/sim/kernels/product_kernels.h"

/* Two s16 of each unit: the high and the low half of a word. */
typedef int32_t v4s32 __attribute__((vector_size(16)));
typedef uint32_t v4u32 __attribute__((vector_size(16)));
#define LOW(b) ((v4s32)((v4u32)(b) << 16) >> 16)
#define NAME sim_product_s16_portable
#define SUM uint32_t
#define LANES 4
#define UNIT int32_t
#define MR 1
#define STEP(acc, a, b) \
	((acc) + (v4u32)((int32_t)(int16_t)(a) * LOW(b)) + \
	 (v4u32)(((a) >> 16) * ((v4s32)(b) >> 16)))
#include "hal/sim/kernels/product_kernels.h"

#define NAME sim_product_i32_portable
#define FEW sim_product_few_i32_portable
#define TINY sim_product_tiny_i32_portable
#define LONE sim_product_lone_i32_portable
#define SUM uint32_t
#define LANES 4
#define UNIT uint32_t
#define MR 1
#define STEP(acc, a, b) ((acc) + (a) * (b))
#include "hal/sim/kernels/product_kernels.h"

#define NAME sim_product_i64_portable
#define FEW sim_product_few_i64_portable
#define TINY sim_product_tiny_i64_portable
#define LONE sim_product_lone_i64_portable
#define SUM uint64_t
#define LANES 2
#define UNIT uint64_t
#define MR 1
#define STEP(acc, a, b) ((acc) + (a) * (b))
#include "hal/sim/kernels/product_kernels.h"

#define NAME sim_product_c64_portable
#define SUM float
#define WORD int32_t
#define LANES 4
#define TURNED 1, 0, 3, 2
#define MR 3
#define VECS 2
#include "hal/sim/kernels/product_complex_kernels.h"

#define NAME sim_product_c128_portable
#define SUM double
#define WORD int64_t
#define LANES 2
#define TURNED 1, 0
#define MR 3
#define VECS 2
#include "hal/sim/kernels/product_complex_kernels.h"

#define PATH portable
#include "hal/sim/kernels/product_pack_kernels.h"
