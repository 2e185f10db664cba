/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TC_IR_H
#define TC_IR_H
/*
 * The compiler's IR: StableHLO's operations in SSA form (ops.def), plus fusions.
 * compiler/README.md has the text form. Private to runtime/compiler.
 *
 * Everything of one compile lives in one arena and dies with it. Functions below that
 * allocate do not return failure: out of memory and broken input leave through
 * tc_fail(), one longjmp to the boundary in compile.c. So nothing but arena memory
 * may be held across a call that can fail. One compile is used by one thread.
 *
 * Structure: a module op has one region with one block of func ops; a func's region has
 * one block, whose arguments are the function's. Every region has one block, ended by
 * `return`. After the pass `inline`, only main is left and there are no calls.
 * Values are tensors (tokens: elem TOKEN, rank 0). Dims are static.
 */
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hal/base/arena.h"
#include "hal/base/elem.h"
#include "hal/base/err.h"
#include "hal/base/str.h"

#define TC_MAX_RANK 32
/* No tensor is larger, its dims of 0 counted as 1: so strides, offsets and their
 * products with an index stay far from overflow. */
#define TC_MAX_BYTES ((int64_t)1 << 48)

enum tc_opcode {
#define OP(name, text, operands, results, regions, traits) TC_##name,
#define OP_ATTR(name, attr, kind, need)
#include "runtime/compiler/ir/ops.def"
#undef OP
#undef OP_ATTR
	TC_OP_COUNT
};

/* Attribute keys are interned strings (tc_key()), compared by pointer. */
enum tc_attr_kind {
	TC_ATTR_INT, TC_ATTR_BOOL, TC_ATTR_INTS, TC_ATTR_STR, TC_ATTR_ENUM,
	TC_ATTR_DENSE, TC_ATTR_ATTRS,
};

/* Numbers of ENUM attributes: as VHLO's (facts of the format). */
enum { TC_CMP_EQ, TC_CMP_NE, TC_CMP_GE, TC_CMP_GT, TC_CMP_LE, TC_CMP_LT };
enum { TC_CMP_NOTYPE, TC_CMP_FLOAT, TC_CMP_TOTALORDER, TC_CMP_SIGNED,
       TC_CMP_UNSIGNED };					/* compare_type */
enum { TC_PREC_DEFAULT, TC_PREC_HIGH, TC_PREC_HIGHEST };	/* precision_config */
enum { TC_RNG_DEFAULT, TC_RNG_THREE_FRY, TC_RNG_PHILOX };
enum { TC_FFT_FFT, TC_FFT_IFFT, TC_FFT_RFFT, TC_FFT_IRFFT };
enum { TC_SOLVE_PLAIN = 1, TC_SOLVE_TRANSPOSE, TC_SOLVE_ADJOINT };	/* transpose_a */
/* FUSION's kind: what its region becomes.
 * LOOP: elementwise work, broadcasts, iotas, reductions to results: one VEC.
 * MATMUL: a dot_general or convolution first, then elementwise work: one MM or CONV. */
enum tc_fusion_kind { TC_FUSION_LOOP, TC_FUSION_MATMUL };

/* Types are interned per compile: equal types are equal pointers. */
struct tc_type {
	uint8_t elem;		/* enum elem */
	uint8_t rank;
	uint8_t is_tuple;	/* then dim is unused, parts[n_parts] count */
	uint32_t n_parts, leaves;	/* of tuples; leaves: tensors at any depth */
	const struct tc_type *const *parts;
	int64_t count;		/* elements (product of dims) */
	int64_t bytes;		/* count * elem_bytes */
	int64_t dim[];		/* rank of them */
};

struct tc_attr {
	const char *key;	/* interned */
	uint8_t kind;		/* enum tc_attr_kind */
	int64_t i;		/* INT BOOL ENUM */
	const int64_t *ints;	/* INTS (precision and bool lists too) */
	uint32_t n;		/* of ints, of text bytes, of attrs */
	const char *text;	/* STR: NUL-terminated as well */
	const struct tc_type *type;	/* DENSE */
	const void *data;	/* DENSE: dense row-major as in memory (elem.def),
				 * or one element when is_splat */
	bool is_splat;
	const struct tc_attr *attrs;	/* ATTRS */
};

struct tc_op;
struct tc_block;

struct tc_use {
	struct tc_value *value;
	struct tc_op *user;
	struct tc_use *next, **link;	/* among the uses of `value` */
};

