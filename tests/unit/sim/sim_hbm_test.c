/* SPDX-License-Identifier: Apache-2.0 */
/* HBM as a file that others may hold: its size stays, and new memory takes its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "hal/sim/sim.h"

#define BYTES (4u << 20)

static void size_is_sealed(void **state)
{
	struct sim_options o = { .hbm_bytes = BYTES, .lanes = 1 };
	struct sim *sim;
	struct err err;
	int fd;

	(void)state;
	assert_int_equal(sim_create(&o, &sim, &err), 0);
	fd = dup(sim_hbm_fd(sim_device(sim, 0)));
	assert_int_equal(ftruncate(fd, 4096), -1);
	assert_int_equal(ftruncate(fd, 2 * BYTES), -1);
	assert_int_equal(lseek(fd, 0, SEEK_END), BYTES);
	close(fd);
	sim_destroy(sim);
}

static void renewed_memory_is_zero_and_nobody_elses(void **state)
{
	struct sim_options o = { .n_devices = 2, .hbm_bytes = BYTES, .lanes = 1 };
	uint64_t bytes;
	struct sim *sim;
	struct err err;
	uint8_t *hbm, *other, *held;

	(void)state;
	assert_int_equal(sim_create(&o, &sim, &err), 0);
	hbm = sim_hbm(sim_device(sim, 0), &bytes);
	other = sim_hbm(sim_device(sim, 1), &bytes);
	held = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
		    sim_hbm_fd(sim_device(sim, 0)), 0);
	assert_ptr_not_equal(held, MAP_FAILED);
	hbm[0] = other[0] = 1;
	hbm[BYTES - 1] = 2;
	assert_int_equal(held[0], 1);
	assert_int_equal(sim_hbm_renew(sim_device(sim, 0), &err), 0);
	assert_ptr_equal(sim_hbm(sim_device(sim, 0), &bytes), hbm);
	assert_int_equal(bytes, BYTES);
	assert_int_equal(hbm[0] | hbm[BYTES - 1], 0);
	assert_int_equal(other[0], 1);
	hbm[0] = 7;
	assert_int_equal(held[0], 1);
	held[0] = 9;
	assert_int_equal(hbm[0], 7);
	/* The new file is what the address shows. */
	munmap(held, BYTES);
	held = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, sim_hbm_fd(sim_device(sim, 0)), 0);
	assert_int_equal(held[0], 7);
	munmap(held, BYTES);
	sim_destroy(sim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(size_is_sealed),
		cmocka_unit_test(renewed_memory_is_zero_and_nobody_elses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
