/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TC_EVAL_H
#define TC_EVAL_H
/*
 * The reference evaluator's inside (tc_eval() is its door). Private to the eval*.c
 * files, which share nothing with the back end or the device model. Below are
 * eval_frame.c and eval_num.c, above them a handler for each op, on top eval.c with
 * the table of handlers.
 *
 * Each op has a handler: it reads its operands' arrays, makes its results' and fills
 * them, element by element. An element in hand is a struct num; every op computes in
 * 64-bit integers or in double, and rounds once, when the element is stored. A handler
 * whose op has regions runs them by the frame's `run`.
 *
 * Handlers leave by tc_fail(). All memory that they hold is on the evaluator's list,
 * freed at the boundary, so none leaks.
 */
#include "runtime/compiler/ir/ir.h"

/* An array, dense and row-major, as in memory (elem.def); of a tuple, `data` holds
 * its parts (struct eval_array *). Arrays are not changed once their op is done. */
struct eval_array {
	struct eval_array *prev, *next;	/* on the evaluator's list */
	const struct tc_type *type;	/* NULL: scratch memory */
	size_t bytes;			/* of data */
	unsigned refs;
	_Alignas(16) unsigned char data[];
};

/* The frame that ops run in. */
struct eval {
	struct tc_ctx *c;
	/* Runs a region's block, whose arguments are set; its values stay until
	 * tc_eval_end(). Regions hold any op: eval.c's table is behind this. */
	void (*run)(struct eval *e, const struct tc_block *b);
	struct eval_array *all;
	struct eval_array **at;		/* by value id; NULL: not computed or dropped */
	const struct tc_op **last;	/* by value id: its last user in its own block */
	uint64_t held, limit;		/* bytes of all arrays */
	uint64_t random[3];		/* Philox state of draws: a device's with seed 0 */
	unsigned depth;			/* of blocks being run */
	const struct tc_op *op;		/* being run, for messages */
};

/* ---- arrays and values: eval_frame.c ---- */

/* What the value holds, borrowed; NULL: nothing. */
struct eval_array *tc_eval_get(struct eval *e, const struct tc_value *v);
/* A zeroed array becomes the value's. */
struct eval_array *tc_eval_new(struct eval *e, const struct tc_value *v);
/* The value holds a, whose reference it takes. */
void tc_eval_set(struct eval *e, const struct tc_value *v, struct eval_array *a);
void tc_eval_drop(struct eval *e, const struct tc_value *v);
struct eval_array *tc_eval_ref(struct eval_array *a);
/* The same of an op's operand and result; share: makes `from` the result's value. */
struct eval_array *tc_eval_in(struct eval *e, const struct tc_op *op, unsigned i);
struct eval_array *tc_eval_out(struct eval *e, const struct tc_op *op, unsigned i);
void tc_eval_share(struct eval *e, const struct tc_op *op, unsigned i,
		   struct eval_array *from);
/* Cuts elements of less than a byte, which come with any bits above their own. */
void tc_eval_tidy(struct eval_array *a);
/* count * size zeroed bytes until tc_eval_release(). */
void *tc_eval_scratch(struct eval *e, int64_t count, size_t size);
void tc_eval_release(struct eval *e, void *scratch);

/* ---- regions: eval_frame.c ---- */

/* Runs a region of scalars: in[i] is the element for its argument i; its results are
 * written to out[i] at the end, so they may lie where the arguments do. */
void tc_eval_apply(struct eval *e, const struct tc_block *b, const void *const *in,
		   void *const *out);
/* Runs a block, whose arguments are set and whose results are the op's. */
void tc_eval_become(struct eval *e, const struct tc_op *op, const struct tc_block *b);
/* After e->run(): what the block returns as number i, borrowed; then its values go. */
struct eval_array *tc_eval_result(struct eval *e, const struct tc_block *b, unsigned i);
void tc_eval_end(struct eval *e, const struct tc_block *b);

/* Refuses: INVALID_ARGUMENT with the reason; UNIMPLEMENTED on the element type. */
#define EVAL_BAD(e, ...) tc_fail((e)->c, ERR_INVALID_ARGUMENT, (e)->op, __VA_ARGS__)
_Noreturn void tc_eval_refuse(struct eval *e, unsigned elem);

/* ---- positions ---- */

/* The next position of the shape in row-major order; after the last, the first. */
static inline void tc_eval_step(unsigned rank, const int64_t *dim, int64_t *idx)
{
	for (unsigned d = rank; d-- > 0;) {
		if (++idx[d] < dim[d])
			return;
		idx[d] = 0;
	}
}

/* The element at a position that lies within the shape. */
static inline int64_t tc_eval_linear(const struct tc_type *t, const int64_t *idx)
{
	int64_t at = 0;

	for (unsigned d = 0; d < t->rank; d++)
		at = at * t->dim[d] + idx[d];
	return at;
}

static inline void *tc_eval_at(struct eval_array *a, int64_t i)
{
	return a->data + (size_t)i * elem_bytes(a->type->elem);
}

/* Positions in a shape, 0 if a dim is 0; of dims that belong to no array, INT64_MAX if
 * there are more. */
static inline int64_t tc_eval_count(unsigned rank, const int64_t *dim)
{
	int64_t n = 1;

	for (unsigned d = 0; d < rank; d++)
		if (!dim[d])
			return 0;
	for (unsigned d = 0; d < rank; d++)
		if (__builtin_mul_overflow(n, dim[d], &n))
			return INT64_MAX;
	return n;
}

