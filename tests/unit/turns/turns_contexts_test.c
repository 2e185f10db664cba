/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts of one device: turns on its engines, and what goes on after others had theirs. */
#include "tests/unit/turns/turns.h"

#define CELL(ctx, i) (4096u * (ctx) + 64u * (i))	/* counters, in HBM */
#define MiB (1ull << 20)
#define LIMIT_MS 200
#define IDLE_MS 400u		/* of which next to nothing is saved up */
#define TURNS 3u		/* of others, that prove that a run went on after them */
#define TRIES 100u
#define FEW_TRIES 10u		/* before the work grows */
#define COPY_AT ((T_WINDOW_PAGES - 2) * HW_PAGE)	/* of a COPY_2D, in the window */

static struct t_sim t;
static struct t_program p;

/* A context with all of HBM and the window, a queue to each engine. */
static struct tenant {
	unsigned ctx, number;
	struct t_ring work, dma;
} a, b;

static void open_tenant(struct tenant *x, unsigned number)
{
	x->number = number;
	assert_int_equal(t_admin(&t, HW_CTX_CREATE, 0, 0), 0);
	x->ctx = (unsigned)t.cqe.value;
	assert_int_equal(t_map(&t, x->ctx, T_HBM_VA, 0, t.hbm_bytes, HW_MAP_WRITE), 0);
	assert_int_equal(t_map(&t, x->ctx, T_HOST_VA, T_IOVA + T_WINDOW * HW_PAGE,
			       T_WINDOW_PAGES * HW_PAGE, HW_MAP_WRITE | HW_MAP_HOST), 0);
	for (unsigned cls = HW_CLASS_COMPUTE; cls <= HW_CLASS_DMA; cls++)
		assert_int_equal(t_queue(&t, cls == HW_CLASS_DMA ? &x->dma : &x->work,
					 (struct hw_queue){ .ctx = (uint16_t)x->ctx,
							    .cls = (uint8_t)cls, .priority = 1,
							    .vector = HW_NO_VECTOR }), 0);
}

static void close_tenant(struct tenant *x)
{
	assert_int_equal(t_admin(&t, HW_CTX_DESTROY, x->ctx, 0), 0);
	t.n_rings -= 2;
}

static int setup(void **state)
{
	(void)state;
	t_open(&t, "lanes=1,hbm=2G");
	open_tenant(&a, 1);
	open_tenant(&b, 2);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	t_close(&t);
	return 0;
}

static uint64_t counted(const struct tenant *x, unsigned i)
{
	return __atomic_load_n((const uint64_t *)(t.hbm + CELL(x->number, i)),
			       __ATOMIC_ACQUIRE);
}

/* Counts up in a cell of x to `n`, or for ever with 0. */
static uint32_t load_count(const struct tenant *x, unsigned cell, uint64_t n)
{
	uint32_t id;

	turns_count(&p, T_HBM_VA + CELL(x->number, cell), n);
	assert_int_equal(t_load_in(&t, &p, x->ctx, &id), 0);
	return id;
}

/* Queues the program that was made last; each has a place of its own for its bindings. */
static void start(const struct tenant *x, struct t_ring *r, uint32_t id, uint64_t limit_ns)
{
	struct hw_sqe sqe;
	uint64_t at = (r->id % (T_WINDOW_PAGES - 1)) * HW_PAGE;

	(void)x;
	p.limit_ns = limit_ns;
	sqe = t_execute(&t, &p, id);
	memcpy(t.window + at, p.bind, sizeof(p.bind));
	sqe.u.execute.bindings = T_HOST_VA + at;
	t_put(&t, r, sqe);
	t_ring_bell(&t, r);
}

static void start_endless(const struct tenant *x, struct t_ring *r, unsigned cell,
			  uint64_t limit_ns)
{
	int64_t deadline = clock_after(T_ANSWER_NS);

	__atomic_store_n((uint64_t *)(t.hbm + CELL(x->number, cell)), 0, __ATOMIC_RELEASE);
	start(x, r, load_count(x, cell, 0), limit_ns);
	while (!counted(x, cell))
		if (clock_ns() > deadline)
			fail_msg("a program does not begin");
}

static struct hw_queue_state state_of(const struct t_ring *r)
{
	const struct hw_queue_state *s = t_args(&t);

