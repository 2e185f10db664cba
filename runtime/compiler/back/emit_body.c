/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From elementwise ops to uops.
 *
 * Types that the vector unit only stores (f16, bf16, the f8 family, 2- and 4-bit
 * integers) are widened before an op computes and narrowed after it, so every value
 * is rounded where the IR says that it has the narrow type.
 */
#include <math.h>
#include <string.h>

#include "runtime/compiler/back/emit.h"
#include "runtime/compiler/opt/fuse.h"

static void full(struct body *b)
{
	tc_refuse(b->e, "it needs more values at a point than one instruction holds");
}

uint8_t tc_body_uop(struct body *b, struct isa_uop u, unsigned result)
{
	unsigned first = b->n_pre + b->n_in, value = first + b->n_uop;

	/* Asked for again and again: numbers, conversions, places. */
	for (unsigned i = 0; i < b->n_uop; i++)
		if (!memcmp(&b->uops[i], &u, sizeof(u)))
			return (uint8_t)(first + i);
	if (value >= ISA_MAX_VALUES)
		full(b);
	b->uops[b->n_uop++] = u;
	b->elems[value] = (uint8_t)result;
	return (uint8_t)value;
}

uint8_t tc_body_convert(struct body *b, uint8_t value, unsigned elem)
{
	unsigned from = b->elems[value];

	if (from == elem)
		return value;
	return tc_body_uop(b, (struct isa_uop){ .op = UOP_CVT, .elem = (uint8_t)from,
						.to = (uint8_t)elem, .a = value }, elem);
}

uint8_t tc_body_imm(struct body *b, unsigned elem, const void *element)
{
	struct isa_uop u = { .op = UOP_IMM, .elem = (uint8_t)elem };
	uint8_t re, im;

	if (elem == ELEM_C128) {
		re = tc_body_imm(b, ELEM_F64, element);
		im = tc_body_imm(b, ELEM_F64, (const char *)element + 8);
		return tc_body_uop(b, (struct isa_uop){ .op = UOP_COMPLEX, .elem = ELEM_F64,
			.to = ELEM_C128, .a = re, .b = im }, ELEM_C128);
	}
	memcpy(&u.imm, element, elem_bytes(elem));
	return tc_body_uop(b, u, elem);
}

int tc_body_find(const struct body *b, const struct tc_value *v)
{
	for (unsigned i = 0; i < b->n_known; i++)
		if (b->known[i].v == v)
			return b->known[i].value;
	return -1;
}

void tc_body_know(struct body *b, const struct tc_value *v, uint8_t value)
{
	if (b->n_known == ISA_MAX_VALUES * 2)
		full(b);
	b->known[b->n_known].v = v;
	b->known[b->n_known++].value = value;
}

uint8_t tc_body_iota(struct body *b, unsigned dim, unsigned elem, int64_t first, int64_t end)
{
	/* Integers of less than a byte wrap, as conversions from floats do not. */
	unsigned work = elem_class(elem) == ELEM_CLASS_COMPLEX ? ELEM_F32 : tc_computing(elem);
	/* A float is rounded once. */
	unsigned counts = !first || elem_class(work) != ELEM_CLASS_FLOAT ? work :
			  end <= INT32_MAX ? ELEM_S32 : ELEM_S64;
	uint8_t r = tc_body_uop(b, (struct isa_uop){ .op = UOP_IOTA, .elem = (uint8_t)counts,
		.aux = (uint8_t)dim }, counts);

	if (first)
		r = tc_body_uop(b, (struct isa_uop){ .op = UOP_ADD, .elem = (uint8_t)counts,
			.a = r, .b = tc_body_imm(b, counts, &first) }, counts);
	return tc_body_convert(b, tc_body_convert(b, r, work), elem);
}

