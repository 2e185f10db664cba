/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operands as sets of bytes, and whether two meet.
 *
 * Two accesses meet if their addresses' difference, a sum of steps of both, falls within
 * an element. The steps are sorted by size and the largest are settled first: for each,
 * what the smaller ones can still add leaves only few counts to try. Over arrays, whose
 * strides contain each other, that is one or two a range, so the search is short; a
 * budget bounds it for all else.
 */
#include "hal/hw/isa_access.h"

#include <string.h>

#define MAX_RANGES (ISA_MAX_RANK + ISA_MAX_INDEX)
#define BUDGET 20000	/* counts to try */

/* ---- whether sets of bytes meet ---- */

/* lo <= i <= hi steps of `stride` > 0. */
struct term { int64_t lo, hi, stride; };

struct terms {
	unsigned n;
	struct term t[2 * MAX_RANGES];
	unsigned budget;
};

static int64_t floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

/* Adds i * stride for lo <= i <= hi, keeping the largest stride first. */
static void add_term(struct terms *s, int64_t lo, int64_t hi, int64_t stride)
{
	unsigned k = s->n;

	if (stride < 0) {
		int64_t t = lo;

		lo = -hi;
		hi = -t;
		stride = -stride;
	}
	for (unsigned i = 0; i < s->n; i++)
		if (s->t[i].stride == stride) {
			s->t[i].lo += lo;
			s->t[i].hi += hi;
			return;
		}
	for (; k && s->t[k - 1].stride < stride; k--)
		s->t[k] = s->t[k - 1];
	s->t[k] = (struct term){ lo, hi, stride };
	s->n++;
}

/* Whether terms from k on can sum up to any of [lo, hi]. */
static bool can_reach(struct terms *s, unsigned k, int64_t lo, int64_t hi)
{
	int64_t least = 0, most = 0, first, last;
	const struct term *t = &s->t[k];

	if (k == s->n)
		return lo <= 0 && hi >= 0;
	for (unsigned i = k + 1; i < s->n; i++) {
		least += s->t[i].lo * s->t[i].stride;
		most += s->t[i].hi * s->t[i].stride;
	}
	first = -floor_div(-(lo - most), t->stride);
	last = floor_div(hi - least, t->stride);
	first = first > t->lo ? first : t->lo;
	last = last < t->hi ? last : t->hi;
	for (int64_t i = first; i <= last; i++) {
		if (!s->budget)
			return true;
		s->budget--;
		if (can_reach(s, k + 1, lo - i * t->stride, hi - i * t->stride))
			return true;
	}
	return false;
}

static void add_range(struct isa_runs *x, int64_t count, int64_t stride)
{
	unsigned k = x->n;

	if (count == 1 || !stride)
		return;
	if (stride < 0) {
		stride = -stride;
		x->lowest -= (count - 1) * stride;
	}
	for (; k && x->range[k - 1].stride > stride; k--)
		x->range[k] = x->range[k - 1];
	x->range[k] = (struct isa_range){ count, stride };
	x->n++;
}

struct isa_runs isa_access_runs(const struct isa_access *a, int64_t at)
{
	struct isa_runs x = { .lowest = at, .bytes = a->bytes };
	unsigned side = 0;

	for (unsigned k = 0; k < a->n; k++)
		add_range(&x, a->range[k].count, a->range[k].stride);
	while (side < x.n && x.range[side].stride <= x.bytes) {
		x.bytes += (x.range[side].count - 1) * x.range[side].stride;
		side++;
	}
	x.n -= side;
	memmove(x.range, x.range + side, x.n * sizeof(*x.range));
	return x;
}

static int64_t end_of(const struct isa_runs *x)
{
	int64_t end = x->lowest + x->bytes;

	for (unsigned k = 0; k < x->n; k++)
		end += (x->range[k].count - 1) * x->range[k].stride;
	return end;
}

