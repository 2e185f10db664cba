/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel of the product of complex matrices (panel.h), compiled once for each type and
 * instruction set. Columns stay as they lie, parts alternating: one register sums
 * re(a) * b, one im(a) * b, and only at the end the second is turned and joined to the first.
 *
 * The includer defines NAME; SUM, the type of a part; WORD, an integer of its size; LANES,
 * parts of a register; TURNED, as many numbers 1, 0, 3, 2, ...; MR and VECS, the rows and the
 * registers of columns that are summed at a time.
 */
#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
#define VEC CAT(NAME, _vec)
#define WORDS CAT(NAME, _words)
#define PANEL CAT(NAME, _panel)
#define WIDE (VECS * LANES / 2)		/* columns */

typedef SUM VEC __attribute__((vector_size(LANES * sizeof(SUM)), aligned(4), may_alias));
typedef WORD WORDS __attribute__((vector_size(LANES * sizeof(SUM))));

static inline __attribute__((always_inline)) void
PANEL(const SUM *a, const SUM *b, SUM *sums, const struct sim_product_step *x, const SUM *before,
      const unsigned mr, unsigned cols)
{
	VEC acc[MR][VECS] = { 0 }, turned[MR][VECS] = { 0 }, sign;
	SUM tail[WIDE * 2];

	for (unsigned k = 0; k < x->ku; k++, a += 2, b += 2 * SIM_PRODUCT_LINE) {
		VEC col[VECS];

#pragma GCC unroll 16
		for (unsigned v = 0; v < VECS; v++)
			col[v] = *(const VEC *)(b + v * LANES);
#pragma GCC unroll 16
		for (unsigned i = 0; i < mr; i++) {
			SUM re = a[i * SIM_PRODUCT_PITCH * 2];
			SUM im = a[i * SIM_PRODUCT_PITCH * 2 + 1];

#pragma GCC unroll 16
			for (unsigned v = 0; v < VECS; v++) {
				acc[i][v] += re * col[v];
				turned[i][v] += im * col[v];
			}
		}
	}
	for (unsigned i = 0; i < LANES; i++)
		sign[i] = i % 2 ? 1 : -1;
#pragma GCC unroll 16
	for (unsigned i = 0; i < mr; i++) {
		SUM *to = sums + (size_t)i * x->ld * 2;
		const SUM *from = before + (size_t)i * x->before_ld * 2;

#pragma GCC unroll 16
		for (unsigned v = 0; v < VECS; v++) {
			acc[i][v] += sign * __builtin_shuffle(turned[i][v], (WORDS){ TURNED });
			if (cols < WIDE) {
				*(VEC *)(tail + v * LANES) = acc[i][v];
				continue;
			}
			if (before)
				acc[i][v] += *(const VEC *)(from + v * LANES);
			*(VEC *)(to + v * LANES) = acc[i][v];
		}
		for (unsigned j = 0; cols < WIDE && j < 2 * cols; j++)
			to[j] = before ? from[j] + tail[j] : tail[j];
	}
}

void NAME(const struct sim_product_step *x)
{
	for (unsigned j = 0; j < x->cols; j += WIDE) {
		const SUM *line = (const SUM *)x->b +
				  2 * ((size_t)(j - j % SIM_PRODUCT_LINE) * x->ku +
				       j % SIM_PRODUCT_LINE);
		unsigned i = 0;

#define ROWS(n) \
		for (; i + (n) <= x->rows; i += (n)) \
			PANEL((const SUM *)x->a + (size_t)i * SIM_PRODUCT_PITCH * 2, line, \
			      (SUM *)x->sums + ((size_t)i * x->ld + j) * 2, x, x->before ? \
			      (const SUM *)x->before + ((size_t)i * x->before_ld + j) * 2 : NULL, \
			      (n), x->cols - j)
		ROWS(MR);
		ROWS(1);
#undef ROWS
	}
}

#undef WIDE
#undef PANEL
#undef WORDS
#undef VEC
#undef CAT
#undef CAT_
#undef TURNED
#undef VECS
#undef MR
#undef LANES
#undef WORD
#undef SUM
#undef NAME
