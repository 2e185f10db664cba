/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hostile programs against the compiler, from bytes to image.
 *
 * Most random changes of MLIR bytecode break a section's length and go no deeper, so
 * the mutator knows the container: it changes numbers in place (an index of one byte
 * becomes another index), or lets a section grow and shrink and writes the container
 * around it again. What compiles must be an image that the reader takes, and the same
 * every time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/compiler/tc.h"
#include "tests/fuzz/compiled.h"
#include "tests/fuzz/seeds.h"

#define MAX_SECTIONS 16u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t max, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t n, size_t max);

/* ---- the container, as far as a mutator needs it ---- */

struct section {
	uint8_t id;
	size_t at, n;
};

static bool read_number(const uint8_t *data, size_t n, size_t *at, uint64_t *out)
{
	unsigned extra = *at < n ? data[*at] ? (unsigned)__builtin_ctz(data[*at]) : 8 : 9;
	uint64_t v = 0;

	if (extra > 8 || n - *at <= extra)
		return false;
	memcpy(&v, data + *at, extra < 8 ? extra + 1 : 8);
	if (extra == 8)
		memcpy(&v, data + *at + 1, 8);
	else
		v >>= extra + 1;
	*at += extra + 1;
	*out = v;
	return true;
}

/* The sections, and where the first begins; 0 if these are none. */
static unsigned read_container(const uint8_t *data, size_t n, size_t *start,
			       struct section *out)
{
	size_t at = 4;
	unsigned k = 0;
	uint64_t v;

	if (n < 6 || memcmp(data, "ML\xefR", 4) || !read_number(data, n, &at, &v))
		return 0;
	while (at < n && data[at])
		at++;
	*start = ++at;
	while (at < n && k < MAX_SECTIONS) {
		uint8_t id = data[at++];
		uint64_t align = 1;

		if (!read_number(data, n, &at, &v) ||
		    (id & 0x80 && !read_number(data, n, &at, &align)) || !align)
			return 0;
		at = (at + align - 1) / align * align;
		if (at > n || v > n - at)
			return 0;
		out[k++] = (struct section){ id & 0x7f, at, v };
		at += v;
	}
	return k;
}

/* Gives section `s` a new content by libFuzzer's own mutations. */
static size_t resize_section(uint8_t *data, size_t max, const struct section *all,
			     unsigned n_all, size_t start, unsigned which)
{
	static uint8_t content[1 << 16], whole[1 << 17];
	size_t at = start, n = all[which].n;

	if (n > sizeof(content) / 2 || max > sizeof(whole) / 2)
		return 0;
	memcpy(content, data + all[which].at, n);
	n = LLVMFuzzerMutate(content, n, n + 64);
	memcpy(whole, data, start);
	for (unsigned i = 0; i < n_all; i++) {
		size_t bytes = i == which ? n : all[i].n;
		uint64_t v = bytes;

		if (at + bytes + 10 > max)
			return 0;
		whole[at++] = all[i].id;
		whole[at++] = 0;
		memcpy(whole + at, &v, 8);
		at += 8;
		memcpy(whole + at, i == which ? content : data + all[i].at, bytes);
		at += bytes;
	}
	memcpy(data, whole, at);
	return at;
}

static void change_number(uint8_t *p, size_t n, uint64_t *state)
{
	size_t at = seeds_random(state) % n, from = seeds_random(state) % n;

	switch (seeds_random(state) % 8) {
	case 0: p[at] = (uint8_t)seeds_random(state); break;
	case 1: p[at] ^= (uint8_t)(1u << seeds_random(state) % 8); break;
	case 2: p[at] = p[from]; break;
	case 3: {
		size_t room = n - (at > from ? at : from), run = 1 + seeds_random(state) % 12;

		memmove(p + at, p + from, run < room ? run : room);
		break;
	}
	case 4: p[at] = (uint8_t)(seeds_random(state) % 24 * 2 + 1); break;
	default:	/* numbers of one byte are odd */
		p[at] = (uint8_t)(p[at] + (seeds_random(state) % 2 ? 2 : -2));
		break;
	}
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t max, unsigned seed)
{
	struct section s[MAX_SECTIONS];
	uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
	unsigned what = seeds_random(&state) % 16, n_sections, k, changes;
	size_t start, changed;

	n_sections = read_container(data, n, &start, s);
	if (!n_sections || what == 0)
		return LLVMFuzzerMutate(data, n, max);
	k = seeds_random(&state) % n_sections;
	if (what < 4) {
		changed = resize_section(data, max, s, n_sections, start, k);
		return changed ? changed : LLVMFuzzerMutate(data, n, max);
	}
	/* Strings matter least, code most. */
	for (unsigned i = 0; i < n_sections; i++)
		if (s[i].id == 4 && (what % 2 || s[k].id == 0))
			k = i;
	changes = 1 + seeds_random(&state) % 4;
	while (s[k].n && changes--)
		change_number(data + s[k].at, s[k].n, &state);
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct tc_options options = { .level = n % 4 != 3, .memory_limit = 64u << 20 };
	struct tc_source source = { data, n, "mlir" };
	struct err err;
	char *text;

	if (n % 8 == 5 && !tc_print(&source, &options, n % 16 > 8 ? "read" : "final", &text,
				    &err))
		free(text);
	compiles(&source, options);
	compiles_for_several(&source, options);
	return 0;
}
