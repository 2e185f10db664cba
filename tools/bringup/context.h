/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BRINGUP_CONTEXT_H
#define BRINGUP_CONTEXT_H
/*
 * What steps work with. Private to tools/bringup. A step is `enum bringup_result step_NAME(struct
 * bringup *b)`; it leaves no memory of the device taken when it passes. Files call only those
 * before them: context.c, program.c, then the files of steps, then run.c.
 */
#include "hal/bare.h"
#include "tools/bringup/bringup.h"

#define SECOND 1000000000ll
/* No step waits longer for what must come. */
#define SOON clock_after(20 * SECOND)
#define COUNT(array) (sizeof(array) / sizeof(*(array)))

struct bringup {
	const struct bringup_options *options;
	struct hal *hal;
	struct hal_bare *bare;		/* at most one of these two is open */
	struct hal_device *dev;
	struct hal_device_info info;
	struct hal_queue *compute, *dma;	/* of dev */
	struct bringup_row *row;	/* of the step that runs */
	const struct bringup_row *before;	/* what the file to go on from says, by step */
	struct err err;
	/* How far the run is (run.c), and which part of the step is under way (bringup_part). */
	struct bringup_progress progress;
	double done_before, done_after;	/* of the run, around the step */
	double part_from, part_size;
	int64_t step_began, told;	/* clock_ns() */
	/* What the step took: given back after it, however it ended. */
	struct hal_mem *mems[32];
	void *rooms[128];
	struct hal_exe *exes[16];
	unsigned n_mems, n_rooms, n_exes;
};

/* Fills the row's text and returns the result, for `return`. */
__attribute__((format(printf, 2, 3)))
enum bringup_result bringup_pass(struct bringup *b, const char *format, ...);
__attribute__((format(printf, 2, 3)))
enum bringup_result bringup_fail(struct bringup *b, const char *format, ...);
__attribute__((format(printf, 2, 3)))
enum bringup_result bringup_skip(struct bringup *b, const char *format, ...);
/* A call that takes &b->err and must work, or the step fails with its text. */
#define TRY(b, call) \
	do { \
		if (call) \
			return bringup_fail(b, "%s", (b)->err.msg); \
	} while (0)
/* What another function of the step found, if that ends it. */
#define STEP_TRY(call) \
	do { \
		enum bringup_result result_ = (call); \
		if (result_ != BRINGUP_PASS) \
			return result_; \
	} while (0)

/* Open what is needed and close the other: b->bare, or b->dev with its queues. PASS, or how the
 * step ends: SKIP where the kernel driver has the registers. */
enum bringup_result bringup_need_bare(struct bringup *b);
enum bringup_result bringup_need_device(struct bringup *b);
void bringup_close(struct bringup *b);

/* Memory and room for the rest of the step; NULL and b->err, at most 32 and 128 of them. */
struct hal_mem *bringup_mem(struct bringup *b, enum hal_mem_kind kind, uint64_t bytes);
void *bringup_room(struct bringup *b, size_t bytes);
/* An executable for the rest of the step. `image` is freed here. */
struct hal_exe *bringup_load(struct bringup *b, void *image, size_t bytes);
/* Gives back what the step took. Also run.c does, after each. */
void bringup_give_back(struct bringup *b);
/* Gets them or ends the step. */
#define NEED(b, p) \
	do { \
		if (!(p)) \
			return bringup_fail(b, "%s", (b)->err.msg); \
	} while (0)

/* Adds a figure to the row. expected 0: not known. FAIL, with a text, if the ratio is too low. */
enum bringup_result bringup_number(struct bringup *b, const char *name, const char *unit,
				   double measured, double expected, bool is_less_better);

/* Tells how much of the step is done, 0 to 1, and, with a unit, that it has done so much. Often: it
 * is passed on ten times a second. */
void bringup_progress(struct bringup *b, double share, double amount, const char *unit);
/* What is told from here on is of the ith of n parts of the step, one as long as the other. */
void bringup_part(struct bringup *b, unsigned i, unsigned n);
/* ... or of one that moves the step by nothing, with `share` of it done. */
void bringup_hold(struct bringup *b, double share);

uint64_t bringup_random(uint64_t *state);
void bringup_fill_random(void *to, size_t bytes, uint64_t seed);
/* Where two runs of bytes differ first; n: nowhere. */
size_t bringup_differ(const void *a, const void *b, size_t n);

#define STEP(number, name, level, proves) enum bringup_result step_##name(struct bringup *b);
#include "tools/bringup/steps.def"
#undef STEP

#endif