static uint8_t operand(struct body *b, const struct tc_value *v)
{
	const void *element = tc_splat_element(v);
	int known = tc_body_find(b, v);

	if (known >= 0)
		return (uint8_t)known;
	if (!element)
		tc_refuse(b->e, "a body uses a value from outside");
	return tc_body_imm(b, v->type->elem, element);
}

/* Plain ops: the uop by the op. */
static int plain_uop(unsigned op)
{
	switch (op) {
	case TC_ABS: return UOP_ABS;
	case TC_CBRT: return UOP_CBRT;
	case TC_CEIL: return UOP_CEIL;
	case TC_COSINE: return UOP_COS;
	case TC_COUNT_LEADING_ZEROS: return UOP_CLZ;
	case TC_ERF: return UOP_ERF;
	case TC_EXPONENTIAL: return UOP_EXP;
	case TC_EXPONENTIAL_MINUS_ONE: return UOP_EXPM1;
	case TC_FLOOR: return UOP_FLOOR;
	case TC_IMAG: return UOP_IMAG;
	case TC_IS_FINITE: return UOP_ISFIN;
	case TC_LOG: return UOP_LOG;
	case TC_LOG_PLUS_ONE: return UOP_LOG1P;
	case TC_LOGISTIC: return UOP_LOGISTIC;
	case TC_NEGATE: return UOP_NEG;
	case TC_NOT: return UOP_NOT;
	case TC_POPCNT: return UOP_POPC;
	case TC_REAL: return UOP_REAL;
	case TC_ROUND_NEAREST_AFZ: return UOP_RAFZ;
	case TC_ROUND_NEAREST_EVEN: return UOP_RNE;
	case TC_RSQRT: return UOP_RSQRT;
	case TC_SIGN: return UOP_SIGN;
	case TC_SINE: return UOP_SIN;
	case TC_SQRT: return UOP_SQRT;
	case TC_TAN: return UOP_TAN;
	case TC_TANH: return UOP_TANH;
	case TC_ADD: return UOP_ADD;
	case TC_AND: return UOP_AND;
	case TC_ATAN2: return UOP_ATAN2;
	case TC_DIVIDE: return UOP_DIV;
	case TC_MAXIMUM: return UOP_MAX;
	case TC_MINIMUM: return UOP_MIN;
	case TC_MULTIPLY: return UOP_MUL;
	case TC_OR: return UOP_OR;
	case TC_POWER: return UOP_POW;
	case TC_REMAINDER: return UOP_REM;
	case TC_SHIFT_LEFT: return UOP_SHL;
	case TC_SHIFT_RIGHT_ARITHMETIC: return UOP_SAR;
	case TC_SHIFT_RIGHT_LOGICAL: return UOP_SHR;
	case TC_SUBTRACT: return UOP_SUB;
	case TC_XOR: return UOP_XOR;
	case TC_CLAMP: return UOP_CLAMP;
	default: return -1;
	}
}

static bool is_transcendental(unsigned uop)
{
	return (uop >= UOP_CBRT && uop <= UOP_ERF) || uop == UOP_POW || uop == UOP_ATAN2;
}

static void count_elements(struct emit *e, const struct tc_op *op, bool is_transcendental)
{
	double n = (double)op->results[0].type->count;

	*(is_transcendental ? &e->transcendentals : &e->flops) += n;
	e->cost_ns += n * (is_transcendental ? 0.6 : 0.06);
}

