/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HAL's traces, over the model in process, over a socket and through the kernel driver, which
 * tests/fake plays: what ran, under which name, when; and what becomes of them when programs go,
 * devices are reset and records are many.
 *
 *     hal_trace_test [DEVICE]
 *
 * goes over that device alone (accel:0), without what breaks it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hal/hal.h"
#include "hal/hw/image.h"
#include "tests/fake/accel_fake.h"
#include "tests/unit/vfio_server.h"

#define INSN(code) .insn = { .op = ISA_##code, .bytes = sizeof(struct isa_scalar) }
#define BYTES 4096u	/* of the only binding */
#define COPY_AT sizeof(struct isa_scalar)

static struct vfio_server server;
static const char *where = "sim:hbm=64M,lanes=1";
static struct hal *hal;
static struct hal_device *dev;
static struct hal_mem *memory;
static struct hal_trace *trace;

/* li r1, n; copy half of the memory over the other; r1 -= 1; bnz; halt. */
struct code {
	struct isa_scalar li;
	struct isa_copy copy;
	struct isa_scalar count, bnz, halt;
};

/* The debug map says "fill" of the first instruction, the name and "here" of those after it. */
static struct hal_exe *load(const char *name, int64_t n)
{
	struct code code = {
		.li = { INSN(LI), .rd = 1, .imm = n },
		.copy = { .insn = { ISA_COPY, 0, sizeof(code.copy) }, .rank = 1, .elem_bytes = 8,
			  .dim = { BYTES / 16, 1, 1, 1, 1, 1, 1, 1 },
			  .src = { .binding = 2, .stride = { 8 } },
			  .dst = { .binding = 2, .offset = BYTES / 2, .stride = { 8 } } },
		.count = { INSN(ALUI), .fn = ISA_ALU_SUB, .rd = 1, .ra = 1, .imm = 1 },
		.bnz = { INSN(BNZ), .ra = 1, .imm = -(int64_t)(sizeof(code.copy) + COPY_AT) },
		.halt = { INSN(HALT) },
	};
	char strings[64] = "\0fill\0here\0";
	struct image_binding b[] = {
		{ .kind = IMAGE_CONSTANTS }, { .kind = IMAGE_TEMP },
		{ .kind = IMAGE_RESULT, .access = HW_BIND_READ | HW_BIND_WRITE, .bytes = BYTES },
	};
	struct image_shape shape = { .elem = ELEM_U8, .rank = 1, .dim = { BYTES }, .alias = -1 };
	struct image_debug debug[] = { { 0, 1, 0 }, { COPY_AT, 11, 6 } };
	struct image im = {
		.info = { .version = IMAGE_VERSION, .isa = ISA_VERSION, .n_results = 1,
			  .name = 11, .n_replicas = 1, .n_partitions = 1 },
		.text = &code, .text_bytes = sizeof(code), .bindings = b, .n_bindings = 3,
		.shapes = &shape, .debug = debug, .n_debug = 2, .strings = strings,
		.strings_bytes = sizeof(strings), .note = "test",
	};
	struct hal_exe *exe;
	struct err err;
	size_t bytes;
	void *image;

	snprintf(strings + 11, sizeof(strings) - 11, "%s", name);
	if (image_write(&im, &image, &bytes, &err) ||
	    hal_exe_load(dev, image, bytes, &exe, &err))
		fail_msg("%s", err.msg);
	free(image);
	return exe;
}

static uint64_t submit(struct hal_exe *exe)
{
	struct hw_binding b[3] = { { 0, 0 }, { 0, 0 }, { hal_mem_va(memory), BYTES } };
	struct hal_launch l = { .exe = exe, .bindings = b };
	struct err err;
	uint64_t value;

	if (hal_queue_execute(hal_device_queue(dev, HAL_QUEUE_COMPUTE), &l, &value, &err))
		fail_msg("%s", err.msg);
	return value;
}

static void wait_for(uint64_t value)
{
	struct err err;

	if (hal_queue_wait(hal_device_queue(dev, HAL_QUEUE_COMPUTE), value,
			   clock_after(60000000000), &err))
		fail_msg("%s", err.msg);
}

static void run(struct hal_exe *exe)
{
	wait_for(submit(exe));
}

static void start(void)
{
	struct err err;

	if (hal_trace_start(dev, &err))
		fail_msg("%s", err.msg);
}

