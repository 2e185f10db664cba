/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_PRODUCT_H
#define SIM_PRODUCT_H
/*
 * The blocked matrix product behind MM and CONV. Private to hal/sim.
 *
 * A task is a block of rows and columns of one product. Along k it packs panels of both
 * sides into the lane's scratch, where they stay in L2, and a kernel adds their product to
 * the block's sums. A block is taller than a panel of a for the sake of b's panels: each is
 * packed once for all of the block's rows. When the sums are complete the epilogue runs over
 * them in boxes.
 * Where the elements of a side lie is the family's business. kernels/panel.h says what a
 * panel is.
 */
#include "hal/sim/core/core.h"
#include "hal/sim/kernels/panel.h"

#define SIM_PRODUCT_MB 192u		/* most rows of a panel of a */
#define SIM_PRODUCT_NB 512u		/* most columns of a block */
#define SIM_PRODUCT_SUMS (4u << 20)	/* most bytes of a block's sums */

#define SIM_PRODUCT_MAX_DIM (INT64_MAX / 2)

struct sim_product {
	const struct sim_body *body;
	unsigned n_in, n_out;
	struct sim_ref in[ISA_MAX_IN], out[ISA_MAX_OUT];
	uint8_t value[ISA_MAX_OUT];
	bool is_direct;		/* no epilogue: sums are stored as they are */
	uint32_t copied;	/* inputs that an output stores as they are: another may be
				 * over the same memory */
	uint8_t acc;
	unsigned acc_bytes;
	unsigned rank;		/* of the iteration space */
	int64_t k;
	unsigned most_rows;	/* of a block */
	struct sim_panels panels;
	sim_product_pack_fn *pack_a, *pack_b;
	sim_transpose_fn *turn;	/* of sums */
	unsigned points;	/* of an epilogue tile */
	/* In the lane's scratch. */
	size_t sums_at, room_at, body_at;
};

/* A block being computed. */
struct sim_product_task {
	const struct sim_product *mm;
	struct sim_run *run;
	const uint8_t *a, *b;	/* where the family's sides start for this task */
	unsigned rows, cols;
	const void *plan;	/* the family's */
	int64_t row0;		/* first row, as the family counts */
};

/* One instruction running: where its operands are. */
struct sim_product_job {
	struct sim_run *run;
	const void *plan;	/* the family's */
	const uint8_t *a, *b;
	const uint8_t *in[ISA_MAX_IN];
	uint8_t *out[ISA_MAX_OUT];
};

/* Prepares bodies and scratch; mm has acc, k and the sides of its panels. The iteration
 * space must end in the dim of the columns, with that of the rows before. acc as in isa.h. */
int sim_product_prepare(struct sim_load *load, struct sim_product *mm,
			const struct isa_body *body, const struct isa_operand *in,
			const struct isa_operand *out, const struct isa_uop *uops,
			unsigned first_operand);
/* Finds the operands; 0, or the status of the fault that it recorded. */
int sim_product_bind(struct sim_run *run, const struct sim_product *mm, const void *plan,
		     const struct sim_ref *a, const struct sim_ref *b,
		     struct sim_product_job *out);
/* n elements of `bytes`, `step` apart, side by side into `to`. */
void sim_product_gather(const uint8_t *from, int64_t step, int64_t n, unsigned bytes,
			void *to);
/* Sums of the task into its lane's scratch, [rows][cols]. */
void sim_product_sum(const struct sim_product_task *t, void *scratch);
/* The epilogue of `rows` rows from sums row `row`, whose first point has the
 * given coordinates. first_in/out: the operands' addresses. */
void sim_product_finish(const struct sim_product_task *t, void *scratch, unsigned row,
			unsigned rows, const int64_t *index,
			const uint8_t *const *first_in, uint8_t *const *first_out);
/* Time of this many multiplications and additions on one lane, in ns: an estimate. */
uint64_t sim_product_ns(const struct sim_product *mm, double macs);

#endif
