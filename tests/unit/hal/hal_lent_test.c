/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices of two processes on one server: what one lends by a key the other borrows, and programs
 * meet; without the key nothing is seen; one that is killed fails the other soon, by name.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/socket.h>

#include "hal/hal.h"
#include "hal/hw/regs.h"
#include "tests/unit/ring.h"
#include "tests/unit/vfio_server.h"

#define SECOND 1000000000ll
#define SOON clock_after(60 * SECOND)
#define ELEMENTS 4096u

static struct vfio_server server;

/* What a member tells the other. */
struct card {
	struct hal_lent lent;
	uint64_t data, box;	/* offsets */
};

/* One of two members, in a process of its own or not. */
struct member {
	unsigned number;
	struct hal *hal;
	struct hal_device *dev;
	struct hal_exe *exe;
	struct hal_mem *data, *box;
	uint64_t value;
	struct card mine, theirs;
};

static struct hal_queue *queue(const struct member *m)
{
	return hal_device_queue(m->dev, HAL_QUEUE_COMPUTE);
}

static void check(int code, const struct err *err)
{
	if (code)
		fail_msg("%d: %s", code, err->msg);
}

static void expect(int code, const struct err *err, int want, const char *part)
{
	if (code != want || !strstr(err->msg, part))
		fail_msg("code %d instead of %d, without \"%s\": %s", code, want, part,
			 code ? err->msg : "");
}

static void join(struct member *m, unsigned number)
{
	static struct ring_code c;
	static const uint8_t zeros[RING_SLOTS];
	size_t bytes;
	void *image;
	struct err err;

	*m = (struct member){ .number = number };
	check(hal_create(&(struct hal_options){ .devices = server.device[number] }, &m->hal, &err),
	      &err);
	check(hal_device_open(m->hal, 0, &m->dev, &err), &err);
	c = (struct ring_code){ .n = 2, .member = number, .elements = ELEMENTS };
	ring_all_reduce(&c);
	check(ring_image(&c, &image, &bytes, &err), &err);
	check(hal_exe_load(m->dev, image, bytes, &m->exe, &err), &err);
	free(image);
	check(hal_mem_alloc(m->dev, HAL_MEM_HBM, 4 * ELEMENTS, "data", &m->data, &err), &err);
	check(hal_mem_alloc(m->dev, HAL_MEM_HBM, RING_MAILBOX(2, ELEMENTS), "box", &m->box, &err),
	      &err);
	check(hal_copy_in(m->box, 0, zeros, sizeof(zeros), SOON, &err), &err);
	check(hal_lend(m->dev, &m->mine.lent, &err), &err);
	m->mine.data = hal_lent_offset(m->data);
	m->mine.box = hal_lent_offset(m->box);
}

static void leave(struct member *m)
{
	hal_destroy(m->hal);
}

static int launch(struct member *m, struct err *err)
{
	struct hw_binding b[RING_BINDINGS(2)] = { { 0 } };
	unsigned other = 4 + 2 * (1 - m->number);
	uint64_t base;
	int code = hal_borrow(m->dev, &m->theirs.lent, m->number ? "the first one" :
			      "the second one", &base, err);

	b[2] = (struct hw_binding){ hal_mem_va(m->data), hal_mem_bytes(m->data) };
	b[3] = (struct hw_binding){ hal_mem_va(m->box), hal_mem_bytes(m->box) };
	b[other] = (struct hw_binding){ base + m->theirs.data, hal_mem_bytes(m->data) };
	b[other + 1] = (struct hw_binding){ base + m->theirs.box, hal_mem_bytes(m->box) };
	return code ? code : hal_queue_execute(queue(m), &(struct hal_launch){ .exe = m->exe,
					       .bindings = b }, &m->value, err);
}

static void put(struct member *m, float first)
{
	float x[ELEMENTS];
	struct err err;

	for (unsigned i = 0; i < ELEMENTS; i++)
		x[i] = first + (float)i;
	check(hal_copy_in(m->data, 0, x, sizeof(x), SOON, &err), &err);
}

static int wait_for(struct member *m, struct err *err)
{
	return hal_queue_wait(queue(m), m->value, SOON, err);
}

