/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels for matrix tiles, on any CPU: their instructions are replaced by a model
 * of tile registers as the manufacturer's manual describes them, and the results compared
 * with plain loops.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <immintrin.h>

static struct {
	union { uint8_t u8[16][64]; float f32[16][16]; uint32_t u32[16][16]; } tile[8];
	int is_configured;
} cpu;

static void model_config(const void *config)
{
	const uint8_t *p = config;

	assert_int_equal(p[0], 1);
	for (unsigned i = 0; i < 8; i++) {
		assert_int_equal(p[16 + 2 * i] | p[17 + 2 * i] << 8, 64);
		assert_int_equal(p[48 + i], 16);
	}
	assert_int_equal((uintptr_t)config % 64, 0);
	cpu.is_configured = 1;
}

static void model_load(unsigned t, const void *base, size_t stride)
{
	assert_true(cpu.is_configured);
	for (unsigned r = 0; r < 16; r++)
		memcpy(cpu.tile[t].u8[r], (const uint8_t *)base + r * stride, 64);
}

static void model_store(unsigned t, void *base, size_t stride)
{
	for (unsigned r = 0; r < 16; r++)
		memcpy((uint8_t *)base + r * stride, cpu.tile[t].u8[r], 64);
}

/* Fetching changes nothing that a program sees, so it is counted. */
static struct { const uint8_t *from; unsigned char times[256]; } fetched[2];

static void model_fetch(const void *line)
{
	for (unsigned i = 0; i < 2; i++) {
		size_t at = (size_t)((uintptr_t)line - (uintptr_t)fetched[i].from) / 64;

		if (fetched[i].from && (uintptr_t)line >= (uintptr_t)fetched[i].from && at < 256)
			fetched[i].times[at]++;
	}
}

static float from_bf16(const uint8_t *p)
{
	uint32_t bits = (uint32_t)(p[0] | p[1] << 8) << 16;
	float f;

	memcpy(&f, &bits, 4);
	return f;
}

static void model_bf16(unsigned c, unsigned a, unsigned b)
{
	for (unsigned m = 0; m < 16; m++)
		for (unsigned k = 0; k < 16; k++)
			for (unsigned n = 0; n < 16; n++)
				for (unsigned h = 0; h < 2; h++)
					cpu.tile[c].f32[m][n] +=
						from_bf16(&cpu.tile[a].u8[m][4 * k + 2 * h]) *
						from_bf16(&cpu.tile[b].u8[k][4 * n + 2 * h]);
}

static void model_bytes(unsigned c, unsigned a, unsigned b, int a_signed, int b_signed)
{
	for (unsigned m = 0; m < 16; m++)
		for (unsigned k = 0; k < 16; k++)
			for (unsigned n = 0; n < 16; n++)
				for (unsigned h = 0; h < 4; h++) {
					uint8_t x = cpu.tile[a].u8[m][4 * k + h];
					uint8_t y = cpu.tile[b].u8[k][4 * n + h];

					cpu.tile[c].u32[m][n] += (uint32_t)
						((a_signed ? (int8_t)x : x) *
						 (b_signed ? (int8_t)y : y));
				}
}

#undef _tile_zero
#undef _tile_loadd
#undef _tile_stream_loadd
#undef _mm_prefetch
#undef _tile_stored
#undef _tile_dpbf16ps
#undef _tile_dpbssd
#undef _tile_dpbsud
#undef _tile_dpbusd
#undef _tile_dpbuud
#define _tile_loadconfig(p) model_config(p)
#define _tile_release() (cpu.is_configured = 0)
#define _tile_zero(t) memset(&cpu.tile[t], 0, sizeof(cpu.tile[t]))
#define _tile_loadd(t, base, stride) model_load(t, base, stride)
#define _tile_stream_loadd(t, base, stride) model_load(t, base, stride)
#define _mm_prefetch(at, hint) model_fetch(at)
#define _tile_stored(t, base, stride) model_store(t, base, stride)
#define _tile_dpbf16ps(c, a, b) model_bf16(c, a, b)
#define _tile_dpbssd(c, a, b) model_bytes(c, a, b, 1, 1)
#define _tile_dpbsud(c, a, b) model_bytes(c, a, b, 1, 0)
#define _tile_dpbusd(c, a, b) model_bytes(c, a, b, 0, 1)
#define _tile_dpbuud(c, a, b) model_bytes(c, a, b, 0, 0)
/* The library has kernels of these names. */
#define sim_product_bf16_amx tested_bf16
#define sim_product_ss_amx tested_ss
#define sim_product_su_amx tested_su
#define sim_product_us_amx tested_us
#define sim_product_uu_amx tested_uu
#include "hal/sim/kernels/product_amx.c"

enum { ROWS = 64, COLS = 96, KU = 48 };

static uint8_t a[ROWS][SIM_PRODUCT_PITCH * 4] __attribute__((aligned(64)));
static uint8_t b[COLS / 32][KU][32][4] __attribute__((aligned(64)));
static uint32_t first[ROWS][COLS + 5], sums[ROWS][COLS];

