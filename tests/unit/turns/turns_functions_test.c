/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of one card: fair turns on its engines, and nothing else in common. */
#include "tests/unit/turns/turns.h"

#define FUNCTIONS 3u
#define AHEAD 12u
#define COUNTER 4096u		/* in HBM */

static struct sim *sim;
static struct t_sim f[FUNCTIONS];
static struct t_program p;

static int setup(void **state)
{
	struct sim_options o = { .hbm_bytes = FUNCTIONS * T_HBM_BYTES, .lanes = 1,
				 .n_functions = FUNCTIONS };
	struct err err = { 0 };

	(void)state;
	if (sim_create(&o, &sim, &err))
		fail_msg("%s", err.msg);
	for (unsigned i = 0; i < FUNCTIONS; i++)
		t_attach(&f[i], sim_function(sim, 0, i));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	sim_destroy(sim);
	for (unsigned i = 0; i < FUNCTIONS; i++)
		t_close(&f[i]);
	return 0;
}

static uint64_t counted_at(const struct t_sim *t, uint64_t at)
{
	return __atomic_load_n((const uint64_t *)(t->hbm + at), __ATOMIC_ACQUIRE);
}

static uint64_t counted(const struct t_sim *t)
{
	return counted_at(t, COUNTER);
}

/* Counts up in HBM to `n`, or for ever with 0. */
static uint32_t load_count(struct t_sim *t, uint64_t n)
{
	uint32_t id;

	turns_count(&p, T_HBM_VA + COUNTER, n);
	assert_int_equal(t_load(t, &p, &id), 0);
	return id;
}

static void start(struct t_sim *t, uint32_t id, uint64_t limit_ns)
{
	p.limit_ns = limit_ns;
	t_put(t, &t->work, t_execute(t, &p, id));
	t_ring_bell(t, &t->work);
}

/* A run that counts until it is stopped; it has begun. */
static void start_endless(struct t_sim *t)
{
	int64_t deadline = clock_after(T_ANSWER_NS);

	__atomic_store_n((uint64_t *)(t->hbm + COUNTER), 0, __ATOMIC_RELEASE);
	start(t, load_count(t, 0), 0);
	while (!counted(t))
		if (clock_ns() > deadline)
			fail_msg("a program does not begin");
}

static void stop(struct t_sim *t)
{
	assert_int_equal(t_reset(t, &t->work), 0);
	assert_int_equal(t_take(t, &t->work), HW_ST_RESET);
}

static uint64_t busy_ns(struct t_sim *t, bool of_dma)
{
	struct hw_telemetry told;

	assert_int_equal(t_admin(t, HW_LOG_PAGE, HW_LOG_TELEMETRY, 0), 0);
	memcpy(&told, t_args(t), sizeof(told));
	return of_dma ? told.busy_dma_ns : told.busy_compute_ns;
}

static void functions_are_parts_of_one_card(void **state)
{
	struct hw_identify id[FUNCTIONS];

	(void)state;
	for (unsigned i = 0; i < FUNCTIONS; i++) {
		assert_int_equal(t_admin(&f[i], HW_IDENTIFY, 0, 0), 0);
		memcpy(&id[i], t_args(&f[i]), sizeof(id[i]));
		assert_int_equal(id[i].hbm_bytes, T_HBM_BYTES);
		assert_string_equal((char *)id[i].serial, (char *)id[0].serial);
		for (uint64_t at = 0; at < T_HBM_BYTES; at += T_HBM_BYTES / 4)
			memset(f[i].hbm + at, (int)i + 1, 64);
	}
	for (unsigned i = 0; i < FUNCTIONS; i++)
		for (uint64_t at = 0; at < T_HBM_BYTES; at += T_HBM_BYTES / 4)
			assert_int_equal(f[i].hbm[at], i + 1);
	assert_null(sim_function(sim, 0, FUNCTIONS));
	assert_null(sim_function(sim, 1, 0));
	assert_int_equal(sim_device_count(sim), 1);
}

