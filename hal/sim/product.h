/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_PRODUCT_H
#define SIM_PRODUCT_H
/*
 * The blocked matrix product behind MM and CONV. Private to hal/sim.
 *
 * A task is a block of rows and columns of one product. Along k it packs panels of both
 * sides into the lane's scratch, converted to the accumulator's type, and a kernel
 * adds their product to the block's sums, which stay in L2. When the sums are
 * complete the epilogue runs over them in boxes. Where the elements of a side lie is the
 * family's business: it describes each row by runs along k.
 */
#include "hal/sim/core.h"

#define SIM_PRODUCT_KC 256u		/* depth of a panel */
#define SIM_PRODUCT_MB 192u		/* most rows and columns of a block */
#define SIM_PRODUCT_NB 256u
#define SIM_PRODUCT_LINE 32u		/* columns of a panel of b, and most rows of one of a */

/* Elements from k on: `n` of them, `step` bytes apart; p NULL: zeros. */
struct sim_run_of {
	const uint8_t *p;
	int64_t step;
	unsigned n;
};

struct sim_product_task;

/* One side of the product. */
struct sim_side {
	uint8_t elem;
	/* The run of row (or column) `i` of the task from k on. */
	struct sim_run_of (*at)(const struct sim_product_task *t, unsigned i, int64_t k);
	/* Bytes from row to row where they are the same for every k, else 0. */
	int64_t pitch;
};

struct sim_product {
	const struct sim_body *body;
	unsigned n_in, n_out;
	struct sim_ref in[ISA_MAX_IN], out[ISA_MAX_OUT];
	uint8_t value[ISA_MAX_OUT];
	uint8_t elems_in[ISA_MAX_IN];
	bool is_direct;		/* no epilogue: sums are stored as they are */
	uint8_t acc;
	unsigned acc_bytes, mr;
	uint8_t packed;		/* the type that panels hold: acc, or f32 for products of
				 * bytes, whose sums over one panel f32 holds exactly */
	unsigned packed_bytes;
	int64_t k;
	struct sim_side a, b;
	unsigned points;	/* of an epilogue tile */
	size_t sums_at, panel_at, a_at, b_at, room_at, body_at;	/* in the lane's scratch */
	void (*kernel)(const void *a, const void *b, void *sums, unsigned kc,
		       unsigned rows, unsigned cols, unsigned ld);
};

/* A block being computed. */
struct sim_product_task {
	const struct sim_product *mm;
	struct sim_run *run;
	const uint8_t *a, *b;	/* where the family's sides start for this task */
	unsigned rows, cols;
	const void *plan;	/* the family's */
	int64_t row0, col0;	/* first row and column, as the family counts */
	int64_t extra[4];	/* the family's */
};

/* Prepares bodies and scratch. The iteration space must end in the dim of the columns,
 * with that of the rows before. acc as in isa.h. */
int sim_product_prepare(struct sim_load *load, struct sim_product *mm, const struct isa_body *body,
		   const struct isa_operand *in, const struct isa_operand *out,
		   const struct isa_uop *uops, unsigned first_operand);
/* Sums of the task into its lane's scratch; returns them, [rows][cols]. */
void *sim_product_sum(const struct sim_product_task *t, void *scratch);
/* The epilogue of a box of the sums: `rows` rows from sums row `row`, whose first
 * point has the given coordinates. first_in/out: the operands' addresses. */
void sim_product_finish(const struct sim_product_task *t, void *scratch, unsigned row,
			unsigned rows,
		   const int64_t *index, const uint8_t *const *first_in,
		   uint8_t *const *first_out);

/* product_*.c: f32, panels of mr rows and 32 columns. */
#define SIM_PRODUCT_KERNEL(name) \
	void name(const void *a, const void *b, void *sums, unsigned kc, unsigned rows, \
		  unsigned cols, unsigned ld)
SIM_PRODUCT_KERNEL(sim_product_f32_portable);
SIM_PRODUCT_KERNEL(sim_product_f32_avx2);
SIM_PRODUCT_KERNEL(sim_product_f32_avx512);

#endif
