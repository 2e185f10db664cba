/* SPDX-License-Identifier: Apache-2.0 */
/* The heap against a list of what is taken, kept by hand: places, sums, the largest gap,
 * and that a request is refused only if no gap holds it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hal/heap.h"

enum { UNIT = HAL_HEAP_UNIT, UNITS = 4096, MOST = 200 };

struct model {
	bool taken[UNITS];
	struct hal_block *held[MOST];
	unsigned n;
};

static uint64_t units_of(uint64_t bytes)
{
	return bytes ? (bytes + UNIT - 1) / UNIT : 1;
}

/* The longest run of free units, and how the highest one that holds `need` ends. */
static uint64_t largest_gap(const struct model *m, uint64_t need, uint64_t *end)
{
	uint64_t run = 0, most = 0;

	*end = 0;
	for (unsigned i = 0; i < UNITS; i++) {
		run = m->taken[i] ? 0 : run + 1;
		if (run > most)
			most = run;
		if (run >= need)
			*end = i + 1;
	}
	return most;
}

static void mark(struct model *m, const struct hal_block *b, bool taken)
{
	assert_int_equal(b->offset % UNIT, 0);
	assert_int_equal(b->bytes % UNIT, 0);
	assert_true(b->offset + b->bytes <= (uint64_t)UNITS * UNIT);
	for (uint64_t i = b->offset / UNIT; i < (b->offset + b->bytes) / UNIT; i++) {
		assert_int_equal(m->taken[i], !taken);
		m->taken[i] = taken;
	}
}

static void check(const struct hal_heap *h, const struct model *m)
{
	uint64_t end, sum = 0;

	assert_int_equal(hal_heap_largest(h), largest_gap(m, 1, &end) * UNIT);
	for (unsigned i = 0; i < UNITS; i++)
		sum += m->taken[i];
	assert_int_equal(hal_heap_in_use(h), sum * UNIT);
	assert_int_equal(hal_heap_blocks(h), m->n);
}

static void one_more(struct hal_heap *h, struct model *m, uint64_t bytes, bool high)
{
	uint64_t end, gap = largest_gap(m, units_of(bytes), &end);
	struct hal_block *b = high ? hal_heap_alloc_high(h, bytes, "x") :
				     hal_heap_alloc(h, bytes, "x");

	if (!b) {
		assert_true(gap < units_of(bytes));
		return;
	}
	assert_int_equal(b->bytes, units_of(bytes) * UNIT);
	if (high)
		assert_int_equal(b->offset + b->bytes, end * UNIT);
	mark(m, b, true);
	m->held[m->n++] = b;
}

static void one_less(struct hal_heap *h, struct model *m, unsigned i)
{
	mark(m, m->held[i], false);
	hal_heap_free(h, m->held[i]);
	m->held[i] = m->held[--m->n];
}

static void random_use_matches_a_list(void **state)
{
	/* Sizes on both sides of units, of classes' limits, and of everything. */
	static const uint64_t sizes[] = { 0, 1, 63, 64, 65, 15 * 64, 16 * 64, 16 * 64 + 1,
		17 * 64, 31 * 64, 32 * 64, 33 * 64, 34 * 64, 100 * 64, 1023 * 64, 4096 * 64 };
	struct hal_heap *h = hal_heap_create((uint64_t)UNITS * UNIT + 63);
	struct model *m = calloc(1, sizeof(*m));
	unsigned seed = 7;

	(void)state;
	assert_non_null(h);
	assert_non_null(m);
	for (int i = 0; i < 20000; i++) {
		unsigned what = (unsigned)rand_r(&seed) % 100;
		uint64_t bytes = what % 2 ? (uint64_t)rand_r(&seed) % 6000 :
				 sizes[(unsigned)rand_r(&seed) %
				       (sizeof(sizes) / sizeof(*sizes) - (what < 95))];

		if (m->n && (what >= 55 || m->n == MOST))
			one_less(h, m, (unsigned)rand_r(&seed) % m->n);
		else
			one_more(h, m, bytes, what < 15);
		if (i % 16 == 0)
			check(h, m);
	}
	while (m->n)
		one_less(h, m, 0);
	check(h, m);
	/* All of it, in one piece again. */
	one_more(h, m, (uint64_t)UNITS * UNIT, false);
	assert_int_equal(m->n, 1);
	check(h, m);
	one_more(h, m, 1, false);
	assert_int_equal(m->n, 1);
	free(m);
	hal_heap_destroy(h);
}

/* Which of the ranges `of` a block is in; they are of `units` each, with as much between them. */
static unsigned range_of(const struct hal_block *b, uint64_t units)
{
	uint64_t i = b->offset / UNIT / units;

	assert_int_equal(i % 2, 0);
	assert_true(b->offset + b->bytes <= (i + 1) * units * UNIT);
	return (unsigned)(i / 2);
}

