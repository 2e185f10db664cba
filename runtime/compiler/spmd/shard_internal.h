/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TC_SPMD_SHARD_INTERNAL_H
#define TC_SPMD_SHARD_INTERNAL_H
/*
 * From a program for all devices to the one that each member runs. shard.c goes over the
 * program; below it are local.c and local_index.c (one op on parts of its tensors), choose.c
 * (which parts), halo.c (of which the op needs neighbours' elements), convert.c (from one
 * sharding to another) and place.c (who has which part).
 * Private to spmd/.
 *
 * The program is changed in place: a value's `type` becomes the member's, and what its users
 * are to take instead is in `of`. Shardings here are *plain*: of kind TILED, over the
 * program's mesh, closed, dims cut evenly. Along `unreduced` axes a member has a part of a sum.
 */
#include "runtime/compiler/opt/build.h"
#include "runtime/compiler/spmd/propagate.h"

#define SHARD_LEAST_SAVED 1024	/* bytes, by each meeting more: fewer are not worth its time */

/* The same value in another sharding, made in a block. */
struct shard_copy {
	struct tc_value *local;
	const struct spmd_sharding *h;
	const struct tc_block *block;
	struct shard_copy *next;
};

/* A value of the program. */
struct shard_value {
	const struct tc_type *type;	/* for all members together; in a manual computation
					 * for those that do it together */
	struct tc_value *local;		/* what a member has; NULL: not met yet */
	const struct spmd_sharding *h;	/* NULL: no tensor */
	struct shard_copy *copies;
	/* Of a loop's argument: what it is in each turn, NULL: it changes; and how many turns there
	 * are, 0: not known. */
	const struct tc_value *source;
	int64_t turns;
	bool is_collected;	/* all of it is less than the pieces that slices of it need */
};

/* The member's place along some axes, as a value. */
struct shard_index {
	struct spmd_axes axes;
	struct tc_value *value;
	struct shard_index *next;
};

/* Parts of a sum along some axes, which are still to be put together by op; OR is of bits,
 * whatever the elements are. */
struct shard_sum {
	struct spmd_axes axes;
	enum tc_opcode op;
};

/* Of an op that needs rows of its operand, as others may: whether that was asked; the rows, if they
 * were got with those of others. */
struct shard_taken { bool is_asked; struct tc_value *rows; };

struct shard {
	struct tc_ctx *c;
	struct spmd_shardings *p;
	const struct spmd_mesh *mesh;
	uint32_t replicas, partitions;
	const uint32_t *place;		/* of each partition in the mesh */
	uint32_t n_values, room;	/* of the program as it came; in the tables by id */
	struct shard_value *of;		/* by id */
	const struct spmd_rule **rule;	/* by op's id; NULL: none */
	struct spmd_axes manual;	/* along which the block at work is one device's */
	const struct shard_roll **roll;	/* by op's id; NULL: it is none */
	bool *is_late;			/* by op's id: only needed if what joins it is no roll */
	struct shard_index *indices;
	struct shard_taken *taken;	/* by op's id */
	struct tc_op *const *slices;	/* of a join's operands those to join; NULL: they are it */
	struct tc_op *top;		/* indices are made before it, in main */
	struct tc_value *number;	/* the partition's, or NULL */
	struct tc_op **dead;		/* ops without a meaning for one member */
	uint32_t n_dead, room_dead;
	struct cell *cells;		/* room for one op at a time */
	size_t n_cells;
	struct piece *pieces;		/* and for one plan of an exchange */
	size_t n_pieces;
	struct shard_exchange *exchanges;	/* that were planned */
	bool is_whole;			/* every op runs on whole tensors */
	uint64_t ahead_left;		/* bytes that copies made before loops may take yet */
};

/* ---- even.c ---- */
/* Makes dims longer that their parts do not divide, where few rows are to be had of neighbours for
 * it; types and rules are the whole's, and there are rolls. Returns whether it changed anything:
 * then new ops have no types and rules yet, old ones no longer the right ones, and no op is
 * late. */
