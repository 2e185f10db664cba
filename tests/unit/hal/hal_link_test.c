/* SPDX-License-Identifier: Apache-2.0 */
/* Linked devices through the HAL: where they are, copies between them, programs that meet,
 * and one that fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <glob.h>
#include <pthread.h>
#include <unistd.h>

#include "hal/hal_internal.h"
#include "hal/telemetry.h"
#include "tests/unit/ring.h"

#define N 8
#define SECOND 1000000000ll
#define SOON clock_after(60 * SECOND)

static struct hal *hal;
static struct hal_device *dev[N];

static int open_all(void **state)
{
	struct err err;

	(void)state;
	if (hal_create(&(struct hal_options){ .devices = "sim:devices=8,lanes=1,hbm=256M" },
		       &hal, &err))
		fail_msg("%s", err.msg);
	for (unsigned i = 0; i < N; i++)
		if (hal_device_open(hal, i, &dev[i], &err))
			fail_msg("%s", err.msg);
	return 0;
}

static int close_all(void **state)
{
	(void)state;
	hal_destroy(hal);
	return 0;
}

static struct hal_queue *queue(unsigned i, enum hal_queue_class cls)
{
	return hal_device_queue(dev[i], cls);
}

static struct hal_mem *get(unsigned i, enum hal_mem_kind kind, uint64_t bytes)
{
	struct hal_mem *m;
	struct err err;

	if (hal_mem_alloc(dev[i], kind, bytes, "test", &m, &err))
		fail_msg("%s", err.msg);
	return m;
}

static void expect(int code, struct err *err, int want, const char *part)
{
	if (code != want || (want && !strstr(err->msg, part)))
		fail_msg("code %d instead of %d, without \"%s\": %s", code, want, part,
			 code ? err->msg : "");
}

static void devices_know_their_places(void **state)
{
	struct hal_position first, p;
	struct hw_link l[HW_MAX_LINKS];
	struct err err;
	unsigned n;

	(void)state;
	hal_device_position(dev[0], &first);
	assert_true(first.fabric);
	for (unsigned i = 0; i < N; i++) {
		hal_device_position(dev[i], &p);
		assert_true(p.fabric == first.fabric);
		assert_int_equal(p.chip, i);
		assert_int_equal(p.n_chips, N);
		assert_int_equal(p.coords[0] + 4 * p.coords[1], i);
		assert_int_equal(p.shape[0], 4);
		assert_int_equal(p.shape[1], 2);
		assert_int_equal(hal_device_links(dev[i], l, &n, &err), 0);
		assert_int_equal(n, 3);
		assert_true(hal_is_linked(dev[i], dev[0]));
	}
}

static void what_is_not_linked_is_refused_by_name(void **state)
{
	struct hal *other;
	struct hal_device *alone;
	struct hal_mem *m, *host = get(1, HAL_MEM_HOST, 64), *mine = get(0, HAL_MEM_HBM, 64);
	struct hw_link l[HW_MAX_LINKS];
	struct hal_position p;
	struct err err;
	uint64_t va;
	unsigned n;

	(void)state;
	assert_int_equal(hal_create(&(struct hal_options){ .devices = "sim" }, &other, &err), 0);
	assert_int_equal(hal_device_open(other, 0, &alone, &err), 0);
	assert_int_equal(hal_mem_alloc(alone, HAL_MEM_HBM, 64, "test", &m, &err), 0);
	hal_device_position(alone, &p);
	assert_true(!p.fabric);
	assert_int_equal(hal_device_links(alone, l, &n, &err), 0);
	assert_int_equal(n, 0);
	assert_false(hal_is_linked(dev[0], alone));
	expect(hal_peer_va(dev[0], m, &va, &err), &err, ERR_UNIMPLEMENTED, "by two HALs");
	expect(hal_peer_va(dev[0], host, &va, &err), &err, ERR_INVALID_ARGUMENT, "host memory");
	expect(hal_queue_copy(queue(0, HAL_QUEUE_DMA), host, 0, mine, 0, 64, NULL, 0, &va, &err),
	       &err, ERR_INVALID_ARGUMENT, "host memory");
	expect(hal_queue_copy(queue(1, HAL_QUEUE_DMA), host, 0, mine, 0, 64, NULL, 0, &va, &err),
	       &err, ERR_INVALID_ARGUMENT, "copies only write over links");
	assert_int_equal(hal_peer_va(dev[0], mine, &va, &err), 0);
	assert_true(va == hal_mem_va(mine));
	hal_mem_free(m);
	hal_mem_free(host);
	hal_mem_free(mine);
	hal_destroy(other);
}

static void copies_go_by_links(void **state)
{
	enum { BYTES = 3 << 20 };
	struct hal_mem *a = get(2, HAL_MEM_HBM, BYTES), *b = get(5, HAL_MEM_HBM, BYTES + 64);
	struct hal_mem *h = get(2, HAL_MEM_HOST, 4096);
	uint8_t *in = malloc(BYTES), *out = malloc(BYTES);
	struct hw_link l[HW_MAX_LINKS], m[HW_MAX_LINKS];
	struct hw_telemetry t, u;
	struct err err;
	uint64_t value;
	unsigned n;

	(void)state;
	assert_true(in && out);
	for (unsigned i = 0; i < BYTES; i++)
		in[i] = (uint8_t)(i * 7 + i / 251);
	assert_int_equal(hal_copy_in(a, 0, in, BYTES, SOON, &err), 0);
	assert_int_equal(hal_device_links(dev[2], l, &n, &err), 0);
	assert_int_equal(hal_device_telemetry(dev[2], &t, &err), 0);
	assert_int_equal(hal_queue_copy(queue(2, HAL_QUEUE_DMA), b, 64, a, 0, BYTES, NULL, 0,
					&value, &err), 0);
	if (hal_queue_wait(queue(2, HAL_QUEUE_DMA), value, SOON, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(hal_copy_out(out, b, 64, BYTES, SOON, &err), 0);
	assert_memory_equal(in, out, BYTES);
	/* 2 is at (2, 0), 5 at (1, 1): first down */
	assert_int_equal(hal_device_links(dev[2], m, &n, &err), 0);
	assert_int_equal(m[1].tx_bytes - l[1].tx_bytes, BYTES);
	assert_int_equal(hal_device_telemetry(dev[2], &u, &err), 0);
	assert_true(u.dma_out_bytes == t.dma_out_bytes && u.dma_in_bytes == t.dma_in_bytes);
	/* out of host memory, too */
	memcpy(hal_mem_host(h), "by way of a link", 16);
	assert_int_equal(hal_queue_copy(queue(2, HAL_QUEUE_DMA), b, 0, h, 0, 16, NULL, 0, &value,
					&err), 0);
	assert_int_equal(hal_queue_wait(queue(2, HAL_QUEUE_DMA), value, SOON, &err), 0);
	assert_int_equal(hal_copy_out(out, b, 0, 16, SOON, &err), 0);
	assert_memory_equal(out, "by way of a link", 16);
	hal_mem_free(a);
	hal_mem_free(b);
	hal_mem_free(h);
	free(in);
	free(out);
}

