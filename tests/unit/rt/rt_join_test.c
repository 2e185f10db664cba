/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Members launched one by one, as torch_xla launches its replicas: in any order, from one
 * thread or from one each, of programs compiled apart that differ in what they do between
 * collectives; and the ends of those who wait for a member that does not come.
 */
#include "tests/unit/replicas.h"
#include "tests/unit/rt/rt_members.h"

enum { FOUR = 4, ORDERS = 24 };

/* ---- launches ---- */

/* The k-th of the orders of n members. */
static void order_of(unsigned k, unsigned n, unsigned *order)
{
	unsigned left[N];

	for (unsigned i = 0; i < n; i++)
		left[i] = i;
	for (unsigned i = 0; i < n; i++) {
		unsigned at = k % (n - i);

		k /= n - i;
		order[i] = left[at];
		memmove(&left[at], &left[at + 1], (n - i - at - 1) * sizeof(*left));
	}
}

struct one {
	struct rt_exe *x;
	struct rt_buffer *in[MOST_ARRAYS], *out[MOST_ARRAYS];
	size_t n_in, n_out;
	struct rt_event *done;
	struct err err;
	int code;
};

static void come(struct one *o)
{
	o->n_out = rt_program_image(rt_exe_program(o->x))->info.n_results;
	o->code = rt_execute(o->x, o->in, o->n_in, NULL, o->out, &o->done, &o->err);
}

static void *come_on_thread(void *arg)
{
	struct one *o = arg;

	come(o);
	return o->code ? &o->err : NULL;
}

static void come_on_threads(struct one *o, unsigned n)
{
	pthread_t threads[N];
	void *failed;

	for (unsigned m = 0; m < n; m++)
		assert_int_equal(pthread_create(&threads[m], NULL, come_on_thread, &o[m]), 0);
	for (unsigned m = 0; m < n; m++) {
		assert_int_equal(pthread_join(threads[m], &failed), 0);
		if (failed)
			fail_msg("%s", ((struct err *)failed)->msg);
	}
}

static void come_in_order(struct one *o, unsigned n, unsigned k)
{
	unsigned order[N];

	order_of(k, n, order);
	for (unsigned i = 0; i < n; i++) {
		come(&o[order[i]]);
		if (o[order[i]].code)
			fail_msg("%s", o[order[i]].err.msg);
	}
}

static void leave(struct one *o)
{
	for (unsigned i = 0; i < MOST_ARRAYS; i++) {
		rt_buffer_unref(o->in[i]);
		rt_buffer_unref(o->out[i]);
	}
	rt_event_unref(o->done);
	memset(o, 0, sizeof(*o));
}

/* The error of a launch, which is there: of its end and of each result. */
static void failed(struct one *o, int code, const char *part)
{
	struct rt_event *e;
	struct err err;

	assert_int_equal(o->code, 0);
	assert_int_equal(rt_event_wait(o->done, &err), code);
	if (!strstr(err.msg, part))
		fail_msg("\"%s\" does not say \"%s\"", err.msg, part);
	for (size_t i = 0; i < o->n_out; i++) {
		e = rt_buffer_ready(o->out[i]);
		assert_int_equal(rt_event_wait(e, &err), code);
		rt_event_unref(e);
	}
}

static bool is_waiting(const struct one *o)
{
	return !rt_event_is_ready(o->done);
}

/* ---- programs of torch_xla ---- */

static unsigned turn;	/* launches so far: each in another order */

/* As evaluate_on_devices, by programs that each member compiles for itself. */
static int evaluate_one_by_one(const struct tc_source *source, const struct tc_options *o,
			       const struct tc_array *args, size_t n_args,
			       struct tc_array **outs, size_t *n_outs, struct err *err)
{
	struct launch *l = calloc(TIMES, sizeof(*l));
	struct one *ones = calloc(FOUR, sizeof(*ones));
	unsigned first = first_device;
	struct rt_gang g[FOUR];
	int code = 0;

