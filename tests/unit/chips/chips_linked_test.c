/* SPDX-License-Identifier: Apache-2.0 */
/* Chips that are linked: the torus, windows, RPUT, RSIG and RWAIT, runs that are parked, and
 * what a chip that fails does to the others. */
#include <pthread.h>
#include <sched.h>

#include "tests/unit/chips/chips.h"

#define SECOND 1000000000ll

/* ---- the torus ---- */

static struct hw_identify identify(unsigned chip)
{
	struct hw_identify id;

	assert_int_equal(t_admin(&t[chip], HW_IDENTIFY, 0, 0), 0);
	memcpy(&id, t_args(&t[chip]), sizeof(id));
	return id;
}

static unsigned links(unsigned chip, struct hw_link *out)
{
	unsigned n;

	assert_int_equal(t_admin(&t[chip], HW_LOG_PAGE, HW_LOG_LINKS, 0), 0);
	n = (unsigned)(t[chip].cqe.value / sizeof(*out));
	memcpy(out, t_args(&t[chip]), n * sizeof(*out));
	return n;
}

static void chips_of_a_model_are_a_torus(void **state)
{
	uint64_t fabric = identify(0).fabric;

	(void)state;
	assert_true(fabric);
	for (unsigned i = 0; i < N; i++) {
		struct hw_identify id = identify(i);
		struct hw_link l[HW_MAX_LINKS];

		assert_true(id.fabric == fabric);
		assert_int_equal(id.chip, i);
		assert_int_equal(id.n_chips, N);
		assert_int_equal(id.shape[0] * 100 + id.shape[1] * 10 + id.shape[2], 421);
		assert_int_equal(id.coords[0] + 4 * id.coords[1], i);
		assert_int_equal(id.coords[2], 0);
		/* both ways along 4, one way along 2 */
		assert_int_equal(links(i, l), 3);
		assert_int_equal(l[0].peer, (i & 4) | ((i + 1) & 3));
		assert_int_equal(l[1].peer, (i & 4) | ((i + 3) & 3));
		assert_int_equal(l[2].peer, i ^ 4);
		assert_int_equal(l[1].is_down, 1);
		assert_int_equal(l[2].dim, 1);
		for (unsigned k = 0; k < 3; k++)
			assert_int_equal(l[k].is, HW_LINK_UP);
	}
}

static void one_chip_has_no_links(void **state)
{
	static struct t_sim one;
	struct hw_window w = { T_HBM_VA, 4096 };

	(void)state;
	t_open(&one, "lanes=1");
	memcpy(t_args(&one), &w, sizeof(w));
	assert_int_equal(t_admin(&one, HW_WINDOW_OPEN, one.ctx, 0), HW_ST_NOT_BUILT);
	assert_int_equal(t_admin(&one, HW_PEER_MAP, one.ctx, 0), HW_ST_NOT_BUILT);
	assert_int_equal(t_admin(&one, HW_LOG_PAGE, HW_LOG_LINKS, 0), 0);
	assert_int_equal(one.cqe.value, 0);
	t_close(&one);
}

/* ---- windows ---- */

static void windows_are_lent_by_key_and_taken_back(void **state)
{
	struct hw_peer_map m = { .va = 1ull << 46, .bytes = 4096, .chip = 1 };
	uint64_t got, other;

	(void)state;
	assert_int_equal(lend(1, T_HBM_VA + 64, 4096, &got), HW_ST_BAD_FIELD);
	assert_int_equal(lend(1, T_HBM_VA, 0, &got), HW_ST_BAD_FIELD);
	assert_int_equal(lend(1, T_HBM_VA - 4096, 8192, &got), HW_ST_BAD_ADDRESS);
	assert_int_equal(lend(1, T_HOST_VA, 4096, &got), HW_ST_BAD_ADDRESS);
	assert_int_equal(lend(1, peer_va(0), 4096, &got), HW_ST_BAD_ADDRESS);
	assert_int_equal(lend(1, T_HBM_VA + 4096, 8192, &got), 0);
	assert_int_equal(lend(1, T_HBM_VA + 4096, 8192, &other), 0);
	assert_true(got != other);
	m.key = got;
	assert_int_equal(peer_map(2, (struct hw_peer_map){ .va = 1, .bytes = 4096, .key = got,
							   .chip = 1 }), HW_ST_BAD_FIELD);
	m.offset = 8192;
	assert_int_equal(peer_map(2, m), HW_ST_BAD_FIELD);
	m.offset = 4096;
	m.bytes = 8192;
	assert_int_equal(peer_map(2, m), HW_ST_BAD_FIELD);
	m.bytes = 4096;
	m.chip = 3;
	assert_int_equal(peer_map(2, m), HW_ST_NO_SUCH_ID);
	m.chip = 99;
	assert_int_equal(peer_map(2, m), HW_ST_NO_SUCH_ID);
	m.chip = 1;
	m.key++;
	assert_int_equal(peer_map(2, m), HW_ST_NO_SUCH_ID);
	m.key--;
	assert_int_equal(peer_map(2, m), 0);
	assert_int_equal(peer_map(2, m), HW_ST_OVERLAP);
	/* lent memory stays mapped */
	assert_int_equal(t_unmap(&t[1], t[1].ctx, T_HBM_VA), HW_ST_BUSY);
	assert_int_equal(t_admin(&t[1], HW_WINDOW_CLOSE, 0, got), 0);
	assert_int_equal(t_admin(&t[1], HW_WINDOW_CLOSE, 0, got), HW_ST_NO_SUCH_ID);
	assert_int_equal(t_admin(&t[1], HW_WINDOW_CLOSE, 0, other), 0);
	assert_int_equal(t_unmap(&t[2], t[2].ctx, m.va), 0);
	assert_int_equal(peer_map(2, m), HW_ST_NO_SUCH_ID);
}

