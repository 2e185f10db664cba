/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rule for each op: the result's type is computed from the operands and compared. All
 * dims are known to be >= 0 and sizes to fit TC_MAX_BYTES since types are made (ir.c).
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runtime/compiler/ir/ir_verify.h"

void tc_check_failed(const struct check *k, const char *fmt, ...)
{
	char text[ERR_MSG_BYTES];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (!k->pass)
		tc_fail(k->c, ERR_INVALID_ARGUMENT, k->op, "%s", text);
	tc_fail(k->c, ERR_INTERNAL, k->op, "a bug of the compiler, its pass \"%s\" left a "
		"program in which %s; please report it, with what TESSERA_DUMP=folder "
		"writes", k->pass, text);
}

static void want(const struct check *k, unsigned elem, unsigned rank, const int64_t *dim)
{
	const struct tc_type *t = out_type(k);

	if (t->elem != elem || t->rank != rank ||
	    memcmp(t->dim, dim, rank * sizeof(*dim)))
		BAD(k, "its result is not of the shape that follows from its operands");
}

/* A list attribute of n entries, each in [low, high). */
static const int64_t *list_of(const struct check *k, const char *name, unsigned n,
			      int64_t low, int64_t high)
{
	unsigned got;
	const int64_t *list = tc_attr_ints(k->op, name, &got);

	if (got != n)
		BAD(k, "%s has %u entries, not %u", name, got, n);
	for (unsigned i = 0; i < n; i++)
		if (list[i] < low || list[i] >= high)
			BAD(k, "%s[%u] is %" PRId64, name, i, list[i]);
	return list;
}

static uint64_t set_of(const struct check *k, const char *name, unsigned limit,
		       const int64_t **out, unsigned *n)
{
	const int64_t *list = tc_attr_ints(k->op, name, n);
	uint64_t set = 0;

	for (unsigned i = 0; i < *n; i++) {
		if (list[i] < 0 || list[i] >= limit || set >> list[i] & 1)
			BAD(k, "%s[%u] is %" PRId64 ", out of range or twice", name, i, list[i]);
		set |= 1ull << list[i];
	}
	if (out)
		*out = list;
	return set;
}

static int64_t dim_of(const struct check *k, const char *name, int64_t limit)
{
	int64_t d = tc_attr_int(k->op, name, -1);

	if (d < 0 || d >= limit)
		BAD(k, "%s is %" PRId64 " of %" PRId64, name, d, limit);
	return d;
}

static bool is_int(unsigned elem)
{
	return elem_class(elem) == ELEM_CLASS_SINT || elem_class(elem) == ELEM_CLASS_UINT;
}

static bool is_float(unsigned elem)
{
	return elem_class(elem) == ELEM_CLASS_FLOAT;
}

static void want_scalar(const struct check *k, unsigned i, unsigned elem)
{
	if (in_type(k, i)->rank || in_type(k, i)->elem != elem)
		BAD(k, "operand %u is no scalar of %s", i, elem_text(elem));
}

/* A region of n arguments, scalars of the elements of operands 0, 0, .. 1, 1, .. (each `times`),
 * from the first one again after `each`; it yields m scalars. */
static const struct tc_block *scalar_region(const struct check *k, unsigned r, unsigned n,
					    unsigned times, unsigned each, unsigned m)
{
	const struct tc_block *b = k->op->regions[r].block;

	if (b->n_args != n || b->last->n_operands != m)
		BAD(k, "its region takes %u values and yields %u", b->n_args,
		    b->last->n_operands);
	for (unsigned i = 0; i < n; i++)
		if (b->args[i]->type->rank || b->args[i]->type->is_tuple ||
		    b->args[i]->type->elem != in_type(k, i / times % each)->elem)
			BAD(k, "argument %u of its region has another type", i);
	for (unsigned i = 0; i < m; i++)
		if (tc_in(b->last, i)->type->rank)
			BAD(k, "its region yields an array");
	return b;
}

/* The first region folds element by element what is of the types of the first n operands. */
static void check_fold(const struct check *k, unsigned n)
{
	const struct tc_op *end = scalar_region(k, 0, 2 * n, 1, n, n)->last;

	for (unsigned j = 0; j < n; j++)
		if (tc_in(end, j)->type->elem != in_type(k, j)->elem)
			BAD(k, "its region yields another type");
}

/* ---- shape rules ---- */

