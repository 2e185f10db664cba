/* SPDX-License-Identifier: Apache-2.0 */
/* Writing ops (build.h). */
#include <string.h>

#include "runtime/compiler/opt/build.h"
#include "runtime/compiler/opt/fuse.h"

struct tc_build tc_build_at(struct tc_ctx *c, struct tc_op *op)
{
	return (struct tc_build){ .c = c, .before = op, .where = op->where };
}

struct tc_op *tc_build_place(const struct tc_build *b, struct tc_op *op)
{
	op->where = b->where;
	if (b->before)
		tc_insert_before(b->before, op);
	else
		tc_append(b->block, op);
	return op;
}

struct tc_value *tc_build(const struct tc_build *b, enum tc_opcode op,
			  const struct tc_type *type, unsigned n, struct tc_value *const *in)
{
	return tc_out(tc_build_place(b, tc_new(b->c, op, n, in, 1, &type, 0)), 0);
}

struct tc_value *tc_build1(const struct tc_build *b, enum tc_opcode op, struct tc_value *x)
{
	return tc_build(b, op, x->type, 1, &x);
}

struct tc_value *tc_build2(const struct tc_build *b, enum tc_opcode op, struct tc_value *x,
			   struct tc_value *y)
{
	struct tc_value *in[] = { x, y };

	return tc_build(b, op, x->type, 2, in);
}

struct tc_value *tc_build_select(const struct tc_build *b, struct tc_value *p,
				 struct tc_value *x, struct tc_value *y)
{
	struct tc_value *in[] = { p, x, y };

	return tc_build(b, TC_SELECT, x->type, 3, in);
}

struct tc_value *tc_build_compare(const struct tc_build *b, int direction, struct tc_value *x,
				  struct tc_value *y)
{
	struct tc_value *in[] = { x, y };
	struct tc_value *out = tc_build(b, TC_COMPARE,
					tc_with_elem(b->c, x->type, ELEM_PRED), 2, in);
	unsigned cls = elem_class(x->type->elem);

	tc_set_int(b->c, out->def, "comparison_direction", TC_ATTR_ENUM, direction);
	tc_set_int(b->c, out->def, "compare_type", TC_ATTR_ENUM,
		   cls == ELEM_CLASS_FLOAT || cls == ELEM_CLASS_COMPLEX ? TC_CMP_FLOAT :
		   cls == ELEM_CLASS_SINT ? TC_CMP_SIGNED : TC_CMP_UNSIGNED);
	return out;
}

struct tc_value *tc_build_convert(const struct tc_build *b, struct tc_value *x,
				  enum elem elem)
{
	if (x->type->elem == elem)
		return x;
	return tc_build(b, TC_CONVERT, tc_with_elem(b->c, x->type, elem), 1, &x);
}

struct tc_value *tc_build_data(const struct tc_build *b, const struct tc_type *type,
			       const void *data)
{
	void *copy = arena_copy(&b->c->arena, data, (size_t)type->bytes);
	struct tc_value *v = tc_build(b, TC_CONSTANT, type, 0, NULL);

	tc_set_attr(b->c, v->def, (struct tc_attr){
		.key = TC_KEY(b->c, "value"), .kind = TC_ATTR_DENSE, .type = type,
		.data = copy });
	return v;
}

/* A number that 16 bits hold exactly; 0: they don't, or only as a subnormal or infinite one. */
static size_t encode_half(enum elem elem, float f, void *to)
{
	uint32_t bits, rest = elem == ELEM_BF16 ? 0xffff : 0x1fff;
	uint16_t half;
	int exponent;

	memcpy(&bits, &f, 4);
	exponent = (int)(bits >> 23 & 255) - 127;
	if (bits & rest || (f != 0 && (exponent < -14 || exponent > 15)))
		return 0;
	half = (uint16_t)(bits >> 16);
	if (elem == ELEM_F16)
		half &= 0x8000;
	if (elem == ELEM_F16 && f != 0)
		half = (uint16_t)(half | (exponent + 15) << 10 | (int)(bits >> 13 & 1023));
	memcpy(to, &half, 2);
	return 2;
}

