/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TC_LOOP_LOOP_H
#define TC_LOOP_LOOP_H
/*
 * What is known of a loop's turns. Nothing here changes or makes anything, or fails.
 *
 * Frameworks write a loop that makes so many turns as a `while` that carries a number from 0 on,
 * its *counter*, as long as that is below a constant.
 */
#include "runtime/compiler/ir/ir.h"

/* factor * counter + offset, for all turns without overflow; factor is -1, 0 or 1. */
struct tc_line { int64_t factor, offset; };

/* How often a loop runs that counts its turns from 0 on to a constant; 0: not known. */
int64_t tc_turns_of(const struct tc_op *loop);
/* The same, or how often at most, if something else may end it earlier. */
int64_t tc_most_turns_of(const struct tc_op *loop);
/* The same as tc_turns_of(), and in *counter which of the carried values counts. */
int64_t tc_count_turns(const struct tc_op *loop, unsigned *counter);
/* The dynamic_update_slice by which each turn puts something into carried value j, which nobody
 * looks at meanwhile; NULL: there is none. */
const struct tc_op *tc_put_of_turn(const struct tc_op *loop, unsigned j);
/* Of a dynamic_slice or dynamic_update_slice, in the body of a loop of so many turns whose counter
 * is that argument: the dim along which each turn takes or puts one row, all of it along the
 * others, and in *row which, within the array in every turn. -1: there is none. */
int tc_row_of_turn(const struct tc_op *op, const struct tc_value *counter, int64_t turns,
		   struct tc_line *row);

#endif
