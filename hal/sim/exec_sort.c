/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SORT: Batcher's odd-even merge network over an array of positions (Batcher, "Sorting
 * networks and their applications", 1968). Which pairs meet does not depend on what they
 * hold, so comparisons are evaluated by the hundred on tiles, and a comparator that
 * contradicts itself still gives a permutation. Ties go by position, so every sort is
 * stable. The lines along the sorted dim are shared out to the lanes.
 */
#include <string.h>

#include "hal/sim/core.h"

#define PAIRS 512u

struct sort_plan {
	unsigned k, rank, dim_of;
	int64_t n, dim[ISA_MAX_RANK];
	uint64_t lines, ns;
	struct sim_ref in[ISA_MAX_SORT], out[ISA_MAX_SORT];
	unsigned bytes[ISA_MAX_SORT];
	uint8_t first;
	const struct sim_body *body;
	size_t order_at, line_at[ISA_MAX_SORT], pre_at, pairs_at, body_at;
};

struct job {
	struct sim_run *run;
	const struct sort_plan *p;
	const uint8_t *in[ISA_MAX_SORT];
	uint8_t *out[ISA_MAX_SORT];
};

/* Pairs of positions that wait to be compared. */
struct batch {
	const struct job *j;
	uint8_t *scratch;
	uint32_t *order, (*pair)[2];
	unsigned n;
};

static size_t up(size_t n)
{
	return (n + 63) & ~(size_t)63;
}

static int check_form(struct sim_load *load, const struct isa_sort *s)
{
	const struct isa_body *b = &s->body;
	size_t bytes = sizeof(*s) + 2u * b->n_in * sizeof(struct isa_operand) +
		       b->n_uop * sizeof(struct isa_uop);
	int64_t points = 1;

	if (!b->n_in || b->n_in > ISA_MAX_SORT || b->n_out != b->n_in || b->row_rank ||
	    b->rank > ISA_MAX_RANK || !b->rank || s->sort_dim >= b->rank ||
	    s->insn.bytes != bytes || s->insn.flags & ~ISA_FLAG_STABLE)
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

	for (unsigned i = 0; i < s->body.n_uop; i++)
		if (uops[i].op == UOP_IOTA)
			return sim_refuse(load, HW_ST_BAD_PROGRAM, "iota in a comparator");
	for (unsigned j = 0; j < p->k; j++)
		pre[2 * j] = pre[2 * j + 1] = in[j].elem;
	body.n_in = 0;
	body.n_out = 1;
	return sim_body_prepare(load, &body, NULL, &out, uops, pre, 2 * p->k, PAIRS, &p->body);
}

static int prepare_sort(struct sim_load *load, const struct isa_insn *insn,
			const void **plan)
{
	const struct isa_sort *s = (const void *)insn;
	const struct isa_operand *in = (const void *)(s + 1), *out = in + s->body.n_in;
	const struct isa_uop *uops = (const void *)(out + s->body.n_out);
	struct sort_plan *p = arena_alloc(load->arena, sizeof(*p));
	size_t at;
	double work;
	int ret;

	if (!p)
		return sim_refuse(load, HW_ST_NO_ROOM, "no memory for a plan");
	ret = check_form(load, s);
	if (ret)
		return ret;
	p->k = s->body.n_in;
	p->rank = s->body.rank;
	p->dim_of = s->sort_dim;
	p->first = s->first;
	memcpy(p->dim, s->body.dim, sizeof(p->dim));
	p->n = p->dim[p->dim_of];
	p->lines = 1;
	for (unsigned d = 0; d < p->rank; d++)
		p->lines *= d == p->dim_of ? 1 : (uint64_t)p->dim[d];
	at = up((size_t)p->n * sizeof(uint32_t));
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
		p->line_at[j] = at;
		at += up((size_t)p->n * p->bytes[j]);
	}
	ret = prepare_body(load, s, in, uops, p);
	if (ret)
		return ret;
	p->pre_at = at;
	at += 2 * ISA_MAX_SORT * PAIRS * 16;
	p->pairs_at = at;
	at += up(PAIRS * 2 * sizeof(uint32_t));
	p->body_at = at;
	sim_need_scratch(load, at + sim_body_scratch(p->body));
	work = (double)p->n;
	for (int64_t i = 1; i < p->n; i *= 2)
		work += (double)p->n;
	work = work * work / ((double)p->n + 1) * (double)p->lines * 4;
	p->ns = work < 1e18 ? (uint64_t)work : UINT64_MAX / 2;
	*plan = p;
	return 0;
}

