/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TC_IR_H
#define TC_IR_H
/*
 * The compiler's IR: StableHLO's operations in SSA form, and a few of our own (ops.def). What an
 * op means is in StableHLO's specification, under the op's name; attributes have its names.
 * runtime/compiler/README.md has the text form and fusions. Private to runtime/compiler
 * and its tests.
 *
 * Ownership: everything of one compile lives in one arena and dies with it; nothing here is
 * freed by itself. Pointers into the IR hold until the compile ends, also those to erased
 * ops. Texts and data that an attribute is given are kept, not copied, where not said
 * otherwise: they must be the arena's, or the source's, whose bytes outlive the compile.
 *
 * Errors: functions that take the context do not return failure. Out of memory
 * (RESOURCE_EXHAUSTED) and broken input leave through tc_fail(), one longjmp to the
 * boundary in compile.c. So across a call that can fail nothing but arena memory may be
 * held, and what tc_free_held() knows. Functions without a context cannot fail.
 *
 * Threads: one compile is used by one thread; compiles share nothing. Nothing blocks.
 *
 * Structure: a module op has one region with one block of func ops; a func's region has
 * one block, whose arguments are the function's. Every region has at most one block (none:
 * of tc.opaque, and of a module that is being made), ended by `return`. After the pass
 * `inline`, only main is left and there are no calls. Values are tensors, tokens (elem
 * TOKEN, rank 0) or, until `inline`, tuples. Dims are static after the pass `dynamic`; before it
 * a value says which of its may be shorter.
 */
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hal/base/arena.h"
#include "hal/base/elem.h"
#include "hal/base/err.h"
#include "hal/base/str.h"

#define TC_MAX_RANK 32		/* dims of a tensor */
/* No tensor is larger, its dims of 0 counted as 1: so strides, offsets and their
 * products with an index stay far from overflow. */
#define TC_MAX_BYTES ((int64_t)1 << 48)

/* One for each row of ops.def, in its order: a build's own numbers, never written anywhere. */
enum tc_opcode {
#define OP(name, text, operands, results, regions, traits) TC_##name,
#define OP_ATTR(name, attr, kind, need)
#include "runtime/compiler/ir/ops.def"
#undef OP
#undef OP_ATTR
	TC_OP_COUNT
};

/* What an attribute holds; struct tc_attr says in which of its fields. Which attributes an op
 * has, and of which kind, is in ops.def; ir_verify.c holds programs to it. */
enum tc_attr_kind {
	TC_ATTR_INT, TC_ATTR_BOOL, TC_ATTR_INTS, TC_ATTR_STR, TC_ATTR_ENUM,
	TC_ATTR_DENSE, TC_ATTR_ATTRS,
};

/* Numbers of ENUM attributes: those by which VHLO encodes StableHLO's enumerations of the same
 * names. comparison_direction: */
enum { TC_CMP_EQ, TC_CMP_NE, TC_CMP_GE, TC_CMP_GT, TC_CMP_LE, TC_CMP_LT };
enum { TC_CMP_NOTYPE, TC_CMP_FLOAT, TC_CMP_TOTALORDER, TC_CMP_SIGNED,
       TC_CMP_UNSIGNED };					/* compare_type */
enum { TC_PREC_DEFAULT, TC_PREC_HIGH, TC_PREC_HIGHEST };	/* precision_config */
enum { TC_RNG_DEFAULT, TC_RNG_THREE_FRY, TC_RNG_PHILOX };	/* rng_algorithm */
enum { TC_FFT_FFT, TC_FFT_IFFT, TC_FFT_RFFT, TC_FFT_IRFFT };	/* fft_type */
enum { TC_SOLVE_PLAIN = 1, TC_SOLVE_TRANSPOSE, TC_SOLVE_ADJOINT };	/* transpose_a */
/* FUSION's kind: what its region becomes.
 * LOOP: elementwise work, broadcasts, iotas, reductions to results: one VEC.
 * MATMUL: a dot_general or convolution first, then elementwise work: one MM or CONV. */
enum tc_fusion_kind { TC_FUSION_LOOP, TC_FUSION_MATMUL };

/* A tensor's or tuple's type. Types are interned per compile: equal types are equal
 * pointers, and none is ever changed. */
struct tc_type {
	uint8_t elem;		/* enum elem; of tuples 0 */
	uint8_t rank;		/* at most TC_MAX_RANK */
	uint8_t is_tuple;	/* then dim is unused, parts[n_parts] count */
	uint32_t n_parts, leaves;	/* of tuples; leaves: tensors at any depth */
	const struct tc_type *const *parts;
	int64_t count;		/* elements (product of dims); of rank 0: 1 */
	int64_t bytes;		/* count * elem_bytes: dense, as an array is handed over */
	int64_t dim[];		/* rank of them, from the outermost, each 0 or more */
};

