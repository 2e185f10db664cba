/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LOOP fusions become VEC, other reductions REDUCE.
 *
 * Inputs must be known before the first uop, since values are numbered inputs first:
 * so a fusion's ops are walked twice, once to collect inputs, once to write uops. An
 * argument that is read in two ways (as it is, and broadcast) is two inputs.
 *
 * A fusion that puts its operands together (opt/boxes.c) becomes a VEC for each box of its space.
 * Where its results lie is settled before the first of them.
 */
#include <string.h>

#include "runtime/compiler/back/link.h"
#include "runtime/compiler/opt/fuse.h"

#define MOST_BESIDE 4	/* one of so many points on a line may be none of its box */

struct input {
	const struct tc_value *v;	/* block argument, or what is put together of some */
	int8_t axis[ISA_MAX_RANK];	/* iteration dim of each of its dims; -1: none */
	uint8_t value;
};

/* What is known of a value inside: the iteration dims that its dims are. */
struct fact {
	const struct tc_value *v;
	bool is_narrow;
	int8_t axis[ISA_MAX_RANK];
};

struct loop {
	struct emit *e;
	const struct tc_op *fusion;
	const struct tc_block *block;
	const struct tc_type *shape;	/* the iteration shape */
	struct body b;
	struct input inputs[ISA_MAX_IN];
	unsigned n_inputs;
	struct fact facts[256];
	unsigned n_facts;
	int n_outer;			/* dims before the rows; -1: no rows */
	bool is_epilogue;		/* of a product, whose operands are not in b.in */
	const struct tc_value *side[2];	/* those, outside */
	bool reads_peers;		/* as VEC alone does */
	const int8_t *dim_of;		/* iteration dim of each dim of shape (epilogues) */
	const struct tc_box *box;	/* of the space, that this instruction is of; NULL: all */
	unsigned n_before;		/* that lie before it in memory, and have been */
};

static const int8_t straight[ISA_MAX_RANK] = { 0, 1, 2, 3, 4, 5, 6, 7 };

static bool is_full(const struct loop *l, const struct tc_type *t)
{
	return tc_same_dims(t, l->shape);
}

static struct fact *fact_of(struct loop *l, const struct tc_value *v)
{
	for (unsigned i = l->n_facts; i-- > 0;)
		if (l->facts[i].v == v)
			return &l->facts[i];
	return NULL;
}

static void learn(struct loop *l, const struct tc_value *v, bool is_narrow,
		  const int8_t *axis)
{
	struct fact *f = &l->facts[l->n_facts];

	if (l->n_facts == sizeof(l->facts) / sizeof(*l->facts))
		tc_refuse(l->e, "the fusion is too large");
	f->v = v;
	f->is_narrow = is_narrow;
	memcpy(f->axis, axis ? axis : straight, sizeof(f->axis));
	l->n_facts++;
}

/* Whether v is read from memory. */
static bool is_argument(const struct tc_value *v)
{
	return !v->def || tc_is_put_together(v);
}

static int64_t size_of(const struct loop *l, unsigned d)
{
	return l->box ? l->box->size[d] : l->shape->dim[d];
}

/* Makes op, which reads or writes all of the space, that of the box. */
static void move_to_box(const struct loop *l, struct isa_operand *op)
{
	for (unsigned d = 0; l->box && d < l->shape->rank; d++) {
		op->offset += l->box->first[d] * op->stride[d];
		if (l->box->size[d] == 1)
			op->stride[d] = 0;
	}
}

/* Along a dim of size 1 nothing is read otherwise. */
static bool same_axes(const struct tc_type *t, const int8_t *a, const int8_t *b)
{
	for (unsigned d = 0; d < t->rank; d++)
		if (t->dim[d] > 1 && a[d] != b[d])
			return false;
	return true;
}

static struct input *find_input(struct loop *l, const struct tc_value *v,
				const int8_t *axis)
{
	for (unsigned i = 0; i < l->n_inputs; i++)
		if (l->inputs[i].v == v && same_axes(v->type, l->inputs[i].axis, axis))
			return &l->inputs[i];
	return NULL;
}

/* What is put together is the same everywhere in the box. */
static const void *element_in_box(const struct loop *l, const struct tc_value *v)
{
	int64_t start[ISA_MAX_RANK];

	if (!l->box || !tc_is_put_together(v))
		return NULL;
	return tc_splat_element(tc_part_in_box(v, l->box, start));
}

/* Reads what v, which is put together, is in the box. */
static void read_part(struct loop *l, const struct tc_value *v, struct isa_operand *op)
{
	int64_t start[ISA_MAX_RANK];
	const struct tc_value *part = tc_part_in_box(v, l->box, start);
	const struct home *h = tc_home(l->e, tc_in(l->fusion, part->index));

	*op = tc_operand(h, v->type->elem);
	for (unsigned d = 0; d < v->type->rank; d++) {
		op->offset += start[d] * h->stride[d];
		op->stride[d] = l->box->size[d] > 1 ? h->stride[d] : 0;
	}
}