bool isa_access_meet(const struct isa_access *a, int64_t a_at, const struct isa_access *b,
		     int64_t b_at)
{
	struct isa_runs x = isa_access_runs(a, a_at), y = isa_access_runs(b, b_at);
	struct terms s = { .budget = BUDGET };
	int64_t apart = y.lowest - x.lowest;

	if (end_of(&x) <= y.lowest || end_of(&y) <= x.lowest)
		return false;
	for (unsigned k = 0; k < x.n; k++)
		add_term(&s, 0, x.range[k].count - 1, x.range[k].stride);
	for (unsigned k = 0; k < y.n; k++)
		add_term(&s, 1 - y.range[k].count, 0, y.range[k].stride);
	/* x begins before y ends, and the other way round */
	return can_reach(&s, 0, apart - x.bytes + 1, apart + y.bytes - 1);
}

void isa_access_span(const struct isa_access *a, int64_t *lo, int64_t *hi)
{
	*lo = 0;
	*hi = a->bytes;
	for (unsigned k = 0; k < a->n; k++)
		*(a->range[k].stride < 0 ? lo : hi) +=
			(a->range[k].count - 1) * a->range[k].stride;
}

/* Whether both are at the same place at every point. */
static bool is_same(const struct isa_access *a, int64_t a_at, const struct isa_access *b,
		    int64_t b_at)
{
	unsigned n = a->n > b->n ? a->n : b->n;

	if (a_at != b_at || a->bytes != b->bytes)
		return false;
	for (unsigned k = 0; k < n; k++)
		if ((k < a->n ? a->range[k].stride : 0) != (k < b->n ? b->range[k].stride : 0))
			return false;
	return true;
}

bool isa_conflict(const struct isa_access *a, int64_t a_at, const struct isa_access *b,
		  int64_t b_at)
{
	if ((!a->is_write && !b->is_write) || a->is_peer != b->is_peer)
		return false;
	if (a->is_write != b->is_write && a->may_match && b->may_match &&
	    is_same(a, a_at, b, b_at))
		return false;
	return isa_access_meet(a, a_at, b, b_at);
}

bool isa_repeats(const struct isa_access *a)
{
	struct isa_runs x = { .bytes = a->bytes };
	int64_t below = a->bytes;
	unsigned k;

	for (k = 0; k < a->n; k++) {
		if (!(a->distinct >> k & 1) || a->range[k].count == 1)
			continue;
		if (!a->range[k].stride)
			return true;
		add_range(&x, a->range[k].count, a->range[k].stride);
	}
	/* Ranges that step over all that the smaller ones span never come back. */
	for (k = 0; k < x.n && x.range[k].stride >= below; k++)
		below += (x.range[k].count - 1) * x.range[k].stride;
	/* Else: two points whose largest difference is in range k. */
	for (; k < x.n; k++) {
		struct terms s = { .budget = BUDGET };

		for (unsigned i = 0; i < k; i++)
			add_term(&s, 1 - x.range[i].count, x.range[i].count - 1,
				 x.range[i].stride);
		for (int64_t i = 1; i < x.range[k].count && s.budget; i++, s.budget--)
			if (can_reach(&s, 0, 1 - x.bytes - i * x.range[k].stride,
				      x.bytes - 1 - i * x.range[k].stride))
				return true;
		if (!s.budget)
			return true;
	}
	return false;
}

/* ---- what instructions touch ---- */

struct list {
	struct isa_access *a;
	unsigned n;
};

/* A new access of one element; ranges follow. */
static struct isa_access *add(struct list *l, const struct isa_operand *op, unsigned operand,
			      unsigned bytes, bool is_write, bool may_match)
{
	struct isa_access *a = &l->a[l->n++];

	*a = (struct isa_access){ .operand = (uint8_t)operand, .reg = op->reg,
				  .binding = op->binding, .offset = op->offset,
				  .is_write = is_write, .may_match = may_match,
				  .bytes = bytes };
	return a;
}

static void add_dims(struct isa_access *a, unsigned n, const int64_t *dim,
		     const int64_t *stride)
{
	for (unsigned d = 0; d < n; d++, a->n++) {
		a->range[a->n] = (struct isa_range){ dim[d], dim[d] > 1 ? stride[d] : 0 };
		a->distinct |= 1u << a->n;
	}
}

/* Dims of `mask` count as one step: the operand stands still there. */
static void stand_still(struct isa_access *a, uint32_t mask)
{
	for (unsigned k = 0; k < a->n; k++)
		if (mask >> k & 1)
			a->range[k] = (struct isa_range){ 1, 0 };
}

