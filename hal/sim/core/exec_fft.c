/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FFT: lines go through vectors side by side (fft.h).
 *
 * A long line of n = p * q points is first q lines of p points, q apart, which are multiplied by
 * twiddle factors, and then p lines of q points: each part stays in a cache, lanes may share
 * it, and lines need no neighbours. Lines of real numbers are half as many complex ones, of even
 * elements and odd ones; those of odd length go as complex ones. What is not side by side in
 * memory as its kind wants it is brought to a lane's own memory first, some lines at a time.
 *
 * Which of these is done hangs on the instruction alone, so that every path and any number of
 * lanes give the same bits.
 */
#include <stdlib.h>
#include <string.h>

#include "hal/sim/core/core.h"
#include "hal/sim/fft/fft_size.h"

#define SHORT_ROW 256		/* points of a line that goes with others, one behind the other; */
#define SHORT_COLUMN 8192	/* beside each other */
#define SHARED_LINE 16384	/* points of a line that lanes share if there are few */
#define TOGETHER ((size_t)4 << 20)	/* bytes of lines in a lane's memory, about */

/* Numbers along a line, and from a line to the next along each dim but the axis: in reals. */
struct side {
	struct sim_ref ref;
	bool is_real;
	int64_t count, step, stride[ISA_MAX_RANK];
};

struct fft_plan {
	const struct sim_fft_fns *fns;
	bool is_wide;		/* f64 */
	bool is_inverse, is_half;	/* is_half: real numbers as half as many complex ones */
	bool is_long;		/* by first and second, else by first alone */
	bool is_brought;	/* lines go through a lane's memory */
	bool is_shared;		/* lanes share a line */
	int64_t n;		/* complex points of a transform */
	double scale;
	struct sim_fft_size first, second;
	const void *re, *im;	/* twiddle factors: [first.n][pitch] */
	int64_t pitch;
	const void *turn;	/* sim_fft_fns.untangle's */
	unsigned rank;		/* dims but the axis, the last one runs along a group */
	int64_t dim[ISA_MAX_RANK];
	int64_t together, groups;	/* lines of a group; groups of all */
	size_t line_at[3];	/* of a lane's memory: lines before and after, and between */
	uint64_t ns, ops, read_bytes, write_bytes;
	struct side src, dst;
};

struct job {
	struct sim_run *run;
	const struct fft_plan *p;
	uint8_t *src, *dst;
};

/* ---- preparing ---- */

static int check_form(struct sim_load *load, const struct isa_fft *f)
{
	static const uint8_t zero[sizeof(f->zero)];
	bool from_real = f->src.elem == ELEM_F32 || f->src.elem == ELEM_F64;
	bool to_real = f->dst.elem == ELEM_F32 || f->dst.elem == ELEM_F64;
	bool is_inverse = f->insn.flags & ISA_FLAG_INVERSE;
	bool is_wide = f->src.elem == ELEM_F64 || f->src.elem == ELEM_C128;
	unsigned src = from_real ? is_wide ? ELEM_F64 : ELEM_F32 : is_wide ? ELEM_C128 : ELEM_C64;
	unsigned dst = to_real ? is_wide ? ELEM_F64 : ELEM_F32 : is_wide ? ELEM_C128 : ELEM_C64;

	if (!f->rank || f->rank > ISA_MAX_RANK || f->axis >= f->rank ||
	    memcmp(f->zero, zero, sizeof(zero)))
		return sim_refuse(load, HW_ST_BAD_PROGRAM, "fft along dim %u of %u", f->axis,
				  f->rank);
	if (f->src.elem != src || f->dst.elem != dst || (from_real && (to_real || is_inverse)) ||
	    (to_real && !is_inverse))
		return sim_refuse(load, HW_ST_BAD_PROGRAM, "%s fft of type %u to type %u",
				  is_inverse ? "inverse" : "forward", f->src.elem, f->dst.elem);
	if (f->dst.value || f->dst.combine || f->dst.flags || f->src.value || f->src.combine ||
	    f->src.flags)
		return sim_refuse(load, HW_ST_BAD_PROGRAM, "an fft's operand has a value, a way "
				  "to combine or flags");
	for (unsigned d = f->rank; d < ISA_MAX_RANK; d++)
		if (f->dim[d] != 1)
			return sim_refuse(load, HW_ST_BAD_PROGRAM, "dim %u is %lld", d,
					  (long long)f->dim[d]);
	if (!sim_is_countable(f->rank, f->dim) || !isa_fft_fits(f->dim[f->axis]))
		return sim_refuse(load, HW_ST_BAD_PROGRAM, "fft of %lld points",
				  (long long)f->dim[f->axis]);
	return 0;
}

