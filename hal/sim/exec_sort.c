/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SORT: merging of ever longer runs over an array of positions.
 *
 * Comparisons are a body, which pays only by the hundred. So each pass over a line is
 * cut into segments of its result, hundreds of which are merged in step: every step is
 * one tile of comparisons and one element more in each segment. Where a segment starts in
 * its two runs is found by bisection, for many segments at once (Green, Odeh and Birk,
 * "Merge path", 2014). Left goes first unless right must, so every sort is stable. A
 * comparator that contradicts itself misplaces segments; they are moved so that they
 * still share out the elements, and the result stays a permutation.
 *
 * Short lines go to a lane each; the segments of few long ones are shared out to all.
 */
#include <string.h>

#include "hal/sim/core.h"

#define SLOTS 512u		/* segments merged in step */
#define STEPS 16u		/* between writes of what was merged: a cache line of each */
#define SHORTEST 64		/* a segment of a pass over long runs, at least */
#define LONG_LINE 8192		/* elements of a line that lanes may share */
#define MUCH ((size_t)32 << 20)	/* bytes of a line that lanes must share */

enum { LEFT, RIGHT };

/* What a lane works with. */
struct merger {
	uint32_t next[2][SLOTS], end[2][SLOTS];	/* of each segment's two sides */
	uint32_t head[2][SLOTS];	/* what is next on each side */
	uint32_t elem[SLOTS];	/* to be loaded into the tile */
	uint32_t merged[STEPS][SLOTS];	/* what the last steps took */
	uint32_t slot[SLOTS];	/* bisection: the segments not yet found */
	uint8_t side[SLOTS];
};

struct sort_plan {
	unsigned k, rank, dim_of;
	int64_t n, dim[ISA_MAX_RANK];
	uint64_t lines, ns;	/* ns of one line */
	struct sim_ref in[ISA_MAX_SORT], out[ISA_MAX_SORT];
	unsigned bytes[ISA_MAX_SORT];
	bool is_used[ISA_MAX_SORT];	/* whether comparisons look at it */
	uint8_t first;
	const struct sim_body *body;
	bool is_shared;		/* lanes share a line */
	uint32_t segment;	/* the most elements of one, a power of two */
	size_t order_at[2], split_at, array_at[ISA_MAX_SORT], line_bytes; /* of a line */
	size_t tile_at[ISA_MAX_SORT], body_at, line_at;	/* of a lane's scratch */
};

struct job {
	struct sim_run *run;
	const struct sort_plan *p;
	const uint8_t *in[ISA_MAX_SORT];
	uint8_t *out[ISA_MAX_SORT];
};

/* A line being sorted, and the pass over it. */
struct line {
	const struct job *j;
	uint8_t *room;
	int64_t at_in[ISA_MAX_SORT], at_out[ISA_MAX_SORT];
	uint32_t *from, *to;	/* positions, before and after the pass */
	uint32_t *split;	/* of each segment: how much of the left run is before */
	uint32_t n, size, cut;	/* elements of the line, of a run, of a segment */
};

static size_t up(size_t n)
{
	return (n + 63) & ~(size_t)63;
}

/* ---- preparing ---- */

static int check_form(struct sim_load *load, const struct isa_sort *s)
{
	const struct isa_body *b = &s->body;
	size_t bytes = sizeof(*s) + 2u * b->n_in * sizeof(struct isa_operand) +
		       b->n_uop * sizeof(struct isa_uop);
	static const uint8_t zero[sizeof(s->zero)];
	int64_t points = 1;

	if (!b->n_in || b->n_in > ISA_MAX_SORT || b->n_out != b->n_in || b->row_rank ||
	    b->rank > ISA_MAX_RANK || !b->rank || s->sort_dim >= b->rank ||
	    s->insn.bytes != bytes || s->insn.flags & ~ISA_FLAG_STABLE ||
	    memcmp(s->zero, zero, sizeof(zero)))
		return sim_refuse(load, HW_ST_BAD_PROGRAM, "sort of another form");
	for (unsigned d = 0; d < ISA_MAX_RANK; d++)
		if (d < b->rank ? b->dim[d] < 0 || __builtin_mul_overflow(points,
			b->dim[d] ? b->dim[d] : 1, &points) : b->dim[d] != 1)
			return sim_refuse(load, HW_ST_BAD_PROGRAM, "dim %u is %lld", d,
					  (long long)b->dim[d]);
	if (b->dim[s->sort_dim] > INT32_MAX)
		return sim_refuse(load, HW_ST_BAD_PROGRAM, "a line of %lld elements",
				  (long long)b->dim[s->sort_dim]);
	return 0;
}

