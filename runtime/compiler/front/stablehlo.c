/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program as StableHLO's text, as frameworks read it back: what one member of a program for
 * several devices runs.
 *
 * MLIR's generic form, one op a line, attributes as StableHLO spells them. Most are spelled by
 * their kind; `spelled` has those that are not, or that several of ours make one. Text instead
 * of bytecode, because XLA's reader takes both and people can read this one.
 */
#include <inttypes.h>
#include <string.h>

#include "hal/base/elem.h"
#include "runtime/compiler/front/hlo.h"
#include "runtime/compiler/passes.h"

/* ---- types ---- */

static void write_type(struct str *out, const struct tc_type *t)
{
	if (t->elem == ELEM_TOKEN) {
		str_printf(out, "!stablehlo.token");
		return;
	}
	str_printf(out, "tensor<");
	for (unsigned d = 0; d < t->rank; d++)
		str_printf(out, "%" PRId64 "x", t->dim[d]);
	str_printf(out, "%s>", elem_text(t->elem));
}

static void write_signature(struct str *out, unsigned n, const struct tc_use *in,
			    unsigned n_results, const struct tc_value *results)
{
	str_printf(out, "(");
	for (unsigned i = 0; i < n; i++) {
		str_printf(out, "%s", i ? ", " : "");
		write_type(out, in[i].value->type);
	}
	str_printf(out, ") -> (");
	for (unsigned i = 0; i < n_results; i++) {
		str_printf(out, "%s", i ? ", " : "");
		write_type(out, results[i].type);
	}
	str_printf(out, ")");
}

/* ---- attributes ---- */

/* In quotes: every byte that is not plain as \HH. */
static void write_text(struct str *out, const void *p, size_t n)
{
	const unsigned char *b = p;

	str_printf(out, "\"");
	for (size_t i = 0; i < n; i++)
		if (b[i] >= ' ' && b[i] < 0x7f && b[i] != '"' && b[i] != '\\')
			str_printf(out, "%c", b[i]);
		else
			str_printf(out, "\\%02X", b[i]);
	str_printf(out, "\"");
}

/* "1, 2" between `open` and `close`. */
static void write_ints(struct str *out, const char *open, const int64_t *p, unsigned n,
		       const char *close)
{
	str_printf(out, "%s", open);
	for (unsigned i = 0; i < n; i++)
		str_printf(out, "%s%" PRId64, i ? ", " : "", p[i]);
	str_printf(out, "%s", close);
}

/* An array of i64, which has no elements or some; MLIR spells these two unlike. */
static void write_array(struct str *out, const int64_t *p, unsigned n)
{
	write_ints(out, n ? "array<i64: " : "array<i64", p, n, ">");
}

/* The list of that name, which may be missing. */
static void write_list(struct str *out, const struct tc_op *op, const char *key)
{
	unsigned n = 0;
	const int64_t *p = tc_attr_ints(op, key, &n);

	write_ints(out, "[", p, n, "]");
}

/* Rows of `width`, as a dense attribute of two dims. */
static void write_rows(struct str *out, const int64_t *p, unsigned n, unsigned width)
{
	unsigned rows = width ? n / width : 0;

	str_printf(out, "dense<");
	if (!n)
		str_printf(out, "> : tensor<%ux%uxi64>", rows, width);
	for (unsigned i = 0; i < rows; i++) {
		str_printf(out, "%s", i ? ", " : "[");
		write_ints(out, "[", p + i * width, width, "]");
	}
	if (n)
		str_printf(out, "]> : tensor<%ux%uxi64>", rows, width);
}

static void write_hex(struct str *out, const void *p, size_t n)
{
	const unsigned char *b = p;

	for (size_t i = 0; i < n; i++)
		str_printf(out, "%02X", b[i]);
}

/* One element of a type whose elements MLIR packs, which its bytes as hex would have to be. */
static void write_small(struct str *out, unsigned elem, uint8_t b)
{
	if (elem == ELEM_PRED)
		str_printf(out, b ? "true" : "false");
	else if (elem == ELEM_S4 || elem == ELEM_S2)
		str_printf(out, "%d", (int8_t)b);
	else
		str_printf(out, "%u", b);
}

