/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removes what does nothing: dead ops, identities, constants that only move, and what loops
 * carry but never change. The steps of a logistic function become that function, powers of two and
 * the like products, and products that are turned around products the other way round; simpler
 * questions are in logic.c.
 *
 * Requires: a verified module. Ensures: the same results, bit for bit but for which NaN and how
 * powers are rounded: nothing is reassociated, and float identities are only those that hold for
 * every value.
 */
#include <math.h>
#include <string.h>

#include "hal/hw/isa.h"
#include "runtime/compiler/opt/build.h"
#include "runtime/compiler/opt/fuse.h"
#include "runtime/compiler/simplify/simpler.h"
#include "runtime/compiler/passes.h"

/* Where replicas run programs of their own, all keep what meets others of them, whatever each
 * does with what it gets. */
static bool is_kept(const struct tc_ctx *c, const struct tc_op *op)
{
	return tc_has_effect(op) || (c->options->replicas > 1 && tc_meets(op));
}

bool tc_is_dead(const struct tc_ctx *c, const struct tc_op *op)
{
	if (!tc_has_trait(op, 'p') || !op->n_results)
		return false;
	for (unsigned i = 0; i < op->n_results; i++)
		if (!tc_is_unused(&op->results[i]))
			return false;
	return !is_kept(c, op);
}

static bool is_iota_list(const struct tc_op *op, const char *name)
{
	unsigned n;
	const int64_t *list = tc_attr_ints(op, name, &n);

	for (unsigned i = 0; i < n; i++)
		if (list[i] != i)
			return false;
	return true;
}

static bool is_all(const struct tc_op *op, const char *name, int64_t value)
{
	unsigned n;
	const int64_t *list = tc_attr_ints(op, name, &n);

	for (unsigned i = 0; i < n; i++)
		if (list[i] != value)
			return false;
	return true;
}

/* The operand of an operation whose other one is its identity, or NULL. Sums of floats have none:
 * -0 + 0 is 0. */
static struct tc_value *other_than_identity(const struct tc_op *op)
{
	double identity = op->op == TC_MULTIPLY || op->op == TC_DIVIDE;
	bool is_either = op->op == TC_ADD || op->op == TC_OR || op->op == TC_XOR ||
			 op->op == TC_MULTIPLY;

	if (!tc_is_integer(op->results[0].type) &&
	    (elem_class(op->results[0].type->elem) != ELEM_CLASS_FLOAT || !identity))
		return NULL;
	if (tc_is_number(tc_in(op, 1), identity))
		return tc_in(op, 0);
	return is_either && tc_is_number(tc_in(op, 0), identity) ? tc_in(op, 1) : NULL;
}

/* The value that op's only result always equals, or NULL. */
static struct tc_value *same_as(const struct tc_op *op)
{
	struct tc_value *in = op->n_operands ? tc_in(op, 0) : NULL;
	const struct tc_type *t = op->n_results == 1 ? op->results[0].type : NULL;
	bool keeps = in && t == in->type;

	switch (op->op) {
	case TC_RESHAPE:
	case TC_CONVERT:
	case TC_SLICE:		/* the same size leaves no choice */
		return keeps ? in : NULL;
	case TC_BITCAST_CONVERT:
		return keeps ? in : NULL;
	case TC_BROADCAST_IN_DIM:
		return keeps && is_iota_list(op, "broadcast_dimensions") ? in : NULL;
	case TC_TRANSPOSE:
		return keeps && is_iota_list(op, "permutation") ? in : NULL;
	case TC_PAD:
		return keeps && is_all(op, "edge_padding_low", 0) &&
		       is_all(op, "interior_padding", 0) ? in : NULL;
	case TC_REVERSE:
		return keeps && t->count <= 1 ? in : NULL;
	case TC_CONCATENATE:
		return op->n_operands == 1 ? in : NULL;
	case TC_COPY:
		return in;
	case TC_SELECT:
		if (tc_in(op, 1) == tc_in(op, 2))
			return tc_in(op, 1);
		return tc_splat_element(in) ?
			tc_in(op, *(const uint8_t *)tc_splat_element(in) ? 1 : 2) : NULL;
	case TC_ADD: case TC_SUBTRACT: case TC_MULTIPLY: case TC_DIVIDE: case TC_OR: case TC_XOR:
	case TC_SHIFT_LEFT: case TC_SHIFT_RIGHT_LOGICAL: case TC_SHIFT_RIGHT_ARITHMETIC:
		return other_than_identity(op);
	default:
		return NULL;
	}
}

