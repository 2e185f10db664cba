/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ops that move along a dim or look at windows of it, on parts of the dim: a member takes from
 * its neighbours the rows that its part of the result needs (collective_permute), and runs the
 * op on these. What is outside of the whole tensor is what the op has there: zeros, or its
 * padding value.
 *
 * A part of the result begins `step` rows of the operand after the one before it, and takes as
 * many rows as the others; so all members run the same op, on rows from different places.
 */
#include <inttypes.h>

#include "runtime/compiler/opt/expand.h"
#include "runtime/compiler/spmd/shard_internal.h"

/* Permutations instead of one all_gather: where each member takes from as far as all others,
 * and where that depends on its place. */
#define MOST_HOPS 4
#define MOST_DRIFTING 2
#define MOST_ROWS ((int64_t)1 << 30)	/* counted in s32 */

/* Element r of the result's dim looks at r * stride - low and on, `reach` wide, of the operand
 * with base - 1 holes between elements. */
struct window {
	unsigned in, out;	/* dims */
	int64_t stride, base, low, reach;
	int64_t row;		/* bytes of one of the operand's, for all members together */
};

/* What a member takes: `span` rows from row start + place * step of the whole. */
struct rows {
	int64_t whole, part, parts;
	int64_t start, step, span;
	int64_t low, high;	/* of the op on these rows: its padding */
	int64_t first, last;	/* neighbours they come from, by how much farther their place is */
	int64_t from, to;	/* row of the first one, row behind that of the last one */
	bool is_outside;	/* some are not in the tensor */
	struct shard_exchange *exchange;	/* how they come; NULL: from neighbours */
};

static int64_t floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* ---- what an op looks at ---- */

/* `kernel`: all of it. */
static bool find_spatial(const struct tc_op *op, const struct tc_type *kernel, unsigned out,
			 struct window *w)
{
	unsigned n;
	const int64_t *dims = tc_attr_ints(op, "output_spatial_dimensions", &n);

	for (unsigned i = 0; i < n; i++) {
		int64_t k = tc_attr_nth(op, "kernel_spatial_dimensions", i);

		if (dims[i] != out)
			continue;
		w->in = (unsigned)tc_attr_nth(op, "input_spatial_dimensions", i);
		w->stride = tc_attr_nth(op, "window_strides", i);
		w->base = tc_attr_nth(op, "lhs_dilation", i);
		w->low = tc_attr_nth(op, "padding", 2 * i);
		w->reach = (kernel->dim[k] - 1) * tc_attr_nth(op, "rhs_dilation", i) + 1;
		return kernel->dim[k] > 0;
	}
	return false;
}

/* false: not at windows of this dim. `kernel`: a convolution's. */
static bool find_window(const struct tc_op *op, const struct tc_type *kernel, unsigned out,
			struct window *w)
{
	*w = (struct window){ out, out, 1, 1, 0, 1, 0 };
	switch (op->op) {
	case TC_SLICE:
		w->stride = tc_attr_nth(op, "strides", out);
		w->low = -tc_attr_nth(op, "start_indices", out);
		return true;
	case TC_PAD:
		w->base = tc_attr_nth(op, "interior_padding", out) + 1;
		w->low = tc_attr_nth(op, "edge_padding_low", out);
		return true;
	case TC_REDUCE_WINDOW:
		w->stride = tc_attr_nth(op, "window_strides", out);
		w->base = tc_attr_nth(op, "base_dilations", out);
		w->low = tc_attr_nth(op, "padding", 2 * out);
		w->reach = (tc_attr_nth(op, "window_dimensions", out) - 1) *
			   tc_attr_nth(op, "window_dilations", out) + 1;
		return true;
	case TC_CONVOLUTION:
		return find_spatial(op, kernel, out, w);
	default:
		return false;
	}
}

/* The same by a plan's types. */
static bool planned_window(const struct tc_op *op, const struct shard_plan *plan, unsigned out,
			   struct window *w)
{
	if (!find_window(op, op->op == TC_CONVOLUTION ? plan->type[1] : NULL, out, w))
		return false;
	w->row = shard_row_of(plan->type[0], w->in);
	return true;
}

/* The same of a row of the kernel, for all of the result: of the i-th spatial dim, which is the
 * result's dim `out` and the kernel's dim w->out. false: nothing is looked at, or the other way
 * round. */
static bool find_kernel(const struct tc_op *op, const struct shard_plan *plan, unsigned i,
			unsigned *out, struct window *w)
{
	*out = (unsigned)tc_attr_nth(op, "output_spatial_dimensions", i);
	w->in = (unsigned)tc_attr_nth(op, "input_spatial_dimensions", i);
	w->out = (unsigned)tc_attr_nth(op, "kernel_spatial_dimensions", i);
	w->stride = tc_attr_nth(op, "rhs_dilation", i);
	w->base = tc_attr_nth(op, "lhs_dilation", i);
	w->low = tc_attr_nth(op, "padding", 2 * i);
	w->reach = (plan->type[2]->dim[*out] - 1) * tc_attr_nth(op, "window_strides", i) + 1;
	w->row = shard_row_of(plan->type[0], w->in);
	return plan->type[2]->dim[*out] && !tc_attr_nth(op, "window_reversal", i);
}

