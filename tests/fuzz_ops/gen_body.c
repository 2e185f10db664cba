/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ops with bodies of scalars: reductions, windows, map, sort. A reduction's body is associative
 * and commutative on the values that it gets, exactly; its initial value may be anything and
 * counts once.
 */
#include "tests/fuzz_ops/gen.h"

#include <string.h>

static const struct fact any = { .kind = FACT_BITS };

static bool is_reducible(const struct tc_value *v, const void *arg)
{
	char kind = v->side ? gen_fact(v)->kind : 0;

	(void)arg;
	return !v->type->is_tuple && v->type->elem != ELEM_TOKEN && v->type->rank > 0 &&
	       v->type->rank <= GEN_RANK && kind != FACT_ANY && kind != FACT_NEAR &&
	       kind != FACT_NORM;
}

static struct fact initial(struct gen *g, unsigned elem)
{
	struct fact f = gen_any_fact(g, elem);

	if (gen_is_float(elem) || gen_is_complex(elem))
		f = FACT(FACT_WHOLE, false, -1, 1);
	return f;
}

/* A body of one op for n elements and an initial value; false: there is none. */
static bool choose_body(struct gen *g, unsigned elem, struct fact f, struct fact init,
			int64_t n, enum tc_opcode *op, struct fact *out)
{
	static const uint8_t ints[] = { TC_ADD, TC_MULTIPLY, TC_MAXIMUM, TC_MINIMUM,
					TC_AND, TC_OR,	     TC_XOR };

	if (elem == ELEM_PRED) {
		*op = (enum tc_opcode)ints[2 + gen_below(g, 5)];
		*out = any;
		return true;
	}
	if (gen_is_int(elem)) {
		*op = (enum tc_opcode)ints[gen_below(g, sizeof(ints))];
		*out = any;
		return true;
	}
	if (gen_is_float(elem) && (f.kind == FACT_SPECIAL || gen_one_in(g, 2))) {
		*op = gen_one_in(g, 2) ? TC_MAXIMUM : TC_MINIMUM;
		*out = fact_join(f, init);
		out->open = true;
		return true;
	}
	if (f.kind != FACT_WHOLE)
		return false;
	if (f.lo >= -1 && f.hi <= 1 && gen_is_float(elem) && gen_one_in(g, 2)) {
		*op = TC_MULTIPLY;
		*out = FACT(FACT_WHOLE, true, -1, 1);
		return true;
	}
	*op = TC_ADD;
	return gen_fact_of_sum(fact_join(f, init), elem, n + 1, out);
}

static void give_body(struct gen *g, struct tc_op *op, enum tc_opcode body,
		      const struct tc_type *t)
{
	struct gen_place place = gen_enter(g, op, op->n_regions - 1);
	struct tc_value *in[2], *v;

	gen_isolate(g, true);
	in[0] = gen_block_arg(g, t, any);
	in[1] = gen_block_arg(g, t, any);
	if (gen_one_in(g, 4)) {
		v = in[0];
		in[0] = in[1];
		in[1] = v;
	}
	v = gen_op1(g, body, 2, in, t, any);
	gen_leave(g, place, 1, &v);
}

/* The CPU backend counts an initial value several times, in large reductions and in those
 * of a concatenation, which shows unless it is the identity. */
static struct tc_value *settle_initial(struct gen *g, enum tc_opcode body,
				       struct tc_value *init, int64_t n)
{
	unsigned elem = init->type->elem;
	bool is_float = gen_is_float(elem) || gen_is_complex(elem);
	int64_t identity = body == TC_MULTIPLY;

	if ((body != TC_ADD && body != TC_MULTIPLY && body != TC_XOR) || n <= 1)
		return init;
	if (gen_is_complex(elem) || gen_one_in(g, 2)) {
		gen_not_for_jax(g);
		return init;
	}
	return gen_constant(
		g, init->type,
		FACT(is_float ? FACT_WHOLE : FACT_RANGE, false, identity, identity));
}

static const struct tc_type *without(struct gen *g, const struct tc_type *t,
				     const int64_t *dims, unsigned n)
{
	int64_t dim[GEN_RANK];
	unsigned rank = 0, k = 0;

	for (unsigned d = 0; d < t->rank; d++) {
		if (k < n && dims[k] == d)
			k++;
		else
			dim[rank++] = t->dim[d];
	}
	return gen_type(g, t->elem, rank, dim);
}