struct tc_value {
	const struct tc_type *type;
	struct tc_op *def;	/* NULL: a block argument */
	struct tc_block *block;	/* of a block argument */
	uint32_t index;		/* among the results or arguments */
	uint32_t id;		/* unique in the compile; for printing and side tables */
	struct tc_use *uses;
	void *side;		/* free for the running pass; NULL between passes */
};

struct tc_region {
	struct tc_op *parent;
	struct tc_block *block;	/* NULL: empty */
};

struct tc_block {
	struct tc_region *region;
	uint32_t n_args, room_args;
	struct tc_value **args;
	struct tc_op *first, *last;
};

/* What a parameter or result of main carries besides its type. */
struct tc_arg_info {
	int32_t alias;		/* tf.aliasing_output; -1: none */
	bool is_donor;		/* jax.buffer_donor */
	uint8_t memory_kind;	/* mhlo.memory_kind: 0 device 1 pinned_host 2 unpinned_host */
	const char *sharding;	/* as text, or NULL */
	const char *layout;	/* mhlo.layout_mode, or NULL */
};

struct tc_op {
	uint16_t op;		/* enum tc_opcode */
	uint16_t n_attrs;
	uint32_t n_operands, n_results, n_regions;
	struct tc_use *operands;
	struct tc_value *results;	/* array of n_results */
	struct tc_region *regions;
	struct tc_attr *attrs;
	struct tc_block *block;
	struct tc_op *prev, *next;
	const char *where;	/* location for messages: "jit(f)/add at f.py:3" or "" */
	struct tc_arg_info *arg_info, *res_info;	/* FUNC only; NULL: none */
	uint32_t id;
	void *side;		/* free for the running pass; NULL between passes */
};

struct tc_options;
struct tc_ctx {
	struct arena arena;
	struct tc_op *module;
	const struct tc_options *options;
	struct err *err;	/* where tc_fail writes */
	jmp_buf *boundary;
	uint32_t next_id;
	struct tc_table *types, *keys;	/* interning (ir.c) */
	struct emit *emit;	/* the back end's state, for tc_emit_free */
	const char *dump_dir;	/* of this compile (TESSERA_DUMP), or NULL */
};