	assert_true(l && ones && o->replicas == FOUR);
	for (unsigned m = 0; m < FOUR; m++) {
		first_device = first;	/* the same list for all */
		code = compile(&g[m], source, FOUR, 1, err);
		if (code)
			fail_msg("%s", err->msg);
	}
	*n_outs = rt_program_image(rt_exe_program(g[0].exe[0]))->info.n_results;
	for (unsigned t = 0; t < TIMES; t++) {
		for (unsigned m = 0; m < FOUR; m++) {
			ones[m].x = g[m].exe[m];
			ones[m].n_in = n_args;
			for (size_t i = 0; i < n_args; i++)
				ones[m].in[i] = send(rt_exe_device(ones[m].x),
						     &args[m * n_args + i]);
		}
		if (t)
			come_on_threads(ones, FOUR);
		else
			come_in_order(ones, FOUR, turn++ % ORDERS);
		for (unsigned m = 0; m < FOUR; m++) {
			memcpy(l[t].in[m], ones[m].in, sizeof(ones[m].in));
			memcpy(l[t].out[m], ones[m].out, sizeof(ones[m].out));
			l[t].done[m] = ones[m].done;
			memset(&ones[m], 0, sizeof(ones[m]));
		}
	}
	for (unsigned t = 0; t < TIMES && !code; t++)
		code = wait_for(&l[t], &g[0], err);
	if (!code)
		code = take(l, &g[0], *n_outs, outs, err);
	for (unsigned t = 0; t < TIMES; t++)
		drop(&l[t]);
	for (unsigned m = 0; m < FOUR; m++)
		rt_free_gang(&g[m]);
	free(ones);
	free(l);
	return code;
}

static void replicas_of_torch_come_one_by_one(void **state)
{
	(void)state;
	replicas_check_all(&(struct tc_options){ .replicas = TORCH_REPLICAS }, 1,
			   evaluate_one_by_one);
}

/* ---- programs in words ---- */

#define MODULE(name, results, body) "module() {sym_name = \"" name "\"} () {\n" \
	"  func() {sym_name = \"main\"} (%0: tensor<4xi32>) -> (" results ") {\n" body "  }\n}\n"
#define SUM_OF(to, x, groups, size) "    %" to " = all_reduce(" x ") {replica_groups = " groups \
	", group_size = " size "} : tensor<4xi32> (%5" to ": tensor<i32>, %6" to ": " \
	"tensor<i32>) {\n      %7" to " = add(%5" to ", %6" to ") : tensor<i32>\n" \
	"      return(%7" to ")\n    }\n"
#define ALL "[0, 1, 2, 3]"
#define NUMBER(to, value) "    " to " = constant() {value = dense<splat 0x" value \
	"> : tensor<4xi32>} : tensor<4xi32>\n"
#define TWO_OF(to, op, a, b) "    " to " = " op "(" a ", " b ") : tensor<4xi32>\n"

static void compile_text(struct rt_gang *g, const char *text, const unsigned *devices, unsigned n)
{
	uint8_t options[256];
	size_t bytes = options_of(devices, n, 1, options);
	struct err err;

	if (rt_compile_gang(client, text, strlen(text), "mlir", options, bytes, g, &err))
		fail_msg("%s\n%s", err.msg, text);
}

/* The argument of member m: 1000 m + i + add. */
static struct rt_buffer *argument(unsigned device, unsigned m, int32_t add)
{
	int32_t x[4];
	struct tc_array a = { .elem = ELEM_S32, .rank = 1, .dim = { 4 }, .bytes = 16, .data = x };

	for (int32_t i = 0; i < 4; i++)
		x[i] = 1000 * (int32_t)m + i + add;
	return send(device, &a);
}

static void give(struct one *o, struct rt_exe *x, unsigned m, int32_t add)
{
	memset(o, 0, sizeof(*o));
	o->x = x;
	o->n_in = 1;
	o->in[0] = argument(rt_exe_device(x), m, add);
}

/* Each number of result i is a + b * its place, and may wrap as the device's do. */
static void gave(const struct one *o, unsigned i, int32_t a, int32_t b)
{
	struct tc_array got = fetch(o->out[i]);

	for (int32_t k = 0; k < 4; k++)
		if (((uint32_t *)got.data)[k] != (uint32_t)a + (uint32_t)b * (uint32_t)k)
			fail_msg("result %u: number %d is %d, not %d + %d * %d", i, k,
				 ((int32_t *)got.data)[k], a, b, k);
	free(got.data);
}