static void check_elementwise(const struct check *k)
{
	const struct tc_type *out = out_type(k);
	unsigned op = k->op->op, first = op == TC_SELECT ? 1 : 0;

	for (unsigned i = 0; i < k->op->n_operands; i++) {
		const struct tc_type *t = in_type(k, i);
		bool may_be_scalar = (op == TC_SELECT && i == 0) ||
				     (op == TC_CLAMP && i != 1);

		if (!tc_same_dims(t, out) && !(may_be_scalar && !t->rank))
			BAD(k, "operand %u has another shape than the result", i);
		if (i >= first && t->elem != in_type(k, op == TC_CLAMP ? 1 : first)->elem)
			BAD(k, "operand %u has another element type", i);
	}
	if (!elem_bytes(out->elem) || !elem_bytes(in_type(k, 0)->elem))
		BAD(k, "tokens are no numbers");
	switch (op) {
	case TC_SELECT:
		if (in_type(k, 0)->elem != ELEM_PRED || in_type(k, 1)->elem != out->elem)
			BAD(k, "it selects by %s", elem_text(in_type(k, 0)->elem));
		break;
	case TC_COMPARE:
	case TC_IS_FINITE:
		if (out->elem != ELEM_PRED)
			BAD(k, "its result is %s", elem_text(out->elem));
		if (op == TC_COMPARE &&
		    (uint64_t)tc_attr_int(k->op, "comparison_direction", 0) > TC_CMP_LT)
			BAD(k, "there is no such comparison");
		break;
	case TC_CONVERT:
		break;
	case TC_REAL:
	case TC_IMAG:
	case TC_ABS:
	case TC_COMPLEX:
		break;
	case TC_REDUCE_PRECISION: {
		int64_t e = tc_attr_int(k->op, "exponent_bits", 0);
		int64_t m = tc_attr_int(k->op, "mantissa_bits", 0);

		if (e < 1 || m < 0)
			BAD(k, "%" PRId64 " exponent and %" PRId64 " mantissa bits", e, m);
	}
	/* fallthrough */
	default:
		if (out->elem != in_type(k, first)->elem)
			BAD(k, "it gives %s of %s", elem_text(out->elem),
			    elem_text(in_type(k, first)->elem));
		break;
	}
	if (op == TC_REAL || op == TC_IMAG || op == TC_ABS) {
		unsigned in = in_type(k, 0)->elem;
		unsigned real = in == ELEM_C64 ? ELEM_F32 : in == ELEM_C128 ? ELEM_F64 : in;

		if (out->elem != real)
			BAD(k, "it gives %s of %s", elem_text(out->elem), elem_text(in));
	}
	if (op == TC_COMPLEX && !((in_type(k, 0)->elem == ELEM_F32 && out->elem == ELEM_C64) ||
				  (in_type(k, 0)->elem == ELEM_F64 && out->elem == ELEM_C128)))
		BAD(k, "complex of %s", elem_text(in_type(k, 0)->elem));
}

static void check_broadcast(const struct check *k)
{
	const struct tc_type *in = in_type(k, 0), *out = out_type(k);
	const int64_t *bd;
	unsigned n;

	set_of(k, "broadcast_dimensions", out->rank, &bd, &n);
	if (n != in->rank || in->elem != out->elem)
		BAD(k, "broadcast_dimensions does not fit");
	for (unsigned i = 0; i < n; i++)
		if (in->dim[i] != 1 && in->dim[i] != out->dim[bd[i]])
			BAD(k, "dim %u of %" PRId64 " becomes %" PRId64, i, in->dim[i],
			    out->dim[bd[i]]);
}

static void check_concatenate(const struct check *k)
{
	const struct tc_type *out = out_type(k);
	int64_t d = dim_of(k, "dimension", out->rank), sum = 0;

	for (unsigned i = 0; i < k->op->n_operands; i++) {
		const struct tc_type *t = in_type(k, i);

		if (t->elem != out->elem || t->rank != out->rank)
			BAD(k, "operand %u does not fit", i);
		for (unsigned j = 0; j < t->rank; j++)
			if (j != d && t->dim[j] != out->dim[j])
				BAD(k, "operand %u does not fit", i);
		sum += t->dim[d];
		if (sum > out->dim[d])
			BAD(k, "the parts are larger than the whole");
	}
	if (sum != out->dim[d] || !k->op->n_operands)
		BAD(k, "the parts do not add up");
}

static void check_dynamic(const struct check *k)
{
	const struct tc_type *whole = in_type(k, 0), *out = out_type(k);
	bool updates = k->op->op == TC_DYNAMIC_UPDATE_SLICE;
	const struct tc_type *part = updates ? in_type(k, 1) : out;
	unsigned first = updates ? 2 : 1;

	if (k->op->n_operands != first + whole->rank || part->rank != whole->rank ||
	    part->elem != whole->elem || (updates && out != whole))
		BAD(k, "its operands do not fit");
	for (unsigned d = 0; d < whole->rank; d++) {
		if (part->dim[d] > whole->dim[d])
			BAD(k, "dim %u of the part is larger than the whole", d);
		if (in_type(k, first + d)->rank || !is_int(in_type(k, first + d)->elem))
			BAD(k, "start %u is no integer", d);
	}
	if (!updates) {
		const int64_t *sizes = list_of(k, "slice_sizes", whole->rank, 0, INT64_MAX);

		if (whole->rank && memcmp(sizes, out->dim, whole->rank * sizeof(*sizes)))
			BAD(k, "slice_sizes is not the result's shape");
	}
}

static void check_pad(const struct check *k)
{
	const struct tc_type *in = in_type(k, 0), *out = out_type(k);
	int64_t most = (int64_t)1 << 40;
	const int64_t *low = list_of(k, "edge_padding_low", in->rank, -most, most);
	const int64_t *high = list_of(k, "edge_padding_high", in->rank, -most, most);
	const int64_t *inner = list_of(k, "interior_padding", in->rank, 0, most);
	int64_t dim[TC_MAX_RANK];

	want_scalar(k, 1, in->elem);
	for (unsigned d = 0; d < in->rank; d++) {
		__int128 wide = (__int128)in->dim[d] + low[d] + high[d] +
			(in->dim[d] ? (__int128)(in->dim[d] - 1) * inner[d] : 0);

		dim[d] = wide < 0 || wide > INT64_MAX ? -1 : (int64_t)wide;
	}
	want(k, in->elem, in->rank, dim);
	(void)out;
}

static void check_slice(const struct check *k)
{
	const struct tc_type *in = in_type(k, 0);
	const int64_t *start = list_of(k, "start_indices", in->rank, 0, INT64_MAX);
	const int64_t *limit = list_of(k, "limit_indices", in->rank, 0, INT64_MAX);
	const int64_t *step = list_of(k, "strides", in->rank, 1, INT64_MAX);
	int64_t dim[TC_MAX_RANK];

	for (unsigned d = 0; d < in->rank; d++) {
		if (start[d] > limit[d] || limit[d] > in->dim[d])
			BAD(k, "dim %u is cut from %" PRId64 " to %" PRId64 " of %" PRId64, d,
			    start[d], limit[d], in->dim[d]);
		dim[d] = (limit[d] - start[d]) / step[d] +
			 ((limit[d] - start[d]) % step[d] != 0);
	}
	want(k, in->elem, in->rank, dim);
}

