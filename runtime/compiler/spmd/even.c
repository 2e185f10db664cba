/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dims that their parts do not divide, as of a slice of a dim that is cut, are made longer: to a
 * multiple of the parts. What an op gives in the rows behind the true ones is of no meaning, and
 * who would take them into account (sums, windows with padding behind) has them masked. So a slice
 * of a dim that is cut, and what is done with it, runs in parts as on the whole dim.
 *
 * Only what ends so: a dim is longer if an op that moves along it begins it, which then takes a
 * few rows of neighbours, and all who use the value can do with a longer one, to the ends: where
 * the dim is summed over, or windows or slices make it a length that the parts divide. Everything
 * else is as it was, whole on each member. What comes of it is a program as good as the one before,
 * with the same results.
 */
#include <string.h>

#include "runtime/compiler/spmd/shard_internal.h"

#define MOST_ROWS ((int64_t)1 << 30)	/* masks count in s32 */

/* At `side` of a value: which dims are, or are to be, longer, and its type without that. */
struct length {
	uint32_t dims;
	const struct tc_type *true_type;
};

struct even {
	struct shard *s;
	bool changed;
};

/* ---- values ---- */

static bool is_longer(const struct tc_value *v, unsigned d)
{
	const struct length *l = v->side;

	return l && d < TC_MAX_RANK && l->dims >> d & 1;
}

static const struct tc_type *true_type(const struct tc_value *v)
{
	const struct length *l = v->side;

	return l ? l->true_type : v->type;
}

static int64_t true_size(const struct tc_value *v, unsigned d)
{
	return true_type(v)->dim[d];
}

static const struct spmd_axes *axes_of(const struct shard *s, const struct tc_value *v, unsigned d)
{
	return &s->p->of[v->id]->dim[d].axes;
}

/* How long the dim of a value is to be. */
static int64_t size_of(const struct shard *s, const struct tc_value *v, unsigned d)
{
	int64_t n = spmd_size(axes_of(s, v, d)), size = true_size(v, d);

	return is_longer(v, d) ? (size + n - 1) / n * n : size;
}

/* Whether it is cut, evenly when all is done. */
static bool is_even(const struct shard *s, const struct tc_value *v, unsigned d)
{
	const struct spmd_axes *a = axes_of(s, v, d);

	return a->n && !(size_of(s, v, d) % spmd_size(a));
}

static bool may_lie(const struct shard *s, const struct tc_value *v)
{
	const struct spmd_sharding *h = v->id < s->room ? s->p->of[v->id] : NULL;

	return h && h->kind == SPMD_TILED && !h->manual.n && !h->unreduced.n;
}

/* Which dims can't be cut evenly as they are. */
static void note_value(struct shard *s, struct tc_value *v)
{
	struct length *l;
	uint32_t dims = 0;

	for (unsigned d = 0; may_lie(s, v) && d < v->type->rank; d++) {
		int64_t n = spmd_size(axes_of(s, v, d)), size = v->type->dim[d];

		if (size >= n && size % n && size < MOST_ROWS)
			dims |= 1u << d;
	}
	if (!dims)
		return;
	l = arena_alloc(&s->c->arena, sizeof(*l));
	*l = (struct length){ dims, v->type };
	v->side = l;
}

static bool is_by_itself(const struct tc_op *op)
{
	const struct tc_block *b = op->block;

	while (b && b->region->parent->op != TC_MANUAL_COMPUTATION)
		b = b->region->parent->block;
	return b;
}

/* What is in a body that each device does by itself has no dims of all of them. */
static void note_values(struct tc_op *op, void *arg)
{
	for (unsigned i = 0; i < op->n_results; i++) {
		tc_out(op, i)->side = NULL;
		if (!is_by_itself(op))
			note_value(arg, tc_out(op, i));
	}
	for (unsigned r = 0; r < op->n_regions; r++)
		for (unsigned i = 0; op->regions[r].block && i < op->regions[r].block->n_args; i++)
			op->regions[r].block->args[i]->side = NULL;
}

static void drop(struct even *e, struct tc_value *v, unsigned d)
{
	struct length *l = v->side;

	if (!is_longer(v, d))
		return;
	l->dims &= ~(1u << d);
	e->changed = true;
}

/* ---- factors ---- */

static struct tc_value *tensor_of(const struct tc_op *op, uint32_t t)
{
	return t < op->n_operands ? tc_in(op, t) : tc_out(op, t - op->n_operands);
}