static uint8_t compare(struct body *b, const struct tc_op *op, uint8_t x, uint8_t y,
		       unsigned elem)
{
	static const uint8_t plain[] = { UOP_EQ, UOP_NE, UOP_GE, UOP_GT, UOP_LE, UOP_LT };
	int64_t dir = tc_attr_int(op, "comparison_direction", 0);
	bool total = tc_attr_int(op, "compare_type", 0) == TC_CMP_TOTALORDER &&
		     elem_class(elem) == ELEM_CLASS_FLOAT;
	struct isa_uop u = { .elem = (uint8_t)elem, .a = x, .b = y };
	uint8_t r;

	if (!total) {
		u.op = plain[dir];
		return tc_body_uop(b, u, ELEM_PRED);
	}
	u.op = dir == TC_CMP_EQ || dir == TC_CMP_NE ? UOP_TEQ :
	       dir == TC_CMP_LT || dir == TC_CMP_GT ? UOP_TLT : UOP_TLE;
	if (dir == TC_CMP_GT || dir == TC_CMP_GE) {
		u.a = y;
		u.b = x;
	}
	r = tc_body_uop(b, u, ELEM_PRED);
	if (dir == TC_CMP_NE)
		r = tc_body_uop(b, (struct isa_uop){ .op = UOP_NOT, .elem = ELEM_PRED,
						     .a = r }, ELEM_PRED);
	return r;
}

static uint8_t of_two(struct body *b, unsigned uop, unsigned elem, uint8_t x, uint8_t y)
{
	return tc_body_uop(b, (struct isa_uop){ .op = (uint8_t)uop, .elem = (uint8_t)elem,
						.a = x, .b = y }, elem);
}

/*
 * Such an op on 2 or 4 bits, which lie in the upper bits of a byte meanwhile: what follows
 * them are zeros, and their sign is the byte's.
 */
static uint8_t narrow_bits(struct body *b, const struct tc_op *op, const uint8_t *arg,
			   unsigned elem)
{
	bool is_signed = op->op == TC_SHIFT_RIGHT_ARITHMETIC;
	unsigned work = is_signed ? ELEM_S8 : ELEM_U8, bits = elem_bits(elem);
	uint8_t n = (uint8_t)(8 - bits), most = (uint8_t)bits, room, width, x, by;

	room = tc_body_imm(b, work, &n);
	x = of_two(b, UOP_SHL, work, tc_body_convert(b, arg[0], work), room);
	switch (op->op) {
	case TC_POPCNT:
	case TC_COUNT_LEADING_ZEROS:
		x = tc_body_uop(b, (struct isa_uop){ .op = op->op == TC_POPCNT ? UOP_POPC :
			UOP_CLZ, .elem = (uint8_t)work, .a = x }, work);
		width = tc_body_imm(b, work, &most);
		x = of_two(b, UOP_MIN, work, x, width);
		break;
	default:
		/* a negative distance is a large one, as it is unsigned */
		by = tc_body_convert(b, arg[1], work);
		x = of_two(b, is_signed ? UOP_SAR : UOP_SHR, work, x, by);
		x = of_two(b, is_signed ? UOP_SAR : UOP_SHR, work, x, room);
		break;
	}
	return tc_body_convert(b, x, elem);
}

static uint8_t number(struct body *b, float f)
{
	return tc_body_imm(b, ELEM_F32, &f);
}

/*
 * f16 to fewer bits of mantissa, computed in f32, where its subnormal numbers are normal: these
 * keep the bits that the larger ones keep by position. A sum whose last bit is that position
 * rounds so.
 */
static uint8_t fewer_bits_of_f16(struct body *b, uint8_t x, uint8_t normal, unsigned mantissa)
{
	float least = 0x1p-14f, large = ldexpf(1.5f, 9 - (int)mantissa);
	uint8_t size = tc_body_uop(b, (struct isa_uop){ .op = UOP_ABS, .elem = ELEM_F32, .a = x },
				   ELEM_F32);
	uint8_t sign = tc_body_uop(b, (struct isa_uop){ .op = UOP_SIGN, .elem = ELEM_F32, .a = x },
				   ELEM_F32);
	uint8_t is_small = tc_body_uop(b, (struct isa_uop){ .op = UOP_LT, .elem = ELEM_F32,
				       .a = size, .b = number(b, least) }, ELEM_PRED);
	uint8_t by = number(b, large), rounded;

	rounded = of_two(b, UOP_ADD, ELEM_F32, size, by);
	rounded = of_two(b, UOP_SUB, ELEM_F32, rounded, by);
	rounded = of_two(b, UOP_MUL, ELEM_F32, rounded, sign);
	return tc_body_uop(b, (struct isa_uop){ .op = UOP_SELECT, .elem = ELEM_F32, .a = is_small,
						.b = rounded, .c = normal }, ELEM_F32);
}