static void count_moved(struct loop *l, const struct tc_value *v)
{
	l->e->bytes += (double)v->type->bytes;
	l->e->cost_ns += (double)v->type->bytes * 0.05;
}

/* Reads argument v with its dims at `axis` of the iteration space. */
static void need_input(struct loop *l, const struct tc_value *v, const int8_t *axis)
{
	const struct tc_value *outside;
	const struct home *h;
	struct isa_operand *op;
	struct input *in;

	if (find_input(l, v, axis) || element_in_box(l, v))
		return;
	if (tc_is_put_together(v) && !l->box) {
		count_moved(l, v);
		return;
	}
	if (l->n_inputs == ISA_MAX_IN)
		tc_refuse(l->e, "the fusion reads more values than one instruction can");
	in = &l->inputs[l->n_inputs++];
	in->v = v;
	memcpy(in->axis, axis, sizeof(in->axis));
	in->value = (uint8_t)(l->b.n_pre + l->b.n_in);
	l->b.elems[in->value] = v->type->elem;
	op = &l->b.in[l->b.n_in++];
	if (tc_is_put_together(v)) {
		read_part(l, v, op);
		return;
	}
	outside = tc_in(l->fusion, v->index);
	h = tc_home(l->e, outside);
	*op = tc_operand(h, v->type->elem);
	for (unsigned d = 0; d < v->type->rank; d++)
		if (axis[d] >= 0 && v->type->dim[d] > 1)
			op->stride[l->dim_of[axis[d]]] = h->stride[d];
	if (!l->is_epilogue)
		l->reads_peers |= tc_find_lent(l->e, outside, op);
	move_to_box(l, op);
	if (!l->box)
		count_moved(l, v);
}

/* The iteration dims of a broadcast's operand. */
static void broadcast_axes(const struct tc_op *op, const int8_t *result, int8_t *out)
{
	const struct tc_type *from = tc_in(op, 0)->type;
	unsigned n;
	const int64_t *bd = tc_attr_ints(op, "broadcast_dimensions", &n);

	memset(out, -1, ISA_MAX_RANK);
	for (unsigned i = 0; i < n && i < ISA_MAX_RANK; i++)
		out[i] = from->dim[i] == 1 ? -1 : result[bd[i]];
}

/* Forward: the dims of a narrow reshape's or broadcast's result. */
static void forward_axes(const struct tc_op *op, const int8_t *in, int8_t *out)
{
	const struct tc_type *from = tc_in(op, 0)->type, *to = op->results[0].type;
	unsigned n, k = 0;
	const int64_t *bd;

	memset(out, -1, ISA_MAX_RANK);
	if (op->op == TC_BROADCAST_IN_DIM) {
		bd = tc_attr_ints(op, "broadcast_dimensions", &n);
		for (unsigned i = 0; i < n; i++)
			out[bd[i]] = in[i];
		return;
	}
	for (unsigned i = 0; i < to->rank; i++) {
		if (to->dim[i] == 1)
			continue;
		while (k < from->rank && from->dim[k] == 1)
			k++;
		out[i] = k < from->rank ? in[k++] : -1;
	}
}

static void learn_reduce(struct loop *l, const struct tc_op *op)
{
	int8_t axis[ISA_MAX_RANK];
	unsigned n, k = 0;
	const int64_t *dims = tc_attr_ints(op, "dimensions", &n);
	uint32_t mask = 0;

	memset(axis, -1, sizeof(axis));
	for (unsigned i = 0; i < n; i++)
		mask |= 1u << dims[i];
	for (unsigned d = 0; d < l->shape->rank; d++)
		if (!(mask >> d & 1))
			axis[k++] = (int8_t)d;
	learn(l, tc_out(op, 0), true, axis);
	for (const struct tc_use *u = op->results[0].uses; u; u = u->next)
		if (u->user->op != TC_RETURN)
			l->n_outer = (int)k;
}

