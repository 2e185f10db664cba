/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client that does some of everything, round after round, and says what bytes it saw:
 * the same in every round, for kill_test.py to end at any point.
 */
#include "tests/conformance/conf.h"

enum { BLOCKS = 12, BYTES = 300000 };

static void begin(struct conf *c, bool is_first)
{
	struct hal_mem_stats s;

	/* Nothing is left of a client before us, or of our round before. What others have who work
	 * beside us, and what a context that was ended had, is none of ours. */
	hal_mem_stats(c->dev, HAL_MEM_HBM, &s);
	EXPECT(c, !s.bytes_in_use && (!is_first || s.largest_free_bytes == s.limit_bytes));
}

static void compute(struct conf *c)
{
	static const char text[] = "module() {sym_name = \"busy\"} () {\n"
		"  func() {sym_name = \"main\"} (%0: tensor<64x96xi32>, %1: tensor<64x96xi32>) {\n"
		"    %2 = multiply(%0, %1) : tensor<64x96xi32>\n"
		"    %3 = xor(%2, %0) : tensor<64x96xi32>\n"
		"    %4 = transpose(%3) {permutation = [1, 0]} : tensor<96x64xi32>\n"
		"    return(%4, %2)\n  }\n}\n";
	size_t bytes[2] = { 64 * 96 * 4, 64 * 96 * 4 };
	uint8_t *a = conf_bytes(c, bytes[0], 70), *b = conf_bytes(c, bytes[1], 71);
	const void *args[2] = { a, b };

	conf_program(c, text, args, bytes, 2);
	free(a);
	free(b);
}

static void move(struct conf *c)
{
	struct hal_mem *m[BLOCKS], *host = conf_get_of(c, c->dev, HAL_MEM_HOST, BYTES);
	struct hal_after after = { c->dma, 0 };
	uint8_t *x = conf_bytes(c, BYTES, 72);
	uint64_t value = 0;

	for (int i = 0; i < BLOCKS; i++) {
		m[i] = conf_get(c, BYTES);
		OK(c, hal_queue_fill(c->dma, m[i], 0, BYTES, (uint64_t)i, &value, &c->err));
	}
	OK(c, hal_queue_wait(c->dma, value, SOON, &c->err));
	OK(c, hal_copy_in(m[0], 0, x, BYTES, SOON, &c->err));
	for (int i = 0; i < 100; i++) {
		struct hal_queue *q = i & 1 ? c->dma : c->compute;

		OK(c, hal_queue_copy(q, m[(i * 5 + 1) % BLOCKS], (uint64_t)i * 64,
				     m[i * 5 % BLOCKS], (uint64_t)i * 8, BYTES - 64 * 100,
				     &after, i ? 1 : 0, &value, &c->err));
		after = (struct hal_after){ q, value };
	}
	OK(c, hal_queue_copy(c->dma, host, 0, m[6], 0, BYTES, &after, 1, &value, &c->err));
	OK(c, hal_queue_wait(c->dma, value, SOON, &c->err));
	see(c, hal_mem_host(host), BYTES);
	for (int i = 0; i < BLOCKS; i++)
		hal_mem_free(m[i]);
	hal_mem_free(host);
	free(x);
}

static void misbehave(struct conf *c)
{
	struct hal_exe *stray = conf_load_stray(c), *spin = conf_load_spin(c);
	struct hal_mem *out = conf_get(c, 8);
	uint64_t value = conf_run(c, stray, out, 0);

	REFUSED(c, ERR_INVALID_ARGUMENT, "BOUNDS",
		hal_queue_wait(c->compute, value, SOON, &c->err));
	value = conf_run(c, spin, out, 2 * MS);
	REFUSED(c, ERR_DEADLINE_EXCEEDED, "WATCHDOG",
		hal_queue_wait(c->compute, value, SOON, &c->err));
	hal_exe_unload(stray);
	hal_exe_unload(spin);
	hal_mem_free(out);
}

int conf_busy(struct conf *c, unsigned long rounds)
{
	if (setjmp(c->end)) {
		fprintf(stderr, "conformance: %s\n", c->why);
		return 1;
	}
	for (unsigned long i = 0; !rounds || i < rounds; i++) {
		c->n_seen = 0;
		begin(c, !i);
		compute(c);
		move(c);
		misbehave(c);
		printf("round\t%lu\t%016llx\n", i, (unsigned long long)c->digest);
	}
	conf_close(c);
	return 0;
}
