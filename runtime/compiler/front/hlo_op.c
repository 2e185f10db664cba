/* SPDX-License-Identifier: Apache-2.0 */
/* HLO's instructions, those without computations (hlo.h; hlo.def lists all). */
#include <inttypes.h>
#include <string.h>

#include "runtime/compiler/front/hlo.h"

typedef struct hlo_value (*read_fn)(struct hlo *r, struct tc_block *b,
				    const struct hlo_insn *i, enum tc_opcode op);

/* ---- making ops ---- */

/* The types of the arrays in t, in order. */
static unsigned list_types(const struct tc_type *t, const struct tc_type **out)
{
	unsigned n = 0;

	if (!t->is_tuple) {
		*out = t;
		return 1;
	}
	for (unsigned i = 0; i < t->n_parts; i++)
		n += list_types(t->parts[i], out + n);
	return n;
}

/* As hlo_op(), on these operands. */
static struct tc_op *op_on(struct hlo *r, struct tc_block *b, const struct hlo_insn *i,
			   enum tc_opcode code, unsigned n, struct tc_value *const *in,
			   unsigned n_regions)
{
	const struct tc_type *t = hlo_type(r, i->p->shape);
	const struct tc_type **types = hlo_get(r, hlo_count(t), sizeof(*types));
	struct tc_op *op = tc_new(r->c, code, n, in, list_types(t, types), types, n_regions);

	op->where = hlo_where(r, i);
	tc_append(b, op);
	return op;
}

struct tc_op *hlo_op(struct hlo *r, struct tc_block *b, const struct hlo_insn *i,
		     enum tc_opcode code, unsigned n_regions)
{
	struct tc_value **in;
	unsigned n = hlo_leaves(r, i, 0, &in);

	return op_on(r, b, i, code, n, in, n_regions);
}

struct hlo_value hlo_results(struct hlo *r, const struct hlo_insn *i, struct tc_op *op)
{
	struct hlo_value v = { hlo_type(r, i->p->shape),
			       hlo_get(r, op->n_results, sizeof(*v.leaf)) };

	for (unsigned k = 0; k < op->n_results; k++)
		v.leaf[k] = tc_out(op, k);
	return v;
}

static struct hlo_value plain(struct hlo *r, struct tc_block *b, const struct hlo_insn *i,
			      enum tc_opcode code)
{
	return hlo_results(r, i, hlo_op(r, b, i, code, 0));
}

/* Functions that the IR has no op for. */
static struct hlo_value read_function(struct hlo *r, struct tc_block *b, const struct hlo_insn *i,
				      enum tc_opcode code)
{
	struct tc_build to = { .c = r->c, .block = b, .where = hlo_where(r, i) };
	struct hlo_value v = { hlo_type(r, i->p->shape), hlo_get(r, 1, sizeof(*v.leaf)) };
	struct tc_value *x = hlo_array(r, i, 0);

	(void)code;
	if (x->type != v.type || i->p->n_operand_ids != 1)
		hlo_bad(r, "its operand is not of its type");
	if (x->bounded)
		hlo_refuse(r, "of an array of bounded size it does not run yet");
	v.leaf[0] = tc_build_function(&to, i->p->opcode, x);
	if (!v.leaf[0])
		hlo_bad(r, "it is a function of floats and complex numbers, not of %s",
			elem_text(x->type->elem));
	return v;
}

void hlo_give_ints(struct hlo *r, struct tc_op *op, const char *name, size_t n,
		   const int64_t *ints)
{
	if (n > 4 * TC_MAX_RANK)
		hlo_bad(r, "%s has %zu entries", name, n);
	tc_set_ints(r->c, op, name, ints, (unsigned)n);
}

void hlo_give_dims(struct hlo *r, const struct hlo_insn *i, struct tc_op *op, const char *name)
{
	hlo_give_ints(r, op, name, i->p->n_dimensions, i->p->dimensions);
}

static int64_t only(struct hlo *r, const struct hlo_insn *i)
{
	if (i->p->n_dimensions != 1)
		hlo_bad(r, "it names %zu dimensions, not one", i->p->n_dimensions);
	return i->p->dimensions[0];
}

/* ---- values that make no op ---- */

static struct hlo_value read_first(struct hlo *r, struct tc_block *b, const struct hlo_insn *i,
				   enum tc_opcode code)
{
	const struct hlo_value *v = hlo_operand(r, i, 0);

