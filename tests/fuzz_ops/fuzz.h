/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FUZZ_OPS_FUZZ_H
#define FUZZ_OPS_FUZZ_H
/*
 * Programs three ways: the device, the evaluator, JAX's CPU backend. A program is our IR's text
 * with facts as locations (fact.h); its arguments follow from it and a seed.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hal/base/err.h"
#include "hal/base/str.h"
#include "runtime/compiler/passes.h"
#include "tests/fuzz_ops/fact.h"

enum { FUZZ_MAX_ARGS = 64, FUZZ_MAX_RESULTS = 64, FUZZ_MAX_MEMBERS = 8 };

struct fuzz_value { struct fact fact; unsigned elem, rank; int64_t dim[8], count; };

struct program {
	char *text;		/* malloc'd */
	char *stablehlo;	/* the same as MLIR reads it, malloc'd; NULL until asked for */
	char *for_jax;		/* that with constants as arguments behind the others */
	struct tc_array *constants;	/* what those are */
	unsigned n_constants;
	struct fuzz_value args[FUZZ_MAX_ARGS], results[FUZZ_MAX_RESULTS];
	unsigned n_args, n_results, n_ops;
	unsigned n_partitions;	/* 1, or devices that it is for, together */
	struct tc_array in[FUZZ_MAX_ARGS];
	struct tc_array *expected;	/* the evaluator's */
	size_t n_expected;
	bool is_for_jax;	/* the CPU backend has no quirk that shows in it */
};

/* What became of a program. */
enum verdict {
	SAME,
	DIFFERENT,	/* the device's results are not the evaluator's */
	REFUSED,	/* by the compiler or the device */
	NO_ORACLE,	/* by the evaluator */
	JAX_DIFFERENT,	/* JAX's results are not the evaluator's */
	JAX_REFUSED,	/* by JAX: it counts for nothing */
	CRASHED,
	INVALID,	/* the text is no program: only while reducing */
	VERDICTS
};
extern const char *const verdict_names[VERDICTS];

/* Uses of an op by element type; row ELEM_COUNT... see coverage_print. */
struct coverage { uint32_t n[128][32]; };

/* ---- programs: program.c ---- */
/* `is_sharded`: for several devices. */
int program_generate(uint64_t seed, bool is_sharded, struct program *out, struct err *err);
/* Takes the text, which is malloc'd. */
int program_read(char *text, struct program *out, struct err *err);
/* Fills the arguments. */
void program_fill(struct program *p, uint64_t seed);
int program_stablehlo(struct program *p, struct err *err);
int program_for_jax(struct program *p, struct err *err);
void program_count(const struct program *p, struct coverage *c);
void coverage_print(const struct coverage *c);
/* Result i that `who` gave with the evaluator's. */
enum verdict compare_results(const struct program *p, unsigned i, const void *got, size_t bytes,
			     bool is_jax, const char *who, struct err *err);
void program_free(struct program *p);

/* ---- ways: ways.c ---- */
struct device;
/* Opens devices when they are first asked for. */
struct device *device_new(void);
void device_free(struct device *d);
/* The evaluator's results into p. */
enum verdict run_evaluator(struct program *p, struct err *err);
/* `which` rotates lanes and instruction sets, and whether small arrays are made in strips, too: so
 * many are different. */
enum { DEVICE_WAYS = 12 };
enum verdict run_device(struct device *d, unsigned which, const struct program *p,
			struct err *err);

/* ---- several devices: members.c ---- */
struct rt_client;
/* A program of several partitions on so many devices of the client. */
enum verdict run_members(struct rt_client *client, const struct program *p, struct err *err);

/* ---- JAX in a process of its own: jax.c ---- */
struct jax;
struct jax *jax_start(const char *python);	/* NULL: it can't */
void jax_stop(struct jax *j);
/* Waits for the answer. */
enum verdict run_jax(struct jax *j, struct program *p, struct err *err);

/* ---- files: replay.c ---- */
/* The file's program on every model, and JAX unless NULL; what differs is printed. */
enum verdict replay_file(const char *path, struct device *d, struct jax *jax);
char *fuzz_read_file(const char *path);	/* malloc'd; NULL: it can't be read */

/* ---- smaller: reduce.c ---- */
/* Whether the text shows what is looked for. */
typedef bool shows_fn(const char *text, void *arg);
/* A smaller text that still shows it, malloc'd. */
char *reduce_program(const char *text, shows_fn *shows, void *arg);

#endif
