/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
#ifndef HW_ISA_H
#define HW_ISA_H
/*
 * The T1's instructions as laid out in memory (ISA.md is the manual).
 *
 * A program is a run of instructions, each a multiple of 8 bytes and led by
 * struct isa_insn, little endian. It is handed to the device once (PROGRAM_CREATE,
 * desc.h), which checks every static fact and keeps its own copy; EXECUTE then
 * binds it to memory. Memory is reached only through bindings: operand address =
 * address of binding[k] + offset + r[reg] + sum over d of i[d] * stride[d], all
 * in bytes. The device checks that every address an operand can take lies in
 * its binding: at load for reg == 0 (against the size that the program declares
 * for the binding), before the instruction runs otherwise. No element may
 * straddle its natural alignment (c128: 8).
 *
 * Tensor instructions have an iteration space dim[0..rank), run a body of vector
 * operations at each point and store values of the body. The device is free in
 * the order of points and works on tiles; results of float reductions may differ
 * in rounding by that order, and by nothing else.
 *
 * Bodies. Value v of a body is, in order: the values that the instruction family
 * provides (n_pre of them: see each struct), then input 0..n_in-1 loaded at the
 * point, then the result of uop 0..n_uop-1. A uop names earlier values in a, b, c.
 * Row values: when row_rank > 0 the trailing row_rank dims form a row; R* uops
 * reduce a full value over its row; a uop all of whose arguments are row values
 * (or IMM, SREG) gives a row value, one with any full argument a full value, for
 * which row values are spread along the row. IMM and SREG count as row values,
 * IOTA over a non-row dim too. An output that names a row value has strides 0
 * along the row dims. A row may have at most ISA_MAX_ROW elements.
 *
 * Operand overlap: which outputs may lie on which inputs, and how, is in
 * ISA.md#overlap and isa_access.h; outputs do not overlap. Otherwise contents are
 * undefined (but no access leaves the bindings).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hal/base/elem.h"

#define ISA_VERSION 1u		/* in images and in the IDENTIFY page */
#define ISA_MAX_RANK 8
#define ISA_MAX_IN 24		/* inputs of one instruction */
#define ISA_MAX_OUT 8		/* outputs of one instruction */
#define ISA_MAX_VALUES 224	/* values of one body */
#define ISA_MAX_ROW 16384	/* elements of a row */
#define ISA_MAX_SPATIAL 6	/* spatial dims of a convolution */
#define ISA_MAX_INDEX 8		/* index components of gather and scatter */
#define ISA_MAX_SORT 4		/* operands sorted together */
#define ISA_MAX_FFT (1 << 20)	/* points of a Fourier transform */
#define ISA_MAX_FFT_PRIME 64	/* none of its prime factors is larger */
#define ISA_N_REG 64		/* scalar registers; r0 reads 0, writes vanish */
#define ISA_CALL_DEPTH 64
#define ISA_MAX_BINDINGS 4096

enum isa_opcode {
#define INSN(name, number, mnemonic, layout, status, effect) \
	ISA_##name = number,
#include "hal/hw/isa.def"
#undef INSN
};

enum isa_alu {
#define ALU(name, number, mnemonic, effect) ISA_ALU_##name = number,
#include "hal/hw/alu.def"
#undef ALU
	ISA_ALU_COUNT
};

enum isa_uop_code {
#define UOP(name, number, mnemonic, args, types, result, effect) \
	UOP_##name = number,
#include "hal/hw/uop.def"
#undef UOP
};

/* How an output meets memory. All but STORE reduce: the dims along which the
 * output's stride is 0 are folded, starting from the operation's identity (the
 * old content of memory does not count unless ISA_OPERAND_ACC is set). */
enum isa_combine {
	ISA_STORE, ISA_COMBINE_ADD, ISA_COMBINE_MUL, ISA_COMBINE_MIN,
	ISA_COMBINE_MAX, ISA_COMBINE_AND, ISA_COMBINE_OR, ISA_COMBINE_XOR,
	ISA_COMBINE_COUNT
};

