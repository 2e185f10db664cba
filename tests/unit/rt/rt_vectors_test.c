/* SPDX-License-Identifier: Apache-2.0 */
/* The StableHLO test programs, compiled and run on the model or what TESSERA_DEVICES
 * names. TESSERA_VECTORS=text runs the programs whose names contain it and prints
 * every one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/rt.h"
#include "tests/unit/vectors.h"

/* The programs that do not meet their rule, each with why. */
static const struct vector_near near_programs[] = {
	/* Sums in another order, some near zero. */
	{ "cumlogsumexp_float16_8_9", 0.03125, false },
	{ "fft_complex64_14_15_16_17", 4, false },
	{ "fft_float32_14_15_16_17", 2, false },
	/* Products of the parts are summed apart, and joined at the end. */
	{ "dot_general_float16_4_3_complex128_3_6", 0.5, true },
	{ "dot_general_float32_4_3_complex128_3_6", 0.5, true },
	{ "dot_general_uint8_4_3_complex64_3_6", 0.5, true },
	/* One unit, where the rule asks for 0.001 of values of some thousands. */
	{ "sin_complex64_20_20", 1, true },
};

struct tally {
	struct rt_client *client;
	const char *only;
	unsigned count[VERDICTS];
};

static const char *const verdict_names[VERDICTS] = { "strict", "near", "WRONG", "refused" };

static void *fetch(struct rt_buffer *b, size_t *count)
{
	const struct rt_shape *s = rt_buffer_shape(b);
	uint64_t bytes = rt_shape_bytes(s);
	void *data = malloc(bytes ? bytes : 1);
	struct rt_event *done;
	struct err err;

	assert_non_null(data);
	if (rt_buffer_to_host(b, 0, data, bytes, &done, &err) ||
	    rt_event_wait(done, &err))
		fail_msg("%s", err.msg);
	rt_event_unref(done);
	*count = bytes / elem_bytes(s->elem);
	return data;
}

static enum verdict judge(const struct vector_program *v, double near, struct rt_buffer **outs)
{
	enum verdict worst = STRICT, is;
	size_t na, ne, at;
	unsigned i;

	for (i = 0; i < v->n_rules; i++) {
		void *actual = fetch(outs[2 * i], &na), *expected = fetch(outs[2 * i + 1], &ne);

		assert_int_equal(na, ne);
		is = vector_compare(rt_buffer_shape(outs[2 * i])->elem, actual, expected, na,
				    v->rules[i], near, &at);
		if (is == WRONG)
			print_message("%s: pair %u differs at element %zu of %zu\n", v->name,
				      i, at, na);
		if (is > worst)
			worst = is;
		free(actual);
		free(expected);
	}
	return worst;
}

static enum verdict run(struct tally *t, const struct vector_program *v, double near)
{
	struct rt_buffer *outs[8] = { 0 };
	enum verdict is = WRONG;
	struct rt_event *done;
	struct rt_exe *x;
	struct err err;
	unsigned i;

	if (rt_compile(t->client, v->code, v->bytes, "mlir", NULL, 0, &x, &err)) {
		if (err.code != ERR_UNIMPLEMENTED || t->only)
			print_message("%s: %s\n", v->name, err.msg);
		return err.code == ERR_UNIMPLEMENTED ? REFUSED : WRONG;
	}
	assert_int_equal(rt_program_image(rt_exe_program(x))->info.n_results, 2 * v->n_rules);
	if (rt_execute(x, NULL, 0, NULL, outs, &done, &err)) {
		print_message("%s: %s\n", v->name, err.msg);
	} else {
		if (rt_event_wait(done, &err))
			print_message("%s: %s\n", v->name, err.msg);
		else
			is = judge(v, near, outs);
		rt_event_unref(done);
	}
	for (i = 0; i < 8; i++)
		rt_buffer_unref(outs[i]);
	rt_exe_unref(x);
	return is;
}

static void count(const struct vector_program *v, void *arg)
{
	const struct vector_near *near = vector_near_of(
		near_programs, sizeof(near_programs) / sizeof(near_programs[0]), v->name);
	struct tally *t = arg;
	enum verdict is;

	if (t->only && !strstr(v->name, t->only))
		return;
	is = run(t, v, near ? near->units : 0);
	if (near && is == STRICT && !near->by_path) {
		print_message("%s meets its rule: remove it from near_programs\n", v->name);
		is = WRONG;
	}
	t->count[is]++;
	if (t->only)
		print_message("%-8s %s\n", verdict_names[is], v->name);
}

static void test_programs_of_the_standard_give_what_they_expect(void **state)
{
	const char *devices = getenv("TESSERA_DEVICES");
	struct rt_client_options o = { .devices = devices ? devices : "sim:hbm=256M" };
	struct tally t = { .only = getenv("TESSERA_VECTORS") };
	struct err err;
	int n;

	(void)state;
	setenv("TESSERA_CACHE", "off", 1);
	if (rt_client_create(&o, &t.client, &err))
		fail_msg("%s", err.msg);
	n = vectors_each(count, &t);
	rt_client_unref(t.client);
	print_message("%d programs: %u strict, %u near, %u wrong, %u refused\n", n,
		      t.count[STRICT], t.count[NEAR], t.count[WRONG], t.count[REFUSED]);
	assert_int_equal(n, VECTORS_COUNT);
	assert_int_equal(t.count[WRONG], 0);
	assert_int_equal(t.count[REFUSED], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_programs_of_the_standard_give_what_they_expect),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