/* The only element of a slice of a constant, or NULL: polynomials have their coefficients so. */
static const void *sliced_element(const struct tc_op *op)
{
	const struct tc_op *def = tc_in(op, 0)->def;
	const struct tc_attr *a = def && def->op == TC_CONSTANT ? tc_attr(def, "value") : NULL;
	const int64_t *start;
	int64_t at = 0;
	unsigned n;

	if (!a || op->results[0].type->count != 1)
		return NULL;
	start = tc_attr_ints(op, "start_indices", &n);
	for (unsigned d = 0; d < n; d++)
		at = at * a->type->dim[d] + start[d];
	return (const char *)a->data + (a->is_splat ? 0 : at * elem_bytes(a->type->elem));
}

/* A splat that is moved, widened, repeated or read as another type is a splat, and so is one
 * element of any constant. */
static struct tc_value *moved_splat(struct tc_ctx *c, struct tc_op *op)
{
	const void *element;

	switch (op->op) {
	case TC_BROADCAST_IN_DIM:
	case TC_RESHAPE:
	case TC_TRANSPOSE:
	case TC_SLICE:
	case TC_REVERSE:
	case TC_BITCAST_CONVERT:
		if (op->op == TC_BITCAST_CONVERT && !tc_is_even_bitcast(op))
			return NULL;
		element = tc_splat_element(tc_in(op, 0));
		if (!element && op->op == TC_SLICE)
			element = sliced_element(op);
		return element && op->results[0].type->count ?
			tc_splat(c, op, op->results[0].type, element) : NULL;
	default:
		return NULL;
	}
}

/* reshape(reshape(x)), transpose(transpose(x)), broadcast(broadcast(x)): one op. */
static bool join_moves(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_op *in = op->n_operands == 1 ? tc_in(op, 0)->def : NULL;
	const char *name = op->op == TC_TRANSPOSE ? "permutation" : "broadcast_dimensions";
	const int64_t *outer, *inner;
	int64_t both[TC_MAX_RANK];
	unsigned n, m;

	if (!in || in->op != op->op)
		return false;
	if (op->op == TC_RESHAPE) {
		tc_set_operand(op, 0, tc_in(in, 0));
		return true;
	}
	if (op->op != TC_TRANSPOSE && op->op != TC_BROADCAST_IN_DIM)
		return false;
	outer = tc_attr_ints(op, name, &n);
	inner = tc_attr_ints(in, name, &m);
	for (unsigned i = 0; i < m; i++)
		both[i] = op->op == TC_TRANSPOSE ? inner[outer[i]] : outer[inner[i]];
	/* A dim that the inner broadcast widens from 1 must stay one of size 1. */
	tc_set_ints(c, op, name, both, m);
	tc_set_operand(op, 0, tc_in(in, 0));
	return true;
}

/* The op that makes v, if it is of this kind and nothing else looks at v, nor looks more often than
 * it is made: a loop would. */
static const struct tc_op *lone_maker(const struct tc_value *v, enum tc_opcode kind)
{
	return v->def && v->def->op == kind && tc_is_used_once(v) &&
	       v->uses->user->block == v->def->block ? v->def : NULL;
}

/* Whether a reshape makes one dim of some that `spread` added and others: then it has to move its
 * operand anyway, which nobody reads as a view. */