static void sums_are(struct member *m, float first)
{
	float x[ELEMENTS];
	struct err err;

	check(hal_copy_out(x, m->data, 0, sizeof(x), SOON, &err), &err);
	for (unsigned i = 0; i < ELEMENTS; i++)
		if (x[i] != first + 2.0f * (float)i)
			fail_msg("element %u is %g", i, (double)x[i]);
}

/* ---- two processes ---- */

/* What the other process does: tells its card, hears ours, then obeys. */
enum order { GO = 1, STAY_AWAY, QUIT };

static void obey(int fd)
{
	struct member m;
	struct err err;
	uint8_t order;

	join(&m, 1);
	if (write(fd, &m.mine, sizeof(m.mine)) != sizeof(m.mine) ||
	    read(fd, &m.theirs, sizeof(m.theirs)) != sizeof(m.theirs))
		_exit(2);
	while (read(fd, &order, 1) == 1 && order != QUIT) {
		uint8_t code = 0;

		put(&m, 1000);
		if (order == GO) {
			code = (uint8_t)launch(&m, &err);
			if (!code)
				code = (uint8_t)wait_for(&m, &err);
		}
		if (write(fd, &code, 1) != 1)
			_exit(3);
	}
	leave(&m);
	_exit(0);
}

static pid_t start_other(struct member *m, int *fd)
{
	int pair[2];
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		close(pair[0]);
		obey(pair[1]);
	}
	close(pair[1]);
	*fd = pair[0];
	join(m, 0);
	assert_int_equal(read(*fd, &m->theirs, sizeof(m->theirs)), sizeof(m->theirs));
	assert_int_equal(write(*fd, &m->mine, sizeof(m->mine)), sizeof(m->mine));
	return pid;
}

static void tell(int fd, enum order o)
{
	uint8_t order = (uint8_t)o;

	assert_int_equal(write(fd, &order, 1), 1);
}

static void two_processes_meet(void **state)
{
	struct member m;
	struct err err;
	uint8_t code;
	int fd, status;
	pid_t pid = start_other(&m, &fd);

	(void)state;
	for (unsigned i = 0; i < 50; i++) {
		put(&m, (float)i);
		tell(fd, GO);
		check(launch(&m, &err), &err);
		check(wait_for(&m, &err), &err);
		sums_are(&m, 1000 + (float)i);
		assert_int_equal(read(fd, &code, 1), 1);
		assert_int_equal(code, 0);
	}
	tell(fd, QUIT);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(fd);
	leave(&m);
}

static void one_that_is_killed_fails_the_other_by_name(void **state)
{
	struct member m;
	struct err err;
	uint8_t code;
	uint64_t value;
	int64_t began;
	int fd, status;
	pid_t pid = start_other(&m, &fd);

	(void)state;
	tell(fd, STAY_AWAY);
	assert_int_equal(read(fd, &code, 1), 1);
	check(launch(&m, &err), &err);
	assert_int_equal(hal_queue_wait(queue(&m), m.value, clock_after(SECOND / 5), &err),
			 ERR_DEADLINE_EXCEEDED);
	began = clock_ns();
	kill(pid, SIGKILL);
	expect(wait_for(&m, &err), &err, ERR_UNAVAILABLE, "peer the second one failed");
	assert_true(clock_ns() - began < SECOND);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	/* What was lent to it is gone, too; what is ours alone goes on. */
	assert_false(hal_is_lent(m.dev, &m.mine.lent));
	check(launch(&m, &err), &err);
	expect(wait_for(&m, &err), &err, ERR_UNAVAILABLE, "peer the second one failed");
	check(hal_queue_fill(queue(&m), m.data, 0, 4 * ELEMENTS, 0x3f8000003f800000, &value, &err),
	      &err);
	check(hal_queue_wait(queue(&m), value, SOON, &err), &err);
	close(fd);
	leave(&m);
}

/* ---- keys ---- */

