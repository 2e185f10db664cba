/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays of more dims than an instruction runs along. Elementwise work does not look at them, a
 * reduction only at which dims it reduces, a sort at the one that it sorts along, a window at those
 * that it is wide in: neighbours become one dim, by reshapes that are views of what lies densely.
 * A window wide along too many is laid out first.
 * Products do without dims of one element, and of them neighbours of one kind become one; where too
 * many lie apart, a side is turned first. An iota is made along its own dim and repeated. Of
 * gathers and scatters dims are one that are walked as one on all sides, and so are indices of dims
 * that lie side by side where they are more than an instruction takes.
 */
#include <string.h>

#include "hal/hw/isa.h"
#include "runtime/compiler/lower/decompose.h"
#include "runtime/compiler/opt/fuse.h"

static struct tc_value *flattened(const struct tc_build *b, struct tc_value *x)
{
	return x->type->rank ? tc_build_reshape(b, x, 1, &x->type->count) : x;
}

/* A copy of op, which stands before it, of these operands. */
static struct tc_op *copy_of(const struct tc_build *b, const struct tc_op *op,
			     struct tc_value *const *in)
{
	struct tc_map *map = tc_map_new(b->c);
	struct tc_op *copy = tc_clone(b->c, op, map);

	for (unsigned i = 0; i < op->n_operands; i++)
		tc_set_operand(copy, i, in[i]);
	return tc_build_place(b, copy);
}

static void take_over(const struct tc_build *b, struct tc_op *op, struct tc_op *by)
{
	for (unsigned i = 0; i < op->n_results; i++) {
		const struct tc_type *t = op->results[i].type;

		tc_replace_uses(tc_out(op, i), tc_build_reshape(b, tc_out(by, i), t->rank, t->dim));
	}
	tc_erase(op);
}

static void join_elementwise(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	const struct tc_type *t = op->results[0].type;
	struct tc_value **in = arena_array(&c->arena, op->n_operands + 1u, sizeof(*in));
	struct tc_op *copy;

	if (!in)
		tc_fail(c, ERR_RESOURCE_EXHAUSTED, op, "out of memory");
	for (unsigned i = 0; i < op->n_operands; i++)
		in[i] = flattened(&b, tc_in(op, i));
	copy = copy_of(&b, op, in);
	copy->results[0].type = tc_tensor(c, (enum elem)t->elem, 1, &t->count);
	take_over(&b, op, copy);
}

/* Neighbouring dims that are all reduced or all kept, as one. Returns how many there are; the
 * reduced ones of these have their bits set. */
static unsigned joined(const struct tc_type *t, uint64_t mask, int64_t *dim, uint64_t *reduced)
{
	unsigned n = 0;

	*reduced = 0;
	for (unsigned d = 0; d < t->rank; d++) {
		uint64_t is_reduced = mask >> d & 1;

		if (n && (*reduced >> (n - 1) & 1) == is_reduced) {
			dim[n - 1] *= t->dim[d];
			continue;
		}
		*reduced |= is_reduced << n;
		dim[n++] = t->dim[d];
	}
	return n;
}

static void join_reduce(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	const struct tc_type *t = tc_in(op, 0)->type;
	int64_t dim[TC_MAX_RANK], turn[TC_MAX_RANK], dims[TC_MAX_RANK], kept[TC_MAX_RANK];
	struct tc_value **in = arena_array(&c->arena, op->n_operands, sizeof(*in));
	unsigned n, k = 0, n_dims = 0, n_kept = 0;
	const int64_t *list = tc_attr_ints(op, "dimensions", &n);
	uint64_t mask = 0, reduced;
	struct tc_op *copy;

	if (!in)
		tc_fail(c, ERR_RESOURCE_EXHAUSTED, op, "out of memory");
	for (unsigned i = 0; i < n; i++)
		mask |= 1ull << list[i];
	for (unsigned i = 0; i < op->n_operands; i++)
		in[i] = tc_in(op, i);
	if (joined(t, mask, dim, &reduced) > ISA_MAX_RANK) {
		/* They are brought together. */
		for (unsigned side = 0; side < 2; side++)
			for (unsigned d = 0; d < t->rank; d++)
				if ((mask >> d & 1) == side)
					turn[k++] = d;
		for (unsigned i = 0; i < op->n_results; i++)
			in[i] = tc_build_transpose(&b, in[i], turn);
		t = in[0]->type;
		mask = ((1ull << n) - 1) << (t->rank - n);
	}
	k = joined(t, mask, dim, &reduced);
	for (unsigned d = 0; d < k; d++)
		if (reduced >> d & 1)
			dims[n_dims++] = d;
		else
			kept[n_kept++] = dim[d];
	for (unsigned i = 0; i < op->n_results; i++)
		in[i] = tc_build_reshape(&b, in[i], k, dim);
	copy = copy_of(&b, op, in);
	tc_set_ints(c, copy, "dimensions", dims, n_dims);
	for (unsigned i = 0; i < op->n_results; i++)
		copy->results[i].type = tc_tensor(c, (enum elem)op->results[i].type->elem, n_kept,
						  kept);
	take_over(&b, op, copy);
}

