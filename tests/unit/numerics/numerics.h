/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_NUMERICS_H
#define TESTS_NUMERICS_H
/*
 * What numerics_real_test and numerics_complex_test share: a client for each path of the host,
 * launches of one op on MEASURE_N numbers, numbers at random, and the table of what was measured.
 */
#include "tests/unit/against_eval.h"

#define MEASURE_TABLE "tests/data/numerics.txt"
#define MEASURE_N 65536u		/* of one launch */
#define MEASURE_FEW (2 * MEASURE_N)	/* of a test */

typedef long double wide;
typedef char measure_numbers[MEASURE_N * 16];	/* of any type */

/* ---- arguments ---- */

static inline uint64_t measure_mixed(uint64_t x)
{
	x = (x ^ x >> 31) * 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9u;
	return x ^ x >> 32;
}

static inline double measure_between(double low, double high, uint64_t random)
{
	return low + (high - low) * ((double)(random >> 11) * 0x1p-53);
}

/* ---- runs ---- */

#define MEASURE_PATHS 3
static struct rt_client *measure_client[MEASURE_PATHS];

/* `bytes`: of the result. */
static inline void measure_launch(struct rt_client *c, struct rt_exe *x, enum elem elem,
				  unsigned n_in, const measure_numbers *in, size_t bytes,
				  char *out)
{
	struct rt_shape shape = { .elem = elem, .rank = 1, .dim = { MEASURE_N } };
	struct rt_buffer *args[2], *result;
	struct rt_event *done;
	struct err err;

	for (unsigned k = 0; k < n_in; k++)
		if (rt_buffer_from_host(c, 0, RT_DEVICE, &shape, in[k], NULL, &args[k], &err))
			fail_msg("%s", err.msg);
	if (rt_execute(x, args, n_in, NULL, &result, &done, &err) || rt_event_wait(done, &err))
		fail_msg("%s", err.msg);
	rt_event_unref(done);
	if (rt_buffer_to_host(result, 0, out, bytes, &done, &err) ||
	    rt_event_wait(done, &err))
		fail_msg("%s", err.msg);
	rt_event_unref(done);
	for (unsigned k = 0; k < n_in; k++)
		rt_buffer_unref(args[k]);
	rt_buffer_unref(result);
}

static inline int measure_start(void **state)
{
	static const char *const path[MEASURE_PATHS] = { "portable", "avx2", "avx512" };

	(void)state;
	setenv("TESSERA_CACHE", "off", 1);
	for (unsigned p = 0; p < MEASURE_PATHS; p++) {
		char devices[64];
		struct rt_client_options o = { .devices = devices };
		struct err err;

		/* Those that this machine has; the first is everywhere. */
		snprintf(devices, sizeof(devices), "sim:hbm=64M,path=%s", path[p]);
		if (rt_client_create(&o, &measure_client[p], &err))
			measure_client[p] = NULL;
	}
	return measure_client[0] ? 0 : 1;
}

static inline int measure_stop(void **state)
{
	(void)state;
	for (unsigned p = 0; p < MEASURE_PATHS; p++)
		if (measure_client[p])
			rt_client_unref(measure_client[p]);
	return 0;
}

/* ---- the table ---- */

/* The number in this column of the table, the first is 0; of a function and type. -1: nothing. */
static inline double measure_column(const char *name, const char *type, unsigned column)
{
	FILE *f = fopen(MEASURE_TABLE, "r");
	char line[512], a[64], b[64];
	double found = -1, bound[2];

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%63s %63s %*u %lf %lf", a, b, &bound[0], &bound[1]) >=
		    3 + (int)column && !strcmp(a, name) && !strcmp(b, type))
			found = bound[column];
	fclose(f);
	return found;
}

static inline double measure_listed(const char *name, const char *type)
{
	return measure_column(name, type, 0);
}

#endif
