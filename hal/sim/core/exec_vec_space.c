/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Iteration spaces of the vector unit: simplified, ordered, cut into tiles; and tiles.
 *
 * Programs describe loops as the source language had them; the model is free in
 * the order of points. So dims of one element go, dims that run on into each other in
 * all operands become one, and the dim along which most operands are contiguous
 * becomes the innermost. An operand that is contiguous along another dim (a
 * transposition) makes tiles square, so that both sides use whole cache lines.
 */
#include "hal/sim/core/exec_vec.h"

#include <string.h>

static int64_t magnitude(int64_t x)
{
	return x < 0 ? -x : x;
}

static void swap_dims(struct vec_space *s, struct sim_ref *const *refs, unsigned n,
		      unsigned a, unsigned b)
{
	uint32_t both = 1u << a | 1u << b;
	int64_t t = s->dim[a];

	s->dim[a] = s->dim[b];
	s->dim[b] = t;
	for (unsigned k = 0; k < n; k++) {
		t = refs[k]->stride[a];
		refs[k]->stride[a] = refs[k]->stride[b];
		refs[k]->stride[b] = t;
	}
	if ((s->tied >> a & 1) != (s->tied >> b & 1))
		s->tied ^= both;
	if ((s->reduced >> a & 1) != (s->reduced >> b & 1))
		s->reduced ^= both;
	for (unsigned d = 0; d < ISA_MAX_RANK; d++)
		s->from[d] = s->from[d] == (int)a ? (int8_t)b :
			s->from[d] == (int)b ? (int8_t)a : s->from[d];
}

/* Takes dim d out; its coordinate is 0 or part of dim d + 1's from now on. */
static void remove_dim(struct vec_space *s, struct sim_ref *const *refs, unsigned n,
		       unsigned d)
{
	uint32_t below = (1u << d) - 1;

	for (unsigned k = d; k + 1 < s->rank; k++) {
		s->dim[k] = s->dim[k + 1];
		for (unsigned j = 0; j < n; j++)
			refs[j]->stride[k] = refs[j]->stride[k + 1];
	}
	s->tied = (s->tied & below) | (s->tied >> 1 & ~below);
	s->reduced = (s->reduced & below) | (s->reduced >> 1 & ~below);
	for (unsigned k = 0; k < ISA_MAX_RANK; k++) {
		if (s->from[k] == (int)d)
			s->from[k] = -1;
		else if (s->from[k] > (int)d)
			s->from[k]--;
	}
	s->rank--;
	s->dim[s->rank] = 1;
	for (unsigned j = 0; j < n; j++)
		refs[j]->stride[s->rank] = 0;
	if (d >= s->rank + 1 - s->row_rank)
		s->row_rank--;
}

/* Whether dim a should be inside dim b: positive if so. Operands vote with their
 * strides, outputs with three voices. */
static int votes_for(const struct sim_ref *const *refs, unsigned n_in, unsigned n,
		     unsigned a, unsigned b)
{
	int votes = 0;

	for (unsigned k = 0; k < n; k++) {
		int64_t x = magnitude(refs[k]->stride[a]);
		int64_t y = magnitude(refs[k]->stride[b]);
		int weight = k < n_in ? 1 : 3;

		if (x && y && x != y)
			votes += x < y ? weight : -weight;
	}
	return votes;
}

static void sort_dims(struct vec_space *s, struct sim_ref *const *refs, unsigned n_in,
		      unsigned n)
{
	unsigned outer = s->rank - s->row_rank;

	for (unsigned i = 1; i < outer; i++) {
		for (unsigned d = i; d > 0; d--) {
			bool bound = s->ordered && (s->reduced >> d & 1) &&
				(s->reduced >> (d - 1) & 1);

			if (bound || votes_for((const struct sim_ref *const *)refs, n_in,
					       n, d - 1, d) <= 0)
				break;
			swap_dims(s, refs, n, d - 1, d);
		}
	}
}