static bool joins_added_dims(const struct tc_op *reshape, const struct tc_op *spread)
{
	const struct tc_type *from = spread->results[0].type, *to = reshape->results[0].type;
	uint64_t kept = 0;
	const int64_t *dims;
	unsigned n, d = 0;

	dims = tc_attr_ints(spread, "broadcast_dimensions", &n);
	for (unsigned i = 0; i < n; i++)
		kept |= 1ull << dims[i];
	for (unsigned i = 0; i < to->rank; i++) {
		bool has_kept = false, has_added = false;

		for (int64_t size = 1; d < from->rank && size < to->dim[i]; size *= from->dim[d++])
			if (from->dim[d] > 1)
				*(kept >> d & 1 ? &has_kept : &has_added) = true;
		if (has_kept && has_added)
			return true;
	}
	return false;
}

/* The dims of what `op` makes, a broadcast that adds dims to its operand's and changes no others,
 * before its operand was made of `apart`'s; at: where each of these is among them. 0: they are not
 * to be told, or too many for an instruction. */
static unsigned dims_apart(const struct tc_op *op, const struct tc_type *apart, int64_t *dim,
			   int64_t *at)
{
	const struct tc_type *to = op->results[0].type;
	unsigned n, i = 0, a = 0, rank = 0;
	const int64_t *outer = tc_attr_ints(op, "broadcast_dimensions", &n);

	if (apart->rank + to->rank - n > ISA_MAX_RANK)
		return 0;
	for (unsigned d = 0; d < to->rank; d++) {
		int64_t size = 1;

		if (i == n || outer[i] != d) {
			dim[rank++] = to->dim[d];
			continue;
		}
		i++;
		/* those of one element go with the ones before; a dim that is widened finds none */
		while (a < apart->rank && (size < to->dim[d] || apart->dim[a] == 1)) {
			at[a] = rank;
			dim[rank] = apart->dim[a++];
			size *= dim[rank++];
		}
		if (size != to->dim[d])
			return 0;
	}
	return i == n && a == apart->rank ? rank : 0;
}

/* Whether one move along `dims` would be done later than two. It spreads the elements of each row
 * by themselves, which two do for all rows as for one; and if `op` repeats rows whose elements
 * were spread before, each of these once more. */
static bool takes_short_rows(const struct tc_op *op, const struct tc_type *to, const int64_t *dims,
			     unsigned n)
{
	const struct tc_type *out = op->results[0].type, *in = tc_in(op, 0)->type;
	int64_t elems = 1, each = (int64_t)elem_bytes(to->elem), times;
	unsigned d = to->rank, last = out->rank, n_outer;
	const int64_t *outer = tc_attr_ints(op, "broadcast_dimensions", &n_outer);
	uint64_t kept = 0;
	bool is_spread = false;

	for (unsigned i = 0; i < n; i++)
		kept |= 1ull << dims[i];
	for (; d && (to->dim[d - 1] == 1 || !(kept >> (d - 1) & 1)); d--)
		is_spread |= to->dim[d - 1] > 1;
	if (!is_spread || !in->bytes)
		return false;
	for (; d && (to->dim[d - 1] == 1 || kept >> (d - 1) & 1); d--)
		elems *= to->dim[d - 1];
	while (last > 1 && out->dim[last - 1] == 1)
		last--;
	times = 2;
	for (unsigned i = 0; i < n_outer; i++)	/* the elements were spread first */
		if (outer[i] + 1 == last)
			times = out->bytes / in->bytes;
	return elems < 64 || elems * each < 128 * times;
}

/* What is repeated along one dim and then along another, as frameworks write it (each time spread
 * along a new dim that becomes one with its neighbour), is spread along both and moved once. */