/* A copy of op on its first n operands reshaped to `dim`, whose results are of the dims `out`. */
static struct tc_op *reshaped(const struct tc_build *b, struct tc_op *op, unsigned n, unsigned rank,
			      const int64_t *dim, const int64_t *out)
{
	struct tc_value **in = arena_array(&b->c->arena, op->n_operands, sizeof(*in));
	struct tc_op *copy;

	if (!in)
		tc_fail(b->c, ERR_RESOURCE_EXHAUSTED, op, "out of memory");
	for (unsigned i = 0; i < op->n_operands; i++)
		in[i] = i < n ? tc_build_reshape(b, tc_in(op, i), rank, dim) : tc_in(op, i);
	copy = copy_of(b, op, in);
	for (unsigned i = 0; i < op->n_results; i++)
		copy->results[i].type = tc_tensor(b->c, (enum elem)op->results[i].type->elem, rank,
						  out);
	return copy;
}

static void join_sort(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	const struct tc_type *t = tc_in(op, 0)->type;
	int64_t d = tc_attr_int(op, "dimension", 0), dim[3] = { 1, 1, 1 };
	struct tc_op *copy;

	d += d < 0 ? t->rank : 0;
	for (unsigned i = 0; i < t->rank; i++)
		dim[i < d ? 0 : i == d ? 1 : 2] *= t->dim[i];
	copy = reshaped(&b, op, op->n_operands, 3, dim, dim);
	tc_set_int(c, copy, "dimension", TC_ATTR_INT, 1);
	take_over(&b, op, copy);
}

/* Windows are one element wide along d, and all elements have one. */
static bool is_idle(const struct tc_op *op, unsigned d)
{
	return tc_attr_nth(op, "window_dimensions", d) == 1 &&
	       tc_attr_nth(op, "window_strides", d) == 1 &&
	       tc_attr_nth(op, "base_dilations", d) == 1 &&
	       !tc_attr_nth(op, "padding", 2 * d) && !tc_attr_nth(op, "padding", 2 * d + 1);
}

static void join_window(struct tc_ctx *c, struct tc_op *op)
{
	static const char *const names[] = { "window_dimensions", "window_strides",
					     "base_dilations", "window_dilations" };
	const struct tc_type *t = tc_in(op, 0)->type, *out = op->results[0].type;
	int64_t list[4][TC_MAX_RANK], pad[2 * TC_MAX_RANK], dim[TC_MAX_RANK], to[TC_MAX_RANK];
	struct tc_build b = tc_build_at(c, op);
	bool was_idle = false;
	struct tc_op *copy;
	unsigned n = 0;

	for (unsigned d = 0; d < t->rank; d++) {
		if (is_idle(op, d) && was_idle) {
			dim[n - 1] *= t->dim[d];
			to[n - 1] *= t->dim[d];
			continue;
		}
		was_idle = is_idle(op, d);
		for (unsigned i = 0; i < 4; i++)
			list[i][n] = tc_attr_nth(op, names[i], d);
		pad[2 * n] = tc_attr_nth(op, "padding", 2 * d);
		pad[2 * n + 1] = tc_attr_nth(op, "padding", 2 * d + 1);
		dim[n] = t->dim[d];
		to[n++] = out->dim[d];
	}
	if (n > ISA_MAX_RANK)
		return;
	copy = reshaped(&b, op, op->n_results, n, dim, to);
	for (unsigned i = 0; i < 4; i++)
		tc_set_ints(c, copy, names[i], list[i], n);
	tc_set_ints(c, copy, "padding", pad, 2 * n);
	take_over(&b, op, copy);
}

/* What an instruction runs along for a window of op: results, and the window. */
static unsigned walked_by_window(const struct tc_op *op)
{
	const struct tc_type *out = op->results[0].type;
	unsigned n = 0;

	for (unsigned d = 0; d < out->rank; d++)
		n += (out->dim[d] != 1 || out->rank <= 4) +
		     (tc_attr_nth(op, "window_dimensions", d) != 1);
	return n;
}

