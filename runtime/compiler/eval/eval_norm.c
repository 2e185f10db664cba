/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch_norm_* of the reference evaluator, from the formulas: mean and (biased)
 * variance over all dims but the feature's, in double. ir_verify.c knows no rule for
 * them, so their shapes are checked here.
 */
#include <inttypes.h>
#include <math.h>

#include "runtime/compiler/eval/eval.h"

struct norm {
	struct eval_array *x;
	int64_t features, inner;	/* an element's feature: i / inner % features */
	double n;			/* elements of a feature */
	double epsilon;
};

/* Operands 1.. but `like` are one number a feature; `like` (0: none) is as the first. */
static struct norm check_norm(struct eval *e, const struct tc_op *op, unsigned like)
{
	const struct tc_type *t = tc_in(op, 0)->type;
	const struct tc_attr *epsilon = tc_attr(op, "epsilon");
	int64_t d = tc_attr_int(op, "feature_index", -1);
	struct norm m = { .x = tc_eval_in(e, op, 0), .inner = 1 };

	if (elem_class(t->elem) != ELEM_CLASS_FLOAT)
		tc_eval_refuse(e, t->elem);
	if (d < 0 || d >= t->rank)
		EVAL_BAD(e, "feature_index is %" PRId64 " of %u", d, t->rank);
	if (epsilon->type->count != 1 ||
	    elem_class(epsilon->type->elem) != ELEM_CLASS_FLOAT)
		EVAL_BAD(e, "epsilon is no number");
	m.features = t->dim[d];
	m.epsilon = tc_num_load(epsilon->type->elem, epsilon->data).re;
	m.inner = tc_eval_count(t->rank - (unsigned)d - 1, t->dim + d + 1);
	m.n = t->count ? (double)(t->count / m.features) : 0;
	for (unsigned i = 1; i < op->n_operands + op->n_results; i++) {
		bool is_result = i >= op->n_operands;
		const struct tc_type *p = is_result ?
			op->results[i - op->n_operands].type : tc_in(op, i)->type;
		bool is_whole = is_result ? i == op->n_operands : like && i == like;

		if (is_whole ? p != t : p->elem != t->elem || p->rank != 1 ||
		    p->dim[0] != m.features)
			EVAL_BAD(e, "%s %u has another shape than it should",
				 is_result ? "result" : "operand",
				 is_result ? i - op->n_operands : i);
	}
	return m;
}

static double load(struct eval_array *a, int64_t i)
{
	unsigned elem = a->type->elem;

	return tc_num_flush(elem, tc_num_load(elem, tc_eval_at(a, i))).re;
}

static void store(struct eval_array *a, int64_t i, double x)
{
	unsigned elem = a->type->elem;

	tc_num_store(elem, tc_eval_at(a, i), tc_num_flush(elem, (struct num){ .re = x }));
}

static int64_t feature(const struct norm *m, int64_t i)
{
	return i / m->inner % m->features;
}

void tc_eval_norm_inference(struct eval *e, const struct tc_op *op)
{
	struct norm m = check_norm(e, op, 0);
	struct eval_array *out = tc_eval_out(e, op, 0);
	struct eval_array *scale = tc_eval_in(e, op, 1), *offset = tc_eval_in(e, op, 2);
	struct eval_array *mean = tc_eval_in(e, op, 3), *variance = tc_eval_in(e, op, 4);

	for (int64_t i = 0; i < out->type->count; i++) {
		int64_t f = feature(&m, i);

		store(out, i, (load(m.x, i) - load(mean, f)) /
			      sqrt(load(variance, f) + m.epsilon) * load(scale, f) +
			      load(offset, f));
	}
}

void tc_eval_norm_training(struct eval *e, const struct tc_op *op)
{
	struct norm m = check_norm(e, op, 0);
	struct eval_array *out = tc_eval_out(e, op, 0);
	struct eval_array *scale = tc_eval_in(e, op, 1), *offset = tc_eval_in(e, op, 2);
	double *mean = tc_eval_scratch(e, m.features, sizeof(*mean));
	double *variance = tc_eval_scratch(e, m.features, sizeof(*variance));

	/* Sums first: one division rounds less than one for each element. */
	for (int64_t i = 0; i < out->type->count; i++)
		mean[feature(&m, i)] += load(m.x, i);
	for (int64_t f = 0; f < m.features; f++)
		mean[f] /= m.n;
	for (int64_t i = 0; i < out->type->count; i++) {
		double d = load(m.x, i) - mean[feature(&m, i)];

		variance[feature(&m, i)] += d * d;
	}
	for (int64_t f = 0; f < m.features; f++)
		variance[f] /= m.n;
	for (int64_t i = 0; i < out->type->count; i++) {
		int64_t f = feature(&m, i);

		store(out, i, (load(m.x, i) - mean[f]) / sqrt(variance[f] + m.epsilon) *
			      load(scale, f) + load(offset, f));
	}
	for (unsigned r = 1; r < 3; r++) {
		struct eval_array *a = tc_eval_out(e, op, r);

		/* of no elements there is no mean */
		for (int64_t f = 0; f < m.features; f++)
			store(a, f, m.n > 0 ? (r == 1 ? mean : variance)[f] : NAN);
	}
	tc_eval_release(e, variance);
	tc_eval_release(e, mean);
}

void tc_eval_norm_grad(struct eval *e, const struct tc_op *op)
{
	struct norm m = check_norm(e, op, 4);
	struct eval_array *out = tc_eval_out(e, op, 0);
	struct eval_array *grad_scale = tc_eval_out(e, op, 1);
	struct eval_array *grad_offset = tc_eval_out(e, op, 2);
	struct eval_array *scale = tc_eval_in(e, op, 1), *mean = tc_eval_in(e, op, 2);
	struct eval_array *variance = tc_eval_in(e, op, 3), *grad = tc_eval_in(e, op, 4);
	double *sum = tc_eval_scratch(e, m.features, sizeof(*sum));	/* of grad */
	double *moment = tc_eval_scratch(e, m.features, sizeof(*moment)); /* grad * centred */

	for (int64_t i = 0; i < out->type->count; i++) {
		int64_t f = feature(&m, i);

		sum[f] += load(grad, i);
		moment[f] += load(grad, i) * (load(m.x, i) - load(mean, f));
	}
	for (int64_t i = 0; i < out->type->count; i++) {
		int64_t f = feature(&m, i);
		double power = load(variance, f) + m.epsilon;
		double centred = load(m.x, i) - load(mean, f);

		store(out, i, load(scale, f) / sqrt(power) *
			      (load(grad, i) - sum[f] / m.n -
			       centred * moment[f] / (power * m.n)));
	}
	for (int64_t f = 0; f < m.features; f++) {
		store(grad_scale, f, moment[f] / sqrt(load(variance, f) + m.epsilon));
		store(grad_offset, f, sum[f]);
	}
	tc_eval_release(e, moment);
	tc_eval_release(e, sum);
}