/* The bytes of a number, of the types that passes mostly want; 0: of no such type. */
static size_t encode(enum elem elem, double value, void *to)
{
	float f = (float)value, pair[2] = { f, 0 };
	double wide[2] = { value, 0 };
	/* Only whole numbers are asked for of those. */
	int64_t i = elem_class(elem) == ELEM_CLASS_SINT || elem_class(elem) == ELEM_CLASS_UINT ?
		    (int64_t)value : 0;

	switch (elem) {
	case ELEM_F32: memcpy(to, &f, 4); return 4;
	case ELEM_F64: memcpy(to, &value, 8); return 8;
	case ELEM_C64: memcpy(to, pair, 8); return 8;
	case ELEM_C128: memcpy(to, wide, 16); return 16;
	case ELEM_S32:
	case ELEM_U32: memcpy(to, &i, 4); return 4;
	case ELEM_S64:
	case ELEM_U64: memcpy(to, &i, 8); return 8;
	case ELEM_BF16:
	case ELEM_F16: return encode_half(elem, f, to);
	default: return 0;
	}
}

bool tc_is_integer(const struct tc_type *t)
{
	return elem_class(t->elem) == ELEM_CLASS_SINT || elem_class(t->elem) == ELEM_CLASS_UINT;
}

bool tc_is_number(const struct tc_value *v, double value)
{
	const void *element = tc_splat_element(v);
	uint8_t bytes[16];
	size_t n = element ? encode((enum elem)v->type->elem, value, bytes) : 0;

	return n && !memcmp(element, bytes, n);
}

bool tc_whole_number(const struct tc_value *v, int64_t *number)
{
	if (!tc_is_integer(v->type) || !tc_splat_element(v))
		return false;
	*number = tc_attr_element(tc_attr(v->def, "value"), 0);
	return true;
}

struct tc_value *tc_build_number(const struct tc_build *b, const struct tc_type *type,
				 double value)
{
	const struct tc_type *scalar = tc_tensor(b->c, ELEM_F64, 0, NULL);
	struct tc_value *v;
	uint8_t bytes[16];
	size_t n = encode((enum elem)type->elem, value, bytes);

	if (n) {
		v = tc_build(b, TC_CONSTANT, type, 0, NULL);
		tc_set_attr(b->c, v->def, (struct tc_attr){
			.key = TC_KEY(b->c, "value"), .kind = TC_ATTR_DENSE, .type = type,
			.is_splat = true, .data = arena_copy(&b->c->arena, bytes, n) });
		return v;
	}
	v = tc_build_convert(b, tc_build_data(b, scalar, &value), (enum elem)type->elem);
	return type->rank ? tc_build_broadcast(b, v, type, NULL) : v;
}

struct tc_value *tc_build_iota(const struct tc_build *b, const struct tc_type *type,
			       unsigned dim)
{
	struct tc_value *v = tc_build(b, TC_IOTA, type, 0, NULL);

	tc_set_int(b->c, v->def, "iota_dimension", TC_ATTR_INT, dim);
	return v;
}

struct tc_value *tc_build_reshape(const struct tc_build *b, struct tc_value *x, unsigned rank,
				  const int64_t *dim)
{
	return tc_build(b, TC_RESHAPE, tc_tensor(b->c, x->type->elem, rank, dim), 1, &x);
}

struct tc_value *tc_build_broadcast(const struct tc_build *b, struct tc_value *x,
				    const struct tc_type *type, const int64_t *dims)
{
	struct tc_value *v = tc_build(b, TC_BROADCAST_IN_DIM, type, 1, &x);

	tc_set_ints(b->c, v->def, "broadcast_dimensions", dims, x->type->rank);
	return v;
}

struct tc_value *tc_build_transpose(const struct tc_build *b, struct tc_value *x,
				    const int64_t *permutation)
{
	const struct tc_type *t = x->type;
	int64_t dim[TC_MAX_RANK];
	struct tc_value *v;

	for (unsigned d = 0; d < t->rank; d++)
		dim[d] = t->dim[permutation[d]];
	v = tc_build(b, TC_TRANSPOSE, tc_tensor(b->c, t->elem, t->rank, dim), 1, &x);
	tc_set_ints(b->c, v->def, "permutation", permutation, t->rank);
	return v;
}

