/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel of the matrix product (panel.h), compiled once for each type and instruction
 * set. The sums of some rows by 32 columns stay in registers for all of k; a unit
 * of a is spread over a register, one of b is there for each column.
 *
 * The includer defines NAME; SUM, the type of a sum; LANES, sums of a register; UNIT, a
 * type of a unit's size; MR, rows that the registers hold; and STEP(acc, a, b),
 * a register of sums after adding unit a times the units in register b. With LESS the kernel is
 * static and takes a number for each row, which goes off its sums. With FEW, where a unit is one
 * element of SUM, there is a second kernel of that name, which takes few rows (panel.h); with
 * FEW_BF16, where SUM is a float, a third, whose b is bf16 in memory. With FEW the first kernel
 * packs b along (panel.h), and with PAIR(x, y, v): register v of the units of two lines of b.
 */
#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
#define VEC CAT(NAME, _vec)
#define PANEL CAT(NAME, _panel)
#define VECS (SIM_PRODUCT_LINE / LANES)
#define FETCH CAT(NAME, _fetch)
#define LINE_BYTES (SIM_PRODUCT_LINE * sizeof(UNIT))
#ifdef PAIR
#define GROUP 2u	/* lines of a unit */
#define LIES(c, v) ((VEC)PAIR((c).from[2 * k] + (c).from_at, \
				  (c).from[2 * k + 1] + (c).from_at, (v)))
#else
#define GROUP 1u
#define LIES(c, v) (*(const VEC *)(const void *)((c).from[k] + (c).from_at + (v) * sizeof(VEC)))
#endif

typedef SUM VEC __attribute__((vector_size(LANES * sizeof(SUM)), aligned(4), may_alias));

static inline void FETCH(const uint8_t *from, unsigned bytes)
{
	for (unsigned at = 0; at < bytes; at += 64)
		__builtin_prefetch(from + at, 0, 2);
}

