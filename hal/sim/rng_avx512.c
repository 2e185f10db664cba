/* SPDX-License-Identifier: Apache-2.0 */
/* The generators of RNG: the avx512 path. */
#define PATH avx512
#include "hal/sim/rng_kernels.h"
