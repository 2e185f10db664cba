/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_UOP_H
#define SIM_UOP_H
/*
 * Kernels of the vector unit: one uop over dense arrays. Private to hal/sim.
 *
 * The sources uop_*.c are compiled once for each path (path.h) with the same algorithms.
 * Paths differ in how many elements go at a time, and in whether steps of an elementary
 * function are fused: ISA.md#arithmetic says how far results may differ for that.
 * Kernels keep no state, touch exactly the n
 * elements named and never fail. Pointers are aligned to the element.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hal/hw/isa.h"
#include "hal/sim/kernels/cpu.h"

enum { UOP_SPREAD_A = 1, UOP_SPREAD_B = 2, UOP_SPREAD_C = 4 };

/*
 * dst[i] = op(a[i], b[i], c[i]) for i < n. spread: which arguments are a single
 * element instead (all of them only if n is 1). dst may be exactly the array of
 * an argument whose elements have the same size. aux: RDPREC: exponent bits |
 * mantissa bits << 8.
 */
typedef void sim_uop_fn(void *dst, const void *a, const void *b, const void *c,
			size_t n, unsigned spread, uint64_t aux);
/* dst[r] = fold of src[r * cols .. (r + 1) * cols) for r < rows; cols >= 1. */
typedef void sim_fold_fn(void *dst, const void *src, size_t rows, size_t cols);

/* The kernel of uop u, whose isa_uop_result() is valid; not for IMM, IOTA, SREG
 * and R*. Never NULL then. */
sim_uop_fn *sim_uop_kernel(enum sim_path path, const struct isa_uop *u);
/* from -> to, any two element types with bytes. */
sim_uop_fn *sim_uop_convert(enum sim_path path, unsigned from, unsigned to);
/* A kernel for `then` of the result of `first` and a third argument: first takes a
 * and b, then takes c as its other argument, as its first one if c_first. NULL: none. */
sim_uop_fn *sim_uop_pair_kernel(enum sim_path path, const struct isa_uop *first,
				const struct isa_uop *then, bool c_first);
/* A kernel of f32: (.. ((a * b + c[0]) * b + c[1]) .. ) * b + c[n - 1], rounded each time; aux is
 * where these are. */
struct sim_terms { unsigned n; float c[]; };
sim_uop_fn *sim_uop_terms(enum sim_path path);
/* A kernel of f32 and s32: a compared with the constant in aux, or with itself, which of floats
 * tells NaNs, ? b : c, of any type of 4 bytes. op: UOP_EQ .. UOP_GE. NULL: none. */
sim_uop_fn *sim_uop_choice(enum sim_path path, unsigned op, unsigned elem, bool with_itself);
/* A kernel of f32 and s32, a and b compared: op as above. ? c : the 4 bytes in aux; turned: ? aux
 * : c. NULL: none. */
sim_uop_fn *sim_uop_mask(enum sim_path path, unsigned op, unsigned elem, bool turned);
/* The same, ? the high half of aux : its low half. */
sim_uop_fn *sim_uop_flag(enum sim_path path, unsigned op, unsigned elem);
/* A kernel of s32 and u32: UOP_DIV or UOP_REM of a by the constant in aux, neither 0 nor -1. NULL:
 * none. */
sim_uop_fn *sim_uop_by_constant(enum sim_path path, unsigned op, unsigned elem);
/* A kernel of f32 for what `fn` is, with one b for each row of a: n rows of `aux` elements; dst may
 * also be the array of b. NULL: none. */
sim_uop_fn *sim_uop_by_row(enum sim_path path, sim_uop_fn *fn);
/*
 * A kernel of f32 arguments and results that are stored as narrower numbers: what a conversion
 * there or back would be a step of its own for. aux: how a, b and the result lie, by
 * sim_mixed_aux(). SIM_AGAIN_*: rounded to what is narrower, and f32 again. op: UOP_ADD, SUB, MUL,
 * DIV, MIN, MAX, or UOP_CVT, which is a alone. NULL: none.
 */
enum sim_mixed { SIM_WIDE, SIM_BF16, SIM_F16, SIM_AGAIN_BF16, SIM_AGAIN_F16 };
static inline uint64_t sim_mixed_aux(unsigned a, unsigned b, unsigned result)
{
	return a | b << 4 | (uint64_t)result << 8;
}
sim_uop_fn *sim_uop_mixed(enum sim_path path, unsigned op);
/* The same with one b for each row of a: n rows, `aux` >> SIM_MIXED_COLS elements each; dst may
 * also be the array of b. */
