/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ops of the reference evaluator that run a region on scalars: reduce, reduce_window,
 * select_and_scatter, map, sort. The region runs as any other, one op at a time; what
 * it computes is not looked at.
 */
#include <string.h>

#include "runtime/compiler/eval/eval.h"

static void copy_element(struct eval_array *to, int64_t i, struct eval_array *from,
			 int64_t k)
{
	memcpy(tc_eval_at(to, i), tc_eval_at(from, k), elem_bytes(to->type->elem));
}

/* ---- reduce and reduce_window ---- */

struct fold {
	unsigned n;
	struct eval_array **in, **out;
	const void **from;	/* what the body takes and gives */
	void **to;
};

/* Results filled with their initial values. */
static struct fold start_fold(struct eval *e, const struct tc_op *op)
{
	struct fold f = { .n = op->n_results };

	f.in = tc_eval_scratch(e, f.n, sizeof(*f.in));
	f.out = tc_eval_scratch(e, f.n, sizeof(*f.out));
	f.from = tc_eval_scratch(e, f.n, 2 * sizeof(*f.from));
	f.to = tc_eval_scratch(e, f.n, sizeof(*f.to));
	for (unsigned j = 0; j < f.n; j++) {
		f.in[j] = tc_eval_in(e, op, j);
		f.out[j] = tc_eval_out(e, op, j);
		for (int64_t i = 0; i < f.out[j]->type->count; i++)
			copy_element(f.out[j], i, tc_eval_in(e, op, f.n + j), 0);
	}
	return f;
}

static void end_fold(struct eval *e, const struct fold *f)
{
	tc_eval_release(e, f->in);
	tc_eval_release(e, f->out);
	tc_eval_release(e, f->from);
	tc_eval_release(e, f->to);
}

/* out[i] = body(out[i], in[k]) */
static void fold_one(struct eval *e, const struct tc_op *op, const struct fold *f,
		     int64_t i, int64_t k)
{
	for (unsigned j = 0; j < f->n; j++) {
		f->from[j] = f->to[j] = tc_eval_at(f->out[j], i);
		f->from[f->n + j] = tc_eval_at(f->in[j], k);
	}
	tc_eval_apply(e, op->regions[0].block, f->from, f->to);
}

void tc_eval_reduce(struct eval *e, const struct tc_op *op)
{
	struct fold f = start_fold(e, op);
	const struct tc_type *t = f.in[0]->type;
	int64_t idx[TC_MAX_RANK] = { 0 }, kept[TC_MAX_RANK];
	unsigned n, m;
	const int64_t *dims = tc_attr_ints(op, "dimensions", &n);

	for (int64_t i = 0; i < t->count; i++) {
		m = 0;
		for (unsigned d = 0; d < t->rank; d++)
			if (!tc_eval_has(dims, n, d))
				kept[m++] = idx[d];
		fold_one(e, op, &f, tc_eval_linear(f.out[0]->type, kept), i);
		tc_eval_step(t->rank, t->dim, idx);
	}
	end_fold(e, &f);
}

/* A window over an array; NULL dilations are 1. */
struct window {
	unsigned rank;
	const int64_t *dim, *stride, *base, *dilation, *pad;
	int64_t n;			/* places in it */
};

static struct window read_window(const struct tc_op *op)
{
	struct window w;
	unsigned n;

	w.dim = tc_attr_ints(op, "window_dimensions", &w.rank);
	w.stride = tc_attr_ints(op, "window_strides", &n);
	w.base = tc_attr_ints(op, "base_dilations", &n);
	w.dilation = tc_attr_ints(op, "window_dilations", &n);
	w.pad = tc_attr_ints(op, "padding", &n);
	w.n = 0;
	return w;
}

/* How many places a window has; a loop over more than 2^62 would not end anyway. */
static int64_t window_places(struct eval *e, const struct window *w)
{
	int64_t n = 1;

	for (unsigned d = 0; d < w->rank; d++)
		if (__builtin_mul_overflow(n, w->dim[d], &n))
			tc_fail(e->c, ERR_RESOURCE_EXHAUSTED, e->op,
				"its window has more than 2^63 places");
	return n;
}

/* The element under place k of window idx. False: it is padding or a hole. */
static bool under_window(const struct window *w, const struct tc_type *t,
			 const int64_t *idx, const int64_t *k, int64_t *at)
{
	for (unsigned d = 0; d < w->rank; d++) {
		int64_t base = w->base ? w->base[d] : 1;
		int64_t dilation = w->dilation ? w->dilation[d] : 1;
		__int128 p = (__int128)idx[d] * w->stride[d] + (__int128)k[d] * dilation -
			     w->pad[2 * d];

		if (p < 0 || p % base || p / base >= t->dim[d])
			return false;
		at[d] = (int64_t)(p / base);
	}
	return true;
}

