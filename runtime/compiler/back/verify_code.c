/* SPDX-License-Identifier: Apache-2.0 */
/* What an instruction reads and writes, as isa.h lays it out, and what registers hold. */
#include <string.h>

#include "runtime/compiler/back/verify.h"

bool tc_is_well_formed(const void *text, size_t bytes, size_t at)
{
	const struct isa_insn *insn = (const void *)((const char *)text + at);
	const struct isa_insn_info *info;
	const struct isa_body *b;
	unsigned n_pre;
	size_t want;

	if (bytes - at < sizeof(*insn) || insn->bytes > bytes - at || insn->bytes % 8)
		return false;
	info = isa_insn_info(insn->op);
	if (!info->mnemonic || !info->built || insn->bytes < info->head_bytes)
		return false;
	want = info->head_bytes;
	b = isa_body_of(insn, &n_pre);
	if (b && (b->n_in > ISA_MAX_IN || b->n_out > ISA_MAX_OUT || b->rank > ISA_MAX_RANK))
		return false;
	if (b)
		want += (b->n_in + b->n_out) * sizeof(struct isa_operand) +
			b->n_uop * sizeof(struct isa_uop);
	if (insn->op == ISA_GATHER) {
		const struct isa_gather *g = (const void *)insn;

		return want == insn->bytes && g->rank <= ISA_MAX_RANK &&
		       g->n_index <= ISA_MAX_INDEX;
	}
	if (insn->op == ISA_SCATTER && ((const struct isa_scatter *)(const void *)insn)->n_index >
	    ISA_MAX_INDEX)
		return false;
	if (insn->op == ISA_CONV &&
	    ((const struct isa_conv *)(const void *)insn)->n_spatial > ISA_MAX_SPATIAL)
		return false;
	if (insn->op == ISA_FFT) {
		const struct isa_fft *f = (const void *)insn;

		return want == insn->bytes && f->rank <= ISA_MAX_RANK && f->axis < f->rank;
	}
	if ((insn->op == ISA_COPY || insn->op == ISA_RPUT) &&
	    ((const struct isa_copy *)(const void *)insn)->rank > ISA_MAX_RANK)
		return false;
	return want == insn->bytes;
}

int64_t tc_bytes_of_walk(const struct tc_walk *w)
{
	int64_t n = w->bytes;

	if (w->is_unordered)
		return -1;
	for (unsigned d = 0; d < w->n; d++)
		if (w->stride[d] && __builtin_mul_overflow(n, w->dim[d], &n))
			return INT64_MAX;
	return n;
}

/* ---- calls of the host ---- */

/* Whether a load or store is of the call's number. */
static bool is_number(const struct isa_scalar *s)
{
	return s->elem == ELEM_U64 && s->binding == 1 && !s->ra && !s->imm;
}

bool tc_begins_calls(const struct isa_insn *insn, uint32_t i)
{
	const struct isa_scalar *s = (const void *)insn;

	if (!i)
		return insn->op == ISA_LD && s->rd == 1 && is_number(s);
	if (i % 2)
		return insn->op == ISA_ALUI && s->fn == ISA_ALU_EQ && s->rd == 2 &&
		       s->ra == 1 && s->imm == i / 2 + 1;
	return insn->op == ISA_BNZ && s->ra == 2;
}

bool tc_is_stop(const struct isa_insn *first, const struct isa_insn *second, uint32_t *n)
{
	const struct isa_scalar *li = (const void *)first, *st = (const void *)second;

	if (first->op != ISA_LI || second->op != ISA_ST || st->rb != li->rd || !li->rd ||
	    !is_number(st) || li->imm < 1 || li->imm > UINT32_MAX)
		return false;
	*n = (uint32_t)li->imm - 1;
	return true;
}

/* ---- registers ---- */

static void set_sum(struct tc_reg_value *v, int64_t base)
{
	v->kind = TC_REG_SUM;
	v->base = base;
	v->n = 0;
}

