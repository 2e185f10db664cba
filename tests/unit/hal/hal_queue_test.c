/* SPDX-License-Identifier: Apache-2.0 */
/* Queues that are full, what waits for other queues, what the first error of a dead device is,
 * and which locks are held when. Looks into the HAL's own structures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "hal/hal_internal.h"

#define SECOND 1000000000ll
#define MANY (3 * HAL_RING)	/* submissions: more than fit, several times */

static struct hal *hal;
static struct hal_device *dev;
static struct hal_queue *compute, *dma;
static struct hal_mem *gate, *out;	/* 64 bytes each */

static int open_device(void **state)
{
	const char *named = getenv("TESSERA_DEVICES");
	struct err err;

	(void)state;
	if (hal_create(&(struct hal_options){ .devices = named ? named : "sim:hbm=64M,lanes=2" },
		       &hal, &err) ||
	    hal_device_open(hal, 0, &dev, &err) ||
	    hal_mem_alloc(dev, HAL_MEM_HBM, 64, "gate", &gate, &err) ||
	    hal_mem_alloc(dev, HAL_MEM_HBM, 64, "out", &out, &err)) {
		print_error("%s\n", err.msg);
		return -1;
	}
	compute = hal_device_queue(dev, HAL_QUEUE_COMPUTE);
	dma = hal_device_queue(dev, HAL_QUEUE_DMA);
	return 0;
}

static int close_device(void **state)
{
	(void)state;
	hal_destroy(hal);
	return 0;
}

#define INSN(code) .insn = { .op = ISA_##code, .bytes = sizeof(struct isa_scalar) }

static const struct isa_scalar store_42[] = {
	{ INSN(LI), .rd = 1, .imm = 42 },
	{ INSN(ST), .rb = 1, .elem = ELEM_S64, .binding = 2 },
	{ INSN(HALT) },
};
static const struct isa_scalar spin[] = {
	{ INSN(JMP), .imm = 0 },
	{ INSN(HALT) },
};

/* A program whose bindings from the third on are results of 8 bytes. */
static int try_load(struct hal_device *d, const struct isa_scalar *code, size_t n,
		    size_t n_bindings, const char *rodata, struct hal_exe **exe, struct err *err)
{
	static const char strings[] = "\0test\0store\0here";
	struct image_binding *b = calloc(n_bindings, sizeof(*b));
	struct image_shape *shapes = calloc(n_bindings, sizeof(*shapes));
	struct image_debug debug = { .offset = 0, .op = 6, .where = 12 };
	struct image im = {
		.info = { .version = IMAGE_VERSION, .isa = ISA_VERSION,
			  .n_results = (uint32_t)n_bindings - 2, .name = 1,
			  .n_replicas = 1, .n_partitions = 1 },
		.text = code, .text_bytes = n * sizeof(*code), .bindings = b,
		.n_bindings = n_bindings, .shapes = shapes, .debug = &debug, .n_debug = 1,
		.strings = strings, .strings_bytes = sizeof(strings), .note = "test",
		.rodata = rodata, .rodata_bytes = strlen(rodata),
	};
	size_t bytes;
	void *image;
	int code_of;

	assert_true(b && shapes);
	b[0] = (struct image_binding){ .kind = IMAGE_CONSTANTS, .access = HW_BIND_READ,
				       .bytes = im.rodata_bytes };
	b[1].kind = IMAGE_TEMP;
	for (size_t i = 2; i < n_bindings; i++) {
		b[i] = (struct image_binding){ .kind = IMAGE_RESULT, .index = (uint32_t)i - 2,
			.bytes = 8, .access = HW_BIND_READ | HW_BIND_WRITE };
		shapes[i - 2] = (struct image_shape){ .elem = ELEM_S64, .alias = -1 };
	}
	if (image_write(&im, &image, &bytes, err))
		fail_msg("%s", err->msg);
	code_of = hal_exe_load(d, image, bytes, exe, err);
	free(image);
	free(b);
	free(shapes);
	return code_of;
}

