/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The IR as text, one op a line, in one generic form (README.md#text).
 *
 * Everything that the IR holds is in the text, values under their ids: ir_parse.c reads
 * it back, and printing what it read gives the same text. Texts of the program (names,
 * locations, strings) are escaped, so a line of the text is a line of ours.
 */
#include <inttypes.h>
#include <string.h>

#include "runtime/compiler/ir/ir.h"

/* Names of ENUM attributes' numbers, for reading; where there is none, the number is
 * printed. */
static const struct { const char *key, *names[6]; } enums[] = {
	{ "comparison_direction", {
		[TC_CMP_EQ] = "EQ", [TC_CMP_NE] = "NE", [TC_CMP_GE] = "GE", [TC_CMP_GT] = "GT",
		[TC_CMP_LE] = "LE", [TC_CMP_LT] = "LT" } },
	{ "compare_type", {
		[TC_CMP_NOTYPE] = "NOTYPE", [TC_CMP_FLOAT] = "FLOAT",
		[TC_CMP_TOTALORDER] = "TOTALORDER", [TC_CMP_SIGNED] = "SIGNED",
		[TC_CMP_UNSIGNED] = "UNSIGNED" } },
	{ "rng_algorithm", {
		[TC_RNG_DEFAULT] = "DEFAULT", [TC_RNG_THREE_FRY] = "THREE_FRY",
		[TC_RNG_PHILOX] = "PHILOX" } },
	{ "fft_type", {
		[TC_FFT_FFT] = "FFT", [TC_FFT_IFFT] = "IFFT", [TC_FFT_RFFT] = "RFFT",
		[TC_FFT_IRFFT] = "IRFFT" } },
	{ "transpose_a", {
		[TC_SOLVE_PLAIN] = "NO_TRANSPOSE", [TC_SOLVE_TRANSPOSE] = "TRANSPOSE",
		[TC_SOLVE_ADJOINT] = "ADJOINT" } },
	{ "kind", { [TC_FUSION_LOOP] = "LOOP", [TC_FUSION_MATMUL] = "MATMUL" } },
};

const char *tc_enum_name(const char *key, int64_t i)
{
	for (unsigned k = 0; k < sizeof(enums) / sizeof(*enums); k++)
		if (!strcmp(enums[k].key, key))
			return i >= 0 && i < 6 ? enums[k].names[i] : NULL;
	return NULL;
}

/* bounded: dims (bits) that may be shorter. */
static void print_bounded(const struct tc_type *t, uint32_t bounded, struct str *out)
{
	if (t->is_tuple) {
		str_printf(out, "tuple<");
		for (uint32_t i = 0; i < t->n_parts; i++) {
			str_printf(out, "%s", i ? ", " : "");
			print_bounded(t->parts[i], 0, out);
		}
		str_printf(out, ">");
		return;
	}
	if (t->elem == ELEM_TOKEN && !t->rank) {
		str_printf(out, "token");
		return;
	}
	str_printf(out, "tensor<");
	for (unsigned d = 0; d < t->rank; d++)
		str_printf(out, "%s%" PRId64 "x", bounded >> d & 1 ? "<=" : "", t->dim[d]);
	str_printf(out, "%s>", elem_text(t->elem));
}

/* Bytes that would end the text or a line of it, as \HH. */
static void print_escaped(const char *text, size_t n, struct str *out)
{
	size_t from = 0;

	for (size_t i = 0; i < n; i++) {
		unsigned char b = (unsigned char)text[i];

		if (b >= 0x20 && b != 0x7f && b != '"' && b != '\\')
			continue;
		str_add(out, text + from, i - from);
		str_printf(out, "\\%02x", b);
		from = i + 1;
	}
	str_add(out, text + from, n - from);
}

static bool is_word(const char *key)
{
	if (!(*key == '_' || (*key >= 'a' && *key <= 'z') || (*key >= 'A' && *key <= 'Z')))
		return false;
	return key[strspn(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
			       "0123456789_.")] == 0;
}

static void print_key(const char *key, struct str *out)
{
	if (is_word(key)) {
		str_printf(out, "%s = ", key);
		return;
	}
	str_printf(out, "\"");
	print_escaped(key, strlen(key), out);
	str_printf(out, "\" = ");
}

static void print_hex(const uint8_t *p, size_t n, struct str *out)
{
	static const char digits[] = "0123456789abcdef";
	char text[512];
	size_t k = 0;

	for (size_t i = 0; i < n; i++) {
		text[k++] = digits[p[i] >> 4];
		text[k++] = digits[p[i] & 15];
		if (k == sizeof(text) || i + 1 == n) {
			str_add(out, text, k);
			k = 0;
		}
	}
}

static void print_attr(const struct tc_attr *a, struct str *out)
{
	const char *name;

	switch (a->kind) {
	case TC_ATTR_INT:
		str_printf(out, "%" PRId64, a->i);
		break;
	case TC_ATTR_ENUM:
		name = tc_enum_name(a->key, a->i);
		if (name)
			str_printf(out, "<%s>", name);
		else
			str_printf(out, "<%" PRId64 ">", a->i);
		break;
	case TC_ATTR_BOOL:
		str_printf(out, a->i ? "true" : "false");
		break;
	case TC_ATTR_INTS:
		str_printf(out, "[");
		for (uint32_t i = 0; i < a->n; i++)
			str_printf(out, "%s%" PRId64, i ? ", " : "", a->ints[i]);
		str_printf(out, "]");
		break;
	case TC_ATTR_STR:
		str_printf(out, "\"");
		print_escaped(a->text, a->n, out);
		str_printf(out, "\"");
		break;
	case TC_ATTR_DENSE:
		str_printf(out, "dense<%s0x", a->is_splat ? "splat " : "");
		print_hex(a->data, a->is_splat ? elem_bytes(a->type->elem) :
			  (size_t)a->type->bytes, out);
		str_printf(out, "> : ");
		print_bounded(a->type, 0, out);
		break;
	default:
		str_printf(out, "{");
		for (uint32_t i = 0; i < a->n; i++) {
			str_printf(out, "%s", i ? ", " : "");
			print_key(a->attrs[i].key, out);
			print_attr(&a->attrs[i], out);
		}
		str_printf(out, "}");
		break;
	}
}

static bool is_plain(const struct tc_arg_info *info)
{
	return info->alias < 0 && !info->is_donor && !info->memory_kind &&
	       !info->sharding && !info->layout;
}

static const char *print_fact(const char *comma, const char *key, const char *text,
			      struct str *out)
{
	if (!text)
		return comma;
	str_printf(out, "%s%s = \"", comma, key);
	print_escaped(text, strlen(text), out);
	str_printf(out, "\"");
	return ", ";
}

static void print_info(const struct tc_arg_info *info, struct str *out)
{
	const char *comma = "";

	str_printf(out, "{");
	if (info->alias >= 0) {
		str_printf(out, "alias = %d", info->alias);
		comma = ", ";
	}
	if (info->is_donor) {
		str_printf(out, "%sdonor", comma);
		comma = ", ";
	}
	if (info->memory_kind) {
		str_printf(out, "%smemory_kind = %u", comma, info->memory_kind);
		comma = ", ";
	}
	comma = print_fact(comma, "sharding", info->sharding, out);
	print_fact(comma, "layout", info->layout, out);
	str_printf(out, "}");
}

/* What a function's results carry; nothing if they carry nothing. */
static void print_results(const struct tc_op *func, struct str *out)
{
	const struct tc_block *b = func->regions[0].block;
	unsigned n = func->res_info && b->last ? b->last->n_operands : 0;
	bool all_plain = true;

	for (unsigned i = 0; i < n; i++)
		all_plain &= is_plain(&func->res_info[i]);
	if (all_plain)
		return;
	str_printf(out, " -> (");
	for (unsigned i = 0; i < n; i++) {
		str_printf(out, "%s", i ? ", " : "");
		print_info(&func->res_info[i], out);
	}
	str_printf(out, ")");
}

static void print_op(const struct tc_op *op, struct str *out, unsigned indent);

static void print_region(const struct tc_op *op, const struct tc_block *b,
			 struct str *out, unsigned indent)
{
	if (!b) {
		str_printf(out, " none");
		return;
	}
	str_printf(out, " (");
	for (unsigned i = 0; i < b->n_args; i++) {
		str_printf(out, "%s%%%u: ", i ? ", " : "", b->args[i]->id);
		print_bounded(b->args[i]->type, b->args[i]->bounded, out);
		if (op->arg_info && !is_plain(&op->arg_info[i])) {
			str_printf(out, " ");
			print_info(&op->arg_info[i], out);
		}
	}
	str_printf(out, ")");
	if (op->op == TC_FUNC)
		print_results(op, out);
	str_printf(out, " {\n");
	for (const struct tc_op *o = b->first; o; o = o->next)
		print_op(o, out, indent + 1);
	str_printf(out, "%*s}", (int)indent * 2, "");
}

static void print_op(const struct tc_op *op, struct str *out, unsigned indent)
{
	str_printf(out, "%*s", (int)indent * 2, "");
	for (unsigned i = 0; i < op->n_results; i++)
		str_printf(out, "%s%%%u", i ? ", " : "", op->results[i].id);
	str_printf(out, "%s%s(", op->n_results ? " = " : "", tc_op_info(op->op)->text);
	for (unsigned i = 0; i < op->n_operands; i++)
		str_printf(out, "%s%%%u", i ? ", " : "", op->operands[i].value->id);
	str_printf(out, ")");
	for (unsigned i = 0; i < op->n_attrs; i++) {
		str_printf(out, i ? ", " : " {");
		print_key(op->attrs[i].key, out);
		print_attr(&op->attrs[i], out);
	}
	if (op->n_attrs)
		str_printf(out, "}");
	for (unsigned i = 0; i < op->n_results; i++) {
		str_printf(out, i ? ", " : " : ");
		print_bounded(op->results[i].type, op->results[i].bounded, out);
	}
	for (unsigned r = 0; r < op->n_regions; r++)
		print_region(op, op->regions[r].block, out, indent);
	if (op->where && *op->where) {
		str_printf(out, " # ");
		print_escaped(op->where, strlen(op->where), out);
	}
	str_printf(out, "\n");
}

void tc_ir_print(const struct tc_op *op, struct str *out)
{
	print_op(op, out, 0);
}
