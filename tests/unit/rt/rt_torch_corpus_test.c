/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that torch_xla sent, compiled and run on the model or what TESSERA_DEVICES names,
 * and by the evaluator. TESSERA_TORCH=text runs the programs whose names contain it and
 * prints how far off each is.
 *
 * A program that came as MLIR too must give the same bits so: both readers end in the same IR.
 *
 * Integers and truth values are to be equal, floats within so many units in the last place
 * of the largest element of their array: XLA's CPU backend adds up in another order and has
 * transcendental functions of its own.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/rt.h"
#include "tests/unit/torch.h"
#include "tests/unit/vectors.h"

/* By the first word of the program's name. */
static const struct { const char *kind; double units; } bounds[] = {
	{ "act", 4 }, { "attention", 4 }, { "control", 4 }, { "conv", 4 }, { "elementwise", 4 },
	{ "embed", 1 }, { "fallback", 1 }, { "fft", 2 }, { "index", 1 }, { "linalg", 12 },
	{ "loss", 4 }, { "matmul", 2 }, { "norm", 6 }, { "pool", 4 }, { "reduce", 4 },
	{ "rnn", 6 }, { "scan", 2 }, { "spmd", 8 }, { "train", 24 },
};

/* Results that are farther off, by how a program's name begins and the result's number (-1:
 * all): units, or how far apart the elements may be. */
static const struct known { const char *begins; int result; double units, apart; } known[] = {
	/* bfloat16: one unit of its own. */
	{ "control__autocast_bf16", -1, 65536, 0 },
	/* Gradients through softmax, of elements a thousand times smaller than the largest: XLA's
	 * CPU backend is 1,491 units off what it gives in f64, the device 994. */
	{ "control__checkpoint_xla", -1, 2500, 0 },
	/* The sum of squares of what was normalised is a constant, its gradients are noise. */
	{ "attention__encoder_train", -1, 0, 4e-6 },
	/* A sum of numbers of both signs near 0. */
	{ "matmul__einsum_one", 2, 0, 1e-6 },
	/* The imaginary part of a product with the conjugate: 0, or what a fused
	 * multiplication leaves. */
	{ "elementwise__complex.1", 2, 0, 1e-7 },
	/* What is added before a normalisation has no gradient: noise, and Adam makes steps of
	 * it. */
	{ "train__convnet_adam", 17, 0, 4e-3 },
	{ "train__convnet", 11, 0, 1e-6 },
	{ "train__convnet", 14, 0, 1e-6 },
	{ "train__convnet", 15, 0, 1e-6 },
	{ "train__convnet", 16, 0, 1e-6 },
	{ "train__convnet", 5, 100, 0 },
	{ "train__convnet", 6, 100, 0 },
};

/* The programs that are to be refused, and what the refusal has to name. */
static const struct { const char *name, *says; } refused[] = {
	{ "control__custom_call_unknown", "tc_unknown_target" },
};

struct tally {
	struct rt_client *client;
	const char *only;
	unsigned right, refused, wrong, unknown, evaluated, twice;
};

static struct rt_buffer *send(struct rt_client *c, const struct tc_array *a)
{
	struct rt_shape s = { .elem = (enum elem)a->elem, .rank = a->rank };
	struct rt_buffer *b;
	struct err err;

	memcpy(s.dim, a->dim, a->rank * sizeof(*s.dim));
	if (rt_buffer_from_host(c, 0, RT_DEVICE, &s, a->data, NULL, &b, &err))
		fail_msg("%s", err.msg);
	return b;
}

static struct tc_array fetch(struct rt_buffer *b)
{
	const struct rt_shape *s = rt_buffer_shape(b);
	struct tc_array a = { .elem = (uint8_t)s->elem, .rank = s->rank,
			      .bytes = rt_shape_bytes(s) };
	struct rt_event *done;
	struct err err;

	memcpy(a.dim, s->dim, s->rank * sizeof(*s->dim));
	a.data = malloc(a.bytes + 1);
	assert_non_null(a.data);
	if (rt_buffer_to_host(b, 0, a.data, a.bytes, &done, &err) || rt_event_wait(done, &err))
		fail_msg("%s", err.msg);
	rt_event_unref(done);
	return a;
}

static double value(const struct tc_array *a, size_t i, const struct vector_float *t)
{
	uint64_t bits = 0;

	memcpy(&bits, (const char *)a->data + i * t->bytes, t->bytes);
	return vector_value(bits, t);
}

static double largest_of(const struct tc_array *a, const struct vector_float *t)
{
	double largest = 0;

	for (size_t i = 0; i < a->bytes / t->bytes; i++) {
		double y = fabs(value(a, i, t));

		largest = isfinite(y) && y > largest ? y : largest;
	}
	return largest;
}

static bool is_same_shape(const struct tc_array *a, const struct tc_array *b)
{
	return a->elem == b->elem && a->rank == b->rank && a->bytes == b->bytes &&
	       !memcmp(a->dim, b->dim, a->rank * sizeof(*a->dim));
}