static bool repeat_at_once(struct tc_ctx *c, struct tc_op *op)
{
	const struct tc_op *join, *first;
	const struct tc_type *to;
	struct tc_build b;
	struct tc_value *v;
	int64_t at[TC_MAX_RANK], dims[TC_MAX_RANK], dim[ISA_MAX_RANK];
	const int64_t *inner;
	unsigned n, rank;

	if (op->op != TC_BROADCAST_IN_DIM || !tc_is_used_once(tc_out(op, 0)) ||
	    tc_out(op, 0)->uses->user->op != TC_RESHAPE ||
	    !joins_added_dims(tc_out(op, 0)->uses->user, op))
		return false;
	join = lone_maker(tc_in(op, 0), TC_RESHAPE);
	first = join ? lone_maker(tc_in(join, 0), TC_BROADCAST_IN_DIM) : NULL;
	if (!first || !joins_added_dims(join, first))
		return false;
	rank = dims_apart(op, first->results[0].type, dim, at);
	if (!rank)
		return false;
	inner = tc_attr_ints(first, "broadcast_dimensions", &n);
	for (unsigned i = 0; i < n; i++)
		dims[i] = at[inner[i]];
	to = tc_tensor(c, op->results[0].type->elem, rank, dim);
	if (takes_short_rows(op, to, dims, n))
		return false;
	b = tc_build_at(c, op);
	v = tc_build_broadcast(&b, tc_in(first, 0), to, dims);
	return tc_simplify_to(op, tc_build_reshape(&b, v, op->results[0].type->rank,
						   op->results[0].type->dim));
}

enum { MOST_JOINED = 64 };	/* parts of a concatenation that is made of others */

/*
 * Of what is put together, parts without elements are none, and a part that is itself put together
 * along the same dim, for nobody else, gives its own: each is moved once then. Padding by what an
 * array has at its edges, as frameworks write it, has both.
 */
static void join_joins(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_value *parts[MOST_JOINED];
	int64_t dim = tc_attr_int(op, "dimension", 0);
	unsigned n = 0;
	bool changes = false;

	if (op->op != TC_CONCATENATE || !op->results[0].type->count)
		return;
	for (unsigned i = 0; i < op->n_operands; i++) {
		const struct tc_op *in = lone_maker(tc_in(op, i), TC_CONCATENATE);
		bool is_none = !tc_in(op, i)->type->count;

		if (in && tc_attr_int(in, "dimension", 0) != dim)
			in = NULL;
		if (n + (in ? in->n_operands : 1) > MOST_JOINED)
			return;
		for (unsigned k = 0; in && !is_none && k < in->n_operands; k++)
			parts[n++] = tc_in(in, k);
		if (!in && !is_none)
			parts[n++] = tc_in(op, i);
		changes |= in || is_none;
	}
	if (changes)
		tc_set_operands(c, op, n, parts);
}

/*
 * 1 / (1 + e^-x), as frameworks spell the logistic function out. The device's instruction takes
 * the same steps, so its results have the same bits; those of types that are rounded after each
 * step would not.
 */
static bool join_logistic(struct tc_ctx *c, struct tc_op *op)
{
	const struct tc_op *sum, *power, *minus;
	struct tc_build b;
	unsigned first;		/* the sum's operand that is not 1 */

	if (op->op != TC_DIVIDE || (op->results[0].type->elem != ELEM_F32 &&
				    op->results[0].type->elem != ELEM_F64))
		return false;
	sum = tc_is_number(tc_in(op, 0), 1) ? lone_maker(tc_in(op, 1), TC_ADD) : NULL;
	first = sum && tc_is_number(tc_in(sum, 0), 1);
	power = !sum ? NULL : lone_maker(tc_in(sum, first), TC_EXPONENTIAL);
	if (!power || !tc_is_number(tc_in(sum, !first), 1))
		return false;
	minus = tc_in(power, 0)->def;
	if (!minus || minus->op != TC_NEGATE)
		return false;
	b = tc_build_at(c, op);
	tc_replace(op, tc_build1(&b, TC_LOGISTIC, tc_in(minus, 0)));
	return true;
}

/* x to the power of a few constants; NULL: of another. */
static struct tc_value *power(const struct tc_build *b, struct tc_value *x,
			      const struct tc_value *by)
{
	struct tc_value *inf, *root;

	if (tc_is_number(by, 0))
		return tc_build_number(b, x->type, 1);
	if (tc_is_number(by, 1))
		return x;
	if (tc_is_number(by, 2))
		return tc_build2(b, TC_MULTIPLY, x, x);
	if (tc_is_number(by, 3))
		return tc_build2(b, TC_MULTIPLY, tc_build2(b, TC_MULTIPLY, x, x), x);
	if (tc_is_number(by, -1))
		return tc_build2(b, TC_DIVIDE, tc_build_number(b, x->type, 1), x);
	if (!tc_is_number(by, 0.5))
		return NULL;
	/* Unlike a root, the power of -0 is 0, and that of -inf is inf. */
	inf = tc_build_number(b, x->type, -(double)INFINITY);
	root = tc_build2(b, TC_ADD, tc_build1(b, TC_SQRT, x), tc_build_number(b, x->type, 0));
	return tc_build_select(b, tc_build_compare(b, TC_CMP_EQ, x, inf),
			       tc_build_number(b, x->type, (double)INFINITY), root);
}

