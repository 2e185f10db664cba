/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_TRANSPOSE_H
#define SIM_TRANSPOSE_H
/*
 * Transposition of blocks of elements: what COPY and the packing of matrix operands
 * are made of. Private to hal/sim.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hal/sim/kernels/cpu.h"

/* One element of each size, at any address. */
typedef uint8_t cell1;
typedef uint16_t cell2 __attribute__((aligned(1), may_alias));
typedef uint32_t cell4 __attribute__((aligned(1), may_alias));
typedef uint64_t cell8 __attribute__((aligned(1), may_alias));
struct cell16_parts { uint64_t part[2]; } __attribute__((packed, may_alias));
typedef struct cell16_parts cell16;

/*
 * dst[c][r] = src[r][c] for r < rows, c < cols. Pitches are bytes between rows of
 * src and between rows of dst and may be negative; elements along a row are side by
 * side. src and dst do not meet. Memory need not be aligned. With a pitch of 0 of src, one row
 * stands for all: each of its elements comes `rows` times.
 */
typedef void sim_transpose_fn(void *dst, int64_t dst_pitch, const void *src,
			      int64_t src_pitch, size_t rows, size_t cols);

#define SIM_LINE 64	/* bytes of a line of a cache */

/*
 * Whether blocks are walked down all rows before the next strip of columns: the lines of a
 * destination whose rows are pages apart fall into one set of a cache, which holds few of them at a
 * time. Else that pays for elements of 1 and 4 bytes, as measured; those of 2 and 8 bytes take more
 * strips to a line of the source.
 */
static inline bool sim_is_by_strips(int64_t dst_pitch, unsigned bytes)
{
	return !(dst_pitch % 4096) || bytes == 1 || bytes == 4;
}

/* So often at least an element comes that a fill for each is better than that. */
#define SIM_LEAST_FILL 32
/* So many bytes of it at least that a store for each is better. */
#define SIM_LEAST_REPEAT 8

/* For elements of 1, 2, 4, 8 or 16 bytes; never NULL for these. */
sim_transpose_fn *sim_transpose(enum sim_path path, unsigned bytes);

/* dst[i] = src[i * step] for i < n, of memory that does not meet; nothing before the lowest or
 * behind the highest of them is read. */
typedef void sim_column_fn(void *dst, const void *src, size_t n);
/* By elements of so many bytes and a step in elements. NULL: none is better than one by one. */
sim_column_fn *sim_column(enum sim_path path, unsigned bytes, int64_t step);

/*
 * Rows of few elements that lie close to each other, in another order or several times:
 * dst[i * n + j] = src[i * pitch + place of j], some rows at a time. Nothing before the lowest or
 * behind the highest of all these is read.
 */
#define SIM_SHUFFLE_MOST 64u	/* elements in dst of the rows taken at a time */
struct sim_shuffle {
	unsigned n, span;	/* of a row: elements in dst, and that it reaches over in src */
	unsigned rows;		/* at a time */
	int64_t pitch, low;	/* bytes to the next row in src, and to the lowest of these rows */
	uint8_t place[SIM_SHUFFLE_MOST];	/* of each, in elements from the lowest on */
};
typedef void sim_shuffle_fn(void *dst, const void *src, size_t rows, const struct sim_shuffle *s);
/* For elements of 1, 2 or 4 bytes. NULL: none is better than one by one. */
sim_shuffle_fn *sim_shuffle(enum sim_path path, unsigned bytes);
/* Most elements that the rows taken at a time reach over in src. */
static inline unsigned sim_shuffle_span(unsigned bytes)
{
	return bytes == 2 ? 32 : 16;
}

/* Each of `rows` elements `cols` times, fewer than SIM_LEAST_FILL; the sides do not meet. */
typedef void sim_repeat_fn(void *dst, const void *src, size_t rows, size_t cols);
/* NULL: sim_fill_rows() is as fast. */
sim_repeat_fn *sim_repeat(enum sim_path path, unsigned bytes);

/* to[i * n + k] = values[k][i] for i < n_each, of n arrays: 2 to SIM_ZIP_MOST. */
enum { SIM_ZIP_MOST = 4 };
typedef void sim_zip_fn(void *to, const void *const *values, unsigned n, size_t n_each);
/* NULL: none is better than what portable code does. */
sim_zip_fn *sim_zip(enum sim_path path, unsigned bytes);

/* The tables of each path, by log2 of the element's bytes. */
extern sim_transpose_fn *const sim_transpose_portable[5];
extern SIM_X86 sim_transpose_fn *const sim_transpose_avx2[5];
/* By that and by the step, from SIM_LEAST_STEP on. */
enum { SIM_LEAST_STEP = 2, SIM_MOST_STEP = 4 };
extern SIM_X86 sim_column_fn *const sim_column_avx2[3][SIM_MOST_STEP - SIM_LEAST_STEP + 1];
/* Of 4 bytes, by the step; uop_chain.c's. */
extern SIM_X86 sim_column_fn *const sim_wide_column_avx512[SIM_MOST_STEP - SIM_LEAST_STEP + 1];
/* By the step back. */
extern SIM_X86 sim_column_fn *const sim_wide_back_avx512[SIM_MOST_STEP - SIM_LEAST_STEP + 1];
/* Of 1, 2 and 4 bytes, and of 8 too. */
extern SIM_X86 sim_shuffle_fn *const sim_wide_shuffle_avx512[3];
extern SIM_X86 sim_repeat_fn *const sim_wide_repeat_avx512[4];
/* Of 4 bytes. */
extern SIM_X86 sim_zip_fn *const sim_wide_zip_avx512;
/* By a step of -1. */
extern SIM_X86 sim_column_fn *const sim_back_avx2[4];

#endif