bool shard_even(struct shard *s);

/* ---- place.c ---- */
/* Reads options and mesh; INVALID_ARGUMENT: a mesh of another number of devices. */
void shard_places(struct shard *s);
/* The partition's place along the axes, from 0. */
uint32_t shard_place(const struct shard *s, uint32_t partition, const struct spmd_axes *a);
/* The partition at another place along the axes, and else at the same. */
uint32_t shard_other(const struct shard *s, uint32_t partition, const struct spmd_axes *a,
		     uint32_t place);
/* Sets the attributes of a collective in which those meet that differ in `a` only, in its order. */
void shard_set_groups(struct shard *s, struct tc_op *op, const struct spmd_axes *a);
/* The member's place along the axes as an s32 scalar, made at main's beginning. */
struct tc_value *shard_index_of(struct shard *s, const struct spmd_axes *a);
/* Where the member's part of that size begins, of a dim cut along the axes: an s32 scalar, or s64
 * if the dim is longer than that counts. */
struct tc_value *shard_start_of(struct shard *s, const struct tc_build *b,
				const struct spmd_axes *a, int64_t size);

struct shard_plan;
/* Whether no factor of a plan (choose.c) has any of the axes. */
bool shard_are_free(const struct shard_plan *plan, const struct spmd_axes *a);
/* How main's i-th argument or result lies as the framework cuts it, unevenly too; the same with
 * dims whole that it cuts so, for parts of another size lie elsewhere; and the type with these dims
 * rounded up to what the sharding divides. */
struct spmd_sharding *shard_at_border(struct shard *s, const struct spmd_sharding *h,
				      const char *what, unsigned i);
struct spmd_sharding *shard_even_dims(struct shard *s, const struct spmd_sharding *h,
				      const struct tc_type *t);
const struct tc_type *shard_padded(struct shard *s, const struct tc_type *t,
				   const struct spmd_sharding *h);

/* ---- combine.c ---- */
/* The unsigned type of as many bits, or the elements' own where they are combined as they are;
 * ELEM_TOKEN: there is none. */
enum elem shard_bits_of(enum elem elem);
/* Of a reduce or reduce_window: whether what it begins with may be counted more than once. */
bool shard_may_repeat(const struct tc_op *op);
/* Of a reduction whether each result is one of what it is of, whichever it takes (as with the
 * largest element's place), and begins with the extreme, which may be counted more than once. */
bool shard_may_fold(const struct tc_op *op);
/* How the parts of a reduction along a factor are put together; TC_OP_COUNT: they can't be. */
enum tc_opcode shard_sum_of(const struct tc_op *op);
/* Of a block whose ops are the member's: sums and differences of what members were added up for,
 * alike and for nothing else, are taken before, and one is added up. At level 0 nothing. */
void shard_add_first(const struct shard *s, struct tc_block *b);

/* ---- convert.c ---- */
/* The tensor's part of a member: dims are divided by the axes' sizes, rounded up. */
const struct tc_type *shard_local_type(struct shard *s, const struct tc_type *t,
				       const struct spmd_sharding *h);
bool shard_is_same(const struct spmd_sharding *a, const struct spmd_sharding *b);
/* A tensor of type `global`, of which v is the member's part by `from`, by `to`. `sum` is NULL, or
 * what v still is a part of along axes that `from` has in no dim; then it has none left but what
 * `to` leaves unreduced. */
struct tc_value *shard_convert(struct shard *s, const struct tc_build *b, struct tc_value *v,
			       const struct tc_type *global, const struct spmd_sharding *from,
			       const struct spmd_sharding *to, const struct shard_sum *sum);

