/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Custom calls by which JAX names algorithms on platforms other than its own (qr.c, eigh.c,
 * svd.c), exact top-k for ApproxTopK, and nothing for dce_sink. Any other target stays and
 * is refused by name when code is emitted.
 */
#include <string.h>

#include "runtime/compiler/lower/linalg.h"

void tc_decompose_custom_call(struct tc_ctx *c, struct tc_op *op)
{
	const char *target = tc_attr_str(op, "call_target_name");

	if (!strcmp(target, "Qr"))
		tc_decompose_qr(c, op);
	else if (!strcmp(target, "ProductOfElementaryHouseholderReflectors"))
		tc_decompose_householder(c, op);
	else if (!strcmp(target, "Eigh"))
		tc_decompose_eigh(c, op);
	else if (!strcmp(target, "tessera.svd"))
		tc_decompose_svd(c, op);
	else if (!strcmp(target, "dce_sink") && !op->n_results)
		tc_erase(op);	/* it kept its operand from other compilers */
}

/*
 * ApproxTopK: values and their numbers sorted by the comparator that the call names, and
 * the first k of them: exact is approximate enough.
 */
void tc_decompose_top_k(struct tc_ctx *c, struct tc_op *op)
{
	const char *name = tc_attr_str(op, "called_computations");
	const struct tc_op *f = name ? tc_find_func(c, name) : NULL;
	const struct tc_attr *config = tc_attr(op, "attributes");
	const struct tc_type *t = op->n_operands == 4 ? tc_in(op, 0)->type : NULL, *types[2];
	struct tc_value *in[2], *yield, *args[4];
	struct tc_build b = tc_build_at(c, op), inner = { .c = c, .where = op->where };
	int64_t dim = -1, k = -1;
	struct tc_op *sort;

	for (unsigned i = 0; config && i < config->n; i++) {
		if (!strcmp(config->attrs[i].key, "reduction_dim"))
			dim = config->attrs[i].i;
		if (!strcmp(config->attrs[i].key, "top_k"))
			k = config->attrs[i].i;
	}
	if (!t || op->n_results != 2 || !f || dim < 0 || dim >= t->rank || k < 0 ||
	    k > t->dim[dim] || tc_in(op, 1)->type->is_tuple ||
	    tc_in(op, 1)->type != tc_with_elem(c, t, (enum elem)tc_in(op, 1)->type->elem) ||
	    f->regions[0].block->n_args != 4 || f->regions[0].block->last->n_operands != 1)
		tc_fail(c, ERR_INVALID_ARGUMENT, op, "ApproxTopK takes values, their numbers and "
			"a comparator; top_k is %lld, reduction_dim %lld", (long long)k,
			(long long)dim);
	/* A call that is not to bring its candidates down to k says by its type how many. */
	if (tc_out(op, 0)->type->rank == t->rank && tc_out(op, 0)->type->dim[dim] > k &&
	    tc_out(op, 0)->type->dim[dim] <= t->dim[dim])
		k = tc_out(op, 0)->type->dim[dim];
	for (unsigned i = 0; i < 2; i++) {
		in[i] = tc_in(op, i);
		types[i] = in[i]->type;
	}
	sort = tc_new(c, TC_SORT, 2, in, 2, types, 1);
	tc_set_int(c, sort, "dimension", TC_ATTR_INT, dim);
	tc_set_int(c, sort, "is_stable", TC_ATTR_BOOL, 1);
	inner.block = tc_new_block(c, &sort->regions[0]);
	for (unsigned i = 0; i < 4; i++)
		args[i] = tc_new_arg(c, inner.block,
				     tc_tensor(c, (enum elem)types[i / 2]->elem, 0, NULL));
	yield = tc_build_region(&inner, &f->regions[0], args);
	if (yield->type != tc_tensor(c, ELEM_PRED, 0, NULL))
		tc_fail(c, ERR_INVALID_ARGUMENT, op, "its comparator yields no truth value");
	tc_build_return(&inner, 1, &yield);
	tc_build_place(&b, sort);
	for (unsigned i = 0; i < 2; i++) {
		struct tc_value *head = tc_build_part(&b, tc_out(sort, i), (unsigned)dim, 0, k);

		if (head->type != tc_out(op, i)->type)
			tc_fail(c, ERR_INVALID_ARGUMENT, op, "result %u has another type", i);
		tc_replace_uses(tc_out(op, i), head);
	}
	tc_erase(op);
}
