/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tiles and memory: loads of tiles from strided operands, and stores to them.
 *
 * A tile is a box of the iteration space. Its dims, with the operand's strides, are
 * first simplified: dims of one element vanish, neighbours that continue each other
 * merge. What is left decides: dense memory is used where it lies, a lone stride
 * of 0 makes a spread or row value, the rest is copied run by run.
 */
#include "hal/sim/core/body.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif
#include <string.h>

#include "hal/sim/kernels/transpose.h"

static void add_dim(struct sim_box *x, int64_t count, int64_t stride)
{
	if (count == 1)
		return;
	if (x->n && x->stride[x->n - 1] == stride * count) {
		x->count[x->n - 1] *= count;
		x->stride[x->n - 1] = stride;
		return;
	}
	x->count[x->n] = count;
	x->stride[x->n++] = stride;
}

static void add_cols(struct sim_box *x, const struct sim_ref *ref,
		     const struct sim_tile *tile)
{
	for (unsigned k = 0; k < tile->col_dims; k++)
		add_dim(x, tile->col_dim[k], ref->stride[tile->rank - tile->col_dims + k]);
}

static int64_t row_stride(const struct sim_ref *ref, const struct sim_tile *tile)
{
	return tile->rows > 1 ? ref->stride[tile->rank - tile->col_dims - 1] : 0;
}

static struct sim_box box_of(const struct sim_ref *ref, const struct sim_tile *tile)
{
	struct sim_box x = { 0 };

	if (tile->rows > 1)
		add_dim(&x, tile->rows, row_stride(ref, tile));
	add_cols(&x, ref, tile);
	return x;
}

static bool is_dense(const struct sim_box *x, unsigned bytes)
{
	return !x->n || (x->n == 1 && x->stride[0] == (int64_t)bytes);
}

/* The same of a tile whose columns are one dim, without the dims of a box. */
static enum sim_tile_kind kind_of_rows(const struct sim_ref *ref, const struct sim_tile *tile)
{
	int64_t row = row_stride(ref, tile), bytes = elem_bytes(ref->elem);
	int64_t n = tile->col_dim[0], col = n > 1 ? ref->stride[tile->rank - 1] : 0;

	if (!col && !row)
		return SIM_TILE_SPREAD;
	if (!col && n > 1)
		return row == bytes ? SIM_TILE_ROW : SIM_TILE_APART;
	if (!col)
		return row == bytes ? SIM_TILE_DENSE : SIM_TILE_ANY;
	return col == bytes && (tile->rows == 1 || row == n * col) ? SIM_TILE_DENSE : SIM_TILE_ANY;
}

enum sim_tile_kind sim_tile_kind(const struct sim_ref *ref, const struct sim_tile *tile)
{
	int64_t row = row_stride(ref, tile), bytes = elem_bytes(ref->elem);
	struct sim_box cols = { 0 }, whole;
	bool still;

	if (tile->col_dims == 1)
		return kind_of_rows(ref, tile);
	add_cols(&cols, ref, tile);
	still = !cols.n || (cols.n == 1 && !cols.stride[0]);
	if (still && !row)
		return SIM_TILE_SPREAD;
	if (still && cols.n)
		return row == bytes ? SIM_TILE_ROW : SIM_TILE_APART;
	whole = box_of(ref, tile);
	return is_dense(&whole, elem_bytes(ref->elem)) ? SIM_TILE_DENSE : SIM_TILE_ANY;
}

/* ---- copies between dense and strided memory ---- */

typedef uint64_t c16 __attribute__((vector_size(16), aligned(1), may_alias));

/* to[i * to_step] = from[i * from_step], steps in bytes */
#define STRIDED(name, T) \
static void strided_##name(char *to, int64_t to_step, const char *from, \
			int64_t from_step, int64_t n) \
{ \
	for (int64_t i = 0; i < n; i++) \
		*(T *)(to + i * to_step) = *(const T *)(from + i * from_step); \
}
STRIDED(1, uint8_t)
STRIDED(2, uint16_t)
STRIDED(4, uint32_t)
STRIDED(8, uint64_t)
STRIDED(16, c16)

/* Rows of a few elements, of which a call each would take longer than the bytes. */
struct rows {
	int64_t n, cols;
	int64_t to_row, to_step, from_row, from_step;	/* bytes */
};

