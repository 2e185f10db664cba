/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In a guest: two processes on one card of the kernel driver, each of which fills more than half
 * of it in turn. Who comes second is told who has it; who frees it or is killed gives it to the
 * other.
 *
 *	share [DEVICE]		accel:0
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hal/base/clock.h"
#include "hal/hal.h"

#define SECOND 1000000000ll
#define LIMIT_S 600u		/* on a kernel that checks every access, too */

struct reply {
	int code;
	uint64_t total, limit;	/* of HBM, afterwards */
	struct err err;
};

struct worker {
	pid_t pid;
	int to, from;
};

static const char *device = "accel:0";

/* ---- a worker ---- */

static struct hal_device *dev;
static struct hal_mem *held;
static uint64_t total;

/* 5/8 of the card, filled by the device and looked at. */
static int fill(struct err *err)
{
	struct hal_queue *q = hal_device_queue(dev, HAL_QUEUE_DMA);
	uint64_t bytes = total / 8 * 5, pattern = (uint64_t)getpid() * 0x100000001ull, value;
	uint64_t *x = malloc(bytes);
	int code = hal_mem_alloc(dev, HAL_MEM_HBM, bytes, "half and more", &held, err);

	if (!code)
		code = hal_queue_fill(q, held, 0, bytes, pattern, &value, err);
	if (!code)
		code = hal_queue_wait(q, value, clock_after(60 * SECOND), err);
	if (!code)
		code = hal_copy_out(x, held, 0, bytes, clock_after(60 * SECOND), err);
	for (uint64_t i = 0; !code && i < bytes / 8; i++)
		if (x[i] != pattern)
			code = err_set(err, ERR_DATA_LOSS, "word %llu is %llx, not %llx",
				       (unsigned long long)i, (unsigned long long)x[i],
				       (unsigned long long)pattern);
	free(x);
	return code;
}

/* Does what it is told, a letter at a time, until nobody tells it anything. */
static void work(int in, int out)
{
	struct hal_device_info info;
	struct hal_mem_stats s;
	struct reply r = { 0 };
	struct hal *hal = NULL;
	char what;

	alarm(LIMIT_S);
	r.code = hal_create(&(struct hal_options){ .devices = device }, &hal, &r.err);
	if (!r.code)
		r.code = hal_device_open(hal, 0, &dev, &r.err);
	if (!r.code)
		r.code = hal_device_info(hal, 0, &info, &r.err);
	total = r.total = info.hbm_bytes;
	while (write(out, &r, sizeof(r)) == sizeof(r) && read(in, &what, 1) == 1) {
		r = (struct reply){ .total = total };
		if (what == 'f') {
			r.code = fill(&r.err);
		} else {
			hal_mem_free(held);
			held = NULL;
		}
		hal_mem_stats(dev, HAL_MEM_HBM, &s);
		r.limit = s.limit_bytes;
	}
	hal_destroy(hal);
	exit(0);
}

/* ---- who tells them ---- */

static void fail(const char *what, const struct reply *r)
{
	fprintf(stderr, "share: %s: code %d, %llu of %llu bytes: %s\n", what, r->code,
		(unsigned long long)r->limit, (unsigned long long)r->total, r->err.msg);
	exit(1);
}

static struct reply hear(const struct worker *w)
{
	struct reply r = { 0 };

	if (read(w->from, &r, sizeof(r)) != sizeof(r)) {
		fprintf(stderr, "share: process %d has ended\n", (int)w->pid);
		exit(1);
	}
	return r;
}

static struct reply tell(const struct worker *w, char what)
{
	if (write(w->to, &what, 1) != 1)
		perror("share: write");
	return hear(w);
}

static struct worker employ(void)
{
	struct worker w;
	struct reply r;
	int to[2], from[2];

	if (pipe(to) || pipe(from))
		exit(1);
	w = (struct worker){ .pid = fork(), .to = to[1], .from = from[0] };
	if (!w.pid) {
		close(to[1]);
		close(from[0]);
		work(to[0], from[1]);
	}
	close(to[0]);
	close(from[1]);
	r = hear(&w);
	if (r.code)
		fail("opening", &r);
	return w;
}

/* `second` is refused, by a text that names `first` and what is left. */
static void expect_refusal(const struct worker *first, const struct worker *second)
{
	struct reply r = tell(second, 'f');
	char name[40];

	snprintf(name, sizeof(name), "process %d (share)", (int)first->pid);
	if (r.code != ERR_RESOURCE_EXHAUSTED || !strstr(r.err.msg, name) ||
	    !strstr(r.err.msg, "Others hold"))
		fail("who has it was to be named", &r);
	if (r.limit != r.total / 8 * 3)
		fail("three eighths were to be left", &r);
	puts(r.err.msg);
}

static void expect_room(const struct worker *w)
{
	struct reply r = tell(w, 'f');

	if (r.code)
		fail("memory that the other gave back", &r);
	if (r.limit != r.total)
		fail("all of the card was to be had", &r);
}

int main(int argc, char **argv)
{
	struct worker a, b;
	struct reply r;

	if (argc > 1)
		device = argv[1];
	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGPIPE, SIG_IGN);
	alarm(LIMIT_S);
	a = employ();
	b = employ();
	for (int round = 0; round < 3; round++) {
		expect_room(&a);
		expect_refusal(&a, &b);
		tell(&a, '-');
		expect_room(&b);
		expect_refusal(&b, &a);
		tell(&b, '-');
	}
	expect_room(&b);
	kill(b.pid, SIGKILL);
	waitpid(b.pid, NULL, 0);
	expect_room(&a);
	r = tell(&a, '-');
	if (r.limit != r.total)
		fail("nothing was to be held", &r);
	close(a.to);
	waitpid(a.pid, NULL, 0);
	return 0;
}