/* Whether the first (or, turned, the second) of each pair goes first. */
static const uint8_t *compare(struct batch *b, bool turned, bool *is_spread)
{
	const struct sort_plan *p = b->j->p;
	struct sim_tile tile = { .rank = p->rank, .rows = 1, .cols = b->n, .col_dims = 1,
				 .col_dim = { b->n } };
	bool is_row;

	for (unsigned j = 0; j < p->k; j++)
		for (unsigned side = 0; side < 2; side++) {
			uint8_t *to = b->scratch + p->pre_at + (2 * j + side) * PAIRS * 16;
			unsigned bytes = p->bytes[j];

			tile.pre[2 * j + side] = to;
			for (unsigned i = 0; i < b->n; i++, to += bytes)
				memcpy(to, b->scratch + p->line_at[j] + (size_t)
				       b->order[b->pair[i][side ^ turned]] * bytes, bytes);
		}
	sim_body_run(p->body, b->j->run, &tile, b->scratch + p->body_at);
	return sim_body_value(p->body, p->first, &tile, b->scratch + p->body_at, is_spread,
			      &is_row);
}

/* Compares what waits; those out of order change places. */
static void flush(struct batch *b)
{
	uint8_t after[PAIRS];
	const uint8_t *r;
	bool spread;

	if (!b->n)
		return;
	r = compare(b, true, &spread);
	for (unsigned i = 0; i < b->n; i++)
		after[i] = r[spread ? 0 : i];
	r = compare(b, false, &spread);
	for (unsigned i = 0; i < b->n; i++) {
		uint32_t *x = &b->order[b->pair[i][0]], *y = &b->order[b->pair[i][1]], t = *x;

		if (!(after[i] || (!r[spread ? 0 : i] && *y < *x)) ||
		    (after[i] && r[spread ? 0 : i]))
			continue;
		*x = *y;
		*y = t;
	}
	b->n = 0;
}

static void sort_line(struct batch *b)
{
	const struct sort_plan *p = b->j->p;
	int64_t n = p->n;
	unsigned looked = 0;

	for (int64_t i = 0; i < n; i++)
		b->order[i] = (uint32_t)i;
	for (int64_t size = 1; size < n; size *= 2)
		for (int64_t k = size; k >= 1; k /= 2) {
			/* Pairs of one step do not meet: they may wait together. */
			for (int64_t j = k % size; j <= n - 1 - k; j += 2 * k)
				for (int64_t i = j; i < j + k && i + k < n; i++) {
					if (!(++looked & 1023) && sim_stopped(b->j->run))
						return;
					if (i / (2 * size) != (i + k) / (2 * size))
						continue;
					b->pair[b->n][0] = (uint32_t)i;
					b->pair[b->n++][1] = (uint32_t)(i + k);
					if (b->n == PAIRS)
						flush(b);
				}
			flush(b);
		}
}

static void run_lines(void *arg, uint64_t begin, uint64_t end, unsigned lane)
{
	const struct job *j = arg;
	const struct sort_plan *p = j->p;
	uint8_t *scratch = sim_scratch(j->run, lane);
	struct batch b = { j, scratch, (uint32_t *)(void *)scratch,
			   (void *)(scratch + p->pairs_at), 0 };

	for (uint64_t line = begin; line < end && !sim_stopped(j->run); line++) {
		int64_t at_in[ISA_MAX_SORT] = { 0 }, at_out[ISA_MAX_SORT] = { 0 };
		uint64_t rest = line;

		for (unsigned d = p->rank; d-- > 0;) {
			if (d == p->dim_of)
				continue;
			for (unsigned a = 0; a < p->k; a++) {
				int64_t i = (int64_t)(rest % (uint64_t)p->dim[d]);

				at_in[a] += i * p->in[a].stride[d];
				at_out[a] += i * p->out[a].stride[d];
			}
			rest /= (uint64_t)p->dim[d];
		}
		for (unsigned a = 0; a < p->k; a++)
			for (int64_t i = 0; i < p->n; i++) {
				if (!(i & 4095) && sim_stopped(j->run))
					return;
				memcpy(scratch + p->line_at[a] + i * p->bytes[a], j->in[a] +
				       at_in[a] + i * p->in[a].stride[p->dim_of], p->bytes[a]);
			}
		sort_line(&b);
		for (unsigned a = 0; a < p->k; a++)
			for (int64_t i = 0; i < p->n; i++) {
				if (!(i & 4095) && sim_stopped(j->run))
					return;
				memcpy(j->out[a] + at_out[a] + i * p->out[a].stride[p->dim_of],
				       scratch + p->line_at[a] + b.order[i] * p->bytes[a],
				       p->bytes[a]);
			}
	}
}

static int run_sort(struct sim_run *run, const void *plan)
{
	const struct sort_plan *p = plan;
	struct job j = { .run = run, .p = p };

	for (unsigned a = 0; a < p->k; a++) {
		j.in[a] = sim_at(run, &p->in[a]);
		j.out[a] = j.in[a] ? sim_at(run, &p->out[a]) : NULL;
		if (!j.out[a])
			return run->fault.status;
	}
	if (p->n)
		sim_parallel(run, p->lines, 1, p->ns, run_lines, &j);
	return 0;
}

const struct sim_family sim_family_sort = { prepare_sort, run_sort };
