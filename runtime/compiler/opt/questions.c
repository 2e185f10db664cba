/* SPDX-License-Identifier: Apache-2.0 */
/* What fusing and emission both ask of ops. */
#include <string.h>

#include "hal/hw/isa.h"
#include "runtime/compiler/opt/fuse.h"

#define LEAST_PADDED 16384	/* bytes of a padded array that is born in its place */

const void *tc_splat_element(const struct tc_value *v)
{
	const struct tc_attr *a = v->def && v->def->op == TC_CONSTANT ?
		tc_attr(v->def, "value") : NULL;

	return a && (a->is_splat || a->type->count == 1) ? a->data : NULL;
}

/* Of f16 and bf16, by their bits; of other types that are only stored, zero for a sum. */
static bool is_narrow_identity(enum tc_opcode op, unsigned elem, uint16_t bits)
{
	bool is_half = elem == ELEM_F16;

	if (op == TC_ADD)
		return !bits && elem != ELEM_F8E8M0FNU;
	if (!is_half && elem != ELEM_BF16)
		return false;
	switch (op) {
	case TC_MULTIPLY: return bits == (is_half ? 0x3c00 : 0x3f80);
	case TC_MAXIMUM: return bits == (is_half ? 0xfc00 : 0xff80);
	case TC_MINIMUM: return bits == (is_half ? 0x7c00 : 0x7f80);
	default: return false;
	}
}

bool tc_is_identity(enum tc_opcode op, unsigned elem, const void *p)
{
	unsigned bytes = elem_bytes(elem), cls = elem_class(elem);
	int64_t v = 0, ones = -1;
	double f = 0;

	memcpy(&v, p, bytes > 8 ? 8 : bytes);
	/* the largest and the least of 2 and 4 bits are nobody's initial values */
	if (elem_bits(elem) < 8 && elem != ELEM_PRED &&
	    (op == TC_MAXIMUM || op == TC_MINIMUM || op == TC_AND))
		return false;
	if (elem == ELEM_F32) {
		float x;

		memcpy(&x, p, 4);
		f = x;
	} else if (elem == ELEM_F64) {
		memcpy(&f, p, 8);
	} else if (cls == ELEM_CLASS_FLOAT) {
		return is_narrow_identity(op, elem, (uint16_t)v);
	} else if (cls == ELEM_CLASS_COMPLEX) {
		static const uint8_t zero[16];

		return op == TC_ADD && !memcmp(p, zero, bytes);
	}
	switch (op) {
	/* By the bits: what sums begin with is 0, and -0 is another sum of none. */
	case TC_ADD: return v == 0;
	case TC_MULTIPLY: return cls == ELEM_CLASS_FLOAT ? f == 1 : v == 1;
	case TC_OR:
	case TC_XOR: return v == 0;
	case TC_AND: return elem == ELEM_PRED ? v == 1 : !memcmp(&ones, p, bytes);
	case TC_MAXIMUM:
		if (cls == ELEM_CLASS_FLOAT)
			return f == -__builtin_inf();
		if (cls != ELEM_CLASS_SINT)
			return v == 0;
		return (uint64_t)v == 1ull << (bytes * 8 - 1);
	case TC_MINIMUM:
		if (cls == ELEM_CLASS_FLOAT)
			return f == __builtin_inf();
		if (elem == ELEM_PRED)
			return v == 1;
		if (cls == ELEM_CLASS_UINT)
			return !memcmp(&ones, p, bytes);
		return (uint64_t)v == (1ull << (bytes * 8 - 1)) - 1;
	default: return false;
	}
}

enum tc_opcode tc_simple_reduce(const struct tc_op *op)
{
	const struct tc_block *b;
	const struct tc_op *f;
	const void *init;
	unsigned elem;