/* The place and the value of the largest or least, the first of equals: as argmax is written. */
static bool reduce_with_place(struct gen *g, struct tc_value *v, const int64_t *dims,
			      unsigned n)
{
	static const struct fact whole = { .kind = FACT_RANGE, .hi = 1 << 20 };
	const struct tc_type *t = v->type, *s = gen_type(g, t->elem, 0, NULL);
	const struct tc_type *si = gen_type(g, ELEM_S32, 0, NULL),
			     *pred = gen_type(g, ELEM_PRED, 0, NULL);
	const struct tc_type *to[2] = { without(g, t, dims, n),
					without(g, gen_same_dims(g, ELEM_S32, t), dims, n) };
	unsigned way = gen_one_in(g, 2) ? TC_CMP_GT : TC_CMP_LT;
	struct tc_value *in[4], *a[4], *out[2], *p[4];
	struct fact facts[2] = { *gen_fact(v), whole };
	struct gen_place place;
	struct tc_op *op;

	if (gen_is_complex(t->elem) || t->elem == ELEM_PRED || facts[0].kind == FACT_SPECIAL)
		return false;
	in[0] = v;
	in[1] = gen_op1(g, TC_IOTA, 0, NULL, gen_same_dims(g, ELEM_S32, t), whole);
	tc_set_int(g->c, in[1]->def, "iota_dimension", TC_ATTR_INT, dims[0]);
	in[2] = gen_constant(g, s, initial(g, t->elem));
	in[3] = gen_constant(g, si, FACT(FACT_RANGE, false, 0, 0));
	facts[0] = fact_join(facts[0], *gen_fact(in[2]));
	op = gen_op(g, TC_REDUCE, 4, in, 2, to, facts, 1);
	tc_set_ints(g->c, op, "dimensions", dims, n);
	place = gen_enter(g, op, 0);
	gen_isolate(g, true);
	for (unsigned i = 0; i < 4; i++)
		a[i] = gen_block_arg(g, i & 1 ? si : s, any);
	for (unsigned i = 0; i < 3; i++) {
		struct tc_value *pair[2] = { a[i == 2], a[i == 2 ? 3 : 2] };
		static const uint8_t ways[] = { 0, TC_CMP_EQ, TC_CMP_LT };

		pair[0] = i == 2 ? a[1] : a[0];
		p[i] = gen_op1(g, TC_COMPARE, 2, pair, pred, any);
		tc_set_int(g->c, p[i]->def, "comparison_direction", TC_ATTR_ENUM,
			   i ? ways[i] : way);
		tc_set_int(g->c, p[i]->def, "compare_type", TC_ATTR_ENUM, i == 2 ||
			   elem_class(t->elem) == ELEM_CLASS_SINT ? TC_CMP_SIGNED :
			   gen_is_float(t->elem) ? TC_CMP_FLOAT : TC_CMP_UNSIGNED);
	}
	p[3] = gen_op1(g, TC_AND, 2, &p[1], pred, any);
	p[0] = gen_op1(g, TC_OR, 2, (struct tc_value *[]){ p[0], p[3] }, pred, any);
	out[0] = gen_op1(g, TC_SELECT, 3, (struct tc_value *[]){ p[0], a[0], a[2] }, s, any);
	out[1] = gen_op1(g, TC_SELECT, 3, (struct tc_value *[]){ p[0], a[1], a[3] }, si, any);
	gen_leave(g, place, 2, out);
	return true;
}

