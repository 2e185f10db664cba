/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dot_general becomes MM, convolution CONV, or MM where one feature's window slides along one dim
 * (lower/conv.c sees to that where it pays), each with the rest of its fusion as the
 * epilogue.
 *
 * The result's dims are batch, then lhs's own, then rhs's own. MM has one m and one n;
 * further own dims run as batch dims along which the other operand stands still.
 * Neighbouring own dims are joined first where every operand walks them as one, but
 * not with an epilogue, whose operands have strides of their own.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/compiler/back/emit.h"
#include "runtime/compiler/opt/fuse.h"

struct dot_dim {
	int64_t size, a, b;	/* strides */
	int8_t result;		/* dim of the result */
	char role;		/* 'b' batch, 'm', 'n' */
};

static unsigned accumulator(struct emit *e, unsigned result, unsigned lhs)
{
	if (result == ELEM_F64 || result == ELEM_C64 || result == ELEM_C128 ||
	    result == ELEM_PRED || result == ELEM_S32 || result == ELEM_S64 ||
	    result == ELEM_U32 || result == ELEM_U64)
		return result;
	switch (elem_class(result)) {
	case ELEM_CLASS_FLOAT:
		return lhs == ELEM_F64 ? ELEM_F64 : ELEM_F32;
	case ELEM_CLASS_SINT:
		return ELEM_S32;
	case ELEM_CLASS_UINT:
		return ELEM_U32;
	default:
		tc_refuse(e, "no product of this element type");
	}
}

static unsigned precision_of(const struct tc_op *op, unsigned elem)
{
	const char *in = tc_attr_str(op, "lhs_precision_type");
	unsigned n;
	const int64_t *p = tc_attr_ints(op, "precision_config", &n);

	if (elem != ELEM_F32)
		return ISA_PRECISION_DEFAULT;
	if (in && !strcmp(in, "bf16"))
		return tc_attr_int(op, "num_primitive_operations", 1) >= 3 ?
			ISA_PRECISION_HIGH : ISA_PRECISION_BF16;
	if (n == 2 && (p[0] == TC_PREC_HIGH || p[1] == TC_PREC_HIGH))
		return ISA_PRECISION_HIGH;
	return ISA_PRECISION_DEFAULT;
}

/* The contracting dims as one; false if a stride does not allow it. */
static bool join_k(const struct tc_type *t, const struct home *h, const int64_t *dims,
		   unsigned n, int64_t *size, int64_t *stride)
{
	bool is_first = true;

	*size = 1;
	*stride = 0;
	for (unsigned i = n; i-- > 0;) {
		int64_t d = t->dim[dims[i]];

		if (d == 1)
			continue;
		if (is_first)
			*stride = h->stride[dims[i]];
		else if (h->stride[dims[i]] != *stride * *size)
			return false;
		*size *= d;
		is_first = false;
	}
	return true;
}

/* A dense copy of an operand with its dims in this order. */
static struct home copy_in_order(struct emit *e, const struct tc_value *v, const unsigned *order)
{
	const struct tc_type *t = v->type;
	const struct home *from = tc_home(e, v);
	struct home src = *from, dst, out;
	int64_t dim[TC_MAX_RANK];
	unsigned k = t->rank;

	for (unsigned i = 0; i < k; i++) {
		dim[i] = t->dim[order[i]];
		src.stride[i] = from->stride[order[i]];
	}
	dst = tc_scratch(e, tc_tensor(e->c, (enum elem)t->elem, k, dim));
	tc_copy(e, k, dim, elem_bytes(t->elem), &src, &dst);
	out = dst;
	for (unsigned i = 0; i < k; i++)
		out.stride[order[i]] = dst.stride[i];
	return out;
}

