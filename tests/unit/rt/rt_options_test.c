/* SPDX-License-Identifier: Apache-2.0 */
/* Compile options as frameworks send them, and as nobody should. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/compile_options.pb-c.h"
#include "runtime/rt_internal.h"

enum { MOST = 8 };

static unsigned n_devices = 2, devices[MOST];	/* how many there are; of each member */
static struct rt_counts counts;

/* The first replica's device. */
static int parse_bytes(const void *bytes, size_t n, unsigned *device, struct err *err)
{
	const struct rt_ids ids = { n_devices, 0, n_devices };
	int code = rt_parse_options(ids, bytes, n, devices, &counts, err);

	if (!code)
		*device = devices[0];
	return code;
}

/* The options of one build: its code, *device, and err.msg. */
static int parse(Rt__BuildOptions *b, unsigned *device, struct err *err)
{
	Rt__CompileOptions o = RT__COMPILE_OPTIONS__INIT;
	uint8_t bytes[256];
	size_t n;

	o.executable_build_options = b;
	n = rt__compile_options__get_packed_size(&o);
	assert_in_range(n, 0, sizeof(bytes));
	rt__compile_options__pack(&o, bytes);
	return parse_bytes(bytes, n, device, err);
}

static int parse_ordinal(int64_t ordinal, unsigned *device, struct err *err)
{
	Rt__BuildOptions b = RT__BUILD_OPTIONS__INIT;

	b.has_device_ordinal = 1;
	b.device_ordinal = ordinal;
	return parse(&b, device, err);
}

static void an_ordinal_names_a_device_that_is_there(void **state)
{
	static const int64_t wrong[] = { 2, 1ll << 32, (1ll << 32) + 1, INT64_MAX };
	unsigned device;
	struct err err;

	(void)state;
	assert_int_equal(parse_bytes("", 0, &device, &err), 0);
	assert_int_equal(device, 0);
	assert_int_equal(parse_ordinal(-1, &device, &err), 0);
	assert_int_equal(device, 0);
	assert_int_equal(parse_ordinal(1, &device, &err), 0);
	assert_int_equal(device, 1);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(parse_ordinal(wrong[i], &device, &err), ERR_INVALID_ARGUMENT);
		assert_non_null(strstr(err.msg, "there are 2"));
	}
}

static void an_assignment_names_one_device(void **state)
{
	int64_t ids[2] = { 1, 0 };
	Rt__ComputationDevices one = RT__COMPUTATION_DEVICES__INIT;
	Rt__ComputationDevices *list[2] = { &one, &one };
	Rt__DeviceAssignment a = RT__DEVICE_ASSIGNMENT__INIT;
	Rt__BuildOptions b = RT__BUILD_OPTIONS__INIT;
	unsigned device;
	struct err err;

	(void)state;
	one.replica_device_ids = ids;
	one.n_replica_device_ids = 1;
	a.computation_devices = list;
	a.n_computation_devices = 1;
	b.device_assignment = &a;
	assert_int_equal(parse(&b, &device, &err), 0);
	assert_int_equal(device, 1);
	ids[0] = 2;
	assert_int_equal(parse(&b, &device, &err), ERR_INVALID_ARGUMENT);
	ids[0] = -1;
	assert_int_equal(parse(&b, &device, &err), ERR_INVALID_ARGUMENT);
	ids[0] = 1;
	one.n_replica_device_ids = 2;
	assert_int_equal(parse(&b, &device, &err), ERR_INVALID_ARGUMENT);
	assert_non_null(strstr(err.msg, "2 devices for 1 replicas, of partition 0"));
	one.n_replica_device_ids = 0;
	assert_int_equal(parse(&b, &device, &err), ERR_INVALID_ARGUMENT);
	one.n_replica_device_ids = 1;
	a.n_computation_devices = 2;
	assert_int_equal(parse(&b, &device, &err), ERR_INVALID_ARGUMENT);
	assert_non_null(strstr(err.msg, "assignment of 2 partitions for a program of 1"));
}