/* First walk: facts of all values, inputs. */
static void collect(struct loop *l, const struct tc_op *op)
{
	struct fact *narrow = NULL;
	int8_t axis[ISA_MAX_RANK];

	if (op->op == TC_CONSTANT || op->op == TC_IOTA || tc_is_put_together(tc_out(op, 0)))
		return;
	if (op->op == TC_REDUCE) {
		if (is_argument(tc_in(op, 0)))
			need_input(l, tc_in(op, 0), straight);
		learn_reduce(l, op);
		return;
	}
	for (unsigned i = 0; i < op->n_operands; i++) {
		struct fact *f = fact_of(l, tc_in(op, i));

		if (f && f->is_narrow)
			narrow = f;
	}
	if (op->op == TC_BROADCAST_IN_DIM || op->op == TC_RESHAPE) {
		if (narrow && !is_full(l, op->results[0].type)) {
			forward_axes(op, narrow->axis, axis);
			learn(l, tc_out(op, 0), true, axis);
			return;
		}
		if (is_argument(tc_in(op, 0))) {
			broadcast_axes(op, straight, axis);
			need_input(l, tc_in(op, 0), axis);
		}
		learn(l, tc_out(op, 0), false, NULL);
		return;
	}
	memcpy(axis, narrow ? narrow->axis : straight, sizeof(axis));
	for (unsigned i = 0; i < op->n_operands; i++)
		if (is_argument(tc_in(op, i)))
			need_input(l, tc_in(op, i), axis);
	learn(l, tc_out(op, 0), narrow != NULL, axis);
}

static unsigned row_uop(enum tc_opcode op)
{
	switch (op) {
	case TC_ADD: return UOP_RADD;
	case TC_MULTIPLY: return UOP_RMUL;
	case TC_MINIMUM: return UOP_RMIN;
	case TC_MAXIMUM: return UOP_RMAX;
	case TC_AND: return UOP_RAND;
	case TC_OR: return UOP_ROR;
	default: return UOP_RXOR;
	}
}

static unsigned combine_of(enum tc_opcode op)
{
	switch (op) {
	case TC_ADD: return ISA_COMBINE_ADD;
	case TC_MULTIPLY: return ISA_COMBINE_MUL;
	case TC_MINIMUM: return ISA_COMBINE_MIN;
	case TC_MAXIMUM: return ISA_COMBINE_MAX;
	case TC_AND: return ISA_COMBINE_AND;
	case TC_OR: return ISA_COMBINE_OR;
	default: return ISA_COMBINE_XOR;
	}
}

/* The uop value of v read with dims at `axis`; constants and iotas are made. */
static uint8_t value_of(struct loop *l, const struct tc_value *v, const int8_t *axis)
{
	const void *element;
	struct input *in;
	int known;

	element = element_in_box(l, v);
	if (element)
		return tc_body_imm(&l->b, v->type->elem, element);
	if (is_argument(v)) {
		in = find_input(l, v, axis);
		if (!in)
			tc_fail(l->e->c, ERR_INTERNAL, l->fusion, "an input was missed");
		return in->value;
	}
	known = tc_body_find(&l->b, v);
	if (known >= 0)
		return (uint8_t)known;
	element = tc_splat_element(v);
	if (element)
		return tc_body_imm(&l->b, v->type->elem, element);
	if (v->def->op == TC_IOTA) {
		unsigned elem = v->type->elem;
		unsigned d = (unsigned)tc_attr_int(v->def, "iota_dimension", 0);
		static const uint8_t zero[16];
		int64_t first;

		/* A product iterates over no dims of size 1. */
		if (v->type->dim[d] <= 1)
			return tc_body_imm(&l->b, elem, zero);
		first = l->box ? l->box->first[axis[d]] : 0;
		return tc_body_iota(&l->b, (unsigned)l->dim_of[axis[d]], elem, first,
				    first + size_of(l, (unsigned)axis[d]));
	}
	tc_fail(l->e->c, ERR_INTERNAL, l->fusion, "a value was missed");
}

/* Second walk: uops. */
static void translate(struct loop *l, const struct tc_op *op)
{
	struct fact *f = op->n_results ? fact_of(l, tc_out(op, 0)) : NULL;
	int8_t axis[ISA_MAX_RANK];
	unsigned known_before = l->b.n_known;

	if (op->op == TC_CONSTANT || op->op == TC_IOTA || tc_is_put_together(tc_out(op, 0)))
		return;
	if (op->op == TC_REDUCE) {
		uint8_t in = value_of(l, tc_in(op, 0), straight);

		if (l->n_outer >= 0)
			in = tc_body_uop(&l->b, (struct isa_uop){
				.op = (uint8_t)row_uop(tc_simple_reduce(op)),
				.elem = op->results[0].type->elem, .a = in },
				op->results[0].type->elem);
		tc_body_know(&l->b, tc_out(op, 0), in);
		l->e->flops += (double)l->shape->count;
		return;
	}
	if (op->op == TC_BROADCAST_IN_DIM || op->op == TC_RESHAPE) {
		broadcast_axes(op, straight, axis);
		tc_body_know(&l->b, tc_out(op, 0), value_of(l, tc_in(op, 0), axis));
		return;
	}
	/* Let tc_body_op find arguments and iotas by value. */
	for (unsigned i = 0; i < op->n_operands; i++) {
		const struct tc_value *v = tc_in(op, i);

		if (is_argument(v) || v->def->op == TC_IOTA)
			tc_body_know(&l->b, v, value_of(l, v, f->axis));
	}
	tc_body_op(&l->b, op);
	/* Arguments may be read in another way by the next op: forget them. */
	l->b.known[known_before] = l->b.known[l->b.n_known - 1];
	l->b.n_known = known_before + 1;
}

