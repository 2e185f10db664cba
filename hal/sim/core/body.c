/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bodies: the uops that a tensor instruction runs at each point.
 *
 * The one idea: a tile of points at a time. Each uop is one call of a kernel over
 * dense arrays that stay in the L1 and L2 caches, so the cost of choosing what to do
 * is paid once for a thousand points. sim_body_prepare() checks the uops (they are
 * hostile), picks kernels and gives values their buffers by liveness; body_run.c walks the
 * steps. Where values come from and go to in memory is body_tile.c's business.
 */
#include "hal/sim/core/body_plan.h"

#include <assert.h>
#include <string.h>

/* ---- prepare: checking ---- */

struct checker {
	struct sim_load *load;
	const struct isa_body *body;
	unsigned n_pre, n_values;	/* values so far */
	uint8_t elem[ISA_MAX_VALUES];
	bool row[ISA_MAX_VALUES];	/* a row value by the rules of isa.h */
	bool constant[ISA_MAX_VALUES];	/* IMM, SREG: row values of any use */
};

static bool is_fold(unsigned op)
{
	return op >= UOP_RADD && op <= UOP_RXOR;
}

/* The two-argument uop that an R* uop repeats. */
static unsigned uop_of_fold(unsigned op)
{
	static const uint8_t uop[] = {
		UOP_ADD, UOP_MUL, UOP_MIN, UOP_MAX, UOP_AND, UOP_OR, UOP_XOR,
	};

	return uop[op - UOP_RADD];
}

static int check_args(struct checker *c, unsigned i, const struct isa_uop *u)
{
	const struct isa_uop_info *info = isa_uop_info(u->op);
	const uint8_t arg[3] = { u->a, u->b, u->c };

	for (unsigned k = 0; k < 3; k++) {
		unsigned want = u->op == UOP_SELECT && k == 0 ? ELEM_PRED : u->elem;

		if (k >= info->n_args && arg[k])
			return sim_refuse(c->load, HW_ST_BAD_PROGRAM,
				"uop %u (%s) takes %u arguments, but names value %u in the next",
				i, info->mnemonic, info->n_args, arg[k]);
		if (k >= info->n_args)
			continue;
		if (arg[k] >= c->n_values)
			return sim_refuse(c->load, HW_ST_BAD_PROGRAM,
				"uop %u (%s) uses value %u; only %u are there before it",
				i, info->mnemonic, arg[k], c->n_values);
		if (c->elem[arg[k]] != want)
			return sim_refuse(c->load, HW_ST_BAD_PROGRAM,
				"uop %u (%s) wants %s, value %u is %s", i, info->mnemonic,
				elem_text(want), arg[k], elem_text(c->elem[arg[k]]));
	}
	return 0;
}

/* The fields that only some uops have. */
static int check_fields(struct checker *c, unsigned i, const struct isa_uop *u)
{
	const char *name = isa_uop_info(u->op)->mnemonic;
	unsigned most = u->elem == ELEM_F64 ? 11 : 8;
	bool has_aux = u->op == UOP_IOTA || u->op == UOP_SREG || u->op == UOP_RDPREC;

	if (u->zero || (!has_aux && u->aux) ||
	    (u->op != UOP_IMM && u->op != UOP_RDPREC && u->imm) ||
	    (isa_uop_info(u->op)->result != 'T' && u->to))
		return sim_refuse(c->load, HW_ST_BAD_PROGRAM,
			"uop %u (%s): a field that it has no use for is not 0", i, name);
	if (u->op == UOP_IMM && u->elem == ELEM_C128)
		return sim_refuse(c->load, HW_ST_BAD_PROGRAM,
			"uop %u: imm has no room for complex<f64>; join two f64", i);
	if (u->op == UOP_IOTA && u->aux >= c->body->rank)
		return sim_refuse(c->load, HW_ST_BAD_PROGRAM,
			"uop %u: iota over dim %u of %u", i, u->aux, c->body->rank);
	if (u->op == UOP_SREG && u->aux >= ISA_N_REG)
		return sim_refuse(c->load, HW_ST_BAD_PROGRAM,
			"uop %u: sreg %u, registers are 0..%u", i, u->aux, ISA_N_REG - 1);
	if (u->op == UOP_RDPREC && (u->aux < 1 || u->aux > most || u->imm > 52))
		return sim_refuse(c->load, HW_ST_BAD_PROGRAM,
			"uop %u: rdprec to %u exponent bits (1..%u), %llu mantissa bits (0..52)",
			i, u->aux, most, (unsigned long long)u->imm);
	if (u->op == UOP_BITCAST && elem_bits(u->elem) != elem_bits(u->to))
		return sim_refuse(c->load, HW_ST_BAD_PROGRAM,
			"uop %u: bitcast of %s to %s, which has another size", i,
			elem_text(u->elem), elem_text(u->to));
	if (u->op == UOP_COMPLEX &&
	    u->to != (u->elem == ELEM_F32 ? ELEM_C64 : ELEM_C128))
		return sim_refuse(c->load, HW_ST_BAD_PROGRAM,
			"uop %u: complex of two %s is not %s", i, elem_text(u->elem),
			elem_text(u->to));
	return 0;
}