struct tc_value *tc_build_turn(const struct tc_build *b, struct tc_value *x)
{
	unsigned r = x->type->rank;
	int64_t p[TC_MAX_RANK];

	for (unsigned d = 0; d < r; d++)
		p[d] = d;
	p[r - 1] = r - 2;
	p[r - 2] = r - 1;
	return tc_build_transpose(b, x, p);
}

struct tc_value *tc_build_steps(const struct tc_build *b, struct tc_value *x,
				const int64_t *start, const int64_t *step,
				const struct tc_type *type)
{
	struct tc_value *v = tc_build(b, TC_SLICE, type, 1, &x);
	int64_t limit[TC_MAX_RANK];

	for (unsigned d = 0; d < type->rank; d++)
		limit[d] = type->dim[d] ? start[d] + (type->dim[d] - 1) * step[d] + 1 : start[d];
	tc_set_ints(b->c, v->def, "start_indices", start, type->rank);
	tc_set_ints(b->c, v->def, "limit_indices", limit, type->rank);
	tc_set_ints(b->c, v->def, "strides", step, type->rank);
	return v;
}

struct tc_value *tc_build_slice(const struct tc_build *b, struct tc_value *x,
				const int64_t *start, const struct tc_type *type)
{
	int64_t step[TC_MAX_RANK];

	for (unsigned d = 0; d < type->rank; d++)
		step[d] = 1;
	return tc_build_steps(b, x, start, step, type);
}

struct tc_value *tc_build_pad(const struct tc_build *b, struct tc_value *x, struct tc_value *by,
			      const int64_t *low, const int64_t *high, const int64_t *interior)
{
	const struct tc_type *t = x->type;
	struct tc_value *in[2] = { x, by }, *v;
	int64_t dim[TC_MAX_RANK];

	for (unsigned d = 0; d < t->rank; d++)
		dim[d] = low[d] + high[d] + t->dim[d] +
			 (t->dim[d] ? t->dim[d] - 1 : 0) * interior[d];
	v = tc_build(b, TC_PAD, tc_tensor(b->c, (enum elem)t->elem, t->rank, dim), 2, in);
	tc_set_ints(b->c, v->def, "edge_padding_low", low, t->rank);
	tc_set_ints(b->c, v->def, "edge_padding_high", high, t->rank);
	tc_set_ints(b->c, v->def, "interior_padding", interior, t->rank);
	return v;
}

/* Operands of a dynamic slice: x, then (for an update) the part, then an index a dim. */
static unsigned place_indices(const struct tc_build *b, unsigned rank, unsigned dim,
			      struct tc_value *index, struct tc_value **to)
{
	struct tc_value *zero = tc_build_number(b, index->type, 0);

	for (unsigned d = 0; d < rank; d++)
		to[d] = d == dim ? index : zero;
	return rank;
}

struct tc_value *tc_build_take(const struct tc_build *b, struct tc_value *x, unsigned dim,
			       struct tc_value *index, int64_t size)
{
	const struct tc_type *t = x->type;
	struct tc_value *in[TC_MAX_RANK + 1] = { x }, *v;
	int64_t sizes[TC_MAX_RANK];
	unsigned n = 1 + place_indices(b, t->rank, dim, index, in + 1);

	memcpy(sizes, t->dim, t->rank * sizeof(*sizes));
	sizes[dim] = size;
	v = tc_build(b, TC_DYNAMIC_SLICE, tc_tensor(b->c, t->elem, t->rank, sizes), n, in);
	tc_set_ints(b->c, v->def, "slice_sizes", sizes, t->rank);
	return v;
}

struct tc_value *tc_build_rows(const struct tc_build *b, struct tc_value *x,
			       struct tc_value *rows)
{
	const int64_t dim[] = { rows->type->dim[0], rows->type->dim[1], x->type->dim[2] };
	const int64_t zero = 0, one = 1, two = 2, sizes[] = { 1, 1, dim[2] };
	const struct tc_type *type = tc_tensor(b->c, (enum elem)x->type->elem, 3, dim);
	struct tc_op *op = tc_build(b, TC_GATHER, type, 2, (struct tc_value *[]){ x, rows })->def;

