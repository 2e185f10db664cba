/* SPDX-License-Identifier: Apache-2.0 */
/* Copies, fills, time stamps against plain byte loops. */
#include "tests/unit/sim/sim_test.h"

#define AT (1u << 20)		/* where tests work in HBM */
#define ROOM (8u << 20)

static struct t_sim t;
static uint8_t *want;

static int setup(void **state)
{
	(void)state;
	t_open(&t, "lanes=2");
	want = malloc(ROOM);
	return want ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	free(want);
	t_close(&t);
	return 0;
}

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

static void scramble(uint32_t seed, uint64_t bytes)
{
	for (uint64_t i = 0; i < bytes; i += 4) {
		uint32_t v = next_random(&seed);

		memcpy(t.hbm + AT + i, &v, 4);
	}
	memcpy(want, t.hbm + AT, bytes);
}

static unsigned copy(struct t_ring *q, uint64_t dst, uint64_t src, uint64_t bytes)
{
	return t_ask(&t, q, (struct hw_sqe){ .op = HW_COPY,
		.u.copy = { T_HBM_VA + AT + src, T_HBM_VA + AT + dst, bytes } });
}

static void copies_ascend_byte_by_byte(void **state)
{
	static const uint32_t cases[][3] = {	/* dst, src, bytes */
		{ 0, 4096, 100 }, { 4096, 0, 4096 }, { 1, 0, 1000 }, { 0, 1, 1000 },
		{ 3, 0, 3000000 }, { 0, 7, 3000000 }, { 1048577, 0, 3000000 },
		{ 0, 1048577, 3000000 }, { 1048575, 0, 3000000 }, { 64, 64, 999 },
		{ 5, 5000, 0 }, { 700000, 0, 2500000 }, { 13, 4000001, 3999999 },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const uint32_t *c = cases[i];

		scramble(i, ROOM);
		for (uint32_t b = 0; b < c[2]; b++)
			want[c[0] + b] = want[c[1] + b];
		assert_int_equal(copy(i % 2 ? &t.dma : &t.work, c[0], c[1], c[2]), 0);
		assert_true(!memcmp(want, t.hbm + AT, ROOM));
	}
}

static void large_copies_use_the_lanes_and_arrive(void **state)
{
	uint64_t n = 48u << 20, from = 64u << 20, to = 128u << 20;

	(void)state;
	for (uint64_t i = 0; i < n; i += 8)
		*(uint64_t *)(t.hbm + from + i) = i * 0x9e3779b97f4a7c15u;
	assert_int_equal(t_ask(&t, &t.dma, (struct hw_sqe){ .op = HW_COPY,
		.u.copy = { T_HBM_VA + from, T_HBM_VA + to, n } }), 0);
	assert_true(!memcmp(t.hbm + from, t.hbm + to, n));
}

static void fills_repeat_their_pattern(void **state)
{
	static const uint32_t cases[][2] = {	/* dst, bytes */
		{ 0, 8 }, { 0, 1 }, { 3, 13 }, { 5, 0 }, { 0, 4096 }, { 7, 2500001 },
		{ 4095, 2 },
	};
	uint64_t pattern = 0x0123456789abcdefu;

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		scramble(i, ROOM);
		for (uint32_t b = 0; b < cases[i][1]; b++)
			want[cases[i][0] + b] = (uint8_t)(pattern >> b % 8 * 8);
		assert_int_equal(t_ask(&t, &t.dma, (struct hw_sqe){ .op = HW_FILL,
			.u.copy = { pattern, T_HBM_VA + AT + cases[i][0], cases[i][1] } }), 0);
		assert_true(!memcmp(want, t.hbm + AT, ROOM));
	}
}

/* The pattern goes on across pieces of memory that do not follow one another. */
static void fills_keep_their_phase_across_mappings(void **state)
{
	uint64_t va = 1ull << 36, pattern = 0x8877665544332211u;

	(void)state;
	assert_int_equal(t_map(&t, t.ctx, va, 8 << 20, 4096, HW_MAP_WRITE), 0);
	assert_int_equal(t_map(&t, t.ctx, va + 4096, 2 << 20, 4096, HW_MAP_WRITE), 0);
	assert_int_equal(t_ask(&t, &t.dma, (struct hw_sqe){ .op = HW_FILL,
		.u.copy = { pattern, va + 3, 8000 } }), 0);
	for (uint32_t b = 0; b < 8000; b++) {
		const uint8_t *p = t.hbm + (b + 3 < 4096 ? (8 << 20) : (2 << 20) - 4096);

		assert_int_equal(p[b + 3], (uint8_t)(pattern >> b % 8 * 8));
	}
	assert_int_equal(t_unmap(&t, t.ctx, va), 0);
	assert_int_equal(t_unmap(&t, t.ctx, va + 4096), 0);
}

