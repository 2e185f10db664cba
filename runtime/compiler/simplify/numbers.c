/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work on a few numbers that are put together and taken apart again is done number by number: a
 * part of the pass simplify.
 *
 * A step of a differential equation, as people write it, makes an array of the few numbers that it
 * has worked out, works with that, and begins the next step by taking it apart. Each way is an
 * instruction or several; number by number all of it is one fusion, and so are several turns of a
 * loop of such steps (loop/unroll.c). So is the error of a step, which is a sum of them, or the
 * largest one.
 */
#include "hal/hw/isa.h"
#include "runtime/compiler/opt/build.h"
#include "runtime/compiler/opt/fuse.h"
#include "runtime/compiler/simplify/simpler.h"

enum {
	MOST_NUMBERS = ISA_MAX_OUT,	/* one fusion gives them */
	MOST_DEEP = 12,		/* ops to where it is taken apart */
	MOST_LOOKS = 200,	/* at those who look at a value */
};

/* A concatenation of as many operands as it has elements, along its only dim, or NULL. */
static const struct tc_op *put_together(const struct tc_value *v)
{
	const struct tc_op *op = v->def;

	return op && op->op == TC_CONCATENATE && v->type->rank == 1 &&
	       v->type->count == (int64_t)op->n_operands ? op : NULL;
}

/* Whether all of v's elements, of one dim, are folded to a number. */
static bool is_folded_by(const struct tc_value *v, const struct tc_op *user)
{
	return tc_simple_reduce(user) != TC_OP_COUNT && tc_in(user, 0) == v &&
	       v->type->rank == 1 && !user->results[0].type->rank;
}

/* Whether a slice of one element is taken of v, or of what is made of it element by element; or
 * whether either is folded to a number. */
static bool is_taken_apart(const struct tc_value *v, unsigned deep, unsigned *looks)
{
	for (const struct tc_use *u = v->uses; u && *looks < MOST_LOOKS; u = u->next) {
		const struct tc_op *user = u->user;
		const struct tc_value *next = NULL;

		++*looks;
		if ((user->op == TC_SLICE && user->results[0].type->count == 1) ||
		    is_folded_by(v, user))
			return true;
		if (tc_has_trait(user, 'e') && tc_same_dims(user->results[0].type, v->type))
			next = tc_out(user, 0);
		else if (user->op == TC_RETURN && user->block->region->parent->op == TC_WHILE &&
			 user->block == user->block->region->parent->regions[1].block)
			next = user->block->args[u - user->operands];
		if (next && deep && is_taken_apart(next, deep - 1, looks))
			return true;
	}
	return false;
}

/* Element k of an operand of work on arrays of one dim, as a number. */
static struct tc_value *number_of(const struct tc_build *b, struct tc_value *v, int64_t k)
{
	const struct tc_type *t = tc_tensor(b->c, (enum elem)v->type->elem, 0, NULL);
	const void *element = tc_splat_element(v);
	const struct tc_op *join = put_together(v), *op;

	if (!v->type->rank)	/* of a select or clamp */
		return v;
	if (element)
		return tc_splat(b->c, b->before, t, element);
	if (join)
		v = tc_in(join, (unsigned)k);
	op = v->def;
	if (op && (op->op == TC_RESHAPE || op->op == TC_BROADCAST_IN_DIM) &&
	    !tc_in(op, 0)->type->rank)
		return tc_in(op, 0);
	return tc_build_reshape(b, join ? v : tc_build_part(b, v, 0, k, 1), 0, NULL);
}

/* A reduction of numbers that are put together. */
static bool fold_numbers(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	struct tc_value *v = tc_in(op, 0), *sum = tc_in(op, 1);

	if (!is_folded_by(v, op) || !put_together(v) || v->type->count > MOST_NUMBERS)
		return false;
	for (int64_t k = 0; k < v->type->count; k++)
		sum = tc_build2(&b, tc_simple_reduce(op), sum, number_of(&b, v, k));
	return tc_simplify_to(op, sum);
}

bool tc_take_apart(struct tc_ctx *c, struct tc_op *op)
{
	const struct tc_type *t = op->results[0].type, *one;
	struct tc_value *in[3], *parts[MOST_NUMBERS];
	struct tc_build b = tc_build_at(c, op);
	const int64_t size = 1;
	bool is_together = false;
	unsigned looks = 0;

	if (op->op == TC_REDUCE)
		return fold_numbers(c, op);
	if (!tc_has_trait(op, 'e') || t->rank != 1 || t->count > MOST_NUMBERS ||
	    op->n_operands > 3)
		return false;
	for (unsigned i = 0; i < op->n_operands; i++)
		is_together |= put_together(tc_in(op, i)) != NULL;
	if (!is_together || !is_taken_apart(tc_out(op, 0), MOST_DEEP, &looks))
		return false;
	one = tc_tensor(c, (enum elem)t->elem, 0, NULL);
	for (int64_t k = 0; k < t->count; k++) {
		struct tc_value *v;

		for (unsigned i = 0; i < op->n_operands; i++)
			in[i] = number_of(&b, tc_in(op, i), k);
		v = tc_build(&b, (enum tc_opcode)op->op, one, op->n_operands, in);
		for (unsigned i = 0; i < op->n_attrs; i++)
			tc_set_attr(c, v->def, op->attrs[i]);
		parts[k] = v;
	}
	/* behind all of them, so that those who look at them do (fuse.c) */
	for (int64_t k = 0; k < t->count; k++)
		parts[k] = tc_build_reshape(&b, parts[k], 1, &size);
	return tc_simplify_to(op, tc_build_join(&b, (unsigned)t->count, parts, 0));
}