/* Busy time of each since the last call, with all of it; whether it is equal within a tenth. */
static bool is_equal_since(uint64_t seen[FUNCTIONS], uint64_t *all)
{
	uint64_t busy[FUNCTIONS], now;
	bool is_equal = true;

	*all = 0;
	for (unsigned i = 0; i < FUNCTIONS; i++) {
		now = busy_ns(&f[i], false);
		*all += busy[i] = now - seen[i];
		seen[i] = now;
	}
	for (unsigned i = 0; i < FUNCTIONS; i++)
		is_equal &= busy[i] * 10 * FUNCTIONS >= *all * 9 &&
			    busy[i] * 10 * FUNCTIONS <= *all * 11;
	print_message("busy: %.3f %.3f %.3f s\n", (double)busy[0] / 1e9, (double)busy[1] / 1e9,
		      (double)busy[2] / 1e9);
	return is_equal;
}

static void endless_programs_have_equal_time(void **state)
{
	uint64_t seen[FUNCTIONS] = { 0 }, all, sum = 0;
	bool was_equal = false, was_busy = false;
	int64_t began;

	(void)state;
	is_equal_since(seen, &all);
	began = clock_ns();
	for (unsigned i = 0; i < FUNCTIONS; i++)
		start_endless(&f[i]);
	/* Other work of the host may come between two looks, but not always. */
	for (unsigned tries = 0; tries < 5 && !(was_equal && was_busy); tries++) {
		turns_sleep(SECOND);
		was_equal = is_equal_since(seen, &all);
		/* But for changes, which take what it takes to wake a thread. */
		was_busy = all >= (uint64_t)(SECOND / 2);
		sum += all;
		assert_true(sum <= (uint64_t)(clock_ns() - began));
	}
	assert_true(was_equal);
	assert_true(was_busy);
	for (unsigned i = 0; i < FUNCTIONS; i++)
		stop(&f[i]);
	is_equal_since(seen, &all);
	assert_true(sum + all <= (uint64_t)(clock_ns() - began));
}

/* One that does half a ms at a time has a third of the engine beside two that never end. */
static void short_programs_are_not_held_up_by_long_ones(void **state)
{
	uint64_t n = 1000, before, busy, other;
	unsigned runs = 0;
	int64_t began;
	uint32_t id;

	(void)state;
	for (uint64_t took = 0; took < (uint64_t)MS / 2; n *= 2) {
		id = load_count(&f[0], n);
		start(&f[0], id, 0);
		assert_int_equal(t_take(&f[0], &f[0].work), 0);
		took = f[0].cqe.value;
		assert_int_equal(t_unload(&f[0], id), 0);
	}
	other = busy_ns(&f[1], false) + busy_ns(&f[2], false);
	start_endless(&f[1]);
	start_endless(&f[2]);
	id = load_count(&f[0], n / 2);
	before = busy_ns(&f[0], false);
	/* Some always wait behind the one that runs, as an asynchronous client has it. */
	for (unsigned i = 0; i < AHEAD; i++)
		start(&f[0], id, 0);
	for (began = clock_ns(); clock_ns() < began + SECOND; runs++) {
		start(&f[0], id, 0);
		assert_int_equal(t_take(&f[0], &f[0].work), 0);
	}
	for (unsigned i = 0; i < AHEAD; i++)
		assert_int_equal(t_take(&f[0], &f[0].work), 0);
	busy = busy_ns(&f[0], false) - before;
	stop(&f[1]);
	stop(&f[2]);
	other = busy_ns(&f[1], false) + busy_ns(&f[2], false) - other;
	print_message("%u short programs: %.3f s beside %.3f s\n", runs, (double)busy / 1e9,
		      (double)other / 1e9);
	/* Turns one after the other would give it a ninth. */
	assert_true(busy > (busy + other) / 5);
	assert_int_equal(t_unload(&f[0], id), 0);
}