static unsigned n_spatial(const struct tc_op *op)
{
	unsigned n = 0;

	if (op->op == TC_CONVOLUTION)
		tc_attr_ints(op, "output_spatial_dimensions", &n);
	return n;
}

/* ---- which rows that takes ---- */

/* From which neighbours, and which of their rows; false: from none. */
static bool find_neighbours(struct rows *r)
{
	bool any = false;

	r->is_outside = false;
	for (int64_t p = 0; p < r->parts; p++) {
		int64_t a = r->start + p * r->step, e = a + r->span;
		int64_t first, last, from, to;

		r->is_outside |= a < 0 || e > r->whole;
		a = most(a, 0);
		e = least(e, r->whole);
		if (a >= e)
			continue;
		first = a / r->part - p;
		last = (e - 1) / r->part - p;
		from = a % r->part;
		to = (e - 1) % r->part + 1;
		if (!any || first < r->first || (first == r->first && from < r->from)) {
			r->first = first;
			r->from = from;
		}
		if (!any || last > r->last || (last == r->last && to > r->to)) {
			r->last = last;
			r->to = to;
		}
		any = true;
	}
	return any;
}

static int64_t hops_of(const struct rows *r)
{
	return r->last - r->first + (r->first > 0 || r->last < 0);
}

/* Of others, the first one from `from` and the last one up to `to`. */
static int64_t moved_of(const struct rows *r)
{
	return hops_of(r) * r->part - (r->first ? r->from : 0) - (r->last ? r->part - r->to : 0);
}

static bool is_worth_it(const struct rows *r)
{
	int64_t hops = hops_of(r);

	if (hops > 1 && moved_of(r) >= (r->parts - 1) * r->part)
		return false;
	if (hops <= MOST_DRIFTING)
		return true;
	return r->step == r->part && hops <= MOST_HOPS && hops < r->parts - 1;
}

/* Where neighbours' places depend on the member's, each may give what others need and no more;
 * false: it is as well to take all. `row`: bytes. */
static bool find_way(struct shard *s, struct rows *r, int64_t row)
{
	struct shard_source all = { 0, r->whole, 0, r->part, true };
	struct shard_need need = { r->start, r->step, r->span };
	bool is_near = is_worth_it(r);
	struct shard_exchange *e;

	if (is_near && r->step == r->part)
		return true;
	e = shard_plan_exchange(s, r->parts, &all, 1, &need, 1);
	if (e && shard_is_worth(e, row, is_near ? hops_of(r) : 1,
				is_near ? moved_of(r) : (r->parts - 1) * r->part))
		r->exchange = e;
	return is_near || r->exchange;
}

/* false: parts of the result can't be made of as many rows, or it is as well to take all. */
static bool find_rows(struct shard *s, const struct window *w, int64_t in, int64_t out,
		      int64_t parts, struct rows *r)
{
	int64_t part = out / parts, total;

	*r = (struct rows){ .whole = in, .part = in / parts, .parts = parts };
	if (in < 1 || out < 1 || in % parts || out % parts || in >= MOST_ROWS ||
	    out >= MOST_ROWS || w->stride >= MOST_ROWS || w->base >= MOST_ROWS ||
	    w->reach >= MOST_ROWS || w->low >= MOST_ROWS || w->low <= -MOST_ROWS ||
	    part * w->stride % w->base)
		return false;
	total = (part - 1) * w->stride + w->reach;
	r->step = part * w->stride / w->base;
	r->start = -floor_div(w->low, w->base);
	r->low = r->start * w->base + w->low;
	if (r->low >= total)
		return false;
	r->span = (total - r->low - 1) / w->base + 1;
	r->high = total - r->low - (r->span - 1) * w->base - 1;
	return parts * r->step < MOST_ROWS && r->span < MOST_ROWS && find_neighbours(r) &&
	       find_way(s, r, w->row);
}

/* ---- dims of other sizes ---- */

int64_t shard_moves_along(const struct tc_op *op, const struct tc_type *kernel, unsigned d)
{
	struct window w;

	return find_window(op, kernel, d, &w) ? (int64_t)w.in : -1;
}

int64_t shard_behind(const struct tc_op *op, const struct tc_type *kernel, unsigned d, int64_t in,
		     int64_t out)
{
	struct window w;

	find_window(op, kernel, d, &w);
	return (out - 1) * w.stride + w.reach - w.low - ((in - 1) * w.base + 1);
}

bool shard_is_near(struct shard *s, const struct tc_op *op, const struct tc_type *kernel,
		   unsigned d, int64_t in, int64_t out, int64_t parts)
{
	struct window w;
	struct rows r;

	if (!find_window(op, kernel, d, &w))
		return false;
	/* Every so manieth row, of a part as of the whole, and of these a slice. */
	if (op->op == TC_SLICE) {
		in /= w.stride;
		w.low = -(-w.low / w.stride);
		w.stride = 1;
	}
	w.row = shard_row_of(s->of[tc_in(op, 0)->id].type, w.in);
	return find_rows(s, &w, in, out, parts, &r);
}

/* ---- a plan ---- */

