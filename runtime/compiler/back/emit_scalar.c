/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A body at one point, on integers, by the scalar unit: a loop's counter and its condition are
 * a load, a number or two, and a store, which is less than what a tensor instruction takes to
 * start.
 *
 * A register holds a value extended as LD extends it, or one whose low bits are right (is_wide):
 * sums, products and logic need no more, and a store cuts. What looks at the bits above them
 * has them extended first.
 */
#include "runtime/compiler/back/emit.h"

enum { MOST = 12 };	/* instructions, about what a VEC of one point is worth */

struct unit {
	struct emit *e;
	const struct body *b;
	uint8_t reg[ISA_MAX_VALUES];	/* 0: not in one yet */
	bool is_wide[ISA_MAX_VALUES];
};

/* What becomes of a uop; ISA_ALU_COUNT: something of its own. */
struct rule {
	uint8_t uop, fn;
	bool takes_wide;
	uint8_t cost;		/* instructions, at most */
};

static const struct rule rules[] = {
	{ UOP_IMM, ISA_ALU_COUNT, true, 1 }, { UOP_IOTA, ISA_ALU_COUNT, true, 1 },
	{ UOP_CVT, ISA_ALU_COUNT, false, 2 }, { UOP_SELECT, ISA_ALU_COUNT, true, 3 },
	{ UOP_NOT, ISA_ALU_COUNT, true, 1 }, { UOP_NEG, ISA_ALU_COUNT, true, 1 },
	{ UOP_GT, ISA_ALU_LT, false, 2 }, { UOP_GE, ISA_ALU_LE, false, 2 },
	{ UOP_ADD, ISA_ALU_ADD, true, 1 }, { UOP_SUB, ISA_ALU_SUB, true, 1 },
	{ UOP_MUL, ISA_ALU_MUL, true, 1 }, { UOP_AND, ISA_ALU_AND, true, 1 },
	{ UOP_OR, ISA_ALU_OR, true, 1 }, { UOP_XOR, ISA_ALU_XOR, true, 1 },
	{ UOP_MIN, ISA_ALU_MIN, false, 2 }, { UOP_MAX, ISA_ALU_MAX, false, 2 },
	{ UOP_DIV, ISA_ALU_DIV, false, 3 }, { UOP_REM, ISA_ALU_REM, false, 3 },
	{ UOP_EQ, ISA_ALU_EQ, false, 2 }, { UOP_NE, ISA_ALU_NE, false, 2 },
	{ UOP_LT, ISA_ALU_LT, false, 2 }, { UOP_LE, ISA_ALU_LE, false, 2 },
};

static const struct rule *rule_of(unsigned uop)
{
	for (unsigned i = 0; i < sizeof(rules) / sizeof(*rules); i++)
		if (rules[i].uop == uop)
			return &rules[i];
	return NULL;
}

/* Types whose numbers are the same in a register of 64 signed bits. */
static bool fits(unsigned elem)
{
	switch (elem) {
	case ELEM_PRED: case ELEM_S8: case ELEM_S16: case ELEM_S32: case ELEM_S64:
	case ELEM_U8: case ELEM_U16: case ELEM_U32:
		return true;
	default:
		return false;
	}
}

static bool can(const struct body *b)
{
	unsigned cost = b->n_in + b->n_out;

	for (unsigned i = 0; i < b->n_in; i++)
		if (!fits(b->in[i].elem))
			return false;
	for (unsigned i = 0; i < b->n_uop; i++) {
		const struct isa_uop *u = &b->uops[i];
		const struct rule *rule = rule_of(u->op);

		if (!rule || !fits(u->elem) || (u->op == UOP_CVT && !fits(u->to)))
			return false;
		/* or and and, there */
		if (u->elem == ELEM_PRED && (u->op == UOP_ADD || u->op == UOP_MUL))
			return false;
		cost += rule->cost;
	}
	for (unsigned i = 0; i < b->n_out; i++)
		if (b->out[i].combine != ISA_STORE || !fits(b->out[i].elem))
			return false;
	return cost <= MOST;
}

static uint8_t put(struct unit *s, unsigned fn, uint8_t ra, uint8_t rb)
{
	uint8_t rd = tc_reg(s->e);

	tc_put_scalar(s->e, (struct isa_scalar){ .fn = (uint8_t)fn, .rd = rd, .ra = ra,
						 .rb = rb }, ISA_ALU);
	return rd;
}

static uint8_t put_imm(struct unit *s, unsigned fn, uint8_t ra, int64_t imm)
{
	uint8_t rd = tc_reg(s->e);

	tc_put_scalar(s->e, (struct isa_scalar){ .fn = (uint8_t)fn, .rd = rd, .ra = ra,
						 .imm = imm }, ISA_ALUI);
	return rd;
}

/* A register's low bits as a number of `elem`. */
static uint8_t extend(struct unit *s, uint8_t r, unsigned elem)
{
	unsigned bits = elem_bytes(elem) * 8;

	if (bits == 64)
		return r;
	if (elem_class(elem) != ELEM_CLASS_SINT)
		return put_imm(s, ISA_ALU_AND, r, (INT64_C(1) << bits) - 1);
	r = put_imm(s, ISA_ALU_SHL, r, 64 - bits);
	return put_imm(s, ISA_ALU_SAR, r, 64 - bits);
}

