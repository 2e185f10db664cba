/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_REPLICAS_H
#define TESTS_REPLICAS_H
/*
 * The programs of four replicas among those of tests/data/torch: what each replica takes, and
 * whether what they give is what XLA's CPU backend gave: of integers the same, of floats within a
 * few units in the last place of their array's largest, since it adds up in another order.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/torch.h"

#define REPLICA_UNITS 64	/* of f32, of the largest of an array */

static inline double replica_number(unsigned elem, const void *p)
{
	uint32_t bits = 0;
	double d;
	float f;

	switch (elem) {
	case ELEM_BF16:
		memcpy((char *)&bits + 2, p, 2);
		memcpy(&f, &bits, 4);
		return (double)f;
	case ELEM_F32: memcpy(&f, p, 4); return (double)f;
	case ELEM_F64: memcpy(&d, p, 8); return d;
	default: fail_msg("no way to compare %s", elem_text(elem)); return 0;
	}
}

/* What is added before a normalisation has no gradient: noise. */
static inline double replica_noise(const struct torch_program *p, size_t result)
{
	return !strcmp(p->name, "repl__dp_convnet.1") && result == 11 ? 1e-6 : 0;
}

/* Whether what the members gave as one result is `want`, which has them all. */
static inline bool replicas_are_near(const struct tc_array *outs, size_t n_outs,
				     const struct tc_array *want, double apart)
{
	unsigned each = elem_bytes(want->elem);
	size_t part = want->bytes / TORCH_REPLICAS, n = want->bytes / each;
	double most = 0, unit = want->elem == ELEM_BF16 ? 0x1p-8 : REPLICA_UNITS * 0x1p-24;
	const char *w = want->data;

	for (unsigned m = 0; m < TORCH_REPLICAS; m++)
		if (outs[m * n_outs].bytes != part || outs[m * n_outs].elem != want->elem)
			return false;
	if (elem_class(want->elem) != ELEM_CLASS_FLOAT) {
		for (unsigned m = 0; m < TORCH_REPLICAS; m++)
			if (memcmp(outs[m * n_outs].data, w + m * part, part))
				return false;
		return true;
	}
	for (size_t i = 0; i < n; i++)
		most = fmax(most, fabs(replica_number(want->elem, w + i * each)));
	for (size_t i = 0; i < n; i++) {
		const char *got = (char *)outs[i * each / part * n_outs].data + i * each % part;

		double by = fabs(replica_number(want->elem, got) -
				 replica_number(want->elem, w + i * each));

		if (!(by <= fmax(unit * most, apart)))
			return false;
	}
	return true;
}

/* Each member's part of the arguments. */
static inline struct tc_array *replicas_share_out(const struct torch_program *p)
{
	struct tc_array *args = calloc(TORCH_REPLICAS * p->n_in + 1, sizeof(*args));

	assert_non_null(args);
	for (unsigned m = 0; m < TORCH_REPLICAS; m++)
		for (size_t i = 0; i < p->n_in; i++) {
			const struct tc_array *all = &p->in[i];
			struct tc_array *a = &args[m * p->n_in + i];

			assert_true(all->rank && all->dim[0] == TORCH_REPLICAS);
			*a = *all;
			a->rank = all->rank - 1;
			memmove(a->dim, all->dim + 1, a->rank * sizeof(*a->dim));
			a->bytes = all->bytes / TORCH_REPLICAS;
			a->data = (char *)all->data + m * a->bytes;
		}
	return args;
}

/* Runs a program by all its replicas, in ways that the options say. As tc_eval_gang. */
typedef int replicas_evaluate(const struct tc_source *source, const struct tc_options *o,
			      const struct tc_array *args, size_t n_args, struct tc_array **outs,
			      size_t *n_outs, struct err *err);

/* Says what is wrong, or that the program gives what it should. */
static inline void replicas_check(const struct torch_program *p, const struct tc_options *o,
				  replicas_evaluate *evaluate)
{
	const char *how = o->evaluate_after ? o->evaluate_after : "compile";
	struct tc_array *args = replicas_share_out(p), *outs;
	struct err err;
	size_t n;

	if (evaluate(&p->source, o, args, p->n_in, &outs, &n, &err))
		fail_msg("%s after %s: %s", p->name, how, err.msg);
	assert_int_equal(n, p->n_out);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(outs[i].bytes, p->out[i].bytes / TORCH_REPLICAS);
		if (!p->is_random &&
		    !replicas_are_near(outs + i, n, &p->out[i], replica_noise(p, i)))
			fail_msg("%s after %s: result %zu is wrong", p->name, how, i);
	}
	tc_array_free(outs, TORCH_REPLICAS * n);
	free(args);
}

struct replicas_way {
	const struct tc_options *options;
	size_t n_options, n_programs;
	replicas_evaluate *evaluate;
};

static inline void replicas_check_each(const struct torch_program *p, void *arg)
{
	struct replicas_way *way = arg;

	for (size_t i = 0; i < way->n_options; i++)
		replicas_check(p, &way->options[i], way->evaluate);
	way->n_programs++;
}

/* Checks all programs, or those that TESSERA_TORCH names, with each of the options. */
static inline void replicas_check_all(const struct tc_options *options, size_t n_options,
				      replicas_evaluate *evaluate)
{
	struct replicas_way way = { options, n_options, 0, evaluate };
	const char *only = getenv("TESSERA_TORCH");
	int found = torch_each_in(TORCH_REPLICATED, only, replicas_check_each, &way);

	assert_int_equal(found, way.n_programs);
	if (!only)
		assert_int_equal(way.n_programs, TORCH_REPLICATED_COUNT);
}

#endif