/* The only factor of a dim; -1: it has several or none. */
static int64_t factor_of(const struct spmd_rule *r, uint32_t t, unsigned d)
{
	return r && r->tensor[t][d].n == 1 ? r->tensor[t][d].factor[0] : -1;
}

/* The dim of a tensor that is factor f; -1: none. */
static int64_t dim_of(const struct spmd_rule *r, uint32_t t, int64_t f)
{
	for (unsigned d = 0; d < r->rank[t]; d++)
		if (factor_of(r, t, d) == f)
			return d;
	return -1;
}

/* Whether op runs on a longer factor as on its own: who has it and is longer is then of that size,
 * and all results are. */
static bool may_grow(const struct shard *s, const struct tc_op *op, int64_t f, int64_t size)
{
	const struct spmd_rule *r = s->rule[op->id];

	if (f < 0 || op->op == TC_CUSTOM_CALL || r->factor[f].kind != SPMD_PASS ||
	    !shard_may_share(s, op, r, (uint32_t)f))
		return false;
	for (uint32_t t = 0; t < r->n_tensors; t++)
		for (unsigned d = 0; d < r->rank[t]; d++) {
			const struct tc_value *v = tensor_of(op, t);

			if (r->tensor[t][d].n > 1)
				for (uint32_t i = 0; i < r->tensor[t][d].n; i++)
					if (r->tensor[t][d].factor[i] == f)
						return false;
			if (factor_of(r, t, d) == f &&
			    (t >= r->n_operands || is_longer(v, d)) &&
			    (!is_longer(v, d) || size_of(s, v, d) != size))
				return false;
		}
	return true;
}

/* ---- windows ---- */

static const struct tc_type *kernel_of(const struct tc_op *op)
{
	return op->op == TC_CONVOLUTION ? true_type(tc_in(op, 1)) : NULL;
}

/* Whether a slice takes the same rows of each part, but for where it begins and ends. */
static bool has_even_steps(const struct shard *s, const struct tc_op *op, unsigned d)
{
	int64_t step = tc_attr_nth(op, "strides", d), size = size_of(s, tc_in(op, 0), d);

	return step == 1 ||
	       !(size % step || size / step % spmd_size(axes_of(s, tc_in(op, 0), d)));
}

/* The dim of operand 0 along which op moves to make dim d of its result; -1: it does not. */
static int64_t moves_along(const struct shard *s, const struct tc_op *op, unsigned d)
{
	if (op->op != TC_SLICE && op->op != TC_PAD && op->op != TC_CONVOLUTION &&
	    op->op != TC_REDUCE_WINDOW)
		return -1;
	if (op->n_results != 1 || !may_lie(s, tc_out(op, 0)) || !may_lie(s, tc_in(op, 0)))
		return -1;
	if (op->op == TC_SLICE && !has_even_steps(s, op, d))
		return -1;
	return shard_moves_along(op, kernel_of(op), d);
}

/* Whether dim d of a result that op moves along is made of few rows of neighbours, dims being as
 * long as is planned. */
static bool is_near(struct shard *s, const struct tc_op *op, unsigned d)
{
	int64_t in = moves_along(s, op, d);
	const struct tc_value *x = tc_in(op, 0), *y = tc_out(op, 0);
	int64_t from, to;

	if (in < 0 || !is_even(s, x, (unsigned)in) || !is_even(s, y, d) ||
	    !spmd_same_axes(axes_of(s, x, (unsigned)in), axes_of(s, y, d)) ||
	    (op->op == TC_REDUCE_WINDOW && !shard_may_repeat(op)))
		return false;
	from = size_of(s, x, (unsigned)in);
	to = size_of(s, y, d);
	return (op->op != TC_REDUCE_WINDOW || shard_behind(op, NULL, d, from, to) >= 0) &&
	       shard_is_near(s, op, kernel_of(op), d, from, to,
			     spmd_size(axes_of(s, y, d)));
}

/* ---- joins ---- */

static bool is_late(const struct shard *s, const struct tc_op *op)
{
	return s->is_late[op->id];
}

/* Whether parts of what op joins along dim d, which is to be as long as planned, are made of few
 * pieces of its operands. */
