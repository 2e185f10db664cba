/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control flow: loops that carry several values and turn them round, branches, calls. A carried
 * value keeps its fact from turn to turn: what the body gives it is chosen, or clamped, to fit.
 */
#include "tests/fuzz_ops/gen.h"

enum { MOST_DEPTH = 3, MOST_CARRIED = 6 };

static const struct fact any = { .kind = FACT_BITS };

struct slot { const struct tc_type *type; struct fact fact; const struct tc_block *home; };

static bool fits_slot(const struct tc_value *v, const void *arg)
{
	const struct slot *s = arg;

	return v->type == s->type && fact_within(*gen_fact(v), s->fact) &&
	       (!s->home || (v->def ? v->def->block : v->block) == s->home);
}

static bool has_slot_type(const struct tc_value *v, const void *arg)
{
	const struct slot *s = arg;

	return v->type == s->type && v->def && v->def->block == s->home;
}

/* What a carried value becomes: made in the body if that fits, or one of those carried. */
static struct tc_value *next_value(struct gen *g, struct tc_value *arg)
{
	struct slot s = { arg->type, *gen_fact(arg), g->b };
	struct tc_value *v = gen_pick(g, has_slot_type, &s), *fit = NULL;

	if (v && !gen_one_in(g, 5))
		fit = gen_fit(g, v, s.fact);
	if (!fit)
		fit = gen_pick(g, fits_slot, &s);
	return fit ? fit : arg;
}

static bool is_carriable(const struct tc_value *v, const void *arg)
{
	(void)arg;
	return !v->type->is_tuple && v->type->elem != ELEM_TOKEN;
}

/* What the loop starts with: the counter and some of the pool, a type's several together. */
static unsigned choose_carried(struct gen *g, struct tc_value **in)
{
	static const uint8_t counters[] = { ELEM_S32, ELEM_S32, ELEM_S32, ELEM_S64,
					    ELEM_U32, ELEM_U8,	ELEM_S8,  ELEM_U64 };
	unsigned n = 1 + gen_below(g, MOST_CARRIED - 1), k = 1;
	unsigned elem = counters[gen_below(g, sizeof(counters))];

	in[0] = gen_constant(g, gen_type(g, elem, 0, NULL), FACT(FACT_RANGE, false, 0, 1));
	while (k < n) {
		struct tc_value *v = gen_pick(g, is_carriable, NULL), *twin;

		if (!v)
			break;
		in[k++] = v;
		twin = gen_pick_type(g, v->type);
		if (k < n && gen_one_in(g, 2))
			in[k++] = twin;
	}
	return k;
}

static void give_condition(struct gen *g, struct tc_op *op, const struct fact *facts,
			   struct tc_value *limit)
{
	struct gen_place place = gen_enter(g, op, 0);
	struct tc_value *in[2] = { NULL, limit }, *v;
	unsigned elem = tc_in(op, 0)->type->elem;

	for (unsigned i = 0; i < op->n_operands; i++) {
		v = gen_block_arg(g, tc_in(op, i)->type, facts[i]);
		in[0] = i ? in[0] : v;
	}
	v = gen_op1(g, TC_COMPARE, 2, in, gen_type(g, ELEM_PRED, 0, NULL), any);
	tc_set_int(g->c, v->def, "comparison_direction", TC_ATTR_ENUM, TC_CMP_LT);
	tc_set_int(g->c, v->def, "compare_type", TC_ATTR_ENUM,
		   elem_class(elem) == ELEM_CLASS_SINT ? TC_CMP_SIGNED : TC_CMP_UNSIGNED);
	gen_leave(g, place, 1, &v);
}

static void give_turn(struct gen *g, struct tc_op *op, const struct fact *facts)
{
	struct gen_place place = gen_enter(g, op, 1);
	struct tc_value *args[MOST_CARRIED], *out[MOST_CARRIED], *one;
	unsigned n = op->n_operands;

	for (unsigned i = 0; i < n; i++)
		args[i] = gen_block_arg(g, tc_in(op, i)->type, facts[i]);
	gen_some(g, gen_below(g, 8));
	one = gen_constant(g, args[0]->type, FACT(FACT_RANGE, false, 1, 1));
	out[0] = gen_op1(g, TC_ADD, 2, (struct tc_value *[]){ args[0], one }, args[0]->type,
			 facts[0]);
	for (unsigned i = 1; i < n; i++)
		out[i] = next_value(g, args[i]);
	gen_leave(g, place, n, out);
}

bool gen_while(struct gen *g)
{
	struct tc_value *in[MOST_CARRIED], *limit;
	const struct tc_type *types[MOST_CARRIED];
	struct fact facts[MOST_CARRIED];
	struct tc_op *op;
	unsigned n;

	if (g->depth >= MOST_DEPTH || !g->n_pool)
		return false;
	n = choose_carried(g, in);
	limit = gen_value(g, in[0]->type, FACT(FACT_RANGE, false, 0, 4));
	for (unsigned i = 0; i < n; i++) {
		types[i] = in[i]->type;
		facts[i] = *gen_fact(in[i]);
		if (facts[i].kind == FACT_DISTINCT || facts[i].kind == FACT_RANGE)
			facts[i] = any;
		/* room to grow into */
		if (facts[i].kind == FACT_WHOLE && gen_one_in(g, 2) &&
		    fact_reach(types[i]->elem) >= 8 && facts[i].lo >= -8 && facts[i].hi <= 8)
			facts[i] = FACT(FACT_WHOLE, true, -8, 8);
	}
	facts[0] = FACT(FACT_RANGE, false, 0, 5);
	op = gen_op(g, TC_WHILE, n, in, n, types, facts, 2);
	g->depth++;
	give_condition(g, op, facts, limit);
	give_turn(g, op, facts);
	g->depth--;
	return true;
}