static int refer(struct sim_load *load, const struct isa_fft *f, const struct isa_operand *op,
		 bool is_dst, int64_t count, struct side *side)
{
	unsigned elem = elem_class(op->elem) == ELEM_CLASS_FLOAT ? elem_bytes(op->elem) :
		elem_bytes(op->elem) / 2;
	int64_t dim[ISA_MAX_RANK];
	int ret;

	memcpy(dim, f->dim, sizeof(dim));
	dim[f->axis] = count;
	ret = sim_ref(load, op, is_dst, is_dst, 0, f->rank, dim, NULL, 0, &side->ref);
	side->is_real = elem_class(op->elem) == ELEM_CLASS_FLOAT;
	side->count = count;
	side->step = op->stride[f->axis] / (int64_t)elem;
	for (unsigned d = 0; d < f->rank; d++)
		side->stride[d] = op->stride[d] / (int64_t)elem;
	return ret;
}

static int64_t size_of(int64_t x)
{
	return x < 0 ? -x : x;
}

/* Dims but the axis: those of one element go, neighbours that run on in both operands become one,
 * and that of the smallest strides comes last. */
static void arrange(const struct isa_fft *f, struct fft_plan *p)
{
	struct side *a = &p->src, *b = &p->dst;
	unsigned n = 0, last = 0;

	for (unsigned d = 0; d < f->rank; d++) {
		if (d == f->axis || f->dim[d] == 1)
			continue;
		p->dim[n] = f->dim[d];
		a->stride[n] = a->stride[d];
		b->stride[n] = b->stride[d];
		if (n && a->stride[n - 1] == a->stride[n] * p->dim[n] &&
		    b->stride[n - 1] == b->stride[n] * p->dim[n]) {
			p->dim[n - 1] *= p->dim[n];
			a->stride[n - 1] = a->stride[n];
			b->stride[n - 1] = b->stride[n];
		} else {
			n++;
		}
	}
	if (!n) {
		p->dim[n] = 1;
		a->stride[n] = b->stride[n] = 0;
		n++;
	}
	for (unsigned d = 1; d < n; d++)
		if (size_of(b->stride[d]) < size_of(b->stride[last]))
			last = d;
	p->rank = n;
	for (unsigned d = last; d + 1 < n; d++) {
		int64_t dim = p->dim[d], from = a->stride[d], to = b->stride[d];

		p->dim[d] = p->dim[d + 1];
		a->stride[d] = a->stride[d + 1];
		b->stride[d] = b->stride[d + 1];
		p->dim[d + 1] = dim;
		a->stride[d + 1] = from;
		b->stride[d + 1] = to;
	}
}

/* Reals of a number. */
static int64_t parts_of(const struct side *s)
{
	return s->is_real ? 1 : 2;
}

/* Whether the numbers of a line are side by side as the transform takes them. */
static bool runs_on(const struct side *s)
{
	return s->step == parts_of(s);
}

/* The factors of a long line that are least apart. */
static int64_t first_of(int64_t n)
{
	int64_t best = 1;

	for (int64_t p = 1; p * p <= n; p++)
		if (n % p == 0)
			best = p;
	return best;
}