#define MOST_COLS 16
#define MOST_PIECES 8	/* of 16 bytes, where a row's elements lie side by side */

#define ROWS(name, T) \
static inline __attribute__((always_inline)) void \
rows_of_##name(const struct rows *x, char *to, const char *from, const int64_t cols) \
{ \
	const int64_t to_step = x->to_step, from_step = x->from_step; \
	for (int64_t r = x->n; r; r--, to += x->to_row, from += x->from_row) \
		for (int64_t i = 0; i < cols; i++) \
			*(T *)(to + i * to_step) = *(const T *)(from + i * from_step); \
} \
static void rows_##name(const struct rows *x, char *to, const char *from) \
{ \
	switch (x->cols) { \
	case 2: rows_of_##name(x, to, from, 2); break; \
	case 3: rows_of_##name(x, to, from, 3); break; \
	case 4: rows_of_##name(x, to, from, 4); break; \
	default: rows_of_##name(x, to, from, x->cols); break; \
	} \
}
ROWS(1, uint8_t)
ROWS(2, uint16_t)
ROWS(4, uint32_t)
ROWS(8, uint64_t)
ROWS(16, c16)

/* Rows of a few pieces, side by side. */
static void copy_pieces(const struct rows *x, char *to, const char *from)
{
	int64_t r = x->n;

#define PIECES(n) \
	case (n): \
		for (; r; r--, to += x->to_row, from += x->from_row) \
			memcpy(to, from, (n) * 16); \
		return;
	switch (x->cols) {
	PIECES(1)
	PIECES(2)
	PIECES(3)
	PIECES(4)
	PIECES(5)
	PIECES(6)
	PIECES(7)
	PIECES(MOST_PIECES)
	}
#undef PIECES
}

static void copy_few(const struct rows *x, char *to, const char *from, unsigned bytes)
{
	static void (*const copies[])(const struct rows *, char *, const char *) = {
		rows_1, rows_2, rows_4, rows_8, rows_16,
	};

	copies[__builtin_ctz(bytes)](x, to, from);
}

/* A transposition: to[i][j] = from[j][i] for i < n, j < m, pitches in bytes. */
static void copy_turned(char *to, int64_t to_pitch, const char *from, int64_t from_pitch,
			int64_t n, int64_t m, unsigned bytes)
{
	sim_transpose_portable[__builtin_ctz(bytes)](to, to_pitch, from, from_pitch, (size_t)m,
						     (size_t)n);
}

typedef uint32_t four __attribute__((vector_size(16), aligned(1), may_alias));

/* Every second of n elements of 4 bytes, made dense; nothing behind the last is read. */
static void every_second_4(char *to, const char *from, int64_t n)
{
	int64_t i = 0;

	for (; i + 5 <= n; i += 4) {
		const four low = *(const four *)(const void *)(from + i * 8);
		const four high = *(const four *)(const void *)(from + i * 8 + 16);

		*(four *)(void *)(to + i * 4) = __builtin_shufflevector(low, high, 0, 2, 4, 6);
	}
	strided_4(to + i * 4, 4, from + i * 8, 8, n - i);
}

static void copy_strided(char *to, int64_t to_step, const char *from, int64_t from_step,
			 int64_t n, unsigned bytes)
{
	if (to_step == (int64_t)bytes && from_step == (int64_t)bytes) {
		memmove(to, from, (size_t)n * bytes);
		return;
	}
	switch (bytes) {
	case 1:
		strided_1(to, to_step, from, from_step, n);
		break;
	case 2:
		strided_2(to, to_step, from, from_step, n);
		break;
	case 4:
		if (to_step == 4 && from_step == 8)
			every_second_4(to, from, n);
		else
			strided_4(to, to_step, from, from_step, n);
		break;
	case 8:
		strided_8(to, to_step, from, from_step, n);
		break;
	default:
		strided_16(to, to_step, from, from_step, n);
		break;
	}
}

/* A dense row of what may be one element for all of it. */
static void gather_row(const struct sim_box *x, char *to, const char *from, unsigned bytes)
{
	int64_t step = x->stride[x->n - 1], n = x->count[x->n - 1];

	if (x->column)
		x->column(to, from, (size_t)n);
	else if (step)
		copy_strided(to, bytes, from, step, n, bytes);
	else
		sim_fill(to, from, (size_t)n, bytes);
}

