/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that run on several devices at once: members that meet by links, launched from many
 * threads, on any devices in any order, with arguments that come later or never, and with devices
 * that fail. The programs are written by hand; what members send each other is checked as
 * numbers that only these members on these devices give. */
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/gangs/launches.h"

/* ---- tests ---- */

static void members_meet_on_any_devices(void **state)
{
	(void)state;
	for (unsigned i = 0; i < N_SETS; i++) {
		struct rt_gang g;

		load(&g, sets[i].n, sets[i].at, 0);
		for (unsigned m = 0; m < g.n; m++)
			assert_int_equal(rt_exe_device(g.exe[m]), sets[i].at[m]);
		for (unsigned round = 0; round < 5; round++)
			run(&g, round);
		rt_free_gang(&g);
	}
}

/* Launches that follow each other without anybody waiting share the mailboxes. */
static void launches_queue_up(void **state)
{
	enum { DEEP = 60 };
	struct launch *l = calloc(DEEP, sizeof(*l));
	struct rt_gang g, other;
	struct err err;

	(void)state;
	assert_non_null(l);
	load(&g, 8, sets[7].at, 0);
	load(&other, 4, sets[4].at, 0);
	for (unsigned i = 0; i < DEEP; i++)
		start(&l[i], i % 3 ? &g : &other, i);
	for (unsigned i = DEEP; i--;) {
		if (check(&l[i], i, &err))
			fail_msg("launch %u: %s", i, err.msg);
		drop(&l[i]);
	}
	rt_free_gang(&g);
	rt_free_gang(&other);
	free(l);
}

enum { THREADS = 8, EACH = 1250, BEHIND = 6 };

struct user {
	pthread_t thread;
	struct rt_gang *gangs;
	unsigned number;
	struct err err;
};

static void *launch_often(void *arg)
{
	struct launch l[BEHIND] = { 0 };
	struct user *u = arg;
	uint64_t seed = u->number + 1;
	int code = 0;

	for (unsigned i = 0; !code && i < EACH + BEHIND; i++) {
		struct launch *at = &l[i % BEHIND];

		if (at->g)
			code = check(at, i - BEHIND, &u->err);
		if (at->g)
			drop(at);
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		if (!code && i < EACH)
			start(at, &u->gangs[(seed >> 33) % N_SETS], i);
	}
	return code ? u : NULL;
}

/* 10,000 launches on sets of devices that overlap: each of them whole, and none waits for
 * ever. */
static void launches_are_in_one_order_everywhere(void **state)
{
	struct rt_gang gangs[N_SETS];
	struct user users[THREADS];
	void *failed;

	(void)state;
	for (unsigned i = 0; i < N_SETS; i++)
		load(&gangs[i], sets[i].n, sets[i].at, i % 2 ? IN_PLACE : 0);
	for (unsigned i = 0; i < THREADS; i++) {
		users[i] = (struct user){ .gangs = gangs, .number = i };
		assert_int_equal(pthread_create(&users[i].thread, NULL, launch_often, &users[i]),
				 0);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(users[i].thread, &failed), 0);
		if (failed)
			fail_msg("thread %u: %s", i, users[i].err.msg);
	}
	for (unsigned i = 0; i < N_SETS; i++)
		rt_free_gang(&gangs[i]);
}