/* What they do with what they meet for is their own: one has no use for it, one adds what it sent
 * twice, one sends what another calculates, one does it all in another order. */
static const char *const unlike[FOUR] = {
	MODULE("drops", "{}", NUMBER("%9", "00000000") SUM_OF("1", "%0", ALL, "4")
	       TWO_OF("%2", "multiply", "%1", "%9") SUM_OF("3", "%0", ALL, "4")
	       SUM_OF("4", "%0", "[0, 1, 2, 3]", "2") "    return(%2)\n"),
	MODULE("doubles", "{}, {}",
	       SUM_OF("1", "%0", ALL, "4") SUM_OF("2", "%0", ALL, "4")
	       SUM_OF("4", "%0", "[0, 1, 2, 3]", "2")
	       TWO_OF("%5", "add", "%1", "%2") TWO_OF("%6", "add", "%5", "%4")
	       "    return(%6, %4)\n"),
	MODULE("chains", "{}, {}, {}",
	       SUM_OF("1", "%0", ALL, "4") TWO_OF("%2", "subtract", "%1", "%1")
	       TWO_OF("%3", "add", "%2", "%0") SUM_OF("4", "%3", ALL, "4")
	       TWO_OF("%5", "subtract", "%4", "%4") TWO_OF("%6", "add", "%5", "%0")
	       SUM_OF("7", "%6", "[0, 1, 2, 3]", "2") "    return(%1, %4, %7)\n"),
	MODULE("plain", "{}, {}, {}", NUMBER("%9", "03000000") TWO_OF("%8", "multiply", "%0", "%9")
	       SUM_OF("1", "%0", ALL, "4") SUM_OF("2", "%0", ALL, "4")
	       SUM_OF("4", "%0", "[0, 1, 2, 3]", "2")
	       "    return(%4, %8, %1)\n"),
};

static void members_with_programs_of_their_own_meet(void **state)
{
	static const unsigned devices[FOUR] = { 6, 1, 4, 3 };
	struct rt_gang g[FOUR];
	struct one o[FOUR];

	(void)state;
	for (unsigned m = 0; m < FOUR; m++)
		compile_text(&g[m], unlike[m], devices, FOUR);
	for (unsigned k = 0; k <= ORDERS; k++) {
		for (unsigned m = 0; m < FOUR; m++)
			give(&o[m], g[m].exe[m], m, (int32_t)k);
		if (k < ORDERS)
			come_in_order(o, FOUR, k);
		else
			come_on_threads(o, FOUR);
		gave(&o[0], 0, 0, 0);
		gave(&o[1], 0, 2 * (6000 + 4 * (int32_t)k) + 1000 + 2 * (int32_t)k, 10);
		gave(&o[1], 1, 1000 + 2 * (int32_t)k, 2);
		gave(&o[2], 0, 6000 + 4 * (int32_t)k, 4);
		gave(&o[2], 1, 6000 + 4 * (int32_t)k, 4);
		gave(&o[2], 2, 5000 + 2 * (int32_t)k, 2);
		gave(&o[3], 0, 5000 + 2 * (int32_t)k, 2);
		gave(&o[3], 1, 3 * (3000 + (int32_t)k), 3);
		gave(&o[3], 2, 6000 + 4 * (int32_t)k, 4);
		for (unsigned m = 0; m < FOUR; m++)
			leave(&o[m]);
	}
	for (unsigned m = 0; m < FOUR; m++)
		rt_free_gang(&g[m]);
}

static const char sum[] = MODULE("sum", "{}", SUM_OF("1", "%0", ALL, "4") "    return(%1)\n");
static const char sum_of_pairs[] = MODULE("sum_of_pairs", "{}", SUM_OF("1", "%0", ALL, "2")
	"    return(%1)\n");
static const char two_sums[] = MODULE("two_sums", "{}", SUM_OF("1", "%0", ALL, "4")
	SUM_OF("2", "%1", ALL, "4") "    return(%2)\n");

