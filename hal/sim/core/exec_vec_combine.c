/* SPDX-License-Identifier: Apache-2.0 */
/*
 * VEC with outputs that fold (isa_combine != STORE).
 *
 * The folded dims are those along which the output does not move. Where all folding
 * outputs agree on them, the work is cut into items: a tile of kept dims, and a
 * part of the folded ones. An item folds tile after tile into a partial result in
 * scratch; parts meet in shared memory and are joined in order at the end. How many
 * parts there are does not depend on the lanes, so results do not either. Sums of f32
 * go in two levels: up to 64 tiles in f32, these in f64.
 *
 * Outputs that disagree (a sum over rows and one over columns at once) are folded
 * straight into memory, tile by tile on one lane.
 */
#include "hal/sim/core/exec_vec.h"

#include <string.h>

/* Items to aim for: enough to keep many lanes busy to the end. */
#define ITEMS 64
/* The most that partial results may take together. */
#define SHARED_BYTES ((size_t)32 << 20)
/* Additions of tiles to a narrow sum before it goes to the wide one, and of points at most. */
#define NARROW_ADDS 64
#define NARROW_POINTS (64 * 4096)
/* Points of a tile that is summed where it lies; of one whose extremes are found there, by kernels
 * that begin and end with more steps. */
#define PRODUCT_POINTS 16384
#define EXTREME_POINTS 65536
/* At most so many of its rows are summed one on the other, a fourth of them each time. */
#define STACK_ROWS 128
/* Columns that rows have at least for that. */
#define STACK_COLS 16
/* Columns, or columns of a row that is summed, which kernels of narrow elements do in registers:
 * fewer are sooner done as f32, or as a tile. */
#define NARROW_COLS 128
#define NARROW_ROW 32
/* Fewer columns than that, if some are left of STACK_COLS, are looked at twice for much of them. */
#define EXTREME_COLS 64

/* ---- prepare ---- */

/* Whether the only output is the fold of an input's elements, or of what bf16 are as f32, or the
 * sum of two inputs' products; which they are. */
static bool is_plain_fold(struct vec_plan *p, const struct isa_uop *u)
{
	const struct vec_out *out = &p->out[0];

	if (p->n_out != 1 || p->chain || out->row_value)
		return false;
	p->factor[0] = p->factor[1] = out->value;
	if (p->n_uop == 1 && out->value == p->n_in) {
		p->factor[0] = u->a;
		p->factor[1] = u->op == UOP_CVT ? u->a : u->b;
		if (u->op == UOP_MUL ? u->elem != out->ref.elem :
		    u->op != UOP_CVT || u->elem != ELEM_BF16 || u->to != ELEM_F32)
			return false;
	}
	/* a body may also make a product that is not summed */
	p->is_product = out->value == p->n_in && u->op == UOP_MUL;
	if (p->is_product && out->combine != ISA_COMBINE_ADD)
		return false;
	return p->n_uop <= 1 && p->factor[0] < p->n_in && p->factor[1] < p->n_in;
}

/*
 * Sums along rows of two inputs' products, the elements of which lie side by side: one kernel
 * multiplies and adds, as it would take longer to store the products than to make them. It has
 * no use for small tiles. Likewise of bf16, as f32.
 */
static void find_products(const struct sim_load *load, struct vec_plan *p)
{
	unsigned last = p->space.rank - 1, elem = p->in[p->factor[0]].elem;
	unsigned bytes = elem_bytes(elem);

	if (p->out[0].combine != ISA_COMBINE_ADD || p->is_product == (elem == ELEM_BF16) ||
	    p->rows_folded || p->tiling.col_dims != 1 ||
	    (elem == ELEM_BF16 && p->tiling.tile[last] < NARROW_ROW) ||
	    p->in[p->factor[0]].stride[last] != bytes || p->in[p->factor[1]].stride[last] != bytes)
		return;
	p->products = sim_uop_product_fold(load->cpu->path, elem);
	if (p->products)
		vec_more_rows(&p->space, &p->tiling, PRODUCT_POINTS);
}

