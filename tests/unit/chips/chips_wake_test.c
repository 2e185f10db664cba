/* SPDX-License-Identifier: Apache-2.0 */
/* Who is woken when another chip raises a semaphore: whoever waits for that, on either engine,
 * also behind others that wait for something else. */
#include <sched.h>

#include "tests/unit/sim/sim_test.h"

#define N 2
#define PEER_VA (1ull << 44)	/* where the other chip's HBM is seen */
#define TURNS 2000
#define INSN (int64_t)sizeof(struct isa_scalar)

static struct t_sim t[N];
static struct t_ring extra[N];	/* a second compute queue */
static struct t_program p;

static int setup(void **state)
{
	(void)state;
	t_open_chips(t, N, "devices=2,lanes=1,hbm=64M");
	for (unsigned i = 0; i < N; i++) {
		struct hw_peer_map m = { .va = PEER_VA, .bytes = t[!i].hbm_bytes, .chip = !i };

		assert_int_equal(t_lend(&t[!i], T_HBM_VA, m.bytes, &m.key), 0);
		assert_int_equal(t_borrow(&t[i], m), 0);
		assert_int_equal(t_queue(&t[i], &extra[i], (struct hw_queue){
			.ctx = (uint16_t)t[i].ctx, .cls = HW_CLASS_COMPUTE,
			.vector = HW_NO_VECTOR }), 0);
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	t_close_chips(t, N);
	return 0;
}

static void raise_other(uint64_t at)
{
	t_scalar(&p, (struct isa_scalar){ .insn.op = ISA_RSIG, .fn = ISA_ALU_ADD, .rb = 1,
					  .elem = ELEM_U64, .binding = 1, .imm = (int64_t)at });
}

static void wait_for(uint64_t at, unsigned rb)
{
	t_scalar(&p, (struct isa_scalar){ .insn.op = ISA_RWAIT, .elem = ELEM_U64,
					  .rb = (uint8_t)rb, .imm = (int64_t)at });
}

/* r1 is 1; binding 0 is the chip's own semaphores, 1 the other's. */
static void begin(void)
{
	t_program(&p);
	t_bind(&p, T_HBM_VA, 128, HW_BIND_READ);
	t_bind(&p, PEER_VA, 128, HW_BIND_WRITE | HW_BIND_PEER);
	t_li(&p, 1, 1);
}

/* Queues p on `ring`, whose table of bindings is page `page` of the window. */
static uint32_t start(struct t_sim *chip, struct t_ring *ring, unsigned page)
{
	struct hw_sqe sqe;
	uint32_t id;

	t_halt(&p);
	assert_int_equal(t_load(chip, &p, &id), 0);
	sqe = t_execute(chip, &p, id);
	memcpy(chip->window + page * HW_PAGE, p.bind, sizeof(p.bind));
	sqe.u.execute.bindings = T_HOST_VA + page * HW_PAGE;
	t_put(chip, ring, sqe);
	t_ring_bell(chip, ring);
	return id;
}

static void await_state(struct t_sim *chip, const struct t_ring *ring, unsigned is)
{
	int64_t deadline = clock_after(T_ANSWER_NS);

	while (t_queue_state(chip, ring->id) != is)
		if (clock_ns() > deadline)
			fail_msg("queue %u is %u, not %u", ring->id,
				 t_queue_state(chip, ring->id), is);
		else
			sched_yield();
}

/* Descriptors of both engines wait for the semaphore at 64, and before them a run for that at
 * 0: both are raised step by step. */
static void each_is_woken_by_what_it_waits_for(void **state)
{
	struct hw_sqe wait = { .op = HW_NOP, .flags = HW_WAIT, .wait_va = T_HBM_VA + 64 };
	uint32_t id, one, other;

	(void)state;
	memset(t[1].hbm, 0, 128);
	begin();
	raise_other(0);
	t_halt(&p);
	assert_int_equal(t_load(&t[0], &p, &one), 0);
	begin();
	raise_other(64);
	t_halt(&p);
	assert_int_equal(t_load(&t[0], &p, &other), 0);
	for (unsigned round = 0; round < 20; round++) {
		wait.wait_value = 3 * (round + 1);
		begin();
		t_li(&p, 2, 2 * (round + 1));
		wait_for(0, 2);
		id = start(&t[1], &t[1].work, 0);
		t_put(&t[1], &extra[1], wait);
		t_ring_bell(&t[1], &extra[1]);
		t_put(&t[1], &t[1].dma, wait);
		t_ring_bell(&t[1], &t[1].dma);
		await_state(&t[1], &t[1].work, HW_QUEUE_PARKED);
		await_state(&t[1], &extra[1], HW_QUEUE_WAITING);
		await_state(&t[1], &t[1].dma, HW_QUEUE_WAITING);
		for (unsigned i = 0; i < 3; i++) {
			assert_false(t_poll(&t[1], &extra[1]) || t_poll(&t[1], &t[1].dma));
			assert_int_equal(t_ask(&t[0], &t[0].work, t_execute(&t[0], &p, other)), 0);
		}
		assert_int_equal(t_take(&t[1], &extra[1]), 0);
		assert_int_equal(t_take(&t[1], &t[1].dma), 0);
		for (unsigned i = 0; i < 2; i++) {
			assert_false(t_poll(&t[1], &t[1].work));
			assert_int_equal(t_ask(&t[0], &t[0].work, t_execute(&t[0], &p, one)), 0);
		}
		assert_int_equal(t_take(&t[1], &t[1].work), 0);
		assert_int_equal(t_unload(&t[1], id), 0);
	}
	t_unload(&t[0], one);
	t_unload(&t[0], other);
}

/* TURNS times: raises the other chip's semaphore and waits until that has raised its own. */
static uint32_t answer(unsigned chip, struct t_ring *ring, uint64_t at, unsigned page)
{
	begin();
	t_li(&p, 2, 1);
	t_li(&p, 3, TURNS);
	raise_other(at);
	wait_for(at, 2);
	t_scalar(&p, (struct isa_scalar){ .insn.op = ISA_ALUI, .fn = ISA_ALU_ADD, .rd = 2,
					  .ra = 2, .imm = 1 });
	t_scalar(&p, (struct isa_scalar){ .insn.op = ISA_ALUI, .fn = ISA_ALU_SUB, .rd = 3,
					  .ra = 3, .imm = 1 });
	t_branch(&p, ISA_BNZ, 3, -4 * INSN);
	return start(&t[chip], ring, page);
}

/* Two pairs of runs at once, so that each chip's engine goes from one to the other. */
static void pairs_wake_their_own(void **state)
{
	uint32_t id[N][2];

	(void)state;
	for (unsigned i = 0; i < N; i++)
		memset(t[i].hbm, 0, 128);
	for (unsigned i = 0; i < N; i++) {
		id[i][0] = answer(i, &t[i].work, 0, 0);
		id[i][1] = answer(i, &extra[i], 64, 1);
	}
	for (unsigned i = 0; i < N; i++) {
		assert_int_equal(t_take(&t[i], &t[i].work), 0);
		assert_int_equal(t_take(&t[i], &extra[i]), 0);
		for (unsigned k = 0; k < 2; k++)
			assert_int_equal(t_unload(&t[i], id[i][k]), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_is_woken_by_what_it_waits_for),
		cmocka_unit_test(pairs_wake_their_own),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
