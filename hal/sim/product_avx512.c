/* SPDX-License-Identifier: Apache-2.0 */
#pragma GCC optimize("fp-contract=fast")
#define LANES 16
#define MR 12
#define NAME sim_product_f32_avx512
#include "hal/sim/product_kernels.h"
