/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_RT_MEMBERS_H
#define TESTS_UNIT_RT_MEMBERS_H
/*
 * Programs of several members through the runtime, as a framework runs them: compiled for
 * devices in any order, arguments as buffers, launched again before the first launch is over.
 *
 *	start_devices(&state);
 *	evaluate_on_devices(&source, &options, args, n_args, &outs, &n_outs, &err);
 *	stop_devices(&state);
 */
#include <unistd.h>

#include "runtime/compiler/tc.h"
#include "tests/unit/rt/rt_gang.h"

enum { TIMES = 2, MOST_ARRAYS = 80 };	/* arguments or results of a member */

static unsigned first_device;	/* moves on with each program */

static inline int start_devices(void **state)
{
	const char *devices = getenv("TESSERA_DEVICES");

	(void)state;
	return start_client(devices ? devices : "sim:devices=8,lanes=1,hbm=256M", 600);
}

/* Members on devices that follow each other by 1, 3, 5 or 7, beginning anywhere. */
static inline int compile(struct rt_gang *g, const struct tc_source *s, unsigned replicas,
			  unsigned partitions, struct err *err)
{
	unsigned devices[N], first = first_device++, n = replicas * partitions;
	uint8_t options[256];
	size_t bytes;

	assert_in_range(n, 1, N);
	for (unsigned m = 0; m < n; m++)
		devices[m] = (first + m * (2 * (first / N % 4) + 1)) % N;
	bytes = options_of(devices, replicas, partitions, options);
	return rt_compile_gang(client, s->code, s->bytes, s->format, options, bytes, g, err);
}

/* ---- a launch ---- */

struct launch {
	struct rt_buffer *in[N][MOST_ARRAYS], *out[N][MOST_ARRAYS];
	struct rt_event *done[N];
};

static inline struct rt_buffer *send(unsigned device, const struct tc_array *a)
{
	struct rt_shape s = { .elem = (enum elem)a->elem, .rank = a->rank };
	struct rt_buffer *b;
	struct err err;

	memcpy(s.dim, a->dim, a->rank * sizeof(*s.dim));
	if (rt_buffer_from_host(client, device, RT_DEVICE, &s, a->data, NULL, &b, &err))
		fail_msg("%s", err.msg);
	return b;
}

static inline struct tc_array fetch(struct rt_buffer *b)
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

static inline int launch(struct launch *l, const struct rt_gang *g, const struct tc_array *args,
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

static inline int wait_for(const struct launch *l, const struct rt_gang *g, struct err *err)
{
	int code = 0;

	for (unsigned m = 0; m < g->n && !code; m++)
		code = rt_event_wait(l->done[m], err);
	return code;
}

static inline void drop(struct launch *l)
{
	for (unsigned m = 0; m < N; m++) {
		for (unsigned i = 0; i < MOST_ARRAYS; i++) {
			rt_buffer_unref(l->in[m][i]);
			rt_buffer_unref(l->out[m][i]);
		}
		rt_event_unref(l->done[m]);
	}
}

/* All results of the last launch, which are, bit for bit, those of the others. */
static inline int take(const struct launch *l, const struct rt_gang *g, size_t n,
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

/* As tc_eval_gang. */
static inline int evaluate_on_devices(const struct tc_source *source, const struct tc_options *o,
		    const struct tc_array *args, size_t n_args, struct tc_array **outs,
		    size_t *n_outs, struct err *err)
{
	struct launch *l = calloc(TIMES, sizeof(*l));
	struct rt_gang g;
	int code = compile(&g, source, o->replicas ? o->replicas : 1,
			   o->partitions ? o->partitions : 1, err);

	assert_non_null(l);
	if (code) {
		free(l);
		return code;
	}
	*n_outs = rt_program_image(rt_exe_program(g.exe[0]))->info.n_results;
	assert_true(n_args <= MOST_ARRAYS && *n_outs <= MOST_ARRAYS);
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

#endif
