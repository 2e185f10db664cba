/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_PANEL_H
#define SIM_PANEL_H
/*
 * Panels: the operands of a matrix product as its kernels read them, and the functions that
 * pack and multiply them, for each instruction set. Private to hal/sim.
 *
 * Panels hold units: `group` neighbours along k in the kernel's type, 4 bytes for the
 * fast kernels (one f32, two bf16 or s16, four bytes), because that is what dot-product
 * instructions and matrix tiles take. A panel of a is [row][SIM_PRODUCT_PITCH], of b
 * [unit of k][SIM_PRODUCT_LINE] for every SIM_PRODUCT_LINE columns. What a panel has
 * beyond the operands is zero.
 *
 * Kernels keep no state and never fail; they write to the lane's scratch alone, so that
 * several threads may run one at once, each with a scratch of its own.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hal/sim/kernels/transpose.h"

#define SIM_PRODUCT_MB 192u		/* most rows of a panel of a, */
#define SIM_PRODUCT_MB_TILES 256u	/* of matrix tiles */
#define SIM_PRODUCT_KU 256u		/* units of k of a panel */
#define SIM_PRODUCT_PITCH 272u		/* units from row to row: not a power of two */
#define SIM_PRODUCT_LINE 32u		/* columns of a panel of b, and most rows at a time */
#define SIM_PRODUCT_GROUP 4u		/* most elements of a unit */
#define SIM_PRODUCT_NB 512u		/* most columns of a block, */
#define SIM_PRODUCT_NB_LONE 4096u	/* and of one row for which b is not packed */
#define SIM_PRODUCT_FEW 16u		/* most rows for which b is not packed, */
#define SIM_PRODUCT_FEW_NEAR 40u	/* if a cache holds it, */
#define SIM_PRODUCT_ALONG 24u		/* least rows of which the first pack b */
#define SIM_PRODUCT_ROOM 528u		/* and sums from row to row: not a power of two */
#define SIM_PRODUCT_TINY 16u		/* small products side by side */

struct sim_product_task;	/* the caller's (core/product.h): handed through */

/* One side of the product: rows of a, columns of b ("lanes"). Ways to read it: */
struct sim_side {
	uint8_t elem;		/* of the operand; packing converts */
	bool by_lines;
	/* Elements k .. k + n of lane i, side by side: in place, or written to room. */
	const void *(*row)(const struct sim_product_task *t, unsigned i, int64_t k,
			   unsigned n, void *room);
	/* Where elements k .. of lane i lie side by side, all lanes as far apart, or NULL. May
	 * itself be NULL. */
	const uint8_t *(*place)(const struct sim_product_task *t, unsigned i, int64_t k);
	/* If by_lines, where neighbour lanes are neighbours in memory: the addresses of
	 * element k .. k + n of lane 0. */
	void (*lines)(const struct sim_product_task *t, int64_t k, unsigned n,
		      const uint8_t **at);
	/* Rows of a whose elements are the panel's: k .. k + n of `lanes` lanes from i on, `pitch`
	 * bytes apart. May be NULL; row() gives the same. */
	void (*rows)(const struct sim_product_task *t, unsigned i, unsigned lanes, int64_t k,
		     unsigned n, uint8_t *to, size_t pitch);
};

/* sums[i * ld + j] = product of row i and column j of two panels, over ku units, added to
 * before[i * before_ld + j] if there is something before; it may be the sums themselves. */
struct sim_product_step {
	const void *a, *b;
	unsigned ku, rows, cols;
	const void *before;
	void *sums;
	unsigned before_ld, ld;
	unsigned a_pitch;	/* units from row to row of a: SIM_PRODUCT_PITCH but for kernels
				 * that take any */
	/* Memory that is read after this: n_soon times soon_bytes, soon_pitch apart. A kernel may
	 * fetch it while it computes. */
	const uint8_t *soon;
	int64_t soon_pitch;
	unsigned n_soon, soon_bytes;
	/* Where elements of b along k lie in memory, or NULL: for a kernel that packs along, and
	 * SIM_PRODUCT_ALONG rows and more. It writes whole lines of columns of the panel b, which
	 * holds the others only, as it reads them for the first rows. next_lines: of the panel
	 * that is read after this, or NULL; it fetches them. */
	const uint8_t *const *lines, *const *next_lines;
};
typedef void sim_product_fn(const struct sim_product_step *step);

