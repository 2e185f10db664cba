/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The IR as StableHLO text, every op in MLIR's generic form: "stablehlo.add"(%1, %2) : (...) ->
 * (...).
 *
 * Most attributes are written by their kind. Where StableHLO gathers several into one
 * (dimension numbers), or has another type than i64, a table says so.
 */
#include "tests/fuzz_ops/stablehlo.h"

#include <inttypes.h>
#include <string.h>

/* ---- types ---- */

static void print_type(const struct tc_type *t, struct str *out)
{
	if (t->is_tuple) {
		str_printf(out, "tuple<");
		for (uint32_t i = 0; i < t->n_parts; i++) {
			str_printf(out, "%s", i ? ", " : "");
			print_type(t->parts[i], out);
		}
		str_printf(out, ">");
		return;
	}
	if (t->elem == ELEM_TOKEN) {
		str_printf(out, "!stablehlo.token");
		return;
	}
	str_printf(out, "tensor<");
	for (unsigned d = 0; d < t->rank; d++)
		str_printf(out, "%" PRId64 "x", t->dim[d]);
	str_printf(out, "%s>", elem_text(t->elem));
}

/* ---- attributes ---- */

static void print_list(const char *name, const int64_t *ints, unsigned n, struct str *out)
{
	str_printf(out, "%s = [", name);
	for (unsigned i = 0; i < n; i++)
		str_printf(out, "%s%" PRId64, i ? ", " : "", ints[i]);
	str_printf(out, "]");
}

static void print_array(const int64_t *ints, unsigned n, bool is_bool, struct str *out)
{
	str_printf(out, "array<%s", is_bool ? "i1" : "i64");
	for (unsigned i = 0; i < n; i++) {
		if (is_bool)
			str_printf(out, "%s %s", i ? "," : ":", ints[i] ? "true" : "false");
		else
			str_printf(out, "%s %" PRId64, i ? "," : ":", ints[i]);
	}
	str_printf(out, ">");
}

/* Pairs of a low and a high padding. */
static void print_padding(const int64_t *ints, unsigned n, struct str *out)
{
	str_printf(out, n ? "dense<[" : "dense<\"0x\"> : tensor<0x2xi64>");
	for (unsigned i = 0; i < n; i += 2)
		str_printf(out, "%s[%" PRId64 ", %" PRId64 "]", i ? ", " : "", ints[i],
			   ints[i + 1]);
	if (n)
		str_printf(out, "]> : tensor<%ux2xi64>", n / 2);
}

/* Bytes as in memory, without the bits beyond the type's own. */
static void print_dense(const struct tc_attr *a, struct str *out)
{
	size_t n = a->is_splat ? elem_bytes(a->type->elem) : (size_t)a->type->bytes;
	const uint8_t *p = a->data;

	if (!a->type->count) {
		str_printf(out, "dense<> : ");
		print_type(a->type, out);
		return;
	}
	str_printf(out, "dense<\"0x");
	for (size_t i = 0; i < n; i++) {
		unsigned low = elem_bits(a->type->elem) < 8 ?
				       (1u << elem_bits(a->type->elem)) - 1 :
				       255;

		str_printf(out, "%02X", p[i] & low);
	}
	str_printf(out, "\"> : ");
	print_type(a->type, out);
}

static const struct { const char *key, *mnemonic;
} enums[] = {
	{ "comparison_direction", "comparison_direction" },
	{ "compare_type", "comparison_type" },
	{ "rng_algorithm", "rng_algorithm" },
	{ "fft_type", "fft_type" },
	{ "transpose_a", "transpose" },
};

static void print_enum(const struct tc_attr *a, struct str *out)
{
	for (unsigned i = 0; i < sizeof(enums) / sizeof(*enums); i++)
		if (!strcmp(enums[i].key, a->key))
			str_printf(out, "#stablehlo<%s %s>", enums[i].mnemonic,
				   tc_enum_name(a->key, a->i));
}

static void print_precision(const struct tc_attr *a, struct str *out)
{
	static const char *const names[] = { "DEFAULT", "HIGH", "HIGHEST" };

	str_printf(out, "[");
	for (uint32_t i = 0; i < a->n; i++)
		str_printf(out, "%s#stablehlo<precision %s>", i ? ", " : "",
			   names[a->ints[i] % 3]);
	str_printf(out, "]");
}

static bool is_key(const struct tc_attr *a, const char *key)
{
	return !strcmp(a->key, key);
}