static const uint8_t *write_nested(struct str *out, const struct tc_type *t, unsigned d,
				   const uint8_t *p)
{
	if (d == t->rank) {
		write_small(out, t->elem, *p);
		return p + 1;
	}
	str_printf(out, "[");
	for (int64_t i = 0; i < t->dim[d]; i++) {
		str_printf(out, "%s", i ? ", " : "");
		p = write_nested(out, t, d + 1, p);
	}
	str_printf(out, "]");
	return p;
}

static void write_dense(struct tc_ctx *c, struct str *out, const struct tc_op *op,
			const struct tc_attr *a)
{
	const struct tc_type *t = a->type;
	bool is_one = a->is_splat || t->count == 1;

	if (elem_bits(t->elem) < 8 && elem_class(t->elem) == ELEM_CLASS_FLOAT)
		tc_fail(c, ERR_UNIMPLEMENTED, op, "a constant of %s can't be shown",
			elem_text(t->elem));
	str_printf(out, "dense<");
	if (t->count && elem_bits(t->elem) < 8) {
		if (is_one)
			write_small(out, t->elem, *(const uint8_t *)a->data);
		else
			write_nested(out, t, 0, a->data);
	} else if (t->count) {
		str_printf(out, "\"0x");
		write_hex(out, a->data, is_one ? elem_bytes(t->elem) : (size_t)t->bytes);
		str_printf(out, "\"");
	}
	str_printf(out, "> : ");
	write_type(out, t);
}

/* Enumerations, and how StableHLO calls them. */
static const struct { const char *key, *type; } enumerations[] = {
	{ "comparison_direction", "comparison_direction" },
	{ "compare_type", "comparison_type" },
	{ "fft_type", "fft_type" },
	{ "rng_algorithm", "rng_algorithm" },
	{ "transpose_a", "transpose" },
};

static void write_enum(struct tc_ctx *c, struct str *out, const struct tc_op *op,
		       const struct tc_attr *a)
{
	const char *name = tc_enum_name(a->key, a->i), *type = NULL;

	for (unsigned i = 0; i < sizeof(enumerations) / sizeof(*enumerations); i++)
		if (!strcmp(a->key, enumerations[i].key))
			type = enumerations[i].type;
	if (!name || !type)
		tc_fail(c, ERR_UNIMPLEMENTED, op, "its %s can't be shown", a->key);
	str_printf(out, "#stablehlo<%s %s>", type, name);
}

/* As its kind is spelled. */
static void write_value(struct tc_ctx *c, struct str *out, const struct tc_op *op,
			const struct tc_attr *a)
{
	switch (a->kind) {
	case TC_ATTR_INT:
		str_printf(out, "%" PRId64 " : i64", a->i);
		break;
	case TC_ATTR_BOOL:
		str_printf(out, a->i ? "true" : "false");
		break;
	case TC_ATTR_INTS:
		write_array(out, a->ints, a->n);
		break;
	case TC_ATTR_STR:
		write_text(out, a->text, a->n);
		break;
	case TC_ATTR_ENUM:
		write_enum(c, out, op, a);
		break;
	case TC_ATTR_DENSE:
		write_dense(c, out, op, a);
		break;
	default:
		str_printf(out, "{");
		for (uint32_t i = 0; i < a->n; i++) {
			str_printf(out, "%s", i ? ", " : "");
			write_text(out, a->attrs[i].key, strlen(a->attrs[i].key));
			str_printf(out, " = ");
			write_value(c, out, op, &a->attrs[i]);
		}
		str_printf(out, "}");
	}
}

static void begin(struct str *out, unsigned *n, const char *key)
{
	str_printf(out, "%s%s = ", (*n)++ ? ", " : " {", key);
}

static void spell_precision(struct str *out, const struct tc_attr *a)
{
	static const char *const names[] = { "DEFAULT", "HIGH", "HIGHEST" };

	str_printf(out, "[");
	for (unsigned i = 0; i < a->n; i++)
		str_printf(out, "%s#stablehlo<precision %s>", i ? ", " : "",
			   names[a->ints[i] >= 0 && a->ints[i] < 3 ? a->ints[i] : 0]);
	str_printf(out, "]");
}

/* The dims of one side of a convolution, as letters for the two that are not spatial. */
static void spell_side(struct str *out, const struct tc_op *op, unsigned rank,
		       const char *first, char a, const char *second, char b, const char *rest)
{
	int64_t at_a = tc_attr_int(op, first, 0), at_b = tc_attr_int(op, second, 0);
	unsigned n = 0;
	const int64_t *spatial = tc_attr_ints(op, rest, &n);

	str_printf(out, "[");
	for (unsigned d = 0; d < rank; d++) {
		str_printf(out, "%s", d ? ", " : "");
		if (d == at_a || d == at_b)
			str_printf(out, "%c", d == at_a ? a : b);
		for (unsigned k = 0; k < n; k++)
			if (spatial[k] == d)
				str_printf(out, "%u", k);
	}
	str_printf(out, "]");
}

