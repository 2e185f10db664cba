/* SPDX-License-Identifier: Apache-2.0 */
#pragma GCC optimize("fp-contract=fast")
#define LANES 8
#define MR 3
#define NAME sim_product_f32_avx2
#include "hal/sim/product_kernels.h"
