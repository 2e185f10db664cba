/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dot_general and convolution of the reference evaluator: for each element of the
 * result, the sum of its products, in double (or 64-bit integers) and rounded once.
 */
#include <string.h>

#include "runtime/compiler/eval/eval.h"

/* ---- one product ---- */

/* The type to round an operand to first, where the program names one by `name`. */
static unsigned rounded_to(const struct tc_op *op, const char *name, unsigned elem)
{
	const char *text = name ? tc_attr_str(op, name) : NULL;
	unsigned to = text ? elem_parse(text, (unsigned)strlen(text)) : ELEM_INVALID;

	/* Several multiplications stand for a better one: nothing is lost. */
	if (tc_attr_int(op, "num_primitive_operations", 1) > 1 || to == ELEM_INVALID ||
	    elem_class(to) != ELEM_CLASS_FLOAT || elem_class(elem) != ELEM_CLASS_FLOAT)
		return elem;
	return to;
}

/* The kind of number of the sum: the widest of operands and result. */
static unsigned sum_type(const struct tc_op *op)
{
	unsigned best = op->results[0].type->elem;

	for (unsigned i = 0; i < 2; i++) {
		unsigned elem = tc_in(op, i)->type->elem;
		unsigned a = elem_class(elem), b = elem_class(best);

		if (a == ELEM_CLASS_UINT)
			a = ELEM_CLASS_SINT;
		if (b == ELEM_CLASS_UINT)
			b = ELEM_CLASS_SINT;
		if (a > b || (a == b && elem_bytes(elem) > elem_bytes(best)))
			best = elem;
	}
	return best;
}

/* An operand, its elements in hand and of the sum's type but not rounded to it. */
struct factor {
	const struct tc_type *type;
	struct num *x;
};

static struct factor take_factor(struct eval *e, const struct tc_op *op, unsigned i,
				 const char *precision)
{
	struct eval_array *a = tc_eval_in(e, op, i);
	unsigned from = a->type->elem, to = sum_type(op);
	unsigned rounded = rounded_to(op, precision, from);
	struct factor f = { .type = a->type };
	uint64_t room[2];

	f.x = tc_eval_scratch(e, a->type->count, sizeof(*f.x));
	for (int64_t k = 0; k < a->type->count; k++) {
		struct num x = tc_num_flush(from, tc_num_load(from, tc_eval_at(a, k)));

		if (rounded != from) {
			tc_num_store(rounded, room, x);
			x = tc_num_load(rounded, room);
		}
		f.x[k] = tc_num_convert(from, to, x);
	}
	return f;
}

static struct num product(unsigned cls, const struct factor *a, const int64_t *i,
			  const struct factor *b, const int64_t *k)
{
	return tc_num_mul(cls, a->x[tc_eval_linear(a->type, i)],
			  b->x[tc_eval_linear(b->type, k)]);
}

/* ---- dot_general ---- */

struct dot {
	struct factor lhs, rhs;
	const int64_t *lb, *rb, *lk, *rk;
	unsigned nb, nk;
	unsigned cls;
	int64_t sum_dim[TC_MAX_RANK], n_sum;
};

/* Puts the result's position into the operand's free dims, `from` on. */
static unsigned place_free(const struct tc_type *t, const int64_t *batch, unsigned nb,
			   const int64_t *sum, unsigned nk, const int64_t *idx,
			   unsigned from, int64_t *at)
{
	for (unsigned d = 0; d < t->rank; d++)
		if (!tc_eval_has(batch, nb, d) && !tc_eval_has(sum, nk, d))
			at[d] = idx[from++];
	return from;
}

static struct num dot_at(const struct dot *g, const int64_t *idx)
{
	int64_t l[TC_MAX_RANK], r[TC_MAX_RANK], k[TC_MAX_RANK] = { 0 };
	const struct tc_type *a = g->lhs.type, *b = g->rhs.type;
	struct num sum = { 0 };
	unsigned next;

	for (unsigned i = 0; i < g->nb; i++)
		l[g->lb[i]] = r[g->rb[i]] = idx[i];
	next = place_free(a, g->lb, g->nb, g->lk, g->nk, idx, g->nb, l);
	place_free(b, g->rb, g->nb, g->rk, g->nk, idx, next, r);
	for (int64_t n = 0; n < g->n_sum; n++) {
		for (unsigned i = 0; i < g->nk; i++)
			l[g->lk[i]] = r[g->rk[i]] = k[i];
		sum = tc_num_add(sum, product(g->cls, &g->lhs, l, &g->rhs, r));
		tc_eval_step(g->nk, g->sum_dim, k);
	}
	return sum;
}

void tc_eval_dot(struct eval *e, const struct tc_op *op)
{
	struct eval_array *out = tc_eval_out(e, op, 0);
	const struct tc_type *t = out->type;
	unsigned elem = sum_type(op);
	struct dot g = { .cls = elem_class(elem) };
	int64_t idx[TC_MAX_RANK] = { 0 };

	g.lhs = take_factor(e, op, 0, "lhs_precision_type");
	g.rhs = take_factor(e, op, 1, "rhs_precision_type");
	g.lb = tc_attr_ints(op, "lhs_batching_dimensions", &g.nb);
	g.rb = tc_attr_ints(op, "rhs_batching_dimensions", &g.nb);
	g.lk = tc_attr_ints(op, "lhs_contracting_dimensions", &g.nk);
	g.rk = tc_attr_ints(op, "rhs_contracting_dimensions", &g.nk);
	for (unsigned i = 0; i < g.nk; i++)
		g.sum_dim[i] = g.lhs.type->dim[g.lk[i]];
	if (t->count)
		g.n_sum = tc_eval_count(g.nk, g.sum_dim);
	for (int64_t i = 0; i < t->count; i++) {
		tc_num_store(t->elem, tc_eval_at(out, i), tc_num_flush(t->elem,
			     tc_num_convert(elem, t->elem, dot_at(&g, idx))));
		tc_eval_step(t->rank, t->dim, idx);
	}
	tc_eval_release(e, g.lhs.x);
	tc_eval_release(e, g.rhs.x);
}