static bool is_in_pieces(struct shard *s, const struct tc_op *op, unsigned d)
{
	const struct tc_value *y = tc_out(op, 0);
	const struct spmd_axes *a = axes_of(s, y, d);
	struct shard_source *source = arena_array(&s->c->arena, op->n_operands, sizeof(*source));
	int64_t n = spmd_size(a), first = 0;

	if (tc_attr_int(op, "dimension", 0) != d || s->roll[op->id] || !may_lie(s, y) ||
	    !is_even(s, y, d))
		return false;
	for (unsigned i = 0; i < op->n_operands; i++) {
		const struct tc_op *slice = tc_in(op, i)->def;
		const struct tc_value *x = tc_in(op, i);
		bool is_cut;

		if (slice && !is_late(s, slice))
			slice = NULL;
		x = slice ? tc_in(slice, 0) : x;
		is_cut = may_lie(s, x) && is_even(s, x, d) &&
			 spmd_same_axes(axes_of(s, x, d), a);

		source[i] = (struct shard_source){
			.first = first, .rows = true_size(tc_in(op, i), d),
			.skip = slice ? tc_attr_nth(slice, "start_indices", d) : 0,
			.part = is_cut ? size_of(s, x, d) / n : true_size(x, d),
			.is_cut = is_cut,
		};
		first += source[i].rows;
	}
	return shard_plan_pieces(s, n, source, op->n_operands, size_of(s, y, d) / n,
				 shard_row_of(true_type(y), d));
}

/* ---- who can make and who can use a longer dim ---- */

static bool has_longer_operand(const struct tc_op *op, const struct spmd_rule *r, int64_t f)
{
	for (uint32_t t = 0; t < r->n_operands; t++) {
		int64_t d = dim_of(r, t, f);

		if (d >= 0 && is_longer(tensor_of(op, t), (unsigned)d))
			return true;
	}
	return false;
}

static bool can_make(struct shard *s, const struct tc_op *op, unsigned i, unsigned d)
{
	const struct spmd_rule *r = s->rule[op->id];
	int64_t f = r ? factor_of(r, op->n_operands + i, d) : -1;

	if (!r || is_late(s, op) || op->op == TC_SHARDING_CONSTRAINT)
		return false;
	if (f >= 0 && may_grow(s, op, f, size_of(s, tc_out(op, i), d)))
		return has_longer_operand(op, r, f);
	if (op->op == TC_CONCATENATE)
		return is_in_pieces(s, op, d);
	return is_near(s, op, d);
}

/* A concatenate that, of a slice of the longer value, is one whose rows move. */
static bool may_join(const struct shard *s, const struct tc_op *op, unsigned i, unsigned d)
{
	const struct tc_value *x = tc_in(op, i), *rest = tc_in(op, !i), *y = tc_out(op, 0);

	return op->n_operands == 2 && !s->roll[op->id] && tc_attr_int(op, "dimension", 0) == d &&
	       may_lie(s, y) && spmd_same_axes(axes_of(s, x, d), axes_of(s, y, d)) &&
	       y->type->dim[d] == size_of(s, x, d) && !is_longer(rest, d) &&
	       rest->type->dim[d] <= size_of(s, x, d) / spmd_size(axes_of(s, x, d));
}

static bool is_summed(const struct shard *s, const struct tc_op *op, unsigned i, unsigned d)
{
	const struct spmd_rule *r = s->rule[op->id];
	int64_t f = factor_of(r, i, d);

	if (f < 0 || r->factor[f].kind != SPMD_REDUCTION ||
	    (op->op != TC_REDUCE && op->op != TC_DOT_GENERAL))
		return false;
	for (uint32_t t = 0; t < r->n_operands; t++) {
		int64_t k = dim_of(r, t, f);

		if (k >= 0 && is_longer(tc_in(op, t), (unsigned)k) &&
		    size_of(s, tc_in(op, t), (unsigned)k) != size_of(s, tc_in(op, i), d))
			return false;
	}
	return shard_may_share(s, op, r, (uint32_t)f);
}

/* Whether it is a result of main's that is whole along the dim: it is collected, and cut off. */
static bool is_whole_result(const struct shard *s, const struct tc_op *op, unsigned i, unsigned d)
{
	return op == tc_main(s->c)->last && s->p->result[i] &&
	       s->p->result[i]->kind == SPMD_TILED && !s->p->result[i]->dim[d].axes.n;
}

