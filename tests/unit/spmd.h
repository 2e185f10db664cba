/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SPMD_H
#define TESTS_SPMD_H
/*
 * Programs shared out among several devices: arguments are cut for each member as the program's
 * shardings say, and what members give is compared with their parts of the answer. Who runs
 * the members is the test's (spmd_evaluate).
 *
 * tests/data/spmd/gang.bin holds programs as they arrive with arguments and results of
 * XLA's CPU backend: for each
 *
 *	program NAME FORMAT PARTITIONS BYTES ARGUMENTS RESULTS\n	and the program,
 *	array TYPE BYTES DIMSxDIMS\n	and its elements (numpy's; bf16 as f32), or
 *	as NAME\n	for those of another program.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lay.h"

#define GANG "tests/data/spmd/gang.bin"
#define MOST 48		/* arguments or results of a program */

/* ---- numbers ---- */

static inline double bits_to_double(uint32_t bits)
{
	float f;

	memcpy(&f, &bits, 4);
	return (double)f;
}

static inline double half(uint16_t h)
{
	int e = h >> 10 & 31, m = h & 1023;
	double v = e == 31 ? m ? (double)NAN : (double)INFINITY :
		   e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);

	return h >> 15 ? -v : v;
}

/* Element i; of complex numbers the real part is 2 i. */
static inline double number(uint8_t elem, const void *p, int64_t i)
{
	const uint8_t *b = p;

	switch (elem) {
	case ELEM_F32: case ELEM_C64: return (double)((const float *)p)[i];
	case ELEM_F64: return ((const double *)p)[i];
	case ELEM_BF16: return bits_to_double((uint32_t)((const uint16_t *)p)[i] << 16);
	case ELEM_F16: return half(((const uint16_t *)p)[i]);
	case ELEM_S32: return ((const int32_t *)p)[i];
	case ELEM_U32: return ((const uint32_t *)p)[i];
	case ELEM_S64: return (double)((const int64_t *)p)[i];
	case ELEM_S8: return ((const int8_t *)p)[i];
	case ELEM_PRED: case ELEM_U8: return b[i];
	default: fail_msg("type %u", elem); return 0;
	}
}

/* What sums in another order may differ by, to the largest number of the array. */
static inline double bound(uint8_t elem)
{
	switch (elem) {
	case ELEM_F32: case ELEM_C64: return 2e-5;
	case ELEM_BF16: case ELEM_F16: return 2e-2;
	default: return 0;
	}
}

struct comparison { uint8_t elem; unsigned n; const void *is, *should; double most, scale; };

static inline void compare_one(int64_t whole, int64_t part, void *arg)
{
	struct comparison *k = arg;

	for (unsigned i = 0; i < k->n; i++) {
		double a = number(k->elem, k->is, part * k->n + i);
		double b = number(k->elem, k->should, whole * k->n + i);

		if (isnan(a) != isnan(b) || (isinf(b) && a != b))
			k->most = INFINITY;
		else if (!isnan(a) && a != b)
			k->most = fmax(k->most, fabs(a - b));
	}
}

/* How far a member's result is from its part of the whole, in bounds; more than 1: too far. */
static inline double compare(const struct lay *l, unsigned partition,
			     const struct tc_array *is, const struct tc_array *should)
{
	struct comparison k = { l->elem, l->elem == ELEM_C64 ? 2 : 1, is->data, should->data,
				0, 1 };
	int64_t n = (int64_t)(should->bytes / elem_bytes(l->elem)) * k.n;

	assert_int_equal(is->elem, l->elem);
	assert_int_equal(is->rank, l->rank);
	for (unsigned d = 0; d < l->rank; d++)
		assert_int_equal(is->dim[d], (l->dim[d] + l->parts[d] - 1) / l->parts[d]);
	for (int64_t i = 0; i < n; i++) {
		double v = fabs(number(l->elem, should->data, i));

		if (isfinite(v))
			k.scale = fmax(k.scale, v);
	}
	lay_each(l, partition, compare_one, &k);
	return !k.most ? 0 : !bound(l->elem) ? INFINITY : k.most / k.scale / bound(l->elem);
}

/* ---- a gang ---- */

/* Runs all members on their own arguments, args[partitions][n_args]; so are outs, freed with
 * tc_array_free. As tc_eval_gang. */
typedef int spmd_evaluate(const struct tc_source *source, const struct tc_options *o,
			  const struct tc_array *args, size_t n_args, struct tc_array **outs,
			  size_t *n_outs, struct err *err);

/* Cuts, runs, compares; the largest distance in *far. */
static inline int run_parts(spmd_evaluate *evaluate, const struct tc_source *source,
			    const struct tc_options *o, const struct lays *l,
			    const struct tc_array *args, const struct tc_array *should,
			    double *far, struct err *err)
{
	size_t all = (size_t)l->partitions * l->n_args, n_outs;
	struct tc_array *parts = calloc(all + 1, sizeof(*parts)), *outs;
	int code;

	assert_non_null(parts);
	for (unsigned m = 0; m < l->partitions; m++)
		for (unsigned i = 0; i < l->n_args; i++)
			parts[m * l->n_args + i] = lay_cut(&l->arg[i], &args[i], m);
	for (size_t i = 0; i < all; i++)
		assert_non_null(parts[i].data);
	code = evaluate(source, o, parts, l->n_args, &outs, &n_outs, err);
	for (size_t i = 0; i < all; i++)
		free(parts[i].data);
	free(parts);
	*far = 0;
	if (code)
		return code;
	assert_int_equal(n_outs, l->n_results);
	for (unsigned m = 0; m < l->partitions; m++)
		for (unsigned i = 0; i < n_outs; i++)
			*far = fmax(*far, compare(&l->result[i], m, &outs[m * n_outs + i],
						  &should[i]));
	tc_array_free(outs, l->partitions * n_outs);
	return 0;
}

