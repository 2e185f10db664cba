/* SPDX-License-Identifier: Apache-2.0 */
/* Rings, order, semaphores, priorities, inline work. */
#include "tests/unit/sim/sim_test.h"

#include <pthread.h>
#include <time.h>

#define SEM(i) (T_HBM_VA + 8 * (i))	/* semaphores at the start of HBM */
#define MAIL (T_HBM_VA + 65536)

static struct t_sim t;
static struct t_program p;

static int setup(void **state)
{
	(void)state;
	t_open(&t, "lanes=1");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	t_close(&t);
	return 0;
}

static uint64_t *sem(unsigned i)
{
	return (uint64_t *)t.hbm + i;
}

static void clear_sems(void)
{
	for (unsigned i = 0; i < 64; i++)
		__atomic_store_n(sem(i), 0, __ATOMIC_RELEASE);
}

static struct hw_sqe nop(uint32_t tag)
{
	return (struct hw_sqe){ .op = HW_NOP, .tag = tag };
}

static struct hw_sqe stamp(unsigned slot)
{
	return (struct hw_sqe){ .op = HW_TIMESTAMP, .tag = slot,
				.u.copy.dst = MAIL + 8 * slot };
}

static uint64_t stamped(unsigned slot)
{
	return ((uint64_t *)(t.hbm + 65536))[slot];
}

static void make(struct t_ring *q, unsigned cls, unsigned priority)
{
	assert_int_equal(t_queue(&t, q, (struct hw_queue){ .ctx = (uint16_t)t.ctx,
		.cls = (uint8_t)cls, .priority = (uint8_t)priority,
		.vector = HW_NO_VECTOR }), 0);
}

static void end(struct t_ring *q)
{
	assert_int_equal(t_admin(&t, HW_QUEUE_DESTROY, q->id, 0), 0);
}

/* A program that runs until it is stopped, on `q`; sem(60) says that it runs. */
static uint32_t occupy(struct t_ring *q, unsigned flags)
{
	uint32_t id;

	t_program(&p);
	p.flags = (uint8_t)flags;
	t_bind(&p, T_HBM_VA, 512, HW_BIND_WRITE);
	t_li(&p, 1, 1);
	t_scalar(&p, (struct isa_scalar){ .insn.op = ISA_ST, .elem = ELEM_U64, .rb = 1,
					  .imm = 480 });
	t_branch(&p, ISA_JMP, 0, 0);
	__atomic_store_n(sem(60), 0, __ATOMIC_RELEASE);
	assert_int_equal(t_load(&t, &p, &id), 0);
	t_put(&t, q, t_execute(&t, &p, id));
	t_ring_bell(&t, q);
	while (!__atomic_load_n(sem(60), __ATOMIC_ACQUIRE))
		;
	return id;
}

static void free_up(struct t_ring *q, uint32_t id)
{
	assert_int_equal(t_reset(&t, q), 0);
	assert_int_equal(t_take(&t, q), HW_ST_RESET);
	assert_int_equal(t_unload(&t, id), 0);
}

static void completions_come_in_order_lap_after_lap(void **state)
{
	uint32_t done = 0;

	(void)state;
	for (uint32_t sent = 0; sent < 1000; ) {
		unsigned batch = sent % T_ENTRIES + 1;

		for (unsigned i = 0; i < batch; i++)
			t_put(&t, &t.work, nop(sent++));
		t_ring_bell(&t, &t.work);
		for (; done < sent; done++) {
			assert_int_equal(t_take(&t, &t.work), 0);
			assert_int_equal(t.cqe.tag, done);
			assert_int_equal(t.cqe.sq_head, t.work.head);
			assert_int_equal(t.cqe.zero, 0);
		}
	}
}

