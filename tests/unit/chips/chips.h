/* SPDX-License-Identifier: Apache-2.0 */
#ifndef UNIT_CHIPS_CHIPS_H
#define UNIT_CHIPS_CHIPS_H
/* For tests of linked chips: eight that see all of each other's HBM, and programs that meet
 * (tests/unit/ring.h). */
#include "tests/unit/ring.h"
#include "tests/unit/sim/sim_test.h"

#define N 8
#define PEER_VA (1ull << 44)	/* where chip k's window is seen: PEER_VA + (k << 36) */
#define DATA 65536u		/* offsets in HBM, which is the window */
#define MAILBOX (16u << 20)

static struct t_sim t[N];
static uint64_t key[N];
static struct t_program p;
static struct ring_code code;
static uint8_t hint;	/* of what is executed: HW_INLINE, or 0 */

static inline uint64_t peer_va(unsigned chip)
{
	return PEER_VA + ((uint64_t)chip << 36);
}

static inline unsigned lend(unsigned chip, uint64_t va, uint64_t bytes, uint64_t *out)
{
	return t_lend(&t[chip], va, bytes, out);
}

static inline unsigned peer_map(unsigned chip, struct hw_peer_map m)
{
	return t_borrow(&t[chip], m);
}

/* Every chip lends all of its HBM and sees that of all others. Mappings of before go. */
static inline void join(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(lend(i, T_HBM_VA, t[i].hbm_bytes, &key[i]), 0);
	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < n; k++) {
			t_unmap(&t[i], t[i].ctx, peer_va(k));
			assert_int_equal(peer_map(i, (struct hw_peer_map){ .va = peer_va(k),
				.bytes = t[k].hbm_bytes, .key = key[k], .chip = k }), 0);
		}
}

static inline void open_chips(unsigned n, const char *options)
{
	t_open_chips(t, n, options);
	join(n);
}

static inline void close_chips(unsigned n)
{
	t_close_chips(t, n);
}

static inline int setup(void **state)
{
	(void)state;
	open_chips(N, "devices=8,lanes=1,hbm=64M");
	return 0;
}

static inline int teardown(void **state)
{
	(void)state;
	close_chips(N);
	return 0;
}

static inline struct hw_sqe execute(struct t_sim *on, const struct t_program *what, uint32_t id)
{
	struct hw_sqe sqe = t_execute(on, what, id);

	sqe.flags |= hint;
	return sqe;
}

static inline uint64_t *word(unsigned chip, uint64_t at)
{
	return (uint64_t *)(t[chip].hbm + at);
}

/* ---- programs that meet ---- */

struct meeting {
	unsigned n;
	uint64_t elements;
	uint32_t id[N];
	struct hw_sqe sqe[N];
};

/* Loads the members' programs, and puts their bindings where they stay. */
static inline void prepare(struct meeting *m, void (*make)(struct ring_code *c))
{
	for (unsigned r = 0; r < m->n; r++) {
		uint64_t data = 4 * m->elements, box = RING_MAILBOX(m->n, m->elements);

		code.n = m->n;
		code.member = r;
		code.elements = m->elements;
		make(&code);
		t_program(&p);
		t_bind(&p, 0, 0, 0);
		t_bind(&p, 0, 0, 0);
		t_bind(&p, T_HBM_VA + DATA, data, HW_BIND_READ | HW_BIND_WRITE);
		t_bind(&p, T_HBM_VA + MAILBOX, box, HW_BIND_READ | HW_BIND_WRITE);
		for (unsigned k = 0; k < m->n; k++) {
			bool own = k == r;

			t_bind(&p, peer_va(k) + DATA, own ? 0 : data,
			       HW_BIND_WRITE | HW_BIND_PEER);
			t_bind(&p, peer_va(k) + MAILBOX, own ? 0 : box,
			       HW_BIND_WRITE | HW_BIND_PEER);
		}
		t_add(&p, code.text, code.bytes);
		assert_int_equal(t_load(&t[r], &p, &m->id[r]), 0);
		m->sqe[r] = execute(&t[r], &p, m->id[r]);
		memset(t[r].hbm + MAILBOX, 0, RING_SLOTS);
	}
}

static inline void fill(const struct meeting *m)
{
	for (unsigned r = 0; r < m->n; r++)
		for (uint64_t i = 0; i < m->elements; i++)
			((float *)(t[r].hbm + DATA))[i] = 0.1f * (float)(r + 1) + (float)i;
}

static inline void begin(const struct meeting *m, unsigned r)
{
	t_put(&t[r], &t[r].work, m->sqe[r]);
	t_ring_bell(&t[r], &t[r].work);
}

static inline void check_sums(const struct meeting *m)
{
	for (uint64_t i = 0; i < m->elements; i++) {
		float sum = ((float *)(t[0].hbm + DATA))[i];
		float want = (float)m->n * (float)i + 0.05f * (float)(m->n * (m->n + 1));

		if (sum < want * 0.99999f - 1e-4f || sum > want * 1.00001f + 1e-4f)
			fail_msg("element %u is %.9g, not %.9g", (unsigned)i, (double)sum,
				 (double)want);
	}
	for (unsigned r = 1; r < m->n; r++)
		assert_memory_equal(t[0].hbm + DATA, t[r].hbm + DATA, 4 * m->elements);
}

/* One run of all members, who begin in an order that `turn` decides. */
static inline void meet(const struct meeting *m, unsigned turn)
{
	fill(m);
	for (unsigned i = 0; i < m->n; i++)
		begin(m, turn & 1 ? (turn + m->n - i) % m->n : (turn + i) % m->n);
	for (unsigned r = 0; r < m->n; r++)
		if (t_take(&t[r], &t[r].work)) {
			t_last_fault(&t[r]);
			fail_msg("chip %u: status %u at 0x%x, va %u", r, t[r].fault.status,
				 (unsigned)t[r].fault.pc, (unsigned)t[r].fault.va);
		}
	check_sums(m);
}

static inline void unload(const struct meeting *m)
{
	for (unsigned r = 0; r < m->n; r++)
		assert_int_equal(t_unload(&t[r], m->id[r]), 0);
}

#endif
