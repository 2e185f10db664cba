/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SCATTER: windows of a table, placed by index vectors and changed by updates (index.h).
 *
 * Updates are applied in the order of batch points, so what happens to duplicates is determined:
 * lanes share out the places, not the points. Short windows have loops of their own, and narrow
 * ones by one index each go without a list of places.
 */
#include <stdlib.h>
#include <string.h>

#include "hal/sim/core/body.h"
#include "hal/sim/core/index.h"
#include "hal/sim/kernels/uop.h"
#include "hal/sim/lookup/update.h"

#define UPDATES 4096	/* elements that an operation is applied to between two looks */
#define WIDE 64		/* points of a window before each of which a scatter looks */
#define NARROW 64	/* bytes of a window that lanes do not share: all look at each point */
#define OWN_CACHE (256 << 10)	/* bytes of a table that a core's own cache has room for */
#define FAR_CACHE (3 << 20)	/* bytes of a table whose small windows need not be asked for */
#define ONE_READS (8 << 20)	/* bytes of updates; more, from memory, two read sooner than one */
#define SHORT 1024	/* bytes of one that is worth no call of an operation */
#define CHUNK 256	/* points of which a scatter finds its own before it applies them */
#define ASKED 32	/* points whose windows are asked for before the ones before them change */

/* How the points of a window lie on a side, in their order. */
enum lies { ANYHOW, IN_A_RUN, AS_ONE };

struct scatter_plan {
	struct sim_walk w;
	uint64_t bytes, index_bytes;	/* of all updates, of all indices */
	unsigned k;		/* arrays */
	struct sim_ref idx, upd[ISA_MAX_SORT], dst[ISA_MAX_SORT];
	uint8_t upd_lie[ISA_MAX_SORT], dst_lie[ISA_MAX_SORT];	/* enum lies */
	uint8_t value[ISA_MAX_SORT];
	const struct sim_body *body;
	unsigned points;
	bool is_replace;	/* one array, the update takes the place */
	sim_uop_fn *direct;	/* one array, one operation on it and the update, in place */
	bool update_first;	/* the operation's first argument is the update */
	bool spreads;		/* an update is one element for a whole window, to be spread out */
	unsigned most;		/* elements that the operation is applied to at a time */
	sim_update_fn *fn;		/* of narrow windows by one index, or NULL */
	sim_update_hits_fn *hits_fn;	/* of other short windows, or NULL */
	bool asks;		/* fn's windows are far from the core unless asked for */
	bool is_sorted;		/* equal indices follow one another, as the program says */
	bool is_apart;		/* two windows are at one place or have no byte in common */
	size_t pre_at, room_at, each;
};

static int by_step(const void *a, const void *b)
{
	const struct sim_range *x = a, *y = b;

	return (x->stride > y->stride) - (x->stride < y->stride);
}

/* Whether windows of array j that start at different places never meet: each step, the
 * smallest first, leads past all that the smaller ones reach. Lanes share out places of array 0,
 * so windows that are at one place in array j must be so in array 0, too. */
