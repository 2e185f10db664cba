/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of HBM: each is a row of march.def, over memory from both ends of what there is. */
#include <string.h>

#include "tools/bringup/march.h"

#define MOST_WINDOWS 4096u
#define WINDOW_BYTES ((uint64_t)256 << 10)	/* one launch works on */

/* ---- what the report says of it ---- */

static void map_area(struct bringup *b, const struct hal_mem *mem)
{
	struct bringup_map *map = &b->row->memory;

	if (map->n_areas == BRINGUP_AREAS)
		return;
	map->areas[map->n_areas].offset = hal_lent_offset(mem);
	map->areas[map->n_areas++].bytes = hal_mem_bytes(mem);
}

/* Any block of HBM tells where the others are. */
static void map_bad(struct bringup *b, const struct bringup_marched *r, const struct hal_mem *any)
{
	struct bringup_map *map = &b->row->memory;

	map->n_bad += r->n_bad;
	for (unsigned i = 0; i < r->n_words && map->n_told < BRINGUP_BAD; i++) {
		const struct bringup_bad_word *w = &r->words[i];

		map->bad[map->n_told].offset = w->va - hal_mem_va(any) + hal_lent_offset(any);
		map->bad[map->n_told].want = w->want;
		map->bad[map->n_told++].got = w->got;
	}
}

static uint64_t flipped(const struct bringup_marched *r)
{
	uint64_t bits = 0;

	for (unsigned i = 0; i < r->n_words; i++)
		bits |= r->words[i].want ^ r->words[i].got;
	return bits;
}

/* ---- what is tested ---- */

/* What a level tests unless it is said. Tests that go over a word oftener test fewer words. */
static uint64_t share(const struct bringup *b, uint64_t divisor)
{
	static const uint64_t by_level[] = { 1 << 20, 1 << 20, 1 << 20, 4 << 20, 32 << 20 };
	uint64_t bytes = b->options->hbm_bytes;

	if (!bytes)
		bytes = by_level[b->options->level] / divisor;
	return bytes;
}

/* Cuts a block into windows. */
static unsigned cut(struct hal_mem *m, struct bringup_window *w, unsigned n)
{
	uint64_t bytes = hal_mem_bytes(m), each = WINDOW_BYTES;

	while (bytes / each >= MOST_WINDOWS / 2)
		each *= 2;
	for (uint64_t at = 0; at < bytes && n < MOST_WINDOWS; at += each)
		w[n++] = (struct bringup_window){ m, at, bytes - at < each ? bytes - at : each };
	return n;
}

/* Half of `bytes` at the lowest addresses that are free, half at the highest, each rounded up to
 * 64; all there is if that is asked for. */
static enum bringup_result take(struct bringup *b, uint64_t bytes, struct bringup_window *w,
				unsigned *n)
{
	struct hal_mem_stats s;
	struct hal_mem *m;

	*n = 0;
	hal_mem_stats(b->dev, HAL_MEM_HBM, &s);
	/* A program's code takes some, too. */
	if (s.largest_free_bytes < (4 << 20))
		return bringup_fail(b, "%llu bytes of HBM are free, too few to test",
				    (unsigned long long)s.largest_free_bytes);
	if (bytes > s.largest_free_bytes - (2 << 20))
		bytes = s.largest_free_bytes - (2 << 20);
	bytes = (bytes + 127) / 128 * 64;
	m = bringup_mem(b, HAL_MEM_HBM, bytes);
	NEED(b, m);
	*n = cut(m, w, *n);
	map_area(b, m);
	if (hal_mem_alloc_high(b->dev, bytes, "bring-up", &m, &b->err))
		return bringup_fail(b, "%s", b->err.msg);
	b->mems[b->n_mems++] = m;
	*n = cut(m, w, *n);
	map_area(b, m);
	return BRINGUP_PASS;
}

/* ---- marches ---- */

static const char *element_of(const struct bringup_march *m, unsigned i, int *length)
{
	const char *p = m->elements;

	for (; i; i--) {
		p += strcspn(p, " ");
		p += strspn(p, " ");
	}
	*length = (int)strcspn(p, " ");
	return p;
}

static enum bringup_result report(struct bringup *b, const struct bringup_march *m,
				  const struct bringup_marched *r, uint64_t bytes, unsigned n)
{
	const struct bringup_bad_word *w = &r->words[0];
	const char *element;
	int length;

	if (!r->n_bad)
		return bringup_pass(b, "%llu KiB at both ends of memory, %u windows, %llu loads "
				    "and stores", (unsigned long long)bytes >> 10, n,
				    (unsigned long long)r->n_ops);
	element = element_of(m, w->element, &length);
	return bringup_fail(b, "%llu reads were wrong, in bits 0x%llx of their words (of the first "
			    "%u); the first at address 0x%llx: 0x%llx instead of 0x%llx, in %.*s, "
			    "operation %u", (unsigned long long)r->n_bad,
			    (unsigned long long)flipped(r), r->n_words, (unsigned long long)w->va,
			    (unsigned long long)w->got, (unsigned long long)w->want, length,
			    element, w->op + 1);
}