static void nothing_is_borrowed_without_the_key(void **state)
{
	struct member a, b;
	struct hal_lent l;
	struct err err;
	uint64_t va;

	(void)state;
	join(&a, 0);
	join(&b, 1);
	l = b.mine.lent;
	assert_true(l.key && l.key != a.mine.lent.key && l.fabric == a.mine.lent.fabric);
	for (unsigned bit = 0; bit < 64; bit++) {
		l.key = b.mine.lent.key ^ 1ull << bit;
		expect(hal_borrow(a.dev, &l, "b", &va, &err), &err, ERR_NOT_FOUND, "b");
	}
	l.key = 0;
	expect(hal_borrow(a.dev, &l, "b", &va, &err), &err, ERR_INVALID_ARGUMENT, "by key 0x0");
	l = b.mine.lent;
	l.key = a.mine.lent.key;
	expect(hal_borrow(a.dev, &l, "b", &va, &err), &err, ERR_NOT_FOUND, "b");
	l = a.mine.lent;
	expect(hal_borrow(a.dev, &l, "b", &va, &err), &err, ERR_INVALID_ARGUMENT, "chip 0");
	l = b.mine.lent;
	l.chip = 77;
	expect(hal_borrow(a.dev, &l, "b", &va, &err), &err, ERR_NOT_FOUND, "b");
	l.chip = UINT32_MAX;
	expect(hal_borrow(a.dev, &l, "b", &va, &err), &err, ERR_INVALID_ARGUMENT, "chip");
	l = b.mine.lent;
	l.fabric++;
	expect(hal_borrow(a.dev, &l, "b", &va, &err), &err, ERR_UNIMPLEMENTED, "not linked");
	l = b.mine.lent;
	l.bytes += 4096;
	assert_int_not_equal(hal_borrow(a.dev, &l, "b", &va, &err), 0);
	for (uint64_t bytes = 1; bytes; bytes <<= 21) {
		l.bytes = ~bytes;
		assert_int_not_equal(hal_borrow(a.dev, &l, "b", &va, &err), 0);
	}
	check(hal_borrow(a.dev, &b.mine.lent, "b", &va, &err), &err);
	leave(&a);
	leave(&b);
}

static void a_key_that_was_taken_back_opens_nothing(void **state)
{
	struct member a, b;
	struct hal_lent again;
	struct err err;
	uint64_t va;

	(void)state;
	join(&a, 0);
	join(&b, 1);
	a.theirs = b.mine;
	check(launch(&a, &err), &err);
	assert_true(hal_is_lent(b.dev, &b.mine.lent));
	check(hal_take_back(b.dev, &err), &err);
	assert_false(hal_is_lent(b.dev, &b.mine.lent));
	expect(wait_for(&a, &err), &err, ERR_UNAVAILABLE, "peer the second one failed");
	check(hal_lend(b.dev, &again, &err), &err);
	assert_true(again.key != b.mine.lent.key && hal_is_lent(b.dev, &again));
	check(hal_borrow(a.dev, &again, "b", &va, &err), &err);
	/* The first name stays. */
	expect(hal_borrow(a.dev, &(struct hal_lent){ again.fabric, again.key + 1, again.bytes,
			  again.chip }, "b", &va, &err), &err, ERR_NOT_FOUND, "b");
	leave(&a);
	leave(&b);
}

/* The queue's state says that it works on nothing since something failed. */
static bool has_faulted(const struct member *m)
{
	struct hw_queue_state q[HW_MAX_QUEUES];
	bool is_there = false;
	uint64_t bytes;
	struct err err;

	check(hal_device_log(m->dev, HW_LOG_QUEUES, q, sizeof(q), &bytes, &err), &err);
	for (unsigned i = 0; i < bytes / sizeof(*q); i++)
		is_there |= q[i].is == HW_QUEUE_FAULTED;
	return is_there;
}

/* Launches what fails, with interrupts dropped. The HAL looks for itself once a second: if it has
 * heard of the failure already, there is another one. */
static void fail_unheard(struct member *m)
{
	uint64_t failures;
	struct err err;

	do {
		failures = hal_queue_failures(queue(m));
		check(launch(m, &err), &err);
		while (hal_queue_failures(queue(m)) == failures && !has_faulted(m))
			;
	} while (hal_queue_failures(queue(m)) != failures);
}

static void empty_box(struct member *m)
{
	static const uint8_t zeros[RING_SLOTS];
	struct err err;

	check(hal_copy_in(m->box, 0, zeros, sizeof(zeros), SOON, &err), &err);
}

/*
 * The first one fails twice before it lends anew, and hears of the second failure behind that: the
 * new window is whole, and the other one has begun to use it. Asked once more what it lends, it may
 * say so as often as it likes, and what the other one does goes on.
 */
