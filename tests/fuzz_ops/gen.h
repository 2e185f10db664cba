/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FUZZ_OPS_GEN_H
#define FUZZ_OPS_GEN_H
/*
 * The generator's inside. A program is built as IR (ir.h): one op after another, each on values
 * that are there, each with the fact (fact.h) that follows from its operands' facts. An op
 * whose result would not be determined by them is not made. The door is gen_program().
 */
#include "runtime/compiler/ir/ir.h"
#include "tests/fuzz_ops/fact.h"

enum { GEN_POOL = 512, GEN_RANK = 6 };

struct gen {
	struct tc_ctx *c;
	uint64_t rng;
	struct tc_op *func;	/* main */
	struct tc_block *b;	/* where ops go */
	struct tc_value *pool[GEN_POOL];	/* what ops may take here */
	unsigned base, n_pool;	/* those from base on */
	unsigned scalars;	/* > 0: in a region of scalars */
	bool isolated;		/* in a region that sees nothing around it */
	unsigned depth;		/* of regions with ops of any kind */
	unsigned n_ops, budget;
	uint8_t elems[4];	/* the types that most values of this program have */
	unsigned n_elems;
	int64_t dims[8];	/* the sizes that most dims of this program have */
	unsigned n_dims;
	int64_t most;		/* elements of a value */
	unsigned n_funcs;
	bool (*draw)(struct gen *g);	/* one rule of all; false: it made nothing */
};

/* Builds the program of the seed into c, whose module is replaced. gen_program.c */
void gen_program(struct tc_ctx *c, uint64_t seed);

/* Makes of it, as gen_program() leaves it, a program of the same results for 2 to 8 devices.
 * gen_shard.c */
void gen_shard(struct tc_ctx *c, uint64_t seed);

/* ---- choice ---- */
static inline unsigned gen_below(struct gen *g, uint64_t n)
{
	return n ? (unsigned)(fuzz_next(&g->rng) % n) : 0;
}
/* True once in n times. */
static inline bool gen_one_in(struct gen *g, unsigned n)
{
	return gen_below(g, n) == 0;
}
static inline int64_t gen_between(struct gen *g, int64_t lo, int64_t hi)
{
	return lo + (int64_t)(fuzz_next(&g->rng) % (uint64_t)(hi - lo + 1));
}
/* One of this program's types, seldom another; of all types. */
unsigned gen_elem(struct gen *g);
unsigned gen_any_elem(struct gen *g);
int64_t gen_dim(struct gen *g);
/* n different numbers below `limit`, in any order. */
void gen_sample(struct gen *g, unsigned n, unsigned limit, int64_t *out);
/* The same in ascending order. */
void gen_subset(struct gen *g, unsigned n, unsigned limit, int64_t *out);

/* ---- values ---- */
static inline const struct fact *gen_fact(const struct tc_value *v)
{
	return v->side;
}
static inline bool gen_is_int(unsigned elem)
{
	return elem_class(elem) == ELEM_CLASS_SINT || elem_class(elem) == ELEM_CLASS_UINT;
}
static inline bool gen_is_float(unsigned elem)
{
	return elem_class(elem) == ELEM_CLASS_FLOAT;
}
static inline bool gen_is_complex(unsigned elem)
{
	return elem_class(elem) == ELEM_CLASS_COMPLEX;
}
const struct tc_type *gen_type(struct gen *g, unsigned elem, unsigned rank, const int64_t *dim);
const struct tc_type *gen_same_dims(struct gen *g, unsigned elem, const struct tc_type *t);
/* A value of the pool that fn accepts, or NULL; the newer the likelier. */
struct tc_value *gen_pick(struct gen *g, bool (*fn)(const struct tc_value *v, const void *arg),
			  const void *arg);
