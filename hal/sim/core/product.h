/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_PRODUCT_H
#define SIM_PRODUCT_H
/*
 * The blocked matrix product behind MM and CONV. Private to hal/sim.
 *
 * A task is a block of rows and columns of one product. Along k it packs panels of both
 * sides into the lane's scratch, and a kernel adds their product to the block's sums,
 * which stay in L2. When the sums are complete the epilogue runs over them in boxes.
 * Where the elements of a side lie is the family's business.
 *
 * Panels hold units: `group` neighbours along k in the kernel's type, 4 bytes for the
 * fast kernels (one f32, two bf16 or s16, four bytes), because that is what dot-product
 * instructions and matrix tiles take. A panel of a is [row][SIM_PRODUCT_PITCH], of b
 * [unit of k][SIM_PRODUCT_LINE] for every SIM_PRODUCT_LINE columns. What a panel has
 * beyond the operands is zero.
 */
#include "hal/sim/core/core.h"
#include "hal/sim/kernels/transpose.h"

#define SIM_PRODUCT_KU 256u		/* units of k of a panel */
#define SIM_PRODUCT_PITCH 272u		/* units from row to row: not a power of two */
#define SIM_PRODUCT_MB 384u		/* most rows and columns of a block */
#define SIM_PRODUCT_NB 512u
#define SIM_PRODUCT_LINE 32u		/* columns of a panel of b, and most rows at a time */
#define SIM_PRODUCT_GROUP 4u		/* most elements of a unit */

#define SIM_PRODUCT_MAX_DIM (INT64_MAX / 2)

struct sim_product_task;

/* One side of the product: rows of a, columns of b ("lanes"). Two ways to read it: */
struct sim_side {
	uint8_t elem;
	bool by_lines;
	/* Elements k .. k + n of lane i, side by side: in place, or written to room. */
	const void *(*row)(const struct sim_product_task *t, unsigned i, int64_t k,
			   unsigned n, void *room);
	/* If by_lines, where neighbour lanes are neighbours in memory: the addresses of
	 * element k .. k + n of lane 0. */
	void (*lines)(const struct sim_product_task *t, int64_t k, unsigned n,
		      const uint8_t **at);
};

/* sums[i * ld + j] += product of a panel's row i and column j, over ku units. */
typedef void sim_product_fn(const void *a, const void *b, void *sums, unsigned ku,
			    unsigned rows, unsigned cols, unsigned ld);

/* Fills a panel with n elements of k from k0 on, and zeros up to ku units. */
typedef void sim_product_pack_fn(const struct sim_product_task *t, uint8_t *scratch,
				 int64_t k0, unsigned n, unsigned ku);

struct sim_product_kernel {
	sim_product_fn *fn;
	uint8_t a, b;		/* types of the panels */
	uint8_t group;		/* elements of a unit */
	uint8_t unit;		/* bytes of it */
	uint8_t k_step;		/* units of k are a multiple of this */
	uint8_t row_step;	/* rows of a panel of a, too */
	uint8_t mr;		/* rows are worth cutting at multiples of this */
	uint8_t flip_b;		/* xor of every byte of b */
	uint16_t speed;		/* products of elements in a ns, about */
};

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
	struct sim_side a, b;
	struct sim_product_kernel kernel;
	sim_product_pack_fn *pack_a, *pack_b;
	sim_transpose_fn *transpose;
	unsigned points;	/* of an epilogue tile */
	/* In the lane's scratch. */
	size_t sums_at, a_at, b_at, turn_at, raw_at, lines_at, room_at, body_at;
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

/* Prepares bodies and scratch; mm has acc, k, a and b. The iteration space must end in the
 * dim of the columns, with that of the rows before. acc as in isa.h. */
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

/* ---- product_*.c: packing and kernels, by instruction set ---- */
sim_product_pack_fn sim_product_pack_a_portable, sim_product_pack_b_portable;
SIM_X86 sim_product_pack_fn sim_product_pack_a_avx2, sim_product_pack_b_avx2;
SIM_X86 sim_product_pack_fn sim_product_pack_a_avx512, sim_product_pack_b_avx512;
sim_product_fn sim_product_f32_portable, sim_product_f64_portable, sim_product_s16_portable;
SIM_X86 sim_product_fn sim_product_f32_avx2, sim_product_f64_avx2, sim_product_s16_avx2;
SIM_X86 sim_product_fn sim_product_f32_avx512, sim_product_f64_avx512, sim_product_s16_avx512;
SIM_X86 sim_product_fn sim_product_bf16_avx512bf16;
/* a signed; b unsigned, or signed with its sign bits flipped. */
SIM_X86 sim_product_fn sim_product_u8_avx512vnni, sim_product_s8_avx512vnni;
/* Names tell the signs of a and b. */
SIM_X86 sim_product_fn sim_product_bf16_amx, sim_product_ss_amx, sim_product_su_amx,
		       sim_product_us_amx, sim_product_uu_amx;
#endif
