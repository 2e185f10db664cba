/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of memory on memory that is bad: how many of the faults of each class (cell.def) each of
 * them finds, against what the literature says (march.def). Every fault is put there alone: each
 * kind, at each word of a small memory, and for pairs each two words, at several bits.
 */
#include "tests/unit/bringup/bringup_test.h"
#include "tools/bringup/march.h"

enum class { SAF, TF, CFIN, CFID, CFST, AF, ROW, N_CLASSES };
enum needs { ONE, TWO, NUMBER };

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
#define HAMMER(...)
#define COVERS(name, class, found, of) { #name, class, found, of },
#include "tools/bringup/march.def"
#undef MARCH
#undef HAMMER
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
	static const char *const names[] = { "SAF", "TF", "CFIN", "CFID", "CFST", "AF", "ROW" };
	const struct bringup_march *m = bringup_find_march(name);
	unsigned found[N_CLASSES] = { 0 }, of[N_CLASSES] = { 0 }, n = 0;

	assert_non_null(m);
	assert_false(finds(m));
	for (unsigned i = 0; i < COUNT(kinds); i++)
		if (kinds[i].class != ROW)
			count(m, &kinds[i], found, of);
	for (unsigned i = 0; i < ROW; i++)
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

/* ---- rows ---- */

#define STRIDE ((uint64_t)HW_HBM_ROW_BYTES * HW_HBM_BANKS)

/* A cell of this row and bank, faulty by so many activations. */
static void spoil_row(const struct kind *k, uint64_t most, unsigned row, unsigned bank)
{
	uint64_t byte = row * STRIDE + bank * HW_HBM_ROW_BYTES + 40 * bank;

	inject(HW_INJECT_CELL_BY, most);
	inject(HW_INJECT_CELL, (uint64_t)k->number << 56 | (byte * 8 + 3 * row));
}

static struct bringup_marched hammered;

/* Whether one pattern, or all of them, find what was spoilt. */
static bool hammer_finds(const struct bringup_hammer *only, uint64_t turns)
{
	bool found = false;

	for (unsigned i = 0; i < bringup_n_hammers && !found; i++) {
		if (only && only != &bringup_hammers[i])
			continue;
		if (bringup_hammer(&t.b, &bringup_hammers[i], all, turns, &hammered))
			fail_msg("%s", t.b.err.msg);
		found = hammered.n_bad;
	}
	return found;
}

/* A block of five rows of each bank, of which those but the first and the last have neighbours. */
static void with_rows(void (*then)(void))
{
	struct hal_mem *was = all;

	hal_mem_free(was);
	assert_int_equal(hal_mem_alloc(t.b.dev, HAL_MEM_HBM, 5 * STRIDE, "test", &all, &t.b.err),
			 0);
	assert_int_equal(hal_lent_offset(all), 0);
	then();
	hal_mem_free(all);
	assert_int_equal(hal_mem_alloc(t.b.dev, HAL_MEM_HBM, 32 << 20, "test", &all, &t.b.err), 0);
	windows[0].mem = windows[1].mem = all;
}

/* Few turns, so that many faults are tried; what counts is the sum of both rows'. */
#define FEW 20u

static void find_all_and_no_more(void)
{
	unsigned found = 0, of = 0;

	assert_false(hammer_finds(NULL, FEW));
	for (unsigned i = 0; i < COUNT(kinds); i++)
		for (unsigned row = 1; kinds[i].class == ROW && row < 4; row++)
			for (unsigned bank = 0; bank < HW_HBM_BANKS; bank++, of++) {
				spoil_row(&kinds[i], 2 * FEW, row, bank);
				found += hammer_finds(NULL, FEW);
				if (hammered.n_words && (hammered.words[0].element != row ||
							 hammered.words[0].op != bank))
					fail_msg("row %u, bank %u is told as row %u, bank %u", row,
						 bank, hammered.words[0].element,
						 hammered.words[0].op);
				inject(HW_INJECT_MEND, 0);
				/* What bears more is no fault that the test claims to find. */
				spoil_row(&kinds[i], 8 * FEW, row, bank);
				assert_false(hammer_finds(NULL, FEW));
				inject(HW_INJECT_MEND, 0);
			}
	print_message("hammer   ROW  %4u of %4u\n", found, of);
	assert_int_equal(found, of);
}

static void hammering_finds_each_cell_that_rows_disturb(void **state)
{
	(void)state;
	for (unsigned i = 0; i < COUNT(covers); i++)
		if (!strcmp(covers[i].march, "hammer"))
			assert_true(covers[i].class == ROW && covers[i].found == covers[i].of);
	with_rows(find_all_and_no_more);
}

