/* SPDX-License-Identifier: Apache-2.0 */
/* Registers, doorbells, interrupts, options: what a bus sees. */
#include "tests/unit/sim/sim_test.h"

#include <sys/eventfd.h>
#include <unistd.h>

static struct t_sim t;

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

static uint64_t read4(uint32_t offset)
{
	return sim_mmio_read(t.dev, offset, 4);
}

static uint64_t read8(uint32_t offset)
{
	return sim_mmio_read(t.dev, offset, 8);
}

static void write4(uint32_t offset, uint32_t value)
{
	sim_mmio_write(t.dev, offset, 4, value);
}

static void registers_read_their_reset_values(void **state)
{
	(void)state;
	sim_flr(t.dev);
	assert_int_equal(read4(HW_REG_ID), 0x7e551234);
	assert_int_equal(read4(HW_REG_VERSION), 0x00010005);
	assert_int_equal(read8(HW_REG_CAP), 64 | 32 << 16 | 16ull << 32 | 1ull << 48);
	assert_int_equal(read4(HW_REG_CTRL), 0);
	assert_int_equal(read4(HW_REG_STATUS), 0);
	assert_int_equal(read4(HW_REG_AVECTOR), 0xffffffff);
	assert_int_equal(read8(HW_REG_HBM_BYTES), t.hbm_bytes);
	assert_int_equal(read4(HW_REG_FATAL), 0);
	assert_int_equal(read4(HW_REG_BADACC), 0);
	t_bring_up(&t);
}

static void halves_make_a_whole(void **state)
{
	uint64_t v = 0x1122334455667788;

	(void)state;
	sim_mmio_write(t.dev, HW_REG_SCRATCH, 8, v);
	assert_int_equal(read8(HW_REG_SCRATCH), v);
	assert_int_equal(read4(HW_REG_SCRATCH), (uint32_t)v);
	assert_int_equal(read4(HW_REG_SCRATCH + 4), v >> 32);
	write4(HW_REG_SCRATCH + 4, 1);
	assert_int_equal(read8(HW_REG_SCRATCH), 1ull << 32 | (uint32_t)v);
	sim_flr(t.dev);
	assert_int_equal(read8(HW_REG_SCRATCH), 0);
	t_bring_up(&t);
}

static void refused_accesses_read_ones_and_count(void **state)
{
	static const struct { uint32_t offset; unsigned bytes; } bad[] = {
		{ 2, 4 }, { 0, 1 }, { 0, 2 }, { 0, 16 }, { 0, 0 }, { HW_BAR0_BYTES, 4 },
		{ HW_BAR0_BYTES - 4, 8 }, { UINT32_MAX - 3, 4 }, { UINT32_MAX - 3, 8 },
		{ HW_REG_VERSION, 8 }, { HW_REG_SCRATCH + 4, 8 }, { HW_MSIX_TABLE + 12, 8 },
	};
	unsigned n = sizeof(bad) / sizeof(bad[0]);
	uint64_t before = read4(HW_REG_BADACC);

	(void)state;
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal((uint32_t)sim_mmio_read(t.dev, bad[i].offset, bad[i].bytes),
				 0xffffffff);
		sim_mmio_write(t.dev, bad[i].offset, bad[i].bytes, 0);
	}
	assert_int_equal(read4(HW_REG_BADACC), before + 2 * n);
	assert_int_equal(read4(0x500), 0);
	write4(0x500, 1);
	assert_int_equal(read4(0x500), 0);
	assert_int_equal(read4(HW_REG_BADACC), before + 2 * n);
}

static void read_only_registers_stay(void **state)
{
	uint64_t cap = read8(HW_REG_CAP), hbm = read8(HW_REG_HBM_BYTES);

	(void)state;
	sim_mmio_write(t.dev, HW_REG_CAP, 8, 0);
	sim_mmio_write(t.dev, HW_REG_HBM_BYTES, 8, 1);
	write4(HW_REG_STATUS, 0);
	write4(HW_REG_ID, 0);
	assert_int_equal(read8(HW_REG_CAP), cap);
	assert_int_equal(read8(HW_REG_HBM_BYTES), hbm);
	assert_int_equal(read4(HW_REG_STATUS), HW_STATUS_READY);
	assert_int_equal(read4(HW_REG_ID), 0x7e551234);
}

