/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BRINGUP_ISA_BENCH_H
#define BRINGUP_ISA_BENCH_H
/*
 * One program of the device on one memory: what is in it before, what should be in it after, and
 * instructions. Private to tools/bringup/isa.
 *
 *	struct isa_bench *t = isa_bench(b);
 *	x = isa_in(t, bytes, n);
 *	y = isa_out(t, ELEM_F32, want, 65, ISA_EXACT, "neg of f32");
 *	isa_put(t, head, sizeof(head), operands, 2, uops, 1);
 *	return isa_run(t);
 *
 * What no isa_out() has said must come back as it was.
 */
#include "hal/hw/image.h"
#include "runtime/compiler/tc.h"
#include "tools/bringup/context.h"

/* How near a result must be. All but BITS take a NaN for any NaN, and numbers below the smallest
 * normal one for zero; NEAR and FAR of complex numbers are of their size. */
enum isa_rule {
	ISA_BITS,	/* the same bytes */
	ISA_EXACT,	/* the same number */
	ISA_ZEROS,	/* ..., and -0 is +0: sums in any order */
	ISA_NEAR,	/* what ISA.md says of elementary functions: 2 units in the last place, */
	ISA_FAR,	/* ... of erf and pow: 4 */
	ISA_WITHIN,	/* as isa_within() says: sums that are rounded on the way */
};

struct isa_bench;

/* For the rest of the step, or until it gives back what it took. NULL and b->err. */
struct isa_bench *isa_bench(struct bringup *b);

/* A place in memory: its offset. What has no room any more fails isa_run(). */
uint64_t isa_in(struct isa_bench *t, const void *bytes, size_t n);
/* ... of n elements that the program writes. `format` names the instruction, for messages. */
__attribute__((format(printf, 6, 7)))
uint64_t isa_out(struct isa_bench *t, enum elem e, const void *want, size_t n,
		 enum isa_rule rule, const char *format, ...);

/* ..., which hold `now` before it. */
__attribute__((format(printf, 7, 8)))
uint64_t isa_inout(struct isa_bench *t, enum elem e, const void *now, const void *want, size_t n,
		   enum isa_rule rule, const char *format, ...);

/* Of what the last isa_out() or isa_inout() is for, by ISA_WITHIN: how far off an element may be,
 * in units in the last place of the root mean square of all. */
void isa_within(struct isa_bench *t, double units);

/* Appends an instruction: its struct, whose length is set, operands, vector operations. */
void isa_put(struct isa_bench *t, const void *head, size_t bytes, const struct isa_operand *op,
	     unsigned n_op, const struct isa_uop *uop, unsigned n_uop);
/* ... of the scalar unit. */
void isa_put_scalar(struct isa_bench *t, unsigned op, struct isa_scalar s);

/* Ends the program with HALT, runs it and looks. A failure names the instruction, the element and
 * both values. */
enum bringup_result isa_run(struct isa_bench *t);
/* The same of a program that ends in a fault: it must stop with `code`. */
enum bringup_result isa_run_to(struct isa_bench *t, int code);

/* An operand of the memory: rank strides follow from the outermost. */
#define ISA_AT(e, at, ...) ((struct isa_operand){ .elem = (uint8_t)(e), .binding = 2, \
	.offset = (int64_t)(at), .stride = { __VA_ARGS__ } })

/*
 * Lines of the compiler's IR, run by its evaluator: the array that they call %9. @0, @1, @2 are the
 * types of the arguments %0, %1, %2; @R is the result's; @P, @U, @F like @0, of i1, of ui64, of the
 * real part; @S, @E scalars like the result, like @0; @C how @0 is compared. `result` has only its
 * type. The data is for the rest of the step; NULL and b->err.
 */
void *isa_evaluate(struct bringup *b, const char *lines, const struct tc_array *args,
		   unsigned n_args, const struct tc_array *result);
/* An array for that, of two dims; n1 0: of one; n0 0, too: a scalar. */
struct tc_array isa_array(enum elem e, void *data, size_t n0, size_t n1);
/* The lines that fold dim `dim` of %0 by an op, from %1 on. */
struct isa_lines { char at[512]; };
struct isa_lines isa_fold(const char *op, unsigned dim);

#endif
