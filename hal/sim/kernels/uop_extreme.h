/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_UOP_EXTREME_H
#define SIM_UOP_EXTREME_H
/* UOP_MIN and UOP_MAX of floats, without branches: NaN wins, -0 < +0. */
#include "hal/sim/kernels/uop_math.h"

static inline uint64_t bits_of64(double x)
{
	uint64_t u;

	memcpy(&u, &x, sizeof(u));
	return u;
}

static inline double double_of(uint64_t u)
{
	double x;

	memcpy(&x, &u, sizeof(x));
	return x;
}

/*
 * The CPU's minimum gives y if the two are unordered, or equal: then the zeros may
 * differ in sign, and or-ing bits gives -0, and-ing +0.
 */
#define EXTREME(name, T, bits, from, LESS, MIX) \
static inline T name(T x, T y) \
{ \
	T r = x LESS y ? x : y; \
	r = x == y ? from(bits(x) MIX bits(y)) : r; \
	return x != x ? x : r; \
}
EXTREME(min_f32, float, bits_of, float_of, <, |)
EXTREME(max_f32, float, bits_of, float_of, >, &)
EXTREME(min_f64, double, bits_of64, double_of, <, |)
EXTREME(max_f64, double, bits_of64, double_of, >, &)

#endif
