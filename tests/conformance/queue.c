/* SPDX-License-Identifier: Apache-2.0 */
/* Queues and events: numbers, order, waiting, notices, threads. */
#include <pthread.h>
#include <sched.h>

#include "tests/conformance/conf.h"

static uint64_t read_u64(struct conf *c, struct hal_mem *m)
{
	uint64_t x;

	OK(c, hal_copy_out(&x, m, 0, 8, SOON, &c->err));
	return x;
}

static void write_u64(struct conf *c, struct hal_mem *m, uint64_t x)
{
	OK(c, hal_copy_in(m, 0, &x, 8, SOON, &c->err));
}

void check_submissions_are_numbered_in_turn(struct conf *c)
{
	struct hal_exe *exe = conf_load_store(c);
	struct hal_mem *out = conf_get(c, 8);
	uint64_t first = conf_run(c, exe, out, 0), last = first, value, done = 0;

	for (uint64_t i = 1; i < 200; i++) {
		value = conf_run(c, exe, out, 0);
		/* The HAL itself may submit in between, but rarely. */
		EXPECT(c, value > last && value <= first + i + 4);
		last = value;
		EXPECT(c, hal_queue_done(c->compute) >= done);
		done = hal_queue_done(c->compute);
		EXPECT(c, done <= value + 4);
	}
	OK(c, hal_queue_wait(c->compute, last, SOON, &c->err));
	EXPECT(c, hal_queue_done(c->compute) >= last);
	OK(c, hal_queue_error(c->compute, first, &c->err));
	hal_exe_unload(exe);
	hal_mem_free(out);
}

void check_a_queue_runs_in_order(struct conf *c)
{
	struct hal_mem *m = conf_get(c, 4096);
	uint8_t x[4096];
	uint64_t value;

	OK(c, hal_queue_fill(c->dma, m, 0, 4096, 0, &value, &c->err));
	for (uint64_t i = 0; i < 500; i++) {
		OK(c, hal_queue_fill(c->dma, m, i * 8 % 4000, 64, i, &value, &c->err));
		OK(c, hal_queue_copy(c->dma, m, i * 24 % 4000, m, i * 8 % 4000, 48, NULL, 0,
				     &value, &c->err));
	}
	OK(c, hal_queue_wait(c->dma, value, SOON, &c->err));
	OK(c, hal_copy_out(x, m, 0, 4096, SOON, &c->err));
	see(c, x, 4096);
	hal_mem_free(m);
}

/* A counter goes from queue to queue: each step sees the one before. */
void check_queues_wait_for_each_other(struct conf *c)
{
	struct hal_exe *exe = conf_load_count(c);
	struct hal_mem *a = conf_get(c, 8), *b = conf_get(c, 8);
	struct hal_mem *trace = conf_get(c, 8 * 200);
	struct hal_after after = { c->dma, 0 };
	uint64_t value, got[200];

	write_u64(c, a, 1000);
	for (uint64_t i = 0; i < 200; i++) {
		value = conf_run_after(c, exe, a, 0, &after, i ? 1 : 0);
		after = (struct hal_after){ c->compute, value };
		OK(c, hal_queue_copy(c->dma, b, 0, a, 0, 8, &after, 1, &value, &c->err));
		OK(c, hal_queue_copy(c->dma, trace, i * 8, b, 0, 8, NULL, 0, &value, &c->err));
		after = (struct hal_after){ c->dma, value };
	}
	OK(c, hal_queue_wait(c->dma, after.value, SOON, &c->err));
	OK(c, hal_copy_out(got, trace, 0, sizeof(got), SOON, &c->err));
	for (uint64_t i = 0; i < 200; i++)
		EXPECT(c, got[i] == 1001 + i);
	see(c, got, sizeof(got));
	hal_exe_unload(exe);
	hal_mem_free(a);
	hal_mem_free(b);
	hal_mem_free(trace);
}