static void choose(const struct sim_cpu *cpu, struct fft_plan *p)
{
	bool is_row = runs_on(&p->src) || runs_on(&p->dst);
	int64_t lines = 1, last = p->dim[p->rank - 1], groups, first;
	size_t bytes = (size_t)p->n * (p->is_wide ? 16 : 8);

	for (unsigned d = 0; d < p->rank; d++)
		lines *= p->dim[d];
	first = p->n > (is_row ? SHORT_ROW : SHORT_COLUMN) || lines == 1 ? first_of(p->n) : 1;
	p->is_long = first >= 8;
	p->first.n = p->is_long ? first : p->n;
	p->second.n = p->n / p->first.n;
	p->is_brought = p->src.is_real || p->dst.is_real ||
			(p->is_long && !(runs_on(&p->src) && runs_on(&p->dst)));
	p->is_shared = p->n >= SHARED_LINE && lines < cpu->lanes;
	p->together = p->is_long ? 1 : p->fns->width;
	/* Lines beside each other come, or go, in the cache lines of all. */
	if (p->is_long && p->is_brought && !p->is_shared &&
	    !(runs_on(&p->src) && runs_on(&p->dst)))
		p->together = p->fns->width;
	while (p->is_long && p->together > 1 && (size_t)p->together * bytes > TOGETHER)
		p->together--;
	groups = (last - 1) / p->together + 1;
	p->groups = last ? groups : 0;
	for (unsigned d = 0; d + 1 < p->rank; d++)
		p->groups *= p->dim[d];
	p->ns = (uint64_t)(lines * p->n) * (cpu->path == SIM_PORTABLE ? 4 : 1);
	for (int64_t k = p->n; k > 1; k /= 2)
		p->ops += 5 * (uint64_t)(lines * p->n);
	p->read_bytes = (uint64_t)(lines * p->src.count) * elem_bytes(p->src.ref.elem);
	p->write_bytes = (uint64_t)(lines * p->dst.count) * elem_bytes(p->dst.ref.elem);
}

/* Rows of twiddle factors, so long that a vector may start at each. */
static int make_twiddles(struct sim_load *load, const double *roots, int64_t of,
			 struct fft_plan *p)
{
	int64_t rows = p->first.n, cols = p->second.n;
	size_t bytes = p->is_wide ? 8 : 4;
	void *re, *im;

	p->pitch = cols + SIM_FFT_WIDE;
	re = arena_array(load->arena, (size_t)(rows * p->pitch), bytes);
	im = arena_array(load->arena, (size_t)(rows * p->pitch), bytes);
	for (int64_t i = 0; re && im && i < rows; i++)
		for (int64_t k = 0; k < cols; k++) {
			const double *w = roots + 2 * (of / p->n) * (i * k);

			sim_fft_put(p->is_wide, re, i * p->pitch + k, w[0]);
			sim_fft_put(p->is_wide, im, i * p->pitch + k, w[1]);
		}
	p->re = re;
	p->im = im;
	return re && im ? 0 : -1;
}

/* -i w^k / 2 on the way from real numbers, i / w^k on the way back, w a root of twice as many. */
static int make_turn(struct sim_load *load, const double *roots, struct fft_plan *p)
{
	int64_t n = p->n / 2 + 1;
	void *turn = arena_array(load->arena, (size_t)n, p->is_wide ? 32 : 16);

	for (int64_t k = 0; turn && k < n; k++) {
		double re = (p->is_inverse ? 1 : .5) * roots[2 * k + 1];
		double im = (p->is_inverse ? 1 : -.5) * roots[2 * k];

		sim_fft_put(p->is_wide, turn, 2 * k, re);
		sim_fft_put(p->is_wide, turn, 2 * k + 1, re);
		sim_fft_put(p->is_wide, turn, 2 * (n + k), -im);
		sim_fft_put(p->is_wide, turn, 2 * (n + k) + 1, im);
	}
	p->turn = turn;
	return turn ? 0 : -1;
}

static int make_tables(struct sim_load *load, struct fft_plan *p)
{
	int64_t of = p->is_half ? 2 * p->n : p->n;
	double *roots = malloc((size_t)of * 2 * sizeof(*roots));
	int ret = roots ? 0 : -1;

	if (!ret)
		sim_fft_roots(of, roots);
	if (!ret)
		ret = sim_fft_size_init(load->arena, p->is_wide, p->first.n, roots, of, &p->first);
	if (!ret && p->is_long)
		ret = sim_fft_size_init(load->arena, p->is_wide, p->second.n, roots, of,
					&p->second);
	if (!ret && p->is_long)
		ret = make_twiddles(load, roots, of, p);
	if (!ret && p->is_half)
		ret = make_turn(load, roots, p);
	free(roots);
	return ret ? sim_refuse(load, HW_ST_NO_ROOM, "no memory for tables") : 0;
}

