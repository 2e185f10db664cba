/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TC_PASSES_H
#define TC_PASSES_H
/*
 * What compile.c, which is on top, calls of the rooms: readers, passes, emission and the
 * evaluator. Private to runtime/compiler and its tests; programs come in by tc.h.
 *
 * All run inside of tc_enter() and leave by tc_fail(). Each takes the program of c->module
 * as the one before left it, and tc_ir_verify() has judged it in between.
 */
#include "runtime/compiler/ir/ir.h"
#include "runtime/compiler/tc.h"

/* Reads and verifies the source, calls body inside the boundary, frees all; returns what
 * tc_fail() was given, or 0. What body hands out through arg is malloc'd. `options` and
 * `err` may be NULL. Blocks for as long as body does. compile.c */
int tc_enter(const struct tc_source *source, const struct tc_options *options,
	     struct err *err, void (*body)(struct tc_ctx *c, void *arg), void *arg);

/* n bytes of MLIR bytecode into c->module, which is not verified yet. They stay the caller's
 * and must outlive the compile: constants point into them. front/bytecode.c */
void tc_read_bytecode(struct tc_ctx *c, const void *p, size_t n);

/* The same of a serialized HloModuleProto and HloModuleProtoWithConfig; constants are copies.
 * front/hlo.c */
void tc_read_hlo(struct tc_ctx *c, const void *p, size_t n);
void tc_read_hlo_with_config(struct tc_ctx *c, const void *p, size_t n);

/* What tc_hlo_with_config gives, of bytes that the functions above have read. *out is malloc'd.
 * front/hlo_config.c */
void tc_write_hlo_config(struct tc_ctx *c, const struct tc_source *source,
			 const struct image *image, void **out, size_t *bytes);

/* What tc_member_program gives, of a program after the pass "shard", at the end of out. Leaves with
 * UNIMPLEMENTED, the op by name, if StableHLO has no words for one. front/stablehlo.c */
void tc_write_stablehlo(struct tc_ctx *c, struct str *out);

/* Ops of a verified program that StableHLO has given up, as ops that the IR has: before anything
 * else looks at it, the evaluator too. opt/renew.c */
void tc_renew(struct tc_ctx *c);

/* What a verified program says of other devices, settled for as many as the options name:
 * before anything else looks at it, the evaluator too. opt/devices.c */
void tc_settle_devices(struct tc_ctx *c);

/* A serialized xla.OpSharding, of a tuple perhaps, of n arrays as the texts that spmd/sharding.h
 * has, in the arena. Bytes are hostile. front/hlo_sharding.c */
void tc_read_shardings(struct tc_ctx *c, const void *p, size_t bytes, unsigned n,
		       const char **text);

/* What spmd/partition.c takes of other rooms. */
struct tc_asking {
	const struct tc_partitioners *by;
	/* The module of a program in format "mlir", verified, settled, inlined. Leaves as
	 * readers do, with op's name in front. */
	struct tc_op *(*read)(struct tc_ctx *c, const struct tc_op *op, const void *p, size_t n);
	void (*read_shardings)(struct tc_ctx *c, const void *p, size_t bytes, unsigned n,
			       const char **text);
};
/* Calls that are the framework's to share out become what its functions make of them, after
 * "inline". Whether there were any. spmd/partition.c */
bool tc_share_calls(struct tc_ctx *c, const struct tc_asking *how);

void tc_pass_inline(struct tc_ctx *c);		/* opt/inline.c: calls, composites, tuples */
void tc_pass_branches(struct tc_ctx *c);	/* opt/branches.c: choices in bodies of scalars */
/* dynamic/dynamic.c: dims of bounded size to static ones with sizes beside them. Of a program
 * that has none it changes nothing, and tc_is_dynamic() says no. */
void tc_pass_dynamic(struct tc_ctx *c);
bool tc_is_dynamic(struct tc_ctx *c);
void tc_pass_layout(struct tc_ctx *c);		/* opt/layout.c: of results, where left to us */
void tc_pass_shard(struct tc_ctx *c);		/* spmd/shard.c: one member's of several */
void tc_pass_host(struct tc_ctx *c);		/* lower/host.c: sends and receives to calls */
void tc_pass_collectives(struct tc_ctx *c);	/* lower/collective.c: to tc.exchange */
void tc_pass_decompose(struct tc_ctx *c);	/* lower/decompose.c: ops to simpler ops */
void tc_pass_simplify(struct tc_ctx *c);	/* simplify/simplify.c: dead and idle ops */
void tc_pass_cse(struct tc_ctx *c);		/* opt/cse.c: of equal ops one */
void tc_pass_hoist(struct tc_ctx *c);		/* loop/hoist.c: out of loops what stays the same */
void tc_pass_combine_sums(struct tc_ctx *c);	/* opt/combine.c: of small all_reduces one */
void tc_pass_combine(struct tc_ctx *c);		/* opt/combine.c: of small meetings one */
void tc_pass_unroll(struct tc_ctx *c);		/* loop/unroll.c: several turns are one */
void tc_pass_empty(struct tc_ctx *c);		/* loop/empty.c: what loops fill begins empty */
void tc_pass_indexed(struct tc_ctx *c);		/* simplify/indexed.c: GATHER wraps, and fills */
void tc_pass_fuse(struct tc_ctx *c);		/* opt/fuse.c: makes FUSION ops */
void tc_pass_boxes(struct tc_ctx *c);		/* opt/boxes.c: reads what is put together */
void tc_pass_strip(struct tc_ctx *c);		/* loop/strip.c: large arrays in passing */
void tc_pass_alternate(struct tc_ctx *c);	/* loop/alternate.c: two turns are one */
void tc_pass_lend(struct tc_ctx *c);		/* opt/lend.c: what members read at others' */

/* Plans memory, writes code, checks it, makes the image; *image is malloc'd and written on
 * success only. back/emit.c */
void tc_emit(struct tc_ctx *c, void **image, size_t *bytes);

/* Runs main on args[n_args] with plain loops; c->options->memory_limit bounds the bytes of
 * all arrays. *outs is malloc'd (tc_array_free) and written on success only. eval/eval.c */
void tc_eval_run(struct tc_ctx *c, const struct tc_array *args, size_t n_args,
		 struct tc_array **outs, size_t *n_outs);

/*
 * Several evaluations of one program side by side, each a member of a gang, which meet in
 * its collectives. A member that meets others waits for them; when none can go on any more,
 * because all wait for each other or for members that have ended, or when one has failed, all
 * fail. eval/eval_gang.c
 *
 *	tc_gang_create(n, partitions, &g, err);
 *	each of n threads:	c->seat = tc_gang_seat(g, m);
 *				... tc_eval_run(c, ...) ...
 *				tc_gang_leave(seat, code, err);
 *	after all have ended:	code = tc_gang_result(g, err);
 *	tc_gang_destroy(g);
 */
struct tc_gang;
struct tc_seat;
/* RESOURCE_EXHAUSTED: out of memory. n is at least 1. */
int tc_gang_create(unsigned n, unsigned partitions, struct tc_gang **out, struct err *err);
/* NULL: nothing. Nobody sits on a seat any more. */
void tc_gang_destroy(struct tc_gang *g);
struct tc_seat *tc_gang_seat(struct tc_gang *g, unsigned member);
/* The member has ended, with this code and, if it is not 0, this error. */
void tc_gang_leave(struct tc_seat *s, int code, const struct err *err);
/* 0, or the code of what failed first, with its text and which member it was in *err. */
int tc_gang_result(const struct tc_gang *g, struct err *err);

#endif