/* What waits does not begin, however long the other queue takes. */
void check_a_waiting_submission_does_not_begin(struct conf *c)
{
	struct hal_exe *spin = conf_load_spin(c), *count = conf_load_count(c);
	struct hal_mem *out = conf_get(c, 8), *copy = conf_get(c, 8);
	struct hal_after after[3] = { { c->compute, 0 }, { c->dma, 0 }, { c->compute, 0 } };
	uint64_t value, first;

	write_u64(c, out, 5);
	write_u64(c, copy, 77);
	OK(c, hal_queue_fill(c->dma, out, 0, 0, 0, &first, &c->err));
	after[1].value = first;
	after[0].value = conf_run(c, count, out, 0);
	after[2].value = conf_run(c, spin, out, 40 * MS);
	OK(c, hal_queue_copy(c->dma, copy, 0, out, 0, 8, after, 3, &value, &c->err));
	REFUSED(c, ERR_DEADLINE_EXCEEDED, "",
		hal_queue_wait(c->dma, value, clock_after(5 * MS), &c->err));
	EXPECT(c, read_u64(c, copy) == 77);
	/* A submission that failed is done, and lets the other go on. */
	OK(c, hal_queue_wait(c->dma, value, SOON, &c->err));
	EXPECT(c, read_u64(c, copy) == 6);
	EXPECT(c, hal_queue_error(c->compute, after[2].value, NULL) == ERR_DEADLINE_EXCEEDED);
	hal_exe_unload(spin);
	hal_exe_unload(count);
	hal_mem_free(out);
	hal_mem_free(copy);
}

void check_waiting_for_the_own_queue_is_free(struct conf *c)
{
	struct hal_mem *m = conf_get(c, 64);
	struct hal_after after[2] = { { c->dma, 0 }, { c->dma, 0 } };
	uint64_t value;

	OK(c, hal_queue_fill(c->dma, m, 0, 64, 1, &value, &c->err));
	after[0].value = after[1].value = value;
	OK(c, hal_queue_copy(c->dma, m, 0, m, 0, 64, after, 2, &value, &c->err));
	EXPECT(c, value > after[0].value && value <= after[0].value + 4);
	OK(c, hal_queue_wait(c->dma, value, SOON, &c->err));
	hal_mem_free(m);
}

void check_a_wait_ends_at_its_deadline(struct conf *c)
{
	struct hal_exe *exe = conf_load_spin(c);
	struct hal_mem *out = conf_get(c, 8);
	uint64_t value = conf_run(c, exe, out, 0);
	int64_t began = clock_ns(), took;

	REFUSED(c, ERR_DEADLINE_EXCEEDED, "checked",
		hal_queue_wait(c->compute, value, began + 30 * MS, &c->err));
	took = clock_ns() - began;
	EXPECT(c, took >= 30 * MS && took < 2 * SECOND);
	/* One that has passed does not wait at all. */
	began = clock_ns();
	REFUSED(c, ERR_DEADLINE_EXCEEDED, "checked",
		hal_queue_wait(c->compute, value, began - SECOND, &c->err));
	EXPECT(c, clock_ns() - began < SECOND);
	EXPECT(c, hal_queue_done(c->compute) < value);
	OK(c, hal_queue_reset(c->compute, "seen enough", &c->err));
	REFUSED(c, ERR_ABORTED, "seen enough",
		hal_queue_wait(c->compute, value, SOON, &c->err));
	hal_exe_unload(exe);
	hal_mem_free(out);
}

void check_what_is_done_needs_no_time(struct conf *c)
{
	struct hal_exe *exe = conf_load_count(c);
	struct hal_mem *out = conf_get(c, 8);
	uint64_t first = conf_run(c, exe, out, 0), last = conf_run(c, exe, out, 0);

	OK(c, hal_queue_wait(c->compute, last, SOON, &c->err));
	OK(c, hal_queue_wait(c->compute, last, 0, &c->err));
	OK(c, hal_queue_wait(c->compute, first, clock_ns() - SECOND, &c->err));
	hal_exe_unload(exe);
	hal_mem_free(out);
}

static void count_call(void *arg, const struct err *err)
{
	(void)err;
	__atomic_fetch_add((unsigned *)arg, 1, __ATOMIC_ACQ_REL);
}

void check_what_was_never_submitted_is_refused(struct conf *c)
{
	struct hal_mem *m = conf_get(c, 8);
	unsigned calls = 0;
	uint64_t value;

	OK(c, hal_queue_fill(c->dma, m, 0, 8, 0, &value, &c->err));
	OK(c, hal_queue_wait(c->dma, value, SOON, &c->err));
	REFUSED(c, ERR_INVALID_ARGUMENT, "never",
		hal_queue_wait(c->dma, value + 1000, SOON, &c->err));
	REFUSED(c, ERR_INVALID_ARGUMENT, "never",
		hal_queue_notify(c->dma, value + 1000, count_call, &calls, &c->err));
	EXPECT(c, !calls);
	hal_mem_free(m);
}

/* ---- threads ---- */

