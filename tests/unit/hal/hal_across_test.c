/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Submissions that wait for work of other devices, on the model in this process and on devices
 * that a server has: they begin when that has ended, however it ends, and not before.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "hal/base/clock.h"
#include "hal/hal_internal.h"

#define N 3		/* devices that wait for each other; one more has no part in it */
#define SERVED (N + 1)
#include "tests/unit/vfio_server.h"

#define SECOND 1000000000ll
#define SOON clock_after(20 * SECOND)

static struct vfio_server server;
static struct hal *hal;
static struct hal_device *dev[N + 1];
static struct hal_queue *q[N + 1][2];	/* by enum hal_queue_class */
static struct hal_mem *mem[N + 1];
static struct hal_exe *exe[N + 1];
static struct err err;

#define OK(call) do { \
	if (call) \
		fail_msg("%s: %s", #call, err.msg); \
} while (0)

/* With a program that ends at once. */
static void open_one(unsigned i)
{
	const struct isa_scalar halt = { .insn = { .op = ISA_HALT, .bytes = sizeof(halt) } };
	struct image_binding b[2] = { { .kind = IMAGE_CONSTANTS }, { .kind = IMAGE_TEMP } };
	const struct image im = {
		.info = { .version = IMAGE_VERSION, .isa = ISA_VERSION, .name = 1,
			  .n_replicas = 1, .n_partitions = 1 },
		.text = &halt, .text_bytes = sizeof(halt), .bindings = b, .n_bindings = 2,
		.strings = "\0halt", .strings_bytes = 6, .note = "by hand",
	};
	size_t bytes;
	void *image;

	OK(hal_device_open(hal, i, &dev[i], &err));
	for (unsigned k = 0; k < 2; k++)
		q[i][k] = hal_device_queue(dev[i], k ? HAL_QUEUE_DMA : HAL_QUEUE_COMPUTE);
	OK(hal_mem_alloc(dev[i], HAL_MEM_HBM, 4096, "tested", &mem[i], &err));
	OK(image_write(&im, &image, &bytes, &err));
	OK(hal_exe_load(dev[i], image, bytes, &exe[i], &err));
	free(image);
}

static int open_all(const char *devices)
{
	OK(hal_create(&(struct hal_options){ .devices = devices }, &hal, &err));
	for (unsigned i = 0; i <= N; i++)
		open_one(i);
	return 0;
}

static int open_model(void **state)
{
	(void)state;
	return open_all("sim:devices=4,hbm=64M,lanes=1");
}

static int close_all(void **state)
{
	(void)state;
	hal_destroy(hal);
	return 0;
}

static int open_served(void **state)
{
	char devices[SERVED * 120];

	(void)state;
	if (server_start(&server))
		return -1;
	snprintf(devices, sizeof(devices), "%s,%s,%s,%s", server.device[0], server.device[1],
		 server.device[2], server.device[3]);
	return open_all(devices);
}

static int close_served(void **state)
{
	close_all(state);
	return server_stop(&server, SIGTERM) ? -1 : 0;
}

static uint64_t copy_after(struct hal_queue *by, struct hal_mem *m, const struct hal_after *after,
			   unsigned n)
{
	uint64_t value = 0;

	OK(hal_queue_copy(by, m, 0, m, 2048, 64, after, n, &value, &err));
	return value;
}

/* Device i's compute queue stands still until let_go(i); what it is to do then. */
static uint64_t hold(unsigned i)
{
	const struct hal_after other = { q[i][1], atomic_load(&q[i][1]->submitted) + 1 };

	return copy_after(q[i][0], mem[i], &other, 1);
}

static void let_go(unsigned i)
{
	uint64_t value;

	OK(hal_queue_fill(q[i][1], mem[i], 0, 64, 0, &value, &err));
}

/* It waits while work of a device that has no part in this goes by. */
static void check_waits(unsigned i, uint64_t value)
{
	for (unsigned k = 0; k < 50; k++)
		OK(hal_queue_wait(q[N][0], copy_after(q[N][0], mem[N], NULL, 0), SOON, &err));
	assert_true(hal_queue_done(q[i][0]) < value);
}