/* Row rules; sets whether the result is a row value. */
static int check_rows(struct checker *c, unsigned i, const struct isa_uop *u,
		      bool *row, bool *constant)
{
	const uint8_t arg[3] = { u->a, u->b, u->c };
	unsigned n_args = isa_uop_info(u->op)->n_args;
	unsigned outer = c->body->rank - c->body->row_rank;

	*constant = u->op == UOP_IMM || u->op == UOP_SREG;
	*row = *constant || (u->op == UOP_IOTA && u->aux < outer);
	if (is_fold(u->op)) {
		if (!c->body->row_rank || c->row[u->a])
			return sim_refuse(c->load, HW_ST_BAD_PROGRAM,
				"uop %u (%s) folds rows, but %s", i,
				isa_uop_info(u->op)->mnemonic, c->body->row_rank ?
				"its argument is a row value" : "row_rank is 0");
		*row = true;
		return 0;
	}
	if (!n_args)
		return 0;
	*row = true;
	*constant = true;
	for (unsigned k = 0; k < n_args; k++) {
		*row &= c->row[arg[k]];
		*constant &= c->constant[arg[k]];
	}
	return 0;
}

static int check_uop(struct checker *c, unsigned i, const struct isa_uop *u)
{
	enum elem result;
	bool row, constant;
	int ret;

	if (!isa_uop_info(u->op)->mnemonic)
		return sim_refuse(c->load, HW_ST_BAD_PROGRAM,
				  "uop %u: there is no uop 0x%x", i, u->op);
	if (!elem_valid(u->elem) || !elem_bytes(u->elem))
		return sim_refuse(c->load, HW_ST_BAD_PROGRAM,
				  "uop %u: there is no element type %u", i, u->elem);
	result = isa_uop_result(u);
	if (result == ELEM_INVALID)
		return sim_refuse(c->load, HW_ST_BAD_PROGRAM,
			"uop %u (%s) is not for %s%s%s", i, isa_uop_info(u->op)->mnemonic,
			elem_text(u->elem), u->to ? " to " : "",
			u->to ? elem_text(u->to) : "");
	ret = check_fields(c, i, u);
	if (!ret)
		ret = check_args(c, i, u);
	if (!ret)
		ret = check_rows(c, i, u, &row, &constant);
	if (ret)
		return ret;
	c->elem[c->n_values] = (uint8_t)result;
	c->row[c->n_values] = row;
	c->constant[c->n_values] = constant;
	c->n_values++;
	return 0;
}

static int check_shape(struct checker *c)
{
	const struct isa_body *body = c->body;
	int64_t row = 1;

	if (body->rank > ISA_MAX_RANK || body->row_rank > body->rank)
		return sim_refuse(c->load, HW_ST_BAD_PROGRAM,
			"rank %u, rows of rank %u; ranks are at most %d",
			body->rank, body->row_rank, ISA_MAX_RANK);
	if (body->n_in > ISA_MAX_IN || body->n_out > ISA_MAX_OUT ||
	    c->n_pre + body->n_in + body->n_uop > ISA_MAX_VALUES)
		return sim_refuse(c->load, HW_ST_BAD_PROGRAM,
			"%u inputs, %u outputs, %u uops: at most %d, %d, and %d values in all",
			body->n_in, body->n_out, body->n_uop, ISA_MAX_IN,
			ISA_MAX_OUT, ISA_MAX_VALUES);
	for (unsigned d = body->rank - body->row_rank; d < body->rank; d++)
		if (body->dim[d] < 0 ||
		    __builtin_mul_overflow(row, body->dim[d], &row))
			row = INT64_MAX;
	if (body->row_rank && row > ISA_MAX_ROW)
		return sim_refuse(c->load, HW_ST_BAD_PROGRAM,
			"a row of %lld elements; at most %d", (long long)row, ISA_MAX_ROW);
	return 0;
}

/* 0 if a value of the type of `out` can be combined into it. */
static int check_combine(struct sim_load *load, const struct isa_operand *out, unsigned j)
{
	struct isa_uop u = { .elem = out->elem };

	if (out->combine >= ISA_COMBINE_COUNT)
		return sim_refuse(load, HW_ST_BAD_PROGRAM,
			"output %u: there is no combination %u", j, out->combine);
	if (out->combine == ISA_STORE)
		return 0;
	u.op = (uint8_t)sim_combine_uop(out->combine);
	if (!elem_valid(out->elem) || isa_uop_result(&u) == ELEM_INVALID)
		return sim_refuse(load, HW_ST_BAD_PROGRAM,
			"output %u: %s does not combine by %s", j,
			elem_text(out->elem), isa_uop_info(u.op)->mnemonic);
	return 0;
}

static int check_outputs(struct checker *c, const struct isa_operand *out)
{
	const struct isa_body *body = c->body;

	for (unsigned j = 0; j < body->n_out; j++) {
		unsigned v = out[j].value;
		int ret = check_combine(c->load, &out[j], j);

		if (ret)
			return ret;
		if (v >= c->n_values || c->elem[v] != out[j].elem)
			return sim_refuse(c->load, HW_ST_BAD_PROGRAM,
				"output %u is %s, but value %u is %s (of %u values)", j,
				elem_text(out[j].elem), v, v < c->n_values ?
				elem_text(c->elem[v]) : "not there", c->n_values);
		if (!body->row_rank || !c->row[v] || c->constant[v])
			continue;
		for (unsigned d = body->rank - body->row_rank; d < body->rank; d++)
			if (out[j].stride[d])
				return sim_refuse(c->load, HW_ST_BAD_PROGRAM,
					"output %u is a row value, but moves along "
					"dim %u of the row",
					j, d);
	}
	return 0;
}