static void stop(void)
{
	struct err err;

	hal_trace_free(trace);
	trace = NULL;
	if (hal_trace_stop(dev, &trace, &err))
		fail_msg("%s", err.msg);
}

static bool is_word(const struct hw_trace_record *r, const char *program, const char *op,
		    const char *from)
{
	struct hal_trace_words w;

	hal_trace_tell(trace, r, &w);
	return !strcmp(w.program, program) && !strcmp(w.op, op) && !strcmp(w.where, from);
}

static int open_device(void **state)
{
	struct err err;

	(void)state;
	if (!hal_create(&(struct hal_options){ .devices = where }, &hal, &err) &&
	    !hal_device_open(hal, 0, &dev, &err) &&
	    !hal_mem_alloc(dev, HAL_MEM_HBM, BYTES, "test", &memory, &err))
		return 0;
	fprintf(stderr, "%s\n", err.msg);
	return -1;
}

static int close_device(void **state)
{
	(void)state;
	hal_trace_free(trace);
	trace = NULL;
	hal_device_close(dev);
	hal_destroy(hal);
	return 0;
}

static int start_card(void **state)
{
	if (fake_open_card(64 << 20))
		return -1;
	where = "accel:/dev/accel/accel0";
	return open_device(state);
}

static int stop_card(void **state)
{
	close_device(state);
	if (!fake_is_empty())
		return -1;
	fake_close_card();
	return 0;
}

/* A program can't do that to a device of the driver's; whoever can finds it reset. */
static void break_device(void)
{
	if (hal_device_inject(dev, HW_INJECT_FATAL, 0, NULL) != ERR_UNIMPLEMENTED)
		return;
	pthread_mutex_lock(&fake.lock);
	fake_request((struct hw_sqe){ .op = HW_INJECT, .id = HW_INJECT_FATAL }, NULL, 0, NULL);
	fake_function_reset();
	pthread_mutex_unlock(&fake.lock);
}

static int start_server(void **state)
{
	if (server_start(&server))
		return -1;
	where = server.device[0];
	return open_device(state);
}

static int stop_server(void **state)
{
	close_device(state);
	server_stop(&server, SIGTERM);
	return 0;
}

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* By how much the trace has a run outside of the time in which it was made. */
static int64_t traced_run(struct hal_exe *exe)
{
	int64_t before, after, off = 0;

	start();
	before = clock_ns();
	run(exe);
	after = clock_ns();
	stop();
	/* Two copies, what is left, the run. */
	assert_int_equal(trace->n_records, 4);
	assert_int_equal(trace->n_lost, 0);
	assert_true(trace->began <= before && trace->ended >= after);
	for (unsigned i = 0; i < 4; i++) {
		const struct hw_trace_record *r = &trace->records[i];

		assert_int_equal(r->number, i + 1);
		assert_int_equal(r->kind, i < 3 ? HW_TRACE_GROUP : HW_TRACE_PROGRAM);
		assert_true(is_word(r, "double", i < 3 ? "double" : "", i < 3 ? "here" : ""));
		assert_int_equal(r->bytes, i < 2 ? BYTES : 0);
		off = larger(off, before - hal_trace_time(trace, r->begin_ns));
		off = larger(off, hal_trace_time(trace, r->end_ns) - after);
	}
	return off;
}

static void what_ran_is_told_by_name_and_time(void **state)
{
	struct hal_exe *exe = load("double", 2);
	/* A look at a clock is right to within its answer: that of the model in this process, or
	 * through a kernel or a socket. */
	const int64_t most = strncmp(where, "sim:", 4) ? 10000000 : 20000;
	bool is_right = false;

	(void)state;
	run(exe);	/* before the trace: not told */
	/* Other work of the host may hold a look up, but not each. */
	for (unsigned i = 0; i < 100 && !is_right; i++)
		is_right = traced_run(exe) <= most;
	assert_true(is_right);
	hal_exe_unload(exe);
	/* The trace needs neither the executable nor, later, the device. */
	assert_true(is_word(&trace->records[0], "double", "double", "here"));
}

