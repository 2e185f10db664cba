/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SORT: by keys where the comparator has them, else merging of ever longer runs over an array
 * of positions.
 *
 * A comparator that asks the same of both elements, and then which of the answers is
 * less, gives each element a key. Keys of up to 32 bits are turned into unsigned numbers, their
 * positions put below them, and a radix sort does the rest.
 *
 * Other comparisons are a body, which pays only by the hundred. So each pass over a line is
 * cut into segments of its result, hundreds of which are merged in step: every step is
 * one tile of comparisons and one element more in each segment. Where a segment starts in
 * its two runs is found by bisection, for many segments at once (Green, Odeh and Birk,
 * "Merge path", 2014). Left goes first unless right must, so every sort is stable. A
 * comparator that contradicts itself misplaces segments; they are moved so that they
 * still share out the elements, and the result stays a permutation.
 *
 * Short lines are sorted some together, each lane its own; the segments of few long ones
 * are shared out to all.
 */
#include <string.h>

#include "hal/sim/core/core.h"

#define SLOTS 512u		/* segments merged in step */
#define STEPS 16u		/* between writes of what was merged: a cache line of each */
#define SHORTEST 64		/* a segment of a pass over long runs, at least */
#define LONG_LINE 8192		/* elements of a line that lanes may share */
#define TOGETHER 4096		/* elements of lines that are sorted together, about */
#define MUCH ((size_t)32 << 20)	/* bytes of a line that lanes must share */
#define LONGEST_KEYED (1 << 26)	/* elements of a line that is sorted by keys: 16 bytes each */
#define PIECE 65536u		/* elements that are moved between two looks whether to stop */
#define FEW 48u			/* keys that are inserted one by one */

enum { LEFT, RIGHT };

/* What a lane works with. */
struct merger {
	uint32_t at[SLOTS], len[SLOTS];	/* of each segment: its result */
	uint32_t next[2][SLOTS], end[2][SLOTS];	/* its two sides */
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
	const struct sim_body *key;	/* NULL: elements have no keys. Of the left one */
	uint8_t key_value, key_elem;
	bool is_falling;	/* larger keys go first */
	size_t pair_at[2];	/* of a line's memory: keys with positions, of one line */
	bool is_shared;		/* lanes share a line */
	unsigned together;	/* lines sorted at once */
	uint32_t segment;	/* the most elements of one, a power of two */
	size_t order_at[2], split_at, array_at[ISA_MAX_SORT], line_bytes; /* of such lines */
	size_t tile_at[ISA_MAX_SORT], body_at, line_at;	/* of a lane's scratch */
};

struct job {
	struct sim_run *run;
	const struct sort_plan *p;
	const uint8_t *in[ISA_MAX_SORT];
	uint8_t *out[ISA_MAX_SORT];
};

/* Lines being sorted, and the pass over them. */
struct batch {
	const struct job *j;
	uint8_t *room;
	uint64_t first;		/* of the lines, in the order of their coordinates */
	unsigned lines;
	uint32_t *from, *to;	/* positions, before and after the pass */
	uint32_t *split;	/* of each segment: how much of the left run is before */
	uint32_t n, size, cut;	/* elements of a line, of a run, of a segment */
	uint32_t segments;	/* of a line */
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

/* Whether uop x of the left element is uop y of the right one: the same of each argument. */
struct mirror {
	const struct isa_uop *uops;
	unsigned n_pre;
	uint8_t of[ISA_MAX_VALUES];	/* the value that is asked of the right element alike */
	bool is_left[ISA_MAX_VALUES];	/* asks nothing of the right element */
};

static bool is_alike(const struct mirror *m, unsigned v, unsigned w)
{
	struct isa_uop x, y;
	unsigned n_args;

	if (v < m->n_pre || w < m->n_pre)
		return false;
	x = m->uops[v - m->n_pre];
	y = m->uops[w - m->n_pre];
	n_args = isa_uop_info(x.op)->n_args;
	if (n_args > 0)
		x.a = m->of[x.a];
	if (n_args > 1)
		x.b = m->of[x.b];
	if (n_args > 2)
		x.c = m->of[x.c];
	return !memcmp(&x, &y, sizeof(x));
}

/* The key that the comparator's last uop compares, of the left element: its value. The first
 * uop that is alike is as good as any. */
static bool find_mirrors(const struct isa_sort *s, const struct isa_uop *uops, unsigned k,
			 struct mirror *m)
{
	unsigned n = 2 * k + s->body.n_uop;