/* Ranges come and go: no block is in two, and a range is told to be whole just when nothing is
 * in it. */
static void ranges_are_never_joined(void **state)
{
	enum { RANGES = 8, EACH = 64 };
	struct hal_heap *h = hal_heap_create(0);
	struct hal_block *held[MOST], *whole[RANGES] = { NULL }, *b;
	unsigned n = 0, in[RANGES] = { 0 }, seed = 11, n_whole = 0, r;
	bool there[RANGES] = { false };

	(void)state;
	assert_non_null(h);
	assert_null(hal_heap_alloc(h, 1, "x"));
	for (int i = 0; i < 20000; i++) {
		unsigned what = (unsigned)rand_r(&seed) % 100;

		r = (unsigned)rand_r(&seed) % RANGES;
		if (what < 10 && !there[r]) {
			whole[r] = hal_heap_add(h, (uint64_t)r * 2 * EACH * UNIT, EACH * UNIT);
			assert_non_null(whole[r]);
			there[r] = true;
		} else if (what < 15 && there[r] && whole[r]) {
			hal_heap_remove(h, whole[r]);
			whole[r] = NULL;
			there[r] = false;
		} else if (what < 60 && n < MOST) {
			uint64_t bytes = (uint64_t)(rand_r(&seed) % (EACH + 2)) * UNIT;

			b = what % 4 ? hal_heap_alloc(h, bytes, "x") :
				       hal_heap_alloc_high(h, bytes, "x");
			assert_true(!b || bytes <= EACH * UNIT);
			if (!b)
				continue;
			r = range_of(b, EACH);
			assert_true(there[r]);
			in[r]++;
			whole[r] = NULL;
			held[n++] = b;
		} else if (n) {
			unsigned k = (unsigned)rand_r(&seed) % n;

			r = range_of(held[k], EACH);
			b = hal_heap_free(h, held[k]);
			held[k] = held[--n];
			assert_int_equal(b != NULL, --in[r] == 0);
			whole[r] = b;
			n_whole += b != NULL;
			if (b)
				assert_int_equal(b->bytes, EACH * UNIT);
		}
	}
	assert_true(n_whole > 500);
	hal_heap_destroy(h);
}

/* What lets go of one result and asks for the next alternates between two places. */
static void the_last_freed_of_just_that_size_is_taken(void **state)
{
	struct hal_heap *h = hal_heap_create(1 << 20);
	struct hal_block *old = hal_heap_alloc(h, 1000 * UNIT, "x"), *b;
	uint64_t place[2];

	(void)state;
	place[0] = old->offset;
	b = hal_heap_alloc(h, 1000 * UNIT, "x");
	place[1] = b->offset;
	for (unsigned i = 0; i < 10; i++) {
		hal_heap_free(h, old);
		old = b;
		b = hal_heap_alloc(h, 1000 * UNIT, "x");
		assert_int_equal(b->offset, place[i % 2]);
	}
	hal_heap_destroy(h);
}

/* Where nothing is larger, one of the same class is found behind many that are too small. */
static void a_large_enough_block_is_found_behind_many(void **state)
{
	enum { SMALL = 32, LARGE = 33, N = 40 };
	struct hal_heap *h = hal_heap_create((LARGE + 1 + N * (SMALL + 1)) * UNIT);
	struct hal_block *small[N], *large = hal_heap_alloc(h, LARGE * UNIT, "x");

	(void)state;
	hal_heap_alloc(h, UNIT, "x");
	for (unsigned i = 0; i < N; i++) {
		small[i] = hal_heap_alloc(h, SMALL * UNIT, "x");
		assert_non_null(hal_heap_alloc(h, UNIT, "x"));
	}
	hal_heap_free(h, large);
	for (unsigned i = 0; i < N; i++)
		hal_heap_free(h, small[i]);
	large = hal_heap_alloc(h, LARGE * UNIT, "x");
	assert_non_null(large);
	assert_int_equal(large->bytes, LARGE * UNIT);
	hal_heap_destroy(h);
}

static void the_owners_of_most_are_named_first(void **state)
{
	struct hal_heap *h = hal_heap_create(1 << 20);
	struct str out = { 0 };
	struct hal_block *b;

	(void)state;
	hal_heap_alloc(h, 640, "small");
	hal_heap_alloc(h, 6400, "large");
	hal_heap_alloc(h, 3200, "twice");
	b = hal_heap_alloc_high(h, 64000, "gone");
	hal_heap_alloc(h, 3200, "twice");
	hal_heap_alloc(h, 64, NULL);
	hal_heap_free(h, b);
	hal_heap_owners(h, &out);
	assert_string_equal(out.text, "large 6400 bytes in 1, twice 6400 bytes in 2, small 640 "
			    "bytes in 1, (untagged) 64 bytes in 1");
	str_free(&out);
	/* More owners than are told apart. */
	for (int i = 0; i < 100; i++) {
		char tag[24];

		snprintf(tag, sizeof(tag), "owner%d", i);
		assert_non_null(hal_heap_alloc(h, 64, tag));
	}
	hal_heap_owners(h, &out);
	assert_non_null(strstr(out.text, "large 6400 bytes in 1, "));
	str_free(&out);
	hal_heap_destroy(h);
}

