/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_GANG_H
#define TESTS_GANG_H
/*
 * Runs a program of M members on M linked devices straight through the HAL, as the image says
 * how (hal/hw/image.h): for tests of the compiler below the runtime.
 *
 *	gang_make(&g, text, replicas, partitions, level);
 *	gang_set(&g, member, arg, data);
 *	gang_run(&g);
 *	gang_get(&g, member, result, data);
 *	gang_drop(&g);
 *
 * Member m is on device (first + m * step) % 8. Each gang's calls come from one thread; gangs
 * may share devices.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "hal/hal.h"
#include "hal/hw/image.h"
#include "runtime/compiler/tc.h"

#define GANG_DEVICES 8
#define GANG_MOST 64		/* arguments, results */
#define GANG_SOON clock_after(120 * 1000000000ll)

struct gang {
	unsigned n, n_args, n_results;
	unsigned at[GANG_DEVICES];		/* devices */
	const struct image *image;		/* of the first member's load */
	struct hal_exe *exe[GANG_DEVICES];
	struct hal_mem *box[GANG_DEVICES], *row[GANG_DEVICES], *temp[GANG_DEVICES];
	struct hal_mem *random[GANG_DEVICES];
	struct hal_mem *arg[GANG_DEVICES][GANG_MOST], *result[GANG_DEVICES][GANG_MOST];
	uint64_t value[GANG_DEVICES];
};

/* tc_options.direct_bytes of what is compiled. */
static uint64_t gang_direct;
static struct hal *gang_hal;
static struct hal_device *gang_dev[GANG_DEVICES];
static pthread_mutex_t gang_lock = PTHREAD_MUTEX_INITIALIZER;

/* For a group of tests: as TESSERA_DEVICES says, or models of one lane. */
static inline int gang_start(void **state)
{
	const char *devices = getenv("TESSERA_DEVICES");
	struct err err;

	(void)state;
	if (hal_create(&(struct hal_options){ .devices = devices ? devices :
					      "sim:devices=8,lanes=1,hbm=256M" }, &gang_hal, &err))
		fail_msg("%s", err.msg);
	for (unsigned i = 0; i < GANG_DEVICES; i++)
		if (hal_device_open(gang_hal, i, &gang_dev[i], &err))
			fail_msg("%s", err.msg);
	return 0;
}

static inline int gang_stop(void **state)
{
	(void)state;
	hal_destroy(gang_hal);
	return 0;
}

static inline struct hal_queue *gang_queue(const struct gang *g, unsigned m)
{
	return hal_device_queue(gang_dev[g->at[m]], HAL_QUEUE_COMPUTE);
}

static inline struct hal_mem *gang_mem(unsigned device, uint64_t bytes)
{
	struct hal_mem *mem;
	struct err err;

	if (hal_mem_alloc(gang_dev[device], HAL_MEM_HBM, bytes ? bytes : 1, "gang", &mem, &err))
		fail_msg("%s", err.msg);
	return mem;
}

static inline void gang_put(struct hal_mem *to, const void *data, uint64_t bytes)
{
	struct err err;

	if (bytes && hal_copy_in(to, 0, data, bytes, GANG_SOON, &err))
		fail_msg("%s", err.msg);
}

/* Mailboxes begin with zeros, and again after a launch failed; a reset takes all that was in
 * memory. */
static inline void gang_begin_anew(const struct gang *g)
{
	for (unsigned m = 0; m < g->n; m++) {
		uint64_t bytes = g->box[m] ? hal_mem_bytes(g->box[m]) : 0;
		void *zeros = calloc(1, bytes + 1);

		assert_non_null(zeros);
		gang_put(g->box[m], zeros, bytes);
		free(zeros);
		if (g->row[m])
			gang_put(g->row[m], g->image->members + m * g->image->n_words,
				 8 * g->image->n_words);
		if (g->random[m])
			gang_put(g->random[m], (const uint64_t[]){ 1, 2, m }, 24);
	}
}