static size_t up(size_t n)
{
	return (n + 63) & ~(size_t)63;
}

static void lay_out(struct sim_load *load, struct fft_plan *p)
{
	size_t room = sim_fft_room(p->first.n), at = 0;
	/* A real line's spectrum is one number longer. */
	size_t line = ((size_t)p->n + 1) * (p->is_wide ? 16 : 8);

	if (p->is_long && sim_fft_room(p->second.n) > room)
		room = sim_fft_room(p->second.n);
	for (unsigned k = 0; k < 3; k++) {
		bool is_used = k == 2 ? p->is_long : p->is_brought;

		p->line_at[k] = at;
		at += is_used ? up(line * (k == 2 ? 1 : (size_t)p->together)) : 0;
	}
	if (p->is_shared)
		sim_need_shared(load, at);
	sim_need_scratch(load, room + (p->is_shared ? 0 : at));
	for (unsigned k = 0; k < 3 && !p->is_shared; k++)
		p->line_at[k] += room;
}

static int prepare(struct sim_load *load, const struct isa_insn *insn, const void **plan)
{
	const struct isa_fft *f = (const void *)insn;
	const struct sim_fft_fns *fns = load->cpu->path == SIM_AVX512 ? sim_fft_avx512 :
		load->cpu->path == SIM_AVX2 ? sim_fft_avx2 : sim_fft_portable;
	struct fft_plan *p = arena_alloc(load->arena, sizeof(*p));
	int ret = check_form(load, f);
	int64_t n, from, to;

	if (!p)
		return sim_refuse(load, HW_ST_NO_ROOM, "no memory for a plan");
	if (ret)
		return ret;
	isa_fft_counts(f, &from, &to);
	ret = refer(load, f, &f->src, false, from, &p->src);
	if (!ret)
		ret = refer(load, f, &f->dst, true, to, &p->dst);
	if (ret)
		return ret;
	n = f->dim[f->axis];
	p->is_wide = p->src.ref.elem == ELEM_F64 || p->src.ref.elem == ELEM_C128;
	p->fns = &fns[p->is_wide];
	p->is_inverse = insn->flags & ISA_FLAG_INVERSE;
	p->is_half = (p->src.is_real || p->dst.is_real) && n % 2 == 0 && n;
	p->n = p->is_half ? n / 2 : n;
	p->scale = f->scale;
	*plan = p;
	if (!n)
		return 0;
	arrange(f, p);
	choose(load->cpu, p);
	ret = p->groups ? make_tables(load, p) : 0;
	if (!ret)
		lay_out(load, p);
	return ret;
}

/* ---- transforms ---- */

static uint8_t *at(const struct fft_plan *p, const void *base, int64_t reals)
{
	return (uint8_t *)(uintptr_t)base + reals * (p->is_wide ? 8 : 4);
}

/* Lines that are transformed in a part of a run. */
struct part {
	const struct fft_plan *p;
	struct sim_run *run;
	struct sim_fft_lines in, out;
	void *between;		/* of a long one */
	const void *next;	/* lines that are to come; NULL */
};

/* Groups of columns begin .. end of a long line, to rows between. */
static void run_columns(void *arg, uint64_t begin, uint64_t end, unsigned lane)
{
	const struct part *part = arg;
	const struct fft_plan *p = part->p;
	int64_t q = p->second.n, width = p->fns->width;

	for (int64_t c = (int64_t)begin * width; c < q && c < (int64_t)end * width; c += width) {
		struct sim_fft_extras e = { .swaps_in = p->is_inverse, .pitch = p->pitch,
					    .re = at(p, p->re, c), .im = at(p, p->im, c) };
		const void *next = c + width < q ?
			at(p, part->in.at, (c + width) * part->in.step) : part->next;
		struct sim_fft_lines in = { at(p, part->in.at, c * part->in.step),
					    q * part->in.step, part->in.step };
		struct sim_fft_lines out = { at(p, part->between, 2 * c), 2 * q, 2 };

		e.next = next;
		if (sim_stopped(part->run))
			return;
		p->fns->transform(&p->first, &e, &in, &out,
				  (unsigned)(q - c < width ? q - c : width),
				  sim_scratch(part->run, lane));
	}
}