static inline __attribute__((always_inline)) void
PANEL(const UNIT *a, UNIT *b, SUM *sums, const struct sim_product_step *x, const SUM *before,
      const SUM *less, struct sim_product_columns c, const unsigned mr, const unsigned vecs,
      unsigned cols)
{
	VEC acc[MR][VECS] = { 0 };
	SUM tail[SIM_PRODUCT_LINE];
	/* Every third row: there are fewer registers for addresses than rows. */
	const UNIT *third[(MR + 2) / 3];
	const size_t pitch = x->a_pitch;

	/* By the time that sums are added to or stored they are there. Not in L1: rows may be a
	 * power of two apart, more of them than a set of it has ways. */
#pragma GCC unroll 16
	for (unsigned i = 0; sums != before && i < mr; i++)
#pragma GCC unroll 16
		for (unsigned v = 0; v < vecs * LANES * sizeof(SUM) / 64; v++)
			__builtin_prefetch((const char *)(sums + (size_t)i * x->ld) + v * 64, 0,
					   2);
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
#pragma GCC unroll 16
	for (unsigned i = 0; i < (mr + 2) / 3; i++)
		third[i] = a + 3 * i * pitch;
	for (unsigned k = 0; k < x->ku; k++, b += SIM_PRODUCT_LINE) {
		VEC col[VECS];

		if (c.soon) {
			unsigned done = c.done >> 16, parts = LINE_BYTES / 64 / GROUP;
			const uint8_t *soon = c.soon[done / parts] + c.soon_at;

			__builtin_prefetch(soon + done % parts * 64, 0, 2);
			c.done += c.step;
		} else {
			__builtin_prefetch(c.next, 0, 2);
			c.next += c.apart;
		}
#pragma GCC unroll 16
		for (unsigned v = 0; v < vecs; v++) {
			col[v] = c.from ? LIES(c, v) : *(const VEC *)(b + v * LANES);
			if (c.from)
				*(VEC *)(b + v * LANES) = col[v];
		}
#pragma GCC unroll 16
		for (unsigned i = 0; i < mr; i++) {
			UNIT row = third[i / 3][i % 3 * pitch];

#pragma GCC unroll 16
			for (unsigned v = 0; v < vecs; v++)
				acc[i][v] = STEP(acc[i][v], row, col[v]);
		}
#pragma GCC unroll 16
		for (unsigned i = 0; i < (mr + 2) / 3; i++)
			third[i]++;
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
			to[j] = before ? tail[j] + from[j] : tail[j];
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
	/* What is soon read is fetched by parts, one with each set of rows. So are the columns of b
	 * behind these, some bytes with each unit, so that all sets together fetch all of them. */
	unsigned down = (x->rows + MR - 1) / MR;
	unsigned sets = down * ((x->cols + 31) / SIM_PRODUCT_LINE);
	unsigned part = sets ? (x->n_soon + sets - 1) / sets : 0, left = x->n_soon;
	const size_t apart = down <= LINE_BYTES / 64 ? 64 : (LINE_BYTES + down - 1) / down;
	const uint8_t *soon = x->soon;
#if defined FEW || defined PAIR
	/* Sets of rows of whole lines, those that the last rows need included. */
	unsigned rest = x->rows % MR;
	unsigned all = x->rows / MR + (MR < 8 ? rest / 4 : rest / 8 + rest % 8 / 4) + rest % 4;
#endif

	for (unsigned j = 0; j < x->cols; j += SIM_PRODUCT_LINE) {
		UNIT *line = (UNIT *)(uintptr_t)x->b + (size_t)j * x->ku;
		struct sim_product_columns c = { .apart = apart, .next = (const uint8_t *)
				     (line + (size_t)SIM_PRODUCT_LINE * x->ku) };
		unsigned wide = x->cols - j, i = 0;

#define SET(n, vecs) do { \
			for (unsigned r = 0; r < part && left; r++, left--) { \
				FETCH(soon, x->soon_bytes); \
				soon += x->soon_pitch; \
			} \
			PANEL((const UNIT *)x->a + (size_t)i * x->a_pitch, line, \
			      (SUM *)x->sums + (size_t)i * x->ld + j, x, x->before ? \
			      (const SUM *)x->before + (size_t)i * x->before_ld + j : NULL, \
			      less ? less + i : NULL, c, (n), (vecs), wide); \
			c.next += x->ku * apart; \
			c.done += x->ku * c.step; \
			i += (n); \
		} while (0)
#if defined FEW || defined PAIR
		_Static_assert(MR <= SIM_PRODUCT_ALONG, "");
		if (x->lines && wide >= SIM_PRODUCT_LINE) {
			bool is_last = wide < 2 * SIM_PRODUCT_LINE && x->next_lines;

			c.soon = is_last ? x->next_lines : x->lines;
			c.soon_at = is_last ? 0 : (j + SIM_PRODUCT_LINE) * sizeof(UNIT) / GROUP;
			c.step = (LINE_BYTES / 64 << 16) / all;
			c.from = x->lines;
			c.from_at = j * sizeof(UNIT) / GROUP;
			SET(MR, VECS);
			c.from = NULL;
		}
#endif
		/* Whole sets of rows, then what is left in fewer and fewer, but for 16 of them,
		 * which are eight twice: four cost as much. All columns, or half of them if
		 * that is enough. */
#define ROWS(n, vecs) \
		for (; MR >= (n) && i + (n) <= x->rows && \
		     ((n) != 12 || x->rows - i != 16);) \
			SET(n, vecs);
#define ALL_ROWS \
		if (wide <= SIM_PRODUCT_LINE / 2) \
			ROWS(MR, VECS / 2) \
		ROWS(MR, VECS) \
		ROWS(8, VECS) \
		ROWS(4, VECS) \
		ROWS(1, VECS)
		if (c.soon) {
			ALL_ROWS
		} else {	/* a loop of its own, without that question */
			c.soon = NULL;
			ALL_ROWS
		}
#undef ALL_ROWS
#undef ROWS
#undef SET
	}
}