static void check_transpose(const struct check *k)
{
	const struct tc_type *in = in_type(k, 0);
	const int64_t *p;
	int64_t dim[TC_MAX_RANK];
	unsigned n;

	set_of(k, "permutation", in->rank, &p, &n);
	if (n != in->rank)
		BAD(k, "the permutation has %u entries", n);
	for (unsigned i = 0; i < n; i++)
		dim[i] = in->dim[p[i]];
	want(k, in->elem, n, dim);
}

/* Bits of an element: a truth value is a byte to those who look at its bits. */
static unsigned bits_of(unsigned elem)
{
	return elem == ELEM_PRED ? 8 : elem_bits(elem);
}

static void check_bitcast(const struct check *k)
{
	const struct tc_type *in = in_type(k, 0), *out = out_type(k);
	unsigned a = bits_of(in->elem), b = bits_of(out->elem);
	const struct tc_type *wide = a > b ? in : out, *narrow = a > b ? out : in;

	if (!a || !b || ((in->elem == ELEM_PRED || out->elem == ELEM_PRED) && a != b))
		BAD(k, "the bits of %s as %s", elem_text(in->elem), elem_text(out->elem));
	if (a == b ? !tc_same_dims(in, out) : narrow->rank != wide->rank + 1u ||
	    memcmp(narrow->dim, wide->dim, wide->rank * sizeof(*wide->dim)) ||
	    narrow->dim[wide->rank] != (a > b ? a / b : b / a))
		BAD(k, "the shapes do not fit");
}

static void check_dot(const struct check *k)
{
	const struct tc_type *a = in_type(k, 0), *b = in_type(k, 1);
	unsigned nlb, nrb, nlk, nrk, n = 0;
	const int64_t *lb, *rb, *lk, *rk;
	uint64_t as = set_of(k, "lhs_batching_dimensions", a->rank, &lb, &nlb);
	uint64_t bs = set_of(k, "rhs_batching_dimensions", b->rank, &rb, &nrb);
	uint64_t ak = set_of(k, "lhs_contracting_dimensions", a->rank, &lk, &nlk);
	uint64_t bk = set_of(k, "rhs_contracting_dimensions", b->rank, &rk, &nrk);
	int64_t dim[2 * TC_MAX_RANK];

	if (nlb != nrb || nlk != nrk || as & ak || bs & bk)
		BAD(k, "its dimension numbers do not fit each other");
	for (unsigned i = 0; i < nlb; i++, n++) {
		dim[n] = a->dim[lb[i]];
		if (dim[n] != b->dim[rb[i]])
			BAD(k, "batch dim %u differs", i);
	}
	for (unsigned i = 0; i < nlk; i++)
		if (a->dim[lk[i]] != b->dim[rk[i]])
			BAD(k, "contracting dim %u differs", i);
	for (unsigned d = 0; d < a->rank; d++)
		if (!((as | ak) >> d & 1))
			dim[n++] = a->dim[d];
	for (unsigned d = 0; d < b->rank; d++)
		if (!((bs | bk) >> d & 1))
			dim[n++] = b->dim[d];
	if (n > TC_MAX_RANK || !elem_bytes(a->elem) || !elem_bytes(b->elem))
		BAD(k, "its result has %u dims", n);
	want(k, out_type(k)->elem, n, dim);
}

/* The windows that fit; -1 (no dim) if padding makes more than any tensor can have. */
static int64_t window_count(int64_t size, int64_t base, __int128 pad, int64_t window,
			    int64_t dilation, int64_t stride)
{
	__int128 padded = (size ? (__int128)(size - 1) * base + 1 : 0) + pad;
	__int128 wide = window ? (__int128)(window - 1) * dilation + 1 : 0;

	if (padded > TC_MAX_BYTES)
		return -1;
	if (padded < wide || wide <= 0)
		return 0;
	return (int64_t)((padded - wide) / stride + 1);
}

static void check_convolution(const struct check *k)
{
	const struct tc_type *a = in_type(k, 0), *b = in_type(k, 1), *out = out_type(k);
	unsigned n = a->rank < 2 ? 0 : a->rank - 2u;
	int64_t most = (int64_t)1 << 31;
	const int64_t *is, *ks, *os, *stride, *pad, *ld, *rd;
	int64_t ib = dim_of(k, "input_batch_dimension", a->rank);
	int64_t inf = dim_of(k, "input_feature_dimension", a->rank);
	int64_t ki = dim_of(k, "kernel_input_feature_dimension", b->rank);
	int64_t ko = dim_of(k, "kernel_output_feature_dimension", b->rank);
	int64_t ob = dim_of(k, "output_batch_dimension", out->rank);
	int64_t of = dim_of(k, "output_feature_dimension", out->rank);
	int64_t fg = tc_attr_int(k->op, "feature_group_count", 0);
	int64_t bg = tc_attr_int(k->op, "batch_group_count", 0);
	uint64_t all;
	unsigned m;

	if (a->rank < 2 || b->rank != a->rank || out->rank != a->rank)
		BAD(k, "its operands have ranks %u and %u", a->rank, b->rank);
	all = (1ull << a->rank) - 1;
	if ((set_of(k, "input_spatial_dimensions", a->rank, &is, &m) | 1ull << ib |
	     1ull << inf) != all || m != n ||
	    (set_of(k, "kernel_spatial_dimensions", a->rank, &ks, &m) | 1ull << ki |
	     1ull << ko) != all || m != n ||
	    (set_of(k, "output_spatial_dimensions", a->rank, &os, &m) | 1ull << ob |
	     1ull << of) != all || m != n)
		BAD(k, "its dimension numbers are no permutation");
	stride = list_of(k, "window_strides", n, 1, most);
	pad = list_of(k, "padding", 2 * n, -most, most);
	ld = list_of(k, "lhs_dilation", n, 1, most);
	rd = list_of(k, "rhs_dilation", n, 1, most);
	list_of(k, "window_reversal", n, 0, 2);
	if (fg < 1 || bg < 1 || (fg > 1 && bg > 1) || b->dim[ko] % fg || b->dim[ko] % bg ||
	    a->dim[ib] % bg || a->dim[inf] % fg || a->dim[inf] / fg != b->dim[ki])
		BAD(k, "its groups do not fit the features");
	if (out->dim[ob] != a->dim[ib] / bg || out->dim[of] != b->dim[ko])
		BAD(k, "its result has other batches or features");
	for (unsigned i = 0; i < n; i++)
		if (out->dim[os[i]] != window_count(a->dim[is[i]], ld[i],
			(__int128)pad[2 * i] + pad[2 * i + 1], b->dim[ks[i]], rd[i], stride[i]))
			BAD(k, "spatial dim %u of its result is %" PRId64, i, out->dim[os[i]]);
}