/* A dense copy of an operand with some of its dims last, as given. */
static struct home copy_with_last(struct emit *e, const struct tc_value *v, const int64_t *dims,
				  unsigned n)
{
	unsigned k = 0, order[TC_MAX_RANK];

	for (unsigned d = 0; d < v->type->rank; d++)
		if (!tc_is_listed(dims, n, d))
			order[k++] = d;
	for (unsigned i = 0; i < n; i++)
		order[k++] = (unsigned)dims[i];
	return copy_in_order(e, v, order);
}

#define LEAST_COPY 1024		/* elements; fewer are read where they lie */

/* The dims of an operand of a product: those along which it is summed, and the longest of those
 * that are its own. */
static uint64_t inner_dims(const struct tc_type *t, const int64_t *batch, unsigned n_batch,
			   const int64_t *sums, unsigned n_sums)
{
	uint64_t inner = 0;
	int64_t longest = -1;

	for (unsigned d = 0; d < t->rank; d++) {
		if (tc_is_listed(sums, n_sums, d))
			inner |= 1ull << d;
		else if (!tc_is_listed(batch, n_batch, d) &&
			 (longest < 0 || t->dim[d] >= t->dim[longest]))
			longest = d;
	}
	return longest < 0 ? inner : inner | 1ull << longest;
}

/*
 * What lies side by side in an operand may belong to one matrix after the other, as with the
 * channels of x in einsum("ikc,jkc->ijc"). The matrix unit would read each of them element by
 * element, and have a line of memory for each: the matrices are brought side by side first.
 */
static struct home matrices_apart(struct emit *e, const struct tc_value *v,
				  const struct home *h, uint64_t inner)
{
	const struct tc_type *t = v->type;
	unsigned order[TC_MAX_RANK], n = 0, n_outer;
	bool is_apart = true, is_spread = false;

	for (unsigned d = 0; d < t->rank; d++) {
		bool is_next = t->dim[d] > 1 && h->stride[d] == elem_bytes(t->elem);

		if (is_next && inner >> d & 1)
			return *h;
		is_apart &= !is_next;
		is_spread |= t->dim[d] > 1 && !h->stride[d];
		if (!(inner >> d & 1))
			order[n++] = d;
	}
	if (is_apart || is_spread || t->count < LEAST_COPY)
		return *h;
	n_outer = n;
	for (unsigned d = 0; d < t->rank; d++) {
		unsigned at = n;

		if (!(inner >> d & 1))
			continue;
		for (; at > n_outer && llabs(h->stride[order[at - 1]]) < llabs(h->stride[d]); at--)
			order[at] = order[at - 1];
		order[at] = d;
		n++;
	}
	return copy_in_order(e, v, order);
}

/* Where the matrix unit reads the operand, with its contracting dims as one. */
static struct home place_operand(struct emit *e, const struct tc_value *v, const int64_t *batch,
				 unsigned n_batch, const int64_t *sums, unsigned n_sums,
				 int64_t *size, int64_t *stride)
{
	struct home h = *tc_home(e, v);

	if (join_k(v->type, &h, sums, n_sums, size, stride))
		h = matrices_apart(e, v, &h, inner_dims(v->type, batch, n_batch, sums, n_sums));
	if (!join_k(v->type, &h, sums, n_sums, size, stride)) {
		h = copy_with_last(e, v, sums, n_sums);
		join_k(v->type, &h, sums, n_sums, size, stride);
	}
	return h;
}

struct dot {
	const struct tc_type *at, *bt;
	struct home a, b;
	struct dot_dim dims[2 * TC_MAX_RANK];
	unsigned n;
	int64_t k, ak, bk;
};

