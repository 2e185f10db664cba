/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GATHER and SCATTER: windows of a table, placed by index vectors.
 *
 * The batch points are walked one by one; a window is copied as one run if it is
 * dense on both sides. Scatter applies updates in the order of batch points, so what
 * happens to duplicates is determined: lanes share out the places, not the points.
 */
#include <stdlib.h>
#include <string.h>

#include "hal/sim/core/core.h"
#include "hal/sim/kernels/uop.h"

#define LARGE 4096	/* points of a window that is worth a lane of its own */
#define STRETCH 1024	/* runs of a window between two looks whether to stop */
#define AHEAD 8		/* windows that a scatter asks memory for before it needs them */
#define FETCHED 512	/* bytes of each, at most: the rest follows by itself */
#define CACHE_LINE 64

struct walk {
	unsigned rank, n_batch, n_index;
	int64_t dim[ISA_MAX_RANK];
	struct isa_index comp[ISA_MAX_INDEX];
	int64_t index_stride;
	uint64_t batches;
	int64_t window;		/* points of one */
	unsigned end;		/* dims from here on are one run on both sides */
	size_t tail;		/* its bytes */
};

static bool is_zero(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i])
			return false;
	return true;
}

static int check_walk(struct sim_load *load, struct walk *w, const int64_t *dim,
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
		    comp[k].step > (int64_t)1 << 48 || comp[k].step < -((int64_t)1 << 48))
			return sim_refuse(load, HW_ST_BAD_PROGRAM, "index component %u", k);
	}
	return sim_ref(load, idx, 1, false, 0, w->n_batch, dim, &parts, 1, ref);
}

/* The table's operand reaches further by what the components add. */
static int check_table(struct sim_load *load, const struct walk *w,
		       const struct isa_operand *op, unsigned number, bool write,
		       struct sim_ref *ref)
{
	struct sim_range reach[ISA_MAX_INDEX];

	for (unsigned k = 0; k < w->n_index; k++)
		reach[k] = (struct sim_range){ w->comp[k].limit + 1, w->comp[k].step };
	return sim_ref(load, op, number, write, 0, w->rank, w->dim, reach, w->n_index, ref);
}

/* Coordinates of batch point b as offsets of up to two operands. */
static void batch_offsets(const struct walk *w, uint64_t b, const int64_t *s0,
			  const int64_t *s1, const int64_t *s2, int64_t *o0, int64_t *o1,
			  int64_t *o2)
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

/* Finds the trailing dims that lie in one run on both sides. */
static void find_tail(struct walk *w, const int64_t *ts, const int64_t *fs, unsigned bytes)
{
	w->end = w->rank;
	w->tail = bytes;
	for (; w->end > w->n_batch; w->end--) {
		unsigned d = w->end - 1;

		if (w->dim[d] != 1 && (ts[d] != (int64_t)w->tail || fs[d] != (int64_t)w->tail))
			break;
		w->tail *= (size_t)w->dim[d];
	}
}

/* The sides may overlap: then what arrives is undefined, but the copy is not. */
static inline void copy_run(uint8_t *to, const uint8_t *from, size_t bytes)
{
	switch (bytes) {
	case 1: *to = *from; break;
	case 2: memmove(to, from, 2); break;
	case 4: memmove(to, from, 4); break;
	case 8: memmove(to, from, 8); break;
	case 16: memmove(to, from, 16); break;
	default: memmove(to, from, bytes);
	}
}

/* n runs of as many bytes, by sizes that the compiler knows. */
static void copy_runs(uint8_t *to, int64_t ts, const uint8_t *from, int64_t fs, int64_t n,
		      size_t bytes)
{
	switch (bytes) {
	case 4:
		for (int64_t i = 0; i < n; i++)
			memmove(to + i * ts, from + i * fs, 4);
		break;
	case 8:
		for (int64_t i = 0; i < n; i++)
			memmove(to + i * ts, from + i * fs, 8);
		break;
	default:
		for (int64_t i = 0; i < n; i++)
			copy_run(to + i * ts, from + i * fs, bytes);
	}
}