static void check_reduce(const struct check *k)
{
	unsigned n = k->op->n_results, m, rank = 0;
	const struct tc_type *in;
	int64_t dim[TC_MAX_RANK];
	uint64_t set;

	if (!n || k->op->n_operands != 2 * n)
		BAD(k, "it has %u operands and %u results", k->op->n_operands, n);
	in = in_type(k, 0);
	set = set_of(k, "dimensions", in->rank, NULL, &m);
	for (unsigned d = 0; d < in->rank; d++)
		if (!(set >> d & 1))
			dim[rank++] = in->dim[d];
	for (unsigned j = 0; j < n; j++) {
		const struct tc_type *t = k->op->results[j].type;

		if (!tc_same_dims(in_type(k, j), in) || in_type(k, j)->elem != t->elem ||
		    t->rank != rank || memcmp(t->dim, dim, rank * sizeof(*dim)))
			BAD(k, "operand or result %u does not fit", j);
		want_scalar(k, n + j, t->elem);
	}
	check_fold(k, n);
}

static void check_reduce_window(const struct check *k)
{
	unsigned n = k->op->n_results;
	int64_t most = (int64_t)1 << 31;
	const struct tc_type *in;
	const int64_t *w, *s, *b, *d, *p;
	int64_t dim[TC_MAX_RANK];

	if (!n || k->op->n_operands != 2 * n)
		BAD(k, "it has %u operands and %u results", k->op->n_operands, n);
	in = in_type(k, 0);
	w = list_of(k, "window_dimensions", in->rank, 1, most);
	s = list_of(k, "window_strides", in->rank, 1, most);
	b = list_of(k, "base_dilations", in->rank, 1, most);
	d = list_of(k, "window_dilations", in->rank, 1, most);
	p = list_of(k, "padding", 2u * in->rank, -most, most);
	for (unsigned i = 0; i < in->rank; i++)
		dim[i] = window_count(in->dim[i], b[i], (__int128)p[2 * i] + p[2 * i + 1],
				      w[i], d[i], s[i]);
	for (unsigned j = 0; j < n; j++) {
		const struct tc_type *t = k->op->results[j].type;

		if (!tc_same_dims(in_type(k, j), in) || in_type(k, j)->elem != t->elem ||
		    t->rank != in->rank || memcmp(t->dim, dim, in->rank * sizeof(*dim)))
			BAD(k, "operand or result %u does not fit", j);
		want_scalar(k, n + j, t->elem);
	}
	check_fold(k, n);
}

/* What gather and scatter share. `moved` is the result or the updates. */
static void check_index(const struct check *k, const struct tc_type *table,
			const struct tc_type *indices, const struct tc_type *moved,
			const char *const names[5], const int64_t *sizes)
{
	unsigned n_window, n_gone, n_tb, n_ib, n_map, batch = 0, w = 0;
	const int64_t *window, *tb, *ib;
	uint64_t ws = set_of(k, names[0], moved->rank, &window, &n_window);
	uint64_t gone = set_of(k, names[1], table->rank, NULL, &n_gone);
	uint64_t tbs = set_of(k, names[2], table->rank, &tb, &n_tb);
	uint64_t ibs = set_of(k, names[3], indices->rank, &ib, &n_ib);
	uint64_t map = set_of(k, names[4], table->rank, NULL, &n_map);
	int64_t vector = dim_of(k, "index_vector_dim", indices->rank + 1);
	int64_t parts = vector < indices->rank ? indices->dim[vector] : 1;

	if (tc_attr(k->op, "wrap"))
		list_of(k, "wrap", n_map, 0, (int64_t)1 << 48);
	if (!is_int(indices->elem) || parts != n_map || gone & tbs || map & tbs ||
	    n_tb != n_ib || (vector < indices->rank && ibs >> vector & 1) ||
	    n_window + n_gone + n_tb != table->rank)
		BAD(k, "its dimension numbers do not fit");
	for (unsigned i = 0; i < n_tb; i++)
		if (table->dim[tb[i]] != indices->dim[ib[i]])
			BAD(k, "batching dim %u differs", i);
	for (unsigned i = 1; i < n_window; i++)
		if (window[i] <= window[i - 1])
			BAD(k, "%s is not ascending", names[0]);
	if (moved->rank != n_window + indices->rank - (vector < indices->rank))
		BAD(k, "it moves an array of rank %u", moved->rank);
	for (unsigned d = 0; d < moved->rank; d++) {
		if (ws >> d & 1)
			continue;
		batch += batch == vector;
		if (moved->dim[d] != indices->dim[batch++])
			BAD(k, "batch dim %u differs from the indices", d);
	}
	for (unsigned d = 0; d < table->rank; d++) {
		/* Of nothing nothing may be asked for: torch_xla looks up so. */
		bool is_none = sizes && !sizes[d] && !table->dim[d] && !moved->count;
		int64_t size = (gone | tbs) >> d & 1 ? !is_none : moved->dim[window[w++]];

		/* A scatter of nothing, or into nothing: every update is out of bounds. */
		if (size > table->dim[d] &&
		    !(sizes == NULL && (!moved->count || !table->count)))
			BAD(k, "the window is larger than dim %u", d);
		if (sizes && sizes[d] != size)
			BAD(k, "slice_sizes[%u] is %" PRId64, d, sizes[d]);
	}
}