/* Stores result i at `h`. */
static void set_place(struct loop *l, unsigned i, const struct home *h, struct isa_operand *op)
{
	const struct tc_value *outside = tc_out(l->fusion, i);
	struct fact *f = fact_of(l, tc_in(l->block->last, i));
	const int8_t *axis = f ? f->axis : straight;

	op->binding = h->buf->binding;
	op->offset = h->offset;
	for (unsigned d = 0; d < outside->type->rank; d++)
		if (axis[d] >= 0 && outside->type->dim[d] > 1)
			op->stride[l->dim_of[axis[d]]] = h->stride[d];
	move_to_box(l, op);
}

/* What an operand touches, point by point. */
static void walk(const struct loop *l, const struct isa_operand *op, struct tc_walk *w)
{
	tc_walk_start(w, op->binding, op->reg, op->offset, elem_bytes(op->elem));
	for (unsigned d = 0; d < l->shape->rank; d++)
		tc_walk_dim(w, size_of(l, d), op->stride[l->dim_of[d]]);
}

/* Whether w meets what a product reads as its sides, all of it for any of its points. */
static bool meets_sides(const struct loop *l, const struct tc_walk *w)
{
	struct tc_walk other;

	for (unsigned k = 0; k < 2 && l->side[k]; k++) {
		const struct home *h = tc_home_to_view(l->e, l->side[k]);

		if (h->buf->binding != w->binding)
			continue;
		tc_walk_home(&other, h, l->side[k]->type);
		/* Where a slice begins is not known. */
		if (h->slice || tc_alias(w, &other) != TC_APART)
			return true;
	}
	return false;
}

/* Whether the fusion may write `out`: at each point all inputs and the other outputs are
 * elsewhere, or an input is read right where the point is written. */
static bool may_write(const struct loop *l, const struct isa_operand *out)
{
	struct tc_walk w, other;

	walk(l, out, &w);
	if (meets_sides(l, &w))
		return false;
	for (unsigned k = 0; k < l->b.n_in; k++) {
		walk(l, &l->b.in[k], &other);
		if (tc_alias(&w, &other) == TC_OVERLAP)
			return false;
	}
	for (unsigned k = 0; k < l->b.n_out; k++) {
		walk(l, &l->b.out[k], &other);
		if (tc_alias(&w, &other) != TC_APART)
			return false;
	}
	return true;
}

static bool place_over(struct loop *l, unsigned i, const struct home *h, struct isa_operand op)
{
	set_place(l, i, h, &op);
	if (!may_write(l, &op))
		return false;
	tc_place_at(l->e, tc_out(l->fusion, i), h);
	return true;
}

/* Puts result i over an input that ends here: where it wishes to be, or in the input's own
 * memory. Of a row all is read before any of it is written. */
static void place_over_input(struct loop *l, unsigned i, struct isa_operand op)
{
	const struct tc_value *v = tc_out(l->fusion, i);

	if (!is_full(l, v->type) || op.combine != ISA_STORE ||
	    l->e->homes[v->id].buf)
		return;
	for (const struct wish *w = NULL; (w = tc_next_wish(l->e, v, w));)
		if (place_over(l, i, &w->home, op))
			return;
	for (unsigned k = 0; k < l->fusion->n_operands; k++) {
		struct home h;

		if (!tc_ends_for(l->e, v, tc_in(l->fusion, k)))
			continue;
		h = *tc_home(l->e, tc_in(l->fusion, k));
		tc_dense_strides(v->type, h.stride);
		if (place_over(l, i, &h, op))
			return;
	}
}

/* Whether a value is one for each row: an R operation, an iota over the dims before the rows,
 * or made of such and constants. */
static bool is_of_rows(const struct loop *l, unsigned value)
{
	const struct body *b = &l->b;
	bool rows[ISA_MAX_VALUES] = { false }, fixed[ISA_MAX_VALUES] = { false };
	unsigned first = b->n_pre + b->n_in;

	for (unsigned k = 0; k < b->n_uop; k++) {
		const struct isa_uop *u = &b->uops[k];
		const uint8_t args[3] = { u->a, u->b, u->c };
		unsigned n = isa_uop_info(u->op)->n_args;
		bool any = (u->op >= UOP_RADD && u->op <= UOP_RXOR) ||
			   (u->op == UOP_IOTA && u->aux < l->n_outer), all = true;

		for (unsigned i = 0; !any && i < n; i++)
			all &= rows[args[i]] || fixed[args[i]];
		fixed[first + k] = u->op == UOP_IMM || (n && !any && all);
		for (unsigned i = 0; all && i < n; i++)
			any |= rows[args[i]];
		rows[first + k] = any;
		fixed[first + k] &= !any;
	}
	return rows[value];
}