/* Whoever waits for one member's argument holds no place in any queue. */
static void a_pending_argument_defers_all_members(void **state)
{
	struct launch l, next, chained;
	struct rt_buffer *alias, *with;
	struct rt_gang g, pair;
	struct err err;

	(void)state;
	load(&g, 8, sets[7].at, 0);
	load(&pair, 2, sets[2].at, 0);
	give_arguments(&l, &g, 1);
	assert_int_equal(rt_buffer_alias(client, sets[7].at[5], RT_DEVICE, &array, &alias, &err),
			 0);
	with = l.in[5];
	l.in[5] = alias;
	assert_int_equal(execute(&l, NULL, &err), 0);
	assert_true(rt_buffer_is_pending(l.out[0][0]));
	/* what needs nothing of it runs at once, on the same devices */
	for (unsigned i = 0; i < 3; i++) {
		run(&g, i);
		run(&pair, i);
	}
	/* what needs a result waits for it */
	give_arguments(&chained, &pair, 0);
	for (unsigned k = 0; k < 2; k++) {
		rt_buffer_unref(chained.in[k]);
		for (unsigned m = 0; m < 8; m++)
			if (sets[7].at[m] == sets[2].at[k])
				chained.in[k] = l.out[m][0];
		rt_buffer_ref(chained.in[k]);
	}
	assert_int_equal(execute(&chained, NULL, &err), 0);
	start(&next, &g, 2);
	if (check(&next, 2, &err))
		fail_msg("%s", err.msg);
	for (unsigned m = 0; m < 8; m++)
		assert_false(rt_event_is_ready(l.done[m]));
	assert_int_equal(rt_alias_fulfill(alias, with, &err), 0);
	if (check(&l, 1, &err))
		fail_msg("%s", err.msg);
	for (unsigned k = 0; k < 2; k++) {
		float one[ELEMENTS], twice[ELEMENTS];

		if (rt_event_wait(chained.done[k], &err) ||
		    fetch(chained.out[k][0], twice, BYTES, &err) ||
		    fetch(l.out[0][0], one, BYTES, &err))
			fail_msg("%s", err.msg);
		for (unsigned i = 0; i < ELEMENTS; i++)
			assert_true(twice[i] == 2 * one[i]);
	}
	rt_buffer_unref(with);
	drop(&l);
	drop(&next);
	drop(&chained);
	rt_free_gang(&g);
	rt_free_gang(&pair);
}

/* Copies of what a busy device is to compute, to the host and to another device, keep no copy of
 * anything else waiting. */
static void a_copy_waits_for_its_own_content_only(void **state)
{
	float sum[ELEMENTS], other[ELEMENTS];
	struct rt_buffer *with, *alias, *across;
	struct rt_event *late, *early;
	struct gate gate;
	struct rt_gang g;
	struct launch l;
	struct err err;

	(void)state;
	load(&g, 2, sets[1].at, 0);
	run(&g, 0);
	shut(&gate, 0);
	start(&l, &g, 3);
	assert_int_equal(rt_buffer_to_host(l.out[0][0], 0, sum, BYTES, &late, &err), 0);
	assert_int_equal(rt_buffer_copy(l.out[0][0], 3, RT_DEVICE, &across, &err), 0);
	with = argument(2, 5);
	assert_int_equal(rt_buffer_alias(client, 2, RT_DEVICE, &array, &alias, &err), 0);
	assert_int_equal(rt_buffer_to_host(alias, 0, other, BYTES, &early, &err), 0);
	assert_int_equal(rt_alias_fulfill(alias, with, &err), 0);
	for (int64_t end = clock_after(20000000000); !rt_event_is_ready(early);)
		assert_true(clock_ns() < end);
	assert_false(rt_event_is_ready(late));
	assert_true(rt_buffer_is_pending(across));
	open_gate(&gate);
	if (check(&l, 3, &err) || rt_event_wait(late, &err) || rt_event_wait(early, &err))
		fail_msg("%s", err.msg);
	for (unsigned i = 0; i < ELEMENTS; i++) {
		assert_true(sum[i] == number(0, 3, i) + number(1, 3, i));
		assert_true(other[i] == number(2, 5, i));
	}
	assert_int_equal(fetch(across, other, BYTES, &err), 0);
	assert_memory_equal(other, sum, BYTES);
	rt_event_unref(late);
	rt_event_unref(early);
	rt_buffer_unref(alias);
	rt_buffer_unref(with);
	rt_buffer_unref(across);
	drop(&l);
	drop_gate(&gate);
	rt_free_gang(&g);
}