/* The same with b where it lies, lines[k] the columns of unit k, which is one element; of at most
 * SIM_PRODUCT_FEW_NEAR rows and SIM_PRODUCT_NB columns, or one row and SIM_PRODUCT_NB_LONE. Of a
 * kernel that is named for bf16 the lines are of bf16 and all else of f32. The room is for the
 * sums of this panel. is_near: a cache holds b, so it need not be read line by line. */
typedef void sim_product_few_fn(const struct sim_product_step *step, const uint8_t *const *lines,
				bool is_near, void *room);

/* For kernels: what a set of rows reads of b beside the panel, with each unit. */
struct sim_product_columns {
	const uint8_t *const *from;	/* the columns themselves, which go to the panel; or NULL */
	size_t from_at;
	const uint8_t *const *soon;	/* the columns behind them, which are fetched; or NULL: */
	size_t soon_at;
	uint32_t done, step;		/* of these, in 64 bytes, 16 bits of them a fraction */
	const uint8_t *next;		/* they are in the panel, `apart` bytes further each time */
	size_t apart;
};

/*
 * SIM_PRODUCT_TINY products at a time of few rows and columns, an element of all of them side by
 * side: a [rows][k][TINY], b [k][cols][TINY], or [k][cols] if one b is for all; sums [rows][cols]
 * [TINY]. Each sum is added up in the order of k, as the other kernels do.
 */
struct sim_product_tiny {
	const void *a, *b;
	void *sums;
	unsigned rows, cols, k;
	bool is_shared;		/* one b */
};
typedef void sim_product_tiny_fn(const struct sim_product_tiny *x);

/*
 * One product of few rows and columns, read where it lies, at strides in bytes. Sums are side by
 * side, rows `down` of them apart; each is added up in the order of k, and to what is before, if
 * there is something, at last.
 */
struct sim_product_lone {
	const uint8_t *a, *b;
	int64_t a_row, a_k, b_k, b_col;
	void *sums;
	const void *before;	/* or NULL */
	unsigned down, before_down;
	unsigned rows, cols, k;
};
typedef void sim_product_lone_fn(const struct sim_product_lone *x);

/* A kernel and the panels that it takes. */
struct sim_product_kernel {
	sim_product_fn *fn;
	sim_product_few_fn *few;	/* or NULL, for tasks of at most so many rows: */
	sim_product_tiny_fn *tiny;	/* or NULL; of the elements of the sums, as is */
	sim_product_lone_fn *lone;
	uint8_t a, b;		/* types of the panels */
	uint8_t group;		/* elements of a unit */
	uint8_t unit;		/* bytes of it */
	uint8_t few_rows, near_rows;	/* near: if a cache holds b */
	uint8_t k_step;		/* units of k are a multiple of this */
	uint8_t row_step;	/* rows of a panel of a, too */
	uint8_t mr;		/* rows are worth cutting at multiples of this */
	uint16_t mb;		/* most rows of a panel of a */
	uint8_t flip_b;		/* xor of every byte of b */
	bool along;		/* packs b with the first rows (lines), if it is of its type */
	bool any_pitch;		/* rows of a may be as far apart as they are in memory */
	bool begins_before;	/* adds to what is before, not that to its sums at last */
	uint16_t speed;		/* products of elements in a ns, about */
};

/* What packing needs to know of a product; constant while it runs. */
struct sim_panels {
	struct sim_product_kernel kernel;
	struct sim_side a, b;
	sim_transpose_fn *transpose;	/* of units */
	/* Offsets in a lane's scratch: room for transposing, for elements as they are in
	 * memory, for addresses. */
	size_t turn_at, raw_at, lines_at;
};