static unsigned copy_2d(const struct hw_copy_2d *c)
{
	memcpy(t.window, c, sizeof(*c));
	return t_ask(&t, &t.dma, (struct hw_sqe){ .op = HW_COPY_2D,
						  .u.copy.src = T_HOST_VA });
}

static void rows_and_planes_follow_any_strides(void **state)
{
	static const struct hw_copy_2d cases[] = {	/* src and dst relative to AT */
		{ 0, 4 << 20, 100, 7, 3, 200, 100, 5000, 700 },
		{ 100000, 5 << 20, 4, 300, 2, -128, 4, -40000, 1200 },
		{ 0, 6 << 20, 1, 9, 9, 0, -1, 1, -9 },
		{ 0, 4 << 20, 1500000, 1, 2, 0, 0, 1500000, 1500000 },
		{ 16, 4 << 20, 8, 1000, 1, 8, 24, 0, 0 },
		{ 16, 4 << 20, 0, 1000, 1, 8, 24, 0, 0 },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct hw_copy_2d c = cases[i];

		scramble(i, ROOM);
		for (uint64_t z = 0; z < c.planes; z++)
			for (uint64_t y = 0; y < c.rows; y++)
				memmove(want + c.dst + (int64_t)z * c.dst_plane +
						(int64_t)y * c.dst_row,
					want + c.src + (int64_t)z * c.src_plane +
						(int64_t)y * c.src_row, c.row_bytes);
		c.src += T_HBM_VA + AT;
		c.dst += T_HBM_VA + AT;
		assert_int_equal(copy_2d(&c), 0);
		assert_true(!memcmp(want, t.hbm + AT, ROOM));
	}
}