static void run_rows(void *arg, uint64_t begin, uint64_t end, unsigned lane)
{
	const struct part *part = arg;
	const struct fft_plan *p = part->p;
	int64_t q = p->second.n, n = p->first.n, width = p->fns->width;
	struct sim_fft_extras e = { .swaps_out = p->is_inverse, .scales = p->scale != 1,
				    .scale = p->scale };

	for (int64_t r = (int64_t)begin * width; r < n && r < (int64_t)end * width; r += width) {
		struct sim_fft_lines in = { at(p, part->between, 2 * r * q), 2, 2 * q };
		struct sim_fft_lines out = { at(p, part->out.at, r * part->out.step),
					     n * part->out.step, part->out.step };

		if (sim_stopped(part->run))
			return;
		p->fns->transform(&p->second, &e, &in, &out,
				  (unsigned)(n - r < width ? n - r : width),
				  sim_scratch(part->run, lane));
	}
}

/* n_lines of `in` to `out`, on one lane unless lanes share a line. */
static void transform(struct part *part, int64_t n_lines, unsigned lane)
{
	const struct fft_plan *p = part->p;
	int64_t width = p->fns->width;
	struct part one = *part;
	struct sim_fft_extras e = { .swaps_in = p->is_inverse, .swaps_out = p->is_inverse,
				    .scales = p->scale != 1, .scale = p->scale,
				    .next = part->next };
	uint64_t cols = (uint64_t)((p->second.n - 1) / width + 1);
	uint64_t rows = (uint64_t)((p->first.n - 1) / width + 1);

	if (!p->is_long) {
		p->fns->transform(&p->first, &e, &part->in, &part->out, (unsigned)n_lines,
				  sim_scratch(part->run, lane));
		return;
	}
	for (int64_t l = 0; l < n_lines; l++) {
		one.in.at = at(p, part->in.at, l * part->in.line);
		if (l + 1 < n_lines)
			one.next = at(p, part->in.at, (l + 1) * part->in.line);
		one.out.at = at(p, part->out.at, l * part->out.line);
		if (p->is_shared) {
			sim_parallel(part->run, cols, 1, p->ns, run_columns, &one);
			sim_parallel(part->run, rows, 1, p->ns, run_rows, &one);
		} else {
			run_columns(&one, 0, cols, lane);
			run_rows(&one, 0, rows, lane);
		}
	}
}

/* ---- lines in a lane's memory ---- */

/* `bytes` is a constant where this is called. */
static inline void move_each(const uint8_t *from, int64_t from_step, uint8_t *to, int64_t to_step,
			     int64_t count, size_t bytes)
{
	for (int64_t k = 0; k < count; k++)
		memcpy(to + k * to_step, from + k * from_step, bytes);
}

/* `count` numbers of `parts` reals each. */
static void move(const struct fft_plan *p, const void *from, int64_t from_step, void *to,
		 int64_t to_step, int64_t count, int64_t parts)
{
	int64_t real = p->is_wide ? 8 : 4, bytes = parts * real;

	from_step *= real;
	to_step *= real;
	if (from_step == bytes && to_step == bytes)
		memcpy(to, from, (size_t)(count * bytes));
	else if (bytes == 4)
		move_each(from, from_step, to, to_step, count, 4);
	else if (bytes == 8)
		move_each(from, from_step, to, to_step, count, 8);
	else
		move_each(from, from_step, to, to_step, count, 16);
}

/* As move(), of some lines. Those that do not run on in both go number by number, so that of lines
 * beside each other each cache line is fetched once. */