static struct hal_exe *load(const struct isa_scalar *code, size_t n, size_t n_bindings)
{
	struct hal_exe *exe = NULL;
	struct err err;

	if (try_load(dev, code, n, n_bindings, "", &exe, &err))
		fail_msg("%s", err.msg);
	return exe;
}

static uint64_t run(struct hal_exe *exe, uint64_t limit_ns)
{
	struct hw_binding b[3] = { [2] = { hal_mem_va(out), 8 } };
	struct hal_launch l = { .exe = exe, .bindings = b, .limit_ns = limit_ns };
	struct err err;
	uint64_t value;

	if (hal_queue_execute(compute, &l, &value, &err))
		fail_msg("%s", err.msg);
	return value;
}

static struct hal_mem *get(uint64_t bytes)
{
	struct hal_mem *m;
	struct err err;

	if (hal_mem_alloc(dev, HAL_MEM_HBM, bytes, "test", &m, &err))
		fail_msg("%s", err.msg);
	return m;
}

/* The number that the next submission of q will have. */
static uint64_t next_of(const struct hal_queue *q)
{
	return atomic_load(&q->submitted) + 1;
}

/* From now on nothing of q runs until submission `value` of `other` is done. */
static void block(struct hal_queue *q, struct hal_queue *other, uint64_t value)
{
	const struct hal_after after = { other, value };
	uint64_t mine;
	struct err err;

	if (hal_queue_copy(q, gate, 0, gate, 0, 0, &after, 1, &mine, &err))
		fail_msg("%s", err.msg);
}

/* ---- a thread that submits more than fits ---- */

struct feeder {
	pthread_t thread;
	struct hal_mem *to;		/* MANY words, or one for each launch */
	struct hal_exe *exe;		/* NULL: fills */
	size_t n_bindings;
	unsigned n;			/* how many it submits */
	_Atomic unsigned n_taken;	/* how many are submitted */
	_Atomic uint64_t last;		/* the newest of them */
	struct err err;
	int code;
};

static int feed_one(struct feeder *f, unsigned i, struct hw_binding *b, uint64_t *value)
{
	struct hal_launch l = { .exe = f->exe, .bindings = b };

	if (!f->exe)
		return hal_queue_fill(dma, f->to, 8 * i, 8, i + 1, value, &f->err);
	for (size_t k = 2; k < f->n_bindings; k++)
		b[k] = (struct hw_binding){ hal_mem_va(f->to) + HAL_MEM_ALIGN * i, 8 };
	return hal_queue_execute(compute, &l, value, &f->err);
}

static void *feed(void *arg)
{
	struct feeder *f = arg;
	struct hw_binding *b = calloc(f->n_bindings + 1, sizeof(*b));
	uint64_t value;

	for (unsigned i = 0; i < f->n && !f->code; i++) {
		f->code = feed_one(f, i, b, &value);
		if (!f->code) {
			atomic_store(&f->last, value);
			atomic_store(&f->n_taken, i + 1);
		}
	}
	free(b);
	return NULL;
}

static void start(struct feeder *f)
{
	assert_int_equal(pthread_create(&f->thread, NULL, feed, f), 0);
}

/* Until it gets no further; how many were taken then. */
static unsigned await_standstill(struct feeder *f)
{
	unsigned before, now = 0;

	do {
		before = now;
		usleep(300000);
		now = atomic_load(&f->n_taken);
	} while (now != before || !now);
	return now;
}

static void finish(struct feeder *f, struct hal_queue *q)
{
	struct err err;

	pthread_join(f->thread, NULL);
	if (f->code)
		fail_msg("%s", f->err.msg);
	assert_int_equal(f->n_taken, f->n);
	if (hal_queue_wait(q, f->last, clock_after(30 * SECOND), &err))
		fail_msg("%s", err.msg);
}

