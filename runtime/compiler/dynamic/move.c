/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of ops that take elements one by one, or move them (dynamic.h). */
#include <string.h>

#include "runtime/compiler/dynamic/dynamic.h"

void dyn_elementwise(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);

	for (unsigned k = 0; k < op->n_results; k++)
		for (unsigned i = 0; i < op->n_operands; i++)
			for (unsigned d = 0; d < tc_in(op, i)->type->rank; d++)
				dyn_meet(&b, tc_out(op, k), d, dyn_size_of(tc_in(op, i), d));
}

void dyn_broadcast(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_value *x = tc_in(op, 0), *out = tc_out(op, 0);
	const int64_t *to;
	unsigned n;

	to = tc_attr_ints(op, "broadcast_dimensions", &n);
	for (unsigned d = 0; d < n; d++) {
		if (dyn_size_of(x, d) && x->type->dim[d] != out->type->dim[to[d]])
			dyn_refuse(c, op, 0, d, "whether it is repeated depends on it");
		dyn_set(c, out, (unsigned)to[d], dyn_size_of(x, d));
	}
}

void dyn_transpose(struct tc_ctx *c, struct tc_op *op)
{
	const int64_t *from;
	unsigned n;

	from = tc_attr_ints(op, "permutation", &n);
	for (unsigned d = 0; d < n; d++)
		dyn_set(c, tc_out(op, 0), d, dyn_size_of(tc_in(op, 0), (unsigned)from[d]));
}

/* What counts is at the end of what was turned around: it is taken from there. */
bool dyn_reverse(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	struct tc_value *x = tc_in(op, 0), *v = x, *at;
	const int64_t *dims;
	uint64_t set = 0;
	unsigned n;

	dims = tc_attr_ints(op, "dimensions", &n);
	for (unsigned i = 0; i < n; i++)
		set |= (uint64_t)1 << dims[i];
	v = tc_build(&b, TC_REVERSE, x->type, 1, &x);
	tc_set_ints(c, v->def, "dimensions", dims, n);
	for (unsigned d = 0; d < x->type->rank; d++) {
		if (!(set >> d & 1) || !dyn_size_of(x, d))
			continue;
		at = dyn_do(&b, TC_SUBTRACT, dyn_number(&b, x->type->dim[d]), dyn_size_of(x, d));
		v = tc_build_join(&b, 2, (struct tc_value *[]){ v, v }, d);
		v = tc_build_take(&b, v, d, at, x->type->dim[d]);
	}
	dyn_copy(c, v, x);
	tc_replace_uses(tc_out(op, 0), v);
	return false;
}

/* ceil((limit - start) / stride), not below 0. */
static struct tc_value *steps(const struct tc_build *b, struct tc_value *limit, int64_t start,
			      int64_t stride)
{
	struct tc_value *n = dyn_do(b, TC_SUBTRACT, limit, dyn_number(b, start));

	n = dyn_do(b, TC_ADD, n, dyn_number(b, stride - 1));
	n = dyn_do(b, TC_MAXIMUM, n, dyn_number(b, 0));
	return dyn_do(b, TC_DIVIDE, n, dyn_number(b, stride));
}

/*
 * A slice of all of a dim is as long as the dim. One of a part has the part's length, as XLA has
 * it, with zeros past the end; but where its type says that it is dynamic.
 */
bool dyn_slice(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	struct tc_value *x = tc_in(op, 0), *out = tc_out(op, 0);
	const int64_t *start, *limit, *stride;
	uint64_t cut = 0;
	unsigned n;

	start = tc_attr_ints(op, "start_indices", &n);
	limit = tc_attr_ints(op, "limit_indices", &n);
	stride = tc_attr_ints(op, "strides", &n);
	for (unsigned d = 0; d < n; d++) {
		struct tc_value *end = dyn_size_of(x, d);

		if (!end)
			continue;
		if (start[d] || limit[d] != x->type->dim[d] || stride[d] != 1) {
			if (!(out->bounded >> d & 1)) {
				cut |= (uint64_t)1 << d;
				continue;
			}
			end = dyn_do(&b, TC_MINIMUM, end, dyn_number(&b, limit[d]));
			end = steps(&b, end, start[d], stride[d]);
		}
		dyn_set(c, out, d, end);
	}
	if (cut)
		tc_set_operand(op, 0, dyn_zeroed(&b, x, cut, 0));
	return true;
}