	assert_int_equal(t_admin(&t, HW_LOG_PAGE, HW_LOG_QUEUES, 0), 0);
	for (uint64_t i = 0; i < t.cqe.value / sizeof(*s); i++)
		if (s[i].queue == r->id)
			return s[i];
	fail_msg("queue %u is not told of", r->id);
	return *s;
}

/* Waits until the engine has taken what is in the queue: a reset before that drops it. */
static void await_begin(const struct t_ring *r)
{
	int64_t deadline = clock_after(T_ANSWER_NS);

	while (state_of(r).head != r->tail)
		if (clock_ns() > deadline)
			fail_msg("queue %u does not begin", r->id);
}

static const struct hw_copy_2d endless_copy = {
	.src = T_HBM_VA + MiB, .dst = T_HBM_VA + 2 * MiB,
	.row_bytes = 4096, .rows = 1ull << 31, .planes = 1ull << 20,
};

static void start_copy(struct t_ring *r, struct hw_copy_2d c)
{
	memcpy(t.window + COPY_AT, &c, sizeof(c));
	t_put(&t, r, (struct hw_sqe){ .op = HW_COPY_2D, .u.copy.src = T_HOST_VA + COPY_AT });
	t_ring_bell(&t, r);
}

static void stop(struct t_ring *r)
{
	assert_int_equal(t_reset(&t, r), 0);
	assert_int_equal(t_take(&t, r), HW_ST_RESET);
}

/* ---- programs ---- */

static void an_endless_program_lets_others_go_first(void **state)
{
	const uint64_t n = 3000000;
	uint32_t few;
	unsigned runs = 0;

	(void)state;
	/* More than those that ran before it began and after it had ended. On a busy machine it may
	 * take some tries. */
	for (unsigned tries = 0; runs <= TURNS && tries < TRIES; tries++) {
		/* It counts in a register, so what it ends with is what it would have alone. */
		start(&a, &a.work, load_count(&a, 0, n), 0);
		few = load_count(&b, 0, 100);
		runs = 0;
		do {
			start(&b, &b.work, few, 0);
			assert_int_equal(t_take(&t, &b.work), 0);
			assert_int_equal(counted(&b, 0), 100);
			runs++;
		} while (!t_poll(&t, &a.work));
		assert_int_equal(t.cqe.status, 0);
		assert_int_equal(counted(&a, 0), n);
	}
	print_message("%u programs beside one of %.1f ms\n", runs, (double)t.cqe.value / MS);
	assert_true(runs > TURNS);
	/* It is none that ends by itself, either. */
	start_endless(&a, &a.work, 0, 0);
	for (unsigned i = 0; i < 20; i++) {
		start(&b, &b.work, few, 0);
		assert_int_equal(t_take(&t, &b.work), 0);
	}
	stop(&a.work);
}

static void contexts_have_equal_time_however_many_queues_they_have(void **state)
{
	struct t_ring more[7];
	bool is_equal = false;

	(void)state;
	start_endless(&b, &b.work, 0, 0);
	for (unsigned i = 0; i < 7; i++) {
		assert_int_equal(t_queue(&t, &more[i], (struct hw_queue){
			.ctx = (uint16_t)a.ctx, .cls = HW_CLASS_COMPUTE, .priority = 1,
			.vector = HW_NO_VECTOR }), 0);
		start_endless(&a, &more[i], i + 1, 0);
	}
	start_endless(&a, &a.work, 0, 0);
	for (unsigned tries = 0; !is_equal && tries < 10; tries++) {
		uint64_t of_a = 0, of_b = counted(&b, 0);

		for (unsigned i = 0; i < 8; i++)
			of_a += counted(&a, i);
		turns_sleep(SECOND / 2);
		of_b = counted(&b, 0) - of_b;
		for (unsigned i = 0; i < 8; i++)
			of_a -= counted(&a, i);
		of_a = 0 - of_a;
		print_message("%.1f million beside %.1f\n", (double)of_a / 1e6,
			      (double)of_b / 1e6);
		is_equal = of_a * 2 > of_b && of_b * 2 > of_a;
	}
	assert_true(is_equal);
	for (unsigned i = 0; i < 7; i++) {
		stop(&more[i]);
		assert_int_equal(t_admin(&t, HW_QUEUE_DESTROY, more[i].id, 0), 0);
	}
	stop(&a.work);
	stop(&b.work);
}

static uint64_t counted_by(const struct tenant *x, unsigned n)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < n; i++)
		sum += counted(&x[i], 0);
	return sum;
}

