/* SPDX-License-Identifier: Apache-2.0 */
/* The generators of RNG: the portable path. */
#define PATH portable
#include "hal/sim/rng_kernels.h"
