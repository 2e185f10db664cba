/* SPDX-License-Identifier: Apache-2.0 */
/* Picks kernels out of the paths' tables. */
#include "hal/sim/kernels/uop.h"

#include <math.h>
#include <string.h>

#define ROWS(name) { name##_portable, name##_avx2, name##_avx512 }

static const struct sim_uop_row *const ints[] = ROWS(sim_uop_int);
static const struct sim_uop_row *const floats[] = ROWS(sim_uop_float);
static const struct sim_fold_row *const folds[] = ROWS(sim_uop_fold);
static sim_uop_fn *const *const selects[] = ROWS(sim_uop_select);

static const struct sim_chain_row *const chains[] = ROWS(sim_uop_chain);
static const struct sim_pick_row *const picks[] = ROWS(sim_uop_pick);
static sim_product_fold_fn *const *const product_folds[] = ROWS(sim_uop_product_fold);
static const struct sim_stack_row *const stacks[] = ROWS(sim_uop_stack);

static sim_uop_fn *const *const terms[] = ROWS(sim_uop_terms);
static sim_uop_fn *const (*const pairs[])[UOP_PAIR_THEN] = ROWS(sim_uop_pair);
static sim_uop_fn *const *const by_rows[] = ROWS(sim_uop_by_row);
static sim_uop_fn *const *const rotates[] = ROWS(sim_uop_rotate);
static sim_uop_fn *const (*const choices[])[UOP_CHOICES] = ROWS(sim_uop_choice);
static sim_uop_fn *const (*const masks[])[2][UOP_COMPARISONS] = ROWS(sim_uop_mask);
static sim_uop_fn *const (*const flags[])[UOP_COMPARISONS] = ROWS(sim_uop_flag);
static sim_uop_fn *const (*const divisions[])[2] = ROWS(sim_uop_by_constant);

static void copy_bits(void *dst, const void *a, size_t bytes)
{
	memmove(dst, a, bytes);
}

#define COPY(bytes) \
static void copy_##bytes(void *dst, const void *a, const void *b, const void *c, \
			 size_t n, unsigned spread, uint64_t aux) \
{ \
	(void)b, (void)c, (void)spread, (void)aux; \
	copy_bits(dst, a, n * (bytes)); \
}
COPY(1)
COPY(2)
COPY(4)
COPY(8)
COPY(16)

static sim_uop_fn *copy_of(unsigned bytes)
{
	switch (bytes) {
	case 1: return copy_1;
	case 2: return copy_2;
	case 4: return copy_4;
	case 8: return copy_8;
	default: return copy_16;
	}
}

sim_uop_fn *sim_uop_convert(enum sim_path path, unsigned from, unsigned to)
{
	switch (path) {
	case SIM_AVX512: return sim_uop_cvt_avx512(from, to);
	case SIM_AVX2: return sim_uop_cvt_avx2(from, to);
	default: return sim_uop_cvt_portable(from, to);
	}
}

sim_uop_fn *sim_uop_kernel(enum sim_path path, const struct isa_uop *u)
{
	unsigned elem = u->elem;

	if (u->op == UOP_CVT)
		return sim_uop_convert(path, elem, u->to);
	if (u->op == UOP_BITCAST)
		return copy_of(elem_bytes(elem));
	if (u->op == UOP_SELECT)
		return selects[path][elem_bytes(elem)];
	if (u->op >= UOP_CODES || elem >= UOP_TYPES)
		return NULL;
	if (elem_class(elem) == ELEM_CLASS_COMPLEX && !floats[path][u->op].fn[elem])
		return sim_uop_complex[u->op].fn[elem];
	if (elem_class(elem) == ELEM_CLASS_FLOAT || elem_class(elem) == ELEM_CLASS_COMPLEX)
		return floats[path][u->op].fn[elem];
	return ints[path][u->op].fn[elem];
}

sim_uop_fn *sim_uop_rotate(enum sim_path path, bool then_xor)
{
	return rotates[path][then_xor];
}

sim_uop_fn *sim_uop_mixed(enum sim_path path, unsigned op)
{
	return path == SIM_AVX512 && op < UOP_CODES ? sim_uop_mixed_avx512[0][op] : NULL;
}

sim_uop_fn *sim_uop_mixed_by_row(enum sim_path path, unsigned op)
{
	return path == SIM_AVX512 && op < UOP_CODES ? sim_uop_mixed_avx512[1][op] : NULL;
}

sim_uop_fn *sim_uop_terms(enum sim_path path)
{
	return terms[path][0];
}

static bool is_comparison(unsigned op, unsigned elem)
{
	return op >= UOP_EQ && op <= UOP_GE && (elem == ELEM_F32 || elem == ELEM_S32);
}

sim_uop_fn *sim_uop_choice(enum sim_path path, unsigned op, unsigned elem, bool with_itself)
{
	if (!is_comparison(op, elem))
		return NULL;
	if (!with_itself)
		return choices[path][elem == ELEM_S32][op - UOP_EQ];
	return op == UOP_NE ? choices[path][elem == ELEM_S32][UOP_CHOICES - 1] : NULL;
}

sim_uop_fn *sim_uop_mask(enum sim_path path, unsigned op, unsigned elem, bool turned)
{
	return is_comparison(op, elem) ? masks[path][turned][elem == ELEM_S32][op - UOP_EQ] : NULL;
}

sim_uop_fn *sim_uop_flag(enum sim_path path, unsigned op, unsigned elem)
{
	return is_comparison(op, elem) ? flags[path][elem == ELEM_S32][op - UOP_EQ] : NULL;
}

sim_uop_fn *sim_uop_by_constant(enum sim_path path, unsigned op, unsigned elem)
{
	if ((op != UOP_DIV && op != UOP_REM) || (elem != ELEM_S32 && elem != ELEM_U32))
		return NULL;
	return divisions[path][elem == ELEM_U32][op == UOP_REM];
}

