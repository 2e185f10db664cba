/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GATHER: windows of a table, found by index vectors, and the walk that SCATTER shares with it.
 *
 * A window is copied as one run if it is dense on both sides. Small windows by one index each,
 * which are what frameworks ask for most, have loops of their own; single elements, all side by
 * side, kernels for each path of the host (lookup/lookup.h).
 */
#include <string.h>

#include "hal/sim/core/body.h"
#include "hal/sim/core/index.h"

#define PIECE ((size_t)16 << 20)	/* bytes that are copied between two looks */
#define FOUND 256	/* windows whose places are found before they are copied */
#define LINE 16		/* points side by side that are worth beginning a line for */
#define WORTH_A_RUN 64	/* points of a window that is cut off another */
#define MOST_FILLED 128	/* bytes of a window that has a loop of its own */
#define MOST_CUTS 4096	/* parts that a dim is cut into */
#define FAR ((int64_t)512 << 10)	/* bytes of a table of which most are in no near cache */
#define PERIOD 512	/* points, about, whose places without their indices are kept */
#define SHORT 64	/* points of a line that are fewer than a kernel is worth alone */
#define LAST_OF_WORD 3	/* most bytes from a word's start to what is looked up in it */

/* ---- the walk ---- */

int sim_walk_check(struct sim_load *load, struct sim_walk *w, const int64_t *dim,
		   const struct isa_index *comp, const struct isa_operand *idx,
		   struct sim_ref *ref)
{
	struct sim_range parts = { w->n_index, w->index_stride };
	int64_t points = 1;

	if (w->rank > ISA_MAX_RANK || w->n_batch > w->rank || w->n_index > ISA_MAX_INDEX)
		return sim_refuse(load, HW_ST_BAD_PROGRAM, "rank %u, %u batch dims, %u index "
				  "components", w->rank, w->n_batch, w->n_index);
	if (!elem_valid(idx->elem) || (elem_class(idx->elem) != ELEM_CLASS_SINT &&
				       elem_class(idx->elem) != ELEM_CLASS_UINT))
		return sim_refuse(load, HW_ST_BAD_PROGRAM, "indices of %s",
				  elem_text(idx->elem));
	w->batches = 1;
	w->window = 1;
	for (unsigned d = 0; d < ISA_MAX_RANK; d++) {
		if (d < w->rank ? dim[d] < 0 ||
		    __builtin_mul_overflow(points, dim[d] ? dim[d] : 1, &points) : dim[d] != 1)
			return sim_refuse(load, HW_ST_BAD_PROGRAM, "dim %u is %lld", d,
					  (long long)dim[d]);
		w->dim[d] = dim[d];
		if (d < w->n_batch)
			w->batches *= (uint64_t)dim[d];
		else if (d < w->rank)
			w->window *= dim[d];
	}
	for (unsigned k = 0; k < w->n_index; k++) {
		w->comp[k] = comp[k];
		if (comp[k].limit < 0 || comp[k].limit > (int64_t)1 << 48 ||
		    comp[k].step > (int64_t)1 << 48 || comp[k].step < -((int64_t)1 << 48) ||
		    comp[k].wrap < 0 || comp[k].wrap > (int64_t)1 << 48)
			return sim_refuse(load, HW_ST_BAD_PROGRAM, "index component %u", k);
	}
	return sim_ref(load, idx, 1, false, 0, w->n_batch, dim, &parts, 1, ref);
}

int sim_walk_table(struct sim_load *load, const struct sim_walk *w, const struct isa_operand *op,
		   unsigned number, bool write, struct sim_ref *ref)
{
	struct sim_range reach[ISA_MAX_INDEX];

	for (unsigned k = 0; k < w->n_index; k++)
		reach[k] = (struct sim_range){ w->comp[k].limit + 1, w->comp[k].step };
	return sim_ref(load, op, number, write, 0, w->rank, w->dim, reach, w->n_index, ref);
}

