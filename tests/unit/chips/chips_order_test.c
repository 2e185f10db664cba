/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that stores reach late (struct sim_far): whoever is told of stores, by whichever way, is
 * told after they were sent, and what was fetched before a chip was told of others' is forgotten.
 */
#include "tests/unit/sim/sim_test.h"

#define PEER_VA (1ull << 44)	/* where chip 1's window is seen */
#define SEM 4096u		/* in HBM */
#define ELSEWHERE 8u		/* another word of the host's window */

static struct t_sim t[2];
static struct t_program p;

/* What was there when the model called, and that it did not hold the lock of registers. */
static struct seen { uint64_t remote, near; bool is_completed; } sent[8], forgot[8];
static unsigned n_sent, n_forgot;

static uint64_t *word(unsigned chip, uint64_t at)
{
	return (uint64_t *)(void *)(t[chip].hbm + at);
}

static uint64_t *host_word(uint64_t at)
{
	return (uint64_t *)(void *)(t[0].window + at);
}

static struct seen look(void)
{
	const struct t_ring *r = &t[0].work;
	const struct hw_cqe *c = (const struct hw_cqe *)(void *)
		(t[0].host + (r->page + 1) * HW_PAGE) + r->head % T_ENTRIES;

	assert_true(sim_mmio_read(t[0].dev, HW_REG_STATUS, 4) & HW_STATUS_READY);
	return (struct seen){
		__atomic_load_n(word(1, SEM), __ATOMIC_ACQUIRE),
		__atomic_load_n(host_word(0), __ATOMIC_ACQUIRE),
		(__atomic_load_n(&c->phase, __ATOMIC_ACQUIRE) & 1) ==
			((r->head / T_ENTRIES + 1) & 1) };
}

static void note_send(struct sim_far *far)
{
	(void)far;
	assert_true(n_sent < 8);
	sent[n_sent++] = look();
}

/* What is elsewhere is seen from now on. */
static void note_forget(struct sim_far *far)
{
	(void)far;
	assert_true(n_forgot < 8);
	forgot[n_forgot++] = look();
	++*host_word(ELSEWHERE);
}

static bool holds_nothing(struct sim_far *f, const void *at)
{
	(void)f;
	(void)at;
	return false;
}

static struct sim_far far = { .send = note_send, .forget = note_forget, .holds = holds_nothing };

static int setup(void **state)
{
	struct hw_peer_map m = { .va = PEER_VA, .bytes = 1u << 20, .chip = 1 };

	(void)state;
	t_open_chips(t, 2, "devices=2,lanes=1,hbm=64M");
	assert_int_equal(t_lend(&t[1], T_HBM_VA, m.bytes, &m.key), 0);
	assert_int_equal(t_borrow(&t[0], m), 0);
	sim_set_far(t[0].dev, &far);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	t_close_chips(t, 2);
	return 0;
}

/* The program's word of the peer's, of its own HBM, of the host's. */
static void begin_program(void)
{
	t_program(&p);
	t_bind(&p, PEER_VA, 8192, HW_BIND_WRITE | HW_BIND_PEER);
	t_bind(&p, T_HBM_VA, 8192, HW_BIND_READ | HW_BIND_WRITE);
	t_bind(&p, T_HOST_VA, 64, HW_BIND_READ | HW_BIND_WRITE);
	t_li(&p, 1, 1);
}

static void be_far(bool is_unsent, bool is_kept)
{
	n_sent = n_forgot = 0;
	*word(0, SEM) = *word(1, SEM) = *host_word(0) = *host_word(ELSEWHERE) = 0;
	atomic_store(&far.is_unsent, is_unsent);
	atomic_store(&far.is_kept, is_kept);
}

