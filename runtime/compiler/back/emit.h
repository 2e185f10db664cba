/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TC_BACK_EMIT_H
#define TC_BACK_EMIT_H
/*
 * The back end's state, private to back/: where values live (plan.c, looks.c, room.c), whether two
 * accesses meet (alias.c), the code being written (asm.c, copy.c), and the rules from ops to
 * instructions (emit*.c).
 *
 * A value's home is a buffer and an affine range of it. Buffers are in the temporaries, an
 * argument, a result, or the constants. Temporaries are given out as code is written, by
 * the last position at which anything looks at them; a loop counts as one position
 * for what lives outside of it.
 *
 * Many values may live in one buffer: transposes, reverses, slices, broadcasts, most
 * reshapes, copies and barriers are views. So whether memory may be written is never asked
 * of a value. It may be when both hold: nothing looks at the buffer after the op
 * (is_dying of plan.c), and what the op itself reads is apart from the place that it writes, or
 * lies on it element for element where the instruction allows that (tc_alias).
 */
#include "hal/hw/image.h"
#include "hal/hw/isa.h"
#include "runtime/compiler/back/alias.h"
#include "runtime/compiler/back/verify.h"
#include "runtime/compiler/ir/ir.h"

#define FOREVER_POS UINT32_MAX

enum { BIND_CONST, BIND_TEMP, BIND_FIRST_ARG };

struct buffer {
	uint16_t binding;
	bool is_temp;
	struct room *room;	/* of a temporary */
	struct room *lends;	/* a result's memory, where temporaries may be; or NULL */
	uint64_t offset, bytes;
	/* Positions of the last look by any value that lives here: counted where the
	 * value is defined (a loop is one position for what is captured), and counted
	 * at the op that looks, however deep in regions. */
	uint32_t last, deepest;
	struct buffer *next;	/* among the live temporaries */
};

/* An element's address: buffer + offset + r[reg] + sum of index * stride. */
struct home {
	struct buffer *buf;	/* NULL: not placed yet */
	int64_t offset;		/* in the binding */
	uint8_t reg;
	/* The dynamic slice that the value is, left where it lies, or NULL; and the op for which
	 * r[reg] says where that begins. */
	const struct tc_op *slice, *loaded;
	uint32_t content;	/* for verify.h: new with each value but views; 0: constants */
	int64_t stride[TC_MAX_RANK];
};

/* Where a value would best be born: a dense home, and the buffer whose content it ends. */
struct wish {
	struct home home;
	const struct buffer *old;	/* NULL: nothing lives there before */
	struct wish *next;		/* of the same value */
};

struct span { uint32_t start, end; };	/* an op's positions */

struct hole { uint64_t offset, bytes; struct hole *next; };

/* Memory that temporaries may lie in: their own, or a result's until it is born. */
struct room {
	struct hole *holes;
	uint64_t top, most, limit;	/* in use are at most `top` bytes, were `most` */
	uint32_t birth;			/* position of the first op that may write the result */
	uint32_t n_live;		/* temporaries there */
	uint16_t binding;
};

struct label { int64_t offset; uint32_t notes; };	/* -1: not yet placed */
struct fixup { size_t at; struct label *label; struct fixup *next; };

struct emit {
	struct tc_ctx *c;
	struct span *spans;		/* by op id */
	struct home *homes;		/* by value id */
	uint32_t n_ids;
	struct wish **wishes;		/* by value id */
	/* temporaries */
	struct room *rooms;		/* the first: their own */
	unsigned n_rooms;
	struct hole *spare_holes;
	struct buffer *live;
	uint32_t now;			/* position of the op being emitted */
	/* code, constants, debug, strings: malloc'd, freed by the boundary's cleanup */
	struct str code, rodata, strings, functions;
	struct image_debug *debug;
	size_t n_debug, room_debug;
	struct fixup *fixups;
	size_t last_put;		/* the last instruction, if no path joins behind it;
					 * else SIZE_MAX, where code is empty too */
	/* evidence for the verifier */
	struct tc_note *notes;
	size_t n_notes, room_notes;
	uint32_t n_contents;
	const struct tc_op *op;		/* being emitted */
	/* What it wrote whole beside its results (join.c) */
	const struct tc_value *whole[ISA_MAX_OUT];
	unsigned n_whole;
	bool was_there;		/* a part of its result was, as an operand (join.c) */
	uint8_t next_reg;
	bool has_loop, has_random;	/* random: its binding is there */
	struct links *links;		/* link.h */
	struct home zeros;		/* tc_zeros, once it was asked for */
	/* Where the program stops for the host (emit_host.c) */
	struct label *resume;		/* n_calls: after each stop */
	unsigned n_calls, next_call;
	struct image_transfer *transfers;
	size_t n_transfers, room_transfers;
	struct image_meeting *meetings;
	size_t n_meetings, room_meetings;
	double flops, bytes, transcendentals, cost_ns;
	uint16_t n_args, n_results;
	uint16_t random_binding;	/* after all others */
	uint16_t *result_binding;	/* by result */
	int32_t *result_alias;		/* argument, or -1 */
	int32_t *arg_alias;		/* result, or -1 */
};

