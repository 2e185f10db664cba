/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_GANGS_LAUNCHES_H
#define TESTS_UNIT_GANGS_LAUNCHES_H
/*
 * Eight devices; launches of the programs of rt_gang.h whose results only their members on their
 * devices give, and gates, which keep a device busy until they are opened.
 *
 *	start(&l, &gang, round);
 *	code = check(&l, round, &err);
 *	drop(&l);
 */
#include "tests/unit/rt/rt_gang.h"

/* Of a group of tests. */
static inline int start_devices(void **state)
{
	(void)state;
	return start_client("sim:devices=8,lanes=1,hbm=64M", 600);
}

/* ---- launches ---- */

static const struct rt_shape array = { .elem = ELEM_F32, .rank = 1, .dim = { ELEMENTS } };

/* A member's argument: whole numbers, so that sums are exact in any order. */
static inline float number(unsigned device, unsigned round, unsigned i)
{
	return (float)((device + 1) * 1000 + round % 100 * 10 + i % 7);
}

static inline struct rt_buffer *argument(unsigned device, unsigned round)
{
	struct rt_buffer *b;
	float x[ELEMENTS];
	struct err err;

	for (unsigned i = 0; i < ELEMENTS; i++)
		x[i] = number(device, round, i);
	if (rt_buffer_from_host(client, device, RT_DEVICE, &array, x, NULL, &b, &err))
		fail_msg("%s", err.msg);
	return b;
}

/* One launch: arguments, results and ends of all members. */
struct launch {
	const struct rt_gang *g;
	struct rt_buffer *in[N], *out[N][2];
	struct rt_event *done[N];
};

static inline int execute(struct launch *l, const bool *keep, struct err *err)
{
	struct rt_buffer *const *in[N];
	struct rt_buffer **out[N];

	for (unsigned m = 0; m < l->g->n; m++) {
		in[m] = &l->in[m];
		out[m] = l->out[m];
	}
	return rt_execute_gang(l->g, in, 1, keep, out, l->done, err);
}

static inline void give_arguments(struct launch *l, const struct rt_gang *g, unsigned round)
{
	memset(l, 0, sizeof(*l));
	l->g = g;
	for (unsigned m = 0; m < g->n; m++)
		l->in[m] = argument(rt_exe_device(g->exe[m]), round);
}

static inline void start(struct launch *l, const struct rt_gang *g, unsigned round)
{
	struct err err;

	give_arguments(l, g, round);
	if (execute(l, NULL, &err))
		fail_msg("%s", err.msg);
}

static inline int fetch(struct rt_buffer *b, void *to, uint64_t bytes, struct err *err)
{
	struct rt_event *e;
	int code = rt_buffer_to_host(b, 0, to, bytes, &e, err);

	if (code)
		return code;
	code = rt_event_wait(e, err);
	rt_event_unref(e);
	return code;
}

/* 0, or what is wrong; for threads too. */
static inline int check(const struct launch *l, unsigned round, struct err *err)
{
	float sum[ELEMENTS], want;
	uint32_t who;
	int code;

	for (unsigned m = 0; m < l->g->n; m++) {
		code = rt_event_wait(l->done[m], err);
		if (!code)
			code = fetch(l->out[m][0], sum, BYTES, err);
		if (!code)
			code = fetch(l->out[m][1], &who, 4, err);
		if (code)
			return code;
		if (who != m)
			return err_set(err, ERR_INTERNAL, "member %u takes itself for %u", m, who);
		for (unsigned i = 0; i < ELEMENTS; i++) {
			want = 0;
			for (unsigned k = 0; k < l->g->n; k++)
				want += number(rt_exe_device(l->g->exe[k]), round, i);
			if (sum[i] != want)
				return err_set(err, ERR_INTERNAL, "member %u, round %u: element "
					       "%u is %g, not %g", m, round, i, (double)sum[i],
					       (double)want);
		}
	}
	return 0;
}

static inline void drop(struct launch *l)
{
	for (unsigned m = 0; m < l->g->n; m++) {
		rt_buffer_unref(l->in[m]);
		rt_buffer_unref(l->out[m][0]);
		rt_buffer_unref(l->out[m][1]);
		rt_event_unref(l->done[m]);
	}
	memset(l, 0, sizeof(*l));
}

static inline void run(const struct rt_gang *g, unsigned round)
{
	struct launch l;
	struct err err;

	start(&l, g, round);
	if (check(&l, round, &err))
		fail_msg("%s", err.msg);
	drop(&l);
}

static inline void expect(int code, const struct err *err, int want, const char *part)
{
	if (code != want || !strstr(err->msg, part))
		fail_msg("code %d instead of %d, without \"%s\": %s", code, want, part,
			 code ? err->msg : "");
}

/* ---- a gate: keeps a device until it is opened ---- */

struct gate {
	struct rt_exe *exe;
	struct rt_buffer *word;
	struct rt_event *done;
};

static inline void shut(struct gate *g, unsigned device)
{
	const struct rt_shape shape = { .elem = ELEM_U64, .rank = 1, .dim = { 1 } };
	uint64_t zero = 0;
	struct err err;

	g->exe = load_gate(device);
	assert_int_equal(rt_buffer_from_host(client, device, RT_DEVICE, &shape, &zero, NULL,
					     &g->word, &err), 0);
	if (rt_execute(g->exe, &g->word, 1, NULL, NULL, &g->done, &err))
		fail_msg("%s", err.msg);
}

static inline void open_gate(struct gate *g)
{
	struct rt_device *d = &client->devices[rt_exe_device(g->exe)];
	uint64_t value;
	struct err err;

	assert_int_equal(hal_queue_fill(hal_device_queue(d->hal, HAL_QUEUE_DMA),
					g->word->storage->mem, 0, 8, 1, &value, &err), 0);
	if (rt_event_wait(g->done, &err))
		fail_msg("%s", err.msg);
}

static inline void drop_gate(struct gate *g)
{
	rt_event_unref(g->done);
	rt_buffer_unref(g->word);
	rt_exe_unref(g->exe);
}

/* ---- sets of devices that overlap ---- */

static const struct { unsigned n, at[N]; } sets[] = {
	{ 8, { 0, 1, 2, 3, 4, 5, 6, 7 } }, { 2, { 0, 1 } }, { 2, { 6, 3 } }, { 3, { 5, 0, 7 } },
	{ 4, { 3, 1, 0, 2 } }, { 4, { 2, 3, 4, 5 } }, { 6, { 7, 6, 5, 2, 1, 0 } },
	{ 8, { 3, 7, 0, 4, 1, 5, 2, 6 } },
};
enum { N_SETS = sizeof(sets) / sizeof(*sets) };

#endif
