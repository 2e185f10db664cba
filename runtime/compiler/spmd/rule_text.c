/* SPDX-License-Identifier: Apache-2.0 */
/* Rules that a program brings with a call, read from their text. */
#include <inttypes.h>
#include <string.h>

#include "runtime/compiler/spmd/rule.h"
#include "runtime/compiler/spmd/text.h"

#define MAX_FACTORS 256u

struct reading {
	struct spmd_text text;
	struct spmd_rule *r;
	uint32_t most;		/* above all factors that tensors name */
};

static const struct tc_type *type_of(const struct tc_op *op, uint32_t t)
{
	return t < op->n_operands ? tc_in(op, t)->type : tc_out(op, t - op->n_operands)->type;
}

/* Factors of one dim; `used` are those of its tensor, which has each once. */
static void read_dim(struct reading *k, struct spmd_split *s, bool *used)
{
	if (!(*k->text.p >= '0' && *k->text.p <= '9'))
		return;
	do {
		uint32_t f = spmd_number(&k->text);

		if (f >= MAX_FACTORS || used[f] || s->n == TC_MAX_RANK)
			spmd_bad(&k->text, "factor that its tensor has once");
		used[f] = true;
		s->factor[s->n++] = (uint16_t)f;
		k->most = f >= k->most ? f + 1 : k->most;
	} while (spmd_take(&k->text, "."));
}

static void read_tensor(struct reading *k, uint32_t t)
{
	const struct tc_type *type = type_of(k->text.op, t);
	struct tc_ctx *c = k->text.s->c;
	bool used[MAX_FACTORS] = { 0 };

	if (type->is_tuple)
		spmd_bad(&k->text, "rule for a tuple");
	k->r->rank[t] = type->rank;
	k->r->tensor[t] = arena_array(&c->arena, type->rank, sizeof(**k->r->tensor));
	spmd_expect(&k->text, "[");
	for (uint32_t d = 0; d < type->rank; d++) {
		if (d)
			spmd_expect(&k->text, ",");
		read_dim(k, &k->r->tensor[t][d], used);
	}
	spmd_expect(&k->text, "]");
}

static void read_sizes(struct reading *k)
{
	struct spmd_rule *r = k->r;

	r->room = MAX_FACTORS;
	r->factor = arena_array(&k->text.s->c->arena, r->room, sizeof(*r->factor));
	while (*k->text.p >= '0' && *k->text.p <= '9') {
		if (r->n_factors == MAX_FACTORS)
			spmd_bad(&k->text, "end of its factors, at most 256");
		r->factor[r->n_factors++].size = spmd_number(&k->text);
		if (!spmd_take(&k->text, ","))
			break;
	}
	if (r->n_factors < k->most)
		spmd_bad(&k->text, "size of each factor");
}

/* Of the factors in a list behind the letter. */
static void read_kind(struct reading *k, const char *letter, int kind)
{
	if (!spmd_take(&k->text, letter))
		return;
	do {
		uint32_t f = spmd_number(&k->text);

		if (f >= k->r->n_factors)
			spmd_bad(&k->text, "factor that there is");
		if (kind < 0)
			k->r->factor[f].is_blocked = true;
		else
			k->r->factor[f].kind = (uint8_t)kind;
	} while (spmd_take(&k->text, ","));
}

/* A dim is the product of its factors. */
static void check_sizes(const struct reading *k)
{
	for (uint32_t t = 0; t < k->r->n_tensors; t++)
		for (uint32_t d = 0; d < k->r->rank[t]; d++) {
			const struct spmd_split *s = &k->r->tensor[t][d];
			const int64_t size = type_of(k->text.op, t)->dim[d];
			bool fits = true;
			int64_t n = 1;

			for (uint32_t i = 0; i < s->n; i++)
				fits &= !__builtin_mul_overflow(n, k->r->factor[s->factor[i]].size,
								&n);
			if (s->n && (!fits || n != size))
				tc_fail(k->text.s->c, ERR_INVALID_ARGUMENT, k->text.op, "its "
					"sharding rule has factors for dim %" PRIu32 " of %s %"
					PRIu32 " that do not make up %" PRId64 " elements", d,
					t < k->r->n_operands ? "operand" : "result",
					t < k->r->n_operands ? t : t - k->r->n_operands, size);
		}
}

struct spmd_rule *spmd_read_rule(struct tc_ctx *c, const struct tc_op *op, const char *text)
{
	struct spmd s = { .c = c };
	struct spmd_rule *r = arena_alloc(&c->arena, sizeof(*r));
	struct reading k = { { &s, op, text, text }, r, 0 };

	r->n_operands = op->n_operands;
	r->n_tensors = op->n_operands + op->n_results;
	r->tensor = arena_array(&c->arena, r->n_tensors, sizeof(*r->tensor));
	r->rank = arena_array(&c->arena, r->n_tensors, 1);
	for (uint32_t t = 0; t < r->n_tensors; t++) {
		if (t == r->n_operands)
			spmd_expect(&k.text, "->");
		read_tensor(&k, t);
	}
	if (r->n_operands == r->n_tensors)
		spmd_expect(&k.text, "->");
	spmd_take(&k.text, "");	/* blanks */
	read_sizes(&k);
	read_kind(&k, "r", SPMD_REDUCTION);
	read_kind(&k, "n", SPMD_REPLICATE);
	read_kind(&k, "p", SPMD_PERMUTATION);
	read_kind(&k, "b", -1);
	if (*k.text.p)
		spmd_bad(&k.text, "end");
	check_sizes(&k);
	return r;
}