/* ---- convolution ---- */

struct conv {
	struct factor in, kernel;
	unsigned cls, n;		/* n spatial dims */
	const int64_t *is, *ks, *os;	/* spatial dims of input, kernel, result */
	const int64_t *stride, *pad, *ld, *rd, *flip;
	int64_t ib, inf, ki, ko, ob, of, feature_groups, batch_groups;
	int64_t window[TC_MAX_RANK], n_window;
};

static struct conv read_conv(struct eval *e, const struct tc_op *op)
{
	struct conv v = { .cls = elem_class(sum_type(op)) };
	unsigned n;

	v.in = take_factor(e, op, 0, NULL);
	v.kernel = take_factor(e, op, 1, NULL);
	v.is = tc_attr_ints(op, "input_spatial_dimensions", &v.n);
	v.ks = tc_attr_ints(op, "kernel_spatial_dimensions", &n);
	v.os = tc_attr_ints(op, "output_spatial_dimensions", &n);
	v.stride = tc_attr_ints(op, "window_strides", &n);
	v.pad = tc_attr_ints(op, "padding", &n);
	v.ld = tc_attr_ints(op, "lhs_dilation", &n);
	v.rd = tc_attr_ints(op, "rhs_dilation", &n);
	v.flip = tc_attr_ints(op, "window_reversal", &n);
	v.ib = tc_attr_int(op, "input_batch_dimension", 0);
	v.inf = tc_attr_int(op, "input_feature_dimension", 0);
	v.ki = tc_attr_int(op, "kernel_input_feature_dimension", 0);
	v.ko = tc_attr_int(op, "kernel_output_feature_dimension", 0);
	v.ob = tc_attr_int(op, "output_batch_dimension", 0);
	v.of = tc_attr_int(op, "output_feature_dimension", 0);
	v.feature_groups = tc_attr_int(op, "feature_group_count", 1);
	v.batch_groups = tc_attr_int(op, "batch_group_count", 1);
	for (unsigned d = 0; d < v.n; d++)
		v.window[d] = v.kernel.type->dim[v.ks[d]];
	return v;
}

/* Sets the spatial dims of input and kernel for one place k of the window around the
 * result's position. False: that place is padding, or a hole of the dilated input. */
static bool place_window(const struct conv *v, const int64_t *idx, const int64_t *k,
			 int64_t *in, int64_t *ker)
{
	for (unsigned d = 0; d < v->n; d++) {
		__int128 at = (__int128)idx[v->os[d]] * v->stride[d] +
			      (__int128)k[d] * v->rd[d] - v->pad[2 * d];

		if (at < 0 || at % v->ld[d] ||
		    at / v->ld[d] >= v->in.type->dim[v->is[d]])
			return false;
		in[v->is[d]] = (int64_t)(at / v->ld[d]);
		ker[v->ks[d]] = v->flip[d] ? v->window[d] - 1 - k[d] : k[d];
	}
	return true;
}

static struct num conv_at(const struct conv *v, const int64_t *idx)
{
	const struct tc_type *a = v->in.type, *b = v->kernel.type;
	int64_t in[TC_MAX_RANK], ker[TC_MAX_RANK], k[TC_MAX_RANK] = { 0 };
	int64_t features = b->dim[v->ki], o = idx[v->of];
	int64_t group = o / (b->dim[v->ko] / v->feature_groups);
	int64_t part = o / (b->dim[v->ko] / v->batch_groups);
	struct num sum = { 0 };

	in[v->ib] = part * (a->dim[v->ib] / v->batch_groups) + idx[v->ob];
	ker[v->ko] = o;
	for (int64_t w = 0; w < v->n_window; w++) {
		bool is_inside = place_window(v, idx, k, in, ker);

		for (int64_t c = 0; is_inside && c < features; c++) {
			in[v->inf] = group * features + c;
			ker[v->ki] = c;
			sum = tc_num_add(sum, product(v->cls, &v->in, in, &v->kernel, ker));
		}
		tc_eval_step(v->n, v->window, k);
	}
	return sum;
}

void tc_eval_convolution(struct eval *e, const struct tc_op *op)
{
	struct eval_array *out = tc_eval_out(e, op, 0);
	const struct tc_type *t = out->type;
	int64_t idx[TC_MAX_RANK] = { 0 };
	struct conv v;

	v = read_conv(e, op);
	/* an empty kernel or input adds nothing */
	if (t->count && v.in.type->count && v.kernel.type->count)
		v.n_window = tc_eval_count(v.n, v.window);
	for (int64_t i = 0; i < t->count; i++) {
		tc_num_store(t->elem, tc_eval_at(out, i), tc_num_flush(t->elem,
			     tc_num_convert(sum_type(op), t->elem, conv_at(&v, idx))));
		tc_eval_step(t->rank, t->dim, idx);
	}
	tc_eval_release(e, v.in.x);
	tc_eval_release(e, v.kernel.x);
}
