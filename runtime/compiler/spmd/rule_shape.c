/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of ops that combine elements by place, move them, or multiply matrices. */
#include <string.h>

#include "runtime/compiler/spmd/rule_internal.h"

/* One factor for each dim, everywhere alike; scalars have none. */
void rule_pointwise(struct rule_build *b)
{
	unsigned out = rule_result(b, 0);

	if (!b->op->n_results)
		return;
	for (unsigned d = 0; d < rule_type(b, out)->rank; d++)
		rule_put_all(b, 0, d, rule_factor(b, rule_type(b, out)->dim[d], SPMD_PASS));
}

/* Of the two the one with more dims has a dim for the parts of an element. */
void rule_bitcast(struct rule_build *b)
{
	const struct tc_type *in = rule_type(b, 0), *out = rule_type(b, 1);
	unsigned rank = in->rank < out->rank ? in->rank : out->rank;

	for (unsigned d = 0; d < rank; d++)
		rule_put_all(b, 0, d, rule_factor(b, in->dim[d], SPMD_PASS));
	if (in->rank > rank)
		rule_own(b, 0, rank, SPMD_REPLICATE);
	if (out->rank > rank)
		rule_own(b, 1, rank, SPMD_REPLICATE);
}

void rule_broadcast(struct rule_build *b)
{
	const struct tc_type *in = rule_type(b, 0), *out = rule_type(b, 1);
	unsigned n;
	const int64_t *dims = tc_attr_ints(b->op, "broadcast_dimensions", &n);

	for (unsigned d = 0; d < in->rank; d++) {
		unsigned f = rule_own(b, 0, d, SPMD_PASS);

		if (in->dim[d] == out->dim[dims[d]])
			rule_put(b, 1, (unsigned)dims[d], f);
	}
	rule_fill(b);
}

void rule_transpose(struct rule_build *b)
{
	unsigned n;
	const int64_t *perm = tc_attr_ints(b->op, "permutation", &n);

	for (unsigned d = 0; d < n; d++)
		rule_put(b, 1, d, rule_own(b, 0, (unsigned)perm[d], SPMD_PASS));
}

/* A dim of a reshape in the making: what is left of it to be given factors. */
struct side { unsigned tensor, d; int64_t left; };

static bool start_dim(struct rule_build *b, struct side *s)
{
	const struct tc_type *t = rule_type(b, s->tensor);

	for (; s->left <= 1 && s->d < t->rank; s->d++)
		s->left = t->dim[s->d] == 1 ? 1 : t->dim[s->d];
	return s->left > 1;
}

static void part(struct rule_build *b, struct side *s, unsigned factor, int64_t size)
{
	rule_put(b, s->tensor, s->d - 1, factor);
	s->left /= size;
}

/* Gives what is left of both dims, which has no common divisor, factors of their own, and goes
 * on so until both sides have had the same number of elements. */
static void skip_apart(struct rule_build *b, struct side *in, struct side *out)
{
	int64_t n_in = in->left, n_out = out->left;

	part(b, in, rule_factor(b, in->left, SPMD_PASS), in->left);
	part(b, out, rule_factor(b, out->left, SPMD_PASS), out->left);
	while (n_in != n_out) {
		struct side *s = n_in < n_out ? in : out;
		int64_t *done = s == in ? &n_in : &n_out;
		int64_t wants = (s == in ? n_out : n_in) / rule_gcd(n_in, n_out), g;

		if (!start_dim(b, s))
			return;
		g = rule_gcd(s->left, wants);
		if (g == 1)
			g = s->left;
		*done *= g;
		part(b, s, rule_factor(b, g, SPMD_PASS), g);
	}
}

void rule_reshape(struct rule_build *b)
{
	struct side in = { 0, 0, 1 }, out = { 1, 0, 1 };

	if (rule_type(b, 0)->count == 0) {
		rule_fill(b);
		return;
	}
	while (start_dim(b, &in) && start_dim(b, &out)) {
		int64_t g = rule_gcd(in.left, out.left);
		unsigned f;

		if (g == 1) {
			skip_apart(b, &in, &out);
			continue;
		}
		f = rule_factor(b, g, SPMD_PASS);
		part(b, &in, f, g);
		part(b, &out, f, g);
	}
	rule_fill(b);
}