/* x is the operand as the type `work` that is computed in, as is the result. */
static uint8_t reduce_precision(struct body *b, const struct tc_op *op, uint8_t x, unsigned in,
				unsigned work)
{
	int64_t exponent = tc_attr_int(op, "exponent_bits", 8);
	int64_t mantissa = tc_attr_int(op, "mantissa_bits", 23);
	int64_t most = work == ELEM_F64 ? 11 : 8;
	bool is_narrow = work == ELEM_F32 && in != ELEM_F32 && in != ELEM_BF16;
	bool keeps_range = is_narrow && exponent >= 5;
	struct isa_uop u = { .op = UOP_RDPREC, .elem = (uint8_t)work, .a = x };
	uint8_t r;

	/* Narrow types are reduced as the f16 that they equal, whose range has 5 bits, and
	 * f8E8M0FNU as f32, whose range has 8. More bits than a type has change nothing. */
	if (keeps_range || (in == ELEM_F8E8M0FNU && exponent >= 8 && mantissa))
		exponent = most;
	else if (in == ELEM_F8E8M0FNU)
		most = 8;
	if (keeps_range && mantissa >= 10)
		return x;
	u.aux = (uint8_t)(exponent < most ? exponent : most);
	u.imm = (uint64_t)(mantissa < 52 ? mantissa : 52);
	r = tc_body_uop(b, u, work);
	return keeps_range ? fewer_bits_of_f16(b, x, r, (unsigned)mantissa) : r;
}

void tc_body_op(struct body *b, const struct tc_op *op)
{
	unsigned to = op->results[0].type->elem, in = op->n_operands ?
		tc_in(op, op->op == TC_SELECT ? 1 : 0)->type->elem : to;
	unsigned work = tc_works_in(op), result;
	uint8_t arg[3] = { 0 }, r;
	struct isa_uop u = { 0 };
	int code;

	if (op->op == TC_SELECT || op->op == TC_COMPARE)
		b->e->flops += (double)op->results[0].type->count;
	if (op->op == TC_SELECT) {
		for (unsigned i = 0; i < 3; i++)
			arg[i] = operand(b, tc_in(op, i));
		r = tc_body_uop(b, (struct isa_uop){ .op = UOP_SELECT, .elem = (uint8_t)in,
			.a = arg[0], .b = arg[1], .c = arg[2] }, in);
		tc_body_know(b, tc_out(op, 0), r);
		return;
	}
	if (op->op == TC_BITCAST_CONVERT) {
		r = tc_body_uop(b, (struct isa_uop){ .op = UOP_BITCAST, .elem = (uint8_t)in,
			.to = (uint8_t)to, .a = operand(b, tc_in(op, 0)) }, to);
		tc_body_know(b, tc_out(op, 0), r);
		return;
	}
	if (op->op == TC_CONVERT) {
		r = tc_body_convert(b, operand(b, tc_in(op, 0)), to);
		tc_body_know(b, tc_out(op, 0), r);
		return;
	}
	for (unsigned i = 0; i < op->n_operands && i < 3; i++)
		arg[i] = tc_body_convert(b, operand(b, tc_in(op, i)), work);
	if (tc_is_about_width(op)) {
		tc_body_know(b, tc_out(op, 0), narrow_bits(b, op, arg, in));
		return;
	}
	if (op->op == TC_COMPARE) {
		tc_body_know(b, tc_out(op, 0), compare(b, op, arg[0], arg[1], work));
		return;
	}
	if (op->op == TC_REDUCE_PRECISION) {
		count_elements(b->e, op, false);
		r = reduce_precision(b, op, arg[0], in, work);
		tc_body_know(b, tc_out(op, 0), tc_body_convert(b, r, to));
		return;
	}
	u = (struct isa_uop){ .elem = (uint8_t)work, .a = arg[0], .b = arg[1], .c = arg[2] };
	if (op->op == TC_COMPLEX) {
		u.op = UOP_COMPLEX;
		u.to = (uint8_t)to;
	} else {
		code = plain_uop(op->op);
		if (code < 0)
			tc_refuse(b->e, "it has no vector operation");
		u.op = (uint8_t)code;
		/* Saturating to its own range changes nothing for integers. */
		if ((code == UOP_FLOOR || code == UOP_CEIL || code == UOP_RNE ||
		     code == UOP_RAFZ) && elem_class(work) != ELEM_CLASS_FLOAT) {
			tc_body_know(b, tc_out(op, 0), arg[0]);
			return;
		}
	}
	result = isa_uop_result(&u);
	if (result == ELEM_INVALID)
		tc_refuse(b->e, "the vector unit does not do it on this element type");
	count_elements(b->e, op, is_transcendental(u.op));
	r = tc_body_convert(b, tc_body_uop(b, u, result), to);
	tc_body_know(b, tc_out(op, 0), r);
}