/* Fills the panel `to` of `lanes` rows of a, or columns of b, from lane `first` on, with n
 * elements of k from k0 on, and zeros up to ku units. t is what the side's functions are called
 * with, scratch the lane's. */
typedef void sim_product_pack_fn(const struct sim_panels *panels,
				 const struct sim_product_task *t, unsigned first,
				 unsigned lanes, uint8_t *scratch, int64_t k0, unsigned n,
				 unsigned ku, uint8_t *to);

/* ---- by instruction set: product_*.c ---- */

sim_product_pack_fn sim_product_pack_a_portable, sim_product_pack_b_portable;
SIM_X86 sim_product_pack_fn sim_product_pack_a_avx2, sim_product_pack_b_avx2;
SIM_X86 sim_product_pack_fn sim_product_pack_a_avx512, sim_product_pack_b_avx512;
sim_product_fn sim_product_f32_portable, sim_product_f64_portable, sim_product_s16_portable,
	       sim_product_i32_portable, sim_product_i64_portable,
	       sim_product_c64_portable, sim_product_c128_portable;
SIM_X86 sim_product_fn sim_product_f32_avx2, sim_product_f64_avx2, sim_product_s16_avx2,
		       sim_product_i32_avx2, sim_product_i64_avx2,
		       sim_product_c64_avx2, sim_product_c128_avx2;
SIM_X86 sim_product_fn sim_product_f32_avx512, sim_product_f64_avx512, sim_product_s16_avx512,
		       sim_product_i32_avx512, sim_product_i64_avx512,
		       sim_product_c64_avx512, sim_product_c128_avx512;
sim_product_few_fn sim_product_few_f32_portable, sim_product_few_f64_portable,
		   sim_product_few_i32_portable, sim_product_few_i64_portable,
		   sim_product_few_bf16_portable;
SIM_X86 sim_product_few_fn sim_product_few_f32_avx2, sim_product_few_f64_avx2,
			   sim_product_few_i32_avx2, sim_product_few_i64_avx2,
			   sim_product_few_bf16_avx2;
SIM_X86 sim_product_few_fn sim_product_few_f32_avx512, sim_product_few_f64_avx512,
			   sim_product_few_i32_avx512, sim_product_few_i64_avx512,
			   sim_product_few_bf16_avx512;
sim_product_tiny_fn sim_product_tiny_f32_portable, sim_product_tiny_f64_portable,
		    sim_product_tiny_i32_portable, sim_product_tiny_i64_portable;
SIM_X86 sim_product_tiny_fn sim_product_tiny_f32_avx2, sim_product_tiny_f64_avx2,
			    sim_product_tiny_i32_avx2, sim_product_tiny_i64_avx2;
SIM_X86 sim_product_tiny_fn sim_product_tiny_f32_avx512, sim_product_tiny_f64_avx512,
			    sim_product_tiny_i32_avx512, sim_product_tiny_i64_avx512;
sim_product_lone_fn sim_product_lone_f32_portable, sim_product_lone_f64_portable,
		    sim_product_lone_i32_portable, sim_product_lone_i64_portable;
SIM_X86 sim_product_lone_fn sim_product_lone_f32_avx2, sim_product_lone_f64_avx2,
			    sim_product_lone_i32_avx2, sim_product_lone_i64_avx2;
SIM_X86 sim_product_lone_fn sim_product_lone_f32_avx512, sim_product_lone_f64_avx512,
			    sim_product_lone_i32_avx512, sim_product_lone_i64_avx512;
SIM_X86 sim_product_fn sim_product_bf16_avx512bf16;
/* a signed; b unsigned, or signed with its sign bits flipped. */
SIM_X86 sim_product_fn sim_product_u8_avx512vnni, sim_product_s8_avx512vnni;
/* Names tell the signs of a and b. */
SIM_X86 sim_product_fn sim_product_bf16_amx, sim_product_ss_amx, sim_product_su_amx,
		       sim_product_us_amx, sim_product_uu_amx;

#endif
