/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TC_OPT_BUILD_H
#define TC_OPT_BUILD_H
/*
 * A short hand for passes that write ops: each function makes one op (rarely two), places
 * it and returns its result. Shapes are the caller's: nothing is inferred that a
 * verified program does not ensure. Fails by tc_fail only.
 */
#include "runtime/compiler/ir/ir.h"

struct tc_build {
	struct tc_ctx *c;
	struct tc_op *before;	/* new ops go before it; NULL: to the end of block */
	struct tc_block *block;
	const char *where;	/* location of new ops */
};

/* Ops that replace `op`: before it, with its location. */
struct tc_build tc_build_at(struct tc_ctx *c, struct tc_op *op);
struct tc_op *tc_build_place(const struct tc_build *b, struct tc_op *op);
struct tc_value *tc_build(const struct tc_build *b, enum tc_opcode op,
			  const struct tc_type *type, unsigned n,
			  struct tc_value *const *in);
/* Elementwise of one type. */
struct tc_value *tc_build1(const struct tc_build *b, enum tc_opcode op, struct tc_value *x);
struct tc_value *tc_build2(const struct tc_build *b, enum tc_opcode op, struct tc_value *x,
			   struct tc_value *y);
struct tc_value *tc_build_select(const struct tc_build *b, struct tc_value *p,
				 struct tc_value *x, struct tc_value *y);
/* direction: TC_CMP_*. */
struct tc_value *tc_build_compare(const struct tc_build *b, int direction,
				  struct tc_value *x, struct tc_value *y);
struct tc_value *tc_build_convert(const struct tc_build *b, struct tc_value *x,
				  enum elem elem);
/* A number everywhere, of any type that converts from f64. */
struct tc_value *tc_build_number(const struct tc_build *b, const struct tc_type *type,
				 double value);
/* Whether v is a constant that is this number everywhere. False also of types whose numbers
 * tc_build_number() has converted. */
bool tc_is_number(const struct tc_value *v, double value);
/* The whole number that all of v's elements are; false: they are none, or not all the same. One
 * without a sign from 2^63 on is below 0. */
bool tc_whole_number(const struct tc_value *v, int64_t *number);
/* Whether a type's elements are whole numbers, with a sign or without; truth values are none. */
bool tc_is_integer(const struct tc_type *t);
/* Dense row-major data, copied. */
struct tc_value *tc_build_data(const struct tc_build *b, const struct tc_type *type,
			       const void *data);
struct tc_value *tc_build_iota(const struct tc_build *b, const struct tc_type *type,
			       unsigned dim);
struct tc_value *tc_build_reshape(const struct tc_build *b, struct tc_value *x,
				  unsigned rank, const int64_t *dim);
struct tc_value *tc_build_broadcast(const struct tc_build *b, struct tc_value *x,
				    const struct tc_type *type, const int64_t *dims);
struct tc_value *tc_build_transpose(const struct tc_build *b, struct tc_value *x,
				    const int64_t *permutation);
/* The last two dims exchanged. */
struct tc_value *tc_build_turn(const struct tc_build *b, struct tc_value *x);
/* From `start` on, each step[d]-th element of dim d, of the type's size. */
struct tc_value *tc_build_steps(const struct tc_build *b, struct tc_value *x,
				const int64_t *start, const int64_t *step,
				const struct tc_type *type);
/* The same with steps of 1. */
struct tc_value *tc_build_slice(const struct tc_build *b, struct tc_value *x,
				const int64_t *start, const struct tc_type *type);
/* Elements of the scalar `by` before, after and between those of x: so many along each dim;
 * before and after also less than none. */
struct tc_value *tc_build_pad(const struct tc_build *b, struct tc_value *x, struct tc_value *by,
			      const int64_t *low, const int64_t *high, const int64_t *interior);
/* Along `dim` from a scalar index, `size` wide; and the update of such a slice. */
struct tc_value *tc_build_take(const struct tc_build *b, struct tc_value *x, unsigned dim,
			       struct tc_value *index, int64_t size);
struct tc_value *tc_build_put(const struct tc_build *b, struct tc_value *x, unsigned dim,
			      struct tc_value *index, struct tc_value *part);
/* Rows rows[i, k] of x[i], x [batch, m, w] and rows [batch, n] of integers: [batch, n, w]. */
struct tc_value *tc_build_rows(const struct tc_build *b, struct tc_value *x,
			       struct tc_value *rows);