#ifdef FEW
/*
 * ---- few rows ----
 *
 * b is read where it lies, some lines of it at a time: to pack it would take longer than the
 * product. Each sum is added up as above, so both kernels give the same bits.
 */
#define TAKE CAT(NAME, _take)
#define FEW_ROWS CAT(NAME, _few_rows)
#define LINES CAT(NAME, _lines)
#define COLUMNS CAT(NAME, _columns)
#define TALL CAT(NAME, _tall)
#define NEAR CAT(NAME, _near)

/* `wide` columns of a line of b from j on; of bf16 each is the upper half of a float. */
static inline __attribute__((always_inline)) VEC
TAKE(const uint8_t *line, unsigned j, unsigned wide, const bool is_bf16)
{
	VEC some = { 0 };

#ifdef FEW_BF16
	typedef uint16_t half __attribute__((vector_size(LANES * 2), aligned(2), may_alias));
	typedef uint32_t word __attribute__((vector_size(LANES * 4)));

	if (is_bf16) {
		half upper = { 0 };

		if (wide == LANES)
			upper = *(const half *)(const void *)(line + j * 2);
		else
			__builtin_memcpy(&upper, line + j * 2, wide * 2);
		return (VEC)(__builtin_convertvector(upper, word) << 16);
	}
#else
	(void)is_bf16;
#endif
	if (wide == LANES)
		return *(const VEC *)(const void *)(line + j * sizeof(SUM));
	__builtin_memcpy(&some, line + j * sizeof(SUM), wide * sizeof(SUM));
	return some;
}

/* Products of `rows` rows from `row` on and `deep` lines of b from k on: columns j .. j + wide. */
static inline __attribute__((always_inline)) void
COLUMNS(const struct sim_product_step *x, const uint8_t *const lines[8], const SUM factor[4][8],
	SUM *room, unsigned row, unsigned k, unsigned j, unsigned wide, const unsigned rows,
	const unsigned deep, const bool is_bf16)
{
	VEC acc[4] = { 0 }, some = { 0 };

	room += (size_t)row * SIM_PRODUCT_ROOM + j;
#pragma GCC unroll 4
	for (unsigned i = 0; i < rows && k; i++)
		acc[i] = *(const VEC *)(room + (size_t)i * SIM_PRODUCT_ROOM);
#pragma GCC unroll 8
	for (unsigned d = 0; d < deep; d++) {
		some = TAKE(lines[d], j, wide, is_bf16);
#pragma GCC unroll 4
		for (unsigned i = 0; i < rows; i++)
			acc[i] = STEP(acc[i], factor[i][d], some);
	}
	if (k + deep < x->ku) {
#pragma GCC unroll 4
		for (unsigned i = 0; i < rows; i++)
			*(VEC *)(room + (size_t)i * SIM_PRODUCT_ROOM) = acc[i];
		return;
	}
#pragma GCC unroll 4
	for (unsigned i = 0; i < rows; i++) {
		SUM *to = (SUM *)x->sums + (size_t)(row + i) * x->ld + j;
		const SUM *from = (const SUM *)x->before + (size_t)(row + i) * x->before_ld + j;

		if (x->before) {
			__builtin_memcpy(&some, from, wide * sizeof(SUM));
			acc[i] += some;
		}
		__builtin_memcpy(to, &acc[i], wide * sizeof(SUM));
	}
}

/* Columns j .. end. What is the same for all of them is read first, once. The lines behind these
 * are fetched, but for one row: to read is all that it waits for, and hardware that sees long lines
 * read side by side foresees more. */