/* Small whole numbers, so that sums of floats are exact in any order. */
static void fill(int is_bf16, unsigned rows)
{
	uint8_t *p = (uint8_t *)a, *q = (uint8_t *)b;

	srand(7);
	memset(a, 0, sizeof(a));
	for (size_t i = 0; i < rows * sizeof(a[0]); i++)
		p[i] = (uint8_t)rand();
	for (size_t i = 0; i < sizeof(b); i++)
		q[i] = (uint8_t)rand();
	for (size_t i = 0; is_bf16 && i < sizeof(a) + sizeof(b); i += 2) {
		uint8_t *to = i < sizeof(a) ? p + i : q + (i - sizeof(a));
		float f = (float)(rand() % 17 - 8);
		uint32_t bits;

		memcpy(&bits, &f, 4);
		to[0] = (uint8_t)(bits >> 16);
		to[1] = (uint8_t)(bits >> 24);
	}
}

static int64_t expected(unsigned i, unsigned j, unsigned ku, int kind)
{
	const uint8_t *line = (const uint8_t *)b + ((size_t)j / 32 * ku * 32 + j % 32) * 4;
	int64_t sum = 0;

	for (unsigned k = 0; k < ku; k++, line += 32 * 4)
		for (unsigned h = 0; h < 4; h++) {
			const uint8_t *x = &a[i][4 * k + h], *y = line + h;

			if (kind == 4)
				sum += h % 2 ? 0 : (int64_t)(from_bf16(x) * from_bf16(y));
			else
				sum += (kind & 1 ? (int8_t)*x : *x) *
				       (kind & 2 ? (int8_t)*y : *y);
		}
	return sum;
}

static void check(sim_product_fn *fn, int kind)
{
	static const unsigned sizes[][3] = {
		{ 32, 32, 16 }, { 1, 1, 16 }, { 33, 95, 48 }, { 64, 96, 32 }, { 17, 40, 16 },
	};

	for (unsigned s = 0; s < 5; s++) {
		unsigned rows = sizes[s][0], cols = sizes[s][1], ku = sizes[s][2];

		fill(kind == 4, rows);
		memset(first, 0xef, sizeof(first));
		for (unsigned i = 0; i < ROWS; i++)
			for (unsigned j = 0; j < COLS; j++)
				sums[i][j] = i < rows && j < cols ? 0xdeadbeef : 0;
		/* The first panel takes the place of what is there; the next one adds to it. */
		fn(&(struct sim_product_step){ .a = a, .b = b, .ku = ku, .rows = rows,
			.cols = cols, .sums = first, .ld = COLS + 5 });
		fn(&(struct sim_product_step){ .a = a, .b = b, .ku = ku, .rows = rows,
			.cols = cols, .before = first, .before_ld = COLS + 5, .sums = sums,
			.ld = COLS });
		assert_false(cpu.is_configured);
		for (unsigned i = 0; i < ROWS; i++)
			for (unsigned j = 0; j < COLS; j++) {
				int64_t want = i < rows && j < cols ?
					2 * expected(i, j, ku, kind) : 0;
				float got;

				memcpy(&got, &sums[i][j], 4);
				if (kind == 4)
					assert_true((int64_t)got == want);
				else
					assert_int_equal(sums[i][j], (uint32_t)want);
			}
	}
}

static void bytes_of_all_signs(void **state)
{
	(void)state;
	check(tested_uu, 0);
	check(tested_su, 1);
	check(tested_us, 2);
	check(tested_ss, 3);
}

static void halves(void **state)
{
	(void)state;
	check(tested_bf16, 4);
}

/* While columns are multiplied, the next ones come nearer, and a part of each row of what a's panel
 * is filled from afterwards: each line once. */
static void what_comes_next_is_fetched_once(void **state)
{
	enum { K = 32, SOON = 41, WIDE = 5 };
	static uint8_t soon[SOON * WIDE * 64] __attribute__((aligned(64)));
	struct sim_product_step x = { .a = a, .b = b, .ku = K, .rows = ROWS, .cols = COLS,
		.sums = sums, .ld = COLS, .soon = soon, .soon_pitch = WIDE * 64, .n_soon = SOON,
		.soon_bytes = K * 4 };

	(void)state;
	fill(0, ROWS);
	memset(fetched, 0, sizeof(fetched));
	fetched[0].from = (const uint8_t *)b;
	fetched[1].from = soon;
	tested_ss(&x);
	for (unsigned line = 0; line < 256; line++) {
		unsigned columns = line * 64 / (K * 32 * 4), part = line % WIDE;

		assert_int_equal(fetched[0].times[line], columns >= 1 && columns <= COLS / 32);
		assert_int_equal(fetched[1].times[line], line < SOON * WIDE && part < K / 16);
	}
	memset(fetched, 0, sizeof(fetched));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_of_all_signs), cmocka_unit_test(halves),
		cmocka_unit_test(what_comes_next_is_fetched_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
