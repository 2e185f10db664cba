/* SPDX-License-Identifier: Apache-2.0 */
/* Programs on several devices whose members meet and call the host: who is called and with
 * what, members that stop where others do not, functions that fail or launch, and other
 * launches meanwhile. */
#include <semaphore.h>
#include <unistd.h>

#include "tests/unit/rt/rt_gang.h"

enum { MEMBERS = 3 };

#define HOST "is_host_transfer = true} : "
#define PROGRAM(args, body) "module() {sym_name = \"m\", meshes = {m = \"[x=3]\", " \
	"one = \"[]ids[2]\"}} () {\n  func() {sym_name = \"main\"} (" args ") -> " \
	"({sharding = \"@m[{x}]\"}) {\n" body "  }\n}\n"
#define TAKES "%0: tensor<6xf32> {sharding = \"@m[{x}]\"}"
#define WHO_I_AM "    %20 = partition_id() : tensor<ui32>\n" \
	"    %21 = constant() {value = dense<splat 0x01000000> : tensor<ui32>} : tensor<ui32>\n" \
	"    %22 = compare(%20, %21) {comparison_direction = <EQ>, compare_type = <UNSIGNED>} : " \
	"tensor<i1>\n"
#define MANUAL "manual_computation(%0) {in_shardings = {a = \"@m[{x}]\"}, out_shardings = " \
	"{a = \"@m[{x}]\"}, manual_axes = \"{x}\"} : tensor<6xf32> (%1: tensor<2xf32>) {\n"
#define SUM_OF(to, x) "    " to " = all_reduce(" x ") {replica_groups = [0, 1, 2], " \
	"group_size = 3, channel_id = 1, use_global_device_ids = true} : tensor<2xf32> " \
	"(%50: tensor<f32>, %51: tensor<f32>) {\n      %52 = add(%50, %51) : tensor<f32>\n" \
	"      return(%52)\n    }\n"

/* x + f(all of x), f's operand being on device 2 alone. */
static const char whole[] = PROGRAM(TAKES,
	"    %1 = create_token() : token\n"
	"    %2 = send(%0, %1) {channel_id = 7, sharding = \"@one[]\", " HOST "token\n"
	"    %3, %4 = recv(%2) {channel_id = 9, sharding = \"@one[]\", " HOST
	"tensor<6xf32>, token\n"
	"    %5 = add(%0, %3) : tensor<6xf32>\n"
	"    return(%5)\n");
/* Each member: the sum over members of f(x). */
static const char each[] = PROGRAM(TAKES, "    %9 = " MANUAL
	"    %2 = create_token() : token\n"
	"    %3 = send(%1, %2) {channel_id = 7, " HOST "token\n"
	"    %4, %5 = recv(%3) {channel_id = 9, " HOST "tensor<2xf32>, token\n"
	SUM_OF("%6", "%4")
	"    return(%6)\n    }\n    return(%9)\n");
/* The same where member 1 alone calls, and the others wait for it. */
static const char lone[] = PROGRAM(TAKES, "    %9 = " MANUAL WHO_I_AM
	"    %2 = create_token() : token\n"
	"    %3 = if(%22) : tensor<2xf32> () {\n"
	"      %4 = send(%1, %2) {channel_id = 7, " HOST "token\n"
	"      %5, %6 = recv(%4) {channel_id = 9, " HOST "tensor<2xf32>, token\n"
	"      return(%5)\n    } () {\n      return(%1)\n    }\n"
	SUM_OF("%7", "%3")
	"    return(%7)\n    }\n    return(%9)\n");
/* Member 1 calls, then gets what member 0 has; then all call. */
static const char early[] = PROGRAM(TAKES, "    %9 = " MANUAL WHO_I_AM
	"    %2 = create_token() : token\n"
	"    %3 = if(%22) : tensor<2xf32> () {\n"
	"      %4 = send(%1, %2) {channel_id = 7, " HOST "token\n"
	"      %5, %6 = recv(%4) {channel_id = 9, " HOST "tensor<2xf32>, token\n"
	"      return(%5)\n    } () {\n      return(%1)\n    }\n"
	"    %10 = collective_permute(%3) {source_target_pairs = [0, 1], channel_id = 1} : "
	"tensor<2xf32>\n"
	"    %11 = create_token() : token\n"
	"    %12 = send(%10, %11) {channel_id = 7, " HOST "token\n"
	"    %13, %14 = recv(%12) {channel_id = 9, " HOST "tensor<2xf32>, token\n"
	"    return(%13)\n    }\n    return(%9)\n");