static void print_attr(const struct tc_attr *a, struct str *out)
{
	bool is_small = is_key(a, "exponent_bits") || is_key(a, "mantissa_bits") ||
			is_key(a, "index") || is_key(a, "version");

	str_printf(out, "%s = ", a->key);
	if (is_key(a, "epsilon")) {
		str_printf(out, "%.9e : f32", (double)*(const float *)a->data);
		return;
	}
	switch (a->kind) {
	case TC_ATTR_INT:
		str_printf(out, "%" PRId64 " : %s", a->i, is_small ? "i32" : "i64");
		break;
	case TC_ATTR_BOOL:
		str_printf(out, "%s", a->i ? "true" : "false");
		break;
	case TC_ATTR_ENUM:
		print_enum(a, out);
		break;
	case TC_ATTR_STR:
		if (is_key(a, "callee") || is_key(a, "decomposition"))
			str_printf(out, "@%s", a->text);
		else
			str_printf(out, "\"%s\"", a->text);
		break;
	case TC_ATTR_DENSE:
		print_dense(a, out);
		break;
	default:
		if (is_key(a, "padding"))
			print_padding(a->ints, a->n, out);
		else if (is_key(a, "precision_config"))
			print_precision(a, out);
		else
			print_array(a->ints, a->n, is_key(a, "window_reversal"), out);
		break;
	}
}

/* ---- dimension numbers ---- */

static void print_lists(const struct tc_op *op, const char *const *names, struct str *out)
{
	for (unsigned i = 0; names[i]; i++) {
		unsigned n;
		const int64_t *ints = tc_attr_ints(op, names[i], &n);

		str_printf(out, "%s", i ? ", " : "");
		print_list(names[i], ints, n, out);
	}
}

static const char *const gather_lists[] = {
	"offset_dims",		 "collapsed_slice_dims",
	"operand_batching_dims", "start_indices_batching_dims",
	"start_index_map",	 NULL
};
static const char *const scatter_lists[] = {
	"update_window_dims",		"inserted_window_dims",
	"input_batching_dims",		"scatter_indices_batching_dims",
	"scatter_dims_to_operand_dims", NULL
};
static const char *const dot_lists[] = { "lhs_batching_dimensions", "rhs_batching_dimensions",
	"lhs_contracting_dimensions", "rhs_contracting_dimensions", NULL };

/* [b, 0, 1, f] of one operand of a convolution. */
static void print_layout(const struct tc_op *op, const char *first, char a, const char *second,
			 char b, const char *spatial, struct str *out)
{
	unsigned n;
	const int64_t *at = tc_attr_ints(op, spatial, &n);
	int64_t i = tc_attr_int(op, first, 0), k = tc_attr_int(op, second, 0);

	str_printf(out, "[");
	for (int64_t d = 0; d < n + 2; d++) {
		str_printf(out, "%s", d ? ", " : "");
		if (d == i)
			str_printf(out, "%c", a);
		else if (d == k)
			str_printf(out, "%c", b);
		for (unsigned s = 0; s < n; s++)
			if (at[s] == d)
				str_printf(out, "%u", s);
	}
	str_printf(out, "]");
}

static void print_conv(const struct tc_op *op, struct str *out)
{
	str_printf(out, "dimension_numbers = #stablehlo.conv<");
	print_layout(op, "input_batch_dimension", 'b', "input_feature_dimension", 'f',
		     "input_spatial_dimensions", out);
	str_printf(out, "x");
	print_layout(op, "kernel_input_feature_dimension", 'i',
		     "kernel_output_feature_dimension", 'o', "kernel_spatial_dimensions", out);
	str_printf(out, "->");
	print_layout(op, "output_batch_dimension", 'b', "output_feature_dimension", 'f',
		     "output_spatial_dimensions", out);
	str_printf(out, ">");
}

/* Whether the attribute is part of the dimension numbers. */
static bool is_number(const struct tc_op *op, const struct tc_attr *a)
{
	const char *const *lists = op->op == TC_GATHER ? gather_lists : op->op == TC_SCATTER ?
		scatter_lists : op->op == TC_DOT_GENERAL ? dot_lists : NULL;

	if (op->op == TC_CONVOLUTION)
		return !strncmp(a->key, "input_", 6) || !strncmp(a->key, "kernel_", 7) ||
		       !strncmp(a->key, "output_", 7);
	for (unsigned i = 0; lists && lists[i]; i++)
		if (!strcmp(lists[i], a->key))
			return true;
	return lists && !strcmp(a->key, "index_vector_dim");
}

static bool print_numbers(const struct tc_op *op, struct str *out)
{
	switch (op->op) {
	case TC_GATHER:
	case TC_SCATTER:
		str_printf(out, op->op == TC_GATHER ? "dimension_numbers = #stablehlo.gather<" :
			   "scatter_dimension_numbers = #stablehlo.scatter<");
		print_lists(op, op->op == TC_GATHER ? gather_lists : scatter_lists, out);
		str_printf(out, ", index_vector_dim = %" PRId64 ">",
			   tc_attr_int(op, "index_vector_dim", 0));
		return true;
	case TC_DOT_GENERAL:
		str_printf(out, "dot_dimension_numbers = #stablehlo.dot<");
		print_lists(op, dot_lists, out);
		str_printf(out, ">");
		return true;
	case TC_CONVOLUTION:
		print_conv(op, out);
		return true;
	default:
		return false;
	}
}