#define SIM_MIXED_COLS 12
sim_uop_fn *sim_uop_mixed_by_row(enum sim_path path, unsigned op);
/* A kernel of u32: a rotated to the left by `aux`, from 1 to 31; then_xor: b flips that. */
sim_uop_fn *sim_uop_rotate(enum sim_path path, bool then_xor);
/* The operation behind a combining output or R* uop as a uop: UOP_ADD .. UOP_XOR. */
unsigned sim_combine_uop(unsigned combine);
/* Folds of `op` = UOP_ADD, MUL, MIN, MAX, AND, OR, XOR; NULL where `elem` has none. */
sim_fold_fn *sim_uop_fold(enum sim_path path, unsigned op, unsigned elem);
/* dst[r] = the sum of the products a[r][j] * b[r][j], j < cols, for r < rows; products are
 * rounded, and so are sums. Rows are a_row and b_row bytes apart, elements lie
 * side by side; cols >= 1. */
typedef void sim_product_fold_fn(void *dst, const void *a, int64_t a_row, const void *b,
				 int64_t b_row, size_t rows, size_t cols);
/* For f32 and f64, and for bf16, of which a's elements alone are summed, as f32; else NULL. */
sim_product_fold_fn *sim_uop_product_fold(enum sim_path path, unsigned elem);
/* Rows where they lie, of elements side by side: a's, or products of these with b's, of which there
 * may be one for each row. */
struct sim_stack {
	const void *a, *b;	/* b: NULL, no products */
	int64_t a_row, b_row;	/* bytes from a row to the next */
	bool one_b;
	size_t rows, cols;
};
/* acc[j] = op(acc[j], the fold of column j), j < cols: sums are of every fourth row, and then of
 * these four. Products are rounded, and so are sums. rows >= 1; acc meets none of them. */
typedef void sim_stack_fn(void *acc, const struct sim_stack *s);
/* UOP_ADD of f32, f64 and whole numbers of 4 or 8 bytes, and of bf16 without products, which are
 * summed as f32; without products UOP_MIN and UOP_MAX of f32, f64, bf16 (acc: f32) and whole
 * numbers of 4 bytes, and what of predicates is one of these, UOP_AND or UOP_OR; else NULL. */
sim_stack_fn *sim_uop_stack(enum sim_path path, unsigned op, unsigned elem);
/* Writes the identity of `op` in `elem` (at most 16 bytes). */
void sim_uop_identity(unsigned op, unsigned elem, void *out);

/* Elements in memory: rows `row` bytes apart, of elements `col` bytes apart. */
struct sim_plane {
	size_t rows, cols;
	int64_t row, col;
};
/* dst[r][j] = op(.. op(op(*first, src[0][r][j]), src[1][r][j]) .., src[n_src - 1][r][j]),
 * rounded each time. src: where element [0][0] of each lies; dst is dense and apart from
 * them. */
typedef void sim_chain_fn(void *dst, const void *first, const char *const *src,
			  unsigned n_src, const struct sim_plane *plane);
/* For UOP_ADD, MUL, MIN and MAX of f32 and f64; NULL where there is none. */
sim_chain_fn *sim_uop_chain(enum sim_path path, unsigned op, unsigned elem);

/*
 * Of n pairs (x, i) and those of some rows of n pairs (y, k), one row after the other, those with
 * the larger value, or the smaller one. A NaN wins, the first of two does; of equal values it is
 * the later one, whose sign may be the other zero's, with what came with the first. The results
 * may be x and i themselves, and meet nothing else.
 */
struct sim_pick_rows {
	const void *y, *k;
	int64_t y_step, k_step;	/* bytes from a row to the next */
	size_t rows;
	bool one_k;		/* a row has one k for all */
};
typedef void sim_pick_fn(void *value, void *where, const void *x, const void *i,
			 const struct sim_pick_rows *rows, size_t n);
/* For UOP_MIN and UOP_MAX of some types and what has 4 or 8 bytes; else NULL. */
sim_pick_fn *sim_uop_pick(enum sim_path path, unsigned op, unsigned elem, unsigned where_bytes);

/*
 * Likewise of pair (*x, *i) and those of a row, for each of some rows of few pairs: y's elements
 * are side by side, k's are the same for all rows. The results lie side by side and meet nothing
 * else.
 */