/* Each member: the sum over members of x. */
static const char plain[] = PROGRAM(TAKES, "    %9 = " MANUAL
	SUM_OF("%6", "%1")
	"    return(%6)\n    }\n    return(%9)\n");

static sem_t frees;	/* of hosts, ever */

static int setup(void **state)
{
	(void)state;
	sem_init(&frees, 0, 0);
	return start_client("sim:devices=8,lanes=1,hbm=64M", 120);
}

static int teardown(void **state)
{
	stop_devices(state);
	sem_destroy(&frees);
	return 0;
}

/* ---- functions of the host ---- */

/* f(x) = x + 10 */
struct host {
	bool fails;
	sem_t *began, *go;	/* if so, it says that it was called, and waits */
	const struct rt_gang *launches;	/* what it launches, if anything */
	atomic_uint n_calls, n_freed;
	struct err nested;	/* what became of that */
	float seen[6];
	uint64_t bytes;
};

static void launch_nested(struct host *h);

static int sent(void *arg, int64_t channel, void *data, uint64_t bytes, struct err *err)
{
	struct host *h = arg;

	if (h->began) {
		sem_post(h->began);
		sem_wait(h->go);
	}
	if (h->launches)
		launch_nested(h);
	h->n_calls++;
	h->bytes = bytes;
	if (channel == 7 && bytes <= sizeof(h->seen))
		memcpy(h->seen, data, bytes);
	free(data);
	return h->fails ? err_set(err, ERR_DATA_LOSS, "the function is out of order") : 0;
}

static int asked(void *arg, int64_t channel, struct rt_stream *to, struct err *err)
{
	struct host *h = arg;
	float x[6];
	int code;

	(void)channel;
	for (unsigned i = 0; i < 6; i++)
		x[i] = h->seen[i] + 10;
	code = rt_stream_add(to, x, rt_stream_total(to), err);
	rt_stream_unref(to);
	return code;
}

static bool knows(void *arg, int64_t channel, bool is_recv)
{
	(void)arg;
	return channel == (is_recv ? 9 : 7);
}

static void freed(void *arg)
{
	((struct host *)arg)->n_freed++;
	sem_post(&frees);
}

/* ---- launches ---- */

static void compile(struct rt_gang *g, const char *text, const unsigned *devices)
{
	uint8_t options[256];
	size_t n = options_for(devices, MEMBERS, options);
	struct err err;

	if (rt_compile_gang(client, text, strlen(text), "mlir", options, n, g, &err))
		fail_msg("%s", err.msg);
}

struct launch {
	const struct rt_gang *g;
	bool calls;
	struct rt_buffer *in[MEMBERS], *out[MEMBERS];
	struct rt_event *done[MEMBERS];
};

static float more;	/* is added to all of x */

/* Member m's part of x is { 2 m, 2 m + 1 }. hosts: of each member, or NULL. */
static int start(struct launch *l, const struct rt_gang *g, struct host *hosts, struct err *err)
{
	static const struct rt_shape two = { .elem = ELEM_F32, .rank = 1, .dim = { 2 } };
	struct rt_buffer *const *in[MEMBERS];
	struct rt_buffer **out[MEMBERS];
	struct rt_host h[MEMBERS];

	*l = (struct launch){ .g = g, .calls = hosts != NULL };
	for (unsigned m = 0; m < MEMBERS; m++) {
		const float x[2] = { 2.0f * (float)m + more, 2.0f * (float)m + 1 + more };

		if (rt_buffer_from_host(client, rt_exe_device(g->exe[m]), RT_DEVICE, &two, x,
					NULL, &l->in[m], err))
			fail_msg("%s", err->msg);
		in[m] = &l->in[m];
		out[m] = &l->out[m];
		if (hosts)
			h[m] = (struct rt_host){ sent, asked, knows, freed, &hosts[m] };
	}
	return hosts ? rt_execute_gang_with_hosts(g, in, 1, NULL, h, out, l->done, err) :
		       rt_execute_gang(g, in, 1, NULL, out, l->done, err);
}

