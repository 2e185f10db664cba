/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TC_SIMPLIFY_SIMPLER_H
#define TC_SIMPLIFY_SIMPLER_H
/* What simplify.c asks for kinds of ops that have files of their own: each replaces op by what is
 * less to compute and has the same bits. False: it stays. */
#include "runtime/compiler/ir/ir.h"

/* logic.c: comparisons of integers with themselves, what is joined with a known answer, one
 * comparison for two, and for whether a number is inside, and the larger or smaller of two integers
 * for a choice. */
bool tc_simplify_logic(struct tc_ctx *c, struct tc_op *op);
/* narrow.c: an integer's upper bits that are 0, a question whose answer is known since it can't be
 * below 0, and what is made of iotas and then narrowed. */
bool tc_count_narrowly(struct tc_ctx *c, struct tc_op *op);
/* rows.c: gathers and scatters of all elements of rows. op itself changes. */
bool tc_take_rows(struct tc_ctx *c, struct tc_op *op);
/* Slices, and parts that are put, whose place is known: a slice, a dynamic_update_slice. */
bool tc_know_place(struct tc_ctx *c, struct tc_op *op);
/* whole.c: quotients and remainders by powers of 2, what is made of known whole numbers or adds
 * them one after the other, and questions about them. */
bool tc_simplify_whole(struct tc_ctx *c, struct tc_op *op);
/* turns.c: elementwise work on transposed arrays that is transposed back; results of such work that
 * are joined, transposed and returned; two arrays padded between their elements that are put
 * together; work on two that are padded at their ends, or on one such and a concatenation, whose
 * parts do not cut each other's; and work on what is spread out that is folded along short rows,
 * where op itself changes. */
bool tc_cancel_turns(struct tc_ctx *c, struct tc_op *op);
bool tc_join_turned(struct tc_ctx *c, struct tc_op *op);
bool tc_interleave(struct tc_ctx *c, struct tc_op *op);
bool tc_put_together(struct tc_ctx *c, struct tc_op *op);
bool tc_fold_first(struct tc_ctx *c, struct tc_op *op);
/* Work on what only differs by dims of 1 from what such work makes. */
bool tc_work_before_ones(struct tc_ctx *c, struct tc_op *op);
/* slices.c: work of which others look at slices alone, by slices. */
bool tc_work_on_slices(struct tc_ctx *c, struct tc_op *op);
/* carry.c: loops that carry what no turn changes, or the same twice. */
bool tc_carry_less(struct tc_ctx *c, struct tc_op *op);
/* numbers.c: elementwise work on a few numbers that are put together and taken apart again, or
 * folded to one. */
bool tc_take_apart(struct tc_ctx *c, struct tc_op *op);
/* simplify.c: whether nobody needs op. */
bool tc_is_dead(const struct tc_ctx *c, const struct tc_op *op);

/* op's only result is `by` instead. True. */
static inline bool tc_simplify_to(struct tc_op *op, struct tc_value *by)
{
	tc_replace(op, by);
	return true;
}

#endif