static void spell_conv(struct str *out, const struct tc_op *op, unsigned *n)
{
	unsigned rank = op->results[0].type->rank;

	begin(out, n, "dimension_numbers");
	str_printf(out, "#stablehlo.conv<");
	spell_side(out, op, rank, "input_batch_dimension", 'b', "input_feature_dimension", 'f',
		   "input_spatial_dimensions");
	str_printf(out, "x");
	spell_side(out, op, rank, "kernel_input_feature_dimension", 'i',
		   "kernel_output_feature_dimension", 'o', "kernel_spatial_dimensions");
	str_printf(out, "->");
	spell_side(out, op, rank, "output_batch_dimension", 'b', "output_feature_dimension",
		   'f', "output_spatial_dimensions");
	str_printf(out, ">");
}

/* Attributes that are the fields of one of StableHLO's. A name ends the list at NULL; the one
 * at `number` is a number, the others are lists. */
static const struct grouped {
	enum tc_opcode op;
	const char *key, *type, *number, *fields[6];
} grouped[] = {
	{ TC_DOT_GENERAL, "dot_dimension_numbers", "dot", NULL,
	  { "lhs_batching_dimensions", "rhs_batching_dimensions", "lhs_contracting_dimensions",
	    "rhs_contracting_dimensions" } },
	{ TC_GATHER, "dimension_numbers", "gather", "index_vector_dim",
	  { "offset_dims", "collapsed_slice_dims", "operand_batching_dims",
	    "start_indices_batching_dims", "start_index_map" } },
	{ TC_SCATTER, "scatter_dimension_numbers", "scatter", "index_vector_dim",
	  { "update_window_dims", "inserted_window_dims", "input_batching_dims",
	    "scatter_indices_batching_dims", "scatter_dims_to_operand_dims" } },
};

static bool is_in(const struct grouped *g, const char *key)
{
	if (g->number && !strcmp(g->number, key))
		return true;
	for (unsigned i = 0; i < 6 && g->fields[i]; i++)
		if (!strcmp(g->fields[i], key))
			return true;
	return false;
}

static void spell_grouped(struct str *out, const struct grouped *g, const struct tc_op *op,
			  unsigned *n)
{
	begin(out, n, g->key);
	str_printf(out, "#stablehlo.%s<", g->type);
	for (unsigned i = 0; i < 6 && g->fields[i]; i++) {
		str_printf(out, "%s%s = ", i ? ", " : "", g->fields[i]);
		write_list(out, op, g->fields[i]);
	}
	if (g->number)
		str_printf(out, ", %s = %" PRId64, g->number, tc_attr_int(op, g->number, 0));
	str_printf(out, ">");
}

static void spell_algorithm(struct tc_ctx *c, struct str *out, const struct tc_op *op, unsigned *n)
{
	const char *lhs = tc_attr_str(op, "lhs_precision_type");
	const char *rhs = tc_attr_str(op, "rhs_precision_type");
	const char *sum = tc_attr_str(op, "accumulation_type");

	if (!lhs && !rhs && !sum)
		return;
	if (!lhs || !rhs || !sum)
		tc_fail(c, ERR_UNIMPLEMENTED, op, "half an algorithm can't be shown");
	begin(out, n, "algorithm");
	str_printf(out, "#stablehlo.dot_algorithm<lhs_precision_type = %s, rhs_precision_type = "
		   "%s, accumulation_type = %s, lhs_component_count = %" PRId64
		   ", rhs_component_count = %" PRId64 ", num_primitive_operations = %" PRId64
		   ", allow_imprecise_accumulation = %s>",
		   lhs, rhs, sum,
		   tc_attr_int(op, "lhs_component_count", 1),
		   tc_attr_int(op, "rhs_component_count", 1),
		   tc_attr_int(op, "num_primitive_operations", 1),
		   tc_attr_int(op, "allow_imprecise_accumulation", 0) ? "true" : "false");
}