/* No pattern finds all kinds: that there are several is no ornament. */
static void find_by_one(void)
{
	for (unsigned p = 0; p < bringup_n_hammers; p++) {
		unsigned found = 0;

		for (unsigned i = 0; i < COUNT(kinds); i++)
			for (unsigned row = 1; kinds[i].class == ROW && row < 3; row++) {
				spoil_row(&kinds[i], FEW, row, 0);
				found += hammer_finds(&bringup_hammers[p], FEW);
				inject(HW_INJECT_MEND, 0);
			}
		assert_in_range(found, 1, 7);
	}
}

static void one_pattern_does_not_find_all(void **state)
{
	(void)state;
	with_rows(find_by_one);
}

/* Each of these has one neighbour only. The first and the last row are not claimed. */
static void hammer_edges(void)
{
	for (unsigned row = 0; row < 5; row += 4) {
		spoil_row(&kinds[COUNT(kinds) - 4], FEW / 2, row, 3);
		assert_false(hammer_finds(NULL, FEW));
		inject(HW_INJECT_MEND, 0);
	}
	assert_non_null(bringup_mem(&t.b, HAL_MEM_HBM, 2 * STRIDE));
	assert_int_equal(bringup_hammer(&t.b, &bringup_hammers[0], t.b.mems[0], FEW, &hammered),
			 ERR_INVALID_ARGUMENT);
	assert_non_null(strstr(t.b.err.msg, "3 are the fewest"));
	bringup_give_back(&t.b);
}

static void rows_at_the_edge_are_not_claimed(void **state)
{
	(void)state;
	with_rows(hammer_edges);
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

			if (kinds[k].needs == NUMBER || !(steps[i].classes & 1 << kinds[k].class))
				continue;
			spoil(&kinds[k], 5, 2, 1);
			r = t_step(&t, steps[i].step);
			inject(HW_INJECT_MEND, 0);
			if (r != BRINGUP_FAIL || !strstr(t.row.text, "reads were wrong"))
				fail_msg("%s does not find %s: %s", steps[i].name, kinds[k].name,
					 t.row.text);
			/* The victim, or what it is coupled with. */
			assert_int_equal(t.row.memory.n_areas, 2);
			assert_true(t.row.memory.n_bad && t.row.memory.n_told);
			assert_true(t.row.memory.bad[0].offset == words[5] * 8 ||
				    t.row.memory.bad[0].offset == words[2] * 8);
		}
}

/* The lowest rows but the first, in the step's own numbers: the last activation that it claims. */
static void the_step_hammers_as_often_as_it_says(void **state)
{
	const struct bringup_map *map = &t.row.memory;

	(void)state;
	t.options.hbm_bytes = 4096;	/* it takes what it needs */
	for (unsigned i = 0; i < COUNT(kinds); i++) {
		if (kinds[i].class != ROW)
			continue;
		spoil_row(&kinds[i], 32768, 1, 5);
		assert_int_equal(t_step(&t, step_hbm_hammer), BRINGUP_FAIL);
		inject(HW_INJECT_MEND, 0);
		if (!strstr(t.row.text, "reads were wrong after 32768 activations") ||
		    !strstr(t.row.text, "in row 1 of bank 5, "))
			fail_msg("%s", t.row.text);
		assert_int_equal(map->n_told, map->n_bad);
		assert_int_equal(map->n_areas, 2);
		assert_int_equal(map->areas[0].offset, 0);
		assert_int_equal(map->bad[0].offset, STRIDE + 5 * HW_HBM_ROW_BYTES + 200);
		assert_int_equal(map->bad[0].want ^ map->bad[0].got, 1 << 3);
	}
	assert_int_equal(t_step(&t, step_hbm_hammer), BRINGUP_PASS);
	assert_int_equal(map->n_areas, 2);
	assert_int_equal(map->n_bad, 0);
	assert_int_equal(t.row.n_numbers, 1);
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
		cmocka_unit_test(hammering_finds_each_cell_that_rows_disturb),
		cmocka_unit_test(one_pattern_does_not_find_all),
		cmocka_unit_test(rows_at_the_edge_are_not_claimed),
		cmocka_unit_test(each_step_finds_the_faults_it_is_for),
		cmocka_unit_test(the_step_hammers_as_often_as_it_says),
		cmocka_unit_test(good_memory_passes_again_and_again),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