static void check_gather(const struct check *k)
{
	static const char *const names[5] = { "offset_dims", "collapsed_slice_dims",
		"operand_batching_dims", "start_indices_batching_dims", "start_index_map" };
	const int64_t *sizes = list_of(k, "slice_sizes", in_type(k, 0)->rank, 0, INT64_MAX);
	const struct tc_attr *fill = tc_attr(k->op, "fill");

	if (out_type(k)->elem != in_type(k, 0)->elem)
		BAD(k, "its result has another element type");
	if (fill && (fill->type->elem != out_type(k)->elem || fill->type->count != 1))
		BAD(k, "it fills with something else than an element");
	check_index(k, in_type(k, 0), in_type(k, 1), out_type(k), names, sizes);
}

static void check_scatter(const struct check *k)
{
	static const char *const names[5] = { "update_window_dims", "inserted_window_dims",
		"input_batching_dims", "scatter_indices_batching_dims",
		"scatter_dims_to_operand_dims" };
	unsigned n = k->op->n_results;

	if (!n || k->op->n_operands != 2 * n + 1)
		BAD(k, "it has %u operands and %u results", k->op->n_operands, n);
	for (unsigned j = 0; j < n; j++) {
		const struct tc_type *t = k->op->results[j].type;

		if (in_type(k, j) != t || in_type(k, n + 1 + j)->elem != t->elem ||
		    !tc_same_dims(t, in_type(k, 0)) ||
		    !tc_same_dims(in_type(k, n + 1 + j), in_type(k, n + 1)))
			BAD(k, "operand or result %u does not fit", j);
		check_index(k, t, in_type(k, n), in_type(k, n + 1 + j), names, NULL);
	}
	check_fold(k, n);
}

static void check_sort(const struct check *k)
{
	unsigned n = k->op->n_operands;
	int64_t d = tc_attr_int(k->op, "dimension", 0);

	if (!n || k->op->n_results != n)
		BAD(k, "it sorts %u arrays", n);
	for (unsigned j = 0; j < n; j++)
		if (in_type(k, j) != k->op->results[j].type ||
		    !tc_same_dims(in_type(k, j), in_type(k, 0)))
			BAD(k, "operand %u does not fit", j);
	if (d < -(int64_t)in_type(k, 0)->rank || d >= in_type(k, 0)->rank)
		BAD(k, "dimension is %" PRId64, d);
	if (tc_in(scalar_region(k, 0, 2 * n, 2, n, 1)->last, 0)->type->elem != ELEM_PRED)
		BAD(k, "its comparator yields no i1");
}

static void same_types(const struct check *k, const struct tc_block *b,
		       const struct tc_op *end, unsigned first)
{
	if (end->n_operands != k->op->n_results)
		BAD(k, "a region yields %u values", end->n_operands);
	for (unsigned i = 0; i < end->n_operands; i++)
		if (tc_in(end, i)->type != k->op->results[i].type)
			BAD(k, "a region yields another type as value %u", i);
	(void)b;
	(void)first;
}

static void check_while(const struct check *k)
{
	const struct tc_block *cond = k->op->regions[0].block, *body = k->op->regions[1].block;

	if (k->op->n_operands != k->op->n_results || cond->n_args != k->op->n_operands ||
	    body->n_args != k->op->n_operands)
		BAD(k, "it carries %u values", k->op->n_operands);
	for (unsigned i = 0; i < k->op->n_operands; i++)
		if (in_type(k, i) != k->op->results[i].type ||
		    cond->args[i]->type != in_type(k, i) ||
		    body->args[i]->type != in_type(k, i))
			BAD(k, "carried value %u changes its type", i);
	if (cond->last->n_operands != 1 || tc_in(cond->last, 0)->type->rank ||
	    tc_in(cond->last, 0)->type->elem != ELEM_PRED)
		BAD(k, "its condition yields no i1");
	same_types(k, body, body->last, 0);
}

/* A list of n shardings, each a text. */
static void check_shardings(const struct check *k, const char *name, unsigned n)
{
	const struct tc_attr *list = tc_attr(k->op, name);

	if (list->kind != TC_ATTR_ATTRS ? n : list->n != n)
		BAD(k, "%s is not a list of %u shardings", name, n);
	for (unsigned i = 0; i < n; i++)
		if (list->attrs[i].kind != TC_ATTR_STR)
			BAD(k, "%s has something else than a text", name);
}

static void check_manual(const struct check *k)
{
	const struct tc_block *b = k->op->regions[0].block;

	if (b->n_args != k->op->n_operands || b->last->n_operands != k->op->n_results)
		BAD(k, "its body takes %u values and gives %u", b->n_args, b->last->n_operands);
	for (unsigned i = 0; i < b->n_args; i++)
		if (b->args[i]->type->rank != in_type(k, i)->rank ||
		    b->args[i]->type->elem != in_type(k, i)->elem)
			BAD(k, "argument %u of its body is no part of operand %u", i, i);
	for (unsigned i = 0; i < k->op->n_results; i++)
		if (tc_in(b->last, i)->type->rank != k->op->results[i].type->rank ||
		    tc_in(b->last, i)->type->elem != k->op->results[i].type->elem)
			BAD(k, "result %u of its body is no part of result %u", i, i);
}