/* The same of op when the dims before `first` are one that is walked, and one of the window. */
static unsigned walked_behind(const struct tc_op *op, unsigned first)
{
	const struct tc_type *out = op->results[0].type;
	unsigned n = 2;

	for (unsigned d = first; d < out->rank; d++) {
		bool is_wide = tc_attr_nth(op, "window_dimensions", d) != 1;

		n += 2u * is_wide + (!is_wide && (d == first || !is_idle(op, d) ||
						  !is_idle(op, d - 1)));
	}
	return n;
}

/* x, padded with `by`, with the elements of each window along dim d put together along its first
 * dim, each run of those that were there as often as d's windows have elements. */
static struct tc_value *unfold(const struct tc_build *b, const struct tc_op *op, unsigned d,
			       struct tc_value *x, struct tc_value *by)
{
	int64_t low[TC_MAX_RANK] = { 0 }, high[TC_MAX_RANK] = { 0 }, holes[TC_MAX_RANK] = { 0 };
	int64_t start[TC_MAX_RANK] = { 0 }, step[TC_MAX_RANK], dim[TC_MAX_RANK];
	int64_t size = tc_attr_nth(op, "window_dimensions", d);
	struct tc_value **part = arena_array(&b->c->arena, (size_t)size, sizeof(*part));
	const struct tc_type *t;

	if (!part)
		tc_fail(b->c, ERR_RESOURCE_EXHAUSTED, op, "out of memory");
	low[d + 1] = tc_attr_nth(op, "padding", 2 * d);
	high[d + 1] = tc_attr_nth(op, "padding", 2 * d + 1);
	holes[d + 1] = tc_attr_nth(op, "base_dilations", d) - 1;
	if (low[d + 1] || high[d + 1] || holes[d + 1])
		x = tc_build_pad(b, x, by, low, high, holes);
	t = tc_with_dim(b->c, x->type, d + 1, op->results[0].type->dim[d]);
	for (unsigned k = 0; k < t->rank; k++)
		step[k] = 1;
	step[d + 1] = tc_attr_nth(op, "window_strides", d);
	for (int64_t k = 0; k < size; k++) {
		start[d + 1] = k * tc_attr_nth(op, "window_dilations", d);
		part[k] = tc_build_steps(b, x, start, step, t);
	}
	memcpy(dim, t->dim, t->rank * sizeof(*dim));
	dim[0] *= size;
	/* The dims are taken last one first, so what d's windows have comes before the rest. */
	return tc_build_reshape(b, tc_build_join(b, (unsigned)size, part, 0), t->rank, dim);
}

/*
 * A window that an instruction can't run along: what it has along its first dims lies behind each
 * other in an array of as many times the size, as one dim that the window has all of. The order in
 * which it takes its elements stays. The padding is to change nothing (lower/window.c).
 */
static bool unfold_window(struct tc_ctx *c, struct tc_op *op)
{
	static const char *const names[] = { "window_dimensions", "window_strides",
					     "base_dilations", "window_dilations" };
	const struct tc_type *out = op->results[0].type;
	struct tc_value **in = arena_array(&c->arena, op->n_operands, sizeof(*in));
	unsigned first = 1, rank = out->rank, last, n;
	struct tc_build b = tc_build_at(c, op);
	int64_t list[2 * TC_MAX_RANK], dim[TC_MAX_RANK], joined = 1;
	struct tc_op *copy;

	if (walked_by_window(op) <= ISA_MAX_RANK || !out->count || !tc_in(op, 0)->type->count ||
	    rank == TC_MAX_RANK)
		return false;
	if (!in)
		tc_fail(c, ERR_RESOURCE_EXHAUSTED, op, "out of memory");
	while (first < rank && walked_behind(op, first) > ISA_MAX_RANK)
		first++;
	for (unsigned i = 0; i < op->n_results; i++) {
		struct tc_value *x = tc_in(op, i);

		in[op->n_results + i] = tc_in(op, op->n_results + i);
		memmove(dim + 1, x->type->dim, rank * sizeof(*dim));
		dim[0] = 1;
		x = tc_build_reshape(&b, x, rank + 1, dim);
		for (last = first; last-- > 0;)
			x = unfold(&b, op, last, x, in[op->n_results + i]);
		joined = 1;
		for (unsigned d = 0; d < first; d++)
			joined *= x->type->dim[d + 1];
		dim[0] = x->type->dim[0];
		dim[1] = joined;
		memcpy(dim + 2, x->type->dim + first + 1, (rank - first) * sizeof(*dim));
		in[i] = tc_build_reshape(&b, x, rank - first + 2, dim);
	}
	copy = copy_of(&b, op, in);
	n = rank - first;
	for (unsigned i = 0; i < 4; i++) {
		for (unsigned d = 0; d < n; d++)
			list[d + 2] = tc_attr_nth(op, names[i], first + d);
		list[0] = i ? 1 : dim[0];
		list[1] = 1;
		tc_set_ints(c, copy, names[i], list, n + 2);
	}
	memset(list, 0, 4 * sizeof(*list));
	for (unsigned d = 0; d < 2 * n; d++)
		list[d + 4] = tc_attr_nth(op, "padding", 2 * first + d);
	tc_set_ints(c, copy, "padding", list, 2 * n + 4);
	dim[0] = 1;
	dim[1] = joined;
	memcpy(dim + 2, out->dim + first, n * sizeof(*dim));
	for (unsigned i = 0; i < op->n_results; i++)
		copy->results[i].type = tc_tensor(c, (enum elem)op->results[i].type->elem, n + 2,
						  dim);
	take_over(&b, op, copy);
	join_window(c, copy);
	return true;
}