	if (op->op != TC_REDUCE || op->n_results != 1 || op->n_operands != 2)
		return TC_OP_COUNT;
	b = op->regions[0].block;
	f = b ? b->first : NULL;
	elem = op->results[0].type->elem;
	if (!f || f->n_results != 1 || f->n_operands != 2 || f->next != b->last ||
	    b->n_args != 2 || b->last->n_operands != 1 || tc_in(b->last, 0) != tc_out(f, 0) ||
	    !elem_computes(elem))
		return TC_OP_COUNT;
	if (!(tc_in(f, 0) == b->args[0] && tc_in(f, 1) == b->args[1]) &&
	    !(tc_in(f, 0) == b->args[1] && tc_in(f, 1) == b->args[0]))
		return TC_OP_COUNT;
	init = tc_splat_element(tc_in(op, 1));
	if (!init || !tc_is_identity(f->op, elem, init))
		return TC_OP_COUNT;
	/* A sum of pred is an or, a product an and. */
	if (elem == ELEM_PRED && f->op == TC_ADD)
		return TC_OR;
	if (elem == ELEM_PRED && f->op == TC_MULTIPLY)
		return TC_AND;
	if (elem == ELEM_PRED && (f->op == TC_MAXIMUM || f->op == TC_MINIMUM))
		return f->op == TC_MAXIMUM ? TC_OR : TC_AND;
	if (elem_class(elem) == ELEM_CLASS_COMPLEX && f->op != TC_ADD)
		return TC_OP_COUNT;
	return f->op;
}

bool tc_reduces_trailing(const struct tc_op *op, unsigned *n_outer)
{
	unsigned n, rank = tc_in(op, 0)->type->rank;
	const int64_t *dims = tc_attr_ints(op, "dimensions", &n);
	uint64_t mask = 0;

	for (unsigned i = 0; i < n; i++)
		mask |= 1ull << dims[i];
	*n_outer = rank - n;
	return n && mask == ((1ull << n) - 1) << (rank - n);
}

/* Who alone looks at v, or NULL. */
static const struct tc_op *only_user(const struct tc_value *v)
{
	return tc_is_used_once(v) ? v->uses->user : NULL;
}

bool tc_is_view(const struct tc_op *op)
{
	return op->op == TC_RESHAPE || op->op == TC_TRANSPOSE ||
	       (op->op == TC_BROADCAST_IN_DIM &&
		tc_in(op, 0)->type->count == op->results[0].type->count);
}

const struct tc_op *tc_join_of(const struct tc_value *v)
{
	const struct tc_op *join = only_user(v);

	while (join && tc_is_view(join))
		join = only_user(tc_out(join, 0));
	return join && join->op == TC_CONCATENATE && v->def && join->block == v->def->block ?
	       join : NULL;
}

const struct tc_value *tc_part_of(const struct tc_op *join, unsigned k)
{
	const struct tc_value *v = tc_in(join, k);

	while (v->def && tc_is_view(v->def) && only_user(v))
		v = tc_in(v->def, 0);
	return v->def && only_user(v) ? v : NULL;
}

bool tc_is_for_parts(const struct tc_op *op)
{
	/* little is copied as soon, and a whole that begins early may be in others' way */
	if (op->op == TC_PAD)
		return op->results[0].type->bytes >= LEAST_PADDED;
	return op->op == TC_FUSION || op->op == TC_DOT_GENERAL || op->op == TC_CONVOLUTION ||
	       op->op == TC_GATHER;
}

bool tc_takes_epilogue(const struct tc_op *op)
{
	const struct tc_type *t = op->results[0].type;
	bool has_m = false, has_n = false;
	unsigned nb, nk, first_n, n = 0;

	if (op->op == TC_CONVOLUTION)
		return true;
	tc_attr_ints(op, "lhs_batching_dimensions", &nb);
	tc_attr_ints(op, "lhs_contracting_dimensions", &nk);
	first_n = tc_in(op, 0)->type->rank - nk;
	for (unsigned d = 0; d < t->rank; d++) {
		n += t->dim[d] != 1;
		has_m |= d >= nb && d < first_n && t->dim[d] > 1;
		has_n |= d >= first_n && t->dim[d] > 1;
	}
	return n + !has_m + !has_n <= ISA_MAX_RANK;
}