static const struct isa_uop *imm_of(const struct unit *s, unsigned v)
{
	const struct body *b = s->b;
	const struct isa_uop *u = v < b->n_in ? NULL : &b->uops[v - b->n_in];

	return u && u->op == UOP_IMM ? u : NULL;
}

static int64_t number(const struct isa_uop *imm)
{
	unsigned bits = elem_bytes(imm->elem) * 8;

	if (elem_class(imm->elem) == ELEM_CLASS_SINT && bits < 64)
		return (int64_t)(imm->imm << (64 - bits)) >> (64 - bits);
	return imm->elem == ELEM_PRED ? (imm->imm & 0xff) != 0 : (int64_t)imm->imm;
}

/* The register of value v. */
static uint8_t get(struct unit *s, unsigned v, bool takes_wide)
{
	const struct isa_uop *imm = imm_of(s, v);

	if (!s->reg[v] && imm) {
		s->reg[v] = tc_reg(s->e);
		tc_put_scalar(s->e, (struct isa_scalar){ .rd = s->reg[v], .imm = number(imm) },
			      ISA_LI);
	}
	if (s->is_wide[v] && !takes_wide) {
		s->reg[v] = extend(s, s->reg[v], s->b->elems[v]);
		s->is_wide[v] = false;
	}
	return s->reg[v];
}

/* fn of two values; numbers go into the instruction. */
static uint8_t apply(struct unit *s, const struct rule *rule, unsigned a, unsigned b)
{
	const struct isa_uop *imm = imm_of(s, b);
	uint8_t ra = get(s, a, rule->takes_wide);

	if (imm)
		return put_imm(s, rule->fn, ra, number(imm));
	return put(s, rule->fn, ra, get(s, b, rule->takes_wide));
}

static void convert(struct unit *s, const struct isa_uop *u, unsigned v)
{
	uint8_t r = get(s, u->a, false);

	s->is_wide[v] = u->to != ELEM_PRED;
	s->reg[v] = u->to == ELEM_PRED ? put_imm(s, ISA_ALU_NE, r, 0) : r;
}

static void run_uop(struct unit *s, const struct isa_uop *u, unsigned v)
{
	const struct rule *rule = rule_of(u->op);

	switch (u->op) {
	case UOP_IMM:
		return;
	case UOP_IOTA:
		s->reg[v] = put(s, ISA_ALU_ADD, 0, 0);
		return;
	case UOP_CVT:
		convert(s, u, v);
		return;
	case UOP_NEG:
		s->reg[v] = put(s, ISA_ALU_SUB, 0, get(s, u->a, true));
		s->is_wide[v] = true;
		return;
	case UOP_NOT:
		s->reg[v] = put_imm(s, ISA_ALU_XOR, get(s, u->a, true),
				    u->elem == ELEM_PRED ? 1 : -1);
		s->is_wide[v] = u->elem != ELEM_PRED;
		return;
	case UOP_SELECT:	/* c + a * (b - c) */
		s->reg[v] = put(s, ISA_ALU_SUB, get(s, u->b, true), get(s, u->c, true));
		s->reg[v] = put(s, ISA_ALU_MUL, s->reg[v], get(s, u->a, true));
		s->reg[v] = put(s, ISA_ALU_ADD, s->reg[v], get(s, u->c, true));
		s->is_wide[v] = true;
		return;
	case UOP_GT:
	case UOP_GE:
		s->reg[v] = apply(s, rule, u->b, u->a);
		return;
	default:
		s->reg[v] = apply(s, rule, u->a, u->b);
		/* Sums and products leave the range, and quotients do, of the smallest number
		 * and -1, and by zero; logic of what is wide is. */
		s->is_wide[v] = s->b->elems[v] != ELEM_PRED &&
				(rule->takes_wide || u->op == UOP_DIV);
		return;
	}
}

bool tc_put_scalars(struct emit *e, const struct body *b)
{
	struct unit s = { .e = e, .b = b };

	if (b->n_pre || !can(b))
		return false;
	for (unsigned i = 0; i < b->n_in; i++) {
		s.reg[i] = tc_reg(e);
		tc_put_scalar(e, (struct isa_scalar){ .rd = s.reg[i], .ra = b->in[i].reg,
			.elem = b->in[i].elem, .binding = b->in[i].binding,
			.imm = b->in[i].offset }, ISA_LD);
	}
	for (unsigned i = 0; i < b->n_uop; i++)
		run_uop(&s, &b->uops[i], b->n_in + i);
	for (unsigned i = 0; i < b->n_out; i++)
		tc_put_scalar(e, (struct isa_scalar){ .ra = b->out[i].reg,
			.rb = get(&s, b->out[i].value, true), .elem = b->out[i].elem,
			.binding = b->out[i].binding, .imm = b->out[i].offset }, ISA_ST);
	return true;
}
