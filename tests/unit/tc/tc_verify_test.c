/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verifier, by programs built wrong in one place each. A builder makes a right
 * program as variant 0 and the wrong ones as variants 1, 2, ...; the table at the end says
 * what the verifier answers to each. Programs that the verifier takes, but that sit at the
 * edge of what later stages can count or follow, go on to them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hal/hw/image.h"
#include "runtime/compiler/passes.h"

/* The program being built: the boundary that the compiler has in compile.c. */
static struct tc_ctx c;
static struct err err;
static jmp_buf boundary;
static struct tc_block *top, *body;	/* of the module; of the function */
static const char *after_pass;		/* what the program is judged as; NULL: a user's */

#define DIMS(...) (sizeof((int64_t[]){ __VA_ARGS__ }) / 8), (const int64_t[]){ __VA_ARGS__ }
#define SCALAR 0, NULL
#define INTS(op, name, ...) tc_set_ints(&c, (op), (name), (const int64_t[]){ __VA_ARGS__ }, \
					sizeof((int64_t[]){ __VA_ARGS__ }) / 8)
#define INT(op, name, i) tc_set_int(&c, (op), (name), TC_ATTR_INT, (i))
#define ENUM(op, name, i) tc_set_int(&c, (op), (name), TC_ATTR_ENUM, (i))

static const struct tc_type *type(enum elem elem, size_t rank, const int64_t *dim)
{
	return tc_tensor(&c, elem, (unsigned)rank, dim);
}

static struct tc_value *arg(enum elem elem, size_t rank, const int64_t *dim)
{
	return tc_new_arg(&c, body, type(elem, rank, dim));
}

/* An op at the end of the function with one result of `t` (NULL: none). */
static struct tc_op *op(enum tc_opcode code, const struct tc_type *t, unsigned n,
			struct tc_value *const *in, unsigned n_regions)
{
	struct tc_op *o = tc_new(&c, code, n, in, t != NULL, &t, n_regions);

	tc_append(body, o);
	return o;
}

static struct tc_op *op1(enum tc_opcode code, const struct tc_type *t, struct tc_value *a)
{
	return op(code, t, 1, &a, 0);
}

static struct tc_op *op2(enum tc_opcode code, const struct tc_type *t, struct tc_value *a,
			 struct tc_value *b)
{
	return op(code, t, 2, (struct tc_value *[]){ a, b }, 0);
}

static void give_back(struct tc_block *b, unsigned n, struct tc_value *const *values)
{
	tc_append(b, tc_new(&c, TC_RETURN, n, values, 0, NULL, 0));
}

/* Region r of o: scalars of `elem` as arguments, the first given back. */
static struct tc_block *scalars(struct tc_op *o, unsigned r, enum elem elem, unsigned n)
{
	struct tc_block *b = tc_new_block(&c, &o->regions[r]);

	for (unsigned i = 0; i < n; i++)
		tc_new_arg(&c, b, type(elem, SCALAR));
	return b;
}

static struct tc_op *new_func(const char *name)
{
	struct tc_op *f = tc_new(&c, TC_FUNC, 0, NULL, 0, NULL, 1);

	tc_set_str(&c, f, "sym_name", name);
	body = tc_new_block(&c, &f->regions[0]);
	tc_append(top, f);
	return f;
}

enum stage { VERIFY, INLINE, EMIT };

static void go_on(enum stage stage)
{
	struct image *im;
	size_t bytes;
	void *image;

	tc_pass_inline(&c);
	tc_ir_verify(&c, "inline", true);
	if (stage == INLINE)
		return;
	tc_pass_fuse(&c);
	tc_ir_verify(&c, "fuse", true);
	tc_emit(&c, &image, &bytes);
	if (image_parse(image, bytes, &im, &err))
		fail_msg("an image that is not taken: %s", err.msg);
	image_free(im);
	free(image);
}

/* Builds main and takes it up to `stage`: a code and err.msg. */
static int judge(void (*build)(unsigned variant), unsigned variant, enum stage stage)
{
	static const struct tc_options options = { .level = 0 };
	volatile int code = 0;

	memset(&c, 0, sizeof(c));
	memset(&err, 0, sizeof(err));
	c.err = &err;
	c.boundary = &boundary;
	c.options = &options;
	c.arena.limit = (size_t)256 << 20;
	if (!setjmp(boundary)) {
		c.module = tc_new(&c, TC_MODULE, 0, NULL, 0, NULL, 1);
		top = tc_new_block(&c, &c.module->regions[0]);
		new_func("main");
		build(variant);
		if (!body->last || body->last->op != TC_RETURN)
			give_back(body, 0, NULL);
		tc_ir_verify(&c, after_pass, !after_pass);
		if (stage != VERIFY)
			go_on(stage);
	} else {
		code = err.code;
	}
	tc_free_held(&c);
	arena_free(&c.arena);
	return code;
}

/* ---- builders ---- */