static void replicas_are_on_devices_of_their_own(void **state)
{
	int64_t ids[2] = { 1, 0 };
	Rt__ComputationDevices one = RT__COMPUTATION_DEVICES__INIT, *list = &one;
	Rt__DeviceAssignment a = RT__DEVICE_ASSIGNMENT__INIT;
	Rt__BuildOptions b = RT__BUILD_OPTIONS__INIT;
	unsigned device;
	struct err err;

	(void)state;
	b.has_num_replicas = 1;
	b.num_replicas = 2;
	assert_int_equal(parse(&b, &device, &err), 0);
	assert_int_equal(device, 0);
	assert_int_equal(counts.replicas, 2);
	assert_int_equal(counts.partitions, 1);
	one.replica_device_ids = ids;
	one.n_replica_device_ids = 2;
	a.computation_devices = &list;
	a.n_computation_devices = 1;
	b.device_assignment = &a;
	assert_int_equal(parse(&b, &device, &err), 0);
	assert_int_equal(device, 1);
	ids[1] = 1;
	assert_int_equal(parse(&b, &device, &err), ERR_INVALID_ARGUMENT);
	assert_non_null(strstr(err.msg, "device 1 for members 0 and 1"));
	b.num_replicas = 3;
	assert_int_equal(parse(&b, &device, &err), ERR_INVALID_ARGUMENT);
	assert_non_null(strstr(err.msg, "3 replicas of 1 partitions, a device for each; there are "
			       "2 devices"));
	b.num_replicas = -1;
	assert_int_equal(parse(&b, &device, &err), ERR_INVALID_ARGUMENT);
	b.num_replicas = 2;
	b.has_num_partitions = 1;
	b.num_partitions = 2;
	assert_int_equal(parse(&b, &device, &err), ERR_INVALID_ARGUMENT);
	assert_non_null(strstr(err.msg, "2 replicas of 2 partitions"));
	b.num_partitions = -1;
	assert_int_equal(parse(&b, &device, &err), ERR_INVALID_ARGUMENT);
	/* the product of these is 0 in 64 bits */
	b.num_replicas = b.num_partitions = 1ll << 32;
	assert_int_equal(parse(&b, &device, &err), ERR_INVALID_ARGUMENT);
}

/* An assignment has a list for each partition, with an id for each replica. */
static void members_are_counted_by_replica_then_partition(void **state)
{
	int64_t ids[3][2] = { { 7, 2 }, { 0, 5 }, { 1, 3 } };
	Rt__ComputationDevices part[3], *list[3];
	Rt__DeviceAssignment a = RT__DEVICE_ASSIGNMENT__INIT;
	Rt__BuildOptions b = RT__BUILD_OPTIONS__INIT;
	static const unsigned want[6] = { 7, 0, 1, 2, 5, 3 };
	struct err err;
	unsigned device;

	(void)state;
	n_devices = 8;
	b.has_num_replicas = b.has_num_partitions = 1;
	b.num_replicas = 2;
	b.num_partitions = 3;
	assert_int_equal(parse(&b, &device, &err), 0);
	for (unsigned i = 0; i < 6; i++)
		assert_int_equal(devices[i], i);
	for (unsigned i = 0; i < 3; i++) {
		rt__computation_devices__init(&part[i]);
		part[i].replica_device_ids = ids[i];
		part[i].n_replica_device_ids = 2;
		list[i] = &part[i];
	}
	a.computation_devices = list;
	a.n_computation_devices = 3;
	b.device_assignment = &a;
	assert_int_equal(parse(&b, &device, &err), 0);
	assert_int_equal(counts.replicas, 2);
	assert_int_equal(counts.partitions, 3);
	assert_memory_equal(devices, want, sizeof(want));
	ids[2][1] = 7;
	assert_int_equal(parse(&b, &device, &err), ERR_INVALID_ARGUMENT);
	assert_non_null(strstr(err.msg, "device 7 for members 0 and 5"));
	ids[2][1] = 8;
	assert_int_equal(parse(&b, &device, &err), ERR_INVALID_ARGUMENT);
	ids[2][1] = 3;
	part[1].n_replica_device_ids = 1;
	assert_int_equal(parse(&b, &device, &err), ERR_INVALID_ARGUMENT);
	assert_non_null(strstr(err.msg, "1 devices for 2 replicas, of partition 1"));
	part[1].n_replica_device_ids = 2;
	a.n_computation_devices = 2;
	assert_int_equal(parse(&b, &device, &err), ERR_INVALID_ARGUMENT);
	a.n_computation_devices = 3;
	/* all of 8, and one more than there are */
	b.device_assignment = NULL;
	b.num_partitions = 4;
	assert_int_equal(parse(&b, &device, &err), 0);
	assert_int_equal(devices[7], 7);
	n_devices = 7;
	assert_int_equal(parse(&b, &device, &err), ERR_INVALID_ARGUMENT);
	n_devices = 2;
}

