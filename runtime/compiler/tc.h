/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TC_TC_H
#define TC_TC_H
/*
 * The compiler's door: program bytes in, an executable's ELF bytes out. It needs no device
 * and keeps no state. Programs are StableHLO: what an op computes is in StableHLO's
 * specification (version 1), and where that leaves it open as XLA's CPU backend does it.
 *
 * Threads: every function may be called from any thread, at any time, any number at once.
 * They wait for nobody, but compute for as long as it takes, and there is no way to stop
 * them. Ownership: what is given stays the caller's and is not kept; what is written through
 * out, on success only, is the caller's to free. Errors: the code is returned and is in *err
 * with a text; err may be NULL. A program, however broken, is answered by an error.
 *
 *	struct tc_result r;
 *	if (tc_compile(&(struct tc_source){ bytes, n, "mlir" }, &options, &r, err))
 *		...
 *	hal_exe_load(dev, r.image, r.image_bytes, ...);
 *	tc_result_free(&r);
 *
 * TESSERA_DUMP=dir writes each compile's IR after every pass as numbered files
 * (dir/NAME.N/03-fuse.ir) and the image; TESSERA_DUMP=dir,pass=fuse one of them.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hal/base/err.h"

struct image;	/* hal/hw/image.h */

/* Of the whole tree: in the image's note, the packages and the tools. */
#define TC_VERSION "0.1"
/* What a user reads when a check of our own finds a program wrong; what to send follows. */
#define TC_OUR_BUG "This is a bug of Tessera's compiler, not of the program: please report it " \
	"with "

/* A program as a framework sends it. */
struct tc_source {
	const void *code;	/* any alignment; read until the call returns */
	size_t bytes;
	/* "mlir": MLIR bytecode with VHLO, or our IR's text (compiler/README.md);
	 * "hlo": a serialized HloModuleProto; "hlo_with_config": HloModuleProtoWithConfig.
	 * NUL-terminated. */
	const char *format;
};

/* NULL where it is asked for: level 1 and zeros. */
struct tc_options {
	uint64_t memory_limit;	/* bytes of HBM that arguments, results, temporaries and
				 * constants may take together; 0: no limit */
	unsigned level;		/* 0: only the passes that emission needs; 1 or more: all */
	bool verify;		/* after every pass types and shapes too, not just structure */
	unsigned replicas, partitions;	/* devices that share the work; 0: 1 */
	uint64_t direct_bytes;	/* what a member receives at once of so many bytes or more is
				 * written straight to where it is to lie (hal/hw/image.h, peer
				 * data): whoever launches it launches all members together.
				 * 0: none is */
	uint64_t strip_bytes;	/* arrays of so many bytes or more that only pass from one
				 * instruction to the next are made in parts. 0: 16 MiB */
	const char *evaluate_after;	/* tc_eval_gang: a pass; NULL: the last one before
				 * collectives are taken apart. Of no use to others */
};

struct tc_result {
	void *image;		/* malloc'd ELF file (hal/hw/image.h) */
	size_t image_bytes;
};

/*
 * Compiles: the same bytes and options give the same image. INVALID_ARGUMENT: malformed
 * bytes, with their offset, or text, with line and column; or an ill-typed program, with op
 * and location. UNIMPLEMENTED: an op or type that does not run yet, by name and location.
 * RESOURCE_EXHAUSTED: the host is out of memory, compiling takes more than 256 MiB and 256
 * times the program's bytes, or the program needs more than memory_limit (says how much,
 * for what). INTERNAL: one of our own checks found a pass or the emitted code wrong.
 */
int tc_compile(const struct tc_source *source, const struct tc_options *options,
	       struct tc_result *out, struct err *err);
void tc_result_free(struct tc_result *r);	/* zeros it, too; r: not NULL */

/* The program as our IR's text after reading (stage "read"), after the pass of that name, or
 * after all ("final", or any name that no pass has). *text is NUL-terminated, malloc'd.
 * Errors as tc_compile. */
int tc_print(const struct tc_source *source, const struct tc_options *options,
	     const char *stage, char **text, struct err *err);

/* A source in format "hlo" or "hlo_with_config" as a serialized HloModuleProtoWithConfig: its
 * module as it came, but for how the results lie on partitions, which is as `image` says, what
 * the source was compiled to (NULL: nothing is said); and as layouts of main's arguments and
 * results those that they have here, row-major. *out is malloc'd. Errors as tc_print. */
int tc_hlo_with_config(const struct tc_source *source, const struct tc_options *options,
		       const struct image *image, void **out, size_t *bytes,
		       struct err *err);

