/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRANSPORT_BENCH_H
#define TRANSPORT_BENCH_H
/*
 * Figures of transport_bench: samples of one operation, printed as one line. One thread.
 *
 *	figure_begin(&f, "system call", NULL, 0);
 *	while (figure_more(&f))
 *		figure_add(&f, ns);
 *	figure_end(&f);
 *
 * Tabs between: name, median, least and 99th percentile in ns (0: under 100 samples), the
 * number of samples, bytes (0: says nothing), the name of what it is held against ("").
 */
#include <stdbool.h>
#include <stdint.h>

#include "hal/base/clock.h"

#define SYSTEM_CALL "system call"
#define SHARED_MEMORY "shared memory, two threads, round trip"
#define EVENTFD "eventfd, two threads, round trip"

enum { FIGURE_LEAST = 9, FIGURE_MOST = 4000 };

struct figure {
	char name[80], peer[80];
	uint64_t bytes;
	int64_t until;
	unsigned n;
	double ns[FIGURE_MOST];
};

/* How long samples of one figure are taken; at least FIGURE_LEAST are, whatever it says. */
extern int64_t figure_budget_ns;

void figure_begin(struct figure *f, const char *name, const char *peer, uint64_t bytes);
bool figure_more(const struct figure *f);
void figure_add(struct figure *f, double ns);
double figure_median(struct figure *f);
void figure_end(struct figure *f);
/* Prints what f takes beyond another, of as many samples. */
void figure_end_beyond(struct figure *f, struct figure *less);
/* "%s 4 KiB"; stays until the eighth call after. */
const char *figure_sized(const char *what, uint64_t bytes);

/* What was measured did not happen: says why and exits 1. */
__attribute__((noreturn, format(printf, 1, 2)))
void bench_die(const char *format, ...);

/* What this machine does without the device (transport_floors.c). */
void bench_floors(void);
/* mmap, mlock and their ends for so many bytes; false: mlock may not. */
bool bench_floor_memory(uint64_t bytes);
/* The kernel driver's own ring, by SUBMIT on this node (transport_ioctl.c). */
void bench_ioctl(const char *node);

#endif