static void the_map_shows_what_is_where(void **state)
{
	enum { PART = 4096 };
	struct hal_heap *h = hal_heap_create(HAL_PAGE_CELLS * PART);
	struct hal_page_heap map;
	struct hal_block *b;

	(void)state;
	hal_heap_show(h, &map);
	assert_int_equal(map.bytes, HAL_PAGE_CELLS * PART);
	assert_int_equal(map.largest_free_bytes, map.bytes);
	assert_int_equal(map.n_holes, 1);
	assert_int_equal(map.n_owners + map.in_use + map.n_blocks, 0);
	/* Two parts and a half, a hole of one and a half, a byte in the last but one. */
	hal_heap_alloc(h, 2 * PART + PART / 2, "weights");
	b = hal_heap_alloc(h, PART + PART / 2, "gone");
	hal_heap_alloc(h, (HAL_PAGE_CELLS - 6) * PART, "batch");
	hal_heap_alloc(h, 1, "batch");
	hal_heap_free(h, b);
	hal_heap_show(h, &map);
	assert_int_equal(map.is_whole, 1);
	assert_int_equal(map.n_blocks, 3);
	assert_int_equal(map.n_holes, 2);
	assert_int_equal(map.in_use, hal_heap_in_use(h));
	assert_int_equal(map.largest_free_bytes, 2 * PART - 64);
	assert_int_equal(map.cells[0], 255);
	assert_int_equal(map.cells[1], 255);
	assert_in_range(map.cells[2], 126, 129);
	assert_int_equal(map.cells[3], 0);
	assert_int_equal(map.cells[4], 255);
	assert_int_equal(map.cells[HAL_PAGE_CELLS - 3], 255);
	assert_in_range(map.cells[HAL_PAGE_CELLS - 2], 1, 8);
	assert_int_equal(map.cells[HAL_PAGE_CELLS - 1], 0);
	assert_int_equal(map.n_owners, 2);
	assert_string_equal(map.owners[0].tag, "batch");
	assert_int_equal(map.owners[0].n_blocks, 2);
	assert_string_equal(map.owners[1].tag, "weights");
	assert_int_equal(map.owners[1].bytes, 2 * PART + PART / 2);
	hal_heap_destroy(h);
}

static void a_map_of_too_many_blocks_is_left_out(void **state)
{
	struct hal_heap *h = hal_heap_create((HAL_HEAP_SHOWN + 2) * 64);
	struct hal_page_heap map;

	(void)state;
	for (unsigned i = 0; i < HAL_HEAP_SHOWN; i++)
		hal_heap_alloc(h, 64, "each");
	hal_heap_show(h, &map);
	assert_int_equal(map.is_whole, 1);
	assert_int_equal(map.owners[0].n_blocks, HAL_HEAP_SHOWN);
	hal_heap_alloc(h, 64, "each");
	hal_heap_show(h, &map);
	assert_int_equal(map.is_whole, 0);
	assert_int_equal(map.n_blocks, HAL_HEAP_SHOWN + 1);
	assert_int_equal(map.largest_free_bytes, 64);
	assert_int_equal(map.n_owners + map.cells[0], 0);
	hal_heap_destroy(h);
}

static void an_empty_heap_refuses(void **state)
{
	struct hal_heap *h = hal_heap_create(63);

	(void)state;
	assert_non_null(h);
	assert_null(hal_heap_alloc(h, 1, "x"));
	assert_null(hal_heap_alloc_high(h, 1, "x"));
	assert_int_equal(hal_heap_largest(h), 0);
	hal_heap_show(h, &(struct hal_page_heap){ 0 });
	hal_heap_destroy(h);
	hal_heap_destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_use_matches_a_list),
		cmocka_unit_test(ranges_are_never_joined),
		cmocka_unit_test(the_last_freed_of_just_that_size_is_taken),
		cmocka_unit_test(a_large_enough_block_is_found_behind_many),
		cmocka_unit_test(the_owners_of_most_are_named_first),
		cmocka_unit_test(the_map_shows_what_is_where),
		cmocka_unit_test(a_map_of_too_many_blocks_is_left_out),
		cmocka_unit_test(an_empty_heap_refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
