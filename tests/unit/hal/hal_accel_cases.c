/* SPDX-License-Identifier: Apache-2.0 */
/* Two openers of one card, which only the kernel driver allows: on the fake driver and,
 * where TESSERA_DEVICES names a node, on the driver itself. For hal_device_test.c
 * to include, whose device it uses. */

static struct hal_device *open_neighbour(struct hal **h)
{
	struct hal_device *d;
	struct err err;

	setenv("TESSERA_HBM_BYTES", "8M", 1);
	if (hal_create(&(struct hal_options){ .devices = devices }, h, &err) ||
	    hal_device_open(*h, 0, &d, &err))
		fail_msg("%s", err.msg);
	unsetenv("TESSERA_HBM_BYTES");
	return d;
}

/* Fills memory of d by its queue and reads some of it. */
static void check_fill(struct hal_device *d, struct hal_mem *m, uint64_t pattern)
{
	struct hal_queue *q = hal_device_queue(d, HAL_QUEUE_DMA);
	uint64_t value, got[64], at = hal_mem_bytes(m) - sizeof(got);
	struct err err;

	assert_int_equal(hal_queue_fill(q, m, 0, hal_mem_bytes(m), pattern, &value, &err), 0);
	assert_int_equal(hal_queue_wait(q, value, clock_after(5000000000), &err), 0);
	assert_int_equal(hal_copy_out(got, m, at, sizeof(got), CLOCK_FOREVER, &err), 0);
	for (size_t i = 0; i < sizeof(got) / sizeof(*got); i++)
		assert_int_equal(got[i], pattern);
}

static void neighbours_do_not_notice_one_another(void **state)
{
	struct hal_queue *q = hal_device_queue(dev, HAL_QUEUE_COMPUTE);
	struct hal_exe *bad = load(stray, 3, 0), *endless = load(spin, 2, 0);
	struct hal_mem *m = get(1 << 20), *out = get(8), *theirs;
	struct hal_device *d;
	uint64_t value, got = 0;
	struct err err;
	struct hal *h;

	(void)state;
	for (unsigned round = 0; round < 3; round++) {
		d = open_neighbour(&h);
		assert_int_equal(hal_mem_alloc(d, HAL_MEM_HBM, 7 << 20, "x", &theirs, &err), 0);
		assert_int_equal(hal_mem_alloc(d, HAL_MEM_HBM, 2 << 20, "y", &theirs, &err),
				 ERR_RESOURCE_EXHAUSTED);
		check_fill(dev, m, 0x1111111111111111 * (round + 1));
		check_fill(d, theirs, 0x8888888888888888);
		assert_int_equal(hal_copy_out(&got, m, 0, 8, CLOCK_FOREVER, &err), 0);
		assert_int_equal(got, 0x1111111111111111 * (round + 1));
		/* A fault here, work that never ends there. */
		value = run(bad, out, 0);
		assert_int_equal(hal_queue_wait(q, value, clock_after(5000000000), &err),
				 ERR_INVALID_ARGUMENT);
		check_fill(d, theirs, 7);
		value = run(endless, out, 0);
		check_fill(d, theirs, 8);
		hal_destroy(h);
		assert_int_equal(hal_queue_reset(q, "enough", &err), 0);
		check_fill(dev, m, 9);
	}
	hal_exe_unload(bad);
	hal_exe_unload(endless);
	hal_mem_free(m);
	hal_mem_free(out);
}

/* Who resets what it has, ends nothing of others: not as root either. */
static void a_neighbours_reset_is_not_noticed(void **state)
{
	struct hal_queue *q = hal_device_queue(dev, HAL_QUEUE_COMPUTE), *their_q;
	struct hal_exe *endless = load(spin, 2, 0), *good = load(store_42, 3, 0);
	struct hal_mem *m = get(4096), *theirs;
	uint64_t value, their_value;
	struct hal_device *d;
	struct err err;
	struct hal *h;

	(void)state;
	d = open_neighbour(&h);
	their_q = hal_device_queue(d, HAL_QUEUE_DMA);
	assert_int_equal(hal_mem_alloc(d, HAL_MEM_HBM, 1 << 20, "x", &theirs, &err), 0);
	value = run(endless, m, 0);
	for (unsigned i = 0; i < 3; i++) {
		/* What never comes: the reset ends it. */
		assert_int_equal(hal_queue_copy(their_q, theirs, 0, theirs, 8, 8,
			&(struct hal_after){ hal_device_queue(d, HAL_QUEUE_COMPUTE), 1000 }, 1,
			&their_value, &err), 0);
		if (hal_device_reset(d, &err))
			fail_msg("%s", err.msg);
		assert_int_equal(hal_queue_wait(their_q, their_value, clock_after(5000000000),
						&err), ERR_ABORTED);
		check_fill(d, theirs, 3 + i);
	}
	assert_int_equal(hal_device_error(dev, &err), 0);
	assert_int_equal(hal_queue_wait(q, value, clock_after(50000000), &err),
			 ERR_DEADLINE_EXCEEDED);
	assert_int_equal(hal_queue_reset(q, "enough", &err), 0);
	value = run(good, m, 0);
	assert_int_equal(hal_queue_wait(q, value, clock_after(5000000000), &err), 0);
	hal_destroy(h);
	check_fill(dev, m, 5);
	hal_mem_free(m);
	hal_exe_unload(endless);
	hal_exe_unload(good);
}
