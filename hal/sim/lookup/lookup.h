/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_LOOKUP_H
#define SIM_LOOKUP_H
/*
 * Elements of a table by their indices, all side by side: what most gathers of single elements
 * come to. Private to hal/sim.
 */
#include <stdint.h>

#include "hal/sim/kernels/cpu.h"

/* dst[i] = table[idx[i]], i < n; an index below 0 is taken for 0, one above limit for limit.
 * Memory need not be aligned. If dst meets the others, what arrives is undefined. */
typedef void sim_lookup_fn(void *dst, const void *table, const void *idx, int64_t n,
			   int64_t limit);

#define SIM_LOOKUP_MOST INT32_MAX	/* of limit, for indices of 32 bits */

/* Of elements of 1, 2, 4 and 8 bytes, by indices of s32, s64 and u32. */
extern sim_lookup_fn *const sim_lookup_portable[4][3];
extern SIM_X86 sim_lookup_fn *const sim_lookup_avx2[4][3], *const sim_lookup_avx512[4][3];

#endif
