/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_FFT_SIZE_H
#define SIM_FFT_SIZE_H
/* Plans of transforms, made when a program is loaded. Private to hal/sim. */
#include "hal/base/arena.h"
#include "hal/sim/fft/fft.h"

/* exp(-2 pi i t / n) for 0 <= t < n: pairs. */
void sim_fft_roots(int64_t n, double *to);
/* table[i] = x, of floats or doubles. */
void sim_fft_put(bool is_wide, void *table, int64_t i, double x);
/* The passes of n points (isa_fft_fits(n), n > 0), with tables in the arena. roots: those of
 * `of`, a multiple of n. -1: no memory. */
int sim_fft_size_init(struct arena *arena, bool is_wide, int64_t n, const double *roots,
		      int64_t of, struct sim_fft_size *size);

#endif