/* Memory for binding i of member m. */
static inline void gang_get_memory(struct gang *g, unsigned m, size_t i)
{
	const struct image_binding *b = &g->image->bindings[i];
	struct hal_mem *mem;

	if (b->kind == IMAGE_CONSTANTS || b->kind == IMAGE_PEER || b->kind == IMAGE_PEER_DATA)
		return;
	mem = gang_mem(g->at[m], b->bytes);
	switch (b->kind) {
	case IMAGE_TEMP: g->temp[m] = mem; break;
	case IMAGE_ARG: g->arg[m][b->index] = mem; break;
	case IMAGE_RESULT: g->result[m][b->index] = mem; break;
	case IMAGE_MAILBOX: g->box[m] = mem; break;
	case IMAGE_RANDOM: g->random[m] = mem; break;
	case IMAGE_MEMBER: g->row[m] = mem; break;
	default: fail_msg("binding %zu is of kind %u", i, b->kind);
	}
}

static inline void gang_load(struct gang *g, const void *image, size_t bytes, unsigned first,
			     unsigned step)
{
	struct err err;

	memset(g, 0, sizeof(*g));
	g->n = 1;
	for (unsigned m = 0; m < g->n; m++) {
		g->at[m] = (first + m * step) % GANG_DEVICES;
		if (hal_exe_load(gang_dev[g->at[m]], image, bytes, &g->exe[m], &err))
			fail_msg("%s", err.msg);
		if (!m) {
			g->image = hal_exe_image(g->exe[0]);
			g->n = image_n_members(g->image);
			g->n_args = g->image->info.n_args;
			g->n_results = g->image->info.n_results;
			assert_true(g->n <= GANG_DEVICES && g->n_args <= GANG_MOST &&
				    g->n_results <= GANG_MOST);
		}
		for (size_t i = 0; i < g->image->n_bindings; i++)
			gang_get_memory(g, m, i);
	}
	for (unsigned m = 0; m < g->n; m++)
		for (unsigned r = 0; r < g->n_results; r++) {
			int32_t alias = g->image->shapes[g->n_args + r].alias;

			if (alias >= 0)
				g->result[m][r] = g->arg[m][alias];
		}
	gang_begin_anew(g);
}

static inline int gang_compile(struct gang *g, const struct tc_source *source,
			       const struct tc_options *o, struct err *err)
{
	struct tc_options with = *o;
	struct tc_result r;
	int code;

	with.direct_bytes = gang_direct;
	code = tc_compile(source, &with, &r, err);

	if (code)
		return code;
	gang_load(g, r.image, r.image_bytes, 0, 1);
	assert_int_equal(g->n, (o->replicas ? o->replicas : 1) *
			 (o->partitions ? o->partitions : 1));
	tc_result_free(&r);
	return 0;
}

static inline void gang_make(struct gang *g, const char *text, unsigned replicas,
			     unsigned partitions, unsigned level)
{
	const struct tc_options o = { .level = level, .verify = true, .replicas = replicas,
				      .partitions = partitions };
	struct err err;

	if (gang_compile(g, &(struct tc_source){ text, strlen(text), "mlir" }, &o, &err))
		fail_msg("%s\n%s", err.msg, text);
}

static inline void gang_drop(struct gang *g)
{
	for (unsigned m = 0; m < g->n; m++) {
		for (unsigned r = 0; r < g->n_results; r++)
			if (g->image->shapes[g->n_args + r].alias < 0)
				hal_mem_free(g->result[m][r]);
		for (unsigned i = 0; i < g->n_args; i++)
			hal_mem_free(g->arg[m][i]);
		hal_mem_free(g->temp[m]);
		hal_mem_free(g->box[m]);
		hal_mem_free(g->row[m]);
		hal_mem_free(g->random[m]);
	}
	for (unsigned m = g->n; m-- > 0;)
		hal_exe_unload(g->exe[m]);
}

static inline struct hal_mem *gang_bound(const struct gang *g, unsigned m,
					 const struct image_binding *b)
{
	const struct image *im = g->image;

	switch (b->kind) {
	case IMAGE_PEER_DATA:
		return gang_bound(g, im->peers[m * im->n_slots + b->index % im->n_slots],
				  &im->bindings[b->index / im->n_slots]);
	case IMAGE_CONSTANTS: return hal_exe_constants(g->exe[m]);
	case IMAGE_TEMP: return g->temp[m];
	case IMAGE_ARG: return g->arg[m][b->index];
	case IMAGE_RESULT: return g->result[m][b->index];
	case IMAGE_MAILBOX: return g->box[m];
	case IMAGE_PEER: return g->box[g->image->peers[m * g->image->n_slots + b->index]];
	case IMAGE_MEMBER: return g->row[m];
	default: return g->random[m];
	}
}