struct waiter {
	struct hal_queue *q;
	uint64_t value;
	int code;
	char msg[ERR_MSG_BYTES];
};

static void *wait_here(void *arg)
{
	struct waiter *w = arg;
	struct err err = { 0 };

	w->code = hal_queue_wait(w->q, w->value, SOON, &err);
	memcpy(w->msg, err.msg, sizeof(w->msg));
	return NULL;
}

void check_many_threads_wait_for_one(struct conf *c)
{
	struct hal_exe *exe = conf_load_spin(c);
	struct hal_mem *out = conf_get(c, 8);
	uint64_t value = conf_run(c, exe, out, 50 * MS);
	struct waiter w[8];
	pthread_t threads[8];

	for (int i = 0; i < 8; i++) {
		w[i] = (struct waiter){ .q = c->compute, .value = value, .code = -1 };
		EXPECT(c, !pthread_create(&threads[i], NULL, wait_here, &w[i]));
	}
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 8; i++) {
		EXPECT(c, w[i].code == ERR_DEADLINE_EXCEEDED);
		EXPECT(c, !strcmp(w[i].msg, w[0].msg));
	}
	hal_exe_unload(exe);
	hal_mem_free(out);
}

enum { NOTIFIERS = 4, NOTES = 400 };

struct notifier {
	struct conf *c;
	struct hal_exe *exe;
	struct hal_mem *out;
	unsigned calls[NOTES];
	bool failed;
};

static void *submit_and_notify(void *arg)
{
	struct notifier *n = arg;
	struct hal_queue *q = n->c->compute;
	struct hw_binding b[3] = { [2] = { hal_mem_va(n->out), 8 } };
	struct hal_launch l = { .exe = n->exe, .bindings = b };
	uint64_t value;

	for (int i = 0; i < NOTES; i++) {
		if (hal_queue_execute(q, &l, &value, NULL) ||
		    hal_queue_notify(q, value, count_call, &n->calls[i], NULL))
			n->failed = true;
		if (i % 50 == 49 && hal_queue_wait(q, value, SOON, NULL))
			n->failed = true;
	}
	return NULL;
}

static unsigned sum_calls(const struct notifier *n)
{
	unsigned sum = 0;

	for (int i = 0; i < NOTES; i++)
		sum += __atomic_load_n(&n->calls[i], __ATOMIC_ACQUIRE);
	return sum;
}

void check_notices_come_exactly_once(struct conf *c)
{
	struct notifier *n = conf_room(c, NOTIFIERS * sizeof(*n));
	struct hal_exe *exe = conf_load_count(c);
	pthread_t threads[NOTIFIERS];
	int64_t until = SOON;

	for (int i = 0; i < NOTIFIERS; i++) {
		n[i].c = c;
		n[i].exe = exe;
		n[i].out = conf_get(c, 8);
		write_u64(c, n[i].out, 0);
		EXPECT(c, !pthread_create(&threads[i], NULL, submit_and_notify, &n[i]));
	}
	for (int i = 0; i < NOTIFIERS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < NOTIFIERS; i++) {
		while (sum_calls(&n[i]) < NOTES && clock_ns() < until)
			sched_yield();
		EXPECT(c, !n[i].failed);
		for (int k = 0; k < NOTES; k++)
			EXPECT(c, n[i].calls[k] == 1);
		EXPECT(c, read_u64(c, n[i].out) == NOTES);
		hal_mem_free(n[i].out);
	}
	hal_exe_unload(exe);
	free(n);
}

void check_a_late_notice_comes_at_once(struct conf *c)
{
	struct hal_mem *m = conf_get(c, 8);
	unsigned calls = 0;
	uint64_t value;

	OK(c, hal_queue_fill(c->dma, m, 0, 8, 3, &value, &c->err));
	OK(c, hal_queue_wait(c->dma, value, SOON, &c->err));
	OK(c, hal_queue_notify(c->dma, value, count_call, &calls, &c->err));
	EXPECT(c, calls == 1);
	hal_mem_free(m);
}

struct chain {
	struct conf *c;
	struct hal_exe *exe;
	struct hal_mem *out;
	unsigned left, failed;
};