static void add_body_operand(struct list *l, const struct isa_body *b,
			     const struct isa_operand *op, unsigned operand, bool is_write)
{
	add_dims(add(l, op, operand, elem_bytes(op->elem), is_write, true), b->rank, b->dim,
		 op->stride);
}

static bool is_empty(const int64_t *dim, unsigned n)
{
	for (unsigned d = 0; d < n; d++)
		if (!dim[d])
			return true;
	return false;
}

/* Whether value v of a body is a row value (isa.h). */
static bool is_row_value(const struct isa_body *b, const struct isa_uop *uops, unsigned v)
{
	bool row[ISA_MAX_VALUES] = { false };
	unsigned at = b->n_in, outer = b->rank - b->row_rank;

	for (unsigned i = 0; i < b->n_uop && at < ISA_MAX_VALUES; i++, at++) {
		const struct isa_uop *u = &uops[i];
		const uint8_t arg[3] = { u->a, u->b, u->c };

		row[at] = u->op != UOP_IOTA || u->aux < outer;
		if (u->op >= UOP_RADD && u->op <= UOP_RXOR)
			continue;
		for (unsigned k = 0; k < isa_uop_info(u->op)->n_args; k++)
			row[at] &= row[arg[k]];
	}
	return b->row_rank && v < at && row[v];
}

/* What an output of VEC touches; nothing if it stores over no points. */
static void add_vec_out(struct list *l, const struct isa_tensor *t,
			const struct isa_operand *out, const struct isa_uop *uops, unsigned j)
{
	const struct isa_body *b = &t->body;
	unsigned outer = b->rank - b->row_rank;
	int64_t dim[ISA_MAX_RANK];
	uint32_t still = 0;
	struct isa_access *a;

	memcpy(dim, b->dim, sizeof(dim));
	for (unsigned d = 0; d < b->rank && out->combine; d++)
		if (dim[d] <= 1 || !out->stride[d]) {
			still |= 1u << d;
			/* the fold of nothing is stored, too */
			dim[d] = dim[d] || out->stride[d] || out->flags & ISA_OPERAND_ACC ?
				dim[d] : 1;
		}
	if (is_empty(dim, b->rank))
		return;
	if (!out->combine && is_row_value(b, uops, out->value))
		for (unsigned d = outer; d < b->rank; d++)
			still |= (uint32_t)!out->stride[d] << d;
	a = add(l, out, b->n_in + j, elem_bytes(out->elem), true, !out->combine);
	a->is_acc = out->flags & ISA_OPERAND_ACC;
	add_dims(a, b->rank, dim, out->stride);
	stand_still(a, still);
}

static void list_vec(struct list *l, const struct isa_tensor *t)
{
	const struct isa_body *b = &t->body;
	const struct isa_operand *in = (const void *)(t + 1), *out = in + b->n_in;
	const struct isa_uop *uops = (const void *)(out + b->n_out);

	for (unsigned j = 0; j < b->n_in && !is_empty(b->dim, b->rank); j++)
		add_body_operand(l, b, &in[j], j, false);
	for (unsigned j = 0; j < b->n_out; j++)
		add_vec_out(l, t, &out[j], uops, j);
}

static void list_reduce(struct list *l, const struct isa_tensor *t)
{
	const struct isa_body *b = &t->body;
	const struct isa_operand *op = (const void *)(t + 1);
	unsigned k = b->n_out;

	for (unsigned d = 0; d < b->rank; d++)
		if (!(t->reduce_dims >> d & 1) && !b->dim[d])
			return;
	for (unsigned j = 0; j < 3 * k; j++) {
		if (j >= k && j < 2 * k && is_empty(b->dim, b->rank))
			continue;
		add_body_operand(l, b, &op[j], j, j >= 2 * k);
		if (j < k || j >= 2 * k)
			stand_still(&l->a[l->n - 1], t->reduce_dims);
	}
}

static void list_copy(struct list *l, const struct isa_copy *c)
{
	if (is_empty(c->dim, c->rank))
		return;
	add_dims(add(l, &c->src, 0, c->elem_bytes, false, true), c->rank, c->dim,
		 c->src.stride);
	add_dims(add(l, &c->dst, 1, c->elem_bytes, true, true), c->rank, c->dim,
		 c->dst.stride);
	l->a[l->n - 1].is_peer = c->insn.op == ISA_RPUT;
}