static int prepare_body(struct sim_load *load, const struct isa_sort *s,
			const struct isa_operand *in, const struct isa_uop *uops,
			struct sort_plan *p)
{
	struct isa_body body = s->body;
	struct isa_operand out = { .elem = ELEM_PRED, .value = s->first };
	uint8_t pre[2 * ISA_MAX_SORT];

	p->first = s->first;
	for (unsigned i = 0; i < s->body.n_uop; i++) {
		const uint8_t args[] = { uops[i].a, uops[i].b, uops[i].c };

		if (uops[i].op == UOP_IOTA)
			return sim_refuse(load, HW_ST_BAD_PROGRAM, "iota in a comparator");
		for (unsigned a = 0; a < isa_uop_info(uops[i].op)->n_args; a++)
			if (args[a] < 2 * p->k)
				p->is_used[args[a] / 2] = true;
	}
	if (s->first < 2 * p->k)
		p->is_used[s->first / 2] = true;
	for (unsigned j = 0; j < p->k; j++)
		pre[2 * j] = pre[2 * j + 1] = in[j].elem;
	body.n_in = 0;
	body.n_out = 1;
	return sim_body_prepare(load, &body, NULL, &out, uops, pre, 2 * p->k, SLOTS, &p->body);
}

/* Where things lie in a line's memory and in a lane's scratch. */
static void lay_out(struct sim_load *load, struct sort_plan *p)
{
	size_t at = 0, n = (size_t)p->n;

	p->segment = SHORTEST;
	while ((uint64_t)p->segment * SLOTS * load->cpu->lanes < n)
		p->segment *= 2;
	for (unsigned i = 0; i < 2; i++) {
		p->order_at[i] = at;
		at += up(n * sizeof(uint32_t));
	}
	p->split_at = at;
	at += up((n / p->segment + 2) * sizeof(uint32_t));
	for (unsigned j = 0; j < p->k; j++) {
		p->array_at[j] = at;
		at += up(n * p->bytes[j]);
	}
	p->line_bytes = at;
	at = up(sizeof(struct merger));
	for (unsigned j = 0; j < p->k; j++) {
		p->tile_at[j] = at;
		at += up(2 * SLOTS * (size_t)p->bytes[j]);
	}
	p->body_at = at;
	at += up(sim_body_scratch(p->body));
	p->line_at = at;
	p->is_shared = p->n >= LONG_LINE &&
		       (p->lines < load->cpu->lanes || p->line_bytes > MUCH);
	if (p->is_shared)
		sim_need_shared(load, p->line_bytes);
	sim_need_scratch(load, at + (p->is_shared ? 0 : p->line_bytes));
}

