/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reductions that are less than they look.
 *
 * Of one element each: the body, once, on the initial value and that. The larger or smaller of
 * numbers of a type that does not compute: of one that does and holds them all, which is one
 * instruction with the work around it. And those that find where something is: the device folds in
 * order, so of two indices the accumulator's is not the later one, and the body need not ask. Along
 * a long line they search its parts first, and then what those have found: places are counted in an
 * array, of a part then, not of the line.
 */
#include <string.h>

#include "hal/hw/isa.h"
#include "runtime/compiler/lower/decompose.h"
#include "runtime/compiler/opt/fuse.h"

/* ---- one element each ---- */

static int64_t reduced_elements(const struct tc_op *op)
{
	unsigned n;
	const int64_t *dims = tc_attr_ints(op, "dimensions", &n);
	int64_t count = 1;

	for (unsigned i = 0; i < n; i++)
		count *= tc_in(op, 0)->type->dim[dims[i]];
	return count;
}

/* Whether it finds the largest or the smallest of floats of a type that does not compute. */
static bool is_stored_pick(const struct tc_op *op)
{
	const struct tc_block *body = op->regions[0].block;
	const struct tc_op *f = body->first;
	unsigned elem = op->results[0].type->elem;
	const void *first = op->n_results == 1 ? tc_splat_element(tc_in(op, 1)) : NULL;

	return first && !elem_computes(elem) && elem_class(elem) == ELEM_CLASS_FLOAT &&
	       (f->op == TC_MAXIMUM || f->op == TC_MINIMUM) && f->next == body->last &&
	       tc_in(body->last, 0) == tc_out(f, 0) && tc_in(f, 0) != tc_in(f, 1) &&
	       tc_in(f, 0)->block == body && tc_in(f, 1)->block == body &&
	       tc_is_identity(f->op, elem, first);
}

/* Whether the body gives the element back, whatever it is. A float's sum does not: -0 + 0 is 0. */
static bool gives_element(const struct tc_op *op)
{
	enum tc_opcode f = tc_simple_reduce(op);

	if (f == TC_OP_COUNT)
		return is_stored_pick(op);
	return (f != TC_ADD || elem_class(op->results[0].type->elem) == ELEM_CLASS_SINT ||
		elem_class(op->results[0].type->elem) == ELEM_CLASS_UINT);
}

static bool reduce_one(struct tc_ctx *c, struct tc_op *op)
{
	const struct tc_block *body = op->regions[0].block;
	unsigned n = op->n_results;
	struct tc_build b = tc_build_at(c, op);
	struct tc_value **v;

	if (reduced_elements(op) != 1 || tc_only_for_scalars(body))
		return false;
	v = arena_array(&c->arena, 3 * n, sizeof(*v));
	if (!v)
		tc_fail(c, ERR_RESOURCE_EXHAUSTED, op, "out of memory");
	for (unsigned i = 0; i < n; i++) {
		const struct tc_type *t = op->results[i].type;

		v[i] = tc_build_broadcast(&b, tc_in(op, n + i), t, NULL);
		v[n + i] = tc_build_reshape(&b, tc_in(op, i), t->rank, t->dim);
	}
	if (gives_element(op))
		v[2 * n] = v[n];
	else
		tc_build_on_arrays(&b, body, v, op->results[0].type, v + 2 * n);
	for (unsigned i = 0; i < n; i++)
		tc_replace_uses(tc_out(op, i), v[2 * n + i]);
	tc_erase(op);
	return true;
}

/* ---- the largest or the smallest ---- */

static bool widen_pick(struct tc_ctx *c, struct tc_op *op)
{
	const struct tc_op *f = op->regions[0].block->first;
	unsigned elem = op->results[0].type->elem, n;
	const int64_t *dims = tc_attr_ints(op, "dimensions", &n);
	struct tc_build b = tc_build_at(c, op);
	uint64_t mask = 0;
	struct tc_value *v;

	if (!is_stored_pick(op))
		return false;
	for (unsigned i = 0; i < n; i++)
		mask |= 1ull << dims[i];
	v = tc_build_convert(&b, tc_in(op, 0), (enum elem)tc_computing(elem));
	v = tc_build_fold(&b, f->op, v, f->op == TC_MAXIMUM ? -__builtin_inf() : __builtin_inf(),
			  mask);
	tc_replace(op, tc_build_convert(&b, v, (enum elem)elem));
	return true;
}

/* ---- where ---- */

