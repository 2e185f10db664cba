/* SPDX-License-Identifier: Apache-2.0 */
/* The table of rules, and rules as text. */
#include <inttypes.h>
#include <string.h>

#include "runtime/compiler/spmd/rule_internal.h"

struct row {
	rule_make *make;
	enum spmd_when when;
};

static const struct row rows[TC_OP_COUNT] = {
#define RULE(op, function, when) [TC_##op] = { rule_##function, SPMD_##when },
#define RULE_NAMED(name, function)
#include "runtime/compiler/spmd/sharding.def"
#undef RULE
#undef RULE_NAMED
};

static const struct named { const char *name; struct row row; } named_rows[] = {
#define RULE(op, function, when)
#define RULE_NAMED(name, function) { name, { rule_##function, SPMD_LATE } },
#include "runtime/compiler/spmd/sharding.def"
#undef RULE
#undef RULE_NAMED
};

static const struct row *find_row(const struct tc_op *op)
{
	const char *name = op->op == TC_CUSTOM_CALL ? tc_attr_str(op, "call_target_name") : NULL;

	if (!name)
		return rows[op->op].make ? &rows[op->op] : NULL;
	for (unsigned i = 0; i < sizeof(named_rows) / sizeof(*named_rows); i++)
		if (!strcmp(name, named_rows[i].name))
			return &named_rows[i].row;
	return NULL;
}

/* A broadcast that only adds dims of one element, as what a loop stacks and sums that keep their
 * dims are written, moves its operand like a reshape: it spreads nothing over others. */
static enum spmd_when when_of(const struct row *row, const struct tc_op *op)
{
	bool is_moved = op->op == TC_BROADCAST_IN_DIM &&
			tc_in(op, 0)->type->rank < tc_out(op, 0)->type->rank &&
			tc_in(op, 0)->type->count == tc_out(op, 0)->type->count;

	return is_moved ? SPMD_ALL : row->when;
}

struct spmd_rule *spmd_rule(struct tc_ctx *c, const struct tc_op *op, enum spmd_when *when)
{
	const char *text = op->op == TC_CUSTOM_CALL ? tc_attr_str(op, "sharding_rule") : NULL;
	const struct row *row = find_row(op);
	struct rule_build b = { c, op, NULL };
	struct spmd_rule *r;

	if (text) {
		*when = SPMD_LATE;
		return spmd_read_rule(c, op, text);
	}
	if (!row)
		return NULL;
	*when = when_of(row, op);
	b.r = r = arena_alloc(&c->arena, sizeof(*r));
	r->n_operands = op->n_operands;
	r->n_tensors = op->n_operands + op->n_results;
	r->tensor = arena_array(&c->arena, r->n_tensors, sizeof(*r->tensor));
	r->rank = arena_array(&c->arena, r->n_tensors, 1);
	for (unsigned t = 0; t < r->n_tensors; t++) {
		const struct tc_type *type = rule_type(&b, t);

		if (type->is_tuple)
			return NULL;
		r->rank[t] = type->rank;
		r->tensor[t] = arena_array(&c->arena, type->rank, sizeof(**r->tensor));
	}
	row->make(&b);
	return r;
}

/* ---- text ---- */

struct numbering { uint32_t n; uint32_t *number, *order; };

static void print_tensor(const struct spmd_split *s, uint32_t rank, const struct numbering *k,
			 struct str *out)
{
	str_printf(out, "[");
	for (uint32_t d = 0; d < rank; d++)
		for (uint32_t i = 0; i < s[d].n || (!i && !s[d].n); i++) {
			str_printf(out, "%s", i ? "." : d ? "," : "");
			if (s[d].n)
				str_printf(out, "%" PRIu32, k->number[s[d].factor[i]]);
		}
	str_printf(out, "]");
}

static void number_factors(const struct spmd_rule *r, struct numbering *k)
{
	for (uint32_t t = 0; t < r->n_tensors; t++)
		for (uint32_t d = 0; d < r->rank[t]; d++)
			for (uint32_t i = 0; i < r->tensor[t][d].n; i++) {
				uint32_t f = r->tensor[t][d].factor[i];

				if (k->number[f] == UINT32_MAX) {
					k->number[f] = k->n;
					k->order[k->n++] = f;
				}
			}
}

static void print_kind(const struct spmd_rule *r, const struct numbering *k, char letter,
		       int kind, struct str *out)
{
	const char *comma = "";

	for (uint32_t i = 0; i < k->n; i++) {
		const struct spmd_factor *f = &r->factor[k->order[i]];

		if (kind < 0 ? !f->is_blocked : f->kind != kind)
			continue;
		if (!*comma)
			str_printf(out, " %c", letter);
		str_printf(out, "%s%" PRIu32, comma, i);
		comma = ",";
	}
}

void spmd_print_rule(const struct spmd_rule *r, struct str *out)
{
	uint32_t number[512], order[512];
	struct numbering k = { 0, number, order };

	if (r->n_factors > 512) {
		str_printf(out, "(a rule of %" PRIu32 " factors)", r->n_factors);
		return;
	}
	memset(number, 0xff, sizeof(number));
	number_factors(r, &k);
	for (uint32_t t = 0; t < r->n_tensors; t++) {
		if (t == r->n_operands)
			str_printf(out, "->");
		print_tensor(r->tensor[t], r->rank[t], &k, out);
	}
	str_printf(out, " ");
	for (uint32_t i = 0; i < k.n; i++)
		str_printf(out, "%s%" PRId64, i ? "," : "", r->factor[order[i]].size);
	print_kind(r, &k, 'r', SPMD_REDUCTION, out);
	print_kind(r, &k, 'n', SPMD_REPLICATE, out);
	print_kind(r, &k, 'p', SPMD_PERMUTATION, out);
	print_kind(r, &k, 'b', -1, out);
}