int sim_body_check(struct sim_load *load, const struct isa_body *body,
		   const struct isa_operand *in, const struct isa_operand *out,
		   const struct isa_uop *uops, const uint8_t *pre_elem,
		   unsigned n_pre, struct sim_body_facts *facts)
{
	struct checker c = { .load = load, .body = body, .n_pre = n_pre };
	int ret = check_shape(&c);

	if (ret)
		return ret;
	for (unsigned v = 0; v < n_pre; v++)
		c.elem[c.n_values++] = pre_elem[v];
	for (unsigned j = 0; j < body->n_in; j++) {
		if (!elem_valid(in[j].elem) || !elem_bytes(in[j].elem))
			return sim_refuse(load, HW_ST_BAD_PROGRAM,
				"input %u: there is no element type %u", j, in[j].elem);
		c.elem[c.n_values++] = in[j].elem;
	}
	for (unsigned i = 0; i < body->n_uop && !ret; i++)
		ret = check_uop(&c, i, &uops[i]);
	if (!ret)
		ret = check_outputs(&c, out);
	memcpy(facts->elem, c.elem, sizeof(c.elem));
	memcpy(facts->constant, c.constant, sizeof(c.constant));
	for (unsigned v = 0; v < ISA_MAX_VALUES; v++)
		facts->row[v] = body->row_rank && c.row[v];
	facts->row_cols = 1;
	for (unsigned d = body->rank; !ret && d-- > (unsigned)(body->rank - body->row_rank);)
		facts->row_cols *= (size_t)body->dim[d];
	return ret;
}

/* ---- prepare: planning ---- */

struct slot { uint32_t offset; uint8_t bytes; bool free; };

struct planner {
	struct sim_body *b;
	int last[ISA_MAX_VALUES];	/* the last uop that reads the value, or n_uop */
	struct slot slot[ISA_MAX_VALUES];
	int slot_of[ISA_MAX_VALUES];	/* value's slot, or -1 */
	bool lasts[ISA_MAX_VALUES];	/* what is still, and read by what is not */
	unsigned n_slots;
	size_t used;
};

static unsigned add_slot(struct planner *p, unsigned bytes)
{
	size_t room = ((size_t)p->b->points * bytes + 63) / 64 * 64 + BUFFER_GAP;
	unsigned s = p->n_slots;

	p->slot[s].offset = (uint32_t)p->used;
	p->slot[s].bytes = (uint8_t)bytes;
	p->slot[s].free = false;
	p->n_slots++;
	p->used += room;
	return s;
}

static unsigned take_slot(struct planner *p, unsigned bytes)
{
	for (unsigned s = 0; s < p->n_slots; s++) {
		if (p->slot[s].free && p->slot[s].bytes == bytes) {
			p->slot[s].free = false;
			return s;
		}
	}
	return add_slot(p, bytes);
}

/* An argument's slot may become the result's if it dies here and its elements have the
 * same size: kernels allow it. */
static int slot_of_dying(struct planner *p, const struct step *s, int i)
{
	for (unsigned k = 0; k < s->n_args; k++) {
		unsigned v = s->arg[k];

		if (p->last[v] == i && p->slot_of[v] >= 0 && !p->lasts[v] &&
		    s->arg_bytes[k] == s->bytes)
			return p->slot_of[v];
	}
	return -1;
}

static void plan_room(struct planner *p, struct step *s, int i, unsigned value)
{
	int slot = -1;

	p->slot_of[value] = -1;
	if (s->kind == STEP_IMM || s->kind == STEP_NONE)
		return;
	if (s->kind == STEP_SREG) {
		s->room = (uint32_t)p->used;
		p->used += 64;
		return;
	}
	if (s->kind == STEP_FOLD)
		s->spare = p->slot[take_slot(p, s->arg_bytes[0])].offset;
	if (s->kind == STEP_CALL && !p->lasts[value])
		slot = slot_of_dying(p, s, i);
	s->taken = slot >= 0;
	/* nor was one that lasts another value's: that would come again with the next tile */
	if (p->lasts[value])
		slot = (int)add_slot(p, s->bytes);
	if (slot < 0)
		slot = (int)take_slot(p, s->bytes);
	p->slot_of[value] = slot;
	s->room = p->slot[slot].offset;
	if (s->kind == STEP_FOLD)
		for (unsigned k = 0; k < p->n_slots; k++)
			if (p->slot[k].offset == s->spare)
				p->slot[k].free = true;
	/* those that die here and were not taken over; and a result nobody reads */
	for (unsigned k = 0; k < s->n_args; k++) {
		unsigned v = s->arg[k];

		if (p->last[v] == i && p->slot_of[v] >= 0 && p->slot_of[v] != slot && !p->lasts[v])
			p->slot[p->slot_of[v]].free = true;
		if (p->last[v] == i)
			p->slot_of[v] = -1;
	}
	if (p->last[value] < 0 && !p->lasts[value])
		p->slot[slot].free = true;
}