static int prepare_sort(struct sim_load *load, const struct isa_insn *insn,
			const void **plan)
{
	const struct isa_sort *s = (const void *)insn;
	const struct isa_operand *in = (const void *)(s + 1), *out = in + s->body.n_in;
	const struct isa_uop *uops = (const void *)(out + s->body.n_out);
	struct sort_plan *p = arena_alloc(load->arena, sizeof(*p));
	int ret;

	if (!p)
		return sim_refuse(load, HW_ST_NO_ROOM, "no memory for a plan");
	ret = check_form(load, s);
	if (ret)
		return ret;
	p->k = s->body.n_in;
	p->rank = s->body.rank;
	p->dim_of = s->sort_dim;
	memcpy(p->dim, s->body.dim, sizeof(p->dim));
	p->n = p->dim[p->dim_of];
	p->lines = 1;
	for (unsigned d = 0; d < p->rank; d++)
		p->lines *= d == p->dim_of ? 1 : (uint64_t)p->dim[d];
	for (unsigned j = 0; j < p->k; j++) {
		if (in[j].elem != out[j].elem || out[j].combine != ISA_STORE)
			return sim_refuse(load, HW_ST_BAD_PROGRAM, "array %u of sort", j);
		ret = sim_ref(load, &in[j], j, false, 0, p->rank, p->dim, NULL, 0, &p->in[j]);
		if (!ret)
			ret = sim_ref(load, &out[j], p->k + j, true, 0, p->rank, p->dim, NULL,
				      0, &p->out[j]);
		if (ret)
			return ret;
		p->bytes[j] = elem_bytes(in[j].elem);
	}
	ret = prepare_body(load, s, in, uops, p);
	if (ret)
		return ret;
	lay_out(load, p);
	p->ns = 20 * (uint64_t)p->n;
	for (int64_t i = 1; i < p->n; i *= 2)
		p->ns += 10 * (uint64_t)p->n;
	*plan = p;
	return 0;
}

/* ---- a tile of comparisons ---- */

/* Loads elements elem[i] of array j as the sides side[i] of pairs. `bytes` is a constant
 * where this is called. A pair asks whether right goes first, so right is a. */
static inline void load_each(const struct merger *m, uint8_t *tile, const uint8_t *array,
			     unsigned n, unsigned bytes)
{
	uint8_t *half[2] = { tile + (size_t)SLOTS * bytes, tile };

	for (unsigned i = 0; i < n; i++)
		memcpy(half[m->side[i]] + (size_t)i * bytes,
		       array + (size_t)m->elem[i] * bytes, bytes);
}

static void load_tile(const struct line *l, struct merger *m, unsigned n)
{
	const struct sort_plan *p = l->j->p;

	for (unsigned j = 0; j < p->k; j++) {
		uint8_t *tile = (uint8_t *)m + p->tile_at[j];
		const uint8_t *array = l->room + p->array_at[j];

		if (!p->is_used[j])
			continue;
		switch (p->bytes[j]) {
		case 1: load_each(m, tile, array, n, 1); break;
		case 2: load_each(m, tile, array, n, 2); break;
		case 4: load_each(m, tile, array, n, 4); break;
		case 8: load_each(m, tile, array, n, 8); break;
		default: load_each(m, tile, array, n, 16); break;
		}
	}
}

/* Whether the right side of each pair goes first: bytes `*step` apart. */
static const uint8_t *ask(const struct line *l, struct merger *m, unsigned n, unsigned *step)
{
	const struct sort_plan *p = l->j->p;
	struct sim_tile tile = { .rank = p->rank, .rows = 1, .cols = n, .col_dims = 1,
				 .col_dim = { n } };
	uint8_t *scratch = (uint8_t *)m;
	bool is_spread, is_row;
	const uint8_t *r;

	for (unsigned j = 0; j < p->k; j++) {
		tile.pre[2 * j] = scratch + p->tile_at[j];
		tile.pre[2 * j + 1] = scratch + p->tile_at[j] + (size_t)SLOTS * p->bytes[j];
	}
	sim_body_run(p->body, l->j->run, &tile, scratch + p->body_at);
	r = sim_body_value(p->body, p->first, &tile, scratch + p->body_at, &is_spread, &is_row);
	*step = !is_spread;
	return r;
}

/* ---- a pass ---- */

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* The pair of runs that holds element `at`: where its sides start and end. */
static void pair_of(const struct line *l, uint32_t at, uint32_t *left, uint32_t *right,
		    uint32_t *end)
{
	uint64_t first = at / ((uint64_t)2 * l->size) * 2 * l->size;

	*left = (uint32_t)first;
	*right = first + l->size < l->n ? (uint32_t)(first + l->size) : l->n;
	*end = first + 2ull * l->size < l->n ? (uint32_t)(first + 2ull * l->size) : l->n;
}

