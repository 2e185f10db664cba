/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times what one way to a device takes, through the HAL's doors, and beside it what the
 * machine itself takes:
 *
 *	TESSERA_DEVICES=sim:hbm=256M transport_bench [MILLISECONDS PER FIGURE [GROUP]]
 *
 * One line a figure (transport_bench.h), after "device", its address, kind and driver. Each
 * figure also looks at what it timed: values, bytes, counts. It fails if one is wrong,
 * never because of a time.
 */
#include "tests/bench/transport_bench.h"

#include <immintrin.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "hal/hal.h"
#include "hal/hw/image.h"

#define OK(call) do { \
	if (call) \
		bench_die("%s: %s", #call, b->err.msg); \
} while (0)

enum { BURST = 32 };		/* far below the ring's 1024 */
#define SOON clock_after(20000000000ll)
#define IDLE_NS 1000000		/* an engine sleeps by then */
#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)

struct bench {
	struct hal *hal;
	struct hal_device *dev;
	struct hal_device_info info;
	struct hal_queue *q, *dma;
	struct hal_mem *word;		/* 64 bytes of host memory */
	volatile uint64_t *seen;	/* its bytes */
	struct hal_exe *count;		/* adds 1 to its 8 bytes */
	uint64_t n_counted;
	uint64_t last;			/* pattern of the newest fill */
	struct err err;
};

/* ---- the device ---- */

static void open_device(struct bench *b)
{
	OK(hal_create(NULL, &b->hal, &b->err));
	OK(hal_device_open(b->hal, 0, &b->dev, &b->err));
	OK(hal_device_info(b->hal, 0, &b->info, &b->err));
	b->q = hal_device_queue(b->dev, HAL_QUEUE_COMPUTE);
	b->dma = hal_device_queue(b->dev, HAL_QUEUE_DMA);
}

#define INSN(code) .insn = { .op = ISA_##code, .bytes = sizeof(struct isa_scalar) }
#define HERE ((int64_t)sizeof(struct isa_scalar))

/* A program that counts r1 down from `turns`, then adds 1 to its 8 bytes. Its loop
 * keeps it off the thread that rings the doorbell. */
static void make_image(struct bench *b, uint64_t turns, void **image, size_t *bytes)
{
	static const char strings[] = "\0counts";
	const struct isa_scalar code[] = {
		{ INSN(LI), .rd = 1, .imm = (int64_t)turns },
		{ INSN(BZ), .ra = 1, .imm = 3 * HERE },
		{ INSN(ALUI), .fn = ISA_ALU_ADD, .rd = 1, .ra = 1, .imm = -1 },
		{ INSN(BNZ), .ra = 1, .imm = -HERE },
		{ INSN(LD), .rd = 2, .elem = ELEM_S64, .binding = 2 },
		{ INSN(ALUI), .fn = ISA_ALU_ADD, .rd = 2, .ra = 2, .imm = 1 },
		{ INSN(ST), .rb = 2, .elem = ELEM_S64, .binding = 2 },
		{ INSN(HALT) },
	};
	struct image_binding bindings[] = {
		{ .kind = IMAGE_CONSTANTS }, { .kind = IMAGE_TEMP },
		{ .kind = IMAGE_RESULT, .access = HW_BIND_READ | HW_BIND_WRITE, .bytes = 8 },
	};
	struct image_shape shape = { .elem = ELEM_S64, .alias = -1 };
	struct image_debug debug = { .offset = 0 };
	struct image im = {
		.info = { .version = IMAGE_VERSION, .isa = ISA_VERSION, .n_results = 1,
			  .name = 1, .n_replicas = 1, .n_partitions = 1 },
		.text = code, .text_bytes = sizeof(code), .bindings = bindings,
		.n_bindings = 3, .shapes = &shape, .debug = &debug, .n_debug = 1,
		.strings = strings, .strings_bytes = sizeof(strings), .note = "by hand",
	};

	OK(image_write(&im, image, bytes, &b->err));
}

static struct hal_exe *load(struct bench *b, uint64_t turns)
{
	struct hal_exe *exe;
	void *image;
	size_t bytes;