/* ---- programs that meet ---- */

/* Members are device (first + r * step) % N. */
struct group {
	unsigned n, at[N];
	uint64_t elements;
	struct hal_exe *exe[N];
	struct hal_mem *data[N], *box[N];
	uint64_t value[N];
};

static pthread_mutex_t gang = PTHREAD_MUTEX_INITIALIZER;

static void clear_boxes(const struct group *g)
{
	static const uint8_t zeros[RING_SLOTS];
	struct err err;

	for (unsigned r = 0; r < g->n; r++)
		if (hal_copy_in(g->box[r], 0, zeros, sizeof(zeros), SOON, &err))
			fail_msg("%s", err.msg);
}

static void make(struct group *g, unsigned n, unsigned first, unsigned step, uint64_t elements)
{
	static _Thread_local struct ring_code c;
	struct err err;

	*g = (struct group){ .n = n, .elements = elements };
	for (unsigned r = 0; r < n; r++) {
		size_t bytes;
		void *image;

		g->at[r] = (first + r * step) % N;
		c.n = n;
		c.member = r;
		c.elements = elements;
		ring_all_reduce(&c);
		if (ring_image(&c, &image, &bytes, &err) ||
		    hal_exe_load(dev[g->at[r]], image, bytes, &g->exe[r], &err))
			fail_msg("%s", err.msg);
		free(image);
		g->data[r] = get(g->at[r], HAL_MEM_HBM, 4 * elements);
		g->box[r] = get(g->at[r], HAL_MEM_HBM, RING_MAILBOX(n, elements));
	}
	clear_boxes(g);
}

static void drop(struct group *g)
{
	for (unsigned r = 0; r < g->n; r++) {
		hal_exe_unload(g->exe[r]);
		hal_mem_free(g->data[r]);
		hal_mem_free(g->box[r]);
	}
}