static void structure(unsigned v)
{
	struct tc_value *a = arg(ELEM_F32, DIMS(4)), *outer[1];
	struct tc_op *o;

	switch (v) {
	case 1: op(TC_ADD, a->type, 1, &a, 0); break;
	case 2: op(TC_ADD, NULL, 2, (struct tc_value *[]){ a, a }, 0); break;
	case 3: op(TC_NEGATE, a->type, 1, &a, 1); break;
	case 4: op(TC_WHILE, a->type, 1, &a, 2); break;	/* empty regions */
	case 5:
		o = op(TC_REDUCE, type(ELEM_F32, SCALAR), 2,
		       (struct tc_value *[]){ a, arg(ELEM_F32, SCALAR) }, 1);
		INTS(o, "dimensions", 0);
		scalars(o, 0, ELEM_F32, 2);		/* does not end in return */
		break;
	case 6:
		give_back(body, 0, NULL);
		op1(TC_NEGATE, a->type, a);
		break;
	case 7:	/* an operand that comes later */
		o = op1(TC_NEGATE, a->type, a);
		tc_set_operand(o, 0, tc_out(op1(TC_ABS, a->type, a), 0));
		break;
	case 8:	/* an operand out of another region */
		o = op(TC_CASE, a->type, 1, (struct tc_value *[]){ arg(ELEM_S32, SCALAR) }, 1);
		tc_append(tc_new_block(&c, &o->regions[0]),
			  tc_new(&c, TC_NEGATE, 1, &a, 1, &a->type, 0));
		outer[0] = tc_out(o->regions[0].block->first, 0);
		give_back(o->regions[0].block, 1, outer);
		op1(TC_ABS, a->type, outer[0]);
		break;
	case 9: tc_append(top, tc_new(&c, TC_CREATE_TOKEN, 0, NULL, 1, &a->type, 0)); break;
	case 10:
		tc_new_arg(&c, body, tc_tuple(&c, &a->type, 1));
		break;
	case 11:
		op1(TC_NEGATE, a->type, tc_out(op1(TC_TUPLE, tc_tuple(&c, &a->type, 1), a), 0));
		break;
	case 12: tc_unlink(top->first); break;
	case 13: c.module->regions[0].block->first->n_attrs = 0; break;
	default: op1(TC_NEGATE, a->type, a); break;
	}
}

static void elementwise(unsigned v)
{
	struct tc_value *a = arg(ELEM_F32, DIMS(2, 3)), *b = arg(ELEM_F32, DIMS(3, 2));
	struct tc_value *i = arg(ELEM_S32, DIMS(2, 3)), *p = arg(ELEM_PRED, DIMS(2, 3));
	struct tc_value *x[3] = { p, a, a };
	struct tc_value *t = tc_out(op(TC_CREATE_TOKEN, type(ELEM_TOKEN, SCALAR), 0, NULL, 0), 0);
	struct tc_op *o;

	switch (v) {
	case 1: op2(TC_ADD, a->type, a, b); break;
	case 2: op2(TC_ADD, a->type, a, i); break;
	case 3: op2(TC_ADD, i->type, a, a); break;
	case 4: op1(TC_NEGATE, t->type, t); break;
	case 5: x[0] = i; op(TC_SELECT, a->type, 3, x, 0); break;
	case 6: x[2] = i; op(TC_SELECT, a->type, 3, x, 0); break;
	case 7:
	case 8:
		o = op2(TC_COMPARE, v == 7 ? a->type : p->type, a, a);
		ENUM(o, "comparison_direction", v == 8 ? 6 : TC_CMP_EQ);
		ENUM(o, "compare_type", TC_CMP_FLOAT);
		break;
	case 9:
	case 10:
		o = op1(TC_REDUCE_PRECISION, a->type, a);
		INT(o, "exponent_bits", v == 9 ? 0 : 8);
		INT(o, "mantissa_bits", v == 10 ? -1 : 7);
		break;
	case 11: op1(TC_REAL, type(ELEM_F64, DIMS(2, 3)), a); break;
	case 12: op2(TC_COMPLEX, type(ELEM_C128, DIMS(2, 3)), a, a); break;
	case 13: op1(TC_IS_FINITE, a->type, a); break;
	case 14:	/* compare without its attributes */
		op2(TC_COMPARE, p->type, a, a);
		break;
	case 15:	/* and with one of another kind */
		o = op2(TC_COMPARE, p->type, a, a);
		INT(o, "comparison_direction", 0);
		break;
	default: op(TC_SELECT, a->type, 3, x, 0); break;
	}
}

static void moves(unsigned v)
{
	struct tc_value *a = arg(ELEM_F32, DIMS(2, 3)), *parts[2] = { a, a };
	struct tc_op *o;

	o = op1(TC_BROADCAST_IN_DIM, type(v == 1 ? ELEM_F64 : ELEM_F32, DIMS(5, 2, 3)), a);
	if (v == 2)
		INTS(o, "broadcast_dimensions", 1, 1);
	else if (v == 3)
		INTS(o, "broadcast_dimensions", 0, 2);
	else if (v == 4)
		INTS(o, "broadcast_dimensions", 1, 3);
	else
		INTS(o, "broadcast_dimensions", 1, 2);
	o = op(TC_CONCATENATE, type(ELEM_F32, v == 5 ? 2 : 2, (int64_t[]){ 2, v == 5 ? 5 : 6 }),
	       2, parts, 0);
	INT(o, "dimension", v == 6 ? 0 : v == 7 ? 2 : 1);
	o = op1(TC_RESHAPE, type(ELEM_F32, 1, (int64_t[]){ v == 8 ? 7 : 6 }), a);
	o = op1(TC_TRANSPOSE, type(ELEM_F32, 2, (int64_t[]){ v == 9 ? 2 : 3, 2 }), a);
	INTS(o, "permutation", 1, v == 10 ? 1 : 0);
	o = op1(TC_REVERSE, a->type, a);
	INTS(o, "dimensions", v == 11 ? 2 : 1);
	o = op1(TC_BITCAST_CONVERT, type(v == 12 ? ELEM_F64 : ELEM_U16, DIMS(2, 3, 2)), a);
	if (v == 13)
		op1(TC_BITCAST_CONVERT, type(ELEM_U16, DIMS(2, 6)), a);
}