	make_image(b, turns, &image, &bytes);
	OK(hal_exe_load(b->dev, image, bytes, &exe, &b->err));
	free(image);
	return exe;
}

/* Submits a run that counts in the word. */
static uint64_t run(struct bench *b, struct hal_exe *exe)
{
	struct hw_binding binding[3] = { [2] = { hal_mem_va(b->word), 64 } };
	struct hal_launch l = { .exe = exe, .bindings = binding };
	uint64_t value;

	OK(hal_queue_execute(b->q, &l, &value, &b->err));
	b->n_counted++;
	return value;
}

static void poll_until(struct bench *b, uint64_t value)
{
	while (hal_queue_done(b->q) < value)
		_mm_pause();
}

static void expect_count(struct bench *b)
{
	if (b->seen[0] != b->n_counted)
		bench_die("%llu runs counted %llu", (unsigned long long)b->n_counted,
			  (unsigned long long)b->seen[0]);
}

/* Submits the least that a queue does: 8 bytes, another pattern each time. */
static uint64_t fill(struct bench *b)
{
	uint64_t value;

	b->last = (b->last + 1) * 0x9e3779b97f4a7c15ull;
	OK(hal_queue_fill(b->q, b->word, 8, 8, b->last, &value, &b->err));
	return value;
}

static void expect_fill(struct bench *b)
{
	if (b->seen[1] != b->last)
		bench_die("a fill left 0x%llx, not 0x%llx", (unsigned long long)b->seen[1],
			  (unsigned long long)b->last);
}

static void prepare(struct bench *b)
{
	OK(hal_mem_alloc(b->dev, HAL_MEM_HOST, 64, "bench", &b->word, &b->err));
	b->seen = hal_mem_host(b->word);
	memset((void *)(uintptr_t)b->seen, 0, 64);
	b->n_counted = 0;
	b->count = load(b, 0);
}

static void keep_idle(void)
{
	for (int64_t until = clock_after(IDLE_NS); clock_ns() < until;)
		_mm_pause();
}

/* ---- submission ---- */

/* The turns of a program that takes about so long. */
static uint64_t turns_for(struct bench *b, int64_t ns)
{
	const uint64_t tried = 200000;
	struct hal_exe *exe = load(b, tried);
	int64_t least = INT64_MAX;

	for (int i = 0; i < 8; i++) {
		int64_t began = clock_ns(), took;

		poll_until(b, run(b, exe));
		took = clock_ns() - began;
		least = took < least ? took : least;
	}
	hal_exe_unload(exe);
	return (uint64_t)((double)ns / (double)(least + 1) * (double)tried) + 1;
}

static int64_t burst(struct bench *b, uint64_t *value)
{
	int64_t began = clock_ns();

	for (int i = 0; i < BURST; i++)
		*value = fill(b);
	return clock_ns() - began;
}

/* Gives the time of a burst. */
static int64_t submit_awake(struct bench *b)
{
	struct figure f;
	uint64_t value;
	int64_t burst_ns;

	figure_begin(&f, "submit by ring, engine awake", SYSTEM_CALL, 0);
	while (figure_more(&f)) {
		poll_until(b, run(b, b->count));
		figure_add(&f, (double)burst(b, &value) / BURST);
		poll_until(b, value);
		expect_fill(b);
	}
	burst_ns = (int64_t)(figure_median(&f) * BURST);
	figure_end(&f);
	expect_count(b);
	return burst_ns;
}

/* Behind a program that runs all the while: the host's cost alone. */
static void submit_busy(struct bench *b, int64_t burst_ns)
{
	int64_t gate_ns = burst_ns * 4 < 1000000 ? 1000000 : burst_ns * 4;
	struct hal_exe *gate = load(b, turns_for(b, gate_ns));
	unsigned late = 0;
	struct figure f;

	figure_begin(&f, "submit by ring, engine at work", SYSTEM_CALL, 0);
	while (figure_more(&f)) {
		uint64_t first = run(b, gate), value;
		int64_t took = burst(b, &value);

		if (hal_queue_done(b->q) >= first) {
			if (++late > 100 && late > 10 * f.n)
				bench_die("bursts of %d outlast a program of %lld ns", BURST,
					  (long long)gate_ns);
		} else {
			figure_add(&f, (double)took / BURST);
		}
		OK(hal_queue_wait(b->q, value, SOON, &b->err));
		expect_fill(b);
	}
	figure_end(&f);
	expect_count(b);
	hal_exe_unload(gate);
}