static void fill(const struct group *g)
{
	float *x = malloc(4 * g->elements);
	struct err err;

	assert_non_null(x);
	for (unsigned r = 0; r < g->n; r++) {
		for (uint64_t i = 0; i < g->elements; i++)
			x[i] = 0.1f * (float)(r + 1) + (float)i;
		assert_int_equal(hal_copy_in(g->data[r], 0, x, 4 * g->elements, SOON, &err), 0);
	}
	free(x);
}

static int bind(const struct group *g, unsigned r, struct hw_binding *b, struct err *err)
{
	int code = 0;

	memset(b, 0, RING_BINDINGS(g->n) * sizeof(*b));
	for (unsigned k = 0; k < g->n && !code; k++) {
		unsigned at = k == r ? 2 : 4 + 2 * k;

		b[at].bytes = hal_mem_bytes(g->data[k]);
		b[at + 1].bytes = hal_mem_bytes(g->box[k]);
		code = hal_peer_va(dev[g->at[r]], g->data[k], &b[at].va, err);
		if (!code)
			code = hal_peer_va(dev[g->at[r]], g->box[k], &b[at + 1].va, err);
	}
	return code;
}

/* All addresses, then all submissions, and no other launch between them. The member `missing`
 * stays away. */
static int launch(struct group *g, unsigned missing, struct err *err)
{
	struct hw_binding b[N][RING_BINDINGS(N)];
	int code = 0;

	pthread_mutex_lock(&gang);
	for (unsigned r = 0; r < g->n && !code; r++)
		code = bind(g, r, b[r], err);
	for (unsigned r = 0; r < g->n && !code; r++)
		if (r != missing)
			code = hal_queue_execute(queue(g->at[r], HAL_QUEUE_COMPUTE),
						 &(struct hal_launch){ .exe = g->exe[r],
						 .bindings = b[r] }, &g->value[r], err);
	pthread_mutex_unlock(&gang);
	return code;
}

static int wait_for(const struct group *g, unsigned r, struct err *err)
{
	return hal_queue_wait(queue(g->at[r], HAL_QUEUE_COMPUTE), g->value[r], SOON, err);
}

static void meet(struct group *g)
{
	float *sum = malloc(4 * g->elements), *same = malloc(4 * g->elements);
	struct err err;

	assert_true(sum && same);
	fill(g);
	if (launch(g, N, &err))
		fail_msg("%s", err.msg);
	for (unsigned r = 0; r < g->n; r++)
		if (wait_for(g, r, &err))
			fail_msg("member %u: %s", r, err.msg);
	assert_int_equal(hal_copy_out(sum, g->data[0], 0, 4 * g->elements, SOON, &err), 0);
	for (uint64_t i = 0; i < g->elements; i++) {
		float want = (float)g->n * (float)i + 0.05f * (float)(g->n * (g->n + 1));

		if (sum[i] < want * 0.99999f - 1e-4f || sum[i] > want * 1.00001f + 1e-4f)
			fail_msg("element %u is %.9g, not %.9g", (unsigned)i, (double)sum[i],
				 (double)want);
	}
	for (unsigned r = 1; r < g->n; r++) {
		assert_int_equal(hal_copy_out(same, g->data[r], 0, 4 * g->elements, SOON, &err),
				 0);
		assert_memory_equal(sum, same, 4 * g->elements);
	}
	free(sum);
	free(same);
}

static void sums_have_the_same_bits_everywhere(void **state)
{
	static const struct { unsigned n, first, step; uint64_t elements; } cases[] = {
		{ 2, 0, 1, 2 }, { 2, 3, 4, 4096 }, { 4, 6, 3, 1024 }, { 8, 0, 1, 8 },
		{ 8, 5, 7, 80000 }, { 3, 1, 2, 999 },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct group g;

		make(&g, cases[i].n, cases[i].first, cases[i].step, cases[i].elements);
		for (unsigned k = 0; k < 5; k++)
			meet(&g);
		drop(&g);
	}
}

/* The device at `at` fails while the others wait for it; each says so by its name, soon. */
static void others_hear(struct group *g, unsigned missing, const char *part)
{
	int64_t began = clock_ns();
	struct err err;

	for (unsigned r = 0; r < g->n; r++) {
		if (r == missing)
			continue;
		assert_int_equal(wait_for(g, r, &err), ERR_UNAVAILABLE);
		if (!strstr(err.msg, part))
			fail_msg("member %u: \"%s\" is not in: %s", r, part, err.msg);
	}
	assert_true(clock_ns() - began < 5 * SECOND);
}