static int64_t magnitude(int64_t x)
{
	return x < 0 ? -x : x;
}

/* The two innermost dims of `x`; `wide` says which side has its strides, the other
 * is dense. */
static void copy_plane(const struct sim_box *x, char *to, const char *from, bool gather,
		       unsigned bytes)
{
	unsigned k = x->n - 1;
	int64_t rows = k ? x->count[k - 1] : 1, cols = x->count[k];
	int64_t row = k ? x->stride[k - 1] : 0, step = x->stride[k];
	int64_t dense_row = cols * bytes;
	bool is_pieces = step == bytes && !(dense_row % 16) && dense_row <= MOST_PIECES * 16;

	if (rows > 1 && row == bytes && gather && !step) {
		sim_fill_rows(to, from, (size_t)rows, (size_t)cols, bytes);
		return;
	}
	if (rows > 1 && row == bytes && magnitude(row) < magnitude(step)) {
		if (gather)
			copy_turned(to, dense_row, from, step, rows, cols, bytes);
		else
			copy_turned(to, step, from, dense_row, cols, rows, bytes);
		return;
	}
	if (gather && !row) {
		gather_row(x, to, from, bytes);
		sim_fill(to, to, (size_t)rows, (size_t)dense_row);
		return;
	}
	if (rows > 1 && (is_pieces || cols <= MOST_COLS)) {
		unsigned each = is_pieces ? 16 : bytes;
		int64_t apart = is_pieces ? 16 : step;
		const struct rows few = {
			.n = rows, .cols = dense_row / each,
			.to_row = gather ? dense_row : row, .to_step = gather ? each : apart,
			.from_row = gather ? row : dense_row, .from_step = gather ? apart : each,
		};

		if (is_pieces)
			copy_pieces(&few, to, from);
		else
			copy_few(&few, to, from, each);
		return;
	}
	for (int64_t r = 0; r < rows; r++) {
		if (gather)
			gather_row(x, to + r * dense_row, from + r * row, bytes);
		else
			copy_strided(to + r * row, step, from + r * dense_row, bytes,
				     cols, bytes);
	}
}

/* Copies a box out of (gather) or into strided memory; the other side is dense. */
static void copy_box(const struct sim_box *x, char *to, const char *from, bool gather,
		     unsigned bytes)
{
	int64_t at[ISA_MAX_RANK] = { 0 }, plane = 1;
	bool is_shuffled = x->rows && gather;
	unsigned outer = is_shuffled ? x->inner - 1 : x->n > 2 ? x->n - 2 : 0;

	if (!x->n) {
		memmove(to, from, bytes);
		return;
	}
	for (unsigned k = outer; k < x->n; k++)
		plane *= x->count[k];
	for (;;) {
		unsigned k = outer;

		if (is_shuffled)
			x->rows(to, from, (size_t)x->count[outer], x->shuffle);
		else
			copy_plane(x, to, from, gather, bytes);
		if (gather)
			to += plane * bytes;
		else
			from += plane * bytes;
		while (k-- > 0) {
			int64_t step = x->stride[k];

			if (++at[k] < x->count[k]) {
				to += gather ? 0 : step;
				from += gather ? step : 0;
				break;
			}
			at[k] = 0;
			to -= gather ? 0 : step * (x->count[k] - 1);
			from -= gather ? step * (x->count[k] - 1) : 0;
		}
		if (k == UINT32_MAX)
			return;
	}
}

/* 64 bytes of elements at a time, and what is left of them. */
#define FILL(name, T) \
static void name(char *to, const char *one, size_t n) \
{ \
	typedef T line __attribute__((vector_size(64), aligned(1), may_alias)); \
	size_t done = 0, all = n * sizeof(T); \
	line x; \
	T first; \
\
	memcpy(&first, one, sizeof(first)); \
	x = (line){ 0 } + first; \
	for (; done + sizeof(x) <= all; done += sizeof(x)) \
		*(line *)(void *)(to + done) = x; \
	memcpy(to + done, &x, all - done); \
}
FILL(fill_2, uint16_t)
FILL(fill_4, uint32_t)
FILL(fill_8, uint64_t)

