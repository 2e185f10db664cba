/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Philox4x32-10 and Threefry2x32-20, for one path: see path.h. LANES blocks go side by
 * side, so that each step of the ciphers is a loop which the compiler makes vectors of;
 * only the last round of stores puts words in their order.
 */
#include "hal/sim/kernels/path.h"
#include "hal/sim/kernels/rng.h"

enum { LANES = 32 };

/* One round on LANES blocks: both products at once, as 64-bit lanes. */
static inline __attribute__((always_inline)) void
philox_round(uint64_t (*x)[LANES], uint32_t k0, uint32_t k1)
{
	for (int i = 0; i < LANES; i++) {
		uint64_t p = (uint64_t)(uint32_t)x[0][i] * 0xd2511f53u;
		uint64_t q = (uint64_t)(uint32_t)x[2][i] * 0xcd9e8d57u;
		uint64_t b = x[1][i], d = x[3][i];

		/* only the low halves count from here on */
		x[0][i] = q >> 32 ^ b ^ k0;
		x[1][i] = q;
		x[2][i] = p >> 32 ^ d ^ k1;
		x[3][i] = p;
	}
}

static void PATH(philox)(const struct sim_rng_key *k, uint64_t first, size_t n,
			       uint32_t *out)
{
	uint64_t x[4][LANES], y[LANES][2];

	for (; n; out += 4 * LANES, first += LANES) {
		uint64_t lo = k->counter[0] + first;
		uint64_t hi = k->counter[1] + (lo < first);
		uint32_t k0 = (uint32_t)k->key, k1 = (uint32_t)(k->key >> 32);
		size_t m = n < LANES ? n : LANES;

		for (unsigned i = 0; i < LANES; i++) {
			uint64_t a = lo + i, b = hi + (a < lo);

			x[0][i] = a;
			x[1][i] = a >> 32;
			x[2][i] = b;
			x[3][i] = b >> 32;
		}
		for (int r = 0; r < 10; r++) {
			philox_round(x, k0, k1);
			k0 += 0x9e3779b9u;
			k1 += 0xbb67ae85u;
		}
		for (int i = 0; i < LANES; i++) {
			y[i][0] = (x[0][i] & UINT32_MAX) | x[1][i] << 32;
			y[i][1] = (x[2][i] & UINT32_MAX) | x[3][i] << 32;
		}
		__builtin_memcpy(out, y, m * sizeof(y[0]));
		n -= m;
	}
}

static inline __attribute__((always_inline)) void
threefry_rounds(uint32_t *x0, uint32_t *x1, const int *turn)
{
	for (int i = 0; i < LANES; i++) {
		uint32_t a = x0[i], b = x1[i];

		for (int r = 0; r < 4; r++) {
			a += b;
			b = b << turn[r] | b >> (32 - turn[r]);
			b ^= a;
		}
		x0[i] = a;
		x1[i] = b;
	}
}

static void PATH(threefry)(const struct sim_rng_key *k, uint64_t first, size_t n,
				 uint32_t *out)
{
	static const int even[4] = { 13, 15, 26, 6 }, odd[4] = { 17, 29, 16, 24 };
	uint32_t x0[LANES], x1[LANES], y[LANES][2], key[3];

	key[0] = (uint32_t)k->key;
	key[1] = (uint32_t)(k->key >> 32);
	key[2] = key[0] ^ key[1] ^ 0x1bd11bdau;
	for (; n; out += 2 * LANES, first += LANES) {
		size_t m = n < LANES ? n : LANES;

		for (unsigned i = 0; i < LANES; i++) {
			uint64_t c = k->counter[0] + first + i;

			x0[i] = (uint32_t)c + key[0];
			x1[i] = (uint32_t)(c >> 32) + key[1];
		}
		for (unsigned r = 0; r < 5; r++) {
			uint32_t k0 = key[(r + 1) % 3], k1 = key[(r + 2) % 3] + r + 1;

			if (r % 2)
				threefry_rounds(x0, x1, odd);
			else
				threefry_rounds(x0, x1, even);
			for (int i = 0; i < LANES; i++) {
				x0[i] += k0;
				x1[i] += k1;
			}
		}
		for (int i = 0; i < LANES; i++) {
			y[i][0] = x0[i];
			y[i][1] = x1[i];
		}
		__builtin_memcpy(out, y, m * sizeof(y[0]));
		n -= m;
	}
}

const struct sim_rng_fns PATH(sim_rng) = {
	PATH(philox), PATH(threefry),
};