/* t's dims, those that go on as one with those before them; to[d]: which of them dim d is in. */
static unsigned shorter(const struct tc_type *t, const bool *goes_on, int64_t *dim, int64_t *to)
{
	unsigned n = 0;

	for (unsigned d = 0; d < t->rank; d++) {
		if (goes_on[d])
			dim[n - 1] *= t->dim[d];
		else
			dim[n++] = t->dim[d];
		to[d] = n - 1;
	}
	return n;
}

/* The dims of more than one element; place[d]: how many come before dim d. */
static unsigned without_ones(const struct tc_type *t, int64_t *dim, unsigned *place)
{
	unsigned n = 0;

	for (unsigned d = 0; d < t->rank; d++) {
		place[d] = n;
		if (t->dim[d] != 1)
			dim[n++] = t->dim[d];
	}
	return n;
}

static const char *const product_dims[2][2] = {
	{ "lhs_batching_dimensions", "lhs_contracting_dimensions" },
	{ "rhs_batching_dimensions", "rhs_contracting_dimensions" } };

/* op without dims of one element, in its place. */
static struct tc_op *narrow_product(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	const struct tc_type *out = op->results[0].type;
	int64_t dim[TC_MAX_RANK], list[TC_MAX_RANK];
	unsigned place[TC_MAX_RANK], n, n_list;
	struct tc_value *in[2];
	struct tc_op *copy;

	for (unsigned i = 0; i < 2; i++) {
		n = without_ones(tc_in(op, i)->type, dim, place);
		in[i] = tc_build_reshape(&b, tc_in(op, i), n, dim);
	}
	copy = copy_of(&b, op, in);
	for (unsigned i = 0; i < 4; i++) {
		const struct tc_type *t = tc_in(op, i / 2)->type;
		const int64_t *old = tc_attr_ints(op, product_dims[i / 2][i % 2], &n_list);

		without_ones(t, dim, place);
		n = 0;
		for (unsigned k = 0; k < n_list; k++)
			if (t->dim[old[k]] != 1)
				list[n++] = place[old[k]];
		tc_set_ints(c, copy, product_dims[i / 2][i % 2], list, n);
	}
	n = without_ones(out, dim, place);
	copy->results[0].type = tc_tensor(c, (enum elem)out->elem, n, dim);
	take_over(&b, op, copy);
	return copy;
}

enum { BATCH, SUMS, OWN, N_KINDS };

/* A product: the dims of each side by kind, in the order in which they are walked. */
struct product {
	struct tc_value *in[2];
	unsigned n[2][N_KINDS];
	int64_t dims[2][N_KINDS][TC_MAX_RANK];
};

static void look_at_product(const struct tc_op *op, struct product *p)
{
	for (unsigned side = 0; side < 2; side++) {
		unsigned *n = p->n[side];

		p->in[side] = tc_in(op, side);
		for (unsigned kind = BATCH; kind <= SUMS; kind++) {
			const int64_t *list = tc_attr_ints(op, product_dims[side][kind], &n[kind]);

			for (unsigned i = 0; i < n[kind]; i++)
				p->dims[side][kind][i] = list[i];
		}
		n[OWN] = 0;
		for (unsigned d = 0; d < p->in[side]->type->rank; d++)
			if (!tc_is_listed(p->dims[side][BATCH], n[BATCH], d) &&
			    !tc_is_listed(p->dims[side][SUMS], n[SUMS], d))
				p->dims[side][OWN][n[OWN]++] = d;
	}
}