	(void)b;
	(void)code;
	if (hlo_type(r, i->p->shape) != v->type)
		hlo_bad(r, "its result is not of its operand's type");
	return *v;
}

/* What was begun gives operands, results, and what else there is: the results. */
static struct hlo_value read_done(struct hlo *r, struct tc_block *b, const struct hlo_insn *i,
				  enum tc_opcode code)
{
	const struct hlo_value *whole = hlo_operand(r, i, 0);
	struct hlo_value v;

	(void)b;
	(void)code;
	if (!whole->type->is_tuple || whole->type->n_parts < 2)
		hlo_bad(r, "its operand was not begun");
	v.type = whole->type->parts[1];
	v.leaf = whole->leaf + hlo_part_at(r, whole->type, 1);
	if (hlo_type(r, i->p->shape) != v.type)
		hlo_bad(r, "its shape is not that of the result");
	return v;
}

static struct hlo_value read_tuple(struct hlo *r, struct tc_block *b, const struct hlo_insn *i,
				   enum tc_opcode code)
{
	const struct tc_type **parts = hlo_get(r, i->p->n_operand_ids, sizeof(*parts));
	struct hlo_value v;

	(void)b;
	(void)code;
	for (size_t k = 0; k < i->p->n_operand_ids; k++)
		parts[k] = hlo_operand(r, i, k)->type;
	v.type = tc_tuple(r->c, parts, (unsigned)i->p->n_operand_ids);
	if (hlo_type(r, i->p->shape) != v.type)
		hlo_bad(r, "its shape is not that of its operands");
	hlo_leaves(r, i, 0, &v.leaf);
	return v;
}

static struct hlo_value read_part(struct hlo *r, struct tc_block *b, const struct hlo_insn *i,
				  enum tc_opcode code)
{
	const struct hlo_value *whole = hlo_operand(r, i, 0);
	int64_t k = i->p->tuple_index;
	struct hlo_value v;

	(void)b;
	(void)code;
	if (!whole->type->is_tuple || k < 0 || k >= whole->type->n_parts)
		hlo_bad(r, "part %" PRId64 " of what has no such part", k);
	v.type = whole->type->parts[k];
	v.leaf = whole->leaf + hlo_part_at(r, whole->type, (unsigned)k);
	if (hlo_type(r, i->p->shape) != v.type)
		hlo_bad(r, "its shape is not that of part %" PRId64, k);
	return v;
}

static struct hlo_value read_constant(struct hlo *r, struct tc_block *b,
				      const struct hlo_insn *i, enum tc_opcode code)
{
	(void)code;
	return hlo_literal(r, b, i->p->literal, hlo_type(r, i->p->shape));
}

static struct hlo_value read_dimension_size(struct hlo *r, struct tc_block *b,
					    const struct hlo_insn *i, enum tc_opcode code)
{
	struct tc_op *op = hlo_op(r, b, i, code, 0);

	tc_set_int(r->c, op, "dimension", TC_ATTR_INT, only(r, i));
	return hlo_results(r, i, op);
}

/* The sizes, which are scalars here, are a list in StableHLO. */
static struct hlo_value read_dynamic_reshape(struct hlo *r, struct tc_block *b,
					     const struct hlo_insn *i, enum tc_opcode code)
{
	struct tc_build to = { .c = r->c, .block = b, .where = hlo_where(r, i) };
	unsigned n = hlo_array_type(r, i)->rank;
	struct tc_value *in[2] = { hlo_array(r, i, 0) }, *sizes[TC_MAX_RANK];
	const int64_t one = 1;
	struct tc_op *op;

	if (i->p->n_operand_ids != n + 1u || !n)
		hlo_bad(r, "it has %zu operands for %u dims", i->p->n_operand_ids, n);
	for (unsigned d = 0; d < n; d++) {
		sizes[d] = hlo_array(r, i, d + 1);
		if (sizes[d]->type != hlo_array(r, i, 1)->type || sizes[d]->type->rank)
			hlo_bad(r, "size %u is no number, or of another type", d);
		sizes[d] = tc_build_reshape(&to, sizes[d], 1, &one);
	}
	in[1] = tc_build_join(&to, n, sizes, 0);
	op = op_on(r, b, i, code, 2, in, 0);
	tc_set_str(r->c, op, "name", "dynamic_reshape_v1");
	return hlo_results(r, i, op);
}