void sim_fill(void *room, const void *one, size_t n, size_t bytes)
{
	size_t done = bytes, all = n * bytes;
	char *to = room;

	if (!n)
		return;
	switch (bytes) {
	case 1: memset(to, *(const uint8_t *)one, n); return;
	case 2: fill_2(to, one, n); return;
	case 4: fill_4(to, one, n); return;
	case 8: fill_8(to, one, n); return;
	default: break;
	}
	if (to != one)
		memcpy(to, one, bytes);
	while (done < all) {
		size_t more = done < all - done ? done : all - done;

		memcpy(to + done, to, more);
		done += more;
	}
}

/* So many whole pieces for each of `whole` rows; known to the compiler where they are few. */
#define PIECES(T, count) \
	for (; r < whole; r++, to += row) { \
		piece x = (piece){ 0 } + ((const T *)from)[r]; \
		for (size_t j = 0; j < (count); j++) \
			*(piece *)(void *)(to + j * sizeof(x)) = x; \
	}
/* Whole pieces, each row over what the one before it has too much of; the last ones by elements. */
#define REPEAT(name, T) \
static void name(char *to, const char *from, size_t rows, size_t cols) \
{ \
	typedef T piece __attribute__((vector_size(16), aligned(1), may_alias)); \
	size_t row = cols * sizeof(T), pieces = (row + 15) / 16, r = 0; \
	size_t each = row <= 8 ? 8 : pieces * 16, all = rows * row; \
	size_t whole = all < each ? 0 : (all - each) / row + 1; \
	if (row <= 8) { \
		for (; r < whole; r++, to += row) { \
			uint64_t x = ((const T *)from)[r] * (UINT64_MAX / (T)-1); \
			memcpy(to, &x, sizeof(x)); \
		} \
	} else if (pieces == 1) { \
		PIECES(T, 1) \
	} else if (pieces == 2) { \
		PIECES(T, 2) \
	} else { \
		PIECES(T, pieces) \
	} \
	for (; r < rows; r++) \
		for (size_t j = 0; j < cols; j++, to += sizeof(T)) \
			*(T *)(void *)to = ((const T *)from)[r]; \
}
REPEAT(repeat_1, uint8_t)
REPEAT(repeat_2, uint16_t)
REPEAT(repeat_4, uint32_t)
REPEAT(repeat_8, uint64_t)

void sim_fill_rows(void *to, const void *from, size_t rows, size_t cols, size_t bytes)
{
	static void (*const repeat[])(char *, const char *, size_t, size_t) = {
		repeat_1, repeat_2, repeat_4, repeat_8,
	};

	/* a transposition has whole blocks alone if it is a power of 2 */
	if (cols < SIM_LEAST_FILL && bytes <= 8 &&
	    ((cols & (cols - 1)) || cols * bytes >= SIM_LEAST_REPEAT)) {
		repeat[__builtin_ctz((unsigned)bytes)](to, from, rows, cols);
		return;
	}
	if (cols < SIM_LEAST_FILL) {
		copy_turned(to, (int64_t)(cols * bytes), from, 0, (int64_t)rows, (int64_t)cols,
			    (unsigned)bytes);
		return;
	}
	for (size_t r = 0; r < rows; r++)
		sim_fill((char *)to + r * cols * bytes, (const char *)from + r * bytes, cols,
			 bytes);
}

/* The rows of a row broadcast are made once. */
void sim_tile_box(const struct sim_ref *ref, const struct sim_tile *tile, struct sim_box *x)
{
	*x = (struct sim_box){ .repeat = 1, .bytes = elem_bytes(ref->elem) };
	if (tile->rows > 1 && !row_stride(ref, tile)) {
		x->repeat = tile->rows;
		x->row_bytes = (size_t)tile->cols * x->bytes;
	} else if (tile->rows > 1) {
		add_dim(x, tile->rows, row_stride(ref, tile));
	}
	add_cols(x, ref, tile);
}

#define SHUFFLE_LEAST 6	/* elements at a time: fewer are copied one by one as fast */

/* What registers pick: an element, or words of 4 bytes of a larger one. */
static unsigned unit_of(const struct sim_box *x)
{
	return x->bytes > 4 ? 4 : x->bytes;
}