/* Parses one option by name, as its framework packs it. */
static int parse_option(const char *key, Rt__OptionValue *v, struct err *err)
{
	Rt__CompileOptions o = RT__COMPILE_OPTIONS__INIT;
	Rt__Option one = RT__OPTION__INIT, *list = &one;
	uint8_t bytes[256];
	unsigned device;
	size_t n;

	one.key = (char *)(uintptr_t)key;
	one.value = v;
	o.env_option_overrides = &list;
	o.n_env_option_overrides = 1;
	n = rt__compile_options__get_packed_size(&o);
	assert_in_range(n, 0, sizeof(bytes));
	rt__compile_options__pack(&o, bytes);
	return parse_bytes(bytes, n, &device, err);
}

static void unknown_options_are_refused_by_name(void **state)
{
	Rt__OptionValue v = RT__OPTION_VALUE__INIT;
	struct err err;

	(void)state;
	v.string_field = "invalid_value";
	assert_int_equal(parse_option("invalid_key", &v, &err), ERR_INVALID_ARGUMENT);
	assert_non_null(strstr(err.msg, "No such compile option: 'invalid_key'"));
	assert_non_null(strstr(err.msg, "xla_dump_to, "));
	assert_int_equal(parse_option("", NULL, &err), ERR_INVALID_ARGUMENT);
	assert_int_equal(parse_option("xla_dump_to", &v, &err), 0);
	assert_int_equal(parse_option("xla_embed_ir_in_executable", &v, &err),
			 ERR_INVALID_ARGUMENT);
	assert_non_null(strstr(err.msg, "While setting option xla_embed_ir_in_executable, "
			       "'invalid_value' is not a valid bool value."));
}

static void values_fit_their_options(void **state)
{
	enum { BOOL = 1, INT = 2, FLOAT = 4, STRING = 8 };
	static const struct { const char *text; int fits; } texts[] = {
		{ "true", BOOL }, { "False", BOOL }, { "maybe", 0 }, { "12", INT | FLOAT },
		{ "-1.5", FLOAT }, { "1x", 0 }, { "", 0 },
	};
	static const struct { const char *name; int type; } options[] = {
		{ "xla_embed_ir_in_executable", BOOL }, { "xla_dump_max_hlo_modules", INT },
		{ "xla_gpu_auto_spmd_partitioning_memory_budget_mb", FLOAT },
		{ "xla_dump_to", STRING },
	};
	struct err err;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		Rt__OptionValue v = RT__OPTION_VALUE__INIT;
		int type = options[i].type;

		assert_int_equal(!parse_option(options[i].name, &v, &err), 0);
		assert_int_equal(!parse_option(options[i].name, NULL, &err), 0);
		v.has_bool_field = 1;
		assert_int_equal(!parse_option(options[i].name, &v, &err), type == BOOL);
		v.has_bool_field = 0;
		v.has_int_field = 1;
		assert_int_equal(!parse_option(options[i].name, &v, &err),
				 type == INT || type == FLOAT);
		v.has_int_field = 0;
		v.has_double_field = 1;
		assert_int_equal(!parse_option(options[i].name, &v, &err), type == FLOAT);
		v.has_double_field = 0;
		for (unsigned k = 0; k < sizeof(texts) / sizeof(*texts); k++) {
			v.string_field = (char *)(uintptr_t)texts[k].text;
			assert_int_equal(!parse_option(options[i].name, &v, &err),
					 type == STRING || (texts[k].fits & type) != 0);
		}
	}
}

static void broken_bytes_are_refused(void **state)
{
	static const uint8_t cut[] = { 0x1a, 0x7f, 0x08 };
	unsigned device;
	struct err err;

	(void)state;
	assert_int_equal(parse_bytes(cut, sizeof(cut), &device, &err),
			 ERR_INVALID_ARGUMENT);
	assert_non_null(strstr(err.msg, "CompileOptionsProto"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_ordinal_names_a_device_that_is_there),
		cmocka_unit_test(an_assignment_names_one_device),
		cmocka_unit_test(replicas_are_on_devices_of_their_own),
		cmocka_unit_test(members_are_counted_by_replica_then_partition),
		cmocka_unit_test(unknown_options_are_refused_by_name),
		cmocka_unit_test(values_fit_their_options),
		cmocka_unit_test(broken_bytes_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