/* Whether dim i of its kind lies behind the one before it: of batches and sums, on both sides. */
static bool is_behind(const struct product *p, unsigned side, unsigned kind, unsigned i)
{
	const int64_t *own = p->dims[side][kind], *other = p->dims[!side][kind];

	return i && own[i] == own[i - 1] + 1 && (kind == OWN || other[i] == other[i - 1] + 1);
}

/* Dims that MM runs along: one each for rows and columns, also where there are none. */
static unsigned walked(const struct product *p)
{
	unsigned n = !p->n[0][OWN] + !p->n[1][OWN];

	for (unsigned i = 0; i < p->n[0][BATCH]; i++)
		n += !is_behind(p, 0, BATCH, i);
	for (unsigned side = 0; side < 2; side++)
		for (unsigned i = 0; i < p->n[side][OWN]; i++)
			n += !is_behind(p, side, OWN, i);
	return n;
}

/* The side with dims of a kind behind each other. */
static void turn_side(const struct tc_build *b, struct product *p, unsigned side)
{
	static const unsigned order[N_KINDS] = { BATCH, OWN, SUMS };
	int64_t turn[TC_MAX_RANK];
	unsigned at = 0;

	for (unsigned k = 0; k < N_KINDS; k++)
		for (unsigned i = 0; i < p->n[side][order[k]]; i++) {
			turn[at] = p->dims[side][order[k]][i];
			p->dims[side][order[k]][i] = at++;
		}
	p->in[side] = tc_build_transpose(b, p->in[side], turn);
}

/* The side with neighbours as one; `by` has its dims then. */
static void join_side(const struct tc_build *b, const struct product *p, unsigned side,
		      struct product *by)
{
	int64_t dim[TC_MAX_RANK], to[TC_MAX_RANK];
	bool goes_on[TC_MAX_RANK] = { false };
	unsigned n;

	for (unsigned kind = 0; kind < N_KINDS; kind++)
		for (unsigned i = 0; i < p->n[side][kind]; i++)
			goes_on[p->dims[side][kind][i]] = is_behind(p, side, kind, i);
	n = shorter(p->in[side]->type, goes_on, dim, to);
	by->in[side] = tc_build_reshape(b, p->in[side], n, dim);
	for (unsigned kind = 0; kind < N_KINDS; kind++) {
		n = 0;
		for (unsigned i = 0; i < p->n[side][kind]; i++)
			if (!goes_on[p->dims[side][kind][i]])
				by->dims[side][kind][n++] = to[p->dims[side][kind][i]];
		by->n[side][kind] = n;
	}
}

/* Appends the sizes of the side's dims of a kind. */
static unsigned add_sizes(const struct product *p, unsigned side, unsigned kind, unsigned n,
			  int64_t *dim)
{
	for (unsigned i = 0; i < p->n[side][kind]; i++)
		dim[n++] = p->in[side]->type->dim[p->dims[side][kind][i]];
	return n;
}

/* Neighbours as one, after the smaller side, or both, were turned if there are too many else. That
 * costs copies where a side or the result is turned; so where there are not too many it is left to
 * emission, which has the program compiled again if they lie so that they run along too many. */
static void join_product(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	struct product p, by;
	int64_t dim[TC_MAX_RANK];
	struct tc_op *copy;
	unsigned smaller, n;

	if (tc_takes_epilogue(op))
		return;
	look_at_product(op, &p);
	if (walked(&p) <= ISA_MAX_RANK && c->ahead && !c->ahead->is_joined)
		return;
	smaller = p.in[1]->type->count < p.in[0]->type->count;
	if (walked(&p) > ISA_MAX_RANK)
		turn_side(&b, &p, smaller);
	if (walked(&p) > ISA_MAX_RANK)
		turn_side(&b, &p, !smaller);
	join_side(&b, &p, 0, &by);
	join_side(&b, &p, 1, &by);
	copy = copy_of(&b, op, by.in);
	for (unsigned i = 0; i < 4; i++)
		tc_set_ints(c, copy, product_dims[i / 2][i % 2], by.dims[i / 2][i % 2],
			    by.n[i / 2][i % 2]);
	n = add_sizes(&by, 0, BATCH, 0, dim);
	n = add_sizes(&by, 0, OWN, n, dim);
	n = add_sizes(&by, 1, OWN, n, dim);
	copy->results[0].type = tc_tensor(c, (enum elem)op->results[0].type->elem, n, dim);
	take_over(&b, op, copy);
}