static void who_has_little_to_do_goes_first_at_once(void **state)
{
	struct tenant more[3];
	uint64_t began, in_ms, least = UINT64_MAX;
	uint32_t few;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		open_tenant(&more[i], 3 + i);
		start_endless(&more[i], &more[i].work, 0, 0);
	}
	began = counted_by(more, 3);
	turns_sleep(100 * MS);
	in_ms = (counted_by(more, 3) - began) / 100;
	few = load_count(&b, 0, 100);
	/* In turns it would wait for three, of 2 ms. On a busy machine it may take some tries. */
	for (unsigned tries = 0; least >= in_ms && tries < 10 * TRIES; tries++) {
		turns_sleep(MS);
		began = counted_by(more, 3);
		start(&b, &b.work, few, 0);
		assert_int_equal(t_take(&t, &b.work), 0);
		began = counted_by(more, 3) - began;
		least = began < least ? began : least;
	}
	print_message("%.3f ms of others\n", (double)least / (double)in_ms);
	assert_true(least < in_ms);
	for (unsigned i = 0; i < 3; i++) {
		stop(&more[i].work);
		close_tenant(&more[i]);
	}
}

/* How long x has the engine after it comes back, in what it counts in 1 ms. */
static double ms_at_first(struct tenant *x, const struct tenant *other, double in_ms)
{
	uint64_t seen;
	double ms;

	start_endless(x, &x->work, 0, 0);
	for (seen = counted(other, 0); counted(other, 0) == seen;)
		;
	ms = (double)counted(x, 0) / in_ms;
	stop(&x->work);
	return ms;
}

static void nobody_saves_turns_up(void **state)
{
	double in_ms, of_idle = 1e9, of_new = 1e9;
	uint64_t began;

	(void)state;
	start_endless(&a, &a.work, 0, 0);
	for (unsigned tries = 0; (of_idle > 60 || of_new > 60) && tries < 20; tries++) {
		struct tenant new;
		double ms;

		began = counted(&a, 0);
		turns_sleep(IDLE_MS * MS);
		in_ms = (double)(counted(&a, 0) - began) / IDLE_MS;
		ms = ms_at_first(&b, &a, in_ms);
		of_idle = ms < of_idle ? ms : of_idle;
		open_tenant(&new, 3);
		ms = ms_at_first(&new, &a, in_ms);
		of_new = ms < of_new ? ms : of_new;
		close_tenant(&new);
	}
	print_message("%.1f ms after %u idle, %.1f when new\n", of_idle, IDLE_MS, of_new);
	assert_true(of_idle < 60 && of_new < 60);
	stop(&a.work);
}

/* A new context has used as much as the others, one that was idle less. */
static void a_new_context_goes_after_one_that_was_idle(void **state)
{
	struct tenant hog;
	struct t_ring high;
	bool was_after = false;
	struct hw_sqe fill = { .op = HW_FILL,
			       .u.copy = { .dst = T_HBM_VA + CELL(2, 5), .bytes = 64 } };

	(void)state;
	open_tenant(&hog, 4);
	assert_int_equal(t_queue(&t, &high, (struct hw_queue){
		.ctx = (uint16_t)hog.ctx, .cls = HW_CLASS_DMA, .priority = 3,
		.vector = HW_NO_VECTOR }), 0);
	/* If it is slow to ring, the new one was idle for a while, too. */
	for (unsigned tries = 0; !was_after && tries < TRIES; tries++) {
		struct tenant new;

		start_copy(&high, endless_copy);
		await_begin(&high);
		turns_sleep(5 * MS);
		open_tenant(&new, 3);
		fill.u.copy.src = 1;
		t_put(&t, &new.dma, fill);
		t_ring_bell(&t, &new.dma);
		fill.u.copy.src = 2;
		t_put(&t, &b.dma, fill);
		t_ring_bell(&t, &b.dma);
		assert_int_equal(state_of(&high).is, HW_QUEUE_RUNNING);
		stop(&high);
		assert_int_equal(t_take(&t, &new.dma), 0);
		assert_int_equal(t_take(&t, &b.dma), 0);
		was_after = counted(&b, 5) == 1;
		close_tenant(&new);
	}
	assert_true(was_after);
	t.n_rings--;
	close_tenant(&hog);
}