static bool can_merge(const struct vec_space *s, struct sim_ref *const *refs,
		      unsigned n, unsigned d)
{
	unsigned outer = s->rank - s->row_rank;

	if (d + 1 == outer || (s->tied >> d & 3))
		return false;
	if ((s->reduced >> d & 1) != (s->reduced >> (d + 1) & 1))
		return false;
	for (unsigned k = 0; k < n; k++)
		if (refs[k]->stride[d] != refs[k]->stride[d + 1] * s->dim[d + 1])
			return false;
	return true;
}

void vec_simplify(struct vec_space *s, struct sim_ref *const *refs, unsigned n_in,
		  unsigned n)
{
	for (unsigned d = 0; d < ISA_MAX_RANK; d++)
		s->from[d] = d < s->rank ? (int8_t)d : -1;
	/* a row stays one, if of one element */
	for (unsigned d = s->rank; d-- > 0;)
		if (s->dim[d] == 1 && !(s->row_rank == 1 && d + 1 == s->rank))
			remove_dim(s, refs, n, d);
	sort_dims(s, refs, n_in, n);
	for (unsigned d = s->rank; d-- > 1;) {
		if (!can_merge(s, refs, n, d - 1))
			continue;
		s->dim[d] *= s->dim[d - 1];
		remove_dim(s, refs, n, d - 1);
	}
}

/* ---- tiles ---- */

/* A dim along which some operand is nearer to contiguous than along the last, or
 * -1. */
static int turned_dim(const struct vec_space *s, struct sim_ref *const *refs, unsigned n)
{
	unsigned last = s->rank - 1;

	for (unsigned k = 0; k < n; k++) {
		int64_t inner = magnitude(refs[k]->stride[last]);
		int best = -1;

		if (inner <= (int64_t)elem_bytes(refs[k]->elem))
			continue;
		for (unsigned d = 0; d < last; d++) {
			int64_t x = magnitude(refs[k]->stride[d]);

			if (x && x < inner && s->dim[d] >= 4 && (best < 0 ||
			    x < magnitude(refs[k]->stride[best])))
				best = (int)d;
		}
		if (best >= 0)
			return best;
	}
	return -1;
}

/* Makes dim d the one before dim `at`, the others keeping their order; not if that
 * would turn the order of folded dims that must keep theirs. */
static void move_before(struct vec_space *s, struct sim_ref *const *refs, unsigned n,
			unsigned d, unsigned at)
{
	for (unsigned k = d + 1; k < at; k++)
		if (s->ordered && (s->reduced >> d & 1) && (s->reduced >> k & 1))
			return;
	for (; d + 1 < at; d++)
		swap_dims(s, refs, n, d, d + 1);
}

/* Equal parts of at most `most`, in multiples of 64 where that is possible. */
static int64_t even_part(int64_t n, int64_t most)
{
	int64_t parts = (n - 1) / most + 1, size = (n - 1) / parts + 1;

	if (most < 64)
		return size;
	size = (size + 63) / 64 * 64;
	return size > most ? most / 64 * 64 : size;
}

static void count_tiles(const struct vec_space *s, struct vec_tiling *t)
{
	t->n_tiles = 1;
	for (unsigned d = 0; d < s->rank; d++) {
		t->tiles[d] = (s->dim[d] - 1) / t->tile[d] + 1;
		t->n_tiles *= (uint64_t)t->tiles[d];
	}
}

