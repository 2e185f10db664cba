/* SPDX-License-Identifier: Apache-2.0 */
/* Products: dot_general in all orders of dims and with other types for the result, convolutions. */
#include "tests/fuzz_ops/gen.h"

#include <string.h>

static bool is_factor(const struct tc_value *v, const void *arg)
{
	unsigned elem = v->type->elem;

	(void)arg;
	return !v->type->is_tuple && v->type->rank <= 4 && elem != ELEM_PRED &&
	       elem != ELEM_TOKEN && (gen_is_int(elem) || gen_fact(v)->kind == FACT_WHOLE);
}

/* The type that sums are given in. */
static unsigned result_elem(struct gen *g, unsigned elem)
{
	if (!gen_one_in(g, 4))
		return elem;
	if (gen_is_int(elem))
		return elem_bits(elem) <= 16 && elem_class(elem) == ELEM_CLASS_SINT ? ELEM_S32 :
		       elem_bits(elem) <= 16 ? ELEM_U32 : elem;
	return gen_is_float(elem) && elem_bits(elem) <= 16 ? ELEM_F32 : elem;
}

static bool of_products(unsigned elem, struct fact a, struct fact b, int64_t n,
			struct fact *out)
{
	if (gen_is_int(elem)) {
		*out = FACT(FACT_BITS, false, 0, 0);
		return true;
	}
	if (!gen_fact_of_binary(TC_MULTIPLY, elem, a, b, out))
		return false;
	return gen_fact_of_sum(*out, elem, n > 0 ? n : 1, out);
}

struct dot {
	int64_t lb[4], rb[4], lk[4], rk[4];
	unsigned n_b, n_k;
	int64_t k;	/* products of a sum */
};

/* The other factor: shares the batch and contracting dims of `a`, in an order of its own. */
static const struct tc_type *other_factor(struct gen *g, const struct tc_type *a, struct dot *x)
{
	unsigned shared, rank, free = gen_below(g, 3);
	int64_t order[4], place[8], dim[8];

	shared = gen_below(g, a->rank + 1u);
	if (shared == 0 && a->rank && !gen_one_in(g, 6))
		shared = 1;
	x->n_b = gen_one_in(g, 2) ? 0 : gen_below(g, shared + 1);
	x->n_k = shared - x->n_b;
	rank = shared + free;
	gen_sample(g, shared, a->rank, order);
	gen_sample(g, shared, rank, place);
	for (unsigned d = 0; d < rank; d++)
		dim[d] = gen_dim(g);
	x->k = 1;
	for (unsigned i = 0; i < shared; i++) {
		dim[place[i]] = a->dim[order[i]];
		if (i < x->n_b) {
			x->lb[i] = order[i];
			x->rb[i] = place[i];
		} else {
			x->lk[i - x->n_b] = order[i];
			x->rk[i - x->n_b] = place[i];
			x->k *= a->dim[order[i]];
		}
	}
	return rank <= 4 && gen_is_small(g, rank, dim) ? gen_type(g, a->elem, rank, dim) : NULL;
}

static bool is_among(const int64_t *list, unsigned n, int64_t x)
{
	for (unsigned i = 0; i < n; i++)
		if (list[i] == x)
			return true;
	return false;
}

static unsigned result_dims(const struct dot *x, const struct tc_type *a,
			    const struct tc_type *b, int64_t *dim)
{
	unsigned n = 0;

	for (unsigned i = 0; i < x->n_b; i++)
		dim[n++] = a->dim[x->lb[i]];
	for (unsigned d = 0; d < a->rank; d++)
		if (!is_among(x->lb, x->n_b, d) && !is_among(x->lk, x->n_k, d))
			dim[n++] = a->dim[d];
	for (unsigned d = 0; d < b->rank; d++)
		if (!is_among(x->rb, x->n_b, d) && !is_among(x->rk, x->n_k, d))
			dim[n++] = b->dim[d];
	return n;
}