static void check_words(struct hal_mem *m, unsigned n, unsigned stride, bool ascends)
{
	uint64_t *got = malloc((size_t)n * stride);
	struct err err;

	assert_non_null(got);
	assert_int_equal(hal_copy_out(got, m, 0, (uint64_t)n * stride, CLOCK_FOREVER, &err), 0);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(got[i * stride / 8], ascends ? i + 1 : 42);
	free(got);
}

/* ---- tests ---- */

/* A descriptor that the device has not fetched stays as it is. */
static void a_full_queue_makes_its_callers_wait(void **state)
{
	struct feeder f = { .to = get(8 * MANY), .n = MANY };
	struct hal_exe *exe = load(store_42, 3, 3);
	unsigned taken;

	(void)state;
	block(dma, compute, next_of(compute));
	start(&f);
	taken = await_standstill(&f);
	assert_true(taken > HAL_RING / 2 && taken < HAL_RING);
	run(exe, 0);
	finish(&f, dma);
	check_words(f.to, MANY, 8, true);
	hal_mem_free(f.to);
	hal_exe_unload(exe);
}

/* However many fail after them. */
static void failures_are_never_forgotten(void **state)
{
	enum { N = 3 * HAL_FAILURES };
	struct hal_failures f = { 0 };
	struct err why, err;

	(void)state;
	assert_int_equal(hal_failures_init(&f, &err), 0);
	assert_int_equal(hal_failures_find(&f, 1, &err), 0);
	/* Of ten numbers each, the third to the fifth fail, of every other ten the sixth, too. */
	for (uint64_t i = 0; i < N; i++) {
		err_set(&why, ERR_DATA_LOSS, "number %llu", (unsigned long long)i);
		hal_failures_add(&f, 10 * i + 3, 10 * i + 5, &why);
		err_set(&why, i % 4 ? ERR_DATA_LOSS : ERR_ABORTED, "behind it");
		if (i % 2 == 0)
			hal_failures_add(&f, 10 * i + 6, 10 * i + 6, &why);
		/* The device is reset, with nothing pending. */
		if (i % 3 == 0)
			hal_failures_add(&f, 10 * i + 9, 10 * i + 8, &why);
	}
	for (size_t i = 0; i < f.n_old; i++)
		assert_true(f.old[i].first <= f.old[i].last);
	for (uint64_t v = 0; v < 10 * N + 10; v++) {
		uint64_t i = v / 10, at = v % 10;
		int want = i == N ? 0 : at >= 3 && at <= 5 ? ERR_DATA_LOSS :
			   at != 6 || i % 2 ? 0 : i % 4 ? ERR_DATA_LOSS : ERR_ABORTED;

		assert_int_equal(hal_failures_find(&f, v, &err), want);
		assert_int_equal(hal_failures_find(&f, v, NULL), want);
	}
	assert_int_equal(hal_failures_find(&f, 10 * N - 7, &err), ERR_DATA_LOSS);
	assert_non_null(strstr(err.msg, "number 12287"));
	assert_int_equal(hal_failures_find(&f, 3, &err), ERR_DATA_LOSS);
	assert_non_null(strstr(err.msg, "no longer known"));
	hal_failures_free(&f);
}

/* Who may not wait asks first, and waits elsewhere. */
static void room_can_be_asked_for(void **state)
{
	struct hal_exe *exe = load(store_42, 3, 3);
	struct hal_mem *m = get(8);
	unsigned n = 0;
	uint64_t value;
	struct err err;

	(void)state;
	block(dma, compute, next_of(compute));
	assert_false(hal_queue_has_room(dma, HAL_RING, 0));
	for (; hal_queue_has_room(dma, 1, 0); n++)
		assert_int_equal(hal_queue_fill(dma, m, 0, 8, n, &value, &err), 0);
	assert_true(n > HAL_RING / 2 && n < HAL_RING);
	run(exe, 0);
	assert_int_equal(hal_queue_await_room(dma, &err), 0);
	assert_true(hal_queue_has_room(dma, n / 8, 0));
	assert_int_equal(hal_queue_wait(dma, value, clock_after(30 * SECOND), &err), 0);
	/* None is enough: then it is no use to wait. */
	assert_true(hal_queue_has_room(dma, 2 * HAL_RING, 0));
	hal_mem_free(m);
	hal_exe_unload(exe);
}

