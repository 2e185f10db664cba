/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies: of homes, whatever their strides; of values to where they are in nobody's way; of many
 * values as if at once. A copy along more dims than an instruction walks is several, or goes by way
 * of a temporary.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/compiler/back/emit.h"

#define LINE_BYTES 64		/* of a cache */
#define MOST_COPIES 4096	/* that one of many dims is made of: a MiB of instructions */
#define AT_ONCE 6		/* dims that one of more than that brings to the front */

static void copy(struct emit *e, enum isa_opcode op, unsigned rank, const int64_t *dim,
		 unsigned elem_size, const struct home *src, const struct home *dst);

/* Joins neighbours that both sides walk as one; returns how many dims are left. */
static unsigned join_walked(unsigned n, int64_t *dim, int64_t *s, int64_t *t)
{
	unsigned left = 0;

	for (unsigned i = 0; i < n; i++) {
		if (dim[i] == 1)
			continue;
		if (left && s[left - 1] == s[i] * dim[i] && t[left - 1] == t[i] * dim[i]) {
			dim[left - 1] *= dim[i];
			s[left - 1] = s[i];
			t[left - 1] = t[i];
			continue;
		}
		dim[left] = dim[i];
		s[left] = s[i];
		t[left++] = t[i];
	}
	return left;
}

/* Takes the shortest dims out until an instruction walks the rest. Returns the product of their
 * lengths, MOST_COPIES + 1 for more than MOST_COPIES. */
static int64_t take_shortest(unsigned *n, int64_t *dim, int64_t *s, int64_t *t, int64_t *length,
			     int64_t *from, int64_t *to)
{
	int64_t parts = 1;

	for (unsigned taken = 0; *n > ISA_MAX_RANK; taken++) {
		unsigned k = 0;

		for (unsigned i = 1; i < *n; i++)
			if (dim[i] < dim[k])
				k = i;
		length[taken] = dim[k];
		from[taken] = s[k];
		to[taken] = t[k];
		if (__builtin_mul_overflow(parts, dim[k], &parts) || parts > MOST_COPIES)
			return MOST_COPIES + 1;
		for (--*n; k < *n; k++) {
			dim[k] = dim[k + 1];
			s[k] = s[k + 1];
			t[k] = t[k + 1];
		}
	}
	return parts;
}

/* The dims from `first` on by the length of their steps, longest first. */
static void order_by_steps(unsigned first, unsigned n, unsigned *order, const int64_t *stride)
{
	for (unsigned i = first + 1; i < n; i++)
		for (unsigned k = i; k > first && llabs(stride[order[k]]) >
						  llabs(stride[order[k - 1]]); k--) {
			unsigned one = order[k];

			order[k] = order[k - 1];
			order[k - 1] = one;
		}
}

static void copy_through(struct emit *e, enum isa_opcode op, unsigned n, const int64_t *dim,
			 unsigned elem_size, const struct home *src, const struct home *dst);

/*
 * More dims than an instruction walks, of which no two are one: the shortest ones are walked here,
 * with an instruction for each of their places; or it is done in two turns.
 */
static void copy_in_parts(struct emit *e, enum isa_opcode op, unsigned n, const int64_t *dim,
			  unsigned elem_size, const struct home *src, const struct home *dst)
{
	int64_t length[TC_MAX_RANK], from[TC_MAX_RANK], to[TC_MAX_RANK], parts, left[TC_MAX_RANK];
	struct home in = *src, out = *dst;
	unsigned n_left = n;

	memcpy(left, dim, n * sizeof(*left));
	parts = take_shortest(&n_left, left, in.stride, out.stride, length, from, to);
	if (parts > MOST_COPIES) {
		copy_through(e, op, n, dim, elem_size, src, dst);
		return;
	}
	for (int64_t part = 0; part < parts; part++) {
		struct home a = in, b = out;

		for (unsigned w = n - n_left, i = (unsigned)part; w-- > 0;
		     i /= (unsigned)length[w]) {
			a.offset += i % length[w] * from[w];
			b.offset += i % length[w] * to[w];
		}
		copy(e, op, n_left, left, elem_size, &a, &b);
	}
}

