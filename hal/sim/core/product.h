/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_PRODUCT_H
#define SIM_PRODUCT_H
/*
 * The blocked matrix product behind MM and CONV. Private to hal/sim.
 *
 * A task is a block of rows and columns of one product. It packs the panels of b first, into the
 * lane's scratch, for all of the block's rows, unless they are there for several tasks. Then, for
 * as many rows as a panel of a has, it goes along k: packs a panel of a, unless the kernel reads it
 * where it lies, and the kernel adds its product with b's to the sums. So the panel of a and the
 * sums stay in L2 until the sums are complete and the epilogue has run over them, and only b's
 * panels come from beyond. Where k is too long for b's panels it is cut into lengths, and the sums
 * of all rows wait for the last one.
 * A task of no more rows than that packs one panel of b at a time, and a task of few rows none, if
 * b's elements are the kernel's: it is read where it lies.
 * Where the elements of a side lie is the family's business. kernels/panel.h says what a
 * panel is.
 */
#include "hal/sim/core/core.h"
#include "hal/sim/kernels/panel.h"

#define SIM_PRODUCT_SUMS (4u << 20)	/* most bytes of a block's sums */
#define SIM_PRODUCT_DEPTH 8u		/* most panels of b along k that a task packs at a time */
#define SIM_PRODUCT_KEPT 32		/* most panels of a that a lane keeps */

#define SIM_PRODUCT_MAX_DIM (INT64_MAX / 2)

/* How sums are added up: panels by panels; for TINY rows at a time, which share b; for as many
 * products; or for one of them at a time where it lies (kernels/panel.h). */
enum sim_product_way { SIM_BY_PANELS, SIM_BY_ROWS, SIM_BY_PRODUCTS, SIM_IN_PLACE };

struct sim_product {
	const struct sim_body *body;
	unsigned n_in, n_out;
	struct sim_ref in[ISA_MAX_IN], out[ISA_MAX_OUT];
	uint8_t value[ISA_MAX_OUT];
	bool is_direct;		/* no epilogue: sums are stored as they are */
	bool adds;		/* the epilogue adds input 0 alone, which a kernel can */
	uint32_t copied;	/* inputs that an output stores as they are: another may be
				 * over the same memory */
	uint8_t acc;
	unsigned acc_bytes;
	unsigned rank;		/* of the iteration space */
	int64_t k;
	unsigned ku;		/* units of a panel along k: all have as many but the last */
	int64_t panels_k;	/* panels along k */
	bool keeps_a;		/* sim_product_keep_a() */
	bool along;		/* b may be packed with the sums of a task's first rows */
	enum sim_product_way way;
	unsigned most_rows;	/* of a block */
	uint64_t read_bytes, write_bytes;	/* by the epilogue; the family adds its sides */
	struct sim_panels panels;
	sim_product_pack_fn *pack_a, *pack_b;
	sim_transpose_fn *turn;	/* of sums */
	unsigned points;	/* of an epilogue tile */
	/* In the lane's scratch. */
	size_t sums_at, a_at, b_at, few_at, room_at, body_at;
};

/* A block being computed. */
struct sim_product_task {
	const struct sim_product *mm;
	struct sim_run *run;
	const uint8_t *a, *b;	/* where the family's sides start for this task */
	unsigned rows, cols;
	const void *plan;	/* the family's */
	int64_t row0;		/* first row, as the family counts */
	const uint8_t *packed;	/* b's panels, or NULL: the task packs them */
	bool has_a;		/* if keeps_a: this lane's last task had the same rows */
	uint8_t *direct;	/* not NULL: where the output's memory takes the sums, */
	unsigned pitch;		/* sums from row to row there, */
	const uint8_t *plus;	/* and if the product adds, what it adds to them */
	unsigned plus_pitch;
	/* The epilogue of rows row .. row + rows, whose sums are the ones at `sums`. */
	void (*finish)(const struct sim_product_task *t, void *scratch, uint8_t *sums,
		       unsigned row, unsigned rows);
	const struct sim_product_job *job;
	const int64_t *index;	/* the family's */
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
/* Bytes of the panels of `cols` columns of b along all of k. */
size_t sim_product_packed(const struct sim_product *mm, int64_t cols);
/* Packs columns first .. first + cols of the task, `first` a multiple of SIM_PRODUCT_LINE, of
 * the panel number `at` along k to where a task with the same columns looks in `packed`. */
void sim_product_pack(const struct sim_product_task *t, void *scratch, int64_t at,
		      unsigned first, unsigned cols, uint8_t *packed);
/* To be called after prepare() if tasks of at most so many rows follow each other that differ in
 * their columns alone: the panels of a are kept, unless there are too many. */
void sim_product_keep_a(struct sim_load *load, struct sim_product *mm, int64_t rows);
/* To be called after prepare(): chooses the way of so many products, each of rows by cols, but for
 * SIM_IN_PLACE, of which the family knows. */
void sim_product_choose_way(struct sim_product *mm, int64_t batches, int64_t rows, int64_t cols);
#define SIM_PRODUCT_CELLS 256u		/* most elements of a matrix of which many are multiplied */
/* Where they lie in the lane's scratch, TINY of each: of a, of b, of sums, and as in memory. */
enum sim_product_part { SIM_PART_A, SIM_PART_B, SIM_PART_SUMS, SIM_PART_RAW };
uint8_t *sim_product_part(const struct sim_product *mm, void *scratch, enum sim_product_part part);
/* If the task's sums lie in the output as a kernel leaves them, it writes them there. index: of
 * their first point. */
void sim_product_go_direct(struct sim_product_task *t, const int64_t *index);
/* Sums of the task, and its epilogue by finish(). Neither BY_PRODUCTS nor IN_PLACE. */
void sim_product_run(const struct sim_product_task *t, void *scratch);
/* For finish(): the epilogue of rows side by side, whose first point has the given
 * coordinates. */
void sim_product_finish(const struct sim_product_task *t, void *scratch, uint8_t *sums,
			unsigned rows, const int64_t *index);
/* Time of this many multiplications and additions on one lane, in ns: an estimate. */
uint64_t sim_product_ns(const struct sim_product *mm, double macs);

#endif