enum { COPY, COPY_2D, EXECUTE, N_KINDS };

static int submit(unsigned kind, unsigned i, const struct hal_after *after, unsigned n,
		  uint64_t *value)
{
	const struct hw_copy_2d what = { .src = hal_mem_va(mem[i]) + 2048,
		.dst = hal_mem_va(mem[i]), .row_bytes = 8, .rows = 2, .planes = 1, .src_row = 8,
		.dst_row = 8 };
	struct hw_binding b[2] = { { 0 } };
	struct hal_launch l = { .exe = exe[i], .bindings = b, .after = after, .n_after = n };

	if (kind == COPY)
		return hal_queue_copy(q[i][0], mem[i], 0, mem[i], 2048, 64, after, n, value, &err);
	if (kind == COPY_2D)
		return hal_queue_copy_2d(q[i][0], &what, after, n, value, &err);
	return hal_queue_execute(q[i][0], &l, value, &err);
}

static void each_kind_of_work_waits_for_another_device(void **state)
{
	(void)state;
	for (unsigned kind = 0; kind < N_KINDS; kind++) {
		struct hal_after after = { q[0][0], hold(0) };
		uint64_t value, behind;

		OK(submit(kind, 1, &after, 1, &value));
		behind = copy_after(q[1][0], mem[1], NULL, 0);
		check_waits(1, value);
		assert_int_equal(hal_queue_wait(q[1][0], behind, clock_after(1000000), &err),
				 ERR_DEADLINE_EXCEEDED);
		assert_non_null(strstr(err.msg, "waits for work of another device"));
		let_go(0);
		OK(hal_queue_wait(q[1][0], behind, SOON, &err));
		assert_true(hal_queue_done(q[0][0]) >= after.value);
		OK(hal_queue_error(q[1][0], value, &err));
		/* what is done already costs no wait */
		value = atomic_load(&q[1][0]->submitted);
		OK(submit(kind, 1, &after, 1, &behind));
		assert_int_equal(behind, value + 1);
		OK(hal_queue_wait(q[1][0], behind, SOON, &err));
	}
}

/* The later one's work ends first. */
static void several_waits_end_in_any_order(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 4; round++) {
		struct hal_after a = { q[0][0], hold(0) }, c = { q[2][0], hold(2) };
		struct hal_after both[] = { a, c, { q[1][1], 0 } };
		uint64_t first = copy_after(q[1][0], mem[1], round & 1 ? &a : both,
					    round & 1 ? 1 : 3);
		uint64_t second = copy_after(q[1][0], mem[1], &c, 1);

		let_go(round & 2 ? 0 : 2);
		OK(hal_queue_wait(q[round & 2 ? 0 : 2][0], round & 2 ? a.value : c.value, SOON,
				  &err));
		check_waits(1, round & 1 && round & 2 ? second : first);
		let_go(round & 2 ? 2 : 0);
		OK(hal_queue_wait(q[1][0], second, SOON, &err));
		assert_true(hal_queue_done(q[0][0]) >= a.value);
		assert_true(hal_queue_done(q[2][0]) >= c.value);
	}
}

/* Its own device's other queue and another device: both. */
static void a_wait_for_both_kinds_of_queues_is_for_both(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 2; round++) {
		struct hal_after after[] = { { q[0][0], hold(0) },
			{ q[1][1], atomic_load(&q[1][1]->submitted) + 1 } };
		uint64_t value = copy_after(q[1][0], mem[1], after, 2);

		let_go(round);
		check_waits(1, value);
		let_go(!round);
		OK(hal_queue_wait(q[1][0], value, SOON, &err));
		assert_true(hal_queue_done(q[0][0]) >= after[0].value);
	}
}

