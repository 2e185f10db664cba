/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions that reach into a window for longer than anybody lives: whoever takes the window
 * back, or loses the link, waits for no more than a tile of them. */
#include <pthread.h>
#include <unistd.h>

#include "tests/unit/sim/sim_test.h"

#define PEER_VA (1ull << 44)	/* where chip 1 sees chip 0's window */
#define DATA 65536u		/* offsets in HBM */
#define FLAG 4096u
#define PATIENCE 5000000000ll

static struct t_sim t[2];
static struct t_program p;
static uint64_t key;

enum what { STORES, FOLDS, FOLDS_MIXED, PUTS, N_WHAT };
enum how { CLOSE, RESET, DISABLE, CUT_LINK, N_HOW };

/* ---- chip 1's program ---- */

struct tensor {
	struct isa_tensor head;
	struct isa_operand in, out[2];
};

/* 2^50 times the element of binding 0, a peer's, goes to binding 2. */
static void add_read(enum what what)
{
	struct tensor v = {
		.head = { .insn = { .op = ISA_VEC },
			  .body = { .rank = 2, .n_in = 1, .n_out = what == FOLDS_MIXED ? 2 : 1,
				    .dim = { 1 << 25, 1 << 25, 1, 1, 1, 1, 1, 1 } } },
		.in = { .elem = ELEM_S32 },
		.out = { { .elem = ELEM_S32, .binding = 2 },
			 { .elem = ELEM_S32, .binding = 2, .offset = 64 } } };
	size_t bytes = sizeof(v) - (what == FOLDS_MIXED ? 0 : sizeof(v.out[0]));

	if (what != STORES)
		v.out[0].combine = ISA_COMBINE_ADD;
	v.head.insn.bytes = (uint32_t)bytes;
	t_add(&p, &v, bytes);
}

/* As many times that of binding 2 to binding 1. */
static void add_put(void)
{
	struct isa_copy k = { .insn = { .op = ISA_RPUT, .bytes = sizeof(k) }, .rank = 2,
			      .elem_bytes = 4, .dim = { 1 << 25, 1 << 25, 1, 1, 1, 1, 1, 1 },
			      .src.binding = 2, .dst = { .binding = 1, .offset = 64 } };

	t_add(&p, &k, sizeof(k));
}

/* Returns when it runs, and has been at that instruction for a while. */
static void begin(enum what what)
{
	uint64_t *flag = (uint64_t *)(t[0].hbm + FLAG);
	int64_t deadline = clock_after(PATIENCE);
	uint32_t id;

	__atomic_store_n(flag, 0, __ATOMIC_SEQ_CST);
	t_program(&p);
	t_bind(&p, PEER_VA + DATA, 4096, HW_BIND_READ | HW_BIND_PEER);
	t_bind(&p, PEER_VA + FLAG, 4096, HW_BIND_WRITE | HW_BIND_PEER);
	t_bind(&p, T_HBM_VA + DATA, 4096, HW_BIND_READ | HW_BIND_WRITE);
	t_li(&p, 1, 1);
	t_scalar(&p, (struct isa_scalar){ .insn.op = ISA_RSIG, .fn = ISA_ALU_ADD, .rb = 1,
					  .elem = ELEM_U64, .binding = 1 });
	if (what == PUTS)
		add_put();
	else
		add_read(what);
	t_halt(&p);
	assert_int_equal(t_load(&t[1], &p, &id), 0);
	t_put(&t[1], &t[1].work, t_execute(&t[1], &p, id));
	t_ring_bell(&t[1], &t[1].work);
	while (!__atomic_load_n(flag, __ATOMIC_SEQ_CST))
		assert_true(clock_ns() < deadline);
	usleep(2000);
}

/* ---- chip 0 takes it back ---- */

static atomic_bool over, late;

/* Ends the run when nobody else does. */
static void *give_up(void *arg)
{
	int64_t deadline = clock_after(PATIENCE);

	(void)arg;
	while (!atomic_load(&over) && clock_ns() < deadline)
		usleep(1000);
	if (atomic_load(&over))
		return NULL;
	atomic_store(&late, true);
	sim_flr(t[1].dev);
	return NULL;
}

