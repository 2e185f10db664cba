/* SPDX-License-Identifier: Apache-2.0 */
/* Folds of the avx2 path. */
#define PATH(name) name##_avx2
#include "hal/sim/uop_fold.h"