sim_uop_fn *sim_uop_pair_kernel(enum sim_path path, const struct isa_uop *first,
				const struct isa_uop *then, bool c_first)
{
	static const int8_t row[UOP_CODES] = {
		[UOP_ADD] = 1, [UOP_SUB] = 2, [UOP_MUL] = 3,
	};
	/* add, sub, from, mul, div, max, min */
	static const int8_t column[UOP_CODES] = {
		[UOP_ADD] = 1, [UOP_SUB] = 2, [UOP_MUL] = 4, [UOP_DIV] = 5, [UOP_MAX] = 6,
		[UOP_MIN] = 7,
	};
	int r, c;

	if (first->elem != ELEM_F32 || then->elem != ELEM_F32 || first->op >= UOP_CODES ||
	    then->op >= UOP_CODES)
		return NULL;
	r = row[first->op];
	c = column[then->op];
	if (c_first && then->op == UOP_SUB)
		c = 3;
	if (!r || !c || (c_first && then->op == UOP_DIV))
		return NULL;
	return pairs[path][r - 1][c - 1];
}

sim_uop_fn *sim_uop_by_row(enum sim_path path, sim_uop_fn *fn)
{
	static const uint8_t ops[UOP_BY_ROW] = { UOP_ADD, UOP_SUB, UOP_MUL, UOP_DIV };

	for (unsigned i = 0; i < UOP_BY_ROW; i++)
		if (fn == floats[path][ops[i]].fn[ELEM_F32])
			return by_rows[path][i];
	return NULL;
}

unsigned sim_combine_uop(unsigned combine)
{
	static const uint8_t uop[ISA_COMBINE_COUNT] = {
		[ISA_COMBINE_ADD] = UOP_ADD, [ISA_COMBINE_MUL] = UOP_MUL,
		[ISA_COMBINE_MIN] = UOP_MIN, [ISA_COMBINE_MAX] = UOP_MAX,
		[ISA_COMBINE_AND] = UOP_AND, [ISA_COMBINE_OR] = UOP_OR,
		[ISA_COMBINE_XOR] = UOP_XOR,
	};

	return uop[combine];
}

sim_fold_fn *sim_uop_fold(enum sim_path path, unsigned op, unsigned elem)
{
	if (op >= UOP_CODES || elem >= UOP_TYPES)
		return NULL;
	if (elem_class(elem) == ELEM_CLASS_COMPLEX)
		return sim_uop_fold_complex[op].fn[elem];
	return folds[path][op].fn[elem];
}

sim_product_fold_fn *sim_uop_product_fold(enum sim_path path, unsigned elem)
{
	return elem < UOP_TYPES ? product_folds[path][elem] : NULL;
}

sim_stack_fn *sim_uop_stack(enum sim_path path, unsigned op, unsigned elem)
{
	return op < UOP_CODES && elem < UOP_TYPES ? stacks[path][op].fn[elem] : NULL;
}

sim_chain_fn *sim_uop_chain(enum sim_path path, unsigned op, unsigned elem)
{
	return op < UOP_CODES && elem < UOP_TYPES ? chains[path][op].fn[elem] : NULL;
}

sim_pick_fn *sim_uop_pick(enum sim_path path, unsigned op, unsigned elem, unsigned where_bytes)
{
	if ((op != UOP_MIN && op != UOP_MAX) || elem >= UOP_TYPES ||
	    (where_bytes != 4 && where_bytes != 8))
		return NULL;
	return picks[path][op == UOP_MAX].fn[elem][where_bytes == 8];
}

sim_pick_short_fn *sim_uop_pick_short(enum sim_path path, unsigned op, unsigned elem)
{
	if (path != SIM_AVX512 || (op != UOP_MIN && op != UOP_MAX) || elem >= UOP_TYPES)
		return NULL;
	return sim_uop_pick_short_avx512[op == UOP_MAX].fn[elem];
}

/* The largest (or smallest) value of an integer type. */
static uint64_t integer_bound(unsigned elem, bool largest)
{
	unsigned bits = elem_bits(elem);
	uint64_t ones = bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
	uint64_t top = (uint64_t)1 << (bits - 1);

	if (elem_class(elem) != ELEM_CLASS_SINT)
		return largest ? ones : 0;
	return largest ? ones ^ top : top;
}

static void float_identity(unsigned op, unsigned elem, void *out)
{
	double x = op == UOP_MUL ? 1 : op == UOP_MIN ? INFINITY :
		op == UOP_MAX ? -INFINITY : 0;
	/* the bound of the lexicographic order has both parts infinite */
	double y = op == UOP_MUL ? 0 : x;
	float f[2] = { (float)x, (float)y };
	double d[2] = { x, y };

	if (elem == ELEM_F32 || elem == ELEM_C64)
		memcpy(out, f, elem_bytes(elem));
	else
		memcpy(out, d, elem_bytes(elem));
}

void sim_uop_identity(unsigned op, unsigned elem, void *out)
{
	uint64_t x;

	if (elem_class(elem) == ELEM_CLASS_FLOAT ||
	    elem_class(elem) == ELEM_CLASS_COMPLEX) {
		float_identity(op, elem, out);
		return;
	}
	switch (op) {
	case UOP_MUL:
		x = 1;
		break;
	case UOP_MIN:
		x = integer_bound(elem, true);
		break;
	case UOP_MAX:
		x = integer_bound(elem, false);
		break;
	case UOP_AND:
		x = elem == ELEM_PRED ? 1 : UINT64_MAX;
		break;
	default:
		x = 0;
		break;
	}
	memcpy(out, &x, elem_bytes(elem));
}