/* Dims of two homes in an order, as what is to be copied. */
struct walk {
	unsigned n;
	int64_t dim[TC_MAX_RANK];
	struct home src, dst;
};

static void put_in_order(struct walk *w, const struct walk *from, const unsigned *order)
{
	*w = *from;
	for (unsigned i = 0; i < w->n; i++) {
		w->dim[i] = from->dim[order[i]];
		w->src.stride[i] = from->src.stride[order[i]];
		w->dst.stride[i] = from->dst.stride[order[i]];
	}
}

/* Whether so few instructions copy it, once neighbours are joined, or at least that joins some. */
static bool is_quick(struct walk w, bool is_fewer)
{
	int64_t none[TC_MAX_RANK];
	unsigned n = join_walked(w.n, w.dim, w.src.stride, w.dst.stride);

	return (is_fewer && n < w.n) || take_shortest(&n, w.dim, w.src.stride, w.dst.stride, none,
						      none, none) <= MOST_COPIES;
}

/*
 * A copy that would take too many instructions, by way of a temporary: the dims that are outermost
 * in dst come to the front there and the others stay as they lie in src, backwards too, so that
 * each of the two turns walks neighbours on one side that are neighbours on the other.
 */
static void copy_through(struct emit *e, enum isa_opcode op, unsigned n, const int64_t *dim,
			 unsigned elem_size, const struct home *src, const struct home *dst)
{
	struct walk in = { .n = n, .src = *src }, out = { .n = n, .dst = *dst }, first, second;
	int64_t bytes = elem_size;
	unsigned order[TC_MAX_RANK];
	struct home way;

	memcpy(in.dim, dim, n * sizeof(*dim));
	memcpy(out.dim, dim, n * sizeof(*dim));
	for (unsigned i = 0; i < n; i++) {
		order[i] = i;
		bytes *= dim[i];
	}
	way = tc_scratch(e, tc_tensor(e->c, ELEM_U8, 1, &bytes));
	order_by_steps(0, n, order, dst->stride);
	order_by_steps(AT_ONCE, n, order, src->stride);
	in.dst = out.src = way;
	bytes = elem_size;
	for (unsigned i = n; i-- > 0;) {
		unsigned d = order[i];

		in.dst.stride[d] = out.src.stride[d] = bytes;
		if (i >= AT_ONCE && src->stride[d] < 0) {
			in.src.offset += src->stride[d] * (dim[d] - 1);
			in.src.stride[d] = -src->stride[d];
			out.src.offset += bytes * (dim[d] - 1);
			out.src.stride[d] = -bytes;
		}
		bytes *= dim[d];
	}
	put_in_order(&first, &in, order);
	order_by_steps(0, n, order, dst->stride);
	put_in_order(&second, &out, order);
	/* Where what is written has gaps along many dims, that comes to nothing. */
	if (!is_quick(first, false) || !is_quick(second, true))
		tc_refuse_dims(e, "it copies along", n);
	copy(e, ISA_COPY, n, first.dim, elem_size, &first.src, &first.dst);
	copy(e, op, n, second.dim, elem_size, &second.src, &second.dst);
}