void rule_reverse(struct rule_build *b)
{
	unsigned n;
	const int64_t *dims = tc_attr_ints(b->op, "dimensions", &n);

	for (unsigned d = 0; d < rule_type(b, 0)->rank; d++)
		rule_put(b, 1, d, rule_own(b, 0, d, tc_is_listed(dims, n, d) ? SPMD_PERMUTATION :
					   SPMD_PASS));
}

/* Dims that keep their size pass, others move. */
static void same_or_moved(struct rule_build *b)
{
	const struct tc_type *in = rule_type(b, 0), *out = rule_type(b, rule_result(b, 0));

	for (unsigned d = 0; d < in->rank; d++)
		rule_put(b, rule_result(b, 0), d,
			 rule_own(b, 0, d, in->dim[d] == out->dim[d] ? SPMD_PASS :
				  SPMD_PERMUTATION));
}

void rule_slice(struct rule_build *b)
{
	same_or_moved(b);
}

void rule_pad(struct rule_build *b)
{
	same_or_moved(b);
}

/* Of slices of one value: what was rolled around. */
static bool is_roll(const struct tc_op *op)
{
	for (unsigned i = 0; i < op->n_operands; i++) {
		const struct tc_op *def = tc_in(op, i)->def;

		if (!def || def->op != TC_SLICE ||
		    tc_in(def, 0) != tc_in(tc_in(op, 0)->def, 0))
			return false;
	}
	return op->n_operands > 1;
}

void rule_concatenate(struct rule_build *b)
{
	unsigned out = rule_result(b, 0);
	int64_t along = tc_attr_int(b->op, "dimension", 0);

	for (unsigned d = 0; d < rule_type(b, out)->rank; d++)
		rule_put_all(b, 0, d, rule_factor(b, rule_type(b, out)->dim[d],
			     d != along ? SPMD_PASS : is_roll(b->op) ? SPMD_PERMUTATION :
			     SPMD_REPLICATE));
}

void rule_dot(struct rule_build *b)
{
	unsigned n_batch, n_sum, n, at;
	const int64_t *lb = tc_attr_ints(b->op, "lhs_batching_dimensions", &n_batch);
	const int64_t *rb = tc_attr_ints(b->op, "rhs_batching_dimensions", &n);
	const int64_t *lc = tc_attr_ints(b->op, "lhs_contracting_dimensions", &n_sum);
	const int64_t *rc = tc_attr_ints(b->op, "rhs_contracting_dimensions", &n);

	for (at = 0; at < n_batch; at++) {
		unsigned f = rule_own(b, 0, (unsigned)lb[at], SPMD_PASS);

		rule_put(b, 1, (unsigned)rb[at], f);
		rule_put(b, 2, at, f);
	}
	for (unsigned d = 0; d < rule_type(b, 0)->rank; d++)
		if (!tc_is_listed(lb, n_batch, d) && !tc_is_listed(lc, n_sum, d))
			rule_put(b, 2, at++, rule_own(b, 0, d, SPMD_PASS));
	for (unsigned d = 0; d < rule_type(b, 1)->rank; d++)
		if (!tc_is_listed(rb, n_batch, d) && !tc_is_listed(rc, n_sum, d))
			rule_put(b, 2, at++, rule_own(b, 1, d, SPMD_PASS));
	for (unsigned i = 0; i < n_sum; i++)
		rule_put(b, 1, (unsigned)rc[i],
			 rule_own(b, 0, (unsigned)lc[i], SPMD_REDUCTION));
}

void rule_reduce(struct rule_build *b)
{
	unsigned n, kept = 0, n_in = b->op->n_operands / 2;
	const int64_t *dims = tc_attr_ints(b->op, "dimensions", &n);

	for (unsigned d = 0; d < rule_type(b, 0)->rank; d++) {
		bool is_gone = tc_is_listed(dims, n, d);
		unsigned f = rule_factor(b, rule_type(b, 0)->dim[d],
					 is_gone ? SPMD_REDUCTION : SPMD_PASS);

		for (unsigned i = 0; i < n_in; i++) {
			rule_put(b, i, d, f);
			if (!is_gone)
				rule_put(b, rule_result(b, i), kept, f);
		}
		kept += !is_gone;
	}
}

