/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the instructions of all CPUs do together on registers alone, as a limit for products: those
 * of the matrix unit, if there is one and the kernel lets the process use it, else those of
 * vectors. Prints a line for each type that the machine has instructions for: its name, tab,
 * operations a second, where a multiplication and its addition are two. bench.py reads them.
 */
#include <stdio.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hal/base/clock.h"

/* Sums in flight: two a cycle, each ready after four. */
enum { ROUNDS = 7, TURNS = 2000000, SUMS = 12, MOST_CPUS = 64 };

/* A loop of TURNS turns, each of which adds to SUMS sums; the operands must not be known. */
#define LOOP(name, needs, type, step)                                                    \
	__attribute__((target(needs), noinline)) static void name(void)                  \
	{                                                                                \
		type sum[SUMS] = { 0 }, a = { 0 }, b = { 0 };                            \
                                                                                         \
		__asm__ volatile("" : "+v"(a), "+v"(b));                                 \
		for (int i = 0; i < TURNS; i++) {                                        \
			_Pragma("GCC unroll 12") for (int k = 0; k < SUMS; k++)          \
			{                                                                \
				sum[k] = step;                                           \
				__asm__ volatile("" : "+v"(sum[k]));                     \
			}                                                                \
		}                                                                        \
	}

LOOP(f32_avx2, "avx2,fma", __m256, _mm256_fmadd_ps(a, b, sum[k]))
LOOP(f32_avx512, "avx512f", __m512, _mm512_fmadd_ps(a, b, sum[k]))
LOOP(bf16_avx512, "avx512bf16,avx512f", __m512,
     _mm512_dpbf16_ps(sum[k], (__m512bh)a, (__m512bh)b))
LOOP(int8_avx512, "avx512vnni,avx512f", __m512i, _mm512_dpbusd_epi32(sum[k], a, b))

/* The matrix unit: four sums in flight of 16x16, each of 16 rows by 64 bytes times as many. */
enum { TILE_ROWS = 16, TILE_BYTES = 64, TILE_SUMS = 4 };

#define TILE_LOOP(name, needs, step)                                                     \
	__attribute__((target("amx-tile," needs), noinline)) static void name(void)      \
	{                                                                                \
		struct { uint8_t palette, start, zero[14]; uint16_t bytes[16]; uint8_t rows[16]; } \
			config = { .palette = 1 };                                         \
                                                                                         \
		for (int t = 0; t < 8; t++)                                              \
			config.bytes[t] = TILE_BYTES, config.rows[t] = TILE_ROWS;        \
		__asm__ volatile("" : : "r"(&config) : "memory"); /* all of it is there */ \
		_tile_loadconfig(&config);                                               \
		_tile_zero(0); _tile_zero(1); _tile_zero(2); _tile_zero(3);              \
		_tile_zero(4); _tile_zero(5);                                            \
		for (int i = 0; i < TURNS; i++) {                                        \
			step(0, 4, 5); step(1, 4, 5);                                    \
			step(2, 4, 5); step(3, 4, 5);                                    \
		}                                                                        \
		_tile_release();                                                         \
	}

TILE_LOOP(bf16_tiles, "amx-bf16", _tile_dpbf16ps)
TILE_LOOP(int8_tiles, "amx-int8", _tile_dpbssd)

/* Asks Linux for the tiles' registers, 18 of what XSAVE keeps. */
static bool has_tiles(void)
{
	enum { ARCH_REQ_XCOMP_PERM = 0x1023, TILE_DATA = 18 };
	unsigned a, b, c, d;

	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && d >> 22 & 1 && d >> 24 & 1 &&
	       d >> 25 & 1 && !syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, TILE_DATA);
}

struct gang {
	void (*loop)(void);
	pthread_barrier_t start;
};

static void *work(void *arg)
{
	struct gang *g = arg;

	pthread_barrier_wait(&g->start);
	g->loop();
	return NULL;
}

/* The best of several rounds in which each CPU runs the loop once. */
static void report(const char *name, void (*loop)(void), double operations)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	struct gang g = { .loop = loop };
	pthread_t threads[MOST_CPUS];
	int64_t best = INT64_MAX;

	cpus = cpus < 1 ? 1 : cpus > MOST_CPUS ? MOST_CPUS : cpus;
	for (int r = 0; r < ROUNDS; r++) {
		int64_t began, took;
		int n = 0;

		if (pthread_barrier_init(&g.start, NULL, (unsigned)cpus))
			return;
		for (; n < cpus - 1; n++)
			if (pthread_create(&threads[n], NULL, work, &g)) {
				fprintf(stderr, "peak_bench: cannot start a thread for each CPU\n");
				_exit(1);
			}
		pthread_barrier_wait(&g.start);
		began = clock_ns();
		loop();
		while (n > 0)
			pthread_join(threads[--n], NULL);
		took = clock_ns() - began;
		best = took < best ? took : best;
		pthread_barrier_destroy(&g.start);
	}
	printf("%s\t%.4g\n", name, 1e9 * (double)cpus * TURNS * operations / (double)best);
}

int main(void)
{
	if (__builtin_cpu_supports("avx512f"))
		report("f32", f32_avx512, 32 * SUMS);
	else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
		report("f32", f32_avx2, 16 * SUMS);
	if (has_tiles()) {
		report("bf16", bf16_tiles, 2.0 * TILE_SUMS * TILE_ROWS * 16 * 32);
		report("int8", int8_tiles, 2.0 * TILE_SUMS * TILE_ROWS * 16 * 64);
		return 0;
	}
	if (__builtin_cpu_supports("avx512bf16"))
		report("bf16", bf16_avx512, 64 * SUMS);
	if (__builtin_cpu_supports("avx512vnni"))
		report("int8", int8_avx512, 128 * SUMS);
	return 0;
}
#else
int main(void)
{
	return 0;	/* no line: no limit is known for this CPU */
}
#endif