	tc_set_ints(b->c, op, "offset_dims", &two, 1);
	tc_set_ints(b->c, op, "collapsed_slice_dims", &one, 1);
	tc_set_ints(b->c, op, "operand_batching_dims", &zero, 1);
	tc_set_ints(b->c, op, "start_indices_batching_dims", &zero, 1);
	tc_set_ints(b->c, op, "start_index_map", &one, 1);
	tc_set_int(b->c, op, "index_vector_dim", TC_ATTR_INT, 2);
	tc_set_ints(b->c, op, "slice_sizes", sizes, 3);
	tc_set_int(b->c, op, "indices_are_sorted", TC_ATTR_BOOL, 0);
	return tc_out(op, 0);
}

struct tc_value *tc_build_put(const struct tc_build *b, struct tc_value *x, unsigned dim,
			      struct tc_value *index, struct tc_value *part)
{
	struct tc_value *in[TC_MAX_RANK + 2] = { x, part };
	unsigned n = 2 + place_indices(b, x->type->rank, dim, index, in + 2);

	return tc_build(b, TC_DYNAMIC_UPDATE_SLICE, x->type, n, in);
}

struct tc_value *tc_build_dot(const struct tc_build *b, struct tc_value *x,
			      struct tc_value *y, unsigned batch, unsigned x_dim,
			      unsigned y_dim)
{
	struct tc_value *in[] = { x, y }, *v;
	int64_t dim[2 * TC_MAX_RANK], shared[TC_MAX_RANK], xs = x_dim, ys = y_dim;
	unsigned n = 0;

	for (unsigned d = 0; d < batch; d++) {
		shared[d] = d;
		dim[n++] = x->type->dim[d];
	}
	for (unsigned d = batch; d < x->type->rank; d++)
		if (d != x_dim)
			dim[n++] = x->type->dim[d];
	for (unsigned d = batch; d < y->type->rank; d++)
		if (d != y_dim)
			dim[n++] = y->type->dim[d];
	v = tc_build(b, TC_DOT_GENERAL, tc_tensor(b->c, x->type->elem, n, dim), 2, in);
	tc_set_ints(b->c, v->def, "lhs_batching_dimensions", shared, batch);
	tc_set_ints(b->c, v->def, "rhs_batching_dimensions", shared, batch);
	tc_set_ints(b->c, v->def, "lhs_contracting_dimensions", &xs, 1);
	tc_set_ints(b->c, v->def, "rhs_contracting_dimensions", &ys, 1);
	return v;
}

void tc_build_return(const struct tc_build *b, unsigned n, struct tc_value *const *values)
{
	tc_build_place(b, tc_new(b->c, TC_RETURN, n, values, 0, NULL, 0));
}

struct tc_value *tc_build_sum(const struct tc_build *b, struct tc_value *x, uint64_t dims)
{
	return tc_build_fold(b, TC_ADD, x, 0, dims);
}

struct tc_value *tc_build_fold(const struct tc_build *b, enum tc_opcode opcode,
			       struct tc_value *x, double first, uint64_t set)
{
	const struct tc_type *t = x->type, *scalar = tc_tensor(b->c, t->elem, 0, NULL), *type;
	struct tc_value *in[] = { x, tc_build_number(b, scalar, first) }, *sum;
	struct tc_build inner = { .c = b->c, .where = b->where };
	int64_t dims[TC_MAX_RANK], kept[TC_MAX_RANK];
	unsigned n = 0, rank = 0;
	struct tc_op *op;

	for (unsigned d = 0; d < t->rank; d++)
		if (set >> d & 1)
			dims[n++] = d;
		else
			kept[rank++] = t->dim[d];
	type = tc_tensor(b->c, t->elem, rank, kept);
	op = tc_new(b->c, TC_REDUCE, 2, in, 1, &type, 1);
	tc_set_ints(b->c, op, "dimensions", dims, n);
	inner.block = tc_new_block(b->c, &op->regions[0]);
	sum = tc_new_arg(b->c, inner.block, scalar);
	sum = tc_build2(&inner, opcode, sum, tc_new_arg(b->c, inner.block, scalar));
	tc_build_return(&inner, 1, &sum);
	return tc_out(tc_build_place(b, op), 0);
}