/* ---- elementwise with attributes ---- */

static int64_t find_text(struct hlo *r, const char *text, const char *const *names, unsigned n,
			 const char *what)
{
	for (unsigned k = 0; text && k < n; k++)
		if (!strcmp(text, names[k]))
			return k;
	hlo_bad(r, "%s is \"%.40s\"", what, text ? text : "");
}

static struct hlo_value read_compare(struct hlo *r, struct tc_block *b,
				     const struct hlo_insn *i, enum tc_opcode code)
{
	static const char *const directions[] = { "EQ", "NE", "GE", "GT", "LE", "LT" };
	static const char *const types[] = { "", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED" };
	struct tc_op *op = hlo_op(r, b, i, code, 0);
	const char *type = i->p->comparison_type ? i->p->comparison_type : "";
	int64_t kind = find_text(r, type, types, 5, "the comparison's type");

	if (kind == TC_CMP_NOTYPE && op->n_operands)
		switch (elem_class(tc_in(op, 0)->type->elem)) {
		case ELEM_CLASS_SINT: kind = TC_CMP_SIGNED; break;
		case ELEM_CLASS_PRED:
		case ELEM_CLASS_UINT: kind = TC_CMP_UNSIGNED; break;
		default: kind = TC_CMP_FLOAT; break;
		}
	tc_set_int(r->c, op, "comparison_direction", TC_ATTR_ENUM,
		   find_text(r, i->p->comparison_direction, directions, 6,
			     "the comparison's direction"));
	tc_set_int(r->c, op, "compare_type", TC_ATTR_ENUM, kind);
	return hlo_results(r, i, op);
}

static struct hlo_value read_reduce_precision(struct hlo *r, struct tc_block *b,
					      const struct hlo_insn *i, enum tc_opcode code)
{
	struct tc_op *op = hlo_op(r, b, i, code, 0);

	tc_set_int(r->c, op, "exponent_bits", TC_ATTR_INT, i->p->exponent_bits);
	tc_set_int(r->c, op, "mantissa_bits", TC_ATTR_INT, i->p->mantissa_bits);
	return hlo_results(r, i, op);
}

/* ---- shape ---- */

static struct hlo_value read_iota(struct hlo *r, struct tc_block *b, const struct hlo_insn *i,
				  enum tc_opcode code)
{
	struct tc_op *op = hlo_op(r, b, i, code, 0);

	tc_set_int(r->c, op, "iota_dimension", TC_ATTR_INT, only(r, i));
	return hlo_results(r, i, op);
}

static struct hlo_value with_dims(struct hlo *r, struct tc_block *b, const struct hlo_insn *i,
				  enum tc_opcode code, const char *name)
{
	struct tc_op *op = hlo_op(r, b, i, code, 0);

	hlo_give_dims(r, i, op, name);
	return hlo_results(r, i, op);
}

static struct hlo_value read_broadcast(struct hlo *r, struct tc_block *b,
				       const struct hlo_insn *i, enum tc_opcode code)
{
	return with_dims(r, b, i, code, "broadcast_dimensions");
}

static struct hlo_value read_reverse(struct hlo *r, struct tc_block *b,
				     const struct hlo_insn *i, enum tc_opcode code)
{
	return with_dims(r, b, i, code, "dimensions");
}

static struct hlo_value read_transpose(struct hlo *r, struct tc_block *b,
				       const struct hlo_insn *i, enum tc_opcode code)
{
	return with_dims(r, b, i, code, "permutation");
}

static struct hlo_value read_concatenate(struct hlo *r, struct tc_block *b,
					 const struct hlo_insn *i, enum tc_opcode code)
{
	struct tc_op *op = hlo_op(r, b, i, code, 0);

	tc_set_int(r->c, op, "dimension", TC_ATTR_INT, only(r, i));
	return hlo_results(r, i, op);
}

static struct hlo_value read_slice(struct hlo *r, struct tc_block *b, const struct hlo_insn *i,
				   enum tc_opcode code)
{
	struct tc_op *op = hlo_op(r, b, i, code, 0);
	int64_t start[TC_MAX_RANK], limit[TC_MAX_RANK], step[TC_MAX_RANK];
	size_t n = i->p->n_slice_dims;

	if (n > TC_MAX_RANK)
		hlo_bad(r, "a slice of %zu dims", n);
	for (size_t d = 0; d < n; d++) {
		start[d] = i->p->slice_dims[d]->start;
		limit[d] = i->p->slice_dims[d]->limit;
		step[d] = i->p->slice_dims[d]->stride;
	}
	hlo_give_ints(r, op, "start_indices", n, start);
	hlo_give_ints(r, op, "limit_indices", n, limit);
	hlo_give_ints(r, op, "strides", n, step);
	return hlo_results(r, i, op);
}

static struct hlo_value read_pad(struct hlo *r, struct tc_block *b, const struct hlo_insn *i,
				 enum tc_opcode code)
{
	struct tc_op *op = hlo_op(r, b, i, code, 0);
	int64_t low[TC_MAX_RANK], high[TC_MAX_RANK], inner[TC_MAX_RANK];
	size_t n = i->p->padding ? i->p->padding->n_dimensions : 0;

	if (n > TC_MAX_RANK)
		hlo_bad(r, "a padding of %zu dims", n);
	for (size_t d = 0; d < n; d++) {
		low[d] = i->p->padding->dimensions[d]->low;
		high[d] = i->p->padding->dimensions[d]->high;
		inner[d] = i->p->padding->dimensions[d]->interior;
	}
	hlo_give_ints(r, op, "edge_padding_low", n, low);
	hlo_give_ints(r, op, "edge_padding_high", n, high);
	hlo_give_ints(r, op, "interior_padding", n, inner);
	return hlo_results(r, i, op);
}

/* Indices of the old form come as one array, of the new as a scalar for each dim. */
static void split_index(struct hlo *r, struct tc_block *b, struct tc_op *op, unsigned first)
{
	struct tc_build to = { .c = r->c, .before = op, .block = b, .where = op->where };
	struct tc_value *index, **in;
	int64_t n;

	if (op->n_operands != first + 1 || tc_in(op, first)->type->rank != 1)
		return;
	index = tc_in(op, first);
	n = index->type->dim[0];
	if (n > TC_MAX_RANK)
		hlo_bad(r, "%" PRId64 " indices", n);
	in = hlo_get(r, first + (size_t)n, sizeof(*in));
	for (unsigned k = 0; k < first; k++)
		in[k] = tc_in(op, k);
	for (int64_t d = 0; d < n; d++)
		in[first + d] = tc_build_reshape(&to, tc_build_part(&to, index, 0, d, 1), 0,
						 NULL);
	tc_set_operands(r->c, op, first + (unsigned)n, in);
}

static struct hlo_value read_dynamic(struct hlo *r, struct tc_block *b,
				     const struct hlo_insn *i, enum tc_opcode code)
{
	struct tc_op *op = hlo_op(r, b, i, code, 0);

	split_index(r, b, op, code == TC_DYNAMIC_SLICE ? 1 : 2);
	if (code == TC_DYNAMIC_SLICE)
		hlo_give_ints(r, op, "slice_sizes", i->p->n_dynamic_slice_sizes,
			      i->p->dynamic_slice_sizes);
	return hlo_results(r, i, op);
}

static struct hlo_value read_gather(struct hlo *r, struct tc_block *b,
				    const struct hlo_insn *i, enum tc_opcode code)
{
	static const Hlo__GatherDims none = HLO__GATHER_DIMS__INIT;
	const Hlo__GatherDims *g = i->p->gather_dims ? i->p->gather_dims : &none;
	struct tc_op *op = hlo_op(r, b, i, code, 0);

	hlo_give_ints(r, op, "offset_dims", g->n_offset_dims, g->offset_dims);
	hlo_give_ints(r, op, "collapsed_slice_dims", g->n_collapsed_slice_dims,
		      g->collapsed_slice_dims);
	hlo_give_ints(r, op, "operand_batching_dims", g->n_operand_batching_dims,
		      g->operand_batching_dims);
	hlo_give_ints(r, op, "start_indices_batching_dims",
		      g->n_start_indices_batching_dims, g->start_indices_batching_dims);
	hlo_give_ints(r, op, "start_index_map", g->n_start_index_map, g->start_index_map);
	hlo_give_ints(r, op, "slice_sizes", i->p->n_gather_slice_sizes, i->p->gather_slice_sizes);
	tc_set_int(r->c, op, "index_vector_dim", TC_ATTR_INT, g->index_vector_dim);
	tc_set_int(r->c, op, "indices_are_sorted", TC_ATTR_BOOL, i->p->indices_are_sorted != 0);
	return hlo_results(r, i, op);
}

/* ---- products ---- */

static void give_precision(struct hlo *r, const struct hlo_insn *i, struct tc_op *op)
{
	const Hlo__Precision *p = i->p->precision;
	int64_t list[2] = { 0, 0 };

	for (size_t k = 0; p && k < p->n_operand_precision && k < 2; k++)
		list[k] = p->operand_precision[k];
	hlo_give_ints(r, op, "precision_config", 2, list);
}

/* XLA's numbers of dot algorithms: of what types the operands and the sums are, and how
 * many products are added up. */
static const struct algorithm { const char *in, *sum; int64_t products; } algorithms[] = {
	[1] = { "", "f32", 1 }, [2] = { "", "f32", 1 }, [3] = { "f16", "f16", 1 },
	[4] = { "f16", "f32", 1 }, [5] = { "bf16", "bf16", 1 }, [6] = { "bf16", "f32", 1 },
	[7] = { "bf16", "f32", 3 }, [8] = { "bf16", "f32", 6 }, [9] = { "tf32", "f32", 1 },
	[10] = { "tf32", "f32", 3 }, [11] = { "f32", "f32", 1 }, [12] = { "f64", "f64", 1 },
	[13] = { "bf16", "f32", 9 },
};

static void give_algorithm(struct hlo *r, const struct hlo_insn *i, struct tc_op *op)
{
	int32_t n = i->p->precision ? i->p->precision->algorithm : 0;
	const struct algorithm *a;

	if (!n)
		return;
	if (n < 0 || (size_t)n >= sizeof(algorithms) / sizeof(*algorithms))
		hlo_refuse(r, "dot algorithm %d is not known", n);
	a = &algorithms[n];
	if (*a->in) {	/* of 8 bits: any */
		tc_set_str(r->c, op, "lhs_precision_type", a->in);
		tc_set_str(r->c, op, "rhs_precision_type", a->in);
	}
	tc_set_str(r->c, op, "accumulation_type", a->sum);
	tc_set_int(r->c, op, "lhs_component_count", TC_ATTR_INT, 1);
	tc_set_int(r->c, op, "rhs_component_count", TC_ATTR_INT, 1);
	tc_set_int(r->c, op, "num_primitive_operations", TC_ATTR_INT, a->products);
	tc_set_int(r->c, op, "allow_imprecise_accumulation", TC_ATTR_BOOL, n == 2);
}

static struct hlo_value read_dot(struct hlo *r, struct tc_block *b, const struct hlo_insn *i,
				 enum tc_opcode code)
{
	static const Hlo__DotDims none = HLO__DOT_DIMS__INIT;
	const Hlo__DotDims *d = i->p->dot_dims ? i->p->dot_dims : &none;
	struct tc_op *op = hlo_op(r, b, i, code, 0);

	hlo_give_ints(r, op, "lhs_batching_dimensions", d->n_lhs_batch, d->lhs_batch);
	hlo_give_ints(r, op, "rhs_batching_dimensions", d->n_rhs_batch, d->rhs_batch);
	hlo_give_ints(r, op, "lhs_contracting_dimensions", d->n_lhs_contracting,
		      d->lhs_contracting);
	hlo_give_ints(r, op, "rhs_contracting_dimensions", d->n_rhs_contracting,
		      d->rhs_contracting);
	give_precision(r, i, op);
	give_algorithm(r, i, op);
	return hlo_results(r, i, op);
}

/* Lists of a window, by dim; absent messages count as no dims. */
struct window {
	unsigned n;
	int64_t size[TC_MAX_RANK], stride[TC_MAX_RANK], padding[2 * TC_MAX_RANK];
	int64_t window_dilation[TC_MAX_RANK], base_dilation[TC_MAX_RANK];
	int64_t reversal[TC_MAX_RANK];
};

static void read_window(struct hlo *r, const struct hlo_insn *i, struct window *w)
{
	size_t n = i->p->window ? i->p->window->n_dimensions : 0;

	if (n > TC_MAX_RANK)
		hlo_bad(r, "a window of %zu dims", n);
	w->n = (unsigned)n;
	for (unsigned d = 0; d < n; d++) {
		const Hlo__WindowDim *from = i->p->window->dimensions[d];

		w->size[d] = from->size;
		w->stride[d] = from->has_stride ? from->stride : 1;
		w->padding[2 * d] = from->padding_low;
		w->padding[2 * d + 1] = from->padding_high;
		w->window_dilation[d] = from->has_window_dilation ? from->window_dilation : 1;
		w->base_dilation[d] = from->has_base_dilation ? from->base_dilation : 1;
		w->reversal[d] = from->window_reversal != 0;
	}
}

void hlo_give_window(struct hlo *r, const struct hlo_insn *i, struct tc_op *op)
{
	struct window w;

	read_window(r, i, &w);
	for (unsigned d = 0; d < w.n; d++) {
		if (w.reversal[d])
			hlo_refuse(r, "a reversed window does not run yet");
		if (op->op == TC_SELECT_AND_SCATTER &&
		    (w.window_dilation[d] != 1 || w.base_dilation[d] != 1))
			hlo_refuse(r, "a dilated window does not run yet");
	}
	hlo_give_ints(r, op, "window_dimensions", w.n, w.size);
	hlo_give_ints(r, op, "window_strides", w.n, w.stride);
	hlo_give_ints(r, op, "padding", 2 * w.n, w.padding);
	if (op->op == TC_SELECT_AND_SCATTER)
		return;
	hlo_give_ints(r, op, "base_dilations", w.n, w.base_dilation);
	hlo_give_ints(r, op, "window_dilations", w.n, w.window_dilation);
}

static struct hlo_value read_convolution(struct hlo *r, struct tc_block *b,
					 const struct hlo_insn *i, enum tc_opcode code)
{
	static const Hlo__ConvolutionDims none = HLO__CONVOLUTION_DIMS__INIT;
	const Hlo__ConvolutionDims *d = i->p->convolution_dims ? i->p->convolution_dims : &none;
	struct tc_op *op = hlo_op(r, b, i, code, 0);
	const struct { const char *name; int64_t v; } ints[] = {
		{ "input_batch_dimension", d->input_batch },
		{ "input_feature_dimension", d->input_feature },
		{ "kernel_input_feature_dimension", d->kernel_input_feature },
		{ "kernel_output_feature_dimension", d->kernel_output_feature },
		{ "output_batch_dimension", d->output_batch },
		{ "output_feature_dimension", d->output_feature },
		{ "feature_group_count", i->p->feature_group_count ?
			i->p->feature_group_count : 1 },
		{ "batch_group_count", i->p->batch_group_count ? i->p->batch_group_count : 1 },
	};
	struct window w;

	for (unsigned k = 0; k < sizeof(ints) / sizeof(*ints); k++)
		tc_set_int(r->c, op, ints[k].name, TC_ATTR_INT, ints[k].v);
	hlo_give_ints(r, op, "input_spatial_dimensions", d->n_input_spatial, d->input_spatial);
	hlo_give_ints(r, op, "kernel_spatial_dimensions", d->n_kernel_spatial, d->kernel_spatial);
	hlo_give_ints(r, op, "output_spatial_dimensions", d->n_output_spatial, d->output_spatial);
	read_window(r, i, &w);
	/* The window's size is the kernel's, which the shapes say too. */
	hlo_give_ints(r, op, "window_strides", w.n, w.stride);
	hlo_give_ints(r, op, "padding", 2 * w.n, w.padding);
	hlo_give_ints(r, op, "lhs_dilation", w.n, w.base_dilation);
	hlo_give_ints(r, op, "rhs_dilation", w.n, w.window_dilation);
	hlo_give_ints(r, op, "window_reversal", w.n, w.reversal);
	give_precision(r, i, op);
	return hlo_results(r, i, op);
}

/* ---- random, linear algebra, normalisation, transforms ---- */

static struct hlo_value read_rng(struct hlo *r, struct tc_block *b, const struct hlo_insn *i,
				 enum tc_opcode code)
{
	const struct tc_type *t = hlo_array_type(r, i), *list;
	struct tc_build to = { .c = r->c, .block = b, .where = hlo_where(r, i) };
	int64_t rank = t->rank;
	struct tc_value *in[3];
	struct tc_op *op;

	if (i->p->n_operand_ids != 2)
		hlo_bad(r, "it has %zu operands, not two", i->p->n_operand_ids);
	list = tc_tensor(r->c, ELEM_S64, 1, &rank);
	in[0] = hlo_array(r, i, 0);
	in[1] = hlo_array(r, i, 1);
	in[2] = tc_build_data(&to, list, t->dim);
	op = tc_build(&to, code, t, 3, in)->def;
	tc_set_int(r->c, op, "rng_distribution", TC_ATTR_ENUM, i->p->distribution);
	return hlo_results(r, i, op);
}

static struct hlo_value read_random_bits(struct hlo *r, struct tc_block *b,
					 const struct hlo_insn *i, enum tc_opcode code)
{
	struct tc_op *op = hlo_op(r, b, i, code, 0);

	if (i->p->rng_algorithm < TC_RNG_DEFAULT || i->p->rng_algorithm > TC_RNG_PHILOX)
		hlo_bad(r, "an algorithm of number %d", i->p->rng_algorithm);
	tc_set_int(r->c, op, "rng_algorithm", TC_ATTR_ENUM, i->p->rng_algorithm);
	return hlo_results(r, i, op);
}

static struct hlo_value read_fft(struct hlo *r, struct tc_block *b, const struct hlo_insn *i,
				 enum tc_opcode code)
{
	struct tc_op *op = hlo_op(r, b, i, code, 0);

	tc_set_int(r->c, op, "fft_type", TC_ATTR_ENUM, i->p->fft_type);
	hlo_give_ints(r, op, "fft_length", i->p->n_fft_length, i->p->fft_length);
	return hlo_results(r, i, op);
}

static struct hlo_value read_cholesky(struct hlo *r, struct tc_block *b,
				      const struct hlo_insn *i, enum tc_opcode code)
{
	struct tc_op *op = hlo_op(r, b, i, code, 0);

	tc_set_int(r->c, op, "lower", TC_ATTR_BOOL, i->p->cholesky && i->p->cholesky->lower);
	return hlo_results(r, i, op);
}

static struct hlo_value read_triangular_solve(struct hlo *r, struct tc_block *b,
					      const struct hlo_insn *i, enum tc_opcode code)
{
	static const Hlo__TriangularSolve none = HLO__TRIANGULAR_SOLVE__INIT;
	const Hlo__TriangularSolve *s = i->p->triangular_solve ? i->p->triangular_solve : &none;
	struct tc_op *op = hlo_op(r, b, i, code, 0);

	tc_set_int(r->c, op, "left_side", TC_ATTR_BOOL, s->left_side != 0);
	tc_set_int(r->c, op, "lower", TC_ATTR_BOOL, s->lower != 0);
	tc_set_int(r->c, op, "unit_diagonal", TC_ATTR_BOOL, s->unit_diagonal != 0);
	tc_set_int(r->c, op, "transpose_a", TC_ATTR_ENUM, s->transpose_a);
	return hlo_results(r, i, op);
}

static struct hlo_value read_batch_norm(struct hlo *r, struct tc_block *b,
					const struct hlo_insn *i, enum tc_opcode code)
{
	struct tc_op *op = hlo_op(r, b, i, code, 0);
	float *epsilon = hlo_get(r, 1, sizeof(*epsilon));

	*epsilon = i->p->epsilon;
	tc_set_attr(r->c, op, (struct tc_attr){ .key = TC_KEY(r->c, "epsilon"),
		.kind = TC_ATTR_DENSE, .type = tc_tensor(r->c, ELEM_F32, 0, NULL),
		.data = epsilon });
	tc_set_int(r->c, op, "feature_index", TC_ATTR_INT, i->p->feature_index);
	return hlo_results(r, i, op);
}

/* ---- the table ---- */

bool hlo_read_op(struct hlo *r, struct tc_block *b, const struct hlo_insn *i,
		 struct hlo_value *out)
{
	static const struct { const char *name; enum tc_opcode op; read_fn read; } rules[] = {
#define HLO(name, op, fn) { name, TC_##op, fn },
#define REGION(name, op, fn)
#include "runtime/compiler/front/hlo.def"
#undef HLO
#undef REGION
	};
	const char *name = i->p->opcode ? i->p->opcode : "";
	size_t low = 0, high = sizeof(rules) / sizeof(*rules);

	while (low < high) {
		size_t k = (low + high) / 2;
		int order = strcmp(name, rules[k].name);

		if (!order) {
			*out = rules[k].read(r, b, i, rules[k].op);
			return true;
		}
		if (order < 0)
			high = k;
		else
			low = k + 1;
	}
	return false;
}
