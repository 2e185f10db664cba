/* SPDX-License-Identifier: Apache-2.0 */
/*
 * REDUCE: folds K operands together by a body of any kind.
 *
 * The body always runs on arrays. A tile is seen as `outer` x `n` x `inner` elements,
 * of which the middle is folded. If inner is long, rows are folded one after the other
 * into accumulators; short rows of which there are many are turned to be that. A body that
 * picks the larger or smaller reads long rows where they lie, a block of each at a time. Else
 * segments of 16 neighbours are laid side by side and folded at once, and what is left in
 * pairs, again and again. What is on the left is always the accumulator, so the order of
 * elements never changes and a body that prefers what it met first stays right. Items,
 * parts and their join are as in exec_vec_combine.c; the initial values enter in front of
 * all.
 */
#include "hal/sim/core/exec_vec.h"

#include <string.h>

#include "hal/sim/kernels/transpose.h"

/* From so many elements on, rows are folded one by one. */
#define LONG_INNER 192
/* Few rows, if the body is a pick, which takes a row at once. */
#define PICK_INNER 4
/* Columns of a tile that was turned, from which on a pick takes all of them at once. */
#define PICK_COLS 5
/* Elements of a segment. */
#define SEGMENT 16
/* Up to so many, groups are picked one by one. */
#define FEW_GROUPS 48
/* At most so many rows are folded between two looks at whether to stop. */
#define ROWS_IN_PLACE 256
#define ITEMS 64
#define SHARED_BYTES ((size_t)32 << 20)

struct reduce_plan {
	unsigned k;			/* results */
	uint8_t elem[ISA_MAX_OUT], bytes[ISA_MAX_OUT];
	/* rooms in scratch, for each result */
	size_t tile[ISA_MAX_OUT], left[ISA_MAX_OUT], right[ISA_MAX_OUT];
	size_t half[ISA_MAX_OUT], tail[2][ISA_MAX_OUT], acc[2][ISA_MAX_OUT];
	size_t shared[ISA_MAX_OUT];
	sim_transpose_fn *turn[ISA_MAX_OUT];
	sim_column_fn *column[ISA_MAX_OUT];	/* of elements a short row apart, or NULL */
	sim_pick_fn *pick;		/* the body at once, or NULL: the larger or smaller */
	unsigned by, op;		/* of operand `by` and what comes with it; UOP_MAX or MIN */
	bool in_place;			/* rows are picked from where they lie */
	sim_pick_short_fn *pick_short;	/* so are those of each tile, which are short; or NULL */
};

/* Arrays of the K values; spread: those (a bit each) of which one element stands for all. */
struct values {
	char *p[ISA_MAX_OUT];
	uint32_t spread;
};

/* ---- prepare ---- */

static int check_reduce(struct sim_load *load, const struct isa_tensor *t,
			const struct isa_operand *in, const struct isa_operand *out,
			const struct isa_uop *uops)
{
	const struct isa_body *b = &t->body;
	unsigned k = b->n_out;

	if (!k || b->n_in != 2 * k || b->row_rank)
		return sim_refuse(load, HW_ST_BAD_PROGRAM,
			"%u results want %u inputs and no rows, but there are %u inputs, "
			"row_rank %u",
			k, 2 * k, b->n_in, b->row_rank);
	if (t->reduce_dims >> b->rank)
		return sim_refuse(load, HW_ST_BAD_PROGRAM,
			"reduce_dims 0x%x of rank %u", t->reduce_dims, b->rank);
	for (unsigned i = 0; i < b->n_uop; i++)
		if (uops[i].op == UOP_IOTA)
			return sim_refuse(load, HW_ST_BAD_PROGRAM,
				"uop %u: parts are joined anywhere, so iota has no meaning", i);
	for (unsigned j = 0; j < k; j++) {
		if (in[j].elem != in[k + j].elem || in[j].elem != out[j].elem)
			return sim_refuse(load, HW_ST_BAD_PROGRAM,
				"result %u: initial value, operand and output are %s, %s, %s", j,
				elem_text(in[j].elem), elem_text(in[k + j].elem),
				elem_text(out[j].elem));
		if (out[j].combine != ISA_STORE)
			return sim_refuse(load, HW_ST_BAD_PROGRAM,
				"output %u combines, but the body does that", j);
		for (unsigned d = 0; d < b->rank; d++)
			if ((t->reduce_dims >> d & 1) && (in[j].stride[d] || out[j].stride[d]))
				return sim_refuse(load, HW_ST_BAD_PROGRAM,
					"result %u moves along folded dim %u", j, d);
	}
	return 0;
}

/* Operands over their dims: initial values and outputs have the kept ones alone. */
static int prepare_refs(struct sim_load *load, const struct isa_tensor *t,
			const struct isa_operand *in, const struct isa_operand *out,
			struct vec_plan *p)
{
	const struct isa_body *b = &t->body;
	int64_t kept[ISA_MAX_RANK];
	int ret = 0;