struct tc_value *tc_build_join(const struct tc_build *b, unsigned n,
			       struct tc_value *const *parts, unsigned dim)
{
	const struct tc_type *t = parts[0]->type;
	int64_t size[TC_MAX_RANK];
	struct tc_value *v;

	memcpy(size, t->dim, t->rank * sizeof(*size));
	size[dim] = 0;
	for (unsigned i = 0; i < n; i++)
		size[dim] += parts[i]->type->dim[dim];
	v = tc_build(b, TC_CONCATENATE, tc_tensor(b->c, t->elem, t->rank, size), n, parts);
	tc_set_int(b->c, v->def, "dimension", TC_ATTR_INT, dim);
	return v;
}

struct tc_value *tc_build_part(const struct tc_build *b, struct tc_value *x, unsigned dim,
			       int64_t from, int64_t size)
{
	const struct tc_type *t = x->type;
	int64_t start[TC_MAX_RANK] = { 0 }, sizes[TC_MAX_RANK];

	memcpy(sizes, t->dim, t->rank * sizeof(*sizes));
	start[dim] = from;
	sizes[dim] = size;
	return tc_build_slice(b, x, start, tc_tensor(b->c, t->elem, t->rank, sizes));
}

enum elem tc_real_of(enum elem elem)
{
	return elem == ELEM_C64 ? ELEM_F32 : elem == ELEM_C128 ? ELEM_F64 : elem;
}

struct tc_value *tc_build_real(const struct tc_build *b, struct tc_value *x)
{
	enum elem real = tc_real_of((enum elem)x->type->elem);

	return real == x->type->elem ? x :
		tc_build(b, TC_REAL, tc_with_elem(b->c, x->type, real), 1, &x);
}

struct tc_value *tc_build_conjugate(const struct tc_build *b, struct tc_value *x)
{
	enum elem real = tc_real_of((enum elem)x->type->elem);
	struct tc_value *part[2];

	if (real == x->type->elem)
		return x;
	part[0] = tc_build_real(b, x);
	part[1] = tc_build(b, TC_IMAG, part[0]->type, 1, &x);
	part[1] = tc_build1(b, TC_NEGATE, part[1]);
	return tc_build(b, TC_COMPLEX, x->type, 2, part);
}

struct tc_value *tc_build_where(const struct tc_build *b, const struct tc_type *type,
				int direction)
{
	const struct tc_type *s32 = tc_with_elem(b->c, type, ELEM_S32);

	return tc_build_compare(b, direction, tc_build_iota(b, s32, 1),
				tc_build_iota(b, s32, 2));
}

struct tc_value *tc_build_matrices(const struct tc_build *b, struct tc_value *x)
{
	const struct tc_type *t = x->type;
	int64_t dim[3] = { 1, t->dim[t->rank - 2], t->dim[t->rank - 1] };

	for (unsigned d = 0; d + 2 < t->rank; d++)
		dim[0] *= t->dim[d];
	return tc_build_reshape(b, x, 3, dim);
}

struct tc_value *tc_build_region(const struct tc_build *b, const struct tc_region *r,
				 struct tc_value *const *args)
{
	struct tc_map *map = tc_map_new(b->c);
	const struct tc_block *block = r->block;

	for (unsigned i = 0; i < block->n_args; i++)
		tc_map_set(b->c, map, block->args[i], args[i]);
	for (const struct tc_op *op = block->first; op != block->last; op = op->next)
		tc_build_place(b, tc_clone(b->c, op, map));
	return tc_map_get(map, tc_in(block->last, 0));
}

const struct tc_op *tc_only_for_scalars(const struct tc_block *body)
{
	for (const struct tc_op *o = body->first; o != body->last; o = o->next)
		if ((!tc_has_trait(o, 'e') && o->op != TC_CONSTANT) ||
		    tc_out(o, 0)->type->rank)
			return o;
	return NULL;
}

/* A scalar of around the body, if v is one, is the same for all elements. */
static void spread_captured(const struct tc_build *b, const struct tc_block *body,
			    struct tc_value *v, const struct tc_type *shape, struct tc_map *map)
{
	const struct tc_type *t = tc_with_elem(b->c, shape, (enum elem)v->type->elem);

