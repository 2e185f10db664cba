/* SPDX-License-Identifier: Apache-2.0 */
/*
 * COPY: elements from one strided place to another, and RPUT, whose destination is in
 * another chip's memory.
 *
 * The order of points is free, so prepare() turns the space around: dims of one
 * element go, dims are ordered by the destination's strides, neighbours that run on
 * merge, and a contiguous run of 2, 4, 8 or 16 bytes becomes one larger element. What
 * remains is either rows, contiguous or strided (ROWS), or a transposition: one dim
 * contiguous in the source, another in the destination (TURN). Both are cut into
 * units that lanes take. Rows of a few elements that lie close to each other in the
 * source, as colours that are reversed do, go by permutations of registers.
 *
 * Operands that overlap otherwise than point by point give undefined contents, but
 * nothing worse: rows move by memmove.
 */
#include <string.h>

#include "hal/sim/core/body.h"
#include "hal/sim/core/core.h"
#include "hal/sim/kernels/transpose.h"

#define PIECE_BYTES (64 << 10)	/* of a long row, for one lane */
#define SQUARE 64		/* elements of a TURN's unit each way, if it is a square */
#define GRAIN_BYTES (32 << 10)
#define MOST_SHORT 2048		/* bytes of a row, to be copied among others like it */
#define MOST_EACH 16		/* elements of one that do not lie side by side */
/* Elements of 4 bytes, of a row that is picked from registers rather than one by one; of every
 * fourth one. */
#define LEAST_COLUMN 9
#define LEAST_FOURTHS 16
/* Rather than turned, with the rows between them: of three, and at most; and what three reach over,
 * which the nearest cache is to hold. */
#define LEAST_OF_THREE 16
#define LONG_COLUMN 256
#define MOST_OF_THREE (32 << 10)
#define SHUFFLED_ROWS 4		/* so many at least that places of their elements are loaded for */
#define MOST_MOVED 64u		/* bytes of a SIM_BRIEF_MOVE */
/* What goes to a memory of this size, in copies and rows of these, goes past the caches if the last
 * one cannot hold both its source and what is made; to other chips, if what the program works on,
 * theirs included, is larger than that by a quarter. Otherwise whoever reads it next finds it
 * there. */
#define STREAM_MEMORY (4u << 20)
#define STREAM_BYTES (256u << 10)
#define STREAM_ROW 4096

enum kind { NOTHING, ROWS, TURN };

struct copy_plan;
/* Rows of so many planes of so many, all as the plan's last dims have them. */
typedef void copy_few_fn(const struct copy_plan *p, char *to, const char *from, int64_t planes,
			 int64_t rows);

struct copy_plan {
	struct sim_move move;	/* first, for who runs it by that alone: see brief() */
	enum kind kind;
	unsigned rank;		/* what is left */
	unsigned bytes;		/* of an element */
	int64_t dim[ISA_MAX_RANK], from[ISA_MAX_RANK], to[ISA_MAX_RANK];
	int64_t piece;		/* ROWS: elements of the last dim in one unit */
	copy_few_fn *few;	/* ROWS of which each is a unit and short; else NULL */
	sim_column_fn *column;	/* what copies a row, or NULL; ROWS use it */
	sim_shuffle_fn *rows;	/* ROWS: what permutes short ones, or NULL */
	struct sim_shuffle shuffle;
	unsigned turned;	/* TURN: the dim contiguous in the source; the last one is
				 * so in the destination */
	int64_t across, down;	/* TURN: a unit's elements of dim `turned` and of the last */
	uint64_t units, grain, ns;
	sim_transpose_fn *transpose;
	uint64_t total;		/* bytes */
	bool is_put;		/* dst is in a window */
	bool may_stream;	/* ROWS that run on in memory, long ones and many */
};

struct copy_job {
	struct sim_run *run;
	const struct copy_plan *p;
	const char *from;
	char *to;
	bool streams;		/* past the caches */
};

/* ---- rows ---- */

