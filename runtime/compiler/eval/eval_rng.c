/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random numbers of the reference evaluator: rng_bit_generator, and rng, numbers of a
 * distribution, by words from the run's own state.
 *
 * rng_bit_generator has XLA's words: Philox4x32-10 and
 * Threefry2x32-20 over a counter. The state is the key, then the counter, low half
 * first; the new state's counter is past the blocks that were used.
 *
 * PHILOX gives its words in row-major order. With two words of state, the counter's
 * high half is the key. THREE_FRY splits a dim of the result in halves of pairs: the
 * two words of a block lie next to each other along that dim, which is the first even
 * one, or else the first of the largest. A 64-bit number is two words, the low one
 * first; a number of less than 32 bits is the low bits of a word of its own.
 */
#include <math.h>
#include <string.h>

#include "runtime/compiler/eval/eval.h"

static void philox(uint64_t key, uint64_t low, uint64_t high, uint32_t *x)
{
	uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);

	x[0] = (uint32_t)low;
	x[1] = (uint32_t)(low >> 32);
	x[2] = (uint32_t)high;
	x[3] = (uint32_t)(high >> 32);
	for (int round = 0; round < 10; round++) {
		uint64_t a = (uint64_t)0xd2511f53 * x[0], b = (uint64_t)0xcd9e8d57 * x[2];

		x[0] = (uint32_t)(b >> 32) ^ x[1] ^ k0;
		x[1] = (uint32_t)b;
		x[2] = (uint32_t)(a >> 32) ^ x[3] ^ k1;
		x[3] = (uint32_t)a;
		k0 += 0x9e3779b9;
		k1 += 0xbb67ae85;
	}
}

static void threefry(uint64_t key, uint64_t counter, uint32_t *x)
{
	static const unsigned turn[8] = { 13, 15, 26, 6, 17, 29, 16, 24 };
	uint32_t k[3] = { (uint32_t)key, (uint32_t)(key >> 32), 0 };

	k[2] = k[0] ^ k[1] ^ 0x1bd11bda;
	x[0] = (uint32_t)counter + k[0];
	x[1] = (uint32_t)(counter >> 32) + k[1];
	for (unsigned round = 0; round < 20; round++) {
		unsigned by = turn[round % 8];

		x[0] += x[1];
		x[1] = (x[1] << by | x[1] >> (32 - by)) ^ x[0];
		if (round % 4 == 3) {
			unsigned n = round / 4 + 1;

			x[0] += k[n % 3];
			x[1] += k[(n + 1) % 3] + n;
		}
	}
}

/* Floats get the bits of an integer of their width. */
static void store_word(struct eval_array *out, int64_t i, uint64_t word)
{
	unsigned elem = out->type->elem;

	if (elem_class(elem) != ELEM_CLASS_FLOAT)
		tc_num_store(elem, tc_eval_at(out, i), (struct num){ .i = word });
	else if (elem_bits(elem) < 8)
		tc_num_store(ELEM_U4, tc_eval_at(out, i), (struct num){ .i = word });
	else	/* little endian */
		memcpy(tc_eval_at(out, i), &word, elem_bytes(elem));
}

/* The next n numbers of 32 or 64 bits. s: the state, `words` of it. */
static void next_philox(uint64_t *out, uint64_t n, bool is_wide, uint64_t *s, unsigned words)
{
	uint64_t each = is_wide ? 2 : 4;
	uint64_t blocks = n / each + (n % each != 0);
	uint64_t high = words == 3 ? s[2] : s[0];

	for (uint64_t b = 0; b < blocks; b++) {
		uint64_t low = s[1] + b;
		uint32_t x[4];

		philox(s[0], low, high + (low < b), x);
		for (uint64_t w = 0; w < each && b * each + w < n; w++)
			out[b * each + w] = is_wide ? x[2 * w] | (uint64_t)x[2 * w + 1] << 32 :
						      x[w];
	}
	s[1] += blocks;
	if (words == 3)
		s[2] += s[1] < blocks;
}

static void fill_philox(struct eval *e, struct eval_array *out, uint64_t *s, unsigned words)
{
	int64_t n = out->type->count;
	uint64_t *w = tc_eval_scratch(e, n, sizeof(*w));

	next_philox(w, (uint64_t)n, elem_bits(out->type->elem) == 64, s, words);
	for (int64_t i = 0; i < n; i++)
		store_word(out, i, w[i]);
	tc_eval_release(e, w);
}

/* The dim along which the words of a block lie; the rank: there is none. */
static unsigned split_dim(const struct tc_type *t)
{
	unsigned largest = 0;

	for (unsigned d = 0; d < t->rank; d++)
		if (t->dim[d] % 2 == 0)
			return d;
	for (unsigned d = 1; d < t->rank; d++)
		if (t->dim[d] > t->dim[largest])
			largest = d;
	return largest;
}