void sim_walk_offsets(const struct sim_walk *w, uint64_t b, const int64_t *s0, const int64_t *s1,
		      const int64_t *s2, int64_t *o0, int64_t *o1, int64_t *o2)
{
	*o0 = *o1 = *o2 = 0;
	for (unsigned d = w->n_batch; d-- > 0;) {
		int64_t i = (int64_t)(b % (uint64_t)w->dim[d]);

		b /= (uint64_t)w->dim[d];
		*o0 += i * s0[d];
		*o1 += i * s1[d];
		*o2 += i * s2[d];
	}
}

/* Makes two dims of dim d of the window: the first one of at least `least`, so that the other one
 * is still worth a copy by itself. False: it has no such factor. */
static bool cut(struct sim_walk *w, struct sim_ref *const *refs, unsigned n, int64_t least)
{
	unsigned d = w->n_batch;
	int64_t dim = w->dim[d], part = least > 1 ? least : 2;
	size_t behind = ISA_MAX_RANK - 2 - d;

	if (w->rank == ISA_MAX_RANK)
		return false;
	while (part <= MOST_CUTS && dim % part)
		part++;
	if (part > MOST_CUTS || w->window / part < WORTH_A_RUN)
		return false;
	memmove(&w->dim[d + 2], &w->dim[d + 1], behind * sizeof(*w->dim));
	w->dim[d] = part;
	w->dim[d + 1] = dim / part;
	for (unsigned i = 0; i < n; i++) {
		int64_t *stride = refs[i]->stride;

		memmove(&stride[d + 1], &stride[d], (behind + 1) * sizeof(*stride));
		stride[d] *= dim / part;
	}
	w->rank++;
	return true;
}

void sim_walk_split(const struct sim_load *load, struct sim_walk *w, struct sim_ref *const *refs,
		    unsigned n)
{
	uint64_t most = 16 * (uint64_t)load->cpu->lanes;

	while (w->window >= SIM_WALK_LARGE && w->n_batch < w->rank && w->batches < most) {
		int64_t dim = w->dim[w->n_batch], least = (int64_t)((most - 1) / w->batches + 1);

		if (w->window / dim < WORTH_A_RUN && cut(w, refs, n, least))
			dim = w->dim[w->n_batch];
		w->batches *= (uint64_t)dim;
		w->window /= dim;
		w->n_batch++;
	}
}

void sim_walk_join(struct sim_walk *w, struct sim_ref *const *refs, unsigned n)
{
	for (unsigned d = 0; d < w->n_batch;) {
		bool joins = d + 1 < w->n_batch, is_single = w->dim[d] == 1;
		size_t behind = ISA_MAX_RANK - 1 - d;

		for (unsigned i = 0; i < n && joins; i++)
			joins = refs[i]->stride[d] == w->dim[d + 1] * refs[i]->stride[d + 1];
		if (!is_single && !joins) {
			d++;
			continue;
		}
		if (!is_single)
			w->dim[d + 1] *= w->dim[d];
		memmove(&w->dim[d], &w->dim[d + 1], behind * sizeof(*w->dim));
		w->dim[ISA_MAX_RANK - 1] = 1;
		for (unsigned i = 0; i < n; i++) {
			int64_t *stride = refs[i]->stride;

			memmove(&stride[d], &stride[d + 1], behind * sizeof(*stride));
			stride[ISA_MAX_RANK - 1] = 0;
		}
		w->rank--;
		w->n_batch--;
	}
}

int sim_walk_loops(const struct sim_walk *w, const struct sim_ref *idx)
{
	if (w->n_index != 1)
		return -1;
	switch (idx->elem) {
	case ELEM_S32: return 0;
	case ELEM_S64: return 1;
	case ELEM_U32: return 2;
	default: return -1;
	}
}