/* The same at every point, for an output that has them all: chosen where a point is itself. */
static uint8_t spread_over_rows(struct loop *l, uint8_t value, unsigned elem)
{
	struct body *b = &l->b;
	uint8_t at = tc_body_uop(b, (struct isa_uop){ .op = UOP_IOTA, .elem = ELEM_S32,
		.aux = (uint8_t)(l->shape->rank - 1) }, ELEM_S32);
	uint8_t yes = tc_body_uop(b, (struct isa_uop){ .op = UOP_EQ, .elem = ELEM_S32, .a = at,
		.b = at }, ELEM_PRED);

	return tc_body_uop(b, (struct isa_uop){ .op = UOP_SELECT, .elem = (uint8_t)elem, .a = yes,
		.b = value, .c = value }, elem);
}

/* Whether a box before this one has begun what result i, of axes `axis`, reduces to here: it lies
 * beside this one along none but dims that the result does not have. */
static bool is_begun(const struct loop *l, unsigned i, const int8_t *axis)
{
	unsigned rank = l->fusion->results[i].type->rank, d;

	for (unsigned k = 1; k <= l->n_before; k++) {
		const struct tc_box *before = l->box - k;

		for (d = 0; d < rank; d++)
			if (before->first[axis[d]] != l->box->first[axis[d]])
				break;
		if (d == rank)
			return true;
	}
	return false;
}

static void put_output(struct loop *l, unsigned i)
{
	const struct tc_value *inside = tc_in(l->block->last, i);
	const struct tc_value *outside = tc_out(l->fusion, i);
	struct fact *f = fact_of(l, inside);
	struct isa_operand op = { .elem = outside->type->elem,
				  .value = value_of(l, inside, f ? f->axis : straight) };

	if (l->n_outer >= 0 && is_full(l, outside->type) && is_of_rows(l, op.value))
		op.value = spread_over_rows(l, op.value, outside->type->elem);
	if (inside->def && inside->def->op == TC_REDUCE && l->n_outer < 0) {
		op.combine = (uint8_t)combine_of(tc_simple_reduce(inside->def));
		op.flags = is_begun(l, i, f->axis) ? ISA_OPERAND_ACC : 0;
	}
	place_over_input(l, i, op);
	set_place(l, i, tc_place(l->e, outside), &op);
	l->b.out[l->b.n_out++] = op;
	if (!l->box)
		count_moved(l, outside);
}

/* l is all zeros. */
static void start_loop(struct loop *l, struct emit *e, const struct tc_op *fusion)
{
	l->e = e;
	l->fusion = fusion;
	l->block = fusion->regions[0].block;
	l->n_outer = -1;
	l->dim_of = straight;
	l->b.e = e;
}

static void find_inputs(struct loop *l)
{
	const struct tc_op *end = l->block->last;

	for (const struct tc_op *op = l->block->first; op != end; op = op->next)
		collect(l, op);
	for (unsigned i = 0; i < end->n_operands; i++)
		if (is_argument(tc_in(end, i)))
			need_input(l, tc_in(end, i), straight);
}

static void put_vec(struct loop *l)
{
	int64_t dim[ISA_MAX_RANK];
	struct isa_tensor *t;

	for (unsigned d = 0; d < l->shape->rank; d++)
		dim[d] = size_of(l, d);
	t = tc_put_body(l->e, ISA_VEC, sizeof(*t), offsetof(struct isa_tensor, body), &l->b,
			l->shape->rank, dim);
	if (l->n_outer >= 0)
		t->body.row_rank = (uint8_t)(l->shape->rank - (unsigned)l->n_outer);
}

/* Counts what all boxes read and write, and says where the results lie: over no input, which a box
 * may read where another one has written. */
static void place_results(struct loop *l)
{
	find_inputs(l);
	tc_join_results(l->e, l->fusion);
	for (unsigned i = 0; i < l->fusion->n_results; i++) {
		tc_place(l->e, tc_out(l->fusion, i));
		count_moved(l, tc_out(l->fusion, i));
	}
}

static int64_t count_of(const struct tc_box *box, unsigned rank)
{
	int64_t n = 1;

	for (unsigned d = 0; d < rank; d++)
		n *= box->size[d];
	return n;
}

/* Whether an operand of a box lies as all of the space would. */
static bool is_dense_in_space(const struct loop *l, const struct isa_operand *op)
{
	int64_t stride = elem_bytes(op->elem);

	for (unsigned d = l->shape->rank; d-- > 0; stride *= l->shape->dim[d])
		if (l->shape->dim[d] > 1 && op->stride[d] != stride)
			return false;
	return true;
}

/*
 * Makes the box one line, from its first point to its last one, if it has most of the points on the
 * way: without ends of rows an instruction is twice as quick. What it writes beside the box is
 * written again by the boxes there, which come later; what it reads lies between what it has to.
 */
