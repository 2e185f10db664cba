/* SPDX-License-Identifier: Apache-2.0 */
#define LANES 4
#define MR 1
#define NAME sim_product_f32_portable
#include "hal/sim/product_kernels.h"
