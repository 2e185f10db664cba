/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs of four replicas as torch_xla sends them (tests/data/torch), by a gang of
 * evaluators: as they come, and with their collectives taken apart. XLA's CPU backend says
 * what is right: of integers the same, of floats within a few units in the last place of
 * their array's largest, since it adds up in another order. And small programs with each of
 * the forms in which bytecode says who meets.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/torch.h"

#define UNITS 64	/* of f32, of the largest of an array */

static double number(unsigned elem, const void *p)
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
static double noise(const struct torch_program *p, size_t result)
{
	return !strcmp(p->name, "repl__dp_convnet.1") && result == 11 ? 1e-6 : 0;
}

/* Whether what the members gave as one result is `want`, which has them all. */
static bool is_near(const struct tc_array *outs, size_t n_outs, const struct tc_array *want,
		    double apart)
{
	unsigned each = elem_bytes(want->elem);
	size_t part = want->bytes / TORCH_REPLICAS, n = want->bytes / each;
	double most = 0, unit = want->elem == ELEM_BF16 ? 0x1p-8 : UNITS * 0x1p-24;
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
		most = fmax(most, fabs(number(want->elem, w + i * each)));
	for (size_t i = 0; i < n; i++) {
		const char *got = (char *)outs[i * each / part * n_outs].data + i * each % part;

		if (!(fabs(number(want->elem, got) - number(want->elem, w + i * each)) <=
		      fmax(unit * most, apart)))
			return false;
	}
	return true;
}

/* Each member's part of the arguments. */
static struct tc_array *share_out(const struct torch_program *p)
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

static void try(const struct torch_program *p, void *arg)
{
	struct tc_array *args = share_out(p), *outs;
	struct err err;
	size_t n;

	for (unsigned s = 0; s < 2; s++) {
		struct tc_options o = { .level = 1, .replicas = TORCH_REPLICAS, .verify = true,
					.evaluate_after = s ? "collectives" : "host" };

		if (tc_eval_gang(&p->source, &o, args, p->n_in, &outs, &n, &err))
			fail_msg("%s after %s: %s", p->name, o.evaluate_after, err.msg);
		assert_int_equal(n, p->n_out);
		for (size_t i = 0; !p->is_random && i < n; i++)
			if (!is_near(outs + i, n, &p->out[i], noise(p, i)))
				fail_msg("%s after %s: result %zu is wrong", p->name,
					 o.evaluate_after, i);
		tc_array_free(outs, TORCH_REPLICAS * n);
	}
	free(args);
	++*(unsigned *)arg;
}

static void replicas_of_torch_give_what_xla_gives(void **state)
{
	unsigned n = 0;
	int found = torch_each_in(TORCH_REPLICATED, getenv("TESSERA_TORCH"), try, &n);

	(void)state;
	assert_int_equal(found, n);
	if (!getenv("TESSERA_TORCH"))
		assert_int_equal(n, TORCH_REPLICATED_COUNT);
}

/* ---- the forms in which StableHLO says who meets ---- */

/* Member m brings m + 1, and ten, hundred and thousand times as much. */
static const struct form {
	const char *name;
	unsigned replicas, partitions;
	float out[8];		/* the first element */
} forms[] = {
	{ "axis_part", 1, 8, { 4, 6, 4, 6, 12, 14, 12, 14 } },
	{ "axes_two", 1, 8, { 1, 1, 1, 1, 1, 1, 1, 1 } },
	{ "axes_ids", 1, 4, { 5, 5, 5, 5 } },
	{ "axes_named", 1, 8, { 10, 10, 10, 10, 26, 26, 26, 26 } },
	{ "cross_replica_sum", 2, 1, { 3, 3 } },
	{ "cross_replica_sum", 2, 2, { 4, 6, 4, 6 } },
	{ "broadcast", 2, 1, { 2, 2 } },
	{ "to_all_old", 2, 1, { 200, 2 } },
	{ "reduce_all", 3, 2, { 9, 12, 9, 12, 9, 12 } },
	{ "reduce_all", 1, 1, { 1 } },
};

static void evaluate_form(const struct form *f)
{
	struct tc_source s = { .format = "mlir" };
	struct tc_array args[8], *outs;
	unsigned members = f->replicas * f->partitions;
	float in[8][4];
	char path[128];
	struct err err;
	size_t n;

	snprintf(path, sizeof(path), "tests/data/spmd/groups/%s.mlirbc", f->name);
	s.code = torch_read_file(path, &s.bytes);
	assert_non_null(s.code);
	for (unsigned m = 0; m < members; m++) {
		for (unsigned i = 0; i < 4; i++)
			in[m][i] = (float)(m + 1) * (i > 2 ? 1000 : i > 1 ? 100 : i ? 10 : 1);
		args[m] = (struct tc_array){ .elem = ELEM_F32, .rank = 1, .dim = { 4 },
					     .data = in[m], .bytes = 16 };
	}
	for (unsigned k = 0; k < 2; k++) {
		struct tc_options o = { .replicas = f->replicas, .partitions = f->partitions,
					.level = 1, .evaluate_after = k ? "collectives" : NULL };

		if (tc_eval_gang(&s, &o, args, 1, &outs, &n, &err))
			fail_msg("%s: %s", f->name, err.msg);
		for (unsigned m = 0; m < members; m++)
			if (memcmp(outs[m].data, &f->out[m], 4))
				fail_msg("%s: %g at member %u of %u", f->name,
					 (double)*(float *)outs[m].data, m, members);
		/* y is the major axis of the groups, x of the mesh. */
		for (unsigned i = 0; !strcmp(f->name, "axes_two") && i < 8; i++)
			assert_int_equal(((float *)outs[0].data)[4 * i], 1 + i / 2 + i % 2 * 4);
		tc_array_free(outs, members);
	}
	free((void *)(uintptr_t)s.code);
}

static void groups_are_read_in_every_form(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++)
		evaluate_form(&forms[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replicas_of_torch_give_what_xla_gives),
		cmocka_unit_test(groups_are_read_in_every_form),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
