/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_EXEC_VEC_H
#define SIM_EXEC_VEC_H
/*
 * What VEC (exec_vec.c, exec_vec_combine.c) and REDUCE (exec_vec_reduce.c) share:
 * the iteration space made simple, its cutting into tiles, the body on one of them
 * (exec_vec_space.c), chains of inputs (exec_vec_chain.c).
 */
#include "hal/sim/core/body.h"

#define VEC_OPERANDS (ISA_MAX_IN + ISA_MAX_OUT)

/*
 * An iteration space after simplification: no dims of 1, dims that run on in every
 * operand merged, the outer ones ordered for locality. refs' strides are
 * permuted alike. The trailing row_rank dims are the row.
 */
struct vec_space {
	unsigned rank, row_rank;
	int64_t dim[ISA_MAX_RANK];
	uint32_t tied;		/* dims that must stay as they are: IOTA counts them */
	uint32_t reduced;	/* dims that are folded */
	bool ordered;		/* these keep their order among themselves (REDUCE) */
	int8_t from[ISA_MAX_RANK]; /* original dim -> dim here, -1: gone */
};

/* How a space is cut: tile[d] elements of each dim; rows and cols as in sim_tile. */
struct vec_tiling {
	unsigned points;
	unsigned rows, cols, col_dims;
	int64_t tile[ISA_MAX_RANK], tiles[ISA_MAX_RANK];
	uint64_t n_tiles;
};

/* Simplifies the space, whose dims are not 0. Operands: n refs, of which the first
 * n_in are inputs. */
void vec_simplify(struct vec_space *s, struct sim_ref *const *refs, unsigned n_in,
		  unsigned n);
/* Chooses tiles of at most `points` (rows: at least a row). cols never mix folded
 * and kept dims. May reorder outer dims. */
void vec_cut(struct vec_space *s, struct sim_ref *const *refs, unsigned n,
	     unsigned points, struct vec_tiling *t);
/* Makes tiles so many rows high, or as the dim is: what has a room for rows has it for t->points,
 * whatever their columns. */
void vec_set_rows(const struct vec_space *s, struct vec_tiling *t, unsigned rows);
/* The same with as many as `points` allow, if that is more. */
void vec_more_rows(const struct vec_space *s, struct vec_tiling *t, unsigned points);
/* Makes the dim before a tile's rows its rows, at most so many, and of what were its rows as many
 * columns as `points` allow, or one. */
void vec_widen(const struct vec_space *s, struct vec_tiling *t, unsigned rows, unsigned points);
/* The tile at coordinates at[] (counted in tiles). */
void vec_tile_at(const struct vec_space *s, const struct vec_tiling *t,
		 const uint64_t *at, struct sim_tile *tile);
/* at[] of number n over the dims of `mask`, others unchanged. */
void vec_seek(const struct vec_tiling *t, unsigned rank, uint32_t mask, uint64_t n,
	      uint64_t *at);
/* Steps at[] on over the dims of `mask`, last dim fastest. */
void vec_advance(const struct vec_tiling *t, unsigned rank, uint32_t mask, uint64_t *at);
/* How many tiles the dims of `mask` have. */
uint64_t vec_count(const struct vec_tiling *t, unsigned rank, uint32_t mask);

/* A copy of uops for the simplified space: IOTA dims renumbered, IOTA over vanished dims
 * replaced by 0. NULL: no memory. */
struct isa_uop *vec_uops(struct sim_load *load, const struct vec_space *s,
			 const struct isa_uop *uops, unsigned n);
/* Estimated time of the body's uops for a point, in 1/1024 ns. */
uint64_t vec_cost(enum sim_path path, const struct isa_uop *uops, unsigned n);
/* Checks the layout of a tensor instruction; finds its parts. */
int vec_parts(struct sim_load *load, const struct isa_tensor *t,
	      const struct isa_operand **in, const struct isa_operand **out,
	      const struct isa_uop **uops);

/* ---- plans ---- */

struct vec_out {
	struct sim_ref ref;
	uint8_t value, combine;
	bool acc;		/* fold into old content */
	bool row_value;		/* has no points along the row */
	/* combining outputs that keep partial results: */
	uint8_t acc_elem;	/* type of the partial result */
	sim_uop_fn *fn;		/* of the value's type */
	sim_fold_fn *fold;
	sim_stack_fn *stack;	/* of rows that are folded; NULL: by halves */
	sim_uop_fn *acc_fn;	/* of acc_elem */
	sim_uop_fn *widen, *narrow; /* between them, NULL if the same */
	size_t acc_room, wide_room, part_room, full_room; /* offsets in scratch */
	size_t shared;		/* offset in shared memory */
};

/* An input of the plan's that a kernel makes of inputs of the program's, its links. */
struct vec_chain {
	sim_chain_fn *fn;
	uint64_t first;		/* what they are joined to */
	unsigned input, n;
	struct sim_ref link[ISA_MAX_IN];	/* of tiles that lie like the input's */
};

