/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers that a device gives and that stores or loads go by: one that cannot be is refused before
 * anything is reached by it. */
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

/* A device of the sim's, and its transport. */
struct fixture {
	struct sim *sim;
	struct hal_transport *t;
	int fd;
};

static void start(struct fixture *f)
{
	struct hal_direct_host host = { .bus = &hal_bus_sim };
	struct hw_identify identity;
	struct sim_options o;
	struct err err;

	f->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert_int_equal(sim_options_parse("hbm=16M,lanes=1", &o, &err), 0);
	assert_int_equal(sim_create(&o, &f->sim, &err), 0);
	host.host = f->sim;
	assert_int_equal(hal_transport_direct.open(&host, "0", f->fd, &f->t, &identity, &err), 0);
}

static void stop(struct fixture *f)
{
	f->t->ops->close(f->t);
	sim_destroy(f->sim);
	close(f->fd);
}

/* The next answer has that value. */
static void lie(struct hal_transport *t, uint64_t value)
{
	struct hw_sqe sqe = { .op = HW_INJECT, .id = HW_INJECT_WRONG_VALUE,
			      .u.admin.value = value };
	struct err err;

	assert_int_equal(t->ops->ask(t, sqe, NULL, 0, NULL, &err), 0);
}

static void a_queue_number_that_cannot_be_is_refused(void **state)
{
	static const uint64_t bad[] = { 0, HW_MAX_QUEUES, 1u << 16, 1ull << 32, ~0ull };
	struct hal_transport *t;
	struct hal_ring *ring;
	struct fixture f;
	struct err err;

	(void)state;
	start(&f);
	t = f.t;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		lie(t, bad[i]);
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
	stop(&f);
}

static void a_log_page_longer_than_its_room_is_refused(void **state)
{
	static const uint16_t pages[] = { HW_LOG_FAULT, HW_LOG_QUEUES, HW_LOG_LINKS };
	struct hw_fault room[4];
	struct hal_transport *t;
	struct fixture f;
	struct err err;
	uint64_t got;

	(void)state;
	start(&f);
	t = f.t;
	for (unsigned i = 0; i < sizeof(pages) / sizeof(*pages); i++) {
		struct hw_sqe sqe = { .op = HW_LOG_PAGE, .id = pages[i] };

		lie(t, i ? ~0ull : sizeof(room) + 1);
		got = 0;
		assert_int_equal(t->ops->ask(t, sqe, room, sizeof(room), &got, &err),
				 ERR_INTERNAL);
		assert_int_equal(got, 0);
		assert_non_null(strstr(err.msg, "room for 256"));
		assert_non_null(strstr(err.msg, "reset it"));
		assert_int_equal(t->ops->ask(t, sqe, room, sizeof(room), &got, &err),
				 ERR_UNAVAILABLE);
		assert_int_equal(t->ops->reset(t, &err), 0);
		lie(t, sizeof(room));
		assert_int_equal(t->ops->ask(t, sqe, room, sizeof(room), &got, &err), 0);
		assert_int_equal(got, sizeof(room));
	}
	stop(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_queue_number_that_cannot_be_is_refused),
		cmocka_unit_test(a_log_page_longer_than_its_room_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