bool gen_dot(struct gen *g)
{
	static const int64_t precision[2] = { TC_PREC_DEFAULT, TC_PREC_DEFAULT };
	struct tc_value *in[2] = { gen_pick(g, is_factor, NULL) };
	const struct tc_type *b;
	struct dot x = { .k = 1 };
	int64_t dim[8], n = 1;
	unsigned rank, to;
	struct tc_op *op;
	struct fact f;

	if (!in[0])
		return false;
	b = other_factor(g, in[0]->type, &x);
	if (!b || b->count > g->most)
		return false;
	rank = result_dims(&x, in[0]->type, b, dim);
	for (unsigned d = 0; d < rank; d++)
		n *= dim[d];
	if (rank > GEN_RANK || !gen_is_small(g, rank, dim) || n * x.k > 3000000)
		return false;
	in[1] = gen_value(g, b, gen_any_fact(g, b->elem));
	to = result_elem(g, b->elem);
	if (!is_factor(in[1], NULL) ||
	    !of_products(to, *gen_fact(in[0]), *gen_fact(in[1]), x.k, &f))
		return false;
	if (!x.k)
		gen_not_for_jax(g);
	op = gen_op1(g, TC_DOT_GENERAL, 2, in, gen_type(g, to, rank, dim), f)->def;
	tc_set_ints(g->c, op, "lhs_batching_dimensions", x.lb, x.n_b);
	tc_set_ints(g->c, op, "rhs_batching_dimensions", x.rb, x.n_b);
	tc_set_ints(g->c, op, "lhs_contracting_dimensions", x.lk, x.n_k);
	tc_set_ints(g->c, op, "rhs_contracting_dimensions", x.rk, x.n_k);
	tc_set_ints(g->c, op, "precision_config", precision, 2);
	return true;
}

/* ---- convolution ---- */

struct conv {
	unsigned n;	/* spatial dims */
	int64_t size[3], kernel[3], out[3];
	int64_t stride[3], pad[6], ld[3], rd[3], reversal[3];
	int64_t batch, features, per_group, outputs, fg, bg;
};

static bool choose_window(struct gen *g, struct conv *x)
{
	for (unsigned i = 0; i < x->n; i++) {
		int64_t padded, wide;

		bool is_long = x->n == 1 && gen_one_in(g, 4);

		x->size[i] = gen_between(g, 1, is_long ? 50 : 9);
		x->kernel[i] = gen_between(g, 1, is_long ? 25 : 4);
		x->stride[i] = gen_one_in(g, 3) ? gen_between(g, 1, 3) : 1;
		x->ld[i] = gen_one_in(g, 4) ? gen_between(g, 1, 3) : 1;
		x->rd[i] = gen_one_in(g, 4) ? gen_between(g, 1, 3) : 1;
		x->pad[2 * i] = gen_one_in(g, 2) ? gen_between(g, -1, 3) : 0;
		x->pad[2 * i + 1] = gen_one_in(g, 2) ? gen_between(g, -1, 3) : 0;
		x->reversal[i] = gen_one_in(g, 6);
		padded = (x->size[i] - 1) * x->ld[i] + 1 + x->pad[2 * i] + x->pad[2 * i + 1];
		wide = (x->kernel[i] - 1) * x->rd[i] + 1;
		if (padded < 0)
			return false;
		x->out[i] = padded < wide ? 0 : (padded - wide) / x->stride[i] + 1;
	}
	return true;
}

static void choose_features(struct gen *g, struct conv *x)
{
	x->fg = gen_one_in(g, 3) ? gen_between(g, 1, 4) : 1;
	x->bg = x->fg == 1 && gen_one_in(g, 6) ? 2 : 1;
	x->per_group = gen_one_in(g, 3) ? 1 : gen_between(g, 1, gen_one_in(g, 4) ? 24 : 5);
	x->features = x->per_group * x->fg;
	x->outputs = gen_between(g, 1, 4) * x->fg * x->bg;
	x->batch = gen_between(g, 1, 3) * x->bg;
}

