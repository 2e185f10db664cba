/* SPDX-License-Identifier: Apache-2.0 */
/* Answers in XLA's protobufs: the bytes of tests/data/xla_protos.def. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/rt.h"

static void assert_bytes(const void *p, size_t n, const char *want)
{
	char hex[1024];

	assert_true(2 * n < sizeof(hex));
	for (size_t i = 0; i < n; i++)
		snprintf(hex + 2 * i, 3, "%02x", ((const uint8_t *)p)[i]);
	assert_string_equal(hex, want);
}

static void check_shape(enum elem elem, enum rt_memory_kind kind, const char *dims,
			const char *want)
{
	struct rt_shape s = { .elem = elem };
	struct err err;
	size_t n;
	void *p;

	for (char *end; *dims; dims = end)
		s.dim[s.rank++] = strtoll(dims, &end, 10);
	assert_int_equal(rt_shape_proto(&s, kind, &p, &n, &err), 0);
	assert_bytes(p, n, want);
	free(p);
}

static void check_assignment(const char *devices, const char *want)
{
	int64_t ids[8];
	unsigned n_ids = 0;
	struct err err;
	size_t n;
	void *p;

	for (char *end; *devices; devices = end)
		ids[n_ids++] = strtoll(devices, &end, 10);
	assert_int_equal(rt_assignment_proto(ids, (struct rt_counts){ n_ids, 1 }, &p,
					     &n, &err), 0);
	assert_bytes(p, n, want);
	free(p);
}

static void shapes_and_assignments_have_these_bytes(void **state)
{
	unsigned n = 0;

	(void)state;
#define SHAPE(elem, kind, dims, bytes) check_shape(ELEM_##elem, RT_##kind, dims, bytes); n++;
#define ASSIGNMENT(devices, bytes) check_assignment(devices, bytes); n++;
#include "tests/data/xla_protos.def"
#undef SHAPE
#undef ASSIGNMENT
	assert_true(n > 60);
}

/* Of two replicas of three partitions: a list for each partition. */
static void an_assignment_lists_replicas_by_partition(void **state)
{
	static const int64_t by_member[] = { 7, 0, 1, 2, 5, 3 };
	struct err err;
	size_t n;
	void *p;

	(void)state;
	assert_int_equal(rt_assignment_proto(by_member, (struct rt_counts){ 2, 3 }, &p, &n, &err),
			 0);
	assert_bytes(p, n, "080210031a040a0207021a040a0200051a040a020103");
	free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shapes_and_assignments_have_these_bytes),
		cmocka_unit_test(an_assignment_lists_replicas_by_partition),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
