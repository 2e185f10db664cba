/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime on devices that are no models: the CPU does not see their memory. Two
 * openers of one card, which the fake kernel driver plays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/rt.h"
#include "tests/fake/accel_fake.h"

static struct rt_client *client;

static int setup(void **state)
{
	struct rt_client_options o = { .devices = "accel:/dev/accel/accel0,"
						  "accel:/dev/accel/accel1" };
	struct err err;

	(void)state;
	fake.is_silicon = true;
	if (fake_open_card(64 << 20))
		return -1;
	fake_put_node(1, "tessera");
	setenv("TESSERA_HBM_BYTES", "24M", 1);
	if (!rt_client_create(&o, &client, &err))
		return 0;
	fprintf(stderr, "%s\n", err.msg);
	return -1;
}

static int teardown(void **state)
{
	(void)state;
	rt_client_unref(client);
	if (!fake_is_empty())
		return -1;
	fake_close_card();
	return 0;
}

static void read_back(struct rt_buffer *b, void *to, uint64_t bytes)
{
	struct rt_event *done;
	struct err err;

	assert_int_equal(rt_buffer_to_host(b, 0, to, bytes, &done, &err), 0);
	assert_int_equal(rt_event_wait(done, &err), 0);
	rt_event_unref(done);
}

static void arrays_travel_between_devices(void **state)
{
	/* Nothing, a little, one piece and more than one. */
	static const int64_t sizes[] = { 0, 5, 4 << 20, (9 << 20) + 3 };
	uint8_t *in = malloc(sizes[3]), *out = malloc(sizes[3]);
	struct err err;

	(void)state;
	for (int64_t i = 0; i < sizes[3]; i++)
		in[i] = (uint8_t)(i * 7 + i / 4099);
	for (unsigned i = 0; i < 4; i++) {
		struct rt_shape shape = { .elem = ELEM_U8, .rank = 1, .dim = { sizes[i] } };
		struct rt_buffer *there, *back, *first;
		uint64_t n = (uint64_t)sizes[i];
		void *pointer;

		assert_int_equal(rt_buffer_from_host(client, 0, RT_DEVICE, &shape, in, NULL,
						     &first, &err), 0);
		assert_int_equal(rt_buffer_pointer(first, &pointer, &err), 0);
		assert_null(pointer);
		assert_int_equal(rt_buffer_copy(first, 1, RT_DEVICE, &there, &err), 0);
		assert_int_equal(rt_buffer_device(there), 1);
		rt_buffer_unref(first);
		memset(out, 0, n);
		read_back(there, out, n);
		assert_memory_equal(in, out, n);
		assert_int_equal(rt_buffer_copy(there, 0, RT_PINNED_HOST, &back, &err), 0);
		memset(out, 0, n);
		read_back(back, out, n);
		assert_memory_equal(in, out, n);
		rt_buffer_unref(there);
		rt_buffer_unref(back);
	}
	free(in);
	free(out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arrays_travel_between_devices),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
