/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JAX's and torch_xla's programs for several devices through the runtime, as a framework runs
 * them: compiled for members on devices in any order, arguments as buffers, launched again
 * before the first launch is over. Both launches give the parts of what XLA's CPU backend gives.
 *
 * TESSERA_SPMD=text runs the programs whose names contain it.
 */
#include <unistd.h>

#include "tests/unit/rt/rt_gang.h"
#include "tests/unit/spmd.h"

enum { TIMES = 2 };

/* Programs that do not compile, and what their error says. */
static const struct { const char *name, *says; } refused[] = {
	{ "jit__custom_partitioning", "(custom_partitioning) does not run yet" },
};

static unsigned n_refused;
static unsigned first_device;	/* moves on with each program */

static int start(void **state)
{
	const char *devices = getenv("TESSERA_DEVICES");
	struct rt_client_options o = { .devices = devices ? devices :
				       "sim:devices=8,lanes=1,hbm=256M" };
	struct err err;

	alarm(600);	/* a deadlock ends the test, not the day */
	setenv("TESSERA_CACHE", "off", 1);
	if (rt_client_create(&o, &client, &err)) {
		fprintf(stderr, "%s\n", err.msg);
		return -1;
	}
	return load_programs(state);
}

static int stop(void **state)
{
	rt_client_unref(client);
	return unload_programs(state);
}

/* Members on devices that follow each other by 1, 3, 5 or 7, beginning anywhere. */
static int compile(struct rt_gang *g, const struct tc_source *s, unsigned n, struct err *err)
{
	unsigned devices[N], first = first_device++;
	uint8_t options[256];
	size_t bytes;

	assert_in_range(n, 1, N);
	for (unsigned m = 0; m < n; m++)
		devices[m] = (first + m * (2 * (first / N % 4) + 1)) % N;
	bytes = options_for(devices, n, options);
	return rt_compile_gang(client, s->code, s->bytes, s->format, options, bytes, g, err);
}

/* ---- a launch ---- */

struct launch {
	struct rt_buffer *in[N][MOST], *out[N][MOST];
	struct rt_event *done[N];
};

static struct rt_buffer *send(unsigned device, const struct tc_array *a)
{
	struct rt_shape s = { .elem = (enum elem)a->elem, .rank = a->rank };
	struct rt_buffer *b;
	struct err err;

	memcpy(s.dim, a->dim, a->rank * sizeof(*s.dim));
	if (rt_buffer_from_host(client, device, RT_DEVICE, &s, a->data, NULL, &b, &err))
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

static int launch(struct launch *l, const struct rt_gang *g, const struct tc_array *args,
		  size_t n_args, struct err *err)
{
	struct rt_buffer *const *in[N];
	struct rt_buffer **out[N];

	for (unsigned m = 0; m < g->n; m++) {
		for (size_t i = 0; i < n_args; i++)
			l->in[m][i] = send(rt_exe_device(g->exe[m]), &args[m * n_args + i]);
		in[m] = l->in[m];
		out[m] = l->out[m];
	}
	return rt_execute_gang(g, in, n_args, NULL, out, l->done, err);
}

static int wait_for(const struct launch *l, const struct rt_gang *g, struct err *err)
{
	int code = 0;

	for (unsigned m = 0; m < g->n && !code; m++)
		code = rt_event_wait(l->done[m], err);
	return code;
}

static void drop(struct launch *l)
{
	for (unsigned m = 0; m < N; m++) {
		for (unsigned i = 0; i < MOST; i++) {
			rt_buffer_unref(l->in[m][i]);
			rt_buffer_unref(l->out[m][i]);
		}
		rt_event_unref(l->done[m]);
	}
}

/* All results of the last launch, which are, bit for bit, those of the others. */
static int take(const struct launch *l, const struct rt_gang *g, size_t n,
		struct tc_array **out, struct err *err)
{
	struct tc_array *outs = calloc(g->n * n + 1, sizeof(*outs));
	int code = 0;

	assert_non_null(outs);
	for (unsigned t = 0; t < TIMES; t++)
		for (size_t i = 0; i < g->n * n; i++) {
			struct tc_array a = fetch(l[t].out[i / n][i % n]);

			if (t && (a.bytes != outs[i].bytes ||
				  memcmp(a.data, outs[i].data, a.bytes)))
				code = err_set(err, ERR_INTERNAL, "launch %u gives other bits of "
					       "result %zu on member %zu", t, i % n, i / n);
			free(outs[i].data);
			outs[i] = a;
		}
	if (code)
		tc_array_free(outs, g->n * n);
	else
		*out = outs;
	return code;
}

/* ---- programs ---- */

static int evaluate(const struct tc_source *source, const struct tc_options *o,
		    const struct tc_array *args, size_t n_args, struct tc_array **outs,
		    size_t *n_outs, struct err *err)
{
	struct launch *l = calloc(TIMES, sizeof(*l));
	struct rt_gang g;
	int code = compile(&g, source, o->partitions, err);

	assert_non_null(l);
	if (code) {
		free(l);
		return code;
	}
	*n_outs = rt_program_image(rt_exe_program(g.exe[0]))->info.n_results;
	assert_true(n_args <= MOST && *n_outs <= MOST);
	for (unsigned t = 0; t < TIMES && !code; t++)
		code = launch(&l[t], &g, args, n_args, err);
	for (unsigned t = 0; t < TIMES && !code; t++)
		code = wait_for(&l[t], &g, err);
	if (!code)
		code = take(l, &g, *n_outs, outs, err);
	for (unsigned t = 0; t < TIMES; t++)
		drop(&l[t]);
	free(l);
	rt_free_gang(&g);
	return code;
}

/* Says what the table says. */
static bool is_refused(const struct program *p)
{
	struct rt_gang g;
	struct err err;

	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
		if (strcmp(p->name, refused[i].name))
			continue;
		assert_int_equal(compile(&g, &(struct tc_source){ p->code, p->bytes, p->format },
					 p->partitions, &err), ERR_UNIMPLEMENTED);
		if (!strstr(err.msg, refused[i].says))
			fail_msg("%s: %s", p->name, err.msg);
		n_refused++;
		return true;
	}
	return false;
}

static void programs_give_the_parts_of_what_one_device_gives(void **state)
{
	const struct tc_options o = { .level = 1 };
	const char *only = getenv("TESSERA_SPMD");
	unsigned n = 0, n_wrong = 0;

	(void)state;
	for (unsigned i = 0; i < n_programs; i++) {
		if ((only && !strstr(programs[i].name, only)) || is_refused(&programs[i]))
			continue;
		n++;
		n_wrong += !agrees(&programs[i], &o, evaluate);
	}
	print_message("%u of %u programs agree, refused: %u\n", n - n_wrong, n, n_refused);
	assert_int_equal(n_wrong, 0);
	if (only)
		return;
	assert_int_equal(n_refused, sizeof(refused) / sizeof(*refused));
	assert_true(n >= 450);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(programs_give_the_parts_of_what_one_device_gives),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