/* Whether operand k counts along the only reduced dim, from the initial value's 0 on. */
static bool is_counted(const struct tc_op *op, unsigned k)
{
	const struct tc_type *t = tc_in(op, k)->type;
	const struct tc_op *iota = tc_in(op, k)->def;
	unsigned n, cls = elem_class(t->elem), bits = elem_bits(t->elem);
	const int64_t *dims = tc_attr_ints(op, "dimensions", &n);
	const uint8_t *first = tc_splat_element(tc_in(op, op->n_results + k));

	if (n != 1 || !first || !iota || iota->op != TC_IOTA ||
	    tc_attr_int(iota, "iota_dimension", -1) != dims[0] || bits < 8 ||
	    (cls != ELEM_CLASS_SINT && cls != ELEM_CLASS_UINT) ||
	    (bits < 64 && t->dim[dims[0]] > (int64_t)1 << (bits - 1)))
		return false;
	for (unsigned i = 0; i < elem_bytes(t->elem); i++)
		if (first[i])
			return false;
	return true;
}

/* The index so far, the element's, and how many values are looked at more: a body may read each of
 * many twice, and that of a framework has a few. */
struct indices { const struct tc_value *acc, *elem; unsigned left; };
enum { MOST_LOOKS = 64 };

/* Whether v is one of the two, whatever else the body sees. */
static bool is_either(const struct tc_value *v, struct indices *x)
{
	if (v == x->acc || v == x->elem)
		return true;
	if (!v->def || v->def->block != x->elem->block || !x->left)
		return false;
	x->left--;
	switch (v->def->op) {
	case TC_SELECT:
		return is_either(tc_in(v->def, 1), x) && is_either(tc_in(v->def, 2), x);
	case TC_MAXIMUM:
	case TC_MINIMUM:
		return is_either(tc_in(v->def, 0), x) && is_either(tc_in(v->def, 1), x);
	default:
		return false;
	}
}

/* Whether all that v, a truth, decides is which of the two is taken: where they are equal it does
 * not matter. */
static bool decides_which(const struct tc_value *v, struct indices *x)
{
	for (const struct tc_use *u = v->uses; u; u = u->next) {
		const struct tc_op *op = u->user;

		if (!x->left)
			return false;
		x->left--;
		if (op->op == TC_AND || op->op == TC_OR) {
			if (!decides_which(tc_out(op, 0), x))
				return false;
		} else if (op->op != TC_SELECT || tc_in(op, 0) != v ||
			   !is_either(tc_out(op, 0), x)) {
			return false;
		}
	}
	return true;
}

/* Whether the accumulator's index is before the element's, both being what f compares: 1, 0, or -1
 * if that is not what it asks. */
static int answer(const struct tc_op *f, const struct tc_value *acc, const struct tc_value *elem)
{
	struct indices x = { acc, elem, MOST_LOOKS };
	bool turned;

	if (f->op != TC_COMPARE)
		return -1;
	turned = tc_in(f, 0) == elem && tc_in(f, 1) == acc;
	if ((!turned && (tc_in(f, 0) != acc || tc_in(f, 1) != elem)) ||
	    !decides_which(tc_out(f, 0), &x))
		return -1;
	switch (tc_attr_int(f, "comparison_direction", -1)) {
	case TC_CMP_LT:
	case TC_CMP_LE: return !turned;
	case TC_CMP_GT:
	case TC_CMP_GE: return turned;
	default: return -1;
	}
}

/* Comparisons of indices are answered; an index that is one of two, whichever is less, is the
 * accumulator's. Whether one was answered. */
static bool settle_indices(struct tc_ctx *c, struct tc_op *op, unsigned k)
{
	struct tc_block *body = op->regions[0].block;
	struct tc_value *acc = body->args[k], *elem = body->args[op->n_results + k];
	struct indices x = { acc, elem, MOST_LOOKS };
	bool is_any = false;

	if (!is_counted(op, k) || !is_either(tc_in(body->last, k), &x))
		return false;
	for (struct tc_op *f = body->first; f != body->last; f = f->next) {
		int is = answer(f, acc, elem);
		const uint8_t truth = is > 0;

		is_any |= is >= 0;
		if (is >= 0)
			tc_replace_uses(tc_out(f, 0),
					tc_splat(c, f, tc_out(f, 0)->type, &truth));
		else if ((f->op == TC_MINIMUM || f->op == TC_MAXIMUM) &&
			 ((tc_in(f, 0) == acc && tc_in(f, 1) == elem) ||
			  (tc_in(f, 0) == elem && tc_in(f, 1) == acc)))
			tc_replace_uses(tc_out(f, 0), f->op == TC_MINIMUM ? acc : elem);
	}
	return is_any;
}

