/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtime's transfers against memcpy, below the framework. Prints one line a figure:
 * name, tab, nanoseconds, tab, memcpy's nanoseconds. bench.py reads them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hal/base/clock.h"
#include "runtime/rt.h"

enum { ROUNDS = 9 };

static void die(const char *what, const struct err *err)
{
	fprintf(stderr, "%s: %s\n", what, err->msg);
	exit(1);
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *t)
{
	qsort(t, ROUNDS, sizeof(*t), ascending);
	return t[ROUNDS / 2];
}

static void report(const char *name, double ns, double peer)
{
	printf("%s\t%.1f\t%.1f\n", name, ns, peer);
}

static void transfers(struct rt_client *c, const char *label, uint64_t bytes)
{
	struct rt_shape s = { .elem = ELEM_U8, .rank = 1, .dim = { (int64_t)bytes } };
	double in[ROUNDS], out[ROUNDS], peer[ROUNDS];
	int n = bytes > 1u << 24 ? 2 : bytes > 1u << 16 ? 200 : 5000;
	char *source = malloc(bytes), *target = malloc(bytes), name[64];
	struct rt_buffer *b = NULL;
	struct rt_event *done;
	struct err err;

	memset(source, 1, bytes);
	memset(target, 2, bytes);
	for (int r = 0; r < ROUNDS; r++) {
		int64_t t0 = clock_ns(), t1, t2;

		for (int i = 0; i < n; i++) {
			rt_buffer_unref(b);
			if (rt_buffer_from_host(c, 0, RT_DEVICE, &s, source, NULL, &b, &err))
				die("rt_buffer_from_host", &err);
		}
		t1 = clock_ns();
		for (int i = 0; i < n; i++) {
			if (rt_buffer_to_host(b, 0, target, bytes, &done, &err) ||
			    rt_event_wait(done, &err))
				die("rt_buffer_to_host", &err);
			rt_event_unref(done);
		}
		t2 = clock_ns();
		for (int i = 0; i < n; i++) {
			memcpy(target, source, bytes);
			__asm__ volatile("" : : "r"(target) : "memory");
		}
		in[r] = (double)(t1 - t0) / n;
		out[r] = (double)(t2 - t1) / n;
		peer[r] = (double)(clock_ns() - t2) / n;
	}
	rt_buffer_unref(b);
	snprintf(name, sizeof(name), "runtime, host to device %s", label);
	report(name, median(in), median(peer));
	snprintf(name, sizeof(name), "runtime, device to host %s", label);
	report(name, median(out), median(peer));
	free(source);
	free(target);
}

int main(void)
{
	struct rt_client_options ro = { .devices = "sim:hbm=512M" };
	struct rt_client *c;
	struct err err;

	if (rt_client_create(&ro, &c, &err))
		die("the client", &err);
	transfers(c, "4 KiB", 4 << 10);
	transfers(c, "1 MiB", 1 << 20);
	transfers(c, "64 MiB", 64 << 20);
	rt_client_unref(c);
	return 0;
}