/* Columns: the row, or as many trailing dims as fit whole. */
static void choose_cols(const struct vec_space *s, unsigned points, struct vec_tiling *t)
{
	unsigned r = s->rank;
	int64_t cols = 1;

	t->col_dims = s->row_rank;
	for (unsigned d = r - s->row_rank; d < r; d++)
		cols *= s->dim[d];
	while (!s->row_rank && t->col_dims < r) {
		unsigned d = r - 1 - t->col_dims;

		if (t->col_dims && (cols * s->dim[d] > points ||
		    (s->reduced >> d & 1) != (s->reduced >> (r - 1) & 1)))
			break;
		cols *= s->dim[d];
		t->col_dims++;
		if (cols > points)
			break;
	}
	for (unsigned d = r - t->col_dims; d < r; d++)
		t->tile[d] = s->dim[d];
	if (!s->row_rank && cols > points) {
		cols = even_part(cols, points);
		t->tile[r - 1] = cols;
	}
	t->cols = (unsigned)cols;
}

void vec_cut(struct vec_space *s, struct sim_ref *const *refs, unsigned n,
	     unsigned points, struct vec_tiling *t)
{
	unsigned r = s->rank, row_dim;
	int turned = r > 1 && !s->row_rank ? turned_dim(s, refs, n) : -1;
	int64_t most;

	*t = (struct vec_tiling){ .points = points, .rows = 1, .cols = 1 };
	for (unsigned d = 0; d < ISA_MAX_RANK; d++)
		t->tile[d] = t->tiles[d] = 1;
	t->n_tiles = 1;
	if (!r)
		return;
	if (turned >= 0) {
		t->col_dims = 1;
		/* 64 elements of the turned side are fetched at once if they can be */
		most = points / 64 < 16 ? 16 : points / 64;
		most = s->dim[turned] < 64 ? points / s->dim[turned] : most;
		t->cols = (unsigned)(s->dim[r - 1] <= most ? s->dim[r - 1] :
				     even_part(s->dim[r - 1], most));
		t->tile[r - 1] = t->cols;
		move_before(s, refs, n, (unsigned)turned, r - 1);
	} else {
		choose_cols(s, points, t);
	}
	row_dim = r - t->col_dims;
	if (row_dim && t->cols * 2 <= points) {
		unsigned best = row_dim - 1;

		most = points / t->cols;

		/* a short dim would leave the tile small: take the longest */
		for (unsigned d = 0; turned < 0 && d < row_dim; d++)
			if (s->dim[row_dim - 1] < most && s->dim[d] > s->dim[best])
				best = d;
		move_before(s, refs, n, best, row_dim);
		if (s->dim[row_dim - 1] < most)
			most = s->dim[row_dim - 1];
		/* part of a folded row, for several rows, would turn their order */
		if (s->ordered && t->tile[r - 1] < s->dim[r - 1] &&
		    (s->reduced >> (r - 1) & 1) && (s->reduced >> (row_dim - 1) & 1))
			most = 1;
		t->rows = (unsigned)most;
		t->tile[row_dim - 1] = most;
	}
	count_tiles(s, t);
	/* Of short rows and columns both are columns of a tile that is not as small. */
	if (turned >= 0 && !s->reduced && row_dim > 1 && t->rows == s->dim[row_dim - 1] &&
	    t->cols == s->dim[r - 1] && t->rows * t->cols * 2 <= points)
		vec_widen(s, t, points / (t->rows * t->cols), points);
}

void vec_set_rows(const struct vec_space *s, struct vec_tiling *t, unsigned rows)
{
	unsigned row_dim = s->rank - t->col_dims;

	if (!row_dim)
		return;
	t->rows = rows < s->dim[row_dim - 1] ? rows : (unsigned)s->dim[row_dim - 1];
	t->tile[row_dim - 1] = t->rows;
	if (t->points < t->rows)
		t->points = t->rows;
	count_tiles(s, t);
}

void vec_more_rows(const struct vec_space *s, struct vec_tiling *t, unsigned points)
{
	if (points / t->cols > t->rows)
		vec_set_rows(s, t, points / t->cols);
}