/* ---- branches ---- */

bool gen_case(struct gen *g)
{
	unsigned n = 1 + gen_below(g, 3), branches = 2;
	struct tc_value *by, *like[3], *out[3];
	const struct tc_type *types[3];
	struct fact facts[3];
	struct tc_op *op;
	bool is_if = gen_one_in(g, 2);

	if (g->depth >= MOST_DEPTH || !gen_pick_any(g))
		return false;
	for (unsigned i = 0; i < n; i++) {
		like[i] = gen_pick_any(g);
		types[i] = like[i]->type;
		facts[i] = *gen_fact(like[i]);
	}
	if (is_if) {
		by = gen_value(g, gen_type(g, ELEM_PRED, 0, NULL), any);
	} else {
		by = gen_index(g, ELEM_S32, 4);
		branches = 1 + gen_below(g, 4);
	}
	op = gen_op(g, is_if ? TC_IF : TC_CASE, 1, &by, n, types, facts, branches);
	g->depth++;
	for (unsigned r = 0; r < branches; r++) {
		struct gen_place place = gen_enter(g, op, r);

		gen_some(g, gen_below(g, 5));
		for (unsigned i = 0; i < n; i++) {
			out[i] = gen_pick_type(g, types[i]);
			facts[i] = fact_join(facts[i], *gen_fact(out[i]));
		}
		gen_leave(g, place, n, out);
	}
	g->depth--;
	for (unsigned i = 0; i < n; i++)
		gen_set_fact(g, tc_out(op, i), facts[i].kind == FACT_DISTINCT ? any : facts[i]);
	return true;
}

/* ---- calls ---- */

static struct tc_op *new_function(struct gen *g)
{
	struct tc_op *f = tc_new(g->c, TC_FUNC, 0, NULL, 0, NULL, 1);
	char name[24] = "f0";

	name[1] = (char)('0' + g->n_funcs % 10);
	name[2] = (char)(g->n_funcs >= 10 ? '0' + g->n_funcs / 10 % 10 : 0);
	g->n_funcs++;
	tc_set_str(g->c, f, "sym_name", name);
	tc_append(g->c->module->regions[0].block, f);
	return f;
}

bool gen_call(struct gen *g)
{
	struct tc_value *in[4], *out[3];
	const struct tc_type *types[3];
	unsigned n = gen_below(g, 4), m = 1 + gen_below(g, 3);
	bool composite = gen_one_in(g, 3);
	struct fact facts[3];
	struct gen_place place;
	struct tc_op *f, *op;

	if (g->depth >= MOST_DEPTH || g->n_funcs >= 20 || !gen_pick_any(g))
		return false;
	for (unsigned i = 0; i < n; i++)
		in[i] = gen_pick_any(g);
	f = new_function(g);
	place = gen_enter(g, f, 0);
	gen_isolate(g, false);
	g->depth++;
	for (unsigned i = 0; i < n; i++)
		gen_block_arg(g, in[i]->type, *gen_fact(in[i]));
	gen_new_source(g);
	gen_some(g, gen_below(g, 6));
	for (unsigned i = 0; i < m; i++) {
		out[i] = gen_pick_any(g);
		types[i] = out[i]->type;
		facts[i] = *gen_fact(out[i]);
	}
	g->depth--;
	gen_leave(g, place, m, out);
	op = gen_op(g, composite ? TC_COMPOSITE : TC_CALL, n, in, m, types, facts, 0);
	if (!composite) {
		tc_set_str(g->c, op, "callee", tc_attr_str(f, "sym_name"));
		return true;
	}
	tc_set_str(g->c, op, "name", "fuzz.call");
	tc_set_str(g->c, op, "decomposition", tc_attr_str(f, "sym_name"));
	return true;
}

bool gen_barrier(struct gen *g)
{
	unsigned n = 1 + gen_below(g, 3);
	const struct tc_type *types[3];
	struct tc_value *in[3];
	struct fact facts[3];

	if (gen_one_in(g, 4)) {
		in[0] = gen_op1(g, TC_CREATE_TOKEN, 0, NULL, gen_type(g, ELEM_TOKEN, 0, NULL),
				any);
		gen_op1(g, TC_AFTER_ALL, 1, in, in[0]->type, any);
		return true;
	}
	for (unsigned i = 0; i < n; i++) {
		in[i] = gen_pick_any(g);
		if (!in[i])
			return false;
		types[i] = in[i]->type;
		facts[i] = *gen_fact(in[i]);
	}
	gen_op(g, TC_OPTIMIZATION_BARRIER, n, in, n, types, facts, 0);
	return true;
}

bool gen_tuple(struct gen *g)
{
	unsigned n = 1 + gen_below(g, 3), k = gen_below(g, n);
	const struct tc_type *types[3];
	struct tc_value *in[3], *v;

	/* not in regions: the CPU backend takes no tuples there */
	if (g->depth || g->scalars)
		return false;
	for (unsigned i = 0; i < n; i++) {
		in[i] = gen_pick_any(g);
		if (!in[i])
			return false;
		types[i] = in[i]->type;
	}
	v = gen_op1(g, TC_TUPLE, n, in, tc_tuple(g->c, types, n), any);
	v = gen_op1(g, TC_GET_TUPLE_ELEMENT, 1, &v, in[k]->type, *gen_fact(in[k]));
	tc_set_int(g->c, v->def, "index", TC_ATTR_INT, k);
	return true;
}