static void submit_asleep(struct bench *b)
{
	static struct figure submit, trip;

	figure_begin(&submit, "submit by ring, engine asleep", SYSTEM_CALL, 0);
	figure_begin(&trip, "round trip polled, engine asleep", EVENTFD, 0);
	while (figure_more(&submit)) {
		int64_t began, between;
		uint64_t value;

		keep_idle();
		began = clock_ns();
		value = run(b, b->count);
		between = clock_ns();
		poll_until(b, value);
		figure_add(&trip, (double)(clock_ns() - began));
		figure_add(&submit, (double)(between - began));
		expect_count(b);
	}
	figure_end(&submit);
	figure_end(&trip);
}

/* ---- round trips ---- */

static void trips_polled(struct bench *b)
{
	static struct figure f;

	figure_begin(&f, "round trip polled, fill of 8 bytes", SHARED_MEMORY, 0);
	while (figure_more(&f)) {
		int64_t began = clock_ns();

		poll_until(b, fill(b));
		figure_add(&f, (double)(clock_ns() - began));
		expect_fill(b);
	}
	figure_end(&f);
	figure_begin(&f, "round trip polled, program", SHARED_MEMORY, 0);
	while (figure_more(&f)) {
		int64_t began = clock_ns();

		poll_until(b, run(b, b->count));
		figure_add(&f, (double)(clock_ns() - began));
		expect_count(b);
	}
	figure_end(&f);
}

struct told {
	pthread_t by;
	int64_t at;
	bool has_failed;
	sem_t posted;
};

static void tell(void *arg, const struct err *err)
{
	struct told *t = arg;

	t->at = clock_ns();
	t->by = pthread_self();
	t->has_failed = err != NULL;
	sem_post(&t->posted);
}

/* The submitter sleeps; the HAL's thread is woken by the interrupt. Runs that were done
 * before anyone could sleep for them took none, and do not count. */
static void trip_by_interrupt(struct bench *b)
{
	unsigned early = 0;
	struct figure f;
	struct told t;

	sem_init(&t.posted, 0, 0);
	figure_begin(&f, "round trip by interrupt, program", EVENTFD, 0);
	while (figure_more(&f)) {
		int64_t began;

		keep_idle();
		began = clock_ns();
		OK(hal_queue_notify(b->q, run(b, b->count), tell, &t, &b->err));
		while (sem_wait(&t.posted))
			;
		if (t.has_failed)
			bench_die("a program failed");
		if (!pthread_equal(t.by, pthread_self()))
			figure_add(&f, (double)(t.at - began));
		else if (++early > 1000 && early > 100 * f.n)
			bench_die("programs end before anyone sleeps for them");
		expect_count(b);
	}
	figure_end(&f);
	sem_destroy(&t.posted);
}

static long sleeps_so_far(void)
{
	struct rusage u;

	getrusage(RUSAGE_THREAD, &u);
	return u.ru_nvcsw;
}

/* What sleeping costs a waiter: the same program, long enough to end a waiter's spinning,
 * polled and slept for in turn. */
static void wake_up(struct bench *b)
{
	struct hal_exe *exe = load(b, turns_for(b, 200000));
	static struct figure polled, slept;
	unsigned awake = 0;

	figure_begin(&slept, "waking a sleeping waiter, beyond polling", EVENTFD, 0);
	figure_begin(&polled, "", NULL, 0);
	while (figure_more(&slept)) {
		int64_t began = clock_ns(), by_polling, took;
		long sleeps;

		poll_until(b, run(b, exe));
		by_polling = clock_ns() - began;
		sleeps = sleeps_so_far();
		began = clock_ns();
		OK(hal_queue_wait(b->q, run(b, exe), SOON, &b->err));
		took = clock_ns() - began;
		if (sleeps_so_far() != sleeps) {
			figure_add(&slept, (double)took);
			figure_add(&polled, (double)by_polling);
		} else if (++awake > 100 && awake > 10 * slept.n) {
			bench_die("waits for a program of 200 us do not sleep");
		}
		expect_count(b);
	}
	figure_end_beyond(&slept, &polled);
	hal_exe_unload(exe);
}