	for (unsigned d = 0; d < ISA_MAX_RANK; d++)
		kept[d] = t->reduce_dims >> d & 1 ? 1 : b->dim[d];
	for (unsigned j = 0; j < b->n_in && !ret; j++)
		ret = sim_ref(load, &in[j], j, false, 0, b->rank,
			      j < b->n_out ? kept : b->dim, NULL, 0, &p->in[j]);
	for (unsigned j = 0; j < b->n_out && !ret; j++) {
		p->out[j].value = out[j].value;
		ret = sim_ref(load, &out[j], b->n_in + j, true, 0, b->rank, kept, NULL, 0,
			      &p->out[j].ref);
	}
	return ret;
}

static void plan_rooms(struct vec_plan *p, struct reduce_plan *r)
{
	size_t points = p->tiling.points;

	for (unsigned j = 0; j < r->k; j++) {
		size_t all = points * r->bytes[j], half = (points + 1) / 2 * r->bytes[j];

		r->tile[j] = vec_room(&p->scratch, all);
		r->left[j] = vec_room(&p->scratch, half);
		r->right[j] = vec_room(&p->scratch, half);
		r->half[j] = vec_room(&p->scratch, half);
		for (unsigned i = 0; i < 2; i++) {
			r->tail[i][j] = vec_room(&p->scratch, all);
			r->acc[i][j] = vec_room(&p->scratch, all);
		}
	}
}

static size_t shared_bytes(const struct vec_plan *p, struct reduce_plan *r, uint64_t parts)
{
	size_t all = 0;

	for (unsigned j = 0; j < r->k; j++) {
		size_t bytes;

		r->shared[j] = all;
		if (__builtin_mul_overflow(p->kept_tiles * parts,
					   p->acc_points * r->bytes[j], &bytes) ||
		    bytes > SHARED_BYTES)
			return SIZE_MAX;
		all += (bytes + 63) / 64 * 64;
	}
	return all;
}

static void plan_items(struct sim_load *load, struct vec_plan *p, struct reduce_plan *r)
{
	unsigned rank = p->space.rank, first_col = rank - p->tiling.col_dims;
	uint32_t all = rank ? UINT32_MAX >> (32 - rank) : 0;

	p->cols_folded = p->tiling.col_dims && (p->space.reduced >> (rank - 1) & 1);
	p->rows_folded = first_col && (p->space.reduced >> (first_col - 1) & 1);
	p->kept_tiles = vec_count(&p->tiling, rank, all & ~p->space.reduced);
	p->folded_tiles = vec_count(&p->tiling, rank, p->space.reduced);
	p->acc_points = (p->rows_folded ? 1 : (size_t)p->tiling.rows) *
		(p->cols_folded ? 1 : (size_t)p->tiling.cols);
	p->parts = p->kept_tiles < ITEMS ? ITEMS / p->kept_tiles : 1;
	if (p->parts > p->folded_tiles / 4)
		p->parts = p->folded_tiles / 4 ? p->folded_tiles / 4 : 1;
	while (p->parts > 1 && shared_bytes(p, r, p->parts) > SHARED_BYTES)
		p->parts /= 2;
	if (p->parts > 1)
		sim_need_shared(load, shared_bytes(p, r, p->parts));
}

/* Without elements the results are the initial values: one point, no tile. */
static bool is_empty(const struct isa_tensor *t, bool *nothing)
{
	bool empty = false;

	*nothing = false;
	for (unsigned d = 0; d < t->body.rank; d++) {
		if (t->body.dim[d])
			continue;
		empty = true;
		*nothing |= !(t->reduce_dims >> d & 1);
	}
	return empty;
}

/* Whether a tile is long rows, folded one after the other, which a pick can read where they lie. */
static bool has_rows_in_place(const struct vec_plan *p)
{
	const struct reduce_plan *r = p->reduce;
	const struct sim_ref *y = &p->in[r->k + r->by], *k = &p->in[r->k + !r->by];
	unsigned rank = p->space.rank;

	return rank > 1 && p->tiling.col_dims == 1 && p->tiling.cols >= LONG_INNER &&
	       (p->space.reduced >> (rank - 2) & 3) == 1 &&
	       y->stride[rank - 1] == r->bytes[r->by] &&
	       (!k->stride[rank - 1] || k->stride[rank - 1] == r->bytes[!r->by]);
}