static void cuts(unsigned v)
{
	struct tc_value *a = arg(ELEM_F32, DIMS(8)), *zero = arg(ELEM_F32, SCALAR);
	struct tc_value *at = arg(v == 1 ? ELEM_F32 : ELEM_S32, SCALAR), *part;
	struct tc_op *o;

	o = op2(TC_DYNAMIC_SLICE, type(ELEM_F32, 1, (int64_t[]){ v == 2 ? 9 : 4 }), a, at);
	INTS(o, "slice_sizes", v == 3 ? 5 : 4);
	part = tc_out(o, 0);
	op(TC_DYNAMIC_UPDATE_SLICE, v == 4 ? part->type : a->type, v == 5 ? 2 : 3,
	   (struct tc_value *[]){ a, part, at }, 0);
	o = op1(TC_SLICE, type(ELEM_F32, 1, (int64_t[]){ v == 6 ? 2 : 3 }), a);
	INTS(o, "start_indices", v == 7 ? 8 : 1);
	INTS(o, "limit_indices", v == 8 ? 9 : 7);
	INTS(o, "strides", v == 9 ? 0 : 2);
	o = op2(TC_PAD, type(ELEM_F32, 1, (int64_t[]){ v == 10 ? 22 : 23 }), a,
		v == 11 ? a : zero);
	INTS(o, "edge_padding_low", v == 12 ? INT64_MIN : -1);
	INTS(o, "edge_padding_high", v == 13 ? INT64_MAX : 2);
	INTS(o, "interior_padding", v == 14 ? -1 : 2);
}

static void sources(unsigned v)
{
	struct tc_op *o = op(TC_IOTA, type(ELEM_S32, DIMS(2, 3)), 0, NULL, 0);
	static const float one = 1;

	INT(o, "iota_dimension", v == 1 ? 2 : v == 2 ? -1 : 1);
	o = op(TC_CONSTANT, type(v == 3 ? ELEM_F64 : ELEM_F32, DIMS(2, 3)), 0, NULL, 0);
	tc_set_attr(&c, o, (struct tc_attr){ .key = TC_KEY(&c, "value"),
		.kind = TC_ATTR_DENSE, .type = type(ELEM_F32, DIMS(2, 3)), .data = &one,
		.is_splat = true });
	o = op1(TC_GET_DIMENSION_SIZE, type(v == 4 ? ELEM_F32 : ELEM_S32, SCALAR), tc_out(o, 0));
	INT(o, "dimension", v == 5 ? 2 : 0);
	op(TC_PARTITION_ID, type(v == 6 ? ELEM_PRED : ELEM_U32, SCALAR), 0, NULL, 0);
}

static void products(unsigned v)
{
	struct tc_value *a = arg(ELEM_F32, DIMS(7, 2, 3)), *b = arg(ELEM_F32, DIMS(7, 3, 4));
	struct tc_op *o = op2(TC_DOT_GENERAL, type(ELEM_F32, 3,
				(int64_t[]){ 7, 2, v == 1 ? 5 : 4 }), a, b);

	INTS(o, "lhs_batching_dimensions", v == 2 ? 3 : 0);
	INTS(o, "rhs_batching_dimensions", v == 3 ? 2 : 0);
	if (v == 4)
		INTS(o, "lhs_contracting_dimensions", 0);
	else
		INTS(o, "lhs_contracting_dimensions", v == 5 ? 1 : 2);
	if (v == 6)
		tc_set_ints(&c, o, "rhs_contracting_dimensions", NULL, 0);
	else
		INTS(o, "rhs_contracting_dimensions", 1);
}

static void convolutions(unsigned v)
{
	struct tc_value *a = arg(ELEM_F32, DIMS(1, 4, 9)), *k = arg(ELEM_F32, DIMS(6, 2, 3));
	struct tc_op *o = op2(TC_CONVOLUTION, type(ELEM_F32, 3,
				(int64_t[]){ 1, 6, v == 1 ? 8 : 7 }), a, k);

	INT(o, "input_batch_dimension", 0);
	INT(o, "input_feature_dimension", v == 2 ? 0 : 1);
	INTS(o, "input_spatial_dimensions", 2);
	INT(o, "kernel_input_feature_dimension", v == 3 ? 5 : 1);
	INT(o, "kernel_output_feature_dimension", 0);
	INTS(o, "kernel_spatial_dimensions", v == 4 ? 0 : 2);
	INT(o, "output_batch_dimension", 0);
	INT(o, "output_feature_dimension", 1);
	INTS(o, "output_spatial_dimensions", 2);
	INTS(o, "window_strides", v == 5 ? 0 : 1);
	INTS(o, "padding", v == 6 ? 1ll << 40 : 0, 0);
	INTS(o, "lhs_dilation", v == 7 ? -1 : 1);
	INTS(o, "rhs_dilation", v == 8 ? 2 : 1);
	INTS(o, "window_reversal", v == 9 ? 2 : 0);
	INT(o, "feature_group_count", v == 10 ? 3 : v == 11 ? 0 : v == 12 ? 1ll << 62 : 2);
	INT(o, "batch_group_count", v == 13 ? 2 : 1);
}