/* Nor are the bindings of what waits overwritten, which are fewer than descriptors. */
static void bindings_of_what_waits_stay(void **state)
{
	enum { BINDINGS = 200, N = 900 };
	struct feeder f = { .to = get(HAL_MEM_ALIGN * N), .n = N, .n_bindings = BINDINGS };
	uint64_t page = HAL_ARGS / 4096, value;
	struct hal_after after = { dma, next_of(dma) };
	struct hw_binding b[3] = { [2] = { hal_mem_va(out), 8 } };
	struct hal_launch l = { .bindings = b, .after = &after, .n_after = 1 };
	struct hal_exe *exe = load(store_42, 3, 3);
	unsigned taken;
	struct err err;

	(void)state;
	f.exe = load(store_42, 3, BINDINGS);
	l.exe = exe;
	assert_int_equal(hal_queue_fill(dma, f.to, 0, HAL_MEM_ALIGN * N, 0, &value, &err), 0);
	assert_int_equal(hal_queue_wait(dma, value, clock_after(5 * SECOND), &err), 0);
	after.value = value + 1;
	assert_int_equal(hal_queue_execute(compute, &l, &value, &err), 0);
	start(&f);
	taken = await_standstill(&f);
	assert_true(taken > page / 2 && taken <= page);
	assert_true(hal_queue_has_room(compute, 1, 0));
	assert_false(hal_queue_has_room(compute, 1, BINDINGS));
	assert_int_equal(hal_queue_fill(dma, gate, 0, 8, 0, &value, &err), 0);
	finish(&f, compute);
	check_words(f.to, N, HAL_MEM_ALIGN, false);
	hal_mem_free(f.to);
	hal_exe_unload(f.exe);
	hal_exe_unload(exe);
}

/* Whoever waits for a full queue asks for an interrupt, for which there must be room. */
static void a_full_queue_can_be_waited_for(void **state)
{
	struct feeder f = { .to = get(8 * MANY), .n = MANY };
	struct hal_exe *exe = load(store_42, 3, 3);
	int64_t began;
	struct err err;

	(void)state;
	block(dma, compute, next_of(compute));
	start(&f);
	await_standstill(&f);
	for (unsigned i = 0; i < 5; i++) {
		began = clock_ns();
		assert_int_equal(hal_queue_wait(dma, f.last, clock_after(SECOND / 20), &err),
				 ERR_DEADLINE_EXCEEDED);
		assert_true(clock_ns() - began < 20 * SECOND);
		assert_true(next_of(dma) - 1 - hal_queue_done(dma) <= HAL_RING);
	}
	run(exe, 0);
	finish(&f, dma);
	check_words(f.to, MANY, 8, true);
	hal_mem_free(f.to);
	hal_exe_unload(exe);
}

/* What failed raises its semaphore by the host's hand, and the device has to be told. Nobody
 * else rings: the queue is full, its interrupt is asked for, counters are not read. */
static void a_full_queue_goes_on_when_what_it_waits_for_fails(void **state)
{
	struct hal_exe *exe = load(spin, 2, 3);
	uint64_t value;
	struct err err;

	(void)state;
	atomic_store(&dev->page_due, INT64_MAX);
	for (unsigned by_reset = 0; by_reset < 2; by_reset++) {
		struct feeder f = { .to = get(8 * MANY), .n = MANY };

		block(dma, compute, next_of(compute));
		start(&f);
		await_standstill(&f);
		assert_int_equal(hal_queue_wait(dma, f.last, clock_after(SECOND / 20), &err),
				 ERR_DEADLINE_EXCEEDED);
		value = run(exe, by_reset ? 0 : SECOND / 20);
		if (by_reset)
			assert_int_equal(hal_queue_reset(compute, "test", &err), 0);
		assert_int_equal(hal_queue_wait(compute, value, clock_after(20 * SECOND), &err),
				 by_reset ? ERR_ABORTED : ERR_DEADLINE_EXCEEDED);
		finish(&f, dma);
		check_words(f.to, MANY, 8, true);
		hal_mem_free(f.to);
	}
	atomic_store(&dev->page_due, 0);
	hal_exe_unload(exe);
}