/* Whether a tile is short rows, each of which has all that is folded into its results. */
static bool has_short_rows(const struct vec_plan *p)
{
	const struct reduce_plan *r = p->reduce;
	const struct sim_ref *y = &p->in[r->k + r->by], *k = &p->in[r->k + !r->by];
	unsigned last = p->space.rank - 1, bytes = r->bytes[r->by];
	int64_t cols = p->space.dim[last];

	for (unsigned d = 0; d < last; d++)
		if (p->in[0].stride[d] || p->in[1].stride[d])
			return false;
	return p->space.reduced == 1u << last && p->tiling.col_dims == 1 &&
	       p->tiling.cols == cols && cols >= SIM_SHORT_ROW_LEAST &&
	       cols <= SIM_SHORT_ROW_MOST && r->bytes[!r->by] == 4 && y->stride[last] == bytes &&
	       (cols >= SIM_SHORT_ROW_APART || y->stride[last - 1] == cols * bytes) &&
	       k->stride[last] == 4 && !k->stride[last - 1] &&
	       p->out[r->by].ref.stride[last - 1] == bytes &&
	       p->out[!r->by].ref.stride[last - 1] == 4;
}

static int plan_space(struct sim_load *load, const struct isa_tensor *t,
		      const struct isa_operand *out, const struct isa_uop *uops,
		      const struct sim_body_facts *facts, struct vec_plan *p)
{
	const struct isa_body *b = &t->body;
	unsigned n = 0, points = sim_body_points(load->cpu, b) / 2;
	struct sim_ref *refs[VEC_OPERANDS];
	struct reduce_plan *r = p->reduce;
	struct isa_body flat = *b;

	/* the operands decide the order, as inputs; the rest goes along */
	for (unsigned j = 0; j < r->k; j++)
		refs[n++] = &p->in[r->k + j];
	for (unsigned j = 0; j < r->k; j++)
		refs[n++] = &p->in[j];
	for (unsigned j = 0; j < r->k; j++)
		refs[n++] = &p->out[j].ref;
	p->space.rank = b->rank;
	p->space.reduced = t->reduce_dims;
	p->space.ordered = true;
	memcpy(p->space.dim, b->dim, sizeof(p->space.dim));
	for (unsigned d = 0; d < b->rank; d++)
		if ((t->reduce_dims >> d & 1) && !b->dim[d])
			p->space.dim[d] = 1;
	vec_simplify(&p->space, refs, n, n);
	/* along a folded dim a tile shrinks at once: it may be large */
	if (p->space.rank && (p->space.reduced >> (p->space.rank - 1) & 1))
		points *= SEGMENT / 2;
	else if (r->pick)	/* nothing but the tile and the results is in the cache */
		points *= 4;
	vec_cut(&p->space, refs, n, points < 256 ? 256 : points, &p->tiling);
	r->in_place = r->pick && has_rows_in_place(p);
	if (r->in_place)
		vec_more_rows(&p->space, &p->tiling, ROWS_IN_PLACE * p->tiling.cols);
	if (r->pick && p->space.rank > 1 && has_short_rows(p))
		r->pick_short = sim_uop_pick_short(load->cpu->path, r->op, r->elem[r->by]);
	for (unsigned j = 0; j < r->k && p->space.rank > 1; j++) {
		int64_t pitch = p->in[r->k + j].stride[p->space.rank - 2];

		r->column[j] = pitch % r->bytes[j] ? NULL :
			sim_column(load->cpu->path, r->bytes[j], pitch / r->bytes[j]);
	}
	flat.rank = 0;
	return sim_body_plan(load, &flat, out, uops, 0, facts, p->tiling.points, 0,
			     &p->body);
}

/* ---- run ---- */

static struct values rooms(const struct reduce_plan *r, const size_t *room, char *scratch)
{
	struct values v = { .spread = 0 };

	for (unsigned j = 0; j < r->k; j++)
		v.p[j] = scratch + room[j];
	return v;
}

static struct values moved(const struct reduce_plan *r, const struct values *v, size_t n)
{
	struct values to = { .spread = 0 };

	for (unsigned j = 0; j < r->k; j++)
		to.p[j] = v->p[j] + n * r->bytes[j];
	return to;
}

/* to = body(acc, elem) for n points. `to` meets neither; elem alone may be spread. */
static void apply(const struct vec_job *job, const struct values *to,
		  const struct values *acc, const struct values *elem, size_t n,
		  char *scratch)
{
	const struct vec_plan *p = job->plan;
	const struct reduce_plan *r = p->reduce;
	uint32_t mask = sim_body_direct(p->body);
	void *direct[ISA_MAX_OUT] = { NULL };
	struct sim_tile tile = { .rows = 1, .in_spread = elem->spread << r->k };

	if (r->pick && !(elem->spread >> r->by & 1)) {
		struct sim_pick_rows row = { .y = elem->p[r->by], .k = elem->p[!r->by], .rows = 1,
					     .one_k = elem->spread };

		r->pick(to->p[r->by], to->p[!r->by], acc->p[r->by], acc->p[!r->by], &row, n);
		return;
	}
	tile.cols = (unsigned)n;
	for (unsigned j = 0; j < r->k; j++) {
		tile.in[j] = acc->p[j];
		tile.in[r->k + j] = elem->p[j];
		direct[j] = mask >> j & 1 ? to->p[j] : NULL;
	}
	sim_body_run_into(p->body, job->run, &tile, scratch, direct);
	for (unsigned j = 0; j < r->k; j++) {
		bool is_spread, is_row;
		const char *v = sim_body_value(p->body, p->out[j].value, &tile, scratch,
					       &is_spread, &is_row);

		if (v == to->p[j])
			continue;
		for (size_t i = 0; is_spread && i < n; i++)
			memcpy(to->p[j] + i * r->bytes[j], v, r->bytes[j]);
		if (!is_spread)
			memcpy(to->p[j], v, n * r->bytes[j]);
	}
}