static bool make_line(struct loop *l)
{
	int64_t n = 1, step = 1;

	for (unsigned d = l->shape->rank; d-- > 0; step *= l->shape->dim[d])
		n += (l->box->size[d] - 1) * step;
	if (l->reads_peers || count_of(l->box, l->shape->rank) < n - n / MOST_BESIDE)
		return false;
	for (unsigned k = 0; k < l->b.n_uop; k++)
		if (l->b.uops[k].op == UOP_IOTA)
			return false;
	for (unsigned k = 0; k < l->b.n_in; k++)
		if (!is_dense_in_space(l, &l->b.in[k]))
			return false;
	for (unsigned k = 0; k < l->b.n_out; k++)
		if (!is_dense_in_space(l, &l->b.out[k]))
			return false;
	for (unsigned k = 0; k < l->b.n_in + l->b.n_out; k++) {
		struct isa_operand *op = k < l->b.n_in ? &l->b.in[k] : &l->b.out[k - l->b.n_in];

		memset(op->stride, 0, sizeof(op->stride));
		op->stride[0] = elem_bytes(op->elem);
	}
	tc_put_body(l->e, ISA_VEC, sizeof(struct isa_tensor), offsetof(struct isa_tensor, body),
		    &l->b, 1, &n);
	return true;
}

static void emit_box(struct loop *l, bool is_first)
{
	find_inputs(l);
	for (const struct tc_op *op = l->block->first; op != l->block->last; op = op->next)
		translate(l, op);
	for (unsigned i = 0; i < l->fusion->n_results; i++)
		put_output(l, i);
	if (!is_first || !make_line(l))
		put_vec(l);
}

/* The largest box comes first. */
static void emit_boxes(struct emit *e, const struct tc_op *fusion, struct loop *l,
		       struct tc_box *boxes, unsigned n)
{
	double flops = e->flops, transcendentals = e->transcendentals;
	const struct tc_type *shape = l->shape;
	struct tc_box first = boxes[0];
	unsigned large = 0;

	place_results(l);
	for (unsigned i = 1; i < n; i++)
		if (count_of(&boxes[i], shape->rank) > count_of(&boxes[large], shape->rank))
			large = i;
	boxes[0] = boxes[large];
	boxes[large] = first;
	for (unsigned i = 0; i < n; i++) {
		*l = (struct loop){ .shape = shape, .box = &boxes[i], .n_before = i };
		start_loop(l, e, fusion);
		emit_box(l, i == 0);
	}
	/* Each box counted all of the space. */
	e->flops = flops + (e->flops - flops) / n;
	e->transcendentals = transcendentals + (e->transcendentals - transcendentals) / n;
}

