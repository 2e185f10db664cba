/* SPDX-License-Identifier: Apache-2.0 */
/* Floating-point kernels of the avx512 path. */
#define PATH(name) name##_avx512
#include "hal/sim/uop_float.h"