/* Copies a window between two strided places; ends early when the run is to stop. */
static void copy_window(const struct sim_run *run, const struct walk *w, unsigned d,
			uint8_t *to, const int64_t *ts, const uint8_t *from,
			const int64_t *fs)
{
	if (d == w->end) {
		copy_run(to, from, w->tail);
		return;
	}
	if (d + 1 == w->end) {
		for (int64_t i = 0; i < w->dim[d] && !sim_stopped(run); i += STRETCH)
			copy_runs(to + i * ts[d], ts[d], from + i * fs[d], fs[d],
				  w->dim[d] - i < STRETCH ? w->dim[d] - i : STRETCH, w->tail);
		return;
	}
	for (int64_t i = 0; i < w->dim[d]; i++, to += ts[d], from += fs[d]) {
		if (i % STRETCH == 0 && sim_stopped(run))
			return;
		copy_window(run, w, d + 1, to, ts, from, fs);
	}
}

/* ---- gather ---- */

struct gather_plan {
	struct walk w;
	struct sim_ref src, idx, dst;
};

struct gather_job {
	struct sim_run *run;
	const struct gather_plan *p;
	const uint8_t *src, *idx;
	uint8_t *dst;
};

/* Few large windows become many small ones, for the lanes to share: a leading dim of
 * the window is one of the batch along which the indices stand still. */
static void split_windows(const struct sim_load *load, struct walk *w)
{
	while (w->window >= LARGE && w->n_batch < w->rank &&
	       w->batches < 16 * (uint64_t)load->cpu->lanes) {
		w->batches *= (uint64_t)w->dim[w->n_batch];
		w->window /= w->dim[w->n_batch++];
	}
}

static int prepare_gather(struct sim_load *load, const struct isa_insn *insn,
			  const void **plan)
{
	const struct isa_gather *g = (const void *)insn;
	struct gather_plan *p = arena_alloc(load->arena, sizeof(*p));
	int ret;

	if (!p)
		return sim_refuse(load, HW_ST_NO_ROOM, "no memory for a plan");
	p->w = (struct walk){ .rank = g->rank, .n_batch = g->n_batch, .n_index = g->n_index,
			      .index_stride = g->index_stride };
	if (insn->bytes != sizeof(*g) || g->src.elem != g->dst.elem ||
	    insn->flags & ~ISA_FLAG_SORTED || !is_zero(g->zero, sizeof(g->zero)))
		return sim_refuse(load, HW_ST_BAD_PROGRAM, "gather of another form");
	ret = check_walk(load, &p->w, g->dim, g->index, &g->idx, &p->idx);
	if (!ret)
		ret = check_table(load, &p->w, &g->src, 0, false, &p->src);
	if (!ret)
		ret = sim_ref(load, &g->dst, 2, true, 0, p->w.rank, p->w.dim, NULL, 0, &p->dst);
	if (ret)
		return ret;
	split_windows(load, &p->w);
	find_tail(&p->w, p->dst.stride, p->src.stride, elem_bytes(g->src.elem));
	*plan = p;
	return 0;
}

static void run_part(void *arg, uint64_t begin, uint64_t end, unsigned lane)
{
	const struct gather_job *j = arg;
	const struct gather_plan *p = j->p;
	const struct walk *w = &p->w;

	(void)lane;
	for (uint64_t b = begin; b < end && !sim_stopped(j->run); b++) {
		int64_t os, oi, od;

		batch_offsets(w, b, p->src.stride, p->idx.stride, p->dst.stride, &os, &oi, &od);
		for (unsigned k = 0; k < w->n_index; k++) {
			int64_t v = sim_index_at(j->idx + oi + k * w->index_stride, p->idx.elem);

			v = v < 0 ? 0 : v > w->comp[k].limit ? w->comp[k].limit : v;
			os += v * w->comp[k].step;
		}
		copy_window(j->run, w, w->n_batch, j->dst + od, p->dst.stride, j->src + os,
			    p->src.stride);
	}
}