/* Once main's arguments are a member's: how much memory copies before loops may take. */
void shard_count_memory(struct shard *s, const struct tc_block *main);
/* Before the operands of a `while` are a member's: what it does not change, and its turns. */
void shard_note_loop(struct shard *s, const struct tc_op *loop);
/* Whether b is that block or within it. */
bool shard_is_around(const struct tc_block *outer, const struct tc_block *b);
/* Moves b to before the loops around it that do not change v, and gives what v is there; leaves it
 * where v as h takes more memory than is left. */
const struct tc_value *shard_go_ahead(struct shard *s, struct tc_build *b,
				      const struct tc_value *v, const struct spmd_sharding *h);
/* Whether op, of whose operand 0 members would put `part` together in each turn of a loop, is to
 * have it as h from before the loop: whether less is moved so. If turns are not known, they are
 * few, or as many as take all of it. */
bool shard_is_ahead(struct shard *s, const struct tc_op *op, const struct spmd_sharding *h,
		    const struct tc_type *part, bool takes_all);

/* v, each part of which goes from the device at a place of one mesh to the one at the same place
 * of the other. */
struct tc_value *shard_reorder(struct shard *s, const struct tc_build *b, struct tc_value *v,
			       const struct spmd_mesh *from, const struct spmd_mesh *to);

/* ---- choose.c ---- */
/* How an op's tensors lie while it runs, by number (rule.h). */
struct shard_plan {
	const struct spmd_rule *rule;	/* NULL: all of them whole */
	struct spmd_axes *factor;	/* of each of the rule's */
	struct spmd_sharding **tensor;	/* NULL: no tensor */
	const struct tc_type **type;	/* of the whole tensors */
	struct shard_sum sum;		/* what the results are parts of */
	struct spmd_axes fold;		/* along which results are to be reduced once more */
	uint64_t windows;		/* dims of result 0 of which parts need their neighbours' */
	uint64_t picked;		/* dims of which a slice's rows come from who has them */
	uint64_t kernels;		/* spatial dims of which the kernel is in parts */
};
/* Of h what a tensor of that type can have: plain. `manual` axes are none of its own. */
struct spmd_sharding *shard_plain(struct shard *s, const struct spmd_sharding *h,
				  const struct tc_type *t, const struct spmd_axes *manual);
/* Whether op can run on parts of a factor of its rule. */
bool shard_may_share(const struct shard *s, const struct tc_op *op, const struct spmd_rule *r,
		     uint32_t f);
/* `manual`: the op's; wish: what its results should have, plain. */
struct shard_plan shard_choose(struct shard *s, const struct tc_op *op,
			       const struct spmd_axes *manual,
			       struct spmd_sharding *const *wish);

/* ---- exchange.c ---- */
#define SHARD_MOST_NEEDS 16u
/* Rows of a dim, `first` on of all there are: of a value those behind `skip`. Members have `part`
 * rows of the value, is_cut: one behind the other, else all the same. */
struct shard_source { int64_t first, rows, skip, part; bool is_cut; };
/* Each member's `span` rows from row start + place * step on; there may be no such rows. */
struct shard_need { int64_t start, step, span; };
/* How members, so many parts, come by what they need of sources, in order; NULL: in too many
 * pieces. */
struct shard_exchange *shard_plan_exchange(struct shard *s, int64_t parts,
					   const struct shard_source *source, unsigned n_sources,
					   const struct shard_need *need, unsigned n_needs);
/* The same of needs of one cut value together; NULL too if that is no less than to meet so often
 * for so many rows. */
struct shard_exchange *shard_plan_shared(struct shard *s, int64_t parts, int64_t rows,
					 const struct shard_need *need, unsigned n,
					 int64_t meetings, int64_t moved);
/* How often they meet; how many rows each gets; whether that is better than to meet so often for so
 * many rows. `row`: a row's bytes. */