static void check_case(const struct check *k)
{
	if (in_type(k, 0)->rank || !k->op->n_regions ||
	    (k->op->op == TC_IF ? in_type(k, 0)->elem != ELEM_PRED :
	     !is_int(in_type(k, 0)->elem)))
		BAD(k, "it chooses by %s", elem_text(in_type(k, 0)->elem));
	for (unsigned r = 0; r < k->op->n_regions; r++) {
		if (k->op->regions[r].block->n_args)
			BAD(k, "branch %u takes arguments", r);
		same_types(k, k->op->regions[r].block, k->op->regions[r].block->last, 0);
	}
}

/* Only the frame: what is inside counts when a fusion is made or taken apart. */
static void check_fusion(const struct check *k)
{
	const struct tc_block *b = k->op->regions[0].block;

	if (b->n_args != k->op->n_operands)
		BAD(k, "its region has %u arguments for %u operands", b->n_args,
		    k->op->n_operands);
	for (unsigned i = 0; i < b->n_args; i++)
		if (b->args[i]->type != in_type(k, i))
			BAD(k, "argument %u of its region has another type", i);
	same_types(k, b, b->last, 0);
}

static void check_constant(const struct check *k)
{
	const struct tc_attr *a = tc_attr(k->op, "value");

	if (a->type != out_type(k))
		BAD(k, "its value is of another type");
}

/* Numbers of the result's type between the first two operands; the third is its shape. */
static void check_rng(const struct check *k)
{
	int64_t kind = tc_attr_int(k->op, "rng_distribution", 0);

	want_scalar(k, 0, out_type(k)->elem);
	want_scalar(k, 1, out_type(k)->elem);
	if (in_type(k, 2)->rank != 1 || in_type(k, 2)->dim[0] != out_type(k)->rank)
		BAD(k, "its shape is of rank %u", in_type(k, 2)->rank);
	if (kind != 1 && kind != 2)
		BAD(k, "a distribution of number %" PRId64, kind);
}

static void check_random_bits(const struct check *k)
{
	const struct tc_type *s = in_type(k, 0);

	if (k->op->results[0].type != s || s->rank != 1 ||
	    !((s->elem == ELEM_U64 && (s->dim[0] == 2 || s->dim[0] == 3)) ||
	      (s->elem == ELEM_U32 && s->dim[0] == 4)))
		BAD(k, "its state is %" PRId64 " bytes of %s", s->bytes, elem_text(s->elem));
	if (!is_int(k->op->results[1].type->elem) && !is_float(k->op->results[1].type->elem))
		BAD(k, "random bits of %s", elem_text(k->op->results[1].type->elem));
}

/* The token comes last, behind what is sent or received. */
static void check_channel(const struct check *k)
{
	bool is_send = k->op->op == TC_SEND;
	unsigned n = is_send ? k->op->n_operands : k->op->n_results;

	for (unsigned i = 0; i < n; i++)
		if (((is_send ? in_type(k, i) : k->op->results[i].type)->elem == ELEM_TOKEN) !=
		    (i + 1 == n))
			BAD(k, "its %s are not arrays and a token", is_send ? "operands" :
			    "results");
	if (!n || (is_send ? out_type(k) : in_type(k, 0))->elem != ELEM_TOKEN)
		BAD(k, "it %s no token", is_send ? "gives" : "takes");
}

/* What a function sees are the operands and results, and tokens (ops.def). */
static void check_function(const struct check *k)
{
	unsigned n, at = 1, seen[2] = { 0, 1 }, need;
	const int64_t *a = tc_attr_ints(k->op, "arrays", &n);

	for (int64_t i = 0; at < n || (n && i < a[0]); i++) {
		bool is_result = n && i >= a[0];

		need = at + 1 < n && a[at + 1] >= 0 && a[at + 1] <= TC_MAX_RANK ?
		       2 + (unsigned)a[at + 1] + is_result : n + 1;
		if (at > n || need > n - at || a[at] < 0 || a[at] > UINT8_MAX)
			BAD(k, "its list of arrays is broken");
		seen[is_result] += a[at] != ELEM_TOKEN;
		at += need;
	}
	if (!n || !tc_attr(k->op, "frame") || seen[0] != k->op->n_operands ||
	    seen[1] != k->op->n_results)
		BAD(k, "its list of arrays is not of its operands and results");
}

static void check_host_call(const struct check *k)
{
	unsigned n_in, n_out, n = k->op->n_results;

	tc_attr_ints(k->op, "send_channels", &n_in);
	tc_attr_ints(k->op, "recv_channels", &n_out);
	if (n_in != k->op->n_operands || n != n_out + 1 ||
	    (!(n_in + n_out) && !tc_attr(k->op, "target")))
		BAD(k, "it has %u operands and %u results for %u and %u channels",
		    k->op->n_operands, n, n_in, n_out);
	for (unsigned i = 0; i < n_in; i++)
		if (in_type(k, i)->elem == ELEM_TOKEN)
			BAD(k, "operand %u is no array", i);
	for (unsigned i = 0; i < n; i++)
		if ((k->op->results[i].type->elem == ELEM_TOKEN) != (i + 1 == n))
			BAD(k, "its results are not arrays and a token");
	if (tc_attr(k->op, "target"))
		check_function(k);
}

static void check_transfer(const struct check *k)
{
	if (k->op->op == TC_HOST_CALL)
		check_host_call(k);
	else
		check_channel(k);
}

