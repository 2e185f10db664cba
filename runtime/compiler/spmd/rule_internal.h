/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TC_SPMD_RULE_INTERNAL_H
#define TC_SPMD_RULE_INTERNAL_H
/*
 * Making rules: rule.c has the table, below it are rule_shape.c (ops that move elements or
 * combine them by place) and rule_index.c (indices and windows), below these rule_build.c.
 * Private to spmd/.
 */
#include "runtime/compiler/spmd/rule.h"

/* A rule in the making. Tensors by number: operands, then results. */
struct rule_build {
	struct tc_ctx *c;
	const struct tc_op *op;
	struct spmd_rule *r;
};

/* ---- rule_build.c ---- */
const struct tc_type *rule_type(const struct rule_build *b, unsigned tensor);
static inline unsigned rule_result(const struct rule_build *b, unsigned i)
{
	return b->op->n_operands + i;
}
unsigned rule_factor(struct rule_build *b, int64_t size, enum spmd_factor_kind kind);
/* Puts the factor at the minor end of the tensor's dim. */
void rule_put(struct rule_build *b, unsigned tensor, unsigned dim, unsigned factor);
/* A factor of the dim's own. */
unsigned rule_own(struct rule_build *b, unsigned tensor, unsigned dim,
		  enum spmd_factor_kind kind);
/* Puts the factor at that dim of all tensors from `first` on that have it. */
void rule_put_all(struct rule_build *b, unsigned first, unsigned dim, unsigned factor);
/* Gives each dim that has no factor one of its own. */
void rule_fill(struct rule_build *b);
int64_t rule_gcd(int64_t a, int64_t b);

/* Gives the factors of an op to the rule, which has none. */
typedef void rule_make(struct rule_build *b);
/* ---- rule_shape.c ---- */
rule_make rule_all_gather, rule_all_reduce, rule_all_to_all, rule_bitcast,
	  rule_broadcast, rule_concatenate, rule_dot, rule_fft, rule_matrices, rule_pad,
	  rule_pointwise, rule_random_bits, rule_reduce, rule_reduce_scatter, rule_reshape,
	  rule_reverse, rule_slice, rule_sort, rule_top_k, rule_transpose;
/* ---- rule_index.c ---- */
rule_make rule_dynamic_slice, rule_dynamic_update, rule_reduce_window,
	  rule_select_and_scatter, rule_convolution, rule_gather, rule_scatter;

#endif