/* One member of many steps at once: each step adds up what the last one gave. */
static void who_runs_ahead_waits_for_the_others(void **state)
{
	static const unsigned devices[FOUR] = { 0, 1, 2, 3 };
	enum { STEPS = 40 };
	struct one *o = calloc(FOUR * STEPS, sizeof(*o));
	struct rt_gang g;

	(void)state;
	assert_non_null(o);
	compile_text(&g, sum, devices, FOUR);
	for (unsigned m = 0; m < FOUR; m++)
		for (unsigned t = 0; t < STEPS; t++) {
			struct one *now = &o[m * STEPS + t];

			now->x = g.exe[m];
			now->n_in = 1;
			if (t)
				rt_buffer_ref(now->in[0] = now[-1].out[0]);
			else
				now->in[0] = argument(rt_exe_device(now->x), m, 0);
			come(now);
			assert_int_equal(now->code, 0);
			assert_true(m == 3 || is_waiting(now));
		}
	/* The sum of all is 6000 + 4 i; four of a number are its fourfold, modulo 2^32. */
	for (unsigned m = 0; m < FOUR; m++)
		for (unsigned t = 0; t < STEPS; t++) {
			uint32_t many = t < 16 ? 1u << 2 * t : 0;

			gave(&o[m * STEPS + t], 0, (int32_t)(6000 * many), (int32_t)(4 * many));
			leave(&o[m * STEPS + t]);
		}
	rt_free_gang(&g);
	free(o);
}

/* ---- what is not alike ---- */

static void all_hear_where_collectives_differ(void **state)
{
	static const unsigned devices[FOUR] = { 4, 5, 6, 7 };
	static const struct { const char *text, *says; } others[] = {
		{ sum_of_pairs, "place 1: member 0, on device 4, in sum: i32, 64 bytes, all to "
		  "each {{0,1,2,3}}; member 2, on device 6, in sum_of_pairs: i32, 32 bytes, all to "
		  "each {{0,1},{2,3}}." },
		{ two_sums, "place 2: member 0, on device 4, in sum: nothing more; member 2" },
	};
	struct rt_gang g, other;
	struct one o[FOUR];

	(void)state;
	compile_text(&g, sum, devices, FOUR);
	for (unsigned k = 0; k < 2; k++) {
		compile_text(&other, others[k].text, devices, FOUR);
		for (unsigned m = 0; m < FOUR; m++)
			give(&o[m], m == 2 ? other.exe[m] : g.exe[m], m, 0);
		come(&o[0]);
		come(&o[1]);
		assert_true(is_waiting(&o[0]) && is_waiting(&o[1]));
		come(&o[2]);
		come(&o[3]);
		for (unsigned m = 0; m < FOUR; m++) {
			failed(&o[m], ERR_INVALID_ARGUMENT, "member 2, on device 6");
			failed(&o[m], ERR_INVALID_ARGUMENT, others[k].says);
			failed(&o[m], ERR_INVALID_ARGUMENT, "member 0, on device 4, in sum: ");
			leave(&o[m]);
		}
		/* The order goes on behind it. */
		for (unsigned m = 0; m < FOUR; m++)
			give(&o[m], other.exe[m], m, 0);
		come_in_order(o, FOUR, 5);
		for (unsigned m = 0; m < FOUR; m++) {
			assert_int_equal(rt_event_wait(o[m].done, NULL), 0);
			leave(&o[m]);
		}
		rt_free_gang(&other);
	}
	rt_free_gang(&g);
}

/* What is refused counts: the others do not wait, and are not one launch behind from then on. */
static void who_is_refused_is_not_waited_for(void **state)
{
	static const unsigned devices[FOUR] = { 7, 2, 5, 0 };
	struct rt_gang g;
	struct one o[FOUR];

	(void)state;
	compile_text(&g, sum, devices, FOUR);
	for (unsigned refused = 0; refused < FOUR; refused += 3) {
		for (unsigned m = 0; m < FOUR; m++)
			give(&o[m], g.exe[m], m, 0);
		rt_buffer_delete(o[refused].in[0]);
		for (unsigned m = 0; m < FOUR; m++)
			come(&o[m]);
		assert_int_equal(o[refused].code, ERR_INVALID_ARGUMENT);
		memset(o[refused].out, 0, sizeof(o->out));
		o[refused].done = NULL;
		for (unsigned m = 0; m < FOUR; m++) {
			if (m != refused)
				failed(&o[m], ERR_INVALID_ARGUMENT, "deleted");
			leave(&o[m]);
		}
		for (unsigned m = 0; m < FOUR; m++)
			give(&o[m], g.exe[m], m, 7);
		come_in_order(o, FOUR, refused);
		for (unsigned m = 0; m < FOUR; m++) {
			gave(&o[m], 0, 6028, 4);
			leave(&o[m]);
		}
	}
	rt_free_gang(&g);
}

