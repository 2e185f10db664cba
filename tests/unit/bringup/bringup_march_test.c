/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of memory on memory that is bad: how many of the faults of each class (cell.def) each of
 * them finds, against what the literature says (march.def). Every fault is put there alone: each
 * kind, at each word of a small memory, and for pairs each two words, at several bits.
 */
#include "tests/unit/bringup/bringup_test.h"
#include "tools/bringup/march.h"

enum class { SAF, TF, CFIN, CFID, CFST, AF, N_CLASSES };
enum needs { ONE, TWO };

static const struct kind {
	const char *name;
	unsigned number, class, needs;
} kinds[] = {
#define CELL(name, number, class, needs, meaning) { #name, number, class, needs },
#include "hal/hw/cell.def"
#undef CELL
};

static const struct { const char *march; unsigned class, found, of; } covers[] = {
#define MARCH(...)
#define COVERS(name, class, found, of) { #name, class, found, of },
#include "tools/bringup/march.def"
#undef MARCH
#undef COVERS
};

static struct t_step t;
static struct hal_mem *all;	/* all of HBM: what its offsets are is known */
/* Two windows that are no neighbours. */
static struct bringup_window windows[2];
static const unsigned words[] = { 0, 1, 2, 3, 16, 17, 18, 19 };
static const unsigned bits[][2] = { { 0, 0 }, { 63, 17 } };

static int setup(void **state)
{
	struct hal_mem_stats s;

	(void)state;
	t_begin(&t, "sim:hbm=64M,lanes=1");
	assert_int_equal(bringup_need_device(&t.b), BRINGUP_PASS);
	hal_mem_stats(t.b.dev, HAL_MEM_HBM, &s);
	/* Programs take some: at the other end. */
	assert_int_equal(hal_mem_alloc(t.b.dev, HAL_MEM_HBM, s.largest_free_bytes / 2, "test", &all,
				       &t.b.err), 0);
	windows[0] = (struct bringup_window){ all, 0, 32 };
	windows[1] = (struct bringup_window){ all, 128, 32 };
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	hal_mem_free(all);
	t_end(&t);
	return 0;
}

static void inject(unsigned what, uint64_t value)
{
	if (hal_device_inject(t.b.dev, what, value, &t.b.err))
		fail_msg("%s", t.b.err.msg);
}

static void spoil(const struct kind *k, unsigned victim, unsigned by, unsigned pair)
{
	inject(HW_INJECT_CELL_BY, words[by] * 64 + bits[pair][1]);
	inject(HW_INJECT_CELL, (uint64_t)k->number << 56 | (words[victim] * 64 + bits[pair][0]));
}

static bool finds(const struct bringup_march *m)
{
	struct bringup_marched r;

	if (bringup_march(&t.b, m, windows, 2, &r))
		fail_msg("%s", t.b.err.msg);
	inject(HW_INJECT_MEND, 0);
	return r.n_bad;
}

/* Adds the faults of one kind, and those of them that are found. */
static void count(const struct bringup_march *m, const struct kind *k, unsigned found[N_CLASSES],
		  unsigned of[N_CLASSES])
{
	for (unsigned victim = 0; victim < COUNT(words); victim++)
		for (unsigned by = 0; by < (k->needs == TWO ? COUNT(words) : 1); by++)
			for (unsigned pair = 0; pair < (k->class == AF ? 1 : COUNT(bits)); pair++) {
				if (k->needs == TWO && victim == by)
					continue;
				spoil(k, victim, by, pair);
				of[k->class]++;
				found[k->class] += finds(m);
			}
}

static void coverage_is(const char *name)
{
	static const char *const names[] = { "SAF", "TF", "CFIN", "CFID", "CFST", "AF" };
	const struct bringup_march *m = bringup_find_march(name);
	unsigned found[N_CLASSES] = { 0 }, of[N_CLASSES] = { 0 }, n = 0;

	assert_non_null(m);
	assert_false(finds(m));
	for (unsigned i = 0; i < COUNT(kinds); i++)
		count(m, &kinds[i], found, of);
	for (unsigned i = 0; i < N_CLASSES; i++)
		print_message("%-8s %-4s %4u of %4u\n", name, names[i], found[i], of[i]);
	for (unsigned i = 0; i < COUNT(covers); i++) {
		unsigned c = covers[i].class;

		if (strcmp(covers[i].march, name))
			continue;
		n++;
		if (found[c] * covers[i].of != of[c] * covers[i].found)
			fail_msg("%s finds %u of %u faults of class %s, the literature says %u "
				 "of %u", name, found[c], of[c], names[c], covers[i].found,
				 covers[i].of);
	}
	assert_true(n);
}

static void march_c_finds_what_the_literature_says(void **state)
{
	(void)state;
	coverage_is("march_c");
}

static void march_b_finds_what_the_literature_says(void **state)
{
	(void)state;
	coverage_is("march_b");
}