static bool can_use(struct shard *s, const struct tc_op *op, unsigned i, unsigned d)
{
	const struct spmd_rule *r = s->rule[op->id];
	int64_t f = r ? factor_of(r, i, d) : -1;

	if (op->op == TC_SHARDING_GROUP || is_whole_result(s, op, i, d))
		return true;
	if (!r || is_late(s, op) || op->op == TC_SHARDING_CONSTRAINT)
		return false;
	if (op->op == TC_CONCATENATE && tc_attr_int(op, "dimension", 0) == d)
		return may_join(s, op, i, d) || is_in_pieces(s, op, d);
	if (is_summed(s, op, i, d) ||
	    (f >= 0 && may_grow(s, op, f, size_of(s, tc_in(op, i), d))))
		return true;
	for (unsigned k = 0; !i && op->n_results && k < tc_out(op, 0)->type->rank; k++)
		if (moves_along(s, op, k) == d)
			return is_near(s, op, k);
	return false;
}

static void check_results(struct even *e, struct tc_op *op)
{
	for (unsigned i = 0; i < op->n_results; i++)
		for (unsigned d = 0; d < tc_out(op, i)->type->rank; d++)
			if (is_longer(tc_out(op, i), d) && !can_make(e->s, op, i, d))
				drop(e, tc_out(op, i), d);
}

static void check_operands(struct even *e, struct tc_op *op)
{
	for (unsigned i = 0; i < op->n_operands; i++)
		for (unsigned d = 0; d < tc_in(op, i)->type->rank; d++)
			if (is_longer(tc_in(op, i), d) && !can_use(e->s, op, i, d))
				drop(e, tc_in(op, i), d);
}

static void check_block(struct even *e, struct tc_block *b, bool is_back)
{
	for (struct tc_op *op = is_back ? b->last : b->first; op; op = is_back ? op->prev :
	     op->next) {
		check_results(e, op);
		check_operands(e, op);
		for (unsigned k = 0; k < op->n_regions; k++)
			if (op->regions[k].block)
				check_block(e, op->regions[k].block, is_back);
	}
}

/* ---- the program with them ---- */

static void *grown(struct shard *s, const void *table, size_t size)
{
	void *to = arena_array(&s->c->arena, s->room, size);

	if (s->n_values)
		memcpy(to, table, s->n_values * size);
	return to;
}

/* Room in the tables by id for all values and ops that there are. */
static void make_room(struct shard *s)
{
	uint32_t had = s->n_values;

	if (s->c->next_id <= s->room)
		return;
	/* All that is in the tables, not only the program's. */
	s->n_values = s->room;
	s->room = 2 * s->c->next_id;
	s->of = grown(s, s->of, sizeof(*s->of));
	s->rule = grown(s, s->rule, sizeof(*s->rule));
	s->roll = grown(s, s->roll, sizeof(*s->roll));
	s->is_late = grown(s, s->is_late, sizeof(*s->is_late));
	s->taken = grown(s, s->taken, sizeof(*s->taken));
	s->p->of = grown(s, s->p->of, sizeof(*s->p->of));
	s->n_values = had;
}

/* New values lie as h, but for scalars; who uses v is to see it as l says. */
static struct tc_value *lie(struct even *e, struct tc_value *v, const struct spmd_sharding *h,
			    struct length *l)
{
	struct shard *s = e->s;

	make_room(s);
	s->p->of[v->id] = v->type->rank == h->rank ? spmd_copy(s->p->s, h) :
			  shard_plain(s, NULL, v->type, &(struct spmd_axes){ 0 });
	v->side = l;
	s->of[v->id].type = true_type(v);
	for (unsigned i = 0; v->def && i < v->def->n_operands; i++)
		if (!s->p->of[tc_in(v->def, i)->id])
			lie(e, tc_in(v->def, i), h, NULL);
	return v;
}

/* A scalar that is 0. */
static struct tc_value *zero_at(struct even *e, struct tc_op *at, enum elem elem)
{
	struct tc_build b = tc_build_at(e->s->c, at);
	struct tc_value *v = tc_build_number(&b, tc_tensor(e->s->c, elem, 0, NULL), 0);

	return lie(e, v, shard_plain(e->s, NULL, v->type, &(struct spmd_axes){ 0 }), NULL);
}

/* v with the rows behind the true ones of dim d as a number says, a scalar: where they are. */
static struct tc_value *masked(struct even *e, struct tc_op *at, struct tc_value *v, unsigned d,
			       struct tc_value *fill)
{
	struct tc_build b = tc_build_at(e->s->c, at);
	const struct tc_type *t = tc_with_elem(e->s->c, v->type, ELEM_S32);
	struct tc_value *x;