/* pick() of one operand, so few groups that to describe them takes longer: bytes everywhere. */
static void pick_few(char *to, const char *from, size_t outer, size_t pitch, size_t count,
		     size_t inner, size_t step)
{
	for (size_t i = 0; i < outer; i++, from += pitch) {
		const char *group = from;

		for (size_t k = 0; k < count; k++, to += inner, group += step) {
			if (inner == 4)
				memcpy(to, group, 4);
			else
				memcpy(to, group, inner);
		}
	}
}

/* Copies every other group of `inner` elements, `count` times from each of `outer`
 * runs that are `pitch` elements apart. */
static void pick(const struct reduce_plan *r, const struct values *to,
		 const struct values *from, size_t outer, size_t pitch, size_t count,
		 size_t inner, size_t step)
{
	for (unsigned j = 0; j < r->k; j++) {
		struct sim_ref ref = { .elem = r->elem[j] };
		struct sim_tile tile = {
			.rank = 3, .rows = (unsigned)outer, .col_dims = 2,
			.cols = (unsigned)(count * inner),
			.col_dim = { (int64_t)count, (int64_t)inner },
		};
		const void *got;

		if (outer * count <= FEW_GROUPS) {
			pick_few(to->p[j], from->p[j], outer, pitch * r->bytes[j], count,
				 inner * r->bytes[j], step * r->bytes[j]);
			continue;
		}
		ref.stride[0] = (int64_t)(pitch * r->bytes[j]);
		ref.stride[1] = (int64_t)(step * r->bytes[j]);
		ref.stride[2] = r->bytes[j];
		got = sim_tile_gather(&ref, (const uint8_t *)from->p[j], &tile, to->p[j]);
		if (got != to->p[j])
			memcpy(to->p[j], got, outer * count * inner * r->bytes[j]);
	}
}

/*
 * Folds outer x n x inner to outer x inner by pairs; gives where the result is. A last
 * element without partner waits in `tail` for the next odd level.
 */
static struct values fold_pairs(const struct vec_job *job, const struct values *from,
				size_t outer, size_t n, size_t inner, char *scratch)
{
	const struct reduce_plan *r = job->plan->reduce;
	struct values left = rooms(r, r->left, scratch);
	struct values right = rooms(r, r->right, scratch);
	struct values half = rooms(r, r->half, scratch);
	struct values tail[2] = { rooms(r, r->tail[0], scratch),
				  rooms(r, r->tail[1], scratch) };
	struct values now = *from, last;
	size_t points = outer * inner;
	bool has_tail = false;

	while (n > 1) {
		size_t pitch = n * inner;

		if (n & 1) {
			last = moved(r, &now, (n - 1) * inner);
			if (has_tail) {
				pick(r, &left, &last, outer, pitch, 1, inner, inner);
				apply(job, &tail[1], &left, &tail[0], points, scratch);
				last = tail[0];
				tail[0] = tail[1];
				tail[1] = last;
			} else {
				pick(r, &tail[0], &last, outer, pitch, 1, inner, inner);
			}
			has_tail = true;
			n--;
		}
		pick(r, &left, &now, outer, pitch, n / 2, inner, 2 * inner);
		last = moved(r, &now, inner);
		pick(r, &right, &last, outer, pitch, n / 2, inner, 2 * inner);
		apply(job, &half, &left, &right, outer * (n / 2) * inner, scratch);
		now = half;
		n /= 2;
	}
	if (!has_tail)
		return now;
	apply(job, &tail[1], &now, &tail[0], points, scratch);
	return tail[1];
}

/*
 * Folds `rows` rows of n elements, n a multiple of SEGMENT, to rows of n / SEGMENT: all
 * segments at once, element after element.
 */
static struct values fold_segments(const struct vec_job *job, const struct values *from,
				   size_t rows, size_t n, char *scratch)
{
	const struct reduce_plan *r = job->plan->reduce;
	struct values turned = rooms(r, r->tail[0], scratch);
	struct values part[2] = { rooms(r, r->left, scratch), rooms(r, r->right, scratch) };
	size_t segments = rows * n / SEGMENT;
	unsigned now = 0;

	for (unsigned j = 0; j < r->k; j++)
		r->turn[j](turned.p[j], (int64_t)segments * r->bytes[j], from->p[j],
			   SEGMENT * r->bytes[j], segments, SEGMENT);
	for (size_t i = 1; i < SEGMENT; i++) {
		struct values elem = moved(r, &turned, i * segments);

		apply(job, &part[!now], i == 1 ? &turned : &part[now], &elem, segments,
		      scratch);
		now = !now;
	}
	/* where fold_pairs() does not put anything before it has read */
	turned = rooms(r, r->half, scratch);
	for (unsigned j = 0; j < r->k; j++)
		memcpy(turned.p[j], part[now].p[j], segments * r->bytes[j]);
	return turned;
}

