/* SPDX-License-Identifier: Apache-2.0 */
/* Floating-point kernels of the portable path. */
#define PATH(name) name##_portable
#include "hal/sim/uop_float.h"