static void copies_of_queues_are_told(void **state)
{
	struct hal_queue *q = hal_device_queue(dev, HAL_QUEUE_DMA);
	struct hal_mem *host;
	struct err err;
	uint64_t value;

	(void)state;
	assert_int_equal(hal_mem_alloc(dev, HAL_MEM_HOST, BYTES, "test", &host, &err), 0);
	start();
	if (hal_queue_copy(q, memory, 0, host, 0, 100, NULL, 0, &value, &err) ||
	    hal_queue_wait(q, value, clock_after(60000000000), &err))
		fail_msg("%s", err.msg);
	stop();
	assert_int_equal(trace->n_records, 1);
	assert_int_equal(trace->records->kind, HW_TRACE_COPY);
	assert_int_equal(trace->records->cls, HW_CLASS_DMA);
	assert_int_equal(trace->records->bytes, 100);
	assert_true(is_word(trace->records, "", "", ""));
	hal_mem_free(host);
}

static void one_trace_at_a_time(void **state)
{
	struct hal_exe *exe = load("again", 1);
	struct hal_trace *other;
	struct err err;

	(void)state;
	assert_int_equal(hal_trace_stop(dev, &other, &err), ERR_FAILED_PRECONDITION);
	for (unsigned i = 0; i < 3; i++) {
		start();
		assert_int_equal(hal_trace_start(dev, &err), ERR_ALREADY_EXISTS);
		assert_non_null(strstr(err.msg, "is traced already"));
		run(exe);
		stop();
		assert_int_equal(trace->n_records, 3);
		assert_int_equal(trace->records->number, 1);
		run(exe);	/* nobody's */
	}
	hal_exe_unload(exe);
}

/* What the run records afterwards has no place. */
static void a_trace_may_end_within_a_run(void **state)
{
	struct hal_exe *exe = load("long", 100000);
	unsigned n_within = 0;

	(void)state;
	/* A little later each time, until it has begun and is not over. */
	for (unsigned tries = 0; n_within < 3; tries++) {
		uint64_t value;
		int64_t later;

		assert_true(tries < 2000);
		start();
		value = submit(exe);
		for (later = clock_after(tries * 10000); clock_ns() < later;)
			;
		stop();
		wait_for(value);
		n_within += trace->n_records &&
			trace->records[trace->n_records - 1].kind != HW_TRACE_PROGRAM;
	}
	start();
	run(exe);
	stop();
	assert_int_equal(trace->records[trace->n_records - 1].kind, HW_TRACE_PROGRAM);
	hal_exe_unload(exe);
}

/* Whether all programs that have gone are told by their names, of which the device gives the
 * numbers away again. */
static bool keep_their_names(unsigned n)
{
	bool is_right = true;
	char name[16];

	start();
	for (unsigned i = 0; i < n; i++) {
		struct hal_exe *exe;

		snprintf(name, sizeof(name), "p%u", i);
		exe = load(name, 1);
		run(exe);
		hal_exe_unload(exe);
	}
	stop();
	assert_int_equal(trace->n_records, 3 * n);
	assert_int_equal(trace->records[2].program, trace->records[5].program);
	for (unsigned i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "p%u", i);
		is_right &= is_word(&trace->records[3 * i], name, name, "here") &&
			    is_word(&trace->records[3 * i + 2], name, "", "");
	}
	return is_right;
}

/* Which program had a number is told by clocks: other work of the host may hold a look at them up,
 * but not each. */
static void programs_that_go_keep_their_names(void **state)
{
	unsigned tries = 0;

	(void)state;
	while (!keep_their_names(40))
		assert_true(++tries < 20);
}

static void a_trace_goes_on_after_a_reset(void **state)
{
	struct hal_exe *exe = load("stays", 1);
	struct err err;

	(void)state;
	start();
	run(exe);
	for (unsigned i = 0; i < 2; i++) {
		if (hal_device_reset(dev, &err))
			fail_msg("%s", err.msg);
		run(exe);
	}
	stop();
	assert_int_equal(trace->n_records, 9);
	assert_int_equal(trace->n_lost, 0);
	for (unsigned i = 0; i < 9; i++) {
		assert_int_equal(trace->records[i].number, i + 1);
		assert_true(is_word(&trace->records[i], "stays", i % 3 < 2 ? "stays" : "",
				    i % 3 < 2 ? "here" : ""));
		assert_true(!i || trace->records[i].end_ns >= trace->records[i - 1].end_ns);
	}
	hal_exe_unload(exe);
}

