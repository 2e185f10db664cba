/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices that fail in the middle of launches by several members: before one of them is submitted,
 * while they wait for each other, again and again at any moment. Each launch ends soon, with a
 * right result or an error that names the device; what comes next runs. All members of a launch
 * that fails have heard of it a second after the device was struck.
 */
#include <unistd.h>

#include "tests/unit/gangs/launches.h"

/* ---- what happens in the middle of a launch ---- */

static struct {
	_Atomic(struct hal_queue *) before;	/* work is submitted to it; NULL: nowhere */
	atomic_uint behind;	/* so many addresses are asked for; 0: nowhere */
	unsigned device;	/* what happens to it: */
	bool dies;		/* or its queue is reset */
} blow;

int __real_hal_queue_execute(struct hal_queue *q, const struct hal_launch *l, uint64_t *value,
			     struct err *err);
int __wrap_hal_queue_execute(struct hal_queue *q, const struct hal_launch *l, uint64_t *value,
			     struct err *err);
int __real_hal_peer_va(struct hal_device *dev, const struct hal_mem *mem, uint64_t *va,
		       struct err *err);
int __wrap_hal_peer_va(struct hal_device *dev, const struct hal_mem *mem, uint64_t *va,
		       struct err *err);

/* The device is dead, and the HAL knows it, when this returns. */
static int kill_device(unsigned device, struct err *err)
{
	struct hal_device *hal = client->devices[device].hal;
	int code = hal_device_inject(hal, HW_INJECT_FATAL, 0, err);

	while (!code && !hal_device_error(hal, NULL))
		hal_queue_wait(client->devices[device].queue, UINT64_MAX, 0, NULL);
	return code;
}

static void strike_once(void)
{
	struct err err;
	int code = blow.dies ? kill_device(blow.device, &err) :
		   hal_queue_reset(client->devices[blow.device].queue, "a test", &err);

	if (code)
		fail_msg("%s", err.msg);
}

int __wrap_hal_queue_execute(struct hal_queue *q, const struct hal_launch *l, uint64_t *value,
			     struct err *err)
{
	struct hal_queue *want = q;

	if (atomic_compare_exchange_strong(&blow.before, &want, NULL))
		strike_once();
	return __real_hal_queue_execute(q, l, value, err);
}

int __wrap_hal_peer_va(struct hal_device *dev, const struct hal_mem *mem, uint64_t *va,
		       struct err *err)
{
	int code = __real_hal_peer_va(dev, mem, va, err);

	if (atomic_load(&blow.behind) && atomic_fetch_sub(&blow.behind, 1) == 1)
		strike_once();
	return code;
}

static int setup(void **state)
{
	setenv("TESSERA_CRASH_DUMPS", "0", 1);
	return start_devices(state);
}

/* Device 5 dies when the members before it were submitted. None of them has begun as far as the
 * caller can see: there is one error, and there are no results. */
static void a_launch_that_fails_in_its_middle_leaves_nothing(void **state)
{
	struct rt_gang g;
	struct launch l;
	struct err err;

	(void)state;
	for (unsigned i = 0; i < N_SETS; i++) {
		unsigned last = sets[i].at[sets[i].n - 1];

		load(&g, sets[i].n, sets[i].at, i % 2 ? IN_PLACE : 0);
		run(&g, i);
		give_arguments(&l, &g, i);
		blow.device = last;
		blow.dies = true;
		atomic_store(&blow.before, client->devices[last].queue);
		expect(execute(&l, NULL, &err), &err, ERR_UNAVAILABLE, "died");
		assert_null(atomic_load(&blow.before));
		for (unsigned m = 0; m < g.n; m++) {
			assert_null(l.out[m][0]);
			assert_null(l.out[m][1]);
			assert_null(l.done[m]);
		}
		drop(&l);
		assert_int_equal(hal_device_reset(client->devices[last].hal, &err), 0);
		run(&g, i);
		rt_free_gang(&g);
	}
}

/* Device 0 is reset since device 5, which it was to meet, has died. What device 3 waits for on
 * device 0 fails with that: by the name of device 5. */
static void others_hear_of_the_device_that_was_missing(void **state)
{
	struct rt_gang before, g;
	struct launch first, l;
	struct gate gate;
	struct err err;

	(void)state;
	load(&before, 2, (const unsigned[]){ 3, 0 }, 0);
	load(&g, 2, (const unsigned[]){ 5, 0 }, 0);
	for (unsigned i = 0; i < 3; i++) {
		run(&before, i);
		run(&g, i);
		shut(&gate, 0);
		start(&first, &before, i);
		give_arguments(&l, &g, i);
		blow.device = 5;
		blow.dies = true;
		atomic_store(&blow.before, client->devices[5].queue);
		expect(execute(&l, NULL, &err), &err, ERR_UNAVAILABLE, "sim:5 died");
		for (unsigned m = 0; m < 2; m++)
			expect(rt_event_wait(first.done[m], &err), &err, ERR_ABORTED,
			       "sim:5 died");
		assert_int_not_equal(rt_event_wait(gate.done, &err), 0);
		drop(&first);
		drop(&l);
		drop_gate(&gate);
		run(&before, i);
		assert_int_equal(hal_device_reset(client->devices[5].hal, &err), 0);
		run(&g, i);
	}
	rt_free_gang(&before);
	rt_free_gang(&g);
}