/* ---- arguments ---- */

static struct rt_buffer *pending(unsigned device)
{
	static const struct rt_shape shape = { .elem = ELEM_S32, .rank = 1, .dim = { 4 } };
	struct rt_buffer *b;
	struct err err;

	if (rt_buffer_alias(client, device, RT_DEVICE, &shape, &b, &err))
		fail_msg("%s", err.msg);
	return b;
}

static void arguments_may_come_later_or_be_errors(void **state)
{
	static const unsigned devices[FOUR] = { 0, 3, 6, 1 };
	struct rt_gang g;
	struct one o[FOUR];
	struct rt_buffer *b;
	struct err err;

	(void)state;
	compile_text(&g, sum, devices, FOUR);
	for (unsigned k = 0; k < 2; k++) {
		for (unsigned m = 0; m < FOUR; m++)
			give(&o[m], g.exe[m], m, 1);
		b = o[1].in[0];
		o[1].in[0] = pending(3);
		come_in_order(o, FOUR, 11);
		for (unsigned m = 0; m < FOUR; m++)
			assert_true(is_waiting(&o[m]));
		err_set(&err, ERR_DATA_LOSS, "it burnt");
		if (k)
			rt_alias_fail(o[1].in[0], &err);
		else
			assert_int_equal(rt_alias_fulfill(o[1].in[0], b, &err), 0);
		for (unsigned m = 0; m < FOUR; m++) {
			if (k)
				failed(&o[m], ERR_DATA_LOSS, "it burnt");
			else
				gave(&o[m], 0, 6004, 4);
			leave(&o[m]);
		}
		rt_buffer_unref(b);
	}
	rt_free_gang(&g);
}

/* What any member gives waits for the arguments of all: it is no content of these. */
static void what_members_give_is_no_argument_of_theirs(void **state)
{
	static const unsigned devices[FOUR] = { 0, 3, 6, 1 };
	struct rt_gang g;
	struct one o[FOUR];
	struct rt_buffer *copy;
	struct err err;

	(void)state;
	compile_text(&g, sum, devices, FOUR);
	for (unsigned m = 0; m < FOUR; m++)
		give(&o[m], g.exe[m], m, 1);
	rt_buffer_unref(o[1].in[0]);
	o[1].in[0] = pending(3);
	come_in_order(o, FOUR, 11);
	assert_int_equal(rt_buffer_copy(o[2].out[0], 3, RT_DEVICE, &copy, &err), 0);
	assert_int_equal(rt_alias_fulfill(o[1].in[0], copy, &err), ERR_INVALID_ARGUMENT);
	assert_non_null(strstr(err.msg, "its own content"));
	for (unsigned m = 0; m < FOUR; m++) {
		failed(&o[m], ERR_INVALID_ARGUMENT, "its own content");
		leave(&o[m]);
	}
	rt_buffer_unref(copy);
	rt_free_gang(&g);
}

/* Nor may it be an argument of a member that has not come yet, by however many copies, also where
 * another launch of theirs is between. */