static bool is_reversed(const struct tc_op *op, unsigned d)
{
	unsigned n;
	const int64_t *dims;

	if (op->op != TC_REVERSE)
		return false;
	dims = tc_attr_ints(op, "dimensions", &n);
	return tc_is_listed(dims, n, d);
}

/* Of a windowed op's operands those that it looks at; others are what is outside. */
static unsigned n_inputs(const struct tc_op *op)
{
	return op->op == TC_REDUCE_WINDOW ? op->n_operands / 2 : 1;
}

/* A kernel that is cut along a dim as the input is, for a gradient: a member's rows of it meet few
 * of its neighbours' rows, and what comes of them is a part of a sum. */
static void plan_kernel(struct shard *s, const struct tc_op *op, struct shard_plan *plan)
{
	for (unsigned i = 0; plan->rule && i < n_spatial(op); i++) {
		const struct spmd_axes *a;
		struct window w;
		struct rows r;
		unsigned out;

		if (!find_kernel(op, plan, i, &out, &w))
			continue;
		a = &s->of[tc_in(op, 1)->id].h->dim[w.out].axes;
		if (!a->n || !spmd_same_axes(a, &s->of[tc_in(op, 0)->id].h->dim[w.in].axes) ||
		    plan->tensor[0]->dim[w.in].axes.n || plan->tensor[1]->dim[w.out].axes.n ||
		    plan->tensor[2]->dim[out].axes.n || !shard_are_free(plan, a) ||
		    !find_rows(s, &w, plan->type[0]->dim[w.in], plan->type[1]->dim[w.out],
			       spmd_size(a), &r))
			continue;
		plan->tensor[0]->dim[w.in].axes = *a;
		plan->tensor[1]->dim[w.out].axes = *a;
		for (unsigned k = 0; k < a->n; k++)
			spmd_push(&plan->sum.axes, a->at[k]);
		plan->sum.op = TC_ADD;
		plan->kernels |= 1ull << i;
	}
}

/* The rows of the operand and of the source that a part of a select_and_scatter's result needs
 * along a dim: those of all windows that have a row of the part, where parts have as many. */
static bool find_selected(const struct tc_op *op, const struct shard_plan *plan, unsigned d,
			  int64_t parts, struct rows *in, struct rows *source)
{
	int64_t size = tc_attr_nth(op, "window_dimensions", d);
	int64_t stride = tc_attr_nth(op, "window_strides", d);
	int64_t low = tc_attr_nth(op, "padding", 2 * d), part, first;

	*in = (struct rows){ .whole = plan->type[0]->dim[d], .parts = parts };
	*source = (struct rows){ .whole = plan->type[1]->dim[d], .parts = parts };
	if (!in->whole || in->whole % parts || in->whole >= MOST_ROWS || size >= MOST_ROWS ||
	    size < stride || low < 0 || low >= MOST_ROWS)
		return false;
	part = in->whole / parts;
	if (part % stride || source->whole != in->whole / stride)
		return false;
	first = -floor_div(size - 1 - low, stride);
	source->part = source->step = part / stride;
	source->start = first;
	source->span = floor_div(part - 1 + low, stride) - first + 1;
	in->part = in->step = part;
	in->start = first * stride - low;
	in->span = (source->span - 1) * stride + size;
	return find_neighbours(in) && is_worth_it(in) && find_neighbours(source) &&
	       is_worth_it(source);
}

/* Windows that are next to each other and cover a dim are each some member's; of others members
 * take those that have rows of theirs. */
static void plan_scatter(struct shard *s, const struct tc_op *op, struct shard_plan *plan,
			 struct spmd_sharding *const *wish)
{
	const struct spmd_sharding *is = s->of[tc_in(op, 0)->id].h;

	for (unsigned d = 0; plan->rule && d < is->rank; d++) {
		const struct spmd_axes *a = &is->dim[d].axes;
		int64_t size = tc_attr_nth(op, "window_dimensions", d);
		int64_t n = plan->type[1]->dim[d];
		bool covers = tc_attr_nth(op, "window_strides", d) == size &&
			      n % spmd_size(a) == 0 && n * size == plan->type[0]->dim[d] &&
			      !tc_attr_nth(op, "padding", 2 * d) &&
			      !tc_attr_nth(op, "padding", 2 * d + 1);
		struct rows in, source;

		if (!a->n || plan->tensor[0]->dim[d].axes.n || plan->tensor[1]->dim[d].axes.n ||
		    !spmd_same_axes(a, &wish[0]->dim[d].axes) || !shard_are_free(plan, a) ||
		    (!covers && !find_selected(op, plan, d, spmd_size(a), &in, &source)))
			continue;
		for (unsigned t = 0; t < 4; t++)
			if (t != 2)
				plan->tensor[t]->dim[d].axes = *a;
		if (!covers)
			plan->windows |= 1ull << d;
	}
}

/* What was got for it already; NULL: nothing. */
static struct tc_value *taken_for(const struct shard *s, const struct tc_op *op)
{
	return op->id < s->n_values ? s->taken[op->id].rows : NULL;
}

/* Whether the whole operand is there, or is to be, for it and others like it. */
static bool is_collected(const struct shard *s, const struct tc_op *op)
{
	return (op->op == TC_SLICE || op->op == TC_PAD) && s->of[tc_in(op, 0)->id].is_collected;
}