/* ---- looks.c ---- */
/* Zeroed, from the compile's arena. */
void *tc_get(struct emit *e, size_t count, size_t size);
void tc_plan_positions(struct emit *e);
/* The last looks at v itself; FOREVER_POS: until its block ends. */
struct looks { uint32_t last, deepest; };
struct looks tc_looks(struct emit *e, const struct tc_value *v);
/* The last look at v or a view of it that is known of, counted where v is defined. */
uint32_t tc_last_look(struct emit *e, const struct tc_value *v);

/* ---- plan.c ---- */
/* v's home. Of a slice that was left where it lies it writes the code that finds its place, if
 * the op being emitted has none yet: no instruction may be under way. */
struct home *tc_home(struct emit *e, const struct tc_value *v);
/* The same without that: for views, which read nothing, and of what is no such slice. */
struct home *tc_home_to_view(struct emit *e, const struct tc_value *v);
/* A register with the byte offset of a dynamic slice or update, whose starts are its operands
 * from `first` on, clamped; of a part of `base`, and with its register added. */
uint8_t tc_dynamic_offset(struct emit *e, const struct tc_op *op, unsigned first,
			  const struct tc_type *whole, const struct tc_type *part,
			  const struct home *base);
/* Gives v a dense home, or one as it is born turned, and returns it: where it wishes to be, if
 * nothing looks at what lies there from this op on, itself included; else a new temporary. */
struct home *tc_place(struct emit *e, const struct tc_value *v);
/* The same of a value without a home that `op` begins to write, which its own op may end. */
struct home *tc_place_from(struct emit *e, const struct tc_value *v, const struct tc_op *op);
/* Whether a transposition of its block alone looks at v. stride: of v, then, in the order of that
 * one's elements; or NULL. */
bool tc_turned_strides(const struct tc_value *v, int64_t *stride);
/* The same of the result of a transform or a product, which lies so: not of a product whose
 * matrices would lie an element of each after the other, which has its rows and columns last. */
bool tc_is_born_turned(const struct tc_value *v, int64_t *stride);
/* Whether that is where v wishes to be, if it wishes for anything. */
bool tc_may_place_from(struct emit *e, const struct tc_value *v, const struct tc_op *op);
/* v is written by this op at `at`, which the caller found to be safe. */
struct home *tc_place_at(struct emit *e, const struct tc_value *v, const struct home *at);
/* A new temporary for v, wherever it wishes to be. */
struct home *tc_place_temp(struct emit *e, const struct tc_value *v);
/* The same for a v whose elements differ along dim d alone: a line of them. */
struct home *tc_place_line(struct emit *e, const struct tc_value *v, unsigned d);
/* v's wishes for places where at most the op being emitted, with its own operands, still
 * looks at what lies there, one after the other; NULL: no more. The caller asks tc_alias
 * about the operands. */
const struct wish *tc_next_wish(struct emit *e, const struct tc_value *v,
				const struct wish *after);
/* Whether `in` is a dense temporary that ends here, in whose memory v, of as many bytes, may be,
 * and v wishes for nothing that it can have. */
bool tc_ends_for(struct emit *e, const struct tc_value *v, const struct tc_value *in);
/* v continues the value `in` in in's own memory: because v wishes to be there, or because
 * in is a temporary that ends here. false: the memory may not be had, or meets one of
 * taken[n] (homes of taken_type[i]; those without a buffer do not count). Nothing is
 * written: that what the op still reads is read before, is the caller's to see to. */
bool tc_take_over(struct emit *e, const struct tc_value *v, const struct tc_value *in,
		  const struct home *taken, const struct tc_type *const *taken_type,
		  unsigned n, struct home *out);
/* `old`: what lives in the home's memory before v, or NULL. */
void tc_wish(struct emit *e, const struct tc_value *v, const struct home *home,
	     const struct buffer *old);
/* Whether a home of that type meets one of taken[n]. */
bool tc_home_meets(const struct home *h, const struct tc_type *t, const struct home *taken,
		   const struct tc_type *const *taken_type, unsigned n);
