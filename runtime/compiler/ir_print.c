/* SPDX-License-Identifier: Apache-2.0 */
/* The IR as text, one op a line, in one generic form (compiler/README.md#text). */
#include <inttypes.h>
#include <string.h>

#include "runtime/compiler/ir.h"

#define MAX_DATA 64	/* bytes of a constant that are printed */

static void print_type(const struct tc_type *t, struct str *out)
{
	if (t->is_tuple) {
		str_printf(out, "tuple<%u>", t->n_parts);
		return;
	}
	if (t->elem == ELEM_TOKEN) {
		str_printf(out, "token");
		return;
	}
	str_printf(out, "tensor<");
	for (unsigned d = 0; d < t->rank; d++)
		str_printf(out, "%" PRId64 "x", t->dim[d]);
	str_printf(out, "%s>", elem_text(t->elem));
}

static void print_attr(const struct tc_attr *a, struct str *out)
{
	size_t n;

	switch (a->kind) {
	case TC_ATTR_INT:
	case TC_ATTR_ENUM:
		str_printf(out, "%" PRId64, a->i);
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
		str_printf(out, "\"%s\"", a->text);
		break;
	case TC_ATTR_DENSE:
		n = a->is_splat ? elem_bytes(a->type->elem) : (size_t)a->type->bytes;
		str_printf(out, "dense<%s0x", a->is_splat ? "splat " : "");
		for (size_t i = 0; i < n && i < MAX_DATA; i++)
			str_printf(out, "%02x", ((const uint8_t *)a->data)[i]);
		str_printf(out, "%s> : ", n > MAX_DATA ? "..." : "");
		print_type(a->type, out);
		break;
	default:
		str_printf(out, "{");
		for (uint32_t i = 0; i < a->n; i++) {
			str_printf(out, "%s%s = ", i ? ", " : "", a->attrs[i].key);
			print_attr(&a->attrs[i], out);
		}
		str_printf(out, "}");
		break;
	}
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
		str_printf(out, "%s%s = ", i ? ", " : " {", op->attrs[i].key);
		print_attr(&op->attrs[i], out);
	}
	if (op->n_attrs)
		str_printf(out, "}");
	for (unsigned i = 0; i < op->n_results; i++) {
		str_printf(out, i ? ", " : " : ");
		print_type(op->results[i].type, out);
	}
	for (unsigned r = 0; r < op->n_regions; r++) {
		const struct tc_block *b = op->regions[r].block;

		str_printf(out, " (");
		for (unsigned i = 0; b && i < b->n_args; i++) {
			str_printf(out, "%s%%%u: ", i ? ", " : "", b->args[i]->id);
			print_type(b->args[i]->type, out);
		}
		str_printf(out, ") {\n");
		for (const struct tc_op *o = b ? b->first : NULL; o; o = o->next)
			print_op(o, out, indent + 1);
		str_printf(out, "%*s}", (int)indent * 2, "");
	}
	if (op->where && *op->where)
		str_printf(out, " # %s", op->where);
	str_printf(out, "\n");
}

void tc_ir_print(const struct tc_op *op, struct str *out)
{
	print_op(op, out, 0);
}