static void reductions(unsigned v)
{
	struct tc_value *a = arg(ELEM_F32, DIMS(2, 3)), *x[3];
	enum elem elem = v == 1 ? ELEM_F64 : ELEM_F32;
	struct tc_block *b;
	struct tc_op *o;

	x[0] = x[2] = a;
	x[1] = v == 2 ? a : arg(ELEM_F32, SCALAR);
	o = op(TC_REDUCE, type(ELEM_F32, 1, (int64_t[]){ v == 3 ? 3 : 2 }), v == 4 ? 3 : 2, x, 1);
	INTS(o, "dimensions", v == 5 ? 2 : 1);
	b = scalars(o, 0, elem, v == 6 ? 3 : 2);
	if (v == 7)
		give_back(b, 2, (struct tc_value *[]){ b->args[0], b->args[1] });
	else
		give_back(b, 1, v == 8 ? (struct tc_value *[]){ a } : b->args);
}

static void windows(unsigned v)
{
	struct tc_value *x[2] = { arg(ELEM_F32, DIMS(9)), arg(ELEM_F32, SCALAR) };
	struct tc_op *o = op(TC_REDUCE_WINDOW, type(ELEM_F32, 1, (int64_t[]){ v == 1 ? 5 : 4 }), 2,
			     x, 1);
	struct tc_block *b = scalars(o, 0, ELEM_F32, 2);

	give_back(b, 1, b->args);
	INTS(o, "window_dimensions", v == 2 ? 0 : 3);
	INTS(o, "window_strides", v == 3 ? 0 : v == 4 ? 1ll << 31 : 2);
	INTS(o, "base_dilations", v == 5 ? 1ll << 40 : 1);
	INTS(o, "window_dilations", 1);
	if (v == 6)
		INTS(o, "padding", 0);
	else
		INTS(o, "padding", v == 7 ? -(1ll << 32) : 0, 0);
}

static void indices(unsigned v)
{
	struct tc_value *t = arg(ELEM_F32, DIMS(5, 6));
	struct tc_value *i = arg(v == 1 ? ELEM_F32 : ELEM_S32, DIMS(4, 1));
	struct tc_op *o = op2(TC_GATHER, type(v == 2 ? ELEM_F64 : ELEM_F32, 2,
				(int64_t[]){ 4, v == 3 ? 5 : 6 }), t, i);
	struct tc_value *x[3] = { t, i, tc_out(o, 0) };
	struct tc_block *b;

	INTS(o, "offset_dims", v == 4 ? 2 : 1);
	INTS(o, "collapsed_slice_dims", v == 5 ? 1 : 0);
	tc_set_ints(&c, o, "operand_batching_dims", NULL, 0);
	tc_set_ints(&c, o, "start_indices_batching_dims", NULL, 0);
	INTS(o, "start_index_map", v == 6 ? 2 : 0);
	INT(o, "index_vector_dim", v == 7 ? 3 : v == 8 ? 2 : 1);
	INTS(o, "slice_sizes", v == 9 ? 2 : 1, 6);
	if (v && v < 10)
		return;
	o = op(TC_SCATTER, v == 10 ? i->type : t->type, v == 11 ? 2 : 3, x, 1);
	INTS(o, "update_window_dims", 1);
	INTS(o, "inserted_window_dims", v == 12 ? 1 : 0);
	tc_set_ints(&c, o, "input_batching_dims", NULL, 0);
	tc_set_ints(&c, o, "scatter_indices_batching_dims", NULL, 0);
	INTS(o, "scatter_dims_to_operand_dims", 0);
	INT(o, "index_vector_dim", 1);
	b = scalars(o, 0, v == 13 ? ELEM_S32 : ELEM_F32, v == 14 ? 1 : 2);
	give_back(b, 1, b->args);
}

static void sorts(unsigned v)
{
	struct tc_value *a = arg(ELEM_F32, DIMS(2, 3));
	struct tc_op *o = op1(TC_SORT, type(ELEM_F32, DIMS(2, 3)), a), *cmp;
	struct tc_block *b;

	if (v == 1)
		o->results[0].type = type(ELEM_F32, DIMS(3, 2));
	o->regions = arena_array(&c.arena, 1, sizeof(*o->regions));
	o->n_regions = 1;
	o->regions[0].parent = o;
	INT(o, "dimension", v == 2 ? 2 : v == 3 ? -3 : 1);
	tc_set_int(&c, o, "is_stable", TC_ATTR_BOOL, 1);
	b = scalars(o, 0, v == 4 ? ELEM_S32 : ELEM_F32, v == 5 ? 3 : 2);
	if (v == 6) {
		give_back(b, 1, b->args);
		return;
	}
	cmp = tc_new(&c, TC_COMPARE, 2, b->args, 1,
		     (const struct tc_type *[]){ type(ELEM_PRED, SCALAR) }, 0);
	ENUM(cmp, "comparison_direction", TC_CMP_LT);
	ENUM(cmp, "compare_type", TC_CMP_FLOAT);
	tc_append(b, cmp);
	give_back(b, 1, (struct tc_value *[]){ tc_out(cmp, 0) });
}

