/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel of the matrix product (panel.h), compiled once for each type and instruction
 * set. The sums of some rows by 32 columns stay in registers for all of k; a unit
 * of a is spread over a register, one of b is there for each column.
 *
 * The includer defines NAME; SUM, the type of a sum; LANES, sums of a register; UNIT, a
 * type of a unit's size; MR, rows that the registers hold; and STEP(acc, a, b),
 * a register of sums after adding unit a times the units in register b.
 */
#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
#define VEC CAT(NAME, _vec)
#define PANEL CAT(NAME, _panel)
#define VECS (SIM_PRODUCT_LINE / LANES)

typedef SUM VEC __attribute__((vector_size(LANES * sizeof(SUM)), aligned(4), may_alias));

static inline __attribute__((always_inline)) void
PANEL(const UNIT *a, const UNIT *b, SUM *sums, unsigned ku, const unsigned mr,
      const unsigned vecs, unsigned cols, unsigned ld, bool is_more, const char *next,
      unsigned lines)
{
	VEC acc[MR][VECS] = { 0 };
	SUM tail[SIM_PRODUCT_LINE];

	/* Sums come from beyond L2; by the time that they are added to they are there. Not to
	 * L1: rows may be a power of two apart, more of them than a set of it has ways. */
#pragma GCC unroll 16
	for (unsigned i = 0; i < mr; i++)
#pragma GCC unroll 16
		for (unsigned v = 0; v < vecs * LANES * sizeof(SUM) / 64; v++)
			__builtin_prefetch((char *)(sums + (size_t)i * ld) + v * 64, 1, 2);
	for (unsigned i = 0; i < lines; i++)
		__builtin_prefetch(next + (size_t)i * 64, 0, 2);
	for (unsigned k = 0; k < ku; k++, a++, b += SIM_PRODUCT_LINE) {
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
		SUM *to = sums + (size_t)i * ld;

		if (cols >= SIM_PRODUCT_LINE) {
#pragma GCC unroll 16
			for (unsigned v = 0; v < vecs; v++) {
				if (is_more)
					acc[i][v] += *(const VEC *)(to + v * LANES);
				*(VEC *)(to + v * LANES) = acc[i][v];
			}
			continue;
		}
#pragma GCC unroll 16
		for (unsigned v = 0; v < vecs; v++)
			*(VEC *)(tail + v * LANES) = acc[i][v];
		for (unsigned j = 0; j < cols; j++)
			to[j] = is_more ? to[j] + tail[j] : tail[j];
	}
}

void NAME(const void *a, const void *b, void *sums, unsigned ku, unsigned rows, unsigned cols,
	  unsigned ld, bool is_more)
{
	for (unsigned j = 0; j < cols; j += SIM_PRODUCT_LINE) {
		const UNIT *line = (const UNIT *)b + (size_t)j * ku;
		unsigned wide = cols - j, i = 0;
		/* The panel behind this one, a part of it by each set of rows. */
		const char *next = (const char *)(line + (size_t)SIM_PRODUCT_LINE * ku);
		unsigned lines = ku * (unsigned)(SIM_PRODUCT_LINE * sizeof(UNIT) / 64);
		unsigned part = rows >= 4 * MR ? lines / (rows / MR) : 0;

		/* Whole sets of rows, then what is left in fewer and fewer; all columns,
		 * or half of them if that is enough. */
#define ROWS(n, vecs) \
		for (; MR >= (n) && i + (n) <= rows; i += (n)) \
			PANEL((const UNIT *)a + (size_t)i * SIM_PRODUCT_PITCH, line, \
			      (SUM *)sums + (size_t)i * ld + j, ku, (n), (vecs), wide, ld, \
			      is_more, next, (n) == MR ? part : 0), next += (size_t)part * 64
		if (wide <= SIM_PRODUCT_LINE / 2)
			ROWS(MR, VECS / 2);
		ROWS(MR, VECS);
		ROWS(8, VECS);
		ROWS(4, VECS);
		ROWS(1, VECS);
#undef ROWS
	}
}

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
#undef NAME