/* Bisects for up to SLOTS segments from `first` on: next[LEFT] and end[LEFT] are the
 * bounds of the split. */
static void bisect(const struct line *l, struct merger *m, uint32_t first, unsigned n)
{
	unsigned active = 0, step;

	for (unsigned i = 0; i < n; i++) {
		uint32_t at = (first + i) * l->cut, left, right, end, d;

		pair_of(l, at, &left, &right, &end);
		d = at - left;
		m->next[LEFT][i] = d > end - right ? d - (end - right) : 0;
		m->end[LEFT][i] = least(d, right - left);
		if (m->next[LEFT][i] < m->end[LEFT][i])
			m->slot[active++] = i;
	}
	while (active) {
		unsigned still = 0;
		const uint8_t *r;

		for (unsigned side = LEFT; side <= RIGHT; side++) {
			memset(m->side, (int)side, active);
			for (unsigned i = 0; i < active; i++) {
				uint32_t s = m->slot[i], at = (first + s) * l->cut;
				uint32_t mid = (m->next[LEFT][s] + m->end[LEFT][s]) / 2;
				uint32_t left, right, end;

				pair_of(l, at, &left, &right, &end);
				m->elem[i] = l->from[side == LEFT ? left + mid :
						     right + (at - left) - 1 - mid];
			}
			load_tile(l, m, active);
		}
		r = ask(l, m, active, &step);
		for (unsigned i = 0; i < active; i++) {
			uint32_t s = m->slot[i];
			uint32_t mid = (m->next[LEFT][s] + m->end[LEFT][s]) / 2;

			if (r[i * step])
				m->end[LEFT][s] = mid;
			else
				m->next[LEFT][s] = mid + 1;
			if (m->next[LEFT][s] < m->end[LEFT][s])
				m->slot[still++] = s;
		}
		active = still;
	}
}

static void find_splits(void *arg, uint64_t begin, uint64_t end, unsigned lane)
{
	const struct line *l = arg;
	struct merger *m = sim_scratch(l->j->run, lane);

	for (uint64_t s = begin; s < end && !sim_stopped(l->j->run); s += SLOTS) {
		unsigned n = end - s < SLOTS ? (unsigned)(end - s) : SLOTS;

		bisect(l, m, (uint32_t)s, n);
		memcpy(l->split + s, m->next[LEFT], n * sizeof(*l->split));
	}
}

/* Makes the splits of a pair ascend by no more than a segment each. They do, unless the
 * comparator contradicts itself or the bisection was cut short. */
static void mend_splits(const struct line *l, uint32_t segments)
{
	for (uint32_t s = 0; s < segments; s++) {
		uint32_t at = s * l->cut, left, right, end, d, lo, hi;

		pair_of(l, at, &left, &right, &end);
		d = at - left;
		lo = d > end - right ? d - (end - right) : 0;
		hi = least(d, right - left);
		if (d) {
			lo = lo > l->split[s - 1] ? lo : l->split[s - 1];
			hi = least(hi, l->split[s - 1] + l->cut);
		}
		l->split[s] = l->split[s] < lo ? lo : l->split[s] > hi ? hi : l->split[s];
	}
}

/* The sides of segment s. Returns its elements. */
static uint32_t set_sides(const struct line *l, struct merger *m, unsigned i, uint32_t s)
{
	uint32_t at = s * l->cut, left, right, end, stop, split = 0;

	pair_of(l, at, &left, &right, &end);
	stop = end - at < l->cut ? end : at + l->cut;
	if (l->cut < 2ull * l->size)
		split = l->split[s];
	m->next[LEFT][i] = left + split;
	m->next[RIGHT][i] = right + (at - left - split);
	split = stop == end ? right - left : l->split[s + 1];
	m->end[LEFT][i] = left + split;
	m->end[RIGHT][i] = right + (stop - left - split);
	return stop - at;
}

