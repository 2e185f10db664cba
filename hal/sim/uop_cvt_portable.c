/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions of the portable path. */
#define PATH(name) name##_portable
#include "hal/sim/uop_cvt.h"