static void an_error_of_one_argument_is_all_results(void **state)
{
	struct rt_buffer *old, *alias;
	struct rt_gang g;
	struct launch l;
	struct err err, why;

	(void)state;
	err_set(&why, ERR_DATA_LOSS, "the disk is gone");
	load(&g, 4, sets[4].at, 0);
	for (unsigned i = 0; i < 8; i++) {
		unsigned later = i / 4, whose = i % 4;

		give_arguments(&l, &g, 0);
		old = l.in[whose];
		if (later)
			assert_int_equal(rt_buffer_alias(client, sets[4].at[whose], RT_DEVICE,
							 &array, &alias, &err), 0);
		else
			assert_int_equal(rt_buffer_of_error(client, sets[4].at[whose], RT_DEVICE,
							    &array, &why, &alias, &err), 0);
		l.in[whose] = alias;
		assert_int_equal(execute(&l, NULL, &err), 0);
		if (later)
			rt_alias_fail(alias, &why);
		for (unsigned m = 0; m < 4; m++) {
			float x[ELEMENTS];

			expect(rt_event_wait(l.done[m], &err), &err, ERR_DATA_LOSS, "the disk");
			expect(fetch(l.out[m][0], x, BYTES, &err), &err, ERR_DATA_LOSS, "the disk");
		}
		rt_buffer_unref(old);
		drop(&l);
		run(&g, 1);
	}
	rt_free_gang(&g);
}

/* Device 5 is reset, or dies as the HAL sees it, while all others wait for its member. */
static void a_device_that_fails_is_named_and_all_run_again(void **state)
{
	struct rt_gang g, pair, apart;
	struct launch l, behind, other;
	struct gate gate;
	struct err err;

	(void)state;
	load(&g, 8, sets[7].at, 0);
	load(&pair, 2, (const unsigned[]){ 5, 4 }, IN_PLACE);
	load(&apart, 2, (const unsigned[]){ 1, 2 }, 0);
	for (unsigned i = 0; i < 12; i++) {
		run(&g, i);
		shut(&gate, 5);
		start(&l, &g, i);
		start(&behind, &g, i);
		start(&other, &pair, i);
		assert_int_equal(hal_queue_reset(client->devices[5].queue, "a test", &err), 0);
		for (unsigned m = 0; m < 8; m++) {
			int code = rt_event_wait(l.done[m], &err);
			float x[ELEMENTS];

			if (sets[7].at[m] == 5)
				expect(code, &err, ERR_ABORTED, "a test");
			else
				expect(code, &err, ERR_UNAVAILABLE, "peer sim:5 failed");
			assert_int_not_equal(fetch(l.out[m][0], x, BYTES, &err), 0);
			assert_int_not_equal(rt_event_wait(behind.done[m], &err), 0);
		}
		assert_int_not_equal(rt_event_wait(other.done[0], &err), 0);
		assert_int_not_equal(rt_event_wait(other.done[1], &err), 0);
		rt_event_wait(gate.done, NULL);
		drop(&l);
		drop(&behind);
		drop(&other);
		drop_gate(&gate);
		run(&apart, i);
		/* in either order, and without waiting */
		start(&l, i % 2 ? &g : &pair, i);
		start(&other, i % 2 ? &pair : &g, i);
		if (check(&other, i, &err) || check(&l, i, &err))
			fail_msg("round %u: %s", i, err.msg);
		drop(&l);
		drop(&other);
	}
	rt_free_gang(&g);
	rt_free_gang(&pair);
	rt_free_gang(&apart);
}

/* Failures of others, as often as a device can see old windows, between two launches of one. */
static void what_others_failed_does_not_come_back(void **state)
{
	struct rt_gang g, pair;
	struct launch l, other;
	struct gate gate;
	struct err err;

	(void)state;
	load(&g, 4, sets[5].at, 0);
	load(&pair, 2, (const unsigned[]){ 3, 4 }, 0);
	for (unsigned times = 0; times < WINDOWS + 2; times++) {
		run(&g, times);
		/* one of its own: half of its counts are raised */
		shut(&gate, 3);
		start(&l, &g, times);
		assert_int_equal(hal_queue_reset(client->devices[3].queue, "a test", &err), 0);
		for (unsigned m = 0; m < 4; m++)
			assert_int_not_equal(rt_event_wait(l.done[m], &err), 0);
		drop(&l);
		drop_gate(&gate);
		for (unsigned i = 0; i < times; i++) {
			shut(&gate, 3);
			start(&other, &pair, i);
			assert_int_equal(hal_queue_reset(client->devices[3].queue, "a test", &err),
					 0);
			assert_int_not_equal(rt_event_wait(other.done[1], &err), 0);
			drop(&other);
			drop_gate(&gate);
		}
		run(&g, times);
	}
	rt_free_gang(&g);
	rt_free_gang(&pair);
}