/* Index vectors: one a batch point. */
static void add_indices(struct list *l, const struct isa_operand *idx, unsigned n_batch,
			const int64_t *dim, unsigned n_index, int64_t stride)
{
	const int64_t count = n_index;
	struct isa_access *a;

	if (!n_index)
		return;
	a = add(l, idx, 1, elem_bytes(idx->elem), false, false);
	add_dims(a, n_batch, dim, idx->stride);
	add_dims(a, 1, &count, &stride);
}

static void add_table(struct list *l, const struct isa_operand *op, unsigned operand,
		      bool is_write, unsigned rank, unsigned n_batch, const int64_t *dim,
		      const struct isa_index *index, unsigned n_index)
{
	struct isa_access *a = add(l, op, operand, elem_bytes(op->elem), is_write, false);

	a->is_table = true;
	add_dims(a, rank, dim, op->stride);
	/* windows may meet; the points of one may not */
	a->distinct &= ~((1u << n_batch) - 1);
	for (unsigned k = 0; k < n_index; k++)
		a->range[a->n++] = (struct isa_range){
			index[k].limit + 1, index[k].limit ? index[k].step : 0 };
}

static void list_gather(struct list *l, const struct isa_gather *g)
{
	if (is_empty(g->dim, g->rank))
		return;
	add_table(l, &g->src, 0, false, g->rank, g->n_batch, g->dim, g->index, g->n_index);
	add_indices(l, &g->idx, g->n_batch, g->dim, g->n_index, g->index_stride);
	add_dims(add(l, &g->dst, 2, elem_bytes(g->dst.elem), true, false), g->rank, g->dim,
		 g->dst.stride);
}

/* Whether a body looks at value v or stores it. */
static bool has_use(const struct isa_body *b, const struct isa_operand *out,
		    const struct isa_uop *uops, unsigned v)
{
	for (unsigned j = 0; j < b->n_out; j++)
		if (out[j].value == v)
			return true;
	for (unsigned i = 0; i < b->n_uop; i++) {
		const uint8_t arg[3] = { uops[i].a, uops[i].b, uops[i].c };

		for (unsigned k = 0; k < isa_uop_info(uops[i].op)->n_args; k++)
			if (arg[k] == v)
				return true;
	}
	return false;
}

static void list_scatter(struct list *l, const struct isa_scatter *s)
{
	const struct isa_body *b = &s->body;
	const struct isa_operand *upd = (const void *)(s + 1), *dst = upd + b->n_in;

	if (is_empty(b->dim, b->rank))
		return;
	add_indices(l, &s->idx, s->n_batch, b->dim, s->n_index, s->index_stride);
	for (unsigned j = 0; j < b->n_in; j++) {
		add_body_operand(l, b, &upd[j], 2 + j, false);
		l->a[l->n - 1].may_match = false;
	}
	for (unsigned j = 0; j < b->n_out; j++) {
		add_table(l, &dst[j], 2u + b->n_in + j, true, b->rank, s->n_batch, b->dim,
			  s->index, s->n_index);
		l->a[l->n - 1].is_acc = has_use(b, dst, (const void *)(dst + b->n_out), j);
	}
}

/* Inputs and outputs of a body whose operands count from `first`. */
static void list_body(struct list *l, const struct isa_body *b, const struct isa_operand *in,
		      unsigned first)
{
	for (unsigned j = 0; j < b->n_in + (unsigned)b->n_out; j++)
		add_body_operand(l, b, &in[j], first + j, j >= b->n_in);
}

static void list_sort(struct list *l, const struct isa_sort *s)
{
	if (!is_empty(s->body.dim, s->body.rank))
		list_body(l, &s->body, (const void *)(s + 1), 0);
}

static void list_rng(struct list *l, const struct isa_rng *r)
{
	const int64_t state = r->state_words, words = (int64_t)r->n_words;
	const int64_t eight = 8, four = 4;

	add_dims(add(l, &r->state, 0, 8, false, true), 1, &state, &eight);
	add_dims(add(l, &r->new_state, 1, 8, true, true), 1, &state, &eight);
	if (words)
		add_dims(add(l, &r->out, 2, 4, true, false), 1, &words, &four);
}