static bool has_many_dims(const struct tc_op *op)
{
	return tc_in(op, 0)->type->rank > ISA_MAX_RANK ||
	       op->results[0].type->rank > ISA_MAX_RANK ||
	       (op->op == TC_DOT_GENERAL && (tc_in(op, 1)->type->rank > ISA_MAX_RANK ||
					     !tc_takes_epilogue(op)));
}

/* Whether it is one of those above, and done. */
static bool join_others(struct tc_ctx *c, struct tc_op *op)
{
	bool is = op->op == TC_SORT || op->op == TC_REDUCE_WINDOW || op->op == TC_DOT_GENERAL;

	if (op->op == TC_REDUCE_WINDOW && unfold_window(c, op))
		return true;
	if (!is || !has_many_dims(op))
		return false;
	if (op->op == TC_SORT)
		join_sort(c, op);
	else if (op->op == TC_REDUCE_WINDOW)
		join_window(c, op);
	else
		join_product(c, narrow_product(c, op));
	return true;
}

static void spread_iota(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	const struct tc_type *t = op->results[0].type;
	int64_t d = tc_attr_int(op, "iota_dimension", 0);
	struct tc_value *line = tc_build_iota(&b, tc_tensor(c, (enum elem)t->elem, 1, &t->dim[d]),
					      0);

	tc_replace(op, tc_build_broadcast(&b, line, t, &d));
}

/* A gather, or a scatter whose tables are its first operands, one for each result. */
struct lookup {
	struct tc_op *op;
	const char *window, *collapsed, *table_batch, *index_batch, *map;
	unsigned at;			/* of the indices among the operands */
	const struct tc_type *table, *indices, *moved;	/* moved: the result, or the updates */
	/* Which dims go on where the one before them ends. */
	bool table_goes_on[TC_MAX_RANK], index_goes_on[TC_MAX_RANK], moved_goes_on[TC_MAX_RANK];
	bool is_still[TC_MAX_RANK];	/* dims of the table whose index can only be 0 */
};

static struct lookup lookup_of(struct tc_op *op)
{
	struct lookup l = { .op = op, .at = op->op == TC_GATHER ? 1 : op->n_results };

	l.table = tc_in(op, 0)->type;
	l.indices = tc_in(op, l.at)->type;
	if (op->op == TC_GATHER) {
		l.moved = op->results[0].type;
		l.window = "offset_dims";
		l.collapsed = "collapsed_slice_dims";
		l.table_batch = "operand_batching_dims";
		l.index_batch = "start_indices_batching_dims";
		l.map = "start_index_map";
	} else {
		l.moved = tc_in(op, l.at + 1)->type;
		l.window = "update_window_dims";
		l.collapsed = "inserted_window_dims";
		l.table_batch = "input_batching_dims";
		l.index_batch = "scatter_indices_batching_dims";
		l.map = "scatter_dims_to_operand_dims";
	}
	return l;
}

static bool has(const struct lookup *l, const char *name, int64_t dim)
{
	unsigned n;
	const int64_t *list = tc_attr_ints(l->op, name, &n);

	return tc_is_listed(list, n, dim);
}

/* The table's dim that is the batch dim k of the indices, -1: none is. */
static int64_t batch_of(const struct lookup *l, unsigned k)
{
	unsigned n;
	const int64_t *ib = tc_attr_ints(l->op, l->index_batch, &n);
	const int64_t *tb = tc_attr_ints(l->op, l->table_batch, &n);

	for (unsigned i = 0; i < n; i++)
		if (ib[i] == k)
			return tb[i];
	return -1;
}

/* Finds dims that a gather takes whole, so that their index is held at 0. One index is left. */
static unsigned leave_still(struct lookup *l)
{
	unsigned n, n_still = 0;
	const int64_t *map = tc_attr_ints(l->op, l->map, &n);

	if (l->op->op != TC_GATHER)
		return 0;
	for (unsigned i = 0; i < n && n_still + 1 < n; i++)
		if (tc_attr_nth(l->op, "slice_sizes", (unsigned)map[i]) == l->table->dim[map[i]]) {
			l->is_still[map[i]] = true;
			n_still++;
		}
	return n_still;
}

/*
 * Finds neighbours of what is moved that are one on all sides: dims of the window that are as wide
 * as the table's and that no index moves, and batch dims that lie so in the indices too, and in
 * the table if they are its.
 */