void rule_sort(struct rule_build *b)
{
	const struct tc_type *t = rule_type(b, 0);
	int64_t along = tc_attr_int(b->op, "dimension", 0);

	for (unsigned d = 0; d < t->rank; d++) {
		unsigned f = rule_factor(b, t->dim[d], d == along ? SPMD_REPLICATE : SPMD_PASS);

		b->r->factor[f].is_blocked = d == along && t->count == t->dim[d];
		rule_put_all(b, 0, d, f);
	}
}

void rule_top_k(struct rule_build *b)
{
	const struct tc_type *t = rule_type(b, 0);

	for (unsigned d = 0; d < t->rank; d++) {
		bool is_last = d + 1u == t->rank;
		unsigned f = rule_factor(b, t->dim[d], is_last ? SPMD_REPLICATE : SPMD_PASS);

		b->r->factor[f].is_blocked = is_last;
		rule_put_all(b, 0, d, f);
	}
}

void rule_fft(struct rule_build *b)
{
	const struct tc_type *in = rule_type(b, 0), *out = rule_type(b, 1);
	unsigned n, first = tc_fft_first(b->op);

	tc_attr_ints(b->op, "fft_length", &n);
	for (unsigned d = 0; d < in->rank; d++) {
		bool is_along = d >= first && d < first + n;
		unsigned f = rule_own(b, 0, d, is_along ? SPMD_REPLICATE : SPMD_PASS);

		b->r->factor[f].is_blocked = in->dim[d] != out->dim[d];
		rule_put(b, 1, d, f);
	}
}

/* Matrices in the last two dims; before these all tensors have the same. */
void rule_matrices(struct rule_build *b)
{
	unsigned rank = rule_type(b, 0)->rank;

	for (unsigned d = 0; d < rank; d++) {
		unsigned f = rule_factor(b, rule_type(b, 0)->dim[d],
					 d + 2 >= rank ? SPMD_REPLICATE : SPMD_PASS);

		for (unsigned t = 0; t < b->r->n_tensors; t++)
			if (d < rule_type(b, t)->rank &&
			    rule_type(b, t)->dim[d] == rule_type(b, 0)->dim[d])
				rule_put(b, t, d, f);
	}
	for (unsigned t = 0; t < b->r->n_tensors; t++)
		for (unsigned d = 0; d < rule_type(b, t)->rank; d++)
			if (!b->r->tensor[t][d].n)
				rule_own(b, t, d, SPMD_REPLICATE);
}

void rule_random_bits(struct rule_build *b)
{
	for (unsigned d = 0; d < rule_type(b, 0)->rank; d++) {
		unsigned f = rule_own(b, 0, d, SPMD_REPLICATE);

		b->r->factor[f].is_blocked = true;
		rule_put(b, 1, d, f);
	}
	rule_fill(b);
}

/* A collective's own dim is whole before and after, others pass. Operands need not be of one shape:
 * each has dims in common with its result alone. */
static void all_but(struct rule_build *b, int64_t in_dim, int64_t out_dim)
{
	for (unsigned i = 0; i < b->op->n_operands; i++)
		for (unsigned d = 0; d < rule_type(b, i)->rank; d++) {
			bool is_own = d == in_dim || d == out_dim;
			unsigned f = rule_own(b, i, d, is_own ? SPMD_REPLICATE : SPMD_PASS);

			if (is_own)
				rule_own(b, rule_result(b, i), d, SPMD_REPLICATE);
			else
				rule_put(b, rule_result(b, i), d, f);
		}
}

void rule_all_reduce(struct rule_build *b)
{
	all_but(b, -1, -1);
}

void rule_all_gather(struct rule_build *b)
{
	int64_t along = tc_attr_int(b->op, "all_gather_dim", 0);

	all_but(b, along, along);
}

void rule_reduce_scatter(struct rule_build *b)
{
	int64_t along = tc_attr_int(b->op, "scatter_dimension", 0);

	all_but(b, along, along);
}

void rule_all_to_all(struct rule_build *b)
{
	all_but(b, tc_attr_int(b->op, "split_dimension", 0),
		tc_attr_int(b->op, "concat_dimension", 0));
}