static void fill_step(struct sim_body *b, enum sim_path path, struct step *s,
		      const struct isa_uop *u, unsigned value)
{
	const uint8_t arg[3] = { u->a, u->b, u->c };

	*s = (struct step){
		.kind = STEP_CALL, .n_args = isa_uop_info(u->op)->n_args,
		.elem = b->elem[value], .bytes = elem_bytes(b->elem[value]),
		.out = -1, .aux = u->aux, .imm = u->imm, .room = NO_ROOM,
	};
	for (unsigned k = 0; k < s->n_args; k++) {
		s->arg[k] = arg[k];
		s->arg_bytes[k] = elem_bytes(b->elem[arg[k]]);
	}
	switch (u->op) {
	case UOP_IMM:
		s->kind = STEP_IMM;
		s->constant[0] = u->elem == ELEM_PRED ? (u->imm & 0xff) != 0 : u->imm;
		return;
	case UOP_IOTA:
		s->kind = STEP_IOTA;
		return;
	case UOP_SREG:
		s->kind = STEP_SREG;
		s->fn = sim_uop_convert(path, ELEM_S64, u->elem);
		s->imm = ELEM_S64 | (uint64_t)u->elem << 8;
		return;
	case UOP_CVT:
		s->imm = u->elem | (uint64_t)u->to << 8;
		break;
	case UOP_RDPREC:
		s->imm = u->aux | u->imm << 8;
		break;
	default:
		break;
	}
	if (is_fold(u->op)) {
		s->kind = STEP_FOLD;
		s->fold = sim_uop_fold(path, uop_of_fold(u->op), u->elem);
		assert(s->fold);
		return;
	}
	s->fn = sim_uop_kernel(path, u);
	assert(s->fn);
}

/* Joins a step with the one that makes one of its arguments, if that has no other
 * use and is done for all points anyway; is_sum: only a sum with a product. */
static void join_pair(struct sim_body *b, enum sim_path path, const struct isa_uop *uops,
		      const struct sim_body_facts *facts, const unsigned *uses, unsigned i,
		      bool is_sum)
{
	unsigned first = b->n_pre + b->n_in;
	struct step *s = &b->step[i];

	for (unsigned k = 0; k < 2; k++) {
		unsigned v = s->arg[k], w = s->arg[1 - k];
		struct step *from;
		sim_uop_fn *fn;
		bool turn;

		if (v < first || uses[v] != 1 || facts->row[v] || facts->constant[v])
			continue;
		from = &b->step[v - first];
		if (from->kind != STEP_CALL || from->n_args != 2 || from->mixed ||
		    (!is_sum && is_by_row(b, path, facts, from)) ||
		    (is_sum && (uops[i].op != UOP_ADD || uops[v - first].op != UOP_MUL)))
			continue;
		fn = sim_uop_pair_kernel(path, &uops[v - first], &uops[i], k == 1);
		if (!fn)
			continue;
		s->fn = fn;
		/* kernels prefer the spread one second */
		turn = uops[v - first].op != UOP_SUB && facts->constant[from->arg[0]];
		s->arg[0] = from->arg[turn];
		s->arg[1] = from->arg[!turn];
		s->arg[2] = (uint8_t)w;
		s->arg_bytes[2] = s->bytes;
		s->n_args = 3;
		from->kind = STEP_NONE;
		from->n_args = 0;
		return;
	}
}

/* The step that makes v, if that is a shift by a constant of a value, used once; *by: the
 * constant. */
static struct step *shift_of(struct sim_body *b, const struct isa_uop *uops,
			     const unsigned *uses, unsigned v, unsigned op, uint64_t *by)
{
	unsigned first = b->n_pre + b->n_in;
	struct step *s = v < first ? NULL : &b->step[v - first], *constant;

	if (!s || uops[v - first].op != op || uses[v] != 1 || s->arg[1] < first)
		return NULL;
	constant = &b->step[s->arg[1] - first];
	*by = constant->constant[0];
	return constant->kind == STEP_IMM ? s : NULL;
}

/* Both parts of a rotation, joined by step i, which becomes the rotation itself: hashes and random
 * numbers are made of such. */
static void join_rotation(struct sim_body *b, enum sim_path path, const struct isa_uop *uops,
			  const unsigned *uses, unsigned i)
{
	struct step *s = &b->step[i];

	for (unsigned k = 0; k < 2; k++) {
		uint64_t up = 0, down = 0;
		struct step *left = shift_of(b, uops, uses, s->arg[k], UOP_SHL, &up);
		struct step *right = shift_of(b, uops, uses, s->arg[1 - k], UOP_SHR, &down);

		if (!left || !right || left->arg[0] != right->arg[0] || !up || up > 31 ||
		    up + down != 32)
			continue;
		s->fn = sim_uop_rotate(path, false);
		s->arg[0] = left->arg[0];
		s->n_args = 1;
		s->imm = up;
		left->kind = right->kind = STEP_NONE;
		left->n_args = right->n_args = 0;
		return;
	}
}

/* A rotation that step i alone reads, to combine it with another value: both at once. */
static void join_with_rotation(struct sim_body *b, enum sim_path path,
			       const struct sim_body_facts *facts, const unsigned *uses,
			       unsigned i)
{
	unsigned first = b->n_pre + b->n_in;
	struct step *s = &b->step[i];

	for (unsigned k = 0; k < 2; k++) {
		unsigned v = s->arg[k], other = s->arg[1 - k];
		struct step *from = v < first ? NULL : &b->step[v - first];

		if (!from || from->kind != STEP_CALL || uses[v] != 1 || facts->row[v] ||
		    facts->constant[v] || from->fn != sim_uop_rotate(path, false))
			continue;
		s->fn = sim_uop_rotate(path, true);
		s->arg[0] = from->arg[0];
		s->arg[1] = (uint8_t)other;
		s->imm = from->imm;
		from->kind = STEP_NONE;
		from->n_args = 0;
		return;
	}
}

