/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TC_TC_H
#define TC_TC_H
/*
 * The compiler's door: program bytes in, an executable's ELF bytes out. It needs no
 * device and keeps no state: any number of compiles may run at once.
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

#define TC_VERSION "0.1"
/* What a user reads when a check of our own finds a program wrong; what to send follows. */
#define TC_OUR_BUG "This is a bug of Tessera's compiler, not of the program: please report it " \
	"with "

struct tc_source {
	const void *code;
	size_t bytes;
	/* "mlir": MLIR bytecode with VHLO, or our IR's text (compiler/README.md);
	 * "hlo": a serialized HloModuleProto. NUL-terminated. */
	const char *format;
};

struct tc_options {
	unsigned cores;		/* parallel lanes of the device; 0: 1 */
	uint64_t memory_limit;	/* HBM that the program may use; 0: no limit */
	unsigned level;		/* 0: no optimisation; 1 or more: all passes */
	bool verify;		/* after every pass types and shapes too, not just structure */
	bool fast_math_bf16;	/* DEFAULT precision of f32 may round to bf16: never on
				 * unless the user asked */
};

struct tc_result {
	void *image;		/* malloc'd ELF file (hal/hw/image.h) */
	size_t image_bytes;
};

/*
 * Compiles. INVALID_ARGUMENT: malformed bytes, with their offset, or text, with line and
 * column; or an ill-typed program, with op and location. UNIMPLEMENTED: an op or type
 * that does not run yet, by name and location. RESOURCE_EXHAUSTED: out of memory, or
 * the program needs more than memory_limit (says how much, for what). Blocks for as
 * long as it takes.
 */
int tc_compile(const struct tc_source *source, const struct tc_options *options,
	       struct tc_result *out, struct err *err);
void tc_result_free(struct tc_result *r);

/* The program as our IR's text after reading (stage "read"), after the pass of that name, or
 * after all ("final"). *text is malloc'd. Errors as tc_compile. */
int tc_print(const struct tc_source *source, const struct tc_options *options,
	     const char *stage, char **text, struct err *err);

/* A dense row-major array of the evaluator. */
struct tc_array {
	uint8_t elem;		/* enum elem */
	unsigned rank;
	int64_t dim[32];
	void *data;
	size_t bytes;
};

/* Runs the program's main function with plain loops (eval.c), the reference for
 * tests. outs[*n_outs]: data is malloc'd, the caller's (tc_array_free). Errors as
 * tc_compile, and INVALID_ARGUMENT for arguments that do not fit. */
int tc_eval(const struct tc_source *source, const struct tc_array *args, size_t n_args,
	    struct tc_array **outs, size_t *n_outs, struct err *err);
void tc_array_free(struct tc_array *arrays, size_t n);

#endif