	if ((v->def ? v->def->block : v->block) != body && tc_map_get(map, v) == v)
		tc_map_set(b->c, map, v, tc_build_broadcast(b, v, t, NULL));
}

void tc_build_on_arrays(const struct tc_build *b, const struct tc_block *body,
			struct tc_value *const *args, const struct tc_type *shape,
			struct tc_value **out)
{
	struct tc_map *map = tc_map_new(b->c);
	const int64_t none = 0;

	for (unsigned i = 0; i < body->n_args; i++)
		tc_map_set(b->c, map, body->args[i], args[i]);
	for (const struct tc_op *o = body->first; o; o = o->next)
		for (unsigned i = 0; i < o->n_operands; i++)
			spread_captured(b, body, tc_in(o, i), shape, map);
	for (const struct tc_op *o = body->first; o != body->last; o = o->next) {
		const struct tc_type *t = tc_with_elem(b->c, shape, tc_out(o, 0)->type->elem);
		struct tc_op *copy = tc_build_place(b, tc_clone(b->c, o, map));

		if (o->op == TC_CONSTANT)
			tc_map_set(b->c, map, tc_out(o, 0),
				   tc_build_broadcast(b, tc_out(copy, 0), t, &none));
		else
			tc_out(copy, 0)->type = t;
	}
	for (unsigned i = 0; i < body->last->n_operands; i++)
		out[i] = tc_map_get(map, tc_in(body->last, i));
}

void tc_build_loop(const struct tc_build *b, const struct tc_loop *loop, unsigned n_state,
		   struct tc_value **state)
{
	const struct tc_type *s32 = tc_tensor(b->c, ELEM_S32, 0, NULL), *types[9];
	struct tc_value *values[9] = { tc_build_number(b, s32, 0) }, *more;
	struct tc_build inner = { .c = b->c, .where = b->where };
	struct tc_op *op;

	for (unsigned i = 0; i < n_state; i++)
		values[i + 1] = state[i];
	for (unsigned i = 0; i <= n_state; i++)
		types[i] = values[i]->type;
	op = tc_new(b->c, TC_WHILE, n_state + 1, values, n_state + 1, types, 2);
	for (unsigned r = 0; r < 2; r++) {
		struct tc_block *block = tc_new_block(b->c, &op->regions[r]);

		for (unsigned i = 0; i <= n_state; i++)
			tc_new_arg(b->c, block, types[i]);
	}
	inner.block = op->regions[0].block;
	more = tc_build_compare(&inner, TC_CMP_LT, inner.block->args[0],
				tc_build_number(&inner, s32, (double)loop->n));
	if (loop->more)
		more = tc_build2(&inner, TC_AND, more,
				 loop->more(&inner, inner.block->args + 1, loop->arg));
	tc_build_return(&inner, 1, &more);
	inner.block = op->regions[1].block;
	memcpy(values, inner.block->args, (n_state + 1) * sizeof(*values));
	loop->body(&inner, values[0], values + 1, loop->arg);
	values[0] = tc_build2(&inner, TC_ADD, values[0], tc_build_number(&inner, s32, 1));
	tc_build_return(&inner, n_state + 1, values);
	tc_build_place(b, op);
	for (unsigned i = 0; i < n_state; i++)
		state[i] = tc_out(op, i + 1);
}

enum tc_opcode tc_op_of_body(const struct tc_block *b)
{
	const struct tc_op *op = b->first;

	if (b->n_args != 2 || op == b->last || op->next != b->last ||
	    op->n_operands != 2 || b->last->n_operands != 1 || tc_in(b->last, 0)->def != op ||
	    !((tc_in(op, 0) == b->args[0] && tc_in(op, 1) == b->args[1]) ||
	      (tc_in(op, 0) == b->args[1] && tc_in(op, 1) == b->args[0])))
		return TC_OP_COUNT;
	switch (op->op) {
	case TC_ADD: case TC_MULTIPLY: case TC_MAXIMUM: case TC_MINIMUM: case TC_AND: case TC_OR:
	case TC_XOR:
		return (enum tc_opcode)op->op;
	default:
		return TC_OP_COUNT;
	}
}