/* Rows that lie in memory while what is between them does not. */
static void rows_may_have_holes_between_them(void **state)
{
	uint64_t va = 1ull << 36;
	struct hw_copy_2d c = { va + 4000, T_HBM_VA + AT, 96, 3, 1, 8192, 96, 0, 0 };

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(t_map(&t, t.ctx, va + 8192 * i, (5 + i) << 20, 4096,
				       HW_MAP_WRITE), 0);
	for (unsigned i = 0; i < 3; i++)
		memset(t.hbm + ((5 + i) << 20) + 4000, 'a' + (int)i, 96);
	assert_int_equal(copy_2d(&c), 0);
	for (unsigned i = 0; i < 3 * 96; i++)
		assert_int_equal(t.hbm[AT + i], 'a' + i / 96);
	c.rows = 4;
	memset(t.hbm + AT, 0, 96);
	assert_int_equal(copy_2d(&c), HW_ST_MAP);
	t_last_fault(&t);
	assert_int_equal(t.fault.va, va + 4000 + 3 * 8192);
	assert_int_equal(t.hbm[AT], 0);
	assert_int_equal(t_reset(&t, &t.dma), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(t_unmap(&t, t.ctx, va + 8192 * i), 0);
}

/* Rows and planes that go backwards reach below where they begin, and no further up. */
static void backward_rows_are_checked_where_they_go(void **state)
{
	const uint64_t va = 1ull << 37;

	(void)state;
	assert_int_equal(t_map(&t, t.ctx, va, 4 << 20, 4096, HW_MAP_WRITE), 0);
	for (unsigned i = 0; i < 8; i++) {
		/* four rows of 16 bytes: 48 below the first, or one row too many */
		bool planes = i & 1, is_dst = i & 2, strays = i & 4;
		uint64_t at = va + (strays ? 32 : 48), there = T_HBM_VA + AT;
		struct hw_copy_2d c = { is_dst ? there : at, is_dst ? at : there, 16,
					planes ? 1 : 4, planes ? 4 : 1, 16, 16, 16, 16 };

		*(is_dst ? &c.dst_row : &c.src_row) = -16;
		*(is_dst ? &c.dst_plane : &c.src_plane) = -16;
		assert_int_equal(copy_2d(&c), strays ? HW_ST_MAP : 0);
		assert_int_equal(t_reset(&t, &t.dma), 0);
		/* the last 16 bytes of the mapping */
		*(is_dst ? &c.dst : &c.src) = va + 4096 - 16;
		assert_int_equal(copy_2d(&c), 0);
	}
	assert_int_equal(t_unmap(&t, t.ctx, va), 0);
}

static void impossible_rows_are_refused(void **state)
{
	const struct hw_copy_2d good = { T_HBM_VA, T_HBM_VA + AT, 16, 2, 2, 16, 16, 32, 32 };
	struct hw_copy_2d c;

	(void)state;
	for (unsigned i = 0; i < 9; i++) {
		unsigned expect = i < 6 ? HW_ST_BAD_DESCRIPTOR : HW_ST_MAP;

		c = good;
		switch (i) {
		case 0: c.rows = 0; break;
		case 1: c.planes = 0; break;
		case 2: c.rows = c.planes = UINT64_MAX; break;
		case 3: c.row_bytes = UINT64_MAX; break;
		case 4: c.src_row = INT64_MIN; break;
		case 5: c.rows = 1ull << 40; c.dst_row = INT64_MAX; break;
		case 6: c.src_row = INT64_MAX / 2; break;
		case 7: c.dst_plane = 1ll << 50; break;
		case 8: c.src = 1ull << 50; break;
		}
		assert_int_equal(copy_2d(&c), expect);
		assert_int_equal(t_reset(&t, &t.dma), 0);
	}
}

static struct hw_telemetry telemetry(void)
{
	struct hw_telemetry got;

	assert_int_equal(t_admin(&t, HW_LOG_PAGE, HW_LOG_TELEMETRY, 0), 0);
	assert_int_equal(t.cqe.value, sizeof(got));
	memcpy(&got, t_args(&t), sizeof(got));
	return got;
}

/* 2^60 rows of no stride: endless, so a reset must end it. */
static void a_reset_ends_a_copy_without_end(void **state)
{
	struct hw_copy_2d c = { T_HBM_VA, T_HBM_VA + AT, 1, 1ull << 60, 1, 0, 0, 0, 0 };
	uint64_t busy = telemetry().busy_dma_ns;
	int64_t began;

	(void)state;
	memcpy(t.window, &c, sizeof(c));
	t_put(&t, &t.dma, (struct hw_sqe){ .op = HW_COPY_2D, .u.copy.src = T_HOST_VA });
	t_ring_bell(&t, &t.dma);
	while (telemetry().busy_dma_ns < busy + 1000000)
		;
	began = clock_ns();
	assert_int_equal(t_reset(&t, &t.dma), 0);
	assert_true(clock_ns() - began < 20000000000);
	assert_int_equal(t_take(&t, &t.dma), HW_ST_RESET);
	assert_int_equal(copy(&t.dma, 0, 100, 100), 0);
}

static void stamps_are_the_devices_clock(void **state)
{
	uint64_t before = sim_mmio_read(t.dev, HW_REG_CLOCK, 8), stamp, after;

	(void)state;
	assert_int_equal(t_ask(&t, &t.work, (struct hw_sqe){ .op = HW_TIMESTAMP,
		.u.copy.dst = T_HBM_VA + AT }), 0);
	after = sim_mmio_read(t.dev, HW_REG_CLOCK, 8);
	memcpy(&stamp, t.hbm + AT, 8);
	assert_in_range(stamp, before, after);
}

static void transfers_are_counted(void **state)
{
	struct hw_telemetry a = telemetry(), b;

	(void)state;
	assert_int_equal(t_ask(&t, &t.dma, (struct hw_sqe){ .op = HW_COPY,
		.u.copy = { T_HOST_VA, T_HBM_VA, 1000 } }), 0);
	assert_int_equal(t_ask(&t, &t.dma, (struct hw_sqe){ .op = HW_COPY,
		.u.copy = { T_HBM_VA, T_HOST_VA, 500 } }), 0);
	b = telemetry();
	assert_int_equal(b.dma_in_bytes - a.dma_in_bytes, 1000);
	assert_int_equal(b.dma_out_bytes - a.dma_out_bytes, 500);
	assert_int_equal(b.hbm_write_bytes - a.hbm_write_bytes, 1000);
	assert_int_equal(b.hbm_read_bytes - a.hbm_read_bytes, 500);
	assert_int_equal(b.n_copy - a.n_copy, 2);
	assert_true(b.busy_dma_ns > a.busy_dma_ns);
	assert_true(b.time_ns > a.time_ns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_ascend_byte_by_byte),
		cmocka_unit_test(large_copies_use_the_lanes_and_arrive),
		cmocka_unit_test(fills_repeat_their_pattern),
		cmocka_unit_test(fills_keep_their_phase_across_mappings),
		cmocka_unit_test(rows_and_planes_follow_any_strides),
		cmocka_unit_test(rows_may_have_holes_between_them),
		cmocka_unit_test(backward_rows_are_checked_where_they_go),
		cmocka_unit_test(impossible_rows_are_refused),
		cmocka_unit_test(a_reset_ends_a_copy_without_end),
		cmocka_unit_test(stamps_are_the_devices_clock),
		cmocka_unit_test(transfers_are_counted),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