	m->uops = uops;
	m->n_pre = 2 * k;
	if (s->first + 1u != n || s->first < m->n_pre)
		return false;
	for (unsigned v = 0; v < m->n_pre; v++) {
		m->of[v] = (uint8_t)(v ^ 1);
		m->is_left[v] = v % 2 == 0;
	}
	for (unsigned v = m->n_pre; v + 1 < n; v++) {
		const struct isa_uop *u = &uops[v - m->n_pre];
		const uint8_t arg[] = { u->a, u->b, u->c };

		m->of[v] = UINT8_MAX;
		m->is_left[v] = true;
		for (unsigned i = 0; i < isa_uop_info(u->op)->n_args; i++)
			m->is_left[v] &= m->is_left[arg[i]];
		for (unsigned w = m->n_pre; w + 1 < n && m->of[v] == UINT8_MAX; w++)
			if (m->is_left[v] && is_alike(m, v, w))
				m->of[v] = (uint8_t)w;
	}
	return true;
}

/* Whether comparing numbers of `elem` by `op` is comparing keys of at most 32 bits. */
static bool has_keys(unsigned op, unsigned elem)
{
	unsigned class = elem_class(elem);

	if (op == UOP_TLT)
		return elem == ELEM_F32;
	return (op == UOP_LT || op == UOP_GT) && elem_bytes(elem) <= 4 &&
	       (class == ELEM_CLASS_SINT || class == ELEM_CLASS_UINT);
}

/* Plans a sort by keys if it can be one; the body was checked. */
static int prepare_keys(struct sim_load *load, const struct isa_sort *s,
			const struct isa_uop *uops, const uint8_t *pre, struct sort_plan *p)
{
	const struct isa_uop *last = uops + s->body.n_uop - 1;
	struct isa_body body = s->body;
	struct isa_operand out = { 0 };
	struct mirror m = { 0 };

	if (p->n > LONGEST_KEYED || !find_mirrors(s, uops, p->k, &m) ||
	    !has_keys(last->op, last->elem))
		return 0;
	p->is_falling = last->op == UOP_GT;
	out.elem = p->key_elem = last->elem;
	/* b < a is a > b */
	if (m.is_left[last->a] && m.of[last->a] == last->b) {
		out.value = last->a;
	} else if (m.is_left[last->b] && m.of[last->b] == last->a) {
		out.value = last->b;
		p->is_falling = !p->is_falling;
	} else {
		return 0;
	}
	p->key_value = out.value;
	body.n_in = 0;
	body.n_out = 1;
	body.n_uop--;
	return sim_body_prepare(load, &body, NULL, &out, uops, pre, 2 * p->k, SLOTS, &p->key);
}

static int prepare_body(struct sim_load *load, const struct isa_sort *s,
			const struct isa_operand *in, const struct isa_uop *uops,
			struct sort_plan *p)
{
	struct isa_body body = s->body;
	struct isa_operand out = { .elem = ELEM_PRED, .value = s->first };
	uint8_t pre[2 * ISA_MAX_SORT];
	int ret;

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
	ret = sim_body_prepare(load, &body, NULL, &out, uops, pre, 2 * p->k, SLOTS, &p->body);
	return ret ? ret : prepare_keys(load, s, uops, pre, p);
}

/* Where things lie in a line's memory and in a lane's scratch. */
static void lay_out(struct sim_load *load, struct sort_plan *p)
{
	size_t at = 0, n = (size_t)p->n;

	p->together = 1;
	if (n && n < TOGETHER)
		p->together = p->lines < TOGETHER / n ? (unsigned)p->lines :
							(unsigned)(TOGETHER / n);
	if (!p->together)
		p->together = 1;
	n *= p->together;
	p->segment = SHORTEST;
	while ((uint64_t)p->segment * SLOTS * load->cpu->lanes < n)
		p->segment *= 2;
	for (unsigned i = 0; i < 2; i++) {
		p->order_at[i] = at;
		at += up(n * sizeof(uint32_t));
	}
	p->split_at = at;
	at += up((n / p->segment + p->together + 1) * sizeof(uint32_t));
	for (unsigned i = 0; i < 2 && p->key; i++) {
		p->pair_at[i] = at;
		at += up((size_t)p->n * sizeof(uint64_t));
	}
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
	at += up(sim_body_scratch(p->key && sim_body_scratch(p->key) > sim_body_scratch(p->body) ?
				  p->key : p->body));
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
	for (int64_t i = 1; i < p->n && !p->key; i *= 2)
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

static void load_tile(const struct batch *b, struct merger *m, unsigned n)
{
	const struct sort_plan *p = b->j->p;

	for (unsigned j = 0; j < p->k; j++) {
		uint8_t *tile = (uint8_t *)m + p->tile_at[j];
		const uint8_t *array = b->room + p->array_at[j];

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
static const uint8_t *ask(const struct batch *b, struct merger *m, unsigned n, unsigned *step)
{
	const struct sort_plan *p = b->j->p;
	struct sim_tile tile = { .rank = p->rank, .rows = 1, .cols = n, .col_dims = 1,
				 .col_dim = { n } };
	uint8_t *scratch = (uint8_t *)m;
	bool is_spread, is_row;
	const uint8_t *r;

	for (unsigned j = 0; j < p->k; j++) {
		tile.pre[2 * j] = scratch + p->tile_at[j];
		tile.pre[2 * j + 1] = scratch + p->tile_at[j] + (size_t)SLOTS * p->bytes[j];
	}
	sim_body_run(p->body, b->j->run, &tile, scratch + p->body_at);
	r = sim_body_value(p->body, p->first, &tile, scratch + p->body_at, &is_spread, &is_row);
	*step = !is_spread;
	return r;
}

/* ---- a pass ---- */

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Where a segment's result lies, and the pair of runs that it comes from: left, right,
 * which is left's end, and end. */
struct place { uint32_t at, left, right, end; };

static struct place place_of(const struct batch *b, uint32_t s)
{
	uint32_t line = s / b->segments * b->n, end = line + b->n;
	uint32_t at = s % b->segments * b->cut, size = b->size;
	uint32_t left = line + (at & ~(2 * size - 1));

	return (struct place){ line + at, left, end - left < size ? end : left + size,
			       end - left < 2 * size ? end : left + 2 * size };
}

/* Bisects for up to SLOTS segments from `first` on: next[LEFT] and end[LEFT] are the
 * bounds of the split. */
static void bisect(const struct batch *b, struct merger *m, uint32_t first, unsigned n)
{
	unsigned active = 0, step;

	for (unsigned i = 0; i < n; i++) {
		struct place p = place_of(b, first + i);
		uint32_t d = p.at - p.left;

		m->next[LEFT][i] = d > p.end - p.right ? d - (p.end - p.right) : 0;
		m->end[LEFT][i] = least(d, p.right - p.left);
		if (m->next[LEFT][i] < m->end[LEFT][i])
			m->slot[active++] = i;
	}
	while (active) {
		unsigned still = 0;
		const uint8_t *r;

		for (unsigned side = LEFT; side <= RIGHT; side++) {
			memset(m->side, (int)side, active);
			for (unsigned i = 0; i < active; i++) {
				uint32_t s = m->slot[i];
				uint32_t mid = (m->next[LEFT][s] + m->end[LEFT][s]) / 2;
				struct place p = place_of(b, first + s);

				m->elem[i] = b->from[side == LEFT ? p.left + mid :
						     p.right + (p.at - p.left) - 1 - mid];
			}
			load_tile(b, m, active);
		}
		r = ask(b, m, active, &step);
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
	const struct batch *b = arg;
	struct merger *m = sim_scratch(b->j->run, lane);

	for (uint64_t s = begin; s < end && !sim_stopped(b->j->run); s += SLOTS) {
		unsigned n = end - s < SLOTS ? (unsigned)(end - s) : SLOTS;

		bisect(b, m, (uint32_t)s, n);
		memcpy(b->split + s, m->next[LEFT], n * sizeof(*b->split));
	}
}

/* Makes the splits of a pair ascend by no more than a segment each. They do, unless the
 * comparator contradicts itself or the bisection was cut short. */
static void mend_splits(const struct batch *b, uint32_t segments)
{
	for (uint32_t s = 0; s < segments; s++) {
		struct place p = place_of(b, s);
		uint32_t d = p.at - p.left;
		uint32_t lo = d > p.end - p.right ? d - (p.end - p.right) : 0;
		uint32_t hi = least(d, p.right - p.left);

		if (d) {
			lo = lo > b->split[s - 1] ? lo : b->split[s - 1];
			hi = least(hi, b->split[s - 1] + b->cut);
		}
		b->split[s] = b->split[s] < lo ? lo : b->split[s] > hi ? hi : b->split[s];
	}
}

static void set_sides(const struct batch *b, struct merger *m, unsigned i, uint32_t s)
{
	struct place p = place_of(b, s);
	uint32_t len = least(p.end - p.at, b->cut), done = p.at - p.left, split = 0;

	if (b->cut < 2 * b->size)
		split = b->split[s];
	m->at[i] = p.at;
	m->len[i] = len;
	m->next[LEFT][i] = p.left + split;
	m->next[RIGHT][i] = p.right + (done - split);
	split = p.at + len == p.end ? p.right - p.left : b->split[s + 1];
	m->end[LEFT][i] = p.left + split;
	m->end[RIGHT][i] = p.right + (done + len - split);
}

/* Takes the next element of each of n segments; elem[] and side[] say what to load then.
 * A segment that has all of its elements takes what nobody writes. */
static void take_step(const struct batch *b, struct merger *m, unsigned n, uint32_t *merged,
		      const uint8_t *r, unsigned step)
{
	for (unsigned i = 0; i < n; i++) {
		bool left = m->next[LEFT][i] < m->end[LEFT][i];
		bool right = m->next[RIGHT][i] < m->end[RIGHT][i];
		unsigned side = right & (!left | (r[i * step] != 0));
		uint32_t next = m->next[side][i] + 1, elem = m->head[side][i];

		merged[i] = elem;
		if (next < m->end[side][i])
			elem = b->from[next];
		m->next[side][i] = next;
		m->head[side][i] = m->elem[i] = elem;
		m->side[i] = (uint8_t)side;
	}
}

/* Writes what n segments have merged in their steps from `at` on. Segments may lie a
 * power of two apart: one element of each at a time would miss every cache. */
static void write_merged(const struct batch *b, const struct merger *m, unsigned n,
			 uint32_t at)
{
	for (unsigned i = 0; i < n; i++) {
		uint32_t *to = b->to + m->at[i] + at;
		uint32_t steps = m->len[i] > at ? least(m->len[i] - at, STEPS) : 0;

		for (unsigned k = 0; k < steps; k++)
			to[k] = m->merged[k][i];
	}
}

/* Merges n neighbouring segments from segment s on. */
static void merge_batch(const struct batch *b, struct merger *m, uint32_t s, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		set_sides(b, m, i, s + i);
	for (unsigned side = LEFT; side <= RIGHT; side++) {
		memset(m->side, (int)side, n);
		for (unsigned i = 0; i < n; i++)
			m->head[side][i] = m->elem[i] =
				b->from[m->next[side][i] < m->end[side][i] ?
					m->next[side][i] : 0];
		load_tile(b, m, n);
	}
	for (uint32_t at = 0; at < b->cut && !sim_stopped(b->j->run); at += STEPS) {
		unsigned steps = least(b->cut - at, STEPS), step;

		for (unsigned k = 0; k < steps; k++) {
			const uint8_t *r = ask(b, m, n, &step);

			take_step(b, m, n, m->merged[k], r, step);
			load_tile(b, m, n);
		}
		write_merged(b, m, n, at);
	}
}

static void merge_segments(void *arg, uint64_t begin, uint64_t end, unsigned lane)
{
	const struct batch *b = arg;
	struct merger *m = sim_scratch(b->j->run, lane);

	for (uint64_t s = begin; s < end && !sim_stopped(b->j->run); s += SLOTS)
		merge_batch(b, m, (uint32_t)s, end - s < SLOTS ? (unsigned)(end - s) : SLOTS);
}

/* ---- keys ---- */

/* n elements' keys from `at` on in the batch, as numbers in the order wanted above positions. */
static void write_pairs(const struct batch *b, struct merger *m, uint32_t at, unsigned n,
			uint64_t *to)
{
	const struct sort_plan *p = b->j->p;
	struct sim_tile tile = { .rank = p->rank, .rows = 1, .cols = n, .col_dims = 1,
				 .col_dim = { n } };
	unsigned bytes = elem_bytes(p->key_elem), step;
	char *scratch = (char *)m + p->body_at;
	bool is_spread, is_row, is_signed = elem_class(p->key_elem) == ELEM_CLASS_SINT;
	uint32_t sign = 1u << (bytes * 8 - 1), all = sign | (sign - 1);
	const char *key;

	for (unsigned j = 0; j < p->k; j++)
		tile.pre[2 * j] = tile.pre[2 * j + 1] =
			b->room + p->array_at[j] + (size_t)at * p->bytes[j];
	sim_body_run(p->key, b->j->run, &tile, scratch);
	key = sim_body_value(p->key, p->key_value, &tile, scratch, &is_spread, &is_row);
	step = is_spread ? 0 : bytes;
	for (unsigned i = 0; i < n; i++, key += step) {
		uint32_t x = 0;

		memcpy(&x, key, bytes);
		if (p->key_elem == ELEM_F32)
			x ^= x & sign ? all : sign;
		else if (is_signed)
			x ^= sign;
		if (p->is_falling)
			x ^= all;
		to[i] = (uint64_t)x << 32 | (at + i);
	}
}

static void insert_each(uint64_t *v, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++) {
		uint64_t x = v[i];
		uint32_t k = i;

		for (; k && v[k - 1] > x; k--)
			v[k] = v[k - 1];
		v[k] = x;
	}
}

/* From i on: how far to go before it is time to look whether to stop. 0: stop. */
static uint32_t piece_end(const struct sim_run *run, uint32_t i, uint32_t n)
{
	return sim_stopped(run) ? 0 : n - i < PIECE ? n : i + PIECE;
}

/* To where the counts of `byte` say, which are of all pairs before. False: the run is to stop. */
static bool scatter_pairs(const struct sim_run *run, const uint64_t *v, uint64_t *to, uint32_t n,
			  unsigned shift, uint32_t *count)
{
	uint32_t sum = 0, here;

	for (unsigned k = 0; k < 256; k++) {
		here = count[k];
		count[k] = sum;
		sum += here;
	}
	for (uint32_t i = 0, end; i < n;) {
		end = piece_end(run, i, n);
		if (!end)
			return false;
		for (; i < end; i++)
			to[count[v[i] >> shift & 255]++] = v[i];
	}
	return true;
}

/* Sorts v by its keys of `bytes` bytes, whose order among equals stays; the result may be in
 * `other`. A byte that all keys share is passed over. NULL: the run is to stop. */
static uint64_t *sort_pairs(const struct sim_run *run, uint64_t *v, uint64_t *other, uint32_t n,
			    unsigned bytes)
{
	uint32_t count[4][256] = { { 0 } };

	if (n <= FEW) {
		insert_each(v, n);
		return v;
	}
	for (uint32_t i = 0, end; i < n;) {
		end = piece_end(run, i, n);
		if (!end)
			return NULL;
		for (; i < end; i++)
			for (unsigned d = 0; d < bytes; d++)
				count[d][v[i] >> (32 + 8 * d) & 255]++;
	}
	for (unsigned d = 0; d < bytes; d++) {
		unsigned shift = 32 + 8 * d;
		uint64_t *t = v;

		if (count[d][v[0] >> shift & 255] == n)
			continue;
		if (!scatter_pairs(run, v, other, n, shift, count[d]))
			return NULL;
		v = other;
		other = t;
	}
	return v;
}

/* Positions in the order of keys, line by line. */
static void order_by_keys(const struct batch *b, unsigned lane)
{
	const struct sort_plan *p = b->j->p;
	const struct sim_run *run = b->j->run;
	struct merger *m = sim_scratch(b->j->run, lane);
	uint64_t *pair[2];

	for (unsigned i = 0; i < 2; i++)
		pair[i] = (uint64_t *)(void *)(b->room + p->pair_at[i]);
	for (unsigned line = 0; line < b->lines; line++) {
		uint32_t first = line * b->n;
		const uint64_t *sorted;

		for (uint32_t i = 0; i < b->n && !sim_stopped(run); i += SLOTS)
			write_pairs(b, m, first + i, least(b->n - i, SLOTS), pair[0] + i);
		if (sim_stopped(run))
			return;
		sorted = sort_pairs(run, pair[0], pair[1], b->n, elem_bytes(p->key_elem));
		for (uint32_t i = 0; sorted && i < b->n; i++)
			b->from[first + i] = (uint32_t)sorted[i];
	}
}

/* ---- lines ---- */

static void share(struct batch *b, uint64_t n, uint64_t grain, uint64_t ns,
		  void (*fn)(void *arg, uint64_t begin, uint64_t end, unsigned lane),
		  unsigned lane)
{
	if (b->j->p->is_shared)
		sim_parallel(b->j->run, n, grain, ns, fn, b);
	else
		fn(b, 0, n, lane);
}

/* n elements of `bytes` bytes that lie `step` apart, side by side; a loop for each usual size. */
static void take_elements(uint8_t *to, const uint8_t *from, int64_t step, uint64_t n,
			  unsigned bytes)
{
#define TAKE(T) \
	for (uint64_t i = 0; i < n; i++, from += step) \
		memcpy(to + i * sizeof(T), from, sizeof(T))
	if (step == bytes) {
		memcpy(to, from, n * bytes);
		return;
	}
	switch (bytes) {
	case 1: TAKE(uint8_t); break;
	case 2: TAKE(uint16_t); break;
	case 4: TAKE(uint32_t); break;
	case 8: TAKE(uint64_t); break;
	default:
		for (uint64_t i = 0; i < n; i++, from += step)
			memcpy(to + i * bytes, from, bytes);
	}
#undef TAKE
}

/* array[at[0]], array[at[1]], ..., n of them, to where elements lie `step` apart. */
static void put_elements(uint8_t *to, int64_t step, const uint8_t *array, const uint32_t *at,
			 uint64_t n, unsigned bytes)
{
#define PUT(T) \
	for (uint64_t i = 0; i < n; i++, to += step) \
		memcpy(to, array + at[i] * sizeof(T), sizeof(T))
	switch (bytes) {
	case 1: PUT(uint8_t); break;
	case 2: PUT(uint16_t); break;
	case 4: PUT(uint32_t); break;
	case 8: PUT(uint64_t); break;
	default:
		for (uint64_t i = 0; i < n; i++, to += step)
			memcpy(to, array + (size_t)at[i] * bytes, bytes);
	}
#undef PUT
}

/* Moves elements [begin, end) of the batch between memory and `room`: in as they lie,
 * out in the order of their positions. Ends early when the run is to stop. */
static void move_elements(const struct batch *b, uint64_t begin, uint64_t end, bool out)
{
	const struct sort_plan *p = b->j->p;

	for (uint64_t i = begin, until; i < end && !sim_stopped(b->j->run); i = until) {
		uint64_t line = b->first + i / b->n;
		int64_t skip = (int64_t)(i % b->n);

		until = i - (uint64_t)skip + b->n < end ? i - (uint64_t)skip + b->n : end;
		until = until - i < PIECE ? until : i + PIECE;
		for (unsigned a = 0; a < p->k; a++) {
			const int64_t *stride = out ? p->out[a].stride : p->in[a].stride;
			int64_t step = stride[p->dim_of], at = skip * step;
			uint8_t *array = b->room + p->array_at[a];
			uint64_t rest = line;

			for (unsigned d = p->rank; d-- > 0;) {
				if (d == p->dim_of)
					continue;
				at += (int64_t)(rest % (uint64_t)p->dim[d]) * stride[d];
				rest /= (uint64_t)p->dim[d];
			}
			if (out)
				put_elements(b->j->out[a] + at, step, array, b->from + i,
					     until - i, p->bytes[a]);
			else
				take_elements(array + i * p->bytes[a], b->j->in[a] + at, step,
					      until - i, p->bytes[a]);
		}
	}
}

static void load_batch(void *arg, uint64_t begin, uint64_t end, unsigned lane)
{
	const struct batch *b = arg;

	(void)lane;
	move_elements(b, begin, end, false);
	for (uint64_t i = begin; i < end && !sim_stopped(b->j->run);)
		for (uint64_t n = end - i < PIECE ? end - i : PIECE; n; n--, i++)
			b->from[i] = (uint32_t)i;
}

static void store_batch(void *arg, uint64_t begin, uint64_t end, unsigned lane)
{
	(void)lane;
	move_elements(arg, begin, end, true);
}

static void sort_batch(struct batch *b, unsigned lane)
{
	const struct sort_plan *p = b->j->p;
	uint64_t n = (uint64_t)b->n * b->lines, ns = 10 * n;

	share(b, n, 4096, ns / 4, load_batch, lane);
	/* Positions, and then their order, may be half made from here on. */
	if (sim_stopped(b->j->run))
		return;
	if (p->key)
		order_by_keys(b, lane);
	for (uint64_t size = 1; size < b->n && !p->key; size *= 2) {
		uint32_t segments, *t;

		b->size = (uint32_t)size;
		b->cut = 2 * size < p->segment ? (uint32_t)(2 * size) : p->segment;
		b->segments = (b->n - 1) / b->cut + 1;
		segments = b->segments * b->lines;
		if (b->cut < 2 * size) {
			share(b, segments, 64, ns / b->cut * 10, find_splits, lane);
			mend_splits(b, segments);
		}
		share(b, segments, 64, ns, merge_segments, lane);
		if (sim_stopped(b->j->run))
			return;
		t = b->from;
		b->from = b->to;
		b->to = t;
	}
	if (!sim_stopped(b->j->run))
		share(b, n, 4096, ns / 4, store_batch, lane);
}

static void run_lines(void *arg, uint64_t begin, uint64_t end, unsigned lane)
{
	const struct job *j = arg;
	const struct sort_plan *p = j->p;
	uint8_t *room = p->is_shared ? j->run->shared :
				       (uint8_t *)sim_scratch(j->run, lane) + p->line_at;

	for (uint64_t i = begin; i < end && !sim_stopped(j->run); i += p->together) {
		struct batch b = { .j = j, .room = room, .first = i, .n = (uint32_t)p->n,
			.lines = end - i < p->together ? (unsigned)(end - i) : p->together,
			.from = (uint32_t *)(void *)(room + p->order_at[0]),
			.to = (uint32_t *)(void *)(room + p->order_at[1]),
			.split = (uint32_t *)(void *)(room + p->split_at) };

		sort_batch(&b, lane);
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
	for (unsigned a = 0; a < p->k; a++) {
		run->read_bytes += p->lines * (uint64_t)p->n * p->bytes[a];
		run->write_bytes += p->lines * (uint64_t)p->n * p->bytes[a];
	}
	if (__builtin_mul_overflow(p->ns, p->lines, &ns))
		ns = UINT64_MAX / 2;
	if (p->is_shared)
		run_lines(&j, 0, p->lines, 0);
	else
		sim_parallel(run, p->lines, p->together, ns, run_lines, &j);
	return 0;
}

const struct sim_family sim_family_sort = { prepare_sort, run_sort };