/* A device that is poisoned, or has no room, keeps all members from starting. */
static void nothing_starts_unless_all_can(void **state)
{
	static const struct rt_shape large = { .elem = ELEM_U8, .rank = 1, .dim = { 1 << 20 } };
	struct rt_buffer *full[128];
	struct rt_gang g;
	struct launch l;
	unsigned n = 0;
	struct err err;

	(void)state;
	load(&g, 8, sets[0].at, 0);
	run(&g, 0);
	give_arguments(&l, &g, 0);
	for (uint64_t bytes = 1 << 20; bytes >= 64; bytes /= 2) {
		struct rt_shape some = large;

		some.dim[0] = (int64_t)bytes;
		while (n < 128 && !rt_buffer_uninitialized(client, 6, RT_DEVICE, &some, &full[n],
							   &err))
			n++;
	}
	assert_in_range(n, 20, 127);
	expect(execute(&l, NULL, &err), &err, ERR_RESOURCE_EXHAUSTED, "sim:6");
	for (unsigned m = 0; m < 8; m++)
		assert_false(rt_buffer_is_deleted(l.in[m]));
	while (n)
		rt_buffer_unref(full[--n]);
	assert_int_equal(execute(&l, NULL, &err), 0);
	if (check(&l, 0, &err))
		fail_msg("%s", err.msg);
	drop(&l);
	rt_free_gang(&g);
}

static void arguments_are_donated_on_each_device(void **state)
{
	const bool keep = true;
	struct rt_gang g;
	struct launch l;
	struct err err;
	uint64_t before, after;

	(void)state;
	load(&g, 3, sets[3].at, IN_PLACE);
	for (unsigned i = 0; i < 2; i++) {
		give_arguments(&l, &g, i);
		assert_int_equal(rt_buffer_address(l.in[1], &before, &err), 0);
		assert_int_equal(execute(&l, i ? &keep : NULL, &err), 0);
		if (check(&l, i, &err))
			fail_msg("%s", err.msg);
		assert_int_equal(rt_buffer_address(l.out[1][0], &after, &err), 0);
		assert_int_equal(before == after, !i);
		for (unsigned m = 0; m < 3; m++) {
			float x[ELEMENTS];

			assert_int_equal(rt_buffer_is_deleted(l.in[m]), !i);
			if (!i)
				continue;
			assert_int_equal(fetch(l.in[m], x, BYTES, &err), 0);
			assert_true(x[8] == number(sets[3].at[m], i, 8));
		}
		drop(&l);
	}
	/* what one member refuses, none starts */
	give_arguments(&l, &g, 0);
	rt_buffer_delete(l.in[2]);
	expect(execute(&l, NULL, &err), &err, ERR_INVALID_ARGUMENT, "deleted");
	assert_false(rt_buffer_is_deleted(l.in[0]));
	assert_false(rt_buffer_is_deleted(l.in[1]));
	for (unsigned m = 0; m < 3; m++)
		rt_buffer_unref(l.in[m]);
	rt_free_gang(&g);
}

static uint64_t in_use(unsigned device)
{
	struct hal_mem_stats s;

	rt_memory_stats(client, device, &s);
	return s.bytes_in_use;
}

/* Whoever lets go of everything while launches are queued leaves nothing behind, and what
 * others write to is there until they have ended. */