static void join_rotations(struct sim_body *b, enum sim_path path, const struct isa_uop *uops,
			   const struct sim_body_facts *facts, const unsigned *uses)
{
	for (unsigned i = 0; i < b->n_uop; i++)
		if (uops[i].op == UOP_OR && uops[i].elem == ELEM_U32)
			join_rotation(b, path, uops, uses, i);
	for (unsigned i = 0; i < b->n_uop; i++)
		if (uops[i].op == UOP_XOR && uops[i].elem == ELEM_U32)
			join_with_rotation(b, path, facts, uses, i);
}

/* Whether s is a * b + c of f32, c a constant: *c. */
static bool is_term(const struct sim_body *b, enum sim_path path, const struct step *s, float *c)
{
	static const struct isa_uop mul = { .op = UOP_MUL, .elem = ELEM_F32 };
	static const struct isa_uop add = { .op = UOP_ADD, .elem = ELEM_F32 };
	unsigned first = b->n_pre + b->n_in;

	if (s->kind != STEP_CALL || s->n_args != 3 || s->arg[2] < first ||
	    b->step[s->arg[2] - first].kind != STEP_IMM ||
	    s->fn != sim_uop_pair_kernel(path, &mul, &add, false))
		return false;
	memcpy(c, &b->step[s->arg[2] - first].constant[0], sizeof(*c));
	return true;
}

/* Step i, a term of a polynomial, goes on with what `from` has of it, if that is of the same
 * number, arg[!k] of step i. */
static bool join_term(struct sim_body *b, enum sim_path path, struct arena *arena, struct step *s,
		      unsigned k, struct step *from)
{
	struct sim_terms *t;
	uint8_t x = s->arg[!k];
	float c, first;

	if (!is_term(b, path, s, &c))
		return false;
	if (from->kind == STEP_CALL && from->fn == sim_uop_terms(path) && from->arg[1] == x) {
		t = (struct sim_terms *)(uintptr_t)from->imm;
		s->arg[0] = from->arg[0];
	} else if (is_term(b, path, from, &first) && (from->arg[0] == x || from->arg[1] == x)) {
		t = arena_alloc(arena, sizeof(*t) + b->n_uop * sizeof(t->c[0]));
		if (!t)
			return false;
		t->c[t->n++] = first;
		s->arg[0] = from->arg[from->arg[0] == x];
	} else {
		return false;
	}
	t->c[t->n++] = c;
	s->arg[1] = x;
	s->n_args = 2;
	s->fn = sim_uop_terms(path);
	s->imm = (uintptr_t)t;
	from->kind = STEP_NONE;
	from->n_args = 0;
	return true;
}

/* Polynomials as elementary functions have them, by Horner's rule: a call for all terms. Those stay
 * where plans of small instructions do, whose calls are copied from a body that does not. */
static void join_terms(struct sim_body *b, enum sim_path path, struct arena *arena,
		       const struct sim_body_facts *facts, const unsigned *uses)
{
	unsigned first = b->n_pre + b->n_in;

	for (unsigned i = 0; i < b->n_uop; i++)
		for (unsigned k = 0; k < 2; k++) {
			unsigned v = b->step[i].arg[k];

			if (b->step[i].kind == STEP_CALL && b->step[i].n_args == 3 &&
			    v >= first && uses[v] == 1 && !facts->row[v] && !facts->constant[v] &&
			    join_term(b, path, arena, &b->step[i], k, &b->step[v - first]))
				break;
		}
}

/* The comparison that says what step i selects, if it is with a constant or, of floats, with
 * itself, and nobody else reads it: both are one step. */
static void join_choice(struct sim_body *b, enum sim_path path, const struct isa_uop *uops,
			const struct sim_body_facts *facts, const unsigned *uses, unsigned i)
{
	static const uint8_t turned[] = { UOP_EQ, UOP_NE, UOP_GT, UOP_GE, UOP_LT, UOP_LE };
	unsigned first = b->n_pre + b->n_in, v = b->step[i].arg[0];
	struct step *s = &b->step[i], *from = v < first ? NULL : &b->step[v - first];

	if (!from || from->kind != STEP_CALL || uses[v] != 1 || facts->row[v] ||
	    facts->constant[v] || s->bytes != 4)
		return;
	for (unsigned k = 0; k < 2; k++) {
		unsigned x = from->arg[k], y = from->arg[!k], op = uops[v - first].op;
		sim_uop_fn *fn;

		if (op < UOP_EQ || op > UOP_GE ||
		    (x != y && (y < first || b->step[y - first].kind != STEP_IMM)))
			continue;
		fn = sim_uop_choice(path, k ? turned[op - UOP_EQ] : op, uops[v - first].elem,
				    x == y);
		if (!fn)
			continue;
		s->fn = fn;
		s->imm = x == y ? 0 : b->step[y - first].constant[0];
		s->arg[0] = (uint8_t)x;
		s->arg_bytes[0] = from->arg_bytes[k];
		from->kind = STEP_NONE;
		from->n_args = 0;
		return;
	}
}

/* The constant that v is; false if it is none. */
static bool constant_of(const struct sim_body *b, unsigned v, uint32_t *x)
{
	unsigned first = b->n_pre + b->n_in;

	if (v < first || b->step[v - first].kind != STEP_IMM)
		return false;
	*x = (uint32_t)b->step[v - first].constant[0];
	return true;
}