static inline __attribute__((always_inline)) void
LINES(const struct sim_product_step *x, const uint8_t *const *lines, SUM *room, unsigned row,
      unsigned k, unsigned j, unsigned end, const unsigned rows, const unsigned deep,
      const bool is_bf16)
{
	const SUM *a = (const SUM *)x->a + (size_t)row * SIM_PRODUCT_PITCH + k;
	unsigned soon = row || x->rows == 1 || k + 2 * deep > x->ku ? 0 : deep;
	const unsigned bytes = is_bf16 ? 2 : sizeof(SUM);
	const uint8_t *line[8];
	SUM factor[4][8];

#pragma GCC unroll 8
	for (unsigned d = 0; d < deep; d++) {
		line[d] = lines[k + d];
#pragma GCC unroll 4
		for (unsigned i = 0; i < rows; i++)
			factor[i][d] = a[i * SIM_PRODUCT_PITCH + d];
	}
	for (; j + LANES <= end; j += LANES) {
#pragma GCC unroll 8
		for (unsigned d = 0; d < soon; d++)
			__builtin_prefetch(lines[k + deep + d] + j * bytes);
		COLUMNS(x, line, factor, room, row, k, j, LANES, rows, deep, is_bf16);
	}
	if (j < end)
		COLUMNS(x, line, factor, room, row, k, j, end - j, rows, deep, is_bf16);
}

#define WIDE (256 / sizeof(SUM))	/* columns that all rows take in turn, in L1 */

/* Columns j .. j + vecs * LANES over all of k, sums in registers; the first `done` of them are
 * there already. */
static inline __attribute__((always_inline)) void
TALL(const struct sim_product_step *x, const uint8_t *const *lines, unsigned row, unsigned j,
     unsigned done, const unsigned rows, const unsigned vecs, const bool is_bf16)
{
	const SUM *a = (const SUM *)x->a + (size_t)row * SIM_PRODUCT_PITCH;
	VEC acc[4][8] = { 0 };

	for (unsigned k = 0; k < x->ku; k++) {
		VEC col[8];

#pragma GCC unroll 8
		for (unsigned v = 0; v < vecs; v++)
			col[v] = TAKE(lines[k], j + v * LANES, LANES, is_bf16);
#pragma GCC unroll 4
		for (unsigned i = 0; i < rows; i++)
#pragma GCC unroll 8
			for (unsigned v = 0; v < vecs; v++)
				acc[i][v] = STEP(acc[i][v], a[i * SIM_PRODUCT_PITCH + k], col[v]);
	}
#pragma GCC unroll 4
	for (unsigned i = 0; i < rows; i++) {
		SUM *to = (SUM *)x->sums + (size_t)(row + i) * x->ld + j;
		const SUM *from = (const SUM *)x->before + (size_t)(row + i) * x->before_ld + j;

#pragma GCC unroll 8
		for (unsigned v = 0; v < vecs; v++) {
			if (x->before)
				acc[i][v] += *(const VEC *)(from + v * LANES);
			if (vecs > 1)
				*(VEC *)(to + v * LANES) = acc[i][v];
		}
		if (vecs == 1)
			__builtin_memcpy(to + done, (const SUM *)acc[i] + done,
					 (LANES - done) * sizeof(SUM));
	}
}

/* The columns of a small b; gives how many are done: all, unless they fill no register. */
static inline __attribute__((always_inline)) unsigned
NEAR(const struct sim_product_step *x, const uint8_t *const *lines, const bool is_bf16)
{
	unsigned j = 0;

#define PART(vecs, done) { \
		unsigned i = 0; \
		for (; i + 4 <= x->rows; i += 4) \
			for (unsigned v = 0; v < (vecs); v += (vecs) < 4 ? (vecs) : 4) \
				TALL(x, lines, i, j + v * LANES, (done), 4, \
				     (vecs) < 4 ? (vecs) : 4, is_bf16); \
		for (; i + 2 <= x->rows; i += 2) \
			TALL(x, lines, i, j, (done), 2, (vecs), is_bf16); \
		if (i < x->rows) \
			TALL(x, lines, i, j, (done), 1, (vecs), is_bf16); \
	}
	for (; j + 8 * LANES <= x->cols; j += 8 * LANES)
		PART(8, 0)
	for (; j + 4 * LANES <= x->cols; j += 4 * LANES)
		PART(4, 0)
	for (; j + LANES <= x->cols; j += LANES)
		PART(1, 0)
	if (j && j < x->cols) {
		unsigned done = j - (x->cols - LANES);

		j = x->cols - LANES;
		PART(1, done)
		j = x->cols;
	}
