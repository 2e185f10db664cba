/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_FFT_H
#define SIM_FFT_H
/*
 * Fourier transforms of some lines side by side, one in each element of vectors: butterflies then
 * need no shuffles, and lines do not look at each other, so that each path of the host comes to
 * the same bits. Private to hal/sim.
 *
 * A pass with radix r takes transforms of r * m points apart into r of m points (Cooley and
 * Tukey, 1965); what it stores is in order when all passes are done (Stockham; Cochran and
 * others, "What is the fast Fourier transform?", 1967).
 *
 * All arrays are of reals, floats or doubles; a complex number is two. Steps are counted in
 * reals, too.
 */
#include <stdbool.h>
#include <stdint.h>

#include "hal/sim/kernels/cpu.h"

#define SIM_FFT_PASSES 20	/* of 2^20 points, at most */
#define SIM_FFT_WIDE 16		/* lines side by side, at most */
#define SIM_FFT_VECTOR 64	/* bytes of a vector, at most */

/* Points of a transform, and the passes that make it. Roots are exp(-2 pi i k / ...). */
struct sim_fft_size {
	int64_t n;
	unsigned n_passes;
	struct sim_fft_pass {
		int64_t radix, m;
		const void *twiddles;	/* [m][radix - 1] complex numbers */
		const void *roots;	/* [radix]; of radix 2, 4 and 8 none are needed */
	} pass[SIM_FFT_PASSES];
};

/* Where lines of complex numbers are. */
struct sim_fft_lines {
	void *at;
	int64_t step;	/* from one number of a line to the next */
	int64_t line;	/* from one line to the next */
};

/* What else is done to them. */
struct sim_fft_extras {
	bool swaps_in, swaps_out;	/* real and imaginary parts: both make the inverse */
	bool scales;
	double scale;
	/* NULL, or number k of line l is multiplied by re[k * pitch + l] and im[...], of which
	 * SIM_FFT_WIDE may be read behind l = 0. */
	const void *re, *im;
	int64_t pitch;
	const void *next;	/* NULL, or lines that lie as `in` does and are wanted next */
};

struct sim_fft_fns {
	unsigned width;		/* lines side by side, at most */
	/* Transforms n_lines <= width of `in` to `out`, which may be the same ones: all are
	 * read first. room: sim_fft_room(size->n) bytes, aligned to SIM_FFT_VECTOR. */
	void (*transform)(const struct sim_fft_size *size, const struct sim_fft_extras *x,
			  const struct sim_fft_lines *in, const struct sim_fft_lines *out,
			  unsigned n_lines, void *room);
	/*
	 * Between the spectrum of m complex numbers and that of the 2 m real ones that they are
	 * pairs of, either way: with z the conjugate of from[m - k],
	 *	e = half * (from[k] + z), o = turn[k] * (from[k] - z),
	 *	to[k] = e + o and to[m - k] = the conjugate of e - o, first <= k < end,
	 * where k is at least 1 and below m / 2. turn holds [m / 2 + 1] complex numbers, each
	 * as re re im im would be multiplied: (re, re), then behind them all (-im, im).
	 */
	void (*untangle)(const void *from, void *to, int64_t m, int64_t first, int64_t end,
			 double half, const void *turn);
};

/* Of f32 and f64. */
extern const struct sim_fft_fns sim_fft_portable[2];
extern SIM_X86 const struct sim_fft_fns sim_fft_avx2[2], sim_fft_avx512[2];

static inline size_t sim_fft_room(int64_t n)
{
	return (size_t)n * 4 * SIM_FFT_VECTOR;
}

#endif