/* Leaves the compile with `code`; op (or NULL) adds name and location. */
_Noreturn void tc_fail(struct tc_ctx *c, int code, const struct tc_op *op,
		       const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* ---- facts about ops ---- */
struct tc_op_info {
	const char *text;
	int8_t n_operands, n_results, n_regions;	/* -1: any */
	const char *traits;
};
const struct tc_op_info *tc_op_info(unsigned op);
bool tc_has_trait(const struct tc_op *op, char trait);
/* By text of n bytes; -1: none. */
int tc_op_find(const char *text, size_t n);

/* ---- types ---- */
const struct tc_type *tc_tensor(struct tc_ctx *c, enum elem elem, unsigned rank,
				const int64_t *dim);
const struct tc_type *tc_tuple(struct tc_ctx *c, const struct tc_type *const *parts,
			       unsigned n);
const struct tc_type *tc_with_elem(struct tc_ctx *c, const struct tc_type *t,
				   enum elem elem);

/* ---- attributes ---- */
const char *tc_key(struct tc_ctx *c, const char *text, size_t n);
#define TC_KEY(c, literal) tc_key((c), (literal), sizeof(literal) - 1)
/* NULL if absent. `name` is plain text. */
const struct tc_attr *tc_attr(const struct tc_op *op, const char *name);
int64_t tc_attr_int(const struct tc_op *op, const char *name, int64_t otherwise);
const int64_t *tc_attr_ints(const struct tc_op *op, const char *name, unsigned *n);
const char *tc_attr_str(const struct tc_op *op, const char *name); /* NULL: absent */
void tc_set_attr(struct tc_ctx *c, struct tc_op *op, struct tc_attr attr);
void tc_set_int(struct tc_ctx *c, struct tc_op *op, const char *name,
		enum tc_attr_kind kind, int64_t i);
void tc_set_ints(struct tc_ctx *c, struct tc_op *op, const char *name,
		 const int64_t *ints, unsigned n);
void tc_set_str(struct tc_ctx *c, struct tc_op *op, const char *name,
		const char *text);

/* ---- building ---- */
/* An op outside any block; results get `types`. Regions are empty. */
struct tc_op *tc_new(struct tc_ctx *c, enum tc_opcode op, unsigned n_operands,
		     struct tc_value *const *operands, unsigned n_results,
		     const struct tc_type *const *types, unsigned n_regions);
struct tc_block *tc_new_block(struct tc_ctx *c, struct tc_region *region);
struct tc_value *tc_new_arg(struct tc_ctx *c, struct tc_block *b,
			    const struct tc_type *type);
void tc_append(struct tc_block *b, struct tc_op *op);
void tc_insert_before(struct tc_op *at, struct tc_op *op);
void tc_insert_after(struct tc_op *at, struct tc_op *op);
/* Takes op out of its block; its operands stay used. */
void tc_unlink(struct tc_op *op);
/* Unlinks and drops all uses, nested ops too. Its results must be unused. */
void tc_erase(struct tc_op *op);
void tc_set_operand(struct tc_op *op, unsigned i, struct tc_value *v);
void tc_set_operands(struct tc_ctx *c, struct tc_op *op, unsigned n,
		     struct tc_value *const *values);
void tc_replace_uses(struct tc_value *from, struct tc_value *to);
bool tc_has_one_use(const struct tc_value *v);
static inline bool tc_is_unused(const struct tc_value *v) { return !v->uses; }
/* A copy of op with nested regions, outside any block; `map` (from value id to
 * value, grown by the copy's results and arguments) renames operands. */
struct tc_map;
struct tc_map *tc_map_new(struct tc_ctx *c);
void tc_map_set(struct tc_ctx *c, struct tc_map *m, const struct tc_value *from,
		struct tc_value *to);
struct tc_value *tc_map_get(const struct tc_map *m, struct tc_value *from); /* itself */
struct tc_op *tc_clone(struct tc_ctx *c, const struct tc_op *op, struct tc_map *map);
/* A constant of one repeated element (element as in memory), before `at`. */
struct tc_value *tc_splat(struct tc_ctx *c, struct tc_op *at,
			  const struct tc_type *type, const void *element);
/* Function of the module by name, or NULL; main is "main",
 * else the first function. */
struct tc_op *tc_find_func(const struct tc_ctx *c, const char *name);
struct tc_block *tc_main(const struct tc_ctx *c);	/* NULL: no function */
/* Calls fn on op and all nested ops, outer first. */
void tc_walk(struct tc_op *op, void (*fn)(struct tc_op *op, void *arg), void *arg);

static inline struct tc_value *tc_in(const struct tc_op *op, unsigned i)
{
	return op->operands[i].value;
}
static inline struct tc_value *tc_out(const struct tc_op *op, unsigned i)
{
	return &op->results[i];
}
static inline struct tc_op *tc_terminator(const struct tc_block *b)
{
	return b->last;
}

/* ---- text, checks, reading, passes: each in the file named ---- */
void tc_ir_print(const struct tc_op *op, struct str *out);	/* ir_print.c */
/* "GT" of "comparison_direction"; NULL if the text has a number there. ir_print.c */
const char *tc_enum_name(const char *key, int64_t i);
void tc_ir_parse(struct tc_ctx *c, const char *text, size_t n);	/* ir_parse.c */
/* Structure and dominance; deep: attributes, types and shapes too. tc_fail: of a program
 * as it came (pass NULL) INVALID_ARGUMENT, after a pass INTERNAL. ir_verify.c */
void tc_ir_verify(struct tc_ctx *c, const char *pass, bool is_deep);
void tc_read_bytecode(struct tc_ctx *c, const void *p, size_t n); /* front/bytecode.c */

/* Reads and verifies the source, calls body inside the boundary, frees all. What body
 * hands out through arg is malloc'd. `options` and `err` may be NULL. compile.c */
struct tc_source;
int tc_enter(const struct tc_source *source, const struct tc_options *options,
	     struct err *err, void (*body)(struct tc_ctx *c, void *arg), void *arg);

void tc_pass_inline(struct tc_ctx *c);		/* opt/inline.c: calls, composites, tuples */
void tc_pass_simplify(struct tc_ctx *c);	/* opt/simplify.c: algebra, folding, dead code */
void tc_pass_cse(struct tc_ctx *c);		/* opt/cse.c */
void tc_pass_decompose(struct tc_ctx *c);	/* opt/decompose.c: ops to simpler ops */
void tc_pass_fuse(struct tc_ctx *c);		/* opt/fuse.c: makes FUSION ops */
/* back/emit.c: plans memory, writes code, makes the image, malloc'd last. */
void tc_emit(struct tc_ctx *c, void **image, size_t *bytes);
void tc_emit_free(struct tc_ctx *c);	/* what a failed emission holds; any time */

#endif