/* Makes step i, a selection by a comparison, or its truths as numbers, one step with it. */
static bool fill_mask(struct sim_body *b, enum sim_path path, const struct isa_uop *u,
		      const struct isa_uop *compare, struct step *s)
{
	uint32_t yes = 0, no = 0;
	float one = 1;

	if (u->op == UOP_CVT) {
		yes = 1;
		if (u->to == ELEM_F32)
			memcpy(&yes, &one, sizeof(yes));
	}
	if (u->op == UOP_CVT || (constant_of(b, s->arg[1], &yes) &&
				 constant_of(b, s->arg[2], &no))) {
		s->fn = sim_uop_flag(path, compare->op, compare->elem);
		s->imm = (uint64_t)yes << 32 | no;
		s->n_args = 2;
		return true;
	}
	if (constant_of(b, s->arg[2], &no)) {
		s->fn = sim_uop_mask(path, compare->op, compare->elem, false);
		s->arg[2] = s->arg[1];
		s->imm = no;
		return true;
	}
	if (!constant_of(b, s->arg[1], &yes))
		return false;
	s->fn = sim_uop_mask(path, compare->op, compare->elem, true);
	s->imm = yes;
	return true;
}

/* The comparison of two values whose truths step i alone reads, to select by them where one side is
 * a constant, or to make numbers of them. */
static void join_mask(struct sim_body *b, enum sim_path path, const struct isa_uop *uops,
		      const struct sim_body_facts *facts, const unsigned *uses, unsigned i)
{
	unsigned first = b->n_pre + b->n_in, v = b->step[i].arg[0];
	struct step *s = &b->step[i], *from = v < first ? NULL : &b->step[v - first];

	if (!from || from->kind != STEP_CALL || uses[v] != 1 || facts->row[v] ||
	    facts->constant[v] || s->bytes != 4 || s->arg_bytes[0] != 1 ||
	    !sim_uop_flag(path, uops[v - first].op, uops[v - first].elem) ||
	    !fill_mask(b, path, &uops[i], &uops[v - first], s))
		return;
	for (unsigned k = 0; k < 2; k++)
		s->arg[k] = from->arg[k];
	for (unsigned k = 0; k < 3; k++)
		s->arg_bytes[k] = 4;
	from->kind = STEP_NONE;
	from->n_args = 0;
}

/* How numbers of `elem` lie to a kernel of sim_uop_mixed(); SIM_WIDE: none that is narrower. */
static unsigned mixed_lies(unsigned elem)
{
	return elem == ELEM_BF16 ? SIM_BF16 : elem == ELEM_F16 ? SIM_F16 : SIM_WIDE;
}

/* Whether step i is one of sim_uop_mixed(), or has such a kernel. */
static bool can_mix(const struct sim_body *b, enum sim_path path, const struct isa_uop *uops,
		    unsigned i)
{
	return b->step[i].mixed || (b->step[i].kind == STEP_CALL && uops[i].op != UOP_CVT &&
				    uops[i].elem == ELEM_F32 && sim_uop_mixed(path, uops[i].op));
}

static void make_mixed(struct sim_body *b, enum sim_path path, const struct isa_uop *uops,
		       unsigned i)
{
	struct step *s = &b->step[i];

	if (s->mixed)
		return;
	s->fn = sim_uop_mixed(path, uops[i].op);
	s->by_row = sim_uop_mixed_by_row(path, uops[i].op);
	s->imm = sim_mixed_aux(SIM_WIDE, SIM_WIDE, SIM_WIDE);
	s->mixed = b->mixes = true;
}

/* Step i, a conversion of what a step before it gives and nobody else reads: both are one that
 * stores what is narrower, or rounds to that. */
static void join_narrowing(struct sim_body *b, enum sim_path path, const struct isa_uop *uops,
			   const struct sim_body_facts *facts, const unsigned *uses, unsigned i)
{
	unsigned first = b->n_pre + b->n_in, v = uops[i].a, out = first + i;
	unsigned lies = mixed_lies(uops[i].to), again = mixed_lies(uops[i].elem);
	struct step *s = &b->step[i], *from = v < first ? NULL : &b->step[v - first];

	if (!from || uses[v] != 1 || from->kind != STEP_CALL || facts->row[out] ||
	    facts->constant[out] || !sim_uop_mixed(path, UOP_CVT))
		return;
	if (uops[i].elem == ELEM_F32 && lies) {
		if (!can_mix(b, path, uops, v - first) || (from->mixed && from->imm >> 8))
			return;
		for (unsigned k = 0; k < 2 && !is_mixed_row(facts->row_cols); k++)
			if (facts->row[from->arg[k]] && !facts->constant[from->arg[k]])
				return;
		make_mixed(b, path, uops, v - first);
		s->imm = from->imm | sim_mixed_aux(0, 0, lies);
	} else if (uops[i].to == ELEM_F32 && again) {
		lies = again == SIM_BF16 ? SIM_AGAIN_BF16 : SIM_AGAIN_F16;
		if (from->mixed && from->imm >> 8 == again)
			s->imm = (from->imm & 0xff) | sim_mixed_aux(0, 0, lies);
		else if (uops[v - first].op == UOP_CVT && uops[v - first].elem == ELEM_F32)
			s->imm = sim_mixed_aux(SIM_WIDE, SIM_WIDE, lies);
		else
			return;
	} else {
		return;
	}
	s->fn = from->mixed ? from->fn : sim_uop_mixed(path, UOP_CVT);
	s->by_row = from->by_row;
	s->mixed = true;
	s->n_args = from->n_args;
	memcpy(s->arg, from->arg, sizeof(s->arg));
	memcpy(s->arg_bytes, from->arg_bytes, sizeof(s->arg_bytes));
	*from = (struct step){ .kind = STEP_NONE, .out = -1, .room = NO_ROOM };
}

