/* SPDX-License-Identifier: Apache-2.0 */
/*
 * VEC: a body at each point of an iteration space.
 *
 * prepare() simplifies the space, cuts it into tiles and prepares the body; run()
 * hands ranges of tiles to the lanes. For each tile inputs are made dense (most
 * lie so already), the body runs, and outputs are stored; the last uop of an output
 * writes straight into memory where it can. Outputs that fold (isa_combine) are in
 * exec_vec_combine.c, REDUCE is in exec_vec_reduce.c, what a body does first to many inputs
 * that lie alike in exec_vec_chain.c.
 */
#include "hal/sim/core/exec_vec.h"

#include <string.h>

/* Read and written by an instruction, from which on caches keep nothing of its outputs: measured
 * with instructions that read the last one's output, on caches of 2 MB a core and 100 MB and more
 * for all. */
#define STREAM_BYTES (128u << 20)
#define STREAM_COST 256		/* of a uop a point, in 1/1024 ns */
/* Of a tile of 4-byte elements that are folded where they lie. */
#define FOLDED_POINTS 16384

/* ---- prepare ---- */

/*
 * With a dim of size 0 nothing is stored, but an output that folds over that dim
 * holds the fold of nothing: the identity. Its other dims are checked here.
 */
static int prepare_empty(struct sim_load *load, const struct isa_body *b,
			 const struct isa_operand *out, struct vec_plan *p)
{
	p->points = 0;
	p->space.rank = b->rank;
	memcpy(p->space.dim, b->dim, sizeof(p->space.dim));
	for (unsigned j = 0; j < b->n_out; j++) {
		int64_t dim[ISA_MAX_RANK];
		bool is_empty = false;
		int ret;

		for (unsigned d = 0; d < ISA_MAX_RANK; d++) {
			dim[d] = d < b->rank && out[j].stride[d] ? b->dim[d] : 1;
			is_empty |= !dim[d];
		}
		if (out[j].combine == ISA_STORE || p->out[j].acc || is_empty)
			continue;
		ret = sim_ref(load, &out[j], b->n_in + j, true, 0, b->rank, dim, NULL, 0,
			      &p->out[j].ref);
		if (ret)
			return ret;
		p->combining |= 1u << j;
	}
	return 0;
}

static void run_empty(struct vec_job *job)
{
	const struct vec_plan *p = job->plan;

	for (unsigned j = 0; j < p->n_out; j++)
		if (p->combining >> j & 1)
			sim_out_identity(job->run, &p->out[j].ref, job->out[j], p->space.rank,
					 p->space.dim, p->out[j].combine);
}

static int prepare_refs(struct sim_load *load, const struct isa_tensor *t,
			const struct isa_operand *in, const struct isa_operand *out,
			struct vec_plan *p)
{
	const struct isa_body *b = &t->body;
	int ret = 0;

	for (unsigned j = 0; j < b->n_in && !ret; j++)
		ret = sim_input_ref(load, &in[j], j, b->rank, b->dim, &p->in[j]);
	for (unsigned j = 0; j < b->n_out && !ret; j++) {
		p->out[j].value = out[j].value;
		p->out[j].combine = out[j].combine;
		p->out[j].acc = out[j].flags & ISA_OPERAND_ACC;
		ret = sim_ref(load, &out[j], b->n_in + j, true, 0, b->rank, b->dim, NULL, 0,
			      &p->out[j].ref);
	}
	return ret;
}

static void set_totals(struct vec_plan *p, uint64_t cost)
{
	uint64_t in = 0, out = 0;

	p->points = 1;
	for (unsigned d = 0; d < p->space.rank; d++)
		p->points *= (uint64_t)p->space.dim[d];
	for (unsigned j = 0; j < p->n_in; j++)
		in += elem_bytes(p->in[j].elem);
	if (p->chain)
		in += (p->chain->n - 1) * elem_bytes(p->chain->link[0].elem);
	for (unsigned j = 0; j < p->n_out; j++)
		out += elem_bytes(p->out[j].ref.elem);
	p->read_bytes = p->points * in;
	p->write_bytes = p->points * out;
	/* memory at some 10 bytes a ns; a tile costs its steps' set-up */
	p->ns = (uint64_t)((double)p->points * ((double)cost / 1024 + (double)(in + out) / 10) +
		(double)p->tiling.n_tiles * (30 + 10 * p->n_uop));
	if (p->products || p->stack)
		p->ns = p->read_bytes / 32 + p->tiling.n_tiles * 40;
}

