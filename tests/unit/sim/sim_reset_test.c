/* SPDX-License-Identifier: Apache-2.0 */
/* Resets of queue, context and function, and what the innocent are promised. */
#include "tests/unit/sim/sim_test.h"

#include <pthread.h>

static struct t_program p;

static struct hw_sqe nop(uint32_t tag)
{
	return (struct hw_sqe){ .op = HW_NOP, .tag = tag };
}

static uint64_t *word(struct t_sim *t, unsigned i)
{
	return (uint64_t *)t->hbm + i;
}

/* A program that counts up word 0 until it is stopped. Waits until it counts. */
static void count_up(struct t_sim *t, struct t_ring *q, uint32_t *id)
{
	t_program(&p);
	t_bind(&p, T_HBM_VA, 64, HW_BIND_READ | HW_BIND_WRITE);
	t_scalar(&p, (struct isa_scalar){ .insn.op = ISA_ALUI, .rd = 1, .ra = 1, .imm = 1 });
	t_scalar(&p, (struct isa_scalar){ .insn.op = ISA_ST, .elem = ELEM_U64, .rb = 1 });
	t_branch(&p, ISA_JMP, 0, -48);
	__atomic_store_n(word(t, 0), 0, __ATOMIC_RELEASE);
	assert_int_equal(t_load(t, &p, id), 0);
	t_put(t, q, t_execute(t, &p, *id));
	t_ring_bell(t, q);
	while (!__atomic_load_n(word(t, 0), __ATOMIC_ACQUIRE))
		;
}

/* Nothing counts any more. */
static void is_still(struct t_sim *t)
{
	uint64_t n = __atomic_load_n(word(t, 0), __ATOMIC_ACQUIRE);

	for (unsigned i = 0; i < 100; i++)
		t_admin(t, HW_NOP, 0, 0);
	assert_int_equal(__atomic_load_n(word(t, 0), __ATOMIC_ACQUIRE), n);
}

static void other_queues_do_not_notice_a_queue_reset(void **state)
{
	struct t_sim t;
	struct t_ring q;
	uint32_t id;

	(void)state;
	t_open(&t, "lanes=1");
	assert_int_equal(t_queue(&t, &q, (struct hw_queue){ .ctx = (uint16_t)t.ctx,
		.cls = HW_CLASS_COMPUTE, .vector = HW_NO_VECTOR }), 0);
	count_up(&t, &t.work, &id);
	for (unsigned i = 0; i < 8; i++)
		t_put(&t, &q, nop(i));
	t_ring_bell(&t, &q);
	for (unsigned i = 0; i < 4; i++)
		t_put(&t, &t.work, nop(i));
	t_ring_bell(&t, &t.work);
	assert_int_equal(t_reset(&t, &t.work), 0);
	/* The victim's work is accounted for when the reset answers. */
	assert_true(t_poll(&t, &t.work));
	assert_int_equal(t.cqe.status, HW_ST_RESET);
	for (unsigned i = 0; i < 4; i++) {
		assert_true(t_poll(&t, &t.work));
		assert_int_equal(t.cqe.status, HW_ST_DROPPED);
	}
	for (unsigned i = 0; i < 8; i++) {
		assert_int_equal(t_take(&t, &q), 0);
		assert_int_equal(t.cqe.tag, i);
	}
	is_still(&t);
	assert_int_equal(t_ask(&t, &t.work, nop(9)), 0);
	t_close(&t);
}

static void a_context_may_end_while_it_runs(void **state)
{
	struct t_sim t;
	unsigned mine;
	uint32_t id;

	(void)state;
	t_open(&t, "lanes=1");
	mine = t.ctx;
	count_up(&t, &t.work, &id);
	assert_int_equal(t_admin(&t, HW_CTX_DESTROY, mine, 0), 0);
	is_still(&t);
	assert_int_equal(t_unload(&t, id), HW_ST_NO_SUCH_ID);
	assert_int_equal(t_admin(&t, HW_QUEUE_RESET, t.work.id, 0), HW_ST_NO_SUCH_ID);
	/* Its doorbells are nothing now; the function still works. */
	sim_mmio_write(t.dev, hw_doorbell(t.work.id), 4, 5);
	assert_int_equal(t_admin(&t, HW_CTX_CREATE, 0, 0), 0);
	t_close(&t);
}

static void a_program_may_be_forgotten_while_it_runs(void **state)
{
	struct t_sim t;
	uint32_t id;

	(void)state;
	t_open(&t, "lanes=1");
	count_up(&t, &t.work, &id);
	assert_int_equal(t_unload(&t, id), 0);
	assert_false(t_poll(&t, &t.work));
	assert_int_equal(t_reset(&t, &t.work), 0);
	assert_int_equal(t_take(&t, &t.work), HW_ST_RESET);
	t_close(&t);
}