static void queues_wait_for_each_other(void **state)
{
	(void)state;
	clear_sems();
	/* Ping-pong between the engines, all submitted before anything can run. */
	for (unsigned i = 0; i < 5; i++) {
		t_put(&t, &t.work, (struct hw_sqe){ .op = HW_TIMESTAMP,
			.flags = HW_WAIT | HW_SIGNAL, .wait_va = SEM(0), .wait_value = i + 1,
			.signal_va = SEM(1), .signal_value = i + 1,
			.u.copy.dst = MAIL + 16 * i });
		t_put(&t, &t.dma, (struct hw_sqe){ .op = HW_TIMESTAMP,
			.flags = HW_WAIT | HW_SIGNAL, .wait_va = SEM(1), .wait_value = i + 1,
			.signal_va = SEM(0), .signal_value = i + 2,
			.u.copy.dst = MAIL + 16 * i + 8 });
	}
	t_ring_bell(&t, &t.work);
	t_ring_bell(&t, &t.dma);
	assert_false(t_poll(&t, &t.work));
	assert_int_equal(t_admin(&t, HW_NOP, 0, 0), 0);
	__atomic_store_n(sem(0), 1, __ATOMIC_RELEASE);
	sim_mmio_write(t.dev, hw_wake(t.ctx), 4, 0);	/* host writes count at wakes */
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(t_take(&t, &t.work), 0);
		assert_int_equal(t_take(&t, &t.dma), 0);
		assert_true(stamped(2 * i) <= stamped(2 * i + 1));
		assert_true(!i || stamped(2 * i - 1) <= stamped(2 * i));
	}
}

static void put_wait(struct t_ring *q, uint64_t va, uint64_t value)
{
	t_put(&t, q, (struct hw_sqe){ .op = HW_SEMAPHORE, .flags = HW_WAIT, .wait_va = va,
				      .wait_value = value });
	t_ring_bell(&t, q);
}

/* Until it is seen to wait: then its engine has looked, and nothing makes it look again. */
static void await_waiting(const struct t_ring *q)
{
	int64_t deadline = clock_after(T_ANSWER_NS);

	while (t_queue_state(&t, q->id) != HW_QUEUE_WAITING)
		assert_true(clock_ns() < deadline);
}

/* A store of any size at any place of the page will do; nothing else does, but what makes the
 * engine of the waiting queue look for work. */
static void a_wake_shows_what_the_host_wrote(void **state)
{
	static const struct { uint32_t at; unsigned bytes; } stores[] = {
		{ 0, 4 }, { 0, 8 }, { 1, 1 }, { 6, 2 }, { 0xffc, 4 }, { 0xfff, 1 }, { 3, 64 },
	};
	uint64_t *sem0 = (uint64_t *)t.window;

	(void)state;
	*sem0 = 0;
	for (unsigned i = 0; i < sizeof(stores) / sizeof(stores[0]); i++) {
		put_wait(&t.work, T_HOST_VA, i + 1);
		await_waiting(&t.work);
		__atomic_store_n(sem0, i + 1, __ATOMIC_RELEASE);
		t_ask(&t, &t.dma, nop(1));
		assert_int_equal(t_admin(&t, HW_NOP, 0, 0), 0);
		assert_int_equal(t_queue_state(&t, t.work.id), HW_QUEUE_WAITING);
		sim_mmio_write(t.dev, hw_wake(t.ctx) + stores[i].at, stores[i].bytes, i);
		assert_int_equal(t_take(&t, &t.work), 0);
	}
}

static void a_wake_is_seen_beside_a_busy_engine(void **state)
{
	uint32_t id;

	(void)state;
	clear_sems();
	id = occupy(&t.work, 0);
	put_wait(&t.dma, SEM(2), 1);
	assert_false(t_poll(&t, &t.dma));
	__atomic_store_n(sem(2), 1, __ATOMIC_RELEASE);
	sim_mmio_write(t.dev, hw_wake(t.ctx), 4, 0);
	assert_int_equal(t_take(&t, &t.dma), 0);
	free_up(&t.work, id);
}