static void move_lines(const struct fft_plan *p, const struct sim_fft_lines *from,
		       const struct sim_fft_lines *to, int64_t n_lines, int64_t count,
		       int64_t parts)
{
	bool run_on = from->step == parts && to->step == parts;

	for (int64_t l = 0; l < n_lines && (run_on || n_lines == 1); l++)
		move(p, at(p, from->at, l * from->line), from->step,
		     at(p, to->at, l * to->line), to->step, count, parts);
	for (int64_t k = 0; k < count && !run_on && n_lines > 1; k++)
		move(p, at(p, from->at, k * from->step), from->line,
		     at(p, to->at, k * to->step), to->line, n_lines, parts);
}

static double get(const struct fft_plan *p, const void *at_, int64_t i)
{
	return p->is_wide ? ((const double *)at_)[i] : (double)((const float *)at_)[i];
}

static void put(const struct fft_plan *p, void *to, int64_t i, double x)
{
	sim_fft_put(p->is_wide, to, i, x);
}

/* A sum in the precision of the elements. */
static double sum(const struct fft_plan *p, double a, double b)
{
	return p->is_wide ? a + b : (double)((float)a + (float)b);
}

/* Element 0 of the spectrum, what it becomes at the other end, and the middle one. */
static void untangle_ends(const struct fft_plan *p, const void *z, void *y)
{
	double re = get(p, z, 0), im = get(p, z, 1);
	int64_t m = p->n;

	if (!p->is_inverse) {
		put(p, y, 0, sum(p, re, im));
		put(p, y, 1, 0);
		put(p, y, 2 * m, sum(p, re, -im));
		put(p, y, 2 * m + 1, 0);
	} else {
		double last = get(p, z, 2 * m);

		put(p, y, 0, sum(p, re, last));
		put(p, y, 1, sum(p, re, -last));
	}
	if (m % 2 == 0) {
		double by = p->is_inverse ? 2 : 1;

		put(p, y, m, by * get(p, z, m));
		put(p, y, m + 1, -by * get(p, z, m + 1));
	}
}

static void untangle(const struct fft_plan *p, const void *z, void *y)
{
	untangle_ends(p, z, y);
	p->fns->untangle(z, y, p->n, 1, (p->n - 1) / 2 + 1, p->is_inverse ? 1 : .5, p->turn);
}

/* A line of real numbers as complex ones; of an odd spectrum the second half as it mirrors the
 * first, and of element 0 the real part alone: what does not count may be no number. */
static void widen(const struct fft_plan *p, const void *from, void *to)
{
	int64_t count = p->src.count;

	if (p->src.is_real) {
		memset(to, 0, (size_t)count * (p->is_wide ? 16 : 8));
		move(p, from, 1, to, 2, count, 1);
		return;
	}
	move(p, from, 2, to, 2, count, 2);
	put(p, to, 1, 0);
	for (int64_t k = count; k < p->n; k++) {
		put(p, to, 2 * k, get(p, from, 2 * (p->n - k)));
		put(p, to, 2 * k + 1, -get(p, from, 2 * (p->n - k) + 1));
	}
}

/* The lines at `from` to complex numbers in own[0]; own[1] is free. */
static void bring(const struct fft_plan *p, const struct sim_fft_lines *from,
		  const struct sim_fft_lines *own, int64_t n_lines)
{
	/* Complex numbers, and pairs of real ones, are what they are to be. */
	bool is_right = p->is_half ? p->src.is_real : !p->src.is_real && !p->dst.is_real;
	struct sim_fft_lines to = own[is_right ? 0 : 1];

	to.step = parts_of(&p->src);
	if (is_right || !runs_on(&p->src)) {
		move_lines(p, from, &to, n_lines, p->src.count, to.step);
		from = &to;
	}
	for (int64_t l = 0; l < n_lines && !is_right; l++)
		(p->is_half ? untangle : widen)(p, at(p, from->at, l * from->line),
						at(p, own[0].at, l * own[0].line));
}

/* Lines in own[1] to where they belong; own[0] is free. */
static void take(const struct fft_plan *p, const struct sim_fft_lines *to,
		 const struct sim_fft_lines *own, int64_t n_lines)
{
	bool is_tangled = p->is_half && !p->dst.is_real;
	bool is_moved = !(is_tangled && runs_on(&p->dst));
	struct sim_fft_lines from = own[is_tangled ? 0 : 1];

	for (int64_t l = 0; l < n_lines && is_tangled; l++)
		untangle(p, at(p, own[1].at, l * own[1].line),
			 is_moved ? at(p, from.at, l * from.line) : at(p, to->at, l * to->line));
	if (p->is_half && p->dst.is_real)
		from.step = 1;
	if (is_moved)
		move_lines(p, &from, to, n_lines, p->dst.count, parts_of(&p->dst));
}

