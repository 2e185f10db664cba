/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program for several devices through the runtime: arguments are cut as its shardings say,
 * all members run at once, and each one's part of each result is compared.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/compile_options.pb-c.h"
#include "runtime/rt.h"
#include "tests/fuzz_ops/fuzz.h"
#include "tests/lay.h"

struct members {
	struct rt_client *client;
	struct rt_gang gang;
	struct lays lays;
	struct rt_buffer *in[FUZZ_MAX_MEMBERS][FUZZ_MAX_ARGS];
	struct rt_buffer *out[FUZZ_MAX_MEMBERS][FUZZ_MAX_RESULTS];
	struct rt_event *done[FUZZ_MAX_MEMBERS];
};

static int compile(struct members *m, const struct program *p, struct err *err)
{
	Rt__CompileOptions o = RT__COMPILE_OPTIONS__INIT;
	Rt__BuildOptions b = RT__BUILD_OPTIONS__INIT;
	uint8_t bytes[64];

	b.has_num_replicas = b.has_num_partitions = true;
	b.num_replicas = 1;
	b.num_partitions = p->n_partitions;
	o.executable_build_options = &b;
	if (rt__compile_options__get_packed_size(&o) > sizeof(bytes))
		return err_set(err, ERR_INTERNAL, "the options are longer than expected");
	return rt_compile_gang(m->client, p->text, strlen(p->text), "mlir", bytes,
			       rt__compile_options__pack(&o, bytes), &m->gang, err);
}

static int send(struct members *m, const struct program *p, unsigned member, unsigned i,
		struct err *err)
{
	struct tc_array part = lay_cut(&m->lays.arg[i], &p->in[i], member);
	struct rt_shape s = { .elem = (enum elem)part.elem, .rank = part.rank };
	int code;

	if (!part.data)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	memcpy(s.dim, part.dim, s.rank * sizeof(*s.dim));
	code = rt_buffer_from_host(m->client, rt_exe_device(m->gang.exe[member]), RT_DEVICE, &s,
				   part.data, NULL, &m->in[member][i], err);
	free(part.data);
	return code;
}

static int launch(struct members *m, const struct program *p, struct err *err)
{
	struct rt_buffer *const *in[FUZZ_MAX_MEMBERS];
	struct rt_buffer **out[FUZZ_MAX_MEMBERS];
	int code = 0;

	for (unsigned k = 0; k < m->gang.n; k++) {
		for (unsigned i = 0; i < p->n_args && !code; i++)
			code = send(m, p, k, i, err);
		in[k] = m->in[k];
		out[k] = m->out[k];
	}
	if (!code)
		code = rt_execute_gang(&m->gang, in, p->n_args, NULL, out, m->done, err);
	for (unsigned k = 0; k < m->gang.n && !code; k++)
		code = rt_event_wait(m->done[k], err);
	return code;
}

/* The whole with the member's part in its place. */
static enum verdict compare(struct members *m, const struct program *p, unsigned member,
			    unsigned i, struct err *err)
{
	const struct lay *l = &m->lays.result[i];
	const struct tc_array *whole = &p->expected[i];
	struct rt_buffer *b = m->out[member][i];
	size_t bytes = rt_shape_bytes(rt_buffer_shape(b)), size = elem_bytes(l->elem), n = size;
	struct lay_putting put = { malloc(whole->bytes + 1), malloc(bytes + 1), size };
	struct rt_event *done = NULL;
	enum verdict is = REFUSED;
	char who[32];

	for (unsigned d = 0; d < l->rank; d++)
		n *= (size_t)((l->dim[d] + l->parts[d] - 1) / l->parts[d]);
	snprintf(who, sizeof(who), "member %u", member);
	if (!put.whole || !put.part) {
		err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	} else if (n != bytes) {
		err_set(err, ERR_INTERNAL, "result %u of member %u has %zu bytes, not %zu", i,
			member, bytes, n);
		is = DIFFERENT;
	} else if (!rt_buffer_to_host(b, 0, put.part, bytes, &done, err) &&
		   !rt_event_wait(done, err)) {
		memcpy(put.whole, whole->data, whole->bytes);
		lay_each(l, member, lay_put_one, &put);
		is = compare_results(p, i, put.whole, whole->bytes, false, who, err);
	}
	rt_event_unref(done);
	free(put.whole);
	free(put.part);
	return is;
}

static void drop(struct members *m)
{
	for (unsigned k = 0; k < FUZZ_MAX_MEMBERS; k++) {
		for (unsigned i = 0; i < FUZZ_MAX_ARGS; i++)
			rt_buffer_unref(m->in[k][i]);
		for (unsigned i = 0; i < FUZZ_MAX_RESULTS; i++)
			rt_buffer_unref(m->out[k][i]);
		rt_event_unref(m->done[k]);
	}
	rt_free_gang(&m->gang);
	free(m);
}

enum verdict run_members(struct rt_client *client, const struct program *p, struct err *err)
{
	const struct tc_source source = { p->text, strlen(p->text), "mlir" };
	const struct tc_options o = { .level = 1, .partitions = p->n_partitions };
	struct members *m = calloc(1, sizeof(*m));
	enum verdict is = REFUSED;

	if (!m) {
		err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
		return REFUSED;
	}
	m->client = client;
	m->lays.partitions = p->n_partitions;
	if (!tc_enter(&source, &o, err, lay_find_all, &m->lays) && !compile(m, p, err) &&
	    !launch(m, p, err)) {
		is = SAME;
		for (unsigned k = 0; is == SAME && k < m->gang.n; k++)
			for (unsigned i = 0; is == SAME && i < p->n_results; i++)
				is = compare(m, p, k, i, err);
	}
	drop(m);
	return is;
}