static void drop(struct launch *l)
{
	for (unsigned m = 0; m < MEMBERS; m++) {
		rt_buffer_unref(l->in[m]);
		rt_buffer_unref(l->out[m]);
		rt_event_unref(l->done[m]);
	}
}

/* When it has let go of its functions, too. */
static int end(struct launch *l, float out[MEMBERS][2], struct err *err)
{
	struct rt_event *e;
	int code = 0, first = 0;

	for (unsigned m = 0; m < MEMBERS; m++) {
		code = rt_event_wait(l->done[m], first ? NULL : err);
		if (!code && out) {
			code = rt_buffer_to_host(l->out[m], 0, out[m], 8, &e, err);
			if (!code) {
				code = rt_event_wait(e, err);
				rt_event_unref(e);
			}
		}
		first = first ? first : code;
	}
	/* Somebody's: in the end all are counted. */
	for (unsigned m = 0; l->calls && m < MEMBERS; m++)
		sem_wait(&frees);
	drop(l);
	return first;
}

static void launch_nested(struct host *h)
{
	struct launch l;

	if (start(&l, h->launches, NULL, &h->nested))
		drop(&l);
	else
		end(&l, NULL, &h->nested);
}

static void is_right(struct launch *l, float first, float second)
{
	float out[MEMBERS][2];
	struct err err;

	if (end(l, out, &err))
		fail_msg("%s", err.msg);
	for (unsigned m = 0; m < MEMBERS; m++) {
		assert_float_equal(out[m][0], first, 0);
		assert_float_equal(out[m][1], second, 0);
	}
}

static const unsigned usual[MEMBERS] = { 4, 1, 6 }, others[MEMBERS] = { 0, 2, 3 };

static void one_device_alone_calls_for_all(void **state)
{
	float out[MEMBERS][2];
	struct launch l;
	struct rt_gang g;
	struct err err;

	(void)state;
	compile(&g, whole, usual);
	for (unsigned round = 0; round < 3; round++) {
		struct host h[MEMBERS] = { { .fails = false } };

		if (start(&l, &g, h, &err) || end(&l, out, &err))
			fail_msg("%s", err.msg);
		for (unsigned i = 0; i < 6; i++) {
			assert_float_equal(h[2].seen[i], i, 0);
			assert_float_equal(out[i / 2][i % 2], 2 * i + 10, 0);
		}
		assert_int_equal(h[2].bytes, 24);
		for (unsigned m = 0; m < MEMBERS; m++) {
			assert_int_equal(h[m].n_calls, m == 2);
			assert_int_equal(h[m].n_freed, 1);
		}
	}
	rt_free_gang(&g);
}

static void each_calls_with_its_own_part(void **state)
{
	struct host h[MEMBERS] = { { .fails = false } };
	struct launch l[4];
	struct rt_gang g;
	struct err err;

	(void)state;
	compile(&g, each, usual);
	for (unsigned i = 0; i < 4; i++)
		if (start(&l[i], &g, h, &err))
			fail_msg("%s", err.msg);
	for (unsigned i = 0; i < 4; i++)
		is_right(&l[i], 36, 39);
	for (unsigned m = 0; m < MEMBERS; m++) {
		assert_int_equal(h[m].n_calls, 4);
		assert_float_equal(h[m].seen[1], 2 * m + 1, 0);
	}
	rt_free_gang(&g);
}

/* What is launched while a function runs, on devices of which some wait in their programs for
 * the one that called: members that meet come after it, on other devices at once. */