/* Of several submissions of a queue the newest counts, in whatever order they are named. */
static void all_that_is_named_is_waited_for(void **state)
{
	struct hal_exe *exe = load(store_42, 3, 3);
	struct err err;

	(void)state;
	for (unsigned order = 0; order < 2; order++) {
		uint64_t done = run(exe, 0), next = next_of(compute), value;
		struct hal_after after[] = { { compute, order ? next : done }, { dma, 1 },
					     { compute, order ? done : next } };

		assert_int_equal(hal_queue_copy(dma, gate, 0, gate, 0, 8, after, 3, &value, &err),
				 0);
		assert_int_equal(hal_queue_wait(dma, value, clock_after(SECOND / 20), &err),
				 ERR_DEADLINE_EXCEEDED);
		run(exe, 0);
		assert_int_equal(hal_queue_wait(dma, value, clock_after(20 * SECOND), &err), 0);
	}
	hal_exe_unload(exe);
}

/* A semaphore of another device, or of nobody, would be waited for at an address that means
 * something else here. */
static void what_cannot_be_waited_for_is_refused(void **state)
{
	struct hal_exe *exe = load(store_42, 3, 3);
	struct hw_binding b[3] = { [2] = { hal_mem_va(gate), hal_mem_bytes(gate) } };
	struct hw_copy_2d what = { .dst = hal_mem_va(gate), .src = hal_mem_va(gate),
				   .row_bytes = 8, .rows = 1, .planes = 1 };
	struct hal_device *d;
	struct hal *h;
	struct err err;
	uint64_t value, done = run(exe, 0);

	(void)state;
	assert_int_equal(hal_create(&(struct hal_options){ .devices = "sim:hbm=64M" }, &h, &err),
			 0);
	assert_int_equal(hal_device_open(h, 0, &d, &err), 0);
	assert_int_equal(hal_queue_wait(compute, done, clock_after(20 * SECOND), &err), 0);
	for (unsigned i = 0; i < 3; i++) {
		struct hal_after after[] = { { compute, done },
			{ i == 0 ? hal_device_queue(d, HAL_QUEUE_COMPUTE) : i == 1 ? NULL : dma,
			  i == 2 ? next_of(dma) + 1 : 1 } };
		struct hal_after own[] = { { compute, next_of(compute) } };
		struct hal_launch l = { .exe = exe, .bindings = b, .after = i == 2 ? own : after,
					.n_after = i == 2 ? 1 : 2 };
		uint64_t next[] = { next_of(compute), next_of(dma) };

		assert_int_equal(hal_queue_copy(dma, gate, 0, gate, 0, 8, after, 2, &value, &err),
				 ERR_INVALID_ARGUMENT);
		assert_non_null(strstr(err.msg, i == 2 ? "its own queue" : "of its HAL"));
		assert_int_equal(hal_queue_copy_2d(dma, &what, after, 2, &value, &err),
				 ERR_INVALID_ARGUMENT);
		assert_int_equal(hal_queue_execute(compute, &l, &value, &err),
				 ERR_INVALID_ARGUMENT);
		assert_int_equal(next_of(compute), next[0]);
		assert_int_equal(next_of(dma), next[1]);
	}
	hal_destroy(h);
	hal_exe_unload(exe);
}

static uint64_t bytes_in_use(struct hal_device *d, enum hal_mem_kind kind)
{
	struct hal_mem_stats stats;

	hal_mem_stats(d, kind, &stats);
	return stats.bytes_in_use;
}

static uint64_t host_bytes_in_use(struct hal_device *d)
{
	return bytes_in_use(d, HAL_MEM_HOST);
}