enum {
	ISA_OPERAND_ACC = 1u << 0,	/* fold into the old content */
	ISA_FLAG_STABLE = 1u << 0,	/* SORT: equal elements keep their order */
	ISA_FLAG_UNIQUE = 1u << 1,	/* SCATTER: no two updates meet */
	ISA_FLAG_SORTED = 1u << 2,	/* GATHER, SCATTER: indices ascend (a hint) */
	ISA_FLAG_FILL = 1u << 3,	/* GATHER: a window that starts outside is filled */
	ISA_FLAG_INVERSE = 1u << 0,	/* FFT: with +2 pi i */
};

/* Leads every instruction. */
struct isa_insn {
	uint16_t op;		/* enum isa_opcode */
	uint16_t flags;		/* ISA_FLAG_*, 0 where none is defined */
	uint32_t bytes;		/* of the whole instruction, multiple of 8 */
};

struct isa_scalar {
	struct isa_insn insn;
	uint8_t fn;		/* enum isa_alu; RSIG: ADD, or MAX (of unsigned) */
	uint8_t rd, ra, rb;
	uint8_t elem;		/* LD, ST: pred or an integer type; RSIG, RWAIT: u64 */
	uint8_t zero;
	uint16_t binding;	/* LD, ST, RWAIT; RSIG: a peer's */
	int64_t imm;		/* branches: bytes from the start of this one */
};

struct isa_operand {
	uint8_t elem;		/* enum elem */
	uint8_t reg;		/* scalar register added to the address; 0: none */
	uint16_t binding;
	uint8_t value;		/* outputs: the body's value that is stored */
	uint8_t combine;	/* outputs: enum isa_combine */
	uint8_t flags;		/* ISA_OPERAND_* */
	uint8_t zero;
	int64_t offset;		/* bytes from the binding's start */
	int64_t stride[ISA_MAX_RANK]; /* bytes; 0 beyond rank */
};

struct isa_uop {
	uint8_t op;		/* enum isa_uop_code */
	uint8_t elem;		/* of the arguments (SELECT: of b and c) */
	uint8_t to;		/* CVT, BITCAST, COMPLEX: of the result, else 0 */
	uint8_t aux;		/* IOTA: dim, SREG: register, RDPREC: exponent */
	uint8_t a, b, c;	/* values, 0 where unused */
	uint8_t zero;
	uint64_t imm;		/* IMM: the element's bits. C64: real in the low half.
				 * C128 has no IMM: COMPLEX of two F64 */
};

struct isa_body {
	uint8_t rank;		/* of the iteration space; 0: one point */
	uint8_t row_rank;	/* trailing dims that form a row; 0: no rows */
	uint8_t n_in, n_out;
	uint16_t n_uop;
	uint16_t zero;
	int64_t dim[ISA_MAX_RANK]; /* >= 0 (0: nothing happens); 1 beyond rank */
};

/*
 * VEC and REDUCE: the struct, then operand[n_in], operand[n_out], uop[n_uop].
 *
 * VEC: n_pre = 0. REDUCE: n_out = K results; the inputs are K initial values
 * (read at the points whose reduced coordinates are 0), then K operands; n_in =
 * 2K. At a point, values 0..K-1 are the accumulators and K..2K-1 the elements;
 * n_pre = 0. The reduced dims are those in reduce_dims; there outputs and
 * initial values have stride 0. The body must be associative: parts may be
 * folded apart and joined, with the initial values entering at least once.
 */
struct isa_tensor {
	struct isa_insn insn;
	uint32_t reduce_dims;	/* REDUCE: bit d; VEC: 0 */
	uint32_t zero;
	struct isa_body body;
};

/* COPY, RPUT: elements of 1, 2, 4, 8 or 16 bytes; operand.elem is ignored. RPUT's dst is in
 * a binding declared HW_BIND_PEER for writing, where nothing but RPUT and RSIG goes. */
struct isa_copy {
	struct isa_insn insn;
	uint8_t rank;
	uint8_t elem_bytes;
	uint8_t zero[6];
	int64_t dim[ISA_MAX_RANK];
	struct isa_operand src, dst;
};