static void the_clock_runs_through_resets(void **state)
{
	uint64_t before = read8(HW_REG_CLOCK);

	(void)state;
	sim_flr(t.dev);
	assert_true(read8(HW_REG_CLOCK) > before);
	t_bring_up(&t);
}

/* Bad rings never make the device ready. */
static void enabling_checks_the_rings(void **state)
{
	static const struct { uint64_t asq, acq; uint32_t n; } bad[] = {
		{ T_IOVA, T_IOVA + 4096, 0 }, { T_IOVA, T_IOVA + 4096, 1 },
		{ T_IOVA, T_IOVA + 4096, 3 }, { T_IOVA, T_IOVA + 4096, 1u << 17 },
		{ T_IOVA, T_IOVA + 4096, UINT32_MAX }, { T_IOVA, T_IOVA + 4096, 1u << 31 },
		{ T_IOVA + 8, T_IOVA + 4096, 16 }, { 0, T_IOVA, 16 }, { T_IOVA, 0, 16 },
		{ UINT64_MAX - 63, T_IOVA, 16 },
		{ T_IOVA + T_PAGES * HW_PAGE - 64, T_IOVA, 16 },
	};

	(void)state;
	sim_flr(t.dev);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		sim_mmio_write(t.dev, HW_REG_ASQ, 8, bad[i].asq);
		sim_mmio_write(t.dev, HW_REG_ACQ, 8, bad[i].acq);
		write4(HW_REG_AQSIZE, bad[i].n);
		write4(HW_REG_CTRL, HW_CTRL_ENABLE);
		assert_int_equal(read4(HW_REG_STATUS), 0);
		assert_int_equal(read4(HW_REG_CTRL), 0);
	}
	assert_int_equal(read4(HW_REG_BADACC), sizeof(bad) / sizeof(bad[0]));
	t_bring_up(&t);
	/* Enabled, the registers of queue 0 are kept. */
	write4(HW_REG_AQSIZE, 2);
	assert_int_equal(read4(HW_REG_AQSIZE), T_ENTRIES);
	assert_int_equal(t_admin(&t, HW_NOP, 0, 0), 0);
}

static void doorbells_of_nothing_are_counted(void **state)
{
	uint64_t before = read4(HW_REG_BADACC);

	(void)state;
	for (unsigned q = 40; q < HW_MAX_QUEUES; q++)
		write4(hw_doorbell(q), 1);
	assert_int_equal(read4(HW_REG_BADACC), before + HW_MAX_QUEUES - 40);
	write4(hw_doorbell(HW_MAX_QUEUES), 1);
	write4(hw_doorbell(1) + 4, 1);
	assert_int_equal(read4(HW_REG_BADACC), before + HW_MAX_QUEUES - 40);
	/* More than the ring holds, and backwards. */
	write4(hw_doorbell(t.work.id), t.work.tail + T_ENTRIES + 1);
	assert_int_equal(read4(HW_REG_BADACC), before + HW_MAX_QUEUES - 40 + 1);
	write4(hw_doorbell(t.work.id), t.work.tail - 1);
	write4(hw_doorbell(0), t.admin.tail + T_ENTRIES + 1);
	assert_int_equal(read4(HW_REG_BADACC), before + HW_MAX_QUEUES - 40 + 3);
	assert_int_equal(t_ask(&t, &t.work, (struct hw_sqe){ .op = HW_NOP }), 0);
}

/* Stores to wake pages may have any size; what is not all in one page of a context's is as
 * anywhere else. */