static void check_map(const struct check *k)
{
	unsigned n = k->op->n_operands, m;
	const struct tc_type *out = out_type(k);
	const int64_t *dims = tc_attr_ints(k->op, "dimensions", &m);

	if (!n || m != out->rank)
		BAD(k, "it has %u operands and %u dimensions", n, m);
	for (unsigned d = 0; d < m; d++)
		if (dims[d] != d)
			BAD(k, "its dimensions are not all in order");
	for (unsigned i = 0; i < n; i++)
		if (!tc_same_dims(in_type(k, i), out))
			BAD(k, "operand %u does not fit", i);
	scalar_region(k, 0, n, 1, n, 1);
	if (tc_in(k->op->regions[0].block->last, 0)->type->elem != out->elem)
		BAD(k, "its region yields another type");
}

static void check_select_and_scatter(const struct check *k)
{
	const struct tc_type *in = in_type(k, 0), *source = in_type(k, 1);
	int64_t most = (int64_t)1 << 31;
	const int64_t *w = list_of(k, "window_dimensions", in->rank, 1, most);
	const int64_t *s = list_of(k, "window_strides", in->rank, 1, most);
	const int64_t *p = list_of(k, "padding", 2u * in->rank, -most, most);

	if (out_type(k) != in || source->elem != in->elem || source->rank != in->rank)
		BAD(k, "its operands and its result do not fit");
	for (unsigned d = 0; d < in->rank; d++)
		if (source->dim[d] != window_count(in->dim[d], 1, (__int128)p[2 * d] +
						   p[2 * d + 1], w[d], 1, s[d]))
			BAD(k, "the source has %" PRId64 " elements in dim %u", source->dim[d],
			    d);
	want_scalar(k, 2, in->elem);
	scalar_region(k, 0, 2, 1, 1, 1);
	scalar_region(k, 1, 2, 1, 1, 1);
	if (tc_in(k->op->regions[0].block->last, 0)->type->elem != ELEM_PRED ||
	    tc_in(k->op->regions[1].block->last, 0)->type->elem != in->elem)
		BAD(k, "a region yields another type");
}

static void check_fft(const struct check *k)
{
	int64_t kind = tc_attr_int(k->op, "fft_type", -1), want, got;
	const struct tc_type *in = in_type(k, 0), *out = out_type(k);
	const struct tc_type *complex = kind == TC_FFT_RFFT ? out : in;
	const struct tc_type *real = complex == in ? out : in;
	const struct tc_attr *scale = tc_attr(k->op, "scale");
	unsigned n, first;
	const int64_t *length = tc_attr_ints(k->op, "fft_length", &n);

	if ((uint64_t)kind > TC_FFT_IRFFT || !n || n > 3 || n > in->rank || out->rank != in->rank)
		BAD(k, "a transform of kind %" PRId64 " over %u dims", kind, n);
	if (elem_class(complex->elem) != ELEM_CLASS_COMPLEX || real->elem != (kind < TC_FFT_RFFT ?
	    complex->elem : complex->elem == ELEM_C64 ? ELEM_F32 : ELEM_F64))
		BAD(k, "it turns %s into %s", elem_text(in->elem), elem_text(out->elem));
	if (!scale != !tc_attr(k->op, "dimension") ||
	    (scale && (scale->type->elem != ELEM_F64 || scale->type->count != 1 || n > 1)))
		BAD(k, "a scale is one f64, for one length along a dimension");
	first = scale ? (unsigned)dim_of(k, "dimension", in->rank) : in->rank - n;
	for (unsigned d = 0; d < in->rank; d++) {
		want = d - first < n ? length[d - first] : real->dim[d];
		got = want && d - first == n - 1 && real != complex ? want / 2 + 1 : want;
		/* Nothing may be made of one element, as numpy.fft.irfft makes it. */
		got += !want && d - first == n - 1 && kind == TC_FFT_IRFFT && complex->dim[d] == 1;
		if (want < 0 || real->dim[d] != want || complex->dim[d] != got)
			BAD(k, "dim %u does not fit its length", d);
	}
}

/* The last two dims of operand 0 are a square matrix of floats. */
static void check_matrix(const struct check *k)
{
	const struct tc_type *a = in_type(k, 0), *b, *out = out_type(k);
	unsigned r = a->rank;
	bool left;

	if (r < 2 || a->dim[r - 1] != a->dim[r - 2] ||
	    (!is_float(a->elem) && elem_class(a->elem) != ELEM_CLASS_COMPLEX))
		BAD(k, "operand 0 is no square matrix of floats");
	if (k->op->op == TC_CHOLESKY) {
		if (out != a)
			BAD(k, "its result has another type");
		return;
	}
	b = in_type(k, 1);
	left = tc_attr_int(k->op, "left_side", 0);
	if (out != b || b->elem != a->elem || b->rank != r ||
	    memcmp(a->dim, b->dim, (r - 2) * sizeof(*a->dim)) ||
	    b->dim[left ? r - 2 : r - 1] != a->dim[r - 1])
		BAD(k, "its operands do not fit");
	if (tc_attr_int(k->op, "transpose_a", 0) < TC_SOLVE_PLAIN ||
	    tc_attr_int(k->op, "transpose_a", 0) > TC_SOLVE_ADJOINT)
		BAD(k, "transpose_a is none of the three");
}

static void check_batch_norm(const struct check *k)
{
	const struct tc_type *x = in_type(k, 0), *vector, *t;
	int64_t f = dim_of(k, "feature_index", x->rank);
	const struct tc_attr *epsilon = tc_attr(k->op, "epsilon");
	bool is_grad = k->op->op == TC_BATCH_NORM_GRAD;

	if (!is_float(x->elem) || epsilon->type->elem != ELEM_F32 ||
	    epsilon->type->count != 1)
		BAD(k, "it takes floats, and epsilon is one f32");
	vector = tc_tensor(k->c, (enum elem)x->elem, 1, &x->dim[f]);
	for (unsigned i = 1; i < k->op->n_operands + k->op->n_results; i++) {
		bool in = i < k->op->n_operands, first = i == k->op->n_operands;

		t = in ? in_type(k, i) : k->op->results[i - k->op->n_operands].type;
		if (t != (first || (is_grad && i == 4) ? x : vector))
			BAD(k, "%s %u does not fit", in ? "operand" : "result",
			    in ? i : i - k->op->n_operands);
	}
}