static void executables_go_when_their_last_run_is_over(void **state)
{
	uint64_t before[N];
	struct rt_gang g, g2;
	struct launch l[8];
	struct gate gate;
	struct err err;

	(void)state;
	shut(&gate, 7);
	open_gate(&gate);
	drop_gate(&gate);
	for (unsigned i = 0; i < N; i++)
		before[i] = in_use(i);
	for (unsigned turn = 0; turn < 6; turn++) {
		struct rt_event *last[N];

		load(&g, 8, sets[turn % 2 ? 0 : 7].at, 0);
		load(&g2, 2, (const unsigned[]){ 7, 3 }, IN_PLACE);
		shut(&gate, turn);
		for (unsigned i = 0; i < 8; i++)
			start(&l[i], i % 2 ? &g2 : &g, i);
		for (unsigned m = 0; m < 8; m++) {
			last[m] = l[6].done[m];
			rt_event_ref(last[m]);
		}
		for (unsigned i = 0; i < 8; i++)
			drop(&l[i]);
		rt_free_gang(&g);
		rt_free_gang(&g2);
		if (turn % 3)
			open_gate(&gate);
		else
			hal_queue_reset(client->devices[turn].queue, "a test", &err);
		for (unsigned m = 0; m < 8; m++) {
			assert_int_equal(rt_event_wait(last[m], &err) != 0, turn % 3 == 0);
			rt_event_unref(last[m]);
		}
		drop_gate(&gate);
	}
	for (unsigned i = 0; i < N; i++) {
		int64_t deadline = clock_after(20000000000ll);

		while (in_use(i) > before[i] && clock_ns() < deadline)
			sched_yield();
		assert_int_equal(in_use(i), before[i]);
	}
}

static void members_that_meet_nobody_may_run_alone(void **state)
{
	struct rt_buffer *out[2];
	struct rt_event *done;
	struct rt_gang g, meeting;
	struct launch l;
	struct err err;
	uint32_t who;

	(void)state;
	load(&g, 4, sets[4].at, ALONE);
	load(&meeting, 4, sets[4].at, 0);
	start(&l, &g, 0);
	for (unsigned m = 0; m < 4; m++) {
		assert_int_equal(fetch(l.out[m][1], &who, 4, &err), 0);
		assert_int_equal(who, m);
		assert_int_equal(rt_execute(g.exe[m], &l.out[m][0], 1, NULL, out, &done, &err), 0);
		assert_int_equal(fetch(out[1], &who, 4, &err), 0);
		assert_int_equal(who, m);
		rt_buffer_unref(out[0]);
		rt_buffer_unref(out[1]);
		rt_event_unref(done);
	}
	drop(&l);
	give_arguments(&l, &meeting, 0);
	/* all or one */
	expect(rt_execute_gang(&(struct rt_gang){ .members = meeting.members, .n = 2,
				.exe = meeting.exe },
			       (struct rt_buffer *const *[]){ &l.in[0], &l.in[1] }, 1, NULL,
			       (struct rt_buffer **[]){ out, out }, &done, &err), &err,
	       ERR_INVALID_ARGUMENT, "meets others on 4 devices");
	/* an argument on another member's device, by name */
	{
		struct rt_buffer *first = l.in[0];

		l.in[0] = l.in[1];
		l.in[1] = first;
		expect(execute(&l, NULL, &err), &err, ERR_INVALID_ARGUMENT,
		       "member 0 of 4: argument 0 lies on device 1");
	}
	for (unsigned m = 0; m < 4; m++)
		rt_buffer_unref(l.in[m]);
	rt_free_gang(&g);
	rt_free_gang(&meeting);
}

static void programs_are_loaded_for_as_many_as_they_are_for(void **state)
{
	static const unsigned at[] = { 4, 1, 6 };
	struct rt_program *p = make_program(3, at, 0);
	uint8_t options[256];
	struct rt_exe *x;
	struct rt_gang g;
	struct err err;
	size_t n;

	(void)state;
	n = options_for(at, 2, options);
	expect(rt_load_gang(client, p, options, n, &g, &err), &err, ERR_INVALID_ARGUMENT,
	       "compiled for 1 replicas of 3 partitions; the options that it is loaded with ask "
	       "for 1 of 2");
	expect(rt_load(client, p, NULL, 0, &x, &err), &err, ERR_INVALID_ARGUMENT, "3 devices");
	/* on others than it was made with */
	n = options_for(sets[3].at, 3, options);
	assert_int_equal(rt_load_gang(client, p, options, n, &g, &err), 0);
	assert_int_equal(rt_exe_device(g.exe[0]), 5);
	run(&g, 0);
	rt_free_gang(&g);
	rt_program_unref(p);
}