static void join_moved(struct lookup *l)
{
	unsigned d = 0, k = 0;
	int64_t vector = tc_attr_int(l->op, "index_vector_dim", 0);
	int64_t last_window = -1, last_index = -1;	/* of the dim before, if it can be joined */

	for (unsigned r = 0; r < l->moved->rank; r++) {
		if (has(l, l->window, r)) {
			while (has(l, l->collapsed, d) || has(l, l->table_batch, d))
				d++;
			last_index = -1;
			if (l->moved->dim[r] != l->table->dim[d] ||
			    (has(l, l->map, d) && !l->is_still[d])) {
				last_window = -1;
			} else {
				l->moved_goes_on[r] = last_window >= 0 && last_window + 1 == d;
				l->table_goes_on[d] = l->moved_goes_on[r];
				last_window = d;
			}
			d++;
			continue;
		}
		last_window = -1;
		k += k == vector;
		if (last_index >= 0 && last_index + 1 == k) {
			int64_t was = batch_of(l, k - 1), is = batch_of(l, k);

			l->moved_goes_on[r] = was < 0 ? is < 0 : was + 1 == is;
			l->index_goes_on[k] = l->moved_goes_on[r];
			if (is >= 0)
				l->table_goes_on[is] = l->moved_goes_on[r];
		}
		last_index = k++;
	}
}

static bool is_joinable(const struct lookup *l, unsigned d)
{
	return has(l, l->map, d) && has(l, l->collapsed, d) && !l->is_still[d];
}

/* Finds dims of one element each in the window that lie side by side and whose indices are left. */
static void join_indexed(struct lookup *l)
{
	for (unsigned d = 1; d < l->table->rank; d++)
		l->table_goes_on[d] |= is_joinable(l, d - 1) && is_joinable(l, d);
}

/* v, which is at most `most` if it might be above what 64 bits with a sign hold: as one with a sign
 * it would be below 0. */
static struct tc_value *hold_below(const struct tc_build *b, struct tc_value *v, int64_t most)
{
	return v->type->elem != ELEM_U64 ? v :
	       tc_build2(b, TC_MINIMUM, v, tc_build_number(b, v->type, (double)most));
}

/*
 * The indices with one component for each joined run of dims: the place in the run. A gather's are
 * held within their dims each; where one of a scatter's is outside, the place is -1, which is too.
 */
static struct tc_value *one_for_each(const struct tc_build *b, const struct lookup *l)
{
	int64_t vector = tc_attr_int(l->op, "index_vector_dim", 0);
	struct tc_value *parts[TC_MAX_RANK], *all = tc_in(l->op, l->at);
	bool is_gather = l->op->op == TC_GATHER;
	unsigned n, n_parts = 0;
	const int64_t *map = tc_attr_ints(l->op, l->map, &n);

	for (unsigned i = 0; i < n; i++) {
		struct tc_value *place = NULL, *valid = NULL;

		if (l->table_goes_on[map[i]] || l->is_still[map[i]])
			continue;
		for (int64_t d = map[i]; d == map[i] || (d < l->table->rank &&
							 l->table_goes_on[d]); d++) {
			unsigned k = 0;
			struct tc_value *v, *zero, *most, *is;

			while (map[k] != d)
				k++;
			v = tc_build_part(b, all, (unsigned)vector, k, 1);
			v = is_gather ? hold_below(b, v, l->table->dim[d] - 1) : v;
			v = tc_build_convert(b, v, ELEM_S64);
			zero = tc_build_number(b, v->type, 0);
			most = tc_build_number(b, v->type, (double)(l->table->dim[d] - 1));
			if (is_gather) {
				v = tc_build2(b, TC_MAXIMUM, tc_build2(b, TC_MINIMUM, v, most),
					      zero);
			} else {
				is = tc_build2(b, TC_AND, tc_build_compare(b, TC_CMP_GE, v, zero),
					       tc_build_compare(b, TC_CMP_LE, v, most));
				valid = valid ? tc_build2(b, TC_AND, valid, is) : is;
			}
			if (place)
				v = tc_build2(b, TC_ADD, v, tc_build2(b, TC_MULTIPLY, place,
					tc_build_number(b, v->type, (double)l->table->dim[d])));
			place = v;
		}
		if (valid)
			place = tc_build_select(b, valid, place,
						tc_build_number(b, place->type, -1));
		parts[n_parts++] = place;
	}
	return tc_build_join(b, n_parts, parts, (unsigned)vector);
}

/* A list of dims as those that they have become part of, each once. */
static void rename_dims(struct tc_ctx *c, const struct lookup *l, struct tc_op *op,
			const char *name, const bool *goes_on, const int64_t *to)
{
	int64_t list[TC_MAX_RANK];
	unsigned n, left = 0;
	const int64_t *old = tc_attr_ints(l->op, name, &n);

	for (unsigned i = 0; i < n; i++)
		if (!goes_on[old[i]] && (name != l->map || !l->is_still[old[i]]))
			list[left++] = to[old[i]];
	tc_set_ints(c, op, name, list, left);
}