bool gen_reduce(struct gen *g)
{
	struct tc_value *in[2] = { gen_pick(g, is_reducible, NULL) };
	const struct tc_type *t, *s, *to;
	int64_t dims[GEN_RANK], n = 1;
	unsigned n_dims;
	struct fact f;
	enum tc_opcode body;
	struct tc_op *op;

	if (!in[0])
		return false;
	t = in[0]->type;
	n_dims = gen_one_in(g, 3) ? t->rank : 1 + gen_below(g, t->rank);
	gen_subset(g, n_dims, t->rank, dims);
	for (unsigned i = 0; i < n_dims; i++)
		n *= t->dim[dims[i]];
	/* of one element, the CPU backend leaves the initial value out */
	if (n == 1 && !gen_one_in(g, 4))
		return false;
	if (n == 1)
		gen_not_for_jax(g);
	if (gen_one_in(g, 8))
		return reduce_with_place(g, in[0], dims, n_dims);
	s = gen_type(g, t->elem, 0, NULL);
	in[1] = gen_value(g, s, initial(g, t->elem));
	if (!choose_body(g, t->elem, *gen_fact(in[0]), *gen_fact(in[1]), n, &body, &f))
		return false;
	/* and a NaN too */
	if (gen_fact(in[0])->kind == FACT_SPECIAL)
		gen_not_for_jax(g);
	/* of few elements, or of parts, it may be made of reductions of one */
	if (n <= 8 || (in[0]->def && (in[0]->def->op == TC_CONCATENATE ||
				      in[0]->def->op == TC_RNG_BIT_GENERATOR)))
		gen_not_for_jax(g);
	in[1] = settle_initial(g, body, in[1], n);
	to = without(g, t, dims, n_dims);
	op = gen_op(g, TC_REDUCE, 2, in, 1, &to, &f, 1);
	tc_set_ints(g->c, op, "dimensions", dims, n_dims);
	give_body(g, op, body, s);
	return true;
}

/* ---- windows ---- */

struct window {
	int64_t size[GEN_RANK], stride[GEN_RANK], base[GEN_RANK], dilation[GEN_RANK],
		pad[2 * GEN_RANK];
	int64_t out[GEN_RANK], n;
};

static bool choose_window(struct gen *g, const struct tc_type *t, struct window *w, bool plain)
{
	unsigned windows = 0;

	w->n = 1;
	for (unsigned d = 0; d < t->rank; d++) {
		int64_t padded, wide;

		w->size[d] = gen_one_in(g, 2) ? gen_between(g, 1, 4) : 1;
		w->stride[d] = gen_one_in(g, 2) ? gen_between(g, 1, 3) : 1;
		w->base[d] = !plain && gen_one_in(g, 5) ? gen_between(g, 1, 3) : 1;
		w->dilation[d] = !plain && gen_one_in(g, 5) ? gen_between(g, 1, 3) : 1;
		w->pad[2 * d] = gen_one_in(g, 3) ? gen_between(g, 0, w->size[d] - 1) : 0;
		w->pad[2 * d + 1] = gen_one_in(g, 3) ? gen_between(g, 0, w->size[d] - 1) : 0;
		padded = (t->dim[d] ? (t->dim[d] - 1) * w->base[d] + 1 : 0) + w->pad[2 * d] +
			 w->pad[2 * d + 1];
		wide = (w->size[d] - 1) * w->dilation[d] + 1;
		w->out[d] = padded < wide ? 0 : (padded - wide) / w->stride[d] + 1;
		w->n *= w->size[d];
	}
	for (unsigned d = 0; d < t->rank; d++)
		windows += w->size[d] > 1;
	/* dims of one instruction, those of the windows included (README.md#limits) */
	return t->rank + windows <= 8 && gen_is_small(g, t->rank, w->out);
}

bool gen_reduce_window(struct gen *g)
{
	struct tc_value *in[2] = { gen_pick(g, is_reducible, NULL) };
	const struct tc_type *t, *s, *to;
	enum tc_opcode body;
	struct window w;
	struct tc_op *op;
	struct fact f;

	if (!in[0] || !choose_window(g, in[0]->type, &w, false))
		return false;
	t = in[0]->type;
	s = gen_type(g, t->elem, 0, NULL);
	in[1] = gen_value(g, s, initial(g, t->elem));
	if (!choose_body(g, t->elem, *gen_fact(in[0]), *gen_fact(in[1]), w.n, &body, &f))
		return false;
	to = gen_type(g, t->elem, t->rank, w.out);
	op = gen_op(g, TC_REDUCE_WINDOW, 2, in, 1, &to, &f, 1);
	tc_set_ints(g->c, op, "window_dimensions", w.size, t->rank);
	tc_set_ints(g->c, op, "window_strides", w.stride, t->rank);
	tc_set_ints(g->c, op, "base_dilations", w.base, t->rank);
	tc_set_ints(g->c, op, "window_dilations", w.dilation, t->rank);
	tc_set_ints(g->c, op, "padding", w.pad, 2u * t->rank);
	give_body(g, op, body, s);
	return true;
}