/* Takes the next element of each of n segments; elem[] and side[] say what to load then. */
static void take_step(const struct line *l, struct merger *m, unsigned n, uint32_t *merged,
		      const uint8_t *r, unsigned step)
{
	for (unsigned i = 0; i < n; i++) {
		bool left = m->next[LEFT][i] < m->end[LEFT][i];
		bool right = m->next[RIGHT][i] < m->end[RIGHT][i];
		unsigned side = right & (!left | (r[i * step] != 0));
		uint32_t next = m->next[side][i] + 1, elem = m->head[side][i];

		merged[i] = elem;
		if (next < m->end[side][i])
			elem = l->from[next];
		m->next[side][i] = next;
		m->head[side][i] = m->elem[i] = elem;
		m->side[i] = (uint8_t)side;
	}
}

/* Writes what each of n segments has merged in its steps from `at` on. Segments lie a
 * power of two apart: one element of each at a time would miss every cache. */
static void write_merged(const struct line *l, const struct merger *m, uint32_t *to,
			 unsigned n, unsigned steps, unsigned last_steps)
{
	for (unsigned i = 0; i < n; i++, to += l->cut)
		for (unsigned k = 0; k < (i + 1 < n ? steps : last_steps); k++)
			to[k] = m->merged[k][i];
}

/* Merges n neighbouring segments from segment s on. */
static void merge_batch(const struct line *l, struct merger *m, uint32_t s, unsigned n)
{
	uint32_t last = 0;

	for (unsigned i = 0; i < n; i++)
		last = set_sides(l, m, i, s + i);
	for (unsigned side = LEFT; side <= RIGHT; side++) {
		memset(m->side, (int)side, n);
		for (unsigned i = 0; i < n; i++)
			m->head[side][i] = m->elem[i] =
				l->from[m->next[side][i] < m->end[side][i] ?
					m->next[side][i] : 0];
		load_tile(l, m, n);
	}
	for (uint32_t at = 0; at < l->cut; at += STEPS) {
		unsigned steps = least(l->cut - at, STEPS), step;

		for (unsigned k = 0; k < steps; k++) {
			const uint8_t *r = ask(l, m, n, &step);

			take_step(l, m, n, m->merged[k], r, step);
			load_tile(l, m, n);
		}
		/* The last segment of a line may be shorter: then it took garbage. */
		write_merged(l, m, l->to + (size_t)s * l->cut + at, n, steps,
			     last > at ? least(last - at, steps) : 0);
	}
}

static void merge_segments(void *arg, uint64_t begin, uint64_t end, unsigned lane)
{
	const struct line *l = arg;
	struct merger *m = sim_scratch(l->j->run, lane);

	for (uint64_t s = begin; s < end && !sim_stopped(l->j->run); s += SLOTS)
		merge_batch(l, m, (uint32_t)s, end - s < SLOTS ? (unsigned)(end - s) : SLOTS);
}

/* ---- lines ---- */

static void share(struct line *l, uint64_t n, uint64_t grain, uint64_t ns,
		  void (*fn)(void *arg, uint64_t begin, uint64_t end, unsigned lane),
		  unsigned lane)
{
	if (l->j->p->is_shared)
		sim_parallel(l->j->run, n, grain, ns, fn, l);
	else
		fn(l, 0, n, lane);
}

static void load_line(void *arg, uint64_t begin, uint64_t end, unsigned lane)
{
	const struct line *l = arg;
	const struct sort_plan *p = l->j->p;

	(void)lane;
	for (uint64_t i = begin; i < end; i++)
		l->from[i] = (uint32_t)i;
	for (unsigned a = 0; a < p->k; a++) {
		int64_t stride = p->in[a].stride[p->dim_of];
		const uint8_t *from = l->j->in[a] + l->at_in[a] + (int64_t)begin * stride;
		uint8_t *to = l->room + p->array_at[a] + begin * p->bytes[a];

		for (uint64_t i = begin; i < end; i++, from += stride, to += p->bytes[a])
			memcpy(to, from, p->bytes[a]);
	}
}