/* NULL: no memory. */
static const struct sim_box *box_of(struct sim_load *load, const struct sim_ref *ref,
				    const struct sim_tile *tile)
{
	struct { struct sim_box box; struct sim_shuffle shuffle; } *both;
	struct sim_box *x;

	both = arena_alloc(load->arena, sizeof(*both));
	if (!both)
		return NULL;
	x = &both->box;
	sim_tile_box(ref, tile, x);
	if (x->n && !(x->stride[x->n - 1] % (int64_t)x->bytes))
		x->column = sim_column(load->cpu->path, x->bytes,
				       x->stride[x->n - 1] / (int64_t)x->bytes);
	x->zip = sim_zip(load->cpu->path, x->bytes);
	sim_box_shuffle(x, load->cpu->path, &both->shuffle);
	return x;
}

static bool is_chain(const struct vec_plan *p, unsigned j)
{
	return p->chain && j == p->chain->input;
}

/* The output that is stored by a box and lies `bytes` behind output j, all else alike; or n_out. */
static unsigned output_behind(const struct vec_plan *p, unsigned j, int64_t bytes)
{
	const struct sim_ref *first = &p->out[j].ref, *ref;
	unsigned i;

	for (i = 0; i < p->n_out; i++) {
		ref = &p->out[i].ref;
		if (p->out_box[i] && ref->binding == first->binding && ref->reg == first->reg &&
		    ref->elem == first->elem && ref->offset == first->offset + bytes &&
		    !memcmp(ref->stride, first->stride, sizeof(ref->stride)))
			break;
	}
	return i;
}

/* Finds outputs that are stored together, for lines of memory that they share are written once. */
static void find_zip(struct vec_plan *p)
{
	for (unsigned j = 0; j < p->n_out && !p->n_zip; j++) {
		const struct sim_box *x = p->out_box[j];
		int64_t n = x && x->n ? x->stride[x->n - 1] / (int64_t)x->bytes : 0;

		if (n < 2 || n > p->n_out || x->stride[x->n - 1] % (int64_t)x->bytes)
			continue;
		for (unsigned k = 0; k < n; k++) {
			unsigned i = output_behind(p, j, (int64_t)k * x->bytes);

			if (i == p->n_out)
				break;
			p->zip[k] = (uint8_t)i;
			p->n_zip = k + 1 == n ? (unsigned)n : 0;
		}
	}
}

/* Boxes of operands that are neither dense nor spread. */
static int plan_boxes(struct sim_load *load, struct vec_plan *p, const struct sim_tile *tile)
{
	for (unsigned j = 0; j < p->n_in; j++) {
		if (p->in_kind[j] != SIM_TILE_ANY || p->copied >> j & 1 || is_chain(p, j))
			continue;
		p->in_box[j] = box_of(load, &p->in[j], tile);
		if (!p->in_box[j])
			return sim_refuse(load, HW_ST_NO_ROOM, "no memory for a box");
		p->gathered &= ~(1u << j);
	}
	for (unsigned j = 0; j < p->n_out; j++) {
		if ((p->direct | p->streamed) >> j & 1 || p->out[j].row_value ||
		    p->out[j].combine != ISA_STORE)
			continue;
		p->out_box[j] = box_of(load, &p->out[j].ref, tile);
		if (!p->out_box[j])
			return sim_refuse(load, HW_ST_NO_ROOM, "no memory for a box");
		if (p->out_box[j]->repeat > 1)
			p->out_box[j] = NULL;
	}
	find_zip(p);
	return 0;
}

/*
 * Outputs of which caches would keep nothing until someone reads them are made in a room and sent
 * past the caches: another store reads the line of memory before it writes it. A lone uop that
 * takes its time works while its lines come and go, and waits for them so.
 */
static void find_streamed(struct vec_plan *p, uint64_t cost, const struct sim_tile *tile)
{
	if (p->read_bytes + p->write_bytes < STREAM_BYTES || p->combining ||
	    p->tiling.n_tiles == 1 || (p->n_uop == 1 && cost > STREAM_COST))
		return;
	for (unsigned j = 0; j < p->n_out; j++)
		if (!p->out[j].row_value && sim_tile_kind(&p->out[j].ref, tile) == SIM_TILE_DENSE)
			p->streamed |= 1u << j;
	p->direct &= ~p->streamed;
}