void tc_emit_fusion(struct emit *e, const struct tc_op *fusion)
{
	struct loop *l = arena_alloc(&e->c->arena, sizeof(*l));
	struct tc_box boxes[TC_MOST_BOXES];
	unsigned n;

	if (!l)
		tc_fail(e->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	start_loop(l, e, fusion);
	l->shape = tc_space_of(fusion);
	n = tc_boxes_of(fusion, boxes);
	if (!n)
		tc_refuse(e, "it falls into more boxes than there are instructions for");
	if (n > 1) {
		emit_boxes(e, fusion, l, boxes, n);
		return;
	}
	find_inputs(l);
	for (const struct tc_op *op = l->block->first; op != l->block->last; op = op->next)
		translate(l, op);
	if (l->shape->count)
		tc_join_results(e, fusion);
	for (unsigned i = 0; i < fusion->n_results; i++)
		put_output(l, i);
	if (l->shape->count && (l->shape->count != 1 || l->reads_peers ||
				!tc_put_scalars(e, &l->b)))
		put_vec(l);
}

void tc_epilogue(struct emit *e, const struct tc_op *fusion, const struct tc_op *anchor,
		 struct body *b, const int8_t *dim_of)
{
	struct loop *l = arena_alloc(&e->c->arena, sizeof(*l));

	if (!l)
		tc_fail(e->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	start_loop(l, e, fusion);
	l->shape = anchor->results[0].type;
	l->is_epilogue = true;
	for (unsigned k = 0; k < 2; k++)
		l->side[k] = tc_in(fusion, tc_in(anchor, k)->index);
	l->dim_of = dim_of;
	l->b = *b;
	for (const struct tc_op *op = anchor->next; op != l->block->last; op = op->next)
		collect(l, op);
	for (unsigned i = 0; i < fusion->n_results; i++)
		if (is_argument(tc_in(l->block->last, i)))
			need_input(l, tc_in(l->block->last, i), straight);
	/* The sum in the type that the IR gives it. */
	tc_body_know(&l->b, tc_out(anchor, 0),
		     tc_body_convert(&l->b, 0, anchor->results[0].type->elem));
	for (const struct tc_op *op = anchor->next; op != l->block->last; op = op->next)
		translate(l, op);
	for (unsigned i = 0; i < fusion->n_results; i++)
		put_output(l, i);
	*b = l->b;
}

/* ---- reductions that are no VEC ---- */

void tc_emit_fill(struct emit *e, const struct tc_type *t, const struct home *to,
		  const struct tc_value *scalar)
{
	struct body *b = arena_alloc(&e->c->arena, sizeof(*b));
	const void *element = tc_splat_element(scalar);
	int64_t dim[ISA_MAX_RANK];
	const struct home *from;
	struct home same;

	if (!b)
		tc_fail(e->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	if (!t->count)
		return;
	if (t->rank > ISA_MAX_RANK) {
		from = tc_home(e, scalar);
		same = *from;
		memset(same.stride, 0, sizeof(same.stride));
		tc_copy_value(e, t, &same, to);
		return;
	}
	b->e = e;
	b->n_out = 1;
	if (!element) {
		from = tc_home(e, scalar);
		b->in[0] = tc_operand(from, t->elem);
		b->elems[0] = t->elem;
		b->n_in = 1;
	}
	b->out[0] = tc_operand(to, t->elem);
	b->out[0].value = element ? tc_body_imm(b, t->elem, element) : 0;
	for (unsigned d = 0; d < t->rank; d++) {
		dim[d] = t->dim[d];
		b->out[0].stride[d] = t->dim[d] > 1 ? to->stride[d] : 0;
	}
	tc_put_body(e, ISA_VEC, sizeof(struct isa_tensor), offsetof(struct isa_tensor, body),
		    b, t->rank, dim);
	e->bytes += (double)t->bytes;
	e->cost_ns += (double)t->bytes * 0.05;
}

static const char too_many[] = "it reduces more than 8 arrays together, by a body that does not "
			       "fall into parts";

/* REDUCE over dims of an iteration space, with operands' strides given. */
static void put_reduce(struct emit *e, const struct tc_op *op, unsigned rank,
		       const int64_t *dim, uint32_t reduced, const struct home *in,
		       const int8_t *kept)
{
	unsigned k = op->n_results;
	struct body *b = arena_alloc(&e->c->arena, sizeof(*b));
	const struct tc_block *region = op->regions[0].block;
	struct isa_tensor *t;
	double count = 1;

	if (!b)
		tc_fail(e->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	if (2 * k > ISA_MAX_IN || k > ISA_MAX_OUT)
		tc_refuse(e, too_many);
	b->e = e;
	b->n_in = 2 * k;
	for (unsigned d = 0; d < rank; d++)
		count *= (double)dim[d];
	for (unsigned j = 0; j < k; j++) {
		unsigned elem = op->results[j].type->elem;

		b->in[j] = tc_operand(tc_home(e, tc_in(op, k + j)), elem);
		b->in[k + j] = tc_operand(&in[j], elem);
		b->elems[j] = b->elems[k + j] = (uint8_t)elem;
		memcpy(b->in[k + j].stride, in[j].stride, rank * sizeof(int64_t));
		tc_body_know(b, region->args[j], (uint8_t)j);
		tc_body_know(b, region->args[k + j], (uint8_t)(k + j));
	}
	tc_body_region(b, region, count);
	tc_count_arrays(e, op);
	for (unsigned j = 0; j < k; j++) {
		const struct tc_value *v = tc_in(region->last, j);
		struct home *h = tc_place(e, tc_out(op, j));
		int known = tc_body_find(b, v);

		if (known < 0 && !tc_splat_element(v))
			tc_refuse(e, "its body yields a value from outside");
		b->out[b->n_out] = tc_operand(h, v->type->elem);
		b->out[b->n_out].value = known >= 0 ? (uint8_t)known :
			tc_body_imm(b, v->type->elem, tc_splat_element(v));
		for (unsigned d = 0; d < rank; d++)
			if (kept[d] >= 0)
				b->out[b->n_out].stride[d] = h->stride[kept[d]];
		b->n_out++;
	}
	e->cost_ns += count * 0.5;
	t = tc_put_body(e, ISA_REDUCE, sizeof(*t), offsetof(struct isa_tensor, body), b, rank,
			dim);
	t->reduce_dims = reduced;
}

void tc_emit_reduce(struct emit *e, const struct tc_op *op)
{
	const struct tc_type *t = tc_in(op, 0)->type;
	unsigned n, k = 0;
	const int64_t *dims = tc_attr_ints(op, "dimensions", &n);
	int8_t kept[ISA_MAX_RANK];
	struct home in[ISA_MAX_IN];
	uint32_t mask = 0;

	if (t->rank > ISA_MAX_RANK)
		tc_refuse_dims(e, "it has", t->rank);
	if (op->n_results > ISA_MAX_OUT)
		tc_refuse(e, too_many);
	if (!t->count) {
		for (unsigned j = 0; j < op->n_results; j++)
			tc_emit_fill(e, op->results[j].type, tc_place(e, tc_out(op, j)),
				     tc_in(op, op->n_results + j));
		return;
	}
	for (unsigned i = 0; i < n; i++)
		mask |= 1u << dims[i];
	for (unsigned d = 0; d < t->rank; d++)
		kept[d] = mask >> d & 1 ? -1 : (int8_t)k++;
	for (unsigned j = 0; j < op->n_results; j++)
		in[j] = *tc_home(e, tc_in(op, j));
	put_reduce(e, op, t->rank, t->dim, mask, in, kept);
}

/* An operand of a window op with its padding and base dilation written out. */
static struct home padded(struct emit *e, const struct tc_op *op, unsigned j,
			  const int64_t *low, const int64_t *high, const int64_t *base)
{
	const struct tc_type *t = tc_in(op, j)->type;
	struct home from = *tc_home(e, tc_in(op, j)), to, at;
	int64_t dim[TC_MAX_RANK], inner[TC_MAX_RANK];
	bool is_plain = true;

	for (unsigned d = 0; d < t->rank; d++) {
		int64_t wide = t->dim[d] ? (t->dim[d] - 1) * base[d] + 1 : 0;

		dim[d] = wide + low[d] + high[d];
		if (dim[d] < 0)
			dim[d] = 0;
		is_plain &= !low[d] && !high[d] && base[d] == 1;
	}
	if (is_plain)
		return from;
	to = tc_scratch(e, tc_tensor(e->c, (enum elem)t->elem, t->rank, dim));
	tc_emit_fill(e, tc_tensor(e->c, (enum elem)t->elem, t->rank, dim), &to,
		     tc_in(op, op->n_results + j));
	at = to;
	for (unsigned d = 0; d < t->rank; d++) {
		/* The elements that stay inside: first .. first + inner - 1. */
		int64_t first = low[d] < 0 ? (-low[d] + base[d] - 1) / base[d] : 0;
		int64_t last = dim[d] > low[d] ? (dim[d] - 1 - low[d]) / base[d] : -1;

		if (last > t->dim[d] - 1)
			last = t->dim[d] - 1;
		inner[d] = last - first + 1;
		if (inner[d] <= 0)
			return to;
		at.offset += (low[d] + first * base[d]) * to.stride[d];
		if (inner[d] > 1)
			at.stride[d] = to.stride[d] * base[d];
		from.offset += first * from.stride[d];
	}
	tc_copy(e, t->rank, inner, elem_bytes(t->elem), &from, &at);
	return to;
}

void tc_emit_reduce_window(struct emit *e, const struct tc_op *op)
{
	const struct tc_type *t = op->results[0].type;
	unsigned n, rank = t->rank;
	const int64_t *window = tc_attr_ints(op, "window_dimensions", &n);
	const int64_t *stride = tc_attr_ints(op, "window_strides", &n);
	const int64_t *base = tc_attr_ints(op, "base_dilations", &n);
	const int64_t *dilation = tc_attr_ints(op, "window_dilations", &n);
	const int64_t *padding = tc_attr_ints(op, "padding", &n);
	int64_t low[TC_MAX_RANK], high[TC_MAX_RANK], dim[ISA_MAX_RANK];
	struct home in[ISA_MAX_OUT];
	int8_t kept[ISA_MAX_RANK];
	uint32_t mask = 0;

	if (op->n_results > ISA_MAX_OUT)
		tc_refuse(e, too_many);
	for (unsigned d = 0; d < rank; d++) {
		low[d] = padding[2 * d];
		high[d] = padding[2 * d + 1];
	}
	if (!t->count)
		return;
	n = 0;
	for (unsigned d = 0; d < rank; d++)
		n += (t->dim[d] != 1 || rank <= 4) + (window[d] != 1);
	if (n > ISA_MAX_RANK)
		tc_refuse_dims(e, "output and window have together", n);
	for (unsigned j = 0; j < op->n_results; j++) {
		struct home from = padded(e, op, j, low, high, base);

		in[j] = from;
		n = 0;
		for (unsigned d = 0; d < rank; d++) {
			if (t->dim[d] == 1 && rank > 4)
				continue;
			dim[n] = t->dim[d];
			kept[n] = (int8_t)d;
			in[j].stride[n++] = t->dim[d] > 1 ? from.stride[d] * stride[d] : 0;
		}
		for (unsigned d = 0; d < rank; d++) {
			if (window[d] == 1)
				continue;
			dim[n] = window[d];
			kept[n] = -1;
			mask |= 1u << n;
			in[j].stride[n++] = from.stride[d] * dilation[d];
		}
	}
	put_reduce(e, op, n, dim, mask, in, kept);
}
