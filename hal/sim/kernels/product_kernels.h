/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel of the matrix product (panel.h), compiled once for each type and instruction
 * set. The sums of some rows by 32 columns stay in registers for all of k; a unit
 * of a is spread over a register, one of b is there for each column.
 *
 * The includer defines NAME; SUM, the type of a sum; LANES, sums of a register; UNIT, a
 * type of a unit's size; MR, rows that the registers hold; and STEP(acc, a, b),
 * a register of sums after adding unit a times the units in register b. With LESS the kernel is
 * static and takes a number for each row, which goes off its sums.
 */
#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
#define VEC CAT(NAME, _vec)
#define PANEL CAT(NAME, _panel)
#define VECS (SIM_PRODUCT_LINE / LANES)
#define FETCH CAT(NAME, _fetch)

typedef SUM VEC __attribute__((vector_size(LANES * sizeof(SUM)), aligned(4), may_alias));

static inline void FETCH(const uint8_t *from, unsigned bytes)
{
	for (unsigned at = 0; at < bytes; at += 64)
		__builtin_prefetch(from + at, 0, 2);
}

static inline __attribute__((always_inline)) void
PANEL(const UNIT *a, const UNIT *b, SUM *sums, const struct sim_product_step *x, const SUM *before,
      const SUM *less, const unsigned mr, const unsigned vecs, unsigned cols)
{
	VEC acc[MR][VECS] = { 0 };
	SUM tail[SIM_PRODUCT_LINE];

	/* By the time that sums are added to they are there. Not in L1: rows may be a power of
	 * two apart, more of them than a set of it has ways. */
#pragma GCC unroll 16
	for (unsigned i = 0; before && i < mr; i++)
#pragma GCC unroll 16
		for (unsigned v = 0; v < vecs * LANES * sizeof(SUM) / 64; v++)
			__builtin_prefetch((const char *)(before + (size_t)i * x->before_ld) +
					   v * 64, 0, 2);
#pragma GCC unroll 16
	for (unsigned i = 0; less && i < mr; i++)
#pragma GCC unroll 16
		for (unsigned v = 0; v < vecs; v++)
			acc[i][v] -= less[i];
	for (unsigned k = 0; k < x->ku; k++, a++, b += SIM_PRODUCT_LINE) {
		VEC col[VECS];

#pragma GCC unroll 16
		for (unsigned v = 0; v < vecs; v++)
			col[v] = *(const VEC *)(b + v * LANES);
#pragma GCC unroll 16
		for (unsigned i = 0; i < mr; i++) {
			UNIT row = a[i * SIM_PRODUCT_PITCH];

#pragma GCC unroll 16
			for (unsigned v = 0; v < vecs; v++)
				acc[i][v] = STEP(acc[i][v], row, col[v]);
		}
	}
#pragma GCC unroll 16
	for (unsigned i = 0; i < mr; i++) {
		SUM *to = sums + (size_t)i * x->ld;
		const SUM *from = before + (size_t)i * x->before_ld;

		if (cols >= SIM_PRODUCT_LINE) {
#pragma GCC unroll 16
			for (unsigned v = 0; v < vecs; v++) {
				if (before)
					acc[i][v] += *(const VEC *)(from + v * LANES);
				*(VEC *)(to + v * LANES) = acc[i][v];
			}
			continue;
		}
#pragma GCC unroll 16
		for (unsigned v = 0; v < VECS; v++)
			*(VEC *)(tail + v * LANES) = acc[i][v];
		for (unsigned j = 0; j < cols; j++)
			to[j] = before ? from[j] + tail[j] : tail[j];
	}
}

#ifdef LESS
static void NAME(const struct sim_product_step *x, const SUM *less)
{
#else
void NAME(const struct sim_product_step *x)
{
	const SUM *const less = NULL;
#endif
	/* What is soon read is fetched by parts, one with each set of rows. */
	unsigned sets = (x->rows + MR - 1) / MR * ((x->cols + 31) / SIM_PRODUCT_LINE);
	unsigned part = sets ? (x->n_soon + sets - 1) / sets : 0, left = x->n_soon;
	const uint8_t *soon = x->soon;

	for (unsigned j = 0; j < x->cols; j += SIM_PRODUCT_LINE) {
		const UNIT *line = (const UNIT *)x->b + (size_t)j * x->ku;
		unsigned wide = x->cols - j, i = 0;

		/* Whole sets of rows, then what is left in fewer and fewer, but for 16 of them,
		 * which are eight twice: four cost as much. All columns, or half of them if
		 * that is enough. */
#define ROWS(n, vecs) \
		for (; MR >= (n) && i + (n) <= x->rows && \
		     ((n) != 12 || x->rows - i != 16); i += (n)) { \
			for (unsigned r = 0; r < part && left; r++, left--) { \
				FETCH(soon, x->soon_bytes); \
				soon += x->soon_pitch; \
			} \
			PANEL((const UNIT *)x->a + (size_t)i * SIM_PRODUCT_PITCH, line, \
			      (SUM *)x->sums + (size_t)i * x->ld + j, x, x->before ? \
			      (const SUM *)x->before + (size_t)i * x->before_ld + j : NULL, \
			      less ? less + i : NULL, (n), (vecs), wide); \
		}
		if (wide <= SIM_PRODUCT_LINE / 2)
			ROWS(MR, VECS / 2)
		ROWS(MR, VECS)
		ROWS(8, VECS)
		ROWS(4, VECS)
		ROWS(1, VECS)
#undef ROWS
	}
}

#undef FETCH
#undef VECS
#undef PANEL
#undef VEC
#undef CAT
#undef CAT_
#undef STEP
#undef MR
#undef UNIT
#undef LANES
#undef SUM
#undef LESS
#undef NAME