/* Whether nobody asks which number v is, an index or one of two: it only becomes result k, which
 * is_either knows. */
static bool is_only_passed(const struct tc_value *v, unsigned k, struct indices *x)
{
	for (const struct tc_use *u = v->uses; u; u = u->next) {
		const struct tc_op *op = u->user;
		bool is_passed = (op->op == TC_SELECT && tc_in(op, 0) != v) ||
				 op->op == TC_MAXIMUM || op->op == TC_MINIMUM;

		if (op->op == TC_RETURN ? u - op->operands == k :
					  op->n_results == 1 && tc_is_unused(tc_out(op, 0)))
			continue;
		if (!is_passed || !x->left)
			return false;
		x->left--;
		if (!is_only_passed(tc_out(op, 0), k, x))
			return false;
	}
	return true;
}

/* The same of both indices of a body: it does not matter from where they are counted. */
static bool are_only_passed(const struct tc_op *op, unsigned k)
{
	const struct tc_block *body = op->regions[0].block;
	struct indices x = { body->args[k], body->args[op->n_results + k], MOST_LOOKS };

	return is_only_passed(x.acc, k, &x) && is_only_passed(x.elem, k, &x);
}

enum { LONG_LINE = 8192, SHORT_PART = 64, LONG_PART = 1024 };	/* elements */

/* As many of a line's elements as are searched together; 0: it is short, or a prime or so. */
static int64_t part_of_line(int64_t n)
{
	int64_t part = n < LONG_LINE ? 0 : LONG_PART;

	while (part && n % part)
		part--;
	return part < SHORT_PART ? 0 : part;
}

/*
 * The largest or smallest, and as operand k where it is, the first of equal ones: of each part of
 * `part` elements first, with a place within that. A part that has found nothing gives what the
 * reduction begins with, of which the first is taken, too.
 */
static void search_parts(struct tc_ctx *c, struct tc_op *op, unsigned k, int64_t part)
{
	struct tc_build b = tc_build_at(c, op);
	const struct tc_type *t = tc_in(op, 0)->type, *found;
	struct tc_op *first, *all;
	int64_t dim[TC_MAX_RANK], last = t->rank;
	struct tc_value *at;

	memcpy(dim, t->dim, t->rank * sizeof(*dim));
	dim[last - 1] /= part;
	dim[last] = part;
	first = tc_clone(c, op, tc_map_new(c));
	all = tc_clone(c, op, tc_map_new(c));
	tc_set_ints(c, first, "dimensions", &last, 1);
	tc_set_operand(first, !k, tc_build_reshape(&b, tc_in(op, !k), t->rank + 1u, dim));
	at = tc_build_iota(&b, tc_tensor(c, (enum elem)tc_in(op, k)->type->elem, t->rank + 1u,
					 dim), (unsigned)last);
	tc_set_operand(first, k, at);
	for (unsigned i = 0; i < 2; i++)
		tc_out(first, i)->type = tc_tensor(c, (enum elem)op->results[i].type->elem,
						   t->rank, dim);
	tc_build_place(&b, first);
	found = tc_out(first, k)->type;
	at = tc_build2(&b, TC_MULTIPLY, tc_build_iota(&b, found, (unsigned)last - 1),
		       tc_build_number(&b, found, (double)part));
	tc_set_operand(all, !k, tc_out(first, !k));
	tc_set_operand(all, k, tc_build2(&b, TC_ADD, tc_out(first, k), at));
	tc_build_place(&b, all);
	for (unsigned i = 0; i < 2; i++)
		tc_replace_uses(tc_out(op, i), tc_out(all, i));
	tc_erase(op);
}

void tc_decompose_reduce(struct tc_ctx *c, struct tc_op *op)
{
	const struct tc_type *t = tc_in(op, 0)->type;
	unsigned last = t->rank - 1u;

	if (reduce_one(c, op) || widen_pick(c, op))
		return;
	for (unsigned k = 0; k < op->n_results; k++) {
		int64_t part;

		if (!settle_indices(c, op, k) || op->n_results != 2 ||
		    t->rank >= ISA_MAX_RANK || tc_attr_nth(op, "dimensions", 0) != last)
			continue;
		/* Of many lines the count along one is little beside them, and they are quicker
		 * whole. */
		part = t->dim[last] == (int64_t)t->count ? part_of_line(t->dim[last]) : 0;
		if (part && are_only_passed(op, k)) {
			search_parts(c, op, k, part);
			return;
		}
	}
}