/* ---- memory ---- */

static void map_and_unmap(struct bench *b, uint64_t bytes, bool has_peer)
{
	static struct figure in, out;
	char *host = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	struct hal_mem *m;

	if (host == MAP_FAILED)
		bench_die("no %llu bytes of memory", (unsigned long long)bytes);
	memset(host, 1, bytes);
	figure_begin(&in, figure_sized("map host memory", bytes),
		     has_peer ? figure_sized("mlock", bytes) : SYSTEM_CALL, bytes);
	figure_begin(&out, figure_sized("unmap host memory", bytes),
		     has_peer ? figure_sized("munlock", bytes) : SYSTEM_CALL, bytes);
	while (figure_more(&in)) {
		uint64_t pattern = 0x1234567800000000 + in.n, value, got;
		int64_t began = clock_ns();

		OK(hal_mem_map(b->dev, host, bytes, &m, &b->err));
		figure_add(&in, (double)(clock_ns() - began));
		OK(hal_queue_fill(b->q, m, bytes - 8, 8, pattern, &value, &b->err));
		OK(hal_queue_wait(b->q, value, SOON, &b->err));
		memcpy(&got, host + bytes - 8, 8);
		if (got != pattern)
			bench_die("the device did not write to memory that was mapped");
		began = clock_ns();
		hal_mem_free(m);
		figure_add(&out, (double)(clock_ns() - began));
	}
	figure_end(&in);
	figure_end(&out);
	munmap(host, bytes);
}

static void allocate(struct bench *b, uint64_t bytes)
{
	enum { BLOCKS = 32 };
	static struct figure in, out;
	struct hal_mem *m[BLOCKS];
	struct hal_mem_stats before, now;

	figure_begin(&in, figure_sized("allocate HBM", bytes), SYSTEM_CALL, 0);
	figure_begin(&out, figure_sized("free HBM", bytes), SYSTEM_CALL, 0);
	hal_mem_stats(b->dev, HAL_MEM_HBM, &before);
	while (figure_more(&in)) {
		int64_t began = clock_ns();

		for (int i = 0; i < BLOCKS; i++)
			OK(hal_mem_alloc(b->dev, HAL_MEM_HBM, bytes, "bench", &m[i], &b->err));
		figure_add(&in, (double)(clock_ns() - began) / BLOCKS);
		hal_mem_stats(b->dev, HAL_MEM_HBM, &now);
		if (now.bytes_in_use != before.bytes_in_use + BLOCKS * bytes)
			bench_die("%d blocks of %llu bytes took %llu", BLOCKS,
				  (unsigned long long)bytes,
				  (unsigned long long)(now.bytes_in_use - before.bytes_in_use));
		began = clock_ns();
		for (int i = 0; i < BLOCKS; i++)
			hal_mem_free(m[i]);
		figure_add(&out, (double)(clock_ns() - began) / BLOCKS);
	}
	hal_mem_stats(b->dev, HAL_MEM_HBM, &now);
	if (now.bytes_in_use != before.bytes_in_use || now.n_allocs != before.n_allocs)
		bench_die("freeing blocks left some");
	figure_end(&in);
	figure_end(&out);
}

/* ---- copies ---- */

struct sides {
	char *source, *target;
	struct hal_mem *hbm, *pinned;
	uint64_t bytes;
	int n;		/* in one sample */
};

static double time_of(struct bench *b, const struct sides *s, int what)
{
	int64_t began = clock_ns();
	uint64_t value;

	for (int i = 0; i < s->n; i++)
		switch (what) {
		case 0:
			memcpy(s->target, s->source, s->bytes);
			__asm__ volatile("" : : "r"(s->target) : "memory");
			break;
		case 1:
			OK(hal_copy_in(s->hbm, 0, s->source, s->bytes, SOON, &b->err));
			break;
		case 2:
			OK(hal_copy_out(s->target, s->hbm, 0, s->bytes, SOON, &b->err));
			break;
		default:
			OK(hal_queue_copy(b->dma, s->pinned, 0, s->hbm, 0, s->bytes, NULL, 0,
					  &value, &b->err));
			while (hal_queue_done(b->dma) < value)
				_mm_pause();
		}
	return (double)(clock_ns() - began) / s->n;
}

