/* SPDX-License-Identifier: Apache-2.0 */
/* RNG: the words of XLA's CPU backend, and the same ones on every path. */
#include "tests/unit/sim_insn.h"

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

static void words_match_xla(void **state)
{
	(void)state;
	in_each_path(known_words);
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
