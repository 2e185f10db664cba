/* SPDX-License-Identifier: Apache-2.0 */
/* Transposition with AVX2. */
#include <immintrin.h>

#define PATH avx2
#define WIDE
#include "hal/sim/kernels/transpose_kernels.h"