/* ---- programs ---- */

static unsigned refused(struct isa_scalar s, unsigned access)
{
	uint32_t id;

	t_program(&p);
	t_bind(&p, access & HW_BIND_PEER ? peer_va(1) : T_HBM_VA, 64, access);
	t_scalar(&p, s);
	t_halt(&p);
	return t_load(&t[0], &p, &id);
}

static void only_link_instructions_name_peers(void **state)
{
	const unsigned own = HW_BIND_READ | HW_BIND_WRITE, peer = HW_BIND_WRITE | HW_BIND_PEER;
	struct isa_scalar rsig = { .insn.op = ISA_RSIG, .elem = ELEM_U64 };
	struct isa_scalar rwait = { .insn.op = ISA_RWAIT, .elem = ELEM_U64 };
	uint32_t id;

	(void)state;
	assert_int_equal(refused(rsig, peer), 0);
	assert_int_equal(refused(rwait, own), 0);
	assert_int_equal(refused(rsig, own), HW_ST_BAD_PROGRAM);
	assert_int_equal(refused(rwait, peer), HW_ST_BAD_PROGRAM);
	assert_int_equal(refused((struct isa_scalar){ .insn.op = ISA_ST, .elem = ELEM_U64 }, peer),
			 HW_ST_BAD_PROGRAM);
	assert_int_equal(refused((struct isa_scalar){ .insn.op = ISA_LD, .elem = ELEM_U64 }, peer),
			 HW_ST_BAD_PROGRAM);
	rsig.imm = 4;
	assert_int_equal(refused(rsig, peer), HW_ST_BAD_PROGRAM);
	rsig.imm = 64;
	assert_int_equal(refused(rsig, peer), HW_ST_BAD_PROGRAM);
	rsig.imm = 0;
	rsig.fn = ISA_ALU_SUB;
	assert_int_equal(refused(rsig, peer), HW_ST_BAD_PROGRAM);
	rsig.fn = ISA_ALU_MAX;
	assert_int_equal(refused(rsig, peer), 0);
	rsig.elem = rwait.elem = ELEM_U32;
	assert_int_equal(refused(rsig, peer), HW_ST_BAD_PROGRAM);
	assert_int_equal(refused(rwait, own), HW_ST_BAD_PROGRAM);
	/* COPY to a peer, RPUT to none, a peer that is read */
	for (unsigned i = 0; i < 3; i++) {
		code.bytes = 0;
		ring_copy(&code, i ? ISA_RPUT : ISA_COPY, i == 2, 0, i != 1, 0, 4);
		t_program(&p);
		t_bind(&p, T_HBM_VA, 64, own);
		t_bind(&p, peer_va(1), 64, i == 1 ? own : peer);
		t_add(&p, code.text, code.bytes);
		t_halt(&p);
		assert_int_equal(t_load(&t[0], &p, &id), HW_ST_BAD_PROGRAM);
	}
}

static void bindings_of_peers_lie_in_windows(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		t_program(&p);
		t_bind(&p, i == 0 ? T_HBM_VA : i == 1 ? peer_va(2) + t[2].hbm_bytes - 64 :
		       peer_va(2), i == 1 ? 128 : 64, i == 2 ? HW_BIND_WRITE :
		       HW_BIND_WRITE | HW_BIND_PEER);
		t_halt(&p);
		assert_int_equal(t_run(&t[0], &p), HW_ST_MAP);
	}
	/* the tables of bindings, semaphores, ends of copies: nothing else goes there */
	assert_int_equal(t_ask(&t[0], &t[0].work, (struct hw_sqe){ .op = HW_NOP,
		.flags = HW_SIGNAL, .signal_va = peer_va(1), .signal_value = 1 }), HW_ST_MAP);
	assert_int_equal(t_reset(&t[0], &t[0].work), 0);
	assert_int_equal(t_ask(&t[0], &t[0].dma, (struct hw_sqe){ .op = HW_COPY,
		.u.copy = { peer_va(1), T_HBM_VA, 64 } }), HW_ST_MAP);
	assert_int_equal(t_reset(&t[0], &t[0].dma), 0);
	join(N);	/* the first program's fault broke chip 0's window */
}

static void a_semaphore_of_host_memory_is_refused(void **state)
{
	(void)state;
	t_program(&p);
	t_bind(&p, T_HOST_VA, 64, HW_BIND_READ);
	t_scalar(&p, (struct isa_scalar){ .insn.op = ISA_RWAIT, .elem = ELEM_U64 });
	t_halt(&p);
	assert_int_equal(t_run(&t[0], &p), HW_ST_BINDING);
}