void vec_widen(const struct vec_space *s, struct vec_tiling *t, unsigned rows, unsigned points)
{
	unsigned dim = s->rank - t->col_dims - 1;
	int64_t most;

	if (rows > s->dim[dim - 1])
		rows = (unsigned)s->dim[dim - 1];
	most = points / (t->cols * rows);
	t->tile[dim] = most > s->dim[dim] ? s->dim[dim] : most ? most : 1;
	t->cols *= (unsigned)t->tile[dim];
	t->col_dims++;
	vec_set_rows(s, t, rows);
}

void vec_tile_at(const struct vec_space *s, const struct vec_tiling *t,
		 const uint64_t *at, struct sim_tile *tile)
{
	unsigned first_col = s->rank - t->col_dims;

	tile->rank = s->rank;
	tile->col_dims = t->col_dims;
	tile->rows = tile->cols = 1;
	for (unsigned d = 0; d < s->rank; d++) {
		int64_t size = t->tile[d];

		tile->index[d] = (int64_t)at[d] * size;
		if (size > s->dim[d] - tile->index[d])
			size = s->dim[d] - tile->index[d];
		if (d + 1 == first_col)
			tile->rows = (unsigned)size;
		if (d < first_col)
			continue;
		tile->col_dim[d - first_col] = size;
		tile->cols *= (unsigned)size;
	}
}

void vec_seek(const struct vec_tiling *t, unsigned rank, uint32_t mask, uint64_t n,
	      uint64_t *at)
{
	for (unsigned d = rank; d-- > 0;) {
		if (!(mask >> d & 1))
			continue;
		at[d] = n % (uint64_t)t->tiles[d];
		n /= (uint64_t)t->tiles[d];
	}
}

void vec_advance(const struct vec_tiling *t, unsigned rank, uint32_t mask, uint64_t *at)
{
	for (unsigned d = rank; d-- > 0;) {
		if (!(mask >> d & 1))
			continue;
		if (++at[d] < (uint64_t)t->tiles[d])
			return;
		at[d] = 0;
	}
}

uint64_t vec_count(const struct vec_tiling *t, unsigned rank, uint32_t mask)
{
	uint64_t n = 1;

	for (unsigned d = 0; d < rank; d++)
		if (mask >> d & 1)
			n *= (uint64_t)t->tiles[d];
	return n;
}

/* ---- bodies for a simplified space ---- */

struct isa_uop *vec_uops(struct sim_load *load, const struct vec_space *s,
			 const struct isa_uop *uops, unsigned n)
{
	struct isa_uop *to = arena_array(load->arena, n, sizeof(*to));

	for (unsigned i = 0; to && i < n; i++) {
		to[i] = uops[i];
		if (to[i].op != UOP_IOTA)
			continue;
		if (s->from[to[i].aux] >= 0) {
			to[i].aux = (uint8_t)s->from[to[i].aux];
		} else {
			to[i].op = UOP_IMM;
			to[i].aux = 0;
		}
	}
	return to;
}

uint64_t vec_cost(enum sim_path path, const struct isa_uop *uops, unsigned n)
{
	unsigned slower = path == SIM_AVX512 ? 1 : path == SIM_AVX2 ? 2 : 5;
	uint64_t cost = 0;

	for (unsigned i = 0; i < n; i++) {
		unsigned bytes = elem_bytes(uops[i].elem), each = 10 * bytes;

		if ((uops[i].op >= UOP_SQRT && uops[i].op <= UOP_ERF) ||
		    uops[i].op == UOP_POW || uops[i].op == UOP_ATAN2 ||
		    uops[i].op == UOP_REM)
			each = 120 * bytes;
		if (elem_class(uops[i].elem) == ELEM_CLASS_COMPLEX)
			each *= 4;
		cost += each * slower;
	}
	return cost;
}

static bool all_zero(const void *p, size_t bytes)
{
	const char *c = p;

	for (size_t i = 0; i < bytes; i++)
		if (c[i])
			return false;
	return true;
}