#undef PART
	return j;
}

static inline __attribute__((always_inline)) void
FEW_ROWS(const struct sim_product_step *x, const uint8_t *const *lines, bool is_near, SUM *room,
	 const bool is_bf16)
{
	unsigned done = is_near ? NEAR(x, lines, is_bf16) : 0;
	unsigned wide = x->rows > 1 ? WIDE : x->cols;

	for (unsigned k = 0, deep; k < x->ku; k += deep) {
		deep = x->ku - k >= 8 ? 8 : x->ku - k >= 4 ? 4 : 1;
		for (unsigned j = done; j < x->cols; j += wide) {
			unsigned i = 0, end = x->cols - j < wide ? x->cols : j + wide;

#define ROWS(n) \
			for (; i + (n) <= x->rows; i += (n)) \
				if (deep == 8) \
					LINES(x, lines, room, i, k, j, end, (n), 8, is_bf16); \
				else if (deep == 4) \
					LINES(x, lines, room, i, k, j, end, (n), 4, is_bf16); \
				else \
					LINES(x, lines, room, i, k, j, end, (n), 1, is_bf16);
			ROWS(4)
			ROWS(2)
			ROWS(1)
#undef ROWS
		}
	}
}

void FEW(const struct sim_product_step *x, const uint8_t *const *lines, bool is_near, void *room)
{
	FEW_ROWS(x, lines, is_near, room, false);
}

#ifdef FEW_BF16
void FEW_BF16(const struct sim_product_step *x, const uint8_t *const *lines, bool is_near,
	      void *room)
{
	FEW_ROWS(x, lines, is_near, room, true);
}
#endif

#undef TAKE
#undef FEW_ROWS
#undef WIDE
#undef COLUMNS
#undef LINES
#undef TALL
#undef NEAR
#endif

#ifdef TINY
/* ---- small products side by side ---- */

#define SIDE (SIM_PRODUCT_TINY / LANES)
#define CELLS CAT(TINY, _cells)

/* Sums of columns j .. j + wide of a row. */
static inline __attribute__((always_inline)) void
CELLS(const struct sim_product_tiny *x, const SUM *a, SUM *sums, unsigned j, const unsigned wide,
      const bool is_shared)
{
	VEC acc[4][SIDE] = { 0 };
	const SUM *b = (const SUM *)x->b + (size_t)j * (is_shared ? 1 : SIM_PRODUCT_TINY);
	const size_t step = (size_t)x->cols * (is_shared ? 1 : SIM_PRODUCT_TINY);

	for (unsigned k = 0; k < x->k; k++, a += SIM_PRODUCT_TINY, b += step)
#pragma GCC unroll 4
		for (unsigned i = 0; i < wide; i++)
#pragma GCC unroll 8
			for (unsigned v = 0; v < SIDE; v++) {
				const VEC row = *(const VEC *)(a + v * LANES);

				if (is_shared)
					acc[i][v] = STEP(acc[i][v], row, b[i]);
				else
					acc[i][v] = STEP(acc[i][v], row, *(const VEC *)
							 (b + i * SIM_PRODUCT_TINY + v * LANES));
			}
#pragma GCC unroll 4
	for (unsigned i = 0; i < wide; i++)
#pragma GCC unroll 8
		for (unsigned v = 0; v < SIDE; v++)
			*(VEC *)(sums + (j + i) * SIM_PRODUCT_TINY + v * LANES) = acc[i][v];
}