static void members_do_not_wait_for_what_they_give(void **state)
{
	static const unsigned devices[FOUR] = { 0, 3, 6, 1 };
	struct rt_gang g;
	struct one o[2][FOUR];
	struct rt_buffer *copy;
	struct err err;

	(void)state;
	compile_text(&g, sum, devices, FOUR);
	for (unsigned between = 0; between < 2; between++) {
		for (unsigned k = 0; k <= between; k++)
			for (unsigned m = 0; m < FOUR; m++)
				give(&o[k][m], g.exe[m], m, 1);
		come(&o[0][0]);
		if (between) {
			rt_buffer_unref(o[1][0].in[0]);
			o[1][0].in[0] = o[0][0].out[0];
			rt_buffer_ref(o[1][0].in[0]);
			come(&o[1][0]);
		}
		assert_int_equal(rt_buffer_copy(o[between][0].out[0], 3, RT_DEVICE, &copy, &err),
				 0);
		rt_buffer_unref(o[0][1].in[0]);
		o[0][1].in[0] = copy;
		for (unsigned k = 0; k <= between; k++)
			for (unsigned m = 1; m < FOUR; m++)
				come(&o[k][m]);
		for (unsigned k = 0; k <= between; k++)
			for (unsigned m = 0; m < FOUR; m++) {
				failed(&o[k][m], ERR_INVALID_ARGUMENT, "in this very launch");
				leave(&o[k][m]);
			}
	}
	/* What is not theirs is fine. */
	for (unsigned m = 0; m < FOUR; m++)
		give(&o[0][m], g.exe[m], m, 1);
	come_in_order(o[0], FOUR, 5);
	for (unsigned m = 0; m < FOUR; m++)
		gave(&o[0][m], 0, 6004, 4);
	for (unsigned m = 0; m < FOUR; m++)
		leave(&o[0][m]);
	rt_free_gang(&g);
}

/* Donated arguments are gone when the member has come, not when all have; what it gives lies where
 * they lay, if nobody else has them. */
static void arguments_are_donated(void **state)
{
	static const unsigned devices[3] = { 5, 0, 7 };
	float x[ELEMENTS] = { 0 };
	const struct tc_array zeros = { .elem = ELEM_F32, .rank = 1, .dim = { ELEMENTS },
					.bytes = BYTES, .data = x };
	struct rt_gang g;
	struct one o[3];
	uint64_t was[3], is;
	struct err err;

	(void)state;
	load(&g, 3, devices, IN_PLACE);
	memset(o, 0, sizeof(o));
	for (unsigned m = 0; m < 3; m++) {
		o[m].x = g.exe[m];
		o[m].n_in = 1;
		o[m].in[0] = send(devices[m], &zeros);
		assert_int_equal(rt_buffer_address(o[m].in[0], &was[m], &err), 0);
	}
	come(&o[1]);
	assert_true(rt_buffer_is_deleted(o[1].in[0]) && !rt_buffer_is_deleted(o[0].in[0]));
	come(&o[0]);
	come(&o[2]);
	for (unsigned m = 0; m < 3; m++) {
		assert_int_equal(rt_event_wait(o[m].done, &err), 0);
		assert_true(rt_buffer_is_deleted(o[m].in[0]));
		assert_int_equal(rt_buffer_address(o[m].out[0], &is, &err), 0);
		assert_int_equal(is, was[m]);
		leave(&o[m]);
	}
	rt_free_gang(&g);
}

/* ---- several lists of devices ---- */

static const char sum_of_three[] = MODULE("sum_of_three", "{}", SUM_OF("1", "%0", "[0, 1, 2]", "3")
	"    return(%1)\n");

/* Lists that share devices, whose members come in any order: what one gives is not awaited by
 * the other, so all run. */
static void lists_that_overlap_do_not_wait_for_each_other(void **state)
{
	static const unsigned a_on[3] = { 0, 1, 2 }, b_on[3] = { 1, 2, 3 }, c_on[3] = { 2, 1, 0 };
	struct rt_gang g[3];
	struct one o[9];
	unsigned order[9];

	(void)state;
	compile_text(&g[0], sum_of_three, a_on, 3);
	compile_text(&g[1], sum_of_three, b_on, 3);
	compile_text(&g[2], sum_of_three, c_on, 3);
	for (unsigned k = 0; k < 100; k++) {
		for (unsigned i = 0; i < 9; i++) {
			give(&o[i], g[i / 3].exe[i % 3], i % 3, (int32_t)(i / 3));
			order[i] = i;
		}
		for (unsigned i = 9; i > 1; i--) {
			unsigned with = (k * 7919 + i * 104729) % i, was = order[i - 1];

			order[i - 1] = order[with];
			order[with] = was;
		}
		for (unsigned i = 0; i < 9; i++)
			come(&o[order[i]]);
		for (unsigned i = 0; i < 9; i++) {
			gave(&o[i], 0, 3000 + 3 * (int32_t)(i / 3), 3);
			leave(&o[i]);
		}
	}
	for (unsigned i = 0; i < 3; i++)
		rt_free_gang(&g[i]);
}