static void turns_of_others_count_for_no_limit(void **state)
{
	struct hw_queue_state s;
	int64_t deadline = clock_after(T_ANSWER_NS);

	(void)state;
	start_endless(&b, &b.work, 0, 0);
	start_endless(&a, &a.work, 0, LIMIT_MS * MS);
	assert_int_equal(t_take(&t, &a.work), HW_ST_WATCHDOG);
	assert_true(t.cqe.value >= (uint64_t)(LIMIT_MS * MS) * 9 / 10);
	assert_int_equal(t_reset(&t, &a.work), 0);
	/* The time of all its turns is what is told. */
	start_endless(&a, &a.work, 0, 0);
	do {
		s = state_of(&b.work);
		assert_true(s.is == HW_QUEUE_RUNNING || s.is == HW_QUEUE_READY);
		assert_true(clock_ns() < deadline);
	} while (s.run_ns < (uint64_t)(LIMIT_MS * MS));
	stop(&a.work);
	stop(&b.work);
}

static void a_higher_priority_is_not_kept_waiting_and_a_lower_one_is(void **state)
{
	struct t_ring high;
	uint32_t few;
	uint64_t seen;

	(void)state;
	assert_int_equal(t_queue(&t, &high, (struct hw_queue){
		.ctx = (uint16_t)b.ctx, .cls = HW_CLASS_COMPUTE, .priority = 3,
		.vector = HW_NO_VECTOR }), 0);
	few = load_count(&b, 1, 100);
	start_endless(&a, &a.work, 0, 0);
	for (unsigned i = 0; i < 10; i++) {
		start(&b, &high, few, 0);
		assert_int_equal(t_take(&t, &high), 0);
	}
	start_endless(&b, &high, 0, 0);
	seen = counted(&a, 0);
	turns_sleep(50 * MS);
	assert_int_equal(counted(&a, 0), seen);
	assert_int_equal(state_of(&a.work).is, HW_QUEUE_READY);
	stop(&high);
	while (counted(&a, 0) == seen)
		;
	stop(&a.work);
	assert_int_equal(t_admin(&t, HW_QUEUE_DESTROY, high.id, 0), 0);
}

static void resets_find_a_run_with_its_turn_and_without(void **state)
{
	unsigned n_ready = 0;

	(void)state;
	start_endless(&b, &b.work, 0, 0);
	for (unsigned i = 0; i < 100; i++) {
		start_endless(&a, &a.work, 0, 0);
		turns_sleep(i * 37 % 100 * MS / 10);
		n_ready += state_of(&a.work).is == HW_QUEUE_READY;
		stop(&a.work);
	}
	print_message("%u of 100 without\n", n_ready);
	assert_true(n_ready && n_ready < 100);
	stop(&b.work);
}

static void memory_of_a_run_is_used_in_others_turns_too(void **state)
{
	const uint64_t va = T_HBM_VA + (1ull << 41);
	unsigned seen[2] = { 0 };
	uint32_t id;

	(void)state;
	assert_int_equal(t_map(&t, a.ctx, va, 0, MiB, HW_MAP_WRITE), 0);
	id = load_count(&a, 0, 0);
	p.bind[0].va = va + CELL(a.number, 0);
	start(&a, &a.work, id, 0);
	await_begin(&a.work);
	start_endless(&b, &b.work, 0, 0);
	for (unsigned i = 0; i < 200 || !seen[0] || !seen[1]; i++) {
		seen[state_of(&a.work).is == HW_QUEUE_RUNNING]++;
		assert_int_equal(t_unmap(&t, a.ctx, va), HW_ST_BUSY);
	}
	stop(&a.work);
	assert_int_equal(t_unmap(&t, a.ctx, va), 0);
	stop(&b.work);
}

/* ---- copies ---- */

/* b has a turn. */
static void fill_for(uint64_t value)
{
	assert_int_equal(t_ask(&t, &b.dma, (struct hw_sqe){ .op = HW_FILL, .u.copy = {
		.dst = T_HBM_VA + CELL(2, 0), .src = value, .bytes = 64 } }), 0);
	assert_int_equal(counted(&b, 0), value);
}

/* Turns of b until the queue has ended n descriptors: how many. */
static unsigned fill_beside(struct t_ring *r, unsigned n)
{
	unsigned fills = 0;

	while (n) {
		fill_for(++fills);
		while (n && t_poll(&t, r)) {
			assert_int_equal(t.cqe.status, 0);
			n--;
		}
	}
	return fills;
}

static uint64_t word_at(uint64_t at)
{
	uint64_t word;

	memcpy(&word, t.hbm + at, sizeof(word));
	return word;
}