/* Chip 3 puts a transposed block and signals; chip 5 waits, and notes what it saw. */
static void puts_are_there_when_the_signal_is(void **state)
{
	struct isa_copy k = { .insn = { .op = ISA_RPUT, .bytes = sizeof(k) }, .rank = 2,
			      .elem_bytes = 4, .dim = { 40, 24, 1, 1, 1, 1, 1, 1 },
			      .src = { .binding = 0, .stride = { 4, 160 } },
			      .dst = { .binding = 1, .offset = 128, .stride = { 96, 4 } } };
	struct t_sim *from = &t[3], *to = &t[5];
	uint32_t id;

	(void)state;
	memset(to->hbm + DATA, 0, 8192);
	for (unsigned i = 0; i < 40 * 24; i++)
		((uint32_t *)(from->hbm + DATA))[i] = i;
	*word(5, DATA + 8) = 7;
	t_program(&p);
	t_bind(&p, T_HBM_VA + DATA, 8192, HW_BIND_READ | HW_BIND_WRITE);
	t_li(&p, 1, 9);
	t_scalar(&p, (struct isa_scalar){ .insn.op = ISA_RWAIT, .elem = ELEM_U64, .imm = 8,
					  .rb = 1, .rd = 2 });
	t_scalar(&p, (struct isa_scalar){ .insn.op = ISA_LD, .elem = ELEM_U32, .rd = 3,
					  .imm = 128 + 4 * (40 * 24 - 1) });
	t_scalar(&p, (struct isa_scalar){ .insn.op = ISA_ST, .elem = ELEM_U64, .rb = 2,
					  .imm = 16 });
	t_scalar(&p, (struct isa_scalar){ .insn.op = ISA_ST, .elem = ELEM_U64, .rb = 3,
					  .imm = 24 });
	t_halt(&p);
	assert_int_equal(t_load(to, &p, &id), 0);
	t_put(to, &to->work, execute(to, &p, id));
	t_ring_bell(to, &to->work);
	t_program(&p);
	t_bind(&p, T_HBM_VA + DATA, 8192, HW_BIND_READ);
	t_bind(&p, peer_va(5) + DATA, 8192, HW_BIND_WRITE | HW_BIND_PEER);
	t_add(&p, &k, sizeof(k));
	t_li(&p, 1, 8);
	/* 7 is less than 8, which becomes 9 by 1; 3 changes nothing */
	t_scalar(&p, (struct isa_scalar){ .insn.op = ISA_RSIG, .fn = ISA_ALU_MAX, .rb = 1,
					  .elem = ELEM_U64, .binding = 1, .imm = 8 });
	t_li(&p, 1, 1);
	t_scalar(&p, (struct isa_scalar){ .insn.op = ISA_RSIG, .fn = ISA_ALU_ADD, .rb = 1,
					  .elem = ELEM_U64, .binding = 1, .imm = 8 });
	t_li(&p, 1, 3);
	t_scalar(&p, (struct isa_scalar){ .insn.op = ISA_RSIG, .fn = ISA_ALU_MAX, .rb = 1,
					  .elem = ELEM_U64, .binding = 1, .imm = 8 });
	t_halt(&p);
	assert_int_equal(t_run(from, &p), 0);
	assert_int_equal(t_take(to, &to->work), 0);
	assert_int_equal(*word(5, DATA + 8), 9);
	assert_int_equal(*word(5, DATA + 16), 9);
	assert_int_equal(*word(5, DATA + 24), 40 * 24 - 1);
	for (unsigned i = 0; i < 40; i++)
		for (unsigned j = 0; j < 24; j++)
			assert_int_equal(((uint32_t *)(to->hbm + DATA + 128))[i * 24 + j],
					 j * 40 + i);
	t_unload(to, id);
}

static void links_count_what_they_carry(void **state)
{
	struct hw_link before[N][HW_MAX_LINKS], l[HW_MAX_LINKS];
	/* from 0 to 6: down along 4 twice is as far as up, and up goes first; then across */
	static const struct { unsigned chip, port, tx, rx; } want[] = {
		{ 0, 0, 1, 0 }, { 0, 1, 0, 0 }, { 0, 2, 0, 0 }, { 1, 0, 1, 0 }, { 1, 1, 0, 1 },
		{ 2, 1, 0, 1 }, { 2, 2, 1, 0 }, { 6, 2, 0, 1 }, { 6, 0, 0, 0 }, { 7, 0, 0, 0 },
	};

	(void)state;
	for (unsigned i = 0; i < N; i++)
		links(i, before[i]);
	assert_int_equal(t_ask(&t[0], &t[0].dma, (struct hw_sqe){ .op = HW_COPY,
		.u.copy = { T_HBM_VA + DATA, peer_va(6) + DATA, 1000 } }), 0);
	for (unsigned i = 0; i < sizeof(want) / sizeof(*want); i++) {
		const struct hw_link *old = &before[want[i].chip][want[i].port];

		links(want[i].chip, l);
		assert_int_equal(l[want[i].port].tx_bytes - old->tx_bytes, 1000 * want[i].tx);
		assert_int_equal(l[want[i].port].rx_bytes - old->rx_bytes, 1000 * want[i].rx);
		assert_int_equal(l[want[i].port].n_packets - old->n_packets, want[i].tx);
	}
}

/* ---- programs that meet ---- */