/* Two contexts whose queues wait on an engine each, both for what is there. */
static void a_wake_is_its_contexts_alone(void **state)
{
	struct t_ring other;
	unsigned ctx;

	(void)state;
	clear_sems();
	assert_int_equal(t_admin(&t, HW_CTX_CREATE, 0, 0), 0);
	ctx = (unsigned)t.cqe.value;
	assert_int_equal(t_map(&t, ctx, T_HBM_VA, 0, t.hbm_bytes, HW_MAP_WRITE), 0);
	assert_int_equal(t_queue(&t, &other, (struct hw_queue){
		.ctx = (uint16_t)ctx, .cls = HW_CLASS_DMA, .vector = HW_NO_VECTOR }), 0);
	put_wait(&t.work, SEM(2), 1);
	put_wait(&other, SEM(2), 1);
	await_waiting(&t.work);
	await_waiting(&other);
	__atomic_store_n(sem(2), 1, __ATOMIC_RELEASE);
	/* Those of nobody, too. */
	for (unsigned i = 0; i < HW_MAX_CONTEXTS; i++)
		if (i != t.ctx && i != ctx)
			sim_mmio_write(t.dev, hw_wake(i), 4, 1);
	assert_int_equal(t_queue_state(&t, t.work.id), HW_QUEUE_WAITING);
	sim_mmio_write(t.dev, hw_wake(t.ctx), 4, 1);
	assert_int_equal(t_take(&t, &t.work), 0);
	assert_int_equal(t_queue_state(&t, other.id), HW_QUEUE_WAITING);
	sim_mmio_write(t.dev, hw_wake(ctx), 4, 1);
	assert_int_equal(t_take(&t, &other), 0);
	/* Its page is nobody's now, and wakes nobody. */
	assert_int_equal(t_admin(&t, HW_CTX_DESTROY, ctx, 0), 0);
	put_wait(&t.work, SEM(3), 1);
	await_waiting(&t.work);
	__atomic_store_n(sem(3), 1, __ATOMIC_RELEASE);
	sim_mmio_write(t.dev, hw_wake(ctx), 4, 1);
	assert_int_equal(t_queue_state(&t, t.work.id), HW_QUEUE_WAITING);
	sim_mmio_write(t.dev, hw_wake(t.ctx), 4, 1);
	assert_int_equal(t_take(&t, &t.work), 0);
}

struct waker {
	unsigned ctx;
	atomic_bool stop;
	unsigned long n;
};

static void *wake_all_the_time(void *arg)
{
	struct waker *w = arg;

	for (; !w->stop; w->n++)
		sim_mmio_write(t.dev, hw_wake(w->ctx), 4, 0);
	return NULL;
}

/* No wake comes between the look at a semaphore and the sleep; and those too many do no harm. */
static void no_wake_is_lost_and_none_too_many_harms(void **state)
{
	struct waker w = { .ctx = t.ctx };
	pthread_t thread;

	(void)state;
	clear_sems();
	for (uint64_t i = 1; i <= 3000; i++) {
		put_wait(&t.dma, SEM(2), i);
		__atomic_store_n(sem(2), i, __ATOMIC_RELEASE);
		sim_mmio_write(t.dev, hw_wake(t.ctx), 4, 0);
		assert_int_equal(t_take(&t, &t.dma), 0);
	}
	assert_int_equal(pthread_create(&thread, NULL, wake_all_the_time, &w), 0);
	for (uint64_t i = 1; i <= 3000; i++) {
		put_wait(&t.dma, SEM(3), i);
		put_wait(&t.work, SEM(4), i);
		__atomic_store_n(sem(3), i, __ATOMIC_RELEASE);
		__atomic_store_n(sem(4), i, __ATOMIC_RELEASE);
		assert_int_equal(t_take(&t, &t.dma), 0);
		assert_int_equal(t_take(&t, &t.work), 0);
		assert_int_equal(t.cqe.sq_head, t.work.head);
	}
	w.stop = true;
	pthread_join(thread, NULL);
}

/* Its doorbell with the old tail has the device look at a queue, too, as before there were wake
 * pages. */
static void a_queues_own_doorbell_wakes_it(void **state)
{
	(void)state;
	clear_sems();
	put_wait(&t.work, SEM(2), 1);
	await_waiting(&t.work);
	__atomic_store_n(sem(2), 1, __ATOMIC_RELEASE);
	t_ring_bell(&t, &t.work);
	assert_int_equal(t_take(&t, &t.work), 0);
}

/* Who waits where there is no memory any more hears of it, unasked. */
static void who_waits_where_nothing_is_any_more_faults(void **state)
{
	uint64_t va = 1ull << 41;

	(void)state;
	clear_sems();
	assert_int_equal(t_map(&t, t.ctx, va, 0, HW_PAGE, 0), 0);
	put_wait(&t.work, va + (SEM(2) - T_HBM_VA) % HW_PAGE, UINT64_MAX);
	await_waiting(&t.work);
	assert_int_equal(t_unmap(&t, t.ctx, va), 0);
	assert_int_equal(t_take(&t, &t.work), HW_ST_MAP);
	assert_int_equal(t_reset(&t, &t.work), 0);
}