/* Whether a fold of rows is sooner done where they lie. */
static bool is_worth_stack(unsigned op, unsigned elem, int64_t cols)
{
	if (op == UOP_ADD)
		return cols >= STACK_COLS;
	if (elem_bytes(elem) < 4)
		return cols >= NARROW_COLS;
	return cols >= EXTREME_COLS || (cols >= STACK_COLS && !(cols % STACK_COLS));
}

/*
 * Folds of rows, likewise: of rows where they lie, or sums of products of these by others or by a
 * number for each row. If two dims are columns, there may be a number for each step of the first.
 * So few rows that others are the tile's become its rows all the same, and these columns.
 */
static void find_stack(const struct sim_load *load, struct vec_plan *p)
{
	struct vec_tiling *t = &p->tiling;
	unsigned last = p->space.rank - 1, elem = p->in[p->factor[0]].elem;
	unsigned bytes = elem_bytes(elem), rows, op = sim_combine_uop(p->out[0].combine);
	unsigned points = op == UOP_ADD ? PRODUCT_POINTS : EXTREME_POINTS;
	uint8_t first = p->factor[0];
	int64_t step[2];
	bool widen = !p->rows_folded && t->col_dims == 1 && p->space.rank > 2 &&
		     (p->space.reduced >> (last - 2) & 1);

	if (p->space.rank < 2 || (!p->rows_folded && !widen) || t->col_dims > 2 ||
	    !is_worth_stack(op, elem, t->tile[last]))
		return;
	if (p->in[first].stride[last] != bytes) {
		p->factor[0] = p->factor[1];
		p->factor[1] = first;
	}
	for (unsigned k = 0; k < 2; k++)
		step[k] = p->in[p->factor[k]].stride[last];
	if (step[0] != bytes || (step[1] != bytes && step[1]))
		return;
	p->stack = sim_uop_stack(load->cpu->path, op, elem);
	if (!p->stack)
		return;
	p->rows_folded = true;
	rows = points / t->cols;
	rows = rows > STACK_ROWS ? STACK_ROWS : rows ? rows : 1;
	if (widen)
		vec_widen(&p->space, t, rows, points);
	else
		vec_set_rows(&p->space, t, rows);
}

void vec_find_folds(const struct sim_load *load, struct vec_plan *p, const struct isa_uop *uops)
{
	unsigned first_col = p->space.rank - p->tiling.col_dims;
	uint32_t cols = 0, mask = 0;
	bool any = false;

	for (unsigned d = first_col; d < p->space.rank; d++)
		cols |= 1u << d;
	for (unsigned j = 0; j < p->n_out; j++) {
		uint32_t own = 0;

		if (p->out[j].combine == ISA_STORE)
			continue;
		for (unsigned d = 0; d < p->space.rank; d++)
			if (!p->out[j].ref.stride[d])
				own |= 1u << d;
		if (any && own != mask)
			return;
		mask = own;
		any = true;
	}
	p->space.reduced = mask;
	p->cols_folded = cols && (mask & cols) == cols;
	p->rows_folded = first_col && (mask >> (first_col - 1) & 1);
	p->uniform = !(mask & cols) || p->cols_folded;
	if (p->uniform && is_plain_fold(p, uops)) {
		if (p->cols_folded)
			find_products(load, p);
		else
			find_stack(load, p);
	}
}

static void plan_out(const struct sim_load *load, struct vec_plan *p, struct vec_out *out)
{
	enum sim_path path = load->cpu->path;
	struct isa_uop u = { .op = (uint8_t)sim_combine_uop(out->combine),
			     .elem = out->ref.elem };
	unsigned bytes = elem_bytes(out->ref.elem);
	size_t points = (size_t)p->tiling.points * bytes;

	out->fn = sim_uop_kernel(path, &u);
	out->fold = sim_uop_fold(path, u.op, u.elem);
	out->stack = sim_uop_stack(path, u.op, u.elem);
	out->acc_elem = out->ref.elem;
	out->acc_fn = out->fn;
	if (u.op == UOP_ADD && u.elem == ELEM_F32) {
		out->acc_elem = u.elem = ELEM_F64;
		out->acc_fn = sim_uop_kernel(path, &u);
		out->widen = sim_uop_convert(path, ELEM_F32, ELEM_F64);
		out->narrow = sim_uop_convert(path, ELEM_F64, ELEM_F32);
	}
	out->acc_room = vec_room(&p->scratch, p->acc_points * bytes);
	out->wide_room = vec_room(&p->scratch, 2 * p->acc_points *
				  elem_bytes(out->acc_elem));
	out->part_room = vec_room(&p->scratch, points);
	out->full_room = vec_room(&p->scratch, points);
}