/* Adds b's terms to a's. Any of the three may be the same register. */
static void add_regs(struct tc_reg_value *out, const struct tc_reg_value *a,
		     const struct tc_reg_value *b)
{
	const struct tc_reg_value *const sides[] = { a, b };
	int64_t count[TC_REG_TERMS], step[TC_REG_TERMS], base;
	unsigned n = 0;

	if (a->kind != TC_REG_SUM || b->kind != TC_REG_SUM || a->n + b->n > TC_REG_TERMS ||
	    __builtin_add_overflow(a->base, b->base, &base)) {
		out->kind = TC_REG_ANY;
		return;
	}
	for (unsigned k = 0; k < 2; k++)
		for (unsigned i = 0; i < sides[k]->n; i++) {
			count[n] = sides[k]->count[i];
			step[n++] = sides[k]->step[i];
		}
	set_sum(out, base);
	out->n = n;
	memcpy(out->count, count, n * sizeof(*count));
	memcpy(out->step, step, n * sizeof(*step));
}

/* The product with a number, in place. */
static bool scale(struct tc_reg_value *v, int64_t by)
{
	if (__builtin_mul_overflow(v->base, by, &v->base))
		return false;
	for (unsigned i = 0; i < v->n; i++)
		if (__builtin_mul_overflow(v->step[i], by, &v->step[i]))
			return false;
	return true;
}

static void step_alui(const struct isa_scalar *s, struct tc_reg_value *regs)
{
	struct tc_reg_value *rd = &regs[s->rd];
	const struct tc_reg_value *ra = &regs[s->ra];
	struct tc_reg_value imm;
	bool is_upward = ra->kind == TC_REG_UPWARD;

	switch (s->fn) {
	case ISA_ALU_ADD:
		set_sum(&imm, s->imm);
		add_regs(rd, ra, &imm);
		return;
	case ISA_ALU_MUL:
		/* In place alone, as offsets are made. */
		if (rd != ra || ra->kind != TC_REG_SUM || !scale(rd, s->imm))
			rd->kind = TC_REG_ANY;
		return;
	case ISA_ALU_MAX:
		rd->kind = s->imm >= 0 ? TC_REG_UPWARD : TC_REG_ANY;
		return;
	case ISA_ALU_MIN:
		rd->kind = TC_REG_ANY;
		if (is_upward && s->imm >= 0 && s->imm < INT64_MAX) {
			set_sum(rd, 0);
			rd->n = 1;
			rd->count[0] = s->imm + 1;
			rd->step[0] = 1;
		}
		return;
	default:
		rd->kind = TC_REG_ANY;
		return;
	}
}

void tc_forget_regs(struct tc_regs *regs)
{
	regs->known = 1;
	set_sum(&regs->value[0], 0);
}

static void touch(struct tc_regs *regs, unsigned r)
{
	if (!(regs->known >> r & 1))
		regs->value[r].kind = TC_REG_ANY;
	regs->known |= (uint64_t)1 << r;
}

void tc_step_regs(const struct isa_scalar *s, struct tc_regs *all)
{
	struct tc_reg_value *regs = all->value, *rd = &regs[s->rd % ISA_N_REG];

	if (s->rd >= ISA_N_REG || s->ra >= ISA_N_REG || s->rb >= ISA_N_REG)
		return;
	touch(all, s->rd);
	touch(all, s->ra);
	touch(all, s->rb);
	switch (s->insn.op) {
	case ISA_LI:
		set_sum(rd, s->imm);
		break;
	case ISA_ALUI:
		step_alui(s, regs);
		break;
	case ISA_ALU:
		if (s->fn == ISA_ALU_ADD)
			add_regs(rd, &regs[s->ra], &regs[s->rb]);
		else
			rd->kind = TC_REG_ANY;
		break;
	case ISA_LD:
	case ISA_RWAIT:
		rd->kind = TC_REG_ANY;
		break;
	default:
		break;
	}
	set_sum(&regs[0], 0);
}