/* ---- who does not come ---- */

static void executables_may_go_while_their_launch_waits(void **state)
{
	static const unsigned devices[FOUR] = { 3, 2, 1, 0 };
	struct rt_gang g[FOUR];
	struct one o[FOUR];

	(void)state;
	for (unsigned m = 0; m < FOUR; m++) {
		compile_text(&g[m], unlike[m], devices, FOUR);
		give(&o[m], g[m].exe[m], m, 0);
		come(&o[m]);
		rt_free_gang(&g[m]);
	}
	gave(&o[2], 0, 6000, 4);
	gave(&o[3], 0, 5000, 2);
	for (unsigned m = 0; m < FOUR; m++)
		leave(&o[m]);
}

static void who_has_left_is_not_waited_for(void **state)
{
	static const unsigned devices[FOUR] = { 4, 1, 6, 3 };
	struct rt_gang g;
	struct one o[FOUR], late;
	struct err why;

	(void)state;
	compile_text(&g, sum, devices, FOUR);
	err_set(&why, ERR_CANCELLED, "ValueError: of a test");
	for (unsigned m = 0; m < FOUR; m++)
		give(&o[m], g.exe[m], m, 0);
	/* One is ahead, one has left, one comes when that is known. */
	come(&o[0]);
	give(&late, g.exe[0], 0, 0);
	come(&late);
	come(&o[1]);
	assert_true(is_waiting(&o[0]) && is_waiting(&late));
	rt_device_leave(client, 6, &why);
	failed(&o[0], ERR_CANCELLED, "member 2, on device 6");
	failed(&o[0], ERR_CANCELLED, "ValueError: of a test");
	failed(&late, ERR_CANCELLED, "ValueError: of a test");
	come(&o[3]);
	failed(&o[3], ERR_CANCELLED, "member 2, on device 6");
	for (unsigned m = 0; m < FOUR; m++) {
		if (m == 2)
			rt_buffer_unref(o[m].in[0]);
		else
			leave(&o[m]);
	}
	leave(&late);
	/* The others come to as many as the first one, then all leave, and all begin anew. */
	for (unsigned m = 1; m < FOUR; m += 2) {
		give(&o[m], g.exe[m], m, 0);
		come(&o[m]);
		failed(&o[m], ERR_CANCELLED, "member 2, on device 6");
		leave(&o[m]);
	}
	for (unsigned m = 0; m < FOUR; m++)
		rt_device_leave(client, devices[m], &why);
	for (unsigned m = 0; m < FOUR; m++) {
		rt_device_enter(client, devices[m]);
		give(&o[m], g.exe[m], m, 0);
	}
	come_in_order(o, FOUR, 17);
	for (unsigned m = 0; m < FOUR; m++) {
		gave(&o[m], 0, 6000, 4);
		leave(&o[m]);
	}
	rt_free_gang(&g);
}

/* A client of the test's own, of four devices: the test ends it, or a device. */
static int own_client(void **state)
{
	struct rt_client_options options = { .devices = "sim:devices=4,lanes=1,hbm=64M" };

	*state = client;
	return rt_client_create(&options, &client, NULL);
}

static int leave_own_client(void **state)
{
	rt_client_unref(client);
	client = *state;
	return 0;
}

static void who_waits_hears_that_the_client_goes(void **state)
{
	static const unsigned devices[FOUR] = { 0, 1, 2, 3 };
	struct one o[FOUR];
	struct rt_gang g;

	(void)state;
	compile_text(&g, sum, devices, FOUR);
	for (unsigned m = 0; m < FOUR; m++)
		give(&o[m], g.exe[m], m, 0);
	come(&o[0]);
	come(&o[1]);
	assert_true(is_waiting(&o[0]));
	rt_client_close(client);
	come(&o[2]);
	for (unsigned m = 0; m < 3; m++) {
		failed(&o[m], ERR_CANCELLED, "the client was destroyed");
		leave(&o[m]);
	}
	rt_buffer_unref(o[3].in[0]);
	rt_free_gang(&g);
}

