/* SPDX-License-Identifier: Apache-2.0 */
/* Integer kernels of the portable path. */
#define PATH(name) name##_portable
#include "hal/sim/uop_int.h"
