/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a custom_call says to a function of the host: attributes, each with the width that the
 * function looks for, and aliases. Which calls become one is decided later (lower/host.c), so
 * nothing is refused here; what such a function can't be given is said in `no_frame`.
 */
#include <stdio.h>
#include <string.h>

#include "runtime/compiler/front/reader.h"

enum { MOST_NESTED = 8 };

static void refuse(struct bc *r, struct tc_op *op, struct bc_text name, const char *what)
{
	char text[160];

	snprintf(text, sizeof(text), "its attribute \"%.*s\" is %s",
		 (int)(name.n > 60 ? 60 : name.n), name.p, what);
	tc_set_str(r->c, op, "no_frame", text);
}

/* A number or truth value as an array of rank 0. */
static void scalar(struct bc *r, const struct bc_attr *a, struct tc_attr *out)
{
	const struct tc_type *t = a->kind == BC_BOOL ? tc_tensor(r->c, ELEM_PRED, 0, NULL) :
						       a->type;
	int64_t *bits = bc_get(r, 1, sizeof(*bits));

	*bits = a->i;
	out->kind = TC_ATTR_DENSE;
	out->type = t;
	out->data = a->kind == BC_FLOAT ? (const void *)a->text.p : bits;
}

static const struct tc_attr *entries(struct bc *r, struct tc_op *op, const struct bc_attr *dict,
				     uint32_t *n, unsigned depth);

static void entry(struct bc *r, struct tc_op *op, struct bc_text name, const struct bc_attr *a,
		  struct tc_attr *out, unsigned depth)
{
	struct tc_op holder = { 0 };

	switch (a->kind) {
	case BC_INT:
	case BC_BOOL:
	case BC_FLOAT:
		scalar(r, a, out);
		return;
	case BC_STR:
	case BC_TENSOR:
		bc_give(r, &holder, "", 0, a, true);
		*out = holder.attrs[0];
		return;
	case BC_DICT:
		if (depth == MOST_NESTED)
			break;
		out->kind = TC_ATTR_ATTRS;
		out->attrs = entries(r, op, a, &out->n, depth + 1);
		return;
	default:
		refuse(r, op, name, "neither a number, nor a text, an array or a dictionary of "
		       "these (of lists numpy arrays can be made)");
		return;
	}
	refuse(r, op, name, "a dictionary in too many others");
}

static const struct tc_attr *entries(struct bc *r, struct tc_op *op, const struct bc_attr *dict,
				     uint32_t *n, unsigned depth)
{
	struct tc_attr *list = bc_get(r, dict->n / 2, sizeof(*list));

	*n = 0;
	for (uint32_t i = 0; i + 1 < dict->n; i += 2) {
		struct bc_text name = dict->items[i]->text;

		if (dict->items[i]->kind != BC_STR)
			continue;
		entry(r, op, name, dict->items[i + 1], &list[*n], depth);
		list[(*n)++].key = tc_key(r->c, name.p, name.n);
	}
	return list;
}

void bc_give_call_attributes(struct bc *r, struct tc_op *op, const struct bc_attr *dict)
{
	struct tc_attr frame = { .key = TC_KEY(r->c, "frame"), .kind = TC_ATTR_ATTRS };

	if (dict->kind != BC_DICT)
		return;
	frame.attrs = entries(r, op, dict, &frame.n, 0);
	tc_set_attr(r->c, op, frame);
}

void bc_give_call_aliases(struct bc *r, struct tc_op *op, const struct bc_attr *list)
{
	uint32_t n = list->kind == BC_ARRAY ? list->n : 0;
	int64_t *pairs = bc_get(r, (size_t)2 * n, sizeof(*pairs));

	for (uint32_t i = 0; i < n; i++) {
		if (list->items[i]->kind != BC_ALIAS)
			return;
		pairs[2 * i] = list->items[i]->size;
		pairs[2 * i + 1] = list->items[i]->i;
	}
	if (n)
		tc_set_ints(r->c, op, "aliases", pairs, 2 * n);
}