void shard_plan_windows(struct shard *s, const struct tc_op *op, struct shard_plan *plan,
			struct spmd_sharding *const *wish)
{
	const struct spmd_sharding *is = op->n_operands ? s->of[tc_in(op, 0)->id].h : NULL;
	const struct tc_type *out;
	struct window w;
	struct rows r;

	plan_kernel(s, op, plan);
	if (op->op == TC_SELECT_AND_SCATTER)
		plan_scatter(s, op, plan, wish);
	if (!plan->rule || !op->n_results || !wish[0] || !is ||
	    (is_collected(s, op) && !taken_for(s, op)))
		return;
	out = plan->type[op->n_operands];
	for (unsigned d = 0; d < out->rank; d++) {
		const struct spmd_axes *a = &wish[0]->dim[d].axes;
		bool turns = is_reversed(op, d);

		if (!a->n || (!turns && !planned_window(op, plan, d, &w)))
			continue;
		if (turns)
			w.in = d;
		r.is_outside = false;
		if (plan->tensor[0]->dim[w.in].axes.n ||
		    plan->tensor[op->n_operands]->dim[d].axes.n ||
		    !spmd_same_axes(&is->dim[w.in].axes, a) || !shard_are_free(plan, a) ||
		    (!turns && !find_rows(s, &w, plan->type[0]->dim[w.in], out->dim[d],
					  spmd_size(a), &r)) ||
		    (r.is_outside && op->op == TC_REDUCE_WINDOW && !shard_may_repeat(op)))
			continue;
		for (unsigned i = 0; i < n_inputs(op); i++)
			plan->tensor[i]->dim[w.in].axes = *a;
		for (unsigned i = 0; i < op->n_results; i++)
			plan->tensor[op->n_operands + i]->dim[d].axes = *a;
		plan->windows |= 1ull << d;
	}
}

/* ---- rows of others ---- */

/* The rows from `from` of the first neighbour to `to` of the last one, of the own part and of
 * theirs; who has no such neighbour has zeros. */
static struct tc_value *join_neighbours(struct shard *s, const struct tc_build *b,
					struct tc_value *v, unsigned d,
					const struct spmd_axes *a, const struct rows *r)
{
	struct tc_value *parts[MOST_HOPS + 1];
	unsigned n = 0;

	for (int64_t k = r->first; k <= r->last; k++) {
		int64_t from = k == r->first ? r->from : 0, to = k == r->last ? r->to : r->part;
		struct tc_value *x = v;

		if (to - from < r->part)
			x = tc_build_part(b, v, d, from, to - from);
		parts[n++] = k ? shard_pass_on(s, b, x, a, k, SHARD_STRAIGHT) : x;
	}
	return n > 1 ? tc_build_join(b, n, parts, d) : parts[0];
}

/* Which rows of x, of a member's rows, are the whole's. */
static struct tc_value *is_inside(struct shard *s, const struct tc_build *b,
				  const struct tc_value *x, unsigned d, const struct spmd_axes *a,
				  const struct rows *r)
{
	const struct tc_type *t = tc_with_elem(s->c, x->type, ELEM_S32);
	struct tc_value *row = tc_build_iota(b, t, d), *start;

	start = shard_at_place(s, b, a, r->step, r->start);
	row = tc_build2(b, TC_ADD, row, tc_build_broadcast(b, start, t, NULL));
	return tc_build2(b, TC_AND,
			 tc_build_compare(b, TC_CMP_GE, row, tc_build_number(b, t, 0)),
			 tc_build_compare(b, TC_CMP_LT, row,
					  tc_build_number(b, t, (double)r->whole)));
}

/* The member's rows; NULL for `fill`: zeros. */
static struct tc_value *take_rows(struct shard *s, const struct tc_build *b, struct tc_value *v,
				  unsigned d, const struct spmd_axes *a, const struct rows *r,
				  struct tc_value *fill)
{
	int64_t drift = r->step - r->part, wide, low, high;
	/* Where they begin in x at the first place, and at the last one. */
	int64_t first = r->start - r->first * r->part - r->from;
	int64_t last = first + (r->parts - 1) * drift;
	struct tc_value *x;

	if (r->exchange) {
		shard_exchange(s, b, r->exchange, d, a, &v, fill, &x);
		return x;
	}
	x = join_neighbours(s, b, v, d, a, r);
	wide = x->type->dim[d];
	low = most(0, -least(first, last));
	high = most(0, most(first, last) + r->span - wide);
	x = shard_pad_zeros(s, b, x, d, low, high);
	if (drift)
		x = tc_build_take(b, x, d, shard_at_place(s, b, a, drift, first + low), r->span);
	else if (x->type->dim[d] != r->span)
		x = tc_build_part(b, x, d, first + low, r->span);
	if (!fill || !r->is_outside)
		return x;
	return tc_build_select(b, is_inside(s, b, x, d, a, r), x,
			       tc_build_broadcast(b, fill, x->type, NULL));
}

/* ---- the op ---- */

/* The place of dim `out` in the lists of a window. */
static unsigned place_of(const struct tc_op *op, unsigned out)
{
	unsigned i = 0;

	while (op->op == TC_CONVOLUTION && tc_attr_nth(op, "output_spatial_dimensions", i) != out)
		i++;
	return op->op == TC_CONVOLUTION ? i : out;
}