/* Real lines and the halves that stand for them have other counts, and other elements. */
static void list_fft(struct list *l, const struct isa_fft *f)
{
	bool may_match = f->src.elem == f->dst.elem;
	int64_t src[ISA_MAX_RANK], dst[ISA_MAX_RANK];

	if (is_empty(f->dim, f->rank))
		return;
	memcpy(src, f->dim, sizeof(src));
	memcpy(dst, f->dim, sizeof(dst));
	isa_fft_counts(f, &src[f->axis], &dst[f->axis]);
	add_dims(add(l, &f->src, 0, elem_bytes(f->src.elem), false, may_match), f->rank, src,
		 f->src.stride);
	add_dims(add(l, &f->dst, 1, elem_bytes(f->dst.elem), true, may_match), f->rank, dst,
		 f->dst.stride);
}

static void list_mm(struct list *l, const struct isa_mm *m)
{
	const struct isa_body *b = &m->body;

	if (is_empty(b->dim, b->rank))
		return;
	for (unsigned j = 0; j < 2 && m->k; j++) {
		const struct isa_operand *op = j ? &m->b : &m->a;
		struct isa_access *a = add(l, op, j, elem_bytes(op->elem), false, false);

		add_dims(a, b->rank, b->dim, op->stride);
		add_dims(a, 1, &m->k, j ? &m->b_k_stride : &m->a_k_stride);
	}
	list_body(l, b, (const void *)(m + 1), 2);
}

static void list_conv(struct list *l, const struct isa_conv *c)
{
	const struct isa_body *b = &c->body;
	unsigned n = c->n_spatial + 2u;
	int64_t lhs[ISA_MAX_RANK], rhs[ISA_MAX_RANK];

	if (is_empty(b->dim, b->rank))
		return;
	lhs[0] = b->dim[0] * c->batch_groups;
	lhs[1] = c->in_features * c->feature_groups;
	rhs[0] = b->dim[1];
	rhs[1] = c->in_features;
	memcpy(lhs + 2, c->in_size, c->n_spatial * sizeof(*lhs));
	memcpy(rhs + 2, c->kernel, c->n_spatial * sizeof(*rhs));
	if (!is_empty(lhs, n) && !is_empty(rhs, n)) {
		add_dims(add(l, &c->lhs, 0, elem_bytes(c->lhs.elem), false, false), n, lhs,
			 c->lhs.stride);
		add_dims(add(l, &c->rhs, 1, elem_bytes(c->rhs.elem), false, false), n, rhs,
			 c->rhs.stride);
	}
	list_body(l, b, (const void *)(c + 1), 2);
}

static void list_scalar(struct list *l, const struct isa_scalar *s, bool is_write)
{
	const struct isa_operand op = { .reg = s->ra, .binding = s->binding,
					.offset = s->imm };

	add(l, &op, 0, elem_bytes(s->elem), is_write, false)->is_peer = s->insn.op == ISA_RSIG;
}

unsigned isa_accesses(const struct isa_insn *insn, struct isa_access *out)
{
	const void *p = insn;
	struct list l = { .a = out };

	switch (insn->op) {
	case ISA_LD:
	case ISA_RWAIT: list_scalar(&l, p, false); break;
	case ISA_ST:
	case ISA_RSIG: list_scalar(&l, p, true); break;
	case ISA_VEC: list_vec(&l, p); break;
	case ISA_REDUCE: list_reduce(&l, p); break;
	case ISA_COPY:
	case ISA_RPUT: list_copy(&l, p); break;
	case ISA_GATHER: list_gather(&l, p); break;
	case ISA_SCATTER: list_scatter(&l, p); break;
	case ISA_SORT: list_sort(&l, p); break;
	case ISA_RNG: list_rng(&l, p); break;
	case ISA_FFT: list_fft(&l, p); break;
	case ISA_MM: list_mm(&l, p); break;
	case ISA_CONV: list_conv(&l, p); break;
	default: break;
	}
	return l.n;
}