bool gen_is_tensor(const struct tc_value *v, const void *arg);	/* arg: not read */
struct tc_value *gen_pick_any(struct gen *g);
/* Whether an array is small enough for this program, its dims of 0 counted as 1. */
bool gen_is_small(const struct gen *g, unsigned rank, const int64_t *dim);
/* Of the type, whatever the fact. */
struct tc_value *gen_pick_type(struct gen *g, const struct tc_type *t);
/* A new value: argument of main, constant, iota. */
struct tc_value *gen_source(struct gen *g, const struct tc_type *t, struct fact f);
struct tc_value *gen_constant(struct gen *g, const struct tc_type *t, struct fact f);
/* A fact that new data of the type may have. */
struct fact gen_any_fact(struct gen *g, unsigned elem);
/* Of the pool or new: the type, and a fact within f. */
struct tc_value *gen_value(struct gen *g, const struct tc_type *t, struct fact f);
/* v, or what clamps it into the fact (RANGE and WHOLE); NULL: it can't. */
struct tc_value *gen_fit(struct gen *g, struct tc_value *v, struct fact f);
/* A scalar integer for a start, a count or a choice: any type, mostly small numbers. */
struct tc_value *gen_index(struct gen *g, unsigned elem, int64_t limit);
/* The CPU backend may take an unsigned index with its highest bit set for a negative one. */
void gen_taken_as_index(struct gen *g, unsigned elem, struct fact f);

/* ---- ops ---- */
/* Appends; results get their facts and join the pool. */
struct tc_op *gen_op(struct gen *g, enum tc_opcode op, unsigned n_operands,
		     struct tc_value *const *operands, unsigned n_results,
		     const struct tc_type *const *types, const struct fact *facts,
		     unsigned n_regions);
struct tc_value *gen_op1(struct gen *g, enum tc_opcode op, unsigned n,
			 struct tc_value *const *operands, const struct tc_type *t,
			 struct fact f);
/* Ops go into the new block of region r until gen_leave, which ends it in return. */
struct gen_place { struct tc_block *b; unsigned base, n_pool, scalars; bool isolated; };
struct gen_place gen_enter(struct gen *g, struct tc_op *op, unsigned r);
/* After gen_enter: nothing around the region is seen; with scalars only they are made. */
void gen_isolate(struct gen *g, bool scalars);
struct tc_value *gen_block_arg(struct gen *g, const struct tc_type *t, struct fact f);
void gen_leave(struct gen *g, struct gen_place place, unsigned n,
	       struct tc_value *const *values);
/* Some ops more, of any kind that fits the place. */
void gen_some(struct gen *g, unsigned n);
/* Nothing else may take the value. */
void gen_forget(struct gen *g, const struct tc_value *v);
void gen_set_fact(struct gen *g, struct tc_value *v, struct fact f);

/* The CPU backend has a quirk here (README.md#jax): the program does not go there. */
void gen_not_for_jax(struct gen *g);

/* Each makes an op if it finds operands for it. */
typedef bool gen_rule(struct gen *g);
gen_rule gen_unary, gen_binary, gen_compare, gen_select, gen_clamp, gen_convert, gen_bitcast,
	gen_complex, gen_approximate, gen_reduce_precision;	/* gen_elem.c */
gen_rule gen_broadcast, gen_transpose, gen_reverse, gen_slice, gen_reshape, gen_concatenate,
	gen_pad, gen_dynamic_slice, gen_dynamic_update, gen_new_source,
	gen_dimension_size;					/* gen_shape.c */
gen_rule gen_gather, gen_scatter, gen_dot, gen_convolution;	/* gen_index.c, gen_dot.c */
gen_rule gen_reduce, gen_reduce_window, gen_select_and_scatter, gen_map,
	gen_sort;						/* gen_body.c */
gen_rule gen_while, gen_case, gen_call, gen_barrier, gen_tuple;	/* gen_flow.c */
gen_rule gen_rng_bits, gen_fft, gen_cholesky, gen_solve, gen_norm;	/* gen_math.c */

/* What a sum of n values gives; false: it would not be exact. gen_elem.c */
bool gen_fact_of_sum(struct fact a, unsigned elem, int64_t n, struct fact *out);
bool gen_fact_of_binary(enum tc_opcode op, unsigned elem, struct fact a, struct fact b,
			struct fact *out);

#endif