/* So many members have sent their part to member 0 of a gang since its mailbox was last cleared. A
 * device raises the semaphore at once, so it may be read meanwhile. */
static void await_arrival(const struct rt_gang *g, uint64_t times)
{
	const uint8_t *box = hal_mem_host(g->exe[0]->meeting->at[0].mailbox);

	assert_non_null(box);
	while (__atomic_load_n((const uint64_t *)(box + ARRIVED), __ATOMIC_ACQUIRE) < times)
		;
}

/*
 * Device 0 has sent its part of the first launch to device 5, whose queue is then reset, when the
 * addresses for the second one have been asked for: what came must not count as that of the second.
 * Where that is found before anything is submitted the launch begins anew, else it fails.
 */
static void what_came_for_a_launch_that_failed_is_not_the_next_ones(void **state)
{
	struct rt_gang g;
	struct launch first, l;
	struct gate gate;
	struct err err;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		load(&g, 2, (const unsigned[]){ 5, 0 }, 0);
		shut(&gate, 5);
		start(&first, &g, 3);
		await_arrival(&g, 1);
		give_arguments(&l, &g, 4);
		blow.device = 5;
		blow.dies = false;
		if (i)
			atomic_store(&blow.before, client->devices[0].queue);
		else
			atomic_store(&blow.behind, 2);
		if (i) {
			expect(execute(&l, NULL, &err), &err, ERR_ABORTED,
			       "failed before gang was launched");
			assert_non_null(strstr(err.msg, "sim:5"));
		} else if (execute(&l, NULL, &err) || check(&l, 4, &err)) {
			fail_msg("%s", err.msg);
		}
		assert_false(atomic_load(&blow.behind) || atomic_load(&blow.before));
		expect(rt_event_wait(first.done[0], &err), &err, ERR_ABORTED, "a test");
		assert_int_not_equal(rt_event_wait(first.done[1], &err), 0);
		assert_non_null(strstr(err.msg, "sim:5"));
		assert_non_null(strstr(err.msg, "a test"));
		rt_event_wait(gate.done, NULL);
		drop(&first);
		drop(&l);
		drop_gate(&gate);
		run(&g, 5);
		rt_free_gang(&g);
	}
}

/* ---- devices that fail again and again under launches of many threads ---- */

enum { USERS = 4, BEHIND = 3, MOST_FAULTS = 1 << 20, SLOW = 10, CALM = 8 };
#define HEARD_NS 1000000000ll	/* from a fault to the failure of the last member */
/* How much slower everything is in a sanitizer's build, or in an emulator. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZER_FACTOR 10
#else
#define SANITIZER_FACTOR 1
#endif
#define EMULATOR_FACTOR 10
enum fault { RESET_QUEUE, RESET_DEVICE, FATAL };

static struct {
	pthread_rwlock_t lock;	/* read: by who launches; written: in a calm */
	unsigned calm;		/* faults before the last one: nothing was under way then */
	uint8_t victim[MOST_FAULTS], kind[MOST_FAULTS];
	int64_t at[MOST_FAULTS];	/* before it was struck */
	atomic_uint n_faults, n_right, n_failed, n_lost;
	atomic_bool is_over;
	struct rt_gang gangs[N_SETS];
} storm;

struct user {
	pthread_t thread;
	uint64_t seed;
	int64_t slowest;	/* launch, from its arguments to its end */
	int64_t latest;		/* failure, from the fault to when the last member heard */
	bool has_failed;
	struct err err;
};

struct flight {
	struct launch l;
	unsigned round, first;	/* storm.calm */
	int64_t began, asked;	/* asked: with all its arguments */
	struct rt_callback callback[N];
	_Atomic int64_t ended;	/* of the member that was last so far */
	atomic_uint n_ended;
};

static unsigned draw(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(*seed >> 33);
}

/* Whether an error names a device that failed since the last calm. */
static bool names_one(const struct flight *f, const struct err *err)
{
	unsigned last = atomic_load(&storm.n_faults);
	char name[16];

	for (unsigned i = f->first; i < last; i++) {
		snprintf(name, sizeof(name), "sim:%u", storm.victim[i]);
		if (strstr(err->msg, name))
			return true;
	}
	return false;
}