static void signals_never_lower(void **state)
{
	(void)state;
	clear_sems();
	*sem(5) = 100;
	assert_int_equal(t_ask(&t, &t.dma, (struct hw_sqe){ .op = HW_SEMAPHORE,
		.flags = HW_SIGNAL, .signal_va = SEM(5), .signal_value = 50 }), 0);
	assert_int_equal(*sem(5), 100);
	assert_int_equal(t_ask(&t, &t.dma, (struct hw_sqe){ .op = HW_SEMAPHORE,
		.flags = HW_SIGNAL, .signal_va = SEM(5), .signal_value = UINT64_MAX }), 0);
	assert_int_equal(*sem(5), UINT64_MAX);
}

static void failures_do_not_signal(void **state)
{
	(void)state;
	clear_sems();
	assert_int_equal(t_ask(&t, &t.dma, (struct hw_sqe){ .op = HW_COPY,
		.flags = HW_SIGNAL, .signal_va = SEM(6), .signal_value = 1,
		.u.copy = { 0, 0, 8 } }), HW_ST_MAP);
	assert_int_equal(*sem(6), 0);
	assert_int_equal(t_reset(&t, &t.dma), 0);
}

static int64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000000000ll + ts.tv_nsec;
}

static void waiting_and_idling_burn_no_cpu(void **state)
{
	struct timespec nap = { 0, 60000000 };
	int64_t before;

	(void)state;
	clear_sems();
	t_put(&t, &t.work, (struct hw_sqe){ .op = HW_SEMAPHORE, .flags = HW_WAIT,
		.wait_va = SEM(9), .wait_value = 1 });
	t_ring_bell(&t, &t.work);
	t_ask(&t, &t.dma, nop(0));
	nanosleep(&(struct timespec){ 0, 5000000 }, NULL);
	before = cpu_ns();
	nanosleep(&nap, NULL);
	assert_true(cpu_ns() - before < 10000000);
	assert_int_equal(t_ask(&t, &t.dma, (struct hw_sqe){ .op = HW_SEMAPHORE,
		.flags = HW_SIGNAL, .signal_va = SEM(9), .signal_value = 1 }), 0);
	assert_int_equal(t_take(&t, &t.work), 0);
}

static void higher_priority_goes_first(void **state)
{
	struct t_ring q[4];
	uint32_t id;

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		make(&q[i], HW_CLASS_COMPUTE, i);
	id = occupy(&t.work, 0);
	for (unsigned i = 0; i < 4; i++) {
		t_put(&t, &q[i], stamp(2 * i));
		t_put(&t, &q[i], stamp(2 * i + 1));
		t_ring_bell(&t, &q[i]);
	}
	free_up(&t.work, id);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(t_take(&t, &q[i]), 0);
		assert_int_equal(t_take(&t, &q[i]), 0);
	}
	for (unsigned i = 0; i < 3; i++)
		assert_true(stamped(2 * i) > stamped(2 * (i + 1) + 1));
	for (unsigned i = 0; i < 4; i++)
		end(&q[i]);
}

static void equals_take_turns(void **state)
{
	struct t_ring q[2];
	uint32_t id;

	(void)state;
	make(&q[0], HW_CLASS_COMPUTE, 1);
	make(&q[1], HW_CLASS_COMPUTE, 1);
	id = occupy(&t.work, 0);
	for (unsigned i = 0; i < 2; i++) {
		for (unsigned j = 0; j < 8; j++)
			t_put(&t, &q[i], stamp(8 * i + j));
		t_ring_bell(&t, &q[i]);
	}
	free_up(&t.work, id);
	for (unsigned i = 0; i < 2; i++)
		for (unsigned j = 0; j < 8; j++)
			assert_int_equal(t_take(&t, &q[i]), 0);
	/* Alternating: the last of neither comes before the second to last of the other. */
	assert_true(stamped(6) < stamped(15) && stamped(14) < stamped(7));
	end(&q[0]);
	end(&q[1]);
}