/* One component of an index vector. */
struct isa_index {
	int64_t limit;		/* largest valid start */
	int64_t step;		/* bytes in the table that 1 stands for */
	int64_t wrap;		/* what is added to a start below 0, before the limit counts */
};

/*
 * GATHER: dims are n_batch batch dims, then window dims. `src` has strides for
 * both (batch: operand batching dims, else 0), `idx` for the batch dims, its
 * components index_stride bytes apart. idx.elem is any integer type. Without
 * ISA_FLAG_FILL `fill` is 0; bits behind the element are 0 with it, too.
 */
struct isa_gather {
	struct isa_insn insn;
	uint8_t rank, n_batch, n_index;
	uint8_t zero[5];
	int64_t dim[ISA_MAX_RANK];
	int64_t index_stride;
	struct isa_index index[ISA_MAX_INDEX];
	struct isa_operand src, idx, dst;
	uint64_t fill[2];	/* an element's bits, from its first byte on */
};

/*
 * SCATTER: the struct, then operand upd[K], operand dst[K], uop[n_uop], K =
 * body.n_in = body.n_out. Dims as for GATHER, over the updates. Values 0..K-1
 * are the current elements (n_pre = K), K..2K-1 the updates. dst[j].value is
 * stored. A whole window is skipped if any component lies outside 0..limit.
 */
struct isa_scatter {
	struct isa_insn insn;
	uint8_t n_batch, n_index;
	uint8_t zero[6];
	int64_t index_stride;
	struct isa_index index[ISA_MAX_INDEX];
	struct isa_operand idx;
	struct isa_body body;
};

/*
 * SORT: the struct, then operand in[K], operand out[K], uop[n_uop], K = body.n_in
 * = body.n_out. Sorts along `sort_dim`. Values 2j and 2j+1 are operand j of a
 * and of b (n_pre = 2K, the inputs add none); value `first` (pred) says that a
 * goes before b. Outputs name no value.
 */
struct isa_sort {
	struct isa_insn insn;
	uint8_t sort_dim, first;
	uint8_t zero[6];
	struct isa_body body;
};

enum isa_rng_algorithm { ISA_RNG_PHILOX, ISA_RNG_THREEFRY };

/* RNG: state is 2 (THREEFRY) or 2..3 (PHILOX) u64 words, contiguous; out is n_words
 * contiguous 32-bit words. Order of words and state as in ISA.md#rng. */
struct isa_rng {
	struct isa_insn insn;
	uint8_t algorithm;	/* enum isa_rng_algorithm */
	uint8_t state_words;
	uint8_t zero[6];
	uint64_t n_words;
	struct isa_operand state, new_state, out;
};

/*
 * FFT: transforms each line of n = dim[axis] points along dim `axis`:
 *	dst[k] = scale * sum over j < n of src[j] * exp(-2 pi i j k / n),
 * with +2 pi i where INVERSE is set. By the types of src and dst:
 *	c64 to c64, c128 to c128: n elements become n; dst may lie on src, element for element;
 *	f32 to c64, f64 to c128: n real elements become the first n / 2 + 1, which the others
 *		mirror; INVERSE is not set;
 *	c64 to f32, c128 to f64: and back; INVERSE is set. The imaginary part of element 0, and of
 *		element n / 2 if n is even, does not count.
 * Where n / 2 + 1 elements are read or written, the operand has so many along `axis`. n is at
 * most ISA_MAX_FFT, and a product of primes of at most ISA_MAX_FFT_PRIME. Sums are made in the
 * precision of src, in any order.
 */
struct isa_fft {
	struct isa_insn insn;
	uint8_t rank, axis;	/* axis < rank */
	uint8_t zero[6];
	double scale;
	int64_t dim[ISA_MAX_RANK]; /* >= 0 (0: nothing happens); 1 beyond rank */
	struct isa_operand src, dst;
};

enum isa_precision {
	ISA_PRECISION_DEFAULT,	/* faithful to the accumulator's type */
	ISA_PRECISION_HIGH,	/* f32 as 3 products of bf16 parts is enough */
	ISA_PRECISION_BF16,	/* f32 operands may be rounded to bf16 */
};