unsigned shard_rounds(const struct shard_exchange *e);
int64_t shard_moved(const struct shard_exchange *e);
bool shard_is_worth(const struct shard_exchange *e, int64_t row, int64_t meetings, int64_t moved);
int64_t shard_row_of(const struct tc_type *t, unsigned d);
/* Does it along dim d of the sources v, into an `out` for each need; `fill`, a scalar, is where no
 * rows are, NULL: zeros. */
void shard_exchange(struct shard *s, const struct tc_build *b, const struct shard_exchange *e,
		    unsigned d, const struct spmd_axes *a, struct tc_value *const *v,
		    struct tc_value *fill, struct tc_value **out);
/* While types are the whole's: slices of what is joined become slices of what that is of, joins
 * along the same dim one, and what nothing is in is not joined. */
void shard_tidy_join(struct tc_op *op, void *shard);
/* Whether operand i of a concatenate is a slice along its dim, which is cut, of a value of which
 * nothing else takes a slice: then it may be joined without being made. */
bool shard_is_piece(const struct shard *s, const struct tc_op *op, unsigned i);
/* How members come by parts of so many rows of what is joined, `row` bytes each; NULL: it is as
 * well to collect it. */
struct shard_exchange *shard_plan_pieces(struct shard *s, int64_t parts,
					 const struct shard_source *source, unsigned n,
					 int64_t part, int64_t row);
/* A concatenate whose dim is to be cut, as those of operands are: a plan for parts of it, where
 * less is moved so; and what stands for its result. s->slices: operands are what it joins slices
 * of. */
void shard_plan_join(struct shard *s, const struct tc_op *op, struct shard_plan *plan,
		     struct spmd_sharding *const *wish);
struct tc_value *shard_join(struct shard *s, struct tc_op *op, const struct shard_plan *plan);

/* x with zeros at both ends of dim d. */
struct tc_value *shard_pad_zeros(struct shard *s, const struct tc_build *b, struct tc_value *x,
				 unsigned d, int64_t low, int64_t high);
/* The member's place along the axes, times step, and first: s32, and so have the numbers to be. */
struct tc_value *shard_at_place(struct shard *s, const struct tc_build *b,
				const struct spmd_axes *a, int64_t step, int64_t first);
/* v of the member `by` places farther along the axes: zeros if there is none, or in a ring; or of
 * the one that is as far from the end as this one is from the beginning. */
enum shard_way { SHARD_STRAIGHT, SHARD_ROUND, SHARD_TURNED };
struct tc_value *shard_pass_on(struct shard *s, const struct tc_build *b, struct tc_value *v,
			       const struct spmd_axes *a, int64_t by, enum shard_way way);

/* ---- halo.c ---- */
/* Adds to a plan those dims along which op looks at windows, or moves, that lie as they are
 * wished for and of which it is no more work to take a few neighbours' elements than all. */
void shard_plan_windows(struct shard *s, const struct tc_op *op, struct shard_plan *plan,
			struct spmd_sharding *const *wish);
/* Of a slice or padding that moves along one dim, *d, and needs rows of the whole only: which, and
 * how often members meet for them and how many rows each gets, added up. false: it is none. */
bool shard_need_of(struct shard *s, const struct tc_op *op, const struct shard_plan *plan,
		   unsigned *d, struct shard_need *need, int64_t *rounds, int64_t *moved);
/* Gives op, whose operands lie as planned, what it needs of its neighbours; sets attributes. */
void shard_take_windows(struct shard *s, struct tc_op *op, const struct shard_plan *plan);

/* A select_and_scatter whose result's type is the member's, of windows that are not one member's
 * each: what stands for it, before op, which has lost a region. */
struct tc_value *shard_select_and_scatter(struct shard *s, struct tc_op *op,
					  const struct shard_plan *plan);

/* The dim of operand 0 along which a slice, padding or windows move to give dim d of the result;
 * -1: none. `kernel`: a convolution's, of all of it. */