static void a_device_that_dies_ends_waiting(void **state)
{
	static const unsigned devices[FOUR] = { 3, 1, 0, 2 };
	struct one o[FOUR];
	struct rt_gang g;
	struct err err;

	(void)state;
	compile_text(&g, sum, devices, FOUR);
	for (unsigned m = 0; m < FOUR; m++)
		give(&o[m], g.exe[m], m, 0);
	come(&o[0]);
	come(&o[2]);
	assert_true(is_waiting(&o[0]) && is_waiting(&o[2]));
	assert_int_equal(hal_device_inject(client->devices[1].hal, HW_INJECT_FATAL, 0, &err), 0);
	assert_int_not_equal(rt_event_wait(o[0].done, &err), 0);
	assert_non_null(strstr(err.msg, "died"));
	failed(&o[2], err.code, "died");
	come(&o[3]);
	failed(&o[3], err.code, "died");
	for (unsigned m = 0; m < FOUR; m++) {
		if (m == 1)
			rt_buffer_unref(o[m].in[0]);
		else
			leave(&o[m]);
	}
	/* What comes next hears of it at once. */
	give(&o[0], g.exe[0], 0, 0);
	come(&o[0]);
	failed(&o[0], err.code, "member 1, on device 1, does not come");
	leave(&o[0]);
	rt_free_gang(&g);
}

/* Poison stays, so this is the last one. */
static void a_poisoned_device_ends_waiting(void **state)
{
	static const unsigned devices[FOUR] = { 2, 3, 6, 7 };
	struct rt_gang g;
	struct one o[FOUR];
	struct err why;

	(void)state;
	compile_text(&g, sum, devices, FOUR);
	for (unsigned m = 0; m < FOUR; m++)
		give(&o[m], g.exe[m], m, 0);
	come(&o[0]);
	err_set(&why, ERR_INTERNAL, "poison of a test");
	rt_device_poison(client, 7, &why);
	failed(&o[0], ERR_INTERNAL, "poison of a test");
	for (unsigned m = 1; m < FOUR; m++) {
		come(&o[m]);
		failed(&o[m], ERR_INTERNAL, "poison of a test");
	}
	for (unsigned m = 0; m < FOUR; m++) {
		leave(&o[m]);
		give(&o[m], g.exe[m], m, 0);
	}
	come_in_order(o, FOUR, 3);
	for (unsigned m = 0; m < FOUR; m++) {
		failed(&o[m], ERR_INTERNAL, "poison of a test");
		leave(&o[m]);
	}
	rt_free_gang(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replicas_of_torch_come_one_by_one),
		cmocka_unit_test(members_with_programs_of_their_own_meet),
		cmocka_unit_test(who_runs_ahead_waits_for_the_others),
		cmocka_unit_test(all_hear_where_collectives_differ),
		cmocka_unit_test(who_is_refused_is_not_waited_for),
		cmocka_unit_test(arguments_may_come_later_or_be_errors),
		cmocka_unit_test(what_members_give_is_no_argument_of_theirs),
		cmocka_unit_test(members_do_not_wait_for_what_they_give),
		cmocka_unit_test(arguments_are_donated),
		cmocka_unit_test(lists_that_overlap_do_not_wait_for_each_other),
		cmocka_unit_test(executables_may_go_while_their_launch_waits),
		cmocka_unit_test(who_has_left_is_not_waited_for),
		cmocka_unit_test_setup_teardown(who_waits_hears_that_the_client_goes, own_client,
						leave_own_client),
		cmocka_unit_test_setup_teardown(a_device_that_dies_ends_waiting, own_client,
						leave_own_client),
		cmocka_unit_test(a_poisoned_device_ends_waiting),
	};

	return cmocka_run_group_tests(tests, start_devices, stop_devices);
}