static void set_rows(struct shard *s, struct tc_op *op, unsigned d, const struct rows *r)
{
	switch (op->op) {
	case TC_SLICE:
		tc_set_nth(s->c, op, "start_indices", d, 0);
		tc_set_nth(s->c, op, "limit_indices", d, r->span);
		break;
	case TC_PAD:
		tc_set_nth(s->c, op, "edge_padding_low", d, r->low);
		tc_set_nth(s->c, op, "edge_padding_high", d, r->high);
		break;
	default:
		tc_set_nth(s->c, op, "padding", 2 * place_of(op, d), r->low);
		tc_set_nth(s->c, op, "padding", 2 * place_of(op, d) + 1, r->high);
		break;
	}
}

void shard_set_behind(struct shard *s, struct tc_op *op, unsigned d, int64_t rows)
{
	if (op->op == TC_PAD)
		tc_set_nth(s->c, op, "edge_padding_high", d, rows);
	else
		tc_set_nth(s->c, op, "padding", 2 * place_of(op, d) + 1, rows);
}

bool shard_need_of(struct shard *s, const struct tc_op *op, const struct shard_plan *plan,
		   unsigned *d, struct shard_need *need, int64_t *rounds, int64_t *moved)
{
	uint64_t dims = plan->windows;
	struct window w;
	struct rows r;

	if ((op->op != TC_SLICE && op->op != TC_PAD) || !dims || (dims & (dims - 1)))
		return false;
	for (*d = 0; !(dims >> *d & 1); ++*d)
		;
	planned_window(op, plan, *d, &w);
	find_rows(s, &w, plan->type[0]->dim[*d], plan->type[op->n_operands]->dim[*d],
		  spmd_size(&plan->tensor[0]->dim[*d].axes), &r);
	*need = (struct shard_need){ r.start, r.step, r.span };
	*rounds += r.exchange ? (int64_t)shard_rounds(r.exchange) : hops_of(&r);
	*moved += r.exchange ? shard_moved(r.exchange) : moved_of(&r);
	return !r.is_outside;
}

static struct tc_value *fill_of(const struct tc_op *op, unsigned i)
{
	return op->op == TC_PAD || op->op == TC_REDUCE_WINDOW ? tc_in(op, n_inputs(op) + i) : NULL;
}

void shard_take_windows(struct shard *s, struct tc_op *op, const struct shard_plan *plan)
{
	const struct tc_type *out = op->n_results ? plan->type[op->n_operands] : NULL;
	struct tc_build b = tc_build_at(s->c, op);
	struct tc_value *rows;
	struct window w;
	struct rows r;

	for (unsigned d = 0; op->op != TC_SELECT_AND_SCATTER && plan->windows && d < out->rank;
	     d++) {
		const struct spmd_axes *a = &plan->tensor[op->n_operands]->dim[d].axes;

		if (!(plan->windows >> d & 1))
			continue;
		if (op->op == TC_REVERSE) {
			tc_set_operand(op, 0, shard_pass_on(s, &b, tc_in(op, 0), a, 0,
							    SHARD_TURNED));
			continue;
		}
		planned_window(op, plan, d, &w);
		find_rows(s, &w, plan->type[0]->dim[w.in], out->dim[d], spmd_size(a), &r);
		rows = taken_for(s, op);
		for (unsigned i = 0; i < n_inputs(op); i++)
			tc_set_operand(op, i, rows ? rows :
				       take_rows(s, &b, tc_in(op, i), w.in, a, &r,
						 fill_of(op, i)));
		set_rows(s, op, d, &r);
	}
	for (unsigned i = 0; plan->kernels && i < n_spatial(op); i++) {
		const struct spmd_axes *a;
		unsigned d;

		if (!(plan->kernels >> i & 1))
			continue;
		find_kernel(op, plan, i, &d, &w);
		a = &plan->tensor[1]->dim[w.out].axes;
		find_rows(s, &w, plan->type[0]->dim[w.in], plan->type[1]->dim[w.out], spmd_size(a),
			  &r);
		tc_set_operand(op, 0, take_rows(s, &b, tc_in(op, 0), w.in, a, &r, NULL));
		set_rows(s, op, d, &r);
	}
}

static struct tc_value *both(const struct tc_build *b, struct tc_value *x, struct tc_value *y)
{
	return x ? tc_build2(b, TC_AND, x, y) : y;
}