/* How many of the innermost dims are a row, of so many units that reach from *low to *high. */
static unsigned short_dims(const struct sim_box *x, int64_t *n, int64_t *low, int64_t *high)
{
	int64_t unit = unit_of(x), most_span = sim_shuffle_span(unit_of(x));
	unsigned d = x->n;

	*n = (int64_t)x->bytes / unit;
	*low = 0;
	*high = *n - 1;
	for (; d > 1; d--) {
		int64_t step = x->stride[d - 1] / unit, count = x->count[d - 1];
		int64_t reach = magnitude(step) > most_span ||
				count > (int64_t)SIM_SHUFFLE_MOST ? INT32_MAX : (count - 1) * step;

		if (*n * count > (int64_t)SIM_SHUFFLE_MOST || x->stride[d - 1] % unit ||
		    *high - *low + magnitude(reach) >= most_span)
			break;
		*n *= count;
		*(reach < 0 ? low : high) += reach;
	}
	return x->n - d;
}

/* The place of unit i of the rows taken at a time, from `low` on. */
static int64_t place_of(const struct sim_box *x, int64_t i, int64_t low, int64_t pitch)
{
	int64_t unit = unit_of(x), words = (int64_t)x->bytes / unit;
	int64_t place = i % words - low;

	i /= words;
	for (unsigned d = x->n; d-- > x->inner; i /= x->count[d])
		place += i % x->count[d] * (x->stride[d] / unit);
	return place + i * pitch;
}

void sim_box_shuffle(struct sim_box *x, enum sim_path path, struct sim_shuffle *s)
{
	int64_t n, low, high, pitch, unit = unit_of(x), most_span = sim_shuffle_span(unit_of(x));
	unsigned dims;

	if (!sim_shuffle(path, (unsigned)unit))
		return;
	dims = short_dims(x, &n, &low, &high);
	x->inner = x->n - dims;
	/* Whole pieces side by side are copied as such. */
	if (!dims || (dims == 1 && x->stride[x->n - 1] == (int64_t)x->bytes && !(n * unit % 16)) ||
	    !x->stride[x->inner - 1] || x->stride[x->inner - 1] % unit)
		return;
	pitch = x->stride[x->inner - 1] / unit;
	*s = (struct sim_shuffle){ .n = (unsigned)n, .span = (unsigned)(high - low + 1), .rows = 1,
				   .pitch = pitch * unit };
	while (magnitude(pitch) <= most_span && (s->rows + 1) * n <= (int64_t)SIM_SHUFFLE_MOST &&
	       s->rows * magnitude(pitch) + s->span <= most_span)
		s->rows++;
	if (s->rows * n < SHUFFLE_LEAST)
		return;
	low += pitch < 0 ? (s->rows - 1) * pitch : 0;
	s->low = low * unit;
	for (int64_t i = 0; i < s->rows * n; i++)
		s->place[i] = (uint8_t)place_of(x, i, low, pitch);
	x->rows = sim_shuffle(path, (unsigned)unit);
	x->shuffle = s;
}

void sim_box_in(const struct sim_box *x, const void *from, void *room)
{
	copy_box(x, room, from, true, x->bytes);
	if (x->repeat > 1)
		sim_fill(room, room, x->repeat, x->row_bytes);
}

void sim_box_out(const struct sim_box *x, void *to, const void *value)
{
	copy_box(x, to, value, false, x->bytes);
}

/* ---- past the caches ---- */

#ifdef __SSE2__
#define STREAM_PAGE 4096u
#define STREAM_PAGES 4u	/* CPUs fetch ahead within a page: so many at a time */
#define STREAM_AHEAD 256u

static void stream_line(uint8_t *to, const uint8_t *from)
{
	__m128i *d = (__m128i *)(void *)to;
	const __m128i *s = (const __m128i *)(const void *)from;
	__m128i part[4];

#pragma GCC unroll 4
	for (unsigned i = 0; i < 4; i++)
		part[i] = _mm_loadu_si128(s + i);
#pragma GCC unroll 4
	for (unsigned i = 0; i < 4; i++)
		_mm_stream_si128(d + i, part[i]);
}
#endif

void sim_stream(void *to, const void *from, size_t n)
{
#ifdef __SSE2__
	const size_t pages = STREAM_PAGES * STREAM_PAGE;
	uint8_t *d = to;
	const uint8_t *s = from;
	size_t head = -(uintptr_t)d & 63;

	if (n < head + 64) {
		memmove(d, s, n);
		return;
	}
	memmove(d, s, head);
	d += head;
	s += head;
	n -= head;
	for (; n >= pages; d += pages, s += pages, n -= pages)
		for (size_t at = 0; at < STREAM_PAGE; at += 64)
			for (size_t p = at; p < pages; p += STREAM_PAGE) {
				__builtin_prefetch(s + p + STREAM_AHEAD);
				stream_line(d + p, s + p);
			}
	for (; n >= 64; d += 64, s += 64, n -= 64)
		stream_line(d, s);
	memmove(d, s, n);
#else
	memmove(to, from, n);
#endif
}