static void control(unsigned v)
{
	struct tc_value *a = arg(ELEM_F32, DIMS(2)), *p = arg(ELEM_PRED, SCALAR);
	struct tc_op *o = op(TC_WHILE, a->type, 1, &a, 2);
	struct tc_block *b = tc_new_block(&c, &o->regions[0]);

	tc_new_arg(&c, b, v == 1 ? p->type : a->type);
	give_back(b, 1, v == 2 ? &a : &p);
	b = tc_new_block(&c, &o->regions[1]);
	tc_new_arg(&c, b, a->type);
	if (v == 3)
		tc_new_arg(&c, b, a->type);
	give_back(b, v == 4 ? 0 : 1, v == 5 ? &p : b->args);
	o = op(TC_IF, a->type, 1, v == 6 ? &a : &p, 2);
	for (unsigned r = 0; r < 2; r++) {
		b = tc_new_block(&c, &o->regions[r]);
		if (v == 7 && r)
			tc_new_arg(&c, b, a->type);
		give_back(b, 1, v == 8 && r ? &p : &a);
	}
	if (v == 9)
		op(TC_CASE, a->type, 1, &p, 0);
	op1(TC_OPTIMIZATION_BARRIER, v == 10 ? p->type : a->type, a);
}

static void random_bits(unsigned v)
{
	const struct tc_type *t[2] = { type(ELEM_U64, 1, (int64_t[]){ v == 1 ? 9 : 2 }),
				       type(v == 2 ? ELEM_C64 : ELEM_U32, DIMS(5)) };
	struct tc_value *s = tc_new_arg(&c, body, t[0]);
	struct tc_op *o;

	if (v == 3)
		t[0] = t[1];
	o = tc_new(&c, TC_RNG_BIT_GENERATOR, 1, &s, 2, t, 0);
	ENUM(o, "rng_algorithm", TC_RNG_PHILOX);
	tc_append(body, o);
}

static void types(unsigned v)
{
	if (v == 1)
		arg(ELEM_F32, DIMS(-1));
	else if (v == 2)
		arg(ELEM_F32, DIMS(1ll << 47));
	else if (v == 3)	/* none of them there, but their strides would overflow */
		arg(ELEM_F32, DIMS(0, 1ll << 40, 1ll << 40));
	else
		arg(ELEM_F32, DIMS(0, 1ll << 23, 1ll << 23));
}

static const struct {
	const char *name;
	void (*build)(unsigned variant);
	const char *says[18];	/* of variant 1, 2, ... */
} cases[] = {
	{ "structure", structure, { "add: it has 1 operands", "add: it has 2 operands, 0 results",
	  "1 regions", "region 0 is empty", "does not end in return", "stands before the end",
	  "is not defined there", "is not defined there", "outside a function",
	  "argument 1 is a tuple", "operand 0 is a tuple", "the module has no function",
	  "sym_name is missing" } },
	{ "elementwise", elementwise, { "another shape", "another element type", "it gives i32",
	  "tokens", "it selects by i32", "another element type", "its result is f32",
	  "no such comparison", "exponent", "mantissa", "it gives f64", "complex of f32",
	  "its result is f32", "is missing", "another kind" } },
	{ "moves", moves, { "does not fit", "or twice", "becomes", "out of range",
	  "larger than the whole", "does not fit", "dimension is 2 of 2", "6 elements become 7",
	  "not of the shape", "or twice", "out of range", "the shapes do not fit",
	  "the shapes do not fit" } },
	{ "cuts", cuts, { "start 0 is no integer", "larger than the whole", "not the result's",
	  "do not fit", "do not fit", "not of the shape", "is cut from 8 to 7",
	  "is cut from 1 to 9", "strides[0] is 0", "not of the shape", "no scalar",
	  "edge_padding_low[0]", "edge_padding_high[0]", "interior_padding[0]" } },
	{ "sources", sources, { "iota_dimension is 2 of 2", "iota_dimension is -1",
	  "another type", "no integer", "dimension is 2 of 2", "no integer" } },
	{ "products", products, { "not of the shape", "out of range", "batch dim 0 differs",
	  "do not fit each other", "contracting dim 0 differs", "do not fit each other" } },
	{ "convolutions", convolutions, { "spatial dim 0", "no permutation",
	  "kernel_input_feature_dimension is 5 of 3", "no permutation", "window_strides[0]",
	  "padding[0]", "lhs_dilation[0]", "spatial dim 0", "window_reversal[0]",
	  "its groups", "its groups", "its groups", "its groups" } },
	{ "reductions", reductions, { "another type", "no scalar", "does not fit",
	  "3 operands", "out of range", "takes 3 values", "yields 2", "yields an array" } },
	{ "windows", windows, { "does not fit", "window_dimensions[0]", "window_strides[0]",
	  "window_strides[0]", "base_dilations[0]", "padding has 1 entries", "padding[0]" } },
	{ "indices", indices, { "dimension numbers", "another element type", "slice_sizes[1]",
	  "out of range", "larger than dim 0", "out of range", "index_vector_dim is 3 of 3",
	  "moves an array of rank 2", "slice_sizes[0]", "does not fit", "it has 2 operands",
	  "larger than dim 0", "another type", "takes 1 values" } },
	{ "sorts", sorts, { "does not fit", "dimension is 2", "dimension is -3", "another type",
	  "takes 3 values", "yields no i1" } },
	{ "control", control, { "carried value 0", "yields no i1", "carries 1 values",
	  "yields 0 values", "another type as value 0", "it chooses by f32",
	  "branch 1 takes arguments", "another type as value 0", "it chooses by i1",
	  "its results are not its operands" } },
	{ "random bits", random_bits, { "its state", "of complex", "its state" } },
	{ "types", types, { "a dim of -1", "out of memory", "out of memory" } },
};