/* How far two arrays are apart, in units in the last place of the largest expected element;
 * elements no farther apart than `near` count as equal. HUGE_VAL: other numbers. */
static double distance(const struct tc_array *got, const struct tc_array *want, double near)
{
	struct vector_float t = vector_float_of((enum elem)want->elem);
	double largest, worst = 0;

	if (!is_same_shape(got, want))
		return HUGE_VAL;
	if (elem_class(want->elem) != ELEM_CLASS_FLOAT &&
	    elem_class(want->elem) != ELEM_CLASS_COMPLEX)
		return memcmp(got->data, want->data, want->bytes) ? HUGE_VAL : 0;
	largest = largest_of(want, &t);
	for (size_t i = 0; i < want->bytes / t.bytes; i++) {
		double x = value(got, i, &t), y = value(want, i, &t), off = fabs(x - y);

		if (x == y || (isnan(x) && isnan(y)) || off <= near)
			continue;
		if (!isfinite(off) || !(largest > 0))
			return HUGE_VAL;
		off = ldexp(off, (int)t.fraction - ilogb(largest));
		worst = off > worst ? off : worst;
	}
	return worst;
}

static double bound_of(const char *name)
{
	for (size_t i = 0; i < sizeof(bounds) / sizeof(*bounds); i++) {
		size_t n = strlen(bounds[i].kind);

		if (!strncmp(name, bounds[i].kind, n) && !strncmp(name + n, "__", 2))
			return bounds[i].units;
	}
	return 0;
}

static const struct known *known_of(const char *name, size_t result)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (!strncmp(name, known[i].begins, strlen(known[i].begins)) &&
		    (known[i].result < 0 || (size_t)known[i].result == result))
			return &known[i];
	return NULL;
}

static bool is_right(const struct tally *t, const struct torch_program *p,
		     const struct tc_array *got, size_t n, const char *who)
{
	bool right = n == p->n_out;
	double worst = 0;

	if (!right)
		print_message("%s: %s gives %zu results, not %zu\n", p->name, who, n, p->n_out);
	for (size_t i = 0; right && i < n; i++) {
		const struct known *k = known_of(p->name, i);
		double bound = bound_of(p->name), is;

		if (p->is_random && is_same_shape(&got[i], &p->out[i]))
			continue;
		if (k && k->units > bound)
			bound = k->units;
		is = distance(&got[i], &p->out[i], k ? k->apart : 0);
		worst = is > worst ? is : worst;
		if (is <= bound)
			continue;
		right = false;
		print_message("%s: result %zu of %s is %g units off, more than %g\n", p->name,
			      i, who, is, bound);
	}
	if (t->only)
		print_message("%-9s %6g units: %s\n", who, worst, p->name);
	return right;
}

/* What the executable gives, NULL: it failed. Freed with tc_array_free. */
static struct tc_array *run_on_device(const struct tally *t, const struct torch_program *p,
				      struct rt_exe *x, size_t *n_out)
{
	size_t n = *n_out = rt_program_image(rt_exe_program(x))->info.n_results;
	struct rt_buffer **in = calloc(p->n_in + 1, sizeof(*in));
	struct rt_buffer **out = calloc(n + 1, sizeof(*out));
	struct tc_array *got = calloc(n + 1, sizeof(*got));
	struct rt_event *done;
	struct err err;

	assert_non_null(in);
	assert_non_null(out);
	assert_non_null(got);
	for (size_t i = 0; i < p->n_in; i++)
		in[i] = send(t->client, &p->in[i]);
	if (rt_execute(x, in, p->n_in, NULL, out, &done, &err)) {
		print_message("%s: %s\n", p->name, err.msg);
		free(got);
		got = NULL;
	} else {
		if (rt_event_wait(done, &err))
			fail_msg("%s: %s", p->name, err.msg);
		rt_event_unref(done);
		for (size_t i = 0; i < n; i++)
			got[i] = fetch(out[i]);
	}
	for (size_t i = 0; i < p->n_in; i++)
		rt_buffer_unref(in[i]);
	for (size_t i = 0; i < n; i++)
		rt_buffer_unref(out[i]);
	free(in);
	free(out);
	return got;
}

/* The other reader's program gives the same bits. */
static bool is_same_as_mlir(struct tally *t, const struct torch_program *p,
			    const struct tc_array *got, size_t n)
{
	struct tc_array *other;
	struct rt_exe *x;
	struct err err;
	size_t n_other;
	bool same;

	if (!p->mlir.code)
		return true;
	if (rt_compile(t->client, p->mlir.code, p->mlir.bytes, "mlir", NULL, 0, &x, &err)) {
		print_message("%s as MLIR: %s\n", p->name, err.msg);
		return false;
	}
	other = run_on_device(t, p, x, &n_other);
	same = other && n == n_other;
	for (size_t i = 0; same && i < n; i++) {
		same = is_same_shape(&got[i], &other[i]) &&
		       !memcmp(got[i].data, other[i].data, got[i].bytes);
		if (!same)
			print_message("%s: result %zu differs from MLIR's\n", p->name, i);
	}
	if (other)
		tc_array_free(other, n_other);
	rt_exe_unref(x);
	t->twice += same;
	return same;
}