/* Bytes of all partial results with so many parts. */
static size_t shared_bytes(struct vec_plan *p, uint64_t parts)
{
	size_t all = 0;

	for (unsigned j = 0; j < p->n_out; j++) {
		struct vec_out *out = &p->out[j];
		size_t bytes;

		if (out->combine == ISA_STORE)
			continue;
		out->shared = all;
		if (__builtin_mul_overflow(p->kept_tiles * parts, p->acc_points *
					   elem_bytes(out->acc_elem), &bytes) ||
		    bytes > SHARED_BYTES)
			return SIZE_MAX;
		all += (bytes + 63) / 64 * 64;
	}
	return all;
}

int vec_plan_combine(struct sim_load *load, struct vec_plan *p)
{
	uint32_t kept, all = p->space.rank ? UINT32_MAX >> (32 - p->space.rank) : 0;

	if (!p->uniform)
		return 0;
	kept = all & ~p->space.reduced;
	p->kept_tiles = vec_count(&p->tiling, p->space.rank, kept);
	p->folded_tiles = vec_count(&p->tiling, p->space.rank, p->space.reduced);
	p->acc_points = (p->rows_folded ? 1 : (size_t)p->tiling.rows) *
		(p->cols_folded ? 1 : (size_t)p->tiling.cols);
	for (unsigned j = 0; j < p->n_out; j++)
		if (p->out[j].combine != ISA_STORE)
			plan_out(load, p, &p->out[j]);
	p->narrow_adds = NARROW_POINTS / (p->tiling.rows * p->tiling.cols);
	p->narrow_adds = p->narrow_adds > NARROW_ADDS ? NARROW_ADDS : p->narrow_adds ?: 1;
	p->parts = p->kept_tiles < ITEMS ? ITEMS / p->kept_tiles : 1;
	/* a part of a few tiles is not worth its join */
	if (p->parts > p->folded_tiles / 4)
		p->parts = p->folded_tiles / 4 ? p->folded_tiles / 4 : 1;
	while (p->parts > 1 && shared_bytes(p, p->parts) > SHARED_BYTES)
		p->parts /= 2;
	if (p->parts > 1)
		sim_need_shared(load, shared_bytes(p, p->parts));
	return 0;
}

/* ---- run ---- */

/* The kept points of a tile. */
static size_t kept_points(const struct vec_plan *p, const struct sim_tile *tile)
{
	return (p->rows_folded ? 1 : (size_t)tile->rows) *
		(p->cols_folded ? 1 : (size_t)tile->cols);
}

static void fill_identity(const struct vec_out *out, unsigned elem, char *to, size_t n)
{
	char one[16];

	sim_uop_identity(sim_combine_uop(out->combine), elem, one);
	sim_fill(to, one, n, elem_bytes(elem));
}

/* The value of a tile as a full array. */
static const char *full_value(const struct vec_plan *p, const struct vec_out *out,
			      const struct sim_tile *tile, size_t cols, char *scratch)
{
	unsigned bytes = elem_bytes(out->ref.elem);
	bool is_spread, is_row;
	const char *v = sim_body_value(p->body, out->value, tile, scratch, &is_spread,
				       &is_row);
	char *to = scratch + out->full_room;

	if ((!is_spread && !is_row) || tile->rows * cols == 1 || (is_row && cols == 1))
		return v;
	if (is_row)
		sim_fill_rows(to, v, tile->rows, cols, bytes);
	if (is_spread)
		sim_fill(to, v, tile->rows * cols, bytes);
	return to;
}

