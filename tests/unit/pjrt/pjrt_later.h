/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_PJRT_LATER_H
#define TESTS_UNIT_PJRT_LATER_H
/* What the suites of content that comes later share: a client with two programs, arrays of 16
 * floats, aliases. */
#include "tests/unit/pjrt/pjrt_test.h"

static struct PJRT_Client *client;
static struct PJRT_Device *dev;
static struct PJRT_LoadedExecutable *scale_add, *donating;

static inline int open_client(void **state)
{
	if (load_plugin(state))
		return -1;
	client = new_client("devices=2,hbm=64M,lanes=2");
	dev = device_of(client, 0);
	scale_add = compile_on(client, "scale_add.mlirbc", 0);
	donating = compile_on(client, "scale_add_donated.mlirbc", 0);
	return 0;
}

static inline int close_client(void **state)
{
	(void)state;
	drop_exe(scale_add);
	drop_exe(donating);
	drop_client(client);
	return 0;
}

static inline struct PJRT_Buffer *filled(float v)
{
	float data[16];

	for (int i = 0; i < 16; i++)
		data[i] = v;
	return put_floats(client, data, 16);
}

/* Reads 16 floats, all of them `want`. */
static inline void expect(struct PJRT_Buffer *b, float want)
{
	float back[16];

	assert_ok(fetch(b, back, sizeof(back)));
	for (int i = 0; i < 16; i++)
		assert_true(back[i] == want);
}

static inline int64_t bytes_in_use(void)
{
	return GET(Device_MemoryStats, bytes_in_use, .device = dev);
}

struct alias { struct PJRT_Buffer *b; void *cb; };

static inline struct alias new_alias(void)
{
	static const int64_t dim = 16;
	struct PJRT_Client_CreateAliasBuffer_Args a;

	assert_ok(CALL_AS(&a, Client_CreateAliasBuffer, .client = client,
			  .memory = memory_of(dev, 0), .shape_dims = &dim, .shape_num_dims = 1,
			  .shape_element_type = PJRT_Buffer_Type_F32));
	return (struct alias){ a.alias_buffer, a.fulfill_alias_buffer_cb };
}

static inline struct PJRT_Error *fulfill(struct alias a, struct PJRT_Buffer *with)
{
	return CALL(Client_FulfillAliasBuffer, .client = client, .buffer = with,
		    .fulfill_alias_buffer_cb = a.cb);
}

static inline struct PJRT_Error *break_it(struct alias a)
{
	return CALL(Client_FulfillAliasBuffer, .client = client,
		    .status_code = PJRT_Error_Code_UNAVAILABLE, .error_message = "it went away",
		    .error_message_size = 12, .fulfill_alias_buffer_cb = a.cb);
}

static inline void release(const struct PJRT_Buffer_DonateWithControlDependency_Args *d, int code)
{
	struct PJRT_Buffer_DonateWithControlDependency_Callback_Args a = {
		.struct_size = PJRT_Buffer_DonateWithControlDependency_Callback_Args_SIZE,
		.callback_data = d->callback_data, .error_code = code,
		.error_message = "not this time", .error_message_size = 13 };

	((void (*)(void *))d->dependency_ready_callback)(&a);
}

#endif