void sim_stream_end(void)
{
#ifdef __SSE2__
	_mm_sfence();
#endif
}

static void gather(const struct sim_ref *ref, const char *from,
		   const struct sim_tile *tile, void *room)
{
	struct sim_box x;

	sim_tile_box(ref, tile, &x);
	sim_box_in(&x, from, room);
}

void sim_tile_in(const struct sim_ref *ref, const uint8_t *first,
		 struct sim_tile *tile, unsigned j, void *room)
{
	const char *from = (const char *)sim_tile_at(ref, first, tile);
	unsigned bytes = elem_bytes(ref->elem);

	tile->in_spread &= ~(1u << j);
	tile->in_row &= ~(1u << j);
	tile->in[j] = from;
	switch (sim_tile_kind(ref, tile)) {
	case SIM_TILE_DENSE:
		return;
	case SIM_TILE_SPREAD:
		tile->in_spread |= 1u << j;
		return;
	case SIM_TILE_ROW:
		tile->in_row |= 1u << j;
		return;
	case SIM_TILE_APART:
		tile->in[j] = room;
		tile->in_row |= 1u << j;
		copy_strided(room, bytes, from, row_stride(ref, tile), tile->rows, bytes);
		return;
	default:
		tile->in[j] = room;
		gather(ref, from, tile, room);
		return;
	}
}

void sim_tile_keep(struct sim_tile *tile, unsigned j, unsigned bytes, void *room)
{
	size_t n = tile->in_spread >> j & 1 ? 1 : tile->in_row >> j & 1 ? tile->rows :
		(size_t)tile->rows * tile->cols;

	if (tile->in[j] != room)
		memcpy(room, tile->in[j], n * bytes);
	tile->in[j] = room;
}

const void *sim_tile_gather(const struct sim_ref *ref, const uint8_t *first,
			    const struct sim_tile *tile, void *room)
{
	const char *from = (const char *)sim_tile_at(ref, first, tile);

	if (sim_tile_kind(ref, tile) == SIM_TILE_DENSE)
		return from;
	gather(ref, from, tile, room);
	return room;
}

/* ---- stores ---- */

/* Walks a box: calls fn for each run of the innermost dim. */
struct run_of {
	char *to;
	int64_t n, stride;
	uint64_t first;		/* number of its first point in the tile */
};

/* until: a run that may be told to stop, or NULL: there are few. */
static void each_run(const struct sim_box *x, char *to,
		     void (*fn)(void *arg, const struct run_of *run), void *arg,
		     const struct sim_run *until)
{
	int64_t at[ISA_MAX_RANK] = { 0 };
	unsigned inner = x->n ? x->n - 1 : 0;
	struct run_of run = {
		.to = to, .n = x->n ? x->count[inner] : 1,
		.stride = x->n ? x->stride[inner] : 0,
	};

	for (;;) {
		unsigned k = inner;

		fn(arg, &run);
		run.first += (uint64_t)run.n;
		while (k-- > 0) {
			run.to += x->stride[k];
			if (++at[k] < x->count[k])
				break;
			run.to -= x->stride[k] * x->count[k];
			at[k] = 0;
		}
		if (k == UINT32_MAX || (until && sim_stopped(until)))
			return;
	}
}

#define LOW_8 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH_8 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define LOW_16 0, 8, 1, 9, 2, 10, 3, 11
#define HIGH_16 4, 12, 5, 13, 6, 14, 7, 15
#define LOW_32 0, 4, 1, 5
#define HIGH_32 2, 6, 3, 7
#define LOW_64 0, 2
#define HIGH_64 1, 3