static void collect_dims(struct emit *e, const struct tc_op *op, const struct tc_value *lhs,
			 const struct tc_value *rhs, struct dot *x)
{
	unsigned nb, nk, n;
	const int64_t *lb = tc_attr_ints(op, "lhs_batching_dimensions", &nb);
	const int64_t *rb = tc_attr_ints(op, "rhs_batching_dimensions", &n);
	const int64_t *lk = tc_attr_ints(op, "lhs_contracting_dimensions", &nk);
	const int64_t *rk = tc_attr_ints(op, "rhs_contracting_dimensions", &n);
	int64_t size;

	x->at = lhs->type;
	x->bt = rhs->type;
	x->a = place_operand(e, lhs, lb, nb, lk, nk, &x->k, &x->ak);
	x->b = place_operand(e, rhs, rb, nb, rk, nk, &size, &x->bk);
	for (unsigned i = 0; i < nb; i++, x->n++)
		x->dims[x->n] = (struct dot_dim){ x->at->dim[lb[i]], x->a.stride[lb[i]],
			x->b.stride[rb[i]], (int8_t)x->n, 'b' };
	for (unsigned d = 0; d < x->at->rank; d++)
		if (!tc_is_listed(lb, nb, d) && !tc_is_listed(lk, nk, d)) {
			x->dims[x->n] = (struct dot_dim){ x->at->dim[d], x->a.stride[d], 0,
							  (int8_t)x->n, 'm' };
			x->n++;
		}
	for (unsigned d = 0; d < x->bt->rank; d++)
		if (!tc_is_listed(rb, nb, d) && !tc_is_listed(rk, nk, d)) {
			x->dims[x->n] = (struct dot_dim){ x->bt->dim[d], 0, x->b.stride[d],
							  (int8_t)x->n, 'n' };
			x->n++;
		}
}

/* Joins neighbours that a, b and the dense result walk as one. */
static void join_dims(struct dot *x, const struct home *out)
{
	unsigned n = 0;

	for (unsigned i = 0; i < x->n; i++) {
		struct dot_dim *d = &x->dims[i], *p = n ? &x->dims[n - 1] : NULL;

		if (p && p->role == d->role && p->a == d->a * d->size &&
		    p->b == d->b * d->size &&
		    out->stride[p->result] == out->stride[d->result] * d->size) {
			p->size *= d->size;
			p->a = d->a;
			p->b = d->b;
			p->result = d->result;
			continue;
		}
		x->dims[n++] = *d;
	}
	x->n = n;
}

/* Puts the m and the n that MM names last; the others run as batch dims. The largest
 * of each is taken. */
static void order_dims(struct dot *x)
{
	static const struct dot_dim one = { 1, 0, 0, -1, 'm' };
	int m = -1, n = -1;
	struct dot_dim out[2 * TC_MAX_RANK + 2];
	unsigned k = 0;

	for (unsigned i = 0; i < x->n; i++) {
		int *best = x->dims[i].role == 'm' ? &m : x->dims[i].role == 'n' ? &n : NULL;

		if (best && (*best < 0 || x->dims[i].size >= x->dims[*best].size))
			*best = (int)i;
	}
	for (unsigned i = 0; i < x->n; i++)
		if ((int)i != m && (int)i != n && x->dims[i].size != 1)
			out[k++] = x->dims[i];
	out[k++] = m >= 0 ? x->dims[m] : one;
	out[k++] = n >= 0 ? x->dims[n] : one;
	memcpy(x->dims, out, k * sizeof(*out));
	x->n = k;
}

#define NARROW 16	/* columns: of fewer, rows are better turned when they are complete, */
#define MANY_ROWS 64	/* as they are of so many with no more multiplications each than LIGHT: */
#define LIGHT 32

/* Of a result whose rows lie side by side, not its columns, a and b change places: sums are then
 * written as they are made. They have the same terms in the same order, but for complex numbers. */
