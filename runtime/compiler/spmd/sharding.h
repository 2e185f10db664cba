/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TC_SPMD_SHARDING_H
#define TC_SPMD_SHARDING_H
/*
 * How a tensor lies on several devices, in one representation for all that frameworks send:
 * Shardy's attributes, GSPMD's strings, and OpSharding messages, which the readers write as
 * such strings.
 *
 * The devices of a program form a mesh: a grid with named axes. Partition p is the device at
 * place p of the grid, row-major, or, where the mesh has ids, the one whose id is p. A sharding
 * gives each dim of a tensor a list of axes, major first: the dim is cut into as many parts as
 * the list's product, all of ceil(dim / product) elements, of which the last ones may be short
 * or empty. Along axes in no list the tensor is repeated. Instead of a whole axis a list may
 * name a *piece* of it: of the axis as a grid [pre, size, rest], the middle dim.
 *
 * In the IR a sharding is a text, of Shardy's form or GSPMD's:
 *
 *	@mesh[{x,y:(1)2},{?},{}p1]replicated{z}unreduced{w}	a mesh of the module, by name
 *	[x=4,y=2]ids[3,2,1,0][{x}]				a mesh of its own
 *	{devices=[4,1,2]<=[8] last_tile_dim_replicate}		GSPMD's
 *
 * `?`: others may add axes to the dim; p1: its priority. Names that are no words are in quotes.
 * GSPMD's forms lie on a mesh of one axis `d` of all devices, in pieces, or, where the list of
 * devices is no rearranged grid, on a mesh with ids.
 *
 * Ownership: everything is the compile's (arena). Threads: as ir.h. Errors: texts and bytes are
 * a program's and may hold anything; what is malformed leaves by tc_fail(INVALID_ARGUMENT) with
 * the text, what is well-formed but can't be expressed by UNIMPLEMENTED. Nothing blocks.
 */
#include "runtime/compiler/ir/ir.h"

#define SPMD_MAX_AXES 32u	/* of a mesh */
#define SPMD_MAX_DEVICES (1 << 16)
/* Disjoint pieces of 2 or more devices each, of a mesh of at most 2^16. */
#define SPMD_MAX_PIECES 16u

struct spmd_axis { const char *name; uint32_t size; };

/* Two meshes are the same if their pointers are equal. */
struct spmd_mesh {
	const char *name;	/* "": none */
	uint32_t n_axes;
	struct spmd_axis axis[SPMD_MAX_AXES];
	uint32_t devices;	/* product of the axes' sizes; 1 without axes */
	const uint32_t *ids;	/* the partition at each place, or NULL: the place's number */
};

/* Axis `axis` as a grid [pre, size, rest]: its middle dim. A whole axis: pre 1, size all.
 * size is 2 or more: axes of one device are nowhere. */
struct spmd_piece { uint32_t axis, pre, size; };

/* Major first. Pieces that make up a longer one are that one: no two of equal meaning. */
struct spmd_axes {
	uint32_t n;
	struct spmd_piece at[SPMD_MAX_PIECES];
};

struct spmd_dim {
	struct spmd_axes axes;
	bool is_open;		/* propagation may add axes behind these */
	int32_t priority;	/* 0 goes first; -1: none said, which is 0 */
};

enum spmd_kind {
	SPMD_TILED,		/* as the dims say; without axes: replicated */
	SPMD_MANUAL,		/* every device has its own, of the type's shape */
	SPMD_MAXIMAL,		/* it is on one device alone: `device` */
	SPMD_UNKNOWN,		/* nothing is said */
};

/* No piece is in two of its lists, or twice in one. */
struct spmd_sharding {
	enum spmd_kind kind;
	const struct spmd_mesh *mesh;
	uint32_t rank;
	struct spmd_dim *dim;	/* rank of them */
	struct spmd_axes replicated;	/* no dim may take these */
	struct spmd_axes unreduced;	/* the tensor is the sum over these */
	struct spmd_axes manual;	/* the type's shape is what is left along these */
	uint32_t device;	/* MAXIMAL */
	int32_t group;		/* GSPMD's shard_as N: all members alike; -1: none */
};