static int check_operand(struct sim_load *load, const struct isa_operand *op, unsigned i,
			 bool is_out, unsigned rank)
{
	if ((!is_out && (op->value || op->combine || op->flags)) || op->zero ||
	    (op->combine == ISA_STORE && op->flags) ||
	    !all_zero(op->stride + rank, (ISA_MAX_RANK - rank) * sizeof(op->stride[0])))
		return sim_refuse(load, HW_ST_BAD_PROGRAM,
			"operand %u: a field that it has no use for is not 0", i);
	return 0;
}

int vec_parts(struct sim_load *load, const struct isa_tensor *t,
	      const struct isa_operand **in, const struct isa_operand **out,
	      const struct isa_uop **uops)
{
	const struct isa_body *b = &t->body;
	size_t bytes = sizeof(*t) + (b->n_in + b->n_out) * sizeof(struct isa_operand) +
		b->n_uop * sizeof(struct isa_uop);
	int64_t points = 1;
	int ret = 0;

	if (b->rank > ISA_MAX_RANK || b->n_in > ISA_MAX_IN || b->n_out > ISA_MAX_OUT ||
	    t->insn.bytes != bytes)
		return sim_refuse(load, HW_ST_BAD_PROGRAM,
			"rank %u, %u inputs, %u outputs, %u uops in %u bytes (%zu expected)",
			b->rank, b->n_in, b->n_out, b->n_uop, t->insn.bytes, bytes);
	if (t->zero || b->zero || t->insn.flags)
		return sim_refuse(load, HW_ST_BAD_PROGRAM, "a reserved field is not 0");
	for (unsigned d = 0; d < ISA_MAX_RANK; d++) {
		if (d < b->rank ? b->dim[d] < 0 : b->dim[d] != 1)
			return sim_refuse(load, HW_ST_BAD_PROGRAM, "dim %u is %lld", d,
					  (long long)b->dim[d]);
		if (__builtin_mul_overflow(points, b->dim[d] ? b->dim[d] : 1, &points))
			return sim_refuse(load, HW_ST_BAD_PROGRAM,
					  "the iteration space has over 2^63 points");
	}
	*in = (const void *)(t + 1);
	*out = *in + b->n_in;
	*uops = (const void *)(*out + b->n_out);
	for (unsigned i = 0; i < b->n_in + b->n_out && !ret; i++)
		ret = check_operand(load, &(*in)[i], i, i >= b->n_in, b->rank);
	return ret;
}

/* ---- a tile: its inputs are made dense, the body runs, outputs are stored ---- */

static bool is_full(const struct vec_plan *p, const struct sim_tile *tile)
{
	return tile->rows == p->tiling.rows && tile->cols == p->tiling.cols;
}

void vec_load(const struct vec_job *job, struct sim_tile *tile, struct vec_last *last,
	      char *scratch)
{
	const struct vec_plan *p = job->plan;
	bool full = is_full(p, tile), same;

	same = last->rows == tile->rows && last->cols == tile->cols;
	tile->goes_on = full && same;
	last->rows = tile->rows;
	last->cols = tile->cols;
	for (unsigned j = 0; j < p->n_in; j++) {
		const uint8_t *at = sim_tile_at(&p->in[j], job->in[j], tile);
		unsigned kind = full ? p->in_kind[j] : SIM_TILE_ANY;
		char *room = scratch + p->in_room[j];

		if (p->chain && j == p->chain->input) {
			vec_run_chain(job, tile, full ? p->chain_box : NULL, room);
			tile->in[j] = room;
			tile->in_spread &= ~(1u << j);
			tile->in_row &= ~(1u << j);
			continue;
		}
		if (kind != SIM_TILE_ANY && kind != SIM_TILE_APART) {
			tile->in[j] = at;
			tile->in_spread &= ~(1u << j);
			tile->in_row &= ~(1u << j);
			tile->in_spread |= (uint32_t)(kind == SIM_TILE_SPREAD) << j;
			tile->in_row |= (uint32_t)(kind == SIM_TILE_ROW) << j;
			continue;
		}
		/* a row that all tiles share is copied once */
		if (same && last->at[j] == at) {
			tile->in[j] = room;
			tile->in_spread &= ~(1u << j);
			tile->in_row &= ~(1u << j);
			continue;
		}
		if (full && p->in_box[j]) {
			sim_box_in(p->in_box[j], at, room);
			tile->in[j] = room;
			tile->in_spread &= ~(1u << j);
			tile->in_row &= ~(1u << j);
			last->at[j] = at;
			continue;
		}
		sim_tile_in(&p->in[j], job->in[j], tile, j, room);
		last->at[j] = tile->in[j] == room && !(tile->in_row >> j & 1) ? at : NULL;
		if (p->copied >> j & 1)
			sim_tile_keep(tile, j, elem_bytes(p->in[j].elem), room);
	}
}