static void order_sides(struct dot *x, const struct tc_op *op, const struct home *out)
{
	const struct dot_dim *m = &x->dims[x->n - 2], *n = &x->dims[x->n - 1];
	struct dot_dim last = *m;
	struct dot was = *x;
	int64_t unit = elem_bytes(op->results[0].type->elem);

	if (x->at->elem != x->bt->elem || elem_class(x->at->elem) == ELEM_CLASS_COMPLEX ||
	    tc_attr(op, "lhs_precision_type") || m->result < 0 || n->result < 0 ||
	    n->size == 1 || m->size < NARROW ||
	    (m->size == NARROW && n->size >= MANY_ROWS && x->k <= MANY_ROWS) ||
	    (m->size >= MANY_ROWS && x->k && n->size <= LIGHT / x->k) ||
	    out->stride[m->result] != unit || out->stride[n->result] == unit)
		return;
	x->dims[x->n - 2] = *n;
	x->dims[x->n - 1] = last;
	for (unsigned i = 0; i < x->n; i++) {
		struct dot_dim *d = &x->dims[i];
		int64_t a = d->a;

		d->a = d->b;
		d->b = a;
	}
	x->a = was.b;
	x->b = was.a;
	x->ak = was.bk;
	x->bk = was.ak;
}

void tc_emit_dot(struct emit *e, const struct tc_op *op, const struct tc_op *fusion)
{
	const struct tc_op *outer = fusion ? fusion : op;
	const struct tc_value *lhs = fusion ? tc_in(fusion, tc_in(op, 0)->index) : tc_in(op, 0);
	const struct tc_value *rhs = fusion ? tc_in(fusion, tc_in(op, 1)->index) : tc_in(op, 1);
	unsigned result = op->results[0].type->elem;
	unsigned acc = accumulator(e, result, lhs->type->elem);
	struct body *b = arena_alloc(&e->c->arena, sizeof(*b));
	struct dot *x = arena_alloc(&e->c->arena, sizeof(*x));
	int8_t dim_of[ISA_MAX_RANK];
	int64_t dim[ISA_MAX_RANK];
	struct home *h;
	struct isa_mm *mm;
	double work;

	if (!b || !x)
		tc_fail(e->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	b->e = e;
	b->n_pre = 1;
	b->elems[0] = (uint8_t)acc;
	collect_dims(e, op, lhs, rhs, x);
	h = fusion ? NULL : tc_place(e, tc_out(outer, 0));
	if (h)
		join_dims(x, h);
	order_dims(x);
	if (h)
		order_sides(x, op, h);
	if (x->n > ISA_MAX_RANK) {
		if (e->c->ahead)
			e->c->ahead->is_apart = true;
		tc_refuse_dims(e, "it runs along", x->n);
	}
	/* A dim of size 1 that was left out is nowhere: any dim does for it. */
	memset(dim_of, 0, sizeof(dim_of));
	for (unsigned i = 0; i < x->n; i++) {
		dim[i] = x->dims[i].size;
		if (x->dims[i].result >= 0 && x->dims[i].result < ISA_MAX_RANK)
			dim_of[x->dims[i].result] = (int8_t)i;
	}
	if (fusion) {
		tc_epilogue(e, fusion, op, b, dim_of);
	} else {
		b->n_out = 1;
		b->out[0] = tc_operand(h, result);
		b->out[0].value = tc_body_convert(b, 0, result);
		for (unsigned i = 0; i < x->n; i++)
			if (x->dims[i].result >= 0 && dim[i] > 1)
				b->out[0].stride[i] = h->stride[x->dims[i].result];
	}
	if (!op->results[0].type->count)
		return;
	mm = tc_put_body(e, ISA_MM, sizeof(*mm), offsetof(struct isa_mm, body), b, x->n, dim);
	mm->acc = (uint8_t)acc;
	mm->precision = (uint8_t)precision_of(op, lhs->type->elem);
	mm->k = x->k;
	mm->a_k_stride = x->ak;
	mm->b_k_stride = x->bk;
	mm->a = tc_operand(&x->a, x->at->elem);
	mm->b = tc_operand(&x->b, x->bt->elem);
	for (unsigned i = 0; i < x->n; i++) {
		mm->a.stride[i] = dim[i] > 1 ? x->dims[i].a : 0;
		mm->b.stride[i] = dim[i] > 1 ? x->dims[i].b : 0;
	}
	work = 2.0 * (double)op->results[0].type->count * (double)x->k;
	e->flops += work;
	e->bytes += (double)(x->at->bytes + x->bt->bytes + op->results[0].type->bytes);
	e->cost_ns += work * 0.02;
}

/* ---- convolution ---- */

static void set_window(const struct tc_op *op, const struct tc_type *lhs,
		       const struct tc_type *rhs, struct isa_conv *c, unsigned n)
{
	static const char *const names[] = { "window_strides", "lhs_dilation",
					     "rhs_dilation", "padding", "window_reversal",
					     "input_spatial_dimensions",
					     "kernel_spatial_dimensions" };
	const int64_t *list[7];
	unsigned k;

	for (unsigned i = 0; i < 7; i++)
		list[i] = tc_attr_ints(op, names[i], &k);
	for (unsigned i = 0; i < ISA_MAX_SPATIAL; i++) {
		bool is_used = i < n;

		c->window_stride[i] = is_used ? list[0][i] : 1;
		c->lhs_dilation[i] = is_used ? list[1][i] : 1;
		c->rhs_dilation[i] = is_used ? list[2][i] : 1;
		c->pad_low[i] = is_used ? list[3][2 * i] : 0;
		c->in_size[i] = is_used ? lhs->dim[list[5][i]] : 1;
		c->kernel[i] = is_used ? rhs->dim[list[6][i]] : 1;
		if (is_used && list[4][i])
			c->reversed |= (uint8_t)(1u << i);
	}
}

/*
 * The matrix unit takes what lies along `dim` together: element by element if these are apart,
 * and again for every block of its other operand. They are brought side by side first.
 */
static struct home side_by_side(struct emit *e, const struct tc_value *v, int64_t dim)
{
	const struct home *h = tc_home(e, v);

	if (v->type->dim[dim] < 2 || h->stride[dim] == elem_bytes(v->type->elem))
		return *h;
	return copy_with_last(e, v, &dim, 1);
}

/* The operands and the result of a convolution; dims are the attributes'. */
struct conv {
	const struct tc_value *lhs, *rhs;
	const struct tc_type *out;
	unsigned n;			/* spatial dims, */
	const int64_t *in, *kernel;	/* of the operands */
	const int64_t *points;		/* and of the result */
	int64_t in_batch, in_feature, kernel_in, kernel_out, batch, feature;
	unsigned acc;
	struct body *b;
};

static void look_at(struct emit *e, const struct tc_op *op, const struct tc_op *fusion,
		    struct conv *v)
{
	v->lhs = fusion ? tc_in(fusion, tc_in(op, 0)->index) : tc_in(op, 0);
	v->rhs = fusion ? tc_in(fusion, tc_in(op, 1)->index) : tc_in(op, 1);
	v->out = op->results[0].type;
	v->points = tc_attr_ints(op, "output_spatial_dimensions", &v->n);
	v->in = tc_attr_ints(op, "input_spatial_dimensions", &v->n);
	v->kernel = tc_attr_ints(op, "kernel_spatial_dimensions", &v->n);
	v->in_batch = tc_attr_int(op, "input_batch_dimension", 0);
	v->in_feature = tc_attr_int(op, "input_feature_dimension", 0);
	v->kernel_in = tc_attr_int(op, "kernel_input_feature_dimension", 0);
	v->kernel_out = tc_attr_int(op, "kernel_output_feature_dimension", 0);
	v->batch = tc_attr_int(op, "output_batch_dimension", 0);
	v->feature = tc_attr_int(op, "output_feature_dimension", 0);
	v->acc = accumulator(e, v->out->elem, v->lhs->type->elem);
	v->b = arena_alloc(&e->c->arena, sizeof(*v->b));
	if (!v->b)
		tc_fail(e->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
}

/* The body of an instruction that runs along these dims of the result, whose sizes are `dim`. */
static void begin_body(struct emit *e, const struct tc_op *op, const struct tc_op *fusion,
		       struct conv *v, const int64_t *dims, int64_t *dim)
{
	struct body *b = v->b;
	int8_t dim_of[ISA_MAX_RANK] = { 0 };
	struct home *h;

	for (unsigned i = 0; i < v->n + 2; i++) {
		dim[i] = v->out->dim[dims[i]];
		dim_of[dims[i]] = (int8_t)i;
	}
	b->e = e;
	b->n_pre = 1;
	b->elems[0] = (uint8_t)v->acc;
	if (fusion) {
		tc_epilogue(e, fusion, op, b, dim_of);
		return;
	}
	h = tc_place(e, tc_out(op, 0));
	b->n_out = 1;
	b->out[0] = tc_operand(h, v->out->elem);
	b->out[0].value = tc_body_convert(b, 0, v->out->elem);
	for (unsigned i = 0; i < v->n + 2; i++)
		b->out[0].stride[i] = dim[i] > 1 ? h->stride[dims[i]] : 0;
}

static void count_work(struct emit *e, const struct conv *v, double taps)
{
	double work = 2 * (double)v->out->count * taps;

	e->flops += work;
	e->bytes += (double)(v->lhs->type->bytes + v->rhs->type->bytes + v->out->bytes);
	e->cost_ns += work * 0.03;
}

/*
 * The spatial dim along which the window of a convolution of one feature moves by one element, to
 * its neighbour in memory, if it is of one element along the others, and inside the input all the
 * way. -1: none.
 */
static int sliding_dim(struct emit *e, const struct tc_op *op, const struct conv *v)
{
	unsigned bytes = elem_bytes(v->lhs->type->elem);
	int slides = -1;

	if (v->lhs->type->dim[v->in_feature] != 1 ||
	    v->out->dim[v->feature] > TC_SLIDING_FEATURES ||
	    tc_attr_int(op, "feature_group_count", 1) != 1 ||
	    tc_attr_int(op, "batch_group_count", 1) != 1)
		return -1;
	for (unsigned i = 0; i < v->n; i++) {
		int64_t taps = v->rhs->type->dim[v->kernel[i]];

		if (tc_attr_nth(op, "lhs_dilation", i) != 1 || tc_attr_nth(op, "padding", 2 * i) ||
		    tc_attr_nth(op, "padding", 2 * i + 1) > 0 ||
		    (taps != 1 && (slides >= 0 || tc_attr_nth(op, "window_strides", i) != 1)))
			return -1;
		if (taps != 1)
			slides = (int)i;
	}
	if (slides >= 0 && tc_home(e, v->lhs)->stride[v->in[slides]] != bytes)
		return -1;
	return slides;
}

/* A product of the kernel's taps by rows of the input, which overlap: that of the next tap begins
 * an element later, or as many as taps are apart. */
static void emit_sliding(struct emit *e, const struct tc_op *op, const struct tc_op *fusion,
			 struct conv *v, unsigned slides)
{
	const struct home *a = tc_home(e, v->rhs), *b = tc_home(e, v->lhs);
	int64_t dims[ISA_MAX_RANK], dim[ISA_MAX_RANK], from[ISA_MAX_RANK] = { 0 };
	int64_t step = a->stride[v->kernel[slides]];
	unsigned r = v->n + 2, at = 0;
	struct isa_mm *mm;

	dims[at] = v->batch;
	from[at++] = b->stride[v->in_batch];
	for (unsigned i = 0; i < v->n; i++)
		if (i != slides) {
			dims[at] = v->points[i];
			from[at++] = b->stride[v->in[i]] * tc_attr_nth(op, "window_strides", i);
		}
	dims[at++] = v->feature;
	dims[at] = v->points[slides];
	from[at] = b->stride[v->in[slides]];
	begin_body(e, op, fusion, v, dims, dim);
	if (!v->out->count)
		return;
	mm = tc_put_body(e, ISA_MM, sizeof(*mm), offsetof(struct isa_mm, body), v->b, r, dim);
	mm->acc = (uint8_t)v->acc;
	mm->precision = (uint8_t)precision_of(op, v->lhs->type->elem);
	mm->k = v->rhs->type->dim[v->kernel[slides]];
	mm->a = tc_operand(a, v->rhs->type->elem);
	mm->b = tc_operand(b, v->lhs->type->elem);
	mm->a_k_stride = step;
	if (tc_attr_nth(op, "window_reversal", slides) && mm->k) {
		mm->a.offset += (mm->k - 1) * step;
		mm->a_k_stride = -step;
	}
	mm->b_k_stride = from[at] * tc_attr_nth(op, "rhs_dilation", slides);
	mm->a.stride[r - 2] = dim[r - 2] > 1 ? a->stride[v->kernel_out] : 0;
	for (unsigned i = 0; i < r; i++)
		mm->b.stride[i] = dim[i] > 1 ? from[i] : 0;
	count_work(e, v, (double)mm->k);
}

void tc_emit_convolution(struct emit *e, const struct tc_op *op, const struct tc_op *fusion)
{
	int64_t dims[ISA_MAX_RANK], dim[ISA_MAX_RANK];
	struct home a, k;
	struct isa_conv *c;
	struct conv v;
	double points, taps;
	int slides;

	look_at(e, op, fusion, &v);
	if (v.n > ISA_MAX_SPATIAL)
		tc_refuse(e, "it has more than 6 spatial dims");
	slides = sliding_dim(e, op, &v);
	if (slides >= 0) {
		emit_sliding(e, op, fusion, &v, (unsigned)slides);
		return;
	}
	dims[0] = v.batch;
	dims[1] = v.feature;
	memcpy(dims + 2, v.points, v.n * sizeof(*dims));
	begin_body(e, op, fusion, &v, dims, dim);
	if (!v.out->count)
		return;
	points = (double)v.out->count / (double)v.out->dim[v.feature];
	taps = (double)v.rhs->type->count / (double)v.rhs->type->dim[v.kernel_out];
	a = *tc_home(e, v.lhs);
	k = *tc_home(e, v.rhs);
	/* Strides between points can leave most of it out. */
	if (points * taps >= (double)v.lhs->type->count)
		a = side_by_side(e, v.lhs, v.in_feature);
	if (k.stride[v.kernel_in] != elem_bytes(v.rhs->type->elem))
		k = side_by_side(e, v.rhs, v.kernel_out);
	c = tc_put_body(e, ISA_CONV, sizeof(*c), offsetof(struct isa_conv, body), v.b, v.n + 2,
			dim);
	c->acc = (uint8_t)v.acc;
	c->precision = (uint8_t)precision_of(op, v.lhs->type->elem);
	c->n_spatial = (uint8_t)v.n;
	c->feature_groups = tc_attr_int(op, "feature_group_count", 1);
	c->batch_groups = tc_attr_int(op, "batch_group_count", 1);
	c->in_features = v.rhs->type->dim[v.kernel_in];
	set_window(op, v.lhs->type, v.rhs->type, c, v.n);
	c->lhs = tc_operand(&a, v.lhs->type->elem);
	c->rhs = tc_operand(&k, v.rhs->type->elem);
	c->lhs.stride[0] = a.stride[v.in_batch];
	c->lhs.stride[1] = a.stride[v.in_feature];
	c->rhs.stride[0] = k.stride[v.kernel_out];
	c->rhs.stride[1] = k.stride[v.kernel_in];
	taps = (double)c->in_features;
	for (unsigned i = 0; i < v.n; i++) {
		c->lhs.stride[2 + i] = a.stride[v.in[i]];
		c->rhs.stride[2 + i] = k.stride[v.kernel[i]];
		taps *= (double)c->kernel[i];
	}
	count_work(e, &v, taps);
}