/* More than the ring holds; whoever reads may be late, but knows by how much. */
static void many_records_are_kept_or_counted(void **state)
{
	const int64_t n = 300000;
	struct hal_exe *exe = load("much", n);

	(void)state;
	start();
	run(exe);
	stop();
	print_message("# %zu of %lld records kept\n", trace->n_records, (long long)n + 2);
	assert_int_equal(trace->n_records + trace->n_lost, n + 2);
	assert_true(trace->n_records >= 32768);
	assert_int_equal(trace->records[trace->n_records - 1].kind, HW_TRACE_PROGRAM);
	for (size_t i = 1; i < trace->n_records; i++)
		assert_true(trace->records[i].number > trace->records[i - 1].number);
	hal_exe_unload(exe);
}

static int64_t measure(struct hal_exe *exe)
{
	int64_t least = INT64_MAX;

	for (unsigned i = 0; i < 3; i++) {
		int64_t began = clock_ns();

		run(exe);
		began = clock_ns() - began;
		least = began < least ? began : least;
	}
	return least;
}

/* One after the other, many times, as the machine is faster at some times than at others: what is
 * slower is so nearly every time. */
static void a_run_costs_after_a_trace_what_it_did_before(void **state)
{
	const int64_t n = 1000;
	struct hal_exe *exe = load("cost", n);
	unsigned rounds = 0, as_fast = 0;

	(void)state;
	for (; rounds < 50 || (as_fast * 3 < rounds && rounds < 2000); rounds++) {
		int64_t without = measure(exe), during, after;

		start();
		during = measure(exe);
		stop();
		after = measure(exe);
		as_fast += (double)after <= (double)without * 1.1;
		if (!rounds)
			print_message("# ns a group: %.1f without a trace, %.1f during one, %.1f "
				      "after it\n", (double)without / (double)n,
				      (double)during / (double)n, (double)after / (double)n);
	}
	print_message("# as fast as before in %u of %u rounds\n", as_fast, rounds);
	assert_true(as_fast * 3 >= rounds);
	hal_exe_unload(exe);
}

static void a_dead_device_gives_what_it_recorded(void **state)
{
	struct hal_exe *exe = load("last", 1);
	struct err err;

	(void)state;
	start();
	run(exe);
	break_device();
	stop();
	assert_int_equal(trace->n_records, 3);
	assert_true(is_word(trace->records, "last", "last", "here"));
	/* The waiter may not have looked yet. */
	if (!hal_trace_start(dev, &err))
		fail_msg("a trace of a device in its fatal state");
	if (hal_device_reset(dev, &err))
		fail_msg("%s", err.msg);
	start();
	run(exe);
	stop();
	assert_int_equal(trace->n_records, 3);
	hal_exe_unload(exe);
}

static void a_device_that_closes_ends_its_trace(void **state)
{
	struct hal_exe *exe = load("short", 1);

	start();
	run(exe);
	assert_int_equal(close_device(state), 0);
	assert_int_equal(open_device(state), 0);
	exe = load("short", 1);
	start();
	run(exe);
	stop();
	assert_int_equal(trace->n_records, 3);
}

#define TESTS_OF_ANY \
	cmocka_unit_test(what_ran_is_told_by_name_and_time), \
	cmocka_unit_test(copies_of_queues_are_told), \
	cmocka_unit_test(one_trace_at_a_time), \
	cmocka_unit_test(a_trace_may_end_within_a_run), \
	cmocka_unit_test(programs_that_go_keep_their_names), \
	cmocka_unit_test(a_trace_goes_on_after_a_reset), \
	cmocka_unit_test(many_records_are_kept_or_counted), \
	cmocka_unit_test(a_device_that_closes_ends_its_trace)

int main(int argc, char **argv)
{
	const struct CMUnitTest of_any[] = { TESTS_OF_ANY };
	const struct CMUnitTest tests[] = {
		TESTS_OF_ANY,
		cmocka_unit_test(a_run_costs_after_a_trace_what_it_did_before),
		cmocka_unit_test(a_dead_device_gives_what_it_recorded),
	};
	int failed;

	if (argc > 1) {
		where = argv[1];
		return cmocka_run_group_tests(of_any, open_device, close_device);
	}
	failed = cmocka_run_group_tests(tests, open_device, close_device);
	failed += cmocka_run_group_tests_name("driver", tests, start_card, stop_card);
	return failed + cmocka_run_group_tests(tests, start_server, stop_server);
}