static void sums_go_round(void **state)
{
	static const unsigned sizes[] = { 2, 4, 8, 3 };
	static const uint64_t elements[] = { 24, 2400, 240000 };

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		for (unsigned k = 0; k < 3; k++) {
			struct meeting m = { .n = sizes[i], .elements = elements[k] };

			prepare(&m, ring_all_reduce);
			for (unsigned turn = 0; turn < (k < 2 ? 40 : 3); turn++)
				meet(&m, turn);
			unload(&m);
		}
}

/* Sums of more than most CPUs' caches hold, so that puts go past them: all is there when the
 * signal is. */
static void large_sums_go_round(void **state)
{
	struct meeting m = { .n = N, .elements = 1 << 20 };

	(void)state;
	prepare(&m, ring_all_reduce);
	for (unsigned turn = 0; turn < 3; turn++)
		meet(&m, turn);
	unload(&m);
}

static void all_meet_all(void **state)
{
	struct meeting m = { .n = N, .elements = 512 };

	(void)state;
	prepare(&m, ring_all_pairs);
	for (unsigned turn = 0; turn < 100; turn++)
		meet(&m, turn);
	unload(&m);
}

/* Several runs queued at once: fast chips are held back by the semaphores alone. */
static void runs_queue_up(void **state)
{
	struct meeting m = { .n = N, .elements = 256 };

	(void)state;
	prepare(&m, ring_all_reduce);
	memset(t[0].hbm + DATA, 0, 1024);
	for (unsigned r = 0; r < N; r++)
		memset(t[r].hbm + DATA, 0, 1024);
	for (unsigned r = 0; r < N; r++)
		for (unsigned i = 0; i < 10; i++)
			begin(&m, r);
	for (unsigned r = 0; r < N; r++)
		for (unsigned i = 0; i < 10; i++)
			assert_int_equal(t_take(&t[r], &t[r].work), 0);
	unload(&m);
}

/* ---- runs that are parked ---- */

/* Waits on `chip` until the 8 bytes at DATA reach 5, then adds r1 = 11 to those behind. The
 * peer is so that the chip belongs to a meeting. */
static uint32_t wait_on(unsigned chip, struct t_ring *ring, unsigned peer, uint64_t limit_ns)
{
	struct hw_sqe sqe;
	uint32_t id;

	t_program(&p);
	p.limit_ns = limit_ns;
	t_bind(&p, T_HBM_VA + DATA, 64, HW_BIND_READ | HW_BIND_WRITE);
	t_bind(&p, T_HOST_VA, 64, HW_BIND_READ | HW_BIND_WRITE);
	t_bind(&p, peer_va(peer) + DATA + 4096, 64, HW_BIND_WRITE | HW_BIND_PEER);
	t_li(&p, 1, 11);
	t_li(&p, 2, 5);
	t_scalar(&p, (struct isa_scalar){ .insn.op = ISA_RWAIT, .elem = ELEM_U64, .rb = 2 });
	t_scalar(&p, (struct isa_scalar){ .insn.op = ISA_ST, .elem = ELEM_U64, .rb = 1,
					  .imm = 8 });
	t_scalar(&p, (struct isa_scalar){ .insn.op = ISA_ST, .elem = ELEM_U64, .rb = 1,
					  .binding = 1 });
	t_halt(&p);
	*word(chip, DATA) = *word(chip, DATA + 8) = 0;
	memset(t[chip].window, 0, 64);
	assert_int_equal(t_load(&t[chip], &p, &id), 0);
	sqe = execute(&t[chip], &p, id);
	t_put(&t[chip], ring, sqe);
	t_ring_bell(&t[chip], ring);
	return id;
}

static struct hw_queue_state state_of(unsigned chip, const struct t_ring *ring)
{
	struct hw_queue_state s;

	assert_int_equal(t_admin(&t[chip], HW_LOG_PAGE, HW_LOG_QUEUES, 0), 0);
	for (uint64_t at = 0; at < t[chip].cqe.value; at += sizeof(s)) {
		memcpy(&s, (uint8_t *)t_args(&t[chip]) + at, sizeof(s));
		if (s.queue == ring->id)
			return s;
	}
	fail_msg("queue %u is not there", ring->id);
	return s;
}

static void await_parked(unsigned chip, const struct t_ring *ring)
{
	int64_t deadline = clock_after(T_ANSWER_NS);

	while (state_of(chip, ring).is != HW_QUEUE_PARKED)
		if (clock_ns() > deadline)
			fail_msg("chip %u's queue is not parked", chip);
		else
			sched_yield();
}

/* Chip `from` raises the semaphore that wait_on(to) waits for, by its links. */
static void raise(unsigned from, unsigned to)
{
	t_program(&p);
	t_bind(&p, peer_va(to) + DATA, 64, HW_BIND_WRITE | HW_BIND_PEER);
	t_li(&p, 1, 5);
	t_scalar(&p, (struct isa_scalar){ .insn.op = ISA_RSIG, .fn = ISA_ALU_ADD, .rb = 1,
					  .elem = ELEM_U64 });
	t_halt(&p);
	assert_int_equal(t_run(&t[from], &p), 0);
}