/* The accumulators of an item. */
struct folding {
	struct values acc[2];
	unsigned now;
	bool any;
};

static void fold_in(const struct vec_job *job, struct folding *f,
		    const struct values *elem, size_t n, char *scratch)
{
	const struct reduce_plan *r = job->plan->reduce;

	if (f->any) {
		apply(job, &f->acc[!f->now], &f->acc[f->now], elem, n, scratch);
		f->now = !f->now;
		return;
	}
	for (unsigned j = 0; j < r->k; j++)
		if (elem->spread >> j & 1)
			sim_fill(f->acc[f->now].p[j], elem->p[j], n, r->bytes[j]);
		else
			memcpy(f->acc[f->now].p[j], elem->p[j], n * r->bytes[j]);
	f->any = true;
}

/* How long rows are, n of which are folded, for one by one to be as quick as all by pairs. */
static unsigned long_inner(const struct vec_plan *p, size_t n)
{
	return p->reduce->pick && n < 2 * SEGMENT ? PICK_INNER : LONG_INNER;
}

/* Short rows, many of them: the first element of each, then the second one, and so on, so that
 * they are folded as if they were long ones of few. */
static bool is_upright(const struct vec_plan *p, const struct sim_tile *tile)
{
	return p->cols_folded && !p->rows_folded && tile->col_dims == 1 &&
	       tile->cols < 2 * SEGMENT && tile->rows >= long_inner(p, tile->cols);
}

/* A tile's columns, each as a row; of those that are the same in each row, one element. */
static void turn_tile(const struct vec_job *job, const struct sim_tile *tile,
		      struct values *to)
{
	const struct vec_plan *p = job->plan;
	const struct reduce_plan *r = p->reduce;
	unsigned row = tile->rank - 2;

	for (unsigned j = 0; j < r->k; j++) {
		const struct sim_ref *ref = &p->in[r->k + j];
		const uint8_t *from = sim_tile_at(ref, job->in[r->k + j], tile);
		int64_t step = ref->stride[row + 1], pitch = ref->stride[row];
		struct sim_box x = {
			.n = 2, .repeat = 1, .bytes = r->bytes[j],
			.count = { tile->cols, pitch ? tile->rows : 1 },
			.stride = { step, pitch },
		};

		if (!pitch)
			to->spread |= 1u << j;
		if (pitch && step == r->bytes[j] && r->column[j])
			for (unsigned i = 0; i < tile->cols; i++)
				r->column[j](to->p[j] + (size_t)i * tile->rows * r->bytes[j],
					     from + i * step, tile->rows);
		else if (pitch && step == r->bytes[j])
			r->turn[j](to->p[j], (int64_t)tile->rows * r->bytes[j], from, pitch,
				   tile->rows, tile->cols);
		else
			sim_box_in(&x, from, to->p[j]);
	}
}

/* A tile of long rows as such; of those that are one element each, that. */
static void take_rows(const struct vec_job *job, const struct sim_tile *tile, size_t n,
		      struct values *to)
{
	const struct vec_plan *p = job->plan;
	const struct reduce_plan *r = p->reduce;

	for (unsigned j = 0; j < r->k; j++) {
		const struct sim_ref *ref = &p->in[r->k + j];
		struct sim_tile one = *tile;

		switch (sim_tile_kind(ref, tile)) {
		case SIM_TILE_SPREAD:
		case SIM_TILE_ROW:
		case SIM_TILE_APART:
			if (n != tile->rows)	/* rows that are not folded are part of them */
				break;
			to->spread |= 1u << j;
			one.cols = 1;
			for (unsigned k = 0; k < one.col_dims; k++)
				one.col_dim[k] = 1;
			break;
		default:
			break;
		}
		to->p[j] = (char *)(uintptr_t)sim_tile_gather(ref, job->in[r->k + j], &one,
							      to->p[j]);
	}
}

/* n rows of the tile that it has become. */
static void fold_rows(const struct vec_job *job, struct folding *f, const struct values *v,
		      size_t n, size_t inner, char *scratch)
{
	const struct reduce_plan *r = job->plan->reduce;
	struct values row = *v;

	for (size_t i = 0; i < n; i++) {
		fold_in(job, f, &row, inner, scratch);
		for (unsigned j = 0; j < r->k; j++)
			row.p[j] += (v->spread >> j & 1 ? 1 : inner) * r->bytes[j];
	}
}