/*
 * Squares, cubes, roots and reciprocals that are written as powers, as PyTorch does: a step or two
 * for many. All but cubes, of which each step is rounded, have the bits that powers have when these
 * are rounded well. Types of 16 bits are rounded once, at the end.
 */
static bool write_power(struct tc_ctx *c, struct tc_op *op)
{
	const struct tc_type *t = op->results[0].type;
	struct tc_build b;
	struct tc_value *v;

	if (op->op != TC_POWER || (t->elem != ELEM_F32 && t->elem != ELEM_F64 &&
				   t->elem != ELEM_F16 && t->elem != ELEM_BF16) ||
	    !tc_in(op, 1)->def || tc_in(op, 1)->def->op != TC_CONSTANT)
		return false;
	b = tc_build_at(c, op);
	v = elem_bytes(t->elem) > 2 ? tc_in(op, 0) :
				      tc_build_convert(&b, tc_in(op, 0), ELEM_F32);
	v = power(&b, v, tc_in(op, 1));
	if (!v)
		return false;
	if (v->type != t)
		v = tc_build_convert(&b, v, (enum elem)t->elem);
	tc_replace(op, v);
	return true;
}

bool tc_slice_of_part(struct tc_ctx *c, struct tc_op *op)
{
	const struct tc_op *join = op->op == TC_SLICE ? tc_in(op, 0)->def : NULL;
	int64_t from, to, at = 0, size;
	unsigned dim;

	if (!join || join->op != TC_CONCATENATE)
		return false;
	dim = (unsigned)tc_attr_int(join, "dimension", 0);
	from = tc_attr_nth(op, "start_indices", dim);
	to = tc_attr_nth(op, "limit_indices", dim);
	for (unsigned i = 0; i < join->n_operands; i++, at += size) {
		size = tc_in(join, i)->type->dim[dim];
		if (from < at || to > at + size)
			continue;
		tc_set_operand(op, 0, tc_in(join, i));
		tc_set_nth(c, op, "start_indices", dim, from - at);
		tc_set_nth(c, op, "limit_indices", dim, to - at);
		return true;
	}
	return false;
}

enum { NARROW = 64 };	/* rows or columns: products of fewer are not the same either way round */

/* Whether op moves the columns of dot's result before its rows, both of them many, and nothing
 * else. */
static bool turns(const struct tc_op *op, const struct tc_op *dot)
{
	const struct tc_type *t = dot->results[0].type;
	unsigned n, n_batch, n_sums, rows, cols;
	const int64_t *permutation = tc_attr_ints(op, "permutation", &n);
	int64_t n_rows = 1, n_cols = 1;

	tc_attr_ints(dot, "lhs_batching_dimensions", &n_batch);
	tc_attr_ints(dot, "lhs_contracting_dimensions", &n_sums);
	rows = tc_in(dot, 0)->type->rank - n_batch - n_sums;
	cols = tc_in(dot, 1)->type->rank - n_batch - n_sums;
	for (unsigned i = 0; i < n; i++)
		if (permutation[i] != (i < n_batch ? i : i < n_batch + cols ? i + rows : i - cols))
			return false;
	for (unsigned i = n_batch; i < n; i++)
		*(i < n_batch + rows ? &n_rows : &n_cols) *= t->dim[i];
	return n_rows >= NARROW && n_cols >= NARROW;
}

