/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TC_FRONT_HLO_H
#define TC_FRONT_HLO_H
/*
 * The HLO reader's state, and its files one above the other: hlo_value.c finds values by
 * their ids and has messages; hlo_bytes.c unpacks; hlo_shape.c reads shapes and literals;
 * hlo_op.c instructions; hlo_collective.c those in which devices meet, hlo_groups.c below it who
 * does; hlo_region.c those
 * with computations of their own; hlo.c the module. hlo_config.c wraps modules for
 * frameworks. Private to front/.
 *
 * Tuples are gone after reading: a value is the list of its arrays, so tuples and their
 * parts make no ops, and what carries a tuple (loops, branches, calls) carries arrays.
 * Calls are read where they stand.
 *
 * Everything is hostile: ids, numbers and counts are looked up or compared before they are
 * used, and fail by hlo_bad with the instruction's name. Memory is the compile's arena.
 */
#include "runtime/compiler/front/hlo.pb-c.h"
#include "runtime/compiler/opt/build.h"

/* What an instruction gives: type is an array's, or a tuple's with leaf[type->leaves]. */
struct hlo_value {
	const struct tc_type *type;
	struct tc_value **leaf;
};

struct hlo_insn {
	const Hlo__Instruction *p;
	uint32_t computation;
	bool is_defined;	/* in the current reading of its computation */
	struct hlo_value value;
};

struct hlo_computation {
	const Hlo__Computation *p;
	uint32_t first;		/* of its instructions in hlo.insns */
	uint32_t n_params;
	uint32_t *params;	/* instruction by parameter number; NULL: not looked at yet */
	bool is_open;		/* being read */
};

/* Ids to positions, by ids: whoever writes a module chooses them, and a table whose places are
 * computed from them could be made slow. */
struct hlo_slot { int64_t id; uint32_t at; };
struct hlo_index { struct hlo_slot *slots; size_t n; };

struct hlo {
	struct tc_ctx *c;
	const Hlo__Module *m;
	struct hlo_insn *insns;
	struct hlo_computation *computations;
	struct hlo_index insn_ids, computation_ids;
	const struct hlo_insn *now;	/* for messages */
	unsigned depth;			/* of computations being read */
	uint64_t n_read;		/* instructions, once for each time that they are */
	const struct tc_type *counted;	/* the tuple of which part_at tells */
	unsigned *part_at;
};

/* ---- hlo_value.c ---- */
/* INVALID_ARGUMENT and UNIMPLEMENTED, with the name and place of the instruction that is
 * being read. */