/* Padding counts as the initial value, which the fold has begun with. */
void tc_eval_reduce_window(struct eval *e, const struct tc_op *op)
{
	struct fold f = start_fold(e, op);
	struct window w = read_window(op);
	const struct tc_type *in = f.in[0]->type, *t = f.out[0]->type;
	int64_t idx[TC_MAX_RANK] = { 0 }, at[TC_MAX_RANK];

	w.n = window_places(e, &w);
	for (int64_t i = 0; i < t->count; i++) {
		int64_t k[TC_MAX_RANK] = { 0 };

		for (int64_t p = 0; p < w.n; p++) {
			if (under_window(&w, in, idx, k, at))
				fold_one(e, op, &f, i, tc_eval_linear(in, at));
			tc_eval_step(w.rank, w.dim, k);
		}
		tc_eval_step(t->rank, t->dim, idx);
	}
	end_fold(e, &f);
}

/* ---- select_and_scatter ---- */

static void check_scalars(struct eval *e, const struct tc_block *b, unsigned n,
			  unsigned elem, unsigned yields)
{
	if (b->n_args != n || b->last->n_operands != 1)
		EVAL_BAD(e, "a region takes %u values and yields %u", b->n_args,
			 b->last->n_operands);
	for (unsigned i = 0; i < n; i++)
		if (b->args[i]->type->is_tuple || b->args[i]->type->rank ||
		    b->args[i]->type->elem != elem)
			EVAL_BAD(e, "argument %u of a region is no scalar of %s", i,
				 elem_text(elem));
	if (tc_in(b->last, 0)->type->rank || tc_in(b->last, 0)->type->elem != yields)
		EVAL_BAD(e, "a region does not yield a scalar of %s", elem_text(yields));
}

static void check_select_and_scatter(struct eval *e, const struct tc_op *op,
				     const struct window *w, unsigned n_stride,
				     unsigned n_pad)
{
	const struct tc_type *t = tc_in(op, 0)->type, *source = tc_in(op, 1)->type;
	const struct tc_type *init = tc_in(op, 2)->type;

	if (op->results[0].type != t || source->rank != t->rank || source->elem != t->elem ||
	    init->rank || init->elem != t->elem || w->rank != t->rank ||
	    n_stride != t->rank || n_pad != 2u * t->rank)
		EVAL_BAD(e, "its operands do not fit");
	for (unsigned d = 0; d < t->rank; d++) {
		__int128 room = (__int128)t->dim[d] + w->pad[2 * d] + w->pad[2 * d + 1] -
				w->dim[d];

		if (w->dim[d] < 1 || w->stride[d] < 1)
			EVAL_BAD(e, "its window has no size or no step");
		if (source->dim[d] != (room < 0 ? 0 : (int64_t)(room / w->stride[d] + 1)))
			EVAL_BAD(e, "dim %u of its source is not the number of windows", d);
	}
	check_scalars(e, op->regions[0].block, 2, t->elem, ELEM_PRED);
	check_scalars(e, op->regions[1].block, 2, t->elem, t->elem);
}

/* The element of the window that the region keeps, asked in order; -1: all padding. */
static int64_t choose(struct eval *e, const struct tc_op *op, const struct window *w,
		      struct eval_array *in, const int64_t *idx)
{
	int64_t k[TC_MAX_RANK] = { 0 }, at[TC_MAX_RANK], best = -1;

	for (int64_t p = 0; p < w->n; p++) {
		if (under_window(w, in->type, idx, k, at)) {
			int64_t next = tc_eval_linear(in->type, at);
			uint8_t keeps = 0;

			if (best >= 0)
				tc_eval_apply(e, op->regions[0].block,
					      (const void *[]){ tc_eval_at(in, best),
								tc_eval_at(in, next) },
					      (void *[]){ &keeps });
			if (!keeps)
				best = next;
		}
		tc_eval_step(w->rank, w->dim, k);
	}
	return best;
}

void tc_eval_select_and_scatter(struct eval *e, const struct tc_op *op)
{
	struct eval_array *in = tc_eval_in(e, op, 0), *source = tc_eval_in(e, op, 1);
	struct eval_array *out;
	const struct tc_type *t = source->type;
	struct window w = read_window(op);
	int64_t idx[TC_MAX_RANK] = { 0 };
	unsigned n_stride, n_pad;

	tc_attr_ints(op, "window_strides", &n_stride);
	tc_attr_ints(op, "padding", &n_pad);
	w.base = w.dilation = NULL;
	check_select_and_scatter(e, op, &w, n_stride, n_pad);
	w.n = window_places(e, &w);
	out = tc_eval_out(e, op, 0);
	for (int64_t i = 0; i < out->type->count; i++)
		copy_element(out, i, tc_eval_in(e, op, 2), 0);
	for (int64_t i = 0; i < t->count; i++) {
		int64_t best = choose(e, op, &w, in, idx);

		if (best >= 0)
			tc_eval_apply(e, op->regions[1].block,
				      (const void *[]){ tc_eval_at(out, best),
							tc_eval_at(source, i) },
				      (void *[]){ tc_eval_at(out, best) });
		tc_eval_step(t->rank, t->dim, idx);
	}
}