struct tc_value *shard_select_and_scatter(struct shard *s, struct tc_op *op,
					  const struct shard_plan *plan)
{
	struct tc_build b = tc_build_at(s->c, op);
	const struct tc_type *out = tc_out(op, 0)->type;
	struct tc_value *within = NULL, *counts = NULL, *v;
	int64_t start[TC_MAX_RANK] = { 0 };
	struct rows in, source;

	for (unsigned pass = 0; pass < 2; pass++)
		for (unsigned d = 0; d < out->rank; d++) {
			const struct spmd_axes *a = &plan->tensor[0]->dim[d].axes;

			if (!(plan->windows >> d & 1))
				continue;
			find_selected(op, plan, d, spmd_size(a), &in, &source);
			start[d] = -in.start;
			if (!pass) {
				tc_set_operand(op, 0, take_rows(s, &b, tc_in(op, 0), d, a, &in,
								NULL));
				tc_set_operand(op, 1, take_rows(s, &b, tc_in(op, 1), d, a,
								&source, NULL));
				continue;
			}
			/* Of both as they are along all dims. */
			within = both(&b, within, is_inside(s, &b, tc_in(op, 0), d, a, &in));
			counts = both(&b, counts, is_inside(s, &b, tc_in(op, 1), d, a, &source));
		}
	for (unsigned d = 0; d < 2u * out->rank; d++)
		if (plan->windows >> d / 2 & 1)
			tc_set_nth(s->c, op, "padding", d, 0);
	tc_expand_select_and_scatter(&b, op, within, counts, &v);
	return tc_build_slice(&b, v, start, out);
}

/* ---- rows that ops move together ---- */

/*
 * Two slices of a value joined so that its rows go round (jnp.roll), a slice joined with other rows
 * where some have gone out (a shift, a stage of a pipeline), a slice that is padded. Neither the
 * slices nor what joins them would run in parts, for their dims are rarely even; together they keep
 * the dim as long as it was. So a slice that is padded becomes padding, also by less than nothing,
 * and a join of two is one op here: a member's part of its rows is the end of one part and the
 * beginning of the next one.
 */

/* A slice that leaves other dims than d as they are, and is of each element of d. */
static bool is_part_of(const struct tc_op *op, unsigned d)
{
	const struct tc_type *from = tc_in(op, 0)->type, *to = tc_out(op, 0)->type;

	for (unsigned i = 0; i < from->rank; i++)
		if (tc_attr_nth(op, "strides", i) != 1 ||
		    (i != d && from->dim[i] != to->dim[i]))
			return false;
	return true;
}

/* By how many rows a value's have moved in its slice that is operand i of a join of two, of
 * the value's type; -1: it is something else. */
static int64_t moved(const struct tc_op *join, unsigned i, unsigned d)
{
	const struct tc_op *slice = tc_in(join, i)->def;
	const struct tc_type *type = tc_out(join, 0)->type;
	int64_t by = i ? tc_in(join, 0)->type->dim[d] : 0;

	if (!slice || slice->op != TC_SLICE || tc_in(slice, 0)->type != type ||
	    !is_part_of(slice, d))
		return -1;
	by -= tc_attr_nth(slice, "start_indices", d);
	return by < 0 ? by + type->dim[d] : by;
}

/* How many rows an op that only cuts off the ends of dim d leaves out; false: it does more. */
static bool find_ends(const struct tc_op *op, unsigned d, int64_t *before, int64_t *behind)
{
	if (op->op == TC_SLICE) {
		*before = tc_attr_nth(op, "start_indices", d);
		*behind = tc_in(op, 0)->type->dim[d] - tc_attr_nth(op, "limit_indices", d);
		return tc_attr_nth(op, "strides", d) == 1;
	}
	if (op->op != TC_PAD)
		return false;
	*before = -tc_attr_nth(op, "edge_padding_low", d);
	*behind = -tc_attr_nth(op, "edge_padding_high", d);
	return *before >= 0 && *behind >= 0 && !tc_attr_nth(op, "interior_padding", d);
}

/* ---- padding of convolutions ---- */

static bool is_zero(const struct tc_value *v)
{
	const struct tc_op *op = v->def;
	const struct tc_attr *a;

	while (op && (op->op == TC_CONVERT || op->op == TC_BROADCAST_IN_DIM))
		op = tc_in(op, 0)->def;
	a = op && op->op == TC_CONSTANT ? tc_attr(op, "value") : NULL;
	for (size_t i = 0; a && i < elem_bytes(a->type->elem); i++)
		if (((const uint8_t *)a->data)[i])
			return false;
	return a && a->type->elem != ELEM_F8E8M0FNU && elem_bits(a->type->elem) >= 8 &&
	       (a->is_splat || a->type->count == 1);
}

/* The place of a tensor's dim in that list of a convolution; -1: it is not spatial. */
static int place_in(const struct tc_op *conv, const char *name, unsigned d)
{
	unsigned n;
	const int64_t *dims = tc_attr_ints(conv, name, &n);

	for (unsigned i = 0; i < n; i++)
		if (dims[i] == d)
			return (int)i;
	return -1;
}

static void add_padding(struct shard *s, struct tc_op *conv, unsigned i, int64_t low, int64_t high)
{
	tc_set_nth(s->c, conv, "padding", 2 * i, tc_attr_nth(conv, "padding", 2 * i) + low);
	tc_set_nth(s->c, conv, "padding", 2 * i + 1,
		   tc_attr_nth(conv, "padding", 2 * i + 1) + high);
}

/* Both are padding, or both cut off. */
static bool is_one_edge(const struct tc_op *conv, unsigned i, unsigned side, int64_t rows)
{
	int64_t own = tc_attr_nth(conv, "padding", 2 * i + side);

	return rows > -MOST_ROWS && rows < MOST_ROWS && own > -MOST_ROWS && own < MOST_ROWS &&
	       (rows >= 0 || own <= 0);
}