/* What lies past the elements is made padding first: then it stands where padding ends up. */
bool dyn_pad(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	struct tc_value *x = tc_in(op, 0), *out = tc_out(op, 0), *size;
	const int64_t *low, *high, *inner;
	unsigned n;

	low = tc_attr_ints(op, "edge_padding_low", &n);
	high = tc_attr_ints(op, "edge_padding_high", &n);
	inner = tc_attr_ints(op, "interior_padding", &n);
	for (unsigned d = 0; d < n; d++) {
		size = dyn_size_of(x, d);
		if (!size)
			continue;
		if (inner[d]) {
			size = dyn_do(&b, TC_MULTIPLY, size, dyn_number(&b, inner[d] + 1));
			size = dyn_do(&b, TC_SUBTRACT, size, dyn_number(&b, inner[d]));
			size = dyn_do(&b, TC_MAXIMUM, size, dyn_number(&b, 0));
		}
		size = dyn_do(&b, TC_ADD, size, dyn_number(&b, low[d] + high[d]));
		dyn_set(c, out, d, dyn_held(&b, size, out->type->dim[d]));
	}
	tc_set_operand(op, 0, dyn_covered(&b, x, ~(uint64_t)0, tc_in(op, 1)));
	return true;
}

/* Each is written where the one before it ends, over what lies past that. */
bool dyn_concatenate(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	unsigned along = (unsigned)tc_attr_int(op, "dimension", 0);
	struct tc_value *out = tc_out(op, 0), *v, *at = dyn_number(&b, 0);
	bool moves = false;

	for (unsigned i = 0; i < op->n_operands; i++) {
		moves |= dyn_size_of(tc_in(op, i), along) != NULL;
		for (unsigned d = 0; d < out->type->rank; d++)
			if (d != along)
				dyn_meet(&b, out, d, dyn_size_of(tc_in(op, i), d));
	}
	if (!moves)
		return true;
	v = tc_build_number(&b, out->type, 0);
	for (unsigned i = 0; i < op->n_operands; i++) {
		v = tc_build_put(&b, v, along, at, tc_in(op, i));
		at = dyn_do(&b, TC_ADD, at, dyn_any_size(&b, tc_in(op, i), along));
	}
	dyn_copy(c, v, out);
	dyn_set(c, v, along, at);
	tc_replace_uses(out, v);
	return false;
}

bool dyn_bitcast(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_value *x = tc_in(op, 0), *out = tc_out(op, 0);
	unsigned last = x->type->rank - 1;

	if (x->type->rank > out->type->rank && dyn_size_of(x, last))
		dyn_refuse(c, op, 0, last, "the elements along it are put together");
	for (unsigned d = 0; d < x->type->rank && d < out->type->rank; d++)
		dyn_set(c, out, d, dyn_size_of(x, d));
	return true;
}

/* ---- reshape ---- */

/* Dims of one array whose elements, as many, are the dims of another; from .. from + n. */
struct side { struct tc_value *v; unsigned from, n; };

/* Whether what counts are the first elements: none but the first dim is dynamic. */
static bool is_first(const struct side *s)
{
	bool is_behind = false;

	for (unsigned d = s->from; d < s->from + s->n; d++) {
		if (is_behind && dyn_size_of(s->v, d) && s->v->type->dim[d] > 1)
			return false;
		is_behind |= s->v->type->dim[d] > 1;
	}
	return true;
}

static bool is_sized(const struct side *s)
{
	for (unsigned d = s->from; d < s->from + s->n; d++)
		if (dyn_size_of(s->v, d))
			return true;
	return false;
}

static struct tc_value *product(const struct tc_build *b, const struct side *s)
{
	struct tc_value *n = dyn_number(b, 1);

	for (unsigned d = s->from; d < s->from + s->n; d++)
		n = dyn_do(b, TC_MULTIPLY, n, dyn_any_size(b, s->v, d));
	return n;
}

/* The dim of a group that takes what there is, and how many could: those that the type says are
 * dynamic; if it says so of none, those that could be shorter at all. Of dims of 1 any will do. */
static unsigned taking(const struct side *s, unsigned *at)
{
	unsigned said = 0, longer = 0, at_said = s->from, at_longer = s->from;

	for (unsigned d = s->from; d < s->from + s->n; d++) {
		if (s->v->bounded >> d & 1) {
			said++;
			at_said = d;
		}
		if (s->v->type->dim[d] > 1) {
			longer++;
			at_longer = d;
		}
	}
	*at = said ? at_said : at_longer;
	if (said)
		return said;
	return longer > 1 ? 0 : 1;
}

/* Of one group: one dim takes what there is. */
static void infer(struct tc_ctx *c, struct tc_op *op, const struct side *in, struct side *out)
{
	struct tc_build b = tc_build_at(c, op);
	struct tc_value *size = product(&b, in);
	int64_t others = 1;
	unsigned at, n = taking(out, &at);

	if (n != 1)
		tc_fail(c, ERR_UNIMPLEMENTED, op, "%u dims of its result, from dim %u on, are made "
			"of ones with sizes that are known only when it runs, and %s: give the "
			"result's type one dim with a bound there", out->n, out->from,
			n ? "several of them may be shorter" : "none of them says that it may be "
			"shorter");
	for (unsigned d = out->from; d < out->from + out->n; d++)
		others *= d == at ? 1 : out->v->type->dim[d];
	dyn_set(c, out->v, at, dyn_do(&b, TC_DIVIDE, size, dyn_number(&b, others)));
}

