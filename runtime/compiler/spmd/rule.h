/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TC_SPMD_RULE_H
#define TC_SPMD_RULE_H
/*
 * What a sharding may do with an op: its *factors*. A factor is an index that the op runs
 * over; each dim of an operand or result is a product of factors, major first. Dims with the
 * same factor are cut alike: of a matrix product, [0,1][1,2]->[0,2].
 *
 * Rules are made of verified ops; they are the arena's and hold until the compile ends.
 * Threads and errors as ir.h; nothing here fails but for memory.
 */
#include "runtime/compiler/ir/ir.h"
#include "hal/base/str.h"

enum spmd_factor_kind {
	SPMD_PASS,		/* each part of the result needs its part of the operands */
	SPMD_REDUCTION,		/* only in operands: parts of the sum, which are to be added */
	SPMD_REPLICATE,		/* has to be whole where the op runs */
	SPMD_PERMUTATION,	/* parts need some of their neighbours' */
};

struct spmd_factor {
	int64_t size;
	uint8_t kind;		/* enum spmd_factor_kind */
	bool is_blocked;	/* shardings are not carried over by it */
};

/* The factors of one dim, major first. */
struct spmd_split {
	uint32_t n;
	uint16_t factor[TC_MAX_RANK];
};

struct spmd_rule {
	uint32_t n_factors, room;
	struct spmd_factor *factor;
	uint32_t n_operands, n_tensors;	/* tensors: the operands, then the results */
	uint8_t *rank;			/* of each */
	struct spmd_split **tensor;	/* of each as many as its rank; their n may be 0 */
};

/* When propagation lets shardings through an op. */
enum spmd_when { SPMD_ALL, SPMD_FORWARD, SPMD_LATE, SPMD_BROADCAST };

/* NULL: the op has none. `when`: not NULL. */
struct spmd_rule *spmd_rule(struct tc_ctx *c, const struct tc_op *op, enum spmd_when *when);
/* Appends it as `[0,1][1,2]->[0,2] 8,16,4 r1`: factors by number, several in a dim with dots;
 * their sizes; which are reductions, to be replicated (n), permutations, blocked. Factors are
 * numbered in the order in which they appear, from the left. */
void spmd_print_rule(const struct spmd_rule *r, struct str *out);
/* The rule that such a text says of op, whose tensors it has to fit; factors may have any numbers.
 * INVALID_ARGUMENT: it does not. rule_text.c */
struct spmd_rule *spmd_read_rule(struct tc_ctx *c, const struct tc_op *op, const char *text);

#endif