	if (true_size(v, d) == v->type->dim[d])
		return v;
	x = tc_build_compare(&b, TC_CMP_LT, tc_build_iota(&b, t, d),
			     tc_build_number(&b, t, (double)true_size(v, d)));
	x = tc_build_select(&b, x, v, tc_build_broadcast(&b, fill, v->type, NULL));
	return lie(e, x, e->s->p->of[v->id], v->side);
}

/* v with dim d of that size. */
static struct tc_value *lengthened(struct even *e, struct tc_op *at, struct tc_value *v, unsigned d,
				   int64_t size)
{
	struct shard *s = e->s;
	struct tc_build b = tc_build_at(s->c, at);
	const struct tc_type *t = tc_with_dim(s->c, v->type, d, size);
	struct length *l;
	struct tc_value *x;

	if (v->type->dim[d] == size)
		return v;
	x = shard_make_longer(s, &b, v, t);
	if (!x)
		x = shard_pad_zeros(s, &b, v, d, 0, size - v->type->dim[d]);
	l = arena_alloc(&s->c->arena, sizeof(*l));
	*l = (struct length){ 1u << d, true_type(v) };
	if (v->side)
		l->dims |= ((struct length *)v->side)->dims;
	return lie(e, x, s->p->of[v->id], l);
}

/* A list with a number for each dim of operand 0 that may say how long it is. */
static void set_size(struct even *e, struct tc_op *op, const char *name, unsigned d, int64_t size)
{
	if (tc_attr_nth(op, name, d) == true_size(tc_in(op, 0), d))
		tc_set_nth(e->s->c, op, name, d, size);
}

static void grow_factor(struct even *e, struct tc_op *op, int64_t f, int64_t size)
{
	const struct spmd_rule *r = e->s->rule[op->id];

	for (uint32_t t = 0; t < r->n_operands; t++) {
		int64_t d = dim_of(r, t, f);

		if (d < 0)
			continue;
		if (!t && (op->op == TC_DYNAMIC_SLICE || op->op == TC_GATHER))
			set_size(e, op, "slice_sizes", (unsigned)d, size);
		if (!t && op->op == TC_SLICE)
			set_size(e, op, "limit_indices", (unsigned)d, size);
		tc_set_operand(op, t, lengthened(e, op, tc_in(op, t), (unsigned)d, size));
	}
	for (unsigned i = 0; i < op->n_results; i++) {
		int64_t d = dim_of(r, op->n_operands + i, f);

		if (d >= 0)
			tc_out(op, i)->type = tc_with_dim(e->s->c, tc_out(op, i)->type, (unsigned)d,
							size);
	}
}

/* Behind the true rows nothing counts. */
static void mask_sum(struct even *e, struct tc_op *op, int64_t f, int64_t size)
{
	const struct spmd_rule *r = e->s->rule[op->id];

	for (uint32_t t = 0; t < r->n_operands; t++) {
		int64_t d = dim_of(r, t, f);
		struct tc_value *v = tc_in(op, t), *fill;

		if (d < 0)
			continue;
		v = lengthened(e, op, v, (unsigned)d, size);
		fill = op->op == TC_REDUCE ? tc_in(op, op->n_results + t) :
		       zero_at(e, op, (enum elem)v->type->elem);
		tc_set_operand(op, t, masked(e, op, v, (unsigned)d, fill));
	}
}

/* A slice is padding by less, behind the slice of other dims; with steps that of all of its dim,
 * from the first row that there is of those. */
static void pad_for_slice(struct even *e, struct tc_op *op, uint32_t dims)
{
	struct shard *s = e->s;
	struct tc_value *x = tc_in(op, 0), *y = tc_out(op, 0);
	int64_t low[TC_MAX_RANK] = { 0 }, high[TC_MAX_RANK] = { 0 }, none[TC_MAX_RANK] = { 0 };
	struct tc_build b = { .c = s->c, .before = op->next, .where = op->where };
	const struct tc_type *t = true_type(y);
	struct tc_value *made, *zero = zero_at(e, op, (enum elem)t->elem);

	for (unsigned d = 0; d < t->rank; d++) {
		int64_t step = tc_attr_nth(op, "strides", d), rows = x->type->dim[d] / step;
		int64_t start = tc_attr_nth(op, "start_indices", d);

		if (!(dims >> d & 1))
			continue;
		low[d] = -(start / step);
		high[d] = size_of(s, y, d) - rows - low[d];
		tc_set_nth(s->c, op, "start_indices", d, start % step);
		tc_set_nth(s->c, op, "limit_indices", d, x->type->dim[d]);
		y->type = tc_with_dim(s->c, y->type, d, rows);
	}
	made = tc_build_pad(&b, y, zero, low, high, none);
	lie(e, made, s->p->of[y->id], y->side);
	y->side = NULL;
	for (struct tc_use *u = y->uses, *next; u; u = next) {
		next = u->next;
		if (u->user != made->def)
			tc_set_operand(u->user, (unsigned)(u - u->user->operands), made);
	}
}