/* Runs p, which is done when the doorbell returns; in the first of many rounds the device's thread
 * may still be on its way to sleep, or has not seen it run. */
static void run_inline(uint32_t id, unsigned round)
{
	t_put(&t, &t.work, t_execute(&t, &p, id));
	t_ring_bell(&t, &t.work);
	if (round < 20)
		t_take(&t, &t.work);
	else
		assert_true(t_poll(&t, &t.work));
	assert_int_equal(t.cqe.status, 0);
}

static void inline_work_is_done_when_the_doorbell_returns(void **state)
{
	uint32_t id;

	(void)state;
	t_program(&p);
	t_bind(&p, MAIL, 64, HW_BIND_WRITE);
	t_li(&p, 1, 42);
	t_scalar(&p, (struct isa_scalar){ .insn.op = ISA_ST, .elem = ELEM_U64, .rb = 1 });
	t_halt(&p);
	p.flags = HW_INLINE;
	assert_int_equal(t_load(&t, &p, &id), 0);
	/* A run that the scheduler interrupts would count as long. */
	assert_int_equal(t_admin(&t, HW_SET_FEATURE, HW_FEATURE_INLINE_NS, UINT64_MAX), 0);
	for (unsigned round = 0; round < 40; round++) {
		*(volatile uint64_t *)(t.hbm + 65536) = 0;
		run_inline(id, round);
		assert_int_equal(*(volatile uint64_t *)(t.hbm + 65536), 42);
	}
	assert_int_equal(t_admin(&t, HW_SET_FEATURE, HW_FEATURE_INLINE_NS, 60000), 0);
	assert_int_equal(t_unload(&t, id), 0);
}

static void inline_work_stays_behind_what_waits(void **state)
{
	(void)state;
	clear_sems();
	t_put(&t, &t.dma, (struct hw_sqe){ .op = HW_TIMESTAMP, .flags = HW_WAIT,
		.wait_va = SEM(3), .wait_value = 1, .u.copy.dst = MAIL });
	t_ring_bell(&t, &t.dma);
	t_put(&t, &t.dma, (struct hw_sqe){ .op = HW_TIMESTAMP, .flags = HW_INLINE,
		.u.copy.dst = MAIL + 8 });
	t_ring_bell(&t, &t.dma);
	assert_false(t_poll(&t, &t.dma));
	assert_int_equal(t_ask(&t, &t.work, (struct hw_sqe){ .op = HW_SEMAPHORE,
		.flags = HW_SIGNAL | HW_INLINE, .signal_va = SEM(3), .signal_value = 1 }), 0);
	assert_int_equal(t_take(&t, &t.dma), 0);
	assert_int_equal(t_take(&t, &t.dma), 0);
	assert_true(stamped(0) <= stamped(1));
}

/* Whatever the flag says. */
static void loops_that_never_ended_are_not_run_inline(void **state)
{
	(void)state;
	free_up(&t.work, occupy(&t.work, HW_INLINE));
}

/* A program that turns until the number at MAIL is 0, from which each turn takes what is behind
 * it. */
static uint32_t load_loop(void)
{
	uint32_t id;

	t_program(&p);
	p.flags = HW_INLINE;
	t_bind(&p, MAIL, 64, HW_BIND_READ | HW_BIND_WRITE);
	t_scalar(&p, (struct isa_scalar){ .insn.op = ISA_LD, .elem = ELEM_U64, .rd = 1 });
	t_scalar(&p, (struct isa_scalar){ .insn.op = ISA_LD, .elem = ELEM_U64, .rd = 2,
					  .imm = 8 });
	t_scalar(&p, (struct isa_scalar){ .insn.op = ISA_ALU, .fn = ISA_ALU_SUB, .rd = 1,
					  .ra = 1, .rb = 2 });
	t_scalar(&p, (struct isa_scalar){ .insn.op = ISA_ST, .elem = ELEM_U64, .rb = 1 });
	t_branch(&p, ISA_BNZ, 1, -4 * (int64_t)sizeof(struct isa_scalar));
	t_halt(&p);
	assert_int_equal(t_load(&t, &p, &id), 0);
	return id;
}