/* ---- accesses ---- */

struct list {
	struct tc_access *at;
	unsigned n;
	const struct tc_regs *regs;
};

/* Starts the next access; its dims follow. */
static struct tc_access *start(struct list *l, enum tc_access_role role,
			       const struct isa_operand *op, unsigned bytes)
{
	struct tc_access *a = &l->at[l->n];

	a->role = role;
	a->operand = l->n++;
	a->is_known = op->reg < ISA_N_REG;
	tc_walk_start(&a->walk, op->binding, 0, op->offset, bytes);
	return a;
}

/* Adds what the register may hold. */
static void lead(struct list *l, struct tc_access *a, unsigned reg)
{
	const struct tc_reg_value *v;

	if (!reg)
		return;
	v = &l->regs->value[reg % ISA_N_REG];
	if (reg >= ISA_N_REG || !(l->regs->known >> reg & 1) || v->kind != TC_REG_SUM ||
	    __builtin_add_overflow(a->walk.offset, v->base, &a->walk.offset)) {
		a->walk.reg = (uint8_t)reg;
		a->is_known = false;
		return;
	}
	for (unsigned i = 0; i < v->n; i++)
		tc_walk_dim(&a->walk, v->count[i], v->step[i]);
	a->walk.is_unordered = true;
}

static void point(struct list *l, enum tc_access_role role, const struct isa_operand *op,
		  unsigned bytes, unsigned rank, const int64_t *dim)
{
	struct tc_access *a = start(l, role, op, bytes);

	for (unsigned d = 0; d < rank; d++)
		tc_walk_dim(&a->walk, dim[d], op->stride[d]);
	lead(l, a, op->reg);
}

static unsigned bytes_of(const struct isa_operand *op)
{
	return elem_valid(op->elem) ? elem_bytes(op->elem) : 0;
}

/* Inputs and outputs of a body, one after the other from `op` on. */
static void body(struct list *l, const struct isa_body *b, const struct isa_operand *op)
{
	for (unsigned i = 0; i < b->n_in; i++, op++)
		point(l, TC_AT_POINT, op, bytes_of(op), b->rank, b->dim);
	for (unsigned i = 0; i < b->n_out; i++, op++) {
		bool folds = false;

		for (unsigned d = 0; op->combine != ISA_STORE && d < b->rank; d++)
			folds |= b->dim[d] > 1 && !op->stride[d];
		point(l, folds || op->flags & ISA_OPERAND_ACC ? TC_FOLDED : TC_STORED, op,
		      bytes_of(op), b->rank, b->dim);
	}
}

static void indexed(struct list *l, enum tc_access_role role, const struct isa_operand *op,
		    unsigned rank, const int64_t *dim, const struct isa_index *index,
		    unsigned n)
{
	struct tc_access *a = start(l, role, op, bytes_of(op));

	for (unsigned d = 0; d < rank; d++)
		tc_walk_dim(&a->walk, dim[d], op->stride[d]);
	for (unsigned i = 0; i < n; i++)
		tc_walk_dim(&a->walk, index[i].limit < INT64_MAX ? index[i].limit + 1 :
			    index[i].limit, index[i].step);
	a->walk.is_unordered = true;
	lead(l, a, op->reg);
}

/* An index vector at each batch point. */
static void indices(struct list *l, const struct isa_operand *op, unsigned rank,
		    const int64_t *dim, unsigned n, int64_t stride)
{
	struct tc_access *a = start(l, n <= 1 ? TC_AT_POINT : TC_AS_WHOLE, op, bytes_of(op));

	for (unsigned d = 0; d < rank; d++)
		tc_walk_dim(&a->walk, dim[d], op->stride[d]);
	tc_walk_dim(&a->walk, n, stride);
	lead(l, a, op->reg);
}