static void a_parked_run_leaves_its_engine(void **state)
{
	struct hw_telemetry a, b;
	struct t_ring other;
	uint32_t id, id2;

	(void)state;
	assert_int_equal(t_queue(&t[1], &other, (struct hw_queue){ .ctx = (uint16_t)t[1].ctx,
		.cls = HW_CLASS_COMPUTE, .vector = HW_NO_VECTOR }), 0);
	id = wait_on(1, &t[1].work, 2, 0);
	await_parked(1, &t[1].work);
	assert_int_equal(t_admin(&t[1], HW_LOG_PAGE, HW_LOG_TELEMETRY, 0), 0);
	memcpy(&a, t_args(&t[1]), sizeof(a));
	/* another run on the same engine, which is bound to other memory */
	t_program(&p);
	t_bind(&p, T_HBM_VA + MAILBOX, 64, HW_BIND_READ | HW_BIND_WRITE);
	t_li(&p, 1, 77);
	t_scalar(&p, (struct isa_scalar){ .insn.op = ISA_ST, .elem = ELEM_U64, .rb = 1 });
	t_halt(&p);
	assert_int_equal(t_load(&t[1], &p, &id2), 0);
	assert_int_equal(t_ask(&t[1], &other, execute(&t[1], &p, id2)), 0);
	assert_int_equal(*word(1, MAILBOX), 77);
	assert_int_equal(*word(1, DATA + 8), 0);
	/* the parked one's program may go, its memory not */
	assert_int_equal(t_unload(&t[1], id), 0);
	assert_int_equal(t_unmap(&t[1], t[1].ctx, T_HOST_VA), HW_ST_BUSY);
	assert_int_equal(t_unmap(&t[1], t[1].ctx, peer_va(2)), HW_ST_BUSY);
	assert_int_equal(t_admin(&t[1], HW_LOG_PAGE, HW_LOG_TELEMETRY, 0), 0);
	memcpy(&b, t_args(&t[1]), sizeof(b));
	/* an engine without a run is not busy */
	assert_true(b.busy_compute_ns - a.busy_compute_ns < (b.time_ns - a.time_ns) / 2);
	raise(0, 1);
	assert_int_equal(t_take(&t[1], &t[1].work), 0);
	assert_int_equal(*word(1, DATA + 8), 11);
	assert_int_equal(*(uint64_t *)(void *)t[1].window, 11);
	t_unload(&t[1], id2);
	assert_int_equal(t_admin(&t[1], HW_QUEUE_DESTROY, other.id, 0), 0);
}

/* Functions of one card take turns; one that waits does not keep the turn. It has no links, so
 * what it waits for is the host's. */
static void a_parked_run_gives_its_turn_back(void **state)
{
	struct t_sim f[2];
	struct sim *sim;
	struct err err;
	uint32_t id, id2;

	(void)state;
	assert_int_equal(sim_create(&(struct sim_options){ .n_functions = 2, .lanes = 1,
		.hbm_bytes = 128 << 20 }, &sim, &err), 0);
	t_attach(&f[0], sim_function(sim, 0, 0));
	t_attach(&f[1], sim_function(sim, 0, 1));
	t_program(&p);
	t_bind(&p, T_HBM_VA, 64, HW_BIND_READ);
	t_li(&p, 1, 5);
	t_scalar(&p, (struct isa_scalar){ .insn.op = ISA_RWAIT, .elem = ELEM_U64, .rb = 1 });
	t_halt(&p);
	assert_int_equal(t_load(&f[0], &p, &id), 0);
	for (unsigned i = 0; i < 3; i++) {
		*(uint64_t *)(void *)f[0].hbm = 0;
		t_put(&f[0], &f[0].work, execute(&f[0], &p, id));
		t_ring_bell(&f[0], &f[0].work);
		t_program(&p);
		t_bind(&p, T_HBM_VA, 64, HW_BIND_READ);
		t_halt(&p);
		assert_int_equal(t_load(&f[1], &p, &id2), 0);
		for (unsigned k = 0; k < 20; k++)
			assert_int_equal(t_ask(&f[1], &f[1].work, execute(&f[1], &p, id2)), 0);
		assert_false(t_poll(&f[0], &f[0].work));
		__atomic_store_n((uint64_t *)(void *)f[0].hbm, 5, __ATOMIC_RELEASE);
		t_ring_bell(&f[0], &f[0].work);
		assert_int_equal(t_take(&f[0], &f[0].work), 0);
	}
	sim_destroy(sim);
	free(f[0].host);
	free(f[1].host);
}