static bool is_too_long(const struct lookup *l, unsigned *n_map)
{
	unsigned n = 0;

	tc_attr_ints(l->op, l->map, n_map);
	for (unsigned r = 0; r < l->moved->rank; r++)
		n += !has(l, l->window, r) || l->moved->dim[r] != 1;
	return n > ISA_MAX_RANK || *n_map > ISA_MAX_INDEX;
}

static void join_lookup(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	struct lookup l = lookup_of(op);
	int64_t table[TC_MAX_RANK], index[TC_MAX_RANK], moved[TC_MAX_RANK], size[TC_MAX_RANK];
	int64_t table_to[TC_MAX_RANK], index_to[TC_MAX_RANK], moved_to[TC_MAX_RANK];
	int64_t vector = tc_attr_int(op, "index_vector_dim", 0);
	struct tc_value **in = arena_array(&c->arena, op->n_operands, sizeof(*in));
	unsigned n_table, n_index, n_moved, n_map, n_still;
	struct tc_op *copy;

	if (!in)
		tc_fail(c, ERR_RESOURCE_EXHAUSTED, op, "out of memory");
	if (!is_too_long(&l, &n_map))
		return;
	n_still = leave_still(&l);
	join_moved(&l);
	if (n_map - n_still > ISA_MAX_INDEX)
		join_indexed(&l);
	in[l.at] = n_still || n_map > ISA_MAX_INDEX ? one_for_each(&b, &l) : tc_in(op, l.at);
	n_table = shorter(l.table, l.table_goes_on, table, table_to);
	n_index = shorter(in[l.at]->type, l.index_goes_on, index, index_to);
	n_moved = shorter(l.moved, l.moved_goes_on, moved, moved_to);
	in[l.at] = tc_build_reshape(&b, in[l.at], n_index, index);
	for (unsigned i = 0; i < op->n_operands; i++)
		if (i < l.at)
			in[i] = tc_build_reshape(&b, tc_in(op, i), n_table, table);
		else if (i > l.at)
			in[i] = tc_build_reshape(&b, tc_in(op, i), n_moved, moved);
	copy = copy_of(&b, op, in);
	rename_dims(c, &l, copy, l.window, l.moved_goes_on, moved_to);
	rename_dims(c, &l, copy, l.collapsed, l.table_goes_on, table_to);
	rename_dims(c, &l, copy, l.map, l.table_goes_on, table_to);
	/* Batch dims of the table go on where those of the indices do. */
	rename_dims(c, &l, copy, l.table_batch, l.table_goes_on, table_to);
	rename_dims(c, &l, copy, l.index_batch, l.index_goes_on, index_to);
	tc_set_int(c, copy, "index_vector_dim", TC_ATTR_INT,
		   vector < l.indices->rank ? index_to[vector] : n_index);
	if (op->op == TC_GATHER) {
		for (unsigned d = 0; d < l.table->rank; d++) {
			int64_t one = tc_attr_nth(op, "slice_sizes", d);

			size[table_to[d]] = l.table_goes_on[d] ? size[table_to[d]] * one : one;
		}
		tc_set_ints(c, copy, "slice_sizes", size, n_table);
	}
	for (unsigned i = 0; i < op->n_results; i++)
		copy->results[i].type = op->op == TC_SCATTER ? in[i]->type :
			tc_tensor(c, (enum elem)op->results[i].type->elem, n_moved, moved);
	take_over(&b, op, copy);
}

void tc_join_dims(struct tc_ctx *c, struct tc_block *block)
{
	for (struct tc_op *op = block->first, *next; op; op = next) {
		next = op->next;
		for (unsigned r = 0; r < op->n_regions; r++)
			if (op->regions[r].block)
				tc_join_dims(c, op->regions[r].block);
		if (op->op == TC_REDUCE && tc_in(op, 0)->type->rank > ISA_MAX_RANK)
			join_reduce(c, op);
		else if (op->op == TC_GATHER || op->op == TC_SCATTER)
			join_lookup(c, op);
		else if (join_others(c, op))
			continue;
		else if (op->n_results != 1 || op->results[0].type->rank <= ISA_MAX_RANK)
			continue;
		else if (op->op == TC_IOTA)
			spread_iota(c, op);
		else if (tc_has_trait(op, 'e'))
			join_elementwise(c, op);
	}
}