static void number(uint64_t at, uint64_t bytes, uint64_t by)
{
	for (uint64_t i = 0; i < bytes; i += 8)
		*(uint64_t *)(t.hbm + at + i) = i * by;
}

static void copies_and_fills_go_on_where_they_were(void **state)
{
	const uint64_t bytes = 96 * MiB, src = 16 * MiB, dst = src + bytes;
	unsigned fills = 0;

	(void)state;
	for (unsigned tries = 0; fills <= 2 * TURNS && tries < TRIES; tries++) {
		number(src, bytes, 3);
		t_put(&t, &a.dma, (struct hw_sqe){ .op = HW_COPY, .u.copy = {
			.dst = T_HBM_VA + dst, .src = T_HBM_VA + src, .bytes = bytes - 8 } });
		/* Onto itself, 1 MiB + 8 further on: ascending, byte by byte. */
		t_put(&t, &a.dma, (struct hw_sqe){ .op = HW_COPY, .u.copy = {
			.dst = T_HBM_VA + src + MiB + 8, .src = T_HBM_VA + src,
			.bytes = bytes - MiB - 8 } });
		t_ring_bell(&t, &a.dma);
		fills = fill_beside(&a.dma, 2);
		for (uint64_t i = 0; i < bytes - 8; i += 8)
			assert_int_equal(*(uint64_t *)(t.hbm + dst + i), i * 3);
		for (uint64_t i = 0; i < bytes; i += 8)
			assert_int_equal(*(uint64_t *)(t.hbm + src + i), i % (MiB + 8) * 3);
	}
	print_message("%u fills beside copies\n", fills);
	assert_true(fills > 2 * TURNS);
	fills = 0;
	for (unsigned tries = 0; fills <= TURNS && tries < TRIES; tries++) {
		memset(t.hbm + src, 0, 2 * bytes);
		t_put(&t, &a.dma, (struct hw_sqe){ .op = HW_FILL, .u.copy = {
			.dst = T_HBM_VA + src + 4, .src = 0x0123456789abcdef,
			.bytes = 2 * bytes - 8 } });
		t_ring_bell(&t, &a.dma);
		fills = fill_beside(&a.dma, 1);
		/* The words begin where the fill does. */
		for (uint64_t i = 0; i < 2 * bytes - 8; i += 8)
			assert_int_equal(word_at(src + 4 + i), 0x0123456789abcdef);
	}
	print_message("%u fills beside a fill\n", fills);
	assert_true(fills > TURNS);
}

/* Rows of planes from `src` to `dst`, turned about, in memory that is one piece and in memory that
 * is not, which the model copies in other ways. */
static void copy_rows(uint64_t src_va, uint64_t dst_va, uint64_t row_bytes)
{
	const uint64_t bytes = 64 * MiB, src = 16 * MiB, dst = 128 * MiB;
	struct hw_copy_2d c = { .src = src_va, .dst = dst_va + bytes - row_bytes,
				.row_bytes = row_bytes, .rows = 64,
				.planes = bytes / row_bytes / 64,
				.src_row = (int64_t)row_bytes, .dst_row = -(int64_t)row_bytes };
	unsigned fills = 0;

	c.src_plane = c.src_row * 64;
	c.dst_plane = c.dst_row * 64;
	number(src, bytes, 5);
	/* One more than the one that ends after it. */
	for (unsigned tries = 0; fills <= 1 && tries < TRIES; tries++) {
		if (tries >= FEW_TRIES) {
			/* All of it once more with each try: a fast machine copies it in a turn. */
			c.rows = bytes / row_bytes;
			c.planes = tries - FEW_TRIES + 2;
			c.src_plane = c.dst_plane = 0;
		}
		memset(t.hbm + dst, 0, bytes);
		start_copy(&a.dma, c);
		/* What it is was read when it began. */
		await_begin(&a.dma);
		fill_for(1);
		memset(t.window + COPY_AT, 0xff, sizeof(c));
		fills = fill_beside(&a.dma, 1);
		for (uint64_t i = 0; i < bytes; i += 8) {
			uint64_t row = bytes / row_bytes - 1 - i / row_bytes;

			assert_int_equal(*(uint64_t *)(t.hbm + dst + i),
					 (row * row_bytes + i % row_bytes) * 5);
		}
	}
	print_message("%u fills beside rows of %llu\n", fills, (unsigned long long)row_bytes);
	assert_true(fills > 1);
}

