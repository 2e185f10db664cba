/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_UOP_LOOP_H
#define SIM_UOP_LOOP_H
/*
 * Loops of kernels. The compiler vectorises them: a block of 64 elements has a
 * fixed trip count, so no remainder is left in it. A spread argument is first
 * copied over a block of its own, which is then read again and again: one loop
 * serves every mix of arguments.
 */
#include "hal/sim/kernels/uop.h"

#define BLOCK 64
#define IVDEP _Pragma("GCC ivdep")

/* Makes `p` walk: over its array, or on the spot over a block of copies. */
#define ARGUMENT(T, p, raw, bit) \
	_Alignas(64) T p##_block[BLOCK]; \
	const T *p = raw; \
	size_t p##_step = BLOCK; \
	if (spread & (bit)) { \
		size_t fill = n < BLOCK ? n : BLOCK; \
		T one = *p; \
		for (size_t j = 0; j < fill; j++) \
			p##_block[j] = one; \
		p = p##_block; \
		p##_step = 0; \
	}

#define KERNEL(name) \
	static void name(void *dst, const void *ra, const void *rb, const void *rc, \
			 size_t n, unsigned spread, uint64_t aux)
#define UNUSED_ARGS (void)ra, (void)rb, (void)rc, (void)spread, (void)aux

/* d[i] = EXPR of x, which is an R; UNARY makes it one */
#define UNARY(name, R, T, EXPR) UNARY_OF(name, R, T, (R)(EXPR))
#define UNARY_OF(name, R, T, EXPR) \
KERNEL(name) \
{ \
	R *d = dst; \
	const T *pa = ra; \
	UNUSED_ARGS; \
	for (; n >= BLOCK; n -= BLOCK, d += BLOCK, pa += BLOCK) { \
		IVDEP \
		for (size_t j = 0; j < BLOCK; j++) { \
			T x = pa[j]; \
			d[j] = (EXPR); \
		} \
	} \
	IVDEP \
	for (size_t j = 0; j < n; j++) { \
		T x = pa[j]; \
		d[j] = (EXPR); \
	} \
}

/* d[i] = EXPR of x, y, in the same two forms; a single element, as loops over scalars have them,
 * without further questions */
#define BINARY(name, R, T, EXPR) BINARY_OF(name, R, T, (R)(EXPR))
#define BINARY_OF(name, R, T, EXPR) \
KERNEL(name) \
{ \
	R *d = dst; \
	if (n == 1) { \
		T x = *(const T *)ra, y = *(const T *)rb; \
		*d = (EXPR); \
		return; \
	} \
	ARGUMENT(T, pa, ra, UOP_SPREAD_A) \
	ARGUMENT(T, pb, rb, UOP_SPREAD_B) \
	UNUSED_ARGS; \
	for (; n >= BLOCK; n -= BLOCK) { \
		IVDEP \
		for (size_t j = 0; j < BLOCK; j++) { \
			T x = pa[j], y = pb[j]; \
			d[j] = (EXPR); \
		} \
		d += BLOCK; \
		pa += pa_step; \
		pb += pb_step; \
	} \
	IVDEP \
	for (size_t j = 0; j < n; j++) { \
		T x = pa[j], y = pb[j]; \
		d[j] = (EXPR); \
	} \
}

/* d[i] = EXPR of x (of type A), y and z (of type T) */
#define TERNARY(name, R, A, T, EXPR) \
KERNEL(name) \
{ \
	R *d = dst; \
	ARGUMENT(A, pa, ra, UOP_SPREAD_A) \
	ARGUMENT(T, pb, rb, UOP_SPREAD_B) \
	ARGUMENT(T, pc, rc, UOP_SPREAD_C) \
	UNUSED_ARGS; \
	for (; n >= BLOCK; n -= BLOCK) { \
		IVDEP \
		for (size_t j = 0; j < BLOCK; j++) { \
			A x = pa[j]; \
			T y = pb[j], z = pc[j]; \
			d[j] = (R)(EXPR); \
		} \
		d += BLOCK; \
		pa += pa_step; \
		pb += pb_step; \
		pc += pc_step; \
	} \
	IVDEP \
	for (size_t j = 0; j < n; j++) { \
		A x = pa[j]; \
		T y = pb[j], z = pc[j]; \
		d[j] = (R)(EXPR); \
	} \
}

/* Of a table by element type: the unsigned kernel for both signs, and one of each. */
#define INT_ROW_BOTH(op) \
	[ELEM_S8] = u8_##op, [ELEM_S16] = u16_##op, [ELEM_S32] = u32_##op, \
	[ELEM_S64] = u64_##op, [ELEM_U8] = u8_##op, [ELEM_U16] = u16_##op, \
	[ELEM_U32] = u32_##op, [ELEM_U64] = u64_##op
#define INT_ROW_EACH(op) \
	[ELEM_S8] = s8_##op, [ELEM_S16] = s16_##op, [ELEM_S32] = s32_##op, \
	[ELEM_S64] = s64_##op, [ELEM_U8] = u8_##op, [ELEM_U16] = u16_##op, \
	[ELEM_U32] = u32_##op, [ELEM_U64] = u64_##op

#endif