/* Fails unless the members of a program that is a text give just what it gives on one device: of
 * whole numbers sums are exact. */
static inline void agree_exactly(spmd_evaluate *evaluate, const struct tc_source *source,
				 const struct tc_options *o, const struct tc_array *args,
				 size_t n_args)
{
	static struct lays l;
	struct tc_array *should;
	struct err err;
	double far;
	size_t n;

	l = (struct lays){ .partitions = o->partitions };
	if (tc_eval(source, args, n_args, &should, &n, &err) ||
	    tc_enter(source, o, &err, lay_find_all, &l) ||
	    run_parts(evaluate, source, o, &l, args, should, &far, &err))
		fail_msg("%s\n%.*s", err.msg, (int)source->bytes, (const char *)source->code);
	if (far > 0)
		fail_msg("%g bounds off\n%.*s", far, (int)source->bytes,
			 (const char *)source->code);
	tc_array_free(should, n);
}

/* ---- programs with references ---- */

struct program {
	char name[64], as[64], format[8];
	char *code;
	size_t bytes;
	unsigned partitions, n_args, n_results;
	struct tc_array array[2 * MOST];	/* arguments, results */
};

static struct program *programs;
static unsigned n_programs;

static inline void read_array(FILE *f, struct tc_array *a)
{
	char type[8], dims[64];

	assert_int_equal(fscanf(f, "%7s %zu %63s", type, &a->bytes, dims), 3);
	assert_int_equal(fgetc(f), '\n');
	a->data = malloc(a->bytes + 1);
	assert_non_null(a->data);
	assert_int_equal(fread(a->data, 1, a->bytes, f), a->bytes);
}

static inline void read_program(FILE *f, struct program *p)
{
	char word[16];
	int n_args, n_results;

	assert_int_equal(fscanf(f, "%63s %7s %u %zu %d %d", p->name, p->format,
				&p->partitions, &p->bytes, &n_args, &n_results), 6);
	assert_int_equal(fgetc(f), '\n');
	p->code = malloc(p->bytes);
	assert_non_null(p->code);
	assert_int_equal(fread(p->code, 1, p->bytes, f), p->bytes);
	if (n_args < 0) {
		assert_int_equal(fscanf(f, "%15s %63s", word, p->as), 2);
		return;
	}
	p->n_args = (unsigned)n_args;
	p->n_results = (unsigned)n_results;
	assert_true(p->n_args + p->n_results <= 2 * MOST);
	for (unsigned i = 0; i < p->n_args + p->n_results; i++) {
		assert_int_equal(fscanf(f, "%15s", word), 1);
		assert_string_equal(word, "array");
		read_array(f, &p->array[i]);
	}
}

static inline int load_programs(void **state)
{
	FILE *f = fopen(GANG, "rb");
	char word[16];

	(void)state;
	programs = calloc(512, sizeof(*programs));
	if (!f || !programs)
		return -1;
	while (fscanf(f, "%15s", word) == 1 && !strcmp(word, "program"))
		read_program(f, &programs[n_programs++]);
	fclose(f);
	return 0;
}

static inline int unload_programs(void **state)
{
	(void)state;
	for (unsigned i = 0; i < n_programs; i++) {
		for (unsigned k = 0; k < programs[i].n_args + programs[i].n_results; k++)
			free(programs[i].array[k].data);
		free(programs[i].code);
	}
	free(programs);
	return 0;
}

static inline const struct program *data_of(const struct program *p)
{
	for (unsigned i = 0; *p->as && i < n_programs; i++)
		if (!strcmp(programs[i].name, p->as))
			return &programs[i];
	return p;
}

/* bf16 that was kept as f32. */
static inline void settle_type(const struct lay *l, struct tc_array *a)
{
	int64_t n = 1;

	for (unsigned d = 0; d < l->rank; d++)
		n *= l->dim[d];
	if (l->elem == ELEM_BF16 && a->bytes == (size_t)n * 4) {
		uint16_t *to = a->data;

		for (int64_t i = 0; i < n; i++)
			to[i] = ((const uint16_t *)a->data)[2 * i + 1];
		a->bytes /= 2;
	}
	assert_int_equal(a->bytes, (size_t)n * elem_bytes(l->elem));
}

/* Whether all members give their parts of the reference; says why not. */
static inline bool agrees(struct program *p, const struct tc_options *like,
			  spmd_evaluate *evaluate)
{
	const struct tc_source source = { p->code, p->bytes, p->format };
	const struct program *data = data_of(p);
	struct tc_options o = *like;
	static struct lays l;
	struct err err = { 0 };
	double far;

	o.partitions = p->partitions;
	l = (struct lays){ .partitions = p->partitions };
	if (tc_enter(&source, &o, &err, lay_find_all, &l)) {
		print_message("%s: %s\n", p->name, err.msg);
		return false;
	}
	if (l.n_args != data->n_args || l.n_results != data->n_results) {
		print_message("%s: %u arguments and %u results, not %u and %u\n", p->name,
			      l.n_args, l.n_results, data->n_args, data->n_results);
		return false;
	}
	for (unsigned i = 0; i < l.n_args + l.n_results; i++)
		settle_type(i < l.n_args ? &l.arg[i] : &l.result[i - l.n_args],
			    (struct tc_array *)(uintptr_t)&data->array[i]);
	if (run_parts(evaluate, &source, &o, &l, data->array, data->array + l.n_args, &far,
		      &err)) {
		print_message("%s: %s\n", p->name, err.msg);
		return false;
	}
	if (far > 1)
		print_message("%s is %g bounds off\n", p->name, far);
	return far <= 1;
}

#endif