static void check_size(const struct check *k)
{
	bool is_set = k->op->op == TC_SET_DIMENSION_SIZE;
	const struct tc_type *in = in_type(k, 0), *size = is_set ? in_type(k, 1) : out_type(k);

	dim_of(k, "dimension", in->rank);
	if (size->rank || !is_int(size->elem))
		BAD(k, "the size is no integer");
	if (is_set && in != out_type(k))
		BAD(k, "its result has another type than its operand");
}

void tc_check_op(const struct check *k)
{
	const struct tc_type *in = k->op->n_operands ? in_type(k, 0) : NULL;
	const struct tc_type *out = k->op->n_results ? out_type(k) : NULL;

	if (tc_has_trait(k->op, 'e')) {
		check_elementwise(k);
		return;
	}
	switch (k->op->op) {
	case TC_FUSION: check_fusion(k); break;
	case TC_CONSTANT: check_constant(k); break;
	case TC_IOTA:
		dim_of(k, "iota_dimension", out->rank);
		if (!elem_bytes(out->elem))
			BAD(k, "it counts in %s", elem_text(out->elem));
		break;
	case TC_BROADCAST_IN_DIM: check_broadcast(k); break;
	case TC_RESHAPE:
		if (in->elem != out->elem || in->count != out->count)
			BAD(k, "%" PRId64 " elements become %" PRId64, in->count, out->count);
		break;
	case TC_CONCATENATE: check_concatenate(k); break;
	case TC_DYNAMIC_SLICE:
	case TC_DYNAMIC_UPDATE_SLICE:
		if (k->op->n_operands < (k->op->op == TC_DYNAMIC_SLICE ? 1u : 2u))
			BAD(k, "an operand is missing");
		check_dynamic(k);
		break;
	case TC_PAD: check_pad(k); break;
	case TC_SLICE: check_slice(k); break;
	case TC_TRANSPOSE: check_transpose(k); break;
	case TC_REVERSE:
		set_of(k, "dimensions", in->rank, NULL, &(unsigned){ 0 });
		if (in != out)
			BAD(k, "its result has another type");
		break;
	case TC_BITCAST_CONVERT: check_bitcast(k); break;
	case TC_DOT_GENERAL: check_dot(k); break;
	case TC_CONVOLUTION: check_convolution(k); break;
	case TC_REDUCE: check_reduce(k); break;
	case TC_REDUCE_WINDOW: check_reduce_window(k); break;
	case TC_SELECT_AND_SCATTER: check_select_and_scatter(k); break;
	case TC_MAP: check_map(k); break;
	case TC_FFT: check_fft(k); break;
	case TC_CHOLESKY:
	case TC_TRIANGULAR_SOLVE: check_matrix(k); break;
	case TC_BATCH_NORM_GRAD:
	case TC_BATCH_NORM_INFERENCE:
	case TC_BATCH_NORM_TRAINING: check_batch_norm(k); break;
	case TC_GATHER: check_gather(k); break;
	case TC_SCATTER: check_scatter(k); break;
	case TC_SORT: check_sort(k); break;
	case TC_WHILE: check_while(k); break;
	case TC_CASE:
	case TC_IF: check_case(k); break;
	case TC_MANUAL_COMPUTATION:
		check_manual(k);
		check_shardings(k, "in_shardings", k->op->n_operands);
		check_shardings(k, "out_shardings", k->op->n_results);
		break;
	case TC_RNG: check_rng(k); break;
	case TC_RNG_BIT_GENERATOR: check_random_bits(k); break;
	case TC_GET_DIMENSION_SIZE:
	case TC_SET_DIMENSION_SIZE: check_size(k); break;
	case TC_PARTITION_ID:
	case TC_REPLICA_ID:
		if (out->rank || !is_int(out->elem))
			BAD(k, "its result is no integer");
		break;
	case TC_AFTER_ALL:
	case TC_CREATE_TOKEN:
		for (unsigned i = 0; i < k->op->n_operands; i++)
			if (in_type(k, i)->elem != ELEM_TOKEN)
				BAD(k, "operand %u is no token", i);
		if (out->elem != ELEM_TOKEN)
			BAD(k, "its result is no token");
		break;
	case TC_OPTIMIZATION_BARRIER:
		for (unsigned i = 0; i < k->op->n_results; i++)
			if (k->op->n_operands != k->op->n_results ||
			    in_type(k, i) != k->op->results[i].type)
				BAD(k, "its results are not its operands");
		break;
	case TC_DRAW:
		if (out->elem != ELEM_U32 && out->elem != ELEM_U64)
			BAD(k, "it draws %s", elem_text(out->elem));
		break;
	case TC_COPY:
	case TC_SHARDING_CONSTRAINT:
		if (in != out)
			BAD(k, "its result has another type");
		break;
	default:
		if (tc_has_trait(k->op, 'h'))
			check_transfer(k);
		break;
	}
}

void tc_check_frame(const struct check *k)
{
	switch (k->op->op) {
	case TC_FUSION: check_fusion(k); break;
	case TC_MANUAL_COMPUTATION: check_manual(k); break;
	case TC_WHILE: check_while(k); break;
	case TC_CASE:
	case TC_IF: check_case(k); break;
	default: break;
	}
}