static void others_are_launched_when_they_may_be(void **state)
{
	sem_t began, go;
	struct host h[MEMBERS] = { [1] = { .began = &began, .go = &go } };
	static const unsigned shared[MEMBERS] = { 6, 5, 7 };
	struct rt_gang calls, meets, apart;
	struct launch l, after, beside;
	struct err err;

	(void)state;
	sem_init(&began, 0, 0);
	sem_init(&go, 0, 0);
	compile(&calls, lone, usual);
	compile(&meets, plain, shared);
	compile(&apart, plain, others);
	for (unsigned round = 0; round < 3; round++) {
		if (start(&l, &calls, h, &err))
			fail_msg("%s", err.msg);
		sem_wait(&began);
		if (start(&after, &meets, NULL, &err) || start(&beside, &apart, NULL, &err))
			fail_msg("%s", err.msg);
		is_right(&beside, 6, 9);
		assert_false(rt_event_is_ready(after.done[1]));
		sem_post(&go);
		is_right(&l, 16, 19);
		is_right(&after, 6, 9);
	}
	rt_free_gang(&calls);
	rt_free_gang(&meets);
	rt_free_gang(&apart);
	sem_destroy(&began);
	sem_destroy(&go);
}

static void fails(const struct rt_gang *g, unsigned who)
{
	struct host h[MEMBERS] = { [0] = { .fails = who == 0 }, [1] = { .fails = who == 1 } };
	struct launch l;
	struct err err;

	if (start(&l, g, h, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(end(&l, NULL, &err), ERR_DATA_LOSS);
	assert_non_null(strstr(err.msg, "the function is out of order"));
	for (unsigned m = 0; m < MEMBERS; m++)
		assert_int_equal(h[m].n_freed, 1);
}

/* Whether all stop where it failed, or some wait for it on their devices. */
static void an_error_of_one_function_is_all_results(void **state)
{
	struct host h[MEMBERS] = { { .fails = false } };
	struct rt_gang all, one;
	struct launch l;
	struct err err;

	(void)state;
	compile(&all, each, usual);
	compile(&one, lone, usual);
	for (unsigned round = 0; round < 2; round++) {
		fails(&all, 0);
		if (start(&l, &all, h, &err))
			fail_msg("%s", err.msg);
		is_right(&l, 36, 39);
		fails(&one, 1);
		if (start(&l, &one, h, &err))
			fail_msg("%s", err.msg);
		is_right(&l, 16, 19);
	}
	rt_free_gang(&all);
	rt_free_gang(&one);
}

/* Member 0 has sent, and stopped, when member 1 fails. */
static void what_was_sent_in_a_launch_that_failed_does_not_come_back(void **state)
{
	struct host h[MEMBERS] = { { .fails = false } };
	float out[MEMBERS][2];
	struct launch l;
	struct rt_gang g;
	struct err err;

	(void)state;
	compile(&g, early, usual);
	for (unsigned round = 0; round < 3; round++) {
		fails(&g, 1);
		more = 100;
		if (start(&l, &g, h, &err) || end(&l, out, &err))
			fail_msg("%s", err.msg);
		more = 0;
		assert_float_equal(out[1][0], 110, 0);
		assert_float_equal(out[1][1], 111, 0);
		assert_float_equal(out[2][0], 10, 0);
	}
	rt_free_gang(&g);
}

/* It would wait for its own end. */
static void a_function_launches_nothing_that_waits_for_it(void **state)
{
	struct host h[MEMBERS] = { { .fails = false } };
	struct rt_gang calls, meets, apart;
	struct launch l;
	struct err err;

	(void)state;
	compile(&calls, each, usual);
	compile(&meets, plain, usual);
	compile(&apart, plain, others);
	h[0].launches = &meets;
	h[2].launches = &apart;
	if (start(&l, &calls, h, &err))
		fail_msg("%s", err.msg);
	is_right(&l, 36, 39);
	assert_int_equal(h[0].nested.code, ERR_FAILED_PRECONDITION);
	assert_non_null(strstr(h[0].nested.msg, "only when the function has returned"));
	assert_int_equal(h[2].nested.code, 0);
	rt_free_gang(&calls);
	rt_free_gang(&meets);
	rt_free_gang(&apart);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_device_alone_calls_for_all),
		cmocka_unit_test(each_calls_with_its_own_part),
		cmocka_unit_test(others_are_launched_when_they_may_be),
		cmocka_unit_test(an_error_of_one_function_is_all_results),
		cmocka_unit_test(what_was_sent_in_a_launch_that_failed_does_not_come_back),
		cmocka_unit_test(a_function_launches_nothing_that_waits_for_it),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
