/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TC_OPT_EXPAND_H
#define TC_OPT_EXPAND_H
/*
 * Ops written as simpler ones, for the passes that need them so: `decompose`, since the device
 * has no instruction for them, and `dynamic` and `shard`, since in simpler ones an element can be
 * left out.
 * Each makes ops at b and gives what is to stand in place of op's results; op, without uses
 * then, is the caller's to erase. Fails by tc_fail only.
 */
#include "runtime/compiler/opt/build.h"

/*
 * batch_norm_training, _inference and _grad. within: which elements of x count in sums (pred,
 * of x's dims), and count: how many of them a feature has (a scalar of floats); NULL, both: all.
 * Floats narrower than f32 are calculated with in f32. out: a value for each result.
 */
void tc_expand_batch_norm(const struct tc_build *b, struct tc_op *op, struct tc_value *within,
			  struct tc_value *count, struct tc_value **out);
/*
 * A windowed reduction over pairs (value, place) finds the place that each window selects; then
 * the source's elements are scattered there. within: which elements a window may select, and
 * counts: which of the source are scattered (pred, of the operand's and the source's dims); NULL:
 * all. Takes the region that scatters from op. Returns the reduction, of whose results only the
 * second is used, or NULL: there are no windows.
 */
struct tc_op *tc_expand_select_and_scatter(const struct tc_build *b, struct tc_op *op,
					   struct tc_value *within, struct tc_value *counts,
					   struct tc_value **out);

#endif
