/* SPDX-License-Identifier: Apache-2.0 */
/* VECs that read what other chips lend. */
#include <pthread.h>

#include "tests/unit/ring.h"
#include "tests/unit/sim/sim_test.h"

#define N 4
#define PEER_VA (1ull << 44)	/* where chip k's window is seen: PEER_VA + (k << 36) */
#define DATA 65536u		/* offsets in HBM, which is the window */
#define SUM (32u << 20)
#define READ_PEER (HW_BIND_READ | HW_BIND_PEER)
#define COUNT 100000u		/* elements */

static struct t_sim t[N];
static uint64_t key[N];
static struct t_program p;

static uint64_t peer_va(unsigned chip)
{
	return PEER_VA + ((uint64_t)chip << 36);
}

static void join(void)
{
	for (unsigned i = 0; i < N; i++)
		assert_int_equal(t_lend(&t[i], T_HBM_VA, t[i].hbm_bytes, &key[i]), 0);
	for (unsigned i = 0; i < N; i++)
		for (unsigned k = 0; k < N; k++) {
			t_unmap(&t[i], t[i].ctx, peer_va(k));
			assert_int_equal(t_borrow(&t[i], (struct hw_peer_map){ .va = peer_va(k),
				.bytes = t[k].hbm_bytes, .key = key[k], .chip = k }), 0);
		}
}

static void open_chips(const char *options)
{
	t_open_chips(t, N, options);
	join();
}

static int setup(void **state)
{
	(void)state;
	open_chips("devices=4,lanes=2,hbm=64M");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	t_close_chips(t, N);
	return 0;
}

static uint32_t *data_of(unsigned chip)
{
	return (uint32_t *)(t[chip].hbm + DATA);
}

static uint32_t value_of(unsigned chip, unsigned i)
{
	return i * 7 + chip * 1000003u;
}

static void fill(void)
{
	for (unsigned chip = 0; chip < N; chip++)
		for (unsigned i = 0; i < COUNT; i++)
			data_of(chip)[i] = value_of(chip, i);
}

/* binding n = sum over k of binding k from `at` + r[reg] on, `count` u32 each. */
static void add_sum(unsigned n, unsigned op, int64_t at, uint8_t reg, int64_t count)
{
	struct {
		struct isa_tensor t;
		struct isa_operand op[N + 1];
		struct isa_uop uop[N];
	} v = { .t = { .insn.op = (uint16_t)op, .body = { .rank = 1, .n_in = (uint8_t)n,
							   .n_out = 1,
							   .n_uop = (uint16_t)(n - 1) } } };
	uint8_t text[sizeof(v)];
	size_t bytes = sizeof(v.t);

	for (unsigned d = 0; d < ISA_MAX_RANK; d++)
		v.t.body.dim[d] = 1;
	v.t.body.dim[0] = count;
	for (unsigned k = 0; k < n; k++)
		v.op[k] = (struct isa_operand){ .elem = ELEM_U32, .binding = (uint16_t)k,
						.reg = reg, .offset = at, .stride = { 4 } };
	v.op[n] = (struct isa_operand){ .elem = ELEM_U32, .binding = (uint16_t)n,
					.stride = { 4 }, .value = (uint8_t)(2 * n - 2) };
	for (unsigned k = 1; k < n; k++)
		v.uop[k - 1] = (struct isa_uop){ .op = UOP_ADD, .elem = ELEM_U32,
			.a = (uint8_t)(k == 1 ? 0 : n + k - 2), .b = (uint8_t)k };
	v.t.insn.bytes = (uint32_t)(bytes + (n + 1) * sizeof(*v.op) + (n - 1) * sizeof(*v.uop));
	memcpy(text, &v.t, bytes);
	memcpy(text + bytes, v.op, (n + 1) * sizeof(*v.op));
	bytes += (n + 1) * sizeof(*v.op);
	memcpy(text + bytes, v.uop, (n - 1) * sizeof(*v.uop));
	t_add(&p, text, v.t.insn.bytes);
}

/* Chip `by` sums what all have, itself by a binding like any. */
static void write_sum(unsigned by, int64_t at, int64_t lead, int64_t count)
{
	t_program(&p);
	for (unsigned k = 0; k < N; k++)
		t_bind(&p, (k == by ? T_HBM_VA : peer_va(k)) + DATA, 4 * COUNT, READ_PEER);
	t_bind(&p, T_HBM_VA + SUM, 4 * COUNT, HW_BIND_WRITE);
	if (lead)
		t_li(&p, 1, lead);
	add_sum(N, ISA_VEC, at, lead ? 1 : 0, count);
	t_halt(&p);
}