static void memory_that_goes_meanwhile_faults_the_run(void **state)
{
	struct err err;
	uint8_t *more = aligned_alloc(HW_PAGE, HW_PAGE);
	uint32_t id;

	(void)state;
	assert_non_null(more);
	assert_int_equal(sim_dma_map(t[1].dev, 1ull << 30, more, HW_PAGE, true, &err), 0);
	assert_int_equal(t_unmap(&t[1], t[1].ctx, T_HOST_VA), 0);
	assert_int_equal(t_map(&t[1], t[1].ctx, T_HOST_VA, 1ull << 30, HW_PAGE,
			       HW_MAP_WRITE | HW_MAP_HOST), 0);
	assert_int_equal(t_map(&t[1], t[1].ctx, T_HOST_VA + HW_PAGE,
			       T_IOVA + (T_WINDOW + 1) * HW_PAGE, (T_WINDOW_PAGES - 1) * HW_PAGE,
			       HW_MAP_WRITE | HW_MAP_HOST), 0);
	id = wait_on(1, &t[1].work, 2, 0);
	await_parked(1, &t[1].work);
	assert_int_equal(sim_dma_unmap(t[1].dev, 1ull << 30, &err), 0);
	free(more);
	raise(0, 1);
	assert_int_equal(t_take(&t[1], &t[1].work), HW_ST_MAP);
	t_last_fault(&t[1]);
	assert_int_equal(t[1].fault.binding, 1);
	assert_int_equal(*word(1, DATA + 8), 0);
	assert_int_equal(t_reset(&t[1], &t[1].work), 0);
	t_unload(&t[1], id);
	assert_int_equal(t_unmap(&t[1], t[1].ctx, T_HOST_VA), 0);
	assert_int_equal(t_unmap(&t[1], t[1].ctx, T_HOST_VA + HW_PAGE), 0);
	assert_int_equal(t_map(&t[1], t[1].ctx, T_HOST_VA, T_IOVA + T_WINDOW * HW_PAGE,
			       T_WINDOW_PAGES * HW_PAGE, HW_MAP_WRITE | HW_MAP_HOST), 0);
	join(N);
}

static void a_watchdog_ends_a_parked_run(void **state)
{
	int64_t began = clock_ns();
	uint32_t id = wait_on(1, &t[1].work, 2, 20000000);

	(void)state;
	assert_int_equal(t_take(&t[1], &t[1].work), HW_ST_WATCHDOG);
	assert_true(clock_ns() - began >= 20000000);
	assert_int_equal(t_reset(&t[1], &t[1].work), 0);
	t_unload(&t[1], id);
	join(N);
}

static void resets_end_parked_runs(void **state)
{
	uint32_t id = wait_on(1, &t[1].work, 2, 0);
	struct t_ring other;

	(void)state;
	await_parked(1, &t[1].work);
	assert_int_equal(t_reset(&t[1], &t[1].work), 0);
	assert_int_equal(t_take(&t[1], &t[1].work), HW_ST_RESET);
	t_unload(&t[1], id);
	assert_int_equal(t_queue(&t[1], &other, (struct hw_queue){ .ctx = (uint16_t)t[1].ctx,
		.cls = HW_CLASS_COMPUTE, .vector = HW_NO_VECTOR }), 0);
	wait_on(1, &other, 2, 0);
	await_parked(1, &other);
	assert_int_equal(t_admin(&t[1], HW_QUEUE_DESTROY, other.id, 0), 0);
	assert_int_equal(t_take(&t[1], &other), HW_ST_RESET);
	/* and one that is parked when the model goes is the last test's */
	join(N);
}

/* ---- chips that fail ---- */

enum how { FATAL, FLR, DISABLE, QUEUE_RESET, CTX_DESTROY, TRAP, REFUSED, HUNG, CLOSED, N_HOW };

static void bring_back(unsigned chip, enum how how)
{
	if (how >= TRAP || how == QUEUE_RESET) {
		assert_int_equal(t_reset(&t[chip], &t[chip].work), 0);
	} else {
		sim_flr(t[chip].dev);
		t_bring_up(&t[chip]);
	}
}

static void strike(unsigned chip, enum how how)
{
	switch (how) {
	case FATAL: t_admin(&t[chip], HW_INJECT, HW_INJECT_FATAL, 0); break;
	case FLR: sim_flr(t[chip].dev); break;
	case DISABLE: sim_mmio_write(t[chip].dev, HW_REG_CTRL, 4, 0); break;
	case QUEUE_RESET: case HUNG: t_reset(&t[chip], &t[chip].work); break;
	case CTX_DESTROY: t_admin(&t[chip], HW_CTX_DESTROY, t[chip].ctx, 0); break;
	case CLOSED: t_admin(&t[chip], HW_WINDOW_CLOSE, 0, key[chip]); break;
	default: break;
	}
}

static const uint16_t broken_as[N_HOW] = {
	[FATAL] = HW_ST_DEVICE_FATAL, [FLR] = HW_ST_RESET, [DISABLE] = HW_ST_RESET,
	[QUEUE_RESET] = HW_ST_RESET, [CTX_DESTROY] = HW_ST_RESET, [TRAP] = HW_ST_PROGRAM_TRAP,
	[REFUSED] = HW_ST_BAD_DESCRIPTOR, [HUNG] = HW_ST_RESET, [CLOSED] = HW_ST_RESET,
};

static void trap(struct ring_code *c)
{
	ring_begin(c, 0);
	ring_scalar(c, ISA_TRAP, (struct isa_scalar){ .imm = 5 });
}

/* Returns when it runs, which moves nothing. */
static void begin_to_hang(const struct meeting *m, unsigned r)
{
	assert_int_equal(t_admin(&t[r], HW_INJECT, HW_INJECT_HANG, HW_CLASS_COMPUTE), 0);
	begin(m, r);
	while (t_queue_state(&t[r], t[r].work.id) != HW_QUEUE_RUNNING)
		;
}

/* By a PEER_MAP of what lies past a window's end it is told whether the window is whole, also to
 * who sees it already: nothing is mapped. */
