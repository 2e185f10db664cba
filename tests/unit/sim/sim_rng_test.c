/* SPDX-License-Identifier: Apache-2.0 */
/* RNG: the words of XLA's CPU backend, and the same ones on every path. */
#include "tests/unit/sim/sim_insn.h"

static const struct sim_family *const used __attribute__((used)) = &sim_family_rng;

/* Runs from `state`; the new state comes back in it. */
static int generate(struct vt *t, unsigned algorithm, uint64_t *state, unsigned n_state,
		    uint32_t *out, uint64_t n)
{
	struct isa_rng r = { .insn.op = ISA_RNG, .algorithm = (uint8_t)algorithm,
		.state_words = (uint8_t)n_state, .n_words = n,
		.state = { .elem = ELEM_U64 },
		.new_state = { .elem = ELEM_U64, .binding = 1 },
		.out = { .elem = ELEM_U32, .binding = 2 } };
	struct in_code code = { .n = 0 };
	uint64_t next[3] = { 0 };
	struct sim_run run;
	int status;

	in_put(&code, &r, sizeof(r));
	status = in_run(t, &code, (struct vt_mem[]){ { state, n_state * 8 },
			{ next, n_state * 8 }, { out, n * 4 } }, 3, &run);
	memcpy(state, next, n_state * 8);
	return status;
}

static uint64_t join(uint32_t lo, uint32_t hi)
{
	return lo | (uint64_t)hi << 32;
}

static void known_words(struct vt *t, const char *path)
{
	static const uint32_t philox[] = { 512747620, 1298009047, 1267190206, 761827841,
					   1383286907 };
	static const uint32_t threefry[] = { 1576285164, 2249660814u, 740599976,
					     2425682526u, 2436392515u };
	/* XLA:CPU, five 64-bit numbers */
	static const uint64_t wide[] = { 0x4d5e0bd71e8fe864, 0x2d6892014b87c9be,
		0x61c056965273487b, 0x806fd7efa4486574, 0xcf31be409a2c32b7 };
	/* ... and from a counter that wraps */
	static const uint32_t wrap[] = { 0x3427fc20, 0x9279b540, 0x38cb9485, 0x1ff5c099,
		0x409ecd8, 0xfd70ca4, 0xd41fbaa, 0x7a268988 };
	uint64_t s[3] = { join(1, 2), join(3, 4) };
	uint32_t out[16];

	(void)path;
	assert_int_equal(generate(t, ISA_RNG_PHILOX, s, 2, out, 5), 0);
	assert_memory_equal(out, philox, sizeof(philox));
	assert_true(s[0] == join(1, 2) && s[1] == join(5, 4));

	s[1] = join(3, 4);
	assert_int_equal(generate(t, ISA_RNG_PHILOX, s, 2, out, 10), 0);
	assert_memory_equal(out, wide, sizeof(wide));
	assert_true(s[1] == join(6, 4));

	s[1] = UINT64_MAX;
	assert_int_equal(generate(t, ISA_RNG_PHILOX, s, 2, out, 8), 0);
	assert_memory_equal(out, wrap, sizeof(wrap));
	assert_true(s[0] == join(1, 2) && s[1] == 1);

	s[1] = join(3, 4);
	assert_int_equal(generate(t, ISA_RNG_THREEFRY, s, 2, out, 5), 0);
	assert_memory_equal(out, threefry, sizeof(threefry));
	assert_true(s[0] == join(1, 2) && s[1] == join(6, 4));

	/* the published vector of Philox4x32-10: all zeros */
	memset(s, 0, sizeof(s));
	assert_int_equal(generate(t, ISA_RNG_PHILOX, s, 3, out, 4), 0);
	assert_int_equal(out[0], 0x6627e8d5);
	assert_int_equal(out[3], 0x9b00dbd8);
}

#define KEY 0x0123456789abcdef
#define LAST 9

/* Counters around every carry, by jaxlib's CPU backend: words asked for, the state before
 * and after, and the last words (at most LAST). */
