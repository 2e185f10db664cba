/* SPDX-License-Identifier: Apache-2.0 */
/* The generators of RNG: the avx2 path. */
#define PATH avx2
#include "hal/sim/rng_kernels.h"