static void store_line(void *arg, uint64_t begin, uint64_t end, unsigned lane)
{
	const struct line *l = arg;
	const struct sort_plan *p = l->j->p;

	(void)lane;
	for (unsigned a = 0; a < p->k; a++) {
		int64_t stride = p->out[a].stride[p->dim_of];
		uint8_t *to = l->j->out[a] + l->at_out[a] + (int64_t)begin * stride;
		const uint8_t *from = l->room + p->array_at[a];

		for (uint64_t i = begin; i < end; i++, to += stride)
			memcpy(to, from + (size_t)l->from[i] * p->bytes[a], p->bytes[a]);
	}
}

static void sort_line(struct line *l, unsigned lane)
{
	const struct sort_plan *p = l->j->p;
	uint64_t ns = 10 * (uint64_t)l->n;

	share(l, l->n, 4096, ns / 4, load_line, lane);
	for (uint64_t size = 1; size < l->n; size *= 2) {
		uint32_t segments, *t;

		l->size = (uint32_t)size;
		l->cut = 2 * size < p->segment ? (uint32_t)(2 * size) : p->segment;
		segments = (l->n - 1) / l->cut + 1;
		if (l->cut < 2 * size) {
			share(l, segments, 64, ns / l->cut * 10, find_splits, lane);
			mend_splits(l, segments);
		}
		share(l, segments, 64, ns, merge_segments, lane);
		if (sim_stopped(l->j->run))
			return;
		t = l->from;
		l->from = l->to;
		l->to = t;
	}
	share(l, l->n, 4096, ns / 4, store_line, lane);
}

static void run_lines(void *arg, uint64_t begin, uint64_t end, unsigned lane)
{
	const struct job *j = arg;
	const struct sort_plan *p = j->p;
	uint8_t *room = p->is_shared ? j->run->shared :
				       (uint8_t *)sim_scratch(j->run, lane) + p->line_at;

	for (uint64_t i = begin; i < end && !sim_stopped(j->run); i++) {
		struct line l = { .j = j, .room = room, .n = (uint32_t)p->n,
				  .from = (uint32_t *)(void *)(room + p->order_at[0]),
				  .to = (uint32_t *)(void *)(room + p->order_at[1]),
				  .split = (uint32_t *)(void *)(room + p->split_at) };
		uint64_t rest = i;

		for (unsigned d = p->rank; d-- > 0;) {
			if (d == p->dim_of)
				continue;
			for (unsigned a = 0; a < p->k; a++) {
				int64_t x = (int64_t)(rest % (uint64_t)p->dim[d]);

				l.at_in[a] += x * p->in[a].stride[d];
				l.at_out[a] += x * p->out[a].stride[d];
			}
			rest /= (uint64_t)p->dim[d];
		}
		sort_line(&l, lane);
	}
}

static int run_sort(struct sim_run *run, const void *plan)
{
	const struct sort_plan *p = plan;
	struct job j = { .run = run, .p = p };
	uint64_t ns;

	for (unsigned a = 0; a < p->k; a++) {
		j.in[a] = sim_at(run, &p->in[a]);
		j.out[a] = j.in[a] ? sim_at(run, &p->out[a]) : NULL;
		if (!j.out[a])
			return run->fault.status;
	}
	if (!p->n)
		return 0;
	if (__builtin_mul_overflow(p->ns, p->lines, &ns))
		ns = UINT64_MAX / 2;
	if (p->is_shared)
		run_lines(&j, 0, p->lines, 0);
	else
		sim_parallel(run, p->lines, 1, ns, run_lines, &j);
	return 0;
}

const struct sim_family sim_family_sort = { prepare_sort, run_sort };