/* Elements of a and b by turns, a register of each at a time. */
#define ZIP(bits) \
static void zip_##bits(char *to, const char *a, const char *b, int64_t n) \
{ \
	typedef uint##bits##_t piece \
		__attribute__((vector_size(16), aligned(1), may_alias)); \
	const int64_t bytes = bits / 8, lanes = 16 / bytes; \
	int64_t i = 0; \
	for (; i + lanes <= n; i += lanes, to += 32) { \
		const piece x = *(const piece *)(const void *)(a + i * bytes); \
		const piece y = *(const piece *)(const void *)(b + i * bytes); \
		((piece *)(void *)to)[0] = __builtin_shufflevector(x, y, LOW_##bits); \
		((piece *)(void *)to)[1] = __builtin_shufflevector(x, y, HIGH_##bits); \
	} \
	for (; i < n; i++, to += 2 * bytes) { \
		memcpy(to, a + i * bytes, (size_t)bytes); \
		memcpy(to + bytes, b + i * bytes, (size_t)bytes); \
	} \
}
ZIP(8)
ZIP(16)
ZIP(32)
ZIP(64)

/* Of three, of 4 bytes each. */
static void zip_three(char *to, const char *const v[3], int64_t n)
{
	int64_t i = 0;

	for (; i + 4 <= n; i += 4, to += 48) {
		const four a = *(const four *)(const void *)(v[0] + i * 4);
		const four b = *(const four *)(const void *)(v[1] + i * 4);
		const four c = *(const four *)(const void *)(v[2] + i * 4);
		const four low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
		const four high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
		four *out = (void *)to;

		out[0] = __builtin_shufflevector(low, c, 0, 1, 4, 2);
		out[1] = (four){ low[3], c[1], high[0], high[1] };
		out[2] = __builtin_shufflevector(high, c, 6, 2, 3, 7);
	}
	for (; i < n; i++, to += 12)
		for (unsigned k = 0; k < 3; k++)
			memcpy(to + k * 4, v[k] + i * 4, 4);
}

struct zip {
	const void *const *values;
	unsigned n, bytes;
	sim_zip_fn *fn;
};

static void zip_run(void *arg, const struct run_of *run)
{
	static void (*const pairs[])(char *, const char *, const char *, int64_t) = {
		zip_8, zip_16, zip_32, zip_64,
	};
	enum { CHUNK = 64 };	/* elements that stay in L1 until all values have theirs */
	const struct zip *z = arg;
	const size_t first = run->first * z->bytes;
	const void *from[SIM_ZIP_MOST];

	if (z->fn && z->n <= SIM_ZIP_MOST) {
		for (unsigned k = 0; k < z->n; k++)
			from[k] = (const char *)z->values[k] + first;
		z->fn(run->to, from, z->n, (size_t)run->n);
		return;
	}
	if (z->n == 2 && z->bytes <= 8) {
		pairs[__builtin_ctz(z->bytes)](run->to, (const char *)z->values[0] + first,
					       (const char *)z->values[1] + first, run->n);
		return;
	}
	if (z->n == 3 && z->bytes == 4) {
		const char *v[3];

		for (unsigned k = 0; k < 3; k++)
			v[k] = (const char *)z->values[k] + first;
		zip_three(run->to, v, run->n);
		return;
	}
	for (int64_t i = 0; i < run->n; i += CHUNK)
		for (unsigned k = 0; k < z->n; k++)
			copy_strided(run->to + i * run->stride + k * z->bytes, run->stride,
				     (const char *)z->values[k] + first + i * z->bytes,
				     z->bytes, run->n - i < CHUNK ? run->n - i : CHUNK, z->bytes);
}

void sim_box_zip(const struct sim_box *x, void *to, const void *const *values, unsigned n)
{
	struct zip z = { .values = values, .n = n, .bytes = x->bytes, .fn = x->zip };

	each_run(x, to, zip_run, &z, NULL);
}

struct store {
	const char *value;
	unsigned bytes, cols;
	bool spread, row;
	sim_uop_fn *fn;		/* combine */
	sim_fold_fn *fold;
};

static void store_run(void *arg, const struct run_of *run)
{
	const struct store *s = arg;
	uint64_t row = run->first / s->cols;
	int64_t n = run->n;
	const char *v = s->value + (s->spread ? 0 : s->row ? row * s->bytes :
				    run->first * s->bytes);

	if (!s->spread && !s->row) {
		copy_strided(run->to, run->stride, v, s->bytes, n, s->bytes);
		return;
	}
	/* a run may span rows only of a spread value */
	if (run->stride == (int64_t)s->bytes)
		sim_fill(run->to, v, (size_t)n, s->bytes);
	else
		copy_strided(run->to, run->stride, v, 0, n, s->bytes);
}

/* Folds n points of the value, from number `first` on and within a row, into memory. */
static void combine_part(const struct store *s, char *to, int64_t stride,
			 uint64_t first, size_t n)
{
	enum { CHUNK = 128 };
	_Alignas(64) char block[CHUNK * 16], one[16];
	const char *v = s->value + (s->row ? first / s->cols : first) * s->bytes;
	bool full = !s->spread && !s->row;

	if (s->spread)
		v = s->value;
	if (!full)
		sim_fill(block, v, n < CHUNK ? n : CHUNK, s->bytes);
	while (n) {
		size_t m = n < CHUNK ? n : CHUNK;
		const char *from = full ? v : block;

		if (!stride) {
			s->fold(one, from, 1, m);
			s->fn(to, to, one, NULL, 1, 3, 0);
		} else if (stride == (int64_t)s->bytes) {
			s->fn(to, to, from, NULL, m, 0, 0);
		} else {
			for (size_t i = 0; i < m; i++) {
				char *p = to + (int64_t)i * stride;

				s->fn(p, p, from + i * s->bytes, NULL, 1, 3, 0);
			}
		}
		to += (int64_t)m * stride;
		v += m * s->bytes;
		n -= m;
	}
}

static void combine_run(void *arg, const struct run_of *run)
{
	const struct store *s = arg;
	uint64_t first = run->first, end = first + (uint64_t)run->n;
	char *to = run->to;

	while (first < end) {
		uint64_t n = end - first;

		if (s->row && n > s->cols - first % s->cols)
			n = s->cols - first % s->cols;
		combine_part(s, to, run->stride, first, n);
		to += (int64_t)n * run->stride;
		first += n;
	}
}

void sim_tile_out(const struct sim_ref *ref, uint8_t *first,
		  const struct sim_tile *tile, const void *value, bool is_spread,
		  bool is_row, unsigned combine)
{
	char *to = (char *)sim_tile_at(ref, first, tile);
	struct store s = {
		.value = value, .bytes = elem_bytes(ref->elem), .cols = tile->cols,
		.spread = is_spread, .row = is_row && tile->rows > 1,
	};
	struct sim_box x = { 0 };

	s.spread |= is_row && tile->rows == 1;
	if (combine == ISA_STORE && !s.spread && !s.row &&
	    sim_tile_kind(ref, tile) == SIM_TILE_DENSE) {
		memcpy(to, value, (size_t)tile->rows * tile->cols * s.bytes);
		return;
	}
	/* rows of a row value must not merge with what follows */
	if (s.row) {
		x.count[0] = tile->rows;
		x.stride[0] = row_stride(ref, tile);
		x.n = 1;
		for (unsigned k = 0; k < tile->col_dims; k++) {
			x.count[x.n] = tile->col_dim[k];
			x.stride[x.n++] = ref->stride[tile->rank - tile->col_dims + k];
		}
	} else {
		x = box_of(ref, tile);
	}
	if (combine != ISA_STORE) {
		struct isa_uop u = { .op = (uint8_t)sim_combine_uop(combine),
				     .elem = ref->elem };

		s.fn = sim_uop_kernel(SIM_PORTABLE, &u);
		s.fold = sim_uop_fold(SIM_PORTABLE, u.op, u.elem);
		each_run(&x, to, combine_run, &s, NULL);
	} else if (!s.spread && !s.row) {
		copy_box(&x, to, value, false, s.bytes);
	} else {
		each_run(&x, to, store_run, &s, NULL);
	}
}

void sim_out_identity(const struct sim_run *run, const struct sim_ref *ref, uint8_t *first,
		      unsigned rank, const int64_t *dim, unsigned combine)
{
	_Alignas(16) char one[16];
	struct store s = {
		.value = one, .bytes = elem_bytes(ref->elem), .cols = 1, .spread = true,
	};
	struct sim_box x = { 0 };

	sim_uop_identity(sim_combine_uop(combine), ref->elem, one);
	for (unsigned d = 0; d < rank; d++) {
		if (!ref->stride[d])
			continue;
		if (!dim[d])
			return;
		add_dim(&x, dim[d], ref->stride[d]);
	}
	each_run(&x, (char *)first, store_run, &s, run);
}