static void go_on(void *arg, const struct err *err)
{
	struct chain *ch = arg;
	struct hw_binding b[3] = { [2] = { hal_mem_va(ch->out), 8 } };
	struct hal_launch l = { .exe = ch->exe, .bindings = b };
	unsigned left = ch->left - 1;
	uint64_t value;

	if (left && (err || hal_queue_execute(ch->c->compute, &l, &value, NULL)))
		ch->failed = 1;
	__atomic_store_n(&ch->left, left, __ATOMIC_RELEASE);
	if (left && !ch->failed &&
	    hal_queue_notify(ch->c->compute, value, go_on, ch, NULL))
		ch->failed = 1;
}

/* A callback may submit and ask for the next one. */
void check_callbacks_submit_more_work(struct conf *c)
{
	struct chain *ch = conf_room(c, sizeof(*ch));
	int64_t until = SOON;
	uint64_t value;

	*ch = (struct chain){ c, conf_load_count(c), conf_get(c, 8), 100, 0 };
	write_u64(c, ch->out, 0);
	value = conf_run(c, ch->exe, ch->out, 0);
	OK(c, hal_queue_notify(c->compute, value, go_on, ch, &c->err));
	while (__atomic_load_n(&ch->left, __ATOMIC_ACQUIRE) && !ch->failed &&
	       clock_ns() < until)
		sched_yield();
	EXPECT(c, !ch->failed && !ch->left);
	EXPECT(c, read_u64(c, ch->out) == 100);
	hal_exe_unload(ch->exe);
	hal_mem_free(ch->out);
	free(ch);
}

void check_more_submissions_than_the_ring_holds(struct conf *c)
{
	struct hal_exe *spin = conf_load_spin(c), *count = conf_load_count(c);
	struct hal_mem *out = conf_get(c, 8), *gate = conf_get(c, 8);
	uint64_t value = 0, x;

	write_u64(c, out, 0);
	for (int i = 0; i < 5000; i++)
		value = conf_run(c, count, out, 0);
	OK(c, hal_queue_wait(c->compute, value, SOON, &c->err));
	x = read_u64(c, out);
	EXPECT(c, x == 5000);
	see(c, &x, 8);
	hal_exe_unload(spin);
	hal_exe_unload(count);
	hal_mem_free(out);
	hal_mem_free(gate);
}

struct submitter {
	struct conf *c;
	struct hal_exe *exe;
	struct hal_mem *out;
	uint64_t last;
	bool failed;
};

static void *submit_many(void *arg)
{
	struct submitter *s = arg;
	struct hw_binding b[3] = { [2] = { hal_mem_va(s->out), 8 } };
	struct hal_launch l = { .exe = s->exe, .bindings = b };

	for (int i = 0; i < 600; i++) {
		uint64_t value = 0;

		if (hal_queue_execute(s->c->compute, &l, &value, NULL) || value <= s->last)
			s->failed = true;
		s->last = value;
	}
	if (hal_queue_wait(s->c->compute, s->last, SOON, NULL))
		s->failed = true;
	return NULL;
}

void check_threads_share_a_queue(struct conf *c)
{
	struct hal_exe *exe = conf_load_count(c);
	struct hal_mem *out = conf_get(c, 8);
	struct submitter s[4];
	pthread_t threads[4];
	uint64_t x;

	write_u64(c, out, 0);
	for (int i = 0; i < 4; i++) {
		s[i] = (struct submitter){ c, exe, out, 0, false };
		EXPECT(c, !pthread_create(&threads[i], NULL, submit_many, &s[i]));
	}
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		EXPECT(c, !s[i].failed);
	}
	x = read_u64(c, out);
	EXPECT(c, x == 4 * 600);
	see(c, &x, 8);
	hal_exe_unload(exe);
	hal_mem_free(out);
}

/* An engine each: one that is busy does not hold up the other. */
void check_engines_work_side_by_side(struct conf *c)
{
	struct hal_exe *exe = conf_load_spin(c);
	struct hal_mem *out = conf_get(c, 8), *m = conf_get(c, 100000);
	uint64_t running = conf_run(c, exe, out, 0), value;
	uint8_t x[16];

	for (uint64_t i = 0; i < 20; i++) {
		OK(c, hal_queue_fill(c->dma, m, i, 90000, i, &value, &c->err));
		OK(c, hal_queue_wait(c->dma, value, SOON, &c->err));
	}
	EXPECT(c, hal_queue_done(c->compute) < running);
	OK(c, hal_queue_reset(c->compute, "enough", &c->err));
	OK(c, hal_copy_out(x, m, 90000, 16, SOON, &c->err));
	see(c, x, 16);
	hal_exe_unload(exe);
	hal_mem_free(out);
	hal_mem_free(m);
}