/* What op has at the ends of its operand instead of rows that are not there. */
static struct tc_value *edge_of(struct even *e, struct tc_op *op)
{
	return op->op == TC_CONVOLUTION ? zero_at(e, op, (enum elem)tc_in(op, 0)->type->elem) :
					  tc_in(op, 1);
}

static void move_along(struct even *e, struct tc_op *op, unsigned d)
{
	struct shard *s = e->s;
	unsigned in = (unsigned)moves_along(s, op, d);
	struct tc_value *x = tc_in(op, 0), *y = tc_out(op, 0);

	/* Nothing looks farther than the rows that it has otherwise. */
	if (shard_behind(op, kernel_of(op), d, true_size(x, in), true_size(y, d)) > 0)
		x = masked(e, op, x, in, edge_of(e, op));
	tc_set_operand(op, 0, x);
	y->type = tc_with_dim(s->c, y->type, d, size_of(s, y, d));
	shard_set_behind(s, op, d, shard_behind(op, kernel_of(op), d, x->type->dim[in],
						y->type->dim[d]));
}

/* The true rows, which with others are as many; other dims are as long as they were. */
static void join(struct even *e, struct tc_op *op, unsigned i, unsigned d)
{
	struct tc_build b = tc_build_at(e->s->c, op);
	struct tc_value *x = tc_in(op, i);
	int64_t zero[TC_MAX_RANK] = { 0 };
	struct tc_value *y = tc_build_slice(&b, x, zero, tc_with_dim(e->s->c, x->type, d,
								   true_size(x, d)));
	struct length *l = arena_alloc(&e->s->c->arena, sizeof(*l));

	*l = (struct length){ ((struct length *)x->side)->dims & ~(1u << d), true_type(x) };
	tc_set_operand(op, i, lie(e, y, e->s->p->of[x->id], l));
}

/* So many rows behind what is joined that mean nothing. */
static void join_more(struct even *e, struct tc_op *op, unsigned d)
{
	struct tc_value *y = tc_out(op, 0);
	struct tc_value **v = arena_array(&e->s->c->arena, op->n_operands + 1, sizeof(*v));
	struct tc_build b = tc_build_at(e->s->c, op);
	const struct tc_type *t;

	t = tc_with_dim(e->s->c, y->type, d, size_of(e->s, y, d) - y->type->dim[d]);
	for (unsigned i = 0; i < op->n_operands; i++)
		v[i] = tc_in(op, i);
	v[op->n_operands] = tc_build_broadcast(&b, zero_at(e, op, (enum elem)t->elem), t, NULL);
	lie(e, v[op->n_operands], e->s->p->of[y->id], NULL);
	tc_set_operands(e->s->c, op, op->n_operands + 1, v);
	y->type = tc_with_dim(e->s->c, y->type, d, size_of(e->s, y, d));
}

/* Whether more rows are to be in what is joined. */
static bool takes_more(const struct even *e, const struct tc_op *op)
{
	unsigned d = (unsigned)tc_attr_int(op, "dimension", 0);

	return is_longer(tc_out(op, 0), d) &&
	       size_of(e->s, tc_out(op, 0), d) != true_size(tc_out(op, 0), d);
}

static bool takes_longer(const struct tc_op *op, unsigned i, unsigned d)
{
	const struct tc_value *v = tc_in(op, i);

	return is_longer(v, d) && v->type->dim[d] != true_size(v, d);
}