static bool is_apart(const struct scatter_plan *p, unsigned j)
{
	struct sim_range range[ISA_MAX_INDEX + ISA_MAX_RANK];
	int64_t reach = elem_bytes(p->dst[j].elem);
	unsigned n = 0;

	for (unsigned d = 0; d < p->w.rank; d++) {
		struct sim_range r = { p->w.dim[d] - 1, llabs(p->dst[j].stride[d]) };

		if (d < p->w.n_batch && !r.stride && p->dst[0].stride[d])
			return false;
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

static enum lies how_lies(const struct sim_walk *w, const struct sim_ref *ref)
{
	int64_t run = elem_bytes(ref->elem);
	bool is_run = true, is_one = w->window > 1;

	for (unsigned d = w->rank; d-- > w->n_batch;) {
		if (w->dim[d] == 1)
			continue;
		is_run &= ref->stride[d] == run;
		is_one &= !ref->stride[d];
		run *= w->dim[d];
	}
	return is_run ? IN_A_RUN : is_one ? AS_ONE : ANYHOW;
}

enum { OLD, UPDATE, RESULT };	/* values of a body of one array */

/* Bodies that need no tile. */
static void find_short_cut(const struct sim_load *load, const struct isa_body *body,
			   const struct isa_uop *u, struct scatter_plan *p)
{
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

/* The operation of a body that computes with bf16 as one does, in f32; NULL: it does not. */
static const struct isa_uop *bf16_operation(const struct scatter_plan *p,
					    const struct isa_body *body, const struct isa_uop *u)
{
	enum { FIRST = RESULT, SECOND, SUM, ROUNDED };

	if (body->n_uop != 4 || p->dst[0].elem != ELEM_BF16 || p->value[0] != ROUNDED)
		return NULL;
	for (unsigned i = 0; i < 4; i++)
		if (i != 2 && (u[i].op != UOP_CVT || u[i].elem != (i < 2 ? ELEM_BF16 : ELEM_F32) ||
			       u[i].to != (i < 2 ? ELEM_F32 : ELEM_BF16)))
			return NULL;
	if (u[0].a + u[1].a != OLD + UPDATE || u[0].a == u[1].a || u[3].a != SUM ||
	    u[2].elem != ELEM_F32 || u[2].a + u[2].b != FIRST + SECOND || u[2].a == u[2].b)
		return NULL;
	return &u[2];
}

static int find_bf16_kind(const struct scatter_plan *p, const struct isa_body *body,
			  const struct isa_uop *uops)
{
	const struct isa_uop *u = bf16_operation(p, body, uops);

	if (!u)
		return -1;
	switch (u->op) {
	case UOP_ADD:
		return SIM_UPDATE_add_bf16;
	case UOP_MUL:
		return SIM_UPDATE_mul_bf16;
	case UOP_MAX:
	case UOP_MIN:
		/* of two NaNs it is the first */
		if (uops[u->a - RESULT].a == UPDATE)
			return -1;
		return u->op == UOP_MAX ? SIM_UPDATE_max_bf16 : SIM_UPDATE_min_bf16;
	default:
		return -1;
	}
}

/* Which of the SIM_UPDATES windows are that are short; they are known by now. -1: none. */
static int find_kind(const struct scatter_plan *p, const struct isa_body *body,
		     const struct isa_uop *u)
{
	unsigned elem = p->dst[0].elem;

	if (p->k != 1 || p->w.end != p->w.n_batch || p->w.tail > SHORT || p->spreads)
		return -1;
	if (p->is_replace)
		return SIM_UPDATE_put_1 + __builtin_ctz(elem_bytes(elem));
	if (!p->direct)
		return find_bf16_kind(p, body, u);
	switch (u->op) {
	case UOP_ADD:
		switch (elem) {
		case ELEM_F32: return SIM_UPDATE_add_f32;
		case ELEM_F64: return SIM_UPDATE_add_f64;
		case ELEM_S32:
		case ELEM_U32: return SIM_UPDATE_add_32;
		case ELEM_S64:
		case ELEM_U64: return SIM_UPDATE_add_64;
		default: return -1;
		}
	case UOP_MUL:
		return elem == ELEM_F32 ? SIM_UPDATE_mul_f32 : -1;
	case UOP_MAX:
	case UOP_MIN:
		if (elem == ELEM_S32)
			return u->op == UOP_MAX ? SIM_UPDATE_max_s32 : SIM_UPDATE_min_s32;
		/* of two NaNs it is the first */
		if (elem == ELEM_F32 && !p->update_first)
			return u->op == UOP_MAX ? SIM_UPDATE_max_f32 : SIM_UPDATE_min_f32;
		return -1;
	default:
		return -1;
	}
}

static void choose_loops(const struct sim_load *load, struct scatter_plan *p,
			 const struct isa_body *body, const struct isa_uop *u)
{
	const struct sim_update_fns *fns = load->cpu->path == SIM_AVX512 ? &sim_update_avx512 :
		load->cpu->path == SIM_AVX2 ? &sim_update_avx2 : &sim_update_portable;
	int loops = find_kind(p, body, u), which = sim_walk_loops(&p->w, &p->idx);

	if (loops >= 0 && which >= 0 && p->w.tail <= NARROW)
		p->fn = fns->by_index[which][loops];
	/* Nothing waits for what is only stored. */
	p->asks = p->fn && p->w.window > 1 && !p->is_replace &&
		  p->dst[0].hi - p->dst[0].lo > (p->w.tail == NARROW ? OWN_CACHE : FAR_CACHE);
	if (loops >= 0 && !p->fn)
		p->hits_fn = fns->by_hits[loops];
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
	struct sim_ref *refs[2 * ISA_MAX_SORT + 1];
	uint8_t pre[ISA_MAX_SORT];
	struct isa_body one;
	int ret;

	if (!p)
		return sim_refuse(load, HW_ST_NO_ROOM, "no memory for a plan");
	if (insn->bytes != bytes || body->n_in != body->n_out || !body->n_in ||
	    body->n_in > ISA_MAX_SORT || body->row_rank ||
	    !sim_all_zero(s->zero, sizeof(s->zero)) ||
	    insn->flags & ~(ISA_FLAG_SORTED | ISA_FLAG_UNIQUE))
		return sim_refuse(load, HW_ST_BAD_PROGRAM, "scatter of another form");
	p->k = body->n_in;
	p->w = (struct sim_walk){ .rank = body->rank, .n_batch = s->n_batch,
			      .n_index = s->n_index, .index_stride = s->index_stride };
	ret = sim_walk_check(load, &p->w, body->dim, s->index, &s->idx, &p->idx);
	for (unsigned j = 0; !ret && j < p->k; j++) {
		pre[j] = dst[j].elem;
		p->value[j] = dst[j].value;
		if (upd[j].elem != dst[j].elem || dst[j].combine != ISA_STORE)
			return sim_refuse(load, HW_ST_BAD_PROGRAM, "array %u of scatter", j);
		ret = sim_ref(load, &upd[j], 2 + j, false, 0, p->w.rank, p->w.dim, NULL, 0,
			      &p->upd[j]);
		if (!ret)
			ret = sim_walk_table(load, &p->w, &dst[j], 2 + p->k + j, true, &p->dst[j]);
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
	for (unsigned j = 0; j < p->k; j++)
		p->bytes += p->w.batches * (uint64_t)p->w.window * elem_bytes(dst[j].elem);
	p->index_bytes = sim_walk_index_bytes(&p->w, s->idx.elem);
	p->is_sorted = insn->flags & ISA_FLAG_SORTED;
	find_short_cut(load, body, uops, p);
	for (unsigned j = 0; j < p->k; j++) {
		refs[2 * j] = &p->upd[j];
		refs[2 * j + 1] = &p->dst[j];
	}
	refs[2 * p->k] = &p->idx;
	sim_walk_split(load, &p->w, refs, 2 * p->k + 1);
	sim_walk_join(&p->w, refs, 2 * p->k + 1);
	for (unsigned j = 0; j < p->k; j++) {
		p->upd_lie[j] = (uint8_t)how_lies(&p->w, &p->upd[j]);
		p->dst_lie[j] = (uint8_t)how_lies(&p->w, &p->dst[j]);
	}
	p->spreads = p->upd_lie[0] == AS_ONE && !p->is_replace;
	p->most = p->spreads ? p->points : UPDATES;
	sim_walk_tail(&p->w, p->dst[0].stride, p->spreads ? p->dst[0].stride : p->upd[0].stride,
		      elem_bytes(dst[0].elem));
	choose_loops(load, p, body, uops);
	p->is_apart = true;
	for (unsigned j = 0; j < p->k; j++)
		p->is_apart &= is_apart(p, j);
	p->each = (size_t)p->points * 16;
	p->pre_at = (sim_body_scratch(p->body) + 63) & ~(size_t)63;
	p->room_at = p->pre_at + p->each * p->k;
	sim_need_scratch(load, p->room_at + p->each * p->k);
	/* Those that take a tile for each window are slower. */
	if ((p->fn || p->hits_fn) && sim_walk_ns(&p->w) <= SIM_BRIEF_NS)
		load->brief = SIM_BRIEF;
	*plan = p;
	return 0;
}

/* Moves `n` points of a window, from point `first` on, between memory and a line, of which they
 * are `step` apart. */
static void move_points(const struct sim_walk *w, int64_t first, unsigned n, uint8_t *memory,
			const int64_t *stride, uint8_t *line, unsigned step, unsigned bytes,
			bool load)
{
	int64_t at[ISA_MAX_RANK];

	for (unsigned d = w->rank; d-- > w->n_batch; first /= w->dim[d]) {
		at[d] = first % w->dim[d];
		memory += at[d] * stride[d];
	}
	for (unsigned i = 0; i < n; i++, line += step) {
		sim_walk_run(load ? line : memory, load ? memory : line, bytes);
		for (unsigned d = w->rank; d-- > w->n_batch;) {
			memory += stride[d];
			if (++at[d] < w->dim[d])
				break;
			memory -= w->dim[d] * stride[d];
			at[d] = 0;
		}
	}
}

/* n points of a window, from point `first` on, side by side: in `line`, or where they are if they
 * may be looked at there. */
static const void *load_points(const struct scatter_plan *p, enum lies lie, int64_t first,
			       unsigned n, uint8_t *memory, const struct sim_ref *ref,
			       uint8_t *line)
{
	unsigned bytes = elem_bytes(ref->elem);

	if (lie == IN_A_RUN) {
		/* Of several arrays one may be stored before another is looked at. */
		if (p->k == 1)
			return memory + first * bytes;
		memcpy(line, memory + first * bytes, (size_t)n * bytes);
	} else if (lie == AS_ONE) {
		sim_fill(line, memory, n, bytes);
	} else {
		move_points(&p->w, first, n, memory, ref->stride, line, bytes, bytes, true);
	}
	return line;
}

/* The way back; `step` is 0 if all become the same. */
static void store_points(const struct scatter_plan *p, enum lies lie, int64_t first, unsigned n,
			 uint8_t *memory, const struct sim_ref *ref, const uint8_t *v,
			 unsigned step)
{
	unsigned bytes = elem_bytes(ref->elem);

	if (lie == IN_A_RUN && step)
		memmove(memory + first * bytes, v, (size_t)n * bytes);
	else if (lie == IN_A_RUN)
		sim_fill(memory + first * bytes, v, n, bytes);
	else
		move_points(&p->w, first, n, memory, ref->stride, (uint8_t *)(uintptr_t)v, step,
			    bytes, false);
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
			tile.pre[j] = load_points(p, p->dst_lie[j], at, n, dst[j], &p->dst[j],
						  scratch + p->pre_at + j * p->each);
			tile.in[j] = load_points(p, p->upd_lie[j], at, n, upd[j], &p->upd[j],
						 scratch + p->room_at + j * p->each);
		}
		sim_body_run(p->body, run, &tile, scratch);
		for (unsigned j = 0; j < p->k; j++) {
			bool is_spread, is_row;
			const void *v = sim_body_value(p->body, p->value[j], &tile, scratch,
						       &is_spread, &is_row);

			store_points(p, p->dst_lie[j], at, n, dst[j], &p->dst[j], v,
				     is_spread || is_row ? 0 : elem_bytes(p->dst[j].elem));
		}
	}
}

/* The one operation, in place, on a run; ends early when the run of the program is to stop. from:
 * as many updates, or of what is spread those of a tile. */
static void update_run(const struct sim_run *run, const struct scatter_plan *p, uint8_t *to,
		       const uint8_t *from)
{
	unsigned bytes = elem_bytes(p->dst[0].elem);
	size_t left = p->w.tail / bytes;

	do {
		size_t n = left < p->most ? left : p->most;

		p->direct(to, p->update_first ? from : to, p->update_first ? to : from, NULL, n, 0,
			  0);
		to += n * bytes;
		from += p->spreads ? 0 : n * bytes;
		left -= n;
	} while (left && !sim_stopped(run));
}

/* The one operation, in place, on each run of a window. */
static void update_direct(const struct sim_run *run, const struct scatter_plan *p, unsigned d,
			  uint8_t *to, const uint8_t *from)
{
	const struct sim_walk *w = &p->w;
	bool is_long = w->tail >= SIM_WALK_STRETCH;

	if (d == w->end) {
		update_run(run, p, to, from);
		return;
	}
	for (int64_t i = 0; i < w->dim[d]; i++) {
		if ((is_long || i % SIM_WALK_STRETCH == 0) && sim_stopped(run))
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

/* Shares out places evenly, whatever their distances. */
static unsigned part_of(int64_t place, unsigned parts)
{
	return (unsigned)(((uint64_t)place * 0x9e3779b97f4a7c15 >> 32) * parts >> 32);
}

/* Where windows go and come from. */
struct moves {
	uint8_t *to[ISA_MAX_SORT], *from[ISA_MAX_SORT];
};

/* What a point moves is asked for ahead. */
static void fetch(const struct scatter_plan *p, const struct moves *m)
{
	size_t bytes = p->w.tail < SIM_FETCHED ? p->w.tail : SIM_FETCHED;

	for (unsigned a = 0; a < p->k; a++) {
		for (size_t at = 0; at < bytes; at += SIM_LINE) {
			__builtin_prefetch(m->to[a] + at, 1);
			__builtin_prefetch(m->from[a] + at);
		}
	}
}

/* The update as often as an operation takes it at a time. */
static const uint8_t *spread(const struct scatter_plan *p, const uint8_t *update, uint8_t *scratch)
{
	unsigned bytes = elem_bytes(p->upd[0].elem);
	size_t n = p->w.tail / bytes;

	sim_fill(scratch + p->room_at, update, n < p->points ? n : p->points, bytes);
	return scratch + p->room_at;
}

static void apply(const struct scatter_job *j, const struct moves *m, uint8_t *scratch)
{
	const struct scatter_plan *p = j->p;

	if (p->is_replace)
		sim_walk_copy(j->run, &p->w, p->w.n_batch, m->to[0], p->dst[0].stride, m->from[0],
			      p->upd[0].stride);
	else if (p->direct)
		update_direct(j->run, p, p->w.n_batch, m->to[0],
			      p->spreads ? spread(p, m->from[0], scratch) : m->from[0]);
	else
		update_window(j->run, p, m->to, m->from, scratch);
}

/* The points first .. end of a line whose indices are inside and whose places are this part's, in
 * their order; without branches, which nobody could foresee. */
static inline __attribute__((always_inline)) unsigned
find_hits(const struct scatter_job *j, const struct sim_update_line *l, unsigned part,
	  int64_t first, int64_t end, struct sim_hit *hits, const unsigned n_index,
	  const unsigned elem, const bool wraps)
{
	const struct sim_walk *w = &j->p->w;
	/* Of its own: stores of hits might be to what they come from. */
	const struct isa_index comp = w->comp[0], second = n_index > 1 ? w->comp[1] : comp;
	int64_t idx_step = l->idx_step, place = l->place, to_step = l->to_step[0];
	const uint8_t *from = l->idx;
	unsigned n = 0, parts = j->parts;

	for (int64_t i = first; i < end; i++) {
		const uint8_t *idx = from + i * idx_step;
		bool is_mine = true;
		uint64_t at = 0;

		for (unsigned k = 0; k < n_index; k++, idx += w->index_stride) {
			const struct isa_index c = !k ? comp : k == 1 ? second : w->comp[k];
			uint64_t v = (uint64_t)sim_start_at(idx, elem, wraps ? c.wrap : 0);

			is_mine &= v <= (uint64_t)c.limit;
			at += v * (uint64_t)c.step;
		}
		if (parts > 1)
			is_mine &= part_of((int64_t)((uint64_t)(place + i * to_step) + at),
					   parts) == part;
		hits[n] = (struct sim_hit){ i, (int64_t)at };
		n += is_mine;
	}
	return n;
}

static unsigned choose_hits(const struct scatter_job *j, const struct sim_update_line *l,
			    unsigned part, int64_t first, int64_t end, struct sim_hit *hits)
{
	const struct isa_index *comp = j->p->w.comp;
	unsigned n_index = j->p->w.n_index, elem = j->p->idx.elem;

	if (n_index == 1 && elem == ELEM_S32)
		return find_hits(j, l, part, first, end, hits, 1, ELEM_S32, true);
	if (n_index == 1 && elem == ELEM_S64)
		return find_hits(j, l, part, first, end, hits, 1, ELEM_S64, true);
	if (n_index == 2 && elem == ELEM_S32 && !comp[0].wrap && !comp[1].wrap)
		return find_hits(j, l, part, first, end, hits, 2, ELEM_S32, false);
	if (elem == ELEM_S32)
		return find_hits(j, l, part, first, end, hits, n_index, ELEM_S32, true);
	return find_hits(j, l, part, first, end, hits, n_index, elem, true);
}

/* What a hit moves. */
static void find_moves(const struct scatter_plan *p, const struct sim_update_line *l,
		       const struct sim_hit *h, struct moves *m)
{
	for (unsigned a = 0; a < p->k; a++) {
		m->to[a] = l->to[a] + h->i * l->to_step[a] + h->at;
		m->from[a] = l->from[a] + h->i * l->from_step[a];
	}
}

static void apply_hits(const struct scatter_job *j, const struct sim_update_line *l,
		       const struct sim_hit *hits, unsigned n, uint8_t *scratch)
{
	const struct scatter_plan *p = j->p;
	bool is_wide = p->w.window >= WIDE;
	struct moves m;

	for (unsigned i = 0; i < n; i++) {
		if (is_wide && sim_stopped(j->run))
			return;
		if (i + SIM_WALK_AHEAD < n) {
			find_moves(p, l, &hits[i + SIM_WALK_AHEAD], &m);
			fetch(p, &m);
		}
		find_moves(p, l, &hits[i], &m);
		apply(j, &m, scratch);
	}
}

static void scatter_points(const struct scatter_job *j, const struct sim_update_line *l, int64_t n,
			   unsigned part, uint8_t *scratch)
{
	struct sim_hit hits[CHUNK];

	for (int64_t i = 0; i < n && !sim_stopped(j->run); i += CHUNK) {
		int64_t end = n - i < CHUNK ? n : i + CHUNK;
		unsigned found = choose_hits(j, l, part, i, end, hits);

		if (j->p->hits_fn)
			j->p->hits_fn(l, hits, found);
		else
			apply_hits(j, l, hits, found, scratch);
	}
}

/* Asks for the windows of n points by one index each, as sim_update_fn finds them. */
static inline __attribute__((always_inline)) void
ask_for(const struct sim_update_line *l, int64_t n, size_t last, struct isa_index c,
	const unsigned elem)
{
	for (int64_t i = 0; i < n; i++) {
		uint64_t v = (uint64_t)sim_start_at(l->idx + i * l->idx_step, elem, c.wrap);
		const uint8_t *at;

		v = v > (uint64_t)c.limit ? 0 : v;
		at = l->to[0] + i * l->to_step[0] + (int64_t)v * c.step;
		__builtin_prefetch(at, 1);
		if (last)
			__builtin_prefetch(at + last, 1);
	}
}

static void ask(const struct scatter_plan *p, const struct sim_update_line *l, int64_t n)
{
	/* What has a power of two of bytes is in one line, mostly. */
	size_t last = p->w.tail & (p->w.tail - 1) ? p->w.tail - 1 : 0;

	if (p->idx.elem == ELEM_S32)
		ask_for(l, n, last, p->w.comp[0], ELEM_S32);
	else
		ask_for(l, n, last, p->w.comp[0], p->idx.elem);
}

static void move_on(struct sim_update_line *l, int64_t n)
{
	l->idx += n * l->idx_step;
	l->to[0] += n * l->to_step[0];
	l->from[0] += n * l->from_step[0];
}

/* n points of a line by one index each. The windows of some are asked for while those before them
 * change: what a window's update waits for, the next ones' do, too, if it may be at their place. */
static void scatter_asked(const struct scatter_plan *p, const struct sim_update_line *l, int64_t n)
{
	struct sim_update_line now = *l, next = *l;

	ask(p, &next, n < ASKED ? n : ASKED);
	for (; n > 0; n -= ASKED, move_on(&now, ASKED)) {
		if (n > ASKED) {
			move_on(&next, ASKED);
			ask(p, &next, n - ASKED < ASKED ? n - ASKED : ASKED);
		}
		p->fn(&now, n < ASKED ? n : ASKED, p->w.comp[0]);
	}
}

/* Every part walks all batch points in order and takes the places that are its own. */
static void scatter_part(const struct scatter_job *j, unsigned part, uint8_t *scratch)
{
	const struct scatter_plan *p = j->p;
	struct sim_update_line l = { .idx_step = sim_walk_step(&p->w, &p->idx),
		.count = (unsigned)p->w.window };
	int64_t n;

	for (unsigned a = 0; a < p->k; a++) {
		l.to_step[a] = sim_walk_step(&p->w, &p->dst[a]);
		l.from_step[a] = sim_walk_step(&p->w, &p->upd[a]);
	}
	for (uint64_t b = 0; b < p->w.batches && !sim_stopped(j->run); b += (uint64_t)n) {
		uint64_t most = p->w.batches - b;
		int64_t oi = 0, od = 0, ou;

		/* The first array last, whose places count. */
		for (unsigned a = p->k; a-- > 0;) {
			sim_walk_offsets(&p->w, b, p->idx.stride, p->dst[a].stride,
					 p->upd[a].stride, &oi, &od, &ou);
			l.to[a] = j->dst[a] + od;
			l.from[a] = j->upd[a] + ou;
		}
		l.idx = j->idx + oi;
		l.place = od;
		n = sim_walk_line(&p->w, b, most < 16 * SIM_WALK_STRETCH ? most :
				  16 * SIM_WALK_STRETCH);
		if (p->asks)
			scatter_asked(p, &l, n);
		else if (p->fn)
			p->fn(&l, n, p->w.comp[0]);
		else
			scatter_points(j, &l, n, part, scratch);
	}
}

static void scatter_parts(void *arg, uint64_t begin, uint64_t end, unsigned lane)
{
	const struct scatter_job *j = arg;

	for (uint64_t part = begin; part < end; part++)
		scatter_part(j, (unsigned)part, sim_scratch(j->run, lane));
}

/* Whether one lane is as soon done with all: with narrow windows, each of which all would look at,
 * and with a table that it has in its own cache. Updates are read one behind the other then, which
 * a cache foresees; each of two lanes skips those of the other, unless they come in long runs. */
static bool is_better_alone(const struct scatter_plan *p, unsigned lanes)
{
	return p->hits_fn && (p->w.tail <= NARROW ||
			      (lanes <= 2 && !p->is_sorted &&
			       p->dst[0].hi - p->dst[0].lo <= OWN_CACHE && p->bytes <= ONE_READS));
}

static int run_scatter(struct sim_run *run, const void *plan)
{
	const struct scatter_plan *p = plan;
	struct scatter_job j = { .run = run, .p = p, .idx = sim_at(run, &p->idx) };
	double ns = sim_walk_ns(&p->w);

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
	/* Updates that replace need not know what was there. */
	run->read_bytes += p->bytes + p->index_bytes + (p->is_replace ? 0 : p->bytes);
	run->write_bytes += p->bytes;
	j.parts = p->is_apart && !p->fn && !is_better_alone(p, run->cpu->lanes) &&
		  ns > SIM_PARALLEL_NS ? run->cpu->lanes : 1;
	sim_parallel(run, j.parts, 1, ns < 1e18 ? (uint64_t)ns : UINT64_MAX / 2, scatter_parts,
		     &j);
	return 0;
}

const struct sim_family sim_family_scatter = { prepare_scatter, run_scatter };