/*
 * How long after the fault its end was. Of several faults of a device that the error names it is
 * due to the first that may be it, and one of before it was asked for it can hear of no sooner. So
 * what a launch waits for others that are before it counts, too: they end as soon.
 */
static int64_t heard_after(struct flight *f, const struct err *err)
{
	unsigned last = atomic_load(&storm.n_faults);
	int64_t ended = atomic_load(&f->ended), from = ended;
	char name[16];

	for (unsigned i = f->first; i < last; i++) {
		snprintf(name, sizeof(name), "sim:%u", storm.victim[i]);
		if (strstr(err->msg, name) && storm.at[i] < from)
			from = storm.at[i];
	}
	return ended - (from > f->asked ? from : f->asked);
}

/* Whether the memory of one of its devices may be lost: arguments and results, too. */
static bool may_be_lost(const struct flight *f)
{
	unsigned last = atomic_load(&storm.n_faults);

	for (unsigned i = f->first; i < last; i++)
		for (unsigned m = 0; m < f->l.g->n; m++)
			if (storm.kind[i] == RESET_DEVICE &&
			    rt_exe_device(f->l.g->exe[m]) == storm.victim[i])
				return true;
	return false;
}

static void note_end(void *arg, const struct err *why)
{
	struct flight *f = arg;
	int64_t now = clock_ns(), last = atomic_load(&f->ended);

	(void)why;
	while (last < now && !atomic_compare_exchange_weak(&f->ended, &last, now))
		;
	atomic_fetch_add(&f->n_ended, 1);
}

/* Arguments and the launch; *has_begun: its end is due. */
static int begin(struct flight *f, const struct rt_gang *g, unsigned round, bool *has_begun,
		 struct err *err)
{
	float x[ELEMENTS];
	int code = 0;

	*f = (struct flight){ .round = round, .began = clock_ns() };
	f->l.g = g;
	f->first = storm.calm;
	for (unsigned m = 0; !code && m < g->n; m++) {
		unsigned device = rt_exe_device(g->exe[m]);

		for (unsigned i = 0; i < ELEMENTS; i++)
			x[i] = number(device, round, i);
		code = rt_buffer_from_host(client, device, RT_DEVICE, &array, x, NULL,
					   &f->l.in[m], err);
	}
	f->asked = clock_ns();
	if (!code)
		code = execute(&f->l, NULL, err);
	*has_begun = !code;
	for (unsigned m = 0; !code && m < g->n; m++)
		rt_event_on_ready(f->l.done[m], &f->callback[m], note_end, f);
	if (code)
		note_end(f, err);
	return code;
}

/* Whether it ended as it should, by `code` and *err or in the end that is due. */
static bool end(struct user *u, struct flight *f, bool has_begun, int code, struct err *err)
{
	int64_t took, heard;
	bool is_ok = true;

	for (unsigned m = 0; has_begun && m < f->l.g->n; m++)
		rt_event_wait(f->l.done[m], NULL);
	/* Whoever waits may hear before the callback. */
	while (atomic_load(&f->n_ended) < (has_begun ? f->l.g->n : 1))
		sched_yield();
	took = clock_ns() - f->began;
	u->slowest = took > u->slowest ? took : u->slowest;
	if (has_begun)
		code = check(&f->l, f->round, err);
	if (!code)
		atomic_fetch_add(&storm.n_right, 1);
	else if (names_one(f, err))
		atomic_fetch_add(&storm.n_failed, 1);
	else if (code == ERR_INTERNAL && may_be_lost(f))
		atomic_fetch_add(&storm.n_lost, 1);
	else
		is_ok = false;
	heard = code ? heard_after(f, err) : 0;
	u->latest = heard > u->latest ? heard : u->latest;
	drop(&f->l);
	return is_ok;
}

static void *launch_in_a_storm(void *arg)
{
	struct user *u = arg;
	struct flight f[BEHIND];
	struct err err[BEHIND];
	bool has_begun[BEHIND];
	int code[BEHIND];

	for (unsigned round = 0; !u->has_failed && !atomic_load(&storm.is_over); round++) {
		pthread_rwlock_rdlock(&storm.lock);
		for (unsigned i = 0; i < BEHIND; i++)
			code[i] = begin(&f[i], &storm.gangs[draw(&u->seed) % N_SETS], round + i,
					&has_begun[i], &err[i]);
		for (unsigned i = 0; i < BEHIND; i++)
			if (!end(u, &f[i], has_begun[i], code[i], &err[i]) && !u->has_failed) {
				u->err = err[i];
				u->has_failed = true;
			}
		pthread_rwlock_unlock(&storm.lock);
	}
	return NULL;
}