/* A permutation of dims: first, second, spatial; and the shape in that order. */
static const struct tc_type *laid_out(struct gen *g, unsigned elem, int64_t first,
				      int64_t second, const int64_t *spatial, unsigned n,
				      int64_t *at)
{
	int64_t dim[5];

	gen_sample(g, n + 2, n + 2, at);
	dim[at[0]] = first;
	dim[at[1]] = second;
	for (unsigned i = 0; i < n; i++)
		dim[at[2 + i]] = spatial[i];
	return gen_type(g, elem, n + 2, dim);
}

bool gen_convolution(struct gen *g)
{
	static const int64_t precision[2] = { TC_PREC_DEFAULT, TC_PREC_DEFAULT };
	unsigned elem = gen_elem(g), to = result_elem(g, elem);
	struct conv x = { .n = gen_below(g, 3) + (unsigned)gen_one_in(g, 3) };
	int64_t a[5], b[5], o[5], sum = 1;
	const struct tc_type *t[3];
	struct tc_value *in[2];
	struct tc_op *op;
	struct fact f, small = FACT(FACT_BITS, false, 0, 0);

	if (elem == ELEM_PRED || (!gen_is_int(elem) && !fact_reach(elem)) ||
	    !choose_window(g, &x))
		return false;
	choose_features(g, &x);
	if (!gen_is_int(elem))
		small = FACT(FACT_WHOLE, false, -1, fact_reach(elem) > 100 ? 2 : 1);
	t[0] = laid_out(g, elem, x.batch, x.features, x.size, x.n, a);
	t[1] = laid_out(g, elem, x.per_group, x.outputs, x.kernel, x.n, b);
	t[2] = laid_out(g, to, x.batch / x.bg, x.outputs, x.out, x.n, o);
	for (unsigned i = 0; i < x.n; i++)
		sum *= x.kernel[i];
	if (t[0]->count > g->most || t[1]->count > g->most || t[2]->count > g->most ||
	    !of_products(to, small, small, sum * x.per_group, &f))
		return false;
	in[0] = gen_value(g, t[0], small);
	in[1] = gen_value(g, t[1], small);
	if (gen_is_int(elem) && in[0]->def && in[0]->def->op == TC_CONSTANT && in[1]->def &&
	    in[1]->def->op == TC_CONSTANT)
		gen_not_for_jax(g);
	op = gen_op1(g, TC_CONVOLUTION, 2, in, t[2], f)->def;
	tc_set_int(g->c, op, "input_batch_dimension", TC_ATTR_INT, a[0]);
	tc_set_int(g->c, op, "input_feature_dimension", TC_ATTR_INT, a[1]);
	tc_set_ints(g->c, op, "input_spatial_dimensions", a + 2, x.n);
	tc_set_int(g->c, op, "kernel_input_feature_dimension", TC_ATTR_INT, b[0]);
	tc_set_int(g->c, op, "kernel_output_feature_dimension", TC_ATTR_INT, b[1]);
	tc_set_ints(g->c, op, "kernel_spatial_dimensions", b + 2, x.n);
	tc_set_int(g->c, op, "output_batch_dimension", TC_ATTR_INT, o[0]);
	tc_set_int(g->c, op, "output_feature_dimension", TC_ATTR_INT, o[1]);
	tc_set_ints(g->c, op, "output_spatial_dimensions", o + 2, x.n);
	tc_set_ints(g->c, op, "window_strides", x.stride, x.n);
	tc_set_ints(g->c, op, "padding", x.pad, 2 * x.n);
	tc_set_ints(g->c, op, "lhs_dilation", x.ld, x.n);
	tc_set_ints(g->c, op, "rhs_dilation", x.rd, x.n);
	tc_set_ints(g->c, op, "window_reversal", x.reversal, x.n);
	tc_set_int(g->c, op, "feature_group_count", TC_ATTR_INT, x.fg);
	tc_set_int(g->c, op, "batch_group_count", TC_ATTR_INT, x.bg);
	tc_set_ints(g->c, op, "precision_config", precision, 2);
	return true;
}