static void waiting_for_a_turn_counts_for_no_limit(void **state)
{
	uint64_t n = 1000, took = 0;
	bool is_proven = false;
	int64_t limit, elapsed;
	uint32_t id;

	(void)state;
	for (; took < (uint64_t)(60 * MS); n *= 2) {
		id = load_count(&f[0], n);
		start(&f[0], id, 0);
		assert_int_equal(t_take(&f[0], &f[0].work), 0);
		took = f[0].cqe.value;
	}
	start_endless(&f[1]);
	start_endless(&f[2]);
	id = load_count(&f[0], n / 2);
	/* A third of the engine: three times as long, of which two don't count. What the host's
	 * own work holds up does, so there is as much room again, and what was measured above
	 * may be too much or too little. */
	limit = (int64_t)took * 2;
	for (unsigned tries = 0; !is_proven && tries < 100; tries++) {
		int64_t began = clock_ns();

		start(&f[0], id, (uint64_t)limit);
		if (t_take(&f[0], &f[0].work) == HW_ST_WATCHDOG) {
			assert_int_equal(t_reset(&f[0], &f[0].work), 0);
			limit += limit / 8;
			continue;
		}
		elapsed = clock_ns() - began;
		is_proven = elapsed > limit + limit / 4;
		limit -= limit / 8;
	}
	assert_true(is_proven);
	/* And one that runs too long is stopped all the same. */
	start(&f[0], load_count(&f[0], 0), 50 * MS);
	assert_int_equal(t_take(&f[0], &f[0].work), HW_ST_WATCHDOG);
	assert_int_equal(t_reset(&f[0], &f[0].work), 0);
	stop(&f[1]);
	stop(&f[2]);
}

static void a_reset_of_one_is_none_of_the_others(void **state)
{
	uint64_t seen;

	(void)state;
	start_endless(&f[1]);
	start_endless(&f[2]);
	for (unsigned i = 0; i < 100; i++) {
		/* With and without the turn, and while it waits for it. */
		start(&f[0], load_count(&f[0], 0), 0);
		turns_sleep(i % 10 * MS);
		sim_flr(f[0].dev);
		t_bring_up(&f[0]);
	}
	for (unsigned i = 1; i < FUNCTIONS; i++) {
		int64_t deadline = clock_after(T_ANSWER_NS);

		seen = counted(&f[i]);
		while (counted(&f[i]) == seen)
			assert_true(clock_ns() < deadline);
		stop(&f[i]);
	}
}

/* Two contexts of a function, beside functions with one: whoever waits for the card's engine has
 * had no turn yet that could be over. */
static void contexts_of_a_function_share_its_time(void **state)
{
	struct t_ring other;
	uint64_t seen[3], more[3] = { 0 };
	uint32_t id;
	unsigned ctx;
	bool is_fair = false;

	(void)state;
	assert_int_equal(t_admin(&f[0], HW_CTX_CREATE, 0, 0), 0);
	ctx = (unsigned)f[0].cqe.value;
	assert_int_equal(t_map(&f[0], ctx, T_HBM_VA, 0, f[0].hbm_bytes, HW_MAP_WRITE), 0);
	assert_int_equal(t_map(&f[0], ctx, T_HOST_VA, T_IOVA + T_WINDOW * HW_PAGE,
			       T_WINDOW_PAGES * HW_PAGE, HW_MAP_WRITE | HW_MAP_HOST), 0);
	assert_int_equal(t_queue(&f[0], &other, (struct hw_queue){ .ctx = (uint16_t)ctx,
				 .cls = HW_CLASS_COMPUTE, .vector = HW_NO_VECTOR }), 0);
	for (unsigned i = 0; i < FUNCTIONS; i++)
		start_endless(&f[i]);
	turns_count(&p, T_HBM_VA + 2 * COUNTER, 0);
	assert_int_equal(t_load_in(&f[0], &p, ctx, &id), 0);
	t_put(&f[0], &other, t_execute(&f[0], &p, id));
	t_ring_bell(&f[0], &other);
	for (unsigned tries = 0; !is_fair && tries < 10; tries++) {
		seen[0] = counted(&f[0]);
		seen[1] = counted_at(&f[0], 2 * COUNTER);
		seen[2] = counted(&f[1]);
		turns_sleep(SECOND);
		more[0] = counted(&f[0]) - seen[0];
		more[1] = counted_at(&f[0], 2 * COUNTER) - seen[1];
		more[2] = counted(&f[1]) - seen[2];
		print_message("%.1f and %.1f million, beside %.1f\n", (double)more[0] / 1e6,
			      (double)more[1] / 1e6, (double)more[2] / 1e6);
		is_fair = more[0] < 2 * more[1] && more[1] < 2 * more[0] &&
			  (more[0] + more[1]) * 3 > more[2] * 2;
	}
	assert_true(is_fair);
	for (unsigned i = 0; i < FUNCTIONS; i++)
		stop(&f[i]);
	assert_int_equal(t_reset(&f[0], &other), 0);
	assert_int_equal(t_take(&f[0], &other), HW_ST_RESET);
	sim_flr(f[0].dev);
	t_bring_up(&f[0]);
}