/* A model that checks does not show the CPU its HBM. Its queues, and a block of HBM. */
static struct hal *open_hidden(struct hal_queue **c, struct hal_queue **q, struct hal_mem **m)
{
	struct hal_device *d;
	struct hal *h;
	struct err err;

	assert_int_equal(hal_create(&(struct hal_options){ .devices = "sim:hbm=16M,check" }, &h,
				    &err), 0);
	assert_int_equal(hal_device_open(h, 0, &d, &err), 0);
	*c = hal_device_queue(d, HAL_QUEUE_COMPUTE);
	*q = hal_device_queue(d, HAL_QUEUE_DMA);
	assert_int_equal(hal_mem_alloc(d, HAL_MEM_HBM, 4096, "x", m, &err), 0);
	assert_null(hal_mem_host(*m));
	return h;
}

/* Staging memory is no other's while the device may read or write it. */
static void a_copy_that_is_late_keeps_its_memory(void **state)
{
	uint8_t data[4096], got[4096] = { 0 };
	struct hal_queue *c, *q;
	struct hal_mem *m;
	struct hal *h = open_hidden(&c, &q, &m);
	struct hal_device *d = c->dev;
	uint64_t before, value;
	int64_t until;
	struct err err;

	(void)state;
	memset(data, 0x5a, sizeof(data));
	before = host_bytes_in_use(d);
	assert_int_equal(hal_queue_copy(q, m, 0, m, 0, 0, &(struct hal_after){ c, next_of(c) }, 1,
					&value, &err), 0);
	assert_int_equal(hal_copy_in(m, 0, data, sizeof(data), clock_after(SECOND / 20), &err),
			 ERR_DEADLINE_EXCEEDED);
	assert_int_equal(host_bytes_in_use(d), before + sizeof(data));
	assert_int_equal(hal_queue_fill(c, m, 0, 0, 0, &value, &err), 0);
	until = clock_after(20 * SECOND);
	while (host_bytes_in_use(d) != before && clock_ns() < until)
		usleep(1000);
	assert_int_equal(host_bytes_in_use(d), before);
	assert_int_equal(hal_copy_out(got, m, 0, sizeof(got), CLOCK_FOREVER, &err), 0);
	assert_memory_equal(got, data, sizeof(data));
	hal_destroy(h);
}

/* Nor is what it was to fill: once for constants, once for code. Each load gives up after ten
 * seconds. */
static void a_load_that_is_late_keeps_its_memory(void **state)
{
	struct hal_queue *c, *q;
	struct hal_exe *exe;
	struct hal_mem *m;
	struct hal *h = open_hidden(&c, &q, &m);
	struct hal_device *d = c->dev;
	uint64_t before, value;
	int64_t until;
	struct err err;

	(void)state;
	before = bytes_in_use(d, HAL_MEM_HBM);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(hal_queue_copy(q, m, 0, m, 0, 0,
						&(struct hal_after){ c, next_of(c) }, 1, &value,
						&err), 0);
		assert_int_equal(try_load(d, store_42, 3, 3, i ? "" : "constants", &exe, &err),
				 ERR_DEADLINE_EXCEEDED);
		assert_true(bytes_in_use(d, HAL_MEM_HBM) > before);
		assert_int_equal(hal_queue_fill(c, m, 0, 0, 0, &value, &err), 0);
		until = clock_after(20 * SECOND);
		while (bytes_in_use(d, HAL_MEM_HBM) != before && clock_ns() < until)
			usleep(1000);
		assert_int_equal(bytes_in_use(d, HAL_MEM_HBM), before);
	}
	hal_destroy(h);
}