static void what_fails_or_is_reset_ends_the_wait(void **state)
{
	struct hal_after after;
	uint64_t value, second;

	(void)state;
	after = (struct hal_after){ q[0][0], hold(0) };
	value = copy_after(q[1][0], mem[1], &after, 1);
	OK(hal_queue_reset(q[0][0], "a test", &err));
	OK(hal_queue_wait(q[1][0], value, SOON, &err));
	let_go(0);
	/* who waits is reset: what it waited for holds up nothing that comes later */
	after = (struct hal_after){ q[0][0], hold(0) };
	value = copy_after(q[1][0], mem[1], &after, 1);
	OK(hal_queue_reset(q[1][0], "a test", &err));
	assert_int_equal(hal_queue_wait(q[1][0], value, SOON, &err), ERR_ABORTED);
	after = (struct hal_after){ q[2][0], hold(2) };
	second = copy_after(q[1][0], mem[1], &after, 1);
	check_waits(1, second);
	let_go(2);
	OK(hal_queue_wait(q[1][0], second, SOON, &err));
	let_go(0);
	OK(hal_queue_wait(q[0][0], atomic_load(&q[0][0]->submitted), SOON, &err));
}

/* Either device is reset as a whole: numbers go on, and so do waits. */
static void devices_that_are_reset_wait_again(void **state)
{
	(void)state;
	for (unsigned which = 0; which < 2; which++) {
		struct hal_after after = { q[0][0], hold(0) };
		uint64_t value = copy_after(q[1][0], mem[1], &after, 1);

		OK(hal_device_reset(dev[which], &err));
		if (which)
			let_go(0);
		assert_int_equal(hal_queue_wait(q[1][0], value, SOON, &err),
				 which ? ERR_ABORTED : 0);
		if (!which)
			let_go(0);
		OK(hal_queue_wait(q[0][1], atomic_load(&q[0][1]->submitted), SOON, &err));
		after = (struct hal_after){ q[0][0], hold(0) };
		value = copy_after(q[1][0], mem[1], &after, 1);
		check_waits(1, value);
		let_go(0);
		OK(hal_queue_wait(q[1][0], value, SOON, &err));
	}
}

static void devices_may_be_closed_while_one_waits(void **state)
{
	for (unsigned which = 0; which < 2; which++) {
		struct hal_after after = { q[0][0], hold(0) };
		uint64_t value = copy_after(q[1][0], mem[1], &after, 1);

		hal_device_close(dev[which]);
		if (which)
			let_go(0);
		else
			OK(hal_queue_wait(q[1][0], value, SOON, &err));
		if (which)
			OK(hal_queue_wait(q[0][0], after.value, SOON, &err));
		open_one(which);
	}
	each_kind_of_work_waits_for_another_device(state);
}

static void what_can_not_be_waited_for_is_refused(void **state)
{
	struct hal_after after = { q[0][0], atomic_load(&q[0][0]->submitted) + 1 };
	struct hal_device *stranger;
	struct hal *other;
	uint64_t value;

	(void)state;
	OK(hal_create(&(struct hal_options){ .devices = "sim:hbm=64M" }, &other, &err));
	OK(hal_device_open(other, 0, &stranger, &err));
	for (unsigned kind = 0; kind < N_KINDS; kind++) {
		uint64_t next = atomic_load(&q[1][0]->submitted);

		assert_int_equal(submit(kind, 1, &after, 1, &value), ERR_INVALID_ARGUMENT);
		assert_non_null(strstr(err.msg, "not submitted yet"));
		assert_int_equal(submit(kind, 1, &(struct hal_after){
			hal_device_queue(stranger, HAL_QUEUE_DMA), 0 }, 1, &value),
			ERR_INVALID_ARGUMENT);
		assert_non_null(strstr(err.msg, "of its HAL"));
		assert_int_equal(atomic_load(&q[1][0]->submitted), next);
	}
	hal_destroy(other);
}

/* ---- many ---- */

enum { MANY = 1500 };

/* What number `at` of device `by` waited for; only one thread submits. */
static struct { unsigned by, of; uint64_t at, value; } waits[MANY];

static void check_order(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		uint64_t done = hal_queue_done(q[waits[i].by][0]);

		if (done >= waits[i].at && hal_queue_done(q[waits[i].of][0]) < waits[i].value)
			fail_msg("wait %u: number %llu of device %u was done before number %llu "
				 "of device %u", i, (unsigned long long)waits[i].at, waits[i].by,
				 (unsigned long long)waits[i].value, waits[i].of);
	}
}