int64_t shard_moves_along(const struct tc_op *op, const struct tc_type *kernel, unsigned d);
/* Such a dim's padding behind, less than 0 where not all is looked at, if the sizes were these; and
 * sets it, but for slices. */
int64_t shard_behind(const struct tc_op *op, const struct tc_type *kernel, unsigned d, int64_t in,
		     int64_t out);
void shard_set_behind(struct shard *s, struct tc_op *op, unsigned d, int64_t rows);
/* Whether parts of it would then be made of few rows of neighbours. */
bool shard_is_near(struct shard *s, const struct tc_op *op, const struct tc_type *kernel,
		   unsigned d, int64_t in, int64_t out, int64_t parts);

/* A value's rows moved along a dim of it, in a ring; but for the first or last ones, which are
 * others'. */
struct shard_roll {
	const struct tc_value *of, *rest;	/* NULL: no others */
	unsigned dim;
	int64_t by;
	bool is_rest_first;
};
/* While types are the whole's: what a concatenate makes, NULL: something else; and a pad's operand
 * without a slice of it that the pad can stand for. */
const struct shard_roll *shard_find_roll(struct shard *s, const struct tc_op *op);
void shard_pad_uncut(struct shard *s, struct tc_op *op);
/* A convolution's operand without padding by zeros, which it does itself. */
void shard_take_padding(struct shard *s, struct tc_op *conv);
/* And a pad or convolution of which nothing but a slice is used, or padding by less than nothing,
 * made to give just that; NULL: it is none. */
struct tc_op *shard_pad_trimmed(struct shard *s, const struct tc_op *slice);
/* Whether it is to be cut along its dim as the value whose rows move is. */
bool shard_may_roll(const struct shard *s, const struct shard_roll *r,
		    const struct spmd_sharding *wish);
/* It lies as that value; `rest`, if any, is whole along the dim, and else as that value. */
struct tc_value *shard_roll(struct shard *s, const struct tc_build *b, const struct shard_roll *r,
			    struct tc_value *rest);

/* ---- local_dynamic.c ---- */
/* The same of dynamic slices, where a slice is no larger than a part, and updates; gives what
 * stands for the result. */
void shard_plan_dynamic(struct shard *s, const struct tc_op *op, struct shard_plan *plan,
			struct spmd_sharding *const *wish);
struct tc_value *shard_dynamic(struct shard *s, struct tc_op *op, const struct shard_plan *plan);
/* Gives a slice the rows that are picked: all that is left of those dims. */
void shard_pick_rows(struct shard *s, struct tc_op *op, const struct shard_plan *plan);

/* ---- local.c ---- */
/* Makes op, whose operands lie as planned, the member's: attributes, types of its results. What
 * must be added to it is put behind it; gives what then stands for result 0. */
struct tc_value *shard_localize(struct shard *s, struct tc_op *op,
				const struct shard_plan *plan);
/* A number everywhere or an iota, of type `type` for all members together and localized before, is
 * made once more to lie as h says; NULL: v is something else. */
struct tc_value *shard_make_again(struct shard *s, const struct tc_build *b,
				  const struct tc_value *v, const struct tc_type *type,
				  const struct spmd_sharding *h);
/* And, while types are the whole's, of another type; NULL: v is something else. */
struct tc_value *shard_make_longer(struct shard *s, const struct tc_build *b,
				   const struct tc_value *v, const struct tc_type *type);
/* Of a reduction of which members reduced parts along plan->fold: v, its results, by all parts. */
void shard_fold(struct shard *s, const struct tc_build *b, const struct tc_op *op,
		const struct shard_plan *plan, struct tc_value **v);

/* ---- local_index.c ---- */
/* Both are called with operands as planned and results' types the member's. */
struct tc_value *shard_gather(struct shard *s, struct tc_op *op, const struct shard_plan *plan);
void shard_scatter(struct shard *s, struct tc_op *op, const struct shard_plan *plan);

#endif