static void copy(struct emit *e, enum isa_opcode op, unsigned rank, const int64_t *dim,
		 unsigned elem_size, const struct home *src, const struct home *dst)
{
	int64_t d[TC_MAX_RANK], s[TC_MAX_RANK], t[TC_MAX_RANK];
	struct isa_copy *c;
	unsigned n;
	double bytes = elem_size;
	bool by_lines;

	for (unsigned i = 0; i < rank; i++) {
		if (!dim[i])
			return;
		bytes *= (double)dim[i];
		d[i] = dim[i];
		s[i] = src->stride[i];
		t[i] = dst->stride[i];
	}
	n = join_walked(rank, d, s, t);
	if (n > ISA_MAX_RANK) {
		struct home from = *src, to = *dst;

		memcpy(from.stride, s, n * sizeof(*s));
		memcpy(to.stride, t, n * sizeof(*t));
		copy_in_parts(e, op, n, d, elem_size, &from, &to);
		return;
	}
	/* Rows shorter than a line of a cache take as long as as many elements. */
	by_lines = n && s[n - 1] == elem_size && t[n - 1] == elem_size &&
		   d[n - 1] * elem_size >= LINE_BYTES;
	c = tc_put(e, op, sizeof(*c));
	c->rank = (uint8_t)n;
	c->elem_bytes = (uint8_t)elem_size;
	for (unsigned i = 0; i < ISA_MAX_RANK; i++)
		c->dim[i] = i < n ? d[i] : 1;
	c->src = tc_operand(src, ELEM_INVALID);
	c->dst = tc_operand(dst, ELEM_INVALID);
	for (unsigned i = 0; i < n; i++) {
		c->src.stride[i] = s[i];
		c->dst.stride[i] = t[i];
	}
	e->bytes += 2 * bytes;
	e->cost_ns += bytes * (by_lines ? 0.05 : 0.2);
}

void tc_copy(struct emit *e, unsigned rank, const int64_t *dim, unsigned elem_size,
	     const struct home *src, const struct home *dst)
{
	copy(e, ISA_COPY, rank, dim, elem_size, src, dst);
}

void tc_rput(struct emit *e, unsigned rank, const int64_t *dim, unsigned elem_size,
	     const struct home *src, const struct home *dst)
{
	copy(e, ISA_RPUT, rank, dim, elem_size, src, dst);
}

void tc_copy_value(struct emit *e, const struct tc_type *t, const struct home *src,
		   const struct home *dst)
{
	tc_copy(e, t->rank, t->dim, elem_bytes(t->elem), src, dst);
}

struct home tc_dense(struct emit *e, const struct tc_value *v)
{
	const struct home *h = tc_home(e, v);
	struct home copy;

	if (tc_is_dense(h, v->type))
		return *h;
	copy = tc_scratch(e, v->type);
	tc_copy_value(e, v->type, h, &copy);
	return copy;
}

struct home tc_out_of_the_way(struct emit *e, const struct tc_value *v,
			      const struct home *to, const struct tc_type *const *to_type,
			      unsigned n)
{
	const struct home *h = tc_home(e, v);
	struct home safe;

	if (!tc_home_meets(h, v->type, to, to_type, n))
		return *h;
	safe = tc_scratch(e, v->type);
	tc_copy_value(e, v->type, h, &safe);
	return safe;
}

/* Whether copy i reads what an earlier one has written, or writes what it still reads. */
static bool is_at_risk(const struct move *moves, unsigned i)
{
	const struct move *m = &moves[i];

	if (tc_alias_homes(&m->to, m->type, &m->from, m->type) == TC_OVERLAP)
		return true;
	for (unsigned k = 0; k < i; k++)
		if (moves[k].type && moves[k].to.buf->binding == m->from.buf->binding &&
		    tc_alias_homes(&moves[k].to, moves[k].type, &m->from, m->type) != TC_APART)
			return true;
	return false;
}

void tc_move_all(struct emit *e, struct move *moves, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (moves[i].type &&
		    tc_alias_homes(&moves[i].from, moves[i].type, &moves[i].to,
				   moves[i].type) == TC_EQUAL)
			moves[i].type = NULL;
	for (unsigned i = 0; i < n; i++)
		if (moves[i].type && is_at_risk(moves, i)) {
			struct home safe = tc_scratch(e, moves[i].type);

			tc_copy_value(e, moves[i].type, &moves[i].from, &safe);
			moves[i].from = safe;
		}
	for (unsigned i = 0; i < n; i++)
		if (moves[i].type)
			tc_copy_value(e, moves[i].type, &moves[i].from, &moves[i].to);
}
