/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows that hold everything up to an element, or everything from it on: running sums,
 * products, maxima; and wide windows that end, or begin, at each element. JAX writes
 * jnp.cumsum and its family so for platforms that it has no other form for.
 *
 * Window by window that is n * n / 2 points. Windows that hold everything go by blocks: of each
 * run of R elements the sum, of these sums the running ones by the same way, and then on from
 * there within each run: 2 n sums in all, and each element is read twice and written once. A
 * window of w elements is put together of those of 1, 2, 4, ... of which w is the sum, each the
 * array combined with itself, moved (Hillis and Steele, "Data parallel algorithms", 1986):
 * n * log2(w).
 *
 * The order of the elements is kept, so any associative body will do; how sums are grouped is
 * free in a reduce_window. Where they are rounded each element is first summed up with those of
 * its run, and this added to what is before: one addition for each level of runs adds something
 * small to something large, not one for each element.
 */
#include <string.h>

#include "runtime/compiler/lower/decompose.h"

enum {
	LEAST = 9,	/* elements: shorter ones are as quick window by window */
	LEAST_WINDOW = 64,	/* of windows that do not hold everything */
	MOST_ARRAYS = 8,
	RUN = 8,	/* elements of a run, times arrays: an instruction's outputs */
	MOST_OPS = 96,	/* of a run: one instruction's */
};

/* The dim whose windows are the `*width` elements that end (or begin) at each element, as many
 * as there are, or -1. */
static int scan_dim(const struct tc_op *op, bool *is_reverse, int64_t *width)
{
	const struct tc_type *t = tc_in(op, 0)->type;
	const int64_t *window, *padding, *stride, *base, *dilation;
	int found = -1;
	unsigned n;

	window = tc_attr_ints(op, "window_dimensions", &n);
	padding = tc_attr_ints(op, "padding", &n);
	stride = tc_attr_ints(op, "window_strides", &n);
	base = tc_attr_ints(op, "base_dilations", &n);
	dilation = tc_attr_ints(op, "window_dilations", &n);
	for (unsigned d = 0; d < t->rank; d++) {
		int64_t low = padding[2 * d], high = padding[2 * d + 1], rest = window[d] - 1;

		if (stride[d] != 1 || base[d] != 1 || dilation[d] != 1)
			return -1;
		if (window[d] == 1 && !low && !high)
			continue;
		if (found >= 0 || t->dim[d] < LEAST || window[d] > t->dim[d] ||
		    (window[d] < t->dim[d] && window[d] < LEAST_WINDOW) ||
		    !((low == rest && !high) || (!low && high == rest)))
			return -1;
		*width = window[d];
		found = (int)d;
		*is_reverse = high != 0;
	}
	return t->count ? found : -1;
}

/* Each element of `near`, which is of what is next to a place, joined with that of `far` which
 * is `step` before it (after it), where there is one. `near` becomes the result. */
static void add_moved(const struct tc_build *b, const struct tc_block *body, unsigned k,
		      struct tc_value **near, struct tc_value *const *far, unsigned dim,
		      int64_t step, bool is_reverse)
{
	struct tc_value *args[2 * MOST_ARRAYS] = { NULL }, *parts[2], *out[MOST_ARRAYS];
	int64_t n = near[0]->type->dim[dim];

	for (unsigned i = 0; i < k; i++) {
		struct tc_value *first = is_reverse ? near[i] : far[i];
		struct tc_value *last = is_reverse ? far[i] : near[i];

		args[i] = tc_build_part(b, first, dim, 0, n - step);
		args[k + i] = tc_build_part(b, last, dim, step, n - step);
	}
	tc_build_on_arrays(b, body, args, args[0]->type, out);
	for (unsigned i = 0; i < k; i++) {
		/* The first `step` (last) have seen all that there is. */
		parts[is_reverse] = tc_build_part(b, near[i], dim, is_reverse ? n - step : 0,
						  step);
		parts[!is_reverse] = out[i];
		near[i] = tc_build_join(b, 2, parts, dim);
	}
}

/* The windows of `width` elements, of v's; v becomes them. */
static void add_windows(const struct tc_build *b, const struct tc_block *body, unsigned k,
			struct tc_value **v, unsigned dim, int64_t width, bool is_reverse)
{
	struct tc_value *sum[MOST_ARRAYS] = { NULL }, *far[MOST_ARRAYS] = { NULL };
	int64_t have = 0;

	for (int64_t step = 1; step <= width; step *= 2) {
		/* v is of windows of `step`, sum of those of `have`, which is less. */
		if ((width & step) && have)
			add_moved(b, body, k, sum, v, dim, have, is_reverse);
		else if (width & step)
			memcpy(sum, v, k * sizeof(*v));
		have += width & step;
		memcpy(far, v, k * sizeof(*v));
		if (2 * step <= width)
			add_moved(b, body, k, v, far, dim, step, is_reverse);
	}
	memcpy(v, sum, k * sizeof(*v));
}