/* A temporary that lives until the end of the op being emitted. */
struct home tc_scratch(struct emit *e, const struct tc_type *t);
/* v's home becomes a view of from's buffer. */
struct home *tc_view(struct emit *e, const struct tc_value *v, const struct home *from);
/* A temporary for ever, the first of all: at offset 0. */
struct home tc_first_temp(struct emit *e, const struct tc_type *t);
void tc_release(struct emit *e, uint32_t position);
/* What a home walks. */
void tc_walk_home(struct tc_walk *w, const struct home *h, const struct tc_type *t);
enum tc_alias tc_alias_homes(const struct home *a, const struct tc_type *at,
			     const struct home *b, const struct tc_type *bt);
bool tc_is_dense(const struct home *h, const struct tc_type *t);
/* Strides for the new dims, if the old ones can be split and joined so. */
bool tc_reshape_strides(const struct tc_type *from, const int64_t *stride,
			const struct tc_type *to, int64_t *out);
/* An element's worth of zeros, of any type; strides are 0. */
struct home tc_zeros(struct emit *e);
void tc_dense_strides(const struct tc_type *t, int64_t *stride);
/* Reads an integer scalar into a fresh register. */
uint8_t tc_load_scalar(struct emit *e, const struct tc_value *v);
/* The register of a pred that the instruction before stored; where another did, it is read. */
uint8_t tc_load_condition(struct emit *e, const struct tc_value *v);

/* ---- copy.c ---- */
void tc_copy(struct emit *e, unsigned rank, const int64_t *dim, unsigned elem_bytes,
	     const struct home *src, const struct home *dst);
/* The same to another chip's memory. */
void tc_rput(struct emit *e, unsigned rank, const int64_t *dim, unsigned elem_bytes,
	     const struct home *src, const struct home *dst);
void tc_copy_value(struct emit *e, const struct tc_type *t, const struct home *src,
		   const struct home *dst);
/* A home whose elements are dense: v's own, or a copy of it. */
struct home tc_dense(struct emit *e, const struct tc_value *v);
/* v's home, or a copy of it in a temporary if it meets one of to[n]: for what is still read
 * when those are written. */
struct home tc_out_of_the_way(struct emit *e, const struct tc_value *v,
			      const struct home *to, const struct tc_type *const *to_type,
			      unsigned n);
/* Copies all of from[] to to[] as if at once: what a copy would destroy before it is read
 * is saved first. Entries of equal places cost nothing. from[] is overwritten. */
struct move { struct home from, to; const struct tc_type *type; };
void tc_move_all(struct emit *e, struct move *moves, unsigned n);

/* ---- room.c ---- */
void tc_plan_rooms(struct emit *e);
/* The room that result i is, of this type, until its birth, which is expected of values that wish
 * to be there; or NULL. */
struct room *tc_lend_result(struct emit *e, unsigned i, const struct tc_type *t);
void tc_expect_birth(struct emit *e, struct room *r, const struct tc_value *v);
/* Whether no temporary is in the memory of b, a result's, at which anything looks from that
 * position on. True of other buffers. */
bool tc_is_vacant(const struct emit *e, const struct buffer *b, uint32_t from);
/* Gives b, which has its bytes and last looks, a room and a place. v: see plan.c. */
void tc_take_room(struct emit *e, struct buffer *b, const struct tc_value *v);
void tc_give_room(struct emit *e, struct buffer *b);
/* Whether v may live on in b, a temporary. */
bool tc_may_stay(struct emit *e, const struct buffer *b, const struct tc_value *v);

/* ---- join.c ---- */
/* Gives results of `op`, which is being emitted and writes all of them at whatever strides, homes
 * within what concatenations make of them alone. */
void tc_join_results(struct emit *e, const struct tc_op *op);
/* The same of those that are parts of a concatenation of several ops' results, where parts follow
 * one another; before `op` is emitted. */
void tc_place_parts(struct emit *e, const struct tc_op *op);

/* ---- layout.c ---- */
/* Of argument or result i of main, which is of type t: the order that its layout asks for, as
 * struct image_shape has it; and its strides. false: row-major. */
bool tc_layout_order(struct emit *e, const struct tc_arg_info *info, bool is_result, unsigned i,
		     const struct tc_type *t, uint8_t *order);
bool tc_layout_strides(struct emit *e, const struct tc_arg_info *info, bool is_result,
		       unsigned i, const struct tc_type *t, int64_t *stride);

/* ---- asm.c ---- */
void *tc_put(struct emit *e, enum isa_opcode op, size_t bytes); /* zeroed; until the next put */
void tc_put_scalar(struct emit *e, struct isa_scalar s, enum isa_opcode op);
void tc_branch(struct emit *e, enum isa_opcode op, uint8_t ra, struct label *to);
void tc_bind(struct emit *e, struct label *l);
uint32_t tc_string(struct emit *e, const char *text);
/* Notes that the code from here on belongs to one op, or a part of one, which reads the
 * operands of `op` where they live now. */
