/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_BODY_H
#define SIM_BODY_H
/*
 * What body.c and body_tile.c offer beyond core.h, to exec_vec*.c. Private to
 * hal/sim.
 */
#include "hal/sim/core/core.h"
#include "hal/sim/kernels/transpose.h"
#include "hal/sim/kernels/uop.h"

/*
 * Outputs (a bit each) whose value may be computed straight into memory: no uop
 * after the one that makes it reads an input, so that an output over an input's own
 * memory does not spoil it.
 */
uint32_t sim_body_direct(const struct sim_body *b);
/*
 * As sim_body_run(). direct[j], where not NULL, is dense room for the whole tile
 * for output j (of sim_body_direct()); the value is computed there if it turns out full,
 * as sim_body_value() tells by its address.
 */
void sim_body_run_into(const struct sim_body *b, const struct sim_run *run,
		       const struct sim_tile *tile, void *scratch,
		       void *const *direct);

/*
 * The steps of a body on a tile of this size, with inputs of these shapes (in_spread,
 * in_row), and how they run: shapes are not asked for again. in: n_in arrays. is_lone: no tile
 * follows it. direct as above, n_out of them, and also where a tile is one point. For bodies
 * without values of the family's. NULL: no memory.
 */
struct sim_calls;
const struct sim_calls *sim_body_calls(struct arena *arena, const struct sim_body *b,
				       const struct sim_tile *tile, bool is_lone);
/* Outputs (a bit each) that are in direct[] afterwards, if it has room for them. */
uint32_t sim_calls_in_place(const struct sim_calls *calls);
void sim_calls_run(const struct sim_calls *calls, const struct sim_run *run,
		   const struct sim_tile *tile, const void *const *in, void *scratch,
		   void *const *direct);

/*
 * The calls of a body on the only tile of its instruction, whose operands are used where they lie,
 * and all that they need, side by side in memory: a program of thousands of small instructions
 * reads that of each once a run, which takes longer than the calls where it is scattered.
 */
struct sim_flat {
	int (*run)(struct sim_run *run, const void *plan);	/* sim_flat_run() */
	uint64_t ops, read_bytes, write_bytes;	/* of a run, for its counts */
	uint32_t n_calls;
	uint16_t n_places, n_early, n_late;
	uint8_t n_constants;
	/* in the memory behind it */
	struct flat_place *places;
	struct flat_value *constants;
	struct flat_call *calls;
	struct flat_copy *copies;	/* [n_early] before the calls, [n_late] after them */
};
/* How an output of such an instruction comes about. */
struct sim_flat_out { const struct sim_ref *ref; uint8_t value; bool direct; };
/* in: n_in of the body, of which those of `copied` are copied to in_room[] before the first call,
 * since an output may lie over them. points: of each operand, dense, or of 1 element that all
 * share, if that is an input. NULL: the body does what needs more than a call, or no memory. */
struct sim_flat *sim_body_flat(struct arena *arena, const struct sim_calls *calls,
			       const struct sim_ref *in, uint32_t copied, const size_t *in_room,
			       const struct sim_flat_out *out, unsigned n_out, uint64_t points);

/* sim_body_prepare() in two steps: what the rules of isa.h say of each value, and
 * the plan, for which the body may have been rewritten to another space. */
struct sim_body_facts {
	uint8_t elem[ISA_MAX_VALUES];
	bool row[ISA_MAX_VALUES];	/* a row value; false without rows */
	bool constant[ISA_MAX_VALUES];	/* of IMM and SREG alone */
	size_t row_cols;		/* elements of a row; 1 without rows */
};
int sim_body_check(struct sim_load *load, const struct isa_body *body,
		   const struct isa_operand *in, const struct isa_operand *out,
		   const struct isa_uop *uops, const uint8_t *pre_elem,
		   unsigned n_pre, struct sim_body_facts *facts);
/* still: dims along which each tile begins at 0, if there are several: what is made of such places
 * alone is made once (sim_calls_run()). NO_ROOM, or 0. */