/* ---- map ---- */

void tc_eval_map(struct eval *e, const struct tc_op *op)
{
	const struct tc_block *b = op->regions[0].block;
	const struct tc_type *t = op->results[0].type;
	unsigned n = op->n_operands;
	struct eval_array **in = tc_eval_scratch(e, n, sizeof(*in)), *out;
	const void **from = tc_eval_scratch(e, n, sizeof(*from));

	if (b->n_args != n || b->last->n_operands != 1 || tc_in(b->last, 0)->type->rank ||
	    tc_in(b->last, 0)->type->elem != t->elem)
		EVAL_BAD(e, "its region does not fit");
	for (unsigned j = 0; j < n; j++) {
		const struct tc_type *is = tc_in(op, j)->type;

		in[j] = tc_eval_in(e, op, j);
		if (!tc_same_dims(is, t) ||
		    b->args[j]->type->is_tuple || b->args[j]->type->rank ||
		    b->args[j]->type->elem != is->elem)
			EVAL_BAD(e, "operand %u does not fit", j);
	}
	out = tc_eval_out(e, op, 0);
	for (int64_t i = 0; i < t->count; i++) {
		for (unsigned j = 0; j < n; j++)
			from[j] = tc_eval_at(in[j], i);
		tc_eval_apply(e, b, from, (void *[]){ tc_eval_at(out, i) });
	}
	tc_eval_release(e, from);
	tc_eval_release(e, in);
}

/* ---- sort ---- */

/* Lines of n elements, `step` apart, ordered by the comparator. */
struct line {
	struct eval *e;
	const struct tc_block *less;
	struct eval_array **in;
	const void **both;		/* what the comparator takes */
	unsigned n_in;
	int64_t first, step, n;
	int64_t *order, *other;		/* places in the line */
};

static bool is_less(const struct line *l, int64_t a, int64_t b)
{
	uint8_t yes = 0;

	for (unsigned j = 0; j < l->n_in; j++) {
		l->both[2 * j] = tc_eval_at(l->in[j], l->first + a * l->step);
		l->both[2 * j + 1] = tc_eval_at(l->in[j], l->first + b * l->step);
	}
	tc_eval_apply(l->e, l->less, l->both, (void *[]){ &yes });
	return yes;
}

/* Merges runs of `run` places: stable, and it ends whatever the comparator says. */
static void merge_runs(struct line *l, int64_t run)
{
	int64_t *swap = l->order;

	for (int64_t lo = 0; lo < l->n; lo += 2 * run) {
		int64_t mid = l->n - lo < run ? l->n : lo + run;
		int64_t end = l->n - mid < run ? l->n : mid + run;
		int64_t a = lo, b = mid;

		for (int64_t i = lo; i < end; i++) {
			bool right = a == mid ||
				(b < end && is_less(l, l->order[b], l->order[a]));

			l->other[i] = l->order[right ? b++ : a++];
		}
	}
	l->order = l->other;
	l->other = swap;
}

void tc_eval_sort(struct eval *e, const struct tc_op *op)
{
	const struct tc_type *t = tc_in(op, 0)->type;
	int64_t dim = tc_attr_int(op, "dimension", 0), outer;
	struct line l = { .e = e, .less = op->regions[0].block, .n_in = op->n_operands,
			  .step = 1 };
	struct eval_array **out = tc_eval_scratch(e, l.n_in, sizeof(*out));
	int64_t *scratch;

	l.n = t->dim[dim];
	l.in = tc_eval_scratch(e, l.n_in, sizeof(*l.in));
	l.both = tc_eval_scratch(e, l.n_in, 2 * sizeof(*l.both));
	for (unsigned j = 0; j < l.n_in; j++) {
		l.in[j] = tc_eval_in(e, op, j);
		out[j] = tc_eval_out(e, op, j);
	}
	for (int64_t d = dim + 1; d < t->rank; d++)
		l.step *= t->dim[d];
	outer = t->count ? t->count / l.n : 0;
	scratch = tc_eval_scratch(e, l.n, 2 * sizeof(*scratch));
	for (int64_t i = 0; i < outer; i++) {
		l.first = i / l.step * l.step * l.n + i % l.step;
		l.order = scratch;
		l.other = scratch + l.n;
		for (int64_t k = 0; k < l.n; k++)
			l.order[k] = k;
		for (int64_t run = 1; run < l.n; run *= 2)
			merge_runs(&l, run);
		for (int64_t k = 0; k < l.n; k++)
			for (unsigned j = 0; j < l.n_in; j++)
				copy_element(out[j], l.first + k * l.step, l.in[j],
					     l.first + l.order[k] * l.step);
	}
	tc_eval_release(e, scratch);
	tc_eval_release(e, l.both);
	tc_eval_release(e, l.in);
	tc_eval_release(e, out);
}