static void give_comparison(struct gen *g, struct tc_op *op, unsigned region,
			    const struct tc_type *s, unsigned way, unsigned type)
{
	struct gen_place place = gen_enter(g, op, region);
	struct tc_value *in[2], *v;

	gen_isolate(g, true);
	in[0] = gen_block_arg(g, s, any);
	in[1] = gen_block_arg(g, s, any);
	v = gen_op1(g, TC_COMPARE, 2, in, gen_type(g, ELEM_PRED, 0, NULL), any);
	tc_set_int(g->c, v->def, "comparison_direction", TC_ATTR_ENUM, way);
	tc_set_int(g->c, v->def, "compare_type", TC_ATTR_ENUM, type);
	gen_leave(g, place, 1, &v);
}

static unsigned compare_type_of(unsigned elem)
{
	return elem_class(elem) == ELEM_CLASS_SINT ? TC_CMP_SIGNED :
	       gen_is_float(elem) ? TC_CMP_FLOAT : TC_CMP_UNSIGNED;
}

bool gen_select_and_scatter(struct gen *g)
{
	struct tc_value *in[3] = { gen_pick(g, is_reducible, NULL) };
	const struct tc_type *t, *s;
	struct window w;
	struct tc_op *op;
	struct fact f, small;

	if (!in[0] || gen_is_complex(in[0]->type->elem) || in[0]->type->elem == ELEM_PRED ||
	    gen_fact(in[0])->kind == FACT_SPECIAL || !choose_window(g, in[0]->type, &w, true))
		return false;
	t = in[0]->type;
	s = gen_type(g, t->elem, 0, NULL);
	small = initial(g, t->elem);
	in[1] = gen_value(g, gen_type(g, t->elem, t->rank, w.out), small);
	in[2] = gen_value(g, s, small);
	if (!gen_fact_of_sum(fact_join(*gen_fact(in[1]), *gen_fact(in[2])), t->elem, w.n + 1,
			     &f))
		return false;
	/* which of equal elements a window selects is open */
	if (gen_fact(in[0])->kind != FACT_DISTINCT)
		gen_not_for_jax(g);
	op = gen_op(g, TC_SELECT_AND_SCATTER, 3, in, 1, &t, &f, 2);
	tc_set_ints(g->c, op, "window_dimensions", w.size, t->rank);
	tc_set_ints(g->c, op, "window_strides", w.stride, t->rank);
	tc_set_ints(g->c, op, "padding", w.pad, 2u * t->rank);
	give_comparison(g, op, 0, s, gen_one_in(g, 2) ? TC_CMP_GE : TC_CMP_LE,
			compare_type_of(t->elem));
	give_body(g, op, TC_ADD, s);
	return true;
}

/* ---- map ---- */

static bool has_dims_of(const struct tc_value *v, const void *arg)
{
	const struct tc_type *t = arg;

	return is_reducible(v, NULL) && v->type->rank == t->rank &&
	       !memcmp(v->type->dim, t->dim, t->rank * sizeof(*t->dim));
}

static bool is_inner(const struct tc_value *v, const void *arg)
{
	return v->def && v->def->block == arg;
}

bool gen_map(struct gen *g)
{
	struct tc_value *in[3] = { gen_pick(g, is_reducible, NULL) }, *v;
	unsigned n = 1 + gen_below(g, 3);
	int64_t dims[GEN_RANK];
	const struct tc_type *to;
	struct gen_place place;
	struct tc_op *op;
	struct fact f;

	if (!in[0])
		return false;
	for (unsigned i = 1; i < n; i++)
		in[i] = gen_pick(g, has_dims_of, in[0]->type);
	to = in[0]->type;
	f = any;
	op = gen_op(g, TC_MAP, n, in, 1, &to, &f, 1);
	for (unsigned d = 0; d < to->rank; d++)
		dims[d] = d;
	tc_set_ints(g->c, op, "dimensions", dims, to->rank);
	place = gen_enter(g, op, 0);
	gen_isolate(g, true);
	for (unsigned i = 0; i < n; i++)
		gen_block_arg(g, gen_type(g, in[i]->type->elem, 0, NULL), *gen_fact(in[i]));
	gen_some(g, 1 + gen_below(g, 4));
	v = gen_pick(g, is_inner, g->b);
	if (!v)
		v = g->pool[g->base];
	f = *gen_fact(v);
	op->results[0].type = gen_same_dims(g, v->type->elem, to);
	gen_leave(g, place, 1, &v);
	gen_set_fact(g, tc_out(op, 0), f.kind == FACT_DISTINCT ? any : f);
	return true;
}