/* ---- by blocks ---- */

struct scan {
	struct tc_build b;
	const struct tc_block *body;
	unsigned k, dim;	/* k arrays, along dim */
	bool is_reverse;	/* from the last element on */
	bool is_rounded;	/* joining is */
	struct tc_value **initial;	/* scalars */
	int64_t run;		/* elements of a run, at most RUN */
};

/* acc = acc joined with x, which comes after it. Both are of x's shape. */
static void join_next(const struct scan *s, struct tc_value **acc, struct tc_value *const *x)
{
	struct tc_value *args[2 * MOST_ARRAYS] = { NULL };

	for (unsigned i = 0; i < s->k; i++) {
		args[i] = s->is_reverse ? x[i] : acc[i];
		args[s->k + i] = s->is_reverse ? acc[i] : x[i];
	}
	tc_build_on_arrays(&s->b, s->body, args, x[0]->type, acc);
}

/* Elements `at`, at + step, ... as the scan meets them, `count` of them. */
static void take_each(const struct scan *s, struct tc_value *const *x, int64_t at, int64_t step,
		      int64_t count, struct tc_value **out)
{
	const struct tc_type *t = x[0]->type;
	int64_t start[TC_MAX_RANK] = { 0 }, steps[TC_MAX_RANK], dim[TC_MAX_RANK];

	for (unsigned d = 0; d < t->rank; d++) {
		steps[d] = d == s->dim ? step : 1;
		dim[d] = d == s->dim ? count : t->dim[d];
	}
	start[s->dim] = s->is_reverse ? t->dim[s->dim] - 1 - at - (count - 1) * step : at;
	for (unsigned i = 0; i < s->k; i++)
		out[i] = tc_build_steps(&s->b, x[i], start, steps,
					tc_tensor(s->b.c, (enum elem)x[i]->type->elem, t->rank,
						  dim));
}

/* Arrays behind each other in the order of the scan. */
static void put_behind(const struct scan *s, struct tc_value **x, struct tc_value *const *next)
{
	for (unsigned i = 0; i < s->k; i++) {
		struct tc_value *parts[2] = { s->is_reverse ? next[i] : x[i],
					      s->is_reverse ? x[i] : next[i] };

		x[i] = tc_build_join(&s->b, 2, parts, s->dim);
	}
}

/* The initial values where the first of x would be. */
static void start_with(const struct scan *s, struct tc_value *const *x, struct tc_value **out)
{
	const int64_t none = 0;
	struct tc_value *first[MOST_ARRAYS];

	take_each(s, x, 0, 1, 1, first);
	for (unsigned i = 0; i < s->k; i++)
		out[i] = tc_build_broadcast(&s->b, s->initial[i], first[i]->type, &none);
}

/* Elements of runs, `of` arrays of k values that have one of each run, in their places. */
static void interleave(const struct scan *s, unsigned of, struct tc_value *(*part)[MOST_ARRAYS],
		       struct tc_value **out)
{
	const struct tc_type *t = part[0][0]->type;
	int64_t dim[TC_MAX_RANK], whole[TC_MAX_RANK];
	struct tc_value *one[RUN];
	unsigned at = s->dim + 1;

	memcpy(whole, t->dim, t->rank * sizeof(*whole));
	whole[s->dim] *= of;
	for (unsigned d = 0; d <= t->rank; d++)
		dim[d] = d < at ? t->dim[d] : d == at ? 1 : t->dim[d - 1];
	for (unsigned i = 0; i < s->k; i++) {
		for (unsigned j = 0; j < of; j++)
			one[j] = tc_build_reshape(&s->b, part[s->is_reverse ? of - 1 - j : j][i],
						  t->rank + 1u, dim);
		out[i] = tc_build_reshape(&s->b, tc_build_join(&s->b, of, one, at), t->rank,
					  whole);
	}
}

/* The length of runs that n elements are cut into: without a rest, if there is such a one. */
static int64_t choose_run(const struct scan *s, int64_t n)
{
	if (n <= s->run)
		return n;
	for (int64_t r = s->run; 2 * r > s->run && r > 1; r--)
		if (n % r == 0)
			return r;
	return s->run;
}

/* All parts joined, from the last on: no step of it is one of join_before()'s, which can be in
 * another instruction. */
static void join_parts(const struct scan *s, struct tc_value *(*part)[MOST_ARRAYS], int64_t run,
		       struct tc_value **sum)
{
	struct tc_value *all[MOST_ARRAYS];

	memcpy(sum, part[run - 1], s->k * sizeof(*sum));
	for (int64_t i = run - 2; i >= 0; i--) {
		memcpy(all, part[i], s->k * sizeof(*all));
		join_next(s, all, sum);
		memcpy(sum, all, s->k * sizeof(*sum));
	}
}

/* Parts become what they are with all before them; acc, what is before the runs, becomes the last
 * of them. */