static void a_dead_device_fails_those_that_meet_it(void **state)
{
	struct group g, apart;
	struct err err;
	uint64_t va;

	(void)state;
	make(&g, 7, 0, 1, 7000);
	make(&apart, 2, 0, 7, 64);
	for (unsigned i = 0; i < 3; i++) {
		char part[80];

		meet(&g);
		if (launch(&g, 3, &err))
			fail_msg("%s", err.msg);
		snprintf(part, sizeof(part), "peer sim:3 failed: %s", i ? "the queue was reset" :
			 "the device is in its fatal state");
		if (i)
			assert_int_equal(hal_device_reset(dev[3], &err), 0);
		else
			assert_int_equal(hal_device_inject(dev[3], HW_INJECT_FATAL, 0, &err), 0);
		others_hear(&g, 3, part);
		if (!i) {
			int64_t deadline = SOON;

			while (!hal_device_error(dev[3], &err) && clock_ns() < deadline)
				hal_queue_wait(queue(3, HAL_QUEUE_COMPUTE), UINT64_MAX, 0, NULL);
			expect(hal_peer_va(dev[0], g.data[3], &va, &err), &err, ERR_UNAVAILABLE,
			       "sim:3 died");
			/* those that do not meet it go on meanwhile */
			meet(&apart);
			assert_int_equal(hal_device_reset(dev[3], &err), 0);
		}
		clear_boxes(&g);
		clear_boxes(&apart);
		meet(&g);
		meet(&apart);
	}
	drop(&g);
	drop(&apart);
}