static void a_function_reset_ends_everything_silently(void **state)
{
	struct t_sim t;
	uint32_t id;

	(void)state;
	t_open(&t, "lanes=2");
	*word(&t, 100) = 0x5a5a;
	for (unsigned round = 0; round < 5; round++) {
		count_up(&t, &t.work, &id);
		t_put(&t, &t.dma, (struct hw_sqe){ .op = HW_SEMAPHORE, .flags = HW_WAIT,
			.wait_va = T_HBM_VA + 64, .wait_value = 1 });
		t_ring_bell(&t, &t.dma);
		sim_flr(t.dev);
		assert_int_equal(sim_mmio_read(t.dev, HW_REG_STATUS, 4), 0);
		assert_false(t_poll(&t, &t.work));
		assert_false(t_poll(&t, &t.dma));
		sim_mmio_write(t.dev, hw_doorbell(t.work.id), 4, 7);
		sim_mmio_write(t.dev, hw_doorbell(0), 4, 1);
		assert_int_equal(sim_mmio_read(t.dev, HW_REG_BADACC, 4), 2);
		t_bring_up(&t);
		is_still(&t);
	}
	assert_int_equal(*word(&t, 100), 0x5a5a);	/* HBM stays */
	assert_int_equal(t_admin(&t, HW_LOG_PAGE, HW_LOG_RAS, 0), 0);
	assert_int_equal(((struct hw_ras *)t_args(&t))->function_resets, 5);
	t_close(&t);
}

static void disabling_keeps_the_registers(void **state)
{
	struct t_sim t;
	uint32_t id;

	(void)state;
	t_open(&t, "lanes=1");
	sim_mmio_write(t.dev, HW_REG_SCRATCH, 8, 77);
	count_up(&t, &t.work, &id);
	sim_mmio_write(t.dev, HW_REG_CTRL, 4, 0);
	assert_int_equal(sim_mmio_read(t.dev, HW_REG_STATUS, 4), 0);
	assert_int_equal(sim_mmio_read(t.dev, HW_REG_SCRATCH, 8), 77);
	assert_int_equal(sim_mmio_read(t.dev, HW_REG_ASQ, 8), T_IOVA);
	assert_false(t_poll(&t, &t.work));
	t_bring_up(&t);
	is_still(&t);
	t_close(&t);
}

/* What was injected lasts until it is used up or the function is reset. */
static void disabling_heals_nothing(void **state)
{
	const struct hw_sqe copy = { .op = HW_COPY, .u.copy = { T_HBM_VA, T_HBM_VA + 4096, 8 } };
	struct t_sim t;

	(void)state;
	t_open(&t, "lanes=1");
	assert_int_equal(t_admin(&t, HW_INJECT, HW_INJECT_POISON, 0), 0);
	assert_int_equal(t_admin(&t, HW_INJECT, HW_INJECT_BUS, 1), 0);
	sim_mmio_write(t.dev, HW_REG_CTRL, 4, 0);
	t_bring_up(&t);
	assert_int_equal(t_ask(&t, &t.work, copy), HW_ST_BUS);
	assert_int_equal(t_admin(&t, HW_QUEUE_RESET, t.work.id, 0), 0);
	assert_int_equal(t_ask(&t, &t.work, copy), HW_ST_POISON);
	assert_int_equal(t_admin(&t, HW_INJECT, HW_INJECT_BUS, 1), 0);
	sim_flr(t.dev);
	t_bring_up(&t);
	assert_int_equal(t_ask(&t, &t.work, copy), 0);
	t_close(&t);
}

static void a_model_may_end_while_it_runs(void **state)
{
	struct t_sim t;
	uint32_t id;

	(void)state;
	t_open(&t, "lanes=2,devices=2");
	count_up(&t, &t.work, &id);
	t_close(&t);
	sim_destroy(NULL);
}

/* One thread submits, another resets the function over and over. */
struct storm {
	struct t_sim *t;
	atomic_bool quit;
};

static void *ring_bells(void *arg)
{
	struct storm *s = arg;
	uint32_t tail = 0;

	while (!atomic_load(&s->quit)) {
		sim_mmio_write(s->t->dev, hw_doorbell(1), 4, ++tail);
		sim_mmio_write(s->t->dev, hw_doorbell(2), 4, tail);
		sim_mmio_read(s->t->dev, HW_REG_STATUS, 4);
		if (tail == T_ENTRIES)
			tail = 0;
	}
	return NULL;
}