static inline int gang_bind(const struct gang *g, unsigned m, struct hw_binding *out,
			    struct err *err)
{
	int code = 0;

	for (size_t i = 0; i < g->image->n_bindings && !code; i++) {
		const struct image_binding *b = &g->image->bindings[i];
		struct hal_mem *mem = gang_bound(g, m, b);

		out[i] = (struct hw_binding){ .bytes = b->bytes };
		if (mem)
			code = hal_peer_va(gang_dev[g->at[m]], mem, &out[i].va, err);
	}
	return code;
}

/* All addresses, then all submissions, and no other launch between them. The member `missing`
 * stays away; GANG_DEVICES: none does. */
static inline int gang_launch(struct gang *g, unsigned missing, struct err *err)
{
	struct hw_binding b[GANG_DEVICES][2 * GANG_MOST + 32];
	int code = 0;

	assert_true(g->image->n_bindings <= 2 * GANG_MOST + 32);
	pthread_mutex_lock(&gang_lock);
	for (unsigned m = 0; m < g->n && !code; m++)
		code = gang_bind(g, m, b[m], err);
	for (unsigned m = 0; m < g->n && !code; m++)
		if (m != missing)
			code = hal_queue_execute(gang_queue(g, m), &(struct hal_launch){
				.exe = g->exe[m], .bindings = b[m] }, &g->value[m], err);
	pthread_mutex_unlock(&gang_lock);
	return code;
}

static inline int gang_wait(const struct gang *g, unsigned m, struct err *err)
{
	return hal_queue_wait(gang_queue(g, m), g->value[m], GANG_SOON, err);
}

static inline void gang_run(struct gang *g)
{
	struct err err;

	if (gang_launch(g, GANG_DEVICES, &err))
		fail_msg("%s", err.msg);
	for (unsigned m = 0; m < g->n; m++)
		if (gang_wait(g, m, &err))
			fail_msg("member %u: %s", m, err.msg);
}

static inline void gang_set(const struct gang *g, unsigned m, unsigned arg, const void *data)
{
	gang_put(g->arg[m][arg], data, image_shape_bytes(&g->image->shapes[arg]));
}

static inline void gang_get(const struct gang *g, unsigned m, unsigned result, void *data)
{
	uint64_t bytes = image_shape_bytes(&g->image->shapes[g->n_args + result]);
	struct err err;

	if (bytes && hal_copy_out(data, g->result[m][result], 0, bytes, GANG_SOON, &err))
		fail_msg("%s", err.msg);
}

/* As tc_eval_gang. */
static inline int gang_evaluate(const struct tc_source *source, const struct tc_options *o,
				const struct tc_array *args, size_t n_args,
				struct tc_array **outs, size_t *n_outs, struct err *err)
{
	struct tc_array *a;
	struct gang g;
	int code = gang_compile(&g, source, o, err);

	if (code)
		return code;
	assert_int_equal(g.n_args, n_args);
	*outs = a = calloc(g.n * g.n_results + 1, sizeof(*a));
	*n_outs = g.n_results;
	assert_non_null(a);
	for (unsigned m = 0; m < g.n; m++)
		for (unsigned k = 0; k < n_args; k++)
			gang_set(&g, m, k, args[m * n_args + k].data);
	gang_run(&g);
	for (unsigned m = 0; m < g.n; m++)
		for (unsigned k = 0; k < g.n_results; k++, a++) {
			const struct image_shape *s = &g.image->shapes[n_args + k];

			*a = (struct tc_array){ .elem = s->elem, .rank = s->rank,
						.bytes = image_shape_bytes(s) };
			memcpy(a->dim, s->dim, sizeof(a->dim));
			a->data = malloc(a->bytes + 1);
			assert_non_null(a->data);
			gang_get(&g, m, k, a->data);
		}
	gang_drop(&g);
	return 0;
}

#endif