static void expect_same(const struct sides *s, const char *got, const char *what)
{
	if (memcmp(got, s->source, s->bytes))
		bench_die("%llu bytes %s are not those sent", (unsigned long long)s->bytes, what);
}

/* The four in turn, so that a noisy machine disturbs all alike. */
static void copies(struct bench *b, uint64_t bytes)
{
	static const char *const names[] = {
		"memcpy", "host to device", "device to host", "DMA to pinned host memory",
	};
	static struct figure f[4];
	struct sides s = { .source = malloc(bytes), .target = malloc(bytes), .bytes = bytes,
			   .n = bytes > 64 * KIB ? 1 : 16 };
	const char *memcpy_name = figure_sized("memcpy", bytes);

	if (!s.source || !s.target)
		bench_die("no %llu bytes of memory", (unsigned long long)bytes);
	OK(hal_mem_alloc(b->dev, HAL_MEM_HBM, bytes, "bench", &s.hbm, &b->err));
	OK(hal_mem_alloc(b->dev, HAL_MEM_HOST, bytes, "bench", &s.pinned, &b->err));
	for (int i = 0; i < 4; i++)
		figure_begin(&f[i], figure_sized(names[i], bytes),
			     i ? memcpy_name : SYSTEM_CALL, bytes);
	for (f[0].until += 2 * figure_budget_ns; figure_more(&f[0]);) {
		memset(s.source, (int)(f[0].n + 1), bytes);
		memset(s.source + bytes / 2, (int)(f[0].n + 77), bytes / 4);
		memset(s.target, 0, bytes);
		memset(hal_mem_host(s.pinned), 0, bytes);
		figure_add(&f[0], time_of(b, &s, 0));
		expect_same(&s, s.target, "of memcpy");
		figure_add(&f[1], time_of(b, &s, 1));
		memset(s.target, 0, bytes);
		figure_add(&f[2], time_of(b, &s, 2));
		expect_same(&s, s.target, "from the device");
		figure_add(&f[3], time_of(b, &s, 3));
		expect_same(&s, hal_mem_host(s.pinned), "by DMA");
	}
	for (int i = 0; i < 4; i++)
		figure_end(&f[i]);
	hal_mem_free(s.hbm);
	hal_mem_free(s.pinned);
	free(s.source);
	free(s.target);
}

/* ---- programs, counters, the device ---- */

static void programs(struct bench *b)
{
	static struct figure in, out;
	struct hal_exe *exe;
	void *image;
	size_t bytes;

	make_image(b, 0, &image, &bytes);
	figure_begin(&in, "load a program", SYSTEM_CALL, 0);
	figure_begin(&out, "unload a program", SYSTEM_CALL, 0);
	while (figure_more(&in)) {
		int64_t began = clock_ns();

		OK(hal_exe_load(b->dev, image, bytes, &exe, &b->err));
		figure_add(&in, (double)(clock_ns() - began));
		poll_until(b, run(b, exe));
		expect_count(b);
		began = clock_ns();
		hal_exe_unload(exe);
		figure_add(&out, (double)(clock_ns() - began));
	}
	figure_end(&in);
	figure_end(&out);
	free(image);
}

static void telemetry(struct bench *b)
{
	struct hw_telemetry t;
	uint64_t last = 0;
	int64_t until;
	struct figure f;

	figure_begin(&f, "read the device's counters", SYSTEM_CALL, 0);
	while (figure_more(&f)) {
		int64_t began = clock_ns();

		OK(hal_device_telemetry(b->dev, &t, &b->err));
		figure_add(&f, (double)(clock_ns() - began));
		if (t.n_execute < last)
			bench_die("the device counts %llu programs after %llu",
				  (unsigned long long)t.n_execute, (unsigned long long)last);
		last = t.n_execute;
	}
	figure_end(&f);
	/* The kernel driver's may be a moment old. */
	until = clock_after(5000000000);
	while (t.n_execute < b->n_counted && clock_ns() < until)
		OK(hal_device_telemetry(b->dev, &t, &b->err));
	if (t.n_execute < b->n_counted)
		bench_die("the device counts %llu programs after %llu runs",
			  (unsigned long long)t.n_execute, (unsigned long long)b->n_counted);
}