static void each_wrong_program_is_refused_by_name(void **state)
{
	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		if (judge(cases[i].build, 0, VERIFY))
			fail_msg("%s: a right program: %s", cases[i].name, err.msg);
		for (unsigned k = 0; cases[i].says[k]; k++) {
			int code = judge(cases[i].build, k + 1, VERIFY);

			if ((code != ERR_INVALID_ARGUMENT && cases[i].build != types) ||
			    !code || !strstr(err.msg, cases[i].says[k]))
				fail_msg("%s %u: %s \"%s\", not \"%s\"", cases[i].name, k + 1,
					 err_name(code), err.msg, cases[i].says[k]);
		}
	}
}

/* ---- calls ---- */

static struct tc_op *call(const char *name, const struct tc_type *t, struct tc_value *a)
{
	struct tc_op *o = op1(TC_CALL, t, a);

	tc_set_str(&c, o, "callee", name);
	return o;
}

static void calls(unsigned v)
{
	struct tc_block *main = body;
	struct tc_value *a = arg(ELEM_F32, DIMS(4)), *b, *part;
	const struct tc_type *wrong = type(ELEM_F32, DIMS(5));
	struct tc_op *o;

	new_func("f");
	b = arg(ELEM_F32, SCALAR);
	if (v != 1)
		b = (body->args[0]->type = a->type, body->args[0]);
	if (v == 4)
		b = tc_out(call("f", a->type, b), 0);
	give_back(body, v == 3 ? 0 : 1, &b);
	body = main;
	o = call(v == 5 ? "g" : "f", v == 2 ? wrong : a->type, a);
	part = tc_out(op1(TC_TUPLE, tc_tuple(&c, &a->type, 1), tc_out(o, 0)), 0);
	o = op1(TC_GET_TUPLE_ELEMENT, v == 6 ? wrong : a->type, part);
	INT(o, "index", 0);
	part = tc_out(o, 0);
	give_back(body, 1, &part);
}

static void calls_that_do_not_fit_are_refused(void **state)
{
	static const char *const says[] = { "operand 0 is not of the type", "result 0 is not",
					    "does not fit f", "f calls itself",
					    "no function is called g", "part 0 of the tuple" };

	(void)state;
	if (judge(calls, 0, INLINE))
		fail_msg("%s", err.msg);
	for (unsigned k = 0; k < 6; k++) {
		assert_int_equal(judge(calls, k + 1, INLINE), ERR_INVALID_ARGUMENT);
		if (!strstr(err.msg, says[k]))
			fail_msg("\"%s\" does not say \"%s\"", err.msg, says[k]);
	}
}

/* main calls f0, each function the next, `n` of them. */
static void chain(unsigned n)
{
	struct tc_value *a = arg(ELEM_F32, DIMS(4));
	char name[16];

	for (unsigned i = 0; i < n; i++) {
		struct tc_value *v;

		snprintf(name, sizeof(name), "f%u", i);
		v = tc_out(call(name, a->type, body->args[0]), 0);
		give_back(body, 1, &v);
		new_func(name);
		arg(ELEM_F32, DIMS(4));
	}
	give_back(body, 1, body->args);
}

/* Function i calls function i - 1 from within 50 branches; main calls the first first,
 * so that each is ready when the next one takes it in. */
static void towers(unsigned n)
{
	struct tc_block *main = body;
	struct tc_value *a = arg(ELEM_F32, DIMS(4)), *p = arg(ELEM_S32, SCALAR), *v;
	char name[16];

	for (unsigned i = 0; i < n; i++) {
		struct tc_value *in, *is;
		struct tc_op *o = NULL;

		snprintf(name, sizeof(name), "f%u", i);
		new_func(name);
		in = tc_new_arg(&c, body, a->type);
		is = tc_new_arg(&c, body, p->type);
		for (unsigned k = 0; k < 50; k++) {
			struct tc_block *b = body;

			o = op(TC_CASE, a->type, 1, &is, 1);
			v = tc_out(o, 0);
			o->regions[0].block = NULL;
			body = tc_new_block(&c, &o->regions[0]);
			give_back(b, 1, &v);
		}
		v = in;
		if (i) {
			snprintf(name, sizeof(name), "f%u", i - 1);
			o = op2(TC_CALL, a->type, in, is);
			tc_set_str(&c, o, "callee", name);
			v = tc_out(o, 0);
		}
		give_back(body, 1, &v);
	}
	body = main;
	for (unsigned i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		tc_set_str(&c, op2(TC_CALL, a->type, a, p), "callee", name);
	}
}

static void deep_calls_are_refused(void **state)
{
	(void)state;
	assert_int_equal(judge(chain, 400, INLINE), 0);
	assert_int_equal(judge(chain, 600, INLINE), ERR_RESOURCE_EXHAUSTED);
	assert_non_null(strstr(err.msg, "nest deeper"));
	assert_int_equal(judge(chain, 50000, INLINE), ERR_RESOURCE_EXHAUSTED);
	assert_int_equal(judge(towers, 8, INLINE), 0);
	assert_int_equal(judge(towers, 40, INLINE), ERR_RESOURCE_EXHAUSTED);
	assert_non_null(strstr(err.msg, "nest deeper"));
}

/* ---- sizes at the edge ---- */