static void wake_pages_take_any_store_and_read_as_0(void **state)
{
	static const struct { uint32_t offset; unsigned bytes; } bad[] = {
		{ HW_WAKE_BASE + 1, 4 }, { HW_WAKE_BASE + 8, 2 }, { HW_WAKE_BASE + 0xffe, 4 },
		{ HW_WAKE_BASE + 0x1ffe, 4 }, { HW_WAKE_BASE + 0x1000, 0 },
		{ HW_WAKE_BASE + 0x1ffc, 8 },	/* over the end of a page, at a multiple of 4 */
		{ HW_WAKE_BASE + 0x1000, 0x1001 },
		{ HW_WAKE_BASE + HW_MAX_CONTEXTS * HW_WAKE_STRIDE, 1 },
	};
	unsigned n = sizeof(bad) / sizeof(bad[0]);
	uint64_t before = read4(HW_REG_BADACC);

	(void)state;
	for (unsigned ctx = 1; ctx < HW_MAX_CONTEXTS; ctx++) {
		for (unsigned bytes = 1; bytes <= 64; bytes++) {
			sim_mmio_write(t.dev, hw_wake(ctx) + bytes, bytes, ~0ull);
			sim_mmio_write(t.dev, hw_wake(ctx) + HW_PAGE - bytes, bytes, 0);
		}
		assert_int_equal(read4(hw_wake(ctx)), 0);
		assert_int_equal(read8(hw_wake(ctx) + HW_PAGE - 8), 0);
	}
	/* No context has number 0. */
	write4(hw_wake(0), 1);
	assert_int_equal(read4(HW_REG_BADACC), before);
	for (unsigned i = 0; i < n; i++)
		sim_mmio_write(t.dev, bad[i].offset, bad[i].bytes, 0);
	assert_int_equal(read4(HW_REG_BADACC), before + n);
	assert_int_equal((uint32_t)sim_mmio_read(t.dev, hw_wake(1) + 1, 1), 0xffffffff);
	assert_int_equal(read4(HW_REG_BADACC), before + n + 1);
	assert_int_equal(t_ask(&t, &t.work, (struct hw_sqe){ .op = HW_NOP }), 0);
}

static uint64_t count_of(int fd)
{
	uint64_t n = 0;

	return read(fd, &n, sizeof(n)) == sizeof(n) ? n : 0;
}

static void masked_vectors_wait_for_unmasking(void **state)
{
	int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	struct t_ring q;

	(void)state;
	assert_int_equal(sim_irq_fd(t.dev, 3, fd, NULL), 0);
	assert_int_equal(t_queue(&t, &q, (struct hw_queue){ .ctx = (uint16_t)t.ctx,
		.cls = HW_CLASS_DMA, .vector = 3 }), 0);
	assert_int_equal(read4(HW_MSIX_TABLE + 3 * 16 + 12), 1);
	t_ask(&t, &q, (struct hw_sqe){ .op = HW_NOP, .flags = HW_IRQ | HW_INLINE });
	assert_int_equal(count_of(fd), 0);
	assert_int_equal(read4(HW_MSIX_PBA), 1u << 3);
	write4(HW_MSIX_TABLE + 3 * 16 + 12, 0);
	assert_int_equal(count_of(fd), 1);
	assert_int_equal(read4(HW_MSIX_PBA), 0);
	t_ask(&t, &q, (struct hw_sqe){ .op = HW_NOP, .flags = HW_INLINE });
	assert_int_equal(count_of(fd), 0);
	for (int i = 0; i < 3; i++)
		t_ask(&t, &q, (struct hw_sqe){ .op = HW_NOP, .flags = HW_IRQ | HW_INLINE });
	assert_int_equal(count_of(fd), 3);
	/* A failure is told whether it asked or not. */
	t_ask(&t, &q, (struct hw_sqe){ .op = 0xee });
	assert_int_equal(t_reset(&t, &q), 0);
	assert_int_equal(count_of(fd), 1);
	assert_int_equal(t_admin(&t, HW_INJECT, HW_INJECT_DROP_IRQ, 1), 0);
	t_ask(&t, &q, (struct hw_sqe){ .op = HW_NOP, .flags = HW_IRQ | HW_INLINE });
	assert_int_equal(count_of(fd), 0);
	t_ask(&t, &q, (struct hw_sqe){ .op = HW_NOP, .flags = HW_IRQ | HW_INLINE });
	assert_int_equal(count_of(fd), 1);
	sim_irq_fd(t.dev, 3, -1, NULL);
	t_ask(&t, &q, (struct hw_sqe){ .op = HW_NOP, .flags = HW_IRQ });
	close(fd);
	assert_int_equal(t_admin(&t, HW_QUEUE_DESTROY, q.id, 0), 0);
	assert_int_equal(sim_irq_fd(t.dev, HW_MAX_VECTORS, -1, NULL), ERR_OUT_OF_RANGE);
}