int sim_body_plan(struct sim_load *load, const struct isa_body *body,
		  const struct isa_operand *out, const struct isa_uop *uops,
		  unsigned n_pre, const struct sim_body_facts *facts, unsigned points,
		  uint32_t still, const struct sim_body **out_body);

/* Writes the identity of `combine` to every element that `ref` touches over dims, of which
 * those with a stride have elements; ends early when the run is to stop. */
void sim_out_identity(const struct sim_run *run, const struct sim_ref *ref, uint8_t *first,
		      unsigned rank, const int64_t *dim, unsigned combine);

/* n copies of one element; `one` may be the first of them. */
void sim_fill(void *to, const void *one, size_t n, size_t bytes);
/* Each of `rows` elements of 1, 2, 4, 8 or 16 bytes `cols` times; the sides do not meet. */
void sim_fill_rows(void *to, const void *from, size_t rows, size_t cols, size_t bytes);
/* The same by what the path has for it. */
static inline void sim_spread_rows(enum sim_path path, void *to, const void *from, size_t rows,
				   size_t cols, size_t bytes)
{
	sim_repeat_fn *repeat = sim_repeat(path, (unsigned)bytes);

	if (repeat && cols > 1 && cols < SIM_LEAST_FILL)
		repeat(to, from, rows, cols);
	else
		sim_fill_rows(to, from, rows, cols, bytes);
}
/* A tile's address in an operand. */
static inline uint8_t *sim_tile_at(const struct sim_ref *ref, const uint8_t *first,
				   const struct sim_tile *tile)
{
	uint8_t *p = (uint8_t *)(uintptr_t)first;

	for (unsigned d = 0; d < tile->rank; d++)
		p += tile->index[d] * ref->stride[d];
	return p;
}
/* How the tile lies in the operand's memory: one dense array; one element for all
 * points; one a row, side by side; one a row, elsewhere; otherwise. Needs the tile's sizes
 * alone. */
enum sim_tile_kind {
	SIM_TILE_ANY, SIM_TILE_DENSE, SIM_TILE_SPREAD, SIM_TILE_ROW, SIM_TILE_APART,
};
enum sim_tile_kind sim_tile_kind(const struct sim_ref *ref, const struct sim_tile *tile);
/*
 * Where the elements of a tile lie, from the operand's address of the first: dims with strides,
 * outermost first, and how many rows are all the same. Of tiles of one size it is the same.
 */
struct sim_box {
	unsigned n, repeat, bytes;	/* bytes: of an element */
	size_t row_bytes;		/* dense, if rows repeat */
	int64_t count[ISA_MAX_RANK], stride[ISA_MAX_RANK];
	sim_column_fn *column;		/* what makes the innermost dim dense, or NULL */
	sim_zip_fn *zip;		/* of outputs: what stores several by turns, or NULL */
	/* What makes the dims from `inner` on dense for all of the dim before them, or NULL. */
	sim_shuffle_fn *rows;
	const struct sim_shuffle *shuffle;
	unsigned inner;
};
void sim_tile_box(const struct sim_ref *ref, const struct sim_tile *tile, struct sim_box *x);
/* Looks for what makes the box's short rows dense; it does so by s, which has to stay. */
void sim_box_shuffle(struct sim_box *x, enum sim_path path, struct sim_shuffle *s);
/* Makes the elements dense in `room`; and stores them, if no row repeats. */
void sim_box_in(const struct sim_box *x, const void *from, void *room);
void sim_box_out(const struct sim_box *x, void *to, const void *value);
/* Stores n values whose elements take turns in memory: those of the first lie as the box says,
 * n elements from one to the next, each followed by the other values'. */
void sim_box_zip(const struct sim_box *x, void *to, const void *const *values, unsigned n);
/*
 * Copies n bytes of operands that do not fit a cache: a plain store would fetch each line before
 * it is written over. They may overlap; then what arrives where they do is undefined. Other
 * threads see them once the thread that copied them has called sim_stream_end().
 */
void sim_stream(void *to, const void *from, size_t n);
void sim_stream_end(void);
/* The tile as a dense full array: where it lies, or copied into `room`. */
const void *sim_tile_gather(const struct sim_ref *ref, const uint8_t *first,
			    const struct sim_tile *tile, void *room);

#endif