static int strike(unsigned device, enum fault kind, struct err *err)
{
	struct rt_device *d = &client->devices[device];
	unsigned n = atomic_load(&storm.n_faults);
	char why[40];
	int code;

	storm.victim[n] = (uint8_t)device;
	storm.kind[n] = (uint8_t)kind;
	storm.at[n] = clock_ns();
	atomic_store(&storm.n_faults, n + 1);
	snprintf(why, sizeof(why), "a storm at sim:%u", device);
	if (kind == FATAL)
		code = kill_device(device, err);
	else
		code = kind == RESET_QUEUE ? hal_queue_reset(d->queue, why, err) :
					     hal_device_reset(d->hal, err);
	if (code || (kind != FATAL && n % CALM))
		return code;
	pthread_rwlock_wrlock(&storm.lock);
	if (kind == FATAL)
		code = hal_device_reset(d->hal, err);
	storm.calm = n + 1;
	pthread_rwlock_unlock(&storm.lock);
	return code;
}

static void weather_a_storm(enum fault first, enum fault last)
{
	const char *text = getenv("TESSERA_STORM_SECONDS");
	int64_t over = clock_after((text ? atoi(text) : 2) * 1000000000ll), slowest = 0, latest = 0;
	int64_t factor = SANITIZER_FACTOR * (getenv("TESSERA_EMULATOR") ? EMULATOR_FACTOR : 1);
	struct user users[USERS];
	pthread_rwlockattr_t a;
	uint64_t seed = first + 1;
	struct err err = { 0 };
	int code = 0;

	memset(&storm, 0, sizeof(storm));
	pthread_rwlockattr_init(&a);
	pthread_rwlockattr_setkind_np(&a, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	assert_int_equal(pthread_rwlock_init(&storm.lock, &a), 0);
	for (unsigned i = 0; i < N_SETS; i++)
		load(&storm.gangs[i], sets[i].n, sets[i].at, i % 2 ? IN_PLACE : 0);
	for (unsigned i = 0; i < USERS; i++) {
		users[i] = (struct user){ .seed = i };
		assert_int_equal(pthread_create(&users[i].thread, NULL, launch_in_a_storm,
						&users[i]), 0);
	}
	while (!code && clock_ns() < over && atomic_load(&storm.n_faults) < MOST_FAULTS) {
		unsigned ended = atomic_load(&storm.n_right) + draw(&seed) % 24;

		while (atomic_load(&storm.n_right) < ended && clock_ns() < over)
			sched_yield();
		code = strike(draw(&seed) % N, first + draw(&seed) % (last - first + 1), &err);
	}
	atomic_store(&storm.is_over, true);
	for (unsigned i = 0; i < USERS; i++) {
		pthread_join(users[i].thread, NULL);
		slowest = users[i].slowest > slowest ? users[i].slowest : slowest;
		latest = users[i].latest > latest ? users[i].latest : latest;
	}
	print_message("%u faults: %u right, %u failed, %u of lost memory; slowest %lld ms, heard "
		      "of within %lld ms\n", atomic_load(&storm.n_faults),
		      atomic_load(&storm.n_right), atomic_load(&storm.n_failed),
		      atomic_load(&storm.n_lost), (long long)(slowest / 1000000),
		      (long long)(latest / 1000000));
	for (unsigned i = 0; i < USERS; i++)
		if (users[i].has_failed)
			fail_msg("thread %u: %s", i, users[i].err.msg);
	if (code)
		fail_msg("%s", err.msg);
	assert_in_range(slowest, 0, SLOW * 1000000000ll);
	assert_true(atomic_load(&storm.n_failed));
	assert_in_range(latest, 0, factor * HEARD_NS);
	for (unsigned i = 0; i < N_SETS; i++) {
		run(&storm.gangs[i], i);
		rt_free_gang(&storm.gangs[i]);
	}
	pthread_rwlock_destroy(&storm.lock);
	pthread_rwlockattr_destroy(&a);
}

/* Memory holds, so nothing may be wrong. */
static void queues_are_reset_under_many_launches(void **state)
{
	(void)state;
	weather_a_storm(RESET_QUEUE, RESET_QUEUE);
}

static void devices_die_under_many_launches(void **state)
{
	(void)state;
	weather_a_storm(FATAL, FATAL);
}

static void devices_are_reset_and_die_under_many_launches(void **state)
{
	(void)state;
	weather_a_storm(RESET_QUEUE, FATAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_launch_that_fails_in_its_middle_leaves_nothing),
		cmocka_unit_test(others_hear_of_the_device_that_was_missing),
		cmocka_unit_test(what_came_for_a_launch_that_failed_is_not_the_next_ones),
		cmocka_unit_test(queues_are_reset_under_many_launches),
		cmocka_unit_test(devices_die_under_many_launches),
		cmocka_unit_test(devices_are_reset_and_die_under_many_launches),
	};

	return cmocka_run_group_tests(tests, setup, stop_devices);
}
