/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sort of which only the first k elements are looked at (lax.top_k, torch.topk).
 *
 * The array is cut into groups. What is among the first k lies in one of the k groups whose
 * first elements come first, for each of these has an element that goes before all others
 * of the rest; so the groups are chosen by the same method and only what is in them is sorted.
 * Groups stay in their order, and among equals a sort that is stable takes the earlier one, so
 * the result is the same to the bit. A few elements are found one after the other, without a sort.
 */
#include <math.h>
#include <string.h>

#include "runtime/compiler/lower/decompose.h"

enum {
	GROUP = 32,	/* elements */
	WORTH = 4,	/* times fewer elements to sort */
	ROUNDS = 16,	/* largest elements that are found one after the other before a sort is
			 * as quick, */
	PER_ROUND = 24,	/* of so many elements of all rows for each: of fewer a sort is done
			 * before the rounds have begun */
};

/* A sort of `n` arrays by the first of them along their last dim. */
static void sort_by(const struct tc_build *b, int direction, unsigned n, struct tc_value **v)
{
	const struct tc_type *types[] = { v[0]->type, n > 1 ? v[1]->type : NULL };
	struct tc_op *sort = tc_new(b->c, TC_SORT, n, v, n, types, 1);
	struct tc_build inner = { .c = b->c, .where = b->where };
	struct tc_value *arg[4], *first;

	tc_set_int(b->c, sort, "dimension", TC_ATTR_INT, types[0]->rank - 1);
	tc_set_int(b->c, sort, "is_stable", TC_ATTR_BOOL, 1);
	inner.block = tc_new_block(b->c, &sort->regions[0]);
	for (unsigned i = 0; i < 2 * n; i++)
		arg[i] = tc_new_arg(b->c, inner.block,
				    tc_tensor(b->c, (enum elem)types[i / 2]->elem, 0, NULL));
	first = tc_build_compare(&inner, direction, arg[0], arg[1]);
	tc_build_return(&inner, 1, &first);
	tc_build_place(b, sort);
	for (unsigned i = 0; i < n; i++)
		v[i] = tc_out(sort, i);
}

/* The first k of each row in falling order by a sort. */
static void sort_and_cut(const struct tc_build *b, int64_t k, struct tc_value **v)
{
	sort_by(b, TC_CMP_GT, 2, v);
	for (unsigned i = 0; i < 2; i++)
		v[i] = tc_build_part(b, v[i], 1, 0, k);
}

/* Whether the first k of each row, of so many keys together, are found in rounds, each of which is
 * a reduction of rows. */
static bool goes_by_rounds(enum elem elem, int64_t keys, int64_t k)
{
	return k <= ROUNDS && elem_bytes(elem) <= 4 && keys >= PER_ROUND * k;
}

/*
 * The same by rounds: a key and how far its place is from the last one there can be are the halves
 * of a number that no other element has, the largest of which is the first element. The next one is
 * the largest of those below it.
 */
static void find_by_rounds(const struct tc_build *b, int64_t k, struct tc_value **v)
{
	const struct tc_type *t = tc_with_elem(b->c, v[0]->type, ELEM_S64);
	const int64_t rows = t->dim[0], column[] = { rows, 1 }, own[] = { 0 };
	const double last = 0xffffffffu, least = -0x1p63;
	enum elem elem = (enum elem)v[0]->type->elem;
	struct tc_value *best[ROUNDS], *high, *low, *all, *rest, *top;

	high = tc_build2(b, TC_SHIFT_LEFT, tc_build_convert(b, v[0], ELEM_S64),
			 tc_build_number(b, t, 32));
	low = tc_build2(b, TC_SUBTRACT, tc_build_number(b, t, last),
			tc_build_convert(b, v[1], ELEM_S64));
	all = rest = tc_build2(b, TC_OR, high, low);
	for (int64_t i = 0; i < k; i++) {
		struct tc_value *largest = tc_build_fold(b, TC_MAXIMUM, rest, least, 1u << 1);
		struct tc_value *below = tc_build_compare(b, TC_CMP_LT, all,
					tc_build_broadcast(b, largest, t, own));

		best[i] = tc_build_reshape(b, largest, 2, column);
		rest = tc_build_select(b, below, all, tc_build_number(b, t, least));
	}
	top = tc_build_join(b, (unsigned)k, best, 1);
	t = top->type;
	high = tc_build2(b, TC_SHIFT_RIGHT_ARITHMETIC, top, tc_build_number(b, t, 32));
	low = tc_build2(b, TC_AND, top, tc_build_number(b, t, last));
	low = tc_build2(b, TC_SUBTRACT, tc_build_number(b, t, last), low);
	v[0] = tc_build_convert(b, high, elem);
	v[1] = tc_build_convert(b, low, ELEM_S32);
}