static void a_window_that_others_use_is_not_closed(void **state)
{
	struct member a, b;
	struct hal_lent lent;
	struct err err;

	(void)state;
	join(&a, 0);
	join(&b, 1);
	a.theirs = b.mine;
	check(launch(&a, &err), &err);
	check(hal_queue_reset(queue(&a), "a test", &err), &err);
	check(hal_take_back(b.dev, &err), &err);
	check(hal_device_inject(a.dev, HW_INJECT_DROP_IRQ, 1000, &err), &err);
	fail_unheard(&a);
	empty_box(&a);
	empty_box(&b);
	lent = a.mine.lent;
	check(hal_lend(a.dev, &a.mine.lent, &err), &err);
	assert_true(a.mine.lent.key != lent.key);
	check(hal_lend(b.dev, &b.mine.lent, &err), &err);
	put(&a, 1000);
	put(&b, 2000);
	b.theirs = a.mine;
	a.theirs = b.mine;
	check(launch(&b, &err), &err);
	expect(wait_for(&a, &err), &err, ERR_UNAVAILABLE, "the second one");
	for (unsigned i = 0; i < 2; i++) {
		check(hal_lend(a.dev, &lent, &err), &err);
		assert_true(a.mine.lent.key == lent.key);
	}
	check(hal_device_inject(a.dev, HW_INJECT_DROP_IRQ, 0, &err), &err);
	check(launch(&a, &err), &err);
	check(wait_for(&a, &err), &err);
	check(wait_for(&b, &err), &err);
	sums_are(&a, 3000);
	sums_are(&b, 3000);
	leave(&a);
	leave(&b);
}

static void what_has_no_links_is_refused_with_what_helps(void **state)
{
	struct hal *hal;
	struct hal_device *dev;
	struct hal_lent l;
	struct err err;

	(void)state;
	check(hal_create(&(struct hal_options){ .devices = "sim:devices=1,hbm=64M" }, &hal, &err),
	      &err);
	check(hal_device_open(hal, 0, &dev, &err), &err);
	expect(hal_lend(dev, &l, &err), &err, ERR_UNIMPLEMENTED, "tessera-sim --devices N");
	hal_destroy(hal);
}

/* Work that failed since the caller looked: what relies on it is not launched. */
static void a_launch_may_insist_that_nothing_failed(void **state)
{
	struct hw_binding b[RING_BINDINGS(2)] = { { 0 } };
	struct member m;
	struct err err;
	uint64_t n, value;

	(void)state;
	join(&m, 0);
	n = hal_queue_failures(queue(&m));
	check(hal_queue_copy_2d(queue(&m), &(struct hw_copy_2d){ .src = 64, .dst = 64,
				.row_bytes = 64, .rows = 1 }, NULL, 0, &value, &err), &err);
	assert_int_not_equal(hal_queue_wait(queue(&m), value, SOON, &err), 0);
	assert_int_equal(hal_queue_failures(queue(&m)), n + 1);
	b[2] = (struct hw_binding){ hal_mem_va(m.data), hal_mem_bytes(m.data) };
	b[3] = (struct hw_binding){ hal_mem_va(m.box), hal_mem_bytes(m.box) };
	b[6] = b[7] = (struct hw_binding){ 1ull << 56, RING_MAILBOX(2, ELEMENTS) };
	expect(hal_queue_execute(queue(&m), &(struct hal_launch){ .exe = m.exe, .bindings = b,
				 .n_failures = &n }, &value, &err), &err, ERR_ABORTED,
	       "failed before");
	leave(&m);
}

static int start(void **state)
{
	(void)state;
	return server_start(&server);
}

static int stop(void **state)
{
	(void)state;
	return server_stop(&server, SIGTERM) ? -1 : 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_processes_meet),
		cmocka_unit_test(one_that_is_killed_fails_the_other_by_name),
		cmocka_unit_test(nothing_is_borrowed_without_the_key),
		cmocka_unit_test(a_key_that_was_taken_back_opens_nothing),
		cmocka_unit_test(a_window_that_others_use_is_not_closed),
		cmocka_unit_test(what_has_no_links_is_refused_with_what_helps),
		cmocka_unit_test(a_launch_may_insist_that_nothing_failed),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