static void join_before(const struct scan *s, struct tc_value *(*part)[MOST_ARRAYS], int64_t run,
			struct tc_value **acc)
{
	struct tc_value *before[MOST_ARRAYS], *own[MOST_ARRAYS];

	memcpy(before, acc, s->k * sizeof(*before));
	memcpy(own, part[0], s->k * sizeof(*own));
	for (int64_t i = 0; i < run; i++) {
		if (s->is_rounded && i)
			join_next(s, own, part[i]);
		if (s->is_rounded)
			memcpy(acc, before, s->k * sizeof(*acc));
		join_next(s, acc, s->is_rounded ? own : part[i]);
		memcpy(part[i], acc, s->k * sizeof(*acc));
	}
}

/* x becomes what its elements are with all before them, behind the initial values. */
static void scan_runs(const struct scan *s, struct tc_value **x)
{
	int64_t n = x[0]->type->dim[s->dim], run = choose_run(s, n), runs = n / run;
	struct tc_value *part[RUN][MOST_ARRAYS], *acc[MOST_ARRAYS], *sum[MOST_ARRAYS];
	struct tc_value *whole[MOST_ARRAYS];

	for (int64_t i = 0; i < run; i++)
		take_each(s, x, i, run, runs, part[i]);
	start_with(s, x, acc);
	if (runs > 1) {
		join_parts(s, part, run, sum);
		scan_runs(s, sum);
		take_each(s, sum, 0, 1, runs - 1, sum);
		put_behind(s, acc, sum);
	}
	join_before(s, part, run, acc);
	interleave(s, (unsigned)run, part, whole);
	if (n > run * runs)
		take_each(s, acc, runs - 1, 1, 1, acc);
	for (int64_t at = run * runs; at < n; at++) {
		take_each(s, x, at, 1, 1, part[0]);
		join_next(s, acc, part[0]);
		put_behind(s, whole, acc);
	}
	memcpy(x, whole, s->k * sizeof(*x));
}

/* Whether the body is a float's sum or product, which rounds and is little work. */
static bool is_rounded(const struct tc_block *body)
{
	const struct tc_op *f = body->first;
	unsigned cls = elem_class(tc_in(body->last, 0)->type->elem);

	return f->next == body->last && (f->op == TC_ADD || f->op == TC_MULTIPLY) &&
	       (cls == ELEM_CLASS_FLOAT || cls == ELEM_CLASS_COMPLEX);
}

static unsigned count_ops(const struct tc_block *body)
{
	unsigned n = 0;

	for (const struct tc_op *o = body->first; o != body->last; o = o->next)
		n++;
	return n;
}

/* The length of runs; less than 2: they bring nothing. */
static int64_t longest_run(const struct tc_block *body, unsigned k)
{
	int64_t run = RUN / k;
	unsigned ops = count_ops(body);

	while (run > 1 && run * ops > MOST_OPS)
		run--;
	return run;
}

bool tc_decompose_scan(struct tc_ctx *c, struct tc_op *op)
{
	const struct tc_block *body = op->regions[0].block;
	struct tc_value *v[2 * MOST_ARRAYS], *out[MOST_ARRAYS], *initial[MOST_ARRAYS];
	unsigned k = op->n_results;
	const int64_t none = 0;
	bool is_reverse = false;
	int64_t width = 0;
	int dim = scan_dim(op, &is_reverse, &width);
	struct scan s = { .b = tc_build_at(c, op), .body = body, .k = k, .dim = (unsigned)dim,
			  .is_rounded = is_rounded(body), .initial = initial };

	if (dim < 0 || k > MOST_ARRAYS || tc_only_for_scalars(body))
		return false;
	for (unsigned i = 0; i < k; i++) {
		v[k + i] = tc_in(op, i);
		initial[i] = tc_in(op, k + i);
		if (v[k + i]->type->elem != tc_out(op, i)->type->elem)
			return false;
	}
	s.is_reverse = is_reverse;
	s.run = longest_run(body, k);
	if (width == v[k]->type->dim[dim] && s.run > 1 && v[k]->type->rank < TC_MAX_RANK) {
		scan_runs(&s, v + k);
		memcpy(out, v + k, k * sizeof(*out));
	} else {
		/* The least power of two that reaches all takes the fewest steps. */
		if (width == v[k]->type->dim[dim])
			while (width & (width - 1))
				width += width & -width;
		add_windows(&s.b, body, k, v + k, (unsigned)dim, width, is_reverse);
		/* The initial value comes first, once. */
		for (unsigned i = 0; i < k; i++)
			v[i] = tc_build_broadcast(&s.b, initial[i], v[k + i]->type, &none);
		tc_build_on_arrays(&s.b, body, v, v[k]->type, out);
	}
	for (unsigned i = 0; i < k; i++)
		tc_replace_uses(tc_out(op, i), out[i]);
	tc_erase(op);
	return true;
}