static void set_loop(uint64_t number, uint64_t step)
{
	volatile uint64_t *at = (void *)(t.hbm + 65536);

	at[1] = step;
	at[0] = number;
}

static void loops_that_were_short_are_run_inline(void **state)
{
	uint32_t id = load_loop();

	(void)state;
	assert_int_equal(t_admin(&t, HW_SET_FEATURE, HW_FEATURE_INLINE_NS, UINT64_MAX), 0);
	for (unsigned round = 0; round < 40; round++) {
		set_loop(10, 1);
		run_inline(id, round);
		assert_int_equal(*(volatile uint64_t *)(t.hbm + 65536), 0);
	}
	/* One that goes on for ever: the device takes over from the doorbell's thread. */
	for (unsigned round = 0; round < 3; round++) {
		set_loop(1, 0);
		t_put(&t, &t.work, t_execute(&t, &p, id));
		t_ring_bell(&t, &t.work);
		assert_false(t_poll(&t, &t.work));
		set_loop(1, 1);
		assert_int_equal(t_take(&t, &t.work), 0);
	}
	assert_int_equal(t_admin(&t, HW_SET_FEATURE, HW_FEATURE_INLINE_NS, 60000), 0);
	assert_int_equal(t_unload(&t, id), 0);
}

static void malformed_descriptors_fault(void **state)
{
	static const struct { struct hw_sqe sqe; unsigned status; } bad[] = {
		{ { .op = 0xff }, HW_ST_BAD_DESCRIPTOR },
		{ { .op = HW_MAP }, HW_ST_BAD_DESCRIPTOR },
		{ { .op = HW_EXECUTE }, HW_ST_BAD_DESCRIPTOR },	/* on a DMA queue */
		{ { .op = HW_NOP, .id = 1 }, HW_ST_BAD_DESCRIPTOR },
		{ { .op = HW_NOP, .flags = 0x10 }, HW_ST_BAD_DESCRIPTOR },
		{ { .op = HW_NOP, .flags = HW_WAIT }, HW_ST_MAP },
		{ { .op = HW_NOP, .flags = HW_WAIT, .wait_va = SEM(1) + 4 }, HW_ST_MAP },
		{ { .op = HW_NOP, .flags = HW_SIGNAL }, HW_ST_MAP },
		{ { .op = HW_NOP, .flags = HW_SIGNAL, .signal_va = UINT64_MAX - 7 }, HW_ST_MAP },
		{ { .op = HW_TIMESTAMP, .u.copy.dst = 12 }, HW_ST_ALIGNMENT },
		{ { .op = HW_TIMESTAMP, .u.copy.dst = 16 }, HW_ST_MAP },
		{ { .op = HW_COPY_2D, .u.copy.src = 16 }, HW_ST_MAP },
		{ { .op = HW_COPY, .u.copy = { T_HBM_VA, T_HBM_VA, UINT64_MAX } }, HW_ST_MAP },
		{ { .op = HW_FILL, .u.copy = { 0, UINT64_MAX, 2 } }, HW_ST_MAP },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		uint64_t number;

		assert_int_equal(t_ask(&t, &t.dma, bad[i].sqe), bad[i].status);
		number = t.cqe.detail;
		t_last_fault(&t);
		assert_int_equal(t.fault.status, bad[i].status);
		assert_int_equal(t.fault.number, number);
		assert_int_equal(t_reset(&t, &t.dma), 0);
	}
}

static void a_faulted_queue_waits_for_its_reset(void **state)
{
	(void)state;
	t_put(&t, &t.dma, nop(1));
	t_put(&t, &t.dma, (struct hw_sqe){ .op = 0xff, .tag = 2 });
	for (uint32_t tag = 3; tag < 9; tag++)
		t_put(&t, &t.dma, nop(tag));
	t_ring_bell(&t, &t.dma);
	assert_int_equal(t_take(&t, &t.dma), 0);
	assert_int_equal(t_take(&t, &t.dma), HW_ST_BAD_DESCRIPTOR);
	assert_int_equal(t.cqe.tag, 2);
	t_put(&t, &t.dma, nop(9));
	t_ring_bell(&t, &t.dma);
	assert_int_equal(t_ask(&t, &t.work, nop(0)), 0);
	assert_false(t_poll(&t, &t.dma));
	assert_int_equal(t_reset(&t, &t.dma), 0);
	for (uint32_t tag = 3; tag < 10; tag++) {
		assert_true(t_poll(&t, &t.dma));
		assert_int_equal(t.cqe.status, HW_ST_DROPPED);
		assert_int_equal(t.cqe.tag, tag);
	}
	assert_int_equal(t_ask(&t, &t.dma, nop(10)), 0);
	assert_int_equal(t.cqe.tag, 10);
}