/* The first k of each row in falling order; v: keys and their places, [rows, n], these rising. */
static void find_few(const struct tc_build *b, int64_t k, struct tc_value **v)
{
	if (goes_by_rounds((enum elem)v[0]->type->elem, v[0]->type->count, k))
		find_by_rounds(b, k, v);
	else
		sort_and_cut(b, k, v);
}

/* How numbers become keys, which fall in the order of the sort, and keys become numbers again. */
struct order { bool is_float, is_rising; };

static struct tc_value *bits_as(const struct tc_build *b, struct tc_value *x, enum elem elem)
{
	return elem == x->type->elem ? x :
		tc_build(b, TC_BITCAST_CONVERT, tc_with_elem(b->c, x->type, elem), 1, &x);
}

/* Numbers whose order is a float's total order, and back: of a negative one all bits but the
 * sign are turned around. */
static struct tc_value *turn_negative(const struct tc_build *b, struct tc_value *x)
{
	double bits = (double)elem_bytes(x->type->elem) * 8;
	struct tc_value *most = tc_build_number(b, x->type, -1), *sign;

	most = tc_build2(b, TC_SHIFT_RIGHT_LOGICAL, most, tc_build_number(b, x->type, 1));
	sign = tc_build2(b, TC_SHIFT_RIGHT_ARITHMETIC, x, tc_build_number(b, x->type, bits - 1));
	return tc_build2(b, TC_XOR, x, tc_build2(b, TC_AND, sign, most));
}

static struct tc_value *keys_of(const struct tc_build *b, struct order order, struct tc_value *x)
{
	if (order.is_float)
		x = turn_negative(b, x);
	return order.is_rising ? tc_build1(b, TC_NOT, x) : x;
}

static struct tc_value *numbers_of(const struct tc_build *b, struct order order,
				   struct tc_value *keys)
{
	if (order.is_rising)
		keys = tc_build1(b, TC_NOT, keys);
	return order.is_float ? turn_negative(b, keys) : keys;
}

/* The number whose key is the least integer: bits, as no double is the largest of 64. */
static struct tc_value *number_of_least(const struct tc_build *b, struct order order,
					enum elem elem)
{
	size_t last = elem_bytes(elem) - 1;
	uint8_t number[8];

	memset(number, order.is_rising || order.is_float ? 0xff : 0, last);
	number[last] = order.is_rising ? 0x7f : order.is_float ? 0xff : 0x80;
	return tc_build_data(b, tc_tensor(b->c, elem, 0, NULL), number);
}

/*
 * Of numbers x [rows, n] the first k keys and their places, [rows, k]. Keys are made for each of
 * the two who look at them, the largest of a group and the sort of what is in the chosen ones:
 * elementwise work that costs them nothing, and an array as large as x less.
 */
static void find_top(const struct tc_build *b, struct tc_value *x, struct order order, int64_t k,
		     struct tc_value **v)
{
	int64_t rows = x->type->dim[0], n = x->type->dim[1], groups = (n + GROUP - 1) / GROUP;
	const int64_t grouped[] = { rows, groups, GROUP }, flat[] = { rows, k * GROUP };
	const int64_t rest[] = { rows, groups * GROUP - n }, own[] = { 0, 1 };
	enum elem elem = (enum elem)x->type->elem;
	double least = -ldexp(1, (int)elem_bytes(elem) * 8 - 1);
	struct tc_value *part[2] = { x }, *best[2], *place;
	const struct tc_type *t;

	if (n < WORTH * k * GROUP) {
		v[0] = keys_of(b, order, x);
		v[1] = tc_build_iota(b, tc_with_elem(b->c, x->type, ELEM_S32), 1);
		find_few(b, k, v);
		return;
	}
	/* What fills the last group comes after all that is equal to it. */
	if (rest[1]) {
		part[1] = tc_build_broadcast(b, number_of_least(b, order, elem),
					     tc_tensor(b->c, elem, 2, rest), NULL);
		x = tc_build_join(b, 2, part, 1);
	}
	x = tc_build_reshape(b, x, 3, grouped);
	find_top(b, tc_build_fold(b, TC_MAXIMUM, keys_of(b, order, x), least, 1u << 2),
		 (struct order){ 0 }, k, best);
	sort_by(b, TC_CMP_LT, 1, &best[1]);
	v[0] = keys_of(b, order, tc_build_rows(b, x, best[1]));
	t = tc_with_elem(b->c, v[0]->type, ELEM_S32);
	place = tc_build2(b, TC_MULTIPLY, tc_build_broadcast(b, best[1], t, own),
			  tc_build_number(b, t, GROUP));
	v[1] = tc_build2(b, TC_ADD, place, tc_build_iota(b, t, 2));
	for (unsigned i = 0; i < 2; i++)
		v[i] = tc_build_reshape(b, v[i], 2, flat);
	find_few(b, k, v);
}

