/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_AGAINST_EVAL_H
#define TESTS_AGAINST_EVAL_H
/*
 * Runs a program of the IR's text on the model and by the evaluator and compares what
 * they give. Arguments are small whole numbers of either sign, so sums and products of
 * floats are exact in any order; results must be equal bit for bit but for NaNs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/compiler/tc.h"
#include "runtime/rt.h"
#include "tests/unit/vectors.h"

/* A module whose main has these arguments and these lines. */
#define PROGRAM(arguments, lines) \
	"module() () {\nfunc() {sym_name = \"main\"} (" arguments ") {\n" lines "}\n}\n"

static struct rt_client *eval_client;

static inline int against_eval_start(void **state)
{
	const char *devices = getenv("TESSERA_DEVICES");
	struct rt_client_options o = { .devices = devices ? devices : "sim:hbm=256M" };
	struct err err;

	(void)state;
	setenv("TESSERA_CACHE", "off", 1);
	return rt_client_create(&o, &eval_client, &err);
}

static inline int against_eval_stop(void **state)
{
	(void)state;
	rt_client_unref(eval_client);
	return 0;
}

static inline void against_eval_fill(struct tc_array *a)
{
	unsigned unit = elem_bytes(a->elem);

	for (size_t i = 0; i < a->bytes / unit; i++) {
		int64_t v = (int64_t)(i * 7 % 13) - 6;
		char *at = (char *)a->data + i * unit;

		switch (a->elem) {
		case ELEM_F32: *(float *)at = (float)v; break;
		case ELEM_F64: *(double *)at = (double)v; break;
		case ELEM_C64:
			((float *)at)[0] = (float)v;
			((float *)at)[1] = (float)(i % 5);
			break;
		case ELEM_PRED: *at = v & 1; break;
		default:
			if (elem_class(a->elem) != ELEM_CLASS_SINT &&
			    elem_class(a->elem) != ELEM_CLASS_UINT)
				fail_msg("no arguments of %s", elem_text(a->elem));
			if (elem_class(a->elem) == ELEM_CLASS_UINT)
				v = v < 0 ? -v : v;
			memcpy(at, &v, unit);
		}
	}
}

static inline struct rt_buffer *against_eval_send(const struct tc_array *a)
{
	struct rt_shape s = { .elem = (enum elem)a->elem, .rank = a->rank };
	struct rt_buffer *b;
	struct err err;

	memcpy(s.dim, a->dim, a->rank * sizeof(*s.dim));
	if (rt_buffer_from_host(eval_client, 0, RT_DEVICE, &s, a->data, NULL, &b, &err))
		fail_msg("%s", err.msg);
	return b;
}

static inline void against_eval_same(struct rt_buffer *got, const struct tc_array *want,
				     const char *text, unsigned result)
{
	struct rt_event *done;
	struct err err;
	char *data = malloc(want->bytes + 1);
	size_t n = want->bytes / elem_bytes(want->elem), at;

	assert_non_null(data);
	assert_int_equal(rt_shape_bytes(rt_buffer_shape(got)), want->bytes);
	if (rt_buffer_to_host(got, 0, data, want->bytes, &done, &err) ||
	    rt_event_wait(done, &err))
		fail_msg("%s", err.msg);
	rt_event_unref(done);
	if (memcmp(data, want->data, want->bytes) &&
	    vector_compare((enum elem)want->elem, data, want->data, n, RULE_CLOSE, 0, &at))
		fail_msg("result %u differs at element %zu of %zu:\n%s", result, at, n, text);
	free(data);
}

/* The arguments of main, by the image's own word. Freed with tc_array_free. */
static inline struct tc_array *against_eval_args(const struct image *image)
{
	struct tc_array *a = calloc(image->info.n_args + 1u, sizeof(*a));

	assert_non_null(a);
	for (unsigned i = 0; i < image->info.n_args; i++) {
		a[i].elem = image->shapes[i].elem;
		a[i].rank = image->shapes[i].rank;
		a[i].bytes = elem_bytes(a[i].elem);
		for (unsigned d = 0; d < a[i].rank; d++) {
			a[i].dim[d] = image->shapes[i].dim[d];
			a[i].bytes *= (size_t)a[i].dim[d];
		}
		a[i].data = malloc(a[i].bytes + 1);
		assert_non_null(a[i].data);
		against_eval_fill(&a[i]);
	}
	return a;
}

/* Without the passes that may be left out the others see more of a program. */
static inline void against_eval_unoptimised(const struct tc_source *source, const char *text)
{
	const struct tc_options o = { .level = 0, .verify = true };
	struct tc_result r;
	struct err err;

	if (tc_compile(source, &o, &r, &err))
		fail_msg("level 0: %s\n%s", err.msg, text);
	tc_result_free(&r);
}

/* `text` names the program in messages. */
static inline void against_eval(struct tc_source source, const char *text)
{
	struct rt_buffer *in[32], *out[32];
	struct tc_array *args, *want;
	const struct image *image;
	struct rt_event *done;
	struct rt_exe *x;
	struct err err;
	size_t n, n_args;

	against_eval_unoptimised(&source, text);
	if (rt_compile(eval_client, source.code, source.bytes, "mlir", NULL, 0, &x, &err))
		fail_msg("%s\n%s", err.msg, text);
	image = rt_program_image(rt_exe_program(x));
	n_args = image->info.n_args;
	assert_true(n_args <= 32 && image->info.n_results <= 32);
	args = against_eval_args(image);
	for (size_t i = 0; i < n_args; i++)
		in[i] = against_eval_send(&args[i]);
	if (tc_eval(&source, args, n_args, &want, &n, &err))
		fail_msg("%s\n%s", err.msg, text);
	assert_int_equal(n, image->info.n_results);
	if (rt_execute(x, in, n_args, NULL, out, &done, &err) || rt_event_wait(done, &err))
		fail_msg("%s\n%s", err.msg, text);
	rt_event_unref(done);
	for (unsigned i = 0; i < n; i++) {
		against_eval_same(out[i], &want[i], text, i);
		rt_buffer_unref(out[i]);
	}
	for (size_t i = 0; i < n_args; i++)
		rt_buffer_unref(in[i]);
	tc_array_free(want, n);
	tc_array_free(args, n_args);
	rt_exe_unref(x);
}

static inline void runs_as_evaluated(const char *text)
{
	against_eval((struct tc_source){ text, strlen(text), "mlir" }, text);
}

/* The bytes of temporaries that the program's image asks for; strip_bytes: tc.h. */
static inline uint64_t compiled_temp_bytes(const char *text, uint64_t strip_bytes)
{
	const struct tc_options o = { .level = 1, .verify = true, .strip_bytes = strip_bytes };
	struct tc_result r;
	struct image *image;
	struct err err;
	uint64_t n;

	if (tc_compile(&(struct tc_source){ text, strlen(text), "mlir" }, &o, &r, &err) ||
	    image_parse(r.image, r.image_bytes, &image, &err))
		fail_msg("%s\n%s", err.msg, text);
	n = image->info.temp_bytes;
	image_free(image);
	tc_result_free(&r);
	return n;
}

/* A file of tests/data/programs. */
static inline void file_runs_as_evaluated(const char *name)
{
	char path[256], *bytes = malloc(1 << 20);
	size_t n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "tests/data/programs/%s.mlirbc", name);
	f = fopen(path, "rb");
	assert_non_null(bytes);
	if (f)
		n = fread(bytes, 1, 1 << 20, f);
	assert_true(n > 0);
	fclose(f);
	against_eval((struct tc_source){ bytes, n, "mlir" }, name);
	free(bytes);
}

#endif