static bool check_device(struct tally *t, const struct torch_program *p, struct rt_exe *x)
{
	size_t n;
	struct tc_array *got = run_on_device(t, p, x, &n);
	bool right = got && is_right(t, p, got, n, "device") && is_same_as_mlir(t, p, got, n);

	if (got)
		tc_array_free(got, n);
	return right;
}

static bool is_refused_by_name(const struct torch_program *p, const struct err *err)
{
	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
		if (!strcmp(p->name, refused[i].name))
			return err->code == ERR_UNIMPLEMENTED &&
			       strstr(err->msg, refused[i].says);
	return false;
}

/* What the evaluator has no rule for it refuses; the device has to run it all the same. */
static bool run_by_evaluator(struct tally *t, const struct torch_program *p)
{
	struct tc_array *outs;
	struct err err;
	bool right;
	size_t n;

	if (tc_eval(&p->source, p->in, p->n_in, &outs, &n, &err)) {
		if (err.code != ERR_UNIMPLEMENTED || t->only)
			print_message("%s: %s\n", p->name, err.msg);
		return err.code == ERR_UNIMPLEMENTED;
	}
	right = is_right(t, p, outs, n, "evaluator");
	tc_array_free(outs, n);
	t->evaluated++;
	return right;
}

static void check(const struct torch_program *p, void *arg)
{
	struct tally *t = arg;
	struct rt_exe *x;
	struct err err;
	bool right;

	if (rt_compile(t->client, p->source.code, p->source.bytes, "hlo", NULL, 0, &x, &err)) {
		bool is_known = is_refused_by_name(p, &err);

		t->refused += is_known;
		t->wrong += !is_known;
		if (!is_known || t->only)
			print_message("%s: %s\n", p->name, err.msg);
		return;
	}
	if (!p->out) {
		t->unknown++;
	} else {
		right = check_device(t, p, x) & run_by_evaluator(t, p);
		t->right += right;
		t->wrong += !right;
	}
	rt_exe_unref(x);
}

static void test_programs_of_torch_give_what_its_cpu_backend_gives(void **state)
{
	const char *devices = getenv("TESSERA_DEVICES");
	struct rt_client_options o = { .devices = devices ? devices : "sim:hbm=256M" };
	struct tally t = { .only = getenv("TESSERA_TORCH") };
	struct err err;
	int n;

	(void)state;
	setenv("TESSERA_CACHE", "off", 1);
	if (rt_client_create(&o, &t.client, &err))
		fail_msg("%s", err.msg);
	n = torch_each(t.only, check, &t);
	rt_client_unref(t.client);
	print_message("%d programs: %u right, %u wrong, %u refused, %u without results; %u by the "
		      "evaluator too, %u the same from MLIR\n", n, t.right, t.wrong, t.refused,
		      t.unknown, t.evaluated, t.twice);
	assert_int_equal(t.wrong, 0);
	if (t.only)
		return;
	assert_int_equal(n, TORCH_COUNT);
	assert_int_equal(t.refused, sizeof(refused) / sizeof(*refused));
	assert_int_equal(t.unknown, 3);
	assert_true(t.evaluated >= 405);
	assert_true(t.twice >= 360);
}

/* randperm: the old op `rng` in a loop. */
static void check_shuffle(const struct torch_program *p, void *arg)
{
	struct tally *t = arg;
	struct tc_array *got;
	struct rt_exe *x;
	bool moved = false;
	uint64_t seen = 0;
	struct err err;
	size_t n;

	if (rt_compile(t->client, p->source.code, p->source.bytes, "hlo", NULL, 0, &x, &err))
		fail_msg("%s", err.msg);
	got = run_on_device(t, p, x, &n);
	assert_non_null(got);
	assert_int_equal(n, 1);
	assert_int_equal(got->dim[0], 9);
	for (int64_t i = 0; i < 9; i++) {
		int64_t v = ((const int64_t *)got->data)[i];

		assert_in_range(v, 0, 8);
		seen |= 1ull << v;
		moved |= v != i;
	}
	assert_int_equal(seen, (1 << 9) - 1);
	assert_true(moved);
	tc_array_free(got, n);
	rt_exe_unref(x);
}

static void a_shuffle_keeps_every_number(void **state)
{
	struct rt_client_options o = { .devices = "sim:hbm=64M" };
	struct tally t = { 0 };
	struct err err;

	(void)state;
	if (rt_client_create(&o, &t.client, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(torch_each("rng__randperm", check_shuffle, &t), 1);
	rt_client_unref(t.client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_programs_of_torch_give_what_its_cpu_backend_gives),
		cmocka_unit_test(a_shuffle_keeps_every_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