static int run_gather(struct sim_run *run, const void *plan)
{
	const struct gather_plan *p = plan;
	struct gather_job j = { .run = run, .p = p };
	double ns = (double)p->w.batches * (10 + (double)p->w.window);

	j.src = sim_at(run, &p->src);
	j.idx = j.src ? sim_at(run, &p->idx) : NULL;
	j.dst = j.idx ? sim_at(run, &p->dst) : NULL;
	if (!j.dst)
		return run->fault.status;
	if (!p->w.window)
		return 0;
	sim_parallel(run, p->w.batches, p->w.window >= LARGE ? 1 : 64,
		     ns < 1e18 ? (uint64_t)ns : UINT64_MAX / 2, run_part, &j);
	return 0;
}

const struct sim_family sim_family_gather = { prepare_gather, run_gather };

/* ---- scatter ---- */

struct scatter_plan {
	struct walk w;
	unsigned k;		/* arrays */
	struct sim_ref idx, upd[ISA_MAX_SORT], dst[ISA_MAX_SORT];
	uint8_t value[ISA_MAX_SORT];
	const struct sim_body *body;
	unsigned points;
	bool is_replace;	/* one array, the update takes the place */
	sim_uop_fn *direct;	/* one array, one operation on it and the update, in place */
	bool update_first;	/* the operation's first argument is the update */
	bool is_apart;		/* two windows are at one place or have no byte in common */
	size_t pre_at, room_at, each;
};

static int by_step(const void *a, const void *b)
{
	const struct sim_range *x = a, *y = b;

	return (x->stride > y->stride) - (x->stride < y->stride);
}

/* Whether windows of array j that start at different places never meet: each step, the
 * smallest first, leads past all that the smaller ones reach. */
static bool is_apart(const struct scatter_plan *p, unsigned j)
{
	struct sim_range range[ISA_MAX_INDEX + ISA_MAX_RANK];
	int64_t reach = elem_bytes(p->dst[j].elem);
	unsigned n = 0;

	for (unsigned d = 0; d < p->w.rank; d++) {
		struct sim_range r = { p->w.dim[d] - 1, llabs(p->dst[j].stride[d]) };

		if (d < p->w.n_batch)
			range[n++] = r;
		else
			reach += r.count * r.stride;
	}
	for (unsigned k = 0; k < p->w.n_index; k++)
		range[n++] = (struct sim_range){ p->w.comp[k].limit, llabs(p->w.comp[k].step) };
	qsort(range, n, sizeof(*range), by_step);
	for (unsigned i = 0; i < n; i++) {
		if (range[i].count < 1 || !range[i].stride)
			continue;
		if (range[i].stride < reach)
			return false;
		reach += range[i].count * range[i].stride;
	}
	return true;
}

/* Bodies that need no tile. */
static void find_short_cut(const struct sim_load *load, const struct isa_body *body,
			   const struct isa_uop *u, struct scatter_plan *p)
{
	enum { OLD, UPDATE, RESULT };

	if (p->k != 1)
		return;
	p->is_replace = !body->n_uop && p->value[0] == UPDATE;
	if (body->n_uop != 1)
		return;
	p->update_first = u->a == UPDATE;
	if (p->value[0] == RESULT && isa_uop_info(u->op)->n_args == 2 &&
	    u->a + u->b == OLD + UPDATE && u->a != u->b && !u->aux &&
	    isa_uop_result(u) == p->dst[0].elem)
		p->direct = sim_uop_kernel(load->cpu->path, u);
}

/* A table that was copied to here, and that updates as large as half of it or larger come back
 * to at random: if it leaves the others half of the last cache, it is better kept there. */
static void keep_copied(struct sim_load *load, const struct scatter_plan *p)
{
	const struct sim_copied *c = &load->copied;
	const struct sim_ref *dst = &p->dst[0];
	double updates = (double)p->w.batches * (double)p->w.window * elem_bytes(dst->elem);

	if (c->dst && c->dst->binding == dst->binding && !c->dst->reg && !dst->reg &&
	    c->dst->offset + c->dst->lo < dst->offset + dst->hi &&
	    dst->offset + dst->lo < c->dst->offset + c->dst->hi &&
	    c->bytes <= load->cpu->l3_bytes / 2 && updates >= (double)c->bytes / 2)
		*c->stays = true;
}