/* Folds rows x cols values over the rows, then into acc. */
static void fold_rows(const struct vec_out *out, const char *v, size_t rows, size_t cols,
		      char *acc, char *room)
{
	size_t pitch = cols * elem_bytes(out->ref.elem);
	struct sim_stack values = { .a = v, .a_row = (int64_t)pitch, .rows = rows, .cols = cols };

	if (out->stack && rows <= STACK_ROWS &&
	    is_worth_stack(sim_combine_uop(out->combine), out->ref.elem, (int64_t)cols)) {
		out->stack(acc, &values);
		return;
	}
	while (rows > 1) {
		size_t half = rows / 2;

		if (rows & 1)
			out->fn(acc, acc, v + (rows - 1) * pitch, NULL, cols, 0, 0);
		out->fn(room, v, v + half * pitch, NULL, half * cols, 0, 0);
		v = room;
		rows = half;
	}
	out->fn(acc, acc, v, NULL, cols, 0, 0);
}

static void fold_tile(const struct vec_plan *p, const struct vec_out *out,
		      const struct sim_tile *tile, char *scratch)
{
	size_t cols = out->row_value ? 1 : tile->cols, rows = tile->rows;
	const char *v = full_value(p, out, tile, cols, scratch);
	char *acc = scratch + out->acc_room, *part = scratch + out->part_room;

	if (!p->cols_folded) {
		if (p->rows_folded)
			fold_rows(out, v, rows, cols, acc, part);
		else
			out->fn(acc, acc, v, NULL, rows * cols, 0, 0);
		return;
	}
	if (p->rows_folded) {
		cols *= rows;
		rows = 1;
	}
	out->fold(part, v, rows, cols);
	out->fn(acc, acc, part, NULL, rows, 0, 0);
}

/* Instead of the body and fold_tile(); rows of 32 to 127 elements may be rounded otherwise. */
static void fold_products(const struct vec_job *job, const struct sim_tile *tile, char *scratch)
{
	const struct vec_plan *p = job->plan;
	const struct vec_out *out = &p->out[0];
	char *acc = scratch + out->acc_room, *part = scratch + out->part_room;
	const void *at[2];
	int64_t row[2];

	for (unsigned k = 0; k < 2; k++) {
		const struct sim_ref *ref = &p->in[p->factor[k]];

		at[k] = sim_tile_at(ref, job->in[p->factor[k]], tile);
		row[k] = tile->rank > 1 ? ref->stride[tile->rank - 2] : 0;
	}
	p->products(part, at[0], row[0], at[1], row[1], tile->rows, tile->cols);
	out->fn(acc, acc, part, NULL, tile->rows, 0, 0);
}

/* Likewise, of rows. */
static void stack_rows(const struct vec_job *job, const struct sim_tile *tile, char *scratch)
{
	const struct vec_plan *p = job->plan;
	const struct vec_out *out = &p->out[0];
	const struct sim_ref *a = &p->in[p->factor[0]], *b = &p->in[p->factor[1]];
	unsigned first = tile->rank - tile->col_dims, last = tile->rank - 1;
	size_t steps = tile->col_dims == 2 ? (size_t)tile->col_dim[0] : 1;
	char *acc = scratch + out->acc_room;
	const uint8_t *at[2];
	struct sim_stack rows = {
		.a_row = a->stride[first - 1], .b_row = b->stride[first - 1],
		.one_b = !b->stride[last], .rows = tile->rows, .cols = tile->cols / steps,
	};

	at[0] = sim_tile_at(a, job->in[p->factor[0]], tile);
	at[1] = sim_tile_at(b, job->in[p->factor[1]], tile);
	for (size_t i = 0; i < steps; i++) {
		rows.a = at[0] + (int64_t)i * a->stride[first];
		rows.b = !p->is_product ? NULL : at[1] + (int64_t)i * b->stride[first];
		p->stack(acc, &rows);
		acc += rows.cols * elem_bytes(out->ref.elem);
	}
}

static void sum_in_place(const struct vec_job *job, const struct sim_tile *tile, char *scratch)
{
	if (job->plan->products)
		fold_products(job, tile, scratch);
	else
		stack_rows(job, tile, scratch);
}

/* A single tile has no use for a second level. */
static bool is_wide(const struct vec_plan *p)
{
	return p->folded_tiles > 1;
}