const struct tc_op *tc_product_to_turn(const struct tc_op *op, const struct tc_value *v)
{
	const struct tc_op *dot = op->op == TC_TRANSPOSE ? lone_maker(v, TC_DOT_GENERAL) : NULL;

	if (!dot || tc_in(dot, 0)->type->elem != tc_in(dot, 1)->type->elem ||
	    elem_class(tc_in(dot, 0)->type->elem) == ELEM_CLASS_COMPLEX ||
	    tc_attr(dot, "lhs_precision_type") || !turns(op, dot))
		return NULL;
	return dot;
}

/*
 * A product that is turned around at once is that of its operands the other way round, and needs no
 * move then: frameworks write the gradient of a weight so. Sums have the same terms in the same
 * order; those of complex numbers would add up their parts in another.
 */
static bool turn_product(struct tc_ctx *c, struct tc_op *op)
{
	static const char *const lists[][2] = {
		{ "lhs_batching_dimensions", "rhs_batching_dimensions" },
		{ "lhs_contracting_dimensions", "rhs_contracting_dimensions" },
	};
	const struct tc_op *dot = op->op == TC_TRANSPOSE ? tc_product_to_turn(op, tc_in(op, 0)) :
							   NULL;
	struct tc_value *in[2];
	const int64_t *precision;
	struct tc_build b;
	struct tc_op *turned;
	unsigned n;

	if (!dot)
		return false;
	in[0] = tc_in(dot, 1);
	in[1] = tc_in(dot, 0);
	b = tc_build_at(c, op);
	turned = tc_build(&b, TC_DOT_GENERAL, op->results[0].type, 2, in)->def;
	for (unsigned k = 0; k < 2; k++)
		for (unsigned side = 0; side < 2; side++) {
			const int64_t *dims = tc_attr_ints(dot, lists[k][!side], &n);

			tc_set_ints(c, turned, lists[k][side], dims, n);
		}
	precision = tc_attr_ints(dot, "precision_config", &n);
	if (n == 2)
		tc_set_ints(c, turned, "precision_config",
			    (const int64_t[]){ precision[1], precision[0] }, 2);
	turned->where = dot->where;
	tc_replace(op, tc_out(turned, 0));
	return true;
}

static bool simplify_op(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_value *v;

	if (tc_is_dead(c, op)) {
		tc_erase(op);
		return true;
	}
	if (op->op == TC_OPTIMIZATION_BARRIER) {
		for (unsigned i = 0; i < op->n_results; i++)
			tc_replace_uses(tc_out(op, i), tc_in(op, i));
		tc_erase(op);
		return true;
	}
	if (tc_carry_less(c, op) || tc_take_rows(c, op) || tc_fold_first(c, op))
		return true;
	if (op->n_results != 1)
		return false;
	tc_slice_of_part(c, op);
	join_joins(c, op);
	v = same_as(op);
	if (!v)
		v = moved_splat(c, op);
	if (v) {
		tc_replace(op, v);
		return true;
	}
	return join_moves(c, op) || repeat_at_once(c, op) || join_logistic(c, op) ||
	       write_power(c, op) || turn_product(c, op) || tc_cancel_turns(c, op) ||
	       tc_join_turned(c, op) || tc_interleave(c, op) || tc_put_together(c, op) ||
	       tc_work_before_ones(c, op) || tc_work_on_slices(c, op) ||
	       tc_work_before_join(c, op) ||
	       tc_simplify_logic(c, op) || tc_know_place(c, op) ||
	       tc_count_narrowly(c, op) || tc_simplify_whole(c, op) ||
	       tc_take_apart(c, op);
}

static void simplify_block(struct tc_ctx *c, struct tc_block *b)
{
	struct tc_op *next, *prev;

	for (struct tc_op *op = b->first; op; op = next) {
		next = op->next;
		for (unsigned r = 0; r < op->n_regions; r++)
			if (op->regions[r].block)
				simplify_block(c, op->regions[r].block);
		simplify_op(c, op);
	}
	/* Backwards once more: what died by that. */
	for (struct tc_op *op = b->last; op; op = prev) {
		prev = op->prev;
		if (tc_is_dead(c, op))
			tc_erase(op);
	}
}

void tc_pass_simplify(struct tc_ctx *c)
{
	simplify_block(c, tc_main(c));
}