static void bad_queues_are_refused(void **state)
{
	static const uint32_t sizes[] = { 1, 3, 65535, 131072, 1u << 31, UINT32_MAX };
	const struct hw_queue good = { .ctx = (uint16_t)t.ctx, .cls = HW_CLASS_DMA,
				       .vector = HW_NO_VECTOR };
	struct hw_queue q;
	struct t_ring r;

	(void)state;
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		q = good;
		q.n_entries = sizes[i];
		assert_int_equal(t_queue(&t, &r, q), HW_ST_BAD_FIELD);
	}
	q = good, q.n_entries = 65536;
	assert_int_equal(t_queue(&t, &r, q), HW_ST_BAD_ADDRESS);
	q = good, q.ctx = 0;
	assert_int_equal(t_queue(&t, &r, q), HW_ST_NO_SUCH_ID);
	q = good, q.ctx = 0xffff;
	assert_int_equal(t_queue(&t, &r, q), HW_ST_NO_SUCH_ID);
	q = good, q.cls = 0;
	assert_int_equal(t_queue(&t, &r, q), HW_ST_BAD_FIELD);
	q = good, q.priority = 4;
	assert_int_equal(t_queue(&t, &r, q), HW_ST_BAD_FIELD);
	q = good, q.vector = HW_MAX_VECTORS;
	assert_int_equal(t_queue(&t, &r, q), HW_ST_BAD_FIELD);
	q = good, q.flags = 2;
	assert_int_equal(t_queue(&t, &r, q), HW_ST_BAD_FIELD);
	q = good, q.sq_iova = T_IOVA + 8;
	assert_int_equal(t_queue(&t, &r, q), HW_ST_BAD_FIELD);
	q = good, q.cq_iova = UINT64_MAX - 63;
	assert_int_equal(t_queue(&t, &r, q), HW_ST_BAD_ADDRESS);
	assert_int_equal(t_admin(&t, HW_QUEUE_DESTROY, 0, 0), HW_ST_NO_SUCH_ID);
	assert_int_equal(t_admin(&t, HW_QUEUE_DESTROY, 50, 0), HW_ST_NO_SUCH_ID);
	assert_int_equal(t_admin(&t, HW_QUEUE_RESET, 0xffff, 0), HW_ST_NO_SUCH_ID);
}

static void queues_run_out_and_come_back(void **state)
{
	struct t_ring r[HW_MAX_QUEUES];
	struct hw_queue q = { .ctx = (uint16_t)t.ctx, .cls = HW_CLASS_COMPUTE,
			      .vector = HW_NO_VECTOR };
	unsigned n = 0, rings = t.n_rings;

	(void)state;
	for (; n + 3 < HW_MAX_QUEUES; n++)
		assert_int_equal(t_queue(&t, &r[n], q), 0);
	t.n_rings = rings;
	q.sq_iova = T_IOVA + 100 * HW_PAGE;
	assert_int_equal(t_queue(&t, &r[n], q), HW_ST_NO_ROOM);
	/* All work, at once. */
	for (unsigned i = 0; i < n; i++) {
		t_put(&t, &r[i], nop(i));
		t_ring_bell(&t, &r[i]);
	}
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(t_take(&t, &r[i]), 0);
	while (n)
		end(&r[--n]);
}

static void a_queue_may_end_with_work_in_it(void **state)
{
	struct t_ring q;
	uint32_t id;

	(void)state;
	make(&q, HW_CLASS_COMPUTE, 0);
	id = occupy(&q, 0);
	for (unsigned i = 0; i < 5; i++)
		t_put(&t, &q, nop(i));
	t_ring_bell(&t, &q);
	end(&q);
	assert_true(t_poll(&t, &q));
	assert_int_equal(t.cqe.status, HW_ST_RESET);
	for (unsigned i = 0; i < 5; i++) {
		assert_true(t_poll(&t, &q));
		assert_int_equal(t.cqe.status, HW_ST_DROPPED);
		assert_int_equal(t.cqe.tag, i);
	}
	assert_int_equal(t_unload(&t, id), 0);
	assert_int_equal(t_ask(&t, &t.work, nop(1)), 0);
}