static void many_waits_are_kept_and_all_end(void **state)
{
	uint64_t seed = 1;

	(void)state;
	for (unsigned i = 0; i < MANY; i++) {
		unsigned by, of;
		struct hal_after after;

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		by = (unsigned)(seed >> 40) % N;
		of = (by + 1 + (unsigned)(seed >> 50) % (N - 1)) % N;
		OK(submit((unsigned)(seed >> 33) % N_KINDS, of, NULL, 0, &after.value));
		after.queue = q[of][0];
		waits[i].by = by;
		waits[i].of = of;
		waits[i].value = after.value;
		OK(submit((unsigned)(seed >> 45) % N_KINDS, by, &after, 1, &waits[i].at));
		if (i % 16 == 0)
			check_order(i + 1);
	}
	for (unsigned i = 0; i < N; i++)
		OK(hal_queue_wait(q[i][0], atomic_load(&q[i][0]->submitted), SOON, &err));
	check_order(MANY);
}

/* ---- threads ---- */

enum { THREADS = 2 * N, TURNS = 400 };

/* Each submits to one queue, after what the others were last given, and keeps what that was. */
struct user {
	pthread_t thread;
	unsigned device, cls;
	struct { uint64_t at; struct hal_after after[2]; } turns[TURNS];
	struct err err;
};

static void *wait_for_others(void *arg)
{
	struct user *u = arg;
	struct hal_queue *by = q[u->device][u->cls];
	int code = 0;

	for (unsigned i = 0; !code && i < TURNS; i++) {
		struct hal_after *after = u->turns[i].after;

		for (unsigned k = 0; k < 2; k++) {
			after[k].queue = q[(u->device + 1 + k) % N][(i + k) % 2];
			after[k].value = atomic_load(&after[k].queue->submitted);
		}
		code = hal_queue_copy(by, mem[u->device], 256 * u->cls, mem[u->device],
				      2048 + 256 * u->cls, 64, after, 2, &u->turns[i].at,
				      &u->err);
		if (!code && i % 32 == 31)
			code = hal_queue_wait(by, u->turns[i].at, SOON, &u->err);
		for (unsigned j = 0; !code && j <= i; j++)
			for (unsigned k = 0; k < 2; k++)
				if (hal_queue_done(by) >= u->turns[j].at &&
				    hal_queue_done(u->turns[j].after[k].queue) <
				    u->turns[j].after[k].value)
					code = err_set(&u->err, ERR_INTERNAL, "turn %u was done "
						       "before what it waits for", j);
	}
	return code ? u : NULL;
}

/* All queues of three devices at once, each after the others': none is early, and none stays. */
static void threads_wait_for_each_others_devices(void **state)
{
	static struct user users[THREADS];
	void *failed;

	(void)state;
	for (unsigned i = 0; i < THREADS; i++) {
		users[i] = (struct user){ .device = i % N, .cls = i / N };
		assert_int_equal(pthread_create(&users[i].thread, NULL, wait_for_others,
						&users[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(users[i].thread, &failed), 0);
		if (failed)
			fail_msg("thread %u: %s", i, users[i].err.msg);
	}
	for (unsigned i = 0; i < N; i++)
		for (unsigned k = 0; k < 2; k++)
			OK(hal_queue_wait(q[i][k], atomic_load(&q[i][k]->submitted), SOON, &err));
}

int main(void)
{
#define ALL \
	cmocka_unit_test(each_kind_of_work_waits_for_another_device), \
	cmocka_unit_test(several_waits_end_in_any_order), \
	cmocka_unit_test(a_wait_for_both_kinds_of_queues_is_for_both), \
	cmocka_unit_test(what_fails_or_is_reset_ends_the_wait), \
	cmocka_unit_test(devices_that_are_reset_wait_again), \
	cmocka_unit_test(devices_may_be_closed_while_one_waits), \
	cmocka_unit_test(what_can_not_be_waited_for_is_refused), \
	cmocka_unit_test(many_waits_are_kept_and_all_end), \
	cmocka_unit_test(threads_wait_for_each_others_devices)
	const struct CMUnitTest model[] = { ALL }, served[] = { ALL };
	int failed;

	failed = cmocka_run_group_tests(model, open_model, close_all);
	return failed + cmocka_run_group_tests(served, open_served, close_served);
}