void sim_walk_tail(struct sim_walk *w, const int64_t *ts, const int64_t *fs, unsigned bytes)
{
	w->end = w->rank;
	w->tail = bytes;
	for (; w->end > w->n_batch; w->end--) {
		unsigned d = w->end - 1;

		if (w->dim[d] != 1 && (ts[d] != (int64_t)w->tail || fs[d] != (int64_t)w->tail))
			break;
		w->tail *= (size_t)w->dim[d];
	}
	w->stretch = w->tail < PIECE / SIM_WALK_STRETCH ? SIM_WALK_STRETCH :
							 (int64_t)(PIECE / w->tail);
}

/* n runs of as many bytes, by sizes that the compiler knows. */
static void copy_runs(uint8_t *to, int64_t ts, const uint8_t *from, int64_t fs, int64_t n,
		      size_t bytes)
{
	switch (bytes) {
#define RUNS(bytes) \
	case bytes: \
		for (int64_t i = 0; i < n; i++) \
			memmove(to + i * ts, from + i * fs, bytes); \
		break;
	RUNS(3) RUNS(4) RUNS(8) RUNS(12) RUNS(16) RUNS(32)
#undef RUNS
	default:
		for (int64_t i = 0; i < n; i++)
			sim_walk_run(to + i * ts, from + i * fs, bytes);
	}
}

/* One run of any length; ends early when the run is to stop. */
static void copy_long(const struct sim_run *run, uint8_t *to, const uint8_t *from, size_t bytes)
{
	for (; bytes > PIECE && !sim_stopped(run); to += PIECE, from += PIECE, bytes -= PIECE)
		memmove(to, from, PIECE);
	if (bytes <= PIECE)
		sim_walk_run(to, from, bytes);
}

void sim_walk_copy(const struct sim_run *run, const struct sim_walk *w, unsigned d, uint8_t *to,
		   const int64_t *ts, const uint8_t *from, const int64_t *fs)
{
	if (d == w->end) {
		copy_long(run, to, from, w->tail);
		return;
	}
	if (d + 1 == w->end && w->stretch) {
		for (int64_t i = 0; i < w->dim[d] && !sim_stopped(run); i += w->stretch)
			copy_runs(to + i * ts[d], ts[d], from + i * fs[d], fs[d],
				  w->dim[d] - i < w->stretch ? w->dim[d] - i : w->stretch,
				  w->tail);
		return;
	}
	for (int64_t i = 0; i < w->dim[d]; i++, to += ts[d], from += fs[d]) {
		if (i % SIM_WALK_STRETCH == 0 && sim_stopped(run))
			return;
		sim_walk_copy(run, w, d + 1, to, ts, from, fs);
	}
}

/* ---- gather ---- */

/* A line of points: where their indices, the table and what is made of it are, and how far it is
 * from one to the next. */
struct gather_line {
	const uint8_t *src, *idx;
	uint8_t *dst;
	int64_t src_step, idx_step, dst_step, n;
	struct isa_index comp;	/* the first */
	const uint8_t *fill;	/* a whole window of what is not in the table, or NULL */
	bool is_far;		/* most of the table is in no cache that is near */
};
typedef void gather_fn(const struct gather_line *l);

struct gather_plan {
	struct sim_walk w;
	uint64_t bytes, index_bytes;	/* of all windows, of all indices */
	struct sim_ref src, idx, dst;
	struct sim_lookup how;	/* by the first component */
	bool fills, is_far;
	uint8_t fill[MOST_FILLED];	/* the element of windows outside, side by side */
	gather_fn *fn;		/* of such windows, or NULL */
	const struct sim_lookup_fns *fns;
	sim_lookup_fn *lookup;	/* where they are elements side by side, or NULL */
	sim_lookup_from_fn *by_from;	/* where the table's are not, or NULL */
	int64_t row, line;	/* by_from's: points of a row, and of rows side by side */
	int64_t row_step;	/* from one's start in the table to the next one's */
	int64_t period, far;	/* points of some rows; bytes of the table from their start on */
	int32_t *from;		/* such bytes to each of them */
};

