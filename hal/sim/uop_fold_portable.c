/* SPDX-License-Identifier: Apache-2.0 */
/* Folds of the portable path. */
#define PATH(name) name##_portable
#include "hal/sim/uop_fold.h"