static void rows_go_on_where_they_were(void **state)
{
	const uint64_t va = T_HBM_VA + (1ull << 42), half = 32 * MiB;

	(void)state;
	copy_rows(T_HBM_VA + 16 * MiB, T_HBM_VA + 128 * MiB, 4096);
	copy_rows(T_HBM_VA + 16 * MiB, T_HBM_VA + 128 * MiB, MiB);
	/* Two mappings that follow one another, whose memory does not. */
	assert_int_equal(t_map(&t, a.ctx, va, 16 * MiB, half, HW_MAP_WRITE), 0);
	assert_int_equal(t_map(&t, a.ctx, va + half, 16 * MiB + half, half, HW_MAP_WRITE), 0);
	copy_rows(va, T_HBM_VA + 128 * MiB, 4096);
	copy_rows(va, T_HBM_VA + 128 * MiB, MiB);
	assert_int_equal(t_unmap(&t, a.ctx, va), 0);
	assert_int_equal(t_unmap(&t, a.ctx, va + half), 0);
}

static void an_endless_copy_lets_others_go_first(void **state)
{
	struct hw_copy_2d c = endless_copy;
	const uint64_t va = T_HBM_VA + (1ull << 42);

	(void)state;
	start_copy(&a.dma, c);
	for (unsigned i = 1; i < 50; i++)
		fill_for(i);
	stop(&a.dma);
	/* Rows in two pieces, of which each is looked at before the first is copied. */
	assert_int_equal(t_map(&t, a.ctx, va, 16 * MiB, MiB, HW_MAP_WRITE), 0);
	assert_int_equal(t_map(&t, a.ctx, va + MiB, 32 * MiB, MiB, HW_MAP_WRITE), 0);
	c.src = va + MiB - 2048;
	start_copy(&a.dma, c);
	for (unsigned i = 1; i < 50; i++)
		fill_for(i);
	/* With its turn and without. */
	for (unsigned i = 0; i < 50; i++) {
		stop(&a.dma);
		start_copy(&a.dma, c);
		await_begin(&a.dma);
		turns_sleep(i * 37 % 100 * MS / 10);
	}
	stop(&a.dma);
	assert_int_equal(t_unmap(&t, a.ctx, va), 0);
	assert_int_equal(t_unmap(&t, a.ctx, va + MiB), 0);
}

/* A row is no longer than a block of a copy to whoever waits. */
static void a_long_row_lets_others_go_first(void **state)
{
	uint64_t bytes = 96 * MiB;
	unsigned fills = 0;

	(void)state;
	for (unsigned tries = 0; fills <= TURNS && tries < TRIES; tries++) {
		/* A fast machine copies it in few turns. */
		if (tries >= FEW_TRIES && bytes < 960 * MiB)
			bytes += 96 * MiB;
		number(16 * MiB, bytes, 7);
		memset(t.hbm + 16 * MiB + bytes, 0, bytes);
		start_copy(&a.dma, (struct hw_copy_2d){
			.src = T_HBM_VA + 16 * MiB, .dst = T_HBM_VA + 16 * MiB + bytes,
			.row_bytes = bytes, .rows = 1, .planes = 1 });
		fills = fill_beside(&a.dma, 1);
		for (uint64_t i = 0; i < bytes; i += 8)
			assert_int_equal(word_at(16 * MiB + bytes + i), i * 7);
	}
	print_message("%u fills beside a row of %llu MiB\n", fills,
		      (unsigned long long)(bytes / MiB));
	assert_true(fills > TURNS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_endless_program_lets_others_go_first),
		cmocka_unit_test(contexts_have_equal_time_however_many_queues_they_have),
		cmocka_unit_test(who_has_little_to_do_goes_first_at_once),
		cmocka_unit_test(nobody_saves_turns_up),
		cmocka_unit_test(a_new_context_goes_after_one_that_was_idle),
		cmocka_unit_test(turns_of_others_count_for_no_limit),
		cmocka_unit_test(a_higher_priority_is_not_kept_waiting_and_a_lower_one_is),
		cmocka_unit_test(resets_find_a_run_with_its_turn_and_without),
		cmocka_unit_test(memory_of_a_run_is_used_in_others_turns_too),
		cmocka_unit_test(copies_and_fills_go_on_where_they_were),
		cmocka_unit_test(rows_go_on_where_they_were),
		cmocka_unit_test(an_endless_copy_lets_others_go_first),
		cmocka_unit_test(a_long_row_lets_others_go_first),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