static bool is_any_of(const char *key, const char *const *keys)
{
	for (; *keys; keys++)
		if (!strcmp(key, *keys))
			return true;
	return false;
}

/* Attributes of ops that speak by a channel; the devices are numbered throughout. */
static void spell_channel(struct str *out, const struct tc_op *op, unsigned *n)
{
	begin(out, n, "channel_handle");
	str_printf(out, "#stablehlo.channel_handle<handle = %" PRId64 ", type = %" PRId64 ">",
		   tc_attr_int(op, "channel_id", 1), tc_attr_int(op, "channel_type", 1));
}

/* The others number partitions alone, so they have no words for members of several replicas. */
static bool takes_global_ids(const struct tc_op *op)
{
	return op->op == TC_ALL_REDUCE || op->op == TC_ALL_GATHER || op->op == TC_REDUCE_SCATTER;
}

/* One of ours that is not spelled by its kind, or not at all; false: it is. */
static bool spell(struct str *out, const struct tc_op *op, const struct tc_attr *a, unsigned *n)
{
	static const char *const elsewhere[] = {
		"group_size", "channel_type", "lhs_precision_type", "rhs_precision_type",
		"accumulation_type", "lhs_component_count", "rhs_component_count",
		"num_primitive_operations", "allow_imprecise_accumulation", "partition",
		"called_computations", "sharding", "operand_layouts", "result_layouts",
		"result_tilings", "output_operand_aliases", "input_batch_dimension",
		"input_feature_dimension", "input_spatial_dimensions",
		"kernel_input_feature_dimension", "kernel_output_feature_dimension",
		"kernel_spatial_dimensions", "output_batch_dimension",
		"output_feature_dimension", "output_spatial_dimensions", NULL };
	static const char *const small[] = { "exponent_bits", "mantissa_bits", NULL };
	uint32_t bits;

	for (unsigned i = 0; i < sizeof(grouped) / sizeof(*grouped); i++)
		if (grouped[i].op == op->op && is_in(&grouped[i], a->key))
			return true;
	if (is_any_of(a->key, elsewhere))
		return true;
	if (!strcmp(a->key, "channel_id")) {
		spell_channel(out, op, n);
	} else if (!strcmp(a->key, "use_global_device_ids")) {
		if (a->i && takes_global_ids(op)) {
			begin(out, n, a->key);
			str_printf(out, "unit");
		}
	} else if (!strcmp(a->key, "replica_groups")) {
		begin(out, n, a->key);
		write_rows(out, a->ints, a->n, (unsigned)tc_attr_int(op, "group_size", 0));
	} else if (!strcmp(a->key, "source_target_pairs") || !strcmp(a->key, "padding")) {
		begin(out, n, a->key);
		write_rows(out, a->ints, a->n, 2);
	} else if (!strcmp(a->key, "window_reversal")) {
		begin(out, n, a->key);
		str_printf(out, "array<i1");
		for (unsigned i = 0; i < a->n; i++)
			str_printf(out, "%s%s", i ? ", " : ": ", a->ints[i] ? "true" : "false");
		str_printf(out, ">");
	} else if (!strcmp(a->key, "precision_config")) {
		begin(out, n, a->key);
		spell_precision(out, a);
	} else if (!strcmp(a->key, "epsilon")) {
		memcpy(&bits, a->data, sizeof(bits));
		begin(out, n, a->key);
		str_printf(out, "0x%08" PRIX32 " : f32", bits);
	} else if (!strcmp(a->key, "rng_distribution")) {
		begin(out, n, a->key);
		str_printf(out, "#stablehlo<rng_distribution %s>",
			   a->i == 2 ? "NORMAL" : "UNIFORM");
	} else if (!strcmp(a->key, "api_version")) {
		begin(out, n, a->key);
		str_printf(out, "%" PRId64 " : i32", a->i);
	} else if (is_any_of(a->key, small)) {
		begin(out, n, a->key);
		str_printf(out, "%" PRId64 " : i32", a->i);
	} else if (!strcmp(a->key, "compare_type")) {
		return a->i == TC_CMP_NOTYPE;
	} else {
		return false;
	}
	return true;
}