static void the_table_keeps_its_words(void **state)
{
	(void)state;
	for (unsigned w = 0; w < 3; w++)
		write4(HW_MSIX_TABLE + 31 * 16 + 4 * w, 0x1000 + w);
	for (unsigned w = 0; w < 3; w++)
		assert_int_equal(read4(HW_MSIX_TABLE + 31 * 16 + 4 * w), 0x1000 + w);
}

static void options_are_read_and_named_when_wrong(void **state)
{
	static const char *const bad[] = {
		"devices=0", "devices=65", "devices=x", "hbm=1", "hbm=3M", "hbm=99999999T",
		"lanes=0", "lanes=-1", "path=sse", "speed=9", "devices", "hbm=4GG",
	};
	struct sim_options o;
	struct err err;
	char text[400];

	(void)state;
	assert_int_equal(sim_options_parse("devices=4,hbm=8G,lanes=2,path=avx2", &o, NULL), 0);
	assert_int_equal(o.n_devices, 4);
	assert_int_equal(o.hbm_bytes, 8ull << 30);
	assert_int_equal(o.lanes, 2);
	assert_string_equal(o.isa_path, "avx2");
	assert_int_equal(sim_options_parse(NULL, &o, NULL), 0);
	assert_int_equal(o.n_devices, 0);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(sim_options_parse(bad[i], &o, &err), ERR_INVALID_ARGUMENT);
		assert_non_null(strstr(err.msg, bad[i]));
	}
	memset(text, 'a', sizeof(text));
	text[sizeof(text) - 1] = 0;
	assert_int_equal(sim_options_parse(text, &o, &err), ERR_INVALID_ARGUMENT);
}

static void identify_tells_the_device(void **state)
{
	const struct hw_identify *id = t_args(&t);

	(void)state;
	assert_int_equal(t_admin(&t, HW_IDENTIFY, 0, 0), 0);
	assert_int_equal(id->magic, HW_IDENTIFY_MAGIC);
	assert_int_equal(id->isa, ISA_VERSION);
	assert_int_equal(id->hbm_bytes, t.hbm_bytes);
	assert_int_equal(id->cores, 1);
	assert_int_equal(id->is_model, 1);
	assert_string_equal(id->name, "Tessera T1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(registers_read_their_reset_values),
		cmocka_unit_test(halves_make_a_whole),
		cmocka_unit_test(refused_accesses_read_ones_and_count),
		cmocka_unit_test(read_only_registers_stay),
		cmocka_unit_test(the_clock_runs_through_resets),
		cmocka_unit_test(enabling_checks_the_rings),
		cmocka_unit_test(doorbells_of_nothing_are_counted),
		cmocka_unit_test(wake_pages_take_any_store_and_read_as_0),
		cmocka_unit_test(masked_vectors_wait_for_unmasking),
		cmocka_unit_test(the_table_keeps_its_words),
		cmocka_unit_test(options_are_read_and_named_when_wrong),
		cmocka_unit_test(identify_tells_the_device),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
