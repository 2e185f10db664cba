/* SPDX-License-Identifier: Apache-2.0 */
/* Figures: samples, and the line that they become. */
#include "tests/bench/transport_bench.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)

int64_t figure_budget_ns = 300000000;

void bench_die(const char *format, ...)
{
	va_list ap;

	fflush(stdout);
	va_start(ap, format);
	fprintf(stderr, "transport_bench: ");
	vfprintf(stderr, format, ap);
	fprintf(stderr, "\n");
	va_end(ap);
	exit(1);
}

const char *figure_sized(const char *what, uint64_t bytes)
{
	static char texts[8][80];
	static unsigned turn;
	char *text = texts[turn++ % 8];

	snprintf(text, sizeof(*texts), "%s %llu %s", what,
		 (unsigned long long)(bytes < MIB ? bytes / KIB : bytes / MIB),
		 bytes < MIB ? "KiB" : "MiB");
	return text;
}

void figure_begin(struct figure *f, const char *name, const char *peer, uint64_t bytes)
{
	snprintf(f->name, sizeof(f->name), "%s", name);
	snprintf(f->peer, sizeof(f->peer), "%s", peer ? peer : "");
	f->bytes = bytes;
	f->until = clock_after(figure_budget_ns);
	f->n = 0;
}

bool figure_more(const struct figure *f)
{
	return f->n < FIGURE_LEAST || (f->n < FIGURE_MOST && clock_ns() < f->until);
}

void figure_add(struct figure *f, double ns)
{
	f->ns[f->n++] = ns;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double figure_median(struct figure *f)
{
	qsort(f->ns, f->n, sizeof(*f->ns), ascending);
	return f->ns[f->n / 2];
}

static void print_line(const struct figure *f, double median, double least, double p99)
{
	printf("%s\t%.1f\t%.1f\t%.1f\t%u\t%llu\t%s\n", f->name, median, least, p99, f->n,
	       (unsigned long long)f->bytes, f->peer);
}

void figure_end(struct figure *f)
{
	double median = figure_median(f);

	print_line(f, median, f->ns[0], f->n < 100 ? 0 : f->ns[f->n * 99 / 100]);
}

void figure_end_beyond(struct figure *f, struct figure *less)
{
	double median = figure_median(f) - figure_median(less);

	print_line(f, median, f->ns[0] - less->ns[0], 0);
}
