/* SPDX-License-Identifier: Apache-2.0 */
/* Floating-point kernels of the avx2 path. */
#define PATH(name) name##_avx2
#include "hal/sim/uop_float.h"