/* Steps that read what step i makes of narrower numbers read these themselves, if all do. */
static void join_widening(struct sim_body *b, enum sim_path path, const struct isa_uop *uops,
			  const struct sim_body_facts *facts, const unsigned *uses, unsigned i)
{
	unsigned v = b->n_pre + b->n_in + i, lies = mixed_lies(uops[i].elem), found = 0;
	struct step *from = &b->step[i];

	if (from->kind != STEP_CALL || from->mixed || !lies || facts->row[v] || facts->constant[v])
		return;
	for (unsigned j = i + 1; j < b->n_uop; j++) {
		struct step *s = &b->step[j];
		bool reads = false;

		for (unsigned k = 0; k < s->n_args; k++) {
			reads |= s->arg[k] == v;
			found += s->arg[k] == v;
		}
		if (reads && !can_mix(b, path, uops, j))
			return;
	}
	if (found != uses[v])
		return;
	for (unsigned j = i + 1; j < b->n_uop; j++)
		for (unsigned k = 0; k < b->step[j].n_args; k++) {
			struct step *s = &b->step[j];

			if (s->arg[k] != v)
				continue;
			make_mixed(b, path, uops, j);
			s->arg[k] = from->arg[0];
			s->arg_bytes[k] = from->arg_bytes[0];
			s->imm |= sim_mixed_aux(k ? 0 : lies, k ? lies : 0, 0);
		}
	*from = (struct step){ .kind = STEP_NONE, .out = -1, .room = NO_ROOM };
}

/* A division by a constant is a product. */
static void join_divisor(struct sim_body *b, enum sim_path path, const struct isa_uop *u,
			 struct step *s)
{
	sim_uop_fn *fn = sim_uop_by_constant(path, u->op, u->elem);
	uint32_t by;

	if (!fn || !constant_of(b, s->arg[1], &by) || !by || (u->elem == ELEM_S32 && by == -1u))
		return;
	s->fn = fn;
	s->imm = by;
	s->n_args = 1;
}

static void join_steps(struct sim_body *b, enum sim_path path, struct arena *arena,
		       const struct isa_operand *out, const struct isa_uop *uops,
		       const struct sim_body_facts *facts)
{
	unsigned uses[ISA_MAX_VALUES] = { 0 };

	for (unsigned i = 0; i < b->n_uop; i++)
		for (unsigned k = 0; k < b->step[i].n_args; k++)
			uses[b->step[i].arg[k]]++;
	for (unsigned j = 0; j < b->n_out; j++)
		uses[out[j].value] += 2;
	join_rotations(b, path, uops, facts, uses);
	for (unsigned i = 0; i < b->n_uop; i++)
		if (uops[i].op == UOP_CVT)
			join_narrowing(b, path, uops, facts, uses, i);
	for (unsigned i = 0; i < b->n_uop; i++)
		if (uops[i].op == UOP_CVT && uops[i].to == ELEM_F32)
			join_widening(b, path, uops, facts, uses, i);
	/* sums of products before others: terms of polynomials are such */
	for (unsigned k = 0; k < 2; k++)
		for (unsigned i = 0; i < b->n_uop; i++)
			if (b->step[i].kind == STEP_CALL && b->step[i].n_args == 2 &&
			    !b->step[i].mixed)
				join_pair(b, path, uops, facts, uses, i, !k);
	join_terms(b, path, arena, facts, uses);
	for (unsigned i = 0; i < b->n_uop; i++)
		if (uops[i].op == UOP_SELECT)
			join_choice(b, path, uops, facts, uses, i);
	for (unsigned i = 0; i < b->n_uop; i++) {
		if (uops[i].op == UOP_SELECT ||
		    (uops[i].op == UOP_CVT && uops[i].elem == ELEM_PRED))
			join_mask(b, path, uops, facts, uses, i);
		if (uops[i].op == UOP_DIV || uops[i].op == UOP_REM)
			join_divisor(b, path, &uops[i], &b->step[i]);
	}
}

/* Which outputs can be computed in place: see sim_body_direct(). */
static void find_direct(struct sim_body *b, const struct isa_operand *out)
{
	unsigned first = b->n_pre + b->n_in;
	int last_read = -1;

	for (unsigned i = 0; i < b->n_uop; i++)
		for (unsigned k = 0; k < b->step[i].n_args; k++)
			if (b->step[i].arg[k] < first)
				last_read = (int)i;
	for (unsigned j = 0; j < b->n_out; j++)
		if (out[j].value < first)
			return;
	for (unsigned j = 0; j < b->n_out; j++) {
		int i = out[j].value - (int)first;

		if (out[j].combine != ISA_STORE || i < last_read ||
		    b->step[i].kind != STEP_CALL || b->step[i].out >= 0)
			continue;
		b->step[i].out = (int8_t)j;
		b->direct |= 1u << j;
	}
}

/* Which steps are made of places along `still` dims alone. Outputs that are computed in place are
 * not: each tile has its own. */
