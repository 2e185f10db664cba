/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_DYNAMIC_H
#define TESTS_DYNAMIC_H
/*
 * The programs of tests/data/dynamic, whose arrays are those of several runs, one behind the other.
 * Results there are as short as their sizes.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hal/hw/image.h"
#include "tests/unit/torch.h"

#define DYNAMIC_DIR "tests/data/dynamic"
#define DYNAMIC_COUNT 52	/* programs: none may be lost */

struct dynamic_run {
	struct tc_array *in, *out;	/* the program's */
	size_t n_in, n_out;
};

/* A form of a program, compiled: what it takes and gives. */
static inline struct image *dynamic_image(const struct tc_source *source, const char *name)
{
	static const struct tc_options options = { .level = 1, .verify = true };
	struct image *im = NULL;
	struct tc_result r;
	struct err err;

	if (tc_compile(source, &options, &r, &err) ||
	    image_parse(r.image, r.image_bytes, &im, &err))
		fail_msg("%s as %s: %s", name, source->format, err.msg);
	tc_result_free(&r);
	return im;
}

/* Run i of a program. */
static inline bool dynamic_run_of(const struct torch_program *p, const struct image *im, size_t i,
				  struct dynamic_run *run)
{
	size_t n_in = im->info.n_args, n_out = im->info.n_results - image_n_result_sizes(im);

	assert_int_equal(image_n_arg_sizes(im), 0);
	assert_true(n_in && p->n_in % n_in == 0 && p->n_out == p->n_in / n_in * n_out);
	if ((i + 1) * n_in > p->n_in)
		return false;
	*run = (struct dynamic_run){ p->in + i * n_in, p->out + i * n_out, n_in, n_out };
	return true;
}

static inline double dynamic_number(uint8_t elem, const void *p, size_t i)
{
	switch (elem) {
	case ELEM_F32: return ((const float *)p)[i];
	case ELEM_S32: return ((const int32_t *)p)[i];
	case ELEM_PRED: return ((const uint8_t *)p)[i];
	default: fail_msg("elements of %s", elem_text(elem)); return 0;
	}
}

/* got: an array as long as its bounds, of which dim[] counts. */
static inline void dynamic_same(const char *name, size_t result, const int64_t *dim,
				const struct tc_array *got, const struct tc_array *want)
{
	size_t n = 1;

	assert_int_equal(got->rank, want->rank);
	assert_int_equal(got->elem, want->elem);
	for (unsigned d = 0; d < want->rank; d++) {
		if (dim[d] != want->dim[d])
			fail_msg("%s: dim %u of result %zu is %lld, not %lld", name, d, result,
				 (long long)dim[d], (long long)want->dim[d]);
		n *= (size_t)want->dim[d];
	}
	for (size_t i = 0; i < n; i++) {
		size_t at = 0, rest = i, step = 1;
		double a, b;

		for (unsigned d = want->rank; d-- > 0; rest /= (size_t)want->dim[d]) {
			at += rest % (size_t)want->dim[d] * step;
			step *= (size_t)got->dim[d];
		}
		a = dynamic_number(got->elem, got->data, at);
		b = dynamic_number(want->elem, want->data, i);
		if (a != b && !(isnan(a) && isnan(b)) && !(fabs(a - b) <= 1e-5 * fabs(b) + 1e-6))
			fail_msg("%s: element %zu of result %zu is %g, not %g", name, i, result, a,
				 b);
	}
}

/* Calls fn for every program; how many there were. */
static inline int dynamic_each(void (*fn)(const struct torch_program *p, void *arg), void *arg)
{
	glob_t found = { 0 };
	char path[256];
	int n = 0;

	glob(DYNAMIC_DIR "/*.arrays", 0, NULL, &found);
	for (; n < (int)found.gl_pathc; n++) {
		const char *base = found.gl_pathv[n] + strlen(DYNAMIC_DIR "/");
		struct torch_program p = { .source.format = "hlo", .mlir.format = "mlir" };

		snprintf(p.name, sizeof(p.name), "%.*s", (int)strlen(base) - 7, base);
		snprintf(path, sizeof(path), DYNAMIC_DIR "/%s.hlo", p.name);
		p.source.code = torch_read_file(path, &p.source.bytes);
		snprintf(path, sizeof(path), DYNAMIC_DIR "/%s.mlirbc", p.name);
		p.mlir.code = torch_read_file(path, &p.mlir.bytes);
		assert_non_null(p.mlir.code);
		assert_true(torch_read_arrays(&p, found.gl_pathv[n]));
		fn(&p, arg);
		torch_free(&p);
	}
	globfree(&found);
	return n;
}

#endif