_Noreturn void hlo_bad(struct hlo *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
_Noreturn void hlo_refuse(struct hlo *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void *hlo_get(struct hlo *r, size_t count, size_t size);
/* "aten::add at f.py:3", or the instruction's name. */
const char *hlo_where(struct hlo *r, const struct hlo_insn *i);
/* To be done when all are entered; and then: NULL: there is no such id. */
void hlo_sort(struct hlo_index *x);
const struct hlo_slot *hlo_find(const struct hlo_index *x, int64_t id);
/* How many arrays a value of the type is. */
unsigned hlo_count(const struct tc_type *t);
/* Where among a tuple's arrays those of a part begin. */
unsigned hlo_part_at(struct hlo *r, const struct tc_type *t, unsigned part);
/* Operand n of the instruction: any value; and one that must be an array. */
const struct hlo_value *hlo_operand(struct hlo *r, const struct hlo_insn *i, size_t n);
struct tc_value *hlo_array(struct hlo *r, const struct hlo_insn *i, size_t n);
/* How many arrays the operands from `first` on are, and these. */
unsigned hlo_leaves(struct hlo *r, const struct hlo_insn *i, size_t first,
		    struct tc_value ***out);
/* The computation that the instruction names as its nth. */
uint32_t hlo_callee(struct hlo *r, const struct hlo_insn *i, size_t n);
/* Its parameters by number: every number once, from 0 on. */
const struct hlo_computation *hlo_parameters(struct hlo *r, uint32_t computation);

/* ---- hlo_bytes.c ---- */
/* A message in the arena, of bytes that hold at most 100 messages in each other. */
void *hlo_unpack(struct hlo *r, const ProtobufCMessageDescriptor *d, const void *p, size_t n,
		 const char *what);
const Hlo__ModuleWithConfig *hlo_unpack_with_config(struct hlo *r, const void *p, size_t n);

/* ---- hlo_shape.c ---- */
/* INVALID_ARGUMENT for NULL: the shape is missing. */
const struct tc_type *hlo_type(struct hlo *r, const Hlo__Shape *s);
/* Which dims of the arrays of a value of this shape may be shorter, if any. */
void hlo_give_bounds(struct hlo *r, const Hlo__Shape *s, const struct hlo_value *v);
/* The type of the instruction's result, which must be an array. */
const struct tc_type *hlo_array_type(struct hlo *r, const struct hlo_insn *i);
/* The literal as constants at the end of b. */
struct hlo_value hlo_literal(struct hlo *r, struct tc_block *b, const Hlo__Literal *l,
			     const struct tc_type *type);

/* ---- hlo_sharding.c ---- */
/* Types of a sharding. */
enum { HLO_REPLICATED, HLO_MAXIMAL, HLO_TUPLE, HLO_OTHER, HLO_MANUAL, HLO_UNKNOWN };
/* GSPMD's text (spmd/sharding.h) of how an array lies on several devices; NULL: s is NULL. */
const char *hlo_sharding(struct hlo *r, const Hlo__Sharding *s);
/* The same of all arrays of a value, leaf[hlo_count(t)]; a tuple may have one for all. */
void hlo_shardings(struct hlo *r, const Hlo__Sharding *s, const struct tc_type *t,
		   const char **leaf);

/* ---- hlo_op.c ---- */
/* Reads one instruction to the end of b; false: it is none that this file knows. */
bool hlo_read_op(struct hlo *r, struct tc_block *b, const struct hlo_insn *i,
		 struct hlo_value *out);
/* An op with the operands' arrays and the result's, at the end of b; and its results. */
struct tc_op *hlo_op(struct hlo *r, struct tc_block *b, const struct hlo_insn *i,
		     enum tc_opcode op, unsigned n_regions);
struct hlo_value hlo_results(struct hlo *r, const struct hlo_insn *i, struct tc_op *op);
void hlo_give_ints(struct hlo *r, struct tc_op *op, const char *name, size_t n,
		   const int64_t *ints);
/* The instruction's list of dims under this name. */
void hlo_give_dims(struct hlo *r, const struct hlo_insn *i, struct tc_op *op, const char *name);
/* Window attributes of ops on whole arrays. */
void hlo_give_window(struct hlo *r, const struct hlo_insn *i, struct tc_op *op);

/* ---- hlo_groups.c ---- */
/* Who meets: rows of `size`, one after the other, n numbers in all, -1 where a row is shorter;
 * n = 0: all. */
struct hlo_groups { const int64_t *ids; size_t n, size; };
struct hlo_groups hlo_groups(struct hlo *r, const struct hlo_insn *i);

/* ---- hlo_collective.c ---- */
/* Reads one to the end of b; its ops, up to a NULL, of which some want a region still. */
struct hlo_value hlo_read_collective(struct hlo *r, struct tc_block *b, const struct hlo_insn *i,
				     enum tc_opcode code, struct tc_op ***ops);
/* A ragged-all-to-all, as JAX's call. */
struct hlo_value hlo_read_ragged(struct hlo *r, struct tc_block *b, const struct hlo_insn *i);
/* What an instruction gives that begins something: its operands, the results, and zeros for
 * whatever else its shape has. */
struct hlo_value hlo_begun(struct hlo *r, struct tc_block *b, const struct hlo_insn *i,
			   const struct hlo_value *results);

/* ---- hlo_region.c ---- */
/* Arguments of b for the arrays of the computation's parameters; one value each. */
struct hlo_value *hlo_arguments(struct hlo *r, uint32_t computation, struct tc_block *b);
/* Reads the computation's instructions to the end of b, on these arguments, one for each
 * parameter. */
struct hlo_value hlo_read_computation(struct hlo *r, uint32_t computation,
				      struct tc_block *b, const struct hlo_value *args);
void hlo_end_block(struct hlo *r, struct tc_block *b, const struct hlo_value *v);

#endif