static void write_attrs(struct tc_ctx *c, struct str *out, const struct tc_op *op)
{
	unsigned n = 0;

	for (unsigned i = 0; i < sizeof(grouped) / sizeof(*grouped); i++)
		if (grouped[i].op == op->op)
			spell_grouped(out, &grouped[i], op, &n);
	if (op->op == TC_CONVOLUTION)
		spell_conv(out, op, &n);
	if (op->op == TC_DOT_GENERAL)
		spell_algorithm(c, out, op, &n);
	if (op->op == TC_ERF) {
		begin(out, &n, "call_target_name");
		str_printf(out, "\"mhlo.erf\", mhlo.attributes = {}, mhlo.version = 1 : i64");
	}
	for (unsigned i = 0; i < op->n_attrs; i++) {
		const struct tc_attr *a = &op->attrs[i];

		if (spell(out, op, a, &n))
			continue;
		/* A call's attributes are its configuration, as a dictionary. */
		begin(out, &n, a->kind == TC_ATTR_ATTRS ? "backend_config" : a->key);
		write_value(c, out, op, a);
	}
	str_printf(out, "%s", n ? "}" : "");
}

/* ---- ops ---- */

enum { BODY = 2 };	/* how deep main's ops stand */

/* "NAME at FILE:LINE" as MLIR has it. */
static void write_where(struct str *out, const char *where)
{
	const char *at = NULL, *line = strrchr(where, ':'), *p = where;

	while ((p = strstr(p, " at ")))
		at = p++;
	if (!*where)
		return;
	str_printf(out, " loc(");
	if (!at || !line || line < at || !line[1] || line[strspn(line + 1, "0123456789") + 1]) {
		write_text(out, where, strlen(where));
	} else {
		write_text(out, where, (size_t)(at - where));
		str_printf(out, "(");
		write_text(out, at + 4, (size_t)(line - at - 4));
		str_printf(out, "%.10s:1)", line);
	}
	str_printf(out, ")");
}

/* Members that meet over arrays of nothing, which StableHLO does not allow: nothing. */
static bool is_idle(const struct tc_op *op)
{
	return tc_is_collective(op) && op->n_results == 1 && !op->results[0].type->count;
}

static void write_block(struct tc_ctx *c, struct str *out, const struct tc_block *b,
			unsigned depth);

static void write_op(struct tc_ctx *c, struct str *out, const struct tc_op *op, unsigned depth)
{
	const char *dialect = op->op == TC_RETURN && depth == BODY ? "func." : "stablehlo.";
	const char *name = op->op == TC_ERF ? "custom_call" : tc_op_info(op->op)->text;

	if (strchr(name, '.') || op->op == TC_SHARDING_CONSTRAINT ||
	    op->op == TC_SHARDING_GROUP || op->op == TC_MANUAL_COMPUTATION ||
	    (op->op == TC_FFT && tc_attr(op, "scale")) ||
	    (tc_is_collective(op) && !takes_global_ids(op) && c->options->replicas > 1))
		tc_fail(c, ERR_UNIMPLEMENTED, op, "it can't be shown");
	str_printf(out, "%*s", (int)depth * 2, "");
	if (is_idle(op)) {
		str_printf(out, "%%%u = \"stablehlo.constant\"() {value = dense<> : ",
			   op->results[0].id);
		write_type(out, op->results[0].type);
		str_printf(out, "} : () -> ");
		write_type(out, op->results[0].type);
		str_printf(out, "\n");
		return;
	}
	for (unsigned i = 0; i < op->n_results; i++)
		str_printf(out, "%s%%%u", i ? ", " : "", op->results[i].id);
	str_printf(out, "%s\"%s%s\"(", op->n_results ? " = " : "", dialect, name);
	for (unsigned i = 0; i < op->n_operands; i++)
		str_printf(out, "%s%%%u", i ? ", " : "", op->operands[i].value->id);
	str_printf(out, ")");
	for (unsigned i = 0; i < op->n_regions; i++) {
		str_printf(out, i ? ", {\n" : " ({\n");
		write_block(c, out, op->regions[i].block, depth + 1);
		str_printf(out, "%*s}%s", (int)depth * 2, "", i + 1 < op->n_regions ? "" : ")");
	}
	write_attrs(c, out, op);
	str_printf(out, " : ");
	write_signature(out, op->n_operands, op->operands, op->n_results, op->results);
	write_where(out, op->where);
	str_printf(out, "\n");
}