static void a_child_of_fork_lets_go(void **state)
{
	struct rt_gang g;
	struct launch l;
	struct gate gate;
	struct err err;
	int status;
	pid_t child;

	(void)state;
	load(&g, 8, sets[0].at, 0);
	shut(&gate, 2);
	start(&l, &g, 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		bool ok = rt_client_check(client, NULL) == ERR_FAILED_PRECONDITION &&
			  rt_event_wait(l.done[3], NULL) == ERR_FAILED_PRECONDITION;

		rt_buffer_unref(l.out[0][0]);
		rt_free_gang(&g);
		_exit(ok ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
	open_gate(&gate);
	if (check(&l, 0, &err))
		fail_msg("%s", err.msg);
	drop(&l);
	drop_gate(&gate);
	run(&g, 1);
	rt_free_gang(&g);
}

/* What all links carried by now. */
static uint64_t carried(void)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < N; i++) {
		struct hw_link l[HW_MAX_LINKS];
		struct err err;
		unsigned n;

		assert_int_equal(hal_device_links(client->devices[i].hal, l, &n, &err), 0);
		for (unsigned k = 0; k < n; k++)
			sum += l[k].tx_bytes;
	}
	return sum;
}

static void copies_between_devices_go_by_links(void **state)
{
	static const struct { enum rt_memory_kind from, to; unsigned a, b, hops; } cases[] = {
		{ RT_DEVICE, RT_DEVICE, 0, 1, 1 }, { RT_DEVICE, RT_DEVICE, 2, 5, 2 },
		{ RT_PINNED_HOST, RT_DEVICE, 7, 0, 2 }, { RT_DEVICE, RT_DEVICE, 3, 3, 0 },
		{ RT_DEVICE, RT_PINNED_HOST, 3, 4, 0 },
	};
	struct rt_shape shape = { .elem = ELEM_U8, .rank = 1, .dim = { 3 << 20 } };
	uint8_t *in = malloc(3 << 20), *out = malloc(3 << 20);
	uint64_t before;
	struct rt_buffer *a, *b, *alias;
	struct err err;

	(void)state;
	assert_true(in && out);
	for (unsigned i = 0; i < 3 << 20; i++)
		in[i] = (uint8_t)(i * 7 + i / 251);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(rt_buffer_from_host(client, cases[i].a, cases[i].from, &shape, in,
						     NULL, &a, &err), 0);
		before = carried();
		if (rt_buffer_copy(a, cases[i].b, cases[i].to, &b, &err) ||
		    fetch(b, out, 3 << 20, &err))
			fail_msg("%s", err.msg);
		assert_memory_equal(in, out, 3 << 20);
		assert_int_equal(carried() - before, cases[i].hops * (3ull << 20));
		rt_buffer_unref(b);
		/* content that comes later */
		assert_int_equal(rt_buffer_alias(client, cases[i].a, cases[i].from, &shape, &alias,
						 &err), 0);
		assert_int_equal(rt_buffer_copy(alias, cases[i].b, cases[i].to, &b, &err), 0);
		memset(out, 0, 3 << 20);
		before = carried();
		assert_int_equal(rt_alias_fulfill(alias, a, &err), 0);
		if (fetch(b, out, 3 << 20, &err))
			fail_msg("%s", err.msg);
		assert_memory_equal(in, out, 3 << 20);
		assert_int_equal(carried() - before, cases[i].hops * (3ull << 20));
		rt_buffer_unref(alias);
		rt_buffer_unref(a);
		rt_buffer_unref(b);
	}
	/* empty */
	shape.dim[0] = 0;
	assert_int_equal(rt_buffer_from_host(client, 0, RT_DEVICE, &shape, in, NULL, &a, &err), 0);
	assert_int_equal(rt_buffer_copy(a, 1, RT_DEVICE, &b, &err), 0);
	rt_buffer_unref(a);
	rt_buffer_unref(b);
	free(in);
	free(out);
}