struct sim_short_rows {
	const void *x, *y;
	const uint32_t *i, *k;
	int64_t y_step;		/* bytes from a row to the next */
	size_t rows, cols;	/* SIM_SHORT_ROW_LEAST to SIM_SHORT_ROW_MOST columns */
};
typedef void sim_pick_short_fn(void *value, uint32_t *where, const struct sim_short_rows *rows);
#define SIM_SHORT_ROW_LEAST 2
#define SIM_SHORT_ROW_MOST 256
#define SIM_SHORT_ROW_APART 4	/* columns at least of rows that do not follow one another */
/* Where that is sooner done than with columns one by one; else NULL. */
sim_pick_short_fn *sim_uop_pick_short(enum sim_path path, unsigned op, unsigned elem);

/* ---- the tables of each path (uop_*.c) ---- */

/* Computing types are below ELEM_F8E5M2; rows are uop codes. */
#define UOP_TYPES 16
struct sim_uop_row { sim_uop_fn *fn[UOP_TYPES]; };
struct sim_fold_row { sim_fold_fn *fn[UOP_TYPES]; };
struct sim_stack_row { sim_stack_fn *fn[UOP_TYPES]; };
struct sim_chain_row { sim_chain_fn *fn[UOP_TYPES]; };
struct sim_pick_row { sim_pick_fn *fn[UOP_TYPES][2]; };	/* of 4 and 8 bytes */
struct sim_pick_short_row { sim_pick_short_fn *fn[UOP_TYPES]; };
extern SIM_X86 const struct sim_pick_short_row sim_uop_pick_short_avx512[2];	/* min, max */

#define UOP_CODES 0x60
extern SIM_X86 sim_uop_fn *const sim_uop_mixed_avx512[2][UOP_CODES];	/* by row */
#define UOP_PAIR_FIRST 3
#define UOP_PAIR_THEN 7
#define UOP_CHOICES 7	/* UOP_EQ .. UOP_GE, NaNs */
#define UOP_COMPARISONS 6	/* UOP_EQ .. UOP_GE */
#define UOP_BY_ROW 4	/* UOP_ADD, SUB, MUL, DIV */
#define DECLARE(path, where) \
	extern where const struct sim_uop_row sim_uop_int_##path[UOP_CODES]; \
	extern where const struct sim_uop_row sim_uop_float_##path[UOP_CODES]; \
	extern where const struct sim_fold_row sim_uop_fold_##path[UOP_CODES]; \
	extern where const struct sim_chain_row sim_uop_chain_##path[UOP_CODES]; \
	extern where const struct sim_pick_row sim_uop_pick_##path[2]; /* min, max */ \
	extern where sim_product_fold_fn *const sim_uop_product_fold_##path[UOP_TYPES]; \
	extern where const struct sim_stack_row sim_uop_stack_##path[UOP_CODES]; \
	extern where sim_uop_fn *const sim_uop_select_##path[17]; /* by bytes */ \
	extern where sim_uop_fn *const sim_uop_pair_##path[UOP_PAIR_FIRST][UOP_PAIR_THEN]; \
	extern where sim_uop_fn *const sim_uop_by_row_##path[UOP_BY_ROW]; \
	extern where sim_uop_fn *const sim_uop_rotate_##path[2]; \
	extern where sim_uop_fn *const sim_uop_choice_##path[2][UOP_CHOICES]; \
	/* by whether it is turned, s32, the comparison */ \
	extern where sim_uop_fn *const sim_uop_mask_##path[2][2][UOP_COMPARISONS]; \
	extern where sim_uop_fn *const sim_uop_flag_##path[2][UOP_COMPARISONS]; \
	/* by whether it is u32, the remainder */ \
	extern where sim_uop_fn *const sim_uop_by_constant_##path[2][2]; \
	extern where sim_uop_fn *const sim_uop_terms_##path[1]; \
	where sim_uop_fn *sim_uop_cvt_##path(unsigned from, unsigned to);
DECLARE(portable, )
DECLARE(avx2, SIM_X86)
DECLARE(avx512, SIM_X86)
#undef DECLARE
/* Of complex numbers only what is in sim_uop_float has a path for each. */
extern const struct sim_uop_row sim_uop_complex[UOP_CODES];
extern const struct sim_fold_row sim_uop_fold_complex[UOP_CODES];

#endif