bool tc_is_quick(const struct tc_op *op)
{
	switch (op->op) {
	case TC_ADD: case TC_SUBTRACT: case TC_MULTIPLY: case TC_NEGATE: case TC_ABS:
	case TC_MAXIMUM: case TC_MINIMUM: case TC_COMPARE: case TC_SELECT: case TC_NOT:
	case TC_AND: case TC_OR: case TC_XOR: case TC_CONVERT: case TC_FLOOR: case TC_CEIL:
		return op->results[0].type->rank <= ISA_MAX_RANK;
	default:
		return false;
	}
}

bool tc_only_ones_differ(const struct tc_type *from, const struct tc_type *to, int8_t *dim)
{
	unsigned k = 0;

	for (unsigned i = 0; i < from->rank; i++) {
		dim[i] = -1;
		if (from->dim[i] == 1)
			continue;
		while (k < to->rank && to->dim[k] == 1)
			k++;
		if (k == to->rank || to->dim[k] != from->dim[i])
			return false;
		dim[i] = (int8_t)k++;
	}
	while (k < to->rank && to->dim[k] == 1)
		k++;
	return k == to->rank;
}

bool tc_tie_operand(const struct tc_op *op, const int8_t *axis, int8_t *out)
{
	const struct tc_type *from = tc_in(op, 0)->type, *to = op->results[0].type;
	int8_t dim[TC_MAX_RANK];
	const int64_t *bd;
	unsigned n;

	memset(out, -1, ISA_MAX_RANK);
	if (from->rank > ISA_MAX_RANK)
		return false;
	if (op->op == TC_BROADCAST_IN_DIM) {
		bd = tc_attr_ints(op, "broadcast_dimensions", &n);
		if (from->count != to->count)
			return false;
		for (unsigned i = 0; i < n; i++)
			out[i] = from->dim[i] == 1 ? -1 : axis[bd[i]];
		return true;
	}
	if (op->op != TC_RESHAPE || !tc_only_ones_differ(from, to, dim))
		return false;
	for (unsigned i = 0; i < from->rank; i++)
		out[i] = dim[i] < 0 ? -1 : axis[dim[i]];
	return true;
}

/* Whether v is an argument of the program that no result is written over, or a view of one. */
static bool is_argument(const struct tc_value *v)
{
	const struct tc_op *func;

	while (v->def && (v->def->op == TC_SLICE || v->def->op == TC_RESHAPE))
		v = tc_in(v->def, 0);
	func = v->def ? NULL : v->block->region->parent;
	return func && func->op == TC_FUNC &&
	       !(func->arg_info && (func->arg_info[v->index].alias >= 0 ||
				    func->arg_info[v->index].is_donor));
}

static bool add_made(struct tc_made *m, const struct tc_value *v, const struct tc_value *first,
		     unsigned steps)
{
	const struct tc_op *op = v->def;
	unsigned at = 0;

	if (is_argument(v)) {
		while (at < m->n && m->of[at] != v)
			at++;
		if (at == TC_MOST_MADE_OF)
			return false;
		m->of[at] = v;
		m->n += at == m->n;
		return true;
	}
	if (!steps || !op || op->block != first->def->block || !tc_is_quick(op) ||
	    !tc_same_dims(v->type, first->type) || m->n_ops++ == TC_MOST_MADE_BY)
		return false;
	for (unsigned k = 0; k < op->n_operands; k++) {
		const struct tc_value *in = tc_in(op, k);

		if (!tc_splat_element(in) && (!tc_same_dims(in->type, first->type) ||
					      !add_made(m, in, first, steps - 1)))
			return false;
	}
	return true;
}

bool tc_add_made(struct tc_made *made, const struct tc_value *v, unsigned steps)
{
	struct tc_made m = *made;

	if (!v->def || !add_made(&m, v, v, steps))
		return false;
	*made = m;
	return true;
}