static struct tc_op *wide_pad(enum elem elem, int64_t dim, int64_t out, int64_t low,
			      int64_t high, int64_t inner)
{
	struct tc_op *o = op2(TC_PAD, type(elem, 1, &out), arg(elem, 1, &dim),
			      arg(elem, SCALAR));

	tc_set_ints(&c, o, "edge_padding_low", &low, 1);
	tc_set_ints(&c, o, "edge_padding_high", &high, 1);
	tc_set_ints(&c, o, "interior_padding", &inner, 1);
	return o;
}

static void edges(unsigned v)
{
	const int64_t huge = 1ll << 46, cut = 1ll << 39, step = (1ll << 31) - 1;
	struct tc_value *last, *x[2];
	struct tc_block *b;
	struct tc_op *o;

	switch (v) {
	case 0:	/* one element, by a step that no stride can hold */
		o = op1(TC_SLICE, type(ELEM_U8, DIMS(1, 1)), arg(ELEM_U8, DIMS(2, huge)));
		INTS(o, "start_indices", 0, 5);
		INTS(o, "limit_indices", 1, huge);
		INTS(o, "strides", 1, INT64_MAX - 1);
		break;
	case 1:	/* both ends cut off: nothing may walk what is cut */
		o = wide_pad(ELEM_U8, huge, huge - 2 * cut, -cut, -cut, 0);
		break;
	case 2:	/* all cut off but one */
		o = wide_pad(ELEM_U8, 3, 1, 0, -2 * cut, cut - 1);
		break;
	default:
		x[0] = arg(ELEM_U8, DIMS(huge));
		x[1] = arg(ELEM_U8, SCALAR);
		o = op(TC_REDUCE_WINDOW, type(ELEM_U8, DIMS((huge - 1) / step + 1)), 2, x, 1);
		INTS(o, "window_dimensions", 1);
		INTS(o, "window_strides", step);
		INTS(o, "base_dilations", 1);
		INTS(o, "window_dilations", 1);
		INTS(o, "padding", 0, 0);
		b = scalars(o, 0, ELEM_U8, 2);
		give_back(b, 1, b->args);
		break;
	}
	last = tc_out(o, 0);
	give_back(body, 1, &last);
}

/* n temporaries of 2^48 bytes that all live to the end. */
static void many_temporaries(unsigned n)
{
	struct tc_value *a = arg(ELEM_U8, DIMS(1ll << 47)), *x[2] = { a, a };
	struct tc_value **out = arena_array(&c.arena, n, sizeof(*out));
	struct tc_op *o;

	for (unsigned i = 0; i < n; i++) {
		o = op(TC_CONCATENATE, type(ELEM_U8, DIMS(1ll << 48)), 2, x, 0);
		INT(o, "dimension", 0);
		o = op1(TC_SLICE, type(ELEM_U8, DIMS(1)), tc_out(o, 0));
		INTS(o, "start_indices", 0);
		INTS(o, "limit_indices", 1);
		INTS(o, "strides", 1);
		out[i] = tc_out(o, 0);
	}
	give_back(body, n, out);
}

static void sizes_at_the_edge_are_counted(void **state)
{
	(void)state;
	for (unsigned v = 0; v < 4; v++)
		if (judge(edges, v, EMIT))
			fail_msg("%u: %s", v, err.msg);
	assert_int_equal(judge(many_temporaries, 200, EMIT), 0);
	assert_int_equal(judge(many_temporaries, 300, EMIT), ERR_RESOURCE_EXHAUSTED);
	assert_non_null(strstr(err.msg, "temporaries overflow"));
}

/* ---- loops ---- */

/* Loops inside one another, `depth` of them: the estimate of their time grows tenfold
 * with each. */
static void loops(unsigned depth)
{
	struct tc_value *p = arg(ELEM_PRED, SCALAR), *v;
	struct tc_op *o;

	for (unsigned i = 0; i < depth; i++) {
		struct tc_block *outer = body, *b;

		o = op(TC_WHILE, p->type, 1, &p, 2);
		v = tc_out(o, 0);
		give_back(outer, 1, &v);
		b = tc_new_block(&c, &o->regions[0]);
		tc_new_arg(&c, b, p->type);
		give_back(b, 1, b->args);
		body = tc_new_block(&c, &o->regions[1]);
		p = tc_new_arg(&c, body, p->type);
	}
	v = tc_out(op1(TC_NOT, p->type, p), 0);
	give_back(body, 1, &v);
	body = tc_main(&c);
}

/* A loop of n values, each of which becomes the next one's. */
static void carries(unsigned n)
{
	struct tc_value *p = arg(ELEM_PRED, SCALAR);
	struct tc_value **x = arena_array(&c.arena, n, sizeof(*x));
	const struct tc_type **t = arena_array(&c.arena, n, sizeof(*t));
	struct tc_block *b;
	struct tc_op *o;

	for (unsigned i = 0; i < n; i++) {
		x[i] = p;
		t[i] = p->type;
	}
	o = tc_new(&c, TC_WHILE, n, x, n, t, 2);
	tc_append(body, o);
	for (unsigned r = 0; r < 2; r++) {
		b = tc_new_block(&c, &o->regions[r]);
		for (unsigned i = 0; i < n; i++)
			tc_new_arg(&c, b, p->type);
		for (unsigned i = 0; i < n; i++)
			x[i] = b->args[(i + 1) % n];
		give_back(b, r ? n : 1, x);
	}
	for (unsigned i = 0; i < n; i++)
		x[i] = tc_out(o, i);
	give_back(body, n, x);
}