static void a_dead_device_keeps_its_first_error(void **state)
{
	struct err first, second, err;
	struct hal_exe *exe = load(store_42, 3, 3);

	(void)state;
	err_set(&first, ERR_UNAVAILABLE, "what came first");
	err_set(&second, ERR_INTERNAL, "what followed");
	hal_die(dev, &first);
	hal_die(dev, &second);
	assert_int_equal(hal_device_error(dev, &err), ERR_UNAVAILABLE);
	assert_non_null(strstr(err.msg, "what came first"));
	assert_null(strstr(err.msg, "what followed"));
	/* A reset ends that life, and the next one has its own first error. */
	if (hal_device_reset(dev, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(hal_device_error(dev, &err), 0);
	hal_die(dev, &second);
	assert_int_equal(hal_device_error(dev, &err), ERR_INTERNAL);
	if (hal_device_reset(dev, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(hal_queue_wait(compute, run(exe, 0), clock_after(5 * SECOND), &err), 0);
	hal_exe_unload(exe);
}

struct told {
	struct hal *hal;
	_Atomic unsigned n, n_locked;
};

static void note_lock(void *arg, const struct err *err)
{
	struct told *t = arg;

	(void)err;
	if (pthread_mutex_trylock(&t->hal->lock))
		atomic_fetch_add(&t->n_locked, 1);
	else
		pthread_mutex_unlock(&t->hal->lock);
	atomic_fetch_add(&t->n, 1);
}

/* Nor while the device is being closed, which waits for them. */
static void callbacks_do_not_run_under_the_lock_of_closing(void **state)
{
	struct err err;

	(void)state;
	for (unsigned i = 0; i < 50; i++) {
		struct told t = { 0 };
		struct hal_device *d;
		struct hal_mem *m;
		uint64_t value;

		assert_int_equal(hal_create(&(struct hal_options){ .devices = "sim:hbm=16M" },
					    &t.hal, &err), 0);
		assert_int_equal(hal_device_open(t.hal, 0, &d, &err), 0);
		assert_int_equal(hal_mem_alloc(d, HAL_MEM_HBM, 64, "x", &m, &err), 0);
		for (unsigned k = 0; k < 20; k++) {
			struct hal_queue *q = hal_device_queue(d, HAL_QUEUE_DMA);

			assert_int_equal(hal_queue_copy(q, m, 0, m, 0, 8, NULL, 0, &value, &err),
					 0);
			assert_int_equal(hal_queue_notify(q, value, note_lock, &t, &err), 0);
		}
		hal_destroy(t.hal);
		assert_int_equal(t.n, 20);
		assert_int_equal(t.n_locked, 0);
	}
}

/* Not even its lock, which another thread of the parent may have had. */
static void a_child_of_fork_opens_nothing_of_its_parents(void **state)
{
	struct hal_options o = { .devices = "sim:devices=2,hbm=16M" };
	struct hal_device *d;
	struct hal *h;
	struct err err;
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(hal_create(&o, &h, &err), 0);
	pthread_mutex_lock(&h->lock);
	pid = fork();
	if (!pid) {
		alarm(20);
		_exit(hal_device_open(h, 1, &d, &err) != ERR_FAILED_PRECONDITION ||
		      !strstr(err.msg, "forked"));
	}
	pthread_mutex_unlock(&h->lock);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(hal_device_open(h, 1, &d, &err), 0);
	hal_destroy(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_queue_makes_its_callers_wait),
		cmocka_unit_test(room_can_be_asked_for),
		cmocka_unit_test(failures_are_never_forgotten),
		cmocka_unit_test(bindings_of_what_waits_stay),
		cmocka_unit_test(a_full_queue_can_be_waited_for),
		cmocka_unit_test(a_full_queue_goes_on_when_what_it_waits_for_fails),
		cmocka_unit_test(all_that_is_named_is_waited_for),
		cmocka_unit_test(what_cannot_be_waited_for_is_refused),
		cmocka_unit_test(a_copy_that_is_late_keeps_its_memory),
		cmocka_unit_test(a_load_that_is_late_keeps_its_memory),
		cmocka_unit_test(a_dead_device_keeps_its_first_error),
		cmocka_unit_test(callbacks_do_not_run_under_the_lock_of_closing),
		cmocka_unit_test(a_child_of_fork_opens_nothing_of_its_parents),
	};

	return cmocka_run_group_tests(tests, open_device, close_device);
}
