/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TC_OPT_FUSE_H
#define TC_OPT_FUSE_H
/* What fusing and emission both ask of ops. */
#include "hal/hw/isa.h"
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
/* Whether the op gives all elements of its operand another shape. */
bool tc_is_view(const struct tc_op *op);
/* The concatenation of its block that alone looks at v, an op's result, in whatever shape, or
 * NULL. */
const struct tc_op *tc_join_of(const struct tc_value *v);
/* The result, looked at by nobody else, that operand k of a concatenation is, in whatever
 * shape, or NULL. */
const struct tc_value *tc_part_of(const struct tc_op *join, unsigned k);
/* Of a convolution that runs as a product of rows of its input, which overlap: most features that
 * it gives, rows of a product that reads its other side in place (lower/conv.c). */
#define TC_SLIDING_FEATURES 4
/* Whether a product or convolution runs with an epilogue, which keeps the dims of its result as
 * they are (back/emit_dot.c): those above 1, and an m and an n. */
bool tc_takes_epilogue(const struct tc_op *op);
/* Whether only dims of 1 come and go between the two; dim, of TC_MAX_RANK: which dim of `to` each
 * of `from` is, -1: of size 1. */
bool tc_only_ones_differ(const struct tc_type *from, const struct tc_type *to, int8_t *dim);
/* The dims of an iteration space that those of op's operand are tied to, if op's own are tied to
 * `axis` and it gives a narrow value another shape: ISA_MAX_RANK of them, -1: of size 1. */
bool tc_tie_operand(const struct tc_op *op, const int8_t *axis, int8_t *out);
/* Whether an elementwise op takes a few cycles: less than to write and read what it gives. */
bool tc_is_quick(const struct tc_op *op);
/* Arguments of the program that values are made of, and by how many ops, some of them counted for
 * each value that is made of theirs. */
enum { TC_MOST_MADE_OF = 4, TC_MOST_MADE_BY = 64 };
struct tc_made { const struct tc_value *of[TC_MOST_MADE_OF]; unsigned n, n_ops; };
/* Whether v is quickly made of nothing else and splats, of its dims all the way, in so many steps:
 * adds these. Else nothing changes. Nor is an argument among them that a result is written over. */
bool tc_add_made(struct tc_made *made, const struct tc_value *v, unsigned steps);
/* What one instruction reads: a value along some dims, from memory or made inside. */
struct tc_read {
	const struct tc_value *v;
	uint8_t elem;			/* the type in which it is wanted */
	int8_t axis[ISA_MAX_RANK];
};
bool tc_same_read(const struct tc_read *a, const struct tc_read *b);
/* How many values it takes to have operand r, which is of no member, as it is. */
unsigned tc_values_to_make(const struct tc_read *r);
/* Whether the op may write what it makes where that is a part of a whole, before the whole's op. */
bool tc_is_for_parts(const struct tc_op *op);

/* The type in which `elem` computes. */
unsigned tc_computing(unsigned elem);
/* Of an elementwise op: to what its operands are converted. */
unsigned tc_works_in(const struct tc_op *op);
/* Whether the op sees how wide its operand is: where bits end, or where the sign is. */
bool tc_is_about_width(const struct tc_op *op);
/* Bits of one number as another of the same size, which a fusion does for each element. */
bool tc_is_even_bitcast(const struct tc_op *op);
/* How many values an op of a fusion adds to a body at most (back/emit_body.c), beside its
 * operands and what these are converted to. */
unsigned tc_most_values(const struct tc_op *op);
/* The same with those that its operands are made of. */
unsigned tc_values_for(const struct tc_op *op);

/* Puts the elementwise work of a block, and of the loops and branches in it, in fusions; those
 * that are there stay. fuse.c */
void tc_fuse_block(struct tc_ctx *c, struct tc_block *b);

/* ---- pieces.c ---- */

/* Before fusing: arrays whose elements take turns in a concatenation are made by elementwise
 * work. */
void tc_take_turns(struct tc_ctx *c, struct tc_block *b);
/* Does work on what is spread out, or reversed, before two dims of it are joined: replaces op, with
 * the same bits. False: it stays. */
bool tc_work_before_join(struct tc_ctx *c, struct tc_op *op);

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

/* ---- boxes.c ---- */

/* A part of the space of a fusion. */
struct tc_box { int64_t first[ISA_MAX_RANK], size[ISA_MAX_RANK]; };
enum { TC_MOST_BOXES = 32 };
/* The shape of all points that a LOOP fusion works on, of any element type. */
const struct tc_type *tc_space_of(const struct tc_op *fusion);
/* Whether v, of a fusion's region, is what a concatenation, a pad or a slice gives. */
bool tc_is_put_together(const struct tc_value *v);
/* The boxes of a LOOP fusion, in order, in each of which all that is put together in its region is
 * a part of one argument, or the same everywhere. Returns how many they are; 1, and boxes are left
 * as they are: nothing is put together. 0: more than TC_MOST_BOXES. */
unsigned tc_boxes_of(const struct tc_op *fusion, struct tc_box *boxes);
/* What is in a box of v, which is put together: an argument, *start being where the box begins in
 * it, or a constant. */
const struct tc_value *tc_part_in_box(const struct tc_value *v, const struct tc_box *box,
				      int64_t *start);

#endif