/* Lines of a group whose kind or place is not that of transforms. */
static void run_brought(struct part *part, int64_t n_lines, uint8_t *room, unsigned lane)
{
	const struct fft_plan *p = part->p;
	const struct sim_fft_lines from = part->in, to = part->out;
	struct sim_fft_lines own[2] = { { room + p->line_at[0], 2, 2 * (p->n + 1) },
					{ room + p->line_at[1], 2, 2 * (p->n + 1) } };
	/* Real numbers that are side by side are pairs where they lie. */
	bool lies_in = p->is_half && p->src.is_real && runs_on(&p->src);
	bool lies_out = p->is_half && p->dst.is_real && runs_on(&p->dst);

	if (!lies_in)
		bring(p, &from, own, n_lines);
	part->in = lies_in ? (struct sim_fft_lines){ from.at, 2, from.line } : own[0];
	part->out = lies_out ? (struct sim_fft_lines){ to.at, 2, to.line } : own[1];
	transform(part, n_lines, lane);
	if (!lies_out)
		take(p, &to, own, n_lines);
}

/* ---- running ---- */

/* Sets the lines of group g; how many there are. */
static int64_t find_group(const struct job *j, uint64_t g, struct part *part)
{
	const struct fft_plan *p = j->p;
	unsigned last = p->rank - 1;
	uint64_t across = (uint64_t)((p->dim[last] - 1) / p->together + 1), left = g / across;
	int64_t first = (int64_t)(g % across) * p->together, n = p->dim[last] - first;
	int64_t from = first * p->src.stride[last], to = first * p->dst.stride[last];

	for (unsigned d = last; d-- > 0;) {
		int64_t i = (int64_t)(left % (uint64_t)p->dim[d]);

		left /= (uint64_t)p->dim[d];
		from += i * p->src.stride[d];
		to += i * p->dst.stride[d];
	}
	part->in = (struct sim_fft_lines){ at(p, j->src, from), p->src.step, p->src.stride[last] };
	part->out = (struct sim_fft_lines){ at(p, j->dst, to), p->dst.step, p->dst.stride[last] };
	return n < p->together ? n : p->together;
}

static void run_groups(void *arg, uint64_t begin, uint64_t end, unsigned lane)
{
	const struct job *j = arg;
	const struct fft_plan *p = j->p;
	uint8_t *room = p->is_shared ? j->run->shared : sim_scratch(j->run, lane);
	struct part next = { .p = p, .run = j->run, .between = room + p->line_at[2] };
	int64_t n_next = find_group(j, begin, &next), n_lines;

	for (uint64_t g = begin; g < end && !sim_stopped(j->run); g++) {
		struct part part = next;

		n_lines = n_next;
		if (g + 1 < end) {
			n_next = find_group(j, g + 1, &next);
			part.next = next.in.at;
		}
		if (p->is_brought)
			run_brought(&part, n_lines, room, lane);
		else
			transform(&part, n_lines, lane);
	}
}

static int run(struct sim_run *run, const void *plan)
{
	const struct fft_plan *p = plan;
	struct job job = { .run = run, .p = p };

	if (!p->groups)
		return 0;
	job.src = sim_at(run, &p->src.ref);
	job.dst = job.src ? sim_at(run, &p->dst.ref) : NULL;
	if (!job.dst)
		return run->fault.status;
	if (p->is_shared)
		run_groups(&job, 0, (uint64_t)p->groups, 0);
	else
		sim_parallel(run, (uint64_t)p->groups, 1, p->ns, run_groups, &job);
	run->vector_ops += p->ops;
	run->read_bytes += p->read_bytes;
	run->write_bytes += p->write_bytes;
	return 0;
}

const struct sim_family sim_family_fft = { .prepare = prepare, .run = run };