/* The rows of a tile, where they lie. */
static void pick_rows(const struct vec_job *job, struct folding *f, const struct sim_tile *tile)
{
	const struct vec_plan *p = job->plan;
	const struct reduce_plan *r = p->reduce;
	unsigned by = r->by, with = !by, row = tile->rank - 2;
	const struct sim_ref *y = &p->in[r->k + by], *k = &p->in[r->k + with];
	struct values *acc = &f->acc[f->now], first = { .spread = 0 };
	struct sim_pick_rows rows = {
		.y = sim_tile_at(y, job->in[r->k + by], tile), .y_step = y->stride[row],
		.k = sim_tile_at(k, job->in[r->k + with], tile), .k_step = k->stride[row],
		.rows = tile->rows, .one_k = !k->stride[row + 1],
	};

	if (!f->any) {
		first.p[by] = (char *)(uintptr_t)rows.y;
		first.p[with] = (char *)(uintptr_t)rows.k;
		first.spread = (uint32_t)rows.one_k << with;
		fold_in(job, f, &first, tile->cols, NULL);
		rows.y = first.p[by] + rows.y_step;
		rows.k = first.p[with] + rows.k_step;
		rows.rows--;
	}
	r->pick(acc->p[by], acc->p[with], acc->p[by], acc->p[with], &rows, tile->cols);
}

/* The rows of a tile and their initial value, to where the results go. */
static void pick_short_rows(const struct vec_job *job, const struct sim_tile *tile)
{
	const struct vec_plan *p = job->plan;
	unsigned by = p->reduce->by, with = !by, k = p->reduce->k;
	struct sim_short_rows rows = {
		.x = sim_tile_at(&p->in[by], job->in[by], tile),
		.i = (const void *)sim_tile_at(&p->in[with], job->in[with], tile),
		.y = sim_tile_at(&p->in[k + by], job->in[k + by], tile),
		.k = (const void *)sim_tile_at(&p->in[k + with], job->in[k + with], tile),
		.y_step = p->in[k + by].stride[tile->rank - 2],
		.rows = tile->rows, .cols = tile->cols,
	};

	p->reduce->pick_short(sim_tile_at(&p->out[by].ref, job->out[by], tile),
			      (void *)sim_tile_at(&p->out[with].ref, job->out[with], tile), &rows);
}

/* All columns of a tile that were turned, in one call, which takes some steps of its own; or one by
 * one. */
static void fold_turned(const struct vec_job *job, struct folding *f, const struct values *v,
			const struct sim_tile *tile, char *scratch)
{
	const struct reduce_plan *r = job->plan->reduce;
	unsigned by = r->by, with = !by;
	bool one_k = v->spread >> with & 1;
	struct values *acc = &f->acc[f->now];
	struct sim_pick_rows rows = {
		.y = v->p[by], .y_step = (int64_t)tile->rows * r->bytes[by],
		.k = v->p[with], .k_step = (one_k ? 1 : (int64_t)tile->rows) * r->bytes[with],
		.rows = tile->cols, .one_k = one_k,
	};

	if (r->pick && f->any && !(v->spread >> by & 1) && tile->cols >= PICK_COLS)
		r->pick(acc->p[by], acc->p[with], acc->p[by], acc->p[with], &rows, tile->rows);
	else
		fold_rows(job, f, v, tile->cols, tile->rows, scratch);
}

static void fold_tile(const struct vec_job *job, struct folding *f,
		      const struct sim_tile *tile, char *scratch)
{
	const struct vec_plan *p = job->plan;
	const struct reduce_plan *r = p->reduce;
	size_t outer = 1, n = 1, inner = 1;
	struct values v = rooms(r, r->tile, scratch);

	if (r->in_place) {
		pick_rows(job, f, tile);
		return;
	}
	if (is_upright(p, tile)) {
		turn_tile(job, tile, &v);
		fold_turned(job, f, &v, tile, scratch);
		return;
	}
	*(p->cols_folded ? &n : &inner) = tile->cols;
	*(p->rows_folded ? &n : p->cols_folded ? &outer : &inner) *= tile->rows;
	if (outer == 1 && inner >= long_inner(p, n)) {
		take_rows(job, tile, n, &v);
		fold_rows(job, f, &v, n, inner, scratch);
		return;
	}
	for (unsigned j = 0; j < r->k; j++)
		v.p[j] = (char *)(uintptr_t)sim_tile_gather(&p->in[r->k + j],
			job->in[r->k + j], tile, v.p[j]);
	if (inner == 1 && n % SEGMENT == 0) {
		v = fold_segments(job, &v, outer, n, scratch);
		n /= SEGMENT;
	}
	v = fold_pairs(job, &v, outer, n, inner, scratch);
	fold_in(job, f, &v, outer * inner, scratch);
}

/* A tile of kept dims alone. */
static struct sim_tile kept_tile(const struct vec_plan *p, const struct sim_tile *tile)
{
	struct sim_tile kept = *tile;