void tc_note_op(struct emit *e, const struct tc_op *op);
/* Notes that a value has been written whole. */
void tc_note_held(struct emit *e, const struct home *h, const struct tc_type *t);
/* ... or counts as written, though nothing is: tc.empty. */
void tc_note_empty(struct emit *e, const struct home *h, const struct tc_type *t);
uint8_t tc_reg(struct emit *e);
struct isa_operand tc_operand(const struct home *h, unsigned elem);
_Noreturn void tc_refuse(struct emit *e, const char *why);
/* The same for `what` of n dims, more than ISA_MAX_RANK: says what to do. */
_Noreturn void tc_refuse_dims(struct emit *e, const char *what, unsigned n);

/* ---- emit_body.c: regions to uops ---- */
struct body {
	struct emit *e;
	struct isa_operand in[ISA_MAX_IN], out[ISA_MAX_OUT];
	struct isa_uop uops[ISA_MAX_VALUES];
	unsigned n_pre, n_in, n_out, n_uop;
	uint8_t elems[ISA_MAX_VALUES];	/* of each value */
	struct { const struct tc_value *v; uint8_t value; } known[ISA_MAX_VALUES * 2];
	unsigned n_known;
};
uint8_t tc_body_uop(struct body *b, struct isa_uop u, unsigned result);
uint8_t tc_body_convert(struct body *b, uint8_t value, unsigned elem);
uint8_t tc_body_imm(struct body *b, unsigned elem, const void *element);
/* The place of a point along a dim of the iteration space, which is [first, end) of all. */
uint8_t tc_body_iota(struct body *b, unsigned dim, unsigned elem, int64_t first, int64_t end);
/* The value for v, or -1. */
int tc_body_find(const struct body *b, const struct tc_value *v);
void tc_body_know(struct body *b, const struct tc_value *v, uint8_t value);
/* One elementwise op whose operands are known (constants become IMM). */
void tc_body_op(struct body *b, const struct tc_op *op);
/* A region of scalar ops (comparators, reduction bodies): args are known. The cost analysis
 * counts it as run so many times. */
void tc_body_region(struct body *b, const struct tc_block *block, double times);
/* Counts an op's arrays, each read or written once, for the cost analysis. */
void tc_count_arrays(struct emit *e, const struct tc_op *op);
/* Appends operands and uops after an instruction's struct of `head` bytes. Fills the
 * isa_body at body_offset but for rank and dims. Returns the instruction. */
void *tc_put_body(struct emit *e, enum isa_opcode op, size_t head, size_t body_offset,
		  const struct body *b, unsigned rank, const int64_t *dim);

/* The same as a VEC of one point by the scalar unit, if that is less. emit_scalar.c */
bool tc_put_scalars(struct emit *e, const struct body *b);

/* ---- the rules ---- */
void tc_emit_fusion(struct emit *e, const struct tc_op *op);	/* emit_fusion.c */
void tc_emit_reduce(struct emit *e, const struct tc_op *op);
void tc_emit_reduce_window(struct emit *e, const struct tc_op *op);
void tc_emit_window_parts(struct emit *e, const struct tc_op *op);	/* emit_window.c */
void tc_emit_fill(struct emit *e, const struct tc_type *t, const struct home *to,
		  const struct tc_value *scalar);
void tc_emit_dot(struct emit *e, const struct tc_op *op, const struct tc_op *fusion);
void tc_emit_convolution(struct emit *e, const struct tc_op *op,
			 const struct tc_op *fusion);		/* emit_dot.c */
void tc_emit_data(struct emit *e, const struct tc_op *op);	/* emit_data.c */
bool tc_emit_is_data(unsigned op);
void tc_emit_index(struct emit *e, const struct tc_op *op);	/* emit_index.c */
bool tc_emit_is_index(unsigned op);
void tc_emit_fft(struct emit *e, const struct tc_op *op);	/* emit_fft.c */
/* emit_host.c: what a program with host calls begins with, first of all, and ends with; and
 * each call. */
void tc_start_host_calls(struct emit *e);
void tc_end_host_calls(struct emit *e);
void tc_emit_host_call(struct emit *e, const struct tc_op *op);
/* emit_function.c: what call e->next_call, of a function, shows it. */
void tc_emit_function(struct emit *e, const struct tc_op *op);
/* emit_link.c: where members of a program meet, and what number this one is. */
void tc_emit_link(struct emit *e, const struct tc_op *op);
void tc_emit_member_id(struct emit *e, const struct tc_op *op);
void tc_emit_image(struct emit *e, void **image, size_t *bytes);	/* emit_image.c */
/* Uops after the first op of a MATMUL fusion: maps dims of the result to
 * iteration dims. Outputs go to the fusion's results. emit_fusion.c */
void tc_epilogue(struct emit *e, const struct tc_op *fusion, const struct tc_op *anchor,
		 struct body *b, const int8_t *dim_of);

#endif