/* Main's results without the rows that mean nothing. */
static void cut_results(struct even *e, struct tc_op *op)
{
	struct tc_build b = tc_build_at(e->s->c, op);
	int64_t zero[TC_MAX_RANK] = { 0 };

	for (unsigned i = 0; i < op->n_operands; i++) {
		struct tc_value *v = tc_in(op, i);
		struct spmd_sharding *h;

		if (v->type == true_type(v))
			continue;
		h = spmd_copy(e->s->p->s, e->s->p->of[v->id]);
		for (unsigned d = 0; d < v->type->rank; d++)
			if (v->type->dim[d] != true_size(v, d))
				h->dim[d].axes.n = 0;
		tc_set_operand(op, i, lie(e, tc_build_slice(&b, v, zero, true_type(v)), h, NULL));
	}
}

/* Operands are as they are to be. */
static void change_op(struct even *e, struct tc_op *op)
{
	const struct spmd_rule *r = op->id < e->s->n_values ? e->s->rule[op->id] : NULL;
	uint32_t moved = 0;

	if (!r)
		return;
	for (unsigned d = 0; op->n_results == 1 && d < tc_out(op, 0)->type->rank; d++) {
		int64_t in = moves_along(e->s, op, d);

		if (in >= 0 && factor_of(r, op->n_operands, d) >= 0 &&
		    !may_grow(e->s, op, factor_of(r, op->n_operands, d),
			      size_of(e->s, tc_out(op, 0), d)) &&
		    (is_longer(tc_out(op, 0), d) || takes_longer(op, 0, (unsigned)in)))
			moved |= 1u << d;
	}
	for (uint32_t f = 0; f < r->n_factors; f++)
		for (uint32_t t = 0; t < r->n_operands; t++) {
			int64_t d = dim_of(r, t, f);
			int64_t size;

			if (d < 0 || !takes_longer(op, t, (unsigned)d))
				continue;
			size = tc_in(op, t)->type->dim[d];
			if (op->op == TC_CONCATENATE && tc_attr_int(op, "dimension", 0) == d) {
				join(e, op, t, (unsigned)d);
				continue;
			}
			if (is_summed(e->s, op, t, (unsigned)d))
				mask_sum(e, op, f, size);
			else if (may_grow(e->s, op, f, size))
				grow_factor(e, op, f, size);
			else
				continue;
			break;
		}
	if (op->op == TC_CONCATENATE && takes_more(e, op))
		join_more(e, op, (unsigned)tc_attr_int(op, "dimension", 0));
	if (moved && op->op == TC_SLICE)
		pad_for_slice(e, op, moved);
	for (unsigned d = 0; op->op != TC_SLICE && moved >> d; d++)
		if (moved >> d & 1)
			move_along(e, op, d);
}

static void change_block(struct even *e, struct tc_block *b)
{
	for (struct tc_op *op = b->first; op; op = op->next) {
		change_op(e, op);
		for (unsigned k = 0; k < op->n_regions; k++)
			if (op->regions[k].block)
				change_block(e, op->regions[k].block);
	}
}

/* GSPMD's way into a body that each device does by itself. */
static void note_way(struct tc_op *op, void *arg)
{
	const char *target = op->op == TC_CUSTOM_CALL ? tc_attr_str(op, "call_target_name") : NULL;

	if (target && !strcmp(target, "SPMDFullToShardShape"))
		*(bool *)arg = true;
}

static void note_longer(struct tc_op *op, void *arg)
{
	for (unsigned i = 0; i < op->n_results; i++)
		if (tc_out(op, i)->side && ((struct length *)tc_out(op, i)->side)->dims)
			*(bool *)arg = true;
}

bool shard_even(struct shard *s)
{
	struct even e = { .s = s };
	bool has_way = false, any = false;

	tc_walk(s->c->module, note_way, &has_way);
	if (has_way || s->is_whole)
		return false;
	for (unsigned i = 0; i < tc_main(s->c)->n_args; i++)
		tc_main(s->c)->args[i]->side = NULL;
	tc_walk(s->c->module, note_values, s);
	do {
		e.changed = false;
		check_block(&e, tc_main(s->c), false);
		check_block(&e, tc_main(s->c), true);
	} while (e.changed);
	tc_walk(s->c->module, note_longer, &any);
	if (any) {
		change_block(&e, tc_main(s->c));
		cut_results(&e, tc_main(s->c)->last);
	}
	make_room(s);
	s->n_values = s->c->next_id;
	/* What a join was to take as it lies it may now take longer. */
	if (any)
		memset(s->is_late, 0, s->n_values * sizeof(*s->is_late));
	return any;
}