	if (p->rows_folded)
		kept.rows = 1;
	for (unsigned k = 0; p->cols_folded && k < kept.col_dims; k++)
		kept.col_dim[k] = 1;
	if (p->cols_folded)
		kept.cols = 1;
	return kept;
}

/* The initial values of a tile of kept dims. `left` has room for half a tile, `tail` for all. */
static struct values initial(const struct vec_job *job, const struct sim_tile *kept, char *scratch)
{
	const struct vec_plan *p = job->plan;
	const struct reduce_plan *r = p->reduce;
	struct values first = { .spread = 0 };

	for (unsigned j = 0; j < r->k; j++)
		first.p[j] = (char *)(uintptr_t)sim_tile_gather(&p->in[j], job->in[j], kept,
								scratch + r->tail[0][j]);
	return first;
}

/* Stores what is folded over a tile of kept dims. */
static void store(const struct vec_job *job, const struct sim_tile *kept, const struct values *v)
{
	const struct vec_plan *p = job->plan;

	for (unsigned j = 0; j < p->reduce->k; j++)
		sim_tile_out(&p->out[j].ref, job->out[j], kept, v->p[j], false, false, ISA_STORE);
}

/* out = body(init, total) over a tile of kept dims; without a total, init. */
static void finish(const struct vec_job *job, const struct sim_tile *tile,
		   const struct values *total, size_t n, char *scratch)
{
	const struct reduce_plan *r = job->plan->reduce;
	struct sim_tile kept = kept_tile(job->plan, tile);
	struct values to = rooms(r, r->tile, scratch), first = initial(job, &kept, scratch);

	if (total)
		apply(job, &to, &first, total, n, scratch);
	/* one result may lie on the initial value of another */
	for (unsigned j = 0; j < r->k && !total; j++)
		memcpy(to.p[j], first.p[j], n * r->bytes[j]);
	store(job, &kept, &to);
}

static size_t kept_points(const struct vec_plan *p, const struct sim_tile *tile)
{
	return (p->rows_folded ? 1 : (size_t)tile->rows) *
		(p->cols_folded ? 1 : (size_t)tile->cols);
}

static struct values partial(const struct vec_job *job, uint64_t kept, uint64_t part)
{
	const struct vec_plan *p = job->plan;
	const struct reduce_plan *r = p->reduce;
	struct values v = { .spread = 0 };

	for (unsigned j = 0; j < r->k; j++)
		v.p[j] = (char *)job->run->shared + r->shared[j] +
			(kept * p->parts + part) * p->acc_points * r->bytes[j];
	return v;
}

static struct folding start_folding(const struct reduce_plan *r, char *scratch)
{
	return (struct folding){ .acc = { rooms(r, r->acc[0], scratch),
					  rooms(r, r->acc[1], scratch) } };
}

static void run_item(const struct vec_job *job, uint64_t item, char *scratch)
{
	const struct vec_plan *p = job->plan;
	const struct reduce_plan *r = p->reduce;
	uint64_t kept = item / p->parts, part = item % p->parts;
	uint64_t begin = p->folded_tiles * part / p->parts;
	uint64_t end = p->folded_tiles * (part + 1) / p->parts;
	struct folding f = start_folding(r, scratch);
	uint64_t at[ISA_MAX_RANK] = { 0 };
	struct sim_tile tile = { 0 }, results;
	struct values to;
	bool begun;

	vec_seek(&p->tiling, p->space.rank, ~p->space.reduced, kept, at);
	vec_seek(&p->tiling, p->space.rank, p->space.reduced, begin, at);
	vec_tile_at(&p->space, &p->tiling, at, &tile);
	if (r->pick_short) {
		pick_short_rows(job, &tile);
		return;
	}
	results = kept_tile(p, &tile);
	begun = p->parts == 1 && r->pick && (r->in_place || is_upright(p, &tile));
	if (begun) {	/* a pick may as well begin with the initial values */
		to = initial(job, &results, scratch);
		fold_in(job, &f, &to, kept_points(p, &tile), scratch);
	}
	for (; begin < end; begin++) {
		if (sim_stopped(job->run))
			return;
		vec_tile_at(&p->space, &p->tiling, at, &tile);
		fold_tile(job, &f, &tile, scratch);
		vec_advance(&p->tiling, p->space.rank, p->space.reduced, at);
	}
	if (begun) {
		store(job, &results, &f.acc[f.now]);
		return;
	}
	if (p->parts == 1) {
		finish(job, &tile, &f.acc[f.now], kept_points(p, &tile), scratch);
		return;
	}
	to = partial(job, kept, part);
	for (unsigned j = 0; j < r->k; j++)
		memcpy(to.p[j], f.acc[f.now].p[j], kept_points(p, &tile) * r->bytes[j]);
}

static void run_items(void *arg, uint64_t begin, uint64_t end, unsigned lane)
{
	struct vec_job *job = arg;
	char *scratch = sim_scratch(job->run, lane);

	for (; begin < end && !sim_stopped(job->run); begin++)
		run_item(job, begin, scratch);
}