static atomic_bool over;

static void *copy_often(void *arg)
{
	static struct err err;

	(void)arg;
	while (!atomic_load(&over)) {
		struct rt_buffer *a = argument(3, 1), *b;
		float x[ELEMENTS];

		if (rt_buffer_copy(a, 5, RT_DEVICE, &b, &err))
			return &err;
		if (fetch(b, x, BYTES, &err) || x[5] != number(3, 1, 5))
			return &err;
		rt_buffer_unref(a);
		rt_buffer_unref(b);
	}
	return NULL;
}

/* A window that breaks under a copy is not the copy's fault. */
static void copies_outlive_programs_that_fail(void **state)
{
	struct rt_gang pair;
	struct launch l;
	struct gate gate;
	pthread_t copier;
	struct err err;
	void *failed;

	(void)state;
	atomic_store(&over, false);
	load(&pair, 2, (const unsigned[]){ 3, 5 }, 0);
	assert_int_equal(pthread_create(&copier, NULL, copy_often, NULL), 0);
	for (unsigned i = 0; i < 200; i++) {
		shut(&gate, 5);
		start(&l, &pair, i);
		assert_int_equal(hal_queue_reset(client->devices[5].queue, "a test", &err), 0);
		assert_int_not_equal(rt_event_wait(l.done[0], &err), 0);
		drop(&l);
		drop_gate(&gate);
	}
	run(&pair, 1);
	atomic_store(&over, true);
	assert_int_equal(pthread_join(copier, &failed), 0);
	if (failed)
		fail_msg("%s", ((struct err *)failed)->msg);
	rt_free_gang(&pair);
}

/* Poison stays, so this is the last one. */
static void a_poisoned_device_keeps_all_from_starting(void **state)
{
	struct rt_gang g, without;
	struct launch l;
	struct err err, why;

	(void)state;
	load(&g, 8, sets[0].at, 0);
	load(&without, 4, sets[4].at, 0);
	err_set(&why, ERR_INTERNAL, "poison of a test");
	rt_device_poison(client, 6, &why);
	give_arguments(&l, &g, 0);
	expect(execute(&l, NULL, &err), &err, ERR_INTERNAL, "member 6, on device 6: poison");
	for (unsigned m = 0; m < 8; m++)
		rt_buffer_unref(l.in[m]);
	run(&without, 1);
	rt_free_gang(&g);
	rt_free_gang(&without);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_meet_on_any_devices),
		cmocka_unit_test(launches_queue_up),
		cmocka_unit_test(launches_are_in_one_order_everywhere),
		cmocka_unit_test(a_pending_argument_defers_all_members),
		cmocka_unit_test(a_copy_waits_for_its_own_content_only),
		cmocka_unit_test(an_error_of_one_argument_is_all_results),
		cmocka_unit_test(a_device_that_fails_is_named_and_all_run_again),
		cmocka_unit_test(what_others_failed_does_not_come_back),
		cmocka_unit_test(nothing_starts_unless_all_can),
		cmocka_unit_test(arguments_are_donated_on_each_device),
		cmocka_unit_test(executables_go_when_their_last_run_is_over),
		cmocka_unit_test(members_that_meet_nobody_may_run_alone),
		cmocka_unit_test(programs_are_loaded_for_as_many_as_they_are_for),
		cmocka_unit_test(a_child_of_fork_lets_go),
		cmocka_unit_test(copies_between_devices_go_by_links),
		cmocka_unit_test(copies_outlive_programs_that_fail),
		cmocka_unit_test(a_poisoned_device_keeps_all_from_starting),
	};

	return cmocka_run_group_tests(tests, start_devices, stop_devices);
}
