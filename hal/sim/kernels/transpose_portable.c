/* SPDX-License-Identifier: Apache-2.0 */
/* Transposition without vector extensions, and the choice between paths. */
#define PATH portable
#include "hal/sim/kernels/transpose_kernels.h"

sim_transpose_fn *sim_transpose(enum sim_path path, unsigned bytes)
{
	unsigned k = bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : bytes == 8 ? 3 : 4;

	/* wider registers than AVX2's gain nothing: memory sets the pace */
	return path == SIM_PORTABLE ? sim_transpose_portable[k] : sim_transpose_avx2[k];
}

sim_column_fn *sim_column(enum sim_path path, unsigned bytes, int64_t step)
{
	unsigned k = bytes == 1 ? 0 : bytes == 2 ? 1 : 2;

	if (path != SIM_PORTABLE && step == -1 && bytes <= 8)
		return sim_back_avx2[__builtin_ctz(bytes)];
	if (path == SIM_AVX512 && bytes == 4 && step >= -SIM_MOST_STEP && step <= -SIM_LEAST_STEP)
		return sim_wide_back_avx512[-step - SIM_LEAST_STEP];
	if (path == SIM_PORTABLE || bytes > 4 || step < SIM_LEAST_STEP || step > SIM_MOST_STEP)
		return NULL;
	if (path == SIM_AVX512 && bytes == 4)
		return sim_wide_column_avx512[step - SIM_LEAST_STEP];
	return sim_column_avx2[k][step - SIM_LEAST_STEP];
}

sim_shuffle_fn *sim_shuffle(enum sim_path path, unsigned bytes)
{
	return path == SIM_AVX512 && bytes <= 4 ? sim_wide_shuffle_avx512[__builtin_ctz(bytes)] :
		NULL;
}

sim_repeat_fn *sim_repeat(enum sim_path path, unsigned bytes)
{
	return path == SIM_AVX512 && bytes <= 8 ? sim_wide_repeat_avx512[__builtin_ctz(bytes)] :
		NULL;
}

sim_zip_fn *sim_zip(enum sim_path path, unsigned bytes)
{
	return path == SIM_AVX512 && bytes == 4 ? sim_wide_zip_avx512 : NULL;
}
