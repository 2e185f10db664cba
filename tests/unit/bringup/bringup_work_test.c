/* SPDX-License-Identifier: Apache-2.0 */
/* Each step that moves or computes bytes fails where a bit of memory, or an answer, is wrong. */
#include "tests/unit/bringup/bringup_test.h"

/* Which bits of HBM are stuck: one, or 64 that are a KiB apart; blocks begin at HBM's start. */
enum { SPREAD = -1 };

static const struct {
	const char *name;
	enum bringup_result (*step)(struct bringup *b);
	int64_t bit;
	const char *says;
} steps[] = {
	{ "bring_up", step_bring_up, 1, "reads 0x7e57" },
	{ "dma_sizes", step_dma_sizes, 200 * 8, "byte 200 of the destination" },
	{ "dma_alignments", step_dma_alignments, 920 * 8, "of the destination" },
	{ "dma_directions", step_dma_directions, SPREAD, "DMA queue: " },
	{ "dma_pages", step_dma_pages, 5000 * 8, "of the destination is" },
	{ "queues", step_queues, 0, "3000 runs that add 1" },
	{ "semaphores", step_semaphores, 0, "what the other queue counts" },
	{ "elementwise", step_elementwise, SPREAD, "of the result is" },
	{ "product", step_product, SPREAD, "of the result is" },
	{ "concurrency", step_concurrency, SPREAD, "other bytes than it sent" },
	{ "reset_under_load", step_reset_under_load, 0, "0x1235 instead of 0x1234" },
	{ "soak", step_soak, SPREAD, "dma_directions, as number 1" },
};

static struct t_step t;

static void begin(const char *devices)
{
	t_begin(&t, devices);
	t.options.hbm_bytes = 4096;
	t.options.soak_seconds = 0.2;
	assert_int_equal(bringup_need_device(&t.b), BRINGUP_PASS);
}

static void stick(struct hal_device *dev, int64_t bit)
{
	for (int64_t i = 0; i < (bit == SPREAD ? 64 : 1); i++) {
		uint64_t at = bit == SPREAD ? (uint64_t)((8 + i) * 8192 + 30) : (uint64_t)bit;

		assert_int_equal(hal_device_inject(dev, HW_INJECT_CELL,
			(uint64_t)HW_CELL_STUCK_1 << 56 | at, &t.b.err), 0);
	}
}

static void a_stuck_bit_fails_each_step_that_meets_it(void **state)
{
	(void)state;
	for (unsigned i = 0; i < COUNT(steps); i++) {
		begin("sim:hbm=64M,lanes=1");
		stick(t.b.dev, steps[i].bit);
		if (t_step(&t, steps[i].step) != BRINGUP_FAIL ||
		    !strstr(t.row.text, steps[i].says))
			fail_msg("%s, wanted \"%s\": %s", steps[i].name, steps[i].says,
				 t.row.text);
		t_end(&t);
	}
}

static void good_devices_pass_again_and_again(void **state)
{
	(void)state;
	begin("sim:hbm=64M,lanes=1");
	for (unsigned i = 0; i < 5 * COUNT(steps); i++)
		if (t_step(&t, steps[i % COUNT(steps)].step) != BRINGUP_PASS)
			fail_msg("%s: %s", steps[i % COUNT(steps)].name, t.row.text);
	for (unsigned i = 0; i < 20; i++)
		if (t_step(&t, step_ecc) != BRINGUP_PASS)
			fail_msg("ecc: %s", t.row.text);
	t_end(&t);
}

static void a_log_page_cut_short_fails_ecc(void **state)
{
	(void)state;
	begin("sim:hbm=64M,lanes=1");
	assert_int_equal(hal_device_inject(t.b.dev, HW_INJECT_WRONG_VALUE, 3, &t.b.err), 0);
	assert_int_equal(t_step(&t, step_ecc), BRINGUP_FAIL);
	assert_non_null(strstr(t.row.text, "has 3 bytes"));
	t_end(&t);
}

static void a_stuck_bit_of_a_neighbour_fails_links(void **state)
{
	struct hal_device *other;

	(void)state;
	begin("sim:devices=2,hbm=64M,lanes=1");
	assert_int_equal(t_step(&t, step_links), BRINGUP_PASS);
	assert_int_equal(hal_device_open(t.b.hal, 1, &other, &t.b.err), 0);
	stick(other, SPREAD);
	hal_device_close(other);
	assert_int_equal(t_step(&t, step_links), BRINGUP_FAIL);
	assert_non_null(strstr(t.row.text, "at chip 1 is"));
	t_end(&t);
}

static void a_dead_device_fails_every_step(void **state)
{
	(void)state;
	begin("sim:hbm=64M,lanes=1");
	assert_int_equal(hal_device_inject(t.b.dev, HW_INJECT_FATAL, 0, &t.b.err), 0);
	for (unsigned i = 0; i < COUNT(steps); i++) {
		assert_int_equal(t_step(&t, steps[i].step), BRINGUP_FAIL);
		assert_true(*t.row.text);
	}
	t_end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stuck_bit_fails_each_step_that_meets_it),
		cmocka_unit_test(good_devices_pass_again_and_again),
		cmocka_unit_test(a_log_page_cut_short_fails_ecc),
		cmocka_unit_test(a_stuck_bit_of_a_neighbour_fails_links),
		cmocka_unit_test(a_dead_device_fails_every_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