static void loops_of_any_depth_and_width_are_emitted(void **state)
{
	(void)state;
	if (judge(loops, 190, EMIT) || judge(carries, 700, EMIT))
		fail_msg("%s", err.msg);
}

/* A chain of n elementwise ops: many fusions and many values. */
static void long_chain(unsigned n)
{
	struct tc_value *a = arg(ELEM_F32, DIMS(4)), *v = a;

	for (unsigned i = 0; i < n; i++)
		v = tc_out(op2(i % 2 ? TC_ADD : TC_MULTIPLY, a->type, v, a), 0);
	give_back(body, 1, &v);
}

static void memory_grows_with_the_program_not_its_square(void **state)
{
	(void)state;
	if (judge(long_chain, 40000, EMIT))
		fail_msg("%s", err.msg);
}

/* A reduction that yields what is not of its region. */
static void strays(unsigned v)
{
	struct tc_value *a = arg(ELEM_F32, DIMS(2, 3)), *x[2] = { a, arg(ELEM_F32, SCALAR) };
	struct tc_value *out = arg(ELEM_F32, SCALAR);
	struct tc_op *o = op(TC_REDUCE, type(ELEM_F32, DIMS(2)), 2, x, 1);
	struct tc_block *b = scalars(o, 0, ELEM_F32, 2);

	INTS(o, "dimensions", 1);
	give_back(b, 1, v ? &out : b->args);
	out = tc_out(o, 0);
	give_back(body, 1, &out);
}

static void a_body_that_yields_a_stranger_is_refused(void **state)
{
	(void)state;
	if (judge(strays, 0, EMIT))
		fail_msg("%s", err.msg);
	assert_int_equal(judge(strays, 1, EMIT), ERR_UNIMPLEMENTED);
	assert_non_null(strstr(err.msg, "a value from outside"));
}

/* Fusions that read what is not theirs. */
static void captures(unsigned v)
{
	struct tc_value *a = arg(ELEM_F32, DIMS(4)), *out;
	struct tc_op *o = op(TC_FUSION, a->type, 1, &a, 1);
	struct tc_block *b = tc_new_block(&c, &o->regions[0]);
	struct tc_value *in = tc_new_arg(&c, b, v == 1 ? type(ELEM_F32, DIMS(5)) : a->type);

	ENUM(o, "kind", TC_FUSION_LOOP);
	tc_append(b, tc_new(&c, TC_NEGATE, 1, v == 2 ? &a : &in, 1, &a->type, 0));
	out = v == 3 ? tc_out(o, 0) : tc_out(b->first, 0);
	give_back(b, 1, &out);
	if (v == 4)
		tc_erase(b->first);
	out = tc_out(o, 0);
	give_back(body, 1, &out);
}

static void what_a_pass_breaks_is_an_internal_error_with_its_name(void **state)
{
	(void)state;
	after_pass = "fuse";
	for (unsigned v = 1; v < 9; v++) {
		assert_int_equal(judge(structure, v, VERIFY), ERR_INTERNAL);
		assert_non_null(strstr(err.msg, "pass \"fuse\""));
	}
	assert_int_equal(judge(captures, 0, VERIFY), 0);
	for (unsigned v = 1; v < 5; v++)
		assert_int_equal(judge(captures, v, VERIFY), ERR_INTERNAL);
	after_pass = NULL;
}

/* Ops of ours, whose names say nothing to a user, with something wrong. */
static void ours(unsigned v)
{
	struct tc_value *a = arg(ELEM_F32, DIMS(4)), *out;
	struct tc_op *o = op(v == 2 ? TC_OPAQUE : TC_FUSION, a->type, 1, &a, 1);
	struct tc_block *b = tc_new_block(&c, &o->regions[0]);

	if (v == 2) {
		tc_set_str(&c, o, "name", "stablehlo.collective_permute");
		o->n_regions = 0;
	} else {
		tc_new_arg(&c, b, type(ELEM_F32, DIMS(5)));
		tc_append(b, tc_new(&c, TC_NEGATE, 1, b->args, 1, &b->args[0]->type, 0));
		tc_append(b, tc_new(&c, TC_ABS, 1, b->args, 1, &b->args[0]->type, 0));
		out = tc_out(b->last, 0);
		give_back(b, 1, &out);
		ENUM(o, "kind", TC_FUSION_LOOP);
	}
	out = tc_out(o, 0);
	give_back(body, 1, &out);
}

static void messages_name_ops_as_the_user_knows_them(void **state)
{
	(void)state;
	assert_int_equal(judge(ours, 1, VERIFY), ERR_INVALID_ARGUMENT);
	assert_memory_equal(err.msg, "negate, abs: ", 13);
	assert_int_equal(judge(ours, 2, EMIT), ERR_UNIMPLEMENTED);
	assert_string_equal(err.msg, "stablehlo.collective_permute: it does not run yet");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_wrong_program_is_refused_by_name),
		cmocka_unit_test(calls_that_do_not_fit_are_refused),
		cmocka_unit_test(deep_calls_are_refused),
		cmocka_unit_test(sizes_at_the_edge_are_counted),
		cmocka_unit_test(loops_of_any_depth_and_width_are_emitted),
		cmocka_unit_test(memory_grows_with_the_program_not_its_square),
		cmocka_unit_test(a_body_that_yields_a_stranger_is_refused),
		cmocka_unit_test(what_a_pass_breaks_is_an_internal_error_with_its_name),
		cmocka_unit_test(messages_name_ops_as_the_user_knows_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