static int prepare_scatter(struct sim_load *load, const struct isa_insn *insn,
			   const void **plan)
{
	const struct isa_scatter *s = (const void *)insn;
	const struct isa_body *body = &s->body;
	const struct isa_operand *upd = (const void *)(s + 1), *dst = upd + body->n_in;
	const struct isa_uop *uops = (const void *)(dst + body->n_out);
	size_t bytes = sizeof(*s) + (body->n_in + body->n_out) * sizeof(*upd) +
		       body->n_uop * sizeof(*uops);
	struct scatter_plan *p = arena_alloc(load->arena, sizeof(*p));
	uint8_t pre[ISA_MAX_SORT];
	struct isa_body one;
	int ret;

	if (!p)
		return sim_refuse(load, HW_ST_NO_ROOM, "no memory for a plan");
	if (insn->bytes != bytes || body->n_in != body->n_out || !body->n_in ||
	    body->n_in > ISA_MAX_SORT || body->row_rank ||
	    !is_zero(s->zero, sizeof(s->zero)) ||
	    insn->flags & ~(ISA_FLAG_SORTED | ISA_FLAG_UNIQUE))
		return sim_refuse(load, HW_ST_BAD_PROGRAM, "scatter of another form");
	p->k = body->n_in;
	p->w = (struct walk){ .rank = body->rank, .n_batch = s->n_batch,
			      .n_index = s->n_index, .index_stride = s->index_stride };
	ret = check_walk(load, &p->w, body->dim, s->index, &s->idx, &p->idx);
	for (unsigned j = 0; !ret && j < p->k; j++) {
		pre[j] = dst[j].elem;
		p->value[j] = dst[j].value;
		if (upd[j].elem != dst[j].elem || dst[j].combine != ISA_STORE)
			return sim_refuse(load, HW_ST_BAD_PROGRAM, "array %u of scatter", j);
		ret = sim_ref(load, &upd[j], 2 + j, false, 0, p->w.rank, p->w.dim, NULL, 0,
			      &p->upd[j]);
		if (!ret)
			ret = check_table(load, &p->w, &dst[j], 2 + p->k + j, true, &p->dst[j]);
	}
	if (ret)
		return ret;
	/* The body runs on tiles of one window, as a line of points. */
	p->points = 1024;
	one = *body;
	ret = sim_body_prepare(load, &one, upd, dst, uops, pre, p->k, p->points, &p->body);
	if (ret)
		return ret;
	for (unsigned i = 0; i < body->n_uop; i++)
		if (uops[i].op == UOP_IOTA)
			return sim_refuse(load, HW_ST_BAD_PROGRAM, "iota in a scatter's body");
	find_short_cut(load, body, uops, p);
	keep_copied(load, p);
	split_windows(load, &p->w);
	find_tail(&p->w, p->dst[0].stride, p->upd[0].stride, elem_bytes(dst[0].elem));
	p->is_apart = true;
	for (unsigned j = 0; j < p->k; j++)
		p->is_apart &= is_apart(p, j);
	p->each = (size_t)p->points * 16;
	p->pre_at = (sim_body_scratch(p->body) + 63) & ~(size_t)63;
	p->room_at = p->pre_at + p->each * p->k;
	sim_need_scratch(load, p->room_at + p->each * p->k);
	*plan = p;
	return 0;
}

/* Moves `n` points of a window, from point `first` on, between memory and a line. */
static void move_points(const struct walk *w, int64_t first, unsigned n, uint8_t *memory,
			const int64_t *stride, uint8_t *line, unsigned bytes, bool load)
{
	int64_t at[ISA_MAX_RANK];

	for (unsigned d = w->rank; d-- > w->n_batch; first /= w->dim[d]) {
		at[d] = first % w->dim[d];
		memory += at[d] * stride[d];
	}
	for (unsigned i = 0; i < n; i++, line += bytes) {
		copy_run(load ? line : memory, load ? memory : line, bytes);
		for (unsigned d = w->rank; d-- > w->n_batch;) {
			memory += stride[d];
			if (++at[d] < w->dim[d])
				break;
			memory -= w->dim[d] * stride[d];
			at[d] = 0;
		}
	}
}