static void fill_threefry(struct eval_array *out, uint64_t *s)
{
	const struct tc_type *t = out->type;
	int64_t half[TC_MAX_RANK], idx[TC_MAX_RANK] = { 0 }, blocks;
	unsigned split = split_dim(t);
	uint32_t x[2];

	if (elem_bits(t->elem) == 64) {
		for (int64_t i = 0; i < t->count; i++) {
			threefry(s[0], s[1] + (uint64_t)i, x);
			store_word(out, i, x[0] | (uint64_t)x[1] << 32);
		}
		s[1] += (uint64_t)t->count;
		return;
	}
	memcpy(half, t->dim, t->rank * sizeof(*half));
	if (t->rank)
		half[split] -= half[split] / 2;
	blocks = t->count ? tc_eval_count(t->rank, half) : 0;
	for (int64_t b = 0; b < blocks; b++) {
		int64_t at[TC_MAX_RANK];

		threefry(s[0], s[1] + (uint64_t)b, x);
		memcpy(at, idx, sizeof(at));
		for (int64_t w = 0; w < (t->rank ? 2 : 1); w++) {
			if (t->rank)
				at[split] = 2 * idx[split] + w;
			if (!t->rank || at[split] < t->dim[split])
				store_word(out, tc_eval_linear(t, at), x[w]);
		}
		tc_eval_step(t->rank, half, idx);
	}
	s[1] += (uint64_t)blocks;
}

void tc_eval_rng_bits(struct eval *e, const struct tc_op *op)
{
	const struct eval_array *state = tc_eval_in(e, op, 0);
	struct eval_array *next = tc_eval_out(e, op, 0), *out = tc_eval_out(e, op, 1);
	bool is_threefry = tc_attr_int(op, "rng_algorithm", 0) == TC_RNG_THREE_FRY;
	unsigned words = (unsigned)(state->bytes / 8);
	uint64_t s[3];

	/* ir_verify.c has seen to 2 or 3 words */
	if (is_threefry && words != 2)
		tc_fail(e->c, ERR_UNIMPLEMENTED, op, "three_fry has a state of 2 words, "
			"not %u", words);
	memcpy(s, state->data, state->bytes);
	if (is_threefry)
		fill_threefry(out, s);
	else
		fill_philox(e, out, s, words);
	memcpy(next->data, s, next->bytes);
}

/* ---- from the run's own state ---- */

void tc_eval_draw(struct eval *e, const struct tc_op *op)
{
	fill_philox(e, tc_eval_out(e, op, 0), e->random, 3);
}

enum { UNIFORM = 1, NORMAL };

static double rounded(unsigned elem, double x)
{
	double room;

	tc_num_store(elem, &room, (struct num){ .re = x });
	return tc_num_load(elem, &room).re;
}

/* The fraction of a number in [1, 2) whose low bits are the word's high ones. */
static double unit(unsigned elem, uint64_t word)
{
	return elem == ELEM_F64 ? (double)(word >> 12) * 0x1p-52 : (double)(word >> 9) * 0x1p-23;
}

/* a: mean, b: deviation; each step is rounded as the device's. By Box and Muller. */
static double normal(unsigned t, double radius, double angle, double a, double b)
{
	double r = rounded(t, rounded(t, log(rounded(t, 1 - radius))) * -2);
	double turn = rounded(t, cos(rounded(t, angle * rounded(t, 6.283185307179586))));

	return rounded(t, rounded(t, rounded(t, sqrt(r)) * turn) * b) + a;
}

static void fill_floats(struct eval *e, struct eval_array *out, double a, double b,
			bool is_normal)
{
	unsigned t = out->type->elem == ELEM_F64 ? ELEM_F64 : ELEM_F32;
	int64_t n = out->type->count;
	uint64_t *w = tc_eval_scratch(e, n, sizeof(*w)), *v = tc_eval_scratch(e, n, sizeof(*v));
	double range = rounded(t, b - a);

	next_philox(w, (uint64_t)n, t == ELEM_F64, e->random, 3);
	if (is_normal)
		next_philox(v, (uint64_t)n, t == ELEM_F64, e->random, 3);
	for (int64_t i = 0; i < n; i++) {
		double x = is_normal ? normal(t, unit(t, w[i]), unit(t, v[i]), a, b) :
				       rounded(t, unit(t, w[i]) * range) + a;

		tc_num_store(out->type->elem, tc_eval_at(out, i),
			     (struct num){ .re = rounded(t, x) });
	}
	tc_eval_release(e, v);
	tc_eval_release(e, w);
}

static void fill_integers(struct eval *e, struct eval_array *out, uint64_t a, uint64_t b)
{
	bool is_wide = elem_bits(out->type->elem) > 32;
	int64_t n = out->type->count;
	uint64_t *w = tc_eval_scratch(e, n, sizeof(*w)), count = b - a;

	if (!is_wide)
		count = (uint32_t)count;
	next_philox(w, (uint64_t)n, is_wide, e->random, 3);
	for (int64_t i = 0; i < n; i++)
		store_word(out, i, (count ? w[i] % count : w[i]) + a);
	tc_eval_release(e, w);
}

void tc_eval_rng(struct eval *e, const struct tc_op *op)
{
	struct eval_array *out = tc_eval_out(e, op, 0);
	unsigned elem = out->type->elem, kind = elem_class(elem);
	struct num a = tc_num_load(elem, tc_eval_in(e, op, 0)->data);
	struct num b = tc_num_load(elem, tc_eval_in(e, op, 1)->data);
	bool is_normal = tc_attr_int(op, "rng_distribution", 0) == NORMAL;

	if (kind == ELEM_CLASS_FLOAT)
		fill_floats(e, out, a.re, b.re, is_normal);
	else if ((kind == ELEM_CLASS_SINT || kind == ELEM_CLASS_UINT) && !is_normal)
		fill_integers(e, out, a.i, b.i);
	else
		tc_eval_refuse(e, elem);
}