/* A named constant of an op. Fields that its kind does not name are 0. */
struct tc_attr {
	const char *key;	/* interned (tc_key): equal keys are equal pointers */
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

/* An operand: op->operands[i] is the use of a value by op. */
struct tc_use {
	struct tc_value *value;
	struct tc_op *user;
	struct tc_use *next, **link;	/* among the uses of `value` */
};

/* What an op gives, or a block takes. Defined once, before its uses in the block or around. */
struct tc_value {
	const struct tc_type *type;
	struct tc_op *def;	/* NULL: a block argument */
	struct tc_block *block;	/* of a block argument */
	uint32_t index;		/* among the results or arguments */
	uint32_t id;		/* unique in the compile; for printing and side tables */
	uint32_t bounded;	/* dims (bits) that may be shorter than the type, which has
				 * their bounds; 0 after the pass `dynamic` */
	struct tc_use *uses;	/* in no order; NULL: unused */
	void *side;		/* free for who runs, who sets it before reading it */
};

/* A part of an op, which has op->n_regions of them, always in the same order: of while the
 * condition and the body, of if what is done if true and if false. */
struct tc_region {
	struct tc_op *parent;
	struct tc_block *block;	/* NULL: empty */
};

/* Ops in the order in which they run. */
struct tc_block {
	struct tc_region *region;
	uint32_t n_args, room_args;
	struct tc_value **args;
	struct tc_op *first, *last;	/* a list by next and prev; last: `return` */
};

/* What a parameter or result of main carries besides its type: attributes that JAX gives to a
 * function's arguments and results. */
struct tc_arg_info {
	int32_t alias;		/* tf.aliasing_output: the result in its memory; -1: none */
	bool is_donor;		/* jax.buffer_donor */
	uint8_t memory_kind;	/* mhlo.memory_kind: 0 device 1 pinned_host 2 unpinned_host */
	const char *sharding;	/* as text, or NULL */
	const char *layout;	/* mhlo.layout_mode, or NULL: row-major */
	uint32_t bounded;	/* after the pass `dynamic`: dims (bits) whose sizes another
				 * argument or result has */
};

/* An operation. Who holds a pointer to it may read all of this; lists are changed by the
 * functions below only, which keep uses and neighbours right. */
struct tc_op {
	uint16_t op;		/* enum tc_opcode */
	uint16_t n_attrs;
	uint32_t n_operands, n_results, n_regions;
	struct tc_use *operands;
	struct tc_value *results;	/* array of n_results */
	struct tc_region *regions;
	struct tc_attr *attrs;
	struct tc_block *block;	/* NULL: in none (yet) */
	struct tc_op *prev, *next;
	const char *where;	/* location for messages: "jit(f)/add at f.py:3" or "" */
	struct tc_arg_info *arg_info, *res_info;	/* FUNC only; NULL: none */
	uint32_t id;		/* unique among ops and values of the compile */
	void *side;		/* free for who runs, who sets it before reading it */
};

/* How an argument or result of main lies on several devices: a serialized xla.OpSharding. */
struct tc_sharding {
	const uint8_t *bytes;	/* NULL: replicated */
	size_t n;
};

/* A compile, or another use of the IR inside of tc_enter() (passes.h). */
struct tc_options;
struct tc_seat;
/* What goes ahead of loops is kept for as long as these run, and some convolutions, triangular
 * systems and Cholesky factors are sooner done by ops that take more memory, the device's or the
 * compiler's: a program that has no room for that is compiled again without it (compile.c). So is
 * one with a product that runs along too many dims where its operands were placed, with such dims
 * joined before. */
struct tc_ahead {
	bool is_off;		/* nothing is to go, or to take more memory than it must */
	bool is_any;		/* something did */
	bool is_short;		/* there is not the memory that the program needs */
	bool is_apart;		/* a product ran along too many dims */
	bool is_joined;		/* all dims of products are joined that can be */
};

struct tc_ctx {
	struct arena arena;
	struct tc_op *module;	/* NULL until the source is read */
	const struct tc_options *options;	/* tc.h; never NULL */
	struct err *err;	/* where tc_fail writes */
	jmp_buf *boundary;	/* where it goes */
	uint32_t next_id;	/* above all ids: the size of a table by id */
	struct tc_table *types, *keys;	/* interning (ir.c) */
	/* What the room at work holds outside the arena, and how it goes when the compile
	 * ends, be it by tc_fail(). NULL: nothing. */
	void *held;
	void (*free_held)(struct tc_ctx *c);
	/* Of main's arguments, then its results; NULL, 0: the program was not shared out. */
	const struct tc_sharding *shardings;
	uint32_t n_shardings;
	const char *dump_dir;	/* of this compile (TESSERA_DUMP), or NULL */
	struct tc_ahead *ahead;	/* NULL: nobody asks, all may go */
	uint32_t unrolled_rows;	/* of matrices that are factored or solved without loops */
	struct tc_seat *seat;	/* in a gang's evaluation (passes.h); NULL: in none */
};

/* Leaves the compile with `code` (enum err_code) and the text in c->err; op (or NULL) adds its
 * name, as the user knows it, and its location. */
_Noreturn void tc_fail(struct tc_ctx *c, int code, const struct tc_op *op,
		       const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* Frees what is held outside the arena; any time. */
void tc_free_held(struct tc_ctx *c);

/* ---- facts about ops: a row of ops.def, which says what traits mean ---- */
struct tc_op_info {
	const char *text;
	int8_t n_operands, n_results, n_regions;	/* -1: any */
	const char *traits;
};
const struct tc_op_info *tc_op_info(unsigned op);	/* any other number: OPAQUE's */
bool tc_has_trait(const struct tc_op *op, char trait);
/* Whether op, or one in its regions, speaks with the host: it does more than give results. */
bool tc_has_effect(const struct tc_op *op);
/* Whether it, or an op in its regions, meets other members. */
bool tc_meets(const struct tc_op *op);
/* Whether members of a program for several devices meet in op. */
static inline bool tc_is_collective(const struct tc_op *op) { return tc_has_trait(op, 'm'); }
/* By text of n bytes; -1: none. */
int tc_op_find(const char *text, size_t n);

/* ---- types ---- */
bool tc_same_dims(const struct tc_type *a, const struct tc_type *b);
/* The one type that is so. UNIMPLEMENTED: no such element type, a rank above TC_MAX_RANK, or
 * more than 65536 tensors in a tuple. INVALID_ARGUMENT: a dim below 0. RESOURCE_EXHAUSTED:
 * larger than TC_MAX_BYTES. */
const struct tc_type *tc_tensor(struct tc_ctx *c, enum elem elem, unsigned rank,
				const int64_t *dim);
const struct tc_type *tc_tuple(struct tc_ctx *c, const struct tc_type *const *parts,
			       unsigned n);
/* The same dims of other elements. */
const struct tc_type *tc_with_elem(struct tc_ctx *c, const struct tc_type *t,
				   enum elem elem);
/* The same but for the size of dim d, below its rank. */
const struct tc_type *tc_with_dim(struct tc_ctx *c, const struct tc_type *t, unsigned d,
				  int64_t size);

/* ---- attributes ---- */
/* The interned text of n bytes. */
const char *tc_key(struct tc_ctx *c, const char *text, size_t n);
#define TC_KEY(c, literal) tc_key((c), (literal), sizeof(literal) - 1)
/* By plain text. Absent: NULL, `otherwise`, no ints, NULL. Kinds are not looked at: ops.def
 * says what a verified op has. What is returned is borrowed. */
const struct tc_attr *tc_attr(const struct tc_op *op, const char *name);
int64_t tc_attr_int(const struct tc_op *op, const char *name, int64_t otherwise);
const int64_t *tc_attr_ints(const struct tc_op *op, const char *name, unsigned *n);
/* Whether one of n numbers, such as those, is x. */
bool tc_is_listed(const int64_t *list, unsigned n, int64_t x);
/* Whether both have the same numbers there, or neither has any. */
bool tc_has_same_ints(const struct tc_op *a, const struct tc_op *b, const char *name);
/* Whether the same members meet in both, in the same order. */
bool tc_has_same_groups(const struct tc_op *a, const struct tc_op *b);
/* Entry i of a list that is there and has so many. */
int64_t tc_attr_nth(const struct tc_op *op, const char *name, unsigned i);
const char *tc_attr_str(const struct tc_op *op, const char *name);
/* Element i of a tensor of integers; unsigned ones of 64 bits as if they had a sign. */
int64_t tc_attr_element(const struct tc_attr *a, int64_t i);
/* The first of the dims that an fft goes along; fft_length has an entry for each. */
unsigned tc_fft_first(const struct tc_op *op);
/* Adds an attribute or replaces the one of that key. tc_set_attr keeps attr's pointers; the
 * others copy what they are given. */
void tc_set_attr(struct tc_ctx *c, struct tc_op *op, struct tc_attr attr);
void tc_set_int(struct tc_ctx *c, struct tc_op *op, const char *name,
		enum tc_attr_kind kind, int64_t i);
void tc_set_ints(struct tc_ctx *c, struct tc_op *op, const char *name,
		 const int64_t *ints, unsigned n);
/* Such a list with another entry i. */
void tc_set_nth(struct tc_ctx *c, struct tc_op *op, const char *name, unsigned i, int64_t value);
void tc_set_str(struct tc_ctx *c, struct tc_op *op, const char *name,
		const char *text);

/* ---- building ---- */
/* An op outside any block, without attributes or location; results get `types`, regions are
 * empty. Nothing is checked: tc_ir_verify() does that after a pass. */
struct tc_op *tc_new(struct tc_ctx *c, enum tc_opcode op, unsigned n_operands,
		     struct tc_value *const *operands, unsigned n_results,
		     const struct tc_type *const *types, unsigned n_regions);
struct tc_block *tc_new_block(struct tc_ctx *c, struct tc_region *region);
/* One more argument of the block. */
struct tc_value *tc_new_arg(struct tc_ctx *c, struct tc_block *b,
			    const struct tc_type *type);
/* Both take an op that is in no block. */
void tc_append(struct tc_block *b, struct tc_op *op);
void tc_insert_before(struct tc_op *at, struct tc_op *op);
/* Takes op out of its block; its operands stay used. */
void tc_unlink(struct tc_op *op);
/* Unlinks and drops all uses, nested ops too. Its results must be unused. */
void tc_erase(struct tc_op *op);
/* One operand, or all of them: with another number, too. */
void tc_set_operand(struct tc_op *op, unsigned i, struct tc_value *v);
void tc_set_operands(struct tc_ctx *c, struct tc_op *op, unsigned n,
		     struct tc_value *const *values);
/* Who used `from` uses `to`. */
void tc_replace_uses(struct tc_value *from, struct tc_value *to);
/* Who used op's first result, the only one that is used, uses `by`; op is erased. */
void tc_replace(struct tc_op *op, struct tc_value *by);
static inline bool tc_is_unused(const struct tc_value *v) { return !v->uses; }
static inline bool tc_is_used_once(const struct tc_value *v)
{
	return v->uses && !v->uses->next;
}
/* A copy of op with nested regions, outside any block; `map` (from value to value, grown by
 * the copy's results and arguments) renames operands. Attributes' data is shared. */
struct tc_map;
struct tc_map *tc_map_new(struct tc_ctx *c);
void tc_map_set(struct tc_ctx *c, struct tc_map *m, const struct tc_value *from,
		struct tc_value *to);
struct tc_value *tc_map_get(const struct tc_map *m, struct tc_value *from); /* itself */
struct tc_op *tc_clone(struct tc_ctx *c, const struct tc_op *op, struct tc_map *map);
/* A constant of one repeated element (as in memory, copied), before `at`, with its location. */
struct tc_value *tc_splat(struct tc_ctx *c, struct tc_op *at,
			  const struct tc_type *type, const void *element);
/* A function of the module by name, or NULL. tc_main: the block of "main", else that of the
 * first function; NULL: the module begins with something else. */
struct tc_op *tc_find_func(const struct tc_ctx *c, const char *name);
struct tc_block *tc_main(const struct tc_ctx *c);
/* Calls fn on op and all nested ops, outer first; fn may erase the op it is given, but no
 * other. */
void tc_walk(struct tc_op *op, void (*fn)(struct tc_op *op, void *arg), void *arg);

/* Operand i, result i. */
static inline struct tc_value *tc_in(const struct tc_op *op, unsigned i)
{
	return op->operands[i].value;
}
static inline struct tc_value *tc_out(const struct tc_op *op, unsigned i)
{
	return &op->results[i];
}

/* ---- text and checks: each in the file named ---- */
/* Appends op and what is in it as text (README.md, "Text"); out->failed: out of memory.
 * ir_print.c */
void tc_ir_print(const struct tc_op *op, struct str *out);
/* "GT" of "comparison_direction"; NULL if the text has a number there. ir_print.c */
const char *tc_enum_name(const char *key, int64_t i);
/* n bytes of such text into c->module, not verified yet; INVALID_ARGUMENT with line and
 * column. ir_parse.c */
void tc_ir_parse(struct tc_ctx *c, const char *text, size_t n);
/* Structure and dominance; deep: attributes, types and shapes too. What fails is, of a program
 * as it came (pass NULL), INVALID_ARGUMENT, after a pass INTERNAL. Linear in the program but
 * for how deep regions nest. ir_verify.c */
void tc_ir_verify(struct tc_ctx *c, const char *pass, bool is_deep);

#endif