/* x and y share `batch` leading dims; one dim of each is summed over. */
struct tc_value *tc_build_dot(const struct tc_build *b, struct tc_value *x,
			      struct tc_value *y, unsigned batch, unsigned x_dim,
			      unsigned y_dim);
/* x folded by op (an addition, a maximum, ...) from `first` on over the dims whose bits are
 * set; and the sum. */
struct tc_value *tc_build_fold(const struct tc_build *b, enum tc_opcode op,
			       struct tc_value *x, double first, uint64_t dims);
struct tc_value *tc_build_sum(const struct tc_build *b, struct tc_value *x, uint64_t dims);
/* Ends a region. */
void tc_build_return(const struct tc_build *b, unsigned n, struct tc_value *const *values);
/* n arrays behind each other along `dim`. */
struct tc_value *tc_build_join(const struct tc_build *b, unsigned n,
			       struct tc_value *const *parts, unsigned dim);
/* Elements from .. from + size of one dim. */
struct tc_value *tc_build_part(const struct tc_build *b, struct tc_value *x, unsigned dim,
			       int64_t from, int64_t size);
/* Complex to its conjugate; others as they are. */
struct tc_value *tc_build_conjugate(const struct tc_build *b, struct tc_value *x);
/* The real type of a complex one; others themselves. */
enum elem tc_real_of(enum elem elem);
/* The real part; of a real number itself. */
struct tc_value *tc_build_real(const struct tc_build *b, struct tc_value *x);
/* Where the row's number compares so (TC_CMP_*) with the column's, of [batch, rows, cols]:
 * a diagonal, or a triangle. The type's elements do not matter. */
struct tc_value *tc_build_where(const struct tc_build *b, const struct tc_type *type,
				int direction);
/* x as [batch, rows, cols]. */
struct tc_value *tc_build_matrices(const struct tc_build *b, struct tc_value *x);
/* The ops of a region of scalars, with its arguments; returns what it yields first. */
struct tc_value *tc_build_region(const struct tc_build *b, const struct tc_region *r,
				 struct tc_value *const *args);
/* The op of a body of scalars that is one op of its two arguments, whose order does not count;
 * TC_OP_COUNT: it is something else. */
enum tc_opcode tc_op_of_body(const struct tc_block *b);
/* An op of a region of scalars that can't be run on arrays, or NULL. */
const struct tc_op *tc_only_for_scalars(const struct tc_block *body);
/* The region's ops, all fit for that, on arrays of the shape: args for its arguments; out:
 * what it returns. */
void tc_build_on_arrays(const struct tc_build *b, const struct tc_block *body,
			struct tc_value *const *args, const struct tc_type *shape,
			struct tc_value **out);
/*
 * for (i = 0; i < n && more(state); i++) state = body(i, state): s32 counter, more may
 * be NULL. body appends to the builder it is given and changes state[] in place; arg is the
 * caller's. At most 8 states.
 */
struct tc_loop {
	int64_t n;
	struct tc_value *(*more)(const struct tc_build *b, struct tc_value *const *state,
				 void *arg);
	void (*body)(const struct tc_build *b, struct tc_value *i, struct tc_value **state,
		     void *arg);
	void *arg;
};
void tc_build_loop(const struct tc_build *b, const struct tc_loop *loop, unsigned n_state,
		   struct tc_value **state);

/* ---- functions.c: types and numbers are a program's, and may not do ---- */
/* The function that CHLO calls so ("asin"); NULL: none of that name, or not of such a type. */
struct tc_value *tc_build_function(const struct tc_build *b, const char *name, struct tc_value *x);
/* The first k of the last dim, sorted, and where they were: equal ones in their order. False:
 * there are none such. */
bool tc_build_top_k(const struct tc_build *b, struct tc_value *x, int64_t k, bool largest_first,
		    struct tc_value *out[2]);

/* ---- simplify.c ---- */
/* Makes a slice of one of the parts of a concatenation, which op may be, that of the part. */
bool tc_slice_of_part(struct tc_ctx *c, struct tc_op *op);
/* The product that makes v, if nothing else looks at v and op, a transpose that does, needs no
 * move: its operands the other way round give what op makes of v, in the same bits. Else NULL. */
const struct tc_op *tc_product_to_turn(const struct tc_op *op, const struct tc_value *v);

#endif
