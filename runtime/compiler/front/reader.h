/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TC_FRONT_READER_H
#define TC_FRONT_READER_H
/*
 * The bytecode reader's state, shared by its files: bytecode_number.c (numbers, memory,
 * failing), above it bytecode_quant.c (quantized types), above that bytecode_attr.c (attributes,
 * types, locations), above that bytecode_sdy.c (shardings), bytecode_groups.c (members of
 * collectives), bytecode_call.c (what functions of the host are given) and quantized.c (ops on
 * quantized values), above these bytecode.c (the container and the ops). Private to front/.
 * Every function leaves through tc_fail(INVALID_ARGUMENT) with the byte offset when the input is
 * broken.
 */
#include "runtime/compiler/ir/ir.h"

enum bc_dialect { BC_OTHER, BC_BUILTIN, BC_VHLO, BC_SDY };

struct bc_text { const char *p; uint32_t n; };

/* A position in the input, and where the current section ends. */
struct bc_cursor { const uint8_t *p, *end; };

/* A uniform quantized type: what its elements, integers of `storage`, stand for. The IR's type of
 * such a value is that of its storage. */
struct bc_quant {
	uint8_t storage, expressed;	/* enum elem */
	uint8_t precision;	/* bits that a number of `expressed` keeps */
	int32_t dim;		/* along which there are `n` scales; -1: one for all */
	uint32_t n;
	int64_t min, max;
	const double *scale;
	const int64_t *zero;
	const char *text;	/* as MLIR writes the type */
};

struct bc_entry {		/* of the attribute and type tables */
	const uint8_t *p;
	uint32_t n;
	uint8_t dialect;	/* enum bc_dialect */
	bool is_custom;		/* encoded by its dialect; else text */
	uint8_t busy;		/* being decoded: a cycle if met again */
	const void *decoded;	/* struct tc_type or bc_attr; NULL: not yet */
	const struct bc_quant *quant;	/* of a decoded type; NULL: it is not quantized */
	uint32_t bounded;	/* of a decoded type: dims (bits) that may be shorter */
	const char *refused;	/* of a decoded type that no value may have: why */
	const char *where;	/* as a location; NULL: not yet */
};

struct bc_vhlo { const char *name; enum tc_opcode op; const char *properties; };

struct bc_op_name {
	uint8_t dialect;
	struct bc_text name;
	const struct bc_vhlo *row;	/* NULL: not known */
};

struct bc {
	struct tc_ctx *c;
	const uint8_t *base;
	size_t bytes;
	struct bc_text *strings;
	struct bc_entry *attrs, *types;
	struct bc_op_name *op_names;
	struct bc_text *properties;
	uint8_t *dialects;
	uint64_t n_strings, n_attrs, n_types, n_op_names, n_properties, n_dialects;
	struct tc_value **values;	/* of the open scopes */
	size_t room_values;
	struct tc_attr *meshes;	/* for the module's attribute */
	uint32_t n_meshes, room_meshes;
	unsigned depth;		/* of nested regions */
	bool has_quant;		/* a value's side (ir.h) is its struct bc_quant, or NULL */
};

/* A decoded attribute before it is given to an op. */
enum bc_kind {
	BC_NONE, BC_INT, BC_BOOL, BC_ENUM, BC_STR, BC_TYPE, BC_TENSOR, BC_ARRAY, BC_DICT,
	BC_FLOAT, BC_SHARDING, BC_SKIPPED, BC_SUB_AXIS, BC_AXIS_REF, BC_GROUPS, BC_AXIS, BC_MESH,
	BC_ALIAS, BC_BOUNDS,
};
struct bc_attr {
	enum bc_kind kind;
	int64_t i;			/* SUB_AXIS: places before it; AXIS: its size; ALIAS: of
					 * which operand */
	int64_t size;			/* SUB_AXIS; ALIAS: of which result, -1: none that can be */
	struct bc_text text;		/* STR; TENSOR, FLOAT and SHARDING: the bytes */
	const struct tc_type *type;	/* TENSOR, FLOAT, INT; TYPE: NULL if it is none */
	const char *type_text;		/* TYPE */
	const int64_t *bounds;		/* BOUNDS: n of them; INT64_MIN: none */
	uint32_t n;
	/* ARRAY; DICT: name, value, name, value, ...; AXIS, AXIS_REF: its name, of which the
	 * latter may have a SUB_AXIS; MESH: a list of axes, perhaps ids; GROUPS: MESH or its
	 * name, a list of AXIS_REF */
	const struct bc_attr **items;
};

/* bytecode_number.c */
_Noreturn void bc_bad(struct bc *r, const uint8_t *at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
uint64_t bc_varint(struct bc *r, struct bc_cursor *c);
int64_t bc_svarint(struct bc *r, struct bc_cursor *c);
uint8_t bc_byte(struct bc *r, struct bc_cursor *c);
/* A count of things that each take at least one byte: bounded by what is left. */
uint64_t bc_count(struct bc *r, struct bc_cursor *c);
uint64_t bc_index(struct bc *r, struct bc_cursor *c, uint64_t limit, const char *what);
void *bc_get(struct bc *r, size_t count, size_t size);

/* bytecode_attr.c */
const struct tc_type *bc_type(struct bc *r, uint64_t index);
const struct bc_attr *bc_attribute(struct bc *r, uint64_t index);
/* "jit(f)/add at f.py:3", or "". */
const char *bc_where(struct bc *r, uint64_t index);
/* Gives `a` to op under `key`, as ops.def's kinds. `as_dense`: a tensor stays one. */
void bc_give(struct bc *r, struct tc_op *op, const char *key, size_t key_n,
	     const struct bc_attr *a, bool as_dense);
/* The value of `name` in a dictionary, or NULL. */
const struct bc_attr *bc_find(const struct bc_attr *dict, const char *name);

/* A tensor of numbers as INTS; false: it is none. */
bool bc_ints(struct bc *r, const struct bc_attr *a, struct tc_attr *out);

/* bytecode_quant.c: the rest of a quantized type, behind its flags and two element types. */
const struct bc_quant *bc_read_quant(struct bc *r, struct bc_cursor *c, bool is_per_axis,
				     uint64_t flags, unsigned storage, unsigned expressed);

/* quantized.c: makes ops on quantized values such on their integers and on floats. */
void bc_lower_quantized(struct bc *r);

/* bytecode_call.c: gives a custom_call what a function of the host takes beside arrays. */
void bc_give_call_attributes(struct bc *r, struct tc_op *op, const struct bc_attr *dict);
/* Which results take the memory of which operands. */
void bc_give_call_aliases(struct bc *r, struct tc_op *op, const struct bc_attr *list);

/* bytecode_groups.c: gives op who meets in it. */
void bc_give_groups(struct bc *r, struct tc_op *op, const struct bc_attr *a);

/* bytecode_sdy.c: attributes of the dialect sdy as the texts of spmd/sharding.h, in the arena. */
/* A sharding, or the first of a list; NULL: of an empty one. */
const char *bc_sdy_first(struct bc *r, const struct bc_attr *a);
/* A rule, as spmd/rule.h has it. */
const char *bc_sdy_rule(struct bc *r, const struct bc_attr *a);
/* Gives a sharding, a list of them or manual axes to op under `key`; a number as it is. */
void bc_sdy_give(struct bc *r, struct tc_op *op, const char *key, size_t key_n,
		 const struct bc_attr *a);
/* One more mesh of the program, from the properties of the op that names it. */
void bc_sdy_mesh(struct bc *r, struct bc_cursor *properties);

#endif