static void find_still(struct planner *p, const struct isa_operand *out, uint32_t still)
{
	struct sim_body *b = p->b;
	unsigned first = b->n_pre + b->n_in;

	for (unsigned i = 0; still && i < b->n_uop; i++) {
		struct step *s = &b->step[i];
		bool is_of_place = s->kind == STEP_IOTA && still >> s->aux & 1;
		bool is_still = is_of_place || s->kind == STEP_CALL;

		for (unsigned k = 0; k < s->n_args && is_still; k++) {
			const struct step *from = s->arg[k] < first ? NULL :
						  &b->step[s->arg[k] - first];

			is_still = from && (from->still || from->kind == STEP_IMM);
			is_of_place |= is_still && from->still;
		}
		s->still = is_still && is_of_place && s->out < 0;
	}
	for (unsigned i = 0; i < b->n_uop; i++)
		for (unsigned k = 0; k < b->step[i].n_args && !b->step[i].still; k++) {
			unsigned v = b->step[i].arg[k];

			p->lasts[v] = v >= first && b->step[v - first].still;
		}
	for (unsigned j = 0; j < b->n_out; j++)
		if (out[j].value >= first)
			p->lasts[out[j].value] = b->step[out[j].value - first].still;
}

static void plan(struct planner *p, const struct isa_operand *out, uint32_t still)
{
	struct sim_body *b = p->b;
	unsigned first = b->n_pre + b->n_in, widest = 0;

	find_still(p, out, still);

	for (unsigned v = 0; v < first + b->n_uop; v++) {
		p->last[v] = -1;
		p->slot_of[v] = -1;
	}
	for (unsigned i = 0; i < b->n_uop; i++)
		for (unsigned k = 0; k < b->step[i].n_args; k++)
			p->last[b->step[i].arg[k]] = (int)i;
	for (unsigned j = 0; j < b->n_out; j++)
		p->last[out[j].value] = b->n_uop;
	p->used = (sizeof(struct frame) + 63) / 64 * 64;
	for (unsigned i = 0; i < b->n_uop; i++)
		plan_room(p, &b->step[i], (int)i, first + i);
	for (unsigned i = 0; i < b->n_uop; i++)
		for (unsigned k = 0; k < b->step[i].n_args && b->step[i].n_args > 1; k++)
			if (b->step[i].arg_bytes[k] > widest)
				widest = b->step[i].arg_bytes[k];
	for (unsigned k = 0; k < 2 && widest; k++) {
		b->spread[k] = p->used;
		p->used += ((size_t)b->points * widest + 63) / 64 * 64 + BUFFER_GAP;
	}
	b->scratch = p->used;
}

int sim_body_plan(struct sim_load *load, const struct isa_body *body,
		  const struct isa_operand *out, const struct isa_uop *uops,
		  unsigned n_pre, const struct sim_body_facts *facts, unsigned points,
		  uint32_t still, const struct sim_body **out_body)
{
	struct planner p = { 0 };
	struct sim_body *b;

	b = arena_alloc(load->arena, sizeof(*b) + body->n_uop * sizeof(b->step[0]));
	if (!b)
		return sim_refuse(load, HW_ST_NO_ROOM, "no memory for a body");
	b->n_pre = (uint8_t)n_pre;
	b->n_in = body->n_in;
	b->n_out = body->n_out;
	b->rank = body->rank;
	b->n_uop = body->n_uop;
	b->points = points;
	b->path = load->cpu->path;
	memcpy(b->elem, facts->elem, sizeof(b->elem));
	for (unsigned i = 0; i < b->n_uop; i++)
		fill_step(b, load->cpu->path, &b->step[i], &uops[i],
			  n_pre + b->n_in + i);
	join_steps(b, load->cpu->path, load->small, out, uops, facts);
	for (unsigned i = 0; i < b->n_uop; i++)
		if (b->step[i].kind == STEP_CALL && b->step[i].n_args == 2 && !b->step[i].mixed)
			b->step[i].by_row = sim_uop_by_row(load->cpu->path, b->step[i].fn);
	find_direct(b, out);
	p.b = b;
	plan(&p, out, still);
	*out_body = b;
	return 0;
}

int sim_body_prepare(struct sim_load *load, const struct isa_body *body,
		     const struct isa_operand *in, const struct isa_operand *out,
		     const struct isa_uop *uops, const uint8_t *pre_elem,
		     unsigned n_pre, unsigned points, const struct sim_body **out_body)
{
	struct sim_body_facts facts;
	int ret = sim_body_check(load, body, in, out, uops, pre_elem, n_pre, &facts);

	return ret ? ret : sim_body_plan(load, body, out, uops, n_pre, &facts, points, 0,
					 out_body);
}

size_t sim_body_scratch(const struct sim_body *b)
{
	return b->scratch;
}

uint32_t sim_body_direct(const struct sim_body *b)
{
	return b->direct;
}

unsigned sim_body_points(const struct sim_cpu *cpu, const struct isa_body *body)
{
	/* a guess at how many values live at once */
	size_t live = 2u + body->n_in + body->n_uop / 4;
	size_t l1 = cpu->l1_bytes ? cpu->l1_bytes : 32 << 10;
	size_t points;

	if (live > 16)
		live = 16;
	points = l1 / (4 * live) / 64 * 64;
	/* inputs alone need no room */
	if (!body->n_uop)
		return 4096;
	if (points < 512)
		return 512;
	return points > 2048 ? 2048 : (unsigned)points;
}