void TINY(const struct sim_product_tiny *x)
{
	const SUM *a = x->a;
	SUM *sums = x->sums;

	for (unsigned r = 0; r < x->rows; r++) {
		unsigned j = 0;

#define COLUMNS(n, is_shared) \
		for (; j + (n) <= x->cols; j += (n)) \
			CELLS(x, a, sums, j, (n), (is_shared));
		if (x->is_shared) {
			COLUMNS(4, true)
			COLUMNS(1, true)
		} else {
			COLUMNS(4, false)
			COLUMNS(1, false)
		}
#undef COLUMNS
		a += (size_t)x->k * SIM_PRODUCT_TINY;
		sums += (size_t)x->cols * SIM_PRODUCT_TINY;
	}
}

#undef SIDE
#undef CELLS
#endif

/* ---- one product of few rows and columns (panel.h) ---- */

#ifdef LONE
#define FOUR CAT(LONE, _four)
typedef SUM FOUR __attribute__((vector_size(4 * sizeof(SUM)), aligned(4), may_alias));

/* Rows i .. i + mr of a register's columns from j on, which lie side by side, or of column j; the
 * first `done` of them are there already, and what is before them may be the sums. */
#define BLOCK(name, type) \
static inline __attribute__((always_inline)) void \
name(const struct sim_product_lone *x, unsigned i, unsigned j, unsigned done, const unsigned mr) \
{ \
	const uint8_t *a = x->a + i * x->a_row, *b = x->b + j * x->b_col; \
	SUM *to = (SUM *)x->sums + (size_t)i * x->down + j; \
	const SUM *from = (const SUM *)x->before + \
			  (x->before ? (size_t)i * x->before_down + j : 0); \
	type acc[8] = { 0 }; \
\
	for (unsigned k = 0; k < x->k; k++, a += x->a_k, b += x->b_k) { \
		const type line = *(const type *)b; \
\
		_Pragma("GCC unroll 8") \
		for (unsigned r = 0; r < mr; r++) \
			acc[r] = STEP(acc[r], *(const SUM *)(a + r * x->a_row), line); \
	} \
	_Pragma("GCC unroll 8") \
	for (unsigned r = 0; r < mr; r++, to += x->down, from += x->before_down) { \
		if (x->before) \
			acc[r] += *(const type *)from; \
		if (!done || !x->before) \
			*(type *)to = acc[r]; \
		else \
			__builtin_memcpy(to + done, (const SUM *)&acc[r] + done, \
					 sizeof(type) - done * sizeof(SUM)); \
	} \
}
BLOCK(CAT(LONE, _line), VEC)
BLOCK(CAT(LONE, _part), FOUR)
BLOCK(CAT(LONE, _one), SUM)
#undef BLOCK

/* Columns that fill no register are the last ones of one that others fill, too. */
void LONE(const struct sim_product_lone *x)
{
	unsigned cols = x->cols, i = 0, j;
	bool is_beside = x->b_col == sizeof(SUM);

#define COLUMNS(name, n, mr) \
	for (; j < cols; j += (n)) { \
		unsigned done = cols - j < (n) ? (n) - (cols - j) : 0; \
\
		CAT(LONE, name)(x, i, j - done, done, (mr)); \
	}
#define ROWS(mr) \
	for (; i + (mr) <= x->rows; i += (mr)) { \
		j = 0; \
		if (is_beside && cols >= LANES) \
			COLUMNS(_line, LANES, (mr)) \
		else if (is_beside && cols >= 4) \
			COLUMNS(_part, 4, (mr)) \
		else \
			COLUMNS(_one, 1u, (mr)) \
	}
	ROWS(8)
	ROWS(4)
	ROWS(2)
	ROWS(1)
#undef ROWS
#undef COLUMNS
}

#undef FOUR
#endif

#undef FETCH
#undef LINE_BYTES
#undef GROUP
#undef LIES
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
#undef FEW
#undef FEW_BF16
#undef PAIR
#undef TINY
#undef LONE
#undef NAME