/* How operands lie on full tiles, and what runs there. */
static int plan_full(struct sim_load *load, struct vec_plan *p, uint64_t cost)
{
	const uint64_t at[ISA_MAX_RANK] = { 0 };
	struct sim_tile *tile = arena_alloc(load->arena, sizeof(*tile));
	bool is_lone = p->tiling.n_tiles == 1;

	if (!tile)
		return sim_refuse(load, HW_ST_NO_ROOM, "no memory for a tile");
	vec_tile_at(&p->space, &p->tiling, at, tile);
	for (unsigned j = 0; j < p->n_in; j++) {
		unsigned kind = sim_tile_kind(&p->in[j], tile);

		if (is_chain(p, j))
			continue;
		tile->in_spread |= (uint32_t)(kind == SIM_TILE_SPREAD) << j;
		tile->in_row |= (uint32_t)(kind == SIM_TILE_ROW || kind == SIM_TILE_APART) << j;
		if (p->copied >> j & 1)
			kind = SIM_TILE_ANY;
		p->in_kind[j] = (uint8_t)kind;
		p->gathered |= (uint32_t)(kind == SIM_TILE_ANY || kind == SIM_TILE_APART) << j;
	}
	for (unsigned j = 0; j < p->n_out; j++)
		if (sim_tile_kind(&p->out[j].ref, tile) != SIM_TILE_DENSE && p->points != 1)
			p->direct &= ~(1u << j);
	find_streamed(p, cost, tile);
	if (p->combining && !p->uniform)
		return 0;
	p->calls = sim_body_calls(load->arena, p->body, tile, is_lone);
	if (!p->calls)
		return sim_refuse(load, HW_ST_NO_ROOM, "no memory for a body's calls");
	p->in_place = p->direct & sim_calls_in_place(p->calls);
	p->lone = is_lone ? tile : NULL;
	if (p->chain && vec_plan_chain(load, p, tile))
		return HW_ST_NO_ROOM;
	return plan_boxes(load, p, tile);
}

/* The dims that output j folds. */
static uint32_t folded_dims(const struct vec_plan *p, unsigned j)
{
	uint32_t mask = 0;

	for (unsigned d = 0; d < p->space.rank; d++)
		if (!p->out[j].ref.stride[d])
			mask |= 1u << d;
	return mask;
}

/* Whether no operand has its elements far apart where the others' lie side by side. */
static bool is_along(struct sim_ref *const *refs, unsigned n, unsigned last)
{
	for (unsigned k = 0; k < n; k++)
		if (refs[k]->stride[last] && refs[k]->stride[last] != elem_bytes(refs[k]->elem))
			return false;
	return true;
}

/*
 * Points of a tile. What folds has few values in the cache at once, none if inputs fold where they
 * lie, and steps of its own for each tile. Where values are stored, sim_body_points() reckons with
 * elements of 4 bytes, and a body of many values would leave the L1 cache with wider ones.
 */
static unsigned points_of(const struct sim_load *load, const struct isa_body *b,
			  const struct sim_body_facts *facts, bool combining, bool along)
{
	unsigned points = sim_body_points(load->cpu, b), widest = 4;

	if (combining && along)
		points = b->n_uop ? 2 * points : FOLDED_POINTS;
	else if (combining)
		return points;
	for (unsigned v = 0; v < b->n_in + b->n_uop; v++)
		if (elem_bytes(facts->elem[v]) > widest)
			widest = elem_bytes(facts->elem[v]);
	return points * 4 / widest;
}