static void doorbells_during_resets_do_no_harm(void **state)
{
	struct t_sim t;
	struct storm s = { .t = &t };
	pthread_t thread;

	(void)state;
	t_open(&t, "lanes=1");
	assert_int_equal(pthread_create(&thread, NULL, ring_bells, &s), 0);
	for (unsigned i = 0; i < 100; i++) {
		sim_flr(t.dev);
		t_bring_up(&t);
	}
	atomic_store(&s.quit, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	sim_flr(t.dev);
	t_bring_up(&t);
	assert_int_equal(t_ask(&t, &t.work, nop(1)), 0);
	t_close(&t);
}

/* ---- eight devices at once ---- */

struct one {
	struct t_sim t;
	struct t_program p;
	pthread_t thread;
	int failed;
};

static unsigned await(struct t_sim *t, struct t_ring *r)
{
	int64_t deadline = clock_after(T_ANSWER_NS);

	while (!t_poll(t, r))
		if (clock_ns() > deadline)
			return 0xffff;
	return t->cqe.status;
}

/* Copies, programs, faults and resets; no cmocka here, which is not for threads. */
static void *live(void *arg)
{
	struct one *o = arg;
	struct t_sim *t = &o->t;
	uint32_t id = o->failed;

	o->failed = 0;
	for (unsigned i = 0; i < 150; i++) {
		t_put(t, &t->work, t_execute(t, &o->p, id));
		t_ring_bell(t, &t->work);
		t_put(t, &t->dma, (struct hw_sqe){ .op = HW_COPY,
			.u.copy = { T_HOST_VA, T_HBM_VA + 65536, 5000 } });
		t_ring_bell(t, &t->dma);
		o->failed += await(t, &t->work) != 0;
		o->failed += await(t, &t->dma) != 0;
		o->failed += *word(t, 0) != 100;
		o->failed += memcmp(t->hbm + 65536, t->window, 5000) != 0;
		if (i % 10)
			continue;
		t_put(t, &t->dma, (struct hw_sqe){ .op = 0xee });
		t_ring_bell(t, &t->dma);
		o->failed += await(t, &t->dma) != HW_ST_BAD_DESCRIPTOR;
		t_put(t, &t->admin, (struct hw_sqe){ .op = HW_QUEUE_RESET,
						     .id = (uint16_t)t->dma.id });
		t_ring_bell(t, &t->admin);
		o->failed += await(t, &t->admin) != 0;
	}
	return NULL;
}

static void eight_devices_live_side_by_side(void **state)
{
	struct sim *sim;
	struct one *all = calloc(8, sizeof(*all));

	(void)state;
	assert_non_null(all);
	assert_int_equal(sim_create(&(struct sim_options){ .n_devices = 8, .lanes = 2,
		.hbm_bytes = 16 << 20 }, &sim, NULL), 0);
	assert_int_equal(sim_device_count(sim), 8);
	assert_null(sim_device(sim, 8));
	for (unsigned i = 0; i < 8; i++) {
		struct one *o = &all[i];
		uint32_t id;

		o->t.sim = sim;
		o->t.dev = sim_device(sim, i);
		o->t.host = aligned_alloc(HW_PAGE, T_PAGES * HW_PAGE);
		memset(o->t.host, 0, T_PAGES * HW_PAGE);
		o->t.window = o->t.host + T_WINDOW * HW_PAGE;
		memset(o->t.window, 'a' + (int)i, 8192);
		o->t.hbm = sim_hbm(o->t.dev, &o->t.hbm_bytes);
		assert_int_equal(sim_dma_map(o->t.dev, T_IOVA, o->t.host, T_PAGES * HW_PAGE,
					     true, NULL), 0);
		t_bring_up(&o->t);
		t_program(&o->p);
		t_bind(&o->p, T_HBM_VA, 64, HW_BIND_WRITE);
		t_li(&o->p, 1, 100);
		t_scalar(&o->p, (struct isa_scalar){ .insn.op = ISA_ST, .elem = ELEM_U64,
						     .rb = 1 });
		t_halt(&o->p);
		o->p.flags = i % 2 ? HW_INLINE : 0;
		assert_int_equal(t_load(&o->t, &o->p, &id), 0);
		o->failed = (int)id;
	}
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&all[i].thread, NULL, live, &all[i]), 0);
	for (unsigned i = 0; i < 8; i++) {
		assert_int_equal(pthread_join(all[i].thread, NULL), 0);
		assert_int_equal(all[i].failed, 0);
	}
	sim_destroy(sim);
	for (unsigned i = 0; i < 8; i++)
		free(all[i].t.host);
	free(all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(other_queues_do_not_notice_a_queue_reset),
		cmocka_unit_test(a_context_may_end_while_it_runs),
		cmocka_unit_test(a_program_may_be_forgotten_while_it_runs),
		cmocka_unit_test(a_function_reset_ends_everything_silently),
		cmocka_unit_test(disabling_keeps_the_registers),
		cmocka_unit_test(disabling_heals_nothing),
		cmocka_unit_test(a_model_may_end_while_it_runs),
		cmocka_unit_test(doorbells_during_resets_do_no_harm),
		cmocka_unit_test(eight_devices_live_side_by_side),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