static uint64_t received(unsigned chip)
{
	struct hw_link l[HW_MAX_LINKS];
	uint64_t sum = 0;
	unsigned n;

	assert_int_equal(t_admin(&t[chip], HW_LOG_PAGE, HW_LOG_LINKS, 0), 0);
	n = (unsigned)(t[chip].cqe.value / sizeof(*l));
	memcpy(l, t_args(&t[chip]), n * sizeof(*l));
	for (unsigned i = 0; i < n; i++)
		sum += l[i].rx_bytes;
	return sum;
}

static void what_all_have_is_read_where_it_lies(void **state)
{
	static const struct { unsigned at, lead, count; } cases[] = {
		{ 0, 0, 1 }, { 0, 0, 1000 }, { 4, 0, 5 }, { 0, 0, COUNT }, { 8, 400, 700 },
		{ 0, 4 * COUNT - 4, 1 }, { 0, 200000, COUNT / 2 },
	};

	(void)state;
	fill();
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		for (unsigned by = 0; by < N; by++) {
			unsigned first = (cases[i].at + cases[i].lead) / 4;
			const uint32_t *got = (const uint32_t *)(t[by].hbm + SUM);
			uint64_t before = received(by);

			memset(t[by].hbm + SUM, 0, 4 * COUNT);
			write_sum(by, cases[i].at, cases[i].lead, cases[i].count);
			assert_int_equal(t_run(&t[by], &p), 0);
			assert_int_equal(received(by) - before, 3 * 4 * cases[i].count);
			for (unsigned k = 0; k < cases[i].count; k++) {
				uint32_t want = 0;

				for (unsigned chip = 0; chip < N; chip++)
					want += value_of(chip, first + k);
				assert_int_equal(got[k], want);
			}
		}
	/* outside of what is bound */
	write_sum(0, 0, 4, COUNT);
	assert_int_equal(t_run(&t[0], &p), HW_ST_BOUNDS);
	join();
}

static unsigned load(unsigned op, unsigned access)
{
	uint32_t id;

	t_program(&p);
	t_bind(&p, peer_va(1), 4096, access);
	t_bind(&p, T_HBM_VA, 4096, op == ISA_ST ? READ_PEER : HW_BIND_READ | HW_BIND_WRITE);
	if (op == ISA_VEC) {
		add_sum(1, op, 0, 0, 4);
	} else if (op == ISA_COPY) {
		static struct ring_code code;

		code.bytes = 0;
		ring_copy(&code, op, 0, 0, 1, 0, 4);
		t_add(&p, code.text, code.bytes);
	} else {
		t_scalar(&p, (struct isa_scalar){ .insn.op = (uint16_t)op, .elem = ELEM_U64,
						  .binding = op == ISA_ST });
	}
	t_halt(&p);
	return t_load(&t[0], &p, &id);
}

static void only_vecs_read_from_peers(void **state)
{
	(void)state;
	assert_int_equal(load(ISA_VEC, READ_PEER), 0);
	assert_int_equal(load(ISA_VEC, HW_BIND_WRITE | HW_BIND_PEER), HW_ST_BAD_PROGRAM);
	assert_int_equal(load(ISA_COPY, READ_PEER), HW_ST_BAD_PROGRAM);
	assert_int_equal(load(ISA_LD, READ_PEER), HW_ST_BAD_PROGRAM);
	assert_int_equal(load(ISA_RWAIT, READ_PEER), HW_ST_BAD_PROGRAM);
	assert_int_equal(load(ISA_RSIG, READ_PEER), HW_ST_BAD_PROGRAM);
	assert_int_equal(load(ISA_ST, READ_PEER), HW_ST_BAD_PROGRAM);
	assert_int_equal(load(ISA_VEC, READ_PEER | HW_BIND_WRITE), HW_ST_BAD_FIELD);
	assert_int_equal(load(ISA_VEC, HW_BIND_PEER), HW_ST_BAD_FIELD);
}

static unsigned run_at(uint64_t va)
{
	t_program(&p);
	t_bind(&p, va, 4096, READ_PEER);
	t_bind(&p, T_HBM_VA, 4096, HW_BIND_WRITE);
	add_sum(1, ISA_VEC, 0, 0, 4);
	t_halt(&p);
	return t_run(&t[0], &p);
}

static void what_is_read_lies_in_a_window_or_the_own_hbm(void **state)
{
	uint64_t before = received(0);

	(void)state;
	assert_int_equal(run_at(peer_va(1)), 0);
	assert_int_equal(received(0) - before, 16);
	assert_int_equal(run_at(T_HBM_VA + DATA), 0);	/* by no link */
	assert_int_equal(received(0) - before, 16);
	assert_int_equal(run_at(T_HOST_VA), HW_ST_MAP);
	assert_int_equal(run_at(peer_va(N)), HW_ST_MAP);
	assert_int_equal(run_at(peer_va(1) + t[1].hbm_bytes - 64), HW_ST_MAP);
	join();		/* chip 0's window broke */
}