static const struct {
	unsigned algorithm, state_words;
	uint64_t n, before[3], after[3];
	uint32_t last[LAST];
} carries[] = {
	{ ISA_RNG_PHILOX, 2, 9, { KEY, 0x0 }, { KEY, 0x3 },
	  { 0x67c9df60, 0xa930cbf3, 0x94191ebf, 0xc2852c94, 0xf54561ca,
	    0xaefd58c, 0x8e038e6b, 0xb630b8fe, 0x836597b2 } },
	{ ISA_RNG_PHILOX, 2, 9, { KEY, UINT64_MAX }, { KEY, 0x2 },
	  { 0x41eb59f3, 0x307385e0, 0x5b8b3389, 0xa262f67c, 0x7006d264,
	    0xd71fd4de, 0x3aff468e, 0x40b5f768, 0x34da5d11 } },
	{ ISA_RNG_PHILOX, 2, 4, { KEY, UINT64_MAX }, { KEY, 0x0 },
	  { 0x41eb59f3, 0x307385e0, 0x5b8b3389, 0xa262f67c } },
	{ ISA_RNG_PHILOX, 3, 9, { KEY, 0x0, 0x5 }, { KEY, 0x3, 0x5 },
	  { 0xb341ed12, 0x7899c9cc, 0x8d35f144, 0x68eba6fb, 0xd0460919,
	    0x520893a9, 0xcd7aeb5c, 0xa1bd1919, 0x644af2c9 } },
	{ ISA_RNG_PHILOX, 3, 9, { KEY, UINT64_MAX, 0x5 }, { KEY, 0x2, 0x6 },
	  { 0xf02791c6, 0xea2026ee, 0x4fe73934, 0xc174f57d, 0x15706cf1,
	    0x6ae9fc63, 0x7705da3a, 0xde25adea, 0x912a9f2d } },
	{ ISA_RNG_PHILOX, 3, 4, { KEY, UINT64_MAX, 0x5 }, { KEY, 0x0, 0x6 },
	  { 0xf02791c6, 0xea2026ee, 0x4fe73934, 0xc174f57d } },
	{ ISA_RNG_PHILOX, 3, 9, { KEY, UINT64_MAX, UINT64_MAX }, { KEY, 0x2, 0x0 },
	  { 0x2d8e471b, 0xf578e809, 0xf781a438, 0x6aaccdbf, 0xb850222e,
	    0xc58cb04b, 0x14a7a020, 0x7a84fff9, 0xadca1466 } },
	{ ISA_RNG_PHILOX, 3, 4, { KEY, UINT64_MAX, UINT64_MAX }, { KEY, 0x0, 0x0 },
	  { 0x2d8e471b, 0xf578e809, 0xf781a438, 0x6aaccdbf } },
	{ ISA_RNG_PHILOX, 2, 9, { UINT64_MAX, UINT64_MAX }, { UINT64_MAX, 0x2 },
	  { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd, 0x72a47709,
	    0x15474739, 0x9f41b01f, 0x22799a5a, 0x19fed511 } },
	{ ISA_RNG_PHILOX, 2, 4, { UINT64_MAX, UINT64_MAX }, { UINT64_MAX, 0x0 },
	  { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
	{ ISA_RNG_PHILOX, 2, 9, { KEY, 0xffffffff }, { KEY, 0x100000002 },
	  { 0x79ef866, 0x2fd56ce8, 0x44251d89, 0x29da5799, 0xc2d793d8,
	    0xb0e2b88c, 0xed4711a, 0xac0b092e, 0x9f2d9eef } },
	{ ISA_RNG_PHILOX, 2, 140, { KEY, 0xffffffffffffffe0 }, { KEY, 0x3 },
	  { 0x40b5f768, 0x34da5d11, 0xa2a4e857, 0xfc81d5f9, 0x7885cd87,
	    0xdf0b0a26, 0x54a91f33, 0x4b4f3fac, 0x17062910 } },
	{ ISA_RNG_THREEFRY, 2, 9, { KEY, 0x0 }, { KEY, 0x5 },
	  { 0xaaa4d889, 0x6b35c4f4, 0x75a52907, 0xd3dd8613, 0x35d0e5f1,
	    0x8ed17fe4, 0x7c2f19d8, 0x284dbe3, 0xde79bbbd } },
	{ ISA_RNG_THREEFRY, 2, 9, { KEY, UINT64_MAX }, { KEY, 0x4 },
	  { 0xb3d7494, 0xacf8c4dc, 0xaaa4d889, 0x6b35c4f4, 0x75a52907,
	    0xd3dd8613, 0x35d0e5f1, 0x8ed17fe4, 0x7c2f19d8 } },
	{ ISA_RNG_THREEFRY, 2, 4, { KEY, UINT64_MAX }, { KEY, 0x1 },
	  { 0xb3d7494, 0xacf8c4dc, 0xaaa4d889, 0x6b35c4f4 } },
	{ ISA_RNG_THREEFRY, 2, 9, { UINT64_MAX, UINT64_MAX }, { UINT64_MAX, 0x4 },
	  { 0x1cb996fc, 0xbb002be7, 0x413979c4, 0x4e58fb3f, 0x9feae161,
	    0xf48aea97, 0x23fbff6e, 0x865fe3e7, 0x51566698 } },
	{ ISA_RNG_THREEFRY, 2, 4, { UINT64_MAX, UINT64_MAX }, { UINT64_MAX, 0x1 },
	  { 0x1cb996fc, 0xbb002be7, 0x413979c4, 0x4e58fb3f } },
	{ ISA_RNG_THREEFRY, 2, 9, { KEY, 0xffffffff }, { KEY, 0x100000004 },
	  { 0xaf0500d, 0xae583773, 0xba3918c0, 0x525310a8, 0xcab60d48,
	    0x8b6ec1c2, 0xe74f725f, 0xb4d15007, 0x3487f584 } },
	{ ISA_RNG_THREEFRY, 2, 140, { KEY, 0xffffffffffffffe0 }, { KEY, 0x26 },
	  { 0x8cdbdbe3, 0xdff3e84, 0x9f955bd0, 0xa0e328ee, 0x21ca25be,
	    0x676b35e0, 0xf735b246, 0x6ce48b71, 0xe0d2f82e } },
};

static void carry(struct vt *t, const char *path)
{
	(void)path;
	for (unsigned i = 0; i < sizeof(carries) / sizeof(*carries); i++) {
		uint64_t s[3], n = carries[i].n, last = n < LAST ? n : LAST;
		uint32_t out[256];

		memcpy(s, carries[i].before, sizeof(s));
		assert_int_equal(generate(t, carries[i].algorithm, s, carries[i].state_words,
					  out, n), 0);
		assert_memory_equal(s, carries[i].after, carries[i].state_words * 8);
		assert_memory_equal(out + n - last, carries[i].last, last * 4);
	}
}

static void words_match_xla(void **state)
{
	(void)state;
	in_each_path(known_words);
	in_each_path(carry);
}

static uint32_t *reference;

static void long_run(struct vt *t, const char *path)
{
	enum { N = 300001 };

	for (unsigned a = ISA_RNG_PHILOX; a <= ISA_RNG_THREEFRY; a++) {
		uint64_t s[3] = { 77, UINT64_MAX - 1000, UINT64_MAX };
		uint32_t *out = malloc(2 * N * sizeof(*out));
		uint32_t *ref = reference + a * N;
		unsigned words = a == ISA_RNG_PHILOX ? 3 : 2;

		assert_int_equal(generate(t, a, s, words, out, N), 0);
		if (!strcmp(path, "portable"))
			memcpy(ref, out, N * sizeof(*out));
		assert_memory_equal(out, ref, N * sizeof(*out));
		/* the same in two halves: the state carries on */
		s[1] = UINT64_MAX - 1000;
		s[2] = UINT64_MAX;
		assert_int_equal(generate(t, a, s, words, out, 5000), 0);
		assert_int_equal(generate(t, a, s, words, out + 5000, 3001), 0);
		assert_memory_equal(out, ref, 8001 * sizeof(*out));
		free(out);
	}
}

static void paths_and_parts_agree(void **state)
{
	(void)state;
	reference = malloc(2 * 300001 * sizeof(*reference));
	in_each_path(long_run);
	free(reference);
}

static void malformed_are_refused(void **state)
{
	uint64_t s[3] = { 1, 2, 3 };
	uint32_t out[8];
	struct vt t;

	(void)state;
	assert_true(vt_open(&t, "portable", 1));
	assert_int_equal(generate(&t, 2, s, 2, out, 4), HW_ST_BAD_PROGRAM);
	assert_int_equal(generate(&t, ISA_RNG_PHILOX, s, 1, out, 4), HW_ST_BAD_PROGRAM);
	assert_int_equal(generate(&t, ISA_RNG_THREEFRY, s, 3, out, 4), HW_ST_BAD_PROGRAM);
	assert_int_equal(generate(&t, ISA_RNG_PHILOX, s, 2, out, UINT64_MAX),
			 HW_ST_BAD_PROGRAM);
	assert_int_equal(generate(&t, ISA_RNG_PHILOX, s, 2, out, 0), 0);
	vt_close(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_match_xla),
		cmocka_unit_test(paths_and_parts_agree),
		cmocka_unit_test(malformed_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
