/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a cache line takes from one CPU to another: 20 to 30 ns where they share a cache, five
 * times as long where they do not. A virtual machine's CPUs move about on its host, so it changes
 * while a benchmark runs, and with it how long work takes that CPUs share by small parts. Prints
 * the longest of all pairs with the first CPU, in ns, or nothing if there is only one. bench.py
 * reads it.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "hal/base/clock.h"
#include "hal/base/cpu.h"

/* The best of ROUNDS, of TURNS there and back each; other work on the CPUs ends neither. */
enum { ROUNDS = 20, TURNS = 500 };

struct pair {
	_Alignas(64) atomic_uint ball;
	_Alignas(64) atomic_bool quit;
};

static void *answer(void *arg)
{
	struct pair *p = arg;

	while (!atomic_load(&p->quit)) {
		unsigned ball = atomic_load(&p->ball);

		if (ball % 2)
			atomic_store(&p->ball, ball + 1);
		else
			cpu_relax();
	}
	return NULL;
}

static double hop(int cpu)
{
	struct pair p = { 0 };
	int64_t best = INT64_MAX;
	pthread_attr_t attr;
	pthread_t thread;
	cpu_set_t set;
	int code;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	pthread_attr_init(&attr);
	pthread_attr_setaffinity_np(&attr, sizeof(set), &set);
	code = pthread_create(&thread, &attr, answer, &p);
	pthread_attr_destroy(&attr);
	if (code)
		return -1;
	for (unsigned round = 0; round < ROUNDS; round++) {
		int64_t began = clock_ns(), took;

		for (unsigned i = 0; i < TURNS; i++) {
			unsigned ball = atomic_load(&p.ball) + 1;

			atomic_store(&p.ball, ball);
			while (atomic_load(&p.ball) == ball)
				cpu_relax();
		}
		took = clock_ns() - began;
		best = took < best ? took : best;
	}
	atomic_store(&p.quit, true);
	pthread_join(thread, NULL);
	return (double)best / (2 * TURNS);
}

int main(void)
{
	double longest = 0;
	cpu_set_t set, own;
	int first = 0;

	if (sched_getaffinity(0, sizeof(set), &set))
		return 1;
	while (first < CPU_SETSIZE && !CPU_ISSET(first, &set))
		first++;
	CPU_ZERO(&own);
	CPU_SET(first, &own);
	sched_setaffinity(0, sizeof(own), &own);
	for (int cpu = first + 1; cpu < CPU_SETSIZE; cpu++) {
		double ns = CPU_ISSET(cpu, &set) ? hop(cpu) : 0;

		if (ns < 0)
			return 1;
		longest = ns > longest ? ns : longest;
	}
	if (longest > 0)
		printf("%.1f\n", longest);
	return 0;
}
