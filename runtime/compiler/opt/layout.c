/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results of main whose order in memory the program leaves to us (layout "auto"): what is an
 * argument turned about lies as the argument does, so that nothing has to be turned.
 *
 * Requires: main is the only function. Ensures: no layout is "auto". A result in the memory of
 * a donated argument stays row-major, and so do arguments.
 */
#include <stdio.h>
#include <string.h>

#include "runtime/compiler/passes.h"

static bool is_donated(const struct tc_op *func, const struct tc_block *main, unsigned result)
{
	for (unsigned i = 0; func->arg_info && i < main->n_args; i++)
		if (func->arg_info[i].alias == (int32_t)result)
			return true;
	return false;
}

/* at[d]: the dim of what v is made of, element by element, that v's dim d is. That lies
 * row-major, as far as it is known. */
static void find_source(const struct tc_value *v, uint8_t *at)
{
	for (unsigned d = 0; d < v->type->rank; d++)
		at[d] = (uint8_t)d;
	while (v->def) {
		const struct tc_op *op = v->def;
		unsigned n;
		const int64_t *turned = tc_attr_ints(op, "permutation", &n);

		if (op->op == TC_TRANSPOSE)
			for (unsigned d = 0; d < n; d++)
				at[d] = (uint8_t)turned[at[d]];
		else if (!tc_has_trait(op, 'e') || !op->n_operands ||
			 tc_in(op, 0)->type->rank != v->type->rank)
			return;
		v = tc_in(op, 0);
	}
}

/* The text that says so, NULL: row-major. */
static const char *choose(struct tc_ctx *c, const struct tc_value *v)
{
	uint8_t at[TC_MAX_RANK], from[TC_MAX_RANK];
	uint32_t rank = v->type->rank;
	bool is_turned = false;
	char text[4 * TC_MAX_RANK + 3], *p = text;

	find_source(v, at);
	for (unsigned d = 0; d < rank; d++) {
		is_turned |= at[d] != d;
		from[at[d]] = (uint8_t)d;
	}
	if (!is_turned)
		return NULL;
	*p++ = '{';
	for (unsigned k = rank; k-- > 0;)
		p += sprintf(p, "%u%s", from[k], k ? "," : "}");
	return tc_key(c, text, (size_t)(p - text));
}

void tc_pass_layout(struct tc_ctx *c)
{
	struct tc_block *main = tc_main(c);
	struct tc_op *func = main->region->parent;

	for (unsigned i = 0; func->res_info && i < main->last->n_operands; i++) {
		const char **text = &func->res_info[i].layout;
		const struct tc_value *v = tc_in(main->last, i);

		if (*text && !strcmp(*text, "auto"))
			*text = is_donated(func, main, i) || v->type->is_tuple ||
				v->type->elem == ELEM_TOKEN ? NULL : choose(c, v);
	}
}
