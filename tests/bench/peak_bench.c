/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the vector instructions of all CPUs do together on registers alone, as a limit for
 * products. Prints a line for each type that the machine has instructions for: its name, tab,
 * operations a second, where a multiplication and its addition are two. bench.py reads them.
 */
#include <stdio.h>

#if defined(__x86_64__)
#include <immintrin.h>
#include <pthread.h>
#include <stdatomic.h>
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
static void report(const char *name, void (*loop)(void), int operations)
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
	printf("%s\t%.4g\n", name, 1e9 * (double)cpus * TURNS * SUMS * operations / (double)best);
}

int main(void)
{
	if (__builtin_cpu_supports("avx512f"))
		report("f32", f32_avx512, 32);
	else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
		report("f32", f32_avx2, 16);
	if (__builtin_cpu_supports("avx512bf16"))
		report("bf16", bf16_avx512, 64);
	if (__builtin_cpu_supports("avx512vnni"))
		report("int8", int8_avx512, 128);
	return 0;
}
#else
int main(void)
{
	return 0;	/* no line: no limit is known for this CPU */
}
#endif