void shard_take_padding(struct shard *s, struct tc_op *conv)
{
	struct tc_op *pad = tc_in(conv, 0)->def;
	static const char name[] = "input_spatial_dimensions";
	unsigned rank = tc_in(conv, 0)->type->rank;

	if (!pad || pad->op != TC_PAD || !is_zero(tc_in(pad, 1)))
		return;
	for (unsigned d = 0; d < rank; d++) {
		int64_t low = tc_attr_nth(pad, "edge_padding_low", d);
		int64_t high = tc_attr_nth(pad, "edge_padding_high", d);
		int i = place_in(conv, name, d);
		bool fits = i < 0 ? !low && !high :
			    tc_attr_nth(conv, "lhs_dilation", (unsigned)i) == 1 &&
			    is_one_edge(conv, (unsigned)i, 0, low) &&
			    is_one_edge(conv, (unsigned)i, 1, high);

		if (!fits || tc_attr_nth(pad, "interior_padding", d))
			return;
	}
	for (unsigned d = 0; d < rank; d++)
		if (place_in(conv, name, d) >= 0)
			add_padding(s, conv, (unsigned)place_in(conv, name, d),
				    tc_attr_nth(pad, "edge_padding_low", d),
				    tc_attr_nth(pad, "edge_padding_high", d));
	tc_set_operand(conv, 0, tc_in(pad, 0));
	if (tc_is_unused(tc_out(pad, 0)))
		tc_erase(pad);
}

/* A convolution that is to make just what a slice leaves of it. */
static struct tc_op *conv_trimmed(struct shard *s, struct tc_op *conv, const struct tc_op *cut)
{
	static const char name[] = "output_spatial_dimensions";
	int64_t before[TC_MAX_RANK], behind[TC_MAX_RANK];
	unsigned rank = tc_out(cut, 0)->type->rank;

	for (unsigned d = 0; d < rank; d++)
		if (!find_ends(cut, d, &before[d], &behind[d]) || !tc_out(cut, 0)->type->dim[d] ||
		    ((before[d] || behind[d]) && place_in(conv, name, d) < 0))
			return NULL;
	for (unsigned d = 0; d < rank; d++) {
		int i = place_in(conv, name, d);
		int64_t stride = i < 0 ? 0 : tc_attr_nth(conv, "window_strides", (unsigned)i);

		if (before[d] || behind[d])
			add_padding(s, conv, (unsigned)i, -before[d] * stride, -behind[d] * stride);
	}
	tc_out(conv, 0)->type = tc_out(cut, 0)->type;
	return conv;
}

struct tc_op *shard_pad_trimmed(struct shard *s, const struct tc_op *slice)
{
	struct tc_op *pad = tc_in(slice, 0)->def;
	unsigned rank = tc_out(slice, 0)->type->rank;
	int64_t before[TC_MAX_RANK], behind[TC_MAX_RANK];

	if (!pad || pad->block != slice->block ||
	    tc_in(slice, 0)->type == tc_out(slice, 0)->type || !tc_is_used_once(tc_in(slice, 0)))
		return NULL;
	if (pad->op == TC_CONVOLUTION)
		return conv_trimmed(s, pad, slice);
	if (pad->op != TC_PAD)
		return NULL;
	for (unsigned d = 0; d < rank; d++)
		if (!find_ends(slice, d, &before[d], &behind[d]) ||
		    ((before[d] || behind[d]) && tc_attr_nth(pad, "interior_padding", d)))
			return NULL;
	for (unsigned d = 0; d < rank; d++) {
		tc_set_nth(s->c, pad, "edge_padding_low", d,
			   tc_attr_nth(pad, "edge_padding_low", d) - before[d]);
		tc_set_nth(s->c, pad, "edge_padding_high", d,
			   tc_attr_nth(pad, "edge_padding_high", d) - behind[d]);
	}
	tc_out(pad, 0)->type = tc_out(slice, 0)->type;
	return pad;
}

const struct shard_roll *shard_find_roll(struct shard *s, const struct tc_op *op)
{
	unsigned d = (unsigned)tc_attr_int(op, "dimension", 0), of;
	struct shard_roll *r;
	uint32_t parts;
	int64_t by[2], rows = tc_out(op, 0)->type->dim[d];

	if (op->n_operands != 2 || !rows || rows >= MOST_ROWS)
		return NULL;
	for (unsigned i = 0; i < 2; i++)
		by[i] = moved(op, i, d);
	if (by[0] < 0 && by[1] < 0)
		return NULL;
	of = by[0] < 0 || (by[1] >= 0 && tc_in(op, 1)->type->dim[d] > tc_in(op, 0)->type->dim[d]);
	r = arena_alloc(&s->c->arena, sizeof(*r));
	*r = (struct shard_roll){ .of = tc_in(tc_in(op, of)->def, 0), .dim = d, .by = by[of] };
	if (by[0] != by[1] || tc_in(tc_in(op, !of)->def, 0) != r->of) {
		r->rest = tc_in(op, !of);
		r->is_rest_first = of;
	}
	/* More than a part, as half of a dim, is moved as others that are joined are. */
	parts = spmd_gcd((uint64_t)rows, spmd_size(&s->p->of[r->of->id]->dim[d].axes));
	return r->rest && r->rest->type->dim[d] > rows / parts ? NULL : r;
}

