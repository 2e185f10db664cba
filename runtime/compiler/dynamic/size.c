/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of dims, numbers about them, and what lies past them (dynamic.h). */
#include <string.h>

#include "runtime/compiler/dynamic/dynamic.h"

#define MOST_NUMBERS 4096	/* of a list that is to be known */

static bool is_integer(const struct tc_type *t)
{
	return !t->is_tuple && (elem_class(t->elem) == ELEM_CLASS_SINT ||
				elem_class(t->elem) == ELEM_CLASS_UINT);
}

/* Whether v is a whole number that is known, and which. */
static bool is_number(const struct tc_value *v, int64_t *n)
{
	if (v->type->rank || !v->def || v->def->op != TC_CONSTANT || !is_integer(v->type))
		return false;
	*n = tc_attr_element(tc_attr(v->def, "value"), 0);
	return true;
}

struct tc_value *dyn_size_of(const struct tc_value *v, unsigned dim)
{
	struct tc_value *const *sizes = v->side;

	return sizes ? sizes[dim] : NULL;
}

void dyn_set(struct tc_ctx *c, struct tc_value *v, unsigned dim, struct tc_value *size)
{
	struct tc_value **sizes = v->side;
	int64_t n;

	if (size && is_number(size, &n) && n == v->type->dim[dim])
		size = NULL;
	if (!sizes && !size)
		return;
	if (!sizes) {
		v->side = sizes = arena_array(&c->arena, v->type->rank, sizeof(*sizes));
		if (!sizes)
			tc_fail(c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	}
	sizes[dim] = size;
}

/* Whether both are the same whenever it runs. */
static bool is_same(const struct tc_value *x, const struct tc_value *y)
{
	int64_t m, n;

	return x == y || (is_number(x, &m) && is_number(y, &n) && m == n);
}

struct tc_value *dyn_less(const struct tc_build *b, struct tc_value *x, struct tc_value *y)
{
	if (!x || !y || is_same(x, y))
		return x ? x : y;
	return dyn_do(b, TC_MINIMUM, x, y);
}

void dyn_meet(const struct tc_build *b, struct tc_value *v, unsigned dim,
	      struct tc_value *size)
{
	if (size)
		dyn_set(b->c, v, dim, dyn_less(b, dyn_size_of(v, dim), size));
}

void dyn_copy(struct tc_ctx *c, struct tc_value *to, const struct tc_value *from)
{
	for (unsigned d = 0; d < to->type->rank; d++)
		dyn_set(c, to, d, dyn_size_of(from, d));
}

struct tc_value *dyn_any_size(const struct tc_build *b, const struct tc_value *v, unsigned dim)
{
	struct tc_value *size = dyn_size_of(v, dim);

	return size ? size : dyn_number(b, v->type->dim[dim]);
}

struct tc_value *dyn_number(const struct tc_build *b, int64_t n)
{
	return tc_build_number(b, tc_tensor(b->c, ELEM_S32, 0, NULL), (double)n);
}

struct tc_value *dyn_do(const struct tc_build *b, enum tc_opcode op, struct tc_value *x,
			struct tc_value *y)
{
	int64_t m, n;

	/* Many are nothing to do; numbers stay so small that these are exact. */
	if (is_number(x, &m) && is_number(y, &n))
		switch (op) {
		case TC_ADD: return dyn_number(b, m + n);
		case TC_SUBTRACT: return dyn_number(b, m - n);
		case TC_MULTIPLY: return dyn_number(b, m * n);
		case TC_MINIMUM: return m < n ? x : y;
		case TC_MAXIMUM: return m > n ? x : y;
		default: break;
		}
	if (is_number(y, &n) &&
	    ((n == 0 && (op == TC_ADD || op == TC_SUBTRACT)) ||
	     (n == 1 && (op == TC_MULTIPLY || op == TC_DIVIDE))))
		return x;
	return tc_build2(b, op, x, y);
}

struct tc_value *dyn_held(const struct tc_build *b, struct tc_value *x, int64_t most)
{
	x = dyn_do(b, TC_MINIMUM, x, dyn_number(b, most));
	return dyn_do(b, TC_MAXIMUM, x, dyn_number(b, 0));
}

struct tc_value *dyn_narrowed(const struct tc_build *b, struct tc_value *x)
{
	enum elem elem = (enum elem)x->type->elem;
	const double most = INT32_MAX, least = INT32_MIN;

	if (elem_bits(elem) > 32 || elem == ELEM_U32) {
		x = tc_build2(b, TC_MINIMUM, x, tc_build_number(b, x->type, most));
		if (elem_class(elem) == ELEM_CLASS_SINT)
			x = tc_build2(b, TC_MAXIMUM, x, tc_build_number(b, x->type, least));
	}
	return tc_build_convert(b, x, ELEM_S32);
}

/* ---- what is known ---- */

/* Appends v's elements to out; false: they are not known, or too many. */
static bool known(const struct tc_value *v, int64_t *out, unsigned *n, unsigned depth)
{
	const struct tc_op *op = v->def;
	int64_t one;
	unsigned at;

	if (!op || depth > 16 || !is_integer(v->type) || v->type->count > MOST_NUMBERS - *n)
		return false;
	switch (op->op) {
	case TC_CONSTANT:
		for (int64_t i = 0; i < v->type->count; i++)
			out[(*n)++] = tc_attr_element(tc_attr(op, "value"), i);
		return true;
	case TC_CONVERT:	/* of numbers that fit both */
	case TC_RESHAPE:
		return known(tc_in(op, 0), out, n, depth + 1);
	case TC_CONCATENATE:
		for (unsigned i = 0; v->type->rank == 1 && i < op->n_operands; i++)
			if (!known(tc_in(op, i), out, n, depth + 1))
				return false;
		return v->type->rank == 1;
	case TC_SLICE:
		at = *n;
		if (v->type->rank != 1 || tc_in(op, 0)->type->count > MOST_NUMBERS - at ||
		    !known(tc_in(op, 0), out, &at, depth + 1))
			return false;
		for (int64_t i = 0; i < v->type->count; i++)
			out[*n + i] = out[*n + tc_attr_ints(op, "start_indices", &at)[0] +
					  i * tc_attr_ints(op, "strides", &at)[0]];
		*n += (unsigned)v->type->count;
		return true;
	case TC_BROADCAST_IN_DIM:
		at = *n;
		if (tc_in(op, 0)->type->count != 1 || !known(tc_in(op, 0), out, &at, depth + 1))
			return false;
		one = out[*n];
		for (int64_t i = 0; i < v->type->count; i++)
			out[(*n)++] = one;
		return true;
	default:
		return false;
	}
}

const int64_t *dyn_numbers(struct tc_ctx *c, const struct tc_value *v, unsigned *n)
{
	int64_t *out = arena_array(&c->arena, MOST_NUMBERS, sizeof(*out));

	if (!out)
		tc_fail(c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	*n = 0;
	return known(v, out, n, 0) ? out : NULL;
}

/* ---- arrays ---- */

struct tc_value *dyn_within(const struct tc_build *b, const struct tc_type *t,
			    struct tc_value *const *sizes)
{
	const struct tc_type *s32 = tc_with_elem(b->c, t, ELEM_S32);
	struct tc_value *within = NULL, *one;

	for (unsigned d = 0; d < t->rank; d++) {
		if (!sizes[d])
			continue;
		one = tc_build_compare(b, TC_CMP_LT, tc_build_iota(b, s32, d),
				       tc_build_broadcast(b, sizes[d], s32, NULL));
		within = within ? tc_build2(b, TC_AND, within, one) : one;
	}
	return within;
}

struct tc_value *dyn_cut(const struct tc_build *b, struct tc_value *x,
			 struct tc_value *const *sizes, struct tc_value *fill)
{
	struct tc_value *within = dyn_within(b, x->type, sizes), *one;

	if (!within)
		return x;
	one = tc_build_select(b, within, x, tc_build_broadcast(b, fill, x->type, NULL));
	dyn_copy(b->c, one, x);
	return one;
}

struct tc_value *dyn_covered(const struct tc_build *b, struct tc_value *x, uint64_t dims,
			     struct tc_value *fill)
{
	struct tc_value *sizes[TC_MAX_RANK];

	for (unsigned d = 0; d < x->type->rank; d++)
		sizes[d] = dims >> d & 1 ? dyn_size_of(x, d) : NULL;
	return dyn_cut(b, x, sizes, fill);
}

struct tc_value *dyn_zeroed(const struct tc_build *b, struct tc_value *x, uint64_t dims,
			    double number)
{
	const struct tc_type *scalar = tc_tensor(b->c, (enum elem)x->type->elem, 0, NULL);

	return dyn_covered(b, x, dims, tc_build_number(b, scalar, number));
}

struct tc_value *dyn_picked(const struct tc_build *b, struct tc_value *x, unsigned dim,
			    struct tc_value *index)
{
	const struct tc_type *t = x->type;
	const int64_t along = 1;
	int64_t dims[3] = { 1, t->dim[dim], 1 }, out[TC_MAX_RANK];
	struct tc_value *rows;

	for (unsigned d = 0; d < t->rank; d++)
		if (d != dim)
			dims[d < dim ? 0 : 2] *= t->dim[d];
	memcpy(out, t->dim, t->rank * sizeof(*out));
	out[dim] = index->type->dim[0];
	rows = tc_build_broadcast(b, index, tc_tensor(b->c, ELEM_S32, 2,
				  (const int64_t[]){ dims[0], out[dim] }), &along);
	x = tc_build_rows(b, tc_build_reshape(b, x, 3, dims), rows);
	return tc_build_reshape(b, x, t->rank, out);
}

struct tc_value *dyn_list_of(const struct tc_build *b, struct tc_value *x, int64_t n)
{
	return tc_build_broadcast(b, x, tc_tensor(b->c, ELEM_S32, 1, &n), NULL);
}

struct tc_value *dyn_joined(const struct tc_build *b, unsigned n, struct tc_value *const *x)
{
	struct tc_value *parts[TC_MAX_RANK];
	const int64_t one = 1;

	for (unsigned i = 0; i < n; i++)
		parts[i] = tc_build_reshape(b, x[i], 1, &one);
	return tc_build_join(b, n, parts, 0);
}

struct tc_value *dyn_element(const struct tc_build *b, struct tc_value *list, unsigned i)
{
	return dyn_narrowed(b, tc_build_reshape(b, tc_build_part(b, list, 0, i, 1), 0, NULL));
}

void dyn_refuse(struct tc_ctx *c, const struct tc_op *op, unsigned operand, unsigned dim,
		const char *why)
{
	const struct tc_value *v = tc_in(op, operand);

	tc_fail(c, ERR_UNIMPLEMENTED, op, "dim %u of operand %u, of up to %lld, has a size that is "
		"known only when it runs: %s. Make the dim static before it, as by "
		"set_dimension_size to its bound, and say by a mask what counts", dim, operand,
		(long long)v->type->dim[dim], why);
}