static void gather(struct list *l, const struct isa_gather *g)
{
	indexed(l, TC_AS_WHOLE, &g->src, g->rank, g->dim, g->index, g->n_index);
	indices(l, &g->idx, g->rank, g->dim, g->n_index, g->index_stride);
	point(l, TC_STORED, &g->dst, bytes_of(&g->dst), g->rank, g->dim);
}

static void scatter(struct list *l, const struct isa_scatter *s)
{
	const struct isa_operand *op = (const void *)(s + 1);
	const struct isa_body *b = &s->body;

	indices(l, &s->idx, b->rank, b->dim, s->n_index, s->index_stride);
	for (unsigned i = 0; i < b->n_in; i++, op++)
		point(l, TC_AS_WHOLE, op, bytes_of(op), b->rank, b->dim);
	for (unsigned i = 0; i < b->n_out; i++, op++)
		indexed(l, TC_CHANGED, op, b->rank, b->dim, s->index, s->n_index);
}

static void rng(struct list *l, const struct isa_rng *r)
{
	int64_t words = r->state_words, n;
	struct isa_operand op = r->state;

	op.stride[0] = 8;
	point(l, TC_AT_POINT, &op, 8, 1, &words);
	op = r->new_state;
	op.stride[0] = 8;
	point(l, TC_STORED, &op, 8, 1, &words);
	op = r->out;
	op.stride[0] = 4;
	n = r->n_words > INT64_MAX / 8 ? INT64_MAX / 8 : (int64_t)r->n_words;
	point(l, TC_STORED, &op, 4, 1, &n);
}

static void factor(struct list *l, const struct isa_mm *m, const struct isa_operand *op,
		   int64_t k_stride)
{
	struct tc_access *a = start(l, TC_AS_WHOLE, op, bytes_of(op));

	for (unsigned d = 0; d < m->body.rank; d++)
		tc_walk_dim(&a->walk, m->body.dim[d], op->stride[d]);
	tc_walk_dim(&a->walk, m->k, k_stride);
	lead(l, a, op->reg);
}

static void product(struct list *l, const struct isa_mm *m)
{
	factor(l, m, &m->a, m->a_k_stride);
	factor(l, m, &m->b, m->b_k_stride);
	body(l, &m->body, (const void *)(m + 1));
}

/* Complex lines are changed in their places; of real ones a part may be written before all of the
 * other side's line was read. */
static void transform(struct list *l, const struct isa_fft *f)
{
	bool is_complex = f->src.elem == f->dst.elem;
	int64_t src[ISA_MAX_RANK], dst[ISA_MAX_RANK];

	memcpy(src, f->dim, sizeof(src));
	memcpy(dst, f->dim, sizeof(dst));
	isa_fft_counts(f, &src[f->axis], &dst[f->axis]);
	point(l, is_complex ? TC_AT_POINT : TC_AS_WHOLE, &f->src, bytes_of(&f->src), f->rank, src);
	point(l, TC_STORED, &f->dst, bytes_of(&f->dst), f->rank, dst);
}

/* dim[0] * stride[0], ... of a convolution's operand. */
static void spatial(struct list *l, const struct isa_conv *c, const struct isa_operand *op,
		    int64_t first, int64_t second, const int64_t *size)
{
	struct tc_access *a = start(l, TC_AS_WHOLE, op, bytes_of(op));

	tc_walk_dim(&a->walk, first, op->stride[0]);
	tc_walk_dim(&a->walk, second, op->stride[1]);
	for (unsigned i = 0; i < c->n_spatial; i++)
		tc_walk_dim(&a->walk, size[i], op->stride[2 + i]);
	lead(l, a, op->reg);
}

static int64_t times(int64_t a, int64_t b)
{
	int64_t r;

	return __builtin_mul_overflow(a, b, &r) ? INT64_MAX : r;
}

static void convolution(struct list *l, const struct isa_conv *c)
{
	spatial(l, c, &c->lhs, times(c->body.dim[0], c->batch_groups),
		times(c->in_features, c->feature_groups), c->in_size);
	spatial(l, c, &c->rhs, c->body.dim[1], c->in_features, c->kernel);
	body(l, &c->body, (const void *)(c + 1));
}