void tc_count_arrays(struct emit *e, const struct tc_op *op)
{
	for (unsigned i = 0; i < op->n_operands; i++)
		e->bytes += (double)tc_in(op, i)->type->bytes;
	for (unsigned i = 0; i < op->n_results; i++)
		e->bytes += (double)op->results[i].type->bytes;
}

void tc_body_region(struct body *b, const struct tc_block *block, double times)
{
	double flops = b->e->flops, transcendentals = b->e->transcendentals;

	for (const struct tc_op *op = block->first; op != block->last; op = op->next) {
		const struct tc_value *in = op->n_operands ? tc_in(op, 0) : NULL;
		bool is_known;

		if (op->op == TC_CONSTANT)
			continue;
		if ((op->op == TC_RESHAPE || op->op == TC_BROADCAST_IN_DIM) &&
		    op->results[0].type->count == 1) {
			tc_body_know(b, tc_out(op, 0), operand(b, in));
			continue;
		}
		/* Numbers of one size: what joins the bits of several is no scalar's work. */
		is_known = tc_has_trait(op, 'e') ||
			   (op->op == TC_BITCAST_CONVERT && !in->type->rank);
		if (!is_known || op->results[0].type->rank)
			tc_fail(b->e->c, ERR_UNIMPLEMENTED, op, "it does not run in the body "
				"of %s yet", tc_op_info(b->e->op->op)->text);
		tc_body_op(b, op);
	}
	b->e->flops = flops + (b->e->flops - flops) * times;
	b->e->transcendentals = transcendentals +
				(b->e->transcendentals - transcendentals) * times;
}

void *tc_put_body(struct emit *e, enum isa_opcode op, size_t head, size_t body_offset,
		  const struct body *b, unsigned rank, const int64_t *dim)
{
	size_t operands = (b->n_in + b->n_out) * sizeof(struct isa_operand);
	size_t uops = b->n_uop * sizeof(struct isa_uop);
	char *insn = tc_put(e, op, head + operands + uops);
	struct isa_body *body = (void *)(insn + body_offset);

	body->rank = (uint8_t)rank;
	body->n_in = (uint8_t)b->n_in;
	body->n_out = (uint8_t)b->n_out;
	body->n_uop = (uint16_t)b->n_uop;
	for (unsigned d = 0; d < ISA_MAX_RANK; d++)
		body->dim[d] = d < rank ? dim[d] : 1;
	memcpy(insn + head, b->in, b->n_in * sizeof(*b->in));
	memcpy(insn + head + b->n_in * sizeof(*b->in), b->out, b->n_out * sizeof(*b->out));
	memcpy(insn + head + operands, b->uops, uops);
	return insn;
}