bool tc_same_read(const struct tc_read *a, const struct tc_read *b)
{
	const void *x, *y;

	if (a->elem != b->elem || a->v->type->elem != b->v->type->elem)
		return false;
	if (a->v != b->v) {
		x = tc_splat_element(a->v);
		y = tc_splat_element(b->v);
		return x && y && !memcmp(x, y, elem_bytes(a->v->type->elem));
	}
	for (unsigned d = 0; d < a->v->type->rank; d++)
		if (a->v->type->dim[d] > 1 && a->axis[d] != b->axis[d])
			return false;
	return true;
}

unsigned tc_values_to_make(const struct tc_read *r)
{
	unsigned elem = r->v->type->elem;

	if (tc_splat_element(r->v))
		return elem == ELEM_C128 ? 3 : 1;
	return r->v->def && r->v->def->op == TC_IOTA ? 1 + !elem_computes(elem) : 1;
}

/* ---- what an elementwise op takes in an instruction's body ---- */

unsigned tc_computing(unsigned elem)
{
	if (elem_computes(elem))
		return elem;
	switch (elem_class(elem)) {
	case ELEM_CLASS_SINT: return ELEM_S8;
	case ELEM_CLASS_UINT: return ELEM_U8;
	/* whose least number is below what f32 computes with */
	default: return elem == ELEM_F8E8M0FNU ? ELEM_F64 : ELEM_F32;
	}
}

/* The element type of its operands, but for a select's condition. */
static unsigned type_in(const struct tc_op *op)
{
	return op->n_operands ? tc_in(op, op->op == TC_SELECT ? 1 : 0)->type->elem :
				op->results[0].type->elem;
}

unsigned tc_works_in(const struct tc_op *op)
{
	unsigned elem = type_in(op);

	if (op->op == TC_CONVERT)
		return op->results[0].type->elem;
	/* pred has no arithmetic but add and mul, which XLA defines as or and and. */
	if (elem == ELEM_PRED && (op->op == TC_SUBTRACT || op->op == TC_DIVIDE ||
				  op->op == TC_REMAINDER || op->op == TC_ABS ||
				  op->op == TC_NEGATE || op->op == TC_POWER || op->op == TC_SIGN))
		return ELEM_U8;
	return op->op == TC_SELECT ? elem : tc_computing(elem);
}

bool tc_is_about_width(const struct tc_op *op)
{
	return elem_bits(type_in(op)) < 8 &&
	       (op->op == TC_COUNT_LEADING_ZEROS || op->op == TC_POPCNT ||
		op->op == TC_SHIFT_RIGHT_ARITHMETIC || op->op == TC_SHIFT_RIGHT_LOGICAL);
}

bool tc_is_even_bitcast(const struct tc_op *op)
{
	unsigned bits;

	if (op->op != TC_BITCAST_CONVERT)
		return false;
	bits = elem_bits(op->results[0].type->elem);
	return elem_bits(type_in(op)) == bits && bits % 8 == 0;
}

unsigned tc_most_values(const struct tc_op *op)
{
	unsigned in = type_in(op), to = op->results[0].type->elem;
	unsigned back = !elem_computes(to) || in == ELEM_PRED;	/* the result, converted */

	switch (op->op) {
	case TC_CONVERT:	/* which is all of it */
	case TC_RESHAPE:
	case TC_BROADCAST_IN_DIM:
		return 0;
	case TC_SELECT:
	case TC_REDUCE:
		return 1;
	case TC_COMPARE:
		return 2;
	case TC_REDUCE_PRECISION:	/* fewer_bits_of_f16 */
		return (elem_bits(in) > 16 || in == ELEM_BF16 ? 1 : 10) + back;
	default:
		return tc_is_about_width(op) ? 8 : 1 + back;
	}
}

unsigned tc_values_for(const struct tc_op *op)
{
	return tc_most_values(op) + 4 * op->n_operands;
}