static void update_window(struct sim_run *run, const struct scatter_plan *p,
			  uint8_t *const *dst, uint8_t *const *upd, uint8_t *scratch)
{
	for (int64_t at = 0; at < p->w.window && !sim_stopped(run); at += p->points) {
		unsigned n = p->w.window - at < p->points ? (unsigned)(p->w.window - at) :
							    p->points;
		struct sim_tile tile = { .rank = 1, .rows = 1, .cols = n, .col_dims = 1,
					 .col_dim = { n } };

		for (unsigned j = 0; j < p->k; j++) {
			unsigned bytes = elem_bytes(p->dst[j].elem);
			uint8_t *old = scratch + p->pre_at + j * p->each;
			uint8_t *new = scratch + p->room_at + j * p->each;

			move_points(&p->w, at, n, dst[j], p->dst[j].stride, old, bytes, true);
			move_points(&p->w, at, n, upd[j], p->upd[j].stride, new, bytes, true);
			tile.pre[j] = old;
			tile.in[j] = new;
		}
		sim_body_run(p->body, run, &tile, scratch);
		for (unsigned j = 0; j < p->k; j++) {
			unsigned bytes = elem_bytes(p->dst[j].elem);
			uint8_t *line = scratch + p->room_at + j * p->each;
			bool is_spread, is_row;
			const void *v = sim_body_value(p->body, p->value[j], &tile, scratch,
						       &is_spread, &is_row);

			if (is_spread || is_row) {
				for (unsigned i = 0; i < n; i++)
					memcpy(line + i * bytes, v, bytes);
				v = line;
			}
			move_points(&p->w, at, n, dst[j], p->dst[j].stride,
				    (uint8_t *)(uintptr_t)v, bytes, false);
		}
	}
}

/* The one operation, in place, on each run of a window. */
static void update_direct(const struct sim_run *run, const struct scatter_plan *p, unsigned d,
			  uint8_t *to, const uint8_t *from)
{
	const struct walk *w = &p->w;

	if (d == w->end) {
		p->direct(to, p->update_first ? from : to, p->update_first ? to : from, NULL,
			  w->tail / elem_bytes(p->dst[0].elem), 0, 0);
		return;
	}
	for (int64_t i = 0; i < w->dim[d]; i++) {
		if (i % STRETCH == 0 && sim_stopped(run))
			return;
		update_direct(run, p, d + 1, to + i * p->dst[0].stride[d],
			      from + i * p->upd[0].stride[d]);
	}
}

struct scatter_job {
	struct sim_run *run;
	const struct scatter_plan *p;
	const uint8_t *idx;
	uint8_t *dst[ISA_MAX_SORT], *upd[ISA_MAX_SORT];
	unsigned parts;
};

/* A batch point: its coordinates, and where its indices and windows lie. */
struct batch_point {
	int64_t at[ISA_MAX_RANK], idx, dst[ISA_MAX_SORT], upd[ISA_MAX_SORT];
};

static void next_point(const struct scatter_plan *p, struct batch_point *b)
{
	for (unsigned d = p->w.n_batch; d-- > 0;) {
		int64_t steps = ++b->at[d] < p->w.dim[d] ? 1 : 1 - p->w.dim[d];

		b->idx += steps * p->idx.stride[d];
		for (unsigned j = 0; j < p->k; j++) {
			b->dst[j] += steps * p->dst[j].stride[d];
			b->upd[j] += steps * p->upd[j].stride[d];
		}
		if (steps == 1)
			return;
		b->at[d] = 0;
	}
}

/* Where the indices lead; false if one is outside. */
static bool find_window(const struct scatter_job *j, const struct batch_point *b, int64_t *at)
{
	const struct walk *w = &j->p->w;

	*at = 0;
	for (unsigned k = 0; k < w->n_index; k++) {
		int64_t v = sim_index_at(j->idx + b->idx + k * w->index_stride, j->p->idx.elem);

		if (v < 0 || v > w->comp[k].limit)
			return false;
		*at += v * w->comp[k].step;
	}
	return true;
}