static void work_sends_before_its_semaphore_and_before_its_completion(void **state)
{
	struct hw_sqe d = { .op = HW_FILL, .flags = HW_SIGNAL, .signal_va = T_HOST_VA,
			    .signal_value = 1, .u.copy = { 5, T_HBM_VA + 65536, 4096 } };

	(void)state;
	for (unsigned is_inline = 0; is_inline < 2; is_inline++) {
		be_far(true, false);
		d.flags = HW_SIGNAL | (is_inline ? HW_INLINE : 0);
		assert_int_equal(t_ask(&t[0], &t[0].work, d), 0);
		assert_int_equal(n_sent, 2);
		assert_true(!sent[0].near && !sent[0].is_completed);
		assert_true(sent[1].near && !sent[1].is_completed);
	}
	/* What fails has stored something, too. */
	be_far(true, false);
	d.signal_va = 8;
	assert_int_equal(t_ask(&t[0], &t[0].work, d), HW_ST_MAP);
	assert_true(n_sent && !sent[0].is_completed);
	assert_int_equal(t_reset(&t[0], &t[0].work), 0);
	/* Nor is anybody called for nothing. */
	be_far(false, false);
	d.signal_va = T_HOST_VA;
	assert_int_equal(t_ask(&t[0], &t[0].work, d), 0);
	assert_int_equal(n_sent + n_forgot, 0);
}

static void a_peer_is_told_after_what_was_stored_was_sent(void **state)
{
	uint32_t id;

	(void)state;
	begin_program();
	t_scalar(&p, (struct isa_scalar){ .insn.op = ISA_RSIG, .fn = ISA_ALU_ADD,
		.elem = ELEM_U64, .binding = 0, .rb = 1, .imm = SEM });
	t_halt(&p);
	be_far(false, false);
	assert_int_equal(t_load(&t[0], &p, &id), 0);
	be_far(true, false);
	assert_int_equal(t_ask(&t[0], &t[0].work, t_execute(&t[0], &p, id)), 0);
	assert_int_equal(n_sent, 3);
	assert_true(!sent[0].remote && sent[1].remote && !sent[1].is_completed);
	assert_int_equal(*word(1, SEM), 1);
	be_far(false, false);
	assert_int_equal(t_unload(&t[0], id), 0);
}

/* By a descriptor's semaphore, and by one that an RWAIT finds. */
static void who_was_told_forgets_what_was_fetched(void **state)
{
	struct hw_sqe d = { .op = HW_COPY, .flags = HW_WAIT, .wait_va = T_HBM_VA + SEM,
			    .wait_value = 1, .u.copy = { T_HOST_VA + ELSEWHERE,
							 T_HOST_VA + 16, 8 } };
	uint32_t id;

	(void)state;
	be_far(false, true);
	*word(0, SEM) = 1;
	assert_int_equal(t_ask(&t[0], &t[0].work, d), 0);
	assert_int_equal(n_forgot, 1);
	assert_int_equal(*host_word(16), 1);
	begin_program();
	t_scalar(&p, (struct isa_scalar){ .insn.op = ISA_RWAIT, .elem = ELEM_U64, .binding = 1,
		.rb = 1, .imm = SEM });
	t_scalar(&p, (struct isa_scalar){ .insn.op = ISA_LD, .elem = ELEM_U64, .binding = 2,
		.rd = 2, .imm = ELSEWHERE });
	t_scalar(&p, (struct isa_scalar){ .insn.op = ISA_ST, .elem = ELEM_U64, .binding = 2,
		.rb = 2, .imm = 16 });
	t_halt(&p);
	be_far(false, false);
	assert_int_equal(t_load(&t[0], &p, &id), 0);
	be_far(false, true);
	*word(0, SEM) = 1;
	*host_word(16) = 0;
	assert_int_equal(t_ask(&t[0], &t[0].work, t_execute(&t[0], &p, id)), 0);
	assert_int_equal(n_forgot, 1);
	assert_int_equal(*host_word(16), 1);
	be_far(false, false);
	assert_int_equal(t_unload(&t[0], id), 0);
}

static void requests_send_before_they_are_answered(void **state)
{
	(void)state;
	be_far(true, false);
	assert_int_equal(t_admin(&t[0], HW_NOP, 0, 0), 0);
	assert_int_equal(n_sent, 1);
	be_far(false, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(work_sends_before_its_semaphore_and_before_its_completion),
		cmocka_unit_test(a_peer_is_told_after_what_was_stored_was_sent),
		cmocka_unit_test(who_was_told_forgets_what_was_fetched),
		cmocka_unit_test(requests_send_before_they_are_answered),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
