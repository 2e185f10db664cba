/* SPDX-License-Identifier: Apache-2.0 */
/* Integer kernels of the avx512 path. */
#define PATH(name) name##_avx512
#include "hal/sim/uop_int.h"