static void expect_whole(unsigned chip, bool is_whole)
{
	assert_int_equal(peer_map(!chip, (struct hw_peer_map){
		.va = peer_va(chip), .offset = t[chip].hbm_bytes, .bytes = HW_PAGE,
		.key = key[chip], .chip = chip }), is_whole ? HW_ST_BAD_FIELD : HW_ST_NO_SUCH_ID);
}

/* A chip fails while all others wait for it: each of them hears within a second, by its name
 * and reason, whether it was to write to that chip or not. Then all are joined again, and
 * meet. */
static void a_failing_chip_fails_its_peers_by_name(void **state)
{
	struct meeting m = { .n = N, .elements = 4096 };

	(void)state;
	for (enum how how = FATAL; how < N_HOW; how++) {
		unsigned dead = 3 + how % 3;
		int64_t began;

		prepare(&m, ring_all_reduce);
		for (unsigned turn = 0; turn < 3; turn++)
			meet(&m, turn);
		if (how == TRAP) {
			struct meeting bad = m;

			prepare(&bad, trap);
			prepare(&m, ring_all_reduce);
			m.sqe[dead] = bad.sqe[dead];
		}
		if (how == REFUSED)
			m.sqe[dead].id = 1;
		for (unsigned r = 0; r < N; r++)
			if (r != dead)
				begin(&m, r);
		for (unsigned r = 0; r < N; r++)
			if (r != dead)
				await_parked(r, &t[r].work);
		if (how == QUEUE_RESET) {
			wait_on(dead, &t[dead].work, 0, 0);
			await_parked(dead, &t[dead].work);
		}
		if (how == HUNG)
			begin_to_hang(&m, dead);
		expect_whole(dead, true);
		began = clock_ns();
		if (how == TRAP || how == REFUSED)
			begin(&m, dead);
		else
			strike(dead, how);
		for (unsigned r = 0; r < N; r++) {
			if (r == dead)
				continue;
			assert_int_equal(t_take(&t[r], &t[r].work), HW_ST_PEER);
			t_last_fault(&t[r]);
			assert_int_equal(t[r].fault.va, dead);
			assert_int_equal(t[r].fault.bytes, broken_as[how]);
		}
		assert_true(clock_ns() - began < 5 * SECOND);
		for (unsigned r = 0; r < N; r++)
			expect_whole(r, false);
		for (unsigned r = 0; r < N; r++)
			if (r != dead)
				assert_int_equal(t_reset(&t[r], &t[r].work), 0);
		if (how == QUEUE_RESET || (how >= TRAP && how < CLOSED))
			assert_int_equal(t_take(&t[dead], &t[dead].work), broken_as[how]);
		bring_back(dead, how);
		join(N);
		prepare(&m, ring_all_reduce);
		for (unsigned turn = 0; turn < 3; turn++)
			meet(&m, turn);
		unload(&m);
	}
}

/* What was queued for a broken window fails too, and by the same name. */
static void later_work_for_a_failed_chip_fails(void **state)
{
	struct meeting m = { .n = 4, .elements = 256 };
	struct hw_link l[HW_MAX_LINKS];
	uint64_t errors;

	(void)state;
	prepare(&m, ring_all_reduce);
	sim_flr(t[2].dev);
	links(1, l);
	assert_int_equal(l[0].is, HW_LINK_PEER_OFF);
	errors = l[0].n_errors;
	assert_int_equal(t_ask(&t[1], &t[1].dma, (struct hw_sqe){ .op = HW_COPY,
		.u.copy = { T_HBM_VA, peer_va(2), 4096 } }), HW_ST_PEER);
	t_last_fault(&t[1]);
	assert_int_equal(t[1].fault.va, 2);
	assert_int_equal(t_reset(&t[1], &t[1].dma), 0);
	links(1, l);
	assert_int_equal(l[0].n_errors, errors + 1);
	begin(&m, 0);
	assert_int_equal(t_take(&t[0], &t[0].work), HW_ST_PEER);
	/* now chip 0 has failed its peers as well, but the name is that of the first */
	begin(&m, 3);
	assert_int_equal(t_take(&t[3], &t[3].work), HW_ST_PEER);
	t_last_fault(&t[3]);
	assert_int_equal(t[3].fault.va, 2);
	t_reset(&t[0], &t[0].work);
	t_reset(&t[3], &t[3].work);
	t_bring_up(&t[2]);
	join(N);
}

/* A window that is mapped anew elsewhere does not help those that were queued before. */
static void a_new_window_is_not_the_old_one(void **state)
{
	uint64_t again = 0;

	(void)state;
	assert_int_equal(t_admin(&t[4], HW_WINDOW_CLOSE, 0, key[4]), 0);
	assert_int_equal(lend(4, T_HBM_VA, t[4].hbm_bytes, &again), 0);
	assert_int_equal(peer_map(0, (struct hw_peer_map){ .va = 1ull << 46, .key = again,
		.bytes = t[4].hbm_bytes, .chip = 4 }), 0);
	for (unsigned i = 0; i < 2; i++) {
		t_program(&p);
		t_bind(&p, i ? 1ull << 46 : peer_va(4), 64, HW_BIND_WRITE | HW_BIND_PEER);
		t_halt(&p);
		assert_int_equal(t_run(&t[0], &p), i ? 0 : HW_ST_PEER);
	}
	assert_int_equal(t_unmap(&t[0], t[0].ctx, 1ull << 46), 0);
	assert_int_equal(t_admin(&t[4], HW_WINDOW_CLOSE, 0, again), 0);
	join(N);
}