static void write_block(struct tc_ctx *c, struct str *out, const struct tc_block *b,
			unsigned depth)
{
	if (!b)
		return;
	str_printf(out, "%*s^bb0", (int)depth * 2 - 2, "");
	for (unsigned i = 0; i < b->n_args; i++) {
		str_printf(out, "%s%%%u: ", i ? ", " : "(", b->args[i]->id);
		write_type(out, b->args[i]->type);
	}
	str_printf(out, "%s:\n", b->n_args ? ")" : "");
	for (const struct tc_op *op = b->first; op; op = op->next)
		write_op(c, out, op, depth);
}

/* ---- main and its module ---- */

/* What main's arguments say of results and donation. */
static void write_arguments(struct str *out, const struct tc_op *main, unsigned n)
{
	str_printf(out, ", arg_attrs = [");
	for (unsigned i = 0; i < n; i++) {
		const struct tc_arg_info *info = &main->arg_info[i];

		str_printf(out, "%s{", i ? ", " : "");
		if (info->alias >= 0)
			str_printf(out, "tf.aliasing_output = %d : i32", info->alias);
		else if (info->is_donor)
			str_printf(out, "jax.buffer_donor = true");
		str_printf(out, "}");
	}
	str_printf(out, "]");
}

/* An xla.OpSharding of several: as a text attribute of the module. */
static void write_shardings(struct tc_ctx *c, struct str *out, const struct tc_sharding *s,
			    unsigned n)
{
	Hlo__Sharding all = HLO__SHARDING__INIT, *one;
	struct hlo r = { .c = c };
	uint8_t *p;

	one = hlo_get(&r, n, sizeof(*one));
	all.tuple_shardings = hlo_get(&r, n, sizeof(*all.tuple_shardings));
	all.n_tuple_shardings = n;
	all.has_type = true;
	all.type = HLO_TUPLE;
	for (unsigned i = 0; i < n; i++) {
		all.tuple_shardings[i] = &one[i];
		hlo__sharding__init(&one[i]);
		if (s[i].n) {
			all.tuple_shardings[i] = hlo_unpack(&r, &hlo__sharding__descriptor,
							    s[i].bytes, s[i].n, "OpSharding");
		} else {
			one[i].has_type = true;
			one[i].type = HLO_REPLICATED;
		}
	}
	if (n == 1)
		all = *all.tuple_shardings[0];
	p = hlo_get(&r, hlo__sharding__get_packed_size(&all) + 1, 1);
	write_text(out, p, hlo__sharding__pack(&all, p));
}

static void write_main(struct tc_ctx *c, struct str *out, const struct tc_op *main)
{
	const struct tc_block *b = main->regions[0].block;

	str_printf(out, "  \"func.func\"() ({\n");
	write_block(c, out, b, BODY);
	str_printf(out, "  }) {sym_name = \"main\", function_type = (");
	for (unsigned i = 0; i < b->n_args; i++) {
		str_printf(out, "%s", i ? ", " : "");
		write_type(out, b->args[i]->type);
	}
	str_printf(out, ") -> (");
	for (unsigned i = 0; i < b->last->n_operands; i++) {
		str_printf(out, "%s", i ? ", " : "");
		write_type(out, b->last->operands[i].value->type);
	}
	str_printf(out, ")");
	if (main->arg_info)
		write_arguments(out, main, b->n_args);
	str_printf(out, "} : () -> ()\n");
}

void tc_write_stablehlo(struct tc_ctx *c, struct str *out)
{
	const struct tc_op *main = tc_main(c)->region->parent;
	const char *name = tc_attr_str(c->module, "sym_name");
	unsigned n_args = main->regions[0].block->n_args;
	const struct tc_sharding *s = c->shardings;

	str_printf(out, "\"builtin.module\"() ({\n");
	write_main(c, out, main);
	str_printf(out, "}) {sym_name = ");
	write_text(out, name ? name : "main", strlen(name ? name : "main"));
	str_printf(out, ", mhlo.num_replicas = %u : i32, mhlo.num_partitions = %u : i32",
		   c->options->replicas ? c->options->replicas : 1,
		   c->options->partitions ? c->options->partitions : 1);
	if (s && c->n_shardings > n_args) {
		str_printf(out, ", mhlo.spmd_output_sharding = ");
		write_shardings(c, out, s + n_args, c->n_shardings - n_args);
	}
	for (unsigned i = 0; s && i < n_args; i++) {
		str_printf(out, i ? ", " : ", mhlo.spmd_parameters_shardings = [");
		write_shardings(c, out, s + i, 1);
	}
	str_printf(out, "%s} : () -> ()\n", s && n_args ? "]" : "");
}