/* The integer whose order the comparison is; ELEM_INVALID: it is another one. */
static enum elem key_elem(const struct tc_op *op)
{
	unsigned elem = tc_in(op, 0)->type->elem;
	const struct tc_block *body = op->regions[0].block;
	const struct tc_op *first = body->first;
	int64_t way = tc_attr_int(first, "comparison_direction", -1);

	if (first->op != TC_COMPARE || first->next != body->last || body->last->n_operands != 1 ||
	    tc_in(body->last, 0) != tc_out(first, 0) || tc_in(first, 0) != body->args[0] ||
	    tc_in(first, 1) != body->args[1] || (way != TC_CMP_GT && way != TC_CMP_LT))
		return ELEM_INVALID;
	if (elem == ELEM_S8 || elem == ELEM_S16 || elem == ELEM_S32 || elem == ELEM_S64)
		return (enum elem)elem;
	if (tc_attr_int(first, "compare_type", 0) != TC_CMP_TOTALORDER)
		return ELEM_INVALID;
	return elem == ELEM_F32 ? ELEM_S32 : elem == ELEM_F64 ? ELEM_S64 :
	       elem == ELEM_F16 || elem == ELEM_BF16 ? ELEM_S16 : ELEM_INVALID;
}

/* The most elements of a line that are looked at; -1: any may be. */
static int64_t elements_used(const struct tc_op *op, unsigned dim)
{
	int64_t most = 0;

	for (unsigned i = 0; i < op->n_results; i++)
		for (const struct tc_use *u = tc_out(op, i)->uses; u; u = u->next) {
			unsigned n;

			if (u->user->op != TC_SLICE)
				return -1;
			if (tc_attr_ints(u->user, "limit_indices", &n)[dim] > most)
				most = tc_attr_ints(u->user, "limit_indices", &n)[dim];
		}
	return most;
}

void tc_decompose_sort(struct tc_ctx *c, struct tc_op *op)
{
	const struct tc_type *t = tc_in(op, 0)->type;
	unsigned last = t->rank - 1u;
	struct tc_build b = tc_build_at(c, op);
	struct tc_value *x = tc_in(op, 0), *v[2];
	const struct tc_op *places = op->n_operands == 2 ? tc_in(op, 1)->def : NULL;
	int64_t dim[TC_MAX_RANK], flat[2], k;
	enum elem elem = key_elem(op);
	struct order order = { .is_float = elem != t->elem };

	if (!elem || !t->rank || op->n_operands > 2 || tc_attr_int(op, "dimension", -1) != last)
		return;
	if (op->n_operands == 2 && (!places || places->op != TC_IOTA ||
				    tc_attr_int(places, "iota_dimension", -1) != last))
		return;
	k = elements_used(op, last);
	if (k < 1 || t->dim[last] >> 31 || !t->count ||
	    (t->dim[last] < WORTH * GROUP * k && !goes_by_rounds(elem, t->count, k)))
		return;
	order.is_rising = tc_attr_int(op->regions[0].block->first, "comparison_direction", 0) ==
			  TC_CMP_LT;
	flat[0] = t->count / t->dim[last];
	flat[1] = t->dim[last];
	find_top(&b, tc_build_reshape(&b, bits_as(&b, x, elem), 2, flat), order, k, v);
	v[0] = bits_as(&b, numbers_of(&b, order, v[0]), (enum elem)t->elem);
	/* The slices stay: what they take is there. */
	memcpy(dim, t->dim, t->rank * sizeof(*dim));
	dim[last] = k;
	for (unsigned i = 0; i < op->n_results; i++) {
		v[i] = tc_build_convert(&b, v[i], (enum elem)tc_out(op, i)->type->elem);
		tc_replace_uses(tc_out(op, i), tc_build_reshape(&b, v[i], t->rank, dim));
	}
	tc_erase(op);
}