/* The meshes of a program. */
struct spmd {
	struct tc_ctx *c;
	const struct spmd_mesh **mesh;
	uint32_t n_meshes, room;
	uint32_t devices;	/* that the program is for */
	const struct spmd_mesh *flat;	/* of GSPMD's forms; NULL: not met yet */
};

/* ---- mesh.c ---- */
/* Reads the module's meshes; INVALID_ARGUMENT: one of them is malformed, of more than
 * SPMD_MAX_DEVICES devices, or its ids are no permutation. */
struct spmd *spmd_open(struct tc_ctx *c);
/* NULL: none of that name. */
const struct spmd_mesh *spmd_find_mesh(const struct spmd *s, const char *name);
/* A mesh that equals m but for its name: the one there is, or a copy that is kept. */
const struct spmd_mesh *spmd_intern_mesh(struct spmd *s, const struct spmd_mesh *m);
/* The mesh without a name of one axis "d" of so many devices. */
const struct spmd_mesh *spmd_flat_mesh(struct spmd *s, uint32_t devices);

/* Nothing said of a tensor of that rank: no axes, all dims open. */
struct spmd_sharding *spmd_new(struct spmd *s, const struct spmd_mesh *m, uint32_t rank);
struct spmd_sharding *spmd_copy(struct spmd *s, const struct spmd_sharding *h);

/* The greatest common divisor, of which one at least fits 32 bits and is not 0. */
uint32_t spmd_gcd(uint64_t a, uint64_t b);
/* What a list's axes multiply to; 1 if it is empty. */
uint32_t spmd_size(const struct spmd_axes *a);
/* Whether the pieces are not different dims of one grid: have something in common, or are, as (1)2
 * and (3)2 of six, of grids of which none divides the other. */
bool spmd_overlap(struct spmd_piece a, struct spmd_piece b);
/* Whether a piece of the list overlaps p. */
bool spmd_has(const struct spmd_axes *a, struct spmd_piece p);
bool spmd_same_axes(const struct spmd_axes *a, const struct spmd_axes *b);
/* Adds p at the minor end, joined with the last piece if they make up one. p overlaps none. */
void spmd_push(struct spmd_axes *a, struct spmd_piece p);
/* The axes that `uses` has none of, as pieces, major first. */
struct spmd_axes spmd_rest(const struct spmd_mesh *m, const struct spmd_axes *uses);
/* The same sharding over another mesh of as many devices, both without ids; false: some piece
 * is no product of pieces there. *to gets its own dims. */
bool spmd_to_mesh(struct spmd *s, const struct spmd_sharding *from, const struct spmd_mesh *m,
		  struct spmd_sharding *to);

/* ---- sharding.c ---- */
/* The sharding that a text says of a tensor of that rank; op is whom messages name. */
struct spmd_sharding *spmd_read(struct spmd *s, const struct tc_op *op, const char *text,
				uint32_t rank);
/* Names as in `{x,y}`, whole axes of the mesh. */
struct spmd_axes spmd_read_names(struct spmd *s, const struct tc_op *op, const char *text,
				 const struct spmd_mesh *m);
/* Appends the text that reads back as h: Shardy's form for TILED and GSPMD's for others. */
void spmd_print(const struct spmd_sharding *h, struct str *out);
/* The same in the arena. */
const char *spmd_text(struct spmd *s, const struct spmd_sharding *h);
/* Axes as spmd_read_names reads them back, in the arena. */
const char *spmd_names_text(struct spmd *s, const struct spmd_mesh *m, const struct spmd_axes *a);

/* ---- gspmd.c ---- */
/* The same of GSPMD's forms, which begin with a brace. */
struct spmd_sharding *spmd_read_gspmd(struct spmd *s, const struct tc_op *op, const char *text,
				      uint32_t rank);
/* h as a serialized xla.OpSharding, in the arena; *n: its bytes. Devices are partitions'
 * numbers. Open dims and priorities are not said. */
const uint8_t *spmd_write_proto(struct spmd *s, const struct spmd_sharding *h, size_t *n);

#endif
