/* SPDX-License-Identifier: Apache-2.0 */
/* Integer kernels of the avx2 path. */
#define PATH(name) name##_avx2
#include "hal/sim/uop_int.h"
