/* SPDX-License-Identifier: Apache-2.0 */
/* Transforms of a size: their passes, and tables of roots of unity. */
#include "hal/sim/fft/fft_size.h"

#include <math.h>

#include "hal/hw/isa.h"

/* exp(-2 pi i t / n), 0 <= t < n, from an angle within an eighth of a turn; quarters are exact. */
static void root(int64_t t, int64_t n, double *to)
{
	int64_t quarter = 4 * t / n, rest = 4 * t % n;
	bool is_past = 2 * rest > n;
	double angle = M_PI / 2 * (double)(is_past ? n - rest : rest) / (double)n;
	double c = is_past ? sin(angle) : cos(angle), s = is_past ? cos(angle) : sin(angle);
	double re = quarter % 2 ? -s : c, im = quarter % 2 ? c : s;

	to[0] = quarter > 1 ? -re : re;
	to[1] = quarter > 1 ? im : -im;
}

void sim_fft_roots(int64_t n, double *to)
{
	for (int64_t t = 0; t < n; t++)
		root(t, n, to + 2 * t);
}

void sim_fft_put(bool is_wide, void *table, int64_t i, double x)
{
	if (is_wide)
		((double *)table)[i] = x;
	else
		((float *)table)[i] = (float)x;
}

/* The next radix of n points: primes as they come, but twos by threes, and never 2 at the end if
 * two fours do it. */
static int64_t radix_of(int64_t n)
{
	if (n % 8 == 0 && n != 16)
		return 8;
	if (n % 4 == 0)
		return 4;
	for (int64_t p = 2; p <= ISA_MAX_FFT_PRIME; p++)
		if (n % p == 0)
			return p;
	return n;
}

/* [m][radix - 1]: root p * j of radix * m for each p and j > 0. */
static void *twiddles(struct arena *arena, bool is_wide, const struct sim_fft_pass *p,
		      const double *roots, int64_t step)
{
	int64_t width = p->radix - 1;
	void *table = arena_array(arena, (size_t)(p->m * width), is_wide ? 16 : 8);

	for (int64_t i = 0; table && i < p->m * width; i++) {
		const double *w = roots + 2 * step * (i / width * (i % width + 1));

		sim_fft_put(is_wide, table, 2 * i, w[0]);
		sim_fft_put(is_wide, table, 2 * i + 1, w[1]);
	}
	return table;
}

static void *roots_of(struct arena *arena, bool is_wide, int64_t radix, const double *roots,
		      int64_t step)
{
	void *table = arena_array(arena, (size_t)radix, is_wide ? 16 : 8);

	for (int64_t i = 0; table && i < 2 * radix; i++)
		sim_fft_put(is_wide, table, i, roots[2 * step * (i / 2) + i % 2]);
	return table;
}

int sim_fft_size_init(struct arena *arena, bool is_wide, int64_t n, const double *roots,
		      int64_t of, struct sim_fft_size *size)
{
	int64_t rest = n;

	*size = (struct sim_fft_size){ .n = n };
	while (rest > 1) {
		struct sim_fft_pass *p = &size->pass[size->n_passes++];

		p->radix = radix_of(rest);
		p->m = rest / p->radix;
		p->twiddles = twiddles(arena, is_wide, p, roots, of / rest);
		p->roots = roots_of(arena, is_wide, p->radix, roots, of / p->radix);
		if (!p->twiddles || !p->roots)
			return -1;
		rest = p->m;
	}
	return 0;
}