/* ---- all at once ---- */

static atomic_bool over;

/* Resets chips again and again, at moments that have nothing to do with the runs. */
static void *strike_often(void *arg)
{
	uint64_t seed = 1;

	(void)arg;
	while (!atomic_load(&over)) {
		struct timespec pause = { .tv_nsec = 300000 };

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		nanosleep(&pause, NULL);
		sim_flr(t[seed >> 40 & 7].dev);
	}
	return NULL;
}

/* Puts that are under way when the other chip goes away do no harm, and nobody waits for
 * ever. */
static void puts_and_resets_race(void **state)
{
	struct meeting m = { .n = N, .elements = 80000 };
	unsigned ok = 0, failed = 0;
	pthread_t striker;

	(void)state;
	for (unsigned round = 0; round < 20; round++) {
		prepare(&m, ring_all_reduce);
		atomic_store(&over, false);
		assert_int_equal(pthread_create(&striker, NULL, strike_often, NULL), 0);
		for (unsigned i = 0; i < 6; i++)
			for (unsigned r = 0; r < N; r++)
				begin(&m, r);
		/* each chip: its runs end well, by a peer, or with its own reset */
		for (unsigned r = 0; r < N; r++) {
			int64_t deadline = clock_after(200000);

			for (unsigned i = 0; i < 6; )
				if (t_poll(&t[r], &t[r].work)) {
					*(t[r].cqe.status ? &failed : &ok) += 1;
					i++;
				} else if (clock_ns() > deadline) {
					break;
				}
		}
		atomic_store(&over, true);
		pthread_join(striker, NULL);
		for (unsigned r = 0; r < N; r++) {
			sim_flr(t[r].dev);
			t_bring_up(&t[r]);
		}
		join(N);
	}
	prepare(&m, ring_all_reduce);
	meet(&m, 1);
	wait_on(1, &t[1].work, 2, 0);
	await_parked(1, &t[1].work);
}

static void a_model_that_checks_follows_puts(void **state)
{
	struct meeting m = { .n = 4, .elements = 64 };
	struct t_sim eight[N];

	(void)state;
	memcpy(eight, t, sizeof(t));
	open_chips(4, "devices=4,lanes=1,hbm=64M,check");
	prepare(&m, ring_all_reduce);
	/* nobody wrote the data, in this model's eyes */
	begin(&m, 0);
	assert_int_equal(t_take(&t[0], &t[0].work), HW_ST_UNWRITTEN);
	t_reset(&t[0], &t[0].work);
	join(4);
	for (unsigned r = 0; r < 4; r++) {
		assert_int_equal(t_ask(&t[r], &t[r].dma, (struct hw_sqe){ .op = HW_FILL,
			.u.copy = { 0, T_HBM_VA + DATA, 256 } }), 0);
		assert_int_equal(t_ask(&t[r], &t[r].dma, (struct hw_sqe){ .op = HW_FILL,
			.u.copy = { 0, T_HBM_VA + MAILBOX, RING_SLOTS } }), 0);
	}
	/* what comes by links is written: the slots of the mailbox, which are read */
	for (unsigned i = 0; i < 3; i++) {
		for (unsigned r = 0; r < 4; r++)
			begin(&m, r);
		for (unsigned r = 0; r < 4; r++)
			assert_int_equal(t_take(&t[r], &t[r].work), 0);
	}
	close_chips(4);
	memcpy(t, eight, sizeof(t));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chips_of_a_model_are_a_torus),
		cmocka_unit_test(one_chip_has_no_links),
		cmocka_unit_test(windows_are_lent_by_key_and_taken_back),
		cmocka_unit_test(only_link_instructions_name_peers),
		cmocka_unit_test(bindings_of_peers_lie_in_windows),
		cmocka_unit_test(a_semaphore_of_host_memory_is_refused),
		cmocka_unit_test(puts_are_there_when_the_signal_is),
		cmocka_unit_test(links_count_what_they_carry),
		cmocka_unit_test(sums_go_round),
		cmocka_unit_test(large_sums_go_round),
		cmocka_unit_test(all_meet_all),
		cmocka_unit_test(runs_queue_up),
		cmocka_unit_test(a_parked_run_leaves_its_engine),
		cmocka_unit_test(a_parked_run_gives_its_turn_back),
		cmocka_unit_test(memory_that_goes_meanwhile_faults_the_run),
		cmocka_unit_test(a_watchdog_ends_a_parked_run),
		cmocka_unit_test(resets_end_parked_runs),
		cmocka_unit_test(a_failing_chip_fails_its_peers_by_name),
		cmocka_unit_test(later_work_for_a_failed_chip_fails),
		cmocka_unit_test(a_new_window_is_not_the_old_one),
		cmocka_unit_test(a_model_that_checks_follows_puts),
		cmocka_unit_test(puts_and_resets_race),
	};

	int n_failed = cmocka_run_group_tests_name("by the crew", tests, setup, teardown);

	/* All but the first of a model's runs are small enough, or not, as they come. */
	hint = HW_INLINE;
	return n_failed + cmocka_run_group_tests_name("by who rings", tests, setup, teardown);
}