/* What each member runs of a program for several devices, as StableHLO's text, which XLA's
 * reader takes: sharded out, its collectives written out, not optimized further. The module
 * says how arguments and results lie on the partitions. *text is NUL-terminated, malloc'd, and
 * *bytes long without that. Errors as tc_compile; UNIMPLEMENTED too if an op can't be written. */
int tc_member_program(const struct tc_source *source, const struct tc_options *options,
		      char **text, size_t *bytes, struct err *err);

/* ---- calls that their framework shares out ---- */
struct tc_bytes { const void *p; size_t n; };

/* An array of such a call, whole, and how it lies as far as is known. */
struct tc_partition_array {
	uint8_t elem;		/* enum elem */
	unsigned rank;
	const int64_t *dim;
	struct tc_bytes sharding;	/* a serialized xla.OpSharding; 0 bytes: replicated */
};

struct tc_partition_call {
	const char *target;
	struct tc_bytes config;		/* backend_config */
	unsigned n_operands, n_results;
	const struct tc_partition_array *arrays;	/* operands, then results */
};

/* What a function of the framework gives of a call: all that `memory`, malloc'd, holds. */
struct tc_partition_answer {
	struct tc_bytes program;	/* format "mlir": what each member does with its parts */
	const struct tc_bytes *operands;	/* [n_operands]: how it wants them, OpSharding */
	struct tc_bytes results;	/* how it gives them: OpSharding, of several a tuple's */
	void *memory;
};

/*
 * The functions. They are called from tc_ask_partitioners alone, on its thread, one after the
 * other, and may block. Each returns 0 or a code with a text in *err, which fails the whole; what
 * they give is not trusted. `arg` is theirs.
 */
struct tc_partitioners {
	/* Whether the bytes hold the name of a target that has functions: a quick look. */
	bool (*may_be_in)(void *arg, const void *code, size_t bytes);
	bool (*has)(void *arg, const char *target);
	int (*partition)(void *arg, const struct tc_partition_call *call,
			 struct tc_partition_answer *out, struct err *err);
	/* For targets of which the program says no rule (Shardy's sdy.sharding_rule): how results
	 * lie by how operands do; and by how their users want them. Answers have `results` alone,
	 * of 0 bytes where nothing is said. */
	int (*infer)(void *arg, const struct tc_partition_call *call,
		     struct tc_partition_answer *out, struct err *err);
	int (*propagate)(void *arg, const struct tc_partition_call *call,
			 struct tc_partition_answer *out, struct err *err);
	void *arg;
};

/* Has all calls of a program that are a framework's to share out shared out, and gives the program
 * with what each member does in their place, as our IR's text: it can be kept, and compiled
 * anywhere. *text is NULL if there is no such call; else malloc'd, *bytes long. Errors as
 * tc_compile, and the functions'. */
int tc_ask_partitioners(const struct tc_source *source, const struct tc_options *options,
			const struct tc_partitioners *by, char **text, size_t *bytes,
			struct err *err);

/* A dense row-major array of the evaluator. */
struct tc_array {
	uint8_t elem;		/* enum elem */
	unsigned rank;		/* at most 32 */
	int64_t dim[32];	/* rank of them, from the outermost */
	void *data;		/* as in memory (hal/base/elem.def): a byte at least an element */
	size_t bytes;		/* of data: elements times their size */
};

/* Runs the program's main function with plain loops (eval/eval.c), the reference for
 * tests. args[n_args] are borrowed, with the sizes of those that have bounds behind them, as
 * hal/hw/image.h has them; so are results. (*outs)[*n_outs]: data is malloc'd, the caller's
 * (tc_array_free). Errors as tc_compile; INVALID_ARGUMENT for arguments that do not fit,
 * RESOURCE_EXHAUSTED for arrays of more than 8 GiB in all. */
int tc_eval(const struct tc_source *source, const struct tc_array *args, size_t n_args,
	    struct tc_array **outs, size_t *n_outs, struct err *err);

/*
 * The same of a program for several devices, M = replicas * partitions members: member m is
 * replica m / partitions and partition m % partitions. It is evaluated as the passes up to
 * `evaluate_after` leave it, each member by a thread, with arguments and results of its own.
 * args[M * n_args] and (*outs)[M * *n_outs] are member by member, the first one's first.
 * Errors as tc_eval, of the member that fails first, with its number; INVALID_ARGUMENT too if
 * members wait for each other in different ops, or for one that has ended.
 */
int tc_eval_gang(const struct tc_source *source, const struct tc_options *options,
		 const struct tc_array *args, size_t n_args, struct tc_array **outs,
		 size_t *n_outs, struct err *err);
void tc_array_free(struct tc_array *arrays, size_t n);	/* NULL, 0: nothing */

#endif