/* `at`, s32[n], counts elements of an array of these dims, by their sizes (those that count) or
 * their bounds (all there are): from the one to the other. */
static struct tc_value *counted(const struct tc_build *b, struct tc_value *at,
				const struct side *s, bool by_size, bool to_size)
{
	int64_t n = at->type->dim[0];
	struct tc_value *step = dyn_number(b, 1), *sum = NULL, *place, *size;

	for (unsigned d = s->from + s->n; d-- > s->from;) {
		size = by_size ? dyn_any_size(b, s->v, d) : dyn_number(b, s->v->type->dim[d]);
		size = dyn_do(b, TC_MAXIMUM, size, dyn_number(b, 1));
		place = tc_build2(b, TC_REMAINDER, at, dyn_list_of(b, size, n));
		at = tc_build2(b, TC_DIVIDE, at, dyn_list_of(b, size, n));
		place = tc_build2(b, TC_MULTIPLY, place, dyn_list_of(b, step, n));
		sum = sum ? tc_build2(b, TC_ADD, sum, place) : place;
		size = to_size ? dyn_any_size(b, s->v, d) :
		       dyn_number(b, s->v->type->dim[d]);
		step = dyn_do(b, TC_MULTIPLY, step, size);
	}
	return sum;
}

/* Moves a group's elements from where they are in x, whose elements outside of it are `outer`
 * times it, to where they are in the result. */
static struct tc_value *moved(const struct tc_build *b, struct tc_value *x, int64_t outer,
			      const struct side *in, const struct side *out)
{
	int64_t size = 1, dims[3];
	struct tc_value *at;

	for (unsigned d = in->from; d < in->from + in->n; d++)
		size *= in->v->type->dim[d];
	dims[0] = outer;
	dims[1] = size;
	dims[2] = x->type->count / outer / size;
	at = tc_build_iota(b, tc_tensor(b->c, ELEM_S32, 1, &size), 0);
	at = counted(b, at, out, false, true);
	at = counted(b, at, in, true, false);
	return dyn_picked(b, tc_build_reshape(b, x, 3, dims), 1, at);
}

/* The next dims of both that have as many elements, at least one of each: dims of 1 that one side
 * begins with belong to those behind them. */
static void next_group(struct side *in, struct side *out)
{
	const struct tc_type *x = in->v->type, *y = out->v->type;
	int64_t m = 1, n = 1;

	in->from += in->n;
	out->from += out->n;
	in->n = out->n = 0;
	do {
		if (!in->n || (out->n && m < n))
			m *= x->dim[in->from + in->n++];
		else
			n *= y->dim[out->from + out->n++];
	} while (m != n || !out->n);
	/* Dims of 1 at the end belong to the last ones. */
	while (in->from + in->n < x->rank && x->dim[in->from + in->n] == 1)
		in->n++;
	while (out->from + out->n < y->rank && y->dim[out->from + out->n] == 1)
		out->n++;
}

struct tc_value *dyn_reshaped(struct tc_ctx *c, struct tc_op *op, struct tc_value *x,
			      struct tc_value *out, struct tc_value *const *want)
{
	struct tc_build b = tc_build_at(c, op);
	const struct tc_type *s = x->type, *t = out->type;
	struct side in = { .v = x }, to = { .v = out };
	struct tc_value *v = x;
	int64_t outer = 1;

	if (!s->count || !s->rank || !t->rank || s->count > INT32_MAX)
		tc_fail(c, ERR_UNIMPLEMENTED, op, "%lld elements in dims with sizes that are known "
			"only when it runs get other dims: give it 1 to 2^31 - 1 elements, and a "
			"dim", (long long)s->count);
	for (unsigned d = 0; want && d < t->rank; d++)
		dyn_set(c, out, d, want[d]);
	while (in.from + in.n < s->rank || to.from + to.n < t->rank) {
		int64_t size = 1;

		next_group(&in, &to);
		if (!want && is_sized(&in)) {
			if (in.n == 1 && to.n == 1)
				dyn_set(c, out, to.from, dyn_size_of(x, in.from));
			else
				infer(c, op, &in, &to);
		}
		if (!is_first(&in) || !is_first(&to))
			v = moved(&b, v, outer, &in, &to);
		for (unsigned d = to.from; d < to.from + to.n; d++)
			size *= t->dim[d];
		outer *= size;
	}
	v = tc_build_reshape(&b, v, t->rank, t->dim);
	dyn_copy(c, v, out);
	return v;
}
