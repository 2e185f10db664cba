/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of HBM: each is a row of march.def, over memory from both ends of what there is. */
#include <string.h>

#include "tools/bringup/march.h"

#define MOST_WINDOWS 4096u
#define WINDOW_BYTES ((uint64_t)256 << 10)	/* one launch works on */

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

/* Half of `bytes` at the lowest addresses that are free, half at the highest; all there is if that
 * is asked for. */
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
	bytes = (bytes / 2 + 63) & ~63ull;
	m = bringup_mem(b, HAL_MEM_HBM, bytes);
	NEED(b, m);
	*n = cut(m, w, *n);
	if (hal_mem_alloc_high(b->dev, bytes, "bring-up", &m, &b->err))
		return bringup_fail(b, "%s", b->err.msg);
	b->mems[b->n_mems++] = m;
	*n = cut(m, w, *n);
	return BRINGUP_PASS;
}

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
	uint64_t bits = 0;
	const char *element;
	int length;

	if (!r->n_bad)
		return bringup_pass(b, "%llu KiB at both ends of memory, %u windows, %llu loads "
				    "and stores", (unsigned long long)bytes >> 10, n,
				    (unsigned long long)r->n_ops);
	for (unsigned i = 0; i < r->n_words; i++)
		bits |= r->words[i].want ^ r->words[i].got;
	element = element_of(m, w->element, &length);
	return bringup_fail(b, "%llu reads were wrong, in bits 0x%llx of their words (of the first "
			    "%u); the first at address 0x%llx: 0x%llx instead of 0x%llx, in %.*s, "
			    "operation %u", (unsigned long long)r->n_bad, (unsigned long long)bits,
			    r->n_words, (unsigned long long)w->va, (unsigned long long)w->got,
			    (unsigned long long)w->want, length, element, w->op + 1);
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