/* Chip 0 waits for chip 3, and that for chip 7. No test before this one joins 0 and 7. */
static void a_failure_names_a_chip_that_was_never_met(void **state)
{
	struct group near, far;
	struct err err;

	(void)state;
	make(&near, 2, 0, 3, 64);
	make(&far, 2, 3, 4, 64);
	if (launch(&far, 1, &err) || launch(&near, N, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(hal_device_inject(dev[7], HW_INJECT_FATAL, 0, &err), 0);
	others_hear(&far, 1, "peer sim:7 failed");
	expect(wait_for(&near, 0, &err), &err, ERR_UNAVAILABLE, "peer sim:7 failed");
	assert_true(wait_for(&near, 1, &err));
	assert_int_equal(hal_device_reset(dev[7], &err), 0);
	clear_boxes(&near);
	clear_boxes(&far);
	meet(&near);
	meet(&far);
	drop(&near);
	drop(&far);
}

static void a_queue_reset_fails_those_that_meet_it(void **state)
{
	struct group g, pair;
	struct err err;

	(void)state;
	make(&g, 8, 0, 1, 800);
	make(&pair, 2, 4, 1, 64);
	/* more often than a device can see old windows of another */
	for (unsigned i = 0; i < 12; i++) {
		/* member 5 waits within, and another launch behind it, when its queue is reset */
		if (launch(&g, 2, &err) || launch(&pair, N, &err))
			fail_msg("%s", err.msg);
		assert_int_equal(hal_queue_reset(queue(5, HAL_QUEUE_COMPUTE), "a test", &err), 0);
		for (unsigned r = 0; r < 8; r++) {
			if (r == 2)
				continue;
			assert_int_equal(wait_for(&g, r, &err), r == 5 ? ERR_ABORTED :
					 ERR_UNAVAILABLE);
			if (!strstr(err.msg, "a test") ||
			    (r != 5 && !strstr(err.msg, "peer sim:5 failed")))
				fail_msg("member %u: %s", r, err.msg);
		}
		assert_true(wait_for(&pair, 0, &err));
		assert_true(wait_for(&pair, 1, &err));
		clear_boxes(&g);
		clear_boxes(&pair);
		meet(&g);
		meet(&pair);
	}
	drop(&g);
	drop(&pair);
}

/* The device has failed some work, of which the HAL has yet to hear. */
static bool has_faulted(unsigned device)
{
	struct hw_queue_state q[64];
	bool is_there = false;
	uint64_t bytes;
	struct err err;

	if (hal_device_log(dev[device], HW_LOG_QUEUES, q, sizeof(q), &bytes, &err))
		fail_msg("%s", err.msg);
	for (unsigned i = 0; i < bytes / sizeof(*q); i++)
		is_there |= q[i].is == HW_QUEUE_FAULTED;
	return is_there;
}

/* Launches what fails on the device, whose interrupts are dropped. The HAL looks for itself once a
 * second: if it has heard of the failure already, there is another one. */
static void fail_unheard(unsigned device, const struct hal_launch *l, uint64_t *value)
{
	struct hal_queue *q = queue(device, HAL_QUEUE_COMPUTE);
	uint64_t failures;
	struct err err;

	do {
		failures = hal_queue_failures(q);
		if (hal_queue_execute(q, l, value, &err))
			fail_msg("%s", err.msg);
		while (hal_queue_failures(q) == failures && !has_faulted(device))
			;
	} while (hal_queue_failures(q) != failures);
}

/* g is of devices 5 and 6, h of 4 and 5. The window of 4 broke while its member waited for h's
 * other one, which is bound, to be launched later; and 5 waits for g's other one. */
static void begin_two(struct group *g, struct group *h, struct hw_binding *b)
{
	struct err err;

	make(g, 2, 5, 1, 64);
	make(h, 2, 4, 1, 64);
	assert_int_equal(bind(h, 1, b, &err), 0);
	assert_int_equal(launch(h, 1, &err), 0);
	assert_int_equal(hal_queue_reset(queue(4, HAL_QUEUE_COMPUTE), "a test", &err), 0);
	assert_int_equal(launch(g, 1, &err), 0);
}

/* Device 5 fails once, and again before it lends anew, of which is heard behind that: what was lent
 * is whole, and whoever was launched with it must not fail. */
static void what_is_heard_late_breaks_nothing_new(void **state)
{
	struct hw_binding b[RING_BINDINGS(2)];
	struct group g, h;
	struct err err;
	uint64_t lent, va, same;

	(void)state;
	begin_two(&g, &h, b);
	assert_int_equal(hal_queue_reset(queue(5, HAL_QUEUE_COMPUTE), "a test", &err), 0);
	assert_int_equal(hal_device_inject(dev[5], HW_INJECT_DROP_IRQ, 1000, &err), 0);
	fail_unheard(5, &(struct hal_launch){ .exe = h.exe[1], .bindings = b }, &h.value[1]);
	assert_int_equal(hal_peer_va(dev[6], g.data[0], &va, &err), 0);
	lent = hal_times_lent(dev[5]);
	expect(wait_for(&h, 1, &err), &err, ERR_UNAVAILABLE, "peer sim:4 failed");
	assert_int_equal(hal_peer_va(dev[6], g.data[0], &same, &err), 0);
	assert_true(va == same && lent == hal_times_lent(dev[5]));
	assert_int_equal(hal_device_inject(dev[5], HW_INJECT_DROP_IRQ, 0, &err), 0);
	clear_boxes(&g);
	clear_boxes(&h);
	meet(&g);
	meet(&h);
	drop(&g);
	drop(&h);
}

static struct {
	pthread_mutex_t lock;
	pthread_cond_t moved;
	bool is_in, may_go;
} waiter = { .lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER };

static void keep_waiter(void *arg, const struct err *err)
{
	(void)arg;
	(void)err;
	pthread_mutex_lock(&waiter.lock);
	waiter.is_in = true;
	pthread_cond_broadcast(&waiter.moved);
	while (!waiter.may_go)
		pthread_cond_wait(&waiter.moved, &waiter.lock);
	waiter.is_in = false;
	pthread_cond_broadcast(&waiter.moved);
	pthread_mutex_unlock(&waiter.lock);
}

static void set_waiter(bool may_go)
{
	pthread_mutex_lock(&waiter.lock);
	waiter.may_go = may_go;
	pthread_cond_broadcast(&waiter.moved);
	while (waiter.is_in == may_go)
		pthread_cond_wait(&waiter.moved, &waiter.lock);
	pthread_mutex_unlock(&waiter.lock);
}

/* Device 5 has broken its window, and its waiter, in a callback, does not hear of it: who asks for
 * an address, perhaps for whom the callback waits, does not wait for that. */
static void a_failure_is_heard_of_while_the_waiter_is_busy(void **state)
{
	struct hw_binding b[RING_BINDINGS(2)];
	struct group g, h;
	struct err err;
	uint64_t lent, va;
	int64_t began, took;
	int code;

	(void)state;
	begin_two(&g, &h, b);
	/* the window of 5 breaks, whose waiter tells of it */
	assert_int_equal(hal_queue_notify(queue(5, HAL_QUEUE_COMPUTE), g.value[0], keep_waiter,
					  NULL, &err), 0);
	assert_int_equal(hal_queue_reset(queue(5, HAL_QUEUE_COMPUTE), "a test", &err), 0);
	set_waiter(false);
	assert_int_equal(hal_peer_va(dev[6], g.data[0], &va, &err), 0);
	lent = hal_times_lent(dev[5]);
	fail_unheard(5, &(struct hal_launch){ .exe = h.exe[1], .bindings = b }, &h.value[1]);
	began = clock_ns();
	code = hal_peer_va(dev[7], g.data[0], &va, &err);
	took = clock_ns() - began;
	set_waiter(true);
	assert_int_equal(code, 0);
	assert_true(took < SECOND / 2);
	assert_int_equal(hal_times_lent(dev[5]), lent + 1);
	expect(wait_for(&h, 1, &err), &err, ERR_UNAVAILABLE, "peer sim:4 failed");
	clear_boxes(&g);
	clear_boxes(&h);
	meet(&g);
	meet(&h);
	drop(&g);
	drop(&h);
}

/* There is no failure to hear of. */
static void a_window_that_broke_for_no_failure_is_lent_anew_at_once(void **state)
{
	struct hal_mem *m = get(5, HAL_MEM_HBM, 64);
	struct hw_sqe close = { .op = HW_WINDOW_CLOSE };
	struct err err;
	uint64_t lent, va;
	int64_t began;

	(void)state;
	assert_int_equal(hal_take_back(dev[5], &err), 0);
	assert_int_equal(hal_peer_va(dev[6], m, &va, &err), 0);
	close.u.admin.value = dev[5]->window;
	assert_int_equal(dev[5]->t->ops->link(dev[5]->t, close, NULL, 0, NULL, &err), 0);
	lent = hal_times_lent(dev[5]);
	began = clock_ns();
	assert_int_equal(hal_peer_va(dev[7], m, &va, &err), 0);
	assert_true(clock_ns() - began < SECOND / 2);
	assert_int_equal(hal_times_lent(dev[5]), lent + 1);
	/* nor to take back */
	close.u.admin.value = dev[5]->window;
	assert_int_equal(dev[5]->t->ops->link(dev[5]->t, close, NULL, 0, NULL, &err), 0);
	assert_int_equal(hal_take_back(dev[5], &err), 0);
	assert_int_equal(dev[5]->window, 0);
	hal_mem_free(m);
}

/* What device 5 drops since device 4 failed breaks a window that it lent meanwhile. Why it was
 * reset once is no reason. False: the HAL heard of the failure before that. */
static bool drops_for_another(struct group *g, struct group *h, struct group *far)
{
	struct hw_binding b[RING_BINDINGS(2)];
	struct hal_queue *q = queue(5, HAL_QUEUE_COMPUTE);
	struct hal_launch l = { .exe = h->exe[1], .bindings = b };
	uint64_t failures, va;
	struct err err;
	bool is_late;

	assert_int_equal(launch(g, 1, &err), 0);
	assert_int_equal(hal_queue_reset(q, "long ago", &err), 0);
	failures = hal_queue_failures(q);
	assert_int_equal(hal_device_inject(dev[5], HW_INJECT_DROP_IRQ, 1000, &err), 0);
	assert_int_equal(bind(h, 1, b, &err), 0);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(hal_queue_execute(q, &l, &h->value[1], &err), 0);
	assert_int_equal(hal_peer_va(dev[6], g->data[0], &va, &err), 0);
	assert_int_equal(hal_take_back(dev[5], &err), 0);
	assert_int_equal(launch(far, 1, &err), 0);
	assert_int_equal(hal_queue_reset(queue(4, HAL_QUEUE_COMPUTE), "a test", &err), 0);
	while (hal_queue_failures(q) == failures && !has_faulted(5))
		;
	assert_int_equal(launch(g, 0, &err), 0);
	is_late = hal_queue_failures(q) == failures;
	assert_int_equal(hal_device_inject(dev[5], HW_INJECT_DROP_IRQ, 0, &err), 0);
	expect(wait_for(h, 1, &err), &err, ERR_ABORTED, "sim:4");
	if (!is_late)
		assert_int_equal(hal_queue_reset(queue(6, HAL_QUEUE_COMPUTE), "late", &err), 0);
	expect(wait_for(g, 1, &err), &err, is_late ? ERR_UNAVAILABLE : ERR_ABORTED,
	       is_late ? "peer sim:5 failed" : "late");
	if (is_late && (strstr(err.msg, "long ago") || !strstr(err.msg, "sim:4")))
		fail_msg("%s", err.msg);
	return is_late;
}

static void an_old_reason_is_not_named(void **state)
{
	struct group g, h, far;

	(void)state;
	make(&g, 2, 5, 1, 64);
	make(&h, 2, 4, 1, 64);
	make(&far, 2, 4, 7, 64);
	while (!drops_for_another(&g, &h, &far))
		;
	clear_boxes(&g);
	clear_boxes(&h);
	clear_boxes(&far);
	meet(&g);
	meet(&h);
	meet(&far);
	drop(&g);
	drop(&h);
	drop(&far);
}

/* Device 5 dies before the HAL has asked it whom its work failed for: the error names it then. */
static void a_fault_whose_record_is_gone_names_its_device(void **state)
{
	struct hw_binding b[RING_BINDINGS(2)];
	struct group h;
	struct err err;

	(void)state;
	make(&h, 2, 4, 1, 64);
	assert_int_equal(bind(&h, 1, b, &err), 0);
	assert_int_equal(launch(&h, 1, &err), 0);
	assert_int_equal(hal_queue_reset(queue(4, HAL_QUEUE_COMPUTE), "a test", &err), 0);
	assert_int_equal(hal_device_inject(dev[5], HW_INJECT_DROP_IRQ, 1000, &err), 0);
	fail_unheard(5, &(struct hal_launch){ .exe = h.exe[1], .bindings = b }, &h.value[1]);
	assert_int_equal(hal_device_inject(dev[5], HW_INJECT_FATAL, 0, &err), 0);
	expect(wait_for(&h, 1, &err), &err, ERR_UNAVAILABLE, "sim:5");
	assert_int_equal(hal_device_reset(dev[5], &err), 0);
	clear_boxes(&h);
	meet(&h);
	drop(&h);
}

/* Member 4 knows why others' queues are reset, until it is told that this is over; of a device
 * that dies that is not the reason. Member 6 is told of what it has at that moment. */
static void who_knows_why_a_peer_is_reset_fails_for_that(void **state)
{
	struct hal_queue *knows = queue(4, HAL_QUEUE_COMPUTE);
	struct hal_queue *told = queue(6, HAL_QUEUE_COMPUTE);
	struct group g;
	struct err err;

	(void)state;
	make(&g, 8, 0, 1, 800);
	for (unsigned i = 0; i < 4; i++) {
		hal_queue_set_reason(knows, i < 2 ? "the job has ended" : NULL);
		if (i < 3)
			hal_queue_blame(told, "of what was before");
		if (launch(&g, 2, &err))
			fail_msg("%s", err.msg);
		if (i == 3)
			hal_queue_blame(told, "its own");
		if (i)
			hal_queue_reset(queue(5, HAL_QUEUE_COMPUTE), "a test", &err);
		else
			assert_int_equal(hal_device_inject(dev[5], HW_INJECT_FATAL, 0, &err), 0);
		expect(wait_for(&g, 4, &err), &err, i == 1 ? ERR_ABORTED : ERR_UNAVAILABLE,
		       i == 1 ? "the queue was reset: the job has ended" : "peer sim:5 failed");
		expect(wait_for(&g, 6, &err), &err, i == 3 ? ERR_ABORTED : ERR_UNAVAILABLE,
		       i == 3 ? "the queue was reset: its own" : "peer sim:5 failed");
		for (unsigned r = 0; r < 8; r++)
			assert_true(r == 2 || wait_for(&g, r, &err));
		if (!i)
			assert_int_equal(hal_device_reset(dev[5], &err), 0);
		clear_boxes(&g);
		meet(&g);
	}
	drop(&g);
}

struct user {
	pthread_t thread;
	unsigned number, rounds, failed;
};

/* Launches a group of its own again and again, over devices that others use too. */
static void *use(void *arg)
{
	struct user *u = arg;
	struct group g;
	struct err err;

	make(&g, 2 + u->number % 4, u->number, 1 + 2 * (u->number % 2), 120);
	for (unsigned i = 0; i < u->rounds; i++) {
		u->failed += launch(&g, N, &err) != 0;
		for (unsigned r = 0; i % 8 == 7 && r < g.n; r++)
			u->failed += wait_for(&g, r, &err) != 0;
	}
	for (unsigned r = 0; r < g.n; r++)
		u->failed += wait_for(&g, r, &err) != 0;
	drop(&g);
	return NULL;
}

static void read_page(struct hal_page *out)
{
	char pattern[300];
	glob_t found;
	struct err err;

	snprintf(pattern, sizeof(pattern), "%s/tessera-%u-%d-*", hal_page_dir(), getuid(),
		 getpid());
	assert_int_equal(glob(pattern, 0, NULL, &found), 0);
	assert_int_equal(found.gl_pathc, 1);
	if (hal_page_read(found.gl_pathv[0], out, &err))
		fail_msg("%s", err.msg);
	globfree(&found);
}

static void the_page_tells_of_places_and_links(void **state)
{
	enum { BYTES = 1 << 16 };
	struct hal_mem *from = get(6, HAL_MEM_HBM, BYTES), *to = get(7, HAL_MEM_HBM, BYTES);
	struct hal_page *page = malloc(sizeof(*page));
	const struct hal_page_device *d;
	struct hw_link l[HW_MAX_LINKS];
	struct hal_position p;
	int64_t deadline = SOON;
	uint64_t value;
	struct err err;
	unsigned n;

	(void)state;
	assert_non_null(page);
	read_page(page);
	assert_int_equal(page->n_devices, N);
	for (unsigned i = 0; i < N; i++) {
		d = &page->devices[i];
		hal_device_position(dev[i], &p);
		assert_true(d->fabric == p.fabric);
		assert_int_equal(d->chip, i);
		assert_int_equal(d->n_chips, N);
		for (unsigned k = 0; k < 3; k++) {
			assert_int_equal(d->coords[k], p.coords[k]);
			assert_int_equal(d->shape[k], p.shape[k]);
		}
	}
	assert_int_equal(hal_queue_copy(queue(6, HAL_QUEUE_DMA), to, 0, from, 0, BYTES, NULL, 0,
					&value, &err), 0);
	assert_int_equal(hal_queue_wait(queue(6, HAL_QUEUE_DMA), value, SOON, &err), 0);
	assert_int_equal(hal_device_links(dev[6], l, &n, &err), 0);
	d = &page->devices[6];
	do
		read_page(page);
	while (memcmp(d->links, l, sizeof(*l) * n) && clock_ns() < deadline);
	assert_int_equal(n, 3);
	assert_int_equal(d->n_links, 3);
	assert_memory_equal(d->links, l, sizeof(*l) * n);
	/* 6 is at (2, 1), 7 at (3, 1) */
	assert_int_equal(d->links[0].peer, 7);
	assert_true(d->links[0].tx_bytes >= BYTES);
	free(page);
	hal_mem_free(from);
	hal_mem_free(to);
}

/* Which chip was opened first is no matter: the page hears of the others. */
static void a_neighbour_that_comes_later_is_told_of(void **state)
{
	struct hal_page *page = malloc(sizeof(*page));
	struct hal_page_device *d = &page->devices[0];
	int64_t deadline = SOON;
	struct err err;

	(void)state;
	assert_non_null(page);
	close_all(NULL);
	assert_int_equal(hal_create(&(struct hal_options){ .devices = "sim:devices=2,lanes=1,"
				    "hbm=256M" }, &hal, &err), 0);
	assert_int_equal(hal_device_open(hal, 0, &dev[0], &err), 0);
	do
		read_page(page);
	while ((d->n_links != 1 || d->links[0].is != HW_LINK_PEER_OFF) && clock_ns() < deadline);
	assert_int_equal(d->n_links, 1);
	assert_int_equal(d->links[0].is, HW_LINK_PEER_OFF);
	assert_int_equal(hal_device_open(hal, 1, &dev[1], &err), 0);
	do
		read_page(page);
	while (d->links[0].is != HW_LINK_UP && clock_ns() < deadline);
	assert_int_equal(d->links[0].is, HW_LINK_UP);
	close_all(NULL);
	assert_int_equal(open_all(NULL), 0);
	free(page);
}

static void threads_launch_over_devices_they_share(void **state)
{
	struct user u[8] = { 0 };

	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		u[i].number = i;
		u[i].rounds = 100;
		assert_int_equal(pthread_create(&u[i].thread, NULL, use, &u[i]), 0);
	}
	for (unsigned i = 0; i < 8; i++) {
		pthread_join(u[i].thread, NULL);
		assert_int_equal(u[i].failed, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(devices_know_their_places),
		cmocka_unit_test(what_is_not_linked_is_refused_by_name),
		cmocka_unit_test(copies_go_by_links),
		cmocka_unit_test(a_failure_names_a_chip_that_was_never_met),
		cmocka_unit_test(sums_have_the_same_bits_everywhere),
		cmocka_unit_test(a_dead_device_fails_those_that_meet_it),
		cmocka_unit_test(a_queue_reset_fails_those_that_meet_it),
		cmocka_unit_test(what_is_heard_late_breaks_nothing_new),
		cmocka_unit_test(a_failure_is_heard_of_while_the_waiter_is_busy),
		cmocka_unit_test(a_window_that_broke_for_no_failure_is_lent_anew_at_once),
		cmocka_unit_test(an_old_reason_is_not_named),
		cmocka_unit_test(a_fault_whose_record_is_gone_names_its_device),
		cmocka_unit_test(who_knows_why_a_peer_is_reset_fails_for_that),
		cmocka_unit_test(the_page_tells_of_places_and_links),
		cmocka_unit_test(a_neighbour_that_comes_later_is_told_of),
		cmocka_unit_test(threads_launch_over_devices_they_share),
	};

	return cmocka_run_group_tests(tests, open_all, close_all);
}