/* Whether padding of dim d of what was cut off is padding of the whole dim, by less. */
static bool may_uncut(const struct tc_op *op, const struct tc_op *cut, unsigned d)
{
	int64_t low = tc_attr_nth(op, "edge_padding_low", d), before, behind;
	int64_t high = tc_attr_nth(op, "edge_padding_high", d);
	bool has_holes = tc_attr_nth(op, "interior_padding", d);

	if (!find_ends(cut, d, &before, &behind))
		return false;
	if (!before && !behind)
		return true;
	return (low || high) && !has_holes && !(before && low > 0) && !(behind && high > 0);
}

static bool uncut(struct shard *s, struct tc_op *op)
{
	struct tc_op *cut = tc_in(op, 0)->def;
	unsigned rank = tc_out(op, 0)->type->rank;
	int64_t before, behind;

	for (unsigned d = 0; d < rank; d++)
		if (!cut || !may_uncut(op, cut, d))
			return false;
	for (unsigned d = 0; d < rank; d++) {
		find_ends(cut, d, &before, &behind);
		tc_set_nth(s->c, op, "edge_padding_low", d,
			   tc_attr_nth(op, "edge_padding_low", d) - before);
		tc_set_nth(s->c, op, "edge_padding_high", d,
			   tc_attr_nth(op, "edge_padding_high", d) - behind);
	}
	if (!rank)
		return false;
	tc_set_operand(op, 0, tc_in(cut, 0));
	if (tc_is_unused(tc_out(cut, 0)))
		tc_erase(cut);
	return true;
}

void shard_pad_uncut(struct shard *s, struct tc_op *op)
{
	while (uncut(s, op))
		;
}

/* Rows from .. from + size of v, of the member `by` places farther along the axes, in a ring. */
static struct tc_value *rows_of(struct shard *s, const struct tc_build *b, struct tc_value *v,
				unsigned d, int64_t from, int64_t size,
				const struct spmd_axes *a, int64_t by)
{
	if (size < v->type->dim[d])
		v = tc_build_part(b, v, d, from, size);
	return by ? shard_pass_on(s, b, v, a, by, SHARD_ROUND) : v;
}

static struct tc_value *rolled(struct shard *s, const struct tc_build *b, struct tc_value *v,
			       unsigned d, int64_t by, const struct spmd_axes *a)
{
	int64_t parts = spmd_size(a), part = v->type->dim[d], far = by / part, more = by % part;
	struct tc_value *rows[2];

	if (!more)
		return rows_of(s, b, v, d, 0, part, a, (parts - far) % parts);
	rows[0] = rows_of(s, b, v, d, part - more, more, a, (2 * parts - far - 1) % parts);
	rows[1] = rows_of(s, b, v, d, 0, part - more, a, (parts - far) % parts);
	return tc_build_join(b, 2, rows, d);
}

/* v with the rest, of which all have all, in its first or last rows. */
static struct tc_value *put_rest(struct shard *s, const struct tc_build *b, struct tc_value *v,
				 struct tc_value *rest, const struct shard_roll *r,
				 const struct spmd_axes *a)
{
	const struct tc_type *rows = tc_with_elem(s->c, v->type, ELEM_S32);
	int64_t part = v->type->dim[r->dim], n = rest->type->dim[r->dim];
	int64_t first = r->is_rest_first ? 0 : (int64_t)spmd_size(a) * part - n;
	struct tc_value *row = tc_build_iota(b, rows, r->dim), *is_rest;

	/* Counted from the rest's first row on, it has rows 0 to n. */
	row = tc_build2(b, TC_ADD, row, tc_build_broadcast(b, shard_at_place(s, b, a, part, -first),
							   rows, NULL));
	if (r->is_rest_first)
		is_rest = tc_build_compare(b, TC_CMP_LT, row, tc_build_number(b, rows, (double)n));
	else
		is_rest = tc_build_compare(b, TC_CMP_GE, row, tc_build_number(b, rows, 0));
	rest = shard_pad_zeros(s, b, rest, r->dim, r->is_rest_first ? 0 : part - n,
			       r->is_rest_first ? part - n : 0);
	return tc_build_select(b, is_rest, rest, v);
}

bool shard_may_roll(const struct shard *s, const struct shard_roll *r,
		    const struct spmd_sharding *wish)
{
	const struct shard_value *of = &s->of[r->of->id];
	const struct spmd_axes *a = &of->h->dim[r->dim].axes;

	return a->n && spmd_same_axes(a, &wish->dim[r->dim].axes) && !of->h->unreduced.n &&
	       !wish->unreduced.n &&
	       (!r->rest || s->of[r->rest->id].type->dim[r->dim] <=
			    of->type->dim[r->dim] / spmd_size(a));
}

struct tc_value *shard_roll(struct shard *s, const struct tc_build *b, const struct shard_roll *r,
			    struct tc_value *rest)
{
	const struct shard_value *of = &s->of[r->of->id];
	const struct spmd_axes *a = &of->h->dim[r->dim].axes;
	struct tc_value *v = rolled(s, b, of->local, r->dim, r->by, a);

	return rest ? put_rest(s, b, v, rest, r, a) : v;
}