/* Moves the narrow sum to the wide one and starts it anew. */
static void flush(const struct vec_plan *p, const struct vec_out *out, char *scratch,
		  size_t n)
{
	char *acc = scratch + out->acc_room, *wide = scratch + out->wide_room;
	char *more = wide + n * elem_bytes(out->acc_elem);

	if (!is_wide(p))
		return;
	if (!out->widen) {
		out->acc_fn(wide, wide, acc, NULL, n, 0, 0);
	} else {
		out->widen(more, acc, NULL, NULL, n, 0, 0);
		out->acc_fn(wide, wide, more, NULL, n, 0, 0);
	}
	fill_identity(out, out->ref.elem, acc, n);
}

static void each_out(const struct vec_plan *p, char *scratch, size_t n,
		     void (*fn)(const struct vec_plan *p, const struct vec_out *out,
				char *scratch, size_t n))
{
	for (unsigned j = 0; j < p->n_out; j++)
		if (p->out[j].combine != ISA_STORE)
			fn(p, &p->out[j], scratch, n);
}

static void start(const struct vec_plan *p, const struct vec_out *out, char *scratch,
		  size_t n)
{
	fill_identity(out, out->ref.elem, scratch + out->acc_room, n);
	if (is_wide(p))
		fill_identity(out, out->acc_elem, scratch + out->wide_room, n);
}

/* Stores a tile's result from the wide room. */
static void store_result(const struct vec_job *job, unsigned j,
			 const struct sim_tile *tile, char *scratch, const char *wide)
{
	const struct vec_plan *p = job->plan;
	const struct vec_out *out = &p->out[j];
	struct sim_tile kept;

	if (is_wide(p) && out->narrow) {
		char *acc = scratch + out->acc_room;

		out->narrow(acc, wide, NULL, NULL, kept_points(p, tile), 0, 0);
		wide = acc;
	} else if (!is_wide(p)) {
		wide = scratch + out->acc_room;
	}
	if (kept_points(p, tile) == 1 && !out->acc) {
		memcpy(sim_tile_at(&out->ref, job->out[j], tile), wide,
		       elem_bytes(out->ref.elem));
		return;
	}
	kept = *tile;
	if (p->rows_folded)
		kept.rows = 1;
	if (p->cols_folded || out->row_value)
		kept.cols = 1;
	for (unsigned k = 0; kept.cols == 1 && k < kept.col_dims; k++)
		kept.col_dim[k] = 1;
	sim_tile_out(&out->ref, job->out[j], &kept, wide, false, false,
		     out->acc ? out->combine : ISA_STORE);
}

static char *partial(const struct vec_job *job, unsigned j, uint64_t kept, uint64_t part)
{
	const struct vec_plan *p = job->plan;
	const struct vec_out *out = &p->out[j];

	return (char *)job->run->shared + out->shared +
		(kept * p->parts + part) * p->acc_points * elem_bytes(out->acc_elem);
}

static void finish_item(const struct vec_job *job, const struct sim_tile *tile,
			uint64_t kept, uint64_t part, char *scratch)
{
	const struct vec_plan *p = job->plan;
	size_t n = kept_points(p, tile);

	for (unsigned j = 0; j < p->n_out; j++) {
		const struct vec_out *out = &p->out[j];
		char *wide = scratch + out->wide_room;

		if (out->combine == ISA_STORE)
			continue;
		flush(p, out, scratch, n);
		if (p->parts > 1)
			memcpy(partial(job, j, kept, part), wide,
			       n * elem_bytes(out->acc_elem));
		else
			store_result(job, j, tile, scratch, wide);
	}
}

static void fold_body(const struct vec_job *job, struct sim_tile *tile, struct vec_last *last,
		      char *scratch)
{
	const struct vec_plan *p = job->plan;

	vec_load(job, tile, last, scratch);
	vec_body(job, tile, scratch);
	for (unsigned j = 0; j < p->n_out; j++)
		if (p->out[j].combine != ISA_STORE)
			fold_tile(p, &p->out[j], tile, scratch);
}

static void run_item(const struct vec_job *job, uint64_t item, char *scratch,
		     struct vec_last *last)
{
	const struct vec_plan *p = job->plan;
	uint64_t kept = item / p->parts, part = item % p->parts;
	uint64_t begin = p->folded_tiles * part / p->parts;
	uint64_t end = p->folded_tiles * (part + 1) / p->parts;
	uint64_t at[ISA_MAX_RANK] = { 0 };
	struct sim_tile tile = { 0 };
	unsigned adds = 0;

