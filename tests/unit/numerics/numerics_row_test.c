/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels of short rows, each path against plain steps: sums and extremes of rows, sums of
 * products, and what is done with one number for each row. Arrays end where the kernels have to, so
 * that the sanitizers see what goes beyond.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hal/base/cpu.h"
#include "hal/sim/kernels/uop.h"

static uint32_t next_number(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*seed >> 33);
}

static unsigned n_paths(void)
{
	return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") ? 3 :
		__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? 2 : 1;
}

static double number(unsigned elem, const void *x, size_t j)
{
	return elem == ELEM_F32 ? (double)((const float *)x)[j] : elem == ELEM_S32 ?
		(double)((const int32_t *)x)[j] : (double)((const uint32_t *)x)[j];
}

/* Against plain steps; sums of floats are near those of doubles. */
static void check_rows(unsigned op, unsigned elem, const void *x, size_t rows, size_t cols,
		       const void *got)
{
	for (size_t r = 0; r < rows; r++) {
		double want = 0, size = 0, is = number(elem, got, r);

		for (size_t j = r * cols; j < (r + 1) * cols; j++) {
			double v = number(elem, x, j);
			double low = op == UOP_MAX ? want : v, high = op == UOP_MAX ? v : want;

			size += fabs(v);
			if (op == UOP_ADD)
				want += v;
			else if (j == r * cols || (v != v && want == want) || low < high ||
				 (low == high && signbit(low) > signbit(high)))
				want = v;
		}
		if (elem != ELEM_F32)
			assert_int_equal(((const uint32_t *)got)[r], (uint32_t)(int64_t)want);
		else if (op == UOP_ADD)
			assert_true(fabs(is - want) <= size * (double)(4 + cols / 8) * 0x1p-24);
		else
			assert_true(want != want ? is != is :
				    is == want && !signbit(is) == !signbit(want));
	}
}

/* Kernels of rows around the widths of registers, of exactly the memory that they may touch. With
 * subnormal numbers flushed as the device does: which of them, or which NaN, is an extreme is the
 * same on each path. */
static void short_rows_fold_alike_on_each_path(void **state)
{
	static const uint8_t elems[] = { ELEM_F32, ELEM_S32, ELEM_U32 },
		ops[] = { UOP_ADD, UOP_MIN, UOP_MAX };
	static const float odd[] = { NAN, -NAN, INFINITY, -INFINITY, 0.0f, -0.0f, -0.0f, -1,
		0.0f, -0.0f, 1e-39f, 3e-39f, -0.0f, -2e-39f, -3e-39f, -0.0f };
	static const uint8_t first[] = { 0, 0, 2, 8 }, some[] = { 0, 8, 4, 8 };
	unsigned long saved = cpu_enter_arithmetic();
	unsigned n = n_paths();
	uint64_t seed = 5;

	(void)state;
	for (size_t i = 0; i < 9 * 1100; i++) {
		size_t cols = i < 9 * 530 ? 1 + i / 9 : 1 + i % 40, rows = 1 + i % 34;
		unsigned elem = elems[i % 3], op = ops[i / 3 % 3], mix = i / 9 % 4;
		float *x = malloc(rows * cols * 4), *y = malloc(rows * cols * 4), *got[6];
		int64_t row = (int64_t)cols * 4;

		for (size_t j = 0; j < rows * cols; j++) {
			x[j] = y[j] = (float)(next_number(&seed) % 2001) / 7 - 143;
			if (mix && elem == ELEM_F32 && op != UOP_ADD)
				memcpy(&x[j], &odd[first[mix] + next_number(&seed) % some[mix]], 4);
		}
		/* products are with a row for each, or with one for all */
		for (unsigned k = 0; k < 2 * n; k++) {
			got[k] = malloc(rows * 4);
			sim_uop_product_fold(k / 2, ELEM_F32)(got[k], y, row, x, k % 2 * row,
							      rows, cols);
			if (op == UOP_ADD)
				assert_memory_equal(got[k], got[k % 2], rows * 4);
		}
		for (unsigned k = 0; k < 2 * n; k++) {
			sim_uop_fold(k / 2, op, elem)(got[k], x, rows, cols);
			check_rows(op, elem, x, rows, cols, got[k]);
			assert_memory_equal(got[k], got[0], rows * 4);
			free(k ? got[k] : NULL);
		}
		free(got[0]);
		free(x);
		free(y);
	}
	cpu_leave_arithmetic(saved);
}

/* Of a row and a number for it, which the result may take the place of. */
static void rows_meet_a_number_each(void **state)
{
	static const uint8_t ops[] = { UOP_ADD, UOP_SUB, UOP_MUL, UOP_DIV };
	uint64_t seed = 6;

	(void)state;
	for (unsigned i = 0; i < n_paths() * 4 * 70; i++) {
		struct isa_uop u = { .op = ops[i / n_paths() % 4], .elem = ELEM_F32 };
		enum sim_path path = i % n_paths();
		size_t cols = 1 + i / n_paths() / 4, rows = 1 + next_number(&seed) % 9;
		float *x = malloc(rows * cols * 4), *want = malloc(rows * cols * 4);
		float *y = malloc(rows * cols * 4);
		sim_uop_fn *fn = sim_uop_kernel(path, &u), *by_row = sim_uop_by_row(path, fn);

		for (size_t j = 0; j < rows * cols; j++)
			x[j] = y[j] = (float)(next_number(&seed) % 2001) / 7 - 143;
		for (size_t r = 0; r < rows; r++)
			fn(want + r * cols, x + r * cols, y + r, NULL, cols, UOP_SPREAD_B, 0);
		by_row(y, x, y, NULL, rows, 0, cols);
		assert_memory_equal(y, want, rows * cols * 4);
		free(want);
		free(x);
		free(y);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(short_rows_fold_alike_on_each_path),
		cmocka_unit_test(rows_meet_a_number_each),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