/* ---- sort ---- */

/* Whether the keys order `b` before `a`, or are equal in the first and decided by the second. */
static struct tc_value *compare_keys(struct gen *g, struct tc_value *const *a, unsigned way,
				     unsigned type)
{
	const struct tc_type *pred = gen_type(g, ELEM_PRED, 0, NULL);
	struct tc_value *v = gen_op1(g, TC_COMPARE, 2, a, pred, any);

	tc_set_int(g->c, v->def, "comparison_direction", TC_ATTR_ENUM, way);
	tc_set_int(g->c, v->def, "compare_type", TC_ATTR_ENUM, type);
	return v;
}

static void give_order(struct gen *g, struct tc_op *op, unsigned way, unsigned type)
{
	struct gen_place place = gen_enter(g, op, 0);
	struct tc_value *a[8], *v;

	gen_isolate(g, true);
	for (unsigned i = 0; i < op->n_operands; i++) {
		const struct tc_type *s = gen_type(g, tc_in(op, i)->type->elem, 0, NULL);

		a[2 * i] = gen_block_arg(g, s, any);
		a[2 * i + 1] = gen_block_arg(g, s, any);
	}
	v = compare_keys(g, a, way, type);
	if (op->n_operands > 1 && gen_is_int(tc_in(op, 1)->type->elem) && gen_one_in(g, 3)) {
		struct tc_value *equal, *second;
		const struct tc_type *pred = v->type;

		equal = compare_keys(g, a, TC_CMP_EQ, type);
		second = compare_keys(g, a + 2, TC_CMP_LT,
				      compare_type_of(tc_in(op, 1)->type->elem));
		second = gen_op1(g, TC_AND, 2, (struct tc_value *[]){ equal, second }, pred,
				 any);
		v = gen_op1(g, TC_OR, 2, (struct tc_value *[]){ v, second }, pred, any);
	}
	gen_leave(g, place, 1, &v);
}

static bool moves_along(const struct tc_value *v, const void *arg)
{
	const struct tc_type *t = arg;

	return !v->type->is_tuple && v->type->elem != ELEM_TOKEN && v->type->rank == t->rank &&
	       !memcmp(v->type->dim, t->dim, t->rank * sizeof(*t->dim));
}

bool gen_sort(struct gen *g)
{
	struct tc_value *in[4] = { gen_pick(g, is_reducible, NULL) };
	unsigned n = 1 + gen_below(g, 4), type, way = gen_one_in(g, 2) ? TC_CMP_LT : TC_CMP_GT;
	const struct tc_type *types[4];
	struct fact facts[4];
	struct tc_op *op;
	bool total;

	if (!in[0] || gen_is_complex(in[0]->type->elem) || in[0]->type->elem == ELEM_PRED)
		return false;
	facts[0] = *gen_fact(in[0]);
	type = compare_type_of(in[0]->type->elem);
	total = type != TC_CMP_FLOAT;
	if (type == TC_CMP_FLOAT && !facts[0].open && gen_one_in(g, 2)) {
		type = TC_CMP_TOTALORDER;
		total = true;
	}
	if (facts[0].kind == FACT_SPECIAL && type == TC_CMP_FLOAT)
		return false;
	for (unsigned i = 0; i < n; i++) {
		if (i)
			in[i] = gen_pick(g, moves_along, in[0]->type);
		types[i] = in[i]->type;
		facts[i] = *gen_fact(in[i]);
		if (elem_bits(types[i]->elem) < 8)
			gen_not_for_jax(g);
	}
	op = gen_op(g, TC_SORT, n, in, n, types, facts, 1);
	tc_set_int(g->c, op, "dimension", TC_ATTR_INT, gen_below(g, types[0]->rank));
	/* equal elements of one array can't be told apart, but for zeros by their signs */
	tc_set_int(g->c, op, "is_stable", TC_ATTR_BOOL, n > 1 || !total || gen_one_in(g, 2));
	give_order(g, op, way, type);
	return true;
}