	vec_seek(&p->tiling, p->space.rank, ~p->space.reduced, kept, at);
	vec_seek(&p->tiling, p->space.rank, p->space.reduced, begin, at);
	vec_tile_at(&p->space, &p->tiling, at, &tile);
	each_out(p, scratch, kept_points(p, &tile), start);
	for (; begin < end; begin++) {
		if (sim_stopped(job->run))
			return;
		vec_tile_at(&p->space, &p->tiling, at, &tile);
		if (p->products || p->stack)
			sum_in_place(job, &tile, scratch);
		else
			fold_body(job, &tile, last, scratch);
		if (++adds % p->narrow_adds == 0)
			each_out(p, scratch, kept_points(p, &tile), flush);
		vec_advance(&p->tiling, p->space.rank, p->space.reduced, at);
	}
	finish_item(job, &tile, kept, part, scratch);
}

static void run_items(void *arg, uint64_t begin, uint64_t end, unsigned lane)
{
	struct vec_job *job = arg;
	char *scratch = sim_scratch(job->run, lane);
	struct vec_last last = { { NULL }, 0, 0 };

	for (; begin < end && !sim_stopped(job->run); begin++)
		run_item(job, begin, scratch, &last);
}

/* Joins the parts of tiles of kept dims, in order. */
static void join(void *arg, uint64_t begin, uint64_t end, unsigned lane)
{
	struct vec_job *job = arg;
	const struct vec_plan *p = job->plan;
	char *scratch = sim_scratch(job->run, lane);

	for (; begin < end && !sim_stopped(job->run); begin++) {
		uint64_t at[ISA_MAX_RANK] = { 0 };
		struct sim_tile tile = { 0 };

		vec_seek(&p->tiling, p->space.rank, ~p->space.reduced, begin, at);
		vec_tile_at(&p->space, &p->tiling, at, &tile);
		for (unsigned j = 0; j < p->n_out; j++) {
			char *first = partial(job, j, begin, 0);

			if (p->out[j].combine == ISA_STORE)
				continue;
			for (uint64_t part = 1; part < p->parts; part++)
				p->out[j].acc_fn(first, first, partial(job, j, begin, part),
						 NULL, kept_points(p, &tile), 0, 0);
			store_result(job, j, &tile, scratch, first);
		}
	}
}

/* The only tile, which is small: without a walk over items. */
static void run_lone(const struct vec_job *job)
{
	const struct vec_plan *p = job->plan;
	char *scratch = sim_scratch(job->run, 0);
	size_t n = kept_points(p, p->lone);

	if (!p->products && !p->stack)
		vec_run_lone(job);
	for (unsigned j = 0; j < p->n_out; j++) {
		if (p->out[j].combine == ISA_STORE)
			continue;
		start(p, &p->out[j], scratch, n);
		if (p->products || p->stack)
			sum_in_place(job, p->lone, scratch);
		else
			fold_tile(p, &p->out[j], p->lone, scratch);
		store_result(job, j, p->lone, scratch, NULL);
	}
}

void vec_run_combine(struct vec_job *job)
{
	const struct vec_plan *p = job->plan;

	if (!p->uniform) {
		for (unsigned j = 0; j < p->n_out; j++)
			if (p->out[j].combine != ISA_STORE && !p->out[j].acc)
				sim_out_identity(job->run, &p->out[j].ref, job->out[j],
						 p->space.rank, p->space.dim, p->out[j].combine);
		sim_parallel(job->run, p->tiling.n_tiles, p->tiling.n_tiles, 0, vec_run_tiles,
			     job);
		return;
	}
	if (p->lone) {
		run_lone(job);
		return;
	}
	sim_parallel(job->run, p->kept_tiles * p->parts, 1, p->ns, run_items, job);
	if (p->parts > 1)
		sim_parallel(job->run, p->kept_tiles, 1,
			     p->kept_tiles * p->parts * (20 + p->acc_points / 4), join, job);
}