static void admin_requests_are_checked(void **state)
{
	(void)state;
	assert_int_equal(t_admin(&t, HW_EXECUTE, 0, 0), HW_ST_BAD_OPCODE);
	assert_int_equal(t_admin(&t, 0xff, 0, 0), HW_ST_BAD_OPCODE);
	assert_int_equal(t_admin(&t, HW_FIRMWARE, 0, 0), HW_ST_NOT_BUILT);
	assert_int_equal(t_admin(&t, HW_CTX_RESET, 0, 0), HW_ST_NOT_BUILT);
	assert_int_equal(t_admin(&t, HW_SET_FEATURE, 99, 0), HW_ST_BAD_FIELD);
	assert_int_equal(t_admin(&t, HW_INJECT, 99, 0), HW_ST_BAD_FIELD);
	assert_int_equal(t_admin(&t, HW_LOG_PAGE, 99, 0), HW_ST_BAD_FIELD);
	assert_int_equal(t_ask(&t, &t.admin, (struct hw_sqe){ .op = HW_NOP,
		.flags = HW_WAIT }), HW_ST_BAD_FIELD);
	assert_int_equal(t_ask(&t, &t.admin, (struct hw_sqe){ .op = HW_NOP,
		.signal_va = 8 }), HW_ST_BAD_FIELD);
	assert_int_equal(t_ask(&t, &t.admin, (struct hw_sqe){ .op = HW_IDENTIFY,
		.u.admin.addr = 64 }), HW_ST_BAD_ADDRESS);
	assert_int_equal(t_ask(&t, &t.admin, (struct hw_sqe){ .op = HW_MAP, .id = 1,
		.u.admin.addr = T_IOVA + T_PAGES * HW_PAGE - 16 }), HW_ST_BAD_ADDRESS);
	assert_int_equal(t_admin(&t, HW_SET_FEATURE, HW_FEATURE_INLINE_NS, 5), 0);
	assert_int_equal(t_admin(&t, HW_GET_FEATURE, HW_FEATURE_INLINE_NS, 0), 0);
	assert_int_equal(t.cqe.value, 5);
	assert_int_equal(t_admin(&t, HW_SET_FEATURE, HW_FEATURE_INLINE_NS, 60000), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(completions_come_in_order_lap_after_lap),
		cmocka_unit_test(queues_wait_for_each_other),
		cmocka_unit_test(a_wake_shows_what_the_host_wrote),
		cmocka_unit_test(a_wake_is_seen_beside_a_busy_engine),
		cmocka_unit_test(a_wake_is_its_contexts_alone),
		cmocka_unit_test(no_wake_is_lost_and_none_too_many_harms),
		cmocka_unit_test(a_queues_own_doorbell_wakes_it),
		cmocka_unit_test(who_waits_where_nothing_is_any_more_faults),
		cmocka_unit_test(signals_never_lower),
		cmocka_unit_test(failures_do_not_signal),
		cmocka_unit_test(waiting_and_idling_burn_no_cpu),
		cmocka_unit_test(higher_priority_goes_first),
		cmocka_unit_test(equals_take_turns),
		cmocka_unit_test(inline_work_is_done_when_the_doorbell_returns),
		cmocka_unit_test(inline_work_stays_behind_what_waits),
		cmocka_unit_test(loops_that_never_ended_are_not_run_inline),
		cmocka_unit_test(loops_that_were_short_are_run_inline),
		cmocka_unit_test(malformed_descriptors_fault),
		cmocka_unit_test(a_faulted_queue_waits_for_its_reset),
		cmocka_unit_test(bad_queues_are_refused),
		cmocka_unit_test(queues_run_out_and_come_back),
		cmocka_unit_test(a_queue_may_end_with_work_in_it),
		cmocka_unit_test(admin_requests_are_checked),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