static void strike(enum how how)
{
	switch (how) {
	case CLOSE:
		assert_int_equal(t_admin(&t[0], HW_WINDOW_CLOSE, 0, key), 0);
		break;
	case RESET:
		sim_flr(t[0].dev);
		break;
	case DISABLE:
		sim_mmio_write(t[0].dev, HW_REG_CTRL, 4, 0);
		break;
	default:
		assert_int_equal(t_admin(&t[0], HW_INJECT, HW_INJECT_LINK_DOWN, 0), 0);
		break;
	}
}

/* The status of chip 1's run. */
static unsigned status_of_run(void)
{
	while (!t_poll(&t[1], &t[1].work))
		if (atomic_load(&late))
			fail_msg("the run goes on");
	return t[1].cqe.status;
}

static void ends(enum what what, enum how how, const char *options)
{
	pthread_t helper;
	unsigned status;

	t_open_chips(t, 2, options);
	assert_int_equal(t_lend(&t[0], T_HBM_VA, t[0].hbm_bytes, &key), 0);
	assert_int_equal(t_borrow(&t[1], (struct hw_peer_map){ .va = PEER_VA, .key = key,
							       .bytes = t[0].hbm_bytes }), 0);
	memset(t[0].hbm + DATA, 0, 4096);
	memset(t[1].hbm + DATA, 0, 4096);
	begin(what);
	atomic_store(&over, false);
	assert_int_equal(pthread_create(&helper, NULL, give_up, NULL), 0);
	strike(how);
	status = status_of_run();
	atomic_store(&over, true);
	pthread_join(helper, NULL);
	assert_int_equal(status, HW_ST_PEER);
	t_last_fault(&t[1]);
	assert_int_equal(t[1].fault.va, 0);
	assert_int_equal(t[1].fault.bytes, how == CUT_LINK ? HW_ST_LINK : HW_ST_RESET);
	assert_int_equal(t[1].fault.operand, what == PUTS);
	t_close_chips(t, 2);
}

static void windows_are_taken_back_in_the_midst(void **state)
{
	(void)state;
	for (unsigned what = 0; what < N_WHAT; what++)
		for (unsigned how = 0; how < N_HOW; how++)
			ends(what, how, "devices=2,lanes=1,hbm=64M");
}

/* All points of the others are stored to one place: lanes race there because the program says so,
 * which is not what the thread sanitizer is to look for. */
static void lanes_hear_of_it_too(void **state)
{
	(void)state;
	for (unsigned what = 0; what < N_WHAT; what++) {
#ifdef __SANITIZE_THREAD__
		if (what != FOLDS)
			continue;
#endif
		ends(what, RESET, "devices=2,lanes=4,hbm=64M");
	}
}

/* ---- a doorbell meanwhile ---- */

/* One tile of chip 1's that reads chip 0's window, and takes a while. */
static void begin_slow_tile(uint32_t *id)
{
	enum { POWERS = 150, COLS = 16384 };
	static struct {
		struct isa_tensor head;
		struct isa_operand in, out;
		struct isa_uop uop[POWERS];
	} v;

	v.head = (struct isa_tensor){
		.insn = { .op = ISA_VEC, .bytes = sizeof(v) },
		.body = { .rank = 1, .row_rank = 1, .n_in = 1, .n_out = 1, .n_uop = POWERS,
			  .dim = { COLS, 1, 1, 1, 1, 1, 1, 1 } } };
	v.in = (struct isa_operand){ .elem = ELEM_C128, .stride = { 16 } };
	v.out = (struct isa_operand){ .elem = ELEM_C128, .stride = { 16 }, .binding = 2,
				      .value = POWERS };
	for (unsigned i = 0; i < POWERS; i++)
		v.uop[i] = (struct isa_uop){ .op = UOP_POW, .elem = ELEM_C128,
					     .a = (uint8_t)i, .b = 0 };
	for (unsigned i = 0; i < 2 * COLS; i++)
		((double *)(void *)(t[0].hbm + DATA))[i] = i & 1 ? 0.25 : 1.01;
	t_program(&p);
	t_bind(&p, PEER_VA + DATA, 16 * COLS, HW_BIND_READ | HW_BIND_PEER);
	t_bind(&p, PEER_VA + FLAG, 4096, HW_BIND_WRITE | HW_BIND_PEER);
	t_bind(&p, T_HBM_VA + DATA, 16 * COLS, HW_BIND_READ | HW_BIND_WRITE);
	t_li(&p, 1, 1);
	t_scalar(&p, (struct isa_scalar){ .insn.op = ISA_RSIG, .fn = ISA_ALU_ADD, .rb = 1,
					  .elem = ELEM_U64, .binding = 1 });
	t_add(&p, &v, sizeof(v));
	t_halt(&p);
	assert_int_equal(t_load(&t[1], &p, id), 0);
	t_put(&t[1], &t[1].work, t_execute(&t[1], &p, *id));
	t_ring_bell(&t[1], &t[1].work);
}