struct gather_job {
	struct sim_run *run;
	const struct gather_plan *p;
	const uint8_t *src, *idx;
	uint8_t *dst;
};

/* A run of BYTES a window. Those of whole lines are asked for ahead if they are far: no cache
 * guesses them. Of less a CPU has enough under way by itself. */
#define GATHER(bytes, I) \
	static void gather_##bytes##_##I(const struct gather_line *line) \
	{ \
		/* Of its own: stores might be to the line. */ \
		const struct gather_line l = *line; \
		int64_t most = l.comp.limit, step = l.comp.step, wrap = l.comp.wrap; \
	\
		for (int64_t i = 0; i < l.n; i++) { \
			int64_t soon = i + SIM_WALK_AHEAD < l.n ? i + SIM_WALK_AHEAD : i, v, in; \
			uint8_t room[bytes];	/* the sides may overlap */ \
			const uint8_t *from; \
			I x; \
	\
			if ((bytes) >= 64 && l.is_far) { \
				memcpy(&x, l.idx + soon * l.idx_step, sizeof(x)); \
				v = x; \
				v += v < 0 ? wrap : 0; \
				v = v < 0 ? 0 : v > most ? most : v; \
				__builtin_prefetch(l.src + soon * l.src_step + v * step); \
			} \
			memcpy(&x, l.idx + i * l.idx_step, sizeof(x)); \
			v = x; \
			v += v < 0 ? wrap : 0; \
			in = v < 0 ? 0 : v > most ? most : v; \
			from = l.src + i * l.src_step + in * step; \
			memcpy(room, l.fill && v != in ? l.fill : from, (bytes)); \
			memcpy(l.dst + i * l.dst_step, room, (bytes)); \
		} \
	}
#define GATHERS(I) \
	GATHER(1, I) GATHER(2, I) GATHER(4, I) GATHER(8, I) GATHER(16, I) GATHER(32, I) \
	GATHER(64, I) GATHER(128, I) GATHER(3, I) GATHER(6, I) GATHER(12, I) GATHER(24, I)
GATHERS(int32_t)
GATHERS(int64_t)
GATHERS(uint32_t)
#undef GATHER
#undef GATHERS

/* Dim d becomes the one at `to`, and those from there on the next ones. */
static void move_dim(int64_t *of, unsigned d, unsigned to)
{
	int64_t moved = of[d];

	memmove(&of[to + 1], &of[to], (d - to) * sizeof(*of));
	of[to] = moved;
}

/* The place among the dims of the batch of the window's first dim, by the order of the result; or
 * n_batch: it does not lie outside the last ones. */
static unsigned place_in_batch(const struct gather_plan *p)
{
	const struct sim_walk *w = &p->w;
	unsigned d = w->n_batch, at = d;
	int64_t step = p->dst.stride[d];

	if (w->dim[d] == 1)
		return 0;
	while (at && p->dst.stride[at - 1] * w->dim[at - 1] <= step)
		at--;
	for (unsigned k = 0; k < at; k++)
		if (p->dst.stride[k] < step * w->dim[d])
			return d;
	return at;
}

/* Leading dims of the window that lie outside the last dims of the batch in the result become dims
 * of the batch there, along which the indices stand still: so it is written in its order, and
 * elements that lie side by side in it are a line. */
static void turn(struct gather_plan *p)
{
	struct sim_walk *w = &p->w;

	if (!w->n_batch || w->dim[w->n_batch - 1] < LINE ||
	    p->dst.stride[w->n_batch - 1] <= 0)
		return;
	while (w->n_batch < w->rank) {
		unsigned d = w->n_batch, at = place_in_batch(p);

		if (at == d)
			return;
		w->batches *= (uint64_t)w->dim[d];
		w->window /= w->dim[d] ? w->dim[d] : 1;
		w->n_batch++;
		move_dim(w->dim, d, at);
		move_dim(p->src.stride, d, at);
		move_dim(p->idx.stride, d, at);
		move_dim(p->dst.stride, d, at);
	}
}

