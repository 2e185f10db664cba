/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_BODY_PLAN_H
#define SIM_BODY_PLAN_H
/*
 * What body.c leaves of a body for body_run.c. Private to these two.
 */
#include "hal/sim/core/body.h"

enum { SPREAD, ROW, FULL };
enum step_kind { STEP_NONE, STEP_CALL, STEP_IMM, STEP_SREG, STEP_IOTA, STEP_FOLD };

#define NO_ROOM UINT32_MAX
/* Rows shorter than this are spread into a full array: dearer than a call only if
 * there is much to write. */
#define SHORT_COLS 160
/* Columns that a kernel of sim_uop_mixed() does at once, by rows. */
#define MIXED_COLS 16
/* The numbers of shorter rows are spread, but for rows of exactly so many. */
#define LEAST_MIXED_COLS 24
/* Shorter ones are so even if a kernel takes row values as such, */
#define LEAST_COLS 16
/* and these if a pair of steps takes them. */
#define FEW_COLS 96
/* Keeps equal places of different buffers from meeting in one cache set. */
#define BUFFER_GAP 192

struct step {
	uint8_t kind;
	uint8_t n_args;
	uint8_t elem;		/* of the result */
	uint8_t bytes;		/* of the result's element */
	uint8_t arg[3];		/* values */
	uint8_t arg_bytes[3];
	int8_t out;		/* the output that may be computed in place, or -1 */
	bool taken;		/* the room was an argument's */
	bool mixed;		/* fn is of sim_uop_mixed(), imm its aux */
	bool still;		/* of full tiles, made in the first: the others have the same */
	uint8_t aux;
	uint32_t room;		/* offset of its buffer or cell in scratch */
	uint32_t spare;		/* FOLD: room to spread an argument that is not full */
	uint64_t imm;
	sim_uop_fn *fn;
	sim_uop_fn *by_row;	/* the same with a second argument of one element a row, or NULL */
	sim_fold_fn *fold;
	uint64_t constant[2];	/* IMM */
};

struct sim_body {
	uint8_t n_pre, n_in, n_out, rank;
	uint16_t n_uop;
	unsigned points;
	enum sim_path path;
	size_t scratch;
	size_t spread[2];	/* rooms to spread row values in */
	uint32_t direct;
	bool mixes;		/* some operation, not conversions alone, is mixed */
	uint8_t elem[ISA_MAX_VALUES];
	struct step step[];
};

/* Whether kernels of sim_uop_mixed() take such rows one by one: where an end that fills no register
 * is half of a row, what it takes is more than to spread the row's number. */
static inline bool is_mixed_row(size_t cols)
{
	return cols >= LEAST_MIXED_COLS || cols % MIXED_COLS == 0;
}

/* Whether a step should take one number for each row as such: in a pair of steps it would be
 * spread. Of bodies over f32 alone that takes no longer. */
static inline bool is_by_row(const struct sim_body *b, enum sim_path path,
			     const struct sim_body_facts *facts, const struct step *s)
{
	return b->mixes && facts->row_cols >= FEW_COLS && facts->row_cols < SHORT_COLS &&
	       !facts->row[s->arg[0]] && facts->row[s->arg[1]] && !facts->constant[s->arg[1]] &&
	       sim_uop_by_row(path, s->fn);
}

/* Leads the scratch. */
struct frame {
	const void *ptr[ISA_MAX_VALUES];
	const uint8_t *shape;		/* of each value */
	uint8_t own[ISA_MAX_VALUES];	/* shapes that are found as the body runs */
};

#endif
