/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TC_LOWER_DECOMPOSE_H
#define TC_LOWER_DECOMPOSE_H
/*
 * The parts of tc_pass_decompose, which decompose.c shares out. Each replaces op by ops before
 * it and erases it, where not said otherwise; each fails by tc_fail only. Private to lower/.
 */
#include "runtime/compiler/opt/build.h"

/* One that emission takes as it is stays. fft.c */
void tc_decompose_fft(struct tc_ctx *c, struct tc_op *op);
void tc_decompose_cholesky(struct tc_ctx *c, struct tc_op *op);	/* linalg.c */
void tc_decompose_triangular_solve(struct tc_ctx *c, struct tc_op *op);
/* One with holes in its input, where that pays, and those of depthwise.c; leaves others
 * alone. conv.c */
void tc_decompose_convolution(struct tc_ctx *c, struct tc_op *op);
/* One in which every feature is a group of its own, or alone; leaves others alone. depthwise.c */
void tc_decompose_depthwise(struct tc_ctx *c, struct tc_op *op);
bool tc_is_depthwise(const struct tc_op *op);
/* Whether ops may take more memory than one that they are sooner than; notes it. depthwise.c */
bool tc_may_take_more(struct tc_ctx *c);
/* One of one element each, of numbers in a type that does not compute, or that finds where
 * something is; leaves others alone, and such as it is less work in. reduce.c */
void tc_decompose_reduce(struct tc_ctx *c, struct tc_op *op);
/* outer.c: a sum of products of two arrays spread out as rows and columns are, which becomes a dot
 * (true: op is gone); others stay. */
bool tc_decompose_outer(struct tc_ctx *c, struct tc_op *op);
/* scan.c: a reduce_window over all that is before, or after, each element (true: op is
 * gone); others stay. */
bool tc_decompose_scan(struct tc_ctx *c, struct tc_op *op);
/* A reduce_window of few elements, over padding that counts, or over more arrays than one
 * instruction reduces; leaves others alone. window.c */
void tc_decompose_window(struct tc_ctx *c, struct tc_op *op);
/* A window of many elements over several dims as one along each, if it can be and that is less
 * work (true: op is gone, for several); others stay. window.c */
bool tc_window_by_dims(struct tc_ctx *c, struct tc_op *op);
/* JAX broadcasts the scalars that windows start with; of constants there remain constants. */
void tc_settle_initial(const struct tc_build *b, struct tc_op *op);
/* Whether it reduces one array by one op that the initial value, a constant, changes nothing
 * in. */
bool tc_starts_with_identity(const struct tc_op *op);
/* parts.c: a reduce, reduce_window or scatter of more arrays than one instruction takes, by parts
 * that do not look at each other (true: op is gone, for several); others stay. */
bool tc_split_parts(struct tc_ctx *c, struct tc_op *op);
/* holes.c: what remains to be done of a reduce_window over an input with holes where windows
 * in turn have the same elements: a smaller one before op, which is gone. Others: op. */
struct tc_op *tc_close_holes(struct tc_ctx *c, struct tc_op *op);
/* The results of a reduce_window of few elements, which stays, as elementwise work on parts of
 * the padded arrays; padding is as initial values. False: there are too many elements. */
bool tc_window_by_taps(const struct tc_build *b, const struct tc_op *op, struct tc_value **out);
/* One of which only the first elements are looked at; leaves others alone. top.c */
void tc_decompose_sort(struct tc_ctx *c, struct tc_op *op);
/* One of some elements, of more arrays than the device sorts together; leaves alone those by keys
 * that it has no way to part. wide_sort.c */
void tc_decompose_wide_sort(struct tc_ctx *c, struct tc_op *op);
/* Ops of more dims than an instruction has, as such of fewer. many_dims.c */
void tc_join_dims(struct tc_ctx *c, struct tc_block *block);
/* kinds.c: a dot or convolution whose operands and result are of different kinds (true:
 * op is gone), and bits of types narrower than a byte; others stay. */
bool tc_decompose_product(struct tc_ctx *c, struct tc_op *op);
/* A gather by indices of several dims that lie side by side, which were joined to vectors, by one
 * index; leaves others alone. places.c */
void tc_join_places(struct tc_ctx *c, struct tc_op *op);
/* dot.c: a dot of one kind of numbers that elementwise work does as well. */
void tc_decompose_dot(struct tc_ctx *c, struct tc_op *op);
void tc_decompose_bitcast(struct tc_ctx *c, struct tc_op *op);
/* random.c */
void tc_decompose_rng(struct tc_ctx *c, struct tc_op *op);
/* Targets of JAX that stand for algorithms; leaves others alone. custom.c */
void tc_decompose_custom_call(struct tc_ctx *c, struct tc_op *op);
/* Whether it has such a target, or one that is nothing within a program. */
bool tc_is_own_call(const struct tc_op *op);
/* Custom calls that are functions of the host become calls of the host. function.c */
void tc_take_functions(struct tc_ctx *c);

#endif