static void scalar(struct list *l, const struct isa_scalar *s)
{
	struct isa_operand op = { .elem = s->elem, .reg = s->ra, .binding = s->binding,
				  .offset = s->imm };

	if (s->insn.op == ISA_ST || s->insn.op == ISA_RSIG)
		point(l, TC_STORED, &op, bytes_of(&op), 0, NULL);
	else if (s->insn.op == ISA_LD || s->insn.op == ISA_RWAIT)
		point(l, TC_AT_POINT, &op, bytes_of(&op), 0, NULL);
}

unsigned tc_accesses(const struct isa_insn *insn, const struct tc_regs *regs,
		     struct tc_access *out)
{
	struct list l = { .at = out, .regs = regs };
	const void *p = insn;

	switch (insn->op) {
	case ISA_VEC:
	case ISA_REDUCE:
	{
		const struct isa_tensor *t = p;

		body(&l, &t->body, (const void *)(t + 1));
		break;
	}
	case ISA_SORT:
	{
		const struct isa_sort *s = p;

		body(&l, &s->body, (const void *)(s + 1));
		break;
	}
	case ISA_COPY:
	case ISA_RPUT:
	{
		const struct isa_copy *c = p;

		point(&l, TC_AT_POINT, &c->src, c->elem_bytes, c->rank, c->dim);
		point(&l, TC_STORED, &c->dst, c->elem_bytes, c->rank, c->dim);
		break;
	}
	case ISA_GATHER: gather(&l, p); break;
	case ISA_SCATTER: scatter(&l, p); break;
	case ISA_RNG: rng(&l, p); break;
	case ISA_MM: product(&l, p); break;
	case ISA_CONV: convolution(&l, p); break;
	case ISA_FFT: transform(&l, p); break;
	default: scalar(&l, p); break;
	}
	return l.n;
}

bool tc_mirror(const struct image *im, const struct isa_insn *insn, const struct tc_access *a,
	       unsigned n, struct tc_access *out)
{
	const struct image_binding *b;

	if (insn->op != ISA_RPUT || n != 2)
		return false;
	b = &im->bindings[a[1].walk.binding];
	if (b->kind != IMAGE_PEER_DATA || !im->n_slots)
		return false;
	*out = a[1];
	out->walk.binding = (uint16_t)(b->index / im->n_slots);
	out->walk.is_unordered = false;
	return true;
}

unsigned tc_add_lent(const struct image *im, struct tc_access *a, unsigned n)
{
	struct tc_access lent[ISA_MAX_IN];
	unsigned n_in = 0, n_lent = 0;

	for (; n_in < n && a[n_in].role < TC_STORED; n_in++) {
		unsigned k = a[n_in].walk.binding;

		if (k >= im->n_bindings || im->bindings[k].kind != IMAGE_PEER_DATA ||
		    !im->n_slots || n_lent == ISA_MAX_IN)
			continue;
		lent[n_lent] = a[n_in];
		lent[n_lent].role = TC_AS_WHOLE;
		lent[n_lent++].walk.binding = (uint16_t)(im->bindings[k].index / im->n_slots);
	}
	if (!n_lent)
		return n;
	memmove(a + n_in + n_lent, a + n_in, (n - n_in) * sizeof(*a));
	memcpy(a + n_in, lent, n_lent * sizeof(*a));
	return n + n_lent;
}

const char *tc_clash(const struct tc_access *out, const struct tc_access *other)
{
	enum tc_alias meet = tc_alias(&out->walk, &other->walk);

	if (meet == TC_APART)
		return NULL;
	if (other->role >= TC_STORED)
		return "another output";
	if (meet == TC_EQUAL && out->role == TC_STORED && other->role == TC_AT_POINT)
		return NULL;
	return meet == TC_EQUAL ? "an input that is not read point by point" :
				  "an input otherwise than element for element";
}
