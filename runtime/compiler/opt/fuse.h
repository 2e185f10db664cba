/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TC_OPT_FUSE_H
#define TC_OPT_FUSE_H
/* What fusing and emission both ask of ops. */
#include "runtime/compiler/ir/ir.h"

/* The single elementwise op of a reduce that the device folds by itself (add, multiply,
 * minimum, maximum, and, or, xor on a computing type, initial value the identity), or
 * TC_OP_COUNT. */
enum tc_opcode tc_simple_reduce(const struct tc_op *op);
/* Whether the element (as in memory) changes nothing as an operand of the op. False for
 * a few rare types' too. */
bool tc_is_identity(enum tc_opcode op, unsigned elem, const void *element);
/* A constant whose elements are all equal: the element, else NULL. */
const void *tc_splat_element(const struct tc_value *v);
/* Whether dims [n_outer, rank) are exactly the reduced ones. */
bool tc_reduces_trailing(const struct tc_op *op, unsigned *n_outer);
/* The concatenation of its block that alone looks at v, an op's result, in whatever shape, or
 * NULL. */
const struct tc_op *tc_join_of(const struct tc_value *v);
/* The result, looked at by nobody else, that operand k of a concatenation is, in whatever
 * shape, or NULL. */
const struct tc_value *tc_part_of(const struct tc_op *join, unsigned k);

/* ---- taps.c ---- */

/* Windows [first, first + count) of a reduce_window along a dim, of which each has its elements
 * [tap, tap + taps) within the array. */
struct tc_stretch { int64_t first, count, tap, taps; };
enum { TC_MOST_STRETCHES = 16, TC_MOST_PART_TAPS = 20, TC_MOST_PART_RANK = 8 };
/* All of dim d in order; 0: more than TC_MOST_STRETCHES. Without base dilation. */
unsigned tc_window_stretches(const struct tc_op *op, unsigned d, struct tc_stretch *out);
/* Whether a reduce_window, if it begins with a value that changes nothing, is left as it is for
 * emission to put together in boxes of stretches. */
bool tc_window_in_parts(const struct tc_op *op);

#endif
