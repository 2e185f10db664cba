/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TC_DYNAMIC_DYNAMIC_H
#define TC_DYNAMIC_DYNAMIC_H
/*
 * Dims whose sizes are known only when a program runs. Private to the room: size.c (sizes and
 * what lies past them), above it move.c, window.c, norm.c, index.c and meet.c (a rule for each op),
 * above these shaped.c (ops that are given their shapes), above all dynamic.c, the pass.
 *
 * An array with such a dim is stored padded to the dim's bound. While the pass is at work a
 * value's side is NULL or a list of its dims' sizes: scalars of s32 from 0 to the bound, NULL
 * for a dim that is as long as its type says. What lies past a size is anything, so whoever
 * looks at more than single elements has to cover it.
 *
 * A rule is given an op whose operands' sizes are known. It makes what it needs before the op,
 * changes its operands, and sets the sizes of its results; or it puts other values in their
 * place and leaves the op, without uses, to be erased (false). It leaves by tc_fail() where
 * there is no rule for such a dim.
 */
#include "runtime/compiler/opt/build.h"

/* ---- size.c ---- */
/* NULL: the type says it. */
struct tc_value *dyn_size_of(const struct tc_value *v, unsigned dim);
/* `size` may be NULL, or a number that is the type's. */
void dyn_set(struct tc_ctx *c, struct tc_value *v, unsigned dim, struct tc_value *size);
/* The smaller one of two, of which either may be NULL. */
struct tc_value *dyn_less(const struct tc_build *b, struct tc_value *x, struct tc_value *y);
/* As dyn_set, but what the dim has already counts if it is smaller. */
void dyn_meet(const struct tc_build *b, struct tc_value *v, unsigned dim,
	      struct tc_value *size);
/* All sizes of a value of the same dims. */
void dyn_copy(struct tc_ctx *c, struct tc_value *to, const struct tc_value *from);
/* The size in any case. */
struct tc_value *dyn_any_size(const struct tc_build *b, const struct tc_value *v, unsigned dim);
/* Scalars of s32: a number; an op of two; and what is held between 0 and `most`. */
struct tc_value *dyn_number(const struct tc_build *b, int64_t n);
struct tc_value *dyn_do(const struct tc_build *b, enum tc_opcode op, struct tc_value *x,
			struct tc_value *y);
struct tc_value *dyn_held(const struct tc_build *b, struct tc_value *x, int64_t most);
/* An integer of any type as s32: what does not fit becomes the nearest that does. */
struct tc_value *dyn_narrowed(const struct tc_build *b, struct tc_value *x);
/* Numbers of a rank 1 array of integers that are known; *n: how many. NULL: they are not. */
const int64_t *dyn_numbers(struct tc_ctx *c, const struct tc_value *v, unsigned *n);
/* x with the scalar `fill` where an element lies past the sizes of dims (bits). */
struct tc_value *dyn_covered(const struct tc_build *b, struct tc_value *x, uint64_t dims,
			     struct tc_value *fill);
/* Where an element of such an array lies before sizes[d] of each dim (NULL: none): a pred of its
 * dims, or NULL, everywhere. */
struct tc_value *dyn_within(const struct tc_build *b, const struct tc_type *t,
			    struct tc_value *const *sizes);
/* x with `fill` where it does not. */
struct tc_value *dyn_cut(const struct tc_build *b, struct tc_value *x,
			 struct tc_value *const *sizes, struct tc_value *fill);
/* dyn_covered() with a number. */
struct tc_value *dyn_zeroed(const struct tc_build *b, struct tc_value *x, uint64_t dims,
			    double number);
/* Elements of x along dim: at index[i], s32[n], which is held within x. */
struct tc_value *dyn_picked(const struct tc_build *b, struct tc_value *x, unsigned dim,
			    struct tc_value *index);
/* A scalar everywhere in s32[n]. */
struct tc_value *dyn_list_of(const struct tc_build *b, struct tc_value *x, int64_t n);
/* Scalars of s32 as s32[n]; and element i of such a list of any integers, as s32. */
struct tc_value *dyn_joined(const struct tc_build *b, unsigned n, struct tc_value *const *x);
struct tc_value *dyn_element(const struct tc_build *b, struct tc_value *list, unsigned i);
/* What there is no rule for. */
_Noreturn void dyn_refuse(struct tc_ctx *c, const struct tc_op *op, unsigned operand,
			  unsigned dim, const char *why);

/* ---- rules: move.c ---- */
void dyn_elementwise(struct tc_ctx *c, struct tc_op *op);
void dyn_broadcast(struct tc_ctx *c, struct tc_op *op);
void dyn_transpose(struct tc_ctx *c, struct tc_op *op);
bool dyn_reverse(struct tc_ctx *c, struct tc_op *op);
bool dyn_slice(struct tc_ctx *c, struct tc_op *op);
bool dyn_pad(struct tc_ctx *c, struct tc_op *op);
bool dyn_concatenate(struct tc_ctx *c, struct tc_op *op);
bool dyn_bitcast(struct tc_ctx *c, struct tc_op *op);
/* x as `out`, whose dims have the sizes of want (NULL: not said). What has the elements. */
struct tc_value *dyn_reshaped(struct tc_ctx *c, struct tc_op *op, struct tc_value *x,
			      struct tc_value *out, struct tc_value *const *want);

/* ---- window.c: what adds up ---- */
bool dyn_reduce(struct tc_ctx *c, struct tc_op *op);
bool dyn_reduce_window(struct tc_ctx *c, struct tc_op *op);
bool dyn_dot(struct tc_ctx *c, struct tc_op *op);
bool dyn_convolution(struct tc_ctx *c, struct tc_op *op);
bool dyn_sort(struct tc_ctx *c, struct tc_op *op);
/* How windows go along a dim, and how many there are over `size` elements. */
struct dyn_way { int64_t window, stride, base, dilation, low, high; };
bool dyn_is_plain(const struct dyn_way *w);	/* each element is one */
struct tc_value *dyn_windows(const struct tc_build *b, struct tc_value *size,
			     const struct dyn_way *w);

/* ---- norm.c: what is written as simpler ops first ---- */
bool dyn_batch_norm(struct tc_ctx *c, struct tc_op *op);
bool dyn_select_and_scatter(struct tc_ctx *c, struct tc_op *op);

/* ---- index.c: what is where a number says ---- */
bool dyn_gather(struct tc_ctx *c, struct tc_op *op);
bool dyn_scatter(struct tc_ctx *c, struct tc_op *op);
bool dyn_dynamic_slice(struct tc_ctx *c, struct tc_op *op);
bool dyn_update(struct tc_ctx *c, struct tc_op *op);

/* ---- meet.c: collectives among several members ---- */
bool dyn_meeting(struct tc_ctx *c, struct tc_op *op);

/* ---- shaped.c ---- */
/* Whether it is one of StableHLO's ops that are given their result's shape as an operand. */
bool dyn_is_shaped(const struct tc_op *op);
/* If all it is given is known: makes the plain op in its place (true), which nobody has judged. */
bool dyn_make_plain(struct tc_ctx *c, struct tc_op *op);
bool dyn_shaped(struct tc_ctx *c, struct tc_op *op);

#endif