/* The shapes of a row that compilers make vectors of are spelled out. */
#define ROW(bytes) \
static void row_##bytes(char *to, int64_t ts, const char *from, int64_t fs, int64_t n) \
{ \
	cell##bytes *d = (cell##bytes *)to; \
	const cell##bytes *s = (const cell##bytes *)from; \
	if (ts == (bytes) && !fs) { \
		const cell##bytes one = *s; \
		for (int64_t i = 0; i < n; i++) \
			d[i] = one; \
	} else if (ts == (bytes) && fs == -(bytes)) { \
		for (int64_t i = 0; i < n; i++) \
			d[i] = s[-i]; \
	} else if (ts == (bytes) && fs == 2 * (bytes)) { \
		for (int64_t i = 0; i < n; i++) \
			d[i] = s[2 * i]; \
	} else { \
		for (int64_t i = 0; i < n; i++) \
			*(cell##bytes *)(to + i * ts) = \
				*(const cell##bytes *)(from + i * fs); \
	} \
}
ROW(1)
ROW(2)
ROW(4)
ROW(8)
ROW(16)

static void copy_strided(char *to, int64_t ts, const char *from, int64_t fs, int64_t n,
			 unsigned bytes)
{
	switch (bytes) {
	case 1:
		row_1(to, ts, from, fs, n);
		break;
	case 2:
		row_2(to, ts, from, fs, n);
		break;
	case 4:
		row_4(to, ts, from, fs, n);
		break;
	case 8:
		row_8(to, ts, from, fs, n);
		break;
	default:
		row_16(to, ts, from, fs, n);
		break;
	}
}

/* Where a row is; the last dims count fastest. */
struct row_place {
	int64_t at[ISA_MAX_RANK];
	const char *from;
	char *to;
};

static struct row_place seek_row(const struct copy_job *job, uint64_t row)
{
	const struct copy_plan *p = job->p;
	struct row_place x = { .from = job->from, .to = job->to };

	for (unsigned d = p->rank - 1; d-- > 0; row /= (uint64_t)p->dim[d]) {
		x.at[d] = (int64_t)(row % (uint64_t)p->dim[d]);
		x.from += x.at[d] * p->from[d];
		x.to += x.at[d] * p->to[d];
	}
	return x;
}

/* n steps along dim d, which do not lead past its end. */
static void step_rows(const struct copy_plan *p, struct row_place *x, unsigned d, int64_t n)
{
	for (;; n = 1) {
		x->from += n * p->from[d];
		x->to += n * p->to[d];
		x->at[d] += n;
		if (x->at[d] < p->dim[d] || !d)
			return;
		x->from -= p->from[d] * p->dim[d];
		x->to -= p->to[d] * p->dim[d];
		x->at[d--] = 0;
	}
}

/* Units of ROWS: rows, long ones in pieces. */
static void run_rows(void *arg, uint64_t begin, uint64_t end, unsigned lane)
{
	const struct copy_job *job = arg;
	const struct copy_plan *p = job->p;
	unsigned last = p->rank - 1;
	int64_t n = p->dim[last], fs = p->from[last], ts = p->to[last], bytes = p->bytes;
	uint64_t pieces = (uint64_t)((n + p->piece - 1) / p->piece);
	int64_t part = (int64_t)(begin % pieces);
	struct row_place x = seek_row(job, begin / pieces);

	(void)lane;
	for (uint64_t done = begin; done < end; done++) {
		int64_t first = part * p->piece;
		int64_t m = n - first < p->piece ? n - first : p->piece;

		if (!((done - begin) & 15) && sim_stopped(job->run))
			break;
		if (job->streams)
			sim_stream(x.to + first * bytes, x.from + first * bytes,
				   (size_t)(m * bytes));
		else if (fs == bytes && ts == bytes)
			memmove(x.to + first * bytes, x.from + first * bytes,
				(size_t)(m * bytes));
		else if (p->column)
			p->column(x.to + first * ts, x.from + first * fs, (size_t)m);
		else
			copy_strided(x.to + first * ts, ts, x.from + first * fs, fs, m,
				     p->bytes);
		if (++part < (int64_t)pieces)
			continue;
		part = 0;
		if (last)
			step_rows(p, &x, last - 1, 1);
	}
	if (job->streams)
		sim_stream_end();
}

/* ---- short rows ---- */

typedef uint64_t cells __attribute__((vector_size(16), aligned(1), may_alias));
typedef struct { cells part[2]; } cells2;

/* The first and the last bytes of a row, which meet: a row of T's size to twice that. */
#define ENDS(T) \
do { \
	T head = *(const T *)(const void *)from; \
	T tail = *(const T *)(const void *)(from + run - sizeof(T)); \
	*(T *)(void *)to = head; \
	*(T *)(void *)(to + run - sizeof(T)) = tail; \
} while (0)
/* n elements wherever they are: few, of which a call would take longer. */
#define EACH(T) \
do { \
	for (int64_t i = 0; i < n; i++) \
		*(T *)(void *)(to + i * ts) = *(const T *)(const void *)(from + i * fs); \
} while (0)
#define SHORT_ROWS(name, ROW) \
static void short_##name(const struct copy_plan *p, char *to, const char *from, \
			 int64_t planes, int64_t rows) \
{ \
	const unsigned last = p->rank - 1; \
	const int64_t n = p->dim[last], fs = p->from[last], ts = p->to[last]; \
	const int64_t run = n * p->bytes, from_row = p->from[last - 1]; \
	const int64_t to_row = p->to[last - 1]; \
	const int64_t from_plane = last > 1 ? p->from[last - 2] - rows * from_row : 0; \
	const int64_t to_plane = last > 1 ? p->to[last - 2] - rows * to_row : 0; \
	(void)n, (void)run, (void)fs, (void)ts; \
	for (; planes; planes--, from += from_plane, to += to_plane) \
		for (int64_t r = 0; r < rows; r++, from += from_row, to += to_row) \
			ROW; \
}
SHORT_ROWS(run_2, ENDS(cell2))
SHORT_ROWS(run_4, ENDS(cell4))
SHORT_ROWS(run_8, ENDS(cell8))
SHORT_ROWS(run_16, ENDS(cells))
SHORT_ROWS(run_32, ENDS(cells2))
SHORT_ROWS(run, memmove(to, from, (size_t)run))
SHORT_ROWS(column, p->column(to, from, (size_t)n))
SHORT_ROWS(each_1, EACH(cell1))
SHORT_ROWS(each_2, EACH(cell2))
SHORT_ROWS(each_4, EACH(cell4))
SHORT_ROWS(each_8, EACH(cell8))
SHORT_ROWS(each_16, EACH(cells))

/* Rows side by side, which go by permutations, or are of one element over and over. */
static void short_at_once(const struct copy_plan *p, char *to, const char *from, int64_t planes,
			  int64_t rows)
{
	unsigned last = p->rank - 1;

	for (; planes; planes--) {
		if (p->rows)
			p->rows(to, from, (size_t)rows, &p->shuffle);
		else
			sim_fill_rows(to, from, (size_t)rows, (size_t)p->dim[last], p->bytes);
		from += last > 1 ? p->from[last - 2] : 0;
		to += last > 1 ? p->to[last - 2] : 0;
	}
}

/* Units: rows that are not cut, as many at a time as are alike. */
static void run_short(void *arg, uint64_t begin, uint64_t end, unsigned lane)
{
	const struct copy_job *job = arg;
	const struct copy_plan *p = job->p;
	unsigned d = p->rank - 2;
	int64_t bytes = p->dim[d + 1] * p->bytes, most = 1 + GRAIN_BYTES / bytes;
	struct row_place x = seek_row(job, begin);

	(void)lane;
	while (begin < end && !sim_stopped(job->run)) {
		int64_t left = (int64_t)(end - begin), rows = p->dim[d] - x.at[d], planes = 1;

		left = left < most ? left : most;
		if (d && !x.at[d] && rows <= left) {
			planes = p->dim[d - 1] - x.at[d - 1];
			planes = planes < left / rows ? planes : left / rows;
			p->few(p, x.to, x.from, planes, rows);
			step_rows(p, &x, d - 1, planes);
		} else {
			rows = rows < left ? rows : left;
			p->few(p, x.to, x.from, 1, rows);
			step_rows(p, &x, d, rows);
		}
		begin += (uint64_t)(planes * rows);
	}
}

/* ---- transposition ---- */

static uint64_t blocks_of(int64_t n, int64_t each)
{
	return (uint64_t)((n + each - 1) / each);
}

/* Units of TURN: p->across x p->down elements of the two dims, those along the source's
 * rows fastest; the other dims count from the last. */
static void run_turn(void *arg, uint64_t begin, uint64_t end, unsigned lane)
{
	const struct copy_job *job = arg;
	const struct copy_plan *p = job->p;
	unsigned last = p->rank - 1, t = p->turned;
	uint64_t across = blocks_of(p->dim[t], p->across);
	uint64_t down = blocks_of(p->dim[last], p->down);

	(void)lane;
	for (; begin < end && !sim_stopped(job->run); begin++) {
		int64_t c = (int64_t)(begin % across) * p->across;
		int64_t r = (int64_t)(begin / across % down) * p->down;
		uint64_t plane = begin / across / down;
		const char *from = job->from + c * p->from[t] + r * p->from[last];
		char *to = job->to + c * p->to[t] + r * p->to[last];
		int64_t rows = p->dim[last] - r, cols = p->dim[t] - c;

		for (unsigned d = last; d-- > 0;) {
			int64_t i;

			if (d == t)
				continue;
			i = (int64_t)(plane % (uint64_t)p->dim[d]);
			plane /= (uint64_t)p->dim[d];
			from += i * p->from[d];
			to += i * p->to[d];
		}
		p->transpose(to, p->to[t], from, p->from[last],
			     (size_t)(rows < p->down ? rows : p->down),
			     (size_t)(cols < p->across ? cols : p->across));
	}
}

/* ---- prepare ---- */

static int64_t magnitude(int64_t x)
{
	return x < 0 ? -x : x;
}

static void remove_dim(struct copy_plan *p, unsigned d)
{
	p->rank--;
	for (; d < p->rank; d++) {
		p->dim[d] = p->dim[d + 1];
		p->from[d] = p->from[d + 1];
		p->to[d] = p->to[d + 1];
	}
}

static void swap(int64_t *x, unsigned a, unsigned b)
{
	int64_t t = x[a];

	x[a] = x[b];
	x[b] = t;
}

/* Whether dim a should be outside of dim b. */
static bool is_outer(const struct copy_plan *p, unsigned a, unsigned b)
{
	int64_t x = magnitude(p->to[a]), y = magnitude(p->to[b]);

	return x != y ? x > y : magnitude(p->from[a]) > magnitude(p->from[b]);
}

static void simplify(struct copy_plan *p)
{
	for (unsigned d = p->rank; d-- > 0;)
		if (p->dim[d] == 1)
			remove_dim(p, d);
	for (unsigned i = 1; i < p->rank; i++) {
		for (unsigned d = i; d > 0 && is_outer(p, d, d - 1); d--) {
			swap(p->dim, d, d - 1);
			swap(p->from, d, d - 1);
			swap(p->to, d, d - 1);
		}
	}
	for (unsigned d = p->rank; d-- > 1;) {
		int64_t n = p->dim[d], from, to;

		if (__builtin_mul_overflow(n, p->from[d], &from) ||
		    __builtin_mul_overflow(n, p->to[d], &to) ||
		    from != p->from[d - 1] || to != p->to[d - 1])
			continue;
		p->dim[d - 1] *= n;
		p->from[d - 1] = p->from[d];
		p->to[d - 1] = p->to[d];
		remove_dim(p, d);
	}
	if (!p->rank) {
		p->rank = 1;
		p->dim[0] = 1;
		p->from[0] = p->to[0] = p->bytes;
	}
}

/* A short contiguous run becomes one element: as the only element of the last dim,
 * which then goes. */
static void widen(struct copy_plan *p)
{
	unsigned last = p->rank - 1;
	int64_t run = p->dim[last] * p->bytes;

	if (p->from[last] != p->bytes || p->to[last] != p->bytes || run > 16 ||
	    (run & (run - 1)) || p->rank < 2)
		return;
	p->bytes = (unsigned)run;
	remove_dim(p, last);
}

/* How many of the last dims lie side by side in the destination. */
static unsigned dense_dims(const struct copy_plan *p)
{
	int64_t step = p->bytes;
	unsigned d = p->rank;

	for (; d && p->to[d - 1] == step; d--)
		step *= p->dim[d - 1];
	return p->rank - d;
}

/* Whether the last dims are a short row that permutations copy, which then is the last dim. */
static bool find_shuffle(const struct sim_load *load, struct copy_plan *p)
{
	struct sim_box x = { .n = dense_dims(p), .repeat = 1, .bytes = p->bytes };
	unsigned outer = p->rank - x.n, last = p->rank - 1;
	int64_t n = 1;

	if (x.n < 2)
		return false;
	memcpy(x.count, p->dim + outer, x.n * sizeof(*x.count));
	memcpy(x.stride, p->from + outer, x.n * sizeof(*x.stride));
	sim_box_shuffle(&x, load->cpu->path, &p->shuffle);
	if (!x.rows || x.count[x.inner - 1] < SHUFFLED_ROWS)
		return false;
	/* One row at a time that lies as it shall is copied as such. */
	if (x.inner + 1 == x.n && p->from[last] == p->bytes && p->shuffle.rows == 1)
		return false;
	p->rows = x.rows;
	p->few = short_at_once;
	last = outer + x.inner;
	for (unsigned d = last; d < p->rank; d++)
		n *= p->dim[d];
	p->rank = last + 1;
	p->dim[last] = n;
	p->from[last] = p->to[last] = p->bytes;
	return true;
}

/* Whether each row is of an element over and over, the next one of the next. With fewer bytes each
 * a transposition is better. */
static bool is_same(const struct copy_plan *p)
{
	unsigned last = p->rank - 1;

	return last && !p->from[last] && p->to[last] == p->bytes && p->bytes <= 8 &&
	       p->dim[last] < SIM_LEAST_FILL && p->dim[last] * p->bytes >= SIM_LEAST_REPEAT &&
	       p->from[last - 1] == p->bytes && p->to[last - 1] == p->dim[last] * p->bytes;
}

/* The dim that is contiguous in the source while the last is so in the destination. The last may
 * stand still there: then each element comes a few times. */
static int find_turn(const struct copy_plan *p)
{
	unsigned last = p->rank - 1;

	if (p->to[last] != p->bytes || p->from[last] == p->bytes || is_same(p) ||
	    (!p->from[last] && p->dim[last] >= SIM_LEAST_FILL))
		return -1;
	for (unsigned d = last; d-- > 0;)
		if (p->from[d] == p->bytes && p->dim[d] > 1)
			return (int)d;
	return -1;
}

/* As many of n elements as whole lines have, one line at least. */
static int64_t whole_lines(int64_t n, int64_t line)
{
	return n < line ? line : n / line * line;
}

/* The block of a unit of TURN, as it is walked: a line of the source's rows by many of these, or a
 * square. Where there are few rows or columns, more of the others, so that a unit is worth its
 * start. */
static void cut_blocks(struct copy_plan *p)
{
	int64_t rows = p->dim[p->rank - 1], cols = p->dim[p->turned];
	int64_t line = sim_is_by_strips(p->to[p->turned], p->bytes) ? SIM_LINE / p->bytes : SQUARE;

	p->across = cols < line ? cols : line;
	p->down = whole_lines(SQUARE * SQUARE / p->across, line);
	if (rows < p->down)
		p->across = whole_lines(SQUARE * SQUARE / rows, line);
}

/* Whether a row's elements are picked from registers, a few of them at a time. */
static bool is_picked(const struct sim_load *load, const struct copy_plan *p)
{
	unsigned last = p->rank - 1;

	if (load->cpu->path != SIM_AVX512 || p->bytes != 4 || !p->column)
		return false;
	return p->dim[last] >= (magnitude(p->from[last]) < 4 * SIM_MOST_STEP ? LEAST_COLUMN :
				LEAST_FOURTHS);
}

/* Whether rows whose elements take turns in memory, along dim `turn`, are sooner picked than
 * turned. */
static bool is_unzipped(const struct sim_load *load, const struct copy_plan *p, int turn)
{
	unsigned last = p->rank - 1;
	int64_t step, times;

	if (turn < 0 || !is_picked(load, p) || p->dim[last] > LONG_COLUMN)
		return false;
	step = magnitude(p->from[last]) / 4;
	if (step == 2)
		return true;
	times = MOST_OF_THREE / (step * 4 * p->dim[last]);
	for (unsigned d = (unsigned)turn + 1; d < last; d++)
		times /= p->dim[d];
	return step == 3 && p->dim[last] >= LEAST_OF_THREE && times;
}

/* What copies rows that are so short that the way to each of them counts. */
static copy_few_fn *few_of(const struct sim_load *load, const struct copy_plan *p)
{
	static copy_few_fn *const each[] = {
		short_each_1, short_each_2, short_each_4, short_each_8, short_each_16,
	};
	unsigned last = p->rank - 1;
	int64_t run = p->dim[last] * p->bytes, most = MOST_EACH;

	if (is_same(p))
		return short_at_once;
	if (!last || run > MOST_SHORT)
		return NULL;
	/* row_1() takes every other byte by registers, even so few */
	if (p->bytes == 1 && p->from[last] == 2 && p->to[last] == 1)
		most = MOST_EACH / 2;
	if (is_picked(load, p))
		most = LEAST_COLUMN - 1;
	if (p->from[last] != p->bytes || p->to[last] != p->bytes)
		return p->dim[last] <= most ? each[__builtin_ctz(p->bytes)] :
			p->column ? short_column : NULL;
	if (run < 2 || run > 64)
		return run < 2 ? short_each_1 : short_run;
	if (run > 32)
		return short_run_32;
	return run < 4 ? short_run_2 : run < 8 ? short_run_4 : run < 16 ? short_run_8 :
		short_run_16;
}

static void choose(struct sim_load *load, struct copy_plan *p)
{
	bool is_shuffled = find_shuffle(load, p);
	unsigned last = p->rank - 1;
	int turn = is_shuffled ? -1 : find_turn(p);
	uint64_t each;

	if (p->to[last] == p->bytes && !(p->from[last] % p->bytes))
		p->column = sim_column(load->cpu->path, p->bytes, p->from[last] / p->bytes);
	if (is_unzipped(load, p, turn))
		turn = -1;
	p->units = 1;
	for (unsigned d = 0; d < last; d++)
		if ((int)d != turn)
			p->units *= (uint64_t)p->dim[d];
	if (turn >= 0) {
		p->kind = TURN;
		p->turned = (unsigned)turn;
		p->transpose = sim_transpose(load->cpu->path, p->bytes);
		cut_blocks(p);
		p->units *= blocks_of(p->dim[turn], p->across) *
			    blocks_of(p->dim[last], p->down);
	} else {
		p->kind = ROWS;
		p->piece = PIECE_BYTES / p->bytes;
		p->may_stream = p->from[last] == p->bytes && p->to[last] == p->bytes &&
				p->dim[last] >= STREAM_ROW / p->bytes && p->total >= STREAM_BYTES;
		p->units *= (uint64_t)((p->dim[last] + p->piece - 1) / p->piece);
		if (!is_shuffled)
			p->few = few_of(load, p);
	}
	each = p->total / p->units + 1;
	p->grain = each > GRAIN_BYTES ? 1 : GRAIN_BYTES / each;
	p->ns = p->total / (turn >= 0 ? 4 : 8) +
		(is_shuffled ? p->units / 2 : p->units * (p->few ? 2 : 4));
	if (turn < 0 && (p->from[last] != p->bytes || p->to[last] != p->bytes))
		p->ns += p->total / p->bytes / 2;
}

/* What p is for the scalar unit's loop. */
static enum sim_brief brief(const struct copy_plan *p)
{
	if (p->is_put || p->ns > SIM_BRIEF_NS)
		return SIM_NOT_BRIEF;
	return p->kind == ROWS && p->rank == 1 && p->from[0] == p->bytes &&
	       p->to[0] == p->bytes && p->total <= MOST_MOVED ? SIM_BRIEF_MOVE : SIM_BRIEF;
}

static int check_fields(struct sim_load *load, const struct isa_copy *c)
{
	static const uint8_t none[sizeof(c->zero)];
	unsigned b = c->elem_bytes;

	if (c->rank > ISA_MAX_RANK || memcmp(c->zero, none, sizeof(none)))
		return sim_refuse(load, HW_ST_BAD_PROGRAM, "copy: a field is out of range");
	if (b != 1 && b != 2 && b != 4 && b != 8 && b != 16)
		return sim_refuse(load, HW_ST_BAD_PROGRAM, "copy: elements of %u bytes; "
				  "1, 2, 4, 8 or 16", b);
	return 0;
}

static int prepare(struct sim_load *load, const struct isa_insn *insn, const void **plan)
{
	const struct isa_copy *c = (const void *)insn;
	struct copy_plan *p = arena_alloc(load->arena, sizeof(*p));
	int ret;

	if (!p)
		return sim_refuse(load, HW_ST_NO_ROOM, "no memory for a plan");
	ret = check_fields(load, c);
	if (!ret)
		ret = sim_ref(load, &c->src, 0, false, c->elem_bytes, c->rank, c->dim, NULL,
			      0, &p->move.src);
	p->is_put = insn->op == ISA_RPUT;
	if (!ret)
		ret = p->is_put ? sim_peer_ref(load, &c->dst, 1, c->elem_bytes, c->rank, c->dim,
					       &p->move.dst) :
			sim_ref(load, &c->dst, 1, true, c->elem_bytes, c->rank, c->dim, NULL, 0,
				&p->move.dst);
	if (ret)
		return ret;
	*plan = p;
	p->rank = c->rank;
	p->bytes = c->elem_bytes;
	p->total = p->bytes;
	for (unsigned d = 0; d < c->rank; d++) {
		p->dim[d] = c->dim[d];
		p->from[d] = p->move.src.stride[d];
		p->to[d] = p->move.dst.stride[d];
		if (__builtin_mul_overflow(p->total, (uint64_t)p->dim[d], &p->total))
			return sim_refuse(load, HW_ST_BAD_PROGRAM, "copy: too many elements");
	}
	if (!p->total)
		return 0;
	simplify(p);
	widen(p);
	choose(load, p);
	p->move.bytes = (uint32_t)p->total;
	load->brief = brief(p);
	return 0;
}

static void move(struct sim_run *run, const struct copy_plan *p, struct copy_job *job)
{
	sim_parallel(run, p->units, p->grain, p->ns, p->kind == TURN ? run_turn :
		     p->few ? run_short : run_rows, job);
}

static int put(struct sim_run *run, const struct copy_plan *p, struct copy_job *job)
{
	if (!sim_reach_begin(run, &p->move.dst))
		return run->fault.status;
	run->read_bytes += p->total;
	move(run, p, job);
	return sim_reach_end(run, &p->move.dst, p->total) ? 0 : run->fault.status;
}

static int run(struct sim_run *run, const void *plan)
{
	const struct copy_plan *p = plan;
	struct copy_job job = { .run = run, .p = p };

	job.from = (const char *)sim_at(run, &p->move.src);
	job.to = job.from ? (char *)sim_at(run, &p->move.dst) : NULL;
	if (!job.to)
		return run->fault.status;
	if (p->kind == NOTHING)
		return 0;
	job.streams = p->may_stream && run->bytes[p->move.dst.binding] >= STREAM_MEMORY &&
		      (p->is_put ? run->all_bytes / 5 > run->cpu->l3_bytes / 4 :
		       p->total > run->cpu->l3_bytes / 2);
	if (p->is_put)
		return put(run, p, &job);
	run->read_bytes += p->total;
	run->write_bytes += p->total;
	move(run, p, &job);
	return 0;
}

const struct sim_family sim_family_copy = { .prepare = prepare, .run = run };