/* Begins, as struct sim_flat does, with how it runs. */
struct vec_plan {
	int (*run)(struct sim_run *run, const void *plan);
	struct vec_space space;
	struct vec_tiling tiling;
	const struct sim_body *body;
	const struct sim_calls *calls;	/* on full tiles; NULL: outputs fold, and not alike */
	const struct sim_tile *lone;	/* the only tile, if there is but one */
	unsigned n_in, n_out, n_uop;
	uint8_t in_kind[ISA_MAX_IN];	/* enum sim_tile_kind of full tiles */
	const struct sim_box *in_box[ISA_MAX_IN];	/* inputs of full tiles to make dense */
	const struct vec_chain *chain;	/* or NULL */
	const struct sim_box *chain_box;	/* of full tiles of its links */
	uint32_t gathered;	/* other inputs that do not stay where they lie */
	const struct sim_box *out_box[ISA_MAX_OUT];
	unsigned n_zip;		/* outputs whose elements take turns in memory, or 0: */
	uint8_t zip[ISA_MAX_OUT];	/* them, in that order */
	uint32_t copied;	/* inputs that are copied in any case */
	struct sim_ref in[ISA_MAX_IN];
	size_t in_room[ISA_MAX_IN];	/* offsets in scratch */
	struct vec_out out[ISA_MAX_OUT];
	uint32_t direct;	/* outputs that are computed in place */
	uint32_t in_place;	/* ... on full tiles whatever the inputs are */
	uint32_t streamed;	/* outputs of which full tiles go past the caches */
	uint32_t combining;	/* outputs that fold */
	bool uniform;		/* ... and all fold the same dims */
	bool rows_folded, cols_folded; /* within a tile */
	uint64_t kept_tiles, folded_tiles, parts;
	unsigned narrow_adds;	/* tiles that are added before their sum goes to the wide one */
	size_t acc_points;	/* elements of a tile's partial result */
	size_t scratch;
	uint64_t ns;		/* of the whole on one lane */
	uint64_t points, read_bytes, write_bytes;
	bool reads_peers;
	/* what makes the sums without the body, along rows or of rows; NULL: nothing does */
	sim_product_fold_fn *products;
	sim_stack_fn *stack;
	uint8_t factor[2];		/* ... of these inputs, */
	bool is_product;		/* multiplied, or of the first alone */
	struct reduce_plan *reduce;
};

/* A run in progress. */
struct vec_job {
	struct sim_run *run;
	const struct vec_plan *plan;
	const uint8_t *in[ISA_MAX_IN];
	const uint8_t *link[ISA_MAX_IN];	/* of the chain */
	uint8_t *out[ISA_MAX_OUT];
};

/* ---- tiles ---- */

/* Loads a tile's inputs and says whether it goes on. last[] remembers what the
 * rooms hold: start with zeros. */
struct vec_last { const uint8_t *at[ISA_MAX_IN]; unsigned rows, cols; };
void vec_load(const struct vec_job *job, struct sim_tile *tile, struct vec_last *last,
	      char *scratch);
/* Runs the body and stores the STORE outputs. */
void vec_body(const struct vec_job *job, const struct sim_tile *tile, char *scratch);

/* Both, of tiles begin to end in order: a part of sim_parallel(), `arg` is a vec_job. */
void vec_run_tiles(void *arg, uint64_t begin, uint64_t end, unsigned lane);
/* Both, of plan->lone. Outputs that fold are the caller's. */
void vec_run_lone(const struct vec_job *job);

/* exec_vec_chain.c */
/* What is left of a body without the chain that it began with. */
struct vec_shorter {
	struct isa_body body;
	struct isa_operand in[ISA_MAX_IN], out[ISA_MAX_OUT];	/* in: types alone */
	struct isa_uop uops[ISA_MAX_VALUES];
	struct sim_body_facts facts;
};
/* If the body has a chain: sets p->chain, *shorter, and the plan's inputs and outputs to
 * those of that. 0 or NO_ROOM. */
int vec_take_chain(struct sim_load *load, struct vec_plan *p, const struct isa_body *body,
		   const struct isa_operand *out, const struct isa_uop *uops,
		   const struct vec_shorter **shorter);
/* Notes how the links of a full tile lie. 0 or NO_ROOM. */
int vec_plan_chain(struct sim_load *load, struct vec_plan *p, const struct sim_tile *tile);
/* Makes the chain's input of a tile, dense. full: p->chain_box, NULL for tiles of other
 * sizes. */
void vec_run_chain(const struct vec_job *job, const struct sim_tile *tile,
		   const struct sim_box *full, char *room);

/* UOP_MAX or UOP_MIN if what the body makes of two results and two elements is the larger or the
 * smaller one of operand *by and what comes with it, as sim_pick_fn has it: what frameworks make of
 * argmax. Else 0. */
unsigned vec_find_pick(const struct isa_tensor *t, const struct isa_operand *out,
		       const struct isa_uop *uops, unsigned *by);

/* exec_vec_combine.c */
/* How outputs fold: sets p->uniform, p->products or p->stack and what goes with them, and may
 * make tiles larger. Before vec_plan_combine(). */
void vec_find_folds(const struct sim_load *load, struct vec_plan *p, const struct isa_uop *uops);
int vec_plan_combine(struct sim_load *load, struct vec_plan *p);
void vec_run_combine(struct vec_job *job);

/* exec_vec_reduce.c */
int vec_prepare_reduce(struct sim_load *load, const struct isa_tensor *t,
		       const void **plan);

/* Room in scratch: returns the offset, 64-aligned and staggered. */
static inline size_t vec_room(size_t *scratch, size_t bytes)
{
	size_t at = *scratch;

	*scratch += (bytes + 63) / 64 * 64 + 320;
	return at;
}

#endif
