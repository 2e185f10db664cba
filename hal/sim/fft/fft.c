/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fourier transforms for one path: see path.h and fft_kernels.h. Compilers know vectors of any
 * width but not how to name a shuffle of one, so those of each width are spelled out here.
 */
#include "hal/hw/isa.h"
#include "hal/sim/fft/fft.h"
#include "hal/sim/kernels/path.h"

#if defined(__AVX512F__)
#define BYTES 64
#elif defined(__AVX2__)
#define BYTES 32
#else
#define BYTES 16
#endif

/* Of vectors a and b, behind each other: the first halves of both, element by element; the
 * second halves; what has an even place; an odd one. Of one: pairs in the opposite order; both
 * of each pair swapped. Of a and -a: the second of each pair from -a. */
#define MASKS_2_LOW		{ 0, 2 }
#define MASKS_2_HIGH		{ 1, 3 }
#define MASKS_2_EVEN		{ 0, 2 }
#define MASKS_2_ODD		{ 1, 3 }
#define MASKS_2_REVERSE		{ 0, 1 }
#define MASKS_2_SWAP		{ 1, 0 }
#define MASKS_2_CONJUGATE	{ 0, 3 }
#define MASKS_4_LOW		{ 0, 4, 1, 5 }
#define MASKS_4_HIGH		{ 2, 6, 3, 7 }
#define MASKS_4_EVEN		{ 0, 2, 4, 6 }
#define MASKS_4_ODD		{ 1, 3, 5, 7 }
#define MASKS_4_REVERSE		{ 2, 3, 0, 1 }
#define MASKS_4_SWAP		{ 1, 0, 3, 2 }
#define MASKS_4_CONJUGATE	{ 0, 5, 2, 7 }
#define MASKS_8_LOW		{ 0, 8, 1, 9, 2, 10, 3, 11 }
#define MASKS_8_HIGH		{ 4, 12, 5, 13, 6, 14, 7, 15 }
#define MASKS_8_EVEN		{ 0, 2, 4, 6, 8, 10, 12, 14 }
#define MASKS_8_ODD		{ 1, 3, 5, 7, 9, 11, 13, 15 }
#define MASKS_8_REVERSE		{ 6, 7, 4, 5, 2, 3, 0, 1 }
#define MASKS_8_SWAP		{ 1, 0, 3, 2, 5, 4, 7, 6 }
#define MASKS_8_CONJUGATE	{ 0, 9, 2, 11, 4, 13, 6, 15 }
#define MASKS_16_LOW		{ 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23 }
#define MASKS_16_HIGH		{ 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31 }
#define MASKS_16_EVEN		{ 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30 }
#define MASKS_16_ODD		{ 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31 }
#define MASKS_16_REVERSE	{ 14, 15, 12, 13, 10, 11, 8, 9, 6, 7, 4, 5, 2, 3, 0, 1 }
#define MASKS_16_SWAP		{ 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14 }
#define MASKS_16_CONJUGATE	{ 0, 17, 2, 19, 4, 21, 6, 23, 8, 25, 10, 27, 12, 29, 14, 31 }

#define MASK_NAMED(width, what)	MASKS_##width##_##what
#define MASK_WIDE(width, what)	MASK_NAMED(width, what)
#define MASK_LOW		MASK_WIDE(WIDTH, LOW)
#define MASK_HIGH		MASK_WIDE(WIDTH, HIGH)
#define MASK_EVEN		MASK_WIDE(WIDTH, EVEN)
#define MASK_ODD		MASK_WIDE(WIDTH, ODD)
#define MASK_REVERSE		MASK_WIDE(WIDTH, REVERSE)
#define MASK_SWAP		MASK_WIDE(WIDTH, SWAP)
#define MASK_CONJUGATE		MASK_WIDE(WIDTH, CONJUGATE)
#define MASK_OF_float		int32_t
#define MASK_OF_double		int64_t
#define MASK_JOIN(real)		MASK_OF_##real
#define MASK_OF(real)		MASK_JOIN(real)

#define REAL float
#if BYTES == 64
#define WIDTH 16
#elif BYTES == 32
#define WIDTH 8
#else
#define WIDTH 4
#endif
#define NAME(name) narrow_##name
#include "hal/sim/fft/fft_kernels.h"
#undef REAL
#undef WIDTH
#undef NAME

#define REAL double
#if BYTES == 64
#define WIDTH 8
#elif BYTES == 32
#define WIDTH 4
#else
#define WIDTH 2
#endif
#define NAME(name) wide_##name
#include "hal/sim/fft/fft_kernels.h"

const struct sim_fft_fns PATH(sim_fft)[2] = {
	{ BYTES / sizeof(float), narrow_transform, narrow_untangle },
	{ BYTES / sizeof(double), wide_transform, wide_untangle },
};