/* Whoever rings waits for what it asks for. */
static void *ring_admin(void *arg)
{
	(void)arg;
	t_ring_bell(&t[0], &t[0].admin);
	return NULL;
}

/* While QUEUE_RESET waits for chip 1, more work comes: of this, too, the driver hears. */
static void work_that_comes_in_a_reset_is_dropped_aloud(void **state)
{
	const uint64_t *flag;
	uint64_t other;
	pthread_t helper;
	int64_t deadline;
	uint32_t id;

	(void)state;
	t_open_chips(t, 2, "devices=2,lanes=1,hbm=64M");
	for (unsigned i = 0; i < 2; i++) {
		uint64_t *k = i ? &other : &key;

		assert_int_equal(t_lend(&t[i], T_HBM_VA, t[i].hbm_bytes, k), 0);
		assert_int_equal(t_borrow(&t[!i], (struct hw_peer_map){ .va = PEER_VA, .key = *k,
			.bytes = t[i].hbm_bytes, .chip = i }), 0);
	}
	flag = (uint64_t *)(t[0].hbm + FLAG);
	memset(t[0].hbm + FLAG, 0, 4096);
	t_program(&p);
	t_bind(&p, T_HBM_VA + FLAG, 4096, HW_BIND_READ);
	t_bind(&p, PEER_VA, 4096, HW_BIND_WRITE | HW_BIND_PEER);
	t_li(&p, 1, 9);
	t_scalar(&p, (struct isa_scalar){ .insn.op = ISA_RWAIT, .elem = ELEM_U64, .rb = 1,
					  .rd = 2 });
	t_halt(&p);
	assert_int_equal(t_load(&t[0], &p, &id), 0);
	t_put(&t[0], &t[0].work, t_execute(&t[0], &p, id));
	t_ring_bell(&t[0], &t[0].work);
	begin_slow_tile(&id);
	while (!__atomic_load_n(flag, __ATOMIC_SEQ_CST))
		;
	usleep(5000);
	t_put(&t[0], &t[0].admin, (struct hw_sqe){ .op = HW_QUEUE_RESET,
						   .id = (uint16_t)t[0].work.id });
	assert_int_equal(pthread_create(&helper, NULL, ring_admin, NULL), 0);
	/* the parked run has ended: now it waits for the tile */
	assert_int_equal(t_take(&t[0], &t[0].work), HW_ST_RESET);
	t_put(&t[0], &t[0].work, (struct hw_sqe){ .op = HW_NOP });
	t_ring_bell(&t[0], &t[0].work);
	/* the other engine hears all doorbells */
	assert_int_equal(t_ask(&t[0], &t[0].dma, (struct hw_sqe){ .op = HW_NOP }), 0);
	assert_false(t_poll(&t[0], &t[0].admin));
	assert_int_equal(t_take(&t[0], &t[0].admin), 0);
	pthread_join(helper, NULL);
	deadline = clock_after(PATIENCE);
	while (!t_poll(&t[0], &t[0].work))
		assert_true(clock_ns() < deadline);
	assert_int_equal(t[0].cqe.status, HW_ST_DROPPED);
	t_take(&t[1], &t[1].work);
	t_close_chips(t, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(windows_are_taken_back_in_the_midst),
		cmocka_unit_test(lanes_hear_of_it_too),
		cmocka_unit_test(work_that_comes_in_a_reset_is_dropped_aloud),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