/* ---- ops ---- */

static void print_op(const struct tc_op *op, struct str *out, unsigned indent);

static void print_values(const struct tc_op *op, bool results, struct str *out)
{
	unsigned n = results ? op->n_results : op->n_operands;

	str_printf(out, "(");
	for (unsigned i = 0; i < n; i++) {
		str_printf(out, "%s", i ? ", " : "");
		print_type(results ? op->results[i].type : tc_in(op, i)->type, out);
	}
	str_printf(out, ")");
}

static void print_region(const struct tc_block *b, struct str *out, unsigned indent)
{
	str_printf(out, "{\n");
	if (b->n_args) {
		str_printf(out, "%*s^bb0(", (int)indent * 2, "");
		for (unsigned i = 0; i < b->n_args; i++) {
			str_printf(out, "%s%%%u: ", i ? ", " : "", b->args[i]->id);
			print_type(b->args[i]->type, out);
		}
		str_printf(out, "):\n");
	}
	for (const struct tc_op *o = b->first; o; o = o->next)
		print_op(o, out, indent + 1);
	str_printf(out, "%*s}", (int)indent * 2, "");
}

static const char *name_of(const struct tc_op *op)
{
	if (op->op == TC_CALL)
		return "func.call";
	if (op->op == TC_ERF)
		return "chlo.erf";
	if (op->op == TC_RETURN && op->block->region->parent->op == TC_FUNC)
		return "func.return";
	return NULL;
}

static void print_attrs(const struct tc_op *op, struct str *out)
{
	bool any = false;

	str_printf(out, " <{");
	any = print_numbers(op, out);
	for (unsigned i = 0; i < op->n_attrs; i++) {
		if (is_number(op, &op->attrs[i]))
			continue;
		str_printf(out, "%s", any ? ", " : "");
		print_attr(&op->attrs[i], out);
		any = true;
	}
	str_printf(out, "}>");
}

static void print_op(const struct tc_op *op, struct str *out, unsigned indent)
{
	const char *name = name_of(op);

	str_printf(out, "%*s", (int)indent * 2, "");
	for (unsigned i = 0; i < op->n_results; i++)
		str_printf(out, "%s%%%u", i ? ", " : "", op->results[i].id);
	str_printf(out, "%s\"%s%s\"(", op->n_results ? " = " : "", name ? "" : "stablehlo.",
		   name ? name : tc_op_info(op->op)->text);
	for (unsigned i = 0; i < op->n_operands; i++)
		str_printf(out, "%s%%%u", i ? ", " : "", tc_in(op, i)->id);
	str_printf(out, ")");
	if (op->n_attrs)
		print_attrs(op, out);
	for (unsigned r = 0; r < op->n_regions; r++) {
		str_printf(out, "%s", r ? ", " : " (");
		print_region(op->regions[r].block, out, indent);
	}
	str_printf(out, "%s : ", op->n_regions ? ")" : "");
	print_values(op, false, out);
	str_printf(out, " -> ");
	print_values(op, true, out);
	str_printf(out, "\n");
}

static void print_func(const struct tc_op *f, struct str *out)
{
	const struct tc_block *b = f->regions[0].block;
	const char *name = tc_attr_str(f, "sym_name");

	str_printf(out, "  \"func.func\"() <{sym_name = \"%s\"%s, function_type = (", name,
		   strcmp(name, "main") ? ", sym_visibility = \"private\"" : "");
	for (unsigned i = 0; i < b->n_args; i++) {
		str_printf(out, "%s", i ? ", " : "");
		print_type(b->args[i]->type, out);
	}
	str_printf(out, ") -> ");
	print_values(b->last, false, out);
	if (f->arg_info && b->n_args) {
		str_printf(out, ", arg_attrs = [");
		for (unsigned i = 0; i < b->n_args; i++) {
			str_printf(out, "%s{", i ? ", " : "");
			if (f->arg_info[i].alias >= 0)
				str_printf(out, "tf.aliasing_output = %d : i32",
					   f->arg_info[i].alias);
			str_printf(out, "}");
		}
		str_printf(out, "]");
	}
	str_printf(out, "}> (");
	print_region(b, out, 1);
	str_printf(out, ") : () -> ()\n");
}

void stablehlo_print(struct tc_ctx *c, struct str *out)
{
	str_printf(out, "\"builtin.module\"() ({\n");
	for (const struct tc_op *f = c->module->regions[0].block->first; f; f = f->next)
		print_func(f, out);
	str_printf(out, "}) : () -> ()\n");
}
