/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs of several replicas with several partitions each (tests/data/spmd/grid): collectives
 * in all four ways in which StableHLO names who meets, and arguments cut among each replica's
 * partitions. By a gang of evaluators, as they come, shared out and with collectives taken
 * apart, and on devices through the runtime: all give, to the bit, what numpy gave.
 *
 * TESSERA_GRID=text runs the programs whose names contain it.
 */
#include "tests/unit/rt/rt_members.h"

#define GRID "tests/data/spmd/grid/grid.bin"
#define COUNT 189u

struct program {
	char name[80];
	unsigned replicas, partitions, n_args, n_results;
	struct tc_source source;
	struct tc_array array[4];	/* arguments, then results; the member is the first dim */
};

/* ---- the file ---- */

static void read_array(FILE *f, struct tc_array *a)
{
	char dims[64], *at = dims;

	assert_int_equal(fscanf(f, " array %63[0-9x]", dims), 1);
	assert_int_equal(fgetc(f), '\n');
	*a = (struct tc_array){ .elem = ELEM_F32, .bytes = 4 };
	for (; *at; at += *at == 'x') {
		assert_true(a->rank < 4);
		a->dim[a->rank] = strtoll(at, &at, 10);
		a->bytes *= (size_t)a->dim[a->rank++];
	}
	a->data = malloc(a->bytes + 1);
	assert_non_null(a->data);
	assert_int_equal(fread(a->data, 1, a->bytes, f), a->bytes);
}

static bool read_program(FILE *f, struct program *p)
{
	void *code;

	if (fscanf(f, " program %79s %u %u %zu %u %u", p->name, &p->replicas, &p->partitions,
		   &p->source.bytes, &p->n_args, &p->n_results) != 6)
		return false;
	assert_int_equal(fgetc(f), '\n');
	assert_true(p->n_args + p->n_results <= 4);
	code = malloc(p->source.bytes);
	assert_non_null(code);
	assert_int_equal(fread(code, 1, p->source.bytes, f), p->source.bytes);
	p->source.code = code;
	p->source.format = "mlir";
	for (unsigned i = 0; i < p->n_args + p->n_results; i++)
		read_array(f, &p->array[i]);
	return true;
}

static void forget(struct program *p)
{
	for (unsigned i = 0; i < p->n_args + p->n_results; i++)
		free(p->array[i].data);
	free((void *)(uintptr_t)p->source.code);
}

/* ---- programs ---- */

static struct tc_array part_of(const struct tc_array *all, unsigned members, unsigned m)
{
	struct tc_array a = { .elem = all->elem, .rank = all->rank - 1,
			      .bytes = all->bytes / members };

	assert_int_equal(all->dim[0], members);
	memcpy(a.dim, all->dim + 1, a.rank * sizeof(*a.dim));
	a.data = (char *)all->data + m * a.bytes;
	return a;
}

typedef int evaluate_fn(const struct tc_source *source, const struct tc_options *o,
			const struct tc_array *args, size_t n_args, struct tc_array **outs,
			size_t *n_outs, struct err *err);

static void check(const struct program *p, const char *stage, evaluate_fn *evaluate)
{
	const struct tc_options o = { .level = 1, .verify = true, .evaluate_after = stage,
		.replicas = p->replicas, .partitions = p->partitions };
	const char *how = stage ? stage : evaluate == tc_eval_gang ? "reading" : "compiling";
	unsigned members = p->replicas * p->partitions;
	struct tc_array args[4 * N] = { { 0 } }, *outs;
	size_t n_outs;
	struct err err;

	for (unsigned m = 0; m < members; m++)
		for (unsigned i = 0; i < p->n_args; i++)
			args[m * p->n_args + i] = part_of(&p->array[i], members, m);
	if (evaluate(&p->source, &o, args, p->n_args, &outs, &n_outs, &err))
		fail_msg("%s of %ux%u after %s: %s", p->name, p->replicas, p->partitions, how,
			 err.msg);
	assert_int_equal(n_outs, p->n_results);
	for (unsigned m = 0; m < members; m++)
		for (unsigned i = 0; i < p->n_results; i++) {
			struct tc_array is = outs[m * n_outs + i];
			struct tc_array want = part_of(&p->array[p->n_args + i], members, m);

			if (is.elem != want.elem || is.bytes != want.bytes ||
			    memcmp(is.data, want.data, want.bytes))
				fail_msg("%s of %ux%u after %s: member %u has another result %u",
					 p->name, p->replicas, p->partitions, how, m, i);
		}
	tc_array_free(outs, members * n_outs);
}

static void each(void (*fn)(const struct program *p))
{
	const char *only = getenv("TESSERA_GRID");
	FILE *f = fopen(GRID, "rb");
	struct program p = { 0 };
	unsigned n = 0;

	assert_non_null(f);
	for (; read_program(f, &p); n++) {
		if (!only || strstr(p.name, only))
			fn(&p);
		forget(&p);
	}
	assert_true(feof(f));
	fclose(f);
	assert_int_equal(n, COUNT);
}

static void evaluate(const struct program *p)
{
	bool is_cut = !strncmp(p->name, "dot.", 4) || !strncmp(p->name, "manual.", 7);

	if (!is_cut)	/* a member by itself can't read a program of parts */
		check(p, NULL, tc_eval_gang);
	check(p, "shard", tc_eval_gang);
	check(p, "collectives", tc_eval_gang);
}

static void launch_it(const struct program *p)
{
	check(p, NULL, evaluate_on_devices);
}

static void grids_evaluate_as_numpy_says(void **state)
{
	(void)state;
	each(evaluate);
}

static void grids_run_as_numpy_says(void **state)
{
	(void)state;
	each(launch_it);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grids_evaluate_as_numpy_says),
		cmocka_unit_test(grids_run_as_numpy_says),
	};

	return cmocka_run_group_tests(tests, start_devices, stop_devices);
}