/* Cuts the space, and prepares the body for what it has become. */
static int prepare_body(struct sim_load *load, const struct isa_body *b,
			const struct isa_operand *out, const struct isa_uop *uops,
			const struct sim_body_facts *facts, struct vec_plan *p)
{
	struct sim_ref *refs[VEC_OPERANDS];
	unsigned n = 0, points;
	struct isa_body body = *b;
	struct isa_uop *own;
	uint32_t still = 0;
	int64_t row = 1;

	for (unsigned j = 0; j < p->n_in; j++)
		refs[n++] = &p->in[j];
	for (unsigned j = 0; j < p->n_out; j++)
		refs[n++] = &p->out[j].ref;
	p->space.rank = b->rank;
	p->space.row_rank = b->row_rank;
	memcpy(p->space.dim, b->dim, sizeof(p->space.dim));
	for (unsigned i = 0; i < b->n_uop; i++)
		if (uops[i].op == UOP_IOTA)
			p->space.tied |= 1u << uops[i].aux;
	/* folded dims: of the first output that folds */
	for (unsigned j = p->n_out; j-- > 0;)
		if (p->out[j].combine != ISA_STORE)
			p->space.reduced = folded_dims(p, j);
	vec_simplify(&p->space, refs, p->n_in, n);
	for (unsigned d = p->space.rank - p->space.row_rank; d < p->space.rank; d++)
		row *= p->space.dim[d];
	points = points_of(load, b, facts, p->combining,
			   p->space.rank && is_along(refs, n, p->space.rank - 1));
	vec_cut(&p->space, refs, n, points > row ? points : (unsigned)row, &p->tiling);
	if (p->combining)
		vec_find_folds(load, p, uops);
	own = vec_uops(load, &p->space, uops, b->n_uop);
	if (!own)
		return sim_refuse(load, HW_ST_NO_ROOM, "no memory for a body");
	body.rank = (uint8_t)p->space.rank;
	for (unsigned d = 0; d < p->space.rank && p->tiling.n_tiles > 1; d++)
		still |= (uint32_t)(p->tiling.tiles[d] == 1) << d;
	return sim_body_plan(load, &body, out, own, 0, facts, p->tiling.points, still, &p->body);
}

/* The same in little memory, if it has one tile and all lies where it is used; or NULL. */
static const struct sim_flat *flatten(struct sim_load *load, const struct vec_plan *p)
{
	struct sim_flat_out out[ISA_MAX_OUT];
	struct sim_flat *flat;

	if (!p->lone || p->chain || p->combining || p->reads_peers || p->gathered & ~p->copied)
		return NULL;
	for (unsigned j = 0; j < p->n_in; j++)
		if (p->in_box[j] || (p->copied >> j & 1 && p->points > 1 &&
				     sim_tile_kind(&p->in[j], p->lone) != SIM_TILE_DENSE))
			return NULL;
	for (unsigned j = 0; j < p->n_out; j++) {
		out[j] = (struct sim_flat_out){ .ref = &p->out[j].ref, .value = p->out[j].value,
						.direct = p->direct >> j & 1 };
		if (p->points > 1 && sim_tile_kind(out[j].ref, p->lone) != SIM_TILE_DENSE)
			return NULL;
	}
	flat = sim_body_flat(load->small, p->calls, p->in, p->copied, p->in_room, out, p->n_out,
			     p->points);
	if (!flat)
		return NULL;
	flat->ops = p->points * p->n_uop;
	flat->read_bytes = p->read_bytes;
	flat->write_bytes = p->write_bytes;
	return flat;
}

/* ---- run ---- */

/* Inputs [0, n) that lie in other chips' memory are not read any more. False: a fault was
 * recorded. */
static bool end_reads(struct sim_run *run, const struct vec_plan *p, unsigned n)
{
	bool is_whole = true;

	for (unsigned j = 0; j < n; j++)
		if (p->in[j].is_peer)
			is_whole &= sim_reach_end(run, &p->in[j],
						  p->points * elem_bytes(p->in[j].elem));
	return is_whole;
}

static bool begin_reads(struct sim_run *run, const struct vec_plan *p)
{
	for (unsigned j = 0; j < p->n_in; j++)
		if (p->in[j].is_peer && !sim_reach_begin(run, &p->in[j])) {
			end_reads(run, p, j);
			return false;
		}
	return true;
}

static int run_vec(struct sim_run *run, const void *plan)
{
	const struct vec_plan *p = plan;
	struct vec_job job;

	job.run = run;
	job.plan = p;
	for (unsigned j = 0; j < p->n_in; j++) {
		job.in[j] = sim_at(run, &p->in[j]);
		if (!job.in[j])
			return run->fault.status;
	}
	for (unsigned k = 0; p->chain && k < p->chain->n; k++) {
		job.link[k] = sim_at(run, &p->chain->link[k]);
		if (!job.link[k])
			return run->fault.status;
	}
	for (unsigned j = 0; j < p->n_out; j++) {
		job.out[j] = sim_at(run, &p->out[j].ref);
		if (!job.out[j])
			return run->fault.status;
	}
	if (p->points && p->reads_peers && !begin_reads(run, p))
		return run->fault.status;
	run->vector_ops += p->points * p->n_uop;
	run->read_bytes += p->read_bytes;
	run->write_bytes += p->write_bytes;
	if (!p->points)
		run_empty(&job);
	else if (p->combining)
		vec_run_combine(&job);
	else if (p->lone)
		vec_run_lone(&job);
	else
		sim_parallel(run, p->tiling.n_tiles, 1, p->ns, vec_run_tiles, &job);
	if (p->points && p->reads_peers && !end_reads(run, p, p->n_in))
		return run->fault.status;
	return 0;
}