static void open_and_close(struct bench *b)
{
	static struct figure in, out;

	figure_begin(&in, "open the device", SYSTEM_CALL, 0);
	figure_begin(&out, "close the device", SYSTEM_CALL, 0);
	while (figure_more(&in)) {
		int64_t began = clock_ns();

		open_device(b);
		figure_add(&in, (double)(clock_ns() - began));
		prepare(b);
		poll_until(b, run(b, b->count));
		expect_count(b);
		began = clock_ns();
		hal_device_close(b->dev);
		figure_add(&out, (double)(clock_ns() - began));
		hal_destroy(b->hal);
	}
	figure_end(&in);
	figure_end(&out);
}

static void submissions(struct bench *b)
{
	submit_busy(b, submit_awake(b));
	submit_asleep(b);
}

static void round_trips(struct bench *b)
{
	trips_polled(b);
	trip_by_interrupt(b);
	wake_up(b);
}

static void mappings(struct bench *b)
{
	static const uint64_t sizes[] = { 4 * KIB, 2 * MIB, 64 * MIB };

	for (unsigned i = 0; i < 3; i++)
		map_and_unmap(b, sizes[i], bench_floor_memory(sizes[i]));
}

static void allocations(struct bench *b)
{
	allocate(b, 4 * KIB);
	allocate(b, MIB);
}

static void all_copies(struct bench *b)
{
	static const uint64_t sizes[] = { 4 * KIB, MIB, 64 * MIB };

	for (unsigned i = 0; i < 3; i++)
		copies(b, sizes[i]);
}

static const struct group {
	const char *name;
	void (*run)(struct bench *b);
} groups[] = {
	{ "submit", submissions }, { "trip", round_trips }, { "map", mappings },
	{ "allocate", allocations }, { "copy", all_copies }, { "program", programs },
	{ "telemetry", telemetry },
};

/* The kernel driver's node, as TESSERA_DEVICES or the HAL names it. */
static void by_ioctl(struct bench *b)
{
	const char *devices = getenv("TESSERA_DEVICES");
	const char *word = strchr(devices ? devices : b->info.bus_id, ':');
	char node[300];

	word = word ? word + 1 : "";
	snprintf(node, sizeof(node), "%s%s%s", *word == '/' ? "" : "/dev/accel/",
		 *word >= '0' && *word <= '9' ? "accel" : "", word);
	bench_ioctl(node);
}

/* Without `only` all groups; else this one and the floors. */
static void measure(struct bench *b, const char *only)
{
	static const char *const kinds[] = { "sim", "vfio", "vfio-user", "accel" };

	open_device(b);
	printf("device\t%s\t%s\t%s\n", b->info.bus_id, kinds[b->info.kind], b->info.driver);
	bench_floors();
	prepare(b);
	for (unsigned i = 0; i < sizeof(groups) / sizeof(*groups); i++)
		if (!only || !strcmp(only, groups[i].name))
			groups[i].run(b);
	hal_destroy(b->hal);
	if (b->info.kind == HAL_KIND_ACCEL && (!only || !strcmp(only, "ioctl")))
		by_ioctl(b);
	if (!only || !strcmp(only, "open"))
		open_and_close(b);
}

int main(int argc, char **argv)
{
	static struct bench b;

	if (argc > 3 || (argc >= 2 && (figure_budget_ns = atoll(argv[1]) * 1000000) <= 0)) {
		fprintf(stderr, "use: TESSERA_DEVICES=... transport_bench "
			"[MILLISECONDS PER FIGURE [GROUP]]\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	measure(&b, argc == 3 ? argv[2] : NULL);
	return 0;
}