/*
 * MM: the struct, then operand[n_in], operand[n_out], uop[n_uop]. The last two
 * dims of the iteration space are m and n, those before are batch dims. a has
 * stride 0 along n, b along m. a.elem and b.elem may differ (then both are
 * converted to acc first). acc is the type of the sum and of value 0 (n_pre = 1):
 *	f32 of f32, bf16, f16 or any f8; f64 of floats; s32 and s64 of integers;
 *	u32, u64; c64, c128; pred (or of ands).
 * k = 0 gives zeros. row_rank is 0.
 */
struct isa_mm {
	struct isa_insn insn;
	uint8_t acc;		/* enum elem */
	uint8_t precision;	/* enum isa_precision */
	uint8_t zero[6];
	int64_t k;
	int64_t a_k_stride, b_k_stride; /* bytes */
	struct isa_operand a, b;
	struct isa_body body;
};

/*
 * CONV: the struct, then operand[n_in], operand[n_out], uop[n_uop]. Iteration
 * space: dim[0] batch, dim[1] out feature, dim[2..] out spatial, rank = 2 +
 * n_spatial. lhs.stride[]: 0 batch, 1 feature, 2.. spatial. rhs.stride[]: 0 out
 * feature, 1 in feature, 2.. spatial. acc and value 0 as for MM.
 *
 * With G feature groups and B batch groups (one of them is 1), O out features and
 * I = in_features (of the kernel, so lhs has I * G features and N * B batches):
 *	value[n, o, x] = sum over c < I, y < kernel of
 *	    lhs[n + N * (B > 1 ? o / (O / B) : 0), c + I * (o / (O / G)), p] * rhs[o, c, y'],
 *	    q = x * stride + y * rhs_dilation - pad_low,  p = q / lhs_dilation,
 *	    taken where q divides evenly and 0 <= p < in_size; y' = reversed ?
 *	    kernel - 1 - y : y.
 */
struct isa_conv {
	struct isa_insn insn;
	uint8_t acc, precision;
	uint8_t n_spatial;
	uint8_t reversed;	/* bit per spatial dim */
	uint8_t zero[4];
	int64_t in_features, feature_groups, batch_groups;
	int64_t in_size[ISA_MAX_SPATIAL], kernel[ISA_MAX_SPATIAL];
	int64_t window_stride[ISA_MAX_SPATIAL], pad_low[ISA_MAX_SPATIAL];
	int64_t lhs_dilation[ISA_MAX_SPATIAL], rhs_dilation[ISA_MAX_SPATIAL];
	struct isa_operand lhs, rhs;
	struct isa_body body;
};

/* ---- facts about instructions, from the .def files (isa.c) ---- */

struct isa_insn_info {
	const char *mnemonic;	/* NULL: no such opcode */
	uint16_t head_bytes;	/* of the fixed struct */
	uint8_t built;		/* status NOW */
	const char *effect;
};
struct isa_uop_info {
	const char *mnemonic;	/* NULL: no such uop */
	uint8_t n_args;
	char result;		/* 'E' 'T' 'P' 'R' */
	const char *types;
	const char *effect;
};

const struct isa_insn_info *isa_insn_info(unsigned op);	/* never NULL */
const struct isa_uop_info *isa_uop_info(unsigned op);	/* never NULL */
const char *isa_alu_name(unsigned fn);			/* NULL: none */

/* The body of a tensor instruction and how many values its family provides,
 * or NULL for an instruction without one. `insn` is a whole instruction. */
const struct isa_body *isa_body_of(const struct isa_insn *insn, unsigned *n_pre);

/* Whether FFT transforms lines of n points. */
bool isa_fft_fits(int64_t n);
/* How many elements src and dst have along the axis; f->dim[f->axis] is not negative. Types may be
 * none that there are: those are not real. */
void isa_fft_counts(const struct isa_fft *f, int64_t *src, int64_t *dst);

/* The element type of uop u's result (ELEM_INVALID if `elem` is not allowed). */
enum elem isa_uop_result(const struct isa_uop *u);

#endif
