/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers that a device gives and that stores go by: one that cannot be is refused before
 * anything is stored by it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "hal/bus.h"
#include "hal/hw/desc.h"
#include "hal/hw/regs.h"
#include "hal/sim/sim.h"
#include "hal/transport.h"

static void a_queue_number_that_cannot_be_is_refused(void **state)
{
	static const uint64_t bad[] = { 0, HW_MAX_QUEUES, 1u << 16, 1ull << 32, ~0ull };
	struct hw_sqe lie = { .op = HW_INJECT, .id = HW_INJECT_WRONG_VALUE };
	struct hal_direct_host host = { .bus = &hal_bus_sim };
	struct hw_identify identity;
	struct hal_transport *t;
	struct sim_options o;
	struct hal_ring *ring;
	struct sim *sim;
	struct err err;
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	(void)state;
	assert_int_equal(sim_options_parse("hbm=16M,lanes=1", &o, &err), 0);
	assert_int_equal(sim_create(&o, &sim, &err), 0);
	host.host = sim;
	assert_int_equal(hal_transport_direct.open(&host, "0", fd, &t, &identity, &err), 0);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		lie.u.admin.value = bad[i];
		assert_int_equal(t->ops->ask(t, lie, NULL, 0, NULL, &err), 0);
		assert_int_equal(t->ops->ring_create(t, HW_CLASS_DMA, 8, &ring, &err),
				 ERR_INTERNAL);
		assert_non_null(strstr(err.msg, "1 to 63 can"));
		assert_non_null(strstr(err.msg, "reset it"));
		/* The queue is there, and what its number is only the device knows. */
		assert_int_equal(t->ops->ring_create(t, HW_CLASS_DMA, 8, &ring, &err),
				 ERR_UNAVAILABLE);
		assert_int_equal(t->ops->reset(t, &err), 0);
		assert_int_equal(t->ops->ring_create(t, HW_CLASS_DMA, 8, &ring, &err), 0);
		t->ops->ring_destroy(ring);
	}
	t->ops->close(t);
	sim_destroy(sim);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_queue_number_that_cannot_be_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
