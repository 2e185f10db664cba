/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz_ops/facts_ir.h"

#include <string.h>

static void read_one(struct tc_ctx *c, struct tc_value *v, const char **text)
{
	struct fact f, *own;

	if (!fact_parse(text, &f))
		return;
	own = arena_array(&c->arena, 1, sizeof(*own));
	if (own)
		*own = f;
	v->side = own;
}

static void read_op(struct tc_op *op, void *arg)
{
	const char *text = op->where;

	for (unsigned i = 0; text && i < op->n_results; i++)
		read_one(arg, tc_out(op, i), &text);
	if (op->op != TC_FUNC || !text)
		return;
	for (unsigned i = 0; i < op->regions[0].block->n_args; i++)
		read_one(arg, op->regions[0].block->args[i], &text);
}

void facts_read(struct tc_ctx *c)
{
	tc_walk(c->module, read_op, c);
}

static void write_one(struct tc_value *v, unsigned data, struct str *s)
{
	const struct fact *own = v->side;
	struct fact f = own ? *own : FACT(FACT_BITS, false, 0, 0);

	if (data && !f.data)
		f.data = data;
	if (!data)
		f.data = 0;
	fact_print(f, s);
	str_printf(s, " ");
	v->side = NULL;
}

static void write_op(struct tc_op *op, void *arg)
{
	struct tc_ctx *c = arg;
	struct str s = { 0 };
	char *copy;

	for (unsigned i = 0; i < op->n_results; i++)
		write_one(tc_out(op, i), 0, &s);
	for (unsigned r = 0; r < op->n_regions; r++)
		for (unsigned i = 0; op->regions[r].block && i < op->regions[r].block->n_args;
		     i++) {
			struct tc_value *v = op->regions[r].block->args[i];

			if (op->op == TC_FUNC)
				write_one(v, v->id + 1, &s);
			v->side = NULL;
		}
	copy = s.text ? arena_array(&c->arena, s.len + 1, 1) : NULL;
	if (copy)
		memcpy(copy, s.text, s.len - 1);
	op->where = copy ? copy : "";
	str_free(&s);
}

void facts_write(struct tc_ctx *c)
{
	tc_walk(c->module, write_op, c);
}