static enum bringup_result test(struct bringup *b, const char *name, uint64_t divisor)
{
	const struct bringup_march *m = bringup_find_march(name);
	struct bringup_marched *r;
	struct bringup_window *w;
	uint64_t bytes = 0;
	unsigned n;

	STEP_TRY(bringup_need_device(b));
	w = bringup_room(b, MOST_WINDOWS * sizeof(*w));
	NEED(b, w);
	r = bringup_room(b, sizeof(*r));
	NEED(b, r);
	STEP_TRY(take(b, share(b, divisor), w, &n));
	TRY(b, bringup_march(b, m, w, n, r));
	map_bad(b, r, w[0].mem);
	for (unsigned i = 0; i < n; i++)
		bytes += w[i].bytes;
	return report(b, m, r, bytes, n);
}

enum bringup_result step_hbm_march_c(struct bringup *b)
{
	return test(b, "march_c", 1);
}

enum bringup_result step_hbm_march_b(struct bringup *b)
{
	return test(b, "march_b", 2);
}

enum bringup_result step_hbm_addresses(struct bringup *b)
{
	return test(b, "addresses", 1);
}

/* 64 rounds, and seven. */
enum bringup_result step_hbm_walking_bits(struct bringup *b)
{
	return test(b, "walking_bits", 32);
}

enum bringup_result step_hbm_inversions(struct bringup *b)
{
	return test(b, "inversions", 4);
}

enum bringup_result step_hbm_random(struct bringup *b)
{
	return test(b, "random", 2);
}

/* ---- hammering ---- */

#define TURNS 16384u	/* of each of the two rows */
/* Fewest bytes to be tested: at both ends of memory 3 rows of each bank, however they lie. */
#define LEAST_ROWS ((uint64_t)8 * HW_HBM_ROW_BYTES * HW_HBM_BANKS)

static enum bringup_result hammer(struct bringup *b, const struct bringup_hammer *h,
				  struct hal_mem *mem, struct bringup_marched *r, uint64_t *n_ops)
{
	const struct bringup_bad_word *w = &r->words[0];

	TRY(b, bringup_hammer(b, h, mem, TURNS, r));
	map_bad(b, r, mem);
	*n_ops += r->n_ops;
	if (!r->n_bad)
		return BRINGUP_PASS;
	return bringup_fail(b, "%llu reads were wrong after %u activations of the rows beside, in "
			    "bits 0x%llx of their words (of the first %u), pattern %s; the first "
			    "in row %u of bank %u, at address 0x%llx: 0x%llx instead of 0x%llx",
			    (unsigned long long)r->n_bad, 2 * TURNS,
			    (unsigned long long)flipped(r), r->n_words, h->name, w->element, w->op,
			    (unsigned long long)w->va, (unsigned long long)w->got,
			    (unsigned long long)w->want);
}

enum bringup_result step_hbm_hammer(struct bringup *b)
{
	uint64_t bytes = share(b, 8), n_ops = 0;
	struct bringup_marched *r;
	struct bringup_window *w;
	int64_t begin;
	double rate;
	unsigned n;

	STEP_TRY(bringup_need_device(b));
	if (b->info.kind == HAL_KIND_ACCEL)
		return bringup_skip(b, "the kernel driver does not tell where in HBM memory is, so "
				    "which rows are neighbours is not known; VFIO would do");
	w = bringup_room(b, MOST_WINDOWS * sizeof(*w));
	NEED(b, w);
	r = bringup_room(b, sizeof(*r));
	NEED(b, r);
	STEP_TRY(take(b, bytes < LEAST_ROWS ? LEAST_ROWS : bytes, w, &n));
	begin = clock_ns();
	for (unsigned end = 0; end < 2; end++)
		for (unsigned i = 0; i < bringup_n_hammers; i++) {
			bringup_part(b, end * bringup_n_hammers + i, 2 * bringup_n_hammers);
			STEP_TRY(hammer(b, &bringup_hammers[i], end ? w[n - 1].mem : w[0].mem, r,
					&n_ops));
		}
	rate = (double)n_ops * 1e3 / (double)(clock_ns() - begin);
	STEP_TRY(bringup_number(b, "activations", "M/s", rate, 0, false));
	return bringup_pass(b, "%u patterns on the rows at both ends of memory, %llu activations, "
			    "%.0f in the 32 ms after which memory is refreshed", bringup_n_hammers,
			    (unsigned long long)n_ops, rate * 32e3);
}