static gather_fn *choose_gather(const struct sim_walk *w, const struct sim_ref *idx)
{
	/* Powers of 2, and three times those, as colours are. */
#define SIZES(I) { { gather_1_##I, gather_2_##I, gather_4_##I, gather_8_##I, gather_16_##I, \
		     gather_32_##I, gather_64_##I, gather_128_##I }, \
		   { gather_3_##I, gather_6_##I, gather_12_##I, gather_24_##I } }
	static gather_fn *const by_size[3][2][8] = { SIZES(int32_t), SIZES(int64_t),
						     SIZES(uint32_t) };
#undef SIZES
	int loops = sim_walk_loops(w, idx);
	bool is_triple = w->tail % 3 == 0;
	size_t power = is_triple ? w->tail / 3 : w->tail;

	if (loops < 0 || w->end != w->n_batch || !power || power > MOST_FILLED ||
	    power & (power - 1))
		return NULL;
	return by_size[loops][is_triple][__builtin_ctz((unsigned)power)];
}

/* Of lines of elements of the table side by side, by indices side by side. */
static sim_lookup_fn *choose_lookup(const struct gather_plan *p)
{
	int64_t bytes = (int64_t)p->w.tail, limit = p->w.comp[0].limit;
	int loops = sim_walk_loops(&p->w, &p->idx);

	if (!p->fn || bytes > 8 || bytes % 3 == 0 || p->w.comp[0].step != bytes ||
	    sim_walk_step(&p->w, &p->src) ||
	    sim_walk_step(&p->w, &p->dst) != bytes ||
	    sim_walk_step(&p->w, &p->idx) != elem_bytes(p->idx.elem) ||
	    ((limit > SIM_LOOKUP_MOST || p->w.comp[0].wrap > SIM_LOOKUP_MOST) &&
	     p->idx.elem != ELEM_S64))
		return NULL;
	return p->fns->lookup[__builtin_ctz((unsigned)bytes)][loops];
}

/* Single elements of the table by indices side by side, where the table goes on from point to point
 * or from row to row: what all places of a period have but for their indices is known. Rows are
 * those of the innermost dim, if they are short and side by side, else its points.
 * False: no memory. */
static bool choose_from(struct gather_plan *p, struct arena *arena)
{
	const struct sim_walk *w = &p->w;
	int64_t bytes = (int64_t)w->tail, step = w->comp[0].step;
	int64_t most = SIM_LOOKUP_MOST - LAST_OF_WORD;
	int64_t src = sim_walk_step(w, &p->src), index = elem_bytes(p->idx.elem), last;
	unsigned d = w->n_batch - 1;

	if (!p->fn || !w->n_batch || bytes > 8 || bytes % 3 == 0 || w->batches < LINE ||
	    (bytes == 2 && elem_bytes(p->src.elem) == 1) ||
	    sim_walk_step(w, &p->dst) != bytes || sim_walk_step(w, &p->idx) != index ||
	    w->comp[0].limit > most || w->comp[0].wrap > most || step < 0 || step > most)
		return true;
	p->row = 1;
	p->line = w->dim[d];
	p->row_step = src;
	if (d && p->line < SHORT && p->dst.stride[d - 1] == p->line * bytes &&
	    p->idx.stride[d - 1] == p->line * index) {
		p->row = p->line;
		p->line *= w->dim[d - 1];
		p->row_step = p->src.stride[d - 1];
	} else if (p->lookup && bytes >= 4) {
		return true;
	}
	p->period = (PERIOD / p->row + 1) * p->row;
	p->far = p->period / p->row * p->row_step;
	last = (p->row - 1) * src;
	if (p->row_step < 0 || p->row_step > most / PERIOD / 2 || src < 0 || src > most / SHORT ||
	    p->far + last + bytes > most - step ||
	    (step && w->comp[0].limit > (most - step - p->far - last - bytes) / step))
		return true;
	p->from = arena_array(arena, (size_t)p->period, sizeof(*p->from));
	if (!p->from)
		return false;
	for (int64_t i = 0; i < p->period; i++)
		p->from[i] = (int32_t)(i / p->row * p->row_step + i % p->row * src);
	p->how.step = step;
	p->by_from = p->fns->from[__builtin_ctz((unsigned)bytes)][sim_walk_loops(w, &p->idx)];
	return true;
}

/* What windows outside the table are to be. False: the instruction says it in another form. */
static bool read_fill(const struct isa_gather *g, struct gather_plan *p)
{
	size_t bytes = elem_bytes(g->src.elem);

	p->fills = g->insn.flags & ISA_FLAG_FILL;
	memcpy(p->fill, g->fill, sizeof(g->fill));
	if (!elem_valid(g->src.elem) || !bytes || bytes > sizeof(g->fill))
		return false;
	if (p->fills && !sim_all_zero(p->fill + bytes, sizeof(g->fill) - bytes))
		return false;
	if (!p->fills && !sim_all_zero(p->fill, sizeof(g->fill)))
		return false;
	for (size_t at = bytes; at + bytes <= sizeof(p->fill); at += bytes)
		memcpy(p->fill + at, p->fill, bytes);
	return true;
}

static int prepare_gather(struct sim_load *load, const struct isa_insn *insn,
			  const void **plan)
{
	const struct isa_gather *g = (const void *)insn;
	struct gather_plan *p = arena_alloc(load->arena, sizeof(*p));
	struct sim_ref *const refs[] = { &p->src, &p->idx, &p->dst };
	int ret;

	if (!p)
		return sim_refuse(load, HW_ST_NO_ROOM, "no memory for a plan");
	p->w = (struct sim_walk){ .rank = g->rank, .n_batch = g->n_batch, .n_index = g->n_index,
			      .index_stride = g->index_stride };
	if (insn->bytes != sizeof(*g) || g->src.elem != g->dst.elem ||
	    insn->flags & ~(ISA_FLAG_SORTED | ISA_FLAG_FILL) ||
	    !sim_all_zero(g->zero, sizeof(g->zero)) || !read_fill(g, p))
		return sim_refuse(load, HW_ST_BAD_PROGRAM, "gather of another form");
	ret = sim_walk_check(load, &p->w, g->dim, g->index, &g->idx, &p->idx);
	if (!ret)
		ret = sim_walk_table(load, &p->w, &g->src, 0, false, &p->src);
	if (!ret)
		ret = sim_ref(load, &g->dst, 2, true, 0, p->w.rank, p->w.dim, NULL, 0, &p->dst);
	if (ret)
		return ret;
	p->bytes = p->w.batches * (uint64_t)p->w.window * elem_bytes(g->src.elem);
	p->index_bytes = sim_walk_index_bytes(&p->w, g->idx.elem);
	sim_walk_join(&p->w, refs, 3);
	turn(p);
	sim_walk_split(load, &p->w, refs, 3);
	sim_walk_join(&p->w, refs, 3);
	sim_walk_tail(&p->w, p->dst.stride, p->src.stride, elem_bytes(g->src.elem));
	p->fns = load->cpu->path == SIM_AVX512 ? &sim_lookup_avx512 :
		 load->cpu->path == SIM_AVX2 ? &sim_lookup_avx2 : &sim_lookup_portable;
	p->how = (struct sim_lookup){ .limit = p->w.comp[0].limit, .wrap = p->w.comp[0].wrap,
				      .fill = p->fills ? p->fill : NULL };
	p->is_far = p->w.comp[0].step < 0 || p->w.comp[0].step > FAR ||
		    p->w.comp[0].limit > FAR / (p->w.comp[0].step + 1);
	p->fn = choose_gather(&p->w, &p->idx);
	p->lookup = choose_lookup(p);
	if (!choose_from(p, load->arena))
		return sim_refuse(load, HW_ST_NO_ROOM, "no memory for a plan");
	if (sim_walk_ns(&p->w) <= SIM_BRIEF_NS)
		load->brief = SIM_BRIEF;
	*plan = p;
	return 0;
}

/* Runs of as many bytes from n places, by sizes that the compiler knows. False: not by this one. */
static bool fetch_runs(uint8_t *dst, int64_t dst_step, const uint8_t *src, const int64_t *place,
		       unsigned n, size_t bytes)
{
	switch (bytes) {
#define RUNS(bytes) \
	case bytes: \
		for (unsigned i = 0; i < n; i++, dst += dst_step) { \
			unsigned soon = i + SIM_WALK_AHEAD < n ? i + SIM_WALK_AHEAD : i; \
			uint8_t room[bytes];	/* the sides may overlap */ \
	\
			__builtin_prefetch(src + place[soon]); \
			memcpy(room, src + place[i], bytes); \
			memcpy(dst, room, bytes); \
		} \
		return true;
	RUNS(12) RUNS(16) RUNS(32) RUNS(64) RUNS(128)
#undef RUNS
	default: return false;
	}
}

/* Copies a window for each of n places, to the line's point `first` and those behind it. */
static void copy_places(const struct gather_job *j, const struct gather_line *l, int64_t first,
			const int64_t *place, unsigned n)
{
	const struct sim_walk *w = &j->p->w;
	uint8_t *dst = l->dst + first * l->dst_step;
	size_t bytes = w->end == w->n_batch ? w->tail : 0;

	if (bytes && bytes <= 8 && !(bytes & (bytes - 1)) && l->dst_step == (int64_t)bytes) {
		j->p->fns->fetch[__builtin_ctz((unsigned)bytes)](dst, l->src, place, n);
		return;
	}
	if (fetch_runs(dst, l->dst_step, l->src, place, n, bytes))
		return;
	for (unsigned i = 0; i < n && !sim_stopped(j->run); i++)
		sim_walk_copy(j->run, w, w->n_batch, dst + i * l->dst_step, j->p->dst.stride,
			      l->src + place[i], j->p->src.stride);
}

/* Fills a window, from its dim d on; ends early when the run is to stop. */
static void fill_window(const struct gather_job *j, unsigned d, uint8_t *to)
{
	const struct sim_walk *w = &j->p->w;
	unsigned bytes = elem_bytes(j->p->dst.elem);

	if (d == w->end) {
		for (size_t n = w->tail / bytes; n && !sim_stopped(j->run);) {
			size_t some = n < PIECE / bytes ? n : PIECE / bytes;

			sim_fill(to, j->p->fill, some, bytes);
			to += some * bytes;
			n -= some;
		}
		return;
	}
	for (int64_t i = 0; i < w->dim[d] && !sim_stopped(j->run); i++)
		fill_window(j, d + 1, to + i * j->p->dst.stride[d]);
}

/* Fills the windows of the n points from the line's point `first` on that start outside. */
static void fill_outside(const struct gather_job *j, const struct gather_line *l, int64_t first,
			 unsigned n)
{
	const struct sim_walk *w = &j->p->w;
	uint8_t outside[FOUND] = { 0 };
	bool any = false;

	for (unsigned k = 0; k < w->n_index; k++)
		any |= j->p->fns->mark(outside, n, l->idx + first * l->idx_step +
				       k * w->index_stride, l->idx_step, j->p->idx.elem,
				       w->comp[k]);
	for (unsigned i = 0; i < n && any; i++)
		if (outside[i])
			fill_window(j, w->n_batch, l->dst + (first + i) * l->dst_step);
}

/* Any windows, by any indices: the places of some are found, then what is there is copied. */
static void gather_points(const struct gather_job *j, const struct gather_line *l)
{
	const struct sim_walk *w = &j->p->w;
	int64_t place[FOUND], first = 0;
	unsigned n;

	for (; first < l->n && !sim_stopped(j->run); first += n) {
		n = l->n - first < FOUND ? (unsigned)(l->n - first) : FOUND;
		for (unsigned i = 0; i < n; i++)
			place[i] = (first + i) * l->src_step;
		for (unsigned k = 0; k < w->n_index; k++)
			j->p->fns->add(place, n, l->idx + first * l->idx_step + k * w->index_stride,
				       l->idx_step, j->p->idx.elem, w->comp[k]);
		copy_places(j, l, first, place, n);
		if (j->p->fills)
			fill_outside(j, l, first, n);
	}
}

/* From point b on to the end of its period or line, or of the part; returns how many those are. */
static uint64_t gather_period(const struct gather_job *j, uint64_t b, uint64_t end)
{
	const struct gather_plan *p = j->p;
	int64_t in_line = (int64_t)(b % (uint64_t)p->line), in_row = in_line % p->row;
	int64_t n = p->period - in_row, os, oi, od;

	n = n < p->line - in_line ? n : p->line - in_line;
	n = (uint64_t)n < end - b ? n : (int64_t)(end - b);
	sim_walk_offsets(&p->w, b - (uint64_t)in_row, p->src.stride, p->idx.stride, p->dst.stride,
			 &os, &oi, &od);
	p->by_from(j->dst + od + in_row * (int64_t)p->w.tail, j->src + os, p->from + in_row,
		   j->idx + oi + in_row * elem_bytes(p->idx.elem), n, &p->how);
	return (uint64_t)n;
}

static void run_part(void *arg, uint64_t begin, uint64_t end, unsigned lane)
{
	const struct gather_job *j = arg;
	const struct gather_plan *p = j->p;
	struct gather_line l = { .src_step = sim_walk_step(&p->w, &p->src),
		.idx_step = sim_walk_step(&p->w, &p->idx),
		.dst_step = sim_walk_step(&p->w, &p->dst), .comp = p->w.comp[0],
		.fill = p->how.fill, .is_far = p->is_far };

	(void)lane;
	for (uint64_t b = begin; p->by_from && b < end && !sim_stopped(j->run);)
		b += gather_period(j, b, end);
	for (uint64_t b = begin; !p->by_from && b < end && !sim_stopped(j->run);
	     b += (uint64_t)l.n) {
		int64_t os, oi, od;

		sim_walk_offsets(&p->w, b, p->src.stride, p->idx.stride, p->dst.stride, &os, &oi,
				 &od);
		l.src = j->src + os;
		l.idx = j->idx + oi;
		l.dst = j->dst + od;
		l.n = sim_walk_line(&p->w, b, end - b < SIM_WALK_STRETCH ? end - b :
								       SIM_WALK_STRETCH);
		if (p->lookup)
			p->lookup(l.dst, l.src, l.idx, l.n, &p->how);
		else if (p->fn)
			p->fn(&l);
		else
			gather_points(j, &l);
	}
}

static int run_gather(struct sim_run *run, const void *plan)
{
	const struct gather_plan *p = plan;
	struct gather_job j = { .run = run, .p = p };
	double ns = sim_walk_ns(&p->w);

	j.src = sim_at(run, &p->src);
	j.idx = j.src ? sim_at(run, &p->idx) : NULL;
	j.dst = j.idx ? sim_at(run, &p->dst) : NULL;
	if (!j.dst)
		return run->fault.status;
	if (!p->w.window)
		return 0;
	run->read_bytes += p->bytes + p->index_bytes;
	run->write_bytes += p->bytes;
	sim_parallel(run, p->w.batches, p->w.window >= SIM_WALK_LARGE ? 1 : 64,
		     ns < 1e18 ? (uint64_t)ns : UINT64_MAX / 2, run_part, &j);
	return 0;
}

const struct sim_family sim_family_gather = { prepare_gather, run_gather };