/* Shares out places evenly, whatever their distances. */
static unsigned part_of(int64_t place, unsigned parts)
{
	return (unsigned)(((uint64_t)place * 0x9e3779b97f4a7c15 >> 32) * parts >> 32);
}

/* Where windows go and come from. */
struct moves {
	uint8_t *to[ISA_MAX_SORT], *from[ISA_MAX_SORT];
};

/* Windows lie anywhere, so no cache guesses the next one: it is asked for ahead. */
static void fetch(const struct scatter_plan *p, const struct moves *m)
{
	size_t bytes = p->w.tail < FETCHED ? p->w.tail : FETCHED;

	for (unsigned a = 0; a < p->k; a++) {
		for (size_t at = 0; at < bytes; at += CACHE_LINE) {
			__builtin_prefetch(m->to[a] + at, 1);
			__builtin_prefetch(m->from[a] + at);
		}
	}
}

static void apply(const struct scatter_job *j, const struct moves *m, uint8_t *scratch)
{
	const struct scatter_plan *p = j->p;

	if (p->is_replace)
		copy_window(j->run, &p->w, p->w.n_batch, m->to[0], p->dst[0].stride, m->from[0],
			    p->upd[0].stride);
	else if (p->direct)
		update_direct(j->run, p, p->w.n_batch, m->to[0], m->from[0]);
	else
		update_window(j->run, p, m->to, m->from, scratch);
}

/* Every part walks all batch points in order and takes the places that are its own. What is
 * found waits in a ring until AHEAD more are, in its order, while memory brings it. */
static void scatter_part(const struct scatter_job *j, unsigned part, uint8_t *scratch)
{
	const struct scatter_plan *p = j->p;
	struct batch_point b = { .idx = 0 };
	struct moves ring[AHEAD];
	/* what is smaller is had sooner than asked for */
	bool waits = p->w.tail >= CACHE_LINE;
	uint64_t found = 0;
	int64_t at;

	for (uint64_t i = 0; i < p->w.batches; i++, next_point(p, &b)) {
		struct moves *m = &ring[found % AHEAD];

		if (i % 256 == 0 && sim_stopped(j->run))
			return;
		if (!find_window(j, &b, &at))
			continue;
		if (j->parts > 1 && part_of(b.dst[0] + at, j->parts) != part)
			continue;
		if (waits && found++ >= AHEAD)
			apply(j, m, scratch);
		for (unsigned a = 0; a < p->k; a++) {
			m->to[a] = j->dst[a] + b.dst[a] + at;
			m->from[a] = j->upd[a] + b.upd[a];
		}
		if (waits)
			fetch(p, m);
		else
			apply(j, m, scratch);
	}
	for (uint64_t i = found < AHEAD ? 0 : found - AHEAD; i < found; i++)
		apply(j, &ring[i % AHEAD], scratch);
}

static void scatter_parts(void *arg, uint64_t begin, uint64_t end, unsigned lane)
{
	const struct scatter_job *j = arg;

	for (uint64_t part = begin; part < end; part++)
		scatter_part(j, (unsigned)part, sim_scratch(j->run, lane));
}

static int run_scatter(struct sim_run *run, const void *plan)
{
	const struct scatter_plan *p = plan;
	struct scatter_job j = { .run = run, .p = p, .idx = sim_at(run, &p->idx) };
	double ns = (double)p->w.batches * (10 + (double)p->w.window);

	if (!j.idx)
		return run->fault.status;
	for (unsigned a = 0; a < p->k; a++) {
		j.upd[a] = sim_at(run, &p->upd[a]);
		j.dst[a] = j.upd[a] ? sim_at(run, &p->dst[a]) : NULL;
		if (!j.dst[a])
			return run->fault.status;
	}
	if (!p->w.window)
		return 0;
	j.parts = p->is_apart && ns > SIM_PARALLEL_NS ? run->cpu->lanes : 1;
	sim_parallel(run, j.parts, 1, ns < 1e18 ? (uint64_t)ns : UINT64_MAX / 2, scatter_parts,
		     &j);
	return 0;
}

const struct sim_family sim_family_scatter = { prepare_scatter, run_scatter };
