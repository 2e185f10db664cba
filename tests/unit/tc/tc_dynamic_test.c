/* SPDX-License-Identifier: Apache-2.0 */
/* Programs with dims of bounded size (tests/data/dynamic), by the evaluator; what is refused. */
#include "hal/base/err.h"
#include "tests/unit/dynamic.h"

/* One run: results, then the sizes of those that have some. */
static void evaluates(const struct tc_source *source, const char *name, const struct image *im,
		      const struct dynamic_run *run)
{
	const struct image_shape *shapes = im->shapes + im->info.n_args;
	struct tc_array *out = NULL;
	struct err err = { 0 };
	size_t n = 0, at = run->n_out;

	if (tc_eval(source, run->in, run->n_in, &out, &n, &err))
		fail_msg("%s as %s: %s", name, source->format, err.msg);
	assert_int_equal(n, im->info.n_results);
	for (size_t i = 0; i < run->n_out; i++) {
		int64_t dim[32];

		memcpy(dim, out[i].dim, sizeof(dim));
		for (unsigned d = 0; shapes[i].bounded && d < out[i].rank; d++)
			dim[d] = ((const int32_t *)out[at].data)[d];
		at += shapes[i].bounded != 0;
		dynamic_same(name, i, dim, &out[i], &run->out[i]);
	}
	tc_array_free(out, n);
}

static void check(const struct torch_program *p, void *arg)
{
	const struct tc_source *forms[] = { &p->source, &p->mlir };
	unsigned *n_runs = arg;

	for (unsigned k = 0; k < 2; k++) {
		struct dynamic_run run;
		struct image *im;

		if (!forms[k]->code)
			continue;
		im = dynamic_image(forms[k], p->name);
		for (size_t i = 0; dynamic_run_of(p, im, i, &run); i++, (*n_runs)++)
			evaluates(forms[k], p->name, im, &run);
		image_free(im);
	}
}

static void programs_give_what_counts(void **state)
{
	unsigned n_runs = 0;

	(void)state;
	assert_int_equal(dynamic_each(check, &n_runs), DYNAMIC_COUNT);
	assert_true(n_runs > 4 * DYNAMIC_COUNT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(programs_give_what_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