/* A march of march C- without its downward half is known to miss couplings: so this counts. */
static void a_lesser_march_finds_less(void **state)
{
	const struct bringup_march lesser = { .name = "lesser", .elements =
		"*(w0) ^(r0,w1) ^(r1,w0) *(r0)" };
	unsigned found[N_CLASSES] = { 0 }, of[N_CLASSES] = { 0 };

	(void)state;
	for (unsigned i = 0; i < COUNT(kinds); i++)
		if (kinds[i].class == CFID || kinds[i].class == SAF)
			count(&lesser, &kinds[i], found, of);
	assert_int_equal(found[SAF], of[SAF]);
	assert_true(found[CFID] < of[CFID]);
	assert_true(found[CFID] > 0);
}

/* ---- what is told ---- */

static void a_bad_word_is_named(void **state)
{
	const struct bringup_march *m = bringup_find_march("march_c");
	struct bringup_marched r;

	(void)state;
	inject(HW_INJECT_CELL, (uint64_t)HW_CELL_STUCK_0 << 56 | (17 * 64 + 5));
	assert_int_equal(bringup_march(&t.b, m, windows, 2, &r), 0);
	inject(HW_INJECT_MEND, 0);
	/* It is read as 1 twice. */
	assert_int_equal(r.n_bad, 2);
	assert_int_equal(r.n_words, 2);
	assert_true(r.words[0].va == hal_mem_va(all) + 17 * 8);
	assert_true(r.words[0].want == UINT64_MAX);
	assert_true(r.words[0].got == ~(1ull << 5));
	assert_int_equal(r.words[0].element, 2);
	assert_int_equal(r.words[0].op, 0);
	assert_int_equal(r.n_ops, 10 * 8);
}

static void many_bad_words_are_counted_and_some_told(void **state)
{
	const struct bringup_march *m = bringup_find_march("march_c");
	struct bringup_window big = { all, 0, 4096 };
	struct bringup_marched r;

	(void)state;
	for (unsigned i = 0; i < 64; i++)
		inject(HW_INJECT_CELL, (uint64_t)HW_CELL_STUCK_1 << 56 | (i * 64 + 1));
	assert_int_equal(bringup_march(&t.b, m, &big, 1, &r), 0);
	inject(HW_INJECT_MEND, 0);
	assert_int_equal(r.n_bad, 3 * 64);
	assert_int_equal(r.n_words, 24);
}

/* ---- steps ---- */

static const struct {
	const char *name;
	enum bringup_result (*step)(struct bringup *b);
	unsigned classes;	/* those of which it finds every fault, here */
} steps[] = {
	{ "march_c", step_hbm_march_c, 1 << SAF | 1 << TF | 1 << AF | 1 << CFIN | 1 << CFID |
				       1 << CFST },
	{ "march_b", step_hbm_march_b, 1 << SAF | 1 << TF | 1 << AF | 1 << CFIN },
	{ "addresses", step_hbm_addresses, 1 << AF | 1 << SAF },
	{ "walking_bits", step_hbm_walking_bits, 1 << SAF },
	{ "inversions", step_hbm_inversions, 1 << SAF | 1 << TF },
	{ "random", step_hbm_random, 1 << SAF | 1 << AF },
};

/* Steps take the lowest free memory, which is HBM's first when all is given back. */
static void each_step_finds_the_faults_it_is_for(void **state)
{
	(void)state;
	hal_mem_free(all);
	all = NULL;
	t.options.hbm_bytes = 4096;
	for (unsigned i = 0; i < COUNT(steps); i++)
		for (unsigned k = 0; k < COUNT(kinds); k++) {
			enum bringup_result r;

			if (!(steps[i].classes & 1 << kinds[k].class))
				continue;
			spoil(&kinds[k], 5, 2, 1);
			r = t_step(&t, steps[i].step);
			inject(HW_INJECT_MEND, 0);
			if (r != BRINGUP_FAIL || !strstr(t.row.text, "reads were wrong"))
				fail_msg("%s does not find %s: %s", steps[i].name, kinds[k].name,
					 t.row.text);
		}
}

static void good_memory_passes_again_and_again(void **state)
{
	(void)state;
	t.options.hbm_bytes = 4096;
	for (unsigned i = 0; i < 100 * COUNT(steps); i++)
		if (t_step(&t, steps[i % COUNT(steps)].step) != BRINGUP_PASS)
			fail_msg("%s: %s", steps[i % COUNT(steps)].name, t.row.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(march_c_finds_what_the_literature_says),
		cmocka_unit_test(march_b_finds_what_the_literature_says),
		cmocka_unit_test(a_lesser_march_finds_less),
		cmocka_unit_test(a_bad_word_is_named),
		cmocka_unit_test(many_bad_words_are_counted_and_some_told),
		cmocka_unit_test(each_step_finds_the_faults_it_is_for),
		cmocka_unit_test(good_memory_passes_again_and_again),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