/* A row value has no points along the row. */
static void store_row_value(const struct vec_out *out, uint8_t *first,
			    const struct sim_tile *tile, const void *value,
			    bool is_spread, unsigned combine)
{
	struct sim_tile rows = *tile;

	rows.cols = 1;
	for (unsigned k = 0; k < rows.col_dims; k++)
		rows.col_dim[k] = 1;
	sim_tile_out(&out->ref, first, &rows, value, is_spread, false, combine);
}

static void store(const struct vec_job *job, unsigned j, const struct sim_tile *tile,
		  char *scratch, const void *done)
{
	const struct vec_out *out = &job->plan->out[j];
	bool is_spread, is_row;
	const void *value = sim_body_value(job->plan->body, out->value, tile, scratch,
					   &is_spread, &is_row);

	if (value == done)
		return;
	if (job->plan->points == 1)
		memcpy(job->out[j], value, elem_bytes(out->ref.elem));
	else if (job->plan->streamed >> j & 1 && !is_spread && !is_row &&
		 is_full(job->plan, tile))
		sim_stream(sim_tile_at(&out->ref, job->out[j], tile), value,
			   (size_t)tile->rows * tile->cols * elem_bytes(out->ref.elem));
	else if (job->plan->out_box[j] && !is_spread && !is_row && is_full(job->plan, tile))
		sim_box_out(job->plan->out_box[j], sim_tile_at(&out->ref, job->out[j], tile),
			    value);
	else if (is_row && tile->rows > 1 && !out->row_value && out->combine == ISA_STORE &&
		 sim_tile_kind(&out->ref, tile) == SIM_TILE_DENSE)
		sim_spread_rows(job->run->cpu->path, sim_tile_at(&out->ref, job->out[j], tile),
				value, tile->rows, tile->cols, elem_bytes(out->ref.elem));
	else if (out->row_value)
		store_row_value(out, job->out[j], tile, value, is_spread, out->combine);
	else
		sim_tile_out(&out->ref, job->out[j], tile, value, is_spread, is_row,
			     out->combine);
}

/* Stores the outputs whose elements take turns, if each has an element for each point; gives a bit
 * for each of them. */
static uint32_t store_zipped(const struct vec_job *job, const struct sim_tile *tile, char *scratch)
{
	const struct vec_plan *p = job->plan;
	const void *values[ISA_MAX_OUT];
	uint32_t stored = 0;
	bool is_spread, is_row;

	for (unsigned k = 0; k < p->n_zip; k++) {
		values[k] = sim_body_value(p->body, p->out[p->zip[k]].value, tile, scratch,
					   &is_spread, &is_row);
		if (is_spread || is_row)
			return 0;
		stored |= 1u << p->zip[k];
	}
	if (stored)
		sim_box_zip(p->out_box[p->zip[0]], sim_tile_at(&p->out[p->zip[0]].ref,
			    job->out[p->zip[0]], tile), values, p->n_zip);
	return stored;
}