static inline bool tc_eval_has(const int64_t *list, unsigned n, int64_t x)
{
	for (unsigned i = 0; i < n; i++)
		if (list[i] == x)
			return true;
	return false;
}

/* ---- elements: eval_num.c ---- */

/* By class: PRED, SINT and UINT use i (extended to 64 bits by their sign), FLOAT re,
 * COMPLEX re and im. */
struct num {
	uint64_t i;
	double re, im;
};

struct num tc_num_load(unsigned elem, const void *p);
/* As arithmetic has it, operands and results: below the smallest normal number of f32 and f64
 * (bf16 is computed in f32, complex numbers in parts) is a zero of its sign. */
struct num tc_num_flush(unsigned elem, struct num x);
/* Rounds to nearest even, or cuts to the type's bits. */
void tc_num_store(unsigned elem, void *p, struct num x);
/* As the op `convert`, but for the rounding that storing does. */
struct num tc_num_convert(unsigned from, unsigned to, struct num x);
/* As an index: an unsigned value past the signed range is INT64_MAX. */
int64_t tc_num_index(unsigned elem, const void *p);

/* Arithmetic, without rounding or cutting; a product is of the class. */
static inline struct num tc_num_add(struct num a, struct num b)
{
	return (struct num){ a.i + b.i, a.re + b.re, a.im + b.im };
}

static inline struct num tc_num_sub(struct num a, struct num b)
{
	return (struct num){ a.i - b.i, a.re - b.re, a.im - b.im };
}

static inline struct num tc_num_mul(unsigned cls, struct num a, struct num b)
{
	/* A real number has no imaginary part that could be 0 times infinity. */
	if (cls != ELEM_CLASS_COMPLEX)
		return (struct num){ a.i * b.i, a.re * b.re, 0 };
	return (struct num){ 0, a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re };
}

/* ---- handlers ---- */

/* eval_flow.c */
void tc_eval_constant(struct eval *e, const struct tc_op *op);
void tc_eval_empty(struct eval *e, const struct tc_op *op);
void tc_eval_call(struct eval *e, const struct tc_op *op);
void tc_eval_composite(struct eval *e, const struct tc_op *op);
void tc_eval_custom_call(struct eval *e, const struct tc_op *op);
void tc_eval_while(struct eval *e, const struct tc_op *op);
void tc_eval_case(struct eval *e, const struct tc_op *op);
void tc_eval_tuple(struct eval *e, const struct tc_op *op);
void tc_eval_part(struct eval *e, const struct tc_op *op);
void tc_eval_same(struct eval *e, const struct tc_op *op);
void tc_eval_token(struct eval *e, const struct tc_op *op);
void tc_eval_number(struct eval *e, const struct tc_op *op);
/* eval_elem.c */
void tc_eval_elementwise(struct eval *e, const struct tc_op *op);
/* eval_shape.c */
void tc_eval_iota(struct eval *e, const struct tc_op *op);
void tc_eval_broadcast(struct eval *e, const struct tc_op *op);
void tc_eval_concatenate(struct eval *e, const struct tc_op *op);
void tc_eval_pad(struct eval *e, const struct tc_op *op);
void tc_eval_reshape(struct eval *e, const struct tc_op *op);
void tc_eval_bitcast(struct eval *e, const struct tc_op *op);
void tc_eval_reverse(struct eval *e, const struct tc_op *op);
void tc_eval_slice(struct eval *e, const struct tc_op *op);
void tc_eval_transpose(struct eval *e, const struct tc_op *op);
void tc_eval_dynamic_slice(struct eval *e, const struct tc_op *op);
void tc_eval_dynamic_update(struct eval *e, const struct tc_op *op);
/* eval_index.c */
void tc_eval_gather(struct eval *e, const struct tc_op *op);
void tc_eval_scatter(struct eval *e, const struct tc_op *op);
/* eval_dot.c */
void tc_eval_dot(struct eval *e, const struct tc_op *op);
void tc_eval_convolution(struct eval *e, const struct tc_op *op);
/* eval_reduce.c */
void tc_eval_reduce(struct eval *e, const struct tc_op *op);
void tc_eval_reduce_window(struct eval *e, const struct tc_op *op);
void tc_eval_select_and_scatter(struct eval *e, const struct tc_op *op);
void tc_eval_map(struct eval *e, const struct tc_op *op);
void tc_eval_sort(struct eval *e, const struct tc_op *op);
/* eval_rng.c */
void tc_eval_rng_bits(struct eval *e, const struct tc_op *op);
void tc_eval_rng(struct eval *e, const struct tc_op *op);
void tc_eval_draw(struct eval *e, const struct tc_op *op);
/* eval_linalg.c */
void tc_eval_fft(struct eval *e, const struct tc_op *op);
void tc_eval_cholesky(struct eval *e, const struct tc_op *op);
void tc_eval_solve(struct eval *e, const struct tc_op *op);
void tc_eval_lu(struct eval *e, const struct tc_op *op);
/* eval_gang.c */
void tc_eval_collective(struct eval *e, const struct tc_op *op);
void tc_eval_own_number(struct eval *e, const struct tc_op *op);
/* eval_norm.c */
void tc_eval_norm_grad(struct eval *e, const struct tc_op *op);
void tc_eval_norm_inference(struct eval *e, const struct tc_op *op);
void tc_eval_norm_training(struct eval *e, const struct tc_op *op);

#endif
