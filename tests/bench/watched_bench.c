/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What it costs to be looked at. A process with models, which watched.py has xla-smi look at:
 *
 *	watched_bench DEVICES
 *
 * opens so many and then does a round of empty programs, one after the other on the first device,
 * for each line that it reads; it answers with the nanoseconds of CPU time and of the clock that
 * one took, a tab between. The end of its input ends it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hal/hal.h"
#include "hal/hw/image.h"
#include "hal/hw/isa.h"

#define LAUNCHES 200000u

static void die(const char *what, const struct err *err)
{
	fprintf(stderr, "watched_bench: %s: %s\n", what, err ? err->msg : "");
	exit(1);
}

/* A program that ends. */
static struct hal_exe *load(struct hal_device *dev)
{
	static const struct isa_scalar code = { .insn = { ISA_HALT, .bytes = sizeof(code) } };
	static const char strings[] = "\0empty";
	struct image_binding b[] = { { .kind = IMAGE_CONSTANTS }, { .kind = IMAGE_TEMP } };
	struct image im = {
		.info = { .version = IMAGE_VERSION, .isa = ISA_VERSION, .flags = IMAGE_STRAIGHT,
			  .name = 1, .cost_ns = 100, .n_replicas = 1, .n_partitions = 1 },
		.text = &code, .text_bytes = sizeof(code), .bindings = b, .n_bindings = 2,
		.strings = strings, .strings_bytes = sizeof(strings), .note = "by hand",
	};
	struct hal_exe *exe;
	struct err err;
	size_t bytes;
	void *out;

	if (image_write(&im, &out, &bytes, &err) || hal_exe_load(dev, out, bytes, &exe, &err))
		die("an empty program", &err);
	free(out);
	return exe;
}

static int64_t now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static void round_of(struct hal_device *dev, struct hal_exe *exe)
{
	struct hw_binding b[2] = { { 0, 0 }, { 0, 0 } };
	struct hal_launch l = { .exe = exe, .bindings = b };
	struct hal_queue *q = hal_device_queue(dev, HAL_QUEUE_COMPUTE);
	int64_t cpu = now(CLOCK_THREAD_CPUTIME_ID), wall = now(CLOCK_MONOTONIC);
	struct err err;
	uint64_t value;

	for (unsigned i = 0; i < LAUNCHES; i++)
		if (hal_queue_execute(q, &l, &value, &err) ||
		    hal_queue_wait(q, value, CLOCK_FOREVER, &err))
			die("a launch", &err);
	cpu = now(CLOCK_THREAD_CPUTIME_ID) - cpu;
	wall = now(CLOCK_MONOTONIC) - wall;
	printf("%.2f\t%.2f\n", (double)cpu / LAUNCHES, (double)wall / LAUNCHES);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	unsigned n = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
	struct hal_options o = { .devices = "sim" };
	struct hal_device *dev = NULL, *first = NULL;
	struct hal_exe *exe;
	struct hal *hal;
	char options[64], line[16];
	struct err err;

	snprintf(options, sizeof(options), "devices=%u,hbm=64M,lanes=1", n);
	o.sim = options;
	if (!n || hal_create(&o, &hal, &err))
		die("usage: watched_bench DEVICES", NULL);
	for (unsigned i = 0; i < n; i++) {
		if (hal_device_open(hal, i, &dev, &err))
			die("a device", &err);
		first = first ? first : dev;
	}
	exe = load(first);
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin))
		round_of(first, exe);
	hal_destroy(hal);
	return 0;
}
