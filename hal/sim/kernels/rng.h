/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_RNG_H
#define SIM_RNG_H
/* The block ciphers behind RNG, compiled for each path. Private to hal/sim. */
#include <stddef.h>
#include <stdint.h>

#include "hal/sim/kernels/cpu.h"

/* Blocks first .. first + n - 1 of the generator. PHILOX: 4 words a block; counter is
 * 128 bits, low half first. THREEFRY: 2 words a block; the high half is not used. */
struct sim_rng_key { uint64_t key, counter[2]; };
typedef void sim_rng_fn(const struct sim_rng_key *k, uint64_t first, size_t n,
			uint32_t *out);

struct sim_rng_fns { sim_rng_fn *philox, *threefry; };
extern const struct sim_rng_fns sim_rng_portable;
extern SIM_X86 const struct sim_rng_fns sim_rng_avx2, sim_rng_avx512;

#endif