/* Joins parts in order; with no parts, stores the initial values. */
static void join(void *arg, uint64_t begin, uint64_t end, unsigned lane)
{
	struct vec_job *job = arg;
	const struct vec_plan *p = job->plan;
	char *scratch = sim_scratch(job->run, lane);

	for (; begin < end && !sim_stopped(job->run); begin++) {
		struct folding f = start_folding(p->reduce, scratch);
		uint64_t at[ISA_MAX_RANK] = { 0 };
		struct sim_tile tile = { 0 };
		size_t n;

		vec_seek(&p->tiling, p->space.rank, ~p->space.reduced, begin, at);
		vec_tile_at(&p->space, &p->tiling, at, &tile);
		n = kept_points(p, &tile);
		for (uint64_t part = 0; part < p->parts; part++) {
			struct values v = partial(job, begin, part);

			fold_in(job, &f, &v, n, scratch);
		}
		finish(job, &tile, p->parts ? &f.acc[f.now] : NULL, n, scratch);
	}
}

static int run(struct sim_run *run, const void *plan)
{
	const struct vec_plan *p = plan;
	struct vec_job job = { .run = run, .plan = p };

	for (unsigned j = 0; j < p->n_in; j++) {
		job.in[j] = sim_at(run, &p->in[j]);
		if (!job.in[j])
			return run->fault.status;
	}
	for (unsigned j = 0; j < p->n_out; j++) {
		job.out[j] = sim_at(run, &p->out[j].ref);
		if (!job.out[j])
			return run->fault.status;
	}
	if (!p->body)
		return 0;
	run->vector_ops += p->points * p->n_uop;
	run->read_bytes += p->read_bytes;
	run->write_bytes += p->write_bytes;
	if (p->parts)
		sim_parallel(run, p->kept_tiles * p->parts, 1, p->ns, run_items, &job);
	if (p->parts != 1)
		sim_parallel(run, p->kept_tiles, 1,
			     p->kept_tiles * (p->parts + 1) * (100 + p->acc_points), join, &job);
	return 0;
}

int vec_prepare_reduce(struct sim_load *load, const struct isa_tensor *t,
		       const void **plan)
{
	const struct isa_operand *in, *out;
	const struct isa_uop *uops;
	struct sim_body_facts facts;
	struct reduce_plan *r;
	struct vec_plan *p;
	bool nothing, empty;
	uint64_t kept = 1;
	int ret;

	ret = vec_parts(load, t, &in, &out, &uops);
	if (!ret)
		ret = check_reduce(load, t, in, out, uops);
	if (!ret)
		ret = sim_body_check(load, &t->body, in, out, uops, NULL, 0, &facts);
	if (ret)
		return ret;
	p = arena_alloc(load->arena, sizeof(*p));
	r = arena_alloc(load->arena, sizeof(*r));
	if (!p || !r)
		return sim_refuse(load, HW_ST_NO_ROOM, "no memory for a plan");
	*plan = p;
	p->run = run;
	p->reduce = r;
	p->n_in = t->body.n_in;
	p->n_out = r->k = t->body.n_out;
	p->n_uop = t->body.n_uop;
	for (unsigned j = 0; j < r->k; j++) {
		r->elem[j] = in[j].elem;
		r->bytes[j] = (uint8_t)elem_bytes(in[j].elem);
		r->turn[j] = sim_transpose(load->cpu->path, r->bytes[j]);
	}
	r->op = vec_find_pick(t, out, uops, &r->by);
	if (r->op)
		r->pick = sim_uop_pick(load->cpu->path, r->op, r->elem[r->by], r->bytes[!r->by]);
	ret = prepare_refs(load, t, in, out, p);
	empty = is_empty(t, &nothing);
	if (ret || nothing)
		return ret;
	ret = plan_space(load, t, out, uops, &facts, p);
	if (ret)
		return ret;
	p->scratch = sim_body_scratch(p->body);
	plan_rooms(p, r);
	plan_items(load, p, r);
	sim_need_scratch(load, p->scratch);
	p->points = 1;
	for (unsigned d = 0; d < p->space.rank; d++) {
		p->points *= (uint64_t)p->space.dim[d];
		kept *= p->space.reduced >> d & 1 ? 1 : (uint64_t)p->space.dim[d];
	}
	for (unsigned j = 0; j < r->k; j++)
		p->read_bytes += p->points * r->bytes[j];
	for (unsigned j = 0; j < r->k; j++)
		p->write_bytes += kept * r->bytes[j];
	p->ns = (uint64_t)((double)p->points * (1 + (double)vec_cost(load->cpu->path, uops,
			   p->n_uop) / 512) + (double)p->read_bytes / 10 +
		(double)p->tiling.n_tiles * 200);
	/* nothing to fold: parts = 0 says that the initial values are all */
	if (empty)
		p->parts = 0;
	return 0;
}