/* ---- the family ---- */

static int prepare_vec(struct sim_load *load, const struct isa_tensor *t,
		       const void **plan)
{
	const struct isa_body *b = &t->body;
	const struct isa_operand *in, *out;
	const struct isa_uop *uops;
	const struct vec_shorter *shorter = NULL;
	const struct arena_mark mark = arena_mark(load->arena);
	const struct sim_flat *flat;
	bool is_brief;
	struct sim_body_facts facts;
	struct vec_plan *p;
	uint64_t cost;
	int ret;

	ret = vec_parts(load, t, &in, &out, &uops);
	if (!ret && t->reduce_dims)
		ret = sim_refuse(load, HW_ST_BAD_PROGRAM, "reduce_dims is REDUCE's");
	/* the body as it stands: rules speak of the dims of the program */
	if (!ret)
		ret = sim_body_check(load, b, in, out, uops, NULL, 0, &facts);
	if (ret)
		return ret;
	p = arena_alloc(load->arena, sizeof(*p));
	if (!p)
		return sim_refuse(load, HW_ST_NO_ROOM, "no memory for a plan");
	p->run = run_vec;
	p->n_in = b->n_in;
	p->n_out = b->n_out;
	p->n_uop = b->n_uop;
	ret = prepare_refs(load, t, in, out, p);
	if (ret)
		return ret;
	*plan = p;
	for (unsigned d = 0; d < b->rank; d++)
		if (!b->dim[d])
			return prepare_empty(load, b, out, p);
	for (unsigned j = 0; j < b->n_out; j++) {
		p->out[j].row_value = facts.row[out[j].value];
		for (unsigned d = b->rank - b->row_rank; d < b->rank; d++)
			p->out[j].row_value &= !out[j].stride[d];
		if (out[j].combine != ISA_STORE)
			p->combining |= 1u << j;
	}
	ret = vec_take_chain(load, p, b, out, uops, &shorter);
	if (ret)
		return ret;
	ret = shorter ? prepare_body(load, &shorter->body, shorter->out, shorter->uops,
				     &shorter->facts, p) :
		prepare_body(load, b, out, uops, &facts, p);
	if (ret)
		return ret;
	p->direct = sim_body_direct(p->body);
	/* What is at one place for many points is no room for a value that others are made of. */
	for (unsigned j = 0; j < p->n_out; j++)
		for (unsigned d = 0; d < p->space.rank; d++)
			if (p->space.dim[d] > 1 && !p->out[j].ref.stride[d])
				p->direct &= ~(1u << j);
	p->direct &= ~p->combining;
	for (unsigned j = 0; j < p->n_out && p->n_out > 1; j++)
		if (p->out[j].value < p->n_in)
			p->copied |= 1u << p->out[j].value;
	for (unsigned j = 0; j < p->n_in; j++)
		p->reads_peers |= p->in[j].is_peer;
	cost = vec_cost(load->cpu->path, uops, p->n_uop);
	set_totals(p, cost);
	ret = plan_full(load, p, cost);
	if (ret)
		return ret;
	p->scratch = sim_body_scratch(p->body);
	for (unsigned j = 0; j < p->n_in; j++)
		p->in_room[j] = vec_room(&p->scratch, (size_t)p->tiling.points *
					 elem_bytes(p->in[j].elem));
	if (p->combining)
		ret = vec_plan_combine(load, p);
	sim_need_scratch(load, p->scratch);
	is_brief = p->ns < SIM_BRIEF_NS && !p->reads_peers;
	flat = ret ? NULL : flatten(load, p);
	if (flat) {
		arena_rewind(load->arena, mark);
		*plan = flat;
	}
	if (is_brief)
		load->brief = SIM_BRIEF;
	return ret;
}

static int prepare(struct sim_load *load, const struct isa_insn *insn,
		   const void **plan)
{
	const struct isa_tensor *t = (const void *)insn;

	return insn->op == ISA_REDUCE ? vec_prepare_reduce(load, t, plan) :
		prepare_vec(load, t, plan);
}

/* Plans begin with how they run. */
static int run(struct sim_run *run, const void *plan)
{
	int (*const *how)(struct sim_run *, const void *) = plan;

	return (*how)(run, plan);
}

const struct sim_family sim_family_tensor = { .prepare = prepare, .run = run };