static void who_fails_is_not_read(void **state)
{
	(void)state;
	assert_int_equal(t_admin(&t[1], HW_WINDOW_CLOSE, 0, key[1]), 0);
	assert_int_equal(run_at(peer_va(1)), HW_ST_PEER);
	assert_int_equal(t[0].fault.va, 1);
	assert_int_equal(t[0].fault.bytes, HW_ST_RESET);
	assert_int_equal(t[0].fault.is_write, 0);
	join();
	/* A page that chip 2 has lost, among what is bound; another one is not. */
	assert_int_equal(t_admin(&t[2], HW_INJECT, HW_INJECT_POISON, 8192), 0);
	assert_int_equal(run_at(peer_va(2) + 8192), HW_ST_POISON);
	join();
	assert_int_equal(run_at(peer_va(2) + 12288), 0);
	assert_int_equal(run_at(peer_va(2) + 4096), 0);
	assert_int_equal(t_ask(&t[2], &t[2].dma, (struct hw_sqe){ .op = HW_FILL,
		.u.copy = { 0, T_HBM_VA + 8192, 4096 } }), 0);
	assert_int_equal(run_at(peer_va(2) + 8192), 0);
	/* another chip's copy heals it as well */
	assert_int_equal(t_admin(&t[2], HW_INJECT, HW_INJECT_POISON, 8192), 0);
	assert_int_equal(t_ask(&t[1], &t[1].dma, (struct hw_sqe){ .op = HW_COPY,
		.u.copy = { T_HBM_VA, peer_va(2) + 8192, 4096 } }), 0);
	assert_int_equal(run_at(peer_va(2) + 8192), 0);
}

/* ---- memory that goes while it is read ---- */

static void *take_back(void *arg)
{
	struct timespec pause = { .tv_nsec = *(long *)arg };

	nanosleep(&pause, NULL);
	assert_int_equal(t_admin(&t[1], HW_WINDOW_CLOSE, 0, key[1]), 0);
	/* From here on nobody reads it: what is written is not seen. */
	memset(data_of(1), 0xff, 4 * COUNT);
	return NULL;
}

static void taking_memory_back_waits_for_who_reads(void **state)
{
	const uint32_t *got = (const uint32_t *)(t[0].hbm + SUM);
	unsigned n_read = 0, n_failed = 0;

	(void)state;
	for (unsigned round = 0; round < 200; round++) {
		long pause = (long)(round * 4000 % 400000);
		pthread_t thread;
		unsigned status;
		uint32_t id;

		fill();
		write_sum(0, 0, 0, COUNT);
		assert_int_equal(t_load(&t[0], &p, &id), 0);
		assert_int_equal(pthread_create(&thread, NULL, take_back, &pause), 0);
		do {
			status = t_ask(&t[0], &t[0].work, t_execute(&t[0], &p, id));
			for (unsigned i = 0; !status && i < COUNT; i++)
				assert_int_equal(got[i], 4 * i * 7 + 6 * 1000003u);
			n_read += !status;
		} while (!status);
		assert_int_equal(status, HW_ST_PEER);
		n_failed++;
		pthread_join(thread, NULL);
		assert_int_equal(t_reset(&t[0], &t[0].work), 0);
		assert_int_equal(t_unload(&t[0], id), 0);
		join();
	}
	assert_true(n_read && n_failed == 200);
}

/* ---- a model that checks ---- */

static void a_model_that_checks_follows_reads(void **state)
{
	struct t_sim plain[N];

	(void)state;
	memcpy(plain, t, sizeof(t));
	open_chips("devices=4,lanes=1,hbm=64M,check");
	for (unsigned k = 0; k < N; k++) {
		write_sum(0, 0, 0, 1000);
		assert_int_equal(t_run(&t[0], &p), HW_ST_UNWRITTEN);
		assert_int_equal(t[0].fault.binding, k);
		join();
		assert_int_equal(t_ask(&t[k], &t[k].dma, (struct hw_sqe){ .op = HW_FILL,
			.u.copy = { 0, T_HBM_VA + DATA, 4000 } }), 0);
	}
	write_sum(0, 0, 0, 1000);
	assert_int_equal(t_run(&t[0], &p), 0);
	/* what is its own is no other chip's: outputs lie apart from it */
	p.bind[N].va = T_HBM_VA + DATA + 64;
	assert_int_equal(t_run(&t[0], &p), HW_ST_OPERANDS);
	join();
	p.bind[0].va = peer_va(1) + DATA;
	assert_int_equal(t_run(&t[0], &p), 0);
	t_close_chips(t, N);
	memcpy(t, plain, sizeof(t));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_all_have_is_read_where_it_lies),
		cmocka_unit_test(only_vecs_read_from_peers),
		cmocka_unit_test(what_is_read_lies_in_a_window_or_the_own_hbm),
		cmocka_unit_test(who_fails_is_not_read),
		cmocka_unit_test(taking_memory_back_waits_for_who_reads),
		cmocka_unit_test(a_model_that_checks_follows_reads),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
