/* SPDX-License-Identifier: Apache-2.0 */
/* What rules are made with. */
#include <string.h>

#include "runtime/compiler/spmd/rule_internal.h"

const struct tc_type *rule_type(const struct rule_build *b, unsigned tensor)
{
	return tensor < b->op->n_operands ? tc_in(b->op, tensor)->type :
	       tc_out(b->op, tensor - b->op->n_operands)->type;
}

unsigned rule_factor(struct rule_build *b, int64_t size, enum spmd_factor_kind kind)
{
	struct spmd_rule *r = b->r;
	uint32_t room = r->room ? 2 * r->room : 8;
	struct spmd_factor *grown;

	if (r->n_factors == r->room) {
		grown = arena_array(&b->c->arena, room, sizeof(*grown));
		if (r->n_factors)
			memcpy(grown, r->factor, r->n_factors * sizeof(*grown));
		r->factor = grown;
		r->room = room;
	}
	r->factor[r->n_factors] = (struct spmd_factor){ .size = size, .kind = (uint8_t)kind };
	return r->n_factors++;
}

void rule_put(struct rule_build *b, unsigned tensor, unsigned dim, unsigned factor)
{
	struct spmd_split *s = &b->r->tensor[tensor][dim];

	if (s->n < TC_MAX_RANK)
		s->factor[s->n++] = (uint16_t)factor;
}

unsigned rule_own(struct rule_build *b, unsigned tensor, unsigned dim,
		  enum spmd_factor_kind kind)
{
	unsigned f = rule_factor(b, rule_type(b, tensor)->dim[dim], kind);

	rule_put(b, tensor, dim, f);
	return f;
}

void rule_put_all(struct rule_build *b, unsigned first, unsigned dim, unsigned factor)
{
	for (unsigned t = first; t < b->r->n_tensors; t++)
		if (dim < rule_type(b, t)->rank)
			rule_put(b, t, dim, factor);
}

void rule_fill(struct rule_build *b)
{
	for (unsigned t = 0; t < b->r->n_tensors; t++)
		for (unsigned d = 0; d < rule_type(b, t)->rank; d++)
			if (!b->r->tensor[t][d].n)
				rule_own(b, t, d, SPMD_PASS);
}

int64_t rule_gcd(int64_t a, int64_t b)
{
	while (b) {
		int64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}