static void copies_take_turns(void **state)
{
	uint64_t busy[2], half = T_HBM_BYTES / 2;
	int64_t began = clock_ns();

	(void)state;
	for (unsigned i = 0; i < 2; i++)
		busy[i] = busy_ns(&f[i], true);
	for (unsigned i = 0; i < 2; i++) {
		for (unsigned k = 0; k < 8; k++)
			t_put(&f[i], &f[i].dma, (struct hw_sqe){ .op = k % 2 ? HW_FILL : HW_COPY,
				.u.copy = { .dst = T_HBM_VA, .src = T_HBM_VA + half,
					    .bytes = half - T_CODE_ROOM } });
		t_ring_bell(&f[i], &f[i].dma);
	}
	for (unsigned i = 0; i < 2; i++)
		for (unsigned k = 0; k < 8; k++)
			assert_int_equal(t_take(&f[i], &f[i].dma), 0);
	for (unsigned i = 0; i < 2; i++)
		busy[i] = busy_ns(&f[i], true) - busy[i];
	assert_true(busy[0] + busy[1] <= (uint64_t)(clock_ns() - began));
}

static void bytes_are_exact_under_turns(void **state)
{
	const uint64_t bytes = T_HBM_BYTES / 4;

	(void)state;
	for (unsigned i = 0; i < FUNCTIONS; i++) {
		for (uint64_t at = 0; at < bytes; at += 8)
			*(uint64_t *)(f[i].hbm + at) = at * (2 * i + 3);
		t_put(&f[i], &f[i].dma, (struct hw_sqe){ .op = HW_COPY, .u.copy = {
			.dst = T_HBM_VA + bytes, .src = T_HBM_VA, .bytes = bytes } });
		/* Onto itself, 1 MiB + 8 further on: ascending, byte by byte. */
		t_put(&f[i], &f[i].dma, (struct hw_sqe){ .op = HW_COPY, .u.copy = {
			.dst = T_HBM_VA + (1 << 20) + 8, .src = T_HBM_VA,
			.bytes = bytes - (1 << 20) - 8 } });
	}
	for (unsigned i = 0; i < FUNCTIONS; i++)
		t_ring_bell(&f[i], &f[i].dma);
	for (unsigned i = 0; i < FUNCTIONS; i++) {
		assert_int_equal(t_take(&f[i], &f[i].dma), 0);
		assert_int_equal(t_take(&f[i], &f[i].dma), 0);
		for (uint64_t at = 0; at < bytes; at += 8) {
			assert_int_equal(*(uint64_t *)(f[i].hbm + bytes + at),
					 at * (2 * i + 3));
			assert_int_equal(*(uint64_t *)(f[i].hbm + at),
					 at % ((1 << 20) + 8) * (2 * i + 3));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_are_parts_of_one_card),
		cmocka_unit_test(endless_programs_have_equal_time),
		cmocka_unit_test(short_programs_are_not_held_up_by_long_ones),
		cmocka_unit_test(waiting_for_a_turn_counts_for_no_limit),
		cmocka_unit_test(a_reset_of_one_is_none_of_the_others),
		cmocka_unit_test(contexts_of_a_function_share_its_time),
		cmocka_unit_test(copies_take_turns),
		cmocka_unit_test(bytes_are_exact_under_turns),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