void vec_body(const struct vec_job *job, const struct sim_tile *tile, char *scratch)
{
	const struct vec_plan *p = job->plan;
	void *direct[ISA_MAX_OUT] = { NULL };
	bool full = is_full(p, tile);
	uint32_t stored;

	for (unsigned j = 0; j < p->n_out; j++) {
		const struct sim_ref *ref = &p->out[j].ref;

		if (!(p->direct >> j & 1))
			continue;
		if (full || sim_tile_kind(ref, tile) == SIM_TILE_DENSE)
			direct[j] = sim_tile_at(ref, job->out[j], tile);
	}
	if (full && p->calls)
		sim_calls_run(p->calls, job->run, tile, tile->in, scratch, direct);
	else
		sim_body_run_into(p->body, job->run, tile, scratch, direct);
	stored = full ? store_zipped(job, tile, scratch) : 0;
	for (unsigned j = 0; j < p->n_out; j++)
		if (!(stored >> j & 1) && (p->out[j].combine == ISA_STORE || !p->uniform))
			store(job, j, tile, scratch, direct[j]);
}

void vec_run_tiles(void *arg, uint64_t begin, uint64_t end, unsigned lane)
{
	struct vec_job *job = arg;
	const struct vec_plan *p = job->plan;
	char *scratch = sim_scratch(job->run, lane);
	struct vec_last last = { { NULL }, 0, 0 };
	struct sim_tile tile = { 0 };
	uint64_t at[ISA_MAX_RANK] = { 0 };

	vec_seek(&p->tiling, p->space.rank, UINT32_MAX, begin, at);
	for (; begin < end && !sim_stopped(job->run); begin++) {
		vec_tile_at(&p->space, &p->tiling, at, &tile);
		vec_load(job, &tile, &last, scratch);
		vec_body(job, &tile, scratch);
		vec_advance(&p->tiling, p->space.rank, UINT32_MAX, at);
	}
	if (p->streamed)
		sim_stream_end();
}

/* The inputs of the only tile; `in` gets them. */
static void load_lone(const struct vec_job *job, char *scratch, const void **in)
{
	const struct vec_plan *p = job->plan;
	struct sim_tile tile;

	for (unsigned j = 0; j < p->n_in; j++) {
		in[j] = job->in[j];
		if (p->chain && j == p->chain->input) {
			in[j] = scratch + p->in_room[j];
			vec_run_chain(job, p->lone, p->chain_box, scratch + p->in_room[j]);
		}
		if (!p->in_box[j])
			continue;
		in[j] = scratch + p->in_room[j];
		sim_box_in(p->in_box[j], job->in[j], scratch + p->in_room[j]);
	}
	if (!p->gathered)
		return;
	tile = *p->lone;
	for (unsigned j = 0; j < p->n_in; j++) {
		char *room = scratch + p->in_room[j];

		if (!(p->gathered >> j & 1))
			continue;
		sim_tile_in(&p->in[j], job->in[j], &tile, j, room);
		if (p->copied >> j & 1)
			sim_tile_keep(&tile, j, elem_bytes(p->in[j].elem), room);
		in[j] = tile.in[j];
	}
}

void vec_run_lone(const struct vec_job *job)
{
	const struct vec_plan *p = job->plan;
	const struct sim_tile *tile = p->lone;
	char *scratch = sim_scratch(job->run, 0);
	const void *in[ISA_MAX_IN];
	void *direct[ISA_MAX_OUT];
	uint32_t stored;

	load_lone(job, scratch, in);
	for (unsigned j = 0; j < p->n_out; j++)
		direct[j] = p->direct >> j & 1 ? job->out[j] : NULL;
	sim_calls_run(p->calls, job->run, tile, in, scratch, direct);
	stored = p->in_place | p->combining | store_zipped(job, tile, scratch);
	for (unsigned j = 0; j < p->n_out; j++)
		if (!(stored >> j & 1))
			store(job, j, tile, scratch, direct[j]);
}
